// SPDX-License-Identifier: Apache-2.0
// 64-bit integers as pairs of 32-bit words: every row and cast on the edge values
// of each dtype, and loops over groups and lanes, as printed for a device without them.
#include "gpu_flow.h"
#include "gpu_rows.h"

int main(void) {
  const struct CMUnitTest tests[] = {GPU_ROW_TESTS, GPU_CAST_TESTS,
                                     GPU_FLOW_TESTS};
  gpu_cpu = "noint64";
  gpu_setup("vulkan");
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
