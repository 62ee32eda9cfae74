// SPDX-License-Identifier: Apache-2.0
// Flash attention for CPUs: two contractions with reductions along rows between them, as
// one kernel. It makes scores, their maximum, the shifted exponentials, their sum and
// the weighted sum of values, for a block of rows of the result at a time. Whole rows of
// scores are kept where they fit beside their operands; else the keys are cut into blocks
// too, which one pass goes through (the primitive online).
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // Rows of scores that are alive together, at most. They share each block of the
  // first contraction's vector operand, whose copy (16 KiB at 64 x 64) costs about
  // as much as a dozen rows of scores.
  MOST_ROWS = 128,
  // Columns of one block of scores, in vectors: as wide as a tile; with rows in lanes
  // twice as many, since what is summed so far is read and written once a block (12
  // heads of 512 x 512 x 64: 4 vectors 3.68 ms, 6 3.68, 8 3.50, 12 3.71).
  BLOCK_VECTORS = 4,
  BLOCK_VECTORS_OF_ROWS = 8,
  // Whole rows of scores are kept where they fill a quarter of L2 at most, since
  // their exponentials lie beside them.
  SCORES_OF_L2 = 4,
  // The copy that they are made from, of which each block of rows has its own.
  // Of few rows it takes most of the time: measured with one row of 1024
  // columns and 1 MiB of L2: 190 us of 12 heads whole, 123 in blocks that stay
  // in L1.
  COPY_OF_L2 = 8,
  // Vectors of rows whose maxima, sums and exponentials are made side by side: of
  // exponentials 1 and 8 took 239 and 229 us of 128 x 128 as below.
  REDUCE_VECTORS = 8,
  // Blocks of rows that --tune measures: so many sizes from this one on.
  LEAST_ROWS = 16,
  ROW_SIZES = 6,
};

// Rows in lanes may leave so many more of them empty than columns in lanes would.
static const double LANES_FILLED = 0.9;

typedef struct attention_t {
  pestle_sketch_t* k;
  const char* scores;   // the first contraction
  const char* maximum;  // NULL: there is none
  const char* sums[4];  // reductions beside the owner
  uint32_t sum_count;
  const char* owner;  // the second contraction
  int64_t columns;    // extent of the axis between them
  int64_t rows;       // that are alive together
  int64_t block;      // of columns; 0: whole rows
  bool online;
  // Scores and what is made of them lie with the rows of a column side by side: the
  // axes of the rows are in lanes, and columns reduce from one vector to the next.
  bool rows_in_lanes;
} attention_t;

static uint32_t stage_of(const attention_t* c, const char* name) {
  return (uint32_t)pestle_nest_find_stage(c->k->nest, name);
}

static pestle_nest_stage_t* find(const attention_t* c, const char* name) {
  return pestle_sketch_stage(c->k, stage_of(c, name));
}

// --- What the nest looks like ---

// The anchor's reads are of reductions, at its own leading axes.
static bool is_row_reduce(const pestle_sketch_t* k,
                          const pestle_nest_stage_t* s, int64_t columns) {
  return s->is_reduction && s->combine == NULL && s->value_count == 1 &&
         s->root_count == s->map_count + 1 &&
         pestle_sketch_extent(k, s->roots[s->map_count]) == columns;
}

// The map axes of |s| lead with those of |y|, but for dims of one element.
static bool has_leading_axes(const pestle_sketch_t* k,
                             const pestle_nest_stage_t* s,
                             const pestle_nest_stage_t* y) {
  for (uint32_t i = 0; i < s->map_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, s->roots[i]);
    if (extent == 1) continue;
    if (i >= y->map_count || pestle_sketch_extent(k, y->roots[i]) != extent) {
      return false;
    }
  }
  return true;
}

// The tensors that are made of one stage's.
typedef struct reach_t {
  bool* tensors;
  bool found;
} reach_t;

static void reach_visit(void* user, const pestle_expr_t* e) {
  reach_t* r = user;
  r->found |= r->tensors[e->i];
}

// Whether stage |to| is made of what |from| makes: of two sums beside each other the one
// is no weighing by the other, whatever their extents are.
static bool reaches(const pestle_sketch_t* k, uint32_t from, uint32_t to) {
  pestle_nest_t* nest = k->nest;
  reach_t r = {.tensors = pestle_arena_alloc_zero(nest->arena,
                                                  nest->tensors.size + 1, 1)};
  if (!r.tensors) return false;
  for (uint32_t i = from; i <= to; ++i) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, i);
    r.found = i == from;
    if (!r.found) pestle_nest_visit_values(nest, s, reach_visit, &r);
    for (uint32_t v = 0; r.found && v < s->value_count; ++v)
      r.tensors[s->tensors[v]] = true;
  }
  return r.found;
}

// Fills |c| and says whether the nest is attention.
static bool recognise(attention_t* c) {
  pestle_sketch_t* k = c->k;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t owner = -1;
  for (uint32_t s = 0; s < k->anchor; ++s) {
    if (pestle_sketch_stage(k, s)->is_reduction) owner = (int32_t)s;
  }
  if (owner < 0 || y->map_count < 2) return false;
  const pestle_nest_stage_t* o = pestle_sketch_stage(k, (uint32_t)owner);
  if (!pestle_sketch_is_product(o) || o->root_count != o->map_count + 1 ||
      !pestle_sketch_aligned(k, (uint32_t)owner)) {
    return false;
  }
  c->owner = o->name;
  c->columns = pestle_sketch_extent(k, o->roots[o->map_count]);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < (uint32_t)owner; ++i) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, i);
    if (s->inlined) continue;
    if (!s->is_reduction) {
      ++kept;
    } else if (!c->scores) {
      bool scores =
          pestle_sketch_is_product(s) && s->map_count >= 2 &&
          pestle_sketch_extent(k, s->roots[s->map_count - 1]) == c->columns;
      if (!scores) return false;
      c->scores = s->name;
    } else if (!is_row_reduce(k, s, c->columns) || !has_leading_axes(k, s, o)) {
      return false;
    } else if (s->reduce == PESTLE_OP_MAXIMUM && !c->maximum && !c->sum_count) {
      c->maximum = s->name;
    } else if (s->reduce == PESTLE_OP_ADD && c->sum_count < 4) {
      c->sums[c->sum_count++] = s->name;
    } else {
      return false;
    }
  }
  return c->scores && kept <= 1 &&
         find(c, c->scores)->map_count == o->map_count &&
         reaches(k, stage_of(c, c->scores), (uint32_t)owner);
}

// --- Rows ---

static pestle_status_t partial(attention_t* c, const char* name) {
  uint32_t unused, stage = stage_of(c, name);
  const pestle_nest_stage_t* s = pestle_sketch_stage(c->k, stage);
  PESTLE_TRY(pestle_schedule_partial(c->k->nest, stage, s->roots[s->map_count],
                                     c->block, true, &unused));
  ++c->k->anchor;
  return NULL;
}

// Blocks of columns, stepped together.
static pestle_status_t step_together(attention_t* c) {
  uint32_t reductions[5], n = 0;
  PESTLE_TRY(partial(c, c->maximum));
  for (uint32_t i = 0; i < c->sum_count; ++i) {
    PESTLE_TRY(partial(c, c->sums[i]));
  }
  PESTLE_TRY(partial(c, c->owner));
  reductions[n++] = stage_of(c, c->maximum);
  for (uint32_t i = 0; i < c->sum_count; ++i) {
    reductions[n++] = stage_of(c, c->sums[i]);
  }
  const pestle_nest_stage_t* o = find(c, c->owner);
  return pestle_schedule_online(c->k->nest, stage_of(c, c->owner),
                                o->roots[o->map_count], reductions, n, true);
}

// Whether |s| keeps a number for each row and column.
static bool keeps_scores(const attention_t* c, const pestle_nest_stage_t* s) {
  const pestle_nest_stage_t* scores = find(c, c->scores);
  uint32_t m = s->map_count;
  return !s->inlined && m == scores->map_count && s->combine == NULL &&
         (s == scores ||
          (!s->is_reduction &&
           pestle_sketch_extent(c->k, s->roots[m - 1]) == c->columns));
}

static pestle_status_t put_rows_in_lanes(attention_t* c) {
  for (uint32_t i = stage_of(c, c->scores); i < stage_of(c, c->owner); ++i) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(c->k, i);
    if (!keeps_scores(c, s)) continue;
    uint32_t axes[PESTLE_NEST_MAX_AXES], m = s->map_count;
    memcpy(axes, s->roots, sizeof(axes));
    axes[m - 1] = s->roots[m - 2];
    axes[m - 2] = s->roots[m - 1];
    PESTLE_TRY(pestle_schedule_permute(c->k->nest, i, axes, m));
  }
  return NULL;
}

// |stage|'s own loops around its tile: rows and columns in tiles, other axes
// outside. Returns the loop of the row tiles.
static pestle_status_t tile_loops(attention_t* c, uint32_t stage,
                                  const pestle_register_tile_t* t,
                                  uint32_t* out_tile) {
  pestle_nest_t* nest = c->k->nest;
  pestle_nest_stage_t* s = pestle_sketch_stage(c->k, stage);
  uint32_t m = s->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t row = s->roots[m - 2], column = s->roots[m - 1];
  uint32_t it, im, jt, jn, jj, jv;
  PESTLE_TRY(pestle_schedule_split(nest, stage, row, t->rows, &it, &im));
  PESTLE_TRY(pestle_schedule_split(nest, stage, column, t->vectors * t->lanes,
                                   &jt, &jn));
  PESTLE_TRY(pestle_schedule_split(nest, stage, jn, t->lanes, &jj, &jv));
  s = pestle_sketch_stage(c->k, stage);
  for (uint32_t i = 0; i + 2 < m; ++i)
    order[n++] = s->roots[i];
  bool reductions_outside =
      s->combine != NULL;  // its steps are around the tiles
  uint32_t k = s->is_reduction ? s->roots[m] : 0;
  if (reductions_outside) order[n++] = k;
  order[n++] = jt;
  order[n++] = it;
  if (s->is_reduction && !reductions_outside) order[n++] = k;
  order[n++] = im;
  order[n++] = jj;
  order[n++] = jv;
  PESTLE_TRY(pestle_schedule_reorder(nest, stage, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, im, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, jj, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, jv, PESTLE_MARK_VECTOR));
  *out_tile = it;
  return NULL;
}

static pestle_register_tile_t tile_for(const attention_t* c,
                                       const pestle_nest_stage_t* s) {
  uint32_t m = s->map_count;
  int64_t width = pestle_sketch_extent(c->k, s->roots[m - 1]), rows = c->rows;
  int64_t height = pestle_sketch_extent(c->k, s->roots[m - 2]);
  if (s == find(c, c->scores)) {
    int64_t columns = c->block ? c->block : c->columns;
    width = pestle_sketch_min(width, c->rows_in_lanes ? rows : columns);
    if (c->rows_in_lanes) rows = columns;
  }
  return pestle_sketch_size_tile(c->k, width, pestle_sketch_min(height, rows));
}

static pestle_status_t place(attention_t* c, uint32_t stage, uint32_t under,
                             uint32_t loop) {
  PESTLE_TRY(pestle_schedule_at(c->k->nest, stage, under, loop));
  return pestle_schedule_store(c->k->nest, stage, PESTLE_SCOPE_SHARED);
}

// The scores: the copy of the operand that lies across, then tiles. |rows_loop|:
// the anchor's, of blocks of rows.
static pestle_status_t place_scores(attention_t* c, uint32_t* under,
                                    uint32_t loop, uint32_t rows_loop) {
  uint32_t id = stage_of(c, c->scores), tile;
  pestle_register_tile_t t = tile_for(c, pestle_sketch_stage(c->k, id));
  t.reduce = id;
  int32_t copy;
  PESTLE_TRY(pestle_sketch_stage_strided(c->k, id, &copy));
  if (copy >= 0) {
    ++id;
    ++*under;
  }
  PESTLE_TRY(place(c, id, *under, loop));
  PESTLE_TRY(tile_loops(c, id, &t, &tile));
  if (copy < 0) return NULL;
  if (c->rows_in_lanes) {
    PESTLE_TRY(place(c, (uint32_t)copy, c->k->anchor, rows_loop));
  } else {
    // Outside the row tiles: those of columns.
    int32_t columns =
        pestle_sketch_around(pestle_sketch_stage(c->k, id), (int32_t)tile);
    PESTLE_TRY(place(c, (uint32_t)copy, id, (uint32_t)columns));
  }
  return pestle_sketch_vectorise_copy(c->k, (uint32_t)copy);
}

// The reduction |id| of rows that lie in lanes: vectors of them side by side, in
// registers while the columns go by.
static pestle_status_t reduce_columns(attention_t* c, uint32_t id) {
  pestle_sketch_t* k = c->k;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  uint32_t o, u, v, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t row = s->roots[s->map_count - 1];
  int64_t lanes = pestle_sketch_lanes(
      k, pestle_sketch_min(c->rows, pestle_sketch_extent(k, row)));
  PESTLE_TRY(
      pestle_schedule_split(k->nest, id, row, lanes * REDUCE_VECTORS, &o, &u));
  PESTLE_TRY(pestle_schedule_split(k->nest, id, u, lanes, &u, &v));
  s = pestle_sketch_stage(k, id);
  for (uint32_t a = 0; a + 1 < s->map_count; ++a)
    order[n++] = s->roots[a];
  order[n++] = o;
  order[n++] = s->roots[s->map_count];
  order[n++] = u;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(k->nest, id, order, n));
  PESTLE_TRY(pestle_schedule_mark(k->nest, id, u, PESTLE_MARK_UNROLL));
  return pestle_schedule_mark(k->nest, id, v, PESTLE_MARK_VECTOR);
}

// Everything between the contractions that is made for a block of rows.
static pestle_status_t place_between(attention_t* c, uint32_t under,
                                     uint32_t loop) {
  pestle_sketch_t* k = c->k;
  uint32_t outer;
  for (uint32_t i = stage_of(c, c->scores) + 1; i < stage_of(c, c->owner);
       ++i) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, i);
    if (s->inlined || s->at_stage >= 0) continue;
    bool product = pestle_sketch_is_product(s);
    if (product) continue;  // partial results of the second contraction
    PESTLE_TRY(place(c, i, under, loop));
    s = pestle_sketch_stage(k, i);
    if (s->is_reduction && c->rows_in_lanes) {
      PESTLE_TRY(reduce_columns(c, i));
    } else if (s->is_reduction) {
      PESTLE_TRY(pestle_sketch_reduce_lanes(k, i, s->roots[s->map_count]));
    } else {
      PESTLE_TRY(pestle_sketch_vectorise(k, i, s->roots[s->map_count - 1],
                                         c->rows_in_lanes ? REDUCE_VECTORS : 1,
                                         &outer));
    }
  }
  return NULL;
}

// What is kept between the second contraction and the result, since it is read
// more than once: its rows of the block.
static pestle_status_t place_behind(attention_t* c, uint32_t owner,
                                    uint32_t loop) {
  pestle_sketch_t* k = c->k;
  uint32_t outer;
  for (uint32_t i = owner + 1; i < k->anchor; ++i) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, i);
    if (s->inlined || s->at_stage >= 0) continue;
    PESTLE_TRY(place(c, i, k->anchor, loop));
    s = pestle_sketch_stage(k, i);
    PESTLE_TRY(
        pestle_sketch_vectorise(k, i, s->roots[s->map_count - 1], 1, &outer));
  }
  return NULL;
}

// Reductions that step with the owner: their rows in lanes.
static pestle_status_t finish_carried(attention_t* c) {
  pestle_sketch_t* k = c->k;
  for (uint32_t i = 0; i < k->anchor; ++i) {
    pestle_nest_stage_t* s = pestle_sketch_stage(k, i);
    if (!s->carried) continue;
    PESTLE_TRY(pestle_schedule_store(k->nest, i, PESTLE_SCOPE_SHARED));
    // The innermost axis with something to walk is that of the rows.
    uint32_t row = s->map_count;
    while (row > 0 && pestle_sketch_extent(k, s->roots[row - 1]) == 1)
      --row;
    if (!row || row != s->map_count) continue;
    uint32_t o, v, order[PESTLE_NEST_MAX_AXES], n = 0;
    int64_t lanes = pestle_sketch_lanes(
        k,
        pestle_sketch_min(c->rows, pestle_sketch_extent(k, s->roots[row - 1])));
    PESTLE_TRY(
        pestle_schedule_split(k->nest, i, s->roots[row - 1], lanes, &o, &v));
    s = pestle_sketch_stage(k, i);
    order[n++] = s->roots[s->map_count];
    for (uint32_t a = 0; a + 1 < s->map_count; ++a)
      order[n++] = s->roots[a];
    order[n++] = o;
    order[n++] = v;
    PESTLE_TRY(pestle_schedule_reorder(k->nest, i, order, n));
    PESTLE_TRY(pestle_schedule_mark(k->nest, i, v, PESTLE_MARK_VECTOR));
  }
  return NULL;
}

// The anchor: groups of batches and blocks of rows. |*out_loop|: the blocks'.
static pestle_status_t anchor_loops(attention_t* c, uint32_t* out_loop) {
  pestle_sketch_t* k = c->k;
  pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t m = y->map_count, io, ii, outer;
  PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, y->roots[m - 2], c->rows,
                                   &io, &ii));
  PESTLE_TRY(pestle_sketch_vectorise(
      k, k->anchor, pestle_sketch_stage(k, k->anchor)->roots[m - 1],
      BLOCK_VECTORS, &outer));
  *out_loop = io;
  return pestle_sketch_bind_groups(k, io);
}

static pestle_status_t schedule(attention_t* c) {
  pestle_sketch_t* k = c->k;
  uint32_t block_loop, tile_loop, loop;
  if (c->online) PESTLE_TRY(step_together(c));
  if (c->rows_in_lanes) PESTLE_TRY(put_rows_in_lanes(c));
  PESTLE_TRY(anchor_loops(c, &block_loop));
  uint32_t under = k->anchor;
  loop = block_loop;
  uint32_t owner = stage_of(c, c->owner);
  if (c->online) {
    PESTLE_TRY(place(c, owner, k->anchor, block_loop));
    pestle_nest_stage_t* o = pestle_sketch_stage(k, owner);
    pestle_register_tile_t t = tile_for(c, o);
    loop = o->roots[o->map_count];
    PESTLE_TRY(tile_loops(c, owner, &t, &tile_loop));
    // The block's own contraction, a tile at a time in registers.
    t.reduce = owner - 1;
    t.row = (int32_t)pestle_sketch_stage(k, t.reduce)->map_count - 2;
    PESTLE_TRY(pestle_sketch_tile_reduce(k, &t));
    PESTLE_TRY(pestle_schedule_at(k->nest, t.reduce, owner, tile_loop));
    under = owner;
  } else {
    pestle_register_tile_t t = tile_for(c, pestle_sketch_stage(k, owner));
    PESTLE_TRY(place(c, owner, k->anchor, block_loop));
    PESTLE_TRY(tile_loops(c, owner, &t, &tile_loop));
  }
  PESTLE_TRY(place_behind(c, owner, block_loop));
  PESTLE_TRY(place_between(c, under, loop));
  PESTLE_TRY(finish_carried(c));
  PESTLE_TRY(place_scores(c, &under, loop, block_loop));
  return NULL;
}

// --- Whether rows are in lanes ---

// Whether what |s| reads lies in vectors along its axis of rows, or is one number
// for all of them.
static bool reads_along(const attention_t* c, const pestle_nest_stage_t* s) {
  uint32_t row = s->map_count - (s->is_reduction ? 1u : 2u);
  return !pestle_sketch_pace(c->k, s, s->roots[row], 1).jumps;
}

static double filled(int64_t extent, int64_t lanes) {
  return (double)extent / (double)(pestle_ceil_div(extent, lanes) * lanes);
}

// Whether the copy of the rows that are alive together fits beside all else that
// waits in the L2.
static bool keeps_queries(const attention_t* c, int64_t rows) {
  const pestle_sketch_t* k = c->k;
  int64_t depth = pestle_sketch_reduction_extent(k, find(c, c->scores));
  return pestle_sketch_min(rows, MOST_ROWS) * depth * PESTLE_SKETCH_ELEMENT <=
         k->l2 / SCORES_OF_L2;
}

// Measured on a Zen 5, us of 12 heads of 64, columns in lanes and rows: 128 x 128 244,
// 230, 1024 x 1024 17250, 14860 (15140 by 64 rows, 15430 by 192). Rows in lanes: then
// maxima and sums need no reduction across a vector, and of the
// first contraction's operands the rows are what may have to be copied, once for all
// columns. Not where few rows leave lanes empty, or a mask lies along the columns.
static bool favours_rows(const attention_t* c, int64_t rows) {
  pestle_sketch_t* k = c->k;
  const pestle_nest_stage_t* s = find(c, c->scores);
  if (k->nest->no_scratch || s->values[0]->kind == PESTLE_EXPR_DOT ||
      rows < k->lanes || !keeps_queries(c, rows) ||
      filled(rows, k->lanes) < filled(c->columns, k->lanes) * LANES_FILLED) {
    return false;
  }
  for (uint32_t i = stage_of(c, c->scores) + 1; i < stage_of(c, c->owner);
       ++i) {
    s = pestle_sketch_stage(k, i);
    bool reductions = s->is_reduction && s->combine == NULL;
    if (!s->inlined && (reductions || keeps_scores(c, s)) &&
        !reads_along(c, s)) {
      return false;
    }
  }
  return true;
}

// --- How many rows ---

static int64_t count_rows(const attention_t* c) {
  const pestle_nest_stage_t* o = find(c, c->owner);
  return pestle_sketch_extent(c->k, o->roots[o->map_count - 2]);
}

// Rows of a block, so that blocks of |most| at most have one size.
static int64_t rows_of_block(const attention_t* c, int64_t most) {
  int64_t rows = count_rows(c), blocks = pestle_ceil_div(rows, most);
  if (blocks == 1) return rows;
  rows = pestle_ceil_div(rows, blocks);
  int64_t lanes = c->k->lanes;
  return c->rows_in_lanes ? pestle_ceil_div(rows, lanes) * lanes : rows;
}

// Scores of all batches.
static double count_scores(const attention_t* c) {
  const pestle_nest_stage_t* o = find(c, c->owner);
  double n = (double)c->columns;
  for (uint32_t i = 0; i + 1 < o->map_count; ++i)
    n *= (double)pestle_sketch_extent(c->k, o->roots[i]);
  return n;
}

// Multiply-adds and functions, which all ways share.
static double work_cycles(const attention_t* c) {
  const pestle_nest_stage_t* o = find(c, c->owner);
  int64_t width = pestle_sketch_extent(c->k, o->roots[o->map_count - 1]);
  int64_t depth = pestle_sketch_reduction_extent(c->k, find(c, c->scores));
  return count_scores(c) * (double)(depth + width + PESTLE_CPU_FUNCTION_STEPS) /
         (double)c->k->lanes / pestle_sketch_rates(c->k->caps).fmas;
}

// Of all cores, by blocks of |rows|: a copy for each, where columns are in lanes,
// and scores that are written and read twice, where they lie.
static double rows_cycles(const void* user, int64_t rows) {
  const attention_t* c = user;
  const pestle_sketch_t* k = c->k;
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  int64_t all = count_rows(c), columns = c->block ? c->block : c->columns;
  double scores = count_scores(c), batch = scores / (double)(all * c->columns);
  double blocks = (double)pestle_ceil_div(all, rows) * batch;
  int64_t depth = pestle_sketch_reduction_extent(k, find(c, c->scores));
  double cycles = work_cycles(c);
  if (!c->rows_in_lanes) {
    cycles += blocks *
              (double)(depth * c->columns * PESTLE_CPU_TRANSPOSE_EIGHTHS) / 8;
  }
  int64_t bytes = 2 * rows * columns * PESTLE_SKETCH_ELEMENT;
  double native = (double)(k->lanes * PESTLE_SKETCH_ELEMENT) * rates.loads;
  double rate = bytes <= k->l1 ? native : bytes <= k->l2 ? rates.l2 : rates.l3;
  cycles += scores * PESTLE_SKETCH_ELEMENT * 4 / rate;
  double rounds = (double)pestle_ceil_div((int64_t)blocks, k->cores);
  return cycles * rounds * (double)k->cores / blocks;
}

// A choice of rows, which no sum depends on: what does is as the usual number has it.
static int64_t choose_rows(attention_t* c, int64_t usual) {
  static const pestle_question_t q = {
      "rows",
      "cycles of all cores: multiply-adds, functions, copies, and waiting"};
  int64_t values[ROW_SIZES];
  pestle_numbers_t n = {
      .values = values, .usual = usual, .cost = rows_cycles, .user = c};
  int64_t columns = c->block ? c->block : c->columns;
  for (int64_t i = 0, most = LEAST_ROWS; i < ROW_SIZES; ++i, most *= 2) {
    int64_t rows = rows_of_block(c, most);
    bool fits = rows * columns * PESTLE_SKETCH_ELEMENT <= c->k->l2 / 2;
    bool known = n.count && values[n.count - 1] == rows;
    if (rows == usual || (fits && !known)) values[n.count++] = rows;
    if (rows == count_rows(c)) break;
  }
  return n.count > 1 ? pestle_choose_number(c->k->nest, q, &n) : usual;
}

// Apart, products would write scores, a kernel of rows read and write them, and the
// other product read them.
static void decide_form(const attention_t* c) {
  static const pestle_question_t q = {
      "form",
      "cycles of a core: multiply-adds, functions, and bytes of scores"};
  double bytes = count_scores(c) * PESTLE_SKETCH_ELEMENT;
  double work = work_cycles(c);
  const pestle_option_t options[] = {
      {"flash_attention_cpu", work},
      {"products", work + 4 * pestle_sketch_bytes_cycles(c->k, bytes)}};
  pestle_choose_fixed(c->k->nest, q, options, 2, 0);
}

bool pestle_sketch_flash_attention_cpu_fits(pestle_sketch_t* k) {
  attention_t c = {.k = k};
  return recognise(&c);
}

pestle_status_t pestle_sketch_flash_attention_cpu(pestle_sketch_t* k) {
  attention_t c = {.k = k};
  if (!recognise(&c)) {
    return PESTLE_ERROR(INTERNAL, "'%s' is no attention", k->nest->name);
  }
  decide_form(&c);
  c.rows_in_lanes = favours_rows(&c, count_rows(&c));
  int64_t rows = rows_of_block(&c, MOST_ROWS);
  c.block =
      k->lanes * (c.rows_in_lanes ? BLOCK_VECTORS_OF_ROWS : BLOCK_VECTORS);
  int64_t depth = pestle_sketch_reduction_extent(k, find(&c, c.scores));
  int64_t column = c.columns * PESTLE_SKETCH_ELEMENT;
  bool fits = rows * column <= k->l2 / SCORES_OF_L2 &&
              depth * column <= k->l2 / COPY_OF_L2;
  c.online = !fits && c.maximum && c.sum_count && k->reassociate &&
             c.columns > c.block;
  if (!c.online) c.block = 0;
  c.rows = rows = choose_rows(&c, rows);
  if (c.online) {
    pestle_sketch_note(k,
                       "scores in blocks of %" PRId64
                       " columns, in one pass: %" PRId64 " rows of all %" PRId64
                       " do not fit a quarter of the L2 beside their operands",
                       c.block, rows, c.columns);
  } else {
    pestle_sketch_note(
        k, "whole rows of %" PRId64 " scores, %" PRId64 " at a time: %s",
        c.columns, rows,
        fits ? "they fit a quarter of the L2"
             : "their reductions cannot go block by block");
  }
  if (c.rows_in_lanes) {
    pestle_sketch_note(k,
                       "scores lie by columns, the rows of each in lanes: "
                       "maxima and sums need no reduction across a vector");
  }
  return schedule(&c);
}
