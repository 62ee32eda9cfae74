// SPDX-License-Identifier: Apache-2.0
// The functions of Pestle's own behind custom calls: each takes and gives matrices or
// vectors with any batch axes before them. Complex numbers come as two reals along one
// more axis. They run on the host in double precision and need no library.
#include "runtime/own_calls.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "runtime/context.h"
#include "runtime/own_linalg.h"
#include "runtime/own_words.h"

typedef pestle_z_t z_t;

enum { MOST = 4 };

// One matrix [m, n], or vector [m], of a batch.
typedef struct part_t {
  z_t* data;
  int64_t m, n, count;  // |count| elements
} part_t;

typedef struct job_t {
  part_t in[MOST], out[MOST];
  const char* config;
  z_t* work;
  bool failed;
} job_t;

// What a tensor is: M matrices, V vectors, of complex numbers; R vectors of real
// ones; I of i32.
typedef struct row_t {
  const char* name;
  const char *in, *out;
  void (*run)(job_t* j);
} row_t;

static bool says(const job_t* j, char flag) {
  return strchr(j->config, flag) != NULL;
}

static bool is_finite(const part_t* a) {
  for (int64_t i = 0; i < a->count; ++i) {
    if (!isfinite(creal(a->data[i])) || !isfinite(cimag(a->data[i])))
      return false;
  }
  return true;
}

static void copy(const part_t* from, part_t* to) {
  memcpy(to->data, from->data, (size_t)from->count * sizeof(z_t));
}

// --- The functions. Letters of the configuration are flags ---

static void lu(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_lu(j->out[0].data, j->in[0].m, j->in[0].n, j->out[1].data,
              j->out[2].data);
}

static void cholesky(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_cholesky(j->out[0].data, j->in[0].m, says(j, 'L'));
}

// L lower, R right, U unit diagonal, T transposed, C its conjugate.
static void triangular_solve(job_t* j) {
  int64_t n = j->in[0].m;
  z_t *a = j->in[0].data, *t = j->work;
  bool lower = says(j, 'L'), turned = says(j, 'T'), right = says(j, 'R');
  // x op(a) = b is op(a)' x' = b'.
  bool flip = turned != right;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      z_t x = flip ? a[k * n + i] : a[i * n + k];
      t[i * n + k] = says(j, 'C') ? pestle_z_conj(x) : x;
    }
  }
  int64_t rows = j->in[1].m, columns = j->in[1].n;
  z_t *b = j->in[1].data, *x = j->out[0].data;
  if (!right) {
    copy(&j->in[1], &j->out[0]);
    pestle_z_solve_triangle(t, n, x, columns, lower != flip, says(j, 'U'));
    return;
  }
  z_t* side = t + n * n;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k)
      side[k * rows + i] = b[i * columns + k];
  }
  pestle_z_solve_triangle(t, n, side, rows, lower != flip, says(j, 'U'));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k)
      x[i * columns + k] = side[k * rows + i];
  }
}

static void geqrf(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_qr(j->out[0].data, j->in[0].m, j->in[0].n, j->out[1].data);
}

static void orgqr(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_q(j->out[0].data, j->in[0].m, j->in[0].n, j->in[1].data, j->in[1].m,
             j->work);
}

static void eigh(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  j->failed = !is_finite(&j->in[0]) ||
              !pestle_z_eigh(j->out[0].data, j->in[0].m, says(j, 'L'),
                             j->out[1].data, j->work);
}

static void svd(job_t* j) {
  j->failed = !is_finite(&j->in[0]);
  if (j->failed) return;
  pestle_z_svd(j->in[0].data, j->in[0].m, j->in[0].n, j->out[0].data,
               j->out[0].n, j->out[1].data, j->out[2].data, j->out[2].m,
               j->work);
}

// t = z^H a z and its values. N: of a real matrix, with blocks on the diagonal.
static bool decompose(const job_t* j, z_t* t, z_t* z, z_t* w, z_t* work) {
  int64_t n = j->in[0].m;
  memcpy(t, j->in[0].data, (size_t)(n * n) * sizeof(z_t));
  if (!is_finite(&j->in[0])) return false;
  if (says(j, 'N')) return pestle_z_schur_real(t, n, z, w, work);
  bool done = pestle_z_schur(t, n, z, work);
  for (int64_t i = 0; i < n; ++i)
    w[i] = t[i * n + i];
  return done;
}

static void schur(job_t* j) {
  j->failed =
      !decompose(j, j->out[0].data, j->out[1].data, j->out[2].data, j->work);
}

// Vectors of a real matrix: of real values real ones, of pairs conjugate ones.
static void make_real(const z_t* w, int64_t n, z_t* vectors) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      z_t* x = &vectors[i * n + k];
      if (cimag(w[k]) == 0) *x = creal(*x);
      if (cimag(w[k]) < 0) *x = conj(x[-1]);
    }
  }
}

// Values, left and right vectors; N: of a real matrix.
static void eig(job_t* j) {
  int64_t n = j->in[0].m;
  z_t *t = j->work, *z = t + n * n, *more = z + n * n, *w = j->out[0].data;
  z_t *left = j->out[1].data, *right = j->out[2].data;
  j->failed = !decompose(j, t, z, w, more);
  if (j->failed) return;
  if (says(j, 'N')) pestle_z_schur_split(t, n, z, w);
  pestle_z_vectors(t, z, n, right, left, more);
  if (!says(j, 'N')) return;
  make_real(w, n, left);
  make_real(w, n, right);
}

static void hessenberg(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_hessenberg(j->out[0].data, j->in[0].m, j->out[1].data);
}

static void tridiagonal(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  pestle_z_tridiagonal(j->out[0].data, j->in[0].m, says(j, 'L'), j->out[1].data,
                       j->out[2].data, j->out[3].data, j->work);
}

// P: singular systems are changed as little as it takes to solve them; S: in f32.
static void tridiagonal_solve(job_t* j) {
  double least = says(j, 'S') ? (double)FLT_EPSILON : DBL_EPSILON;
  copy(&j->in[3], &j->out[0]);
  pestle_z_tridiagonal_solve(j->in[0].data, j->in[1].data, j->in[2].data,
                             j->out[0].data, j->in[3].m, j->in[3].n,
                             says(j, 'P') ? least : 0, j->work);
}

static void geqp3(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  copy(&j->in[1], &j->out[1]);
  pestle_z_qr_pivoted(j->out[0].data, j->in[0].m, j->in[0].n, j->out[1].data,
                      j->out[2].data);
}

// R right, C the conjugate transpose.
static void ormqr(job_t* j) {
  copy(&j->in[2], &j->out[0]);
  pestle_z_times_q(j->in[0].data, j->in[0].n, j->in[1].data, j->in[1].m,
                   j->out[0].data, j->in[2].m, j->in[2].n, !says(j, 'R'),
                   says(j, 'C'));
}

static void cholesky_update(job_t* j) {
  copy(&j->in[0], &j->out[0]);
  copy(&j->in[1], &j->out[1]);
  pestle_z_cholesky_update(j->out[0].data, j->in[0].m, j->out[1].data);
}

static const row_t rows[] = {
    {"pestle.z.lu", "M", "MII", lu},
    {"pestle.z.cholesky", "M", "M", cholesky},
    {"pestle.z.triangular_solve", "MM", "M", triangular_solve},
    {"pestle.z.geqrf", "M", "MV", geqrf},
    {"pestle.z.orgqr", "MV", "M", orgqr},
    {"pestle.z.eigh", "M", "MR", eigh},
    {"pestle.z.svd", "M", "MRM", svd},
    {"pestle.z.eig", "M", "VMM", eig},
    {"pestle.z.schur", "M", "MMV", schur},
    {"pestle.z.hessenberg", "M", "MV", hessenberg},
    {"pestle.z.tridiagonal", "M", "MRRV", tridiagonal},
    {"pestle.z.tridiagonal_solve", "VVVM", "M", tridiagonal_solve},
    {"pestle.z.geqp3", "MI", "MIV", geqp3},
    {"pestle.z.ormqr", "MVM", "M", ormqr},
    {"pestle.z.cholesky_update", "MV", "MV", cholesky_update},
};

// --- Tensors ---

// Axes of one part, with that of the pair.
static int32_t part_rank(char kind) {
  return kind == 'M' ? 3 : kind == 'V' ? 2 : 1;
}

static bool is_right(const pestle_tensor_t* t, char kind) {
  bool i32 = t->dtype.code == 0 && t->dtype.bits == 32;
  bool real =
      t->dtype.code == 2 && (t->dtype.bits == 32 || t->dtype.bits == 64);
  int32_t rank = part_rank(kind);
  bool pair = rank == 1 || (t->ndim >= 1 && t->shape[t->ndim - 1] == 2);
  return t->dtype.lanes == 1 && (kind == 'I' ? i32 : real) && t->ndim >= rank &&
         pair;
}

static part_t part_of(const pestle_tensor_t* t, char kind) {
  int32_t first = t->ndim - part_rank(kind);
  part_t p = {.m = t->shape[first], .n = 1};
  if (kind == 'M') p.n = t->shape[first + 1];
  p.count = p.m * p.n;
  return p;
}

static int64_t batch_of(const pestle_tensor_t* t, char kind) {
  int64_t batch = 1;
  for (int32_t i = 0; i < t->ndim - part_rank(kind); ++i)
    batch *= t->shape[i];
  return batch;
}

static double number(const pestle_tensor_t* t, int64_t at) {
  const char* data = (const char*)t->data + t->byte_offset;
  if (t->dtype.code == 0) return ((const int32_t*)(const void*)data)[at];
  return t->dtype.bits == 64 ? ((const double*)(const void*)data)[at]
                             : (double)((const float*)(const void*)data)[at];
}

static void load(const pestle_tensor_t* t, char kind, int64_t batch,
                 part_t* p) {
  for (int64_t i = 0; i < p->count; ++i) {
    int64_t at = batch * p->count + i;
    p->data[i] = kind == 'R' || kind == 'I'
                     ? number(t, at)
                     : pestle_z_of(number(t, 2 * at), number(t, 2 * at + 1));
  }
}

static void put(const pestle_tensor_t* t, int64_t at, double x) {
  char* data = (char*)t->data + t->byte_offset;
  if (t->dtype.code == 0) {
    ((int32_t*)(void*)data)[at] = (int32_t)x;
  } else if (t->dtype.bits == 64) {
    ((double*)(void*)data)[at] = x;
  } else {
    ((float*)(void*)data)[at] = (float)x;
  }
}

static void store(const pestle_tensor_t* t, char kind, int64_t batch,
                  const part_t* p, bool failed) {
  for (int64_t i = 0; i < p->count; ++i) {
    int64_t at = batch * p->count + i;
    z_t x = failed && kind != 'I' ? pestle_z_of((double)NAN, (double)NAN)
                                  : p->data[i];
    if (kind == 'R' || kind == 'I') {
      put(t, at, creal(x));
    } else {
      put(t, 2 * at, creal(x));
      put(t, 2 * at + 1, cimag(x));
    }
  }
}

// --- Running ---

static pestle_status_t check(const row_t* row, const pestle_custom_call_t* c) {
  bool fits =
      c->input_count == strlen(row->in) && c->output_count == strlen(row->out);
  for (size_t i = 0; fits && i < c->input_count; ++i)
    fits = is_right(&c->inputs[i], row->in[i]);
  for (size_t i = 0; fits && i < c->output_count; ++i)
    fits = is_right(&c->outputs[i], row->out[i]);
  int64_t batch = fits ? batch_of(&c->inputs[0], row->in[0]) : 0;
  for (size_t i = 1; fits && i < c->input_count; ++i)
    fits = batch_of(&c->inputs[i], row->in[i]) == batch;
  for (size_t i = 0; fits && i < c->output_count; ++i)
    fits = batch_of(&c->outputs[i], row->out[i]) == batch;
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "'%s' is given other tensors than it takes and gives",
                      row->name);
}

// Extents that an algorithm walks over must be those that its buffers have.
static pestle_status_t check_sizes(const row_t* row, const job_t* j) {
  const part_t *a = &j->in[0], *y = j->out;
  int64_t k = a->m < a->n ? a->m : a->n;
  bool square = a->m == a->n, fits = true;
  void (*run)(job_t*) = row->run;
  if (run == lu) {
    fits = y[0].m == a->m && y[0].n == a->n && y[1].m == k && y[2].m == a->m;
  } else if (run == cholesky) {
    fits = square && y[0].m == a->m && y[0].n == a->n;
  } else if (run == triangular_solve) {
    int64_t along = strchr(j->config, 'R') ? j->in[1].n : j->in[1].m;
    fits =
        square && along == a->m && y[0].m == j->in[1].m && y[0].n == j->in[1].n;
  } else if (run == geqrf) {
    fits = y[0].m == a->m && y[0].n == a->n && y[1].m == k;
  } else if (run == orgqr) {
    fits =
        y[0].m == a->m && y[0].n == a->n && j->in[1].m <= a->n && a->n <= a->m;
  } else if (run == svd) {
    fits = y[0].m == a->m && y[0].n >= k && y[0].n <= a->m && y[1].m == k &&
           y[2].n == a->n && y[2].m >= k && y[2].m <= a->n;
  } else if (run == geqp3) {
    fits = j->in[1].m == a->n && y[0].m == a->m && y[0].n == a->n &&
           y[1].m == a->n && y[2].m == k;
  } else if (run == ormqr) {
    const part_t* c = &j->in[2];
    int64_t along = strchr(j->config, 'R') ? c->n : c->m;
    fits = j->in[1].m <= k && along == a->m && y[0].m == c->m && y[0].n == c->n;
  } else if (run == cholesky_update) {
    fits = square && j->in[1].m == a->m && y[0].m == a->m && y[0].n == a->n &&
           y[1].m == a->m;
  } else if (run == tridiagonal_solve) {
    const part_t* b = &j->in[3];
    fits = j->in[0].m == b->m && j->in[1].m == b->m && j->in[2].m == b->m &&
           y[0].m == b->m && y[0].n == b->n;
  } else {
    int64_t n = a->m;
    fits = square;
    for (size_t i = 0; fits && row->out[i]; ++i) {
      bool less =
          (run == hessenberg && i == 1) || (run == tridiagonal && i > 1);
      int64_t most = less && n ? n - 1 : n;
      fits = y[i].m == most && (row->out[i] != 'M' || y[i].n == n);
    }
  }
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "'%s' is given extents that do not go together",
                      row->name);
}

// Lays all parts and the scratch memory out in |memory|, or tells how much it takes.
static int64_t lay_out(const row_t* row, job_t* j, z_t* memory) {
  int64_t at = 0, most = 1, largest = 1;
  for (size_t i = 0; i < 2 * MOST; ++i) {
    bool in = i < MOST;
    const char* kinds = in ? row->in : row->out;
    if (i % MOST >= strlen(kinds)) continue;
    part_t* p = in ? &j->in[i] : &j->out[i % MOST];
    p->data = memory ? memory + at : NULL;
    at += p->count + 1;
    most = p->m > most ? p->m : most;
    most = p->n > most ? p->n : most;
    largest = p->count > largest ? p->count : largest;
  }
  // What own_linalg.h says of |work|: at most three matrices and two vectors.
  j->work = memory ? memory + at : NULL;
  return at + 4 * largest + 4 * most;
}

static pestle_status_t run(const row_t* row, const pestle_context_t* context,
                           const pestle_custom_call_t* c) {
  job_t j = {.config = c->config ? c->config : ""};
  PESTLE_TRY(check(row, c));
  for (size_t i = 0; i < c->input_count; ++i)
    j.in[i] = part_of(&c->inputs[i], row->in[i]);
  for (size_t i = 0; i < c->output_count; ++i)
    j.out[i] = part_of(&c->outputs[i], row->out[i]);
  PESTLE_TRY(check_sizes(row, &j));
  size_t size = (size_t)lay_out(row, &j, NULL) * sizeof(z_t);
  z_t* memory = pestle_alloc_zero(context->core.allocator, size);
  if (!memory) return PESTLE_OOM();
  lay_out(row, &j, memory);
  int64_t batch = batch_of(&c->inputs[0], row->in[0]);
  for (int64_t b = 0; b < batch; ++b) {
    for (size_t i = 0; i < c->input_count; ++i)
      load(&c->inputs[i], row->in[i], b, &j.in[i]);
    j.failed = false;
    row->run(&j);
    for (size_t i = 0; i < c->output_count; ++i)
      store(&c->outputs[i], row->out[i], b, &j.out[i], j.failed);
  }
  pestle_dealloc(context->core.allocator, memory, size);
  return NULL;
}

static pestle_status_t call(void* user, const pestle_custom_call_t* c) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    if (!strcmp(rows[i].name, c->name)) return run(&rows[i], user, c);
  }
  return PESTLE_ERROR(NOT_FOUND, "Pestle has no function '%s' of its own",
                      c->name);
}

bool pestle_own_call(const pestle_context_t* context, const char* name,
                     pestle_custom_call_info_t* out_info) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    if (strcmp(rows[i].name, name)) continue;
    out_info->function = call;
    out_info->user = (void*)(uintptr_t)context;
    out_info->version = "2";
    return true;
  }
  pestle_custom_call_fn_t words = pestle_own_words_find(name);
  if (!words) return false;
  out_info->function = words;
  out_info->user = (void*)(uintptr_t)context;
  out_info->version = "1";
  return true;
}
