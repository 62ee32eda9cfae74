// SPDX-License-Identifier: Apache-2.0
#include "gpu_flow.h"
#include "gpu_shim.h"

int main(void) {
  const struct CMUnitTest tests[] = {GPU_FLOW_TESTS};
  metal_setup();
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
