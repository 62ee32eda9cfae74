// SPDX-License-Identifier: Apache-2.0
// Padded boxes. A tile of a window operation reads a part of its input with a halo; the
// box is a copy of that part in scratch, with zeros where the input is padded. A box that
// covers several rows of windows is copied once for all tiles that share it.
#include "base/bits.h"
#include "codegen/sketch/sketch.h"

// Whether |atom| is of taps alone.
static bool of_taps(const pestle_sketch_t* k, const pestle_atom_t* atom) {
  if (!atom->affine || atom->value) return false;
  for (uint32_t i = 0; i < atom->affine->count; ++i) {
    const pestle_atom_t* a = atom->affine->terms[i].atom;
    if (a->kind != PESTLE_ATOM_AXIS || !k->nest->axes.data[a->axis].reduce) {
      return false;
    }
  }
  return true;
}

// What the reads of the padded copy |tensor| say along dimension |d|.
static void add_term(const pestle_sketch_t* k, const pestle_nest_stage_t* f,
                     const pestle_register_tile_t* tile, const pestle_term_t* t,
                     pestle_box_dim_t* out) {
  int64_t step = t->coef < 0 ? -t->coef : t->coef;
  if (t->atom->kind != PESTLE_ATOM_AXIS) {
    if (!of_taps(k, t->atom)) return;
    const pestle_affine_t* alone = pestle_affine_make(k->nest, 0, t, 1);
    pestle_range_t range = pestle_affine_range(k->nest, alone);
    out->base += range.hi - range.lo;
    return;
  }
  uint32_t axis = t->atom->axis;
  if (k->nest->axes.data[axis].reduce) {
    out->base += step * (pestle_sketch_extent(k, axis) - 1);
  } else if (axis == f->roots[f->map_count - 1]) {
    out->column += step;
  } else if (tile->row >= 0 && axis == f->roots[tile->row]) {
    out->row += step;
  } else if (tile->halo_axis >= 0 && axis == f->roots[tile->halo_axis]) {
    out->halo_row += step;
  }
}

// Whether |affine| moves along |axis| otherwise than by |most| elements each step, or
// not at all.
static bool jumps(const pestle_affine_t* affine, uint32_t axis, int64_t most) {
  bool nested;
  int64_t coef = pestle_affine_coef(affine, axis, &nested);
  return nested || (coef != 0 && coef != most);
}

// Whether the padded copy that stage |s| makes is of elements of an argument, in
// the order in which they lie along its last dimension: nothing is computed, and
// what reads it could read them.
static bool is_plain_copy(const pestle_sketch_t* k,
                          const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->values[0];
  if (x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_SELECT &&
      x->args[2]->kind == PESTLE_EXPR_CONST) {
    x = x->args[1];
  }
  if (x->kind == PESTLE_EXPR_CAST) x = x->args[0];
  if (x->kind != PESTLE_EXPR_READ || x->index_count != 1 ||
      k->nest->tensors.data[x->i].kind != PESTLE_TENSOR_INPUT) {
    return false;
  }
  return !jumps(x->index[0], s->roots[s->map_count - 1], 1);
}

// Whether windows of planes are read where they lie: what hangs over a border by
// masks, which cost nothing where AVX-512 has them, as it has so many registers.
// Measured on Sapphire Rapids, us of 1 and 2 threads: 3x3 of 512 planes of 14 x 14
// 32 -> 20, 32 -> 12; of 128 of 28 x 28 24 -> 20, 21 -> 12; 5x5 of 512 of 14 x 14 66
// -> 46, 36 -> 24; but 7x7 of 64 of 56 x 56, which is not unrolled, 270 -> 540.
static bool reads_planes(const pestle_sketch_t* k, const pestle_contract_t* c,
                         const pestle_nest_stage_t* f) {
  enum { MANY_REGISTERS = 32 };
  return k->registers >= MANY_REGISTERS && pestle_sketch_slides(c) &&
         pestle_sketch_reduction_extent(k, f) <= PESTLE_SKETCH_SLIDING_TAPS;
}

static void describe_copy(pestle_sketch_t* k, const pestle_register_tile_t* t,
                          const pestle_nest_stage_t* kept,
                          pestle_contract_t* c) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  const pestle_expr_t* read =
      pestle_schedule_find_read(k->nest, t->reduce, kept->tensors[0]);
  if (!read) return;
  bool halo = false, alone = false, across = false, jump = false;
  uint32_t column = f->roots[f->map_count - 1];
  c->box_rank = (int32_t)read->index_count;
  for (uint32_t d = 0; d < read->index_count; ++d) {
    pestle_box_dim_t* dim = &c->box[d];
    *dim = (pestle_box_dim_t){.base = 1};
    for (uint32_t i = 0; i < read->index[d]->count; ++i) {
      add_term(k, f, t, &read->index[d]->terms[i], dim);
    }
    c->own |= dim->column > 0 && !t->im2row;
    halo |= dim->halo_row > 0;
    alone |= dim->halo_row > 0 && dim->base == 1;
    across |= dim->column > 0 && dim->base > 1;
    bool last = d + 1 == read->index_count;
    jump |= jumps(read->index[d], column, last ? 1 : 0);
  }
  c->per_channel = alone && across;
  if (halo) c->most_halo_rows = pestle_sketch_extent(k, f->roots[t->halo_axis]);
  c->im2row = t->im2row;
  c->unpadded = !jump && !t->im2row && is_plain_copy(k, kept) &&
                (c->per_channel ? reads_planes(k, c, f) : !across);
}

void pestle_sketch_describe_box(pestle_sketch_t* k,
                                const pestle_register_tile_t* t,
                                pestle_contract_t* c) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->nest->stages.size; ++i) {
    const pestle_nest_stage_t* kept = pestle_sketch_stage(k, i);
    if (kept->keep && !kept->inlined) {
      describe_copy(k, t, kept, c);
      ++count;
    }
  }
  c->unpadded = c->unpadded && count == 1;
}

int64_t pestle_sketch_box_elements(const pestle_contract_t* c, int64_t rows,
                                   int64_t columns, int64_t halo_rows) {
  int64_t elements = c->box_rank ? 1 : 0;
  for (int32_t d = 0; d < c->box_rank; ++d) {
    const pestle_box_dim_t* b = &c->box[d];
    elements *= b->base + b->row * (rows - 1) + b->column * (columns - 1) +
                b->halo_row * (halo_rows - 1);
  }
  return elements;
}

int64_t pestle_sketch_column_strip(const pestle_sketch_t* k,
                                   const pestle_contract_t* c,
                                   const pestle_tiling_t* x) {
  int64_t columns = x->vectors * c->lanes;
  int64_t tiles = pestle_ceil_div(c->width, columns);
  int64_t window = pestle_sketch_box_elements(c, x->rows, columns, 1) *
                   PESTLE_SKETCH_ELEMENT;
  int64_t most = k->l1 / 2 / window;
  int64_t strips = pestle_ceil_div(tiles, most > 0 ? most : 1);
  return pestle_ceil_div(tiles, strips);
}

bool pestle_sketch_slides(const pestle_contract_t* c) {
  bool slides = false;
  for (int32_t d = 0; d < c->box_rank; ++d) {
    slides |= c->box[d].row > 0 && 2 * c->box[d].row <= c->box[d].base;
  }
  return c->own && slides;
}
