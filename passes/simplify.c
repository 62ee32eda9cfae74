// SPDX-License-Identifier: Apache-2.0
// Applies the rules of simplify.def to every op, in order, until none fits.
// An op that a rule makes is looked at again, so one sweep carries a chain of
// rewrites to its end.
//
//   %0 = add %x, dense<0>            ->
//   %1 = transpose (transpose %0)    ->   %1 = %x
#include "passes/simplify.h"

#include <string.h>

#include "base/mem.h"
#include "passes/util.h"

static const pestle_simplify_rule_t rules[] = {
#define ROW(rule, one, all, OP, NUMERICS, arguments, result, body) \
  {#rule,     one,    all, PESTLE_OP_##OP, PESTLE_RULE_##NUMERICS, \
   arguments, result, body},
#define PESTLE_SIMPLIFY(rule, ...) \
  ROW(rule, pestle_rule_##rule, NULL, __VA_ARGS__)
#define PESTLE_SIMPLIFY_ALL(rule, ...) \
  ROW(rule, NULL, pestle_rule_##rule, __VA_ARGS__)
#include "passes/simplify.def"
#undef ROW
};

const pestle_simplify_rule_t* pestle_simplify_table(size_t* out_count) {
  *out_count = sizeof(rules) / sizeof(rules[0]);
  return rules;
}

static bool fits(const pestle_simplify_rule_t* rule,
                 const pestle_node_t* node) {
  if (rule->op != PESTLE_OP_COUNT) return rule->op == node->op;
  return pestle_pass_info(node)->fuse == PESTLE_FUSE_ELEMENTWISE ||
         pestle_op_is_scalar((pestle_op_t)node->op);
}

static pestle_status_t apply(const pestle_simplify_rule_t* rule,
                             pestle_node_t* node, pestle_value_t** out) {
  pestle_formula_t f = pestle_formula_before(node);
  if (rule->apply) {
    out[0] = rule->apply(&f, node);
  } else {
    rule->apply_all(&f, node, out);
  }
  return pestle_status_annotate(f.status, "in rule '%s'", rule->name);
}

pestle_status_t pestle_simplify_node(const pestle_pass_context_t* ctx,
                                     const char* only, pestle_node_t* node,
                                     pestle_value_t** out) {
  out[0] = NULL;
  if (!node->result_count || node->result_count > PESTLE_SIMPLIFY_MAX_RESULTS) {
    return NULL;
  }
  bool strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT;
  for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
    const pestle_simplify_rule_t* rule = &rules[i];
    if (!fits(rule, node) || (only && strcmp(only, rule->name))) continue;
    if (strict && rule->numerics != PESTLE_RULE_EXACT) continue;
    PESTLE_TRY(apply(rule, node, out));
    if (out[0]) return NULL;
  }
  return NULL;
}

typedef struct rewrite_t {
  const pestle_pass_context_t* ctx;
  pestle_rewrite_fn_t fn;
  bool changed;
} rewrite_t;

static pestle_status_t rewrite_block(void* user, pestle_module_t* module,
                                     pestle_block_t* block) {
  rewrite_t* r = user;
  pestle_value_t* out[PESTLE_SIMPLIFY_MAX_RESULTS];
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    pestle_node_t* prev = n->prev;
    next = n->next;
    PESTLE_TRY(r->fn(r->ctx, module, n, out));
    if (!out[0]) continue;
    pestle_pass_replace(n, out);
    r->changed = true;
    next = prev ? prev->next : block->first;
  }
  return NULL;
}

pestle_status_t pestle_pass_rewrite(const pestle_pass_context_t* ctx,
                                    pestle_module_t* module,
                                    pestle_rewrite_fn_t fn, bool* out_changed) {
  rewrite_t r = {.ctx = ctx, .fn = fn};
  pestle_status_t status = pestle_pass_each_block(module, rewrite_block, &r);
  *out_changed = r.changed;
  return status;
}

static pestle_status_t simplify_any(const pestle_pass_context_t* ctx,
                                    pestle_module_t* module,
                                    pestle_node_t* node, pestle_value_t** out) {
  (void)module;
  return pestle_simplify_node(ctx, NULL, node, out);
}

pestle_status_t pestle_pass_simplify(pestle_pass_context_t* ctx,
                                     pestle_module_t* module,
                                     bool* out_changed) {
  return pestle_pass_rewrite(ctx, module, simplify_any, out_changed);
}
