// SPDX-License-Identifier: Apache-2.0
// 10,000 random graphs over meshes, and 4,600 of one kind of op.
#include "partition_random.h"

static void each_op(void** state) {
  (void)state;
  run_ops(200);
}

static void graphs(void** state) {
  (void)state;
  run_graphs(1000, 10000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_op),
      cmocka_unit_test(graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
