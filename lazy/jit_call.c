// SPDX-License-Identifier: Apache-2.0
// Calls of functions: guards, the run, what is given away.
#include "base/require.h"
#include "base/status_copy.h"
#include "ir/infer.h"
#include "lazy/jit.h"

// --- Guards ---

// What the module says of an argument agrees with |type|.
static bool agrees(const pestle_type_t* wanted, const pestle_type_t* type) {
  return wanted->dtype == type->dtype && pestle_shapes_agree(wanted, type);
}

static pestle_status_t check_places(pestle_jit_t* jit,
                                    pestle_array_t* const* arguments) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = pestle_jit_argument(jit, arguments, i);
    if (!a || a->lazy != jit->lazy) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "argument %zu is NULL or of another context", i);
    }
    if (a->device != jit->device &&
        !(pestle_array_flags(a) & PESTLE_NODE_WEAK)) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "argument %zu is on %s, the function is on %s: copy it there", i,
          pestle_device_name(a->device), pestle_device_name(jit->device));
    }
  }
  return NULL;
}

static pestle_status_t check_types(pestle_jit_t* jit,
                                   pestle_array_t* const* arguments) {
  pestle_function_t* entry = pestle_module_entry(jit->module);
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = pestle_jit_argument(jit, arguments, i);
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    if (!agrees(&type, &a->type)) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT, "argument %zu is %s, the function takes %s", i,
          pestle_type_text(&a->type).text, pestle_type_text(&type).text);
    }
  }
  return NULL;
}

// An array that is given away is no other argument too.
static pestle_status_t check_donated(const pestle_jit_t* jit,
                                     pestle_array_t* const* arguments) {
  for (size_t d = 0; d < jit->donated_count; ++d) {
    uint32_t at = jit->donated[d];
    for (size_t i = 0; i < jit->argument_count; ++i) {
      if (i == at || pestle_jit_argument(jit, arguments, i) != arguments[at])
        continue;
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          i < jit->argument_count - jit->hidden_count
              ? "argument %u is donated, and is argument %zu too: donate a "
                "copy of it"
              : "argument %u is donated, and is read by the function as hidden "
                "argument %zu too: donate a copy of it",
          (unsigned)at, i);
    }
  }
  return NULL;
}

// --- Calling ---

// Memory of one call: views of its inputs, buffers and arrays of its outputs.
typedef struct call_t {
  pestle_buffer_view_t* views;
  pestle_buffer_t** buffers;
  pestle_array_t** arrays;
  size_t output_count;
  uint32_t* given;  // arguments whose memory the run is given
  size_t given_count;
} call_t;

static pestle_status_t evaluate_arguments(pestle_jit_t* jit,
                                          pestle_array_t* const* arguments,
                                          pestle_stream_t* stream) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    pestle_array_t* a = pestle_jit_argument(jit, arguments, i);
    if (pestle_array_node_state(a) == PESTLE_NODE_DATA) continue;
    PESTLE_TRY(pestle_array_evaluate(&a, 1, stream));
  }
  return NULL;
}

// The arrays first: once the run has begun nothing else may fail.
static pestle_status_t make_outputs(pestle_jit_t* jit,
                                    const pestle_executable_t* executable,
                                    call_t* call) {
  for (size_t i = 0; i < call->output_count; ++i) {
    pestle_io_info_t io = pestle_executable_output(executable, i);
    pestle_array_t* array =
        pestle_array_make(jit->lazy, jit->device, PESTLE_NODE_DATA, 0);
    if (!array) return PESTLE_OOM();
    array->type.dtype = io.dtype;
    array->type.rank = io.rank;
    if (io.rank) {
      memcpy(array->type.dims, io.dims, (size_t)io.rank * sizeof(*io.dims));
    }
    call->arrays[i] = array;
  }
  return NULL;
}

// The extents of bounded outputs are known when the run is done.
static pestle_status_t take_buffers(call_t* call) {
  pestle_status_t status = NULL;
  for (size_t i = 0; i < call->output_count; ++i)
    call->arrays[i]->buffer = call->buffers[i];
  for (size_t i = 0; !status && i < call->output_count; ++i) {
    int32_t rank;
    pestle_array_t* array = call->arrays[i];
    const int64_t* dims = pestle_buffer_extents(array->buffer, &rank);
    if (!dims) continue;
    status = pestle_buffer_wait(array->buffer);
    memcpy(array->type.dims, dims, (size_t)rank * sizeof(*dims));
  }
  return status;
}

// Whether nobody but the call sees |array|, whose memory then goes with it.
static bool is_sole(const pestle_array_t* array) {
  return atomic_load_explicit(&array->refs, memory_order_acquire) ==
             PESTLE_REF_HANDLE &&
         !array->strides && !array->byte_offset && array->buffer &&
         !(pestle_array_flags(array) & PESTLE_NODE_WEAK);
}

static void choose_given(const pestle_jit_t* jit,
                         pestle_array_t* const* arguments, call_t* call) {
  call->given_count = 0;
  for (size_t i = 0; i < jit->donated_count; ++i) {
    if (is_sole(arguments[jit->donated[i]])) {
      call->given[call->given_count++] = jit->donated[i];
    }
  }
}

// What the run was given is gone; of a run that failed nobody knows what it holds.
static void end_given(pestle_jit_t* jit, pestle_array_t* const* arguments,
                      const call_t* call, pestle_status_t failure) {
  for (size_t i = 0; i < call->given_count; ++i) {
    pestle_array_t* array = arguments[call->given[i]];
    if (!failure) {
      pestle_array_keep_context(array);
      array->buffer = NULL;
    } else {
      array->failure = pestle_status_retain(failure);
      pestle_array_set_state(array, PESTLE_NODE_FAILED);
    }
  }
  if (failure || !call->given_count) return;
  pestle_lazy_lock(jit->lazy);
  jit->lazy->donations += call->given_count;
  pestle_mutex_unlock(&jit->lazy->mutex);
}

static pestle_status_t run(pestle_jit_t* jit, pestle_executable_t* executable,
                           pestle_array_t* const* arguments,
                           pestle_stream_t* stream, call_t* call) {
  PESTLE_TRY(make_outputs(jit, executable, call));
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = pestle_jit_argument(jit, arguments, i);
    call->views[i] =
        (pestle_buffer_view_t){a->buffer, a->byte_offset, a->strides};
  }
  choose_given(jit, arguments, call);
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .donated = call->given,
                                          .donated_count = call->given_count};
  pestle_status_t status = pestle_executable_run_buffers(
      executable, stream, call->views, jit->argument_count, call->buffers,
      call->output_count, call->given_count ? &options : NULL);
  end_given(jit, arguments, call, status);
  return status ? status : take_buffers(call);
}

static pestle_status_t call_with(pestle_jit_t* jit,
                                 pestle_executable_t* executable,
                                 pestle_array_t* const* arguments,
                                 pestle_stream_t* stream, pestle_array_t** out,
                                 size_t capacity) {
  enum { FEW = 16 };
  pestle_buffer_view_t few_views[FEW];
  pestle_buffer_t* few_buffers[FEW];
  uint32_t few_given[FEW];
  call_t call = {few_views, few_buffers,
                 out,       pestle_executable_output_count(executable),
                 few_given, 0};
  if (call.output_count > capacity) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the function has %zu results, there is room for %zu",
                        call.output_count, capacity);
  }
  pestle_allocator_t allocator = jit->lazy->allocator;
  size_t inputs = jit->argument_count * sizeof(*call.views);
  size_t outputs = call.output_count * sizeof(*call.buffers);
  size_t given = jit->argument_count * sizeof(*call.given);
  bool is_small = jit->argument_count <= FEW && call.output_count <= FEW;
  if (!is_small) {
    call.views = pestle_alloc(allocator, inputs);
    call.buffers = pestle_alloc(allocator, outputs);
    call.given = pestle_alloc(allocator, given);
  }
  pestle_status_t status = call.views && call.buffers && call.given
                               ? run(jit, executable, arguments, stream, &call)
                               : PESTLE_OOM();
  if (!is_small) {
    pestle_dealloc(allocator, call.views, inputs);
    pestle_dealloc(allocator, call.buffers, outputs);
    pestle_dealloc(allocator, call.given, given);
  }
  for (size_t i = 0; status && i < call.output_count; ++i) {
    pestle_array_release(out[i]);
    out[i] = NULL;
  }
  return status;
}

// Types that the latest call did not have.
static pestle_status_t call_slowly(pestle_jit_t* jit,
                                   pestle_array_t* const* arguments,
                                   pestle_stream_t* stream,
                                   pestle_array_t** out, size_t capacity) {
  // What fits an entry has types that the module takes.
  pestle_executable_t* executable = pestle_jit_find(jit, arguments);
  pestle_status_t status = executable ? NULL : check_types(jit, arguments);
  if (!status) status = evaluate_arguments(jit, arguments, stream);
  if (!status && !executable) {
    status = pestle_jit_make(jit, arguments, &executable);
  }
  if (!status) {
    status = call_with(jit, executable, arguments, stream, out, capacity);
  }
  pestle_executable_release(executable);
  return status;
}

pestle_status_t pestle_jit_call(pestle_jit_t* jit,
                                pestle_array_t* const* arguments, size_t count,
                                pestle_stream_t* stream, pestle_array_t** out,
                                size_t out_capacity) {
  PESTLE_REQUIRE(jit && (arguments || !count) && (out || !out_capacity),
                 "a function, arguments and a place for its results");
  for (size_t i = 0; i < out_capacity; ++i)
    out[i] = NULL;
  if (count != jit->argument_count - jit->hidden_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the function takes %zu arguments, %zu are given",
                        jit->argument_count - jit->hidden_count, count);
  }
  PESTLE_TRY(check_places(jit, arguments));
  PESTLE_TRY(check_donated(jit, arguments));
  pestle_executable_t* executable = pestle_jit_enter(jit, arguments);
  pestle_status_t status;
  if (executable) {
    status = evaluate_arguments(jit, arguments, stream);
    if (!status) {
      status = call_with(jit, executable, arguments, stream, out, out_capacity);
    }
    pestle_jit_leave(jit);
  } else {
    status = call_slowly(jit, arguments, stream, out, out_capacity);
  }
  for (size_t i = 0; !status && i < jit->donated_count; ++i)
    pestle_array_release(arguments[jit->donated[i]]);
  return status;
}
