// SPDX-License-Identifier: Apache-2.0
// What a plugin says it was built as, and what its tables have. Nothing here is
// believed that can be checked; of what cannot (an address), the sentence in
// docs/plugin.md speaks.
#include <string.h>

#include "base/bits.h"
#include "pestle/version.h"
#include "runtime/context.h"
#include "runtime/registry.h"

#define LONGEST_NAME ((size_t)32)
#define LONGEST_BUILD_ID ((size_t)256)
#define MOST_DEVICES 1024
#define MOST_VECTOR_BYTES 1024u
#define MOST_SUBGROUP 1024u

#define SIZE_UP_TO(Type, field) \
  (offsetof(Type, field) + sizeof(((Type*)NULL)->field))

static const char* sanitizer_name(uint32_t bits) {
  if (bits & PESTLE_SANITIZER_ADDRESS) return "AddressSanitizer";
  if (bits & PESTLE_SANITIZER_THREAD) return "ThreadSanitizer";
  return bits ? "an unknown sanitizer" : "no sanitizer";
}

// The first mismatch of a number that both sides must agree on.
static pestle_status_t refuse_number(pestle_arena_t* arena,
                                     pestle_plugin_t* plugin,
                                     pestle_verdict_t verdict, const char* what,
                                     size_t expected, size_t found) {
  return pestle_plugin_refuse(
      arena, plugin, verdict,
      "%s: %s differs: expected %zu, found %zu; rebuild the plugin with the "
      "headers of this Pestle",
      pestle_plugin_where(plugin), what, expected, found);
}

// A name that a device can be asked for by: "cuda:1".
static bool is_name(const char* name) {
  for (size_t i = 0; i <= LONGEST_NAME; ++i) {
    char c = name[i];
    if (!c) return i > 0;
    bool letter = c >= 'a' && c <= 'z';
    if (!letter && (!i || (c != '_' && (c < '0' || c > '9')))) return false;
  }
  return false;
}

static bool is_reserved(const char* name) {
  return !strcmp(name, "cpu") || !strcmp(name, "gpu") ||
         !strcmp(name, "software");
}

static pestle_status_t check_identity(pestle_arena_t* arena,
                                      const pestle_backend_abi_info_t* info,
                                      pestle_plugin_t* plugin) {
  const char* where = pestle_plugin_where(plugin);
  if (!info->name || !*info->name || !info->build_id) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_ABI,
                                "%s: abi_info names no backend or build id; "
                                "set both in PESTLE_BACKEND_ABI_INFO",
                                where);
  }
  if (!is_name(info->name) || is_reserved(info->name)) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: '%.40s' is no name for a backend; expected at most %zu of a-z, "
        "0-9 and _, a letter first, and neither cpu nor gpu",
        where, info->name, LONGEST_NAME);
  }
  if (!memchr(info->build_id, 0, LONGEST_BUILD_ID)) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: its build id does not end within %zu bytes; expected a short text",
        where, LONGEST_BUILD_ID);
  }
  if (plugin->any_name || !*plugin->path || !strcmp(info->name, plugin->name)) {
    return NULL;
  }
  return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_ABI,
                              "%s: the file is named for backend '%s', but "
                              "holds '%s'; name it " PESTLE_PLUGIN_PREFIX
                              "%s[-VARIANT]" PESTLE_PLUGIN_SUFFIX,
                              where, plugin->name, info->name, info->name);
}

static pestle_status_t check_sizes(pestle_arena_t* arena,
                                   const pestle_backend_abi_info_t* info,
                                   pestle_plugin_t* plugin) {
  pestle_verdict_t verdict = PESTLE_VERDICT_ABI;
  if (info->kir_abi_major != PESTLE_KIR_ABI_MAJOR) {
    return refuse_number(arena, plugin, verdict,
                         "the Kernel IR's major version", PESTLE_KIR_ABI_MAJOR,
                         info->kir_abi_major);
  }
  if (info->sizeof_inst != sizeof(pestle_kir_inst_t)) {
    return refuse_number(arena, plugin, verdict,
                         "the size of pestle_kir_inst_t",
                         sizeof(pestle_kir_inst_t), info->sizeof_inst);
  }
  if (info->sizeof_buffer != sizeof(pestle_kir_buffer_t)) {
    return refuse_number(arena, plugin, verdict,
                         "the size of pestle_kir_buffer_t",
                         sizeof(pestle_kir_buffer_t), info->sizeof_buffer);
  }
  // A plugin that knows less of a kernel may do: the struct grows at its end.
  if (info->sizeof_kir > sizeof(pestle_kir_t) || !info->sizeof_kir) {
    return refuse_number(arena, plugin, verdict, "the size of pestle_kir_t",
                         sizeof(pestle_kir_t), info->sizeof_kir);
  }
  return NULL;
}

pestle_status_t pestle_plugin_check_abi(pestle_arena_t* arena,
                                        const pestle_backend_abi_info_t* info,
                                        pestle_plugin_t* plugin) {
  const char* where = pestle_plugin_where(plugin);
  size_t least = SIZE_UP_TO(pestle_backend_abi_info_t, name);
  if (!info) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: pestle_backend_abi_info gave NULL; expected its static data, as "
        "PESTLE_BACKEND_IMPL writes it",
        where);
  }
  if (info->struct_size < least) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: pestle_backend_abi_info is too short: expected %zu bytes, found "
        "%zu; rebuild the plugin with the headers of this Pestle",
        where, least, info->struct_size);
  }
  if (info->struct_size > PESTLE_LONGEST_TABLE) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: pestle_backend_abi_info says that it has %zu bytes; expected at "
        "most %zu, so it holds something else",
        where, info->struct_size, PESTLE_LONGEST_TABLE);
  }
  if (info->abi_major != PESTLE_ABI_MAJOR) {
    return refuse_number(arena, plugin, PESTLE_VERDICT_ABI,
                         "the plugin interface's major version",
                         PESTLE_ABI_MAJOR, info->abi_major);
  }
  if (info->sanitizers != PESTLE_SANITIZERS_) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: built with %s, expected %s as this Pestle has; build both with "
        "the same preset",
        where, sanitizer_name(info->sanitizers),
        sanitizer_name(PESTLE_SANITIZERS_));
  }
  PESTLE_TRY(check_sizes(arena, info, plugin));
  return plugin->is_refused ? NULL : check_identity(arena, info, plugin);
}

// --- Tables ---

// A table that says how long it is: it must reach |least|.
static pestle_status_t check_length(pestle_arena_t* arena,
                                    pestle_plugin_t* plugin, const char* what,
                                    size_t least, size_t found) {
  if (found >= least && found <= PESTLE_LONGEST_TABLE) return NULL;
  return refuse_number(arena, plugin, PESTLE_VERDICT_TABLES, what, least,
                       found);
}

static pestle_status_t refuse_slot(pestle_arena_t* arena,
                                   pestle_plugin_t* plugin, const char* slot) {
  return pestle_plugin_refuse(
      arena, plugin, PESTLE_VERDICT_TABLES,
      "%s: %s is NULL; expected a function, which no backend can do without",
      pestle_plugin_where(plugin), slot);
}

static pestle_status_t check_target(pestle_arena_t* arena,
                                    const pestle_target_api_t* target,
                                    pestle_plugin_t* plugin) {
  if (!target) return NULL;
  PESTLE_TRY(check_length(arena, plugin, "the length of pestle_target_api_t",
                          SIZE_UP_TO(pestle_target_api_t, compile),
                          target->struct_size));
  if (plugin->is_refused) return NULL;
  if (!target->describe) return refuse_slot(arena, plugin, "target.describe");
  if (!target->toolchain_id) {
    return refuse_slot(arena, plugin, "target.toolchain_id");
  }
  return target->compile ? NULL : refuse_slot(arena, plugin, "target.compile");
}

static pestle_status_t check_device(pestle_arena_t* arena,
                                    const pestle_device_api_t* device,
                                    pestle_plugin_t* plugin) {
  if (!device || plugin->is_refused) return NULL;
  PESTLE_TRY(check_length(arena, plugin, "the length of pestle_device_api_t",
                          SIZE_UP_TO(pestle_device_api_t, unload),
                          device->struct_size));
  if (plugin->is_refused) return NULL;
  if (!device->load) return refuse_slot(arena, plugin, "device.load");
  if (!device->unload) return refuse_slot(arena, plugin, "device.unload");
  // Half of a pair helps nobody: what is allocated could not be freed.
  bool allocates = PESTLE_HAS(device, allocate);
  if (allocates && !PESTLE_HAS(device, deallocate)) {
    return refuse_slot(arena, plugin, "device.deallocate, beside allocate,");
  }
  return NULL;
}

static pestle_status_t check_library(pestle_arena_t* arena,
                                     const pestle_library_api_t* library,
                                     pestle_plugin_t* plugin) {
  if (plugin->is_refused) return NULL;
  PESTLE_TRY(check_length(arena, plugin, "the length of pestle_library_api_t",
                          SIZE_UP_TO(pestle_library_api_t, run),
                          library->struct_size));
  if (plugin->is_refused) return NULL;
  if (!library->takes) return refuse_slot(arena, plugin, "library.takes");
  return library->run ? NULL : refuse_slot(arena, plugin, "library.run");
}

static pestle_status_t check_collective(pestle_arena_t* arena,
                                        const pestle_collective_api_t* c,
                                        pestle_plugin_t* plugin) {
  if (plugin->is_refused) return NULL;
  PESTLE_TRY(check_length(
      arena, plugin, "the length of pestle_collective_api_t",
      SIZE_UP_TO(pestle_collective_api_t, destroy), c->struct_size));
  if (plugin->is_refused) return NULL;
  if (!c->id) return refuse_slot(arena, plugin, "collective.id");
  if (!c->create) return refuse_slot(arena, plugin, "collective.create");
  if (!c->enqueue) return refuse_slot(arena, plugin, "collective.enqueue");
  if (!c->register_memory != !c->deregister_memory) {
    return refuse_slot(arena, plugin,
                       c->register_memory
                           ? "collective.deregister_memory, beside its pair,"
                           : "collective.register_memory, beside its pair,");
  }
  if (!c->poll) return refuse_slot(arena, plugin, "collective.poll");
  if (!c->abort) return refuse_slot(arena, plugin, "collective.abort");
  return c->destroy ? NULL : refuse_slot(arena, plugin, "collective.destroy");
}

static bool is_device_type(int32_t type) {
  static const int32_t types[] = {PESTLE_DEVICE_CPU,    PESTLE_DEVICE_CUDA,
                                  PESTLE_DEVICE_OPENCL, PESTLE_DEVICE_VULKAN,
                                  PESTLE_DEVICE_METAL,  PESTLE_DEVICE_EXT};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    if (types[i] == type) return true;
  }
  return false;
}

static pestle_status_t check_numbers(pestle_arena_t* arena,
                                     const pestle_backend_t* backend,
                                     pestle_plugin_t* plugin) {
  const char* where = pestle_plugin_where(plugin);
  if (!is_device_type(backend->device_type)) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_TABLES,
        "%s: device type %d is none that this Pestle knows; expected one of "
        "pestle_device_type_t",
        where, (int)backend->device_type);
  }
  if (backend->device_count > MOST_DEVICES) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_TABLES,
        "%s: it says that it has %d devices; expected at most %d", where,
        (int)backend->device_count, MOST_DEVICES);
  }
  if (plugin->as_target && backend->target) return NULL;  // its devices: none
  if (plugin->is_target && !backend->device_count && backend->score <= 0) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_SCORE,
                                "%s: not for this machine: it has started, but "
                                "found no device",
                                where);
  }
  if (backend->score <= 0 || backend->device_count < 0) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_TABLES,
        "%s: not usable here: its score is %d, with %d devices", where,
        (int)backend->score, (int)backend->device_count);
  }
  return NULL;
}

pestle_status_t pestle_plugin_check_tables(pestle_arena_t* arena,
                                           const pestle_backend_t* backend,
                                           pestle_plugin_t* plugin) {
  PESTLE_TRY(check_length(arena, plugin, "the length of pestle_backend_t",
                          SIZE_UP_TO(pestle_backend_t, device),
                          backend->struct_size));
  if (plugin->is_refused) return NULL;
  const pestle_target_api_t* target = backend->target;
  const pestle_device_api_t* device = backend->device;
  PESTLE_TRY(check_target(arena, target, plugin));
  PESTLE_TRY(check_device(arena, device, plugin));
  bool library = PESTLE_HAS(backend, library);
  if (library) PESTLE_TRY(check_library(arena, backend->library, plugin));
  bool collective = PESTLE_HAS(backend, collective);
  if (collective) {
    PESTLE_TRY(check_collective(arena, backend->collective, plugin));
  }
  if (plugin->is_refused) return NULL;
  bool is_empty = !target && !device && !library && !collective;
  if (is_empty || !backend->name ||
      strncmp(backend->name, plugin->name, LONGEST_NAME + 1) != 0) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_TABLES,
        "%s: pestle_backend_init gave a table named '%.40s' with %s; expected "
        "'%s' with a target, a device half or both",
        pestle_plugin_where(plugin), backend->name ? backend->name : "",
        target || device ? "something in it" : "neither half", plugin->name);
  }
  return check_numbers(arena, backend, plugin);
}

// --- What a target says of itself ---

static pestle_status_t odd_caps(const char* name, const char* field,
                                uint32_t found, const char* expected) {
  return PESTLE_ERROR(INCOMPATIBLE,
                      "backend '%s' describes a target with %s %u; expected "
                      "%s, so mend its describe()",
                      name, field, found, expected);
}

pestle_status_t pestle_plugin_check_caps(const pestle_target_caps_t* caps,
                                         const char* name) {
  const uint32_t intrinsics =
      sizeof(caps->intrinsic) / sizeof(caps->intrinsic[0]);
  if (!caps->max_lanes) {
    return odd_caps(name, "max_lanes", 0, "at least 1");
  }
  if (caps->vector_bytes && (!pestle_is_pow2(caps->vector_bytes) ||
                             caps->vector_bytes > MOST_VECTOR_BYTES)) {
    return odd_caps(name, "vector_bytes", caps->vector_bytes,
                    "0 or a power of two up to 1024");
  }
  if (caps->subgroup &&
      (!pestle_is_pow2(caps->subgroup) || caps->subgroup > MOST_SUBGROUP)) {
    return odd_caps(name, "subgroup", caps->subgroup,
                    "0 or a power of two up to 1024");
  }
  if (caps->intrinsic_count > intrinsics) {
    return odd_caps(name, "intrinsic_count", caps->intrinsic_count,
                    "at most 16");
  }
  // What lies along which axis is the backend's own matter: 0 there is allowed.
  if (caps->flags & PESTLE_TARGET_LANES && !caps->max_group_lanes) {
    return odd_caps(name, "max_group_lanes", 0,
                    "at least 1 beside PESTLE_TARGET_LANES");
  }
  return NULL;
}
