// SPDX-License-Identifier: Apache-2.0
// Legalisation while each of its allocations fails in turn.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_LEGALISE_OOM_H_
#define PESTLE_TESTS_UNIT_CODEGEN_LEGALISE_OOM_H_

#include "codegen/kir/kir_internal.h"
#include "unit/codegen/kir_test.h"

// |k| for |caps|: OUT_OF_MEMORY and nothing kept, until it has what it asks for.
static inline void legalise_out_of_memory(const pestle_kir_builder_t* k,
                                          const pestle_target_caps_t* caps) {
  bool failed = true;
  for (size_t at = 1; failed; ++at) {
    pestle_test_allocator_t memory;
    pestle_kir_builder_t legal;
    pestle_test_allocator_init(&memory, at);
    pestle_status_t status =
        pestle_kir_legalise_in(pestle_test_allocator(&memory), &k->view, caps,
                               PESTLE_NUMERICS_DEFAULT, &legal);
    failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
      pestle_kir_deinit(&legal);
    }
    pestle_test_allocator_check(&memory);
  }
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_LEGALISE_OOM_H_
