// SPDX-License-Identifier: Apache-2.0
// A stage as code: its buffers, the stages that are placed under its loops, and its
// statements.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"

// --- Statements ---

// Where value |v| of |stage| lies, for the open coordinates.
static const pestle_affine_t* position(pestle_emit_t* e, uint32_t stage,
                                       uint32_t v) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  if (s->write_index[v]) return pestle_emit_resolve(e, s->write_index[v][0]);
  const pestle_box_t* box = &e->box[s->tensors[v]];
  const pestle_affine_t* at = pestle_emit_box_row(e, s->tensors[v]);
  for (uint32_t i = 0; i < s->map_count; ++i) {
    const pestle_affine_t* c =
        pestle_affine_add(e->nest, e->coord[s->roots[i]],
                          pestle_affine_scale(e->nest, box->origin[i], -1));
    at = pestle_affine_add(e->nest, at,
                           pestle_affine_scale(e->nest, c, box->stride[i]));
  }
  return at;
}

pestle_kir_id_t pestle_emit_load_stage(pestle_emit_t* e, uint32_t stage,
                                       uint32_t v) {
  if (pestle_emit_has_failed(e)) return 0;
  return pestle_emit_load(e, pestle_nest_stage(e->nest, stage)->tensors[v],
                          position(e, stage, v));
}

void pestle_emit_store_stage(pestle_emit_t* e, uint32_t stage, uint32_t v,
                             pestle_kir_id_t value) {
  if (pestle_emit_has_failed(e)) return;
  pestle_emit_store(e, pestle_nest_stage(e->nest, stage)->tensors[v],
                    position(e, stage, v), value);
}

static void map_body(pestle_emit_t* e, uint32_t stage, void* user) {
  (void)user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  size_t scope = pestle_emit_scope(e);
  pestle_kir_id_t ids[PESTLE_MAX_RANK];
  uint32_t n = s->value_count;
  // All values first: results may overwrite arguments that others read.
  for (uint32_t first = 0; first < n; first += PESTLE_MAX_RANK) {
    uint32_t last = first + PESTLE_MAX_RANK < n ? first + PESTLE_MAX_RANK : n;
    for (uint32_t v = first; v < last; ++v) {
      ids[v - first] = pestle_emit_expr(e, s->values[v]);
    }
    bool writer = pestle_emit_open_writer(e, stage);
    for (uint32_t v = first; v < last; ++v) {
      pestle_emit_store_stage(e, stage, v, ids[v - first]);
    }
    if (writer) pestle_kir_end(e->k);
  }
  pestle_emit_prefetch_step(e, stage);
  pestle_emit_unscope(e, scope);
}

// --- Stages ---

// Registers are indexed by constants: a box that is walked by a real loop goes
// to scratch instead.
static void check_private(pestle_emit_t* e, const pestle_nest_stage_t* s) {
  bool unrolled = true;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->order[i]];
    bool loop = a->mark == PESTLE_MARK_SERIAL || a->mark >= PESTLE_MARK_GROUP;
    if (!a->reduce && loop && a->extent > 1) unrolled = false;
  }
  for (uint32_t v = 0; !unrolled && v < s->value_count; ++v) {
    pestle_nest_tensor_t* t = &e->nest->tensors.data[s->tensors[v]];
    if (t->scope == PESTLE_SCOPE_PRIVATE) t->scope = PESTLE_SCOPE_SHARED;
  }
}

static unsigned lanes_of(const pestle_emit_t* e, const pestle_nest_stage_t* s) {
  if (!s->order_count) return 1;
  const pestle_nest_axis_t* leaf =
      &e->nest->axes.data[s->order[s->order_count - 1]];
  bool vector = leaf->mark == PESTLE_MARK_VECTOR && !leaf->reduce;
  return vector ? (unsigned)leaf->full_extent : 1;
}

// The buffer of one of the stage's own tensors, as large as the largest box.
static void make_buffer(pestle_emit_t* e, const pestle_nest_stage_t* s,
                        uint32_t tensor) {
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  bool owned = t->scope == PESTLE_SCOPE_LANES;
  bool private_ = t->scope == PESTLE_SCOPE_PRIVATE || owned;
  unsigned lanes = private_ ? lanes_of(e, s) : 1;
  if (e->buffer[tensor] == PESTLE_KIR_NONE) {
    e->buffer[tensor] = pestle_kir_add_buffer(
        e->k, t->name, private_ ? PESTLE_KIR_PRIVATE : PESTLE_KIR_SHARED,
        t->type.dtype, lanes, 1, 0);
  }
  if (e->k->failed) return;
  pestle_kir_buffer_t* b = &e->k->buffer.data[e->buffer[tensor]];
  uint64_t count = (uint64_t)pestle_emit_box_count(e, tensor);
  if (owned) {
    count = (uint64_t)pestle_ceil_div((int64_t)count, t->lane_stride);
  } else if (private_) {
    count /= lanes;
  }
  if (b->count < count) b->count = count;
  if (private_) pestle_kir_alloc(e->k, e->buffer[tensor]);
}

void pestle_emit_buffers(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  check_private(e, s);
  for (uint32_t v = 0; v < s->value_count && !e->k->failed; ++v) {
    uint32_t tensor = s->tensors[v];
    if (e->nest->tensors.data[tensor].kind != PESTLE_TENSOR_STAGE) continue;
    make_buffer(e, s, tensor);
  }
}

void pestle_emit_stage(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  if (s->carried) {
    pestle_emit_carried_step(e, stage);
    return;
  }
  pestle_emit_buffers(e, stage);
  if (e->k->failed) return;
  if (s->is_reduction) {
    pestle_emit_reduce(e, stage);
    return;
  }
  if (s->transposed) {
    pestle_emit_transpose_in_registers(e, stage);
    return;
  }
  pestle_emit_walk_t w = {e, stage, map_body, NULL, true};
  pestle_emit_coords(e, stage);
  pestle_emit_attached(e, stage, -1);
  pestle_emit_coords(e, stage);
  pestle_emit_hoist_stage(&w);
  pestle_emit_walk(&w, s->order, s->order_count);
}

static void set_ready_stage(pestle_emit_t* e, uint32_t stage, bool ready) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    e->ready[s->tensors[v]] = ready;
  }
  // What a reduction carried is whole when the reduction is.
  for (uint32_t p = 0; p < stage && s->is_reduction; ++p) {
    const pestle_nest_stage_t* c = pestle_nest_stage(e->nest, p);
    if (c->carried && c->at_stage == (int32_t)stage) {
      set_ready_stage(e, p, ready);
    }
  }
}

static bool placed_here(const pestle_nest_stage_t* s, uint32_t stage,
                        int32_t axis) {
  return !s->inlined && s->at_stage == (int32_t)stage && s->at_axis == axis;
}

void pestle_emit_set_ready(pestle_emit_t* e, uint32_t stage, int32_t axis,
                           bool ready) {
  for (uint32_t p = 0; p < e->nest->stages.size; ++p) {
    if (placed_here(pestle_nest_stage(e->nest, p), stage, axis)) {
      set_ready_stage(e, p, ready);
    }
  }
}

static bool is_shared(const pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  bool shared = false;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_nest_tensor_t* t = &e->nest->tensors.data[s->tensors[v]];
    shared = shared || t->scope == PESTLE_SCOPE_SHARED;
  }
  return shared;
}

void pestle_emit_attached(pestle_emit_t* e, uint32_t stage, int32_t axis) {
  pestle_nest_t* nest = e->nest;
  int32_t vector = e->vector_axis;
  // Stages further in get their hull here first: what is placed here may be
  // read by them. They get their own box when their loop opens.
  for (size_t p = nest->stages.size; p-- > 0;) {
    const pestle_nest_stage_t* s = pestle_nest_stage(nest, (uint32_t)p);
    if (!pestle_emit_placed_under(e, (uint32_t)p, stage, axis)) continue;
    if (!s->carried) {
      pestle_emit_find_box(e, (uint32_t)p, stage, axis);
    } else if (s->at_stage == (int32_t)stage) {
      pestle_emit_coords(e, (uint32_t)p);  // its box was found before
    } else {
      pestle_emit_carried_box(e, (uint32_t)p, (uint32_t)s->at_stage);
    }
  }
  for (uint32_t p = 0; p < nest->stages.size && !nest->failed; ++p) {
    if (!placed_here(pestle_nest_stage(nest, p), stage, axis)) continue;
    e->vector_axis = -1;
    bool shared = is_shared(e, p);
    // Lanes may still read what the last step of a loop left there.
    if (shared && e->serial_loops) pestle_emit_barrier(e);
    pestle_emit_stage(e, p);
    if (shared) pestle_emit_barrier(e);
    set_ready_stage(e, p, true);
    e->vector_axis = vector;
  }
}
