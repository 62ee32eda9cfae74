// SPDX-License-Identifier: Apache-2.0
// Drops ops whose results nobody uses. One sweep from the last op to the first
// is the fixpoint, since users come after what they use.
//
//   %0 = exp %x        ->
//   %1 = add %x, %x    ->   %1 = add %x, %x
//   return %1               return %1
#include "passes/util.h"

static bool is_dead(const pestle_node_t* node) {
  if (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_TERMINATOR) return false;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].use_count) return false;
  }
  return !pestle_node_has_effect(node);
}

static void sweep(pestle_block_t* block, bool* changed) {
  for (pestle_node_t *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    if (is_dead(n)) {
      pestle_node_erase(n);
      *changed = true;
      continue;
    }
    for (uint32_t r = 0; r < n->region_count; ++r) {
      sweep(pestle_node_body(n, r), changed);
    }
  }
}

pestle_status_t pestle_pass_dce(pestle_pass_context_t* ctx,
                                pestle_module_t* module, bool* out_changed) {
  (void)ctx;
  for (pestle_function_t* f = module->first; f; f = f->next) {
    sweep(f->body->block, out_changed);
  }
  return NULL;
}
