// SPDX-License-Identifier: Apache-2.0
#include "gpu_stream.h"

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(events_order),   cmocka_unit_test(events_late),
      cmocka_unit_test(fences_order),   cmocka_unit_test(host_calls),
      cmocka_unit_test(native_streams), cmocka_unit_test(memory_numbers)};
  (void)gpu_most_arguments;
  (void)bad_arguments;  // device_test.c has the driver's own words
  gpu_setup("cuda");
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
