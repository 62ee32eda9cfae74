// SPDX-License-Identifier: Apache-2.0
// What accuracy.def states, for those that hold results to it.
#ifndef PESTLE_IR_ACCURACY_H_
#define PESTLE_IR_ACCURACY_H_

#include "pestle/op.h"
#include "pestle/types.h"

// Steps of |dtype|, a float type, that a result of the scalar row |op| may be off.
static inline int pestle_accuracy_steps(pestle_op_t op, pestle_dtype_t dtype) {
  size_t size = pestle_dtype_size(dtype);
  int which = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  switch ((int)op) {
#define PESTLE_ACCURACY(NAME, F8, HALF, F32, F64)    \
  case PESTLE_OP_##NAME: {                           \
    static const int steps[] = {F8, HALF, F32, F64}; \
    return steps[which];                             \
  }
#include "ir/accuracy.def"
  }
  return 0;
}

#endif  // PESTLE_IR_ACCURACY_H_
