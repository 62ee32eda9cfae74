// SPDX-License-Identifier: Apache-2.0
// Composites become the core ops that they stand for: the inverse of recognise.
//
//   %0 = pestle.silu %x    ->   %0 = logistic %x
//                               %1 = multiply %x, %0
#include "passes/util.h"

static pestle_status_t decompose_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  bool* changed = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (pestle_pass_info(n)->fuse != PESTLE_FUSE_COMPOSITE) continue;
    pestle_value_t* out[PESTLE_COMPOSITE_MAX_RESULTS];
    PESTLE_TRY(pestle_decompose(n, out));
    pestle_pass_replace(n, out);
    *changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_decompose(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  (void)ctx;
  return pestle_pass_each_block(module, decompose_block, out_changed);
}
