// SPDX-License-Identifier: Apache-2.0
// Reductions along contiguous rows, one or several, without a tile of accumulators:
// partial results in lanes.
#include <inttypes.h>

#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // Partial results of a reduction side by side: an add takes 4 cycles before the
  // next one of the same chain can start. Measured: 2 costs a layer norm of 768
  // 9 % and a softmax of 1024 5 %, 8 gains nothing.
  REDUCE_PARTS = 4,
  // Taps of a sum in 4 vectors of 16 before a partial sum is put aside: the error of
  // [1 x 10M] of 0.1 was 1.5e-3 when all 10M went into 64 accumulators. Blocks this
  // long cost nothing that was measured.
  ROW_CHAIN = 4096,
  // Partial sums that are added in a row.
  LEVEL_LENGTH = 64,
  // Rows that are reduced side by side where they come from memory: a stream of
  // their own each, which prefetchers follow all at once, and so more lines under
  // way. Measured, sums of 64 MiB by rows of 16 KiB: 1 row 6.0 ms, 2 5.2, 4 4.1,
  // 8 4.0; 16 MiB 3 % less; of 4 MiB, which L3 has, 8 % more. Rows are pages at
  // least, and there are groups enough for all cores.
  SIDE_ROWS = 4,
  MOST_SIDE_ROWS = 8,  // that --tune measures
  SIDE_PARTS = 2,
  LEAST_SIDE_LENGTH = 1024,
  LEAST_SIDE_GROUPS = 16,
  LEAST_SIDE_L2S = 4,
  // Of the anchor's own pass over its row, which loads and stores bound, not
  // latency. Measured: 1 is the same, 4 costs a layer norm of 768 2 %.
  ROW_UNROLL = 2,
};

// --- What reads say about axes ---

static void stride_visit(void* user, const pestle_expr_t* e) {
  pestle_stride_t* s = user;
  const pestle_nest_tensor_t* t = &s->k->nest->tensors.data[e->i];
  bool nested = false;
  int64_t coef = 0;
  if (t->kind == PESTLE_TENSOR_INPUT) {
    coef = pestle_affine_coef(e->index[0], s->axis, &nested);
  } else if (e->index_count) {
    coef = pestle_affine_coef(e->index[e->index_count - 1], s->axis, &nested);
    for (uint32_t i = 0; i + 1 < e->index_count && !coef; ++i) {
      if (pestle_affine_coef(e->index[i], s->axis, &nested)) coef = 2;
    }
  }
  if (coef == 1) s->unit = true;
  if (coef > 1 || coef < 0 || nested) s->strided = true;
  if (coef > 2 || coef < -2 || nested) s->far = true;
}

pestle_stride_t pestle_sketch_strides(pestle_sketch_t* k,
                                      const pestle_nest_stage_t* st,
                                      uint32_t axis) {
  pestle_stride_t s = {.k = k, .axis = axis};
  pestle_nest_visit_values(k->nest, st, stride_visit, &s);
  return s;
}

static void pace_visit(void* user, const pestle_expr_t* e) {
  pestle_pace_t* p = user;
  if (p->k->nest->tensors.data[e->i].kind != PESTLE_TENSOR_INPUT) return;
  bool nested;
  int64_t step = pestle_affine_coef(e->index[0], p->axis, &nested);
  p->moves |= step != 0;
  p->walks |= !nested && step > 0 && step <= p->most;
  p->jumps |= nested || step < 0 || step > p->most;
}

pestle_pace_t pestle_sketch_pace(pestle_sketch_t* k,
                                 const pestle_nest_stage_t* s, uint32_t axis,
                                 int64_t most) {
  pestle_pace_t p = {.k = k, .axis = axis, .most = most};
  pestle_nest_visit_values(k->nest, s, pace_visit, &p);
  return p;
}

int32_t pestle_sketch_contiguous_reduce(pestle_sketch_t* k,
                                        const pestle_nest_stage_t* s) {
  for (uint32_t i = s->root_count; i-- > s->map_count;) {
    if (pestle_sketch_extent(k, s->roots[i]) > 1 &&
        pestle_sketch_strides(k, s, s->roots[i]).unit) {
      return (int32_t)s->roots[i];
    }
  }
  return -1;
}

// --- Row reductions ---

typedef struct rows_t {
  pestle_sketch_t* k;
  uint32_t id;  // the reduction
  bool* row;    // by position among the anchor's roots
} rows_t;

static void rows_visit(void* user, const pestle_expr_t* e) {
  rows_t* r = user;
  const pestle_nest_stage_t* y = pestle_sketch_stage(r->k, r->k->anchor);
  const pestle_nest_tensor_t* t = &r->k->nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_STAGE || t->stage != (int32_t)r->id) return;
  for (uint32_t i = 0; i < e->index_count; ++i) {
    for (uint32_t a = 0; a < y->root_count; ++a) {
      bool nested;
      if (pestle_affine_coef(e->index[i], y->roots[a], &nested) || nested) {
        r->row[a] = true;
      }
    }
  }
}

// Axes of the anchor on which reductions depend come first.
pestle_status_t pestle_sketch_row_axes(pestle_sketch_t* k, bool* row) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (!pestle_sketch_stage(k, s)->is_reduction) continue;
    rows_t r = {k, s, row};
    pestle_nest_visit_values(k->nest, pestle_sketch_stage(k, k->anchor),
                             rows_visit, &r);
  }
  return pestle_nest_status(k->nest);
}

bool pestle_sketch_reorders(const pestle_sketch_t* k,
                            const pestle_nest_stage_t* s) {
  bool exact = s->reduce != PESTLE_OP_ADD && s->reduce != PESTLE_OP_MULTIPLY;
  return s->reduce != PESTLE_OP_COUNT &&
         (exact || k->reassociate ||
          !pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT));
}

// |most|: partial results side by side.
static pestle_status_t reduce_lanes(pestle_sketch_t* k, uint32_t id,
                                    uint32_t axis, int64_t most) {
  pestle_nest_t* nest = k->nest;
  int64_t extent = pestle_nest_axis_span(&nest->axes.data[axis]);
  pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  bool reorders = pestle_sketch_reorders(k, s);
  if (!reorders && s->reduce != PESTLE_OP_COUNT) {
    pestle_sketch_note(k,
                       "'%s' adds one element after the other: strict numerics "
                       "keep the order",
                       s->name);
  }
  if (!reorders || extent < 2) return NULL;
  int64_t lanes = pestle_sketch_lanes(k, extent);
  int64_t parts = pestle_sketch_min(most, extent / lanes);
  if (parts < 1) parts = 1;
  pestle_sketch_note(k,
                     "'%s' reduces %" PRId64 " elements in %" PRId64
                     " vectors of %" PRId64 " lanes at once",
                     s->name, extent, parts, lanes);
  uint32_t outer, inner, u, v;
  PESTLE_TRY(
      pestle_schedule_split(nest, id, axis, lanes * parts, &outer, &inner));
  PESTLE_TRY(pestle_schedule_split(nest, id, inner, lanes, &u, &v));
  PESTLE_TRY(pestle_schedule_rfactor(nest, id, u, k->reassociate));
  PESTLE_TRY(pestle_schedule_rfactor(nest, id, v, k->reassociate));
  PESTLE_TRY(pestle_schedule_mark(nest, id, u, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, id, v, PESTLE_MARK_VECTOR));
  // The lanes stand innermost.
  s = pestle_sketch_stage(k, id);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (s->order[i] != u && s->order[i] != v) order[n++] = s->order[i];
  }
  order[n++] = u;
  order[n++] = v;
  return pestle_schedule_reorder(nest, id, order, n);
}

pestle_status_t pestle_sketch_reduce_lanes(pestle_sketch_t* k, uint32_t id,
                                           uint32_t axis) {
  return reduce_lanes(k, id, axis, REDUCE_PARTS);
}

pestle_status_t pestle_sketch_multi_accumulator(pestle_sketch_t* k, uint32_t id,
                                                int64_t parts) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  if (parts < 2 || s->root_count == s->map_count ||
      !pestle_sketch_reorders(k, s)) {
    return NULL;  // windows of one element reduce along nothing
  }
  uint32_t axis = s->roots[s->root_count - 1], steps, part;
  if (pestle_sketch_extent(k, axis) < parts) return NULL;
  PESTLE_TRY(pestle_schedule_split(k->nest, id, axis, parts, &steps, &part));
  PESTLE_TRY(pestle_schedule_rfactor(k->nest, id, part, k->reassociate));
  return pestle_schedule_mark(k->nest, id, part, PESTLE_MARK_UNROLL);
}

// --- Long sums ---

// The reduction axis that is cut into blocks of |most| elements at most: the outermost
// one, where what is inside of it is no more than that, so that a block lies in
// one run; else the longest. Measured: a sum over [4096, 4096], cut along its
// rows, read memory at 24 GB/s, by runs of 1 KiB.
static uint32_t cut_axis(const pestle_sketch_t* k, const pestle_nest_stage_t* s,
                         int64_t most) {
  uint32_t longest = s->roots[s->map_count], outermost = longest;
  int64_t inside = pestle_sketch_reduction_extent(k, s);
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, s->roots[i]);
    if (extent > pestle_sketch_extent(k, longest)) longest = s->roots[i];
    if (pestle_sketch_extent(k, outermost) == 1) outermost = s->roots[i];
  }
  inside /= pestle_sketch_extent(k, outermost);
  return inside <= most ? outermost : longest;
}

pestle_status_t pestle_sketch_cascade(pestle_sketch_t* k, uint32_t stage,
                                      int64_t chain, uint32_t* out_levels) {
  *out_levels = 0;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  bool sum = s->is_reduction &&
             (s->reduce == PESTLE_OP_ADD || s->reduce == PESTLE_OP_MULTIPLY);
  if (!sum || !k->reassociate || k->nest->no_scratch ||
      s->map_count == PESTLE_MAX_RANK ||
      !pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT) ||
      pestle_sketch_reduction_extent(k, s) <= 2 * chain) {
    return NULL;
  }
  for (int64_t most = chain;; most = LEVEL_LENGTH) {
    s = pestle_sketch_stage(k, stage + *out_levels);
    uint32_t cut = cut_axis(k, s, most);
    int64_t extent = pestle_sketch_extent(k, cut);
    int64_t others = pestle_sketch_reduction_extent(k, s) / extent;
    int64_t block = others < most ? most / others : 1;
    if (extent * others <= 2 * most || block >= extent) return NULL;
    uint32_t partial;
    PESTLE_TRY(pestle_schedule_partial(k->nest, stage + *out_levels, cut, block,
                                       true, &partial));
    pestle_sketch_note(k,
                       "partial sums of %" PRId64
                       " elements are put aside, so that the error does not "
                       "grow with the length",
                       block * others);
    ++*out_levels;
    ++k->anchor;
  }
}

pestle_status_t pestle_sketch_place_levels(pestle_sketch_t* k, uint32_t stage,
                                           uint32_t levels) {
  for (uint32_t i = levels; i-- > 0;) {
    uint32_t under = stage + i + 1;
    const pestle_nest_stage_t* s = pestle_sketch_stage(k, under);
    PESTLE_TRY(
        pestle_schedule_at(k->nest, stage + i, under, s->roots[s->map_count]));
    uint32_t tensor = pestle_sketch_stage(k, stage + i)->tensors[0];
    if (k->nest->tensors.data[tensor].scope != PESTLE_SCOPE_NONE) continue;
    PESTLE_TRY(pestle_schedule_store(k->nest, stage + i, PESTLE_SCOPE_PRIVATE));
  }
  return NULL;
}

// --- Rows side by side ---

int32_t pestle_sketch_only_stage(const pestle_sketch_t* k, uint32_t count) {
  int32_t found = -1;
  for (uint32_t s = 0; s < count; ++s) {
    if (s == k->anchor || pestle_sketch_stage(k, s)->inlined) continue;
    if (found >= 0) return -1;
    found = (int32_t)s;
  }
  return found;
}

// Rows side by side, and partial results of each.
typedef struct side_t {
  int64_t rows, parts;
} side_t;

// The reduction of rows, each in order, that is all the kernel does; -1.
static int32_t find_lone_reduce(pestle_sketch_t* k, uint32_t rows) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t id = pestle_sketch_only_stage(k, k->anchor);
  if (!rows || y->order_count != rows || y->is_reduction || id < 0) return -1;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, (uint32_t)id);
  bool fits = s->is_reduction && pestle_sketch_contiguous_reduce(k, s) >= 0 &&
              !s->combine && s->map_count && pestle_sketch_reorders(k, s) &&
              pestle_sketch_aligned(k, (uint32_t)id);
  return fits ? id : -1;
}

// Whether rows of reduction |id| are long, and together more than some L2s hold.
static bool wants_side_rows(pestle_sketch_t* k, uint32_t id, int64_t count) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  int32_t axis = pestle_sketch_contiguous_reduce(k, s);
  int64_t groups = count / SIDE_ROWS;
  return groups >= LEAST_SIDE_GROUPS && groups >= 2 * k->cores &&
         !pestle_sketch_transcendental(k, s) &&
         pestle_sketch_extent(k, (uint32_t)axis) >= LEAST_SIDE_LENGTH &&
         count * pestle_sketch_reduction_extent(k, s) * PESTLE_SKETCH_ELEMENT >
             LEAST_SIDE_L2S * k->l2;
}

// A choice of rows; parts, which sums depend on, are the usual ones.
static side_t choose_side(pestle_sketch_t* k, uint32_t rows) {
  static const pestle_question_t q = {
      "side", "how many rows prefetchers follow at once is measured alone"};
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  side_t side = {.rows = 1, .parts = REDUCE_PARTS};
  int32_t id = find_lone_reduce(k, rows);
  if (id < 0) return side;
  int64_t last = pestle_sketch_extent(k, y->order[rows - 1]), count = 1;
  for (uint32_t i = 0; i < y->root_count; ++i)
    count *= pestle_sketch_extent(k, y->roots[i]);
  if (last >= SIDE_ROWS && wants_side_rows(k, (uint32_t)id, count)) {
    side = (side_t){SIDE_ROWS, SIDE_PARTS};
  }
  int64_t values[4];
  pestle_numbers_t n = {.values = values, .usual = side.rows};
  for (int64_t x = 1; x <= MOST_SIDE_ROWS && x <= last; x *= 2)
    values[n.count++] = x;
  if (n.count > 1) side.rows = pestle_choose_number(k->nest, q, &n);
  return side;
}

// The last of the |rows| row loops of the anchor in steps of some, under which
// the reductions of all of them are made.
static pestle_status_t split_rows(pestle_sketch_t* k, uint32_t rows,
                                  int64_t side) {
  uint32_t outer, inner;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  pestle_sketch_note(
      k, "%" PRId64 " rows at a time, so that more of memory is on its way",
      side);
  PESTLE_TRY(pestle_schedule_split(k->nest, k->anchor, y->order[rows - 1], side,
                                   &outer, &inner));
  return pestle_schedule_mark(k->nest, k->anchor, inner, PESTLE_MARK_UNROLL);
}

// In reduction |id| the last map axis, the rows, inside of the loops over what is reduced.
static pestle_status_t rows_inside(pestle_sketch_t* k, uint32_t id) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  uint32_t rows = s->roots[s->map_count - 1];
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    uint32_t leaf = s->order[i];
    const pestle_nest_axis_t* a = &k->nest->axes.data[leaf];
    if (leaf != rows && !a->rfactored) order[n++] = leaf;
  }
  order[n++] = rows;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (k->nest->axes.data[s->order[i]].rfactored) order[n++] = s->order[i];
  }
  PESTLE_TRY(pestle_schedule_reorder(k->nest, id, order, n));
  return pestle_schedule_mark(k->nest, id, rows, PESTLE_MARK_UNROLL);
}

// The levels of a row's sum: lanes in the first, which reads the elements.
static pestle_status_t place_row_levels(pestle_sketch_t* k, uint32_t id,
                                        uint32_t levels, uint32_t row_leaf,
                                        const side_t* side) {
  uint32_t sum = id + levels;
  PESTLE_TRY(pestle_schedule_at(k->nest, sum, k->anchor, row_leaf));
  pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  int32_t axis = pestle_sketch_contiguous_reduce(k, s);
  if (axis < 0) axis = (int32_t)s->roots[s->root_count - 1];
  PESTLE_TRY(reduce_lanes(k, id, (uint32_t)axis, side->parts));
  for (uint32_t i = id; side->rows > 1 && i <= sum; ++i) {
    PESTLE_TRY(rows_inside(k, i));
  }
  bool registers;
  PESTLE_TRY(pestle_nest_private_fits(k->nest, sum, &registers));
  PESTLE_TRY(pestle_schedule_store(
      k->nest, sum, registers ? PESTLE_SCOPE_PRIVATE : PESTLE_SCOPE_SHARED));
  return pestle_sketch_place_levels(k, id, levels);
}

typedef struct pass_t {
  pestle_sketch_t* k;
  uint32_t stage;
} pass_t;

static double pass_cycles(const void* user, int64_t vectors) {
  const pass_t* p = user;
  return pestle_sketch_map_cycles(p->k, p->stage, vectors);
}

// Map |stage| over a row, or the anchor, |usual| vectors side by side.
static pestle_status_t vectorise_pass(pestle_sketch_t* k, uint32_t stage,
                                      uint32_t axis, int64_t usual) {
  pass_t p = {.k = k, .stage = stage};
  pestle_vectors_t v = {
      .of = "cycles of a core: steps and loads of this pass, loops around them",
      .extent = pestle_sketch_extent(k, axis),
      .usual = usual,
      .cost = pass_cycles,
      .user = &p};
  if (!pestle_sketch_stage(k, stage)->is_reduction) {
    usual = pestle_sketch_vectors(k, &v);
  }
  uint32_t outer;
  return pestle_sketch_vectorise(k, stage, axis, usual, &outer);
}

static pestle_status_t place_row_stage(pestle_sketch_t* k, uint32_t id,
                                       uint32_t row_leaf) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  PESTLE_TRY(pestle_schedule_at(nest, id, k->anchor, row_leaf));
  if (s->is_reduction) {
    int32_t axis = pestle_sketch_contiguous_reduce(k, s);
    if (axis < 0 && s->root_count > s->map_count) {
      axis = (int32_t)s->roots[s->root_count - 1];
    }
    if (axis >= 0)
      PESTLE_TRY(pestle_sketch_reduce_lanes(k, id, (uint32_t)axis));
    bool registers;
    PESTLE_TRY(pestle_nest_private_fits(nest, id, &registers));
    return pestle_schedule_store(
        nest, id, registers ? PESTLE_SCOPE_PRIVATE : PESTLE_SCOPE_SHARED);
  }
  PESTLE_TRY(pestle_schedule_store(nest, id, PESTLE_SCOPE_SHARED));
  if (!s->map_count) return NULL;
  return vectorise_pass(k, id, s->roots[s->map_count - 1], 1);
}

pestle_status_t pestle_sketch_rows_first(pestle_sketch_t* k, const bool* row,
                                         uint32_t* out_rows) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i]) order[n++] = y->roots[i];
  }
  *out_rows = n;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!row[i]) order[n++] = y->roots[i];
  }
  return pestle_schedule_reorder(k->nest, k->anchor, order, n);
}

pestle_status_t pestle_sketch_row_groups(pestle_sketch_t* k, const bool* row,
                                         uint32_t* out_rows) {
  PESTLE_TRY(pestle_sketch_rows_first(k, row, out_rows));
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  if (*out_rows || !y->root_count) return NULL;
  uint32_t outer, inner, axis = y->order[0];
  *out_rows = 1;
  return pestle_schedule_split(k->nest, k->anchor, axis,
                               pestle_sketch_extent(k, axis), &outer, &inner);
}

// Orders the anchor's loops rows first, binds the rows, and puts every other
// stage under the innermost row loop. Without rows there is one group.
pestle_status_t pestle_sketch_rows(pestle_sketch_t* k, const bool* row) {
  pestle_nest_t* nest = k->nest;
  uint32_t rows;
  PESTLE_TRY(pestle_sketch_row_groups(k, row, &rows));
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  side_t side = choose_side(k, rows);
  bool apart = side.rows > 1 || side.parts != REDUCE_PARTS;
  if (side.rows > 1) PESTLE_TRY(split_rows(k, rows, side.rows));
  y = pestle_sketch_stage(k, k->anchor);
  uint32_t row_leaf = rows ? y->order[rows - 1] : UINT32_MAX;
  PESTLE_TRY(pestle_sketch_bind_first(k, rows));
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    uint32_t levels;
    if (s == k->anchor || nest->stages.data[s].inlined) continue;
    PESTLE_TRY(pestle_sketch_cascade(k, s, ROW_CHAIN, &levels));
    if (levels || apart) {
      PESTLE_TRY(place_row_levels(k, s, levels, row_leaf, &side));
      s += levels;
    } else {
      PESTLE_TRY(place_row_stage(k, s, row_leaf));
    }
  }
  y = pestle_sketch_stage(k, k->anchor);
  if (side.rows > 1 || y->order_count == rows) return NULL;
  return vectorise_pass(k, k->anchor, y->order[y->order_count - 1], ROW_UNROLL);
}
