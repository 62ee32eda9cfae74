// SPDX-License-Identifier: Apache-2.0
// The whole kernel: groups, steps, and which slot is filled while another one is
// multiplied.
#include "codegen/template/shared_tile/emit.h"
#include "base/bits.h"

pestle_kir_id_t pestle_shared_tile_min(const shared_emit_t* t,
                                       pestle_kir_id_t a, int64_t b) {
  return pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, a, b);
}

// --- Coordinates ---

static void set_coord(shared_emit_t* t, uint32_t axis, pestle_kir_id_t id) {
  t->e->coord[axis] = pestle_affine_axis(t->e->nest, axis);
  t->e->axis_id[axis] = id;
}

static void set_run(shared_emit_t* t, uint32_t axis, pestle_kir_id_t id,
                    int64_t run, uint32_t run_axis, uint32_t lane_axis) {
  pestle_nest_t* nest = t->e->nest;
  const pestle_affine_t* at =
      pestle_affine_scale(nest, pestle_affine_axis(nest, run_axis), run);
  if (lane_axis != PESTLE_KIR_NONE) {
    at = pestle_affine_add(nest, at, pestle_affine_axis(nest, lane_axis));
  }
  t->e->coord[axis] = at;
  t->e->axis_id[run_axis] = id;
}

void pestle_shared_tile_coords(shared_emit_t* t,
                               const pestle_product_axes_t* axes, bool last,
                               pestle_kir_id_t number, int64_t run,
                               uint32_t run_axis, uint32_t lane_axis) {
  bool first = run > 1;  // no run was met yet
  int64_t left = axes->all / run;
  for (uint32_t i = axes->count; i-- > 0;) {
    int32_t axis = last ? axes->last[i] : (int32_t)axes->reduce[i];
    int64_t extent = axes->extent[i];
    bool runs = first && extent > 1;
    if (extent == 1) {
      if (axis >= 0) {
        t->e->coord[axis] = pestle_affine_const(t->e->nest, 0);
      }
      continue;
    }
    if (runs) extent /= run;
    pestle_kir_id_t id = number;
    if (left > extent) {
      id = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, number, extent);
      number = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, number, extent);
    }
    left /= extent;
    if (runs) {
      set_run(t, (uint32_t)axis, id, run, run_axis, lane_axis);
    } else {
      set_coord(t, (uint32_t)axis, id);
    }
    if (runs) first = false;
  }
}

// --- Steps ---

// Which steps are the group's: all, or a part of them.
static void find_steps(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t each = pestle_ceil_div(t->steps, t->t->parts);
  t->ends = pestle_kir_index(k, t->steps);
  if (t->t->parts == 1) return;
  t->first = pestle_kir_madi(k, t->rank, (int32_t)each, pestle_kir_index(k, 0));
  t->ends = pestle_kir_scalar(k, PESTLE_OP_SUBTRACT, t->ends, t->first,
                              PESTLE_KIR_NONE);
  t->ends = pestle_shared_tile_min(t, t->ends, each);
}

// Begins to move the boxes of the group's step |at|, if there is one.
static void fetch_ahead(shared_emit_t* t, pestle_kir_id_t at, bool asks) {
  pestle_kir_builder_t* k = t->k;
  bool whole = t->t->parts == 1;
  pestle_kir_id_t step = whole ? at : pestle_kir_madi(k, at, 1, t->first);
  // What the last part has fewer of is not fetched: the least says so of addresses too.
  if (t->steps % t->t->parts)
    step = pestle_shared_tile_min(t, step, t->steps - 1);
  pestle_kir_id_t to =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, at, t->t->slots);
  if (asks) {
    pestle_kir_if(k, whole ? pestle_kir_scalar_i(k, PESTLE_OP_LT, at, t->steps)
                           : pestle_kir_scalar(k, PESTLE_OP_LT, at, t->ends,
                                               PESTLE_KIR_NONE));
  }
  pestle_shared_tile_fetch(t, &t->a, step, to);
  pestle_shared_tile_fetch(t, &t->b, step, to);
  if (asks) pestle_kir_end(k);
}

// All slots but one are on their way while that one is multiplied.
static void steps_ahead(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t slots = t->t->slots;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  find_steps(t);
  for (int64_t s = 0; s + 1 < slots; ++s) {
    if (s < t->steps) fetch_ahead(t, pestle_kir_index(k, s), t->t->parts > 1);
    pestle_kir_act(k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
  }
  pestle_kir_id_t step =
      pestle_kir_for(k, "step", zero, t->ends, 1, PESTLE_KIR_SERIAL);
  pestle_kir_act(k, PESTLE_KIR_COPY_WAIT, (uint32_t)slots - 2, 0, 0, 0);
  pestle_kir_barrier(k);
  pestle_kir_id_t next =
      pestle_kir_madi(k, step, 1, pestle_kir_index(k, slots - 1));
  fetch_ahead(t, next, true);
  pestle_kir_act(k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
  pestle_shared_tile_multiply(
      t, pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, step, slots));
  pestle_kir_end(k);
}

// The next slot is fetched while this one is multiplied, and put after it.
static void steps_by_two(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, t->steps);
  bool copies = t->a.copies || t->b.copies;
  pestle_shared_tile_fetch(t, &t->a, zero, zero);
  pestle_shared_tile_fetch(t, &t->b, zero, zero);
  pestle_shared_tile_put(t, &t->a, zero);
  pestle_shared_tile_put(t, &t->b, zero);
  pestle_shared_tile_meet(t, copies);
  if (t->steps == 1) {
    pestle_shared_tile_multiply(t, zero);
    return;
  }
  pestle_kir_id_t step =
      pestle_kir_for(k, "step", zero, end, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t next = pestle_kir_madi(k, step, 1, pestle_kir_index(k, 1));
  pestle_kir_id_t more = pestle_kir_scalar_i(k, PESTLE_OP_LT, next, t->steps);
  pestle_kir_id_t slot = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, step, 2);
  pestle_kir_id_t other = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, next, 2);
  pestle_kir_if(k, more);
  pestle_shared_tile_fetch(t, &t->a, next, other);
  pestle_shared_tile_fetch(t, &t->b, next, other);
  pestle_kir_end(k);
  pestle_shared_tile_multiply(t, slot);
  pestle_kir_if(k, more);
  pestle_shared_tile_put(t, &t->a, other);
  pestle_shared_tile_put(t, &t->b, other);
  pestle_kir_end(k);
  pestle_shared_tile_meet(t, copies);
  pestle_kir_end(k);
}

// --- Groups ---

static void open_groups(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t tiles_m = pestle_ceil_div(t->p.m.all, t->t->m);
  int64_t tiles_n = pestle_ceil_div(t->p.n.all, t->t->n);
  int64_t of_batch = tiles_m * tiles_n;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, of_batch * t->p.batch.all);
  pestle_kir_id_t g = pestle_kir_for(k, "g", zero, end, 1, PESTLE_KIR_GROUP_X);
  if (t->t->parts > 1) {
    end = pestle_kir_index(k, t->t->parts);
    t->rank = pestle_kir_for(k, "rank", zero, end, 1, PESTLE_KIR_CLUSTER);
  }
  end = pestle_kir_index(k, t->lanes);
  t->lane = pestle_kir_for(k, "lane", zero, end, 1, PESTLE_KIR_LANE_X);
  pestle_kir_id_t in_batch = g;
  t->batch = zero;
  if (t->p.batch.all > 1) {
    t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, of_batch);
    in_batch = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, of_batch);
  }
  pestle_emit_strips(k, in_batch, tiles_m, tiles_n, &t->a.tile, &t->b.tile);
}

// Axes that exist here alone: the run of a coordinate, and a lane of it.
static void add_run_axes(shared_emit_t* t, const char* name, int64_t extent,
                         int64_t run, uint32_t* out_run, uint32_t* out_lane) {
  pestle_nest_t* nest = t->e->nest;
  *out_run = pestle_nest_add_axis(nest, name, (int32_t)t->p.reduce, false,
                                  pestle_ceil_div(extent, run));
  *out_lane =
      pestle_nest_add_axis(nest, name, (int32_t)t->p.reduce, false, run);
}

static void add_axes(shared_emit_t* t) {
  const pestle_product_axes_t* of_a = t->p.a.along_k ? &t->p.k : &t->p.m;
  const pestle_product_axes_t* of_b = t->p.b.along_k ? &t->p.k : &t->p.n;
  add_run_axes(t, "run_a", pestle_product_last_extent(of_a), t->p.a.run,
               &t->a.run_axis, &t->a.lane_axis);
  add_run_axes(t, "run_b", pestle_product_last_extent(of_b), t->p.b.run,
               &t->b.run_axis, &t->b.lane_axis);
  add_run_axes(t, "run_y", pestle_product_last_extent(&t->p.n), t->vector,
               &t->run_axis, &t->lane_axis);
}

// Opens an IF for each of batch axes, rows and columns of which tiles may lie behind an
// end.
static uint32_t open_ends(shared_emit_t* t) {
  const pestle_product_axes_t *m = &t->p.m, *n = &t->p.n, *b = &t->p.batch;
  uint32_t opened =
      pestle_emit_open_place(t->e, b->last, b->extent, b->count, t->batch);
  pestle_kir_id_t zero = pestle_kir_index(t->k, 0);
  pestle_kir_id_t row = pestle_kir_madi(t->k, t->a.tile, t->t->m, zero);
  pestle_kir_id_t column = pestle_kir_madi(t->k, t->b.tile, t->t->n, zero);
  opened += pestle_emit_open_end(t->e, m->last, m->extent, m->count, row);
  opened += pestle_emit_open_end(t->e, n->last, n->extent, n->count, column);
  return opened;
}

pestle_status_t pestle_shared_tile_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  pestle_shared_tile_t tile = pestle_shared_tile_of(&nest->template);
  shared_emit_t t = {.e = e, .k = e->k, .t = &tile};
  if (!pestle_product_find(nest, nest->template.stage, tile.units, &t.p)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its product is none any more",
                        nest->name);
  }
  t.lanes = pestle_shared_tile_lanes(t.t);
  t.steps = pestle_ceil_div(t.p.k.all, t.t->k);
  // A vector of sums: two of a fragment's row, or 16 bytes.
  t.row_vector = t.t->r < 4 ? t.t->r : 4;
  t.vector = 16 / (int64_t)pestle_dtype_size(t.p.sums);
  if (t.t->units == PESTLE_UNITS_MMA || t.t->units == PESTLE_UNITS_MMA8) {
    t.vector = 2;
  }
  t.strips = pestle_shared_tile_has_strips(t.t, nest, &t.p);
  if (t.strips || tile.parts > 1) {
    int64_t columns = pestle_product_last_extent(&t.p.n);
    t.vector = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
  }
  if (t.vector > t.t->c && t.t->units != PESTLE_UNITS_TEAMS) {
    t.vector = t.t->c;
  }
  add_axes(&t);
  pestle_shared_tile_add_box(&t, "tile_a", &t.p.a, &t.p.m, t.t->m, &t.a);
  pestle_shared_tile_add_box(&t, "tile_b", &t.p.b, &t.p.n, t.t->n, &t.b);
  open_groups(&t);
  uint32_t ends = open_ends(&t);
  pestle_shared_tile_coords(&t, &t.p.batch, false, t.batch, 1, 0, 0);
  pestle_shared_tile_start_sums(&t);
  if (t.t->slots > 2) {
    steps_ahead(&t);
  } else {
    steps_by_two(&t);
  }
  pestle_shared_tile_results(&t);
  pestle_emit_close_places(e, ends);
  for (int open = tile.parts > 1 ? 3 : 2; open > 0; --open)
    pestle_kir_end(e->k);
  return NULL;
}
