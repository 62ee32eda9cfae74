// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <string.h>

typedef pestle_float_format_t format_t;

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
static uint64_t encode_finite(const format_t* format, int exponent,
                              uint64_t mantissa) {
  // Denormals of f64 are below half of every format's least number.
  if (exponent == 0) return 0;
  mantissa |= UINT64_C(1) << F64_MANTISSA_BITS;
  int field = exponent - F64_BIAS + format->bias;
  unsigned shift = F64_MANTISSA_BITS - (unsigned)format->mantissa_bits;
  if (format->specials == PESTLE_FLOAT_SCALE) {
    // Field 0 is a power of two like any other, and the least number.
    ++field;
    if (field < 1) return 0;
  }
  if (field < 1) {
    shift += (unsigned)(1 - field);
    field = 1;
  }
  // The leading one counts as 1 in the exponent's place: a normal number gets
  // its field back, a denormal 0, and a carry moves on by itself.
  uint64_t magnitude = ((uint64_t)(field - 1) << format->mantissa_bits) +
                       shift_rounded(mantissa, shift);
  if (format->specials == PESTLE_FLOAT_SCALE) --magnitude;
  return magnitude;
}

// What is too large in |format|.
static uint64_t overflow(const format_t* format) {
  bool stays = format->specials == PESTLE_FLOAT_NUMBERS;
  return format->limit - stays;
}

static uint64_t encode(const format_t* format, double value) {
  uint64_t bits = bits_of(value);
  bool negative = bits >> 63;
  uint64_t sign = negative ? format->sign : 0;
  int exponent = (int)(bits >> F64_MANTISSA_BITS & F64_SPECIAL);
  uint64_t mantissa = bits & ((UINT64_C(1) << F64_MANTISSA_BITS) - 1);
  uint64_t magnitude;
  if (format->specials == PESTLE_FLOAT_SCALE && (negative || value == 0)) {
    return format->nan;
  }
  if (exponent != F64_SPECIAL) {
    magnitude = encode_finite(format, exponent, mantissa);
    if (magnitude >= format->limit) magnitude = overflow(format);
  } else if (mantissa == 0) {
    magnitude = overflow(format);
  } else {
    magnitude = format->nan;
    if (format->specials == PESTLE_FLOAT_IEEE) {
      unsigned shift = F64_MANTISSA_BITS - (unsigned)format->mantissa_bits;
      magnitude |= mantissa >> shift;
    }
  }
  if (format->specials == PESTLE_FLOAT_UNSIGNED &&
      (magnitude == 0 || magnitude == format->nan)) {
    sign = 0;
  }
  return sign | magnitude;
}

static double decode_nan(uint64_t sign, uint64_t payload) {
  return double_of(sign << 63 | UINT64_C(0x7ff8000000000000) | payload);
}

static double decode(const format_t* format, uint64_t bits) {
  uint64_t all = (format->sign ? format->sign << 1 : format->limit + 1) - 1;
  bits &= all;
  bool none = format->specials == PESTLE_FLOAT_UNSIGNED;
  if (none && bits == format->nan) return decode_nan(0, 0);
  uint64_t sign = (bits & format->sign) != 0;
  uint64_t magnitude = bits & ~format->sign;
  uint64_t mantissa = magnitude & ((UINT64_C(1) << format->mantissa_bits) - 1);
  if (magnitude >= format->limit) {
    if (format->specials == PESTLE_FLOAT_IEEE && magnitude == format->limit) {
      return double_of(sign << 63 | UINT64_C(0x7ff0000000000000));
    }
    return decode_nan(sign,
                      mantissa << (F64_MANTISSA_BITS - format->mantissa_bits));
  }
  int field = (int)(magnitude >> format->mantissa_bits);
  if (field == 0 && format->specials != PESTLE_FLOAT_SCALE) {
    field = 1;
  } else {
    mantissa |= UINT64_C(1) << format->mantissa_bits;
  }
  int exponent = field - format->bias - format->mantissa_bits;
  double scale =
      double_of((uint64_t)(exponent + F64_BIAS) << F64_MANTISSA_BITS);
  double value = (double)mantissa * scale;  // exact
  return sign ? -value : value;
}

uint16_t pestle_f16_from_f32(float value) {
  return (uint16_t)encode(pestle_float_format(PESTLE_F16), (double)value);
}
uint16_t pestle_bf16_from_f32(float value) {
  return (uint16_t)encode(pestle_float_format(PESTLE_BF16), (double)value);
}
uint8_t pestle_f8e4m3fn_from_f32(float value) {
  return (uint8_t)encode(pestle_float_format(PESTLE_F8E4M3FN), (double)value);
}
uint8_t pestle_f8e5m2_from_f32(float value) {
  return (uint8_t)encode(pestle_float_format(PESTLE_F8E5M2), (double)value);
}
uint8_t pestle_f8e4m3fnuz_from_f32(float value) {
  return (uint8_t)encode(pestle_float_format(PESTLE_F8E4M3FNUZ), (double)value);
}
uint8_t pestle_f8e5m2fnuz_from_f32(float value) {
  return (uint8_t)encode(pestle_float_format(PESTLE_F8E5M2FNUZ), (double)value);
}

float pestle_f16_to_f32(uint16_t bits) {
  return (float)decode(pestle_float_format(PESTLE_F16), bits);
}
float pestle_bf16_to_f32(uint16_t bits) {
  return (float)decode(pestle_float_format(PESTLE_BF16), bits);
}
float pestle_f8e4m3fn_to_f32(uint8_t bits) {
  return (float)decode(pestle_float_format(PESTLE_F8E4M3FN), bits);
}
float pestle_f8e5m2_to_f32(uint8_t bits) {
  return (float)decode(pestle_float_format(PESTLE_F8E5M2), bits);
}
float pestle_f8e4m3fnuz_to_f32(uint8_t bits) {
  return (float)decode(pestle_float_format(PESTLE_F8E4M3FNUZ), bits);
}
float pestle_f8e5m2fnuz_to_f32(uint8_t bits) {
  return (float)decode(pestle_float_format(PESTLE_F8E5M2FNUZ), bits);
}

// NULL for F32, F64 and what is no float.
static const format_t* format_of(pestle_dtype_t dtype) {
  if (dtype == PESTLE_F32 || dtype == PESTLE_F64) return NULL;
  return pestle_float_format(dtype);
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
  if (format) return decode(format, bits);
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

double pestle_float_max(pestle_dtype_t dtype) {
  const format_t* format = pestle_float_format(dtype);
  return format ? pestle_float_decode(dtype, format->limit - 1) : 0;
}
