// SPDX-License-Identifier: Apache-2.0
// A while that compares a counter with a number, seen through the groups around its ops:
//
//   while (%i = 0, ..) cond { return fusion(%i) { %i < 100 } }
//     do { .. return fusion(%i) { %i + 1 }, .. }
#include "compile/loop_trips.h"

#include "ir/scan.h"

// What |value| is without the groups that it is handed into or out of.
static const pestle_value_t* settle(const pestle_value_t* value) {
  for (;;) {
    const pestle_node_t* n = value->node;
    if (n && n->op == PESTLE_OP_FUSION) {
      value = pestle_node_operand(pestle_node_body(n, 0)->last, value->index);
      continue;
    }
    const pestle_node_t* around = n ? NULL : value->block->region->owner;
    if (!around || around->op != PESTLE_OP_FUSION) return value;
    value = pestle_node_operand(around, value->index);
  }
}

static bool is_argument(const pestle_value_t* value, const pestle_block_t* of,
                        uint32_t index) {
  return !value->node && value->block == of && value->index == index;
}

// What each trip has alike of |value|, of the condition.
static const pestle_value_t* unchanged(const pestle_node_t* loop,
                                       const pestle_value_t* value) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  if (value->node || value->block != pestle_node_body(loop, 0)) return value;
  uint32_t i = value->index;
  const pestle_value_t* next = settle(pestle_node_operand(body->last, i));
  return is_argument(next, body, i) ? settle(pestle_node_operand(loop, i))
                                    : value;
}

// What is added to the counter |index| in a trip.
static bool step_of(const pestle_node_t* loop, uint32_t index, int64_t* out) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  const pestle_node_t* n = settle(pestle_node_operand(body->last, index))->node;
  if (!n || (n->op != PESTLE_OP_ADD && n->op != PESTLE_OP_SUBTRACT))
    return false;
  const pestle_value_t* a = settle(pestle_node_operand(n, 0));
  const pestle_value_t* b = settle(pestle_node_operand(n, 1));
  if (n->op == PESTLE_OP_SUBTRACT) {
    if (!is_argument(a, body, index) || !pestle_value_integer(b, out) ||
        *out == INT64_MIN) {
      return false;
    }
    *out = -*out;
    return true;
  }
  return (is_argument(a, body, index) && pestle_value_integer(b, out)) ||
         (is_argument(b, body, index) && pestle_value_integer(a, out));
}

static bool has_effects(const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (pestle_node_has_effect(n)) return true;
  }
  return false;
}

uint32_t pestle_loop_trips(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_WHILE) return 0;
  const pestle_block_t* cond = pestle_node_body(node, 0);
  const pestle_node_t* test = settle(pestle_node_operand(cond->last, 0))->node;
  if (!test || test->operand_count != 2 || has_effects(cond)) return 0;
  pestle_op_t op = (pestle_op_t)test->op;
  const pestle_value_t* a = settle(pestle_node_operand(test, 0));
  const pestle_value_t* b = settle(pestle_node_operand(test, 1));
  int64_t start, step, limit;
  if (a->node || a->block != cond ||
      !pestle_value_integer(unchanged(node, b), &limit)) {
    const pestle_value_t* swap = a;
    a = b;
    b = swap;
    op = pestle_scan_mirrored(op);
    if (a->node || a->block != cond ||
        !pestle_value_integer(unchanged(node, b), &limit))
      return 0;
  }
  if (!pestle_value_integer(settle(pestle_node_operand(node, a->index)),
                            &start) ||
      !step_of(node, a->index, &step)) {
    return 0;
  }
  int64_t trips = pestle_scan_count(op, start, step, limit, a->type->dtype);
  return trips > 0 && trips <= UINT32_MAX ? (uint32_t)trips : 0;
}
