// SPDX-License-Identifier: Apache-2.0
// Boxes of an operand: neighbouring lanes take runs that lie side by side.
#include "base/bits.h"
#include "codegen/template/shared_tile/emit.h"

void pestle_shared_tile_add_box(shared_emit_t* t, const char* name,
                                const pestle_product_side_t* side,
                                const pestle_product_axes_t* axes, int64_t rows,
                                shared_box_t* box) {
  box->side = side;
  box->axes = axes;
  box->rows = rows;
  box->pitch = pestle_shared_tile_pitch(t->t, side, rows);
  box->slot = pestle_shared_tile_slot(t->t, side, rows);
  box->by_rows = t->t->units && side->along_k;
  box->runs = rows * t->t->k / side->run;
  box->each = pestle_ceil_div(box->runs, t->lanes);
  // Sums without units are of elements of k that follow each other.
  bool turns = !t->t->units && side->along_k;
  bool wanted = t->t->async || t->t->slots > 2;
  box->copies = wanted && side->read && !turns;
  box->buffer =
      pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, side->dtype, 1,
                            t->t->slots * box->slot, 0);
  box->held = PESTLE_KIR_NONE;
  if (box->copies) return;
  box->held =
      pestle_kir_add_buffer(t->k, "held", PESTLE_KIR_PRIVATE, side->dtype,
                            (unsigned)side->run, box->each, 0);
}

// Where a run stands in its box: along the runs' axis in runs, across it.
typedef struct run_t {
  pestle_kir_id_t along, across;
} run_t;

static run_t open_run(shared_emit_t* t, const shared_box_t* box,
                      pestle_kir_id_t i) {
  const pestle_product_side_t* s = box->side;
  int64_t per = (s->along_k ? t->t->k : box->rows) / s->run;
  pestle_kir_id_t number = pestle_kir_madi(t->k, i, t->lanes, t->lane);
  if (box->runs % t->lanes) {
    pestle_kir_if(t->k,
                  pestle_kir_scalar_i(t->k, PESTLE_OP_LT, number, box->runs));
    number = pestle_shared_tile_min(t, number, box->runs - 1);
  }
  return (run_t){pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, number, per),
                 pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, number, per)};
}

static void close_run(shared_emit_t* t, const shared_box_t* box) {
  if (box->runs % t->lanes) pestle_kir_end(t->k);
}

// Sets the coordinates of the run in |step|. What comes back is whether its
// elements of k exist, or NONE where all do.
static pestle_kir_id_t set_coords(shared_emit_t* t, const shared_box_t* box,
                                  const run_t* r, pestle_kir_id_t step,
                                  uint32_t lane_axis) {
  const pestle_product_side_t* s = box->side;
  int64_t row_run = s->along_k ? 1 : s->run;
  int64_t k_run = s->along_k ? s->run : 1;
  int64_t rows = box->axes->all / row_run, depth = t->p.k.all / k_run;
  pestle_kir_id_t row = pestle_kir_madi(t->k, box->tile, box->rows / row_run,
                                        s->along_k ? r->across : r->along);
  pestle_kir_id_t tap = pestle_kir_madi(t->k, step, t->t->k / k_run,
                                        s->along_k ? r->along : r->across);
  pestle_kir_id_t exists = PESTLE_KIR_NONE;
  if (box->axes->all % box->rows)
    row = pestle_shared_tile_min(t, row, rows - 1);
  if (t->p.k.all % t->t->k) {
    exists = pestle_kir_scalar_i(t->k, PESTLE_OP_LT, tap, depth);
    tap = pestle_shared_tile_min(t, tap, depth - 1);
  }
  pestle_shared_tile_coords(t, box->axes, false, row, row_run, box->run_axis,
                            lane_axis);
  pestle_shared_tile_coords(t, &t->p.k, false, tap, k_run, box->run_axis,
                            lane_axis);
  return exists;
}

// Element of shared memory at which the run begins.
static pestle_kir_id_t place_of(shared_emit_t* t, const shared_box_t* box,
                                const run_t* r, pestle_kir_id_t slot) {
  const pestle_product_side_t* s = box->side;
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t at = pestle_kir_madi(k, slot, box->slot, zero);
  if (s->along_k && !box->by_rows) {
    at = pestle_kir_madi(k, r->across, 1, at);
    return pestle_kir_madi(k, r->along, s->run * box->pitch, at);
  }
  at = pestle_kir_madi(k, r->across, box->pitch, at);
  return pestle_kir_madi(k, r->along, s->run, at);
}

static pestle_kir_id_t both(shared_emit_t* t, pestle_kir_id_t a,
                            pestle_kir_id_t b) {
  if (a == PESTLE_KIR_NONE || b == PESTLE_KIR_NONE) {
    return a == PESTLE_KIR_NONE ? b : a;
  }
  return pestle_kir_scalar(t->k, PESTLE_OP_AND, a, b, PESTLE_KIR_NONE);
}

static void copy_run(shared_emit_t* t, const shared_box_t* box, const run_t* r,
                     pestle_kir_id_t exists, pestle_kir_id_t slot) {
  pestle_emit_t* e = t->e;
  const pestle_product_side_t* s = box->side;
  uint32_t tensor = (uint32_t)s->read->i;
  const pestle_nest_tensor_t* x = &e->nest->tensors.data[tensor];
  pestle_kir_id_t from =
      pestle_emit_scalar_index(e, pestle_emit_resolve(e, s->read->index[0]));
  if (s->guard) {
    from = pestle_emit_clamp(e, from, 0, pestle_type_count(&x->type) - s->run);
    exists = both(t, exists, pestle_emit_expr(e, s->guard));
  }
  if (exists != PESTLE_KIR_NONE) {
    from = pestle_kir_scalar(t->k, PESTLE_OP_SELECT, exists, from,
                             pestle_kir_index(t->k, -1));
  }
  pestle_kir_id_t to = place_of(t, box, r, slot);
  (void)pestle_kir_put(
      t->k,
      (pestle_kir_inst_t){.op = PESTLE_KIR_COPY_ASYNC,
                          .type = PESTLE_NONE,
                          .lanes = (uint8_t)s->run,
                          .arg = {box->buffer, to, e->buffer[tensor], from}});
}

static void hold_run(shared_emit_t* t, const shared_box_t* box,
                     pestle_kir_id_t exists, pestle_kir_id_t i) {
  pestle_emit_t* e = t->e;
  const pestle_product_side_t* s = box->side;
  pestle_emit_open_vector(e, box->lane_axis, s->run);
  pestle_kir_id_t value = pestle_emit_expr(e, s->value);
  pestle_emit_close_vector(e);
  if (pestle_kir_lanes_of(t->k, value) < s->run) {
    value = pestle_kir_splat(t->k, value, (unsigned)s->run);
  }
  if (exists != PESTLE_KIR_NONE) {
    pestle_kir_id_t zero =
        pestle_kir_const(t->k, s->dtype, (unsigned)s->run, 0, 0);
    value = pestle_kir_scalar(t->k, PESTLE_OP_SELECT, exists, value, zero);
  }
  pestle_kir_store(t->k, box->held, i, value, PESTLE_KIR_NONE, 0);
}

void pestle_shared_tile_fetch(shared_emit_t* t, const shared_box_t* box,
                              pestle_kir_id_t step, pestle_kir_id_t slot) {
  if (!box->copies) pestle_kir_alloc(t->k, box->held);
  pestle_kir_id_t i = pestle_kir_unroll(t->k, "i", box->each);
  run_t r = open_run(t, box, i);
  size_t scope = pestle_emit_scope(t->e);
  bool lanes = !box->copies && box->side->run > 1;
  pestle_kir_id_t exists =
      set_coords(t, box, &r, step, lanes ? box->lane_axis : PESTLE_KIR_NONE);
  if (box->copies) {
    copy_run(t, box, &r, exists, slot);
  } else {
    hold_run(t, box, exists, i);
  }
  pestle_emit_unscope(t->e, scope);
  close_run(t, box);
  pestle_kir_end(t->k);
}

void pestle_shared_tile_put(shared_emit_t* t, const shared_box_t* box,
                            pestle_kir_id_t slot) {
  const pestle_product_side_t* s = box->side;
  pestle_kir_builder_t* k = t->k;
  if (box->copies) return;
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", box->each);
  run_t r = open_run(t, box, i);
  pestle_kir_id_t value =
      pestle_kir_load(k, box->held, (unsigned)s->run, i, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t at = place_of(t, box, &r, slot);
  if (s->along_k && !box->by_rows) {
    for (int64_t l = 0; l < s->run; ++l) {
      pestle_kir_id_t lane = pestle_kir_extract(k, value, (uint32_t)l);
      pestle_kir_id_t to =
          pestle_kir_madi(k, at, 1, pestle_kir_index(k, l * box->pitch));
      pestle_kir_store(k, box->buffer, to, lane, PESTLE_KIR_NONE, 0);
    }
  } else {
    unsigned bytes = (unsigned)s->run * pestle_dtype_size(s->dtype);
    pestle_kir_store(k, box->buffer, at, value, PESTLE_KIR_NONE,
                     bytes > 16 ? 16 : bytes);
  }
  close_run(t, box);
  pestle_kir_end(k);
}

void pestle_shared_tile_meet(const shared_emit_t* t, bool copies) {
  if (copies) {
    pestle_kir_act(t->k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
    pestle_kir_act(t->k, PESTLE_KIR_COPY_WAIT, 0, 0, 0, 0);
  }
  pestle_kir_barrier(t->k);
}
