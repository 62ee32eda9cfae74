// SPDX-License-Identifier: Apache-2.0
// Bodies of composites: copies of their decompositions, which are functions, or our
// own where the name is one of CHLO's (chlo.h).
// Those come in any order, so bodies are made when all are there.
#include "base/map.h"
#include "base/mem.h"
#include "ir/again.h"
#include "ir/chlo.h"
#include "ir/copy.h"
#include "ir/generic.h"

// Composites are nested no deeper.
enum { MAX_DEPTH = 256 };

enum { UNSEEN, OPEN, DONE };

// The composites of one function.
typedef struct group_t {
  size_t first, count;
  int state;
} group_t;

typedef struct attacher_t {
  pestle_module_t* module;
  pestle_allocator_t allocator;
  const pestle_generic_composite_t* composites;
  size_t count;
  const pestle_generic_composite_t* at;  // what a failure is about
  pestle_arena_t arena;
  pestle_map_t groups;  // function -> group_t*
  size_t op_count;      // copied so far
} attacher_t;

static const pestle_function_t* function_around(const pestle_node_t* node) {
  const pestle_region_t* region = node->block->region;
  while (region->owner)
    region = region->owner->block->region;
  return region->function;
}

// A function's body is read at once, so its composites are neighbours.
static pestle_status_t group(attacher_t* a) {
  const pestle_function_t* last = NULL;
  group_t* g = NULL;
  for (size_t i = 0; i < a->count; ++i) {
    const pestle_function_t* f = function_around(a->composites[i].node);
    if (f == last) {
      ++g->count;
      continue;
    }
    last = f;
    g = PESTLE_ARENA_NEW(&a->arena, group_t);
    if (!g || !pestle_map_set_u64_ptr(&a->groups, (uintptr_t)f, g)) {
      return PESTLE_OOM();
    }
    *g = (group_t){.first = i, .count = 1};
  }
  return NULL;
}

static pestle_status_t find_decomposition(const attacher_t* a,
                                          const pestle_generic_composite_t* c,
                                          pestle_function_t** out) {
  *out = pestle_module_find_function(a->module, c->decomposition);
  if (*out) return NULL;
  return PESTLE_ERROR(MALFORMED, "there is no function '%.60s'",
                      c->decomposition);
}

static pestle_status_t count_ops(attacher_t* a, const pestle_region_t* body) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(body, n)))
    ++a->op_count;
  if (a->op_count <= PESTLE_MOST_COPIED_OPS) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "the bodies of composites have more than %d ops in all",
                      PESTLE_MOST_COPIED_OPS);
}

// |node| again with |region|, in its place.
static pestle_status_t replace(pestle_node_t* node, pestle_region_t* region) {
  pestle_builder_t b = pestle_builder_before(node);
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .regions = &region,
                             .region_count = 1};
  PESTLE_TRY(pestle_node_result_types(b.module, node, &spec));
  pestle_value_t** operands = PESTLE_ARENA_ARRAY(
      &b.module->arena, pestle_value_t*, node->operand_count);
  if (!operands) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_node_operand(node, i);
  spec.operands = operands;
  spec.operand_count = node->operand_count;
  pestle_node_t* made;
  PESTLE_TRY(pestle_node_create(&b, &spec, &made));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    made->results[i].name = node->results[i].name;
    pestle_value_replace_all_uses(&node->results[i], &made->results[i]);
  }
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t attach(attacher_t* a,
                              const pestle_generic_composite_t* c,
                              const pestle_function_t* f) {
  pestle_region_t* region = NULL;
  PESTLE_TRY(pestle_chlo_body(c->node, &region));
  if (region) return replace(c->node, region);
  PESTLE_TRY(count_ops(a, f->body));
  pestle_copier_t copier;
  pestle_copier_init(a->allocator, (pestle_builder_t){.module = a->module},
                     &copier);
  pestle_status_t status = pestle_copier_region(&copier, f->body, &region);
  pestle_copier_deinit(&copier);
  if (!status) status = replace(c->node, region);
  return status;
}

// Gives the composites of |f| their bodies, those in the bodies first.
static pestle_status_t attach_in(attacher_t* a, const pestle_function_t* f,
                                 int depth) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&a->groups, (uintptr_t)f);
  group_t* g = found ? found->ptr : NULL;
  if (!g || g->state == DONE) return NULL;
  g->state = OPEN;
  for (size_t i = 0; i < g->count; ++i) {
    const pestle_generic_composite_t* c = &a->composites[g->first + i];
    pestle_function_t* body;
    a->at = c;
    PESTLE_TRY(find_decomposition(a, c, &body));
    const pestle_map_value_t* inner =
        pestle_map_find_u64(&a->groups, (uintptr_t)body);
    if (inner && ((const group_t*)inner->ptr)->state == OPEN) {
      return PESTLE_ERROR(MALFORMED, "'%.60s' is its own decomposition",
                          c->decomposition);
    }
    if (depth >= MAX_DEPTH) {
      return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "composites are nested more than %d deep", MAX_DEPTH);
    }
    PESTLE_TRY(attach_in(a, body, depth + 1));
    a->at = c;
    PESTLE_TRY(attach(a, c, body));
  }
  g->state = DONE;
  return NULL;
}

// --- Functions that were decompositions only ---

static pestle_status_t note_calls(const pestle_module_t* module,
                                  pestle_map_t* called) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n))) {
      if (n->op != PESTLE_OP_CALL) continue;
      pestle_str_t name = pestle_str(PESTLE_NODE_STR(n, callee));
      if (!pestle_map_set_str(called, name, 1)) return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t drop_decompositions(const attacher_t* a) {
  pestle_map_t called;
  pestle_map_init(a->allocator, &called);
  pestle_status_t status = note_calls(a->module, &called);
  for (size_t i = 0; i < a->count && !status; ++i) {
    const char* name = a->composites[i].decomposition;
    pestle_function_t* f = pestle_module_find_function(a->module, name);
    if (!f || !f->is_private || pestle_map_find_str(&called, pestle_str(name)))
      continue;
    pestle_module_remove_function(f);
  }
  pestle_map_deinit(&called);
  return status;
}

pestle_status_t pestle_generic_attach_bodies(
    pestle_module_t* module, const pestle_generic_composite_t* composites,
    size_t count, const pestle_generic_composite_t** out_at) {
  *out_at = NULL;
  if (!count) return NULL;
  attacher_t a = {.module = module,
                  .allocator = module->arena.allocator,
                  .composites = composites,
                  .count = count};
  pestle_arena_init(a.allocator, &a.arena);
  pestle_map_init(a.allocator, &a.groups);
  pestle_status_t status = group(&a);
  for (pestle_function_t* f = module->first; f && !status; f = f->next)
    status = attach_in(&a, f, 0);
  pestle_map_deinit(&a.groups);
  pestle_arena_deinit(&a.arena);
  if (status) *out_at = a.at;
  return status ? status : drop_decompositions(&a);
}
