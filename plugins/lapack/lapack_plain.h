// SPDX-License-Identifier: Apache-2.0
// Elimination, substitution and Cholesky in loops of our own, in the order in
// which the kernels of lu, solve, cholesky and triangular_solve compute.
//
// LAPACK promises nothing about a singular matrix, an infinity or a NaN: one
// BLAS skips products with 0 and so loses 0 * infinity, another multiplies by
// the reciprocal of a pivot, which overflows for subnormal ones, a third leaves
// half a factor behind. LAPACK's result therefore counts only where operands and
// result are finite and every pivot is a divisor (see is_divisor()); everything
// else is computed by the loops here, and comes out the same with every library.
//
// Included by lapack_real.h for each of f32 and f64: REAL. Matrices lie by
// columns without gaps.

static bool is_finite(const REAL* a, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!isfinite(a[i])) return false;
  }
  return true;
}

// Whether to multiply by 1 / |x| is as good as to divide by |x|.
static bool is_divisor(REAL x) {
  return isnormal(1 / x);
}

// Whether a library may divide by the diagonal of |a|, |n| x |n|.
static bool divides(const REAL* a, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    if (!is_divisor(a[(size_t)i * ((size_t)n + 1)])) return false;
  }
  return true;
}

// The first row at or below |k| with the largest element in |column|.
static int32_t pivot_row(const REAL* column, int32_t k, int32_t rows) {
  int32_t at = k;
  for (int32_t i = k + 1; i < rows; ++i) {
    if (fabs((double)column[i]) > fabs((double)column[at])) at = i;
  }
  return at;
}

static void swap_rows(REAL* a, int32_t rows, int32_t columns, int32_t p,
                      int32_t q) {
  for (int32_t j = 0; p != q && j < columns; ++j) {
    REAL *x = &a[(size_t)j * (size_t)rows + (size_t)p],
         *y = &a[(size_t)j * (size_t)rows + (size_t)q], t = *x;
    *x = *y;
    *y = t;
  }
}

// getrf: a column without a pivot stays as it is. |pivots| count from 1.
static void plain_lu(REAL* a, int32_t rows, int32_t columns, int32_t* pivots) {
  for (int32_t k = 0; k < rows && k < columns; ++k) {
    REAL* factors = a + (size_t)k * (size_t)rows;
    int32_t at = pivot_row(factors, k, rows);
    pivots[k] = at + 1;
    swap_rows(a, rows, columns, k, at);
    REAL pivot = factors[k];
    for (int32_t i = k + 1; i < rows && pivot != 0; ++i)
      factors[i] /= pivot;
    for (int32_t j = k + 1; j < columns; ++j) {
      REAL* column = a + (size_t)j * (size_t)rows;
      for (int32_t i = k + 1; i < rows; ++i)
        column[i] -= factors[i] * column[k];
    }
  }
}

// A triangle of |n| x |n| seen from the left without a transpose, and |others|
// right-hand sides of |n|; strides in elements.
typedef struct system_t {
  const REAL* a;
  REAL* x;  // right-hand sides, then solutions
  int64_t n, row, column, others, along, across;
  bool lower, unit;
} system_t;

static void substitute(const system_t* s) {
  for (int64_t other = 0; other < s->others; ++other) {
    REAL* x = s->x + other * s->across;
    for (int64_t step = 0; step < s->n; ++step) {
      int64_t i = s->lower ? step : s->n - 1 - step;
      REAL sum = x[i * s->along];
      for (int64_t j = 0; j < step; ++j) {
        int64_t k = s->lower ? j : s->n - 1 - j;
        sum -= s->a[i * s->row + k * s->column] * x[k * s->along];
      }
      x[i * s->along] = s->unit ? sum : sum / s->a[i * (s->row + s->column)];
    }
  }
}

// getrs: from plain_lu()'s factors of an |n| x |n| matrix.
static void plain_solve(const REAL* lu, const int32_t* pivots, int32_t n,
                        REAL* x, int32_t others) {
  for (int32_t k = 0; k < n; ++k)
    swap_rows(x, n, others, k, pivots[k] - 1);
  system_t s = {.a = lu,
                .x = x,
                .n = n,
                .row = 1,
                .column = n,
                .others = others,
                .along = 1,
                .across = n,
                .lower = true,
                .unit = true};
  substitute(&s);
  s.lower = s.unit = false;
  substitute(&s);
}

// potrf of the lower half: NaN from the first column on whose pivot is not
// positive.
static void plain_cholesky(REAL* a, int32_t n) {
  for (int32_t k = 0; k < n; ++k) {
    REAL* factors = a + (size_t)k * (size_t)n;
    REAL pivot = factors[k];
    REAL root = pivot > 0 ? (REAL)sqrt((double)pivot) : (REAL)NAN;
    factors[k] = root;
    for (int32_t i = k + 1; i < n; ++i)
      factors[i] /= root;
    for (int32_t j = k + 1; j < n; ++j) {
      REAL* column = a + (size_t)j * (size_t)n;
      for (int32_t i = j; i < n; ++i)
        column[i] -= factors[i] * factors[j];
    }
  }
}
