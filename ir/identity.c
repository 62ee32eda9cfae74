// SPDX-License-Identifier: Apache-2.0
#include "ir/identity.h"

#include <math.h>

static double identity_float(pestle_op_t op) {
  if (op == PESTLE_OP_ADD) return -0.0;
  if (op == PESTLE_OP_MULTIPLY) return 1.0;
  return op == PESTLE_OP_MAXIMUM ? (double)-INFINITY : (double)INFINITY;
}

static int64_t identity_int(pestle_op_t op, pestle_dtype_t dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  bool is_signed = info->kind == PESTLE_KIND_SIGNED;
  uint64_t ones = info->bits >= 64 ? ~0ull : (1ull << info->bits) - 1;
  uint64_t top = is_signed ? ones >> 1 : ones;
  switch ((int)op) {
    case PESTLE_OP_MULTIPLY:
      return 1;
    case PESTLE_OP_AND:
      return is_signed ? -1 : (int64_t)ones;
    case PESTLE_OP_MINIMUM:
      return (int64_t)top;
    case PESTLE_OP_MAXIMUM:
      return is_signed ? -(int64_t)top - 1 : 0;
    default:
      return 0;  // add, or, xor
  }
}

void pestle_reduce_identity(pestle_op_t op, pestle_dtype_t dtype, double* out_f,
                            int64_t* out_i) {
  bool is_float = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  *out_f = is_float ? identity_float(op) : 0.0;
  *out_i = is_float ? 0 : identity_int(op, dtype);
}
