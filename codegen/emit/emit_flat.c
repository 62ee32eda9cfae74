// SPDX-License-Identifier: Apache-2.0
// From a scheduled nest to the flat form.
//
// Invariants:
//  1. Loops are opened from a list of leaves, outermost first. A split whose
//     factor does not divide is peeled where its outer loop opens: first all
//     whole parts, then the rest with a shorter inner extent. So every other
//     place sees exact extents, and masks appear in the rest's vector only.
//  2. Stages placed under a loop are emitted when it has opened: consumers are
//     given their boxes first, from the last stage to the first, then code is
//     emitted from the first to the last.
//  3. A reduction keeps its accumulators in a private buffer indexed by its unrolled
//     leaves; they are written to the stage's tensor when its loops are done.
#include "codegen/emit/emit_flat.h"

#include <string.h>

#include "codegen/emit/emit_internal.h"

enum {
  // Groups that end are made so many at a time, by a loop that stops at the end, rather
  // than each to ask: 2 to 5 ns a group, measured on a Zen 5, of a product's tiles.
  MOST_TOGETHER = 16,
  // As long as so many are left for threads to share.
  LEAST_GROUPS = 256,
};

// The anchor's group axes, as one loop.
typedef struct groups_t {
  const uint32_t* axes;
  uint32_t count;
  int64_t total;
  uint32_t last;  // the innermost that ends; |count|: none
  int64_t inner;  // steps of those within |last|
} groups_t;

static int64_t group_extent(const pestle_emit_t* e, const groups_t* g,
                            uint32_t i) {
  return e->nest->axes.data[g->axes[i]].extent;
}

static groups_t find_groups(pestle_emit_t* e, const pestle_nest_stage_t* s) {
  groups_t g = {.axes = s->order, .total = 1, .inner = 1};
  while (g.count < s->order_count &&
         e->nest->axes.data[s->order[g.count]].mark == PESTLE_MARK_GROUP) {
    g.total *= group_extent(e, &g, g.count++);
  }
  g.last = g.count;
  int64_t inner = 1;
  for (uint32_t i = g.count; i-- > 0 && g.last == g.count;) {
    if (pestle_emit_has_end(e, g.axes[i])) {
      g.last = i;
      g.inner = inner;
    }
    inner *= group_extent(e, &g, i);
  }
  return g;
}

// Takes step |id| of axes [begin, end), the last one fastest, apart.
static void take_apart(pestle_emit_t* e, const groups_t* g, uint32_t begin,
                       uint32_t end, pestle_kir_id_t id) {
  for (uint32_t i = end; i-- > begin;) {
    pestle_kir_id_t extent = pestle_kir_index(e->k, group_extent(e, g, i));
    e->axis_id[g->axes[i]] =
        i > begin ? pestle_kir_scalar(e->k, PESTLE_OP_REMAINDER, id, extent,
                                      PESTLE_KIR_NONE)
                  : id;
    if (i == begin) break;
    id = pestle_kir_scalar(e->k, PESTLE_OP_DIVIDE, id, extent, PESTLE_KIR_NONE);
  }
}

// How many steps of axis |g->last| and those within begin before the end.
static pestle_kir_id_t live_steps(pestle_emit_t* e, const groups_t* g) {
  uint32_t axis = g->axes[g->last];
  for (uint32_t i = 0; i < g->last; ++i) {
    e->open[g->axes[i]] = true;
    e->value[g->axes[i]] = pestle_affine_axis(e->nest, g->axes[i]);
  }
  pestle_kir_id_t steps =
      pestle_emit_steps_to_end(e, axis, 0, group_extent(e, g, g->last));
  for (uint32_t i = 0; i < g->last; ++i)
    e->open[g->axes[i]] = false;
  return pestle_kir_madi(e->k, steps, g->inner, pestle_kir_index(e->k, 0));
}

// Groups of |together| steps of axis |g->last| and those within:
//
//   for g to 2 * 22 group.x                     2 x 342 steps, 16 together
//     for i to clamp(live - 16 (g % 22), 0, 16)
//       axis = min(16 (g % 22) + i, 341)
static void emit_together(pestle_emit_t* e, const groups_t* g, uint32_t stage,
                          int64_t together) {
  pestle_kir_id_t zero = pestle_kir_index(e->k, 0);
  int64_t steps = group_extent(e, g, g->last) * g->inner;
  int64_t parts = (steps + together - 1) / together, outer = 1;
  for (uint32_t i = 0; i < g->last; ++i)
    outer *= group_extent(e, g, i);
  pestle_kir_id_t id =
      pestle_kir_for(e->k, "g", zero, pestle_kir_index(e->k, outer * parts), 1,
                     PESTLE_KIR_GROUP_X);
  pestle_kir_id_t first =
      pestle_kir_scalar_i(e->k, PESTLE_OP_REMAINDER, id, parts);
  id = pestle_kir_scalar_i(e->k, PESTLE_OP_DIVIDE, id, parts);
  first = pestle_kir_madi(e->k, first, together, zero);
  take_apart(e, g, 0, g->last, id);
  pestle_kir_id_t left = pestle_kir_scalar(
      e->k, PESTLE_OP_SUBTRACT, live_steps(e, g), first, PESTLE_KIR_NONE);
  pestle_kir_id_t i =
      pestle_kir_for(e->k, "gi", zero, pestle_emit_clamp(e, left, 0, together),
                     1, PESTLE_KIR_SERIAL);
  size_t scope = pestle_emit_scope(e);
  i = pestle_kir_madi(e->k, i, 1, first);
  i = pestle_kir_scalar_i(e->k, PESTLE_OP_MINIMUM, i, steps - 1);
  take_apart(e, g, g->last, g->count, i);
  pestle_emit_open_lanes(e);
  pestle_emit_stage(e, stage);
  pestle_emit_close_lanes(e);
  pestle_emit_unscope(e, scope);
  pestle_kir_end(e->k);
  pestle_kir_end(e->k);
}

// The group loop: all group axes of the anchor as one, taken apart again.
static void emit_anchor(pestle_emit_t* e, uint32_t stage) {
  groups_t g = find_groups(e, pestle_nest_stage(e->nest, stage));
  int64_t together = g.total / LEAST_GROUPS;
  if (together > MOST_TOGETHER) together = MOST_TOGETHER;
  pestle_emit_count_lanes(e);
  bool has_cores = e->nest->subgroup <= 1 && !pestle_emit_has_lanes(e);
  if (has_cores && g.last < g.count && together > 1) {
    emit_together(e, &g, stage, together);
    return;
  }
  pestle_kir_id_t end = pestle_kir_index(e->k, g.total);
  pestle_kir_id_t id = pestle_kir_for(e->k, "g", pestle_kir_index(e->k, 0), end,
                                      1, PESTLE_KIR_GROUP_X);
  if (g.total > 0) {
    take_apart(e, &g, 0, g.count, id);
    pestle_emit_open_lanes(e);
    pestle_emit_stage(e, stage);
    pestle_emit_close_lanes(e);
  }
  pestle_kir_end(e->k);
}

void pestle_emit_strips(pestle_kir_builder_t* k, pestle_kir_id_t number,
                        int64_t rows, int64_t columns, pestle_kir_id_t* out_row,
                        pestle_kir_id_t* out_column) {
  int64_t strip = 8;  // rows that share columns of b in the cache
  while (rows % strip)
    strip /= 2;
  pestle_kir_id_t which =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, strip * columns);
  pestle_kir_id_t in =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, strip * columns);
  pestle_kir_id_t row = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, strip);
  *out_row = pestle_kir_madi(k, which, strip, row);
  *out_column = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, strip);
}

static pestle_status_t bind_arguments(pestle_emit_t* e, pestle_emitted_t* out) {
  pestle_nest_t* nest = e->nest;
  out->count = 0;
  uint8_t* used =
      pestle_arena_alloc_zero(nest->arena, nest->tensors.size + 1, 1);
  if (!used) return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_nest_stage(nest, s);
    if (st->inlined) continue;
    for (uint32_t i = 0; i < st->root_count; ++i) {
      const pestle_nest_axis_t* a = &nest->axes.data[st->roots[i]];
      if (a->end_scale) used[a->end_tensor] = 1;
    }
    uint8_t* seen =
        pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
    if (!seen) return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
    for (uint32_t v = 0; v < st->value_count; ++v) {
      pestle_expr_mark_tensors(nest, seen, st->values[v], used);
      if (st->is_reduction) {
        pestle_expr_mark_tensors(nest, seen, st->inits[v], used);
      }
      used[st->tensors[v]] = 1;
    }
  }
  for (uint32_t t = 0; t < nest->tensors.size; ++t) {
    const pestle_nest_tensor_t* x = &nest->tensors.data[t];
    if (!used[t] || x->kind == PESTLE_TENSOR_STAGE) continue;
    if (out->count == sizeof(out->tensors) / sizeof(out->tensors[0])) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "kernel '%s' has more than %u arguments; split the "
                          "group with --no-fuse",
                          nest->name, out->count);
    }
    bool input = x->kind == PESTLE_TENSOR_INPUT;
    int64_t count = x->pack ? x->packed_elements : pestle_type_count(&x->type);
    unsigned flags = input         ? PESTLE_KIR_READONLY
                     : x->streamed ? PESTLE_KIR_NONTEMPORAL
                                   : 0;
    e->buffer[t] = pestle_kir_add_buffer(e->k, x->name, PESTLE_KIR_GLOBAL,
                                         x->type.dtype, 1, count, flags);
    if (x->align && !e->k->failed) {
      e->k->buffer.data[e->buffer[t]].align = x->align;
    }
    out->tensors[out->count++] = t;
  }
  return NULL;
}

// A result that overwrites an argument shares its alias set, and the argument,
// by all its names, is not read-only to the compiler.
static void join_aliases(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  for (uint32_t o = 0; o < nest->tensors.size; ++o) {
    const pestle_nest_tensor_t* out = &nest->tensors.data[o];
    if (out->kind != PESTLE_TENSOR_OUTPUT || out->alias < 0) continue;
    for (uint32_t i = 0; i < nest->tensors.size; ++i) {
      const pestle_nest_tensor_t* in = &nest->tensors.data[i];
      if (in->kind != PESTLE_TENSOR_INPUT || in->slot != (uint32_t)out->alias ||
          e->buffer[i] == PESTLE_KIR_NONE || e->k->failed) {
        continue;
      }
      pestle_kir_buffer_t* a = &e->k->buffer.data[e->buffer[i]];
      pestle_kir_buffer_t* b = &e->k->buffer.data[e->buffer[o]];
      a->flags &= (uint8_t)~PESTLE_KIR_READONLY;
      a->alias_set = b->alias_set =
          a->alias_set < b->alias_set ? a->alias_set : b->alias_set;
    }
  }
}

static bool alloc_tables(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  size_t axes = nest->axes.size + 1 + PESTLE_EMIT_OWN_AXES;
  size_t tensors = nest->tensors.size + 1;
  e->memo_count = nest->expr_count;
  e->buffer = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, tensors);
  e->box = pestle_arena_alloc_zero(nest->arena, tensors * sizeof(*e->box),
                                   _Alignof(pestle_box_t));
  e->open = pestle_arena_alloc_zero(nest->arena, axes, 1);
  e->ready = pestle_arena_alloc_zero(nest->arena, tensors, 1);
  e->value = pestle_arena_alloc_zero(nest->arena, axes * sizeof(*e->value),
                                     _Alignof(pestle_affine_t*));
  e->coord = pestle_arena_alloc_zero(nest->arena, axes * sizeof(*e->coord),
                                     _Alignof(pestle_affine_t*));
  e->axis_id = PESTLE_ARENA_ARRAY(nest->arena, pestle_kir_id_t, axes);
  e->memo = PESTLE_ARENA_ARRAY(nest->arena, pestle_kir_id_t, e->memo_count + 1);
  e->checked = pestle_arena_alloc_zero(
      nest->arena, (e->memo_count + 1) * sizeof(uint32_t), 4);
  if (!e->buffer || !e->box || !e->open || !e->ready || !e->value ||
      !e->coord || !e->axis_id || !e->memo || !e->checked) {
    return false;
  }
  memset(e->buffer, 0xff, tensors * sizeof(uint32_t));
  memset(e->axis_id, 0xff, axes * sizeof(pestle_kir_id_t));
  memset(e->memo, 0xff, (e->memo_count + 1) * sizeof(pestle_kir_id_t));
  return true;
}

pestle_status_t pestle_emit_flat(pestle_nest_t* nest,
                                 pestle_numerics_t numerics,
                                 pestle_kir_builder_t* k,
                                 pestle_emitted_t* out_args) {
  pestle_emit_t e = {
      .nest = nest, .k = k, .vector_axis = -1, .lanes = 1, .valid = 1};
  e.contract = numerics != PESTLE_NUMERICS_STRICT;
  k->facts = e.contract ? PESTLE_KIR_CONTRACT : 0;
  pestle_vec_init(&e.undo, nest->allocator);
  if (!alloc_tables(&e)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
  }
  PESTLE_TRY(bind_arguments(&e, out_args));
  join_aliases(&e);
  pestle_status_t status = NULL;
  if (nest->template.row) {
    status = nest->template.row->emit(&e);
  } else {
    emit_anchor(&e, (uint32_t)nest->stages.size - 1);
  }
  pestle_vec_deinit(&e.undo);
  PESTLE_TRY(status);
  PESTLE_TRY(pestle_nest_status(nest));
  return pestle_kir_finish(k);
}
