// SPDX-License-Identifier: Apache-2.0
// Linear algebra beyond products. Det is Gaussian elimination with partial
// pivoting, a trip a column: exchanging rows and taking multiples off are
// selects and products over the whole stack of matrices.
#include "frontend/onnx/ops.h"

typedef struct elimination_t {
  int64_t batch, n;
  pestle_dtype_t dtype;
} elimination_t;

// 0, 1, ... along the rows: i64 [1, n].
static pestle_value_t* row_numbers(pestle_onnx_call_t* call,
                                   const elimination_t* e) {
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = 2, .dims = {1, e->n}};
  return pestle_f_iota(&call->f, &type, 1);
}

// The row in each matrix with the greatest element of |column| from |i| on:
// i64 [batch, 1].
static pestle_value_t* find_pivot(pestle_onnx_call_t* call,
                                  const elimination_t* e,
                                  pestle_value_t* column, pestle_value_t* i) {
  int64_t axis = 1;
  pestle_value_t* rows = row_numbers(call, e);
  pestle_value_t* open = pestle_f_ge(&call->f, rows, i);
  pestle_value_t* size = pestle_f_abs(&call->f, column);
  size = pestle_f_select(&call->f, open, size, splat_like(call, size, -1));
  pestle_value_t* top =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, size, &axis, 1, true);
  pestle_value_t* hit = pestle_f_eq(&call->f, size, top);
  // With a NaN nothing is hit, and any row gives it.
  pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 2, .dims = {e->batch, e->n}};
  pestle_value_t* places = pestle_f_select(
      &call->f, hit, rows, pestle_onnx_splat_int(call, &type, e->n - 1));
  return pestle_onnx_reduce(call, PESTLE_OP_MINIMUM, places, &axis, 1, true);
}

// The row of each matrix that |chosen| [batch or 1, n] says: [batch, 1, n].
static pestle_value_t* pick_row(pestle_onnx_call_t* call,
                                const elimination_t* e, pestle_value_t* a,
                                pestle_value_t* chosen) {
  int64_t dims[] = {pestle_onnx_dim(chosen, 0), e->n, 1}, axis = 1;
  chosen = pestle_f_reshape(&call->f, chosen, 3, dims);
  return pestle_onnx_reduce(
      call, PESTLE_OP_ADD,
      pestle_f_select(&call->f, chosen, a, splat_like(call, a, 0)), &axis, 1,
      true);
}

static pestle_value_t* as_column(pestle_onnx_call_t* call,
                                 const elimination_t* e, pestle_value_t* x) {
  int64_t dims[] = {pestle_onnx_dim(x, 0), e->n, 1};
  return pestle_f_reshape(&call->f, x, 3, dims);
}

// Carried: the matrices with their columns in front ([n, batch, n], so that a
// row of it is a column of each) and the determinants [batch].
static void eliminate(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                      pestle_value_t** values) {
  static const int64_t to_batch[] = {1, 2, 0}, to_columns[] = {2, 0, 1};
  const elimination_t* e = self;
  int64_t list[] = {e->batch};
  pestle_value_t* column = pestle_onnx_row(call, values[0], i);
  pestle_value_t* pivot_row = find_pivot(call, e, column, i);
  pestle_value_t* rows = row_numbers(call, e);
  pestle_value_t* is_this = pestle_f_eq(&call->f, rows, i);
  pestle_value_t* is_pivot = pestle_f_eq(&call->f, rows, pivot_row);
  pestle_value_t* a = pestle_f_transpose(&call->f, values[0], to_batch);
  pestle_value_t* upper = pick_row(call, e, a, is_pivot);
  pestle_value_t* lower = pick_row(call, e, a, is_this);
  a = pestle_f_select(&call->f, as_column(call, e, is_pivot), lower, a);
  a = pestle_f_select(&call->f, as_column(call, e, is_this), upper, a);
  column =
      pestle_onnx_row(call, pestle_f_transpose(&call->f, a, to_columns), i);
  int64_t axis = 1;
  pestle_value_t* zero = pestle_onnx_scalar(call, e->dtype, 0);
  pestle_value_t* pivot = pestle_onnx_reduce(
      call, PESTLE_OP_ADD, pestle_f_select(&call->f, is_this, column, zero),
      &axis, 1, true);
  // A column of zeros makes the determinant 0; nothing is left to take off.
  pestle_value_t* divisor = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_EQ, pivot, 0),
      pestle_onnx_scalar(call, e->dtype, 1), pivot);
  pestle_value_t* below = pestle_f_gt(&call->f, rows, i);
  pestle_value_t* factor =
      pestle_f_select(&call->f, below, quotient(call, column, divisor), zero);
  a = sub(call, a, mul(call, as_column(call, e, factor), upper));
  values[0] = pestle_f_transpose(&call->f, a, to_columns);
  pestle_value_t* stays = pestle_f_eq(&call->f, pivot_row, i);
  pestle_value_t* sign =
      pestle_f_select(&call->f, stays, pestle_onnx_scalar(call, e->dtype, 1),
                      pestle_onnx_scalar(call, e->dtype, -1));
  pestle_value_t* step =
      pestle_f_reshape(&call->f, mul(call, pivot, sign), 1, list);
  values[1] = mul(call, values[1], step);
}

void pestle_onnx_import_det(pestle_onnx_call_t* call) {
  static const int64_t to_columns[] = {2, 0, 1};
  pestle_value_t* x = call->inputs[0];
  int32_t rank = rank_of(x);
  pestle_dtype_t dtype = dtype_of(x);
  elimination_t e = {.n = pestle_onnx_dim(x, rank - 1),
                     .batch = pestle_onnx_dims_product(x, 0, rank - 2)};
  e.dtype = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  if (rank < 2 || pestle_onnx_dim(x, rank - 2) != e.n ||
      !pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be square matrices of floats");
    return;
  }
  int64_t dims[] = {e.batch, e.n, e.n};
  pestle_type_t list = {.dtype = e.dtype, .rank = 1, .dims = {e.batch}};
  x = pestle_f_reshape(&call->f, pestle_onnx_convert(call, x, e.dtype), 3,
                       dims);
  pestle_value_t* values[2] = {pestle_f_transpose(&call->f, x, to_columns),
                               pestle_onnx_splat(call, &list, 1)};
  pestle_onnx_for(call, e.n, values, 2, eliminate, &e);
  call->outputs[0] = pestle_onnx_convert(
      call,
      pestle_f_reshape(&call->f, values[1], rank - 2,
                       pestle_onnx_type(call->inputs[0])->dims),
      dtype);
}
