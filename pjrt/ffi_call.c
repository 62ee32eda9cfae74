// SPDX-License-Identifier: Apache-2.0
// A foreign function's call: the frame, and its stages in order.
#include <string.h>

#include "base/vec.h"
#include "pjrt/ffi.h"

static atomic_llong last_run;

// --- Attributes and state of a dictionary ---

static pestle_ffi_instance_t* find(pestle_ffi_binding_t* b,
                                   const char* dictionary) {
  pestle_ffi_instance_t* i = b->instances;
  while (i && strcmp(i->dictionary, dictionary))
    i = i->next;
  return i;
}

static pestle_status_t fill(pestle_ffi_instance_t* i, const char* dictionary) {
  i->dictionary = pestle_arena_strdup(&i->arena, dictionary);
  if (!i->dictionary) return PESTLE_OOM();
  return pestle_ffi_attrs_read(i->dictionary, &i->arena, &i->attrs);
}

static pestle_status_t make(pestle_ffi_binding_t* b, const char* dictionary,
                            pestle_ffi_instance_t** out) {
  pestle_ffi_instance_t* i =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*i));
  if (!i) return PESTLE_OOM();
  pestle_arena_init(pestle_allocator_system(), &i->arena);
  pestle_status_t status = fill(i, dictionary);
  if (status) {
    pestle_arena_deinit(&i->arena);
    pestle_dealloc(pestle_allocator_system(), i, sizeof(*i));
    return status;
  }
  i->next = b->instances;
  b->instances = i;
  *out = i;
  return NULL;
}

// --- The frame ---

typedef struct frame_t {
  XLA_FFI_CallFrame frame;
  pestle_arena_t arena;
} frame_t;

// The extents of |tensor| by the axes' names, where it lies in |order| (NULL:
// row-major).
static bool set_dims(const pestle_tensor_t* tensor,
                     const pestle_ffi_order_t* order, int64_t* dims) {
  bool is_fine = !order || order->rank == (size_t)tensor->ndim;
  for (int32_t i = 0; is_fine && i < tensor->ndim; ++i) {
    int64_t axis = order ? order->axes[i] : i;
    is_fine = axis >= 0 && axis < tensor->ndim;
    if (is_fine) dims[axis] = tensor->shape[i];
  }
  return is_fine;
}

static pestle_status_t make_buffer(const pestle_custom_call_t* call,
                                   const pestle_tensor_t* tensor,
                                   const pestle_ffi_order_t* order,
                                   pestle_arena_t* arena, void** out) {
  pestle_dtype_t dtype = pestle_dtype_from_dlpack(tensor->dtype);
  XLA_FFI_Buffer* buffer = PESTLE_ARENA_ARRAY(arena, XLA_FFI_Buffer, 1);
  int64_t* dims = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)tensor->ndim + 1);
  if (!buffer || !dims) return PESTLE_OOM();
  *buffer = (XLA_FFI_Buffer){.struct_size = sizeof(*buffer),
                             .dtype = pestle_ffi_dtype((int)dtype),
                             .data = (char*)tensor->data + tensor->byte_offset,
                             .rank = tensor->ndim,
                             .dims = dims};
  if (!set_dims(tensor, order, dims)) {
    return PESTLE_ERROR(INTERNAL, "%s is given orders of other tensors",
                        call->name);
  }
  if (buffer->dtype == XLA_FFI_DataType_INVALID) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "foreign function %s takes or makes a tensor of %s, "
                        "which lies otherwise in XLA's buffers: convert it to "
                        "a type of 8 bits or more",
                        call->name, pestle_dtype_info(dtype)->name);
  }
  *out = buffer;
  return NULL;
}

// Of |tensors|; |first| is the number of the first among the call's.
static pestle_status_t make_list(const pestle_custom_call_t* call,
                                 const pestle_tensor_t* tensors, size_t count,
                                 size_t first, const pestle_ffi_attrs_t* attrs,
                                 pestle_arena_t* arena, int** out_types,
                                 void*** out_buffers) {
  int* types = PESTLE_ARENA_ARRAY(arena, int, count + 1);
  void** buffers = PESTLE_ARENA_ARRAY(arena, void*, count + 1);
  if (!types || !buffers) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = XLA_FFI_ArgType_BUFFER;
    PESTLE_TRY(make_buffer(call, &tensors[i],
                           attrs->orders ? &attrs->orders[first + i] : NULL,
                           arena, &buffers[i]));
  }
  *out_types = types;
  *out_buffers = buffers;
  return NULL;
}

static pestle_status_t make_frame(const pestle_custom_call_t* call,
                                  const pestle_ffi_attrs_t* attrs,
                                  pestle_arena_t* arena,
                                  XLA_FFI_CallFrame* out) {
  size_t all = call->input_count + call->output_count;
  *out = (XLA_FFI_CallFrame){// Functions compare it, without the last field.
                             .struct_size = offsetof(XLA_FFI_CallFrame, future),
                             .api = &pestle_ffi_api,
                             .args = {.struct_size = sizeof(out->args),
                                      .size = (int64_t)call->input_count},
                             .rets = {.struct_size = sizeof(out->rets),
                                      .size = (int64_t)call->output_count},
                             .attrs = attrs->attrs};
  if (attrs->orders && attrs->order_count != all) {
    return PESTLE_ERROR(INTERNAL, "%s has %zu tensors and the orders of %zu",
                        call->name, all, attrs->order_count);
  }
  PESTLE_TRY(make_list(call, call->inputs, call->input_count, 0, attrs, arena,
                       &out->args.types, &out->args.args));
  return make_list(call, call->outputs, call->output_count, call->input_count,
                   attrs, arena, &out->rets.types, &out->rets.rets);
}

// --- Stages ---

static pestle_status_t run_stage(const pestle_ffi_row_t* row,
                                 XLA_FFI_ExecutionStage stage,
                                 const XLA_FFI_CallFrame* frame,
                                 XLA_FFI_ExecutionContext* context) {
  XLA_FFI_Handler handler = atomic_load(&row->stages[stage]);
  if (!handler) return NULL;
  XLA_FFI_CallFrame mine = *frame;
  mine.stage = stage;
  mine.ctx = context;
  mine.future = NULL;
  XLA_FFI_Error* error = handler(&mine);
  if (mine.future) {
    XLA_FFI_Error* later = pestle_ffi_future_wait(mine.future);
    if (!error) {
      error = later;
    } else {
      pestle_status_release(pestle_ffi_status_of(later, row->name));
    }
  }
  return pestle_ffi_status_of(error, row->name);
}

// Instances begin with their attributes alone, once.
static pestle_status_t instantiate(const pestle_ffi_row_t* row,
                                   pestle_ffi_instance_t* instance,
                                   XLA_FFI_ExecutionContext* context) {
  if (instance->is_ready) return NULL;
  XLA_FFI_CallFrame frame = {.struct_size = offsetof(XLA_FFI_CallFrame, future),
                             .api = &pestle_ffi_api,
                             .args = {.struct_size = sizeof(frame.args)},
                             .rets = {.struct_size = sizeof(frame.rets)},
                             .attrs = instance->attrs.attrs};
  PESTLE_TRY(
      run_stage(row, XLA_FFI_ExecutionStage_INSTANTIATE, &frame, context));
  instance->is_ready = true;
  return NULL;
}

static pestle_status_t prepare(pestle_ffi_binding_t* b,
                               const pestle_custom_call_t* call,
                               pestle_ffi_instance_t** out) {
  XLA_FFI_ExecutionContext context;
  pestle_status_t status = NULL;
  pestle_mutex_lock(&b->mutex);
  *out = find(b, call->dictionary);
  if (!*out) status = make(b, call->dictionary, out);
  if (!status && !(*out)->is_ready) {
    pestle_ffi_context_init(b, *out, call->stream, 0, &context);
    status = instantiate(b->row, *out, &context);
    pestle_ffi_context_deinit(&context);
  }
  pestle_mutex_unlock(&b->mutex);
  return status;
}

static int32_t device_of(const pestle_custom_call_t* call) {
  if (call->input_count) return call->inputs[0].device.device_id;
  return call->output_count ? call->outputs[0].device.device_id : 0;
}

pestle_status_t pestle_ffi_call(void* self, const pestle_custom_call_t* call) {
  pestle_ffi_binding_t* b = self;
  pestle_ffi_instance_t* instance;
  XLA_FFI_ExecutionContext context;
  XLA_FFI_CallFrame frame;
  pestle_arena_t arena;
  if (call->config[0] && !call->dictionary[0]) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "%s is called with a string as its configuration, as "
                        "the interface before the typed one had it: use "
                        "jax.ffi.ffi_call with attributes",
                        call->name);
  }
  PESTLE_TRY(prepare(b, call, &instance));
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_ffi_context_init(b, instance, call->stream, device_of(call), &context);
  context.run = atomic_fetch_add(&last_run, 1) + 1;
  pestle_status_t status = make_frame(call, &instance->attrs, &arena, &frame);
  for (int stage = XLA_FFI_ExecutionStage_PREPARE;
       stage < XLA_FFI_STAGES && !status; ++stage) {
    status = run_stage(b->row, (XLA_FFI_ExecutionStage)stage, &frame, &context);
  }
  pestle_ffi_context_deinit(&context);
  pestle_arena_deinit(&arena);
  return status;
}
