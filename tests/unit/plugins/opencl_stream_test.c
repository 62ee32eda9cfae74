// SPDX-License-Identifier: Apache-2.0
#include "gpu_stream.h"

int main(void) {
  const struct CMUnitTest tests[] = {GPU_STREAM_TESTS};
  gpu_setup("opencl");
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
