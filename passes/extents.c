// SPDX-License-Identifier: Apache-2.0
// Ends of values: see extents.h. One function says where an axis of an operand is in
// the result (axis_in_result); forward and backward both go by it.
#include "passes/extents.h"

#include "passes/fuse.h"

// --- Axes through ops ---

// Axis |axis| of the result, of which n places of the operand are n * times / parts,
// rounded up.
typedef struct passage_t {
  int32_t axis;
  int64_t times, parts;
} passage_t;

static bool to_axis(int64_t axis, passage_t* out) {
  *out = (passage_t){(int32_t)axis, 1, 1};
  return axis >= 0;
}

static bool has(pestle_i64s_t list, int64_t axis) {
  return pestle_i64s_has(list, axis);
}

static int64_t index_in(pestle_i64s_t list, int64_t axis) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] == axis) return (int64_t)i;
  }
  return -1;
}

static const pestle_type_t* type_of(const pestle_node_t* n, size_t operand) {
  return pestle_node_operand(n, operand)->type;
}

static bool through_slice(const pestle_node_t* n, int32_t axis,
                          passage_t* out) {
  return PESTLE_NODE_I64S(n, start_indices).data[axis] == 0 &&
         PESTLE_NODE_I64S(n, strides).data[axis] == 1 && to_axis(axis, out);
}

static bool through_broadcast(const pestle_node_t* n, int32_t axis,
                              passage_t* out) {
  int64_t to = PESTLE_NODE_I64S(n, broadcast_dimensions).data[axis];
  return type_of(n, 0)->dims[axis] == n->results[0].type->dims[to] &&
         to_axis(to, out);
}

// What is left of the axes is in their order.
static bool through_reduce(const pestle_node_t* n, size_t operand,
                           pestle_i64s_t gone, int32_t axis, passage_t* out) {
  if (operand >= n->result_count || has(gone, axis)) return false;
  int64_t to = axis;
  for (size_t i = 0; i < gone.count; ++i)
    to -= gone.data[i] < axis;
  return to_axis(to, out);
}

// Batch axes, then the free ones of the first operand, then of the second.
static bool through_dot(const pestle_node_t* n, size_t operand, int32_t axis,
                        passage_t* out) {
  pestle_i64s_t batch[] = {PESTLE_NODE_I64S(n, lhs_batching_dimensions),
                           PESTLE_NODE_I64S(n, rhs_batching_dimensions)};
  pestle_i64s_t gone[] = {PESTLE_NODE_I64S(n, lhs_contracting_dimensions),
                          PESTLE_NODE_I64S(n, rhs_contracting_dimensions)};
  if (has(gone[operand], axis)) return false;
  int64_t to = index_in(batch[operand], axis);
  if (to >= 0) return to_axis(to, out);
  to = (int64_t)batch[0].count;
  if (operand) {
    to = type_of(n, 0)->rank - (int64_t)gone[0].count;
  }
  for (int32_t i = 0; i < axis; ++i)
    to += !has(gone[operand], i) && !has(batch[operand], i);
  return to_axis(to, out);
}

// The |number|-th axis of the result that is, or is not, among |offsets|.
static int64_t nth_axis(const pestle_node_t* n, pestle_i64s_t offsets,
                        bool offset, int64_t number) {
  for (int32_t i = 0; i < n->results[0].type->rank; ++i) {
    if (has(offsets, i) == offset && number-- == 0) return i;
  }
  return -1;
}

// Whole axes of what is gathered from, and the axes of the places.
static bool through_gather(const pestle_node_t* n, size_t operand, int32_t axis,
                           passage_t* out) {
  pestle_i64s_t offsets = PESTLE_NODE_I64S(n, offset_dims);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(n, collapsed_slice_dims);
  pestle_i64s_t batch = PESTLE_NODE_I64S(n, operand_batching_dims);
  int64_t number = axis, vector = PESTLE_NODE_I64(n, index_vector_dim);
  if (operand == 1) {
    if (axis == vector) return false;
    return to_axis(nth_axis(n, offsets, false, axis - (axis > vector)), out);
  }
  if (has(collapsed, axis) || has(batch, axis) ||
      PESTLE_NODE_I64S(n, slice_sizes).data[axis] !=
          type_of(n, 0)->dims[axis]) {
    return false;
  }
  for (int32_t i = 0; i < axis; ++i)
    number -= has(collapsed, i) || has(batch, i);
  return to_axis(nth_axis(n, offsets, true, number), out);
}

// Queries, and what lies in front of rows and columns.
static bool through_attention(const pestle_node_t* n, size_t operand,
                              int32_t axis, passage_t* out) {
  int32_t rows = type_of(n, 0)->rank - 2;
  bool passes = operand == 0 ? axis <= rows : operand < 3 && axis < rows;
  return passes && to_axis(axis, out);
}

static bool through_window(const pestle_node_t* n, size_t operand, int32_t axis,
                           passage_t* out) {
  return operand < n->result_count &&
         PESTLE_NODE_I64S(n, window_dimensions).data[axis] == 1 &&
         type_of(n, 0)->dims[axis] == n->results[0].type->dims[axis] &&
         to_axis(axis, out);
}

// Where axis |axis| of an operand is in |n|'s results, element by element along it:
// what is at one place depends on that place of the operand alone. False: nowhere.
static bool axis_in_result(const pestle_node_t* n, size_t operand, int32_t axis,
                           passage_t* out) {
  const pestle_type_t* x = type_of(n, operand);
  switch (n->op) {
    case PESTLE_OP_EXTENT:
      return operand == 0 && to_axis(axis, out);
    case PESTLE_OP_TRANSPOSE:
      return to_axis(index_in(PESTLE_NODE_I64S(n, permutation), axis), out);
    case PESTLE_OP_RESHAPE:
      return pestle_reshape_axis(x, n->results[0].type, axis, &out->axis,
                                 &out->times, &out->parts);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return through_broadcast(n, axis, out);
    case PESTLE_OP_SLICE:
      return through_slice(n, axis, out);
    case PESTLE_OP_CONCATENATE:
      return axis != PESTLE_NODE_I64(n, dimension) && to_axis(axis, out);
    case PESTLE_OP_REDUCE:
      return through_reduce(n, operand, PESTLE_NODE_I64S(n, dimensions), axis,
                            out);
    case PESTLE_OP_REDUCE_WINDOW:
      return through_window(n, operand, axis, out);
    case PESTLE_OP_LOGSUMEXP:
      return through_reduce(n, operand, PESTLE_NODE_I64S(n, dimensions), axis,
                            out);
    case PESTLE_OP_DOT_GENERAL:
      return through_dot(n, operand, axis, out);
    case PESTLE_OP_GATHER:
      return through_gather(n, operand, axis, out);
    case PESTLE_OP_ATTENTION:
      return through_attention(n, operand, axis, out);
    case PESTLE_OP_SOFTMAX:
    case PESTLE_OP_LOG_SOFTMAX:
    case PESTLE_OP_LAYER_NORM:
    case PESTLE_OP_RMS_NORM:
      return operand == 0 && !has(PESTLE_NODE_I64S(n, dimensions), axis) &&
             to_axis(axis, out);
    case PESTLE_OP_CONVOLUTION:
      return operand == 0 && PESTLE_NODE_I64(n, batch_group_count) == 1 &&
             axis == PESTLE_NODE_I64(n, input_batch_dimension) &&
             to_axis(PESTLE_NODE_I64(n, output_batch_dimension), out);
    default:
      // A map's region may choose among its operands.
      return n->op != PESTLE_OP_MAP && pestle_fuse_is_elementwise(n) &&
             pestle_pass_same_dims(x, n->results[0].type) && to_axis(axis, out);
  }
}

// --- The table ---

const pestle_end_t* pestle_extents_of(const pestle_extents_t* extents,
                                      const pestle_value_t* value) {
  if (!extents->any) return NULL;
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&extents->ends, (uintptr_t)value);
  return slot ? slot->ptr : NULL;
}

static pestle_end_t end_of(const pestle_extents_t* t,
                           const pestle_value_t* value, int32_t axis) {
  const pestle_end_t* ends = pestle_extents_of(t, value);
  return ends ? ends[axis] : (pestle_end_t){0};
}

static bool same_end(pestle_end_t a, pestle_end_t b) {
  return a.anchor && b.anchor && a.scale == b.scale &&
         pestle_node_operand(a.anchor, 1) == pestle_node_operand(b.anchor, 1);
}

bool pestle_extents_same(const pestle_extents_t* extents,
                         const pestle_value_t* a, const pestle_value_t* b) {
  if (!extents->any || !pestle_pass_same_dims(a->type, b->type)) return true;
  for (int32_t i = 0; i < a->type->rank; ++i) {
    pestle_end_t x = end_of(extents, a, i), y = end_of(extents, b, i);
    if ((x.anchor || y.anchor) && !same_end(x, y)) return false;
  }
  return true;
}

static pestle_status_t set_end(pestle_extents_t* t, const pestle_value_t* value,
                               int32_t axis, pestle_end_t end) {
  if (!end.anchor || end.scale > INT32_MAX) return NULL;
  pestle_end_t* ends = (pestle_end_t*)pestle_extents_of(t, value);
  if (!ends) {
    ends = pestle_arena_alloc_zero(
        t->arena, (size_t)(value->type->rank + 1) * sizeof(*ends),
        _Alignof(pestle_end_t));
    if (!ends || !pestle_map_set_u64_ptr(&t->ends, (uintptr_t)value, ends)) {
      return PESTLE_OOM();
    }
    t->any = true;
  }
  if (!ends[axis].anchor) ends[axis] = end;
  return NULL;
}

// --- Forward ---

// Whether an element of the result may be what it is whatever that of one operand is.
static bool chooses(const pestle_node_t* n) {
  bool integers = n->result_count &&
                  !pestle_dtype_is(n->results[0].type->dtype,
                                   PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
  return n->op == PESTLE_OP_SELECT || n->op == PESTLE_OP_CONCATENATE ||
         (integers && (n->op == PESTLE_OP_AND || n->op == PESTLE_OP_OR ||
                       n->op == PESTLE_OP_MULTIPLY));
}

// The end of |operand| where it is along axis |axis| of the result.
static pestle_end_t arriving(const pestle_extents_t* t, const pestle_node_t* n,
                             size_t operand, int32_t axis) {
  const pestle_value_t* x = pestle_node_operand(n, operand);
  const pestle_end_t* ends = pestle_extents_of(t, x);
  passage_t to;
  for (int32_t i = 0; ends && i < x->type->rank; ++i) {
    if (!ends[i].anchor || !axis_in_result(n, operand, i, &to)) continue;
    if (to.axis != axis || ends[i].scale % to.parts) continue;
    return (pestle_end_t){ends[i].anchor, ends[i].scale / to.parts * to.times};
  }
  return (pestle_end_t){0};
}

static pestle_end_t forward_end(const pestle_extents_t* t,
                                const pestle_node_t* n, int32_t axis) {
  pestle_end_t end = {0};
  bool all = chooses(n);
  // Where the condition is arbitrary, so is the choice.
  if (n->op == PESTLE_OP_SELECT) {
    end = arriving(t, n, 0, axis);
    if (end.anchor) return end;
  }
  for (uint32_t i = n->op == PESTLE_OP_SELECT; i < n->operand_count; ++i) {
    pestle_end_t other = arriving(t, n, i, axis);
    if (all && i > (n->op == PESTLE_OP_SELECT) && !same_end(end, other)) {
      return (pestle_end_t){0};
    }
    if (all && !other.anchor) return other;
    if (!end.anchor) end = other;
  }
  return end;
}

static pestle_status_t forward(pestle_extents_t* t, const pestle_node_t* n) {
  if (n->op == PESTLE_OP_EXTENT) {
    pestle_end_t end = {n, 1};
    PESTLE_TRY(set_end(t, &n->results[0],
                       (int32_t)PESTLE_NODE_I64(n, dimension), end));
  }
  bool any = false;
  for (uint32_t i = 0; t->any && i < n->operand_count; ++i)
    any = any || pestle_extents_of(t, pestle_node_operand(n, i));
  for (uint32_t r = 0; any && r < n->result_count; ++r) {
    for (int32_t a = 0; a < n->results[r].type->rank; ++a)
      PESTLE_TRY(set_end(t, &n->results[r], a, forward_end(t, n, a)));
  }
  return NULL;
}

// --- Backward ---

// The end that the use asks for along |axis| of what it uses.
static pestle_end_t asked(const pestle_extents_t* t, const pestle_use_t* use,
                          int32_t axis) {
  const pestle_node_t* n = use->user;
  passage_t to;
  if (!n->result_count ||
      !axis_in_result(n, (size_t)(use - n->operands), axis, &to)) {
    return (pestle_end_t){0};
  }
  pestle_end_t end = end_of(t, &n->results[0], to.axis);
  for (uint32_t r = 1; r < n->result_count; ++r) {
    if (!same_end(end, end_of(t, &n->results[r], to.axis))) end.anchor = NULL;
  }
  // n * times / parts places of the result are all of n of the operand.
  if (!end.anchor || end.scale * to.parts % to.times) end.anchor = NULL;
  end.scale = end.scale * to.parts / to.times;
  return end;
}

static pestle_status_t backward(pestle_extents_t* t,
                                const pestle_block_t* block,
                                const pestle_value_t* value) {
  for (int32_t a = 0; a < value->type->rank; ++a) {
    pestle_end_t end = {0};
    bool all = true;
    for (const pestle_use_t* u = value->uses; u && all; u = u->next) {
      pestle_end_t other =
          u->user->block == block ? asked(t, u, a) : (pestle_end_t){0};
      all = other.anchor && (u == value->uses || same_end(end, other));
      end = other;
    }
    if (all) PESTLE_TRY(set_end(t, value, a, end));
  }
  return NULL;
}

// --- The block ---

static bool has_extent(const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_EXTENT) return true;
  }
  return false;
}

static void make_anchors(pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op != PESTLE_OP_EXTENT) continue;
    pestle_value_replace_all_uses(&n->results[0], pestle_node_operand(n, 0));
    pestle_node_set_operand(n, 0, pestle_node_operand(n, 1));
  }
}

pestle_status_t pestle_extents_find(pestle_allocator_t allocator,
                                    pestle_arena_t* arena,
                                    pestle_block_t* block,
                                    pestle_extents_t* out_extents) {
  pestle_extents_t* t = out_extents;
  *t = (pestle_extents_t){.arena = arena};
  pestle_map_init(allocator, &t->ends);
  if (!has_extent(block)) return NULL;
  pestle_status_t status = NULL;
  for (const pestle_node_t* n = block->first; n && !status; n = n->next)
    status = forward(t, n);
  for (const pestle_node_t* n = block->last; n && !status; n = n->prev) {
    for (uint32_t r = 0; r < n->result_count && !status; ++r)
      status = backward(t, block, &n->results[r]);
  }
  if (!status) make_anchors(block);
  return status;
}

void pestle_extents_deinit(pestle_extents_t* extents) {
  pestle_map_deinit(&extents->ends);
}

void pestle_extents_drop(pestle_block_t* block) {
  for (pestle_node_t *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    if (n->op == PESTLE_OP_EXTENT) pestle_node_erase(n);
  }
}
