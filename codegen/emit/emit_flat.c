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

// The group loop: all group axes of the anchor as one, taken apart again.
static void emit_anchor(pestle_emit_t* e, uint32_t stage) {
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  uint32_t groups = 0;
  int64_t total = 1;
  while (groups < s->order_count &&
         nest->axes.data[s->order[groups]].mark == PESTLE_MARK_GROUP) {
    total *= nest->axes.data[s->order[groups]].extent;
    ++groups;
  }
  pestle_kir_id_t end = pestle_kir_index(e->k, total);
  pestle_kir_id_t g = pestle_kir_for(e->k, "g", pestle_kir_index(e->k, 0), end,
                                     1, PESTLE_KIR_GROUP_X);
  if (total > 0) {
    for (uint32_t i = groups; i-- > 0;) {
      pestle_kir_id_t extent =
          pestle_kir_index(e->k, nest->axes.data[s->order[i]].extent);
      e->axis_id[s->order[i]] =
          i ? pestle_kir_scalar(e->k, PESTLE_OP_REMAINDER, g, extent,
                                PESTLE_KIR_NONE)
            : g;
      if (i) {
        g = pestle_kir_scalar(e->k, PESTLE_OP_DIVIDE, g, extent,
                              PESTLE_KIR_NONE);
      }
    }
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
