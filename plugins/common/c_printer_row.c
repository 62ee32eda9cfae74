// SPDX-License-Identifier: Apache-2.0
// Scalar rows and casts as expressions. The edge cases of scalar.def (division
// by 0, shifts out of range, NaN in a maximum, casts that do not fit) are in
// helpers (c_printer_helper.c), which are left out where constants rule a case
// out.
#include "plugins/common/c_printer_internal.h"

typedef pestle_c_printer_class_t class_t;

static unsigned width_of(unsigned dtype) {
  return pestle_dtype_info((pestle_dtype_t)dtype)->bits;
}

static bool is_wide(class_t c) {
  return c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64;
}
static bool is_signed(class_t c) {
  return c == PESTLE_C_PRINTER_I32 || c == PESTLE_C_PRINTER_I64;
}
static class_t unsigned_of(class_t c) {
  return is_wide(c) ? PESTLE_C_PRINTER_U64 : PESTLE_C_PRINTER_U32;
}
static class_t signed_of(class_t c) {
  return is_wide(c) ? PESTLE_C_PRINTER_I64 : PESTLE_C_PRINTER_I32;
}

// The low |width| bits, fewer than 32, of |x| as a signed number.
static const char* sign_extend(c_printer_t* p, unsigned width, const char* x) {
  if (p->d->sign_extend) {
    const char* n = pestle_c_printer_format(p, "%u", width);
    const char* pairs[] = {"a", pestle_c_printer_bare(p, x), "n", n, NULL};
    return pestle_c_printer_expand(p, p->d->sign_extend, pairs);
  }
  int64_t all = (INT64_C(1) << width) - 1, sign = INT64_C(1) << (width - 1);
  return pestle_c_printer_format(p, "(((%s & %lld) ^ %lld) - %lld)", x,
                                 (long long)all, (long long)sign,
                                 (long long)sign);
}

// A register of 32 bits brought back to the narrower dtype that it holds.
static const char* wrap(c_printer_t* p, unsigned dtype, const char* x) {
  unsigned width = width_of(dtype);
  if (dtype == PESTLE_INDEX || width >= 32) return x;
  class_t c = pestle_c_printer_class(p, dtype);
  if (is_signed(c)) return sign_extend(p, width, x);
  int64_t all = (INT64_C(1) << width) - 1;
  return pestle_c_printer_format(p, "(%s & %s)", x,
                                 pestle_c_printer_int(p, c, all));
}

static const char* two(c_printer_t* p, const char* a, const char* op,
                       const char* b) {
  return pestle_c_printer_format(p, "(%s %s %s)", a, op, b);
}

static const char* call2(c_printer_t* p, c_printer_helper_t helper,
                         const char* a, const char* b) {
  return pestle_c_printer_format(
      p, "%s(%s, %s)", pestle_c_printer_call(p, helper),
      pestle_c_printer_bare(p, a), pestle_c_printer_bare(p, b));
}

static const char* call1(c_printer_t* p, c_printer_helper_t helper,
                         const char* a) {
  return pestle_c_printer_format(p, "%s(%s)", pestle_c_printer_call(p, helper),
                                 pestle_c_printer_bare(p, a));
}

// --- Bool ---

static const char* bool_row(c_printer_t* p, unsigned op, const char* const* x) {
  const char *a = x[0], *b = x[1];
  switch (op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_OR:
    case PESTLE_OP_MAXIMUM:
      return two(p, a, "||", b);
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_AND:
    case PESTLE_OP_MINIMUM:
      return two(p, a, "&&", b);
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_XOR:
    case PESTLE_OP_NE:
      return two(p, a, "!=", b);
    case PESTLE_OP_EQ:
      return two(p, a, "==", b);
    case PESTLE_OP_NOT:
      return pestle_c_printer_format(p, "!%s", a);
    case PESTLE_OP_LT:
      return pestle_c_printer_format(p, "(!%s && %s)", a, b);
    case PESTLE_OP_GT:
      return pestle_c_printer_format(p, "(%s && !%s)", a, b);
    case PESTLE_OP_LE:
      return pestle_c_printer_format(p, "(!%s || %s)", a, b);
    case PESTLE_OP_GE:
      return pestle_c_printer_format(p, "(%s || !%s)", a, b);
    case PESTLE_OP_SELECT:
      return pestle_c_printer_format(p, "(%s ? %s : %s)", a, b, x[2]);
    case PESTLE_OP_CLAMP:
      return pestle_c_printer_format(p, "((%s || %s) && %s)", b, a, x[2]);
    default:
      return pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                                   "the row is not one of i1");
  }
}

// --- Integers ---

// Sums and products, which wrap: in C only those of unsigned ones do.
static const char* wrapping(c_printer_t* p, unsigned dtype, const char* a,
                            const char* op, const char* b) {
  class_t c = pestle_c_printer_class(p, dtype);
  bool narrow = width_of(dtype) < 32;
  if (!is_signed(c) || narrow || p->d->wraps || dtype == PESTLE_INDEX) {
    return wrap(p, dtype, two(p, a, op, b));
  }
  class_t u = unsigned_of(c);
  a = pestle_c_printer_cast(p, u, a);
  b = pestle_c_printer_cast(p, u, b);
  return pestle_c_printer_cast(p, c, two(p, a, op, b));
}

static const char* divided(c_printer_t* p, unsigned dtype, const char* a,
                           const char* b, bool rest, const int64_t* known) {
  class_t c = pestle_c_printer_class(p, dtype);
  if (known && *known > 0 && rest && is_signed(c) && p->d->wraps) {
    // GLSL does not say what the rest of a negative number is.
    a = pestle_c_printer_atom(p, c, a);
    return pestle_c_printer_format(p, "(%s - %s / %s * %s)", a, a, b, b);
  }
  if (known && *known > 0) return two(p, a, rest ? "%" : "/", b);
  static const c_printer_helper_t div[] = {HELPER_DIV_I32, HELPER_DIV_U32,
                                           HELPER_DIV_I64, HELPER_DIV_U64};
  static const c_printer_helper_t rem[] = {HELPER_REM_I32, HELPER_REM_U32,
                                           HELPER_REM_I64, HELPER_REM_U64};
  unsigned at = (unsigned)c - PESTLE_C_PRINTER_I32;
  return wrap(p, dtype, call2(p, rest ? rem[at] : div[at], a, b));
}

static const char* shift_by(c_printer_t* p, const char* a, const char* op,
                            int64_t by) {
  return pestle_c_printer_format(p, "(%s %s %d)", a, op, (int)by);
}

static const char* shifted(c_printer_t* p, unsigned op, unsigned dtype,
                           const char* a, const char* b, const int64_t* known) {
  class_t c = pestle_c_printer_class(p, dtype);
  class_t u = unsigned_of(c), s = signed_of(c);
  bool wide = is_wide(c);
  unsigned width = dtype == PESTLE_INDEX ? (wide ? 64 : 32) : width_of(dtype);
  bool inside = known && *known >= 0 && *known < (int64_t)width;
  const char* amount = is_signed(c) ? pestle_c_printer_cast(p, u, b) : b;
  const char* bound = pestle_c_printer_int(p, u, width);
  const char* r;
  if (op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC) {
    // Of an unsigned one: its highest bit is taken for a sign.
    if (!is_signed(c)) {
      a = pestle_c_printer_cast(p, s, a);
      if (width < 32) a = sign_extend(p, width, a);
    }
    c_printer_helper_t helper = wide ? HELPER_SAR_I64 : HELPER_SAR_I32;
    r = inside ? shift_by(p, a, ">>", *known)
               : pestle_c_printer_format(p, "%s(%s, %s, %s)",
                                         pestle_c_printer_call(p, helper), a,
                                         amount, bound);
    return is_signed(c) ? r : wrap(p, dtype, pestle_c_printer_cast(p, c, r));
  }
  bool left = op == PESTLE_OP_SHIFT_LEFT;
  if (is_signed(c)) {
    a = pestle_c_printer_cast(p, u, a);
    if (!left && width < 32) {
      a = pestle_c_printer_format(p, "(%s & %lld%s)", a,
                                  (long long)((INT64_C(1) << width) - 1),
                                  p->d->suffix[u]);
    }
  }
  c_printer_helper_t helper = left ? (wide ? HELPER_SHL_U64 : HELPER_SHL_U32)
                                   : (wide ? HELPER_SHR_U64 : HELPER_SHR_U32);
  r = inside ? shift_by(p, a, left ? "<<" : ">>", *known)
             : pestle_c_printer_format(p, "%s(%s, %s, %s)",
                                       pestle_c_printer_call(p, helper), a,
                                       amount, bound);
  if (is_signed(c)) r = pestle_c_printer_cast(p, c, r);
  return wrap(p, dtype, r);
}

// The lesser or the greater; wide ones have no function in every language.
static const char* extreme(c_printer_t* p, class_t c, const char* a,
                           const char* b, bool most) {
  if (!is_wide(c)) {
    return pestle_c_printer_format(p, "%s(%s, %s)", most ? "max" : "min",
                                   pestle_c_printer_bare(p, a),
                                   pestle_c_printer_bare(p, b));
  }
  a = pestle_c_printer_atom(p, c, a);
  b = pestle_c_printer_atom(p, c, b);
  return pestle_c_printer_format(p, "(%s %s %s ? %s : %s)", a, most ? ">" : "<",
                                 b, a, b);
}

// How many bits of |a| are set, of 32.
static const char* counted(c_printer_t* p, class_t c, const char* a) {
  const char* pairs[] = {"a", pestle_c_printer_bare(p, a), NULL};
  a = pestle_c_printer_expand(p, p->d->popcount, pairs);
  return pestle_c_printer_cast(p, c, a);
}

static const char* not_one(c_printer_t* p, unsigned dtype) {
  return pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                               "the row is not one of %s",
                               pestle_dtype_info((pestle_dtype_t)dtype)->name);
}

static const char* int_row(c_printer_t* p, unsigned op, unsigned dtype,
                           const char* const* x, const int64_t* known) {
  class_t c = pestle_c_printer_class(p, dtype);
  const char *a = x[0], *b = x[1];
  const char* zero = pestle_c_printer_int(p, c, 0);
  switch (op) {
    case PESTLE_OP_ADD:
      return wrapping(p, dtype, a, "+", b);
    case PESTLE_OP_SUBTRACT:
      return wrapping(p, dtype, a, "-", b);
    case PESTLE_OP_MULTIPLY:
      return wrapping(p, dtype, a, "*", b);
    case PESTLE_OP_NEGATE:
      return wrapping(p, dtype, zero, "-", a);
    case PESTLE_OP_ABS:
      if (!is_signed(c)) return a;
      a = pestle_c_printer_atom(p, c, a);
      return pestle_c_printer_format(p, "(%s < 0 ? %s : %s)", a,
                                     wrapping(p, dtype, zero, "-", a), a);
    case PESTLE_OP_DIVIDE:
    case PESTLE_OP_REMAINDER:
      return divided(p, dtype, a, b, op == PESTLE_OP_REMAINDER, known);
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
      return extreme(p, c, a, b, op == PESTLE_OP_MAXIMUM);
    case PESTLE_OP_CLAMP:
      return extreme(p, c, extreme(p, c, b, a, true), x[2], false);
    case PESTLE_OP_AND:
      return two(p, a, "&", b);
    case PESTLE_OP_OR:
      return two(p, a, "|", b);
    case PESTLE_OP_XOR:
      return two(p, a, "^", b);
    case PESTLE_OP_NOT:
      return wrap(p, dtype, pestle_c_printer_format(p, "(~%s)", a));
    case PESTLE_OP_POPCNT:
      if (p->d->popcount) return counted(p, c, a);
      return not_one(p, dtype);
    case PESTLE_OP_SHIFT_LEFT:
    case PESTLE_OP_SHIFT_RIGHT_ARITHMETIC:
    case PESTLE_OP_SHIFT_RIGHT_LOGICAL:
      return shifted(p, op, dtype, a, b, known);
    default:
      return not_one(p, dtype);
  }
}

// --- Floats ---

const char* pestle_c_printer_fma(c_printer_t* p, class_t c, const char* a,
                                 const char* b, const char* x) {
  bool f64 = c == PESTLE_C_PRINTER_F64;
  unsigned fused = f64 ? PESTLE_C_PRINTER_HAS_FMA64 : PESTLE_C_PRINTER_HAS_FMA;
  const char* name = "fma";
  if (!(p->target->features & fused)) {
    name = pestle_c_printer_call(p, f64 ? HELPER_FMA_F64 : HELPER_FMA_F32);
  }
  return pestle_c_printer_format(
      p, "%s(%s, %s, %s)", name, pestle_c_printer_bare(p, a),
      pestle_c_printer_bare(p, b), pestle_c_printer_bare(p, x));
}

static const char* float_row(c_printer_t* p, unsigned op, unsigned dtype,
                             const char* const* x) {
  class_t c = pestle_c_printer_class(p, dtype);
  bool f64 = c == PESTLE_C_PRINTER_F64;
  const char *a = x[0], *b = x[1];
  const char* native = p->d->row[op];
  if (!(p->target->features & PESTLE_C_PRINTER_HAS_EXACT_DIV)) {
    if (op == PESTLE_OP_DIVIDE) {
      return call2(p, f64 ? HELPER_DIV_F64 : HELPER_DIV_F32, a, b);
    }
    if (op == PESTLE_OP_SQRT) {
      return call1(p, f64 ? HELPER_SQRT_F64 : HELPER_SQRT_F32, a);
    }
  }
  if (f64 && (p->target->features & PESTLE_C_PRINTER_ROUNDS_F64_WRONG)) {
    if (op == PESTLE_OP_ROUND_EVEN) return call1(p, HELPER_ROUND_F64, a);
    if (op == PESTLE_OP_TRUNC) return call1(p, HELPER_TRUNC_F64, a);
  }
  if (native) {
    const char* pairs[] = {"a", pestle_c_printer_bare(p, a), "b",
                           pestle_c_printer_bare(p, b), NULL};
    return pestle_c_printer_expand(p, native, pairs);
  }
  switch (op) {
    case PESTLE_OP_ADD:
      return two(p, a, "+", b);
    case PESTLE_OP_SUBTRACT:
      return two(p, a, "-", b);
    case PESTLE_OP_MULTIPLY:
      return two(p, a, "*", b);
    case PESTLE_OP_DIVIDE:
      return two(p, a, "/", b);
    case PESTLE_OP_NEGATE:
      return pestle_c_printer_format(p, "(-%s)", a);
    case PESTLE_OP_MAXIMUM:
      return call2(p, f64 ? HELPER_MAX_F64 : HELPER_MAX_F32, a, b);
    case PESTLE_OP_MINIMUM:
      return call2(p, f64 ? HELPER_MIN_F64 : HELPER_MIN_F32, a, b);
    case PESTLE_OP_REMAINDER:
      return call2(p, HELPER_REM_F32, a, b);
    case PESTLE_OP_FMA:
      return pestle_c_printer_fma(p, c, a, b, x[2]);
    case PESTLE_OP_IS_NAN:
      a = pestle_c_printer_atom(p, c, a);
      return two(p, a, "!=", a);
    default:
      return pestle_c_printer_fail(
          p, PESTLE_STATUS_UNSUPPORTED, "the row is not one of %s",
          pestle_dtype_info((pestle_dtype_t)dtype)->name);
  }
}

bool pestle_c_printer_is_approx(const c_printer_t* p,
                                const pestle_kir_inst_t* n) {
  unsigned op = n->op - PESTLE_KIR_SCALAR_BASE;
  return (n->facts & PESTLE_KIR_APPROX) && n->type == PESTLE_F32 &&
         p->d->approx_exp2 &&
         (op == PESTLE_OP_EXP2 || op == PESTLE_OP_TANH ||
          op == PESTLE_OP_DIVIDE);
}

const char* pestle_c_printer_approx(c_printer_t* p, const pestle_kir_inst_t* n,
                                    const char* const* x) {
  unsigned op = n->op - PESTLE_KIR_SCALAR_BASE;
  bool flush = (n->facts & PESTLE_KIR_FLUSH) && p->d->flush_exp2;
  if (op == PESTLE_OP_DIVIDE) return call2(p, HELPER_APPROX_DIV, x[0], x[1]);
  return call1(p,
               op == PESTLE_OP_TANH ? HELPER_APPROX_TANH
               : flush              ? HELPER_FLUSH_EXP2
                                    : HELPER_APPROX_EXP2,
               x[0]);
}

const char* pestle_c_printer_row(c_printer_t* p, unsigned op, unsigned dtype,
                                 const char* const* x, const int64_t* known) {
  static const char* const compare[] = {"==", "!=", "<", "<=", ">", ">="};
  if (op == PESTLE_OP_SELECT) {
    return pestle_c_printer_format(p, "(%s ? %s : %s)", x[0], x[1], x[2]);
  }
  if (dtype == PESTLE_I1) return bool_row(p, op, x);
  if (p->pairs && is_wide(pestle_c_printer_class(p, dtype))) {
    return pestle_c_printer_pair_row(p, op, pestle_c_printer_class(p, dtype),
                                     x);
  }
  if (op >= PESTLE_OP_EQ && op <= PESTLE_OP_GE) {
    return two(p, x[0], compare[op - PESTLE_OP_EQ], x[1]);
  }
  if (c_printer_is_float(dtype)) return float_row(p, op, dtype, x);
  if (pestle_c_printer_has_halves(p, dtype)) {
    return pestle_c_printer_half_row(p, op, dtype, x);
  }
  return int_row(p, op, dtype, x, known);
}

// --- Casts ---

static c_printer_helper_t narrow_helper(unsigned dtype, bool from_f32) {
  switch (dtype) {
    case PESTLE_BF16:
      return from_f32 ? HELPER_BF16_FROM : HELPER_BF16_TO;
    case PESTLE_F16:
      return from_f32 ? HELPER_F16_FROM : HELPER_F16_TO;
    case PESTLE_F8E4M3FN:
      return from_f32 ? HELPER_E4M3FN_FROM : HELPER_E4M3FN_TO;
    case PESTLE_F8E5M2:
      return from_f32 ? HELPER_E5M2_FROM : HELPER_E5M2_TO;
    case PESTLE_F8E4M3FNUZ:
      return from_f32 ? HELPER_E4M3FNUZ_FROM : HELPER_E4M3FNUZ_TO;
    case PESTLE_F8E5M2FNUZ:
      return from_f32 ? HELPER_E5M2FNUZ_FROM : HELPER_E5M2FNUZ_TO;
    default:
      return HELPER_COUNT;
  }
}

bool pestle_c_printer_casts(unsigned dtype) {
  return narrow_helper(dtype, true) != HELPER_COUNT;
}

// An f32 that rounds to any float of at most 16 bits as |x| itself does.
static const char* odd_f32(c_printer_t* p, unsigned from, const char* x) {
  class_t c = pestle_c_printer_class(p, from);
  if (from == PESTLE_F32) return x;
  if (from == PESTLE_F64) return call1(p, HELPER_ODD_F64, x);
  if (width_of(from) <= 16)
    return pestle_c_printer_cast(p, PESTLE_C_PRINTER_F32, x);
  static const c_printer_helper_t helper[] = {HELPER_ODD_I32, HELPER_ODD_U32,
                                              HELPER_ODD_I64, HELPER_ODD_U64};
  return call1(p, helper[c - PESTLE_C_PRINTER_I32], x);
}

// Toward zero, saturating, NaN to 0; narrow types saturate again.
static const char* float_to_int(c_printer_t* p, unsigned from, unsigned to,
                                const char* x) {
  class_t c = pestle_c_printer_class(p, to);
  unsigned width = width_of(to);
  static const c_printer_helper_t helper[2][4] = {
      {HELPER_F32_TO_I32, HELPER_F32_TO_U32, HELPER_F32_TO_I64,
       HELPER_F32_TO_U64},
      {HELPER_F64_TO_I32, HELPER_F64_TO_U32, HELPER_F64_TO_I64,
       HELPER_F64_TO_U64}};
  const char* r =
      call1(p, helper[from == PESTLE_F64][c - PESTLE_C_PRINTER_I32], x);
  if (to == PESTLE_INDEX || width >= 32) return r;
  if (!is_signed(c)) {
    const char* top = pestle_c_printer_int(p, c, (INT64_C(1) << width) - 1);
    return extreme(p, c, r, top, false);
  }
  int64_t half = INT64_C(1) << (width - 1);
  r = extreme(p, c, r, pestle_c_printer_int(p, c, -half), true);
  return extreme(p, c, r, pestle_c_printer_int(p, c, half - 1), false);
}

// |x| of class |a| as one of |b|.
static const char* cast(c_printer_t* p, class_t a, class_t b, const char* x) {
  if (p->pairs && (is_wide(a) || is_wide(b))) {
    return pestle_c_printer_pair_cast(p, a, b, x);
  }
  return pestle_c_printer_cast(p, b, x);
}

// Formats that legalisation converts by bits, which this kernel did not pass.
static bool lacks_helper(unsigned dtype) {
  return c_printer_is_narrow_float(dtype) && !pestle_c_printer_casts(dtype);
}

const char* pestle_c_printer_convert(c_printer_t* p, unsigned from, unsigned to,
                                     const char* x) {
  class_t a = pestle_c_printer_class(p, from),
          b = pestle_c_printer_class(p, to);
  if (from == to) return x;
  if (lacks_helper(from) || lacks_helper(to)) {
    return pestle_c_printer_fail(
        p, PESTLE_STATUS_UNSUPPORTED, "the target casts no %s",
        pestle_dtype_info((pestle_dtype_t)(lacks_helper(to) ? to : from))
            ->name);
  }
  if (c_printer_is_narrow_float(from)) {
    x = call1(p, narrow_helper(from, false), x);
    return pestle_c_printer_convert(p, PESTLE_F32, to, x);
  }
  if (c_printer_is_narrow_float(to)) {
    if (from == PESTLE_I1) {
      x = pestle_c_printer_convert(p, from, PESTLE_F32, x);
      from = PESTLE_F32;
    }
    return call1(p, narrow_helper(to, true), odd_f32(p, from, x));
  }
  if (to == PESTLE_I1 && p->pairs && is_wide(a)) {
    const char* pair[2] = {x, pestle_c_printer_pair(p, 0)};
    return pestle_c_printer_pair_row(p, PESTLE_OP_NE, a, pair);
  }
  if (to == PESTLE_I1) {
    return two(p, x, "!=",
               c_printer_is_float(from)
                   ? (from == PESTLE_F64
                          ? pestle_c_printer_format(
                                p, "0.0%s", p->d->suffix[PESTLE_C_PRINTER_F64])
                          : "0.0f")
                   : pestle_c_printer_int(p, a, 0));
  }
  if (from == PESTLE_I1) {
    const char* one = pestle_c_printer_int(p, b, 1);
    const char* zero = pestle_c_printer_int(p, b, 0);
    if (c_printer_is_float(to)) {
      one = to == PESTLE_F32 ? "1.0f" : pestle_c_printer_cast(p, b, "1.0f");
      zero = pestle_c_printer_zero(p, b);
    }
    return pestle_c_printer_format(p, "(%s ? %s : %s)", x, one, zero);
  }
  if (c_printer_is_float(from) && !c_printer_is_float(to)) {
    return float_to_int(p, from, to, x);
  }
  if (a == PESTLE_C_PRINTER_I32 && b == PESTLE_C_PRINTER_I64 &&
      p->d->widen_i32 && !p->pairs) {
    const char* own = pestle_c_printer_atom(p, a, x);
    const char* pairs[] = {"a", own, NULL};
    pestle_c_printer_type(p, b);
    x = pestle_c_printer_expand(p, p->d->widen_i32, pairs);
    a = b;
  }
  if (a != b) x = cast(p, a, b, x);
  if (c_printer_is_float(to)) return x;
  // A narrower or as narrow but otherwise signed type.
  bool held = width_of(from) < width_of(to) &&
              (is_signed(b) || !is_signed(a)) && width_of(from) <= 32;
  return held ? x : wrap(p, to, x);
}

const char* pestle_c_printer_bitcast(c_printer_t* p, unsigned from, unsigned to,
                                     const char* x) {
  class_t a = pestle_c_printer_class(p, from),
          b = pestle_c_printer_class(p, to);
  if (from == to) return x;
  if (c_printer_is_float(from)) {
    x = pestle_c_printer_bits(p, a, x);
    a = from == PESTLE_F64 ? PESTLE_C_PRINTER_U64 : PESTLE_C_PRINTER_U32;
  }
  if (c_printer_is_float(to)) {
    class_t u = to == PESTLE_F64 ? PESTLE_C_PRINTER_U64 : PESTLE_C_PRINTER_U32;
    if (a != u) x = cast(p, a, u, x);
    return pestle_c_printer_real(p, b, x);
  }
  if (a == PESTLE_C_PRINTER_BOOL) return x;
  if (a != b) x = cast(p, a, b, x);
  // Narrow floats and unsigned types hold the same bits in a register.
  return is_signed(a) || is_signed(b) ? wrap(p, to, x) : x;
}
