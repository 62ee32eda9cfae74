// SPDX-License-Identifier: Apache-2.0
// A library of ops for devices of type cpu, without devices of its own.
#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/lapack/lapack_api.h"

// --- Which ops ---

static lapack_op_t op_named(const char* name) {
  static const char* const names[LAPACK_OPS] = {
      "lu",   "cholesky", "triangular_solve", "solve", "inverse", "qr",
      "eigh", "svd"};
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

static bool takes(void* self, const pestle_library_op_t* op) {
  (void)self;
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
                                 int32_t batch, const int64_t* index) {
  lapack_matrix_t m = {.data = view->data, .columns = 1};
  for (int32_t i = 0; i < batch; ++i)
    m.data += index[i] * view->strides[i];
  m.rows = (int32_t)view->dims[batch];
  m.down = view->strides[batch];
  if (view->rank > batch + 1) {
    m.columns = (int32_t)view->dims[batch + 1];
    m.across = view->strides[batch + 1];
  }
  return m;
}

static void set_matrices(const pestle_library_op_t* op, const int64_t* index,
                         lapack_job_t* job) {
  int32_t batch = op->operands[0].rank - 2;
  for (uint32_t i = 0; i < op->operand_count; ++i)
    job->m[i] = matrix_of(&op->operands[i], batch, index);
  for (uint32_t i = 0; i < op->result_count; ++i) {
    job->m[op->operand_count + i] = matrix_of(&op->results[i], batch, index);
  }
}

// The next matrix in row-major order; false after the last.
static bool next(const pestle_library_op_t* op, int64_t* index) {
  for (int32_t i = op->operands[0].rank - 2; i-- > 0;) {
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
