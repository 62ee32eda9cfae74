// SPDX-License-Identifier: Apache-2.0
// Long reductions to few elements, compiled whole: what the evaluator says of the
// graph as it was, in several groups, and to the bit the same for any number of
// threads.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

static pestle_context_t* context;

typedef struct reduce_case_t {
  const char* name;
  const char* text;  // of the function's body, %x its argument
  const char *x, *results;
  uint64_t groups;  // of the first kernel, at least; on every target
} reduce_case_t;

#define F32_SUM(r, from, shape, to, dims)                       \
  "  %" r " = stablehlo.reduce(%" from                          \
  " init: %z) applies stablehlo.add across dimensions = [" dims \
  "] : (tensor<" shape "xf32>, tensor<f32>) -> tensor<" to "f32>\n"
#define ZERO "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define LOWEST "  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"

static const reduce_case_t cases[] = {
    {"sum", ZERO F32_SUM("r", "x", "262144", "", "0"), "262144xf32", "f32", 8},
    {"sum_of_a_prime_count", ZERO F32_SUM("r", "x", "200003", "", "0"),
     "200003xf32", "f32", 8},
    {"exp_of_a_prime_count",
     ZERO "  %e = stablehlo.exponential %x : tensor<200003xf32>\n" F32_SUM(
         "r", "e", "200003", "", "0"),
     "200003xf32", "f32", 8},
    {"square_of_difference",
     ZERO F32_SUM(
         "s", "x", "262144", "",
         "0") "  %n = stablehlo.constant dense<262144.0> : tensor<f32>\n"
              "  %m = stablehlo.divide %s, %n : tensor<f32>\n"
              "  %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) "
              "-> "
              "tensor<262144xf32>\n"
              "  %d = stablehlo.subtract %x, %b : tensor<262144xf32>\n"
              "  %q = stablehlo.multiply %d, %d : tensor<262144xf32>\n" F32_SUM(
                  "r", "q", "262144", "", "0"),
     "262144xf32", "f32", 8},
    {"rows", ZERO F32_SUM("r", "x", "3x70001", "3x", "1"), "3x70001xf32",
     "3xf32", 9},
    {"columns", ZERO F32_SUM("r", "x", "5003x37", "37x", "0"), "5003x37xf32",
     "37xf32", 8},
    {"around_a_dim", ZERO F32_SUM("r", "x", "67x5x601", "5x", "0, 2"),
     "67x5x601xf32", "5xf32", 8},
    {"maximum",
     LOWEST
     "  %r = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across "
     "dimensions = [0, 1] : (tensor<499x401xf32>, tensor<f32>) -> "
     "tensor<f32>\n",
     "499x401xf32", "f32", 8},
    {"bf16",
     "  %z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
     "  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
     "dimensions = [0] : (tensor<400003xbf16>, tensor<bf16>) -> tensor<bf16>\n",
     "400003xbf16", "bf16", 8},
    {"i32",
     "  %z = stablehlo.constant dense<5> : tensor<i32>\n"
     "  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
     "dimensions = [0] : (tensor<200003xi32>, tensor<i32>) -> tensor<i32>\n",
     "200003xi32", "i32", 8},
    {"minimum_of_u8",
     "  %z = stablehlo.constant dense<255> : tensor<ui8>\n"
     "  %r = stablehlo.reduce(%x init: %z) applies stablehlo.minimum across "
     "dimensions = [0] : (tensor<600011xui8>, tensor<ui8>) -> tensor<ui8>\n",
     "600011xui8", "ui8", 8},
    {"all_and",
     "  %z = stablehlo.constant dense<true> : tensor<i1>\n"
     "  %r = stablehlo.reduce(%x init: %z) applies stablehlo.and across "
     "dimensions = [0] : (tensor<600011xi1>, tensor<i1>) -> tensor<i1>\n",
     "600011xi1", "i1", 8},
    {"place_of_the_maximum",
     LOWEST
     "  %p = stablehlo.constant dense<0> : tensor<i32>\n"
     "  %i = stablehlo.iota dim = 0 : tensor<200003xi32>\n"
     "  %v, %r = \"stablehlo.reduce\"(%x, %i, %z, %p) "
     "<{dimensions = array<i64: 0>}> ({\n"
     "  ^bb0(%a: tensor<f32>, %ai: tensor<i32>, %b: tensor<f32>, %bi: "
     "tensor<i32>):\n"
     "    %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "    %2 = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "    %3 = stablehlo.compare LT, %ai, %bi : (tensor<i32>, tensor<i32>) -> "
     "tensor<i1>\n"
     "    %4 = stablehlo.and %2, %3 : tensor<i1>\n"
     "    %5 = stablehlo.or %1, %4 : tensor<i1>\n"
     "    %6 = stablehlo.select %5, %a, %b : tensor<i1>, tensor<f32>\n"
     "    %7 = stablehlo.select %5, %ai, %bi : tensor<i1>, tensor<i32>\n"
     "    stablehlo.return %6, %7 : tensor<f32>, tensor<i32>\n"
     "  }) : (tensor<200003xf32>, tensor<200003xi32>, tensor<f32>, "
     "tensor<i32>) -> (tensor<f32>, tensor<i32>)\n",
     "200003xf32", "i32", 8},
    {"softmax",
     "  %r = \"pestle.softmax\"(%x) <{dimensions = array<i64: 1>}> : "
     "(tensor<1x140001xf32>) -> tensor<1x140001xf32>\n",
     "1x140001xf32", "1x140001xf32", 8},
};

static pestle_module_t* parse(const reduce_case_t* c) {
  char text[4096];
  int size = snprintf(text, sizeof(text),
                      "func.func @main(%%x: tensor<%s>) -> tensor<%s> {\n%s"
                      "  return %%r : tensor<%s>\n}\n",
                      c->x, c->results, c->text, c->results);
  assert_in_range(size, 1, sizeof(text) - 1);
  pestle_module_t* module;
  assert_ok(pestle_module_parse(context, text, (size_t)size, c->name, &module));
  return module;
}

// Values between -1 and 1 that repeat after a prime count, so that some stand
// in several blocks.
static void* make_input(const pestle_type_t* type) {
  int64_t count = pestle_type_count(type);
  char* data = malloc(pestle_type_bytes(type));
  for (int64_t i = 0; i < count; ++i) {
    int64_t v = i * 7919 % 100003;
    float f = (float)v / 50000.0f - 1.0f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    uint16_t half = (uint16_t)(bits >> 16);
    if (type->dtype == PESTLE_F32) memcpy(data + i * 4, &f, 4);
    if (type->dtype == PESTLE_I32) memcpy(data + i * 4, &v, 4);
    if (type->dtype == PESTLE_BF16) memcpy(data + i * 2, &half, 2);
    if (type->dtype == PESTLE_U8) data[i] = (char)(v % 97 + 3);
    if (type->dtype == PESTLE_I1) data[i] = i != count - 2;
  }
  return data;
}

static double number(const pestle_type_t* type, const void* data, int64_t i) {
  float f = 0;
  int32_t n = 0;
  uint32_t bits = 0;
  switch ((int)type->dtype) {
    case PESTLE_F32:
      memcpy(&f, (const char*)data + i * 4, 4);
      return (double)f;
    case PESTLE_BF16:
      memcpy((char*)&bits + 2, (const char*)data + i * 2, 2);
      memcpy(&f, &bits, 4);
      return (double)f;
    case PESTLE_I32:
      memcpy(&n, (const char*)data + i * 4, 4);
      return n;
    default:
      return ((const uint8_t*)data)[i];
  }
}

// Of sums of a hundred thousand terms of size 1 that nearly cancel; the
// evaluator adds in the order of the elements, so its own error is of that size
// too. A sum of bf16 is rounded once more.
static bool is_near(const pestle_type_t* type, double want, double got) {
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
    return !(want < got) && !(want > got);
  }
  double relative = type->dtype == PESTLE_BF16 ? 1.0 / 128 : 1e-4;
  return fabs(want - got) <= relative * fabs(want) + 1e-2 * (fabs(want) > 1e-3);
}

typedef struct run_t {
  const reduce_case_t* c;
  pestle_module_t* module;
  const pestle_type_t* type;  // of the result
  void *input, *want;
} run_t;

static void* run_with(const run_t* r, pestle_executable_t* exe,
                      int32_t threads) {
  pestle_io_info_t io = pestle_executable_input(exe, 0);
  pestle_tensor_t in = {.data = r->input,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = io.rank,
                        .dtype = pestle_dtype_to_dlpack(io.dtype),
                        .shape = (int64_t*)(uintptr_t)io.dims};
  pestle_tensor_t out = {0};
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .threads = threads};
  assert_ok(pestle_executable_run(exe, NULL, &in, 1, &out, 1, &options));
  void* copy = malloc(pestle_type_bytes(r->type));
  memcpy(copy, out.data, pestle_type_bytes(r->type));
  pestle_tensor_release(exe, &out);
  return copy;
}

static void check_result(const run_t* r, const char* spec, const void* got) {
  for (int64_t i = 0; i < pestle_type_count(r->type); ++i) {
    double w = number(r->type, r->want, i), g = number(r->type, got, i);
    if (is_near(r->type, w, g)) continue;
    fail_msg("%s on %s: element %lld is %g, should be %g", r->c->name, spec,
             (long long)i, g, w);
  }
}

// "%ID = const N : index ... for %0 to %ID step 1 group.x", N the most yet.
static void find_groups(void* user, pestle_stage_t stage, const char* name,
                        const char* text, size_t size) {
  uint64_t* groups = user;
  (void)stage, (void)name, (void)size;
  const char* loop = strstr(text, " step 1 group.x");
  if (!loop) return;
  const char* id = loop;
  while (id > text && *id != '%')
    --id;
  char made[64];
  snprintf(made, sizeof(made), "%.*s = const ", (int)(loop - id), id);
  const char* bound = strstr(text, made);
  assert_non_null(bound);
  uint64_t n = strtoull(bound + strlen(made), NULL, 10);
  if (n > *groups) *groups = n;
}

static void run_on(const run_t* r, const char* spec) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built or not this machine
    pestle_status_release(status);
    return;
  }
  uint64_t groups = 0;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .dump_stages = 1u << PESTLE_STAGE_KERNELS,
                                      .dump = find_groups,
                                      .dump_user = &groups};
  assert_ok(pestle_compile(context, r->module, device, &options, &plan));
  assert_true(groups >= r->c->groups);
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  void* one = run_with(r, exe, 1);
  check_result(r, spec, one);
  for (int32_t threads = 2; threads <= 3; ++threads) {
    void* several = run_with(r, exe, threads);
    assert_memory_equal(one, several, pestle_type_bytes(r->type));
    free(several);
  }
  free(one);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
}

static void test_reduction(void** state) {
  run_t r = {.c = *state};
  r.module = parse(r.c);
  pestle_function_t* f = pestle_module_entry(r.module);
  r.type = pestle_node_operand(f->body->block->last, 0)->type;
  r.input = make_input(pestle_function_argument(f, 0)->type);
  r.want = malloc(pestle_type_bytes(r.type));
  assert_ok(pestle_ref_evaluate_function(
      pestle_allocator_system(), f, (const void* const*)&r.input, &r.want));
  run_on(&r, "llvm");
  run_on(&r, "ref");
  free(r.input);
  free(r.want);
  pestle_module_release(r.module);
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 3};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
  struct CMUnitTest tests[COUNT];
  for (size_t i = 0; i < COUNT; ++i) {
    tests[i] =
        (struct CMUnitTest){.name = cases[i].name,
                            .test_func = test_reduction,
                            .initial_state = (void*)(uintptr_t)&cases[i]};
  }
  return _cmocka_run_group_tests("long reductions", tests, COUNT, setup,
                                 teardown);
}
