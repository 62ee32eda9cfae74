// SPDX-License-Identifier: Apache-2.0
// corpus_wrong_test.c at every place.
#include "corpus_wrong.h"

int main(void) {
  return run_wrong(TEST_SANITIZED ? 7 : 1);
}
