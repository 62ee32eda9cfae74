// SPDX-License-Identifier: Apache-2.0
// The table of partial.def as bytes.
#ifndef PESTLE_TRANSFORM_PARTIAL_H_
#define PESTLE_TRANSFORM_PARTIAL_H_

#include <stddef.h>
#include <stdint.h>

#include "pestle/op.h"

// Codes of a formula in postfix order: scalar op codes and these.
enum {
  PESTLE_PARTIAL_OPERAND = 200,  // + index
  PESTLE_PARTIAL_RESULT = 203,
  PESTLE_PARTIAL_NUMBER = 210,  // + index into the numbers
  PESTLE_PARTIAL_ONE = 211,
  PESTLE_PARTIAL_END = 255,
};
// The deepest stack that a formula needs (held by partial_test.c).
#define PESTLE_PARTIAL_DEPTH 12

// The formula of d(result)/d(operand), ended by PESTLE_PARTIAL_END; NULL: the row
// has none.
const uint8_t* pestle_partial_find(pestle_op_t op, size_t operand);
// Number |index| of the formulas.
double pestle_partial_number(size_t index);

#endif  // PESTLE_TRANSFORM_PARTIAL_H_
