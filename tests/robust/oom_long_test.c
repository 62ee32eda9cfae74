// SPDX-License-Identifier: Apache-2.0
// Every request for memory fails once, alone and with all that follow it.
#include "robust/oom.h"

static void every(void** state) {
  oom_test(state, true);
}

int main(void) {
  return oom_main(every);
}
