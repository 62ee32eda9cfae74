// SPDX-License-Identifier: Apache-2.0
// The graph builder of Pestle's own code: each op is an expression of values, so
// what is built reads as its formula.
//
//   pestle_formula_t f = pestle_formula_make(builder);
//   pestle_value_t* y = pestle_f_logistic(&f, x);
//   y = pestle_f_multiply(&f, x, y);
//   return f.status;
//
// A failure is kept in |status|: that step and those after it give NULL and do
// nothing, and so does every step with a NULL operand. Values are borrowed from
// the module. C fixes no order for the arguments of a call: of the arguments of
// one call at most one may be a step.
#ifndef PESTLE_IR_FORMULA_H_
#define PESTLE_IR_FORMULA_H_

#include "ir/graph.h"

typedef struct pestle_decomposition_t pestle_decomposition_t;

typedef struct pestle_formula_t pestle_formula_t;

// What a front end that evaluates and broadcasts as it emits does in place of
// making an op. Each gives NULL or false on failure, which it keeps.
typedef struct pestle_formula_hooks_t {
  // The one result of an op, which need not be made.
  pestle_value_t* (*emit)(pestle_formula_t* f, const pestle_node_spec_t* spec);
  pestle_node_t* (*node)(pestle_formula_t* f, const pestle_node_spec_t* spec);
  // Gives the operands of a binary op or of a select one shape.
  bool (*broadcast)(pestle_formula_t* f, pestle_value_t** operands,
                    size_t count);
} pestle_formula_hooks_t;

struct pestle_formula_t {
  pestle_builder_t builder;  // where the ops go
  pestle_status_t status;    // the first failure; whoever reads it last owns it
  pestle_dtype_t compute;    // of a formula that rounds once, at its end
  pestle_decomposition_t* of;  // what is decomposed (composite.h), or NULL
  const pestle_formula_hooks_t* hooks;  // or NULL
};

static inline pestle_formula_t pestle_formula_make(pestle_builder_t builder) {
  return (pestle_formula_t){.builder = builder};
}
// Ops that go before |node|, at its place in the source.
static inline pestle_formula_t pestle_formula_before(pestle_node_t* node) {
  return pestle_formula_make(pestle_builder_before(node));
}
// Keeps |status| unless there is one already; NULL.
pestle_value_t* pestle_f_fail(pestle_formula_t* f, pestle_status_t status);
// |size| bytes, as data of constants lies, which the module keeps; NULL on
// failure.
void* pestle_f_memory(pestle_formula_t* f, size_t size);

// --- Any op ---

// The one result of an op. |spec| is read during the call only.
pestle_value_t* pestle_f_emit(pestle_formula_t* f,
                              const pestle_node_spec_t* spec);
// An op of any number of results.
pestle_node_t* pestle_f_node(pestle_formula_t* f,
                             const pestle_node_spec_t* spec);
// One result; |type| for a TYPED op, else NULL. The data of constants is shared
// with the module, which must keep it.
pestle_value_t* pestle_f_make(pestle_formula_t* f, pestle_op_t op,
                              pestle_value_t* const* operands, size_t count,
                              const pestle_attr_t* attrs, size_t attr_count,
                              const pestle_type_t* type);
// The same without attributes; |type| is that of a TYPED op.
pestle_value_t* pestle_f_typed(pestle_formula_t* f, pestle_op_t op,
                               pestle_value_t* const* operands, size_t count,
                               const pestle_type_t* type);

// The op and attributes of |node| on as many |operands|.
pestle_value_t* pestle_f_like(pestle_formula_t* f, const pestle_node_t* node,
                              pestle_value_t* const* operands,
                              const pestle_type_t* type);

// --- Elementwise ---

pestle_value_t* pestle_f_unary(pestle_formula_t* f, pestle_op_t op,
                               pestle_value_t* a);
pestle_value_t* pestle_f_binary(pestle_formula_t* f, pestle_op_t op,
                                pestle_value_t* a, pestle_value_t* b);
pestle_value_t* pestle_f_ternary(pestle_formula_t* f, pestle_op_t op,
                                 pestle_value_t* a, pestle_value_t* b,
                                 pestle_value_t* c);

// pestle_f_add(f, a, b), pestle_f_exponential(f, a), ...: one for each row of scalar.def.
#define PESTLE_F_CALL_1(OP) pestle_f_unary(f, OP, a)
#define PESTLE_F_CALL_2(OP) pestle_f_binary(f, OP, a, b)
#define PESTLE_F_CALL_3(OP) pestle_f_ternary(f, OP, a, b, c)
#define PESTLE_SCALAR(NAME, op, mlir, n, ...)    \
  static inline pestle_value_t* pestle_f_##op(   \
      pestle_formula_t* f PESTLE_OPERANDS_##n) { \
    return PESTLE_F_CALL_##n(PESTLE_OP_##NAME);  \
  }
#include "pestle/scalar.def"

// |a| + |term|, |a| * |factor|.
pestle_value_t* pestle_f_plus(pestle_formula_t* f, pestle_value_t* a,
                              double term);
pestle_value_t* pestle_f_times(pestle_formula_t* f, pestle_value_t* a,
                               double factor);
// Whether |a| is 0 or -0.
pestle_value_t* pestle_f_is_zero(pestle_formula_t* f, pestle_value_t* a);
// The size of |a| with the sign of |b|, f32 or f64, of zeros and NaNs too.
pestle_value_t* pestle_f_copy_sign(pestle_formula_t* f, pestle_value_t* a,
                                   pestle_value_t* b);
// |a| itself if it has |dtype|.
pestle_value_t* pestle_f_convert(pestle_formula_t* f, pestle_value_t* a,
                                 pestle_dtype_t dtype);
// The bits of |a| as numbers of |dtype|, which has the same width.
pestle_value_t* pestle_f_bitcast(pestle_formula_t* f, pestle_value_t* a,
                                 pestle_dtype_t dtype);

// --- Constants ---

// |value| everywhere in |type|, rounded to its dtype; in the type of |like|; of
// rank 0.
pestle_value_t* pestle_f_number(pestle_formula_t* f, const pestle_type_t* type,
                                double value);
pestle_value_t* pestle_f_splat(pestle_formula_t* f, const pestle_value_t* like,
                               double value);
pestle_value_t* pestle_f_scalar(pestle_formula_t* f, pestle_dtype_t dtype,
                                double value);
// The element whose bits are the lower ones of |bits| everywhere.
pestle_value_t* pestle_f_bits(pestle_formula_t* f, const pestle_type_t* type,
                              uint64_t bits);
// A number for each element.
pestle_value_t* pestle_f_numbers(pestle_formula_t* f, const pestle_type_t* type,
                                 const double* values);
// Data that the module keeps, unless it is a splat.
pestle_value_t* pestle_f_elements(pestle_formula_t* f,
                                  const pestle_elements_t* elements);
// The element that |op|, one of those pestle_block_reduce_op() tells, leaves every
// other as it is with; rank 0.
pestle_value_t* pestle_f_identity(pestle_formula_t* f, pestle_op_t op,
                                  pestle_dtype_t dtype);
// Positions along |axis|.
pestle_value_t* pestle_f_iota(pestle_formula_t* f, const pestle_type_t* type,
                              int64_t axis);

// --- Moving. What changes nothing gives |a| itself ---

pestle_value_t* pestle_f_reshape(pestle_formula_t* f, pestle_value_t* a,
                                 int32_t rank, const int64_t* dims);
// Rank and dims of |type|; its dtype is not looked at.
pestle_value_t* pestle_f_reshape_to(pestle_formula_t* f, pestle_value_t* a,
                                    const pestle_type_t* type);
pestle_value_t* pestle_f_transpose(pestle_formula_t* f, pestle_value_t* a,
                                   const int64_t* order);
// Matrices, or batches of them, transposed: the last two axes change places.
pestle_value_t* pestle_f_transpose_matrix(pestle_formula_t* f,
                                          pestle_value_t* a);
// Axis i of |a| becomes axis axes.data[i] of |dims|.
pestle_value_t* pestle_f_broadcast(pestle_formula_t* f, pestle_value_t* a,
                                   int32_t rank, const int64_t* dims,
                                   pestle_i64s_t axes);
// The same to the dims of |type|; |axes| has a place for each axis of |a|.
pestle_value_t* pestle_f_broadcast_to(pestle_formula_t* f, pestle_value_t* a,
                                      const pestle_type_t* type,
                                      const int64_t* axes);
// Every strides[i]-th element of [starts[i], limits[i]) of each axis; NULL
// |strides| are ones.
pestle_value_t* pestle_f_slice(pestle_formula_t* f, pestle_value_t* a,
                               const int64_t* starts, const int64_t* limits,
                               const int64_t* strides);
// Elements [low, high) of |axis|.
pestle_value_t* pestle_f_slice_axis(pestle_formula_t* f, pestle_value_t* a,
                                    int32_t axis, int64_t low, int64_t high);
// Element |at| of |axis|, which is gone.
pestle_value_t* pestle_f_part(pestle_formula_t* f, pestle_value_t* a,
                              int32_t axis, int64_t at);
// Element |at|, of rank 0 and any integer, of |a| along |axis|, which is gone; |a| with
// |element| there.
pestle_value_t* pestle_f_element_at(pestle_formula_t* f, pestle_value_t* a,
                                    int32_t axis, pestle_value_t* at);
pestle_value_t* pestle_f_with_element(pestle_formula_t* f, pestle_value_t* a,
                                      int32_t axis, pestle_value_t* at,
                                      pestle_value_t* element);
pestle_value_t* pestle_f_reverse(pestle_formula_t* f, pestle_value_t* a,
                                 pestle_i64s_t axes);
pestle_value_t* pestle_f_concatenate(pestle_formula_t* f,
                                     pestle_value_t* const* parts, size_t count,
                                     int64_t axis);
// Parts of one type along a new first axis.
pestle_value_t* pestle_f_stack(pestle_formula_t* f,
                               pestle_value_t* const* parts, size_t count);
// |value| in front of, behind and between the elements of each axis; NULL lists
// are zeros.
pestle_value_t* pestle_f_pad(pestle_formula_t* f, pestle_value_t* a,
                             pestle_value_t* value, const int64_t* low,
                             const int64_t* high, const int64_t* between);
// |count| zeros behind |axis|.
pestle_value_t* pestle_f_pad_end(pestle_formula_t* f, pestle_value_t* a,
                                 int32_t axis, int64_t count);

// --- Reductions and products ---

// (a, b) -> op(a, b) on rank 0, b for PESTLE_OP_COUNT; NULL on failure.
pestle_region_t* pestle_f_region(pestle_formula_t* f, pestle_op_t op,
                                 pestle_dtype_t dtype);
// |a| reduced by |op| over the axes |dimensions|, from a number or a value of
// rank 0 on.
pestle_value_t* pestle_f_reduce(pestle_formula_t* f, pestle_op_t op,
                                pestle_value_t* a, pestle_i64s_t dimensions,
                                double initial);
pestle_value_t* pestle_f_reduce_from(pestle_formula_t* f, pestle_op_t op,
                                     pestle_value_t* a,
                                     pestle_i64s_t dimensions,
                                     pestle_value_t* initial);
// What REDUCE_WINDOW says of each axis; pestle_windows_init() makes windows of
// one element, each at its own place.
typedef struct pestle_windows_t {
  int64_t sizes[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
  int64_t base_dilations[PESTLE_MAX_RANK], dilations[PESTLE_MAX_RANK];
  int64_t padding[2 * PESTLE_MAX_RANK];  // low, high an axis
} pestle_windows_t;
void pestle_windows_init(pestle_windows_t* out_windows);
pestle_value_t* pestle_f_reduce_windows(pestle_formula_t* f, pestle_op_t op,
                                        pestle_value_t* a,
                                        pestle_value_t* initial,
                                        const pestle_windows_t* windows);
// a x b of |type|, [batch.., m, n]: b lies as [batch.., n, k], or [batch.., k, n].
pestle_value_t* pestle_f_dot(pestle_formula_t* f, pestle_value_t* a,
                             pestle_value_t* b, bool contract_last,
                             const pestle_type_t* type);
// The same by the algorithm of the dot_general |like|, if that is not NULL.
pestle_value_t* pestle_f_dot_as(pestle_formula_t* f, pestle_value_t* a,
                                pestle_value_t* b, bool contract_last,
                                const pestle_type_t* type,
                                const pestle_node_t* like);

// --- Attributes as values ---

#define PESTLE_SET_I64S(NAME, ptr, n)             \
  ((pestle_attr_t){.name = PESTLE_ATTR_##NAME,    \
                   .kind = PESTLE_ATTR_KIND_I64S, \
                   .as.i64s = {(ptr), (size_t)(n)}})
#define PESTLE_SET_I64(NAME, value)              \
  ((pestle_attr_t){.name = PESTLE_ATTR_##NAME,   \
                   .kind = PESTLE_ATTR_KIND_I64, \
                   .as.i64 = (value)})
#define PESTLE_SET_F64(NAME, value)              \
  ((pestle_attr_t){.name = PESTLE_ATTR_##NAME,   \
                   .kind = PESTLE_ATTR_KIND_F64, \
                   .as.f64 = (value)})
#define PESTLE_SET_BOOL(NAME, value)              \
  ((pestle_attr_t){.name = PESTLE_ATTR_##NAME,    \
                   .kind = PESTLE_ATTR_KIND_BOOL, \
                   .as.b = (value)})
#define PESTLE_SET_STR(NAME, value)              \
  ((pestle_attr_t){.name = PESTLE_ATTR_##NAME,   \
                   .kind = PESTLE_ATTR_KIND_STR, \
                   .as.str = (value)})

#endif  // PESTLE_IR_FORMULA_H_
