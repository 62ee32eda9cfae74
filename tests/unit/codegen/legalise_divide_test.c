// SPDX-License-Identifier: Apache-2.0
// Quotients by constants are products of the same bits: the two terms over
// constants and dividends, and kernels before and after legalisation in the interpreter.
#include <math.h>

#include "codegen/legalise/legalise.h"
#include "unit/codegen/kir_test.h"

static uint32_t next_random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (uint32_t)(*state >> 32);
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static bool same(float a, float b) {
  return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static float product(float x, float high, float low) {
  return fmaf(x, high, x * low);
}

// All significands of x, at the least and the greatest quotients that rounding sees.
static void test_every_significand(void** state) {
  (void)state;
  unsigned tried = 0;
  const float constants[] = {3,          1 / 255.0F,  0.1F,   1.0F + 0x1p-23F,
                             1.9999999F, -0.0078431F, 1e-15F, 1.5F};
  for (size_t i = 0; i < sizeof constants / sizeof *constants; ++i) {
    float c = constants[i], high, low;
    if (!pestle_split_reciprocal(c, &high, &low)) continue;
    ++tried;
    for (uint32_t bits = 0; bits < 1u << 23; ++bits) {
      float x = float_of(0x3F800000u | bits);
      if (product(x, high, low) != x / c)
        fail_msg("%a / %a is %a, not %a", x, c, x / c, product(x, high, low));
    }
  }
  assert_in_range(tried, 6, 8);
}

static void test_constants(void** state) {
  (void)state;
  uint64_t seed = 7;
  unsigned refused = 0;
  const unsigned count = 20000;
  for (unsigned i = 0; i < count; ++i) {
    float high, low, c = float_of(next_random(&seed));
    if (fabsf(c) < 0x1p-60F || fabsf(c) > 0x1p59F) {
      c = float_of((next_random(&seed) & 0x807FFFFF) | 0x3C000000);
    }
    if (!pestle_split_reciprocal(c, &high, &low)) {
      ++refused;
      continue;
    }
    for (unsigned j = 0; j < 100; ++j) {
      // Near a midpoint of two floats, where the two may differ.
      float q = float_of((next_random(&seed) & 0x807FFFFF) | 0x3F800000);
      double middle = (double)q + (j & 1 ? 0x1p-24 : -0x1p-24);
      float x = (float)(middle * (double)c);
      if (product(x, high, low) != x / c)
        fail_msg("%a / %a is %a, not %a", x, c, x / c, product(x, high, low));
      x = float_of(next_random(&seed));
      float want = rintf(x / c), got = rintf(product(x, high, low));
      if (!same(want, got))
        fail_msg("%a / %a rounds to %a: %a", x, c, want, got);
    }
  }
  assert_true(refused * 20 < count);
}

static void test_special(void** state) {
  (void)state;
  const float values[] = {0.0F,    -0.0F,     INFINITY,   -INFINITY,
                          NAN,     0x1p-149F, -0x1p-149F, 0x1p-126F,
                          3.4e38F, -3.4e38F,  0x1p-30F,   -0x1p-30F};
  const float constants[] = {3, -3, 1e-17F, 1e17F, 0.02F, -0.8F};
  for (size_t c = 0; c < sizeof constants / sizeof *constants; ++c) {
    float high, low;
    assert_true(pestle_split_reciprocal(constants[c], &high, &low));
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
      float want = values[i] / constants[c];
      float got = product(values[i], high, low);
      assert_true(same(rintf(want), rintf(got)));
      assert_true(same(truncf(want), truncf(got)));
      assert_true(same(roundf(want), roundf(got)));
    }
  }
  const float refused[] = {0,        -0.0F, 1,     0.25F, -64,
                           INFINITY, NAN,   1e30F, 1e-30F};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    float high, low;
    assert_false(pestle_split_reciprocal(refused[i], &high, &low));
  }
}

// round(x / c), and a quotient that is stored too.
static const char text_format[] =
    "kernel @quotient(@x : global f32[8] readonly, @y : global f32[8],\n"
    "    @z : global f32[8]) {\n"
    "  %%0 = const 0 : index\n"
    "  %%1 = const 1 : index\n"
    "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
    "    %%3 = load @x[%%0] : f32x8 align 4\n"
    "    %%4 = const %s : f32x8\n"
    "    %%5 = divide %%3, %%4 : f32x8\n"
    "    %%6 = round_nearest_even %%5 : f32x8\n"
    "    store @y[%%0], %%6 align 4\n"
    "    store @z[%%0], %s align 4\n"
    "  }\n"
    "}\n";

static unsigned count_of(const pestle_kir_t* k, pestle_op_t op) {
  unsigned count = 0;
  for (uint32_t i = 0; i < k->inst_count; ++i)
    count += pestle_kir_inst(k, i)->op == pestle_kir_code(op);
  return count;
}

static void try_kernel(const char* constant, const char* stored, bool has_fma,
                       pestle_numerics_t numerics, unsigned want_divisions) {
  char text[1024];
  snprintf(text, sizeof text, text_format, constant, stored);
  pestle_kir_builder_t k, legal;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "quotient", &k));
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(ref->target->describe(ref->self, NULL, &caps));
  ref->deinit(ref->self);
  caps.flags &= ~(uint32_t)PESTLE_TARGET_FMA;
  if (has_fma) caps.flags |= PESTLE_TARGET_FMA;
  assert_ok(pestle_kir_legalise(&k.view, &caps, numerics, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  assert_int_equal(count_of(&legal.view, PESTLE_OP_DIVIDE), want_divisions);
  assert_int_equal(count_of(&legal.view, PESTLE_OP_FMA), !want_divisions);
  float x[8] = {0.5F, -0.0F, INFINITY, -INFINITY, 1.05F, -7.35F, 1e30F, 0.35F};
  float y[2][8], z[2][8];
  int32_t trap;
  assert_ok(kir_test_run(&k.view, (void*[]){x, y[0], z[0]}, NULL, 0, 1, &trap));
  assert_ok(
      kir_test_run(&legal.view, (void*[]){x, y[1], z[1]}, NULL, 0, 1, &trap));
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  assert_memory_equal(z[0], z[1], sizeof z[0]);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

static void test_kernels(void** state) {
  (void)state;
  const pestle_numerics_t strict = PESTLE_NUMERICS_STRICT;
  const pestle_numerics_t usual = PESTLE_NUMERICS_DEFAULT;
  try_kernel("0.3", "%6", true, strict, 0);
  // Who reads the quotient itself sees its least bits.
  try_kernel("0.3", "%5", true, strict, 1);
  try_kernel("0.3", "%5", true, usual, 0);
  try_kernel("0.3", "%6", false, strict, 1);
  try_kernel("0.3", "%6", false, usual, 1);
  try_kernel("0.25", "%6", true, usual, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_significand),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_special),
      cmocka_unit_test(test_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
