// SPDX-License-Identifier: Apache-2.0
// The backend "metal": its state and functions, shared by its files.
#ifndef PESTLE_PLUGINS_METAL_METAL_H_
#define PESTLE_PLUGINS_METAL_METAL_H_

#include <stdbool.h>

#include "pestle/plugin.h"
#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/error.h"

// What device.m, or device_none.c where there is no Metal, gives.
typedef struct pestle_metal_device_t {
  int32_t count;
  int32_t score;
  char name[128];  // of the first device
  bool units;      // it has simdgroup_matrix, laid out as docs/adr/012 says
  const pestle_device_api_t* api;
} pestle_metal_device_t;

// One for each host that calls init.
typedef struct metal_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  pestle_metal_device_t device;
  char toolchain[512];
  void* native;  // device.m's own
} metal_t;

// What pestle_backend_score() says.
int32_t pestle_metal_score(char* why, size_t capacity);
// Fills |m->device|, without a device where there is none; what it starts,
// pestle_metal_stop() ends.
pestle_status_t pestle_metal_start(metal_t* m);
void pestle_metal_stop(metal_t* m);

#endif  // PESTLE_PLUGINS_METAL_METAL_H_
