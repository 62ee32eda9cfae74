// SPDX-License-Identifier: Apache-2.0
// A library of ops for devices of type cpu, without devices of its own.
#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/lapack/lapack_api.h"

// --- Which ops ---

static lapack_op_t op_named(const char* name) {
  static const char* const names[LAPACK_OPS] = {
      "lu",           "cholesky", "triangular_solve",
      "solve",        "inverse",  "qr",
      "eigh",         "svd",      "z.lu",
      "z.cholesky",   "z.geqrf",  "z.orgqr",
      "z.geqp3",      "z.eigh",   "z.svd",
      "z.eig",        "z.schur",  "z.hessenberg",
      "z.tridiagonal"};
  for (int i = 0; i < LAPACK_OPS; ++i) {
    if (!strcmp(name, names[i])) return (lapack_op_t)i;
  }
  return LAPACK_OPS;
}

// LAPACK counts with 32 bits, and asks for work of some times the matrix.
static bool fits(const pestle_library_view_t* view) {
  int64_t count = 1;
  for (int32_t i = view->rank - 2; i < view->rank; ++i) {
    if (i < 0) continue;
    if (view->dims[i] < 1 || view->dims[i] > INT32_MAX / 16) return false;
    count *= view->dims[i];
  }
  return count <= INT32_MAX / 16;
}

// Many small matrices are faster in vectors across them: 10,000 of 3 x 3 took
// eigh 29 ms here and 12 to 16 ms by kernels, 1,000 of 8 x 8 about the same.
static bool is_left_to_kernels(const pestle_library_view_t* a) {
  int64_t batch = 1;
  for (int32_t i = 0; i < a->rank - 2; ++i)
    batch *= a->dims[i];
  return batch >= 64 && a->dims[a->rank - 2] <= 8 && a->dims[a->rank - 1] <= 8;
}

// --- Complex matrices ---

// Extents by letters: those of operand 0, m and n, the smaller of them, k, and n - 1, l.
typedef struct extents_t {
  int32_t batch;
  const int64_t* dims;  // the batch's
  int64_t m, n;
} extents_t;

static bool is_extent(const extents_t* x, char letter, int64_t size) {
  int64_t k = x->m < x->n ? x->m : x->n;
  switch (letter) {
    case 'm':
      return size == x->m;
    case 'n':
      return size == x->n;
    case 'k':
      return size == k;
    case 'l':
      return size == x->n - 1;
    case 'r':  // of a basis, thin or whole
      return size == k || size == x->m;
    case 'c':
      return size == k || size == x->n;
    case 't':  // factors of reflections
      return size >= 1 && size <= x->n && x->n <= x->m;
    default:
      return false;
  }
}

// Whether |view| is as |spec| says, "Mmn" matrices, "Vn" vectors, both of pairs, "Rn"
// real ones, "In" integers; the number of letters, or 0.
static size_t is_as(const extents_t* x, const pestle_library_view_t* view,
                    int32_t dtype, const char* spec) {
  bool pairs = *spec == 'M' || *spec == 'V';
  int32_t own = *spec == 'M' ? 2 : 1, size = dtype == PESTLE_F64 ? 8 : 4;
  if (view->rank != x->batch + own + pairs ||
      view->dtype != (*spec == 'I' ? PESTLE_I32 : dtype)) {
    return 0;
  }
  if (pairs && (view->dims[view->rank - 1] != 2 ||
                view->strides[view->rank - 1] != size)) {
    return 0;
  }
  int64_t count = 1;
  for (int32_t i = 0; i < x->batch; ++i) {
    if (view->dims[i] != x->dims[i]) return 0;
  }
  for (int32_t i = 0; i < own; ++i) {
    int64_t extent = view->dims[x->batch + i];
    if (!is_extent(x, spec[1 + i], extent) || extent < 1 ||
        extent > INT32_MAX / 16) {
      return 0;
    }
    count *= extent;
  }
  return count <= INT32_MAX / 32 ? 1 + (size_t)own : 0;
}

// Operands, then results.
static bool takes_complex(lapack_op_t which, const pestle_library_op_t* op) {
  static const char* const specs[] = {
      "Mmn MmnIkIm",   "Mnn Mnn",   "Mmn MmnVk",    "MmnVt Mmn",
      "MmnIn MmnInVk", "Mnn MnnRn", "Mmn MmrRkMcn", "Mnn VnMnnMnn",
      "Mnn MnnMnnVn",  "Mnn MnnVl", "Mnn MnnRnRlVl"};
  const char* spec = specs[which - LAPACK_Z_LU];
  const pestle_library_view_t* a = op->operands;
  if (!op->operand_count || a->rank < 3) return false;
  extents_t x = {a->rank - 3, a->dims, a->dims[a->rank - 3],
                 a->dims[a->rank - 2]};
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    size_t letters = is_as(&x, &op->operands[i], a->dtype, spec);
    if (!letters) return false;
    spec += letters;
  }
  if (*spec++ != ' ') return false;
  for (uint32_t i = 0; i < op->result_count; ++i) {
    size_t letters = is_as(&x, &op->results[i], a->dtype, spec);
    if (!letters) return false;
    spec += letters;
  }
  if (*spec) return false;
  if (which != LAPACK_Z_SVD) return true;
  // Both bases are whole or none is.
  int64_t k = x.m < x.n ? x.m : x.n;
  int64_t u = op->results[0].dims[x.batch + 1],
          v = op->results[2].dims[x.batch];
  return (u == k && v == k) || (u == x.m && v == x.n);
}

static bool takes(void* self, const pestle_library_op_t* op) {
  (void)self;
  lapack_op_t which = op_named(op->name);
  if (which >= LAPACK_Z_LU && which < LAPACK_OPS) {
    return (op->operands->dtype == PESTLE_F32 ||
            op->operands->dtype == PESTLE_F64) &&
           takes_complex(which, op);
  }
  const pestle_library_view_t* a = op->operands;
  bool real = op->operand_count &&
              (a->dtype == PESTLE_F32 || a->dtype == PESTLE_F64) &&
              a->rank >= 2;
  if (!real || op_named(op->name) == LAPACK_OPS ||
      op->operand_count + op->result_count > LAPACK_TENSORS) {
    return false;
  }
  if (is_left_to_kernels(a)) return false;
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    if (op->operands[i].dtype != a->dtype || !fits(&op->operands[i])) {
      return false;
    }
  }
  for (uint32_t i = 0; i < op->result_count; ++i) {
    if (!fits(&op->results[i])) return false;
  }
  return true;
}

// --- Running ---

// The part of |view| that one matrix of the batch is; of a result with one axis
// less a vector. |index| counts the batch's axes.
static lapack_matrix_t matrix_of(const pestle_library_view_t* view,
                                 int32_t batch, bool pairs,
                                 const int64_t* index) {
  lapack_matrix_t m = {.data = view->data, .columns = 1};
  int32_t rank = view->rank - (pairs && view->rank > batch + 1);
  for (int32_t i = 0; i < batch; ++i)
    m.data += index[i] * view->strides[i];
  m.rows = (int32_t)view->dims[batch];
  m.down = view->strides[batch];
  if (rank > batch + 1) {
    m.columns = (int32_t)view->dims[batch + 1];
    m.across = view->strides[batch + 1];
  }
  return m;
}

// How many axes the batch has; of complex matrices one more is that of the pairs.
static int32_t batch_of(const pestle_library_op_t* op) {
  return op->operands[0].rank - (op_named(op->name) >= LAPACK_Z_LU ? 3 : 2);
}

static void set_matrices(const pestle_library_op_t* op, const int64_t* index,
                         lapack_job_t* job) {
  int32_t batch = batch_of(op);
  bool pairs = batch == op->operands[0].rank - 3;
  for (uint32_t i = 0; i < op->operand_count; ++i)
    job->m[i] = matrix_of(&op->operands[i], batch, pairs, index);
  for (uint32_t i = 0; i < op->result_count; ++i) {
    job->m[op->operand_count + i] =
        matrix_of(&op->results[i], batch, pairs, index);
  }
}

// The next matrix in row-major order; false after the last.
static bool next(const pestle_library_op_t* op, int64_t* index) {
  for (int32_t i = batch_of(op); i-- > 0;) {
    if (++index[i] < op->operands[0].dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

static pestle_status_t run(void* self, int32_t device,
                           pestle_device_stream_t* stream,
                           const pestle_library_op_t* op) {
  lapack_t* lapack = self;
  const pestle_host_t* host = lapack->host;
  (void)device, (void)stream;
  if (!takes(self, op)) {
    return PESTLE_PLUGIN_ERROR(host, UNSUPPORTED, "'%s' on such tensors",
                               op->name);
  }
  PESTLE_TRY(pestle_lapack_open(lapack));
  lapack_op_t which = op_named(op->name);
  bool wide = op->operands[0].dtype == PESTLE_F64;
  int64_t index[PESTLE_MAX_RANK] = {0};
  lapack_job_t job = {.api = &lapack->api, .flags = op->flags};
  set_matrices(op, index, &job);
  job.work_bytes = wide ? pestle_lapack_room_f64(which, &job)
                        : pestle_lapack_room_f32(which, &job);
  job.work = host->alloc(host->self, job.work_bytes);
  if (!job.work) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "'%s' needs %zu bytes to work in", op->name,
                               job.work_bytes);
  }
  do {
    set_matrices(op, index, &job);
    if (wide) {
      pestle_lapack_run_f64(which, &job);
    } else {
      pestle_lapack_run_f32(which, &job);
    }
  } while (next(op, index));
  host->free(host->self, job.work, job.work_bytes);
  return NULL;
}

static const pestle_library_api_t k_library = {
    .struct_size = sizeof k_library, .takes = takes, .run = run};

// --- Entry points ---

static int32_t score(char* why, size_t capacity) {
  char path[1024];
  if (pestle_lapack_find(path, sizeof path)) return 50;
  snprintf(why, capacity,
           "liblapack.so.3 was not found (Debian: libopenblas0 or liblapack3)");
  return 0;
}

static void deinit(void* self) {
  lapack_t* lapack = self;
  pthread_mutex_destroy(&lapack->mutex);
  lapack->host->free(lapack->host->self, lapack, sizeof *lapack);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  *out_status = NULL;
  lapack_t* lapack = host->alloc(host->self, sizeof *lapack);
  if (!lapack) {
    *out_status =
        PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY, "no memory to start lapack");
    return NULL;
  }
  memset(lapack, 0, sizeof *lapack);
  lapack->host = host;
  pthread_mutex_init(&lapack->mutex, NULL);
  lapack->backend = (pestle_backend_t){.struct_size = sizeof lapack->backend,
                                       .name = "lapack",
                                       .device_type = PESTLE_DEVICE_CPU,
                                       .score = 50,
                                       .self = lapack,
                                       .deinit = deinit,
                                       .library = &k_library};
  return &lapack->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_CPU
PESTLE_BACKEND_IMPL("lapack", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
