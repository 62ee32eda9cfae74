// SPDX-License-Identifier: Apache-2.0
// The whole kernel: groups, and the products between the two transforms.
#include "codegen/template/winograd/emit.h"

#include "base/bits.h"

enum {
  // Factors are so many elements more apart than they need be, so that they do
  // not fall into one set of the cache.
  APART = 16,
  OWN_AXES = 10,
  // Elements of a line of the cache.
  LINE = 16,
};

_Static_assert((int)OWN_AXES <= (int)PESTLE_EMIT_OWN_AXES, "they have places");

pestle_kir_id_t pestle_winograd_emit_number(winograd_t* t, pestle_kir_id_t r,
                                            pestle_kir_id_t s) {
  return pestle_kir_madi(t->k, r, t->how->tiles_wide, s);
}

pestle_kir_id_t pestle_winograd_emit_number_of(winograd_t* t, double value) {
  return pestle_kir_float(t->k, PESTLE_F32, (unsigned)t->how->lanes, value);
}

pestle_kir_id_t pestle_winograd_emit_fma(winograd_t* t, pestle_kir_id_t a,
                                         pestle_kir_id_t b, pestle_kir_id_t c) {
  return pestle_kir_scalar(t->k, PESTLE_OP_FMA, a, b, c);
}

pestle_kir_id_t pestle_winograd_emit_op(winograd_t* t, pestle_op_t op,
                                        pestle_kir_id_t a, pestle_kir_id_t b) {
  return pestle_kir_scalar(t->k, op, a, b, PESTLE_KIR_NONE);
}

void pestle_winograd_emit_open_vector(winograd_t* t, pestle_kir_id_t number,
                                      int64_t extent, int64_t valid) {
  t->e->axis_id[t->vector] = number;
  pestle_emit_set_extent(t->e->nest, t->vector, extent);
  pestle_emit_open_vector(t->e, t->lane, t->how->lanes);
  t->e->valid = valid;
}

// --- Products ---

// The weights of the next factor, which lie behind those at |weights|, in equal
// parts by the |inputs| steps of each of the tiles of rows: at step |c| of the
// one of number |turn|. Measured on Sapphire Rapids, 1 thread: 256 features of
// 14 x 14, whose 9.4 MB come from the L3, 1154 -> 1002 us, 64 of 56 x 56 787 -> 763.
static void fetch_next(winograd_t* t, pestle_kir_id_t weights,
                       pestle_kir_id_t turn, pestle_kir_id_t c) {
  pestle_kir_builder_t* k = t->k;
  int64_t block = t->w.inputs * t->how->vectors * t->how->lanes;
  int64_t steps = pestle_ceil_div(t->tiles, t->how->rows) * t->w.inputs;
  int64_t share = pestle_ceil_div(block, steps);
  int64_t parts = pestle_ceil_div(share, LINE);
  share = pestle_ceil_div(share, parts);
  pestle_kir_id_t step = pestle_kir_madi(k, turn, t->w.inputs, c);
  pestle_kir_id_t at = pestle_kir_madi(k, step, parts * share, weights);
  for (int64_t i = 0; i < parts; ++i) {
    pestle_kir_id_t ahead = pestle_kir_index(k, block + i * share);
    pestle_kir_act(k, PESTLE_KIR_PREFETCH, t->e->buffer[t->w.weights],
                   pestle_kir_madi(k, at, 1, ahead), 0, 0);
  }
}

// |rows| tiles, the ones of number |turn|, of factor |p|: sums over all channels.
static void multiply_rows(winograd_t* t, pestle_kir_id_t p,
                          pestle_kir_id_t panel, pestle_kir_id_t turn,
                          int64_t rows, int64_t vectors) {
  pestle_kir_builder_t* k = t->k;
  int64_t lanes = t->how->lanes, width = t->how->vectors * lanes;
  unsigned n = (unsigned)lanes;
  uint32_t acc = pestle_kir_add_buffer(k, "acc", PESTLE_KIR_PRIVATE, PESTLE_F32,
                                       n, rows * vectors, 0);
  pestle_kir_alloc(k, acc);
  pestle_kir_id_t tile =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, turn, t->how->rows);
  pestle_kir_id_t zero = pestle_winograd_emit_number_of(t, 0);
  for (int64_t i = 0; i < rows * vectors; ++i)
    pestle_kir_store(k, acc, pestle_kir_index(k, i), zero, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t from = pestle_kir_madi(
      k, tile, t->w.inputs,
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, p, t->factor_pitch));
  pestle_kir_id_t weights = pestle_kir_madi(k, panel, t->w.products, p);
  weights =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, weights, t->w.inputs * width);
  pestle_kir_id_t c = pestle_kir_repeat(t->k, "c", t->w.inputs);
  fetch_next(t, weights, turn, c);
  pestle_kir_id_t b[PESTLE_WINOGRAD_VECTORS];
  for (int64_t v = 0; v < vectors; ++v) {
    pestle_kir_id_t at = pestle_kir_madi(
        k, c, width,
        pestle_kir_madi(k, weights, 1, pestle_kir_index(k, v * lanes)));
    b[v] = pestle_kir_load(k, t->e->buffer[t->w.weights], n, at,
                           PESTLE_KIR_NONE, 0);
  }
  for (int64_t r = 0; r < rows; ++r) {
    pestle_kir_id_t at = pestle_kir_madi(
        k, c, 1,
        pestle_kir_madi(k, from, 1, pestle_kir_index(k, r * t->w.inputs)));
    pestle_kir_id_t a = pestle_kir_splat(
        k, pestle_kir_load(k, t->factors, 1, at, PESTLE_KIR_NONE, 0), n);
    for (int64_t v = 0; v < vectors; ++v) {
      pestle_kir_id_t i = pestle_kir_index(k, r * vectors + v);
      pestle_kir_id_t sum = pestle_kir_load(k, acc, n, i, PESTLE_KIR_NONE, 0);
      pestle_kir_store(k, acc, i, pestle_winograd_emit_fma(t, a, b[v], sum),
                       PESTLE_KIR_NONE, 0);
    }
  }
  pestle_kir_end_repeat(t->k, t->w.inputs);
  pestle_kir_id_t to = pestle_kir_madi(
      k, tile, width,
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, p, t->sum_pitch));
  for (int64_t i = 0; i < rows * vectors; ++i) {
    int64_t at = i / vectors * width + i % vectors * lanes;
    pestle_kir_store(
        k, t->sums, pestle_kir_madi(k, to, 1, pestle_kir_index(k, at)),
        pestle_kir_load(k, acc, n, pestle_kir_index(k, i), PESTLE_KIR_NONE, 0),
        PESTLE_KIR_NONE, 0);
  }
}

static void multiply(winograd_t* t, pestle_kir_id_t panel, int64_t vectors) {
  int64_t rows = t->how->rows, whole = t->tiles / rows, rest = t->tiles % rows;
  pestle_kir_id_t p = pestle_kir_repeat(t->k, "p", t->w.products);
  if (whole) {
    pestle_kir_id_t i = pestle_kir_repeat(t->k, "i", whole);
    multiply_rows(t, p, panel, i, rows, vectors);
    pestle_kir_end_repeat(t->k, whole);
  }
  if (rest) {
    multiply_rows(t, p, panel, pestle_kir_index(t->k, whole), rest, vectors);
  }
  pestle_kir_end_repeat(t->k, t->w.products);
}

// One panel of |vectors| vectors, of the last of which |valid| lanes exist.
static void one_panel(winograd_t* t, pestle_kir_id_t panel, int64_t vectors,
                      int64_t valid) {
  multiply(t, panel, vectors);
  pestle_kir_id_t first =
      pestle_kir_scalar_i(t->k, PESTLE_OP_MULTIPLY, panel, t->how->vectors);
  pestle_winograd_emit_results(t, first, vectors, valid);
}

// The panels of this group; the last of all may have fewer vectors.
static void panels(winograd_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t lanes = t->how->lanes, width = t->how->vectors * lanes;
  int64_t whole = t->w.outputs / width, rest = t->w.outputs % width;
  int64_t vectors = pestle_ceil_div(rest, lanes);
  pestle_kir_id_t last = pestle_kir_index(k, whole);
  if (!whole) {
    one_panel(t, last, vectors, rest - (vectors - 1) * lanes);
    return;
  }
  pestle_kir_id_t panel = pestle_kir_repeat(t->k, "panel", t->how->panels);
  panel = pestle_kir_madi(k, t->panels, t->how->panels, panel);
  if (rest) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, panel, whole));
    panel = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, panel, whole - 1);
  }
  one_panel(t, panel, t->how->vectors, lanes);
  if (rest) {
    pestle_kir_else(k);
    one_panel(t, last, vectors, rest - (vectors - 1) * lanes);
    pestle_kir_end(k);
  }
  pestle_kir_end_repeat(t->k, t->how->panels);
}

// --- Groups ---

static uint32_t scratch(winograd_t* t, const char* name, int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, PESTLE_F32, 1,
                               count, 0);
}

static uint32_t own_axis(winograd_t* t, const char* name, int64_t extent) {
  return pestle_nest_add_axis(t->e->nest, name, (int32_t)t->w.reduce, false,
                              extent > 0 ? extent : 1);
}

static void add_axes(winograd_t* t) {
  const pestle_winograd_t* w = &t->w;
  int64_t more = PESTLE_WINOGRAD_TAPS - 1;
  t->in_high = own_axis(t, "in_h", w->inside_high[1] - w->inside_high[0]);
  t->in_wide = own_axis(t, "in_w", w->inside_wide[1] - w->inside_wide[0]);
  t->at_high = own_axis(t, "at_h", w->height + more);
  t->at_wide = own_axis(t, "at_w", w->width + more);
  t->out_high = own_axis(t, "out_h", w->height / w->results);
  t->out_wide = own_axis(t, "out_w", w->width / w->results);
  t->px_high = own_axis(t, "px_h", w->height);
  t->px_wide = own_axis(t, "px_w", w->width);
  t->vector = own_axis(t, "v", 1);
  t->lane = own_axis(t, "lane", t->how->lanes);
}

static void fix_axis(winograd_t* t, uint32_t axis, int32_t last,
                     pestle_kir_id_t id) {
  t->e->coord[axis] = pestle_affine_axis(t->e->nest, axis);
  t->e->axis_id[axis] = id;
  if (last < 0) return;
  t->e->coord[last] = pestle_affine_axis(t->e->nest, (uint32_t)last);
  t->e->axis_id[last] = id;
}

// Opens an IF for each axis of images, and for rows and columns of an image, of which the
// group's may lie behind an end.
static uint32_t open_ends(winograd_t* t) {
  const pestle_winograd_t* w = &t->w;
  pestle_kir_builder_t* k = t->k;
  uint32_t opened = 0;
  for (uint32_t i = 0; i < w->batch_count; ++i) {
    const pestle_nest_axis_t* axis = &t->e->nest->axes.data[w->batch[i]];
    opened +=
        pestle_emit_open_place(t->e, &w->last_batch[i], &axis->full_extent, 1,
                               t->e->axis_id[w->batch[i]]);
  }
  pestle_kir_id_t row =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, t->tile_high, w->results);
  pestle_kir_id_t column =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, t->tile_wide, w->results);
  opened += pestle_emit_open_place(t->e, &w->last_high, &w->height, 1, row);
  opened += pestle_emit_open_place(t->e, &w->last_wide, &w->width, 1, column);
  return opened;
}

static void open_group(winograd_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_winograd_t* w = &t->w;
  int64_t panels =
      pestle_ceil_div(w->outputs, t->how->vectors * t->how->lanes) /
      t->how->panels;
  int64_t count = w->images * t->boxes_high * t->boxes_wide * panels;
  pestle_kir_id_t g =
      pestle_kir_for(k, "g", pestle_kir_index(k, 0), pestle_kir_index(k, count),
                     1, PESTLE_KIR_GROUP_X);
  t->panels = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, panels);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, panels);
  pestle_kir_id_t box =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, t->boxes_wide);
  t->tile_wide =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, box, t->how->tiles_wide);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, t->boxes_wide);
  box = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, t->boxes_high);
  t->tile_high =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, box, t->how->tiles_high);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, t->boxes_high);
  for (uint32_t i = w->batch_count; i-- > 0;) {
    int64_t extent = t->e->nest->axes.data[w->batch[i]].full_extent;
    pestle_kir_id_t at = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, extent);
    g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, extent);
    fix_axis(t, w->batch[i], w->last_batch[i], at);
  }
}

pestle_status_t pestle_winograd_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  pestle_winograd_how_t how = pestle_winograd_of(&nest->template);
  winograd_t t = {.e = e, .k = e->k, .how = &how};
  bool fits =
      pestle_winograd_find(nest, nest->template.stage, how.results, &t.w) &&
      pestle_winograd_fits(&t.w, t.how);
  if (!fits || nest->tensors.data[t.w.weights].packed_elements !=
                   pestle_winograd_elements(&t.w, t.how)) {
    return PESTLE_ERROR(
        INTERNAL, "kernel '%s': its convolution is none any more", nest->name);
  }
  t.boxes_high = pestle_ceil_div(t.w.tiles_high, t.how->tiles_high);
  t.boxes_wide = pestle_ceil_div(t.w.tiles_wide, t.how->tiles_wide);
  t.tiles = t.how->tiles_high * t.how->tiles_wide;
  t.factor_pitch = t.tiles * t.w.inputs + APART;
  t.sum_pitch = t.tiles * t.how->vectors * t.how->lanes + APART;
  t.factors = scratch(&t, "factors", t.w.products * t.factor_pitch);
  t.sums = scratch(&t, "sums", t.w.products * t.sum_pitch);
  t.shown = scratch(&t, "tile", t.w.results * t.w.results * t.how->lanes);
  add_axes(&t);
  if (nest->failed) return NULL;
  open_group(&t);
  uint32_t ends = open_ends(&t);
  pestle_winograd_emit_inputs(&t);
  panels(&t);
  pestle_emit_close_places(e, ends);
  pestle_kir_end(e->k);
  return NULL;
}
