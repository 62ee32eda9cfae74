// SPDX-License-Identifier: Apache-2.0
// Every function that libpestle exports, called with NULL where it needs
// something, one argument at a time: INVALID_ARGUMENT, or nothing at all from
// what returns no status, and never a crash. exported_symbols.txt says which
// functions there are: one that is not called here fails the test.
#include <stdlib.h>

#include "pestle/pestle.h"
#include "pestle/version.h"
#include "test.h"

#define BAD(expr) assert_code((expr), INVALID_ARGUMENT)

typedef struct things_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;      // z = x + x
  pestle_function_t* function;  // of |open|
  pestle_module_t* open;        // a module that is being built
  pestle_value_t* value;
  pestle_builder_t builder;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  pestle_buffer_t* buffer;
  pestle_stream_t* stream;
  pestle_event_t* event;
  pestle_array_t* array;
} things_t;

static const char text[] =
    "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n"
    "}\n";

static const pestle_type_t f32x4 = {PESTLE_F32, 1, {4}};

// --- Status, allocator, types, tables ---

static void call_allocator_system(things_t* t) {
  (void)t;
  assert_non_null(pestle_allocator_system().resize);
}
static void call_version(things_t* t) {
  (void)t;
  assert_non_null(pestle_version());
}
static void call_build_id(things_t* t) {
  (void)t;
  assert_non_null(pestle_build_id());
}
static void call_build_id_u64(things_t* t) {
  (void)t;
  (void)pestle_build_id_u64();
}

// The compiler knows that the format is one; a caller of another language
// may not.
static const char* no_format(void) {
  const char* volatile none = NULL;
  return none;
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
static void call_status_make(things_t* t) {
  (void)t;
  pestle_status_t status =
      pestle_status_make(PESTLE_STATUS_IO, NULL, 0, no_format());
  assert_code(status, IO);
}
static pestle_status_t make_v(const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_status_t status =
      pestle_status_make_v(PESTLE_STATUS_IO, NULL, 0, format, args);
  va_end(args);
  return status;
}
static void call_status_make_v(things_t* t) {
  (void)t;
  assert_code(make_v(no_format()), IO);
}
static void call_status_annotate(things_t* t) {
  (void)t;
  assert_null(pestle_status_annotate(NULL, "note"));
  pestle_status_t status = PESTLE_ERROR(IO, "message");
  assert_code(pestle_status_annotate(status, no_format()), IO);
}
static void call_context_log(things_t* t) {
  pestle_context_log(NULL, PESTLE_LOG_ERROR, "message");
  pestle_context_log(t->context, PESTLE_LOG_ERROR, no_format());
}
#pragma GCC diagnostic pop

static void call_context_trace_begin(things_t* t) {
  assert_int_equal(pestle_context_trace_begin(NULL), 0);
  assert_int_equal(pestle_context_trace_begin(t->context), 0);
}
static void call_context_trace_end(things_t* t) {
  pestle_context_trace_end(NULL, 1, "category", "name", NULL);
  pestle_context_trace_end(t->context, 1, NULL, NULL, NULL);
}

static void call_status_join(things_t* t) {
  (void)t;
  assert_null(pestle_status_join(NULL, NULL));
  assert_code(pestle_status_join(NULL, PESTLE_ERROR(IO, "message")), IO);
  assert_code(pestle_status_join(PESTLE_ERROR(IO, "message"), NULL), IO);
}
static void call_status_release(things_t* t) {
  (void)t;
  pestle_status_release(NULL);
}
static void call_status_code(things_t* t) {
  (void)t;
  assert_int_equal(pestle_status_code(NULL), PESTLE_STATUS_OK);
}
static void call_status_message(things_t* t) {
  (void)t;
  assert_string_equal(pestle_status_message(NULL), "ok");
}
static void call_status_file(things_t* t) {
  (void)t;
  assert_string_equal(pestle_status_file(NULL), "");
}
static void call_status_line(things_t* t) {
  (void)t;
  assert_int_equal(pestle_status_line(NULL), 0);
}
static void call_status_note(things_t* t) {
  (void)t;
  assert_null(pestle_status_note(NULL, 0));
}
static void call_status_code_name(things_t* t) {
  (void)t;
  assert_non_null(pestle_status_code_name((pestle_status_code_t)-1));
}
static void call_status_code_text(things_t* t) {
  (void)t;
  assert_non_null(pestle_status_code_text((pestle_status_code_t)1000));
}
static void call_status_format(things_t* t) {
  (void)t;
  assert_int_equal(pestle_status_format(NULL, NULL, 10), 2);
}
static void call_dtype_from_name(things_t* t) {
  (void)t;
  assert_int_equal(pestle_dtype_from_name(NULL), PESTLE_NONE);
}
static void call_dtype_from_dlpack(things_t* t) {
  (void)t;
  pestle_dl_dtype_t none = {255, 255, 1};
  assert_int_equal(pestle_dtype_from_dlpack(none), PESTLE_NONE);
}
static void call_dtype_to_dlpack(things_t* t) {
  (void)t;
  (void)pestle_dtype_to_dlpack((pestle_dtype_t)-1);
  (void)pestle_dtype_to_dlpack((pestle_dtype_t)1000);
}
static void call_op_info(things_t* t) {
  (void)t;
  assert_null(pestle_op_info((pestle_op_t)-1));
  assert_null(pestle_op_info(PESTLE_OP_COUNT));
}
static void call_pass_name(things_t* t) {
  (void)t;
  assert_null(pestle_pass_name(1000));
}
static void call_pass_summary(things_t* t) {
  (void)t;
  assert_null(pestle_pass_summary(1000));
}

// --- Contexts and devices ---

static void call_context_create(things_t* t) {
  (void)t;
  pestle_context_t* context;
  BAD(pestle_context_create(NULL, NULL));
  BAD(pestle_context_create(&(pestle_context_options_t){0}, &context));
  assert_null(context);
}
static void call_context_retain(things_t* t) {
  (void)t;
  pestle_context_retain(NULL);
}
static void call_context_release(things_t* t) {
  (void)t;
  pestle_context_release(NULL);
}
static void call_context_allocator(things_t* t) {
  (void)t;
  assert_non_null(pestle_context_allocator(NULL).resize);
}
static void call_context_is_strict(things_t* t) {
  (void)t;
  assert_false(pestle_context_is_strict(NULL));
}
static void call_context_threads(things_t* t) {
  (void)t;
  assert_int_equal(pestle_context_threads(NULL), 0);
}
static void call_context_cache_dir(things_t* t) {
  (void)t;
  assert_null(pestle_context_cache_dir(NULL));
}
static void call_context_free(things_t* t) {
  char byte = 0;
  pestle_context_free(NULL, &byte, 1);
  pestle_context_free(t->context, NULL, 1);
}
static void call_context_load_backends(things_t* t) {
  (void)t;
  BAD(pestle_context_load_backends(NULL));
}
static void call_context_backend_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_context_backend_count(NULL), 0);
}
static void call_context_load_all(things_t* t) {
  (void)t;
  BAD(pestle_context_load_all(NULL, NULL));
}
static pestle_status_t no_call(void* user, const pestle_custom_call_t* call) {
  (void)user, (void)call;
  return NULL;
}
static void call_context_register_custom_call(things_t* t) {
  BAD(pestle_context_register_custom_call(NULL, "f", no_call, NULL, NULL));
  BAD(pestle_context_register_custom_call(t->context, NULL, no_call, NULL,
                                          NULL));
  BAD(pestle_context_register_custom_call(t->context, "f", NULL, NULL, NULL));
  pestle_custom_call_options_t unset = {.struct_size = 0};
  BAD(pestle_context_register_custom_call(t->context, "f", no_call, NULL,
                                          &unset));
}
static void call_context_custom_call(things_t* t) {
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  BAD(pestle_context_custom_call(NULL, "f", &info));
  BAD(pestle_context_custom_call(t->context, NULL, &info));
  BAD(pestle_context_custom_call(t->context, "f", NULL));
  info.struct_size = 0;
  BAD(pestle_context_custom_call(t->context, "f", &info));
}
static void call_context_load_best(things_t* t) {
  BAD(pestle_context_load_best(NULL, "ref"));
  BAD(pestle_context_load_best(t->context, NULL));
}
static const pestle_backend_abi_info_t* no_info(void) {
  return NULL;
}
static const pestle_backend_t* no_backend(const pestle_host_t* host,
                                          pestle_status_t* out_status) {
  (void)host, (void)out_status;
  return NULL;
}
static void call_context_add_backend(things_t* t) {
  BAD(pestle_context_add_backend(NULL, no_info, NULL, no_backend));
  BAD(pestle_context_add_backend(t->context, NULL, NULL, no_backend));
  BAD(pestle_context_add_backend(t->context, no_info, NULL, NULL));
}
static void call_context_backend(things_t* t) {
  assert_null(pestle_context_backend(NULL, "ref"));
  assert_null(pestle_context_backend(t->context, NULL));
}
static void call_context_device_count(things_t* t) {
  assert_int_equal(pestle_context_device_count(NULL, "cpu"), 0);
  assert_int_equal(pestle_context_device_count(t->context, NULL), 0);
}
static void call_context_is_available(things_t* t) {
  assert_false(pestle_context_is_available(NULL, "cpu"));
  assert_false(pestle_context_is_available(t->context, NULL));
}
static void call_context_search_path_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_context_search_path_count(NULL), 0);
}
static void call_context_search_path(things_t* t) {
  assert_null(pestle_context_search_path(NULL, 0));
  assert_null(pestle_context_search_path(t->context, SIZE_MAX));
}
static void call_context_set_search_paths(things_t* t) {
  const char* const none[] = {NULL};
  BAD(pestle_context_set_search_paths(NULL, none, 0));
  BAD(pestle_context_set_search_paths(t->context, NULL, 1));
  BAD(pestle_context_set_search_paths(t->context, none, 1));
}
static void call_device_index(things_t* t) {
  (void)t;
  assert_int_equal(pestle_device_index(NULL), -1);
}
static void call_device_type(things_t* t) {
  (void)t;
  assert_string_equal(pestle_device_type(NULL), "");
}
static void call_device_property(things_t* t) {
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  BAD(pestle_device_property(NULL, 0, &property));
  BAD(pestle_device_property(t->device, 0, NULL));
}
static void call_device_memory_get(things_t* t) {
  uint64_t bytes;
  BAD(pestle_device_memory_get(NULL, PESTLE_MEMORY_ACTIVE, &bytes));
  BAD(pestle_device_memory_get(t->device, PESTLE_MEMORY_ACTIVE, NULL));
}
static void call_device_memory_set(things_t* t) {
  BAD(pestle_device_memory_set(NULL, PESTLE_MEMORY_LIMIT, 0, NULL));
  assert_ok(pestle_device_memory_set(t->device, PESTLE_MEMORY_LIMIT, 0, NULL));
}
static void call_context_memory_get(things_t* t) {
  uint64_t bytes;
  BAD(pestle_context_memory_get(NULL, PESTLE_MEMORY_ACTIVE, &bytes));
  BAD(pestle_context_memory_get(t->context, PESTLE_MEMORY_ACTIVE, NULL));
}
static void call_context_memory_set(things_t* t) {
  BAD(pestle_context_memory_set(NULL, PESTLE_MEMORY_LIMIT, 0, NULL));
  // A limit is ambiguous where there are several gpu backends; this never is.
  assert_ok(pestle_context_memory_set(t->context, PESTLE_MEMORY_PEAK, 0, NULL));
}
static void call_context_backend_info(things_t* t) {
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  BAD(pestle_context_backend_info(NULL, 0, &info));
  BAD(pestle_context_backend_info(t->context, 0, NULL));
}
static void call_context_load_backend(things_t* t) {
  BAD(pestle_context_load_backend(NULL, "libpestle-x.so"));
  BAD(pestle_context_load_backend(t->context, NULL));
}
static void call_context_device(things_t* t) {
  pestle_device_t* device;
  BAD(pestle_context_device(NULL, "ref", &device));
  assert_null(device);
  BAD(pestle_context_device(t->context, "ref", NULL));
}
static void call_device_library(things_t* t) {
  const char* id = NULL;
  (void)t;
  assert_null(pestle_device_library(NULL, 0, &id));
  assert_string_equal(id, "");
  assert_null(pestle_device_library(t->device, 99, NULL));
}
static void call_context_target(things_t* t) {
  pestle_device_t* device;
  BAD(pestle_context_target(NULL, "ref", &device));
  assert_null(device);
  BAD(pestle_context_target(t->context, "ref", NULL));
}
static void call_device_is_target(things_t* t) {
  assert_false(pestle_device_is_target(NULL));
  assert_false(pestle_device_is_target(t->device));
}
static void call_context_fallback(things_t* t) {
  pestle_device_t* device;
  BAD(pestle_context_fallback(NULL, t->device, &device));
  assert_null(device);
  BAD(pestle_context_fallback(t->context, NULL, &device));
  BAD(pestle_context_fallback(t->context, t->device, NULL));
}
static void task(void* arg, int64_t i) {
  (void)arg, (void)i;
}
static void call_context_parallel_for(things_t* t) {
  pestle_context_parallel_for(NULL, 2, task, NULL);
  pestle_context_parallel_for(t->context, 2, NULL, NULL);
}
static void call_device_name(things_t* t) {
  (void)t;
  assert_string_equal(pestle_device_name(NULL), "");
}
static void call_device_dl(things_t* t) {
  (void)t;
  assert_int_equal(pestle_device_dl(NULL).device_type, 0);
}
static void call_device_backend(things_t* t) {
  (void)t;
  assert_null(pestle_device_backend(NULL));
}
static void call_device_backend_id(things_t* t) {
  (void)t;
  assert_string_equal(pestle_device_backend_id(NULL), "");
}
static void call_device_caps(things_t* t) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  BAD(pestle_device_caps(NULL, NULL, &caps));
  BAD(pestle_device_caps(t->device, NULL, NULL));
}
static void call_device_memory_stats(things_t* t) {
  pestle_memory_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_device_memory_stats(NULL, &stats);
  pestle_device_memory_stats(t->device, NULL);
}

// --- Buffers, streams, events ---

static void call_buffer_create(things_t* t) {
  pestle_buffer_t* buffer;
  BAD(pestle_buffer_create(NULL, 64, &buffer));
  assert_null(buffer);
  BAD(pestle_buffer_create(t->device, 64, NULL));
}
static void call_buffer_wrap(things_t* t) {
  char byte = 0;
  pestle_buffer_t* buffer;
  BAD(pestle_buffer_wrap(NULL, &byte, 1, NULL, &buffer));
  assert_null(buffer);
  BAD(pestle_buffer_wrap(t->device, NULL, 1, NULL, &buffer));
  BAD(pestle_buffer_wrap(t->device, &byte, 1, NULL, NULL));
  pestle_buffer_wrap_options_t options = {.struct_size = 0};
  BAD(pestle_buffer_wrap(t->device, &byte, 1, &options, &buffer));
  assert_ok(pestle_buffer_wrap(t->device, NULL, 0, NULL, &buffer));
  pestle_buffer_release(buffer);
}
static void call_buffer_flags(things_t* t) {
  (void)t;
  assert_int_equal(pestle_buffer_flags(NULL), 0);
}
static void call_buffer_is_ready(things_t* t) {
  assert_false(pestle_buffer_is_ready(NULL));
  assert_true(pestle_buffer_is_ready(t->buffer));
}
static void call_buffer_wait(things_t* t) {
  BAD(pestle_buffer_wait(NULL));
  assert_ok(pestle_buffer_wait(t->buffer));
}
static void call_event_record_buffer(things_t* t) {
  BAD(pestle_event_record_buffer(NULL, t->buffer));
  BAD(pestle_event_record_buffer(t->event, NULL));
  assert_ok(pestle_event_record_buffer(t->event, t->buffer));
  assert_true(pestle_event_is_signalled(t->event));
}
static void call_buffer_extents(things_t* t) {
  int32_t rank = 1;
  assert_null(pestle_buffer_extents(NULL, &rank));
  assert_int_equal(rank, 0);
  assert_null(pestle_buffer_extents(t->buffer, NULL));
}
static void call_buffer_retain(things_t* t) {
  (void)t;
  pestle_buffer_retain(NULL);
}
static void call_buffer_release(things_t* t) {
  (void)t;
  pestle_buffer_release(NULL);
}
static void call_buffer_data(things_t* t) {
  (void)t;
  assert_null(pestle_buffer_data(NULL));
}
static void call_buffer_host_data(things_t* t) {
  (void)t;
  assert_null(pestle_buffer_host_data(NULL));
}
static void call_buffer_copy(things_t* t) {
  BAD(pestle_buffer_copy(NULL, 0, t->buffer, 0, 1));
  BAD(pestle_buffer_copy(t->buffer, 0, NULL, 0, 1));
}
static void call_fence_create(things_t* t) {
  pestle_fence_t* fence;
  BAD(pestle_fence_create(NULL, &fence));
  assert_null(fence);
  BAD(pestle_fence_create(t->device, NULL));
}
static void call_fence_release(things_t* t) {
  (void)t;
  pestle_fence_release(NULL);
}
static void call_fence_update(things_t* t) {
  pestle_fence_t* fence;
  assert_ok(pestle_fence_create(t->device, &fence));
  BAD(pestle_fence_update(NULL, t->stream, t->buffer, false));
  BAD(pestle_fence_update(fence, NULL, t->buffer, false));
  BAD(pestle_fence_update(fence, t->stream, NULL, false));
  pestle_fence_release(fence);
}
static void call_fence_wait(things_t* t) {
  pestle_fence_t* fence;
  assert_ok(pestle_fence_create(t->device, &fence));
  BAD(pestle_fence_wait(NULL, t->stream, t->buffer));
  BAD(pestle_fence_wait(fence, t->stream, NULL));
  pestle_fence_release(fence);
}
static void call_tensor_read(things_t* t) {
  char data[4];
  pestle_tensor_t tensor = {.data = data, .dtype = {2, 32, 1}};
  BAD(pestle_tensor_read(NULL, &tensor, data, 4));
  BAD(pestle_tensor_read(t->executable, NULL, data, 4));
  BAD(pestle_tensor_read(t->executable, &tensor, NULL, 4));
  tensor.data = NULL;
  BAD(pestle_tensor_read(t->executable, &tensor, data, 4));
}
static void call_buffer_size(things_t* t) {
  (void)t;
  assert_int_equal(pestle_buffer_size(NULL), 0);
}
static void call_buffer_device(things_t* t) {
  (void)t;
  assert_null(pestle_buffer_device(NULL));
}
static void call_buffer_write(things_t* t) {
  char byte = 0;
  BAD(pestle_buffer_write(NULL, 0, &byte, 1));
  BAD(pestle_buffer_write(t->buffer, 0, NULL, 1));
  assert_ok(pestle_buffer_write(t->buffer, 0, NULL, 0));
}
static void call_buffer_read(things_t* t) {
  char byte = 0;
  BAD(pestle_buffer_read(NULL, 0, &byte, 1));
  BAD(pestle_buffer_read(t->buffer, 0, NULL, 1));
  assert_ok(pestle_buffer_read(t->buffer, 0, NULL, 0));
}
static void call_stream_create(things_t* t) {
  pestle_stream_t* stream;
  BAD(pestle_stream_create(NULL, &stream));
  assert_null(stream);
  BAD(pestle_stream_create(t->device, NULL));
}
static void call_world_create_local(things_t* t) {
  pestle_world_t* ranks[2];
  BAD(pestle_world_create_local(NULL, 2, NULL, ranks));
  BAD(pestle_world_create_local(t->context, 2, NULL, NULL));
}
static void call_world_create(things_t* t) {
  pestle_world_t* world;
  pestle_world_options_t options = {.struct_size = sizeof(options), .size = -1};
  BAD(pestle_world_create(NULL, NULL, &world));
  BAD(pestle_world_create(t->context, NULL, NULL));
  BAD(pestle_world_create(t->context, &options, &world));
}
static void call_world_retain(things_t* t) {
  (void)t;
  pestle_world_retain(NULL);
}
static void call_world_release(things_t* t) {
  (void)t;
  pestle_world_release(NULL);
}
static void call_world_prepare(things_t* t) {
  (void)t;
  BAD(pestle_world_prepare(NULL, NULL));
}
static void call_world_rank(things_t* t) {
  (void)t;
  assert_int_equal(pestle_world_rank(NULL), 0);
}
static void call_world_size(things_t* t) {
  (void)t;
  assert_int_equal(pestle_world_size(NULL), 0);
}
static void call_world_abort(things_t* t) {
  (void)t;
  pestle_world_abort(NULL, NULL);
}
static void call_world_status(things_t* t) {
  (void)t;
  assert_null(pestle_world_status(NULL));
}
static void call_world_bytes(things_t* t) {
  (void)t;
  assert_int_equal(pestle_world_bytes(NULL), 0);
}
static void call_stream_release(things_t* t) {
  (void)t;
  pestle_stream_release(NULL);
}
static void call_stream_synchronize(things_t* t) {
  (void)t;
  BAD(pestle_stream_synchronize(NULL));
}
static void call_event_create(things_t* t) {
  pestle_event_t* event;
  BAD(pestle_event_create(NULL, &event));
  assert_null(event);
  BAD(pestle_event_create(t->device, NULL));
}
static void call_event_release(things_t* t) {
  (void)t;
  pestle_event_release(NULL);
}
static void call_event_record(things_t* t) {
  BAD(pestle_event_record(NULL, t->stream));
}
static void call_event_wait(things_t* t) {
  BAD(pestle_event_wait(NULL, t->stream));
}
static void call_event_is_signalled(things_t* t) {
  (void)t;
  assert_false(pestle_event_is_signalled(NULL));
}

static void call_event_status(things_t* t) {
  (void)t;
  BAD(pestle_event_status(NULL));
}
static void ignore_event(void* self, pestle_status_t status) {
  (void)self, (void)status;
}
static void call_event_on_signalled(things_t* t) {
  pestle_event_t* event;
  BAD(pestle_event_on_signalled(NULL, ignore_event, NULL));
  assert_ok(pestle_event_create(t->device, &event));
  BAD(pestle_event_on_signalled(event, NULL, NULL));
  pestle_event_release(event);
}

// --- Plans, constants, executables, cache ---

static void call_plan_create(things_t* t) {
  pestle_plan_t* plan;
  size_t size;
  const void* data = pestle_plan_data(t->plan, &size);
  BAD(pestle_plan_create(NULL, data, size, NULL, NULL, &plan));
  assert_null(plan);
  BAD(pestle_plan_create(t->context, NULL, size, NULL, NULL, &plan));
  BAD(pestle_plan_create(t->context, data, size, NULL, NULL, NULL));
}
static void call_plan_retain(things_t* t) {
  (void)t;
  pestle_plan_retain(NULL);
}
static void call_plan_release(things_t* t) {
  (void)t;
  pestle_plan_release(NULL);
}
static void call_plan_data(things_t* t) {
  size_t size = 1;
  assert_null(pestle_plan_data(NULL, &size));
  assert_int_equal(size, 0);
  assert_non_null(pestle_plan_data(t->plan, NULL));
}
static void call_plan_save(things_t* t) {
  BAD(pestle_plan_save(NULL, "x.plan"));
  BAD(pestle_plan_save(t->plan, NULL));
}
static void call_plan_load(things_t* t) {
  pestle_plan_t* plan;
  BAD(pestle_plan_load(NULL, "x.plan", &plan));
  assert_null(plan);
  BAD(pestle_plan_load(t->context, NULL, &plan));
  BAD(pestle_plan_load(t->context, "x.plan", NULL));
}
static void pack(void* user, void* target, size_t size) {
  (void)user, (void)target, (void)size;
}
static void call_constant_get(things_t* t) {
  static const uint64_t key[2] = {1, 2};
  pestle_constant_t* constant;
  BAD(pestle_constant_get(NULL, key, 64, pack, NULL, &constant));
  assert_null(constant);
  BAD(pestle_constant_get(t->context, NULL, 64, pack, NULL, &constant));
  BAD(pestle_constant_get(t->context, key, 64, NULL, NULL, &constant));
  BAD(pestle_constant_get(t->context, key, 64, pack, NULL, NULL));
}
static void call_constant_get_bytes(things_t* t) {
  static const uint64_t key[2] = {1, 2};
  pestle_constant_t* constant;
  BAD(pestle_constant_get_bytes(NULL, key, key, 16, &constant));
  assert_null(constant);
  BAD(pestle_constant_get_bytes(t->context, NULL, key, 16, &constant));
  BAD(pestle_constant_get_bytes(t->context, key, NULL, 16, &constant));
  BAD(pestle_constant_get_bytes(t->context, key, key, 16, NULL));
}
static void call_constant_release(things_t* t) {
  (void)t;
  pestle_constant_release(NULL);
}
static void call_constant_data(things_t* t) {
  (void)t;
  uint64_t hash[2];
  assert_null(pestle_constant_data(NULL, hash));
}
static void call_executable_create(things_t* t) {
  pestle_executable_t* e;
  BAD(pestle_executable_create(NULL, t->plan, t->device, &e));
  BAD(pestle_executable_create(t->context, NULL, t->device, &e));
  BAD(pestle_executable_create(t->context, t->plan, t->device, NULL));
}
static void call_executable_retain(things_t* t) {
  (void)t;
  pestle_executable_retain(NULL);
}
static void call_executable_release(things_t* t) {
  (void)t;
  pestle_executable_release(NULL);
}
static void call_executable_input_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_executable_input_count(NULL), 0);
}
static void call_executable_output_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_executable_output_count(NULL), 0);
}
static void call_executable_input(things_t* t) {
  assert_string_equal(pestle_executable_input(NULL, 0).name, "");
  assert_string_equal(pestle_executable_input(t->executable, 1).name, "");
}
static void call_executable_output(things_t* t) {
  assert_string_equal(pestle_executable_output(NULL, 0).name, "");
  assert_string_equal(pestle_executable_output(t->executable, 1).name, "");
}
static void call_executable_step_count(things_t* t) {
  assert_int_equal(pestle_executable_step_count(NULL), 0);
  assert_int_equal(pestle_executable_step_count(t->executable), 2);
}
static void call_executable_step(things_t* t) {
  pestle_step_info_t info = {.struct_size = sizeof(info)}, none = {0};
  BAD(pestle_executable_step(NULL, 0, &info));
  BAD(pestle_executable_step(t->executable, 0, NULL));
  BAD(pestle_executable_step(t->executable, 0, &none));
  BAD(pestle_executable_step(t->executable, 2, &info));
  assert_ok(pestle_executable_step(t->executable, 0, &info));
  assert_int_equal(info.kind, PESTLE_STEP_KERNEL);
  assert_int_equal(info.bytes, 32);
}
static void call_executable_location_count(things_t* t) {
  assert_int_equal(pestle_executable_location_count(NULL), 0);
  assert_int_equal(pestle_executable_location_count(t->executable), 1);
}
static void call_executable_location(things_t* t) {
  pestle_location_info_t info = {.struct_size = sizeof(info)}, none = {0};
  BAD(pestle_executable_location(NULL, 0, &info));
  BAD(pestle_executable_location(t->executable, 0, NULL));
  BAD(pestle_executable_location(t->executable, 0, &none));
  BAD(pestle_executable_location(t->executable, 1, &info));
  assert_ok(pestle_executable_location(t->executable, 0, &info));
  assert_string_equal(info.name, "");
}
// A pestle_control_t of a caller who knows only the beginning: a block of |size|
// bytes, behind which a sanitizer looks. At least its struct_size is there.
static void* controls[8];
static int control_count;
static const pestle_control_t* short_control(size_t size) {
  size_t* block = malloc(size < sizeof(size_t) ? sizeof(size_t) : size);
  *block = size;
  controls[control_count++] = block;
  return (const pestle_control_t*)(void*)block;
}
static void free_controls(void) {
  while (control_count)
    free(controls[--control_count]);
}
static void call_executable_alias(things_t* t) {
  assert_int_equal(pestle_executable_alias(NULL, 0), -1);
  assert_int_equal(pestle_executable_alias(t->executable, 0), -1);
  assert_int_equal(pestle_executable_alias(t->executable, 1), -1);
}
static void call_executable_constant_bytes(things_t* t) {
  assert_int_equal(pestle_executable_constant_bytes(NULL, -1), 0);
  uint64_t all = pestle_executable_constant_bytes(t->executable, -1);
  assert_true(pestle_executable_constant_bytes(t->executable, 0) <= all);
  assert_true(pestle_executable_constant_bytes(t->executable, INT32_MAX) <=
              all);
}
static void call_executable_run_buffers(things_t* t) {
  float x[4] = {1, 2, 3, 4}, y[4];
  pestle_buffer_t* out = t->buffer;
  pestle_buffer_view_t in = {.buffer = t->buffer};
  pestle_executable_t* e = t->executable;
  assert_ok(pestle_buffer_write(t->buffer, 0, x, sizeof(x)));
  BAD(pestle_executable_run_buffers(NULL, NULL, &in, 1, &out, 1, NULL));
  assert_null(out);
  BAD(pestle_executable_run_buffers(e, NULL, NULL, 1, &out, 1, NULL));
  BAD(pestle_executable_run_buffers(e, NULL, &in, 1, NULL, 1, NULL));
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .donated_count = 1};
  BAD(pestle_executable_run_buffers(e, NULL, &in, 1, &out, 1, &options));
  options.struct_size = 0;
  BAD(pestle_executable_run_buffers(e, NULL, &in, 1, &out, 1, &options));
  pestle_buffer_view_t hollow = {.buffer = NULL};
  BAD(pestle_executable_run_buffers(e, NULL, &hollow, 1, &out, 1, NULL));
  assert_ok(pestle_executable_run_buffers(e, NULL, &in, 1, &out, 1, NULL));
  assert_ok(pestle_buffer_read(out, 0, y, sizeof(y)));
  assert_true(y[3] == 8);
  pestle_buffer_release(out);
}
static void call_executable_run(things_t* t) {
  float x[4] = {1, 2, 3, 4}, y[4];
  int64_t shape[1] = {4};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = {2, 32, 1},
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  pestle_executable_t* e = t->executable;
  BAD(pestle_executable_run(NULL, NULL, &in, 1, &out, 1, NULL));
  BAD(pestle_executable_run(e, NULL, NULL, 1, &out, 1, NULL));
  BAD(pestle_executable_run(e, NULL, &in, 1, NULL, 1, NULL));
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .donated_count = 1};
  BAD(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  const char* nobody[1] = {NULL};
  options.donated = nobody;
  BAD(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  options =
      (pestle_run_options_t){.struct_size = sizeof(options), .threads = -7};
  BAD(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  options.threads = 0;
  options.control = short_control(0);
  BAD(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  options.control = short_control(sizeof(size_t));
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  free_controls();
  pestle_tensor_t hollow = in;
  hollow.shape = NULL;
  BAD(pestle_executable_run(e, NULL, &hollow, 1, &out, 1, NULL));
  hollow = in;
  hollow.data = NULL;
  BAD(pestle_executable_run(e, NULL, &hollow, 1, &out, 1, NULL));
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  assert_true(y[3] == 8);
}
static void call_plan_set_save(things_t* t) {
  pestle_plan_t* none = NULL;
  BAD(pestle_plan_set_save(NULL, 1, "x.plan"));
  BAD(pestle_plan_set_save(&t->plan, 0, "x.plan"));
  BAD(pestle_plan_set_save(&t->plan, 1, NULL));
  BAD(pestle_plan_set_save(&none, 1, "x.plan"));
}
static void call_plan_set_load(things_t* t) {
  pestle_plan_set_t* set;
  BAD(pestle_plan_set_load(NULL, "x.plan", &set));
  BAD(pestle_plan_set_load(t->context, NULL, &set));
  BAD(pestle_plan_set_load(t->context, "x.plan", NULL));
}
static void call_plan_set_release(things_t* t) {
  (void)t;
  pestle_plan_set_release(NULL);
}
static void call_plan_set_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_plan_set_count(NULL), 0);
}
static void call_plan_set_plan(things_t* t) {
  (void)t;
  assert_null(pestle_plan_set_plan(NULL, 0));
}
static void call_session_create(things_t* t) {
  pestle_session_t* session;
  pestle_session_options_t options = {0};
  BAD(pestle_session_create(NULL, "x.onnx", NULL, &session));
  BAD(pestle_session_create(t->context, NULL, NULL, &session));
  BAD(pestle_session_create(t->context, "x.onnx", NULL, NULL));
  BAD(pestle_session_create(t->context, "x.onnx", &options, &session));
}
static void call_session_retain(things_t* t) {
  (void)t;
  pestle_session_retain(NULL);
}
static void call_session_release(things_t* t) {
  (void)t;
  pestle_session_release(NULL);
}
static void call_session_run(things_t* t) {
  (void)t;
  pestle_named_tensor_t none = {0};
  BAD(pestle_session_run(NULL, &none, 1, &none, 1, NULL));
}
static void call_session_tensor_release(things_t* t) {
  (void)t;
  pestle_tensor_t tensor = {0};
  pestle_session_tensor_release(NULL, &tensor);
  pestle_session_tensor_release(NULL, NULL);
}
static void call_session_wait(things_t* t) {
  (void)t;
  BAD(pestle_session_wait(NULL, NULL));
}
static void call_decoder_create(things_t* t) {
  pestle_decoder_t* decoder;
  pestle_decoder_options_t options = {0};
  BAD(pestle_decoder_create(NULL, "x.onnx", NULL, &decoder));
  BAD(pestle_decoder_create(t->context, NULL, NULL, &decoder));
  BAD(pestle_decoder_create(t->context, "x.onnx", NULL, NULL));
  BAD(pestle_decoder_create(t->context, "x.onnx", &options, &decoder));
}
static void call_decoder_release(things_t* t) {
  (void)t;
  pestle_decoder_release(NULL);
}
static void call_decoder_info(things_t* t) {
  (void)t;
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  BAD(pestle_decoder_info(NULL, &info));
}
static void call_decoder_feed(things_t* t) {
  (void)t;
  const int64_t id = 0;
  BAD(pestle_decoder_feed(NULL, 0, &id, 1));
}
static void call_decoder_feed_each(things_t* t) {
  (void)t;
  const int64_t id = 0;
  const size_t slot = 0;
  BAD(pestle_decoder_feed_each(NULL, &slot, &id, 1));
}
static void call_decoder_logits(things_t* t) {
  (void)t;
  assert_null(pestle_decoder_logits(NULL, 0));
}
static void call_decoder_choose(things_t* t) {
  (void)t;
  int64_t id;
  BAD(pestle_decoder_choose(NULL, 0, NULL, &id));
}
static void call_decoder_sampling(things_t* t) {
  (void)t;
  pestle_sampling_t sampling = {.struct_size = sizeof(sampling)};
  BAD(pestle_decoder_sampling(NULL, &sampling));
}
static void call_decoder_length(things_t* t) {
  (void)t;
  assert_int_equal(pestle_decoder_length(NULL, 0), -1);
}
static void call_decoder_cut(things_t* t) {
  (void)t;
  BAD(pestle_decoder_cut(NULL, 0, 0));
}
static void call_decoder_encode(things_t* t) {
  (void)t;
  const pestle_tensor_t features = {.data = NULL};
  BAD(pestle_decoder_encode(NULL, 0, &features));
}
static void call_decoder_fork(things_t* t) {
  (void)t;
  BAD(pestle_decoder_fork(NULL, 0, 1));
}
static void call_decoder_save(things_t* t) {
  (void)t;
  BAD(pestle_decoder_save(NULL, 0, "x.seq"));
}
static void call_decoder_load(things_t* t) {
  (void)t;
  BAD(pestle_decoder_load(NULL, 0, "x.seq"));
}
static void call_executable_input_is_strings(things_t* t) {
  assert_false(pestle_executable_input_is_strings(NULL, 0));
  assert_false(pestle_executable_input_is_strings(t->executable, 9));
}
static void call_executable_output_is_strings(things_t* t) {
  assert_false(pestle_executable_output_is_strings(NULL, 0));
  assert_false(pestle_executable_output_is_strings(t->executable, 9));
}
static void call_module_input_is_strings(things_t* t) {
  assert_false(pestle_module_input_is_strings(NULL, 0));
  assert_false(pestle_module_input_is_strings(t->module, 9));
}
static void call_module_output_is_strings(things_t* t) {
  assert_false(pestle_module_output_is_strings(NULL, 0));
  assert_false(pestle_module_output_is_strings(t->module, 9));
}
static void call_strings_create(things_t* t) {
  pestle_strings_t* strings;
  BAD(pestle_strings_create(NULL, &strings));
  BAD(pestle_strings_create(t->executable, NULL));
}
static void call_executable_needs_strings(things_t* t) {
  assert_false(pestle_executable_needs_strings(NULL));
  assert_false(pestle_executable_needs_strings(t->executable));
}
static void call_module_strings_create(things_t* t) {
  pestle_strings_t* strings;
  BAD(pestle_module_strings_create(NULL, &strings));
  BAD(pestle_module_strings_create(t->module, NULL));
}
static void call_strings_release(things_t* t) {
  (void)t;
  pestle_strings_release(NULL);
}
static void call_strings_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_strings_count(NULL), 0);
}
static void call_strings_encode(things_t* t) {
  pestle_strings_t* strings;
  pestle_string_t word = {"a", 1};
  int32_t id;
  assert_ok(pestle_strings_create(t->executable, &strings));
  BAD(pestle_strings_encode(NULL, &word, 1, &id));
  BAD(pestle_strings_encode(strings, NULL, 1, &id));
  BAD(pestle_strings_encode(strings, &word, 1, NULL));
  pestle_strings_release(strings);
}
static void call_strings_decode(things_t* t) {
  pestle_strings_t* strings;
  pestle_string_t word;
  int32_t id = 0;
  assert_ok(pestle_strings_create(t->executable, &strings));
  BAD(pestle_strings_decode(NULL, &id, 1, &word));
  BAD(pestle_strings_decode(strings, NULL, 1, &word));
  BAD(pestle_strings_decode(strings, &id, 1, NULL));
  BAD(pestle_strings_decode(strings, &id, 1, &word));
  pestle_strings_release(strings);
}
static void call_strings_forget(things_t* t) {
  (void)t;
  pestle_strings_forget(NULL);
}
static void call_session_stats(things_t* t) {
  (void)t;
  pestle_session_stats_t stats = {.struct_size = sizeof(stats)};
  BAD(pestle_session_stats(NULL, &stats));
}
static void visit_shape(void* user, const pestle_session_shape_t* shape) {
  (void)user, (void)shape;
}
static void call_session_visit(things_t* t) {
  (void)t;
  BAD(pestle_session_visit(NULL, visit_shape, NULL));
}
static void call_session_input_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_session_input_count(NULL), 0);
}
static void call_session_output_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_session_output_count(NULL), 0);
}
static void call_session_input(things_t* t) {
  (void)t;
  assert_string_equal(pestle_session_input(NULL, 0).name, "");
}
static void call_session_output_name(things_t* t) {
  (void)t;
  assert_string_equal(pestle_session_output_name(NULL, 0), "");
}
static void call_session_input_is_strings(things_t* t) {
  (void)t;
  assert_false(pestle_session_input_is_strings(NULL, 0));
}
static void call_session_output_is_strings(things_t* t) {
  (void)t;
  assert_false(pestle_session_output_is_strings(NULL, 0));
}
static void call_session_strings_create(things_t* t) {
  (void)t;
  pestle_strings_t* strings;
  BAD(pestle_session_strings_create(NULL, &strings));
  assert_null(strings);
}
static void call_executable_run_named(things_t* t) {
  pestle_named_tensor_t none = {0};
  pestle_executable_t* e = t->executable;
  BAD(pestle_executable_run_named(NULL, NULL, &none, 1, &none, 1, NULL));
  BAD(pestle_executable_run_named(e, NULL, NULL, 1, &none, 1, NULL));
  BAD(pestle_executable_run_named(e, NULL, NULL, 0, NULL, 1, NULL));
  BAD(pestle_executable_run_named(e, NULL, &none, 1, NULL, 0, NULL));
}
static void call_executable_find_input(things_t* t) {
  assert_true(pestle_executable_find_input(NULL, "x") == SIZE_MAX);
  assert_true(pestle_executable_find_input(t->executable, NULL) == SIZE_MAX);
}
static void call_executable_find_output(things_t* t) {
  assert_true(pestle_executable_find_output(NULL, "x") == SIZE_MAX);
  assert_true(pestle_executable_find_output(t->executable, NULL) == SIZE_MAX);
}
static void call_executable_find_input_list(things_t* t) {
  size_t first = 9;
  assert_int_equal(pestle_executable_find_input_list(NULL, "x", &first), 0);
  assert_int_equal(first, 0);
  assert_int_equal(pestle_executable_find_input_list(t->executable, NULL, NULL),
                   0);
}
static void call_executable_find_output_list(things_t* t) {
  size_t first = 9;
  assert_int_equal(pestle_executable_find_output_list(NULL, "x", &first), 0);
  assert_int_equal(first, 0);
  assert_int_equal(
      pestle_executable_find_output_list(t->executable, NULL, NULL), 0);
}
static void call_tensor_release(things_t* t) {
  pestle_tensor_t tensor = {0};
  pestle_tensor_release(NULL, &tensor);
  pestle_tensor_release(t->executable, NULL);
  pestle_tensor_release(t->executable, &tensor);
}
static void call_tensor_byte_size(things_t* t) {
  (void)t;
  assert_int_equal(pestle_tensor_byte_size(NULL), 0);
  assert_int_equal(pestle_tensor_byte_size(&(pestle_tensor_t){.ndim = 2}), 0);
}
static void call_tensor_init(things_t* t) {
  pestle_tensor_t tensor;
  BAD(pestle_tensor_init(t->context, PESTLE_F32, NULL, 0, NULL, NULL));
  BAD(pestle_tensor_init(NULL, PESTLE_F32, NULL, 0, NULL, &tensor));
  BAD(pestle_tensor_init(t->context, PESTLE_F32, NULL, 2, NULL, &tensor));
  assert_null(tensor.data);
}
static void call_tensor_deinit(things_t* t) {
  pestle_tensor_t tensor = {0};
  pestle_tensor_deinit(NULL, &tensor);
  pestle_tensor_deinit(t->context, NULL);
  pestle_tensor_deinit(t->context, &tensor);
}
static void call_tensor_fill(things_t* t) {
  (void)t;
  BAD(pestle_tensor_fill(NULL, 1));
  BAD(pestle_tensor_fill(&(pestle_tensor_t){0}, 1));
}
static void call_tensor_format(things_t* t) {
  (void)t;
  assert_int_equal(pestle_tensor_format(NULL, NULL, 10), 4);
  pestle_tensor_format(&(pestle_tensor_t){.ndim = 2}, NULL, 0);
}
static pestle_status_t make_plan(void* user, pestle_plan_t** out_plan) {
  (void)user;
  *out_plan = NULL;
  return PESTLE_ERROR(IO, "no plan is made");
}
static void call_plan_cache_get(things_t* t) {
  pestle_plan_t* plan;
  pestle_context_t* c = t->context;
  BAD(pestle_plan_cache_get(NULL, "k", 1, make_plan, NULL, &plan, NULL));
  assert_null(plan);
  BAD(pestle_plan_cache_get(c, NULL, 1, make_plan, NULL, &plan, NULL));
  BAD(pestle_plan_cache_get(c, "k", 1, NULL, NULL, &plan, NULL));
  BAD(pestle_plan_cache_get(c, "k", 1, make_plan, NULL, NULL, NULL));
}
static void call_plan_cache_find(things_t* t) {
  pestle_plan_t* plan;
  BAD(pestle_plan_cache_find(NULL, "k", 1, &plan));
  assert_null(plan);
  BAD(pestle_plan_cache_find(t->context, NULL, 1, &plan));
  BAD(pestle_plan_cache_find(t->context, "k", 1, NULL));
}
static void call_cache_stats(things_t* t) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  BAD(pestle_cache_stats(NULL, &stats));
  BAD(pestle_cache_stats(t->context, NULL));
}
static void visit(void* user, const char* name, const char* model,
                  uint64_t bytes, int64_t used, pestle_status_t status) {
  (void)user, (void)name, (void)model, (void)bytes, (void)used, (void)status;
}
static void visit_key(void* user, const void* key, size_t size) {
  (void)user, (void)key, (void)size;
}
static void call_cache_visit_keys(things_t* t) {
  BAD(pestle_cache_visit_keys(NULL, visit_key, NULL));
  BAD(pestle_cache_visit_keys(t->context, NULL, NULL));
}
static void call_cache_visit(things_t* t) {
  BAD(pestle_cache_visit(NULL, false, visit, NULL));
  BAD(pestle_cache_visit(t->context, false, NULL, NULL));
}
static void call_cache_prune(things_t* t) {
  uint64_t removed;
  BAD(pestle_cache_prune(NULL, 0, &removed));
  assert_ok(pestle_cache_prune(t->context, 0, NULL));
}

// --- Modules ---

static void call_module_create(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_module_create(NULL, "m", &module));
  BAD(pestle_module_create(t->context, "m", NULL));
  assert_ok(pestle_module_create(t->context, NULL, &module));
  pestle_module_release(module);
}
static void call_module_retain(things_t* t) {
  (void)t;
  pestle_module_retain(NULL);
}
static void call_module_release(things_t* t) {
  (void)t;
  pestle_module_release(NULL);
}
static void call_module_add_function(things_t* t) {
  pestle_function_t* f;
  BAD(pestle_module_add_function(NULL, "f", &f32x4, NULL, 1, &f));
  assert_null(f);
  BAD(pestle_module_add_function(t->open, NULL, &f32x4, NULL, 1, &f));
  BAD(pestle_module_add_function(t->open, "f", NULL, NULL, 1, &f));
  BAD(pestle_module_add_function(t->open, "f", &f32x4, NULL, 1, NULL));
  const char* const names[1] = {NULL};
  assert_ok(pestle_module_add_function(t->open, "f", &f32x4, names, 1, &f));
  assert_ok(pestle_module_add_function(t->open, "g", NULL, NULL, 0, &f));
}
static void call_module_entry(things_t* t) {
  (void)t;
  assert_null(pestle_module_entry(NULL));
}
static void call_function_argument_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_function_argument_count(NULL), 0);
}
static void call_function_argument(things_t* t) {
  assert_null(pestle_function_argument(NULL, 0));
  assert_null(pestle_function_argument(t->function, 1));
}
static void call_function_argument_name(things_t* t) {
  assert_null(pestle_function_argument_name(NULL, 0));
  assert_null(pestle_function_argument_name(t->function, 1));
}
static void call_module_name(things_t* t) {
  (void)t;
  assert_string_equal(pestle_module_name(NULL), "");
}
static void call_module_attribute(things_t* t) {
  assert_null(pestle_module_attribute(NULL, "a.b"));
  assert_null(pestle_module_attribute(t->module, NULL));
  assert_null(pestle_module_attribute(t->module, "a.b"));
}
static void call_function_argument_attribute(things_t* t) {
  assert_null(pestle_function_argument_attribute(NULL, 0, "a.b"));
  assert_null(pestle_function_argument_attribute(t->function, 0, NULL));
  assert_null(pestle_function_argument_attribute(t->function, 99, "a.b"));
}
static void call_function_returned_type(things_t* t) {
  assert_int_equal(pestle_function_returned_type(NULL, 0).dtype, PESTLE_NONE);
  assert_int_equal(pestle_function_returned_type(t->function, 99).dtype,
                   PESTLE_NONE);
}
static void call_function_result_attribute(things_t* t) {
  assert_null(pestle_function_result_attribute(NULL, 0, "a.b"));
  assert_null(pestle_function_result_attribute(t->function, 0, NULL));
  assert_null(pestle_function_result_attribute(t->function, 99, "a.b"));
}
static void call_module_link(things_t* t) {
  pestle_module_t* linked = t->module;
  pestle_link_part_t part = {NULL, NULL, 0};
  BAD(pestle_module_link(NULL, 1, NULL, 0, &linked));
  BAD(pestle_module_link(&part, 1, NULL, 0, &linked));
  BAD(pestle_module_link(&part, 1, NULL, 0, NULL));
}
static void call_function_tokens(things_t* t) {
  const uint32_t* positions = &(uint32_t){7};
  assert_int_equal(pestle_function_tokens(NULL, true, &positions), 0);
  assert_null(positions);
  assert_int_equal(pestle_function_tokens(t->function, false, NULL), 0);
}
static void call_op_linear(things_t* t) {
  pestle_value_t* out = t->value;
  BAD(pestle_op_linear(NULL, t->value, t->value, NULL, &out));
  assert_null(out);
  BAD(pestle_op_linear(&t->builder, NULL, NULL, NULL, NULL));
}
static void call_value_type(things_t* t) {
  (void)t;
  assert_int_equal(pestle_value_type(NULL).dtype, PESTLE_NONE);
}
// |make| takes NULL for no argument but the options.
static void call_transform(
    things_t* t,
    pestle_status_t (*make)(pestle_module_t*, const pestle_transform_options_t*,
                            pestle_module_t**)) {
  pestle_module_t* made = t->module;
  BAD(make(NULL, NULL, &made));
  BAD(make(t->module, NULL, NULL));
}
static void call_module_jvp(things_t* t) {
  call_transform(t, pestle_module_jvp);
}
static void call_module_vjp(things_t* t) {
  call_transform(t, pestle_module_vjp);
}
static void call_module_gradient(things_t* t) {
  call_transform(t, pestle_module_gradient);
}
static void call_module_checkpoint(things_t* t) {
  call_transform(t, pestle_module_checkpoint);
}
static void call_module_checkpoint_name(things_t* t) {
  pestle_module_t* out;
  BAD(pestle_module_checkpoint_name(NULL, "a", &out));
  BAD(pestle_module_checkpoint_name(t->module, NULL, &out));
  BAD(pestle_module_checkpoint_name(t->module, "a", NULL));
  BAD(pestle_module_checkpoint_name(t->module, "a,b", &out));
  assert_ok(pestle_module_checkpoint_name(t->module, "a", &out));
  pestle_module_release(out);
}
static void call_module_transpose(things_t* t) {
  call_transform(t, pestle_module_transpose);
}
static void call_module_linearize(things_t* t) {
  pestle_module_t *forward, *linear;
  BAD(pestle_module_linearize(NULL, NULL, &forward, &linear));
  BAD(pestle_module_linearize(t->module, NULL, NULL, &linear));
  BAD(pestle_module_linearize(t->module, NULL, &forward, NULL));
}
static void call_module_vmap(things_t* t) {
  pestle_module_t* made;
  pestle_vmap_options_t options = {.struct_size = sizeof(options), .size = 2};
  BAD(pestle_module_vmap(NULL, &options, &made));
  BAD(pestle_module_vmap(t->module, NULL, &made));
  BAD(pestle_module_vmap(t->module, &options, NULL));
}
static void call_module_verify(things_t* t) {
  (void)t;
  BAD(pestle_module_verify(NULL));
}
static void call_module_specialize(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_module_specialize(NULL, &f32x4, 1, &module));
  assert_null(module);
  BAD(pestle_module_specialize(t->module, NULL, 1, &module));
  BAD(pestle_module_specialize(t->module, &f32x4, 1, NULL));
}
static void call_module_specialize_values(things_t* t) {
  pestle_module_t* module;
  pestle_tensor_t none = {0};
  BAD(pestle_module_specialize_values(NULL, &none, 1, &module));
  assert_null(module);
  BAD(pestle_module_specialize_values(t->module, NULL, 1, &module));
  BAD(pestle_module_specialize_values(t->module, &none, 1, &module));
  BAD(pestle_module_specialize_values(t->module, &none, 1, NULL));
}
static void call_module_value_argument_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_module_value_argument_count(NULL), 0);
}
static void call_module_value_argument(things_t* t) {
  assert_true(pestle_module_value_argument(NULL, 0) == SIZE_MAX);
  assert_true(pestle_module_value_argument(t->module, 0) == SIZE_MAX);
}
static void call_module_print(things_t* t) {
  char* out;
  size_t size;
  BAD(pestle_module_print(NULL, 0, &out, &size));
  assert_null(out);
  BAD(pestle_module_print(t->module, 0, NULL, &size));
  BAD(pestle_module_print(t->module, 0, &out, NULL));
}
static void call_module_parse(things_t* t) {
  pestle_module_t* module;
  size_t size = sizeof(text) - 1;
  BAD(pestle_module_parse(NULL, text, size, "x.mlir", &module));
  assert_null(module);
  BAD(pestle_module_parse(t->context, NULL, size, "x.mlir", &module));
  BAD(pestle_module_parse(t->context, text, size, "x.mlir", NULL));
  assert_ok(pestle_module_parse(t->context, text, size, NULL, &module));
  pestle_module_release(module);
}
static void call_module_serialize(things_t* t) {
  void* data;
  size_t size;
  BAD(pestle_module_serialize(NULL, &data, &size));
  assert_null(data);
  BAD(pestle_module_serialize(t->module, NULL, &size));
  BAD(pestle_module_serialize(t->module, &data, NULL));
}
static void call_module_deserialize(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_module_deserialize(NULL, text, 8, &module));
  BAD(pestle_module_deserialize(t->context, NULL, 8, &module));
  BAD(pestle_module_deserialize(t->context, text, 8, NULL));
}
static void call_module_signature(things_t* t) {
  uint64_t hash[2];
  BAD(pestle_module_signature(NULL, hash));
  BAD(pestle_module_signature(t->module, NULL));
}
static void call_builder_make(things_t* t) {
  (void)t;
  pestle_builder_t b = pestle_builder_make(NULL);
  pestle_value_t* out;
  BAD(pestle_op_abs(&b, t->value, &out));
}
static void call_region_create(things_t* t) {
  pestle_region_t* region;
  pestle_block_t* block;
  BAD(pestle_region_create(NULL, &f32x4, 1, &region, &block));
  assert_null(region);
  BAD(pestle_region_create(t->open, NULL, 1, &region, &block));
  BAD(pestle_region_create(t->open, &f32x4, 1, NULL, &block));
  BAD(pestle_region_create(t->open, &f32x4, 1, &region, NULL));
}
static void call_block_argument(things_t* t) {
  (void)t;
  assert_null(pestle_block_argument(NULL, 0));
}

// --- Import and compilation ---

static void call_import_file(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_import_file(NULL, "x.onnx", NULL, &module));
  assert_null(module);
  BAD(pestle_import_file(t->context, NULL, NULL, &module));
  BAD(pestle_import_file(t->context, "x.onnx", NULL, NULL));
}
static void call_import_bytes(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_import_bytes(NULL, "x", 1, NULL, NULL, &module));
  assert_null(module);
  BAD(pestle_import_bytes(t->context, NULL, 1, NULL, NULL, &module));
  BAD(pestle_import_bytes(t->context, "x", 1, NULL, NULL, NULL));
}
static void call_import_onnx_file(things_t* t) {
  pestle_module_t* module;
  BAD(pestle_import_onnx_file(NULL, "x.onnx", NULL, &module));
  assert_null(module);
  BAD(pestle_import_onnx_file(t->context, NULL, NULL, &module));
  BAD(pestle_import_onnx_file(t->context, "x.onnx", NULL, NULL));
}
static pestle_status_t visit_input(void* user,
                                   const pestle_model_input_t* input) {
  (void)user, (void)input;
  return NULL;
}
static void call_import_visit_inputs(things_t* t) {
  BAD(pestle_import_visit_inputs(NULL, "x.onnx", visit_input, NULL));
  BAD(pestle_import_visit_inputs(t->context, NULL, visit_input, NULL));
  BAD(pestle_import_visit_inputs(t->context, "x.onnx", NULL, NULL));
}
static void call_model_info_create(things_t* t) {
  const pestle_model_info_t* info;
  BAD(pestle_model_info_create(NULL, "x.onnx", NULL, &info));
  assert_null(info);
  BAD(pestle_model_info_create(t->context, NULL, NULL, &info));
  BAD(pestle_model_info_create(t->context, "x.onnx", NULL, NULL));
}
static void call_model_info_release(things_t* t) {
  (void)t;
  pestle_model_info_release(NULL);
}
static void call_model_info_find_input(things_t* t) {
  (void)t;
  pestle_model_info_t none = {.struct_size = sizeof(none)};
  assert_true(pestle_model_info_find_input(NULL, "x") == SIZE_MAX);
  assert_true(pestle_model_info_find_input(&none, NULL) == SIZE_MAX);
  assert_true(pestle_model_info_find_input(&none, "x") == SIZE_MAX);
}
static void call_model_info_find_output(things_t* t) {
  (void)t;
  pestle_model_info_t none = {.struct_size = sizeof(none)};
  assert_true(pestle_model_info_find_output(NULL, "x") == SIZE_MAX);
  assert_true(pestle_model_info_find_output(&none, NULL) == SIZE_MAX);
  assert_true(pestle_model_info_find_output(&none, "x") == SIZE_MAX);
}
static void call_import_onnx(things_t* t) {
  pestle_module_t* module;
  pestle_context_t* c = t->context;
  BAD(pestle_import_onnx(NULL, text, 4, false, NULL, NULL, &module));
  assert_null(module);
  BAD(pestle_import_onnx(c, NULL, 4, false, NULL, NULL, &module));
  BAD(pestle_import_onnx(c, NULL, 4, true, NULL, NULL, &module));
  BAD(pestle_import_onnx(c, text, 4, false, NULL, NULL, NULL));
  pestle_import_options_t options = {.struct_size = sizeof(options)};
  options.dim_count = 1;
  BAD(pestle_import_onnx(c, text, 4, false, NULL, &options, &module));
  options = (pestle_import_options_t){.struct_size = 0};
  BAD(pestle_import_onnx(c, text, 4, false, NULL, &options, &module));
  options = (pestle_import_options_t){.struct_size = sizeof(options),
                                      .control = short_control(0)};
  BAD(pestle_import_onnx(c, text, 4, false, NULL, &options, &module));
  free_controls();
  options = (pestle_import_options_t){.struct_size = sizeof(options)};
  options.shape_count = 1;
  BAD(pestle_import_onnx(c, text, 4, false, NULL, &options, &module));
  options = (pestle_import_options_t){.struct_size = sizeof(options)};
  options.const_count = 1;
  BAD(pestle_import_onnx(c, text, 4, false, NULL, &options, &module));
}
static void call_read_onnx_tensor(things_t* t) {
  pestle_elements_t elements;
  char name[8];
  pestle_context_t* c = t->context;
  BAD(pestle_read_onnx_tensor(NULL, text, 4, &elements, name, 8));
  BAD(pestle_read_onnx_tensor(c, NULL, 4, &elements, name, 8));
  BAD(pestle_read_onnx_tensor(c, text, 4, NULL, name, 8));
  BAD(pestle_read_onnx_tensor(c, text, 4, &elements, NULL, 8));
}
static void compile_numbers(things_t* t) {
  pestle_plan_t* plan;
  const pestle_compile_options_t plain = {.struct_size = sizeof(plain)};
  pestle_compile_options_t options = plain;
  options.numerics = (pestle_numerics_t)77;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options = plain;
  options.stop_after = -5;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  BAD(pestle_optimize(t->context, t->module, t->device, &options));
  options = plain;
  options.fold_limit = -1;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options = plain;
  options.dump_stages = 1u << PESTLE_STAGE_COUNT;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
}
static void call_compile(things_t* t) {
  pestle_plan_t* plan;
  BAD(pestle_compile(NULL, t->module, t->device, NULL, &plan));
  BAD(pestle_compile(t->context, NULL, t->device, NULL, &plan));
  BAD(pestle_compile(t->context, t->module, t->device, NULL, NULL));
  pestle_compile_options_t options = {0};
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options = (pestle_compile_options_t){.struct_size = sizeof(options)};
  options.frozen = true;  // without a lock
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options.lock_path = "no.lock";
  options.tune_seconds = 1;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options.frozen = false;
  options.tune_seconds = -1;
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  compile_numbers(t);
  options = (pestle_compile_options_t){.struct_size = sizeof(options)};
  options.control = short_control(0);
  BAD(pestle_compile(t->context, t->module, t->device, &options, &plan));
  options.control = short_control(sizeof(size_t));
  options.no_cache = true;
  assert_ok(pestle_compile(t->context, t->module, t->device, &options, &plan));
  pestle_plan_release(plan);
  free_controls();
}
static void call_partition(things_t* t) {
  pestle_compile_options_t options = {0};
  BAD(pestle_partition(NULL, t->module, t->device, NULL));
  BAD(pestle_partition(t->context, NULL, t->device, NULL));
  BAD(pestle_partition(t->context, t->module, t->device, &options));
}
static void call_module_set_mesh(things_t* t) {
  BAD(pestle_module_set_mesh(NULL, "a=2"));
  BAD(pestle_module_set_mesh(t->module, NULL));
  BAD(pestle_module_set_mesh(t->module, "a=0"));
}
static void call_module_shard(things_t* t) {
  size_t count = 1;
  BAD(pestle_module_shard(NULL, "x=-", &count));
  assert_int_equal(count, 0);
  BAD(pestle_module_shard(t->module, NULL, NULL));
  BAD(pestle_module_shard(t->module, "x=-", NULL));
}
static void call_function_part(things_t* t) {
  int64_t starts[PESTLE_MAX_RANK];
  bool first;
  pestle_function_t* f = pestle_module_entry(t->module);
  BAD(pestle_function_part(NULL, false, 0, 0, starts, &first));
  BAD(pestle_function_part(f, false, 0, 0, NULL, &first));
  BAD(pestle_function_part(f, false, 0, 0, starts, NULL));
  BAD(pestle_function_part(f, false, 1000, 0, starts, &first));
  BAD(pestle_function_part(f, false, 0, -1, starts, &first));
}
static void call_module_processes(things_t* t) {
  (void)t;
  assert_int_equal(pestle_module_processes(NULL), 0);
}
static void call_optimize(things_t* t) {
  pestle_compile_options_t options = {0};
  BAD(pestle_optimize(NULL, t->module, t->device, NULL));
  BAD(pestle_optimize(t->context, NULL, t->device, NULL));
  BAD(pestle_optimize(t->context, t->module, t->device, &options));
}

// --- Ops ---

// Every operand in turn is NULL, the others are there.
#define CALL_1(op) BAD(pestle_op_##op(&t->builder, NULL, &out));
#define CALL_2(op)                                        \
  BAD(pestle_op_##op(&t->builder, NULL, t->value, &out)); \
  BAD(pestle_op_##op(&t->builder, t->value, NULL, &out));
#define CALL_3(op)                                                  \
  BAD(pestle_op_##op(&t->builder, NULL, t->value, t->value, &out)); \
  BAD(pestle_op_##op(&t->builder, t->value, NULL, t->value, &out)); \
  BAD(pestle_op_##op(&t->builder, t->value, t->value, NULL, &out));
#define LOST_1(op) BAD(pestle_op_##op(NULL, t->value, &out));
#define LOST_2(op) BAD(pestle_op_##op(NULL, t->value, t->value, &out));
#define LOST_3(op) \
  BAD(pestle_op_##op(NULL, t->value, t->value, t->value, &out));
#define PESTLE_SCALAR(NAME, op, mlir, n, ...) \
  static void call_op_##op(things_t* t) {     \
    pestle_value_t* out;                      \
    LOST_##n(op) CALL_##n(op)                 \
  }
#include "pestle/scalar.def"

// All that an op takes is NULL, first with and then without a builder. An op
// without operands has nothing that it could miss but its attributes, and these two
// have none.
static bool takes_nothing(pestle_op_t op) {
  return op == PESTLE_OP_PARTITION_ID || op == PESTLE_OP_REPLICA_ID;
}
#define NONE_0
#define NONE_1 , NULL
#define NONE_2 , NULL, NULL
#define NONE_3 , NULL, NULL, NULL
#define NONE_V , NULL, 1
#define NO_TYPE_INFER
#define NO_TYPE_TYPED , f32x4
#define NO_TYPE_TYPES , NULL, 1
#define NO_RESULT_0
#define NO_RESULT_1 , NULL
#define NO_RESULT_V , NULL, 0
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  static void call_op_##op(things_t* t) {                                      \
    if (!takes_nothing(PESTLE_OP_##NAME)) {                                    \
      BAD(pestle_op_##op(                                                      \
          &t->builder NONE_##OPERANDS,                                         \
          NULL NONE_##REGIONS NO_TYPE_##TYPE NO_RESULT_##RESULTS));            \
    }                                                                          \
    BAD(pestle_op_##op(                                                        \
        NULL NONE_##OPERANDS,                                                  \
        NULL NONE_##REGIONS NO_TYPE_##TYPE NO_RESULT_##RESULTS));              \
  }
#include "pestle/ops.def"

// --- Arrays ---

static void call_device_context(things_t* t) {
  assert_null(pestle_device_context(NULL));
  assert_ptr_equal(pestle_device_context(t->device), t->context);
}
static void call_array_retain(things_t* t) {
  (void)t;
  pestle_array_retain(NULL);
}
static void call_array_release(things_t* t) {
  (void)t;
  pestle_array_release(NULL);
}
static void call_array_type_of(things_t* t) {
  (void)t;
  assert_null(pestle_array_type_of(NULL));
}
static void call_array_type(things_t* t) {
  (void)t;
  assert_int_equal(pestle_array_type(NULL).dtype, PESTLE_NONE);
}
static void call_array_device(things_t* t) {
  (void)t;
  assert_null(pestle_array_device(NULL));
}
static void call_array_state(things_t* t) {
  (void)t;
  assert_int_equal(pestle_array_state(NULL), PESTLE_ARRAY_FAILED);
}
static void call_array_is_ready(things_t* t) {
  (void)t;
  assert_false(pestle_array_is_ready(NULL));
}
static void call_array_is_view(things_t* t) {
  (void)t;
  assert_false(pestle_array_is_view(NULL));
}
static void call_array_storage(things_t* t) {
  (void)t;
  assert_null(pestle_array_storage(NULL));
}
static void call_array_stats(things_t* t) {
  pestle_array_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_array_stats(NULL, &stats);
  pestle_array_stats(t->context, NULL);
}
static void call_array_from_data(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_from_data(NULL, &f32x4, "", &out));
  BAD(pestle_array_from_data(t->device, NULL, "", &out));
  BAD(pestle_array_from_data(t->device, &f32x4, NULL, &out));
  BAD(pestle_array_from_data(t->device, &f32x4, "", NULL));
}
static void call_array_from_buffer(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_from_buffer(NULL, &f32x4, 0, NULL, &out));
  BAD(pestle_array_from_buffer(t->buffer, NULL, 0, NULL, &out));
  BAD(pestle_array_from_buffer(t->buffer, &f32x4, 0, NULL, NULL));
}
static void call_array_wrap(things_t* t) {
  pestle_array_t* out;
  pestle_tensor_t tensor = {.data = NULL};
  BAD(pestle_array_wrap(NULL, &tensor, NULL, &out));
  BAD(pestle_array_wrap(t->device, NULL, NULL, &out));
  BAD(pestle_array_wrap(t->device, &tensor, NULL, NULL));
}
static void call_array_empty(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_empty(NULL, &f32x4, &out));
  BAD(pestle_array_empty(t->device, NULL, &out));
  BAD(pestle_array_empty(t->device, &f32x4, NULL));
}
static void call_array_full(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_full(NULL, &f32x4, "", &out));
  BAD(pestle_array_full(t->device, NULL, "", &out));
  BAD(pestle_array_full(t->device, &f32x4, NULL, &out));
  BAD(pestle_array_full(t->device, &f32x4, "", NULL));
}
static void call_array_scalar(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_scalar(NULL, PESTLE_F32, 1, &out));
  BAD(pestle_array_scalar(t->device, PESTLE_F32, 1, NULL));
}
static void call_array_apply(things_t* t) {
  pestle_array_t* out;
  pestle_array_op_t op = {
      .struct_size = sizeof(op), .op = PESTLE_OP_NEGATE, .operand_count = 1};
  BAD(pestle_array_apply(NULL, &out, 1));
  BAD(pestle_array_apply(&op, &out, 1));
  op.operands = &t->array;
  BAD(pestle_array_apply(&op, NULL, 1));
  BAD(pestle_array_apply(&op, NULL, 0));
  op.body_count = 1;
  BAD(pestle_array_apply(&op, &out, 1));
}
static void call_array_fold(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_fold(PESTLE_OP_ADD, NULL, PESTLE_I64S(0), &out));
  BAD(pestle_array_fold(PESTLE_OP_ADD, t->array, (pestle_i64s_t){NULL, 1},
                        &out));
  BAD(pestle_array_fold(PESTLE_OP_ADD, t->array, PESTLE_I64S(0), NULL));
}
static void call_array_eval(things_t* t) {
  (void)t;
  BAD(pestle_array_eval(NULL, 1, NULL));
}
static void call_array_eval_async(things_t* t) {
  (void)t;
  BAD(pestle_array_eval_async(NULL, 1, NULL));
}
static void call_array_eval_quick(things_t* t) {
  bool done;
  (void)t;
  BAD(pestle_array_eval_quick(NULL, 1, 1, &done));
  BAD(pestle_array_eval_quick(NULL, 0, 1, NULL));
}
static void call_array_wait(things_t* t) {
  (void)t;
  BAD(pestle_array_wait(NULL));
}
static void call_array_data(things_t* t) {
  pestle_tensor_t tensor;
  BAD(pestle_array_data(NULL, &tensor));
  BAD(pestle_array_data(t->array, NULL));
}
static void call_array_read(things_t* t) {
  BAD(pestle_array_read(NULL, &(float[4]){0}, 16));
  BAD(pestle_array_read(t->array, NULL, 16));
}
static void call_array_copy_to(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_copy_to(NULL, t->device, &out));
  BAD(pestle_array_copy_to(t->array, NULL, &out));
  BAD(pestle_array_copy_to(t->array, t->device, NULL));
}
static void call_array_base(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_base(NULL, &out));
  BAD(pestle_array_base(t->array, NULL));
}

static void call_capture_begin(things_t* t) {
  pestle_capture_t* capture;
  pestle_array_t* out;
  BAD(pestle_capture_begin(NULL, &f32x4, 1, &capture, &out));
  BAD(pestle_capture_begin(t->device, NULL, 1, &capture, &out));
  BAD(pestle_capture_begin(t->device, &f32x4, 1, NULL, &out));
  BAD(pestle_capture_begin(t->device, &f32x4, 1, &capture, NULL));
}
static void call_capture_end(things_t* t) {
  pestle_capture_t* capture;
  pestle_module_t* module;
  BAD(pestle_capture_end(NULL, &t->array, 1, &module));
  assert_ok(pestle_capture_begin(t->device, NULL, 0, &capture, NULL));
  BAD(pestle_capture_end(capture, NULL, 1, &module));
  BAD(pestle_capture_end(capture, &t->array, 1, NULL));
  BAD(pestle_capture_end(capture, &(pestle_array_t*){NULL}, 1, &module));
  pestle_capture_release(capture);
}
static void call_array_inline(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_inline(NULL, &t->array, 1, &out, 1));
  BAD(pestle_array_inline(t->module, NULL, 1, &out, 1));
  BAD(pestle_array_inline(t->module, &(pestle_array_t*){NULL}, 1, &out, 1));
  BAD(pestle_array_inline(t->module, &t->array, 1, NULL, 1));
}
static void call_array_branch(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_branch(NULL, 1, &t->array, 1, &out, 1));
  BAD(pestle_array_branch(&t->module, 0, &t->array, 1, &out, 1));
  BAD(pestle_array_branch(&t->module, 1, NULL, 1, &out, 1));
  BAD(pestle_array_branch(&t->module, 1, &(pestle_array_t*){NULL}, 1, &out, 1));
  BAD(pestle_array_branch(&t->module, 1, &t->array, 1, NULL, 1));
}
static void call_capture_bind(things_t* t) {
  pestle_capture_t* capture;
  BAD(pestle_capture_bind(NULL, &t->array, 1));
  assert_ok(pestle_capture_begin(t->device, NULL, 0, &capture, NULL));
  BAD(pestle_capture_bind(capture, NULL, 1));
  BAD(pestle_capture_bind(capture, &(pestle_array_t*){NULL}, 1));
  pestle_capture_release(capture);
}
static void call_capture_hidden_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_capture_hidden_count(NULL), 0);
}
static void call_capture_hidden(things_t* t) {
  (void)t;
  assert_null(pestle_capture_hidden(NULL, 0));
}
static void call_capture_release(things_t* t) {
  (void)t;
  pestle_capture_release(NULL);
}
static void call_dtype_promote(things_t* t) {
  (void)t;
  BAD(pestle_dtype_promote(PESTLE_F32, PESTLE_F32, NULL));
}
static void call_dtype_of_number(things_t* t) {
  (void)t;
  BAD(pestle_dtype_of_number(PESTLE_F32, PESTLE_KIND_FLOAT, NULL));
}
static void call_numeric_cast(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_numeric_cast(NULL, PESTLE_F32, &out));
  BAD(pestle_numeric_cast(t->array, PESTLE_F32, NULL));
}
static void call_numeric_apply(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_numeric_apply(PESTLE_NUMERIC_ABS, NULL, 1, &out));
  BAD(pestle_numeric_apply(PESTLE_NUMERIC_ABS, &(pestle_array_t*){NULL}, 1,
                           &out));
  BAD(pestle_numeric_apply(PESTLE_NUMERIC_ABS, &t->array, 1, NULL));
  BAD(pestle_numeric_apply(PESTLE_NUMERIC_ABS, &t->array, 2, &out));
  BAD(pestle_numeric_apply(PESTLE_NUMERIC_COUNT, &t->array, 1, &out));
}
static void call_numeric_where(things_t* t) {
  pestle_array_t *out, *x = t->array;
  BAD(pestle_numeric_where(NULL, x, x, &out));
  BAD(pestle_numeric_where(x, NULL, x, &out));
  BAD(pestle_numeric_where(x, x, NULL, &out));
  BAD(pestle_numeric_where(x, x, x, NULL));
}
static void call_jit_create(things_t* t) {
  pestle_jit_t* jit;
  BAD(pestle_jit_create(NULL, t->module, NULL, NULL, &jit));
  BAD(pestle_jit_create(t->device, NULL, NULL, NULL, &jit));
  BAD(pestle_jit_create(t->device, t->module, NULL, NULL, NULL));
}
static void call_jit_retain(things_t* t) {
  (void)t;
  pestle_jit_retain(NULL);
}
static void call_jit_release(things_t* t) {
  (void)t;
  pestle_jit_release(NULL);
}
static void call_jit_donate(things_t* t) {
  uint32_t index = 0;
  pestle_jit_t* jit;
  BAD(pestle_jit_donate(NULL, &index, 1));
  assert_ok(pestle_jit_create(t->device, t->module, NULL, NULL, &jit));
  BAD(pestle_jit_donate(jit, NULL, 1));
  pestle_jit_release(jit);
}
static void call_jit_miss_count(things_t* t) {
  (void)t;
  assert_int_equal(pestle_jit_miss_count(NULL), 0);
}
static void call_jit_explain_miss(things_t* t) {
  char room[8];
  pestle_jit_t* jit;
  BAD(pestle_jit_explain_miss(NULL, 0, room, sizeof(room)));
  assert_ok(pestle_jit_create(t->device, t->module, NULL, NULL, &jit));
  BAD(pestle_jit_explain_miss(jit, 0, NULL, 1));
  BAD(pestle_jit_explain_miss(jit, 0, room, 0));
  pestle_jit_release(jit);
}
static void call_array_set_control(things_t* t) {
  (void)t;
  BAD(pestle_array_set_control(NULL, NULL, NULL));
}
static void call_array_set_site(things_t* t) {
  BAD(pestle_array_set_site(NULL, "here"));
  BAD(pestle_array_set_site(t->array, NULL));
}
static void call_array_failed(things_t* t) {
  pestle_array_t* array;
  pestle_type_t type = {PESTLE_F32, 0, {0}};
  BAD(pestle_array_failed(NULL, &type, NULL, &array));
  BAD(pestle_array_failed(t->device, &type, NULL, &array));
}
static void call_jit_call(things_t* t) {
  pestle_jit_t* jit;
  pestle_array_t* out;
  BAD(pestle_jit_call(NULL, &t->array, 1, NULL, &out, 1));
  assert_ok(pestle_jit_create(t->device, t->module, NULL, NULL, &jit));
  BAD(pestle_jit_call(jit, NULL, 1, NULL, &out, 1));
  BAD(pestle_jit_call(jit, &(pestle_array_t*){NULL}, 1, NULL, &out, 1));
  BAD(pestle_jit_call(jit, &t->array, 1, NULL, NULL, 1));
  pestle_jit_release(jit);
}

// --- DLPack ---

// Nothing is read of a tensor that is not there; what this one says is not either.
static struct DLManagedTensorVersioned* a_tensor(void) {
  static int64_t nothing[32];
  return (struct DLManagedTensorVersioned*)(void*)nothing;
}
static struct DLManagedTensor* an_old_tensor(void) {
  return (struct DLManagedTensor*)(void*)a_tensor();
}
static void call_array_import(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_import(NULL, a_tensor(), NULL, &out));
  BAD(pestle_array_import(t->context, NULL, NULL, &out));
  BAD(pestle_array_import(t->context, a_tensor(), NULL, NULL));
}
static void call_array_import_legacy(things_t* t) {
  pestle_array_t* out;
  BAD(pestle_array_import_legacy(NULL, an_old_tensor(), NULL, &out));
  BAD(pestle_array_import_legacy(t->context, NULL, NULL, &out));
  BAD(pestle_array_import_legacy(t->context, an_old_tensor(), NULL, NULL));
}
static void call_buffer_import(things_t* t) {
  pestle_layout_t layout;
  pestle_buffer_t* out;
  BAD(pestle_buffer_import(NULL, a_tensor(), NULL, &layout, &out));
  BAD(pestle_buffer_import(t->context, NULL, NULL, &layout, &out));
  BAD(pestle_buffer_import(t->context, a_tensor(), NULL, NULL, &out));
  BAD(pestle_buffer_import(t->context, a_tensor(), NULL, &layout, NULL));
}
static void call_array_export(things_t* t) {
  struct DLManagedTensorVersioned* out;
  BAD(pestle_array_export(NULL, NULL, &out));
  BAD(pestle_array_export(t->array, NULL, NULL));
}
static void call_array_export_legacy(things_t* t) {
  struct DLManagedTensor* out;
  BAD(pestle_array_export_legacy(NULL, NULL, &out));
  BAD(pestle_array_export_legacy(t->array, NULL, NULL));
}
static void call_buffer_export(things_t* t) {
  pestle_layout_t layout = {.dtype = PESTLE_U8};
  struct DLManagedTensorVersioned* out;
  BAD(pestle_buffer_export(NULL, &layout, 0, NULL, &out));
  BAD(pestle_buffer_export(t->buffer, NULL, 0, NULL, &out));
  BAD(pestle_buffer_export(t->buffer, &layout, 0, NULL, NULL));
}
static void call_array_borrow(things_t* t) {
  pestle_tensor_t tensor;
  BAD(pestle_array_borrow(NULL, &tensor));
  BAD(pestle_array_borrow(t->array, NULL));
}
static void call_dlpack_allocate(things_t* t) {
  pestle_tensor_t like = {.data = NULL};
  struct DLManagedTensorVersioned* out;
  BAD(pestle_dlpack_allocate(NULL, &like, &out));
  BAD(pestle_dlpack_allocate(t->context, NULL, &out));
  BAD(pestle_dlpack_allocate(t->context, &like, NULL));
}
static void call_dlpack_device(things_t* t) {
  (void)t;
  assert_int_equal(pestle_dlpack_device(NULL).device_type, 0);
}
static void call_dlpack_find_device(things_t* t) {
  pestle_dl_device_t cpu = {PESTLE_DEVICE_CPU, 0};
  pestle_device_t* out;
  BAD(pestle_dlpack_find_device(NULL, cpu, &out));
  BAD(pestle_dlpack_find_device(t->context, cpu, NULL));
}
static void call_stream_handle(things_t* t) {
  void* out;
  BAD(pestle_stream_handle(NULL, &out));
  BAD(pestle_stream_handle(t->stream, NULL));
}

#define ARRAYS_1 NULL
#define ARRAYS_2 t->array, NULL
#define ARRAYS_3 t->array, t->array, NULL
#define ALL_1 t->array
#define ALL_2 t->array, t->array
#define ALL_3 t->array, t->array, t->array
#define PESTLE_SCALAR(NAME, op, mlir, n, ...) \
  static void call_array_##op(things_t* t) {  \
    pestle_array_t* out;                      \
    (void)t;                                  \
    BAD(pestle_array_##op(ARRAYS_##n, &out)); \
    BAD(pestle_array_##op(ALL_##n, NULL));    \
  }
#include "pestle/scalar.def"

#define NO_ARRAYS_0 NULL
#define NO_ARRAYS_1 NULL
#define NO_ARRAYS_2 NULL, NULL
#define NO_ARRAYS_3 NULL, NULL, NULL
#define NO_ARRAYS_V NULL, 1
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  static void call_array_##op(things_t* t) {                                   \
    (void)t;                                                                   \
    BAD(pestle_array_##op(                                                     \
        NO_ARRAYS_##OPERANDS,                                                  \
        NULL NONE_##REGIONS NO_TYPE_##TYPE NO_RESULT_##RESULTS));              \
  }
#include "pestle/ops.def"

// --- The list ---

typedef struct row_t {
  const char* name;
  void (*call)(things_t* t);
} row_t;

#define ROW(name) {"pestle_" #name, call_##name},
// --- Ops of the caller's own ---

static void call_context_register_op(things_t* t) {
  pestle_custom_op_t op = {.struct_size = sizeof(op), .name = "user.op"};
  BAD(pestle_context_register_op(NULL, &op));
  BAD(pestle_context_register_op(t->context, NULL));
  BAD(pestle_context_register_op(t->context, &op));
  op.name = NULL;
  BAD(pestle_context_register_op(t->context, &op));
  op.struct_size = 0;
  BAD(pestle_context_register_op(t->context, &op));
}
static void call_context_find_op(things_t* t) {
  assert_null(pestle_context_find_op(NULL, "user.op"));
  assert_null(pestle_context_find_op(t->context, NULL));
  assert_null(pestle_context_find_op(t->context, "user.op"));
}
static void call_context_op_name(things_t* t) {
  assert_null(pestle_context_op_name(NULL, 0));
  assert_null(pestle_context_op_name(t->context, 0));
}
static void call_context_load_extension(things_t* t) {
  BAD(pestle_context_load_extension(NULL, "x.so"));
  BAD(pestle_context_load_extension(t->context, NULL));
  BAD(pestle_context_load_extension(t->context, ""));
}
static void call_op_custom(things_t* t) {
  pestle_value_t* out;
  BAD(pestle_op_custom(NULL, "user.op", &t->value, 1, NULL, 0, &out, 1));
  BAD(pestle_op_custom(&t->builder, NULL, &t->value, 1, NULL, 0, &out, 1));
  BAD(pestle_op_custom(&t->builder, "user.op", NULL, 1, NULL, 0, &out, 1));
  BAD(pestle_op_custom(&t->builder, "user.op", &t->value, 1, NULL, 1, &out, 1));
  BAD(pestle_op_custom(&t->builder, "user.op", &t->value, 1, NULL, 0, NULL, 1));
}
static void call_builder_inline(things_t* t) {
  pestle_value_t* out;
  BAD(pestle_builder_inline(NULL, t->module, &t->value, 1, &out, 1));
  BAD(pestle_builder_inline(&t->builder, NULL, &t->value, 1, &out, 1));
  BAD(pestle_builder_inline(&t->builder, t->module, NULL, 1, &out, 1));
  BAD(pestle_builder_inline(&t->builder, t->module, &t->value, 0, &out, 1));
  BAD(pestle_builder_inline(&t->builder, t->module, &t->value, 1, NULL, 1));
  BAD(pestle_builder_inline(&t->builder, t->module, &t->value, 1, &out, 0));
}
static void call_array_custom(things_t* t) {
  pestle_array_t *out, *none = NULL;
  BAD(pestle_array_custom(NULL, "user.op", &t->array, 1, NULL, 0, &out, 1));
  BAD(pestle_array_custom(t->context, NULL, &t->array, 1, NULL, 0, &out, 1));
  BAD(pestle_array_custom(t->context, "user.op", NULL, 1, NULL, 0, &out, 1));
  BAD(pestle_array_custom(t->context, "user.op", &none, 1, NULL, 0, &out, 1));
  BAD(pestle_array_custom(t->context, "user.op", &t->array, 1, NULL, 0, NULL,
                          1));
}
static void call_custom_bool(things_t* t) {
  (void)t;
  assert_false(pestle_custom_bool(NULL, "a"));
}
static void call_custom_i64(things_t* t) {
  (void)t;
  assert_int_equal(pestle_custom_i64(NULL, "a"), 0);
}
static void call_custom_f64(things_t* t) {
  (void)t;
  assert_true(pestle_custom_f64(NULL, "a") == 0);
}
static void call_custom_str(things_t* t) {
  (void)t;
  assert_string_equal(pestle_custom_str(NULL, "a"), "");
}
static void call_custom_i64s(things_t* t) {
  (void)t;
  assert_int_equal(pestle_custom_i64s(NULL, "a").count, 0);
}
static void call_custom_f64s(things_t* t) {
  (void)t;
  assert_int_equal(pestle_custom_f64s(NULL, "a").count, 0);
}
static void call_custom_attr_at(things_t* t) {
  (void)t;
  assert_null(pestle_custom_attr_at(NULL, 0));
}

static const row_t rows[] = {
#define PESTLE_SCALAR(NAME, op, ...) ROW(op_##op) ROW(array_##op)
#include "pestle/scalar.def"
#define PESTLE_OP_BEGIN(NAME, op, ...) ROW(op_##op) ROW(array_##op)
#include "pestle/ops.def"
    // clang-format off
    ROW(tensor_byte_size) ROW(tensor_init) ROW(tensor_deinit) ROW(tensor_fill)
    ROW(tensor_format) ROW(op_linear)
    ROW(device_context) ROW(array_retain) ROW(array_release) ROW(array_type_of) ROW(array_type)
    ROW(array_device) ROW(array_state) ROW(array_is_ready) ROW(array_is_view)
    ROW(array_storage) ROW(array_stats) ROW(array_from_data)
    ROW(array_from_buffer) ROW(array_wrap) ROW(array_empty) ROW(array_full)
    ROW(array_scalar) ROW(array_apply) ROW(array_fold) ROW(array_eval)
    ROW(array_eval_async) ROW(array_eval_quick) ROW(array_wait) ROW(array_data) ROW(array_read)
    ROW(array_copy_to) ROW(array_base) ROW(capture_begin) ROW(capture_end)
    ROW(array_inline) ROW(array_branch) ROW(capture_bind) ROW(dtype_promote) ROW(dtype_of_number)
    ROW(numeric_cast) ROW(numeric_apply) ROW(numeric_where)
    ROW(capture_hidden_count) ROW(capture_hidden) ROW(capture_release)
    ROW(jit_create) ROW(jit_retain) ROW(jit_release) ROW(jit_call)
    ROW(jit_donate) ROW(jit_miss_count) ROW(jit_explain_miss) ROW(array_failed) ROW(array_set_site) ROW(array_set_control)
    ROW(array_import) ROW(array_import_legacy) ROW(buffer_import)
    ROW(array_export) ROW(array_export_legacy) ROW(buffer_export)
    ROW(array_borrow) ROW(dlpack_allocate) ROW(dlpack_device)
    ROW(dlpack_find_device) ROW(stream_handle)
    ROW(world_create) ROW(world_create_local) ROW(world_retain) ROW(world_release) ROW(world_prepare) ROW(world_rank)
    ROW(partition) ROW(module_set_mesh) ROW(module_shard) ROW(function_part)
    ROW(module_processes)
    ROW(world_size) ROW(world_abort) ROW(world_status) ROW(world_bytes)
    ROW(allocator_system) ROW(version) ROW(build_id) ROW(build_id_u64)
    ROW(status_make) ROW(status_make_v) ROW(status_annotate) ROW(status_join)
    ROW(status_release) ROW(status_code) ROW(status_message) ROW(status_file)
    ROW(status_line) ROW(status_note) ROW(status_code_name)
    ROW(status_code_text) ROW(status_format) ROW(dtype_from_name)
    ROW(dtype_from_dlpack) ROW(dtype_to_dlpack) ROW(op_info) ROW(pass_name)
    ROW(pass_summary) ROW(context_create) ROW(context_retain)
    ROW(context_release) ROW(context_allocator) ROW(context_is_strict)
    ROW(context_threads) ROW(context_cache_dir) ROW(context_free)
    ROW(context_log) ROW(context_load_backends) ROW(context_backend_count)
    ROW(context_load_all) ROW(context_load_best) ROW(context_custom_call)
    ROW(context_register_custom_call) ROW(context_register_op) ROW(context_find_op)
    ROW(context_op_name) ROW(context_load_extension) ROW(op_custom) ROW(array_custom)
    ROW(builder_inline)
    ROW(custom_bool) ROW(custom_i64) ROW(custom_f64) ROW(custom_str) ROW(custom_i64s)
    ROW(custom_f64s) ROW(custom_attr_at) ROW(context_add_backend)
    ROW(context_backend) ROW(context_device_count) ROW(context_is_available)
    ROW(context_search_path_count) ROW(context_search_path)
    ROW(context_set_search_paths) ROW(device_index) ROW(device_type)
    ROW(device_property)
    ROW(device_memory_get) ROW(device_memory_set) ROW(context_memory_get)
    ROW(context_memory_set)
    ROW(context_backend_info) ROW(context_load_backend) ROW(context_device)
    ROW(context_target) ROW(device_is_target)
    ROW(context_fallback)
    ROW(context_trace_begin) ROW(context_trace_end)
    ROW(context_parallel_for) ROW(device_name) ROW(device_dl)
    ROW(device_backend) ROW(device_library) ROW(device_backend_id) ROW(device_caps)
    ROW(device_memory_stats) ROW(buffer_create) ROW(buffer_retain)
    ROW(buffer_wrap) ROW(buffer_flags) ROW(buffer_extents) ROW(buffer_is_ready)
    ROW(buffer_wait) ROW(event_record_buffer)
    ROW(buffer_release) ROW(buffer_data) ROW(buffer_size) ROW(buffer_device)
    ROW(buffer_write) ROW(buffer_read) ROW(stream_create) ROW(stream_release)
    ROW(stream_synchronize) ROW(event_create) ROW(event_release)
    ROW(event_record) ROW(event_wait) ROW(event_is_signalled) ROW(event_status) ROW(event_on_signalled) ROW(buffer_host_data) ROW(buffer_copy) ROW(fence_create) ROW(fence_release) ROW(fence_update) ROW(fence_wait) ROW(tensor_read)
    ROW(plan_create) ROW(plan_retain) ROW(plan_release) ROW(plan_data)
    ROW(plan_save) ROW(plan_load) ROW(constant_get) ROW(constant_get_bytes) ROW(constant_release)
    ROW(constant_data) ROW(executable_create) ROW(executable_retain)
    ROW(executable_release) ROW(executable_input_count)
    ROW(executable_output_count) ROW(executable_input) ROW(executable_output)
    ROW(executable_step_count) ROW(executable_step)
    ROW(executable_location_count) ROW(executable_location)
    ROW(plan_set_save) ROW(plan_set_load) ROW(plan_set_release)
    ROW(plan_set_count) ROW(plan_set_plan)
    ROW(executable_input_is_strings)
    ROW(executable_output_is_strings)
    ROW(module_input_is_strings)
    ROW(module_output_is_strings)
    ROW(module_strings_create)
    ROW(executable_needs_strings)
    ROW(strings_count)
    ROW(strings_create)
    ROW(strings_decode)
    ROW(strings_encode)
    ROW(strings_forget)
    ROW(strings_release)
    ROW(session_create) ROW(session_retain) ROW(session_release)
    ROW(session_run) ROW(session_tensor_release) ROW(session_wait)
    ROW(decoder_create) ROW(decoder_release) ROW(decoder_info)
    ROW(decoder_feed) ROW(decoder_feed_each) ROW(decoder_logits) ROW(decoder_choose) ROW(decoder_sampling)
    ROW(decoder_encode)
    ROW(decoder_length) ROW(decoder_cut) ROW(decoder_fork)
    ROW(decoder_save) ROW(decoder_load)
    ROW(session_stats) ROW(session_visit) ROW(session_input_count)
    ROW(session_output_count) ROW(session_input) ROW(session_output_name)
    ROW(session_input_is_strings) ROW(session_output_is_strings) ROW(session_strings_create)
    ROW(executable_run) ROW(executable_run_named)
    ROW(executable_find_input) ROW(executable_find_output)
    ROW(executable_find_input_list) ROW(executable_find_output_list)
    ROW(executable_run_buffers) ROW(executable_alias)
    ROW(executable_constant_bytes)
    ROW(tensor_release) ROW(plan_cache_get) ROW(plan_cache_find)
    ROW(cache_stats) ROW(cache_visit) ROW(cache_visit_keys) ROW(cache_prune) ROW(module_create)
    ROW(module_retain) ROW(module_release) ROW(module_add_function)
    ROW(module_entry) ROW(function_argument_count) ROW(function_argument)
    ROW(function_argument_name) ROW(module_name) ROW(module_attribute)
    ROW(function_argument_attribute) ROW(function_result_attribute)
    ROW(function_returned_type) ROW(module_link) ROW(module_jvp)
    ROW(module_vjp) ROW(module_checkpoint) ROW(module_checkpoint_name) ROW(module_gradient) ROW(module_transpose)
    ROW(module_linearize) ROW(module_vmap)
    ROW(function_tokens) ROW(value_type) ROW(module_verify)
    ROW(module_specialize) ROW(module_specialize_values)
    ROW(module_value_argument_count) ROW(module_value_argument)
    ROW(module_print) ROW(module_parse)
    ROW(module_serialize) ROW(module_deserialize) ROW(module_signature)
    ROW(builder_make) ROW(region_create) ROW(block_argument) ROW(import_file) ROW(import_bytes)
    ROW(model_info_create) ROW(model_info_release) ROW(model_info_find_input) ROW(model_info_find_output)
    ROW(import_onnx_file) ROW(import_visit_inputs) ROW(import_onnx) ROW(read_onnx_tensor) ROW(compile) ROW(optimize)
    // clang-format on
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static void test_every_function(void** state) {
  for (int i = 0; i < ROW_COUNT; ++i) {
    print_message("%s\n", rows[i].name);
    rows[i].call(*state);
  }
}

static bool has_row(const char* name) {
  for (int i = 0; i < ROW_COUNT; ++i) {
    if (!strcmp(rows[i].name, name)) return true;
  }
  return false;
}

static void test_list_is_whole(void** state) {
  (void)state;
  char path[1024], name[128];
  snprintf(path, sizeof(path), "%s/tests/abi/exported_symbols.txt",
           getenv("PESTLE_SOURCE_DIR"));
  FILE* file = fopen(path, "r");
  assert_non_null(file);
  int listed = 0, missing = 0;
  while (fgets(name, sizeof(name), file)) {
    name[strcspn(name, "\n")] = 0;
    ++listed;
    if (has_row(name)) continue;
    print_error("%s is exported and not called here\n", name);
    ++missing;
  }
  fclose(file);
  assert_int_equal(missing, 0);
  assert_int_equal(listed, ROW_COUNT);
}

// --- The things ---

static int set_up(void** state) {
  things_t* t = calloc(1, sizeof(*t));
  assert_non_null(t);
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .cache_dir = "", .threads = 1};
  assert_ok(pestle_context_create(&options, &t->context));
  pestle_context_t* c = t->context;
  assert_ok(pestle_context_device(c, "ref", &t->device));
  assert_ok(pestle_module_parse(c, text, strlen(text), "x.mlir", &t->module));
  assert_ok(pestle_module_create(c, "open", &t->open));
  assert_ok(pestle_module_add_function(t->open, "main", &f32x4, NULL, 1,
                                       &t->function));
  t->value = pestle_function_argument(t->function, 0);
  t->builder = pestle_builder_make(t->function);
  assert_ok(pestle_compile(c, t->module, t->device, NULL, &t->plan));
  assert_ok(pestle_executable_create(c, t->plan, t->device, &t->executable));
  assert_ok(pestle_buffer_create(t->device, 64, &t->buffer));
  assert_ok(pestle_stream_create(t->device, &t->stream));
  assert_ok(pestle_event_create(t->device, &t->event));
  assert_ok(
      pestle_array_from_data(t->device, &f32x4, (float[4]){1}, &t->array));
  *state = t;
  return 0;
}

static int tear_down(void** state) {
  things_t* t = *state;
  pestle_array_release(t->array);
  pestle_event_release(t->event);
  pestle_stream_release(t->stream);
  pestle_buffer_release(t->buffer);
  pestle_executable_release(t->executable);
  pestle_plan_release(t->plan);
  pestle_module_release(t->open);
  pestle_module_release(t->module);
  pestle_context_release(t->context);
  free(t);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_function),
      cmocka_unit_test(test_list_is_whole),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
