// SPDX-License-Identifier: Apache-2.0
// Values and vectors: singular ones by rotations that make pairs orthogonal (Jacobi), of
// Hermitian matrices by QL steps on three diagonals, of others by QR steps with shifts on
// Hessenberg's form.
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "runtime/own_linalg.h"

typedef pestle_z_t z_t;

enum { MAX_SWEEPS = 80, MAX_STEPS = 60 };

// --- Rotations of pairs ---

// What makes [[p, g], [conj g, q]] diagonal: columns x, y become c x - s e y and
// s x + c e y.
typedef struct pair_t {
  double c, s;
  z_t e;
} pair_t;

static pair_t pair_of(double p, double q, z_t g) {
  double size = cabs(g), tau = (q - p) / (2 * size);
  double t = copysign(1, tau) / (fabs(tau) + hypot(1, tau));
  pair_t out = {.c = 1 / hypot(1, t)};
  out.s = out.c * t;
  out.e = conj(g) / size;
  return out;
}

static void turn(z_t* a, int64_t rows, int64_t stride, int64_t p, int64_t q,
                 const pair_t* r) {
  for (int64_t i = 0; i < rows; ++i) {
    z_t *x = a + i * stride + p, *y = a + i * stride + q;
    z_t turned = r->e * *y, keep = *x;
    *x = r->c * keep - r->s * turned;
    *y = r->s * keep + r->c * turned;
  }
}

static void set_unit(z_t* a, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i)
    a[i] = i / n == i % n;
}

// Exchanges columns so that |key| descends; |a| and |b| (or NULL) come along.
static void sort_columns(z_t* key, int64_t n, z_t* a, int64_t rows,
                         int64_t stride, z_t* b, int64_t b_rows,
                         int64_t b_stride) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j) {
      if (creal(key[j]) > creal(key[best])) best = j;
    }
    if (best == i) continue;
    z_t keep = key[i];
    key[i] = key[best];
    key[best] = keep;
    for (int64_t r = 0; r < rows; ++r) {
      keep = a[r * stride + i];
      a[r * stride + i] = a[r * stride + best];
      a[r * stride + best] = keep;
    }
    for (int64_t r = 0; b && r < b_rows; ++r) {
      keep = b[r * b_stride + i];
      b[r * b_stride + i] = b[r * b_stride + best];
      b[r * b_stride + best] = keep;
    }
  }
}

// --- Singular values ---

static z_t dot_of(const z_t* a, int64_t m, int64_t stride, int64_t p,
                  int64_t q) {
  z_t sum = 0;
  for (int64_t i = 0; i < m; ++i)
    sum += conj(a[i * stride + p]) * a[i * stride + q];
  return sum;
}

// Columns from |from| on, orthonormal to all before them.
static void complete(z_t* a, int64_t m, int64_t columns, int64_t from) {
  int64_t next = 0;
  for (int64_t c = from; c < columns; ++c) {
    for (double size = 0; size < 0.5 && next <= 2 * m; ++next) {
      for (int64_t i = 0; i < m; ++i)
        a[i * columns + c] = i == next % m;
      for (int64_t k = 0; k < 2 * c; ++k) {
        z_t by = dot_of(a, m, columns, k % c, c);
        for (int64_t i = 0; i < m; ++i)
          a[i * columns + c] -= by * a[i * columns + k % c];
      }
      size = sqrt(creal(dot_of(a, m, columns, c, c)));
      double least = 0.5 / sqrt((double)m);
      if (size < least) {
        size = 0;
        continue;
      }
      for (int64_t i = 0; i < m; ++i)
        a[i * columns + c] /= size;
      size = 1;
    }
  }
}

// Columns of |x| [m, n], m >= n, become orthogonal; |v| [n, n] is what did that.
static void orthogonalise(z_t* x, int64_t m, int64_t n, z_t* v) {
  set_unit(v, n);
  for (int sweep = 0; sweep < MAX_SWEEPS; ++sweep) {
    bool moved = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double a = creal(dot_of(x, m, n, p, p));
        double b = creal(dot_of(x, m, n, q, q));
        z_t g = dot_of(x, m, n, p, q);
        if (!(cabs(g) > DBL_MIN + DBL_EPSILON * sqrt(a) * sqrt(b))) continue;
        pair_t r = pair_of(a, b, g);
        turn(x, m, n, p, q, &r);
        turn(v, n, n, p, q, &r);
        moved = true;
      }
    }
    if (!moved) break;
  }
}

void pestle_z_svd(const z_t* a, int64_t m, int64_t n, z_t* u, int64_t uc,
                  z_t* s, z_t* vh, int64_t vr, z_t* work) {
  bool wide = m < n;
  int64_t rows = wide ? n : m, columns = wide ? m : n;
  z_t *x = work, *v = x + rows * columns;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      x[i * columns + j] = wide ? conj(a[j * n + i]) : a[i * n + j];
  }
  orthogonalise(x, rows, columns, v);
  for (int64_t j = 0; j < columns; ++j)
    s[j] = sqrt(creal(dot_of(x, rows, columns, j, j)));
  sort_columns(s, columns, x, rows, columns, v, columns, columns);
  // x = basis times values; those of nothing are completed.
  int64_t basis = wide ? vr : uc, good = 0;
  z_t* to = v + columns * columns;
  double least = columns ? creal(s[0]) * DBL_EPSILON * (double)rows : 0;
  while (good < columns && creal(s[good]) > least)
    ++good;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < good; ++j)
      to[i * basis + j] = x[i * columns + j] / s[j];
  }
  complete(to, rows, basis, good);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < uc; ++j)
      u[i * uc + j] = wide ? v[i * columns + j] : to[i * basis + j];
  }
  for (int64_t i = 0; i < vr; ++i) {
    for (int64_t j = 0; j < n; ++j)
      vh[i * n + j] = conj(wide ? to[j * basis + i] : v[j * columns + i]);
  }
}

// --- Hessenberg, Schur ---

// |a| times 1 - tau v v^H from the right, on columns [k, n) of |rows| rows.
static void reflect_right(z_t* a, int64_t rows, int64_t n, int64_t k,
                          const z_t* v, int64_t step, z_t tau) {
  for (int64_t i = 0; i < rows; ++i) {
    z_t* row = a + i * n + k;
    z_t dot = row[0];
    for (int64_t j = 1; j < n - k; ++j)
      dot += row[j] * v[j * step];
    dot *= tau;
    row[0] -= dot;
    for (int64_t j = 1; j < n - k; ++j)
      row[j] -= dot * conj(v[j * step]);
  }
}

static void reflect_down(z_t* a, int64_t n, int64_t k, int64_t from,
                         const z_t* v, int64_t step, z_t tau) {
  for (int64_t c = from; c < n; ++c) {
    z_t dot = a[k * n + c];
    for (int64_t i = 1; i < n - k; ++i)
      dot += conj(v[i * step]) * a[(k + i) * n + c];
    dot *= tau;
    a[k * n + c] -= dot;
    for (int64_t i = 1; i < n - k; ++i)
      a[(k + i) * n + c] -= v[i * step] * dot;
  }
}

void pestle_z_hessenberg(z_t* a, int64_t n, z_t* tau) {
  for (int64_t k = 0; k + 1 < n; ++k) {
    z_t* x = a + (k + 1) * n + k;
    tau[k] = pestle_z_reflect(x, n - k - 1, n);
    reflect_right(a, n, n, k + 1, x, n, tau[k]);
    reflect_down(a, n, k + 1, k + 1, x, n, conj(tau[k]));
  }
}

// Hessenberg's form itself, and Z, the product of its reflections.
static void unpack(z_t* a, int64_t n, const z_t* tau, z_t* z) {
  set_unit(z, n);
  for (int64_t k = n - 2; k >= 0; --k)
    reflect_down(z, n, k + 1, 0, a + (k + 1) * n + k, n, tau[k]);
  for (int64_t i = 2; i < n; ++i) {
    for (int64_t j = 0; j + 1 < i; ++j)
      a[i * n + j] = 0;
  }
}

// The one of the last 2 x 2's values that is nearer to its last element.
static z_t shift_of(const z_t* a, int64_t n, int64_t hi) {
  z_t p = a[(hi - 1) * n + hi - 1], q = a[hi * n + hi];
  z_t half = (p - q) / 2;
  z_t root = csqrt(half * half + a[(hi - 1) * n + hi] * a[hi * n + hi - 1]);
  if (creal(conj(half) * root) < 0) root = -root;
  z_t by = half + root;
  return by == 0 ? q - root
                 : q - a[(hi - 1) * n + hi] * a[hi * n + hi - 1] / by;
}

// One QR step on rows and columns [lo, hi].
static void qr_step(z_t* a, int64_t n, int64_t lo, int64_t hi, z_t shift,
                    z_t* z, z_t* work) {
  for (int64_t i = lo; i <= hi; ++i)
    a[i * n + i] -= shift;
  for (int64_t k = lo; k < hi; ++k) {
    z_t x = a[k * n + k], y = a[(k + 1) * n + k];
    double size = hypot(cabs(x), cabs(y));
    z_t c = size > 0 ? x / size : 1, s = size > 0 ? y / size : 0;
    work[2 * k] = c;
    work[2 * k + 1] = s;
    for (int64_t j = k; j < n; ++j) {
      z_t first = a[k * n + j], second = a[(k + 1) * n + j];
      a[k * n + j] = conj(c) * first + conj(s) * second;
      a[(k + 1) * n + j] = -s * first + c * second;
    }
  }
  for (int64_t k = lo; k < hi; ++k) {
    z_t c = work[2 * k], s = work[2 * k + 1];
    int64_t last = k + 1;
    for (int64_t i = 0; i <= last; ++i) {
      z_t first = a[i * n + k], second = a[i * n + k + 1];
      a[i * n + k] = first * c + second * s;
      a[i * n + k + 1] = -first * conj(s) + second * conj(c);
    }
    for (int64_t i = 0; i < n; ++i) {
      z_t first = z[i * n + k], second = z[i * n + k + 1];
      z[i * n + k] = first * c + second * s;
      z[i * n + k + 1] = -first * conj(s) + second * conj(c);
    }
  }
  for (int64_t i = lo; i <= hi; ++i)
    a[i * n + i] += shift;
}

bool pestle_z_schur(z_t* a, int64_t n, z_t* z, z_t* work) {
  pestle_z_hessenberg(a, n, work);
  unpack(a, n, work, z);
  int steps = 0;
  for (int64_t hi = n - 1; hi > 0;) {
    int64_t lo = hi;
    for (; lo > 0; --lo) {
      double near = cabs(a[lo * n + lo]) + cabs(a[(lo - 1) * n + lo - 1]);
      if (cabs(a[lo * n + lo - 1]) > DBL_MIN + DBL_EPSILON * near) continue;
      a[lo * n + lo - 1] = 0;
      break;
    }
    if (lo == hi) {
      --hi;
      steps = 0;
      continue;
    }
    if (++steps > MAX_STEPS) return false;
    z_t shift = shift_of(a, n, hi);
    if (steps % 10 == 0) shift = a[hi * n + hi] + cabs(a[hi * n + hi - 1]);
    qr_step(a, n, lo, hi, shift, z, work);
  }
  return true;
}

// --- Vectors ---

// Column |k| of |out| is z x, of length 1, its largest element real.
static void put_vector(const z_t* z, int64_t n, const z_t* x, z_t* out,
                       int64_t k) {
  double size = 0, most = 0;
  z_t largest = 1;
  for (int64_t i = 0; i < n; ++i) {
    z_t sum = 0;
    for (int64_t j = 0; j < n; ++j)
      sum += z[i * n + j] * x[j];
    out[i * n + k] = sum;
    size = hypot(size, cabs(sum));
    if (cabs(sum) > most) {
      most = cabs(sum);
      largest = sum;
    }
  }
  z_t by = most > 0 ? conj(largest) / most / size : 1;
  for (int64_t i = 0; i < n; ++i)
    out[i * n + k] *= by;
}

static z_t apart(z_t x, z_t y, double least) {
  z_t d = x - y;
  return cabs(d) < least ? least : d;
}

void pestle_z_vectors(const z_t* t, const z_t* z, int64_t n, z_t* right,
                      z_t* left, z_t* work) {
  double least = DBL_MIN;
  for (int64_t i = 0; i < n * n; ++i)
    least = fmax(least, cabs(t[i]) * DBL_EPSILON);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i)
      work[i] = i == k;
    for (int64_t i = k - 1; i >= 0; --i) {
      z_t sum = 0;
      for (int64_t j = i + 1; j <= k; ++j)
        sum += t[i * n + j] * work[j];
      work[i] = -sum / apart(t[i * n + i], t[k * n + k], least);
    }
    put_vector(z, n, work, right, k);
    for (int64_t i = 0; i < n; ++i)
      work[i] = i == k;
    for (int64_t j = k + 1; j < n; ++j) {
      z_t sum = 0;
      for (int64_t i = k; i < j; ++i)
        sum += conj(work[i]) * t[i * n + j];
      work[j] = conj(-sum / apart(t[j * n + j], t[k * n + k], least));
    }
    put_vector(z, n, work, left, k);
  }
}

// --- Tridiagonal ---

// Rows and columns that step |k| is about, in the order in which its reflection sees
// them: k + 1, k + 2, .. of a lower half, n - 2 - k, n - 3 - k, .. of an upper one.
typedef struct corner_t {
  z_t* a;
  int64_t n, first, step, size;
} corner_t;

static z_t hermitian_at(const corner_t* c, int64_t i, int64_t j) {
  int64_t p = c->first + i * c->step, q = c->first + j * c->step;
  if (i == j) return creal(c->a[p * c->n + p]);
  return i > j ? c->a[p * c->n + q] : conj(c->a[q * c->n + p]);
}

// The corner times a reflection from both sides; |w| has room for its size.
static void reflect_corner(const corner_t* c, const z_t* v, z_t tau, z_t* w) {
  z_t dot = 0;
  for (int64_t i = 0; i < c->size; ++i) {
    w[i] = 0;
    for (int64_t j = 0; j < c->size; ++j)
      w[i] += tau * hermitian_at(c, i, j) * v[j];
    dot += conj(w[i]) * v[i];
  }
  for (int64_t i = 0; i < c->size; ++i)
    w[i] -= tau * dot / 2 * v[i];
  for (int64_t i = 0; i < c->size; ++i) {
    int64_t p = c->first + i * c->step;
    for (int64_t j = 0; j <= i; ++j) {
      int64_t q = c->first + j * c->step;
      c->a[p * c->n + q] -= v[i] * conj(w[j]) + w[i] * conj(v[j]);
    }
  }
}

void pestle_z_tridiagonal(z_t* a, int64_t n, bool lower, z_t* d, z_t* e,
                          z_t* tau, z_t* work) {
  for (int64_t k = 0; k + 1 < n; ++k) {
    corner_t c = {a, n, lower ? k + 1 : n - 2 - k, lower ? 1 : -1, n - k - 1};
    int64_t column = c.first - c.step, at = lower ? k : n - 2 - k;
    z_t *x = a + c.first * n + column, *v = work, *w = work + n;
    tau[at] = pestle_z_reflect(x, c.size, c.step * n);
    e[at] = creal(x[0]);
    for (int64_t i = 0; i < c.size; ++i)
      v[i] = i ? x[i * c.step * n] : 1;
    reflect_corner(&c, v, tau[at], w);
  }
  for (int64_t i = 0; i < n; ++i)
    d[i] = creal(a[i * n + i]);
}

// --- Hermitian matrices ---

// One rotation of vectors that lie as rows.
static void turn_vectors(z_t* x, z_t* y, int64_t n, double c, double s) {
  for (int64_t i = 0; i < n; ++i) {
    z_t keep = y[i];
    y[i] = s * x[i] + c * keep;
    x[i] = c * x[i] - s * keep;
  }
}

// A tridiagonal matrix and what has been taken off its diagonal.
typedef struct three_t {
  double *d, *e;  // |e|[n - 1] is 0
  double shift;
  int64_t n;
  z_t* vectors;  // as rows
} three_t;

// Takes value |l| of rows [l, l + 1] off the diagonal from there on.
static void take_shift(three_t* t, int64_t l) {
  double g = t->d[l], p = (t->d[l + 1] - g) / (2 * t->e[l]);
  double r = copysign(hypot(p, 1), p);
  t->d[l] = t->e[l] / (p + r);
  t->d[l + 1] = t->e[l] * (p + r);
  double h = g - t->d[l];
  for (int64_t i = l + 2; i < t->n; ++i)
    t->d[i] -= h;
  t->shift += h;
}

// One QL step on rows [l, m] (EISPACK's tql2).
static void ql_step(three_t* t, int64_t l, int64_t m) {
  double *d = t->d, *e = t->e;
  take_shift(t, l);
  double p = d[m], c = 1, before = 1, first = 1, s = 0, last_s = 0;
  double next = d[l + 1], beside = e[l + 1];
  for (int64_t i = m - 1; i >= l; --i) {
    first = before;
    before = c;
    last_s = s;
    double g = c * e[i], h = c * p, r = hypot(p, e[i]);
    e[i + 1] = s * r;
    s = r > 0 ? e[i] / r : 0;
    c = r > 0 ? p / r : 1;
    p = c * d[i] - s * g;
    d[i + 1] = h + s * (c * g + s * d[i]);
    turn_vectors(t->vectors + i * t->n, t->vectors + (i + 1) * t->n, t->n, c,
                 s);
  }
  p = -s * last_s * first * beside * e[l] / next;
  e[l] = s * p;
  d[l] = c * p;
}

static bool ql(three_t* t) {
  double most = 0;
  for (int64_t l = 0; l < t->n; ++l) {
    most = fmax(most, fabs(t->d[l]) + fabs(t->e[l]));
    double least = DBL_MIN + DBL_EPSILON * most;
    int64_t m = l;
    while (m + 1 < t->n && fabs(t->e[m]) > least)
      ++m;
    for (int step = 0; m > l && fabs(t->e[l]) > least; ++step) {
      if (step == MAX_STEPS) return false;
      ql_step(t, l, m);
    }
    t->d[l] += t->shift;
    t->e[l] = 0;
  }
  return true;
}

// Column |k| of |a| is the vector of the |k|th smallest value.
static void sort_vectors(const three_t* t, z_t* a, z_t* w) {
  for (int64_t k = 0; k < t->n; ++k) {
    int64_t best = 0;
    for (int64_t i = 1; i < t->n; ++i) {
      if (!(t->d[i] >= t->d[best])) best = i;
    }
    w[k] = t->d[best];
    t->d[best] = INFINITY;
    for (int64_t i = 0; i < t->n; ++i)
      a[i * t->n + k] = t->vectors[best * t->n + i];
  }
}

bool pestle_z_eigh(z_t* a, int64_t n, bool lower, z_t* w, z_t* work) {
  z_t *e = work, *tau = e + n, *more = tau + n, *q = more + 2 * n;
  for (int64_t i = 0; i < n && !lower; ++i) {
    for (int64_t j = 0; j < i; ++j)
      a[i * n + j] = conj(a[j * n + i]);
  }
  pestle_z_tridiagonal(a, n, true, w, e, tau, more);
  set_unit(q, n);
  for (int64_t k = n - 2; k >= 0; --k)
    reflect_down(q, n, k + 1, k + 1, a + (k + 1) * n + k, n, tau[k]);
  // The reflections are done with: |a| takes the vectors as rows, their place the
  // numbers of the three diagonals.
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      a[j * n + i] = q[i * n + j];
  }
  double* d = (double*)more;
  three_t t = {.d = d, .e = d + n, .n = n, .vectors = a};
  for (int64_t i = 0; i < n; ++i) {
    t.d[i] = creal(w[i]);
    t.e[i] = i + 1 < n ? creal(e[i]) : 0;
  }
  bool done = ql(&t);
  for (int64_t i = 0; i < n * n; ++i)
    q[i] = a[i];
  t.vectors = q;
  sort_vectors(&t, a, w);
  return done;
}
