// SPDX-License-Identifier: Apache-2.0
#include "compile/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/mem.h"
#include "compile/collective.h"
#include "compile/copies.h"
#include "compile/custom.h"
#include "compile/library.h"
#include "compile/loop_trips.h"
#include "compile/source.h"
#include "ir/custom_op.h"
#include "ir/dictionary.h"
#include "passes/util.h"

typedef struct steps_t {
  const pestle_kernels_t* kernels;
  const pestle_memory_plan_t* memory;
  pestle_locations_t* locations;
  pestle_plan_build_t* plan;
  const pestle_node_t* node;  // the op at hand
  uint32_t next;     // kernel without a step: kernels stand as nodes do
  uint32_t repeats;  // loops of known trips so far
  // Places that have changed for each other: pairs of a loop's state and its next
  // value, while the loop's body is written for the second time.
  const pestle_plan_binding_t* turns;
  size_t turn_count;
} steps_t;

static pestle_status_t block_steps(steps_t* s, const pestle_block_t* block);

static pestle_plan_binding_t constant_binding(steps_t* s,
                                              const pestle_elements_t* e) {
  pestle_kernel_arg_t arg = {.kind = PESTLE_ARG_CONSTANT, .elements = e};
  return pestle_plan_constant(s->plan, &arg);
}

// Of a value that the plan has stored.
static pestle_plan_binding_t stored_binding(steps_t* s,
                                            const pestle_value_t* value) {
  pestle_kernel_arg_t arg = {.kind = PESTLE_ARG_CONSTANT};
  if (!pestle_kernel_arg_store(s->kernels->arena, value, &arg))
    s->plan->failed = true;
  if (s->plan->failed) return (pestle_plan_binding_t){.size = 0};
  return pestle_plan_constant(s->plan, &arg);
}

static bool lies_in(const pestle_plan_binding_t* b,
                    const pestle_plan_binding_t* place) {
  return b->storage == place->storage && b->index == place->index &&
         b->offset >= place->offset &&
         b->offset + b->size <= place->offset + place->size;
}

// Where |b| is in the second half of a loop whose places take turns.
static pestle_plan_binding_t turned(const steps_t* s, pestle_plan_binding_t b) {
  for (size_t i = 0; i < s->turn_count; ++i) {
    const pestle_plan_binding_t* here = &s->turns[i];
    if (!b.size || !lies_in(&b, here)) continue;
    const pestle_plan_binding_t* there = &s->turns[i ^ 1];
    b.offset = there->offset + (b.offset - here->offset);
    b.storage = there->storage;
    b.index = there->index;
    return b;
  }
  return b;
}

static pestle_plan_binding_t place_of(steps_t* s, const pestle_value_t* value) {
  static const uint16_t storages[] = {
      [PESTLE_STORAGE_NONE] = PESTLE_PLAN_ARENA,
      [PESTLE_STORAGE_ARENA] = PESTLE_PLAN_ARENA,
      [PESTLE_STORAGE_INPUT] = PESTLE_PLAN_INPUT,
      [PESTLE_STORAGE_OUTPUT] = PESTLE_PLAN_OUTPUT,
      [PESTLE_STORAGE_CONSTANT] = PESTLE_PLAN_CONSTANT};
  if (pestle_value_is_stored(value)) return stored_binding(s, value);
  const pestle_placement_t* at = pestle_memory_plan_at(s->memory, value);
  if (at->storage == PESTLE_STORAGE_CONSTANT) {
    // A part of a constant: constants get their places as they are asked for,
    // not from the planner.
    pestle_plan_binding_t part = stored_binding(s, at->root);
    part.offset += (uint64_t)at->offset;
    part.size = (uint64_t)at->size;
    return part;
  }
  return (pestle_plan_binding_t){.storage = storages[at->storage],
                                 .index = at->index,
                                 .offset = (uint64_t)at->offset,
                                 .size = (uint64_t)at->size};
}

static pestle_plan_binding_t binding_of(steps_t* s,
                                        const pestle_value_t* value) {
  return turned(s, place_of(s, value));
}

// --- Locations ---

static void add_locations(steps_t* s, const pestle_node_t* node) {
  if (!node || s->plan->failed) return;
  pestle_status_t status = pestle_locations_add(s->locations, node);
  if (status) s->plan->failed = true;
  pestle_status_release(status);
}

// Gives |step| the locations that were added.
static void set_locations(steps_t* s, pestle_plan_step_t* step) {
  pestle_plan_build_t* plan = s->plan;
  const uint32_t* ids =
      pestle_locations_sorted(s->locations, &step->location_count);
  step->first_location = (uint32_t)plan->location_ids.size;
  if (!pestle_vec_append(&plan->location_ids, ids, step->location_count)) {
    plan->failed = true;
  }
}

// Appends |step|, which is for the op at hand.
static uint32_t add_step(steps_t* s, pestle_plan_step_t step) {
  pestle_locations_clear(s->locations);
  add_locations(s, s->node);
  set_locations(s, &step);
  return pestle_plan_step(s->plan, step);
}

// Ranks compile one plan, each for a device of its own and from a file of its own.
static bool is_of_several(const pestle_plan_build_t* plan) {
  return plan->replicas > 1 || plan->partitions > 1;
}

static void write_locations(steps_t* s) {
  bool named = !is_of_several(s->plan);
  for (size_t i = 0; i < s->locations->list.size; ++i) {
    const pestle_location_t* l = &s->locations->list.data[i];
    pestle_plan_location_t record = {
        .op = pestle_plan_string(s->plan, pestle_op_info(l->op)->name),
        .name = pestle_plan_string(s->plan, l->loc.name),
        .file = pestle_plan_string(s->plan, named ? l->loc.file : NULL),
        .line = l->loc.line,
        .column = l->loc.column};
    if (!pestle_vec_push(&s->plan->locations, record)) s->plan->failed = true;
  }
}

// --- Copies ---

static void copy_step(steps_t* s, pestle_plan_binding_t from,
                      pestle_plan_binding_t to, const char* label) {
  if (pestle_copies_same_place(&from, &to) || !from.size) return;
  pestle_plan_binding_t both[2] = {from, to};
  pestle_plan_step_t step = {.kind = PESTLE_PLAN_COPY,
                             .first = pestle_plan_bind(s->plan, both, 2),
                             .count = 2,
                             .label = pestle_plan_string(s->plan, label)};
  (void)add_step(s, step);
}

// A place that lives during one group of copies or one launch only: all share
// what is behind the planned arena, which is as long as the one that needs most.
static pestle_plan_binding_t temporary(steps_t* s, uint64_t* used,
                                       uint64_t size) {
  pestle_plan_binding_t b = {.storage = PESTLE_PLAN_ARENA,
                             .offset = s->plan->spare + *used,
                             .size = size};
  *used += pestle_align_up(size, PESTLE_BUFFER_ALIGNMENT);
  int64_t end = (int64_t)(s->plan->spare + *used);
  if (s->plan->arena_size < end) s->plan->arena_size = end;
  return b;
}

// Copies all of |from| to |to| as if at once. Only a cycle (a loop that swaps two
// values) goes through a temporary. None of the nine open models has one: their
// arenas are what was planned.
static pestle_status_t parallel_copy(steps_t* s, pestle_plan_binding_t* from,
                                     const pestle_plan_binding_t* to,
                                     size_t count, const char* label) {
  pestle_copies_t c;
  PESTLE_TRY(pestle_copies_init(s->kernels->arena, from, to, count, &c));
  uint64_t used = 0;
  bool cycle;
  for (;;) {
    size_t i = pestle_copies_next(&c, &cycle);
    if (i == count) return NULL;
    if (!cycle) {
      copy_step(s, from[i], to[i], label);
      continue;
    }
    if (PESTLE_FAULT(lost_copy)) {
      copy_step(s, from[i], to[i], label);
      c.done[i] = true;
      --c.left;
      continue;
    }
    pestle_plan_binding_t kept = temporary(s, &used, from[i].size);
    copy_step(s, from[i], kept, label);
    from[i] = kept;
  }
}

static pestle_status_t copy_values(steps_t* s, pestle_value_t* const* from,
                                   pestle_value_t* const* to, size_t count,
                                   const char* label) {
  pestle_plan_binding_t* b = PESTLE_ARENA_ARRAY(
      s->kernels->arena, pestle_plan_binding_t, 2 * count + 1);
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "planning copies");
  for (size_t i = 0; i < count; ++i) {
    b[i] = binding_of(s, from[i]);
    b[count + i] = binding_of(s, to[i]);
  }
  return parallel_copy(s, b, b + count, count, label);
}

// --- Kernels ---

// The locations of what |k| computes: of a fusion's ops those of its group.
static void add_kernel_locations(steps_t* s, const pestle_kernel_t* k) {
  add_locations(s, k->node);
  const pestle_kernel_group_t* g = k->group;
  for (uint32_t i = 0; g && i < g->node_count; ++i)
    add_locations(s, g->nodes[i]);
  for (uint32_t i = 0; g && i < g->piece_count; ++i) {
    const pestle_piece_t* piece = &g->pieces[i];
    for (uint32_t v = 0; v < piece->view_count; ++v)
      add_locations(s, piece->views[v]);
  }
}

// Launches the next kernel of the list.
static void launch(steps_t* s) {
  const pestle_kernel_t* k = s->kernels->list.data[s->next];
  pestle_plan_binding_t b[PESTLE_KERNEL_MAX_ARGS];
  uint64_t used = 0;
  for (uint32_t i = 0; i < k->arg_count; ++i) {
    const pestle_kernel_arg_t* a = &k->args[i];
    if (a->kind == PESTLE_ARG_CONSTANT) {
      b[i] = pestle_plan_constant(s->plan, a);
    } else if (a->kind == PESTLE_ARG_WORKSPACE) {
      b[i] = temporary(s, &used, a->size);
    } else if (a->kind == PESTLE_ARG_OPERAND) {
      b[i] = binding_of(s, pestle_node_operand(k->node, a->slot));
    } else {
      b[i] = binding_of(s, &k->node->results[a->slot]);
      b[i].flags = PESTLE_PLAN_WRITTEN;
    }
  }
  pestle_plan_step_t step = {
      .kind = PESTLE_PLAN_LAUNCH,
      .kernel = s->next++,
      .device = k->device,
      .first = pestle_plan_bind(s->plan, b, k->arg_count),
      .count = k->arg_count,
      .label = pestle_plan_string(s->plan, k->name)};
  pestle_locations_clear(s->locations);
  add_kernel_locations(s, k);
  set_locations(s, &step);
  (void)pestle_plan_step(s->plan, step);
}

// Launches the kernels of |node|: none where it makes no element.
static void launch_all(steps_t* s, const pestle_node_t* node) {
  while (s->next < s->kernels->list.size &&
         s->kernels->list.data[s->next]->node == node) {
    launch(s);
  }
}

// Whether the op's kernel reads operand |index| itself.
static bool reads_operand(const steps_t* s, const pestle_node_t* node,
                          uint32_t index) {
  const pestle_kernel_t* k =
      s->next < s->kernels->list.size ? s->kernels->list.data[s->next] : NULL;
  for (uint32_t i = 0; k && k->node == node && i < k->arg_count; ++i) {
    const pestle_kernel_arg_t* a = &k->args[i];
    bool reads =
        a->kind == PESTLE_ARG_OPERAND || a->kind == PESTLE_ARG_CONSTANT;
    if (reads && a->slot == index) return true;
  }
  return false;
}

// What an op changes is a copy of its operand, or the operand where it lies; no copy where
// the kernel takes all of the operand to the result.
static void copy_updated(steps_t* s, const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  for (uint32_t r = 0; r < pestle_pass_updates(node); ++r) {
    if (node->op != PESTLE_OP_FUSION && reads_operand(s, node, r)) continue;
    copy_step(s, binding_of(s, pestle_node_operand(node, r)),
              binding_of(s, &node->results[r]), info->name);
  }
}

// --- Calls ---

static void describe_tensor(steps_t* s, const pestle_type_t* type) {
  pestle_plan_tensor_t t = {.dtype = (uint8_t)type->dtype,
                            .rank = (uint8_t)type->rank};
  memcpy(t.dims, type->dims, (size_t)type->rank * sizeof(int64_t));
  if (!pestle_vec_push(&s->plan->call_tensors, t)) s->plan->failed = true;
}

// The function finds an aliased operand where it puts the result: in place where the
// operand dies there, else in a copy.
static void place_aliases(steps_t* s, const pestle_node_t* node,
                          pestle_plan_binding_t* b) {
  pestle_i64s_t pairs = PESTLE_NODE_I64S(node, output_operand_aliases);
  for (size_t i = 0; i + 1 < pairs.count; i += 2) {
    pestle_plan_binding_t to = b[node->operand_count + pairs.data[i]];
    to.flags = 0;
    copy_step(s, b[pairs.data[i + 1]], to, "alias");
    b[pairs.data[i + 1]] = to;
  }
}

// The step of call |call|, whose tensors are those of |node|.
static pestle_status_t call_step(steps_t* s, const pestle_node_t* node,
                                 pestle_plan_call_t call) {
  uint32_t count = node->operand_count + node->result_count;
  pestle_plan_binding_t* b =
      PESTLE_ARENA_ARRAY(s->kernels->arena, pestle_plan_binding_t, count + 1);
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "planning a call");
  call.operand_count = node->operand_count;
  call.result_count = node->result_count;
  call.first = (uint32_t)s->plan->call_tensors.size;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* value = pestle_node_operand(node, i);
    describe_tensor(s, value->type);
    b[i] = binding_of(s, value);
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    describe_tensor(s, node->results[i].type);
    b[node->operand_count + i] = binding_of(s, &node->results[i]);
    b[node->operand_count + i].flags = PESTLE_PLAN_WRITTEN;
  }
  place_aliases(s, node, b);
  pestle_plan_step_t step = {.kind = PESTLE_PLAN_CALL,
                             .kernel = (uint32_t)s->plan->calls.size,
                             .first = pestle_plan_bind(s->plan, b, count),
                             .count = count,
                             .label = call.name};
  if (!pestle_vec_push(&s->plan->calls, call)) s->plan->failed = true;
  (void)add_step(s, step);
  return NULL;
}

static pestle_status_t library_steps(steps_t* s, const pestle_node_t* node,
                                     const char* name) {
  const char* config = PESTLE_NODE_STR(node, backend_config);
  size_t length = strcspn(config, " ");
  char backend[64];
  (void)snprintf(backend, sizeof(backend), "%.*s", (int)length, config);
  pestle_plan_call_t call = {
      .kind = PESTLE_PLAN_CALL_LIBRARY,
      .name = pestle_plan_string(s->plan, name),
      .version = pestle_plan_string(s->plan, backend),
      .flags = (uint32_t)strtoul(config + length, NULL, 10)};
  return call_step(s, node, call);
}

// Results begin as their kernel wants them.
static pestle_status_t text_steps(steps_t* s, const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    const pestle_elements_t* e;
    PESTLE_TRY(pestle_source_initial(s->kernels->arena, node, r, &e));
    if (!e) continue;
    copy_step(s, constant_binding(s, e), binding_of(s, &node->results[r]),
              "initial value");
  }
  launch_all(s, node);
  return NULL;
}

static pestle_status_t eval_steps(steps_t* s, const pestle_node_t* node) {
  const pestle_custom_op_t* op;
  const pestle_custom_eval_t* eval;
  char version[24];
  PESTLE_TRY(pestle_eval_call_find(node, &op, &eval));
  if (pestle_eval_is_text(eval)) return text_steps(s, node);
  (void)snprintf(version, sizeof(version), "%lld", (long long)op->version);
  pestle_plan_call_t call = {
      .kind = PESTLE_PLAN_CALL_EVAL,
      .name = pestle_plan_string(s->plan, op->name),
      .version = pestle_plan_string(s->plan, version),
      .config = pestle_plan_string(s->plan, eval->id),
      .dictionary = pestle_plan_string(
          s->plan, PESTLE_NODE_STR(node, backend_dictionary)),
      .flags = eval->transient ? PESTLE_PLAN_EVAL_TRANSIENT : 0};
  return call_step(s, node, call);
}

static pestle_status_t custom_steps(steps_t* s, const pestle_node_t* node) {
  const char* name = PESTLE_NODE_STR(node, call_target_name);
  if (pestle_is_eval_call(node)) return eval_steps(s, node);
  size_t own = strlen(PESTLE_LIBRARY_CALL);
  if (!strncmp(name, PESTLE_LIBRARY_CALL, own)) {
    return library_steps(s, node, name + own);
  }
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  PESTLE_TRY(pestle_context_custom_call(s->kernels->context, name, &info));
  pestle_plan_call_t call = {
      .kind = PESTLE_PLAN_CALL_CUSTOM,
      .name = pestle_plan_string(s->plan, name),
      .version = pestle_plan_string(s->plan, info.version),
      .config =
          pestle_plan_string(s->plan, PESTLE_NODE_STR(node, backend_config)),
      .dictionary = pestle_plan_string(
          s->plan, PESTLE_NODE_STR(node, backend_dictionary)),
      .computations = pestle_plan_string(
          s->plan, PESTLE_NODE_STR(node, called_computations))};
  return call_step(s, node, call);
}

// --- Collectives ---

static pestle_status_t collective_steps(steps_t* s, const pestle_node_t* node) {
  uint32_t sent = node->operand_count, count = sent + node->result_count;
  pestle_groups_t groups;
  pestle_plan_binding_t* b =
      PESTLE_ARENA_ARRAY(s->kernels->arena, pestle_plan_binding_t, count + 1);
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "planning a collective");
  PESTLE_TRY(pestle_collective_groups(node, s->kernels->arena, &groups));
  for (uint32_t i = 0; i < sent; ++i)
    b[i] = binding_of(s, pestle_node_operand(node, i));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    b[sent + i] = binding_of(s, &node->results[i]);
    b[sent + i].flags = PESTLE_PLAN_WRITTEN;
  }
  pestle_plan_add_collective(s->plan, node, &groups, b, count);
  pestle_plan_step_t step = {
      .kind = PESTLE_PLAN_COLLECTIVE,
      .kernel = (uint32_t)s->plan->collectives.size - 1,
      .first = pestle_plan_bind(s->plan, b, count),
      .count = count,
      .label = pestle_plan_string(s->plan,
                                  pestle_op_info((pestle_op_t)node->op)->name)};
  (void)add_step(s, step);
  return NULL;
}

// --- Control flow ---

static uint32_t next_step(const steps_t* s) {
  return (uint32_t)s->plan->steps.size;
}

static uint32_t jump(steps_t* s, pestle_plan_step_kind_t kind,
                     const pestle_value_t* predicate, uint32_t target) {
  pestle_plan_step_t step = {.kind = (uint32_t)kind, .target = target};
  if (predicate) {
    pestle_plan_binding_t b = binding_of(s, predicate);
    step.first = pestle_plan_bind(s->plan, &b, 1);
    step.count = 1;
  }
  return add_step(s, step);
}

static void land(steps_t* s, uint32_t step) {
  if (step < s->plan->steps.size) {
    s->plan->steps.data[step].target = next_step(s);
  }
}

static pestle_status_t collect(pestle_arena_t* arena, uint32_t count,
                               pestle_value_t*** out) {
  *out = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, count ? count : 1);
  return *out ? NULL : PESTLE_ERROR(OUT_OF_MEMORY, "planning control flow");
}

static pestle_status_t operands_of(steps_t* s, const pestle_node_t* node,
                                   pestle_value_t*** out) {
  PESTLE_TRY(collect(s->kernels->arena, node->operand_count, out));
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    (*out)[i] = pestle_node_operand(node, i);
  }
  return NULL;
}

static pestle_status_t results_of(steps_t* s, pestle_node_t* node,
                                  pestle_value_t*** out) {
  PESTLE_TRY(collect(s->kernels->arena, node->result_count, out));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    (*out)[i] = &node->results[i];
  }
  return NULL;
}

// A loop's blocks, and the next values of its state.
typedef struct loop_t {
  pestle_node_t* node;
  pestle_block_t *cond, *body;
  pestle_value_t** next;
} loop_t;

// Whether |next| takes turns with state |index| of its loop.
static bool takes_turns(const steps_t* s, const pestle_value_t* next,
                        uint32_t index) {
  return !pestle_value_is_stored(next) &&
         pestle_memory_plan_at(s->memory, next)->alternates == index + 1;
}

// The state and next values that take turns, in pairs.
static pestle_status_t find_turns(steps_t* s, const loop_t* l,
                                  pestle_plan_binding_t** out_turns,
                                  size_t* out_count) {
  uint32_t n = l->node->result_count;
  pestle_plan_binding_t* b = PESTLE_ARENA_ARRAY(
      s->kernels->arena, pestle_plan_binding_t, 2 * (size_t)n + 1);
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "planning control flow");
  *out_turns = b;
  *out_count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (!takes_turns(s, l->next[i], i)) continue;
    b[(*out_count)++] = place_of(s, l->cond->arguments[i]);
    b[(*out_count)++] = place_of(s, l->next[i]);
  }
  return NULL;
}

// Copies of next values to the state, but for those that take turns with it.
static pestle_status_t next_steps(steps_t* s, const loop_t* l) {
  uint32_t n = l->node->result_count;
  size_t count = 0;
  pestle_value_t **from, **to;
  PESTLE_TRY(collect(s->kernels->arena, n, &from));
  PESTLE_TRY(collect(s->kernels->arena, n, &to));
  for (uint32_t i = 0; i < n; ++i) {
    if (takes_turns(s, l->next[i], i)) continue;
    from[count] = l->next[i];
    to[count++] = l->cond->arguments[i];
  }
  return copy_values(s, from, to, count, "while next");
}

// body; next -> state
static pestle_status_t body_steps(steps_t* s, const loop_t* l) {
  PESTLE_TRY(copy_values(s, l->cond->arguments, l->body->arguments,
                         l->node->result_count, "while"));
  PESTLE_TRY(block_steps(s, l->body));
  return next_steps(s, l);
}

// cond; exit if zero; body; next -> state
static pestle_status_t trip_steps(steps_t* s, const loop_t* l,
                                  uint32_t* out_exit) {
  PESTLE_TRY(block_steps(s, l->cond));
  *out_exit = jump(s, PESTLE_PLAN_JUMP_IF_ZERO,
                   pestle_node_operand(l->cond->last, 0), 0);
  return body_steps(s, l);
}

// The trip once more, of the same kernels, with places that have changed. Behind
// its exit the state is brought back to where it was.
static pestle_status_t second_trip(steps_t* s, const loop_t* l, uint32_t first,
                                   uint32_t* out_exit) {
  s->next = first;
  return trip_steps(s, l, out_exit);
}

typedef struct turns_t {
  const pestle_plan_binding_t* places;  // pairs, as steps_t has them
  size_t count;
} turns_t;

// Brings the state from where an odd trip has left it.
static void end_turns(steps_t* s, turns_t turns) {
  for (size_t i = 0; i < turns.count; i += 2)
    copy_step(s, turns.places[i + 1], turns.places[i], "while result");
}

static void repeat(steps_t* s, uint32_t first, uint32_t trips) {
  pestle_plan_step_t step = {.kind = PESTLE_PLAN_REPEAT,
                             .kernel = s->repeats,
                             .target = first,
                             .count = trips};
  if (trips < 2 || first == next_step(s)) return;
  ++s->repeats;
  (void)add_step(s, step);
}

// L: body; [body with places that take turns;] to L so often; [one body more]
static pestle_status_t counted_steps(steps_t* s, const loop_t* l, turns_t turns,
                                     uint32_t trips) {
  uint32_t head = next_step(s), first = s->next;
  uint32_t each = turns.count ? 2 : 1;
  if (trips >= each) {
    PESTLE_TRY(body_steps(s, l));
    if (turns.count) {
      s->turns = turns.places;
      s->turn_count = turns.count;
      s->next = first;
      PESTLE_TRY(body_steps(s, l));
      s->turn_count = 0;
    }
    repeat(s, head, trips / each);
  }
  if (trips % each == 0) return NULL;
  s->next = first;
  PESTLE_TRY(body_steps(s, l));
  end_turns(s, turns);
  return NULL;
}

// init -> state; L: trip; [trip with places that take turns;] to L; results
static pestle_status_t while_steps(steps_t* s, pestle_node_t* node) {
  loop_t l = {node, pestle_node_body(node, 0), pestle_node_body(node, 1), NULL};
  pestle_value_t **init, **results;
  pestle_plan_binding_t* turns;
  size_t turn_count;
  uint32_t exit, second = 0, n = node->result_count;
  PESTLE_TRY(operands_of(s, node, &init));
  PESTLE_TRY(operands_of(s, l.body->last, &l.next));
  PESTLE_TRY(results_of(s, node, &results));
  PESTLE_TRY(find_turns(s, &l, &turns, &turn_count));
  PESTLE_TRY(copy_values(s, init, l.cond->arguments, n, "while init"));
  turns_t pairs = {turns, turn_count};
  uint32_t trips = pestle_loop_trips(node);
  if (trips) {
    PESTLE_TRY(counted_steps(s, &l, pairs, trips));
    return copy_values(s, l.cond->arguments, results, n, "while result");
  }
  uint32_t head = next_step(s), first = s->next;
  PESTLE_TRY(trip_steps(s, &l, &exit));
  if (turn_count) {
    s->turns = turns;
    s->turn_count = turn_count;
    PESTLE_TRY(second_trip(s, &l, first, &second));
    s->turn_count = 0;
  }
  (void)jump(s, PESTLE_PLAN_JUMP, NULL, head);
  if (turn_count) land(s, second);
  end_turns(s, pairs);
  land(s, exit);
  return copy_values(s, l.cond->arguments, results, n, "while result");
}

static pestle_status_t branch_steps(steps_t* s, pestle_node_t* node,
                                    uint32_t region) {
  pestle_block_t* block = pestle_node_body(node, region);
  pestle_value_t **from, **results;
  PESTLE_TRY(block_steps(s, block));
  PESTLE_TRY(operands_of(s, block->last, &from));
  PESTLE_TRY(results_of(s, node, &results));
  return copy_values(s, from, results, node->result_count, "branch result");
}

static pestle_status_t if_steps(steps_t* s, pestle_node_t* node) {
  uint32_t other =
      jump(s, PESTLE_PLAN_JUMP_IF_ZERO, pestle_node_operand(node, 0), 0);
  PESTLE_TRY(branch_steps(s, node, 0));
  uint32_t end = jump(s, PESTLE_PLAN_JUMP, NULL, 0);
  land(s, other);
  PESTLE_TRY(branch_steps(s, node, 1));
  land(s, end);
  return NULL;
}

static pestle_status_t case_steps(steps_t* s, pestle_node_t* node) {
  uint32_t n = node->region_count;
  uint32_t* ends = PESTLE_ARENA_ARRAY(s->kernels->arena, uint32_t, n + 1);
  if (!ends) return PESTLE_ERROR(OUT_OF_MEMORY, "planning a case");
  uint32_t table =
      jump(s, PESTLE_PLAN_JUMP_TABLE, pestle_node_operand(node, 0), 0);
  land(s, table);
  if (table < s->plan->steps.size) s->plan->steps.data[table].count = n;
  uint32_t first = next_step(s);
  for (uint32_t i = 0; i < n; ++i)
    (void)jump(s, PESTLE_PLAN_JUMP, NULL, 0);
  for (uint32_t i = 0; i < n; ++i) {
    land(s, first + i);
    PESTLE_TRY(branch_steps(s, node, i));
    ends[i] = jump(s, PESTLE_PLAN_JUMP, NULL, 0);
  }
  for (uint32_t i = 0; i < n; ++i)
    land(s, ends[i]);
  return NULL;
}

// --- Blocks ---

static pestle_status_t node_steps(steps_t* s, pestle_node_t* node) {
  switch ((int)node->op) {
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_CONSTANT_PART:
    case PESTLE_OP_RETURN:
      return NULL;
    case PESTLE_OP_FUSION:
      copy_updated(s, node);
      launch_all(s, node);
      return NULL;
    case PESTLE_OP_WHILE:
      return while_steps(s, node);
    case PESTLE_OP_IF:
      return if_steps(s, node);
    case PESTLE_OP_CASE:
      return case_steps(s, node);
    case PESTLE_OP_CUSTOM_CALL:
      return custom_steps(s, node);
    case PESTLE_OP_ALL_REDUCE:
    case PESTLE_OP_ALL_GATHER:
    case PESTLE_OP_REDUCE_SCATTER:
    case PESTLE_OP_ALL_TO_ALL:
    case PESTLE_OP_COLLECTIVE_PERMUTE:
    case PESTLE_OP_COLLECTIVE_BROADCAST:
    case PESTLE_OP_PARTITION_ID:
    case PESTLE_OP_REPLICA_ID:
      return collective_steps(s, node);
    case PESTLE_OP_SLICE:
      // Left outside only where it is contiguous: a place in its source.
      return NULL;
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_BITCAST_CONVERT:
    case PESTLE_OP_OPTIMIZATION_BARRIER: {
      // The planner gave the source's place, or a copy is due.
      pestle_value_t **from, **to;
      PESTLE_TRY(operands_of(s, node, &from));
      PESTLE_TRY(results_of(s, node, &to));
      return copy_values(s, from, to, node->result_count, "view");
    }
    default:
      // An op of class DIRECT: pestle_kernels_make() has refused any other.
      copy_updated(s, node);
      launch_all(s, node);
      return NULL;
  }
}

static pestle_status_t block_steps(steps_t* s, const pestle_block_t* block) {
  const pestle_node_t* around = s->node;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    s->node = n;
    PESTLE_TRY(node_steps(s, n));
  }
  s->node = around;
  return NULL;
}

// --- The function ---

// Of results, whose memory is a device's own: 64 bytes. Stores past the caches
// want whole lines.
enum { IO_ALIGN_LOG2 = 6 };

static pestle_plan_io_t io_of(steps_t* s, const pestle_type_t* type,
                              const char* name) {
  pestle_plan_io_t io = {.name = pestle_plan_string(s->plan, name),
                         .dtype = (uint8_t)type->dtype,
                         .rank = (uint8_t)type->rank,
                         .align_log2 = IO_ALIGN_LOG2,
                         .size = pestle_type_bytes(type),
                         .shape_offset = -1,
                         .alias = -1};
  memcpy(io.dims, type->dims, (size_t)type->rank * sizeof(int64_t));
  return io;
}

void pestle_steps_input_name(const pestle_function_t* function, uint32_t index,
                             char* out_name, size_t capacity) {
  const char* name =
      function->argument_names ? function->argument_names[index] : NULL;
  if (!name || !name[0]) name = function->body->block->arguments[index]->name;
  if (name && name[0]) {
    snprintf(out_name, capacity, "%s", name);
  } else {
    snprintf(out_name, capacity, "arg%u", index);
  }
}

// The strings of which an argument or result with |attrs| is numbers, or "".
static pestle_plan_str_t dictionary_of(steps_t* s,
                                       const pestle_function_t* function,
                                       pestle_dialect_attrs_t attrs) {
  if (!pestle_dialect_attrs_find(attrs, PESTLE_FUNCTION_STRINGS)) return 0;
  const char* text = pestle_dialect_attrs_find(function->dialect_attrs,
                                               PESTLE_FUNCTION_DICTIONARY);
  return text ? pestle_plan_string(s->plan, text) : 0;
}

static pestle_status_t interface_of(steps_t* s,
                                    const pestle_function_t* function) {
  const pestle_block_t* block = function->body->block;
  bool ok = true;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    char name[256];
    pestle_steps_input_name(function, i, name, sizeof(name));
    const pestle_type_t* type = block->arguments[i]->type;
    pestle_plan_io_t io = io_of(s, type, name);
    io.align_log2 = (uint8_t)pestle_log2_floor(
        pestle_input_align(&s->kernels->targets[0].caps, type->dtype));
    io.alias = s->memory->outputs[i];
    io.dictionary =
        dictionary_of(s, function, pestle_function_argument_attrs(function, i));
    ok = ok && pestle_vec_push(&s->plan->inputs, io);
  }
  const pestle_node_t* ret = block->last;
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    if (pestle_function_shape_of(function, i) >= 0) continue;
    const char* name =
        i < function->result_name_count ? function->result_names[i] : NULL;
    char number[32];
    snprintf(number, sizeof(number), "result%u", i);
    if (!name || !name[0]) name = number;
    pestle_plan_io_t io = io_of(s, pestle_node_operand(ret, i)->type, name);
    io.dictionary =
        dictionary_of(s, function, pestle_function_result_attrs(function, i));
    ok = ok && pestle_vec_push(&s->plan->outputs, io);
  }
  for (uint32_t i = 0; ok && i < block->argument_count; ++i) {
    int32_t output = s->memory->outputs[i];
    if (output >= 0) s->plan->outputs.data[output].alias = (int32_t)i;
  }
  return ok ? NULL : PESTLE_ERROR(OUT_OF_MEMORY, "planning the interface");
}

// Where result |i| is copied to: an output, or, of extents, a place in the arena
// of their own, where the end of a run finds them.
static pestle_plan_binding_t result_place(steps_t* s,
                                          const pestle_function_t* function,
                                          uint32_t i, uint64_t size) {
  int64_t of = pestle_function_shape_of(function, i);
  if (of < 0) {
    return (pestle_plan_binding_t){
        .storage = PESTLE_PLAN_OUTPUT, .index = i, .size = size};
  }
  pestle_plan_binding_t b = {
      .storage = PESTLE_PLAN_ARENA, .offset = s->plan->spare, .size = size};
  s->plan->spare += pestle_align_up(size, PESTLE_BUFFER_ALIGNMENT);
  if (s->plan->arena_size < (int64_t)s->plan->spare) {
    s->plan->arena_size = (int64_t)s->plan->spare;
  }
  pestle_plan_io_t* io = &s->plan->outputs.data[of];
  io->bounded = 1;
  io->shape_offset = (int64_t)b.offset;
  return b;
}

static pestle_status_t describe_device(const pestle_kernel_target_t* t,
                                       pestle_plan_build_t* plan) {
  const char* toolchain = "";
  PESTLE_TRY(pestle_kernel_toolchain(t->backend, &toolchain));
  pestle_plan_device_t d = {
      .backend = pestle_plan_string(plan, t->backend->name),
      .device_type = t->backend->device_type,
      .index = is_of_several(plan) ? 0 : pestle_device_dl(t->device).device_id,
      .cpu = pestle_plan_string(plan, t->caps.cpu),
      .features = pestle_plan_string(plan, t->caps.features),
      .toolchain = pestle_plan_string(plan, toolchain),
      .build_id =
          pestle_plan_string(plan, pestle_device_backend_id(t->device))};
  if (!pestle_vec_push(&plan->devices, d)) plan->failed = true;
  return NULL;
}

static void describe_kernel(const pestle_kernel_t* k,
                            pestle_plan_build_t* plan) {
  const pestle_kir_t* kir = &k->legal->view;
  pestle_plan_kernel_t p = {
      .name = pestle_plan_string(plan, k->name),
      .note = pestle_plan_string(plan, k->note),
      .device = k->device,
      .arg_count = k->arg_count,
      .param_count = kir->param_count,
      .shared_bytes = kir->shared_bytes,
      .group = {kir->group[0], kir->group[1], kir->group[2]},
      .work = k->work_ns,
      .hash = {kir->hash[0], kir->hash[1]},
      .flops = k->flops,
      .half_flops = k->half_flops,
      .byte_flops = k->byte_flops,
      .bytes = k->bytes};
  if (!pestle_vec_push(&plan->kernels, p)) plan->failed = true;
}

static pestle_status_t describe_kernels(const pestle_kernels_t* kernels,
                                        pestle_plan_build_t* plan) {
  bool fallback = false;
  for (size_t i = 0; i < kernels->list.size; ++i) {
    fallback = fallback || kernels->list.data[i]->device == 1;
    describe_kernel(kernels->list.data[i], plan);
  }
  PESTLE_TRY(describe_device(&kernels->targets[0], plan));
  return fallback ? describe_device(&kernels->targets[1], plan) : NULL;
}

// A kernel is from where its launch is.
static void name_kernels(pestle_plan_build_t* plan) {
  for (size_t i = 0; i < plan->steps.size && !plan->failed; ++i) {
    const pestle_plan_step_t* step = &plan->steps.data[i];
    if (step->kind != PESTLE_PLAN_LAUNCH) continue;
    pestle_plan_kernel_t* k = &plan->kernels.data[step->kernel];
    k->first_location = step->first_location;
    k->location_count = step->location_count;
  }
}

pestle_status_t pestle_steps_build(const pestle_kernels_t* kernels,
                                   const pestle_memory_plan_t* memory,
                                   pestle_locations_t* locations,
                                   const pestle_function_t* function,
                                   pestle_plan_build_t* plan) {
  steps_t s = {.kernels = kernels,
               .memory = memory,
               .locations = locations,
               .plan = plan};
  plan->arena_size = memory->arena_size;
  plan->lower_bound = memory->lower_bound;
  plan->spare = (uint64_t)plan->arena_size;
  pestle_world_shape_t world = pestle_module_world(function->module);
  plan->replicas = world.replicas;
  plan->partitions = world.partitions;
  const pestle_block_t* block = function->body->block;
  const pestle_node_t* ret = block->last;
  uint32_t n = ret->operand_count;
  pestle_plan_binding_t* b = PESTLE_ARENA_ARRAY(
      kernels->arena, pestle_plan_binding_t, 2 * (size_t)n + 1);
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "planning results");
  PESTLE_TRY(interface_of(&s, function));
  // Before the steps: what they use for a while lies behind.
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t size = pestle_type_bytes(pestle_node_operand(ret, i)->type);
    b[n + i] = result_place(&s, function, i, size);
  }
  PESTLE_TRY(block_steps(&s, block));
  for (uint32_t i = 0; i < n; ++i)
    b[i] = binding_of(&s, pestle_node_operand(ret, i));
  PESTLE_TRY(parallel_copy(&s, b, b + n, n, "result"));
  (void)pestle_plan_step(plan, (pestle_plan_step_t){.kind = PESTLE_PLAN_END});
  if (s.next < kernels->list.size) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s' has no step",
                        kernels->list.data[s.next]->name);
  }
  PESTLE_TRY(describe_kernels(kernels, plan));
  name_kernels(plan);
  write_locations(&s);
  return plan->failed ? PESTLE_ERROR(OUT_OF_MEMORY, "planning steps") : NULL;
}

// --- One kernel alone ---

// The place of |value| among |ios|, by |name|; it is appended where it is new.
static uint32_t single_io(pestle_plan_build_t* plan, bool result, uint32_t slot,
                          const pestle_type_t* type) {
  steps_t s = {.plan = plan};
  char name[24];
  snprintf(name, sizeof(name), "%c%u", result ? 'r' : 'o', slot);
  pestle_plan_str_t text = pestle_plan_string(plan, name);
  size_t count = result ? plan->outputs.size : plan->inputs.size;
  for (uint32_t i = 0; i < count; ++i) {
    const pestle_plan_io_t* io =
        result ? &plan->outputs.data[i] : &plan->inputs.data[i];
    if (io->name == text) return i;
  }
  pestle_plan_io_t io = io_of(&s, type, name);
  bool ok = result ? pestle_vec_push(&plan->outputs, io)
                   : pestle_vec_push(&plan->inputs, io);
  if (!ok) plan->failed = true;
  return (uint32_t)count;
}

static pestle_plan_binding_t single_binding(pestle_plan_build_t* plan,
                                            const pestle_kernel_t* k,
                                            const pestle_kernel_arg_t* a) {
  if (a->kind == PESTLE_ARG_CONSTANT) {
    // It runs alone: with the first part.
    pestle_kernel_arg_t one = *a;
    one.parts = NULL;
    return pestle_plan_constant(plan, &one);
  }
  bool result = a->kind == PESTLE_ARG_RESULT;
  const pestle_type_t* type = result
                                  ? k->node->results[a->slot].type
                                  : pestle_node_operand(k->node, a->slot)->type;
  return (pestle_plan_binding_t){
      .storage = result ? PESTLE_PLAN_OUTPUT : PESTLE_PLAN_INPUT,
      .flags = result ? PESTLE_PLAN_WRITTEN : 0,
      .index = single_io(plan, result, a->slot, type),
      .size = pestle_type_bytes(type)};
}

pestle_status_t pestle_steps_single(const pestle_kernels_t* kernels,
                                    pestle_plan_build_t* plan) {
  const pestle_kernel_t* k = kernels->list.data[0];
  pestle_plan_binding_t b[PESTLE_KERNEL_MAX_ARGS];
  for (uint32_t i = 0; i < k->arg_count; ++i)
    b[i] = single_binding(plan, k, &k->args[i]);
  describe_kernel(k, plan);
  pestle_plan_step_t launch = {.kind = PESTLE_PLAN_LAUNCH,
                               .first = pestle_plan_bind(plan, b, k->arg_count),
                               .count = k->arg_count,
                               .label = pestle_plan_string(plan, k->name)};
  pestle_plan_step_t end = {.kind = PESTLE_PLAN_END};
  (void)pestle_plan_step(plan, launch);
  (void)pestle_plan_step(plan, end);
  PESTLE_TRY(describe_device(&kernels->targets[0], plan));
  return plan->failed ? PESTLE_OOM() : NULL;
}
