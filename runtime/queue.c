// SPDX-License-Identifier: Apache-2.0
#include "runtime/queue.h"

#include <string.h>

#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/context.h"

// Bytes of the host that a staged copy goes through at a time.
#define STAGE_BYTES ((size_t)4 << 20)

// --- What there is ---

bool pestle_device_has_streams(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return api && PESTLE_HAS(api, stream_create) &&
         PESTLE_HAS(api, stream_synchronize) && PESTLE_HAS(api, stream_destroy);
}

bool pestle_device_has_events(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return api && PESTLE_HAS(api, event_create) &&
         PESTLE_HAS(api, event_destroy) && PESTLE_HAS(api, event_wait) &&
         PESTLE_HAS(api, event_wait_stream) && PESTLE_HAS(api, event_signal) &&
         PESTLE_HAS(api, event_is_signalled);
}

bool pestle_device_has_graphs(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return api && pestle_device_has_streams(device) &&
         PESTLE_HAS(api, graph_begin) && PESTLE_HAS(api, graph_end) &&
         PESTLE_HAS(api, graph_launch) && PESTLE_HAS(api, graph_destroy) &&
         PESTLE_HAS(api, queue_copy);
}

bool pestle_device_is_of_parent(const pestle_device_t* device) {
  return !pestle_device_is_cpu(device) &&
         device->fork_count != atomic_load(&device->context->fork_count);
}

pestle_status_t pestle_device_check_open(const pestle_device_t* device) {
  pestle_context_enter(device->context);
  if (device->plugin->as_target) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "device %s compiles and does nothing else here: %s",
                        device->name, device->plugin->reason);
  }
  if (!pestle_device_is_of_parent(device)) return pestle_device_fault(device);
  return PESTLE_ERROR(UNAVAILABLE,
                      "device %s was opened before fork(), which its backend "
                      "does not outlive; make a context in the child",
                      device->name);
}

pestle_status_t pestle_device_fault(const pestle_device_t* device) {
  return pestle_status_retain(atomic_load(&device->fault));
}

pestle_status_t pestle_device_said(pestle_device_t* device,
                                   pestle_status_t status) {
  pestle_status_t first = NULL;
  if (pestle_status_code(status) != PESTLE_STATUS_UNAVAILABLE ||
      pestle_device_is_cpu(device)) {
    return status;
  }
  (void)pestle_status_retain(status);
  if (atomic_compare_exchange_strong(&device->fault, &first, status)) {
    return status;
  }
  pestle_status_release(status);
  pestle_status_release(status);
  return pestle_status_retain(first);
}

// The registry takes no device half without load() and unload().
static const char* missing_slot(const pestle_device_api_t* api) {
  if (!api) return "device half";
  if (!PESTLE_HAS(api, launch)) return "launch()";
  if (!PESTLE_HAS(api, allocate)) return "allocate()";
  if (!PESTLE_HAS(api, deallocate)) return "deallocate()";
  if (!PESTLE_HAS(api, copy_from_host)) return "copy_from_host()";
  if (!PESTLE_HAS(api, copy_to_host)) return "copy_to_host()";
  return NULL;
}

pestle_status_t pestle_device_check_runs(const pestle_device_t* device) {
  PESTLE_TRY(pestle_device_check_open(device));
  const char* missing = missing_slot(pestle_device_api(device));
  if (!missing) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "backend '%s' of device %s cannot run plans: it has no "
                      "%s; choose another device",
                      device->plugin->name, device->name, missing);
}

pestle_status_t pestle_device_check_made(const pestle_device_t* device,
                                         const char* slot, const void* made) {
  if (made) return NULL;
  return PESTLE_ERROR(INTERNAL,
                      "backend '%s' of device %s says that %s has succeeded, "
                      "but it gave nothing; mend the backend",
                      device->plugin->name, device->name, slot);
}

// --- Life ---

pestle_status_t pestle_queue_init(pestle_device_t* device,
                                  pestle_queue_t* out_queue) {
  pestle_queue_t queue = {.device = device};
  *out_queue = (pestle_queue_t){.device = NULL};
  if (pestle_device_has_streams(device)) {
    pestle_status_t status = pestle_device_said(
        device, pestle_device_api(device)->stream_create(
                    device->backend->self, device->local_index, &queue.stream));
    if (!status) {
      status =
          pestle_device_check_made(device, "stream_create()", queue.stream);
    }
    if (status) {
      return pestle_status_annotate(
          status, "while making a stream of device %s", device->name);
    }
  }
  *out_queue = queue;
  return NULL;
}

void pestle_queue_deinit(pestle_queue_t* queue) {
  if (!queue->device || !queue->stream) return;
  pestle_device_api(queue->device)
      ->stream_destroy(queue->device->backend->self, queue->stream);
  queue->stream = NULL;
}

// --- The host and one device ---

static pestle_status_t no_copies(const pestle_device_t* device,
                                 const char* slot) {
  return PESTLE_ERROR(UNSUPPORTED,
                      "device %s offers no copies to or from the host: its "
                      "backend has no %s",
                      device->name, slot);
}

static pestle_status_t copy_from_host(pestle_device_t* device, const void* from,
                                      void* to, size_t size) {
  const pestle_device_api_t* api = pestle_device_api(device);
  PESTLE_TRY(pestle_device_check_open(device));
  if (!PESTLE_HAS(api, copy_from_host))
    return no_copies(device, "copy_from_host()");
  return pestle_device_said(
      device, api->copy_from_host(device->backend->self, device->local_index,
                                  from, to, size));
}

pestle_status_t pestle_device_write(pestle_device_t* device, const void* from,
                                    void* to, size_t size) {
  if (!size) return NULL;
  if (pestle_device_is_cpu(device)) {
    memmove(to, from, size);
    return NULL;
  }
  return pestle_status_annotate(copy_from_host(device, from, to, size),
                                "while copying %zu bytes to device %s", size,
                                device->name);
}

static pestle_status_t copy_to_host(pestle_device_t* device, const void* from,
                                    void* to, size_t size) {
  const pestle_device_api_t* api = pestle_device_api(device);
  PESTLE_TRY(pestle_device_check_open(device));
  if (!PESTLE_HAS(api, copy_to_host))
    return no_copies(device, "copy_to_host()");
  return pestle_device_said(
      device, api->copy_to_host(device->backend->self, device->local_index,
                                from, to, size));
}

pestle_status_t pestle_device_read(pestle_device_t* device, const void* from,
                                   void* to, size_t size) {
  if (!size) return NULL;
  if (pestle_device_is_cpu(device)) {
    memmove(to, from, size);
    return NULL;
  }
  return pestle_status_annotate(copy_to_host(device, from, to, size),
                                "while copying %zu bytes from device %s", size,
                                device->name);
}

// --- Two devices ---

static pestle_status_t copy_staged(pestle_device_t* from_device,
                                   const char* from, pestle_device_t* to_device,
                                   char* to, size_t size) {
  pestle_allocator_t allocator = from_device->context->core.allocator;
  size_t stage = size < STAGE_BYTES ? size : STAGE_BYTES;
  char* host = pestle_alloc_aligned(allocator, stage, PESTLE_BUFFER_ALIGNMENT);
  if (!host) return PESTLE_OOM();
  pestle_status_t status = NULL;
  for (size_t at = 0; at < size && !status; at += stage) {
    size_t part = size - at < stage ? size - at : stage;
    status = pestle_device_read(from_device, from + at, host, part);
    if (!status) status = pestle_device_write(to_device, host, to + at, part);
  }
  pestle_free_aligned(allocator, host, stage, PESTLE_BUFFER_ALIGNMENT);
  return status;
}

pestle_status_t pestle_device_copy(pestle_device_t* from_device,
                                   const void* from, pestle_device_t* to_device,
                                   void* to, size_t size) {
  if (!size) return NULL;
  if (pestle_device_is_cpu(from_device)) {
    return pestle_device_write(to_device, from, to, size);
  }
  if (pestle_device_is_cpu(to_device)) {
    return pestle_device_read(from_device, from, to, size);
  }
  PESTLE_TRY(pestle_device_check_open(from_device));
  const pestle_device_api_t* api = pestle_device_api(from_device);
  if (from_device->backend != to_device->backend ||
      !PESTLE_HAS(api, copy_device)) {
    return copy_staged(from_device, from, to_device, to, size);
  }
  return pestle_status_annotate(
      pestle_device_said(
          to_device,
          api->copy_device(from_device->backend->self, from_device->local_index,
                           from, to_device->local_index, to, size)),
      "while copying %zu bytes from device %s to device %s", size,
      from_device->name, to_device->name);
}

// --- Queued ---

pestle_status_t pestle_queue_wait(const pestle_queue_t* queue) {
  if (!queue->stream) return NULL;
  pestle_device_t* device = queue->device;
  return pestle_device_said(device,
                            pestle_device_api(device)->stream_synchronize(
                                device->backend->self, queue->stream));
}

pestle_status_t pestle_queue_launch(const pestle_queue_t* queue,
                                    const pestle_launch_t* launch) {
  pestle_device_t* device = queue->device;
  return pestle_device_said(
      device,
      pestle_device_api(device)->launch(
          device->backend->self, device->local_index, queue->stream, launch));
}

pestle_status_t pestle_queue_from_host(const pestle_queue_t* queue,
                                       const void* from, void* to,
                                       size_t size) {
  pestle_device_t* device = queue->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!size) return NULL;
  if (queue->stream && PESTLE_HAS(api, queue_from_host)) {
    return pestle_status_annotate(
        pestle_device_said(
            device, api->queue_from_host(device->backend->self, queue->stream,
                                         from, to, size)),
        "while queueing a copy of %zu bytes to device %s", size, device->name);
  }
  PESTLE_TRY(pestle_queue_wait(queue));
  return pestle_device_write(device, from, to, size);
}

pestle_status_t pestle_queue_to_host(const pestle_queue_t* queue,
                                     const void* from, void* to, size_t size) {
  pestle_device_t* device = queue->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!size) return NULL;
  if (queue->stream && PESTLE_HAS(api, queue_to_host)) {
    return pestle_status_annotate(
        pestle_device_said(
            device, api->queue_to_host(device->backend->self, queue->stream,
                                       from, to, size)),
        "while queueing a copy of %zu bytes from device %s", size,
        device->name);
  }
  PESTLE_TRY(pestle_queue_wait(queue));
  return pestle_device_read(device, from, to, size);
}

// Through a copy of all of it.
static pestle_status_t copy_overlapping(const pestle_queue_t* queue,
                                        const void* from, void* to,
                                        size_t size) {
  if (queue->records) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "a recording cannot hold a copy of %zu bytes onto "
                        "themselves",
                        size);
  }
  pestle_allocator_t allocator = queue->device->context->core.allocator;
  void* host = pestle_alloc_aligned(allocator, size, PESTLE_BUFFER_ALIGNMENT);
  if (!host) return PESTLE_OOM();
  pestle_status_t status = pestle_queue_wait(queue);
  if (!status) status = pestle_device_read(queue->device, from, host, size);
  if (!status) status = pestle_device_write(queue->device, host, to, size);
  pestle_free_aligned(allocator, host, size, PESTLE_BUFFER_ALIGNMENT);
  return status;
}

pestle_status_t pestle_queue_copy(const pestle_queue_t* queue, const void* from,
                                  void* to, size_t size) {
  pestle_device_t* device = queue->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  uintptr_t begin = (uintptr_t)from, target = (uintptr_t)to;
  if (!size || begin == target) return NULL;
  if (begin < target + size && target < begin + size) {
    return copy_overlapping(queue, from, to, size);
  }
  if (queue->stream && PESTLE_HAS(api, queue_copy)) {
    return pestle_status_annotate(
        pestle_device_said(
            device, api->queue_copy(device->backend->self, queue->stream, from,
                                    to, size)),
        "while queueing a copy of %zu bytes on device %s", size, device->name);
  }
  PESTLE_TRY(pestle_queue_wait(queue));
  return pestle_device_copy(device, from, device, to, size);
}
