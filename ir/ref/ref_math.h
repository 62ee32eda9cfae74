// SPDX-License-Identifier: Apache-2.0
// The vocabulary of scalar.def's expression columns, written for the precision
// that the includer names: functions m32_*, m64_* behind M(f), and the integer
// macros. Private to ref_scalar.c.
#ifndef PESTLE_IR_REF_REF_MATH_H_
#define PESTLE_IR_REF_REF_MATH_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// In f32 every function is taken in f64 and rounded, so that it is correctly
// rounded but for the rarest ties; those that are exact in f64 stay exact.
// clang-format off
#define PESTLE_REF_MATH1(X)                                                  \
  X(fabs)                                                                    \
  X(floor) X(ceil) X(rint) X(round) X(trunc) X(sqrt) X(cbrt) X(exp) X(expm1) \
      X(log) X(log1p) X(tanh) X(sin) X(cos) X(tan) X(erf) X(rsqrt) X(logistic)   \
      X(erfc) X(erf_inv) X(exp2)
// clang-format on
#define PESTLE_REF_MATH2(X) X(fmod) X(pow) X(atan2)

static inline double pestle_ref_rsqrt(double a) {
  return 1.0 / sqrt(a);
}
// The C library's own are off by up to 3 and 4 ulp (glibc 2.36).
static inline double pestle_ref_cbrt(double a) {
  return (double)cbrtl((long double)a);
}
static inline double pestle_ref_erfc(double a) {
  return (double)erfcl((long double)a);
}
// By the exponential that does not overflow: the result may be subnormal.
static inline double pestle_ref_logistic(double a) {
  double e = exp(-fabs(a));
  return (signbit(a) ? e : 1.0) / (1.0 + e);
}
// Newton's method with Halley's second term in long double, from a formula of
// Winitzki's that is right to 2 parts in 1,000: three steps triple its digits
// beyond those of a long double. Near 1 on the other end, 1 - |x|, which is
// exact there, and with the complement, whose digits are all its own.
static inline double pestle_ref_erf_inv(double x) {
  long double a = fabsl((long double)x), rest = 1 - a;
  if (!(a < 1)) return a > 1 ? (double)NAN : x / (double)rest;
  if (a < 1e-300L) return (double)(x * 0.886226925452758013649L);
  long double log_rest = log1pl(-a * a), half = 4.330746750799873L;
  half += log_rest / 2;
  long double y = sqrtl(sqrtl(half * half - log_rest / 0.147L) - half);
  for (int i = 0; i < 4; ++i) {
    long double error = a < 0.5L ? erfl(y) - a : rest - erfcl(y);
    error *= 0.886226925452758013649L * expl(y * y);
    y -= error / (1 + y * error);
  }
  return (double)copysignl(y, (long double)x);
}
#define erf_inv pestle_ref_erf_inv
#define cbrt pestle_ref_cbrt
#define erfc pestle_ref_erfc
#define rsqrt pestle_ref_rsqrt
#define logistic pestle_ref_logistic
#define PESTLE_REF_DEFINE1(f)              \
  static inline double m64_##f(double a) { \
    return f(a);                           \
  }                                        \
  static inline float m32_##f(float a) {   \
    return (float)f((double)a);            \
  }
#define PESTLE_REF_DEFINE2(f)                        \
  static inline double m64_##f(double a, double b) { \
    return f(a, b);                                  \
  }                                                  \
  static inline float m32_##f(float a, float b) {    \
    return (float)f((double)a, (double)b);           \
  }
PESTLE_REF_MATH1(PESTLE_REF_DEFINE1)
PESTLE_REF_MATH2(PESTLE_REF_DEFINE2)
#undef PESTLE_REF_DEFINE1
#undef PESTLE_REF_DEFINE2
#undef PESTLE_REF_MATH1
#undef PESTLE_REF_MATH2
#undef erf_inv
#undef cbrt
#undef erfc
#undef rsqrt
#undef logistic

// Rounding an f64 sum of an exact product would round twice.
static inline float m32_fma(float a, float b, float c) {
  return fmaf(a, b, c);
}
static inline double m64_fma(double a, double b, double c) {
  return fma(a, b, c);
}

// NaN wins, and -0 is less than +0.
#define PESTLE_REF_DEFINE_ORDER(prefix, T)     \
  static inline T prefix##_max(T a, T b) {     \
    if (isnan(a) || isnan(b)) return a + b;    \
    if (a == b) return signbit(a) ? b : a;     \
    return a > b ? a : b;                      \
  }                                            \
  static inline T prefix##_min(T a, T b) {     \
    if (isnan(a) || isnan(b)) return a + b;    \
    if (a == b) return signbit(a) ? a : b;     \
    return a < b ? a : b;                      \
  }                                            \
  static inline T prefix##_sign(T a) {         \
    return a > 0 ? (T)1 : a < 0 ? (T) - 1 : a; \
  }
PESTLE_REF_DEFINE_ORDER(m32, float)
PESTLE_REF_DEFINE_ORDER(m64, double)
#undef PESTLE_REF_DEFINE_ORDER

// Integers: everything is defined, nothing traps. Division by zero gives all
// ones and its remainder the dividend; a shift by the width or more gives zero
// or the sign; a negative exponent gives what rounds towards zero.
static inline uint64_t pestle_ref_mask(uint64_t width) {
  return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}
static inline int64_t pestle_ref_sign_extend(uint64_t a, uint64_t width) {
  uint64_t sign = UINT64_C(1) << (width - 1);
  return (int64_t)(((a & pestle_ref_mask(width)) ^ sign) - sign);
}
static inline uint64_t pestle_ref_u_pow(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}
static inline int64_t pestle_ref_s_pow(int64_t base, int64_t exponent) {
  if (exponent >= 0) {
    return (int64_t)pestle_ref_u_pow((uint64_t)base, (uint64_t)exponent);
  }
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 ? -1 : 1;
  return 0;
}
static inline int64_t pestle_ref_s_sar(int64_t a, uint64_t shift,
                                       uint64_t width) {
  return a >> (shift >= width ? 63 : shift);
}
static inline uint64_t pestle_ref_clz(uint64_t a, uint64_t width) {
  a &= pestle_ref_mask(width);
  return a ? (uint64_t)__builtin_clzll(a) - (64 - width) : width;
}

#define WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))
#define S_DIV(a, b) ((b) == 0 ? -1 : (b) == -1 ? WRAP(0, -, a) : (a) / (b))
#define U_DIV(a, b) ((b) == 0 ? UINT64_MAX : (a) / (b))
#define S_REM(a, b) ((b) == 0 ? (a) : (b) == -1 ? 0 : (a) % (b))
#define U_REM(a, b) ((b) == 0 ? (a) : (a) % (b))
#define S_POW(a, b) pestle_ref_s_pow(a, b)
#define U_POW(a, b) pestle_ref_u_pow(a, b)
#define U_SHL(a, b, W) ((b) >= (W) ? 0 : (a) << (b))
#define S_SHL(a, b, W) ((int64_t)U_SHL((uint64_t)(a), (uint64_t)(b), W))
#define U_SHR(a, b, W) ((b) >= (W) ? 0 : ((a) & pestle_ref_mask(W)) >> (b))
#define S_SHR(a, b, W) ((int64_t)U_SHR((uint64_t)(a), (uint64_t)(b), W))
#define S_SAR(a, b, W) pestle_ref_s_sar(a, (uint64_t)(b), W)
#define U_SAR(a, b, W) \
  ((uint64_t)pestle_ref_s_sar(pestle_ref_sign_extend(a, W), b, W))
#define U_POPCNT(a, W) \
  ((uint64_t)__builtin_popcountll((a) & pestle_ref_mask(W)))
#define S_POPCNT(a, W) ((int64_t)U_POPCNT((uint64_t)(a), W))
#define U_CLZ(a, W) pestle_ref_clz(a, W)
#define S_CLZ(a, W) ((int64_t)pestle_ref_clz((uint64_t)(a), W))
// min(max(x, low), high), as the floats have it.
#define S_CLAMP(low, x, high) \
  (((x) < (low) ? (low) : (x)) > (high) ? (high) : (x) < (low) ? (low) : (x))
// The row does not take that kind: never called.
#define NO 0

#endif  // PESTLE_IR_REF_REF_MATH_H_
