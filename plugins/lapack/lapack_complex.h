// SPDX-License-Identifier: Apache-2.0
// Functions of complex matrices for one type: REAL, CFN(name) for complex functions of
// LAPACK, DFN(name) for real ones. Their tensors are pairs of reals along one more axis;
// the letters of the configuration are flags (pestle/plugin.h). Included by lapack_f32.c
// and lapack_f64.c, on purpose without a guard.

// |count| complex numbers.
static REAL* pairs(char** at, int64_t count) {
  return reals(at, 2 * count);
}

static REAL* pair_at(const lapack_matrix_t* m, int64_t i, int64_t j) {
  return element(m, i, j);
}

static void read_pairs(const lapack_matrix_t* m, REAL* out) {
  for (int64_t j = 0; j < m->columns; ++j) {
    for (int64_t i = 0; i < m->rows; ++i)
      memcpy(out + 2 * (j * m->rows + i), pair_at(m, i, j), 2 * sizeof(REAL));
  }
}

static void write_pairs(const REAL* from, int64_t stride,
                        const lapack_matrix_t* m) {
  for (int64_t j = 0; j < m->columns; ++j) {
    for (int64_t i = 0; i < m->rows; ++i)
      memcpy(pair_at(m, i, j), from + 2 * (j * stride + i), 2 * sizeof(REAL));
  }
}

static void fill_pairs(const lapack_matrix_t* m, REAL value) {
  for (int64_t j = 0; j < m->columns; ++j) {
    for (int64_t i = 0; i < m->rows; ++i)
      pair_at(m, i, j)[0] = pair_at(m, i, j)[1] = value;
  }
}

static void write_reals(const REAL* from, const lapack_matrix_t* m) {
  for (int64_t i = 0; i < m->rows; ++i)
    *element(m, i, 0) = from[i];
}

static void fill_reals(const lapack_matrix_t* m) {
  for (int64_t i = 0; i < m->rows; ++i)
    *element(m, i, 0) = (REAL)NAN;
}

// The first part of each of |count| pairs.
static void keep_real(const REAL* from, int64_t count, REAL* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = from[2 * i];
}

static bool says(const lapack_job_t* job, char letter) {
  return job->flags >> (letter - 'A') & 1;
}

// --- Factors ---

static void z_lu(const lapack_job_t* job) {
  char* at = job->work;
  int32_t rows = job->m[0].rows, columns = job->m[0].columns, info = 0;
  REAL* a = pairs(&at, (int64_t)rows * columns);
  int32_t* pivots = integers(&at, smaller(rows, columns));
  int32_t* order = integers(&at, rows);
  read_pairs(&job->m[0], a);
  job->api->CFN(getrf)(&rows, &columns, a, &rows, pivots, &info);
  write_pairs(a, rows, &job->m[1]);
  write_order(job, pivots, smaller(rows, columns), order);
}

static void z_cholesky(const lapack_job_t* job) {
  char* at = job->work;
  bool lower = says(job, 'L');
  int32_t n = job->m[0].rows, info = 0;
  REAL* a = pairs(&at, (int64_t)n * n);
  read_pairs(&job->m[0], a);
  job->api->CFN(potrf)(lower ? "L" : "U", &n, a, &n, &info, 1);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      REAL* x = a + 2 * (j * n + i);
      bool other = lower ? i < j : i > j;
      if (other || info) x[0] = x[1] = other ? 0 : (REAL)NAN;
    }
  }
  write_pairs(a, n, &job->m[1]);
}

static int32_t z_geqrf_work(const lapack_job_t* job, int32_t m, int32_t n) {
  int32_t ask = -1, info;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(geqrf)(&m, &n, none, &m, none, answer, &ask, &info);
  return wanted(answer[0]);
}

static void z_geqrf(const lapack_job_t* job) {
  char* at = job->work;
  int32_t m = job->m[0].rows, n = job->m[0].columns, info;
  int32_t size = job->asked.pairs;
  REAL* a = pairs(&at, (int64_t)m * n);
  REAL* tau = pairs(&at, smaller(m, n));
  REAL* work = pairs(&at, size);
  read_pairs(&job->m[0], a);
  job->api->CFN(geqrf)(&m, &n, a, &m, tau, work, &size, &info);
  write_pairs(a, m, &job->m[1]);
  write_pairs(tau, smaller(m, n), &job->m[2]);
}

static int32_t z_orgqr_work(const lapack_job_t* job, int32_t m, int32_t n,
                            int32_t k) {
  int32_t ask = -1, info;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(ungqr)(&m, &n, &k, none, &m, none, answer, &ask, &info);
  return wanted(answer[0]);
}

static void z_orgqr(const lapack_job_t* job) {
  char* at = job->work;
  int32_t m = job->m[0].rows, n = job->m[0].columns, k = job->m[1].rows, info;
  int32_t size = job->asked.pairs;
  REAL* a = pairs(&at, (int64_t)m * n);
  REAL* tau = pairs(&at, k);
  REAL* work = pairs(&at, size);
  read_pairs(&job->m[0], a);
  read_pairs(&job->m[1], tau);
  job->api->CFN(ungqr)(&m, &n, &k, a, &m, tau, work, &size, &info);
  write_pairs(a, m, &job->m[2]);
}

static int32_t z_geqp3_work(const lapack_job_t* job, int32_t m, int32_t n) {
  int32_t ask = -1, info, order = 0;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(geqp3)(&m, &n, none, &m, &order, none, answer, &ask, none,
                       &info);
  return larger(wanted(answer[0]), n + 1);
}

static void z_geqp3(const lapack_job_t* job) {
  char* at = job->work;
  int32_t m = job->m[0].rows, n = job->m[0].columns, info;
  int32_t size = job->asked.pairs;
  REAL* a = pairs(&at, (int64_t)m * n);
  REAL* tau = pairs(&at, smaller(m, n));
  REAL* work = pairs(&at, size);
  REAL* more = reals(&at, 2 * (int64_t)n);
  int32_t* order = integers(&at, n);
  const lapack_matrix_t *from = &job->m[1], *to = &job->m[3];
  read_pairs(&job->m[0], a);
  for (int64_t i = 0; i < n; ++i)
    memcpy(&order[i], from->data + i * from->down, sizeof(int32_t));
  job->api->CFN(geqp3)(&m, &n, a, &m, order, tau, work, &size, more, &info);
  write_pairs(a, m, &job->m[2]);
  for (int64_t i = 0; i < n; ++i)
    memcpy(to->data + i * to->down, &order[i], sizeof(int32_t));
  write_pairs(tau, smaller(m, n), &job->m[4]);
}

// --- Values ---

static lapack_asked_t z_eigh_work(const lapack_job_t* job, int32_t n) {
  int32_t ask = -1, info, whole = 1;
  REAL none[2] = {0, 0}, answer[2] = {1, 0}, more = 1;
  job->api->CFN(heevd)("V", "L", &n, none, &n, none, answer, &ask, &more, &ask,
                       &whole, &ask, &info, 1, 1);
  return (lapack_asked_t){wanted(answer[0]), wanted(more), whole};
}

static void z_eigh(const lapack_job_t* job) {
  char* at = job->work;
  int32_t n = job->m[0].rows, info = 0;
  lapack_asked_t room = job->asked;
  REAL* a = pairs(&at, (int64_t)n * n);
  REAL* values = reals(&at, n);
  REAL* work = pairs(&at, room.pairs);
  REAL* more = reals(&at, room.reals);
  int32_t* whole = integers(&at, room.integers);
  read_pairs(&job->m[0], a);
  bool good = is_finite(a, 2 * (int64_t)n * n);
  if (good) {
    job->api->CFN(heevd)("V", says(job, 'L') ? "L" : "U", &n, a, &n, values,
                         work, &room.pairs, more, &room.reals, whole,
                         &room.integers, &info, 1, 1);
  }
  if (!good || info) {
    fill_pairs(&job->m[1], (REAL)NAN);
    fill_reals(&job->m[2]);
    return;
  }
  write_pairs(a, n, &job->m[1]);
  write_reals(values, &job->m[2]);
}

static int32_t z_svd_work(const lapack_job_t* job, int32_t m, int32_t n,
                          bool full) {
  int32_t ask = -1, info, whole = 1, ldv = full ? n : smaller(m, n);
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(gesdd)(full ? "A" : "S", &m, &n, none, &m, none, none, &m, none,
                       &ldv, answer, &ask, none, &whole, &info, 1);
  return wanted(answer[0]);
}

// The most that any version of gesdd wants of reals.
static int64_t z_svd_reals(int32_t m, int32_t n) {
  int64_t few = smaller(m, n), many = larger(m, n);
  int64_t first = 5 * few * few + 7 * few,
          second = 2 * many * few + 2 * few * few + few;
  return first > second ? first : second;
}

static void z_svd(const lapack_job_t* job) {
  char* at = job->work;
  const lapack_matrix_t *u = &job->m[1], *v = &job->m[3];
  int32_t m = job->m[0].rows, n = job->m[0].columns, info = 0, ldv = v->rows;
  int32_t k = smaller(m, n);
  bool full = u->columns == m && v->rows == n;
  int32_t size = job->asked.pairs;
  REAL* a = pairs(&at, (int64_t)m * n);
  REAL* left = pairs(&at, (int64_t)m * u->columns);
  REAL* right = pairs(&at, (int64_t)ldv * n);
  REAL* values = reals(&at, k);
  REAL* work = pairs(&at, size);
  REAL* more = reals(&at, z_svd_reals(m, n));
  int32_t* whole = integers(&at, 8 * (int64_t)k);
  read_pairs(&job->m[0], a);
  bool good = is_finite(a, 2 * (int64_t)m * n);
  if (good) {
    job->api->CFN(gesdd)(full ? "A" : "S", &m, &n, a, &m, values, left, &m,
                         right, &ldv, work, &size, more, whole, &info, 1);
  }
  if (!good || info) {
    fill_pairs(u, (REAL)NAN);
    fill_reals(&job->m[2]);
    fill_pairs(v, (REAL)NAN);
    return;
  }
  write_pairs(left, m, u);
  write_reals(values, &job->m[2]);
  write_pairs(right, ldv, v);
}

// --- eig and Schur's form ---

// N: of real matrices, which real functions take.
static int32_t z_eig_work(const lapack_job_t* job, int32_t n) {
  int32_t ask = -1, info;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  if (says(job, 'N')) {
    job->api->DFN(geev)("V", "V", &n, none, &n, none, none, none, &n, none, &n,
                        answer, &ask, &info, 1, 1);
  } else {
    job->api->CFN(geev)("V", "V", &n, none, &n, none, none, &n, none, &n,
                        answer, &ask, none, &info, 1, 1);
  }
  return wanted(answer[0]);
}

static void write_values(const REAL* re, const REAL* im,
                         const lapack_matrix_t* m) {
  for (int64_t i = 0; i < m->rows; ++i) {
    pair_at(m, i, 0)[0] = re[i];
    pair_at(m, i, 0)[1] = im[i];
  }
}

// Vectors out of real columns: of a pair of values one is the real parts, the next the
// imaginary ones.
static void unpack(const REAL* from, const REAL* im, const lapack_matrix_t* m) {
  int64_t n = m->rows;
  for (int64_t j = 0; j < n; ++j) {
    int64_t re = im[j] < 0 ? j - 1 : j, other = im[j] > 0 ? j + 1 : j;
    for (int64_t i = 0; i < n; ++i) {
      REAL* x = pair_at(m, i, j);
      x[0] = from[re * n + i];
      x[1] = im[j] == 0 ? 0 : from[other * n + i];
      if (im[j] < 0) x[1] = -x[1];
    }
  }
}

static void no_values(const lapack_job_t* job) {
  for (int i = 1; i < 4; ++i)
    fill_pairs(&job->m[i], (REAL)NAN);
}

static void real_eig(const lapack_job_t* job, char* at, int32_t size) {
  int32_t n = job->m[0].rows, info = 0;
  int64_t count = (int64_t)n * n;
  REAL *whole = pairs(&at, count), *a = reals(&at, count);
  REAL *left = reals(&at, count), *right = reals(&at, count);
  REAL *re = reals(&at, n), *im = reals(&at, n), *work = reals(&at, size);
  read_pairs(&job->m[0], whole);
  keep_real(whole, count, a);
  bool good = is_finite(a, count);
  if (good) {
    job->api->DFN(geev)("V", "V", &n, a, &n, re, im, left, &n, right, &n, work,
                        &size, &info, 1, 1);
  }
  if (!good || info) {
    no_values(job);
    return;
  }
  write_values(re, im, &job->m[1]);
  unpack(left, im, &job->m[2]);
  unpack(right, im, &job->m[3]);
}

static void z_eig(const lapack_job_t* job) {
  char* at = job->work;
  int32_t n = job->m[0].rows, info = 0, size = job->asked.pairs;
  if (says(job, 'N')) {
    real_eig(job, at, size);
    return;
  }
  int64_t count = (int64_t)n * n;
  REAL *a = pairs(&at, count), *left = pairs(&at, count),
       *right = pairs(&at, count), *w = pairs(&at, n);
  REAL *work = pairs(&at, size), *more = reals(&at, 2 * (int64_t)n);
  read_pairs(&job->m[0], a);
  bool good = is_finite(a, 2 * count);
  if (good) {
    job->api->CFN(geev)("V", "V", &n, a, &n, w, left, &n, right, &n, work,
                        &size, more, &info, 1, 1);
  }
  if (!good || info) {
    no_values(job);
    return;
  }
  write_pairs(w, n, &job->m[1]);
  write_pairs(left, n, &job->m[2]);
  write_pairs(right, n, &job->m[3]);
}

static int32_t z_schur_work(const lapack_job_t* job, int32_t n) {
  int32_t ask = -1, info, count;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  if (says(job, 'N')) {
    job->api->DFN(gees)("V", "N", NULL, &n, none, &n, &count, none, none, none,
                        &n, answer, &ask, &info, &info, 1, 1);
  } else {
    job->api->CFN(gees)("V", "N", NULL, &n, none, &n, &count, none, none, &n,
                        answer, &ask, none, &info, &info, 1, 1);
  }
  return wanted(answer[0]);
}

static void write_real(const REAL* from, const lapack_matrix_t* m) {
  for (int64_t j = 0; j < m->columns; ++j) {
    for (int64_t i = 0; i < m->rows; ++i) {
      pair_at(m, i, j)[0] = from[j * m->rows + i];
      pair_at(m, i, j)[1] = 0;
    }
  }
}

static void real_schur(const lapack_job_t* job, char* at, int32_t size) {
  int32_t n = job->m[0].rows, info = 0, chosen, none = 0;
  int64_t count = (int64_t)n * n;
  REAL *whole = pairs(&at, count), *a = reals(&at, count),
       *z = reals(&at, count);
  REAL *re = reals(&at, n), *im = reals(&at, n), *work = reals(&at, size);
  read_pairs(&job->m[0], whole);
  keep_real(whole, count, a);
  bool good = is_finite(a, count);
  if (good) {
    job->api->DFN(gees)("V", "N", NULL, &n, a, &n, &chosen, re, im, z, &n, work,
                        &size, &none, &info, 1, 1);
  }
  if (!good || info) {
    no_values(job);
    return;
  }
  write_real(a, &job->m[1]);
  write_real(z, &job->m[2]);
  write_values(re, im, &job->m[3]);
}

static void z_schur(const lapack_job_t* job) {
  char* at = job->work;
  int32_t n = job->m[0].rows, info = 0, chosen, none = 0;
  int32_t size = job->asked.pairs;
  if (says(job, 'N')) {
    real_schur(job, at, size);
    return;
  }
  int64_t count = (int64_t)n * n;
  REAL *a = pairs(&at, count), *z = pairs(&at, count), *w = pairs(&at, n);
  REAL *work = pairs(&at, size), *more = reals(&at, n);
  read_pairs(&job->m[0], a);
  bool good = is_finite(a, 2 * count);
  if (good) {
    job->api->CFN(gees)("V", "N", NULL, &n, a, &n, &chosen, w, z, &n, work,
                        &size, more, &none, &info, 1, 1);
  }
  if (!good || info) {
    no_values(job);
    return;
  }
  write_pairs(a, n, &job->m[1]);
  write_pairs(z, n, &job->m[2]);
  write_pairs(w, n, &job->m[3]);
}

// --- Forms ---

static int32_t z_hessenberg_work(const lapack_job_t* job, int32_t n) {
  int32_t ask = -1, info, one = 1;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(gehrd)(&n, &one, &n, none, &n, none, answer, &ask, &info);
  return larger(wanted(answer[0]), n);
}

static void z_hessenberg(const lapack_job_t* job) {
  char* at = job->work;
  int32_t n = job->m[0].rows, one = 1, info, size = job->asked.pairs;
  REAL *a = pairs(&at, (int64_t)n * n), *tau = pairs(&at, n),
       *work = pairs(&at, size);
  read_pairs(&job->m[0], a);
  job->api->CFN(gehrd)(&n, &one, &n, a, &n, tau, work, &size, &info);
  write_pairs(a, n, &job->m[1]);
  write_pairs(tau, n, &job->m[2]);
}

static int32_t z_tridiagonal_work(const lapack_job_t* job, int32_t n) {
  int32_t ask = -1, info;
  REAL none[2] = {0, 0}, answer[2] = {1, 0};
  job->api->CFN(hetrd)("L", &n, none, &n, none, none, none, answer, &ask, &info,
                       1);
  return wanted(answer[0]);
}

static void z_tridiagonal(const lapack_job_t* job) {
  char* at = job->work;
  int32_t n = job->m[0].rows, info, size = job->asked.pairs;
  REAL *a = pairs(&at, (int64_t)n * n), *tau = pairs(&at, n);
  REAL *d = reals(&at, n), *e = reals(&at, n), *work = pairs(&at, size);
  read_pairs(&job->m[0], a);
  job->api->CFN(hetrd)(says(job, 'L') ? "L" : "U", &n, a, &n, d, e, tau, work,
                       &size, &info, 1);
  write_pairs(a, n, &job->m[1]);
  write_reals(d, &job->m[2]);
  write_reals(e, &job->m[3]);
  write_pairs(tau, n, &job->m[4]);
}

// --- All ---

// What the functions ask for to work in: the same for all matrices of a batch.
static lapack_asked_t z_ask(lapack_op_t op, const lapack_job_t* job) {
  int32_t m = job->m[0].rows, n = job->m[0].columns;
  switch ((int)op) {
    case LAPACK_Z_GEQRF:
      return (lapack_asked_t){.pairs = z_geqrf_work(job, m, n)};
    case LAPACK_Z_ORGQR:
      return (lapack_asked_t){.pairs = z_orgqr_work(job, m, n, job->m[1].rows)};
    case LAPACK_Z_GEQP3:
      return (lapack_asked_t){.pairs = z_geqp3_work(job, m, n)};
    case LAPACK_Z_EIGH:
      return z_eigh_work(job, n);
    case LAPACK_Z_SVD: {
      bool full = job->m[1].columns == m && job->m[3].rows == n;
      return (lapack_asked_t){.pairs = z_svd_work(job, m, n, full)};
    }
    case LAPACK_Z_EIG:
      return (lapack_asked_t){.pairs = z_eig_work(job, n)};
    case LAPACK_Z_SCHUR:
      return (lapack_asked_t){.pairs = z_schur_work(job, n)};
    case LAPACK_Z_HESSENBERG:
      return (lapack_asked_t){.pairs = z_hessenberg_work(job, n)};
    case LAPACK_Z_TRIDIAGONAL:
      return (lapack_asked_t){.pairs = z_tridiagonal_work(job, n)};
    default:
      return (lapack_asked_t){0};
  }
}

// Copies are of no more numbers than the tensors have, but for vectors.
static size_t z_room(lapack_op_t op, lapack_job_t* job) {
  int64_t most = 1, all = 0;
  job->asked = z_ask(op, job);
  int64_t asked =
      2 * (int64_t)job->asked.pairs + job->asked.reals + job->asked.integers;
  if (op == LAPACK_Z_SVD) {
    asked += z_svd_reals(job->m[0].rows, job->m[0].columns);
  }
  for (int i = 0; i < LAPACK_TENSORS; ++i) {
    const lapack_matrix_t* m = &job->m[i];
    most = larger(larger((int32_t)most, m->rows), m->columns);
    all += 2 * (int64_t)m->rows * m->columns;
  }
  return (size_t)(asked + all + 16 * most) * sizeof(REAL) + 16 * 64;
}

static void z_run(lapack_op_t op, const lapack_job_t* job) {
  static void (*const functions[])(const lapack_job_t*) = {
      z_lu,  z_cholesky, z_geqrf, z_orgqr,      z_geqp3,      z_eigh,
      z_svd, z_eig,      z_schur, z_hessenberg, z_tridiagonal};
  functions[op - LAPACK_Z_LU](job);
}
