// SPDX-License-Identifier: Apache-2.0
// Quotients x / c by a constant, as quantisation has them. A product by two terms of
// 1 / c gives the same bits at a fifth of a vector division's cycles:
//
//   q = fma(x, high, x * low)    high = 1 / c cut off to 24 bits, low = 1 / c - high
//
// Let x and c lie in [1, 2). |low| is below 2^-24. As the nearest float or a neighbour
// of that it is off by at most 3 * 2^-49, and x * low by 2^-48 more, so that what the
// fma rounds is off from x / c by less than 2^-46. q is x / c rounded unless x / c lies
// that near to the midpoint m of two floats. With X, C and M the three as integers,
// x / c - m = (X 2^k - M C) / (c 2^(23 + k)), where k is 25 for x < c and 24 else, so
// that |X 2^k - M C| is at most 8. These X are found from M C = -j modulo 2^k and
// tried, each. 93 of 100 constants pass by the nearest float, 97 by one of the three.
// (N. Brisebarre, J.-M. Muller, S. K. Raina: Accelerating correctly rounded
// floating-point division when the divisor is known in advance, 2004.)
//
// high and low have one sign, so that infinities, NaN and the sign of zeros come out as
// the division gives them. Results below 2^-100 may be off by an ulp: under `strict`
// that is done only to what is rounded to an integer and read by nothing else.
#include <math.h>
#include <stdlib.h>

#include "codegen/legalise/legalise.h"
#include "codegen/legalise/vector_math_internal.h"

enum { BITS = 24, MOST_EXPONENT = 60, MOST_OFF = 8 };

// 1 / c modulo 2^64 of an odd |c|: each turn doubles the bits that are right.
static uint64_t inverse(uint64_t c) {
  uint64_t x = c;
  for (int turn = 0; turn < 5; ++turn)
    x *= 2 - c * x;
  return x;
}

static bool is_right(float x, float c, float high, float low) {
  return fmaf(x, high, x * low) == x / c;
}

// Whether the product is right for each x that may make x / c lie at |off| of a
// midpoint, in the units of the head; |k| as there.
static bool holds_at(uint64_t c, unsigned k, int64_t off, float high,
                     float low) {
  const uint64_t begin = UINT64_C(1) << BITS, end = begin << 1;
  uint64_t odd = c;
  unsigned twos = 0;
  for (; !(odd & 1); odd >>= 1)
    ++twos;
  if (off & (int64_t)((UINT64_C(1) << twos) - 1)) return true;
  uint64_t step = UINT64_C(1) << (k - twos);
  uint64_t quotient = (uint64_t)(off / (INT64_C(1) << twos));
  uint64_t m = (0 - quotient * inverse(odd)) & (step - 1);
  for (; m < end; m += step) {
    if (m < begin || !(m & 1)) continue;
    uint64_t x = (m * c + (uint64_t)off) >> k;
    bool fits = x >= begin >> 1 && x < begin && (x < c) == (k > BITS);
    if (fits && !is_right(ldexpf((float)x, 1 - BITS),
                          ldexpf((float)c, 1 - BITS), high, low)) {
      return false;
    }
  }
  return true;
}

// The same of all x.
static bool holds(uint64_t c, float high, float low) {
  for (int64_t off = -MOST_OFF; off <= MOST_OFF; ++off) {
    if (off && (!holds_at(c, BITS + 1, off, high, low) ||
                !holds_at(c, BITS, off, high, low))) {
      return false;
    }
  }
  return true;
}

bool pestle_split_reciprocal(float c, float* out_high, float* out_low) {
  int exponent;
  float part = 2 * frexpf(fabsf(c), &exponent);
  if (!isfinite(c) || abs(exponent) > MOST_EXPONENT || part <= 1) return false;
  // 1 / part to 24 bits, towards zero: part * high is exact in 48.
  float high = (float)(1.0 / (double)part);
  if ((double)part * (double)high > 1) high = nextafterf(high, 0);
  float low = (float)((1 - (double)part * (double)high) / (double)part);
  if (!(low > 0)) return false;
  uint64_t whole = (uint64_t)ldexpf(part, BITS - 1);
  float lows[] = {low, nextafterf(low, 1), nextafterf(low, 0)};
  size_t i = 0;
  while (i < 3 && !holds(whole, high, lows[i]))
    ++i;
  if (i == 3) return false;
  *out_high = copysignf(ldexpf(high, 1 - exponent), c);
  *out_low = copysignf(ldexpf(lows[i], 1 - exponent), c);
  return true;
}

static bool rounds(pestle_op_t op) {
  return op == PESTLE_OP_ROUND_EVEN || op == PESTLE_OP_ROUND_AFZ ||
         op == PESTLE_OP_TRUNC;
}

// The division that |inst| is or, under `strict`, rounds the quotient of.
static pestle_kir_id_t quotient_of(const pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_op_t op;
  bool strict = r->numerics == PESTLE_NUMERICS_STRICT;
  if (!pestle_kir_is_scalar(inst->op, &op)) return PESTLE_KIR_NONE;
  if (strict) return rounds(op) ? inst->arg[0] : PESTLE_KIR_NONE;
  return op == PESTLE_OP_DIVIDE ? id : PESTLE_KIR_NONE;
}

bool pestle_rewrite_is_quotient(const pestle_rewrite_t* r, uint32_t id,
                                float* out_c) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  if (inst->type != PESTLE_F32 || !(r->caps->flags & PESTLE_TARGET_FMA) ||
      !pestle_rewrite_can_row(r, PESTLE_OP_FMA, PESTLE_F32)) {
    return false;
  }
  pestle_kir_id_t at = quotient_of(r, id);
  if (at == PESTLE_KIR_NONE) return false;
  const pestle_kir_inst_t* divide = pestle_kir_inst(r->from, at);
  double c;
  if (divide->op != pestle_kir_code(PESTLE_OP_DIVIDE) ||
      !pestle_rewrite_constant(r->from, divide->arg[1], &c)) {
    return false;
  }
  *out_c = (float)c;
  return true;
}

bool pestle_rewrite_quotient(pestle_rewrite_t* r, uint32_t id, float c,
                             pestle_kir_id_t* out_id) {
  float high, low;
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_id_t at = quotient_of(r, id);
  if ((at != id && pestle_rewrite_uses(r, at) != 1) ||
      !pestle_split_reciprocal(c, &high, &low)) {
    return false;
  }
  vm_t v = {r->to, PESTLE_F32, inst->lanes, false};
  vm_id_t x = r->map.data[pestle_kir_inst(r->from, at)->arg[0]];
  vm_id_t rest = vm_mul(v, x, vm_const(v, (double)low));
  vm_id_t q = vm_scale_add(v, x, (double)high, rest);
  if (at != id)
    q = vm_op1(v, (pestle_op_t)(inst->op - PESTLE_KIR_SCALAR_BASE), q);
  *out_id = q;
  return true;
}
