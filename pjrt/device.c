// SPDX-License-Identifier: Apache-2.0
// Devices, their descriptions, their memories and the topology. No slot here may
// fail for a good handle: an error ends the framework's process.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pjrt/client.h"
#include "pjrt/slots.h"

// --- Values that the framework hangs onto a memory ---

static void* get_user_data(PJRT_Memory* handle, const void* key) {
  pestle_pjrt_memory_t* memory = pestle_pjrt_memory_of(handle);
  void* data = NULL;
  pestle_pjrt_lock(memory->device->client, &memory->mutex);
  for (pestle_pjrt_user_data_t* u = memory->user_data; u && !data;
       u = u->next) {
    if (u->key == key) data = u->data;
  }
  pestle_mutex_unlock(&memory->mutex);
  return data;
}

// Without memory the value is given up at once.
static void set_user_data(PJRT_Memory* handle, const void* key, void* data,
                          void (*destroy)(void*)) {
  pestle_pjrt_memory_t* memory = pestle_pjrt_memory_of(handle);
  pestle_pjrt_user_data_t old = {key, data, destroy, NULL};
  pestle_pjrt_lock(memory->device->client, &memory->mutex);
  pestle_pjrt_user_data_t* u = memory->user_data;
  while (u && u->key != key)
    u = u->next;
  if (u) {
    old = *u;
    u->data = data;
    u->destroy = destroy;
  } else {
    u = pestle_alloc(pestle_allocator_system(), sizeof(*u));
    if (u) {
      *u = (pestle_pjrt_user_data_t){key, data, destroy, memory->user_data};
      memory->user_data = u;
      old.destroy = NULL;
    }
  }
  pestle_mutex_unlock(&memory->mutex);
  if (old.destroy) old.destroy(old.data);
}

static const PJRT_Memory_FunctionTable memory_functions = {
    .struct_size = sizeof(PJRT_Memory_FunctionTable),
    .instance_struct_size = sizeof(pestle_pjrt_memory_t),
    .get_user_data = get_user_data,
    .set_user_data = set_user_data,
};

static void memory_init(PJRT_Device* device, pestle_pjrt_memory_t* out_memory) {
  out_memory->head.vtable = &memory_functions;
  out_memory->device = device;
  out_memory->id = device->description.id;
  snprintf(out_memory->text, sizeof(out_memory->text),
           "pestle:%d " PESTLE_PJRT_MEMORY_KIND, device->description.id);
  pestle_mutex_init(&out_memory->mutex);
}

static void memory_deinit(pestle_pjrt_memory_t* memory) {
  pestle_pjrt_user_data_t* u = memory->user_data;
  while (u) {
    pestle_pjrt_user_data_t* next = u->next;
    if (u->destroy) u->destroy(u->data);
    pestle_dealloc(pestle_allocator_system(), u, sizeof(*u));
    u = next;
  }
  memory->user_data = NULL;
  pestle_mutex_deinit(&memory->mutex);
}

// --- Devices ---

PJRT_Error* pestle_pjrt_device_init(PJRT_Client* client,
                                    pestle_device_t* device,
                                    PJRT_Device* out_device) {
  PJRT_DeviceDescription* d = &out_device->description;
  snprintf(d->text, sizeof(d->text), "PestleDevice(id=%d)", d->id);
  if (device) {
    snprintf(d->debug_text, sizeof(d->debug_text), "pestle:%d (%.64s)", d->id,
             pestle_device_name(device));
  } else {
    snprintf(d->debug_text, sizeof(d->debug_text), "pestle:%d (process %d)",
             d->id, d->process);
  }
  out_device->client = client;
  out_device->description_handle = d;
  out_device->memory_handle = &out_device->memory.head;
  out_device->handle = out_device;
  out_device->device = device;
  memory_init(out_device, &out_device->memory);
  pestle_mutex_init(&out_device->mutex);
  if (!device) return NULL;
  pestle_status_t status = pestle_stream_create(device, &out_device->stream);
  if (!status) status = pestle_event_create(device, &out_device->done);
  return pestle_pjrt_error_of(status);
}

PJRT_Error* pestle_pjrt_check_local(const PJRT_Device* device) {
  if (pestle_pjrt_is_local(device)) return NULL;
  return pestle_pjrt_error(
      PJRT_Error_Code_INVALID_ARGUMENT,
      "device %d is of process %d and out of reach here: this process has "
      "devices %d to %d",
      device->description.id, device->description.process,
      device->client->device.description.id,
      device->client->device.description.id + (int)device->client->local_count -
          1);
}

void pestle_pjrt_device_deinit(PJRT_Device* device) {
  if (!device->client) return;
  pestle_event_release(device->done);
  pestle_stream_release(device->stream);
  memory_deinit(&device->memory);
  pestle_mutex_deinit(&device->mutex);
}

// Sets a text and its size.
#define SET_TEXT(text_field, size_field, value) \
  (args->text_field = (value), args->size_field = strlen(args->text_field))

PJRT_Error* pestle_PJRT_Device_GetDescription(
    PJRT_Device_GetDescription_Args* args) {
  PJRT_REQUIRE(PJRT_Device_GetDescription, device, device_description);
  args->device_description = &args->device->description;
  return NULL;
}

PJRT_Error* pestle_PJRT_Device_IsAddressable(
    PJRT_Device_IsAddressable_Args* args) {
  PJRT_REQUIRE(PJRT_Device_IsAddressable, device, is_addressable);
  args->is_addressable = pestle_pjrt_is_local(args->device);
  return NULL;
}

PJRT_Error* pestle_PJRT_Device_LocalHardwareId(
    PJRT_Device_LocalHardwareId_Args* args) {
  PJRT_REQUIRE(PJRT_Device_LocalHardwareId, device, local_hardware_id);
  args->local_hardware_id = args->device->local;
  return NULL;
}

PJRT_Error* pestle_PJRT_Device_AddressableMemories(
    PJRT_Device_AddressableMemories_Args* args) {
  PJRT_REQUIRE(PJRT_Device_AddressableMemories, device, num_memories);
  args->memories = &args->device->memory_handle;
  args->num_memories = pestle_pjrt_is_local(args->device) ? 1 : 0;
  return NULL;
}

PJRT_Error* pestle_PJRT_Device_DefaultMemory(
    PJRT_Device_DefaultMemory_Args* args) {
  PJRT_REQUIRE(PJRT_Device_DefaultMemory, device, memory);
  PJRT_TRY(pestle_pjrt_check_local(args->device));
  args->memory = &args->device->memory.head;
  return NULL;
}

// The deleter must be there, though there is nothing to delete.
static void keep_attributes(PJRT_Device_Attributes* attributes) {
  (void)attributes;
}

PJRT_Error* pestle_PJRT_Device_GetAttributes(
    PJRT_Device_GetAttributes_Args* args) {
  PJRT_REQUIRE(PJRT_Device_GetAttributes, device, attributes_deleter);
  args->attributes = NULL;
  args->num_attributes = 0;
  args->device_attributes = NULL;
  args->attributes_deleter = keep_attributes;
  return NULL;
}

// A number of the device's memory, if the backend has it.
static bool memory_number(PJRT_Device* device, pestle_memory_t what,
                          int64_t* out_value) {
  uint64_t bytes = 0;
  pestle_status_t status =
      pestle_device_memory_get(device->device, what, &bytes);
  bool is_known = !status && bytes <= INT64_MAX;
  pestle_status_release(status);
  *out_value = is_known ? (int64_t)bytes : 0;
  return is_known;
}

PJRT_Error* pestle_PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args* args) {
  PJRT_REQUIRE(PJRT_Device_MemoryStats, device, peak_pool_bytes_is_set);
  pestle_memory_stats_t stats = {.struct_size = sizeof(stats)};
  PJRT_TRY(pestle_pjrt_check_local(args->device));
  pestle_device_memory_stats(args->device->device, &stats);
  args->bytes_in_use = (int64_t)stats.active;
  args->peak_bytes_in_use = (int64_t)stats.peak;
  args->peak_bytes_in_use_is_set = true;
  args->num_allocs = 0;
  args->num_allocs_is_set = false;
  args->largest_alloc_size = 0;
  args->largest_alloc_size_is_set = false;
  args->bytes_limit_is_set =
      (memory_number(args->device, PESTLE_MEMORY_LIMIT, &args->bytes_limit) &&
       args->bytes_limit) ||
      (memory_number(args->device, PESTLE_MEMORY_TOTAL, &args->bytes_limit) &&
       args->bytes_limit);
  args->bytes_reserved = 0;
  args->bytes_reserved_is_set = false;
  args->peak_bytes_reserved = 0;
  args->peak_bytes_reserved_is_set = false;
  args->bytes_reservable_limit = 0;
  args->bytes_reservable_limit_is_set = false;
  args->largest_free_block_bytes = 0;
  args->largest_free_block_bytes_is_set = false;
  args->pool_bytes = (int64_t)(stats.active + stats.cached);
  args->pool_bytes_is_set = true;
  args->peak_pool_bytes = 0;
  args->peak_pool_bytes_is_set = false;
  return NULL;
}

PJRT_Error* pestle_PJRT_Device_ClearMemoryStats(
    PJRT_Device_ClearMemoryStats_Args* args) {
  PJRT_REQUIRE(PJRT_Device_ClearMemoryStats, device, device);
  PJRT_TRY(pestle_pjrt_check_local(args->device));
  return pestle_pjrt_error_of(pestle_device_memory_set(
      args->device->device, PESTLE_MEMORY_PEAK, 0, NULL));
}

// --- Descriptions ---

PJRT_Error* pestle_PJRT_DeviceDescription_Id(
    PJRT_DeviceDescription_Id_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_Id, device_description, id);
  args->id = args->device_description->id;
  return NULL;
}

PJRT_Error* pestle_PJRT_DeviceDescription_ProcessIndex(
    PJRT_DeviceDescription_ProcessIndex_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_ProcessIndex, device_description,
               process_index);
  args->process_index = args->device_description->process;
  return NULL;
}

PJRT_Error* pestle_PJRT_DeviceDescription_Attributes(
    PJRT_DeviceDescription_Attributes_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_Attributes, device_description,
               attributes);
  args->num_attributes = 0;
  args->attributes = NULL;
  return NULL;
}

PJRT_Error* pestle_PJRT_DeviceDescription_Kind(
    PJRT_DeviceDescription_Kind_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_Kind, device_description,
               device_kind_size);
  SET_TEXT(device_kind, device_kind_size, args->device_description->kind);
  return NULL;
}

PJRT_Error* pestle_PJRT_DeviceDescription_DebugString(
    PJRT_DeviceDescription_DebugString_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_DebugString, device_description,
               debug_string_size);
  SET_TEXT(debug_string, debug_string_size,
           args->device_description->debug_text);
  return NULL;
}

PJRT_Error* pestle_PJRT_DeviceDescription_ToString(
    PJRT_DeviceDescription_ToString_Args* args) {
  PJRT_REQUIRE(PJRT_DeviceDescription_ToString, device_description,
               to_string_size);
  SET_TEXT(to_string, to_string_size, args->device_description->text);
  return NULL;
}

// --- Memories ---

PJRT_Error* pestle_PJRT_Memory_Id(PJRT_Memory_Id_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_Id, memory, id);
  args->id = pestle_pjrt_memory_of(args->memory)->id;
  return NULL;
}

PJRT_Error* pestle_PJRT_Memory_Kind(PJRT_Memory_Kind_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_Kind, memory, kind_size);
  SET_TEXT(kind, kind_size, PESTLE_PJRT_MEMORY_KIND);
  return NULL;
}

PJRT_Error* pestle_PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_Kind_Id, memory, kind_id);
  args->kind_id = 0;
  return NULL;
}

PJRT_Error* pestle_PJRT_Memory_DebugString(PJRT_Memory_DebugString_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_DebugString, memory, debug_string_size);
  SET_TEXT(debug_string, debug_string_size,
           pestle_pjrt_memory_of(args->memory)->text);
  return NULL;
}

PJRT_Error* pestle_PJRT_Memory_ToString(PJRT_Memory_ToString_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_ToString, memory, to_string_size);
  SET_TEXT(to_string, to_string_size,
           pestle_pjrt_memory_of(args->memory)->text);
  return NULL;
}

PJRT_Error* pestle_PJRT_Memory_AddressableByDevices(
    PJRT_Memory_AddressableByDevices_Args* args) {
  PJRT_REQUIRE(PJRT_Memory_AddressableByDevices, memory, num_devices);
  args->devices = &pestle_pjrt_memory_of(args->memory)->device->handle;
  args->num_devices = 1;
  return NULL;
}
