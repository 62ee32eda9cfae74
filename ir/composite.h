// SPDX-License-Identifier: Apache-2.0
// Decompositions: one pestle_decompose_<op>() for each COMPOSITE row, a formula
// (formula.h) before the op whose results take the place of the op's.
//
// Floats narrower than f32 are computed in f32 and rounded once at the end: a
// composite is one op, and each op rounds its result once.
#ifndef PESTLE_IR_COMPOSITE_H_
#define PESTLE_IR_COMPOSITE_H_

#include "ir/formula.h"
#include "ir/internal.h"

// What is decomposed.
struct pestle_decomposition_t {
  const pestle_node_t* node;
  pestle_type_t shape;  // of operand 0, with the formula's |compute|: f32, or
                        // f64 for f64
  // Results behind the first, which the decomposition returns.
  pestle_value_t* more[PESTLE_COMPOSITE_MAX_RESULTS - 1];
};

typedef pestle_value_t pv_t;

// Operand |index| converted to |dtype|.
pv_t* pestle_f_operand(pestle_formula_t* f, size_t index, pestle_dtype_t dtype);
// The weights [n, k] of |node|, a block_dot, of its packed bytes, scales and, where it has
// them, zero points: |operands|.
pv_t* pestle_f_block_weights(pestle_formula_t* f, const pestle_node_t* node,
                             pv_t* const* operands, pestle_dtype_t compute);
// |a| in the shape of operand 0: its axis i becomes axis axes.data[i].
pv_t* pestle_f_to_shape(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes);
// The same for what was reduced over |dimensions|.
pv_t* pestle_f_spread(pestle_formula_t* f, pv_t* a, pestle_i64s_t dimensions);

// Threefry-2x32 with 20 rounds of the counters |x|, words in one shape with |key|.
void pestle_threefry(pestle_formula_t* f, pv_t* x[2], pv_t* const key[2]);

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
#define PESTLE_ROW_COLLECTIVE(NAME, op)
#define PESTLE_ROW_COMPOSITE(NAME, op) \
  pv_t* pestle_decompose_##op(pestle_formula_t* f);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
#undef PESTLE_ROW_COMPOSITE

#endif  // PESTLE_IR_COMPOSITE_H_
