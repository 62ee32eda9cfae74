// SPDX-License-Identifier: Apache-2.0
// A map whose tiles are read along one axis and written along another:
//
//   for each tile: a group of 32 x 8 lanes
//     rows of the argument's tile, as they lie, to shared memory
//     barrier
//     results, as they lie; what was transposed comes from its column
//
// Past the edges the first half reads the last elements again; the second half
// writes nothing.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/template/shared_transpose/shared_transpose.h"

typedef struct transpose_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  pestle_shared_transpose_t x;
  const pestle_nest_stage_t* y;
  uint32_t stage, last, tile;        // the last axis; the shared buffer
  uint32_t run_axis, lane_axis;      // what a vector's coordinate is made of
  int64_t tiles_turned, tiles_last;  // of the other axes' one
  pestle_kir_id_t turned_tile, last_tile, along, row;
} transpose_t;

static int64_t extent_of(const transpose_t* t, uint32_t axis) {
  return t->e->nest->axes.data[axis].full_extent;
}

static void set_coord(const transpose_t* t, uint32_t axis, pestle_kir_id_t id) {
  t->e->coord[axis] = pestle_affine_axis(t->e->nest, axis);
  t->e->axis_id[axis] = id;
}

// |axis| at vector |id| of it, whose lanes lie along it.
static void set_vector(const transpose_t* t, uint32_t axis,
                       pestle_kir_id_t id) {
  pestle_emit_t* e = t->e;
  if (t->x.vector == 1) {
    set_coord(t, axis, id);
    return;
  }
  const pestle_affine_t* run = pestle_affine_axis(e->nest, t->run_axis);
  e->coord[axis] =
      pestle_affine_add(e->nest, pestle_affine_scale(e->nest, run, t->x.vector),
                        pestle_affine_axis(e->nest, t->lane_axis));
  e->axis_id[t->run_axis] = id;
  pestle_emit_open_vector(e, t->lane_axis, t->x.vector);
}

// --- Groups ---

static void open_groups(transpose_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t all = 1;
  for (uint32_t i = 0; i < t->y->map_count; ++i) {
    uint32_t axis = t->y->roots[i];
    if (axis != t->last && axis != t->x.turned) all *= extent_of(t, axis);
  }
  t->tiles_turned = pestle_ceil_div(extent_of(t, t->x.turned), t->x.side);
  t->tiles_last = pestle_ceil_div(extent_of(t, t->last), t->x.side);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end =
      pestle_kir_index(k, all * t->tiles_turned * t->tiles_last);
  pestle_kir_id_t g = pestle_kir_for(k, "g", zero, end, 1, PESTLE_KIR_GROUP_X);
  end = pestle_kir_index(
      k, PESTLE_SHARED_TRANSPOSE_ALONG * PESTLE_SHARED_TRANSPOSE_ROWS);
  pestle_kir_id_t lane =
      pestle_kir_for(k, "lane", zero, end, 1, PESTLE_KIR_LANE_X);
  t->along = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, lane,
                                 PESTLE_SHARED_TRANSPOSE_ALONG);
  t->row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, lane,
                               PESTLE_SHARED_TRANSPOSE_ALONG);
  t->last_tile = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, t->tiles_last);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, t->tiles_last);
  t->turned_tile =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, t->tiles_turned);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, t->tiles_turned);
  for (uint32_t i = t->y->map_count; i-- > 0;) {
    uint32_t axis = t->y->roots[i];
    if (axis == t->last || axis == t->x.turned) continue;
    set_coord(
        t, axis,
        pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, extent_of(t, axis)));
    g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, extent_of(t, axis));
  }
}

// Opens an IF for each axis that ends: of the two that are turned a group has a tile, of
// the others a place.
static uint32_t open_ends(transpose_t* t) {
  uint32_t opened = 0;
  pestle_kir_id_t zero = pestle_kir_index(t->k, 0);
  for (uint32_t i = 0; i < t->y->map_count; ++i) {
    int32_t axis = (int32_t)t->y->roots[i];
    int64_t extent = extent_of(t, (uint32_t)axis);
    pestle_kir_id_t place = t->e->axis_id[axis];
    if ((uint32_t)axis == t->last)
      place = pestle_kir_madi(t->k, t->last_tile, t->x.side, zero);
    if ((uint32_t)axis == t->x.turned)
      place = pestle_kir_madi(t->k, t->turned_tile, t->x.side, zero);
    opened += pestle_emit_open_place(t->e, &axis, &extent, 1, place);
  }
  return opened;
}

// The rows of a tile that a lane takes; |*out_row| is which.
static void open_rows(const transpose_t* t, pestle_kir_id_t* out_row) {
  pestle_kir_id_t i =
      pestle_kir_unroll(t->k, "i", t->x.side / PESTLE_SHARED_TRANSPOSE_ROWS);
  *out_row = pestle_kir_madi(t->k, i, PESTLE_SHARED_TRANSPOSE_ROWS, t->row);
}

// --- The two halves ---

static void take_tile(const transpose_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t row;
  int64_t columns = extent_of(t, t->last);
  int64_t runs = extent_of(t, t->x.turned) / t->x.vector;
  open_rows(t, &row);
  size_t scope = pestle_emit_scope(t->e);
  pestle_kir_id_t at = pestle_kir_madi(k, t->last_tile, t->x.side, row);
  if (columns % t->x.side)
    at = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, at, columns - 1);
  set_coord(t, t->last, at);
  at = pestle_kir_madi(k, t->turned_tile, PESTLE_SHARED_TRANSPOSE_ALONG,
                       t->along);
  if (runs % PESTLE_SHARED_TRANSPOSE_ALONG) {
    at = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, at, runs - 1);
  }
  set_vector(t, t->x.turned, at);
  pestle_kir_id_t value = pestle_emit_expr(t->e, t->x.read);
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(t->e, scope);
  at = pestle_kir_madi(
      k, row, pestle_shared_transpose_pitch(&t->x),
      pestle_kir_madi(k, t->along, t->x.vector, pestle_kir_index(k, 0)));
  pestle_kir_store(k, t->tile, at, value, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// What was transposed, of the results at hand.
static pestle_kir_id_t from_tile(const transpose_t* t, pestle_kir_id_t row) {
  pestle_kir_builder_t* k = t->k;
  int64_t pitch = pestle_shared_transpose_pitch(&t->x);
  unsigned lanes = (unsigned)t->x.vector;
  pestle_kir_id_t at = pestle_kir_madi(k, t->along, pitch * t->x.vector, row);
  if (lanes == 1) {
    return pestle_kir_load(k, t->tile, 1, at, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_id_t each = pestle_kir_scalar(
      k, PESTLE_OP_MULTIPLY, pestle_kir_iota(k, PESTLE_INDEX, lanes),
      pestle_kir_int(k, PESTLE_INDEX, lanes, pitch), PESTLE_KIR_NONE);
  each = pestle_kir_scalar(k, PESTLE_OP_ADD, each,
                           pestle_kir_splat(k, at, lanes), PESTLE_KIR_NONE);
  return pestle_kir_gather(k, t->tile, each, PESTLE_KIR_NONE);
}

static void give_results(const transpose_t* t) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t row;
  int64_t rows = extent_of(t, t->x.turned);
  int64_t runs = extent_of(t, t->last) / t->x.vector;
  bool rest_rows = rows % t->x.side != 0;
  bool rest_runs = runs % PESTLE_SHARED_TRANSPOSE_ALONG != 0;
  pestle_kir_id_t run =
      pestle_kir_madi(k, t->last_tile, PESTLE_SHARED_TRANSPOSE_ALONG, t->along);
  if (rest_runs) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, run, runs));
    run = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, run, runs - 1);
  }
  open_rows(t, &row);
  pestle_kir_id_t turned = pestle_kir_madi(k, t->turned_tile, t->x.side, row);
  if (rest_rows) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, turned, rows));
    turned = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, turned, rows - 1);
  }
  size_t scope = pestle_emit_scope(e);
  set_coord(t, t->x.turned, turned);
  set_vector(t, t->last, run);
  pestle_emit_take(e, t->x.read, from_tile(t, row));
  for (uint32_t v = 0; v < t->y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, t->y->values[v]);
    pestle_emit_store_stage(e, t->stage, v, value);
  }
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(e, scope);
  if (rest_rows) pestle_kir_end(k);
  pestle_kir_end(k);
  if (rest_runs) pestle_kir_end(k);
}

pestle_status_t pestle_shared_transpose_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  uint32_t stage = nest->template.stage;
  int64_t tensor = nest->template.ints[0];
  transpose_t t = {.e = e, .k = e->k, .stage = stage};
  t.y = pestle_nest_stage(nest, stage);
  if (!pestle_shared_transpose_find(nest, &t.x) || t.x.read->i != tensor) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its argument is read otherwise",
                        nest->name);
  }
  t.last = t.y->roots[t.y->map_count - 1];
  int64_t most = extent_of(&t, t.last);
  if (extent_of(&t, t.x.turned) > most) most = extent_of(&t, t.x.turned);
  t.run_axis = pestle_nest_add_axis(nest, "run", (int32_t)stage, false,
                                    pestle_ceil_div(most, t.x.vector));
  t.lane_axis =
      pestle_nest_add_axis(nest, "of_run", (int32_t)stage, false, t.x.vector);
  t.tile = pestle_kir_add_buffer(
      e->k, "tile", PESTLE_KIR_SHARED, nest->tensors.data[tensor].type.dtype, 1,
      t.x.side * pestle_shared_transpose_pitch(&t.x), 0);
  open_groups(&t);
  uint32_t ends = open_ends(&t);
  take_tile(&t);
  pestle_kir_barrier(e->k);
  give_results(&t);
  pestle_emit_close_places(e, ends);
  pestle_kir_end(e->k);
  pestle_kir_end(e->k);
  return NULL;
}
