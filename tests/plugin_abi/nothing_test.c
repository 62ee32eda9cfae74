// SPDX-License-Identifier: Apache-2.0
// Backends that report success and give nothing, or describe a target that is
// none: each is a sentence that names the function or the number, where the host
// used to follow the NULL or divide by the 0.
#include "pestle/pestle.h"
#include "test.h"

static const char text[] =
    "func.func public @main(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<4x9xf32>\n"
    "  return %0 : tensor<4x9xf32>\n"
    "}\n";

// Casts, sums, a product, what moves elements and nothing else, and an argument
// that is not used: of the dtypes that plugins do not see.
static const char unseen_text[] =
    "func.func public @main(%x: tensor<4x9xf4E2M1FN>, "
    "%y: tensor<4x9xf6E2M3FN>, %z: tensor<4x9xf6E3M2FN>) -> "
    "(tensor<4x9xf6E3M2FN>, tensor<9x4xf4E2M1FN>, tensor<4x4xf6E2M3FN>) {\n"
    "  %0 = stablehlo.convert %x : (tensor<4x9xf4E2M1FN>) -> "
    "tensor<4x9xf6E3M2FN>\n"
    "  %1 = stablehlo.add %0, %0 : tensor<4x9xf6E3M2FN>\n"
    "  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x9xf4E2M1FN>) -> "
    "tensor<9x4xf4E2M1FN>\n"
    "  %3 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [1] : "
    "(tensor<4x9xf6E2M3FN>, tensor<4x9xf6E2M3FN>) -> tensor<4x4xf6E2M3FN>\n"
    "  return %1, %2, %3 : tensor<4x9xf6E3M2FN>, tensor<9x4xf4E2M1FN>, "
    "tensor<4x4xf6E2M3FN>\n"
    "}\n";

// What the backend below is, beside right.
static struct {
  bool no_artifact, no_toolchain, no_entry, loads, makes_memory;
  bool makes_streams;
  bool is_old;
  int32_t type, compiled;
  void (*spoil)(pestle_target_caps_t* caps);
} now;

static const pestle_host_t* host;

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)self, (void)cpu;
  strcpy(out_caps->name, "hollow");
  out_caps->device_type = now.type;
  out_caps->vector_bytes = 32;
  out_caps->max_lanes = 16;
  out_caps->cores = 2;
  out_caps->scratch_bytes = 1 << 16;
  memset(out_caps->op_dtypes, 0xff, sizeof(out_caps->op_dtypes));
  if (now.spoil) now.spoil(out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  *out_text = now.no_toolchain ? NULL : "hollow";
  return NULL;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  (void)self, (void)options;
  // It claims every bit, and yet has what has a bit alone.
  for (uint32_t i = 0; i < kernel->inst_count; ++i)
    assert_true(pestle_kir_inst(kernel, i)->type < PESTLE_PLUGIN_DTYPES);
  for (uint32_t i = 0; i < kernel->buffer_count; ++i)
    assert_true(pestle_kir_buffer(kernel, i)->dtype < PESTLE_PLUGIN_DTYPES);
  ++now.compiled;
  if (now.no_artifact) return NULL;
  out_artifact->data = host->alloc(host->self, 64);
  out_artifact->size = out_artifact->data ? 64 : 0;
  if (out_artifact->data) memset(out_artifact->data, 0, 64);
  return NULL;
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  (void)self, (void)device, (void)artifact, (void)size;
  *out_loaded = now.loads ? (pestle_loaded_t*)&now : NULL;
  return NULL;
}

static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self;
  assert_ptr_equal(loaded, &now);
}

static pestle_status_t cpu_entry(void* self, pestle_loaded_t* loaded,
                                 pestle_cpu_entry_t* out_entry,
                                 const void** out_entry_self) {
  (void)self, (void)loaded, (void)out_entry, (void)out_entry_self;
  return NULL;
}

static char memory[1 << 12];

static pestle_status_t allocate(void* self, int32_t device, size_t size,
                                void** out_data) {
  (void)self, (void)device, (void)size;
  *out_data = now.makes_memory ? memory : NULL;
  return NULL;
}

static void deallocate(void* self, int32_t device, void* data, size_t size) {
  (void)self, (void)device, (void)size;
  assert_ptr_equal(data, memory);
}

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  (void)self, (void)device;
  if (now.makes_streams) *out_stream = (pestle_device_stream_t*)&now;
  return NULL;
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* stream) {
  (void)self, (void)stream;
  return NULL;
}

// Never called with what was never made.
static void stream_destroy(void* self, pestle_device_stream_t* stream) {
  (void)self;
  assert_ptr_equal(stream, &now);
}

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  (void)self, (void)device, (void)out_event;
  return NULL;
}

static void event_destroy(void* self, pestle_device_event_t* event) {
  (void)self, (void)event;
  fail();
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  (void)self, (void)event, (void)value;
  return NULL;
}

static pestle_status_t event_use(void* self, pestle_device_event_t* event,
                                 pestle_device_stream_t* stream,
                                 uint64_t value) {
  (void)self, (void)event, (void)stream, (void)value;
  return NULL;
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  (void)self, (void)event, (void)value;
  return true;
}

static const pestle_backend_t* init(const pestle_host_t* services,
                                    pestle_status_t* out_status) {
  // No slot to print by: any part may be absent.
  static const pestle_target_api_t target = {
      .struct_size = offsetof(pestle_target_api_t, print),
      .describe = describe,
      .toolchain_id = toolchain_id,
      .compile = compile};
  static const pestle_device_api_t device = {
      .struct_size = sizeof(device),
      .load = load,
      .unload = unload,
      .cpu_entry = cpu_entry,
      .allocate = allocate,
      .deallocate = deallocate,
      .stream_create = stream_create,
      .stream_synchronize = stream_synchronize,
      .stream_destroy = stream_destroy,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_wait = event_wait,
      .event_wait_stream = event_use,
      .event_signal = event_use,
      .event_is_signalled = event_is_signalled};
  static pestle_backend_t backend = {.struct_size = sizeof(backend),
                                     .name = "hollow",
                                     .score = 10,
                                     .device_count = 1,
                                     .target = &target,
                                     .device = &device};
  (void)out_status;
  host = services;
  backend.device_type = now.type;
  return &backend;
}

static const pestle_backend_abi_info_t* abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("hollow", "1");
  return &info;
}

static const pestle_backend_abi_info_t* old_abi_info(void) {
  static pestle_backend_abi_info_t info;
  info = *abi_info();
  info.abi_minor = 2;
  return &info;
}

// A context with the backend alone, as |now| has it, and its device.
static pestle_context_t* open_context(pestle_device_t** out_device) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .backend_path = "/nonexistent"};
  pestle_context_t* context;
  if (!now.type) now.type = PESTLE_DEVICE_CPU;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_add_backend(
      context, now.is_old ? old_abi_info : abi_info, NULL, init));
  assert_ok(pestle_context_device(context, "hollow", out_device));
  return context;
}

static void count_text(void* user, pestle_stage_t stage, const char* name,
                       const char* data, size_t size) {
  (void)name, (void)data, (void)size;
  ((int*)user)[stage]++;
}

// Compiles |source|, and runs it when |runs|.
static pestle_status_t try_text(pestle_context_t* context,
                                pestle_device_t* device, const char* source,
                                bool runs) {
  int texts[PESTLE_STAGE_COUNT] = {0};
  pestle_module_t* module;
  pestle_plan_t* plan;
  assert_ok(
      pestle_module_parse(context, source, strlen(source), "m.mlir", &module));
  pestle_compile_options_t options = {
      .struct_size = sizeof(options),
      .no_cache = true,
      .dump = count_text,
      .dump_user = texts,
      .dump_stages = 1u << PESTLE_STAGE_SOURCE | 1u << PESTLE_STAGE_ASM};
  pestle_status_t status =
      pestle_compile(context, module, device, &options, &plan);
  assert_int_equal(texts[PESTLE_STAGE_SOURCE] + texts[PESTLE_STAGE_ASM], 0);
  pestle_module_release(module);
  if (status) return status;
  pestle_executable_t* executable = NULL;
  if (runs) {
    status = pestle_executable_create(context, plan, device, &executable);
  }
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  return status;
}

static pestle_status_t try_plan(pestle_context_t* context,
                                pestle_device_t* device, bool runs) {
  return try_text(context, device, text, runs);
}

static void reset(void) {
  memset(&now, 0, sizeof(now));
}

static void test_compiler(void** state) {
  (void)state;
  pestle_device_t* device;
  reset();
  pestle_context_t* context = open_context(&device);
  // Without a slot to print by there is nothing to dump.
  assert_ok(try_plan(context, device, false));
  assert_error(try_plan(context, device, true), INTERNAL,
               "says that load() has succeeded, but it gave nothing");
  now.loads = true;
  assert_error(try_plan(context, device, true), INTERNAL,
               "says that cpu_entry() has succeeded, but it gave nothing");
  now.no_artifact = true;
  assert_error(try_plan(context, device, false), INTERNAL,
               "says that compile() has succeeded, but it gave no artifact");
  now.no_toolchain = true;
  assert_error(try_plan(context, device, false), INTERNAL,
               "toolchain_id() has succeeded, but it gave no text");
  pestle_context_release(context);
}

static void test_device(void** state) {
  (void)state;
  pestle_device_t* device;
  pestle_buffer_t* buffer;
  pestle_stream_t* stream;
  pestle_event_t* event;
  reset();
  now.type = PESTLE_DEVICE_EXT;
  pestle_context_t* context = open_context(&device);
  assert_error(pestle_buffer_create(device, 16, &buffer), INTERNAL,
               "says that allocate() has succeeded, but it gave nothing");
  assert_error(pestle_stream_create(device, &stream), INTERNAL,
               "says that stream_create() has succeeded, but it gave nothing");
  // The backend's event is made when a stream is first to signal it.
  now.makes_streams = true;
  assert_ok(pestle_stream_create(device, &stream));
  assert_ok(pestle_event_create(device, &event));
  assert_error(pestle_event_record(event, stream), INTERNAL,
               "says that event_create() has succeeded, but it gave nothing");
  pestle_event_release(event);
  pestle_stream_release(stream);
  now.makes_memory = true;
  assert_ok(pestle_buffer_create(device, 16, &buffer));
  pestle_buffer_release(buffer);
  // Without memory numbers of the backend's own the host keeps the limit.
  assert_ok(pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, 128, NULL));
  assert_error(pestle_buffer_create(device, 129, &buffer), RESOURCE_EXHAUSTED,
               "raise its memory limit");
  assert_ok(pestle_buffer_create(device, 128, &buffer));
  pestle_buffer_release(buffer);
  pestle_context_release(context);
}

static void no_lanes(pestle_target_caps_t* caps) {
  caps->max_lanes = 0;
}
static void odd_vector(pestle_target_caps_t* caps) {
  caps->vector_bytes = 48;
}
static void wide_vector(pestle_target_caps_t* caps) {
  caps->vector_bytes = 1u << 31;
}
static void odd_subgroup(pestle_target_caps_t* caps) {
  caps->subgroup = 33;
}
static void many_units(pestle_target_caps_t* caps) {
  caps->intrinsic_count = 17;
}
static void no_group(pestle_target_caps_t* caps) {
  caps->flags |= PESTLE_TARGET_LANES;
}
// Little, but something that can be scheduled for.
static void poor(pestle_target_caps_t* caps) {
  caps->vector_bytes = 2;
  caps->vector_registers = 1;
  caps->max_lanes = 1;
  caps->scratch_bytes = 0;
}

static void test_caps(void** state) {
  (void)state;
  static const struct {
    void (*spoil)(pestle_target_caps_t* caps);
    const char* text;
  } rows[] = {
      {no_lanes, "max_lanes 0; expected at least 1"},
      {odd_vector, "vector_bytes 48; expected 0 or a power of two"},
      {wide_vector, "vector_bytes 2147483648; expected"},
      {odd_subgroup, "subgroup 33; expected 0 or a power of two"},
      {many_units, "intrinsic_count 17; expected at most 16"},
      {no_group, "max_group_lanes 0; expected at least 1 beside"},
  };
  pestle_device_t* device;
  reset();
  pestle_context_t* context = open_context(&device);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
    now.spoil = rows[i].spoil;
    assert_error(pestle_device_caps(device, NULL, &caps), INCOMPATIBLE,
                 rows[i].text);
    assert_error(try_plan(context, device, false), INCOMPATIBLE, rows[i].text);
  }
  now.spoil = poor;
  assert_ok(try_plan(context, device, false));
  // Lanes without numbers along axes are fine: what is built in has none.
  pestle_device_t* ref;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  assert_ok(pestle_context_device(context, "ref", &ref));
  assert_ok(pestle_device_caps(ref, "simt", &caps));
  assert_true(caps.flags & PESTLE_TARGET_LANES);
  pestle_context_release(context);
}

static void test_unseen_dtypes(void** state) {
  (void)state;
  pestle_device_t* device;
  reset();
  pestle_context_t* context = open_context(&device);
  assert_ok(try_text(context, device, unseen_text, false));
  assert_true(now.compiled >= 3);
  pestle_context_release(context);
  // Nor has what it claims of dtypes that came after it a meaning.
  for (int old = 0; old < 2; ++old) {
    now.is_old = old;
    context = open_context(&device);
    pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
    assert_ok(pestle_device_caps(device, NULL, &caps));
    assert_int_equal(caps.op_dtypes[PESTLE_KIR_CAST] >> PESTLE_MBAR,
                     old ? 1 : 0x7f);
    assert_ok(try_text(context, device, unseen_text, false));
    pestle_context_release(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compiler),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_caps),
      cmocka_unit_test(test_unseen_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
