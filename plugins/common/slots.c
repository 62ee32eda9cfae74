// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/slots.h"

#include <stdio.h>
#include <string.h>

#include "plugins/common/error.h"

void* pestle_plugin_state(const pestle_host_t* host, size_t size,
                          const char* name, pestle_status_t* out_status) {
  void* state = host->alloc(host->self, size);
  *out_status = NULL;
  if (state) return memset(state, 0, size);
  *out_status =
      PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY, "no memory to start %s", name);
  return NULL;
}

const char* pestle_plugin_cpu_option(const pestle_kernel_options_t* options) {
  return options && PESTLE_HAS(options, cpu) ? options->cpu : NULL;
}

bool pestle_plugin_is_quick(const pestle_kernel_options_t* options) {
  return options && PESTLE_HAS(options, effort) &&
         options->effort == PESTLE_EFFORT_QUICK;
}

void pestle_plugin_give(const void* record, size_t size, void* out_record) {
  size_t wanted;
  memcpy(&wanted, out_record, sizeof wanted);
  if (wanted == 0 || wanted > size) wanted = size;
  memcpy(out_record, record, wanted);
  memcpy(out_record, &wanted, sizeof wanted);
}

pestle_status_t pestle_plugin_give_property(
    const pestle_host_t* host, const char* name,
    const pestle_plugin_property_t* rows, size_t count, uint32_t index,
    pestle_device_property_t* out_property) {
  if (index >= count) {
    return PESTLE_PLUGIN_ERROR(
        host, NOT_FOUND, "a device of %s has %zu properties", name, count);
  }
  pestle_device_property_t p = {.struct_size = sizeof p,
                                .is_text = rows[index].text != NULL,
                                .integer = rows[index].integer};
  snprintf(p.name, sizeof p.name, "%s", rows[index].name);
  if (p.is_text) snprintf(p.text, sizeof p.text, "%s", rows[index].text);
  pestle_plugin_give(&p, sizeof p, out_property);
  return NULL;
}
