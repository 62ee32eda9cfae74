// SPDX-License-Identifier: Apache-2.0
#include "math_sweep.h"

static void every_251st(void** state) {
  (void)state;
  sweep_all(251);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_251st)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
