// SPDX-License-Identifier: Apache-2.0
// Functions that JAX rarely calls and other frameworks may: topologies, compiling
// ahead of time, loading, layouts, buffers under another type.
#include "driver.h"

#define DOUBLE                                                       \
  "module @double {\n"                                               \
  "  func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n" \
  "    %0 = stablehlo.add %a, %a : tensor<3xf32>\n"                  \
  "    return %0 : tensor<3xf32>\n  }\n}\n"

static void expect_double(PJRT_LoadedExecutable* loaded) {
  float x[3] = {1, 2, 3};
  PJRT_Buffer *input = put(x, 3), *output;
  execute(loaded, &input, 1, &output);
  get(output, x, 3);
  assert_true(x[0] == 2 && x[1] == 4 && x[2] == 6);
  destroy_buffer(input);
  destroy_buffer(output);
}

// Bytes that come again are the program that they were, with options of its own.
static void same_bytes_again(void** state) {
  (void)state;
  PJRT_LoadedExecutable* first = compile(DOUBLE);
  PJRT_LoadedExecutable* second = compile(DOUBLE);
  expect_double(second);
  destroy_loaded(first);
  expect_double(second);
  destroy_loaded(second);
  // More programs than are remembered, then the first again.
  for (int i = 0; i < 140; ++i) {
    char text[600];
    snprintf(text, sizeof(text),
             "module @m%d { func.func public @main(%%a: tensor<3xf32>) -> "
             "tensor<3xf32> { return %%a : tensor<3xf32> } }",
             i);
    PJRT_LoadedExecutable* other = compile(text);
    PJRT_Executable* executable = executable_of(other);
    ARGS(PJRT_Executable_Name, name);
    name.executable = executable;
    assert_fine(api->PJRT_Executable_Name(&name));
    snprintf(text, sizeof(text), "m%d", i);
    assert_string_equal(name.executable_name, text);
    destroy_executable(executable);
    destroy_loaded(other);
  }
  PJRT_LoadedExecutable* third = compile(DOUBLE);
  expect_double(third);
  destroy_loaded(third);
}

static PJRT_Executable* compile_ahead(PJRT_TopologyDescription* topology) {
  PJRT_Program program = {.struct_size = sizeof(program),
                          .code = (char*)(uintptr_t)DOUBLE,
                          .code_size = strlen(DOUBLE),
                          .format = "mlir",
                          .format_size = 4};
  ARGS(PJRT_Compile, args);
  args.topology = topology;
  args.program = &program;
  args.compile_options = "";
  args.compile_options_size = 0;
  args.client = NULL;
  assert_fine(api->PJRT_Compile(&args));
  return args.executable;
}

static uint64_t fingerprint(PJRT_TopologyDescription* topology) {
  ARGS(PJRT_TopologyDescription_Fingerprint, args);
  args.topology = topology;
  assert_fine(api->PJRT_TopologyDescription_Fingerprint(&args));
  return args.fingerprint;
}

static void compiled_for_a_client(void** state) {
  (void)state;
  ARGS(PJRT_Client_TopologyDescription, topology);
  topology.client = client;
  assert_fine(api->PJRT_Client_TopologyDescription(&topology));
  PJRT_Executable* executable = compile_ahead(topology.topology);
  ARGS(PJRT_Client_Load, load);
  load.client = client;
  load.executable = executable;
  load.compile_options = NULL;
  load.compile_options_size = 0;
  assert_fine(api->PJRT_Client_Load(&load));
  destroy_executable(executable);
  expect_double(load.loaded_executable);
  destroy_loaded(load.loaded_executable);
}

// A topology of its own travels as bytes; what is compiled for it too.
static void compiled_without_a_client(void** state) {
  const PJRT_NamedValue option = string_option("device", "cpu");
  (void)state;
  ARGS(PJRT_TopologyDescription_Create, create);
  create.topology_name = "";
  create.topology_name_size = 0;
  create.create_options = &option;
  create.num_options = 1;
  assert_fine(api->PJRT_TopologyDescription_Create(&create));
  ARGS(PJRT_TopologyDescription_Serialize, bytes);
  bytes.topology = create.topology;
  assert_fine(api->PJRT_TopologyDescription_Serialize(&bytes));
  ARGS(PJRT_TopologyDescription_Deserialize, again);
  again.serialized_topology = bytes.serialized_bytes;
  again.serialized_topology_size = bytes.serialized_bytes_size;
  assert_fine(api->PJRT_TopologyDescription_Deserialize(&again));
  assert_true(fingerprint(create.topology) == fingerprint(again.topology));
  again.serialized_topology_size = 5;
  PJRT_TopologyDescription* topology = again.topology;
  assert_fails(api->PJRT_TopologyDescription_Deserialize(&again),
               INVALID_ARGUMENT, "no topology");
  bytes.serialized_topology_deleter(bytes.serialized_topology);
  PJRT_Executable* executable = compile_ahead(topology);
  ARGS(PJRT_Client_Load, load);
  load.client = client;
  load.executable = executable;
  assert_fails(api->PJRT_Client_Load(&load), INVALID_ARGUMENT,
               "another client");
  PJRT_TopologyDescription* both[] = {create.topology, topology};
  for (int i = 0; i < 2; ++i) {
    ARGS(PJRT_TopologyDescription_Destroy, destroy);
    destroy.topology = both[i];
    assert_fine(api->PJRT_TopologyDescription_Destroy(&destroy));
  }
  // It outlives the topology that it was made for.
  ARGS(PJRT_Executable_Serialize, travels);
  travels.executable = executable;
  assert_fine(api->PJRT_Executable_Serialize(&travels));
  destroy_executable(executable);
  ARGS(PJRT_Executable_DeserializeAndLoad, args);
  args.client = client;
  args.serialized_executable = travels.serialized_bytes;
  args.serialized_executable_size = travels.serialized_bytes_size;
  args.overridden_serialized_compile_options = NULL;
  args.overridden_serialized_compile_options_size = 0;
  assert_fine(api->PJRT_Executable_DeserializeAndLoad(&args));
  travels.serialized_executable_deleter(travels.serialized_executable);
  expect_double(args.loaded_executable);
  destroy_loaded(args.loaded_executable);
}

static void options_come_back(void** state) {
  // executable_build_options { num_replicas: 1 }
  static const char options[] = {26, 2, 32, 1};
  PJRT_LoadedExecutable* loaded;
  (void)state;
  assert_fine(try_compile_with(DOUBLE, options, sizeof(options), &loaded));
  PJRT_Executable* executable = executable_of(loaded);
  ARGS(PJRT_Executable_GetCompileOptions, args);
  args.executable = executable;
  assert_fine(api->PJRT_Executable_GetCompileOptions(&args));
  assert_int_equal(args.serialized_bytes_size, sizeof(options));
  assert_memory_equal(args.serialized_bytes, options, sizeof(options));
  args.serialized_compile_options_deleter(args.serialized_compile_options);
  destroy_executable(executable);
  destroy_loaded(loaded);
}

// To ask for an executable may not fail: nothing is allocated for it, and each who has
// asked gives it back.
static void executables_cannot_fail(void** state) {
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(DOUBLE);
  PJRT_Executable *first = executable_of(loaded),
                  *second = executable_of(loaded);
  assert_ptr_equal(first, second);
  destroy_executable(first);
  destroy_loaded(loaded);
  ARGS(PJRT_Executable_NumOutputs, args);
  args.executable = second;
  assert_fine(api->PJRT_Executable_NumOutputs(&args));
  assert_int_equal(args.num_outputs, 1);
  destroy_executable(second);
}

static void contexts_of_executions(void** state) {
  (void)state;
  ARGS(PJRT_ExecuteContext_Create, args);
  assert_fine(api->PJRT_ExecuteContext_Create(&args));
  ARGS(PJRT_ExecuteContext_Destroy, destroy);
  destroy.context = args.context;
  assert_fine(api->PJRT_ExecuteContext_Destroy(&destroy));
}

static void bytes_under_another_type(void** state) {
  const float x[] = {1, -2, 3, 4};
  const int64_t dims[] = {2, 8};
  unsigned char seen[16];
  (void)state;
  PJRT_Buffer* buffer = put(x, 4);
  ARGS(PJRT_Buffer_Bitcast, args);
  args.buffer = buffer;
  args.element_type = PJRT_Buffer_Type_U8;
  args.dims = dims;
  args.num_dims = 2;
  args.device_layout = NULL;
  assert_fine(api->PJRT_Buffer_Bitcast(&args));
  destroy_buffer(buffer);
  assert_fine(get_raw(args.out_buffer, seen, sizeof(seen)));
  assert_memory_equal(seen, x, sizeof(seen));
  buffer = args.out_buffer;
  args.buffer = buffer;
  args.element_type = PJRT_Buffer_Type_F64;
  assert_fails(api->PJRT_Buffer_Bitcast(&args), INVALID_ARGUMENT, "128");
  destroy_buffer(buffer);
}

static void copies_to_a_place_told_later(void** state) {
  const float x[] = {1, 2, 3, 4};
  float part[2] = {0};
  (void)state;
  PJRT_Buffer* buffer = put(x, 4);
  ARGS(PJRT_Buffer_CopyRawToHostFuture, args);
  args.buffer = buffer;
  args.offset = 4;
  args.transfer_size = 8;
  assert_fine(api->PJRT_Buffer_CopyRawToHostFuture(&args));
  destroy_buffer(buffer);
  assert_false(is_ready(args.event));
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args told = {
      .struct_size = sizeof(told),
      .callback_data = args.callback_data,
      .dst = part};
  args.future_ready_callback(&told);
  assert_fine(await(args.event));
  assert_true(part[0] == 2 && part[1] == 3);
  // Whoever was to say where has failed.
  args.buffer = buffer = put(x, 4);
  assert_fine(api->PJRT_Buffer_CopyRawToHostFuture(&args));
  told.callback_data = args.callback_data;
  told.error_code = PJRT_Error_Code_ABORTED;
  told.error_message = "no room";
  told.error_message_size = 7;
  args.future_ready_callback(&told);
  assert_fails(await(args.event), ABORTED, "no room");
  // Whoever was to say where says nothing.
  assert_fine(api->PJRT_Buffer_CopyRawToHostFuture(&args));
  told.callback_data = args.callback_data;
  told.error_code = PJRT_Error_Code_OK;
  told.dst = NULL;
  args.future_ready_callback(&told);
  assert_fails(await(args.event), INVALID_ARGUMENT, "NULL as its dst");
  args.offset = 12;
  assert_fails(api->PJRT_Buffer_CopyRawToHostFuture(&args), INVALID_ARGUMENT,
               "lead out");
  destroy_buffer(buffer);
}

static const PJRT_Layouts_Extension* layouts(void) {
  const PJRT_Extension_Base* e = api->extension_start;
  while (e && e->type != PJRT_Extension_Type_Layouts)
    e = e->next;
  assert_non_null(e);
  return (const PJRT_Layouts_Extension*)(const void*)e;
}

static void expect_layout(PJRT_Layouts_MemoryLayout* layout,
                          const char* wanted) {
  ARGS(PJRT_Layouts_MemoryLayout_Serialize, args);
  args.layout = layout;
  assert_fine(layouts()->PJRT_Layouts_MemoryLayout_Serialize(&args));
  assert_int_equal(args.serialized_bytes_size, strlen(wanted));
  assert_memory_equal(args.serialized_bytes, wanted, strlen(wanted));
  args.serialized_layout_deleter(args.serialized_layout);
}

static void layouts_are_row_major(void** state) {
  const int64_t dims[20] = {2, 3, 4};
  (void)state;
  ARGS(PJRT_Layouts_PJRT_Client_GetDefaultLayout, args);
  args.client = client;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 3;
  assert_fine(layouts()->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&args));
  expect_layout(args.layout, "{2,1,0}");
  ARGS(PJRT_Layouts_MemoryLayout_Destroy, destroy);
  destroy.layout = args.layout;
  assert_fine(layouts()->PJRT_Layouts_MemoryLayout_Destroy(&destroy));
  args.num_dims = 17;
  assert_fails(layouts()->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&args),
               UNIMPLEMENTED, "17");
  PJRT_LoadedExecutable* loaded = compile(DOUBLE);
  PJRT_Executable* executable = executable_of(loaded);
  ARGS(PJRT_Layouts_PJRT_Executable_GetOutputLayouts, out);
  out.executable = executable;
  assert_fine(layouts()->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(&out));
  assert_int_equal(out.num_outputs, 1);
  expect_layout(out.layouts[0], "{0}");
  destroy_executable(executable);
  destroy_loaded(loaded);
}

// A program whose argument and second result are in columns.
#define COLUMNS                                                             \
  "module @columns { func.func public @main(%a: tensor<2x3xf32> "           \
  "{mhlo.layout_mode = \"{0,1}\"}, %b: tensor<2x3xf32> "                    \
  "{mhlo.layout_mode = \"auto\"}) -> (tensor<2x3xf32> {mhlo.layout_mode = " \
  "\"default\"}, tensor<2x3xf32> {mhlo.layout_mode = \"{0,1}\"}) { "        \
  "%0 = stablehlo.subtract %a, %b : tensor<2x3xf32> "                       \
  "return %0, %b : tensor<2x3xf32>, tensor<2x3xf32> } }"

static PJRT_Error* put_in(const float* data, const int64_t* minor_to_major,
                          PJRT_Buffer** out_buffer) {
  const int64_t dims[] = {2, 3};
  PJRT_Buffer_MemoryLayout layout = {
      .struct_size = sizeof(layout),
      .tiled = {.struct_size = sizeof(layout.tiled),
                .minor_to_major = minor_to_major,
                .minor_to_major_size = 2},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 2;
  args.byte_strides = NULL;
  args.num_byte_strides = 0;
  args.host_buffer_semantics =
      PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device;
  args.memory = NULL;
  args.device_layout = &layout;
  PJRT_Error* error = api->PJRT_Client_BufferFromHostBuffer(&args);
  if (!error) {
    assert_fine(await(args.done_with_host_buffer));
    *out_buffer = args.buffer;
  }
  return error;
}

static void layouts_that_programs_ask_for(void** state) {
  const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 1, 1, 2, 2, 2};
  const int64_t columns[] = {0, 1}, rows[] = {1, 0};
  float got[6];
  PJRT_Buffer *inputs[2], *outputs[2];
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(COLUMNS);
  PJRT_Executable* executable = executable_of(loaded);
  ARGS(PJRT_Layouts_PJRT_Executable_GetParameterLayouts, in);
  in.executable = executable;
  assert_fine(layouts()->PJRT_Layouts_PJRT_Executable_GetParameterLayouts(&in));
  expect_layout(in.layouts[0], "{0,1}");
  expect_layout(in.layouts[1], "{1,0}");
  ARGS(PJRT_Layouts_PJRT_Executable_GetOutputLayouts, out);
  out.executable = executable;
  assert_fine(layouts()->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(&out));
  expect_layout(out.layouts[0], "{1,0}");
  expect_layout(out.layouts[1], "{0,1}");
  assert_fine(put_in(x, columns, &inputs[0]));
  assert_fine(put_in(y, rows, &inputs[1]));
  // It lies so, and is read as it was.
  const float lying[] = {1, 4, 2, 5, 3, 6};
  assert_memory_equal(address_of(inputs[0]), lying, sizeof(lying));
  get(inputs[0], got, 6);
  assert_memory_equal(got, x, sizeof(x));
  ARGS(PJRT_Layouts_PJRT_Buffer_MemoryLayout, of);
  of.buffer = inputs[0];
  assert_fine(layouts()->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&of));
  expect_layout(of.layout, "{0,1}");
  ARGS(PJRT_Layouts_MemoryLayout_Destroy, destroy);
  destroy.layout = of.layout;
  assert_fine(layouts()->PJRT_Layouts_MemoryLayout_Destroy(&destroy));
  execute(loaded, inputs, 2, outputs);
  get(outputs[0], got, 6);
  const float difference[] = {0, 1, 2, 2, 3, 4};
  assert_memory_equal(got, difference, sizeof(got));
  get(outputs[1], got, 6);
  assert_memory_equal(got, y, sizeof(got));
  const float turned[] = {1, 2, 1, 2, 1, 2};
  assert_memory_equal(address_of(outputs[1]), turned, sizeof(turned));
  ARGS(PJRT_Buffer_GetMemoryLayout, memory);
  memory.buffer = outputs[1];
  assert_fine(api->PJRT_Buffer_GetMemoryLayout(&memory));
  assert_int_equal(memory.layout.tiled.minor_to_major[0], 0);
  // The same bytes again, from the table of what is known.
  PJRT_LoadedExecutable* again = compile(COLUMNS);
  PJRT_Buffer* twice[2];
  execute(again, inputs, 2, twice);
  get(twice[0], got, 6);
  assert_memory_equal(got, difference, sizeof(got));
  // What lies otherwise is refused, by name.
  PJRT_Buffer* swapped[] = {inputs[1], inputs[1]};
  assert_fails(try_execute(loaded, swapped, 2, -1, twice, NULL),
               INVALID_ARGUMENT,
               "argument 0 of columns is a f32 tensor of 2 x 3; the program "
               "takes a f32 tensor of 2 x 3 in layout {0,1}");
  ARGS(PJRT_Executable_Serialize, serialize);
  serialize.executable = executable;
  assert_fails(api->PJRT_Executable_Serialize(&serialize), UNIMPLEMENTED,
               "layouts of its own");
  for (int i = 0; i < 2; ++i) {
    destroy_buffer(inputs[i]);
    destroy_buffer(outputs[i]);
    destroy_buffer(twice[i]);
  }
  destroy_executable(executable);
  destroy_loaded(again);
  destroy_loaded(loaded);
}

static void layouts_that_cannot_be(void** state) {
  static const struct {
    const char* mode;
    PJRT_Error_Code code;
    const char* says;
  } rows[] = {
      {"{0,0}", PJRT_Error_Code_INVALID_ARGUMENT, "no order of its axes"},
      {"{0}", PJRT_Error_Code_INVALID_ARGUMENT, "no order of its axes"},
      {"{0,2}", PJRT_Error_Code_INVALID_ARGUMENT, "no order of its axes"},
      {"0,1", PJRT_Error_Code_INVALID_ARGUMENT, "no order of its axes"},
      {"{0,1:T(8,128)}", PJRT_Error_Code_UNIMPLEMENTED, "tiles"},
  };
  const int64_t bad[] = {0, 0};
  const float x[6] = {0};
  PJRT_Buffer* none;
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    char text[512];
    PJRT_LoadedExecutable* loaded;
    snprintf(text, sizeof(text),
             "module { func.func public @main(%%a: tensor<2x3xf32> "
             "{mhlo.layout_mode = \"%s\"}) -> tensor<2x3xf32> { return %%a : "
             "tensor<2x3xf32> } }",
             rows[i].mode);
    assert_fails_(try_compile(text, &loaded), rows[i].code, rows[i].says,
                  __FILE__, __LINE__);
  }
  assert_fails(put_in(x, bad, &none), INVALID_ARGUMENT, "no permutation");
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
      cmocka_unit_test(same_bytes_again),
      cmocka_unit_test(compiled_for_a_client),
      cmocka_unit_test(compiled_without_a_client),
      cmocka_unit_test(options_come_back),
      cmocka_unit_test(executables_cannot_fail),
      cmocka_unit_test(contexts_of_executions),
      cmocka_unit_test(bytes_under_another_type),
      cmocka_unit_test(copies_to_a_place_told_later),
      cmocka_unit_test(layouts_are_row_major),
      cmocka_unit_test(layouts_that_programs_ask_for),
      cmocka_unit_test(layouts_that_cannot_be),
  };
  return cmocka_run_group_tests_name("slots", tests, begin, end);
}
