// SPDX-License-Identifier: Apache-2.0
// plugins/lapack on libraries with each of the habits that BLAS and LAPACK
// leave open: singular matrices, infinities and NaN must come out as the loops
// of the op's own kernels have them, whatever the library makes of them.
#include <math.h>

#include "plugins/lapack/lapack_api.h"
#include "test.h"

// --- A library of bad habits ---

static double g_garbage;  // what is written where nothing is promised
static bool g_keeps;      // instead leaves what is there
static bool g_is_blind;   // potrf overlooks a pivot that is NaN
static int g_calls;

// Element [i, j] of a matrix by columns.
static float* at32(float* a, int32_t rows, int32_t i, int32_t j) {
  return &a[j * rows + i];
}

static double* at64(double* a, int32_t rows, int32_t i, int32_t j) {
  return &a[j * rows + i];
}

static void fake_pivots(int32_t* pivots, int32_t n) {
  for (int32_t i = 0; i < n; ++i)
    pivots[i] = i + 1;
}

#define T float
#define AT at32
#define FAKE(name) fake_s##name
#include "lapack_fake.h"
#undef T
#undef AT
#undef FAKE
#define T double
#define AT at64
#define FAKE(name) fake_d##name
#include "lapack_fake.h"

static const lapack_api_t g_api = {.sgetrf = fake_sgetrf,
                                   .sgetrs = fake_sgetrs,
                                   .spotrf = fake_spotrf,
                                   .strsm = fake_strsm,
                                   .dgetrf = fake_dgetrf,
                                   .dgetrs = fake_dgetrs,
                                   .dpotrf = fake_dpotrf,
                                   .dtrsm = fake_dtrsm};

// --- One op on one matrix ---

enum { N = 3 };

typedef struct case_t {
  lapack_op_t op;
  uint32_t flags;
  const double *a, *b, *want;  // N x N row-major, b N x 1
  int32_t columns;             // of the result
} case_t;

static lapack_matrix_t matrix(void* data, size_t size, int32_t columns) {
  return (lapack_matrix_t){data, N, columns, (int64_t)size * columns,
                           (int64_t)size};
}

static void assert_same(double got, double want, const char* what) {
  bool same = isnan(want) ? isnan(got) : got == want;
  if (!same) print_error("%s: %g, not %g\n", what, got, want);
  assert_true(same);
}

static void run_f64(const case_t* c) {
  double a[N * N], b[N], out[N * N];
  int32_t pivots[N], order[N];
  char work[4096];
  memcpy(a, c->a, sizeof(a));
  if (c->b) memcpy(b, c->b, sizeof(b));
  lapack_job_t job = {.api = &g_api, .flags = c->flags, .work = work};
  job.m[0] = matrix(a, sizeof(double), N);
  lapack_matrix_t result = matrix(out, sizeof(double), c->columns);
  job.m[1] = c->b ? matrix(b, sizeof(double), 1) : result;
  job.m[2] = c->b ? result : (lapack_matrix_t){(char*)pivots, N, 1, 4, 0};
  job.m[3] = (lapack_matrix_t){(char*)order, N, 1, 4, 0};
  job.work_bytes = pestle_lapack_room_f64(c->op, &job);
  assert_true(job.work_bytes <= sizeof(work));
  pestle_lapack_run_f64(c->op, &job);
  for (int i = 0; i < N * c->columns; ++i)
    assert_same(out[i], c->want[i], "f64");
}

static void run_f32(const case_t* c) {
  float a[N * N], b[N], out[N * N];
  int32_t pivots[N], order[N];
  char work[4096];
  for (int i = 0; i < N * N; ++i)
    a[i] = (float)c->a[i];
  for (int i = 0; c->b && i < N; ++i)
    b[i] = (float)c->b[i];
  lapack_job_t job = {.api = &g_api, .flags = c->flags, .work = work};
  job.m[0] = matrix(a, sizeof(float), N);
  lapack_matrix_t result = matrix(out, sizeof(float), c->columns);
  job.m[1] = c->b ? matrix(b, sizeof(float), 1) : result;
  job.m[2] = c->b ? result : (lapack_matrix_t){(char*)pivots, N, 1, 4, 0};
  job.m[3] = (lapack_matrix_t){(char*)order, N, 1, 4, 0};
  job.work_bytes = pestle_lapack_room_f32(c->op, &job);
  assert_true(job.work_bytes <= sizeof(work));
  pestle_lapack_run_f32(c->op, &job);
  for (int i = 0; i < N * c->columns; ++i)
    assert_same((double)out[i], c->want[i], "f32");
}

// In both types, with each habit.
static void check(case_t c) {
  static const double garbage[] = {0, 42, NAN};
  for (int habit = 0; habit < 6; ++habit) {
    g_garbage = garbage[habit % 3];
    g_keeps = habit == 3;
    g_is_blind = habit >= 4;
    run_f32(&c);
    run_f64(&c);
  }
}

#define M(...) ((const double[N* N]){__VA_ARGS__})
#define V(...) ((const double[N]){__VA_ARGS__})
#define INF INFINITY

// --- Tests ---

static void sound_matrices_are_the_librarys(void** state) {
  (void)state;
  g_calls = 0;
  check((case_t){LAPACK_SOLVE, 0, M(2, 0, 0, 0, 4, 0, 0, 0, 8), V(2, 4, 8),
                 V(1, 1, 1), 1});
  check((case_t){LAPACK_CHOLESKY, PESTLE_LIBRARY_LOWER,
                 M(4, 7, 7, 2, 10, 7, 0, 3, 2), NULL,
                 M(2, 0, 0, 1, 3, 0, 0, 1, 1), N});
  check((case_t){
      LAPACK_TRIANGULAR_SOLVE, PESTLE_LIBRARY_LOWER | PESTLE_LIBRARY_LEFT_SIDE,
      M(1, NAN, NAN, 1, 1, NAN, 1, 1, 2), V(1, 3, 9), V(1, 2, 3), 1});
  assert_int_equal(g_calls, 6 * 2 * 4);
}

static void singular_matrices_divide_by_zero(void** state) {
  (void)state;
  // x2 = 5 / 0, and 0 times that is NaN.
  check((case_t){LAPACK_SOLVE, 0, M(2, 0, 0, 0, 1, 0, 0, 0, 0), V(2, 1, 5),
                 V(NAN, NAN, INF), 1});
  check((case_t){LAPACK_SOLVE, 0, M(1, 1, 1, 1, 1, 1, 1, 1, 1), V(1, 2, 3),
                 V(NAN, NAN, INF), 1});
  // A right-hand side of zeros: one BLAS skips them and answers 0.
  check((case_t){LAPACK_SOLVE, 0, M(0, 0, 0, 0, 0, 0, 0, 0, 0), V(0, 0, 0),
                 V(NAN, NAN, NAN), 1});
  check((case_t){LAPACK_INVERSE, 0, M(0, 0, 0, 0, 0, 0, 0, 0, 0), NULL,
                 M(NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, INF), N});
  // lu is defined: a column without a pivot stays.
  check((case_t){LAPACK_LU, 0, M(0, 1, 2, 0, 4, 8, 0, 1, 3), NULL,
                 M(0, 1, 2, 0, 4, 8, 0, 0.25, 1), N});
}

static void what_is_not_finite_spreads_as_it_must(void** state) {
  (void)state;
  check((case_t){LAPACK_SOLVE, 0, M(NAN, 0, 0, 0, 1, 0, 0, 0, 1), V(1, 1, 1),
                 V(NAN, NAN, NAN), 1});
  check((case_t){LAPACK_SOLVE, 0, M(INF, 0, 0, 0, 1, 0, 0, 0, 1), V(1, 2, 3),
                 V(0, 2, 3), 1});
  check((case_t){LAPACK_SOLVE, 0, M(1, 0, 0, 0, 1, 0, 0, 0, 1), V(1, INF, 3),
                 V(NAN, NAN, NAN), 1});
  check((case_t){LAPACK_LU, 0, M(1, 0, 0, 0, 1, NAN, 0, 0, 1), NULL,
                 M(1, 0, 0, 0, 1, NAN, 0, 0, NAN), N});
  check((case_t){LAPACK_CHOLESKY, PESTLE_LIBRARY_LOWER,
                 M(4, 9, 9, 2, NAN, 9, 2, 2, 9), NULL,
                 M(2, 0, 0, 1, NAN, 0, 1, NAN, NAN), N});
}

static void cholesky_is_nan_from_where_it_fails(void** state) {
  (void)state;
  check((case_t){LAPACK_CHOLESKY, PESTLE_LIBRARY_LOWER,
                 M(4, 9, 9, 2, 1, 9, 2, 2, 9), NULL,
                 M(2, 0, 0, 1, NAN, 0, 1, NAN, NAN), N});
  check((case_t){LAPACK_CHOLESKY, 0, M(4, 2, 2, 9, 1, 2, 9, 9, 9), NULL,
                 M(2, 1, 1, 0, NAN, NAN, 0, 0, NAN), N});
}

static void triangles_are_divided_by(void** state) {
  (void)state;
  const uint32_t left = PESTLE_LIBRARY_LEFT_SIDE, low = PESTLE_LIBRARY_LOWER;
  check((case_t){LAPACK_TRIANGULAR_SOLVE, left | low,
                 M(1, 9, 9, 0, 0, 9, 0, 0, 1), V(1, 0, 0), V(1, NAN, NAN), 1});
  check((case_t){LAPACK_TRIANGULAR_SOLVE, left, M(1, 0, 0, 9, 0, 0, 9, 9, 1),
                 V(1, 1, 1), V(NAN, INF, 1), 1});
  check((case_t){LAPACK_TRIANGULAR_SOLVE, left | PESTLE_LIBRARY_TRANSPOSE,
                 M(1, 0, 0, 9, 0, 0, 9, 9, 1), V(1, 1, 1), V(1, INF, NAN), 1});
  // Not read: the other half, and a diagonal that is 1.
  check((case_t){
      LAPACK_TRIANGULAR_SOLVE, left | low | PESTLE_LIBRARY_UNIT_DIAGONAL,
      M(0, NAN, NAN, 1, NAN, NAN, 0, 1, 0), V(1, INF, 1), V(1, INF, -INF), 1});
}

// 1 / tiny is infinite in f32, but tiny / tiny is 1.
static void subnormal_pivots_are_divisors(void** state) {
  (void)state;
  const double tiny = 0x1p-130;
  check((case_t){LAPACK_SOLVE, 0, M(1, 0, 0, 0, 1, 0, 0, 0, tiny),
                 V(1, 2, tiny), V(1, 2, 1), 1});
  check((case_t){LAPACK_TRIANGULAR_SOLVE, PESTLE_LIBRARY_LEFT_SIDE,
                 M(1, 0, 0, 0, 1, 0, 0, 0, tiny), V(1, 2, tiny), V(1, 2, 1),
                 1});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_matrices_are_the_librarys),
      cmocka_unit_test(singular_matrices_divide_by_zero),
      cmocka_unit_test(what_is_not_finite_spreads_as_it_must),
      cmocka_unit_test(cholesky_is_nan_from_where_it_fails),
      cmocka_unit_test(triangles_are_divided_by),
      cmocka_unit_test(subnormal_pivots_are_divisors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
