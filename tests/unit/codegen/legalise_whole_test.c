// SPDX-License-Identifier: Apache-2.0
// Floats that visit a narrow integer: kernels before and after legalisation give the same
// bits in the interpreter, NaN, infinities and zeros of both signs included.
#include <math.h>

#include "codegen/legalise/legalise.h"
#include "unit/codegen/kir_test.h"

enum { COUNT = 8 };

// y = f32(T(clamp(least, zero + round(x), most))).
static const char text_format[] =
    "kernel @visit(@x : global f32[8] readonly, @y : global f32[8]) {\n"
    "  %%0 = const 0 : index\n"
    "  %%1 = const 1 : index\n"
    "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
    "    %%3 = load @x[%%0] : f32x8 align 4\n"
    "    %%4 = %s %%3 : f32x8\n"
    "    %%5 = const %s : f32x8\n"
    "    %%6 = %s %%4, %%5 : f32x8\n"
    "    %%7 = const %s : f32x8\n"
    "    %%8 = const %s : f32x8\n"
    "    %%9 = clamp %%7, %%6, %%8 : f32x8\n"
    "    %%10 = cast %%9 : %sx8\n"
    "    %%11 = cast %%10 : f32x8\n"
    "    store @y[%%0], %%11 align 4\n"
    "  }\n"
    "}\n";

typedef struct case_t {
  const char *round, *zero, *sum, *least, *most, *dtype;
  bool taken;
} case_t;

static unsigned casts_of(const pestle_kir_t* k) {
  unsigned count = 0;
  for (uint32_t i = 0; i < k->inst_count; ++i)
    count += pestle_kir_inst(k, i)->op == PESTLE_KIR_CAST;
  return count;
}

static void try_case(const case_t* c) {
  static const float values[][COUNT] = {
      {0, -0.0F, NAN, INFINITY, -INFINITY, 0.3F, -0.3F, 0.5F},
      {-0.5F, 1e9F, -1e9F, 127.4F, 127.6F, -128.6F, 255.5F, 254.5F},
      {-119.5F, -120, -120.5F, 134.5F, 135.5F, -7.5F, 70000, -40000}};
  char text[1024];
  snprintf(text, sizeof text, text_format, c->round, c->zero, c->sum, c->least,
           c->most, c->dtype);
  pestle_kir_builder_t k, legal;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "visit", &k));
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(ref->target->describe(ref->self, NULL, &caps));
  ref->deinit(ref->self);
  assert_ok(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_STRICT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  assert_int_equal(casts_of(&legal.view), c->taken ? 0 : 2);
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
    float x[COUNT], y[2][COUNT];
    int32_t trap;
    memcpy(x, values[i], sizeof x);
    assert_ok(kir_test_run(&k.view, (void*[]){x, y[0]}, NULL, 0, 1, &trap));
    assert_ok(kir_test_run(&legal.view, (void*[]){x, y[1]}, NULL, 0, 1, &trap));
    for (int j = 0; j < COUNT; ++j) {
      if (memcmp(&y[0][j], &y[1][j], sizeof y[0][j]))
        fail_msg("%s of %a is %a, not %a", c->dtype, x[j], y[1][j], y[0][j]);
    }
  }
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

static void test_visits(void** state) {
  (void)state;
  const char* even = "round_nearest_even";
  const case_t cases[] = {
      {even, "120.0", "add", "0.0", "255.0", "ui8", true},
      {even, "0.0", "add", "0.0", "255.0", "ui8", true},
      {even, "0.0", "add", "-128.0", "127.0", "i8", true},
      {"round_nearest_afz", "-3.0", "add", "-128.0", "127.0", "i8", true},
      {"floor", "7.0", "subtract", "0.0", "65535.0", "ui16", true},
      {even, "100.0", "add", "-32768.0", "32767.0", "i16", true},
      // Bounds on one side of zero.
      {even, "0.0", "add", "3.0", "100.0", "ui8", true},
      {even, "0.0", "add", "-100.0", "-3.0", "i8", true},
      // A zero below zero would stay one.
      {even, "-0.0", "add", "-128.0", "127.0", "i8", false},
      {even, "1.0", "multiply", "-128.0", "127.0", "i8", false},
      // Not whole, and beyond the integer's range.
      {even, "0.5", "add", "0.0", "255.0", "ui8", false},
      {"abs", "0.0", "add", "0.0", "255.0", "ui8", false},
      {even, "0.0", "add", "0.0", "254.5", "ui8", false},
      {even, "0.0", "add", "-1.0", "255.0", "ui8", false},
      {even, "0.0", "add", "0.0", "256.0", "ui8", false},
      {even, "0.0", "add", "-128.0", "128.0", "i8", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    try_case(&cases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_visits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
