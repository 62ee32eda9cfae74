// SPDX-License-Identifier: Apache-2.0
// qr, eigh and svd in f64 throughout and rounded once at the end: reflections,
// plane rotations one after the other, plane rotations of columns.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

enum { SWEEPS = 60 };

static double* numbers(pestle_arena_t* arena, int64_t count) {
  return PESTLE_ARENA_ARRAY(arena, double, (size_t)count + 1);
}

static double* widened(const pestle_ref_call_t* call, pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  int64_t count = pestle_type_count(type);
  double* out = numbers(arena, count);
  if (out) {
    pestle_ref_load_f64(type->dtype, call->operands[0], (size_t)count, out);
  }
  return out;
}

// Elements [at, at + count) of result |index|.
static void store(const pestle_ref_call_t* call, size_t index, int64_t at,
                  const double* from, int64_t count) {
  pestle_dtype_t dtype = pestle_ref_result_type(call, index)->dtype;
  char* to = call->results[index];
  to += (size_t)at * pestle_dtype_size(dtype);
  pestle_ref_store_f64(dtype, from, (size_t)count, to);
}

static void make_unit(double* a, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      a[i * columns + j] = i == j;
  }
}

// The power of two by which |count| numbers are divided so that the largest is
// in [1/2, 1); NaN where one is not finite.
static double size_of(const double* a, int64_t count) {
  double largest = 0;
  int exponent;
  for (int64_t i = 0; i < count; ++i) {
    if (!isfinite(a[i])) return NAN;
    largest = fmax(largest, fabs(a[i]));
  }
  frexp(largest, &exponent);
  return ldexp(1, exponent < -1000 ? -1000 : exponent);
}

static void scale(double* a, int64_t count, double by) {
  for (int64_t i = 0; i < count; ++i)
    a[i] *= by;
}

static void set_all(double* a, int64_t count, double value) {
  for (int64_t i = 0; i < count; ++i)
    a[i] = value;
}

// Whether the leading component of |n| numbers is negative.
static bool lead_is_negative(const double* x, int64_t n, int64_t step) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    largest = fmax(largest, fabs(x[i * step]));
  for (int64_t i = 0; i < n; ++i) {
    if (fabs(x[i * step]) >= 0.75 * largest) return x[i * step] < 0;
  }
  return false;
}

static void negate(double* x, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i)
    x[i * step] = -x[i * step];
}

// --- qr ---

// Rows [k, m) of columns [first, n) of |a|, which has |stride| a row: reflected
// by v, whose element k is 1 and which lies |v_stride| apart.
static void reflect(double* a, int64_t stride, int64_t first, int64_t n,
                    const double* v, int64_t v_stride, double tau, int64_t k,
                    int64_t m) {
  for (int64_t j = first; j < n; ++j) {
    double dot = a[k * stride + j];
    for (int64_t i = k + 1; i < m; ++i)
      dot += v[i * v_stride] * a[i * stride + j];
    a[k * stride + j] -= tau * dot;
    for (int64_t i = k + 1; i < m; ++i)
      a[i * stride + j] -= tau * dot * v[i * v_stride];
  }
}

// Column k of |a| becomes beta, below it v; the reflection's factor.
static double make_reflection(double* a, int64_t m, int64_t n, int64_t k) {
  double size = 0, rest = 0, alpha;
  for (int64_t i = k; i < m; ++i)
    size = fmax(size, fabs(a[i * n + k]));
  for (int64_t i = k + 1; i < m; ++i) {
    double x = a[i * n + k] / size;
    rest += x * x;
  }
  // A column of zeros, or one that is done; NaN is neither.
  if (size == 0 || rest == 0) return 0;
  alpha = a[k * n + k] / size;
  double beta = sqrt(alpha * alpha + rest);
  if (alpha >= 0) beta = -beta;
  // By |size| first: where that is subnormal, a product with it has few bits.
  for (int64_t i = k + 1; i < m; ++i)
    a[i * n + k] = a[i * n + k] / size / (alpha - beta);
  a[k * n + k] = beta * size;
  return (beta - alpha) / beta;
}

// |a| [m, n] is used up; q [m, k], r [k, n]; |taus| has room.
static void factor_qr(double* a, int64_t m, int64_t n, int64_t k, double* taus,
                      double* q, double* r) {
  int64_t steps = m < n ? m : n;
  for (int64_t j = 0; j < steps; ++j) {
    taus[j] = make_reflection(a, m, n, j);
    reflect(a, n, j + 1, n, a + j, n, taus[j], j, m);
  }
  make_unit(q, m, k);
  for (int64_t j = steps; j-- > 0;)
    reflect(q, k, 0, k, a + j, n, taus[j], j, m);
  for (int64_t i = 0; i < k; ++i) {
    bool flip = i < steps && a[i * n + i] < 0;
    for (int64_t j = 0; j < n; ++j)
      r[i * n + j] = j < i ? 0 : flip ? -a[i * n + j] : a[i * n + j];
    if (flip) negate(q + i, m, k);
  }
}

static pestle_status_t qr(const pestle_ref_call_t* call,
                          pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  const pestle_type_t* first = pestle_ref_result_type(call, 0);
  int64_t m = type->dims[type->rank - 2], n = type->dims[type->rank - 1];
  int64_t k = first->dims[first->rank - 1], matrices = 1;
  for (int32_t i = 0; i < type->rank - 2; ++i)
    matrices *= type->dims[i];
  double *a = widened(call, arena), *taus = numbers(arena, m);
  double *q = numbers(arena, m * k), *r = numbers(arena, k * n);
  if (!a || !taus || !q || !r) return PESTLE_OOM();
  for (int64_t g = 0; g < matrices; ++g) {
    double size = size_of(a + g * m * n, m * n);
    factor_qr(a + g * m * n, m, n, k, taus, q, r);
    if (isnan(size)) {
      set_all(q, m * k, NAN);
      set_all(r, k * n, NAN);
    }
    store(call, 0, g * m * k, q, m * k);
    store(call, 1, g * k * n, r, k * n);
  }
  return NULL;
}

// --- Rotations ---

typedef struct turn_t {
  double c, s, t;
} turn_t;

// That which makes pq of [pp, pq; pq, qq] zero.
static turn_t turn_of(double pp, double qq, double pq) {
  double theta = (qq - pp) / (2 * pq);
  double t = 1 / (fabs(theta) + hypot(theta, 1));
  if (theta < 0) t = -t;
  double c = 1 / sqrt(1 + t * t);
  return (turn_t){c, t * c, t};
}

// Elements p and q of |n| pairs that lie |step| apart.
static void turn(double* p, double* q, int64_t n, int64_t step, turn_t by) {
  for (int64_t i = 0; i < n; ++i) {
    double x = p[i * step], y = q[i * step];
    p[i * step] = by.c * x - by.s * y;
    q[i * step] = by.s * x + by.c * y;
  }
}

// Places 0 to n in the order of |keys|, ascending and stable.
static void order_of(const double* keys, int64_t n, int64_t* order) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = i;
    for (; at > 0 && keys[order[at - 1]] > keys[i]; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

// --- eigh ---

static bool eigh_sweep(double* a, double* v, int64_t n) {
  bool turned = false;
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = p + 1; q < n; ++q) {
      double pq = a[p * n + q];
      if (fabs(pq) <= 0x1p-60) continue;
      turn_t by = turn_of(a[p * n + p], a[q * n + q], pq);
      turn(a + p * n, a + q * n, n, 1, by);
      turn(a + p, a + q, n, n, by);
      a[p * n + q] = a[q * n + p] = 0;
      turn(v + p, v + q, n, n, by);
      turned = true;
    }
  }
  return turned;
}

static void factor_eigh(double* a, int64_t n, bool lower, double* v, double* w,
                        int64_t* order, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      double* from = lower ? &a[i * n + j] : &a[j * n + i];
      a[i * n + j] = a[j * n + i] = *from;
    }
  }
  double size = size_of(a, n * n);
  if (isnan(size)) {
    set_all(w, n, NAN);
    set_all(out, n * n, NAN);
    return;
  }
  scale(a, n * n, 1 / size);
  make_unit(v, n, n);
  for (int i = 0; i < SWEEPS && eigh_sweep(a, v, n); ++i) {
  }
  double* keys = out;  // not needed yet
  for (int64_t i = 0; i < n; ++i)
    keys[i] = a[i * n + i];
  order_of(keys, n, order);
  for (int64_t i = 0; i < n; ++i)
    w[i] = keys[order[i]] * size;
  for (int64_t j = 0; j < n; ++j) {
    if (lead_is_negative(v + order[j], n, n)) negate(v + order[j], n, n);
    for (int64_t i = 0; i < n; ++i)
      out[i * n + j] = v[i * n + order[j]];
  }
}

static pestle_status_t eigh(const pestle_ref_call_t* call,
                            pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  int64_t n = type->dims[type->rank - 1], count = pestle_type_count(type);
  bool lower = PESTLE_NODE_BOOL(call->node, lower);
  double *a = widened(call, arena), *v = numbers(arena, n * n);
  double *w = numbers(arena, n), *out = numbers(arena, n * n);
  int64_t* order = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)n + 1);
  if (!a || !v || !w || !out || !order) return PESTLE_OOM();
  for (int64_t g = 0; count && g < count / (n * n); ++g) {
    factor_eigh(a + g * n * n, n, lower, v, w, order, out);
    store(call, 0, g * n, w, n);
    store(call, 1, g * n * n, out, n * n);
  }
  return NULL;
}

// --- svd ---

// Of a tall matrix [m, n]: rows of |w| [n, m] are its columns.
typedef struct svd_t {
  int64_t m, n, k;  // k: columns of the left side
  double *w, *v;    // [n, m], [n, n]
  double *sorted, *taus, *r;
  double *left, *d, *right;  // [m, k], [n], [n, n] of rows
  int64_t* order;
} svd_t;

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

static bool svd_sweep(svd_t* s) {
  bool turned = false;
  for (int64_t p = 0; p < s->n; ++p) {
    for (int64_t q = p + 1; q < s->n; ++q) {
      double *x = s->w + p * s->m, *y = s->w + q * s->m;
      double pp = dot(x, x, s->m), qq = dot(y, y, s->m), pq = dot(x, y, s->m);
      double least = 0x1p-52 * sqrt((double)s->m) * sqrt(pp) * sqrt(qq);
      if (!(fabs(pq) > least)) continue;
      turn_t by = turn_of(pp, qq, pq);
      turn(x, y, s->m, 1, by);
      turn(s->v + p * s->n, s->v + q * s->n, s->n, 1, by);
      turned = true;
    }
  }
  return turned;
}

static void factor_svd(svd_t* s) {
  int64_t m = s->m, n = s->n;
  double size = size_of(s->w, m * n);
  if (isnan(size)) {
    set_all(s->left, m * s->k, NAN);
    set_all(s->d, n, NAN);
    set_all(s->right, n * n, NAN);
    return;
  }
  scale(s->w, m * n, 1 / size);
  make_unit(s->v, n, n);
  for (int i = 0; i < SWEEPS && svd_sweep(s); ++i) {
  }
  double* keys = s->taus;  // not needed yet
  for (int64_t j = 0; j < n; ++j)
    keys[j] = -sqrt(dot(s->w + j * m, s->w + j * m, m));
  order_of(keys, n, s->order);
  for (int64_t j = 0; j < n; ++j) {
    s->d[j] = -keys[s->order[j]] * size;
    for (int64_t i = 0; i < m; ++i)
      s->sorted[i * n + j] = s->w[s->order[j] * m + i];
    memcpy(s->right + j * n, s->v + s->order[j] * n,
           sizeof(double) * (size_t)n);
  }
  factor_qr(s->sorted, m, n, s->k, s->taus, s->left, s->r);
}

// The first columns of u get their sign, rows of v with them. Of a wide matrix
// the two sides changed places.
static void set_signs(svd_t* s, bool wide) {
  for (int64_t j = 0; j < s->n; ++j) {
    double *left = s->left + j, *right = s->right + j * s->n;
    if (!(wide ? lead_is_negative(right, s->n, 1)
               : lead_is_negative(left, s->m, s->k))) {
      continue;
    }
    negate(left, s->m, s->k);
    negate(right, s->n, 1);
  }
}

static void transpose(const double* a, int64_t rows, int64_t columns,
                      double* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      out[j * rows + i] = a[i * columns + j];
  }
}

// Room for one matrix of |rows| x |columns|.
static bool make_svd(pestle_arena_t* arena, int64_t rows, int64_t columns,
                     bool full, svd_t* s) {
  s->m = rows > columns ? rows : columns;
  s->n = rows > columns ? columns : rows;
  s->k = full ? s->m : s->n;
  s->w = numbers(arena, s->m * s->n);
  s->v = numbers(arena, s->n * s->n);
  s->sorted = numbers(arena, s->m * s->n);
  s->taus = numbers(arena, s->n);
  s->r = numbers(arena, s->k * s->n);
  s->left = numbers(arena, s->m * s->k);
  s->d = numbers(arena, s->n);
  s->right = numbers(arena, s->n * s->n);
  s->order = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)s->n + 1);
  return s->w && s->v && s->sorted && s->taus && s->r && s->left && s->d &&
         s->right && s->order;
}

static pestle_status_t svd(const pestle_ref_call_t* call,
                           pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  int64_t m = type->dims[type->rank - 2], n = type->dims[type->rank - 1];
  bool wide = m < n;
  int64_t matrices = 1;
  for (int32_t i = 0; i < type->rank - 2; ++i)
    matrices *= type->dims[i];
  svd_t s;
  double* a = widened(call, arena);
  bool made = make_svd(arena, m, n, PESTLE_NODE_BOOL(call->node, full), &s);
  double* turned = made ? numbers(arena, s.m * s.k) : NULL;
  if (!a || !turned) return PESTLE_OOM();
  for (int64_t g = 0; g < matrices; ++g) {
    double* from = a + g * m * n;
    if (wide) {
      memcpy(s.w, from, sizeof(double) * (size_t)(m * n));
    } else {
      transpose(from, m, n, s.w);
    }
    factor_svd(&s);
    set_signs(&s, wide);
    store(call, 1, g * s.n, s.d, s.n);
    if (wide) {
      // u = right', v = left'
      transpose(s.left, s.m, s.k, turned);
      store(call, 2, g * s.k * s.m, turned, s.k * s.m);
      transpose(s.right, s.n, s.n, turned);
      store(call, 0, g * s.n * s.n, turned, s.n * s.n);
    } else {
      store(call, 0, g * s.m * s.k, s.left, s.m * s.k);
      store(call, 2, g * s.n * s.n, s.right, s.n * s.n);
    }
  }
  return NULL;
}

// --- Entry ---

static pestle_status_t run(const pestle_ref_call_t* call,
                           pestle_status_t (*evaluate)(const pestle_ref_call_t*,
                                                       pestle_arena_t*)) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = evaluate(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_qr(const pestle_ref_call_t* call) {
  return run(call, qr);
}

pestle_status_t pestle_ref_eigh(const pestle_ref_call_t* call) {
  return run(call, eigh);
}

pestle_status_t pestle_ref_svd(const pestle_ref_call_t* call) {
  return run(call, svd);
}
