// SPDX-License-Identifier: Apache-2.0
// What a framework does with the plugin, in its order: each test runs with runs
// by the caller's thread and through the queue.
#include "driver.h"

#define ADD                                                            \
  "module @add {\n"                                                    \
  "  func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> " \
  "tensor<3xf32> {\n"                                                  \
  "    %0 = stablehlo.add %a, %b : tensor<3xf32>\n"                    \
  "    return %0 : tensor<3xf32>\n"                                    \
  "  }\n"                                                              \
  "}\n"

// x + 1 where x's memory may be taken.
#define DONATES(attribute, count)                                   \
  "module @inc {\n"                                                 \
  "  func.func public @main(%x: tensor<" #count "xf32> {" attribute \
  "}) "                                                             \
  "-> tensor<" #count                                               \
  "xf32> {\n"                                                       \
  "    %c = stablehlo.constant dense<1.0> : tensor<" #count         \
  "xf32>\n"                                                         \
  "    %0 = stablehlo.add %x, %c : tensor<" #count                  \
  "xf32>\n"                                                         \
  "    return %0 : tensor<" #count                                  \
  "xf32>\n"                                                         \
  "  }\n"                                                           \
  "}\n"
#define ALIASES(count) DONATES("tf.aliasing_output = 0 : i32", count)

static int start_here(void** state) {
  (void)state;
  open_plugin();
  start(true);
  return 0;
}

static int start_queued(void** state) {
  (void)state;
  open_plugin();
  start(false);
  return 0;
}

static int finish(void** state) {
  (void)state;
  stop();
  return 0;
}

static void runs_a_program(void** state) {
  const float a[] = {1, 2, 3}, b[] = {10, 20, 30};
  float sum[3];
  (void)state;
  PJRT_LoadedExecutable* add = compile(ADD);
  PJRT_Buffer* inputs[] = {put(a, 3), put(b, 3)};
  PJRT_Buffer* output;
  execute(add, inputs, 2, &output);
  get(output, sum, 3);
  assert_true(sum[0] == 11 && sum[1] == 22 && sum[2] == 33);
  assert_false(is_deleted(inputs[0]));
  destroy_buffer(output);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  destroy_loaded(add);
}

// A chain is handed over before any of it has run; buffers and the executable may
// go meanwhile.
static void chains_executions(void** state) {
  enum { COUNT = 100000, LINKS = 30 };
  float* x = calloc(COUNT, sizeof(float));
  (void)state;
  PJRT_LoadedExecutable* inc = compile(DONATES("", 100000));
  PJRT_Buffer* buffer = put(x, COUNT);
  for (int i = 0; i < LINKS; ++i) {
    PJRT_Buffer* next;
    execute(inc, &buffer, 1, &next);
    destroy_buffer(buffer);
    buffer = next;
  }
  destroy_loaded(inc);
  get(buffer, x, COUNT);
  for (int i = 0; i < COUNT; ++i)
    assert_true(x[i] == LINKS);
  destroy_buffer(buffer);
  free(x);
}

// --- Donation ---

static void donated_input_is_gone_at_once(void** state) {
  float x[3] = {1, 2, 3};
  (void)state;
  PJRT_LoadedExecutable* inc = compile(ALIASES(3));
  PJRT_Buffer* input = put(x, 3);
  void* before = address_of(input);
  PJRT_Buffer* output;
  execute(inc, &input, 1, &output);
  assert_true(is_deleted(input));
  assert_ptr_equal(address_of(output), before);
  get(output, x, 3);
  assert_true(x[0] == 2 && x[2] == 4);
  PJRT_Buffer* again;
  assert_fails(try_execute(inc, &input, 1, -1, &again, NULL), INVALID_ARGUMENT,
               "deleted or donated");
  destroy_buffer(input);
  destroy_buffer(output);
  destroy_loaded(inc);
}

static void donor_is_consumed_and_a_veto_counts(void** state) {
  float x[3] = {1, 2, 3}, y[3];
  (void)state;
  PJRT_LoadedExecutable* inc = compile(DONATES("jax.buffer_donor = true", 3));
  PJRT_Buffer* input = put(x, 3);
  PJRT_Buffer* output;
  assert_fine(try_execute(inc, &input, 1, 0, &output, NULL));
  assert_false(is_deleted(input));
  get(input, y, 3);
  assert_memory_equal(x, y, sizeof(x));
  destroy_buffer(output);
  execute(inc, &input, 1, &output);
  assert_true(is_deleted(input));
  get(output, y, 3);
  assert_true(y[1] == 3);
  destroy_buffer(input);
  destroy_buffer(output);
  destroy_loaded(inc);
}

// The host's array is read where it lies, given back once, and never written.
static void host_memory_is_never_written(void** state) {
  enum { COUNT = 10000 };
  float* x = malloc(COUNT * sizeof(float));
  int64_t dims = COUNT;
  (void)state;
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)i;
  PJRT_LoadedExecutable* inc = compile(ALIASES(10000));
  PJRT_Event* done;
  PJRT_Buffer* input =
      put_as(x, PJRT_Buffer_Type_F32, &dims, 1,
             PJRT_HostBufferSemantics_kImmutableZeroCopy, &done);
  assert_ptr_equal(address_of(input), x);
  assert_false(is_ready(done));
  PJRT_Buffer* output;
  execute(inc, &input, 1, &output);
  assert_true(is_deleted(input));
  float* y = malloc(COUNT * sizeof(float));
  get(output, y, COUNT);
  for (int i = 0; i < COUNT; ++i)
    assert_true(y[i] == (float)i + 1 && x[i] == (float)i);
  destroy_buffer(input);
  assert_fine(await(done));
  destroy_buffer(output);
  destroy_loaded(inc);
  free(x);
  free(y);
}

// Who looks at a result's memory sees it unchanged after a donation.
static void seen_memory_is_never_written(void** state) {
  float x[3] = {1, 2, 3};
  (void)state;
  PJRT_LoadedExecutable* inc = compile(ALIASES(3));
  PJRT_Buffer* input = put(x, 3);
  PJRT_Buffer *first, *second;
  execute(inc, &input, 1, &first);
  destroy_buffer(input);
  get(first, x, 3);  // it is there
  pin(first);
  const float* seen = address_of(first);
  execute(inc, &first, 1, &second);
  assert_true(is_deleted(first));
  get(second, x, 3);
  assert_true(x[0] == 3 && seen[0] == 2 && seen[2] == 4);
  destroy_buffer(first);
  assert_true(seen[1] == 3);
  assert_fine(try_unpin(first));
  destroy_buffer(second);
  destroy_loaded(inc);
}

static void pinned_memory_outlives_its_deletion(void** state) {
  const float x[3] = {1, 2, 3};
  (void)state;
  PJRT_Buffer* buffer = put(x, 3);
  pin(buffer);
  const float* seen = address_of(buffer);
  delete_buffer(buffer);
  assert_true(is_deleted(buffer));
  assert_true(seen[0] == 1 && seen[2] == 3);
  assert_fine(try_unpin(buffer));
  assert_fails(try_unpin(buffer), INVALID_ARGUMENT, "external reference");
  destroy_buffer(buffer);
}

// Two buffers on one memory: what is given up with one stays with the other.
static void copies_share_until_one_is_donated(void** state) {
  float x[3] = {1, 2, 3};
  (void)state;
  PJRT_LoadedExecutable* inc = compile(ALIASES(3));
  PJRT_Buffer* buffer = put(x, 3);
  ARGS(PJRT_Buffer_CopyToDevice, args);
  args.buffer = buffer;
  args.dst_device = device;
  assert_fine(api->PJRT_Buffer_CopyToDevice(&args));
  PJRT_Buffer* output;
  execute(inc, &buffer, 1, &output);
  get(output, x, 3);
  assert_true(x[0] == 2);
  get(args.dst_buffer, x, 3);
  assert_true(x[0] == 1 && x[2] == 3);
  destroy_buffer(buffer);
  destroy_buffer(args.dst_buffer);
  destroy_buffer(output);
  destroy_loaded(inc);
}

// --- Layouts of the host ---

static void strided_arrays_are_packed(void** state) {
  const int32_t data[2][3] = {{0, 1, 2}, {3, 4, 5}};
  const int64_t dims[] = {3, 2}, strides[] = {4, 12};  // its transpose
  const int64_t minor_to_major[] = {0, 1};
  int32_t back[3][2], columns[2][3];
  (void)state;
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_S32;
  args.dims = dims;
  args.num_dims = 2;
  args.byte_strides = strides;
  args.num_byte_strides = 2;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = NULL;
  args.memory = NULL;
  args.device_layout = NULL;
  assert_fine(api->PJRT_Client_BufferFromHostBuffer(&args));
  assert_fine(await(args.done_with_host_buffer));
  assert_fine(get_raw(args.buffer, back, sizeof(back)));
  assert_int_equal(back[2][1], 5);
  assert_int_equal(back[1][0], 1);
  PJRT_Buffer_MemoryLayout layout = {
      .struct_size = sizeof(layout),
      .tiled = {.struct_size = sizeof(layout.tiled),
                .minor_to_major = minor_to_major,
                .minor_to_major_size = 2},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  ARGS(PJRT_Buffer_ToHostBuffer, read);
  read.src = args.buffer;
  read.host_layout = &layout;
  read.dst = columns;
  read.dst_size = sizeof(columns);
  assert_fine(api->PJRT_Buffer_ToHostBuffer(&read));
  assert_fine(await(read.event));
  assert_memory_equal(columns, data, sizeof(data));
  read.dst = NULL;
  assert_fine(api->PJRT_Buffer_ToHostBuffer(&read));
  assert_int_equal(read.dst_size, sizeof(data));
  destroy_buffer(args.buffer);
}

// NumPy's int4 has zeros above its 4 bits; signs count all the same.
static void narrow_integers_keep_their_sign(void** state) {
  const uint8_t data[] = {1, 14, 13, 4, 8, 7};
  const int8_t want[] = {1, -2, -3, 4, -8, 7};
  const int64_t dims[] = {6};
  int8_t wide[6];
  PJRT_Event* done;
  (void)state;
  PJRT_LoadedExecutable* widen = compile(
      "module { func.func public @main(%a: tensor<6xi4>) -> tensor<6xi8> { %0 "
      "= stablehlo.convert %a : (tensor<6xi4>) -> tensor<6xi8> return %0 : "
      "tensor<6xi8> } }");
  PJRT_Buffer* narrow =
      put_as(data, PJRT_Buffer_Type_S4, dims, 1,
             PJRT_HostBufferSemantics_kImmutableZeroCopy, &done);
  assert_fine(await(done));
  PJRT_Buffer* output;
  execute(widen, &narrow, 1, &output);
  assert_fine(get_raw(output, wide, sizeof(wide)));
  assert_memory_equal(wide, want, sizeof(want));
  destroy_buffer(narrow);
  destroy_buffer(output);
  destroy_loaded(widen);
}

static void empty_and_scalar_buffers(void** state) {
  const int64_t dims[] = {3, 0, 2};
  PJRT_Event* done;
  double value = 4.5, back = 0;
  (void)state;
  PJRT_Buffer* empty =
      put_as(NULL, PJRT_Buffer_Type_F32, dims, 3,
             PJRT_HostBufferSemantics_kImmutableZeroCopy, &done);
  assert_fine(await(done));
  assert_fine(get_raw(empty, &back, 0));
  assert_non_null(address_of(empty));
  PJRT_Buffer* scalar =
      put_as(&value, PJRT_Buffer_Type_F64, NULL, 0,
             PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, &done);
  assert_fine(await(done));
  assert_fine(get_raw(scalar, &back, sizeof(back)));
  assert_true(back == 4.5);
  destroy_buffer(empty);
  destroy_buffer(scalar);
}

// --- What executables say ---

static void executables_describe_themselves(void** state) {
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(
      "module @two {\n"
      "  func.func public @main(%a: tensor<4x2xf32>) -> (tensor<4x2xi1>, "
      "tensor<f32>) {\n"
      "    %0 = stablehlo.compare EQ, %a, %a : (tensor<4x2xf32>, "
      "tensor<4x2xf32>) -> tensor<4x2xi1>\n"
      "    %c = stablehlo.constant dense<2.0> : tensor<f32>\n"
      "    return %0, %c : tensor<4x2xi1>, tensor<f32>\n"
      "  }\n"
      "}\n");
  PJRT_Executable* executable = executable_of(loaded);
  destroy_loaded(loaded);
  ARGS(PJRT_Executable_Name, name);
  name.executable = executable;
  assert_fine(api->PJRT_Executable_Name(&name));
  assert_string_equal(name.executable_name, "two");
  ARGS(PJRT_Executable_OutputElementTypes, types);
  types.executable = executable;
  assert_fine(api->PJRT_Executable_OutputElementTypes(&types));
  assert_int_equal(types.num_output_types, 2);
  assert_int_equal(types.output_types[0], PJRT_Buffer_Type_PRED);
  assert_int_equal(types.output_types[1], PJRT_Buffer_Type_F32);
  ARGS(PJRT_Executable_OutputDimensions, dims);
  dims.executable = executable;
  assert_fine(api->PJRT_Executable_OutputDimensions(&dims));
  assert_int_equal(dims.dim_sizes[0], 2);
  assert_int_equal(dims.dim_sizes[1], 0);
  assert_int_equal(dims.dims[0], 4);
  ARGS(PJRT_Executable_OutputMemoryKinds, kinds);
  kinds.executable = executable;
  assert_fine(api->PJRT_Executable_OutputMemoryKinds(&kinds));
  assert_memory_equal(kinds.memory_kinds[1], "device",
                      kinds.memory_kind_sizes[1]);
  ARGS(PJRT_Executable_GetCompiledMemoryStats, memory);
  memory.executable = executable;
  assert_fine(api->PJRT_Executable_GetCompiledMemoryStats(&memory));
  assert_int_equal(memory.argument_size_in_bytes, 32);
  assert_int_equal(memory.output_size_in_bytes, 12);
  assert_int_equal(memory.host_temp_size_in_bytes, 0);
  ARGS(PJRT_Executable_GetCostAnalysis, cost);
  cost.executable = executable;
  assert_fine(api->PJRT_Executable_GetCostAnalysis(&cost));
  assert_true(cost.num_properties >= 2);
  assert_string_equal(cost.properties[1].name, "bytes accessed");
  assert_true(cost.properties[1].float_value > 0);
  ARGS(PJRT_Executable_Fingerprint, print);
  print.executable = executable;
  assert_fine(api->PJRT_Executable_Fingerprint(&print));
  assert_int_equal(print.executable_fingerprint_size, 32);
  destroy_executable(executable);
}

static void executables_travel_as_bytes(void** state) {
  float x[3] = {1, 2, 3};
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(ALIASES(3));
  PJRT_Executable* executable = executable_of(loaded);
  ARGS(PJRT_Executable_Serialize, bytes);
  bytes.executable = executable;
  assert_fine(api->PJRT_Executable_Serialize(&bytes));
  destroy_executable(executable);
  destroy_loaded(loaded);
  ARGS(PJRT_Executable_DeserializeAndLoad, args);
  args.client = client;
  args.serialized_executable = bytes.serialized_bytes;
  args.serialized_executable_size = bytes.serialized_bytes_size;
  args.overridden_serialized_compile_options = NULL;
  args.overridden_serialized_compile_options_size = 0;
  assert_fine(api->PJRT_Executable_DeserializeAndLoad(&args));
  PJRT_Buffer *input = put(x, 3), *output;
  execute(args.loaded_executable, &input, 1, &output);
  assert_true(is_deleted(input));
  get(output, x, 3);
  assert_true(x[0] == 2 && x[2] == 4);
  destroy_buffer(input);
  destroy_buffer(output);
  destroy_loaded(args.loaded_executable);
  char* copy = malloc(bytes.serialized_bytes_size);
  args.serialized_executable = copy;
  for (size_t i = 0; i < bytes.serialized_bytes_size; i += 97) {
    memcpy(copy, bytes.serialized_bytes, bytes.serialized_bytes_size);
    copy[i] ^= 4;
    assert_fails(api->PJRT_Executable_DeserializeAndLoad(&args),
                 INVALID_ARGUMENT, "");
  }
  args.serialized_executable_size = 100;
  assert_fails(api->PJRT_Executable_DeserializeAndLoad(&args), INVALID_ARGUMENT,
               "");
  free(copy);
  bytes.serialized_executable_deleter(bytes.serialized_executable);
}

// Tokens are buffers of the framework's and no values of the plan.
static void tokens_come_and_go(void** state) {
  float x[3] = {1, 2, 3};
  const int64_t none = 0;
  PJRT_Event* done;
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(
      "module @tokens {\n"
      "  func.func public @main(%t: !stablehlo.token {jax.token = true}, %x: "
      "tensor<3xf32> {tf.aliasing_output = 1 : i32}, %u: !stablehlo.token) -> "
      "(!stablehlo.token {jax.token = true}, tensor<3xf32>) {\n"
      "    %0 = stablehlo.add %x, %x : tensor<3xf32>\n"
      "    return %t, %0 : !stablehlo.token, tensor<3xf32>\n"
      "  }\n"
      "}\n");
  PJRT_Buffer* token =
      put_as(NULL, PJRT_Buffer_Type_PRED, &none, 1,
             PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, &done);
  assert_fine(await(done));
  PJRT_Buffer *inputs[] = {token, put(x, 3), token}, *outputs[2], *again[2];
  execute(loaded, inputs, 3, outputs);
  assert_true(is_deleted(inputs[1]));
  destroy_buffer(inputs[1]);
  inputs[0] = outputs[0];
  inputs[1] = outputs[1];
  execute(loaded, inputs, 3, again);
  get(again[1], x, 3);
  assert_true(x[0] == 4 && x[2] == 12);
  destroy_buffer(token);
  for (int i = 0; i < 2; ++i) {
    destroy_buffer(outputs[i]);
    destroy_buffer(again[i]);
  }
  destroy_loaded(loaded);
}

// --- Special buffers ---

static int views_ended;
static void end_view(void* data, void* user_arg) {
  ((float*)data)[0] = *(float*)user_arg;
  ++views_ended;
}

static void views_come_back_to_their_owner(void** state) {
  float x[64] = {5}, last = 9, y[64];
  int64_t dims = 64;
  (void)state;
  ARGS(PJRT_Client_CreateViewOfDeviceBuffer, args);
  args.client = client;
  args.device_buffer_ptr = x;
  args.dims = &dims;
  args.num_dims = 1;
  args.element_type = PJRT_Buffer_Type_F32;
  args.layout = NULL;
  args.device = device;
  args.on_delete_callback = end_view;
  args.on_delete_callback_arg = &last;
  args.stream = 0;
  args.memory = NULL;
  assert_fine(api->PJRT_Client_CreateViewOfDeviceBuffer(&args));
  views_ended = 0;
  assert_ptr_equal(address_of(args.buffer), x);
  get(args.buffer, y, 64);
  assert_true(y[0] == 5);
  destroy_buffer(args.buffer);
  assert_int_equal(views_ended, 1);
  assert_true(x[0] == 9);
}

// An error in a buffer's place is the error of what reads it.
static void errors_go_along_with_buffers(void** state) {
  float x[3] = {0};
  int64_t dims = 3;
  (void)state;
  ARGS(PJRT_Client_CreateErrorBuffer, args);
  args.client = client;
  args.error_code = PJRT_Error_Code_DATA_LOSS;
  args.error_message = "the disk burnt";
  args.error_message_size = 14;
  args.shape_dims = &dims;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.shape_layout = NULL;
  args.memory = NULL;
  assert_fine(api->PJRT_Client_CreateErrorBuffer(&args));
  assert_fails(get_raw(args.buffer, x, sizeof(x)), DATA_LOSS, "burnt");
  PJRT_LoadedExecutable* inc = compile(DONATES("", 3));
  PJRT_Buffer* output;
  assert_fails(try_execute(inc, &args.buffer, 1, -1, &output, NULL), DATA_LOSS,
               "burnt");
  destroy_buffer(args.buffer);
  destroy_loaded(inc);
}

// --- Failures ---

static void errors_name_what_is_wrong(void** state) {
  const float x[3] = {0}, longer[4] = {0};
  PJRT_LoadedExecutable* bad;
  (void)state;
  assert_fails(try_compile("module {", &bad), INVALID_ARGUMENT, "program:1");
  // jit(compiler_options={"none": "1"}) in a field 7.
  assert_fails(try_compile_with(ADD,
                                "\x3a\x0b\x0a\x04none\x12\x03\x0a\x01"
                                "1",
                                13, &bad),
               INVALID_ARGUMENT, "No such compile option: 'none'");
  // Two partitions in a field 3.
  assert_fails(try_compile_with(ADD, "\x1a\x02\x28\x02", 4, &bad),
               UNIMPLEMENTED, "2 partitions");
  assert_fails(try_compile_with(ADD, "\x1a\x20", 2, &bad), INVALID_ARGUMENT,
               "CompileOptionsProto");
  PJRT_LoadedExecutable* add = compile(ADD);
  PJRT_Buffer* inputs[] = {put(x, 3), put(longer, 4)};
  PJRT_Buffer* output;
  assert_fails(try_execute(add, inputs, 2, -1, &output, NULL), INVALID_ARGUMENT,
               "argument 1 of add is a f32 tensor of 4; the program takes a "
               "f32 tensor of 3");
  assert_fails(try_execute(add, inputs, 1, -1, &output, NULL), INVALID_ARGUMENT,
               "takes 2 arguments; 1 are given");
  delete_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  inputs[1] = inputs[0];
  assert_fails(try_execute(add, inputs, 2, -1, &output, NULL), INVALID_ARGUMENT,
               "deleted");
  destroy_buffer(inputs[0]);
  destroy_loaded(add);
}

// What was donated to an execution that did not take place is there again.
static void failed_execution_gives_back(void** state) {
  float x[3] = {1, 2, 3};
  (void)state;
  PJRT_LoadedExecutable* two = compile(
      "module @two {\n"
      "  func.func public @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : "
      "i32}, %y: tensor<3xf32>) -> tensor<3xf32> {\n"
      "    %0 = stablehlo.add %x, %y : tensor<3xf32>\n"
      "    return %0 : tensor<3xf32>\n"
      "  }\n"
      "}\n");
  PJRT_Buffer* inputs[] = {put(x, 3), put(x, 2)};
  PJRT_Buffer* output;
  assert_fails(try_execute(two, inputs, 2, -1, &output, NULL), INVALID_ARGUMENT,
               "argument 1");
  assert_false(is_deleted(inputs[0]));
  get(inputs[0], x, 3);
  assert_true(x[2] == 3);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  destroy_loaded(two);
}

// --- Events ---

typedef struct seen_t {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  int calls;
  bool failed;
} seen_t;

static void on_ready(PJRT_Error* error, void* user_arg) {
  seen_t* seen = user_arg;
  pthread_mutex_lock(&seen->mutex);
  ++seen->calls;
  seen->failed = error != NULL;
  pthread_cond_broadcast(&seen->cond);
  pthread_mutex_unlock(&seen->mutex);
  if (error) destroy_error(error);
}

// The event is destroyed as soon as it was asked for, as the framework does.
static void callbacks_come_once(void** state) {
  enum { COUNT = 200000 };
  float* x = calloc(COUNT, sizeof(float));
  seen_t seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, true};
  (void)state;
  PJRT_LoadedExecutable* inc = compile(DONATES("", 200000));
  PJRT_Buffer *input = put(x, COUNT), *output;
  PJRT_Event* done;
  assert_fine(try_execute(inc, &input, 1, -1, &output, &done));
  ARGS(PJRT_Event_OnReady, args);
  args.event = done;
  args.callback = on_ready;
  args.user_arg = &seen;
  assert_fine(api->PJRT_Event_OnReady(&args));
  destroy_event(done);
  ARGS(PJRT_Buffer_ReadyEvent, ready);
  ready.buffer = output;
  assert_fine(api->PJRT_Buffer_ReadyEvent(&ready));
  assert_fine(await(ready.event));
  pthread_mutex_lock(&seen.mutex);
  while (!seen.calls)
    pthread_cond_wait(&seen.cond, &seen.mutex);
  pthread_mutex_unlock(&seen.mutex);
  assert_int_equal(seen.calls, 1);
  assert_false(seen.failed);
  destroy_buffer(input);
  destroy_buffer(output);
  destroy_loaded(inc);
  free(x);
}

static void framework_sets_events_of_its_own(void** state) {
  seen_t seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};
  (void)state;
  ARGS(PJRT_Event_Create, create);
  assert_fine(api->PJRT_Event_Create(&create));
  assert_false(is_ready(create.event));
  ARGS(PJRT_Event_Error, why);
  why.event = create.event;
  assert_fails(api->PJRT_Event_Error(&why), FAILED_PRECONDITION, "not ready");
  ARGS(PJRT_Event_OnReady, args);
  args.event = create.event;
  args.callback = on_ready;
  args.user_arg = &seen;
  assert_fine(api->PJRT_Event_OnReady(&args));
  ARGS(PJRT_Event_Set, set);
  set.event = create.event;
  set.error_code = PJRT_Error_Code_DATA_LOSS;
  set.error_message = "gone";
  set.error_message_size = 4;
  assert_fine(api->PJRT_Event_Set(&set));
  assert_int_equal(seen.calls, 1);
  assert_true(seen.failed);
  assert_fails(await(create.event), DATA_LOSS, "gone");
}

// --- Memories ---

static int destroyed;
static void count_destroyed(void* data) {
  destroyed += *(int*)data;
}

static void memories_keep_values(void** state) {
  static int one = 1, ten = 10;
  static char key, other;
  (void)state;
  ARGS(PJRT_Device_DefaultMemory, args);
  args.device = device;
  assert_fine(api->PJRT_Device_DefaultMemory(&args));
  const PJRT_Memory_FunctionTable* table = args.memory->vtable;
  assert_null(table->get_user_data(args.memory, &key));
  destroyed = 0;
  table->set_user_data(args.memory, &key, &one, count_destroyed);
  table->set_user_data(args.memory, &other, &ten, count_destroyed);
  assert_ptr_equal(table->get_user_data(args.memory, &key), &one);
  table->set_user_data(args.memory, &key, &ten, count_destroyed);
  assert_int_equal(destroyed, 1);
  stop();
  assert_int_equal(destroyed, 21);
  start(true);
}

static void options_are_checked(void** state) {
  PJRT_Client* none;
  (void)state;
  PJRT_NamedValue option = string_option("colour", "red");
  assert_fails(create_client(&option, 1, &none), INVALID_ARGUMENT,
               "create option 'colour'");
  // No driver is looked for, as the plugins of GPUs would.
  setenv("PESTLE_BACKEND_PATH", "/nowhere", 1);
  option = string_option("device", "toaster");
  assert_fails(create_client(&option, 1, &none), NOT_FOUND, "toaster");
  option = string_option("numerics", "sloppy");
  assert_fails(create_client(&option, 1, &none), INVALID_ARGUMENT,
               "default, strict or fast");
}

#define BOTH(test)                                           \
  cmocka_unit_test_setup_teardown(test, start_here, finish), \
      cmocka_unit_test_setup_teardown(test, start_queued, finish)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(runs_a_program),
      BOTH(chains_executions),
      BOTH(donated_input_is_gone_at_once),
      BOTH(donor_is_consumed_and_a_veto_counts),
      BOTH(host_memory_is_never_written),
      BOTH(seen_memory_is_never_written),
      BOTH(pinned_memory_outlives_its_deletion),
      BOTH(copies_share_until_one_is_donated),
      BOTH(strided_arrays_are_packed),
      BOTH(narrow_integers_keep_their_sign),
      BOTH(empty_and_scalar_buffers),
      BOTH(executables_describe_themselves),
      BOTH(executables_travel_as_bytes),
      BOTH(tokens_come_and_go),
      BOTH(views_come_back_to_their_owner),
      BOTH(errors_go_along_with_buffers),
      BOTH(errors_name_what_is_wrong),
      BOTH(failed_execution_gives_back),
      BOTH(callbacks_come_once),
      BOTH(framework_sets_events_of_its_own),
      BOTH(memories_keep_values),
      BOTH(options_are_checked),
  };
  return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
