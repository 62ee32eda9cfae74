// SPDX-License-Identifier: Apache-2.0
// Fences: the backend's where it offers them, else an event.
#include "base/mem.h"
#include "base/require.h"
#include "runtime/context.h"
#include "runtime/stream.h"

struct pestle_fence_s {
  pestle_device_t* device;
  pestle_device_fence_t* native;
  // Without one; beside one what the caller waits for, which fences have no
  // slot for.
  pestle_event_t* event;
  bool updated;
  bool is_native;  // the backend's has the last update
};

static bool has_fences(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return !pestle_device_is_cpu(device) && api &&
         PESTLE_HAS(api, fence_create) && PESTLE_HAS(api, fence_destroy) &&
         PESTLE_HAS(api, fence_update) && PESTLE_HAS(api, fence_wait);
}

static void destroy(pestle_fence_t* fence) {
  pestle_device_t* device = fence->device;
  pestle_context_t* context = device->context;
  if (fence->native && !pestle_device_is_of_parent(device)) {
    pestle_device_api(device)->fence_destroy(device->backend->self,
                                             fence->native);
  }
  pestle_event_release(fence->event);
  pestle_dealloc(context->core.allocator, fence, sizeof(*fence));
  pestle_context_release(context);
}

pestle_status_t pestle_fence_create(pestle_device_t* device,
                                    pestle_fence_t** out_fence) {
  if (out_fence) *out_fence = NULL;
  PESTLE_REQUIRE(device && out_fence, "a device and a place for the fence");
  pestle_context_t* context = device->context;
  pestle_fence_t* fence =
      pestle_alloc_zero(context->core.allocator, sizeof(*fence));
  if (!fence) return PESTLE_OOM();
  pestle_context_retain(context);
  fence->device = device;
  pestle_status_t status = pestle_event_create(device, &fence->event);
  if (!status && has_fences(device)) {
    status = pestle_device_api(device)->fence_create(
        device->backend->self, device->local_index, &fence->native);
    if (status) fence->native = NULL;
    if (!status) {
      status =
          pestle_device_check_made(device, "fence_create()", fence->native);
    }
  }
  if (status) {
    destroy(fence);
    return pestle_status_annotate(status, "while making a fence of %s",
                                  device->name);
  }
  *out_fence = fence;
  return NULL;
}

void pestle_fence_release(pestle_fence_t* fence) {
  if (fence) destroy(fence);
}

// On the backend's fence, if the stream has no work that its thread must queue
// first. |*out_done| says so.
static pestle_status_t act(
    pestle_fence_t* fence, pestle_stream_t* stream,
    pestle_status_t (*slot)(pestle_fence_t* fence, pestle_stream_t* stream,
                            pestle_buffer_t* buffer, bool cross_device),
    pestle_buffer_t* buffer, bool cross_device, bool* out_done) {
  *out_done = fence->native && pestle_stream_begin(stream);
  if (!*out_done) return NULL;
  pestle_status_t status = pestle_device_said(
      fence->device, slot(fence, stream, buffer, cross_device));
  pestle_stream_end(stream);
  return status;
}

static pestle_status_t update_native(pestle_fence_t* fence,
                                     pestle_stream_t* stream,
                                     pestle_buffer_t* buffer,
                                     bool cross_device) {
  pestle_device_t* device = fence->device;
  return pestle_device_api(device)->fence_update(
      device->backend->self, fence->native, pestle_stream_native(stream),
      pestle_buffer_data(buffer), cross_device);
}

static pestle_status_t wait_native(pestle_fence_t* fence,
                                   pestle_stream_t* stream,
                                   pestle_buffer_t* buffer, bool cross_device) {
  pestle_device_t* device = fence->device;
  (void)cross_device;
  return pestle_device_api(device)->fence_wait(
      device->backend->self, fence->native, pestle_stream_native(stream),
      pestle_buffer_data(buffer));
}

static pestle_status_t wrong_device(const pestle_fence_t* fence,
                                    const char* what,
                                    const pestle_device_t* other) {
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the fence is of device %s, but the %s is of device %s",
                      fence->device->name, what, other->name);
}

pestle_status_t pestle_fence_update(pestle_fence_t* fence,
                                    pestle_stream_t* stream,
                                    pestle_buffer_t* buffer,
                                    bool cross_device) {
  PESTLE_REQUIRE(fence && stream && buffer, "a fence, a stream and a buffer");
  pestle_device_t* device = fence->device;
  if (stream->device != device) {
    return wrong_device(fence, "stream", stream->device);
  }
  if (pestle_buffer_device(buffer) != device) {
    return wrong_device(fence, "buffer", pestle_buffer_device(buffer));
  }
  PESTLE_TRY(pestle_device_check_open(device));
  PESTLE_TRY(act(fence, stream, update_native, buffer, cross_device,
                 &fence->is_native));
  fence->updated = true;
  return pestle_event_record(fence->event, stream);
}

pestle_status_t pestle_fence_wait(pestle_fence_t* fence,
                                  pestle_stream_t* stream,
                                  pestle_buffer_t* buffer) {
  PESTLE_REQUIRE(fence && buffer, "a fence and a buffer");
  if (!fence->updated) return NULL;
  PESTLE_TRY(pestle_device_check_open(fence->device));
  bool done = false;
  if (fence->is_native && stream &&
      stream->device->backend == fence->device->backend) {
    PESTLE_TRY(act(fence, stream, wait_native, buffer, false, &done));
  }
  // Beside it for what the stream has to know of failures.
  return pestle_event_wait(fence->event, stream);
}
