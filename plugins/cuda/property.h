// SPDX-License-Identifier: Apache-2.0
// Properties of a device by index, for the host's `devices` and for capabilities.
#ifndef PESTLE_PLUGINS_CUDA_PROPERTY_H_
#define PESTLE_PLUGINS_CUDA_PROPERTY_H_

#include "plugins/cuda/backend.h"

// Slot property() of the device half.
pestle_status_t pestle_cuda_property(void* self, int32_t device, uint32_t index,
                                     pestle_device_property_t* out_property);

// Bytes a second between the device and its memory: two transfers a clock.
static inline uint64_t pestle_cuda_bandwidth(const cuda_device_t* d) {
  return (uint64_t)d->memory_khz * 1000 * 2 * (uint64_t)d->bus_bits / 8;
}

#endif  // PESTLE_PLUGINS_CUDA_PROPERTY_H_
