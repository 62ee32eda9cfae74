// SPDX-License-Identifier: Apache-2.0
#include "base/json_read.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "test.h"

static pestle_arena_t arena;

static const pestle_json_value_t* read(const char* text) {
  const pestle_json_value_t* value;
  assert_null(pestle_json_read(pestle_str(text), &arena, &value));
  return value;
}

static void test_values(void** state) {
  (void)state;
  const pestle_json_value_t* v = read(
      " {\"a\": {\"b\": [1, -2.5e+3, true, false, null, \"x\"], \"c\": {}},\n"
      "\"a.d\": [], \"twice\": 1, \"twice\": 2, \"\": 0}\t\r\n");
  assert_int_equal(v->kind, PESTLE_JSON_OBJECT);
  assert_int_equal(v->count, 5);
  const pestle_json_value_t* b = pestle_json_find(v, "a.b");
  assert_int_equal(b->kind, PESTLE_JSON_ARRAY);
  assert_int_equal(b->count, 6);
  static const pestle_json_kind_t kinds[] = {
      PESTLE_JSON_NUMBER, PESTLE_JSON_NUMBER, PESTLE_JSON_BOOL,
      PESTLE_JSON_BOOL,   PESTLE_JSON_NULL,   PESTLE_JSON_STRING};
  const pestle_json_value_t* item = b->first;
  for (size_t i = 0; i < 6; ++i, item = item->next) {
    assert_int_equal(item->kind, kinds[i]);
    assert_int_equal(item->truth, i == 2);
  }
  assert_null(item);
  assert_true(pestle_str_equal_c(b->first->next->text, "-2.5e+3"));
  assert_int_equal(pestle_json_find(v, "a.c")->count, 0);
  assert_true(pestle_str_equal_c(pestle_json_find(v, "twice")->text, "2"));
  assert_null(pestle_json_find(v, "a.b.c"));
  assert_null(pestle_json_find(v, "a.x"));
  assert_null(pestle_json_find(NULL, "a"));
  assert_int_equal(read("0")->kind, PESTLE_JSON_NUMBER);
  assert_int_equal(read("[[[]]]")->count, 1);
}

static void test_strings(void** state) {
  (void)state;
  const pestle_json_value_t* v =
      read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"");
  assert_string_equal(v->text.data,
                      "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  assert_int_equal(read("\"\"")->text.size, 0);
}

static void test_bad(void** state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } rows[] = {
      {"", "line 1, column 1: no value"},
      {"{\n \"a\" 1}", "line 2, column 6: ':'"},
      {"{\"a\": 1,}", "a key in quotes"},
      {"[1 2]", "',' or ']'"},
      {"{\"a\": 1", "',' or '}'"},
      {"[1,]", "no value"},
      {"01", "no value"},
      {"-", "no value"},
      {"1.", "no value"},
      {"1e", "no value"},
      {"nul", "no value"},
      {"NaN", "no value"},
      {"1 2", "has ended"},
      {"\"a", "has no end"},
      {"\"a\\", "has no end"},
      {"\"\\x\"", "escape"},
      {"\"\\u12\"", "four hexadecimal digits"},
      {"\"\\ud800\"", "no character"},
      {"\"\\udc00\"", "no character"},
      {"\"\\u0000\"", "no character"},
      {"\"a\nb\"", "control character"},
      {"\"\xff\"", "not UTF-8"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    const pestle_json_value_t* value;
    pestle_status_t status =
        pestle_json_read(pestle_str(rows[i].text), &arena, &value);
    assert_int_equal(pestle_status_code(status), PESTLE_STATUS_MALFORMED);
    if (!strstr(pestle_status_message(status), rows[i].says))
      fail_msg("%s: %s", rows[i].text, pestle_status_message(status));
    assert_null(value);
    pestle_status_release(status);
  }
  char deep[4096];
  memset(deep, '[', sizeof(deep));
  const pestle_json_value_t* value;
  pestle_status_t status =
      pestle_json_read(pestle_str_make(deep, sizeof(deep)), &arena, &value);
  assert_non_null(strstr(pestle_status_message(status), "within each other"));
  pestle_status_release(status);
}

// No cut of a text reads behind its end.
static void test_cuts(void** state) {
  (void)state;
  static const char text[] =
      "{\"a\":[1.5e-3,\"\\ud83d\\ude00\\n\",true,null,{\"b\":false}]}";
  for (size_t size = 0; size + 1 < sizeof(text); ++size) {
    const pestle_json_value_t* value;
    char* exact = pestle_arena_copy(&arena, text, size, 1);
    pestle_status_t status =
        pestle_json_read(pestle_str_make(exact, size), &arena, &value);
    assert_int_equal(pestle_status_code(status), PESTLE_STATUS_MALFORMED);
    pestle_status_release(status);
  }
}

int main(void) {
  pestle_arena_init(pestle_allocator_system(), &arena);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values), cmocka_unit_test(test_strings),
      cmocka_unit_test(test_bad), cmocka_unit_test(test_cuts)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  pestle_arena_deinit(&arena);
  return failed;
}
