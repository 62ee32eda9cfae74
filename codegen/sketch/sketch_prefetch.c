// SPDX-License-Identifier: Apache-2.0
// Which memory is asked for ahead of its use (the primitive prefetch).
//
// In the form rows a kernel walks a row several times: the first walk waits for memory,
// the others compute. So the last walk asks for the next row, and the last one before the
// results are written for the lines that these go to, which else come only when they are
// written. Measured on Sapphire Rapids, 1 thread, 4096 rows of 1024 f32 by hand: a softmax
// 4.3 ms without, 3.6 with the next row, 2.8 with both; a layer norm 3.6, 3.1.
//
// In the form tile the results are asked for as well, where caches do not hold them. A
// core's stores become visible in order, so that one whose line comes from afar holds up
// those behind it, and loads of what these wrote. Measured on Sapphire Rapids, 1 thread,
// depthwise 3x3 of 144 planes of 56 x 56 (a plain copy of as many bytes takes 165 us): 210
// -> 170, of which the boxes that tiles copy, asked for one ahead, are 5.
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // A shorter row is there before it is missed, and so is what an L2 holds.
  LEAST_ROW_BYTES = 1024,
  // A row, the next one and its results are a part of the L2 only.
  ROWS_OF_L2 = 8,
  // Results are so large a part of what moves, where they are asked for.
  RESULTS_SHARE = 8,
};

typedef struct row_t {
  pestle_sketch_t* k;
  uint32_t inside;  // axes that a row has, the last ones
} row_t;

// Whether |flat| moves along the roots of |s| as along a tensor's own dims, one
// element at a time; |*out_length| is the elements of a row.
static bool is_plain(const row_t* r, const pestle_nest_stage_t* s,
                     const pestle_affine_t* flat, int64_t* out_length) {
  int64_t step = 1;
  if (s->root_count <= r->inside || flat->constant) return false;
  for (uint32_t i = s->root_count; i-- > 0;) {
    int64_t extent = pestle_sketch_extent(r->k, s->roots[i]);
    bool nested;
    int64_t coef = pestle_affine_coef(flat, s->roots[i], &nested);
    if (nested || (extent > 1 && coef != step)) return false;
    step *= extent;
    if (i + r->inside == s->root_count) *out_length = step;
  }
  return true;
}

// Of |tensor|, where stage |id|, which has loops, reads it.
static pestle_prefetch_t at_read(const pestle_sketch_t* k, uint32_t id,
                                 uint32_t tensor) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  return (pestle_prefetch_t){
      .loop = s->order_count ? s->order[s->order_count - 1] : UINT32_MAX,
      .tensor = tensor,
      .like = tensor};
}

// Whether stage |id| walks rows of |tensor| in order.
static bool walks(const row_t* r, uint32_t id, uint32_t tensor,
                  int64_t* out_length) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(r->k, id);
  pestle_prefetch_t f = at_read(r->k, id, tensor);
  return !s->inlined && s->order_count &&
         pestle_nest_may_prefetch(r->k->nest, &f) &&
         is_plain(r, s,
                  pestle_schedule_find_read(r->k->nest, id, tensor)->index[0],
                  out_length);
}

// The results that lie as the rows do.
static pestle_status_t fetch_results(const row_t* r, uint32_t id,
                                     uint32_t tensor, int64_t length) {
  pestle_nest_t* nest = r->k->nest;
  const pestle_nest_stage_t* y = pestle_sketch_stage(r->k, r->k->anchor);
  const pestle_nest_tensor_t* t = &nest->tensors.data[y->tensors[0]];
  int64_t own;
  if (y->value_count != 1 || t->kind != PESTLE_TENSOR_OUTPUT || t->alias >= 0 ||
      t->streamed || !y->write_index[0] ||
      !is_plain(r, y, y->write_index[0][0], &own) || own != length) {
    return NULL;
  }
  pestle_prefetch_t f = at_read(r->k, id, tensor);
  f.tensor = y->tensors[0];
  return pestle_schedule_prefetch(nest, &f);
}

// |*out_found|: |tensor| is one whose rows could be asked for.
static pestle_status_t fetch_rows(const row_t* r, uint32_t tensor,
                                  bool* out_found) {
  static const pestle_question_t q = {
      "prefetch", "how much of a wait prefetchers leave is measured alone"};
  static const double unknown[2] = {PESTLE_NOT_ESTIMATED, PESTLE_NOT_ESTIMATED};
  pestle_sketch_t* k = r->k;
  const pestle_nest_tensor_t* t = &k->nest->tensors.data[tensor];
  int64_t length = 0, size = (int64_t)pestle_dtype_size(t->type.dtype);
  int32_t first = -1, before = -1, last = -1;
  if (t->kind != PESTLE_TENSOR_INPUT || t->constant ||
      pestle_type_count(&t->type) * size <= k->l2) {
    return NULL;
  }
  for (uint32_t s = 0; s <= k->anchor; ++s) {
    if (!walks(r, s, tensor, &length)) continue;
    if (first < 0) first = (int32_t)s;
    if (s < k->anchor) before = (int32_t)s;
    last = (int32_t)s;
  }
  if (last == first || before < 0 || length * size < LEAST_ROW_BYTES ||
      length * size > k->l2 / ROWS_OF_L2) {
    return NULL;
  }
  *out_found = true;
  if (!pestle_choose_flag(k->nest, q, unknown, true)) return NULL;
  pestle_sketch_note(k,
                     "'%s' is walked several times: the next row is asked for "
                     "while this one is computed",
                     t->name);
  pestle_prefetch_t f = at_read(k, (uint32_t)last, tensor);
  f.by = length;
  PESTLE_TRY(pestle_schedule_prefetch(k->nest, &f));
  return fetch_results(r, (uint32_t)before, tensor, length);
}

pestle_status_t pestle_sketch_prefetch(pestle_sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  row_t r = {.k = k};
  uint32_t rows = 0;
  while (rows < y->root_count && row[rows])
    ++rows;
  r.inside = y->root_count - rows;
  for (uint32_t i = rows; i < y->root_count; ++i) {
    if (row[i]) return NULL;
  }
  if (!rows || !r.inside) return NULL;
  // Of one argument: prefetchers follow the others.
  for (uint32_t t = 0; t < k->nest->tensors.size; ++t) {
    bool found = false;
    PESTLE_TRY(fetch_rows(&r, t, &found));
    if (found) return NULL;
  }
  return NULL;
}

// --- Tiles ---

// How far a step of loop |leaf| of the anchor moves |flat|, whose axes are those of
// |stage|, one for one with the anchor's.
static int64_t step_of(const pestle_sketch_t* k, uint32_t leaf, uint32_t stage,
                       const pestle_affine_t* flat) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  uint32_t root = pestle_nest_leaf_root(k->nest, leaf);
  for (uint32_t i = 0; i < y->map_count; ++i) {
    bool nested;
    if (y->roots[i] != root) continue;
    return pestle_affine_coef(flat, s->roots[i], &nested) *
           pestle_nest_leaf_step(k->nest, leaf);
  }
  return 0;
}

// The reduction that makes tiles in registers under a loop of the anchor; -1: none.
static int32_t find_tile(const pestle_sketch_t* k) {
  for (uint32_t s = 0; s < k->anchor; ++s) {
    const pestle_nest_stage_t* f = pestle_sketch_stage(k, s);
    if (!f->inlined && f->is_reduction && f->at_axis >= 0 &&
        f->at_stage == (int32_t)k->anchor && f->map_count &&
        k->nest->tensors.data[f->tensors[0]].scope == PESTLE_SCOPE_PRIVATE) {
      return (int32_t)s;
    }
  }
  return -1;
}

// The padded copy that the tiles of one loop share, of a part of a plane: its boxes
// lie behind each other in its argument, and so do the results. -1: none.
static int32_t find_box(const pestle_sketch_t* k,
                        const pestle_nest_stage_t* f) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int32_t before = pestle_sketch_around(y, f->at_axis);
  for (uint32_t s = 0; s < k->anchor; ++s) {
    const pestle_nest_stage_t* b = pestle_sketch_stage(k, s);
    if (b->keep && !b->inlined && b->at_stage == (int32_t)k->anchor &&
        b->at_axis >= 0 && b->at_axis == before) {
      return (int32_t)s;
    }
  }
  return -1;
}

// What the next box copies is asked for while this one is copied.
static pestle_status_t fetch_box(pestle_sketch_t* k, uint32_t reduce,
                                 uint32_t box) {
  const pestle_nest_stage_t* b = pestle_sketch_stage(k, box);
  const pestle_expr_t* window =
      pestle_schedule_find_read(k->nest, reduce, b->tensors[0]);
  for (uint32_t t = 0; window && t < k->nest->tensors.size; ++t) {
    const pestle_expr_t* read = pestle_schedule_find_read(k->nest, box, t);
    pestle_prefetch_t f = at_read(k, box, t);
    if (!read || !pestle_nest_may_prefetch(k->nest, &f)) continue;
    for (uint32_t d = 0; d < b->map_count; ++d) {
      bool nested;
      f.by += pestle_affine_coef(read->index[0], b->roots[d], &nested) *
              step_of(k, (uint32_t)b->at_axis, reduce, window->index[d]);
    }
    return f.by ? pestle_schedule_prefetch(k->nest, &f) : NULL;
  }
  return NULL;
}

// Whether the kernel moves more than the L2 holds, beside constants, of which
// results, that go through the caches, are a fair part.
static bool is_far(const pestle_sketch_t* k) {
  int64_t bytes = 0, results = 0;
  for (uint32_t t = 0; t < k->nest->tensors.size; ++t) {
    const pestle_nest_tensor_t* u = &k->nest->tensors.data[t];
    if (u->streamed) return false;
    if (u->kind == PESTLE_TENSOR_STAGE || u->constant) continue;
    int64_t size = (int64_t)pestle_type_bytes(&u->type);
    bytes += size;
    if (u->kind == PESTLE_TENSOR_OUTPUT) results += size;
  }
  return bytes > k->l2 && results * RESULTS_SHARE >= bytes;
}

// Of result |v| of the anchor, for all that is within its loop |loop|.
static pestle_prefetch_t of_result(const pestle_sketch_t* k, uint32_t loop,
                                   uint32_t v) {
  uint32_t tensor = pestle_sketch_stage(k, k->anchor)->tensors[v];
  return (pestle_prefetch_t){.loop = loop, .tensor = tensor, .like = tensor};
}

static bool may_fetch_results(const pestle_sketch_t* k, uint32_t loop) {
  uint32_t count = pestle_sketch_stage(k, k->anchor)->value_count;
  for (uint32_t v = 0; v < count; ++v) {
    pestle_prefetch_t f = of_result(k, loop, v);
    if (!pestle_nest_may_prefetch(k->nest, &f)) return false;
  }
  return true;
}

static pestle_status_t fetch_all_results(pestle_sketch_t* k, uint32_t loop,
                                         int64_t by) {
  uint32_t count = pestle_sketch_stage(k, k->anchor)->value_count;
  for (uint32_t v = 0; v < count; ++v) {
    pestle_prefetch_t f = of_result(k, loop, v);
    f.by = by;
    PESTLE_TRY(pestle_schedule_prefetch(k->nest, &f));
  }
  return NULL;
}

// The lines that the results of the next of the tiles that are transposed go to.
static pestle_status_t fetch_transposed(pestle_sketch_t* k) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  const pestle_nest_stage_t* c =
      pestle_sketch_stage(k, (uint32_t)k->transposed_copy);
  uint32_t loop = (uint32_t)c->at_axis, next = loop;
  int32_t around = pestle_sketch_around(y, c->at_axis);
  if (!is_far(k) || !may_fetch_results(k, loop)) {
    return NULL;
  }
  // Those side by side are few where stores are scattered; the next lie below them.
  bool beside =
      pestle_nest_leaf_root(k->nest, loop) == y->roots[y->map_count - 1];
  if (k->scattered_stores && beside && around >= 0) next = (uint32_t)around;
  pestle_sketch_note(
      k,
      "more than the L2 holds goes through the kernel: the lines "
      "of the next tile's results are asked for");
  int64_t by = step_of(k, next, k->anchor, y->write_index[0][0]);
  return fetch_all_results(k, loop, by);
}

// The plane that windows of |reduce| read where it lies. Measured with the results on
// Sapphire Rapids, 1 thread, 3x3 of 32 planes of 112 x 112: 141 -> 119 us.
static pestle_status_t fetch_plane(pestle_sketch_t* k, uint32_t reduce,
                                   uint32_t loop, int64_t by) {
  for (uint32_t t = 0; t < k->nest->tensors.size; ++t) {
    pestle_prefetch_t f = of_result(k, loop, 0);
    f.tensor = t;
    f.by = by;
    if (t == f.like || !pestle_schedule_find_read(k->nest, reduce, t) ||
        !pestle_nest_may_prefetch(k->nest, &f)) {
      continue;
    }
    pestle_sketch_note(
        k, "the lines of '%s' that the tile below reads are asked for",
        k->nest->tensors.data[t].name);
    return pestle_schedule_prefetch(k->nest, &f);
  }
  return NULL;
}

pestle_status_t pestle_sketch_prefetch_results(pestle_sketch_t* k) {
  if (k->transposed_copy >= 0) return fetch_transposed(k);
  int32_t reduce = find_tile(k);
  if (reduce < 0 || !is_far(k)) return NULL;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, (uint32_t)reduce);
  uint32_t loop = (uint32_t)f->at_axis;
  if (!may_fetch_results(k, loop)) return NULL;
  int64_t lines = y->value_count;
  for (uint32_t i = y->order_count; i-- > 0 && y->order[i] != loop;) {
    const pestle_nest_axis_t* a = &k->nest->axes.data[y->order[i]];
    lines *= a->mark == PESTLE_MARK_VECTOR ? 1 : a->extent;
  }
  if (lines > PESTLE_CPU_LINES_ASKED) return NULL;
  int32_t box = find_box(k, f);
  int64_t by = 0;
  if (box >= 0) {
    uint32_t group = (uint32_t)pestle_sketch_stage(k, (uint32_t)box)->at_axis;
    by = step_of(k, group, k->anchor, y->write_index[0][0]);
    PESTLE_TRY(fetch_box(k, (uint32_t)reduce, (uint32_t)box));
  } else if (k->per_channel) {
    // The tile below this one.
    int32_t around = pestle_sketch_around(y, f->at_axis);
    uint32_t next = around < 0 ? loop : (uint32_t)around;
    by = step_of(k, next, k->anchor, y->write_index[0][0]);
  }
  pestle_sketch_note(
      k,
      "more than the L2 holds goes through the kernel: the lines "
      "of a tile's results are asked for before it is computed");
  PESTLE_TRY(fetch_all_results(k, loop, by));
  return box < 0 && k->per_channel ? fetch_plane(k, (uint32_t)reduce, loop, by)
                                   : NULL;
}
