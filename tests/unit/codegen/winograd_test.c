// SPDX-License-Identifier: Apache-2.0
// The factors of weights: with the transforms of emit_winograd_in.c and
// emit_winograd_out.c they make a convolution of three taps.
#include <math.h>

#include "codegen/winograd.h"
#include "test.h"

enum {
  IN = PESTLE_WINOGRAD_IN,
  OUT = PESTLE_WINOGRAD_OUT,
  TAPS = PESTLE_WINOGRAD_TAPS
};

// Points by factor; the last one is infinity.
static double point(int i) {
  static const double sign[IN] = {0, 1, -1, 1, -1, 0};
  return sign[i] * (i <= 2 ? PESTLE_WINOGRAD_NEAR : PESTLE_WINOGRAD_FAR);
}

// A^T: powers of the points.
static double result_of(int r, int i) {
  if (i == IN - 1) return r == OUT - 1;
  return r == 0 ? 1 : pow(point(i), r);
}

// B^T: coefficient j of the product of (x - p) over the finite points p but
// point i.
static double input_of(int i, int j) {
  double c[IN + 1] = {1};
  int degree = 0;
  for (int p = 0; p < IN - 1; ++p) {
    if (p == i) continue;
    for (int d = ++degree; d >= 0; --d)
      c[d] = (d ? c[d - 1] : 0) - point(p) * (d < degree ? c[d] : 0);
  }
  return c[j];
}

static void test_factors_make_a_convolution(void** state) {
  (void)state;
  for (int r = 0; r < OUT; ++r) {
    for (int k = 0; k < TAPS; ++k) {
      for (int j = 0; j < IN; ++j) {
        double sum = 0;
        for (int i = 0; i < IN; ++i) {
          sum +=
              result_of(r, i) * pestle_winograd_weight(i, k) * input_of(i, j);
        }
        assert_true(fabs(sum - (j == r + k)) < 1e-14);
      }
    }
  }
}

// The input's transform is written with a b = 1.
static void test_points(void** state) {
  (void)state;
  assert_true(fabs(PESTLE_WINOGRAD_NEAR * PESTLE_WINOGRAD_FAR - 1) < 1e-15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_factors_make_a_convolution),
      cmocka_unit_test(test_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
