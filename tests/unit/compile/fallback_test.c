// SPDX-License-Identifier: Apache-2.0
// A backend that refuses kernels at compile(): they run on the fallback of its
// device type, the others stay, and a strict context gets the refusal itself.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "pestle/compile.h"
#include "pestle/graph.h"
#include "runtime/registry.h"
#include "test.h"

// --- The backend "picky": ref under another name, with other vectors ---

// One test a process at a time.
static const pestle_backend_t* g_ref;
static const char* g_refused;  // kernels with this in their note
static pestle_status_code_t g_code = PESTLE_STATUS_UNSUPPORTED;
static atomic_int g_compiles, g_inside;
// Every compilation waits until so many are at work at the same time.
static int g_meet;
static atomic_bool g_met;

typedef struct picky_t {
  pestle_backend_t table;
  const pestle_host_t* host;
} picky_t;

static pestle_status_t picky_describe(void* self, const char* cpu,
                                      pestle_target_caps_t* out_caps) {
  (void)self;
  PESTLE_TRY(g_ref->target->describe(g_ref->self, cpu, out_caps));
  strcpy(out_caps->name, "picky");
  // So that constants are packed otherwise than for ref.
  out_caps->flags = PESTLE_TARGET_FMA;
  out_caps->vector_bytes = 32;
  out_caps->vector_registers = 16;
  return NULL;
}

static pestle_status_t picky_toolchain(void* self, const char** out_text) {
  (void)self;
  *out_text = "picky-1";
  return NULL;
}

// Gives up after minutes, so that a compiler with one thread fails a test instead
// of hanging.
static void meet(void) {
  atomic_fetch_add(&g_compiles, 1);
  if (atomic_fetch_add(&g_inside, 1) + 1 >= g_meet) atomic_store(&g_met, true);
  int64_t end = pestle_clock_ns() + INT64_C(200000000000);
  while (!atomic_load(&g_met) && pestle_clock_ns() < end)
    pestle_thread_yield();
  atomic_fetch_sub(&g_inside, 1);
}

static pestle_status_t picky_compile(void* self, const pestle_kir_t* kernel,
                                     const pestle_kernel_options_t* options,
                                     pestle_blob_t* out_artifact) {
  const pestle_host_t* host = ((picky_t*)self)->host;
  meet();
  if (strstr(pestle_kir_string(kernel, kernel->note), g_refused)) {
    return host->status_make(host->self, (int32_t)g_code, __FILE__, __LINE__,
                             "picky dislikes this kernel");
  }
  return g_ref->target->compile(g_ref->self, kernel, options, out_artifact);
}

static pestle_status_t picky_load(void* self, int32_t device,
                                  const void* artifact, size_t size,
                                  pestle_loaded_t** out_loaded) {
  (void)self;
  return g_ref->device->load(g_ref->self, device, artifact, size, out_loaded);
}
static void picky_unload(void* self, pestle_loaded_t* loaded) {
  (void)self;
  g_ref->device->unload(g_ref->self, loaded);
}
static pestle_status_t picky_entry(void* self, pestle_loaded_t* loaded,
                                   pestle_cpu_entry_t* out_entry,
                                   const void** out_entry_self) {
  (void)self;
  return g_ref->device->cpu_entry(g_ref->self, loaded, out_entry,
                                  out_entry_self);
}
static void picky_deinit(void* self) {
  const pestle_host_t* host = ((picky_t*)self)->host;
  host->free(host->self, self, sizeof(picky_t));
}

static const pestle_backend_abi_info_t* picky_abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("picky", "picky-build");
  return &info;
}

static const pestle_backend_t* picky_init(const pestle_host_t* host,
                                          pestle_status_t* out_status) {
  static const pestle_target_api_t target = {.struct_size = sizeof(target),
                                             .describe = picky_describe,
                                             .toolchain_id = picky_toolchain,
                                             .compile = picky_compile};
  static const pestle_device_api_t device = {.struct_size = sizeof(device),
                                             .load = picky_load,
                                             .unload = picky_unload,
                                             .cpu_entry = picky_entry};
  picky_t* self = host->alloc(host->self, sizeof(*self));
  *out_status = NULL;
  if (!self) return NULL;
  // As long as a table was before it had flags: that is no fallback.
  *self = (picky_t){.table = {.struct_size = offsetof(pestle_backend_t, flags),
                              .name = "picky",
                              .device_type = PESTLE_DEVICE_CPU,
                              .score = 1000,
                              .device_count = 1,
                              .self = self,
                              .target = &target,
                              .device = &device,
                              .deinit = picky_deinit,
                              .flags = PESTLE_BACKEND_FALLBACK},
                    .host = host};
  return &self->table;
}

// --- The model ---

enum { ROWS = 5, INNER = 8, COLUMNS = 40, X_SIZE = ROWS * INNER };

static float weight(int k, int n) {
  return (float)(k * 7 % 11 - 5) + 0.25f * (float)(n % 9);
}

// Four kernels, each with code of its own; the product's weights are packed as
// the target likes them.
static void write_model(char* text, size_t capacity) {
  char hex[8 * INNER * COLUMNS + 1];
  for (int i = 0; i < INNER * COLUMNS; ++i) {
    float w = weight(i / COLUMNS, i % COLUMNS);
    uint8_t bytes[4];
    memcpy(bytes, &w, 4);
    snprintf(hex + (size_t)i * 8, 9, "%02X%02X%02X%02X", bytes[0], bytes[1],
             bytes[2], bytes[3]);
  }
  snprintf(
      text, capacity,
      "module @m {\n"
      "  func.func @main(%%x: tensor<5x8xf32>, %%y: tensor<5x8xf32>) -> "
      "(tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x40xf32>) "
      "{\n"
      "    %%w = stablehlo.constant dense<\"0x%s\"> : tensor<8x40xf32>\n"
      "    %%a = stablehlo.multiply %%x, %%y : tensor<5x8xf32>\n"
      "    %%b = stablehlo.multiply %%y, %%y : tensor<5x8xf32>\n"
      "    %%c = stablehlo.add %%x, %%y : tensor<5x8xf32>\n"
      "    %%d = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] "
      ": (tensor<5x8xf32>, tensor<8x40xf32>) -> tensor<5x40xf32>\n"
      "    return %%a, %%b, %%c, %%d : tensor<5x8xf32>, tensor<5x8xf32>, "
      "tensor<5x8xf32>, tensor<5x40xf32>\n"
      "  }\n"
      "}\n",
      hex);
}

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  int fallbacks;  // logged
  pestle_log_level_t level;
  char last[1024];
  char plan[4096];  // the text of the last plan
} fixture_t;

static void take_log(void* user, pestle_log_level_t level,
                     const char* message) {
  fixture_t* f = user;
  if (!strstr(message, "falls back")) return;
  ++f->fallbacks;
  f->level = level;
  snprintf(f->last, sizeof(f->last), "%s", message);
}

static void begin(fixture_t* f, bool strict) {
  memset(f, 0, sizeof(*f));
  g_code = PESTLE_STATUS_UNSUPPORTED;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .log = take_log,
                                      .log_user = f,
                                      .log_level = PESTLE_LOG_DEBUG,
                                      .threads = 4,
                                      .strict = strict};
  assert_ok(pestle_context_create(&options, &f->context));
  pestle_device_t* ref;
  assert_ok(pestle_context_device(f->context, "ref", &ref));
  g_ref = pestle_device_backend(ref);
  assert_ok(pestle_registry_add_static(f->context, picky_abi_info, picky_init));
  assert_ok(pestle_context_device(f->context, "picky", &f->device));
  static char text[1 << 14];
  write_model(text, sizeof(text));
  assert_ok(pestle_module_parse(f->context, text, strlen(text), "m.mlir",
                                &f->module));
}

static void end(fixture_t* f) {
  pestle_module_release(f->module);
  pestle_context_release(f->context);
}

static void take_plan(void* user, pestle_stage_t stage, const char* name,
                      const char* text, size_t size) {
  (void)stage, (void)name;
  fixture_t* f = user;
  snprintf(f->plan, sizeof(f->plan), "%.*s", (int)size, text);
}

static pestle_status_t compile(fixture_t* f, const char* refused,
                               pestle_plan_t** out_plan) {
  g_refused = refused;
  f->fallbacks = 0;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_fuse = true,
                                      .verify = true,
                                      .dump = take_plan,
                                      .dump_user = f,
                                      .dump_stages = 1u << PESTLE_STAGE_PLAN};
  return pestle_compile(f->context, f->module, f->device, &options, out_plan);
}

static pestle_tensor_t view(float* data, int64_t* shape) {
  return (pestle_tensor_t){.data = data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = 2,
                           .dtype = {2, 32, 1},
                           .shape = shape};
}

static void run(fixture_t* f, pestle_plan_t* plan) {
  float x[X_SIZE], y[X_SIZE], a[X_SIZE], b[X_SIZE], c[X_SIZE];
  float d[ROWS * COLUMNS];
  int64_t small[2] = {ROWS, INNER}, large[2] = {ROWS, COLUMNS};
  for (int i = 0; i < X_SIZE; ++i) {
    x[i] = (float)(i % 13) - 6;
    y[i] = 0.5f * (float)(i % 7);
  }
  pestle_tensor_t in[2] = {view(x, small), view(y, small)};
  pestle_tensor_t out[4] = {view(a, small), view(b, small), view(c, small),
                            view(d, large)};
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(f->context, plan, f->device, &e));
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 4, NULL));
  pestle_executable_release(e);
  for (int i = 0; i < X_SIZE; ++i) {
    assert_true(a[i] == x[i] * y[i]);
    assert_true(b[i] == y[i] * y[i]);
    assert_true(c[i] == x[i] + y[i]);
  }
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    float sum = 0;  // of small multiples of 1/4: exact
    for (int k = 0; k < INNER; ++k)
      sum += x[i / COLUMNS * INNER + k] * weight(k, i % COLUMNS);
    assert_true(d[i] == sum);
  }
}

// How often |word| is in |text|.
static int count(const char* text, const char* word) {
  int n = 0;
  while ((text = strstr(text, word))) {
    ++n;
    text += strlen(word);
  }
  return n;
}

// --- Tests ---

static void test_none_refused(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, false);
  assert_ok(compile(&f, "nothing is called so", &plan));
  assert_int_equal(f.fallbacks, 0);
  assert_int_equal(count(f.plan, "  on "), 0);  // there is only one device
  run(&f, plan);
  pestle_plan_release(plan);
  end(&f);
}

// The first and the last have the same code, the other has one operand. All read
// inputs: what lies in the arena is aligned to more.
static void test_identical_kernels_compile_once(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, false);
  static const char text[] =
      "module @m {\n"
      "  func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>, "
      "%z: tensor<64xf32>) -> "
      "(tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {\n"
      "    %a = stablehlo.multiply %x, %y : tensor<64xf32>\n"
      "    %b = stablehlo.multiply %y, %y : tensor<64xf32>\n"
      "    %c = stablehlo.multiply %y, %z : tensor<64xf32>\n"
      "    return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, "
      "tensor<64xf32>\n"
      "  }\n"
      "}\n";
  pestle_module_release(f.module);
  assert_ok(
      pestle_module_parse(f.context, text, strlen(text), "m.mlir", &f.module));
  g_compiles = 0;
  assert_ok(compile(&f, "nothing is called so", &plan));
  assert_int_equal(g_compiles, 2);
  pestle_plan_release(plan);
  end(&f);
}

static void test_different_kernels_compile_in_parallel(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, false);
  g_met = false;
  g_meet = 4;
  assert_ok(compile(&f, "nothing is called so", &plan));
  g_meet = 0;
  assert_true(g_met);
  pestle_plan_release(plan);
  end(&f);
}

static void test_refused_runs_on_fallback(void** state) {
  (void)state;
  static const struct {
    const char* op;
    int kernels;
  } rows[] = {{"add", 1}, {"multiply", 2}, {"dot_general", 1}, {"", 4}};
  fixture_t f;
  begin(&f, false);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_plan_t* plan;
    assert_ok(compile(&f, rows[i].op, &plan));
    assert_int_equal(f.fallbacks, rows[i].kernels);
    assert_int_equal(f.level, PESTLE_LOG_INFO);
    assert_non_null(strstr(f.last, "falls back to 'ref'"));
    assert_non_null(strstr(f.last, "picky dislikes this kernel"));
    assert_int_equal(count(f.plan, "  on ref"), rows[i].kernels);
    assert_int_equal(count(f.plan, "  on picky"), 4 - rows[i].kernels);
    run(&f, plan);
    pestle_plan_release(plan);
  }
  end(&f);
}

static void test_strict_refuses(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, true);
  pestle_status_t status = compile(&f, "multiply", &plan);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNSUPPORTED);
  assert_non_null(
      strstr(pestle_status_message(status), "picky dislikes this kernel"));
  pestle_status_release(status);
  assert_int_equal(f.fallbacks, 0);
  end(&f);
}

// Only UNSUPPORTED is a refusal.
static void test_failure_is_no_refusal(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, false);
  g_code = PESTLE_STATUS_RESOURCE_EXHAUSTED;
  pestle_status_t status = compile(&f, "multiply", &plan);
  assert_int_equal(pestle_status_code(status),
                   PESTLE_STATUS_RESOURCE_EXHAUSTED);
  pestle_status_release(status);
  assert_int_equal(f.fallbacks, 0);
  end(&f);
}

static void test_who_is_a_fallback(void** state) {
  (void)state;
  fixture_t f;
  begin(&f, false);
  pestle_device_t *ref, *found;
  assert_ok(pestle_context_device(f.context, "ref", &ref));
  assert_ok(pestle_context_fallback(f.context, f.device, &found));
  // picky has the flag where its table, by its size, no longer reaches.
  assert_ptr_equal(found, ref);
  assert_ok(pestle_context_fallback(f.context, ref, &found));
  assert_null(found);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_none_refused),
      cmocka_unit_test(test_identical_kernels_compile_once),
      cmocka_unit_test(test_different_kernels_compile_in_parallel),
      cmocka_unit_test(test_refused_runs_on_fallback),
      cmocka_unit_test(test_strict_refuses),
      cmocka_unit_test(test_failure_is_no_refusal),
      cmocka_unit_test(test_who_is_a_fallback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
