// SPDX-License-Identifier: Apache-2.0
// Memory numbers and limits, of one device and of all. A device of a backend
// with an allocator of its own has that one's; what this context keeps for reuse
// above it counts as kept, not as held. Others have what the context counts.
#include <string.h>

#include "base/require.h"
#include "runtime/context.h"
#include "runtime/device.h"

static const char* name_of(pestle_memory_t what) {
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      return "active memory";
    case PESTLE_MEMORY_PEAK:
      return "peak memory";
    case PESTLE_MEMORY_CACHE:
      return "kept memory";
    case PESTLE_MEMORY_CACHE_LIMIT:
      return "cache limit";
    case PESTLE_MEMORY_LIMIT:
      return "memory limit";
    case PESTLE_MEMORY_WIRED_LIMIT:
      return "wired limit";
    case PESTLE_MEMORY_TOTAL:
      return "total memory";
  }
  return "memory number";
}

static pestle_status_t unsupported(const pestle_device_t* device,
                                   pestle_memory_t what, const char* verb) {
  return PESTLE_ERROR(UNSUPPORTED, "%s has no %s (%d) that could be %s",
                      device->name, name_of(what), (int)what, verb);
}

static bool is_number(pestle_memory_t what) {
  return (unsigned)what <= PESTLE_MEMORY_TOTAL;
}

// --- What the context counts ---

static pestle_status_t get_own(const pestle_device_t* device,
                               pestle_memory_t what, uint64_t* out_bytes) {
  const pestle_device_memory_t* memory = &device->memory;
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      *out_bytes = pestle_device_active_memory(device);
      return NULL;
    case PESTLE_MEMORY_PEAK:
      *out_bytes = atomic_load(&memory->peak);
      return NULL;
    case PESTLE_MEMORY_CACHE:
      *out_bytes = atomic_load(&memory->cached);
      return NULL;
    case PESTLE_MEMORY_CACHE_LIMIT:
      *out_bytes = pestle_memory_cache_limit(device);
      return NULL;
    case PESTLE_MEMORY_LIMIT:
      *out_bytes = atomic_load(&memory->limit);
      return NULL;
    case PESTLE_MEMORY_WIRED_LIMIT:
    case PESTLE_MEMORY_TOTAL:
      break;
  }
  return unsupported(device, what, "read");
}

static void trim_to(pestle_device_t* device, uint64_t bytes) {
  if (atomic_load(&device->memory.cached) > bytes) pestle_device_trim(device);
}

static pestle_status_t set_own(pestle_device_t* device, pestle_memory_t what,
                               uint64_t bytes) {
  pestle_device_memory_t* memory = &device->memory;
  switch (what) {
    case PESTLE_MEMORY_PEAK:
      atomic_store(&memory->peak, pestle_device_active_memory(device));
      return NULL;
    case PESTLE_MEMORY_CACHE:
      pestle_device_trim(device);
      return NULL;
    case PESTLE_MEMORY_CACHE_LIMIT:
      // 0 is "not set" in a fresh device.
      atomic_store(&memory->cache_limit, bytes + 1);
      trim_to(device, bytes);
      return NULL;
    case PESTLE_MEMORY_LIMIT:
      atomic_store(&memory->limit, bytes);
      return NULL;
    case PESTLE_MEMORY_ACTIVE:
    case PESTLE_MEMORY_WIRED_LIMIT:
    case PESTLE_MEMORY_TOTAL:
      break;
  }
  return unsupported(device, what, "set");
}

uint64_t pestle_memory_cache_limit(const pestle_device_t* device) {
  uint64_t limit =
      atomic_load_explicit(&device->memory.cache_limit, memory_order_relaxed);
  return limit ? limit - 1 : PESTLE_DEFAULT_CACHE_LIMIT;
}

pestle_status_t pestle_memory_check_limit(pestle_device_t* device,
                                          uint64_t size) {
  pestle_device_memory_t* memory = &device->memory;
  uint64_t limit = atomic_load_explicit(&memory->limit, memory_order_relaxed);
  if (!limit) return NULL;
  uint64_t active = pestle_device_active_memory(device);
  if (size <= limit && active <= limit - size) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "%s may hold %llu bytes, of which %llu are held: %llu "
                      "more are too many; raise its memory limit "
                      "(--memory-limit, PESTLE_MEMORY_LIMIT, "
                      "pestle_device_memory_set()) or release buffers",
                      device->name, (unsigned long long)limit,
                      (unsigned long long)active, (unsigned long long)size);
}

// --- One device ---

static const pestle_device_api_t* backend_getter(
    const pestle_device_t* device) {
  const pestle_device_api_t* api = device->backend->device;
  return !pestle_device_is_cpu(device) && api && PESTLE_HAS(api, memory_get)
             ? api
             : NULL;
}

pestle_status_t pestle_device_memory_get(const pestle_device_t* device,
                                         pestle_memory_t what,
                                         uint64_t* out_bytes) {
  PESTLE_REQUIRE(device && out_bytes, "a device and a place for the bytes");
  *out_bytes = 0;
  if (!is_number(what)) return unsupported(device, what, "read");
  const pestle_device_api_t* api = backend_getter(device);
  if (!api) return get_own(device, what, out_bytes);
  uint64_t bytes = 0, kept = atomic_load(&device->memory.cached);
  PESTLE_TRY(api->memory_get(device->backend->self, device->local_index, what,
                             &bytes));
  if (what == PESTLE_MEMORY_ACTIVE) bytes -= kept < bytes ? kept : bytes;
  if (what == PESTLE_MEMORY_CACHE) bytes += kept;
  *out_bytes = bytes;
  return NULL;
}

pestle_status_t pestle_device_memory_set(pestle_device_t* device,
                                         pestle_memory_t what, uint64_t bytes,
                                         uint64_t* out_before) {
  PESTLE_REQUIRE(device, "a device");
  if (out_before) *out_before = 0;
  if (!is_number(what)) return unsupported(device, what, "set");
  bool zero_only = what == PESTLE_MEMORY_PEAK || what == PESTLE_MEMORY_CACHE;
  if (zero_only && bytes) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the %s of %s can be set to 0 alone, not to %llu",
                        name_of(what), device->name, (unsigned long long)bytes);
  }
  pestle_context_enter(device->context);
  const pestle_device_api_t* api = device->backend->device;
  bool is_own =
      pestle_device_is_cpu(device) || !api || !PESTLE_HAS(api, memory_set);
  uint64_t before = 0;
  PESTLE_TRY(pestle_device_memory_get(device, what, &before));
  if (out_before) *out_before = before;
  if (is_own) return set_own(device, what, bytes);
  // What the context keeps goes back to the backend first.
  if (what == PESTLE_MEMORY_CACHE || what == PESTLE_MEMORY_PEAK) {
    PESTLE_TRY(set_own(device, what, bytes));
  }
  return api->memory_set(device->backend->self, device->local_index, what,
                         bytes, NULL);
}

// --- All devices ---

// Calls |visit| for each gpu device, or for each cpu device when there is none.
typedef pestle_status_t (*visit_fn_t)(void* user, pestle_device_t* device);

static pestle_status_t visit_all(pestle_context_t* context, visit_fn_t visit,
                                 void* user) {
  bool gpu = pestle_context_is_available(context, "gpu");
  pestle_device_t* device;
  for (int64_t i = 0; (device = pestle_registry_find(
                           &context->registry, gpu ? "gpu" : "cpu", 3, i));
       ++i) {
    PESTLE_TRY(visit(user, device));
  }
  return NULL;
}

typedef struct sum_t {
  pestle_memory_t what;
  uint64_t bytes, total;
  const pestle_backend_t* backend;  // the first
  size_t backends;                  // how many there are
} sum_t;

// Lets a number that a device has not pass.
static pestle_status_t forgive(pestle_status_t status) {
  if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) return status;
  pestle_status_release(status);
  return NULL;
}

static pestle_status_t add_number(void* user, pestle_device_t* device) {
  sum_t* sum = user;
  uint64_t bytes = 0;
  PESTLE_TRY(forgive(pestle_device_memory_get(device, sum->what, &bytes)));
  // A limit that is not set on one of them is none on all.
  sum->total =
      sum->total + bytes < sum->total ? UINT64_MAX : sum->total + bytes;
  return NULL;
}

pestle_status_t pestle_context_memory_get(pestle_context_t* context,
                                          pestle_memory_t what,
                                          uint64_t* out_bytes) {
  PESTLE_REQUIRE(context && out_bytes, "a context and a place for the bytes");
  *out_bytes = 0;
  PESTLE_TRY(pestle_context_load_backends(context));
  sum_t sum = {.what = what};
  PESTLE_TRY(visit_all(context, add_number, &sum));
  *out_bytes = sum.total;
  return NULL;
}

static pestle_status_t count_backend(void* user, pestle_device_t* device) {
  sum_t* sum = user;
  // Devices come by score; those of a backend need not be neighbours.
  sum->backends += device->local_index == 0;
  if (!sum->backend) sum->backend = device->backend;
  return NULL;
}

static pestle_status_t set_number(void* user, pestle_device_t* device) {
  sum_t* sum = user;
  uint64_t before = 0;
  pestle_status_t status =
      pestle_device_memory_set(device, sum->what, sum->bytes, &before);
  bool to_all =
      sum->what == PESTLE_MEMORY_PEAK || sum->what == PESTLE_MEMORY_CACHE;
  PESTLE_TRY(to_all ? forgive(status) : status);
  sum->total += before;
  return NULL;
}

pestle_status_t pestle_context_memory_set(pestle_context_t* context,
                                          pestle_memory_t what, uint64_t bytes,
                                          uint64_t* out_before) {
  PESTLE_REQUIRE(context, "a context");
  if (out_before) *out_before = 0;
  PESTLE_TRY(pestle_context_load_backends(context));
  sum_t sum = {.what = what, .bytes = bytes};
  if (!is_number(what) || what == PESTLE_MEMORY_ACTIVE ||
      what == PESTLE_MEMORY_TOTAL) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "no device has %s (%d) that could be set; limits, "
                        "the peak and what is kept can",
                        name_of(what), (int)what);
  }
  PESTLE_TRY(visit_all(context, count_backend, &sum));
  bool to_all = what == PESTLE_MEMORY_PEAK || what == PESTLE_MEMORY_CACHE;
  bool is_gpu = sum.backend && sum.backend->device_type != PESTLE_DEVICE_CPU;
  if (!to_all && is_gpu && sum.backends > 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a %s for all devices is ambiguous: there are %zu gpu "
                        "backends, whose devices differ; set it for each with "
                        "pestle_device_memory_set()",
                        name_of(what), sum.backends);
  }
  PESTLE_TRY(visit_all(context, set_number, &sum));
  if (out_before) *out_before = sum.total;
  return NULL;
}
