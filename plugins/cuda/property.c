// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/property.h"

#include <stdio.h>
#include <string.h>

#include "plugins/common/slots.h"

pestle_status_t pestle_cuda_property(void* self, int32_t device, uint32_t index,
                                     pestle_device_property_t* out_property) {
  cuda_device_t* d;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  char capability[16];
  int version = 0;
  snprintf(capability, sizeof capability, "%d.%d", d->capability / 10,
           d->capability % 10);
  (void)d->owner->driver.cuDriverGetVersion(&version);
  const pestle_plugin_property_t rows[] = {
      {"name", d->name, 0},
      {"compute_capability", capability, 0},
      {"target_cpu", d->arch, 0},
      {"uuid", d->uuid, 0},
      {"pci_bus_id", d->pci, 0},
      {"driver_cuda_version", NULL, version},
      {"multiprocessors", NULL, d->units},
      {"max_group_lanes", NULL, d->group_lanes},
      {"shared_bytes", NULL, d->shared_most},
      {"register_bytes", NULL, d->registers},
      {"l2_bytes", NULL, (int64_t)d->l2},
      {"memory_bytes", NULL, (int64_t)d->total},
      {"memory_bytes_second", NULL, (int64_t)pestle_cuda_bandwidth(d)},
      {"clock_khz", NULL, d->clock_khz},
  };
  return pestle_plugin_give_property(d->owner->host, "cuda", rows,
                                     sizeof rows / sizeof *rows, index,
                                     out_property);
}
