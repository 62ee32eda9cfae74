// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: building needs nothing of CUDA, and a
// plugin on a machine without a driver still loads and says why it cannot run.
#ifndef PESTLE_PLUGINS_CUDA_DRIVER_H_
#define PESTLE_PLUGINS_CUDA_DRIVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As cuda.h has them, enums as the integers that they are.
typedef int CUresult;
typedef int CUdevice;
typedef unsigned CUdevice_attribute;
typedef unsigned CUfunction_attribute;
typedef unsigned CUpointer_attribute;
typedef unsigned CUstreamCaptureMode;
typedef unsigned CUstreamCaptureStatus;
typedef unsigned CUjit_option;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef unsigned CUtensorMapDataType;
typedef unsigned CUtensorMapInterleave;
typedef unsigned CUtensorMapSwizzle;
typedef unsigned CUtensorMapL2promotion;
typedef unsigned CUtensorMapFloatOOBfill;
typedef struct CUtensorMap_st {
  _Alignas(64) cuuint64_t opaque[16];
} CUtensorMap;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
typedef void (*CUhostFn)(void*);
typedef struct CUlaunchAttribute_st {
  unsigned id;
  union {
    cuuint64_t words[8];
    int programmaticStreamSerializationAllowed;
    int cooperative;
  } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
} CUlaunchConfig;
_Static_assert(sizeof(CUlaunchAttribute) == 72 &&
                   offsetof(CUlaunchAttribute, value) == 8 &&
                   sizeof(CUlaunchConfig) == 56 &&
                   offsetof(CUlaunchConfig, hStream) == 32 &&
                   offsetof(CUlaunchConfig, numAttrs) == 48,
               "cuda.h's layout");
typedef struct CUuuid {
  char bytes[16];
} CUuuid;

enum {
#define PESTLE_CUDA_CONST(name, value) name = value,
#include "plugins/cuda/driver_const.def"
};

typedef struct cuda_driver_t {
#define PESTLE_CUDA(name, parameters) CUresult(*name) parameters;
#include "plugins/cuda/driver.def"
} cuda_driver_t;

// Opens libcuda.so.1 and starts it. False: |why| tells. Cheap after the first
// time. Never the stubs of a toolkit, which answer every call with an error.
bool pestle_cuda_driver_open(cuda_driver_t* out_driver, char* why,
                             size_t capacity);

// "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)": the driver's own
// words.
void pestle_cuda_words(const cuda_driver_t* driver, CUresult result, char* text,
                       size_t capacity);

#endif  // PESTLE_PLUGINS_CUDA_DRIVER_H_
