// SPDX-License-Identifier: Apache-2.0
// LAPACK as it is opened at run time, and what the ops are given.
#ifndef PESTLE_PLUGINS_LAPACK_LAPACK_API_H_
#define PESTLE_PLUGINS_LAPACK_LAPACK_API_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins/common/error.h"

// clang-format off
typedef struct lapack_api_t {
#define T float
#define LAPACK(name, arguments) void (*s##name) arguments;
#include "plugins/lapack/lapack_api.def"
#undef T
#define T double
#define LAPACK(name, arguments) void (*d##name) arguments;
#include "plugins/lapack/lapack_api.def"
#undef T
#define T float
#define Z(name, arguments) void (*c##name) arguments;
#define D(name, arguments) void (*s##name) arguments;
#include "plugins/lapack/lapack_api_z.def"
#undef T
#define T double
#define Z(name, arguments) void (*z##name) arguments;
#define D(name, arguments) void (*d##name) arguments;
#include "plugins/lapack/lapack_api_z.def"
#undef T
} lapack_api_t;
// clang-format on

typedef struct lapack_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  pthread_mutex_t mutex;
  bool opened;
  lapack_api_t api;
} lapack_t;

// Where liblapack.so.3 lies, without opening it.
bool pestle_lapack_find(char* path, size_t capacity);
// Opens it, once.
PESTLE_NODISCARD pestle_status_t pestle_lapack_open(lapack_t* lapack);

// A matrix of one batch, or a vector (columns 1): strides in bytes.
typedef struct lapack_matrix_t {
  char* data;
  int32_t rows, columns;
  int64_t down, across;
} lapack_matrix_t;

enum { LAPACK_TENSORS = 5 };

// What LAPACK's functions of complex matrices want to work in, beside copies.
typedef struct lapack_asked_t {
  int32_t pairs, reals, integers;
} lapack_asked_t;

// One op on one matrix each of its tensors: operands, then results.
typedef struct lapack_job_t {
  const lapack_api_t* api;
  uint32_t flags;
  lapack_matrix_t m[LAPACK_TENSORS];
  void* work;  // room as the op asked for
  size_t work_bytes;
  lapack_asked_t asked;  // once for all matrices of a batch
} lapack_job_t;

typedef enum lapack_op_e {
  LAPACK_LU,
  LAPACK_CHOLESKY,
  LAPACK_TRIANGULAR_SOLVE,
  LAPACK_SOLVE,
  LAPACK_INVERSE,
  LAPACK_QR,
  LAPACK_EIGH,
  LAPACK_SVD,
  // Of complex matrices (lapack_complex.h), in the order of its functions.
  LAPACK_Z_LU,
  LAPACK_Z_CHOLESKY,
  LAPACK_Z_GEQRF,
  LAPACK_Z_ORGQR,
  LAPACK_Z_GEQP3,
  LAPACK_Z_EIGH,
  LAPACK_Z_SVD,
  LAPACK_Z_EIG,
  LAPACK_Z_SCHUR,
  LAPACK_Z_HESSENBERG,
  LAPACK_Z_TRIDIAGONAL,
  LAPACK_OPS,
} lapack_op_t;

// Bytes of work for |job|, whose |asked| is set, and the op, for each of f32 and f64.
size_t pestle_lapack_room_f32(lapack_op_t op, lapack_job_t* job);
size_t pestle_lapack_room_f64(lapack_op_t op, lapack_job_t* job);
void pestle_lapack_run_f32(lapack_op_t op, const lapack_job_t* job);
void pestle_lapack_run_f64(lapack_op_t op, const lapack_job_t* job);

#endif  // PESTLE_PLUGINS_LAPACK_LAPACK_API_H_
