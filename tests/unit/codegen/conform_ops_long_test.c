// SPDX-License-Identifier: Apache-2.0
// conform_ops_test.c with every dtype on every shape and variant.
#include "unit/codegen/conform_ops_sweep.h"

int main(void) {
  return run_sweep("structured ops, all", PART_ALL, 0);
}
