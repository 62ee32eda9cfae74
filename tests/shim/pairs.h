// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two 16-bit floats in a word, as a device has it, on a CPU: each
// by itself, computed in f64, which holds products of such floats and all that
// their sums are rounded by, and rounded once.
#ifndef PESTLE_TESTS_SHIM_PAIRS_H_
#define PESTLE_TESTS_SHIM_PAIRS_H_

struct pestle_pair_f16 {
  static double from(unsigned a) {
    unsigned short bits = (unsigned short)a;
    _Float16 x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return (double)x;
  }
  static unsigned to(double a) {
    if (a != a) return 0x7fffu;
    _Float16 x = (_Float16)a;
    unsigned short bits;
    __builtin_memcpy(&bits, &x, sizeof x);
    return bits;
  }
};

struct pestle_pair_bf16 {
  static double from(unsigned a) {
    unsigned bits = a << 16;
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return (double)x;
  }
  // To odd in f32 first, so that the second rounding sees what is below it.
  static unsigned to(double a) {
    if (a != a) return 0x7fffu;
    float x = (float)a;
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof x);
    double back = (double)x;
    if (back != a && __builtin_fabs(a) < 3.4028234663852886e38) {
      bool above = __builtin_fabs(back) > __builtin_fabs(a);
      if (above) --bits;
      bits |= 1u;
    }
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  }
};

template <typename Pair, typename Row>
static inline unsigned pestle_shim_pair(Row row, unsigned a, unsigned b) {
  unsigned low =
      Pair::to(row(Pair::from(a & 0xffffu), Pair::from(b & 0xffffu)));
  unsigned high = Pair::to(row(Pair::from(a >> 16), Pair::from(b >> 16)));
  return low | high << 16;
}

static inline double pestle_pair_extreme(double a, double b, bool larger) {
  if (a != a || b != b) return a + b;
  if (a == b) {
    bool minus = __builtin_signbit(a);
    return (minus == larger) ? b : a;
  }
  return (a > b) == larger ? a : b;
}

#define PESTLE_PAIR2(name, expression)                                       \
  static inline unsigned pestle_shim_bf16x2_##name(unsigned a, unsigned b) { \
    return pestle_shim_pair<pestle_pair_bf16>(                               \
        [](double x, double y) { return expression; }, a, b);                \
  }                                                                          \
  static inline unsigned pestle_shim_f16x2_##name(unsigned a, unsigned b) {  \
    return pestle_shim_pair<pestle_pair_f16>(                                \
        [](double x, double y) { return expression; }, a, b);                \
  }
PESTLE_PAIR2(add, x + y)
PESTLE_PAIR2(sub, x - y)
PESTLE_PAIR2(mul, x* y)
PESTLE_PAIR2(max, pestle_pair_extreme(x, y, true))
PESTLE_PAIR2(min, pestle_pair_extreme(x, y, false))
static inline unsigned pestle_shim_bf16x2_pack(float low, float high) {
  return pestle_pair_bf16::to((double)low) | pestle_pair_bf16::to((double)high)
                                                 << 16;
}
static inline unsigned pestle_shim_f16x2_pack(float low, float high) {
  return pestle_pair_f16::to((double)low) | pestle_pair_f16::to((double)high)
                                                << 16;
}

#endif  // PESTLE_TESTS_SHIM_PAIRS_H_
