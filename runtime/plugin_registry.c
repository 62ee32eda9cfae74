// SPDX-License-Identifier: Apache-2.0
// Which backends a context has. Candidates of one name are a group: the best
// score wins, ties go to the one with the host's own build id, then to the
// earlier in the search order, and when the winner cannot start the next one is
// tried. Groups do not compete.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/str.h"
#include "pestle/runtime.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/dlpack.h"
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

// Whether |a| is to be taken rather than |b|, which comes before it.
static bool is_better(const pestle_plugin_t* a, const pestle_plugin_t* b) {
  if (a->score != b->score) return a->score > b->score;
  return a->is_own && !b->is_own;
}

// The best of |candidates| that may still win a group, or NULL.
static pestle_plugin_t* best_candidate(const pestle_plugins_t* candidates) {
  pestle_plugin_t* best = NULL;
  for (size_t i = 0; i < candidates->size; ++i) {
    pestle_plugin_t* plugin = candidates->data[i];
    if (plugin->is_refused || plugin->backend) continue;
    if (!best || is_better(plugin, best)) best = plugin;
  }
  return best;
}

// Those of |plugin|'s devices that compute on the CPU, or all others; |first| is how
// many there were before the plugin's.
static pestle_status_t add_kind(pestle_registry_t* registry,
                                const pestle_plugin_t* plugin, int32_t next,
                                size_t first, bool is_software) {
  for (int32_t i = 0; i < plugin->device_count; ++i) {
    bool is;
    PESTLE_TRY(pestle_device_look_for_software(plugin->backend, i, &is));
    if (is != is_software) continue;
    int32_t at = (int32_t)(registry->devices.size - first);
    pestle_device_number_t number = {i, at, next + at};
    pestle_device_t* device;
    PESTLE_TRY(pestle_device_create(registry->context, &registry->arena, plugin,
                                    number, is_software, &device));
    (void)pestle_vec_push(&registry->devices, device);
  }
  return NULL;
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
  pestle_status_t status = add_kind(registry, plugin, next, first, false);
  if (!status) status = add_kind(registry, plugin, next, first, true);
  while (status && registry->devices.size > first)
    pestle_device_destroy(pestle_vec_pop(&registry->devices));
  return status;
}

static pestle_status_t refuse_loser(pestle_registry_t* registry,
                                    pestle_plugin_t* plugin,
                                    const pestle_plugin_t* winner) {
  const char* why = "";
  if (plugin->score == winner->score) {
    why = winner->is_own && !plugin->is_own ? "; equal, but it is of this build"
                                            : "; equal, but it came first";
  }
  return pestle_plugin_refuse(
      &registry->arena, plugin, PESTLE_VERDICT_OUTSCORED,
      "%s: backend '%s' is already taken by %s (score %d, this one %d%s)",
      pestle_plugin_where(plugin), plugin->name, pestle_plugin_where(winner),
      (int)winner->score, (int)plugin->score, why);
}

// Starts the winners of |candidates|. All of them are rows of the registry.
static pestle_status_t start_candidates(pestle_registry_t* registry,
                                        const pestle_plugins_t* candidates) {
  pestle_plugin_t* plugin;
  while ((plugin = best_candidate(candidates))) {
    const pestle_plugin_t* winner = find_running(registry, plugin->name);
    if (winner) {
      PESTLE_TRY(refuse_loser(registry, plugin, winner));
      continue;
    }
    PESTLE_TRY(pestle_plugin_start(registry->context, &registry->arena, plugin,
                                   NULL, NULL));
    if (!plugin->backend) continue;
    pestle_status_t status = add_devices(registry, plugin);
    if (status) {
      pestle_plugin_stop(plugin);
      return status;
    }
  }
  return NULL;
}

static pestle_log_level_t verdict_level(pestle_verdict_t verdict) {
  switch (verdict) {
    case PESTLE_VERDICT_LOADED:
      return PESTLE_LOG_INFO;
    case PESTLE_VERDICT_UNLOADABLE:
    case PESTLE_VERDICT_INIT:
    case PESTLE_VERDICT_UNTRUSTED:
      return PESTLE_LOG_WARN;
    case PESTLE_VERDICT_ABI:
    case PESTLE_VERDICT_TABLES:
    case PESTLE_VERDICT_PROBE:
      return PESTLE_LOG_ERROR;
    case PESTLE_VERDICT_SCORE:
    case PESTLE_VERDICT_FILTERED:
    case PESTLE_VERDICT_OUTSCORED:
      return PESTLE_LOG_DEBUG;
  }
  return PESTLE_LOG_ERROR;
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
      pestle_context_log(registry->context, verdict_level(plugin->verdict),
                         "backend not used: %s", plugin->reason);
    }
  }
}

// --- Loading ---

// What a load is to look at.
typedef struct request_t {
  const pestle_backend_filter_t* filter;  // or NULL
  const char* name;                       // of the only backend, or NULL
  bool cpu_only;                          // those of other devices can wait
  bool is_second;                         // a load has gone before this one
  pestle_plugins_t rows;                  // the candidates
} request_t;

// The row of a running backend with this path, if there is one.
static pestle_plugin_t* find_running_file(const pestle_registry_t* registry,
                                          const char* path) {
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->backend && !strcmp(plugin->path, path)) return plugin;
  }
  return NULL;
}

static pestle_status_t take_static(pestle_registry_t* registry,
                                   const pestle_plugin_static_t* row,
                                   request_t* request) {
  pestle_plugin_t* plugin;
  pestle_arena_t* arena = &registry->arena;
  PESTLE_TRY(pestle_plugin_probe_static(arena, row->abi_info, row->score,
                                        row->init, request->cpu_only, &plugin));
  if (plugin->is_put_off) return NULL;
  plugin->is_built_in = row->is_built_in;
  const pestle_plugin_t* running = find_running(registry, plugin->name);
  if (running && !*running->path) return NULL;
  PESTLE_TRY(pestle_plugin_filter_name(request->filter, arena, plugin));
  PESTLE_TRY(pestle_plugin_filter_candidate(request->filter, arena, plugin));
  return pestle_vec_push(&request->rows, plugin) ? NULL : PESTLE_OOM();
}

// Whether a child that tried the file did not survive it.
static bool has_killed(const pestle_registry_t* registry, const char* path) {
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    const pestle_plugin_t* plugin = registry->plugins.data[i];
    bool killed = plugin->verdict == PESTLE_VERDICT_PROBE;
    if (killed && !strcmp(plugin->path, path)) return true;
  }
  return false;
}

static pestle_status_t take_file(pestle_registry_t* registry, const char* path,
                                 request_t* request) {
  if (find_running_file(registry, path)) return NULL;
  // One that hangs takes its time once, not for each type of device.
  if (request->is_second && has_killed(registry, path)) return NULL;
  pestle_plugin_t* plugin;
  pestle_arena_t* arena = &registry->arena;
  PESTLE_TRY(pestle_plugin_row(arena, path, &plugin));
  if (request->name && strcmp(plugin->name, request->name) != 0) return NULL;
  plugin->cpu_only = request->cpu_only;
  PESTLE_TRY(pestle_plugin_filter_name(request->filter, arena, plugin));
  if (!plugin->is_refused) {
    PESTLE_TRY(pestle_plugin_probe(registry->context, arena, plugin));
    if (plugin->is_put_off) return NULL;
    PESTLE_TRY(pestle_plugin_filter_candidate(request->filter, arena, plugin));
  }
  return pestle_vec_push(&request->rows, plugin) ? NULL : PESTLE_OOM();
}

static pestle_status_t probe_all(pestle_registry_t* registry, bool linked_in,
                                 bool files, request_t* request) {
  const pestle_plugin_static_t* row = pestle_plugin_static_rows();
  for (; linked_in && row->init; ++row) {
    PESTLE_TRY(take_static(registry, row, request));
  }
  if (!files) return NULL;
  pestle_paths_t paths;
  pestle_vec_init(&paths, registry->context->core.allocator);
  pestle_status_t status = pestle_plugin_search(registry, &paths);
  for (size_t i = 0; !status && i < paths.size; ++i) {
    status = take_file(registry, paths.data[i], request);
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

// Takes away refused rows whose file is looked at anew: one row a candidate.
static void drop_older(pestle_registry_t* registry, const request_t* request) {
  size_t kept = 0;
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    pestle_plugin_t* plugin = registry->plugins.data[i];
    bool again = false;
    for (size_t k = 0; k < request->rows.size && !plugin->backend; ++k) {
      const pestle_plugin_t* row = request->rows.data[k];
      again |= !strcmp(row->path, plugin->path) &&
               !strcmp(row->label, plugin->label);
    }
    if (!again) registry->plugins.data[kept++] = plugin;
  }
  registry->plugins.size = kept;
}

// Makes |request|'s rows those of the registry and starts the winners.
static pestle_status_t add_rows(pestle_registry_t* registry,
                                const request_t* request) {
  drop_older(registry, request);
  size_t first = registry->plugins.size;
  if (!pestle_vec_append(&registry->plugins, request->rows.data,
                         request->rows.size)) {
    return PESTLE_OOM();
  }
  pestle_status_t status = start_candidates(registry, &request->rows);
  if (status) {
    drop_rows(registry, first);
    return status;
  }
  log_rows(registry, first);
  return NULL;
}

static pestle_status_t load_locked(pestle_registry_t* registry, bool files,
                                   bool cpu_only, bool is_second,
                                   const pestle_backend_filter_t* filter) {
  request_t request = {
      .filter = filter, .cpu_only = cpu_only, .is_second = is_second};
  pestle_vec_init(&request.rows, registry->context->core.allocator);
  int64_t begin = pestle_context_trace_begin(registry->context);
  pestle_status_t status = probe_all(registry, true, files, &request);
  if (!status) status = add_rows(registry, &request);
  pestle_context_trace_end(registry->context, begin, "load", "load backends",
                           NULL);
  pestle_vec_deinit(&request.rows);
  if (status) return status;
  atomic_store_explicit(&registry->loaded_cpu, true, memory_order_release);
  if (!cpu_only) {
    atomic_store_explicit(&registry->loaded, true, memory_order_release);
  }
  return NULL;
}

// A load that nobody asked for, done once.
static pestle_status_t load_once(pestle_context_t* context, bool cpu_only) {
  pestle_registry_t* registry = &context->registry;
  const atomic_bool* done =
      cpu_only ? &registry->loaded_cpu : &registry->loaded;
  if (atomic_load_explicit(done, memory_order_acquire)) return NULL;
  pestle_context_enter(context);
  pestle_mutex_lock(&registry->mutex);
  pestle_status_t status = NULL;
  if (!atomic_load_explicit(done, memory_order_relaxed)) {
    bool is_second =
        atomic_load_explicit(&registry->loaded_cpu, memory_order_relaxed);
    status = load_locked(registry, !context->manual_backends, cpu_only,
                         is_second, NULL);
  }
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

pestle_status_t pestle_context_load_backends(pestle_context_t* context) {
  PESTLE_REQUIRE(context, "a context");
  return load_once(context, false);
}

pestle_status_t pestle_registry_load_for(pestle_context_t* context,
                                         const char* spec_name,
                                         size_t spec_size) {
  pestle_str_t spec = pestle_str_make(spec_name, spec_size);
  if (!pestle_str_equal_c(spec, "gpu")) {
    PESTLE_TRY(load_once(context, true));
    if (pestle_registry_find(&context->registry, spec_name, spec_size, 0)) {
      return NULL;
    }
  }
  return load_once(context, false);
}

static pestle_status_t read_filter(const pestle_backend_filter_t* user,
                                   pestle_backend_filter_t* out_filter) {
  *out_filter = (pestle_backend_filter_t){.struct_size = 0};
  if (!user) return NULL;
  size_t size = user->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_backend_filter_t.struct_size is not set; set "
                        "it to sizeof(pestle_backend_filter_t)");
  }
  memcpy(out_filter, user,
         size < sizeof(*out_filter) ? size : sizeof(*out_filter));
  if ((out_filter->allowed_count && !out_filter->allowed) ||
      (out_filter->blocked_count && !out_filter->blocked)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the filter counts globs, but has none");
  }
  return NULL;
}

pestle_status_t pestle_context_load_all(pestle_context_t* context,
                                        const pestle_backend_filter_t* filter) {
  PESTLE_REQUIRE(context, "a context");
  pestle_backend_filter_t own;
  PESTLE_TRY(read_filter(filter, &own));
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_status_t status = load_locked(registry, true, false, false, &own);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

pestle_status_t pestle_plugin_refusal(const pestle_plugin_t* plugin) {
  switch (plugin->verdict) {
    case PESTLE_VERDICT_UNLOADABLE:
    case PESTLE_VERDICT_SCORE:
    case PESTLE_VERDICT_INIT:
    case PESTLE_VERDICT_UNTRUSTED:
    case PESTLE_VERDICT_PROBE:
      return PESTLE_ERROR(UNAVAILABLE, "%s", plugin->reason);
    case PESTLE_VERDICT_LOADED:
    case PESTLE_VERDICT_ABI:
    case PESTLE_VERDICT_TABLES:
    case PESTLE_VERDICT_FILTERED:
    case PESTLE_VERDICT_OUTSCORED:
      break;
  }
  return PESTLE_ERROR(INCOMPATIBLE, "%s", plugin->reason);
}

// Loads the rows of |request|, one of which must start.
static pestle_status_t add_asked(pestle_registry_t* registry,
                                 const request_t* request) {
  PESTLE_TRY(add_rows(registry, request));
  const pestle_plugin_t* refused = NULL;
  for (size_t i = 0; i < request->rows.size; ++i) {
    refused = request->rows.data[i];
    if (refused->backend) return NULL;
  }
  return refused ? pestle_plugin_refusal(refused) : NULL;
}

static pestle_status_t load_best_locked(pestle_registry_t* registry,
                                        const char* name) {
  if (find_running(registry, name)) return NULL;
  request_t request = {.name = name};
  pestle_vec_init(&request.rows, registry->context->core.allocator);
  pestle_status_t status = probe_all(registry, false, true, &request);
  if (!status && !request.rows.size) {
    status = PESTLE_ERROR(NOT_FOUND,
                          "no folder of the search path has a "
                          "file " PESTLE_PLUGIN_PREFIX
                          "%s[-VARIANT]" PESTLE_PLUGIN_SUFFIX
                          "; 'pestle plugins --why' lists what is there",
                          name);
  }
  if (!status) status = add_asked(registry, &request);
  pestle_vec_deinit(&request.rows);
  return status;
}

pestle_status_t pestle_context_load_best(pestle_context_t* context,
                                         const char* name) {
  PESTLE_REQUIRE(context && name && *name, "a context and a backend's name");
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_status_t status = load_best_locked(registry, name);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

// Adds one candidate that was asked for: a refusal is an error.
static pestle_status_t add_one(pestle_registry_t* registry,
                               pestle_plugin_t* plugin) {
  request_t request = {.rows = {.data = &plugin, .size = 1, .capacity = 1}};
  return add_asked(registry, &request);
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
  pestle_status_t status = pestle_plugin_row(&registry->arena, path, &plugin);
  if (!status) {
    plugin->any_name = true;
    status = pestle_plugin_probe(context, &registry->arena, plugin);
  }
  if (!status) status = add_one(registry, plugin);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

pestle_status_t pestle_context_add_backend(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_score_fn_t score, pestle_backend_init_fn_t init) {
  PESTLE_REQUIRE(context && abi_info && init,
                 "a context and a backend's entry points");
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_plugin_t* plugin;
  pestle_status_t status = pestle_plugin_probe_static(
      &registry->arena, abi_info, score, init, false, &plugin);
  if (!status) status = add_one(registry, plugin);
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

pestle_status_t pestle_registry_add_static(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_init_fn_t init) {
  return pestle_context_add_backend(context, abi_info, NULL, init);
}

// --- Life ---

void pestle_registry_init(pestle_context_t* context,
                          pestle_registry_t* out_registry) {
  out_registry->context = context;
  pestle_mutex_init(&out_registry->mutex);
  atomic_init(&out_registry->loaded, false);
  atomic_init(&out_registry->loaded_cpu, false);
  pestle_arena_init(context->core.allocator, &out_registry->arena);
  pestle_vec_init(&out_registry->plugins, context->core.allocator);
  pestle_vec_init(&out_registry->devices, context->core.allocator);
  pestle_vec_init(&out_registry->targets, context->core.allocator);
  pestle_vec_init(&out_registry->search_paths, context->core.allocator);
  out_registry->has_search_paths = false;
}

void pestle_registry_end_exchanges(pestle_registry_t* registry) {
  if (!registry->context) return;
  for (size_t i = 0; i < registry->devices.size; ++i)
    pestle_exchange_deinit(registry->devices.data[i]);
}

void pestle_registry_deinit(pestle_registry_t* registry) {
  if (!registry->context) return;
  for (size_t i = 0; i < registry->devices.size; ++i) {
    pestle_device_destroy(registry->devices.data[i]);
  }
  for (size_t i = 0; i < registry->targets.size; ++i) {
    pestle_device_destroy(registry->targets.data[i]);
  }
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    pestle_plugin_stop(registry->plugins.data[i]);
  }
  // Their rows are in no list.
  for (size_t i = 0; i < registry->targets.size; ++i) {
    pestle_plugin_stop(registry->targets.data[i]->own_plugin);
  }
  pestle_vec_deinit(&registry->devices);
  pestle_vec_deinit(&registry->targets);
  pestle_vec_deinit(&registry->plugins);
  pestle_vec_deinit(&registry->search_paths);
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
    if (!atomic_load(&registry->loaded_cpu)) {
      pestle_context_t* context = registry->context;
      pestle_registry_init(context, registry);
    }
  }
  for (size_t i = 0; i < registry->devices.size; ++i) {
    pestle_device_after_fork(registry->devices.data[i]);
  }
  // What a backend of another device type holds is the driver's, threads and
  // files of the parent: the child never gives it back.
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    pestle_plugin_t* plugin = registry->plugins.data[i];
    plugin->is_of_parent |=
        plugin->backend && plugin->device_type != PESTLE_DEVICE_CPU;
  }
}
