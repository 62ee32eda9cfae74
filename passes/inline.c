// SPDX-License-Identifier: Apache-2.0
// Replaces every func.call of the entry function by the body of what it calls,
// until none is left, then drops the other functions. Recursion is an error: a
// graph is finite; so is what writes out to very many more ops than it has.
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
  size_t budget;  // how many ops copies may still add
  bool changed;
} inliner_t;

// Functions that each call another twice are 2^n ops in a few lines. A module
// whose functions are called a few times each stays far below this.
static size_t budget_of(const pestle_module_t* module) {
  size_t budget = (size_t)1 << 18;
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n)))
      budget += 4;
  }
  return budget;
}

static pestle_status_t spend(inliner_t* inliner, const pestle_node_t* call,
                             const pestle_function_t* callee) {
  pestle_node_t* n = NULL;
  while ((n = pestle_region_next(callee->body, n))) {
    if (inliner->budget--) continue;
    inliner->budget = 0;
    return pestle_node_error(call, PESTLE_STATUS_UNSUPPORTED,
                             "calls of calls make too many ops when '%s' is "
                             "written out",
                             callee->name);
  }
  return NULL;
}

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

// The body goes in as it was read: the calls that it makes are met next.
static pestle_status_t inline_call(inliner_t* inliner, pestle_node_t* call) {
  const char* name = PESTLE_NODE_STR(call, callee);
  pestle_function_t* callee =
      pestle_module_find_function(inliner->module, name);
  if (!callee) {
    return pestle_node_error(call, PESTLE_STATUS_MALFORMED,
                             "there is no function '%s'", name);
  }
  PESTLE_TRY(spend(inliner, call, callee));
  pestle_copier_t copier;
  pestle_copier_init(inliner->allocator, pestle_builder_before(call), &copier);
  pestle_status_t status = inline_with(&copier, call, callee->body->block);
  pestle_copier_deinit(&copier);
  inliner->changed = true;
  return status;
}

static pestle_status_t inline_all(inliner_t* inliner,
                                  const pestle_region_t* body) {
  for (pestle_node_t* n = body->block->first; n;) {
    if (n->op != PESTLE_OP_CALL) {
      n = pestle_region_next(body, n);
      continue;
    }
    pestle_node_t* before = n->prev;
    const pestle_block_t* block = n->block;
    PESTLE_TRY(inline_call(inliner, n));
    n = before ? before->next : block->first;
  }
  return NULL;
}

static pestle_status_t check_recursion(const inliner_t* inliner) {
  const pestle_node_t* call;
  PESTLE_TRY(pestle_find_call_cycle(inliner->module, &call));
  if (!call) return NULL;
  return pestle_node_error(call, PESTLE_STATUS_UNSUPPORTED,
                           "function '%s' calls itself",
                           PESTLE_NODE_STR(call, callee));
}

static void drop_others(inliner_t* inliner, const pestle_function_t* entry) {
  pestle_module_t* module = inliner->module;
  for (pestle_function_t *f = module->first, *next; f; f = next) {
    next = f->next;
    if (f == entry) continue;
    pestle_module_remove_function(f);
    inliner->changed = true;
  }
}

pestle_status_t pestle_pass_inline(pestle_pass_context_t* ctx,
                                   pestle_module_t* module, bool* out_changed) {
  inliner_t inliner = {.module = module,
                       .allocator = pestle_context_allocator(ctx->context),
                       .budget = budget_of(module)};
  const pestle_function_t* entry = pestle_module_entry(module);
  *out_changed = false;
  if (!entry) return NULL;
  pestle_status_t status = check_recursion(&inliner);
  if (!status) status = inline_all(&inliner, entry->body);
  if (!status) drop_others(&inliner, entry);
  *out_changed = inliner.changed;
  return status;
}
