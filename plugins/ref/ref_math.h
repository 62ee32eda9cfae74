// SPDX-License-Identifier: Apache-2.0
// The vocabulary of scalar.def's expression columns. Written for this backend
// alone: ir/ref has its own, and tests hold the two against each other.
// Private to ref_scalar.c.
#ifndef PESTLE_PLUGINS_REF_REF_MATH_H_
#define PESTLE_PLUGINS_REF_REF_MATH_H_

#include <math.h>
#include <stdint.h>

// The C library's own are off by up to 3 and 4 ulp (glibc 2.36).
static inline double d_cbrt(double a) {
  return (double)cbrtl((long double)a);
}
static inline double d_erfc(double a) {
  return (double)erfcl((long double)a);
}
static inline double d_rsqrt(double a) {
  return 1.0 / sqrt(a);
}
static inline double d_logistic(double a) {
  // By the exponential that does not overflow: the result may be subnormal.
  double e = exp(-fabs(a));
  return (signbit(a) ? e : 1.0) / (1.0 + e);
}
// The root of erf(y) = |x|, of erfc(y) = 1 - |x| where that is the exact one:
// halves an interval until Newton's steps converge, and takes those.
static inline double d_erf_inv(double x) {
  long double a = fabsl((long double)x), low = 0, high = 6, y = 0;
  if (!(a <= 1)) return NAN;
  if (a == 1) return x * INFINITY;
  if (a < 1e-300L) return (double)(x * 0.886226925452758013649L);
  for (int i = 0; i < 12; ++i) {
    y = (low + high) / 2;
    if (a < 0.5L ? erfl(y) < a : erfcl(y) > 1 - a) {
      low = y;
    } else {
      high = y;
    }
  }
  // From the left, where the curve bends towards the axis, no step goes too far.
  y = low > 0 ? low : a * 0.886226925452758013649L;
  for (int i = 0; i < 8; ++i) {
    long double miss = a < 0.5L ? a - erfl(y) : erfcl(y) - (1 - a);
    y += miss * expl(y * y) * 0.886226925452758013649L;
  }
  return (double)copysignl(y, (long double)x);
}

// f32: exact functions directly, the others in f64 and rounded.
#define F32_EXACT1(name)                    \
  static inline float f32_##name(float a) { \
    return name##f(a);                      \
  }
#define F32_VIA1(name, g)                   \
  static inline float f32_##name(float a) { \
    return (float)g((double)a);             \
  }
F32_EXACT1(fabs)
F32_EXACT1(floor)
F32_EXACT1(ceil)
F32_EXACT1(rint)
F32_EXACT1(round)
F32_EXACT1(trunc)
F32_EXACT1(sqrt)
F32_VIA1(rsqrt, d_rsqrt)
F32_VIA1(cbrt, d_cbrt)
F32_VIA1(exp, exp)
F32_VIA1(expm1, expm1)
F32_VIA1(exp2, exp2)
F32_VIA1(log, log)
F32_VIA1(log1p, log1p)
F32_VIA1(logistic, d_logistic)
F32_VIA1(tanh, tanh)
F32_VIA1(sin, sin)
F32_VIA1(cos, cos)
F32_VIA1(tan, tan)
F32_VIA1(erf, erf)
F32_VIA1(erfc, d_erfc)
F32_VIA1(erf_inv, d_erf_inv)
#undef F32_EXACT1
#undef F32_VIA1
static inline float f32_fmod(float a, float b) {
  return fmodf(a, b);
}
static inline float f32_pow(float a, float b) {
  return (float)pow((double)a, (double)b);
}
static inline float f32_atan2(float a, float b) {
  return (float)atan2((double)a, (double)b);
}
static inline float f32_fma(float a, float b, float c) {
  return fmaf(a, b, c);
}

#define f64_fabs fabs
#define f64_floor floor
#define f64_ceil ceil
#define f64_rint rint
#define f64_round round
#define f64_trunc trunc
#define f64_sqrt sqrt
#define f64_rsqrt d_rsqrt
#define f64_cbrt d_cbrt
#define f64_exp exp
#define f64_expm1 expm1
#define f64_exp2 exp2
#define f64_log log
#define f64_log1p log1p
#define f64_logistic d_logistic
#define f64_tanh tanh
#define f64_sin sin
#define f64_cos cos
#define f64_tan tan
#define f64_erf erf
#define f64_erfc d_erfc
#define f64_erf_inv d_erf_inv
#define f64_fmod fmod
#define f64_pow pow
#define f64_atan2 atan2
#define f64_fma fma

// NaN wins; -0 is less than +0. The sum of equals keeps +0 over -0, and of two
// zeros the bitwise or of the signs is the lesser.
static inline float f32_max(float a, float b) {
  if (a > b) return a;
  if (a < b) return b;
  return a == b ? (signbit(a) ? b : a) : a + b;
}
static inline float f32_min(float a, float b) {
  if (a < b) return a;
  if (a > b) return b;
  return a == b ? (signbit(a) ? a : b) : a + b;
}
static inline double f64_max(double a, double b) {
  if (a > b) return a;
  if (a < b) return b;
  return a == b ? (signbit(a) ? b : a) : a + b;
}
static inline double f64_min(double a, double b) {
  if (a < b) return a;
  if (a > b) return b;
  return a == b ? (signbit(a) ? a : b) : a + b;
}
static inline float f32_sign(float a) {
  return a > 0 ? 1.0f : a < 0 ? -1.0f : a;
}
static inline double f64_sign(double a) {
  return a > 0 ? 1.0 : a < 0 ? -1.0 : a;
}

// --- Integers: everything is defined ---

static inline uint64_t low_mask(uint64_t width) {
  return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}
static inline int64_t sign_extend(uint64_t a, uint64_t width) {
  uint64_t sign = UINT64_C(1) << (width - 1);
  return (int64_t)(((a & low_mask(width)) ^ sign) - sign);
}
static inline uint64_t u_pow(uint64_t a, uint64_t b) {
  uint64_t power = 1;
  while (b) {
    if (b & 1) power *= a;
    a *= a;
    b >>= 1;
  }
  return power;
}
// A negative exponent rounds 1 / a^|b| towards zero.
static inline int64_t s_pow(int64_t a, int64_t b) {
  if (b >= 0) return (int64_t)u_pow((uint64_t)a, (uint64_t)b);
  if (a == 1) return 1;
  if (a == -1) return b & 1 ? -1 : 1;
  return 0;
}
static inline int64_t s_sar(int64_t a, uint64_t b, uint64_t width) {
  return a >> (b < width ? b : 63);
}
static inline uint64_t u_clz(uint64_t a, uint64_t width) {
  uint64_t count = 0;
  while (count < width && !(a >> (width - 1 - count) & 1))
    ++count;
  return count;
}
static inline uint64_t u_popcnt(uint64_t a) {
  return (uint64_t)__builtin_popcountll(a);
}

#define WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))
#define S_DIV(a, b) ((b) == 0 ? -1 : (b) == -1 ? WRAP(0, -, a) : (a) / (b))
#define U_DIV(a, b) ((b) == 0 ? UINT64_MAX : (a) / (b))
#define S_REM(a, b) ((b) == 0 ? (a) : (b) == -1 ? 0 : (a) % (b))
#define U_REM(a, b) ((b) == 0 ? (a) : (a) % (b))
#define S_POW(a, b) s_pow(a, b)
#define U_POW(a, b) u_pow(a, b)
#define U_SHL(a, b, W) ((b) < (W) ? (a) << (b) : 0)
#define S_SHL(a, b, W) ((int64_t)U_SHL((uint64_t)(a), (uint64_t)(b), W))
#define U_SHR(a, b, W) ((b) < (W) ? ((a) & low_mask(W)) >> (b) : 0)
#define S_SHR(a, b, W) ((int64_t)U_SHR((uint64_t)(a), (uint64_t)(b), W))
#define S_SAR(a, b, W) s_sar(a, (uint64_t)(b), W)
#define U_SAR(a, b, W) ((uint64_t)s_sar(sign_extend(a, W), b, W))
#define U_POPCNT(a, W) u_popcnt((a) & low_mask(W))
#define S_POPCNT(a, W) ((int64_t)u_popcnt((uint64_t)(a) & low_mask(W)))
#define U_CLZ(a, W) u_clz((a) & low_mask(W), W)
#define S_CLZ(a, W) ((int64_t)u_clz((uint64_t)(a) & low_mask(W), W))
#define U_CLAMP_LOW(low, x) ((x) > (low) ? (x) : (low))
#define S_CLAMP(low, x, high) \
  (U_CLAMP_LOW(low, x) < (high) ? U_CLAMP_LOW(low, x) : (high))
// The row does not take that kind; never called.
#define NO 0

#endif  // PESTLE_PLUGINS_REF_REF_MATH_H_
