// SPDX-License-Identifier: Apache-2.0
// Where sign, exponent and mantissa of a float dtype lie.
#ifndef PESTLE_IR_FLOAT_FORMAT_H_
#define PESTLE_IR_FLOAT_FORMAT_H_

#include <math.h>

#include "base/half.h"

typedef struct pestle_float_format_t {
  pestle_dtype_t bits;  // the unsigned integer of the same width
  int exponent_bits, mantissa_bits;
  uint64_t infinity;  // NaN where the format has none
} pestle_float_format_t;

// Of a dtype of kind FLOAT.
static inline pestle_float_format_t pestle_float_format(pestle_dtype_t dtype) {
  pestle_float_format_t f = {.infinity = pestle_float_encode(dtype, INFINITY)};
  unsigned width = pestle_dtype_info(dtype)->bits;
  f.bits = width == 8    ? PESTLE_U8
           : width == 16 ? PESTLE_U16
           : width == 32 ? PESTLE_U32
                         : PESTLE_U64;
  // 1.5 has the first bit of the mantissa alone.
  uint64_t half =
      pestle_float_encode(dtype, 1.5) ^ pestle_float_encode(dtype, 1);
  for (; half; half >>= 1)
    ++f.mantissa_bits;
  f.exponent_bits = (int)width - 1 - f.mantissa_bits;
  return f;
}

#endif  // PESTLE_IR_FLOAT_FORMAT_H_
