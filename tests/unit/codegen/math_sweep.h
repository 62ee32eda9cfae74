// SPDX-License-Identifier: Apache-2.0
// f32 math as native code over the bit patterns of all floats, against the C
// library's double function rounded to f32: at most 2 ulp.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_MATH_SWEEP_H_
#define PESTLE_TESTS_UNIT_CODEGEN_MATH_SWEEP_H_

#include <math.h>
#include <stdlib.h>

#include "base/thread.h"
#include "ir/graph.h"
#include "pestle/pestle.h"
#include "test.h"
#include "unit/codegen/erf_inverse.h"

enum { SWEEP_BLOCK = 1 << 20 };

static double sweep_logistic(double x) {
  return 1 / (1 + exp(-x));
}
static double sweep_rsqrt(double x) {
  return 1 / sqrt(x);
}

static double sweep_erf_inv(double x) {
  return (double)erf_inverse((long double)x);
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
    {PESTLE_OP_ERFC, erfc}, {PESTLE_OP_ERF_INV, sweep_erf_inv},
    {PESTLE_OP_EXP2, exp2},
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

// What one thread sweeps: every |step|th block from |first|.
typedef struct sweep_share_t {
  pestle_thread_t thread;
  pestle_executable_t* exe;
  double (*truth)(double);
  uint64_t stride, first, step;
  int64_t worst;
  float at;
  pestle_status_t status;
} sweep_share_t;

static pestle_status_t sweep_block(sweep_share_t* s, uint64_t begin, float* x,
                                   float* y) {
  int64_t shape[1] = {SWEEP_BLOCK};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = {2, 32, 1},
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  for (uint64_t i = 0; i < SWEEP_BLOCK; ++i) {
    uint32_t bits = (uint32_t)(begin + i * s->stride);
    memcpy(&x[i], &bits, 4);
  }
  pestle_run_options_t one = {.struct_size = sizeof(one), .threads = 1};
  PESTLE_TRY(pestle_executable_run(s->exe, NULL, &in, 1, &out, 1, &one));
  for (uint64_t i = 0; i < SWEEP_BLOCK; ++i) {
    int64_t d = sweep_ulps((float)s->truth((double)x[i]), y[i]);
    if (d > s->worst) {
      s->worst = d;
      s->at = x[i];
    }
  }
  return NULL;
}

static void sweep_share(void* argument) {
  sweep_share_t* s = argument;
  float* x = aligned_alloc(64, SWEEP_BLOCK * 4);
  float* y = aligned_alloc(64, SWEEP_BLOCK * 4);
  uint64_t block = s->stride * SWEEP_BLOCK;
  for (uint64_t at = s->first * block; at < 1ull << 32 && !s->status;
       at += s->step * block) {
    s->status = sweep_block(s, at, x, y);
  }
  free(x);
  free(y);
}

static void sweep_one(pestle_context_t* context, const sweep_case_t* c,
                      uint64_t stride) {
  pestle_executable_t* exe = sweep_compile(context, c->op);
  enum { THREADS = 64 };
  static sweep_share_t shares[THREADS];
  int32_t threads = pestle_cpu_count();
  if (threads > THREADS) threads = THREADS;
  for (int32_t i = 0; i < threads; ++i) {
    shares[i] = (sweep_share_t){.exe = exe,
                                .truth = c->truth,
                                .stride = stride,
                                .first = (uint64_t)i,
                                .step = (uint64_t)threads};
    assert_ok(pestle_thread_start(sweep_share, &shares[i], "sweep",
                                  &shares[i].thread));
  }
  sweep_share_t* worst = &shares[0];
  for (int32_t i = 0; i < threads; ++i) {
    pestle_thread_join(&shares[i].thread);
    if (shares[i].worst > worst->worst) worst = &shares[i];
  }
  for (int32_t i = 0; i < threads; ++i)
    assert_ok(shares[i].status);
  print_message("%-24s %lld ulp at %a\n", pestle_op_info(c->op)->name,
                (long long)worst->worst, (double)worst->at);
  assert_true(worst->worst <= 2);
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
