// SPDX-License-Identifier: Apache-2.0
// The head of every printed file: the vocabulary of scalar.def's expressions.
// This text is never compiled with the plugin; see print_c.c.
#define EXAMPLE_PRELUDE                                                       \
  "#include <math.h>\n"                                                       \
  "#include <stdint.h>\n"                                                     \
  "#include <string.h>\n"                                                     \
  "#define WRAP(a, op, b) ((int64_t)((uint64_t)(a) op (uint64_t)(b)))\n"      \
  "#define S_DIV(a, b) (!(b) ? -1 : (b) == -1 ? WRAP(0, -, a) : (a) / (b))\n" \
  "#define U_DIV(a, b) ((b) ? (a) / (b) : UINT64_MAX)\n"                      \
  "#define S_REM(a, b) (!(b) ? (a) : (b) == -1 ? 0 : (a) % (b))\n"            \
  "#define U_REM(a, b) ((b) ? (a) % (b) : (a))\n"                             \
  "#define S_CLAMP(l, x, h) ((x) < (l) ? ((l) < (h) ? (l) : (h))"             \
  " : (x) < (h) ? (x) : (h))\n"                                               \
  "static inline uint64_t U_POW(uint64_t a, uint64_t b) {\n"                  \
  "  uint64_t r = 1;\n"                                                       \
  "  for (; b; b >>= 1, a *= a) if (b & 1) r *= a;\n"                         \
  "  return r;\n}\n"                                                          \
  "static inline int64_t S_POW(int64_t a, int64_t b) {\n"                     \
  "  if (b >= 0) return (int64_t)U_POW((uint64_t)a, (uint64_t)b);\n"          \
  "  return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n}\n"                \
  "static inline uint64_t mask(uint64_t w) {\n"                               \
  "  return w < 64 ? (UINT64_C(1) << w) - 1 : UINT64_MAX;\n}\n"               \
  "static inline uint64_t U_SHL(uint64_t a, uint64_t b, uint64_t w) {\n"      \
  "  return b < w ? a << b : 0;\n}\n"                                         \
  "static inline uint64_t U_SHR(uint64_t a, uint64_t b, uint64_t w) {\n"      \
  "  return b < w ? (a & mask(w)) >> b : 0;\n}\n"                             \
  "static inline int64_t sext(uint64_t a, uint64_t w) {\n"                    \
  "  return (int64_t)(a << (64 - w)) >> (64 - w);\n}\n"                       \
  "static inline int64_t S_SHL(int64_t a, int64_t b, uint64_t w) {\n"         \
  "  return (int64_t)U_SHL((uint64_t)a, (uint64_t)b & mask(w), w);\n}\n"      \
  "static inline int64_t S_SHR(int64_t a, int64_t b, uint64_t w) {\n"         \
  "  return (int64_t)U_SHR((uint64_t)a, (uint64_t)b & mask(w), w);\n}\n"      \
  "static inline int64_t S_SAR(int64_t a, int64_t b, uint64_t w) {\n"         \
  "  uint64_t n = (uint64_t)b & mask(w);\n"                                   \
  "  return a >> (n < w ? n : w - 1);\n}\n"                                   \
  "static inline uint64_t U_SAR(uint64_t a, uint64_t b, uint64_t w) {\n"      \
  "  return (uint64_t)(sext(a, w) >> (b < w ? b : w - 1));\n}\n"              \
  "static inline uint64_t U_POPCNT(uint64_t a, uint64_t w) {\n"               \
  "  return (uint64_t)__builtin_popcountll(a & mask(w));\n}\n"                \
  "static inline uint64_t U_CLZ(uint64_t a, uint64_t w) {\n"                  \
  "  a &= mask(w);\n"                                                         \
  "  return a ? (uint64_t)__builtin_clzll(a) - (64 - w) : w;\n}\n"            \
  "#define S_POPCNT(a, w) ((int64_t)U_POPCNT((uint64_t)(a), w))\n"            \
  "#define S_CLZ(a, w) ((int64_t)U_CLZ((uint64_t)(a), w))\n"                  \
  "#define F_MAX(a, b) (isnan(a) ? (a) : isnan(b) ? (b) : (a) > (b) ? (a)"    \
  " : (b) > (a) ? (b) : signbit(a) ? (b) : (a))\n"                            \
  "#define F_MIN(a, b) (isnan(a) ? (a) : isnan(b) ? (b) : (a) < (b) ? (a)"    \
  " : (b) < (a) ? (b) : signbit(a) ? (a) : (b))\n"                            \
  "#define F_SIGN(a) (isnan(a) || (a) == 0 ? (a) : (a) > 0 ? 1 : -1)\n"       \
  "static inline double rsqrt(double a) { return 1 / sqrt(a); }\n"            \
  "static inline double logistic(double a) {\n"                               \
  "  double e = exp(-fabs(a)); return (signbit(a) ? e : 1) / (1 + e); }\n"    \
  "static inline double erf_inv(double x) {\n"                                \
  "  long double a = fabsl(x), low = 0, high = 6;\n"                          \
  "  if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;\n"                     \
  "  if (a < 1e-300L) return (double)(x * 0.886226925452758013649L);\n"       \
  "  for (int i = 0; i < 12; ++i) {\n"                                        \
  "    long double y = (low + high) / 2;\n"                                   \
  "    if (a < 0.5L ? erfl(y) < a : erfcl(y) > 1 - a) low = y;\n"             \
  "    else high = y;\n  }\n"                                                 \
  "  long double y = fmaxl(low, a * 0.886226925452758013649L);\n"             \
  "  for (int i = 0; i < 8; ++i)\n"                                           \
  "    y += (a < 0.5L ? a - erfl(y) : erfcl(y) - (1 - a)) * expl(y * y) *\n"  \
  "         0.886226925452758013649L;\n"                                      \
  "  return (double)copysignl(y, x);\n}\n"                                    \
  "static inline float f32_fma(float a, float b, float c) {\n"                \
  "  return fmaf(a, b, c);\n}\n"                                              \
  "static inline float as_f32(uint32_t b) {\n"                                \
  "  float x; memcpy(&x, &b, 4); return x;\n}\n"                              \
  "static inline double as_f64(uint64_t b) {\n"                               \
  "  double x; memcpy(&x, &b, 8); return x;\n}\n"                             \
  "static inline int64_t to_int(double x, double lo, double hi, int64_t min," \
  " int64_t max) {\n"                                                         \
  "  return isnan(x) ? 0 : x <= lo ? min : x >= hi ? max : (int64_t)x;\n}\n"  \
  "static inline uint64_t to_uint(double x, double hi, uint64_t max) {\n"     \
  "  return !(x > 0) ? 0 : x >= hi ? max : (uint64_t)x;\n}\n"
