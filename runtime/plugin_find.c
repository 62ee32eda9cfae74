// SPDX-License-Identifier: Apache-2.0
// Looking for what the registry has: candidates, backends, devices.
#include <string.h>

#include "base/require.h"
#include "base/str.h"
#include "pestle/runtime.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/registry.h"

// --- Candidates ---

size_t pestle_context_backend_count(pestle_context_t* context) {
  if (!context) return 0;
  pestle_context_enter(context);
  // Out of memory: what is there is counted.
  pestle_status_release(pestle_context_load_backends(context));
  pestle_mutex_lock(&context->registry.mutex);
  size_t count = context->registry.plugins.size;
  pestle_mutex_unlock(&context->registry.mutex);
  return count;
}

pestle_status_t pestle_context_backend_info(pestle_context_t* context,
                                            size_t index,
                                            pestle_backend_info_t* out_info) {
  PESTLE_REQUIRE(context && out_info,
                 "a context and a place for the description");
  size_t size = out_info->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_backend_info_t.struct_size is not set");
  }
  PESTLE_TRY(pestle_context_load_backends(context));
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  size_t count = registry->plugins.size;
  pestle_backend_info_t info = {.struct_size = size};
  if (index < count) {
    const pestle_plugin_t* plugin = registry->plugins.data[index];
    info.name = plugin->name;
    info.path = plugin->path;
    info.build_id = plugin->build_id;
    info.device_type = plugin->device_type;
    info.score = plugin->score;
    info.device_count = plugin->device_count;
    info.reason = plugin->reason;
    info.verdict = (int32_t)plugin->verdict;
    info.backend = plugin->backend;
    info.is_target =
        plugin->is_target && plugin->verdict == PESTLE_VERDICT_SCORE;
  }
  pestle_mutex_unlock(&registry->mutex);
  if (index >= count) {
    return PESTLE_ERROR(NOT_FOUND, "there is no backend %zu of %zu", index,
                        count);
  }
  memcpy(out_info, &info, size < sizeof(info) ? size : sizeof(info));
  return NULL;
}

const pestle_backend_t* pestle_context_backend(pestle_context_t* context,
                                               const char* name) {
  if (!context || !name) return NULL;
  // Out of memory: what is there is looked through.
  pestle_status_release(pestle_context_load_backends(context));
  pestle_context_enter(context);
  return pestle_registry_backend(&context->registry, name);
}

const pestle_backend_t* pestle_registry_backend(pestle_registry_t* registry,
                                                const char* name) {
  const pestle_backend_t* found = NULL;
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->plugins.size && !found; ++i) {
    const pestle_plugin_t* plugin = registry->plugins.data[i];
    if (!strcmp(plugin->name, name)) found = plugin->backend;
  }
  pestle_mutex_unlock(&registry->mutex);
  return found;
}

// --- Libraries ---

// A library that ops on |device| may be given to.
static bool serves(const pestle_plugin_t* plugin,
                   const pestle_device_t* device) {
  const pestle_backend_t* backend = plugin->backend;
  if (!backend || !PESTLE_HAS(backend, library)) return false;
  return backend == device->backend ||
         (pestle_device_is_cpu(device) &&
          backend->device_type == PESTLE_DEVICE_CPU);
}

// Whether row |i| is asked before row |j|.
static bool asked_before(const pestle_registry_t* registry, size_t i,
                         size_t j) {
  int32_t a = registry->plugins.data[i]->backend->score;
  int32_t b = registry->plugins.data[j]->backend->score;
  return a != b ? a > b : i < j;
}

const pestle_backend_t* pestle_device_library(const pestle_device_t* device,
                                              size_t index,
                                              const char** out_id) {
  if (out_id) *out_id = "";
  if (!device) return NULL;
  pestle_context_enter(device->context);
  pestle_registry_t* registry = &device->context->registry;
  const pestle_plugin_t* found = NULL;
  pestle_mutex_lock(&registry->mutex);
  size_t count = registry->plugins.size;
  for (size_t i = 0; i < count && !found; ++i) {
    if (!serves(registry->plugins.data[i], device)) continue;
    size_t before = 0;
    for (size_t j = 0; j < count; ++j) {
      before += j != i && serves(registry->plugins.data[j], device) &&
                asked_before(registry, j, i);
    }
    if (before == index) found = registry->plugins.data[i];
  }
  pestle_mutex_unlock(&registry->mutex);
  if (found && out_id) *out_id = found->id;
  return found ? found->backend : NULL;
}

// --- Devices ---

static bool device_matches(const pestle_device_t* device, const char* name,
                           size_t size) {
  if (!name) return true;
  pestle_str_t spec = pestle_str_make(name, size);
  int32_t type = device->backend->device_type;
  return pestle_str_equal_c(spec, device->plugin->name) ||
         (pestle_str_equal_c(spec, "cpu") && type == PESTLE_DEVICE_CPU) ||
         (pestle_str_equal_c(spec, "gpu") && type != PESTLE_DEVICE_CPU &&
          !device->is_software) ||
         (pestle_str_equal_c(spec, "software") && device->is_software);
}

// Whether |a| comes before |b|; |order| says which was added first.
static bool device_before(const pestle_device_t* a, const pestle_device_t* b,
                          bool a_is_older) {
  if (a->is_software != b->is_software) return b->is_software;
  if (a->backend->score != b->backend->score) {
    return a->backend->score > b->backend->score;
  }
  return a_is_older;
}

pestle_device_t* pestle_registry_find(pestle_registry_t* registry,
                                      const char* spec_name, size_t spec_size,
                                      int64_t index) {
  pestle_device_t* found = NULL;
  pestle_mutex_lock(&registry->mutex);
  size_t count = registry->devices.size;
  pestle_device_t** devices = registry->devices.data;
  // The one that has |index| others before it; there are few.
  for (size_t i = 0; i < count && !found; ++i) {
    if (!device_matches(devices[i], spec_name, spec_size)) continue;
    int64_t before = 0;
    for (size_t j = 0; j < count; ++j) {
      before += j != i && device_matches(devices[j], spec_name, spec_size) &&
                device_before(devices[j], devices[i], j < i);
    }
    if (before == index) found = devices[i];
  }
  pestle_mutex_unlock(&registry->mutex);
  return found;
}

static bool is_fallback(const pestle_device_t* device, int32_t type) {
  const pestle_backend_t* backend = device->backend;
  return backend->device_type == type && backend->target &&
         PESTLE_HAS(backend, flags) &&
         (backend->flags & PESTLE_BACKEND_FALLBACK);
}

pestle_device_t* pestle_registry_fallback(pestle_registry_t* registry,
                                          int32_t type) {
  pestle_device_t* found = NULL;
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->devices.size; ++i) {
    pestle_device_t* device = registry->devices.data[i];
    if (!is_fallback(device, type)) continue;
    if (!found || device_before(device, found, false)) found = device;
  }
  pestle_mutex_unlock(&registry->mutex);
  return found;
}

int32_t pestle_context_device_count(pestle_context_t* context,
                                    const char* type) {
  if (!context || !type) return 0;
  // Out of memory: what is there is counted.
  pestle_status_release(pestle_registry_load_for(context, type, strlen(type)));
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  int32_t count = 0;
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->devices.size; ++i) {
    count += device_matches(registry->devices.data[i], type, strlen(type));
  }
  pestle_mutex_unlock(&registry->mutex);
  return count;
}

bool pestle_context_is_available(pestle_context_t* context, const char* type) {
  return pestle_context_device_count(context, type) > 0;
}

int32_t pestle_device_index(const pestle_device_t* device) {
  if (!device || device->plugin->as_target) return -1;
  const char* type = pestle_device_type(device);
  pestle_context_enter(device->context);
  pestle_registry_t* registry = &device->context->registry;
  int32_t before = 0;
  bool older = true;
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->devices.size; ++i) {
    const pestle_device_t* other = registry->devices.data[i];
    if (other == device) {
      older = false;
    } else if (device_matches(other, type, strlen(type))) {
      before += device_before(other, device, older);
    }
  }
  pestle_mutex_unlock(&registry->mutex);
  return before;
}
