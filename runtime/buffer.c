// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/queue.h"

// --- Life ---

void pestle_buffer_drop_extents(pestle_buffer_t* buffer) {
  if (!buffer->extents) return;
  pestle_dealloc(buffer->device->context->core.allocator, buffer->extents,
                 (size_t)buffer->extent_count * sizeof(int64_t));
  buffer->extents = NULL;
  buffer->extent_count = 0;
}

// The callback comes last: it may end the caller's world, and must find no lock
// of ours held.
static void destroy(pestle_buffer_t* buffer) {
  pestle_device_t* device = buffer->device;
  pestle_context_t* context = device->context;
  void (*release)(void* self) = buffer->release;
  void* self = buffer->release_self;
  pestle_buffer_drop_extents(buffer);
  pestle_buffer_forget(buffer);
  if (buffer->flags & PESTLE_BUFFER_WRAPPED) {
    pestle_device_free_record(device, &buffer->block);
  } else {
    pestle_device_free(device, &buffer->block);
  }
  if (release) release(self);
  pestle_context_release(context);
}

// A buffer with one reference, of a block whose record this is.
static pestle_buffer_t* begin(pestle_device_t* device, pestle_block_t* block,
                              size_t size) {
  pestle_buffer_t* buffer = (pestle_buffer_t*)block;
  atomic_init(&buffer->holds, PESTLE_BUFFER_HOLD);
  buffer->device = device;
  buffer->size = size;
  buffer->flags = 0;
  buffer->extent_count = 0;
  buffer->extents = NULL;
  buffer->release = NULL;
  buffer->release_self = NULL;
  atomic_init(&buffer->defined, NULL);
  buffer->uses = NULL;
  buffer->use_count = buffer->use_room = 0;
  pestle_context_retain(device->context);
  return buffer;
}

pestle_status_t pestle_buffer_make(pestle_device_t* device, size_t size,
                                   pestle_buffer_t** out_buffer) {
  pestle_block_t* block;
  PESTLE_TRY(pestle_device_allocate(device, size, &block));
  *out_buffer = begin(device, block, size);
  return NULL;
}

pestle_status_t pestle_buffer_make_extents(pestle_buffer_t* buffer,
                                           int32_t rank) {
  if (!rank) return NULL;
  size_t size = (size_t)rank * sizeof(int64_t);
  buffer->extents = pestle_alloc(buffer->device->context->core.allocator, size);
  if (!buffer->extents) return PESTLE_OOM();
  buffer->extent_count = rank;
  return NULL;
}

pestle_status_t pestle_buffer_create(pestle_device_t* device, size_t size,
                                     pestle_buffer_t** out_buffer) {
  if (out_buffer) *out_buffer = NULL;
  PESTLE_REQUIRE(device && out_buffer, "a device and a place for the buffer");
  return pestle_buffer_make(device, size, out_buffer);
}

// |*out_options| is |user| where that has all fields, else |own|.
static pestle_status_t read_wrap_options(
    const pestle_buffer_wrap_options_t* user, pestle_buffer_wrap_options_t* own,
    const pestle_buffer_wrap_options_t** out_options) {
  size_t size = user ? user->struct_size : sizeof(size_t);
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_buffer_wrap_options_t.struct_size is not set");
  }
  *out_options = user;
  if (size < sizeof(*own)) {
    *out_options = own;
    memset(own, 0, sizeof(*own));
    if (user) memcpy(own, user, size);
  }
  uint32_t unknown =
      (*out_options)->flags &
      ~(uint32_t)(PESTLE_BUFFER_READ_ONLY | PESTLE_BUFFER_PINNED |
                  PESTLE_BUFFER_MANAGED | PESTLE_BUFFER_EXCLUSIVE);
  if (!unknown) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "pestle_buffer_wrap_options_t.flags has 0x%x, which this "
                      "Pestle does not know",
                      (unsigned)unknown);
}

pestle_status_t pestle_buffer_wrap(pestle_device_t* device, void* data,
                                   size_t size,
                                   const pestle_buffer_wrap_options_t* user,
                                   pestle_buffer_t** out_buffer) {
  if (out_buffer) *out_buffer = NULL;
  PESTLE_REQUIRE(device && out_buffer && (data || !size),
                 "a device, memory and a place for the buffer");
  pestle_buffer_wrap_options_t own;
  const pestle_buffer_wrap_options_t* options;
  PESTLE_TRY(read_wrap_options(user, &own, &options));
  PESTLE_TRY(pestle_device_check_open(device));
  if (size > UINTPTR_MAX - (uintptr_t)data) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu bytes from the given address on lead out of the "
                        "address space",
                        size);
  }
  pestle_block_t* block;
  PESTLE_TRY(pestle_device_make_record(device, &block));
  block->data = data;
  block->size = size;
  pestle_buffer_t* buffer = begin(device, block, size);
  buffer->flags = options->flags | PESTLE_BUFFER_WRAPPED;
  buffer->release = options->release;
  buffer->release_self = options->release_self;
  *out_buffer = buffer;
  return NULL;
}

void pestle_buffer_retain(pestle_buffer_t* buffer) {
  if (!buffer) return;
  atomic_fetch_add_explicit(&buffer->holds, PESTLE_BUFFER_HOLD,
                            memory_order_relaxed);
}

static void drop(pestle_buffer_t* buffer, uint64_t hold) {
  // Who has the only reference need not tell anybody.
  uint64_t before = atomic_load_explicit(&buffer->holds, memory_order_acquire);
  if (before != hold) {
    before =
        atomic_fetch_sub_explicit(&buffer->holds, hold, memory_order_acq_rel);
  }
  if ((uint32_t)before == 1) destroy(buffer);
}

void pestle_buffer_release(pestle_buffer_t* buffer) {
  if (buffer) drop(buffer, PESTLE_BUFFER_HOLD);
}

void pestle_buffer_hold(pestle_buffer_t* buffer) {
  atomic_fetch_add_explicit(&buffer->holds, PESTLE_BUFFER_RUN_HOLD,
                            memory_order_relaxed);
}

void pestle_buffer_let_go(pestle_buffer_t* buffer) {
  drop(buffer, PESTLE_BUFFER_RUN_HOLD);
}

// --- Getters ---

void* pestle_buffer_data(const pestle_buffer_t* buffer) {
  return buffer ? buffer->block.data : NULL;
}

void* pestle_buffer_host_data(const pestle_buffer_t* buffer) {
  if (!buffer) return NULL;
  const pestle_device_t* device = buffer->device;
  if (pestle_device_is_cpu(device)) return buffer->block.data;
  if (pestle_device_is_of_parent(device)) return NULL;
  if (buffer->flags & PESTLE_BUFFER_MANAGED) return buffer->block.data;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!PESTLE_HAS(api, buffer_raw_ptr)) return NULL;
  return api->buffer_raw_ptr(device->backend->self, device->local_index,
                             buffer->block.data);
}

size_t pestle_buffer_size(const pestle_buffer_t* buffer) {
  return buffer ? buffer->size : 0;
}

pestle_device_t* pestle_buffer_device(const pestle_buffer_t* buffer) {
  return buffer ? buffer->device : NULL;
}

uint32_t pestle_buffer_flags(const pestle_buffer_t* buffer) {
  return buffer ? buffer->flags : 0;
}

const int64_t* pestle_buffer_extents(const pestle_buffer_t* buffer,
                                     int32_t* out_rank) {
  if (out_rank) *out_rank = buffer ? buffer->extent_count : 0;
  return buffer ? buffer->extents : NULL;
}

// --- Copies ---

static pestle_status_t check_writable(const pestle_buffer_t* buffer) {
  if (!(buffer->flags & PESTLE_BUFFER_READ_ONLY)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the buffer on device %s was wrapped read-only; write to "
                      "a copy of it",
                      buffer->device->name);
}

// The locks and completions of a buffer are no part of what it holds.
static pestle_status_t await(const pestle_buffer_t* buffer) {
  return pestle_buffer_await((pestle_buffer_t*)(uintptr_t)buffer);
}

static pestle_status_t check_range(const pestle_buffer_t* buffer, size_t offset,
                                   size_t size) {
  if (offset <= buffer->size && size <= buffer->size - offset) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "bytes %zu to %zu + %zu lie outside of a buffer of %zu "
                      "bytes on device %s",
                      offset, offset, size, buffer->size, buffer->device->name);
}

// Where byte |offset| lies; NULL of a buffer of no bytes.
static char* byte_at(const pestle_buffer_t* buffer, size_t offset) {
  char* data = buffer->block.data;
  return offset ? data + offset : data;
}

pestle_status_t pestle_buffer_write(pestle_buffer_t* buffer, size_t offset,
                                    const void* data, size_t size) {
  PESTLE_REQUIRE(buffer && (data || !size), "a buffer and the host's bytes");
  PESTLE_TRY(check_range(buffer, offset, size));
  PESTLE_TRY(check_writable(buffer));
  PESTLE_TRY(pestle_buffer_await_uses(buffer));
  return pestle_device_write(buffer->device, data, byte_at(buffer, offset),
                             size);
}

pestle_status_t pestle_buffer_read(const pestle_buffer_t* buffer, size_t offset,
                                   void* data, size_t size) {
  PESTLE_REQUIRE(buffer && (data || !size), "a buffer and the host's bytes");
  PESTLE_TRY(check_range(buffer, offset, size));
  PESTLE_TRY(await(buffer));
  return pestle_device_read(buffer->device, byte_at(buffer, offset), data,
                            size);
}

pestle_status_t pestle_buffer_copy(const pestle_buffer_t* from,
                                   size_t from_offset, pestle_buffer_t* to,
                                   size_t to_offset, size_t size) {
  PESTLE_REQUIRE(from && to, "two buffers");
  PESTLE_TRY(check_range(from, from_offset, size));
  PESTLE_TRY(check_range(to, to_offset, size));
  PESTLE_TRY(check_writable(to));
  PESTLE_TRY(await(from));
  PESTLE_TRY(pestle_buffer_await_uses(to));
  if (from->device->context != to->device->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the buffers on %s and %s belong to two contexts",
                        from->device->name, to->device->name);
  }
  if (from == to && from_offset < to_offset + size &&
      to_offset < from_offset + size && !pestle_device_is_cpu(from->device)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu bytes at %zu and at %zu of one buffer on device "
                        "%s overlap",
                        size, from_offset, to_offset, from->device->name);
  }
  return pestle_device_copy(from->device, byte_at(from, from_offset),
                            to->device, byte_at(to, to_offset), size);
}
