// SPDX-License-Identifier: Apache-2.0
// Where there is no Metal: a device that kernels can be compiled for, and that
// says so when one is to run.
#include <stdio.h>
#include <string.h>

#include "plugins/metal/metal.h"

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const metal_t* m = self;
  (void)device, (void)artifact, (void)size;
  *out_loaded = NULL;
  return PESTLE_PLUGIN_ERROR(
      m->host, UNSUPPORTED,
      "metal compiles here but does not run: this Pestle was built without "
      "Metal, which macOS has; choose another device");
}

static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self, (void)loaded;  // there is none
}

static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  const metal_t* m = self;
  pestle_device_property_t p = {
      .struct_size = sizeof p, .name = "runs", .integer = 0};
  (void)device;
  if (index > 0) {
    return PESTLE_PLUGIN_ERROR(m->host, NOT_FOUND, "metal has one property");
  }
  size_t size = out_property->struct_size;
  if (size == 0 || size > sizeof p) size = sizeof p;
  memcpy(out_property, &p, size);
  out_property->struct_size = size;
  return NULL;
}

static const pestle_device_api_t k_api = {
    .struct_size = sizeof k_api,
    .load = load,
    .unload = unload,
    .property = property,
};

pestle_status_t pestle_metal_start(metal_t* m) {
  m->device = (pestle_metal_device_t){.count = 1, .score = 1, .api = &k_api};
  snprintf(m->device.name, sizeof m->device.name, "none");
  return NULL;
}

void pestle_metal_stop(metal_t* m) {
  (void)m;
}
