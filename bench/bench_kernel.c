// SPDX-License-Identifier: Apache-2.0
// bench_kernel [THREADS]: what one kernel reaches, beside what the machine can
// do in the same run: FMA peak, f32 GEMM sizes through the public API, and the
// overhead of calling a compiled function of one element. One JSON line each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pestle/pestle.h"

enum { ROUNDS = 30 };

static void check(pestle_status_t status) {
  if (!status) return;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "bench: %s\n", text);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- FMA peak: sixteen independent registers, so that latency is hidden ---

// clang-format off
#define SIXTEEN(X, r) \
  X(r, 0) X(r, 1) X(r, 2) X(r, 3) X(r, 4) X(r, 5) X(r, 6) X(r, 7) X(r, 8) \
      X(r, 9) X(r, 10) X(r, 11) X(r, 12) X(r, 13) X(r, 14) X(r, 15)
// clang-format on
#define FMA512(r, i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i "\n"
#define FMA256(r, i) "vfmadd231ps %%ymm" #i ", %%ymm" #i ", %%ymm" #i "\n"
#define CLOBBERS                                                          \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
      "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

static double peak_of(int lanes, long steps) {
  double begin = now();
  for (long s = 0; s < steps; ++s) {
    if (lanes == 16) {
      __asm__ volatile(SIXTEEN(FMA512, )::: CLOBBERS);
    } else {
      __asm__ volatile(SIXTEEN(FMA256, )::: CLOBBERS);
    }
  }
  return 2.0 * lanes * 16 * (double)steps / (now() - begin) * 1e-9;
}

static double fma_peak(void) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    double g = peak_of(8, 1000000);
    if (__builtin_cpu_supports("avx512f")) {
      double h = peak_of(16, 500000);
      if (h > g) g = h;
    }
    if (g > best) best = g;
  }
  return best;
}

// --- Through Pestle ---

typedef struct bench_t {
  pestle_context_t* context;
  pestle_device_t* device;
} bench_t;

static pestle_type_t matrix(int64_t rows, int64_t columns) {
  return (pestle_type_t){PESTLE_F32, 2, {rows, columns}};
}

static pestle_executable_t* build(bench_t* b, pestle_module_t* module) {
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  check(pestle_compile(b->context, module, b->device, &options, &plan));
  check(pestle_executable_create(b->context, plan, b->device, &exe));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return exe;
}

static pestle_tensor_t view(float* data, int64_t* shape, int rank) {
  return (pestle_tensor_t){.data = data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = rank,
                           .dtype = {2, 32, 1},
                           .shape = shape};
}

static float* numbers(int64_t count) {
  float* data = aligned_alloc(64, ((size_t)count * 4 + 127) / 64 * 64);
  for (int64_t i = 0; i < count; ++i)
    data[i] = (float)(i % 17) * 0.1f - 0.8f;
  return data;
}

// y = a * b; |constant| b is known when the plan is made.
static double gemm(bench_t* b, int64_t n, bool constant) {
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_type_t types[2] = {matrix(n, n), matrix(n, n)};
  float *a = numbers(n * n), *w = numbers(n * n), *y = numbers(n * n);
  check(pestle_module_create(b->context, "gemm", &module));
  check(pestle_module_add_function(module, "main", types, NULL,
                                   constant ? 1 : 2, &f));
  pestle_builder_t at = pestle_builder_make(f);
  pestle_value_t *lhs = pestle_function_argument(f, 0), *rhs, *out;
  if (constant) {
    pestle_constant_attrs_t attrs = {sizeof(attrs),
                                     {types[1], w, (size_t)(n * n) * 4, false}};
    check(pestle_op_constant(&at, &attrs, &rhs));
  } else {
    rhs = pestle_function_argument(f, 1);
  }
  pestle_dot_general_attrs_t dot = {
      .struct_size = sizeof(dot),
      .lhs_contracting_dimensions = PESTLE_I64S(1),
      .rhs_contracting_dimensions = PESTLE_I64S(0)};
  check(pestle_op_dot_general(&at, lhs, rhs, &dot, types[0], &out));
  check(pestle_op_return(&at, &out, 1, NULL));
  pestle_executable_t* exe = build(b, module);
  int64_t shape[2] = {n, n};
  pestle_tensor_t in[2] = {view(a, shape, 2), view(w, shape, 2)};
  pestle_tensor_t result = view(y, shape, 2);
  double best = 1e9;
  for (int i = 0; i < ROUNDS; ++i) {
    double begin = now();
    check(pestle_executable_run(exe, NULL, in, constant ? 1 : 2, &result, 1,
                                NULL));
    double t = now() - begin;
    if (t < best) best = t;
  }
  pestle_executable_release(exe);
  free(a);
  free(w);
  free(y);
  return 2.0 * (double)n * (double)n * (double)n / best * 1e-9;
}

// Nanoseconds of one call of y = x + x on one element.
static double call_overhead(bench_t* b) {
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_type_t type = {PESTLE_F32, 1, {1}};
  pestle_value_t* y;
  check(pestle_module_create(b->context, "tiny", &module));
  check(pestle_module_add_function(module, "main", &type, NULL, 1, &f));
  pestle_builder_t at = pestle_builder_make(f);
  pestle_value_t* x = pestle_function_argument(f, 0);
  check(pestle_op_add(&at, x, x, &y));
  check(pestle_op_return(&at, &y, 1, NULL));
  pestle_executable_t* exe = build(b, module);
  float *in = numbers(16), *out = numbers(16);
  int64_t shape[1] = {1};
  pestle_tensor_t input = view(in, shape, 1), output = view(out, shape, 1);
  double best = 1e9;
  for (int round = 0; round < ROUNDS; ++round) {
    const int calls = 20000;
    double begin = now();
    for (int i = 0; i < calls; ++i) {
      check(pestle_executable_run(exe, NULL, &input, 1, &output, 1, NULL));
    }
    double t = (now() - begin) / calls;
    if (t < best) best = t;
  }
  pestle_executable_release(exe);
  free(in);
  free(out);
  return best * 1e9;
}

int main(int argc, char** argv) {
  bench_t b;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = argc > 1 ? atoi(argv[1]) : 1};
  check(pestle_context_create(&options, &b.context));
  check(pestle_context_device(b.context, NULL, &b.device));
  double peak = fma_peak();
  printf("{\"fma_peak_gflops\": %.1f, \"device\": \"%s\"}\n", peak,
         pestle_device_name(b.device));
  static const int64_t sizes[] = {64, 128, 256, 512, 1024};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    for (int constant = 0; constant < 2; ++constant) {
      double before = fma_peak();
      double g = gemm(&b, sizes[i], constant);
      double after = fma_peak();
      double top = before > after ? before : after;
      printf(
          "{\"gemm\": %lld, \"constant_rhs\": %s, \"gflops\": %.1f, "
          "\"of_peak\": %.3f}\n",
          (long long)sizes[i], constant ? "true" : "false", g, g / top);
    }
  }
  printf("{\"call_ns\": %.0f}\n", call_overhead(&b));
  pestle_context_release(b.context);
  return 0;
}
