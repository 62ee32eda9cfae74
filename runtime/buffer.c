// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/queue.h"

struct pestle_buffer_s {
  pestle_refcount_t refcount;
  pestle_device_t* device;
  pestle_block_t* block;
  size_t size;
};

static void destroy(pestle_buffer_t* buffer) {
  pestle_context_t* context = buffer->device->context;
  pestle_device_free(buffer->device, buffer->block);
  pestle_dealloc(context->core.allocator, buffer, sizeof(*buffer));
  pestle_context_release(context);
}

pestle_status_t pestle_buffer_create(pestle_device_t* device, size_t size,
                                     pestle_buffer_t** out_buffer) {
  if (out_buffer) *out_buffer = NULL;
  PESTLE_REQUIRE(device && out_buffer, "a device and a place for the buffer");
  pestle_buffer_t* buffer =
      pestle_alloc_zero(device->context->core.allocator, sizeof(*buffer));
  if (!buffer) return PESTLE_OOM();
  pestle_refcount_init(&buffer->refcount);
  pestle_context_retain(device->context);
  buffer->device = device;
  buffer->size = size;
  pestle_status_t status = pestle_device_allocate(device, size, &buffer->block);
  if (status) {
    destroy(buffer);
  } else {
    *out_buffer = buffer;
  }
  return status;
}

void pestle_buffer_retain(pestle_buffer_t* buffer) {
  if (!buffer) return;
  pestle_refcount_retain(&buffer->refcount);
}

void pestle_buffer_release(pestle_buffer_t* buffer) {
  if (buffer && pestle_refcount_release(&buffer->refcount)) destroy(buffer);
}

void* pestle_buffer_data(const pestle_buffer_t* buffer) {
  return buffer ? buffer->block->data : NULL;
}

void* pestle_buffer_host_data(const pestle_buffer_t* buffer) {
  if (!buffer) return NULL;
  const pestle_device_t* device = buffer->device;
  if (pestle_device_is_cpu(device)) return buffer->block->data;
  if (pestle_device_is_of_parent(device)) return NULL;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!PESTLE_HAS(api, buffer_raw_ptr)) return NULL;
  return api->buffer_raw_ptr(device->backend->self, device->local_index,
                             buffer->block->data);
}

size_t pestle_buffer_size(const pestle_buffer_t* buffer) {
  return buffer ? buffer->size : 0;
}

pestle_device_t* pestle_buffer_device(const pestle_buffer_t* buffer) {
  return buffer ? buffer->device : NULL;
}

static pestle_status_t check_range(const pestle_buffer_t* buffer, size_t offset,
                                   size_t size) {
  if (offset <= buffer->size && size <= buffer->size - offset) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "bytes %zu to %zu + %zu lie outside of a buffer of %zu "
                      "bytes on device %s",
                      offset, offset, size, buffer->size, buffer->device->name);
}

pestle_status_t pestle_buffer_write(pestle_buffer_t* buffer, size_t offset,
                                    const void* data, size_t size) {
  PESTLE_REQUIRE(buffer && (data || !size), "a buffer and the host's bytes");
  PESTLE_TRY(check_range(buffer, offset, size));
  return pestle_device_write(buffer->device, data,
                             (char*)buffer->block->data + offset, size);
}

pestle_status_t pestle_buffer_read(const pestle_buffer_t* buffer, size_t offset,
                                   void* data, size_t size) {
  PESTLE_REQUIRE(buffer && (data || !size), "a buffer and the host's bytes");
  PESTLE_TRY(check_range(buffer, offset, size));
  return pestle_device_read(
      buffer->device, (const char*)buffer->block->data + offset, data, size);
}

pestle_status_t pestle_buffer_copy(const pestle_buffer_t* from,
                                   size_t from_offset, pestle_buffer_t* to,
                                   size_t to_offset, size_t size) {
  PESTLE_REQUIRE(from && to, "two buffers");
  PESTLE_TRY(check_range(from, from_offset, size));
  PESTLE_TRY(check_range(to, to_offset, size));
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
  return pestle_device_copy(
      from->device, (const char*)from->block->data + from_offset, to->device,
      (char*)to->block->data + to_offset, size);
}
