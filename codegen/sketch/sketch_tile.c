// SPDX-License-Identifier: Apache-2.0
// Where a register tile lies in its stage: its row axis, lanes, vectors and groups.
#include <inttypes.h>
#include <stdlib.h>

#include "codegen/sketch/sketch.h"

enum {
  // Vectors of a plain reduction side by side: an add is ready after 4 cycles.
  REDUCE_VECTORS = 4,
  // Fewer lanes than these are slower than native ones, of which a shuffle gives each
  // its group's input (emit_strided_load.c). Measured on a Zen 5, one thread, 3x3 at 28 x 28:
  // 64 features in groups of 4, 4 lanes 70 us, 16 lanes 37; 256 in groups of 8, 8
  // lanes 290, 16 261, which is less than a core with one unit for shuffles loses.
  LEAST_LANES = 8,
  // But of vectors that end within groups, each in another place, lanes are gathered,
  // where no tile is made for them (sketch_groups.c): of dot products and plain reductions.
  // Measured on a product, groups of 12: 16 lanes 1807 us, 4 lanes 318.
  LEAST_OF_UNEVEN = 4,
  // A contraction of attention has its tile chosen as if it had so
  // a long reduction, and enough of its kind for all cores.
  ATTENTION_REDUCTION = 64,
  CHAIN_BATCH = 1 << 10,
};

// The innermost axis but the vector's that has something to walk.
static int32_t row_position(const pestle_sketch_t* k,
                            const pestle_nest_stage_t* s) {
  for (uint32_t i = s->map_count - 1; i-- > 0;) {
    if (pestle_sketch_extent(k, s->roots[i]) > 1) return (int32_t)i;
  }
  return s->map_count > 1 ? (int32_t)s->map_count - 2 : -1;
}

pestle_register_tile_t pestle_sketch_size_tile(pestle_sketch_t* k,
                                               int64_t width, int64_t height) {
  pestle_register_tile_t t = {.row = -1,
                              .lanes = pestle_sketch_lanes(k, width)};
  pestle_contract_t c = {.lanes = t.lanes,
                         .width = width,
                         .height = height,
                         .batch = CHAIN_BATCH,
                         .reduction = ATTENTION_REDUCTION};
  pestle_tiling_t x = pestle_sketch_choose_tiling(k, &c);
  t.rows = x.rows;
  t.vectors = x.vectors;
  pestle_sketch_note(k,
                     "tile of %" PRId64 " rows x %" PRId64
                     " vectors of %" PRId64 " for %" PRId64 " x %" PRId64
                     " results",
                     t.rows, t.vectors, t.lanes, height, width);
  return t;
}

// Steps along |axis| in which reads stay where they are: a group's columns all
// read the same inputs.
typedef struct runs_t {
  uint32_t axis;
  int64_t native;
  int64_t lanes;  // the most that no step ends among
  int64_t group;  // columns of the steps, unless native vectors have whole ones
  int64_t group_stride;  // by which a step moves
} runs_t;

static void limit_lanes(runs_t* r, const pestle_affine_t* place) {
  for (uint32_t i = 0; i < place->count; ++i) {
    const pestle_atom_t* atom = place->terms[i].atom;
    bool nested;
    if (atom->kind != PESTLE_ATOM_DIV || atom->affine->constant ||
        atom->affine->count != 1 ||
        pestle_affine_coef(atom->affine, r->axis, &nested) != 1) {
      continue;
    }
    if (r->native % atom->divisor || r->native == atom->divisor) {
      r->group = atom->divisor;
      r->group_stride = llabs(place->terms[i].coef);
    }
    while (r->lanes > 1 && atom->divisor % r->lanes)
      r->lanes /= 2;
  }
}

static void runs_visit(void* user, const pestle_expr_t* e) {
  for (uint32_t i = 0; i < e->index_count; ++i)
    limit_lanes(user, e->index[i]);
}

// Lanes for the last axis of |t|'s reduction. Fewer than native ones where an operand
// steps: it is broadcast then, which otherwise is a shuffle a tap. A product of groups
// has native ones, in tiles that begin where groups do; of words shuffles take nothing.
static void choose_lanes(pestle_sketch_t* k, int64_t width,
                         pestle_register_tile_t* t) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  int64_t native = pestle_sketch_lanes(k, width);
  runs_t r = {
      .axis = f->roots[f->map_count - 1], .native = native, .lanes = native};
  pestle_nest_visit_values(k->nest, f, runs_visit, &r);
  bool product =
      pestle_sketch_is_product(f) && f->values[0]->kind != PESTLE_EXPR_DOT;
  t->lanes = native;
  if (r.group && product && width % r.group == 0) {
    t->group = r.group;
    t->group_stride = r.group_stride;
  } else if (r.lanes >= (r.group ? LEAST_OF_UNEVEN : LEAST_LANES)) {
    t->lanes = r.lanes;
  }
}

// Whether |read|'s index moves along |axis|.
static bool moves(const pestle_expr_t* read, uint32_t axis) {
  for (uint32_t d = 0; d < read->index_count; ++d) {
    bool nested;
    if (pestle_affine_coef(read->index[d], axis, &nested) || nested)
      return true;
  }
  return false;
}

// A product of windows of planes, one above the other along the usual row axis, by
// weights of features: rows are features then, which all read the same windows.
static void find_windows(pestle_sketch_t* k, pestle_register_tile_t* t) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, t->reduce);
  int32_t feature = t->row - 1;
  if (feature < 0 || !pestle_sketch_is_product(f)) return;
  uint32_t last = f->roots[f->map_count - 1], row = f->roots[t->row];
  for (size_t i = 0; i < k->nest->tensors.size; ++i) {
    const pestle_nest_tensor_t* x = &k->nest->tensors.data[i];
    const pestle_expr_t* read =
        pestle_schedule_find_read(k->nest, t->reduce, (uint32_t)i);
    if (x->kind == PESTLE_TENSOR_OUTPUT || !read || !moves(read, last) ||
        !moves(read, row) || moves(read, f->roots[feature]) ||
        pestle_sketch_extent(k, f->roots[feature]) == 1) {
      continue;
    }
    t->im2row = true;
    t->halo_axis = t->row;
    t->row = feature;
    return;
  }
}

pestle_register_tile_t pestle_sketch_plain_tile(pestle_sketch_t* k,
                                                uint32_t reduce) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t width = pestle_sketch_extent(k, y->roots[y->map_count - 1]);
  pestle_register_tile_t t = {
      .reduce = reduce, .row = row_position(k, y), .rows = 1};
  choose_lanes(k, width, &t);
  t.halo_axis = t.row - 1;
  find_windows(k, &t);
  t.vectors =
      pestle_sketch_min((width + t.lanes - 1) / t.lanes, REDUCE_VECTORS);
  return t;
}
