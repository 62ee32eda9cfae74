// SPDX-License-Identifier: Apache-2.0
// Values that change places: copies in an order that needs no temporary where
// there is one, and temporaries that all loops share where there is none.
#include <stdlib.h>

#include "pestle/pestle.h"
#include "test.h"
#include "view.h"

enum { N = 16 };

typedef struct plan_t {
  unsigned copies, inside;  // those of a loop's trips: before the last jump
  bool looks;               // at a condition
  long long arena, bound;
} plan_t;

static void read_plan(void* user, pestle_stage_t stage, const char* name,
                      const char* text, size_t size) {
  (void)stage, (void)name, (void)size;
  plan_t* plan = user;
  const char* at = strstr(text, "arena ");
  assert_non_null(at);
  assert_int_equal(sscanf(at, "arena %lld bytes (lower bound %lld)",
                          &plan->arena, &plan->bound),
                   2);
  const char *test = strstr(text, " jump_if_zero "), *back = NULL;
  plan->looks = test != NULL;
  for (at = text; (at = strstr(at, " jump ")); ++at)
    back = at;
  for (at = text; (at = strstr(at, " copy ")); ++at) {
    ++plan->copies;
    plan->inside += test && back && at > test && at < back;
  }
}

// Three values, |next| of which each becomes in a step; |steps| steps.
static plan_t run_loop(const char* next, int loops, int steps, float* out) {
  char text[8192];
  int at = snprintf(text, sizeof(text),
                    "module @m {\n  func.func @main(%%a: tensor<16xf32>, "
                    "%%b: tensor<16xf32>, %%c: tensor<16xf32>, %%n: "
                    "tensor<i32>) -> (tensor<16xf32>, tensor<16xf32>, "
                    "tensor<16xf32>) {\n    %%zero = stablehlo.constant "
                    "dense<0> : tensor<i32>\n");
  char a[16] = "%a", b[16] = "%b", c[16] = "%c";
  for (int l = 0; l < loops; ++l) {
    at += snprintf(
        text + at, sizeof(text) - (size_t)at,
        "    %%r%d:4 = stablehlo.while(%%i = %%zero, %%x = %s, %%y = %s, "
        "%%z = %s) : tensor<i32>, tensor<16xf32>, tensor<16xf32>, "
        "tensor<16xf32>\n    cond {\n      %%p = stablehlo.compare LT, %%i, "
        "%%n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n      "
        "stablehlo.return %%p : tensor<i1>\n    } do {\n      %%one = "
        "stablehlo.constant dense<1> : tensor<i32>\n      %%j = stablehlo.add "
        "%%i, %%one : tensor<i32>\n      stablehlo.return %%j, %s : "
        "tensor<i32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>\n    "
        "}\n",
        l, a, b, c, next);
    snprintf(a, sizeof(a), "%%r%d#1", l);
    snprintf(b, sizeof(b), "%%r%d#2", l);
    snprintf(c, sizeof(c), "%%r%d#3", l);
  }
  at += snprintf(text + at, sizeof(text) - (size_t)at,
                 "    return %s, %s, %s : tensor<16xf32>, tensor<16xf32>, "
                 "tensor<16xf32>\n  }\n}\n",
                 a, b, c);
  assert_true(at < (int)sizeof(text));
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  plan_t found = {0};
  pestle_compile_options_t how = {.struct_size = sizeof(how),
                                  .no_cache = true,
                                  .dump_stages = 1u << PESTLE_STAGE_PLAN,
                                  .dump = read_plan,
                                  .dump_user = &found};
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "loop.mlir", &module));
  assert_ok(pestle_compile(context, module, device, &how, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  _Alignas(64) static float in[3][N], got[3][N];
  _Alignas(64) static int32_t count;
  int64_t dims[] = {N};
  pestle_tensor_t args[4], results[3];
  count = steps;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < N; ++k)
      in[i][k] = (float)(i + 1);
    args[i] = test_view(in[i], PESTLE_F32, 1, dims, NULL);
    results[i] = test_view(got[i], PESTLE_F32, 1, dims, NULL);
  }
  args[3] = test_view(&count, PESTLE_I32, 0, NULL, NULL);
  assert_ok(pestle_executable_run(exe, NULL, args, 4, results, 3, NULL));
  for (int i = 0; i < 3; ++i) {
    for (int k = 1; k < N; ++k)
      assert_true(got[i][k] == got[i][0]);
    out[i] = got[i][0];
  }
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return found;
}

static void expect(const float* got, float a, float b, float c) {
  assert_true(got[0] == a && got[1] == b && got[2] == c);
}

static void test_shift(void** state) {
  (void)state;
  float out[3];
  plan_t up = run_loop("%x, %x, %y", 1, 2, out);
  expect(out, 1, 1, 1);
  (void)run_loop("%x, %x, %y", 1, 1, out);
  expect(out, 1, 1, 2);
  plan_t down = run_loop("%y, %z, %z", 1, 1, out);
  expect(out, 2, 3, 3);
  // Either way there is an order without a temporary.
  assert_int_equal(up.arena, up.bound);
  assert_int_equal(down.arena, down.bound);
  assert_int_equal(up.copies, down.copies);
}

static void test_cycle(void** state) {
  (void)state;
  float out[3];
  plan_t swap = run_loop("%y, %x, %z", 1, 3, out);
  expect(out, 2, 1, 3);
  plan_t turn = run_loop("%y, %z, %x", 1, 4, out);
  expect(out, 2, 3, 1);
  plan_t twice = run_loop("%y, %z, %x", 2, 1, out);
  expect(out, 3, 1, 2);
  // One value's room each, however long the cycle and however many loops.
  long long room = N * (long long)sizeof(float);
  assert_int_equal(swap.arena, swap.bound + room);
  assert_int_equal(turn.arena, turn.bound + room);
  assert_int_equal(twice.arena, twice.bound + room);
}

// A long state that its body turns by one element and adds to, and a short one of
// the same kind: after |steps| trips element i is that of i + steps, and steps more.
// |known|: the number of trips is a constant.
static plan_t run_turning(int extent, int steps, bool known) {
  char text[2048];
  snprintf(text, sizeof(text),
           "module @m { func.func @main(%%a: tensor<%dxf32>, %%n: tensor<i32>) "
           "-> tensor<%dxf32> {\n%%zero = stablehlo.constant dense<0> : "
           "tensor<i32>\n%%m = stablehlo.constant dense<%d> : tensor<i32>\n"
           "%%r:2 = stablehlo.while(%%i = %%zero, %%x = %%a) : "
           "tensor<i32>, tensor<%dxf32>\ncond {\n%%p = stablehlo.compare LT, "
           "%%i, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
           "stablehlo.return %%p : tensor<i1>\n} do {\n%%one = "
           "stablehlo.constant dense<1> : tensor<i32>\n%%j = stablehlo.add "
           "%%i, %%one : tensor<i32>\n%%h = stablehlo.slice %%x [1:%d] : "
           "(tensor<%dxf32>) -> tensor<%dxf32>\n%%t = stablehlo.slice %%x "
           "[0:1] : (tensor<%dxf32>) -> tensor<1xf32>\n%%y = "
           "stablehlo.concatenate %%h, %%t, dim = 0 : (tensor<%dxf32>, "
           "tensor<1xf32>) -> tensor<%dxf32>\n%%f = stablehlo.constant "
           "dense<1.0> : tensor<%dxf32>\n%%z = stablehlo.add %%y, %%f : "
           "tensor<%dxf32>\nstablehlo.return %%j, %%z : tensor<i32>, "
           "tensor<%dxf32>\n}\nreturn %%r#1 : tensor<%dxf32>\n} }",
           extent, extent, steps, extent, known ? "%m" : "%n", extent, extent,
           extent - 1, extent, extent - 1, extent, extent, extent, extent,
           extent);
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  plan_t found = {0};
  pestle_compile_options_t how = {.struct_size = sizeof(how),
                                  .no_cache = true,
                                  .dump_stages = 1u << PESTLE_STAGE_PLAN,
                                  .dump = read_plan,
                                  .dump_user = &found};
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "turn.mlir", &module));
  assert_ok(pestle_compile(context, module, device, &how, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  _Alignas(64) static float in[8192], got[8192];
  _Alignas(64) static int32_t count;
  int64_t dims[] = {extent};
  count = steps;
  for (int i = 0; i < extent; ++i)
    in[i] = (float)i;
  pestle_tensor_t args[2] = {test_view(in, PESTLE_F32, 1, dims, NULL),
                             test_view(&count, PESTLE_I32, 0, NULL, NULL)};
  pestle_tensor_t result = test_view(got, PESTLE_F32, 1, dims, NULL);
  assert_ok(pestle_executable_run(exe, NULL, args, 2, &result, 1, NULL));
  for (int i = 0; i < extent; ++i)
    assert_true(got[i] == (float)((i + steps) % extent + steps));
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return found;
}

static void test_turns(void** state) {
  (void)state;
  for (int steps = 0; steps < 6; ++steps) {
    // The short one is copied at the end of a trip; the long one is not.
    assert_int_equal(run_turning(16, steps, false).inside, 1);
    assert_int_equal(run_turning(8192, steps, false).inside, 0);
  }
}

// Nobody looks at the condition of a loop whose trips are known, even or odd.
static void test_known(void** state) {
  (void)state;
  for (int steps = 0; steps < 8; ++steps) {
    assert_false(run_turning(16, steps, true).looks && steps);
    assert_false(run_turning(8192, steps, true).looks && steps);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shift), cmocka_unit_test(test_cycle),
      cmocka_unit_test(test_turns), cmocka_unit_test(test_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
