// SPDX-License-Identifier: Apache-2.0
// Questions about nodes and blocks that several folders ask.
#include "ir/graph.h"

const pestle_elements_t* pestle_value_constant(const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  if (!node || node->op != PESTLE_OP_CONSTANT) return NULL;
  return pestle_node_attr(node, PESTLE_ATTR_value)->as.elements;
}

// Deeper calls are taken to have an effect.
enum { MAX_CALLS = 16 };

// Whether a custom call with an effect is in |region|, or in what it calls.
static bool calls_out(const pestle_region_t* region, int depth) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(region, n))) {
    if (n->op == PESTLE_OP_CUSTOM_CALL) {
      if (PESTLE_NODE_BOOL(n, has_side_effect)) return true;
    } else if (n->op == PESTLE_OP_CALL) {
      const pestle_function_t* f = pestle_module_find_function(
          region->module, PESTLE_NODE_STR(n, callee));
      if (!depth) return true;
      if (f && f->body && calls_out(f->body, depth - 1)) return true;
    }
  }
  return false;
}

bool pestle_node_has_effect(const pestle_node_t* node) {
  if (pestle_op_info((pestle_op_t)node->op)->flags & PESTLE_OP_FLAG_EFFECT) {
    return true;
  }
  if (node->op == PESTLE_OP_CUSTOM_CALL &&
      PESTLE_NODE_BOOL(node, has_side_effect)) {
    return true;
  }
  if (node->op == PESTLE_OP_CALL) {
    const pestle_function_t* f = pestle_module_find_function(
        node->block->region->module, PESTLE_NODE_STR(node, callee));
    return f && f->body && calls_out(f->body, MAX_CALLS);
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    if (calls_out(node->regions[i], MAX_CALLS)) return true;
  }
  return false;
}

// Whether |node| takes both arguments of |block|, in either order, and nothing
// else.
static bool takes_both(const pestle_node_t* node, const pestle_block_t* block) {
  if (node->operand_count != 2) return false;
  const pestle_value_t* a = pestle_node_operand(node, 0);
  const pestle_value_t* b = pestle_node_operand(node, 1);
  const pestle_value_t* x = block->arguments[0];
  const pestle_value_t* y = block->arguments[1];
  return (a == x && b == y) || (a == y && b == x);
}

pestle_op_t pestle_block_fold_op(const pestle_block_t* block) {
  const pestle_node_t* node = block->first;
  const pestle_node_t* end = block->last;
  if (block->argument_count != 2 || !node || node->next != end || !end) {
    return PESTLE_OP_COUNT;
  }
  unsigned needed = PESTLE_OP_FLAG_COMM | PESTLE_OP_FLAG_ASSOC;
  pestle_op_t op = (pestle_op_t)node->op;
  bool folds = pestle_op_is_scalar(op) &&
               (pestle_op_info(op)->flags & needed) == needed &&
               takes_both(node, block);
  bool returns = end->op == PESTLE_OP_RETURN && end->operand_count == 1 &&
                 pestle_node_operand(end, 0) == pestle_node_result(node, 0);
  return folds && returns ? op : PESTLE_OP_COUNT;
}
