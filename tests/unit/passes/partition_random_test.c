// SPDX-License-Identifier: Apache-2.0
// Each op that has a rule with random shardings, and some hundreds of random graphs, on
// meshes of 4, 6 and 8 processes. Planted faults are found.
#include "partition_random.h"

static void each_op(void** state) {
  (void)state;
  run_ops(12);
}

static void graphs(void** state) {
  (void)state;
  run_graphs(0, 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_op),
      cmocka_unit_test(graphs),
      cmocka_unit_test(faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
