// SPDX-License-Identifier: Apache-2.0
// Ends of values that stay inside a kernel: an axis of which every reader wants what is
// before a number of memory, as what it masks, or as a result that ends there.
//
//   %e = exp(%x)                       softmax of rows of which n are real: %e ends
//   %s = sum(select(iota < n, %e, 0))  as both of its readers do, and in rows that are
//   return %e / %s                     kept while the sum is made no more is computed
#include "codegen/lower/lower_internal.h"

// Uses that are looked at: of a value that stays inside a kernel there are few.
enum { MOST_USES = 64 };

typedef struct search_t {
  const pestle_lower_t* lower;
  int32_t axis;
  int left;         // uses that may still be looked at
  int64_t operand;  // of the fusion, which is the end; -1: none was found yet
} search_t;

static bool agree(search_t* s, int64_t operand) {
  if (s->operand < 0) s->operand = operand;
  return s->operand == operand;
}

// What the fusion says of result |slot|, whose value this is.
static bool result_ends(search_t* s, size_t slot) {
  pestle_i64s_t ends = PESTLE_NODE_I64S(s->lower->fusion, ends);
  for (size_t i = 0; i < ends.count; i += 4) {
    if (ends.data[i] == (int64_t)slot && ends.data[i + 1] == s->axis)
      return ends.data[i + 3] == 1 && agree(s, ends.data[i + 2]);
  }
  return false;
}

// Whether |mask| is iota < n along the axis, n an argument.
static bool masks(search_t* s, const pestle_value_t* mask) {
  const pestle_node_t* lt = mask->node;
  if (!lt || lt->op != PESTLE_OP_LT) return false;
  const pestle_node_t* iota = pestle_node_operand(lt, 0)->node;
  const pestle_node_t* spread = pestle_node_operand(lt, 1)->node;
  if (!iota || iota->op != PESTLE_OP_IOTA ||
      PESTLE_NODE_I64(iota, iota_dimension) != s->axis || !spread ||
      spread->op != PESTLE_OP_BROADCAST_IN_DIM) {
    return false;
  }
  const pestle_value_t* n = pestle_node_operand(spread, 0);
  return !n->node && !n->type->rank && n->type->dtype == PESTLE_I64 &&
         agree(s, n->index);
}

static bool ends(search_t* s, const pestle_value_t* value);

static bool use_ends(search_t* s, const pestle_use_t* use) {
  const pestle_node_t* n = use->user;
  size_t operand = (size_t)(use - n->operands);
  if (s->left-- <= 0) return false;
  if (n->op == PESTLE_OP_RETURN) return result_ends(s, operand);
  if (!pestle_op_is_scalar((pestle_op_t)n->op)) return false;
  bool chosen = n->op == PESTLE_OP_SELECT && operand == 1 &&
                pestle_node_operand(n, 0)->type->rank;
  return (chosen && masks(s, pestle_node_operand(n, 0))) ||
         ends(s, &n->results[0]);
}

static bool ends(search_t* s, const pestle_value_t* value) {
  bool all = value->uses != NULL;
  for (const pestle_use_t* u = value->uses; u && all; u = u->next)
    all = use_ends(s, u);
  return all;
}

void pestle_lower_ends(pestle_lower_t* lower, const pestle_node_t* node,
                       uint32_t stage) {
  const pestle_block_t* body = pestle_node_body(lower->fusion, 0);
  if (lower->nest->failed || !pestle_op_is_scalar((pestle_op_t)node->op) ||
      !PESTLE_NODE_I64S(lower->fusion, ends).count) {
    return;
  }
  const pestle_nest_stage_t* s = pestle_nest_stage(lower->nest, stage);
  for (uint32_t a = 0; a < s->map_count; ++a) {
    search_t found = {
        .lower = lower, .axis = (int32_t)a, .left = MOST_USES, .operand = -1};
    if (!ends(&found, &node->results[0])) continue;
    pestle_nest_axis_t* axis = &lower->nest->axes.data[s->roots[a]];
    axis->end_scale = 1;
    axis->end_tensor =
        lower->values[body->arguments[found.operand]->scratch].tensor;
  }
}
