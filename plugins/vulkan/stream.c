// SPDX-License-Identifier: Apache-2.0
// Streams record into one command buffer until somebody must know: whoever
// synchronises, signals an event or reads memory. All streams of a device share
// its queue, so that one which waits for a signal that nobody has submitted yet
// holds its commands back; otherwise it would stop the others too.
#include <string.h>

#include "plugins/common/c_printer_artifact.h"
#include "plugins/vulkan/vulkan.h"

enum { COMMANDS_AT_ONCE = 64 };

struct pestle_device_event_s {
  vulkan_device_t* device;
  VkSemaphore semaphore;
  uint64_t promised;
};

// --- Command buffers ---

static void forget_done(pestle_device_stream_t* s) {
  vulkan_device_t* d = s->device;
  uint64_t value = 0;
  uint32_t kept = 0;
  d->GetSemaphoreCounterValue(d->device, s->done, &value);
  for (uint32_t i = 0; i < s->pending_count; ++i) {
    if (s->pending[i].value > value) {
      s->pending[kept++] = s->pending[i];
    } else {
      d->FreeCommandBuffers(d->device, s->pool, 1, &s->pending[i].buffer);
    }
  }
  s->pending_count = kept;
}

static pestle_status_t wait_for(vulkan_device_t* d, VkSemaphore semaphore,
                                uint64_t value) {
  VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                              .semaphoreCount = 1,
                              .pSemaphores = &semaphore,
                              .pValues = &value};
  VULKAN_CHECK(d->owner, d->WaitSemaphores(d->device, &info, UINT64_MAX));
  return NULL;
}

static bool is_stalled(const pestle_device_stream_t* s) {
  for (uint32_t i = 0; i < s->wait_count; ++i) {
    if (s->wait[i].promised && *s->wait[i].promised < s->wait[i].value) {
      return true;
    }
  }
  return false;
}

// Submits what was recorded; |also| is signalled with |value| then.
static pestle_status_t submit_locked(pestle_device_stream_t* s,
                                     VkSemaphore also, uint64_t value) {
  vulkan_device_t* d = s->device;
  VkSemaphore waits[VULKAN_MAX_WAITS + 1], signals[3] = {s->done, d->clock};
  uint64_t wait_values[VULKAN_MAX_WAITS + 1], signal_values[3];
  VkPipelineStageFlags stages[VULKAN_MAX_WAITS + 1];
  uint32_t count = 0;
  if (!s->open && !also && !s->wait_count) return NULL;
  if (s->open) VULKAN_CHECK(d->owner, d->EndCommandBuffer(s->open));
  for (; count < s->wait_count; ++count) {
    waits[count] = s->wait[count].semaphore;
    wait_values[count] = s->wait[count].value;
  }
  waits[count] = s->done;
  wait_values[count++] = s->submitted;
  for (uint32_t i = 0; i < count; ++i)
    stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  signal_values[0] = s->submitted + 1;
  signal_values[1] = d->now + 1;
  signals[2] = also;
  signal_values[2] = value;
  VkTimelineSemaphoreSubmitInfo times = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .waitSemaphoreValueCount = count,
      .pWaitSemaphoreValues = wait_values,
      .signalSemaphoreValueCount = also ? 3 : 2,
      .pSignalSemaphoreValues = signal_values};
  VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                       .pNext = &times,
                       .waitSemaphoreCount = count,
                       .pWaitSemaphores = waits,
                       .pWaitDstStageMask = stages,
                       .commandBufferCount = s->open ? 1 : 0,
                       .pCommandBuffers = &s->open,
                       .signalSemaphoreCount = also ? 3 : 2,
                       .pSignalSemaphores = signals};
  VULKAN_CHECK(d->owner, d->QueueSubmit(d->queue, 1, &info, VK_NULL_HANDLE));
  ++s->submitted;
  ++d->now;
  s->wait_count = 0;
  s->recorded = 0;
  if (s->open) {
    s->pending[s->pending_count].buffer = s->open;
    s->pending[s->pending_count++].value = s->submitted;
    s->open = NULL;
  }
  while (s->used) {
    vulkan_block_t* b = s->used;
    s->used = b->next;
    pestle_vulkan_retire_locked(d, b, 0);
  }
  if (s->pending_count < VULKAN_MAX_PENDING) return NULL;
  PESTLE_TRY(wait_for(d, s->done, s->pending[0].value));
  forget_done(s);
  return NULL;
}

// Submits, unless a signal has to come first.
static pestle_status_t flush_locked(pestle_device_stream_t* s) {
  return is_stalled(s) ? NULL : submit_locked(s, VK_NULL_HANDLE, 0);
}

// Others may have waited for what was promised just now.
static pestle_status_t wake_locked(vulkan_device_t* d) {
  for (pestle_device_stream_t* s = d->streams; s; s = s->next) {
    if (s->wait_count) PESTLE_TRY(flush_locked(s));
  }
  return NULL;
}

pestle_status_t pestle_vulkan_record_locked(pestle_device_stream_t* s,
                                            VkCommandBuffer* out_buffer) {
  vulkan_device_t* d = s->device;
  *out_buffer = NULL;
  if (s->recorded >= COMMANDS_AT_ONCE) PESTLE_TRY(flush_locked(s));
  if (!s->open) {
    forget_done(s);
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = s->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    VULKAN_CHECK(d->owner,
                 d->AllocateCommandBuffers(d->device, &info, &s->open));
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VULKAN_CHECK(d->owner, d->BeginCommandBuffer(s->open, &begin));
  }
  VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
  d->CmdPipelineBarrier(s->open, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &barrier, 0,
                        NULL, 0, NULL);
  ++s->recorded;
  *out_buffer = s->open;
  return NULL;
}

void pestle_vulkan_use_locked(pestle_device_stream_t* stream,
                              vulkan_block_t* block) {
  block->next = stream->used;
  stream->used = block;
}

// --- Streams ---

static pestle_status_t make_timeline(vulkan_device_t* d, VkSemaphore* out) {
  VkSemaphoreTypeCreateInfo type = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VULKAN_CHECK(d->owner, d->CreateSemaphore(d->device, &info, NULL, out));
  return NULL;
}

static pestle_status_t make_pool(vulkan_device_t* d, VkCommandPool* out) {
  VkCommandPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
      .queueFamilyIndex = d->family};
  VULKAN_CHECK(d->owner, d->CreateCommandPool(d->device, &info, NULL, out));
  return NULL;
}

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  *out_stream = NULL;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  pestle_device_stream_t* s = v->host->alloc(v->host->self, sizeof *s);
  if (!s) {
    return PESTLE_PLUGIN_ERROR(v->host, OUT_OF_MEMORY,
                               "no memory for a stream");
  }
  memset(s, 0, sizeof *s);
  s->device = d;
  pestle_status_t status = make_timeline(d, &s->done);
  if (!status) status = make_pool(d, &s->pool);
  if (status) {
    if (s->done) d->DestroySemaphore(d->device, s->done, NULL);
    v->host->free(v->host->self, s, sizeof *s);
    return status;
  }
  pthread_mutex_lock(&d->lock);
  s->next = d->streams;
  d->streams = s;
  pthread_mutex_unlock(&d->lock);
  *out_stream = s;
  return NULL;
}

// Until all signals that the stream waits for are promised: others give them.
static pestle_status_t await_promises(pestle_device_stream_t* s) {
  vulkan_device_t* d = s->device;
  for (;;) {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < s->wait_count && !semaphore; ++i) {
      const vulkan_wait_t* w = &s->wait[i];
      if (!w->promised || *w->promised >= w->value) continue;
      semaphore = w->semaphore;
      value = w->value;
    }
    pthread_mutex_unlock(&d->lock);
    if (!semaphore) return NULL;
    PESTLE_TRY(wait_for(d, semaphore, value));
  }
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* s) {
  vulkan_device_t* d = s->device;
  (void)self;
  PESTLE_TRY(await_promises(s));
  pthread_mutex_lock(&d->lock);
  pestle_status_t status = submit_locked(s, VK_NULL_HANDLE, 0);
  uint64_t value = s->submitted;
  pthread_mutex_unlock(&d->lock);
  return status ? status : wait_for(d, s->done, value);
}

static void stream_destroy(void* self, pestle_device_stream_t* s) {
  const vulkan_t* v = self;
  if (!s) return;
  vulkan_device_t* d = s->device;
  pestle_status_t status = stream_synchronize(self, s);
  if (status) v->host->status_release(v->host->self, status);
  pthread_mutex_lock(&d->lock);
  for (pestle_device_stream_t** at = &d->streams; *at; at = &(*at)->next) {
    if (*at != s) continue;
    *at = s->next;
    break;
  }
  pthread_mutex_unlock(&d->lock);
  d->DestroyCommandPool(d->device, s->pool, NULL);
  d->DestroySemaphore(d->device, s->done, NULL);
  v->host->free(v->host->self, s, sizeof *s);
}

pestle_status_t pestle_vulkan_with_stream(
    vulkan_t* v, int32_t device,
    pestle_status_t (*work)(pestle_device_stream_t* stream, const void* data),
    const void* data) {
  pestle_device_stream_t* stream;
  PESTLE_TRY(stream_create(v, device, &stream));
  pestle_status_t status = work(stream, data);
  if (!status) status = stream_synchronize(v, stream);
  stream_destroy(v, stream);
  return status;
}

// --- Copies ---

typedef struct copy_t {
  const void* from;
  void* to;
  size_t size;
} copy_t;

static pestle_status_t not_found(const vulkan_device_t* d, const void* data,
                                 size_t size) {
  return PESTLE_PLUGIN_ERROR(d->owner->host, INVALID_ARGUMENT,
                             "%p with %zu bytes is in no buffer of %s", data,
                             size, d->name);
}

static VkDeviceSize offset_in(const vulkan_block_t* b, const void* data) {
  return (VkDeviceAddress)(uintptr_t)data - b->address;
}

static pestle_status_t copy_blocks_locked(pestle_device_stream_t* s,
                                          const vulkan_block_t* from,
                                          VkDeviceSize from_at,
                                          const vulkan_block_t* to,
                                          VkDeviceSize to_at, size_t size) {
  VkCommandBuffer commands;
  PESTLE_TRY(pestle_vulkan_record_locked(s, &commands));
  VkBufferCopy region = {from_at, to_at, size};
  s->device->CmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
  return NULL;
}

// The bytes are taken at once, so that they need not stay.
static pestle_status_t from_host(pestle_device_stream_t* s, const void* data) {
  const copy_t* c = data;
  vulkan_device_t* d = s->device;
  vulkan_block_t* staging = NULL;
  if (!c->size) return NULL;
  pthread_mutex_lock(&d->lock);
  const vulkan_block_t* to = pestle_vulkan_find_locked(d, c->to, c->size);
  pestle_status_t status =
      to ? pestle_vulkan_block_locked(d, c->size, true, &staging)
         : not_found(d, c->to, c->size);
  if (!status) {
    memcpy(staging->mapped, c->from, c->size);
    status =
        copy_blocks_locked(s, staging, 0, to, offset_in(to, c->to), c->size);
    pestle_vulkan_use_locked(s, staging);
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

// Waits for the stream: there is nobody to move the bytes later.
static pestle_status_t to_host(pestle_device_stream_t* s, const void* data) {
  const copy_t* c = data;
  vulkan_device_t* d = s->device;
  vulkan_block_t* staging = NULL;
  if (!c->size) return NULL;
  pthread_mutex_lock(&d->lock);
  const vulkan_block_t* from = pestle_vulkan_find_locked(d, c->from, c->size);
  pestle_status_t status =
      from ? pestle_vulkan_block_locked(d, c->size, true, &staging)
           : not_found(d, c->from, c->size);
  if (!status) {
    status = copy_blocks_locked(s, from, offset_in(from, c->from), staging, 0,
                                c->size);
  }
  pthread_mutex_unlock(&d->lock);
  if (!status) status = stream_synchronize(d->owner, s);
  if (!status) memcpy(c->to, staging->mapped, c->size);
  if (staging) {
    pthread_mutex_lock(&d->lock);
    pestle_vulkan_retire_locked(d, staging, 0);
    pthread_mutex_unlock(&d->lock);
  }
  return status;
}

static pestle_status_t within(pestle_device_stream_t* s, const void* data) {
  const copy_t* c = data;
  vulkan_device_t* d = s->device;
  if (!c->size) return NULL;
  pthread_mutex_lock(&d->lock);
  const vulkan_block_t* from = pestle_vulkan_find_locked(d, c->from, c->size);
  const vulkan_block_t* to = pestle_vulkan_find_locked(d, c->to, c->size);
  pestle_status_t status;
  if (!from || !to) {
    status = not_found(d, from ? c->to : c->from, c->size);
  } else {
    status = copy_blocks_locked(s, from, offset_in(from, c->from), to,
                                offset_in(to, c->to), c->size);
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

static pestle_status_t copy_from_host(void* self, int32_t device,
                                      const void* from, void* to, size_t size) {
  copy_t c = {from, to, size};
  return pestle_vulkan_with_stream(self, device, from_host, &c);
}
static pestle_status_t copy_to_host(void* self, int32_t device,
                                    const void* from, void* to, size_t size) {
  copy_t c = {from, to, size};
  return pestle_vulkan_with_stream(self, device, to_host, &c);
}
static pestle_status_t copy_device(void* self, int32_t from_device,
                                   const void* from, int32_t to_device,
                                   void* to, size_t size) {
  vulkan_t* v = self;
  copy_t c = {from, to, size};
  if (from_device == to_device) {
    return pestle_vulkan_with_stream(v, from_device, within, &c);
  }
  void* bytes = v->host->alloc(v->host->self, size ? size : 1);
  if (!bytes) {
    return PESTLE_PLUGIN_ERROR(v->host, OUT_OF_MEMORY,
                               "no memory to copy %zu bytes", size);
  }
  pestle_status_t status = copy_to_host(v, from_device, from, bytes, size);
  if (!status) status = copy_from_host(v, to_device, bytes, to, size);
  v->host->free(v->host->self, bytes, size ? size : 1);
  return status;
}

static pestle_status_t queue_from_host(void* self, pestle_device_stream_t* s,
                                       const void* from, void* to,
                                       size_t size) {
  copy_t c = {from, to, size};
  (void)self;
  return from_host(s, &c);
}
static pestle_status_t queue_copy(void* self, pestle_device_stream_t* s,
                                  const void* from, void* to, size_t size) {
  copy_t c = {from, to, size};
  (void)self;
  return within(s, &c);
}

// --- Events ---

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  *out_event = NULL;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  pestle_device_event_t* event = v->host->alloc(v->host->self, sizeof *event);
  if (!event) {
    return PESTLE_PLUGIN_ERROR(v->host, OUT_OF_MEMORY,
                               "no memory for an event");
  }
  *event = (pestle_device_event_t){.device = d};
  pestle_status_t status = make_timeline(d, &event->semaphore);
  if (status) {
    v->host->free(v->host->self, event, sizeof *event);
    return status;
  }
  *out_event = event;
  return NULL;
}

// Work that signals it, or waits for it, is done first.
static void event_destroy(void* self, pestle_device_event_t* event) {
  const vulkan_t* v = self;
  if (!event) return;
  vulkan_device_t* d = event->device;
  pthread_mutex_lock(&d->lock);
  for (pestle_device_stream_t* s = d->streams; s; s = s->next) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->wait_count; ++i) {
      if (s->wait[i].semaphore != event->semaphore)
        s->wait[kept++] = s->wait[i];
    }
    s->wait_count = kept;
  }
  d->DeviceWaitIdle(d->device);
  pthread_mutex_unlock(&d->lock);
  d->DestroySemaphore(d->device, event->semaphore, NULL);
  v->host->free(v->host->self, event, sizeof *event);
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  (void)self;
  return wait_for(event->device, event->semaphore, value);
}

static pestle_status_t add_wait_locked(pestle_device_stream_t* s,
                                       vulkan_wait_t wait) {
  // What stands before the wait must not wait too.
  if (s->recorded || s->wait_count == VULKAN_MAX_WAITS) {
    if (is_stalled(s)) {
      return PESTLE_PLUGIN_ERROR(
          s->device->owner->host, UNSUPPORTED,
          "vulkan: a stream waits for an event that nobody signals, and is "
          "asked to wait again: signal it first");
    }
    PESTLE_TRY(submit_locked(s, VK_NULL_HANDLE, 0));
  }
  s->wait[s->wait_count++] = wait;
  return NULL;
}

static pestle_status_t event_wait_stream(void* self,
                                         pestle_device_event_t* event,
                                         pestle_device_stream_t* stream,
                                         uint64_t value) {
  vulkan_device_t* d = stream->device;
  (void)self;
  if (event->device != d) return event_wait(self, event, value);
  if (value == 0) return NULL;
  pthread_mutex_lock(&d->lock);
  vulkan_wait_t wait = {event->semaphore, value, &event->promised};
  pestle_status_t status = add_wait_locked(stream, wait);
  pthread_mutex_unlock(&d->lock);
  return status;
}

static pestle_status_t signal_now(pestle_device_event_t* event,
                                  uint64_t value) {
  vulkan_device_t* d = event->device;
  VkSemaphoreSignalInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
      .semaphore = event->semaphore,
      .value = value};
  VULKAN_CHECK(d->owner, d->SignalSemaphore(d->device, &info));
  return NULL;
}

static pestle_status_t event_signal(void* self, pestle_device_event_t* event,
                                    pestle_device_stream_t* stream,
                                    uint64_t value) {
  vulkan_device_t* d = event->device;
  pestle_status_t status = NULL;
  if (stream && stream->device != d) {
    PESTLE_TRY(stream_synchronize(self, stream));
    stream = NULL;
  }
  if (stream) PESTLE_TRY(await_promises(stream));
  pthread_mutex_lock(&d->lock);
  if (value > event->promised) {
    status = stream ? submit_locked(stream, event->semaphore, value)
                    : signal_now(event, value);
    if (!status) event->promised = value;
    if (!status) status = wake_locked(d);
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  uint64_t now = 0;
  (void)self;
  event->device->GetSemaphoreCounterValue(event->device->device,
                                          event->semaphore, &now);
  return now >= value;
}

// --- Fences: an event that counts by itself ---

struct pestle_device_fence_s {
  pestle_device_event_t* event;
  uint64_t value;
};

static pestle_status_t fence_create(void* self, int32_t device,
                                    pestle_device_fence_t** out_fence) {
  const vulkan_t* v = self;
  *out_fence = NULL;
  pestle_device_fence_t* fence = v->host->alloc(v->host->self, sizeof *fence);
  if (!fence) {
    return PESTLE_PLUGIN_ERROR(v->host, OUT_OF_MEMORY, "no memory for a fence");
  }
  fence->value = 0;
  pestle_status_t status = event_create(self, device, &fence->event);
  if (status) {
    v->host->free(v->host->self, fence, sizeof *fence);
    return status;
  }
  *out_fence = fence;
  return NULL;
}

static void fence_destroy(void* self, pestle_device_fence_t* fence) {
  const vulkan_t* v = self;
  if (!fence) return;
  event_destroy(self, fence->event);
  v->host->free(v->host->self, fence, sizeof *fence);
}

static pestle_status_t fence_update(void* self, pestle_device_fence_t* fence,
                                    pestle_device_stream_t* stream, void* data,
                                    bool cross_device) {
  vulkan_device_t* d = fence->event->device;
  (void)data, (void)cross_device;  // the submission makes all visible
  pthread_mutex_lock(&d->lock);
  uint64_t value = ++fence->value;
  pthread_mutex_unlock(&d->lock);
  return event_signal(self, fence->event, stream, value);
}

static pestle_status_t fence_wait(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data) {
  vulkan_device_t* d = fence->event->device;
  (void)data;
  pthread_mutex_lock(&d->lock);
  uint64_t value = fence->value;
  pthread_mutex_unlock(&d->lock);
  return event_wait_stream(self, fence->event, stream, value);
}

const pestle_device_api_t pestle_vulkan_device_api = {
    .struct_size = sizeof(pestle_device_api_t),
    .load = pestle_vulkan_load,
    .unload = pestle_vulkan_unload,
    .allocate = pestle_vulkan_allocate,
    .deallocate = pestle_vulkan_deallocate,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy_device = copy_device,
    .buffer_raw_ptr = pestle_vulkan_raw_ptr,
    .stream_create = stream_create,
    .stream_synchronize = stream_synchronize,
    .stream_destroy = stream_destroy,
    .launch = pestle_vulkan_launch,
    .queue_from_host = queue_from_host,
    // Not queue_to_host: it would keep its caller waiting, as to_host() does.
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
    .memory_get = pestle_vulkan_memory_get,
    .memory_set = pestle_vulkan_memory_set,
    .property = pestle_vulkan_property,
};
