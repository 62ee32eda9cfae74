// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: by an affine index map, or by computed indices that
// are clamped as StableHLO says.
#include <string.h>

#include "base/fault.h"
#include "codegen/lower/lower_internal.h"

void pestle_lower_reshape(pestle_nest_t* nest, const pestle_type_t* to,
                          const pestle_affine_t* const* index,
                          const pestle_type_t* from, pestle_index_t out_index) {
  const pestle_affine_t* flat = pestle_affine_flatten(nest, to, index);
  for (int32_t d = from->rank - 1; d >= 0; --d) {
    int64_t extent = from->dims[d] > 0 ? from->dims[d] : 1;
    out_index[d] = d ? pestle_affine_mod(nest, flat, extent) : flat;
    if (d) flat = pestle_affine_div(nest, flat, extent);
  }
}

static void broadcast_index(const pestle_node_t* node, pestle_nest_t* nest,
                            pestle_index_t axes, pestle_index_t out) {
  const pestle_type_t* from = pestle_node_operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  for (size_t d = 0; d < dims.count; ++d) {
    out[d] =
        from->dims[d] == 1 ? pestle_affine_const(nest, 0) : axes[dims.data[d]];
  }
}

static void slice_index(const pestle_node_t* node, pestle_nest_t* nest,
                        pestle_index_t axes, pestle_index_t out) {
  pestle_i64s_t start = PESTLE_NODE_I64S(node, start_indices);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, strides);
  for (size_t d = 0; d < start.count; ++d) {
    int64_t first = start.data[d];
    if (first > 0 && PESTLE_FAULT(slice_off_by_one)) --first;
    out[d] = pestle_affine_add(
        nest, pestle_affine_scale(nest, axes[d], strides.data[d]),
        pestle_affine_const(nest, first));
  }
}

static void reverse_index(const pestle_node_t* node, pestle_nest_t* nest,
                          pestle_index_t axes, pestle_index_t out) {
  const pestle_type_t* type = node->results[0].type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  memcpy(out, axes, sizeof(pestle_index_t));
  for (size_t i = PESTLE_FAULT(lost_reverse); i < dims.count; ++i) {
    int64_t d = dims.data[i];
    out[d] = pestle_affine_add(nest, pestle_affine_scale(nest, axes[d], -1),
                               pestle_affine_const(nest, type->dims[d] - 1));
  }
}

static const pestle_expr_t* select_expr(pestle_nest_t* nest,
                                        const pestle_expr_t* guard,
                                        const pestle_expr_t* yes,
                                        const pestle_expr_t* no) {
  if (guard->kind == PESTLE_EXPR_CONST) return guard->i ? yes : no;
  return pestle_expr_op(nest, PESTLE_OP_SELECT, yes->dtype, guard, yes, no);
}

static const pestle_expr_t* always(pestle_nest_t* nest) {
  return pestle_expr_const(nest, PESTLE_I1, 1, 1);
}

// |value| at |index|, which is meaningful only where |guard| holds.
static const pestle_expr_t* guarded(pestle_lower_t* lower,
                                    const pestle_value_t* value,
                                    const pestle_affine_t* const* index,
                                    const pestle_expr_t* guard) {
  const pestle_lowered_t* v = &lower->values[value->scratch];
  if (v->splat) return v->splat;
  return pestle_expr_read(lower->nest, v->tensor, index, guard);
}

static const pestle_expr_t* lower_pad(pestle_lower_t* lower,
                                      const pestle_node_t* node,
                                      pestle_index_t axes) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_i64s_t low = PESTLE_NODE_I64S(node, edge_padding_low);
  pestle_i64s_t interior = PESTLE_NODE_I64S(node, interior_padding);
  const pestle_expr_t* guard = always(nest);
  pestle_index_t index = {0};
  for (int32_t d = 0; d < x->type->rank; ++d) {
    const pestle_affine_t* at = pestle_affine_add(
        nest, axes[d], pestle_affine_const(nest, -low.data[d]));
    index[d] = pestle_lower_spread(nest, at, interior.data[d] + 1,
                                   x->type->dims[d], &guard);
  }
  const pestle_expr_t* fill =
      pestle_lower_at(lower, pestle_node_operand(node, 1), NULL);
  if (PESTLE_FAULT(wrong_pad_value)) {
    fill = pestle_expr_const(nest, fill->dtype, 0, 0);
  }
  return select_expr(nest, guard, guarded(lower, x, index, guard), fill);
}

static const pestle_expr_t* lower_concatenate(pestle_lower_t* lower,
                                              const pestle_node_t* node,
                                              pestle_index_t axes) {
  pestle_nest_t* nest = lower->nest;
  int64_t dim = PESTLE_NODE_I64(node, dimension), offset = 0;
  const pestle_expr_t* body = NULL;
  // Read back to front, so that the selects nest front to back.
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    offset += pestle_node_operand(node, i)->type->dims[dim];
  }
  for (uint32_t i = node->operand_count; i-- > 0;) {
    const pestle_value_t* x = pestle_node_operand(node, i);
    int64_t extent = x->type->dims[dim];
    offset -= extent;
    if (!extent) continue;
    pestle_index_t index;
    memcpy(index, axes, sizeof(index));
    index[dim] =
        pestle_affine_add(nest, axes[dim], pestle_affine_const(nest, -offset));
    const pestle_expr_t* guard =
        pestle_expr_inside(nest, index[dim], 0, extent);
    const pestle_expr_t* part = guarded(lower, x, index, guard);
    body = body ? select_expr(nest, guard, part, body) : part;
  }
  if (body) return body;
  return pestle_expr_const(nest, node->results[0].type->dtype, 0, 0);
}

pestle_status_t pestle_lower_view(pestle_lower_t* lower,
                                  const pestle_node_t* node) {
  pestle_nest_t* nest = lower->nest;
  pestle_index_t axes = {0}, index = {0};
  uint32_t stage = pestle_lower_map(lower, node, axes);
  if (nest->failed) return NULL;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  const pestle_expr_t* body = NULL;
  switch ((int)node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      broadcast_index(node, nest, axes, index);
      break;
    case PESTLE_OP_RESHAPE:
      pestle_lower_reshape(nest, node->results[0].type, axes, x->type, index);
      break;
    case PESTLE_OP_TRANSPOSE: {
      pestle_i64s_t perm = PESTLE_NODE_I64S(node, permutation);
      for (size_t d = 0; d < perm.count; ++d)
        index[perm.data[d]] = axes[d];
      break;
    }
    case PESTLE_OP_SLICE:
      slice_index(node, nest, axes, index);
      break;
    case PESTLE_OP_REVERSE:
      reverse_index(node, nest, axes, index);
      break;
    case PESTLE_OP_PAD:
      body = lower_pad(lower, node, axes);
      break;
    case PESTLE_OP_CONCATENATE:
      body = lower_concatenate(lower, node, axes);
      break;
    default:
      return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                               "this view has no lowering");
  }
  if (!body) body = pestle_lower_at(lower, x, index);
  pestle_lower_set(lower, node, stage, body);
  return NULL;
}

// --- Computed indices ---

// The element of |indices| at |index| as a clamped start: 0 .. limit.
static const pestle_affine_t* start_at(pestle_lower_t* lower,
                                       const pestle_value_t* indices,
                                       const pestle_affine_t* const* index,
                                       int64_t limit) {
  pestle_nest_t* nest = lower->nest;
  if (limit <= 0) return pestle_affine_const(nest, 0);
  const pestle_expr_t* raw = pestle_lower_at(lower, indices, index);
  const pestle_expr_t* wide = pestle_expr_cast(nest, raw, PESTLE_I64);
  if (raw->dtype == PESTLE_U64) {
    // Above INT64_MAX is far beyond any limit.
    const pestle_expr_t* top = pestle_expr_const(nest, PESTLE_U64, 0, limit);
    wide = pestle_expr_cast(
        nest,
        pestle_expr_op(nest, PESTLE_OP_MINIMUM, PESTLE_U64, raw, top, NULL),
        PESTLE_I64);
  }
  const pestle_expr_t* lo = pestle_expr_const(nest, PESTLE_I64, 0, 0);
  int64_t most = PESTLE_FAULT(wrong_index_clamp) ? limit - 1 : limit;
  const pestle_expr_t* hi = pestle_expr_const(nest, PESTLE_I64, 0, most);
  const pestle_expr_t* clamped = pestle_expr_op(
      nest, PESTLE_OP_MINIMUM, PESTLE_I64,
      pestle_expr_op(nest, PESTLE_OP_MAXIMUM, PESTLE_I64, wide, lo, NULL), hi,
      NULL);
  return pestle_affine_value(nest, clamped, 0, limit);
}

static const pestle_expr_t* lower_dynamic_slice(pestle_lower_t* lower,
                                                const pestle_node_t* node,
                                                pestle_index_t axes) {
  const pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
  pestle_index_t index = {0};
  for (int32_t d = 0; d < x->type->rank; ++d) {
    const pestle_affine_t* start =
        start_at(lower, pestle_node_operand(node, (size_t)d + 1), NULL,
                 x->type->dims[d] - sizes.data[d]);
    index[d] = pestle_affine_add(lower->nest, axes[d], start);
  }
  return pestle_lower_at(lower, x, index);
}

// The position in the indices tensor for the output's batch axes, with the
// index vector's component |component|.
static void index_position(pestle_nest_t* nest, const pestle_node_t* node,
                           pestle_index_t axes, int64_t component,
                           pestle_index_t out) {
  pestle_i64s_t offset_dims = PESTLE_NODE_I64S(node, offset_dims);
  int64_t vector_dim = PESTLE_NODE_I64(node, index_vector_dim);
  const pestle_type_t* indices = pestle_node_operand(node, 1)->type;
  int32_t at = 0;
  for (int32_t d = 0; d < node->results[0].type->rank; ++d) {
    if (pestle_i64s_has(offset_dims, d)) continue;
    if (at == vector_dim) ++at;
    out[at++] = axes[d];
  }
  if (vector_dim < indices->rank) {
    out[vector_dim] = pestle_affine_const(nest, component);
  }
}

static const pestle_expr_t* lower_gather_body(pestle_lower_t* lower,
                                              const pestle_node_t* node,
                                              pestle_index_t axes) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  const pestle_value_t* indices = pestle_node_operand(node, 1);
  pestle_i64s_t map = PESTLE_NODE_I64S(node, start_index_map);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(node, collapsed_slice_dims);
  pestle_i64s_t batching = PESTLE_NODE_I64S(node, operand_batching_dims);
  pestle_i64s_t start_batching =
      PESTLE_NODE_I64S(node, start_indices_batching_dims);
  pestle_i64s_t offsets = PESTLE_NODE_I64S(node, offset_dims);
  pestle_index_t index = {0}, position = {0};
  size_t offset = 0;
  for (int32_t d = 0; d < x->type->rank; ++d) {
    index[d] = pestle_affine_const(nest, 0);
    if (!pestle_i64s_has(collapsed, d) && !pestle_i64s_has(batching, d)) {
      index[d] = axes[offsets.data[offset++]];
    }
  }
  for (size_t i = 0; i < map.count; ++i) {
    int64_t d = map.data[i];
    index_position(nest, node, axes, (int64_t)i, position);
    index[d] = pestle_affine_add(
        nest, index[d],
        start_at(lower, indices, position, x->type->dims[d] - sizes.data[d]));
  }
  index_position(nest, node, axes, 0, position);
  for (size_t i = 0; i < batching.count; ++i) {
    index[batching.data[i]] = position[start_batching.data[i]];
  }
  return pestle_lower_at(lower, x, index);
}

pestle_status_t pestle_lower_gather(pestle_lower_t* lower,
                                    const pestle_node_t* node) {
  pestle_index_t axes = {0};
  uint32_t stage = pestle_lower_map(lower, node, axes);
  if (lower->nest->failed) return NULL;
  const pestle_expr_t* body;
  if (node->op == PESTLE_OP_DYNAMIC_SLICE) {
    body = lower_dynamic_slice(lower, node, axes);
  } else {
    body = lower_gather_body(lower, node, axes);
  }
  pestle_lower_set(lower, node, stage, body);
  return NULL;
}
