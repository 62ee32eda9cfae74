// SPDX-License-Identifier: Apache-2.0
// The inverse of erf in long double: what tests hold the expansions and both
// references to.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_ERF_INVERSE_H_
#define PESTLE_TESTS_UNIT_CODEGEN_ERF_INVERSE_H_

#include <math.h>
#include <stdbool.h>

// Halves an interval, then takes Newton's steps from its lower end, which stay
// below the root since erf bends down. From 1/2 on erfc tells 1 - |x|, which is
// exact, with all its digits.
static inline long double erf_inverse(long double x) {
  const long double slope = 0.886226925452758013649083741670572592L;
  long double a = fabsl(x), low = 0, high = 7;
  if (!(a < 1)) return a == 1 ? x * (long double)INFINITY : (long double)NAN;
  if (a < 1e-11L) return x * slope;  // its cube is nothing
  for (int i = 0; i < 9; ++i) {
    long double y = (low + high) / 2;
    bool below = a < 0.5L ? erfl(y) < a : erfcl(y) > 1 - a;
    if (below) {
      low = y;
    } else {
      high = y;
    }
  }
  long double y = fmaxl(low, a * slope);
  for (int i = 0; i < 6; ++i) {
    long double miss = a < 0.5L ? a - erfl(y) : erfcl(y) - (1 - a);
    y += miss * expl(y * y) * slope;
  }
  return copysignl(y, x);
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_ERF_INVERSE_H_
