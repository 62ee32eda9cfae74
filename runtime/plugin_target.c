// SPDX-License-Identifier: Apache-2.0
// Backends that compile where they are of no use otherwise: score 0, no driver,
// no device. One is started when it is asked for by name, beside the list of
// candidates, in which it stays what it is: refused.
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/registry.h"

static pestle_device_t* find_started(const pestle_registry_t* registry,
                                     pestle_str_t name) {
  for (size_t i = 0; i < registry->targets.size; ++i) {
    pestle_device_t* device = registry->targets.data[i];
    if (pestle_str_equal_c(name, device->plugin->name)) return device;
  }
  return NULL;
}

// Of several files the first in the search order.
static const pestle_plugin_t* find_candidate(const pestle_registry_t* registry,
                                             pestle_str_t name) {
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    const pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->is_target && plugin->verdict == PESTLE_VERDICT_SCORE &&
        pestle_str_equal_c(name, plugin->name)) {
      return plugin;
    }
  }
  return NULL;
}

// A row of its own, judged and opened like any other, but for the score.
static pestle_status_t make_row(pestle_registry_t* registry,
                                const pestle_plugin_t* refused,
                                pestle_plugin_t** out_plugin) {
  pestle_arena_t* arena = &registry->arena;
  pestle_plugin_t* plugin;
  if (!*refused->path) {
    plugin = PESTLE_ARENA_NEW(arena, pestle_plugin_t);
    if (!plugin) return PESTLE_OOM();
    *plugin = *refused;
    plugin->is_refused = false;
    plugin->verdict = PESTLE_VERDICT_LOADED;
  } else {
    PESTLE_TRY(pestle_plugin_row(arena, refused->path, &plugin));
    plugin->any_name = refused->any_name;
  }
  plugin->as_target = true;
  *out_plugin = plugin;
  if (!*refused->path) return NULL;
  return pestle_plugin_probe(registry->context, arena, plugin);
}

// The device has the compiler half alone, whatever the backend's table says.
static pestle_status_t make_device(pestle_registry_t* registry,
                                   pestle_plugin_t* plugin,
                                   pestle_device_t** out_device) {
  pestle_backend_t* table =
      PESTLE_ARENA_NEW(&registry->arena, pestle_backend_t);
  if (!table) return PESTLE_OOM();
  size_t size = plugin->backend->struct_size;
  if (size > sizeof(*table)) size = sizeof(*table);
  memcpy(table, plugin->backend, size);
  table->struct_size = size;
  table->device = NULL;
  table->device_count = 0;
  plugin->backend = table;
  plugin->device_count = 0;
  pestle_device_t* device;
  PESTLE_TRY(pestle_device_create(registry->context, &registry->arena, plugin,
                                  (pestle_device_number_t){0}, false, &device));
  device->own_plugin = plugin;
  if (!pestle_vec_push(&registry->targets, device)) {
    pestle_device_destroy(device);
    return PESTLE_OOM();
  }
  *out_device = device;
  return NULL;
}

static pestle_status_t start(pestle_registry_t* registry,
                             const pestle_plugin_t* refused,
                             pestle_device_t** out_device) {
  pestle_plugin_t* plugin;
  PESTLE_TRY(make_row(registry, refused, &plugin));
  if (!plugin->is_refused) {
    PESTLE_TRY(pestle_plugin_start(registry->context, &registry->arena, plugin,
                                   NULL, NULL));
  }
  if (plugin->is_refused) return pestle_plugin_refusal(plugin);
  plugin->reason = refused->reason;
  pestle_status_t status = make_device(registry, plugin, out_device);
  if (status) {
    pestle_plugin_stop(plugin);
    return status;
  }
  pestle_context_log(registry->context, PESTLE_LOG_INFO,
                     "backend %s compiles only: %s", plugin->name,
                     plugin->reason);
  return NULL;
}

pestle_status_t pestle_registry_target(pestle_registry_t* registry,
                                       pestle_str_t name,
                                       pestle_device_t** out_device) {
  *out_device = NULL;
  pestle_context_enter(registry->context);
  pestle_mutex_lock(&registry->mutex);
  *out_device = find_started(registry, name);
  const pestle_plugin_t* refused =
      *out_device ? NULL : find_candidate(registry, name);
  pestle_status_t status =
      refused ? start(registry, refused, out_device) : NULL;
  pestle_mutex_unlock(&registry->mutex);
  return status;
}
