// SPDX-License-Identifier: Apache-2.0
// Every structured op on every dtype that it takes, over shape classes and views
// of inputs and outputs: ir/ref against the whole compiler on `ref` and on
// llvm. One dtype meets every shape and variant, the others a part of them;
// conform_ops_long_test.c runs all.
#include "unit/codegen/conform_ops_sweep.h"

int main(void) {
  return run_sweep("structured ops", 3);
}
