// SPDX-License-Identifier: Apache-2.0
// Between the host and buffers. Nothing here waits for a computation: the caller
// may hold the interpreter lock that the computation needs.
#include <string.h>

#include "base/mem.h"
#include "pjrt/buffer.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// Up to here a copy costs less than to tell the owner when his memory is free.
enum { SMALL = 4096 };

// --- From the host ---

static void host_memory_is_free(void* event) {
  pestle_pjrt_event_set(event, NULL);
  pestle_pjrt_event_release(event);
}

// The host's memory as the buffer's own; |*out_done| fires when nobody uses it.
static PJRT_Error* wrap(PJRT_Device* device, const void* data, size_t size,
                        bool is_mutable, pestle_buffer_t** out_memory,
                        PJRT_Event** out_done) {
  PJRT_Event* event = pestle_pjrt_event_create();
  if (!event) return pestle_pjrt_out_of_memory();
  pestle_pjrt_event_retain(event);
  pestle_buffer_wrap_options_t options = {
      .struct_size = sizeof(options),
      .flags = is_mutable ? 0 : PESTLE_BUFFER_READ_ONLY,
      .release = host_memory_is_free,
      .release_self = event};
  pestle_status_t status = pestle_buffer_wrap(
      device->device, (void*)(uintptr_t)data, size, &options, out_memory);
  if (status) {
    pestle_pjrt_event_release(event);
    pestle_pjrt_event_release(event);
    return pestle_pjrt_error_of(status);
  }
  *out_done = event;
  return NULL;
}

// Elements of |shape| as buffers have them: NumPy leaves the upper bits of those of
// fewer than 8 bits 0, here they extend the value.
static void pack(const pestle_pjrt_shape_t* shape, const void* data,
                 const int64_t* strides, void* target) {
  int64_t dense[PESTLE_MAX_RANK];
  pestle_pjrt_device_strides(shape, dense);
  pestle_pjrt_copy_strided(shape, data, strides, target, dense);
  pestle_pjrt_extend(shape->dtype, target, shape->size);
}

// The same through memory of the host's, where the device's is out of its reach.
static PJRT_Error* pack_and_write(const pestle_pjrt_shape_t* shape,
                                  const void* data, const int64_t* strides,
                                  pestle_buffer_t* memory) {
  void* host = pestle_alloc(pestle_allocator_system(), shape->size);
  if (!host) return pestle_pjrt_out_of_memory();
  pack(shape, data, strides, host);
  pestle_status_t status = pestle_buffer_write(memory, 0, host, shape->size);
  pestle_dealloc(pestle_allocator_system(), host, shape->size);
  return pestle_pjrt_error_of(status);
}

// New memory with the elements of |data|.
static PJRT_Error* copy(PJRT_Device* device, const pestle_pjrt_shape_t* shape,
                        const void* data, const int64_t* strides,
                        pestle_buffer_t** out_memory) {
  pestle_buffer_t* memory = NULL;
  PJRT_Error* error = pestle_pjrt_error_of(
      pestle_buffer_create(device->device, shape->size, &memory));
  if (error) return error;
  void* host = pestle_buffer_host_data(memory);
  if (host) {
    pack(shape, data, strides, host);
  } else if (pestle_pjrt_lies_so(shape, strides) &&
             !pestle_dtype_is_sub_byte(shape->dtype)) {
    error =
        pestle_pjrt_error_of(pestle_buffer_write(memory, 0, data, shape->size));
  } else {
    error = pack_and_write(shape, data, strides, memory);
  }
  if (error) {
    pestle_buffer_release(memory);
    memory = NULL;
  }
  *out_memory = memory;
  return error;
}

// Whether runs may read |data| where it lies.
static bool may_alias(const PJRT_Device* device,
                      const pestle_pjrt_shape_t* shape, const void* data,
                      const int64_t* strides,
                      PJRT_HostBufferSemantics semantics) {
  return device->is_cpu && shape->size > SMALL &&
         !pestle_dtype_is_sub_byte(shape->dtype) &&
         (semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy ||
          semantics == PJRT_HostBufferSemantics_kMutableZeroCopy) &&
         (uintptr_t)data % shape->element == 0 &&
         pestle_pjrt_lies_so(shape, strides);
}

static PJRT_Error* find_place(PJRT_Client* client, PJRT_Device* device,
                              PJRT_Memory* memory, PJRT_Device** out_device) {
  if (memory) device = pestle_pjrt_memory_of(memory)->device;
  *out_device = device ? device : &client->device;
  if ((*out_device)->client == client)
    return pestle_pjrt_check_local(*out_device);
  return INVALID("the device or memory belongs to another client");
}

PJRT_Error* pestle_PJRT_Client_BufferFromHostBuffer(
    PJRT_Client_BufferFromHostBuffer_Args* args) {
  PJRT_REQUIRE(PJRT_Client_BufferFromHostBuffer, client, buffer);
  pestle_pjrt_shape_t shape;
  PJRT_Device* device;
  int64_t strides[PESTLE_MAX_RANK];
  pestle_buffer_t* memory = NULL;
  PJRT_Event* done = NULL;
  args->done_with_host_buffer = NULL;
  args->buffer = NULL;
  PJRT_TRY(pestle_pjrt_client_check(args->client));
  PJRT_TRY(
      pestle_pjrt_shape_make(args->type, args->dims, args->num_dims, &shape));
  PJRT_TRY(find_place(args->client, args->device, args->memory, &device));
  PJRT_TRY(pestle_pjrt_shape_set_layout(&shape, args->device_layout));
  if (args->byte_strides && args->num_byte_strides != shape.rank) {
    return INVALID("%zu strides are given for %zu axes", args->num_byte_strides,
                   shape.rank);
  }
  if (shape.size && !args->data)
    return INVALID("a buffer of %zu bytes is given at NULL", shape.size);
  if (args->byte_strides && shape.rank)
    memcpy(strides, args->byte_strides, shape.rank * sizeof(int64_t));
  else
    pestle_pjrt_row_major(&shape, strides);
  PJRT_Buffer* buffer = pestle_pjrt_buffer_create(device, &shape, NULL);
  if (!buffer) return pestle_pjrt_out_of_memory();
  PJRT_Error* error = NULL;
  if (may_alias(device, &shape, args->data, strides,
                args->host_buffer_semantics)) {
    error = wrap(device, args->data, shape.size,
                 args->host_buffer_semantics ==
                     PJRT_HostBufferSemantics_kMutableZeroCopy,
                 &memory, &done);
  } else if (shape.size) {
    error = copy(device, &shape, args->data, strides, &memory);
  }
  if (error) {
    pestle_pjrt_buffer_release(buffer);
    return error;
  }
  buffer->memory = memory;
  args->buffer = buffer;
  args->done_with_host_buffer =
      done ? done : pestle_pjrt_client_ready(args->client);
  return NULL;
}

// --- To the host ---

// What is to be copied when the buffer is ready.
typedef struct read_t {
  PJRT_Client* client;
  pestle_buffer_t* memory;  // held
  pestle_pjrt_shape_t shape;
  int64_t strides[PESTLE_MAX_RANK];
  bool is_dense;
  size_t offset, size;  // of dense bytes
  void* target;
  PJRT_Event* event;  // held, set when it is done
} read_t;

static PJRT_Error* read_strided(const read_t* read) {
  int64_t dense[PESTLE_MAX_RANK];
  const size_t size = read->shape.size;
  const void* host = pestle_buffer_host_data(read->memory);
  void* staging = NULL;
  PJRT_Error* error = NULL;
  pestle_pjrt_device_strides(&read->shape, dense);
  if (!host) {
    staging = pestle_alloc(pestle_allocator_system(), size);
    if (!staging) return pestle_pjrt_out_of_memory();
    error = pestle_pjrt_error_of(
        pestle_buffer_read(read->memory, 0, staging, size));
    host = staging;
  }
  if (!error) {
    pestle_pjrt_copy_strided(&read->shape, host, dense, read->target,
                             read->strides);
  }
  pestle_dealloc(pestle_allocator_system(), staging, size);
  return error;
}

static PJRT_Error* perform(const read_t* read) {
  if (!read->size) return NULL;
  if (!read->is_dense) return read_strided(read);
  const char* host = pestle_buffer_host_data(read->memory);
  if (host) {
    memcpy(read->target, host + read->offset, read->size);
    return NULL;
  }
  return pestle_pjrt_error_of(
      pestle_buffer_read(read->memory, read->offset, read->target, read->size));
}

static void free_read(read_t* read) {
  PJRT_Client* client = read->client;
  pestle_buffer_release(read->memory);
  pestle_pjrt_event_release(read->event);
  pestle_dealloc(pestle_allocator_system(), read, sizeof(*read));
  pestle_pjrt_client_release(client);
}

static void read_when_ready(void* self, const PJRT_Error* failure) {
  read_t* read = self;
  pestle_pjrt_event_set(
      read->event, failure ? pestle_pjrt_error_copy(failure) : perform(read));
  free_read(read);
}

// Does |*wanted|, whose memory is taken over, now or when |buffer| is ready.
static PJRT_Error* read_buffer(PJRT_Buffer* buffer, const read_t* wanted,
                               PJRT_Event** out_event) {
  PJRT_Client* client = buffer->device->client;
  if (pestle_pjrt_buffer_is_ready(buffer)) {
    const PJRT_Error* failure =
        buffer->ready ? pestle_pjrt_event_error(buffer->ready) : NULL;
    PJRT_Error* error =
        failure ? pestle_pjrt_error_copy(failure) : perform(wanted);
    pestle_buffer_release(wanted->memory);
    if (!error) *out_event = pestle_pjrt_client_ready(client);
    return error;
  }
  PJRT_Error* behind = pestle_pjrt_buffer_check_arrives(buffer);
  if (behind) {
    pestle_buffer_release(wanted->memory);
    return behind;
  }
  read_t* read = pestle_alloc(pestle_allocator_system(), sizeof(*read));
  PJRT_Event* event = read ? pestle_pjrt_event_create() : NULL;
  if (!event) {
    pestle_buffer_release(wanted->memory);
    pestle_dealloc(pestle_allocator_system(), read, sizeof(*read));
    return pestle_pjrt_out_of_memory();
  }
  *read = *wanted;
  read->client = client;
  read->event = event;
  pestle_pjrt_client_retain(client);
  pestle_pjrt_event_retain(event);
  PJRT_Error* error =
      pestle_pjrt_event_then(buffer->ready, read_when_ready, read);
  if (error) {
    free_read(read);
    pestle_pjrt_event_release(event);
    return error;
  }
  *out_event = event;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_ToHostBuffer(
    PJRT_Buffer_ToHostBuffer_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_ToHostBuffer, src, event);
  read_t read = {.shape = args->src->shape, .target = args->dst};
  args->event = NULL;
  PJRT_TRY(
      pestle_pjrt_layout_strides(&read.shape, args->host_layout, read.strides));
  if (!args->dst) {
    args->dst_size = read.shape.size;  // the caller asks how much he needs
    return NULL;
  }
  if (args->dst_size < read.shape.size) {
    return INVALID("a buffer of %zu bytes is to be copied to %zu",
                   read.shape.size, args->dst_size);
  }
  read.is_dense = pestle_pjrt_lies_so(&read.shape, read.strides);
  read.size = read.shape.size;
  PJRT_TRY(pestle_pjrt_buffer_hold(args->src, &read.memory));
  return read_buffer(args->src, &read, &args->event);
}

// Whether |size| bytes from |offset| on lie in |buffer|.
static PJRT_Error* check_part(const PJRT_Buffer* buffer, int64_t offset,
                              int64_t size) {
  size_t all = buffer->shape.size;
  if (offset >= 0 && size >= 0 && (uint64_t)offset <= all &&
      (uint64_t)size <= all - (size_t)offset) {
    return NULL;
  }
  return INVALID("%lld bytes from byte %lld on lead out of a buffer of %zu",
                 (long long)size, (long long)offset, all);
}

static read_t part_of(const PJRT_Buffer* buffer, int64_t offset, int64_t size) {
  return (read_t){.shape = buffer->shape,
                  .is_dense = true,
                  .offset = (size_t)offset,
                  .size = (size_t)size};
}

PJRT_Error* pestle_PJRT_Buffer_CopyRawToHost(
    PJRT_Buffer_CopyRawToHost_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_CopyRawToHost, buffer, event);
  args->event = NULL;
  PJRT_TRY(check_part(args->buffer, args->offset, args->transfer_size));
  if (args->transfer_size && !args->dst)
    return pestle_pjrt_no_handle("PJRT_Buffer_CopyRawToHost", "dst");
  read_t read = part_of(args->buffer, args->offset, args->transfer_size);
  read.target = args->dst;
  PJRT_TRY(pestle_pjrt_buffer_hold(args->buffer, &read.memory));
  return read_buffer(args->buffer, &read, &args->event);
}

// What becomes of |event| becomes of |promised|.
static void pass_on(void* promised, const PJRT_Error* error) {
  pestle_pjrt_event_set(promised, pestle_pjrt_error_copy(error));
  pestle_pjrt_event_release(promised);
}

// --- To a place of the host's that is known later ---

// Its caller says where by future_ready_callback(), which may come from any
// thread and once.
typedef struct future_t {
  read_t read;          // its target is still open
  PJRT_Buffer* buffer;  // held
} future_t;

static void future_is_ready(
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  if (!args || !args->callback_data) return;
  future_t* future = args->callback_data;
  read_t read = future->read;
  PJRT_Buffer* buffer = future->buffer;
  PJRT_Event *promised = read.event, *event = NULL;
  PJRT_Error* error = NULL;
  pestle_dealloc(pestle_allocator_system(), future, sizeof(*future));
  read.event = NULL;
  read.target = args->dst;
  if (args->error_code) {
    error = pestle_pjrt_error_text(args->error_code, args->error_message,
                                   args->error_message_size);
    pestle_buffer_release(read.memory);
  } else if (read.size && !read.target) {
    error = INVALID(
        "a copy of %zu bytes that PJRT_Buffer_CopyRawToHostFuture promised is "
        "given NULL as its dst, and no error_code",
        read.size);
    pestle_buffer_release(read.memory);
  } else {
    error = read_buffer(buffer, &read, &event);
  }
  if (event) {
    error = pestle_pjrt_event_then(event, pass_on, promised);
    pestle_pjrt_event_release(event);
    if (!error) promised = NULL;
  }
  if (promised) {
    pestle_pjrt_event_set(promised, error);
    pestle_pjrt_event_release(promised);
  }
  pestle_pjrt_buffer_release(buffer);
}

PJRT_Error* pestle_PJRT_Buffer_CopyRawToHostFuture(
    PJRT_Buffer_CopyRawToHostFuture_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_CopyRawToHostFuture, buffer, future_ready_callback);
  args->event = NULL;
  PJRT_TRY(check_part(args->buffer, args->offset, args->transfer_size));
  future_t* future = pestle_alloc(pestle_allocator_system(), sizeof(*future));
  PJRT_Event* event = future ? pestle_pjrt_event_create() : NULL;
  if (!event) {
    pestle_dealloc(pestle_allocator_system(), future, sizeof(*future));
    return pestle_pjrt_out_of_memory();
  }
  *future = (future_t){part_of(args->buffer, args->offset, args->transfer_size),
                       args->buffer};
  PJRT_Error* error =
      pestle_pjrt_buffer_hold(args->buffer, &future->read.memory);
  if (error) {
    pestle_pjrt_event_release(event);
    pestle_dealloc(pestle_allocator_system(), future, sizeof(*future));
    return error;
  }
  pestle_refcount_retain(&args->buffer->references);
  pestle_pjrt_event_retain(event);
  future->read.event = event;
  args->event = event;
  args->callback_data = future;
  args->future_ready_callback = future_is_ready;
  return NULL;
}

// --- Between devices of one client ---

// A copy between the memories of two devices.
typedef struct move_t {
  PJRT_Client* client;      // held
  pestle_buffer_t* source;  // held
  pestle_buffer_t* target;  // held
  PJRT_Event* event;        // held, set when it is done
} move_t;

static PJRT_Error* copy_bytes(const move_t* move) {
  return pestle_pjrt_error_of(pestle_buffer_copy(
      move->source, 0, move->target, 0, pestle_buffer_size(move->target)));
}

static void free_move(move_t* move) {
  PJRT_Client* client = move->client;
  pestle_buffer_release(move->source);
  pestle_buffer_release(move->target);
  pestle_pjrt_event_release(move->event);
  pestle_dealloc(pestle_allocator_system(), move, sizeof(*move));
  pestle_pjrt_client_release(client);
}

static void move_when_ready(void* self, const PJRT_Error* failure) {
  move_t* move = self;
  pestle_pjrt_event_set(move->event, failure ? pestle_pjrt_error_copy(failure)
                                             : copy_bytes(move));
  free_move(move);
}

static move_t* make_move(PJRT_Client* client, pestle_buffer_t* source,
                         pestle_buffer_t* target) {
  move_t* move = pestle_alloc(pestle_allocator_system(), sizeof(*move));
  PJRT_Event* event = move ? pestle_pjrt_event_create() : NULL;
  if (!event) {
    pestle_dealloc(pestle_allocator_system(), move, sizeof(*move));
    return NULL;
  }
  *move = (move_t){client, source, target, event};
  pestle_pjrt_client_retain(client);
  pestle_buffer_retain(source);
  pestle_buffer_retain(target);
  return move;
}

// Fills |other|, whose memory is there, with what |source| has now or will have.
static PJRT_Error* move_to(PJRT_Buffer* buffer, pestle_buffer_t* source,
                           PJRT_Buffer* other) {
  PJRT_TRY(pestle_pjrt_buffer_check_arrives(buffer));
  move_t* move = make_move(buffer->device->client, source, other->memory);
  if (!move) return pestle_pjrt_out_of_memory();
  if (pestle_pjrt_buffer_is_ready(buffer)) {
    const PJRT_Error* failure =
        buffer->ready ? pestle_pjrt_event_error(buffer->ready) : NULL;
    PJRT_Error* error =
        failure ? pestle_pjrt_error_copy(failure) : copy_bytes(move);
    free_move(move);
    return error;
  }
  other->ready = move->event;
  pestle_pjrt_event_retain(other->ready);
  PJRT_Error* error =
      pestle_pjrt_event_then(buffer->ready, move_when_ready, move);
  if (error) free_move(move);
  return error;
}

// A buffer with memory of |device|'s, which is not the memory of |buffer|'s.
static PJRT_Error* copy_over(PJRT_Buffer* buffer, PJRT_Device* device,
                             PJRT_Buffer** out_buffer) {
  pestle_buffer_t* source;
  PJRT_Error* error = NULL;
  PJRT_TRY(pestle_pjrt_buffer_hold(buffer, &source));
  PJRT_Buffer* other = pestle_pjrt_buffer_create(device, &buffer->shape, NULL);
  if (!other) error = pestle_pjrt_out_of_memory();
  if (!error && source) {
    error = pestle_pjrt_error_of(pestle_buffer_create(
        device->device, buffer->shape.size, &other->memory));
    if (!error) error = move_to(buffer, source, other);
  }
  pestle_buffer_release(source);
  if (error)
    pestle_pjrt_buffer_release(other);
  else
    *out_buffer = other;
  return error;
}

// Another buffer on the same memory, which nobody writes while two refer to it.
static PJRT_Error* share(PJRT_Buffer* buffer, PJRT_Device* device,
                         PJRT_Buffer** out_buffer) {
  pestle_buffer_t* memory;
  if (device->client != buffer->device->client)
    return INVALID("the buffer is to be copied to a device of another client");
  PJRT_TRY(pestle_pjrt_check_local(device));
  if (device->device != buffer->device->device)
    return copy_over(buffer, device, out_buffer);
  PJRT_TRY(pestle_pjrt_buffer_hold(buffer, &memory));
  PJRT_Buffer* other =
      pestle_pjrt_buffer_create(device, &buffer->shape, buffer->ready);
  if (!other) {
    pestle_buffer_release(memory);
    return pestle_pjrt_out_of_memory();
  }
  other->memory = memory;
  *out_buffer = other;
  return NULL;
}

PJRT_Error* pestle_PJRT_Buffer_CopyToDevice(
    PJRT_Buffer_CopyToDevice_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_CopyToDevice, buffer, dst_buffer);
  args->dst_buffer = NULL;
  if (!args->dst_device)
    return pestle_pjrt_no_handle("PJRT_Buffer_CopyToDevice", "dst_device");
  return share(args->buffer, args->dst_device, &args->dst_buffer);
}

PJRT_Error* pestle_PJRT_Buffer_CopyToMemory(
    PJRT_Buffer_CopyToMemory_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_CopyToMemory, buffer, dst_buffer);
  args->dst_buffer = NULL;
  if (!args->dst_memory)
    return pestle_pjrt_no_handle("PJRT_Buffer_CopyToMemory", "dst_memory");
  return share(args->buffer, pestle_pjrt_memory_of(args->dst_memory)->device,
               &args->dst_buffer);
}

// The same bytes as another type: the memory is shared, as between copies.
PJRT_Error* pestle_PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args* args) {
  PJRT_REQUIRE(PJRT_Buffer_Bitcast, buffer, out_buffer);
  pestle_pjrt_shape_t shape;
  args->out_buffer = NULL;
  PJRT_TRY(pestle_pjrt_shape_make(args->element_type, args->dims,
                                  args->num_dims, &shape));
  PJRT_TRY(pestle_pjrt_shape_set_layout(&shape, args->device_layout));
  if (shape.size != args->buffer->shape.size) {
    return INVALID("a buffer of %zu bytes is to be one of %zu",
                   args->buffer->shape.size, shape.size);
  }
  PJRT_TRY(share(args->buffer, args->buffer->device, &args->out_buffer));
  pestle_pjrt_buffer_set_shape(args->out_buffer, &shape);
  return NULL;
}

// --- Memory of the host that a device reads by itself: any, where it is a CPU ---

PJRT_Error* pestle_PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args* args) {
  PJRT_REQUIRE(PJRT_Client_DmaMap, client, size);
  if (!args->data) return pestle_pjrt_no_handle("PJRT_Client_DmaMap", "data");
  if (args->client->device.is_cpu) return NULL;
  return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                           "PJRT_Client_DmaMap: mapping memory for %s; use "
                           "transfers from memory that is not mapped",
                           args->client->device_name);
}

PJRT_Error* pestle_PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args* args) {
  PJRT_REQUIRE(PJRT_Client_DmaUnmap, client, data);
  return args->data ? NULL
                    : pestle_pjrt_no_handle("PJRT_Client_DmaUnmap", "data");
}
