// SPDX-License-Identifier: Apache-2.0
// The form tile: a reduction whose innermost map axis is contiguous, with accumulators in
// registers. GEMM, convolution, pooling, column sums.
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // A plain reduction of so few elements has so many vectors in its tile.
  SHORT_REDUCE = 32,
  MOST_SLIDE = 8,  // taps of a row of a sliding window that are unrolled
  FEW_STEPS = 4,
  // Row tiles of a panel: with fewer each would ask for more than a line a step,
  // with more the first one's wait hardly counts.
  FEWEST_TILES = 3,
  MOST_TILES = 64,
  // Panels that all rows pass: the last one's tiles ask for rows so many tiles on.
  MOST_PANELS = 4,
  // Vectors of a row of a plane that are copied side by side.
  MOST_COPIED = 8,
  REDUCE_TILE = 8,
  FEW_VECTORS = 2,  // of a longer reduction, which do not keep the units busy
  // Row tiles of a core, so that one more or less does not count.
  FEWEST_OF_A_CORE = 4,
  // Columns of the panel whose blocks of k are a quarter of L2: as many as a
  // tile has, in vectors. Measured with 1 MiB of L2 and 64 columns, k = 1024 in
  // one block: 95 % of the FMA peak; k = 4096 of operands that crowd L3: 66 %.
  BLOCK_VECTORS = 4,
  // Taps that are added in one accumulator before a partial sum is put aside:
  // of plain sums, and of products that sketch_blocks does not take (one row).
  SUM_CHAIN = 256,
  PRODUCT_CHAIN = 8192,
  // A transcendental epilogue on more vectors than this goes through scratch,
  // in a loop: unrolled, tens of instructions a vector are repeated for the
  // whole tile. Measured: 64 instead is no faster (tanh of a product: 313 us
  // for 311) and yolox, minilm and smart_turn compile 1.5 to 2.4 times as long.
  INLINE_EPILOGUE = 2,
};

bool pestle_sketch_is_product(const pestle_nest_stage_t* s) {
  if (!s->is_reduction || s->reduce != PESTLE_OP_ADD || s->value_count != 1) {
    return false;
  }
  const pestle_expr_t* e = s->values[0];
  return e->kind == PESTLE_EXPR_DOT ||
         (e->kind == PESTLE_EXPR_OP && e->op == PESTLE_OP_MULTIPLY);
}

bool pestle_sketch_aligned(pestle_sketch_t* k, uint32_t id) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, id);
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  if (f->map_count != y->map_count || f->value_count != 1) return false;
  const pestle_expr_t* read =
      pestle_schedule_find_read(k->nest, k->anchor, f->tensors[0]);
  if (!read || read->guard) return false;
  for (uint32_t i = 0; i < f->map_count; ++i) {
    if (pestle_sketch_extent(k, f->roots[i]) !=
        pestle_sketch_extent(k, y->roots[i]))
      return false;
    if (pestle_sketch_extent(k, f->roots[i]) == 1) continue;
    bool nested;
    if (pestle_affine_coef(read->index[i], y->roots[i], &nested) != 1 ||
        nested || read->index[i]->count != 1) {
      return false;
    }
  }
  return true;
}

// --- Operands ---

static void operand_visit(void* user, const pestle_expr_t* e) {
  pestle_operand_t* o = user;
  const pestle_nest_tensor_t* t = &o->k->nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_INPUT) return;
  bool nested;
  int64_t coef = pestle_affine_coef(e->index[0], o->axis, &nested);
  if (!coef && !nested) return;
  o->tensor = (int32_t)e->i;
  o->stride = coef;
  o->unit = coef == 1 && !nested;
  o->packed = e->packed != 0;
  o->size = pestle_dtype_size(t->type.dtype);
  o->constant = t->constant;
  int axes = 0;
  for (uint32_t i = 0; i < e->index[0]->count; ++i) {
    const pestle_term_t* term = &e->index[0]->terms[i];
    if (term->atom->kind == PESTLE_ATOM_AXIS &&
        o->k->nest->axes.data[term->atom->axis].reduce) {
      int64_t pitch = term->coef * o->size;
      o->aliasing = o->aliasing || pitch % PESTLE_CPU_ALIASING_BYTES == 0;
      o->pitch = axes++ ? 0 : pitch;
    }
  }
  if (nested || e->guard) o->tensor = -1;
}

pestle_operand_t pestle_sketch_operand(pestle_sketch_t* k,
                                       const pestle_expr_t* side,
                                       uint32_t axis) {
  pestle_operand_t o = {.k = k, .axis = axis, .tensor = -1};
  pestle_status_t st =
      pestle_expr_visit_reads(k->nest, side, operand_visit, &o);
  if (st) pestle_nest_fail(k->nest, st);
  return o;
}

// Whether an operand of the product |f| is the same for all of |axis|, so that
// a tile reads it once: otherwise it is a sum along rows.
static bool shares_operand(pestle_sketch_t* k, const pestle_nest_stage_t* f,
                           uint32_t axis) {
  for (int side = 0; side < 2; ++side) {
    if (pestle_sketch_operand(k, f->values[0]->args[side], axis).tensor < 0) {
      return true;
    }
  }
  return false;
}

bool pestle_sketch_tile_fits(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  if (!pestle_sketch_aligned(k, reduce) || !f->map_count ||
      f->reduce == PESTLE_OP_COUNT) {
    return false;
  }
  // Not worth lanes over one or two elements when a reduction axis is contiguous.
  uint32_t last = f->roots[f->map_count - 1];
  if (pestle_sketch_extent(k, last) == 1 && k->reassociate &&
      f->root_count == f->map_count + 1 &&
      pestle_sketch_contiguous_reduce(k, f) >= 0) {
    return false;
  }
  return pestle_sketch_contiguous_reduce(k, f) < 0 ||
         pestle_sketch_strides(k, f, last).unit ||
         (pestle_sketch_is_product(f) && shares_operand(k, f, last)) ||
         pestle_sketch_is_window(k, reduce);
}

pestle_status_t pestle_sketch_stage_strided(pestle_sketch_t* k, uint32_t reduce,
                                            int32_t* out_copy) {
  *out_copy = -1;
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, reduce);
  uint32_t axis = c->roots[c->map_count - 1];
  for (int side = 0; side < 2; ++side) {
    pestle_operand_t o =
        pestle_sketch_operand(k, c->values[0]->args[side], axis);
    if (o.tensor < 0 || o.unit || k->nest->no_scratch ||
        !pestle_schedule_find_read(k->nest, reduce, (uint32_t)o.tensor)) {
      continue;
    }
    uint32_t copy;
    PESTLE_TRY(
        pestle_schedule_stage(k->nest, reduce, (uint32_t)o.tensor, &copy));
    *out_copy = (int32_t)copy;
    ++k->anchor;
    return NULL;
  }
  return NULL;
}

// The operand of the product |reduce| that moves along |axis| and is read in one
// way only (of x * x^T neither is packed or copied); else tensor is -1.
static pestle_operand_t vector_operand(pestle_sketch_t* k, uint32_t reduce,
                                       uint32_t axis) {
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, reduce);
  pestle_operand_t found = {.tensor = -1};
  for (int side = 0; side < 2; ++side) {
    pestle_operand_t o =
        pestle_sketch_operand(k, c->values[0]->args[side], axis);
    if (o.tensor >= 0 &&
        pestle_schedule_find_read(k->nest, reduce, (uint32_t)o.tensor) &&
        (found.tensor < 0 || o.constant)) {
      found = o;
    }
  }
  return found;
}

pestle_status_t pestle_sketch_pack_operand(pestle_sketch_t* k,
                                           pestle_register_tile_t* t,
                                           int64_t panel, bool copied,
                                           int32_t* out_packed,
                                           int32_t* out_staged) {
  *out_packed = *out_staged = -1;
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, t->reduce);
  uint32_t axis = c->roots[c->map_count - 1];
  pestle_operand_t o = vector_operand(k, t->reduce, axis);
  if (o.tensor < 0) return NULL;
  const char* name = k->nest->tensors.data[o.tensor].name;
  if (o.constant) {
    pestle_sketch_note(k,
                       "constant '%s' is packed into panels of %" PRId64
                       " columns when the plan is made: each is read in one "
                       "stream",
                       name, panel);
    uint32_t tensor = (uint32_t)o.tensor;
    PESTLE_TRY(pestle_schedule_pack(k->nest, t->reduce, &tensor, axis, panel));
    *out_packed = (int32_t)tensor;
    return NULL;
  }
  pestle_sketch_note(k,
                     copied ? "'%s' is copied by panels into scratch"
                            : "'%s' is read where it lies",
                     name);
  if (!copied) return NULL;
  uint32_t copy;
  PESTLE_TRY(
      pestle_schedule_stage(k->nest, t->reduce, (uint32_t)o.tensor, &copy));
  *out_staged = (int32_t)copy;
  ++t->reduce;
  ++k->anchor;
  return NULL;
}

// --- Loops ---

static pestle_status_t tile_axes(pestle_sketch_t* k,
                                 const pestle_register_tile_t* t,
                                 uint32_t stage, uint32_t* out_unrolled,
                                 uint32_t* out_count) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  uint32_t last = s->roots[s->map_count - 1], j, v;
  uint32_t n = 0;
  if (t->row >= 0) out_unrolled[n++] = s->roots[t->row];
  PESTLE_TRY(pestle_schedule_split(nest, stage, last, t->lanes, &j, &v));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, v, PESTLE_MARK_VECTOR));
  out_unrolled[n++] = j;
  out_unrolled[n++] = v;
  for (uint32_t i = 0; i + 1 < n; ++i) {
    PESTLE_TRY(
        pestle_schedule_mark(nest, stage, out_unrolled[i], PESTLE_MARK_UNROLL));
  }
  *out_count = n;
  return NULL;
}

// The reduction axis that moves a window as the tile's rows do. Unrolled within each
// result, each element is loaded once for all windows that it is in. Measured for
// depthwise 3x3 of 144 features at 56 x 56: 146 -> 116 us.
typedef struct slide_t {
  const pestle_sketch_t* k;
  const pestle_nest_stage_t* s;
  uint32_t row;
  int32_t axis;
  int64_t step;  // by which it moves the window, the longest of those seen
} slide_t;

static void slide_visit(void* user, const pestle_expr_t* e) {
  slide_t* f = user;
  bool nested;
  for (uint32_t d = 0; d < e->index_count; ++d) {
    int64_t row = pestle_affine_coef(e->index[d], f->row, &nested);
    if (!row) continue;
    for (uint32_t i = f->s->map_count; i < f->s->root_count; ++i) {
      int64_t extent = pestle_sketch_extent(f->k, f->s->roots[i]);
      int64_t tap = pestle_affine_coef(e->index[d], f->s->roots[i], &nested);
      if (extent <= 1 || extent > MOST_SLIDE || !tap) continue;
      // An element's number has all dimensions in it: those taps that move
      // further than a row does are of another.
      if (e->index_count == 1 && (row % tap || llabs(tap) > llabs(row))) {
        continue;
      }
      if (llabs(tap) < f->step) continue;
      f->step = llabs(tap);
      f->axis = (int32_t)f->s->roots[i];
    }
  }
}

// Those of the reduction's axes that are unrolled within each result: the one along
// which windows slide and, as sums keep their order, what is behind it.
static uint32_t slide_axes(const pestle_sketch_t* k,
                           const pestle_register_tile_t* t, uint32_t* out) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, t->reduce);
  if (!t->slides || t->row < 0) return 0;
  slide_t f = {.k = k, .s = s, .row = s->roots[t->row], .axis = -1};
  pestle_status_t st =
      pestle_expr_visit_reads(k->nest, s->values[0], slide_visit, &f);
  if (st) pestle_nest_fail(k->nest, st);
  uint32_t n = 0;
  int64_t taps = 1;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, s->roots[i]);
    bool behind = n > 0 && extent > 1;
    if ((int32_t)s->roots[i] != f.axis && !behind) continue;
    out[n++] = s->roots[i];
    taps *= extent;
  }
  return taps <= PESTLE_SKETCH_SLIDING_TAPS ? n : 0;
}

static bool is_among(const uint32_t* axes, uint32_t count, uint32_t axis) {
  for (uint32_t i = 0; i < count; ++i) {
    if (axes[i] == axis) return true;
  }
  return false;
}

pestle_status_t pestle_sketch_tile_reduce(pestle_sketch_t* k,
                                          const pestle_register_tile_t* t) {
  uint32_t tile[3], tile_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t slide[PESTLE_NEST_MAX_AXES];
  PESTLE_TRY(tile_axes(k, t, t->reduce, tile, &tile_count));
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, t->reduce);
  for (uint32_t i = 0; i + 1 < c->map_count; ++i) {
    if ((int32_t)i != t->row) order[n++] = c->roots[i];
  }
  uint32_t slides = slide_axes(k, t, slide);
  for (uint32_t i = c->map_count; i < c->root_count; ++i) {
    if (!is_among(slide, slides, c->roots[i])) order[n++] = c->roots[i];
  }
  // So few steps, as of few features, are no loop.
  uint32_t last = c->roots[c->root_count - 1];
  if (t->row >= 0 && c->root_count > c->map_count && !slides &&
      pestle_sketch_extent(k, last) <= FEW_STEPS &&
      pestle_sketch_is_product(c)) {
    PESTLE_TRY(
        pestle_schedule_mark(k->nest, t->reduce, last, PESTLE_MARK_UNROLL));
  }
  for (uint32_t i = 0; i + 1 < tile_count; ++i)
    order[n++] = tile[i];
  for (uint32_t i = 0; i < slides; ++i) {
    order[n++] = slide[i];
    PESTLE_TRY(
        pestle_schedule_mark(k->nest, t->reduce, slide[i], PESTLE_MARK_UNROLL));
  }
  order[n++] = tile[tile_count - 1];
  // Each row of a window is reduced apart: windows above each other share what it
  // comes to, not its elements alone.
  if (slides > 1 && !pestle_sketch_is_product(c) &&
      pestle_sketch_reorders(k, c)) {
    PESTLE_TRY(
        pestle_schedule_rfactor(k->nest, t->reduce, slide[0], k->reassociate));
  }
  PESTLE_TRY(pestle_schedule_reorder(k->nest, t->reduce, order, n));
  return pestle_schedule_store(k->nest, t->reduce, PESTLE_SCOPE_PRIVATE);
}

// Row tiles, |*out_mt| of |*out_mi| rows; those of a core within |*out_mo|.
static pestle_status_t split_rows(pestle_sketch_t* k,
                                  const pestle_register_tile_t* t,
                                  uint32_t* out_mo, uint32_t* out_mt,
                                  uint32_t* out_mi) {
  uint32_t rows = pestle_sketch_stage(k, k->anchor)->roots[t->row];
  if (t->chunk) {
    PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, rows, t->chunk, out_mo,
                                     &rows));
  }
  return pestle_schedule_split(k->nest, k->anchor, rows, t->rows, out_mt,
                               out_mi);
}

// Column tiles, |*out_nt| of |*out_ni| columns; those of a strip within |*out_no|, and
// of a group, where tiles are of one, within |*out_g|.
static pestle_status_t split_columns(pestle_sketch_t* k,
                                     const pestle_register_tile_t* t,
                                     uint32_t* out_g, uint32_t* out_no,
                                     uint32_t* out_nt, uint32_t* out_ni) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t columns = y->roots[y->map_count - 1];
  if (t->per_group) {
    PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, columns, t->group,
                                     out_g, &columns));
  }
  int64_t width = t->vectors * t->lanes;
  if (t->column_strip) {
    PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, columns,
                                     t->column_strip * width, out_no,
                                     &columns));
  }
  PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, columns, width, out_nt,
                                   out_ni));
  if (!t->column_strip) *out_no = *out_nt;
  return NULL;
}

// The anchor's loops: the other axes, column tiles, row tiles, then the tile.
// Where rows share a box, they are within column tiles; strips go through all of
// their rows for each tile of rows.
static pestle_status_t schedule_tile_anchor(pestle_sketch_t* k,
                                            const pestle_register_tile_t* t,
                                            bool registers,
                                            uint32_t* out_panel_leaf,
                                            uint32_t* out_tile_leaf) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t m = y->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t g = 0, no, nt, ni, mo = 0, mt = 0, mi = 0, j, v, ho = 0, hi = 0;
  PESTLE_TRY(split_columns(k, t, &g, &no, &nt, &ni));
  if (t->halo_rows) {
    PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[t->halo_axis],
                                     t->halo_rows, &ho, &hi));
  }
  bool rows = t->row >= 0;
  if (rows) PESTLE_TRY(split_rows(k, t, &mo, &mt, &mi));
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, ni, t->lanes, &j, &v));
  y = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = 0; i + 1 < m; ++i) {
    bool split = t->halo_rows && (int32_t)i == t->halo_axis;
    if ((int32_t)i != t->row) order[n++] = split ? ho : y->roots[i];
  }
  if (t->chunk) order[n++] = mo;
  bool outer = t->per_channel || t->im2row;
  if (t->halo_rows && outer) order[n++] = hi;
  if (t->per_group) order[n++] = g;
  if (!t->row_major_tiles) order[n++] = no;
  if (t->column_strip && rows) order[n++] = mt;
  if (t->halo_rows && !outer) order[n++] = hi;
  if (!t->column_strip && rows) order[n++] = mt;
  if (t->row_major_tiles || t->column_strip) order[n++] = nt;
  *out_panel_leaf = t->halo_rows && t->per_channel ? mt : no;
  if (t->halo_rows && t->im2row) *out_panel_leaf = ho;
  *out_tile_leaf = order[n - 1];
  uint32_t groups = n;
  if (rows) order[n++] = mi;
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  // A costly epilogue reads the tile from scratch, in a loop over its rows; the
  // vectors of a row stand side by side even so, since one chain of dependent
  // steps after the other leaves the units idle. Measured, one thread: tanh of a
  // 128x512x256 product 737 to 2591 us (by where its buffers lie) -> 311, silu
  // of it 618 to 1890 -> 305, silu of a 1x1 convolution 241 to 575 -> 188.
  for (uint32_t i = groups; i + 1 < n; ++i) {
    if (!registers && order[i] != j) continue;
    PESTLE_TRY(
        pestle_schedule_mark(nest, k->anchor, order[i], PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(pestle_schedule_mark(nest, k->anchor, v, PESTLE_MARK_VECTOR));
  return NULL;
}

pestle_status_t pestle_sketch_bind_groups(pestle_sketch_t* k,
                                          uint32_t last_leaf) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t count = 0;
  while (count < y->order_count && y->order[count++] != last_leaf) {
  }
  return pestle_sketch_bind_first(k, count);
}

// Puts the loop whose elements lie beside each other last: with one feature,
// the width.
static pestle_status_t copy_axis(pestle_sketch_t* k, uint32_t stage,
                                 uint32_t* out) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  uint32_t i = s->map_count - 1, order[PESTLE_NEST_MAX_AXES], n = 0;
  while (i > 0 && pestle_sketch_extent(k, s->roots[i]) == 1)
    --i;
  *out = s->roots[i];
  if (i + 1 == s->map_count) return NULL;
  for (uint32_t j = i + 1; j < s->map_count; ++j)
    order[n++] = s->roots[j];
  for (uint32_t j = 0; j <= i; ++j)
    order[n++] = s->roots[j];
  return pestle_schedule_reorder(k->nest, stage, order, n);
}

// Padded copies: the box that one tile reads, in scratch.
static pestle_status_t place_kept(pestle_sketch_t* k, uint32_t under,
                                  uint32_t tile_leaf, bool planes) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
    if (!st->keep || st->inlined) continue;
    uint32_t outer, axis;
    PESTLE_TRY(pestle_schedule_at(k->nest, s, under, tile_leaf));
    PESTLE_TRY(pestle_schedule_store(k->nest, s, PESTLE_SCOPE_SHARED));
    PESTLE_TRY(copy_axis(k, s, &axis));
    // Of a whole row the masks at both ends are constants.
    PESTLE_TRY(
        pestle_sketch_vectorise(k, s, axis, planes ? MOST_COPIED : 1, &outer));
  }
  return NULL;
}

// --- Long contractions, in blocks of k ---

// The reduction axis to cut and the length of its blocks, so that |most| elements at
// most are in one; the result: how many are, or 0, as the reduction is not cut.
static int64_t find_blocks(const pestle_sketch_t* k, uint32_t reduce,
                           int64_t most, uint32_t* out_axis,
                           int64_t* out_block) {
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, reduce);
  int64_t inner = pestle_sketch_reduction_extent(k, c);
  if (!k->reassociate || k->nest->no_scratch ||
      c->map_count == PESTLE_MAX_RANK || inner <= most) {
    return 0;
  }
  for (uint32_t i = c->map_count; i < c->root_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, c->roots[i]);
    if (extent == 1) continue;
    inner /= extent;
    // Blocks of one length, but for the last.
    int64_t length = inner < most ? most / inner : 1;
    int64_t count = (extent + length - 1) / length;
    *out_axis = c->roots[i];
    *out_block = (extent + count - 1) / count;
    return count > 1 ? *out_block * inner : 0;
  }
  return 0;
}

// The anchor: columns in panels, rows in blocks; what is left has a reduction's
// results in scratch to read.
static pestle_status_t schedule_block_anchor(pestle_sketch_t* k,
                                             const pestle_register_tile_t* t,
                                             int64_t rows, uint32_t* out_leaf) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t m = y->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t nt, ni, mo, mm, j, v;
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[m - 1],
                                   t->vectors * t->lanes, &nt, &ni));
  PESTLE_TRY(
      pestle_schedule_split(nest, k->anchor, y->roots[t->row], rows, &mo, &mm));
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, ni, t->lanes, &j, &v));
  y = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = 0; i + 1 < m; ++i) {
    if ((int32_t)i != t->row) order[n++] = y->roots[i];
  }
  order[n++] = nt;
  order[n++] = mo;
  order[n++] = mm;
  order[n++] = j;
  order[n++] = v;
  *out_leaf = mo;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  return pestle_schedule_mark(nest, k->anchor, v, PESTLE_MARK_VECTOR);
}

// The sum over blocks: under each block all row tiles.
static pestle_status_t schedule_block_sum(pestle_sketch_t* k, uint32_t sum,
                                          const pestle_register_tile_t* t,
                                          uint32_t* out_block,
                                          uint32_t* out_tile) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* s = pestle_sketch_stage(k, sum);
  uint32_t m = s->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t mt, mi, j, v;
  PESTLE_TRY(
      pestle_schedule_split(nest, sum, s->roots[t->row], t->rows, &mt, &mi));
  PESTLE_TRY(
      pestle_schedule_split(nest, sum, s->roots[m - 1], t->lanes, &j, &v));
  s = pestle_sketch_stage(k, sum);
  for (uint32_t i = 0; i + 1 < m; ++i) {
    if ((int32_t)i != t->row) order[n++] = s->roots[i];
  }
  *out_block = order[n++] = s->roots[m];
  *out_tile = order[n++] = mt;
  order[n++] = mi;
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, sum, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, sum, mi, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, sum, j, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, sum, v, PESTLE_MARK_VECTOR));
  return pestle_schedule_store(nest, sum, PESTLE_SCOPE_SHARED);
}

// |block| elements of |axis| at a time, which |rows| rows share.
static pestle_status_t sketch_blocks(pestle_sketch_t* k,
                                     pestle_register_tile_t t, uint32_t axis,
                                     int64_t block, int64_t rows, bool copied) {
  pestle_nest_t* nest = k->nest;
  uint32_t partial, anchor_leaf, block_leaf, tile_leaf;
  int32_t packed, staged;
  PESTLE_TRY(pestle_schedule_partial(nest, t.reduce, axis, block,
                                     k->reassociate, &partial));
  ++k->anchor;
  // Its stage has the blocks as one more axis, the first.
  pestle_register_tile_t tile = t;
  tile.reduce = partial;
  ++tile.row;
  PESTLE_TRY(pestle_sketch_pack_operand(k, &tile, t.vectors * t.lanes, copied,
                                        &packed, &staged));
  uint32_t sum = tile.reduce + 1;
  PESTLE_TRY(schedule_block_anchor(k, &t, rows, &anchor_leaf));
  PESTLE_TRY(schedule_block_sum(k, sum, &t, &block_leaf, &tile_leaf));
  PESTLE_TRY(pestle_schedule_at(nest, sum, k->anchor, anchor_leaf));
  PESTLE_TRY(pestle_sketch_tile_reduce(k, &tile));
  PESTLE_TRY(pestle_schedule_at(nest, tile.reduce, sum, tile_leaf));
  PESTLE_TRY(place_kept(k, sum, tile_leaf, false));
  if (staged >= 0) {
    PESTLE_TRY(pestle_schedule_at(nest, (uint32_t)staged, sum, block_leaf));
    PESTLE_TRY(
        pestle_schedule_store(nest, (uint32_t)staged, PESTLE_SCOPE_SHARED));
    PESTLE_TRY(pestle_sketch_vectorise_copy(k, (uint32_t)staged));
  }
  return pestle_sketch_bind_groups(k, anchor_leaf);
}

// --- The choice ---

// What the reads of the product tell the cost model. |*out_axis| and
// |*out_block|: how its reduction would be cut.
static pestle_contract_t describe(pestle_sketch_t* k,
                                  const pestle_register_tile_t* t,
                                  uint32_t* out_axis, int64_t* out_block) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, t->reduce);
  uint32_t last = s->roots[s->map_count - 1];
  pestle_contract_t c = {.lanes = t->lanes,
                         .width = pestle_sketch_extent(k, last),
                         .height = 1,
                         .batch = 1,
                         .reduction = pestle_sketch_reduction_extent(k, s)};
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, s->roots[i]);
    *((int32_t)i == t->row ? &c.height : &c.batch) *= extent;
  }
  pestle_sketch_describe_groups(t, &c);
  c.short_dots = s->values[0]->kind == PESTLE_EXPR_DOT;
  c.bytes =
      (c.reduction * c.width + c.reduction * c.height + c.height * c.width) *
      PESTLE_SKETCH_ELEMENT;
  pestle_sketch_describe_box(k, t, &c);
  c.unpadded = c.unpadded && !c.short_dots;
  pestle_operand_t o = vector_operand(k, t->reduce, last);
  if (o.tensor >= 0 && !o.constant) {
    c.copyable = !k->nest->no_scratch;
    c.strided = !o.unit;
    c.packed = o.packed;
    c.aliasing = o.aliasing;
    c.pitch = o.pitch;
  }
  if (t->row < 0) return c;
  for (int side = 0; side < 2; ++side) {
    pestle_operand_t row =
        pestle_sketch_operand(k, s->values[0]->args[side], s->roots[t->row]);
    c.row_aliasing =
        c.row_aliasing ||
        (row.stride && row.stride * row.size % PESTLE_CPU_ALIASING_BYTES == 0);
  }
  // Sums to flip are of the whole reduction; its blocks have whole vectors.
  if (pestle_sketch_wants_flip(s) || t->per_group) return c;
  int64_t most = k->l2 / 4 / (BLOCK_VECTORS * t->lanes * PESTLE_SKETCH_ELEMENT);
  c.block = find_blocks(k, t->reduce, most, out_axis, out_block);
  return c;
}

// Rows of a plain reduction: of few vectors and elements, a pool's, each costs less than
// its loops. Measured for 2x2 of 6 features, 14 results a row: 4.5 ns each with 1
// row, 2.5 with 4, 2.0 with 7, 1.9 with 14.
static int64_t reduce_rows(const pestle_sketch_t* k,
                           const pestle_register_tile_t* t) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  int64_t rows = REDUCE_TILE / t->vectors;
  if (t->row < 0 || k->nest->no_scratch ||
      pestle_sketch_reduction_extent(k, f) > SHORT_REDUCE) {
    return t->rows;
  }
  int64_t extent = pestle_sketch_extent(k, f->roots[t->row]);
  int64_t tiles = (extent + rows - 1) / rows;
  return (extent + tiles - 1) / tiles;
}

// Steps of a plain reduction apart, of one row of few vectors: by the usual |vectors|, not
// by how many are chosen, since sums depend on it.
static int64_t reduce_parts(const pestle_sketch_t* k,
                            const pestle_register_tile_t* t, int64_t vectors) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  bool is_short =
      pestle_sketch_reduction_extent(k, f) <= SHORT_REDUCE ||
      pestle_sketch_extent(k, f->roots[f->root_count - 1]) <= SHORT_REDUCE;
  return is_short || vectors > FEW_VECTORS ? 1 : REDUCE_TILE / vectors;
}

// Whether the tile reads its operands where they lie, and the whole reduction at once.
static bool is_direct(const pestle_contract_t* c, const pestle_tiling_t* x) {
  return !x->copied && !x->halo_rows && !x->block && !c->box_rank &&
         !c->short_dots;
}

// Whether column tiles are within row tiles: all panels stay in L1, and results
// that no cache holds are written in the order in which they lie. Measured, 1x1 of
// 16 to 96 features at 112 x 112: 734 -> 395 us. (With panels in L2, 64 to 256
// features at 56 x 56: 806 -> 772 us with one thread, 400 -> 600 with two.) So do
// boxes of all columns: depthwise 3x3 of 144 planes of 56 x 56 with a box a plane
// 265 us, a tile of rows 212.
static bool results_in_order(const pestle_sketch_t* k,
                             const pestle_contract_t* c,
                             const pestle_tiling_t* x) {
  if (x->halo_rows && (c->per_channel || c->im2row)) return true;
  int64_t panels =
      c->reduction * c->width * (1 + c->others) * PESTLE_SKETCH_ELEMENT;
  int64_t results = c->batch * c->height * c->width * PESTLE_SKETCH_ELEMENT;
  return is_direct(c, x) && panels <= k->l1 / 2 && results > k->l2;
}

// Rows of a core, outside tiles of columns: its results are rows that the next layer
// reads, if that is cut alike (depthwise boxes: sketch_cost.c). Measured on quiet
// cores of a Sapphire Rapids, 2 threads: MobileNetV2 3.29 -> 3.05 ms, ppocr_det 18.2
// -> 16.9.
static int64_t rows_a_core(const pestle_sketch_t* k,
                           const pestle_register_tile_t* t,
                           const pestle_contract_t* c,
                           const pestle_tiling_t* x) {
  int64_t cores = k->cores;
  if (cores < 2 || t->row < 0 || t->row_major_tiles || !is_direct(c, x) ||
      c->batch > 1 || !pestle_sketch_favours_rows(c->height, c->width) ||
      c->width <= t->vectors * t->lanes) {
    return 0;
  }
  int64_t tiles = pestle_ceil_div(c->height, t->rows);
  return tiles < FEWEST_OF_A_CORE * cores
             ? 0
             : pestle_ceil_div(tiles, cores) * t->rows;
}

// Steps of the loop over rows of tiles that share a box.
static int64_t halo_rows_of(const pestle_sketch_t* k,
                            const pestle_register_tile_t* t) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t extent = pestle_sketch_extent(k, y->roots[t->halo_axis]);
  return extent < t->halo_rows ? extent : t->halo_rows;
}

// Whether steps of |reduce| may each ask for a share of what it reads of |tensor|:
// |*out_prefetch|, but for how much and how far ahead.
static bool may_share(pestle_sketch_t* k, uint32_t reduce, uint32_t tensor,
                      pestle_prefetch_t* out_prefetch) {
  int32_t loop = pestle_nest_counting_loop(k->nest, reduce);
  *out_prefetch = (pestle_prefetch_t){
      .loop = (uint32_t)loop, .tensor = tensor, .like = tensor, .share = 1};
  return loop >= 0 && pestle_nest_may_prefetch(k->nest, out_prefetch);
}

// Panels of a constant that does not stay in the L1: the next one arrives while the
// row tiles of this one are computed, a part with each. The first tile of a panel
// would wait for it else. (One that would stay in the L2 if it were alone does not
// where a network's other constants pass: lcnet_orient 2.42 -> 2.37 ms, 512^3
// alone 1.649 -> 1.664.) Measured on Sapphire Rapids, 1 thread: 128 x 768 x 3072
// 5.1 -> 4.5 ms, four layers of BERT of 128 rows 69.4 -> 60.9.
static pestle_status_t fetch_panels(pestle_sketch_t* k,
                                    const pestle_register_tile_t* t,
                                    int32_t tensor, uint32_t tile_leaf) {
  const pestle_nest_tensor_t* w = &k->nest->tensors.data[tensor];
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  bool between =
      t->halo_rows && (t->per_channel || t->im2row || t->column_strip);
  pestle_prefetch_t p;
  bool cut = t->vectors * t->lanes < pestle_sketch_panel(t);
  if (t->row < 0 || t->row_major_tiles || between || cut || !w->pack ||
      !may_share(k, t->reduce, (uint32_t)tensor, &p)) {
    return NULL;
  }
  int64_t size = (int64_t)pestle_dtype_size(w->type.dtype);
  int64_t tiles = k->nest->axes.data[tile_leaf].extent;
  if (t->halo_rows) tiles *= halo_rows_of(k, t);
  int64_t reduction = pestle_sketch_reduction_extent(k, f);
  int64_t panel = reduction * pestle_sketch_panel(t);
  int64_t steps = tiles * reduction;
  if (tiles < FEWEST_TILES || tiles > MOST_TILES ||
      w->packed_elements % panel || w->packed_elements * size <= k->l1) {
    return NULL;
  }
  pestle_sketch_note(k,
                     "'%s' is more than the L1 holds: each of %" PRId64
                     " tiles of a panel asks for its part of the next one",
                     w->name, tiles);
  p.by = panel;
  p.share = (panel + steps - 1) / steps;
  return pestle_schedule_prefetch(k->nest, &p);
}

// The argument that |side| reads, whole rows behind each other; -1: it is none.
static int32_t find_rows(const pestle_sketch_t* k, const pestle_nest_stage_t* f,
                         const pestle_register_tile_t* t,
                         const pestle_expr_t* side) {
  if (side->kind != PESTLE_EXPR_READ || side->guard || side->packed ||
      side->index_count != 1) {
    return -1;
  }
  const pestle_nest_tensor_t* x = &k->nest->tensors.data[side->i];
  const pestle_affine_t* at = side->index[0];
  int64_t reduction = 1;
  bool nested = false, other = false;
  for (uint32_t i = f->root_count; i-- > f->map_count;) {
    if (pestle_sketch_extent(k, f->roots[i]) == 1) continue;
    other |=
        pestle_affine_coef(at, f->roots[i], &nested) != reduction || nested;
    reduction *= pestle_sketch_extent(k, f->roots[i]);
  }
  other |=
      pestle_affine_coef(at, f->roots[t->row], &nested) != reduction || nested;
  bool argument = x->kind == PESTLE_TENSOR_INPUT && !x->pack;
  return argument && !other ? (int32_t)side->i : -1;
}

// Rows that no L2 holds: a tile asks for those of the next, a part with each of its
// columns' panels, where those pass one after the other. Else all rows pass a panel,
// and the loop over panels counts: the second one's tiles ask for rows two tiles on.
// Measured on quiet cores of a Sapphire Rapids: 3136 x 576 x 64 1.43 -> 1.31 ms, 12544
// x 144 x 24 0.82 -> 0.69; of three panels, 6272 x 256 x 192, 5.22 -> 4.75.
static pestle_status_t fetch_next_rows(pestle_sketch_t* k,
                                       const pestle_register_tile_t* t,
                                       const pestle_contract_t* c) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  int64_t reduction = pestle_sketch_reduction_extent(k, f);
  int64_t panels = pestle_ceil_div(c->width, t->vectors * t->lanes);
  if (t->row < 0 || t->halo_rows ||
      (panels > MOST_PANELS && !t->row_major_tiles) ||
      c->batch * c->height * reduction * PESTLE_SKETCH_ELEMENT <= k->l2) {
    return NULL;
  }
  for (int i = 0; i < 2; ++i) {
    int32_t tensor = find_rows(k, f, t, f->values[0]->args[i]);
    pestle_prefetch_t p;
    if (tensor < 0 || !may_share(k, t->reduce, (uint32_t)tensor, &p)) continue;
    p.by = t->rows * reduction;
    p.share = t->row_major_tiles ? pestle_ceil_div(t->rows, panels) : t->rows;
    pestle_sketch_note(k,
                       "'%s' is more than the L2 holds: each tile asks for the "
                       "next one's rows",
                       k->nest->tensors.data[tensor].name);
    return pestle_schedule_prefetch(k->nest, &p);
  }
  return NULL;
}

// --- The schedule ---

// A tile on its way into the nest.
typedef struct making_t {
  pestle_register_tile_t t;
  pestle_register_tile_t
      leaf;             // where operands are read: below levels of partial sums
  pestle_contract_t c;  // of a product
  pestle_tiling_t x;
  bool product, window, registers;
  int64_t parts;           // steps of a plain reduction that are made apart
  uint32_t levels;         // of partial sums
  int32_t packed, staged;  // a constant in panels, a panel's copy; -1
  int32_t sums, copy;      // stages: sums of bytes, results in scratch; -1
  uint32_t panel_leaf, tile_leaf;  // the anchor's loops
} making_t;

// What follows from how a product is run, and why.
static pestle_status_t take_choice(pestle_sketch_t* k, making_t* m) {
  pestle_register_tile_t* t = &m->t;
  t->rows = m->x.rows;
  t->vectors = m->x.vectors;
  t->halo_rows = m->x.halo_rows;
  if (m->x.unpadded) {
    PESTLE_TRY(pestle_sketch_inline_kept(k));
    pestle_sketch_note(k,
                       "it is not copied after all: its reader tests for the "
                       "border, which is less than the copy takes");
    k->per_channel = m->c.per_channel;
    if (m->c.own && !m->c.per_channel)
      t->column_strip = pestle_sketch_column_strip(k, &m->c, &m->x);
  }
  t->slides = pestle_sketch_slides(&m->c);
  t->per_channel = m->c.per_channel;
  t->row_major_tiles = results_in_order(k, &m->c, &m->x);
  t->chunk = rows_a_core(k, t, &m->c, &m->x);
  if (t->chunk) {
    pestle_sketch_note(k,
                       "many rows beside columns: each core takes %" PRId64
                       " rows, and reads all columns",
                       t->chunk);
  }
  PESTLE_TRY(pestle_sketch_explain(k, &m->c, &m->x));
  pestle_sketch_note(k, "%s", k->nest->summary);
  return NULL;
}

// How a product is run. |*out_done|: by a template or by blocks of k, whose
// schedules are made here.
static pestle_status_t choose_product(pestle_sketch_t* k, making_t* m,
                                      bool* out_done) {
  uint32_t axis;
  int64_t block;
  m->c = describe(k, &m->t, &axis, &block);
  if (m->t.group) {
    pestle_sketch_choose_groups(k, &m->c, &m->t);
    m->c = describe(k, &m->t, &axis, &block);
  }
  m->x = pestle_sketch_cheapest_tiling(k, &m->c);
  PESTLE_TRY(
      pestle_sketch_offer(k,
                          (pestle_offer_t){.kind = PESTLE_OFFER_TILED_PRODUCT,
                                           .reduce = m->t.reduce,
                                           .cycles = m->x.cycles},
                          out_done));
  if (*out_done) return NULL;
  m->x = pestle_sketch_choose_tiling(k, &m->c);
  PESTLE_TRY(take_choice(k, m));
  *out_done = m->x.block != 0;
  if (!*out_done) return NULL;
  pestle_sketch_note(k,
                     "blocks are of %" PRId64
                     " steps of '%s': a panel of one stays in the L2 for "
                     "all rows",
                     block, k->nest->axes.data[axis].name);
  return sketch_blocks(k, m->t, axis, block,
                       pestle_sketch_block_rows(k, &m->c, &m->x), m->x.copied);
}

typedef struct plain_t {
  pestle_sketch_t* k;
  pestle_register_tile_t t;
  int64_t parts;
} plain_t;

static double plain_cycles(const void* user, int64_t vectors) {
  plain_t p = *(const plain_t*)user;
  p.t.vectors = vectors;
  p.t.rows = reduce_rows(p.k, &p.t);
  return pestle_sketch_beside_memory(
      p.k, pestle_sketch_reduce_cycles(p.k, &p.t, p.parts));
}

// The tile of a plain reduction.
static void choose_plain(pestle_sketch_t* k, making_t* m) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  pestle_register_tile_t* t = &m->t;
  m->window = pestle_sketch_is_window(k, t->reduce) && !k->nest->no_scratch;
  if (!m->window) m->parts = reduce_parts(k, t, t->vectors);
  plain_t p = {.k = k, .t = *t, .parts = m->parts};
  pestle_vectors_t v = {
      .of = "cycles of a core: steps and loads, waiting for them, bytes",
      .extent = pestle_sketch_extent(k, y->roots[y->map_count - 1]),
      .usual = m->window ? 1 : t->vectors,
      .cost = plain_cycles,
      .user = &p};
  t->vectors = pestle_sketch_vectors(k, &v);
  t->rows = reduce_rows(k, t);
  t->slides = t->row_major_tiles = m->window;
  pestle_sketch_note(
      k, "tile of %" PRId64 " row%s x %" PRId64 " vectors of %" PRId64 ": %s",
      t->rows, t->rows == 1 ? "" : "s", t->vectors, t->lanes,
      m->window ? "windows above each other share their rows, each "
                  "of which is reduced once"
                : "rows share no loads, as the reduction is no product; "
                  "a short one has as many as keep the units busy");
}

static bool works_in_registers(pestle_sketch_t* k, const making_t* m) {
  const pestle_register_tile_t* t = &m->t;
  bool functions =
      pestle_sketch_transcendental(k, pestle_sketch_stage(k, k->anchor));
  bool usual = !functions || t->rows * t->vectors <= INLINE_EPILOGUE ||
               k->nest->no_scratch;
  double cycles = m->product
                      ? m->x.cycles
                      : pestle_sketch_beside_memory(
                            k, pestle_sketch_reduce_cycles(k, t, m->parts));
  return pestle_sketch_inline_epilogue(k, usual, functions ? 0 : cycles);
}

// Levels of partial sums, and stages for the operands.
static pestle_status_t pack_operands(pestle_sketch_t* k, making_t* m) {
  PESTLE_TRY(pestle_sketch_cascade(
      k, m->t.reduce, m->product ? PRODUCT_CHAIN : SUM_CHAIN, &m->levels));
  if (m->levels) m->t.halo_rows = m->t.chunk = m->t.column_strip = 0;
  // With levels, the leaf's stage has one more axis.
  m->leaf = m->t;
  if (m->levels && m->leaf.row >= 0) ++m->leaf.row;
  if (m->product) {
    PESTLE_TRY(pestle_sketch_pack_operand(k, &m->leaf,
                                          pestle_sketch_panel(&m->t),
                                          m->x.copied, &m->packed, &m->staged));
    PESTLE_TRY(pestle_sketch_flip(k, &m->leaf, &m->sums));
  }
  m->t.reduce = m->leaf.reduce + m->levels;
  return NULL;
}

static pestle_status_t copy_results(pestle_sketch_t* k, making_t* m) {
  pestle_sketch_note(
      k, "what follows the reduction works on %s",
      m->registers ? "the accumulators, before they leave their registers"
                   : "a copy of the tile in scratch, in a loop: unrolled, its "
                     "functions would be in the code once a vector");
  if (m->registers) return NULL;
  uint32_t made;
  PESTLE_TRY(pestle_schedule_epilogue_scratch(k->nest, m->t.reduce, &made));
  m->copy = (int32_t)made;
  ++k->anchor;
  return NULL;
}

// The reduction and its levels under the anchor's tiles.
static pestle_status_t place_reduce(pestle_sketch_t* k, const making_t* m) {
  pestle_nest_t* nest = k->nest;
  uint32_t leaf = m->leaf.reduce;
  PESTLE_TRY(pestle_sketch_tile_reduce(k, &m->t));
  if (m->window) PESTLE_TRY(pestle_schedule_border(nest, leaf, false));
  if (m->x.unpadded) {
    bool skips = k->reassociate && pestle_nest_may_border(nest, leaf, true);
    PESTLE_TRY(pestle_schedule_border(nest, leaf, skips));
  }
  PESTLE_TRY(pestle_schedule_at(nest, m->t.reduce, k->anchor, m->tile_leaf));
  for (uint32_t i = m->levels; i-- > 0;) {
    pestle_register_tile_t level = m->leaf;
    level.reduce = leaf + i;
    PESTLE_TRY(pestle_sketch_tile_reduce(k, &level));
  }
  PESTLE_TRY(pestle_sketch_multi_accumulator(k, leaf, m->parts));
  PESTLE_TRY(pestle_sketch_place_levels(k, leaf, m->levels));
  if (!m->product || m->levels) return NULL;
  if (m->packed >= 0) {
    PESTLE_TRY(fetch_panels(k, &m->t, m->packed, m->tile_leaf));
  }
  return fetch_next_rows(k, &m->t, &m->c);
}

// What lies in scratch beside the reduction. |*out_group|: the last loop of groups.
static pestle_status_t place_scratch(pestle_sketch_t* k, const making_t* m,
                                     uint32_t* out_group) {
  pestle_nest_t* nest = k->nest;
  bool shares = m->sums >= 0 || m->staged >= 0 || m->t.halo_rows;
  *out_group = shares ? m->panel_leaf : m->tile_leaf;
  if (m->copy >= 0) {
    uint32_t tile[3], count, id = (uint32_t)m->copy;
    PESTLE_TRY(tile_axes(k, &m->t, id, tile, &count));
    PESTLE_TRY(pestle_schedule_store(nest, id, PESTLE_SCOPE_SHARED));
    PESTLE_TRY(pestle_schedule_at(nest, id, k->anchor, m->tile_leaf));
  }
  if (m->sums >= 0) {
    PESTLE_TRY(pestle_sketch_place_sums(k, (uint32_t)m->sums, m->t.lanes,
                                        m->panel_leaf));
  }
  if (m->staged >= 0) {
    uint32_t id = (uint32_t)m->staged;
    PESTLE_TRY(pestle_schedule_at(nest, id, k->anchor, m->panel_leaf));
    PESTLE_TRY(pestle_schedule_store(nest, id, PESTLE_SCOPE_SHARED));
    PESTLE_TRY(pestle_sketch_vectorise_copy(k, id));
  }
  return place_kept(k, k->anchor, m->t.halo_rows ? m->panel_leaf : m->tile_leaf,
                    m->t.halo_rows && (m->t.per_channel || m->t.im2row));
}

static pestle_status_t schedule_tile(pestle_sketch_t* k, making_t* m) {
  uint32_t group;
  m->registers = works_in_registers(k, m);
  PESTLE_TRY(pack_operands(k, m));
  PESTLE_TRY(copy_results(k, m));
  PESTLE_TRY(schedule_tile_anchor(k, &m->t, m->registers, &m->panel_leaf,
                                  &m->tile_leaf));
  PESTLE_TRY(place_reduce(k, m));
  PESTLE_TRY(place_scratch(k, m, &group));
  return pestle_sketch_bind_groups(k, group);
}

// Whether both operands of product |f| move along the tile's rows, which then share
// none.
static bool has_own_panels(pestle_sketch_t* k, const pestle_nest_stage_t* f,
                           const pestle_register_tile_t* t) {
  const pestle_expr_t* const* side = f->values[0]->args;
  return t->row >= 0 &&
         pestle_sketch_operand(k, side[0], f->roots[t->row]).tensor >= 0 &&
         pestle_sketch_operand(k, side[1], f->roots[t->row]).tensor >= 0;
}

double pestle_sketch_tile_estimate(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  pestle_register_tile_t t = pestle_sketch_plain_tile(k, reduce);
  uint32_t axis;
  int64_t block;
  if (pestle_sketch_is_product(f)) {
    pestle_contract_t c = describe(k, &t, &axis, &block);
    if (has_own_panels(k, f, &t)) {
      c.batch *= c.height;
      c.height = 1;
    }
    return pestle_sketch_cheapest_tiling(k, &c).cycles;
  }
  plain_t p = {.k = k, .t = t, .parts = reduce_parts(k, &t, t.vectors)};
  // What is read is a run of a few vectors, then the next row's.
  double bytes = PESTLE_SKETCH_ELEMENT;
  for (uint32_t i = 0; i < f->root_count; ++i)
    bytes *= (double)pestle_sketch_extent(k, f->roots[i]);
  double run = (double)(t.vectors + PESTLE_CPU_FIRST_LINES) / (double)t.vectors;
  double memory = pestle_sketch_bytes_cycles(k, bytes) * run;
  double cycles = plain_cycles(&p, t.vectors);
  return cycles > memory ? cycles : memory;
}

pestle_status_t pestle_sketch_tile(pestle_sketch_t* k, uint32_t reduce) {
  bool done = false;
  making_t m = {.parts = 1, .packed = -1, .staged = -1, .sums = -1, .copy = -1};
  m.product = pestle_sketch_is_product(pestle_sketch_stage(k, reduce));
  if (m.product) {
    PESTLE_TRY(pestle_sketch_offer(
        k, (pestle_offer_t){.kind = PESTLE_OFFER_PRODUCT, .reduce = reduce},
        &done));
  }
  if (done) return NULL;
  if (m.product) PESTLE_TRY(pestle_sketch_dot(k, reduce));
  m.t = pestle_sketch_plain_tile(k, reduce);
  if (m.product) {
    PESTLE_TRY(choose_product(k, &m, &done));
    if (done) return NULL;
  } else {
    choose_plain(k, &m);
  }
  return schedule_tile(k, &m);
}
