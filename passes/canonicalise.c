// SPDX-License-Identifier: Apache-2.0
// Constant folding and the rules of simplify.def in one sweep over each block,
// what loops do not change, cse and dce, again and again until nothing changes. The same work under
// the name clean_up stands before fusion.
//
//   %0 = constant dense<0>
//   %1 = add %x, %0          ->   %2 = exp %x
//   %2 = exp %1                   return %2, %2
//   %3 = exp %x
//   return %2, %3
#include "passes/fold_constants.h"
#include "passes/simplify.h"
#include "passes/util.h"

// Rounds are few: a sweep carries a chain of rewrites to its end, and only what
// a later op makes possible for an earlier one needs another.
#define MAX_ROUNDS 12

static pestle_status_t fold_or_simplify(const pestle_pass_context_t* ctx,
                                        pestle_module_t* module,
                                        pestle_node_t* node,
                                        pestle_value_t** out) {
  PESTLE_TRY(pestle_fold_node(ctx, module, node, out));
  if (out[0]) return NULL;
  return pestle_simplify_node(ctx, NULL, node, out);
}

pestle_status_t pestle_pass_canonicalise(pestle_pass_context_t* ctx,
                                         pestle_module_t* module,
                                         bool* out_changed) {
  bool rewritten = true;
  for (int round = 0; round < MAX_ROUNDS && rewritten; ++round) {
    bool dropped = false;
    PESTLE_TRY(pestle_pass_rewrite(ctx, module, fold_or_simplify, &rewritten));
    PESTLE_TRY(pestle_pass_loop_invariants(ctx, module, &rewritten));
    PESTLE_TRY(pestle_pass_cse(ctx, module, &rewritten));
    PESTLE_TRY(pestle_pass_dce(ctx, module, &dropped));
    *out_changed = *out_changed || rewritten || dropped;
  }
  if (rewritten) {
    pestle_context_log(ctx->context, PESTLE_LOG_DEBUG,
                       "module '%s' still changed in round %d of the "
                       "simplifications, the last: more may be possible",
                       module->name, MAX_ROUNDS);
  }
  return NULL;
}

pestle_status_t pestle_pass_clean_up(pestle_pass_context_t* ctx,
                                     pestle_module_t* module,
                                     bool* out_changed) {
  PESTLE_TRY(pestle_fold_turned_weights(ctx, module, out_changed));
  return pestle_pass_canonicalise(ctx, module, out_changed);
}
