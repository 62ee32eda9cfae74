// SPDX-License-Identifier: Apache-2.0
// Steps that call a function which is found by its name: see pestle/custom_call.h.
#include <string.h>

#include "base/checked.h"
#include "base/str.h"
#include "runtime/custom_eval.h"
#include "runtime/executable.h"
#include "runtime/fpu_x86.h"

// --- Finding ---

// What a function sees of a tensor, but for its address.
static pestle_status_t describe(pestle_executable_t* e,
                                const pestle_plan_tensor_t* record,
                                pestle_dl_device_t device,
                                pestle_tensor_t* out) {
  size_t rank = record->rank;
  int64_t* shape = PESTLE_ARENA_ARRAY(&e->arena, int64_t, 2 * rank + 1);
  if (!shape) return PESTLE_OOM();
  memcpy(shape, record->dims, rank * sizeof(*shape));
  pestle_dense_strides(shape, rank, 1, shape + rank);
  *out = (pestle_tensor_t){
      .device = device,
      .ndim = (int32_t)rank,
      .dtype = pestle_dtype_to_dlpack((pestle_dtype_t)record->dtype),
      .shape = shape,
      .strides = shape + rank};
  return NULL;
}

// The same for a library, whose strides are in bytes.
static pestle_status_t describe_view(pestle_executable_t* e,
                                     const pestle_plan_tensor_t* record,
                                     pestle_library_view_t* out) {
  int64_t* strides = PESTLE_ARENA_ARRAY(&e->arena, int64_t, record->rank + 1);
  if (!strides) return PESTLE_OOM();
  pestle_dense_strides(record->dims, (size_t)record->rank,
                       pestle_dtype_size((pestle_dtype_t)record->dtype),
                       strides);
  *out = (pestle_library_view_t){.dtype = record->dtype,
                                 .rank = record->rank,
                                 .dims = record->dims,
                                 .strides = strides};
  return NULL;
}

static pestle_status_t describe_all(pestle_executable_t* e,
                                    const pestle_plan_call_t* record,
                                    pestle_exec_call_t* call) {
  const pestle_plan_tensor_t* tensors =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_tensor_t, call_tensors);
  size_t count = (size_t)record->operand_count + record->result_count;
  bool library = record->kind == PESTLE_PLAN_CALL_LIBRARY;
  pestle_dl_device_t device = call->staged ? e->host->dl : e->home->dl;
  call->tensors = PESTLE_ARENA_ARRAY(&e->arena, pestle_tensor_t, count + 1);
  call->views = PESTLE_ARENA_ARRAY(&e->arena, pestle_library_view_t, count + 1);
  if (!call->tensors || !call->views) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    const pestle_plan_tensor_t* t = &tensors[record->first + i];
    PESTLE_TRY(describe(e, t, device, &call->tensors[i]));
    if (library) PESTLE_TRY(describe_view(e, t, &call->views[i]));
  }
  if (e->call_args < count) e->call_args = count;
  return NULL;
}

static const char* plan_name(const pestle_executable_t* e) {
  return pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name);
}

// --- Libraries ---

static pestle_library_op_t op_of(const pestle_exec_call_t* call,
                                 const pestle_library_view_t* views) {
  return (pestle_library_op_t){.struct_size = sizeof(pestle_library_op_t),
                               .name = call->name,
                               .flags = call->flags,
                               .operand_count = call->operand_count,
                               .result_count = call->result_count,
                               .operands = views,
                               .results = views + call->operand_count};
}

// On a CPU any backend of that type serves, else the home's own.
static const pestle_backend_t* find_backend(pestle_executable_t* e,
                                            const char* name) {
  if (e->remote) {
    return strcmp(name, e->home->plugin->name) ? NULL : e->home->backend;
  }
  // Out of memory: what is there is looked through.
  pestle_status_release(pestle_registry_load_for(e->context, "cpu", 3));
  return pestle_registry_backend(&e->context->registry, name);
}

static pestle_status_t find_library(pestle_executable_t* e,
                                    const pestle_plan_call_t* record,
                                    pestle_exec_call_t* call) {
  const char* name = pestle_plan_text(e->plan, record->version);
  call->library = find_backend(e, name);
  call->flags = record->flags;
  call->device_memory = true;
  PESTLE_TRY(describe_all(e, record, call));
  pestle_library_op_t op = op_of(call, call->views);
  if (call->library && PESTLE_HAS(call->library, library) &&
      call->library->library->takes(call->library->self, &op)) {
    return NULL;
  }
  return PESTLE_ERROR(NOT_FOUND,
                      "plan '%s' has '%s' done by the library of backend "
                      "'%s', which %s; compile the model again",
                      plan_name(e), call->name, name,
                      call->library ? "does not take it" : "is not here");
}

// --- Custom calls ---

// An eval of an op of the caller's own.

static pestle_status_t find_eval(pestle_executable_t* e,
                                 const pestle_plan_call_t* record,
                                 pestle_exec_call_t* call) {
  pestle_eval_ask_t ask = {
      .plan = plan_name(e),
      .name = call->name,
      .version = pestle_plan_text(e->plan, record->version),
      .id = call->config,
      .attributes = call->dictionary};
  pestle_eval_found_t found;
  PESTLE_TRY(pestle_eval_find(e->context, &e->arena, &ask, &found));
  call->function = found.function;
  call->user = found.user;
  call->attrs = found.attrs;
  call->device_memory = found.device_memory;
  call->staged = e->remote && !found.device_memory;
  return describe_all(e, record, call);
}

// Names that the context lacks go to |missing|.
static pestle_status_t find(pestle_executable_t* e,
                            const pestle_plan_call_t* record,
                            pestle_exec_call_t* call,
                            pestle_strbuf_t* missing) {
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  call->name = pestle_plan_text(e->plan, record->name);
  call->config = pestle_plan_text(e->plan, record->config);
  call->dictionary = pestle_plan_text(e->plan, record->dictionary);
  call->operand_count = record->operand_count;
  call->result_count = record->result_count;
  if (record->kind == PESTLE_PLAN_CALL_LIBRARY) {
    return find_library(e, record, call);
  }
  if (record->kind == PESTLE_PLAN_CALL_EVAL) return find_eval(e, record, call);
  pestle_status_t status =
      pestle_context_custom_call(e->context, call->name, &info);
  if (status) {
    pestle_status_release(status);
    // Once, though there be several calls of it.
    for (const pestle_exec_call_t* c = e->calls; c < call; ++c) {
      if (!c->function && !c->library && !strcmp(c->name, call->name)) {
        return NULL;
      }
    }
    pestle_strbuf_appendf(missing, missing->size ? ", '%s'" : "'%s'",
                          call->name);
    return NULL;
  }
  const char* version = pestle_plan_text(e->plan, record->version);
  if (strcmp(version, info.version) != 0) {
    return PESTLE_ERROR(
        INCOMPATIBLE,
        "plan '%s' was compiled for custom call '%s' of "
        "version '%s', the context has '%s'; compile the model "
        "again",
        pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name),
        call->name, version, info.version);
  }
  pestle_str_t computations =
      pestle_str(pestle_plan_text(e->plan, record->computations));
  PESTLE_TRY(pestle_arena_split(&e->arena, computations,
                                PESTLE_PLAN_COMPUTATION_END,
                                &call->computations, &call->computation_count));
  call->function = info.function;
  call->user = info.user;
  call->device_memory = info.device_memory;
  call->staged = e->remote && !info.device_memory;
  return describe_all(e, record, call);
}

static pestle_status_t find_all(pestle_executable_t* e,
                                pestle_strbuf_t* missing) {
  const pestle_plan_call_t* records =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_call_t, calls);
  for (size_t i = 0; i < e->call_count; ++i)
    PESTLE_TRY(find(e, &records[i], &e->calls[i], missing));
  PESTLE_TRY(pestle_strbuf_status(missing));
  if (!missing->size) return NULL;
  return PESTLE_ERROR(
      NOT_FOUND,
      "plan '%s' calls %s, for which the context has no function; give it one "
      "under each name with pestle_context_register_custom_call()",
      plan_name(e), pestle_strbuf_cstr(missing));
}

pestle_status_t pestle_executable_find_calls(pestle_executable_t* e) {
  e->call_count = pestle_plan_header(e->plan)->calls.count;
  if (!e->call_count) return NULL;
  e->calls = PESTLE_ARENA_ARRAY(&e->arena, pestle_exec_call_t, e->call_count);
  if (!e->calls) return PESTLE_OOM();
  memset(e->calls, 0, e->call_count * sizeof(*e->calls));
  pestle_strbuf_t missing;
  pestle_strbuf_init(e->context->core.allocator, &missing);
  pestle_status_t status = find_all(e, &missing);
  pestle_strbuf_deinit(&missing);
  return status;
}

// --- Calling ---

static void trace(const pestle_executable_t* e, const pestle_plan_step_t* step,
                  int64_t begin_ns) {
  pestle_trace_texts_t texts = pestle_step_trace_texts(e, step);
  pestle_trace_span_t span = {.category = "call",
                              .name = texts.label,
                              .detail = texts.note,
                              .begin_ns = begin_ns};
  pestle_trace_add(e->context->core.trace, &span);
}

static pestle_status_t call_library(const pestle_executable_t* e,
                                    pestle_frame_t* frame,
                                    const pestle_exec_call_t* call,
                                    pestle_device_stream_t* stream,
                                    void* const* buffers) {
  size_t count = (size_t)call->operand_count + call->result_count;
  memcpy(frame->views, call->views, count * sizeof(*frame->views));
  for (size_t i = 0; i < count; ++i)
    frame->views[i].data = buffers[i];
  pestle_library_op_t op = op_of(call, frame->views);
  int32_t device = e->remote ? e->home->local_index : 0;
  return pestle_status_annotate(
      call->library->library->run(call->library->self, device, stream, &op),
      "in '%s' by the library of backend '%s'", call->name,
      call->library->name);
}

// What the device's own interface calls the stream. NULL, when all before is
// done: there is no such thing, and the function is to do its work at once.
static pestle_status_t find_native(const pestle_queue_t* queue,
                                   pestle_device_stream_t* stream,
                                   void** out_native) {
  *out_native = NULL;
  if (!stream) return NULL;
  const pestle_device_t* device = queue->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!PESTLE_HAS(api, stream_native)) return pestle_queue_wait(queue);
  return api->stream_native(device->backend->self, stream, out_native);
}

typedef struct native_call_t {
  pestle_custom_call_fn_t function;
  void* user;
  const pestle_custom_call_t* given;
  pestle_status_t status;
} native_call_t;

static void call_native(void* user) {
  native_call_t* c = user;
  c->status = c->function(c->user, c->given);
}

// |call|'s function, on a thread that is as the device's own interface wants it where
// the function is given the device's memory.
static pestle_status_t call_function(const pestle_exec_call_t* call,
                                     const pestle_queue_t* queue,
                                     const pestle_custom_call_t* given) {
  native_call_t c = {call->function, call->user, given, NULL};
  const pestle_device_t* device = queue && !call->staged ? queue->device : NULL;
  const pestle_device_api_t* api = device ? pestle_device_api(device) : NULL;
  if (api && PESTLE_HAS(api, native_call)) {
    PESTLE_TRY(api->native_call(device->backend->self, device->local_index,
                                call_native, &c));
  } else {
    call_native(&c);
  }
  return c.status;
}

static pestle_status_t call_custom(pestle_frame_t* frame,
                                   const pestle_exec_call_t* call,
                                   const pestle_queue_t* queue,
                                   pestle_device_stream_t* stream,
                                   void* const* buffers) {
  void* native;
  PESTLE_TRY(find_native(queue, stream, &native));
  size_t count = (size_t)call->operand_count + call->result_count;
  if (count) {
    memcpy(frame->tensors, call->tensors, count * sizeof(*frame->tensors));
  }
  for (size_t i = 0; i < count; ++i)
    frame->tensors[i].data = buffers[i];
  pestle_custom_call_t given = {.struct_size = sizeof(given),
                                .name = call->name,
                                .config = call->config,
                                .dictionary = call->dictionary,
                                .inputs = frame->tensors,
                                .input_count = call->operand_count,
                                .outputs = frame->tensors + call->operand_count,
                                .output_count = call->result_count,
                                .stream = native,
                                .computations = call->computations,
                                .computation_count = call->computation_count,
                                .attrs = call->attrs,
                                .strings = frame->strings};
  return pestle_status_annotate(
      call_function(call, queue, &given),
      call->attrs ? "in an eval of op '%s'" : "in custom call '%s'",
      call->name);
}

pestle_status_t pestle_call(pestle_executable_t* e, pestle_frame_t* frame,
                            const pestle_queue_t* queue,
                            const pestle_plan_step_t* step,
                            void* const* buffers) {
  const pestle_exec_call_t* call = &e->calls[step->kernel];
  pestle_device_stream_t* stream =
      queue && !call->staged ? queue->stream : NULL;
  int64_t begin_ns = e->context->core.trace ? pestle_clock_ns() : 0;
  pestle_fpu_t fpu = pestle_fpu_enter();
  pestle_status_t status =
      call->library ? call_library(e, frame, call, stream, buffers)
                    : call_custom(frame, call, queue, stream, buffers);
  pestle_fpu_leave(fpu);
  if (e->context->core.trace) trace(e, step, begin_ns);
  return status;
}
