// SPDX-License-Identifier: Apache-2.0
// A device whose description has no integers of 64 bits: threefry and arithmetic of
// i64 and ui64 give the bits that they have elsewhere, on the device.
#include <stdlib.h>
#include <string.h>

#include "pestle/compile.h"
#include "pestle/graph.h"
#include "pestle/kir.h"
#include "runtime/registry.h"
#include "test.h"

// --- The backend "short": ref without 64-bit integers ---

static const pestle_backend_t* g_ref;

typedef struct short_t {
  pestle_backend_t table;
  const pestle_host_t* host;
} short_t;

static const uint32_t wide =
    (UINT32_C(1) << PESTLE_I64) | (UINT32_C(1) << PESTLE_U64);

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)self;
  PESTLE_TRY(g_ref->target->describe(g_ref->self, cpu, out_caps));
  strcpy(out_caps->name, "short");
  for (size_t op = 0; op < PESTLE_KIR_OP_LIMIT; ++op)
    out_caps->op_dtypes[op] &= ~wide;
  out_caps->storage_dtypes &= ~wide;
  return NULL;
}
static pestle_status_t toolchain(void* self, const char** out_text) {
  (void)self;
  *out_text = "short-1";
  return NULL;
}

// Nothing that the description lacks may come here.
static pestle_status_t compile_kernel(void* self, const pestle_kir_t* kernel,
                                      const pestle_kernel_options_t* options,
                                      pestle_blob_t* out_artifact) {
  (void)self;
  for (uint32_t i = 0; i < kernel->buffer_count; ++i) {
    if (wide >> pestle_kir_buffer(kernel, i)->dtype & 1)
      fail_msg("a kernel with buffers of 64-bit integers came to the device");
  }
  return g_ref->target->compile(g_ref->self, kernel, options, out_artifact);
}
static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  (void)self;
  return g_ref->device->load(g_ref->self, device, artifact, size, out_loaded);
}
static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self;
  g_ref->device->unload(g_ref->self, loaded);
}
static pestle_status_t entry(void* self, pestle_loaded_t* loaded,
                             pestle_cpu_entry_t* out_entry,
                             const void** out_entry_self) {
  (void)self;
  return g_ref->device->cpu_entry(g_ref->self, loaded, out_entry,
                                  out_entry_self);
}
static void deinit(void* self) {
  const pestle_host_t* host = ((short_t*)self)->host;
  host->free(host->self, self, sizeof(short_t));
}
static const pestle_backend_abi_info_t* abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("short", "short-build");
  return &info;
}
static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  static const pestle_target_api_t target = {.struct_size = sizeof(target),
                                             .describe = describe,
                                             .toolchain_id = toolchain,
                                             .compile = compile_kernel};
  static const pestle_device_api_t device = {.struct_size = sizeof(device),
                                             .load = load,
                                             .unload = unload,
                                             .cpu_entry = entry};
  short_t* self = host->alloc(host->self, sizeof(*self));
  *out_status = NULL;
  if (!self) return NULL;
  *self = (short_t){.table = {.struct_size = offsetof(pestle_backend_t, flags),
                              .name = "short",
                              .device_type = PESTLE_DEVICE_CPU,
                              .score = 1000,
                              .device_count = 1,
                              .self = self,
                              .target = &target,
                              .device = &device,
                              .deinit = deinit},
                    .host = host};
  return &self->table;
}

// --- Programs ---

enum { COUNT = 64, SIZE = COUNT * 8 };

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t *ref, *device;
  int fallbacks;
} fixture_t;

static void take_log(void* user, pestle_log_level_t level,
                     const char* message) {
  (void)level;
  if (strstr(message, "falls back")) ++((fixture_t*)user)->fallbacks;
}

static void begin(fixture_t* f) {
  memset(f, 0, sizeof(*f));
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .log = take_log,
                                      .log_user = f,
                                      .log_level = PESTLE_LOG_DEBUG,
                                      .threads = 2};
  assert_ok(pestle_context_create(&options, &f->context));
  assert_ok(pestle_context_device(f->context, "ref", &f->ref));
  g_ref = pestle_device_backend(f->ref);
  assert_ok(pestle_registry_add_static(f->context, abi_info, init));
  assert_ok(pestle_context_device(f->context, "short", &f->device));
}

// Numbers at the edges and in between.
static uint64_t number(uint64_t* state) {
  static const uint64_t edges[] = {0,
                                   1,
                                   UINT64_MAX,
                                   (uint64_t)INT64_MAX,
                                   (uint64_t)INT64_MIN,
                                   UINT32_MAX,
                                   (uint64_t)UINT32_MAX + 1,
                                   INT32_MAX,
                                   63,
                                   64};
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  if (*state >> 62 == 0) return edges[(*state >> 32) % 10];
  return *state ^ *state >> 29;
}

// Runs |text|, whose arguments are of |dtype| and shape [COUNT], on |device|.
static void run(fixture_t* f, pestle_device_t* device, const char* text,
                pestle_dl_dtype_t dtype, size_t results, size_t result_bytes,
                uint8_t* out) {
  uint64_t x[2][COUNT], state = 7;
  int64_t shape[] = {COUNT};
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  for (int a = 0; a < 2; ++a) {
    for (int i = 0; i < COUNT; ++i)
      x[a][i] = number(&state);
  }
  assert_ok(
      pestle_module_parse(f->context, text, strlen(text), "m.mlir", &module));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .verify = true};
  f->fallbacks = 0;
  assert_ok(pestle_compile(f->context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(f->context, plan, device, &executable));
  pestle_tensor_t in[2], outs[16];
  for (int a = 0; a < 2; ++a) {
    in[a] = (pestle_tensor_t){.data = x[a],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = 1,
                              .dtype = dtype,
                              .shape = shape};
  }
  for (size_t i = 0; i < results; ++i) {
    pestle_io_info_t io = pestle_executable_output(executable, i);
    outs[i] = (pestle_tensor_t){.data = out + i * result_bytes,
                                .device = {PESTLE_DEVICE_CPU, 0},
                                .ndim = 1,
                                .dtype = pestle_dtype_to_dlpack(io.dtype),
                                .shape = shape};
  }
  assert_ok(
      pestle_executable_run(executable, NULL, in, 2, outs, results, NULL));
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  pestle_module_release(module);
}

static void agree(fixture_t* f, const char* text, pestle_dl_dtype_t dtype,
                  size_t results) {
  static uint8_t got[16 * SIZE], wanted[16 * SIZE];
  memset(got, 0, sizeof(got));
  memset(wanted, 0, sizeof(wanted));
  run(f, f->ref, text, dtype, results, SIZE, wanted);
  run(f, f->device, text, dtype, results, SIZE, got);
  for (size_t i = 0; i < results; ++i) {
    if (memcmp(got + i * SIZE, wanted + i * SIZE, SIZE))
      fail_msg("result %zu has other bits", i);
  }
  assert_int_equal(f->fallbacks, 0);
}

#define T64 "tensor<64xi64>"
#define U64 "tensor<64xui64>"
#define BINARY(name, op, type) \
  "  %" name " = stablehlo." op " %x, %y : " type "\n"

// Arithmetic of |type|, and to and from narrower ones.
#define ARITHMETIC(type)                                                      \
  "func.func @main(%x: " type ", %y: " type ") -> (" type ", " type ", " type \
  ", " type ", " type ", " type ", " type ", " type ", " type ", " type       \
  ", tensor<64xi1>, tensor<64xi32>, tensor<64xf32>) {\n" BINARY(              \
      "a", "add", type) BINARY("b", "subtract", type)                         \
      BINARY("c", "multiply", type) BINARY("d", "divide", type) BINARY(       \
          "e", "remainder", type) BINARY("f", "shift_left", type)             \
          BINARY("g", "shift_right_logical", type) BINARY(                    \
              "h", "shift_right_arithmetic", type)                            \
              BINARY("i", "minimum", type) BINARY(                            \
                  "j", "xor",                                                 \
                  type) "  %k = stablehlo.compare LT, %x, %y : (" type        \
                        ", " type                                             \
                        ") -> tensor<64xi1>\n"                                \
                        "  %l = stablehlo.convert %x : (" type                \
                        ") -> tensor<64xi32>\n"                               \
                        "  %m = stablehlo.convert %y : (" type                \
                        ") -> tensor<64xf32>\n"                               \
                        "  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, "   \
                        "%k, %l, %m : " type ", " type ", " type ", " type    \
                        ", " type ", " type ", " type ", " type ", " type     \
                        ", " type                                             \
                        ", tensor<64xi1>, tensor<64xi32>, tensor<64xf32>\n}\n"

static void signed_arithmetic(void** state) {
  fixture_t f;
  (void)state;
  begin(&f);
  agree(&f, ARITHMETIC(T64), (pestle_dl_dtype_t){0, 64, 1}, 13);
  pestle_context_release(f.context);
}

static void unsigned_arithmetic(void** state) {
  fixture_t f;
  (void)state;
  begin(&f);
  agree(&f, ARITHMETIC(U64), (pestle_dl_dtype_t){1, 64, 1}, 13);
  pestle_context_release(f.context);
}

// Two rounds of threefry2x32 on the halves of counters of 64 bits, as JAX unrolls it.
static void threefry(void** state) {
  static const char text[] =
      "func.func @main(%x: " U64 ", %y: " U64
      ") -> (tensor<64xui32>, "
      "tensor<64xui32>, " U64
      ") {\n"
      "  %s = stablehlo.constant dense<32> : " U64
      "\n"
      "  %r = stablehlo.constant dense<13> : tensor<64xui32>\n"
      "  %q = stablehlo.constant dense<19> : tensor<64xui32>\n"
      "  %h = stablehlo.shift_right_logical %x, %s : " U64
      "\n"
      "  %a = stablehlo.convert %h : (" U64
      ") -> tensor<64xui32>\n"
      "  %b = stablehlo.convert %x : (" U64
      ") -> tensor<64xui32>\n"
      "  %k = stablehlo.convert %y : (" U64
      ") -> tensor<64xui32>\n"
      "  %a1 = stablehlo.add %a, %k : tensor<64xui32>\n"
      "  %a2 = stablehlo.add %a1, %b : tensor<64xui32>\n"
      "  %l = stablehlo.shift_left %b, %r : tensor<64xui32>\n"
      "  %m = stablehlo.shift_right_logical %b, %q : tensor<64xui32>\n"
      "  %o = stablehlo.or %l, %m : tensor<64xui32>\n"
      "  %b1 = stablehlo.xor %o, %a2 : tensor<64xui32>\n"
      "  %a3 = stablehlo.add %a2, %b1 : tensor<64xui32>\n"
      "  %w = stablehlo.convert %a3 : (tensor<64xui32>) -> " U64
      "\n"
      "  %v = stablehlo.convert %b1 : (tensor<64xui32>) -> " U64
      "\n"
      "  %u = stablehlo.shift_left %w, %s : " U64
      "\n"
      "  %t = stablehlo.or %u, %v : " U64
      "\n"
      "  return %a3, %b1, %t : tensor<64xui32>, tensor<64xui32>, " U64 "\n}\n";
  fixture_t f;
  (void)state;
  begin(&f);
  agree(&f, text, (pestle_dl_dtype_t){1, 64, 1}, 3);
  pestle_context_release(f.context);
}

static void narrow_integers_stay(void** state) {
  static const char text[] =
      "func.func @main(%x: tensor<64xui32>, %y: tensor<64xui32>) -> "
      "tensor<64xui32> {\n"
      "  %a = stablehlo.multiply %x, %y : tensor<64xui32>\n"
      "  %b = stablehlo.xor %a, %x : tensor<64xui32>\n"
      "  return %b : tensor<64xui32>\n}\n";
  fixture_t f;
  (void)state;
  begin(&f);
  agree(&f, text, (pestle_dl_dtype_t){1, 32, 1}, 1);
  pestle_context_release(f.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signed_arithmetic),
      cmocka_unit_test(unsigned_arithmetic),
      cmocka_unit_test(threefry),
      cmocka_unit_test(narrow_integers_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
