// SPDX-License-Identifier: Apache-2.0
// Shapes that a model computes from extents which only a run tells: elements of a
// list are followed back through what exporters put between a Shape and the op
// that asks (slices, joins, casts, arithmetic) to numbers and sizes.
#include "frontend/onnx/bounded.h"

// Nodes between a Shape and its use; more is no list of extents.
enum { DEPTH = 32 };

static pestle_value_t* element(pestle_onnx_call_t* call, pestle_value_t* list,
                               int64_t at, int depth);

static int64_t attr_at(const pestle_node_t* node, pestle_attr_name_t name,
                       size_t at) {
  const pestle_attr_t* attr = pestle_node_attr(node, name);
  return attr && at < attr->as.i64s.count ? attr->as.i64s.data[at] : 0;
}

static pestle_value_t* of_concat(pestle_onnx_call_t* call,
                                 const pestle_node_t* node, int64_t at,
                                 int depth) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* part = pestle_node_operand(node, i);
    int64_t count = pestle_onnx_dim(part, 0);
    if (at < count) return element(call, part, at, depth);
    at -= count;
  }
  return NULL;
}

// Of a list by constant indices.
static pestle_value_t* of_gather(pestle_onnx_call_t* call,
                                 const pestle_node_t* node, int64_t at,
                                 int depth) {
  pestle_value_t* list = pestle_node_operand(node, 0);
  const pestle_elements_t* known =
      pestle_value_constant(pestle_node_operand(node, 1));
  if (!known || rank_of(list) != 1 ||
      attr_at(node, PESTLE_ATTR_slice_sizes, 0) != 1 ||
      at >= pestle_type_count(&known->type)) {
    return NULL;
  }
  int64_t place = pestle_onnx_element_i64(known, (size_t)at);
  if (place < 0 || place >= pestle_onnx_dim(list, 0)) return NULL;
  return element(call, list, place, depth);
}

static bool is_arithmetic(uint16_t op) {
  return op == PESTLE_OP_ADD || op == PESTLE_OP_SUBTRACT ||
         op == PESTLE_OP_MULTIPLY || op == PESTLE_OP_DIVIDE ||
         op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM;
}

static pestle_value_t* of_arithmetic(pestle_onnx_call_t* call,
                                     const pestle_node_t* node, int64_t at,
                                     int depth) {
  pestle_value_t* a = element(call, pestle_node_operand(node, 0), at, depth);
  pestle_value_t* b =
      a ? element(call, pestle_node_operand(node, 1), at, depth) : NULL;
  return b ? pestle_f_binary(&call->f, (pestle_op_t)node->op, a, b) : NULL;
}

// The least, greatest, sum or product of a whole list.
static pestle_value_t* of_reduce(pestle_onnx_call_t* call,
                                 const pestle_node_t* node, int depth) {
  pestle_value_t* list = pestle_node_operand(node, 0);
  const pestle_block_t* body = pestle_node_body(node, 0);
  pestle_op_t op = body ? pestle_block_reduce_op(body) : PESTLE_OP_COUNT;
  int64_t count = rank_of(list) == 1 ? pestle_onnx_dim(list, 0) : 0;
  if (node->result_count != 1 || !is_arithmetic((uint16_t)op) || count < 1 ||
      count > PESTLE_MAX_RANK)
    return NULL;
  pestle_value_t* all = element(call, pestle_node_operand(node, 1), 0, depth);
  for (int64_t i = 0; all && i < count; ++i) {
    pestle_value_t* one = element(call, list, i, depth);
    all = one ? pestle_f_binary(&call->f, op, all, one) : NULL;
  }
  return all;
}

// Whether element |at| of |condition| holds: 0 or 1, or -1 where nobody knows. A size is
// no number below 0.
static int truth(pestle_onnx_call_t* call, const pestle_value_t* condition,
                 int64_t at, int depth) {
  const pestle_elements_t* known = pestle_value_constant(condition);
  if (known) return pestle_onnx_element_i64(known, (size_t)at) != 0;
  const pestle_node_t* node = condition->node;
  if (!node || node->op != PESTLE_OP_EQ) return -1;
  const pestle_value_t* sides[2];
  const pestle_elements_t* numbers[2];
  for (uint32_t i = 0; i < 2; ++i) {
    sides[i] = element(call, pestle_node_operand(node, i), at, depth);
    if (!sides[i]) return -1;
    numbers[i] = pestle_value_constant(sides[i]);
  }
  if (numbers[0] && numbers[1]) {
    return pestle_onnx_element_i64(numbers[0], 0) ==
           pestle_onnx_element_i64(numbers[1], 0);
  }
  for (int i = 0; i < 2; ++i) {
    bool negative = numbers[i] && pestle_onnx_element_i64(numbers[i], 0) < 0;
    if (negative && pestle_onnx_number_bound(call, sides[1 - i]) >= 0) return 0;
  }
  return -1;
}

// What exporters make of an extent that may be -1, which stands for another.
static pestle_value_t* of_select(pestle_onnx_call_t* call,
                                 const pestle_node_t* node, int64_t at,
                                 int depth) {
  int taken = truth(call, pestle_node_operand(node, 0), at, depth);
  return taken < 0 ? NULL
                   : element(call, pestle_node_operand(node, taken ? 1 : 2), at,
                             depth);
}

// Element |at| of |list|, of rank 0 or 1, as a size; NULL where it is neither a
// number nor made of sizes.
static pestle_value_t* element(pestle_onnx_call_t* call, pestle_value_t* list,
                               int64_t at, int depth) {
  if (depth == DEPTH || !pestle_dtype_is(dtype_of(list), PESTLE_KIND_INT))
    return NULL;
  const pestle_elements_t* known = pestle_value_constant(list);
  if (known) {
    return pestle_onnx_size_number(call,
                                   pestle_onnx_element_i64(known, (size_t)at));
  }
  if (pestle_map_find_u64(&call->import->bounds, (uintptr_t)list)) return list;
  const pestle_node_t* node = list->node;
  if (!node || rank_of(list) > 1) return NULL;
  pestle_value_t* from =
      node->operand_count ? pestle_node_operand(node, 0) : NULL;
  switch ((int)node->op) {
    case PESTLE_OP_CONCATENATE:
      return of_concat(call, node, at, depth + 1);
    case PESTLE_OP_GATHER:
      return of_gather(call, node, at, depth + 1);
    case PESTLE_OP_REDUCE:
      return of_reduce(call, node, depth + 1);
    case PESTLE_OP_SELECT:
      return of_select(call, node, at, depth + 1);
    case PESTLE_OP_SLICE:
      return element(call, from,
                     attr_at(node, PESTLE_ATTR_start_indices, 0) +
                         at * attr_at(node, PESTLE_ATTR_strides, 0),
                     depth + 1);
    case PESTLE_OP_CONVERT:
      return element(call, from, at, depth + 1);
    case PESTLE_OP_RESHAPE:
      return rank_of(from) > 1 ? NULL : element(call, from, at, depth + 1);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return element(call, from, pestle_type_count(from->type) == 1 ? 0 : at,
                     depth + 1);
    default:
      return is_arithmetic(node->op) ? of_arithmetic(call, node, at, depth + 1)
                                     : NULL;
  }
}

// --- Numbers ---

const pestle_elements_t* pestle_onnx_known_list(pestle_onnx_call_t* call,
                                                pestle_value_t* list) {
  int64_t count = rank_of(list) > 1 ? -1 : pestle_type_count(list->type);
  if (!pestle_map_size(&call->import->bounds) || count < 0 ||
      count > PESTLE_MAX_RANK)
    return NULL;
  pestle_elements_t* out = pestle_onnx_scratch(call, sizeof(*out));
  int64_t* numbers =
      pestle_onnx_scratch(call, (size_t)(count + 1) * sizeof(*numbers));
  if (!out || !numbers) return NULL;
  for (int64_t i = 0; i < count; ++i) {
    pestle_value_t* one = element(call, list, i, 0);
    const pestle_elements_t* known = one ? pestle_value_constant(one) : NULL;
    if (!known) return NULL;
    numbers[i] = pestle_onnx_element_i64(known, 0);
  }
  out->type = (pestle_type_t){
      .dtype = PESTLE_I64, .rank = rank_of(list), .dims = {count}};
  out->data = numbers;
  out->size = (size_t)count * sizeof(*numbers);
  return out;
}

pestle_value_t* pestle_onnx_list_number(pestle_onnx_call_t* call,
                                        pestle_value_t* list, int64_t at) {
  pestle_value_t* number = element(call, list, at, 0);
  if (number || !list || call->f.status) return number;
  if (rank_of(list) == 1)
    list = pestle_onnx_slice_axis(call, list, 0, at, at + 1, 1);
  return pestle_onnx_convert(call, pestle_f_reshape(&call->f, list, 0, NULL),
                             PESTLE_I64);
}

// --- Bounds ---

static int64_t bound_of(const pestle_onnx_call_t* call,
                        const pestle_value_t* size, int depth);

// The bound of a op b, none of which is negative; -1 where there is none.
static int64_t bound_of_op(const pestle_onnx_call_t* call,
                           const pestle_node_t* node, int depth) {
  const pestle_value_t* other = pestle_node_operand(node, 1);
  const pestle_elements_t* number = pestle_value_constant(other);
  int64_t a = bound_of(call, pestle_node_operand(node, 0), depth);
  int64_t b = bound_of(call, other, depth), product;
  if (node->op == PESTLE_OP_MINIMUM)
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
  if (a < 0 || b < 0) return -1;
  if (node->op == PESTLE_OP_ADD) return a + b;
  if (node->op == PESTLE_OP_MAXIMUM) return a > b ? a : b;
  if (node->op == PESTLE_OP_DIVIDE) return number && b > 0 ? a / b : -1;
  if (node->op != PESTLE_OP_MULTIPLY) return -1;  // a difference has a sign
  return __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t bound_of(const pestle_onnx_call_t* call,
                        const pestle_value_t* size, int depth) {
  const pestle_elements_t* known = pestle_value_constant(size);
  if (known) return pestle_onnx_element_i64(known, 0);
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&call->import->bounds, (uintptr_t)size);
  if (slot) return (int64_t)slot->u64;
  if (depth == DEPTH || !size->node || !is_arithmetic(size->node->op))
    return -1;
  return bound_of_op(call, size->node, depth + 1);
}

int64_t pestle_onnx_number_bound(const pestle_onnx_call_t* call,
                                 const pestle_value_t* number) {
  return number ? bound_of(call, number, 0) : -1;
}

bool pestle_onnx_extents(pestle_onnx_call_t* call, size_t index,
                         pestle_onnx_extent_t* out, size_t* out_count) {
  pestle_value_t* list = pestle_onnx_input(call, index);
  if (!list || call->f.status || rank_of(list) > 1 ||
      pestle_value_constant(list) || !pestle_map_size(&call->import->bounds)) {
    return false;
  }
  int64_t count = pestle_type_count(pestle_onnx_type(list));
  if (count > PESTLE_MAX_RANK) return false;
  for (int64_t i = 0; i < count; ++i) {
    pestle_value_t* size = element(call, list, i, 0);
    if (!size) return false;
    const pestle_elements_t* known = pestle_value_constant(size);
    out[i] = (pestle_onnx_extent_t){.size = known ? NULL : size,
                                    .dim = bound_of(call, size, 0)};
    if (!known && out[i].dim < 0) return false;
  }
  *out_count = (size_t)count;
  return !call->f.status;
}

bool pestle_onnx_extent(pestle_onnx_call_t* call, size_t index,
                        pestle_onnx_extent_t* out) {
  pestle_onnx_extent_t all[PESTLE_MAX_RANK];
  size_t count;
  if (!pestle_onnx_extents(call, index, all, &count) || count != 1)
    return false;
  *out = all[0];
  return true;
}
