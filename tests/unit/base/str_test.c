// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <locale.h>
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "test.h"

#define assert_str(view, text) assert_true(pestle_str_equal_c((view), (text)))

static void test_views(void** state) {
  (void)state;
  pestle_str_t text = PESTLE_STR("conv.weight");
  assert_true(pestle_str_equal(pestle_str(NULL), PESTLE_STR("")));
  assert_true(pestle_str_starts_with(text, PESTLE_STR("conv.")));
  assert_false(pestle_str_starts_with(PESTLE_STR("co"), PESTLE_STR("conv")));
  assert_true(pestle_str_ends_with(text, PESTLE_STR("weight")));
  assert_false(pestle_str_ends_with(text, PESTLE_STR("weigh")));
  assert_int_equal(pestle_str_find_char(text, '.'), 4);
  assert_int_equal(pestle_str_find_char(text, '!'), SIZE_MAX);
  assert_int_equal(pestle_str_rfind_char(text, 'e'), 6);
  assert_int_equal(pestle_str_find(text, PESTLE_STR("wei")), 5);
  assert_int_equal(pestle_str_find(text, PESTLE_STR("weights")), SIZE_MAX);
  assert_int_equal(pestle_str_find(PESTLE_STR("aab"), PESTLE_STR("ab")), 1);
  assert_int_equal(pestle_str_find(text, PESTLE_STR("")), 0);
  assert_int_equal(pestle_str_find(PESTLE_STR(""), PESTLE_STR("a")), SIZE_MAX);
  assert_true(pestle_str_is_one_of(text, " conv conv.weight "));
  assert_false(pestle_str_is_one_of(text, "conv.weigh conv.weights weight"));
  assert_false(pestle_str_is_one_of(PESTLE_STR(""), " a  b "));
  assert_str(pestle_str_slice(text, 5, 99), "weight");
  assert_str(pestle_str_slice(text, 9, 3), "");
  assert_str(pestle_str_trim(PESTLE_STR(" \t x y\r\n")), "x y");
  assert_str(pestle_str_trim(PESTLE_STR("  ")), "");
}

static void test_split(void** state) {
  (void)state;
  pestle_str_t head, tail;
  assert_true(pestle_str_split(PESTLE_STR("x=1=2"), '=', &head, &tail));
  assert_str(head, "x");
  assert_str(tail, "1=2");
  assert_false(pestle_str_split(PESTLE_STR("abc"), '=', &head, &tail));
  assert_str(head, "abc");
  assert_str(tail, "");

  pestle_str_t rest = PESTLE_STR("a,,b"), field;
  assert_true(pestle_str_next(&rest, ',', &field));
  assert_str(field, "a");
  assert_true(pestle_str_next(&rest, ',', &field));
  assert_str(field, "");
  assert_true(pestle_str_next(&rest, ',', &field));
  assert_str(field, "b");
  assert_false(pestle_str_next(&rest, ',', &field));
}

static void test_parse_integers(void** state) {
  (void)state;
  int64_t i = 77;
  uint64_t u = 77;
  assert_true(pestle_str_parse_i64(PESTLE_STR("-9223372036854775808"), &i));
  assert_true(i == INT64_MIN);
  assert_true(pestle_str_parse_i64(PESTLE_STR("9223372036854775807"), &i));
  assert_true(i == INT64_MAX);
  assert_true(pestle_str_parse_i64(PESTLE_STR("-0x10"), &i));
  assert_int_equal(i, -16);
  assert_true(pestle_str_parse_u64(PESTLE_STR("18446744073709551615"), &u));
  assert_true(u == UINT64_MAX);
  assert_true(pestle_str_parse_u64(PESTLE_STR("0xfFffFFFFffffffff"), &u));
  assert_true(u == UINT64_MAX);
  i = 77;
  const char* bad[] = {"",
                       "-",
                       "+1",
                       "1 ",
                       " 1",
                       "1a",
                       "0x",
                       "--1",
                       "1.",
                       "0x1g",
                       "9223372036854775808",
                       "-9223372036854775809"};
  for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); ++k) {
    assert_false(pestle_str_parse_i64(pestle_str(bad[k]), &i));
    assert_int_equal(i, 77);
  }
  assert_false(pestle_str_parse_u64(PESTLE_STR("18446744073709551616"), &u));
  assert_false(pestle_str_parse_u64(PESTLE_STR("-1"), &u));
  // Only the bytes of the view count.
  assert_true(pestle_str_parse_i64(pestle_str_make("123456", 3), &i));
  assert_int_equal(i, 123);
}

static void test_parse_floats(void** state) {
  (void)state;
  double value = 77;
  assert_true(pestle_str_parse_f64(PESTLE_STR("-1.5e3"), &value));
  assert_true(value == -1500);
  assert_true(pestle_str_parse_f64(PESTLE_STR("0x1.8p1"), &value));
  assert_true(value == 3);
  assert_true(pestle_str_parse_f64(PESTLE_STR("-inf"), &value));
  assert_true(isinf(value) && value < 0);
  assert_true(pestle_str_parse_f64(PESTLE_STR("nan"), &value));
  assert_true(isnan(value));
  assert_true(pestle_str_parse_f64(PESTLE_STR("4.9e-324"), &value));
  assert_true(value > 0);
  value = 77;
  const char* bad[] = {"",   "-",   ".",     "1..2",     " 1",     "1 ",
                       "1e", "abc", "1e999", "infinity", "nan(1)", "1,5"};
  for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); ++k) {
    assert_false(pestle_str_parse_f64(pestle_str(bad[k]), &value));
    assert_true(value == 77);
  }
}

static void test_append(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_strbuf_t buffer;
  pestle_strbuf_init(pestle_test_allocator(&memory), &buffer);
  assert_string_equal(pestle_strbuf_cstr(&buffer), "");
  pestle_strbuf_append(&buffer, PESTLE_STR("ab"));
  pestle_strbuf_append_char(&buffer, 'c');
  pestle_strbuf_append_fill(&buffer, '-', 3);
  pestle_strbuf_appendf(&buffer, "%d%s", 5, "x");
  pestle_strbuf_append_i64(&buffer, INT64_MIN);
  pestle_strbuf_append_char(&buffer, ' ');
  pestle_strbuf_append_u64(&buffer, UINT64_MAX);
  pestle_strbuf_append_u64(&buffer, 0);
  assert_ok(pestle_strbuf_status(&buffer));
  assert_string_equal(pestle_strbuf_cstr(&buffer),
                      "abc---5x-9223372036854775808 184467440737095516150");
  pestle_strbuf_clear(&buffer);
  pestle_strbuf_appendf(&buffer, "%*d", 1000, 1);
  assert_int_equal(buffer.size, 1000);
  assert_int_equal(buffer.data[999], '1');
  pestle_strbuf_clear(&buffer);
  pestle_strbuf_append_quoted(&buffer, PESTLE_STR("a\"\\\n\t\x01\x7f\xc3z"));
  assert_string_equal(pestle_strbuf_cstr(&buffer),
                      "\"a\\\"\\\\\\n\\t\\01\\7F\\C3z\"");
  pestle_strbuf_clear(&buffer);
  pestle_strbuf_append_name(&buffer, "a\n\x1b[\x7f\xc2\x9b\xc3\xa9\xc2\xa0\\");
  assert_string_equal(pestle_strbuf_cstr(&buffer),
                      "a\\x0a\\x1b[\\x7f\\xc2\\x9b\xc3\xa9\xc2\xa0\\");
  char* text;
  size_t size;
  assert_ok(pestle_strbuf_take(&buffer, &text, &size));
  assert_int_equal(strlen(text), size);
  pestle_dealloc(pestle_test_allocator(&memory), text, size + 1);
  assert_ok(pestle_strbuf_take(&buffer, &text, &size));
  assert_string_equal(text, "");
  pestle_dealloc(pestle_test_allocator(&memory), text, size + 1);
  pestle_strbuf_deinit(&buffer);
  pestle_test_allocator_check(&memory);
}

static void test_append_is_sticky(void** state) {
  (void)state;
  for (size_t fail_at = 1; fail_at <= 4; ++fail_at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, fail_at);
    pestle_strbuf_t buffer;
    pestle_strbuf_init(pestle_test_allocator(&memory), &buffer);
    for (int i = 0; i < 1000; ++i)
      pestle_strbuf_append_c(&buffer, "0123456");
    assert_code(pestle_strbuf_status(&buffer), OUT_OF_MEMORY);
    char* text;
    size_t size;
    assert_code(pestle_strbuf_take(&buffer, &text, &size), OUT_OF_MEMORY);
    assert_null(text);
    pestle_strbuf_clear(&buffer);
    pestle_strbuf_append_c(&buffer, "again");
    assert_ok(pestle_strbuf_status(&buffer));
    pestle_strbuf_deinit(&buffer);
    pestle_test_allocator_check(&memory);
  }
}

static void check_f64(double value, const char* expected) {
  pestle_strbuf_t buffer;
  pestle_strbuf_init(pestle_allocator_system(), &buffer);
  pestle_strbuf_append_f64(&buffer, value);
  if (expected) {
    assert_string_equal(pestle_strbuf_cstr(&buffer), expected);
  }
  double again;
  assert_true(pestle_str_parse_f64(pestle_strbuf_view(&buffer), &again));
  assert_true(isnan(value) ? isnan(again)
                           : !memcmp(&value, &again, sizeof(value)));
  pestle_strbuf_deinit(&buffer);
}

static void check_f32(float value, const char* expected) {
  pestle_strbuf_t buffer;
  pestle_strbuf_init(pestle_allocator_system(), &buffer);
  pestle_strbuf_append_f32(&buffer, value);
  if (expected) {
    assert_string_equal(pestle_strbuf_cstr(&buffer), expected);
  }
  double again;
  assert_true(pestle_str_parse_f64(pestle_strbuf_view(&buffer), &again));
  float narrow = (float)again;
  assert_true(!memcmp(&value, &narrow, sizeof(value)));
  pestle_strbuf_deinit(&buffer);
}

static void check_floats(void) {
  check_f64(0, "0.0");
  check_f64(-0.0, "-0.0");
  check_f64(1, "1.0");
  check_f64(0.1, "0.1");
  check_f64(1e20, "1e+20");
  check_f64(123456789, "123456789.0");
  check_f64(1.0 / 3, NULL);
  check_f64(5e-324, "5e-324");
  check_f64(1.7976931348623157e308, "1.7976931348623157e+308");
  check_f64((double)INFINITY, "inf");
  check_f64(-(double)INFINITY, "-inf");
  check_f64((double)NAN, "nan");
  check_f32(0.1f, "0.1");
  check_f32(16777216.0f, "16777216.0");
  check_f32(1e-45f, "1e-45");
  check_f32(3.4028235e38f, "3.4028235e+38");
  uint32_t bits = 12345;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (isfinite(value)) check_f32(value, NULL);
  }
}

static void test_floats(void** state) {
  (void)state;
  check_floats();
}

// What strtod() finds at the begin of |text|, and where it ends.
static void check_prefix(const char* text, double value, size_t size) {
  char copy[64], *end;
  snprintf(copy, sizeof(copy), "%s", text);
  pestle_str_to_locale(copy);
  assert_true(strtod(copy, &end) == value);
  assert_int_equal(end - copy, size);
}

static void check_prefixes(void) {
  char text[32];
  check_prefix("1.5 and more", 1.5, 3);
  check_prefix("-2.25.5", -2.25, 5);
  check_prefix("1,5", 1, 1);
  check_prefix("7", 7, 1);
  check_prefix("", 0, 0);
  check_prefix(".5e1x", 5, 4);
  snprintf(text, sizeof(text), "%.3f", -0.125);
  pestle_str_from_locale(text);
  assert_string_equal(text, "-0.125");
  snprintf(text, sizeof(text), "%.8g", 3e20);
  pestle_str_from_locale(text);
  assert_string_equal(text, "3e+20");
}

static void test_prefixes(void** state) {
  (void)state;
  check_prefixes();
}

static void test_floats_in_another_locale(void** state) {
  (void)state;
  const char* names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
  bool found = false;
  for (size_t i = 0; i < 4 && !found; ++i) {
    found = setlocale(LC_NUMERIC, names[i]) != NULL;
  }
  if (!found) skip();
  check_floats();
  check_prefixes();
  test_parse_floats(state);
  setlocale(LC_NUMERIC, "C");
}

static void test_json(void** state) {
  (void)state;
  pestle_strbuf_t buffer;
  pestle_strbuf_init(pestle_allocator_system(), &buffer);
  for (unsigned indent = 0; indent <= 2; indent += 2) {
    pestle_strbuf_clear(&buffer);
    pestle_json_t json;
    pestle_json_init(&buffer, indent, &json);
    pestle_json_begin_object(&json);
    pestle_json_key(&json, "run_ms");
    pestle_json_begin_array(&json);
    pestle_json_f64(&json, 1.5);
    pestle_json_f64(&json, (double)INFINITY);
    pestle_json_i64(&json, -3);
    pestle_json_u64(&json, 4);
    pestle_json_end_array(&json);
    pestle_json_key(&json, "none");
    pestle_json_begin_object(&json);
    pestle_json_end_object(&json);
    pestle_json_key(&json, "text");
    pestle_json_cstr(&json, "a\"\\\n\x02\xc3\xa4\xff\xed\xa0\x80");
    pestle_json_key(&json, "no");
    pestle_json_null(&json);
    pestle_json_key(&json, "is");
    pestle_json_bool(&json, true);
    pestle_json_key(&json, "is_not");
    pestle_json_bool(&json, false);
    pestle_json_end_object(&json);
    assert_ok(pestle_strbuf_status(&buffer));
    const char* expected =
        indent ? "{\n"
                 "  \"run_ms\": [\n    1.5,\n    null,\n    -3,\n    4\n  ],\n"
                 "  \"none\": {},\n"
                 "  \"text\": \"a\\\"\\\\\\n\\u0002\xc3\xa4\xef\xbf\xbd"
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\n"
                 "  \"no\": null,\n  \"is\": true,\n  \"is_not\": false\n}"
               : "{\"run_ms\": [1.5, null, -3, 4], \"none\": {}, "
                 "\"text\": \"a\\\"\\\\\\n\\u0002\xc3\xa4\xef\xbf\xbd"
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\", "
                 "\"no\": null, \"is\": true, \"is_not\": false}";
    assert_string_equal(pestle_strbuf_cstr(&buffer), expected);
  }
  pestle_strbuf_deinit(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_split),
      cmocka_unit_test(test_parse_integers),
      cmocka_unit_test(test_parse_floats),
      cmocka_unit_test(test_append),
      cmocka_unit_test(test_append_is_sticky),
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_prefixes),
      cmocka_unit_test(test_floats_in_another_locale),
      cmocka_unit_test(test_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
