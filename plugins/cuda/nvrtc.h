// SPDX-License-Identifier: Apache-2.0
// NVRTC, opened at the first compile: CUDA C to a cubin or to PTX.
#ifndef PESTLE_PLUGINS_CUDA_NVRTC_H_
#define PESTLE_PLUGINS_CUDA_NVRTC_H_

#include "pestle/plugin.h"

// Where libnvrtc lies and which build it is, without opening it: part of the
// key of every plan. "none" where there is none.
void pestle_cuda_nvrtc_id(char* text, size_t capacity);

typedef struct cuda_compile_t {
  const char* name;  // of the kernel; for failures
  const char* text;  // CUDA C, ends with a 0
  const char* arch;  // "sm_90a"
  bool want_ptx;     // also where the toolchain knows |arch|
  const char*
      flags;  // more options, with blanks between; NULL: it is no person's
} cuda_compile_t;

// |out_code|: of host->alloc(). |out_is_ptx|: the toolchain does not know |arch|
// (then |out_arch|, at least 16 bytes, is the latest that it does know), or PTX
// was asked for. PTX ends with a 0.
PESTLE_NODISCARD pestle_status_t pestle_cuda_nvrtc_compile(
    const pestle_host_t* host, const cuda_compile_t* job,
    pestle_blob_t* out_code, bool* out_is_ptx, char* out_arch);

// The options that every compile has, as one text.
const char* pestle_cuda_nvrtc_options(void);

#endif  // PESTLE_PLUGINS_CUDA_NVRTC_H_
