// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/str.h"
#include "runtime/context.h"

// --- Life; called by the registry ---

// No device has more: a backend that never says which is its last ends here.
#define MOST_PROPERTIES 256

pestle_status_t pestle_device_look_for_software(const pestle_backend_t* backend,
                                                int32_t index,
                                                bool* out_is_software) {
  const pestle_device_api_t* api = backend->device;
  *out_is_software = false;
  if (backend->device_type == PESTLE_DEVICE_CPU || !api ||
      !PESTLE_HAS(api, property)) {
    return NULL;
  }
  for (uint32_t i = 0; i < MOST_PROPERTIES; ++i) {
    pestle_device_property_t property = {.struct_size = sizeof(property)};
    pestle_status_t status = api->property(backend->self, index, i, &property);
    if (pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND) {
      pestle_status_release(status);
      return NULL;
    }
    PESTLE_TRY(status);
    if (!strncmp(property.name, "software", sizeof(property.name))) {
      *out_is_software = !property.is_text && property.integer;
      return NULL;
    }
  }
  return NULL;
}

pestle_status_t pestle_device_create(pestle_context_t* context,
                                     pestle_arena_t* arena,
                                     const pestle_plugin_t* plugin,
                                     pestle_device_number_t number,
                                     bool is_software,
                                     pestle_device_t** out_device) {
  char name[96];
  if (plugin->device_count <= 1) {
    (void)snprintf(name, sizeof(name), "%s", plugin->name);
  } else {
    (void)snprintf(name, sizeof(name), "%s:%d", plugin->name,
                   (int)number.named);
  }
  pestle_device_t* device = PESTLE_ARENA_NEW(arena, pestle_device_t);
  char* copy = pestle_arena_strdup(arena, name);
  if (!device || !copy) return PESTLE_OOM();
  device->context = context;
  device->plugin = plugin;
  device->backend = plugin->backend;
  device->name = copy;
  device->local_index = number.local;
  device->is_software = is_software;
  device->fork_count = atomic_load(&context->fork_count);
  device->dl.device_type = plugin->device_type;
  // All CPU devices share the host's memory, which DLPack numbers 0.
  device->dl.device_id =
      plugin->device_type == PESTLE_DEVICE_CPU ? 0 : number.dlpack;
  pestle_mutex_init(&device->memory.mutex);
  *out_device = device;
  return NULL;
}

void pestle_device_destroy(pestle_device_t* device) {
  pestle_device_trim(device);
  pestle_status_release(atomic_load(&device->fault));
  pestle_mutex_deinit(&device->memory.mutex);
}

// --- Finding one ---

// "cpu:0 (llvm), cpu:1 (ref), software:0 (opencl)"
static void append_devices(pestle_registry_t* registry, pestle_strbuf_t* text) {
  static const char* const types[] = {"cpu", "gpu", "software"};
  size_t before = text->size;
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
    pestle_device_t* device;
    size_t size = strlen(types[t]);
    for (int64_t i = 0;
         (device = pestle_registry_find(registry, types[t], size, i)); ++i) {
      if (text->size > before) pestle_strbuf_append_c(text, ", ");
      pestle_strbuf_appendf(text, "%s:%d (%s)", types[t], (int)i, device->name);
    }
  }
  if (text->size == before) pestle_strbuf_append_c(text, "none");
}

// Who asks for a gpu where drivers compute on the CPU alone is told how to ask for
// one of these.
static void append_software(pestle_registry_t* registry, pestle_str_t name,
                            pestle_strbuf_t* text) {
  if (!pestle_str_equal_c(name, "gpu") ||
      pestle_registry_find(registry, "gpu", 3, 0)) {
    return;
  }
  const pestle_device_t* device =
      pestle_registry_find(registry, "software", strlen("software"), 0);
  if (!device) return;
  pestle_strbuf_appendf(text,
                        "; software:0 is no gpu but a driver that computes on "
                        "the CPU: ask for '%s' or 'software' to try it",
                        device->name);
}

// What |name| may have been meant for: a type, or a backend that is used or not.
static pestle_closest_t closest_device(pestle_registry_t* registry,
                                       pestle_str_t name) {
  pestle_closest_t closest = pestle_closest_to(name);
  pestle_closest_offer(&closest, PESTLE_STR("cpu"));
  pestle_closest_offer(&closest, PESTLE_STR("gpu"));
  pestle_closest_offer(&closest, PESTLE_STR("software"));
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->plugins.size; ++i)
    pestle_closest_offer(&closest, pestle_str(registry->plugins.data[i]->name));
  pestle_mutex_unlock(&registry->mutex);
  // A type or backend that is there lacks the number alone.
  if (pestle_str_equal(closest.best, name)) closest.best.size = 0;
  return closest;
}

// The reasons of refused backends with the name that was asked for; all of
// them when a type was.
static void append_reasons(pestle_registry_t* registry, pestle_str_t name,
                           pestle_strbuf_t* text) {
  bool is_type = pestle_str_is_one_of(name, "cpu gpu software");
  pestle_mutex_lock(&registry->mutex);
  for (size_t i = 0; i < registry->plugins.size; ++i) {
    const pestle_plugin_t* plugin = registry->plugins.data[i];
    if (plugin->backend || !*plugin->reason) continue;
    if (!is_type && !pestle_str_equal_c(name, plugin->name)) continue;
    pestle_strbuf_appendf(text, "; not usable: %s", plugin->reason);
  }
  pestle_mutex_unlock(&registry->mutex);
}

static pestle_status_t not_found(pestle_context_t* context, const char* spec,
                                 pestle_str_t name) {
  pestle_strbuf_t text;
  pestle_strbuf_init(context->core.allocator, &text);
  append_devices(&context->registry, &text);
  append_software(&context->registry, name, &text);
  append_reasons(&context->registry, name, &text);
  pestle_closest_t closest = closest_device(&context->registry, name);
  char hint[PESTLE_HINT];
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status = PESTLE_ERROR(NOT_FOUND, "there is no device '%s'; there are: %s%s",
                          spec, pestle_strbuf_cstr(&text),
                          pestle_closest_hint(&closest, hint));
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// Who asks for a CPU and gets the interpreter, since no other backend of CPUs came
// from the folders that were searched, is told so, once.
static void say_fallback(pestle_context_t* context,
                         const pestle_device_t* device) {
  if (!(PESTLE_HAS(device->backend, flags) &&
        (device->backend->flags & PESTLE_BACKEND_FALLBACK)) ||
      context->manual_backends ||
      atomic_exchange(&context->has_said_fallback, true)) {
    return;
  }
  const char* path = context->backend_path;
  pestle_context_log(
      context, PESTLE_LOG_WARN,
      "'cpu' is the fallback '%s', which interprets kernels slowly: %s%s%s no "
      "other backend for CPUs that this machine can use; 'pestle plugins list "
      "--why' says what was looked at",
      device->name, path ? "the backend path '" : "the search path",
      path ? path : "", path ? "' has" : " has");
}

pestle_status_t pestle_context_device(pestle_context_t* context,
                                      const char* spec,
                                      pestle_device_t** out_device) {
  if (out_device) *out_device = NULL;
  PESTLE_REQUIRE(context && out_device, "a context and a place for the device");
  if (!spec) spec = context->default_device;
  pestle_str_t name, number;
  int64_t index = 0;
  bool numbered = pestle_str_split(pestle_str(spec), ':', &name, &number);
  if (!name.size ||
      (numbered && (!pestle_str_parse_i64(number, &index) || index < 0))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "device '%s' is not understood; expected a type or a "
                        "backend, with or without a number: cpu, gpu:1, ref",
                        spec);
  }
  PESTLE_TRY(pestle_registry_load_for(context, name.data, name.size));
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  *out_device = pestle_registry_find(registry, name.data, name.size, index);
  if (*out_device) {
    if (!index && pestle_str_equal_c(name, "cpu"))
      say_fallback(context, *out_device);
    return NULL;
  }
  // What is not there may be of a backend that was put off.
  PESTLE_TRY(pestle_context_load_backends(context));
  *out_device = pestle_registry_find(registry, name.data, name.size, index);
  return *out_device ? NULL : not_found(context, spec, name);
}

pestle_status_t pestle_context_target(pestle_context_t* context,
                                      const char* spec,
                                      pestle_device_t** out_device) {
  pestle_status_t missing = pestle_context_device(context, spec, out_device);
  if (pestle_status_code(missing) != PESTLE_STATUS_NOT_FOUND) return missing;
  if (!spec) spec = context->default_device;
  pestle_status_t status =
      pestle_registry_target(&context->registry, pestle_str(spec), out_device);
  if (!status && !*out_device) return missing;
  pestle_status_release(missing);
  return status;
}

pestle_status_t pestle_context_fallback(pestle_context_t* context,
                                        const pestle_device_t* device,
                                        pestle_device_t** out_device) {
  if (out_device) *out_device = NULL;
  PESTLE_REQUIRE(context && device && out_device,
                 "a context, a device and a place for its fallback");
  int32_t type = device->backend->device_type;
  PESTLE_TRY(type == PESTLE_DEVICE_CPU
                 ? pestle_registry_load_for(context, "cpu", 3)
                 : pestle_context_load_backends(context));
  pestle_context_enter(context);
  pestle_device_t* found = pestle_registry_fallback(&context->registry, type);
  // What no backend of the type takes runs on the host.
  if (!found && type != PESTLE_DEVICE_CPU) {
    found = pestle_registry_fallback(&context->registry, PESTLE_DEVICE_CPU);
  }
  if (found && found->backend != device->backend) *out_device = found;
  return NULL;
}

// --- Getters ---

const char* pestle_device_type(const pestle_device_t* device) {
  if (!device) return "";
  if (device->is_software) return "software";
  return pestle_device_is_cpu(device) ? "cpu" : "gpu";
}

const char* pestle_device_name(const pestle_device_t* device) {
  return device ? device->name : "";
}

pestle_dl_device_t pestle_device_dl(const pestle_device_t* device) {
  return device ? device->dl : (pestle_dl_device_t){0, 0};
}

pestle_context_t* pestle_device_context(const pestle_device_t* device) {
  return device ? device->context : NULL;
}

bool pestle_device_is_target(const pestle_device_t* device) {
  return device && device->plugin->as_target;
}

const pestle_backend_t* pestle_device_backend(const pestle_device_t* device) {
  return device ? device->backend : NULL;
}

const char* pestle_device_backend_id(const pestle_device_t* device) {
  return device ? device->plugin->id : "";
}

// Bits of dtypes that |plugin|'s headers did not have stand for nothing: i2 is
// the first of minor version 3.
static void forget_unknown(const pestle_plugin_t* plugin,
                           pestle_target_caps_t* caps) {
  uint32_t known = (UINT32_C(1) << PESTLE_PLUGIN_DTYPES) - 1;
  if (plugin->abi_info && plugin->abi_info()->abi_minor < 3) {
    known = (UINT32_C(1) << PESTLE_I2) - 1;
  }
  for (unsigned op = 0; op < PESTLE_KIR_OP_LIMIT; ++op)
    caps->op_dtypes[op] &= known;
  caps->storage_dtypes &= known;
}

pestle_status_t pestle_device_caps(pestle_device_t* device, const char* cpu,
                                   pestle_target_caps_t* out_caps) {
  PESTLE_REQUIRE(device && out_caps,
                 "a device and a place for its description");
  size_t size = out_caps->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_target_caps_t.struct_size is not set");
  }
  const pestle_target_api_t* target = device->backend->target;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  if (!target || !PESTLE_HAS(target, describe)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "backend %s has no compiler half that could describe "
                        "its target",
                        device->plugin->name);
  }
  PESTLE_TRY(target->describe(device->backend->self, cpu, &caps));
  // Fixed-size texts of another party.
  caps.name[sizeof(caps.name) - 1] = 0;
  caps.cpu[sizeof(caps.cpu) - 1] = 0;
  caps.features[sizeof(caps.features) - 1] = 0;
  PESTLE_TRY(pestle_plugin_check_caps(&caps, device->plugin->name));
  forget_unknown(device->plugin, &caps);
  caps.struct_size = size;
  memcpy(out_caps, &caps, size < sizeof(caps) ? size : sizeof(caps));
  return NULL;
}

pestle_status_t pestle_device_property(pestle_device_t* device, uint32_t index,
                                       pestle_device_property_t* out_property) {
  PESTLE_REQUIRE(device && out_property, "a device and a place for a property");
  size_t size = out_property->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_device_property_t.struct_size is not set");
  }
  const pestle_device_api_t* api = device->backend->device;
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  if (!api || !PESTLE_HAS(api, property)) {
    return PESTLE_ERROR(NOT_FOUND, "%s has no properties", device->name);
  }
  PESTLE_TRY(api->property(device->backend->self, device->local_index, index,
                           &property));
  // Fixed-size texts of another party.
  property.name[sizeof(property.name) - 1] = 0;
  property.text[sizeof(property.text) - 1] = 0;
  property.struct_size = size;
  memcpy(out_property, &property,
         size < sizeof(property) ? size : sizeof(property));
  return NULL;
}
