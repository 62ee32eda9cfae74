// SPDX-License-Identifier: Apache-2.0
// The nest's text: what is printed reads back and prints the same, before and
// after scheduling; what cannot be read is said with file, line, column and
// what was expected; damage never does more than that.
#include <stdlib.h>

#include "unit/codegen/nest_test.h"

static void check_round_trip(const case_t* c, pestle_nest_t* nest,
                             pestle_nest_t* out_copy) {
  pestle_strbuf_t text = nest_text(nest);
  if (getenv("PESTLE_TEST_PRINT")) {
    print_message("%s\n", pestle_strbuf_cstr(&text));
  }
  pestle_nest_init(pestle_allocator_system(), nest->arena, "", out_copy);
  assert_ok(pestle_nest_parse(text.data, text.size, c->name, out_copy));
  pestle_strbuf_t again = nest_text(out_copy);
  assert_string_equal(text.data, again.data);
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&again);
}

static void test_round_trip(void** state) {
  const case_t* c = *state;
  lowering_t l;
  lowering_open(c, &l);
  pestle_target_caps_t caps = test_caps();
  for (uint32_t pass = 0; pass < 4; ++pass) {
    // As if nothing fitted in a cache, or a few rows did.
    caps.l2_bytes = caps.l3_bytes = pass == 2 ? 2 : pass == 3 ? 8 << 10 : 0;
    for (uint32_t g = 0; g < l.group_count; ++g) {
      pestle_nest_t nest, copy, scheduled;
      lowering_nest(&l, g, pass == 1 ? 2 : 0, &nest);
      check_round_trip(c, &nest, &copy);
      assert_ok(pestle_sketch(&nest, &caps, true));
      check_round_trip(c, &nest, &scheduled);
      // What was read is as good as what was written.
      uint64_t hash[2];
      nest_hash(&scheduled, hash);
      pestle_nest_deinit(&nest);
      pestle_nest_deinit(&copy);
      pestle_nest_deinit(&scheduled);
    }
  }
  lowering_close(&l);
}

// --- One text by hand ---

static const char everything[] =
    "nest \"k\" from \"dot_general, tanh\" {\n"
    "  input a : tensor<4x8xf32> slot 0\n"
    "  input b : tensor<8x32xf32> slot 1 constant pack 0 [16:2 of 32 by 16, "
    "32:8, 1:16 of 32 by 1]\n"
    "  input i : tensor<i32> slot 2\n"
    "  output y : tensor<4x32xf32> slot 0 over 2\n"
    "  local c : tensor<4x32xf32> private\n"
    "  local m : tensor<4xf32> shared\n"
    "  local n : tensor<4xi32>\n"
    "  stage c[a:4, b:32] add over [k:8] : f32 f8 border {\n"
    "    c = multiply(a[8*a + k], b[16*k + 128*(b)/16 + (b)%16]) init f32 0.0\n"
    "    split b 16 -> bo, bi\n"
    "    split k 4 -> ko, ki\n"
    "    loops a, ko, ki:parts:unroll, bo:unroll, bi:vector\n"
    "    at out.b\n"
    "    prefetch b at ko by 128 share 16\n"
    "  }\n"
    "  stage r[a:4] reduce over [k:32] : f32 keep {\n"
    "    %0 = gt.i1(acc.f32(0), val.f32(0))\n"
    "    m = c[a, k] init f32 -inf combine select(%0, acc.f32(0), val.f32(0))\n"
    "    n = index.i32(k - 3) init i32 0 combine select(%0, acc.i32(1), "
    "val.i32(1))\n"
    "    loops a, k\n"
    "    at out\n"
    "  }\n"
    "  stage out[a:4, b:32] {\n"
    "    %0 = i[0]\n"
    "    %1 = and(inside(a - 1, 0, 9223372036854775807), gt.i1(cast.f32(%0), "
    "f32 0x7ff8000000000001))\n"
    "    y[32*a + b] = select(%1, c[{%0 in 0..3}, b] if %1, m[a])\n"
    "    loops a:group, b\n"
    "    prefetch y at a by -8\n"
    "    prefetch a at a like y by 16\n"
    "  }\n"
    "  schedule {\n"
    "    inline p q\n"
    "    fuse out.a b\n"
    "    split c.b 16\n"
    "    reorder c a ko ki bo bi\n"
    "    at c, out.b\n"
    "    at r, out\n"
    "    store c private\n"
    "    serial c.a\n"
    "    unroll c.bo\n"
    "    vectorise c.bi\n"
    "    bind out.a group.x\n"
    "    rfactor c.ki reassoc\n"
    "    rfactor c.ki\n"
    "    pack c.b b 16\n"
    "    stage c a\n"
    "    epilogue c scratch\n"
    "    prefetch out y at a by -8\n"
    "    prefetch out a at a like y by 16\n"
    "    prefetch c b at ko by 128 share 16\n"
    "    border c\n"
    "    border c reassoc\n"
    "  }\n"
    "}\n";

static pestle_status_t parse(const char* text, size_t size,
                             pestle_strbuf_t* out_text) {
  pestle_arena_t arena;
  pestle_nest_t nest;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_nest_init(pestle_allocator_system(), &arena, "", &nest);
  pestle_status_t status = pestle_nest_parse(text, size, "f.nest", &nest);
  if (!status && out_text) status = pestle_nest_print(&nest, out_text);
  pestle_nest_deinit(&nest);
  pestle_arena_deinit(&arena);
  return status;
}

static void test_everything(void** state) {
  (void)state;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  assert_ok(parse(everything, strlen(everything), &text));
  assert_string_equal(text.data, everything);
  pestle_strbuf_deinit(&text);
}

static void bad(const char* text, const char* message) {
  assert_error(parse(text, strlen(text), NULL), MALFORMED, message);
}

#define HEAD                                                 \
  "nest \"k\" from \"\" {\ninput x : tensor<4xf32> slot 0\n" \
  "local t : tensor<4xf32>\noutput y : tensor<4xf32> slot 0\n"

static void test_errors(void** state) {
  (void)state;
  bad("", "f.nest:1:1: expected 'nest'");
  bad("nest k", "f.nest:1:6: expected '\"'");
  bad("nest \"k\" from \"\" {\n}", "f.nest:2:1: expected input, output, local");
  bad("nest \"k\" from \"\" {\n  input x : tensor<4xf31> slot 0",
      "f.nest:2:20: expected a tensor's type");
  bad("nest \"k\" from \"\" { input x : tensor<4xf32> slot -1",
      "expected an integer from 0");
  bad(HEAD "input x : tensor<f32>", "f.nest:5:7: expected a new name");
  bad(HEAD "stage s[a:4] {\n  t = x[b]", "f.nest:6:9: expected an axis");
  bad(HEAD "stage s[a:4] {\n  x = x[a]", "nothing writes yet, not 'x'");
  bad(HEAD "stage s[a:4] {\n  t = frob(x[a])", "expected an operation, not");
  bad(HEAD "stage s[a:4] {\n  t = add(x[a])", "expected 2 operands");
  bad(HEAD "stage s[a:4] {\n  t = %0", "expected a %N that is bound above");
  bad(HEAD "stage s[a:4] {\n  %1 = x[a]", "f.nest:6:4: expected %0");
  bad(HEAD "stage s[a:4] {\n  t = x[a + a]", "each once");
  bad(HEAD "stage s[a:4] {\n  t = x[(a)4]", "expected '/' or '%'");
  bad(HEAD "stage s[a:4] {\n  t = f32 x", "expected a number of type f32");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n  split a 0", "from 1 to");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n  loops a:fast", "expected parts");
  bad(HEAD "stage s[a:4] {\n}", "expected a tensor that is written");
  bad(HEAD "stage s[a:4] sum over [k:3] : f32 {",
      "expected a scalar op or reduce");
  bad(HEAD "stage s[a:4] add over [k:3] : f32 {\n t = x[a]\n}",
      "expected 'init'");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n  at q.a\n}\nschedule {\n}\n}",
      "f.nest:7:6: expected a stage of this nest, not 'q'");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n}\nschedule {\n  frob s\n}\n}",
      "f.nest:9:3: expected a schedule primitive");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n}\nschedule {\n  split s.a b\n}\n}",
      "f.nest:9:13: expected an integer");
  bad(HEAD "stage s[a:4] {\n  t = x[a]\n}\nschedule {\n}\n}\nx",
      "f.nest:11:1: expected the end");
}

// Every prefix, every changed byte and every flipped bit ends in a status or in
// a nest that prints.
static void test_damage(void** state) {
  (void)state;
  char text[sizeof everything];
  size_t size = sizeof everything - 1;
  for (size_t i = 0; i < size; ++i) {
    for (int what = -1; what < 12; ++what) {
      static const char other[] = {'%', '9', ' ', '('};
      memcpy(text, everything, sizeof text);
      if (what >= 0 && what < 8) text[i] = (char)(text[i] ^ (1 << what));
      if (what >= 8) text[i] = other[what - 8];
      pestle_strbuf_t out;
      pestle_strbuf_init(pestle_allocator_system(), &out);
      pestle_status_t status = parse(text, what < 0 ? i : size, &out);
      if (status) assert_code(status, MALFORMED);
      pestle_strbuf_deinit(&out);
    }
  }
}

// Nesting and paths are bounded, however long the text is.
static void test_depth(void** state) {
  (void)state;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_append_c(&text, HEAD "stage s[a:4] {\n  t = ");
  for (int i = 0; i < 100000; ++i)
    pestle_strbuf_append_c(&text, "negate(");
  assert_error(parse(text.data, text.size, NULL), MALFORMED, "levels");
  pestle_strbuf_clear(&text);
  pestle_strbuf_append_c(&text, HEAD "stage s[a:4] {\n  %0 = x[a]\n");
  for (int i = 0; i < 60000; ++i) {
    pestle_strbuf_appendf(&text, "%%%d = add(%%%d, %%%d)\n", i + 1, i, i);
  }
  assert_error(parse(text.data, text.size, NULL), MALFORMED, "on a path");
  pestle_strbuf_deinit(&text);
}

static void test_out_of_memory(void** state) {
  (void)state;
  for (size_t at = 1;; ++at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, at);
    pestle_allocator_t a = pestle_test_allocator(&memory);
    pestle_arena_t arena;
    pestle_nest_t nest;
    pestle_strbuf_t out;
    pestle_arena_init(a, &arena);
    pestle_nest_init(a, &arena, "", &nest);
    pestle_strbuf_init(a, &out);
    pestle_status_t status =
        pestle_nest_parse(everything, strlen(everything), "f", &nest);
    if (!status) status = pestle_nest_print(&nest, &out);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_strbuf_deinit(&out);
    pestle_nest_deinit(&nest);
    pestle_arena_deinit(&arena);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  struct CMUnitTest tests[FUSION_COUNT + 8] = {
      cmocka_unit_test(test_everything), cmocka_unit_test(test_errors),
      cmocka_unit_test(test_damage), cmocka_unit_test(test_depth),
      cmocka_unit_test(test_out_of_memory)};
  size_t n = 5;
  const char* only = getenv("PESTLE_TEST_ONLY");
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    if (only && strcmp(only, cases[i].name)) continue;
    tests[n++] = (struct CMUnitTest){.name = cases[i].name,
                                     .test_func = test_round_trip,
                                     .initial_state = (void*)&cases[i]};
  }
  return _cmocka_run_group_tests("nest text", tests, n, NULL, NULL);
}
