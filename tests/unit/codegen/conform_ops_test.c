// SPDX-License-Identifier: Apache-2.0
// Every structured op on every dtype that it takes, over shape classes and views
// of inputs and outputs: ir/ref against the whole compiler on `ref` and on
// llvm. One dtype meets a third of all shapes and variants, the others a few;
// conform_ops_long_test.c runs all. Here: what makes and moves elements.
#include "unit/codegen/conform_ops_sweep.h"

int main(void) {
  return run_sweep("structured ops that move", PART_MOVES, 3);
}
