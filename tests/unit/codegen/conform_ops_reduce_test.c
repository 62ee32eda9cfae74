// SPDX-License-Identifier: Apache-2.0
// conform_ops_test.c for reductions, contractions and composites.
#include "unit/codegen/conform_ops_sweep.h"

int main(void) {
  return run_sweep("structured ops that reduce", PART_REDUCES, 2);
}
