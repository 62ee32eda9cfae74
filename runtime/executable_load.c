// SPDX-License-Identifier: Apache-2.0
// Finding the devices that a plan names and loading its kernels on them.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "base/thread.h"
#include "runtime/executable.h"

static const pestle_plan_device_t* plan_devices(const pestle_plan_t* plan) {
  return PESTLE_PLAN_RECORDS(plan, pestle_plan_device_t, devices);
}

static const char* plan_name(const pestle_executable_t* e) {
  return pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name);
}

// --- Devices ---

static pestle_status_t find_device(pestle_executable_t* e,
                                   const pestle_plan_device_t* wanted,
                                   pestle_device_t** out_device) {
  const char* backend = pestle_plan_text(e->plan, wanted->backend);
  char spec[128];
  (void)snprintf(spec, sizeof(spec), "%s:%" PRId32, backend, wanted->index);
  pestle_status_t status = pestle_context_device(e->context, spec, out_device);
  if (pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND && wanted->index) {
    // The number is only a suggestion of the machine that compiled.
    pestle_status_release(status);
    (void)snprintf(spec, sizeof(spec), "%s:0", backend);
    status = pestle_context_device(e->context, spec, out_device);
  }
  return pestle_status_annotate(
      status, "plan '%s' was compiled for backend '%s'", plan_name(e), backend);
}

static bool has_feature(const char* features, pestle_str_t feature) {
  pestle_str_t rest = pestle_str(features), field;
  while (pestle_str_next(&rest, ',', &field)) {
    if (pestle_str_equal(pestle_str_trim(field), feature)) return true;
  }
  return false;
}

// Refuses a device that lacks a feature, before its code meets the CPU.
static pestle_status_t check_features(pestle_executable_t* e,
                                      const char* needed,
                                      pestle_device_t* device) {
  if (!*needed) return NULL;
  pestle_target_caps_t* caps =
      PESTLE_ARENA_NEW(&e->arena, pestle_target_caps_t);
  if (!caps) return PESTLE_OOM();
  caps->struct_size = sizeof(*caps);
  PESTLE_TRY(pestle_device_caps(device, NULL, caps));
  char missing[512] = "";
  size_t size = 0;
  pestle_str_t rest = pestle_str(needed), field;
  while (pestle_str_next(&rest, ',', &field)) {
    field = pestle_str_trim(field);
    // "-name" says that the code does without.
    if (!field.size || field.data[0] != '+') continue;
    if (has_feature(caps->features, field) || size > 400) continue;
    int part = snprintf(missing + size, sizeof(missing) - size, "%s%.*s",
                        size ? "," : "", PESTLE_STR_ARG(field));
    size += part > 0 ? (size_t)part : 0;
    if (size >= sizeof(missing)) size = sizeof(missing) - 1;
  }
  if (!size) return NULL;
  return PESTLE_ERROR(INCOMPATIBLE,
                      "plan '%s' needs %s, which device %s (%s) lacks; compile "
                      "the model for this machine",
                      plan_name(e), missing, device->name, caps->cpu);
}

// Whoever has a device half has load().
static pestle_status_t check_cpu(const pestle_device_t* device) {
  const pestle_device_api_t* api = device->backend->device;
  if (api && PESTLE_HAS(api, cpu_entry)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "backend '%s' of device %s cannot run plans: it has "
                      "no code for the CPU",
                      device->plugin->name, device->name);
}

// A run is at home on one device; beside it there may be CPUs.
static pestle_status_t check_home(pestle_executable_t* e) {
  e->home = e->host = e->devices[0];
  e->remote = !pestle_device_is_cpu(e->home);
  for (size_t i = 1; i < e->device_count; ++i) {
    const pestle_device_t* other = e->devices[i];
    if (other == e->home || pestle_device_is_cpu(other)) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "plan '%s' runs on %s and on %s; a plan has one device "
                        "beside CPUs",
                        plan_name(e), e->home->name, other->name);
  }
  if (!e->remote) return NULL;
  e->host = pestle_registry_find(&e->context->registry, "cpu", 3, 0);
  if (e->host) return NULL;
  return PESTLE_ERROR(UNAVAILABLE,
                      "there is no CPU backend whose memory could hold what "
                      "is copied to and from device %s",
                      e->home->name);
}

static pestle_status_t check_device(pestle_executable_t* e,
                                    const pestle_plan_device_t* wanted,
                                    pestle_device_t* device) {
  if (wanted->device_type != device->dl.device_type) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "plan '%s' is for a device of type %" PRId32
                        ", but %s has type %d",
                        plan_name(e), wanted->device_type, device->name,
                        (int)device->dl.device_type);
  }
  PESTLE_TRY(pestle_device_is_cpu(device) ? check_cpu(device)
                                          : pestle_device_check_runs(device));
  return check_features(e, pestle_plan_text(e->plan, wanted->features), device);
}

pestle_status_t pestle_executable_find_devices(pestle_executable_t* e,
                                               pestle_device_t* device) {
  const pestle_plan_device_t* wanted = plan_devices(e->plan);
  bool placed = !device;
  for (size_t i = 0; i < e->device_count; ++i) {
    const char* backend = pestle_plan_text(e->plan, wanted[i].backend);
    if (device && !strcmp(backend, device->plugin->name)) {
      e->devices[i] = device;
      placed = true;
    } else {
      PESTLE_TRY(find_device(e, &wanted[i], &e->devices[i]));
    }
    PESTLE_TRY(check_device(e, &wanted[i], e->devices[i]));
  }
  if (placed) return check_home(e);
  return PESTLE_ERROR(
      INCOMPATIBLE,
      "plan '%s' was compiled for backend '%s', not for device "
      "%s; compile it for that one",
      plan_name(e), pestle_plan_text(e->plan, wanted[0].backend), device->name);
}

// --- Kernels ---

static pestle_status_t load_kernel(pestle_executable_t* e,
                                   const pestle_plan_kernel_t* record,
                                   pestle_exec_kernel_t* kernel) {
  if (record->param_count) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "kernel '%s' takes parameters, which steps of format "
                        "version %u cannot give",
                        kernel->name, PESTLE_PLAN_VERSION);
  }
  const char* code = e->plan->data + pestle_plan_header(e->plan)->code.offset +
                     record->code_offset;
  const pestle_backend_t* backend = kernel->device->backend;
  pestle_loaded_t* loaded = NULL;
  PESTLE_TRY(backend->device->load(backend->self, kernel->device->local_index,
                                   code, record->code_size, &loaded));
  PESTLE_TRY(pestle_device_check_made(kernel->device, "load()", loaded));
  kernel->loaded = loaded;
  if (!pestle_device_is_cpu(kernel->device)) return NULL;
  PESTLE_TRY(backend->device->cpu_entry(backend->self, kernel->loaded,
                                        &kernel->entry, &kernel->entry_self));
  bool has_entry = kernel->entry != NULL;
  return pestle_device_check_made(kernel->device, "cpu_entry()",
                                  has_entry ? kernel->loaded : NULL);
}

static int32_t useful_threads(const pestle_executable_t* e,
                              const pestle_plan_kernel_t* record) {
  uint64_t threads = record->work / PESTLE_PLAN_NS_PER_THREAD;
  if (threads > (uint64_t)record->group[0]) {
    threads = (uint64_t)record->group[0];
  }
  if (threads > (uint64_t)e->context->core.threads) {
    threads = (uint64_t)e->context->core.threads;
  }
  return threads ? (int32_t)threads : 1;
}

// What makes two records one kernel: the same code for the same backend.
typedef struct kernel_key_t {
  const void* backend;
  uint64_t code_offset, code_size, hash[2];
} kernel_key_t;

static pestle_status_t load_once(pestle_executable_t* e, pestle_map_t* loaded,
                                 const pestle_plan_kernel_t* record,
                                 pestle_exec_kernel_t* kernel) {
  kernel_key_t key = {.backend = kernel->device->backend,
                      .hash = {record->hash[0], record->hash[1]}};
  if (!record->hash[0] && !record->hash[1]) {
    key.code_offset = record->code_offset;
    key.code_size = record->code_size;
  }
  bool added;
  pestle_map_value_t* value = pestle_map_put(loaded, &key, sizeof(key), &added);
  if (!value) return PESTLE_OOM();
  if (added) {
    value->ptr = kernel;
    int64_t begin = pestle_context_trace_begin(e->context);
    pestle_status_t status = load_kernel(e, record, kernel);
    kernel->code = kernel->loaded;
    pestle_context_trace_end(e->context, begin, "load", "load kernel",
                             kernel->name);
    return status;
  }
  const pestle_exec_kernel_t* twin = value->ptr;
  kernel->code = twin->code;
  kernel->entry = twin->entry;
  kernel->entry_self = twin->entry_self;
  return NULL;
}

static void say_staged(const pestle_executable_t* e) {
  size_t count = 0;
  const char* first = "";
  for (size_t i = e->kernel_count; i-- > 0;) {
    if (!e->kernels[i].staged) continue;
    first = e->kernels[i].name;
    ++count;
  }
  if (!count) return;
  pestle_context_log(e->context, PESTLE_LOG_WARN,
                     "plan '%s': %zu of %zu kernels ('%s' first) run on the "
                     "CPU: device %s refused them, and their data is copied "
                     "there and back",
                     plan_name(e), count, e->kernel_count, first,
                     e->home->name);
}

pestle_status_t pestle_executable_load_kernels(pestle_executable_t* e) {
  const pestle_plan_kernel_t* records =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_kernel_t, kernels);
  pestle_map_t loaded;
  pestle_map_init(e->context->core.allocator, &loaded);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < e->kernel_count && !status; ++i) {
    pestle_exec_kernel_t* kernel = &e->kernels[i];
    kernel->device = e->devices[records[i].device];
    kernel->name = pestle_plan_text(e->plan, records[i].name);
    kernel->staged = e->remote && pestle_device_is_cpu(kernel->device);
    kernel->group = records[i].group[0];
    kernel->empty =
        !records[i].group[0] || !records[i].group[1] || !records[i].group[2];
    kernel->threads = useful_threads(e, &records[i]);
    status = pestle_status_annotate(load_once(e, &loaded, &records[i], kernel),
                                    "while loading kernel '%s' on device %s",
                                    kernel->name, kernel->device->name);
  }
  pestle_map_deinit(&loaded);
  if (!status) say_staged(e);
  return status;
}

void pestle_executable_unload_kernels(pestle_executable_t* e) {
  for (size_t i = 0; e->kernels && i < e->kernel_count; ++i) {
    pestle_exec_kernel_t* kernel = &e->kernels[i];
    if (!kernel->loaded) continue;
    const pestle_backend_t* backend = kernel->device->backend;
    backend->device->unload(backend->self, kernel->loaded);
    kernel->loaded = NULL;
  }
}
