// SPDX-License-Identifier: Apache-2.0
// The small floating-point formats of PESTLE_FLOAT_FORMATS, converted by
// software: f16, bf16 and those of 8 bits and less. Rounds to nearest even, once,
// from f64 as well as from f32.
//
//            exponent mantissa bias  inf  -0   too large gives  NaN
//   f16          5       10     15   yes  yes  inf
//   bf16         8        7    127   yes  yes  inf
//   e4m3fn       4        3      7   no   yes  NaN              s.1111.111
//   e5m2         5        2     15   yes  yes  inf
//   e4m3fnuz     4        3      8   no   no   NaN              0x80 alone
//   e5m2fnuz     5        2     16   no   no   NaN              0x80 alone
//   e3m4         3        4      3   yes  yes  inf
//   e4m3         4        3      7   yes  yes  inf
//   e4m3b11fnuz  4        3     11   no   no   NaN              0x80 alone
//   e8m0fnu      8        0    127   no   no   NaN              0xff alone
//   e2m1fn       2        1      1   no   yes  6                none
//   e2m3fn       2        3      1   no   yes  7.5              none
//   e3m2fn       3        2      3   no   yes  28               none
//
// e8m0fnu has powers of two alone: zeros and negative numbers are NaN, what is
// below the least becomes the least, and 1.5 * 2^n goes up.
//
// A format without inf takes inf as NaN, one without -0 takes it as 0, as
// StableHLO and ml_dtypes have it. One without NaN takes that as -0 whatever its
// sign, as XLA does, and inf as its largest number. NaNs keep sign and leading
// payload bits where the format has room and come out quiet.
#ifndef PESTLE_BASE_HALF_H_
#define PESTLE_BASE_HALF_H_

#include <stdbool.h>
#include <stdint.h>

#include "pestle/types.h"

uint16_t pestle_f16_from_f32(float value);
uint16_t pestle_bf16_from_f32(float value);
uint8_t pestle_f8e4m3fn_from_f32(float value);
uint8_t pestle_f8e5m2_from_f32(float value);
uint8_t pestle_f8e4m3fnuz_from_f32(float value);
uint8_t pestle_f8e5m2fnuz_from_f32(float value);

float pestle_f16_to_f32(uint16_t bits);
float pestle_bf16_to_f32(uint16_t bits);
float pestle_f8e4m3fn_to_f32(uint8_t bits);
float pestle_f8e5m2_to_f32(uint8_t bits);
float pestle_f8e4m3fnuz_to_f32(uint8_t bits);
float pestle_f8e5m2fnuz_to_f32(uint8_t bits);

// Any float dtype, F32 and F64 among them: the bits of |value| rounded to
// |dtype|, and back. 0 when |dtype| is not of kind FLOAT.
uint64_t pestle_float_encode(pestle_dtype_t dtype, double value);
double pestle_float_decode(pestle_dtype_t dtype, uint64_t bits);
// The largest finite value of a float |dtype|; 0 for other dtypes.
double pestle_float_max(pestle_dtype_t dtype);
// |value| rounded to |dtype| and widened again.
double pestle_float_round(pestle_dtype_t dtype, double value);

#endif  // PESTLE_BASE_HALF_H_
