// SPDX-License-Identifier: Apache-2.0
// The artifact: how to launch a kernel, and its cubin or PTX. Whoever hands one
// to load() may have damaged it: open() checks all that it reads.
#ifndef PESTLE_PLUGINS_CUDA_ARTIFACT_H_
#define PESTLE_PLUGINS_CUDA_ARTIFACT_H_

#include "pestle/plugin.h"

// A tensor map that a launch makes: how |slot|'s buffer is seen by boxes.
typedef struct cuda_map_t {
  uint32_t slot, rank, swizzle, dtype;
  uint64_t offset;     // elements
  uint64_t stride[5];  // elements; the first is 1
  uint32_t extent[5], box[5];
  // Of a map of windows (pestle_kir_scope_t), by spatial dim, fastest first.
  uint32_t windows, step[3];
  int32_t low[3], high[3];
} cuda_map_t;

enum { CUDA_MAPS = 4 };

typedef struct cuda_artifact_t {
  char name[128];  // of the kernel in its text
  char arch[16];   // that it was made for: "sm_90a"
  bool is_ptx;
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count;
  uint32_t dynamic_shared;  // bytes
  // Its text waits for the kernel before it, so that it may be launched before that ends.
  bool waits;
  bool at_once;  // all of its groups, by a cooperative launch
  uint32_t map_count;
  cuda_map_t map[CUDA_MAPS];
  const void* code;  // borrowed; PTX ends with a 0
  size_t code_size;
} cuda_artifact_t;

PESTLE_NODISCARD pestle_status_t pestle_cuda_artifact_pack(
    const pestle_host_t* host, const cuda_artifact_t* artifact,
    pestle_blob_t* out_blob);
// INCOMPATIBLE or MALFORMED when |data| is none.
PESTLE_NODISCARD pestle_status_t
pestle_cuda_artifact_open(const pestle_host_t* host, const void* data,
                          size_t size, cuda_artifact_t* out_artifact);

#endif  // PESTLE_PLUGINS_CUDA_ARTIFACT_H_
