// SPDX-License-Identifier: Apache-2.0
// What an op of one's own costs: alpha x + beta y on 256 x 512 f32, by a plain C loop,
// as an eval, inlined; the step around a function of four floats; registering an op and
// building a body of 20 ops. In turns, the least of the rounds; see README.md.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pestle/pestle.h"

enum {
  ROWS = 256,
  COLUMNS = 512,
  N = ROWS * COLUMNS,
  SMALL = 4,
  ROUNDS = 2000
};

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void need(pestle_status_t status) {
  char text[1024];
  if (!status) return;
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "%s\n", text);
  exit(1);
}

__attribute__((noinline)) static void axpby(const float* x, const float* y,
                                            float* z, float a, float b,
                                            size_t n) {
  for (size_t i = 0; i < n; ++i)
    z[i] = a * x[i] + b * y[i];
}

static pestle_status_t eval(void* user, const pestle_custom_call_t* call) {
  (void)user;
  const pestle_tensor_t* t = &call->outputs[0];
  axpby(call->inputs[0].data, call->inputs[1].data, t->data,
        (float)pestle_custom_f64(call->attrs, "alpha"),
        (float)pestle_custom_f64(call->attrs, "beta"),
        (size_t)(t->ndim > 1 ? t->shape[0] * t->shape[1] : t->shape[0]));
  return NULL;
}

static pestle_status_t nothing(void* user, const pestle_custom_call_t* call) {
  (void)user, (void)call;
  return NULL;
}

static pestle_status_t scaled(pestle_builder_t* b, pestle_value_t* x, double by,
                              pestle_value_t** out) {
  float value = (float)by;
  pestle_constant_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .value = {pestle_value_type(x), &value, sizeof(value), true}};
  pestle_value_t* k;
  PESTLE_TRY(pestle_op_constant(b, &attrs, &k));
  return pestle_op_multiply(b, x, k, out);
}

static pestle_status_t body(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n,
                            pestle_value_t** out) {
  pestle_value_t *x, *y;
  (void)user;
  PESTLE_TRY(
      scaled(b, n->operands[0], pestle_custom_f64(n->attrs, "alpha"), &x));
  PESTLE_TRY(
      scaled(b, n->operands[1], pestle_custom_f64(n->attrs, "beta"), &y));
  return pestle_op_add(b, x, y, out);
}

static pestle_status_t twenty(void* user, pestle_builder_t* b,
                              const pestle_custom_node_t* n,
                              pestle_value_t** out) {
  (void)user;
  *out = n->operands[0];
  for (int i = 0; i < 20; ++i)
    PESTLE_TRY(pestle_op_add(b, *out, n->operands[1], out));
  return NULL;
}

static const pestle_custom_attr_t alpha = {sizeof(alpha), "alpha",
                                           PESTLE_CUSTOM_F64, NULL, false};
static const pestle_custom_attr_t beta = {sizeof(beta), "beta",
                                          PESTLE_CUSTOM_F64, NULL, false};
static const pestle_custom_attr_t* const rows[] = {&alpha, &beta};

static void add_op(pestle_context_t* c, const char* name,
                   pestle_custom_call_fn_t function, int32_t prefer) {
  pestle_custom_eval_t e = {
      .struct_size = sizeof(e), .target = "*", .id = "1", .function = function};
  const pestle_custom_eval_t* evals[] = {&e};
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = name,
                           .attrs = rows,
                           .attr_count = 2,
                           .body = body,
                           .evals = evals,
                           .eval_count = 1,
                           .prefer = prefer};
  need(pestle_context_register_op(c, &op));
}

// main = the op |name|, or the same composed of ops; in the middle of
// sin(op(x, y)) * y where |chain|.
static pestle_executable_t* make(pestle_context_t* c, const char* name,
                                 bool chain, const pestle_type_t* type) {
  pestle_type_t types[] = {*type, *type};
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_value_t *in[2], *z;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  need(pestle_module_create(c, "m", &module));
  need(pestle_module_add_function(module, "main", types, NULL, 2, &f));
  pestle_builder_t b = pestle_builder_make(f);
  in[0] = pestle_function_argument(f, 0);
  in[1] = pestle_function_argument(f, 1);
  if (name) {
    pestle_custom_attr_value_t attrs[] = {
        {.name = "alpha", .kind = PESTLE_CUSTOM_F64, .as.f64 = 4},
        {.name = "beta", .kind = PESTLE_CUSTOM_F64, .as.f64 = 2}};
    need(pestle_op_custom(&b, name, in, 2, attrs, 2, &z, 1));
  } else {
    pestle_value_t *x, *y;
    need(scaled(&b, in[0], 4, &x));
    need(scaled(&b, in[1], 2, &y));
    need(pestle_op_add(&b, x, y, &z));
  }
  if (chain) {
    need(pestle_op_sine(&b, z, &z));
    need(pestle_op_multiply(&b, z, in[1], &z));
  }
  need(pestle_op_return(&b, &z, 1, NULL));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  need(pestle_compile(c, module, NULL, &options, &plan));
  need(pestle_executable_create(c, plan, NULL, &e));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return e;
}

static size_t kernels_of(const pestle_executable_t* e) {
  size_t count = 0;
  for (size_t i = 0; i < pestle_executable_step_count(e); ++i) {
    pestle_step_info_t info = {.struct_size = sizeof(info)};
    need(pestle_executable_step(e, i, &info));
    count += info.kind == PESTLE_STEP_KERNEL;
  }
  return count;
}

static float *x, *y, *z;

static double time_run(pestle_executable_t* e, int32_t rank, int64_t* shape) {
  pestle_tensor_t t[3];
  float* data[] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    t[i] = (pestle_tensor_t){.data = data[i],
                             .device = {PESTLE_DEVICE_CPU, 0},
                             .ndim = rank,
                             .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                             .shape = shape};
  }
  double begin = now_ns();
  need(pestle_executable_run(e, NULL, t, 2, t + 2, 1, NULL));
  return now_ns() - begin;
}

static void least(double* best, double ns) {
  if (*best == 0 || ns < *best) *best = ns;
}

static void bench_runs(pestle_context_t* c) {
  static int64_t shape[] = {ROWS, COLUMNS}, small[] = {SMALL};
  pestle_type_t type = {PESTLE_F32, 2, {ROWS, COLUMNS}};
  pestle_type_t four = {PESTLE_F32, 1, {SMALL}};
  pestle_executable_t* e[] = {make(c, "bench.eval", false, &type),
                              make(c, "bench.inline", false, &type),
                              make(c, "bench.inline", true, &type),
                              make(c, NULL, true, &type),
                              make(c, "bench.nothing", false, &four)};
  double best[6] = {0};
  for (int r = 0; r < ROUNDS; ++r) {
    for (int k = 0; k < 4; ++k)
      least(&best[k], time_run(e[k], 2, shape));
    least(&best[4], time_run(e[4], 1, small));
    double begin = now_ns();
    axpby(x, y, z, 4, 2, N);
    least(&best[5], now_ns() - begin);
  }
  printf("C loop %.2f us\n", best[5] / 1e3);
  printf("eval %.2f us, %.3f of the loop\n", best[0] / 1e3, best[0] / best[5]);
  printf("inlined %.2f us, %.3f of the loop\n", best[1] / 1e3,
         best[1] / best[5]);
  printf("sin(op) * y %.2f us (%zu kernels), composed %.2f us (%zu): %.3f\n",
         best[2] / 1e3, kernels_of(e[2]), best[3] / 1e3, kernels_of(e[3]),
         best[2] / best[3]);
  printf("a run of one call of nothing %.0f ns\n", best[4]);
  for (int k = 0; k < 5; ++k)
    pestle_executable_release(e[k]);
}

static void bench_building(pestle_context_t* c) {
  enum { OPS = 200 };
  double best = 0, expand = 0;
  for (int i = 0; i < OPS; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "bench.many%d", i);
    pestle_custom_op_t op = {
        .struct_size = sizeof(op), .name = name, .body = twenty};
    double begin = now_ns();
    need(pestle_context_register_op(c, &op));
    least(&best, now_ns() - begin);
  }
  pestle_type_t types[] = {{PESTLE_F32, 1, {SMALL}}, {PESTLE_F32, 1, {SMALL}}};
  pestle_module_t* module;
  pestle_function_t* f;
  need(pestle_module_create(c, "m", &module));
  need(pestle_module_add_function(module, "main", types, NULL, 2, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* in[] = {pestle_function_argument(f, 0),
                          pestle_function_argument(f, 1)};
  for (int i = 0; i < OPS; ++i) {
    pestle_value_t* out;
    double begin = now_ns();
    need(pestle_op_custom(&b, "bench.many0", in, 2, NULL, 0, &out, 1));
    least(&expand, now_ns() - begin);
  }
  pestle_module_release(module);
  printf("registering an op %.2f us, building a body of 20 ops %.2f us\n",
         best / 1e3, expand / 1e3);
}

int main(void) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .threads = 1, .use_environment = true};
  pestle_context_t* c;
  need(pestle_context_create(&options, &c));
  x = aligned_alloc(64, N * sizeof(float));
  y = aligned_alloc(64, N * sizeof(float));
  z = aligned_alloc(64, N * sizeof(float));
  for (size_t i = 0; i < N; ++i) {
    x[i] = (float)(i % 97) / 97;
    y[i] = (float)(i % 89) / 89;
  }
  add_op(c, "bench.eval", eval, PESTLE_CUSTOM_EVAL);
  add_op(c, "bench.inline", eval, PESTLE_CUSTOM_INLINE);
  add_op(c, "bench.nothing", nothing, PESTLE_CUSTOM_EVAL);
  bench_runs(c);
  bench_building(c);
  free(x);
  free(y);
  free(z);
  pestle_context_release(c);
  return 0;
}
