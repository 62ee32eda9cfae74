// SPDX-License-Identifier: Apache-2.0
// The form columns: several reductions along strided axes over contiguous rows, as a
// softmax along any axis but the last has. Columns are in lanes. A group has a block of
// columns, down whose rows the reductions run one after the other; what several of them
// read, such as exponentials, is kept in scratch for the block.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"

enum {
  // Vectors of columns side by side, one accumulator each: an add takes 4 cycles
  // before the next one of the same chain can start.
  COLUMN_VECTORS = 4,
  // More where each row is on a page of its own: prefetchers follow what goes on
  // within a page, and fewer pages are walked for as many elements. Measured on a
  // Zen 5, us with 4, 8 and 16 vectors: softmax of [64, 4096] down the columns 80, 51,
  // 62, [512, 4096] 810, 557, 578, layer norm of the former 91, 54, 38; of rows that
  // share pages, [24, 128, 128], 78, 87, 86.
  PAGE_VECTORS = 8,
  // Where what is kept of so many would not fit, it is made anew.
  KEPT_VECTORS = 2,
  // A block that is kept fills such a part of the L2, as a row does (sketch.c).
  BLOCK_OF_L2 = 4,
  // Taps of a sum in one accumulator before a partial sum is put aside: so its error
  // does not grow with its length.
  COLUMN_CHAIN = 256,
};

// Whether |s| may run over |extent| columns side by side: its last map axis, along
// which it moves by one element.
static bool has_columns(pestle_sketch_t* k, const pestle_nest_stage_t* s,
                        int64_t extent) {
  if (!s->map_count || s->keep) return false;
  if (s->is_reduction && (s->reduce == PESTLE_OP_COUNT ||
                          pestle_sketch_contiguous_reduce(k, s) >= 0)) {
    return false;
  }
  uint32_t last = s->roots[s->map_count - 1];
  pestle_stride_t along = pestle_sketch_strides(k, s, last);
  return along.unit && (s->is_reduction || !along.strided) &&
         pestle_sketch_extent(k, last) == extent;
}

// The last row axis of the anchor, when every reduction, every map that is kept and the
// anchor move along it by one element and no reduction has a contiguous axis of its own;
// else -1.
int32_t pestle_sketch_column_axis(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t p = -1;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i] && pestle_sketch_extent(k, y->roots[i]) > 1) p = (int32_t)i;
  }
  if (p < 0) return -1;
  int64_t extent = pestle_sketch_extent(k, y->roots[p]);
  pestle_stride_t along = pestle_sketch_strides(k, y, y->roots[p]);
  if (!along.unit || along.strided) return -1;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
    if (st->inlined || s == k->anchor) continue;
    if (!has_columns(k, st, extent)) return -1;
  }
  return p;
}

typedef struct columns_t {
  pestle_sketch_t* k;
  const bool* row;  // by position among the anchor's roots
  uint32_t p;       // of the columns among them
  int64_t extent;   // of the columns
  pestle_register_tile_t t;
  int64_t parts;    // steps of a reduction that are made apart
  uint32_t blocks;  // the anchor's loop of blocks
} columns_t;

// Elements of one column that maps which are kept have; 0: none is.
static int64_t kept_elements(const columns_t* c) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(c->k, c->k->anchor);
  int64_t length = 1, maps = 0;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!c->row[i]) length *= pestle_sketch_extent(c->k, y->roots[i]);
  }
  for (uint32_t s = 0; s < c->k->anchor; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(c->k, s);
    maps += !st->inlined && !st->is_reduction;
  }
  return maps * length;
}

// Bytes from one step down the rows to the next.
static int64_t pitch(const columns_t* c) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(c->k, c->k->anchor);
  int64_t bytes =
      pestle_dtype_size(c->k->nest->tensors.data[y->tensors[0]].type.dtype);
  for (uint32_t i = y->root_count; i-- > 0 && c->row[i];) {
    bytes *= pestle_sketch_extent(c->k, y->roots[i]);
  }
  return bytes;
}

// Groups if each has |vectors| vectors of columns.
static int64_t count_groups(const columns_t* c, int64_t vectors) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(c->k, c->k->anchor);
  int64_t groups = pestle_ceil_div(c->extent, vectors * c->t.lanes);
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (c->row[i] && i != c->p) {
      groups *= pestle_sketch_extent(c->k, y->roots[i]);
    }
  }
  return groups;
}

static double block_cycles(const void* user, int64_t vectors) {
  const columns_t* c = user;
  pestle_register_tile_t t = c->t;
  double cycles = pestle_sketch_map_cycles(c->k, c->k->anchor, vectors);
  t.vectors = vectors;
  for (t.reduce = 0; t.reduce < c->k->anchor; ++t.reduce) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(c->k, t.reduce);
    if (s->inlined) continue;
    cycles += s->is_reduction
                  ? pestle_sketch_reduce_cycles(c->k, &t, c->parts)
                  : pestle_sketch_map_cycles(c->k, t.reduce, vectors);
  }
  return pestle_sketch_beside_memory(c->k, cycles);
}

// As many vectors as fit with what is kept of them, which is made where it is read if
// those are too few; and no more than leaves a group for each core.
static pestle_status_t size_block(columns_t* c) {
  pestle_sketch_t* k = c->k;
  c->t.lanes = pestle_sketch_lanes(k, c->extent);
  int64_t all = pestle_ceil_div(c->extent, c->t.lanes);
  int64_t usual = pestle_sketch_min(
      pitch(c) >= PESTLE_CPU_PAGE ? PAGE_VECTORS : COLUMN_VECTORS, all);
  int64_t kept = kept_elements(c) * c->t.lanes * PESTLE_SKETCH_ELEMENT;
  int64_t most = kept ? k->l2 / BLOCK_OF_L2 / kept : usual;
  c->parts = COLUMN_VECTORS / usual;
  if (most < pestle_sketch_min(KEPT_VECTORS, all)) {
    pestle_sketch_note(k,
                       "a block of columns is more than scratch holds: what "
                       "several stages read is made for each");
    PESTLE_TRY(pestle_sketch_inline_kept(k));
    most = usual;
  }
  while (usual > most)
    usual /= 2;
  while (usual > 1 && count_groups(c, usual) < k->cores)
    usual /= 2;
  pestle_vectors_t v = {
      .of = "cycles of a core: steps and loads, waiting for them, bytes",
      .extent = c->extent,
      .usual = usual,
      .cost = block_cycles,
      .user = c};
  c->t.vectors = pestle_sketch_vectors(k, &v);
  pestle_sketch_note(k, "%" PRId64 " vectors of %" PRId64 " columns at once",
                     c->t.vectors, c->t.lanes);
  return NULL;
}

// The anchor's loops: rows, blocks of columns, what is reduced, a block's vectors.
static pestle_status_t order_anchor(columns_t* c) {
  pestle_nest_t* nest = c->k->nest;
  uint32_t anchor = c->k->anchor, inner, j, v;
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  PESTLE_TRY(pestle_schedule_split(
      nest, anchor, pestle_sketch_stage(c->k, anchor)->roots[c->p],
      c->t.vectors * c->t.lanes, &c->blocks, &inner));
  PESTLE_TRY(pestle_schedule_split(nest, anchor, inner, c->t.lanes, &j, &v));
  const pestle_nest_stage_t* y = pestle_sketch_stage(c->k, anchor);
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (c->row[i] && i != c->p) order[n++] = y->roots[i];
  }
  order[n++] = c->blocks;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!c->row[i]) order[n++] = y->roots[i];
  }
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, anchor, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, anchor, j, PESTLE_MARK_UNROLL));
  return pestle_schedule_mark(nest, anchor, v, PESTLE_MARK_VECTOR);
}

// A map of which a block is kept.
static pestle_status_t place_map(columns_t* c, uint32_t id) {
  pestle_sketch_t* k = c->k;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  uint32_t outer;
  PESTLE_TRY(pestle_schedule_at(k->nest, id, k->anchor, c->blocks));
  PESTLE_TRY(pestle_schedule_store(k->nest, id, PESTLE_SCOPE_SHARED));
  return pestle_sketch_vectorise(k, id, s->roots[s->map_count - 1],
                                 c->t.vectors, &outer);
}

// Reduction |id| and the partial sums before it, |*out_levels|.
static pestle_status_t place_reduce(columns_t* c, uint32_t id,
                                    uint32_t* out_levels) {
  pestle_sketch_t* k = c->k;
  PESTLE_TRY(pestle_sketch_cascade(k, id, COLUMN_CHAIN, out_levels));
  uint32_t sum = id + *out_levels;
  for (uint32_t i = id; i <= sum; ++i) {
    c->t.reduce = i;
    PESTLE_TRY(pestle_sketch_tile_reduce(k, &c->t));
  }
  PESTLE_TRY(pestle_sketch_multi_accumulator(k, id, c->parts));
  PESTLE_TRY(pestle_schedule_at(k->nest, sum, k->anchor, c->blocks));
  return pestle_sketch_place_levels(k, id, *out_levels);
}

pestle_status_t pestle_sketch_columns(pestle_sketch_t* k, const bool* row,
                                      int32_t p) {
  uint32_t column = pestle_sketch_stage(k, k->anchor)->roots[p];
  columns_t c = {.k = k,
                 .row = row,
                 .p = (uint32_t)p,
                 .extent = pestle_sketch_extent(k, column),
                 .t = {.row = -1}};
  PESTLE_TRY(size_block(&c));
  PESTLE_TRY(order_anchor(&c));
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
    if (s == k->anchor || st->inlined) continue;
    if (!st->is_reduction) {
      PESTLE_TRY(place_map(&c, s));
      continue;
    }
    uint32_t levels;
    PESTLE_TRY(place_reduce(&c, s, &levels));
    s += levels;
  }
  return pestle_sketch_bind_groups(k, c.blocks);
}
