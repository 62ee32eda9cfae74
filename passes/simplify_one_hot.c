// SPDX-License-Identifier: Apache-2.0
// The rule about products with a one-hot tensor: such a product picks rows of the other
// operand, so it becomes a gather.
#include <math.h>

#include "base/half.h"
#include "passes/simplify.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// Ones where |index| is the position along |axis|, zeros elsewhere.
typedef struct one_hot_t {
  pestle_value_t* index;  // a broadcast that repeats it along |axis|
  int64_t axis;
} one_hot_t;

static bool repeats_along(const pestle_value_t* value, int64_t axis) {
  if (!pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM)) return false;
  int64_t from = pestle_pass_source_dim(value->node, axis);
  return from < 0 || operand(value->node, 0)->type->dims[from] == 1;
}

// What |value|, a one or a zero, is the truth of; NULL: no such thing.
static const pestle_node_t* read_truth(const pestle_value_t* value) {
  if (pestle_pass_is(value, PESTLE_OP_CONVERT)) {
    return operand(value->node, 0)->node;
  }
  if (pestle_pass_is(value, PESTLE_OP_SELECT) &&
      pestle_pass_splat_is(operand(value->node, 1), 1) &&
      pestle_pass_splat_is(operand(value->node, 2), 0)) {
    return operand(value->node, 0)->node;
  }
  return NULL;
}

static bool has_zero(pestle_dtype_t dtype) {
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return true;
  double zero = pestle_float_decode(dtype, pestle_float_encode(dtype, 0));
  return !(zero < 0) && !(zero > 0) && !isnan(zero);
}

static bool read_one_hot(const pestle_value_t* value, int64_t axis,
                         one_hot_t* out) {
  const pestle_node_t* equal = read_truth(value);
  if (!equal || equal->op != PESTLE_OP_EQ ||
      !pestle_dtype_is(operand(equal, 0)->type->dtype, PESTLE_KIND_INT) ||
      equal->results[0].type->rank != value->type->rank ||
      !has_zero(value->type->dtype)) {
    return false;
  }
  for (size_t side = 0; side < 2; ++side) {
    pestle_value_t* index = operand(equal, side);
    if (!repeats_along(index, axis) ||
        !pestle_pass_counts_along(operand(equal, 1 - side), axis)) {
      continue;
    }
    *out = (one_hot_t){index, axis};
    return true;
  }
  return false;
}

// Whether zeros times what |value| holds are zeros; |out_signed|: a -0 is among
// them, which the product, a sum from 0 on, has not.
static bool is_finite(const pestle_value_t* value, bool* out_signed) {
  const pestle_elements_t* e = pestle_value_constant(value);
  *out_signed = false;
  if (pestle_dtype_is(value->type->dtype, PESTLE_KIND_INT)) return true;
  if (!e || !pestle_dtype_is(value->type->dtype, PESTLE_KIND_FLOAT) ||
      !has_zero(value->type->dtype)) {
    return false;
  }
  size_t count = e->splat ? 1 : (size_t)pestle_type_count(value->type);
  for (size_t i = 0; i < count; ++i) {
    double v = pestle_pass_element_f64(e, i);
    if (!isfinite(v)) return false;
    if (fpclassify(v) == FP_ZERO && signbit(v)) *out_signed = true;
  }
  return true;
}

// The index without the axis along which it repeats.
static pestle_value_t* drop_axis(pestle_formula_t* f, const one_hot_t* hot) {
  const pestle_node_t* broadcast = hot->index->node;
  pestle_i64s_t dims = PESTLE_NODE_I64S(broadcast, broadcast_dimensions);
  pestle_value_t* x = operand(broadcast, 0);
  pestle_type_t from = *x->type, to = *hot->index->type;
  int64_t kept[PESTLE_MAX_RANK];
  from.rank = to.rank = 0;
  for (size_t i = 0; i < dims.count; ++i) {
    if (dims.data[i] == hot->axis) continue;
    kept[from.rank] = dims.data[i] - (dims.data[i] > hot->axis ? 1 : 0);
    from.dims[from.rank++] = x->type->dims[i];
  }
  for (int32_t i = 0; i < hot->index->type->rank; ++i) {
    if (i != hot->axis) to.dims[to.rank++] = hot->index->type->dims[i];
  }
  x = pestle_f_reshape_to(f, x, &from);
  return pestle_f_broadcast_to(f, x, &to, kept);
}

// The slices of |table| that |index|, of any shape, names along |axis|; the dims of
// |index| are the first of the result, or the last.
static pestle_value_t* take_slices(pestle_formula_t* f, pestle_value_t* table,
                                   int64_t axis, pestle_value_t* index,
                                   bool index_first) {
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  if (!index) return NULL;
  int32_t rank = table->type->rank, lead = index_first ? index->type->rank : 0;
  for (int32_t i = 0; i < rank; ++i)
    sizes[i] = i == axis ? 1 : table->type->dims[i];
  for (int32_t i = 0; i + 1 < rank; ++i)
    offsets[i] = lead + i;
  pestle_attr_t attrs[] = {PESTLE_SET_I64S(offset_dims, offsets, rank - 1),
                           PESTLE_SET_I64S(collapsed_slice_dims, &axis, 1),
                           PESTLE_SET_I64S(start_index_map, &axis, 1),
                           PESTLE_SET_I64(index_vector_dim, index->type->rank),
                           PESTLE_SET_I64S(slice_sizes, sizes, rank)};
  pestle_value_t* operands[] = {table, index};
  return pestle_f_make(f, PESTLE_OP_GATHER, operands, 2, attrs, 5, NULL);
}

// |slices| with zeros where |index| is no row of |extent|.
static pestle_value_t* clear_outside(pestle_formula_t* f, pestle_value_t* index,
                                     int64_t extent, bool index_first,
                                     pestle_value_t* slices) {
  if (!slices || !index) return NULL;
  const pestle_type_t* type = slices->type;
  pestle_dtype_t dtype = index->type->dtype;
  pestle_value_t* low = pestle_f_scalar(f, dtype, 0);
  pestle_value_t* high = pestle_f_scalar(f, dtype, (double)(extent - 1));
  pestle_value_t* row = pestle_f_clamp(f, low, index, high);
  int64_t dims[PESTLE_MAX_RANK];
  int32_t first = index_first ? 0 : type->rank - index->type->rank;
  for (int32_t i = 0; i < index->type->rank; ++i)
    dims[i] = first + i;
  pestle_value_t* inside = pestle_f_eq(f, row, index);
  inside = pestle_f_broadcast_to(f, inside, type, dims);
  return pestle_f_select(f, inside, slices, pestle_f_number(f, type, 0));
}

pestle_value_t* pestle_rule_dot_one_hot(pestle_formula_t* f,
                                        pestle_node_t* node) {
  pestle_i64s_t contracted[] = {
      PESTLE_NODE_I64S(node, lhs_contracting_dimensions),
      PESTLE_NODE_I64S(node, rhs_contracting_dimensions)};
  if (contracted[0].count != 1 ||
      PESTLE_NODE_I64S(node, lhs_batching_dimensions).count) {
    return NULL;
  }
  for (size_t side = 0; side < 2; ++side) {
    pestle_value_t* table = operand(node, 1 - side);
    int64_t axis = contracted[1 - side].data[0];
    int64_t extent = table->type->dims[axis];
    bool is_signed, first = side == 0;
    one_hot_t hot;
    if (extent < 1 ||
        !read_one_hot(operand(node, side), contracted[side].data[0], &hot) ||
        !is_finite(table, &is_signed)) {
      continue;
    }
    pestle_value_t* index = drop_axis(f, &hot);
    pestle_value_t* value = take_slices(f, table, axis, index, first);
    value = clear_outside(f, index, extent, first, value);
    if (is_signed) value = pestle_f_plus(f, value, 0);
    return pestle_f_convert(f, value, node->results[0].type->dtype);
  }
  return NULL;
}
