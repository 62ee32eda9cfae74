// SPDX-License-Identifier: Apache-2.0
// Random graphs through the whole compiler: native code and the interpreter
// against the reference evaluator on the graph as it was.
#include <math.h>
#include <stdlib.h>

#include "../passes/random_graph.h"
#include "pestle/pestle.h"

enum { SEEDS = 60 };

static void compare(const test_results_t* want, const pestle_tensor_t* got,
                    const pestle_executable_t* exe, uint64_t seed,
                    const char* device) {
  for (size_t i = 0; i < want->count; ++i) {
    pestle_io_info_t io = pestle_executable_output(exe, i);
    int64_t n = 1;
    for (int32_t d = 0; d < io.rank; ++d)
      n *= io.dims[d];
    const float *w = want->data[i], *g = got[i].data;
    // Inputs are around 1: what cancels to nothing keeps their rounding.
    double scale = 1e-2;
    for (int64_t k = 0; k < n; ++k) {
      if (isfinite(w[k]) && fabs((double)w[k]) > scale) {
        scale = fabs((double)w[k]);
      }
    }
    for (int64_t k = 0; k < n; ++k) {
      bool same = w[k] == g[k] || (isnan(w[k]) && isnan(g[k])) ||
                  fabs((double)w[k] - (double)g[k]) <= 2e-4 * scale;
      if (!same) {
        fail_msg("seed %llu on %s: output %zu[%lld] is %.9g, should be %.9g",
                 (unsigned long long)seed, device, i, (long long)k,
                 (double)g[k], (double)w[k]);
      }
    }
  }
}

static void run_on(pestle_context_t* context, pestle_module_t* module,
                   const char* spec, bool no_fuse, uint64_t seed) {
  pestle_device_t* device;
  bool simt = !strncmp(spec, "simt", 4);  // `ref` as a target with lanes
  pestle_status_t status =
      pestle_context_device(context, simt ? "ref" : spec, &device);
  if (status) {  // not built, or not this machine
    pestle_status_release(status);
    return;
  }
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .no_fuse = no_fuse,
                                      .target_cpu = simt ? spec : NULL,
                                      .verify = true};
  status = pestle_compile(context, module, device, &options, &plan);
  if (status)
    print_message("seed %llu on %s\n", (unsigned long long)seed, spec);
  assert_ok(status);
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  test_results_t want = test_evaluate(module, seed);
  pestle_tensor_t in[8] = {0}, out[8] = {0};
  uint64_t data_seed = seed;
  size_t inputs = pestle_executable_input_count(exe);
  for (size_t i = 0; i < inputs; ++i) {
    pestle_io_info_t io = pestle_executable_input(exe, i);
    pestle_type_t type = pestle_type_make(io.dtype, io.rank, io.dims);
    in[i] = (pestle_tensor_t){.data = test_array(&type, &data_seed),
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  size_t outputs = pestle_executable_output_count(exe);
  assert_ok(pestle_executable_run(exe, NULL, in, inputs, out, outputs, NULL));
  compare(&want, out, exe, seed, spec);
  for (size_t i = 0; i < outputs; ++i)
    pestle_tensor_release(exe, &out[i]);
  for (size_t i = 0; i < inputs; ++i)
    free(in[i].data);
  test_free_results(&want);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
}

static void run_all(const char* spec, bool no_fuse) {
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  const char *first = getenv("SEED"), *count = getenv("SEEDS");
  uint64_t from = first ? strtoull(first, NULL, 10) : 1;
  uint64_t n = first ? 1 : count ? strtoull(count, NULL, 10) : SEEDS;
  for (uint64_t seed = from; seed < from + n; ++seed) {
    pestle_module_t* module = random_module(context, seed);
    if (first) {
      char* text = test_print(module);
      fputs(text, stdout);
      free(text);
    }
    run_on(context, module, spec, no_fuse, seed);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

static void test_native(void** state) {
  (void)state;
  run_all("llvm", false);
}

static void test_interpreted(void** state) {
  (void)state;
  run_all("ref", false);
}

static void test_lanes(void** state) {
  (void)state;
  run_all("simt", false);
  run_all("simtm", false);
}

static void test_no_fuse(void** state) {
  (void)state;
  run_all("llvm", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_native),
      cmocka_unit_test(test_interpreted),
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_no_fuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
