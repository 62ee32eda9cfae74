// SPDX-License-Identifier: Apache-2.0
// Derivatives of collectives, over all processes: sum <c, J t> = sum <J^T c, t>, each
// batched against what it does to one element, and what has no derivative.
#include "transform_test.h"

enum { RANKS = 4, MOST_ELEMENTS = 64, SIZE = 3 };

typedef double numbers4_t[RANKS][MOST_ELEMENTS];

static pestle_context_t* context;

#define GROUPS                                                         \
  "replica_groups = dense<[[2, 0], [3, 1]]> : tensor<2x2xi64>, "       \
  "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, " \
  "use_global_device_ids"
#define ALL                                                            \
  "replica_groups = dense<> : tensor<0x0xi64>, "                       \
  "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, " \
  "use_global_device_ids"
#define REGION(op)                                                   \
  " ({\n^bb0(%x: tensor<f64>, %y: tensor<f64>):\n%s = stablehlo." op \
  " %x, %y : tensor<f64>\nstablehlo.return %s : tensor<f64>\n})"
#define CASE(name, in, out, op, attrs, region)                               \
  {name,                                                                     \
   "module @m attributes {mhlo.num_partitions = 4 : i32, "                   \
   "mhlo.num_replicas = 1 : i32} {\nfunc.func @main(%a: tensor<" in          \
   "xf64>) -> tensor<" out "xf64> {\n%r = \"stablehlo." op "\"(%a) <{" attrs \
   "}>" region " : (tensor<" in "xf64>) -> tensor<" out                      \
   "xf64>\nreturn %r : tensor<" out "xf64>\n}\n}\n"}

static const struct {
  const char *name, *text;
} cases[] = {
    CASE("all_reduce", "2x3", "2x3", "all_reduce", GROUPS, REGION("add")),
    CASE("all_gather", "2x3", "2x6", "all_gather",
         "all_gather_dim = 1 : i64, " GROUPS, ""),
    CASE("reduce_scatter", "4x3", "2x3", "reduce_scatter",
         "scatter_dimension = 0 : i64, " GROUPS, REGION("add")),
    CASE("all_to_all", "4x3", "2x6", "all_to_all",
         "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = "
         "2 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type "
         "= 1>, replica_groups = dense<[[2, 0], [3, 1]]> : tensor<2x2xi64>",
         ""),
    CASE("collective_permute", "2x3", "2x3", "collective_permute",
         "source_target_pairs = dense<[[0, 2], [2, 3], [3, 1]]> : "
         "tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = "
         "1, type = 1>",
         ""),
    CASE("collective_broadcast", "2x3", "2x3", "collective_broadcast",
         "replica_groups = dense<[[2, 0]]> : tensor<1x2xi64>, channel_handle = "
         "#stablehlo.channel_handle<handle = 1, type = 1>",
         ""),
    CASE("of all", "2x3", "2x3", "collective_broadcast",
         "replica_groups = dense<> : tensor<0x0xi64>, channel_handle = "
         "#stablehlo.channel_handle<handle = 1, type = 1>",
         ""),
    CASE("maximum", "2x3", "2x3", "all_reduce", GROUPS, REGION("maximum")),
    CASE("minimum", "2x3", "2x3", "all_reduce", GROUPS, REGION("minimum")),
    CASE("product", "2x3", "2x3", "all_reduce", GROUPS, REGION("multiply")),
    CASE("product of all", "2x3", "2x3", "all_reduce", ALL, REGION("multiply")),
    CASE("power", "2x3", "2x3", "all_reduce", GROUPS, REGION("atan2")),
    CASE("scattered maximum", "4x3", "2x3", "reduce_scatter",
         "scatter_dimension = 0 : i64, " GROUPS, REGION("maximum")),
    CASE("scattered product", "3x4", "3x2", "reduce_scatter",
         "scatter_dimension = 1 : i64, " GROUPS, REGION("multiply")),
};

static pestle_module_t* parse(const char* text) {
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "test.mlir", &module));
  return module;
}

static size_t elements(const pestle_type_t* type) {
  return (size_t)pestle_type_count(type);
}

// Every process' results of |module|, one or two, on |a| and, where there is a second
// argument, |b|.
static void run_all(pestle_module_t* module, numbers4_t a, numbers4_t b,
                    numbers4_t y, numbers4_t z) {
  const void* in[RANKS][2];
  void* out[RANKS][2];
  const void* const* all_in[RANKS];
  void* const* all_out[RANKS];
  assert_ok(pestle_module_verify(module));
  for (int r = 0; r < RANKS; ++r) {
    in[r][0] = a[r];
    in[r][1] = b[r];
    out[r][0] = y[r];
    out[r][1] = z[r];
    all_in[r] = in[r];
    all_out[r] = out[r];
  }
  assert_ok(pestle_ref_evaluate_world(
      pestle_allocator_system(), pestle_module_entry(module), all_in, all_out));
}

static void fill(numbers4_t a, uint64_t seed) {
  for (int r = 0; r < RANKS; ++r) {
    for (int i = 0; i < MOST_ELEMENTS; ++i)
      a[r][i] = 2 * next_random(&seed) - 1;
  }
}

static double inner4(numbers4_t a, numbers4_t b, size_t count) {
  double sum = 0;
  for (int r = 0; r < RANKS; ++r) {
    for (size_t i = 0; i < count; ++i)
      sum += a[r][i] * b[r][i];
  }
  return sum;
}

static void modes_agree(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
    static numbers4_t x, t, c, y, ty, xc;
    pestle_module_t *jvp, *vjp, *module = parse(cases[k].text);
    const pestle_function_t* f = pestle_module_entry(module);
    size_t in = elements(f->body->block->arguments[0]->type);
    size_t out = elements(pestle_node_operand(f->body->block->last, 0)->type);
    fill(x, 1);
    fill(t, 2);
    fill(c, 3);
    assert_ok(pestle_module_jvp(module, NULL, &jvp));
    assert_ok(pestle_module_vjp(module, NULL, &vjp));
    run_all(jvp, x, t, y, ty);
    run_all(vjp, x, c, y, xc);
    double forward = inner4(c, ty, out), backward = inner4(xc, t, in);
    if (fabs(forward - backward) > 1e-12 || fabs(forward) < 1e-6) {
      fail_msg("%s: %.17g, %.17g", cases[k].name, forward, backward);
    }
    pestle_module_release(jvp);
    pestle_module_release(vjp);
    pestle_module_release(module);
  }
}

static void batches_are_loops(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
    static numbers4_t x, y, none, one, want;
    pestle_module_t *made, *module = parse(cases[k].text);
    const pestle_function_t* f = pestle_module_entry(module);
    size_t in = elements(f->body->block->arguments[0]->type);
    size_t out = elements(pestle_node_operand(f->body->block->last, 0)->type);
    pestle_vmap_options_t o = {.struct_size = sizeof(o), .size = SIZE};
    assert_ok(pestle_module_vmap(module, &o, &made));
    fill(x, 4);
    run_all(made, x, none, y, none);
    for (size_t b = 0; b < SIZE; ++b) {
      for (int r = 0; r < RANKS; ++r)
        memcpy(one[r], x[r] + b * in, in * sizeof(double));
      run_all(module, one, none, want, none);
      for (int r = 0; r < RANKS; ++r) {
        for (size_t i = 0; i < out; ++i) {
          if (y[r][b * out + i] == want[r][i]) continue;
          fail_msg("%s: element %zu of process %d is another", cases[k].name, b,
                   r);
        }
      }
    }
    pestle_module_release(made);
    pestle_module_release(module);
  }
}

// jvp against differences; one process has a factor of 0, and two share a maximum.
static void tangents_are_differences(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
    static numbers4_t x, t, above, below, y, ty, yh, yl, none;
    pestle_module_t *jvp, *module = parse(cases[k].text);
    const pestle_function_t* f = pestle_module_entry(module);
    size_t out = elements(pestle_node_operand(f->body->block->last, 0)->type);
    const double h = 1e-6;
    fill(x, 5);
    fill(t, 6);
    x[2][0] = 0;
    for (int r = 0; r < RANKS; ++r) {
      for (int i = 0; i < MOST_ELEMENTS; ++i) {
        above[r][i] = x[r][i] + h * t[r][i];
        below[r][i] = x[r][i] - h * t[r][i];
      }
    }
    assert_ok(pestle_module_jvp(module, NULL, &jvp));
    run_all(jvp, x, t, y, ty);
    run_all(module, above, none, yh, none);
    run_all(module, below, none, yl, none);
    for (int r = 0; r < RANKS; ++r) {
      for (size_t i = 0; i < out; ++i) {
        double wanted = (yh[r][i] - yl[r][i]) / (2 * h);
        if (fabs(wanted - ty[r][i]) < 1e-7 * (1 + fabs(wanted))) continue;
        fail_msg("%s: element %zu of process %d: %.12g, not %.12g",
                 cases[k].name, i, r, ty[r][i], wanted);
      }
    }
    pestle_module_release(jvp);
    pestle_module_release(module);
  }
}

// The cotangent of a maximum that two have is shared.
static void equals_share(void** state) {
  (void)state;
  static const struct {
    const char *name, *text;
  } maximum = CASE("", "2x3", "2x3", "all_reduce", GROUPS, REGION("maximum"));
  static numbers4_t x, c, y, xc;
  pestle_module_t *vjp, *module = parse(maximum.text);
  assert_ok(pestle_module_vjp(module, NULL, &vjp));
  fill(x, 7);
  x[0][0] = x[2][0] = 2;
  x[1][1] = 5;
  for (int r = 0; r < RANKS; ++r)
    c[r][0] = c[r][1] = 1;
  run_all(vjp, x, c, y, xc);
  assert_true(xc[0][0] == 1 && xc[2][0] == 1);
  assert_true(xc[1][1] == 2 && xc[3][1] == 0);
  pestle_module_release(vjp);
  pestle_module_release(module);
}

static void others_are_refused(void** state) {
  (void)state;
  static const struct {
    const char *name, *text;
  } sizes = CASE("", "2x3", "2x3", "all_reduce",
                 "replica_groups = dense<[[2, 0, 3], [1, -1, -1]]> : "
                 "tensor<2x3xi64>, channel_handle = "
                 "#stablehlo.channel_handle<handle = 1, type = 1>, "
                 "use_global_device_ids",
                 REGION("maximum"));
  pestle_module_t *made, *module = parse(sizes.text);
  assert_code(pestle_module_jvp(module, NULL, &made), UNSUPPORTED);
  assert_code(pestle_module_vjp(module, NULL, &made), UNSUPPORTED);
  pestle_module_release(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(modes_agree), cmocka_unit_test(batches_are_loops),
      cmocka_unit_test(tangents_are_differences),
      cmocka_unit_test(equals_share), cmocka_unit_test(others_are_refused)};
  assert_ok(pestle_context_create(NULL, &context));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  pestle_context_release(context);
  return failed;
}
