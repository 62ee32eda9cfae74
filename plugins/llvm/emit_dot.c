// SPDX-License-Identifier: Apache-2.0
// Instructions of x86 that LLVM IR has no operation for: short dot products
// (vpdpbusd, vdpbf16ps) and vscalefps.
//
// vpdpbusd multiplies bytes without a sign by bytes with one; its four products
// are added in 32 bits that wrap (vpdpbusds saturates, and is not used). For
// two operands of one kind, the top bit of one's bytes is flipped, which adds
// 128 to each: 128 times the sum of the other's bytes is subtracted again.
//
// CPUs before it have vpmaddubsw, whose sums of two products saturate in 16 bits: they fit
// where the bytes without a sign are below 128. Others are widened to 16 bits (vpmaddwd).
#include "plugins/llvm/emit.h"

enum { MOST_LANES = 16 };

// |v| of |lanes| lanes from |first| on, |count| of them; those behind are 0.
static LLVMValueRef slice(pestle_llvm_emit_t* e, LLVMValueRef v, unsigned lanes,
                          unsigned first, unsigned count) {
  LLVMValueRef at[MOST_LANES];
  if (lanes == count) return v;
  LLVMTypeRef type = e->ll->TypeOf(v);
  if (lanes == 1) {
    LLVMTypeRef wide = e->ll->VectorType(type, count);
    return e->ll->BuildInsertElement(e->b, e->ll->ConstNull(wide), v,
                                     pestle_llvm_i64(e, 0), "");
  }
  for (unsigned i = 0; i < count; ++i) {
    at[i] = pestle_llvm_i32(e, first + i < lanes ? first + i : lanes);
  }
  return e->ll->BuildShuffleVector(e->b, v, e->ll->ConstNull(type),
                                   e->ll->ConstVector(at, count), "");
}

static const char* width_name(unsigned lanes, const char* const names[3]) {
  return names[lanes == 4 ? 0 : lanes == 8 ? 1 : 2];
}

// --- Without vpdpbusd ---

static LLVMTypeRef halves_of(pestle_llvm_emit_t* e, unsigned lanes) {
  return e->ll->VectorType(e->ll->IntTypeInContext(e->context, 16), 2 * lanes);
}

// sum + the products of neighbouring halves.
static LLVMValueRef add_halves(pestle_llvm_emit_t* e, unsigned lanes,
                               LLVMValueRef a, LLVMValueRef b,
                               LLVMValueRef sum) {
  static const char* const names[] = {"llvm.x86.sse2.pmadd.wd",
                                      "llvm.x86.avx2.pmadd.wd",
                                      "llvm.x86.avx512.pmaddw.d.512"};
  LLVMValueRef args[] = {a, b};
  LLVMValueRef both =
      pestle_llvm_intrinsic(e, width_name(lanes, names), NULL, 0, args, 2);
  return e->ll->BuildAdd(e->b, sum, both, "");
}

static LLVMValueRef small_dot4(pestle_llvm_emit_t* e, unsigned lanes,
                               LLVMValueRef u, LLVMValueRef s,
                               LLVMValueRef sum) {
  static const char* const names[] = {"llvm.x86.ssse3.pmadd.ub.sw.128",
                                      "llvm.x86.avx2.pmadd.ub.sw",
                                      "llvm.x86.avx512.pmaddubs.w.512"};
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef bytes =
      ll->VectorType(ll->IntTypeInContext(e->context, 8), 4 * lanes);
  LLVMValueRef args[] = {ll->BuildBitCast(e->b, u, bytes, ""),
                         ll->BuildBitCast(e->b, s, bytes, "")};
  LLVMValueRef pairs =
      pestle_llvm_intrinsic(e, width_name(lanes, names), NULL, 0, args, 2);
  LLVMValueRef ones = pestle_llvm_int(e, e->i32, lanes, 0x00010001);
  ones = ll->BuildBitCast(e->b, ones, halves_of(e, lanes), "");
  return add_halves(e, lanes, pairs, ones, sum);
}

// Bytes 0 and 2 of words, or 1 and 3, as halves.
static LLVMValueRef widened(pestle_llvm_emit_t* e, unsigned lanes,
                            LLVMValueRef a, bool is_odd, bool is_signed) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMValueRef eight = pestle_llvm_int(e, e->i32, lanes, 0x00080008);
  eight = ll->BuildBitCast(e->b, eight, halves_of(e, lanes), "");
  a = ll->BuildBitCast(e->b, a, halves_of(e, lanes), "");
  if (!is_odd) a = ll->BuildShl(e->b, a, eight, "");
  return is_signed ? ll->BuildAShr(e->b, a, eight, "")
                   : ll->BuildLShr(e->b, a, eight, "");
}

static LLVMValueRef wide_dot4(pestle_llvm_emit_t* e, unsigned lanes,
                              unsigned kinds, LLVMValueRef a, LLVMValueRef b,
                              LLVMValueRef sum) {
  for (int is_odd = 0; is_odd < 2; ++is_odd) {
    LLVMValueRef x =
        widened(e, lanes, a, is_odd, kinds & PESTLE_KIR_DOT4_A_SIGNED);
    LLVMValueRef y =
        widened(e, lanes, b, is_odd, kinds & PESTLE_KIR_DOT4_B_SIGNED);
    sum = add_halves(e, lanes, x, y, sum);
  }
  return sum;
}

// Whether no byte of value |id| has its top bit, by what it is.
static bool has_small_bytes(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op == PESTLE_KIR_CONST) return !(n->arg[0] & 0x80808080u);
  if (n->op != PESTLE_KIR_AND) return false;
  for (int a = 0; a < 2; ++a) {
    const pestle_kir_inst_t* mask = pestle_llvm_inst(e, n->arg[a]);
    if (mask->op == PESTLE_KIR_CONST && !(mask->arg[0] & 0x80808080u))
      return true;
  }
  return false;
}

// --- Dot products ---

// sum + the products of u's bytes and s's.
static LLVMValueRef mixed(pestle_llvm_emit_t* e, unsigned lanes, LLVMValueRef u,
                          LLVMValueRef s, LLVMValueRef sum) {
  static const char* const names[] = {"llvm.x86.avx512.vpdpbusd.128",
                                      "llvm.x86.avx512.vpdpbusd.256",
                                      "llvm.x86.avx512.vpdpbusd.512"};
  LLVMValueRef args[] = {sum, u, s};
  return pestle_llvm_intrinsic(e, width_name(lanes, names), NULL, 0, args, 3);
}

static LLVMValueRef dot4(pestle_llvm_emit_t* e, unsigned lanes, unsigned kinds,
                         LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum) {
  const pestle_llvm_api_t* ll = e->ll;
  bool a_signed = kinds & PESTLE_KIR_DOT4_A_SIGNED;
  bool b_signed = kinds & PESTLE_KIR_DOT4_B_SIGNED;
  if (!a_signed && b_signed) return mixed(e, lanes, a, b, sum);
  if (a_signed && !b_signed) return mixed(e, lanes, b, a, sum);
  LLVMValueRef top = pestle_llvm_int(e, e->i32, lanes, (int32_t)0x80808080u);
  LLVMValueRef flipped = ll->BuildXor(e->b, a, top, "");
  LLVMValueRef zero = ll->ConstNull(ll->TypeOf(sum));
  if (a_signed) {
    // a + 128 is what was multiplied; 128 without a sign is top.
    LLVMValueRef extra = mixed(e, lanes, top, b, zero);
    return ll->BuildSub(e->b, mixed(e, lanes, flipped, b, sum), extra, "");
  }
  // a - 128; top with a sign is -128.
  LLVMValueRef extra = mixed(e, lanes, b, top, zero);
  return ll->BuildSub(e->b, mixed(e, lanes, b, flipped, sum), extra, "");
}

static LLVMValueRef dot2(pestle_llvm_emit_t* e, unsigned lanes, LLVMValueRef a,
                         LLVMValueRef b, LLVMValueRef sum) {
  static const char* const names[] = {"llvm.x86.avx512bf16.dpbf16ps.128",
                                      "llvm.x86.avx512bf16.dpbf16ps.256",
                                      "llvm.x86.avx512bf16.dpbf16ps.512"};
  LLVMTypeRef pairs =
      e->ll->VectorType(e->ll->BFloatTypeInContext(e->context), 2 * lanes);
  LLVMValueRef args[] = {sum, e->ll->BuildBitCast(e->b, a, pairs, ""),
                         e->ll->BuildBitCast(e->b, b, pairs, "")};
  return pestle_llvm_intrinsic(e, width_name(lanes, names), NULL, 0, args, 3);
}

// vscalefps, all lanes, rounded as the thread rounds.
static LLVMValueRef scale(pestle_llvm_emit_t* e, unsigned lanes, LLVMValueRef a,
                          LLVMValueRef b) {
  static const char* const names[] = {"llvm.x86.avx512.mask.scalef.ps.128",
                                      "llvm.x86.avx512.mask.scalef.ps.256",
                                      "llvm.x86.avx512.mask.scalef.ps.512"};
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef mask = ll->IntTypeInContext(e->context, lanes < 8 ? 8 : lanes);
  LLVMValueRef args[] = {a, b, a, ll->ConstAllOnes(mask),
                         pestle_llvm_i32(e, 4)};
  return pestle_llvm_intrinsic(e, width_name(lanes, names), NULL, 0, args,
                               lanes == 16 ? 5 : 4);
}

// The vectors of |n| from lane |first| on.
static LLVMValueRef part(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n,
                         unsigned first, unsigned count) {
  LLVMValueRef x[3];
  int operands = n->op == PESTLE_KIR_SCALE ? 2 : 3;
  for (int a = 0; a < operands; ++a) {
    x[a] = slice(e, pestle_llvm_get(e, n->arg[a]), n->lanes, first, count);
  }
  if (n->op == PESTLE_KIR_SCALE) return scale(e, count, x[0], x[1]);
  if (n->op == PESTLE_KIR_DOT2) return dot2(e, count, x[0], x[1], x[2]);
  const uint64_t bytes = PESTLE_LLVM_BIT(AVX512VNNI) | PESTLE_LLVM_BIT(AVXVNNI);
  if (!(e->cpu->features & bytes)) {
    return n->arg[3] == PESTLE_KIR_DOT4_B_SIGNED &&
                   has_small_bytes(e, n->arg[0])
               ? small_dot4(e, count, x[0], x[1], x[2])
               : wide_dot4(e, count, n->arg[3], x[0], x[1], x[2]);
  }
  return dot4(e, count, n->arg[3], x[0], x[1], x[2]);
}

void pestle_llvm_emit_dot(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_llvm_api_t* ll = e->ll;
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  unsigned most = pestle_llvm_has_v4(e->cpu->features) ? MOST_LANES : 8;
  unsigned count = 4;
  while (count < n->lanes && count < most)
    count *= 2;
  if (count == n->lanes) {
    pestle_llvm_set(e, id, part(e, n, 0, count));
    return;
  }
  LLVMValueRef all = NULL;
  for (unsigned first = 0; first < n->lanes; first += count) {
    LLVMValueRef made = part(e, n, first, count);
    for (unsigned i = 0; i < count && first + i < n->lanes; ++i) {
      LLVMValueRef one =
          ll->BuildExtractElement(e->b, made, pestle_llvm_i64(e, i), "");
      if (n->lanes == 1) {
        all = one;
        break;
      }
      if (!all) all = ll->GetPoison(ll->VectorType(ll->TypeOf(one), n->lanes));
      all = ll->BuildInsertElement(e->b, all, one,
                                   pestle_llvm_i64(e, first + i), "");
    }
  }
  pestle_llvm_set(e, id, all);
}
