// SPDX-License-Identifier: Apache-2.0
// Random instances of reductions, windows, contractions and composites.
#include <string.h>

#include "base/half.h"
#include "ir/cumulative.h"
#include "random/random.h"

static const pestle_type_t* type_at(const value_t* v) {
  return v->value->type;
}

// --- Regions: ops that are not evaluated by themselves ---

pestle_value_t* raw(graph_t* g, pestle_builder_t* b, pestle_op_t op,
                    pestle_value_t* x, pestle_value_t* y, pestle_value_t* z) {
  pestle_value_t* operands[] = {x, y, z};
  pestle_node_spec_t spec = {.op = op,
                             .operands = operands,
                             .operand_count = z   ? 3
                                              : y ? 2
                                                  : 1};
  pestle_node_t* node;
  expect(g, pestle_node_create(b, &spec, &node));
  return &node->results[0];
}

pestle_value_t* raw_splat(graph_t* g, pestle_builder_t* b, pestle_dtype_t dtype,
                          double number) {
  uint64_t bits[2] = {splat_bits(dtype, number), 0};
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {scalar_of(dtype), bits, pestle_dtype_size(dtype), true}};
  pestle_value_t* out;
  expect(g, pestle_op_constant(b, &attrs, &out));
  return out;
}

pestle_region_t* raw_region(graph_t* g, const pestle_type_t* types,
                            size_t count, pestle_builder_t* out_inside) {
  pestle_region_t* region;
  *out_inside = (pestle_builder_t){.module = g->module};
  expect(g, pestle_region_create(g->module, types, count, &region,
                                 &out_inside->block));
  return region;
}

void raw_return(graph_t* g, pestle_builder_t* b, pestle_value_t* const* values,
                size_t count) {
  expect(g, pestle_op_return(b, values, count, NULL));
}

static pestle_value_t* argument(pestle_builder_t* b, size_t i) {
  return pestle_block_argument(b->block, i);
}

pestle_region_t* reduce_region(graph_t* g, pestle_op_t op,
                               pestle_dtype_t dtype) {
  pestle_type_t types[] = {scalar_of(dtype), scalar_of(dtype)};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2, &b);
  pestle_value_t* y = raw(g, &b, op, argument(&b, 0), argument(&b, 1), NULL);
  raw_return(g, &b, &y, 1);
  return region;
}

// acc + max(x, -3): more than one op, so elements are reduced in order.
static pestle_region_t* long_region(graph_t* g, pestle_dtype_t dtype) {
  pestle_type_t types[] = {scalar_of(dtype), scalar_of(dtype)};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2, &b);
  pestle_value_t* y = raw(g, &b, PESTLE_OP_MAXIMUM, argument(&b, 1),
                          raw_splat(g, &b, dtype, -3), NULL);
  y = raw(g, &b, PESTLE_OP_ADD, argument(&b, 0), y, NULL);
  raw_return(g, &b, &y, 1);
  return region;
}

// (best, at), (x, i) -> the larger, of equal ones the first; or the smaller.
static pestle_region_t* arg_region(graph_t* g, pestle_dtype_t dtype,
                                   pestle_op_t op) {
  pestle_type_t s = scalar_of(dtype), i = scalar_of(PESTLE_I32);
  pestle_type_t types[] = {s, i, s, i};
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 4, &b);
  pestle_value_t *x = argument(&b, 0), *y = argument(&b, 2), *out[2];
  pestle_value_t* stays = raw(g, &b, op, x, y, NULL);
  out[0] = raw(g, &b, PESTLE_OP_SELECT, stays, x, y);
  out[1] =
      raw(g, &b, PESTLE_OP_SELECT, stays, argument(&b, 1), argument(&b, 3));
  raw_return(g, &b, out, 2);
  return region;
}

// --- Reductions ---

// An op that reduces |dtype|, and what a reduction begins with.
static pestle_op_t pick_reducer(graph_t* g, pestle_dtype_t dtype) {
  static const pestle_op_t ops[] = {
      PESTLE_OP_ADD,      PESTLE_OP_ADD, PESTLE_OP_MAXIMUM, PESTLE_OP_MINIMUM,
      PESTLE_OP_MULTIPLY, PESTLE_OP_AND, PESTLE_OP_OR,      PESTLE_OP_XOR};
  if (is_complex(dtype))
    return one_in(g, 4) ? PESTLE_OP_MULTIPLY : PESTLE_OP_ADD;
  return ops[pick(g, is_float(dtype) ? 5 : 8)];
}

static value_t* reduce_start(graph_t* g, pestle_op_t op, pestle_dtype_t dtype) {
  pestle_type_t s = scalar_of(dtype);
  // The specification lets a reduction takes its start in any number of times.
  bool again = op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM ||
               op == PESTLE_OP_AND || op == PESTLE_OP_OR;
  if (one_in(g, 3) && (again || !g->peer)) return fresh(g, s, FILL_GRID, 9);
  if (is_float(dtype) && op == PESTLE_OP_MAXIMUM) return splat(g, s, -64);
  if (is_float(dtype) && op == PESTLE_OP_MINIMUM) return splat(g, s, 64);
  if (op == PESTLE_OP_MULTIPLY) return splat(g, s, 1);
  if (op == PESTLE_OP_AND) return splat(g, s, -1);
  return splat(g, s, 0);
}

static int32_t pick_axes(graph_t* g, int32_t rank, int64_t* axes) {
  int32_t n = 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (one_in(g, 2)) axes[n++] = i;
  }
  if (!n && rank && !one_in(g, 8)) axes[n++] = rank - 1;
  return n;
}

// Often spread over the row again, as norms do.
static void spread(graph_t* g, value_t* x, value_t* row, const int64_t* axes,
                   int32_t count) {
  const pestle_type_t* type = type_at(x);
  int64_t kept[PESTLE_MAX_RANK];
  int32_t n = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    bool reduced = false;
    for (int32_t k = 0; k < count; ++k)
      reduced |= axes[k] == i;
    if (!reduced) kept[n++] = i;
  }
  if (row->leaf || type_at(row)->dtype != type->dtype) return;
  spec_t s = SPEC(BROADCAST_IN_DIM);
  spec_operand(&s, row);
  spec_i64s(&s, PESTLE_ATTR_broadcast_dimensions, kept, n);
  s.type = *type;
  s.typed = true;
  value_t* wide = add(g, &s, NULL);
  if (!wide || type->dtype == PESTLE_I1) return;
  spec_t t = SPEC(SUBTRACT);
  spec_operand(&t, x);
  spec_operand(&t, wide);
  add(g, &t, NULL);
}

static value_t* reduce_two(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t type = *type_at(x), at = type;
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = pick_axes(g, type.rank, axes);
  if (g->peer && !n) return NULL;  // as in row_reduce()
  at.dtype = PESTLE_I32;
  spec_t iota = SPEC(IOTA);
  iota.type = at;
  iota.typed = true;
  spec_i64(&iota, PESTLE_ATTR_iota_dimension, n ? axes[n - 1] : 0);
  spec_t s = SPEC(REDUCE);
  spec_operand(&s, x);
  spec_operand(&s, add(g, &iota, NULL));
  spec_operand(&s, reduce_start(g, PESTLE_OP_MAXIMUM, dtype));
  spec_operand(&s, splat(g, scalar_of(PESTLE_I32), 0));
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  s.regions[s.region_count++] =
      arg_region(g, dtype, one_in(g, 2) ? PESTLE_OP_GE : PESTLE_OP_LE);
  return add(g, &s, NULL);
}

value_t* row_reduce(graph_t* g, pestle_dtype_t dtype) {
  uint32_t kind = pick(g, 8);
  // A region of one op alone means the same in any order.
  if (is_complex(dtype) || (g->peer && kind == 1)) kind = 7;
  if (kind == 0) return reduce_two(g, dtype);
  value_t* x = any_of(g, dtype, kind == 1, one_in(g, 8) ? 0 : 1);
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = pick_axes(g, type_at(x)->rank, axes);
  // XLA leaves the start out where no axis is reduced, which StableHLO allows.
  if (g->peer && !n) return NULL;
  pestle_op_t op = kind == 1 ? PESTLE_OP_ADD : pick_reducer(g, dtype);
  spec_t s = SPEC(REDUCE);
  spec_operand(&s, x);
  spec_operand(&s, reduce_start(g, op, dtype));
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  s.regions[s.region_count++] =
      kind == 1 ? long_region(g, dtype) : reduce_region(g, op, dtype);
  value_t* row = add(g, &s, NULL);
  if (row && one_in(g, 2)) spread(g, x, row, axes, n);
  return row;
}

value_t* row_reduce_window(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 1);
  const pestle_type_t* type = type_at(x);
  if (type->rank > 5) return NULL;
  int64_t size[8], stride[8], base[8], dilation[8], padding[16];
  for (int32_t i = 0; i < type->rank; ++i) {
    bool slides = one_in(g, 2);
    int64_t n = type->dims[i];
    size[i] = slides ? 1 + pick(g, 4) : 1;
    // A running reduction over the whole axis.
    bool running = slides && n > 1 && n <= 64 && one_in(g, 6);
    if (running) size[i] = n;
    stride[i] = slides && !running && one_in(g, 3) ? 1 + pick(g, 3) : 1;
    base[i] = slides && one_in(g, 8) ? 2 : 1;
    dilation[i] = slides && one_in(g, 6) ? 2 : 1;
    padding[2 * i] = running ? n - 1 : slides ? pick(g, 3) : 0;
    padding[2 * i + 1] = running ? 0 : slides ? pick(g, 3) : 0;
    if (slides && n > 3 && one_in(g, 8)) padding[2 * i] = -1;
  }
  bool in_order = one_in(g, 8) && !is_complex(dtype) && !g->peer;
  pestle_op_t op = in_order ? PESTLE_OP_ADD : pick_reducer(g, dtype);
  spec_t s = SPEC(REDUCE_WINDOW);
  spec_operand(&s, x);
  spec_operand(&s, reduce_start(g, op, dtype));
  spec_i64s(&s, PESTLE_ATTR_window_dimensions, size, type->rank);
  spec_i64s(&s, PESTLE_ATTR_window_strides, stride, type->rank);
  spec_i64s(&s, PESTLE_ATTR_base_dilations, base, type->rank);
  spec_i64s(&s, PESTLE_ATTR_window_dilations, dilation, type->rank);
  spec_i64s(&s, PESTLE_ATTR_padding, padding, 2 * type->rank);
  s.regions[s.region_count++] =
      in_order ? long_region(g, dtype) : reduce_region(g, op, dtype);
  return add(g, &s, NULL);
}

value_t* row_cumulative(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 1);
  const pestle_type_t* type = type_at(x);
  if (!type->rank) return NULL;
  pestle_op_t op = pick_reducer(g, dtype);
  if (is_float(dtype) && one_in(g, 4)) op = PESTLE_OP_LOGSUMEXP;
  spec_t s = SPEC(CUMULATIVE);
  spec_operand(&s, x);
  spec_i64(&s, PESTLE_ATTR_dimension, pick(g, (uint32_t)type->rank));
  spec_str(&s, PESTLE_ATTR_combiner, pestle_cumulative_name(op));
  spec_bool(&s, PESTLE_ATTR_reverse, one_in(g, 3));
  spec_bool(&s, PESTLE_ATTR_exclusive, one_in(g, 3));
  return add(g, &s, NULL);
}

// --- Contractions ---

// A sum's element type: narrow ones are summed in a wider one too.
static pestle_dtype_t sum_dtype(graph_t* g, pestle_dtype_t dtype) {
  if (one_in(g, 2) || is_complex(dtype)) return dtype;
  if (is_float(dtype)) return dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  return pestle_dtype_size(dtype) == 8 ? dtype : PESTLE_I32;
}

// The right side's axes, in any order: those of the left that are summed or
// batched, and some of its own.
value_t* row_dot_general(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 1);
  const pestle_type_t* type = type_at(x);
  if (type->rank > 4) return NULL;
  int64_t batch[4], sums[4], free_axes[4], other[8], places[8];
  int64_t dims[8], lhs_b[4], rhs_b[4], lhs_c[4], rhs_c[4];
  int32_t nb = 0, nc = 0, nf = 0, n = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    uint32_t k = pick(g, 4);
    if (k == 0)
      batch[nb++] = i;
    else if (k < 3 || (i == type->rank - 1 && !nc))
      sums[nc++] = i;
    else
      free_axes[nf++] = i;
  }
  static const int64_t extents[] = {1, 2, 3, 5, 8, 17, 32};
  int32_t own = (int32_t)pick(g, 3), rank = nb + nc + own;
  for (int32_t i = 0; i < rank; ++i) {
    int32_t j = (int32_t)pick(g, (uint32_t)i + 1);
    places[i] = places[j];
    places[j] = i;
  }
  for (int32_t i = 0; i < nb; ++i) {
    lhs_b[i] = batch[i];
    rhs_b[i] = places[i];
    other[places[i]] = dims[n++] = type->dims[batch[i]];
  }
  for (int32_t i = 0; i < nc; ++i) {
    lhs_c[i] = sums[i];
    rhs_c[i] = places[nb + i];
    other[places[nb + i]] = type->dims[sums[i]];
  }
  // Pairs of summed axes may be in any order.
  if (nc > 1 && one_in(g, 2)) {
    int64_t l = lhs_c[0], r = rhs_c[0];
    lhs_c[0] = lhs_c[nc - 1];
    rhs_c[0] = rhs_c[nc - 1];
    lhs_c[nc - 1] = l;
    rhs_c[nc - 1] = r;
  }
  for (int32_t i = 0; i < own; ++i)
    other[places[nb + nc + i]] = extents[pick(g, 7)];
  for (int32_t i = 0; i < nf; ++i)
    dims[n++] = type->dims[free_axes[i]];
  for (int32_t i = 0; i < rank; ++i) {
    bool mine = false;
    for (int32_t k = 0; k < nb + nc; ++k)
      mine |= places[k] == i;
    if (!mine) dims[n++] = other[i];
  }
  pestle_type_t y = type_of(dtype, rank, other);
  spec_t s = SPEC(DOT_GENERAL);
  s.type = type_of(sum_dtype(g, dtype), n, dims);
  s.typed = true;
  double work = (double)pestle_type_count(&s.type);
  for (int32_t i = 0; i < nc; ++i)
    work *= (double)type->dims[sums[i]];
  if (work > 200.0 * (double)g->limit || pestle_type_count(&y) > g->limit)
    return NULL;
  spec_operand(&s, x);
  spec_operand(&s, partner(g, &y, false));
  spec_i64s(&s, PESTLE_ATTR_lhs_batching_dimensions, lhs_b, nb);
  spec_i64s(&s, PESTLE_ATTR_rhs_batching_dimensions, rhs_b, nb);
  spec_i64s(&s, PESTLE_ATTR_lhs_contracting_dimensions, lhs_c, nc);
  spec_i64s(&s, PESTLE_ATTR_rhs_contracting_dimensions, rhs_c, nc);
  return add(g, &s, NULL);
}

static int64_t places_of(int64_t n, int64_t base, int64_t low, int64_t high,
                         int64_t size, int64_t dilation, int64_t stride) {
  int64_t padded = (n ? (n - 1) * base + 1 : 0) + low + high;
  int64_t reach = (size - 1) * dilation + 1;
  return padded <= 0 || reach > padded ? 0 : (padded - reach) / stride + 1;
}

// Axes are [batch, features, space..] or [batch, space.., features]; the
// kernel's [out, in, space..] or [space.., in, out].
value_t* row_convolution(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 2);
  const pestle_type_t* type = type_at(x);
  if (type->rank > 5) return NULL;
  int32_t space = type->rank - 2;
  bool last = one_in(g, 2), k_last = one_in(g, 2);
  int32_t feature = last ? space + 1 : 1, first = last ? 1 : 2;
  int64_t features = type->dims[feature], batch = type->dims[0];
  static const int64_t outs[] = {1, 2, 3, 5, 8, 16};
  int64_t groups = features && one_in(g, 3) ? features : 1, batch_groups = 1;
  int64_t out = outs[pick(g, 6)];
  if (groups > 1) {
    out = groups * (1 + pick(g, 2));
  } else if (batch > 1 && one_in(g, 8)) {
    batch_groups = batch;
    out = batch * (1 + pick(g, 2));
  }
  int64_t stride[3], base[3], dilation[3], turned[3], padding[6];
  int64_t spaces[3], k_spaces[3];
  pestle_type_t w = type_of(dtype, type->rank, type->dims);
  spec_t s = SPEC(CONVOLUTION);
  s.type = type_of(sum_dtype(g, dtype), type->rank, type->dims);
  s.typed = true;
  w.dims[k_last ? space + 1 : 0] = out;
  w.dims[k_last ? space : 1] = features / groups;
  s.type.dims[0] = batch / batch_groups;
  s.type.dims[feature] = out;
  for (int32_t i = 0; i < space; ++i) {
    int64_t n = type->dims[first + i], size = 1 + pick(g, 3);
    if (n < 2 && !one_in(g, 4)) size = 1;
    stride[i] = one_in(g, 3) ? 2 : 1;
    base[i] = one_in(g, 6) ? 2 : 1;
    dilation[i] = one_in(g, 6) ? 2 : 1;
    turned[i] = one_in(g, 2);
    padding[2 * i] = one_in(g, 2) ? size / 2 : one_in(g, 6) && n > 2 ? -1 : 0;
    padding[2 * i + 1] = one_in(g, 2) ? size / 2 : 0;
    spaces[i] = first + i;
    k_spaces[i] = i + (k_last ? 0 : 2);
    w.dims[k_spaces[i]] = size;
    s.type.dims[first + i] =
        places_of(n, base[i], padding[2 * i], padding[2 * i + 1], size,
                  dilation[i], stride[i]);
  }
  double work = (double)pestle_type_count(&s.type) *
                (double)pestle_type_count(&w) / (double)out;
  if (work > 200.0 * (double)g->limit || pestle_type_count(&w) > g->limit)
    return NULL;
  spec_operand(&s, x);
  spec_operand(&s, partner(g, &w, false));
  spec_i64s(&s, PESTLE_ATTR_window_strides, stride, space);
  spec_i64s(&s, PESTLE_ATTR_padding, padding, 2 * space);
  spec_i64s(&s, PESTLE_ATTR_lhs_dilation, base, space);
  spec_i64s(&s, PESTLE_ATTR_rhs_dilation, dilation, space);
  spec_i64s(&s, PESTLE_ATTR_window_reversal, turned, space);
  spec_i64(&s, PESTLE_ATTR_input_batch_dimension, 0);
  spec_i64(&s, PESTLE_ATTR_input_feature_dimension, feature);
  spec_i64s(&s, PESTLE_ATTR_input_spatial_dimensions, spaces, space);
  spec_i64(&s, PESTLE_ATTR_kernel_input_feature_dimension, k_last ? space : 1);
  spec_i64(&s, PESTLE_ATTR_kernel_output_feature_dimension,
           k_last ? space + 1 : 0);
  spec_i64s(&s, PESTLE_ATTR_kernel_spatial_dimensions, k_spaces, space);
  spec_i64(&s, PESTLE_ATTR_output_batch_dimension, 0);
  spec_i64(&s, PESTLE_ATTR_output_feature_dimension, feature);
  spec_i64s(&s, PESTLE_ATTR_output_spatial_dimensions, spaces, space);
  spec_i64(&s, PESTLE_ATTR_feature_group_count, groups);
  spec_i64(&s, PESTLE_ATTR_batch_group_count, batch_groups);
  return add(g, &s, NULL);
}

// --- Composites ---

static value_t* over_axes(graph_t* g, pestle_op_t op, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 1);
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = pick_axes(g, type_at(x)->rank, axes);
  if (!n) axes[n++] = 0;
  spec_t s = {.op = op};
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  return add(g, &s, NULL);
}

value_t* row_softmax(graph_t* g, pestle_dtype_t dtype) {
  return over_axes(g, PESTLE_OP_SOFTMAX, dtype);
}

value_t* row_log_softmax(graph_t* g, pestle_dtype_t dtype) {
  return over_axes(g, PESTLE_OP_LOG_SOFTMAX, dtype);
}

value_t* row_logsumexp(graph_t* g, pestle_dtype_t dtype) {
  return over_axes(g, PESTLE_OP_LOGSUMEXP, dtype);
}

// Windows that divide their axis, that overlap, and of an element or two; |even|:
// all of 1, 2 or 4 elements.
static int64_t pool_size(graph_t* g, int64_t extent, bool even) {
  uint32_t count = (uint32_t)(extent < 9 ? extent + 2 : 9);
  if (extent == 0) return 0;
  if (extent % 4 == 0 && one_in(g, 3)) return extent / 4;
  if (extent % 2 == 0 && one_in(g, 3)) return extent / 2;
  if (!even) return 1 + pick(g, count);
  return extent < 9 ? extent + pick(g, (uint32_t)extent) : extent;
}

static value_t* pool(graph_t* g, pestle_op_t op, value_t* x, bool even) {
  const pestle_type_t* type = type_at(x);
  int64_t axes[PESTLE_MAX_RANK], sizes[PESTLE_MAX_RANK];
  int32_t n = pick_axes(g, type->rank, axes);
  for (int32_t i = 0; i < n; ++i)
    sizes[i] = pool_size(g, type->dims[axes[i]], even);
  spec_t s = {.op = op};
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  spec_i64s(&s, PESTLE_ATTR_output_sizes, sizes, n);
  return add(g, &s, NULL);
}

// Of numbers with few bits: sums are exact in any order, and the mean is rounded
// once. In narrow types it would be rounded twice but for such windows.
value_t* row_adaptive_average_pool(graph_t* g, pestle_dtype_t dtype) {
  return pool(g, PESTLE_OP_ADAPTIVE_AVERAGE_POOL,
              fresh(g, pick_shape(g, dtype), FILL_GRID, 0), is_narrow(dtype));
}

value_t* row_adaptive_max_pool(graph_t* g, pestle_dtype_t dtype) {
  return pool(g, PESTLE_OP_ADAPTIVE_MAX_POOL, any_of(g, dtype, true, 1), false);
}

static value_t* norm(graph_t* g, pestle_op_t op, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  const pestle_type_t* type = type_at(x);
  int64_t axes[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  int32_t n = pick_axes(g, type->rank, axes);
  if (!n) axes[n++] = 0;
  for (int32_t i = 0; i < n; ++i)
    dims[i] = type->dims[axes[i]];
  pestle_type_t along = type_of(dtype, n, dims);
  spec_t s = {.op = op};
  spec_operand(&s, x);
  spec_operand(&s, fresh(g, along, FILL_SCALE, 0));
  fill_t offset = is_positive(dtype) ? FILL_GRID : FILL_UNIT;
  if (op == PESTLE_OP_LAYER_NORM) spec_operand(&s, fresh(g, along, offset, 0));
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  spec_f64(&s, PESTLE_ATTR_epsilon, 0.1);
  return add(g, &s, NULL);
}

// x in [-1, 1], so that sums have a bound.
value_t* row_norm_grad(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t type = *type_at(x);
  if (!(x->largest <= 1)) x = fresh(g, type, FILL_UNIT, 0);
  int64_t first = pick(g, (uint32_t)type.rank), rows = 1;
  if (!first && type.rank == PESTLE_MAX_RANK) first = 1;
  for (int64_t d = 0; d < first; ++d)
    rows *= type.dims[d];
  spec_t s = SPEC(NORM_GRAD);
  spec_operand(&s, x);
  spec_operand(
      &s,
      fresh(g, type_of(dtype, type.rank - (int32_t)first, type.dims + first),
            FILL_UNIT, 0));
  spec_operand(&s, fresh(g, type, FILL_UNIT, 0));
  spec_i64(&s, PESTLE_ATTR_dimension, first);
  spec_f64(&s, PESTLE_ATTR_epsilon, 0.1);
  spec_bool(&s, PESTLE_ATTR_centred, one_in(g, 2));
  spec_i64(&s, PESTLE_ATTR_blocks,
           1 + pick(g, (uint32_t)(rows < 1   ? 1
                                  : rows > 5 ? 5
                                             : rows)));
  return add(g, &s, NULL);
}

// x and scales in [-1, 1], so that sums have a bound.
value_t* row_block_dot(graph_t* g, pestle_dtype_t dtype) {
  static const int64_t bits[] = {2, 4, 8}, extents[] = {1, 2, 3, 5, 8, 17};
  int64_t each = bits[pick(g, 3)], block = 16 << pick(g, 4);
  int64_t blocks = 1 + pick(g, 5), n = extents[pick(g, 6)];
  int64_t k = blocks * block - (one_in(g, 2) ? pick(g, (uint32_t)block) : 0);
  int64_t x[] = {extents[pick(g, 6)], k}, w[] = {n, blocks * block * each / 8};
  int64_t scales[] = {n, blocks};
  spec_t s = SPEC(BLOCK_DOT);
  spec_operand(&s, fresh(g, type_of(dtype, 2, x), FILL_UNIT, 0));
  spec_operand(&s, one_in(g, 2)
                       ? constant(g, type_of(PESTLE_U8, 2, w), FILL_EDGES)
                       : fresh(g, type_of(PESTLE_U8, 2, w), FILL_EDGES, 0));
  spec_operand(&s, fresh(g, type_of(dtype, 2, scales), FILL_UNIT, 0));
  uint32_t kind = pick(g, 3);
  if (kind == 1)
    spec_operand(&s, fresh(g, type_of(PESTLE_U8, 2, scales), FILL_GRID, 0));
  if (kind == 2)
    spec_operand(&s, fresh(g, type_of(dtype, 2, scales), FILL_GRID, 0));
  spec_i64(&s, PESTLE_ATTR_bits, each);
  spec_i64(&s, PESTLE_ATTR_block, block);
  return add(g, &s, NULL);
}

value_t* row_layer_norm(graph_t* g, pestle_dtype_t dtype) {
  return norm(g, PESTLE_OP_LAYER_NORM, dtype);
}

value_t* row_rms_norm(graph_t* g, pestle_dtype_t dtype) {
  return norm(g, PESTLE_OP_RMS_NORM, dtype);
}

value_t* row_gelu(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(GELU);
  spec_operand(&s, any_of(g, dtype, false, 0));
  spec_bool(&s, PESTLE_ATTR_approximate, one_in(g, 2));
  return add(g, &s, NULL);
}

value_t* row_silu(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(SILU);
  spec_operand(&s, any_of(g, dtype, false, 0));
  return add(g, &s, NULL);
}

value_t* row_hard_sigmoid(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(HARD_SIGMOID);
  spec_operand(&s, any_of(g, dtype, false, 0));
  spec_f64(&s, PESTLE_ATTR_alpha, 0.2);
  spec_f64(&s, PESTLE_ATTR_beta, 0.5);
  return add(g, &s, NULL);
}

static pestle_dtype_t quantised_dtype(graph_t* g) {
  static const pestle_dtype_t dtypes[] = {
      PESTLE_I8,         PESTLE_U8,         PESTLE_I16,      PESTLE_U16,
      PESTLE_I4,         PESTLE_U4,         PESTLE_F8E4M3FN, PESTLE_F8E5M2,
      PESTLE_F8E4M3FNUZ, PESTLE_F8E5M2FNUZ, PESTLE_I2,       PESTLE_U2,
      PESTLE_F4E2M1FN,   PESTLE_F6E2M3FN};
  for (;;) {
    pestle_dtype_t dtype = dtypes[pick(g, sizeof(dtypes) / sizeof(dtypes[0]))];
    if (is_generated(dtype)) return dtype;
  }
}

static value_t* quantisation(graph_t* g, value_t* x, pestle_dtype_t scale,
                             pestle_dtype_t q, pestle_op_t op) {
  const pestle_type_t* type = type_at(x);
  bool along = type->rank && one_in(g, 2);
  int64_t axis = type->rank ? pick(g, (uint32_t)type->rank) : 0;
  int64_t n = type->rank ? type->dims[axis] : 1;
  spec_t s = {.op = op};
  spec_operand(&s, x);
  spec_operand(&s, fresh(g, type_of(scale, along, &n), FILL_SCALE, 0));
  spec_operand(&s, fresh(g, type_of(q, along, &n), FILL_GRID, 0));
  spec_i64(&s, PESTLE_ATTR_axis, axis);
  return add(g, &s, NULL);
}

value_t* row_quantize(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 0);
  return quantisation(g, x, dtype, quantised_dtype(g), PESTLE_OP_QUANTIZE);
}

// |dtype| is the quantised one.
value_t* row_dequantize(graph_t* g, pestle_dtype_t dtype) {
  return quantisation(g, any_of(g, dtype, true, 0),
                      pick_dtype(g, PESTLE_KIND_FLOAT), dtype,
                      PESTLE_OP_DEQUANTIZE);
}

// q, k, v, and of a gradient the result and its cotangent in front of bias and mask.
static value_t* attention(graph_t* g, bool is_grad, pestle_dtype_t dtype) {
  static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 16, 17};
  int64_t batch = 1 + pick(g, 2), rows = extents[pick(g, 8)];
  int64_t columns = extents[pick(g, 8)], depth = extents[pick(g, 8)];
  int64_t width = extents[pick(g, 8)];
  int64_t q[] = {batch, rows, depth}, k[] = {batch, columns, depth};
  int64_t v[] = {batch, columns, width}, y[] = {batch, rows, width};
  int64_t bias[] = {one_in(g, 2) ? batch : 1, one_in(g, 3) ? 1 : rows,
                    one_in(g, 3) ? 1 : columns};
  spec_t s = SPEC(ATTENTION), grad = SPEC(ATTENTION_GRAD);
  pestle_type_t qt = type_of(dtype, 3, q);
  value_t* there = of_type(g, &qt, true);
  spec_operand(
      &s, there && there->largest <= 1 ? there : fresh(g, qt, FILL_UNIT, 0));
  spec_operand(&s, fresh(g, type_of(dtype, 3, k), FILL_UNIT, 0));
  spec_operand(&s, fresh(g, type_of(dtype, 3, v), FILL_UNIT, 0));
  bool has_bias = one_in(g, 2);
  if (has_bias)
    spec_operand(&s, fresh(g, type_of(dtype, 3, bias), FILL_UNIT, 0));
  if (is_grad) spec_bool(&grad, PESTLE_ATTR_of_bias, has_bias && one_in(g, 2));
  bool has_mask = one_in(g, 3);
  double masked = one_in(g, 2) ? -2 : -1e9;
  if (has_mask)
    spec_operand(&s, fresh(g, type_of(PESTLE_I1, 3, bias), FILL_GRID, 0));
  spec_t* both[] = {&s, &grad};
  for (int i = 0; i < 2; ++i) {
    if (has_mask) spec_f64(both[i], PESTLE_ATTR_masked, masked);
    spec_f64(both[i], PESTLE_ATTR_scale, 0.5);
  }
  // No device takes the result of types of 8 bits and fewer, and what it may be off would
  // leave nothing to compare.
  bool is_small = roundoff(dtype) > roundoff(PESTLE_BF16);
  value_t* result = is_grad && is_small
                        ? fresh(g, type_of(dtype, 3, y), FILL_UNIT, 0)
                        : add(g, &s, NULL);
  if (!is_grad || !result) return result;
  for (size_t i = 0; i < 3; ++i)
    spec_operand(&grad, s.operands[i]);
  spec_operand(&grad, result);
  spec_operand(&grad, fresh(g, type_of(dtype, 3, y), FILL_UNIT, 0));
  for (size_t i = 3; i < s.operand_count; ++i)
    spec_operand(&grad, s.operands[i]);
  return add(g, &grad, NULL);
}

value_t* row_attention(graph_t* g, pestle_dtype_t dtype) {
  return attention(g, false, dtype);
}

value_t* row_attention_grad(graph_t* g, pestle_dtype_t dtype) {
  return attention(g, true, dtype);
}

value_t* row_batch_norm_inference(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 1);
  const pestle_type_t* type = type_at(x);
  int64_t axis = pick(g, (uint32_t)type->rank);
  pestle_type_t along = type_of(dtype, 1, &type->dims[axis]);
  static const fill_t fills[] = {FILL_SCALE, FILL_UNIT, FILL_UNIT, FILL_SCALE};
  spec_t s = SPEC(BATCH_NORM_INFERENCE);
  spec_operand(&s, x);
  for (int i = 0; i < 4; ++i)
    spec_operand(&s, fresh(g, along, fills[i], 0));
  spec_f64(&s, PESTLE_ATTR_epsilon, 0.125);
  spec_i64(&s, PESTLE_ATTR_feature_index, axis);
  return add(g, &s, NULL);
}

// x in [-1, 1], so that deviations and sums have a bound.
static value_t* batch_norm(graph_t* g, spec_t* s, pestle_dtype_t dtype) {
  bool grad = s->op == PESTLE_OP_BATCH_NORM_GRAD;
  value_t* x = any_of(g, dtype, true, 1);
  pestle_type_t type = *type_at(x);
  if (!(x->largest <= 1)) x = fresh(g, type, FILL_UNIT, 0);
  int64_t axis = pick(g, (uint32_t)type.rank);
  pestle_type_t along = type_of(dtype, 1, &type.dims[axis]);
  static const fill_t fills[] = {FILL_SCALE, FILL_UNIT, FILL_SCALE};
  spec_operand(s, x);
  for (int i = 0; i < (grad ? 3 : 2); ++i) {
    // What is below the mean is lifted above 0, where all has to be.
    bool lifts = i == 1 && is_positive(dtype);
    spec_operand(s, lifts ? splat(g, along, 4) : fresh(g, along, fills[i], 0));
  }
  if (grad) spec_operand(s, fresh(g, type, FILL_UNIT, 0));
  spec_f64(s, PESTLE_ATTR_epsilon, 0.125);
  spec_i64(s, PESTLE_ATTR_feature_index, axis);
  return add(g, s, NULL);
}

value_t* row_batch_norm_training(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(BATCH_NORM_TRAINING);
  return batch_norm(g, &s, dtype);
}

value_t* row_batch_norm_grad(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(BATCH_NORM_GRAD);
  return batch_norm(g, &s, dtype);
}

value_t* row_reduce_precision(graph_t* g, pestle_dtype_t dtype) {
  static const int64_t bits[][2] = {{5, 10}, {8, 7},   {4, 3},
                                    {1, 0},  {11, 52}, {6, 0}};
  uint32_t k = pick(g, 6);
  spec_t s = SPEC(REDUCE_PRECISION);
  spec_operand(&s, any_of(g, dtype, true, 0));
  spec_i64(&s, PESTLE_ATTR_exponent_bits, bits[k][0]);
  spec_i64(&s, PESTLE_ATTR_mantissa_bits, bits[k][1]);
  return add(g, &s, NULL);
}

// (a, b) -> a < 1 ? max(a, b) : b, which has a constant and a predicate.
value_t* row_map(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, true, 0);
  pestle_type_t types[] = {scalar_of(dtype), scalar_of(dtype)};
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < PESTLE_MAX_RANK; ++i)
    axes[i] = i;
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, 2, &b);
  pestle_value_t *p = argument(&b, 0), *q = argument(&b, 1);
  static const pestle_op_t chooses[] = {PESTLE_OP_LT, PESTLE_OP_GE,
                                        PESTLE_OP_EQ};
  pestle_value_t* low =
      raw(g, &b, chooses[pick(g, 3)], p, raw_splat(g, &b, dtype, 1), NULL);
  pestle_value_t* y = raw(
      g, &b, PESTLE_OP_SELECT, low,
      raw(g, &b, one_in(g, 2) ? PESTLE_OP_MAXIMUM : PESTLE_OP_ADD, p, q, NULL),
      q);
  raw_return(g, &b, &y, 1);
  spec_t s = SPEC(MAP);
  spec_operand(&s, x);
  spec_operand(&s, partner(g, type_at(x), true));
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, type_at(x)->rank);
  s.regions[s.region_count++] = region;
  return add(g, &s, NULL);
}
