// SPDX-License-Identifier: Apache-2.0
// Affine forms and guards: see kir_range.h.
#include "base/bits.h"
#include "codegen/kir/kir_range.h"

void pestle_kir_form_init(pestle_kir_form_t* out_form) {
  out_form->ok = true;
  out_form->count = 0;
  out_form->constant = 0;
}

void pestle_kir_form_add_atom(uint32_t atom, int64_t coef,
                              pestle_kir_form_t* form) {
  for (unsigned i = 0; i < form->count; ++i) {
    if (form->terms[i].atom != atom) continue;
    int64_t sum;
    if (__builtin_add_overflow(form->terms[i].coef, coef, &sum)) {
      form->ok = false;
    } else if (sum == 0) {
      form->terms[i] = form->terms[--form->count];
    } else {
      form->terms[i].coef = sum;
    }
    return;
  }
  if (coef == 0) return;
  if (form->count == PESTLE_KIR_FORM_TERMS) {
    form->ok = false;
    return;
  }
  form->terms[form->count].atom = atom;
  form->terms[form->count++].coef = coef;
}

static void add_constant(int64_t value, int64_t coef, pestle_kir_form_t* form) {
  int64_t product;
  if (__builtin_mul_overflow(value, coef, &product) ||
      __builtin_add_overflow(form->constant, product, &form->constant)) {
    form->ok = false;
  }
}

void pestle_kir_form_add_form(const pestle_kir_form_t* other, int64_t coef,
                              pestle_kir_form_t* form) {
  if (!other->ok) form->ok = false;
  add_constant(other->constant, coef, form);
  for (unsigned i = 0; i < other->count; ++i) {
    int64_t product;
    if (__builtin_mul_overflow(other->terms[i].coef, coef, &product)) {
      form->ok = false;
      return;
    }
    pestle_kir_form_add_atom(other->terms[i].atom, product, form);
  }
}

// A constant operand of |inst|, and the other one.
static bool constant_operand(const pestle_kir_t* k,
                             const pestle_kir_inst_t* inst, int64_t* out_value,
                             uint32_t* out_other) {
  for (int a = 1; a >= 0; --a) {
    const pestle_kir_inst_t* operand = pestle_kir_inst(k, inst->arg[a]);
    if (operand->op != PESTLE_KIR_CONST) continue;
    *out_value = pestle_kir_const_int(operand);
    *out_other = inst->arg[1 - a];
    return true;
  }
  return false;
}

static void add_at_depth(const pestle_kir_ranges_t* r, uint32_t id,
                         int64_t coef, unsigned depth,
                         pestle_kir_form_t* form) {
  const pestle_kir_t* k = r->k;
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  int64_t value, product;
  uint32_t other;
  pestle_op_t op;
  if (!form->ok) return;
  if (inst->op == PESTLE_KIR_CONST) {
    add_constant(pestle_kir_const_int(inst), coef, form);
    return;
  }
  if (inst->op == PESTLE_KIR_IOTA) {
    pestle_kir_form_add_atom(PESTLE_KIR_LANE_ATOM, coef, form);
    return;
  }
  bool through = r->fact.data[id].exact && depth < 64;
  if (through &&
      (inst->op == PESTLE_KIR_SPLAT || inst->op == PESTLE_KIR_CAST)) {
    add_at_depth(r, inst->arg[0], coef, depth + 1, form);
  } else if (through && inst->op == PESTLE_KIR_MADI &&
             !__builtin_mul_overflow((int64_t)(int32_t)inst->arg[1], coef,
                                     &product)) {
    add_at_depth(r, inst->arg[0], product, depth + 1, form);
    add_at_depth(r, inst->arg[2], coef, depth + 1, form);
  } else if (through && pestle_kir_is_scalar(inst->op, &op) &&
             (op == PESTLE_OP_ADD || op == PESTLE_OP_SUBTRACT)) {
    add_at_depth(r, inst->arg[0], coef, depth + 1, form);
    add_at_depth(r, inst->arg[1], op == PESTLE_OP_ADD ? coef : -coef, depth + 1,
                 form);
  } else if (through && inst->op == pestle_kir_code(PESTLE_OP_MULTIPLY) &&
             constant_operand(k, inst, &value, &other) &&
             !__builtin_mul_overflow(value, coef, &product)) {
    add_at_depth(r, other, product, depth + 1, form);
  } else {
    pestle_kir_form_add_atom(id, coef, form);
  }
}

void pestle_kir_form_add(const pestle_kir_ranges_t* r, uint32_t id,
                         int64_t coef, pestle_kir_form_t* form) {
  add_at_depth(r, id, coef, 0, form);
}

// --- Bounds ---

__extension__ typedef __int128 wide_t;

static int64_t narrow(wide_t value) {
  const wide_t known = (wide_t)1 << 61;
  if (value > known) return PESTLE_KIR_UNKNOWN;
  if (value < -known) return -PESTLE_KIR_UNKNOWN;
  return (int64_t)value;
}

static void atom_bounds(const pestle_kir_ranges_t* r, uint32_t atom,
                        unsigned lanes, int64_t* out_lo, int64_t* out_hi) {
  if (atom == PESTLE_KIR_LANE_ATOM) {
    *out_lo = 0;
    *out_hi = (int64_t)lanes - 1;
  } else {
    *out_lo = r->fact.data[atom].lo;
    *out_hi = r->fact.data[atom].hi;
  }
}

void pestle_kir_form_bounds(const pestle_kir_ranges_t* r,
                            const pestle_kir_form_t* form, unsigned lanes,
                            int64_t* out_lo, int64_t* out_hi) {
  *out_lo = -PESTLE_KIR_UNKNOWN;
  *out_hi = PESTLE_KIR_UNKNOWN;
  if (!form->ok) return;
  wide_t lo = form->constant, hi = form->constant;
  bool lo_known = true, hi_known = true;
  for (unsigned i = 0; i < form->count; ++i) {
    int64_t a, b, coef = form->terms[i].coef;
    atom_bounds(r, form->terms[i].atom, lanes, &a, &b);
    bool a_known = a > -PESTLE_KIR_UNKNOWN, b_known = b < PESTLE_KIR_UNKNOWN;
    lo_known = lo_known && (coef > 0 ? a_known : b_known);
    hi_known = hi_known && (coef > 0 ? b_known : a_known);
    lo += (wide_t)coef * (coef > 0 ? a : b);
    hi += (wide_t)coef * (coef > 0 ? b : a);
  }
  if (lo_known) *out_lo = narrow(lo);
  if (hi_known) *out_hi = narrow(hi);
}

// |form| is |scale| times what is asked for, which is at most |most|.
typedef struct bound_t {
  pestle_kir_form_t form;
  int64_t scale, most;
} bound_t;

static void multiply(pestle_kir_form_t* form, int64_t by) {
  pestle_kir_form_t product;
  pestle_kir_form_init(&product);
  pestle_kir_form_add_form(form, by, &product);
  *form = product;
}

// With a guard g <= 0, form = (form - s*g) + s*g <= form - s*g for s > 0: the
// form where that cancels term |i|, multiplied so that the guard divides it.
static bool apply_guard(const pestle_kir_form_t* guard, unsigned i,
                        const bound_t* bound, bound_t* out_bound) {
  int64_t has = bound->form.terms[i].coef;
  for (unsigned j = 0; j < guard->count; ++j) {
    int64_t coef = guard->terms[j].coef;
    if (guard->terms[j].atom != bound->form.terms[i].atom) continue;
    if ((has > 0) != (coef > 0)) return false;
    if (has == INT64_MIN || coef == INT64_MIN) return false;
    *out_bound = *bound;
    if (has % coef) {
      int64_t by = coef > 0 ? coef : -coef;
      multiply(&out_bound->form, by);
      if (__builtin_mul_overflow(bound->scale, by, &out_bound->scale)) {
        return false;
      }
    }
    if (!out_bound->form.ok) return false;
    int64_t times = out_bound->form.terms[i].coef / coef;
    pestle_kir_form_add_form(guard, -times, &out_bound->form);
    return out_bound->form.ok;
  }
  return false;
}

// The best of what |guards| guards make of |bound|: one that says nothing by
// itself may cancel a term for the next, which then says more.
static void try_guards(const pestle_kir_ranges_t* r, unsigned guards,
                       unsigned lanes, const bound_t* bound, bound_t* best) {
  for (size_t g = r->guard.size; g-- > 0;) {
    for (unsigned i = 0; i < bound->form.count; ++i) {
      int64_t lo, hi;
      bound_t next;
      if (!apply_guard(&r->guard.data[g], i, bound, &next)) continue;
      pestle_kir_form_bounds(r, &next.form, lanes, &lo, &hi);
      next.most =
          hi >= PESTLE_KIR_UNKNOWN ? hi : pestle_floor_div(hi, next.scale);
      if (next.most < best->most) {
        *best = next;
      } else if (guards > 1) {
        try_guards(r, guards - 1, lanes, &next, best);
      }
    }
  }
}

// Each pass takes the guard that says most: one that says less may cancel the
// term that the other needs.
int64_t pestle_kir_form_upper(const pestle_kir_ranges_t* r,
                              const pestle_kir_form_t* form, unsigned lanes) {
  int64_t lo, hi;
  pestle_kir_form_bounds(r, form, lanes, &lo, &hi);
  bound_t now = {*form, 1, hi};
  for (unsigned pass = 0; pass < 4; ++pass) {
    bound_t best = now;
    try_guards(r, 1, lanes, &now, &best);
    if (best.most >= now.most) try_guards(r, 2, lanes, &now, &best);
    if (best.most >= now.most) break;
    now = best;
  }
  return now.most;
}

int64_t pestle_kir_form_lower(const pestle_kir_ranges_t* r,
                              const pestle_kir_form_t* form, unsigned lanes) {
  pestle_kir_form_t negated;
  pestle_kir_form_init(&negated);
  pestle_kir_form_add_form(form, -1, &negated);
  return -pestle_kir_form_upper(r, &negated, lanes);
}

// --- Guards ---

// a - b + offset <= 0.
static void push(pestle_kir_ranges_t* r, uint32_t a, uint32_t b, int64_t offset,
                 int64_t lane_coef) {
  pestle_kir_form_t form;
  pestle_kir_form_init(&form);
  form.constant = offset;
  pestle_kir_form_add(r, a, 1, &form);
  pestle_kir_form_add(r, b, -1, &form);
  if (lane_coef) {
    pestle_kir_form_add_atom(PESTLE_KIR_LANE_ATOM, lane_coef, &form);
  }
  if (form.ok && !pestle_vec_push(&r->guard, form)) r->failed = true;
}

void pestle_kir_guards_push_between(pestle_kir_ranges_t* r,
                                    const pestle_kir_form_t* form,
                                    int64_t most) {
  pestle_kir_form_t above = *form, below;
  add_constant(most, -1, &above);
  pestle_kir_form_init(&below);
  pestle_kir_form_add_form(form, -1, &below);
  if (above.ok && !pestle_vec_push(&r->guard, above)) r->failed = true;
  if (below.ok && !pestle_vec_push(&r->guard, below)) r->failed = true;
}

static void push_compare(pestle_kir_ranges_t* r, pestle_op_t op, uint32_t a,
                         uint32_t b, bool sense) {
  bool less = op == PESTLE_OP_LT || op == PESTLE_OP_LE;
  bool more = op == PESTLE_OP_GT || op == PESTLE_OP_GE;
  bool strict = op == PESTLE_OP_LT || op == PESTLE_OP_GT;
  if (less || more) {
    if (!sense) strict = !strict;
    if (less == sense) push(r, a, b, strict, 0);
    if (less != sense) push(r, b, a, strict, 0);
  } else if ((op == PESTLE_OP_EQ) == sense) {
    push(r, a, b, 0, 0);
    push(r, b, a, 0, 0);
  }
}

void pestle_kir_guards_push(pestle_kir_ranges_t* r, uint32_t condition,
                            bool sense) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, condition);
  pestle_op_t op;
  if (inst->op == PESTLE_KIR_MASK) {
    if (sense) push(r, inst->arg[0], inst->arg[1], 1, 1);
    if (!sense) push(r, inst->arg[1], inst->arg[0], 0, -1);
  } else if (inst->op == PESTLE_KIR_SPLAT) {
    pestle_kir_guards_push(r, inst->arg[0], sense);
  } else if (pestle_kir_is_scalar(inst->op, &op)) {
    if (op == PESTLE_OP_NOT) {
      pestle_kir_guards_push(r, inst->arg[0], !sense);
    } else if ((op == PESTLE_OP_AND || op == PESTLE_OP_MULTIPLY ||
                op == PESTLE_OP_MINIMUM)
                   ? sense
                   : (op == PESTLE_OP_OR || op == PESTLE_OP_ADD ||
                      op == PESTLE_OP_MAXIMUM) &&
                         !sense) {
      pestle_kir_guards_push(r, inst->arg[0], sense);
      pestle_kir_guards_push(r, inst->arg[1], sense);
    } else if (pestle_kir_row(op)->rule == PESTLE_RULE_COMPARE) {
      unsigned type = pestle_kir_inst(r->k, inst->arg[0])->type;
      if (pestle_dtype_is((pestle_dtype_t)type, PESTLE_KIND_INT)) {
        push_compare(r, op, inst->arg[0], inst->arg[1], sense);
      }
    }
  }
}
