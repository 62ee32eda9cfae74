// SPDX-License-Identifier: Apache-2.0
// A constant's value in the bits of any float dtype, rounded to nearest even
// once, from f64.
#ifndef PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_
#define PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_

#include <string.h>

#include "pestle/types.h"

// A format of at most 16 bits.
static inline uint64_t pestle_plugin_round_bits(const pestle_float_format_t* f,
                                                double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bool scale_only = f->specials == PESTLE_FLOAT_SCALE;
  bool unsigned_zero = f->specials == PESTLE_FLOAT_UNSIGNED;
  uint64_t sign = bits >> 63 ? f->sign : 0;
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  uint64_t nan = unsigned_zero ? f->nan : sign | f->nan;
  uint64_t large = f->specials == PESTLE_FLOAT_IEEE      ? sign | f->limit
                   : f->specials == PESTLE_FLOAT_NUMBERS ? sign | (f->limit - 1)
                                                         : nan;
  if (scale_only && (bits >> 63 || value == 0)) return nan;
  if (exponent == 0x7ff) return mantissa ? nan : large;
  uint64_t result = 0;
  int scale = exponent - 1023 + f->bias;  // biased exponent in the format
  if (scale_only) {
    // Field 0 is no denormal. Half of a power of two goes up.
    uint64_t up = mantissa >> 51;
    if (exponent && scale >= 0) result = (uint64_t)scale + up;
  } else if (exponent && scale >= -f->mantissa_bits - 1) {
    mantissa |= UINT64_C(1) << 52;
    int shift = 52 - f->mantissa_bits + (scale < 1 ? 1 - scale : 0);
    uint64_t kept = mantissa >> shift, rest = mantissa - (kept << shift);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // The hidden bit and a carry both step the exponent.
    result = kept;
    if (scale > 1) result += (uint64_t)(scale - 1) << f->mantissa_bits;
  }
  if (result >= f->limit) return large;
  return result || !unsigned_zero ? sign | result : 0;
}

// |value| in |dtype|'s bits; 0 when it is no float.
static inline uint64_t pestle_plugin_float_bits(pestle_dtype_t dtype,
                                                double value) {
  const pestle_float_format_t* format = pestle_float_format(dtype);
  uint64_t bits = 0;
  float narrow = (float)value;
  if (dtype == PESTLE_F64) {
    memcpy(&bits, &value, sizeof value);
  } else if (dtype == PESTLE_F32) {
    memcpy(&bits, &narrow, sizeof narrow);
  } else if (format) {
    bits = pestle_plugin_round_bits(format, value);
  }
  return bits;
}

#endif  // PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_
