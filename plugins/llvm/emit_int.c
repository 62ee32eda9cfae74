// SPDX-License-Identifier: Apache-2.0
// Scalar rows on integers, i1 and index. Everything is defined: nothing traps
// and nothing is poison.
#include "plugins/llvm/emit.h"

typedef const pestle_llvm_row_args_t args_t;
typedef const pestle_llvm_row_t row_t;

static bool is_signed(args_t* a) {
  return pestle_dtype_is(a->dtype, PESTLE_KIND_SIGNED);
}
static LLVMValueRef number(pestle_llvm_emit_t* e, args_t* a, int64_t value) {
  return pestle_llvm_int(e, e->type[a->dtype], a->lanes, value);
}
static LLVMValueRef normal(pestle_llvm_emit_t* e, args_t* a, LLVMValueRef v) {
  return pestle_llvm_normalise(e, a->dtype, a->lanes, v);
}
// Bits of the value: 4 for i4, though LLVM's type has 8.
static int64_t width(args_t* a) {
  return pestle_dtype_info(a->dtype)->bits;
}

// --- Arithmetic ---

static LLVMValueRef add(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  if (a->dtype == PESTLE_I1) {
    return e->ll->BuildOr(e->b, a->x[0], a->x[1], "");
  }
  return normal(e, a, e->ll->BuildAdd(e->b, a->x[0], a->x[1], ""));
}
static LLVMValueRef subtract(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return normal(e, a, e->ll->BuildSub(e->b, a->x[0], a->x[1], ""));
}
static LLVMValueRef multiply(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return normal(e, a, e->ll->BuildMul(e->b, a->x[0], a->x[1], ""));
}
static LLVMValueRef negate(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return normal(e, a, e->ll->BuildNeg(e->b, a->x[0], ""));
}
static LLVMValueRef absolute(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  if (!is_signed(a)) return a->x[0];
  LLVMValueRef below =
      e->ll->BuildICmp(e->b, LLVMIntSLT, a->x[0], number(e, a, 0), "");
  LLVMValueRef minus = e->ll->BuildNeg(e->b, a->x[0], "");
  return normal(e, a, e->ll->BuildSelect(e->b, below, minus, a->x[0], ""));
}
static LLVMValueRef sign(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  LLVMValueRef zero = number(e, a, 0);
  LLVMValueRef rest = zero;
  if (is_signed(a)) {
    LLVMValueRef below = e->ll->BuildICmp(e->b, LLVMIntSLT, a->x[0], zero, "");
    rest = e->ll->BuildSelect(e->b, below, number(e, a, -1), zero, "");
  }
  LLVMIntPredicate over = is_signed(a) ? LLVMIntSGT : LLVMIntUGT;
  LLVMValueRef above = e->ll->BuildICmp(e->b, over, a->x[0], zero, "");
  return e->ll->BuildSelect(e->b, above, number(e, a, 1), rest, "");
}

// --- Division ---

// The quotient of operands that do not overflow. Vectors of up to 32 bits go
// through floats, which is exact: a quotient that is no integer lies at least
// 1/|y| away from one, far more than the rounding of f32 below 2^16 and of f64
// below 2^32. x86 has no vector division of integers.
static LLVMValueRef quotient(pestle_llvm_emit_t* e, args_t* a, LLVMValueRef x,
                             LLVMValueRef y) {
  const pestle_llvm_api_t* ll = e->ll;
  bool is_s = is_signed(a);
  if (a->lanes == 1 || width(a) > 32 || a->known[1]) {
    return is_s ? ll->BuildSDiv(e->b, x, y, "") : ll->BuildUDiv(e->b, x, y, "");
  }
  pestle_dtype_t wide = width(a) > 16 ? PESTLE_F64 : PESTLE_F32;
  LLVMTypeRef type = pestle_llvm_type(e, wide, a->lanes);
  LLVMTypeRef back = ll->TypeOf(x);
  LLVMValueRef p = is_s ? ll->BuildSIToFP(e->b, x, type, "")
                        : ll->BuildUIToFP(e->b, x, type, "");
  LLVMValueRef q = is_s ? ll->BuildSIToFP(e->b, y, type, "")
                        : ll->BuildUIToFP(e->b, y, type, "");
  LLVMValueRef r = ll->BuildFDiv(e->b, p, q, "");
  return is_s ? ll->BuildFPToSI(e->b, r, back, "")
              : ll->BuildFPToUI(e->b, r, back, "");
}

// The divisor with 0 and, when signed, -1 taken out, and where it was those.
static LLVMValueRef safe_divisor(pestle_llvm_emit_t* e, args_t* a,
                                 LLVMValueRef* out_zero,
                                 LLVMValueRef* out_minus) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef y = a->x[1], one = number(e, a, 1);
  *out_zero = ll->BuildICmp(e->b, LLVMIntEQ, y, number(e, a, 0), "");
  *out_minus = NULL;
  LLVMValueRef special = *out_zero;
  if (is_signed(a)) {
    *out_minus = ll->BuildICmp(e->b, LLVMIntEQ, y, number(e, a, -1), "");
    special = ll->BuildOr(e->b, special, *out_minus, "");
  }
  return ll->BuildSelect(e->b, special, one, y, "");
}

static LLVMValueRef divide(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef zero, minus;
  LLVMValueRef y = safe_divisor(e, a, &zero, &minus);
  LLVMValueRef r = quotient(e, a, a->x[0], y);
  if (minus) {
    LLVMValueRef negated = ll->BuildNeg(e->b, a->x[0], "");
    r = ll->BuildSelect(e->b, minus, negated, r, "");
  }
  return normal(e, a, ll->BuildSelect(e->b, zero, number(e, a, -1), r, ""));
}

static LLVMValueRef remainder_of(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef zero, minus, x = a->x[0];
  LLVMValueRef y = safe_divisor(e, a, &zero, &minus);
  LLVMValueRef q = quotient(e, a, x, y);
  // Divided by the 1 that stands for -1, the remainder is 0 as well.
  LLVMValueRef r = ll->BuildSub(e->b, x, ll->BuildMul(e->b, q, y, ""), "");
  return normal(e, a, ll->BuildSelect(e->b, zero, x, r, ""));
}

// --- Order ---

static LLVMIntPredicate predicate_of(row_t* row, args_t* a) {
  return (LLVMIntPredicate)(is_signed(a) ? row->predicate
                                         : row->unsigned_predicate);
}
static LLVMValueRef compare(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  return e->ll->BuildICmp(e->b, predicate_of(row, a), a->x[0], a->x[1], "");
}
static LLVMValueRef extreme(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  LLVMValueRef c = compare(e, row, a);
  return e->ll->BuildSelect(e->b, c, a->x[0], a->x[1], "");
}
static LLVMValueRef clamp(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  const pestle_llvm_api_t* ll = e->ll;
  LLVMIntPredicate less = is_signed(a) ? LLVMIntSLT : LLVMIntULT;
  LLVMValueRef c = ll->BuildICmp(e->b, less, a->x[1], a->x[0], "");
  LLVMValueRef r = ll->BuildSelect(e->b, c, a->x[0], a->x[1], "");
  c = ll->BuildICmp(e->b, less, a->x[2], r, "");
  return ll->BuildSelect(e->b, c, a->x[2], r, "");
}
static LLVMValueRef choose(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildSelect(e->b, a->x[0], a->x[1], a->x[2], "");
}

// --- Bits ---

static LLVMValueRef bit_and(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildAnd(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef bit_or(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildOr(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef bit_xor(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildXor(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef bit_not(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return normal(e, a, e->ll->BuildNot(e->b, a->x[0], ""));
}

// The value's own bits, zero-extended: differs from it for i2 and i4 alone.
static LLVMValueRef raw_bits(pestle_llvm_emit_t* e, args_t* a) {
  if (!is_signed(a) || !pestle_dtype_is_sub_byte(a->dtype)) return a->x[0];
  LLVMValueRef mask = number(e, a, (INT64_C(1) << width(a)) - 1);
  return e->ll->BuildAnd(e->b, a->x[0], mask, "");
}

// Whether the amount is below the width; a negative one is a large unsigned.
static LLVMValueRef in_width(pestle_llvm_emit_t* e, args_t* a) {
  return e->ll->BuildICmp(e->b, LLVMIntULT, a->x[1], number(e, a, width(a)),
                          "");
}
static LLVMValueRef shift_left(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  LLVMValueRef r = e->ll->BuildShl(e->b, a->x[0], a->x[1], "");
  r = e->ll->BuildSelect(e->b, in_width(e, a), r, number(e, a, 0), "");
  return normal(e, a, r);
}
static LLVMValueRef shift_logical(pestle_llvm_emit_t* e, row_t* row,
                                  args_t* a) {
  (void)row;
  LLVMValueRef r = e->ll->BuildLShr(e->b, raw_bits(e, a), a->x[1], "");
  r = e->ll->BuildSelect(e->b, in_width(e, a), r, number(e, a, 0), "");
  return normal(e, a, r);
}
static LLVMValueRef shift_arithmetic(pestle_llvm_emit_t* e, row_t* row,
                                     args_t* a) {
  (void)row;
  LLVMValueRef x = a->x[0];
  // The sign of a ui4 is its bit 3.
  if (pestle_dtype_is_sub_byte(a->dtype) && !is_signed(a)) {
    pestle_dtype_t with_sign = a->dtype == PESTLE_U2 ? PESTLE_I2 : PESTLE_I4;
    x = pestle_llvm_normalise(e, with_sign, a->lanes, x);
  }
  LLVMValueRef last = number(e, a, width(a) - 1);
  LLVMValueRef by = e->ll->BuildSelect(e->b, in_width(e, a), a->x[1], last, "");
  return normal(e, a, e->ll->BuildAShr(e->b, x, by, ""));
}
static LLVMValueRef popcnt(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  // An i2 wraps both of its bits.
  return normal(e, a, pestle_llvm_unary(e, "llvm.ctpop", raw_bits(e, a)));
}
static LLVMValueRef leading_zeros(pestle_llvm_emit_t* e, row_t* row,
                                  args_t* a) {
  (void)row;
  LLVMValueRef x = raw_bits(e, a);
  LLVMTypeRef type = e->ll->TypeOf(x);
  LLVMValueRef args[] = {x, e->ll->ConstInt(e->type[PESTLE_I1], 0, 0)};
  LLVMValueRef r = pestle_llvm_intrinsic(e, "llvm.ctlz", &type, 1, args, 2);
  if (!pestle_dtype_is_sub_byte(a->dtype)) return r;
  r = e->ll->BuildSub(e->b, r, number(e, a, 8 - width(a)), "");
  return normal(e, a, r);
}

// --- The table ---

#define I PESTLE_LLVM_INTS
#define B PESTLE_LLVM_BITS  // and i1
#define PREDICATES(s, u) \
  .predicate = LLVMInt##s, .unsigned_predicate = LLVMInt##u

static const pestle_llvm_row_t k_rows[PESTLE_SCALAR_COUNT] = {
    [PESTLE_OP_ADD] = {.emit = add, .dtypes = B},
    [PESTLE_OP_SUBTRACT] = {.emit = subtract, .dtypes = B},
    [PESTLE_OP_MULTIPLY] = {.emit = multiply, .dtypes = B},
    [PESTLE_OP_DIVIDE] = {.emit = divide, .dtypes = I},
    [PESTLE_OP_REMAINDER] = {.emit = remainder_of, .dtypes = I},
    [PESTLE_OP_MAXIMUM] = {.emit = extreme, .dtypes = B, PREDICATES(SGT, UGT)},
    [PESTLE_OP_MINIMUM] = {.emit = extreme, .dtypes = B, PREDICATES(SLT, ULT)},
    [PESTLE_OP_NEGATE] = {.emit = negate, .dtypes = I},
    [PESTLE_OP_ABS] = {.emit = absolute, .dtypes = I},
    [PESTLE_OP_SIGN] = {.emit = sign, .dtypes = I},
    [PESTLE_OP_AND] = {.emit = bit_and, .dtypes = B},
    [PESTLE_OP_OR] = {.emit = bit_or, .dtypes = B},
    [PESTLE_OP_XOR] = {.emit = bit_xor, .dtypes = B},
    [PESTLE_OP_NOT] = {.emit = bit_not, .dtypes = B},
    [PESTLE_OP_SHIFT_LEFT] = {.emit = shift_left, .dtypes = I},
    [PESTLE_OP_SHIFT_RIGHT_ARITHMETIC] = {.emit = shift_arithmetic,
                                          .dtypes = I},
    [PESTLE_OP_SHIFT_RIGHT_LOGICAL] = {.emit = shift_logical, .dtypes = I},
    [PESTLE_OP_POPCNT] = {.emit = popcnt, .dtypes = I},
    [PESTLE_OP_CLZ] = {.emit = leading_zeros, .dtypes = I},
    [PESTLE_OP_EQ] = {.emit = compare, .dtypes = B, PREDICATES(EQ, EQ)},
    [PESTLE_OP_NE] = {.emit = compare, .dtypes = B, PREDICATES(NE, NE)},
    [PESTLE_OP_LT] = {.emit = compare, .dtypes = B, PREDICATES(SLT, ULT)},
    [PESTLE_OP_LE] = {.emit = compare, .dtypes = B, PREDICATES(SLE, ULE)},
    [PESTLE_OP_GT] = {.emit = compare, .dtypes = B, PREDICATES(SGT, UGT)},
    [PESTLE_OP_GE] = {.emit = compare, .dtypes = B, PREDICATES(SGE, UGE)},
    [PESTLE_OP_CLAMP] = {.emit = clamp, .dtypes = B},
    [PESTLE_OP_SELECT] = {.emit = choose, .dtypes = PESTLE_LLVM_ALL_DTYPES},
};

const pestle_llvm_row_t* pestle_llvm_int_row(unsigned op) {
  return op < PESTLE_SCALAR_COUNT && k_rows[op].emit ? &k_rows[op] : NULL;
}
