// SPDX-License-Identifier: Apache-2.0
// The device half: memory, streams, events, fences, launches.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/slots.h"
#include "plugins/opencl/opencl.h"

struct pestle_loaded_s {
  opencl_device_t* device;
  cl_program_t program;
  cl_kernel_t kernel;
  size_t group[3], lane[3];
  uint32_t arg_count, param_count;
};

static pestle_status_t device_of(opencl_t* o, int32_t index,
                                 opencl_device_t** out_device) {
  *out_device = NULL;
  if (index < 0 || index >= o->device_count) {
    return PESTLE_PLUGIN_ERROR(o->host, NOT_FOUND,
                               "opencl has %d devices and no %d",
                               o->device_count, index);
  }
  *out_device = &o->device[index];
  return NULL;
}

// --- Memory ---

static pestle_status_t allocate(void* self, int32_t device, size_t size,
                                void** out_data) {
  opencl_t* o = self;
  opencl_device_t* d;
  int32_t error = 0;
  *out_data = NULL;
  PESTLE_TRY(device_of(o, device, &d));
  if (!size) size = 1;
  pthread_mutex_lock(&d->lock);
  bool fits = d->active + size <= d->limit && size <= d->most_memory;
  if (fits) {
    d->active += size;
    if (d->active > d->peak) d->peak = d->active;
  }
  pthread_mutex_unlock(&d->lock);
  opencl_block_t* block =
      fits ? o->host->alloc(o->host->self, sizeof *block) : NULL;
  void* address = MAP_FAILED;
  cl_mem_t memory = NULL;
  if (block) {
    address = mmap(NULL, size + OPENCL_END, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory =
        o->cl->CreateBuffer(d->context, CL_MEM_READ_WRITE, size, NULL, &error);
  }
  if (!block || address == MAP_FAILED || !memory) {
    if (memory) o->cl->ReleaseMemObject(memory);
    if (address != MAP_FAILED) munmap(address, size + OPENCL_END);
    if (block) o->host->free(o->host->self, block, sizeof *block);
    pthread_mutex_lock(&d->lock);
    if (fits) d->active -= size;
    pthread_mutex_unlock(&d->lock);
    return PESTLE_PLUGIN_ERROR(
        o->host, OUT_OF_MEMORY,
        "opencl: %s has no %zu bytes more: %llu of at most %llu are in use",
        d->name, size, (unsigned long long)d->active,
        (unsigned long long)d->limit);
  }
  pthread_mutex_lock(&d->lock);
  *block = (opencl_block_t){d->blocks, address, size, memory};
  d->blocks = block;
  pthread_mutex_unlock(&d->lock);
  *out_data = address;
  return NULL;
}

// OpenCL keeps a buffer until what was queued on it is done.
static void deallocate(void* self, int32_t device, void* data, size_t size) {
  opencl_t* o = self;
  opencl_device_t* d = &o->device[device];
  opencl_block_t* found = NULL;
  (void)size;
  pthread_mutex_lock(&d->lock);
  for (opencl_block_t** at = &d->blocks; *at; at = &(*at)->next) {
    if ((*at)->address != data) continue;
    found = *at;
    *at = found->next;
    d->active -= found->size;
    break;
  }
  pthread_mutex_unlock(&d->lock);
  if (!found) return;
  o->cl->ReleaseMemObject(found->memory);
  munmap(found->address, found->size + OPENCL_END);
  o->host->free(o->host->self, found, sizeof *found);
}

// The buffer that |data| lies in, with |size| bytes left; the caller holds the
// lock.
static const opencl_block_t* block_of(const opencl_device_t* d,
                                      const void* data, size_t size) {
  const char* at = data;
  for (const opencl_block_t* b = d->blocks; b; b = b->next) {
    if (at >= b->address && at - b->address <= (ptrdiff_t)b->size &&
        size <= b->size - (size_t)(at - b->address)) {
      return b;
    }
  }
  return NULL;
}

static pestle_status_t place_of(const opencl_t* o, opencl_device_t* d,
                                const void* data, size_t size,
                                cl_mem_t* out_memory, size_t* out_offset) {
  pthread_mutex_lock(&d->lock);
  const opencl_block_t* b = block_of(d, data, size);
  if (b) {
    *out_memory = b->memory;
    *out_offset = (size_t)((const char*)data - b->address);
  }
  pthread_mutex_unlock(&d->lock);
  if (b) return NULL;
  return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                             "%p with %zu bytes is in no buffer of %s", data,
                             size, d->name);
}

// --- Copies ---

static pestle_status_t write_to(opencl_t* o, opencl_device_t* d,
                                cl_queue_t queue, const void* from, void* to,
                                size_t size, bool waits) {
  cl_mem_t memory;
  size_t offset;
  if (!size) return NULL;
  PESTLE_TRY(place_of(o, d, to, size, &memory, &offset));
  OPENCL_CHECK(o, o->cl->EnqueueWriteBuffer(queue, memory, waits, offset, size,
                                            from, 0, NULL, NULL));
  return NULL;
}

static pestle_status_t read_from(opencl_t* o, opencl_device_t* d,
                                 cl_queue_t queue, const void* from, void* to,
                                 size_t size, bool waits) {
  cl_mem_t memory;
  size_t offset;
  if (!size) return NULL;
  PESTLE_TRY(place_of(o, d, from, size, &memory, &offset));
  OPENCL_CHECK(o, o->cl->EnqueueReadBuffer(queue, memory, waits, offset, size,
                                           to, 0, NULL, NULL));
  return NULL;
}

static pestle_status_t copy_within(opencl_t* o, opencl_device_t* d,
                                   cl_queue_t queue, const void* from, void* to,
                                   size_t size) {
  cl_mem_t source, target;
  size_t source_at, target_at;
  if (!size) return NULL;
  PESTLE_TRY(place_of(o, d, from, size, &source, &source_at));
  PESTLE_TRY(place_of(o, d, to, size, &target, &target_at));
  OPENCL_CHECK(o, o->cl->EnqueueCopyBuffer(queue, source, target, source_at,
                                           target_at, size, 0, NULL, NULL));
  return NULL;
}

static pestle_status_t copy_from_host(void* self, int32_t device,
                                      const void* from, void* to, size_t size) {
  opencl_device_t* d;
  PESTLE_TRY(device_of(self, device, &d));
  return write_to(self, d, d->queue, from, to, size, true);
}

static pestle_status_t copy_to_host(void* self, int32_t device,
                                    const void* from, void* to, size_t size) {
  opencl_device_t* d;
  PESTLE_TRY(device_of(self, device, &d));
  return read_from(self, d, d->queue, from, to, size, true);
}

static pestle_status_t copy_device(void* self, int32_t from_device,
                                   const void* from, int32_t to_device,
                                   void* to, size_t size) {
  opencl_t* o = self;
  opencl_device_t *a, *b;
  PESTLE_TRY(device_of(o, from_device, &a));
  PESTLE_TRY(device_of(o, to_device, &b));
  if (a == b) {
    PESTLE_TRY(copy_within(o, a, a->queue, from, to, size));
    OPENCL_CHECK(o, o->cl->Finish(a->queue));
    return NULL;
  }
  // Contexts differ: through the host.
  void* bytes = o->host->alloc(o->host->self, size ? size : 1);
  if (!bytes) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory to copy %zu bytes", size);
  }
  pestle_status_t status = read_from(o, a, a->queue, from, bytes, size, true);
  if (!status) status = write_to(o, b, b->queue, bytes, to, size, true);
  o->host->free(o->host->self, bytes, size ? size : 1);
  return status;
}

// --- Kernels ---

// From the binary where it is this device's, else from the source.
static pestle_status_t program_of(const opencl_t* o, const opencl_device_t* d,
                                  const pestle_c_printer_artifact_t* a,
                                  cl_program_t* out_program) {
  *out_program = NULL;
  if (a->binary_size && !strcmp(a->made_for, d->made_for)) {
    const unsigned char* binary = a->binary;
    int32_t status = 0, error = 0;
    cl_program_t program = o->cl->CreateProgramWithBinary(
        d->context, 1, &d->id, &a->binary_size, &binary, &status, &error);
    if (!error && !status &&
        !o->cl->BuildProgram(program, 1, &d->id, NULL, NULL, NULL)) {
      *out_program = program;
      return NULL;
    }
    if (!error) o->cl->ReleaseProgram(program);
  }
  return pestle_opencl_build(o, d, a->text, a->text_size, NULL, out_program);
}

static void unload(void* self, pestle_loaded_t* loaded) {
  const opencl_t* o = self;
  if (!loaded) return;
  if (loaded->kernel) o->cl->ReleaseKernel(loaded->kernel);
  if (loaded->program) o->cl->ReleaseProgram(loaded->program);
  o->host->free(o->host->self, loaded, sizeof *loaded);
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  opencl_t* o = self;
  opencl_device_t* d;
  pestle_c_printer_artifact_t a;
  int32_t error = 0;
  *out_loaded = NULL;
  PESTLE_TRY(device_of(o, device, &d));
  PESTLE_TRY(
      pestle_c_printer_artifact_open(o->host, "opencl", artifact, size, &a));
  pestle_loaded_t* loaded = o->host->alloc(o->host->self, sizeof *loaded);
  if (!loaded) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory to load a kernel");
  }
  *loaded = (pestle_loaded_t){
      .device = d, .arg_count = a.arg_count, .param_count = a.param_count};
  for (int i = 0; i < 3; ++i) {
    loaded->group[i] = a.group[i];
    loaded->lane[i] = a.lane[i];
  }
  pestle_status_t status = program_of(o, d, &a, &loaded->program);
  if (!status) {
    loaded->kernel = o->cl->CreateKernel(loaded->program, a.name, &error);
    if (error) {
      status = PESTLE_PLUGIN_ERROR(o->host, MALFORMED,
                                   "opencl: the artifact has no kernel %s (%d)",
                                   a.name, error);
    }
  }
  if (status) {
    unload(o, loaded);
    return status;
  }
  *out_loaded = loaded;
  return NULL;
}

// The caller holds the lock, which a kernel's arguments need until it is
// queued.
static pestle_status_t set_arguments(const opencl_t* o,
                                     const opencl_device_t* d,
                                     const pestle_launch_t* launch) {
  const pestle_loaded_t* loaded = launch->loaded;
  uint32_t n = 0;
  for (uint32_t i = 0; i < loaded->arg_count; ++i) {
    const opencl_block_t* b = block_of(d, launch->buffers[i], 0);
    if (!b) {
      return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                                 "argument %u, %p, is in no buffer of %s", i,
                                 launch->buffers[i], d->name);
    }
    uint64_t offset = (uint64_t)((char*)launch->buffers[i] - b->address);
    OPENCL_CHECK(o, o->cl->SetKernelArg(loaded->kernel, n++, sizeof b->memory,
                                        &b->memory));
    OPENCL_CHECK(
        o, o->cl->SetKernelArg(loaded->kernel, n++, sizeof offset, &offset));
  }
  for (uint32_t i = 0; i < loaded->param_count; ++i) {
    OPENCL_CHECK(o, o->cl->SetKernelArg(loaded->kernel, n++, sizeof(int64_t),
                                        &launch->params[i]));
  }
  return NULL;
}

static pestle_status_t enqueue(const opencl_t* o, const opencl_device_t* d,
                               cl_queue_t queue,
                               const pestle_launch_t* launch) {
  const pestle_loaded_t* loaded = launch->loaded;
  size_t all[3];
  PESTLE_TRY(set_arguments(o, d, launch));
  for (int i = 0; i < 3; ++i)
    all[i] = loaded->group[i] * loaded->lane[i];
  OPENCL_CHECK(o,
               o->cl->EnqueueNDRangeKernel(queue, loaded->kernel, 3, NULL, all,
                                           loaded->lane, 0, NULL, NULL));
  return NULL;
}

static pestle_status_t launch(void* self, int32_t device,
                              pestle_device_stream_t* stream,
                              const pestle_launch_t* launch) {
  opencl_t* o = self;
  opencl_device_t* d;
  PESTLE_TRY(device_of(o, device, &d));
  const pestle_loaded_t* loaded = launch->loaded;
  if (launch->buffer_count != loaded->arg_count ||
      launch->param_count != loaded->param_count) {
    return PESTLE_PLUGIN_ERROR(
        o->host, INVALID_ARGUMENT,
        "the kernel has %u buffers and %u parameters, not %u and %u",
        loaded->arg_count, loaded->param_count, launch->buffer_count,
        launch->param_count);
  }
  if (!loaded->group[0] || !loaded->group[1] || !loaded->group[2]) return NULL;
  cl_queue_t queue = stream ? stream->queue : d->queue;
  pthread_mutex_lock(&d->lock);
  pestle_status_t status = enqueue(o, d, queue, launch);
  pthread_mutex_unlock(&d->lock);
  if (status || stream) return status;
  OPENCL_CHECK(o, o->cl->Finish(queue));
  return NULL;
}

// --- Streams ---

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  opencl_t* o = self;
  opencl_device_t* d;
  int32_t error = 0;
  *out_stream = NULL;
  PESTLE_TRY(device_of(o, device, &d));
  pestle_device_stream_t* s = o->host->alloc(o->host->self, sizeof *s);
  if (!s) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory for a stream");
  }
  *s = (pestle_device_stream_t){.device = d};
  s->queue = o->cl->CreateCommandQueue(d->context, d->id, 0, &error);
  if (error) {
    o->host->free(o->host->self, s, sizeof *s);
    return PESTLE_PLUGIN_ERROR(o->host, INTERNAL,
                               "clCreateCommandQueue failed with %d", error);
  }
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->called, NULL);
  *out_stream = s;
  return NULL;
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* stream) {
  opencl_t* o = self;
  OPENCL_CHECK(o, o->cl->Finish(stream->queue));
  return NULL;
}

static void stream_destroy(void* self, pestle_device_stream_t* stream) {
  opencl_t* o = self;
  if (!stream) return;
  o->cl->Finish(stream->queue);
  pthread_mutex_lock(&stream->lock);
  while (stream->calls)
    pthread_cond_wait(&stream->called, &stream->lock);
  pthread_mutex_unlock(&stream->lock);
  pthread_mutex_destroy(&stream->lock);
  pthread_cond_destroy(&stream->called);
  o->cl->ReleaseCommandQueue(stream->queue);
  o->host->free(o->host->self, stream, sizeof *stream);
}

static pestle_status_t queue_from_host(void* self, pestle_device_stream_t* s,
                                       const void* from, void* to,
                                       size_t size) {
  return write_to(self, s->device, s->queue, from, to, size, false);
}

static pestle_status_t queue_to_host(void* self, pestle_device_stream_t* s,
                                     const void* from, void* to, size_t size) {
  return read_from(self, s->device, s->queue, from, to, size, false);
}

static pestle_status_t queue_copy(void* self, pestle_device_stream_t* s,
                                  const void* from, void* to, size_t size) {
  return copy_within(self, s->device, s->queue, from, to, size);
}

// --- Events: a number, and those who wait for it ---

typedef struct waiter_t {
  struct waiter_t* next;
  uint64_t value;
  cl_event_t user;  // what a queue waits for
} waiter_t;

struct pestle_device_event_s {
  const opencl_t* o;
  opencl_device_t* device;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t number;
  uint32_t pending;  // markers that will signal it
  waiter_t* waiters;
};

// A signal that a queue will give.
typedef struct promise_t {
  pestle_device_event_t* event;
  uint64_t value;
} promise_t;

static void raise_to(pestle_device_event_t* event, uint64_t value) {
  waiter_t* due = NULL;
  pthread_mutex_lock(&event->lock);
  if (value > event->number) event->number = value;
  for (waiter_t** at = &event->waiters; *at;) {
    waiter_t* w = *at;
    if (w->value > event->number) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    w->next = due;
    due = w;
  }
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
  while (due) {
    waiter_t* w = due;
    due = w->next;
    event->o->cl->SetUserEventStatus(w->user, CL_COMPLETE);
    event->o->cl->ReleaseEvent(w->user);
    event->o->host->free(event->o->host->self, w, sizeof *w);
  }
}

static void keep_promise(cl_event_t marker, int32_t status, void* data) {
  promise_t* promise = data;
  pestle_device_event_t* event = promise->event;
  const opencl_t* o = event->o;
  (void)status;
  raise_to(event, promise->value);
  o->cl->ReleaseEvent(marker);
  o->host->free(o->host->self, promise, sizeof *promise);
  pthread_mutex_lock(&event->lock);
  --event->pending;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
}

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  opencl_t* o = self;
  opencl_device_t* d;
  *out_event = NULL;
  PESTLE_TRY(device_of(o, device, &d));
  pestle_device_event_t* event = o->host->alloc(o->host->self, sizeof *event);
  if (!event) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory for an event");
  }
  memset(event, 0, sizeof *event);
  event->o = o;
  event->device = d;
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  *out_event = event;
  return NULL;
}

static void event_destroy(void* self, pestle_device_event_t* event) {
  opencl_t* o = self;
  if (!event) return;
  // Queues that wait for what never came go on.
  raise_to(event, UINT64_MAX);
  pthread_mutex_lock(&event->lock);
  while (event->pending)
    pthread_cond_wait(&event->changed, &event->lock);
  pthread_mutex_unlock(&event->lock);
  pthread_mutex_destroy(&event->lock);
  pthread_cond_destroy(&event->changed);
  o->host->free(o->host->self, event, sizeof *event);
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  (void)self;
  pthread_mutex_lock(&event->lock);
  while (event->number < value)
    pthread_cond_wait(&event->changed, &event->lock);
  pthread_mutex_unlock(&event->lock);
  return NULL;
}

static pestle_status_t event_wait_stream(void* self,
                                         pestle_device_event_t* event,
                                         pestle_device_stream_t* stream,
                                         uint64_t value) {
  opencl_t* o = self;
  int32_t error = 0;
  waiter_t* w = o->host->alloc(o->host->self, sizeof *w);
  cl_event_t user =
      w ? o->cl->CreateUserEvent(event->device->context, &error) : NULL;
  if (!user) {
    if (w) o->host->free(o->host->self, w, sizeof *w);
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory to wait for an event (%d)", error);
  }
  error = o->cl->EnqueueBarrierWithWaitList(stream->queue, 1, &user, NULL);
  *w = (waiter_t){NULL, value, user};
  pthread_mutex_lock(&event->lock);
  w->next = event->waiters;
  event->waiters = w;
  uint64_t number = event->number;
  pthread_mutex_unlock(&event->lock);
  raise_to(event, number);  // it may have come already
  OPENCL_CHECK(o, error);
  return NULL;
}

static pestle_status_t event_signal(void* self, pestle_device_event_t* event,
                                    pestle_device_stream_t* stream,
                                    uint64_t value) {
  opencl_t* o = self;
  cl_event_t marker;
  if (!stream) {
    raise_to(event, value);
    return NULL;
  }
  promise_t* promise = o->host->alloc(o->host->self, sizeof *promise);
  if (!promise) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "no memory to signal an event");
  }
  *promise = (promise_t){event, value};
  pthread_mutex_lock(&event->lock);
  ++event->pending;
  pthread_mutex_unlock(&event->lock);
  int32_t error =
      o->cl->EnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker);
  if (!error) {
    error = o->cl->SetEventCallback(marker, CL_COMPLETE, keep_promise, promise);
  }
  if (error) {
    o->host->free(o->host->self, promise, sizeof *promise);
    pthread_mutex_lock(&event->lock);
    --event->pending;
    pthread_mutex_unlock(&event->lock);
  }
  OPENCL_CHECK(o, error);
  OPENCL_CHECK(o, o->cl->Flush(stream->queue));
  return NULL;
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  (void)self;
  pthread_mutex_lock(&event->lock);
  bool is = event->number >= value;
  pthread_mutex_unlock(&event->lock);
  return is;
}

// --- Fences ---

struct pestle_device_fence_s {
  pthread_mutex_t lock;
  cl_event_t last;  // or NULL
};

static pestle_status_t fence_create(void* self, int32_t device,
                                    pestle_device_fence_t** out_fence) {
  opencl_t* o = self;
  opencl_device_t* d;
  *out_fence = NULL;
  PESTLE_TRY(device_of(o, device, &d));
  pestle_device_fence_t* fence = o->host->alloc(o->host->self, sizeof *fence);
  if (!fence) {
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY, "no memory for a fence");
  }
  pthread_mutex_init(&fence->lock, NULL);
  fence->last = NULL;
  *out_fence = fence;
  return NULL;
}

static void fence_destroy(void* self, pestle_device_fence_t* fence) {
  opencl_t* o = self;
  if (!fence) return;
  if (fence->last) o->cl->ReleaseEvent(fence->last);
  pthread_mutex_destroy(&fence->lock);
  o->host->free(o->host->self, fence, sizeof *fence);
}

static pestle_status_t fence_update(void* self, pestle_device_fence_t* fence,
                                    pestle_device_stream_t* stream, void* data,
                                    bool cross_device) {
  opencl_t* o = self;
  cl_event_t marker;
  (void)data, (void)cross_device;
  OPENCL_CHECK(
      o, o->cl->EnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker));
  pthread_mutex_lock(&fence->lock);
  cl_event_t before = fence->last;
  fence->last = marker;
  pthread_mutex_unlock(&fence->lock);
  if (before) o->cl->ReleaseEvent(before);
  OPENCL_CHECK(o, o->cl->Flush(stream->queue));
  return NULL;
}

static pestle_status_t fence_wait(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data) {
  opencl_t* o = self;
  int32_t error = 0;
  (void)data;
  pthread_mutex_lock(&fence->lock);
  if (fence->last) {
    error =
        o->cl->EnqueueBarrierWithWaitList(stream->queue, 1, &fence->last, NULL);
  }
  pthread_mutex_unlock(&fence->lock);
  OPENCL_CHECK(o, error);
  return NULL;
}

// --- Numbers ---

static pestle_status_t memory_get(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t* out_bytes) {
  opencl_t* o = self;
  opencl_device_t* d;
  pestle_status_t status = NULL;
  *out_bytes = 0;
  PESTLE_TRY(device_of(o, device, &d));
  pthread_mutex_lock(&d->lock);
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      *out_bytes = d->active;
      break;
    case PESTLE_MEMORY_PEAK:
      *out_bytes = d->peak;
      break;
    case PESTLE_MEMORY_LIMIT:
      *out_bytes = d->limit;
      break;
    case PESTLE_MEMORY_TOTAL:
      *out_bytes = d->memory;
      break;
    case PESTLE_MEMORY_CACHE:  // freed memory goes back at once
    case PESTLE_MEMORY_CACHE_LIMIT:
      break;
    case PESTLE_MEMORY_WIRED_LIMIT:
      status = PESTLE_PLUGIN_ERROR(o->host, UNSUPPORTED,
                                   "opencl pins no memory of the system");
      break;
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

static pestle_status_t memory_set(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t bytes,
                                  uint64_t* out_before) {
  opencl_t* o = self;
  opencl_device_t* d;
  uint64_t before = 0;
  PESTLE_TRY(device_of(o, device, &d));
  if (what != PESTLE_MEMORY_PEAK && what != PESTLE_MEMORY_LIMIT &&
      what != PESTLE_MEMORY_CACHE) {
    return PESTLE_PLUGIN_ERROR(o->host, UNSUPPORTED,
                               "opencl has no such number to set");
  }
  pthread_mutex_lock(&d->lock);
  if (what == PESTLE_MEMORY_PEAK) {
    before = d->peak;
    d->peak = d->active;
  } else if (what == PESTLE_MEMORY_LIMIT) {
    before = d->limit;
    d->limit = bytes;
  }
  pthread_mutex_unlock(&d->lock);
  if (out_before) *out_before = before;
  return NULL;
}

static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  opencl_t* o = self;
  opencl_device_t* d;
  PESTLE_TRY(device_of(o, device, &d));
  const pestle_plugin_property_t rows[] = {
      {"name", d->name, 0},
      {"software", NULL, d->is_software},
      {"vendor", d->vendor, 0},
      {"version", d->version, 0},
      {"driver", d->driver, 0},
      {"compute_units", NULL, d->units},
      {"memory_bytes", NULL, (int64_t)d->memory},
      {"shared_bytes", NULL, (int64_t)d->shared},
      {"max_group_lanes", NULL, d->group_lanes},
  };
  return pestle_plugin_give_property(
      o->host, "opencl", rows, sizeof rows / sizeof *rows, index, out_property);
}

const pestle_device_api_t pestle_opencl_device_api = {
    .struct_size = sizeof(pestle_device_api_t),
    .load = load,
    .unload = unload,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy_device = copy_device,
    .stream_create = stream_create,
    .stream_synchronize = stream_synchronize,
    .stream_destroy = stream_destroy,
    .launch = launch,
    .queue_from_host = queue_from_host,
    .queue_to_host = queue_to_host,
    .queue_copy = queue_copy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
    .event_wait_stream = event_wait_stream,
    .event_signal = event_signal,
    .event_is_signalled = event_is_signalled,
    .fence_create = fence_create,
    .fence_destroy = fence_destroy,
    .fence_update = fence_update,
    .fence_wait = fence_wait,
    .memory_get = memory_get,
    .memory_set = memory_set,
    .property = property,
    .stream_host_call = pestle_opencl_stream_host_call,
    .stream_native = pestle_opencl_stream_native,
    .wait_native = pestle_opencl_wait_native,
    .native_wait = pestle_opencl_native_wait,
    .adopt = pestle_opencl_adopt,
    .release_adopted = pestle_opencl_release_adopted,
    .handle_of = pestle_opencl_handle_of,
};
