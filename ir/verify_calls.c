// SPDX-License-Identifier: Apache-2.0
// Functions call each other without cycles: a graph has no recursion.
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ir/internal.h"

enum { OPEN = 1, DONE = 2 };  // 0: not visited

typedef struct visit_t {
  const pestle_function_t* function;
  const pestle_node_t* node;  // the last one looked at
} visit_t;

typedef struct search_t {
  pestle_map_t functions;  // name -> function
  pestle_map_t states;     // function -> OPEN or DONE
  PESTLE_VEC(visit_t) stack;
  const pestle_node_t* cycle;
} search_t;

static pestle_status_t open_function(search_t* s,
                                     const pestle_function_t* function) {
  visit_t visit = {.function = function};
  bool kept = pestle_map_set_u64(&s->states, (uintptr_t)function, OPEN) &&
              pestle_vec_push(&s->stack, visit);
  return kept ? NULL : PESTLE_OOM();
}

static uint64_t state_of(const search_t* s, const pestle_function_t* function) {
  pestle_map_value_t* slot =
      pestle_map_find_u64(&s->states, (uintptr_t)function);
  return slot ? slot->u64 : 0;
}

// Looks at the callee of |call|: a new one is gone into, an open one is a
// cycle. What does not exist is for the op's rule to say.
static pestle_status_t follow(search_t* s, const pestle_node_t* call) {
  const char* name = PESTLE_NODE_STR(call, callee);
  pestle_map_value_t* slot = pestle_map_find(&s->functions, name, strlen(name));
  if (!slot) return NULL;
  const pestle_function_t* callee = slot->ptr;
  uint64_t state = state_of(s, callee);
  if (state == OPEN) s->cycle = call;
  return state == 0 ? open_function(s, callee) : NULL;
}

static pestle_status_t search_from(search_t* s, const pestle_function_t* root) {
  if (state_of(s, root)) return NULL;
  PESTLE_TRY(open_function(s, root));
  while (s->stack.size && !s->cycle) {
    visit_t* top = &pestle_vec_last(&s->stack);
    top->node = pestle_region_next(top->function->body, top->node);
    if (top->node) {
      if (top->node->op == PESTLE_OP_CALL) PESTLE_TRY(follow(s, top->node));
      continue;
    }
    if (!pestle_map_set_u64(&s->states, (uintptr_t)top->function, DONE)) {
      return PESTLE_OOM();
    }
    (void)pestle_vec_pop(&s->stack);
  }
  return NULL;
}

static pestle_status_t search(search_t* s, const pestle_module_t* module) {
  for (pestle_function_t* f = module->first; f; f = f->next) {
    if (!pestle_map_set_str_ptr(&s->functions, pestle_str(f->name), f)) {
      return PESTLE_OOM();
    }
  }
  for (const pestle_function_t* f = module->first; f && !s->cycle;
       f = f->next) {
    PESTLE_TRY(search_from(s, f));
  }
  return NULL;
}

pestle_status_t pestle_find_call_cycle(const pestle_module_t* module,
                                       const pestle_node_t** out_call) {
  search_t s = {.cycle = NULL};
  pestle_allocator_t allocator = module->arena.allocator;
  pestle_map_init(allocator, &s.functions);
  pestle_map_init(allocator, &s.states);
  pestle_vec_init(&s.stack, allocator);
  pestle_status_t status = search(&s, module);
  pestle_map_deinit(&s.functions);
  pestle_map_deinit(&s.states);
  pestle_vec_deinit(&s.stack);
  *out_call = s.cycle;
  return status;
}
