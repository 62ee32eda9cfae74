// SPDX-License-Identifier: Apache-2.0
#include <complex.h>
#include <math.h>

#include "runtime/own_linalg.h"

typedef pestle_z_t z_t;

z_t pestle_z_conj(z_t z) {
  return conj(z);
}

double pestle_z_abs(z_t z) {
  return cabs(z);
}

// --- LU ---

static double size1(z_t z) {
  return fabs(creal(z)) + fabs(cimag(z));
}

static void swap_rows(z_t* a, int64_t n, int64_t i, int64_t k) {
  for (int64_t j = 0; j < n && i != k; ++j) {
    z_t keep = a[i * n + j];
    a[i * n + j] = a[k * n + j];
    a[k * n + j] = keep;
  }
}

void pestle_z_lu(z_t* a, int64_t m, int64_t n, z_t* pivots, z_t* order) {
  for (int64_t i = 0; i < m; ++i)
    order[i] = (double)i;
  for (int64_t k = 0; k < m && k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (size1(a[i * n + k]) > size1(a[best * n + k])) best = i;
    }
    pivots[k] = (double)best;
    swap_rows(a, n, k, best);
    swap_rows(order, 1, k, best);
    if (a[k * n + k] == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      z_t by = a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; ++j)
        a[i * n + j] -= by * a[k * n + j];
    }
  }
}

// --- Triangles ---

void pestle_z_cholesky(z_t* a, int64_t n, bool lower) {
  // Of an upper half the transposed conjugate is taken, and its factor back.
  for (int64_t i = 0; i < n && !lower; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      a[i * n + j] = conj(a[j * n + i]);
  }
  for (int64_t j = 0; j < n; ++j) {
    double d = creal(a[j * n + j]);
    for (int64_t k = 0; k < j; ++k)
      d -= creal(a[j * n + k] * conj(a[j * n + k]));
    d = d > 0 ? sqrt(d) : (double)NAN;
    a[j * n + j] = d;
    for (int64_t i = j + 1; i < n; ++i) {
      z_t x = a[i * n + j];
      for (int64_t k = 0; k < j; ++k)
        x -= a[i * n + k] * conj(a[j * n + k]);
      a[i * n + j] = x / d;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      a[i * n + j] = lower ? 0 : conj(a[j * n + i]);
      if (!lower) a[j * n + i] = 0;
    }
  }
}

void pestle_z_solve_triangle(const z_t* a, int64_t n, z_t* b, int64_t m,
                             bool lower, bool unit) {
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = lower ? step : n - 1 - step;
    int64_t from = lower ? 0 : i + 1, to = lower ? i : n;
    for (int64_t c = 0; c < m; ++c) {
      z_t x = b[i * m + c];
      for (int64_t k = from; k < to; ++k)
        x -= a[i * n + k] * b[k * m + c];
      b[i * m + c] = unit ? x : x / a[i * n + i];
    }
  }
}

// --- Reflections ---

z_t pestle_z_reflect(z_t* x, int64_t n, int64_t step) {
  double rest = 0;
  for (int64_t i = 1; i < n; ++i)
    rest = hypot(rest, cabs(x[i * step]));
  z_t alpha = x[0];
  if (rest == 0 && cimag(alpha) == 0) return 0;
  double beta = -copysign(hypot(cabs(alpha), rest), creal(alpha));
  z_t tau = pestle_z_of((beta - creal(alpha)) / beta, -cimag(alpha) / beta);
  z_t by = 1 / (alpha - beta);
  for (int64_t i = 1; i < n; ++i)
    x[i * step] *= by;
  x[0] = beta;
  return tau;
}

// Rows [0, m) of |columns| columns of |a| times 1 - tau v v^H from the left; v lies at
// |v|, |step| apart, its first element 1 whatever is there.
static void reflect_left(z_t* a, int64_t m, int64_t columns, int64_t stride,
                         const z_t* v, int64_t step, z_t tau) {
  for (int64_t c = 0; c < columns; ++c) {
    z_t dot = a[c];
    for (int64_t i = 1; i < m; ++i)
      dot += conj(v[i * step]) * a[i * stride + c];
    dot *= tau;
    a[c] -= dot;
    for (int64_t i = 1; i < m; ++i)
      a[i * stride + c] -= v[i * step] * dot;
  }
}

void pestle_z_qr(z_t* a, int64_t m, int64_t n, z_t* tau) {
  for (int64_t k = 0; k < m && k < n; ++k) {
    z_t* x = a + k * n + k;
    tau[k] = pestle_z_reflect(x, m - k, n);
    reflect_left(x + 1, m - k, n - k - 1, n, x, n, conj(tau[k]));
  }
}

void pestle_z_q(z_t* a, int64_t m, int64_t n, const z_t* tau, int64_t k,
                z_t* work) {
  z_t* q = work;
  for (int64_t i = 0; i < m * n; ++i)
    q[i] = i / n == i % n;
  for (int64_t j = k - 1; j >= 0; --j)
    reflect_left(q + j * n, m - j, n, n, a + j * n + j, n, tau[j]);
  for (int64_t i = 0; i < m * n; ++i)
    a[i] = q[i];
}

static void swap_columns(z_t* a, int64_t m, int64_t n, int64_t i, int64_t j) {
  for (int64_t r = 0; r < m && i != j; ++r) {
    z_t keep = a[r * n + i];
    a[r * n + i] = a[r * n + j];
    a[r * n + j] = keep;
  }
}

// Columns whose |order| is not 0 go to the front; how many they are.
static int64_t put_first(z_t* a, int64_t m, int64_t n, z_t* order) {
  int64_t fixed = 0;
  for (int64_t j = 0; j < n; ++j) {
    bool first = order[j] != 0;
    order[j] = (double)(j + 1);
    if (!first) continue;
    swap_columns(a, m, n, j, fixed);
    order[j] = order[fixed];
    order[fixed++] = (double)(j + 1);
  }
  return fixed;
}

// The column from |k| on that is the longest in rows [k, m); |size| is that of the
// largest number.
static int64_t longest(const z_t* a, int64_t m, int64_t n, int64_t k,
                       double size) {
  int64_t best = k;
  double most = -1;
  for (int64_t j = k; j < n; ++j) {
    double sum = 0;
    for (int64_t i = k; i < m; ++i) {
      double re = creal(a[i * n + j]) / size, im = cimag(a[i * n + j]) / size;
      sum += re * re + im * im;
    }
    if (!(sum > most)) continue;
    most = sum;
    best = j;
  }
  return best;
}

static double largest(const z_t* a, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = fmax(most, size1(a[i]));
  return most > 0 ? most : 1;
}

void pestle_z_qr_pivoted(z_t* a, int64_t m, int64_t n, z_t* order, z_t* tau) {
  int64_t fixed = put_first(a, m, n, order);
  double size = largest(a, m * n);
  for (int64_t k = 0; k < m && k < n; ++k) {
    int64_t best = k < fixed ? k : longest(a, m, n, k, size);
    z_t* x = a + k * n + k;
    swap_columns(a, m, n, k, best);
    swap_columns(order, 1, n, k, best);
    tau[k] = pestle_z_reflect(x, m - k, n);
    reflect_left(x + 1, m - k, n - k - 1, n, x, n, conj(tau[k]));
  }
}

// Columns [0, m) of |rows| rows of |a| times 1 - tau v v^H from the right.
static void reflect_rows(z_t* a, int64_t rows, int64_t m, int64_t stride,
                         const z_t* v, int64_t step, z_t tau) {
  for (int64_t r = 0; r < rows; ++r) {
    z_t* row = a + r * stride;
    z_t dot = row[0];
    for (int64_t i = 1; i < m; ++i)
      dot += row[i] * v[i * step];
    dot *= tau;
    row[0] -= dot;
    for (int64_t i = 1; i < m; ++i)
      row[i] -= dot * conj(v[i * step]);
  }
}

void pestle_z_times_q(const z_t* a, int64_t stride, const z_t* tau, int64_t k,
                      z_t* c, int64_t rows, int64_t columns, bool left,
                      bool turned) {
  for (int64_t step = 0; step < k; ++step) {
    int64_t j = left != turned ? k - 1 - step : step;
    const z_t* v = a + j * stride + j;
    z_t by = turned ? conj(tau[j]) : tau[j];
    if (left) {
      reflect_left(c + j * columns, rows - j, columns, columns, v, stride, by);
    } else {
      reflect_rows(c + j, rows, columns - j, columns, v, stride, by);
    }
  }
}

void pestle_z_cholesky_update(z_t* r, int64_t n, z_t* w) {
  for (int64_t k = 0; k < n; ++k) {
    double x = creal(r[k * n + k]), y = creal(w[k]), size = hypot(x, y);
    if (y == 0) continue;
    for (int64_t j = 0; j < n; ++j) {
      double up = creal(r[k * n + j]), down = creal(w[j]);
      r[k * n + j] = x / size * up + y / size * down;
      w[j] = x / size * down - y / size * up;
    }
  }
}

// --- Three diagonals ---

// Of U = |d|, |du| and |second|: what a pivot is at least.
static double least_pivot(const z_t* d, const z_t* du, const z_t* second,
                          int64_t n, double least) {
  double most = 0;
  for (int64_t k = 0; k < n; ++k) {
    most = fmax(most, cabs(d[k]));
    if (k + 1 < n) most = fmax(most, cabs(du[k]));
    if (k + 2 < n) most = fmax(most, cabs(second[k]));
  }
  return least * most;
}

static z_t at_least(z_t pivot, double least) {
  double size = cabs(pivot);
  if (size >= least) return pivot;
  return size > 0 ? pivot / size * least : least;
}

void pestle_z_tridiagonal_solve(z_t* dl, z_t* d, z_t* du, z_t* b, int64_t n,
                                int64_t m, double least, z_t* work) {
  z_t* second = work;  // above |du|, where rows were exchanged
  for (int64_t k = 0; k < n; ++k)
    second[k] = 0;
  for (int64_t k = 0; k + 1 < n; ++k) {
    z_t above = k + 2 < n ? du[k + 1] : 0;
    if (size1(d[k]) >= size1(dl[k + 1])) {
      z_t by = d[k] == 0 ? 0 : dl[k + 1] / d[k];
      d[k + 1] -= by * du[k];
      for (int64_t c = 0; c < m; ++c)
        b[(k + 1) * m + c] -= by * b[k * m + c];
      continue;
    }
    z_t by = d[k] / dl[k + 1], keep = du[k];
    d[k] = dl[k + 1];
    du[k] = d[k + 1];
    second[k] = above;
    d[k + 1] = keep - by * du[k];
    if (k + 2 < n) du[k + 1] = -by * above;
    for (int64_t c = 0; c < m; ++c) {
      keep = b[k * m + c];
      b[k * m + c] = b[(k + 1) * m + c];
      b[(k + 1) * m + c] = keep - by * b[k * m + c];
    }
  }
  double bound = least_pivot(d, du, second, n, least);
  for (int64_t k = n - 1; k >= 0; --k) {
    z_t pivot = at_least(d[k], bound);
    for (int64_t c = 0; c < m; ++c) {
      z_t x = b[k * m + c];
      if (k + 1 < n) x -= du[k] * b[(k + 1) * m + c];
      if (k + 2 < n) x -= second[k] * b[(k + 2) * m + c];
      b[k * m + c] = x / pivot;
    }
  }
}
