// SPDX-License-Identifier: Apache-2.0
// A compiled kernel on a device, and what a launch of it needs.
#ifndef PESTLE_PLUGINS_CUDA_LOAD_H_
#define PESTLE_PLUGINS_CUDA_LOAD_H_

#include <stdio.h>
#include "plugins/cuda/artifact.h"

#include "plugins/cuda/backend.h"

// A kernel on a device.
struct pestle_loaded_s {
  const cuda_device_t* device;
  CUmodule module;
  CUfunction function;
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count;
  uint32_t dynamic_shared;
  bool waits;    // for the kernel before it
  bool at_once;  // all groups run at the same time
  // What it is given where it does, so that a unit has no more than its share of groups.
  uint32_t early_shared;
  uint32_t map_count;
  cuda_map_t map[CUDA_MAPS];
  char name[128];
};

#endif  // PESTLE_PLUGINS_CUDA_LOAD_H_
