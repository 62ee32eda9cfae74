// SPDX-License-Identifier: Apache-2.0
// The identity of an associative op: what a reduction begins with.
#ifndef PESTLE_IR_IDENTITY_H_
#define PESTLE_IR_IDENTITY_H_

#include "pestle/op.h"
#include "pestle/types.h"

// The identity of the associative row |op|: |*out_f| of a float dtype,
// else |*out_i|.
void pestle_reduce_identity(pestle_op_t op, pestle_dtype_t dtype, double* out_f,
                            int64_t* out_i);

#endif  // PESTLE_IR_IDENTITY_H_
