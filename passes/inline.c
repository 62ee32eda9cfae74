// SPDX-License-Identifier: Apache-2.0
// Replaces every func.call by the body of what it calls, then drops the
// functions that are left over. Recursion is an error: a graph is finite.
//
//   func.func private @double(%a) { %0 = add %a, %a; return %0 }
//   %1 = func.call @double(%x)              ->   %1 = add %x, %x
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "passes/util.h"

typedef struct inliner_t {
  pestle_module_t* module;
  pestle_allocator_t allocator;
  bool changed;
} inliner_t;

typedef PESTLE_VEC(pestle_function_t*) functions_t;

// --- Callees before callers ---

// Marks of a function while the call graph is walked.
enum { UNSEEN, OPEN, CLOSED };

typedef struct walk_t {
  inliner_t* inliner;
  pestle_map_t marks;  // of pestle_function_t*
  functions_t* order;
} walk_t;

static pestle_status_t visit(walk_t* walk, pestle_function_t* function,
                             const pestle_node_t* call, int depth);

static pestle_status_t visit_block(walk_t* walk, const pestle_block_t* block,
                                   int depth) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    for (uint32_t r = 0; r < n->region_count; ++r) {
      PESTLE_TRY(visit_block(walk, pestle_node_body(n, r), depth));
    }
    if (n->op != PESTLE_OP_CALL) continue;
    const char* name = PESTLE_NODE_STR(n, callee);
    pestle_function_t* callee =
        pestle_module_find_function(walk->inliner->module, name);
    if (!callee) {
      return pestle_node_error(n, PESTLE_STATUS_MALFORMED,
                               "there is no function '%s'", name);
    }
    PESTLE_TRY(visit(walk, callee, n, depth + 1));
  }
  return NULL;
}

static pestle_status_t visit(walk_t* walk, pestle_function_t* function,
                             const pestle_node_t* call, int depth) {
  const pestle_map_value_t* mark =
      pestle_map_find_u64(&walk->marks, (uintptr_t)function);
  if (mark && mark->u64 == CLOSED) return NULL;
  if (mark && mark->u64 == OPEN) {
    return pestle_node_error(call, PESTLE_STATUS_UNSUPPORTED,
                             "function '%s' calls itself", function->name);
  }
  if (depth > 256) {
    return pestle_node_error(call, PESTLE_STATUS_UNSUPPORTED,
                             "calls are nested more than 256 deep");
  }
  if (!pestle_map_set_u64(&walk->marks, (uintptr_t)function, OPEN)) {
    return PESTLE_OOM();
  }
  PESTLE_TRY(visit_block(walk, function->body->block, depth));
  if (!pestle_map_set_u64(&walk->marks, (uintptr_t)function, CLOSED) ||
      !pestle_vec_push(walk->order, function)) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t order_functions(inliner_t* inliner, functions_t* order) {
  walk_t walk = {.inliner = inliner, .order = order};
  pestle_map_init(inliner->allocator, &walk.marks);
  pestle_status_t status = NULL;
  for (pestle_function_t* f = inliner->module->first; f && !status;
       f = f->next) {
    status = visit(&walk, f, NULL, 0);
  }
  pestle_map_deinit(&walk.marks);
  return status;
}

// --- Inlining ---

static pestle_status_t inline_with(pestle_copier_t* copier, pestle_node_t* call,
                                   const pestle_block_t* body) {
  for (uint32_t i = 0; i < call->operand_count; ++i) {
    PESTLE_TRY(pestle_copier_set(copier, body->arguments[i],
                                 pestle_node_operand(call, i)));
  }
  PESTLE_TRY(pestle_copier_block(copier, body));
  for (uint32_t i = 0; i < call->result_count; ++i) {
    pestle_value_t* value =
        pestle_copier_get(copier, pestle_node_operand(body->last, i));
    pestle_value_replace_all_uses(pestle_node_result(call, i), value);
  }
  pestle_node_erase(call);
  return NULL;
}

static pestle_status_t inline_call(inliner_t* inliner, pestle_node_t* call) {
  pestle_function_t* callee = pestle_module_find_function(
      inliner->module, PESTLE_NODE_STR(call, callee));
  pestle_copier_t copier;
  pestle_copier_init(inliner->allocator, pestle_builder_before(call), &copier);
  pestle_status_t status = inline_with(&copier, call, callee->body->block);
  pestle_copier_deinit(&copier);
  inliner->changed = true;
  return status;
}

static pestle_status_t inline_block(inliner_t* inliner, pestle_block_t* block) {
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      PESTLE_TRY(inline_block(inliner, pestle_node_body(n, r)));
    }
    if (n->op == PESTLE_OP_CALL) PESTLE_TRY(inline_call(inliner, n));
  }
  return NULL;
}

static void drop_others(inliner_t* inliner) {
  pestle_module_t* module = inliner->module;
  pestle_function_t* entry = pestle_module_entry(module);
  if (!entry || (module->first == entry && !entry->next)) return;
  for (pestle_function_t *f = module->first, *next; f; f = next) {
    next = f->next;
    if (f != entry) pestle_module_remove_function(f);
  }
  inliner->changed = true;
}

pestle_status_t pestle_pass_inline(pestle_pass_context_t* ctx,
                                   pestle_module_t* module, bool* out_changed) {
  inliner_t inliner = {.module = module,
                       .allocator = pestle_context_allocator(ctx->context)};
  functions_t order;
  pestle_vec_init(&order, inliner.allocator);
  pestle_status_t status = order_functions(&inliner, &order);
  for (size_t i = 0; i < order.size && !status; ++i) {
    status = inline_block(&inliner, order.data[i]->body->block);
  }
  if (!status) drop_others(&inliner);
  pestle_vec_deinit(&order);
  *out_changed = inliner.changed;
  return status;
}
