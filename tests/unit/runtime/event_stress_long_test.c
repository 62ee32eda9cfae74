// SPDX-License-Identifier: Apache-2.0
// 64 threads.
#include "unit/runtime/event_stress.h"

static void test_with_calls(void** state) {
  (void)state;
  stress(64, 3000, 0);
}

static void test_with_waits(void** state) {
  (void)state;
  stress(64, 3000, UINT64_C(1) << MOCK_STREAM_HOST_CALL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_with_calls),
                                     cmocka_unit_test(test_with_waits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
