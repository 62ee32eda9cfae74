// SPDX-License-Identifier: Apache-2.0
// V = B^T d B of the tiles of a group, one vector of channels after the other.
#include "codegen/template/winograd/emit.h"

// One dimension: six inputs become six factors. With a and b the points and
// a b = 1, B^T is
//
//   1    0      -(a2+b2)  0        1  0
//   0   -+a b2  -b2       +-a      1  0     for +-a, and so for +-b
//   0    1      0        -(a2+b2)  0  1
//
// so that factors of a point and of its negative share their halves.
static void transform_six(winograd_t* t, const pestle_kir_id_t* d,
                          pestle_kir_id_t* out) {
  double a = PESTLE_WINOGRAD_NEAR, b = PESTLE_WINOGRAD_FAR;
  pestle_kir_id_t both = pestle_winograd_emit_number_of(t, -(a * a + b * b));
  pestle_kir_id_t ends = pestle_winograd_emit_op(t, PESTLE_OP_ADD, d[0], d[4]);
  out[0] = pestle_winograd_emit_fma(t, both, d[2], ends);
  ends = pestle_winograd_emit_op(t, PESTLE_OP_ADD, d[1], d[5]);
  out[5] = pestle_winograd_emit_fma(t, both, d[3], ends);
  for (int i = 0; i < 2; ++i) {
    double point = i ? b : a, other = i ? a : b;
    pestle_kir_id_t square =
        pestle_winograd_emit_number_of(t, -(other * other));
    pestle_kir_id_t even = pestle_winograd_emit_fma(t, square, d[2], d[4]);
    pestle_kir_id_t odd = pestle_winograd_emit_fma(t, square, d[1], d[3]);
    pestle_kir_id_t plus = pestle_winograd_emit_number_of(t, point);
    pestle_kir_id_t minus = pestle_winograd_emit_number_of(t, -point);
    out[1 + 2 * i] = pestle_winograd_emit_fma(t, plus, odd, even);
    out[2 + 2 * i] = pestle_winograd_emit_fma(t, minus, odd, even);
  }
}

// Four inputs become four factors. B^T is
//
//   -1   0   1   0
//    0   1   1   0
//    0  -1   1   0
//    0  -1   0   1
static void transform(winograd_t* t, const pestle_kir_id_t* d,
                      pestle_kir_id_t* out) {
  if (t->w.factors == PESTLE_WINOGRAD_MOST) {
    transform_six(t, d, out);
    return;
  }
  out[0] = pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, d[2], d[0]);
  out[1] = pestle_winograd_emit_op(t, PESTLE_OP_ADD, d[2], d[1]);
  out[2] = pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, d[2], d[1]);
  out[3] = pestle_winograd_emit_op(t, PESTLE_OP_SUBTRACT, d[3], d[1]);
}

// Where the tile's inputs are: of an inside tile, or each on its own, the last
// one that there is instead of those beyond it (results of which do not exist).
typedef struct place_t {
  bool inside;
  pestle_kir_id_t high, wide;  // tile
} place_t;

static void set_place(winograd_t* t, const place_t* at, int64_t i, bool high) {
  pestle_emit_t* e = t->e;
  const pestle_winograd_t* w = &t->w;
  const int64_t* inside = high ? w->inside_high : w->inside_wide;
  uint32_t axis = high ? w->high : w->wide;
  uint32_t tap = high ? w->tap_high : w->tap_wide;
  e->coord[tap] = pestle_affine_const(e->nest, 0);
  if (at->inside) {
    const pestle_affine_t* tile =
        pestle_affine_axis(e->nest, high ? t->in_high : t->in_wide);
    int64_t first = inside[0] * w->results + i;
    e->coord[axis] = pestle_affine_add(
        e->nest, pestle_affine_scale(e->nest, tile, w->results),
        pestle_affine_const(e->nest, first));
    return;
  }
  uint32_t own = high ? t->at_high : t->at_wide;
  int64_t last = (high ? w->height : w->width) + PESTLE_WINOGRAD_TAPS - 2;
  pestle_kir_id_t tile = high ? at->high : at->wide;
  pestle_kir_id_t position =
      pestle_kir_madi(t->k, tile, w->results, pestle_kir_index(t->k, i));
  e->coord[axis] = pestle_affine_axis(e->nest, own);
  e->axis_id[own] =
      pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, position, last);
}

static pestle_kir_id_t input(winograd_t* t, const place_t* at, int64_t i,
                             int64_t j) {
  size_t scope = pestle_emit_scope(t->e);
  set_place(t, at, i, true);
  set_place(t, at, j, false);
  t->e->in_window = !at->inside;
  pestle_kir_id_t id = pestle_emit_expr(t->e, t->w.x);
  t->e->in_window = false;
  pestle_emit_unscope(t->e, scope);
  if (pestle_kir_lanes_of(t->k, id) == 1) {
    id = pestle_kir_splat(t->k, id, (unsigned)t->how->lanes);
  }
  return id;
}

static void tile_inputs(winograd_t* t, const place_t* at,
                        pestle_kir_id_t number) {
  pestle_kir_builder_t* k = t->k;
  pestle_emit_t* e = t->e;
  int64_t lanes = t->how->lanes, vectors = t->w.inputs / lanes;
  enum { MOST = PESTLE_WINOGRAD_MOST };
  int64_t n = t->w.factors;
  pestle_kir_id_t d[MOST], rows[MOST][MOST], out[MOST];
  pestle_kir_id_t v = pestle_kir_repeat(t->k, "v", vectors);
  pestle_winograd_emit_open_vector(t, v, vectors, lanes);
  const pestle_affine_t* channel = pestle_affine_axis(e->nest, t->vector);
  e->coord[t->w.channels] =
      pestle_affine_add(e->nest, pestle_affine_scale(e->nest, channel, lanes),
                        pestle_affine_axis(e->nest, t->lane));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i)
      d[i] = input(t, at, i, j);
    transform(t, d, out);
    for (int64_t i = 0; i < n; ++i)
      rows[i][j] = out[i];
  }
  pestle_kir_id_t to = pestle_kir_madi(
      k, v, lanes,
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, number, t->w.inputs));
  for (int64_t i = 0; i < n; ++i) {
    transform(t, rows[i], out);
    for (int64_t j = 0; j < n; ++j) {
      pestle_kir_id_t at_factor = pestle_kir_madi(
          k, to, 1, pestle_kir_index(k, (i * n + j) * t->factor_pitch));
      pestle_kir_store(k, t->factors, at_factor, out[j], PESTLE_KIR_NONE, 0);
    }
  }
  pestle_emit_close_vector(e);
  pestle_kir_end_repeat(t->k, vectors);
}

// Sets |axis| to |tile| as counted from the first that is inside; whether it
// is one.
static pestle_kir_id_t look_inside(winograd_t* t, pestle_kir_id_t tile,
                                   const int64_t* inside, uint32_t axis) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t from =
      pestle_kir_madi(k, tile, 1, pestle_kir_index(k, -inside[0]));
  int64_t last = inside[1] - inside[0] - 1;
  t->e->axis_id[axis] = pestle_emit_clamp(t->e, from, 0, last);
  return pestle_winograd_emit_op(t, PESTLE_OP_EQ, from, t->e->axis_id[axis]);
}

// Whether tiles that lie inside have code of their own: a transform takes a fifth
// longer where it looks at each input, and half as long again to compile twice.
static bool has_inside(const pestle_winograd_t* w) {
  int64_t high = w->inside_high[1] - w->inside_high[0];
  int64_t wide = w->inside_wide[1] - w->inside_wide[0];
  return high > 0 && wide > 0 &&
         2 * high * wide >= w->tiles_high * w->tiles_wide;
}

void pestle_winograd_emit_inputs(winograd_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_winograd_t* w = &t->w;
  bool some = has_inside(w);
  pestle_kir_id_t r = pestle_kir_repeat(t->k, "r", t->how->tiles_high);
  pestle_kir_id_t s = pestle_kir_repeat(t->k, "s", t->how->tiles_wide);
  pestle_kir_id_t number = pestle_winograd_emit_number(t, r, s);
  place_t at = {false, pestle_kir_madi(k, t->tile_high, 1, r),
                pestle_kir_madi(k, t->tile_wide, 1, s)};
  if (some) {
    pestle_kir_id_t high = look_inside(t, at.high, w->inside_high, t->in_high);
    pestle_kir_id_t wide = look_inside(t, at.wide, w->inside_wide, t->in_wide);
    pestle_kir_if(k, pestle_winograd_emit_op(t, PESTLE_OP_AND, high, wide));
    at.inside = true;
    tile_inputs(t, &at, number);
    at.inside = false;
    pestle_kir_else(k);
  }
  tile_inputs(t, &at, number);
  if (some) pestle_kir_end(k);
  pestle_kir_end_repeat(t->k, t->how->tiles_wide);
  pestle_kir_end_repeat(t->k, t->how->tiles_high);
}
