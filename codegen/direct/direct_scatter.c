// SPDX-License-Identifier: Apache-2.0
// scatter. The op UPDATES: the results hold the inputs when the kernel begins.
//
//   for g in group.x:                 axes along which updates cannot meet
//     for b in the indices' other axes:
//       if the window at the index fits:
//         for w in the window's axes:
//           results[start + w] = region(results[start + w], updates[b, w])
//
// Axes that cannot meet are the batching axes, and those of the window that no
// index moves: an element of the input there is updated by elements of the
// updates with the same coordinate only. Along all others updates are applied in
// their order, unless the op says that its indices are unique. The last axis of
// the window, if it is the last of input and updates, goes in vectors.
//
// A target of lanes has one for each element of the axes along which updates cannot meet;
// where these are few, the input is cut into ranges along an axis that indices choose, and
// a lane of a range looks at all indices and does the updates that fall into it, still in
// their order. Where there are many indices, lanes look for them together
// (direct_scatter_lists.c).
//
// dynamic_update_slice is the same with one window, which is moved inside and
// replaces what is there: its axes are all in the groups.
#include "codegen/direct/direct_scatter.h"
#include "base/checked.h"
#include "base/fault.h"

#define LANES 16
#define VECTORS \
  4  // that a group takes at least along an axis that cannot be met on
#define LANES_A_CORE 256  // that are wanted where updates can meet

typedef pestle_scatter_t scatter_t;
typedef pestle_scatter_axis_t axis_t;
typedef pestle_scatter_axes_t axes_t;
typedef pestle_scatter_position_t position_t;

static void strides_of(const pestle_type_t* type, int64_t* out) {
  pestle_dense_strides(type->dims, (size_t)type->rank, 1, out);
}

static bool contains(pestle_i64s_t set, int64_t value) {
  for (size_t i = 0; i < set.count; ++i) {
    if (set.data[i] == value) return true;
  }
  return false;
}

static void push(axes_t* axes, axis_t axis) {
  if (axis.extent != 1) axes->list[axes->count++] = axis;
}

// --- Axes ---

static void add_window_axis(scatter_t* s, int32_t axis, axis_t a, bool last) {
  bool moved = contains(s->map, axis);
  s->limit[axis] = s->input->dims[axis] - a.extent;
  bool single = s->lanes && !moved;
  if (last && a.input == 1 && a.update == 1 && a.extent > 1 && !single) {
    s->vector = a;
    s->vector_groups = !moved;
  } else {
    push(moved ? &s->window : &s->groups, a);
  }
}

static void add_batch_axis(scatter_t* s, int64_t of_indices, axis_t a) {
  const pestle_node_t* node = s->d->node;
  pestle_i64s_t batching = PESTLE_NODE_I64S(node, input_batching_dims);
  pestle_i64s_t from = PESTLE_NODE_I64S(node, scatter_indices_batching_dims);
  bool alone = PESTLE_NODE_BOOL(node, unique_indices);
  for (size_t i = 0; i < from.count; ++i) {
    if (from.data[i] != of_indices) continue;
    a.input = s->input_stride[batching.data[i]];
    alone = true;
  }
  push(alone ? &s->groups : &s->batch, a);
}

static void sort_axes(scatter_t* s) {
  const pestle_node_t* node = s->d->node;
  int64_t update[PESTLE_MAX_RANK], index[PESTLE_MAX_RANK];
  pestle_i64s_t windows = PESTLE_NODE_I64S(node, update_window_dims);
  pestle_i64s_t inserted = PESTLE_NODE_I64S(node, inserted_window_dims);
  pestle_i64s_t batching = PESTLE_NODE_I64S(node, input_batching_dims);
  int64_t vector = PESTLE_NODE_I64(node, index_vector_dim);
  strides_of(s->input, s->input_stride);
  strides_of(s->updates, update);
  strides_of(s->indices, index);
  s->index_step = vector < s->indices->rank ? index[vector] : 0;
  for (int32_t i = 0; i < s->input->rank; ++i)
    s->limit[i] = s->input->dims[i] - 1;
  int32_t kept = 0, batch = 0;
  for (int32_t i = 0; i < s->updates->rank; ++i) {
    axis_t a = {.extent = s->updates->dims[i], .update = update[i]};
    if (contains(windows, i)) {
      while (contains(inserted, kept) || contains(batching, kept))
        ++kept;
      a.input = s->input_stride[kept];
      add_window_axis(s, kept++, a, i == s->updates->rank - 1);
    } else {
      if (batch == vector) ++batch;
      a.index = index[batch];
      add_batch_axis(s, batch++, a);
    }
  }
}

// --- Code ---

position_t pestle_scatter_move(scatter_t* s, position_t at, const axis_t* axis,
                               pk_t by) {
  pestle_kir_builder_t* k = s->d->k;
  if (axis->input) at.input = pestle_kir_madi(k, by, axis->input, at.input);
  if (axis->update) at.update = pestle_kir_madi(k, by, axis->update, at.update);
  if (axis->index) at.index = pestle_kir_madi(k, by, axis->index, at.index);
  return at;
}

static pk_t loop(scatter_t* s, const char* name, pk_t lo, pk_t hi) {
  return pestle_kir_for(s->d->k, name, lo, hi, 1, PESTLE_KIR_SERIAL);
}

position_t pestle_scatter_open(scatter_t* s, const axes_t* axes,
                               const char* name, position_t at) {
  for (uint32_t i = 0; i < axes->count; ++i) {
    const axis_t* a = &axes->list[i];
    pk_t zero = pestle_direct_index(s->d, 0);
    pk_t by = loop(s, name, zero, pestle_direct_index(s->d, a->extent));
    at = pestle_scatter_move(s, at, a, by);
  }
  return at;
}

int64_t pestle_scatter_elements(const axes_t* axes) {
  int64_t all = 1;
  for (uint32_t i = 0; i < axes->count; ++i)
    all *= axes->list[i].extent;
  return all;
}

position_t pestle_scatter_move_all(scatter_t* s, position_t at,
                                   const axes_t* axes, pk_t number) {
  pestle_direct_t* d = s->d;
  for (uint32_t i = axes->count; i-- > 0;) {
    const axis_t* a = &axes->list[i];
    pk_t by = pestle_direct_index(d, a->extent), step = number;
    if (i) {
      step = pestle_direct_op(d, PESTLE_OP_REMAINDER, number, by);
      number = pestle_direct_op(d, PESTLE_OP_DIVIDE, number, by);
    }
    at = pestle_scatter_move(s, at, a, step);
  }
  return at;
}

void pestle_scatter_close(scatter_t* s, uint32_t count) {
  while (count--)
    pestle_kir_end(s->d->k);
}

pestle_status_t pestle_scatter_update(scatter_t* s, position_t at,
                                      unsigned lanes, pk_t mask) {
  pestle_kir_builder_t* k = s->d->k;
  pk_t arguments[2 * PESTLE_SCATTER_INPUTS], results[PESTLE_SCATTER_INPUTS];
  if (s->is_slice) {
    pestle_kir_store(
        k, s->results[0], at.input,
        pestle_kir_load(k, s->changes[0], lanes, at.update, mask, 0), mask, 0);
    return NULL;
  }
  for (uint32_t i = 0; i < s->count; ++i) {
    arguments[i] = pestle_kir_load(k, s->results[i], lanes, at.input, mask, 0);
    arguments[s->count + i] =
        pestle_kir_load(k, s->changes[i], lanes, at.update, mask, 0);
  }
  PESTLE_TRY(pestle_direct_region(s->d, 0, arguments, results));
  for (uint32_t i = 0; i < s->count; ++i) {
    pestle_kir_store(k, s->results[i], at.input,
                     pestle_kir_splat(k, results[i], lanes), mask, 0);
  }
  return NULL;
}

// Vectors [first, end) of the last axis; |rest| asks whether what is left of it
// is to be done too.
static pestle_status_t update_vectors(scatter_t* s, position_t at, pk_t first,
                                      pk_t end, pk_t rest) {
  pestle_kir_builder_t* k = s->d->k;
  int64_t whole = s->vector.extent / LANES * LANES;
  axis_t vectors = {.input = LANES, .update = LANES};
  if (whole) {
    pk_t v = loop(s, "v", first, end);
    PESTLE_TRY(pestle_scatter_update(s, pestle_scatter_move(s, at, &vectors, v),
                                     LANES, PESTLE_KIR_NONE));
    pestle_kir_end(k);
  }
  if (whole == s->vector.extent) return NULL;
  if (rest != PESTLE_KIR_NONE) pestle_kir_if(k, rest);
  pk_t tail = pestle_direct_index(s->d, whole);
  pk_t extent = pestle_direct_index(s->d, s->vector.extent);
  pk_t mask = pestle_kir_mask(k, tail, extent, LANES);
  at = pestle_scatter_move(s, at, &s->vector, tail);
  PESTLE_TRY(pestle_scatter_update(s, at, LANES, mask));
  if (rest != PESTLE_KIR_NONE) pestle_kir_end(k);
  return NULL;
}

// The vectors that group |part| of the last axis takes.
static pestle_status_t update_window(scatter_t* s, position_t at, pk_t part) {
  pestle_direct_t* d = s->d;
  if (!s->vector.extent)
    return pestle_scatter_update(s, at, 1, PESTLE_KIR_NONE);
  int64_t vectors = s->vector.extent / LANES;
  pk_t all = pestle_direct_index(d, vectors);
  if (!s->vector_groups) {
    return update_vectors(s, at, pestle_direct_index(d, 0), all,
                          PESTLE_KIR_NONE);
  }
  pk_t first = pestle_kir_madi(d->k, part, s->part, PESTLE_KIR_NONE);
  pk_t end = pestle_direct_op(
      d, PESTLE_OP_MINIMUM, all,
      pestle_kir_madi(d->k, part, s->part, pestle_direct_index(d, s->part)));
  pk_t rest = pestle_direct_op(d, PESTLE_OP_EQ, part,
                               pestle_direct_index(d, vectors / s->part));
  return update_vectors(s, at, first, end, rest);
}

pk_t pestle_scatter_start(scatter_t* s, position_t* at) {
  pestle_direct_t* d = s->d;
  pk_t fits = pestle_kir_int(d->k, PESTLE_I1, 1, 1);
  for (size_t i = 0; i < s->map.count; ++i) {
    int64_t axis = s->map.data[i];
    pk_t from = pestle_kir_madi(
        d->k, at->index, 1, pestle_direct_index(d, (int64_t)i * s->index_step));
    pk_t start = pestle_kir_cast(d->k, pestle_direct_load(d, s->starts, from),
                                 PESTLE_INDEX);
    int64_t most = s->limit[axis] - PESTLE_FAULT(wrong_scatter_bound);
    pk_t inside = pestle_direct_clamp(d, start, 0, most < 0 ? 0 : most);
    fits = pestle_direct_op(d, PESTLE_OP_AND, fits,
                            pestle_direct_op(d, PESTLE_OP_EQ, start, inside));
    at->input = pestle_kir_madi(d->k, inside, s->input_stride[axis], at->input);
    if (i == s->ranged) s->place = inside;
    if (i != s->ranged || s->ranges == 1) continue;
    pk_t by = pestle_direct_index(d, s->range);
    fits = pestle_direct_op(
        d, PESTLE_OP_AND, fits,
        pestle_direct_op(d, PESTLE_OP_EQ, s->low,
                         pestle_direct_op(d, PESTLE_OP_DIVIDE, inside, by)));
  }
  return fits;
}

// Moves the window inside. An index of u64 may be above all of i64.
static void find_slice(scatter_t* s, position_t* at) {
  pestle_direct_t* d = s->d;
  for (int32_t i = 0; i < s->input->rank; ++i) {
    if (!s->limit[i]) continue;
    uint32_t given = pestle_direct_operand(d, (size_t)i + 2);
    pk_t start = pestle_direct_load(d, given, pestle_direct_index(d, 0));
    if (pestle_kir_type_of(d->k, start) == PESTLE_U64) {
      pk_t most = pestle_kir_int(d->k, PESTLE_U64, 1, s->limit[i]);
      start = pestle_direct_op(d, PESTLE_OP_MINIMUM, start, most);
    }
    start = pestle_direct_clamp(d, pestle_kir_cast(d->k, start, PESTLE_INDEX),
                                0, s->limit[i]);
    at->input = pestle_kir_madi(d->k, start, s->input_stride[i], at->input);
  }
}

static pestle_status_t emit_group(scatter_t* s, position_t at, pk_t part) {
  if (s->is_slice) {
    find_slice(s, &at);
    return update_window(s, at, part);
  }
  at = pestle_scatter_open(s, &s->batch, "b", at);
  pk_t fits = pestle_scatter_start(s, &at);
  pestle_kir_if(s->d->k, fits);
  at = pestle_scatter_open(s, &s->window, "w", at);
  PESTLE_TRY(update_window(s, at, part));
  pestle_scatter_close(s, s->window.count);
  pestle_kir_end(s->d->k);
  pestle_scatter_close(s, s->batch.count);
  return NULL;
}

// Parts of a row: few enough that a core walks along rows, not down columns, where each
// line of memory is another set of its cache, and enough that no core is without one.
static int64_t count_parts(scatter_t* s, int64_t groups) {
  const pestle_target_caps_t* caps = s->d->caps;
  s->part = VECTORS;
  if (!s->vector.extent || !s->vector_groups || !groups) return 1;
  int64_t vectors = (s->vector.extent + LANES - 1) / LANES;
  int64_t wanted = 2 * (int64_t)(caps->cores ? caps->cores : 1);
  int64_t parts = groups < wanted ? (wanted + groups - 1) / groups : 1;
  int64_t part = (vectors + parts - 1) / parts;
  if (part > s->part) s->part = part;
  return (vectors + s->part - 1) / s->part;
}

// Ranges of the first axis that indices choose: so many that no core is without work. A
// window of more than one place would lie in two.
static void count_ranges(scatter_t* s, int64_t total) {
  const pestle_target_caps_t* caps = s->d->caps;
  s->ranges = 1;
  if (!s->lanes || s->is_slice || !s->map.count || !total) return;
  int64_t axis = s->map.data[0], places = s->input->dims[axis];
  int64_t cores = caps->cores ? caps->cores : 1;
  int64_t wanted = cores * LANES_A_CORE / total;
  if (s->limit[axis] != places - 1 || wanted < 2 || !s->batch.count) return;
  s->range = wanted < places ? (places + wanted - 1) / wanted : 1;
  s->ranges = (places + s->range - 1) / s->range;
}

// The group loop: all of its axes as one, taken apart again.
static pestle_status_t emit_groups(scatter_t* s) {
  pestle_direct_t* d = s->d;
  int64_t total = pestle_scatter_elements(&s->groups);
  int64_t parts = count_parts(s, total);
  count_ranges(s, total * parts);
  total *= parts * s->ranges;
  pk_t zero = pestle_direct_index(d, 0);
  pk_t g = pestle_kir_for(d->k, "g", zero, pestle_direct_index(d, total), 1,
                          PESTLE_KIR_GROUP_X);
  pk_t by = pestle_direct_index(d, parts);
  pk_t part = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
  g = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  position_t at = {zero, zero, zero};
  by = pestle_direct_index(d, pestle_scatter_elements(&s->groups));
  s->low = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  g = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
  at = pestle_scatter_move_all(s, at, &s->groups, g);
  PESTLE_TRY(emit_group(s, at, part));
  pestle_kir_end(d->k);
  return NULL;
}

static scatter_t make(pestle_direct_t* d) {
  uint32_t n = d->node->operand_count / 2;
  scatter_t s = {.d = d,
                 .count = n,
                 .input = pestle_node_operand(d->node, 0)->type,
                 .indices = pestle_node_operand(d->node, n)->type,
                 .updates = pestle_node_operand(d->node, n + 1)->type,
                 .map = PESTLE_NODE_I64S(d->node, scatter_dims_to_operand_dims),
                 .lanes = d->caps && d->caps->flags & PESTLE_TARGET_LANES};
  return s;
}

bool pestle_direct_scatter_is_idle(const pestle_node_t* node) {
  pestle_direct_t d = {.node = node};
  scatter_t s = make(&d);
  return !pestle_type_count(s.updates);
}

pestle_status_t pestle_direct_scatter(pestle_direct_t* d) {
  scatter_t s = make(d);
  if (s.count > PESTLE_SCATTER_INPUTS) {
    return pestle_node_error(d->node, PESTLE_STATUS_UNSUPPORTED,
                             "%u inputs; at most %d", s.count,
                             PESTLE_SCATTER_INPUTS);
  }
  for (uint32_t i = 0; i < s.count; ++i) {
    s.results[i] = pestle_direct_result(d, i);
    s.changes[i] = pestle_direct_operand(d, s.count + 1 + i);
  }
  if (s.map.count) s.starts = pestle_direct_operand(d, s.count);
  sort_axes(&s);
  d->steps = (uint64_t)pestle_type_count(s.updates) * (4 + 4 * s.count);
  if (pestle_scatter_has_lists(&s)) return pestle_scatter_lists(&s);
  return emit_groups(&s);
}

// --- dynamic_update_slice ---

bool pestle_direct_dynamic_update_slice_is_idle(const pestle_node_t* node) {
  return !pestle_type_count(pestle_node_operand(node, 1)->type);
}

// An axis that the window fills is one with the axis before it.
static void merge_axes(scatter_t* s) {
  int64_t update[PESTLE_MAX_RANK];
  strides_of(s->input, s->input_stride);
  strides_of(s->updates, update);
  int64_t extent = 1;
  axes_t reversed = {.count = 0};
  for (int32_t i = s->input->rank; i-- > 0;) {
    int64_t size = s->updates->dims[i];
    s->limit[i] = s->input->dims[i] - size;
    extent *= size;
    if (!s->limit[i] && i) continue;
    // The stride of the innermost of the axes that are one.
    push(&reversed, (axis_t){.extent = extent,
                             .input = s->input_stride[i] * size / extent,
                             .update = update[i] * size / extent});
    extent = 1;
  }
  for (uint32_t i = reversed.count; i-- > 0;) {
    axis_t a = reversed.list[i];
    bool last = i == 0 && a.input == 1 && a.update == 1;
    if (last && !s->lanes)
      s->vector = a;
    else
      push(&s->groups, a);
  }
  s->vector_groups = true;
}

pestle_status_t pestle_direct_dynamic_update_slice(pestle_direct_t* d) {
  scatter_t s = {.d = d,
                 .count = 1,
                 .input = pestle_node_operand(d->node, 0)->type,
                 .updates = pestle_node_operand(d->node, 1)->type,
                 .lanes = (d->caps->flags & PESTLE_TARGET_LANES) != 0,
                 .is_slice = true};
  s.results[0] = pestle_direct_result(d, 0);
  s.changes[0] = pestle_direct_operand(d, 1);
  merge_axes(&s);
  d->steps = (uint64_t)pestle_type_count(s.updates);
  return emit_groups(&s);
}
