// SPDX-License-Identifier: Apache-2.0
// Y = A^T M A of the tiles of a group, and the last stage at its results.
#include "base/bits.h"
#include "codegen/template/winograd/emit.h"

// Results of a tile along each axis, at most.
enum { MOST_RESULTS = PESTLE_WINOGRAD_LARGE };

// One dimension: six sums become four results. A^T is
//
//   1  1   1   1   1   0
//   0  a  -a   b  -b   0
//   0  a2  a2  b2  b2  0
//   0  a3 -a3  b3 -b3  1
static void transform_six(winograd_t* t, const pestle_kir_id_t* m,
                          pestle_kir_id_t* out) {
  double a = PESTLE_WINOGRAD_NEAR, b = PESTLE_WINOGRAD_FAR;
  pestle_kir_id_t near = pestle_winograd_emit_op(t, PESTLE_OP_ADD, m[1], m[2]);
  pestle_kir_id_t far = pestle_winograd_emit_op(t, PESTLE_OP_ADD, m[3], m[4]);
  pestle_kir_id_t sums = pestle_winograd_emit_op(t, PESTLE_OP_ADD, near, far);
  out[0] = pestle_winograd_emit_op(t, PESTLE_OP_ADD, m[0], sums);
  out[2] = pestle_winograd_emit_fma(
      t, pestle_winograd_emit_number_of(t, b * b), far,
      pestle_winograd_emit_op(t, PESTLE_OP_MULTIPLY, near,
                              pestle_winograd_emit_number_of(t, a * a)));
  near = pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, m[1], m[2]);
  far = pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, m[3], m[4]);
  out[1] = pestle_winograd_emit_fma(
      t, pestle_winograd_emit_number_of(t, b), far,
      pestle_winograd_emit_op(t, PESTLE_OP_MULTIPLY, near,
                              pestle_winograd_emit_number_of(t, a)));
  out[3] = pestle_winograd_emit_fma(
      t, pestle_winograd_emit_number_of(t, b * b * b), far, m[5]);
  out[3] = pestle_winograd_emit_fma(
      t, pestle_winograd_emit_number_of(t, a * a * a), near, out[3]);
}

// Four sums become two results. A^T is
//
//   1  1   1  0
//   0  1  -1  1
static void transform(winograd_t* t, const pestle_kir_id_t* m,
                      pestle_kir_id_t* out) {
  if (t->w.factors == PESTLE_WINOGRAD_MOST) {
    transform_six(t, m, out);
    return;
  }
  pestle_kir_id_t sum = pestle_winograd_emit_op(t, PESTLE_OP_ADD, m[1], m[2]);
  out[0] = pestle_winograd_emit_op(t, PESTLE_OP_ADD, m[0], sum);
  pestle_kir_id_t difference =
      pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, m[1], m[2]);
  out[1] = pestle_winograd_emit_op(t, PESTLE_OP_ADD, difference, m[3]);
}

// The last stage at the open vector; its sum is |value|.
static void finish(winograd_t* t, pestle_kir_id_t value) {
  pestle_emit_t* e = t->e;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->w.last);
  pestle_emit_take(e, t->w.read, value);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t result = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, t->w.last, v, result);
  }
}

static void set_coord(winograd_t* t, uint32_t axis, int32_t last,
                      const pestle_affine_t* at) {
  t->e->coord[axis] = at;
  if (last >= 0) t->e->coord[last] = at;
}

static const pestle_affine_t* in_tile(winograd_t* t, uint32_t tile, int64_t i) {
  pestle_nest_t* nest = t->e->nest;
  return pestle_affine_add(
      nest,
      pestle_affine_scale(nest, pestle_affine_axis(nest, tile), t->w.results),
      pestle_affine_const(nest, i));
}

// All results of a tile, each with a copy of the last stage of its own.
static void finish_whole(winograd_t* t, pestle_kir_id_t high,
                         pestle_kir_id_t wide,
                         pestle_kir_id_t z[MOST_RESULTS][MOST_RESULTS]) {
  pestle_emit_t* e = t->e;
  const pestle_winograd_t* w = &t->w;
  int64_t n = w->results;
  e->axis_id[t->out_high] = pestle_emit_clamp(e, high, 0, w->height / n - 1);
  e->axis_id[t->out_wide] = pestle_emit_clamp(e, wide, 0, w->width / n - 1);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      size_t scope = pestle_emit_scope(e);
      set_coord(t, w->high, w->last_high, in_tile(t, t->out_high, i));
      set_coord(t, w->wide, w->last_wide, in_tile(t, t->out_wide, j));
      finish(t, z[i][j]);
      pestle_emit_unscope(e, scope);
    }
  }
}

static pestle_kir_id_t exists(winograd_t* t, pestle_kir_id_t tile,
                              pestle_kir_id_t i, int64_t extent,
                              uint32_t axis) {
  pestle_kir_id_t at = pestle_kir_madi(t->k, tile, t->w.results, i);
  t->e->axis_id[axis] =
      pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, at, extent - 1);
  return pestle_kir_scalar_i(t->k, PESTLE_OP_LT, at, extent);
}

// The results of a tile that there are, in loops over them.
static void finish_some(winograd_t* t, pestle_kir_id_t high,
                        pestle_kir_id_t wide,
                        pestle_kir_id_t z[MOST_RESULTS][MOST_RESULTS]) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  const pestle_winograd_t* w = &t->w;
  int64_t lanes = t->how->lanes, n = w->results;
  for (int64_t i = 0; i < n * n; ++i) {
    pestle_kir_store(k, t->shown, pestle_kir_index(k, i * lanes),
                     z[i / n][i % n], PESTLE_KIR_NONE, 0);
  }
  pestle_kir_id_t i = pestle_kir_repeat(t->k, "i", n);
  pestle_kir_id_t row = exists(t, high, i, w->height, t->px_high);
  pestle_kir_id_t j = pestle_kir_repeat(t->k, "j", n);
  pestle_kir_id_t column = exists(t, wide, j, w->width, t->px_wide);
  pestle_kir_if(k, pestle_winograd_emit_op(t, PESTLE_OP_AND, row, column));
  size_t scope = pestle_emit_scope(e);
  set_coord(t, w->high, w->last_high, pestle_affine_axis(e->nest, t->px_high));
  set_coord(t, w->wide, w->last_wide, pestle_affine_axis(e->nest, t->px_wide));
  pestle_kir_id_t at = pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY,
                                           pestle_kir_madi(k, i, n, j), lanes);
  finish(t,
         pestle_kir_load(k, t->shown, (unsigned)lanes, at, PESTLE_KIR_NONE, 0));
  pestle_emit_unscope(e, scope);
  pestle_kir_end(k);
  pestle_kir_end_repeat(t->k, n);
  pestle_kir_end_repeat(t->k, n);
}

// One vector of features of one tile.
static void tile_results(winograd_t* t, pestle_kir_id_t number,
                         pestle_kir_id_t high, pestle_kir_id_t wide,
                         pestle_kir_id_t first, pestle_kir_id_t v,
                         int64_t valid) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  const pestle_winograd_t* w = &t->w;
  int64_t lanes = t->how->lanes, n = w->results, factors = w->factors;
  pestle_kir_id_t m[PESTLE_WINOGRAD_MOST],
      rows[MOST_RESULTS][PESTLE_WINOGRAD_MOST];
  pestle_kir_id_t z[MOST_RESULTS][MOST_RESULTS], out[MOST_RESULTS];
  pestle_kir_id_t from =
      pestle_kir_madi(k, v, lanes,
                      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, number,
                                          t->how->vectors * lanes));
  for (int64_t j = 0; j < factors; ++j) {
    for (int64_t i = 0; i < factors; ++i) {
      pestle_kir_id_t at = pestle_kir_madi(
          k, from, 1, pestle_kir_index(k, (i * factors + j) * t->sum_pitch));
      m[i] =
          pestle_kir_load(k, t->sums, (unsigned)lanes, at, PESTLE_KIR_NONE, 0);
    }
    transform(t, m, out);
    for (int64_t i = 0; i < n; ++i)
      rows[i][j] = out[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    transform(t, rows[i], out);
    for (int64_t j = 0; j < n; ++j)
      z[i][j] = out[j];
  }
  int64_t vectors = pestle_ceil_div(w->outputs, lanes);
  pestle_winograd_emit_open_vector(t, pestle_kir_madi(k, first, 1, v), vectors,
                                   valid);
  const pestle_affine_t* feature = pestle_affine_axis(e->nest, t->vector);
  set_coord(
      t, w->features, w->last_features,
      pestle_affine_add(e->nest, pestle_affine_scale(e->nest, feature, lanes),
                        pestle_affine_axis(e->nest, t->lane)));
  bool cut = w->height % n || w->width % n;
  bool some = w->height >= n && w->width >= n && !t->how->looped;
  if (some && cut) {
    pestle_kir_id_t whole = pestle_winograd_emit_op(
        t, PESTLE_OP_AND,
        pestle_kir_scalar_i(k, PESTLE_OP_LT, high, w->height / n),
        pestle_kir_scalar_i(k, PESTLE_OP_LT, wide, w->width / n));
    pestle_kir_if(k, whole);
  }
  if (some) finish_whole(t, high, wide, z);
  if (some && cut) pestle_kir_else(k);
  if (!some || cut) finish_some(t, high, wide, z);
  if (some && cut) pestle_kir_end(k);
  pestle_emit_close_vector(e);
}

void pestle_winograd_emit_results(winograd_t* t, pestle_kir_id_t first,
                                  int64_t vectors, int64_t valid) {
  pestle_kir_builder_t* k = t->k;
  const pestle_winograd_t* w = &t->w;
  bool rest =
      w->tiles_high % t->how->tiles_high || w->tiles_wide % t->how->tiles_wide;
  pestle_kir_id_t r = pestle_kir_repeat(t->k, "r", t->how->tiles_high);
  pestle_kir_id_t s = pestle_kir_repeat(t->k, "s", t->how->tiles_wide);
  pestle_kir_id_t number = pestle_winograd_emit_number(t, r, s);
  pestle_kir_id_t high = pestle_kir_madi(k, t->tile_high, 1, r);
  pestle_kir_id_t wide = pestle_kir_madi(k, t->tile_wide, 1, s);
  if (rest) {
    pestle_kir_if(
        k, pestle_winograd_emit_op(
               t, PESTLE_OP_AND,
               pestle_kir_scalar_i(k, PESTLE_OP_LT, high, w->tiles_high),
               pestle_kir_scalar_i(k, PESTLE_OP_LT, wide, w->tiles_wide)));
  }
  int64_t whole = valid == t->how->lanes ? vectors : vectors - 1;
  if (whole) {
    pestle_kir_id_t v = pestle_kir_repeat(t->k, "v", whole);
    tile_results(t, number, high, wide, first, v, t->how->lanes);
    pestle_kir_end_repeat(t->k, whole);
  }
  if (whole < vectors) {
    tile_results(t, number, high, wide, first, pestle_kir_index(k, whole),
                 valid);
  }
  if (rest) pestle_kir_end(k);
  pestle_kir_end_repeat(t->k, t->how->tiles_wide);
  pestle_kir_end_repeat(t->k, t->how->tiles_high);
}
