// SPDX-License-Identifier: Apache-2.0
// Functions: a module, and an executable for each set of types that it was called
// with. A guard compares types and devices before each run.
#include "base/require.h"
#include "ir/infer.h"
#include "lazy/lazy.h"
#include "pestle/compile.h"

// A function of so many sets of types forgets the oldest.
enum { MOST_ENTRIES = 64 };

typedef struct jit_entry_t {
  pestle_executable_t* executable;
  pestle_type_t* types;  // of the arguments, hidden ones too
} jit_entry_t;

struct pestle_jit_s {
  pestle_refcount_t refcount;
  pestle_lazy_t* lazy;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_compile_options_t options;
  size_t argument_count;  // hidden ones too
  pestle_array_t** hidden;
  size_t hidden_count;
  pestle_mutex_t mutex;  // of the entries
  atomic_uint forks;     // of the context, when the mutex was made
  jit_entry_t entries[MOST_ENTRIES];
  size_t entry_count, last;  // |last|: that of the latest call
};

// --- Making ---

static void free_entry(pestle_jit_t* jit, jit_entry_t* entry) {
  pestle_executable_release(entry->executable);
  pestle_dealloc(jit->lazy->allocator, entry->types,
                 jit->argument_count * sizeof(*entry->types));
}

void pestle_jit_retain(pestle_jit_t* jit) {
  if (jit) pestle_refcount_retain(&jit->refcount);
}

void pestle_jit_release(pestle_jit_t* jit) {
  if (!jit || !pestle_refcount_release(&jit->refcount)) return;
  pestle_allocator_t allocator = jit->lazy->allocator;
  pestle_context_t* context = jit->lazy->context;
  for (size_t i = 0; i < jit->entry_count; ++i)
    free_entry(jit, &jit->entries[i]);
  for (size_t i = 0; jit->hidden && i < jit->hidden_count; ++i)
    pestle_array_release(jit->hidden[i]);
  pestle_dealloc(allocator, jit->hidden,
                 jit->hidden_count * sizeof(*jit->hidden));
  pestle_module_release(jit->module);
  pestle_mutex_deinit(&jit->mutex);
  pestle_dealloc(allocator, jit, sizeof(*jit));
  pestle_context_release(context);
}

static pestle_status_t read_options(const pestle_compile_options_t* user,
                                    pestle_compile_options_t* out_options) {
  memset(out_options, 0, sizeof(*out_options));
  size_t size = user ? user->struct_size : sizeof(*out_options);
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.struct_size is not set");
  }
  if (user) {
    memcpy(out_options, user,
           size < sizeof(*user) ? size : sizeof(*out_options));
  }
  out_options->struct_size = sizeof(*out_options);
  if (out_options->dump || out_options->control || out_options->alias_count ||
      out_options->passes || out_options->skip_passes ||
      out_options->target_cpu || out_options->print_after ||
      out_options->lock_path) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_jit_create takes no option that is a pointer: "
                        "code is made at later calls");
  }
  return NULL;
}

static pestle_status_t take_hidden(pestle_jit_t* jit,
                                   const pestle_capture_t* capture) {
  jit->hidden_count = pestle_capture_hidden_count(capture);
  jit->hidden = pestle_alloc_array(jit->lazy->allocator, jit->hidden_count,
                                   sizeof(*jit->hidden));
  if (!jit->hidden) return PESTLE_OOM();
  for (size_t i = 0; i < jit->hidden_count; ++i) {
    jit->hidden[i] = pestle_capture_hidden(capture, i);
    pestle_array_retain(jit->hidden[i]);
  }
  if (jit->hidden_count <= jit->argument_count) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the capture has %zu hidden arguments, the module takes "
                      "%zu in all",
                      jit->hidden_count, jit->argument_count);
}

pestle_status_t pestle_jit_create(pestle_device_t* device,
                                  pestle_module_t* module,
                                  const pestle_capture_t* capture,
                                  const pestle_compile_options_t* options,
                                  pestle_jit_t** out_jit) {
  PESTLE_REQUIRE(device && module && out_jit,
                 "a device, a module and a place for the function");
  *out_jit = NULL;
  pestle_function_t* entry = pestle_module_entry(module);
  PESTLE_REQUIRE(entry, "a module with a function");
  pestle_lazy_t* lazy;
  pestle_compile_options_t read;
  PESTLE_TRY(read_options(options, &read));
  PESTLE_TRY(pestle_lazy_of(pestle_device_context(device), &lazy));
  pestle_jit_t* jit = pestle_alloc_zero(lazy->allocator, sizeof(*jit));
  if (!jit) return PESTLE_OOM();
  pestle_refcount_init(&jit->refcount);
  pestle_mutex_init(&jit->mutex);
  pestle_context_retain(lazy->context);
  pestle_module_retain(module);
  jit->lazy = lazy;
  atomic_init(&jit->forks, atomic_load(&lazy->forks));
  jit->device = device;
  jit->module = module;
  jit->options = read;
  jit->argument_count = pestle_function_argument_count(entry);
  pestle_status_t status = take_hidden(jit, capture);
  if (status) {
    pestle_jit_release(jit);
    return status;
  }
  *out_jit = jit;
  return NULL;
}

// --- Guards ---

static pestle_array_t* argument_at(const pestle_jit_t* jit,
                                   pestle_array_t* const* arguments, size_t i) {
  size_t given = jit->argument_count - jit->hidden_count;
  return i < given ? arguments[i] : jit->hidden[i - given];
}

static bool fits(const pestle_jit_t* jit, const jit_entry_t* entry,
                 pestle_array_t* const* arguments) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    if (!pestle_type_equal(&entry->types[i],
                           &argument_at(jit, arguments, i)->type)) {
      return false;
    }
  }
  return true;
}

// In a child of fork() a thread of the parent may have held the lock for ever, and
// left the entries half changed.
static void lock(pestle_jit_t* jit) {
  pestle_lazy_t* lazy = jit->lazy;
  pestle_lazy_enter(lazy);
  if (atomic_load(&jit->forks) != atomic_load(&lazy->forks)) {
    pestle_lazy_lock(lazy);
    if (atomic_load(&jit->forks) != atomic_load(&lazy->forks)) {
      if (pestle_mutex_try_lock(&jit->mutex)) {
        pestle_mutex_unlock(&jit->mutex);
      } else {
        pestle_mutex_init(&jit->mutex);
        jit->entry_count = 0;
      }
      atomic_store(&jit->forks, atomic_load(&lazy->forks));
    }
    pestle_mutex_unlock(&lazy->mutex);
  }
  pestle_mutex_lock(&jit->mutex);
}

// The executable of the arguments' types, with a reference, or NULL.
static pestle_executable_t* find(pestle_jit_t* jit,
                                 pestle_array_t* const* arguments) {
  pestle_executable_t* executable = NULL;
  lock(jit);
  for (size_t k = 0; k < jit->entry_count; ++k) {
    size_t i = (jit->last + k) % jit->entry_count;
    if (!fits(jit, &jit->entries[i], arguments)) continue;
    jit->last = i;
    executable = jit->entries[i].executable;
    pestle_executable_retain(executable);
    break;
  }
  pestle_mutex_unlock(&jit->mutex);
  return executable;
}

// What the module says of an argument agrees with |type|.
static bool agrees(const pestle_type_t* wanted, const pestle_type_t* type) {
  return wanted->dtype == type->dtype && pestle_shapes_agree(wanted, type);
}

static pestle_status_t check_places(pestle_jit_t* jit,
                                    pestle_array_t* const* arguments) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = argument_at(jit, arguments, i);
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
    const pestle_array_t* a = argument_at(jit, arguments, i);
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    if (!agrees(&type, &a->type)) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT, "argument %zu is %s, the function takes %s", i,
          pestle_type_text(&a->type).text, pestle_type_text(&type).text);
    }
  }
  return NULL;
}

// --- A set of types that is new ---

static pestle_status_t compile(pestle_jit_t* jit, const pestle_type_t* types,
                               pestle_executable_t** out_executable) {
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  PESTLE_TRY(pestle_module_specialize(jit->module, types, jit->argument_count,
                                      &module));
  pestle_status_t status = pestle_compile(jit->lazy->context, module,
                                          jit->device, &jit->options, &plan);
  if (!status) {
    status = pestle_executable_create(jit->lazy->context, plan, jit->device,
                                      out_executable);
  }
  pestle_plan_release(plan);
  pestle_module_release(module);
  return status;
}

// Takes |entry| over in the place of the oldest.
static void keep(pestle_jit_t* jit, jit_entry_t entry) {
  jit_entry_t old = {NULL, NULL};
  lock(jit);
  if (jit->entry_count == MOST_ENTRIES) {
    old = jit->entries[0];
    memmove(jit->entries, jit->entries + 1,
            (MOST_ENTRIES - 1) * sizeof(*jit->entries));
    --jit->entry_count;
  }
  jit->last = jit->entry_count++;
  jit->entries[jit->last] = entry;
  pestle_mutex_unlock(&jit->mutex);
  if (old.types) free_entry(jit, &old);
}

static pestle_status_t make(pestle_jit_t* jit, pestle_array_t* const* arguments,
                            pestle_executable_t** out_executable) {
  pestle_type_t* types = pestle_alloc_array(
      jit->lazy->allocator, jit->argument_count, sizeof(*types));
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < jit->argument_count; ++i)
    types[i] = argument_at(jit, arguments, i)->type;
  pestle_status_t status = compile(jit, types, out_executable);
  if (status) {
    pestle_dealloc(jit->lazy->allocator, types,
                   jit->argument_count * sizeof(*types));
    return status;
  }
  pestle_executable_retain(*out_executable);
  keep(jit, (jit_entry_t){*out_executable, types});
  return NULL;
}

// --- Calling ---

// Memory of one call: views of its inputs, buffers and arrays of its outputs.
typedef struct call_t {
  pestle_buffer_view_t* views;
  pestle_buffer_t** buffers;
  pestle_array_t** arrays;
  size_t output_count;
} call_t;

static pestle_status_t evaluate_arguments(pestle_jit_t* jit,
                                          pestle_array_t* const* arguments,
                                          pestle_stream_t* stream) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    pestle_array_t* a = argument_at(jit, arguments, i);
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

static pestle_status_t run(pestle_jit_t* jit, pestle_executable_t* executable,
                           pestle_array_t* const* arguments,
                           pestle_stream_t* stream, call_t* call) {
  PESTLE_TRY(make_outputs(jit, executable, call));
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = argument_at(jit, arguments, i);
    call->views[i] =
        (pestle_buffer_view_t){a->buffer, a->byte_offset, a->strides};
  }
  PESTLE_TRY(pestle_executable_run_buffers(executable, stream, call->views,
                                           jit->argument_count, call->buffers,
                                           call->output_count, NULL));
  return take_buffers(call);
}

static pestle_status_t call_with(pestle_jit_t* jit,
                                 pestle_executable_t* executable,
                                 pestle_array_t* const* arguments,
                                 pestle_stream_t* stream, pestle_array_t** out,
                                 size_t capacity) {
  enum { FEW = 16 };
  pestle_buffer_view_t few_views[FEW];
  pestle_buffer_t* few_buffers[FEW];
  call_t call = {few_views, few_buffers, out,
                 pestle_executable_output_count(executable)};
  if (call.output_count > capacity) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the function has %zu results, there is room for %zu",
                        call.output_count, capacity);
  }
  pestle_allocator_t allocator = jit->lazy->allocator;
  size_t inputs = jit->argument_count * sizeof(*call.views);
  size_t outputs = call.output_count * sizeof(*call.buffers);
  bool is_small = jit->argument_count <= FEW && call.output_count <= FEW;
  if (!is_small) {
    call.views = pestle_alloc(allocator, inputs);
    call.buffers = pestle_alloc(allocator, outputs);
  }
  pestle_status_t status = call.views && call.buffers
                               ? run(jit, executable, arguments, stream, &call)
                               : PESTLE_OOM();
  if (!is_small) {
    pestle_dealloc(allocator, call.views, inputs);
    pestle_dealloc(allocator, call.buffers, outputs);
  }
  for (size_t i = 0; status && i < call.output_count; ++i) {
    pestle_array_release(out[i]);
    out[i] = NULL;
  }
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
  // What fits an entry has types that the module takes.
  pestle_executable_t* executable = find(jit, arguments);
  pestle_status_t early = executable ? NULL : check_types(jit, arguments);
  if (!early) early = evaluate_arguments(jit, arguments, stream);
  if (!early && !executable) early = make(jit, arguments, &executable);
  if (early) {
    pestle_executable_release(executable);
    return early;
  }
  pestle_status_t status =
      call_with(jit, executable, arguments, stream, out, out_capacity);
  pestle_executable_release(executable);
  return status;
}
