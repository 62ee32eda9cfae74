// SPDX-License-Identifier: Apache-2.0
// From the ops of a model to its kernels and steps: every kernel names the
// locations of the ops that it computes, and every op that is left of a model is
// named by some step.
#include "compile/locations.h"

#include <stdlib.h>

#include "base/str.h"
#include "pestle/pestle.h"
#include "test.h"

typedef struct compiled_t {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
} compiled_t;

static compiled_t compile_with(const char* text, const char* device,
                               pestle_compile_options_t options) {
  compiled_t c;
  pestle_context_options_t settings = {
      .struct_size = sizeof(settings),
      .backend_path = getenv("PESTLE_BACKEND_PATH"),
      .no_cache = true};
  pestle_device_t* where;
  options.struct_size = sizeof(options);
  assert_ok(pestle_context_create(&settings, &c.context));
  assert_ok(pestle_context_device(c.context, device, &where));
  assert_ok(
      pestle_module_parse(c.context, text, strlen(text), "m.mlir", &c.module));
  assert_ok(pestle_compile(c.context, c.module, where, &options, &c.plan));
  assert_ok(pestle_executable_create(c.context, c.plan, where, &c.executable));
  return c;
}

static compiled_t compile(const char* text) {
  return compile_with(text, "ref", (pestle_compile_options_t){0});
}

static void release(compiled_t* c) {
  pestle_executable_release(c->executable);
  pestle_plan_release(c->plan);
  pestle_module_release(c->module);
  pestle_context_release(c->context);
}

static pestle_location_info_t location(const compiled_t* c, size_t index) {
  pestle_location_info_t l = {.struct_size = sizeof(l)};
  assert_ok(pestle_executable_location(c->executable, index, &l));
  return l;
}

static pestle_step_info_t step(const compiled_t* c, size_t index) {
  pestle_step_info_t s = {.struct_size = sizeof(s)};
  assert_ok(pestle_executable_step(c->executable, index, &s));
  return s;
}

// The number of the location with |name|.
static uint32_t number(const compiled_t* c, const char* name) {
  size_t count = pestle_executable_location_count(c->executable);
  for (uint32_t i = 0; i < count; ++i) {
    if (!strcmp(location(c, i).name, name)) return i;
  }
  fail_msg("there is no location '%s'", name);
  return 0;
}

static bool names(const pestle_step_info_t* s, uint32_t number) {
  for (size_t i = 0; i < s->location_count; ++i) {
    if (s->locations[i] == number) return true;
  }
  return false;
}

// Step |index| is for those whose names are in |wanted|, "a b c", alone.
static void expect(const compiled_t* c, size_t index, const char* wanted) {
  pestle_step_info_t s = step(c, index);
  pestle_strbuf_t got;
  pestle_strbuf_init(pestle_allocator_system(), &got);
  for (size_t i = 0; i < s.location_count; ++i) {
    pestle_strbuf_appendf(&got, i ? " %s" : "%s",
                          location(c, s.locations[i]).name);
  }
  assert_string_equal(pestle_strbuf_cstr(&got), wanted);
  pestle_strbuf_deinit(&got);
}

// Steps with numbers of ops, ascending; kernels and copies all have some.
static void check_steps(const compiled_t* c) {
  size_t locations = pestle_executable_location_count(c->executable);
  for (size_t i = 0; i < pestle_executable_step_count(c->executable); ++i) {
    pestle_step_info_t s = step(c, i);
    for (size_t n = 0; n < s.location_count; ++n) {
      assert_true(s.locations[n] < locations);
      if (n) assert_true(s.locations[n - 1] < s.locations[n]);
    }
    if (s.kind == PESTLE_STEP_KERNEL) assert_true(s.location_count > 0);
  }
}

// --- Fusions ---

// Two kernels, of which the second is a softmax that a pass finds; one op is in
// both as it must be computed anew; one falls away, one nobody needs.
static const char kFused[] =
    "func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> "
    "tensor<64x64xf32> {\n"
    "%one = stablehlo.constant dense<1.0> : tensor<64x64xf32>\n"
    "%inf = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> "
    "loc(\"dot\")\n"
    "%1 = stablehlo.multiply %0, %one : tensor<64x64xf32> loc(\"by_one\")\n"
    "%2 = stablehlo.tanh %1 : tensor<64x64xf32> loc(\"tanh\")\n"
    "%u = stablehlo.sine %x : tensor<64x64xf32> loc(\"unused\")\n"
    "%3 = stablehlo.reduce(%2 init: %inf) applies stablehlo.maximum across "
    "dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32> "
    "loc(\"max\")\n"
    "%4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<64xf32>) -> "
    "tensor<64x64xf32> loc(\"max_again\")\n"
    "%5 = stablehlo.subtract %2, %4 : tensor<64x64xf32> loc(\"sub\")\n"
    "%6 = stablehlo.exponential %5 : tensor<64x64xf32> loc(\"exp\")\n"
    "%7 = stablehlo.reduce(%6 init: %zero) applies stablehlo.add across "
    "dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32> "
    "loc(\"sum\")\n"
    "%8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<64xf32>) -> "
    "tensor<64x64xf32> loc(\"sum_again\")\n"
    "%9 = stablehlo.divide %6, %8 : tensor<64x64xf32> loc(\"div\")\n"
    "return %9 : tensor<64x64xf32>\n}\n";

static void test_fused(void** state) {
  (void)state;
  compiled_t c = compile(kFused);
  check_steps(&c);
  assert_int_equal(pestle_executable_location_count(c.executable), 11);
  // In the order of the module.
  assert_int_equal(number(&c, "dot"), 0);
  assert_int_equal(number(&c, "div"), 10);
  assert_string_equal(location(&c, 0).op, "dot_general");
  expect(&c, 0, "dot by_one tanh");
  expect(&c, 1, "max max_again sub exp sum sum_again div");
  release(&c);
}

// The numbers do not depend on what becomes of the ops.
static void test_without_fusion(void** state) {
  (void)state;
  compiled_t fused = compile(kFused);
  compiled_t apart =
      compile_with(kFused, "ref", (pestle_compile_options_t){.no_fuse = true});
  check_steps(&apart);
  size_t count = pestle_executable_location_count(fused.executable);
  assert_int_equal(pestle_executable_location_count(apart.executable), count);
  for (size_t i = 0; i < count; ++i) {
    assert_string_equal(location(&fused, i).name, location(&apart, i).name);
  }
  release(&fused);
  release(&apart);
}

// --- Places ---

static void test_places(void** state) {
  (void)state;
  compiled_t c = compile(
      "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
      "  %0 = stablehlo.tanh %x : tensor<8xf32> loc(\"net.py\":7:3)\n"
      "  %1 = stablehlo.sine %0 : tensor<8xf32> loc(\"act\"(\"net.py\":9:1))\n"
      "  %2 = stablehlo.cosine %1 : tensor<8xf32> loc(\"net.py\":7:3)\n"
      "  return %2 : tensor<8xf32>\n}\n");
  // The first and the last are from one place.
  assert_int_equal(pestle_executable_location_count(c.executable), 2);
  pestle_location_info_t l = location(&c, 0);
  assert_string_equal(l.op, "tanh");
  assert_string_equal(l.name, "");
  assert_string_equal(l.file, "net.py");
  assert_int_equal(l.line, 7);
  assert_int_equal(l.column, 3);
  l = location(&c, 1);
  assert_string_equal(l.name, "act");
  assert_int_equal(l.line, 9);
  assert_int_equal(step(&c, 0).location_count, 2);
  release(&c);
}

// Ops of the builder have no location: each has a number all the same.
static void test_no_places(void** state) {
  (void)state;
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_function_t* f;
  assert_ok(pestle_context_create(NULL, &context));
  assert_ok(pestle_module_create(context, "m", &module));
  pestle_type_t type = pestle_type_make(PESTLE_F32, 1, (int64_t[]){8});
  assert_ok(pestle_module_add_function(module, "main", &type, NULL, 1, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* x = pestle_function_argument(f, 0);
  assert_ok(pestle_op_tanh(&b, x, &x));
  assert_ok(pestle_op_sine(&b, x, &x));
  assert_ok(pestle_op_return(&b, &x, 1, NULL));
  pestle_device_t* device;
  pestle_plan_t* plan;
  compiled_t c = {.context = context, .module = module};
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_compile(context, module, device, NULL, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &c.executable));
  c.plan = plan;
  assert_int_equal(pestle_executable_location_count(c.executable), 2);
  assert_string_equal(location(&c, 1).op, "sine");
  assert_string_equal(location(&c, 1).file, "");
  assert_int_equal(location(&c, 1).line, 0);
  assert_int_equal(step(&c, 0).location_count, 2);
  release(&c);
}

// --- Control flow and functions ---

static void test_loop(void** state) {
  (void)state;
  compiled_t c = compile(
      "func.func private @twice(%x: tensor<32xf32>) -> tensor<32xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<32xf32> loc(\"twice\")\n"
      "  return %0 : tensor<32xf32>\n}\n"
      "func.func @main(%x: tensor<32xf32>, %n: tensor<i32>) -> "
      "tensor<32xf32> {\n"
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%r:2 = stablehlo.while(%i = %zero, %p = %x) : tensor<i32>, "
      "tensor<32xf32>\n cond {\n"
      "  %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, "
      "tensor<i32>) -> tensor<i1> loc(\"less\")\n"
      "  stablehlo.return %c : tensor<i1>\n"
      "} do {\n"
      "  %j = stablehlo.add %i, %one : tensor<i32> loc(\"next\")\n"
      "  %t = func.call @twice(%p) : (tensor<32xf32>) -> tensor<32xf32> "
      "loc(\"call\")\n"
      "  stablehlo.return %j, %t : tensor<i32>, tensor<32xf32>\n"
      "} loc(\"loop\")\n"
      "%e = stablehlo.sine %r#1 : tensor<32xf32> loc(\"sine\")\n"
      "return %e : tensor<32xf32>\n}\n");
  check_steps(&c);
  uint32_t loop = number(&c, "loop"), twice = number(&c, "twice");
  uint32_t call = number(&c, "call");
  size_t jumps = 0, doubles = 0, calls = 0;
  for (size_t i = 0; i + 1 < pestle_executable_step_count(c.executable); ++i) {
    pestle_step_info_t s = step(&c, i);
    if (s.kind == PESTLE_STEP_JUMP) {
      assert_true(names(&s, loop));
      ++jumps;
    }
    doubles += s.kind == PESTLE_STEP_KERNEL && names(&s, twice);
    calls += s.kind == PESTLE_STEP_KERNEL && names(&s, call);
  }
  assert_int_equal(jumps, 2);
  assert_int_equal(doubles, 1);
  assert_int_equal(calls, 1);
  release(&c);
}

// --- Passes ---

// A module goes through the passes; |wanted| ops are then named by kernels.
static void expect_all_named(const char* text, const char* device) {
  compiled_t c =
      compile_with(text, device, (pestle_compile_options_t){.verify = true});
  check_steps(&c);
  size_t count = pestle_executable_location_count(c.executable);
  for (uint32_t n = 0; n < count; ++n) {
    bool named = false;
    for (size_t i = 0; i < pestle_executable_step_count(c.executable); ++i) {
      pestle_step_info_t s = step(&c, i);
      named = named || names(&s, n);
    }
    if (!named) fail_msg("no step names '%s'", location(&c, n).name);
  }
  release(&c);
}

static void test_layouts(void** state) {
  (void)state;
  // Convolutions turn to channels last, and transposes move behind the sine.
  expect_all_named(
      "func.func @main(%x: tensor<1x8x16x16xf32>, %b: tensor<8xf32>) -> "
      "tensor<1x8x16x16xf32> {\n"
      "%w = stablehlo.constant dense<0.5> : tensor<8x8x3x3xf32>\n"
      "%0 = stablehlo.convolution(%x, %w) dim_numbers = "
      "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], "
      "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<1x8x16x16xf32>, "
      "tensor<8x8x3x3xf32>) -> tensor<1x8x16x16xf32> loc(\"conv1\")\n"
      "%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> "
      "tensor<1x8x16x16xf32> loc(\"bias\")\n"
      "%2 = stablehlo.add %0, %1 : tensor<1x8x16x16xf32> loc(\"add\")\n"
      "%3 = stablehlo.sine %2 : tensor<1x8x16x16xf32> loc(\"sine\")\n"
      "%4 = stablehlo.convolution(%3, %w) dim_numbers = "
      "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], "
      "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<1x8x16x16xf32>, "
      "tensor<8x8x3x3xf32>) -> tensor<1x8x16x16xf32> loc(\"conv2\")\n"
      "return %4 : tensor<1x8x16x16xf32>\n}\n",
      "cpu");
}

static void test_merged(void** state) {
  (void)state;
  // Two equal ops are one, a sum of weights is in the constants.
  expect_all_named(
      "func.func @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {\n"
      "%0 = stablehlo.tanh %x : tensor<32x32xf32> loc(\"one\")\n"
      "%1 = stablehlo.tanh %x : tensor<32x32xf32> loc(\"other\")\n"
      "%2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [1] : "
      "(tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> "
      "loc(\"dot\")\n"
      "%3 = stablehlo.negate %2 : tensor<32x32xf32> loc(\"neg\")\n"
      "%4 = stablehlo.negate %3 : tensor<32x32xf32> loc(\"neg_again\")\n"
      "return %4 : tensor<32x32xf32>\n}\n",
      "ref");
}

// Complex numbers, scans and transforms become many ops of other kinds.
static void test_expanded(void** state) {
  (void)state;
  expect_all_named(
      "func.func @main(%x: tensor<16xcomplex<f32>>) -> "
      "tensor<16xcomplex<f32>> {\n"
      "%0 = stablehlo.exponential %x : tensor<16xcomplex<f32>> "
      "loc(\"exp\")\n"
      "%1 = stablehlo.multiply %0, %x : tensor<16xcomplex<f32>> "
      "loc(\"mul\")\n"
      "%2 = stablehlo.fft %1, type = FFT, length = [16] : "
      "(tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>> loc(\"fft\")\n"
      "return %2 : tensor<16xcomplex<f32>>\n}\n",
      "ref");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fused),  cmocka_unit_test(test_without_fusion),
      cmocka_unit_test(test_places), cmocka_unit_test(test_no_places),
      cmocka_unit_test(test_loop),   cmocka_unit_test(test_layouts),
      cmocka_unit_test(test_merged), cmocka_unit_test(test_expanded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
