// SPDX-License-Identifier: Apache-2.0
// Which keys a row of an attention sees where its bias or its mask follows from their places
// alone: those from row + low to row + high, as of causal attention and of windows. The ops
// that make it are asked for its element at a row and a key.
#include <math.h>

#include "passes/util.h"

enum { BUDGET = 32, ROW = 0, KEY = 1, PLACES = 2, OTHER = 2, NONE = 3 };

// Which place each axis of a value is.
typedef struct axes_t {
  int of[PESTLE_MAX_RANK];
} axes_t;

// A sum of places, so often each, and a number.
typedef struct sum_t {
  int64_t places[PLACES], number;
} sum_t;

// --- Places ---

static axes_t behind_broadcast(const pestle_node_t* node, axes_t at) {
  const pestle_type_t* from = pestle_node_operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  axes_t out = {{0}};
  for (int32_t i = 0; i < from->rank; ++i)
    out.of[i] = from->dims[i] == 1 ? NONE : at.of[dims.data[i]];
  return out;
}

// Axes of one place come and go.
static bool behind_reshape(const pestle_node_t* node, axes_t* at) {
  const pestle_type_t *from = pestle_node_operand(node, 0)->type,
                      *to = node->results[0].type;
  axes_t out = {{0}};
  int32_t j = 0;
  for (int32_t i = 0; i < from->rank; ++i) {
    out.of[i] = NONE;
    if (from->dims[i] == 1) continue;
    while (j < to->rank && to->dims[j] == 1)
      ++j;
    if (j == to->rank || to->dims[j] != from->dims[i]) return false;
    out.of[i] = at->of[j++];
  }
  *at = out;
  return true;
}

static bool add_place(int place, sum_t* out) {
  if (place < PLACES) ++out->places[place];
  return place != OTHER;
}

// A constant that grows by one along one axis.
static bool read_constant(const pestle_elements_t* e, axes_t at, sum_t* out) {
  int64_t count = pestle_type_count(&e->type), behind = count;
  if (e->splat || (e->type.dtype != PESTLE_I64 && e->type.dtype != PESTLE_I32))
    return false;
  out->number = pestle_pass_element_i64(e, 0);
  for (int32_t d = 0; d < e->type.rank; ++d) {
    int64_t extent = e->type.dims[d], i = 0;
    behind /= extent;
    if (extent == 1) continue;
    while (i < count && pestle_pass_element_i64(e, (size_t)i) ==
                            out->number + i / behind % extent)
      ++i;
    if (i == count) return add_place(at.of[d], out);
  }
  return false;
}

static bool read_sum(const pestle_value_t* value, axes_t at, int budget,
                     sum_t* out);

static bool read_both(const pestle_node_t* node, axes_t at, int budget,
                      int64_t by, sum_t* out) {
  sum_t a, b;
  if (!read_sum(pestle_node_operand(node, 0), at, budget, &a) ||
      !read_sum(pestle_node_operand(node, 1), at, budget, &b)) {
    return false;
  }
  *out = (sum_t){
      {a.places[ROW] + by * b.places[ROW], a.places[KEY] + by * b.places[KEY]},
      a.number + by * b.number};
  return true;
}

static bool read_sum(const pestle_value_t* value, axes_t at, int budget,
                     sum_t* out) {
  const pestle_node_t* node = value->node;
  pestle_dtype_t dtype = value->type->dtype;
  *out = (sum_t){{0}, 0};
  if (dtype != PESTLE_I64 && dtype != PESTLE_I32) return false;
  if (pestle_pass_splat_i64(value, &out->number)) return true;
  if (pestle_value_constant(value))
    return read_constant(pestle_value_constant(value), at, out);
  if (!node || !budget) return false;
  const pestle_value_t* first =
      node->operand_count ? pestle_node_operand(node, 0) : NULL;
  switch ((int)node->op) {
    case PESTLE_OP_IOTA:
      return add_place(at.of[PESTLE_NODE_I64(node, iota_dimension)], out);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_sum(first, behind_broadcast(node, at), budget - 1, out);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(node, &at) && read_sum(first, at, budget - 1, out);
    case PESTLE_OP_CONVERT:
      return read_sum(first, at, budget - 1, out);
    case PESTLE_OP_ADD:
      return read_both(node, at, budget - 1, 1, out);
    case PESTLE_OP_SUBTRACT:
      return read_both(node, at, budget - 1, -1, out);
  }
  return false;
}

// --- Conditions ---

// |sum| is at least 0.
static bool add_limit(const sum_t* sum, pestle_attention_limits_t* out) {
  if (sum->places[KEY] == -1 && sum->places[ROW] == 1) {
    if (sum->number < out->high) out->high = sum->number;
    return true;
  }
  if (sum->places[KEY] == 1 && sum->places[ROW] == -1) {
    if (-sum->number > out->low) out->low = -sum->number;
    return true;
  }
  return false;
}

static bool read_order(const pestle_node_t* node, axes_t at, int budget,
                       int64_t by, int64_t more,
                       pestle_attention_limits_t* out) {
  sum_t sum;
  if (!read_both(node, at, budget, -1, &sum)) return false;
  sum = (sum_t){{by * sum.places[ROW], by * sum.places[KEY]},
                by * sum.number - more};
  return add_limit(&sum, out);
}

static bool read_condition(const pestle_value_t* value, axes_t at, int budget,
                           pestle_attention_limits_t* out) {
  const pestle_node_t* node = value->node;
  if (!node || !budget) return false;
  switch ((int)node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_condition(pestle_node_operand(node, 0),
                            behind_broadcast(node, at), budget - 1, out);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(node, &at) &&
             read_condition(pestle_node_operand(node, 0), at, budget - 1, out);
    case PESTLE_OP_AND:
      return read_condition(pestle_node_operand(node, 0), at, budget - 1,
                            out) &&
             read_condition(pestle_node_operand(node, 1), at, budget - 1, out);
    case PESTLE_OP_GE:
      return read_order(node, at, budget - 1, 1, 0, out);
    case PESTLE_OP_GT:
      return read_order(node, at, budget - 1, 1, 1, out);
    case PESTLE_OP_LE:
      return read_order(node, at, budget - 1, -1, 0, out);
    case PESTLE_OP_LT:
      return read_order(node, at, budget - 1, -1, 1, out);
  }
  return false;
}

// 0 where a condition holds and -inf elsewhere.
static bool read_bias(const pestle_value_t* value, axes_t at, int budget,
                      pestle_attention_limits_t* out) {
  const pestle_node_t* node = value->node;
  if (!node || !budget) return false;
  switch ((int)node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_bias(pestle_node_operand(node, 0), behind_broadcast(node, at),
                       budget - 1, out);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(node, &at) &&
             read_bias(pestle_node_operand(node, 0), at, budget - 1, out);
    case PESTLE_OP_CONVERT:
      return read_bias(pestle_node_operand(node, 0), at, budget - 1, out);
    case PESTLE_OP_SELECT:
      return pestle_pass_splat_is(pestle_node_operand(node, 1), 0) &&
             pestle_pass_splat_is(pestle_node_operand(node, 2), -INFINITY) &&
             read_condition(pestle_node_operand(node, 0), at, budget - 1, out);
  }
  return false;
}

static bool sees_some(const pestle_attention_limits_t* limits, int64_t rows,
                      int64_t keys) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t first = r + limits->low, last = r + limits->high;
    if ((first > 0 ? first : 0) > (last < keys - 1 ? last : keys - 1))
      return false;
  }
  return true;
}

bool pestle_pass_attention_limits(const pestle_node_t* node,
                                  pestle_attention_limits_t* out) {
  // Weights of keys that so low a score hides are 0.
  const double LOW = -1e30;
  size_t bias = pestle_attention_bias(node), mask = pestle_attention_mask(node);
  if (!bias == !mask || (mask && !(PESTLE_NODE_F64(node, masked) <= LOW)))
    return false;
  const pestle_value_t* value = pestle_node_operand(node, bias ? bias : mask);
  const pestle_type_t* q = pestle_node_operand(node, 0)->type;
  int32_t rank = value->type->rank;
  int64_t rows = q->dims[q->rank - 2], keys = value->type->dims[rank - 1];
  if (value->type->dims[rank - 2] != rows || rows < 2 || keys < 2 ||
      keys != pestle_node_operand(node, 1)->type->dims[q->rank - 2]) {
    return false;
  }
  axes_t at;
  for (int32_t d = 0; d < rank; ++d)
    at.of[d] = value->type->dims[d] == 1 ? NONE : OTHER;
  at.of[rank - 2] = ROW;
  at.of[rank - 1] = KEY;
  *out = (pestle_attention_limits_t){-rows, keys};
  bool is_read = bias ? read_bias(value, at, BUDGET, out)
                      : read_condition(value, at, BUDGET, out);
  return is_read && sees_some(out, rows, keys);
}
