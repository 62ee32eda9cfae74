// SPDX-License-Identifier: Apache-2.0
// Random instances of the ops that are kernels of their own.
#include "random/random.h"

static const pestle_type_t* type_at(const value_t* v) {
  return v->value->type;
}

static pestle_value_t* argument(pestle_builder_t* b, size_t i) {
  return pestle_block_argument(b->block, i);
}

// --- sort ---

// a.0 |op| b.0; with a second key where the first is equal.
static pestle_region_t* order_region(graph_t* g, pestle_dtype_t dtype,
                                     pestle_op_t op, uint32_t operands,
                                     pestle_dtype_t other, bool second) {
  pestle_type_t s = scalar_of(dtype), o = scalar_of(other);
  pestle_type_t types[] = {s, s, o, o};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2 * operands, &b);
  pestle_value_t *x = argument(&b, 0), *y = argument(&b, 1);
  pestle_value_t* before = raw(g, &b, op, x, y, NULL);
  if (second && operands == 2) {
    pestle_value_t* equal = raw(g, &b, PESTLE_OP_EQ, x, y, NULL);
    pestle_value_t* next =
        raw(g, &b, op, argument(&b, 2), argument(&b, 3), NULL);
    next = raw(g, &b, PESTLE_OP_AND, equal, next, NULL);
    before = raw(g, &b, PESTLE_OP_OR, before, next, NULL);
  }
  raw_return(g, &b, &before, 1);
  return region;
}

value_t* row_sort(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t type = *type_at(x);
  uint32_t operands = 1 + pick(g, 2);
  spec_t s = SPEC(SORT);
  int64_t axis = pick(g, (uint32_t)type.rank);
  spec_operand(&s, x);
  pestle_dtype_t other = dtype;
  bool second = one_in(g, 2);
  if (operands == 2) {
    // Positions beside keys, many of which are equal, tell a stable sort.
    if (one_in(g, 2)) {
      spec_t iota = SPEC(IOTA);
      other = PESTLE_I32;
      second = false;
      iota.type = type;
      iota.type.dtype = other;
      iota.typed = true;
      spec_i64(&iota, PESTLE_ATTR_iota_dimension, axis);
      spec_operand(&s, add(g, &iota, NULL));
    } else {
      spec_operand(&s, partner(g, &type, true));
    }
  }
  static const pestle_op_t orders[] = {PESTLE_OP_LT, PESTLE_OP_GT};
  s.regions[s.region_count++] =
      order_region(g, dtype, orders[pick(g, 2)], operands, other, second);
  spec_i64(&s, PESTLE_ATTR_dimension, one_in(g, 4) ? -1 : axis);
  spec_bool(&s, PESTLE_ATTR_is_stable, true);
  return add(g, &s, NULL);
}

// a > b of numbers, NaN first.
static pestle_region_t* descending_region(graph_t* g, pestle_dtype_t dtype,
                                          pestle_dtype_t other,
                                          uint32_t operands) {
  pestle_type_t s = scalar_of(dtype), o = scalar_of(other);
  pestle_type_t types[] = {s, s, o, o};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2 * operands, &b);
  pestle_value_t *x = argument(&b, 0), *y = argument(&b, 1);
  pestle_value_t* before = raw(g, &b, PESTLE_OP_GT, x, y, NULL);
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    pestle_value_t* nan = raw(g, &b, PESTLE_OP_IS_NAN, x, NULL, NULL);
    pestle_value_t* number = raw(g, &b, PESTLE_OP_EQ, y, y, NULL);
    nan = raw(g, &b, PESTLE_OP_AND, nan, number, NULL);
    before = raw(g, &b, PESTLE_OP_OR, before, nan, NULL);
  }
  raw_return(g, &b, &before, 1);
  return region;
}

value_t* row_sort_first(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t type = *type_at(x);
  uint32_t operands = 1 + pick(g, 2);
  spec_t s = SPEC(SORT_FIRST);
  int64_t axis = pick(g, (uint32_t)type.rank);
  spec_operand(&s, x);
  if (operands == 2) spec_operand(&s, partner(g, &type, true));
  s.regions[s.region_count++] = descending_region(g, dtype, dtype, operands);
  spec_i64(&s, PESTLE_ATTR_dimension, axis);
  spec_i64(&s, PESTLE_ATTR_count, pick(g, (uint32_t)type.dims[axis] + 1));
  return add(g, &s, NULL);
}

// --- scatter ---

// (old, new) -> new
static pestle_region_t* replace_region(graph_t* g, pestle_dtype_t dtype) {
  pestle_type_t types[] = {scalar_of(dtype), scalar_of(dtype)};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2, &b);
  pestle_value_t* y = argument(&b, 1);
  raw_return(g, &b, &y, 1);
  return region;
}

static pestle_region_t* pick_region(graph_t* g, pestle_dtype_t dtype) {
  static const pestle_op_t ops[] = {PESTLE_OP_ADD, PESTLE_OP_MAXIMUM,
                                    PESTLE_OP_MULTIPLY};
  if (one_in(g, 3)) return replace_region(g, dtype);
  if (is_complex(dtype)) return reduce_region(g, PESTLE_OP_ADD, dtype);
  return reduce_region(g, ops[pick(g, 3)], dtype);
}

static value_t* index_values(graph_t* g, int32_t rank, const int64_t* dims,
                             int64_t limit) {
  static const pestle_dtype_t dtypes[] = {PESTLE_I32, PESTLE_I64, PESTLE_I16,
                                          PESTLE_U8};
  return fresh(g, type_of(dtypes[pick(g, 4)], rank, dims), FILL_INDEX,
               limit > 100 ? 100 : limit);
}

// Rows by index, some twice, some outside.
static void scatter_rows(graph_t* g, spec_t* s, value_t* x, int64_t* axes) {
  pestle_type_t update = *type_at(x);
  int64_t n = pick(g, 8);
  value_t* at = index_values(g, 1, &n, update.dims[0] - 1);
  update.dims[0] = n;
  spec_operand(s, at);
  spec_operand(s, partner(g, &update, true));
  spec_i64s(s, PESTLE_ATTR_update_window_dims, axes + 1, update.rank - 1);
  spec_i64s(s, PESTLE_ATTR_inserted_window_dims, axes, 1);
  spec_i64s(s, PESTLE_ATTR_scatter_dims_to_operand_dims, axes, 1);
  spec_i64(s, PESTLE_ATTR_index_vector_dim, 1);
}

// Windows that overlap at pairs of positions; their axis comes first, the batch
// axis of the updates last.
static void scatter_windows(graph_t* g, spec_t* s, value_t* x, int64_t* axes) {
  static const int64_t map[] = {1, 0};
  pestle_type_t update = *type_at(x);
  int64_t pair[] = {2, 1 + pick(g, 5)};
  value_t* at = index_values(g, 2, pair, update.dims[0] / 2);
  for (int32_t i = 0; i < update.rank && i < 2; ++i)
    update.dims[i] -= update.dims[i] / 2;
  int32_t rank = update.rank;
  update.dims[update.rank++] = pair[1];
  spec_operand(s, at);
  spec_operand(s, partner(g, &update, true));
  spec_i64s(s, PESTLE_ATTR_update_window_dims, axes, rank);
  spec_i64s(s, PESTLE_ATTR_scatter_dims_to_operand_dims, map, 2);
  spec_i64(s, PESTLE_ATTR_index_vector_dim, 0);
}

// One window that an index of rank 1 puts anywhere.
static void scatter_slice(graph_t* g, spec_t* s, value_t* x, int64_t* axes) {
  pestle_type_t update = *type_at(x);
  int64_t rank = update.rank;
  value_t* at = index_values(g, 1, &rank, 2);
  for (int32_t i = 0; i < update.rank; ++i)
    update.dims[i] -= update.dims[i] / 3;
  spec_operand(s, at);
  spec_operand(s, partner(g, &update, true));
  spec_i64s(s, PESTLE_ATTR_update_window_dims, axes, update.rank);
  spec_i64s(s, PESTLE_ATTR_scatter_dims_to_operand_dims, axes, update.rank);
  spec_i64(s, PESTLE_ATTR_index_vector_dim, 0);
  spec_bool(s, PESTLE_ATTR_unique_indices, one_in(g, 2));
}

// One element for each of [4, batch] of the second axis; the first is batched.
static void scatter_batched(graph_t* g, spec_t* s, value_t* x, int64_t* axes) {
  pestle_type_t update = *type_at(x);
  int64_t dims[] = {1 + pick(g, 4), update.dims[0]};
  value_t* at = index_values(g, 2, dims, update.dims[1] - 1);
  update.dims[0] = dims[0];
  update.dims[1] = dims[1];
  spec_operand(s, at);
  spec_operand(s, partner(g, &update, true));
  spec_i64s(s, PESTLE_ATTR_update_window_dims, axes + 2, update.rank - 2);
  spec_i64s(s, PESTLE_ATTR_inserted_window_dims, axes + 1, 1);
  spec_i64s(s, PESTLE_ATTR_input_batching_dims, axes, 1);
  spec_i64s(s, PESTLE_ATTR_scatter_indices_batching_dims, axes + 1, 1);
  spec_i64s(s, PESTLE_ATTR_scatter_dims_to_operand_dims, axes + 1, 1);
  spec_i64(s, PESTLE_ATTR_index_vector_dim, 2);
}

value_t* row_scatter(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < PESTLE_MAX_RANK; ++i)
    axes[i] = i;
  spec_t s = SPEC(SCATTER);
  spec_operand(&s, x);
  uint32_t how = pick(g, type_at(x)->rank < 2 ? 2 : 4);
  if (how == 0) scatter_rows(g, &s, x, axes);
  if (how == 1) scatter_slice(g, &s, x, axes);
  if (how == 2) scatter_windows(g, &s, x, axes);
  if (how == 3) scatter_batched(g, &s, x, axes);
  s.regions[s.region_count++] = pick_region(g, dtype);
  return add(g, &s, NULL);
}

// --- select_and_scatter ---

value_t* row_select_and_scatter(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t source = *type_at(x);
  if (source.rank > 5) return NULL;
  int64_t size[8], stride[8], padding[16];
  for (int32_t i = 0; i < source.rank; ++i) {
    size[i] = one_in(g, 2) ? 1 + pick(g, 3) : 1;
    int64_t low = one_in(g, 4) ? pick(g, (uint32_t)size[i]) : 0;
    int64_t n = source.dims[i] + 2 * low;
    stride[i] = one_in(g, 2) ? 1 + pick(g, 2) : size[i];
    padding[2 * i] = padding[2 * i + 1] = low;
    source.dims[i] = n < size[i] ? 0 : (n - size[i]) / stride[i] + 1;
  }
  spec_t s = SPEC(SELECT_AND_SCATTER);
  spec_operand(&s, x);
  spec_operand(&s, partner(g, &source, true));
  spec_operand(&s, fresh(g, scalar_of(dtype), FILL_GRID, 9));
  spec_i64s(&s, PESTLE_ATTR_window_dimensions, size, source.rank);
  spec_i64s(&s, PESTLE_ATTR_window_strides, stride, source.rank);
  spec_i64s(&s, PESTLE_ATTR_padding, padding, 2 * source.rank);
  s.regions[s.region_count++] =
      reduce_region(g, one_in(g, 2) ? PESTLE_OP_GE : PESTLE_OP_LE, dtype);
  s.regions[s.region_count++] = reduce_region(g, PESTLE_OP_ADD, dtype);
  return add(g, &s, NULL);
}

// --- cholesky, triangular_solve, lu ---

// Of |n| x |n| with a diagonal that is large beside what else it has, so that it
// is well conditioned, symmetric or not.
static value_t* matrix(graph_t* g, pestle_dtype_t dtype, int64_t batch,
                       int64_t n) {
  int64_t dims[] = {batch, n, n};
  value_t* x = fresh(g, type_of(dtype, 3, dims), FILL_UNIT, 0);
  pestle_type_t at = type_of(PESTLE_I32, 3, dims);
  value_t* places[2];
  for (int i = 0; i < 2; ++i) {
    spec_t iota = SPEC(IOTA);
    iota.type = at;
    iota.typed = true;
    spec_i64(&iota, PESTLE_ATTR_iota_dimension, 1 + i);
    places[i] = add(g, &iota, NULL);
  }
  spec_t same = SPEC(EQ);
  spec_operand(&same, places[0]);
  spec_operand(&same, places[1]);
  spec_t s = SPEC(SELECT);
  spec_operand(&s, add(g, &same, NULL));
  spec_operand(&s, splat(g, type_of(dtype, 3, dims), matrix_diagonal(dtype)));
  spec_operand(&s, x);
  return add(g, &s, NULL);
}

// Smaller where roundings are large.
static int64_t order(graph_t* g, pestle_dtype_t dtype) {
  static const int64_t orders[] = {1, 2, 3, 5, 8, 13, 16, 20};
  if (matrix_diagonal(dtype) < 2) return 1;
  return orders[pick(g, pestle_dtype_size(dtype) == 1 ? 2
                        : is_narrow(dtype)            ? 4
                                                      : 8)];
}

value_t* row_cholesky(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(CHOLESKY);
  spec_operand(&s, matrix(g, dtype, 1 + pick(g, 2), order(g, dtype)));
  spec_bool(&s, PESTLE_ATTR_lower, one_in(g, 2));
  return add(g, &s, NULL);
}

value_t* row_triangular_solve(graph_t* g, pestle_dtype_t dtype) {
  int64_t batch = 1 + pick(g, 2), n = order(g, dtype), m = 1 + pick(g, 5);
  bool left = one_in(g, 2);
  int64_t dims[] = {batch, left ? n : m, left ? m : n};
  spec_t s = SPEC(TRIANGULAR_SOLVE);
  spec_operand(&s, matrix(g, dtype, batch, n));
  spec_operand(&s, fresh(g, type_of(dtype, 3, dims), FILL_UNIT, 0));
  spec_bool(&s, PESTLE_ATTR_left_side, left);
  spec_bool(&s, PESTLE_ATTR_lower, one_in(g, 2));
  spec_bool(&s, PESTLE_ATTR_unit_diagonal, false);
  spec_str(&s, PESTLE_ATTR_transpose_a,
           one_in(g, 2) ? "TRANSPOSE" : "NO_TRANSPOSE");
  return add(g, &s, NULL);
}

// A matrix, upside down one time in two: then each step finds its pivot at the
// other end, whatever is rounded before.
static value_t* pivoted(graph_t* g, pestle_dtype_t dtype, int64_t batch) {
  value_t* a = matrix(g, dtype, batch, order(g, dtype));
  if (!a || one_in(g, 2)) return a;
  int64_t axis = 1;
  spec_t s = SPEC(REVERSE);
  spec_operand(&s, a);
  spec_i64s(&s, PESTLE_ATTR_dimensions, &axis, 1);
  return add(g, &s, NULL);
}

value_t* row_lu(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(LU);
  spec_operand(&s, pivoted(g, dtype, 1 + pick(g, 2)));
  return add(g, &s, NULL);
}

value_t* row_inverse(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(INVERSE);
  spec_operand(&s, pivoted(g, dtype, 1 + pick(g, 2)));
  return add(g, &s, NULL);
}

value_t* row_solve(graph_t* g, pestle_dtype_t dtype) {
  int64_t batch = 1 + pick(g, 2);
  value_t* a = pivoted(g, dtype, batch);
  if (!a) return NULL;
  int64_t dims[] = {batch, type_at(a)->dims[1], 1 + pick(g, 5)};
  spec_t s = SPEC(SOLVE);
  spec_operand(&s, a);
  spec_operand(&s, fresh(g, type_of(dtype, 3, dims), FILL_UNIT, 0));
  return add(g, &s, NULL);
}

static value_t* factors(graph_t* g, pestle_op_t op, pestle_attr_name_t flag,
                        pestle_dtype_t dtype) {
  spec_t s = {.op = op};
  spec_operand(&s, pivoted(g, dtype, 1 + pick(g, 2)));
  spec_bool(&s, flag, one_in(g, 2));
  return add(g, &s, NULL);
}

value_t* row_qr(graph_t* g, pestle_dtype_t dtype) {
  return factors(g, PESTLE_OP_QR, PESTLE_ATTR_full, dtype);
}

value_t* row_eigh(graph_t* g, pestle_dtype_t dtype) {
  return factors(g, PESTLE_OP_EIGH, PESTLE_ATTR_lower, dtype);
}

value_t* row_svd(graph_t* g, pestle_dtype_t dtype) {
  return factors(g, PESTLE_OP_SVD, PESTLE_ATTR_full, dtype);
}
