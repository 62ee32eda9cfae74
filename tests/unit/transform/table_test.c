// SPDX-License-Identifier: Apache-2.0
// transform.def has a row for each op, and partial.def one for each operand of the
// rows that say so.
#include "test.h"
#include "transform/partial.h"
#include "transform/transform.h"

static void test_every_op_has_a_row(void** state) {
  (void)state;
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    pestle_transform_row_t row = pestle_transform_row((pestle_op_t)op);
    if (row.derivative == PESTLE_DERIVATIVE_MISSING) {
      fail_msg("transform.def has no row for %s",
               pestle_op_info((pestle_op_t)op)->name);
    }
  }
}

static void test_partials_are_whole(void** state) {
  (void)state;
  for (int op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool is_partial = pestle_transform_row((pestle_op_t)op).derivative ==
                      PESTLE_DERIVATIVE_PARTIAL;
    for (size_t i = 0; is_partial && i < info->operands; ++i) {
      if (!pestle_partial_find((pestle_op_t)op, i)) {
        fail_msg("partial.def has no row for operand %zu of %s", i, info->name);
      }
    }
  }
}

static void test_composites_decompose(void** state) {
  (void)state;
  for (int op = PESTLE_SCALAR_COUNT; op < PESTLE_OP_COUNT; ++op) {
    pestle_transform_row_t row = pestle_transform_row((pestle_op_t)op);
    bool can = pestle_op_info((pestle_op_t)op)->fuse == PESTLE_FUSE_COMPOSITE ||
               op == PESTLE_OP_CALL || op == PESTLE_OP_CUSTOM;
    bool wants = row.derivative == PESTLE_DERIVATIVE_DECOMPOSE ||
                 row.transposition == PESTLE_TRANSPOSE_DECOMPOSE ||
                 row.batching == PESTLE_VMAP_DECOMPOSE;
    if (wants && !can) {
      fail_msg("%s has no decomposition",
               pestle_op_info((pestle_op_t)op)->name);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_op_has_a_row),
      cmocka_unit_test(test_partials_are_whole),
      cmocka_unit_test(test_composites_decompose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
