// SPDX-License-Identifier: Apache-2.0
// f32 math as native code over the bit patterns of all floats, against the C
// library's double function rounded to f32: at most 2 ulp.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_MATH_SWEEP_H_
#define PESTLE_TESTS_UNIT_CODEGEN_MATH_SWEEP_H_

#include <math.h>
#include <stdlib.h>

#include "ir/graph.h"
#include "pestle/pestle.h"
#include "test.h"

enum { SWEEP_BLOCK = 1 << 20 };

static double sweep_logistic(double x) {
  return 1 / (1 + exp(-x));
}
static double sweep_rsqrt(double x) {
  return 1 / sqrt(x);
}

typedef struct sweep_case_t {
  pestle_op_t op;
  double (*truth)(double);
} sweep_case_t;

static const sweep_case_t sweep_cases[] = {
    {PESTLE_OP_EXP, exp},   {PESTLE_OP_EXPM1, expm1},
    {PESTLE_OP_LOG, log},   {PESTLE_OP_LOG1P, log1p},
    {PESTLE_OP_TANH, tanh}, {PESTLE_OP_LOGISTIC, sweep_logistic},
    {PESTLE_OP_SINE, sin},  {PESTLE_OP_COSINE, cos},
    {PESTLE_OP_TAN, tan},   {PESTLE_OP_ERF, erf},
    {PESTLE_OP_CBRT, cbrt}, {PESTLE_OP_RSQRT, sweep_rsqrt},
};
enum { SWEEP_CASES = sizeof(sweep_cases) / sizeof(sweep_cases[0]) };

static int64_t sweep_order(float x) {
  int32_t bits;
  memcpy(&bits, &x, 4);
  return bits < 0 ? -(int64_t)(bits & 0x7fffffff) : bits;
}

// Steps between |want| and |got|; the value after the largest float is inf.
static int64_t sweep_ulps(float want, float got) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1 << 30;
  int64_t d = sweep_order(want) - sweep_order(got);
  return d < 0 ? -d : d;
}

static pestle_executable_t* sweep_compile(pestle_context_t* context,
                                          pestle_op_t op) {
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_node_t* node;
  pestle_type_t type = {PESTLE_F32, 1, {SWEEP_BLOCK}};
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", &type, NULL, 1, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* x = pestle_function_argument(f, 0);
  pestle_node_spec_t spec = {.op = op, .operands = &x, .operand_count = 1};
  assert_ok(pestle_node_create(&b, &spec, &node));
  pestle_value_t* y = &node->results[0];
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  assert_ok(pestle_context_device(context, "cpu", &device));
  assert_ok(pestle_compile(context, module, device, NULL, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return exe;
}

static void sweep_one(pestle_context_t* context, const sweep_case_t* c,
                      uint64_t stride) {
  pestle_executable_t* exe = sweep_compile(context, c->op);
  float* x = aligned_alloc(64, SWEEP_BLOCK * 4);
  float* y = aligned_alloc(64, SWEEP_BLOCK * 4);
  int64_t shape[1] = {SWEEP_BLOCK}, worst = 0;
  float at = 0;
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = {2, 32, 1},
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  for (uint64_t begin = 0; begin < 1ull << 32; begin += stride * SWEEP_BLOCK) {
    for (uint64_t i = 0; i < SWEEP_BLOCK; ++i) {
      uint32_t bits = (uint32_t)(begin + i * stride);
      memcpy(&x[i], &bits, 4);
    }
    assert_ok(pestle_executable_run(exe, NULL, &in, 1, &out, 1, NULL));
    for (uint64_t i = 0; i < SWEEP_BLOCK; ++i) {
      int64_t d = sweep_ulps((float)c->truth((double)x[i]), y[i]);
      if (d > worst) {
        worst = d;
        at = x[i];
      }
    }
  }
  print_message("%-24s %lld ulp at %a\n", pestle_op_info(c->op)->name,
                (long long)worst, (double)at);
  assert_true(worst <= 2);
  free(x);
  free(y);
  pestle_executable_release(exe);
}

static void sweep_all(uint64_t stride) {
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  for (int i = 0; i < SWEEP_CASES; ++i) {
    sweep_one(context, &sweep_cases[i], stride);
  }
  pestle_context_release(context);
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_MATH_SWEEP_H_
