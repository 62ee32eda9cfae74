// SPDX-License-Identifier: Apache-2.0
// The last stage, from the sums in registers: vector by vector, as if each was
// all that there is of the product.
#include "codegen/template/shared_tile/emit.h"

// |width| sums in buffer |shown| as the box of the product that the last stage
// reads.
static void show(shared_emit_t* t, int64_t width) {
  pestle_emit_t* e = t->e;
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* f = pestle_nest_stage(nest, t->p.reduce);
  const pestle_product_axes_t* const kinds[3] = {&t->p.batch, &t->p.m, &t->p.n};
  pestle_box_t* box = &e->box[f->tensors[0]];
  int32_t runs = -1;  // the axis of the reduction along which they lie
  for (uint32_t i = t->p.n.count; i-- > 0 && runs < 0;) {
    if (t->p.n.extent[i] > 1) runs = (int32_t)t->p.n.reduce[i];
  }
  e->buffer[f->tensors[0]] = t->shown;
  box->known = true;
  box->count = width;
  for (uint32_t d = 0; d < f->map_count; ++d) {
    bool column = (int32_t)f->roots[d] == runs;
    box->extent[d] = column ? width : 1;
    box->stride[d] = column ? 1 : width;
    box->origin[d] = pestle_affine_const(nest, 0);
    for (int g = 0; g < 3; ++g) {
      for (uint32_t i = 0; i < kinds[g]->count; ++i) {
        int32_t own = kinds[g]->last[i];
        if (kinds[g]->reduce[i] != f->roots[d] || own < 0) continue;
        box->origin[d] =
            column && width > 1
                ? pestle_affine_scale(
                      nest, pestle_affine_axis(nest, t->run_axis), width)
                : e->coord[own];
      }
    }
  }
  e->ready[f->tensors[0]] = true;
}

// The last stage at |row| and from |column| on, which counts |width| of them.
static void emit_vector(shared_emit_t* t, pestle_kir_id_t row,
                        pestle_kir_id_t column, pestle_kir_id_t sums,
                        int64_t width) {
  pestle_emit_t* e = t->e;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->p.last);
  int64_t columns = t->p.n.all / width;
  bool rest = t->p.n.all % t->t->n != 0;
  if (rest) {
    pestle_kir_if(t->k,
                  pestle_kir_scalar_i(t->k, PESTLE_OP_LT, column, columns));
    column = pestle_shared_tile_min(t, column, columns - 1);
  }
  size_t scope = pestle_emit_scope(e);
  pestle_shared_tile_coords(t, &t->p.batch, true, t->batch, 1, 0, 0);
  pestle_shared_tile_coords(t, &t->p.m, true, row, 1, 0, 0);
  pestle_shared_tile_coords(t, &t->p.n, true, column, width, t->run_axis,
                            t->lane_axis);
  show(t, width);
  pestle_kir_store(t->k, t->shown, pestle_kir_index(t->k, 0), sums,
                   PESTLE_KIR_NONE, 0);
  pestle_emit_open_vector(e, t->lane_axis, width);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, t->p.last, v, value);
  }
  pestle_emit_close_vector(e);
  pestle_emit_unscope(e, scope);
  if (rest) pestle_kir_end(t->k);
}

// Lanes [first, first + count) of |value|.
static pestle_kir_id_t lanes_of(shared_emit_t* t, pestle_kir_id_t value,
                                uint32_t first, unsigned count) {
  uint32_t lane[16];
  for (uint32_t i = 0; i < count && i < 16; ++i)
    lane[i] = first + i;
  if (count == pestle_kir_lanes_of(t->k, value)) return value;
  if (count > 1) return pestle_kir_shuffle(t->k, value, value, lane, count);
  return pestle_kir_extract(t->k, value, first);
}

// A vector of sums from |first| of |value| on, whole or element by element.
static void emit_columns(shared_emit_t* t, pestle_kir_id_t row,
                         pestle_kir_id_t column, pestle_kir_id_t value,
                         uint32_t first, int64_t width) {
  int64_t vector = t->vector;
  if (width > 1) {
    emit_vector(t, row, column, lanes_of(t, value, first, (unsigned)width),
                width);
    return;
  }
  for (int64_t l = 0; l < vector; ++l) {
    pestle_kir_id_t at =
        pestle_kir_madi(t->k, column, vector, pestle_kir_index(t->k, l));
    emit_vector(t, row, at, lanes_of(t, value, first + (uint32_t)l, 1), 1);
  }
}

static pestle_kir_id_t open_row(shared_emit_t* t, pestle_kir_id_t row) {
  if (t->p.m.all % t->t->m == 0) return row;
  pestle_kir_if(t->k, pestle_kir_scalar_i(t->k, PESTLE_OP_LT, row, t->p.m.all));
  return pestle_shared_tile_min(t, row, t->p.m.all - 1);
}

static void close_row(shared_emit_t* t) {
  if (t->p.m.all % t->t->m) pestle_kir_end(t->k);
}

// Fragments: two rows, 8 apart, of two columns each, or one such row.
static void results_of_units(shared_emit_t* t, int64_t width) {
  pestle_kir_builder_t* k = t->k;
  int64_t columns = t->t->c / 8,
          rows = pestle_shared_tile_unit_rows(t->t->units);
  pestle_kir_id_t first_row = pestle_kir_madi(k, t->a.tile, t->t->m, t->row);
  pestle_kir_id_t first_column =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->column, 2);
  first_column = pestle_kir_madi(k, t->b.tile, t->t->n / 2, first_column);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->t->r / rows);
  for (uint32_t half = 0; half < rows / 8; ++half) {
    pestle_kir_id_t row =
        pestle_kir_madi(k, first_row, 1, pestle_kir_index(k, 8 * half));
    row = open_row(t, pestle_kir_madi(k, i, rows, row));
    pestle_kir_id_t j = pestle_kir_unroll(k, "j", columns);
    pestle_kir_id_t at = pestle_kir_madi(k, i, columns, j);
    pestle_kir_id_t sum =
        pestle_kir_load(k, t->sums, (unsigned)rows / 4, at, PESTLE_KIR_NONE, 0);
    pestle_kir_id_t column = pestle_kir_madi(k, j, 4, first_column);
    emit_columns(t, row, column, sum, 2 * half, width);
    pestle_kir_end(k);
    close_row(t);
  }
  pestle_kir_end(k);
}

// The sums of strip |i| of a subgroup, whose lane |in| this is, from |base| on.
static void put_strip(shared_emit_t* t, uint32_t strip, pestle_kir_id_t base,
                      pestle_kir_id_t in, pestle_kir_id_t i) {
  pestle_kir_builder_t* k = t->k;
  int64_t columns = t->t->c / 8, pitch = pestle_shared_tile_strip_pitch(t->t);
  pestle_kir_id_t row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 4);
  pestle_kir_id_t column = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, 4);
  pestle_kir_id_t at = pestle_kir_madi(k, row, pitch, base);
  at = pestle_kir_madi(k, column, 2, at);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", columns);
  at = pestle_kir_madi(k, j, 8, at);
  pestle_kir_id_t sum = pestle_kir_load(
      k, t->sums, 4, pestle_kir_madi(k, i, columns, j), PESTLE_KIR_NONE, 0);
  for (uint32_t half = 0; half < 2; ++half) {
    pestle_kir_id_t to =
        pestle_kir_madi(k, at, 1, pestle_kir_index(k, 8 * half * pitch));
    pestle_kir_store(k, strip, to, lanes_of(t, sum, 2 * half, 2),
                     PESTLE_KIR_NONE, 8);
  }
  pestle_kir_end(k);
}

static void results_of_strips(shared_emit_t* t, int64_t width) {
  pestle_kir_builder_t* k = t->k;
  int64_t pitch = pestle_shared_tile_strip_pitch(t->t);
  int64_t per = t->t->c / width, across = t->t->n / t->t->c;
  uint32_t strip =
      pestle_kir_add_buffer(k, "strips", PESTLE_KIR_SHARED, t->p.sums, 1,
                            pestle_shared_tile_strips(t->t), 0);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->lane, 32);
  pestle_kir_id_t group = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->lane, 32);
  pestle_kir_id_t down =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, group, across);
  pestle_kir_id_t right =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, group, across);
  pestle_kir_id_t base = pestle_kir_madi(k, group, 16 * pitch, zero);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->t->r / 16);
  put_strip(t, strip, base, in, i);
  pestle_kir_barrier(k);
  pestle_kir_id_t v = pestle_kir_for(k, "v", zero, pestle_kir_index(k, per / 2),
                                     1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t number = pestle_kir_madi(k, v, 32, in);
  pestle_kir_id_t row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, per);
  pestle_kir_id_t column =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, per);
  pestle_kir_id_t at = pestle_kir_madi(k, row, pitch, base);
  pestle_kir_id_t sum = pestle_kir_load(k, strip, (unsigned)width,
                                        pestle_kir_madi(k, column, width, at),
                                        PESTLE_KIR_NONE, (unsigned)width * 4);
  row = pestle_kir_madi(k, i, 16, row);
  row = pestle_kir_madi(k, down, t->t->r, row);
  row = open_row(t, pestle_kir_madi(k, t->a.tile, t->t->m, row));
  column = pestle_kir_madi(k, right, per, column);
  column = pestle_kir_madi(k, t->b.tile, t->t->n / width, column);
  emit_columns(t, row, column, sum, 0, width);
  close_row(t);
  pestle_kir_end(k);
  pestle_kir_barrier(k);
  pestle_kir_end(k);
}

static void results_of_lanes(shared_emit_t* t, int64_t width) {
  pestle_kir_builder_t* k = t->k;
  int64_t chunks = t->t->r / t->row_vector, vectors = t->t->c / t->vector;
  int64_t down = t->t->m / chunks, across = t->t->n / vectors;
  pestle_kir_id_t first_row = pestle_kir_madi(k, t->a.tile, t->t->m, t->row);
  pestle_kir_id_t first_column =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->column, t->vector);
  first_column =
      pestle_kir_madi(k, t->b.tile, t->t->n / t->vector, first_column);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", chunks);
  pestle_kir_id_t l = pestle_kir_unroll(k, "l", t->row_vector);
  pestle_kir_id_t row = pestle_kir_madi(k, i, down, first_row);
  row = open_row(t, pestle_kir_madi(k, l, 1, row));
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", vectors);
  pestle_kir_id_t at =
      pestle_kir_madi(k, pestle_kir_madi(k, i, t->row_vector, l), vectors, j);
  pestle_kir_id_t sum =
      pestle_kir_load(k, t->sums, (unsigned)t->vector, at, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t column =
      pestle_kir_madi(k, j, across / t->vector, first_column);
  emit_columns(t, row, column, sum, 0, width);
  pestle_kir_end(k);
  close_row(t);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// Sums of teams or parts, vectors of which lie in shared memory.
static void results_of_shares(shared_emit_t* t, int64_t width) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t row, vector, sums;
  uint32_t opened =
      t->t->parts > 1
          ? pestle_shared_tile_open_part_sums(t, &row, &vector, &sums)
          : pestle_shared_tile_open_team_sums(t, &row, &vector, &sums);
  row = open_row(t, pestle_kir_madi(k, t->a.tile, t->t->m, row));
  pestle_kir_id_t column =
      pestle_kir_madi(k, t->b.tile, t->t->n / t->vector, vector);
  emit_columns(t, row, column, sums, 0, width);
  close_row(t);
  while (opened--)
    pestle_kir_end(k);
  // Who has ended has no memory.
  if (t->t->parts > 1) pestle_kir_act(k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
}

void pestle_shared_tile_results(shared_emit_t* t) {
  int64_t extent = 1;
  for (uint32_t i = t->p.n.count; i-- > 0 && extent == 1;)
    extent = t->p.n.extent[i];
  int64_t width = extent % t->vector == 0 ? t->vector : 1;
  t->shown = pestle_kir_add_buffer(t->k, "shown", PESTLE_KIR_PRIVATE, t->p.sums,
                                   (unsigned)width, 1, 0);
  pestle_kir_alloc(t->k, t->shown);
  if (t->t->parts > 1 || t->t->units == PESTLE_UNITS_TEAMS) {
    results_of_shares(t, width);
  } else if (t->strips) {
    results_of_strips(t, width);
  } else if (t->t->units) {
    results_of_units(t, width);
  } else {
    results_of_lanes(t, width);
  }
}
