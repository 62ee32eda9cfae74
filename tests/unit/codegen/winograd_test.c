// SPDX-License-Identifier: Apache-2.0
// The factors of weights: with the transforms of emit_in.c and
// emit_out.c they make a convolution of three taps.
#include <math.h>

#include "codegen/template/winograd/winograd.h"
#include "test.h"

enum { MOST = PESTLE_WINOGRAD_MOST, TAPS = PESTLE_WINOGRAD_TAPS };

// Points of |in| factors, by factor; the last one is infinity.
static double point(int in, int i) {
  static const double sign[MOST] = {0, 1, -1, 1, -1, 0};
  double size = i <= 2 ? PESTLE_WINOGRAD_NEAR : PESTLE_WINOGRAD_FAR;
  return sign[i] * (in == MOST ? size : 1);
}

// A^T: powers of the points.
static double result_of(int in, int r, int i) {
  if (i == in - 1) return r == in - TAPS;
  return r == 0 ? 1 : pow(point(in, i), r);
}

// B^T: coefficient j of the product of (x - p) over the finite points p but
// point i.
static double input_of(int in, int i, int j) {
  double c[MOST + 1] = {1};
  int degree = 0;
  for (int p = 0; p < in - 1; ++p) {
    if (p == i) continue;
    for (int d = ++degree; d >= 0; --d)
      c[d] = (d ? c[d - 1] : 0) - point(in, p) * (d < degree ? c[d] : 0);
  }
  return c[j];
}

static void check_size(int in) {
  for (int r = 0; r <= in - TAPS; ++r) {
    for (int k = 0; k < TAPS; ++k) {
      for (int j = 0; j < in; ++j) {
        double sum = 0;
        for (int i = 0; i < in; ++i) {
          sum += result_of(in, r, i) * pestle_winograd_weight(in, i, k) *
                 input_of(in, i, j);
        }
        assert_true(fabs(sum - (j == r + k)) < 1e-14);
      }
    }
  }
}

static void test_factors_make_a_convolution(void** state) {
  (void)state;
  check_size((int)pestle_winograd_factors(PESTLE_WINOGRAD_LARGE));
  check_size((int)pestle_winograd_factors(PESTLE_WINOGRAD_SMALL));
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
