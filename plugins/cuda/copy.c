// SPDX-License-Identifier: Apache-2.0
// Copies. The driver's queued copies from and to pageable memory may wait for
// the stream, so these go through pinned slots: to the device a slot is filled
// at once, from the device a function that the stream calls empties it. Memory
// that is pinned already is copied directly. A stream has 4 MiB of slots; who
// queues more than that waits for the first of them.
#include <string.h>

#include "plugins/cuda/backend.h"

// --- Slots ---

static pestle_status_t init_slots(pestle_device_stream_t* stream) {
  const cuda_device_t* d = stream->device;
  void* data = NULL;
  PESTLE_CUDA_TRY(
      d, cuMemHostAlloc,
      (&data, (size_t)CUDA_SLOTS * CUDA_SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE));
  stream->pinned = data;
  for (int i = 0; i < CUDA_SLOTS; ++i) {
    stream->slot[i].device = stream->device;
    stream->slot[i].data = stream->pinned + (size_t)i * CUDA_SLOT_BYTES;
  }
  return NULL;
}

void pestle_cuda_staging_deinit(pestle_device_stream_t* stream) {
  const cuda_driver_t* driver = &stream->device->owner->driver;
  for (int i = 0; i < CUDA_SLOTS; ++i) {
    if (stream->slot[i].event) {
      (void)driver->cuEventDestroy_v2(stream->slot[i].event);
    }
  }
  if (stream->pinned) (void)driver->cuMemFreeHost(stream->pinned);
}

// The next slot, when the stream is past its last use.
static pestle_status_t take_slot(pestle_device_stream_t* stream,
                                 cuda_slot_t** out_slot) {
  const cuda_device_t* d = stream->device;
  if (!stream->pinned) PESTLE_TRY(init_slots(stream));
  cuda_slot_t* slot = &stream->slot[stream->next_slot];
  stream->next_slot = (stream->next_slot + 1) % CUDA_SLOTS;
  if (slot->event) {
    PESTLE_CUDA_TRY(d, cuEventSynchronize, (slot->event));
  } else {
    PESTLE_CUDA_TRY(d, cuEventCreate, (&slot->event, CU_EVENT_DISABLE_TIMING));
  }
  *out_slot = slot;
  return NULL;
}

static pestle_status_t write_slot(pestle_device_stream_t* stream,
                                  const char* from, CUdeviceptr to,
                                  size_t size) {
  const cuda_device_t* d = stream->device;
  cuda_slot_t* slot;
  PESTLE_TRY(take_slot(stream, &slot));
  memcpy(slot->data, from, size);
  PESTLE_CUDA_TRY(d, cuMemcpyHtoDAsync_v2,
                  (to, slot->data, size, stream->handle));
  cuda_queued(stream);
  PESTLE_CUDA_TRY(d, cuEventRecord, (slot->event, stream->handle));
  return NULL;
}

// Called in the stream's order by a thread of the driver.
static void empty_slot(void* user) {
  const cuda_slot_t* slot = user;
  memcpy(slot->to, slot->data, slot->size);
}

static pestle_status_t read_slot(pestle_device_stream_t* stream,
                                 CUdeviceptr from, char* to, size_t size) {
  const cuda_device_t* d = stream->device;
  cuda_slot_t* slot;
  PESTLE_TRY(take_slot(stream, &slot));
  slot->to = to;
  slot->size = size;
  PESTLE_CUDA_TRY(d, cuMemcpyDtoHAsync_v2,
                  (slot->data, from, size, stream->handle));
  cuda_queued(stream);
  PESTLE_CUDA_TRY(d, cuLaunchHostFunc, (stream->handle, empty_slot, slot));
  PESTLE_CUDA_TRY(d, cuEventRecord, (slot->event, stream->handle));
  return NULL;
}

// --- Queued copies ---

static bool is_pinned(const cuda_device_t* d, const void* data) {
  // Of several attributes, since of one alone it is an error that the driver does
  // not know the memory, which compute-sanitizer tells.
  unsigned type = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&type};
  return !d->owner->driver.cuPointerGetAttributes(1, what, values,
                                                  cuda_address(data)) &&
         type == CU_MEMORYTYPE_HOST;
}

static pestle_status_t write_pinned(pestle_device_stream_t* stream,
                                    const void* from, void* to, size_t size) {
  PESTLE_CUDA_TRY(stream->device, cuMemcpyHtoDAsync_v2,
                  (cuda_address(to), from, size, stream->handle));
  cuda_queued(stream);
  return NULL;
}

static pestle_status_t write_pageable(pestle_device_stream_t* stream,
                                      const char* from, CUdeviceptr to,
                                      size_t size) {
  PESTLE_TRY(
      pestle_cuda_refuse_recording(stream, "a copy from pageable memory"));
  for (size_t at = 0; at < size; at += CUDA_SLOT_BYTES) {
    size_t part = size - at < CUDA_SLOT_BYTES ? size - at : CUDA_SLOT_BYTES;
    PESTLE_TRY(write_slot(stream, from + at, to + at, part));
  }
  return NULL;
}

static pestle_status_t queue_from_host(void* self,
                                       pestle_device_stream_t* stream,
                                       const void* from, void* to,
                                       size_t size) {
  (void)self;
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pthread_mutex_lock(&stream->lock);
  pestle_status_t status =
      is_pinned(stream->device, from)
          ? write_pinned(stream, from, to, size)
          : write_pageable(stream, from, cuda_address(to), size);
  pthread_mutex_unlock(&stream->lock);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t read_pinned(pestle_device_stream_t* stream,
                                   const void* from, void* to, size_t size) {
  PESTLE_CUDA_TRY(stream->device, cuMemcpyDtoHAsync_v2,
                  (to, cuda_address(from), size, stream->handle));
  cuda_queued(stream);
  return NULL;
}

static pestle_status_t read_pageable(pestle_device_stream_t* stream,
                                     CUdeviceptr from, char* to, size_t size) {
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a copy to pageable memory"));
  for (size_t at = 0; at < size; at += CUDA_SLOT_BYTES) {
    size_t part = size - at < CUDA_SLOT_BYTES ? size - at : CUDA_SLOT_BYTES;
    PESTLE_TRY(read_slot(stream, from + at, to + at, part));
  }
  return NULL;
}

static pestle_status_t queue_to_host(void* self, pestle_device_stream_t* stream,
                                     const void* from, void* to, size_t size) {
  (void)self;
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pthread_mutex_lock(&stream->lock);
  pestle_status_t status =
      is_pinned(stream->device, to)
          ? read_pinned(stream, from, to, size)
          : read_pageable(stream, cuda_address(from), to, size);
  pthread_mutex_unlock(&stream->lock);
  pestle_cuda_leave(stream->device);
  return status;
}

// A graph's own memcpy node is 37 % slower than a kernel on an H200.
static pestle_status_t copy_within(pestle_device_stream_t* stream,
                                   const void* from, void* to, size_t size) {
  const cuda_device_t* d = stream->device;
  if (atomic_load(&stream->recording)) {
    PESTLE_TRY(pestle_cuda_copy_kernel(d, stream->handle, cuda_address(from),
                                       cuda_address(to), size));
  } else {
    PESTLE_CUDA_TRY(
        d, cuMemcpyDtoDAsync_v2,
        (cuda_address(to), cuda_address(from), size, stream->handle));
  }
  cuda_queued(stream);
  return NULL;
}

static pestle_status_t queue_copy(void* self, pestle_device_stream_t* stream,
                                  const void* from, void* to, size_t size) {
  (void)self;
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = copy_within(stream, from, to, size);
  pestle_cuda_leave(stream->device);
  return status;
}

// --- Copies that are done on return ---

// cuMemcpyHtoD returns when pageable memory was read, and streams that wait for no
// other do not wait for the rest of it.
static pestle_status_t write_now(const cuda_device_t* d, const void* from,
                                 void* to, size_t size) {
  PESTLE_CUDA_TRY(d, cuMemcpyHtoDAsync_v2,
                  (cuda_address(to), from, size, d->own));
  PESTLE_CUDA_TRY(d, cuStreamSynchronize, (d->own));
  return NULL;
}

static pestle_status_t copy_from_host(void* self, int32_t device,
                                      const void* from, void* to, size_t size) {
  cuda_device_t* d;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = write_now(d, from, to, size);
  pestle_cuda_leave(d);
  return status;
}

static pestle_status_t read_now(const cuda_device_t* d, const void* from,
                                void* to, size_t size) {
  PESTLE_CUDA_TRY(d, cuMemcpyDtoH_v2, (to, cuda_address(from), size));
  return NULL;
}

static pestle_status_t copy_to_host(void* self, int32_t device,
                                    const void* from, void* to, size_t size) {
  cuda_device_t* d;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = read_now(d, from, to, size);
  pestle_cuda_leave(d);
  return status;
}

// On |to|'s own stream; the driver goes through the host where devices cannot
// reach each other.
static pestle_status_t copy_now(const cuda_device_t* from_device,
                                const void* from,
                                const cuda_device_t* to_device, void* to,
                                size_t size) {
  const cuda_device_t* d = to_device;
  CUdeviceptr source = cuda_address(from), target = cuda_address(to);
  if (from_device == d) {
    PESTLE_CUDA_TRY(d, cuMemcpyDtoDAsync_v2, (target, source, size, d->own));
  } else {
    PESTLE_CUDA_TRY(
        d, cuMemcpyPeerAsync,
        (target, d->context, source, from_device->context, size, d->own));
  }
  PESTLE_CUDA_TRY(d, cuStreamSynchronize, (d->own));
  return NULL;
}

static pestle_status_t copy_device(void* self, int32_t from_device,
                                   const void* from, int32_t to_device,
                                   void* to, size_t size) {
  cuda_device_t *a, *b;
  PESTLE_TRY(pestle_cuda_device(self, from_device, &a));
  PESTLE_TRY(pestle_cuda_device(self, to_device, &b));
  if (!size) return NULL;
  PESTLE_TRY(pestle_cuda_enter(a));  // its context is started
  pestle_cuda_leave(a);
  PESTLE_TRY(pestle_cuda_enter(b));
  pestle_status_t status = copy_now(a, from, b, to, size);
  pestle_cuda_leave(b);
  return status;
}

void pestle_cuda_copy_slots(pestle_device_api_t* api) {
  api->copy_from_host = copy_from_host;
  api->copy_to_host = copy_to_host;
  api->copy_device = copy_device;
  api->queue_from_host = queue_from_host;
  api->queue_to_host = queue_to_host;
  api->queue_copy = queue_copy;
}
