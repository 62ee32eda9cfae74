// SPDX-License-Identifier: Apache-2.0
// Scalar rows on f32 and f64, and what is only bits on f16 and bf16.
#include <math.h>

#include "plugins/llvm/emit.h"

typedef const pestle_llvm_row_args_t args_t;
typedef const pestle_llvm_row_t row_t;

static LLVMTypeRef bits_type(pestle_llvm_emit_t* e, args_t* a) {
  unsigned width = 8 * pestle_dtype_size(a->dtype);
  return pestle_llvm_vector(e, e->ll->IntTypeInContext(e->context, width),
                            a->lanes);
}

// --- Arithmetic ---

static LLVMValueRef add(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildFAdd(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef subtract(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildFSub(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef multiply(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildFMul(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef divide(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildFDiv(e->b, a->x[0], a->x[1], "");
}
static LLVMValueRef fused(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return pestle_llvm_fma(e, a->x[0], a->x[1], a->x[2]);
}
static LLVMValueRef unary(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  return pestle_llvm_unary(e, row->intrinsic, a->x[0]);
}

// Sign bits of f16 and bf16, which are integers here, by and and xor.
static LLVMValueRef negate(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  if (PESTLE_LLVM_FLOATS >> a->dtype & 1) {
    return e->ll->BuildFNeg(e->b, a->x[0], "");
  }
  LLVMValueRef sign = pestle_llvm_int(e, e->type[a->dtype], a->lanes, 0x8000);
  return e->ll->BuildXor(e->b, a->x[0], sign, "");
}
static LLVMValueRef absolute(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  if (PESTLE_LLVM_FLOATS >> a->dtype & 1) {
    return pestle_llvm_unary(e, "llvm.fabs", a->x[0]);
  }
  LLVMValueRef rest = pestle_llvm_int(e, e->type[a->dtype], a->lanes, 0x7fff);
  return e->ll->BuildAnd(e->b, a->x[0], rest, "");
}

static LLVMValueRef sign(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef zero = pestle_llvm_float(e, a->dtype, a->lanes, 0);
  LLVMValueRef one = pestle_llvm_float(e, a->dtype, a->lanes, 1);
  LLVMValueRef minus = pestle_llvm_float(e, a->dtype, a->lanes, -1);
  LLVMValueRef above = ll->BuildFCmp(e->b, LLVMRealOGT, a->x[0], zero, "");
  LLVMValueRef below = ll->BuildFCmp(e->b, LLVMRealOLT, a->x[0], zero, "");
  // Zeros of either sign and NaN are their own sign.
  LLVMValueRef rest = ll->BuildSelect(e->b, below, minus, a->x[0], "");
  return ll->BuildSelect(e->b, above, one, rest, "");
}

// --- Maximum and minimum ---

// vmaxps p, q: q when they are equal or one is NaN.
static LLVMValueRef native(pestle_llvm_emit_t* e, bool maximum, LLVMValueRef p,
                           LLVMValueRef q) {
  LLVMRealPredicate predicate = maximum ? LLVMRealOGT : LLVMRealOLT;
  LLVMValueRef c = e->ll->BuildFCmp(e->b, predicate, p, q, "");
  return e->ll->BuildSelect(e->b, c, p, q, "");
}

// Against a constant that is no NaN one instruction passes NaN on; only a zero
// of the sign that must win needs a second: max(-0, +0) is +0, which adding +0
// makes of -0 and of nothing else. NULL when no such form exists.
static LLVMValueRef with_constant(pestle_llvm_emit_t* e, bool maximum,
                                  args_t* a, LLVMValueRef constant,
                                  double value, LLVMValueRef x) {
  if (isnan(value)) return NULL;
  bool wins = maximum == !signbit(value);
  bool zero_matters = value == 0 && wins && !(a->facts & PESTLE_KIR_NSZ);
  if (zero_matters && !maximum) return NULL;
  LLVMValueRef r = native(e, maximum, constant, x);
  return zero_matters ? e->ll->BuildFAdd(e->b, r, constant, "") : r;
}

// NaN if either is, -0 below +0: scalar.def's F_MAX and F_MIN. The two orders
// of the operands differ only where they are zeros of two signs, whose and (or)
// is the larger (smaller), or where one is NaN.
static LLVMValueRef general(pestle_llvm_emit_t* e, bool maximum, args_t* a,
                            LLVMValueRef x, LLVMValueRef y) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef r = native(e, maximum, x, y);
  if (!(a->facts & PESTLE_KIR_NSZ)) {
    LLVMTypeRef bits = bits_type(e, a);
    LLVMValueRef other = native(e, maximum, y, x);
    LLVMValueRef p = ll->BuildBitCast(e->b, r, bits, "");
    LLVMValueRef q = ll->BuildBitCast(e->b, other, bits, "");
    p = maximum ? ll->BuildAnd(e->b, p, q, "") : ll->BuildOr(e->b, p, q, "");
    r = ll->BuildBitCast(e->b, p, ll->TypeOf(x), "");
  }
  if (a->facts & PESTLE_KIR_NNAN) return r;
  LLVMValueRef unordered = ll->BuildFCmp(e->b, LLVMRealUNO, x, y, "");
  LLVMValueRef sum = ll->BuildFAdd(e->b, x, y, "");
  return ll->BuildSelect(e->b, unordered, sum, r, "");
}

static LLVMValueRef extreme_of(pestle_llvm_emit_t* e, bool maximum, args_t* a,
                               unsigned i, unsigned j, LLVMValueRef x) {
  LLVMValueRef r = NULL;
  unsigned simple = PESTLE_KIR_NNAN | PESTLE_KIR_NSZ;
  if ((a->facts & simple) == simple) return native(e, maximum, x, a->x[j]);
  if (a->known[j]) {
    r = with_constant(e, maximum, a, a->x[j], a->known_float[j], x);
  } else if (a->known[i] && x == a->x[i]) {
    r = with_constant(e, maximum, a, x, a->known_float[i], a->x[j]);
  }
  return r ? r : general(e, maximum, a, x, a->x[j]);
}

static LLVMValueRef extreme(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  return extreme_of(e, row->predicate == LLVMRealOGT, a, 0, 1, a->x[0]);
}
static LLVMValueRef clamp(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  LLVMValueRef r = extreme_of(e, true, a, 1, 0, a->x[1]);
  return extreme_of(e, false, a, 1, 2, r);
}

// --- Tests ---

static LLVMValueRef compare(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  LLVMRealPredicate predicate = (LLVMRealPredicate)row->predicate;
  return e->ll->BuildFCmp(e->b, predicate, a->x[0], a->x[1], "");
}
static LLVMValueRef is_nan(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  return e->ll->BuildFCmp(e->b, LLVMRealUNO, a->x[0], a->x[0], "");
}
static LLVMValueRef is_finite(pestle_llvm_emit_t* e, row_t* row, args_t* a) {
  (void)row;
  LLVMValueRef magnitude = pestle_llvm_unary(e, "llvm.fabs", a->x[0]);
  LLVMValueRef inf = pestle_llvm_float(e, a->dtype, a->lanes, INFINITY);
  return e->ll->BuildFCmp(e->b, LLVMRealOLT, magnitude, inf, "");
}

// --- The table ---

#define F PESTLE_LLVM_FLOATS
#define FH (PESTLE_LLVM_FLOATS | PESTLE_LLVM_HALVES)

static const pestle_llvm_row_t k_rows[PESTLE_SCALAR_COUNT] = {
    [PESTLE_OP_ADD] = {.emit = add, .dtypes = F},
    [PESTLE_OP_SUBTRACT] = {.emit = subtract, .dtypes = F},
    [PESTLE_OP_MULTIPLY] = {.emit = multiply, .dtypes = F},
    [PESTLE_OP_DIVIDE] = {.emit = divide, .dtypes = F},
    [PESTLE_OP_MAXIMUM] = {.emit = extreme,
                           .dtypes = F,
                           .predicate = LLVMRealOGT},
    [PESTLE_OP_MINIMUM] = {.emit = extreme,
                           .dtypes = F,
                           .predicate = LLVMRealOLT},
    [PESTLE_OP_CLAMP] = {.emit = clamp, .dtypes = F},
    [PESTLE_OP_FMA] = {.emit = fused, .dtypes = F},
    [PESTLE_OP_NEGATE] = {.emit = negate, .dtypes = FH},
    [PESTLE_OP_ABS] = {.emit = absolute, .dtypes = FH},
    [PESTLE_OP_SIGN] = {.emit = sign, .dtypes = F},
    [PESTLE_OP_EQ] = {.emit = compare, .dtypes = F, .predicate = LLVMRealOEQ},
    [PESTLE_OP_NE] = {.emit = compare, .dtypes = F, .predicate = LLVMRealUNE},
    [PESTLE_OP_LT] = {.emit = compare, .dtypes = F, .predicate = LLVMRealOLT},
    [PESTLE_OP_LE] = {.emit = compare, .dtypes = F, .predicate = LLVMRealOLE},
    [PESTLE_OP_GT] = {.emit = compare, .dtypes = F, .predicate = LLVMRealOGT},
    [PESTLE_OP_GE] = {.emit = compare, .dtypes = F, .predicate = LLVMRealOGE},
    [PESTLE_OP_IS_FINITE] = {.emit = is_finite, .dtypes = F},
    [PESTLE_OP_IS_NAN] = {.emit = is_nan, .dtypes = F},
    [PESTLE_OP_FLOOR] = {.emit = unary, .dtypes = F, .intrinsic = "llvm.floor"},
    [PESTLE_OP_CEIL] = {.emit = unary, .dtypes = F, .intrinsic = "llvm.ceil"},
    [PESTLE_OP_ROUND_EVEN] = {.emit = unary,
                              .dtypes = F,
                              .intrinsic = "llvm.roundeven"},
    [PESTLE_OP_ROUND_AFZ] = {.emit = unary,
                             .dtypes = F,
                             .intrinsic = "llvm.round"},
    [PESTLE_OP_TRUNC] = {.emit = unary, .dtypes = F, .intrinsic = "llvm.trunc"},
    [PESTLE_OP_SQRT] = {.emit = unary, .dtypes = F, .intrinsic = "llvm.sqrt"},
};

const pestle_llvm_row_t* pestle_llvm_float_row(unsigned op) {
  return op < PESTLE_SCALAR_COUNT && k_rows[op].emit ? &k_rows[op] : NULL;
}
