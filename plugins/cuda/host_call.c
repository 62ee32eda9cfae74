// SPDX-License-Identifier: Apache-2.0
// Calls of the host in a stream's order, and the order between a stream and one
// of the application's own.
//
// A call is an event of the driver and a place in a list. A thread of the
// stream's, started by the first call, waits for the events in turn and calls.
// The driver's own means, cuLaunchHostFunc, would hold the stream up until the
// function returns, and never calls once the device's context has failed.
#include <signal.h>
#include <string.h>

#include "plugins/cuda/backend.h"

struct cuda_call_t {
  cuda_call_t* next;
  CUevent event;
  void (*fn)(void* user, pestle_status_t failure);
  void* user;
};

// --- The thread ---

static pestle_status_t wait_for(cuda_device_t* d, CUevent event) {
  PESTLE_TRY(pestle_cuda_enter(d));
  CUresult result = d->owner->driver.cuEventSynchronize(event);
  pestle_status_t status =
      result ? pestle_cuda_failed(d, result, __FILE__, __LINE__,
                                  "work that was queued")
             : NULL;
  pestle_cuda_leave(d);
  return status;
}

static void make_call(cuda_device_t* d, cuda_call_t* call) {
  const cuda_t* cuda = d->owner;
  pestle_status_t failure = wait_for(d, call->event);
  (void)cuda->driver.cuEventDestroy_v2(call->event);
  call->fn(call->user, failure);
  cuda->host->free(cuda->host->self, call, sizeof *call);
}

static void* caller_main(void* user) {
  pestle_device_stream_t* stream = user;
  cuda_caller_t* caller = &stream->caller;
  pthread_mutex_lock(&caller->lock);
  while (caller->head || !caller->stop) {
    cuda_call_t* call = caller->head;
    if (!call) {
      pthread_cond_wait(&caller->more, &caller->lock);
      continue;
    }
    caller->head = call->next;
    if (!caller->head) caller->tail = &caller->head;
    pthread_mutex_unlock(&caller->lock);
    make_call(stream->device, call);
    pthread_mutex_lock(&caller->lock);
  }
  pthread_mutex_unlock(&caller->lock);
  return NULL;
}

// The application's handlers of signals do not run on it.
static pestle_status_t start(pestle_device_stream_t* stream) {
  cuda_caller_t* caller = &stream->caller;
  sigset_t all, before;
  if (caller->started) return NULL;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&caller->thread, NULL, caller_main, stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  caller->started = !error;
  if (!error) return NULL;
  return PESTLE_PLUGIN_ERROR(stream->device->owner->host, RESOURCE_EXHAUSTED,
                             "cuda: the system has no thread (%s) to call the "
                             "host from a stream",
                             strerror(error));
}

void pestle_cuda_caller_init(pestle_device_stream_t* stream) {
  cuda_caller_t* caller = &stream->caller;
  pthread_mutex_init(&caller->lock, NULL);
  pthread_cond_init(&caller->more, NULL);
  caller->tail = &caller->head;
}

void pestle_cuda_caller_deinit(pestle_device_stream_t* stream) {
  cuda_caller_t* caller = &stream->caller;
  if (caller->started) {
    pthread_mutex_lock(&caller->lock);
    caller->stop = true;
    pthread_cond_signal(&caller->more);
    pthread_mutex_unlock(&caller->lock);
    pthread_join(caller->thread, NULL);
  }
  pthread_cond_destroy(&caller->more);
  pthread_mutex_destroy(&caller->lock);
}

// --- Calls ---

// The caller's lock is held, so that the list has the stream's order.
static pestle_status_t mark(pestle_device_stream_t* stream, CUevent* out) {
  const cuda_device_t* d = stream->device;
  PESTLE_CUDA_TRY(d, cuEventCreate,
                  (out, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  CUresult result = d->owner->driver.cuEventRecord(*out, stream->handle);
  if (!result) return NULL;
  (void)d->owner->driver.cuEventDestroy_v2(*out);
  return pestle_cuda_failed(d, result, __FILE__, __LINE__, "cuEventRecord");
}

static pestle_status_t queue_call(pestle_device_stream_t* stream,
                                  cuda_call_t* call) {
  cuda_caller_t* caller = &stream->caller;
  pthread_mutex_lock(&caller->lock);
  pestle_status_t status = start(stream);
  if (!status) status = mark(stream, &call->event);
  if (!status) {
    *caller->tail = call;
    caller->tail = &call->next;
    cuda_queued(stream);
    pthread_cond_signal(&caller->more);
  }
  pthread_mutex_unlock(&caller->lock);
  return status;
}

static pestle_status_t stream_host_call(
    void* self, pestle_device_stream_t* stream,
    void (*fn)(void* user, pestle_status_t failure), void* user) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a call of the host"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  cuda_call_t* call = host->alloc(host->self, sizeof *call);
  pestle_status_t status = NULL;
  if (call) {
    *call = (cuda_call_t){.fn = fn, .user = user};
    status = queue_call(stream, call);
    if (status) host->free(host->self, call, sizeof *call);
  } else {
    status = PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                                 "cuda: no host memory for a call of the host");
  }
  pestle_cuda_leave(stream->device);
  return status;
}

// --- Streams of the application ---

static pestle_status_t stream_native(void* self, pestle_device_stream_t* stream,
                                     void** out_native) {
  (void)self;
  atomic_store(&stream->ends_in_kernel, false);  // of whatever is queued there
  *out_native = stream->handle;
  return NULL;
}

// Whether the application makes a graph of what |stream| is given.
static bool is_capturing(const cuda_device_t* d, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return !d->owner->driver.cuStreamIsCapturing(stream, &status) &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// The driver keeps what it needs of an event that is destroyed. A graph waits for an
// event of outside when it is launched. What is put into a graph does not run now, so
// that nothing waits for it: the stream that did would become a part of the capture.
static pestle_status_t order(const cuda_device_t* d, CUstream first,
                             CUstream then) {
  const cuda_driver_t* driver = &d->owner->driver;
  CUevent event = NULL;
  const char* what = "cuEventRecord";
  if (is_capturing(d, first)) return NULL;
  unsigned flags = is_capturing(d, then) ? CU_EVENT_WAIT_EXTERNAL : 0;
  PESTLE_CUDA_TRY(d, cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING));
  CUresult result = driver->cuEventRecord(event, first);
  if (!result) {
    what = "cuStreamWaitEvent";
    result = driver->cuStreamWaitEvent(then, event, flags);
  }
  (void)driver->cuEventDestroy_v2(event);
  return result ? pestle_cuda_failed(d, result, __FILE__, __LINE__, what)
                : NULL;
}

static pestle_status_t check_device(const pestle_device_stream_t* stream,
                                    int32_t device) {
  if (stream->device->index == device) return NULL;
  return PESTLE_PLUGIN_ERROR(
      stream->device->owner->host, INVALID_ARGUMENT,
      "cuda: the stream is of device %d, and the native one of device %d",
      (int)stream->device->index, (int)device);
}

static pestle_status_t wait_native(void* self, int32_t device,
                                   pestle_device_stream_t* stream,
                                   void* native) {
  (void)self;
  PESTLE_TRY(check_device(stream, device));
  if (native == stream->handle) return NULL;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a wait"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = order(stream->device, native, stream->handle);
  if (!status) cuda_queued(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t native_wait(void* self, int32_t device, void* native,
                                   pestle_device_stream_t* stream) {
  (void)self;
  PESTLE_TRY(check_device(stream, device));
  if (native == stream->handle) return NULL;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a signal"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = order(stream->device, stream->handle, native);
  if (!status) cuda_queued(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t native_call(void* self, int32_t device,
                                   void (*fn)(void* user), void* user) {
  cuda_device_t* d;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(pestle_cuda_enter(d));
  fn(user);
  pestle_cuda_leave(d);
  return NULL;
}

void pestle_cuda_host_call_slots(pestle_device_api_t* api) {
  api->stream_host_call = stream_host_call;
  api->stream_native = stream_native;
  api->wait_native = wait_native;
  api->native_wait = native_wait;
  api->native_call = native_call;
}
