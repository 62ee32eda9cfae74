// SPDX-License-Identifier: Apache-2.0
#include "accuracy.h"

static void many_rounds(void** state) {
  (void)state;
  check_table();
  check_all(64);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(many_rounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
