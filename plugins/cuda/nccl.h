// SPDX-License-Identifier: Apache-2.0
// NCCL, opened at the first need: building needs nothing of it, and what does not use
// several GPUs never looks for it. NVLink multicast is off in it unless the user says
// otherwise (NCCL_NVLS_ENABLE, PESTLE_NVLS=1).
#ifndef PESTLE_PLUGINS_CUDA_NCCL_H_
#define PESTLE_PLUGINS_CUDA_NCCL_H_

#include <limits.h>
#include <stddef.h>

// As nccl.h has them, enums as the integers that they are.
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef struct ncclComm* ncclComm_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;
// As it was in NCCL 2.18: later ones take a shorter one by its size and version.
typedef struct ncclConfig_t {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare;
} ncclConfig_t;

enum {
  NCCL_SUCCESS = 0,
  NCCL_INVALID_ARGUMENT = 4,
  NCCL_INVALID_USAGE = 5,
  NCCL_IN_PROGRESS = 7,
  NCCL_INT8 = 0,
  NCCL_UINT8 = 1,
  NCCL_INT32 = 2,
  NCCL_UINT32 = 3,
  NCCL_INT64 = 4,
  NCCL_UINT64 = 5,
  NCCL_FLOAT16 = 6,
  NCCL_FLOAT32 = 7,
  NCCL_FLOAT64 = 8,
  NCCL_BFLOAT16 = 9,
  NCCL_SUM = 0,
  NCCL_PROD = 1,
  NCCL_MAX = 2,
  NCCL_MIN = 3,
  NCCL_LEAST_VERSION = 21900,
  NCCL_CONFIG_VERSION = 21800,
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_UNDEFINED INT_MIN

typedef struct nccl_t {
#define PESTLE_NCCL(result, name, parameters) result(*name) parameters;
#include "plugins/cuda/nccl.def"
  int version;
} nccl_t;

#endif  // PESTLE_PLUGINS_CUDA_NCCL_H_
