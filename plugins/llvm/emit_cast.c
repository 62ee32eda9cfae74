// SPDX-License-Identifier: Apache-2.0
// CAST: to float nearest even with one rounding, to integers toward zero and
// saturating, NaN to 0, integers wrapping, to i1 "is not 0".
//
// A value that must go through a wider float on its way to a narrow one is
// rounded to odd there (truncated, the last bit set when anything was lost),
// since rounding to odd with two bits to spare and then to nearest is rounding
// once.
#include <math.h>

#include "plugins/llvm/emit.h"

static bool is_half(pestle_dtype_t dtype) {
  return dtype == PESTLE_F16 || dtype == PESTLE_BF16;
}
static bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}
static bool is_signed(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
}

uint32_t pestle_llvm_cast_dtypes(void) {
  return PESTLE_LLVM_FLOATS | PESTLE_LLVM_HALVES | PESTLE_LLVM_BITS;
}

LLVMValueRef pestle_llvm_normalise(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                                   unsigned lanes, LLVMValueRef v) {
  if (!pestle_dtype_is_sub_byte(dtype)) return v;
  int64_t bits = pestle_dtype_info(dtype)->bits;
  if (!is_signed(dtype)) {
    LLVMValueRef mask = pestle_llvm_int(e, e->i8, lanes, (1 << bits) - 1);
    return e->ll->BuildAnd(e->b, v, mask, "");
  }
  LLVMValueRef rest = pestle_llvm_int(e, e->i8, lanes, 8 - bits);
  return e->ll->BuildAShr(e->b, e->ll->BuildShl(e->b, v, rest, ""), rest, "");
}

// --- f16, bf16 ---

static LLVMValueRef widen_half(pestle_llvm_emit_t* e, pestle_dtype_t from,
                               unsigned lanes, LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef f32 = pestle_llvm_type(e, PESTLE_F32, lanes);
  if (from == PESTLE_F16) {
    v = ll->BuildBitCast(e->b, v, pestle_llvm_vector(e, e->f16, lanes), "");
    return ll->BuildFPExt(e->b, v, f32, "");
  }
  v = ll->BuildZExt(e->b, v, pestle_llvm_vector(e, e->i32, lanes), "");
  v = ll->BuildShl(e->b, v, pestle_llvm_int(e, e->i32, lanes, 16), "");
  return ll->BuildBitCast(e->b, v, f32, "");
}

// By integers: vcvtneps2bf16 would flush denormals.
static LLVMValueRef f32_to_bf16(pestle_llvm_emit_t* e, unsigned lanes,
                                LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef i32 = pestle_llvm_vector(e, e->i32, lanes);
  LLVMValueRef sixteen = pestle_llvm_int(e, e->i32, lanes, 16);
  LLVMValueRef bits = ll->BuildBitCast(e->b, v, i32, "");
  LLVMValueRef high = ll->BuildLShr(e->b, bits, sixteen, "");
  LLVMValueRef even =
      ll->BuildAnd(e->b, high, pestle_llvm_int(e, e->i32, lanes, 1), "");
  LLVMValueRef half = pestle_llvm_int(e, e->i32, lanes, 0x7fff);
  LLVMValueRef up = ll->BuildAdd(e->b, bits, half, "");
  up = ll->BuildLShr(e->b, ll->BuildAdd(e->b, up, even, ""), sixteen, "");
  // The carry must not turn a NaN into something else; 64 makes it quiet.
  LLVMValueRef quiet =
      ll->BuildOr(e->b, high, pestle_llvm_int(e, e->i32, lanes, 64), "");
  LLVMValueRef nan = ll->BuildFCmp(e->b, LLVMRealUNO, v, v, "");
  LLVMValueRef r = ll->BuildSelect(e->b, nan, quiet, up, "");
  return ll->BuildTrunc(e->b, r, pestle_llvm_type(e, PESTLE_BF16, lanes), "");
}

static LLVMValueRef narrow_half(pestle_llvm_emit_t* e, pestle_dtype_t to,
                                unsigned lanes, LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  if (to == PESTLE_BF16) return f32_to_bf16(e, lanes, v);
  v = ll->BuildFPTrunc(e->b, v, pestle_llvm_vector(e, e->f16, lanes), "");
  return ll->BuildBitCast(e->b, v, pestle_llvm_type(e, to, lanes), "");
}

// f64 to f32, rounded to odd.
static LLVMValueRef f64_to_odd_f32(pestle_llvm_emit_t* e, unsigned lanes,
                                   LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef i32 = pestle_llvm_vector(e, e->i32, lanes);
  LLVMTypeRef f32 = pestle_llvm_type(e, PESTLE_F32, lanes);
  LLVMTypeRef f64 = pestle_llvm_type(e, PESTLE_F64, lanes);
  LLVMValueRef near = ll->BuildFPTrunc(e->b, v, f32, "");
  LLVMValueRef back = ll->BuildFPExt(e->b, near, f64, "");
  // NaN is neither: both comparisons are ordered.
  LLVMValueRef inexact = ll->BuildFCmp(e->b, LLVMRealONE, back, v, "");
  LLVMValueRef size = pestle_llvm_unary(e, "llvm.fabs", v);
  LLVMValueRef size_back = pestle_llvm_unary(e, "llvm.fabs", back);
  LLVMValueRef away = ll->BuildFCmp(e->b, LLVMRealOGT, size_back, size, "");
  LLVMValueRef bits = ll->BuildBitCast(e->b, near, i32, "");
  LLVMValueRef step = ll->BuildSExt(e->b, away, i32, "");
  LLVMValueRef odd = ll->BuildZExt(e->b, inexact, i32, "");
  bits = ll->BuildOr(e->b, ll->BuildAdd(e->b, bits, step, ""), odd, "");
  return ll->BuildBitCast(e->b, bits, f32, "");
}

// --- Between floats ---

static LLVMValueRef float_to_float(pestle_llvm_emit_t* e, pestle_dtype_t from,
                                   pestle_dtype_t to, unsigned lanes,
                                   LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  if (is_half(from)) {
    v = widen_half(e, from, lanes, v);
    from = PESTLE_F32;
  }
  if (is_half(to)) {
    if (from == PESTLE_F64) v = f64_to_odd_f32(e, lanes, v);
    return narrow_half(e, to, lanes, v);
  }
  if (from == to) return v;
  LLVMTypeRef type = pestle_llvm_type(e, to, lanes);
  return to == PESTLE_F64 ? ll->BuildFPExt(e->b, v, type, "")
                          : ll->BuildFPTrunc(e->b, v, type, "");
}

// --- Integers ---

static LLVMValueRef int_to_int(pestle_llvm_emit_t* e, pestle_dtype_t from,
                               pestle_dtype_t to, unsigned lanes,
                               LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  unsigned have = pestle_dtype_size(from), want = pestle_dtype_size(to);
  LLVMTypeRef type = pestle_llvm_type(e, to, lanes);
  if (have > want) v = ll->BuildTrunc(e->b, v, type, "");
  if (have < want) {
    v = is_signed(from) ? ll->BuildSExt(e->b, v, type, "")
                        : ll->BuildZExt(e->b, v, type, "");
  }
  return pestle_llvm_normalise(e, to, lanes, v);
}

// 64 bits of which at most 53 are significant and the last stands for what was
// lost: what f64 holds exactly and rounds on as the whole would.
static LLVMValueRef sticky(pestle_llvm_emit_t* e, unsigned lanes, bool is_s,
                           LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef low = pestle_llvm_int(e, e->i64, lanes, 0xfff);
  LLVMValueRef lost = ll->BuildAnd(e->b, v, low, "");
  LLVMValueRef any = ll->BuildICmp(e->b, LLVMIntNE, lost,
                                   pestle_llvm_int(e, e->i64, lanes, 0), "");
  LLVMValueRef kept = ll->BuildSub(e->b, v, lost, "");
  LLVMValueRef bit =
      ll->BuildSelect(e->b, any, pestle_llvm_int(e, e->i64, lanes, 0x800),
                      pestle_llvm_int(e, e->i64, lanes, 0), "");
  kept = ll->BuildOr(e->b, kept, bit, "");
  int64_t exact = INT64_C(1) << 52;
  LLVMValueRef shifted = v;
  if (is_s) {
    LLVMValueRef offset = pestle_llvm_int(e, e->i64, lanes, exact);
    shifted = ll->BuildAdd(e->b, v, offset, "");
  }
  LLVMValueRef limit =
      pestle_llvm_int(e, e->i64, lanes, is_s ? 2 * exact : exact);
  LLVMValueRef small = ll->BuildICmp(e->b, LLVMIntULT, shifted, limit, "");
  return ll->BuildSelect(e->b, small, v, kept, "");
}

static LLVMValueRef int_to_float(pestle_llvm_emit_t* e, pestle_dtype_t from,
                                 pestle_dtype_t to, unsigned lanes,
                                 LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  bool is_s = is_signed(from);
  pestle_dtype_t via = to;
  // What f32 does not hold exactly is beyond f16 anyway, but not beyond bf16.
  if (to == PESTLE_F16) via = PESTLE_F32;
  if (to == PESTLE_BF16) {
    unsigned size = pestle_dtype_size(from);
    via = size < 4 ? PESTLE_F32 : PESTLE_F64;
    if (size == 8) v = sticky(e, lanes, is_s, v);
  }
  LLVMTypeRef type = pestle_llvm_type(e, via, lanes);
  v = is_s ? ll->BuildSIToFP(e->b, v, type, "")
           : ll->BuildUIToFP(e->b, v, type, "");
  return via == to ? v : float_to_float(e, via, to, lanes, v);
}

// vmaxps x, limit or vminps: limit where x is NaN.
static LLVMValueRef bounded(pestle_llvm_emit_t* e, bool from_below,
                            LLVMValueRef x, LLVMValueRef limit) {
  LLVMRealPredicate keep = from_below ? LLVMRealOGT : LLVMRealOLT;
  LLVMValueRef c = e->ll->BuildFCmp(e->b, keep, x, limit, "");
  return e->ll->BuildSelect(e->b, c, x, limit, "");
}

// By bounding the float where the integer's limits are floats, and by choosing
// the limit afterwards where the upper one is not. llvm.fptosi.sat would go
// lane by lane.
static LLVMValueRef float_to_int(pestle_llvm_emit_t* e, pestle_dtype_t from,
                                 pestle_dtype_t to, unsigned lanes,
                                 unsigned facts, LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  if (is_half(from)) {
    v = widen_half(e, from, lanes, v);
    from = PESTLE_F32;
  }
  bool is_s = is_signed(to);
  unsigned bits = pestle_dtype_info(to)->bits, value_bits = bits - is_s;
  bool exact = value_bits <= (from == PESTLE_F64 ? 53u : 24u);
  double above = ldexp(1.0, (int)value_bits);  // the first that is too large
  LLVMTypeRef type = pestle_llvm_type(e, to, lanes);
  LLVMTypeRef via = bits < 32 ? pestle_llvm_vector(e, e->i32, lanes) : type;
  LLVMValueRef lo = pestle_llvm_float(e, from, lanes, is_s ? -above : 0);
  LLVMValueRef x = bounded(e, true, v, lo);
  if (exact) {
    x = bounded(e, false, x, pestle_llvm_float(e, from, lanes, above - 1));
  }
  // What is out of range here is replaced below, lane by lane.
  LLVMValueRef r = is_s || bits < 32 ? ll->BuildFPToSI(e->b, x, via, "")
                                     : ll->BuildFPToUI(e->b, x, via, "");
  if (via != type) r = ll->BuildTrunc(e->b, r, type, "");
  if (!exact) {
    uint64_t most =
        value_bits == 64 ? UINT64_MAX : (UINT64_C(1) << value_bits) - 1;
    LLVMValueRef limit = pestle_llvm_float(e, from, lanes, above);
    LLVMValueRef over = ll->BuildFCmp(e->b, LLVMRealOGE, v, limit, "");
    LLVMValueRef max = pestle_llvm_int(e, e->type[to], lanes, (int64_t)most);
    r = ll->BuildSelect(e->b, over, max, r, "");
  }
  if (!is_s || (facts & PESTLE_KIR_NNAN)) return r;
  LLVMValueRef nan = ll->BuildFCmp(e->b, LLVMRealUNO, v, v, "");
  LLVMValueRef zero = pestle_llvm_int(e, e->type[to], lanes, 0);
  return ll->BuildSelect(e->b, nan, zero, r, "");
}

// --- i1 ---

static LLVMValueRef to_bool(pestle_llvm_emit_t* e, pestle_dtype_t from,
                            unsigned lanes, LLVMValueRef v) {
  const pestle_llvm_api_t* ll = e->ll;
  if (PESTLE_LLVM_FLOATS >> from & 1) {
    LLVMValueRef zero = pestle_llvm_float(e, from, lanes, 0);
    return ll->BuildFCmp(e->b, LLVMRealUNE, v, zero, "");
  }
  if (is_half(from)) {
    LLVMValueRef rest = pestle_llvm_int(e, e->type[from], lanes, 0x7fff);
    v = ll->BuildAnd(e->b, v, rest, "");
  }
  LLVMValueRef zero = pestle_llvm_int(e, e->type[from], lanes, 0);
  return ll->BuildICmp(e->b, LLVMIntNE, v, zero, "");
}

static LLVMValueRef from_bool(pestle_llvm_emit_t* e, pestle_dtype_t to,
                              unsigned lanes, LLVMValueRef v) {
  if (!is_float(to)) {
    return e->ll->BuildZExt(e->b, v, pestle_llvm_type(e, to, lanes), "");
  }
  LLVMValueRef one = pestle_llvm_float(e, to, lanes, 1);
  LLVMValueRef zero = pestle_llvm_float(e, to, lanes, 0);
  return e->ll->BuildSelect(e->b, v, one, zero, "");
}

// --- Dispatch ---

LLVMValueRef pestle_llvm_emit_cast(pestle_llvm_emit_t* e, pestle_dtype_t from,
                                   pestle_dtype_t to, unsigned lanes,
                                   unsigned facts, LLVMValueRef v) {
  uint32_t both = 1u << from | 1u << to;
  if (from == to) return v;
  if (both & ~pestle_llvm_cast_dtypes()) {
    return pestle_llvm_fail(e, to, lanes, PESTLE_STATUS_UNSUPPORTED,
                            "llvm casts no f8: the kernel was not legalised");
  }
  if (to == PESTLE_I1) return to_bool(e, from, lanes, v);
  if (from == PESTLE_I1) return from_bool(e, to, lanes, v);
  if (is_float(from) && is_float(to)) {
    return float_to_float(e, from, to, lanes, v);
  }
  if (is_float(from)) return float_to_int(e, from, to, lanes, facts, v);
  if (is_float(to)) return int_to_float(e, from, to, lanes, v);
  return int_to_int(e, from, to, lanes, v);
}
