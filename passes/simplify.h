// SPDX-License-Identifier: Apache-2.0
// The rules of simplify.def and how they are applied to one op.
#ifndef PESTLE_PASSES_SIMPLIFY_H_
#define PESTLE_PASSES_SIMPLIFY_H_

#include "ir/formula.h"
#include "passes/pass.h"

// What a rule on |node| gives in place of its result, made before the node; NULL:
// it does not fit and has made nothing, or |f| has failed.
typedef pestle_value_t* (*pestle_rule_fn_t)(pestle_formula_t* f,
                                            pestle_node_t* node);
// A rule on an op of several results: |out| has a value for each if it fits, else
// out[0] stays NULL.
typedef void (*pestle_rule_all_fn_t)(pestle_formula_t* f, pestle_node_t* node,
                                     pestle_value_t** out);

// What a rule may change: EXACT keeps every bit; DEFAULT stays within the
// op's own tolerance and is left out under PESTLE_NUMERICS_STRICT.
typedef enum pestle_rule_numerics_e {
  PESTLE_RULE_EXACT,
  PESTLE_RULE_DEFAULT,
} pestle_rule_numerics_t;

typedef struct pestle_simplify_rule_t {
  const char* name;
  pestle_rule_fn_t apply;          // or NULL
  pestle_rule_all_fn_t apply_all;  // else
  uint16_t op;       // pestle_op_t, or PESTLE_OP_COUNT: any elementwise op
  uint8_t numerics;  // pestle_rule_numerics_t
  // The row's example, from which its test is made.
  const char *arguments, *result, *body;
} pestle_simplify_rule_t;

const pestle_simplify_rule_t* pestle_simplify_table(size_t* out_count);

// Applies the first rule that fits; |only| (or NULL) limits them to one name.
PESTLE_NODISCARD pestle_status_t
pestle_simplify_node(const pestle_pass_context_t* ctx, const char* only,
                     pestle_node_t* node, pestle_value_t** out);

// A value for |node|'s every result fits in this many slots, or it is skipped.
#define PESTLE_SIMPLIFY_MAX_RESULTS 64

// Sets |out| (PESTLE_SIMPLIFY_MAX_RESULTS) to what replaces the results of
// |node|, or out[0] to NULL.
typedef pestle_status_t (*pestle_rewrite_fn_t)(const pestle_pass_context_t* ctx,
                                               pestle_module_t* module,
                                               pestle_node_t* node,
                                               pestle_value_t** out);
// One sweep of |fn| over every block; it sees the nodes that it makes too.
PESTLE_NODISCARD pestle_status_t
pestle_pass_rewrite(const pestle_pass_context_t* ctx, pestle_module_t* module,
                    pestle_rewrite_fn_t fn, bool* out_changed);

#define PESTLE_SIMPLIFY(rule, ...) \
  pestle_value_t* pestle_rule_##rule(pestle_formula_t* f, pestle_node_t* node);
#define PESTLE_SIMPLIFY_ALL(rule, ...)                              \
  void pestle_rule_##rule(pestle_formula_t* f, pestle_node_t* node, \
                          pestle_value_t** out);
#include "passes/simplify.def"

#endif  // PESTLE_PASSES_SIMPLIFY_H_
