// SPDX-License-Identifier: Apache-2.0
// Which backends a context has. Candidates of one name are a group: the best
// score wins, ties go to the earlier in the search order, and when the winner
// cannot start the next one is tried.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/require.h"
#include "pestle/runtime.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/registry.h"

// --- Groups ---

static pestle_plugin_t* find_running(const pestle_registry_t* registry,
                                     const char* name) {
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->backend && !strcmp(plugin->name, name)) return plugin;
  }
  return NULL;
}

// The best of |candidates| that may still win a group, or NULL.
static pestle_plugin_t* best_candidate(const pestle_plugins_t* candidates) {
  pestle_plugin_t* best = NULL;
  for (size_t i = 0; i < candidates->size; ++i) {
    pestle_plugin_t* plugin = candidates->data[i];
    if (!plugin->init || plugin->backend) continue;
    if (!best || plugin->score > best->score) best = plugin;
  }
  return best;
}

// Undoes pestle_plugin_start(), as far as the backend can.
static void stop_plugin(pestle_plugin_t* plugin) {
  const pestle_backend_t* backend = plugin->backend;
  plugin->backend = NULL;
  if (backend && PESTLE_HAS(backend, deinit)) backend->deinit(backend->self);
}

static pestle_status_t add_devices(pestle_registry_t* registry,
                                   pestle_plugin_t* plugin) {
  if (!pestle_vec_reserve(&registry->devices, (size_t)plugin->device_count)) {
    return PESTLE_OOM();
  }
  int32_t next = 0;
  for (size_t i = 0; i < registry->devices.size; ++i) {
    next +=
        registry->devices.data[i]->backend->device_type == plugin->device_type;
  }
  size_t first = registry->devices.size;
  for (int32_t i = 0; i < plugin->device_count; ++i) {
    pestle_device_t* device;
    pestle_status_t status = pestle_device_create(
        registry->context, &registry->arena, plugin, i, next + i, &device);
    if (status) {
      while (registry->devices.size > first) {
        pestle_device_destroy(pestle_vec_pop(&registry->devices));
      }
      return status;
    }
    (void)pestle_vec_push(&registry->devices, device);
  }
  return NULL;
}

// Starts the winners of |candidates|. All of them are rows of the registry.
static pestle_status_t start_candidates(pestle_registry_t* registry,
                                        const pestle_plugins_t* candidates) {
  pestle_plugin_t* plugin;
  while ((plugin = best_candidate(candidates))) {
    const pestle_plugin_t* winner = find_running(registry, plugin->name);
    if (winner) {
      PESTLE_TRY(pestle_plugin_refuse(
          &registry->arena, plugin,
          "%s: backend '%s' is already taken by %s (score %d, this one %d)",
          *plugin->path ? plugin->path : "the linked-in one", plugin->name,
          *winner->path ? winner->path : "the linked-in one",
          (int)winner->score, (int)plugin->score));
      continue;
    }
    PESTLE_TRY(
        pestle_plugin_start(registry->context, &registry->arena, plugin));
    if (!plugin->backend) continue;
    pestle_status_t status = add_devices(registry, plugin);
    if (status) {
      stop_plugin(plugin);
      return status;
    }
  }
  return NULL;
}

static void log_rows(pestle_registry_t* registry, size_t first) {
  for (size_t i = first; i < registry->plugins.size; ++i) {
    const pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->backend) {
      pestle_context_log(registry->context, PESTLE_LOG_INFO,
                         "backend %s: score %d, %d devices%s%s", plugin->name,
                         (int)plugin->score, (int)plugin->device_count,
                         *plugin->path ? ", " : "", plugin->path);
    } else {
      pestle_context_log(registry->context, PESTLE_LOG_INFO,
                         "backend not used: %s", plugin->reason);
    }
  }
}

// --- Loading ---

// Adds a row, unless the same file runs already: it was loaded by its path, or
// by a call that ran out of memory later.
static pestle_status_t add_row(pestle_registry_t* registry,
                               pestle_plugin_t* plugin) {
  const pestle_plugin_t* running = find_running(registry, plugin->name);
  if (running && !strcmp(running->path, plugin->path)) return NULL;
  if (!pestle_vec_push(&registry->plugins, plugin)) return PESTLE_OOM();
  return NULL;
}

static pestle_status_t probe_all(pestle_registry_t* registry) {
  pestle_context_t* context = registry->context;
  pestle_arena_t* arena = &registry->arena;
  pestle_plugin_t* plugin;
  const pestle_plugin_static_t* row = pestle_plugin_static_rows();
  for (; row->init; ++row) {
    PESTLE_TRY(pestle_plugin_probe_static(context, arena, row->abi_info,
                                          row->init, &plugin));
    PESTLE_TRY(add_row(registry, plugin));
  }
  pestle_paths_t paths;
  pestle_vec_init(&paths, context->allocator);
  pestle_status_t status = pestle_plugin_search(context, arena, &paths);
  for (size_t i = 0; !status && i < paths.size; ++i) {
    status = pestle_plugin_probe(context, arena, paths.data[i], &plugin);
    if (!status) status = add_row(registry, plugin);
  }
  pestle_vec_deinit(&paths);
  return status;
}

// Takes back what a failed load added: the next call starts over. Backends that
// had started stay, since their devices may be in use.
static void drop_rows(pestle_registry_t* registry, size_t first) {
  size_t kept = first;
  for (size_t i = first; i < registry->plugins.size; ++i) {
    pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->backend) registry->plugins.data[kept++] = plugin;
  }
  registry->plugins.size = kept;
}

static pestle_status_t load_locked(pestle_registry_t* registry) {
  if (atomic_load_explicit(&registry->loaded, memory_order_relaxed)) {
    return NULL;
  }
  size_t first = registry->plugins.size;
  int64_t begin = pestle_context_trace_begin(registry->context);
  pestle_status_t status = probe_all(registry);
  if (!status) status = start_candidates(registry, &registry->plugins);
  pestle_context_trace_end(registry->context, begin, "load", "load backends",
                           NULL);
  if (status) {
    drop_rows(registry, first);
    return status;
  }
  log_rows(registry, first);
  atomic_store_explicit(&registry->loaded, true, memory_order_release);
  return NULL;
}

pestle_status_t pestle_context_load_backends(pestle_context_t* context) {
  PESTLE_REQUIRE(context, "a context");
  pestle_registry_t* registry = &context->registry;
  if (atomic_load_explicit(&registry->loaded, memory_order_acquire)) {
    return NULL;
  }
  pestle_context_enter(context);
  pestle_mutex_lock(&registry->mutex);
  pestle_status_t status = load_locked(registry);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

// Adds one candidate that was asked for by name: a refusal is an error.
static pestle_status_t add_one(pestle_registry_t* registry,
                               pestle_plugin_t* plugin) {
  size_t first = registry->plugins.size;
  if (!pestle_vec_push(&registry->plugins, plugin)) return PESTLE_OOM();
  pestle_plugins_t one = {.data = &plugin, .size = 1, .capacity = 1};
  pestle_status_t status = start_candidates(registry, &one);
  if (status) {
    drop_rows(registry, first);
    return status;
  }
  log_rows(registry, first);
  if (plugin->backend) return NULL;
  return PESTLE_ERROR(INCOMPATIBLE, "%s", plugin->reason);
}

pestle_status_t pestle_context_load_backend(pestle_context_t* context,
                                            const char* path) {
  PESTLE_REQUIRE(context, "a context");
  if (!path || !*path) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the path of the backend to load is empty");
  }
  if (!pestle_file_exists(path)) {
    return PESTLE_ERROR(NOT_FOUND, "there is no backend file '%s'", path);
  }
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_plugin_t* plugin;
  pestle_status_t status =
      pestle_plugin_probe(context, &registry->arena, path, &plugin);
  if (!status) status = add_one(registry, plugin);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

pestle_status_t pestle_registry_add_static(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_init_fn_t init) {
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_plugin_t* plugin;
  pestle_status_t status = pestle_plugin_probe_static(context, &registry->arena,
                                                      abi_info, init, &plugin);
  if (!status) status = add_one(registry, plugin);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

// --- Looking ---

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
  }
  pestle_mutex_unlock(&registry->mutex);
  if (index >= count) {
    return PESTLE_ERROR(NOT_FOUND, "there is no backend %zu of %zu", index,
                        count);
  }
  memcpy(out_info, &info, size < sizeof(info) ? size : sizeof(info));
  return NULL;
}

static bool device_matches(const pestle_device_t* device, const char* name,
                           size_t size) {
  if (!name) return true;
  pestle_str_t spec = pestle_str_make(name, size);
  int32_t type = device->backend->device_type;
  return pestle_str_equal_c(spec, device->plugin->name) ||
         (pestle_str_equal_c(spec, "cpu") && type == PESTLE_DEVICE_CPU) ||
         (pestle_str_equal_c(spec, "gpu") && type != PESTLE_DEVICE_CPU);
}

// Whether |a| comes before |b|; |order| says which was added first.
static bool device_before(const pestle_device_t* a, const pestle_device_t* b,
                          bool a_is_older) {
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

// --- Life ---

void pestle_registry_init(pestle_context_t* context,
                          pestle_registry_t* out_registry) {
  out_registry->context = context;
  pestle_mutex_init(&out_registry->mutex);
  atomic_init(&out_registry->loaded, false);
  pestle_arena_init(context->allocator, &out_registry->arena);
  pestle_vec_init(&out_registry->plugins, context->allocator);
  pestle_vec_init(&out_registry->devices, context->allocator);
}

void pestle_registry_deinit(pestle_registry_t* registry) {
  if (!registry->context) return;
  for (size_t i = 0; i < registry->devices.size; ++i) {
    pestle_device_destroy(registry->devices.data[i]);
  }
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    stop_plugin(registry->plugins.data[i]);
  }
  pestle_vec_deinit(&registry->devices);
  pestle_vec_deinit(&registry->plugins);
  pestle_arena_deinit(&registry->arena);
  pestle_mutex_deinit(&registry->mutex);
  registry->context = NULL;
}

void pestle_registry_after_fork(pestle_registry_t* registry) {
  if (pestle_mutex_try_lock(&registry->mutex)) {
    pestle_mutex_unlock(&registry->mutex);
  } else {
    // A thread of the parent was at work here and may have left anything:
    // start with an empty registry. What the parent's devices need stays.
    pestle_mutex_init(&registry->mutex);
    if (!atomic_load(&registry->loaded)) {
      pestle_context_t* context = registry->context;
      pestle_registry_init(context, registry);
    }
  }
  for (size_t i = 0; i < registry->devices.size; ++i) {
    pestle_device_after_fork(registry->devices.data[i]);
  }
}
