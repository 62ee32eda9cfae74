// SPDX-License-Identifier: Apache-2.0
#include "accuracy.h"

static void table(void** state) {
  (void)state;
  check_table();
}

static void one_round(void** state) {
  (void)state;
  check_all(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(table),
                                     cmocka_unit_test(one_round)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
