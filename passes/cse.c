// SPDX-License-Identifier: Apache-2.0
// Merges ops that compute the same: same op, operands, attributes and types.
// Operands of commutative ops may be swapped. A body of while, if or case sees
// the ops before it in the blocks around it, not those of its siblings; that of a
// scan, which captures nothing, sees none.
//
//   %0 = add %x, %y         ->   %0 = add %x, %y
//   %1 = add %y, %x              return %0, %0
//   return %0, %1
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "ir/equal.h"
#include "passes/util.h"

// An op that was seen, in the chain of its bucket. Chains are stacks: leaving
// a block pops what it pushed.
typedef struct seen_t {
  uint64_t hash;
  pestle_node_t* node;
  uint64_t scope;
  struct seen_t* next;   // in the bucket
  struct seen_t* older;  // pushed before this one
} seen_t;

typedef struct cse_t {
  pestle_arena_t* arena;
  seen_t** buckets;
  size_t mask;
  seen_t* newest;
  // Which body that captures nothing the walk is in, and how many there were.
  uint64_t scope, scope_count;
  bool changed;
} cse_t;

// --- The walk ---

static bool may_merge(const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_pass_info(node);
  return info->fuse != PESTLE_FUSE_CONTROL &&
         info->fuse != PESTLE_FUSE_FUSION &&
         !(info->flags & (PESTLE_OP_FLAG_TERMINATOR | PESTLE_OP_FLAG_EFFECT)) &&
         node->result_count > 0;
}

static pestle_status_t merge_or_add(cse_t* cse, pestle_node_t* node) {
  uint64_t hash = pestle_node_hash(node);
  seen_t** bucket = &cse->buckets[hash & cse->mask];
  for (const seen_t* s = *bucket; s; s = s->next) {
    if (s->hash != hash || s->scope != cse->scope ||
        !pestle_node_equal(s->node, node)) {
      continue;
    }
    for (uint32_t i = 0; i < node->result_count; ++i) {
      pestle_value_replace_all_uses(&node->results[i], &s->node->results[i]);
    }
    pestle_node_erase(node);
    cse->changed = true;
    return NULL;
  }
  seen_t* seen = PESTLE_ARENA_NEW(cse->arena, seen_t);
  if (!seen) return PESTLE_OOM();
  *seen = (seen_t){hash, node, cse->scope, *bucket, cse->newest};
  *bucket = cse->newest = seen;
  return NULL;
}

static pestle_status_t merge_block(cse_t* cse, pestle_block_t* block) {
  const seen_t* mark = cse->newest;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (pestle_pass_has_bodies(n)) {
      uint64_t scope = cse->scope;
      if (pestle_node_is_isolated(n)) cse->scope = ++cse->scope_count;
      for (uint32_t r = 0; r < n->region_count; ++r) {
        PESTLE_TRY(merge_block(cse, pestle_node_body(n, r)));
      }
      cse->scope = scope;
    } else if (may_merge(n)) {
      PESTLE_TRY(merge_or_add(cse, n));
    }
  }
  while (cse->newest != mark) {
    cse->buckets[cse->newest->hash & cse->mask] = cse->newest->next;
    cse->newest = cse->newest->older;
  }
  return NULL;
}

static size_t count_nodes(const pestle_block_t* block) {
  size_t count = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    ++count;
    if (!pestle_pass_has_bodies(n)) continue;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      count += count_nodes(pestle_node_body(n, r));
    }
  }
  return count;
}

pestle_status_t pestle_pass_cse(pestle_pass_context_t* ctx,
                                pestle_module_t* module, bool* out_changed) {
  cse_t cse = {.arena = ctx->scratch};
  for (pestle_function_t* f = module->first; f; f = f->next) {
    size_t count = pestle_next_pow2(count_nodes(f->body->block) + 1);
    cse.mask = count - 1;
    cse.newest = NULL;
    cse.buckets = PESTLE_ARENA_ARRAY(cse.arena, seen_t*, count);
    if (!cse.buckets) return PESTLE_OOM();
    memset(cse.buckets, 0, count * sizeof(cse.buckets[0]));
    PESTLE_TRY(merge_block(&cse, f->body->block));
  }
  *out_changed = *out_changed || cse.changed;
  return NULL;
}
