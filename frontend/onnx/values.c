// SPDX-License-Identifier: Apache-2.0
// Arguments whose elements decide shapes (docs/adr/010). An op that must know
// an operand (pestle_onnx_need) marks the arguments that the operand is
// computed from, in the graph as far as it is built; the import ends there,
// those arguments become constants, and it begins again. Operands that later
// nodes must know are looked up by op and name, so that the import begins again
// once and an error can list all of them; where names say too little, it
// happens more often.
#include "base/mem.h"
#include "base/vec.h"
#include "frontend/onnx/emit.h"

// --- From a value back to the arguments ---

typedef PESTLE_VEC(const pestle_value_t*) values_t;

typedef struct walk_t {
  values_t stack;
  pestle_map_t seen;
  const pestle_region_t* body;  // of the entry function
  bool* needed;
  bool ok;  // else out of memory
} walk_t;

static void push(walk_t* w, const pestle_value_t* value) {
  bool added = false;
  w->ok = w->ok && pestle_map_put(&w->seen, &value, sizeof(value), &added) &&
          (!added || pestle_vec_push(&w->stack, value));
}

static void push_operands(walk_t* w, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    push(w, pestle_node_operand(node, i));
  for (uint32_t i = 0; i < node->region_count; ++i) {
    const pestle_block_t* block = node->regions[i]->block;
    for (const pestle_node_t* n = block->first; n; n = n->next)
      push_operands(w, n);
  }
}

static void visit(walk_t* w, const pestle_value_t* value) {
  if (value->node) {
    push_operands(w, value->node);
    return;
  }
  const pestle_region_t* region = value->block->region;
  if (region == w->body) {
    w->needed[value->index] = true;
  } else if (region->owner) {
    push_operands(w, region->owner);
  }
}

void pestle_onnx_need(pestle_onnx_call_t* call, const pestle_value_t* value) {
  pestle_onnx_import_t* import = call->import;
  if (!import->needed || !value) return;
  walk_t w = {.body = pestle_module_entry(import->module)->body,
              .needed = import->needed,
              .ok = true};
  pestle_vec_init(&w.stack, import->allocator);
  pestle_map_init(import->allocator, &w.seen);
  push(&w, value);
  while (w.ok && w.stack.size) {
    const pestle_value_t* top = pestle_vec_last(&w.stack);
    --w.stack.size;
    visit(&w, top);
  }
  pestle_map_deinit(&w.seen);
  pestle_vec_deinit(&w.stack);
  if (!w.ok) pestle_onnx_keep(call, PESTLE_OOM());
}

bool pestle_onnx_can_need(pestle_onnx_call_t* call,
                          const pestle_value_t* value) {
  pestle_onnx_import_t* import = call->import;
  pestle_function_t* entry = pestle_module_entry(import->module);
  size_t count = pestle_function_argument_count(entry);
  bool* before = import->needed;
  bool* needed = before ? pestle_onnx_scratch(call, count + 1) : NULL;
  if (!needed) return false;
  import->needed = needed;
  pestle_onnx_need(call, value);
  import->needed = before;
  bool any = false, fits = true;
  for (size_t i = 0; i < count; ++i) {
    if (!needed[i]) continue;
    any = true;
    fits &= pestle_type_count(pestle_function_argument(entry, i)->type) <=
            PESTLE_VALUE_ARGUMENT_MAX;
  }
  return any && fits;
}

// --- By name ---

typedef PESTLE_VEC(pestle_str_t) names_t;

typedef struct expect_t {
  const pestle_onnx_source_t* source;
  names_t names;           // to be looked at
  pestle_map_t seen;       // names
  pestle_map_t arguments;  // name -> index
  pestle_map_t producers;  // name -> pestle_onnx_node_t*, of all graphs
  bool* needed;
} expect_t;

static pestle_status_t expect_name(expect_t* e, pestle_str_t name) {
  bool added;
  if (!name.size) return NULL;
  if (!pestle_map_put(&e->seen, name.data, name.size, &added)) {
    return PESTLE_OOM();
  }
  return !added || pestle_vec_push(&e->names, name) ? NULL : PESTLE_OOM();
}

static pestle_status_t note_producers(expect_t* e,
                                      const pestle_onnx_node_t* node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (!node->outputs[i].size) continue;
    if (!pestle_map_set_str_ptr(&e->producers, node->outputs[i],
                                (void*)(uintptr_t)node)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

// Looks at the nodes of |graph| and of those inside: what they make, and what
// they must know.
static pestle_status_t read_graph(expect_t* e,
                                  const pestle_onnx_graph_t* graph) {
  const pestle_onnx_model_t* model = &e->source->model;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    PESTLE_TRY(note_producers(e, node));
    // Names inside of a function are its own: an attempt tells what it needs.
    const pestle_onnx_op_t* op =
        pestle_onnx_find_function(model, node)
            ? NULL
            : pestle_onnx_op_find(node, pestle_onnx_opset(model, node->domain));
    for (uint32_t k = 0; op && k < node->input_count && k < 8; ++k) {
      if (op->known >> k & 1) PESTLE_TRY(expect_name(e, node->inputs[k]));
    }
    for (uint32_t k = 0; k < node->attr_count; ++k) {
      if (!node->attrs[k].graph) continue;
      PESTLE_TRY(read_graph(e, node->attrs[k].graph));
    }
  }
  return NULL;
}

// What the elements that |node| makes depend on.
static pestle_status_t expect_inputs(expect_t* e,
                                     const pestle_onnx_node_t* node) {
  // Their operand's shape is enough.
  if (pestle_str_is_one_of(node->op_type, "Shape Size")) {
    return NULL;
  }
  for (uint32_t i = 0; i < node->input_count; ++i)
    PESTLE_TRY(expect_name(e, node->inputs[i]));
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    const pestle_onnx_graph_t* graph = node->attrs[i].graph;
    for (size_t k = 0; graph && k < graph->output_count; ++k)
      PESTLE_TRY(expect_name(e, graph->outputs[k].name));
  }
  return NULL;
}

static pestle_status_t note_arguments(expect_t* e) {
  const pestle_onnx_graph_t* graph = &e->source->model.graph;
  uint64_t at = 0;
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_onnx_is_argument(e->source, &graph->inputs[i])) continue;
    if (!pestle_map_set_str(&e->arguments, graph->inputs[i].name, at++)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t expect(expect_t* e, size_t count) {
  PESTLE_TRY(note_arguments(e));
  PESTLE_TRY(read_graph(e, &e->source->model.graph));
  while (e->names.size) {
    pestle_str_t name = pestle_vec_last(&e->names);
    --e->names.size;
    const pestle_map_value_t* argument =
        pestle_map_find_str(&e->arguments, name);
    if (argument && argument->u64 < count) e->needed[argument->u64] = true;
    const pestle_map_value_t* producer =
        pestle_map_find_str(&e->producers, name);
    if (producer) PESTLE_TRY(expect_inputs(e, producer->ptr));
  }
  return NULL;
}

pestle_status_t pestle_onnx_expect_values(const pestle_onnx_source_t* source,
                                          bool* needed, size_t count) {
  pestle_allocator_t allocator = pestle_context_allocator(source->context);
  expect_t e = {.source = source, .needed = needed};
  pestle_vec_init(&e.names, allocator);
  pestle_map_init(allocator, &e.seen);
  pestle_map_init(allocator, &e.arguments);
  pestle_map_init(allocator, &e.producers);
  pestle_status_t status = expect(&e, count);
  pestle_map_deinit(&e.producers);
  pestle_map_deinit(&e.arguments);
  pestle_map_deinit(&e.seen);
  pestle_vec_deinit(&e.names);
  return status;
}

// --- Importing with them ---

bool pestle_onnx_asks_for_values(pestle_status_t status,
                                 const pestle_type_t* types, const bool* needed,
                                 size_t count) {
  if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) return false;
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    if (!needed[i]) continue;
    any = true;
    if (pestle_type_count(&types[i]) > PESTLE_VALUE_ARGUMENT_MAX) return false;
  }
  return any;
}

// One attempt after the other, each with more constants.
typedef struct attempt_t {
  pestle_onnx_source_t* source;
  pestle_type_t* types;
  pestle_elements_t* values;
  bool* needed;
  bool* expected;
  pestle_onnx_bound_t* bound;
  const char** names;
  size_t count;
} attempt_t;

static pestle_status_t begin(attempt_t* a, pestle_arena_t* arena,
                             const pestle_type_t* types,
                             const pestle_elements_t* values, size_t count) {
  a->count = count;
  a->types = PESTLE_ARENA_ARRAY(arena, pestle_type_t, count + 1);
  a->values = PESTLE_ARENA_ARRAY(arena, pestle_elements_t, count + 1);
  a->needed = pestle_arena_alloc_zero(arena, count + 1, sizeof(bool));
  a->expected = pestle_arena_alloc_zero(arena, count + 1, sizeof(bool));
  a->bound = PESTLE_ARENA_ARRAY(arena, pestle_onnx_bound_t, count + 1);
  a->names = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  if (!a->types || !a->values || !a->needed || !a->expected || !a->bound ||
      !a->names) {
    return PESTLE_OOM();
  }
  for (size_t i = 0; i < count; ++i) {
    a->types[i] = types[i];
    a->values[i] = values ? values[i] : (pestle_elements_t){0};
  }
  return NULL;
}

static const pestle_onnx_value_info_t* argument_info(
    const pestle_onnx_source_t* source, size_t index) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    if (index-- == 0) return &graph->inputs[i];
  }
  return NULL;
}

static bool is_wanted(const attempt_t* a, size_t i) {
  return a->needed[i] || (a->expected[i] && pestle_type_count(&a->types[i]) <=
                                                PESTLE_VALUE_ARGUMENT_MAX);
}

// Lists all that is wanted and not given, unless nothing needed is among it.
static pestle_status_t check_given(attempt_t* a, pestle_arena_t* arena) {
  pestle_type_t* types = PESTLE_ARENA_ARRAY(arena, pestle_type_t, a->count + 1);
  if (!types) return PESTLE_OOM();
  size_t missing = 0;
  bool any = false;
  for (size_t i = 0; i < a->count; ++i) {
    if (a->values[i].data || !is_wanted(a, i)) continue;
    const pestle_onnx_value_info_t* info = argument_info(a->source, i);
    a->names[missing] = info ? pestle_arena_strndup(arena, info->name) : "";
    if (!a->names[missing]) return PESTLE_OOM();
    types[missing++] = a->types[i];
    any = any || a->needed[i];
  }
  if (!any) return NULL;
  return pestle_module_values_missing(arena->allocator, a->names, types,
                                      missing);
}

// Makes what is wanted and given constants of a new source.
static pestle_status_t bind_wanted(attempt_t* a) {
  size_t bound = 0, kept = 0;
  for (size_t i = 0; i < a->count; ++i) {
    if (is_wanted(a, i) && a->values[i].data) {
      a->bound[bound].name = argument_info(a->source, i)->name;
      a->bound[bound++].elements = a->values[i];
      continue;
    }
    a->types[kept] = a->types[i];
    a->values[kept++] = a->values[i];
  }
  pestle_onnx_source_t* source;
  PESTLE_TRY(pestle_onnx_source_extend(a->source, a->bound, bound, &source));
  pestle_onnx_source_release(a->source);
  a->source = source;
  a->count = kept;
  return NULL;
}

// Imports; true in |out_again| when it is to be tried with more constants.
static pestle_status_t attempt(attempt_t* a, pestle_arena_t* arena,
                               const pestle_control_t* control,
                               pestle_module_t** out_module, bool* out_again) {
  *out_again = false;
  memset(a->needed, 0, a->count);
  memset(a->expected, 0, a->count);
  pestle_status_t status = pestle_onnx_import_static(
      a->source, a->types, a->count, control, a->needed, out_module);
  if (!pestle_onnx_asks_for_values(status, a->types, a->needed, a->count)) {
    return status;
  }
  pestle_status_release(status);
  PESTLE_TRY(pestle_onnx_expect_values(a->source, a->expected, a->count));
  PESTLE_TRY(check_given(a, arena));
  PESTLE_TRY(bind_wanted(a));
  *out_again = true;
  return NULL;
}

// Each attempt but the last makes an argument a constant, so that it ends.
pestle_status_t pestle_onnx_import_values(pestle_onnx_source_t* source,
                                          const pestle_type_t* types,
                                          const pestle_elements_t* values,
                                          size_t count,
                                          const pestle_control_t* control,
                                          pestle_module_t** out_module) {
  *out_module = NULL;
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(source->context), &arena);
  attempt_t a = {.source = source};
  pestle_onnx_source_retain(source);
  pestle_status_t status = begin(&a, &arena, types, values, count);
  bool again = true;
  while (!status && again)
    status = attempt(&a, &arena, control, out_module, &again);
  pestle_onnx_source_release(a.source);
  pestle_arena_deinit(&arena);
  return status;
}
