// SPDX-License-Identifier: Apache-2.0
// What a loop does not change is not carried through it, and what its body makes
// anew each time out of such values is made once, before it. JAX's loops carry
// every array that their body reads.
//
//   %0:3 = while(%a = %w, %b = %x, %i = %zero) ... do {
//     %t = transpose %a                   ->  %t = transpose %w
//     %1 = dot_general %b, %t                 %0:2 = while(%b = %x, %i = %zero)
//     return %a, %1, %2                       ... do { %1 = dot_general %b, %t
//   }                                           return %1, %2 }
#include "passes/util.h"

// --- Carried values ---

// Marks what |node| reads, in its regions too.
static void mark_reads(pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    pestle_node_operand(node, i)->scratch = 1;
  for (uint32_t r = 0; r < node->region_count; ++r) {
    pestle_node_t* inside = NULL;
    while ((inside = pestle_region_next(node->regions[r], inside))) {
      for (uint32_t i = 0; i < inside->operand_count; ++i)
        pestle_node_operand(inside, i)->scratch = 1;
    }
  }
}

static bool is_needed(const pestle_node_t* node) {
  if (pestle_pass_is_terminator(node)) return false;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].scratch) return true;
  }
  return pestle_node_has_effect(node);
}

static void clear_marks(pestle_block_t* block) {
  for (uint32_t i = 0; i < block->argument_count; ++i)
    block->arguments[i]->scratch = 0;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->result_count; ++i)
      n->results[i].scratch = 0;
  }
}

// Marks what is needed in |block| for what is marked in it, the last op first.
static void mark_back(pestle_block_t* block) {
  for (pestle_node_t* n = block->last; n; n = n->prev) {
    if (is_needed(n)) mark_reads(n);
  }
}

// Which carried values decide what comes out of the loop, or when it ends.
static void find_needed(pestle_node_t* loop, bool* needed) {
  pestle_block_t* condition = pestle_node_body(loop, 0);
  pestle_block_t* body = pestle_node_body(loop, 1);
  clear_marks(condition);
  pestle_node_operand(condition->last, 0)->scratch = 1;
  mark_back(condition);
  for (uint32_t i = 0; i < loop->result_count; ++i)
    needed[i] =
        loop->results[i].use_count || condition->arguments[i]->scratch == 1;
  for (bool grows = true; grows;) {
    grows = false;
    clear_marks(body);
    for (uint32_t i = 0; i < loop->result_count; ++i) {
      if (needed[i]) pestle_node_operand(body->last, i)->scratch = 1;
    }
    mark_back(body);
    for (uint32_t i = 0; i < loop->result_count; ++i) {
      if (needed[i] || body->arguments[i]->scratch != 1) continue;
      needed[i] = grows = true;
    }
  }
}

static pestle_status_t drop_carries(const pestle_pass_context_t* ctx,
                                    pestle_node_t* loop, bool* changed) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  bool* kept = PESTLE_ARENA_ARRAY(ctx->scratch, bool, loop->result_count + 1);
  if (!kept) return PESTLE_OOM();
  find_needed(loop, kept);
  for (uint32_t i = 0; i < loop->result_count; ++i) {
    const pestle_value_t* next = pestle_node_operand(body->last, i);
    if (next == body->arguments[i] || next == pestle_node_operand(loop, i))
      kept[i] = false;
  }
  if (pestle_loop_drop_carries(loop, kept)) *changed = true;
  return NULL;
}

// --- Ops ---

static bool is_inside(const pestle_value_t* value, const pestle_block_t* body) {
  return (value->node ? value->node->block : value->block) == body;
}

// Whether an op in a region of |node| reads what |body| makes.
static bool captures_from(const pestle_node_t* node,
                          const pestle_block_t* body) {
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_node_t* inside = NULL;
    while ((inside = pestle_region_next(node->regions[r], inside))) {
      for (uint32_t i = 0; i < inside->operand_count; ++i) {
        if (is_inside(pestle_node_operand(inside, i), body)) return true;
      }
    }
  }
  return false;
}

// Whether keeping what |node| makes costs no more than reading what it is made
// of: else each round makes it again, as part of a kernel that reads it.
static bool is_worth_keeping(const pestle_node_t* node) {
  uint64_t read = 0, made = 0;
  if (pestle_pass_info(node)->fuse == PESTLE_FUSE_CONTRACTION) return true;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(node, i);
    if (!pestle_value_is_stored(operand))
      read += pestle_type_bytes(operand->type);
  }
  for (uint32_t i = 0; i < node->result_count; ++i)
    made += pestle_type_bytes(node->results[i].type);
  return made <= read;
}

static bool is_invariant(const pestle_node_t* node,
                         const pestle_block_t* body) {
  if (pestle_pass_is_terminator(node) || pestle_pass_has_bodies(node) ||
      node->op == PESTLE_OP_OPTIMIZATION_BARRIER ||
      node->op == PESTLE_OP_FUSION || pestle_node_has_effect(node)) {
    return false;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (is_inside(pestle_node_operand(node, i), body)) return false;
  }
  return is_worth_keeping(node) && !captures_from(node, body);
}

static void hoist(pestle_node_t* loop, bool* changed) {
  for (uint32_t r = 0; r < loop->region_count; ++r) {
    pestle_block_t* block = pestle_node_body(loop, r);
    for (pestle_node_t *n = block->first, *next; n; n = next) {
      next = n->next;
      if (!is_invariant(n, block)) continue;
      pestle_node_move(n, loop);
      *changed = true;
    }
  }
}

// --- The pass ---

typedef struct invariants_t {
  const pestle_pass_context_t* ctx;
  bool changed;
} invariants_t;

static pestle_status_t visit(void* user, pestle_module_t* module,
                             pestle_block_t* block) {
  invariants_t* v = user;
  uint32_t left = block->body_count;
  (void)module;
  for (pestle_node_t* n = block->first; left && n; n = n->next) {
    if (!pestle_pass_has_bodies(n)) continue;
    --left;
    if (n->op != PESTLE_OP_WHILE) continue;
    PESTLE_TRY(drop_carries(v->ctx, n, &v->changed));
    hoist(n, &v->changed);
  }
  return NULL;
}

pestle_status_t pestle_pass_loop_invariants(pestle_pass_context_t* ctx,
                                            pestle_module_t* module,
                                            bool* out_changed) {
  invariants_t v = {.ctx = ctx};
  PESTLE_TRY(pestle_pass_each_block(module, visit, &v));
  *out_changed = *out_changed || v.changed;
  return NULL;
}
