// SPDX-License-Identifier: Apache-2.0
#include "pjrt/buffer.h"

#include <string.h>

#include "base/mem.h"
#include "pjrt/callback.h"
#include "pjrt/dtype.h"
#include "pjrt/merge.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// --- Life ---

void pestle_pjrt_buffer_set_shape(PJRT_Buffer* buffer,
                                  const pestle_pjrt_shape_t* shape) {
  buffer->shape = *shape;
  for (size_t i = 0; i < shape->rank; ++i)
    buffer->minor_to_major[i] = shape->order[shape->rank - 1 - i];
}

PJRT_Buffer* pestle_pjrt_buffer_create(PJRT_Device* device,
                                       const pestle_pjrt_shape_t* shape,
                                       PJRT_Event* ready) {
  PJRT_Buffer* buffer =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*buffer));
  if (!buffer) return NULL;
  pestle_refcount_init(&buffer->references);
  pestle_mutex_init(&buffer->mutex);
  pestle_pjrt_client_retain(device->client);
  buffer->device = device;
  pestle_pjrt_buffer_set_shape(buffer, shape);
  if (ready) pestle_pjrt_event_retain(ready);
  buffer->ready = ready;
  return buffer;
}

void pestle_pjrt_buffer_release(PJRT_Buffer* buffer) {
  if (!buffer || !pestle_refcount_release(&buffer->references)) return;
  PJRT_Client* client = buffer->device->client;
  pestle_buffer_release(buffer->memory);
  pestle_pjrt_event_release(buffer->ready);
  pestle_mutex_deinit(&buffer->mutex);
  pestle_dealloc(pestle_allocator_system(), buffer, sizeof(*buffer));
  pestle_pjrt_client_release(client);
}

bool pestle_pjrt_buffer_is_ready(const PJRT_Buffer* buffer) {
  return !buffer->ready || pestle_pjrt_event_is_ready(buffer->ready);
}

PJRT_Error* pestle_pjrt_buffer_check_arrives(PJRT_Buffer* buffer) {
  pestle_buffer_t* memory;
  if (pestle_pjrt_buffer_is_ready(buffer)) return NULL;
  // What the parent of a fork() computes never comes here.
  PJRT_TRY(pestle_pjrt_client_check(buffer->device->client));
  if (!pestle_pjrt_in_callback(buffer->device)) return NULL;
  PJRT_TRY(pestle_pjrt_buffer_hold(buffer, &memory));
  // What came before the callback is there, though nobody has been told yet.
  bool is_behind = memory && !pestle_buffer_is_ready(memory);
  pestle_buffer_release(memory);
  if (!is_behind) return NULL;
  return pestle_pjrt_error(
      PJRT_Error_Code_FAILED_PRECONDITION,
      "a Python callback asks for an array that is computed behind it, and "
      "would wait for ever: give the callback what it needs as an argument");
}

static bool is_deleted(const PJRT_Buffer* buffer) {
  return atomic_load_explicit(&buffer->is_deleted, memory_order_acquire);
}

static PJRT_Error* deleted(void) {
  return INVALID("the buffer was deleted or donated");
}

// Whoever asks for the memory ends the hold of the execution that makes it.
static void settle(PJRT_Buffer* buffer) {
  if (buffer->device->merge) pestle_pjrt_merge_settle(buffer);
}

PJRT_Error* pestle_pjrt_buffer_hold(PJRT_Buffer* buffer,
                                    pestle_buffer_t** out_memory) {
  settle(buffer);
  return pestle_pjrt_buffer_hold_now(buffer, out_memory);
}

void pestle_pjrt_buffer_deliver(PJRT_Buffer* buffer, pestle_buffer_t* memory) {
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  if (!is_deleted(buffer) || buffer->external) {
    buffer->memory = memory;
    memory = NULL;
  }
  atomic_store_explicit(&buffer->is_held, false, memory_order_release);
  pestle_mutex_unlock(&buffer->mutex);
  pestle_buffer_release(memory);
}

PJRT_Error* pestle_pjrt_buffer_hold_now(PJRT_Buffer* buffer,
                                        pestle_buffer_t** out_memory) {
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  bool is_gone = is_deleted(buffer);
  *out_memory = is_gone ? NULL : buffer->memory;
  pestle_buffer_retain(*out_memory);
  pestle_mutex_unlock(&buffer->mutex);
  return is_gone ? deleted() : NULL;
}

PJRT_Error* pestle_pjrt_buffer_consume(PJRT_Buffer* buffer,
                                       pestle_buffer_t** out_memory,
                                       bool* out_is_ours) {
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  bool is_gone = is_deleted(buffer);
  *out_memory = is_gone ? NULL : buffer->memory;
  *out_is_ours = !is_gone && !buffer->external;
  if (*out_is_ours)
    buffer->memory = NULL;
  else
    pestle_buffer_retain(*out_memory);
  atomic_store_explicit(&buffer->is_deleted, true, memory_order_release);
  pestle_mutex_unlock(&buffer->mutex);
  return is_gone ? deleted() : NULL;
}

void pestle_pjrt_buffer_restore(PJRT_Buffer* buffer, pestle_buffer_t* memory) {
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  if (!buffer->memory) {
    buffer->memory = memory;
    memory = NULL;
  }
  atomic_store_explicit(&buffer->is_deleted, false, memory_order_release);
  pestle_mutex_unlock(&buffer->mutex);
  pestle_buffer_release(memory);
}

// Memory that somebody reads at its address stays until he says that he does not.
static void delete_buffer(PJRT_Buffer* buffer) {
  pestle_buffer_t* memory = NULL;
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  atomic_store_explicit(&buffer->is_deleted, true, memory_order_release);
  if (!buffer->external) {
    memory = buffer->memory;
    buffer->memory = NULL;
  }
  pestle_mutex_unlock(&buffer->mutex);
  pestle_buffer_release(memory);
}

PJRT_Error* pestle_PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Destroy, buffer, buffer);
  delete_buffer(args->buffer);
  pestle_pjrt_buffer_release(args->buffer);
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Delete, buffer, buffer);
  delete_buffer(args->buffer);
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_IsDeleted, buffer, is_deleted);
  args->is_deleted = is_deleted(args->buffer);
  return NULL;
}

// --- What it is ---

PJRT_Error* pestle_PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_ElementType, buffer, type);
  args->type = args->buffer->shape.type;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Dimensions, buffer, num_dims);
  args->dims = args->buffer->shape.dims;
  args->num_dims = args->buffer->shape.rank;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_UnpaddedDimensions(
    PJRT_Buffer_UnpaddedDimensions_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_UnpaddedDimensions, buffer, num_dims);
  args->unpadded_dims = args->buffer->shape.dims;
  args->num_dims = args->buffer->shape.rank;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_DynamicDimensionIndices(
    PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_DynamicDimensionIndices, buffer, num_dynamic_dims);
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_GetMemoryLayout(
    PJRT_Buffer_GetMemoryLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_GetMemoryLayout, buffer, layout.type);
  const PJRT_Buffer* buffer = args->buffer;
  args->layout = (PJRT_Buffer_MemoryLayout){
      .struct_size = sizeof(PJRT_Buffer_MemoryLayout),
      .tiled = {.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled),
                .minor_to_major = buffer->minor_to_major,
                .minor_to_major_size = buffer->shape.rank},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_OnDeviceSizeInBytes(
    PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_OnDeviceSizeInBytes, buffer,
               on_device_size_in_bytes);
  args->on_device_size_in_bytes = args->buffer->shape.size;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_Device(PJRT_Buffer_Device_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Device, buffer, device);
  args->device = args->buffer->device;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_Memory(PJRT_Buffer_Memory_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Memory, buffer, memory);
  args->memory = args->buffer->device->memory_handle;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_IsOnCpu, buffer, is_on_cpu);
  args->is_on_cpu = args->buffer->device->is_cpu;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_ReadyEvent, buffer, event);
  PJRT_Buffer* buffer = args->buffer;
  args->event = NULL;
  settle(buffer);
  if (is_deleted(buffer)) return deleted();
  // As an event: an error of this function ends the framework's process.
  PJRT_Error* behind = pestle_pjrt_buffer_check_arrives(buffer);
  if (behind) {
    args->event = pestle_pjrt_event_create();
    if (!args->event) return behind;
    pestle_pjrt_event_set(args->event, behind);
    return NULL;
  }
  args->event = buffer->ready ? buffer->ready : buffer->device->client->ready;
  pestle_pjrt_event_retain(args->event);
  return NULL;
}

// --- Its memory at an address ---

// The address of the first byte; a place that is not NULL where there is none.
static PJRT_Error* address(PJRT_Buffer* buffer, void** out_address) {
  static const char nothing[64] = {0};
  pestle_buffer_t* memory;
  PJRT_TRY(pestle_pjrt_buffer_hold(buffer, &memory));
  *out_address = memory ? pestle_buffer_data(memory) : NULL;
  if (!*out_address) *out_address = (void*)(uintptr_t)nothing;
  pestle_buffer_release(memory);  // the caller sees to it that it stays
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_UnsafePointer(
    PJRT_Buffer_UnsafePointer_Args* args) {
  void* data;
  PJRT_REQUIRE(PJRT_Buffer_UnsafePointer, buffer, buffer_pointer);
  PJRT_TRY(address(args->buffer, &data));
  args->buffer_pointer = (uintptr_t)data;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, buffer,
               device_memory_ptr);
  return address(args->buffer, &args->device_memory_ptr);
}

PJRT_Error* pestle_PJRT_Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_IncreaseExternalReferenceCount, buffer, buffer);
  PJRT_Buffer* buffer = args->buffer;
  settle(buffer);
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  bool is_gone = is_deleted(buffer);
  if (!is_gone) {
    ++buffer->external;
    pestle_refcount_retain(&buffer->references);
  }
  pestle_mutex_unlock(&buffer->mutex);
  return is_gone ? deleted() : NULL;
}

PJRT_Error* pestle_PJRT_Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_DecreaseExternalReferenceCount, buffer, buffer);
  PJRT_Buffer* buffer = args->buffer;
  pestle_buffer_t* memory = NULL;
  pestle_pjrt_lock(buffer->device->client, &buffer->mutex);
  bool is_counted = buffer->external > 0;
  if (is_counted && --buffer->external == 0 && is_deleted(buffer)) {
    memory = buffer->memory;
    buffer->memory = NULL;
  }
  pestle_mutex_unlock(&buffer->mutex);
  pestle_buffer_release(memory);
  if (!is_counted)
    return INVALID(
        "the buffer has no external reference that could be dropped");
  pestle_pjrt_buffer_release(buffer);
  return NULL;
}
