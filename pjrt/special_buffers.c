// SPDX-License-Identifier: Apache-2.0
// Buffers that are made of neither the host's data nor a program: without
// contents, with an error in their place, of memory that somebody else owns.
#include <string.h>

#include "base/mem.h"
#include "pjrt/buffer.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// The device that is named by any of three handles, and the layout.
static PJRT_Error* check_place(PJRT_Client* client, PJRT_Device* device,
                               PJRT_Memory* memory, pestle_pjrt_shape_t* shape,
                               const PJRT_Buffer_MemoryLayout* layout,
                               PJRT_Device** out_device) {
  if (memory) device = pestle_pjrt_memory_of(memory)->device;
  *out_device = device ? device : &client->device;
  if ((*out_device)->client != client)
    return INVALID("the device or memory belongs to another client");
  PJRT_TRY(pestle_pjrt_check_local(*out_device));
  return pestle_pjrt_shape_set_layout(shape, layout);
}

PJRT_Error* pestle_PJRT_Client_CreateUninitializedBuffer(
    PJRT_Client_CreateUninitializedBuffer_Args* args) {
  PJRT_REQUIRE(PJRT_Client_CreateUninitializedBuffer, client, buffer);
  pestle_pjrt_shape_t shape;
  PJRT_Device* device;
  args->buffer = NULL;
  PJRT_TRY(pestle_pjrt_client_check(args->client));
  PJRT_TRY(pestle_pjrt_shape_make(args->shape_element_type, args->shape_dims,
                                  args->shape_num_dims, &shape));
  PJRT_TRY(check_place(args->client, args->device, args->memory, &shape,
                       args->shape_layout, &device));
  PJRT_Buffer* buffer = pestle_pjrt_buffer_create(device, &shape, NULL);
  if (!buffer) return pestle_pjrt_out_of_memory();
  PJRT_Error* error = NULL;
  if (shape.size) {
    error = pestle_pjrt_error_of(
        pestle_buffer_create(device->device, shape.size, &buffer->memory));
  }
  if (error)
    pestle_pjrt_buffer_release(buffer);
  else
    args->buffer = buffer;
  return error;
}

PJRT_Error* pestle_PJRT_Client_CreateErrorBuffer(
    PJRT_Client_CreateErrorBuffer_Args* args) {
  PJRT_REQUIRE(PJRT_Client_CreateErrorBuffer, client, buffer);
  pestle_pjrt_shape_t shape;
  PJRT_Device* device;
  args->buffer = NULL;
  if (args->error_message_size && !args->error_message) {
    return pestle_pjrt_no_handle("PJRT_Client_CreateErrorBuffer",
                                 "error_message");
  }
  PJRT_TRY(pestle_pjrt_shape_make(args->shape_element_type, args->shape_dims,
                                  args->shape_num_dims, &shape));
  PJRT_TRY(check_place(args->client, NULL, args->memory, &shape,
                       args->shape_layout, &device));
  PJRT_Event* event = pestle_pjrt_event_create();
  if (!event) return pestle_pjrt_out_of_memory();
  pestle_pjrt_event_set(
      event, pestle_pjrt_error_text(args->error_code, args->error_message,
                                    args->error_message_size));
  args->buffer = pestle_pjrt_buffer_create(device, &shape, event);
  pestle_pjrt_event_release(event);
  return args->buffer ? NULL : pestle_pjrt_out_of_memory();
}

typedef struct view_t {
  void (*on_delete)(void* data, void* user_arg);
  void* data;
  void* user_arg;
} view_t;

static void end_view(void* self) {
  view_t view = *(view_t*)self;
  pestle_dealloc(pestle_allocator_system(), self, sizeof(view_t));
  if (view.on_delete) view.on_delete(view.data, view.user_arg);
}

// The owner's callback comes when nobody uses the memory any more; on failure it
// does not.
static PJRT_Error* wrap_view(PJRT_Device* device, size_t size,
                             const view_t* view, pestle_buffer_t** out_memory) {
  view_t* copy = pestle_alloc(pestle_allocator_system(), sizeof(*copy));
  if (!copy) return pestle_pjrt_out_of_memory();
  *copy = *view;
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .release = end_view,
                                          .release_self = copy};
  pestle_status_t status = pestle_buffer_wrap(device->device, view->data, size,
                                              &options, out_memory);
  if (status) pestle_dealloc(pestle_allocator_system(), copy, sizeof(*copy));
  return pestle_pjrt_error_of(status);
}

PJRT_Error* pestle_PJRT_Client_CreateViewOfDeviceBuffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args* args) {
  PJRT_REQUIRE(PJRT_Client_CreateViewOfDeviceBuffer, client, buffer);
  pestle_pjrt_shape_t shape;
  PJRT_Device* device;
  PJRT_Memory* place = PJRT_HAS(PJRT_Client_CreateViewOfDeviceBuffer, memory)
                           ? args->memory
                           : NULL;
  args->buffer = NULL;
  PJRT_TRY(pestle_pjrt_client_check(args->client));
  PJRT_TRY(pestle_pjrt_shape_make(args->element_type, args->dims,
                                  args->num_dims, &shape));
  PJRT_TRY(check_place(args->client, args->device, place, &shape, args->layout,
                       &device));
  if (shape.size && !args->device_buffer_ptr) {
    return pestle_pjrt_no_handle("PJRT_Client_CreateViewOfDeviceBuffer",
                                 "device_buffer_ptr");
  }
  if (args->stream && !device->is_cpu) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_Client_CreateViewOfDeviceBuffer: a view that "
        "waits for a stream of the device; wait for the "
        "stream, then pass NULL");
  }
  PJRT_Buffer* buffer = pestle_pjrt_buffer_create(device, &shape, NULL);
  if (!buffer) return pestle_pjrt_out_of_memory();
  view_t view = {args->on_delete_callback, args->device_buffer_ptr,
                 args->on_delete_callback_arg};
  PJRT_Error* error = wrap_view(device, shape.size, &view, &buffer->memory);
  if (error)
    pestle_pjrt_buffer_release(buffer);
  else
    args->buffer = buffer;
  return error;
}
