// SPDX-License-Identifier: Apache-2.0
// The device half on Apple's systems. It has been written without a Mac at hand
// and has been run against stand-ins for Apple's frameworks alone: README.md says
// so. Memory is shared between CPU and GPU; an address is where the CPU sees a
// buffer.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/slots.h"
#include "plugins/metal/metal.h"
#include "plugins/metal/probe.h"

enum { SCORE = 100, SUBGROUP = 32 };

typedef struct block_t {
  struct block_t* next;
  void* address;
  size_t size;
  CFTypeRef buffer;  // id<MTLBuffer>, retained
} block_t;

typedef struct native_t {
  CFTypeRef device;  // id<MTLDevice>
  CFTypeRef queue;   // id<MTLCommandQueue>
  pthread_mutex_t lock;
  block_t* blocks;
  uint64_t active, peak, limit;
} native_t;

struct pestle_loaded_s {
  CFTypeRef pipeline;  // id<MTLComputePipelineState>
  MTLSize group, lane;
  uint32_t arg_count, param_count;
};

struct pestle_device_stream_s {
  CFTypeRef queue;
  CFTypeRef queued;  // NSMutableArray of what may not be done, or has failed
  // Where the CPU copies on behalf of the stream: odd numbers say that it has
  // come so far, even ones that the copy is done.
  CFTypeRef gate, listener;  // id<MTLSharedEvent>, MTLSharedEventListener
  uint64_t passed;
};

struct pestle_device_event_s {
  CFTypeRef event;  // id<MTLSharedEvent>
};

struct pestle_device_fence_s {
  CFTypeRef event;  // id<MTLSharedEvent>
  uint64_t updates;
};

static native_t* native_of(void* self) {
  return ((metal_t*)self)->native;
}
static id<MTLDevice> device_of(void* self) {
  return (__bridge id<MTLDevice>)native_of(self)->device;
}

static pestle_status_t failed(void* self, const char* what, NSError* error) {
  const metal_t* m = self;
  return PESTLE_PLUGIN_ERROR(
      m->host, INTERNAL, "metal: %s: %s", what,
      error ? error.localizedDescription.UTF8String : "no reason given");
}

static pestle_status_t check_device(const metal_t* m, int32_t device) {
  if (device == 0) return NULL;
  return PESTLE_PLUGIN_ERROR(m->host, NOT_FOUND, "metal has 1 device and no %d",
                             device);
}

// --- Memory ---

static pestle_status_t allocate(void* self, int32_t device, size_t size,
                                void** out_data) {
  const metal_t* m = self;
  native_t* n = native_of(self);
  *out_data = NULL;
  PESTLE_TRY(check_device(m, device));
  if (!size) size = 1;
  pthread_mutex_lock(&n->lock);
  bool fits = n->active + size <= n->limit;
  pthread_mutex_unlock(&n->lock);
  block_t* b = fits ? m->host->alloc(m->host->self, sizeof *b) : NULL;
  id<MTLBuffer> buffer =
      b ? [device_of(self) newBufferWithLength:size
                                       options:MTLResourceStorageModeShared]
        : nil;
  if (!buffer) {
    if (b) m->host->free(m->host->self, b, sizeof *b);
    return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY,
                               "metal has no %zu bytes more", size);
  }
  pthread_mutex_lock(&n->lock);
  *b = (block_t){n->blocks, buffer.contents, size, CFBridgingRetain(buffer)};
  n->blocks = b;
  n->active += size;
  if (n->active > n->peak) n->peak = n->active;
  pthread_mutex_unlock(&n->lock);
  *out_data = b->address;
  return NULL;
}

// A command buffer keeps what it uses until it is done.
static void deallocate(void* self, int32_t device, void* data, size_t size) {
  const metal_t* m = self;
  native_t* n = native_of(self);
  block_t* found = NULL;
  (void)device, (void)size;
  pthread_mutex_lock(&n->lock);
  for (block_t** at = &n->blocks; *at; at = &(*at)->next) {
    if ((*at)->address != data) continue;
    found = *at;
    *at = found->next;
    n->active -= found->size;
    break;
  }
  pthread_mutex_unlock(&n->lock);
  if (!found) return;
  CFRelease(found->buffer);
  m->host->free(m->host->self, found, sizeof *found);
}

// The end of a block is an address of it where no other one begins there: that of
// no elements, so that any offset will do.
static id<MTLBuffer> buffer_at(native_t* n, const void* data,
                               NSUInteger* out_offset) {
  id<MTLBuffer> buffer = nil, ends = nil;
  pthread_mutex_lock(&n->lock);
  for (const block_t* b = n->blocks; b && !buffer; b = b->next) {
    const char *at = data, *from = b->address;
    if (at == from + b->size) ends = (__bridge id<MTLBuffer>)b->buffer;
    if (at < from || at >= from + b->size) continue;
    buffer = (__bridge id<MTLBuffer>)b->buffer;
    *out_offset = (NSUInteger)(at - from);
  }
  pthread_mutex_unlock(&n->lock);
  return buffer ? buffer : ends;
}

static void* buffer_raw_ptr(void* self, int32_t device, void* data) {
  (void)self, (void)device;
  return data;
}

// Whether |size| bytes from |data| on are of one block.
static pestle_status_t check_range(const metal_t* m, const void* data,
                                   size_t size) {
  native_t* n = m->native;
  const char* at = data;
  bool found = false;
  pthread_mutex_lock(&n->lock);
  for (const block_t* b = n->blocks; b && !found; b = b->next) {
    const char* from = b->address;
    found = at >= from && at <= from + b->size &&
            size <= b->size - (size_t)(at - from);
  }
  pthread_mutex_unlock(&n->lock);
  if (found) return NULL;
  return PESTLE_PLUGIN_ERROR(m->host, INVALID_ARGUMENT,
                             "%p with %zu bytes is in no buffer of metal", data,
                             size);
}

static pestle_status_t copy_from_host(void* self, int32_t device,
                                      const void* from, void* to, size_t size) {
  PESTLE_TRY(check_device(self, device));
  PESTLE_TRY(check_range(self, to, size));
  memcpy(to, from, size);
  return NULL;
}
static pestle_status_t copy_to_host(void* self, int32_t device,
                                    const void* from, void* to, size_t size) {
  PESTLE_TRY(check_device(self, device));
  PESTLE_TRY(check_range(self, from, size));
  memcpy(to, from, size);
  return NULL;
}
static pestle_status_t copy_device(void* self, int32_t from_device,
                                   const void* from, int32_t to_device,
                                   void* to, size_t size) {
  PESTLE_TRY(check_device(self, from_device));
  PESTLE_TRY(check_device(self, to_device));
  PESTLE_TRY(check_range(self, from, size));
  PESTLE_TRY(check_range(self, to, size));
  memmove(to, from, size);
  return NULL;
}

// --- Kernels ---

// A pipeline of kernel |name| in |text|, or nil with the reason in |*out_why|.
static id<MTLComputePipelineState> build(id<MTLDevice> device, NSString* text,
                                         NSString* name, const char** out_why,
                                         NSError** out_error) {
  MTLCompileOptions* options = [MTLCompileOptions new];
  options.fastMathEnabled = NO;
  *out_why = "the artifact is no text";
  if (!text || !name) return nil;
  *out_why = "the text does not compile";
  id<MTLLibrary> library = [device newLibraryWithSource:text
                                                options:options
                                                  error:out_error];
  if (!library) return nil;
  *out_why = "the text has no such kernel";
  id<MTLFunction> function = [library newFunctionWithName:name];
  if (!function) return nil;
  *out_why = "no pipeline";
  return [device newComputePipelineStateWithFunction:function error:out_error];
}

// What was compiled for lanes and subgroups that this GPU may not have for it.
static pestle_status_t check_lanes(const metal_t* m,
                                   const pestle_c_printer_artifact_t* a,
                                   id<MTLComputePipelineState> pipeline) {
  uint64_t lanes = (uint64_t)a->lane[0] * a->lane[1] * a->lane[2];
  if (lanes > pipeline.maxTotalThreadsPerThreadgroup) {
    return PESTLE_PLUGIN_ERROR(
        m->host, INCOMPATIBLE,
        "kernel %s has groups of %llu lanes, this GPU runs it with at most "
        "%llu",
        a->name, (unsigned long long)lanes,
        (unsigned long long)pipeline.maxTotalThreadsPerThreadgroup);
  }
  if (pipeline.threadExecutionWidth != SUBGROUP) {
    return PESTLE_PLUGIN_ERROR(
        m->host, INCOMPATIBLE,
        "kernel %s is for subgroups of %d lanes, this GPU has %llu", a->name,
        SUBGROUP, (unsigned long long)pipeline.threadExecutionWidth);
  }
  return NULL;
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const metal_t* m = self;
  pestle_c_printer_artifact_t a;
  NSError* error = nil;
  *out_loaded = NULL;
  PESTLE_TRY(check_device(m, device));
  PESTLE_TRY(pestle_c_printer_artifact_open(m->host, "metal", artifact, size, &a));
  @autoreleasepool {
    const char* why;
    NSString* text = [[NSString alloc] initWithBytes:a.text
                                              length:a.text_size
                                            encoding:NSUTF8StringEncoding];
    NSString* name = [[NSString alloc] initWithBytes:a.name
                                              length:strlen(a.name)
                                            encoding:NSUTF8StringEncoding];
    id<MTLComputePipelineState> pipeline =
        build(device_of(self), text, name, &why, &error);
    if (!pipeline) return failed(self, why, error);
    PESTLE_TRY(check_lanes(m, &a, pipeline));
    pestle_loaded_t* loaded = m->host->alloc(m->host->self, sizeof *loaded);
    if (!loaded) {
      return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY,
                                 "no memory to load a kernel");
    }
    *loaded = (pestle_loaded_t){
        .pipeline = CFBridgingRetain(pipeline),
        .group = MTLSizeMake(a.group[0], a.group[1], a.group[2]),
        .lane = MTLSizeMake(a.lane[0], a.lane[1], a.lane[2]),
        .arg_count = a.arg_count,
        .param_count = a.param_count};
    *out_loaded = loaded;
  }
  return NULL;
}

static void unload(void* self, pestle_loaded_t* loaded) {
  const metal_t* m = self;
  if (!loaded) return;
  CFRelease(loaded->pipeline);
  m->host->free(m->host->self, loaded, sizeof *loaded);
}

static pestle_status_t encode(void* self, id<MTLComputeCommandEncoder> encoder,
                              const pestle_launch_t* launch) {
  const metal_t* m = self;
  const pestle_loaded_t* k = launch->loaded;
  id<MTLComputePipelineState> pipeline =
      (__bridge id<MTLComputePipelineState>)k->pipeline;
  [encoder setComputePipelineState:pipeline];
  for (uint32_t i = 0; i < k->arg_count; ++i) {
    NSUInteger offset = 0;
    id<MTLBuffer> buffer =
        buffer_at(native_of(self), launch->buffers[i], &offset);
    if (!buffer) {
      return PESTLE_PLUGIN_ERROR(m->host, INVALID_ARGUMENT,
                                 "argument %u, %p, is in no buffer of metal", i,
                                 launch->buffers[i]);
    }
    [encoder setBuffer:buffer offset:offset atIndex:i];
  }
  for (uint32_t i = 0; i < k->param_count; ++i) {
    [encoder setBytes:&launch->params[i]
               length:sizeof(int64_t)
              atIndex:k->arg_count + i];
  }
  [encoder dispatchThreadgroups:k->group threadsPerThreadgroup:k->lane];
  return NULL;
}

static void remember(pestle_device_stream_t* stream, id<MTLCommandBuffer> b) {
  NSMutableArray<id<MTLCommandBuffer>>* queued =
      (__bridge NSMutableArray*)stream->queued;
  while (queued.count &&
         [queued objectAtIndex:0].status == MTLCommandBufferStatusCompleted) {
    [queued removeObjectAtIndex:0];
  }
  [queued addObject:b];
}

// Whether all that was queued is done, and well.
static bool is_idle(const pestle_device_stream_t* stream) {
  NSMutableArray<id<MTLCommandBuffer>>* queued =
      (__bridge NSMutableArray*)stream->queued;
  if (!queued.count) return true;
  return [queued objectAtIndex:queued.count - 1].status ==
         MTLCommandBufferStatusCompleted;
}

// Has |stream| wait for |event| (an id<MTLSharedEvent>) or signal it.
static void queue_event(pestle_device_stream_t* stream, CFTypeRef event,
                        uint64_t value, bool signals) {
  @autoreleasepool {
    id<MTLSharedEvent> shared = (__bridge id<MTLSharedEvent>)event;
    id<MTLCommandBuffer> commands =
        [(__bridge id<MTLCommandQueue>)stream->queue commandBuffer];
    if (signals) {
      [commands encodeSignalEvent:shared value:value];
    } else {
      [commands encodeWaitForEvent:shared value:value];
    }
    [commands commit];
    remember(stream, commands);
  }
}

static pestle_status_t launch(void* self, int32_t device,
                              pestle_device_stream_t* stream,
                              const pestle_launch_t* what) {
  native_t* n = native_of(self);
  pestle_status_t status = NULL;
  PESTLE_TRY(check_device(self, device));
  if (!what->loaded->group.width || !what->loaded->group.height ||
      !what->loaded->group.depth) {
    return NULL;
  }
  @autoreleasepool {
    id<MTLCommandQueue> queue =
        (__bridge id<MTLCommandQueue>)(stream ? stream->queue : n->queue);
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    status = encode(self, encoder, what);
    [encoder endEncoding];
    if (status) return status;
    [commands commit];
    if (stream) {
      remember(stream, commands);
    } else {
      [commands waitUntilCompleted];
      if (commands.error) status = failed(self, "a launch", commands.error);
    }
  }
  return status;
}

// --- Streams ---

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  const metal_t* m = self;
  *out_stream = NULL;
  PESTLE_TRY(check_device(m, device));
  pestle_device_stream_t* s = m->host->alloc(m->host->self, sizeof *s);
  id<MTLCommandQueue> queue = s ? [device_of(self) newCommandQueue] : nil;
  id<MTLSharedEvent> gate = queue ? [device_of(self) newSharedEvent] : nil;
  if (!gate) {
    if (s) m->host->free(m->host->self, s, sizeof *s);
    return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY,
                               "no memory for a stream");
  }
  *s = (pestle_device_stream_t){
      CFBridgingRetain(queue), CFBridgingRetain([NSMutableArray new]),
      CFBridgingRetain(gate), CFBridgingRetain([MTLSharedEventListener new]),
      0};
  *out_stream = s;
  return NULL;
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* stream) {
  NSMutableArray<id<MTLCommandBuffer>>* queued =
      (__bridge NSMutableArray*)stream->queued;
  pestle_status_t status = NULL;
  @autoreleasepool {
    for (NSUInteger i = 0; i < queued.count; ++i) {
      id<MTLCommandBuffer> b = [queued objectAtIndex:i];
      [b waitUntilCompleted];
      if (b.error && !status) status = failed(self, "queued work", b.error);
    }
    [queued removeAllObjects];
  }
  return status;
}

static void stream_destroy(void* self, pestle_device_stream_t* stream) {
  const metal_t* m = self;
  if (!stream) return;
  pestle_status_t status = stream_synchronize(self, stream);
  if (status) m->host->status_release(m->host->self, status);
  CFRelease(stream->listener);
  CFRelease(stream->gate);
  CFRelease(stream->queued);
  CFRelease(stream->queue);
  m->host->free(m->host->self, stream, sizeof *stream);
}

// --- Events ---

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  const metal_t* m = self;
  *out_event = NULL;
  PESTLE_TRY(check_device(m, device));
  pestle_device_event_t* e = m->host->alloc(m->host->self, sizeof *e);
  id<MTLSharedEvent> event = e ? [device_of(self) newSharedEvent] : nil;
  if (!event) {
    if (e) m->host->free(m->host->self, e, sizeof *e);
    return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY,
                               "no memory for an event");
  }
  e->event = CFBridgingRetain(event);
  *out_event = e;
  return NULL;
}

static void event_destroy(void* self, pestle_device_event_t* event) {
  const metal_t* m = self;
  if (!event) return;
  CFRelease(event->event);
  m->host->free(m->host->self, event, sizeof *event);
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  (void)self;
  return ((__bridge id<MTLSharedEvent>)event->event).signaledValue >= value;
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  if (event_is_signalled(self, event, value)) return NULL;
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  // It must be there when it is told, not only until it was last named.
  __attribute__((objc_precise_lifetime)) MTLSharedEventListener* listener =
      [MTLSharedEventListener new];
  [(__bridge id<MTLSharedEvent>)event->event
      notifyListener:listener
             atValue:value
               block:^(id<MTLSharedEvent> which, uint64_t now) {
                 (void)which, (void)now;
                 dispatch_semaphore_signal(done);
               }];
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  return NULL;
}

static pestle_status_t event_wait_stream(void* self,
                                         pestle_device_event_t* event,
                                         pestle_device_stream_t* stream,
                                         uint64_t value) {
  (void)self;
  queue_event(stream, event->event, value, false);
  return NULL;
}

static pestle_status_t event_signal(void* self, pestle_device_event_t* event,
                                    pestle_device_stream_t* stream,
                                    uint64_t value) {
  id<MTLSharedEvent> shared = (__bridge id<MTLSharedEvent>)event->event;
  (void)self;
  if (!stream) {
    if (value > shared.signaledValue) shared.signaledValue = value;
    return NULL;
  }
  queue_event(stream, event->event, value, true);
  return NULL;
}

// --- Fences: one event, whose number is that of the last update ---

static pestle_status_t fence_create(void* self, int32_t device,
                                    pestle_device_fence_t** out_fence) {
  const metal_t* m = self;
  *out_fence = NULL;
  PESTLE_TRY(check_device(m, device));
  pestle_device_fence_t* f = m->host->alloc(m->host->self, sizeof *f);
  id<MTLSharedEvent> event = f ? [device_of(self) newSharedEvent] : nil;
  if (!event) {
    if (f) m->host->free(m->host->self, f, sizeof *f);
    return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY, "no memory for a fence");
  }
  *f = (pestle_device_fence_t){CFBridgingRetain(event), 0};
  *out_fence = f;
  return NULL;
}

static void fence_destroy(void* self, pestle_device_fence_t* fence) {
  const metal_t* m = self;
  if (!fence) return;
  CFRelease(fence->event);
  m->host->free(m->host->self, fence, sizeof *fence);
}

// Updates of two streams may be done in any order, and the number never falls:
// the second one waits for the first.
static pestle_status_t fence_update(void* self, pestle_device_fence_t* fence,
                                    pestle_device_stream_t* stream, void* data,
                                    bool cross_device) {
  native_t* n = native_of(self);
  (void)data, (void)cross_device;  // memory is shared, and coherent
  pthread_mutex_lock(&n->lock);
  uint64_t number = ++fence->updates;
  pthread_mutex_unlock(&n->lock);
  if (number > 1) queue_event(stream, fence->event, number - 1, false);
  queue_event(stream, fence->event, number, true);
  return NULL;
}

static pestle_status_t fence_wait(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data) {
  native_t* n = native_of(self);
  (void)data;
  pthread_mutex_lock(&n->lock);
  uint64_t number = fence->updates;
  pthread_mutex_unlock(&n->lock);
  if (number) queue_event(stream, fence->event, number, false);
  return NULL;
}

// --- Copies on a stream: memory is shared, so the CPU moves the bytes ---

// At once, where the stream has nothing to do; else when it has come so far,
// and the stream then waits for that.
static void move(pestle_device_stream_t* stream, const void* from, void* to,
                 size_t size) {
  id<MTLSharedEvent> gate = (__bridge id<MTLSharedEvent>)stream->gate;
  uint64_t here = stream->passed + 1;
  if (is_idle(stream)) {
    memmove(to, from, size);
    return;
  }
  stream->passed += 2;
  [gate notifyListener:(__bridge MTLSharedEventListener*)stream->listener
               atValue:here
                 block:^(id<MTLSharedEvent> which, uint64_t now) {
                   (void)now;
                   memmove(to, from, size);
                   which.signaledValue = here + 1;
                 }];
  queue_event(stream, stream->gate, here, true);
  queue_event(stream, stream->gate, here + 1, false);
}

static pestle_status_t queue_from_host(void* self,
                                       pestle_device_stream_t* stream,
                                       const void* from, void* to,
                                       size_t size) {
  PESTLE_TRY(check_range(self, to, size));
  move(stream, from, to, size);
  return NULL;
}
static pestle_status_t queue_to_host(void* self, pestle_device_stream_t* stream,
                                     const void* from, void* to, size_t size) {
  PESTLE_TRY(check_range(self, from, size));
  move(stream, from, to, size);
  return NULL;
}
static pestle_status_t queue_copy(void* self, pestle_device_stream_t* stream,
                                  const void* from, void* to, size_t size) {
  PESTLE_TRY(check_range(self, from, size));
  PESTLE_TRY(check_range(self, to, size));
  move(stream, from, to, size);
  return NULL;
}

// --- Numbers ---

static pestle_status_t memory_get(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t* out_bytes) {
  const metal_t* m = self;
  native_t* n = native_of(self);
  *out_bytes = 0;
  PESTLE_TRY(check_device(m, device));
  pthread_mutex_lock(&n->lock);
  uint64_t active = n->active, peak = n->peak, limit = n->limit;
  pthread_mutex_unlock(&n->lock);
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      *out_bytes = active;
      return NULL;
    case PESTLE_MEMORY_PEAK:
      *out_bytes = peak;
      return NULL;
    case PESTLE_MEMORY_LIMIT:
      *out_bytes = limit;
      return NULL;
    case PESTLE_MEMORY_TOTAL:
      *out_bytes = device_of(self).recommendedMaxWorkingSetSize;
      return NULL;
    case PESTLE_MEMORY_CACHE:
    case PESTLE_MEMORY_CACHE_LIMIT:
      return NULL;
    case PESTLE_MEMORY_WIRED_LIMIT:
      break;
  }
  return PESTLE_PLUGIN_ERROR(m->host, UNSUPPORTED, "metal has no such number");
}

static pestle_status_t memory_set(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t bytes,
                                  uint64_t* out_before) {
  const metal_t* m = self;
  native_t* n = native_of(self);
  uint64_t before = 0;
  PESTLE_TRY(memory_get(self, device, what, &before));
  if (out_before) *out_before = before;
  // There is no cache to give back or to bound.
  if (what == PESTLE_MEMORY_CACHE || what == PESTLE_MEMORY_CACHE_LIMIT) {
    return NULL;
  }
  if (what != PESTLE_MEMORY_PEAK && what != PESTLE_MEMORY_LIMIT) {
    return PESTLE_PLUGIN_ERROR(m->host, UNSUPPORTED,
                               "metal lets nobody set that number");
  }
  pthread_mutex_lock(&n->lock);
  if (what == PESTLE_MEMORY_PEAK) n->peak = n->active;
  if (what == PESTLE_MEMORY_LIMIT) n->limit = bytes;
  pthread_mutex_unlock(&n->lock);
  return NULL;
}

static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  const metal_t* m = self;
  PESTLE_TRY(check_device(m, device));
  const pestle_plugin_property_t rows[] = {
      {"name", m->device.name, 0},
      {"target_cpu", m->device.units ? "apple" : "apple6", 0},
      {"matrix_units", NULL, m->device.units},
      {"memory_bytes", NULL,
       (int64_t)device_of(self).recommendedMaxWorkingSetSize},
  };
  return pestle_plugin_give_property(
      m->host, "metal", rows, sizeof rows / sizeof *rows, index, out_property);
}

static const pestle_device_api_t k_api = {
    .struct_size = sizeof k_api,
    .load = load,
    .unload = unload,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy_device = copy_device,
    .buffer_raw_ptr = buffer_raw_ptr,
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
};

// --- The device ---

// Whether the GPU has matrix units, with fragments as docs/adr/012 says.
static bool has_units(id<MTLDevice> device, id<MTLCommandQueue> queue) {
  char text[4096];
  const char* why;
  NSError* error = nil;
  if (![device supportsFamily:MTLGPUFamilyApple7] ||
      pestle_metal_probe_text(text, sizeof text) > sizeof text) {
    return false;
  }
  NSString* name = [NSString stringWithUTF8String:PESTLE_METAL_PROBE_NAME];
  id<MTLComputePipelineState> pipeline =
      build(device, @(text), name, &why, &error);
  id<MTLBuffer> buffer =
      [device newBufferWithLength:PESTLE_METAL_PROBE_FLOATS * sizeof(float)
                          options:MTLResourceStorageModeShared];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  if (!pipeline || !buffer || !commands ||
      pipeline.threadExecutionWidth != SUBGROUP) {
    return false;
  }
  pestle_metal_probe_fill(buffer.contents);
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:pipeline];
  [encoder setBuffer:buffer offset:0 atIndex:0];
  [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1)
          threadsPerThreadgroup:MTLSizeMake(PESTLE_METAL_PROBE_LANES, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  return !commands.error && pestle_metal_probe_agrees(buffer.contents);
}

int32_t pestle_metal_score(char* why, size_t capacity) {
  if (MTLCreateSystemDefaultDevice()) return SCORE;
  if (capacity) snprintf(why, capacity, "there is no Metal device");
  return 0;
}

pestle_status_t pestle_metal_start(metal_t* m) {
  // Without a device, kernels are compiled for the common one.
  m->device = (pestle_metal_device_t){.name = "none", .units = true};
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (!device) return NULL;
    id<MTLCommandQueue> queue = [device newCommandQueue];
    native_t* n = queue ? m->host->alloc(m->host->self, sizeof *n) : NULL;
    if (!n) {
      return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY,
                                 "no memory for a Metal device");
    }
    memset(n, 0, sizeof *n);
    n->device = CFBridgingRetain(device);
    n->queue = CFBridgingRetain(queue);
    n->limit = device.recommendedMaxWorkingSetSize;
    pthread_mutex_init(&n->lock, NULL);
    m->native = n;
    m->device = (pestle_metal_device_t){.count = 1,
                                        .score = SCORE,
                                        .units = has_units(device, queue),
                                        .api = &k_api};
    snprintf(m->device.name, sizeof m->device.name, "%s",
             device.name.UTF8String);
  }
  return NULL;
}

void pestle_metal_stop(metal_t* m) {
  native_t* n = m->native;
  if (!n) return;
  CFRelease(n->queue);
  CFRelease(n->device);
  pthread_mutex_destroy(&n->lock);
  m->host->free(m->host->self, n, sizeof *n);
}
