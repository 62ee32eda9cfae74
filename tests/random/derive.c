// SPDX-License-Identifier: Apache-2.0
// A graph's derivatives and its batched form, by the evaluator, against what they must be:
//
//   jvp        the differences of the function, where it is smooth
//   vjp        <c, J t> = <J^T c, t>, complex numbers by the real part of their products
//   vmap       the function on one element after the other
//   second     jvp and vjp of the vjp against one another; vmap of the vjp and the vjp of
//              the vmap as those of the function
//
// Graphs have f64, c128, integers and flags, so that what is wrong is no rounding. Inputs
// are moved off the few values that they have, where many functions jump. An error other
// than UNSUPPORTED is a failure, and so is one without the sentence.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ref/ref.h"
#include "pestle/transform.h"
#include "random/random.h"

enum { MOST = 400, BATCH = 3 };

// What a differentiated graph is; |text| says what is wrong first.
typedef struct derive_t {
  graph_t* g;
  outcome_t outcome;
  char* text;
  size_t size;
  uint64_t random;
} derive_t;

// Arrays of a function's arguments or results.
typedef struct arrays_t {
  size_t count;
  pestle_type_t type[MOST];
  void* data[MOST];
} arrays_t;

static double uniform(derive_t* d) {
  d->random = d->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(d->random >> 11) * 0x1p-53;
}

__attribute__((format(printf, 2, 3))) static void fail(derive_t* d,
                                                       const char* form, ...) {
  va_list list;
  if (d->outcome == DIFFERENT) return;
  d->outcome = DIFFERENT;
  va_start(list, form);
  vsnprintf(d->text, d->size, form, list);
  va_end(list);
}

// --- Arrays ---

static bool is_smooth(const pestle_type_t* type) {
  return pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
}

// Floats that are no doubles come from rows that make some of their own.
static bool is_coarse_type(const pestle_type_t* type) {
  return is_smooth(type) && pestle_dtype_part(type->dtype) != PESTLE_F64;
}

// Doubles of a smooth one.
static size_t doubles(const pestle_type_t* type) {
  return (size_t)pestle_type_count(type) *
         (pestle_type_is_complex(type) ? 2 : 1);
}

static void* put(arrays_t* a, const pestle_type_t* type, const void* data) {
  size_t bytes = pestle_type_bytes(type);
  if (a->count == MOST) exit(3);
  void* to = calloc(bytes + 16, 1);
  if (data) memcpy(to, data, bytes);
  a->type[a->count] = *type;
  a->data[a->count++] = to;
  return to;
}

static void append(arrays_t* a, const arrays_t* b, size_t from) {
  for (size_t i = from; i < b->count; ++i)
    put(a, &b->type[i], b->data[i]);
}

static void clear(arrays_t* a) {
  for (size_t i = 0; i < a->count; ++i)
    free(a->data[i]);
  a->count = 0;
}

// What the entry of |module| makes of |in|.
static bool run(derive_t* d, pestle_module_t* module, const arrays_t* in,
                arrays_t* out) {
  const pestle_function_t* f = pestle_module_entry(module);
  const pestle_node_t* last = f->body->block->last;
  out->count = 0;
  if (f->body->block->argument_count != in->count) {
    fail(d, "%u arguments, not %zu", f->body->block->argument_count, in->count);
    return false;
  }
  for (uint32_t i = 0; i < last->operand_count; ++i)
    put(out, pestle_node_operand(last, i)->type, NULL);
  pestle_status_t status = pestle_ref_evaluate_function(
      pestle_allocator_system(), f, (const void* const*)in->data, out->data);
  if (!status) return true;
  bool is_refused = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED;
  char text[512];
  pestle_status_format(status, text, sizeof(text));
  pestle_status_release(status);
  if (!is_refused) fail(d, "evaluated: %s", text);
  clear(out);
  return false;
}

// A random direction for each smooth one of |like|, from |from| on.
static void directions(derive_t* d, const arrays_t* like, size_t from,
                       arrays_t* out) {
  for (size_t i = from; i < like->count; ++i) {
    if (!is_smooth(&like->type[i])) continue;
    double* x = put(out, &like->type[i], NULL);
    for (size_t k = 0; k < doubles(&like->type[i]); ++k)
      x[k] = 2 * uniform(d) - 1;
  }
}

// Zero in |directions| of |y| where that is no number, which has no derivative: a minimum
// over it may take either side's.
static void leave_out_nan(const arrays_t* y, arrays_t* directions) {
  size_t next = 0;
  for (size_t i = 0; i < y->count; ++i) {
    if (!is_smooth(&y->type[i])) continue;
    const double* from = y->data[i];
    double* to = directions->data[next++];
    size_t parts = pestle_type_is_complex(&y->type[i]) ? 2 : 1;
    for (size_t k = 0; k < doubles(&y->type[i]); ++k) {
      size_t first = k - k % parts;
      if (isnan(from[first]) || isnan(from[first + parts - 1])) to[k] = 0;
    }
  }
}

// a + h t.
static void move(const arrays_t* a, const arrays_t* t, double h,
                 arrays_t* out) {
  size_t next = 0;
  out->count = 0;
  append(out, a, 0);
  for (size_t i = 0; i < a->count; ++i) {
    if (!is_smooth(&a->type[i])) continue;
    double* x = out->data[i];
    const double* y = t->data[next++];
    for (size_t k = 0; k < doubles(&a->type[i]); ++k)
      x[k] += h * y[k];
  }
}

// --- What differences say nothing of ---

// At a bound clamp has no derivative, by convention, and bounds that are computed may be
// the value itself or one another; a region that is not associative gives what the order
// makes of it.
static bool is_unsettled(const pestle_node_t* n) {
  if (n->op == PESTLE_OP_CLAMP) {
    return !pestle_value_constant(pestle_node_operand(n, 0)) ||
           !pestle_value_constant(pestle_node_operand(n, 2));
  }
  return n->op == PESTLE_OP_REDUCE && n->operand_count == 2 &&
         pestle_block_reduce_op(pestle_node_body(n, 0)) == PESTLE_OP_COUNT;
}

static bool has_unsettled(const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n))) {
      if (is_unsettled(n)) return true;
    }
  }
  return false;
}

// --- Transforms ---

typedef pestle_status_t (*transform_t)(pestle_module_t*,
                                       const pestle_transform_options_t*,
                                       pestle_module_t**);

// NULL: refused, with its sentence, or wrong.
static pestle_module_t* checked(derive_t* d, const char* what,
                                pestle_status_t status, pestle_module_t* out) {
  char text[1024];
  if (!status) status = pestle_module_verify(out);
  if (!status) return out;
  pestle_status_format(status, text, sizeof(text));
  bool is_refused = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED;
  pestle_status_release(status);
  if (!is_refused || strlen(text) < 40) fail(d, "%s: %s", what, text);
  if (out) pestle_module_release(out);
  return NULL;
}

static pestle_module_t* apply(derive_t* d, const char* what, transform_t f,
                              pestle_module_t* module) {
  pestle_module_t* out = NULL;
  pestle_status_t status = f(module, NULL, &out);
  return checked(d, what, status, out);
}

// --- Derivatives ---

// Re <a, b>, and the sum of the sizes of its terms.
static double inner(const arrays_t* a, size_t from, const arrays_t* b,
                    double* sizes) {
  double sum = 0;
  size_t next = 0;
  for (size_t i = from; i < a->count; ++i) {
    if (!is_smooth(&a->type[i])) continue;
    const double *x = a->data[i], *y = b->data[next++];
    bool pairs = pestle_type_is_complex(&a->type[i]);
    for (size_t k = 0; k < doubles(&a->type[i]); ++k) {
      double term = (pairs && k % 2 ? -1 : 1) * x[k] * y[k];
      sum += term;
      *sizes += fabs(term);
    }
  }
  return sum;
}

// |a| and |b| are equal, or were made with large numbers of which little is left.
static bool near(double a, double b, double sizes, double tolerance) {
  return !isfinite(a) || !isfinite(b) || !isfinite(sizes) || sizes > 1e60 ||
         fabs(a - b) <= tolerance * (1e-2 + sizes);
}

// The results that a derivative returns first.
static void check_primal(derive_t* d, const char* what, const arrays_t* y,
                         const arrays_t* got) {
  for (size_t i = 0; i < y->count; ++i) {
    if (!is_smooth(&y->type[i])) continue;
    const double *a = y->data[i], *b = got->data[i];
    double most = 1;
    for (size_t k = 0; k < doubles(&y->type[i]); ++k)
      most = isfinite(a[k]) ? fmax(most, fabs(a[k])) : INFINITY;
    for (size_t k = 0; k < doubles(&y->type[i]); ++k) {
      if (near(a[k], b[k], most, 1e-9)) continue;
      fail(d, "%s: result %zu [%zu] is %.17g, not %.17g", what, i, k, b[k],
           a[k]);
    }
  }
}

// Central differences of two steps that agree, about |y|, against the tangents |got| has
// from |from| on.
static void check_differences(derive_t* d, pestle_module_t* module,
                              const arrays_t* x, const arrays_t* t,
                              const arrays_t* y, const arrays_t* got,
                              size_t from) {
  static const double steps[] = {0x1p-15, -0x1p-15, 0x1p-16, -0x1p-16};
  static arrays_t at[4], moved;
  int made = 0;
  for (; made < 4; ++made) {
    move(x, t, steps[made], &moved);
    bool good = run(d, module, &moved, &at[made]);
    clear(&moved);
    if (!good) break;
  }
  for (size_t i = 0, next = from; made == 4 && i < at[0].count; ++i) {
    if (!is_smooth(&at[0].type[i])) continue;
    const double* v[4] = {at[0].data[i], at[1].data[i], at[2].data[i],
                          at[3].data[i]};
    const double* j = got->data[next++];
    double most = 1;
    for (size_t k = 0; k < doubles(&at[0].type[i]); ++k) {
      most = fmax(most, fmax(fabs(v[0][k]), fabs(j[k])));
    }
    for (size_t k = 0; k < doubles(&at[0].type[i]); ++k) {
      double wide = (v[0][k] - v[1][k]) / (2 * steps[0]);
      double fine = (v[2][k] - v[3][k]) / (2 * steps[2]);
      // From both sides too: a corner has no derivative.
      double right = (v[0][k] - v[2][k]) / steps[2];
      double left = (v[3][k] - v[1][k]) / steps[2];
      double size = 1e-3 * most + fabs(fine);
      // And at the place itself: what is sorted may be another element beside it.
      const double* here = y->data[i];
      double bend = (v[2][k] - 2 * here[k] + v[3][k]) / steps[2];
      if (!isfinite(most) || most > 1e6 || !isfinite(wide) ||
          fabs(fine) > 1e4 || fabs(wide - fine) > 1e-5 * size ||
          fabs(right - left) > 1e-2 * size || fabs(bend) > 1e-2 * size) {
        continue;
      }
      if (fabs(j[k] - fine) > 1e-3 * size) {
        fail(d, "jvp: result %zu [%zu] is %.10g, differences say %.10g", i, k,
             j[k], fine);
      }
    }
  }
  for (int i = 0; i <= made && i < 4; ++i)
    clear(&at[i]);
}

// jvp and vjp of |module| at |x| against one another. The vjp is the caller's.
static pestle_module_t* check_pair(derive_t* d, const char* what,
                                   pestle_module_t* module, const arrays_t* x,
                                   bool by_differences) {
  static arrays_t y, t, c, in, j, v;
  pestle_module_t* jvp = apply(d, what, pestle_module_jvp, module);
  pestle_module_t* vjp = apply(d, what, pestle_module_vjp, module);
  bool is_known = run(d, module, x, &y);
  t.count = c.count = in.count = j.count = v.count = 0;
  directions(d, x, 0, &t);
  directions(d, &y, 0, &c);
  leave_out_nan(&y, &c);
  append(&in, x, 0);
  append(&in, &t, 0);
  bool has_jvp = is_known && jvp && run(d, jvp, &in, &j);
  clear(&in);
  append(&in, x, 0);
  append(&in, &c, 0);
  bool has_vjp = is_known && vjp && run(d, vjp, &in, &v);
  if (has_jvp) check_primal(d, what, &y, &j);
  if (has_vjp) check_primal(d, what, &y, &v);
  if (has_jvp && has_vjp) {
    double sizes = 0, a = inner(&j, y.count, &c, &sizes);
    double b = inner(&v, y.count, &t, &sizes);
    if (!near(a, b, sizes, 1e-8)) {
      fail(d, "%s: <c, J t> = %.17g, <J^T c, t> = %.17g", what, a, b);
    }
  }
  if (has_jvp && by_differences)
    check_differences(d, module, x, &t, &y, &j, y.count);
  arrays_t* all[] = {&y, &t, &c, &in, &j, &v};
  for (int i = 0; i < 6; ++i)
    clear(all[i]);
  if (jvp) pestle_module_release(jvp);
  return vjp;
}

// --- Batches ---

static pestle_module_t* batched(derive_t* d, const char* what,
                                pestle_module_t* module, const arrays_t* x,
                                const bool* is_shared) {
  int64_t axes[MOST];
  pestle_module_t* out = NULL;
  pestle_vmap_options_t o = {.struct_size = sizeof(o),
                             .size = BATCH,
                             .argument_axes = axes,
                             .argument_axis_count = x->count};
  for (size_t i = 0; i < x->count; ++i)
    axes[i] = is_shared[i] ? PESTLE_NOT_BATCHED : 0;
  pestle_status_t status = pestle_module_vmap(module, &o, &out);
  return checked(d, what, status, out);
}

static bool same(const pestle_type_t* type, const void* a, const void* b) {
  const double *x = a, *y = b;
  double most = 1;
  if (!is_smooth(type)) return !memcmp(a, b, pestle_type_bytes(type));
  for (size_t k = 0; k < doubles(type); ++k)
    most = isfinite(x[k]) ? fmax(most, fabs(x[k])) : INFINITY;
  for (size_t k = 0; k < doubles(type); ++k) {
    if (!near(x[k], y[k], most, 1e-9)) return false;
  }
  return true;
}

// Integers and flags of element |s|: smaller by it where they stay above 0, so that what
// counts, or is a place, remains one.
static void vary(const pestle_type_t* type, void* data, int s) {
  int64_t count = pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t k = 0; k < count && !is_smooth(type); ++k) {
    int64_t n = 0;
    char* at = (char*)data + (size_t)k * size;
    memcpy(&n, at, size);
    if (size == 4) n = (int32_t)n;
    n = type->dtype == PESTLE_I1 ? (n + (k + s) % 2) % 2 : n > s ? n - s : n;
    memcpy(at, &n, size);
  }
}

// |module| batched, against it on each element.
static void check_batched(derive_t* d, const char* what,
                          pestle_module_t* module, const arrays_t* x) {
  static arrays_t sets[BATCH], in, got, one;
  bool is_shared[MOST];
  bool any = false;
  in.count = got.count = one.count = 0;
  for (size_t i = 0; i < x->count; ++i) {
    is_shared[i] = uniform(d) < 0.25;
    any |= !is_shared[i];
  }
  pestle_module_t* made = any ? batched(d, what, module, x, is_shared) : NULL;
  if (!made) return;
  for (int s = 0; s < BATCH; ++s) {
    static arrays_t t;
    t.count = 0;
    directions(d, x, 0, &t);
    for (size_t i = 0, next = 0; i < x->count; ++i) {
      if (!is_smooth(&x->type[i])) continue;
      size_t k = next++;
      if (is_shared[i]) memset(t.data[k], 0, pestle_type_bytes(&t.type[k]));
    }
    move(x, &t, 0.01, &sets[s]);
    clear(&t);
    for (size_t i = 0; i < x->count; ++i) {
      if (!is_shared[i]) vary(&x->type[i], sets[s].data[i], s);
    }
  }
  const pestle_block_t* body = pestle_module_entry(made)->body->block;
  for (size_t i = 0; i < x->count; ++i) {
    size_t bytes = pestle_type_bytes(&x->type[i]);
    char* to = put(&in, body->arguments[i]->type, NULL);
    for (int s = 0; s < (is_shared[i] ? 1 : BATCH); ++s)
      memcpy(to + (size_t)s * bytes, sets[s].data[i], bytes);
  }
  if (run(d, made, &in, &got)) {
    for (int s = 0; s < BATCH && run(d, module, &sets[s], &one); ++s) {
      for (size_t i = 0; i < one.count; ++i) {
        size_t bytes = pestle_type_bytes(&one.type[i]);
        const char* part = (const char*)got.data[i] + (size_t)s * bytes;
        if (same(&one.type[i], one.data[i], part)) continue;
        fail(d, "%s: result %zu of element %d is not that of the function",
             what, i, s);
      }
      clear(&one);
    }
  }
  for (int s = 0; s < BATCH; ++s)
    clear(&sets[s]);
  clear(&in);
  clear(&got);
  pestle_module_release(made);
}

// --- A graph ---

static void inputs_of(derive_t* d, arrays_t* x) {
  for (size_t i = 0; i < d->g->input_count; ++i) {
    const value_t* v = d->g->inputs[i];
    double* to = put(x, v->value->type, v->data);
    if (!is_smooth(v->value->type)) continue;
    for (size_t k = 0; k < doubles(v->value->type); ++k) {
      // Steps are to be small beside the numbers, and not too small.
      if (isfinite(to[k]) && fabs(to[k]) > 1e3) to[k] = fmod(to[k], 1e3);
      if (isfinite(to[k]))
        to[k] += (uniform(d) - 0.5) * 0.02 * (1 + fabs(to[k]));
    }
  }
}

// The vjp of |module|, a step deeper: |x| and random cotangents are its arguments.
static void go_deeper(derive_t* d, pestle_module_t* module,
                      pestle_module_t* vjp, const arrays_t* x) {
  static arrays_t y, more;
  y.count = more.count = 0;
  if (!run(d, module, x, &y)) return;
  append(&more, x, 0);
  directions(d, &y, 0, &more);
  clear(&y);
  if (uniform(d) < 0.5) {
    check_batched(d, "vmap of vjp", vjp, &more);
  } else {
    pestle_module_t* second = check_pair(d, "vjp of vjp", vjp, &more, false);
    if (second) pestle_module_release(second);
  }
  clear(&more);
}

// The vmap of |module|, all arguments batched alike, and its vjp.
static void batch_first(derive_t* d, pestle_module_t* module,
                        const arrays_t* x) {
  static arrays_t in;
  bool is_shared[MOST] = {false};
  in.count = 0;
  pestle_module_t* made = batched(d, "vmap", module, x, is_shared);
  if (!made) return;
  const pestle_block_t* body = pestle_module_entry(made)->body->block;
  for (size_t i = 0; i < x->count; ++i) {
    size_t bytes = pestle_type_bytes(&x->type[i]);
    char* to = put(&in, body->arguments[i]->type, NULL);
    for (int s = 0; s < BATCH; ++s)
      memcpy(to + (size_t)s * bytes, x->data[i], bytes);
  }
  pestle_module_t* vjp = check_pair(d, "vjp of vmap", made, &in, false);
  if (vjp) pestle_module_release(vjp);
  clear(&in);
  pestle_module_release(made);
}

outcome_t derive_graph(graph_t* g, char* text, size_t size) {
  derive_t d = {.g = g,
                .outcome = SAME,
                .text = text,
                .size = size,
                .random = g->seed * 2654435761u + 12345};
  static arrays_t x;
  x.count = 0;
  for (size_t i = 0; i < g->input_count; ++i) {
    if (is_coarse_type(g->inputs[i]->value->type)) return SAME;
  }
  for (size_t i = 0; i < g->output_count; ++i) {
    if (is_coarse_type(g->outputs[i]->value->type)) return SAME;
  }
  inputs_of(&d, &x);
  pestle_module_t* vjp =
      check_pair(&d, "vjp", g->module, &x, !has_unsettled(g->module));
  check_batched(&d, "vmap", g->module, &x);
  if (vjp && d.outcome == SAME) go_deeper(&d, g->module, vjp, &x);
  if (d.outcome == SAME && g->seed % 3 == 0) batch_first(&d, g->module, &x);
  if (vjp) pestle_module_release(vjp);
  clear(&x);
  return d.outcome;
}
