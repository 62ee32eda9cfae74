// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of this folder: a module with a convolution, a
// contraction, a softmax and a loop, its inputs, contexts, compiles and runs.
#ifndef PESTLE_TESTS_ROBUST_ROBUST_H_
#define PESTLE_TESTS_ROBUST_ROBUST_H_

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "pestle/compile.h"
#include "pestle/import.h"
#include "pestle/runtime.h"
#include "test.h"
#include "view.h"

static const char robust_text[] =
    "module @robust {\n"
    "  func.func @main(%x: tensor<1x8x8x3xf32> {pestle.name = \"x\"},\n"
    "                  %w: tensor<128x10xf32> {pestle.name = \"w\"},\n"
    "                  %n: tensor<i32> {pestle.name = \"n\"})\n"
    "      -> (tensor<1x10xf32> {pestle.name = \"y\"},\n"
    "          tensor<1x10xf32> {pestle.name = \"z\"}) {\n"
    "    %k = stablehlo.constant dense<1.250000e-01> : tensor<3x3x3x8xf32>\n"
    "    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]"
    "x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], "
    "[0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, "
    "false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
    "(tensor<1x8x8x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32>\n"
    "    %1 = stablehlo.tanh %0 : tensor<1x4x4x8xf32>\n"
    "    %2 = stablehlo.reshape %1 : (tensor<1x4x4x8xf32>) -> "
    "tensor<1x128xf32>\n"
    "    %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : "
    "(tensor<1x128xf32>, tensor<128x10xf32>) -> tensor<1x10xf32>\n"
    "    %4 = \"pestle.softmax\"(%3) <{dimensions = array<i64: 1>}> : "
    "(tensor<1x10xf32>) -> tensor<1x10xf32>\n"
    "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %5:3 = stablehlo.while(%i = %c, %m = %n, %v = %4) : tensor<i32>, "
    "tensor<i32>, tensor<1x10xf32>\n"
    "    cond {\n"
    "      %6 = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, "
    "tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %6 : tensor<i1>\n"
    "    } do {\n"
    "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "      %7 = stablehlo.add %i, %one : tensor<i32>\n"
    "      %8 = stablehlo.add %v, %v : tensor<1x10xf32>\n"
    "      %9 = stablehlo.add %8, %4 : tensor<1x10xf32>\n"
    "      stablehlo.return %7, %m, %9 : tensor<i32>, tensor<i32>, "
    "tensor<1x10xf32>\n"
    "    }\n"
    "    return %4, %5#2 : tensor<1x10xf32>, tensor<1x10xf32>\n"
    "  }\n"
    "}\n";

// --- Folders ---

// A new folder under /tmp; |out| holds at least 64 bytes.
static inline void robust_make_folder(char* out) {
  snprintf(out, 64, "/tmp/pestle-robust-XXXXXX");
  assert_non_null(mkdtemp(out));
}

static inline void robust_remove_folder(const char* folder) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

// --- Contexts ---

// Options with the plugins of this build, and no cache on disk.
static inline pestle_context_options_t robust_options(void) {
  return (pestle_context_options_t){
      .struct_size = sizeof(pestle_context_options_t),
      .cache_dir = "",
      .backend_path = getenv("PESTLE_BACKEND_PATH"),
      .threads = 2,
  };
}

static inline pestle_context_t* robust_context(
    const pestle_context_options_t* options) {
  pestle_context_options_t defaults = robust_options();
  pestle_context_t* context;
  assert_ok(pestle_context_create(options ? options : &defaults, &context));
  return context;
}

// Whether this build has a backend of that name that is usable here.
static inline bool robust_has(const char* backend) {
  pestle_context_t* context = robust_context(NULL);
  pestle_device_t* device;
  pestle_status_t status = pestle_context_device(context, backend, &device);
  pestle_status_release(status);
  pestle_context_release(context);
  return !status;
}

// --- Compiling ---

static inline pestle_status_t robust_parse(pestle_context_t* context,
                                           const char* text,
                                           pestle_module_t** out_module) {
  return pestle_module_parse(context, text, strlen(text), "robust.mlir",
                             out_module);
}

static inline pestle_status_t robust_compile(pestle_context_t* context,
                                             pestle_module_t* module,
                                             const char* backend, bool no_cache,
                                             pestle_plan_t** out_plan) {
  *out_plan = NULL;
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(context, backend, &device));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = no_cache};
  return pestle_compile(context, module, device, &options, out_plan);
}

// From text to an executable, all of which must work.
static inline pestle_executable_t* robust_executable(pestle_context_t* context,
                                                     const char* text,
                                                     const char* backend) {
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  assert_ok(robust_parse(context, text, &module));
  assert_ok(robust_compile(context, module, backend, true, &plan));
  assert_ok(pestle_executable_create(context, plan, NULL, &executable));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return executable;
}

// --- Running ---

enum { ROBUST_X = 8 * 8 * 3, ROBUST_W = 128 * 10, ROBUST_Y = 10 };

typedef struct robust_inputs_t {
  _Alignas(64) float x[ROBUST_X];
  _Alignas(64) float w[ROBUST_W];
  _Alignas(64) int32_t n;
} robust_inputs_t;

static inline void robust_fill(robust_inputs_t* inputs, int seed) {
  for (int i = 0; i < ROBUST_X; ++i) {
    inputs->x[i] = sinf((float)(i + 7 * seed));
  }
  for (int i = 0; i < ROBUST_W; ++i) {
    inputs->w[i] = cosf((float)(3 * i + seed)) * 0.25f;
  }
  inputs->n = seed % 5;
}

typedef struct robust_outputs_t {
  _Alignas(64) float y[ROBUST_Y];
  _Alignas(64) float z[ROBUST_Y];
} robust_outputs_t;

static inline pestle_status_t robust_run(pestle_executable_t* executable,
                                         robust_inputs_t* inputs,
                                         robust_outputs_t* outputs,
                                         const pestle_run_options_t* options) {
  int64_t x[] = {1, 8, 8, 3}, w[] = {128, 10}, y[] = {1, 10};
  pestle_tensor_t in[] = {test_view(inputs->x, PESTLE_F32, 4, x, NULL),
                          test_view(inputs->w, PESTLE_F32, 2, w, NULL),
                          test_view(&inputs->n, PESTLE_I32, 0, NULL, NULL)};
  pestle_tensor_t out[] = {test_view(outputs->y, PESTLE_F32, 2, y, NULL),
                           test_view(outputs->z, PESTLE_F32, 2, y, NULL)};
  return pestle_executable_run(executable, NULL, in, 3, out, 2, options);
}

// What the module computes, in double and without Pestle.
static inline void robust_expect(const robust_inputs_t* in, double* y,
                                 double* z) {
  double hidden[128], sum = 0, top = -INFINITY;
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      double window = 0;
      for (int i = 2 * r; i < 2 * r + 3 && i < 8; ++i) {
        for (int j = 2 * c; j < 2 * c + 3 && j < 8; ++j) {
          for (int f = 0; f < 3; ++f)
            window += in->x[(i * 8 + j) * 3 + f];
        }
      }
      for (int f = 0; f < 8; ++f) {
        hidden[(r * 4 + c) * 8 + f] = tanh(window * 0.125);
      }
    }
  }
  for (int o = 0; o < ROBUST_Y; ++o) {
    y[o] = 0;
    for (int k = 0; k < 128; ++k)
      y[o] += hidden[k] * in->w[k * 10 + o];
    top = fmax(top, y[o]);
  }
  for (int o = 0; o < ROBUST_Y; ++o)
    sum += y[o] = exp(y[o] - top);
  for (int o = 0; o < ROBUST_Y; ++o) {
    y[o] /= sum;
    z[o] = y[o];
    for (int i = 0; i < in->n; ++i)
      z[o] += z[o] + y[o];
  }
}

// |outputs| are right to f32's rounding over a sum of 128 terms.
static inline void robust_check(const robust_inputs_t* inputs,
                                const robust_outputs_t* outputs) {
  double y[ROBUST_Y], z[ROBUST_Y];
  robust_expect(inputs, y, z);
  for (int i = 0; i < ROBUST_Y; ++i) {
    assert_true(fabs(outputs->y[i] - y[i]) <= 1e-5 * fabs(y[i]) + 1e-6);
    assert_true(fabs(outputs->z[i] - z[i]) <= 1e-5 * fabs(z[i]) + 1e-6);
  }
}

#endif  // PESTLE_TESTS_ROBUST_ROBUST_H_
