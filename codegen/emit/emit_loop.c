// SPDX-License-Identifier: Apache-2.0
// The loop tree: opens a stage's loops from the outermost in, first the part that a split's
// factor divides, then the rest.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"

// --- Extents ---

void pestle_emit_set_extent(pestle_nest_t* nest, uint32_t axis,
                            int64_t extent) {
  pestle_nest_axis_t* a = &nest->axes.data[axis];
  a->extent = extent;
  if (a->outer < 0) return;
  int64_t factor = a->factor;
  uint32_t outer = (uint32_t)a->outer, inner = (uint32_t)a->inner;
  pestle_emit_set_extent(nest, outer, (extent + factor - 1) / factor);
  pestle_emit_set_extent(nest, inner, extent < factor ? extent : factor);
}

// --- Loops ---

void pestle_emit_hoist_stage(pestle_emit_walk_t* w) {
  const pestle_nest_stage_t* s = pestle_nest_stage(w->e->nest, w->stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_emit_hoist(w->e, s->values[v]);
  }
}

// --- Borders ---

enum { MOST_CUTS = 8 };

typedef void (*visit_test_t)(void* user, const pestle_expr_t* test);

static void visit_condition(const pestle_expr_t* x, visit_test_t visit,
                            void* user) {
  if (x->kind == PESTLE_EXPR_INSIDE) visit(user, x);
  if (x->kind != PESTLE_EXPR_OP || x->op != PESTLE_OP_AND) return;
  visit_condition(x->args[0], visit, user);
  visit_condition(x->args[1], visit, user);
}

// Calls visit(user, test) for each test that chooses between what is read and its
// border: of a padded copy, of a window, or of an operand of a product.
static void visit_tests(const pestle_expr_t* x, visit_test_t visit,
                        void* user) {
  if (x->kind == PESTLE_EXPR_CAST) x = x->args[0];
  if (x->kind != PESTLE_EXPR_OP) return;
  if (x->op == PESTLE_OP_SELECT) visit_condition(x->args[0], visit, user);
  if (x->op != PESTLE_OP_MULTIPLY) return;
  for (int i = 0; i < 2; ++i) {
    const pestle_expr_t* a = x->args[i];
    if (a->kind == PESTLE_EXPR_OP && a->op == PESTLE_OP_SELECT) {
      visit_condition(a->args[0], visit, user);
    }
  }
}

static bool asks(const pestle_nest_stage_t* s) {
  return s->border || (s->keep && !s->is_reduction);
}

// Steps of a loop at which a test changes.
typedef struct cuts_t {
  pestle_emit_t* e;
  const pestle_nest_stage_t* s;
  uint32_t axis;
  int64_t at[MOST_CUTS];
  uint32_t count;
} cuts_t;

static void add_cut(cuts_t* c, int64_t at) {
  if (at <= 0 || at >= c->e->nest->axes.data[c->axis].extent) return;
  uint32_t i = c->count;
  for (uint32_t j = 0; j < c->count; ++j) {
    if (c->at[j] == at) return;
  }
  if (c->count == MOST_CUTS) return;
  ++c->count;
  for (; i > 0 && c->at[i - 1] > at; --i)
    c->at[i] = c->at[i - 1];
  c->at[i] = at;
}

static void cut_visit(void* user, const pestle_expr_t* test) {
  cuts_t* c = user;
  pestle_nest_t* nest = c->e->nest;
  const pestle_affine_t* at = pestle_emit_resolve(c->e, test->affine);
  bool nested;
  int64_t coef = pestle_affine_coef(at, c->axis, &nested);
  // A reversed loop asks at each step; so do copies, by a branch, where a test has
  // other loops in it.
  if (nested || coef <= 0 || (at->count > 1 && !c->s->border)) return;
  const pestle_affine_t* step = pestle_affine_axis(nest, c->axis);
  pestle_range_t rest = pestle_affine_range(
      nest,
      pestle_affine_add(nest, at, pestle_affine_scale(nest, step, -coef)));
  // From the first of these steps to before the second it holds for all others.
  add_cut(c, pestle_ceil_div(test->lo - rest.lo, coef));
  add_cut(c, pestle_floor_div(test->hi - 1 - rest.hi, coef) + 1);
}

// Where the border of what |w| copies or reduces begins and ends along |axis|, so
// that no step between has to ask. Not where lanes or groups share the steps.
static void find_cuts(const pestle_emit_walk_t* w, uint32_t axis, cuts_t* out) {
  pestle_emit_t* e = w->e;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, w->stage);
  *out = (cuts_t){.e = e, .s = s, .axis = axis};
  uint8_t mark = s->border ? PESTLE_MARK_UNROLL : PESTLE_MARK_SERIAL;
  if (!w->attach || !asks(s) || e->nest->axes.data[axis].mark != mark) return;
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  pestle_emit_coords(e, w->stage);
  visit_tests(s->values[0], cut_visit, out);
  e->open[axis] = false;
}

// The test that holds or does not for all of the loops that are not open yet.
typedef struct open_test_t {
  pestle_emit_t* e;
  const pestle_expr_t* test;
} open_test_t;

static void open_test_visit(void* user, const pestle_expr_t* test) {
  open_test_t* t = user;
  if (!t->test && pestle_emit_is_open(t->e, test)) t->test = test;
}

static const pestle_expr_t* find_open_test(const pestle_emit_walk_t* w) {
  const pestle_nest_stage_t* s = pestle_nest_stage(w->e->nest, w->stage);
  open_test_t t = {.e = w->e};
  if (!w->attach || !asks(s) || w->e->vector_axis >= 0) return NULL;
  visit_tests(s->values[0], open_test_visit, &t);
  return t.test;
}

// The loops that are left, once for steps on which a test of the border holds and
// once for the others, unless these add nothing. False: there is no such test.
static bool walk_both(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count) {
  pestle_emit_t* e = w->e;
  const pestle_expr_t* test = find_open_test(w);
  int64_t known;
  if (!test) return false;
  pestle_kir_id_t holds = pestle_emit_expr(e, test);
  if (pestle_kir_is_int(e->k, holds, &known) ||
      pestle_kir_lanes_of(e->k, holds) != 1) {
    return false;
  }
  pestle_kir_if(e->k, holds);
  int64_t last = pestle_nest_stage(e->nest, w->stage)->skips ? 1 : 0;
  for (int64_t value = 1; value >= last; --value) {
    size_t scope = pestle_emit_scope(e);
    pestle_emit_take(e, test, pestle_kir_int(e->k, PESTLE_I1, 1, value));
    pestle_emit_hoist_stage(w);
    pestle_emit_walk(w, leaves + 1, count - 1);
    pestle_emit_unscope(e, scope);
    if (value > last) pestle_kir_else(e->k);
  }
  pestle_kir_end(e->k);
  return true;
}

// The axis has a value now: emit what belongs under it, then the other loops.
static void emit_inside(pestle_emit_walk_t* w, const uint32_t* leaves,
                        uint32_t count) {
  pestle_emit_t* e = w->e;
  pestle_emit_coords(e, w->stage);
  if (w->attach) {
    pestle_emit_prefetch_results(e, w->stage, leaves, count);
    pestle_emit_open_carried(e, w->stage, leaves[0], true);
    pestle_emit_attached(e, w->stage, (int32_t)leaves[0]);
    pestle_emit_coords(e, w->stage);
  }
  if (w->attach) pestle_emit_prefetch_share(e, w->stage, leaves[0]);
  bool serial = e->nest->axes.data[leaves[0]].mark == PESTLE_MARK_SERIAL;
  if (count < 2 || !serial || !walk_both(w, leaves, count)) {
    if (w->attach && count > 1) pestle_emit_hoist_stage(w);
    pestle_emit_walk(w, leaves + 1, count - 1);
  }
  if (w->attach) {
    pestle_emit_set_ready(e, w->stage, (int32_t)leaves[0], false);
    pestle_emit_open_carried(e, w->stage, leaves[0], false);
  }
}

// Whether the one step |value| of a loop has to ask for the end of its axis: the steps
// around it have asked for the first.
static bool asks_for_end(const pestle_emit_walk_t* w, uint32_t axis,
                         int64_t value) {
  return w->attach && pestle_emit_has_end(w->e, axis) &&
         w->e->nest->axes.data[axis].mark == PESTLE_MARK_SERIAL && value > 0;
}

static void inside(pestle_emit_walk_t* w, const uint32_t* leaves,
                   uint32_t count, bool asks) {
  if (asks) pestle_kir_if(w->e->k, pestle_emit_before_end(w->e, leaves[0]));
  emit_inside(w, leaves, count);
  if (asks) pestle_kir_end(w->e->k);
}

static void open_fixed(pestle_emit_walk_t* w, const uint32_t* leaves,
                       uint32_t count, int64_t value) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  size_t scope = pestle_emit_scope(e);
  e->open[axis] = true;
  e->value[axis] = pestle_affine_const(e->nest, value);
  inside(w, leaves, count, asks_for_end(w, axis, value));
  e->open[axis] = false;
  pestle_emit_unscope(e, scope);
}

void pestle_emit_open_vector(pestle_emit_t* e, uint32_t axis, int64_t width) {
  if (width == 1) return;
  e->vector_axis = (int32_t)axis;
  e->lanes = (unsigned)width;
  e->valid = width;
}

void pestle_emit_close_vector(pestle_emit_t* e) {
  e->vector_axis = -1;
  e->lanes = 1;
  e->valid = 1;
}

static void open_vector(pestle_emit_walk_t* w, const uint32_t* leaves,
                        uint32_t count) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->full_extent == 1) {
    open_fixed(w, leaves, count, 0);
    return;
  }
  size_t scope = pestle_emit_scope(e);
  pestle_emit_open_vector(e, axis, a->full_extent);
  e->valid = a->extent;
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  inside(w, leaves, count, false);
  e->open[axis] = false;
  pestle_emit_close_vector(e);
  pestle_emit_unscope(e, scope);
}

// --- Groups of lanes ---

enum { MOST_DIVIDED = 8 };

// The forms that the reads of a stage divide.
typedef struct divided_t {
  const pestle_affine_t* forms[MOST_DIVIDED];
  uint32_t count;
} divided_t;

static void divided_visit(void* user, const pestle_expr_t* read) {
  divided_t* found = user;
  for (uint32_t d = 0; d < read->index_count; ++d) {
    const pestle_affine_t* at = read->index[d];
    for (uint32_t i = 0; i < at->count; ++i) {
      bool divides = at->terms[i].atom->affine && !at->terms[i].atom->value;
      if (divides && found->count < MOST_DIVIDED) {
        found->forms[found->count++] = at;
        break;
      }
    }
  }
}

static bool counts(const pestle_affine_t* affine, uint32_t axis) {
  bool nested;
  return pestle_affine_coef(affine, axis, &nested) != 0 || nested;
}

// Whether what |affine| divides has both axes in it.
static bool divides_both(const pestle_affine_t* affine, uint32_t a,
                         uint32_t b) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_affine_t* within = affine->terms[i].atom->affine;
    if (within && counts(within, a) && counts(within, b)) return true;
  }
  return false;
}

// Whether the vectors of an unrolled loop's steps begin within groups of lanes that
// read the same, each elsewhere, so that each step needs shuffles of its own.
static bool is_uneven(const pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count) {
  pestle_emit_t* e = w->e;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, w->stage);
  uint32_t axis = leaves[0], last = leaves[count - 1];
  if (e->nest->axes.data[axis].mark != PESTLE_MARK_UNROLL ||
      e->nest->axes.data[last].mark != PESTLE_MARK_VECTOR) {
    return false;
  }
  divided_t found = {.count = 0};
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_status_t st =
        pestle_expr_visit_reads(e->nest, s->values[v], divided_visit, &found);
    if (st) pestle_nest_fail(e->nest, st);
  }
  if (!found.count) return false;
  bool uneven = false;
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  pestle_emit_coords(e, w->stage);
  for (uint32_t i = 0; i < found.count; ++i) {
    const pestle_affine_t* at = pestle_emit_resolve(e, found.forms[i]);
    uneven |= divides_both(at, axis, last);
  }
  e->open[axis] = false;
  return uneven;
}

// |trips| steps from |first| on.
static void open_steps(pestle_emit_walk_t* w, const uint32_t* leaves,
                       uint32_t count, int64_t first, int64_t trips) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (trips <= 0) return;
  if (trips == 1 && a->mark != PESTLE_MARK_GROUP) {
    open_fixed(w, leaves, count, first);
    return;
  }
  if (is_uneven(w, leaves, count)) {
    for (int64_t i = 0; i < trips; ++i)
      open_fixed(w, leaves, count, first + i);
    return;
  }
  int64_t before = a->extent;
  a->extent = trips;  // the range of the index
  size_t scope = pestle_emit_scope(e);
  bool group = a->mark == PESTLE_MARK_GROUP;
  bool serial = a->mark == PESTLE_MARK_SERIAL;
  bool ends = w->attach && pestle_emit_has_end(e, axis);
  e->serial_loops += serial;
  if (!group) {
    pestle_kir_id_t end = ends && serial
                              ? pestle_emit_steps_to_end(e, axis, first, trips)
                              : pestle_kir_index(e->k, trips);
    e->axis_id[axis] = pestle_kir_for(
        e->k, a->name, pestle_kir_index(e->k, 0), end, 1,
        a->mark == PESTLE_MARK_UNROLL ? PESTLE_KIR_UNROLL : PESTLE_KIR_SERIAL);
  }
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  if (first) {
    e->value[axis] = pestle_affine_add(e->nest, e->value[axis],
                                       pestle_affine_const(e->nest, first));
  }
  inside(w, leaves, count, ends && group);
  if (!group) pestle_kir_end(e->k);
  e->serial_loops -= serial;
  e->open[axis] = false;
  pestle_emit_unscope(e, scope);
  e->nest->axes.data[axis].extent = before;
}

static void open_loop(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count, int64_t trips) {
  open_steps(w, leaves, count, 0, trips);
}

// The border and what is within it, each in a loop of its own.
static void open_parts(pestle_emit_walk_t* w, const uint32_t* leaves,
                       uint32_t count, int64_t trips) {
  cuts_t cuts;
  find_cuts(w, leaves[0], &cuts);
  int64_t from = 0;
  for (uint32_t i = 0; i <= cuts.count; ++i) {
    int64_t to = i < cuts.count ? cuts.at[i] : trips;
    open_steps(w, leaves, count, from, to - from);
    from = to;
  }
}

// A group axis has its index already: its rest is a branch.
static void open_group_peeled(pestle_emit_walk_t* w, const uint32_t* leaves,
                              uint32_t count, int64_t full, uint32_t inner,
                              int64_t factor, int64_t rest) {
  pestle_emit_t* e = w->e;
  if (full == 0) {
    pestle_emit_set_extent(e->nest, inner, rest);
    open_fixed(w, leaves, count, 0);
    return;
  }
  pestle_kir_if(e->k, pestle_kir_scalar_i(e->k, PESTLE_OP_LT,
                                          e->axis_id[leaves[0]], full));
  pestle_emit_set_extent(e->nest, inner, factor);
  open_loop(w, leaves, count, full);
  pestle_kir_else(e->k);
  pestle_emit_set_extent(e->nest, inner, rest);
  open_fixed(w, leaves, count, full);
  pestle_kir_end(e->k);
}

static void open_peeled(pestle_emit_walk_t* w, const uint32_t* leaves,
                        uint32_t count, int64_t parent_extent, int64_t factor,
                        uint32_t inner) {
  pestle_emit_t* e = w->e;
  int64_t full = parent_extent / factor, rest = parent_extent % factor;
  bool group = e->nest->axes.data[leaves[0]].mark == PESTLE_MARK_GROUP;
  int64_t before = e->nest->axes.data[inner].extent;
  if (rest && group) {
    open_group_peeled(w, leaves, count, full, inner, factor, rest);
  } else {
    pestle_emit_set_extent(e->nest, inner, factor);
    open_loop(w, leaves, count, full);
    if (rest) {
      pestle_emit_set_extent(e->nest, inner, rest);
      open_fixed(w, leaves, count, full);
    }
  }
  pestle_emit_set_extent(e->nest, inner, before);
}

// --- Lanes ---

// The lanes below |trips| have steps of the loop; each has one.
static void open_lanes(pestle_emit_walk_t* w, const uint32_t* leaves,
                       uint32_t count, int64_t trips) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  int dim = a->mark == PESTLE_MARK_LANE_Y;
  int64_t before = a->extent;
  a->extent = trips;  // the range of the index
  e->axis_id[axis] = e->lane_id[dim];
  size_t scope = pestle_emit_scope(e);
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  inside(w, leaves, count, false);
  e->open[axis] = false;
  pestle_emit_unscope(e, scope);
  e->nest->axes.data[axis].extent = before;
}

static pestle_kir_id_t lane_below(pestle_emit_t* e, int dim, int64_t limit) {
  return pestle_kir_scalar_i(e->k, PESTLE_OP_LT, e->lane_id[dim], limit);
}

// A lane loop of |full| whole steps and, where |rest|, a shorter one.
static void open_lane_steps(pestle_emit_walk_t* w, const uint32_t* leaves,
                            uint32_t count, int64_t full, int64_t rest,
                            int64_t factor, uint32_t inner) {
  pestle_emit_t* e = w->e;
  int dim = e->nest->axes.data[leaves[0]].mark == PESTLE_MARK_LANE_Y;
  int64_t lanes = e->lane_count[dim];
  bool some = full > 0 && (full < lanes || rest);
  if (full > 0) {
    if (factor) pestle_emit_set_extent(e->nest, inner, factor);
    if (some) pestle_kir_if(e->k, lane_below(e, dim, full));
    open_lanes(w, leaves, count, full);
  }
  if (some && rest) pestle_kir_else(e->k);
  if (rest) {
    pestle_emit_set_extent(e->nest, inner, rest);
    bool others = full + 1 < lanes;
    if (others) pestle_kir_if(e->k, lane_below(e, dim, full + 1));
    open_fixed(w, leaves, count, full);
    if (others) pestle_kir_end(e->k);
  }
  if (some) pestle_kir_end(e->k);
}

static void open_lane(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count) {
  pestle_emit_t* e = w->e;
  const pestle_nest_axis_t* a = &e->nest->axes.data[leaves[0]];
  const pestle_nest_axis_t* p =
      a->parent >= 0 ? &e->nest->axes.data[a->parent] : NULL;
  if (!p || p->outer != (int32_t)leaves[0]) {
    open_lane_steps(w, leaves, count, a->extent, 0, 0, 0);
    return;
  }
  uint32_t inner = (uint32_t)p->inner;
  int64_t before = e->nest->axes.data[inner].extent;
  open_lane_steps(w, leaves, count, p->extent / p->factor,
                  p->extent % p->factor, p->factor, inner);
  pestle_emit_set_extent(e->nest, inner, before);
}

static void open_axis(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count) {
  pestle_emit_t* e = w->e;
  const pestle_nest_axis_t* a = &e->nest->axes.data[leaves[0]];
  if (a->mark == PESTLE_MARK_VECTOR) {
    open_vector(w, leaves, count);
    return;
  }
  if (pestle_mark_is_lane(a->mark)) {
    open_lane(w, leaves, count);
    return;
  }
  if (a->parent >= 0) {
    const pestle_nest_axis_t* p = &e->nest->axes.data[a->parent];
    if (p->outer == (int32_t)leaves[0]) {
      open_peeled(w, leaves, count, p->extent, p->factor, (uint32_t)p->inner);
      return;
    }
  }
  if (a->peel_last && a->extent > 1) {
    int64_t last = a->extent - 1;
    open_loop(w, leaves, count, last);
    open_fixed(w, leaves, count, last);
    return;
  }
  open_parts(w, leaves, count, a->extent);
}

// Within the shorter last step of an outer loop a group axis has fewer steps than
// there are groups.
static bool has_others(const pestle_nest_t* nest, uint32_t axis) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  return a->mark == PESTLE_MARK_GROUP && a->extent < a->full_extent;
}

void pestle_emit_walk(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count) {
  pestle_emit_t* e = w->e;
  if (pestle_emit_has_failed(e)) return;
  if (count == 0) {
    pestle_emit_coords(e, w->stage);
    w->body(e, w->stage, w->user);
    return;
  }
  bool others = has_others(e->nest, leaves[0]);
  if (others) {
    int64_t steps = e->nest->axes.data[leaves[0]].extent;
    pestle_kir_if(e->k, pestle_kir_scalar_i(e->k, PESTLE_OP_LT,
                                            e->axis_id[leaves[0]], steps));
  }
  open_axis(w, leaves, count);
  if (others) pestle_kir_end(e->k);
}
