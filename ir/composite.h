// SPDX-License-Identifier: Apache-2.0
// Decompositions, one pestle_decompose_<op>() for each COMPOSITE row, and the
// small language that they are written in. A step that fails is remembered and
// the steps after it do nothing, so a decomposition reads as its formula.
//
// Floats narrower than f32 are computed in f32 and rounded once at the end: a
// composite is one op, and each op rounds its result once.
#ifndef PESTLE_IR_COMPOSITE_H_
#define PESTLE_IR_COMPOSITE_H_

#include "ir/internal.h"

typedef struct pestle_steps_t {
  const pestle_node_t* node;
  pestle_builder_t builder;
  pestle_dtype_t compute;  // f32, or f64 for f64
  pestle_type_t shape;     // of operand 0, with |compute|
  pestle_status_t status;
  // Results behind the first, which the decomposition returns.
  pestle_value_t* more[PESTLE_COMPOSITE_MAX_RESULTS - 1];
} pestle_steps_t;

typedef pestle_value_t pv_t;

// One scalar op on operands of one shape.
pv_t* pestle_step1(pestle_steps_t* s, pestle_op_t op, pv_t* a);
pv_t* pestle_step2(pestle_steps_t* s, pestle_op_t op, pv_t* a, pv_t* b);
pv_t* pestle_step3(pestle_steps_t* s, pestle_op_t op, pv_t* a, pv_t* b,
                   pv_t* c);
// Any op of one result on |count| operands; |type| is that of a TYPED op.
pv_t* pestle_step_typed(pestle_steps_t* s, pestle_op_t op, pv_t** operands,
                        size_t count, const pestle_type_t* type);
// A constant of the type of |like| with one value everywhere.
pv_t* pestle_step_splat(pestle_steps_t* s, pv_t* like, double value);
// |a| + |term|, |a| * |factor|, and |yes| where |which| holds, else |no|.
pv_t* pestle_step_plus(pestle_steps_t* s, pv_t* a, double term);
pv_t* pestle_step_times(pestle_steps_t* s, pv_t* a, double factor);
pv_t* pestle_step_select(pestle_steps_t* s, pv_t* which, pv_t* yes, pv_t* no);
// Whether |a| is 0 or -0.
pv_t* pestle_step_is_zero(pestle_steps_t* s, pv_t* a);
// The size of |a| with the sign of |b|, f32 or f64, of zeros and NaNs too.
pv_t* pestle_step_copy_sign(pestle_steps_t* s, pv_t* a, pv_t* b);
// Operand |index| converted to |dtype|.
pv_t* pestle_step_operand(pestle_steps_t* s, size_t index,
                          pestle_dtype_t dtype);
pv_t* pestle_step_convert(pestle_steps_t* s, pv_t* a, pestle_dtype_t dtype);
// |op| folded over the axes |dimensions| of |a|, from |initial| on.
pv_t* pestle_step_reduce(pestle_steps_t* s, pestle_op_t op, pv_t* a,
                         pestle_i64s_t dimensions, double initial);
// The same from a value of rank 0.
pv_t* pestle_step_fold(pestle_steps_t* s, pestle_op_t op, pv_t* a,
                       pestle_i64s_t dimensions, pv_t* initial);
// |a| in the shape of operand 0: its axis i becomes axis axes.data[i].
pv_t* pestle_step_broadcast(pestle_steps_t* s, pv_t* a, pestle_i64s_t axes);
// The same for what was reduced over |dimensions|.
pv_t* pestle_step_spread(pestle_steps_t* s, pv_t* a, pestle_i64s_t dimensions);
// a x b of |type|, [batch.., m, n]: b lies as [batch.., n, k], or [batch.., k, n].
pv_t* pestle_step_dot(pestle_steps_t* s, pv_t* a, pv_t* b, bool contract_last,
                      const pestle_type_t* type);

// --- Of composite_view.c ---

// Any op of one result; |type| for a TYPED one, else NULL. Constant data is
// shared with the module.
pv_t* pestle_step_make(pestle_steps_t* s, pestle_op_t op, pv_t* const* operands,
                       size_t count, const pestle_attr_t* attrs,
                       size_t attr_count, const pestle_type_t* type);
pv_t* pestle_step_reshape(pestle_steps_t* s, pv_t* a, int32_t rank,
                          const int64_t* dims);
pv_t* pestle_step_transpose(pestle_steps_t* s, pv_t* a, const int64_t* order);
// Elements [low, high) of |axis|.
pv_t* pestle_step_slice(pestle_steps_t* s, pv_t* a, int32_t axis, int64_t low,
                        int64_t high);
// Element |at| of |axis|, which is gone.
pv_t* pestle_step_part(pestle_steps_t* s, pv_t* a, int32_t axis, int64_t at);
pv_t* pestle_step_reverse(pestle_steps_t* s, pv_t* a, int64_t axis);
pv_t* pestle_step_concatenate(pestle_steps_t* s, pv_t* const* parts,
                              size_t count, int64_t axis);
// Parts of one type along a new first axis.
pv_t* pestle_step_stack(pestle_steps_t* s, pv_t* const* parts, size_t count);
// |count| zeros behind |axis|.
pv_t* pestle_step_pad_end(pestle_steps_t* s, pv_t* a, int32_t axis,
                          int64_t count);
// Axis i of |a| becomes axis axes.data[i] of |dims|.
pv_t* pestle_step_broadcast_to(pestle_steps_t* s, pv_t* a, int32_t rank,
                               const int64_t* dims, pestle_i64s_t axes);
// Positions along |axis|.
pv_t* pestle_step_iota(pestle_steps_t* s, const pestle_type_t* type,
                       int64_t axis);
// Constants: one number, or bits, everywhere; a number for each element.
pv_t* pestle_step_number(pestle_steps_t* s, const pestle_type_t* type,
                         double value);
pv_t* pestle_step_bits(pestle_steps_t* s, const pestle_type_t* type,
                       uint64_t bits);
pv_t* pestle_step_numbers(pestle_steps_t* s, const pestle_type_t* type,
                          const double* values);

#define PESTLE_ADD(s, a, b) pestle_step2(s, PESTLE_OP_ADD, a, b)
#define PESTLE_SUB(s, a, b) pestle_step2(s, PESTLE_OP_SUBTRACT, a, b)
#define PESTLE_MUL(s, a, b) pestle_step2(s, PESTLE_OP_MULTIPLY, a, b)
#define PESTLE_DIV(s, a, b) pestle_step2(s, PESTLE_OP_DIVIDE, a, b)

// One function for each row of class COMPOSITE, whatever classes there are.
#define PESTLE_ROW_SOURCE(NAME, op)
#define PESTLE_ROW_ELEMENTWISE(NAME, op)
#define PESTLE_ROW_VIEW(NAME, op)
#define PESTLE_ROW_GATHER(NAME, op)
#define PESTLE_ROW_REDUCTION(NAME, op)
#define PESTLE_ROW_WINDOW(NAME, op)
#define PESTLE_ROW_CONTRACTION(NAME, op)
#define PESTLE_ROW_CONTROL(NAME, op)
#define PESTLE_ROW_FUSION(NAME, op)
#define PESTLE_ROW_DIRECT(NAME, op)
#define PESTLE_ROW_COMPOSITE(NAME, op) \
  pv_t* pestle_decompose_##op(pestle_steps_t* s);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
#undef PESTLE_ROW_COMPOSITE

#endif  // PESTLE_IR_COMPOSITE_H_
