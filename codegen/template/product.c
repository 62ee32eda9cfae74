// SPDX-License-Identifier: Apache-2.0
#include "codegen/template/product.h"

#include <string.h>

#include "base/bits.h"
#include "codegen/schedule/schedule.h"
#include "ir/dot_algorithm.h"

enum { RUN_BYTES = 16 };

// --- What an expression depends on ---

typedef struct look_t {
  const pestle_nest_t* nest;
  bool* axis;     // by axis: it stands somewhere below
  uint8_t* seen;  // by expression
  bool inputs;    // all reads are of arguments as they lie
} look_t;

static void look_expr(look_t* l, const pestle_expr_t* x);

static void look_affine(look_t* l, const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS) l->axis[atom->axis] = true;
    if (atom->affine) look_affine(l, atom->affine);
    if (atom->value) look_expr(l, atom->value);
  }
}

static void look_expr(look_t* l, const pestle_expr_t* x) {
  if (x->id < l->nest->expr_count) {
    if (l->seen[x->id]) return;
    l->seen[x->id] = 1;
  }
  if (x->kind == PESTLE_EXPR_READ) {
    const pestle_nest_tensor_t* t = &l->nest->tensors.data[x->i];
    // What a template has packed is packed for it.
    bool packed = t->pack && !l->nest->template.row;
    if (t->kind != PESTLE_TENSOR_INPUT || packed) l->inputs = false;
  }
  if (x->affine) look_affine(l, x->affine);
  for (uint32_t i = 0; i < x->index_count; ++i)
    look_affine(l, x->index[i]);
  if (x->guard) look_expr(l, x->guard);
  for (int i = 0; i < 3; ++i) {
    if (x->args[i]) look_expr(l, x->args[i]);
  }
}

static bool look(pestle_nest_t* nest, const pestle_expr_t* x, look_t* out) {
  *out = (look_t){.nest = nest, .inputs = true};
  out->axis = pestle_arena_alloc_zero(nest->arena, nest->axes.size + 1, 1);
  out->seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!out->axis || !out->seen) {
    pestle_nest_fail_memory(nest);
    return false;
  }
  look_expr(out, x);
  return true;
}

// --- Axes ---

static void add_axis(const pestle_nest_t* nest, uint32_t reduce, int32_t last,
                     pestle_product_axes_t* axes) {
  axes->reduce[axes->count] = reduce;
  axes->last[axes->count] = last;
  axes->extent[axes->count] = nest->axes.data[reduce].full_extent;
  axes->all *= axes->extent[axes->count++];
}

int32_t pestle_product_last_axis(const pestle_nest_t* nest,
                                 const pestle_expr_t* read, uint32_t d,
                                 int64_t extent) {
  const pestle_affine_t* at = read->index[d];
  if (extent == 1) return at->count || at->constant ? -2 : -1;
  int32_t axis = pestle_affine_is_axis(at);
  return axis >= 0 && nest->axes.data[axis].full_extent == extent ? axis : -2;
}

// All results are of sums: no axis of the last stage is left over.
static bool covers(const pestle_nest_t* nest, const pestle_nest_stage_t* y,
                   const pestle_product_t* p) {
  const pestle_product_axes_t* const kinds[3] = {&p->batch, &p->m, &p->n};
  for (uint32_t i = 0; i < y->root_count; ++i) {
    uint32_t found = 0;
    if (nest->axes.data[y->roots[i]].full_extent == 1) continue;
    for (int g = 0; g < 3; ++g) {
      for (uint32_t a = 0; a < kinds[g]->count; ++a)
        found += kinds[g]->last[a] == (int32_t)y->roots[i];
    }
    if (found != 1) return false;
  }
  return true;
}

static bool sort_axes(pestle_nest_t* nest, const look_t* a, const look_t* b,
                      pestle_product_t* p) {
  const pestle_nest_stage_t* f = pestle_nest_stage(nest, p->reduce);
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, p->last);
  const pestle_expr_t* read =
      pestle_schedule_find_read(nest, p->last, f->tensors[0]);
  if (y->is_reduction || p->reduce == p->last || !read || read->guard)
    return false;
  p->batch.all = p->m.all = p->n.all = p->k.all = 1;
  for (uint32_t i = 0; i < f->root_count; ++i) {
    uint32_t axis = f->roots[i];
    const pestle_nest_axis_t* x = &nest->axes.data[axis];
    if (!pestle_nest_axis_is_whole(x)) return false;
    if (i >= f->map_count) {
      add_axis(nest, axis, -1, &p->k);
      continue;
    }
    int32_t last = pestle_product_last_axis(nest, read, i, x->full_extent);
    if (last == -2) return false;
    bool both = a->axis[axis] && b->axis[axis];
    add_axis(nest, axis, last,
             both            ? &p->batch
             : b->axis[axis] ? &p->n
                             : &p->m);
  }
  return covers(nest, y, p);
}

// --- Runs ---

typedef struct runs_t {
  const pestle_nest_t* nest;
  uint32_t axis;
  bool unit, other;
  unsigned bytes;
} runs_t;

static void visit_run(void* user, const pestle_expr_t* x) {
  runs_t* r = user;
  bool nested;
  const pestle_nest_tensor_t* t = &r->nest->tensors.data[x->i];
  int64_t coef = pestle_affine_coef(x->index[0], r->axis, &nested);
  unsigned bytes = pestle_dtype_size(t->type.dtype);
  if (coef == 1) r->unit = true;
  if (nested || (coef != 0 && coef != 1)) r->other = true;
  if (bytes > r->bytes) r->bytes = bytes;
}

// Elements of a run along |axis|; 1: there are none.
static int64_t run_along(pestle_nest_t* nest, const pestle_product_side_t* side,
                         uint32_t axis) {
  runs_t r = {
      .nest = nest, .axis = axis, .bytes = pestle_dtype_size(side->dtype)};
  pestle_status_t status =
      pestle_expr_visit_reads(nest, side->value, visit_run, &r);
  if (status) pestle_nest_fail(nest, status);
  if (!r.unit || r.other) return 1;
  int64_t run = RUN_BYTES / r.bytes, extent = nest->axes.data[axis].full_extent;
  while (run > 1 && extent % run)
    run /= 2;
  return run;
}

static bool is_zero(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CONST && x->i == 0 && x->f == 0;
}

// The read whose elements are the operand's, and its guard.
static void find_copy(pestle_nest_t* nest, pestle_product_side_t* side,
                      uint32_t axis) {
  const pestle_expr_t *x = side->value, *guard = NULL;
  if (x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_SELECT &&
      is_zero(x->args[2])) {
    guard = x->args[0];
    x = x->args[1];
  }
  int64_t bytes = side->run * (int64_t)pestle_dtype_size(side->dtype);
  if (x->kind != PESTLE_EXPR_READ || (x->guard && !guard) || bytes < 4) return;
  const pestle_affine_t* at = x->index[0];
  bool aligned = at->constant % side->run == 0;
  for (uint32_t i = 0; i < at->count; ++i) {
    const pestle_term_t* t = &at->terms[i];
    bool own = t->atom->kind == PESTLE_ATOM_AXIS && t->atom->axis == axis;
    // Nothing that a run would have to look at is divided or looked up.
    bool nested = false;
    if (t->atom->affine) (void)pestle_affine_coef(at, axis, &nested);
    aligned = aligned && !nested && !t->atom->value &&
              (own || t->coef % side->run == 0);
  }
  look_t l;
  if (!aligned || (guard && (!look(nest, guard, &l) || l.axis[axis]))) return;
  side->read = x;
  side->guard = guard;
}

static const uint32_t* last_of(const pestle_product_axes_t* axes) {
  for (uint32_t i = axes->count; i-- > 0;) {
    if (axes->extent[i] > 1) return &axes->reduce[i];
  }
  return NULL;
}

static void find_runs(pestle_nest_t* nest, const pestle_product_axes_t* rows,
                      const pestle_product_axes_t* depth,
                      pestle_product_side_t* side) {
  const uint32_t *row = last_of(rows), *tap = last_of(depth);
  int64_t along_rows = row ? run_along(nest, side, *row) : 1;
  int64_t along_k = tap ? run_along(nest, side, *tap) : 1;
  side->along_k = along_k > along_rows;
  side->run = side->along_k ? along_k : along_rows;
  if (side->run > 1) find_copy(nest, side, side->along_k ? *tap : *row);
}

// Rows may have any order: the axis along which |side| lies side by side is the last.
static void order_rows(pestle_nest_t* nest, const pestle_product_side_t* side,
                       pestle_product_axes_t* rows) {
  const uint32_t* last = last_of(rows);
  if (!last || run_along(nest, side, *last) > 1) return;
  for (uint32_t i = 0; i < rows->count; ++i) {
    if (run_along(nest, side, rows->reduce[i]) == 1) continue;
    pestle_product_axes_t all = *rows;
    *rows = (pestle_product_axes_t){.all = 1};
    for (uint32_t j = 1; j <= all.count; ++j) {
      uint32_t from = (i + j) % all.count;
      add_axis(nest, all.reduce[from], all.last[from], rows);
    }
    return;
  }
}

// --- Is it one? ---

bool pestle_expr_widens_half(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CAST && x->dtype == PESTLE_F32 &&
         (x->args[0]->dtype == PESTLE_BF16 || x->args[0]->dtype == PESTLE_F16);
}

static bool is_byte(pestle_dtype_t dtype) {
  return dtype == PESTLE_I8 || dtype == PESTLE_U8;
}

// A cast of bytes to i32.
static bool widens_bytes(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CAST && x->dtype == PESTLE_I32 &&
         is_byte((pestle_dtype_t)x->args[0]->dtype);
}

// What matrix registers multiply: a cast of bf16 to f32, or of bytes to i32.
static bool is_matrix_factor(const pestle_expr_t* x) {
  if (x->kind != PESTLE_EXPR_CAST) return false;
  pestle_dtype_t from = (pestle_dtype_t)x->args[0]->dtype;
  return x->dtype == PESTLE_F32 ? from == PESTLE_BF16 : widens_bytes(x);
}

// A cast of 8-bit floats to f32, that are multiplied as such.
static bool widens_f8(const pestle_expr_t* x, uint8_t factors) {
  if (factors != PESTLE_FACTORS_F8 || x->kind != PESTLE_EXPR_CAST) return false;
  pestle_dtype_t from = (pestle_dtype_t)x->args[0]->dtype;
  return x->dtype == PESTLE_F32 && pestle_dot_is_f8(from);
}

// |factors| of the stage, where those count.
static bool take_side(const pestle_expr_t* x, uint8_t units, uint8_t factors,
                      pestle_product_side_t* side) {
  bool matrices = units == PESTLE_UNITS_MMA || units == PESTLE_UNITS_MMA8;
  bool narrow = units == PESTLE_UNITS_AMX
                    ? is_matrix_factor(x)
                    : matrices && pestle_expr_widens_half(x);
  if (units == PESTLE_UNITS_MMA)
    narrow = narrow || widens_bytes(x) || widens_f8(x, factors);
  bool cut = units == PESTLE_UNITS_MMA && factors == PESTLE_FACTORS_TF32 &&
             x->dtype == PESTLE_F32;
  if ((units == PESTLE_UNITS_MMA || units == PESTLE_UNITS_AMX) && !narrow &&
      !cut) {
    return false;
  }
  if (narrow) x = x->args[0];
  side->value = x;
  side->dtype = (pestle_dtype_t)x->dtype;
  return true;
}

bool pestle_expr_depends(pestle_nest_t* nest, const pestle_expr_t* x,
                         uint32_t axis) {
  look_t l;
  return !look(nest, x, &l) || l.axis[axis];
}

bool pestle_product_side(pestle_nest_t* nest, const pestle_expr_t* x,
                         uint8_t units, const pestle_product_axes_t* rows,
                         const pestle_product_axes_t* depth,
                         pestle_product_side_t* out) {
  look_t l;
  *out = (pestle_product_side_t){.run = 1};
  if (!take_side(x, units, 0, out) || !look(nest, x, &l) || !l.inputs ||
      (units == PESTLE_UNITS_MMA && is_byte(out->dtype))) {
    return false;
  }
  find_runs(nest, rows, depth, out);
  return !nest->failed;
}

bool pestle_product_is_sum(const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->is_reduction ? s->values[0] : NULL;
  return x && s->reduce == PESTLE_OP_ADD && !s->combine &&
         s->value_count == 1 && s->root_count > s->map_count &&
         x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_MULTIPLY &&
         x->dtype == s->acc_dtype && pestle_dtype_size(s->acc_dtype) >= 4 &&
         pestle_dtype_is(s->acc_dtype, PESTLE_KIND_REAL) &&
         is_zero(s->inits[0]);
}

bool pestle_product_find(pestle_nest_t* nest, uint32_t reduce, uint8_t units,
                         pestle_product_t* out) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, reduce);
  *out = (pestle_product_t){.reduce = reduce,
                            .last = (uint32_t)nest->stages.size - 1};
  if (!pestle_product_is_sum(s)) return false;
  const pestle_expr_t* const* x = s->values[0]->args;
  out->sums = s->acc_dtype;
  bool ints = (units == PESTLE_UNITS_AMX || units == PESTLE_UNITS_MMA) &&
              out->sums == PESTLE_I32;
  bool mixes = units == PESTLE_UNITS_MMA8 || units == PESTLE_UNITS_AMX ||
               ints || s->factors == PESTLE_FACTORS_F8;
  if ((units && out->sums != PESTLE_F32 && !ints) ||
      !take_side(x[0], units, s->factors, &out->a) ||
      !take_side(x[1], units, s->factors, &out->b) ||
      (!mixes && out->a.dtype != out->b.dtype)) {
    return false;
  }
  look_t a, b;
  if (!look(nest, x[0], &a) || !look(nest, x[1], &b) || !a.inputs ||
      !b.inputs || !sort_axes(nest, &a, &b, out)) {
    return false;
  }
  // Neighbours in memory are columns.
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, out->last);
  for (uint32_t i = 0; i < out->m.count && y->root_count; ++i) {
    if (out->m.last[i] != (int32_t)y->roots[y->root_count - 1]) continue;
    pestle_product_side_t side = out->a;
    pestle_product_axes_t axes = out->m;
    out->a = out->b, out->b = side;
    out->m = out->n, out->n = axes;
    break;
  }
  if (units != PESTLE_UNITS_AMX) order_rows(nest, &out->a, &out->m);
  find_runs(nest, &out->m, &out->k, &out->a);
  find_runs(nest, &out->n, &out->k, &out->b);
  return !nest->failed;
}
