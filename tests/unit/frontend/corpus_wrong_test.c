// SPDX-License-Identifier: Apache-2.0
// Every third place; corpus_wrong_long_test.c tries all.
#include "corpus_wrong.h"

int main(void) {
  return run_wrong(TEST_SANITIZED ? 17 : 3);
}
