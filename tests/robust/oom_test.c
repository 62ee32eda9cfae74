// SPDX-License-Identifier: Apache-2.0
// A spread of failing requests for memory; oom_long_test.c tries every one.
#include "robust/oom.h"

static void some(void** state) {
  oom_test(state, false);
}

int main(void) {
  return oom_main(some);
}
