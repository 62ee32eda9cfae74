// SPDX-License-Identifier: Apache-2.0
// Which schedule: by the shape of the nest and the target's description, never
// by the name of an op. A nest has one output stage, the anchor, and folds.
//
//   map           no fold                  fused axes, split, vectors along the
//                                          innermost
//   row fold      folds along a contiguous folds under the row loop, partial
//                 fold axis                results in lanes
//   tile          folds whose innermost    accumulators of rows x vectors in
//                 map axis is contiguous   registers: GEMM, convolution,
//                 pooling,
//                                          column sums
#include <string.h>

#include "codegen/kir_build.h"
#include "codegen/schedule.h"

enum {
  GROUP_ELEMENTS = 4096,    // of a map kernel's group iteration, about
  SCRATCH_ROW = 256 << 10,  // most bytes of a row that is kept in scratch
  PANEL_BYTES = 512 << 10,  // most bytes of a staged operand panel
  ALIASING_ELEMENTS = 512,  // f32 rows this far apart share their cache sets
};

typedef struct sketch_t {
  pestle_nest_t* nest;
  const pestle_target_caps_t* caps;
  bool reassociate;
  uint32_t anchor;
  int64_t lanes;  // of f32 in a native vector
  int64_t registers;
} sketch_t;

static pestle_nest_stage_t* stage_of(const sketch_t* k, uint32_t id) {
  return pestle_nest_stage(k->nest, id);
}
static int64_t extent_of(const sketch_t* k, uint32_t axis) {
  return k->nest->axes.data[axis].extent;
}
static int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t next_pow2(int64_t n) {
  int64_t p = 1;
  while (p < n)
    p *= 2;
  return p;
}

// --- Costs ---

typedef struct cost_t {
  uint8_t* seen;
  bool transcendental;
  uint32_t ops;
} cost_t;

static void cost_visit(cost_t* c, const pestle_expr_t* e) {
  if (c->seen[e->id]) return;
  c->seen[e->id] = 1;
  if (e->kind == PESTLE_EXPR_OP) {
    ++c->ops;
    if (pestle_op_info((pestle_op_t)e->op)->flags & PESTLE_OP_FLAG_TRANS) {
      c->transcendental = true;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) cost_visit(c, e->args[i]);
  }
}

static cost_t cost_of(sketch_t* k, const pestle_nest_stage_t* s) {
  cost_t c = {0};
  c.seen = pestle_arena_alloc_zero(k->nest->arena, k->nest->expr_count + 1, 1);
  if (!c.seen) {
    k->nest->failed = true;
    return c;
  }
  for (uint32_t v = 0; v < s->value_count; ++v)
    cost_visit(&c, s->values[v]);
  return c;
}

// --- Which maps to inline ---

typedef struct use_t {
  sketch_t* k;
  uint32_t* readers;  // by stage: how many stages read it
  bool* seen;         // by stage, of the current reader
} use_t;

static void use_visit(void* user, const pestle_expr_t* e) {
  use_t* u = user;
  int32_t producer = u->k->nest->tensors.data[e->i].stage;
  if (u->k->nest->tensors.data[e->i].kind != PESTLE_TENSOR_STAGE) return;
  if (producer < 0 || u->seen[producer]) return;
  u->seen[producer] = true;
  ++u->readers[producer];
}

static bool any_fold(const sketch_t* k) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (k->nest->stages.data[s].is_fold) return true;
  }
  return false;
}

static int64_t fold_extent(const sketch_t* k, const pestle_nest_stage_t* s) {
  int64_t n = 1;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    n *= extent_of(k, s->roots[i]);
  }
  return n;
}

static int64_t longest_fold(const sketch_t* k) {
  int64_t most = 0;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    int64_t n = fold_extent(k, &k->nest->stages.data[s]);
    if (n > most) most = n;
  }
  return most;
}

typedef struct flag_t {
  sketch_t* k;
  const bool* which;
  bool hit;
} flag_t;

static void flag_visit(void* user, const pestle_expr_t* e) {
  flag_t* f = user;
  const pestle_nest_tensor_t* t = &f->k->nest->tensors.data[e->i];
  if (t->kind == PESTLE_TENSOR_STAGE && t->stage >= 0 && f->which[t->stage]) {
    f->hit = true;
  }
}

static bool reads_stage(sketch_t* k, const pestle_nest_stage_t* s,
                        const bool* which) {
  flag_t f = {k, which, false};
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_status_t st =
        pestle_expr_visit_reads(k->nest, s->values[v], flag_visit, &f);
    if (st) {
      pestle_status_release(st);
      k->nest->failed = true;
    }
  }
  return f.hit;
}

// All map stages, except transcendental ones that several stages read beside a
// fold: these are kept, as the exponentials of a softmax are.
static pestle_status_t inline_maps(sketch_t* k) {
  pestle_nest_t* nest = k->nest;
  size_t n = nest->stages.size;
  use_t u = {.k = k};
  u.readers = pestle_arena_alloc_zero(nest->arena, n * sizeof(uint32_t), 4);
  u.seen = pestle_arena_alloc_zero(nest->arena, n, 1);
  bool* inlined = pestle_arena_alloc_zero(nest->arena, n, 1);
  bool* costly = pestle_arena_alloc_zero(nest->arena, n, 1);
  if (!u.readers || !u.seen || !inlined || !costly) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  }
  for (uint32_t s = 0; s < n; ++s) {
    memset(u.seen, 0, n);
    const pestle_nest_stage_t* st = &nest->stages.data[s];
    for (uint32_t v = 0; v < st->value_count; ++v) {
      PESTLE_TRY(pestle_expr_visit_reads(nest, st->values[v], use_visit, &u));
    }
  }
  bool keep =
      longest_fold(k) * 4 <= SCRATCH_ROW && any_fold(k) && !nest->frugal;
  for (uint32_t s = 0; s < n; ++s) {
    const pestle_nest_stage_t* st = &nest->stages.data[s];
    if (st->is_fold || s == k->anchor) continue;
    costly[s] = cost_of(k, st).transcendental || reads_stage(k, st, costly);
    inlined[s] =
        (!st->keep || nest->frugal) && !(keep && costly[s] && u.readers[s] > 1);
    if (!inlined[s]) costly[s] = false;
  }
  return pestle_schedule_inline(nest, inlined);
}

// --- Vector length ---

// Lanes for an axis of |extent|: native, or the power of two that holds it.
static int64_t lanes_for(const sketch_t* k, int64_t extent) {
  return min64(k->lanes, next_pow2(extent));
}

// --- Maps ---

static pestle_status_t fuse_axes(sketch_t* k, uint32_t stage) {
  for (uint32_t i = 0; i + 1 < stage_of(k, stage)->map_count;) {
    bool done = false;
    PESTLE_TRY(pestle_schedule_fuse(k->nest, stage, i, &done));
    if (!done) ++i;
  }
  return NULL;
}

// Marks leading loops as group loops while each iteration keeps enough to do;
// |first_inner| is the position that must stay inside.
static pestle_status_t bind_leading(sketch_t* k, uint32_t stage,
                                    uint32_t first_inner, int64_t least) {
  int64_t inner = 1;
  uint32_t count = first_inner;
  const pestle_nest_stage_t* s = stage_of(k, stage);
  for (uint32_t i = first_inner; i < s->order_count; ++i) {
    inner *= extent_of(k, s->order[i]);
  }
  while (count > 1 && inner < least) {
    inner *= extent_of(k, s->order[--count]);
  }
  for (uint32_t i = 0; i < count; ++i) {
    PESTLE_TRY(
        pestle_schedule_mark(k->nest, stage, s->order[i], PESTLE_MARK_GROUP));
  }
  return NULL;
}

static pestle_status_t vectorise_inner(sketch_t* k, uint32_t stage,
                                       uint32_t axis, int64_t unroll,
                                       uint32_t* out_outer) {
  pestle_nest_t* nest = k->nest;
  int64_t extent = extent_of(k, axis);
  int64_t lanes = lanes_for(k, extent);
  uint32_t outer = axis, inner = axis, v;
  int64_t block = lanes * min64(unroll, (extent + lanes - 1) / lanes);
  PESTLE_TRY(pestle_schedule_split(nest, stage, axis, block, &outer, &inner));
  uint32_t u;
  PESTLE_TRY(pestle_schedule_split(nest, stage, inner, lanes, &u, &v));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, u, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, v, PESTLE_MARK_VECTOR));
  *out_outer = outer;
  return NULL;
}

static pestle_status_t sketch_map(sketch_t* k) {
  pestle_nest_t* nest = k->nest;
  PESTLE_TRY(fuse_axes(k, k->anchor));
  pestle_nest_stage_t* s = stage_of(k, k->anchor);
  if (s->root_count == 0) return NULL;
  uint32_t last = s->roots[s->root_count - 1];
  bool heavy = cost_of(k, s).transcendental;
  int64_t extent = extent_of(k, last);
  uint32_t piece = last;
  uint32_t first_inner = s->root_count - 1;
  if (extent > GROUP_ELEMENTS) {
    uint32_t outer;
    PESTLE_TRY(pestle_schedule_split(nest, k->anchor, last, GROUP_ELEMENTS,
                                     &outer, &piece));
    ++first_inner;
  } else if (s->root_count == 1) {
    uint32_t outer;
    PESTLE_TRY(
        pestle_schedule_split(nest, k->anchor, last, extent, &outer, &piece));
    ++first_inner;
  }
  uint32_t outer;
  PESTLE_TRY(vectorise_inner(k, k->anchor, piece, heavy ? 1 : 4, &outer));
  return bind_leading(k, k->anchor, first_inner, GROUP_ELEMENTS / 2);
}

// --- Folds: what reads say about axes ---

typedef struct stride_t {
  const sketch_t* k;
  uint32_t axis;
  bool unit;     // some read moves by one element along the axis
  bool strided;  // some read moves otherwise
} stride_t;

static void stride_visit(void* user, const pestle_expr_t* e) {
  stride_t* s = user;
  const pestle_nest_tensor_t* t = &s->k->nest->tensors.data[e->i];
  bool nested = false;
  int64_t coef = 0;
  if (t->kind == PESTLE_TENSOR_INPUT) {
    coef = pestle_lin_coef(e->index[0], s->axis, &nested);
  } else if (e->index_count) {
    coef = pestle_lin_coef(e->index[e->index_count - 1], s->axis, &nested);
    for (uint32_t i = 0; i + 1 < e->index_count && !coef; ++i) {
      if (pestle_lin_coef(e->index[i], s->axis, &nested)) coef = 2;
    }
  }
  if (coef == 1) s->unit = true;
  if (coef > 1 || coef < 0 || nested) s->strided = true;
}

static stride_t strides_along(sketch_t* k, const pestle_nest_stage_t* st,
                              uint32_t axis) {
  stride_t s = {.k = k, .axis = axis};
  for (uint32_t v = 0; v < st->value_count; ++v) {
    pestle_status_t status =
        pestle_expr_visit_reads(k->nest, st->values[v], stride_visit, &s);
    if (status) {
      pestle_status_release(status);
      k->nest->failed = true;
    }
  }
  return s;
}

// The fold axis along which reads are contiguous, or -1.
static int32_t contiguous_fold_axis(sketch_t* k, const pestle_nest_stage_t* s) {
  for (uint32_t i = s->root_count; i-- > s->map_count;) {
    if (extent_of(k, s->roots[i]) > 1 &&
        strides_along(k, s, s->roots[i]).unit) {
      return (int32_t)s->roots[i];
    }
  }
  return -1;
}

static bool is_product(const pestle_nest_stage_t* s) {
  return s->is_fold && s->fold == PESTLE_OP_ADD && s->value_count == 1 &&
         s->values[0]->kind == PESTLE_EXPR_OP &&
         s->values[0]->op == PESTLE_OP_MULTIPLY;
}

// Whether stage |id| is read by the anchor at exactly the anchor's axes.
static bool aligned(sketch_t* k, uint32_t id) {
  const pestle_nest_stage_t* f = stage_of(k, id);
  const pestle_nest_stage_t* y = stage_of(k, k->anchor);
  if (f->map_count != y->map_count || f->value_count != 1) return false;
  const pestle_expr_t* read =
      pestle_schedule_find_read(k->nest, k->anchor, f->tensors[0]);
  if (!read || read->guard) return false;
  for (uint32_t i = 0; i < f->map_count; ++i) {
    if (extent_of(k, f->roots[i]) != extent_of(k, y->roots[i])) return false;
    if (extent_of(k, f->roots[i]) == 1) continue;
    bool nested;
    if (pestle_lin_coef(read->index[i], y->roots[i], &nested) != 1 || nested ||
        read->index[i]->count != 1) {
      return false;
    }
  }
  return true;
}

// --- Row folds ---

typedef struct rows_t {
  sketch_t* k;
  uint32_t id;  // the fold
  bool* row;    // by position among the anchor's roots
  bool ok;
} rows_t;

static void rows_visit(void* user, const pestle_expr_t* e) {
  rows_t* r = user;
  const pestle_nest_stage_t* y = stage_of(r->k, r->k->anchor);
  const pestle_nest_tensor_t* t = &r->k->nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_STAGE || t->stage != (int32_t)r->id) return;
  for (uint32_t i = 0; i < e->index_count; ++i) {
    for (uint32_t a = 0; a < y->root_count; ++a) {
      bool nested;
      if (pestle_lin_coef(e->index[i], y->roots[a], &nested) || nested) {
        r->row[a] = true;
      }
    }
  }
}

// Axes of the anchor on which folds depend come first.
static pestle_status_t row_axes(sketch_t* k, bool* row) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (!stage_of(k, s)->is_fold) continue;
    rows_t r = {k, s, row, true};
    const pestle_nest_stage_t* y = stage_of(k, k->anchor);
    for (uint32_t v = 0; v < y->value_count; ++v) {
      PESTLE_TRY(
          pestle_expr_visit_reads(k->nest, y->values[v], rows_visit, &r));
    }
  }
  return NULL;
}

// Lanes and unrolled partial results along |axis| of fold |id|.
static pestle_status_t fold_lanes(sketch_t* k, uint32_t id, uint32_t axis) {
  pestle_nest_t* nest = k->nest;
  int64_t extent = extent_of(k, axis);
  pestle_nest_stage_t* s = stage_of(k, id);
  bool exact = s->fold != PESTLE_OP_ADD && s->fold != PESTLE_OP_MULTIPLY;
  bool ok = s->fold != PESTLE_OP_COUNT && extent >= 2 &&
            (exact || k->reassociate ||
             !pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT));
  if (!ok) return NULL;
  int64_t lanes = lanes_for(k, extent);
  int64_t parts = min64(4, extent / lanes);
  if (parts < 1) parts = 1;
  uint32_t outer, inner, u, v;
  PESTLE_TRY(
      pestle_schedule_split(nest, id, axis, lanes * parts, &outer, &inner));
  PESTLE_TRY(pestle_schedule_split(nest, id, inner, lanes, &u, &v));
  PESTLE_TRY(pestle_schedule_rfactor(nest, id, u, k->reassociate));
  PESTLE_TRY(pestle_schedule_rfactor(nest, id, v, k->reassociate));
  PESTLE_TRY(pestle_schedule_mark(nest, id, u, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, id, v, PESTLE_MARK_VECTOR));
  // The lanes stand innermost.
  s = stage_of(k, id);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (s->order[i] != u && s->order[i] != v) order[n++] = s->order[i];
  }
  order[n++] = u;
  order[n++] = v;
  return pestle_schedule_reorder(nest, id, order, n);
}

static pestle_status_t place_row_stage(sketch_t* k, uint32_t id,
                                       uint32_t row_leaf) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* s = stage_of(k, id);
  PESTLE_TRY(pestle_schedule_at(nest, id, k->anchor, row_leaf));
  if (s->is_fold) {
    int32_t axis = contiguous_fold_axis(k, s);
    if (axis < 0 && s->root_count > s->map_count) {
      axis = (int32_t)s->roots[s->root_count - 1];
    }
    if (axis >= 0) PESTLE_TRY(fold_lanes(k, id, (uint32_t)axis));
    bool registers;
    PESTLE_TRY(pestle_nest_private_fits(nest, id, &registers));
    return pestle_schedule_store(
        nest, id, registers ? PESTLE_PLACE_PRIVATE : PESTLE_PLACE_SHARED);
  }
  PESTLE_TRY(pestle_schedule_store(nest, id, PESTLE_PLACE_SHARED));
  if (!s->map_count) return NULL;
  uint32_t outer;
  return vectorise_inner(k, id, s->roots[s->map_count - 1], 1, &outer);
}

// Orders the anchor's loops rows first, binds the rows, and puts every other
// stage under the innermost row loop. Without rows there is one group.
static pestle_status_t sketch_rows(sketch_t* k, const bool* row) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* y = stage_of(k, k->anchor);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0, rows;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i]) order[n++] = y->roots[i];
  }
  rows = n;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!row[i]) order[n++] = y->roots[i];
  }
  if (n && !rows) {
    // Whole-tensor folds: one group whose loop is made from an axis of the
    // anchor split by its whole extent.
    uint32_t outer, inner;
    PESTLE_TRY(pestle_schedule_split(nest, k->anchor, order[0],
                                     extent_of(k, order[0]), &outer, &inner));
    order[0] = inner;
    memmove(&order[1], &order[0], n * sizeof(order[0]));
    order[0] = outer;
    ++n;
    rows = 1;
  }
  uint32_t row_leaf = rows ? order[rows - 1] : UINT32_MAX;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  for (uint32_t i = 0; i < rows; ++i) {
    PESTLE_TRY(
        pestle_schedule_mark(nest, k->anchor, order[i], PESTLE_MARK_GROUP));
  }
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    if (s == k->anchor || nest->stages.data[s].inlined) continue;
    PESTLE_TRY(place_row_stage(k, s, row_leaf));
  }
  if (n == rows) return NULL;
  uint32_t outer;
  return vectorise_inner(k, k->anchor, order[n - 1], 2, &outer);
}

// --- Tiles ---

typedef struct tile_t {
  uint32_t fold;
  int32_t row;  // position of the tile's row axis among the roots; -1: none
  int64_t rows, vectors, lanes;
} tile_t;

// The innermost axis but the vector's that has something to walk.
static int32_t row_position(const sketch_t* k, const pestle_nest_stage_t* s) {
  for (uint32_t i = s->map_count - 1; i-- > 0;) {
    if (extent_of(k, s->roots[i]) > 1) return (int32_t)i;
  }
  return s->map_count > 1 ? (int32_t)s->map_count - 2 : -1;
}

// Useful multiply-adds per issued load, rows*v over rows + v, less what partly
// empty tiles waste and a little for the code that tails need.
static int64_t tile_score(int64_t height, int64_t vectors, int64_t rows,
                          int64_t v) {
  int64_t across = (vectors + v - 1) / v, down = (height + rows - 1) / rows;
  int64_t score = 100000 * rows * v / (rows + v);
  score = score * vectors / (across * v);
  score = score * height / (down * rows);
  if (vectors % v) score = score * 98 / 100;
  return height % rows ? score * 96 / 100 : score;
}

// Registers: rows x vectors accumulators, a row of the vector operand, one
// more.
static tile_t choose_tile(sketch_t* k, uint32_t fold, bool product) {
  const pestle_nest_stage_t* y = stage_of(k, k->anchor);
  uint32_t n = y->map_count;
  int64_t width = extent_of(k, y->roots[n - 1]);
  int32_t row = row_position(k, y);
  int64_t height = row >= 0 ? extent_of(k, y->roots[row]) : 1;
  tile_t t = {.fold = fold, .row = row, .lanes = lanes_for(k, width)};
  int64_t vectors = (width + t.lanes - 1) / t.lanes;
  int64_t budget = k->registers * 3 / 4;
  if (!product) {
    t.vectors = min64(vectors, 4);
    t.rows = 1;
    return t;
  }
  int64_t best = 0;
  for (int64_t v = min64(vectors, budget >= 24 ? 4 : 2); v >= 1; --v) {
    for (int64_t r = min64(height, min64(budget / v, 14)); r >= 1; --r) {
      int64_t score = tile_score(height, vectors, r, v);
      if (score <= best) continue;
      best = score;
      t.vectors = v;
      t.rows = r;
    }
  }
  return t;
}

// The operand of the product that moves along the anchor's innermost axis
// only contiguously is the vector operand; -1 if it must be staged.
typedef struct operand_t {
  sketch_t* k;
  uint32_t axis;
  int32_t tensor;
  bool unit, constant;
  bool aliasing;  // rows a large power of two apart fall into few cache sets
} operand_t;

static void operand_visit(void* user, const pestle_expr_t* e) {
  operand_t* o = user;
  const pestle_nest_tensor_t* t = &o->k->nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_INPUT) return;
  bool nested;
  int64_t coef = pestle_lin_coef(e->index[0], o->axis, &nested);
  if (!coef && !nested) return;
  o->tensor = (int32_t)e->i;
  o->unit = coef == 1 && !nested;
  o->constant = t->constant;
  for (uint32_t i = 0; i < e->index[0]->count; ++i) {
    const pestle_term_t* term = &e->index[0]->terms[i];
    if (term->atom->kind == PESTLE_ATOM_AXIS &&
        o->k->nest->axes.data[term->atom->axis].fold) {
      o->aliasing = o->aliasing || term->coef % ALIASING_ELEMENTS == 0;
    }
  }
  if (nested || e->guard) o->tensor = -1;
}

static operand_t vector_operand(sketch_t* k, const pestle_expr_t* side,
                                uint32_t axis) {
  operand_t o = {.k = k, .axis = axis, .tensor = -1};
  pestle_status_t st =
      pestle_expr_visit_reads(k->nest, side, operand_visit, &o);
  if (st) {
    pestle_status_release(st);
    k->nest->failed = true;
  }
  return o;
}

// Packs a constant vector operand into panels, or stages a strided one.
static pestle_status_t feed_tile(sketch_t* k, tile_t* t, int64_t panel,
                                 int32_t* out_staged) {
  *out_staged = -1;
  const pestle_nest_stage_t* c = stage_of(k, t->fold);
  uint32_t axis = c->roots[c->map_count - 1];
  for (int side = 0; side < 2; ++side) {
    operand_t o = vector_operand(k, c->values[0]->args[side], axis);
    // x * x^T reads one tensor in two ways: neither is packed or staged.
    if (o.tensor < 0 ||
        !pestle_schedule_find_read(k->nest, t->fold, (uint32_t)o.tensor)) {
      continue;
    }
    int64_t taps = fold_extent(k, c);
    if (o.constant && t->rows > 0) {
      return pestle_schedule_pack(k->nest, t->fold, (uint32_t)o.tensor, axis,
                                  panel);
    }
    // A panel that many row tiles read is worth a copy when it would be fetched
    // through few cache sets.
    const pestle_nest_stage_t* y = stage_of(k, k->anchor);
    bool reused = t->row >= 0 &&
                  extent_of(k, y->roots[t->row]) >= 8 * t->rows && taps >= 256;
    bool worth = !o.unit || (o.aliasing && reused);
    if (worth && !k->nest->frugal && taps * panel * 4 <= PANEL_BYTES) {
      uint32_t copy;
      PESTLE_TRY(
          pestle_schedule_stage(k->nest, t->fold, (uint32_t)o.tensor, &copy));
      *out_staged = (int32_t)copy;
      ++t->fold;
      ++k->anchor;
      return NULL;
    }
  }
  return NULL;
}

static pestle_status_t tile_axes(sketch_t* k, const tile_t* t, uint32_t stage,
                                 uint32_t* out_unrolled, uint32_t* out_count) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = stage_of(k, stage);
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

// The fold inside its tile: fold loops, then the unrolled tile.
static pestle_status_t schedule_tile_fold(sketch_t* k, const tile_t* t) {
  uint32_t tile[3], tile_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  PESTLE_TRY(tile_axes(k, t, t->fold, tile, &tile_count));
  const pestle_nest_stage_t* c = stage_of(k, t->fold);
  for (uint32_t i = 0; i + 1 < c->map_count; ++i) {
    if ((int32_t)i != t->row) order[n++] = c->roots[i];
  }
  for (uint32_t i = c->map_count; i < c->root_count; ++i) {
    order[n++] = c->roots[i];
  }
  for (uint32_t i = 0; i < tile_count; ++i)
    order[n++] = tile[i];
  PESTLE_TRY(pestle_schedule_reorder(k->nest, t->fold, order, n));
  return pestle_schedule_store(k->nest, t->fold, PESTLE_PLACE_PRIVATE);
}

// The anchor's loops: the other axes, column tiles, row tiles, then the tile.
static pestle_status_t schedule_tile_anchor(sketch_t* k, const tile_t* t,
                                            bool registers,
                                            uint32_t* out_panel_leaf,
                                            uint32_t* out_tile_leaf) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* y = stage_of(k, k->anchor);
  uint32_t m = y->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t nt, ni, mt = 0, mi = 0, j, v;
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[m - 1],
                                   t->vectors * t->lanes, &nt, &ni));
  bool rows = t->row >= 0;
  if (rows) {
    PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[t->row], t->rows,
                                     &mt, &mi));
  }
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, ni, t->lanes, &j, &v));
  y = stage_of(k, k->anchor);
  for (uint32_t i = 0; i + 1 < m; ++i) {
    if ((int32_t)i != t->row) order[n++] = y->roots[i];
  }
  order[n++] = nt;
  if (rows) order[n++] = mt;
  *out_panel_leaf = nt;
  *out_tile_leaf = order[n - 1];
  uint32_t groups = n;
  if (rows) order[n++] = mi;
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  for (uint32_t i = groups; i + 1 < n; ++i) {
    if (!registers) continue;
    PESTLE_TRY(
        pestle_schedule_mark(nest, k->anchor, order[i], PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(pestle_schedule_mark(nest, k->anchor, v, PESTLE_MARK_VECTOR));
  return NULL;
}

static pestle_status_t bind_groups(sketch_t* k, uint32_t last_leaf) {
  pestle_nest_stage_t* y = stage_of(k, k->anchor);
  for (uint32_t i = 0; i < y->order_count; ++i) {
    PESTLE_TRY(pestle_schedule_mark(k->nest, k->anchor, y->order[i],
                                    PESTLE_MARK_GROUP));
    if (y->order[i] == last_leaf) break;
  }
  return NULL;
}

// Padded copies: the box that one tile reads, in scratch.
static pestle_status_t place_kept(sketch_t* k, uint32_t tile_leaf) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = stage_of(k, s);
    if (!st->keep || st->inlined) continue;
    uint32_t outer;
    PESTLE_TRY(pestle_schedule_at(k->nest, s, k->anchor, tile_leaf));
    PESTLE_TRY(pestle_schedule_store(k->nest, s, PESTLE_PLACE_SHARED));
    PESTLE_TRY(vectorise_inner(k, s, st->roots[st->map_count - 1], 1, &outer));
  }
  return NULL;
}

static pestle_status_t sketch_tile(sketch_t* k, uint32_t fold) {
  pestle_nest_t* nest = k->nest;
  bool product = is_product(stage_of(k, fold));
  tile_t t = choose_tile(k, fold, product);
  bool registers = !cost_of(k, stage_of(k, k->anchor)).transcendental ||
                   t.rows * t.vectors <= 2 || nest->frugal;
  int32_t staged = -1;
  if (product) PESTLE_TRY(feed_tile(k, &t, t.vectors * t.lanes, &staged));
  int32_t copy = -1;
  if (!registers) {
    uint32_t made;
    PESTLE_TRY(pestle_schedule_epilogue_scratch(nest, t.fold, &made));
    copy = (int32_t)made;
    ++k->anchor;
  }
  uint32_t panel_leaf, tile_leaf;
  PESTLE_TRY(schedule_tile_anchor(k, &t, registers, &panel_leaf, &tile_leaf));
  PESTLE_TRY(schedule_tile_fold(k, &t));
  PESTLE_TRY(pestle_schedule_at(nest, t.fold, k->anchor, tile_leaf));
  if (copy >= 0) {
    uint32_t tile[3], count;
    PESTLE_TRY(tile_axes(k, &t, (uint32_t)copy, tile, &count));
    PESTLE_TRY(
        pestle_schedule_store(nest, (uint32_t)copy, PESTLE_PLACE_SHARED));
    PESTLE_TRY(pestle_schedule_at(nest, (uint32_t)copy, k->anchor, tile_leaf));
  }
  if (staged >= 0) {
    uint32_t id = (uint32_t)staged, outer;
    const pestle_nest_stage_t* s = stage_of(k, id);
    PESTLE_TRY(pestle_schedule_at(nest, id, k->anchor, panel_leaf));
    PESTLE_TRY(pestle_schedule_store(nest, id, PESTLE_PLACE_SHARED));
    PESTLE_TRY(vectorise_inner(k, id, s->roots[s->map_count - 1], 1, &outer));
    return bind_groups(k, panel_leaf);
  }
  PESTLE_TRY(place_kept(k, tile_leaf));
  return bind_groups(k, tile_leaf);
}

// --- Column folds: several folds along strided axes, contiguous rows ---

// The last row axis of the anchor, when every fold and the anchor move along it
// by one element and no fold has a contiguous axis of its own; else -1.
static int32_t column_axis(sketch_t* k, const bool* row) {
  const pestle_nest_stage_t* y = stage_of(k, k->anchor);
  int32_t p = -1;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i] && extent_of(k, y->roots[i]) > 1) p = (int32_t)i;
  }
  if (p < 0) return -1;
  stride_t along = strides_along(k, y, y->roots[p]);
  if (!along.unit || along.strided) return -1;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* f = stage_of(k, s);
    if (f->inlined || s == k->anchor) continue;
    if (!f->is_fold || f->fold == PESTLE_OP_COUNT || !f->map_count) return -1;
    uint32_t last = f->roots[f->map_count - 1];
    if (contiguous_fold_axis(k, f) >= 0 || !strides_along(k, f, last).unit ||
        extent_of(k, last) != extent_of(k, y->roots[p])) {
      return -1;
    }
  }
  return p;
}

static pestle_status_t sketch_columns(sketch_t* k, const bool* row, int32_t p) {
  pestle_nest_t* nest = k->nest;
  pestle_nest_stage_t* y = stage_of(k, k->anchor);
  uint32_t column = y->roots[p], outer, inner, j, v;
  tile_t t = {.row = -1, .lanes = lanes_for(k, extent_of(k, column))};
  t.vectors = min64(4, (extent_of(k, column) + t.lanes - 1) / t.lanes);
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, column, t.vectors * t.lanes,
                                   &outer, &inner));
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, inner, t.lanes, &j, &v));
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  y = stage_of(k, k->anchor);
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (row[i] && (int32_t)i != p) order[n++] = y->roots[i];
  }
  order[n++] = outer;
  for (uint32_t i = 0; i < y->root_count; ++i) {
    if (!row[i]) order[n++] = y->roots[i];
  }
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, k->anchor, j, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, k->anchor, v, PESTLE_MARK_VECTOR));
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    if (s == k->anchor || nest->stages.data[s].inlined) continue;
    t.fold = s;
    PESTLE_TRY(schedule_tile_fold(k, &t));
    PESTLE_TRY(pestle_schedule_at(nest, s, k->anchor, outer));
  }
  return bind_groups(k, outer);
}

// --- The choice ---

static int32_t only_fold(const sketch_t* k, uint32_t* out_count) {
  int32_t id = -1;
  *out_count = 0;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = &k->nest->stages.data[s];
    if (st->inlined || st->keep || s == k->anchor) continue;
    ++*out_count;
    if (st->is_fold) id = (int32_t)s;
  }
  return id;
}

static bool tile_fits(sketch_t* k, uint32_t fold) {
  const pestle_nest_stage_t* f = stage_of(k, fold);
  if (!aligned(k, fold) || !f->map_count || f->fold == PESTLE_OP_COUNT) {
    return false;
  }
  if (is_product(f)) return true;
  // Not worth lanes over one or two elements when a fold axis is contiguous.
  uint32_t last = f->roots[f->map_count - 1];
  return contiguous_fold_axis(k, f) < 0 || strides_along(k, f, last).unit;
}

pestle_status_t pestle_sketch(pestle_nest_t* nest,
                              const pestle_target_caps_t* caps,
                              bool reassociate) {
  sketch_t k = {
      .nest = nest,
      .caps = caps,
      .reassociate = reassociate,
      .anchor = (uint32_t)nest->stages.size - 1,
      .registers = caps->vector_registers ? caps->vector_registers : 16,
      .lanes = caps->vector_bytes ? caps->vector_bytes / 4 : 1};
  PESTLE_TRY(inline_maps(&k));
  uint32_t count;
  int32_t fold = only_fold(&k, &count);
  if (count == 0) return sketch_map(&k);
  if (count == 1 && fold >= 0 && tile_fits(&k, (uint32_t)fold)) {
    return sketch_tile(&k, (uint32_t)fold);
  }
  bool* row = pestle_arena_alloc_zero(nest->arena, PESTLE_NEST_MAX_AXES, 1);
  if (!row) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  PESTLE_TRY(row_axes(&k, row));
  int32_t column = column_axis(&k, row);
  if (column >= 0) return sketch_columns(&k, row, column);
  return sketch_rows(&k, row);
}
