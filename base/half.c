// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <string.h>

// A format by its numbers. Magnitudes (the bits without the sign) are ordered
// like the values that they stand for: every one up to |max| is finite, and
// what rounds to a larger one becomes |overflow|.
typedef struct format_t {
  unsigned sign_shift;
  unsigned mantissa_bits;
  int bias;
  uint32_t max;
  uint32_t overflow;   // inf, or NaN where there is none
  uint32_t nan;        // quiet
  bool has_inf;        // and NaNs with payloads above it
  bool unsigned_zero;  // neither -0 nor -NaN: |nan| has the sign bit's code
} format_t;

static const format_t f16 = {15, 10, 15, 0x7bff, 0x7c00, 0x7e00, true, false};
static const format_t bf16 = {15, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true, false};
static const format_t e4m3fn = {7, 3, 7, 0x7e, 0x7f, 0x7f, false, false};
static const format_t e5m2 = {7, 2, 15, 0x7b, 0x7c, 0x7e, true, false};
static const format_t e4m3fnuz = {7, 3, 8, 0x7f, 0x80, 0x80, false, true};
static const format_t e5m2fnuz = {7, 2, 16, 0x7f, 0x80, 0x80, false, true};

enum { F64_MANTISSA_BITS = 52, F64_BIAS = 1023, F64_SPECIAL = 2047 };

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// |mantissa| >> |shift|, rounded to nearest even.
static uint64_t shift_rounded(uint64_t mantissa, unsigned shift) {
  // Below half of the last place whatever the bits are.
  if (shift > F64_MANTISSA_BITS + 1) return 0;
  uint64_t quotient = mantissa >> shift;
  uint64_t rest = mantissa & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  if (rest > half || (rest == half && (quotient & 1))) ++quotient;
  return quotient;
}

// The magnitude of a number that is neither inf nor NaN.
static uint32_t encode_finite(const format_t* format, int exponent,
                              uint64_t mantissa) {
  // Denormals of f64 are below half of every format's least number.
  if (exponent == 0) return 0;
  mantissa |= UINT64_C(1) << F64_MANTISSA_BITS;
  int field = exponent - F64_BIAS + format->bias;
  unsigned shift = F64_MANTISSA_BITS - format->mantissa_bits;
  if (field < 1) {
    shift += (unsigned)(1 - field);
    field = 1;
  }
  // The leading one counts as 1 in the exponent's place: a normal number gets
  // its field back, a denormal 0, and a carry moves on by itself.
  uint64_t magnitude = ((uint64_t)(field - 1) << format->mantissa_bits) +
                       shift_rounded(mantissa, shift);
  return magnitude > format->max ? format->overflow : (uint32_t)magnitude;
}

static uint32_t encode(const format_t* format, double value) {
  uint64_t bits = bits_of(value);
  uint32_t sign = (uint32_t)(bits >> 63) << format->sign_shift;
  int exponent = (int)(bits >> F64_MANTISSA_BITS & F64_SPECIAL);
  uint64_t mantissa = bits & ((UINT64_C(1) << F64_MANTISSA_BITS) - 1);
  uint32_t magnitude;
  if (exponent != F64_SPECIAL) {
    magnitude = encode_finite(format, exponent, mantissa);
  } else if (mantissa == 0) {
    magnitude = format->overflow;
  } else {
    magnitude = format->nan;
    if (format->has_inf) {
      unsigned shift = F64_MANTISSA_BITS - format->mantissa_bits;
      magnitude |= (uint32_t)(mantissa >> shift);
    }
  }
  if (format->unsigned_zero && (magnitude == 0 || magnitude == format->nan)) {
    sign = 0;
  }
  return sign | magnitude;
}

static double decode_nan(uint64_t sign, uint64_t payload) {
  return double_of(sign << 63 | UINT64_C(0x7ff8000000000000) | payload);
}

static double decode(const format_t* format, uint32_t bits) {
  if (format->unsigned_zero && bits == format->nan) return decode_nan(0, 0);
  uint64_t sign = bits >> format->sign_shift & 1;
  uint32_t magnitude = bits & ((1u << format->sign_shift) - 1);
  uint32_t mantissa = magnitude & ((1u << format->mantissa_bits) - 1);
  if (magnitude > format->max) {
    if (format->has_inf && magnitude == format->overflow) {
      return double_of(sign << 63 | UINT64_C(0x7ff0000000000000));
    }
    return decode_nan(sign, (uint64_t)mantissa
                                << (F64_MANTISSA_BITS - format->mantissa_bits));
  }
  int field = (int)(magnitude >> format->mantissa_bits);
  if (field == 0) {
    field = 1;
  } else {
    mantissa |= 1u << format->mantissa_bits;
  }
  int exponent = field - format->bias - (int)format->mantissa_bits;
  double scale =
      double_of((uint64_t)(exponent + F64_BIAS) << F64_MANTISSA_BITS);
  double value = mantissa * scale;  // exact
  return sign ? -value : value;
}

uint16_t pestle_f16_from_f32(float value) {
  return (uint16_t)encode(&f16, (double)value);
}
uint16_t pestle_bf16_from_f32(float value) {
  return (uint16_t)encode(&bf16, (double)value);
}
uint8_t pestle_f8e4m3fn_from_f32(float value) {
  return (uint8_t)encode(&e4m3fn, (double)value);
}
uint8_t pestle_f8e5m2_from_f32(float value) {
  return (uint8_t)encode(&e5m2, (double)value);
}
uint8_t pestle_f8e4m3fnuz_from_f32(float value) {
  return (uint8_t)encode(&e4m3fnuz, (double)value);
}
uint8_t pestle_f8e5m2fnuz_from_f32(float value) {
  return (uint8_t)encode(&e5m2fnuz, (double)value);
}

float pestle_f16_to_f32(uint16_t bits) {
  return (float)decode(&f16, bits);
}
float pestle_bf16_to_f32(uint16_t bits) {
  return (float)decode(&bf16, bits);
}
float pestle_f8e4m3fn_to_f32(uint8_t bits) {
  return (float)decode(&e4m3fn, bits);
}
float pestle_f8e5m2_to_f32(uint8_t bits) {
  return (float)decode(&e5m2, bits);
}
float pestle_f8e4m3fnuz_to_f32(uint8_t bits) {
  return (float)decode(&e4m3fnuz, bits);
}
float pestle_f8e5m2fnuz_to_f32(uint8_t bits) {
  return (float)decode(&e5m2fnuz, bits);
}

// NULL for F32, F64 and what is no float.
static const format_t* format_of(pestle_dtype_t dtype) {
  switch (dtype) {
    case PESTLE_F16:
      return &f16;
    case PESTLE_BF16:
      return &bf16;
    case PESTLE_F8E4M3FN:
      return &e4m3fn;
    case PESTLE_F8E5M2:
      return &e5m2;
    case PESTLE_F8E4M3FNUZ:
      return &e4m3fnuz;
    case PESTLE_F8E5M2FNUZ:
      return &e5m2fnuz;
    case PESTLE_NONE:
    case PESTLE_I1:
    case PESTLE_I4:
    case PESTLE_I8:
    case PESTLE_I16:
    case PESTLE_I32:
    case PESTLE_I64:
    case PESTLE_U4:
    case PESTLE_U8:
    case PESTLE_U16:
    case PESTLE_U32:
    case PESTLE_U64:
    case PESTLE_F32:
    case PESTLE_F64:
    case PESTLE_C64:
    case PESTLE_C128:
    case PESTLE_INDEX:
    case PESTLE_ADDR:
    case PESTLE_MBAR:
    case PESTLE_DTYPE_COUNT:
      return NULL;
  }
  return NULL;
}

uint64_t pestle_float_encode(pestle_dtype_t dtype, double value) {
  const format_t* format = format_of(dtype);
  if (format) return encode(format, value);
  if (dtype == PESTLE_F64) return bits_of(value);
  if (dtype != PESTLE_F32) return 0;
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof(bits));
  return bits;
}

double pestle_float_decode(pestle_dtype_t dtype, uint64_t bits) {
  const format_t* format = format_of(dtype);
  if (format) return decode(format, (uint32_t)bits);
  if (dtype == PESTLE_F64) return double_of(bits);
  if (dtype != PESTLE_F32) return 0;
  uint32_t narrow_bits = (uint32_t)bits;
  float narrow;
  memcpy(&narrow, &narrow_bits, sizeof(narrow));
  return (double)narrow;
}

double pestle_float_round(pestle_dtype_t dtype, double value) {
  return pestle_float_decode(dtype, pestle_float_encode(dtype, value));
}
