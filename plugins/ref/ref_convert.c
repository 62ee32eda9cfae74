// SPDX-License-Identifier: Apache-2.0
// Narrow floats by their bits, casts between classes, and elements in memory.
#include <math.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"

// --- Floats of at most 16 bits ---

typedef pestle_float_format_t format_t;

static const format_t* format_of(unsigned dtype) {
  return pestle_float_format((pestle_dtype_t)dtype);
}

// What is too large, or was no number.
static uint64_t special(const format_t* f, uint64_t sign, bool nan,
                        uint64_t mantissa) {
  if (f->specials == PESTLE_FLOAT_UNSIGNED) return f->nan;
  if (f->specials != PESTLE_FLOAT_IEEE || !nan) return sign | f->limit;
  // Quiet, with the leading bits of the payload.
  return sign | f->nan | mantissa >> (52 - f->mantissa_bits);
}

// Powers of two from the least, which smaller ones become, on; 1.5 goes up.
static uint64_t encode_scale(const format_t* f, double value) {
  int exponent;
  if (!(value > 0) || isinf(value)) return f->nan;
  double fraction = frexp(value, &exponent);  // from 1/2 on
  exponent += f->bias - (fraction < 0.75);
  if (exponent < 0) return 0;
  return (uint64_t)exponent < f->limit ? (uint64_t)exponent : f->nan;
}

uint32_t pestle_ref_plugin_encode(unsigned dtype, double value) {
  const format_t* f = format_of(dtype);
  if (f->specials == PESTLE_FLOAT_SCALE)
    return (uint32_t)encode_scale(f, value);
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint64_t sign = bits >> 63 ? f->sign : 0;
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    return (uint32_t)special(f, sign, mantissa != 0, mantissa);
  }
  int biased = exponent - 1023 + f->bias;
  uint64_t result = 0;
  // Denormal doubles, and what is under half of the least, round to zero.
  if (exponent && biased >= -f->mantissa_bits) {
    int drop = 52 - f->mantissa_bits + (biased < 1 ? 1 - biased : 0);
    uint64_t whole = mantissa | UINT64_C(1) << 52;
    uint64_t rest = whole & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    result = whole >> drop;
    result += rest > half || (rest == half && (result & 1));
    // The leading bit counts as one step of the exponent.
    if (biased > 1) result += (uint64_t)(biased - 1) << f->mantissa_bits;
  }
  if (result >= f->limit) return (uint32_t)special(f, sign, false, 0);
  if (f->specials == PESTLE_FLOAT_UNSIGNED && result == 0) return 0;
  return (uint32_t)(sign | result);
}

// Loads, stores and bitcasts only move a value: a NaN keeps the bits that the
// format has for it, signalling ones too, which going through f64 would not.
static uint32_t encode_moved(unsigned dtype, float value) {
  if (!isnan(value)) return pestle_ref_plugin_encode(dtype, (double)value);
  const format_t* f = format_of(dtype);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (f->specials == PESTLE_FLOAT_UNSIGNED) return (uint32_t)f->nan;
  uint64_t sign = bits >> 31 ? f->sign : 0;
  if (f->specials != PESTLE_FLOAT_IEEE) return (uint32_t)(sign | f->limit);
  uint64_t payload = (bits & 0x7fffff) >> (23 - f->mantissa_bits);
  // What arithmetic made of wider bits may have none in the leading places.
  return (uint32_t)(sign | (payload ? f->limit | payload : f->nan));
}

float pestle_ref_plugin_decode(unsigned dtype, uint32_t code) {
  const format_t* f = format_of(dtype);
  uint32_t bits, sign_bit = (uint32_t)f->sign, limit = (uint32_t)f->limit;
  int to_left = 23 - f->mantissa_bits;
  // A bitcast's may be a sign-extended integer.
  code &= (UINT32_C(1) << pestle_dtype_info((pestle_dtype_t)dtype)->bits) - 1;
  uint32_t magnitude = code & ~sign_bit;
  uint32_t sign = (code & sign_bit) ? 0x80000000u : 0;
  bool scale = f->specials == PESTLE_FLOAT_SCALE;
  bool infinite = f->specials == PESTLE_FLOAT_IEEE;
  float value;
  bool nan = f->specials == PESTLE_FLOAT_UNSIGNED ? code == sign_bit
             : infinite                           ? magnitude > limit
                                                  : magnitude >= limit;
  if (nan) {
    bits = sign | 0x7f800000u | magnitude << to_left;
    if (!infinite) bits |= 0x00400000u;
  } else if (magnitude >= limit) {
    bits = sign | 0x7f800000u;
  } else if (magnitude >> f->mantissa_bits) {
    bits = sign | ((magnitude << to_left) + ((uint32_t)(127 - f->bias) << 23));
  } else if (scale) {
    return ldexpf(1, -f->bias);
  } else if (f->bias == 127) {
    bits = sign | magnitude << to_left;
  } else {
    // Denormal there, normal here.
    value = ldexpf((float)magnitude, 1 - f->bias - f->mantissa_bits);
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
MOVE(i8, int8_t, int64_t, x, v)
MOVE(i16, int16_t, int64_t, x, v)
MOVE(i32, int32_t, int64_t, x, v)
MOVE(i64, int64_t, int64_t, x, v)
MOVE(u8, uint8_t, uint64_t, x, v)
MOVE(u16, uint16_t, uint64_t, x, v)
MOVE(u32, uint32_t, uint64_t, x, v)
MOVE(u64, uint64_t, uint64_t, x, v)
#define SMALL(NAME, E, T)                                             \
  MOVE(NAME, E, T, (E)pestle_dtype_extend(PESTLE_##NAME, (uint8_t)x), \
       pestle_dtype_extend(PESTLE_##NAME, (uint8_t)v))
SMALL(I2, int8_t, int64_t)
SMALL(U2, uint8_t, uint64_t)
SMALL(I4, int8_t, int64_t)
SMALL(U4, uint8_t, uint64_t)
MOVE(f32, float, float, x, v)
MOVE(f64, double, double, x, v)
#define MOVE_8(NAME, ...) \
  MOVE(NAME, uint8_t, float, DECODE(PESTLE_##NAME), ENCODE(PESTLE_##NAME))
#define MOVE_16(NAME, ...) \
  MOVE(NAME, uint16_t, float, DECODE(PESTLE_##NAME), ENCODE(PESTLE_##NAME))
PESTLE_FLOAT_FORMATS_8(MOVE_8)
PESTLE_FLOAT_FORMATS_16(MOVE_16)

typedef struct move_row_t {
  ref_move_t load, store;
} move_row_t;

static const move_row_t moves[PESTLE_DTYPE_COUNT] = {
    [PESTLE_I1] = {load_i1, store_i1},
    [PESTLE_I8] = {load_i8, store_i8},
    [PESTLE_I16] = {load_i16, store_i16},
    [PESTLE_I32] = {load_i32, store_i32},
    [PESTLE_I64] = {load_i64, store_i64},
    [PESTLE_U8] = {load_u8, store_u8},
    [PESTLE_U16] = {load_u16, store_u16},
    [PESTLE_U32] = {load_u32, store_u32},
    [PESTLE_U64] = {load_u64, store_u64},
    [PESTLE_F32] = {load_f32, store_f32},
    [PESTLE_F64] = {load_f64, store_f64},
    [PESTLE_INDEX] = {load_i64, store_i64},
#define MOVE_ROW(NAME, ...) [PESTLE_##NAME] = {load_##NAME, store_##NAME},
    MOVE_ROW(I2, ) MOVE_ROW(U2, ) MOVE_ROW(I4, ) MOVE_ROW(U4, )
        PESTLE_FLOAT_FORMATS_8(MOVE_ROW) PESTLE_FLOAT_FORMATS_16(MOVE_ROW)};

ref_move_t pestle_ref_plugin_load(unsigned dtype) {
  return dtype < PESTLE_DTYPE_COUNT ? moves[dtype].load : NULL;
}
ref_move_t pestle_ref_plugin_store(unsigned dtype) {
  return dtype < PESTLE_DTYPE_COUNT ? moves[dtype].store : NULL;
}
