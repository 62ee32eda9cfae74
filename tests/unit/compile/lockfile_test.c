// SPDX-License-Identifier: Apache-2.0
// pestle.lock as text: order, round trip, each kind of damage, random damage;
// keys of nests.
#include "compile/lockfile.h"

#include <stdio.h>
#include <string.h>

#include "codegen/sketch/choice.h"
#include "test.h"

#define KEY1 "0123456789abcdef0123456789abcdef"
#define KEY2 "1123456789abcdef0123456789abcdef"
#define LINE2 KEY2 " llvm znver4 2 0.1.0 - form=tile tile=8x3+panel\n"
#define LINE1 KEY1 " llvm znver4 2 0.1.0 tile:8x3=1.5 form=map vectors=4\n"
#define HEAD "pestle.lock 2\n"

static void with(const char* text, pestle_lockfile_t* out_lock) {
  pestle_lockfile_init(pestle_allocator_system(), out_lock);
  assert_ok(pestle_lockfile_parse("the.lock", pestle_str(text), out_lock));
}

static void assert_bad(const char* text, const char* why) {
  pestle_lockfile_t lock;
  pestle_lockfile_init(pestle_allocator_system(), &lock);
  pestle_status_t status =
      pestle_lockfile_parse("the.lock", pestle_str(text), &lock);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_MALFORMED);
  if (!strstr(pestle_status_message(status), why)) {
    fail_msg("'%s' lacks '%s'", pestle_status_message(status), why);
  }
  pestle_status_release(status);
  pestle_lockfile_deinit(&lock);
}

static void test_sorted(void** state) {
  (void)state;
  pestle_lockfile_t lock;
  pestle_strbuf_t text;
  with(HEAD "# why\n\n" LINE2 LINE1, &lock);
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_lockfile_print(&lock, &text);
  assert_string_equal(pestle_strbuf_cstr(&text), HEAD LINE1 LINE2);
  const pestle_lockfile_line_t* line =
      pestle_lockfile_find(&lock, KEY2, "llvm", "znver4", 2);
  assert_non_null(line);
  assert_string_equal(line->chosen, "form=tile tile=8x3+panel");
  assert_null(pestle_lockfile_find(&lock, KEY2, "llvm", "znver4", 1));
  assert_null(pestle_lockfile_find(&lock, KEY2, "llvm", "znver3", 2));
  assert_null(pestle_lockfile_find(&lock, KEY2, "ref", "znver4", 2));
  pestle_strbuf_deinit(&text);
  pestle_lockfile_deinit(&lock);
}

static void test_put(void** state) {
  (void)state;
  pestle_lockfile_t lock;
  pestle_strbuf_t text;
  with(HEAD LINE2, &lock);
  pestle_lockfile_line_t line = {.key = KEY1,
                                 .target = "llvm",
                                 .cpu = "znver4",
                                 .threads = 2,
                                 .version = "0.1.0",
                                 .measured = "-",
                                 .chosen = "a=b"};
  assert_ok(pestle_lockfile_put(&lock, &line));
  line.measured = "tile:8x3=1.5";
  line.chosen = "form=map vectors=4";
  assert_ok(pestle_lockfile_put(&lock, &line));
  assert_true(lock.changed);
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_lockfile_print(&lock, &text);
  assert_string_equal(pestle_strbuf_cstr(&text), HEAD LINE1 LINE2);
  pestle_strbuf_deinit(&text);
  pestle_lockfile_deinit(&lock);
}

static void test_damage(void** state) {
  (void)state;
  assert_bad("", "is empty");
  assert_bad("pestle.lock 3\n", "the.lock:1: expected 'pestle.lock 2'");
  assert_bad("pestle.lock 1\n" LINE1, "another version of Pestle wrote");
  assert_bad("lock 1\n" LINE1, "this is no such file");
  assert_bad("<<<<<<< ours\n" HEAD, "the.lock:1:");
  assert_bad(HEAD LINE1 "=======\n" LINE2, "the.lock:3: expected KEY");
  assert_bad(HEAD "0123 llvm znver4 2 0.1.0 - a=b\n", "32 hex digits");
  assert_bad(HEAD "0123456789ABCDEF0123456789ABCDEF llvm c 2 0.1.0 - a=b\n",
             "32 hex digits");
  assert_bad(HEAD KEY1 " llvm znver4 two 0.1.0 - a=b\n", "number of threads");
  assert_bad(HEAD KEY1 " llvm znver4 0 0.1.0 - a=b\n", "number of threads");
  assert_bad(HEAD KEY1 " llvm znver4 2 0.1.0 -\n", "expected KEY");
  assert_bad(HEAD KEY1 " llvm znver4 2 0.1.0 - a\n", "expected choices");
  assert_bad(HEAD KEY1 " llvm znver4 2 0.1.0 - a=\n", "expected choices");
  assert_bad(HEAD KEY1 " llvm znver4 2 0.1.0 - a=\x01\n", "the.lock:2: a byte");
  assert_bad(HEAD LINE1 LINE2 LINE1, "two lines begin '" KEY1);
}

// Whatever a file holds, it is a lock that prints as it was read, or MALFORMED.
static void test_random_damage(void** state) {
  (void)state;
  static const char whole[] = HEAD LINE1 LINE2;
  uint64_t random = 1;
  uint32_t sound = 0;
  for (int round = 0; round < 20000; ++round) {
    char text[sizeof(whole)];
    memcpy(text, whole, sizeof(whole));
    for (int i = 0; i <= round % 3; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      static const char bytes[] = "\n =:0af#-\x80\x01z";
      size_t at = (random >> 33) % (sizeof(whole) - 1);
      text[at] = bytes[(random >> 20) % (sizeof(bytes) - 1)];
    }
    pestle_lockfile_t lock, again;
    pestle_lockfile_init(pestle_allocator_system(), &lock);
    pestle_status_t status =
        pestle_lockfile_parse("the.lock", pestle_str(text), &lock);
    if (status) {
      assert_code(status, MALFORMED);
    } else {
      pestle_strbuf_t a, b;
      pestle_strbuf_init(pestle_allocator_system(), &a);
      pestle_strbuf_init(pestle_allocator_system(), &b);
      pestle_lockfile_print(&lock, &a);
      with(pestle_strbuf_cstr(&a), &again);
      pestle_lockfile_print(&again, &b);
      assert_string_equal(pestle_strbuf_cstr(&a), pestle_strbuf_cstr(&b));
      pestle_strbuf_deinit(&a);
      pestle_strbuf_deinit(&b);
      pestle_lockfile_deinit(&again);
      ++sound;
    }
    pestle_lockfile_deinit(&lock);
  }
  assert_true(sound > 100 && sound < 19000);
}

// --- Choices ---

static void test_choices(void** state) {
  (void)state;
  pestle_arena_t arena;
  pestle_nest_t nest;
  pestle_strbuf_t text;
  static const pestle_option_t options[] = {{"a", 2}, {"b", 1}};
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_nest_init(pestle_allocator_system(), &arena, "n", &nest);
  nest.wanted = "form=x form.2=b size=3 stream=maybe";
  static const pestle_question_t form = {"form", "cycles"};
  static const pestle_question_t size = {"size", "nobody knows"};
  static const pestle_question_t stream = {"stream", "bytes"};
  static const double costs[2] = {1, 2};
  pestle_numbers_t numbers = {
      .values = (int64_t[]){1, 2, 3}, .count = 3, .usual = 2};
  assert_int_equal(pestle_choose(&nest, form, options, 2, 1), 1);
  assert_true(nest.stale);
  nest.stale = false;
  assert_int_equal(pestle_choose(&nest, form, options, 2, 0), 1);
  assert_int_equal(pestle_choose_number(&nest, size, &numbers), 3);
  assert_false(nest.stale);
  assert_true(pestle_choose_flag(&nest, stream, costs, true));
  assert_true(nest.stale);
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_choices_print(&nest, &text);
  assert_string_equal(pestle_strbuf_cstr(&text),
                      "form=b form.2=b size=3 stream=yes");
  assert_true(pestle_choices_open(&nest));
  pestle_strbuf_deinit(&text);
  pestle_nest_deinit(&nest);
  pestle_arena_deinit(&arena);
}

// A fixed choice is shown, not open: a line that lacks it is no stranger for it, one
// that wants another option is.
static void test_fixed(void** state) {
  (void)state;
  pestle_arena_t arena;
  pestle_nest_t nest;
  pestle_strbuf_t why;
  static const pestle_option_t options[] = {{"a", 2}, {"b", 3}};
  static const pestle_question_t by = {"by", "cycles"}, to = {"to", "no idea"};
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_nest_init(pestle_allocator_system(), &arena, "n", &nest);
  pestle_strbuf_init(pestle_allocator_system(), &why);
  nest.why = &why;
  nest.wanted = "form=x by.2=b";
  pestle_choose_fixed(&nest, by, options, 2, 0);
  assert_false(nest.stale);
  pestle_choose_fixed(&nest, by, options, 2, 0);
  assert_true(nest.stale);
  assert_false(pestle_choices_open(&nest));
  // What the tuner tries says the first choices alone.
  nest.wanted = "form=x";
  nest.stale = false;
  nest.wants_first = true;
  assert_true(pestle_choose_flag(&nest, to, (const double[]){0, 0}, true));
  assert_false(nest.stale);
  nest.wants_first = false;
  assert_true(pestle_choose_flag(&nest, to, (const double[]){0, 0}, true));
  assert_true(nest.stale);
  nest.wanted = NULL;
  assert_false(pestle_choose_flag(
      &nest, to, (const double[]){PESTLE_NOT_ESTIMATED, 1}, false));
  assert_true(pestle_choices_open(&nest));
  pestle_choices_explain(&nest, "to.3:no=2,to.3:yes=3");
  assert_string_equal(
      pestle_strbuf_cstr(&why),
      "choice of by: a, by rule; lost: b est. +50 %; est. in cycles\n"
      "choice of by.2: a, by rule; lost: b est. +50 %; est. in cycles\n"
      "choice of to: yes; lost: no; no est.: no idea\n"
      "choice of to.2: yes; lost: no; no est.: no idea\n"
      "choice of to.3: no, measured 2 us; lost: yes measured +50 %; no est.: "
      "no idea\n");
  pestle_strbuf_deinit(&why);
  pestle_nest_deinit(&nest);
  pestle_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sorted),  cmocka_unit_test(test_put),
      cmocka_unit_test(test_damage),  cmocka_unit_test(test_random_damage),
      cmocka_unit_test(test_choices), cmocka_unit_test(test_fixed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
