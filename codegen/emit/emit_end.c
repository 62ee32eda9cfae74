// SPDX-License-Identifier: Apache-2.0
// Ends that are read from memory (docs/adr/021): groups ask whether they begin before
// the end, serial loops stop there. A step that begins before it is made whole, so that
// vectors, tiles and lanes know nothing of it.
//
//   %n = load @n[%0]                 for g to 64 group.x {        64 tiles of 16
//   for i to min(ceil(n - 16 g, 1), 16) ...   if 16 g < n { ...
#include <math.h>

#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "ir/identity.h"

// No place of a fold lies further: indices of tensors are below 2^40.
#define PESTLE_EMIT_FAR (INT64_C(1) << 40)

static uint32_t root_of(const pestle_nest_t* nest, uint32_t axis) {
  while (nest->axes.data[axis].parent >= 0)
    axis = (uint32_t)nest->axes.data[axis].parent;
  return axis;
}

// Places of the root between a step of |axis| and the next.
static int64_t step_of(const pestle_nest_t* nest, uint32_t axis) {
  int64_t step = 1;
  for (int32_t p = nest->axes.data[axis].parent; p >= 0;
       p = nest->axes.data[axis].parent) {
    if (nest->axes.data[p].outer == (int32_t)axis)
      step *= nest->axes.data[p].factor;
    axis = (uint32_t)p;
  }
  return step;
}

// The first place along |axis| of what is open of it; lanes count as the first.
static const pestle_affine_t* first_place(pestle_emit_t* e, uint32_t axis) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->outer < 0) {
    bool counts = e->open[axis] && !pestle_mark_is_lane(a->mark) &&
                  a->mark != PESTLE_MARK_VECTOR;
    return counts ? e->value[axis] : pestle_affine_const(e->nest, 0);
  }
  uint32_t inner = (uint32_t)a->inner;
  int64_t factor = a->factor;
  const pestle_affine_t* outer = first_place(e, (uint32_t)a->outer);
  return pestle_affine_add(e->nest, pestle_affine_scale(e->nest, outer, factor),
                           first_place(e, inner));
}

static pestle_kir_id_t end_of(pestle_emit_t* e, uint32_t root) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[root];
  int64_t scale = a->end_scale, most = pestle_ceil_div(a->full_extent, scale);
  const pestle_expr_t* n = pestle_expr_read(e->nest, a->end_tensor, NULL, NULL);
  pestle_kir_id_t id =
      pestle_kir_cast(e->k, pestle_emit_expr(e, n), PESTLE_INDEX);
  id = pestle_emit_clamp(e, id, 0, most);
  return pestle_kir_madi(e->k, id, scale, pestle_kir_index(e->k, 0));
}

// How many of |trips| steps from |from| on begin before |end|.
static pestle_kir_id_t steps_between(pestle_emit_t* e, pestle_kir_id_t from,
                                     pestle_kir_id_t end, int64_t step,
                                     int64_t trips) {
  pestle_kir_id_t left =
      pestle_kir_scalar(e->k, PESTLE_OP_SUBTRACT, end, from, PESTLE_KIR_NONE);
  left = pestle_emit_clamp(e, left, 0, step * trips);
  left = pestle_kir_madi(e->k, left, 1, pestle_kir_index(e->k, step - 1));
  return pestle_kir_scalar_i(e->k, PESTLE_OP_DIVIDE, left, step);
}

// --- Axes that end ---

static bool axis_ends(const pestle_emit_t* e, uint32_t axis) {
  return e->nest->axes.data[root_of(e->nest, axis)].end_scale > 0;
}

static pestle_kir_id_t axis_steps(pestle_emit_t* e, uint32_t axis,
                                  int64_t first, int64_t trips) {
  uint32_t root = root_of(e->nest, axis);
  int64_t step = step_of(e->nest, axis);
  const pestle_affine_t* from =
      pestle_affine_add(e->nest, first_place(e, root),
                        pestle_affine_const(e->nest, first * step));
  pestle_kir_id_t end = end_of(e, root);
  pestle_kir_id_t begin = pestle_emit_scalar_index(e, from);
  return steps_between(e, begin, end, step, trips);
}

// --- Folds ---

// A fold whose terms are the fold's identity from some place on ends there:
//
//   add over k of select(1000*b + k < n, x, -0.0)
typedef struct fold_end_t {
  const pestle_affine_t*
      first;     // of the places that are left, lanes as the first
  int64_t step;  // of the loop that is asked about
  const pestle_expr_t* end;
} fold_end_t;

static bool is_identity(const pestle_nest_stage_t* s, const pestle_expr_t* x) {
  double f;
  int64_t i;
  if (x->kind != PESTLE_EXPR_CONST) return false;
  pestle_dtype_t dtype = (pestle_dtype_t)x->dtype;
  pestle_reduce_identity(s->reduce, dtype, &f, &i);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return x->i == i;
  return x->f == f && signbit(x->f) == signbit(f);
}

// Whether |x| is one number of memory, the same everywhere.
static bool reads_number(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_READ && !x->guard && !x->packed &&
         (!x->index_count ||
          (x->index_count == 1 && pestle_affine_is_const(x->index[0])));
}

// The test "place < number" among those that |x| joins, or NULL.
static const pestle_expr_t* find_test(const pestle_expr_t* x) {
  if (x->kind != PESTLE_EXPR_OP) return NULL;
  if (x->op == PESTLE_OP_AND) {
    const pestle_expr_t* test = find_test(x->args[0]);
    return test ? test : find_test(x->args[1]);
  }
  bool reads_one = x->args[1] && reads_number(x->args[1]);
  return x->op == PESTLE_OP_LT && reads_one &&
                 x->args[0]->kind == PESTLE_EXPR_INDEX &&
                 x->args[0]->dtype == PESTLE_I64 &&
                 x->args[1]->dtype == PESTLE_I64
             ? x
             : NULL;
}

static const pestle_expr_t* fold_test(const pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  if (!s->is_reduction || s->combine || s->carried || s->value_count != 1 ||
      s->reduce == PESTLE_OP_COUNT) {
    return NULL;
  }
  for (uint32_t q = 0; q < e->nest->stages.size; ++q) {
    const pestle_nest_stage_t* other = pestle_nest_stage(e->nest, q);
    if (other->carried && other->at_stage == (int32_t)stage) return NULL;
  }
  const pestle_expr_t* x = s->values[0];
  bool selects = x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_SELECT;
  if (!selects || !is_identity(s, x->args[2])) return NULL;
  const pestle_expr_t* test = find_test(x->args[0]);
  return test && e->nest->tensors.data[test->args[1]->i].kind ==
                     PESTLE_TENSOR_INPUT
             ? test
             : NULL;
}

// Whether |a| has no loop in it that is not open, or that is one of lanes.
static bool is_settled(const pestle_emit_t* e, const pestle_affine_t* a) {
  for (uint32_t i = 0; i < a->count; ++i) {
    const pestle_atom_t* atom = a->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_VALUE) return false;
    if (atom->kind != PESTLE_ATOM_AXIS) {
      if (!is_settled(e, atom->affine)) return false;
    } else if (!e->open[atom->axis] ||
               pestle_mark_is_lane(e->nest->axes.data[atom->axis].mark) ||
               (int32_t)atom->axis == e->vector_axis) {
      return false;
    }
  }
  return true;
}

// Whether |axis| is |whole| or was split from it, none of whose loops are open then.
static bool is_within(const pestle_nest_t* nest, uint32_t axis,
                      uint32_t whole) {
  while (axis != whole && nest->axes.data[axis].parent >= 0)
    axis = (uint32_t)nest->axes.data[axis].parent;
  return axis == whole;
}

// The fold's end as loop |axis|, open or not, sees it. What is open within lanes and
// further in counts as its first step, so that the end comes late rather than early.
static bool find_fold_end(pestle_emit_t* e, uint32_t axis, fold_end_t* out) {
  uint32_t stage = (uint32_t)e->nest->axes.data[axis].stage;
  const pestle_expr_t* test = fold_test(e, stage);
  if (!test) return false;
  pestle_emit_coords(e, stage);
  const pestle_affine_t* at = pestle_emit_resolve(e, test->args[0]->affine);
  *out = (fold_end_t){.first = pestle_affine_const(e->nest, at->constant),
                      .end = test->args[1]};
  for (uint32_t i = 0; i < at->count; ++i) {
    const pestle_term_t* t = &at->terms[i];
    const pestle_affine_t* one = pestle_affine_make(e->nest, 0, t, 1);
    if (t->atom->kind == PESTLE_ATOM_AXIS &&
        is_within(e->nest, axis, t->atom->axis))
      out->step =
          t->coef * step_of(e->nest, axis) / step_of(e->nest, t->atom->axis);
    if (is_settled(e, one)) {
      out->first = pestle_affine_add(e->nest, out->first, one);
    } else if (t->coef < 0 || t->atom->kind == PESTLE_ATOM_VALUE) {
      return false;
    }
  }
  return true;
}

static pestle_kir_id_t fold_end_number(pestle_emit_t* e, const fold_end_t* f) {
  pestle_kir_id_t id =
      pestle_kir_cast(e->k, pestle_emit_expr(e, f->end), PESTLE_INDEX);
  return pestle_emit_clamp(e, id, INT32_MIN, PESTLE_EMIT_FAR);
}

// --- Both ---

bool pestle_emit_has_end(pestle_emit_t* e, uint32_t axis) {
  fold_end_t fold;
  if (!e->nest->axes.data[axis].reduce) return axis_ends(e, axis);
  bool was_open = e->open[axis];
  e->open[axis] = false;
  bool ends = find_fold_end(e, axis, &fold) && fold.step > 0;
  e->open[axis] = was_open;
  return ends;
}

pestle_kir_id_t pestle_emit_before_end(pestle_emit_t* e, uint32_t axis) {
  fold_end_t fold;
  uint32_t root = root_of(e->nest, axis);
  bool folds = e->nest->axes.data[axis].reduce && find_fold_end(e, axis, &fold);
  const pestle_affine_t* at = folds ? fold.first : first_place(e, root);
  pestle_kir_id_t end = folds ? fold_end_number(e, &fold) : end_of(e, root);
  return pestle_kir_scalar(e->k, PESTLE_OP_LT, pestle_emit_scalar_index(e, at),
                           end, PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_emit_steps_to_end(pestle_emit_t* e, uint32_t axis,
                                         int64_t first, int64_t trips) {
  fold_end_t fold;
  if (!e->nest->axes.data[axis].reduce)
    return axis_steps(e, axis, first, trips);
  if (!find_fold_end(e, axis, &fold)) return pestle_kir_index(e->k, trips);
  const pestle_affine_t* from = pestle_affine_add(
      e->nest, fold.first, pestle_affine_const(e->nest, first * fold.step));
  pestle_kir_id_t end = fold_end_number(e, &fold);
  pestle_kir_id_t begin = pestle_emit_scalar_index(e, from);
  return steps_between(e, begin, end, fold.step, trips);
}

// --- Templates ---

// The end of the outermost of |axes|, as a number of places of them all; PESTLE_KIR_NONE:
// it has none.
static pestle_kir_id_t outer_end(pestle_emit_t* e, const int32_t* axes,
                                 const int64_t* extents, uint32_t count) {
  uint32_t outer = 0;
  int64_t inner = 1;
  while (outer < count && extents[outer] == 1)
    ++outer;
  if (outer == count || axes[outer] < 0 || !axis_ends(e, (uint32_t)axes[outer]))
    return PESTLE_KIR_NONE;
  for (uint32_t i = outer + 1; i < count; ++i)
    inner *= extents[i];
  pestle_kir_id_t end = end_of(e, root_of(e->nest, (uint32_t)axes[outer]));
  return pestle_kir_madi(e->k, end, inner, pestle_kir_index(e->k, 0));
}

bool pestle_emit_open_end(pestle_emit_t* e, const int32_t* axes,
                          const int64_t* extents, uint32_t count,
                          pestle_kir_id_t first) {
  pestle_kir_id_t end = outer_end(e, axes, extents, count);
  if (end == PESTLE_KIR_NONE) return false;
  pestle_kir_if(
      e->k, pestle_kir_scalar(e->k, PESTLE_OP_LT, first, end, PESTLE_KIR_NONE));
  return true;
}

pestle_kir_id_t pestle_emit_places_to_end(pestle_emit_t* e, const int32_t* axes,
                                          const int64_t* extents,
                                          uint32_t count, pestle_kir_id_t first,
                                          int64_t step, int64_t trips) {
  pestle_kir_id_t end = outer_end(e, axes, extents, count);
  return end == PESTLE_KIR_NONE ? PESTLE_KIR_NONE
                                : steps_between(e, first, end, step, trips);
}

// Opens an IF that |place| is before the end of |axis|, if that has one; -1 is no axis.
static uint32_t open_place(pestle_emit_t* e, int32_t axis,
                           pestle_kir_id_t place) {
  if (axis < 0 || !axis_ends(e, (uint32_t)axis)) return 0;
  pestle_kir_id_t end = end_of(e, root_of(e->nest, (uint32_t)axis));
  pestle_kir_if(
      e->k, pestle_kir_scalar(e->k, PESTLE_OP_LT, place, end, PESTLE_KIR_NONE));
  return 1;
}

uint32_t pestle_emit_open_place(pestle_emit_t* e, const int32_t* axes,
                                const int64_t* extents, uint32_t count,
                                pestle_kir_id_t place) {
  uint32_t opened = 0;
  for (uint32_t i = count; i-- > 0;) {
    bool ends =
        extents[i] > 1 && axes[i] >= 0 && axis_ends(e, (uint32_t)axes[i]);
    if (ends) {
      pestle_kir_id_t at =
          pestle_kir_scalar_i(e->k, PESTLE_OP_REMAINDER, place, extents[i]);
      opened += open_place(e, axes[i], i ? at : place);
    }
    if (i && extents[i] > 1)
      place = pestle_kir_scalar_i(e->k, PESTLE_OP_DIVIDE, place, extents[i]);
  }
  return opened;
}

void pestle_emit_close_places(pestle_emit_t* e, uint32_t opened) {
  while (opened-- > 0)
    pestle_kir_end(e->k);
}

pestle_kir_id_t pestle_emit_fold_steps(pestle_emit_t* e, uint32_t stage,
                                       uint32_t axis, int64_t step,
                                       int64_t trips) {
  const pestle_expr_t* test = fold_test(e, stage);
  const pestle_affine_t* at = test ? test->args[0]->affine : NULL;
  bool alone = at && at->count == 1 && at->terms[0].coef == 1 &&
               at->terms[0].atom->kind == PESTLE_ATOM_AXIS &&
               at->terms[0].atom->axis == axis;
  if (!alone) return PESTLE_KIR_NONE;
  fold_end_t fold = {.end = test->args[1]};
  return steps_between(e, pestle_kir_index(e->k, at->constant),
                       fold_end_number(e, &fold), step, trips);
}
