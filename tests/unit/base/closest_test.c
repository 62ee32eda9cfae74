// SPDX-License-Identifier: Apache-2.0
#include "base/closest.h"

#include "test.h"

static const char* hint(const char* name, const char* names) {
  static char text[PESTLE_HINT];
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  pestle_str_t rest = pestle_str(names), one;
  while (pestle_str_next(&rest, ' ', &one))
    pestle_closest_offer(&closest, one);
  return pestle_closest_hint(&closest, text);
}

static void test_close(void** state) {
  (void)state;
  assert_string_equal(hint("bacth", "height batch width"),
                      "; did you mean 'batch'?");
  assert_string_equal(hint("Batch", "height batch"), "; did you mean 'batch'?");
  assert_string_equal(hint("rn", "run dump"), "; did you mean 'run'?");
  assert_string_equal(hint("expalin", "explain dump"),
                      "; did you mean 'explain'?");
  assert_string_equal(hint("height", "h hight eight"),
                      "; did you mean 'hight'?");
  // One letter is nearer than a name that only begins so.
  assert_string_equal(hint("batch", "batch_size batcho"),
                      "; did you mean 'batcho'?");
  assert_string_equal(hint("batch", "n batch_size"),
                      "; did you mean 'batch_size'?");
}

static void test_far(void** state) {
  (void)state;
  assert_string_equal(hint("x", "y z"), "");
  assert_string_equal(hint("", "y z"), "");
  assert_string_equal(hint("image", ""), "");
  assert_string_equal(hint("image", "tokens mask"), "");
  char large[400];
  memset(large, 'a', sizeof(large) - 1);
  large[sizeof(large) - 1] = 0;
  assert_string_equal(hint(large, large), "");
  assert_string_equal(hint("aa", large), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_close),
      cmocka_unit_test(test_far),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
