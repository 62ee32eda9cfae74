// SPDX-License-Identifier: Apache-2.0
// Steps that functions of several backends' tables begin or end with.
#ifndef PESTLE_PLUGINS_COMMON_SLOTS_H_
#define PESTLE_PLUGINS_COMMON_SLOTS_H_

#include "pestle/plugin.h"

// Zeroed memory of the host for a backend's state. NULL with |*out_status|:
// there is none; |name| is the backend's.
void* pestle_plugin_state(const pestle_host_t* host, size_t size,
                          const char* name, pestle_status_t* out_status);

// What |options| (may be NULL) say that a kernel is compiled for, or NULL.
const char* pestle_plugin_cpu_option(const pestle_kernel_options_t* options);

// Whether |options| (may be NULL) ask for code soon rather than fast.
bool pestle_plugin_is_quick(const pestle_kernel_options_t* options);

// Fills |out_record|, which begins with its struct_size and may be of another
// minor version, from the |size| bytes of |record|.
void pestle_plugin_give(const void* record, size_t size, void* out_record);

// A property: |text|, or |integer| where that is NULL.
typedef struct pestle_plugin_property_t {
  const char *name, *text;
  int64_t integer;
} pestle_plugin_property_t;

// The slot property() by its |count| rows. |name| is the backend's.
PESTLE_NODISCARD pestle_status_t pestle_plugin_give_property(
    const pestle_host_t* host, const char* name,
    const pestle_plugin_property_t* rows, size_t count, uint32_t index,
    pestle_device_property_t* out_property);

#endif  // PESTLE_PLUGINS_COMMON_SLOTS_H_
