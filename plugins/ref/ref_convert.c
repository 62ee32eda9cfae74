// SPDX-License-Identifier: Apache-2.0
// Narrow floats by their bits, casts between classes, and elements in memory.
#include <math.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"

// --- Floats of at most 16 bits ---

typedef struct format_t {
  int mantissa, bias;
  uint32_t sign;   // the bit
  uint32_t limit;  // the first magnitude past the finite ones
  bool infinite;   // |limit| is inf; NaNs follow it
  bool fnuz;       // no -0: the sign bit alone is the NaN
} format_t;

static format_t format_of(unsigned dtype) {
  switch (dtype) {
    case PESTLE_BF16:
      return (format_t){7, 127, 0x8000, 0x7f80, true, false};
    case PESTLE_F8E4M3FN:
      return (format_t){3, 7, 0x80, 0x7f, false, false};
    case PESTLE_F8E5M2:
      return (format_t){2, 15, 0x80, 0x7c, true, false};
    case PESTLE_F8E4M3FNUZ:
      return (format_t){3, 8, 0x80, 0x80, false, true};
    case PESTLE_F8E5M2FNUZ:
      return (format_t){2, 16, 0x80, 0x80, false, true};
    default:
      return (format_t){10, 15, 0x8000, 0x7c00, true, false};
  }
}

// What is too large, or was no number.
static uint32_t special(const format_t* f, uint32_t sign, bool nan,
                        uint64_t mantissa) {
  if (f->fnuz) return f->sign;
  if (!f->infinite) return sign | f->limit;
  if (!nan) return sign | f->limit;
  // Quiet, with the leading bits of the payload.
  uint32_t payload = (uint32_t)(mantissa >> (52 - f->mantissa));
  return sign | f->limit | payload | 1u << (f->mantissa - 1);
}

uint32_t pestle_ref_plugin_encode(unsigned dtype, double value) {
  format_t f = format_of(dtype);
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 63 ? f.sign : 0;
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) return special(&f, sign, mantissa != 0, mantissa);
  int biased = exponent - 1023 + f.bias;
  uint64_t result = 0;
  // Denormal doubles, and what is under half of the least, round to zero.
  if (exponent && biased >= -f.mantissa) {
    int drop = 52 - f.mantissa + (biased < 1 ? 1 - biased : 0);
    uint64_t whole = mantissa | UINT64_C(1) << 52;
    uint64_t rest = whole & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    result = whole >> drop;
    result += rest > half || (rest == half && (result & 1));
    // The leading bit counts as one step of the exponent.
    if (biased > 1) result += (uint64_t)(biased - 1) << f.mantissa;
  }
  if (result >= f.limit) return special(&f, sign, false, 0);
  if (f.fnuz && result == 0) return 0;
  return sign | (uint32_t)result;
}

// Loads, stores and bitcasts only move a value: a NaN keeps the bits that the
// format has for it, signalling ones too, which going through f64 would not.
static uint32_t encode_moved(unsigned dtype, float value) {
  if (!isnan(value)) return pestle_ref_plugin_encode(dtype, (double)value);
  format_t f = format_of(dtype);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (f.fnuz) return f.sign;
  uint32_t sign = bits >> 31 ? f.sign : 0;
  if (!f.infinite) return sign | f.limit;
  uint32_t payload = (bits & 0x7fffff) >> (23 - f.mantissa);
  // What arithmetic made of wider bits may have none in the leading places.
  return sign | f.limit | (payload ? payload : 1u << (f.mantissa - 1));
}

float pestle_ref_plugin_decode(unsigned dtype, uint32_t code) {
  format_t f = format_of(dtype);
  code &= 2 * f.sign - 1;  // a bitcast's may be a sign-extended integer
  uint32_t magnitude = code & (f.sign - 1);
  uint32_t sign = (code & f.sign) ? 0x80000000u : 0;
  uint32_t bits;
  float value;
  bool nan = f.fnuz       ? code == f.sign
             : f.infinite ? magnitude > f.limit
                          : magnitude >= f.limit;
  if (nan) {
    bits = sign | 0x7f800000u | magnitude << (23 - f.mantissa);
    if (!f.infinite) bits |= 0x00400000u;
  } else if (magnitude >= f.limit) {
    bits = sign | 0x7f800000u;
  } else if (magnitude >> f.mantissa) {
    bits = sign | ((magnitude << (23 - f.mantissa)) +
                   ((uint32_t)(127 - f.bias) << 23));
  } else if (f.bias == 127) {
    bits = sign | magnitude << (23 - f.mantissa);
  } else {
    // Denormal there, normal here.
    value = ldexpf((float)magnitude, 1 - f.bias - f.mantissa);
    return sign ? -value : value;
  }
  memcpy(&value, &bits, sizeof value);
  return value;
}

// --- Casts ---

// An integer as a double from which rounding to a narrower float gives what
// rounding the integer itself would: lost bits are gathered in the last one.
static double odd_double(uint64_t magnitude, bool negative) {
  if (magnitude >> 53) {
    bool lost = (magnitude & 0x7ff) != 0;
    magnitude = (magnitude & ~UINT64_C(0x7ff)) | (lost ? 0x800 : 0);
  }
  return negative ? -(double)magnitude : (double)magnitude;
}

static double double_of(unsigned from, const void* slots, size_t i) {
  switch (pestle_ref_plugin_class(from)) {
    case REF_F32:
      return (double)((const float*)slots)[i];
    case REF_F64:
      return ((const double*)slots)[i];
    case REF_I64: {
      int64_t value = ((const int64_t*)slots)[i];
      uint64_t bits = (uint64_t)value;
      return odd_double(value < 0 ? 0 - bits : bits, value < 0);
    }
    case REF_U64:
    case REF_CLASS_COUNT:
      break;
  }
  return odd_double(((const uint64_t*)slots)[i], false);
}

static int64_t saturate_signed(double value, unsigned bits) {
  double limit = ldexp(1.0, (int)bits - 1);
  if (isnan(value)) return 0;
  if (value >= limit) return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
  if (value < -limit) return -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1;
  return (int64_t)value;
}

static uint64_t saturate_unsigned(double value, unsigned bits) {
  if (!(value > 0)) return 0;
  if (value < ldexp(1.0, (int)bits)) return (uint64_t)value;
  return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

#define CAST_HEAD(T)                                               \
  T* out = out_;                                                   \
  unsigned from = (unsigned)(arg >> 8), to = (unsigned)arg & 0xff; \
  (void)b, (void)c, (void)from, (void)to;
#define CAST_ARGS                                                        \
  void *out_, const void *a, const void *b, const void *c, size_t count, \
      uint64_t arg

static void to_narrow(CAST_ARGS) {
  CAST_HEAD(float)
  for (size_t i = 0; i < count; ++i) {
    uint32_t code = pestle_ref_plugin_encode(to, double_of(from, a, i));
    out[i] = pestle_ref_plugin_decode(to, code);
  }
}

static void to_f32(CAST_ARGS) {
  CAST_HEAD(float)
  for (size_t i = 0; i < count; ++i)
    out[i] = (float)double_of(from, a, i);
}

static void to_f64(CAST_ARGS) {
  CAST_HEAD(double)
  ref_class_t kind = pestle_ref_plugin_class(from);
  const int64_t* s = a;
  const uint64_t* u = a;
  for (size_t i = 0; i < count; ++i) {
    out[i] = kind == REF_I64   ? (double)s[i]
             : kind == REF_U64 ? (double)u[i]
                               : double_of(from, a, i);
  }
}

static void float_to_int(CAST_ARGS) {
  CAST_HEAD(int64_t)
  unsigned bits = pestle_dtype_info((pestle_dtype_t)to)->bits;
  bool is_signed = pestle_ref_plugin_class(to) == REF_I64;
  for (size_t i = 0; i < count; ++i) {
    double value = double_of(from, a, i);
    out[i] = is_signed ? saturate_signed(value, bits)
                       : (int64_t)saturate_unsigned(value, bits);
  }
}

static void float_to_bool(CAST_ARGS) {
  CAST_HEAD(uint64_t)
  for (size_t i = 0; i < count; ++i)
    out[i] = double_of(from, a, i) != 0;
}

static void int_to_bool(CAST_ARGS) {
  CAST_HEAD(uint64_t)
  const uint64_t* in = a;
  for (size_t i = 0; i < count; ++i)
    out[i] = in[i] != 0;
}

// The fix of the result's type wraps.
static void int_to_int(CAST_ARGS) {
  CAST_HEAD(uint64_t)
  memcpy(out, a, count * sizeof *out);
}

static void f32_to_f32(CAST_ARGS) {
  CAST_HEAD(float)
  memcpy(out, a, count * sizeof *out);
}

ref_fn_t pestle_ref_plugin_cast(unsigned from, unsigned to) {
  bool from_float = pestle_dtype_is((pestle_dtype_t)from, PESTLE_KIND_FLOAT);
  if (to == PESTLE_I1) return from_float ? float_to_bool : int_to_bool;
  if (to == PESTLE_F64) return to_f64;
  if (to == PESTLE_F32) {
    return pestle_ref_plugin_class(from) == REF_F32 ? f32_to_f32 : to_f32;
  }
  if (pestle_ref_plugin_class(to) == REF_F32) return to_narrow;
  return from_float ? float_to_int : int_to_int;
}

// --- Bits ---

static uint64_t bits_of(unsigned from, const void* slots, size_t i) {
  uint64_t bits = 0;
  if (from == PESTLE_F32) {
    memcpy(&bits, (const float*)slots + i, sizeof(float));
  } else if (pestle_ref_plugin_class(from) == REF_F32) {
    bits = encode_moved(from, ((const float*)slots)[i]);
  } else {
    memcpy(&bits, (const uint64_t*)slots + i, sizeof bits);
  }
  return bits;
}

// The fix of an integer result's type extends the sign or cuts.
static void recast_bits(CAST_ARGS) {
  CAST_HEAD(uint64_t)
  float* floats = out_;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = bits_of(from, a, i);
    uint32_t low = (uint32_t)bits;
    if (to == PESTLE_F32) {
      memcpy(&floats[i], &low, sizeof low);
    } else if (pestle_ref_plugin_class(to) == REF_F32) {
      floats[i] = pestle_ref_plugin_decode(to, low);
    } else {
      out[i] = bits;
    }
  }
}

static void f32_to_i32(CAST_ARGS) {
  CAST_HEAD(int64_t)
  const int32_t* in = a;
  for (size_t i = 0; i < count; ++i)
    out[i] = in[i];
}

static void int_to_f32(CAST_ARGS) {
  CAST_HEAD(uint32_t)
  const uint64_t* in = a;
  for (size_t i = 0; i < count; ++i)
    out[i] = (uint32_t)in[i];
}

ref_fn_t pestle_ref_plugin_bitcast(unsigned from, unsigned to) {
  if (from == PESTLE_F32 && to == PESTLE_I32) return f32_to_i32;
  if (to == PESTLE_F32 && from != PESTLE_F32) return int_to_f32;
  return recast_bits;
}

// --- Memory ---

// x is the element in memory, or v the value in the slot.
#define MOVE(name, E, T, load_expr, store_expr)                    \
  static void load_##name(void* data, int64_t first, void* slots,  \
                          size_t count) {                          \
    const E* from = (const E*)data + first;                        \
    T* to = slots;                                                 \
    for (size_t i = 0; i < count; ++i) {                           \
      const E x = from[i];                                         \
      to[i] = (T)(load_expr);                                      \
    }                                                              \
  }                                                                \
  static void store_##name(void* data, int64_t first, void* slots, \
                           size_t count) {                         \
    E* to = (E*)data + first;                                      \
    const T* from = slots;                                         \
    for (size_t i = 0; i < count; ++i) {                           \
      const T v = from[i];                                         \
      to[i] = (E)(store_expr);                                     \
    }                                                              \
  }
#define DECODE(dtype) pestle_ref_plugin_decode(dtype, x)
#define ENCODE(dtype) encode_moved(dtype, v)

MOVE(i1, uint8_t, uint64_t, x & 1, v & 1)
MOVE(i4, int8_t, int64_t, (int)((x & 15) ^ 8) - 8, v)
MOVE(i8, int8_t, int64_t, x, v)
MOVE(i16, int16_t, int64_t, x, v)
MOVE(i32, int32_t, int64_t, x, v)
MOVE(i64, int64_t, int64_t, x, v)
MOVE(u4, uint8_t, uint64_t, x & 15, v & 15)
MOVE(u8, uint8_t, uint64_t, x, v)
MOVE(u16, uint16_t, uint64_t, x, v)
MOVE(u32, uint32_t, uint64_t, x, v)
MOVE(u64, uint64_t, uint64_t, x, v)
MOVE(e4m3fn, uint8_t, float, DECODE(PESTLE_F8E4M3FN), ENCODE(PESTLE_F8E4M3FN))
MOVE(e5m2, uint8_t, float, DECODE(PESTLE_F8E5M2), ENCODE(PESTLE_F8E5M2))
MOVE(e4m3fnuz, uint8_t, float, DECODE(PESTLE_F8E4M3FNUZ),
     ENCODE(PESTLE_F8E4M3FNUZ))
MOVE(e5m2fnuz, uint8_t, float, DECODE(PESTLE_F8E5M2FNUZ),
     ENCODE(PESTLE_F8E5M2FNUZ))
MOVE(bf16, uint16_t, float, DECODE(PESTLE_BF16), ENCODE(PESTLE_BF16))
MOVE(f16, uint16_t, float, DECODE(PESTLE_F16), ENCODE(PESTLE_F16))
MOVE(f32, float, float, x, v)
MOVE(f64, double, double, x, v)

typedef struct move_row_t {
  ref_move_t load, store;
} move_row_t;

static const move_row_t moves[PESTLE_DTYPE_COUNT] = {
    [PESTLE_I1] = {load_i1, store_i1},
    [PESTLE_I4] = {load_i4, store_i4},
    [PESTLE_I8] = {load_i8, store_i8},
    [PESTLE_I16] = {load_i16, store_i16},
    [PESTLE_I32] = {load_i32, store_i32},
    [PESTLE_I64] = {load_i64, store_i64},
    [PESTLE_U4] = {load_u4, store_u4},
    [PESTLE_U8] = {load_u8, store_u8},
    [PESTLE_U16] = {load_u16, store_u16},
    [PESTLE_U32] = {load_u32, store_u32},
    [PESTLE_U64] = {load_u64, store_u64},
    [PESTLE_F8E4M3FN] = {load_e4m3fn, store_e4m3fn},
    [PESTLE_F8E5M2] = {load_e5m2, store_e5m2},
    [PESTLE_F8E4M3FNUZ] = {load_e4m3fnuz, store_e4m3fnuz},
    [PESTLE_F8E5M2FNUZ] = {load_e5m2fnuz, store_e5m2fnuz},
    [PESTLE_BF16] = {load_bf16, store_bf16},
    [PESTLE_F16] = {load_f16, store_f16},
    [PESTLE_F32] = {load_f32, store_f32},
    [PESTLE_F64] = {load_f64, store_f64},
    [PESTLE_INDEX] = {load_i64, store_i64},
};

ref_move_t pestle_ref_plugin_load(unsigned dtype) {
  return dtype < PESTLE_DTYPE_COUNT ? moves[dtype].load : NULL;
}
ref_move_t pestle_ref_plugin_store(unsigned dtype) {
  return dtype < PESTLE_DTYPE_COUNT ? moves[dtype].store : NULL;
}
