// SPDX-License-Identifier: Apache-2.0
// Core ops that spell a composite become that composite, however they were
// written: softmax, log_softmax, layer_norm, rms_norm, gelu in both forms,
// silu, hard_sigmoid, attention, and 1 / (1 + exp(-x)) as logistic.
//
//   %0 = logistic %x
//   %1 = multiply %x, %0    ->   %1 = pestle.silu %x
//
// The module is canonical before: constants stand right, broadcasts are behind
// the work on single rows, powers of two are products.
#include "passes/recognise.h"

static const pestle_matcher_t matchers[] = {
    pestle_match_logistic,     pestle_match_softmax,  pestle_match_log_softmax,
    pestle_match_norm,         pestle_match_gelu,     pestle_match_silu,
    pestle_match_hard_sigmoid, pestle_match_attention};

typedef struct recognise_t {
  const pestle_target_caps_t* caps;
  bool strict;
  bool changed;
} recognise_t;

// Where matrix registers multiply bf16, two products and a softmax are faster than
// attention's own multiply-adds: [1, 512, 8, 64] on Sapphire Rapids 4.1 ms, 6.3.
static bool is_faster_apart(const recognise_t* r, const pestle_node_t* node) {
  return node->results[0].type->dtype == PESTLE_BF16 &&
         !(r->caps->flags & PESTLE_TARGET_LANES) &&
         r->caps->op_dtypes[PESTLE_KIR_MREG_MMA] != 0;
}

static pestle_status_t recognise_node(recognise_t* r, pestle_node_t* node) {
  pestle_builder_t b = pestle_builder_before(node);
  for (size_t i = 0; i < sizeof(matchers) / sizeof(matchers[0]); ++i) {
    pestle_value_t* value = NULL;
    if (matchers[i] == pestle_match_attention && is_faster_apart(r, node)) {
      continue;
    }
    PESTLE_TRY(matchers[i](&b, node, r->strict, &value));
    if (!value) continue;
    pestle_pass_replace(node, &value);
    r->changed = true;
    return NULL;
  }
  return NULL;
}

static pestle_status_t recognise_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->result_count == 1) PESTLE_TRY(recognise_node(user, n));
  }
  return NULL;
}

pestle_status_t pestle_pass_recognise(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  recognise_t r = {.caps = ctx->caps,
                   .strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT};
  *out_changed = false;
  // What a match leaves without users still uses what a larger one wants to itself:
  // attention is one once the ops of its softmax are gone.
  do {
    bool dead;
    r.changed = false;
    PESTLE_TRY(pestle_pass_each_block(module, recognise_block, &r));
    if (r.changed) PESTLE_TRY(pestle_pass_dce(ctx, module, &dead));
    *out_changed = *out_changed || r.changed;
  } while (r.changed);
  return NULL;
}
