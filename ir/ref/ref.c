// SPDX-License-Identifier: Apache-2.0
// The entry points, the interpreter of regions and functions, and the ops of
// class CONTROL. A function is compiled once into numbered slots, since a
// module that is only read cannot carry marks of ours; nested regions share
// their function's slots, so a captured value is a slot like any other.
#include "ir/ref/ref.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ir/ref/ref_internal.h"

// Deeper nesting or longer call chains are not models.
enum { MAX_DEPTH = 200, MAX_CALLS = 200, NEVER_USED = -1 };

typedef struct slot_t {
  const void* data;
  void* owned;        // the heap block behind |data|, or NULL
  size_t size;        // bytes of the value
  uint64_t small[2];  // where a value of up to 16 bytes lives
  uint32_t depth;     // of the body that defines it
  uint32_t last_use;  // step of that body; UINT32_MAX: to its end
} slot_t;

typedef struct step_t {
  const pestle_node_t* node;
  uint32_t *operands, *results;  // slots
  const pestle_ref_body_t** bodies;
  const void** operand_data;
  void** result_data;
  uint32_t* dead;  // slots that nobody reads after this step
  uint32_t dead_count;
} step_t;

struct pestle_ref_body_t {
  step_t* steps;
  uint32_t step_count, argument_count, return_count;
  uint32_t *arguments, *returns;  // slots
  uint32_t* defined;              // slots of results, for the clean-up
  uint32_t defined_count;
  const pestle_type_t** return_types;
};

// One function (or the regions of one node) with the memory to run it once at a
// time; calls make one for each function, found again in the root's list.
struct pestle_ref_interp_t {
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pestle_map_t slot_of;  // value -> slot
  PESTLE_VEC(slot_t) slots;
  uint32_t now[MAX_DEPTH + 1];  // step being compiled at each depth
  const pestle_ref_body_t* body;
  const pestle_function_t* function;
  pestle_module_t* module;
  pestle_ref_interp_t *root, *next;
  pestle_ref_rank_t* rank;  // of the root
  uint32_t calls;           // of the root: functions that run now
  bool active;
};

static pestle_ref_fn_t op_function(pestle_op_t op) {
  static const pestle_ref_fn_t functions[PESTLE_OP_COUNT] = {
#define PESTLE_SCALAR(NAME, ...) [PESTLE_OP_##NAME] = pestle_ref_scalar,
#include "pestle/scalar.def"
#define PESTLE_OP_BEGIN(NAME, op, ...) [PESTLE_OP_##NAME] = pestle_ref_##op,
#include "pestle/ops.def"
  };
  return functions[op];
}

static pestle_status_t check_static(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count + node->result_count; ++i) {
    const pestle_type_t* type =
        i < node->operand_count ? node->operands[i].value->type
                                : node->results[i - node->operand_count].type;
    if (pestle_type_is_static(type)) continue;
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "cannot be evaluated: a dimension is not known");
  }
  return NULL;
}

// --- Slots ---

static pestle_status_t add_slot(pestle_ref_interp_t* interp,
                                const pestle_value_t* value, uint32_t depth,
                                uint32_t* out_slot) {
  *out_slot = (uint32_t)interp->slots.size;
  slot_t slot = {.size = pestle_type_bytes(value->type),
                 .depth = depth,
                 .last_use = interp->now[depth]};
  if (!pestle_vec_push(&interp->slots, slot) ||
      !pestle_map_set_u64(&interp->slot_of, (uintptr_t)value, *out_slot)) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t slot_memory(pestle_ref_interp_t* interp, slot_t* slot,
                                   void** out) {
  if (slot->size <= sizeof(slot->small)) {
    *out = slot->small;
  } else {
    slot->owned = pestle_alloc_aligned(interp->allocator, slot->size,
                                       PESTLE_BUFFER_ALIGNMENT);
    if (!slot->owned) return PESTLE_OOM();
    *out = slot->owned;
  }
  slot->data = *out;
  return NULL;
}

static void slot_clear(pestle_ref_interp_t* interp, slot_t* slot) {
  pestle_free_aligned(interp->allocator, slot->owned, slot->size,
                      PESTLE_BUFFER_ALIGNMENT);
  slot->owned = NULL;
}

// A constant needs no step when its data can be read where it is.
static bool constant_in_place(const pestle_elements_t* elements) {
  return !elements->splat || pestle_type_count(&elements->type) == 1;
}

// A value that no block here defines: only a constant can be known.
static pestle_status_t capture(pestle_ref_interp_t* interp,
                               const pestle_value_t* value,
                               const pestle_node_t* user, uint32_t* out_slot) {
  const pestle_elements_t* elements = pestle_value_constant(value);
  if (!elements) {
    return pestle_node_error(user, PESTLE_STATUS_UNSUPPORTED,
                             "cannot be evaluated alone: a region uses a value "
                             "from outside that is not a constant");
  }
  PESTLE_TRY(add_slot(interp, value, 0, out_slot));
  slot_t* slot = &interp->slots.data[*out_slot];
  slot->last_use = UINT32_MAX;
  if (constant_in_place(elements)) {
    slot->data = elements->data;
    return NULL;
  }
  // Not in the slot itself: slots still move while more are added.
  void* memory = pestle_arena_alloc(&interp->arena, slot->size, 16);
  if (!memory) return PESTLE_OOM();
  slot->data = memory;
  pestle_ref_fill(memory, pestle_dtype_size(elements->type.dtype),
                  (size_t)pestle_type_count(&elements->type), elements->data);
  return NULL;
}

// The slot that |user| reads, noting the read.
static pestle_status_t use_slot(pestle_ref_interp_t* interp,
                                const pestle_value_t* value,
                                const pestle_node_t* user, uint32_t* out_slot) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&interp->slot_of, (uintptr_t)value);
  if (!found) return capture(interp, value, user, out_slot);
  *out_slot = (uint32_t)found->u64;
  slot_t* slot = &interp->slots.data[*out_slot];
  if (slot->last_use != UINT32_MAX) slot->last_use = interp->now[slot->depth];
  return NULL;
}

// --- Compiling blocks into steps ---

static pestle_status_t compile_block(pestle_ref_interp_t* interp,
                                     const pestle_block_t* block,
                                     uint32_t depth,
                                     const pestle_ref_body_t** out_body);

static pestle_status_t compile_regions(pestle_ref_interp_t* interp,
                                       const pestle_node_t* node,
                                       uint32_t depth,
                                       const pestle_ref_body_t*** out_bodies) {
  *out_bodies = PESTLE_ARENA_ARRAY(&interp->arena, const pestle_ref_body_t*,
                                   node->region_count);
  if (!*out_bodies) return PESTLE_OOM();
  if (node->region_count && depth >= MAX_DEPTH) {
    return pestle_node_error(node, PESTLE_STATUS_RESOURCE_EXHAUSTED,
                             "regions are nested more than %d deep", MAX_DEPTH);
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    PESTLE_TRY(compile_block(interp, pestle_node_body(node, i), depth + 1,
                             &(*out_bodies)[i]));
  }
  return NULL;
}

static pestle_status_t compile_step(pestle_ref_interp_t* interp,
                                    const pestle_node_t* node, uint32_t depth,
                                    step_t* step) {
  pestle_arena_t* arena = &interp->arena;
  PESTLE_TRY(check_static(node));
  *step = (step_t){
      .node = node,
      .operands = PESTLE_ARENA_ARRAY(arena, uint32_t, node->operand_count),
      .results = PESTLE_ARENA_ARRAY(arena, uint32_t, node->result_count),
      .operand_data =
          PESTLE_ARENA_ARRAY(arena, const void*, node->operand_count),
      .result_data = PESTLE_ARENA_ARRAY(arena, void*, node->result_count)};
  if (!step->operands || !step->results || !step->operand_data ||
      !step->result_data) {
    return PESTLE_OOM();
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(
        use_slot(interp, node->operands[i].value, node, &step->operands[i]));
  }
  PESTLE_TRY(compile_regions(interp, node, depth, &step->bodies));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    PESTLE_TRY(add_slot(interp, &node->results[i], depth, &step->results[i]));
  }
  return NULL;
}

// A constant that can be read in place becomes a slot and no step.
static pestle_status_t compile_constant(pestle_ref_interp_t* interp,
                                        const pestle_node_t* node,
                                        bool* out_done) {
  *out_done = node->op == PESTLE_OP_CONSTANT &&
              constant_in_place(PESTLE_NODE_ELEMENTS(node));
  if (!*out_done) return NULL;
  uint32_t slot;
  return capture(interp, &node->results[0], node, &slot);
}

static pestle_status_t compile_returns(pestle_ref_interp_t* interp,
                                       const pestle_node_t* node,
                                       pestle_ref_body_t* body) {
  pestle_arena_t* arena = &interp->arena;
  body->return_count = node->operand_count;
  body->returns = PESTLE_ARENA_ARRAY(arena, uint32_t, node->operand_count);
  body->return_types =
      PESTLE_ARENA_ARRAY(arena, const pestle_type_t*, node->operand_count);
  if (!body->returns || !body->return_types) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(
        use_slot(interp, node->operands[i].value, node, &body->returns[i]));
    body->return_types[i] = node->operands[i].value->type;
    interp->slots.data[body->returns[i]].last_use = UINT32_MAX;
  }
  return NULL;
}

// Lists, for each step, the slots whose last reader it is.
static pestle_status_t find_dead(pestle_ref_interp_t* interp,
                                 pestle_ref_body_t* body) {
  body->defined_count = 0;
  for (uint32_t i = 0; i < body->step_count; ++i) {
    body->defined_count += body->steps[i].node->result_count;
  }
  body->defined =
      PESTLE_ARENA_ARRAY(&interp->arena, uint32_t, body->defined_count);
  if (!body->defined) return PESTLE_OOM();
  uint32_t n = 0;
  for (uint32_t i = 0; i < body->step_count; ++i) {
    const step_t* step = &body->steps[i];
    for (uint32_t j = 0; j < step->node->result_count; ++j) {
      const slot_t* slot = &interp->slots.data[step->results[j]];
      body->defined[n++] = step->results[j];
      if (slot->last_use == UINT32_MAX) continue;
      ++body->steps[slot->last_use].dead_count;
    }
  }
  for (uint32_t i = 0; i < body->step_count; ++i) {
    step_t* step = &body->steps[i];
    step->dead = PESTLE_ARENA_ARRAY(&interp->arena, uint32_t, step->dead_count);
    if (!step->dead) return PESTLE_OOM();
    step->dead_count = 0;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const slot_t* slot = &interp->slots.data[body->defined[i]];
    if (slot->last_use == UINT32_MAX) continue;
    step_t* step = &body->steps[slot->last_use];
    step->dead[step->dead_count++] = body->defined[i];
  }
  return NULL;
}

static pestle_status_t compile_block(pestle_ref_interp_t* interp,
                                     const pestle_block_t* block,
                                     uint32_t depth,
                                     const pestle_ref_body_t** out_body) {
  pestle_ref_body_t* body = PESTLE_ARENA_NEW(&interp->arena, pestle_ref_body_t);
  if (!body) return PESTLE_OOM();
  size_t count = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next)
    ++count;
  body->steps = PESTLE_ARENA_ARRAY(&interp->arena, step_t, count);
  body->arguments =
      PESTLE_ARENA_ARRAY(&interp->arena, uint32_t, block->argument_count);
  if (!body->steps || !body->arguments) return PESTLE_OOM();
  body->argument_count = block->argument_count;
  interp->now[depth] = 0;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(
        add_slot(interp, block->arguments[i], depth, &body->arguments[i]));
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    bool done;
    if (n->op == PESTLE_OP_RETURN) {
      PESTLE_TRY(compile_returns(interp, n, body));
      continue;
    }
    PESTLE_TRY(compile_constant(interp, n, &done));
    if (done) continue;
    interp->now[depth] = body->step_count;
    PESTLE_TRY(compile_step(interp, n, depth, &body->steps[body->step_count]));
    ++body->step_count;
  }
  *out_body = body;
  return find_dead(interp, body);
}

// --- Running ---

static pestle_status_t run_step(pestle_ref_interp_t* interp, step_t* step) {
  const pestle_node_t* node = step->node;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    step->operand_data[i] = interp->slots.data[step->operands[i]].data;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    PESTLE_TRY(slot_memory(interp, &interp->slots.data[step->results[i]],
                           &step->result_data[i]));
  }
  pestle_ref_call_t call = {.allocator = interp->allocator,
                            .node = node,
                            .operands = step->operand_data,
                            .results = step->result_data,
                            .interp = interp,
                            .bodies = step->bodies,
                            .rank = interp->root->rank};
  PESTLE_TRY(op_function((pestle_op_t)node->op)(&call));
  for (uint32_t i = 0; i < step->dead_count; ++i) {
    slot_clear(interp, &interp->slots.data[step->dead[i]]);
  }
  return NULL;
}

pestle_status_t pestle_ref_run(pestle_ref_interp_t* interp,
                               const pestle_ref_body_t* body,
                               const void* const* arguments,
                               void* const* results) {
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    interp->slots.data[body->arguments[i]].data = arguments[i];
  }
  pestle_status_t status = NULL;
  for (uint32_t i = 0; i < body->step_count && !status; ++i) {
    status = run_step(interp, &body->steps[i]);
  }
  for (uint32_t i = 0; i < body->return_count && !status; ++i) {
    const slot_t* slot = &interp->slots.data[body->returns[i]];
    if (slot->size) memcpy(results[i], slot->data, slot->size);
  }
  for (uint32_t i = 0; i < body->defined_count; ++i) {
    slot_clear(interp, &interp->slots.data[body->defined[i]]);
  }
  return status;
}

const pestle_type_t* pestle_ref_return_type(const pestle_ref_body_t* body,
                                            size_t index) {
  return body->return_types[index];
}

static void interp_init(pestle_allocator_t allocator, pestle_ref_interp_t* root,
                        pestle_ref_interp_t* interp) {
  memset(interp, 0, sizeof(*interp));
  interp->allocator = allocator;
  pestle_arena_init(allocator, &interp->arena);
  pestle_map_init(allocator, &interp->slot_of);
  pestle_vec_init(&interp->slots, allocator);
  interp->root = root ? root : interp;
}

static void interp_deinit(pestle_ref_interp_t* interp) {
  for (size_t i = 0; i < interp->slots.size; ++i) {
    slot_clear(interp, &interp->slots.data[i]);
  }
  pestle_vec_deinit(&interp->slots);
  pestle_map_deinit(&interp->slot_of);
  pestle_arena_deinit(&interp->arena);
}

static pestle_status_t run_active(pestle_ref_interp_t* interp,
                                  const void* const* arguments,
                                  void* const* results) {
  pestle_ref_interp_t* root = interp->root;
  if (interp->active || root->calls >= MAX_CALLS) {
    return PESTLE_ERROR(UNSUPPORTED, "function '%s' %s", interp->function->name,
                        interp->active ? "calls itself" : "is called too deep");
  }
  ++root->calls;
  interp->active = true;
  pestle_status_t status =
      pestle_ref_run(interp, interp->body, arguments, results);
  interp->active = false;
  --root->calls;
  return status;
}

static pestle_status_t find_callee(pestle_ref_interp_t* root,
                                   const pestle_function_t* function,
                                   pestle_ref_interp_t** out_interp) {
  for (pestle_ref_interp_t* i = root; i; i = i->next) {
    if (i->function == function) {
      *out_interp = i;
      return NULL;
    }
  }
  pestle_ref_interp_t* made = pestle_alloc(root->allocator, sizeof(*made));
  if (!made) return PESTLE_OOM();
  interp_init(root->allocator, root, made);
  made->function = function;
  made->module = function->module;
  made->next = root->next;
  root->next = made;  // freed with the root from here on
  *out_interp = made;
  return compile_block(made, function->body->block, 0, &made->body);
}

pestle_status_t pestle_ref_run_function(pestle_ref_interp_t* interp,
                                        const char* name,
                                        const void* const* arguments,
                                        void* const* results) {
  pestle_function_t* function =
      interp->module ? pestle_module_find_function(interp->module, name) : NULL;
  if (!function) {
    return PESTLE_ERROR(NOT_FOUND, "the module has no function '%s'", name);
  }
  pestle_ref_interp_t* callee = NULL;
  PESTLE_TRY(find_callee(interp->root, function, &callee));
  return run_active(callee, arguments, results);
}

static void root_deinit(pestle_ref_interp_t* root) {
  pestle_allocator_t allocator = root->allocator;
  for (pestle_ref_interp_t* i = root->next; i;) {
    pestle_ref_interp_t* next = i->next;
    interp_deinit(i);
    pestle_dealloc(allocator, i, sizeof(*i));
    i = next;
  }
  interp_deinit(root);
}

// --- Entry points ---

static pestle_status_t evaluate_regions(pestle_ref_interp_t* interp,
                                        pestle_ref_call_t* call) {
  const pestle_ref_body_t** bodies;
  // A node that is not in a block yet has no module to look a callee up in.
  if (call->node->block) interp->module = call->node->block->region->module;
  PESTLE_TRY(compile_regions(interp, call->node, 0, &bodies));
  call->interp = interp;
  call->bodies = bodies;
  return op_function((pestle_op_t)call->node->op)(call);
}

pestle_status_t pestle_ref_evaluate_node(pestle_allocator_t allocator,
                                         const pestle_node_t* node,
                                         const void* const* operands,
                                         void* const* results) {
  PESTLE_TRY(check_static(node));
  pestle_ref_call_t call = {.allocator = allocator,
                            .node = node,
                            .operands = operands,
                            .results = results};
  if (!node->region_count && node->op != PESTLE_OP_CALL) {
    return op_function((pestle_op_t)node->op)(&call);
  }
  pestle_ref_interp_t interp;
  interp_init(allocator, NULL, &interp);
  pestle_status_t status = evaluate_regions(&interp, &call);
  root_deinit(&interp);
  return status;
}

pestle_status_t pestle_ref_evaluate_as(pestle_allocator_t allocator,
                                       const pestle_function_t* function,
                                       pestle_ref_rank_t* rank,
                                       const void* const* arguments,
                                       void* const* results) {
  pestle_ref_interp_t interp;
  interp_init(allocator, NULL, &interp);
  interp.rank = rank;
  interp.function = function;
  interp.module = function->module;
  pestle_status_t status =
      compile_block(&interp, function->body->block, 0, &interp.body);
  if (!status) status = run_active(&interp, arguments, results);
  root_deinit(&interp);
  return status;
}

pestle_status_t pestle_ref_evaluate_function(pestle_allocator_t allocator,
                                             const pestle_function_t* function,
                                             const void* const* arguments,
                                             void* const* results) {
  return pestle_ref_evaluate_as(allocator, function, NULL, arguments, results);
}
