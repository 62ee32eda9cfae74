// SPDX-License-Identifier: Apache-2.0
// Elementwise values that are read behind a later product are computed again there, where
// that keeps fewer bytes. A gradient of GELU reads what its exponential and its error
// function gave, which the product in front computes anyway: kept from there on, they are
// four arrays a layer. Computed again from the product's result they are one.
//
//   %0 = dot %x, %w                      %0 = dot %x, %w
//   %1 = exponential %0                  %1 = exponential %0
//   %2 = dot %1, %v               ->     %2 = dot %1, %v
//     ...                                  ...
//   %8 = multiply %ct, %1                %6 = optimization_barrier %0
//   %9 = multiply %8, %0                 %7 = exponential %6
//                                        %8 = multiply %ct, %7
//                                        %9 = multiply %8, %6
//
// The *root* of an elementwise value is the one value of its size that it is computed from;
// beside it there are only splats, broadcasts and what else takes little room. A *stage* of
// a value is how many contractions, windows and ops with kernels of their own lie on the
// way to it, so a reader of a later stage is never in the kernel that makes the value.
// The barrier keeps the fuse pass from putting the copies back to the first ones; it moves
// no element. Copies have the bits of their sources, so strict numerics has them too.
#include <stdlib.h>

#include "passes/fuse.h"

enum {
  // Less is not worth a copy of the ops.
  LEAST_BYTES = 256 << 10,
  // Ops that are copied for one root's readers of a stage, and how often they are.
  MOST_OPS = 32,
  MOST_COPIES = 4,
  // Elements that one of a broadcast's operand becomes, at least, to be no array of its own.
  LEAST_REPEAT = 8,
  MAX_VIEWS = 4,
};

// By node->scratch. One entry more is for copies.
typedef struct info_t {
  uint32_t stage;  // of what it reads
  uint32_t mark;   // of the last root that counted it
  pestle_value_t*
      root;  // of its result; the result itself where there is no other
} info_t;

// A use that may read a copy.
typedef struct late_t {
  pestle_node_t* user;
  uint32_t operand;
  pestle_value_t *value, *root;
  pestle_value_t* kept;  // behind |root|: what the copies are made from
  uint32_t root_place, stage;
  bool
      is_view;  // it is in another kernel than readers that compute, so its copy is its own
} late_t;

typedef struct recompute_t {
  pestle_pass_context_t* ctx;
  pestle_allocator_t allocator;
  pestle_block_t* block;
  info_t* infos;
  uint32_t count, mark;
  PESTLE_VEC(late_t) late;
  bool changed;
} recompute_t;

// --- Stages and roots ---

static bool is_here(const recompute_t* r, const pestle_value_t* v) {
  return v->node && v->node->block == r->block;
}

static const info_t* info_of(const recompute_t* r, const pestle_node_t* node) {
  return &r->infos[node->scratch];
}

static bool ends_stage(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_OPTIMIZATION_BARRIER) return false;
  pestle_fuse_kind_t kind = pestle_fuse_kind_of(node);
  return kind == PESTLE_FUSE_KIND_DOT || kind == PESTLE_FUSE_KIND_WINDOW ||
         kind == PESTLE_FUSE_KIND_ALONE;
}

static uint32_t stage_of(const recompute_t* r, const pestle_value_t* v) {
  if (!is_here(r, v)) return 0;
  return info_of(r, v->node)->stage + (ends_stage(v->node) ? 1 : 0);
}

// Captures of regions are operands too.
static uint32_t find_stage(const recompute_t* r, const pestle_node_t* node) {
  uint32_t stage = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    uint32_t s = stage_of(r, pestle_node_operand(node, i));
    if (s > stage) stage = s;
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    const pestle_block_t* body = pestle_node_body(node, i);
    for (const pestle_node_t* n = body->first; n; n = n->next) {
      uint32_t s = find_stage(r, n);
      if (s > stage) stage = s;
    }
  }
  return stage;
}

static bool is_light(const pestle_node_t* node) {
  return node->result_count == 1 && pestle_fuse_is_elementwise(node);
}

// Whether an operand takes little room beside |count| elements.
static bool is_small(const pestle_value_t* v, int64_t count) {
  if (pestle_value_is_stored(v)) return true;
  if (pestle_type_count(v->type) * LEAST_REPEAT <= count) return true;
  const pestle_node_t* n = v->node;
  if (n && n->op == PESTLE_OP_IOTA) return true;
  return n && n->op == PESTLE_OP_BROADCAST_IN_DIM &&
         pestle_type_count(pestle_node_operand(n, 0)->type) * LEAST_REPEAT <=
             count;
}

static pestle_value_t* root_of(const recompute_t* r, pestle_value_t* v) {
  return is_here(r, v) && v->node->result_count == 1 ? info_of(r, v->node)->root
                                                     : v;
}

static pestle_value_t* find_root(const recompute_t* r, pestle_node_t* node) {
  pestle_value_t *root = NULL, *self = &node->results[0];
  if (!is_light(node)) return self;
  int64_t count = pestle_type_count(self->type);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* v = pestle_node_operand(node, i);
    if (is_small(v, count)) continue;
    pestle_value_t* from = root_of(r, v);
    if (root && root != from) return self;
    root = from;
  }
  return root ? root : self;
}

// --- Uses ---

static bool is_view(const pestle_node_t* node) {
  return node->op == PESTLE_OP_TRANSPOSE || node->op == PESTLE_OP_RESHAPE;
}

// Whether each reader of |node|, an elementwise op or a view, is of a later stage than
// |stage|.
static bool is_late(const recompute_t* r, const pestle_node_t* node,
                    uint32_t stage, int depth) {
  if (node->block != r->block) return false;
  if (is_light(node)) return info_of(r, node)->stage > stage;
  if (!is_view(node) || !depth || !node->results[0].uses) return false;
  for (const pestle_use_t* u = node->results[0].uses; u; u = u->next) {
    if (u->user->block != r->block) return false;
    bool late = is_view(u->user) || is_light(u->user)
                    ? is_late(r, u->user, stage, depth - 1)
                    : info_of(r, u->user)->stage > stage &&
                          !pestle_pass_is_terminator(u->user);
    if (!late) return false;
  }
  return true;
}

// Whether |use| keeps its value for a later stage and cannot read a copy.
static bool keeps(const recompute_t* r, const pestle_use_t* use) {
  if (use->user->block != r->block || pestle_pass_is_terminator(use->user)) {
    return true;
  }
  uint32_t stage = stage_of(r, use->value);
  if (is_late(r, use->user, stage, MAX_VIEWS)) return false;
  if (is_view(use->user)) {
    // A view with readers of both kinds.
    for (const pestle_use_t* u = use->user->results[0].uses; u; u = u->next)
      if (u->user->block != r->block || info_of(r, u->user)->stage > stage)
        return true;
    return false;
  }
  return info_of(r, use->user)->stage > stage;
}

static bool is_kept(const recompute_t* r, const pestle_value_t* v) {
  for (const pestle_use_t* u = v->uses; u; u = u->next)
    if (keeps(r, u)) return true;
  return false;
}

static bool has_late_use(const recompute_t* r, const pestle_value_t* v) {
  uint32_t stage = stage_of(r, v);
  for (const pestle_use_t* u = v->uses; u; u = u->next)
    if (is_late(r, u->user, stage, MAX_VIEWS)) return true;
  return false;
}

// The value behind |root| that all of its readers read it through: a product and its bias.
static pestle_value_t* advance(const recompute_t* r, pestle_value_t* root) {
  pestle_value_t* at = root;
  while (at->node && at->use_count == 1) {
    pestle_node_t* user = at->uses->user;
    if (user->block != r->block || !is_light(user) ||
        info_of(r, user)->root != root ||
        pestle_type_bytes(user->results[0].type) >
            pestle_type_bytes(at->type)) {
      break;
    }
    at = &user->results[0];
  }
  return at;
}

// --- What is worth it ---

// Bytes that |kept| takes besides, where nobody keeps it yet.
static int64_t cost_of(const recompute_t* r, const pestle_value_t* kept) {
  if (!is_here(r, kept) || is_kept(r, kept) || has_late_use(r, kept)) return 0;
  return (int64_t)pestle_type_bytes(kept->type);
}

// Whether |v| is computed from |late|->root by ops that may be copied.
static bool is_copied(const recompute_t* r, const late_t* late,
                      const pestle_value_t* v) {
  return v != late->kept && v != late->root && is_here(r, v) &&
         is_light(v->node) && info_of(r, v->node)->root == late->root;
}

// Adds to |*count| the ops that make |v| and have not been counted for this root.
static void count_ops(recompute_t* r, const late_t* late,
                      const pestle_value_t* v, uint32_t* count) {
  if (!is_copied(r, late, v) || *count > MOST_OPS) return;
  info_t* info = &r->infos[v->node->scratch];
  if (info->mark == r->mark) return;
  info->mark = r->mark;
  ++*count;
  for (uint32_t i = 0; i < v->node->operand_count; ++i)
    count_ops(r, late, pestle_node_operand(v->node, i), count);
}

static bool is_same_copy(const late_t* a, const late_t* b) {
  return a->root == b->root && a->stage == b->stage && !a->is_view &&
         !b->is_view;
}

// Whether the uses [begin, end) of the values of one root, in order, are worth copies.
static bool is_worth(recompute_t* r, size_t begin, size_t end) {
  const late_t* uses = r->late.data;
  int64_t saved = 0;
  uint32_t ops = 0, copies = 0;
  ++r->mark;
  for (size_t i = begin; i < end; ++i) {
    copies += i == begin || !is_same_copy(&uses[i - 1], &uses[i]);
    count_ops(r, &uses[i], uses[i].value, &ops);
    bool seen = false;
    for (size_t j = begin; j < i && !seen; ++j)
      seen = uses[j].value == uses[i].value;
    if (!seen) saved += (int64_t)pestle_type_bytes(uses[i].value->type);
    if (ops > MOST_OPS || copies > MOST_COPIES) return false;
  }
  int64_t cost = cost_of(r, uses[begin].kept);
  return saved - cost >= LEAST_BYTES && saved - cost >= saved / 4;
}

// --- Which uses ---

static uint32_t place_of(const recompute_t* r, const pestle_value_t* v) {
  return is_here(r, v) ? (uint32_t)v->node->scratch : r->count + v->index;
}

static bool push_use(recompute_t* r, pestle_value_t* v,
                     const pestle_use_t* use) {
  late_t late = {.user = use->user,
                 .value = v,
                 .root = root_of(r, v),
                 .stage = info_of(r, use->user)->stage,
                 .is_view = is_view(use->user)};
  late.kept = advance(r, late.root);
  late.root_place = place_of(r, late.root);
  if (late.kept == v) return true;
  for (; late.operand < use->user->operand_count; ++late.operand) {
    if (pestle_node_operand(use->user, late.operand) != v) continue;
    // An op that reads the value twice has two uses.
    bool seen = false;
    for (size_t i = r->late.size;
         i-- > 0 && r->late.data[i].value == v && !seen;)
      seen = r->late.data[i].user == use->user &&
             r->late.data[i].operand == late.operand;
    if (!seen) return pestle_vec_push(&r->late, late);
  }
  return true;
}

static pestle_status_t find_uses(recompute_t* r, pestle_node_t* node) {
  enum { MOST_USES = 32 };
  pestle_value_t* v = &node->results[0];
  if (!is_light(node) || root_of(r, v) == v || v->use_count > MOST_USES ||
      is_kept(r, v)) {
    return NULL;
  }
  uint32_t stage = stage_of(r, v);
  for (const pestle_use_t* u = v->uses; u; u = u->next) {
    if (!is_late(r, u->user, stage, MAX_VIEWS)) continue;
    if (!push_use(r, v, u)) return PESTLE_OOM();
  }
  return NULL;
}

static int compare(const void* x, const void* y) {
  const late_t *a = x, *b = y;
  if (a->root_place != b->root_place)
    return a->root_place < b->root_place ? -1 : 1;
  if (a->is_view != b->is_view) return a->is_view ? 1 : -1;
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  if (a->user->scratch != b->user->scratch)
    return a->user->scratch < b->user->scratch ? -1 : 1;
  return a->operand < b->operand ? -1 : a->operand > b->operand;
}

// --- Copies ---

static pestle_status_t copy(recompute_t* r, pestle_copier_t* copier,
                            const late_t* late, pestle_value_t* v) {
  if (!is_copied(r, late, v) || pestle_copier_get(copier, v) != v) return NULL;
  for (uint32_t i = 0; i < v->node->operand_count; ++i)
    PESTLE_TRY(copy(r, copier, late, pestle_node_operand(v->node, i)));
  pestle_node_t* made;
  PESTLE_TRY(pestle_copier_node(copier, v->node, &made));
  made->scratch = r->count;
  return NULL;
}

// The uses [begin, end), which read one copy of what is between it and the kept value.
static pestle_status_t replace(recompute_t* r, pestle_copier_t* copier,
                               size_t begin, size_t end) {
  late_t* first = &r->late.data[begin];
  pestle_value_t* kept = first->kept;
  pestle_node_t* barrier;
  PESTLE_TRY(pestle_node_create(
      &copier->builder,
      &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                            .operands = &kept,
                            .operand_count = 1},
      &barrier));
  barrier->scratch = r->count;
  PESTLE_TRY(pestle_copier_set(copier, kept, &barrier->results[0]));
  for (late_t* late = first; late < r->late.data + end; ++late) {
    PESTLE_TRY(copy(r, copier, late, late->value));
    pestle_node_set_operand(late->user, late->operand,
                            pestle_copier_get(copier, late->value));
  }
  r->changed = true;
  return NULL;
}

static pestle_status_t replace_uses(recompute_t* r, size_t begin, size_t end) {
  for (size_t i = begin, next; i < end; i = next) {
    for (next = i + 1; next < end; ++next)
      if (!is_same_copy(&r->late.data[i], &r->late.data[next])) break;
    pestle_copier_t copier;
    pestle_copier_init(r->allocator,
                       pestle_builder_before(r->late.data[i].user), &copier);
    pestle_status_t status = replace(r, &copier, i, next);
    pestle_copier_deinit(&copier);
    PESTLE_TRY(status);
  }
  return NULL;
}

// --- The pass ---

static pestle_status_t number(recompute_t* r, bool* out_skips) {
  r->count = r->mark = 0;
  *out_skips = true;
  for (pestle_node_t* n = r->block->first; n; n = n->next) {
    // Where a run decides extents, a copy would have to end where its readers do.
    if (n->op == PESTLE_OP_EXTENT) return NULL;
    n->scratch = r->count++;
  }
  r->infos = PESTLE_ARENA_ARRAY(r->ctx->scratch, info_t, r->count + 1);
  if (!r->infos) return PESTLE_OOM();
  for (pestle_node_t* n = r->block->first; n; n = n->next) {
    info_t* info = &r->infos[n->scratch];
    *info = (info_t){.stage = find_stage(r, n)};
    if (n->result_count == 1) info->root = find_root(r, n);
    if (ends_stage(n)) *out_skips = false;
  }
  r->infos[r->count] = (info_t){0};
  return NULL;
}

static pestle_status_t run(recompute_t* r) {
  bool skips;
  PESTLE_TRY(number(r, &skips));
  if (skips) return NULL;
  for (pestle_node_t* n = r->block->first; n; n = n->next)
    PESTLE_TRY(find_uses(r, n));
  size_t count = r->late.size;
  if (count) qsort(r->late.data, count, sizeof(*r->late.data), compare);
  size_t chosen = 0;
  // Chosen before any is replaced: a reader of a copy has no place of its own.
  for (size_t i = 0, next; i < count; i = next) {
    for (next = i + 1; next < count; ++next)
      if (r->late.data[next].root != r->late.data[i].root) break;
    if (!is_worth(r, i, next)) continue;
    for (size_t j = i; j < next; ++j)
      r->late.data[chosen++] = r->late.data[j];
  }
  for (size_t i = 0, next; i < chosen; i = next) {
    for (next = i + 1; next < chosen; ++next)
      if (r->late.data[next].root != r->late.data[i].root) break;
    PESTLE_TRY(replace_uses(r, i, next));
  }
  return NULL;
}

static pestle_status_t recompute_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  recompute_t* r = user;
  (void)module;
  pestle_arena_mark_t mark = pestle_arena_mark(r->ctx->scratch);
  r->block = block;
  pestle_vec_clear(&r->late);
  pestle_status_t status = run(r);
  pestle_arena_rewind(r->ctx->scratch, mark);
  return status;
}

pestle_status_t pestle_pass_recompute(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  recompute_t r = {.ctx = ctx,
                   .allocator = pestle_context_allocator(ctx->context)};
  pestle_vec_init(&r.late, r.allocator);
  pestle_status_t status = pestle_pass_each_block(module, recompute_block, &r);
  pestle_vec_deinit(&r.late);
  *out_changed = r.changed;
  return status || !r.changed ? status
                              : pestle_pass_dce(ctx, module, out_changed);
}
