// SPDX-License-Identifier: Apache-2.0
// Merges ops that compute the same: same op, operands, attributes and types.
// Operands of commutative ops may be swapped. A body of while, if or case sees
// the ops before it in the blocks around it, not those of its siblings.
//
//   %0 = add %x, %y         ->   %0 = add %x, %y
//   %1 = add %y, %x              return %0, %0
//   return %0, %1
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/mem.h"
#include "passes/util.h"

// An op that was seen, in the chain of its bucket. Chains are stacks: leaving
// a block pops what it pushed.
typedef struct seen_t {
  uint64_t hash;
  pestle_node_t* node;
  struct seen_t* next;   // in the bucket
  struct seen_t* older;  // pushed before this one
} seen_t;

typedef struct cse_t {
  pestle_arena_t* arena;
  seen_t** buckets;
  size_t mask;
  seen_t* newest;
  bool changed;
} cse_t;

// --- Hash and equality ---

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

// Samples large constants: equal ones still get equal hashes.
static uint64_t hash_elements(uint64_t hash, const pestle_elements_t* e) {
  enum { SAMPLE = 256 };
  hash = mix(mix(hash, e->size), e->splat);
  size_t step = e->size <= SAMPLE * 4 ? e->size : e->size / 4;
  for (size_t at = 0; at < e->size; at += step) {
    size_t size = e->size - at;
    if (e->size > SAMPLE * 4 && size > SAMPLE) size = SAMPLE;
    hash = mix(hash, pestle_hash64((const char*)e->data + at, size));
  }
  return hash;
}

static uint64_t hash_attr(uint64_t hash, const pestle_attr_t* attr) {
  hash = mix(hash, attr->name);
  switch ((pestle_attr_kind_t)attr->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return mix(hash, attr->as.b);
    case PESTLE_ATTR_KIND_I64:
      return mix(hash, (uint64_t)attr->as.i64);
    case PESTLE_ATTR_KIND_F64: {
      uint64_t bits;
      memcpy(&bits, &attr->as.f64, sizeof(bits));
      return mix(hash, bits);
    }
    case PESTLE_ATTR_KIND_STR:
      return mix(hash, pestle_hash64(attr->as.str, strlen(attr->as.str)));
    case PESTLE_ATTR_KIND_I64S:
      if (PESTLE_FAULT(cse_without_attributes)) return hash;
      for (size_t i = 0; i < attr->as.i64s.count; ++i) {
        hash = mix(hash, (uint64_t)attr->as.i64s.data[i]);
      }
      return mix(hash, attr->as.i64s.count);
    case PESTLE_ATTR_KIND_TYPE:
      return mix(hash, attr->as.type->dtype);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return hash_elements(hash, attr->as.elements);
  }
  return hash;
}

static bool equal_elements(const pestle_elements_t* a,
                           const pestle_elements_t* b) {
  return a->size == b->size && a->splat == b->splat &&
         pestle_type_equal(&a->type, &b->type) &&
         (!a->size || !memcmp(a->data, b->data, a->size));
}

static bool equal_attr(const pestle_attr_t* a, const pestle_attr_t* b) {
  if (a->name != b->name || a->kind != b->kind) return false;
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return a->as.b == b->as.b;
    case PESTLE_ATTR_KIND_I64:
      return a->as.i64 == b->as.i64;
    case PESTLE_ATTR_KIND_F64:
      return !memcmp(&a->as.f64, &b->as.f64, sizeof(double));
    case PESTLE_ATTR_KIND_STR:
      return !strcmp(a->as.str, b->as.str);
    case PESTLE_ATTR_KIND_I64S:
      return PESTLE_FAULT(cse_without_attributes) ||
             pestle_pass_i64s_equal(a->as.i64s, b->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      return pestle_type_equal(a->as.type, b->as.type);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return equal_elements(a->as.elements, b->as.elements);
  }
  return false;
}

static bool commutes(const pestle_node_t* node) {
  return node->operand_count == 2 &&
         (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_COMM) != 0;
}

static uint64_t hash_node(const pestle_node_t* node) {
  uint64_t hash = mix(node->op, node->operand_count);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    uintptr_t operand = (uintptr_t)pestle_node_operand(node, i);
    if (commutes(node)) {
      sum += mix(0, operand);
    } else {
      sum = mix(sum, operand);
    }
  }
  hash = mix(hash, sum);
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    hash = hash_attr(hash, &node->attrs[i]);
  }
  return mix(hash, (uintptr_t)node->results[0].type);
}

static bool equal_operands(const pestle_node_t* a, const pestle_node_t* b) {
  if (a->operand_count != b->operand_count) return false;
  bool same = true;
  for (uint32_t i = 0; i < a->operand_count && same; ++i) {
    same = pestle_node_operand(a, i) == pestle_node_operand(b, i);
  }
  return same || (commutes(a) &&
                  pestle_node_operand(a, 0) == pestle_node_operand(b, 1) &&
                  pestle_node_operand(a, 1) == pestle_node_operand(b, 0));
}

// Regions are compared only where one op sums them up.
static bool equal_regions(const pestle_node_t* a, const pestle_node_t* b) {
  if (a->region_count != b->region_count) return false;
  for (uint32_t r = 0; r < a->region_count; ++r) {
    pestle_op_t fold = pestle_block_fold_op(pestle_node_body(a, r));
    if (fold == PESTLE_OP_COUNT ||
        fold != pestle_block_fold_op(pestle_node_body(b, r))) {
      return false;
    }
  }
  return true;
}

static bool equal_nodes(const pestle_node_t* a, const pestle_node_t* b) {
  if (a->op != b->op || a->attr_count != b->attr_count ||
      a->result_count != b->result_count || !equal_operands(a, b)) {
    return false;
  }
  for (uint32_t i = 0; i < a->result_count; ++i) {
    if (a->results[i].type != b->results[i].type) return false;
  }
  for (uint32_t i = 0; i < a->attr_count; ++i) {
    if (!equal_attr(&a->attrs[i], &b->attrs[i])) return false;
  }
  return equal_regions(a, b);
}

// --- The walk ---

static bool may_merge(const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_pass_info(node);
  return info->fuse != PESTLE_FUSE_CONTROL &&
         info->fuse != PESTLE_FUSE_FUSION &&
         !(info->flags & (PESTLE_OP_FLAG_TERMINATOR | PESTLE_OP_FLAG_EFFECT)) &&
         node->result_count > 0;
}

static pestle_status_t merge_or_add(cse_t* cse, pestle_node_t* node) {
  uint64_t hash = hash_node(node);
  seen_t** bucket = &cse->buckets[hash & cse->mask];
  for (const seen_t* s = *bucket; s; s = s->next) {
    if (s->hash != hash || !equal_nodes(s->node, node)) continue;
    for (uint32_t i = 0; i < node->result_count; ++i) {
      pestle_value_replace_all_uses(&node->results[i], &s->node->results[i]);
    }
    pestle_node_erase(node);
    cse->changed = true;
    return NULL;
  }
  seen_t* seen = PESTLE_ARENA_NEW(cse->arena, seen_t);
  if (!seen) return PESTLE_OOM();
  *seen = (seen_t){hash, node, *bucket, cse->newest};
  *bucket = cse->newest = seen;
  return NULL;
}

static pestle_status_t merge_block(cse_t* cse, pestle_block_t* block) {
  const seen_t* mark = cse->newest;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (pestle_pass_has_bodies(n)) {
      for (uint32_t r = 0; r < n->region_count; ++r) {
        PESTLE_TRY(merge_block(cse, pestle_node_body(n, r)));
      }
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
