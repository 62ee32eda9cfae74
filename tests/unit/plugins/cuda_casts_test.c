// SPDX-License-Identifier: Apache-2.0
#include "gpu_rows.h"
#include "gpu_shim.h"

int main(void) {
  const struct CMUnitTest tests[] = {GPU_CAST_TESTS};
  cuda_setup();
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
