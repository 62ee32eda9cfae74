// SPDX-License-Identifier: Apache-2.0
// One plugin: open, compare, score, start. Every refusal is a sentence that
// names the path, what was expected, what was found and how to mend it.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/mem.h"
#include "runtime/context.h"
#include "runtime/registry.h"

// Where a row's path is empty.
#define LINKED_IN "the linked-in backend"

pestle_status_t pestle_plugin_refuse(pestle_arena_t* arena,
                                     pestle_plugin_t* plugin,
                                     const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  int size = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  plugin->init = NULL;
  plugin->reason = pestle_arena_strdup(arena, size < 0 ? "unusable" : text);
  if (plugin->reason) return NULL;
  plugin->reason = "";
  return PESTLE_OOM();
}

static const char* path_of(const pestle_plugin_t* plugin) {
  return *plugin->path ? plugin->path : LINKED_IN;
}

static const char* sanitizer_name(uint32_t bits) {
  if (bits & PESTLE_SANITIZER_ADDRESS) return "AddressSanitizer";
  if (bits & PESTLE_SANITIZER_THREAD) return "ThreadSanitizer";
  return bits ? "an unknown sanitizer" : "no sanitizer";
}

// The first mismatch of a number that both sides must agree on.
static pestle_status_t refuse_number(pestle_arena_t* arena,
                                     pestle_plugin_t* plugin, const char* what,
                                     size_t expected, size_t found) {
  return pestle_plugin_refuse(
      arena, plugin,
      "%s: %s differs: expected %zu, found %zu; rebuild the plugin with the "
      "headers of this Pestle",
      path_of(plugin), what, expected, found);
}

// What abi_info must reach up to.
#define ABI_INFO_SIZE                          \
  (offsetof(pestle_backend_abi_info_t, name) + \
   sizeof(((pestle_backend_abi_info_t*)NULL)->name))

static pestle_status_t check_abi(pestle_arena_t* arena,
                                 const pestle_backend_abi_info_t* info,
                                 pestle_plugin_t* plugin) {
  const char* path = path_of(plugin);
  if (!info || info->struct_size < ABI_INFO_SIZE) {
    return pestle_plugin_refuse(
        arena, plugin,
        "%s: pestle_backend_abi_info is too short: expected %zu bytes, found "
        "%zu; rebuild the plugin with the headers of this Pestle",
        path, ABI_INFO_SIZE, info ? info->struct_size : (size_t)0);
  }
  if (info->abi_major != PESTLE_ABI_MAJOR) {
    return refuse_number(arena, plugin, "the plugin interface's major version",
                         PESTLE_ABI_MAJOR, info->abi_major);
  }
  if (info->sanitizers != PESTLE_SANITIZERS_) {
    return pestle_plugin_refuse(
        arena, plugin,
        "%s: built with %s, expected %s as this Pestle has; build both with "
        "the same preset",
        path, sanitizer_name(info->sanitizers),
        sanitizer_name(PESTLE_SANITIZERS_));
  }
  if (info->kir_abi_major != PESTLE_KIR_ABI_MAJOR) {
    return refuse_number(arena, plugin, "the Kernel IR's major version",
                         PESTLE_KIR_ABI_MAJOR, info->kir_abi_major);
  }
  if (info->sizeof_inst != sizeof(pestle_kir_inst_t)) {
    return refuse_number(arena, plugin, "the size of pestle_kir_inst_t",
                         sizeof(pestle_kir_inst_t), info->sizeof_inst);
  }
  if (info->sizeof_buffer != sizeof(pestle_kir_buffer_t)) {
    return refuse_number(arena, plugin, "the size of pestle_kir_buffer_t",
                         sizeof(pestle_kir_buffer_t), info->sizeof_buffer);
  }
  // A plugin that knows less of a kernel may do: the struct grows at its end.
  if (info->sizeof_kir > sizeof(pestle_kir_t) || !info->sizeof_kir) {
    return refuse_number(arena, plugin, "the size of pestle_kir_t",
                         sizeof(pestle_kir_t), info->sizeof_kir);
  }
  if (!info->name || !*info->name || !info->build_id) {
    return pestle_plugin_refuse(arena, plugin,
                                "%s: abi_info names no backend or build id; "
                                "set both in PESTLE_BACKEND_ABI_INFO",
                                path);
  }
  return NULL;
}

static pestle_status_t take_identity(pestle_arena_t* arena,
                                     const pestle_backend_abi_info_t* info,
                                     pestle_plugin_t* plugin) {
  size_t size = strlen(info->name) + strlen(info->build_id) + 2;
  char* id = pestle_arena_alloc(arena, size, 1);
  if (!id) return PESTLE_OOM();
  (void)snprintf(id, size, "%s %s", info->name, info->build_id);
  plugin->id = id;
  // Static data of the plugin, which is never unloaded.
  plugin->name = info->name;
  plugin->build_id = info->build_id;
  return NULL;
}

static pestle_status_t make_row(pestle_arena_t* arena, const char* path,
                                pestle_plugin_t** out_plugin) {
  pestle_plugin_t* plugin = PESTLE_ARENA_NEW(arena, pestle_plugin_t);
  const char* copy = pestle_arena_strdup(arena, path);
  if (!plugin || !copy) return PESTLE_OOM();
  plugin->path = copy;
  plugin->name = plugin->build_id = plugin->reason = plugin->id = "";
  *out_plugin = plugin;
  return NULL;
}

// "llvm" of ".../libpestle-llvm-v19.so", for rows that never told their name.
static const char* name_in_path(pestle_arena_t* arena, const char* path) {
  pestle_str_t name = pestle_path_name(path);
  pestle_str_t prefix = PESTLE_STR("libpestle-");
  if (pestle_str_starts_with(name, prefix)) {
    name = pestle_str_slice(name, prefix.size, name.size);
  }
  size_t end = 0;
  while (end < name.size && name.data[end] != '-' && name.data[end] != '.') {
    ++end;
  }
  return pestle_arena_strndup(arena, pestle_str_slice(name, 0, end));
}

static pestle_status_t ask_score(pestle_arena_t* arena,
                                 pestle_dynlib_fn_t function,
                                 pestle_plugin_t* plugin) {
  plugin->score = 1;
  if (!function) return NULL;
  char why[512] = "";
  plugin->score = ((pestle_backend_score_fn_t)function)(why, sizeof(why));
  why[sizeof(why) - 1] = 0;
  if (plugin->score > 0) return NULL;
  return pestle_plugin_refuse(arena, plugin, "%s: not for this machine: %s",
                              plugin->path,
                              *why ? why : "its score is 0, without a reason");
}

static pestle_status_t probe_library(pestle_arena_t* arena,
                                     pestle_dynlib_t library,
                                     pestle_plugin_t* plugin) {
  pestle_dynlib_fn_t abi_info =
      pestle_dynlib_function(library, "pestle_backend_abi_info");
  pestle_dynlib_fn_t init =
      pestle_dynlib_function(library, "pestle_backend_init");
  if (!abi_info || !init) {
    return pestle_plugin_refuse(
        arena, plugin,
        "%s: exports no %s, expected of a backend; write the entry points "
        "with PESTLE_BACKEND_IMPL of pestle/plugin.h",
        plugin->path,
        abi_info ? "pestle_backend_init" : "pestle_backend_abi_info");
  }
  plugin->init = (pestle_backend_init_fn_t)init;
  const pestle_backend_abi_info_t* info =
      ((pestle_backend_abi_info_fn_t)abi_info)();
  PESTLE_TRY(check_abi(arena, info, plugin));
  if (!plugin->init) return NULL;
  PESTLE_TRY(take_identity(arena, info, plugin));
  return ask_score(
      arena, pestle_dynlib_function(library, "pestle_backend_score"), plugin);
}

pestle_status_t pestle_plugin_probe(pestle_context_t* context,
                                    pestle_arena_t* arena, const char* path,
                                    pestle_plugin_t** out_plugin) {
  (void)context;
  pestle_plugin_t* plugin = NULL;
  PESTLE_TRY(make_row(arena, path, &plugin));
  *out_plugin = plugin;
  plugin->name = name_in_path(arena, path);
  if (!plugin->name) {
    plugin->name = "";
    return PESTLE_OOM();
  }
  const char* reason = pestle_plugin_inspect(path);
  if (reason) {
    return pestle_plugin_refuse(arena, plugin, "%s %s", path, reason);
  }
  pestle_dynlib_t library;
  pestle_status_t status = pestle_dynlib_open(path, &library);
  if (status) {
    pestle_status_t oom = pestle_plugin_refuse(
        arena, plugin,
        "%s: cannot be loaded: %s; install what it needs or "
        "remove the file",
        path, pestle_status_message(status));
    pestle_status_release(status);
    return oom;
  }
  // Never closed: threads may hold its functions, and a library with a
  // compiler or driver in it does not survive that.
  return probe_library(arena, library, plugin);
}

pestle_status_t pestle_plugin_probe_static(
    pestle_context_t* context, pestle_arena_t* arena,
    pestle_backend_abi_info_fn_t abi_info, pestle_backend_init_fn_t init,
    pestle_plugin_t** out_plugin) {
  (void)context;
  pestle_plugin_t* plugin = NULL;
  PESTLE_TRY(make_row(arena, "", &plugin));
  *out_plugin = plugin;
  plugin->init = init;
  plugin->score = 1;
  const pestle_backend_abi_info_t* info = abi_info();
  PESTLE_TRY(check_abi(arena, info, plugin));
  return plugin->init ? take_identity(arena, info, plugin) : NULL;
}

// --- Starting ---

// What the first version of each table has; later slots are looked at through
// PESTLE_HAS.
#define SIZE_UP_TO(Type, field) \
  (offsetof(Type, field) + sizeof(((Type*)NULL)->field))

static pestle_status_t check_tables(pestle_arena_t* arena,
                                    const pestle_backend_t* backend,
                                    pestle_plugin_t* plugin) {
  size_t expected = SIZE_UP_TO(pestle_backend_t, device);
  if (backend->struct_size < expected) {
    return refuse_number(arena, plugin, "the length of pestle_backend_t",
                         expected, backend->struct_size);
  }
  const pestle_target_api_t* target = backend->target;
  expected = SIZE_UP_TO(pestle_target_api_t, compile);
  if (target && target->struct_size < expected) {
    return refuse_number(arena, plugin, "the length of pestle_target_api_t",
                         expected, target->struct_size);
  }
  const pestle_device_api_t* device = backend->device;
  expected = SIZE_UP_TO(pestle_device_api_t, unload);
  if (device && device->struct_size < expected) {
    return refuse_number(arena, plugin, "the length of pestle_device_api_t",
                         expected, device->struct_size);
  }
  if ((!target && !device) || !backend->name ||
      strcmp(backend->name, plugin->name) != 0) {
    return pestle_plugin_refuse(
        arena, plugin,
        "%s: pestle_backend_init gave a table named '%s' with %s; expected "
        "'%s' and a target or a device half",
        path_of(plugin), backend->name ? backend->name : "",
        target || device ? "something in it" : "neither half", plugin->name);
  }
  if (backend->score <= 0 || backend->device_count < 0) {
    return pestle_plugin_refuse(
        arena, plugin, "%s: not usable here: its score is %d, with %d devices",
        path_of(plugin), (int)backend->score, (int)backend->device_count);
  }
  return NULL;
}

pestle_status_t pestle_plugin_start(pestle_context_t* context,
                                    pestle_arena_t* arena,
                                    pestle_plugin_t* plugin) {
  pestle_status_t failure = NULL;
  pestle_backend_init_fn_t init = plugin->init;
  const pestle_backend_t* backend = init(&context->host, &failure);
  if (!backend || failure) {
    bool out_of_memory =
        pestle_status_code(failure) == PESTLE_STATUS_OUT_OF_MEMORY;
    if (out_of_memory) return failure;
    char why[768] = "it gave no reason";
    if (failure) pestle_status_format(failure, why, sizeof(why));
    pestle_status_release(failure);
    return pestle_plugin_refuse(arena, plugin, "%s: cannot start: %s",
                                path_of(plugin), why);
  }
  PESTLE_TRY(check_tables(arena, backend, plugin));
  if (*plugin->reason) return NULL;
  plugin->backend = backend;
  plugin->device_type = backend->device_type;
  plugin->score = backend->score;
  plugin->device_count = backend->device ? backend->device_count : 0;
  return NULL;
}
