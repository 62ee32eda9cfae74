// SPDX-License-Identifier: Apache-2.0
// A constant's value in the bits of any float dtype, rounded to nearest even
// once, from f64.
#ifndef PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_
#define PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_

#include <string.h>

#include "pestle/types.h"

// A format of at most 16 bits. |limit|: the first magnitude that is too large,
// which is inf where the format has one and NaN where it has none.
typedef struct pestle_plugin_format_t {
  int mantissa, bias;
  uint32_t sign, nan, limit;
  bool unsigned_zero;  // no -0: its pattern is the NaN
} pestle_plugin_format_t;

static inline uint64_t pestle_plugin_round_bits(const pestle_plugin_format_t* f,
                                                double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 63 ? f->sign : 0;
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  uint32_t nan = f->unsigned_zero ? f->nan : sign | f->nan;
  if (exponent == 0x7ff) {
    bool inf = !mantissa && f->limit != f->nan && !f->unsigned_zero;
    return inf ? sign | f->limit : nan;
  }
  uint64_t result = 0;
  int scale = exponent - 1023 + f->bias;  // biased exponent in the format
  if (exponent && scale >= -f->mantissa - 1) {
    mantissa |= UINT64_C(1) << 52;
    int shift = 52 - f->mantissa + (scale < 1 ? 1 - scale : 0);
    uint64_t kept = mantissa >> shift, rest = mantissa - (kept << shift);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // The hidden bit and a carry both step the exponent.
    result = kept;
    if (scale > 1) result += (uint64_t)(scale - 1) << f->mantissa;
  }
  if (result >= f->limit) {
    return f->limit == f->nan || f->unsigned_zero ? nan : sign | f->limit;
  }
  return result || !f->unsigned_zero ? sign | (uint32_t)result : 0;
}

// |value| in |dtype|'s bits; 0 when it is no float.
static inline uint64_t pestle_plugin_float_bits(pestle_dtype_t dtype,
                                                double value) {
  static const pestle_plugin_format_t f16 = {10,     15,     0x8000,
                                             0x7e00, 0x7c00, false};
  static const pestle_plugin_format_t bf16 = {7,      127,    0x8000,
                                              0x7fc0, 0x7f80, false};
  static const pestle_plugin_format_t e4m3fn = {3, 7, 0x80, 0x7f, 0x7f, false};
  static const pestle_plugin_format_t e5m2 = {2, 15, 0x80, 0x7e, 0x7c, false};
  static const pestle_plugin_format_t e4m3fnuz = {3, 8, 0x80, 0x80, 0x80, true};
  static const pestle_plugin_format_t e5m2fnuz = {2,    16,   0x80,
                                                  0x80, 0x80, true};
  uint64_t bits = 0;
  float narrow = (float)value;
  if (dtype == PESTLE_F64) memcpy(&bits, &value, sizeof value);
  if (dtype == PESTLE_F32) memcpy(&bits, &narrow, sizeof narrow);
  if (dtype == PESTLE_F16) return pestle_plugin_round_bits(&f16, value);
  if (dtype == PESTLE_BF16) return pestle_plugin_round_bits(&bf16, value);
  if (dtype == PESTLE_F8E4M3FN) return pestle_plugin_round_bits(&e4m3fn, value);
  if (dtype == PESTLE_F8E5M2) return pestle_plugin_round_bits(&e5m2, value);
  if (dtype == PESTLE_F8E4M3FNUZ) {
    return pestle_plugin_round_bits(&e4m3fnuz, value);
  }
  if (dtype == PESTLE_F8E5M2FNUZ) {
    return pestle_plugin_round_bits(&e5m2fnuz, value);
  }
  return bits;
}

#endif  // PESTLE_PLUGINS_COMMON_FLOAT_BITS_H_
