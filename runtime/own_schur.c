// SPDX-License-Identifier: Apache-2.0
// Schur's form of real matrices, t = z' a z, by Francis's steps: two shifts at once, so
// that conjugate ones take no complex numbers. Pairs of complex values stay as blocks
// of two rows, brought to equal diagonals (LAPACK's dlanv2), from which complex
// triangles are made where vectors are wanted.
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/own_linalg.h"

typedef pestle_z_t z_t;

enum { MAX_STEPS = 60 };

// --- Reflections of two or three numbers ---

// 1 - by v v', which takes x to (first, 0, ..).
typedef struct mirror_t {
  double v[3], by, first;
} mirror_t;

static mirror_t mirror_of(const double* x, int size) {
  mirror_t m = {.by = 0};
  double most = 0, sum = 0;
  for (int i = 0; i < size; ++i)
    most = fmax(most, fabs(x[i]));
  if (!(most > 0)) return m;
  for (int i = 0; i < size; ++i)
    sum += x[i] / most * (x[i] / most);
  m.first = -copysign(most * sqrt(sum), x[0]);
  m.v[0] = 1;
  for (int i = 1; i < size; ++i)
    m.v[i] = x[i] / (x[0] - m.first);
  m.by = (m.first - x[0]) / m.first;
  return m;
}

// Rows [r, r + size) of columns [from, n).
static void mirror_rows(const mirror_t* m, int size, double* a, int64_t n,
                        int64_t r, int64_t from) {
  for (int64_t c = from; c < n; ++c) {
    double sum = 0;
    for (int i = 0; i < size; ++i)
      sum += m->v[i] * a[(r + i) * n + c];
    for (int i = 0; i < size; ++i)
      a[(r + i) * n + c] -= m->by * sum * m->v[i];
  }
}

// Columns [c, c + size) of rows [0, rows).
static void mirror_columns(const mirror_t* m, int size, double* a, int64_t n,
                           int64_t c, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < size; ++i)
      sum += a[r * n + c + i] * m->v[i];
    for (int i = 0; i < size; ++i)
      a[r * n + c + i] -= m->by * sum * m->v[i];
  }
}

// --- Hessenberg's form ---

// v, at |x|, |n| apart, and |by| of one reflection of |size| numbers.
static double reflect(double* x, int64_t size, int64_t n) {
  double rest = 0;
  for (int64_t i = 1; i < size; ++i)
    rest = hypot(rest, x[i * n]);
  if (!(rest > 0)) return 0;
  double first = -copysign(hypot(x[0], rest), x[0]);
  double by = (first - x[0]) / first;
  for (int64_t i = 1; i < size; ++i)
    x[i * n] /= x[0] - first;
  x[0] = first;
  return by;
}

static void apply(const double* v, double by, int64_t size, int64_t n,
                  double* x, int64_t step) {
  double sum = x[0];
  for (int64_t i = 1; i < size; ++i)
    sum += v[i * n] * x[i * step];
  sum *= by;
  x[0] -= sum;
  for (int64_t i = 1; i < size; ++i)
    x[i * step] -= v[i * n] * sum;
}

// In place; |z| is the product of the reflections, |by| has room for n.
static void hessenberg(double* a, int64_t n, double* z, double* by) {
  for (int64_t k = 0; k + 2 < n; ++k) {
    double* x = a + (k + 1) * n + k;
    int64_t size = n - k - 1;
    by[k] = reflect(x, size, n);
    for (int64_t r = 0; r < n; ++r)
      apply(x, by[k], size, n, a + r * n + k + 1, 1);
    for (int64_t c = k + 1; c < n; ++c)
      apply(x, by[k], size, n, a + (k + 1) * n + c, n);
  }
  for (int64_t i = 0; i < n * n; ++i)
    z[i] = i / n == i % n;
  for (int64_t k = n - 3; k >= 0; --k) {
    double* x = a + (k + 1) * n + k;
    for (int64_t c = k + 1; c < n; ++c)
      apply(x, by[k], n - k - 1, n, z + (k + 1) * n + c, n);
    for (int64_t i = 1; i < n - k - 1; ++i)
      x[i * n] = 0;
  }
}

// --- Blocks of two rows ---

typedef struct block_t {
  double a, b, c, d;  // [[a, b], [c, d]]
  double cs, sn;      // the rotation that it was turned by
} block_t;

// Real values, equal or not, behind a rotation by which a and d became equal.
static void split(block_t* k) {
  double root_b = sqrt(fabs(k->b)), root_c = sqrt(fabs(k->c));
  double p = copysign(root_b * root_c, k->c), by = 1 / sqrt(fabs(k->b + k->c));
  double cs = root_b * by, sn = root_c * by, keep = k->cs;
  k->a += p;
  k->d -= p;
  k->b -= k->c;
  k->c = 0;
  k->cs = keep * cs - k->sn * sn;
  k->sn = keep * sn + k->sn * cs;
}

static void make_equal(block_t* k) {
  double sigma = k->b + k->c, gap = k->a - k->d, tau = hypot(sigma, gap);
  k->cs = sqrt(0.5 * (1 + fabs(sigma) / tau));
  k->sn = -(0.5 * gap / (tau * k->cs)) * copysign(1, sigma);
  double aa = k->a * k->cs + k->b * k->sn, bb = -k->a * k->sn + k->b * k->cs;
  double cc = k->c * k->cs + k->d * k->sn, dd = -k->c * k->sn + k->d * k->cs;
  k->a = aa * k->cs + cc * k->sn;
  k->b = bb * k->cs + dd * k->sn;
  k->c = -aa * k->sn + cc * k->cs;
  k->d = -bb * k->sn + dd * k->cs;
  k->a = k->d = 0.5 * (k->a + k->d);
  if (k->c == 0) return;
  if (k->b == 0) {
    double keep = k->cs;
    k->b = -k->c;
    k->c = 0;
    k->cs = -k->sn;
    k->sn = keep;
  } else if ((k->b > 0) == (k->c > 0)) {
    split(k);
  }
}

// Turns |k| so that c is 0, or a = d and b c < 0.
static void standardise(block_t* k) {
  k->cs = 1;
  k->sn = 0;
  if (k->c == 0) return;
  if (k->b == 0) {
    double keep = k->a;
    k->a = k->d;
    k->d = keep;
    k->b = -k->c;
    k->c = 0;
    k->cs = 0;
    k->sn = 1;
    return;
  }
  if (k->a == k->d && (k->b > 0) != (k->c > 0)) return;
  double p = 0.5 * (k->a - k->d), most = fmax(fabs(k->b), fabs(k->c));
  double least =
      fmin(fabs(k->b), fabs(k->c)) * ((k->b > 0) == (k->c > 0) ? 1 : -1);
  double scale = fmax(fabs(p), most), z = p / scale * p + most / scale * least;
  if (!(z >= 4 * DBL_EPSILON)) {
    make_equal(k);
    return;
  }
  z = p + copysign(sqrt(scale) * sqrt(z), p);
  k->a = k->d + z;
  k->d -= most / z * least;
  double tau = hypot(k->c, z);
  k->cs = z / tau;
  k->sn = k->c / tau;
  k->b -= k->c;
  k->c = 0;
}

static void turn(double* x, double* y, double cs, double sn) {
  double keep = *x;
  *x = cs * keep + sn * *y;
  *y = cs * *y - sn * keep;
}

static void standardise_at(double* a, int64_t n, int64_t i, double* z) {
  double *at = a + i * n + i, *below = at + n;
  block_t k = {at[0], at[1], below[0], below[1], 1, 0};
  standardise(&k);
  for (int64_t c = i + 2; c < n; ++c)
    turn(&a[i * n + c], &a[(i + 1) * n + c], k.cs, k.sn);
  for (int64_t r = 0; r < i; ++r)
    turn(&a[r * n + i], &a[r * n + i + 1], k.cs, k.sn);
  for (int64_t r = 0; r < n; ++r)
    turn(&z[r * n + i], &z[r * n + i + 1], k.cs, k.sn);
  at[0] = k.a;
  at[1] = k.b;
  below[0] = k.c;
  below[1] = k.d;
}

// --- Steps ---

// What begins a step on rows [lo, hi]: (a - s1)(a - s2) e_lo, the shifts being the
// values of the last two rows, or others now and then.
static void begin(const double* a, int64_t n, int64_t lo, int64_t hi, int step,
                  double out[3]) {
  const double *last = a + hi * n + hi, *above = last - n - 1;
  double x = last[0], y = above[0], w = last[-1] * above[1];
  if (step % 10 == 0) {
    double s = fabs(last[-1]) + fabs(above[-1]);
    x = y = 0.75 * s + x;
    w = -0.4375 * s * s;
  }
  const double *top = a + lo * n + lo, *next = top + n;
  double first = x - top[0], second = y - top[0];
  out[0] = (first * second - w) / next[0] + top[1];
  out[1] = next[1] - top[0] - first - second;
  out[2] = next[n + 1];
}

static void francis(double* a, int64_t n, int64_t lo, int64_t hi, int step,
                    double* z) {
  double x[3];
  begin(a, n, lo, hi, step, x);
  for (int64_t k = lo; k < hi; ++k) {
    int size = k + 2 <= hi ? 3 : 2;
    if (k > lo) {
      for (int i = 0; i < size; ++i)
        x[i] = a[(k + i) * n + k - 1];
    }
    mirror_t m = mirror_of(x, size);
    mirror_rows(&m, size, a, n, k, k);
    mirror_columns(&m, size, a, n, k, k + 3 < hi ? k + 4 : hi + 1);
    mirror_columns(&m, size, z, n, k, n);
    if (k == lo || m.by == 0) continue;
    a[k * n + k - 1] = m.first;
    for (int i = 1; i < size; ++i)
      a[(k + i) * n + k - 1] = 0;
  }
}

// The first row of the block that ends with row |hi|.
static int64_t begin_of_block(double* a, int64_t n, int64_t hi, double norm) {
  for (int64_t i = hi; i > 0; --i) {
    double near = fabs(a[i * n + i]) + fabs(a[(i - 1) * n + i - 1]);
    if (near == 0) near = norm;
    if (fabs(a[i * n + i - 1]) > DBL_MIN + DBL_EPSILON * near) continue;
    a[i * n + i - 1] = 0;
    return i;
  }
  return 0;
}

static bool iterate(double* a, int64_t n, double* z) {
  double norm = 0;
  int step = 0;
  for (int64_t i = 0; i < n * n; ++i)
    norm = fmax(norm, fabs(a[i]));
  for (int64_t hi = n - 1; hi > 0;) {
    int64_t lo = begin_of_block(a, n, hi, norm);
    if (hi - lo < 2) {
      if (lo < hi) standardise_at(a, n, lo, z);
      hi = lo - 1;
      step = 0;
      continue;
    }
    if (++step > MAX_STEPS) return false;
    francis(a, n, lo, hi, step, z);
  }
  return true;
}

bool pestle_z_schur_real(z_t* a, int64_t n, z_t* z, z_t* w, z_t* work) {
  double *t = (double*)work, *q = t + n * n, *by = q + n * n;
  for (int64_t i = 0; i < n * n; ++i)
    t[i] = creal(a[i]);
  hessenberg(t, n, q, by);
  bool done = iterate(t, n, q);
  for (int64_t i = 0; i < n * n; ++i) {
    a[i] = t[i];
    z[i] = q[i];
  }
  for (int64_t i = 0; i < n; ++i)
    w[i] = t[i * n + i];
  for (int64_t i = 0; i + 1 < n; ++i) {
    double c = t[(i + 1) * n + i];
    if (c == 0) continue;
    double im = sqrt(fabs(t[i * n + i + 1])) * sqrt(fabs(c));
    w[i] = pestle_z_of(creal(w[i]), im);
    w[i + 1] = pestle_z_of(creal(w[i + 1]), -im);
  }
  return done;
}

// --- Complex triangles ---

static void turn_z(z_t* x, z_t* y, z_t c, z_t s) {
  z_t keep = *x;
  *x = conj(c) * keep + s * *y;
  *y = c * *y - s * keep;
}

void pestle_z_schur_split(z_t* t, int64_t n, z_t* z, const z_t* w) {
  for (int64_t i = n - 2; i >= 0; --i) {
    double below = creal(t[(i + 1) * n + i]);
    if (below == 0) continue;
    // (w - d, below) is the block's vector to w.
    z_t first = w[i] - t[(i + 1) * n + i + 1];
    double size = hypot(cabs(first), below);
    z_t c = first / size, s = below / size;
    for (int64_t k = i; k < n; ++k)
      turn_z(&t[i * n + k], &t[(i + 1) * n + k], c, s);
    for (int64_t k = 0; k <= i + 1; ++k)
      turn_z(&t[k * n + i], &t[k * n + i + 1], conj(c), s);
    for (int64_t k = 0; k < n; ++k)
      turn_z(&z[k * n + i], &z[k * n + i + 1], conj(c), s);
    t[(i + 1) * n + i] = 0;
  }
}
