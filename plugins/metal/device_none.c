// SPDX-License-Identifier: Apache-2.0
// The device half on systems without Metal: kernels are compiled, and there is
// no device.
#include <stdio.h>

#include "plugins/metal/metal.h"

int32_t pestle_metal_score(char* why, size_t capacity) {
  if (capacity) {
    snprintf(why, capacity,
             "this Pestle was built without Metal, which macOS has");
  }
  return 0;
}

pestle_status_t pestle_metal_start(metal_t* m) {
  m->device = (pestle_metal_device_t){.name = "none", .units = true};
  return NULL;
}

void pestle_metal_stop(metal_t* m) {
  (void)m;
}
