// SPDX-License-Identifier: Apache-2.0
#include "runtime/combine.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/hash.h"

// So much of each array at a time: it stays in the first cache.
enum { BLOCK = 1024 };

// --- One step, a = a op b ---

// As scalar.def has it: NaN wins, and -0 is less than +0.
#define FLOAT_ORDER(T, name)                              \
  static inline T name##_max(T a, T b) {                  \
    if (isnan(a) || isnan(b)) return a + b;               \
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b; \
  }                                                       \
  static inline T name##_min(T a, T b) {                  \
    if (isnan(a) || isnan(b)) return a + b;               \
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b; \
  }
FLOAT_ORDER(float, f32)
FLOAT_ORDER(double, f64)

#define LOOP(expression)               \
  for (size_t i = 0; i < count; ++i) { \
    a[i] = (expression);               \
  }                                    \
  return

// Sums and products of integers wrap around: |U| is the unsigned type.
#define DEFINE_INTEGER(T, U, name)                                             \
  static void step_##name(pestle_reduction_t op, void* into, const void* from, \
                          size_t count) {                                      \
    T* restrict a = into;                                                      \
    const T* restrict b = from;                                                \
    switch (op) {                                                              \
      case PESTLE_REDUCTION_SUM:                                               \
        LOOP((T)((U)a[i] + (U)b[i]));                                          \
      case PESTLE_REDUCTION_PRODUCT:                                           \
        LOOP((T)(U)((uint64_t)(U)a[i] * (uint64_t)(U)b[i]));                   \
      case PESTLE_REDUCTION_MINIMUM:                                           \
        LOOP(a[i] < b[i] ? a[i] : b[i]);                                       \
      case PESTLE_REDUCTION_MAXIMUM:                                           \
        LOOP(a[i] > b[i] ? a[i] : b[i]);                                       \
      case PESTLE_REDUCTION_AND:                                               \
        LOOP((T)(a[i] & b[i]));                                                \
      case PESTLE_REDUCTION_OR:                                                \
        LOOP((T)(a[i] | b[i]));                                                \
    }                                                                          \
  }
DEFINE_INTEGER(int8_t, uint8_t, i8)
DEFINE_INTEGER(int16_t, uint16_t, i16)
DEFINE_INTEGER(int32_t, uint32_t, i32)
DEFINE_INTEGER(int64_t, uint64_t, i64)
DEFINE_INTEGER(uint8_t, uint8_t, u8)
DEFINE_INTEGER(uint16_t, uint16_t, u16)
DEFINE_INTEGER(uint32_t, uint32_t, u32)
DEFINE_INTEGER(uint64_t, uint64_t, u64)

#define DEFINE_FLOAT(T, name)                                                  \
  static void step_##name(pestle_reduction_t op, void* into, const void* from, \
                          size_t count) {                                      \
    T* restrict a = into;                                                      \
    const T* restrict b = from;                                                \
    switch (op) {                                                              \
      case PESTLE_REDUCTION_SUM:                                               \
        LOOP(a[i] + b[i]);                                                     \
      case PESTLE_REDUCTION_PRODUCT:                                           \
        LOOP(a[i] * b[i]);                                                     \
      case PESTLE_REDUCTION_MINIMUM:                                           \
        LOOP(name##_min(a[i], b[i]));                                          \
      case PESTLE_REDUCTION_MAXIMUM:                                           \
        LOOP(name##_max(a[i], b[i]));                                          \
      case PESTLE_REDUCTION_AND:                                               \
      case PESTLE_REDUCTION_OR:                                                \
        return;                                                                \
    }                                                                          \
  }
DEFINE_FLOAT(float, f32)
DEFINE_FLOAT(double, f64)

typedef void (*step_fn_t)(pestle_reduction_t op, void* into, const void* from,
                          size_t count);

static step_fn_t step_of(pestle_dtype_t dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  bool is_signed = info->kind == PESTLE_KIND_SIGNED;
  if (info->kind == PESTLE_KIND_FLOAT)
    return info->size == 8 ? step_f64 : step_f32;
  switch (info->size) {
    case 1:
      return is_signed ? step_i8 : step_u8;
    case 2:
      return is_signed ? step_i16 : step_u16;
    case 4:
      return is_signed ? step_i32 : step_u32;
    default:
      return is_signed ? step_i64 : step_u64;
  }
}

bool pestle_combines(pestle_reduction_t reduction, pestle_dtype_t dtype) {
  bool bits =
      reduction == PESTLE_REDUCTION_AND || reduction == PESTLE_REDUCTION_OR;
  if (!pestle_dtype_is_stored(dtype) ||
      (unsigned)reduction > PESTLE_REDUCTION_OR)
    return false;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return !bits;
  return pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL);
}

// --- Blocks ---

// Floats that are combined in f32.
static void widen(pestle_dtype_t dtype, const void* from, size_t count,
                  float* to) {
  if (dtype == PESTLE_F16) {
    const uint16_t* in = from;
    for (size_t i = 0; i < count; ++i)
      to[i] = pestle_f16_to_f32(in[i]);
  } else if (dtype == PESTLE_BF16) {
    const uint16_t* in = from;
    for (size_t i = 0; i < count; ++i)
      to[i] = pestle_bf16_to_f32(in[i]);
  } else {
    const uint8_t* in = from;
    for (size_t i = 0; i < count; ++i)
      to[i] = (float)pestle_float_decode(dtype, in[i]);
  }
}

static void narrow(pestle_dtype_t dtype, const float* from, size_t count,
                   void* to) {
  if (dtype == PESTLE_F16) {
    uint16_t* out = to;
    for (size_t i = 0; i < count; ++i)
      out[i] = pestle_f16_from_f32(from[i]);
  } else if (dtype == PESTLE_BF16) {
    uint16_t* out = to;
    for (size_t i = 0; i < count; ++i)
      out[i] = pestle_bf16_from_f32(from[i]);
  } else {
    uint8_t* out = to;
    for (size_t i = 0; i < count; ++i)
      out[i] = (uint8_t)pestle_float_encode(dtype, (double)from[i]);
  }
}

static void combine_narrow(pestle_reduction_t op, pestle_dtype_t dtype,
                           char* out, const void* const* in, size_t arrays,
                           size_t first, size_t count) {
  float sum[BLOCK], term[BLOCK];
  size_t size = pestle_dtype_size(dtype);
  widen(dtype, (const char*)in[0] + first * size, count, sum);
  for (size_t k = 1; k < arrays; ++k) {
    widen(dtype, (const char*)in[k] + first * size, count, term);
    step_f32(op, sum, term, count);
  }
  narrow(dtype, sum, count, out + first * size);
}

static void combine_plain(pestle_reduction_t op, pestle_dtype_t dtype,
                          char* out, const void* const* in, size_t arrays,
                          size_t first, size_t count) {
  size_t size = pestle_dtype_size(dtype);
  step_fn_t step = step_of(dtype);
  uint8_t* to = (uint8_t*)out + first * size;
  memcpy(to, (const char*)in[0] + first * size, count * size);
  for (size_t k = 1; k < arrays; ++k)
    step(op, to, (const char*)in[k] + first * size, count);
  // Elements of fewer than 8 bits lie in a byte each, extended.
  if (!pestle_dtype_is_sub_byte(dtype)) return;
  for (size_t i = 0; i < count; ++i)
    to[i] = pestle_dtype_extend(dtype, to[i]);
}

bool pestle_combine(pestle_reduction_t reduction, pestle_dtype_t dtype,
                    void* out, const void* const* in, size_t arrays,
                    size_t count) {
  if (!pestle_combines(reduction, dtype)) return false;
  if (dtype == PESTLE_I1 && reduction == PESTLE_REDUCTION_SUM)
    reduction = PESTLE_REDUCTION_OR;
  bool is_narrow = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
                   pestle_dtype_size(dtype) < sizeof(float);
  for (size_t i = 0; i < count; i += BLOCK) {
    size_t n = count - i < BLOCK ? count - i : BLOCK;
    if (is_narrow) {
      combine_narrow(reduction, dtype, out, in, arrays, i, n);
    } else {
      combine_plain(reduction, dtype, out, in, arrays, i, n);
    }
  }
  return true;
}

pestle_collective_t pestle_collective_heads(const pestle_collective_t* op) {
  uint64_t what[5] = {(uint64_t)op->kind, (uint64_t)op->dtype,
                      (uint64_t)op->reduction, op->count, op->hash};
  pestle_collective_t heads = *op;
  heads.kind = PESTLE_COLLECTIVE_ALL_TO_ALL;
  heads.count = 0;
  heads.hash = pestle_hash64(what, sizeof(what));
  return heads;
}
