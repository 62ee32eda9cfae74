// SPDX-License-Identifier: Apache-2.0
// Sums over the same processes become one meeting: all_reduces of one group, op and
// element type that do not need each other, up to 32 MiB together. Where something that
// takes its time is computed between what they are of, the first could be under way
// meanwhile, and what comes last is waited for: so up to a tenth of all sums, between 1
// and 8 MiB. By the simulator a step of a transformer of 75 M parameters (gradients of 2
// and 8 MiB) waits for wires of 10 GB/s 0.7 ms by 8 MiB, 3.2 ms by 32 and 0.4 ms without;
// of 5 GB/s 13.9, 15.5 and 14.7 ms.
//
//   %a = all_reduce %x        ...        %b = all_reduce %y
//     ->  %a, %b = all_reduce %x, %y
//
// The one takes place where the first was, if all that it takes is there by then; else
// where the last was, behind which goes what needs the first.
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "passes/partition.h"

enum { MOST_BYTES = 32 << 20, MOST_BUCKETS = 16 };

typedef struct bucket_t {
  pestle_node_t* node;
  size_t bytes;
} bucket_t;

static size_t bytes_of(const pestle_node_t* n) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < n->operand_count; ++i)
    bytes += pestle_type_bytes(pestle_node_operand(n, i)->type);
  return bytes;
}

static pestle_op_t op_of(const pestle_node_t* n) {
  return pestle_block_reduce_op(pestle_node_body(n, 0));
}

static bool same_rows(const pestle_node_t* a, const pestle_node_t* b) {
  const pestle_elements_t* x =
      pestle_node_attr(a, PESTLE_ATTR_replica_groups)->as.elements;
  const pestle_elements_t* y =
      pestle_node_attr(b, PESTLE_ATTR_replica_groups)->as.elements;
  return pestle_type_equal(&x->type, &y->type) && x->splat == y->splat &&
         x->size == y->size && !memcmp(x->data, y->data, x->size);
}

static bool fit(const pestle_node_t* a, const pestle_node_t* b) {
  pestle_op_t op = op_of(a);
  return op != PESTLE_OP_COUNT && op == op_of(b) &&
         pestle_node_operand(a, 0)->type->dtype ==
             pestle_node_operand(b, 0)->type->dtype &&
         (PESTLE_NODE_I64(a, channel_handle) > 0) ==
             (PESTLE_NODE_I64(b, channel_handle) > 0) &&
         PESTLE_NODE_BOOL(a, use_global_device_ids) ==
             PESTLE_NODE_BOOL(b, use_global_device_ids) &&
         same_rows(a, b);
}

// Where the operands of both are made, from the first to the last of them.
static void find_span(const pestle_node_t* n, uint64_t* first, uint64_t* last) {
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    const pestle_node_t* source = pestle_node_operand(n, i)->node;
    uint64_t at = source && source->block == n->block ? source->scratch : 0;
    if (at < *first) *first = at;
    if (at > *last) *last = at;
  }
}

static bool is_work(const pestle_node_t* n) {
  pestle_fuse_class_t c = (pestle_fuse_class_t)pestle_pass_info(n)->fuse;
  return c == PESTLE_FUSE_CONTRACTION || c == PESTLE_FUSE_WINDOW ||
         c == PESTLE_FUSE_COMPOSITE || pestle_pass_has_bodies(n);
}

// Whether something that takes its time is computed between the operands of the two, so
// that the first ones wait for the last: beside it they could be under way.
static bool work_between(const pestle_node_t* a, const pestle_node_t* b) {
  uint64_t first = UINT64_MAX, last = 0;
  find_span(a, &first, &last);
  find_span(b, &first, &last);
  for (const pestle_node_t* n = a->block->first; n; n = n->next) {
    if (n->scratch > first && n->scratch <= last && is_work(n)) return true;
  }
  return false;
}

// Nodes of a block are numbered in their order.
static bool is_ready(const pestle_node_t* n, uint64_t at) {
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    const pestle_node_t* source = pestle_node_operand(n, i)->node;
    if (source && source->block == n->block && source->scratch >= at)
      return false;
  }
  return true;
}

static uint64_t number(pestle_block_t* block) {
  uint64_t at = 0;
  for (pestle_node_t* n = block->first; n; n = n->next)
    n->scratch = ++at;
  return at;
}

// Whether |n|, or what its regions hold, reads what a flagged node of |block| makes.
static bool needs_flagged(const pestle_node_t* n, const pestle_block_t* block,
                          const uint8_t* flags) {
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    const pestle_node_t* source = pestle_node_operand(n, i)->node;
    if (source && source->block == block && flags[source->scratch]) return true;
  }
  for (uint32_t r = 0; r < n->region_count; ++r) {
    const pestle_region_t* region = n->regions[r];
    for (pestle_node_t* m = NULL; (m = pestle_region_next(region, m));) {
      for (uint32_t i = 0; i < m->operand_count; ++i) {
        const pestle_node_t* source = pestle_node_operand(m, i)->node;
        if (source && source->block == block && flags[source->scratch])
          return true;
      }
    }
  }
  return false;
}

// Whether what needs |a| before |b|, which does not, may wait until behind |b|: the
// flagged nodes.
static bool find_waiting(const pestle_node_t* a, const pestle_node_t* b,
                         uint8_t* flags) {
  const pestle_block_t* block = a->block;
  flags[a->scratch] = 1;
  for (pestle_node_t* n = a->next; n != b; n = n->next) {
    if (!needs_flagged(n, block, flags)) continue;
    flags[n->scratch] = 1;
    if (pestle_node_has_effect(n) || pestle_pass_has_bodies(n) ||
        pestle_pass_is_collective(n)) {
      return false;
    }
  }
  return !needs_flagged(b, block, flags);
}

static void let_wait(pestle_node_t* a, pestle_node_t* b, const uint8_t* flags) {
  pestle_node_t* behind = b->next;
  for (pestle_node_t *n = a->next, *next; n != b; n = next) {
    next = n->next;
    if (flags[n->scratch]) pestle_node_move(n, behind);
  }
}

static pestle_status_t merge(pestle_pass_context_t* ctx, pestle_node_t* a,
                             pestle_node_t* b, pestle_node_t* place,
                             pestle_node_t** out) {
  uint32_t count = a->operand_count + b->operand_count;
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(ctx->scratch, pestle_value_t*, count + 1);
  if (!operands) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = i < a->operand_count
                      ? pestle_node_operand(a, i)
                      : pestle_node_operand(b, i - a->operand_count);
  }
  pestle_formula_t f = pestle_formula_before(place);
  pestle_region_t* region =
      pestle_f_region(&f, op_of(a), operands[0]->type->dtype);
  if (!region) return f.status;
  *out = pestle_f_node(&f, &(pestle_node_spec_t){.op = PESTLE_OP_ALL_REDUCE,
                                                 .operands = operands,
                                                 .operand_count = count,
                                                 .attrs = a->attrs,
                                                 .attr_count = a->attr_count,
                                                 .regions = &region,
                                                 .region_count = 1,
                                                 .share_elements = true});
  if (!*out) return f.status;
  (*out)->scratch = place->scratch;
  for (uint32_t i = 0; i < count; ++i) {
    pestle_value_t* old = i < a->operand_count
                              ? &a->results[i]
                              : &b->results[i - a->operand_count];
    (*out)->results[i].name = old->name;
    pestle_value_replace_all_uses(old, &(*out)->results[i]);
  }
  pestle_node_erase(a);
  pestle_node_erase(b);
  return NULL;
}

typedef struct combine_t {
  pestle_pass_context_t* ctx;
  bool* changed;
  size_t late_bytes;  // together at most, where some wait for others
} combine_t;

static size_t find_late_bytes(const pestle_block_t* block) {
  enum { LEAST = 1 << 20, MOST = 8 << 20, SHARE = 10 };
  size_t all = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next)
    all += n->op == PESTLE_OP_ALL_REDUCE ? bytes_of(n) : 0;
  all /= SHARE;
  return all < LEAST ? LEAST : all > MOST ? MOST : all;
}

// Puts |n| into the bucket, if it can be.
static pestle_status_t try_bucket(combine_t* c, bucket_t* bucket,
                                  pestle_node_t* n, uint64_t count,
                                  bool* merged) {
  pestle_node_t* a = bucket->node;
  size_t bytes = bytes_of(n);
  if (!fit(a, n)) return NULL;
  pestle_block_t* block = n->block;
  bool early = is_ready(n, a->scratch);
  size_t most = work_between(a, n) ? c->late_bytes : MOST_BYTES;
  if (bucket->bytes + bytes > most) return NULL;
  if (!early) {
    uint8_t* flags = pestle_arena_alloc_zero(c->ctx->scratch, count + 1, 1);
    if (!flags) return PESTLE_OOM();
    if (!find_waiting(a, n, flags)) return NULL;
    let_wait(a, n, flags);
  }
  PESTLE_TRY(merge(c->ctx, a, n, early ? a : n, &bucket->node));
  bucket->bytes += bytes;
  (void)number(block);
  *merged = *c->changed = true;
  return NULL;
}

static pestle_status_t combine_block(void* user, pestle_module_t* module,
                                     pestle_block_t* block) {
  combine_t* c = user;
  bucket_t buckets[MOST_BUCKETS];
  size_t count = 0;
  (void)module;
  uint64_t nodes = number(block);
  c->late_bytes = find_late_bytes(block);
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_ALL_REDUCE) continue;
    size_t bytes = bytes_of(n);
    bool merged = false;
    for (size_t i = 0; i < count && !merged; ++i)
      PESTLE_TRY(try_bucket(c, &buckets[i], n, nodes, &merged));
    if (!merged && count < MOST_BUCKETS)
      buckets[count++] = (bucket_t){n, bytes};
  }
  return NULL;
}

pestle_status_t partition_combine(pestle_pass_context_t* ctx,
                                  pestle_module_t* module, bool* out_changed) {
  combine_t c = {.ctx = ctx, .changed = out_changed};
  return pestle_pass_each_block(module, combine_block, &c);
}
