// SPDX-License-Identifier: Apache-2.0
// Work of others on streams of their own, before and after ours. Each device has a
// queue of the backend's on which nothing runs: it waits for theirs so that ours
// can wait for it, and the other way. The host waits nowhere but for the part of a
// run that is the host's.
#include "base/mem.h"
#include "base/require.h"
#include "base/status_copy.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/dlpack.h"
#include "runtime/queue.h"
#include "runtime/stream.h"

struct pestle_exchange_t {
  pestle_mutex_t mutex;
  pestle_queue_t queue;
  pestle_timeline_t* timeline;
};

// --- The queue of a device ---

static void destroy(pestle_device_t* device, pestle_exchange_t* x) {
  pestle_queue_deinit(&x->queue);
  if (x->timeline) pestle_timeline_close(x->timeline);
  pestle_timeline_release(x->timeline);
  pestle_mutex_deinit(&x->mutex);
  pestle_dealloc(device->context->core.allocator, x, sizeof(*x));
}

static pestle_status_t create(pestle_device_t* device,
                              pestle_exchange_t** out_exchange) {
  pestle_exchange_t* x =
      pestle_alloc_zero(device->context->core.allocator, sizeof(*x));
  if (!x) return PESTLE_OOM();
  pestle_mutex_init(&x->mutex);
  pestle_status_t status =
      pestle_timeline_create(device->context, device, &x->timeline);
  if (!status) status = pestle_queue_init(device, &x->queue);
  if (status) {
    destroy(device, x);
    return status;
  }
  *out_exchange = x;
  return NULL;
}

static bool knows_others(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return !pestle_device_is_cpu(device) && api &&
         pestle_device_has_streams(device) &&
         pestle_device_has_events(device) && PESTLE_HAS(api, stream_native) &&
         PESTLE_HAS(api, wait_native) && PESTLE_HAS(api, native_wait);
}

static pestle_status_t exchange_of(pestle_device_t* device,
                                   pestle_exchange_t** out_exchange) {
  PESTLE_TRY(pestle_device_check_open(device));
  if (!knows_others(device)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "device %s knows no streams of other libraries: its "
                        "backend lacks wait_native() or native_wait()",
                        device->name);
  }
  *out_exchange = atomic_load_explicit(&device->exchange, memory_order_acquire);
  if (*out_exchange) return NULL;
  pestle_exchange_t *made, *there = NULL;
  PESTLE_TRY(create(device, &made));
  if (atomic_compare_exchange_strong(&device->exchange, &there, made)) {
    *out_exchange = made;
  } else {
    destroy(device, made);
    *out_exchange = there;
  }
  return NULL;
}

void pestle_exchange_deinit(pestle_device_t* device) {
  pestle_exchange_t* x = atomic_exchange(&device->exchange, NULL);
  if (x && !pestle_device_is_of_parent(device)) destroy(device, x);
}

// --- What is queued there; its mutex is held ---

static pestle_status_t wait_native(pestle_device_t* device,
                                   const pestle_exchange_t* x, void* native) {
  return pestle_device_said(
      device,
      pestle_device_api(device)->wait_native(
          device->backend->self, device->local_index, x->queue.stream, native));
}

static pestle_status_t native_wait(pestle_device_t* device,
                                   const pestle_exchange_t* x, void* native) {
  return pestle_device_said(
      device,
      pestle_device_api(device)->native_wait(
          device->backend->self, device->local_index, native, x->queue.stream));
}

// The queue waits for |c|: on the device, if it is a matter of its backend.
static pestle_status_t wait_for(pestle_device_t* device,
                                const pestle_exchange_t* x,
                                pestle_completion_t* c) {
  const pestle_device_t* other = c->timeline->device;
  if (!other || other->backend != device->backend) {
    return pestle_completion_wait(c);
  }
  PESTLE_TRY(pestle_completion_wait_queued(c));
  if (pestle_completion_state(c) == PESTLE_COMPLETION_DONE) return NULL;
  return pestle_completion_wait_native(c, device, x->queue.stream);
}

// A completion of all that the queue was given so far.
static pestle_status_t signal(const pestle_exchange_t* x,
                              pestle_completion_t** out_completion) {
  pestle_completion_t* c;
  PESTLE_TRY(pestle_completion_create(x->timeline, &c));
  pestle_completion_settle(c, NULL, NULL);
  pestle_status_t status = pestle_completion_queue(c, x->queue.stream);
  if (status) {
    pestle_completion_release(c);
    return status;
  }
  *out_completion = c;
  return NULL;
}

// --- Imports ---

static pestle_status_t after_stream(pestle_stream_t* stream,
                                    pestle_completion_t** out_completion) {
  PESTLE_TRY(pestle_stream_check(stream));
  pestle_completion_t* c;
  PESTLE_TRY(pestle_completion_create(stream->timeline, &c));
  pestle_status_t status = pestle_stream_signal(stream, c);
  if (status) {
    pestle_completion_release(c);
    return status;
  }
  *out_completion = c;
  return NULL;
}

// |*completion| (may be NULL) becomes one that comes after |native| too.
static pestle_status_t after_native(pestle_device_t* device, void* native,
                                    pestle_completion_t** completion) {
  pestle_exchange_t* x;
  PESTLE_TRY(exchange_of(device, &x));
  pestle_completion_t* both = NULL;
  pestle_mutex_lock(&x->mutex);
  pestle_status_t status = NULL;
  if (*completion) status = wait_for(device, x, *completion);
  if (!status) status = wait_native(device, x, native);
  if (!status) status = signal(x, &both);
  pestle_mutex_unlock(&x->mutex);
  if (status) return status;
  pestle_completion_release(*completion);
  *completion = both;
  return NULL;
}

pestle_status_t pestle_dlpack_order_import(
    const pestle_dlpack_import_options_t* options, pestle_buffer_t* buffer) {
  pestle_device_t* device = buffer->device;
  pestle_completion_t* c = NULL;
  pestle_status_t status = NULL;
  if (options->stream) {
    if (options->stream->device != device &&
        !(pestle_device_is_cpu(device) &&
          pestle_device_is_cpu(options->stream->device))) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the stream is of device %s, the tensor's memory of "
                          "%s",
                          options->stream->device->name, device->name);
    }
    PESTLE_TRY(after_stream(options->stream, &c));
  }
  if (options->has_native_stream) {
    status = after_native(device, options->native_stream, &c);
  }
  // A buffer of our own that comes back may still be made, or read, elsewhere.
  if (!status && c) status = pestle_buffer_await_uses(buffer);
  if (!status && c) pestle_buffer_set_defined(buffer, c);
  pestle_completion_release(c);
  return status;
}

// --- Exports ---

static pestle_status_t before_native(pestle_device_t* device, void* native,
                                     pestle_completion_t* c) {
  pestle_exchange_t* x;
  PESTLE_TRY(exchange_of(device, &x));
  if (!c) return NULL;
  pestle_mutex_lock(&x->mutex);
  pestle_status_t status = wait_for(device, x, c);
  if (!status) status = native_wait(device, x, native);
  pestle_mutex_unlock(&x->mutex);
  return status;
}

pestle_status_t pestle_dlpack_order_export(
    const pestle_dlpack_export_options_t* options, pestle_buffer_t* buffer) {
  switch ((pestle_dlpack_order_t)options->order) {
    case PESTLE_DLPACK_NONE:
      return NULL;
    case PESTLE_DLPACK_HOST:
      return pestle_buffer_await(buffer);
    case PESTLE_DLPACK_STREAM:
      break;
  }
  if (pestle_device_is_cpu(buffer->device)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "memory of a CPU has no streams to be ordered with");
  }
  pestle_completion_t* c = pestle_buffer_defined(buffer);
  pestle_status_t status = c ? pestle_completion_known_failure(c) : NULL;
  if (!status) {
    status = before_native(buffer->device, options->native_stream, c);
  }
  pestle_completion_release(c);
  return status;
}

static void let_go(void* self, pestle_status_t failure) {
  (void)failure;
  pestle_buffer_release(self);
}

void pestle_dlpack_release_after(pestle_buffer_t* buffer, void* native) {
  pestle_completion_t* c = NULL;
  pestle_status_t status = after_native(buffer->device, native, &c);
  if (!status) status = pestle_completion_on_done(c, let_go, buffer);
  if (status && c) {
    pestle_status_t waited = pestle_completion_wait(c);
    pestle_status_release(waited);
  }
  pestle_completion_release(c);
  // A device that is lost uses nothing any more.
  if (status) pestle_buffer_release(buffer);
  pestle_status_release(status);
}

// --- Handles ---

pestle_status_t pestle_stream_handle(pestle_stream_t* stream,
                                     void** out_handle) {
  PESTLE_REQUIRE(stream && out_handle, "a stream and a place for its handle");
  *out_handle = NULL;
  pestle_device_t* device = stream->device;
  PESTLE_TRY(pestle_stream_check(stream));
  if (pestle_device_is_cpu(device)) return NULL;
  PESTLE_TRY(pestle_device_check_open(device));
  if (!knows_others(device)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "device %s has no handles for its streams: its backend "
                        "lacks stream_native()",
                        device->name);
  }
  return pestle_device_said(
      device, pestle_device_api(device)->stream_native(
                  device->backend->self, stream->native.stream, out_handle));
}
