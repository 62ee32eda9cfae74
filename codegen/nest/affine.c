// SPDX-License-Identifier: Apache-2.0
// Index forms: affine arithmetic that sees through floor division and remainder
// by constants. The two rules that make reshapes, splits and packed layouts
// vanish again:
//   div(c*q + r, c) = q          when 0 <= r < c
//   c*div(x, c) + mod(x, c) = x
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "codegen/nest/nest.h"

// Also what everything here gives back once the nest has failed: forms and
// atoms that were made before may lack parts then.
static const pestle_affine_t zero_affine = {0, 0};

static pestle_affine_t* affine_alloc(pestle_nest_t* nest, size_t terms) {
  pestle_affine_t* affine = pestle_arena_alloc_zero(
      nest->arena, sizeof(pestle_affine_t) + terms * sizeof(pestle_term_t),
      _Alignof(pestle_affine_t));
  if (!affine) pestle_nest_fail_memory(nest);
  return affine;
}

bool pestle_affine_equal(const pestle_affine_t* a, const pestle_affine_t* b) {
  if (a == b) return true;
  if (a->constant != b->constant || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; ++i) {
    if (a->terms[i].coef != b->terms[i].coef) return false;
    if (a->terms[i].atom != b->terms[i].atom) return false;
  }
  return true;
}

int32_t pestle_affine_is_axis(const pestle_affine_t* a) {
  if (a->count != 1 || a->constant || a->terms[0].coef != 1) return -1;
  const pestle_atom_t* atom = a->terms[0].atom;
  return atom->kind == PESTLE_ATOM_AXIS ? (int32_t)atom->axis : -1;
}

static bool atom_equal(const pestle_atom_t* a, const pestle_atom_t* b) {
  if (a->kind != b->kind) return false;
  switch ((pestle_atom_kind_t)a->kind) {
    case PESTLE_ATOM_AXIS:
      return a->axis == b->axis;
    case PESTLE_ATOM_DIV:
    case PESTLE_ATOM_MOD:
      return a->divisor == b->divisor &&
             pestle_affine_equal(a->affine, b->affine);
    case PESTLE_ATOM_VALUE:
      return a->value == b->value && a->lo == b->lo && a->hi == b->hi;
  }
  return false;
}

// Atoms are interned, so that equal forms have equal pointers.
static const pestle_atom_t* intern(pestle_nest_t* nest, pestle_atom_t atom) {
  for (size_t i = 0; i < nest->atoms.size; ++i) {
    if (atom_equal(nest->atoms.data[i], &atom)) return nest->atoms.data[i];
  }
  pestle_atom_t* made = PESTLE_ARENA_NEW(nest->arena, pestle_atom_t);
  if (!made) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  *made = atom;
  made->id = (uint32_t)nest->atoms.size;
  if (!pestle_vec_push(&nest->atoms, made)) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  return made;
}

static const pestle_affine_t* from_atom(pestle_nest_t* nest,
                                        pestle_atom_t atom) {
  const pestle_atom_t* a = intern(nest, atom);
  pestle_affine_t* affine = affine_alloc(nest, 1);
  if (!affine || !a) return &zero_affine;
  affine->count = 1;
  affine->terms[0] = (pestle_term_t){1, a};
  return affine;
}

const pestle_atom_t* pestle_affine_atom(pestle_nest_t* nest,
                                        pestle_atom_t atom) {
  return intern(nest, atom);
}

const pestle_affine_t* pestle_affine_make(pestle_nest_t* nest, int64_t constant,
                                          const pestle_term_t* terms,
                                          uint32_t count) {
  if (nest->failed) return &zero_affine;
  pestle_affine_t* affine = affine_alloc(nest, count);
  if (!affine) return &zero_affine;
  affine->constant = constant;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t at = affine->count++;
    for (; at && affine->terms[at - 1].atom->id > terms[i].atom->id; --at) {
      affine->terms[at] = affine->terms[at - 1];
    }
    affine->terms[at] = terms[i];
  }
  return affine;
}

const pestle_affine_t* pestle_affine_const(pestle_nest_t* nest, int64_t value) {
  if (value == 0) return &zero_affine;
  pestle_affine_t* affine = affine_alloc(nest, 0);
  if (!affine) return &zero_affine;
  affine->constant = value;
  return affine;
}

const pestle_affine_t* pestle_affine_axis(pestle_nest_t* nest, uint32_t axis) {
  if (nest->failed) return &zero_affine;
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  // A vector axis stays visible in its one-lane tails: accesses are classed by
  // their step along it.
  bool vector = a->mark == PESTLE_MARK_VECTOR && a->full_extent > 1;
  if (a->extent == 1 && !vector) return &zero_affine;
  return from_atom(nest,
                   (pestle_atom_t){.kind = PESTLE_ATOM_AXIS, .axis = axis});
}

const pestle_affine_t* pestle_affine_value(pestle_nest_t* nest,
                                           const pestle_expr_t* value,
                                           int64_t lo, int64_t hi) {
  if (lo == hi) return pestle_affine_const(nest, lo);
  return from_atom(
      nest, (pestle_atom_t){
                .kind = PESTLE_ATOM_VALUE, .value = value, .lo = lo, .hi = hi});
}

// a[i] + b[j] where one is coef*c*DIV(x, c) and the other coef*MOD(x, c).
static bool pair_of(const pestle_term_t* div, const pestle_term_t* mod) {
  return div->atom->kind == PESTLE_ATOM_DIV &&
         mod->atom->kind == PESTLE_ATOM_MOD &&
         div->atom->divisor == mod->atom->divisor &&
         div->coef == mod->coef * mod->atom->divisor &&
         pestle_affine_equal(div->atom->affine, mod->atom->affine);
}

static const pestle_affine_t* without(pestle_nest_t* nest,
                                      const pestle_affine_t* a, uint32_t i,
                                      uint32_t j) {
  pestle_affine_t* affine = affine_alloc(nest, a->count);
  if (!affine) return &zero_affine;
  affine->constant = a->constant;
  for (uint32_t k = 0; k < a->count; ++k) {
    if (k != i && k != j) affine->terms[affine->count++] = a->terms[k];
  }
  return affine;
}

static const pestle_affine_t* recombine(pestle_nest_t* nest,
                                        const pestle_affine_t* a) {
  for (uint32_t i = 0; i < a->count; ++i) {
    if (a->terms[i].atom->kind != PESTLE_ATOM_DIV) continue;
    for (uint32_t j = 0; j < a->count; ++j) {
      if (!pair_of(&a->terms[i], &a->terms[j])) continue;
      const pestle_affine_t* whole =
          pestle_affine_scale(nest, a->terms[i].atom->affine, a->terms[j].coef);
      return pestle_affine_add(nest, without(nest, a, i, j), whole);
    }
  }
  return a;
}

const pestle_affine_t* pestle_affine_add(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         const pestle_affine_t* b) {
  if (nest->failed) return &zero_affine;
  if (a->count == 0 && a->constant == 0) return b;
  if (b->count == 0 && b->constant == 0) return a;
  pestle_affine_t* affine = affine_alloc(nest, a->count + b->count);
  if (!affine) return &zero_affine;
  affine->constant = a->constant + b->constant;
  uint32_t i = 0, j = 0;
  while (i < a->count || j < b->count) {
    pestle_term_t t;
    if (j == b->count ||
        (i < a->count && a->terms[i].atom->id < b->terms[j].atom->id)) {
      t = a->terms[i++];
    } else if (i == a->count || b->terms[j].atom->id < a->terms[i].atom->id) {
      t = b->terms[j++];
    } else {
      t = a->terms[i++];
      t.coef += b->terms[j++].coef;
    }
    if (t.coef) affine->terms[affine->count++] = t;
  }
  return recombine(nest, affine);
}

const pestle_affine_t* pestle_affine_scale(pestle_nest_t* nest,
                                           const pestle_affine_t* a,
                                           int64_t factor) {
  if (nest->failed) return &zero_affine;
  if (factor == 0) return &zero_affine;
  if (factor == 1) return a;
  pestle_affine_t* affine = affine_alloc(nest, a->count);
  if (!affine) return &zero_affine;
  affine->constant = a->constant * factor;
  affine->count = a->count;
  for (uint32_t i = 0; i < a->count; ++i) {
    affine->terms[i] =
        (pestle_term_t){a->terms[i].coef * factor, a->terms[i].atom};
  }
  return affine;
}

static pestle_range_t atom_range(const pestle_nest_t* nest,
                                 const pestle_atom_t* atom) {
  switch ((pestle_atom_kind_t)atom->kind) {
    case PESTLE_ATOM_AXIS: {
      int64_t extent = nest->axes.data[atom->axis].extent;
      return (pestle_range_t){0, extent > 0 ? extent - 1 : 0};
    }
    case PESTLE_ATOM_DIV: {
      pestle_range_t r = pestle_affine_range(nest, atom->affine);
      return (pestle_range_t){pestle_floor_div(r.lo, atom->divisor),
                              pestle_floor_div(r.hi, atom->divisor)};
    }
    case PESTLE_ATOM_MOD: {
      pestle_range_t r = pestle_affine_range(nest, atom->affine);
      if (r.lo >= 0 && r.hi < atom->divisor) return r;
      return (pestle_range_t){0, atom->divisor - 1};
    }
    case PESTLE_ATOM_VALUE:
      return (pestle_range_t){atom->lo, atom->hi};
  }
  return (pestle_range_t){0, 0};
}

pestle_range_t pestle_affine_range(const pestle_nest_t* nest,
                                   const pestle_affine_t* a) {
  if (nest->failed) return (pestle_range_t){0};
  pestle_range_t sum = {a->constant, a->constant};
  for (uint32_t i = 0; i < a->count; ++i) {
    pestle_range_t r = atom_range(nest, a->terms[i].atom);
    int64_t coef = a->terms[i].coef;
    sum.lo += coef * (coef > 0 ? r.lo : r.hi);
    sum.hi += coef * (coef > 0 ? r.hi : r.lo);
  }
  return sum;
}

// Splits |a| into c * quotient + rest.
static void split_multiples(pestle_nest_t* nest, const pestle_affine_t* a,
                            int64_t c, const pestle_affine_t** out_quotient,
                            const pestle_affine_t** out_rest) {
  pestle_affine_t* q = affine_alloc(nest, a->count);
  pestle_affine_t* r = affine_alloc(nest, a->count);
  *out_quotient = *out_rest = &zero_affine;
  if (!q || !r) return;
  q->constant = pestle_floor_div(a->constant, c);
  r->constant = a->constant - q->constant * c;
  for (uint32_t i = 0; i < a->count; ++i) {
    pestle_term_t t = a->terms[i];
    if (t.coef % c == 0) {
      t.coef /= c;
      q->terms[q->count++] = t;
    } else {
      r->terms[r->count++] = t;
    }
  }
  *out_quotient = q;
  *out_rest = r;
}

// A g > 1 that divides |c| such that |a| = g*x + b with 0 <= b < g for every
// value of b's terms: floor((g*x + b) / (g*d)) = floor(x / d). 1 if none.
static int64_t common_factor(pestle_nest_t* nest, const pestle_affine_t* a,
                             int64_t c) {
  int64_t best = 1;
  for (uint32_t i = 0; i < a->count; ++i) {
    int64_t g = pestle_gcd(c, a->terms[i].coef);
    if (g <= best) continue;
    const pestle_affine_t *x, *b;
    split_multiples(nest, a, g, &x, &b);
    pestle_range_t range = pestle_affine_range(nest, b);
    if (range.lo >= 0 && range.hi < g) best = g;
  }
  return best;
}

// |rest| and a multiple of |divisor|, which together are not negative, so that
// machines, which round towards zero, agree: floor((r + k*c) / c) = floor(r / c)
// + k. The multiple is |*out_times| * |divisor|.
static const pestle_affine_t* lift(pestle_nest_t* nest,
                                   const pestle_affine_t* rest, int64_t divisor,
                                   int64_t* out_times) {
  int64_t lo = pestle_floor_div(pestle_affine_range(nest, rest).lo, divisor);
  *out_times = lo < 0 ? -lo : 0;
  return pestle_affine_add(nest, rest,
                           pestle_affine_const(nest, *out_times * divisor));
}

const pestle_affine_t* pestle_affine_div(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         int64_t divisor) {
  if (nest->failed) return &zero_affine;
  if (divisor == 1) return a;
  const pestle_affine_t *q, *r;
  split_multiples(nest, a, divisor, &q, &r);
  pestle_range_t range = pestle_affine_range(nest, r);
  int64_t lo = pestle_floor_div(range.lo, divisor),
          hi = pestle_floor_div(range.hi, divisor);
  if (lo == hi)
    return pestle_affine_add(nest, q, pestle_affine_const(nest, lo));
  int64_t g = common_factor(nest, r, divisor);
  if (g > 1) {
    const pestle_affine_t *x, *b;
    split_multiples(nest, r, g, &x, &b);
    return pestle_affine_add(nest, q, pestle_affine_div(nest, x, divisor / g));
  }
  if (r->count == 1 && r->terms[0].coef == 1 && r->constant == 0 &&
      r->terms[0].atom->kind == PESTLE_ATOM_DIV) {
    const pestle_atom_t* inner = r->terms[0].atom;
    return pestle_affine_add(
        nest, q,
        pestle_affine_div(nest, inner->affine, inner->divisor * divisor));
  }
  int64_t times;
  r = lift(nest, r, divisor, &times);
  q = pestle_affine_add(nest, q, pestle_affine_const(nest, -times));
  return pestle_affine_add(
      nest, q,
      from_atom(nest,
                (pestle_atom_t){
                    .kind = PESTLE_ATOM_DIV, .affine = r, .divisor = divisor}));
}

const pestle_affine_t* pestle_affine_mod(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         int64_t divisor) {
  if (nest->failed) return &zero_affine;
  if (divisor == 1) return &zero_affine;
  const pestle_affine_t *q, *r;
  split_multiples(nest, a, divisor, &q, &r);
  pestle_range_t range = pestle_affine_range(nest, r);
  int64_t lo = pestle_floor_div(range.lo, divisor),
          hi = pestle_floor_div(range.hi, divisor);
  if (lo == hi) {
    return pestle_affine_add(nest, r, pestle_affine_const(nest, -lo * divisor));
  }
  int64_t g = common_factor(nest, r, divisor);
  if (g > 1) {
    // (g*x + b) mod (g*d) = g * (x mod d) + b
    const pestle_affine_t *x, *b;
    split_multiples(nest, r, g, &x, &b);
    return pestle_affine_add(
        nest, b,
        pestle_affine_scale(nest, pestle_affine_mod(nest, x, divisor / g), g));
  }
  int64_t times;
  r = lift(nest, r, divisor, &times);
  return from_atom(
      nest, (pestle_atom_t){
                .kind = PESTLE_ATOM_MOD, .affine = r, .divisor = divisor});
}

static const pestle_affine_t* substitute_atom(pestle_nest_t* nest,
                                              pestle_substitution_t* how,
                                              const pestle_atom_t* atom) {
  switch ((pestle_atom_kind_t)atom->kind) {
    case PESTLE_ATOM_AXIS:
      if (how->map && how->map[atom->axis]) return how->map[atom->axis];
      break;
    case PESTLE_ATOM_DIV:
      return pestle_affine_div(
          nest, pestle_affine_substitute(nest, how, atom->affine),
          atom->divisor);
    case PESTLE_ATOM_MOD:
      return pestle_affine_mod(
          nest, pestle_affine_substitute(nest, how, atom->affine),
          atom->divisor);
    case PESTLE_ATOM_VALUE:
      if (how->keep_values) break;
      return pestle_affine_value(nest,
                                 pestle_expr_substitute(nest, how, atom->value),
                                 atom->lo, atom->hi);
  }
  return from_atom(nest, *atom);
}

const pestle_affine_t* pestle_affine_substitute(pestle_nest_t* nest,
                                                pestle_substitution_t* how,
                                                const pestle_affine_t* a) {
  if (nest->failed) return &zero_affine;
  const pestle_affine_t* sum = pestle_affine_const(nest, a->constant);
  for (uint32_t i = 0; i < a->count; ++i) {
    const pestle_affine_t* part = substitute_atom(nest, how, a->terms[i].atom);
    sum = pestle_affine_add(nest, sum,
                            pestle_affine_scale(nest, part, a->terms[i].coef));
  }
  return sum;
}

static bool expr_has_axis(const pestle_expr_t* e, uint32_t axis);

static bool affine_has_axis(const pestle_affine_t* a, uint32_t axis) {
  for (uint32_t i = 0; i < a->count; ++i) {
    const pestle_atom_t* atom = a->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS && atom->axis == axis) return true;
    if (atom->affine && affine_has_axis(atom->affine, axis)) return true;
    if (atom->value && expr_has_axis(atom->value, axis)) return true;
  }
  return false;
}

static bool expr_has_axis(const pestle_expr_t* e, uint32_t axis) {
  if (e->affine && affine_has_axis(e->affine, axis)) return true;
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (affine_has_axis(e->index[i], axis)) return true;
  }
  if (e->guard && expr_has_axis(e->guard, axis)) return true;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i] && expr_has_axis(e->args[i], axis)) return true;
  }
  return false;
}

int64_t pestle_affine_coef(const pestle_affine_t* a, uint32_t axis,
                           bool* out_nested) {
  int64_t coef = 0;
  *out_nested = false;
  for (uint32_t i = 0; i < a->count; ++i) {
    const pestle_atom_t* atom = a->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS) {
      if (atom->axis == axis) coef = a->terms[i].coef;
    } else if ((atom->affine && affine_has_axis(atom->affine, axis)) ||
               (atom->value && expr_has_axis(atom->value, axis))) {
      *out_nested = true;
    }
  }
  return coef;
}

const pestle_affine_t* pestle_affine_flatten(
    pestle_nest_t* nest, const pestle_type_t* type,
    const pestle_affine_t* const* index) {
  if (nest->failed) return &zero_affine;
  const pestle_affine_t* flat = &zero_affine;
  for (int32_t d = 0; d < type->rank; ++d) {
    flat = pestle_affine_add(
        nest, pestle_affine_scale(nest, flat, type->dims[d]), index[d]);
  }
  return flat;
}
