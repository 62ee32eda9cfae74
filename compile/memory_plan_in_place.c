// SPDX-License-Identifier: Apache-2.0
// Lets a result take the storage of an operand that dies: of a fusion that
// reads the operand only where it writes, of an op that changes its operand, and
// of a loop whose state begins as a value that nobody needs afterwards.
#include "base/fault.h"
#include "base/mem.h"
#include "compile/memory_planner.h"
#include "ir/custom_op.h"
#include "passes/fuse.h"

// --- What a fusion does with an operand ---

// Whether every path from |value|, of |shape|, to the result is elementwise, in one shape.
// Values are few and each is looked at once: marks are in scratch.
static bool flows_in_place(const pestle_value_t* value,
                           const pestle_type_t* shape, uint32_t budget) {
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    pestle_node_t* user = u->user;
    if (pestle_pass_is_terminator(user)) continue;
    if (user->scratch) continue;
    if (!budget || !pestle_fuse_is_elementwise(user) ||
        !pestle_pass_same_dims(user->results[0].type, shape)) {
      return false;
    }
    user->scratch = 1;
    if (!flows_in_place(&user->results[0], shape, budget - 1)) return false;
  }
  return true;
}

bool pestle_planner_may_overwrite(const pestle_node_t* fusion, uint32_t index) {
  if (fusion->result_count != 1) return false;
  pestle_block_t* body = pestle_node_body(fusion, 0);
  const pestle_value_t* operand = body->arguments[index];
  const pestle_type_t* shape = fusion->results[0].type;
  if (pestle_type_bytes(operand->type) != pestle_type_bytes(shape) ||
      !pestle_pass_same_dims(operand->type, shape)) {
    return false;
  }
  // The result itself must not be a view or a concatenation of what is written.
  const pestle_node_t* last = pestle_node_operand(body->last, 0)->node;
  if (!last || !pestle_fuse_is_elementwise(last)) return false;
  for (pestle_node_t* n = body->first; n; n = n->next)
    n->scratch = 0;
  return flows_in_place(operand, shape, 64);
}

// --- Merging cells ---

// Two operands in one cell: one would see what was written over the other.
static bool is_read_twice(const pestle_planner_t* p, const pestle_node_t* node,
                          uint32_t index) {
  const pestle_cell_t* cell =
      pestle_planner_cell_of(p, pestle_node_operand(node, index));
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (i != index &&
        pestle_planner_cell_of(p, pestle_node_operand(node, i)) == cell) {
      return true;
    }
  }
  return false;
}

// Where what lies in the place of |result| begins: before its op if a loop has put it where
// its state is, and nothing dies there.
static int64_t begin_of(const pestle_planner_t* p,
                        const pestle_value_t* result) {
  return pestle_planner_cell_of(p, result)->begin;
}

// Whether operand |index| of |node| is the whole of an arena cell that dies at |position|,
// and no other operand lies in it.
static bool dies_here(const pestle_planner_t* p, const pestle_node_t* node,
                      uint32_t index, int64_t position) {
  const pestle_value_t* value = pestle_node_operand(node, index);
  const pestle_cell_t* cell = pestle_planner_cell_of(p, value);
  if (PESTLE_FAULT(early_in_place)) position = cell->end;
  return cell->storage == PESTLE_STORAGE_ARENA && cell->end == position &&
         pestle_planner_is_whole(p, value) && !is_read_twice(p, node, index);
}

// The operand that a custom call's result |index| is an alias of, or UINT32_MAX.
static uint32_t alias_of(const pestle_node_t* node, uint32_t index) {
  if (node->op != PESTLE_OP_CUSTOM_CALL) return UINT32_MAX;
  pestle_i64s_t pairs = PESTLE_NODE_I64S(node, output_operand_aliases);
  for (size_t i = 0; i + 1 < pairs.count; i += 2) {
    if (pairs.data[i] == index) return (uint32_t)pairs.data[i + 1];
  }
  return UINT32_MAX;
}

bool pestle_planner_begins_over(const pestle_planner_t* p,
                                const pestle_node_t* node, uint32_t index,
                                uint32_t operand) {
  if (is_read_twice(p, node, operand)) return false;
  if (index == operand && index < pestle_pass_updates(node)) return true;
  if (node->op == PESTLE_OP_FUSION) {
    return pestle_planner_may_overwrite(node, operand);
  }
  if (node->op == PESTLE_OP_CUSTOM_CALL) {
    return alias_of(node, index) == operand;
  }
  // So does the state of a loop.
  return node->op == PESTLE_OP_WHILE && index == operand;
}

void pestle_planner_merge(pestle_planner_t* p, const pestle_value_t* into,
                          const pestle_value_t* value) {
  pestle_cell_t* a = pestle_planner_cell_of(p, into);
  pestle_cell_t* b = pestle_planner_cell_of(p, value);
  if (a == b) return;
  if (b->end > a->end) a->end = b->end;
  b->merged_into = (uint32_t)(a - p->cells.data);
}

static void overwrite(pestle_planner_t* p, const pestle_node_t* fusion) {
  int64_t position = begin_of(p, &fusion->results[0]);
  for (uint32_t i = 0; i < fusion->operand_count; ++i) {
    if (!dies_here(p, fusion, i, position) ||
        !pestle_planner_may_overwrite(fusion, i)) {
      continue;
    }
    pestle_planner_merge(p, pestle_node_operand(fusion, i),
                         &fusion->results[0]);
    return;
  }
}

static void share_aliases(pestle_planner_t* p, const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    uint32_t i = alias_of(node, r);
    if (i == UINT32_MAX) continue;
    const pestle_value_t* result = &node->results[r];
    if (dies_here(p, node, i, begin_of(p, result)))
      pestle_planner_merge(p, pestle_node_operand(node, i), result);
  }
}

// Result 0 of an eval that works in place.
static pestle_status_t share_in_place(pestle_planner_t* p,
                                      const pestle_node_t* node) {
  const pestle_custom_op_t* op;
  const pestle_custom_eval_t* eval;
  if (!pestle_is_eval_call(node)) return NULL;
  PESTLE_TRY(pestle_eval_call_find(node, &op, &eval));
  if (!eval->in_place) return NULL;
  const pestle_value_t* result = &node->results[0];
  int64_t position = begin_of(p, result);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(node, i);
    if (pestle_type_bytes(operand->type) != pestle_type_bytes(result->type) ||
        !dies_here(p, node, i, position)) {
      continue;
    }
    pestle_planner_merge(p, operand, result);
    return NULL;
  }
  return NULL;
}

// The first |count| results begin in the storage of the operands of these numbers: what an
// op changes, and the state of a loop.
static void begin_as_operands(pestle_planner_t* p, const pestle_node_t* node,
                              uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const pestle_value_t* result = &node->results[i];
    if (dies_here(p, node, i, begin_of(p, result)))
      pestle_planner_merge(p, pestle_node_operand(node, i), result);
  }
}

static pestle_status_t visit_block(pestle_planner_t* p,
                                   const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_FUSION && n->result_count == 1) overwrite(p, n);
    begin_as_operands(
        p, n,
        n->op == PESTLE_OP_WHILE ? n->result_count : pestle_pass_updates(n));
    if (n->op == PESTLE_OP_CUSTOM_CALL) share_aliases(p, n);
    PESTLE_TRY(share_in_place(p, n));
    if (!pestle_pass_has_bodies(n)) continue;
    PESTLE_TRY(pestle_planner_chains(p, n));
    for (uint32_t r = 0; r < n->region_count; ++r) {
      PESTLE_TRY(visit_block(p, pestle_node_body(n, r)));
    }
    // When all else in the body has its place.
    if (n->op == PESTLE_OP_WHILE) {
      pestle_planner_alternate(p, n);
    } else {
      pestle_planner_branches(p, n);
    }
  }
  return NULL;
}

pestle_status_t pestle_planner_in_place(pestle_planner_t* p) {
  return visit_block(p, p->function->body->block);
}
