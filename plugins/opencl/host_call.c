// SPDX-License-Identifier: Apache-2.0
// Calls of the host in a stream's order, and the order between a stream and a
// command queue of the application's.
#include "plugins/opencl/opencl.h"

typedef struct host_call_t {
  const opencl_t* o;
  pestle_device_stream_t* stream;
  void (*fn)(void* user, pestle_status_t failure);
  void* user;
} host_call_t;

static void add_calls(pestle_device_stream_t* stream, int count) {
  pthread_mutex_lock(&stream->lock);
  stream->calls += (uint32_t)count;
  pthread_cond_broadcast(&stream->called);
  pthread_mutex_unlock(&stream->lock);
}

static void make_call(cl_event_t marker, int32_t error, void* data) {
  host_call_t* call = data;
  const opencl_t* o = call->o;
  pestle_device_stream_t* stream = call->stream;
  pestle_status_t failure = NULL;
  if (error < 0) {
    failure = PESTLE_PLUGIN_ERROR(
        o->host, INTERNAL, "opencl: work that was queued on %s failed with %d",
        stream->device->name, (int)error);
  }
  call->fn(call->user, failure);
  o->cl->ReleaseEvent(marker);
  o->host->free(o->host->self, call, sizeof *call);
  add_calls(stream, -1);
}

pestle_status_t pestle_opencl_stream_host_call(
    void* self, pestle_device_stream_t* stream,
    void (*fn)(void* user, pestle_status_t failure), void* user) {
  opencl_t* o = self;
  cl_event_t marker;
  host_call_t* call = o->host->alloc(o->host->self, sizeof *call);
  if (!call) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory for a call of the host");
  }
  *call = (host_call_t){o, stream, fn, user};
  add_calls(stream, 1);
  int32_t error =
      o->cl->EnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker);
  if (!error) {
    error = o->cl->SetEventCallback(marker, CL_COMPLETE, make_call, call);
    if (error) o->cl->ReleaseEvent(marker);
  }
  if (error) {
    o->host->free(o->host->self, call, sizeof *call);
    add_calls(stream, -1);
  }
  OPENCL_CHECK(o, error);
  // Without it the queue may keep the marker to itself; a failure comes again
  // from whatever is asked of the queue next.
  (void)o->cl->Flush(stream->queue);
  return NULL;
}

// --- Queues of the application ---

pestle_status_t pestle_opencl_stream_native(void* self,
                                            pestle_device_stream_t* stream,
                                            void** out_native) {
  (void)self;
  *out_native = stream->queue;
  return NULL;
}

// A queue of another context is refused by the driver.
static pestle_status_t order(const opencl_t* o, cl_queue_t first,
                             cl_queue_t then) {
  cl_event_t marker;
  if (first == then) return NULL;
  OPENCL_CHECK(o, o->cl->EnqueueMarkerWithWaitList(first, 0, NULL, &marker));
  int32_t error = o->cl->EnqueueBarrierWithWaitList(then, 1, &marker, NULL);
  o->cl->ReleaseEvent(marker);
  if (error == CL_INVALID_CONTEXT) {
    return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                               "opencl: the command queue is not of the "
                               "context that this device is used in");
  }
  OPENCL_CHECK(o, error);
  OPENCL_CHECK(o, o->cl->Flush(first));
  return NULL;
}

pestle_status_t pestle_opencl_wait_native(void* self, int32_t device,
                                          pestle_device_stream_t* stream,
                                          void* native) {
  (void)device;
  return order(self, native, stream->queue);
}

pestle_status_t pestle_opencl_native_wait(void* self, int32_t device,
                                          void* native,
                                          pestle_device_stream_t* stream) {
  (void)device;
  return order(self, stream->queue, native);
}
