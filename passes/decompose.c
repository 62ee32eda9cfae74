// SPDX-License-Identifier: Apache-2.0
// Composites become the core ops that they stand for: decompose all of them, the
// inverse of recognise; expand_composites those of several kernels. Both make whiles of
// scans.
//
//   %0 = pestle.silu %x    ->   %0 = logistic %x
//                               %1 = multiply %x, %0
#include "ir/scan.h"
#include "passes/util.h"

typedef struct decompose_t {
  const pestle_pass_context_t*
      ctx;  // what the target has a kernel for stays; NULL: nothing
  bool* changed;
  uint16_t flags;  // that an op must have
} decompose_t;

static pestle_status_t decompose_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  decompose_t* d = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    const pestle_op_info_t* info = pestle_pass_info(n);
    if (n->op == PESTLE_OP_SCAN) {
      PESTLE_TRY(pestle_scan_expand(n));
      *d->changed = true;
      continue;
    }
    if (info->fuse != PESTLE_FUSE_COMPOSITE) continue;
    if ((info->flags & d->flags) != d->flags) continue;
    if (d->ctx && pestle_pass_is_whole(d->ctx, n)) continue;
    pestle_value_t* out[PESTLE_COMPOSITE_MAX_RESULTS];
    pestle_node_t* before = n->prev;
    PESTLE_TRY(pestle_decompose(n, out));
    // What it stands for may hold scans and other composites.
    pestle_node_t* first = before ? before->next : block->first;
    next = first == n ? n->next : first;
    pestle_pass_replace(n, out);
    *d->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_decompose(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  decompose_t d = {.changed = out_changed};
  (void)ctx;
  return pestle_pass_each_block(module, decompose_block, &d);
}

pestle_status_t pestle_pass_expand_composites(pestle_pass_context_t* ctx,
                                              pestle_module_t* module,
                                              bool* out_changed) {
  decompose_t d = {
      .ctx = ctx, .changed = out_changed, .flags = PESTLE_OP_FLAG_SPLITS};
  return pestle_pass_each_block(module, decompose_block, &d);
}
