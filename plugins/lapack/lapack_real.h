// SPDX-License-Identifier: Apache-2.0
// The ops for one type: REAL, and FN(name) for the functions of LAPACK and
// NAME(name) for what is exported. Matrices are copied to LAPACK's order, by
// columns, and back. Included once for each type, on purpose without a guard.
#include "plugins/lapack/lapack_plain.h"

static REAL* element(const lapack_matrix_t* m, int64_t i, int64_t j) {
  return (REAL*)(void*)(m->data + i * m->down + j * m->across);
}

static void read_matrix(const lapack_matrix_t* m, REAL* out) {
  for (int32_t j = 0; j < m->columns; ++j) {
    for (int32_t i = 0; i < m->rows; ++i)
      out[(size_t)j * (size_t)m->rows + (size_t)i] = *element(m, i, j);
  }
}

// From columns that are |stride| long.
static void write_matrix(const REAL* from, int64_t stride,
                         const lapack_matrix_t* m) {
  for (int32_t j = 0; j < m->columns; ++j) {
    for (int32_t i = 0; i < m->rows; ++i)
      *element(m, i, j) = from[j * stride + i];
  }
}

static void fill_matrix(const lapack_matrix_t* m, REAL value) {
  for (int32_t j = 0; j < m->columns; ++j) {
    for (int32_t i = 0; i < m->rows; ++i)
      *element(m, i, j) = value;
  }
}

// Parts of the work, each at a multiple of 64 bytes.
static void* part(char** at, size_t bytes) {
  char* out = *at;
  *at += (bytes + 63) / 64 * 64;
  return out;
}

static REAL* reals(char** at, int64_t count) {
  return part(at, (size_t)count * sizeof(REAL));
}

static int32_t* integers(char** at, int64_t count) {
  return part(at, (size_t)count * sizeof(int32_t));
}

static int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b) {
  return a > b ? a : b;
}

// How much work an op says that it wants, from its answer to a question.
static int32_t wanted(REAL answer) {
  return (int32_t)((double)answer * (1 + 1e-6)) + 1;
}

// --- lu, solve, inverse ---

// Whether each pivot of |lu| is 0, which getrf leaves alone, or a divisor.
static bool pivots_are_sound(const REAL* lu, int32_t rows, int32_t steps) {
  for (int32_t k = 0; k < steps; ++k) {
    REAL pivot = lu[(size_t)k * (size_t)rows + (size_t)k];
    if (pivot != 0 && !is_divisor(pivot)) return false;
  }
  return true;
}

// From the pivots, that count from 1: what each row was swapped with, and the
// order of the rows that comes of it.
static void write_order(const lapack_job_t* job, const int32_t* pivots,
                        int32_t steps, int32_t* order) {
  int32_t rows = job->m[0].rows;
  for (int32_t i = 0; i < rows; ++i)
    order[i] = i;
  for (int32_t k = 0; k < steps; ++k) {
    int32_t other = pivots[k] - 1, t = order[k];
    *(int32_t*)(void*)(job->m[2].data + k * job->m[2].down) = other;
    order[k] = order[other];
    order[other] = t;
  }
  for (int32_t i = 0; i < rows; ++i)
    *(int32_t*)(void*)(job->m[3].data + i * job->m[3].down) = order[i];
}

static void lu(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t* m = &job->m[0];
  int32_t rows = m->rows, columns = m->columns, info = 0;
  int64_t count = (int64_t)rows * columns;
  int32_t steps = smaller(rows, columns);
  REAL* a = reals(&at, count);
  int32_t* pivots = integers(&at, steps);
  int32_t* order = integers(&at, rows);
  read_matrix(m, a);
  bool good = is_finite(a, count);
  if (good) {
    job->api->FN(getrf)(&rows, &columns, a, &rows, pivots, &info);
    // A positive |info| says that a pivot is 0: the factors are whole.
    good = info >= 0 && pivots_are_sound(a, rows, steps) && is_finite(a, count);
  }
  if (!good) {
    read_matrix(m, a);
    plain_lu(a, rows, columns, pivots);
  }
  write_matrix(a, rows, &job->m[1]);
  write_order(job, pivots, steps, order);
}

// The right-hand sides: the unit matrix for an inverse.
static void read_sides(const lapack_job_t* job, bool inverse, REAL* b) {
  if (!inverse) {
    read_matrix(&job->m[1], b);
    return;
  }
  size_t n = (size_t)job->m[0].rows;
  memset(b, 0, n * n * sizeof(REAL));
  for (size_t i = 0; i < n; ++i)
    b[i * n + i] = 1;
}

// By LAPACK into |b|; false where its result does not count.
static bool solve_by_library(const lapack_job_t* job, REAL* a, int32_t n,
                             REAL* b, int32_t others, int32_t* pivots) {
  int64_t count = (int64_t)n * others;
  int32_t info = 0;
  if (!is_finite(a, (int64_t)n * n) || !is_finite(b, count)) return false;
  job->api->FN(getrf)(&n, &n, a, &n, pivots, &info);
  if (info || !divides(a, n)) return false;
  job->api->FN(getrs)("N", &n, &others, a, &n, pivots, b, &n, &info, 1);
  return !info && is_finite(b, count);
}

// Singular matrices give infinities and NaN, by dividing by their zero pivots.
static void solve(const lapack_job_t* job, bool inverse) {
  char* at = job->work;
  const lapack_matrix_t *m = &job->m[0], *x = &job->m[inverse ? 1 : 2];
  int32_t n = m->rows, others = x->columns;
  REAL* a = reals(&at, (int64_t)n * n);
  REAL* b = reals(&at, (int64_t)n * others);
  int32_t* pivots = integers(&at, n);
  read_matrix(m, a);
  read_sides(job, inverse, b);
  if (!solve_by_library(job, a, n, b, others, pivots)) {
    read_matrix(m, a);
    read_sides(job, inverse, b);
    plain_lu(a, n, n, pivots);
    plain_solve(a, pivots, n, b, others);
  }
  write_matrix(b, n, x);
}

// --- Triangles ---

static lapack_matrix_t transposed(const lapack_matrix_t* m) {
  return (lapack_matrix_t){m->data, m->columns, m->rows, m->across, m->down};
}

// The other half of a square matrix, which no op reads.
static void clear_upper(REAL* a, int32_t n) {
  for (int32_t j = 1; j < n; ++j)
    memset(a + (size_t)j * (size_t)n, 0, (size_t)j * sizeof(REAL));
}

// u'u = a is l l' = a with l = u': both are computed as lower triangles.
static void cholesky(const lapack_job_t* job) {
  char* at = job->work;
  lapack_matrix_t m = job->m[0], y = job->m[1];
  if (!(job->flags & PESTLE_LIBRARY_LOWER)) {
    m = transposed(&m);
    y = transposed(&y);
  }
  int32_t n = m.rows, info = 0;
  int64_t count = (int64_t)n * n;
  REAL* a = reals(&at, count);
  read_matrix(&m, a);
  clear_upper(a, n);
  bool good = is_finite(a, count);
  if (good) {
    job->api->FN(potrf)("L", &n, a, &n, &info, 1);
    good = !info && is_finite(a, count);
  }
  if (!good) {
    // Where potrf ends early, columns before that point are unfinished too.
    read_matrix(&m, a);
    clear_upper(a, n);
    plain_cholesky(a, n);
  }
  write_matrix(a, n, &y);
}

// Whether |x|, what the library made of finite operands, counts.
static bool triangle_by_library(const lapack_job_t* job, REAL* a, REAL* x) {
  const lapack_matrix_t* b = &job->m[1];
  bool lower = job->flags & PESTLE_LIBRARY_LOWER;
  bool unit = job->flags & PESTLE_LIBRARY_UNIT_DIAGONAL;
  int32_t n = job->m[0].rows, rows = b->rows, columns = b->columns;
  int64_t count = (int64_t)rows * columns;
  for (int32_t j = 0; j < n; ++j) {
    int32_t first = lower ? j + unit : 0, last = lower ? n : j + !unit;
    if (first < last &&
        !is_finite(a + (size_t)j * (size_t)n + first, last - first)) {
      return false;
    }
  }
  if (!is_finite(x, count) || (!unit && !divides(a, n))) return false;
  REAL one = 1;
  job->api->FN(trsm)(
      job->flags & PESTLE_LIBRARY_LEFT_SIDE ? "L" : "R", lower ? "L" : "U",
      job->flags & PESTLE_LIBRARY_TRANSPOSE ? "T" : "N", unit ? "U" : "N",
      &rows, &columns, &one, a, &n, x, &rows, 1, 1, 1, 1);
  return is_finite(x, count);
}

static void plain_triangle(const lapack_job_t* job, const REAL* a, REAL* x) {
  const lapack_matrix_t* b = &job->m[1];
  bool left = job->flags & PESTLE_LIBRARY_LEFT_SIDE;
  bool turned = job->flags & PESTLE_LIBRARY_TRANSPOSE;
  int32_t n = job->m[0].rows;
  // x op(a) = b is transpose(op(a)) transpose(x) = transpose(b).
  bool swaps = turned == left;
  substitute(&(system_t){.a = a,
                         .x = x,
                         .n = n,
                         .row = swaps ? n : 1,
                         .column = swaps ? 1 : n,
                         .others = left ? b->columns : b->rows,
                         .along = left ? 1 : b->rows,
                         .across = left ? b->rows : 1,
                         .lower = !(job->flags & PESTLE_LIBRARY_LOWER) == swaps,
                         .unit = job->flags & PESTLE_LIBRARY_UNIT_DIAGONAL});
}

static void triangular_solve(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t *m = &job->m[0], *b = &job->m[1];
  REAL* a = reals(&at, (int64_t)m->rows * m->rows);
  REAL* x = reals(&at, (int64_t)b->rows * b->columns);
  read_matrix(m, a);
  read_matrix(b, x);
  if (!triangle_by_library(job, a, x)) {
    read_matrix(b, x);
    plain_triangle(job, a, x);
  }
  write_matrix(x, b->rows, &job->m[2]);
}

// --- Signs ---

// Whether the leading component of |n| numbers is negative: the first of those
// that are at least 3/4 as large as the largest.
static bool lead_is_negative(const REAL* x, int32_t n) {
  REAL largest = 0;
  for (int32_t i = 0; i < n; ++i) {
    REAL size = x[i] < 0 ? -x[i] : x[i];
    if (size > largest) largest = size;
  }
  for (int32_t i = 0; i < n; ++i) {
    REAL size = x[i] < 0 ? -x[i] : x[i];
    if (size >= (REAL)0.75 * largest) return x[i] < 0;
  }
  return false;
}

static void negate(REAL* x, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i)
    x[i * step] = -x[i * step];
}

// --- qr ---

static int32_t qr_work(const lapack_job_t* job, int32_t rows, int32_t columns,
                       int32_t k) {
  int32_t steps = smaller(rows, columns), ask = -1, info;
  REAL first = 1, second = 1, none = 0;
  job->api->FN(geqrf)(&rows, &columns, &none, &rows, &none, &first, &ask,
                      &info);
  job->api->FN(orgqr)(&rows, &k, &steps, &none, &rows, &none, &second, &ask,
                      &info);
  return larger(wanted(first), wanted(second));
}

static void qr(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t *m = &job->m[0], *q = &job->m[1], *r = &job->m[2];
  int32_t rows = m->rows, columns = m->columns, k = q->columns, info;
  int32_t steps = smaller(rows, columns),
          work_size = qr_work(job, rows, columns, k);
  REAL* a = reals(&at, (int64_t)rows * larger(columns, k));
  REAL* tau = reals(&at, steps);
  REAL* work = reals(&at, work_size);
  int32_t* flips = integers(&at, steps);
  read_matrix(m, a);
  if (!is_finite(a, (int64_t)rows * columns)) {
    fill_matrix(q, (REAL)NAN);
    fill_matrix(r, (REAL)NAN);
    return;
  }
  job->api->FN(geqrf)(&rows, &columns, a, &rows, tau, work, &work_size, &info);
  for (int32_t i = 0; i < r->rows; ++i) {
    bool flip = i < steps && a[(size_t)i * (size_t)rows + (size_t)i] < 0;
    if (i < steps) flips[i] = flip;
    for (int32_t j = 0; j < columns; ++j) {
      REAL x = j < i ? 0 : a[(size_t)j * (size_t)rows + (size_t)i];
      *element(r, i, j) = flip && j >= i ? -x : x;
    }
  }
  job->api->FN(orgqr)(&rows, &k, &steps, a, &rows, tau, work, &work_size,
                      &info);
  for (int32_t j = 0; j < steps; ++j) {
    if (flips[j]) negate(a + (size_t)j * (size_t)rows, rows, 1);
  }
  write_matrix(a, rows, q);
}

// --- eigh ---

static void eigh_work(const lapack_job_t* job, int32_t n, int32_t* reals_,
                      int32_t* integers_) {
  int32_t ask = -1, info, whole = 1;
  REAL answer = 1, none = 0;
  job->api->FN(syevd)("V", "U", &n, &none, &n, &none, &answer, &ask, &whole,
                      &ask, &info, 1, 1);
  *reals_ = wanted(answer);
  *integers_ = whole;
}

static void eigh(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t *m = &job->m[0], *w = &job->m[1], *v = &job->m[2];
  bool lower = job->flags & PESTLE_LIBRARY_LOWER;
  int32_t n = m->rows, size, whole, info = 0;
  eigh_work(job, n, &size, &whole);
  REAL* a = reals(&at, (int64_t)n * n);
  REAL* values = reals(&at, n);
  REAL* work = reals(&at, size);
  int32_t* more = integers(&at, whole);
  read_matrix(m, a);
  for (int32_t j = 0; j < n; ++j) {
    for (int32_t i = 0; i < j; ++i) {
      REAL* upper = &a[(size_t)j * (size_t)n + (size_t)i];
      REAL* other = &a[(size_t)i * (size_t)n + (size_t)j];
      *upper = *other = lower ? *other : *upper;
    }
  }
  bool good = is_finite(a, (int64_t)n * n);
  if (good) {
    job->api->FN(syevd)("V", "U", &n, a, &n, values, work, &size, more, &whole,
                        &info, 1, 1);
  }
  if (!good || info) {
    fill_matrix(w, (REAL)NAN);
    fill_matrix(v, (REAL)NAN);
    return;
  }
  for (int32_t j = 0; j < n; ++j) {
    REAL* column = a + (size_t)j * (size_t)n;
    if (lead_is_negative(column, n)) negate(column, n, 1);
    *element(w, j, 0) = values[j];
  }
  write_matrix(a, n, v);
}

// --- svd ---

static int32_t svd_work(const lapack_job_t* job, int32_t rows, int32_t columns,
                        bool full) {
  int32_t ask = -1, info, whole = 1, k = smaller(rows, columns);
  int32_t ldv = full ? columns : k;
  REAL answer = 1, none = 0;
  job->api->FN(gesdd)(full ? "A" : "S", &rows, &columns, &none, &rows, &none,
                      &none, &rows, &none, &ldv, &answer, &ask, &whole, &info,
                      1);
  return wanted(answer);
}

static void svd(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t *m = &job->m[0], *u = &job->m[1], *s = &job->m[2];
  const lapack_matrix_t* v = &job->m[3];
  bool full = job->flags & PESTLE_LIBRARY_FULL;
  int32_t rows = m->rows, columns = m->columns, info = 0;
  int32_t k = smaller(rows, columns), ldv = v->rows;
  int32_t size = svd_work(job, rows, columns, full);
  REAL* a = reals(&at, (int64_t)rows * columns);
  REAL* left = reals(&at, (int64_t)rows * u->columns);
  REAL* right = reals(&at, (int64_t)ldv * columns);
  REAL* values = reals(&at, k);
  REAL* work = reals(&at, size);
  int32_t* whole = integers(&at, 8 * (int64_t)k);
  read_matrix(m, a);
  bool good = is_finite(a, (int64_t)rows * columns);
  if (good) {
    job->api->FN(gesdd)(full ? "A" : "S", &rows, &columns, a, &rows, values,
                        left, &rows, right, &ldv, work, &size, whole, &info, 1);
  }
  if (!good || info) {
    fill_matrix(u, (REAL)NAN);
    fill_matrix(s, (REAL)NAN);
    fill_matrix(v, (REAL)NAN);
    return;
  }
  for (int32_t j = 0; j < k; ++j) {
    REAL* column = left + (size_t)j * (size_t)rows;
    if (lead_is_negative(column, rows)) {
      negate(column, rows, 1);
      negate(right + j, columns, ldv);
    }
    *element(s, j, 0) = values[j];
  }
  write_matrix(left, rows, u);
  write_matrix(right, ldv, v);
}

#include "plugins/lapack/lapack_complex.h"

// --- Entry ---

static size_t rounded(int64_t count, size_t size) {
  return ((size_t)count * size + 63) / 64 * 64;
}

size_t NAME(room)(lapack_op_t op, lapack_job_t* job) {
  const lapack_matrix_t* m = job->m;
  int64_t rows = m[0].rows, columns = m[0].columns;
  size_t a = rounded(rows * columns, sizeof(REAL));
  int32_t size = 0, whole = 0;
  switch (op) {
    case LAPACK_LU:
      return a + rounded(columns, 4) + rounded(rows, 4);
    case LAPACK_CHOLESKY:
      return a;
    case LAPACK_TRIANGULAR_SOLVE:
      return a + rounded((int64_t)m[1].rows * m[1].columns, sizeof(REAL));
    case LAPACK_SOLVE:
      return a + rounded(rows, 4) +
             rounded((int64_t)m[1].rows * m[1].columns, sizeof(REAL));
    case LAPACK_INVERSE:
      return 2 * a + rounded(rows, 4);
    case LAPACK_QR:
      size = qr_work(job, m[0].rows, m[0].columns, m[1].columns);
      return a + rounded(rows * m[1].columns, sizeof(REAL)) +
             rounded(rows, sizeof(REAL)) + rounded(size, sizeof(REAL)) +
             rounded(rows, 4);
    case LAPACK_EIGH:
      eigh_work(job, m[0].rows, &size, &whole);
      return a + rounded(rows, sizeof(REAL)) + rounded(size, sizeof(REAL)) +
             rounded(whole, 4);
    case LAPACK_SVD:
      size = svd_work(job, m[0].rows, m[0].columns,
                      job->flags & PESTLE_LIBRARY_FULL);
      return a + rounded(rows * m[1].columns, sizeof(REAL)) +
             rounded(m[3].rows * columns, sizeof(REAL)) +
             rounded(rows, sizeof(REAL)) + rounded(size, sizeof(REAL)) +
             rounded(8 * rows, 4) + rounded(8 * columns, 4);
    case LAPACK_Z_LU:
    case LAPACK_Z_CHOLESKY:
    case LAPACK_Z_GEQRF:
    case LAPACK_Z_ORGQR:
    case LAPACK_Z_GEQP3:
    case LAPACK_Z_EIGH:
    case LAPACK_Z_SVD:
    case LAPACK_Z_EIG:
    case LAPACK_Z_SCHUR:
    case LAPACK_Z_HESSENBERG:
    case LAPACK_Z_TRIDIAGONAL:
      return z_room(op, job);
    case LAPACK_OPS:
      break;
  }
  return 0;
}

void NAME(run)(lapack_op_t op, const lapack_job_t* job) {
  switch (op) {
    case LAPACK_LU:
      lu(job);
      return;
    case LAPACK_CHOLESKY:
      cholesky(job);
      return;
    case LAPACK_TRIANGULAR_SOLVE:
      triangular_solve(job);
      return;
    case LAPACK_SOLVE:
      solve(job, false);
      return;
    case LAPACK_INVERSE:
      solve(job, true);
      return;
    case LAPACK_QR:
      qr(job);
      return;
    case LAPACK_EIGH:
      eigh(job);
      return;
    case LAPACK_SVD:
      svd(job);
      return;
    case LAPACK_Z_LU:
    case LAPACK_Z_CHOLESKY:
    case LAPACK_Z_GEQRF:
    case LAPACK_Z_ORGQR:
    case LAPACK_Z_GEQP3:
    case LAPACK_Z_EIGH:
    case LAPACK_Z_SVD:
    case LAPACK_Z_EIG:
    case LAPACK_Z_SCHUR:
    case LAPACK_Z_HESSENBERG:
    case LAPACK_Z_TRIDIAGONAL:
      z_run(op, job);
      return;
    case LAPACK_OPS:
      return;
  }
}
