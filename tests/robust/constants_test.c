// SPDX-License-Identifier: Apache-2.0
// Two batch sizes of one module hold the weights that they lay out alike once:
// in memory, on disk, and for a later process.
#include "robust/robust.h"

enum { ROWS = 64, COLUMNS = 128 };

// y = x * w over |batch| rows of |ROWS| x |COLUMNS|; w is no splat.
static pestle_module_t* parse(pestle_context_t* context, int batch) {
  size_t room = ROWS * COLUMNS * 8 + 2048;
  char* text = malloc(room);
  size_t n = (size_t)snprintf(
      text, room,
      "module @scale {\n  func.func @main(%%x: tensor<%dx%dx%dxf32>) -> "
      "tensor<%dx%dx%dxf32> {\n    %%w = stablehlo.constant dense<\"0x",
      batch, ROWS, COLUMNS, batch, ROWS, COLUMNS);
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    // 1.0 with a mantissa of its own.
    n += (size_t)snprintf(text + n, room - n, "%02X%02X803F", i & 255, i >> 8);
  }
  (void)snprintf(
      text + n, room - n,
      "\"> : tensor<%dx%dxf32>\n"
      "    %%0 = stablehlo.broadcast_in_dim %%w, dims = [1, 2] : "
      "(tensor<%dx%dxf32>) -> tensor<%dx%dx%dxf32>\n"
      "    %%1 = stablehlo.multiply %%x, %%0 : tensor<%dx%dx%dxf32>\n"
      "    return %%1 : tensor<%dx%dx%dxf32>\n  }\n}\n",
      ROWS, COLUMNS, ROWS, COLUMNS, batch, ROWS, COLUMNS, batch, ROWS, COLUMNS,
      batch, ROWS, COLUMNS);
  pestle_module_t* module;
  assert_ok(robust_parse(context, text, &module));
  free(text);
  return module;
}

static pestle_plan_t* compile(pestle_context_t* context, int batch,
                              const char* backend) {
  pestle_module_t* module = parse(context, batch);
  pestle_plan_t* plan;
  assert_ok(robust_compile(context, module, backend, false, &plan));
  pestle_module_release(module);
  return plan;
}

static void check_runs(pestle_context_t* context, pestle_plan_t* plan,
                       int batch) {
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  int64_t dims[] = {batch, ROWS, COLUMNS};
  size_t count = (size_t)batch * ROWS * COLUMNS;
  float* x = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; ++i)
    x[i] = 1;
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 3,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                        .shape = dims};
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  for (size_t i = 0; i < count; ++i) {
    uint32_t want = 0x3f800000u, got;
    uint32_t at = (uint32_t)(i % (ROWS * COLUMNS));
    want |= (at & 255) | (at >> 8) << 8;
    memcpy(&got, (const float*)out.data + i, sizeof(got));
    assert_int_equal(got, want);
  }
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
  free(x);
}

static pestle_cache_stats_t stats_of(pestle_context_t* context) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  return stats;
}

static void test_batches_share(void** state) {
  (void)state;
  static const char* const backends[] = {"ref", "llvm"};
  for (int b = 0; b < 2; ++b) {
    if (!robust_has(backends[b])) continue;
    char folder[64];
    robust_make_folder(folder);
    pestle_context_options_t options = robust_options();
    options.cache_dir = folder;
    for (int process = 0; process < 2; ++process) {
      pestle_context_t* context = robust_context(&options);
      pestle_plan_t* plans[2];
      for (int i = 0; i < 2; ++i) {
        // The second process knows the first plan and makes a new one.
        int batch = i ? 3 + process : 2;
        plans[i] = compile(context, batch, backends[b]);
        check_runs(context, plans[i], batch);
      }
      pestle_cache_stats_t stats = stats_of(context);
      assert_int_equal(stats.memory_constants, 1);
      assert_int_equal(stats.memory_constant_bytes, ROWS * COLUMNS * 4);
      assert_int_equal(stats.disk_constants, 1);
      assert_int_equal(stats.disk_entries, 2 + process);
      assert_int_equal(stats.disk_hits, process);
      for (int i = 0; i < 2; ++i)
        pestle_plan_release(plans[i]);
      pestle_context_release(context);
    }
    robust_remove_folder(folder);
  }
}

// A compile that fails for want of memory drops what it took hold of.
static void test_failing_compiles(void** state) {
  (void)state;
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t options = robust_options();
    options.allocator = pestle_test_allocator(&memory);
    pestle_context_t* context = robust_context(&options);
    pestle_module_t* module = parse(context, 2);
    pestle_plan_t* plan;
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status =
        robust_compile(context, module, "ref", false, &plan);
    bool failed = pestle_test_allocator_failed(&memory);
    atomic_store(&memory.fail_at, 0);  // what follows has to work
    if (status) {
      ++failures;
      assert_code(status, OUT_OF_MEMORY);
      assert_int_equal(stats_of(context).memory_constants, 0);
      assert_ok(robust_compile(context, module, "ref", false, &plan));
    }
    check_runs(context, plan, 2);
    pestle_plan_release(plan);
    pestle_module_release(module);
    pestle_context_release(context);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
  assert_true(failures > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batches_share),
      cmocka_unit_test(test_failing_compiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
