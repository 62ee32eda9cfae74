// SPDX-License-Identifier: Apache-2.0
// The nest's verifier: what lowering and the sketch make passes at both levels,
// every rule refuses a nest that breaks it, damage never crashes it, and it
// lets nothing through that emission cannot take.
#include "codegen/nest/nest_verify.h"

#include <stdlib.h>

#include "unit/codegen/nest_test.h"

static void test_fusion(void** state) {
  lowering_t l;
  lowering_open(*state, &l);
  pestle_target_caps_t caps = test_caps();
  for (uint32_t pass = 0; pass < 3; ++pass) {
    // As if nothing fitted in a cache.
    caps.l2_bytes = caps.l3_bytes = pass == 2 ? 2 : 0;
    for (uint32_t g = 0; g < l.group_count; ++g) {
      pestle_nest_t nest;
      lowering_nest(&l, g, pass == 1 ? 2 : 0, &nest);
      assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_LOWERED, NULL));
      assert_ok(pestle_sketch(&nest, &caps, true));
      assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, &caps));
      pestle_nest_deinit(&nest);
      lowering_nest(&l, g, pass == 1 ? 2 : 0, &nest);
      assert_ok(pestle_schedule_plain(&nest));
      assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, NULL));
      pestle_nest_deinit(&nest);
    }
  }
  lowering_close(&l);
}

// --- Rules ---

static const char good[] =
    "nest \"k\" from \"\" {\n"
    "  input x : tensor<4x32xf32> slot 0\n"
    "  input j : tensor<4xi32> slot 1\n"
    "  local c : tensor<4xf32> private\n"
    "  local d : tensor<4x32xf32> shared\n"
    "  output y : tensor<4x32xf32> slot 0\n"
    "  stage c[a:4] add over [k:32] : f32 {\n"
    "    c = x[32*a + k] init f32 0.0\n"
    "    split k 16 -> ko, ki\n"
    "    loops a, ko, ki:parts:vector\n"
    "    at out.a\n"
    "  }\n"
    "  stage d[a:4, b:32] {\n"
    "    d = multiply(c[a], x[{clamp(i32 0, j[a], i32 127) in 0..127}])\n"
    "    loops a, b\n"
    "    at out.a\n"
    "  }\n"
    "  stage out[a:4, b:32] {\n"
    "    y[32*a + b] = select(lt.i1(c[a], d[a, b]), f32 1.0, x[32*a + b - 1] "
    "if inside(32*a + b, 1, 128))\n"
    "    split b 16 -> bo, bi\n"
    "    loops a:group, bo:unroll, bi:vector\n"
    "  }\n"
    "  schedule {\n"
    "  }\n"
    "}\n";

static pestle_status_t verify(const char* text, size_t size,
                              pestle_nest_level_t level,
                              const pestle_target_caps_t* caps, bool emit) {
  pestle_arena_t arena;
  pestle_nest_t nest;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_nest_init(pestle_allocator_system(), &arena, "", &nest);
  pestle_status_t status = pestle_nest_parse(text, size, "f.nest", &nest);
  if (!status) status = pestle_nest_verify(&nest, level, caps);
  if (!status && emit) {
    uint64_t hash[2];
    nest_hash(&nest, hash);
  }
  pestle_nest_deinit(&nest);
  pestle_arena_deinit(&arena);
  return status;
}

// |good| with |from| replaced by |to| breaks the rule that |message| names.
static void bad_at(pestle_nest_level_t level, const char* from, const char* to,
                   const char* message) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  const char* at = strstr(good, from);
  assert_non_null(at);
  pestle_strbuf_append_bytes(&text, good, (size_t)(at - good));
  pestle_strbuf_append_c(&text, to);
  pestle_strbuf_append_c(&text, at + strlen(from));
  assert_error(verify(text.data, text.size, level, NULL, false), INTERNAL,
               message);
  pestle_strbuf_deinit(&text);
}

static void lowered(const char* from, const char* to, const char* message) {
  bad_at(PESTLE_NEST_LOWERED, from, to, message);
}

static void scheduled(const char* from, const char* to, const char* message) {
  bad_at(PESTLE_NEST_SCHEDULED, from, to, message);
}

static void test_good(void** state) {
  (void)state;
  assert_ok(verify(good, strlen(good), PESTLE_NEST_SCHEDULED, NULL, true));
}

static void test_lowered_rules(void** state) {
  (void)state;
  lowered("multiply(c[a]", "multiply(j[a]",
          "nest 'k', stage 'd': operand 0 of multiply is i32, not f32");
  lowered("lt.i1(", "lt.f32(", "lt gives i1, not f32");
  lowered("select(lt.i1(c[a], d[a, b])", "select(c[a]", "chooses by an i1");
  lowered("multiply(c[a], ", "and(c[a], ", "and does not take f32");
  lowered("x[32*a + k]", "x[32*a + k + 1]",
          "reads elements 1..128 of 'x', which has 0..127");
  lowered("d[a, b]),", "d[a + 1, b]),", "reads elements 1..4 of 'd'");
  lowered("d[a, b]),", "d[a]),", "with 1 indices");
  lowered("d[a, b]),", "y[a, b]),", "reads the result 'y'");
  lowered("multiply(c[a], ", "multiply(d[a, b], ",
          "reads 'd', which no earlier stage writes");
  lowered("in 0..127", "in 0..128", "of 'x', which has 0..127");
  lowered("in 0..127", "in 9..1", "a computed index");
  lowered("add over", "subtract over", "not associative");
  lowered("init f32 0.0", "init i32 0", "starts at i32");
  lowered("y[32*a + b]", "y[31*a + b]", "more than once");
  lowered("y[32*a + b]", "y[32*a + b + 1]", "writes elements 1..128 of 'y'");
  lowered("y[32*a + b]", "y[b]", "more than once");
  lowered("local c : tensor<4xf32>", "local c : tensor<5xf32>",
          "one dim a map axis");
  lowered("x[32*a + k]", "acc.f32(0)", "outside of a combine step");
  lowered("if inside(32*a + b, 1, 128)", "if c[a]", "guarded by f32");
  lowered("x[32*a + k]", "x[4611686018427387904*a + k]", "64 bits");
}

static void test_scheduled_rules(void** state) {
  (void)state;
  scheduled("loops a, ko, ki:parts:vector", "loops a, ki:parts:vector",
            "leaves of axis 'k'");
  scheduled("loops a, ko, ki:parts:vector", "loops a, a, ko, ki:parts:vector",
            "4 loops stand for 3 axes");
  scheduled("loops a, ko, ki:parts:vector", "loops a, k, ko, ki:parts:vector",
            "leaves of axis 'k'");
  scheduled("ki:parts:vector", "ki:vector", "partial results");
  scheduled("split k 16", "split k 12", "a power of two");
  scheduled("loops a, ko, ki:parts:vector", "loops a, ki:parts:vector, ko",
            "innermost");
  scheduled("loops a, b\n", "loops a:group, b\n", "outermost loops");
  scheduled("loops a:group, bo:unroll", "loops a, bo:group", "outermost loops");
  scheduled("    at out.a\n", "", "neither inlined nor placed");
  scheduled("at out.a", "at out.bi", "under the vector loop");
  scheduled("at out.a", "at out.b", "under no loop of 'out'");
  scheduled("at out.a", "at d.a", "'out' reads it and does not run under");
  scheduled(" shared\n", "\n", "'d' has no scope");
}

static void test_scratch(void** state) {
  (void)state;
  pestle_target_caps_t caps = test_caps();
  caps.scratch_bytes = 32 * 4;
  assert_ok(verify(good, strlen(good), PESTLE_NEST_SCHEDULED, &caps, false));
  caps.scratch_bytes = 32 * 4 - 1;
  assert_error(verify(good, strlen(good), PESTLE_NEST_SCHEDULED, &caps, false),
               INTERNAL, "take 128 bytes; the target has 127");
}

// Damaged text that still reads is verified without a crash.
static void test_damage(void** state) {
  (void)state;
  char text[sizeof good];
  size_t size = sizeof good - 1;
  for (size_t i = 0; i < size; ++i) {
    for (int what = 0; what < 12; ++what) {
      static const char other[] = {'%', '9', 'a', '('};
      memcpy(text, good, sizeof text);
      if (what < 8) text[i] = (char)(text[i] ^ (1 << what));
      if (what >= 8) text[i] = other[what - 8];
      pestle_status_release(
          verify(text, size, PESTLE_NEST_SCHEDULED, NULL, false));
    }
  }
}

int main(void) {
  struct CMUnitTest tests[FUSION_COUNT + 8] = {
      cmocka_unit_test(test_good), cmocka_unit_test(test_lowered_rules),
      cmocka_unit_test(test_scheduled_rules), cmocka_unit_test(test_scratch),
      cmocka_unit_test(test_damage)};
  size_t n = 5;
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    tests[n++] = (struct CMUnitTest){.name = cases[i].name,
                                     .test_func = test_fusion,
                                     .initial_state = (void*)&cases[i]};
  }
  return _cmocka_run_group_tests("nest verifier", tests, n, NULL, NULL);
}
