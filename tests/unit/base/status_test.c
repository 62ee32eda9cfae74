// SPDX-License-Identifier: Apache-2.0
#include "test.h"

static void test_ok_is_null(void** state) {
  (void)state;
  assert_int_equal(pestle_status_code(NULL), PESTLE_STATUS_OK);
  assert_string_equal(pestle_status_message(NULL), "ok");
  assert_string_equal(pestle_status_file(NULL), "");
  assert_int_equal(pestle_status_line(NULL), 0);
  assert_null(pestle_status_note(NULL, 0));
  pestle_status_release(NULL);
  char text[8];
  assert_int_equal(pestle_status_format(NULL, text, sizeof(text)), 2);
  assert_string_equal(text, "OK");
}

static void test_carries_its_origin(void** state) {
  (void)state;
  int line = __LINE__ + 1;
  pestle_status_t status = PESTLE_ERROR(MALFORMED, "dim %d of '%s'", 3, "x");
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_MALFORMED);
  assert_string_equal(pestle_status_message(status), "dim 3 of 'x'");
  assert_non_null(strstr(pestle_status_file(status), "status_test.c"));
  // Statuses name files as the source tree does, not where it was built.
  assert_int_not_equal(pestle_status_file(status)[0], '/');
  assert_int_equal(pestle_status_line(status), line);
  pestle_status_release(status);
}

static void test_notes_keep_their_order(void** state) {
  (void)state;
  assert_null(pestle_status_annotate(NULL, "nothing to note"));
  pestle_status_t status = PESTLE_ERROR(IO, "disk");
  status = pestle_status_annotate(status, "while reading %s", "a");
  status = pestle_status_annotate(status, "while importing");
  assert_string_equal(pestle_status_note(status, 0), "while reading a");
  assert_string_equal(pestle_status_note(status, 1), "while importing");
  assert_null(pestle_status_note(status, 2));
  char text[128];
  const char* expected = "IO: disk; while reading a; while importing";
  assert_int_equal(pestle_status_format(status, text, sizeof(text)),
                   strlen(expected));
  assert_string_equal(text, expected);
  pestle_status_release(status);
}

static void test_format_cuts(void** state) {
  (void)state;
  pestle_status_t status = PESTLE_ERROR(IO, "0123456789");
  char text[9];
  memset(text, 'x', sizeof(text));
  assert_int_equal(pestle_status_format(status, text, 8), 14);
  assert_string_equal(text, "IO: 012");
  assert_int_equal(text[8], 'x');
  assert_int_equal(pestle_status_format(status, text, 1), 14);
  assert_string_equal(text, "");
  assert_int_equal(pestle_status_format(status, NULL, 0), 14);
  pestle_status_release(status);
}

static void test_join(void** state) {
  (void)state;
  assert_null(pestle_status_join(NULL, NULL));
  assert_code(pestle_status_join(NULL, PESTLE_ERROR(IO, "b")), IO);
  assert_code(pestle_status_join(PESTLE_ERROR(IO, "a"), NULL), IO);
  pestle_status_t second =
      pestle_status_annotate(PESTLE_ERROR(INTERNAL, "b"), "note of b");
  pestle_status_t joined = pestle_status_join(PESTLE_ERROR(IO, "a"), second);
  joined = pestle_status_annotate(joined, "after");
  char text[128];
  pestle_status_format(joined, text, sizeof(text));
  assert_string_equal(text, "IO: a; then: INTERNAL: b; note of b; after");
  pestle_status_release(joined);
}

static void test_codes(void** state) {
  (void)state;
  assert_string_equal(pestle_status_code_name(PESTLE_STATUS_OUT_OF_MEMORY),
                      "OUT_OF_MEMORY");
  assert_string_equal(pestle_status_code_text(PESTLE_STATUS_OUT_OF_MEMORY),
                      "an allocation failed");
  // A code from a newer or broken caller is our own fault, not a crash.
  assert_string_equal(pestle_status_code_name((pestle_status_code_t)77),
                      "INTERNAL");
  assert_code(pestle_status_make(PESTLE_STATUS_OK, NULL, 0, "x"), INTERNAL);
}

static pestle_status_t fails_after(int count) {
  for (int i = 0; i < count; ++i)
    PESTLE_TRY(NULL);
  PESTLE_TRY(PESTLE_ERROR(CANCELLED, "at %d", count));
  return NULL;
}

static void test_try(void** state) {
  (void)state;
  assert_error(fails_after(3), CANCELLED, "at 3");
}

static void escapes_control_bytes(void** state) {
  (void)state;
  pestle_status_t status =
      pestle_status_make(PESTLE_STATUS_MALFORMED, "f", 1, "%s",
                         "a\x1b[31m\x07\x7f\xc2\x9b\xc3\xa9\n\tz\r");
  assert_string_equal(pestle_status_message(status),
                      "a\\x1b[31m\\x07\\x7f\\xc2\\x9b\xc3\xa9\n\tz\\x0d");
  status = pestle_status_annotate(status, "in '%s'", "\x01");
  char text[200];
  pestle_status_format(status, text, sizeof(text));
  assert_non_null(strstr(text, "in '\\x01'"));
  pestle_status_release(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(escapes_control_bytes),
      cmocka_unit_test(test_ok_is_null),
      cmocka_unit_test(test_carries_its_origin),
      cmocka_unit_test(test_notes_keep_their_order),
      cmocka_unit_test(test_format_cuts),
      cmocka_unit_test(test_join),
      cmocka_unit_test(test_codes),
      cmocka_unit_test(test_try),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
