// SPDX-License-Identifier: Apache-2.0
// conform_ops_test.c for folds, contractions and composites.
#include "unit/codegen/conform_ops_sweep.h"

int main(void) {
  return run_sweep("structured ops that fold", PART_FOLDS, 2);
}
