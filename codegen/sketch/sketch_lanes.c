// SPDX-License-Identifier: Apache-2.0
// Schedules for targets with lanes: groups of many threads side by side.
//
//   map     a thread has one vector of results; neighbours lie side by side
//   points  a thread has one result, and reduces it alone
//   rows    a group has one row, or several short ones; lanes reduce a row
//           together
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"

enum {
  // Lanes of a group that reduces one row: more wait longer for each other than
  // they gain in loads under way, until a row is very long.
  ROW_LANES = 256,
  LONG_ROW_LANES = 1024,
  // Vectors that a lane of a long row takes.
  LONG_ROW_VECTORS = 16,
  // Lanes of a group of short rows.
  GROUP_LANES = 128,
  // Rows from here on are kept rather than made twice, if they take a part of
  // the shared memory: so many groups of a unit may. Measured on an H200: softmax of
  // [65536, 1000] in f32 163 us kept, 185 made twice.
  KEPT_ROW = 512,
  KEPT_GROUPS = 4,
  // Of a lane's registers, such a part may hold them instead.
  LANE_SHARE = 4,
  // Elements that lanes of a group share, where they would have fewer along the last
  // axis that is reduced.
  LANES_SHARE = 2048,
  // Results side by side, of turned rows; groups of a unit below which each is large.
  MOST_TURNED = 32,
  FEW_GROUPS = 4,
  // Rows that are no whole vectors are taken in vectors that they are, so that lanes side by
  // side read what lies side by side, and no lane goes on alone at the end: on an H200 softmax
  // of f32 [3977, 7255] took 121 us by vectors of 4, 66 by elements, layer norm of f16
  // [33926, 2193] 281 and 100. Up to here by one subgroup: log-softmax of bf16 [27736, 198]
  // took 20 us by more, torch 9. Longer ones where there are rows for all subgroups.
  SHORT_ROW = 512,
  MANY_SHORT_ROW = 1024,
  // Lanes of a subgroup that has a row alone, elements that each may have in registers, and
  // rows of an execution unit from which on. Log-softmax of bf16 [5808, 1200] 17.5 us by
  // groups, 12.5 so, layer norm of [20865, 1272] 43.8 and 31.4.
  ROW_SUBGROUP = 32,
  LANE_ROW = 64,
  UNIT_ROWS = 16,
  // Neighbours that a thread has of windows: EfficientNet-B0 of 16 images in f16 takes 834 us
  // on an H200 so, 868 without, 966 by vectors of 2 and 1,117 by single results.
  BESIDE = 2,
  // A reduction shorter than this is a thread's alone.
  LEAST_REDUCE = 32,
};

// --- Vectors ---

typedef struct widest_t {
  const pestle_nest_t* nest;
  unsigned bytes;
} widest_t;

static void widest_visit(void* user, const pestle_expr_t* e) {
  widest_t* w = user;
  const pestle_nest_tensor_t* t = &w->nest->tensors.data[e->i];
  unsigned size = pestle_dtype_size(t->type.dtype);
  if (t->kind == PESTLE_TENSOR_INPUT && size > w->bytes) w->bytes = size;
}

// Elements of a native vector of the widest dtype that |s| moves.
static int64_t vector_of(pestle_sketch_t* k, const pestle_nest_stage_t* s) {
  widest_t w = {k->nest, 1};
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_nest_tensor_t* t = &k->nest->tensors.data[s->tensors[v]];
    unsigned size = pestle_dtype_size(t->type.dtype);
    if (t->kind == PESTLE_TENSOR_OUTPUT && size > w.bytes) w.bytes = size;
  }
  pestle_nest_visit_values(k->nest, s, widest_visit, &w);
  int64_t lanes = (int64_t)k->caps->vector_bytes / w.bytes;
  return lanes > 1 ? lanes : 1;
}

// Whether whole vectors of |s| along |axis| are moved by all that it reads: by
// steps of one element, or not at all.
static bool moves_vectors(pestle_sketch_t* k, const pestle_nest_stage_t* s,
                          uint32_t axis) {
  pestle_stride_t along = pestle_sketch_strides(k, s, axis);
  return !along.strided;
}

// --- Maps ---

static pestle_status_t map_lanes(pestle_sketch_t* k) {
  bool done;
  PESTLE_TRY(pestle_sketch_fuse_axes(k, 0));
  PESTLE_TRY(pestle_sketch_offer(
      k, (pestle_offer_t){.kind = PESTLE_OFFER_LANES_MAP}, &done));
  if (done) return NULL;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, k->anchor);
  if (!s->root_count) return NULL;
  uint32_t last = s->roots[s->root_count - 1];
  int64_t all = 1, lanes = vector_of(k, s);
  for (uint32_t i = 0; i < s->root_count; ++i) {
    all *= pestle_sketch_extent(k, s->roots[i]);
  }
  int64_t threads = k->cores * PESTLE_GPU_THREADS_PER_UNIT;
  while (lanes > 1 && all / lanes < threads)
    lanes /= 2;
  // Neighbours that are made of what lies near each other, though not of vectors: lanes of
  // a subgroup read whole lines, be it in turns.
  if (pestle_sketch_strides(k, s, last).far) lanes = 1;
  if (lanes > pestle_sketch_extent(k, last)) {
    lanes =
        (int64_t)pestle_next_pow2((uint64_t)pestle_sketch_extent(k, last)) / 2;
  }
  pestle_sketch_note(
      k, "map: a thread has %" PRId64 " results that lie side by side",
      lanes > 1 ? lanes : 1);
  if (lanes > 1) {
    uint32_t outer, inner;
    PESTLE_TRY(
        pestle_schedule_split(k->nest, k->anchor, last, lanes, &outer, &inner));
    PESTLE_TRY(
        pestle_schedule_mark(k->nest, k->anchor, inner, PESTLE_MARK_VECTOR));
    return pestle_sketch_bind_first(
        k, pestle_sketch_stage(k, k->anchor)->order_count - 1);
  }
  return pestle_sketch_bind_first(k, s->order_count);
}

// --- Reductions ---

// Whether lanes may reduce |s| together.
static bool reductions_together(const pestle_sketch_t* k,
                                const pestle_nest_stage_t* s) {
  return s->value_count == 1 && pestle_sketch_reorders(k, s);
}

static bool is_placed(const pestle_sketch_t* k, uint32_t id) {
  return id == k->anchor || k->nest->stages.data[id].inlined;
}

// All stages under loop |leaf| of the last one: only then is known what is read
// of each of them there.
static pestle_status_t place_all(pestle_sketch_t* k, uint32_t leaf) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (is_placed(k, s)) continue;
    PESTLE_TRY(pestle_schedule_at(k->nest, s, k->anchor, leaf));
  }
  return NULL;
}

// In registers where loops are unrolled, else in shared memory.
static pestle_status_t store(pestle_sketch_t* k, uint32_t id) {
  bool registers;
  PESTLE_TRY(pestle_nest_private_fits(k->nest, id, &registers));
  return pestle_schedule_store(
      k->nest, id, registers ? PESTLE_SCOPE_PRIVATE : PESTLE_SCOPE_SHARED);
}

bool pestle_sketch_keeps_rows(const pestle_sketch_t* k, int64_t length) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    if (f->is_reduction && !reductions_together(k, f)) return false;
  }
  return length >= KEPT_ROW &&
         length * PESTLE_SKETCH_ELEMENT <=
             (int64_t)k->caps->scratch_bytes / KEPT_GROUPS;
}

// What rows would have kept is made where it is read.
pestle_status_t pestle_sketch_inline_kept(pestle_sketch_t* k) {
  size_t n = k->nest->stages.size;
  bool any = false;
  bool* inlined = pestle_arena_alloc_zero(k->nest->arena, n, 1);
  if (!inlined) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", k->nest->name);
  }
  // What stands behind a nested anchor is not its own.
  for (uint32_t s = 0; s < k->anchor; ++s) {
    inlined[s] = !is_placed(k, s) && !pestle_sketch_stage(k, s)->is_reduction;
    any = any || inlined[s];
  }
  return any ? pestle_schedule_inline(k->nest, inlined) : NULL;
}

// The only stage that is not inlined.
static int32_t only_stage(const pestle_sketch_t* k) {
  return pestle_sketch_only_stage(k, (uint32_t)k->nest->stages.size);
}

// What a thread has of the results of the one reduction: a vector side by side along the last
// axis, and neighbours along the one before, whose windows share elements.
typedef struct point_shape_t {
  int64_t vector, beside;
} point_shape_t;

// Of reduction |id|: a vector where all that is read lies side by side along the results, or is
// the same, and there are threads enough.
static point_shape_t shape_point(pestle_sketch_t* k, int32_t id) {
  point_shape_t p = {1, 1};
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  if (id < 0) return p;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, (uint32_t)id);
  uint32_t n = y->root_count;
  if (!n || !s->is_reduction || s->combine || s->value_count != 1 ||
      s->map_count != n || memcmp(y->order, y->roots, n * sizeof *y->order)) {
    return p;
  }
  uint32_t last = s->roots[n - 1];
  if (!pestle_sketch_strides(k, s, last).unit || !moves_vectors(k, s, last) ||
      !moves_vectors(k, y, y->roots[n - 1]) ||
      !pestle_sketch_aligned(k, (uint32_t)id)) {
    return p;
  }
  int64_t all = 1, threads = k->cores * PESTLE_GPU_THREADS_PER_UNIT;
  for (uint32_t i = 0; i < n; ++i)
    all *= pestle_sketch_extent(k, y->roots[i]);
  p.vector = vector_of(k, s);
  while (p.vector > 1 && (pestle_sketch_extent(k, last) % p.vector ||
                          all / p.vector < threads)) {
    p.vector /= 2;
  }
  bool beside = n > 1 && p.vector > 1 && pestle_sketch_is_product(s) &&
                pestle_sketch_extent(k, s->roots[n - 2]) % BESIDE == 0;
  if (beside) p.beside = BESIDE;
  return p;
}

// Splits the anchor's and the reduction's loops for |p|; |*leaf| is the thread's last one.
static pestle_status_t split_point(pestle_sketch_t* k, uint32_t id,
                                   const point_shape_t* p, uint32_t* leaf) {
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0, vector, outer, beside;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t row = p->beside > 1 ? (int32_t)y->root_count - 2 : -1;
  PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, *leaf, p->vector, leaf,
                                   &vector));
  if (row >= 0) {
    y = pestle_sketch_stage(k, k->anchor);
    PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, y->roots[row],
                                     p->beside, &outer, &beside));
    y = pestle_sketch_stage(k, k->anchor);
    for (uint32_t i = 0; i < y->order_count; ++i)
      if (y->order[i] != beside && y->order[i] != vector)
        order[n++] = y->order[i];
    order[n++] = beside;
    order[n++] = vector;
    PESTLE_TRY(pestle_schedule_reorder(k->nest, k->anchor, order, n));
    PESTLE_TRY(
        pestle_schedule_mark(k->nest, k->anchor, beside, PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(
      pestle_schedule_mark(k->nest, k->anchor, vector, PESTLE_MARK_VECTOR));
  return pestle_sketch_tile_reduce(
      k, &(pestle_register_tile_t){.reduce = id,
                                   .row = row,
                                   .slides = row >= 0,
                                   .rows = p->beside,
                                   .vectors = 1,
                                   .lanes = p->vector});
}

// Every result, or row of results, is one thread's.
static pestle_status_t points(pestle_sketch_t* k, const bool* row) {
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  uint32_t rows;
  PESTLE_TRY(pestle_sketch_rows_first(k, row, &rows));
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t leaf = rows ? y->order[rows - 1] : UINT32_MAX;
  int32_t only = rows == y->order_count ? only_stage(k) : -1;
  point_shape_t p = shape_point(k, only);
  if (p.vector > 1) PESTLE_TRY(split_point(k, (uint32_t)only, &p, &leaf));
  PESTLE_TRY(pestle_sketch_bind_first(k, rows));
  pestle_sketch_note(k,
                     "points: a thread reduces what it needs alone, %" PRId64
                     " x %" PRId64 " results",
                     p.beside, p.vector);
  PESTLE_TRY(place_all(k, leaf));
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (!is_placed(k, s) && p.vector == 1) PESTLE_TRY(store(k, s));
  }
  return NULL;
}

// --- Rows ---

// Lanes along a row, elements of a lane's vector, rows of a group.
typedef struct row_shape_t {
  int64_t lanes, vector, rows;
  bool turned;  // rows lie along x, lanes of a row along y
} row_shape_t;

static pestle_mark_t row_mark(const row_shape_t* shape) {
  return shape->turned ? PESTLE_MARK_LANE_Y : PESTLE_MARK_LANE_X;
}

static int64_t longest_row(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t most = 1;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, y->roots[i]);
    if (!row[i] && extent > most) most = extent;
  }
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (is_placed(k, s)) continue;
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    for (uint32_t i = f->map_count; i < f->root_count; ++i) {
      int64_t extent = pestle_sketch_extent(k, f->roots[i]);
      if (extent > most) most = extent;
    }
  }
  return most;
}

static int64_t count_results(const pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t results = 1;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i]) results *= pestle_sketch_extent(k, y->roots[i]);
  }
  return results;
}

// Rows that may share a group.
static int64_t rows_beside(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t beside = 1;
  for (uint32_t i = 0; i < y->root_count; ++i)
    if (row[i]) beside = pestle_sketch_extent(k, y->roots[i]);
  return beside;
}

// Whether lanes of a subgroup have each other's values of |s| without a barrier of the group:
// else the last group, whose rows are fewer, would wait for lanes that are not there.
static bool meets_alone(const pestle_sketch_t* k,
                        const pestle_nest_stage_t* s) {
  if (!(k->caps->flags & PESTLE_TARGET_SUBGROUPS)) return false;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_dtype_t dtype = k->nest->tensors.data[s->tensors[v]].type.dtype;
    if (pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
        pestle_dtype_size(dtype) == 8)
      return false;
  }
  return true;
}

// Whether a row is one subgroup's, which needs no other then: each reduction has one result
// a row.
static bool are_subgroups(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t rows = 0;
  for (uint32_t i = 0; i < y->root_count; ++i)
    rows += row[i];
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    if (!is_placed(k, s) &&
        (!f->is_reduction || f->map_count > rows || !meets_alone(k, f))) {
      return false;
    }
  }
  return k->caps->subgroup == ROW_SUBGROUP &&
         k->caps->max_group_lanes >= ROW_SUBGROUP;
}

// Whether each subgroup has a row of its own, since there are rows for all of them: a lane has
// several vectors under way then, and no group waits for a sum of subgroups. On an H200
// softmax of [65536, 1000] in f32 takes 136 us so, 162 by groups, and means of 4,769 rows of
// 144 2.0 and 4.2.
static bool has_row_subgroups(pestle_sketch_t* k, const bool* row,
                              const row_shape_t* shape, int64_t vectors,
                              bool even) {
  int32_t only = only_stage(k);
  bool product = only >= 0 && pestle_sketch_is_product(
                                  pestle_sketch_stage(k, (uint32_t)only));
  int64_t most =
      product ? 8 : pestle_sketch_min(ROW_SUBGROUP, LANE_ROW / shape->vector);
  return k->caps->subgroup == ROW_SUBGROUP && vectors > ROW_SUBGROUP / 2 &&
         vectors <= most * ROW_SUBGROUP &&
         count_results(k, row) >= k->cores * UNIT_ROWS && (product || even);
}

// Whether rows of |vectors| that a subgroup has each are better half of one's: they leave
// fewer lanes idle at their end, or are one turn. On an H200 log-softmax of f32 [36576, 184]
// takes 15.4 us so, else 17.0, of [24384, 46] 4.6 and 6.2, of bf16 [27736, 198] 10.2 and 11.8;
// of f16 [2632, 280], by vectors of 8, 3.3 and 3.1.
static bool pays_half(const row_shape_t* shape, int64_t vectors) {
  int64_t half = ROW_SUBGROUP / 2;
  int64_t turns = pestle_ceil_div(vectors, ROW_SUBGROUP);
  int64_t twice = pestle_ceil_div(vectors, half);
  return shape->lanes == ROW_SUBGROUP && twice * shape->vector <= half &&
         (turns == 1 || 20 * turns >= 11 * twice);
}

// Bytes that a row keeps for those that read it, at most: all of its axes count.
static int64_t kept_of_row(const pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t each = PESTLE_SKETCH_ELEMENT, bytes = 0;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!row[i]) each *= pestle_sketch_extent(k, y->roots[i]);
  }
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    bool kept = !is_placed(k, s) && !pestle_sketch_stage(k, s)->is_reduction;
    bytes += kept ? each : 0;
  }
  return bytes;
}

static row_shape_t shape_rows(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  row_shape_t shape = {.vector = vector_of(k, y), .rows = 1};
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    int64_t v = vector_of(k, pestle_sketch_stage(k, s));
    if (!is_placed(k, s) && v < shape.vector) shape.vector = v;
  }
  int64_t length = longest_row(k, row), whole = shape.vector;
  bool many = count_results(k, row) >= k->cores * UNIT_ROWS;
  bool is_short = length <= (many ? MANY_SHORT_ROW : SHORT_ROW);
  while (length % shape.vector)
    shape.vector /= 2;
  int64_t vectors = (length + shape.vector - 1) / shape.vector;
  int64_t most = k->caps->max_group_lanes;
  shape.lanes = (int64_t)pestle_next_pow2((uint64_t)vectors);
  int64_t beside = rows_beside(k, row);
  bool apart = are_subgroups(k, row);
  bool even = apart || beside % (GROUP_LANES / ROW_SUBGROUP) == 0;
  int64_t want = vectors * shape.vector > ROW_LANES * LONG_ROW_VECTORS * whole
                     ? LONG_ROW_LANES
                     : ROW_LANES;
  if (has_row_subgroups(k, row, &shape, vectors, even)) want = ROW_SUBGROUP;
  if (is_short && shape.vector < whole && k->caps->subgroup == ROW_SUBGROUP) {
    want = ROW_SUBGROUP;
  }
  if (shape.lanes > want) shape.lanes = want;
  while (shape.lanes > most)
    shape.lanes /= 2;
  // Short rows share a group, where they fill it evenly, or are a subgroup's each.
  if (apart && many && beside % (2 * GROUP_LANES / ROW_SUBGROUP) == 0 &&
      pays_half(&shape, vectors)) {
    shape.lanes /= 2;
  }
  if (apart && shape.lanes < ROW_SUBGROUP &&
      beside % (ROW_SUBGROUP / shape.lanes)) {
    shape.lanes = ROW_SUBGROUP;
    while (shape.vector > 1 && 2 * vectors <= ROW_SUBGROUP) {
      shape.vector /= 2;
      vectors *= 2;
    }
  }
  apart = apart && shape.lanes == ROW_SUBGROUP;
  int64_t kept = kept_of_row(k, row);
  while (shape.lanes * shape.rows * 2 <= GROUP_LANES &&
         kept * shape.rows * 2 * KEPT_GROUPS <=
             (int64_t)k->caps->scratch_bytes &&
         shape.lanes * shape.rows * 2 <= most && beside >= shape.rows * 2 &&
         (apart || beside % (shape.rows * 2) == 0)) {
    shape.rows *= 2;
  }
  return shape;
}

// Splits |axis| of |stage| into steps, lanes and vectors; the first two leaves
// come back.
static pestle_status_t split_row(pestle_sketch_t* k, uint32_t stage,
                                 uint32_t axis, const row_shape_t* shape,
                                 bool reduce) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  // Results of a reduction side by side: their loops stand around the reduction's, where
  // no vector can.
  bool around = s->is_reduction && !reduce;
  int64_t vector = moves_vectors(k, s, axis) && !around ? shape->vector : 1;
  uint32_t outer, inner, lane, v = 0;
  PESTLE_TRY(pestle_schedule_split(nest, stage, axis, shape->lanes * vector,
                                   &outer, &inner));
  if (vector > 1) {
    PESTLE_TRY(pestle_schedule_split(nest, stage, inner, vector, &lane, &v));
  } else {
    lane = inner;
  }
  if (reduce) {
    PESTLE_TRY(pestle_schedule_rfactor(nest, stage, lane, k->reassociate));
    if (vector > 1) {
      PESTLE_TRY(pestle_schedule_rfactor(nest, stage, v, k->reassociate));
    }
  }
  s = pestle_sketch_stage(k, stage);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    bool moved = s->order[i] == lane || (vector > 1 && s->order[i] == v);
    bool reductions = nest->axes.data[s->order[i]].reduce;
    if (!moved && !(around && reductions)) order[n++] = s->order[i];
  }
  order[n++] = lane;
  if (vector > 1) order[n++] = v;
  for (uint32_t i = 0; i < s->order_count && around; ++i) {
    if (nest->axes.data[s->order[i]].reduce) order[n++] = s->order[i];
  }
  PESTLE_TRY(pestle_schedule_reorder(nest, stage, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, lane, row_mark(shape)));
  if (vector == 1) return NULL;
  return pestle_schedule_mark(nest, stage, v, PESTLE_MARK_VECTOR);
}

static pestle_status_t split_row_stage(pestle_sketch_t* k, uint32_t id,
                                       const row_shape_t* shape) {
  PESTLE_TRY(store(k, id));
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  bool shared =
      k->nest->tensors.data[s->tensors[0]].scope == PESTLE_SCOPE_SHARED;
  if (shared) {  // several elements of a row: a lane has some of them
    uint32_t last = s->roots[s->map_count - 1];
    return split_row(k, id, last, shape, false);
  }
  if (!s->is_reduction) return NULL;
  int32_t axis = pestle_sketch_contiguous_reduce(k, s);
  if (axis < 0) {
    axis = (int32_t)s->roots[s->map_count];
    for (uint32_t i = s->map_count; i < s->root_count; ++i) {
      if (pestle_sketch_extent(k, s->roots[i]) >
          pestle_sketch_extent(k, (uint32_t)axis)) {
        axis = (int32_t)s->roots[i];
      }
    }
  }
  if (pestle_sketch_extent(k, (uint32_t)axis) < 2) return NULL;
  pestle_sketch_note(k,
                     "'%s' reduces %" PRId64 " elements in %" PRId64
                     " lanes that each take vectors of %" PRId64,
                     s->name, pestle_sketch_extent(k, (uint32_t)axis),
                     shape->lanes, shape->vector);
  return split_row(k, id, (uint32_t)axis, shape, true);
}

// The axis of |stage| that its lanes walk in steps: UINT32_MAX: none.
static uint32_t steps_of(const pestle_sketch_t* k, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  const pestle_nest_axis_t* axes = k->nest->axes.data;
  for (uint32_t i = 0; i < s->root_count; ++i) {
    const pestle_nest_axis_t* a = &axes[s->roots[i]];
    if (a->outer < 0) continue;
    const pestle_nest_axis_t* lane = &axes[a->inner];
    if (lane->outer >= 0) lane = &axes[lane->outer];
    if (lane->mark == PESTLE_MARK_LANE_X) return (uint32_t)a->outer;
  }
  return UINT32_MAX;
}

// Bytes of registers that the rows in shared memory would take of a lane.
static int64_t kept_bytes(const pestle_sketch_t* k, const row_shape_t* shape) {
  int64_t bytes = 0;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
    const pestle_nest_tensor_t* t = &k->nest->tensors.data[st->tensors[0]];
    if (st->inlined || t->scope != PESTLE_SCOPE_SHARED) continue;
    int64_t length = pestle_sketch_extent(k, st->roots[st->map_count - 1]);
    bytes += pestle_ceil_div(length, shape->lanes * shape->vector) *
             shape->vector * PESTLE_SKETCH_ELEMENT;
  }
  return bytes;
}

// Whether each lane reads the row of |stage| where it wrote it, if steps are
// unrolled.
static pestle_status_t is_own_row(const pestle_sketch_t* k, uint32_t stage,
                                  bool* out_own) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  uint8_t scope = k->nest->tensors.data[s->tensors[0]].scope;
  int64_t apart = 0;
  if (!s->inlined && scope == PESTLE_SCOPE_SHARED) {
    PESTLE_TRY(pestle_nest_owned(k->nest, stage, true, &apart));
  }
  *out_own = apart != 0;
  return NULL;
}

// Such rows stay in registers, if those are enough for steps to be unrolled.
static pestle_status_t keep_in_lanes(pestle_sketch_t* k,
                                     const row_shape_t* shape) {
  int64_t bytes = kept_bytes(k, shape);
  bool any = false, own;
  if (!bytes || bytes * LANE_SHARE > (int64_t)k->caps->register_bytes_lane) {
    return NULL;
  }
  for (uint32_t s = 0; s < k->nest->stages.size && !any; ++s) {
    PESTLE_TRY(is_own_row(k, s, &any));
  }
  for (uint32_t s = 0; s < k->nest->stages.size && any; ++s) {
    uint32_t steps = steps_of(k, s);
    if (pestle_sketch_stage(k, s)->inlined || steps == UINT32_MAX) continue;
    PESTLE_TRY(pestle_schedule_mark(k->nest, s, steps, PESTLE_MARK_UNROLL));
  }
  for (uint32_t s = 0; s < k->nest->stages.size && any; ++s) {
    PESTLE_TRY(is_own_row(k, s, &own));
    if (own) PESTLE_TRY(pestle_schedule_store(k->nest, s, PESTLE_SCOPE_LANES));
  }
  return NULL;
}

// The innermost axes that |id| reduces as one, until a group's lanes have enough of
// them. Measured on an H200: the gradient of a 5 x 5 convolution's weights over 64
// images of 28 x 28, 150 results by 16 lanes each, 181 us; by 1,024 lanes 24.
static pestle_status_t join_reduced(pestle_sketch_t* k, uint32_t id) {
  for (;;) {
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
    if (s->root_count < s->map_count + 2) return NULL;
    uint32_t last = s->root_count - 1;
    if (pestle_sketch_extent(k, s->roots[last]) >= LANES_SHARE) return NULL;
    bool done;
    PESTLE_TRY(pestle_schedule_fuse(k->nest, id, last - 1, &done));
    if (!done) {
      PESTLE_TRY(pestle_schedule_flatten(k->nest, id, last - 1, &done));
    }
    if (!done) return NULL;
  }
}

// Where groups are few, lanes share all that is reduced, not one axis of it.
static pestle_status_t share_reductions(pestle_sketch_t* k, const bool* row) {
  row_shape_t shape = shape_rows(k, row);
  if (count_results(k, row) * shape.lanes >=
      k->cores * PESTLE_GPU_THREADS_PER_UNIT) {
    return NULL;
  }
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    if (is_placed(k, s) || !f->is_reduction || f->combine) continue;
    PESTLE_TRY(join_reduced(k, s));
  }
  return NULL;
}

// Results of the one reduction that is all the kernel does, where what it reads lies
// side by side along them and not along what is reduced: the lanes of a subgroup have
// neighbours then, each a line's part, and the subgroups of a group share the sum.
static void turn_rows(pestle_sketch_t* k, const bool* row, row_shape_t* shape) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t id = only_stage(k);
  if (id < 0 || !y->root_count) return;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!row[i] && pestle_sketch_extent(k, y->roots[i]) > 1) return;
  }
  pestle_nest_stage_t* s = pestle_sketch_stage(k, (uint32_t)id);
  if (!s->is_reduction || s->combine || !s->map_count) return;
  int64_t beside = pestle_sketch_extent(k, y->roots[y->root_count - 1]), x = 1;
  pestle_stride_t along =
      pestle_sketch_strides(k, s, s->roots[s->map_count - 1]);
  if (!along.unit || along.strided || !pestle_sketch_aligned(k, (uint32_t)id)) {
    return;
  }
  while (x < MOST_TURNED && beside % (2 * x) == 0)
    x *= 2;
  if (x < PESTLE_GPU_LEAST_COLUMNS) return;
  int64_t groups = count_results(k, row) / x, most = k->caps->max_group_lanes;
  int64_t length = pestle_sketch_reduction_extent(k, s);
  int64_t want = groups < k->cores * FEW_GROUPS ? LONG_ROW_LANES : ROW_LANES;
  int64_t lanes = (int64_t)pestle_next_pow2((uint64_t)length) / 2;
  while (lanes > 1 && (lanes * x > want || lanes * x > most))
    lanes /= 2;
  if (lanes < 2) return;
  *shape =
      (row_shape_t){.lanes = lanes, .vector = 1, .rows = x, .turned = true};
}

// Axes of a row that lie behind each other are one, of all stages: lanes share them all.
static pestle_status_t join_axes(pestle_sketch_t* k, const bool* row) {
  uint32_t rows = 0;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  while (rows < y->root_count &&
         (row[rows] || pestle_sketch_extent(k, y->roots[rows]) == 1))
    ++rows;
  for (uint32_t i = rows; i < y->root_count; ++i) {
    if (row[i]) return NULL;
  }
  for (uint32_t s = 0; s <= k->anchor; ++s) {
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    uint32_t first = f->is_reduction ? f->map_count : rows;
    for (uint32_t i = f->root_count; !f->inlined && i-- > first + 1;) {
      bool done;
      PESTLE_TRY(pestle_schedule_fuse(k->nest, s, i - 1, &done));
    }
  }
  return NULL;
}

static pestle_status_t rows(pestle_sketch_t* k, const bool* row) {
  pestle_nest_t* nest = k->nest;
  PESTLE_TRY(join_axes(k, row));
  PESTLE_TRY(share_reductions(k, row));
  row_shape_t shape = shape_rows(k, row);
  turn_rows(k, row, &shape);
  uint32_t count;
  PESTLE_TRY(pestle_sketch_row_groups(k, row, &count));
  pestle_sketch_note(k,
                     "rows: a group of %" PRId64 " x %" PRId64
                     " lanes has %" PRId64 " rows",
                     shape.rows, shape.lanes, shape.rows);
  uint32_t leaf = UINT32_MAX, bound = count;
  if (shape.rows > 1) {
    uint32_t outer, inner;
    PESTLE_TRY(pestle_schedule_split(
        nest, k->anchor, pestle_sketch_stage(k, k->anchor)->order[count - 1],
        shape.rows, &outer, &inner));
    PESTLE_TRY(pestle_schedule_mark(
        nest, k->anchor, inner,
        shape.turned ? PESTLE_MARK_LANE_X : PESTLE_MARK_LANE_Y));
    leaf = inner;
  } else if (count) {
    leaf = pestle_sketch_stage(k, k->anchor)->order[count - 1];
  }
  PESTLE_TRY(pestle_sketch_bind_first(k, bound));
  uint32_t roots[PESTLE_NEST_MAX_AXES], n = 0;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = count + (shape.rows > 1); i < y->order_count; ++i) {
    roots[n++] = y->order[i];
  }
  if (n) {
    PESTLE_TRY(split_row(k, k->anchor, roots[n - 1], &shape, false));
  }
  PESTLE_TRY(place_all(k, leaf));
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    if (!is_placed(k, s)) PESTLE_TRY(split_row_stage(k, s, &shape));
  }
  return keep_in_lanes(k, &shape);
}

// --- The choice ---

static bool wants_rows(pestle_sketch_t* k, const bool* row) {
  int64_t longest = 1;
  bool contiguous = false;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (is_placed(k, s)) continue;
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    if (!f->is_reduction) continue;
    if (!reductions_together(k, f)) return false;
    int64_t n = pestle_sketch_reduction_extent(k, f);
    if (n > longest) longest = n;
    contiguous = contiguous || pestle_sketch_contiguous_reduce(k, f) >= 0;
  }
  if (longest < LEAST_REDUCE || k->caps->max_group_lanes < 2) return false;
  bool few = count_results(k, row) < k->cores * PESTLE_GPU_THREADS_PER_UNIT;
  // A product's operands are contiguous along one axis each: results side by
  // side read one of them together, and the other one once. A square's are the same.
  uint32_t reductions = 0;
  bool product = false;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (is_placed(k, s)) continue;
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    ++reductions;
    product = pestle_sketch_is_product(f) &&
              f->values[0]->args[0] != f->values[0]->args[1];
  }
  if (reductions == 1 && product)
    return few && longest >= PESTLE_GPU_LONG_REDUCE;
  return contiguous || few;
}

// Offers the templates of products what is one.
static pestle_status_t offer_product(pestle_sketch_t* k, bool* out_done) {
  int32_t only = only_stage(k);
  *out_done = false;
  if (only < 0 ||
      !pestle_sketch_is_product(pestle_sketch_stage(k, (uint32_t)only))) {
    return NULL;
  }
  PESTLE_TRY(pestle_sketch_unfuse_groups(k, (uint32_t)only));
  PESTLE_TRY(pestle_sketch_fuse_axes(k, 1));
  return pestle_sketch_offer(
      k,
      (pestle_offer_t){.kind = PESTLE_OFFER_LANES_PRODUCT,
                       .reduce = (uint32_t)only},
      out_done);
}

pestle_status_t pestle_sketch_with_lanes(pestle_sketch_t* k) {
  bool reductions = false;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    reductions = reductions || !is_placed(k, s);
  }
  if (!reductions) return map_lanes(k);
  bool done;
  PESTLE_TRY(offer_product(k, &done));
  if (done) return NULL;
  PESTLE_TRY(pestle_sketch_offer(
      k, (pestle_offer_t){.kind = PESTLE_OFFER_LANES_REDUCTIONS}, &done));
  if (done) return NULL;
  bool* row = pestle_arena_alloc_zero(k->nest->arena, PESTLE_NEST_MAX_AXES, 1);
  if (!row) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", k->nest->name);
  }
  PESTLE_TRY(pestle_sketch_row_axes(k, row));
  return wants_rows(k, row) ? rows(k, row) : points(k, row);
}
