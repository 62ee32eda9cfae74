// SPDX-License-Identifier: Apache-2.0
// Whiles that count become scans (ir/scan_recognise.c). By name: kernels are made of
// whiles, transforms want scans.
#include "ir/scan.h"
#include "passes/util.h"

static pestle_status_t visit(void* user, pestle_module_t* module,
                             pestle_block_t* block) {
  bool* changed = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_WHILE) continue;
    pestle_node_t* scan;
    PESTLE_TRY(pestle_scan_recognise(n, &scan));
    if (scan) *changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_recognise_scan(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  (void)ctx;
  return pestle_pass_each_block(module, visit, out_changed);
}
