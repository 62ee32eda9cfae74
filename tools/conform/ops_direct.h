// SPDX-License-Identifier: Apache-2.0
// Instances of the ops that are kernels of their own.
#ifndef PESTLE_TOOLS_CONFORM_OPS_DIRECT_H_
#define PESTLE_TOOLS_CONFORM_OPS_DIRECT_H_

#include "tools/conform/instance.h"
#include "tools/conform/ops_move.h"
#include "tools/conform/ops_reduce.h"

// --- sort ---

// a.0 |op| b.0, or equal there and a.1 |op| b.1.
static inline pestle_region_t* lexicographic_region(instance_t* t,
                                                    pestle_op_t op) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s, s, s}, 4);
  pestle_value_t *a = body_arg(&body, 0), *b = body_arg(&body, 1);
  pestle_value_t* second =
      scalar_op(&body.b, op, body_arg(&body, 2), body_arg(&body, 3));
  pestle_value_t* equal = scalar_op(&body.b, PESTLE_OP_EQ, a, b);
  second = scalar_op(&body.b, PESTLE_OP_AND, equal, second);
  pestle_value_t* y =
      scalar_op(&body.b, PESTLE_OP_OR, scalar_op(&body.b, op, a, b), second);
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

// max(a, 0) < max(b, 0), with the positions beside: many are equal, so that
// their order tells a stable sort.
static inline pestle_region_t* coarse_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL),
                i = type_of(PESTLE_I32, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s, i, i}, 4);
  pestle_value_t* zero = splat(&body.b, &s, 0);
  pestle_value_t* y = scalar_op(
      &body.b, PESTLE_OP_LT,
      scalar_op(&body.b, PESTLE_OP_MAXIMUM, body_arg(&body, 0), zero),
      scalar_op(&body.b, PESTLE_OP_MAXIMUM, body_arg(&body, 1), zero));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

static inline pestle_region_t* compare_region(instance_t* t, pestle_op_t op) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t* y =
      scalar_op(&body.b, op, body_arg(&body, 0), body_arg(&body, 1));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

static inline bool build_sort(instance_t* t) {
  static const char* const names[] = {"last axis", "first axis, positions",
                                      "middle axis, two keys", "one twice"};
  int32_t rank = t->shape->rank;
  if (!rank) return false;
  t->what = names[t->variant];
  t->check = CHECK_VALUES;
  t->fill[0] = t->fill[1] = t->variant == 2 ? FILL_SPREAD : FILL_VALUES;
  pestle_type_t types[] = {shaped(t), shaped(t)};
  begin(t, types, t->variant == 2 ? 2 : 1);
  int64_t axes[] = {-1, 0, rank / 2, rank - 1};
  pestle_sort_attrs_t attrs = {.struct_size = sizeof(attrs),
                               .dimension = axes[t->variant]};
  pestle_value_t *x = arg(t, 0), *y[2];
  if (t->variant == 0) {
    assert_ok(pestle_op_sort(&t->b, &x, 1, &attrs,
                             compare_region(t, PESTLE_OP_GT), y, 1));
    finish(t, y, 1);
  } else if (t->variant == 1) {
    pestle_type_t at = type_of(PESTLE_I32, rank, t->shape->dims);
    pestle_value_t* both[] = {x, NULL};
    assert_ok(pestle_op_iota(&t->b, &(pestle_iota_attrs_t){sizeof(attrs), 0},
                             at, &both[1]));
    assert_ok(pestle_op_sort(&t->b, both, 2, &attrs, coarse_region(t), y, 2));
    finish(t, y, 2);
  } else {
    pestle_value_t* both[] = {x, t->variant == 2 ? arg(t, 1) : x};
    assert_ok(pestle_op_sort(&t->b, both, 2, &attrs,
                             lexicographic_region(t, PESTLE_OP_LT), y, 2));
    finish(t, y, 2);
  }
  return true;
}

// a > b, NaN in front.
static inline pestle_region_t* descending_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t *a = body_arg(&body, 0), *b = body_arg(&body, 1);
  pestle_value_t* nan = scalar_op(&body.b, PESTLE_OP_NE, a, a);
  pestle_value_t* number = scalar_op(&body.b, PESTLE_OP_EQ, b, b);
  nan = scalar_op(&body.b, PESTLE_OP_AND, nan, number);
  pestle_value_t* y = scalar_op(&body.b, PESTLE_OP_GT, a, b);
  y = scalar_op(&body.b, PESTLE_OP_OR, y, nan);
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

static inline bool build_sort_first(instance_t* t) {
  static const char* const names[] = {"one of the last axis",
                                      "half of the first axis, beside",
                                      "all of the middle axis"};
  int32_t rank = t->shape->rank;
  if (!rank) return false;
  t->what = names[t->variant];
  t->check = CHECK_VALUES;
  t->fill[0] = t->fill[1] = t->variant == 1 ? FILL_SPREAD : FILL_VALUES;
  pestle_type_t types[] = {shaped(t), shaped(t)};
  size_t operands = t->variant == 1 ? 2 : 1;
  begin(t, types, operands);
  int64_t axes[] = {rank - 1, 0, rank / 2};
  int64_t axis = axes[t->variant], extent = t->shape->dims[axis];
  int64_t counts[] = {extent < 1 ? extent : 1, extent / 2, extent};
  pestle_sort_first_attrs_t attrs = {.struct_size = sizeof(attrs),
                                     .count = counts[t->variant],
                                     .dimension = axis};
  pestle_value_t *x[] = {arg(t, 0), operands > 1 ? arg(t, 1) : NULL}, *y[3];
  pestle_region_t* region = operands > 1 ? lexicographic_region(t, PESTLE_OP_LT)
                                         : descending_region(t);
  assert_ok(pestle_op_sort_first(&t->b, x, operands, &attrs, region, y,
                                 operands + 1));
  finish(t, y, operands + 1);
  return true;
}

// --- suppress ---

// The shape's elements are scores; places behind the count are -1, since what lies
// there is not said.
static inline bool build_suppress(instance_t* t) {
  static const char* const names[] = {"all scores", "above a threshold",
                                      "one each, centres", "some of the boxes"};
  int32_t rank = t->shape->rank;
  if (t->dtype != PESTLE_F32 || !rank) return false;
  t->what = names[t->variant];
  t->check = CHECK_VALUES;
  int64_t n = t->shape->dims[rank - 1], count = 1;
  for (int32_t i = 0; i + 1 < rank; ++i)
    count *= t->shape->dims[i];
  int64_t batches = count % 2 || !count ? 1 : 2;
  int64_t most = t->variant == 2 ? 1 : n;
  pestle_type_t types[] = {
      type_of(PESTLE_F32, 3, DIMS(batches, n, 4)),
      type_of(PESTLE_F32, 3, DIMS(batches, count / batches, n)),
      type_of(PESTLE_F32, 0, NULL), type_of(PESTLE_I64, 0, NULL)};
  t->fill[0] = t->fill[1] = FILL_SPREAD;
  t->fill[2] = FILL_UNIT;
  index_arg(t, 3, n);
  begin(t, types, 4);
  pestle_type_t index = type_of(PESTLE_I64, 0, NULL);
  pestle_value_t *zero = splat(&t->b, &types[2], 0), *all;
  assert_ok(pestle_op_divide(&t->b, zero, zero, &all));
  pestle_value_t* operands[] = {
      arg(t, 0),
      arg(t, 1),
      t->variant == 1 ? arg(t, 2) : all,
      t->variant == 1 ? zero : arg(t, 2),
      splat(&t->b, &index, t->variant == 0 ? n / 2 : n),
      t->variant == 3 ? arg(t, 3) : splat(&t->b, &index, n)};
  pestle_suppress_attrs_t attrs = {
      .struct_size = sizeof(attrs), .most = most, .centers = t->variant == 2};
  pestle_value_t *y[2], *place, *end, *inside;
  assert_ok(pestle_op_suppress(&t->b, operands, 6, &attrs, y, 2));
  pestle_type_t places =
      type_of(PESTLE_I32, 3, DIMS(batches, count / batches, most));
  pestle_iota_attrs_t along = {sizeof(along), 2};
  assert_ok(pestle_op_iota(&t->b, &along, places, &place));
  pestle_broadcast_in_dim_attrs_t spread = {sizeof(spread),
                                            i64s(DIMS(0, 1), 2)};
  assert_ok(pestle_op_broadcast_in_dim(&t->b, y[1], &spread, places, &end));
  assert_ok(pestle_op_lt(&t->b, place, end, &inside));
  assert_ok(
      pestle_op_select(&t->b, inside, y[0], splat(&t->b, &places, -1), &y[0]));
  finish(t, y, 2);
  return true;
}

// All of the shape's flags in one list; behind the count places are -1, as above.
static inline bool build_places(instance_t* t) {
  static const char* const names[] = {"any", "few"};
  t->what = names[t->variant];
  int64_t n = 1;
  for (int32_t i = 0; i < t->shape->rank; ++i)
    n *= t->shape->dims[i];
  pestle_type_t list = type_of(PESTLE_I1, 1, DIMS(n));
  begin(t, (pestle_type_t[]){list, list}, 2);
  pestle_value_t *flags = arg(t, 0), *y[2], *place, *end, *inside;
  for (int i = 0; i < 2 && t->variant; ++i)
    assert_ok(pestle_op_and(&t->b, flags, arg(t, 1), &flags));
  assert_ok(pestle_op_places(&t->b, flags, NULL, y, 2));
  list.dtype = PESTLE_I32;
  pestle_type_t wide = type_of(PESTLE_I64, 1, DIMS(n));
  pestle_iota_attrs_t along = {sizeof(along), 0};
  assert_ok(pestle_op_iota(&t->b, &along, wide, &place));
  pestle_broadcast_in_dim_attrs_t spread = {sizeof(spread), i64s(DIMS(0), 0)};
  assert_ok(pestle_op_broadcast_in_dim(&t->b, y[1], &spread, wide, &end));
  assert_ok(pestle_op_lt(&t->b, place, end, &inside));
  assert_ok(
      pestle_op_select(&t->b, inside, y[0], splat(&t->b, &list, -1), &y[0]));
  finish(t, y, 2);
  return true;
}

// --- scatter ---

// (old, new) -> new
static inline pestle_region_t* replace_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t* y = body_arg(&body, 1);
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

// (a, b), (x, y) -> max(a, x), y op a: each result needs both inputs.
static inline pestle_region_t* pair_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s, s, s}, 4);
  pestle_value_t* y[2] = {scalar_op(&body.b, PESTLE_OP_MAXIMUM,
                                    body_arg(&body, 0), body_arg(&body, 2)),
                          scalar_op(&body.b, PESTLE_OP_ADD, body_arg(&body, 3),
                                    body_arg(&body, 0))};
  assert_ok(pestle_op_return(&body.b, y, 2, NULL));
  return body.region;
}

static inline pestle_region_t* add_region(instance_t* t) {
  return reduce_region(t, PESTLE_OP_ADD);
}

static inline pestle_region_t* max_region(instance_t* t) {
  return reduce_region(t, PESTLE_OP_MAXIMUM);
}

typedef pestle_region_t* (*region_fn_t)(instance_t* t);

// A change has the type of argument 2; inputs and changes are as many as |n|.
static inline void finish_scatter(instance_t* t, const pestle_type_t* update,
                                  const pestle_type_t* indices, int64_t limit,
                                  region_fn_t region, size_t n,
                                  pestle_scatter_attrs_t attrs) {
  pestle_type_t types[5] = {shaped(t), *indices, *update};
  pestle_value_t *operands[5], *y[2];
  size_t at = n;
  if (n == 2) {
    types[1] = types[0];
    types[2] = *indices;
    types[3] = types[4] = *update;
  }
  for (size_t i = 0; i < 2 * n + 1; ++i)
    t->fill[i] = FILL_SPREAD;
  index_arg(t, at, limit);
  t->check = CHECK_VALUES;
  begin(t, types, 2 * n + 1);
  for (size_t i = 0; i < 2 * n + 1; ++i)
    operands[i] = arg(t, i);
  attrs.struct_size = sizeof(attrs);
  assert_ok(
      pestle_op_scatter(&t->b, operands, 2 * n + 1, &attrs, region(t), y, n));
  finish(t, y, n);
}

// Rows by index, some twice, some outside.
static inline void scatter_rows(instance_t* t, int64_t count) {
  pestle_type_t update = shaped(t);
  pestle_type_t indices = type_of(index_dtype(t), 1, DIMS(count));
  int64_t axes[PESTLE_MAX_RANK];
  update.dims[0] = count;
  for (int32_t i = 0; i < update.rank; ++i)
    axes[i] = i;
  finish_scatter(t, &update, &indices, t->shape->dims[0] - 1, add_region, 1,
                 (pestle_scatter_attrs_t){
                     .update_window_dims = i64s(axes + 1, update.rank - 1),
                     .inserted_window_dims = PESTLE_I64S(0),
                     .scatter_dims_to_operand_dims = PESTLE_I64S(0),
                     .index_vector_dim = 1});
}

// Windows at pairs of positions that overlap; the pair's axis comes first, the
// batch axis of the updates last.
static inline void scatter_windows(instance_t* t) {
  pestle_type_t update = shaped(t);
  pestle_type_t indices = type_of(index_dtype(t), 2, DIMS(2, 5));
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < update.rank; ++i) {
    if (i < 2) update.dims[i] -= update.dims[i] / 2;
    axes[i] = i;
  }
  int32_t rank = update.rank;
  update.dims[update.rank++] = 5;
  finish_scatter(t, &update, &indices, t->shape->dims[0] / 2, replace_region, 1,
                 (pestle_scatter_attrs_t){
                     .update_window_dims = i64s(axes, rank),
                     .scatter_dims_to_operand_dims = PESTLE_I64S(1, 0)});
}

// One element for each [4, batch] of the second axis, first axis batched, two
// inputs.
static inline void scatter_batched(instance_t* t) {
  pestle_type_t update = shaped(t);
  int64_t first = t->shape->dims[0], axes[PESTLE_MAX_RANK];
  pestle_type_t indices = type_of(index_dtype(t), 2, DIMS(4, first));
  update.dims[0] = 4;
  update.dims[1] = first;
  for (int32_t i = 0; i < update.rank; ++i)
    axes[i] = i;
  finish_scatter(t, &update, &indices, t->shape->dims[1] - 1, pair_region, 2,
                 (pestle_scatter_attrs_t){
                     .update_window_dims = i64s(axes + 2, update.rank - 2),
                     .inserted_window_dims = PESTLE_I64S(1),
                     .input_batching_dims = PESTLE_I64S(0),
                     .scatter_indices_batching_dims = PESTLE_I64S(1),
                     .scatter_dims_to_operand_dims = PESTLE_I64S(1),
                     .index_vector_dim = 2});
}

// One window that an index of rank 1 puts anywhere, said to be unique: what
// dynamic_update_slice does, but outside it does nothing.
static inline void scatter_slice(instance_t* t) {
  pestle_type_t update = shaped(t);
  pestle_type_t indices = type_of(index_dtype(t), 1, DIMS(update.rank));
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < update.rank; ++i) {
    update.dims[i] -= update.dims[i] / 3;
    axes[i] = i;
  }
  finish_scatter(t, &update, &indices, 2, max_region, 1,
                 (pestle_scatter_attrs_t){
                     .update_window_dims = i64s(axes, update.rank),
                     .scatter_dims_to_operand_dims = i64s(axes, update.rank),
                     .unique_indices = true});
}

static inline bool build_scatter(instance_t* t) {
  static const char* const names[] = {"rows", "windows", "batched", "slice",
                                      "no update"};
  int32_t rank = t->shape->rank;
  t->what = names[t->variant];
  if (rank < 1 && t->variant != 3) return false;
  if (rank < 2 && (t->variant == 1 || t->variant == 2)) return false;
  if (t->variant == 0) scatter_rows(t, 7);
  if (t->variant == 1) scatter_windows(t);
  if (t->variant == 2) scatter_batched(t);
  if (t->variant == 3) scatter_slice(t);
  if (t->variant == 4) scatter_rows(t, 0);
  return true;
}

// --- select_and_scatter ---

// Windows of two that overlap or not, or that meet padding, along the first and
// the last axis; with what is left over at the end.
static inline bool build_select(instance_t* t) {
  static const char* const names[] = {"apart, last axis", "overlapping",
                                      "padded", "no window"};
  int32_t rank = t->shape->rank;
  t->what = names[t->variant];
  if (!rank) return false;
  pestle_type_t source = shaped(t), scalar = type_of(t->dtype, 0, NULL);
  int64_t size[PESTLE_MAX_RANK], stride[PESTLE_MAX_RANK];
  int64_t padding[2 * PESTLE_MAX_RANK] = {0};
  for (int32_t i = 0; i < rank; ++i) {
    bool first = i == 0 && t->variant > 0, last = i == rank - 1;
    int64_t low = t->variant == 2 && first, n = source.dims[i] + 2 * low;
    size[i] = first || last ? 2 + (t->variant == 1) : 1;
    if (t->variant == 3 && last) size[i] = n + 1;
    stride[i] = size[i] == 2 ? 2 : 1;
    padding[2 * i] = padding[2 * i + 1] = low;
    source.dims[i] = n < size[i] ? 0 : (n - size[i]) / stride[i] + 1;
  }
  t->fill[0] = FILL_VALUES;
  t->fill[1] = t->fill[2] = FILL_SPREAD;
  t->check = CHECK_VALUES;
  begin(t, (pestle_type_t[]){shaped(t), source, scalar}, 3);
  pestle_select_and_scatter_attrs_t attrs = {sizeof(attrs), i64s(size, rank),
                                             i64s(stride, rank),
                                             i64s(padding, 2 * rank)};
  pestle_value_t* y;
  assert_ok(pestle_op_select_and_scatter(
      &t->b, arg(t, 0), arg(t, 1), arg(t, 2), &attrs,
      compare_region(t, PESTLE_OP_GE), add_region(t), &y));
  finish1(t, y);
  return true;
}

// --- map, reduce_precision ---

// (a, b) -> a < 1 ? max(a, b) : b, which has a constant and a predicate.
static inline bool build_map(instance_t* t) {
  t->what = "three ops";
  t->check = CHECK_VALUES;
  t->fill[0] = t->fill[1] = FILL_VALUES;
  pestle_type_t types[] = {shaped(t), shaped(t)},
                s = type_of(t->dtype, 0, NULL);
  begin(t, types, 2);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t *a = body_arg(&body, 0), *b = body_arg(&body, 1), *y;
  pestle_value_t* low =
      scalar_op(&body.b, PESTLE_OP_LT, a, splat(&body.b, &s, 1));
  assert_ok(pestle_op_select(
      &body.b, low, scalar_op(&body.b, PESTLE_OP_MAXIMUM, a, b), b, &y));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  pestle_value_t* operands[] = {arg(t, 0), arg(t, 1)};
  int64_t axes[] = {0, 1, 2, 3};
  pestle_map_attrs_t attrs = {sizeof(attrs), i64s(axes, t->shape->rank)};
  assert_ok(pestle_op_map(&t->b, operands, 2, &attrs, body.region, &y));
  finish1(t, y);
  return true;
}

static inline bool build_reduce_precision(instance_t* t) {
  static const char* const names[] = {"e5m10", "e8m7",   "e4m3",
                                      "e1m0",  "e11m52", "e6m0"};
  static const int64_t bits[][2] = {{5, 10}, {8, 7},   {4, 3},
                                    {1, 0},  {11, 52}, {6, 0}};
  t->what = names[t->variant];
  t->check = CHECK_VALUES;
  t->fill[0] = FILL_VALUES;
  pestle_value_t *x = begin_unary(t), *y;
  pestle_reduce_precision_attrs_t attrs = {sizeof(attrs), bits[t->variant][0],
                                           bits[t->variant][1]};
  assert_ok(pestle_op_reduce_precision(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

// --- cholesky, triangular_solve ---

// The last two axes are |n| x |m|, with all others before them.
static inline pestle_type_t matrices(const instance_t* t, int64_t n,
                                     int64_t m) {
  pestle_type_t type = shaped(t);
  while (type.rank < 2)
    type.dims[type.rank++] = 1;
  type.dims[type.rank - 2] = n;
  type.dims[type.rank - 1] = m;
  return type;
}

// The square of the last extent, or a part of it: 20 is enough for vectors and
// what is left of them.
static inline int64_t order_of(const instance_t* t) {
  int64_t n = dim(t, t->shape->rank - 1);
  return n > 20 ? 20 : n;
}

// |a| + 8 on the diagonal, so that it is well conditioned; symmetric matrices
// too, whose elements are at most 1 in size: 20 of them sum to 20.
static inline pestle_value_t* with_diagonal(instance_t* t, pestle_value_t* a,
                                            int64_t diagonal) {
  pestle_type_t type = *a->type, at = type, scalar = type;
  at.dtype = PESTLE_I32;
  scalar.dtype = t->dtype;
  pestle_value_t *i, *k;
  assert_ok(pestle_op_iota(
      &t->b, &(pestle_iota_attrs_t){sizeof(pestle_iota_attrs_t), type.rank - 2},
      at, &i));
  assert_ok(pestle_op_iota(
      &t->b, &(pestle_iota_attrs_t){sizeof(pestle_iota_attrs_t), type.rank - 1},
      at, &k));
  pestle_value_t* same = scalar_op(&t->b, PESTLE_OP_EQ, i, k);
  assert_ok(
      pestle_op_select(&t->b, same, splat(&t->b, &scalar, diagonal), a, &a));
  return a;
}

// Sums of up to 20 products of numbers that a few roundings change; the result
// is at most 6 in size. Where the type's largest number is no larger than a row's sum,
// roundings decide whether the matrix is positive definite.
static inline bool build_cholesky(instance_t* t) {
  t->what = t->variant ? "lower" : "upper";
  int64_t n = order_of(t);
  const pestle_float_format_t* format = pestle_float_format(t->dtype);
  if (pestle_float_decode(t->dtype, format->limit - 1) < (double)n)
    return false;
  pestle_type_t type = matrices(t, n, n);
  t->fill[0] = FILL_UNIT;
  t->check = CHECK_ABSOLUTE;
  t->terms =
      40.0 *
      (pestle_dtype_size(t->dtype) < 4 ? roundoff(t->dtype) * 0x1p24 : 1);
  begin(t, &type, 1);
  pestle_value_t* y;
  assert_ok(
      pestle_op_cholesky(&t->b, with_diagonal(t, arg(t, 0), 24),
                         &(pestle_cholesky_attrs_t){
                             sizeof(pestle_cholesky_attrs_t), t->variant == 1},
                         &y));
  finish1(t, y);
  return true;
}

static inline bool build_solve(instance_t* t) {
  static char name[64];
  bool left = t->variant & 1, lower = t->variant & 2, turned = t->variant & 4;
  snprintf(name, sizeof(name), "%s, %s%s", left ? "left" : "right",
           lower ? "lower" : "upper", turned ? ", transposed" : "");
  t->what = name;
  int64_t n = order_of(t), m = dim(t, t->shape->rank - 2) + 2;
  pestle_type_t types[] = {matrices(t, n, n),
                           matrices(t, left ? n : m, left ? m : n)};
  t->fill[0] = t->fill[1] = FILL_UNIT;
  t->check = CHECK_ABSOLUTE;
  t->terms =
      40.0 *
      (pestle_dtype_size(t->dtype) < 4 ? roundoff(t->dtype) * 0x1p24 : 1);
  begin(t, types, 2);
  pestle_value_t* y;
  pestle_triangular_solve_attrs_t attrs = {
      sizeof(attrs), left, lower, false, turned ? "TRANSPOSE" : "NO_TRANSPOSE"};
  assert_ok(pestle_op_triangular_solve(&t->b, with_diagonal(t, arg(t, 0), 24),
                                       arg(t, 1), &attrs, &y));
  finish1(t, y);
  return true;
}

// The rows of a dominant diagonal upside down: each step finds its pivot at the
// other end, whatever is rounded before.
static inline pestle_value_t* turned_over(instance_t* t, pestle_value_t* a) {
  int64_t axis = a->type->rank - 2;
  pestle_reverse_attrs_t attrs = {sizeof(attrs), i64s(&axis, 1)};
  assert_ok(pestle_op_reverse(&t->b, a, &attrs, &a));
  return a;
}

// Variant 0: as it is; 1: upside down; of lu 2: more rows, 3: more columns.
// solve and inverse take narrow floats and compute in f32.
static inline bool build_lu(instance_t* t) {
  static const char* const names[] = {"", "upside down", "tall", "wide"};
  bool lu = t->row->op == PESTLE_OP_LU, solves = t->row->op == PESTLE_OP_SOLVE;
  t->what = names[t->variant];
  int64_t n = order_of(t), more = n ? 3 : 0;
  pestle_type_t types[2] = {matrices(t, n + (t->variant == 2 ? more : 0),
                                     n + (t->variant == 3 ? more : 0)),
                            matrices(t, n, dim(t, 0) + 1)};
  t->fill[0] = t->fill[1] = FILL_UNIT;
  t->check = CHECK_ABSOLUTE;
  t->terms = 80;
  begin(t, types, solves ? 2 : 1);
  pestle_value_t *a = with_diagonal(t, arg(t, 0), 24), *y[3];
  if (t->variant) a = turned_over(t, a);
  if (lu) {
    pestle_type_t wide = *a->type;
    if (wide.dtype != PESTLE_F64) wide.dtype = PESTLE_F32;
    assert_ok(pestle_op_convert(&t->b, a, NULL, wide, &a));
    assert_ok(pestle_op_lu(&t->b, a, NULL, y, 3));
  } else if (solves) {
    assert_ok(pestle_op_solve(&t->b, a, arg(t, 1), NULL, y));
  } else {
    assert_ok(pestle_op_inverse(&t->b, a, NULL, y));
  }
  finish(t, y, lu ? 3 : 1);
  return true;
}

// --- Factors, which are judged by what they are factors of ---

// x y, or x transpose(y), of matrices [batch.., m, k].
static inline pestle_value_t* product(instance_t* t, pestle_value_t* x,
                                      pestle_value_t* y, bool turned) {
  pestle_type_t type = *x->type;
  int64_t batch[PESTLE_MAX_RANK], last = type.rank - 1, before = last - 1;
  for (int64_t i = 0; i < before; ++i)
    batch[i] = i;
  type.dims[last] = y->type->dims[turned ? before : last];
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_batching_dimensions = i64s(batch, (int32_t)before),
      .rhs_batching_dimensions = i64s(batch, (int32_t)before),
      .lhs_contracting_dimensions = i64s(&last, 1),
      .rhs_contracting_dimensions = i64s(turned ? &last : &before, 1)};
  pestle_value_t* out;
  assert_ok(pestle_op_dot_general(&t->b, x, y, &attrs, type, &out));
  return out;
}

static inline pestle_value_t* turned_matrix(instance_t* t, pestle_value_t* x) {
  int64_t order[PESTLE_MAX_RANK], rank = x->type->rank;
  for (int64_t i = 0; i < rank; ++i)
    order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  pestle_transpose_attrs_t attrs = {sizeof(attrs), i64s(order, (int32_t)rank)};
  assert_ok(pestle_op_transpose(&t->b, x, &attrs, &x));
  return x;
}

// Columns of x times the elements of d.
static inline pestle_value_t* times_columns(instance_t* t, pestle_value_t* x,
                                            pestle_value_t* d) {
  int64_t axes[PESTLE_MAX_RANK], rank = x->type->rank;
  for (int64_t i = 0; i < rank - 1; ++i)
    axes[i] = i < rank - 2 ? i : rank - 1;
  pestle_broadcast_in_dim_attrs_t attrs = {sizeof(attrs),
                                           i64s(axes, (int32_t)rank - 1)};
  assert_ok(pestle_op_broadcast_in_dim(&t->b, d, &attrs, *x->type, &d));
  assert_ok(pestle_op_multiply(&t->b, x, d, &x));
  return x;
}

// Variant 0: square, 1: all of q, u and v, or the lower half; 2: tall, 3: wide.
// Vectors of which there is no first order are not compared, but their product
// is. Numbers are at most 1, a matrix of 23 x 20 at most 21 in size, its factors
// and their products wrong by some tens of roundings of that.
static inline bool build_factors(instance_t* t) {
  static const char* const names[] = {"", "full or lower", "tall", "wide"};
  t->what = names[t->variant];
  int64_t n = order_of(t), more = n ? 3 : 0;
  bool full = t->variant == 1;
  pestle_type_t type = matrices(t, n + (t->variant == 2 ? more : 0),
                                n + (t->variant == 3 ? more : 0));
  t->fill[0] = FILL_UNIT;
  t->check = CHECK_ABSOLUTE;
  t->terms = 20 * 21;
  begin(t, &type, 1);
  pestle_value_t *a = arg(t, 0), *y[3], *out[3];
  type.dtype = t->dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  assert_ok(pestle_op_convert(&t->b, a, NULL, type, &a));
  size_t count = 3;
  if (t->row->op == PESTLE_OP_QR) {
    pestle_qr_attrs_t attrs = {sizeof(attrs), full};
    assert_ok(pestle_op_qr(&t->b, a, &attrs, y, 2));
    out[0] = product(t, y[0], y[1], false);
    count = 2;
  } else if (t->row->op == PESTLE_OP_EIGH) {
    pestle_eigh_attrs_t attrs = {sizeof(attrs), full};
    assert_ok(pestle_op_eigh(&t->b, a, &attrs, y, 2));
    out[0] = times_columns(t, y[1], y[0]);
    out[0] = product(t, out[0], y[1], true);
    out[2] = y[0];
    y[0] = y[1];
  } else {
    pestle_svd_attrs_t attrs = {sizeof(attrs), false};
    pestle_svd_attrs_t all = {sizeof(attrs), true};
    assert_ok(pestle_op_svd(&t->b, a, &attrs, y, 3));
    out[0] = times_columns(t, y[0], y[1]);
    out[0] = product(t, out[0], y[2], false);
    out[2] = y[1];
    if (full) assert_ok(pestle_op_svd(&t->b, a, &all, y, 3));
    if (t->variant == 3) y[0] = turned_matrix(t, y[2]);
  }
  // What stands upright.
  y[0] = turned_matrix(t, y[0]);
  out[1] = product(t, y[0], y[0], true);
  finish(t, out, count);
  return true;
}

// With |x| <= 1, a deviation of 0.77 at least and factors of 1.5 at most, six
// roundings of numbers up to 4.
static inline bool build_batch_norm(instance_t* t) {
  t->what = t->variant ? "last axis" : "first axis";
  int32_t rank = t->shape->rank, axis = t->variant ? rank - 1 : 0;
  if (!rank) return false;
  wide_check(t, CHECK_ABSOLUTE, 24);
  static const fill_t fills[] = {FILL_UNIT, FILL_SCALE, FILL_UNIT, FILL_UNIT,
                                 FILL_SCALE};
  pestle_type_t along = type_of(t->dtype, 1, &t->shape->dims[axis]);
  pestle_type_t types[] = {shaped(t), along, along, along, along};
  pestle_value_t *operands[5], *y;
  begin(t, types, 5);
  for (size_t i = 0; i < 5; ++i) {
    t->fill[i] = fills[i];
    operands[i] = arg(t, i);
  }
  pestle_batch_norm_inference_attrs_t attrs = {sizeof(attrs), 0.1, axis};
  assert_ok(pestle_op_batch_norm_inference(&t->b, operands, 5, &attrs, &y));
  finish1(t, y);
  return true;
}

// Sums of up to as many terms as a feature has, divided by deviations of 0.3 at
// least (epsilon is 0.1) and their cubes.
static inline bool build_batch_training(instance_t* t) {
  bool grad = t->row->op == PESTLE_OP_BATCH_NORM_GRAD;
  t->what = t->variant ? "last axis" : "first axis";
  int32_t rank = t->shape->rank, axis = t->variant ? rank - 1 : 0;
  // The mean of nothing is NaN here and there.
  if (!rank || !pestle_type_count(&(pestle_type_t){
                   .rank = rank,
                   .dtype = PESTLE_F32,
                   .dims = {dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3)}})) {
    return false;
  }
  pestle_type_t x = shaped(t);
  double terms = (double)(pestle_type_count(&x) / x.dims[axis]);
  wide_check(t, CHECK_ABSOLUTE, 60 * (1 + terms));
  static const fill_t fills[] = {FILL_UNIT, FILL_SCALE, FILL_UNIT, FILL_SCALE,
                                 FILL_UNIT};
  pestle_type_t along = type_of(t->dtype, 1, &x.dims[axis]);
  pestle_type_t types[] = {x, along, along, along, x};
  pestle_value_t *operands[5], *y[3];
  size_t count = grad ? 5 : 3;
  begin(t, types, count);
  for (size_t i = 0; i < count; ++i) {
    t->fill[i] = fills[i];
    operands[i] = arg(t, i);
  }
  if (grad) {
    pestle_batch_norm_grad_attrs_t attrs = {sizeof(attrs), 0.1, axis};
    assert_ok(pestle_op_batch_norm_grad(&t->b, operands, 5, &attrs, y, 3));
  } else {
    pestle_batch_norm_training_attrs_t attrs = {sizeof(attrs), 0.1, axis};
    assert_ok(pestle_op_batch_norm_training(&t->b, operands[0], operands[1],
                                            operands[2], &attrs, y, 3));
  }
  finish(t, y, 3);
  return true;
}

// --- Random numbers ---

// 4-bit integers have no bits of their own: they are cut from 8.
static inline bool build_rng_bits(instance_t* t) {
  static const char* const names[] = {"THREE_FRY", "PHILOX", "PHILOX of 3",
                                      "DEFAULT"};
  t->what = names[t->variant];
  bool three = t->variant == 2;
  pestle_type_t state = type_of(PESTLE_U64, 1, (int64_t[]){three ? 3 : 2});
  pestle_type_t type = shaped(t);
  if (pestle_dtype_info(t->dtype)->bits < 8) type.dtype = PESTLE_U8;
  begin(t, &state, 1);
  pestle_value_t *x = arg(t, 0), *y[2];
  pestle_rng_bit_generator_attrs_t attrs = {
      sizeof(attrs), three ? "PHILOX" : names[t->variant], type};
  assert_ok(pestle_op_rng_bit_generator(&t->b, x, &attrs, y, 2));
  pestle_type_t wanted = shaped(t);
  assert_ok(pestle_op_convert(&t->b, y[1], NULL, wanted, &y[1]));
  finish(t, y, 2);
  return true;
}

// Which numbers come is not said, but where they lie is.
static inline bool build_rng(instance_t* t) {
  bool normal = t->variant == 1, floats = is_float(t->dtype);
  t->what = normal ? "normal" : "uniform";
  // Without negative numbers none is normally distributed.
  if (normal && (!floats || is_scale(t->dtype))) return false;
  pestle_type_t scalar = type_of(t->dtype, 0, NULL), type = shaped(t);
  pestle_type_t list = type_of(PESTLE_I64, 1, (int64_t[]){type.rank});
  begin(t, NULL, 0);
  pestle_value_t *shape, *y, *low, *high;
  pestle_constant_attrs_t dims = {
      sizeof(dims), {list, type.dims, 8 * (size_t)type.rank, false}};
  assert_ok(pestle_op_constant(&t->b, &dims, &shape));
  pestle_rng_attrs_t attrs = {sizeof(attrs), normal ? "NORMAL" : "UNIFORM"};
  assert_ok(pestle_op_rng(&t->b, splat(&t->b, &scalar, 1),
                          splat(&t->b, &scalar, 3), shape, &attrs, type, &y));
  // A deviation of 3: no number is 12 of them off, as 2^-53 is 8.
  int64_t bound = normal ? 37 : 3, least = normal ? -35 : 1;
  if (pestle_dtype_size(t->dtype) == 1 && normal) bound = 40, least = -40;
  // A scale's 3 is 4, and what is near that is rounded to it.
  if (is_scale(t->dtype)) bound = 8;
  assert_ok(pestle_op_ge(&t->b, y, splat(&t->b, &type, least), &low));
  assert_ok(normal ? pestle_op_le(&t->b, y, splat(&t->b, &type, bound), &high)
                   : pestle_op_lt(&t->b, y, splat(&t->b, &type, bound), &high));
  assert_ok(pestle_op_and(&t->b, low, high, &y));
  finish1(t, y);
  return true;
}

#endif  // PESTLE_TOOLS_CONFORM_OPS_DIRECT_H_
