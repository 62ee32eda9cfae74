// SPDX-License-Identifier: Apache-2.0
// What a foreign function may ask during its call.
#include <string.h>

#include "pjrt/ffi.h"
#include "pjrt/slots.h"

// --- Errors ---

static XLA_FFI_Error out_of_memory = {PJRT_Error_Code_RESOURCE_EXHAUSTED};

static XLA_FFI_Error* make_error(int code, const char* text) {
  size_t size = text ? strlen(text) : 0;
  XLA_FFI_Error* error =
      pestle_alloc(pestle_allocator_system(), sizeof(XLA_FFI_Error) + size + 1);
  if (!error) return &out_of_memory;
  error->code = code;
  if (size) memcpy(error->text, text, size);
  error->text[size] = 0;
  return error;
}

static void free_error(XLA_FFI_Error* error) {
  if (!error || error == &out_of_memory) return;
  pestle_dealloc(pestle_allocator_system(), error,
                 sizeof(*error) + strlen(error->text) + 1);
}

static const char* text_of(const XLA_FFI_Error* error) {
  return error == &out_of_memory ? "out of memory" : error->text;
}

static pestle_status_code_t code_of(int code) {
  switch (code) {
    case PJRT_Error_Code_INVALID_ARGUMENT:
    case PJRT_Error_Code_FAILED_PRECONDITION:
    case PJRT_Error_Code_OUT_OF_RANGE:
      return PESTLE_STATUS_INVALID_ARGUMENT;
    case PJRT_Error_Code_NOT_FOUND:
      return PESTLE_STATUS_NOT_FOUND;
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return PESTLE_STATUS_RESOURCE_EXHAUSTED;
    case PJRT_Error_Code_UNIMPLEMENTED:
      return PESTLE_STATUS_UNSUPPORTED;
    case PJRT_Error_Code_UNAVAILABLE:
      return PESTLE_STATUS_UNAVAILABLE;
    case PJRT_Error_Code_CANCELLED:
    case PJRT_Error_Code_ABORTED:
      return PESTLE_STATUS_CANCELLED;
    case PJRT_Error_Code_DEADLINE_EXCEEDED:
      return PESTLE_STATUS_DEADLINE_EXCEEDED;
    default:
      return PESTLE_STATUS_INTERNAL;
  }
}

pestle_status_t pestle_ffi_status_of(XLA_FFI_Error* error, const char* name) {
  if (!error) return NULL;
  pestle_status_t status = pestle_status_make(
      code_of(error->code), __FILE__, __LINE__, "%s: %s", name, text_of(error));
  free_error(error);
  return status;
}

// The foreign error of a PJRT one, which is taken over.
static XLA_FFI_Error* error_of(PJRT_Error* error) {
  if (!error) return NULL;
  XLA_FFI_Error* made = make_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                   pestle_pjrt_error_sentence(error));
  pestle_pjrt_error_free(error);
  return made;
}

static XLA_FFI_Error* error_of_status(pestle_status_t status) {
  return status ? error_of(pestle_pjrt_error_of(status)) : NULL;
}

#define INVALID(text) make_error(PJRT_Error_Code_INVALID_ARGUMENT, text)
#define NO_CONTEXT INVALID("there is no execution context outside of a call")

static XLA_FFI_Error* pestle_XLA_FFI_Error_Create(
    XLA_FFI_Error_Create_Args* args) {
  return make_error(args->errc, args->message);
}

static void pestle_XLA_FFI_Error_GetMessage(
    XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error ? text_of(args->error) : "";
}

static void pestle_XLA_FFI_Error_Destroy(XLA_FFI_Error_Destroy_Args* args) {
  free_error(args->error);
}

// --- Registering ---

static XLA_FFI_Error* pestle_XLA_FFI_Handler_Register(
    XLA_FFI_Handler_Register_Args* args) {
  const XLA_FFI_Handler stages[] = {
      args->bundle.instantiate, args->bundle.prepare, args->bundle.initialize,
      args->bundle.execute};
  if (!args->name.ptr || !stages[XLA_FFI_ExecutionStage_EXECUTE])
    return INVALID("a foreign function has no name, or nothing to execute");
  for (int i = 0; i < XLA_FFI_STAGES; ++i) {
    PJRT_Error* error =
        stages[i] ? pestle_ffi_register(args->name.ptr, args->name.len,
                                        (XLA_FFI_ExecutionStage)i, stages[i])
                  : NULL;
    if (error) return error_of(error);
  }
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_Type_Register(
    XLA_FFI_Type_Register_Args* args) {
  if (!args->name.ptr || !args->type_id)
    return INVALID("a type has no name, or no place for its number");
  return error_of(pestle_ffi_register_type(
      args->name.ptr, args->name.len, &args->type_id->type_id,
      args->type_info ? args->type_info->deleter : NULL));
}

// --- The call's own ---

void pestle_ffi_context_init(pestle_ffi_binding_t* binding,
                             pestle_ffi_instance_t* instance, void* stream,
                             int32_t device, XLA_FFI_ExecutionContext* out) {
  memset(out, 0, sizeof(*out));
  out->binding = binding;
  out->instance = instance;
  out->stream = stream;
  out->device = device;
  pestle_mutex_init(&out->mutex);
}

void pestle_ffi_context_deinit(XLA_FFI_ExecutionContext* context) {
  for (int i = 0; i < XLA_FFI_STAGES; ++i) {
    void (*deleter)(void*) = pestle_ffi_deleter(context->state_types[i]);
    if (context->states[i] && deleter) deleter(context->states[i]);
  }
  while (context->memory) {
    pestle_ffi_memory_t* memory = context->memory;
    context->memory = memory->next;
    pestle_buffer_release(memory->buffer);
    pestle_dealloc(pestle_allocator_system(), memory, sizeof(*memory));
  }
  pestle_mutex_deinit(&context->mutex);
}

static XLA_FFI_Error* pestle_XLA_FFI_Stream_Get(XLA_FFI_Stream_Get_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  args->stream = args->ctx->stream;
  if (args->stream || !args->ctx->binding->client->device.is_cpu) return NULL;
  return make_error(PJRT_Error_Code_UNIMPLEMENTED,
                    "XLA_FFI_Stream_Get: a CPU has no stream");
}

static XLA_FFI_Error* pestle_XLA_FFI_ExecutionContext_Get(
    XLA_FFI_ExecutionContext_Get_Args* args) {
  args->data = NULL;
  return make_error(PJRT_Error_Code_NOT_FOUND,
                    "XLA_FFI_ExecutionContext_Get: executions hand no data on "
                    "to foreign functions; use attributes or a state");
}

// Where the state of |args|->stage is, and its type.
static void** state_of(const XLA_FFI_State_Args* args, int64_t** out_type) {
  XLA_FFI_ExecutionContext* c = args->ctx;
  if (args->stage == XLA_FFI_ExecutionStage_INSTANTIATE) {
    *out_type = &c->instance->state_type;
    return &c->instance->state;
  }
  *out_type = &c->state_types[args->stage];
  return &c->states[args->stage];
}

static XLA_FFI_Error* check_state(const XLA_FFI_State_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  if (!args->type_id || (unsigned)args->stage >= XLA_FFI_STAGES)
    return INVALID("a state has no type, or no stage");
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_State_Set(XLA_FFI_State_Set_Args* args) {
  int64_t* type;
  XLA_FFI_Error* error = check_state(args);
  if (error) return error;
  void** state = state_of(args, &type);
  if (*state) return INVALID("the state of a stage is set twice");
  *state = args->state;
  *type = args->type_id->type_id;
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_State_Get(XLA_FFI_State_Get_Args* args) {
  int64_t* type;
  XLA_FFI_Error* error = check_state(args);
  if (error) return error;
  void** state = state_of(args, &type);
  args->state = NULL;
  if (!*state)
    return make_error(PJRT_Error_Code_NOT_FOUND, "the stage set no state");
  if (*type != args->type_id->type_id)
    return INVALID("the state is of another type than is asked for");
  args->state = *state;
  return NULL;
}

// --- Memory ---

// The device that the call runs on.
static pestle_device_t* device_of(const XLA_FFI_ExecutionContext* context) {
  const PJRT_Client* client = context->binding->client;
  for (size_t i = 0; i < client->local_count; ++i) {
    pestle_device_t* device = client->locals[i]->device;
    if (pestle_device_dl(device).device_id == context->device) return device;
  }
  return client->device.device;
}

static XLA_FFI_Error* pestle_XLA_FFI_DeviceMemory_Allocate(
    XLA_FFI_DeviceMemory_Allocate_Args* args) {
  enum { ALIGNMENT = 64 };  // what buffers have
  if (!args->ctx) return NO_CONTEXT;
  args->data = NULL;
  if (args->alignment > ALIGNMENT)
    return INVALID("memory is aligned to 64 bytes; more were asked for");
  if (!args->size) return NULL;
  pestle_ffi_memory_t* memory =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*memory));
  if (!memory) return &out_of_memory;
  pestle_status_t status =
      pestle_buffer_create(device_of(args->ctx), args->size, &memory->buffer);
  if (status) {
    pestle_dealloc(pestle_allocator_system(), memory, sizeof(*memory));
    return error_of_status(status);
  }
  memory->data = args->data = pestle_buffer_data(memory->buffer);
  pestle_mutex_lock(&args->ctx->mutex);
  memory->next = args->ctx->memory;
  args->ctx->memory = memory;
  pestle_mutex_unlock(&args->ctx->mutex);
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_DeviceMemory_Free(
    XLA_FFI_DeviceMemory_Free_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  if (!args->data) return NULL;
  pestle_mutex_lock(&args->ctx->mutex);
  pestle_ffi_memory_t** at = &args->ctx->memory;
  while (*at && (*at)->data != args->data)
    at = &(*at)->next;
  pestle_ffi_memory_t* memory = *at;
  if (memory) *at = memory->next;
  pestle_mutex_unlock(&args->ctx->mutex);
  if (!memory) return INVALID("memory is freed that the call did not allocate");
  pestle_buffer_release(memory->buffer);
  pestle_dealloc(pestle_allocator_system(), memory, sizeof(*memory));
  return NULL;
}

// --- Threads ---

typedef struct task_t {
  pestle_refcount_t references;  // the thread's, and its starter's
  void (*fn)(void*);
  void* data;
  pestle_thread_t thread;
} task_t;

static void release_task(task_t* task) {
  if (!pestle_refcount_release(&task->references)) return;
  pestle_dealloc(pestle_allocator_system(), task, sizeof(*task));
}

static void run_task(void* self) {
  task_t* task = self;
  task->fn(task->data);
  release_task(task);
}

// A thread of its own: a task may wait for another one, and the pool's threads are
// taken by the run that waits for the call.
static XLA_FFI_Error* pestle_XLA_FFI_ThreadPool_Schedule(
    XLA_FFI_ThreadPool_Schedule_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  if (!args->task) return INVALID("a task is NULL");
  task_t* task = pestle_alloc(pestle_allocator_system(), sizeof(*task));
  if (!task) return &out_of_memory;
  *task = (task_t){.fn = args->task, .data = args->data};
  pestle_refcount_init(&task->references);
  pestle_refcount_retain(&task->references);
  pestle_status_t status =
      pestle_thread_start(run_task, task, "pestle-ffi", &task->thread);
  if (status) {
    pestle_dealloc(pestle_allocator_system(), task, sizeof(*task));
    return error_of_status(status);
  }
  pestle_thread_detach(&task->thread);
  release_task(task);
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_ThreadPool_NumThreads(
    XLA_FFI_ThreadPool_NumThreads_Args* args) {
  if (!args->ctx || !args->num_threads) return NO_CONTEXT;
  int64_t wanted = args->ctx->binding->client->settings.threads;
  *args->num_threads = wanted > 0 ? wanted : pestle_cpu_count();
  return NULL;
}

// --- What ends later ---

// Its size is stated without the field that is set.
static XLA_FFI_Error* pestle_XLA_FFI_Future_Create(
    XLA_FFI_Future_Create_Args* args) {
  XLA_FFI_Future* future =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*future));
  if (!future) return &out_of_memory;
  pestle_mutex_init(&future->mutex);
  pestle_cond_init(&future->cond);
  args->future = future;
  return NULL;
}

static void set_future(XLA_FFI_Future* future, XLA_FFI_Error* error) {
  pestle_mutex_lock(&future->mutex);
  future->is_set = true;
  future->error = error;
  pestle_cond_broadcast(&future->cond);
  pestle_mutex_unlock(&future->mutex);
}

static XLA_FFI_Error* pestle_XLA_FFI_Future_SetAvailable(
    XLA_FFI_Future_SetAvailable_Args* args) {
  if (!args->future) return INVALID("a future is NULL");
  set_future(args->future, NULL);
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_Future_SetError(
    XLA_FFI_Future_SetError_Args* args) {
  if (!args->future) return INVALID("a future is NULL");
  set_future(args->future, args->error);
  return NULL;
}

XLA_FFI_Error* pestle_ffi_future_wait(XLA_FFI_Future* future) {
  pestle_mutex_lock(&future->mutex);
  while (!future->is_set)
    pestle_cond_wait(&future->cond, &future->mutex);
  XLA_FFI_Error* error = future->error;
  pestle_mutex_unlock(&future->mutex);
  pestle_cond_deinit(&future->cond);
  pestle_mutex_deinit(&future->mutex);
  pestle_dealloc(pestle_allocator_system(), future, sizeof(*future));
  return error;
}

// --- Numbers ---

static XLA_FFI_Error* pestle_XLA_FFI_RunId_Get(XLA_FFI_RunId_Get_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  args->run_id = args->ctx->run;
  return NULL;
}

static XLA_FFI_Error* pestle_XLA_FFI_DeviceOrdinal_Get(
    XLA_FFI_DeviceOrdinal_Get_Args* args) {
  if (!args->ctx) return NO_CONTEXT;
  args->device_ordinal = args->ctx->device;
  return NULL;
}

#define FFI_API_SLOT_(NAME, RETURNS) .NAME = pestle_##NAME,
const XLA_FFI_Api pestle_ffi_api = {
    .struct_size = sizeof(XLA_FFI_Api),
    .api_version = {.struct_size = sizeof(XLA_FFI_Api_Version),
                    .major_version = XLA_FFI_API_MAJOR,
                    .minor_version = XLA_FFI_API_MINOR},
    XLA_FFI_SLOTS(FFI_API_SLOT_)};
