// SPDX-License-Identifier: Apache-2.0
// The forward interval analysis: one transfer function a row, and regions that
// refine what their condition compares.
#include "codegen/kir/kir_range.h"
#include "base/bits.h"

__extension__ typedef __int128 wide_t;
typedef pestle_kir_fact_range_t fact_t;

void pestle_kir_ranges_init(pestle_allocator_t allocator, const pestle_kir_t* k,
                            pestle_kir_ranges_t* out_ranges) {
  pestle_kir_ranges_t* r = out_ranges;
  *r = (pestle_kir_ranges_t){.k = k, .allocator = allocator};
  pestle_vec_init(&r->fact, allocator);
  pestle_vec_init(&r->guard, allocator);
  pestle_vec_init(&r->trail, allocator);
  pestle_vec_init(&r->frame, allocator);
  pestle_vec_init(&r->quotient, allocator);
  if (!pestle_vec_resize(&r->fact, (size_t)k->inst_count)) r->failed = true;
}

void pestle_kir_ranges_deinit(pestle_kir_ranges_t* r) {
  pestle_vec_deinit(&r->fact);
  pestle_vec_deinit(&r->guard);
  pestle_vec_deinit(&r->trail);
  pestle_vec_deinit(&r->frame);
  pestle_vec_deinit(&r->quotient);
}

bool pestle_kir_ranges_dead(const pestle_kir_ranges_t* r) {
  return r->frame.size && pestle_vec_last(&r->frame).dead;
}

static bool is_int_type(unsigned type) {
  return pestle_dtype_is((pestle_dtype_t)type,
                         PESTLE_KIND_INT | PESTLE_KIND_BOOL);
}

// All values of an integer type; of 64 bits nothing is known.
static fact_t whole(unsigned type) {
  const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)type);
  fact_t f = {-PESTLE_KIR_UNKNOWN, PESTLE_KIR_UNKNOWN, false, false};
  if (!is_int_type(type) || info->bits >= 64) return f;
  bool is_signed = info->kind == PESTLE_KIND_SIGNED;
  f.lo = is_signed ? -(INT64_C(1) << (info->bits - 1)) : 0;
  f.hi = f.lo + (INT64_C(1) << info->bits) - 1;
  return f;
}

static bool known(fact_t f) {
  return f.lo > -PESTLE_KIR_UNKNOWN && f.hi < PESTLE_KIR_UNKNOWN;
}

// [lo, hi] as a value of |type|, all of it when the arithmetic may have
// wrapped.
static fact_t result(unsigned type, wide_t lo, wide_t hi) {
  fact_t all = whole(type);
  const wide_t limit = (wide_t)1 << 61;
  wide_t least = all.lo < -limit ? -limit : all.lo;
  wide_t most = all.hi > limit ? limit : all.hi;
  if (pestle_dtype_info((pestle_dtype_t)type)->kind == PESTLE_KIND_UNSIGNED) {
    least = 0;
  }
  if (lo < least || hi > most) return all;
  return (fact_t){(int64_t)lo, (int64_t)hi, false, true};
}

static wide_t min_wide(wide_t a, wide_t b) {
  return a < b ? a : b;
}
static wide_t max_wide(wide_t a, wide_t b) {
  return a > b ? a : b;
}

static fact_t multiply(unsigned type, fact_t x, fact_t y) {
  if (!known(x) || !known(y)) return whole(type);
  wide_t a = (wide_t)x.lo * y.lo, b = (wide_t)x.lo * y.hi;
  wide_t c = (wide_t)x.hi * y.lo, d = (wide_t)x.hi * y.hi;
  return result(type, min_wide(min_wide(a, b), min_wide(c, d)),
                max_wide(max_wide(a, b), max_wide(c, d)));
}

static fact_t divide(unsigned type, fact_t x, fact_t y) {
  if (!known(x) || !known(y) || y.lo <= 0) return whole(type);
  return result(type, x.lo / (x.lo < 0 ? y.lo : y.hi),
                x.hi / (x.hi < 0 ? y.hi : y.lo));
}

// The sign of the dividend; below the divisor.
static fact_t remainder_of(unsigned type, fact_t x, fact_t y) {
  if (!known(y) || y.lo <= 0) return whole(type);
  int64_t most = y.hi - 1;
  fact_t f = {0, most, false, true};
  if (x.hi < most) f.hi = x.hi > 0 ? x.hi : 0;
  if (x.lo < 0) f.lo = x.lo > -most ? x.lo : -most;
  // Nothing is taken away from a dividend that is smaller than the divisor.
  if (x.lo >= 0 && x.hi < y.lo) f.lo = x.lo, f.hi = x.hi;
  return f;
}

static fact_t maximum(fact_t x, fact_t y) {
  return (fact_t){x.lo > y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi, false,
                  true};
}
static fact_t minimum(fact_t x, fact_t y) {
  return (fact_t){x.lo < y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi, false,
                  true};
}
static fact_t join(fact_t x, fact_t y) {
  return (fact_t){x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi, false,
                  true};
}

static fact_t shift(unsigned type, pestle_op_t op, fact_t x, fact_t by) {
  if (!known(x) || by.lo != by.hi || by.lo < 0 || by.lo >= 61) {
    return whole(type);
  }
  wide_t scale = (wide_t)1 << by.lo;
  if (op == PESTLE_OP_SHIFT_LEFT) {
    return result(type, x.lo * scale, x.hi * scale);
  }
  if (x.lo < 0 && op == PESTLE_OP_SHIFT_RIGHT_LOGICAL) return whole(type);
  return result(type, x.lo >> by.lo, x.hi >> by.lo);
}

static fact_t bits_and(unsigned type, fact_t x, fact_t y) {
  fact_t f = whole(type);
  if (x.lo < 0 && y.lo < 0) return f;
  f.lo = 0;
  if (x.lo >= 0) f.hi = x.hi;
  if (y.lo >= 0 && y.hi < f.hi) f.hi = y.hi;
  return f;
}

// Of OR and XOR: no bit is set above the highest of either.
static fact_t bits_or(unsigned type, fact_t x, fact_t y) {
  fact_t f = whole(type);
  if (x.lo < 0 || y.lo < 0) return f;
  int64_t most = x.hi > y.hi ? x.hi : y.hi;
  f.lo = 0;
  if (most < INT64_MAX / 4) {
    f.hi = (int64_t)pestle_next_pow2((uint64_t)most + 1) - 1;
  }
  return f;
}

// |value| where the select's condition is |sense|.
static fact_t chosen(pestle_kir_ranges_t* r, const pestle_kir_inst_t* inst,
                     uint32_t value, bool sense) {
  size_t mark = r->guard.size;
  pestle_kir_form_t form;
  pestle_kir_form_init(&form);
  pestle_kir_form_add(r, value, 1, &form);
  pestle_kir_guards_push(r, inst->arg[0], sense);
  fact_t f = r->fact.data[value];
  int64_t lo = pestle_kir_form_lower(r, &form, inst->lanes);
  int64_t hi = pestle_kir_form_upper(r, &form, inst->lanes);
  if (lo > f.lo) f.lo = lo;
  if (hi < f.hi) f.hi = hi;
  r->guard.size = mark;
  return f;
}

static fact_t select(pestle_kir_ranges_t* r, const pestle_kir_inst_t* inst) {
  fact_t yes = chosen(r, inst, inst->arg[1], true);
  fact_t no = chosen(r, inst, inst->arg[2], false);
  if (yes.lo > yes.hi) return no;
  if (no.lo > no.hi) return yes;
  return join(yes, no);
}

static fact_t scalar(pestle_kir_ranges_t* r, const pestle_kir_inst_t* inst,
                     pestle_op_t op) {
  unsigned type = inst->type;
  const fact_t* facts = r->fact.data;
  if (!is_int_type(type)) return whole(type);
  if (op == PESTLE_OP_SELECT) return select(r, inst);
  if (type == PESTLE_I1) return whole(type);
  unsigned arity = pestle_kir_row(op)->arity;
  fact_t x = facts[inst->arg[0]];
  fact_t y = arity > 1 ? facts[inst->arg[1]] : x;
  fact_t z = arity > 2 ? facts[inst->arg[2]] : x;
  if (op == PESTLE_OP_MAXIMUM) return maximum(x, y);
  if (op == PESTLE_OP_MINIMUM) return minimum(x, y);
  if (op == PESTLE_OP_CLAMP) return minimum(maximum(y, x), z);
  if (op == PESTLE_OP_REMAINDER) return remainder_of(type, x, y);
  if (op == PESTLE_OP_AND) return bits_and(type, x, y);
  if (op == PESTLE_OP_OR || op == PESTLE_OP_XOR) return bits_or(type, x, y);
  if (op == PESTLE_OP_SIGN) return result(type, x.lo < 0 ? -1 : 0, 1);
  if (!known(x) || !known(y)) return whole(type);
  if (op == PESTLE_OP_ADD) {
    return result(type, (wide_t)x.lo + y.lo, (wide_t)x.hi + y.hi);
  }
  if (op == PESTLE_OP_SUBTRACT) {
    return result(type, (wide_t)x.lo - y.hi, (wide_t)x.hi - y.lo);
  }
  if (op == PESTLE_OP_MULTIPLY) return multiply(type, x, y);
  if (op == PESTLE_OP_DIVIDE) return divide(type, x, y);
  if (op == PESTLE_OP_NEGATE) return result(type, -(wide_t)x.hi, -(wide_t)x.lo);
  if (op == PESTLE_OP_ABS) {
    wide_t most = max_wide(-(wide_t)x.lo, x.hi);
    return result(type, x.lo > 0 ? x.lo : x.hi < 0 ? -x.hi : 0, most);
  }
  if (op == PESTLE_OP_SHIFT_LEFT || op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC ||
      op == PESTLE_OP_SHIFT_RIGHT_LOGICAL) {
    return shift(type, op, x, y);
  }
  return whole(type);
}

static fact_t loop(const pestle_kir_ranges_t* r,
                   const pestle_kir_inst_t* inst) {
  fact_t lo = r->fact.data[inst->arg[0]], hi = r->fact.data[inst->arg[1]];
  int64_t step = (int32_t)inst->arg[2] > 0 ? (int32_t)inst->arg[2] : 1;
  fact_t f = {lo.lo, hi.hi - 1, inst->arg[3] == PESTLE_KIR_UNROLL, false};
  if (hi.hi >= PESTLE_KIR_UNKNOWN) f.hi = PESTLE_KIR_UNKNOWN;
  // The last value taken, not hi - 1: exact for tails.
  if (known(f) && lo.lo == lo.hi && hi.lo == hi.hi && hi.lo > lo.lo) {
    f.hi = lo.lo + (hi.lo - 1 - lo.lo) / step * step;
  }
  return f;
}

static fact_t cast(const pestle_kir_ranges_t* r,
                   const pestle_kir_inst_t* inst) {
  unsigned from = pestle_kir_inst(r->k, inst->arg[0])->type;
  fact_t x = r->fact.data[inst->arg[0]];
  if (!is_int_type(from) || inst->type == PESTLE_I1) return whole(inst->type);
  if (!known(x)) return whole(inst->type);
  return result(inst->type, x.lo, x.hi);
}

static fact_t transfer(pestle_kir_ranges_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  const fact_t* facts = r->fact.data;
  unsigned type = inst->type;
  pestle_op_t op;
  if (!is_int_type(type)) return whole(type);
  if (pestle_kir_is_scalar(inst->op, &op)) return scalar(r, inst, op);
  switch (inst->op) {
    case PESTLE_KIR_CONST: {
      int64_t value = pestle_kir_const_int(inst);
      return result(type, value, value);
    }
    case PESTLE_KIR_FOR:
      return loop(r, inst);
    case PESTLE_KIR_MADI: {
      int64_t imm = (int32_t)inst->arg[1];
      fact_t scaled =
          multiply(type, facts[inst->arg[0]], (fact_t){imm, imm, false, true});
      fact_t rest = facts[inst->arg[2]];
      if (!known(scaled) || !known(rest)) return whole(type);
      return result(type, (wide_t)scaled.lo + rest.lo,
                    (wide_t)scaled.hi + rest.hi);
    }
    case PESTLE_KIR_IOTA:
      return result(type, 0, inst->lanes - 1);
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT: {
      fact_t f = facts[inst->arg[0]];
      f.exact = true;
      return f;
    }
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_SHUFFLE:
      return join(facts[inst->arg[0]], facts[inst->arg[1]]);
    case PESTLE_KIR_REDUCE:
      if (inst->arg[1] == PESTLE_OP_MAXIMUM ||
          inst->arg[1] == PESTLE_OP_MINIMUM) {
        return facts[inst->arg[0]];
      }
      return whole(type);
    case PESTLE_KIR_CAST:
      return cast(r, inst);
    default:
      return whole(type);
  }
}

// Whether a value is constant once unrolled: loops say it themselves.
static bool is_fixed(const pestle_kir_ranges_t* r, uint32_t id, bool own) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  pestle_kir_op_info_t info = pestle_kir_info(inst->op);
  if (inst->op == PESTLE_KIR_FOR) return own;
  if (info.klass != 'P' || inst->op == PESTLE_KIR_PARAM) return false;
  for (int a = 0; info.operands[a]; ++a) {
    if (!pestle_kir_is_value(info.operands[a])) continue;
    if (inst->arg[a] == PESTLE_KIR_NONE) continue;
    if (!r->fact.data[inst->arg[a]].fixed) return false;
  }
  return true;
}

// --- Regions ---

static bool refine(pestle_kir_ranges_t* r, uint32_t id, int64_t lo,
                   int64_t hi) {
  fact_t* f = &r->fact.data[id];
  if (lo <= f->lo && hi >= f->hi) return false;
  pestle_kir_trail_t old = {id, f->lo, f->hi};
  if (!pestle_vec_push(&r->trail, old)) r->failed = true;
  if (lo > f->lo) f->lo = lo;
  if (hi < f->hi) f->hi = hi;
  return true;
}

static void undo(pestle_kir_ranges_t* r, size_t mark) {
  while (r->trail.size > mark) {
    pestle_kir_trail_t old = pestle_vec_pop(&r->trail);
    r->fact.data[old.id].lo = old.lo;
    r->fact.data[old.id].hi = old.hi;
  }
}

// coef * atom <= -(least that the rest of the guard may be).
static bool refine_atoms(pestle_kir_ranges_t* r, const pestle_kir_form_t* guard,
                         uint32_t* first) {
  bool changed = false;
  for (unsigned i = 0; i < guard->count; ++i) {
    uint32_t atom = guard->terms[i].atom;
    int64_t coef = guard->terms[i].coef, lo, hi;
    if (atom == PESTLE_KIR_LANE_ATOM) continue;
    pestle_kir_form_t rest = *guard;
    pestle_kir_form_add_atom(atom, -coef, &rest);
    pestle_kir_form_bounds(r, &rest, 1, &lo, &hi);
    if (lo <= -PESTLE_KIR_UNKNOWN) continue;
    bool did = coef > 0
                   ? refine(r, atom, INT64_MIN, pestle_floor_div(-lo, coef))
                   : refine(r, atom, -pestle_floor_div(-lo, -coef), INT64_MAX);
    if (did && atom < *first) *first = atom;
    changed |= did;
  }
  return changed;
}

// Takes in that the condition of the IF at |id| is |sense|.
static void enter(pestle_kir_ranges_t* r, uint32_t id, bool sense) {
  pestle_kir_frame_t* frame = &pestle_vec_last(&r->frame);
  size_t mark = r->guard.size;
  pestle_kir_guards_push(r, pestle_kir_inst(r->k, id)->arg[0], sense);
  uint32_t first = id;
  bool changed = false;
  for (size_t g = mark; g < r->guard.size; ++g) {
    changed |= refine_atoms(r, &r->guard.data[g], &first);
  }
  // What was computed from these before the branch is known better in it.
  for (uint32_t j = first; changed && j < id; ++j) {
    if (!is_int_type(pestle_kir_inst(r->k, j)->type)) continue;
    if (r->fact.data[j].lo > r->fact.data[j].hi) frame->dead = true;
    fact_t f = transfer(r, j);
    refine(r, j, f.lo, f.hi);
  }
}

static void leave(pestle_kir_ranges_t* r, const pestle_kir_frame_t* frame) {
  r->guard.size = frame->guard_count;
  r->quotient.size = frame->quotient_count;
  undo(r, frame->trail_count);
}

// Whether values |a| and |b| are the same sum.
static bool same_value(const pestle_kir_ranges_t* r, uint32_t a, uint32_t b) {
  pestle_kir_form_t apart;
  pestle_kir_form_init(&apart);
  pestle_kir_form_add(r, a, 1, &apart);
  pestle_kir_form_add(r, b, -1, &apart);
  return apart.ok && !apart.count && !apart.constant;
}

// The latest of r->quotient that does |op| to what |id| divides.
static uint32_t twin(const pestle_kir_ranges_t* r, uint32_t id,
                     pestle_op_t op) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  for (size_t i = r->quotient.size; i-- > 0;) {
    uint32_t j = r->quotient.data[i];
    const pestle_kir_inst_t* other = pestle_kir_inst(r->k, j);
    if (other->op == pestle_kir_code(op) && other->type == inst->type &&
        same_value(r, other->arg[0], inst->arg[0]) &&
        same_value(r, other->arg[1], inst->arg[1])) {
      return j;
    }
  }
  return PESTLE_KIR_NONE;
}

// x = c * (x / c) + x % c: what is known of x and of the remainder then bounds
// the quotient.
static void visit_quotient(pestle_kir_ranges_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  pestle_op_t op;
  if (!pestle_kir_is_scalar(inst->op, &op)) return;
  if (op != PESTLE_OP_DIVIDE && op != PESTLE_OP_REMAINDER) return;
  // Of a vector the guard would be of the lanes that it happens to have.
  if (!is_int_type(inst->type) || inst->lanes != 1) return;
  fact_t x = r->fact.data[inst->arg[0]], c = r->fact.data[inst->arg[1]];
  if (!known(x) || x.lo < 0 || c.lo != c.hi || c.lo <= 0) return;
  bool divides = op == PESTLE_OP_DIVIDE;
  if (!pestle_vec_push(&r->quotient, id)) r->failed = true;
  uint32_t other =
      twin(r, id, divides ? PESTLE_OP_REMAINDER : PESTLE_OP_DIVIDE);
  if (!divides && other == PESTLE_KIR_NONE) return;
  pestle_kir_form_t form;
  pestle_kir_form_init(&form);
  pestle_kir_form_add(r, inst->arg[0], 1, &form);
  pestle_kir_form_add_atom(divides ? id : other, -c.lo, &form);
  if (other != PESTLE_KIR_NONE) {
    pestle_kir_form_add_atom(divides ? other : id, -1, &form);
  }
  pestle_kir_guards_push_between(r, &form,
                                 other == PESTLE_KIR_NONE ? c.lo - 1 : 0);
}

void pestle_kir_ranges_visit(pestle_kir_ranges_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  bool dead = pestle_kir_ranges_dead(r);
  if (r->failed) return;
  fact_t f = transfer(r, id);
  f.fixed = is_fixed(r, id, f.fixed);
  r->fact.data[id] = f;
  visit_quotient(r, id);
  pestle_kir_frame_t frame = {id, r->guard.size, r->trail.size,
                              r->quotient.size, dead};
  if (inst->op == PESTLE_KIR_FOR) {
    frame.dead = dead || f.hi < f.lo;
    if (!pestle_vec_push(&r->frame, frame)) r->failed = true;
  } else if (inst->op == PESTLE_KIR_IF) {
    if (!pestle_vec_push(&r->frame, frame)) r->failed = true;
    if (!r->failed) enter(r, id, true);
  } else if (inst->op == PESTLE_KIR_ELSE && r->frame.size) {
    frame = pestle_vec_pop(&r->frame);
    leave(r, &frame);
    frame.dead = pestle_kir_ranges_dead(r);
    if (!pestle_vec_push(&r->frame, frame)) r->failed = true;
    if (!r->failed) enter(r, frame.begin, false);
  } else if (inst->op == PESTLE_KIR_END && r->frame.size) {
    frame = pestle_vec_pop(&r->frame);
    leave(r, &frame);
  }
}

// Whether one of the guards from |mark| on holds in no lane.
static bool never(pestle_kir_ranges_t* r, size_t mark, unsigned lanes) {
  for (size_t g = mark; g < r->guard.size; ++g) {
    int64_t lo, hi;
    pestle_kir_form_bounds(r, &r->guard.data[g], lanes, &lo, &hi);
    if (lo > 0) return true;
  }
  return false;
}

void pestle_kir_ranges_access(pestle_kir_ranges_t* r, uint32_t id,
                              int64_t* out_lo, int64_t* out_hi) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->k, id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(r->k, inst->arg[0]);
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool lanewise =
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER;
  bool words = inst->op == PESTLE_KIR_LOAD_WORDS;
  uint32_t mask =
      inst->op == PESTLE_KIR_REF || inst->op == PESTLE_KIR_ATOMIC_ADD || words
          ? PESTLE_KIR_NONE
          : inst->arg[stores ? 3 : 2];
  unsigned lanes = buffer->scope == PESTLE_KIR_PRIVATE ? 1 : inst->lanes;
  if (words) {
    lanes *= 4 / (unsigned)pestle_dtype_size((pestle_dtype_t)buffer->dtype);
  }
  fact_t index = r->fact.data[inst->arg[1]];
  *out_lo = index.lo;
  *out_hi = known(index) ? index.hi + (lanewise ? 0 : (int64_t)lanes - 1)
                         : PESTLE_KIR_UNKNOWN;
  if (*out_lo >= 0 && *out_hi < (int64_t)buffer->count) return;
  size_t mark = r->guard.size;
  if (mask != PESTLE_KIR_NONE) {
    // A part of a long vector that lies past the end.
    const pestle_kir_inst_t* off = pestle_kir_inst(r->k, mask);
    if (off->op == PESTLE_KIR_CONST && !pestle_kir_const_int(off)) {
      *out_lo = 0;
      *out_hi = -1;
      return;
    }
    pestle_kir_guards_push(r, mask, true);
  }
  if (never(r, mark, lanes)) {
    *out_lo = 0;
    *out_hi = -1;
    r->guard.size = mark;
    return;
  }
  pestle_kir_form_t form;
  pestle_kir_form_init(&form);
  pestle_kir_form_add(r, inst->arg[1], 1, &form);
  if (!lanewise && lanes > 1) {
    pestle_kir_form_add_atom(PESTLE_KIR_LANE_ATOM, 1, &form);
  }
  int64_t lo = pestle_kir_form_lower(r, &form, lanes);
  int64_t hi = pestle_kir_form_upper(r, &form, lanes);
  if (lo > *out_lo) *out_lo = lo;
  if (hi < *out_hi) *out_hi = hi;
  r->guard.size = mark;
}
