// SPDX-License-Identifier: Apache-2.0
// Emitting ops on behalf of an ONNX node: the formula of its call (ir/formula.h),
// and here what ONNX has beyond it. Every function takes NULL operands (an
// earlier error) and then returns NULL. Ops on constants are evaluated at once
// when the result is small or no larger than what it is made from (fold.c).
#ifndef PESTLE_FRONTEND_ONNX_EMIT_H_
#define PESTLE_FRONTEND_ONNX_EMIT_H_

#include "frontend/onnx/importer.h"

// The longest list of indices or weights that an importer makes up itself, so
// that a number in a damaged file does not decide how much memory is asked for.
#define PESTLE_ONNX_MAX_INDICES ((int64_t)1 << 22)

// The type of |value|; a scalar f32 for NULL, so that shapes may be read before
// errors are looked at.
const pestle_type_t* pestle_onnx_type(const pestle_value_t* value);
static inline int32_t rank_of(const pestle_value_t* value) {
  return pestle_onnx_type(value)->rank;
}
static inline pestle_dtype_t dtype_of(const pestle_value_t* value) {
  return pestle_onnx_type(value)->dtype;
}
// Extent of |axis|; 1 for an axis that is not there.
int64_t pestle_onnx_dim(const pestle_value_t* value, int64_t axis);
// Product of the extents of axes [begin, end).
int64_t pestle_onnx_dims_product(const pestle_value_t* value, int64_t begin,
                                 int64_t end);

// The hooks of a call's formula (fold.c): ops on constants are evaluated, operands
// broadcast by numpy's rule.
extern const pestle_formula_hooks_t pestle_onnx_hooks;

// --- Constants (constant.c) ---

// Whether |dtype| is complex, which is refused then: what reads or writes elements as one
// number each has no room for two.
bool pestle_onnx_refuses_complex(pestle_onnx_call_t* call,
                                 pestle_dtype_t dtype);
// Every element of |type| is |value|, rounded to its dtype.
pestle_value_t* pestle_onnx_splat(pestle_onnx_call_t* call,
                                  const pestle_type_t* type, double value);
pestle_value_t* pestle_onnx_splat_int(pestle_onnx_call_t* call,
                                      const pestle_type_t* type, int64_t value);
// A splat like |value| in shape and dtype.
static inline pestle_value_t* splat_like(pestle_onnx_call_t* call,
                                         const pestle_value_t* value,
                                         double number) {
  return pestle_onnx_splat(call, pestle_onnx_type(value), number);
}
// Rank 0.
pestle_value_t* pestle_onnx_scalar(pestle_onnx_call_t* call,
                                   pestle_dtype_t dtype, double value);
// Rank 1, i64.
pestle_value_t* pestle_onnx_int_list(pestle_onnx_call_t* call,
                                     const int64_t* values, size_t count);
// Numbers rounded to |dtype|.
pestle_value_t* pestle_onnx_numbers(pestle_onnx_call_t* call,
                                    const pestle_type_t* type,
                                    const double* values);
// The lowest and the highest value of |dtype|: -inf and inf for floats.
pestle_value_t* pestle_onnx_lowest(pestle_onnx_call_t* call,
                                   const pestle_type_t* type);
pestle_value_t* pestle_onnx_highest(pestle_onnx_call_t* call,
                                    const pestle_type_t* type);
// --- Elementwise, with numpy's broadcasting (emit.c) ---

// a op number, the number in a's dtype.
pestle_value_t* pestle_onnx_binary_f(pestle_onnx_call_t* call, pestle_op_t op,
                                     pestle_value_t* a, double number);
// Conversion as StableHLO has it, with non-zero as true. |a| itself if equal.
pestle_value_t* pestle_onnx_convert(pestle_onnx_call_t* call, pestle_value_t* a,
                                    pestle_dtype_t dtype);

static inline pestle_value_t* add(pestle_onnx_call_t* call, pestle_value_t* a,
                                  pestle_value_t* b) {
  return pestle_f_add(&call->f, a, b);
}
static inline pestle_value_t* sub(pestle_onnx_call_t* call, pestle_value_t* a,
                                  pestle_value_t* b) {
  return pestle_f_subtract(&call->f, a, b);
}
static inline pestle_value_t* mul(pestle_onnx_call_t* call, pestle_value_t* a,
                                  pestle_value_t* b) {
  return pestle_f_multiply(&call->f, a, b);
}
static inline pestle_value_t* quotient(pestle_onnx_call_t* call,
                                       pestle_value_t* a, pestle_value_t* b) {
  return pestle_f_divide(&call->f, a, b);
}
static inline pestle_value_t* times(pestle_onnx_call_t* call, pestle_value_t* a,
                                    double factor) {
  return pestle_onnx_binary_f(call, PESTLE_OP_MULTIPLY, a, factor);
}

// Imports by |import| with inputs of narrow floats as f32, and the outputs
// converted back: for what sums before it divides, which need not fit.
void pestle_onnx_in_f32(pestle_onnx_call_t* call,
                        void (*import)(pestle_onnx_call_t* call));

// --- Moving (move.c) ---

// The shape that numpy's broadcasting of |a| and |b| gives; false (and an error
// kept) when there is none.
bool pestle_onnx_common_shape(pestle_onnx_call_t* call, const pestle_type_t* a,
                              const pestle_type_t* b, pestle_type_t* out);
// Broadcasts to |dims| by numpy's rule.
pestle_value_t* pestle_onnx_broadcast(pestle_onnx_call_t* call,
                                      pestle_value_t* a, int32_t rank,
                                      const int64_t* dims);
// A rank-1 |a| along |axis| of something shaped like |like|.
pestle_value_t* pestle_onnx_along(pestle_onnx_call_t* call, pestle_value_t* a,
                                  const pestle_value_t* like, int64_t axis);
// Every |stride|-th element of [start, limit) of |axis|.
pestle_value_t* pestle_onnx_slice_axis(pestle_onnx_call_t* call,
                                       pestle_value_t* a, int64_t axis,
                                       int64_t start, int64_t limit,
                                       int64_t stride);
// A gather: axes |mapped| of |a| are chosen by index vectors along |vector| of
// |indices| (its rank: scalars) and fall away, axes |batch| are walked with the
// first ones of |indices|, and |sizes| of the others are taken, to |offsets|.
typedef struct pestle_onnx_gather_t {
  int64_t vector;
  size_t offset_count, mapped_count, batch_count;
  int64_t offsets[PESTLE_MAX_RANK], mapped[PESTLE_MAX_RANK];
  int64_t batch[PESTLE_MAX_RANK], sizes[PESTLE_MAX_RANK];
} pestle_onnx_gather_t;
pestle_value_t* pestle_onnx_gather(pestle_onnx_call_t* call, pestle_value_t* a,
                                   pestle_value_t* indices,
                                   const pestle_onnx_gather_t* how);
// numpy.take(a, indices, axis) for indices that are not negative.
pestle_value_t* pestle_onnx_take(pestle_onnx_call_t* call, pestle_value_t* a,
                                 pestle_value_t* indices, int64_t axis);
// The same for indices known now.
pestle_value_t* pestle_onnx_take_list(pestle_onnx_call_t* call,
                                      pestle_value_t* a, const int64_t* indices,
                                      size_t count, int64_t axis);
// Whether |indices|, if they are known now, lie in [0, extent); false with an error kept.
// What a run gives is not looked at: take() reads the nearest place.
bool pestle_onnx_check_indices(pestle_onnx_call_t* call,
                               const pestle_value_t* indices, int64_t extent);

// --- Reducing axes (contract.c) ---

// Reduces |axes| by |op| (ADD, MULTIPLY, MAXIMUM, MINIMUM, AND, OR) from |init|
// of rank 0 (NULL: the op's identity).
pestle_value_t* pestle_onnx_reduce(pestle_onnx_call_t* call, pestle_op_t op,
                                   pestle_value_t* a, const int64_t* axes,
                                   size_t count, bool keep_dims);
pestle_value_t* pestle_onnx_reduce_window(pestle_onnx_call_t* call,
                                          pestle_op_t op, pestle_value_t* a,
                                          const pestle_windows_t* windows);
// stablehlo.dot_general; the result has |dtype|.
pestle_value_t* pestle_onnx_dot(pestle_onnx_call_t* call, pestle_value_t* a,
                                pestle_value_t* b, pestle_i64s_t a_batch,
                                pestle_i64s_t b_batch, pestle_i64s_t a_contract,
                                pestle_i64s_t b_contract, pestle_dtype_t dtype);
// numpy.matmul.
pestle_value_t* pestle_onnx_matmul(pestle_onnx_call_t* call, pestle_value_t* a,
                                   pestle_value_t* b, pestle_dtype_t dtype);
// pestle.softmax over one axis.
pestle_value_t* pestle_onnx_softmax(pestle_onnx_call_t* call, pestle_op_t op,
                                    pestle_value_t* a, int64_t axis);

// --- Loops (loop.c) ---

// Makes a trip: |values| holds what is carried into trip |i| (i64 of rank 0)
// and then what is carried out.
typedef void (*pestle_onnx_body_fn_t)(pestle_onnx_call_t* call, void* self,
                                      pestle_value_t* i,
                                      pestle_value_t** values);
// Carries the |count| |values| through |trips| trips: none are no code, one is
// the body in place, more are a stablehlo.while.
void pestle_onnx_for(pestle_onnx_call_t* call, int64_t trips,
                     pestle_value_t** values, size_t count,
                     pestle_onnx_body_fn_t body, void* self);
// The same for |trips| at most: the last value, i1 of rank 0, says whether there is
// another.
void pestle_onnx_for_while(pestle_onnx_call_t* call, int64_t trips,
                           pestle_value_t** values, size_t count,
                           pestle_onnx_body_fn_t body, void* self);
// The same for as many trips as |limit| (i64 of rank 0) says when it runs.
void pestle_onnx_for_below(pestle_onnx_call_t* call, pestle_value_t* limit,
                           pestle_value_t** values, size_t count,
                           pestle_onnx_body_fn_t body, void* self);
// Element |i| of the first axis of |x|, without that axis.
pestle_value_t* pestle_onnx_row(pestle_onnx_call_t* call, pestle_value_t* x,
                                pestle_value_t* i);
// |y| with |row| in place of that element.
pestle_value_t* pestle_onnx_store_row(pestle_onnx_call_t* call,
                                      pestle_value_t* y, pestle_value_t* row,
                                      pestle_value_t* i);
// Makes a region over |types| and moves the call's builder into it (back is the
// caller's business).
pestle_region_t* pestle_onnx_enter_region(pestle_onnx_call_t* call,
                                          const pestle_type_t* types,
                                          size_t count);
// Ends the region with |values|; false on error, also when one is NULL.
bool pestle_onnx_finish_region(pestle_onnx_call_t* call,
                               pestle_value_t** values, size_t count);

#endif  // PESTLE_FRONTEND_ONNX_EMIT_H_
