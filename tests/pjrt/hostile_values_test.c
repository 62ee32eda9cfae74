// SPDX-License-Identifier: Apache-2.0
// Callers whose structs are whole and whose values are not: lists of a length at NULL,
// structs within structs that are short or of another kind, numbers out of range,
// handles that were deleted. Each is an error that says what is wrong.
#include "driver.h"

#define ADD                                                        \
  "module @add { func.func public @main(%a: tensor<3xf32>, %b: "   \
  "tensor<3xf32>) -> tensor<3xf32> { %0 = stablehlo.add %a, %b : " \
  "tensor<3xf32> return %0 : tensor<3xf32> } }"

static void create_options(void** state) {
  PJRT_Client* none;
  PJRT_NamedValue value = string_option("device", "cpu");
  (void)state;
  assert_fails(create_client(NULL, 3, &none), INVALID_ARGUMENT, "option");
  value.struct_size = 3;
  assert_fails(create_client(&value, 1, &none), INVALID_ARGUMENT, "option");
  value = string_option("device", "cpu");
  value.name = NULL;
  assert_fails(create_client(&value, 1, &none), INVALID_ARGUMENT, "option");
  value = string_option("device", "cpu");
  value.string_value = NULL;
  assert_fails(create_client(&value, 1, &none), INVALID_ARGUMENT, "device");
  value = string_option("device", "cpu");
  value.type = (PJRT_NamedValue_Type)99;
  assert_fails(create_client(&value, 1, &none), INVALID_ARGUMENT, "device");
  value = string_option("colour", "red");
  assert_fails(create_client(&value, 1, &none), INVALID_ARGUMENT, "colour");
  value = string_option("device", "no such backend");
  PJRT_Error* error = create_client(&value, 1, &none);
  assert_non_null(error);
  assert_non_null(strstr(text_of(error), "no such backend"));
  destroy_error(error);
}

static PJRT_Error* compile_raw(PJRT_Program* program, const char* options,
                               size_t size) {
  ARGS(PJRT_Client_Compile, args);
  args.client = client;
  args.program = program;
  args.compile_options = options;
  args.compile_options_size = size;
  PJRT_Error* error = api->PJRT_Client_Compile(&args);
  if (!error) destroy_loaded(args.executable);
  return error;
}

static void programs(void** state) {
  PJRT_Program good = {.struct_size = sizeof(good),
                       .code = (char*)(uintptr_t)ADD,
                       .code_size = sizeof(ADD) - 1,
                       .format = "mlir",
                       .format_size = 4};
  PJRT_Program p = good;
  (void)state;
  p.struct_size = 8;
  assert_fails(compile_raw(&p, "", 0), INVALID_ARGUMENT, "program");
  p = good;
  p.code_size = 0;
  assert_fails(compile_raw(&p, "", 0), INVALID_ARGUMENT, "");
  p = good;
  p.code = NULL;
  assert_fails(compile_raw(&p, "", 0), INVALID_ARGUMENT, "program");
  p = good;
  p.code_size = 40;
  assert_fails(compile_raw(&p, "", 0), INVALID_ARGUMENT, "");
  p = good;
  p.format_size = 3;
  assert_fails(compile_raw(&p, "", 0), UNIMPLEMENTED, "'mli'");
  p = good;
  assert_fails(compile_raw(&p, NULL, 7), INVALID_ARGUMENT, "options");
  // Every first part of a good text.
  for (size_t size = 1; size < sizeof(ADD) - 1; size += 7) {
    p = good;
    p.code_size = size;
    PJRT_Error* error = compile_raw(&p, "", 0);
    assert_non_null(error);
    destroy_error(error);
  }
}

static PJRT_Error* put_with(const PJRT_Buffer_MemoryLayout* layout,
                            const int64_t* dims, size_t rank,
                            const int64_t* strides, size_t stride_count) {
  static const float x[6] = {1, 2, 3, 4, 5, 6};
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = x;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = rank;
  args.byte_strides = strides;
  args.num_byte_strides = stride_count;
  args.host_buffer_semantics =
      PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = NULL;
  args.memory = NULL;
  args.device_layout = (PJRT_Buffer_MemoryLayout*)(uintptr_t)layout;
  PJRT_Error* error = api->PJRT_Client_BufferFromHostBuffer(&args);
  if (!error) {
    destroy_event(args.done_with_host_buffer);
    destroy_buffer(args.buffer);
  }
  return error;
}

static void host_buffers(void** state) {
  const int64_t dims[] = {2, 3}, axes[] = {5, 0}, strides[] = {12, 4, 4};
  PJRT_Buffer_MemoryLayout good = {.struct_size = sizeof(good),
                                   .tiled = {.struct_size = sizeof(good.tiled),
                                             .minor_to_major = axes,
                                             .minor_to_major_size = 2},
                                   .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  PJRT_Buffer_MemoryLayout layout = good;
  (void)state;
  assert_fails(put_with(NULL, NULL, 2, NULL, 0), INVALID_ARGUMENT, "NULL");
  assert_fails(put_with(NULL, dims, 2, strides, 3), INVALID_ARGUMENT,
               "3 strides are given for 2 axes");
  assert_fails(put_with(&layout, dims, 2, NULL, 0), INVALID_ARGUMENT,
               "no permutation");
  layout.tiled.minor_to_major_size = 1;
  assert_fails(put_with(&layout, dims, 2, NULL, 0), INVALID_ARGUMENT,
               "a layout of 1 axes is for a buffer of 2");
  layout = good;
  layout.tiled.minor_to_major = NULL;
  assert_fails(put_with(&layout, dims, 2, NULL, 0), INVALID_ARGUMENT, "layout");
  layout = good;
  layout.type = (PJRT_Buffer_MemoryLayout_Type)9;
  assert_fails(put_with(&layout, dims, 2, NULL, 0), INVALID_ARGUMENT, "type 9");
  layout = good;
  layout.struct_size = 4;
  assert_fails(put_with(&layout, dims, 2, NULL, 0), INVALID_ARGUMENT, "layout");
}

static PJRT_Error* execute_raw(PJRT_LoadedExecutable* loaded,
                               PJRT_ExecuteOptions* options,
                               PJRT_Buffer* const* const* lists, size_t devices,
                               size_t count, PJRT_Buffer** const* results) {
  ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = loaded;
  args.options = options;
  args.argument_lists = lists;
  args.num_devices = devices;
  args.num_args = count;
  args.output_lists = results;
  args.device_complete_events = NULL;
  args.execute_device = NULL;
  return api->PJRT_LoadedExecutable_Execute(&args);
}

static void executions(void** state) {
  const float x[] = {1, 2, 3};
  const int64_t far[] = {-5, 7, INT64_MAX};
  PJRT_ExecuteOptions good, options;
  PJRT_Buffer *output, *inputs[] = {put(x, 3), put(x, 3)};
  PJRT_Buffer *holes[] = {inputs[0], NULL}, **outputs[] = {&output};
  PJRT_Buffer *const *lists[] = {inputs}, *const * empty[] = {NULL},
                     *const * with_hole[] = {holes};
  PJRT_Buffer** no_outputs[] = {NULL};
  (void)state;
  memset(&good, 0, sizeof(good));
  good.struct_size = sizeof(good);
  PJRT_LoadedExecutable* add = compile(ADD);
  assert_fails(execute_raw(add, &good, lists, 0, 2, outputs), INVALID_ARGUMENT,
               "1 device; 0 are given");
  assert_fails(execute_raw(add, &good, NULL, 1, 2, outputs), INVALID_ARGUMENT,
               "NULL");
  assert_fails(execute_raw(add, &good, empty, 1, 2, outputs), INVALID_ARGUMENT,
               "NULL");
  assert_fails(execute_raw(add, &good, with_hole, 1, 2, outputs),
               INVALID_ARGUMENT, "argument 1 of add is NULL");
  assert_fails(execute_raw(add, &good, lists, 1, 2, NULL), INVALID_ARGUMENT,
               "NULL");
  assert_fails(execute_raw(add, &good, lists, 1, 2, no_outputs),
               INVALID_ARGUMENT, "NULL");
  options = good;
  options.struct_size = 12;
  assert_fails(execute_raw(add, &options, lists, 1, 2, outputs),
               INVALID_ARGUMENT, "options");
  options = good;
  options.num_non_donatable_input_indices = 2;
  assert_fails(execute_raw(add, &options, lists, 1, 2, outputs),
               INVALID_ARGUMENT, "options");
  // Numbers of no argument stand for none.
  options.non_donatable_input_indices = far;
  options.num_non_donatable_input_indices = 3;
  assert_fine(execute_raw(add, &options, lists, 1, 2, outputs));
  destroy_buffer(output);
  ARGS(PJRT_LoadedExecutable_Delete, gone);
  gone.executable = add;
  assert_fine(api->PJRT_LoadedExecutable_Delete(&gone));
  assert_fails(execute_raw(add, &good, lists, 1, 2, outputs), INVALID_ARGUMENT,
               "was deleted");
  destroy_loaded(add);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
}

// Every question to a buffer that was deleted: an answer or an error.
static void deleted_buffers(void** state) {
  const float x[] = {1, 2, 3};
  float got[3];
  (void)state;
  PJRT_Buffer* buffer = put(x, 3);
  delete_buffer(buffer);
  delete_buffer(buffer);
  assert_true(is_deleted(buffer));
  assert_fails(get_raw(buffer, got, sizeof(got)), INVALID_ARGUMENT, "deleted");
  ARGS(PJRT_Buffer_UnsafePointer, pointer);
  pointer.buffer = buffer;
  assert_fails(api->PJRT_Buffer_UnsafePointer(&pointer), INVALID_ARGUMENT,
               "deleted");
  ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, up);
  up.buffer = buffer;
  assert_fails(api->PJRT_Buffer_IncreaseExternalReferenceCount(&up),
               INVALID_ARGUMENT, "deleted");
  assert_fails(try_unpin(buffer), INVALID_ARGUMENT, "no external reference");
  ARGS(PJRT_Buffer_CopyToDevice, copy);
  copy.buffer = buffer;
  copy.dst_device = device;
  assert_fails(api->PJRT_Buffer_CopyToDevice(&copy), INVALID_ARGUMENT,
               "deleted");
  ARGS(PJRT_Buffer_ReadyEvent, ready);
  ready.buffer = buffer;
  assert_fails(api->PJRT_Buffer_ReadyEvent(&ready), INVALID_ARGUMENT,
               "deleted");
  ARGS(PJRT_Buffer_CopyRawToHost, raw);
  raw.buffer = buffer;
  raw.dst = got;
  raw.offset = 0;
  raw.transfer_size = 12;
  assert_fails(api->PJRT_Buffer_CopyRawToHost(&raw), INVALID_ARGUMENT,
               "deleted");
  raw.offset = -1;
  assert_fails(api->PJRT_Buffer_CopyRawToHost(&raw), INVALID_ARGUMENT,
               "lead out");
  raw.offset = INT64_MAX;
  raw.transfer_size = INT64_MAX;
  assert_fails(api->PJRT_Buffer_CopyRawToHost(&raw), INVALID_ARGUMENT,
               "lead out");
  ARGS(PJRT_Buffer_Dimensions, dims);
  dims.buffer = buffer;
  assert_fine(api->PJRT_Buffer_Dimensions(&dims));
  assert_int_equal(dims.num_dims, 1);
  destroy_buffer(buffer);
}

static void devices(void** state) {
  (void)state;
  ARGS(PJRT_Client_LookupDevice, look);
  look.client = client;
  for (int id = -1; id < 3; id += 2) {
    look.id = id;
    assert_fails(api->PJRT_Client_LookupDevice(&look), INVALID_ARGUMENT,
                 "there is no device");
    assert_null(look.device);
  }
  ARGS(PJRT_Client_DefaultDeviceAssignment, assignment);
  int ids[1];
  assignment.client = client;
  assignment.num_replicas = 1;
  assignment.num_partitions = 1;
  assignment.default_assignment = ids;
  assignment.default_assignment_size = 0;
  assert_fails(api->PJRT_Client_DefaultDeviceAssignment(&assignment),
               INVALID_ARGUMENT, "no room");
}

// Serialised bytes that are cut, or changed anywhere.
static void serialised(void** state) {
  (void)state;
  PJRT_LoadedExecutable* add = compile(ADD);
  PJRT_Executable* executable = executable_of(add);
  ARGS(PJRT_Executable_Serialize, bytes);
  bytes.executable = executable;
  assert_fine(api->PJRT_Executable_Serialize(&bytes));
  size_t size = bytes.serialized_bytes_size;
  char* copy = aligned_alloc(64, (size + 63) / 64 * 64);
  ARGS(PJRT_Executable_DeserializeAndLoad, load);
  load.client = client;
  load.overridden_serialized_compile_options = NULL;
  load.overridden_serialized_compile_options_size = 0;
  load.serialized_executable = copy;
  for (size_t at = 0; at < size; at += 1 + size / 97) {
    memcpy(copy, bytes.serialized_bytes, size);
    load.serialized_executable_size = at;
    PJRT_Error* error = api->PJRT_Executable_DeserializeAndLoad(&load);
    assert_non_null(error);
    destroy_error(error);
    copy[at] = (char)(copy[at] ^ 0x41);
    load.serialized_executable_size = size;
    error = api->PJRT_Executable_DeserializeAndLoad(&load);
    assert_non_null(error);
    destroy_error(error);
  }
  free(copy);
  bytes.serialized_executable_deleter(bytes.serialized_executable);
  destroy_executable(executable);
  destroy_loaded(add);
}

static int begin(void** state) {
  (void)state;
  open_plugin();
  start(true);
  return 0;
}

static int end(void** state) {
  (void)state;
  stop();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(create_options),  cmocka_unit_test(programs),
      cmocka_unit_test(host_buffers),    cmocka_unit_test(executions),
      cmocka_unit_test(deleted_buffers), cmocka_unit_test(devices),
      cmocka_unit_test(serialised),
  };
  return cmocka_run_group_tests_name("hostile values", tests, begin, end);
}
