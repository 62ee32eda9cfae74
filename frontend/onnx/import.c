// SPDX-License-Identifier: Apache-2.0
// One import: a module for given argument types.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "ir/dictionary.h"

// What a module keeps of its import: the source and the external files.
typedef struct kept_t {
  pestle_onnx_files_t files;
  pestle_onnx_source_t* source;
} kept_t;

static void release_kept(void* self) {
  kept_t* kept = self;
  pestle_onnx_source_t* source = kept->source;
  pestle_onnx_files_deinit(&kept->files);
  pestle_dealloc(pestle_context_allocator(source->context), kept,
                 sizeof(*kept));
  pestle_onnx_source_release(source);
}

static void forget(const pestle_mapping_t* mapping, const void* data,
                   size_t size) {
  if (data)
    pestle_file_forget_part(mapping, data, size);
  else
    pestle_file_forget(mapping);
}

static void relax_kept(void* self, const void* data, size_t size) {
  const kept_t* kept = self;
  for (const pestle_onnx_file_t* f = kept->files.first; f; f = f->next)
    forget(&f->mapping, data, size);
  const pestle_onnx_source_t* source = kept->source;
  for (; source; source = source->parent)
    forget(&source->mapping, data, size);
}

static pestle_status_t keep(pestle_onnx_source_t* source,
                            pestle_module_t* module, kept_t** out_kept) {
  pestle_allocator_t allocator = pestle_context_allocator(source->context);
  kept_t* kept = pestle_alloc_zero(allocator, sizeof(*kept));
  if (!kept) return PESTLE_OOM();
  pestle_onnx_files_init(allocator, source->folder, &kept->files);
  for (const pestle_onnx_source_t* s = source; s; s = s->parent) {
    if (s->mapping.size) kept->files.model = &s->mapping;
  }
  kept->source = source;
  pestle_onnx_source_retain(source);
  pestle_status_t status =
      pestle_module_keep_relaxed(module, release_kept, relax_kept, kept);
  if (status) {
    release_kept(kept);
    return status;
  }
  *out_kept = kept;
  return NULL;
}

// --- Arguments ---

// Says which arguments are ids of strings, and what strings there are.
static pestle_status_t note_strings(const pestle_onnx_source_t* source,
                                    pestle_function_t* function, size_t count) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  pestle_dialect_attr_t attr = {PESTLE_FUNCTION_DICTIONARY,
                                pestle_onnx_source_strings(source)->text};
  if (!attr.text) return NULL;
  PESTLE_TRY(pestle_function_set_dialect_attrs(function, &attr, 1));
  attr = (pestle_dialect_attr_t){PESTLE_FUNCTION_STRINGS, ""};
  size_t at = 0;
  for (size_t i = 0; i < graph->input_count && at < count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    if (graph->inputs[i].data_type == PESTLE_ONNX_STRING)
      PESTLE_TRY(pestle_function_set_argument_attrs(function, at, &attr, 1));
    ++at;
  }
  // How many results a sequence is nobody knows yet.
  for (size_t i = 0; i < graph->output_count && !graph->outputs[i].is_list;
       ++i) {
    if (graph->outputs[i].data_type == PESTLE_ONNX_STRING)
      PESTLE_TRY(pestle_function_set_result_attrs(function, i, &attr, 1));
  }
  return NULL;
}

static pestle_status_t check_type(pestle_str_t name,
                                  const pestle_type_t* type) {
  pestle_status_t bad, status = pestle_type_check(type);
  if (!status) return NULL;
  bad = PESTLE_ERROR(INVALID_ARGUMENT, "input '%.*s': %s", PESTLE_STR_ARG(name),
                     pestle_status_message(status));
  pestle_status_release(status);
  return bad;
}

static pestle_status_t add_function(const pestle_onnx_source_t* source,
                                    pestle_module_t* module,
                                    pestle_arena_t* arena,
                                    const pestle_type_t* types, size_t count,
                                    pestle_function_t** out_function) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  const char** names = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  if (!names) return PESTLE_OOM();
  size_t at = 0;
  for (size_t i = 0; i < graph->input_count && at < count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    pestle_str_t name = graph->inputs[i].name;
    PESTLE_TRY(check_type(name, &types[at]));
    names[at] = pestle_arena_strndup(arena, name);
    if (!names[at++]) return PESTLE_OOM();
  }
  PESTLE_TRY(pestle_module_add_function(module, "main", types, names, count,
                                        out_function));
  return note_strings(source, *out_function, count);
}

static pestle_status_t define_bound(pestle_onnx_import_t* import,
                                    pestle_onnx_scope_t* scope,
                                    const pestle_onnx_bound_t* bound) {
  pestle_attr_t attr = {.name = PESTLE_ATTR_value,
                        .kind = PESTLE_ATTR_KIND_ELEMENTS,
                        .as.elements = &bound->elements};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CONSTANT,
                             .attrs = &attr,
                             .attr_count = 1,
                             .share_elements = true};
  pestle_node_t* node;
  PESTLE_TRY(pestle_node_create(&scope->builder, &spec, &node));
  return pestle_onnx_scope_define_input(import, scope, bound->name,
                                        pestle_node_result(node, 0));
}

// An input of the model that says how many rows |input| has: what it becomes is seen to be that
// number through what exporters put between (bounded_shape.c).
static void define_own_length(pestle_onnx_call_t* call,
                              const pestle_onnx_length_t* length,
                              pestle_value_t** arguments) {
  pestle_value_t* given = arguments[length->length];
  const pestle_value_t* cache = arguments[length->input];
  // Where either is a constant or has its default there is no room.
  if (!given || !cache) return;
  int64_t room = pestle_onnx_dim(cache, length->axis);
  pestle_value_t* past = pestle_f_reshape(&call->f, given, 0, NULL);
  if (dtype_of(given) != PESTLE_I64)
    past = pestle_f_convert(&call->f, past, PESTLE_I64);
  pestle_onnx_set_place(call, past, room);
  if (past == given) return;
  past = pestle_f_convert(&call->f, past, dtype_of(given));
  arguments[length->length] =
      pestle_f_reshape_to(&call->f, past, pestle_onnx_type(given));
}

// Notes how much of the arguments, one for each graph input, is real.
static pestle_status_t define_lengths(pestle_onnx_import_t* import,
                                      const pestle_onnx_scope_t* scope,
                                      pestle_value_t** arguments) {
  static const pestle_onnx_node_t node = {
      .op_type = {"input", sizeof("input") - 1}};
  const pestle_onnx_source_t* source = import->source;
  pestle_onnx_call_t call = {
      .f = {.builder = scope->builder, .hooks = &pestle_onnx_hooks},
      .import = import,
      .node = &node};
  for (size_t i = 0; i < source->length_count; ++i) {
    const pestle_onnx_length_t* length = &source->lengths[i];
    if (length->is_own) {
      define_own_length(&call, length, arguments);
      continue;
    }
    pestle_onnx_set_room(&call, arguments[length->input], length->axis,
                         arguments[length->length], 0);
  }
  return call.f.status;
}

static pestle_status_t define_arguments(pestle_onnx_import_t* import,
                                        pestle_onnx_scope_t* scope,
                                        pestle_function_t* function) {
  const pestle_onnx_source_t* source = import->source;
  const pestle_onnx_graph_t* graph = scope->graph;
  size_t at = 0;
  pestle_value_t** arguments = pestle_arena_alloc_zero(
      &import->arena, (graph->input_count + 1) * sizeof(*arguments), 16);
  if (!arguments) return PESTLE_OOM();
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    pestle_value_t* argument = pestle_function_argument(function, at++);
    arguments[i] = argument;
    if (graph->inputs[i].data_type == PESTLE_ONNX_STRING)
      PESTLE_TRY(pestle_onnx_note_text(import, argument));
  }
  PESTLE_TRY(define_lengths(import, scope, arguments));
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!arguments[i]) continue;
    PESTLE_TRY(pestle_onnx_scope_define_input(
        import, scope, graph->inputs[i].name, arguments[i]));
  }
  for (size_t i = 0; i < source->bound_count; ++i) {
    PESTLE_TRY(define_bound(import, scope, &source->bound[i]));
  }
  return NULL;
}

// --- The body ---

static bool is_unused(const pestle_node_t* node) {
  if (pestle_op_info((pestle_op_t)node->op)->flags &
      (PESTLE_OP_FLAG_TERMINATOR | PESTLE_OP_FLAG_EFFECT)) {
    return false;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].use_count) return false;
  }
  return true;
}

// Erases what only computed shapes, last first so that chains go whole.
static void erase_unused(pestle_block_t* block) {
  for (pestle_node_t *node = block->last, *prev; node; node = prev) {
    prev = node->prev;
    if (is_unused(node)) {
      pestle_node_erase(node);
      continue;
    }
    for (uint32_t i = 0; i < node->region_count; ++i) {
      erase_unused(pestle_node_body(node, i));
    }
  }
}

// |shape| with |number| as its first extent where |fails|.
static pestle_value_t* fail_by(pestle_onnx_call_t* call, pestle_value_t* shape,
                               pestle_value_t* fails, int64_t number) {
  pestle_formula_t* f = &call->f;
  if (!fails) return shape;
  pestle_type_t list = *pestle_onnx_type(shape);
  pestle_value_t* first =
      pestle_onnx_binary_f(call, PESTLE_OP_EQ, pestle_f_iota(f, &list, 0), 0);
  pestle_value_t* sign = pestle_f_number(f, &list, (double)number);
  return pestle_f_select(f, pestle_f_and(f, first, fails), sign, shape);
}

// |shape| of an output whose type has the first extent |bound|, above that where a loop
// had no room, below 0 where extents do not fit: the runtime fails the run then.
static pestle_value_t* fail_by_shape(pestle_onnx_call_t* call,
                                     pestle_value_t* shape, int64_t bound) {
  shape = fail_by(call, shape, call->import->overflow, bound + 1);
  return fail_by(call, shape, call->import->misfit, -1);
}

// Behind the |*count| results, which have room for as many again, the real
// extents of those that have some.
static pestle_status_t add_shapes(pestle_onnx_import_t* import,
                                  pestle_function_t* function,
                                  pestle_builder_t* builder,
                                  pestle_value_t** results, size_t* count) {
  static const pestle_onnx_node_t node = {
      .op_type = {"output", sizeof("output") - 1}};
  pestle_onnx_call_t call = {
      .f = {.builder = *builder, .hooks = &pestle_onnx_hooks},
      .import = import,
      .node = &node};
  size_t outputs = *count;
  bool fails = import->overflow || import->misfit;
  for (size_t i = 0; i < outputs; ++i) {
    bool tells = fails && rank_of(results[i]) > 0;
    if (!tells && !pestle_onnx_real(import, results[i])) continue;
    results[i] = pestle_onnx_end_real(&call, results[i]);
    if (!results[i]) return call.f.status;
    results[*count] = pestle_onnx_real_shape(&call, results[i]);
    if (tells) {
      results[*count] =
          fail_by_shape(&call, results[*count], pestle_onnx_dim(results[i], 0));
      fails = false;
    }
    if (!results[*count]) return call.f.status;
    PESTLE_TRY(pestle_function_set_shape_of(function, (*count)++, i));
  }
  if (!fails) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "a run alone tells whether a loop has room for its scan "
      "outputs, or whether extents fit each other, and the "
      "model has no output with axes, by which it could say so");
}

// The results of the function: the model's outputs, of which a sequence is one for each
// tensor that it holds.
typedef struct results_t {
  pestle_value_t** values;  // with room for as many extents behind them
  pestle_str_t* names;
  size_t count;
} results_t;

static pestle_status_t add_result(pestle_onnx_import_t* import,
                                  const pestle_onnx_value_info_t* info,
                                  pestle_value_t* value, int64_t at,
                                  results_t* results) {
  pestle_str_t* name = &results->names[results->count];
  *name = info->name;
  if (at >= 0)
    PESTLE_TRY(
        pestle_onnx_element_name(&import->arena, info->name, (size_t)at, name));
  results->values[results->count++] = value;
  return NULL;
}

// |values| and |lists|: of each output one or the other.
static pestle_status_t flatten(pestle_onnx_import_t* import,
                               pestle_value_t* const* values,
                               const pestle_onnx_sequence_t* const* lists,
                               results_t* results) {
  const pestle_onnx_graph_t* graph = &import->model->graph;
  size_t count = 0;
  for (size_t i = 0; i < graph->output_count; ++i)
    count += values[i] ? 1 : lists[i]->count;
  results->values =
      PESTLE_ARENA_ARRAY(&import->arena, pestle_value_t*, 2 * count + 1);
  results->names = PESTLE_ARENA_ARRAY(&import->arena, pestle_str_t, count + 1);
  if (!results->values || !results->names) return PESTLE_OOM();
  for (size_t i = 0; i < graph->output_count; ++i) {
    const pestle_onnx_value_info_t* info = &graph->outputs[i];
    if (values[i]) PESTLE_TRY(add_result(import, info, values[i], -1, results));
    for (size_t k = 0; !values[i] && k < lists[i]->count; ++k)
      PESTLE_TRY(
          add_result(import, info, lists[i]->values[k], (int64_t)k, results));
  }
  return NULL;
}

static pestle_status_t finish(pestle_onnx_import_t* import,
                              pestle_function_t* function,
                              pestle_builder_t* builder, results_t* results) {
  builder->loc.name = NULL;
  size_t count = results->count;
  PESTLE_TRY(add_shapes(import, function, builder, results->values, &count));
  PESTLE_TRY(pestle_op_return(builder, results->values, count, NULL));
  for (size_t i = 0; i < results->count; ++i) {
    const char* name = pestle_arena_strndup(&import->arena, results->names[i]);
    if (!name) return PESTLE_OOM();
    PESTLE_TRY(pestle_function_set_result_name(function, i, name));
    const pestle_dialect_attr_t attr = {PESTLE_FUNCTION_STRINGS, ""};
    if (pestle_onnx_is_text(import, results->values[i]))
      PESTLE_TRY(pestle_function_set_result_attrs(function, i, &attr, 1));
  }
  erase_unused(function->body->block);
  return NULL;
}

static pestle_status_t import_outputs(pestle_onnx_import_t* import,
                                      pestle_onnx_scope_t* scope,
                                      pestle_function_t* function) {
  size_t size = (import->model->graph.output_count + 1) * sizeof(void*);
  pestle_value_t** values = pestle_arena_alloc_zero(&import->arena, size, 16);
  const pestle_onnx_sequence_t** lists =
      pestle_arena_alloc_zero(&import->arena, size, 16);
  if (!values || !lists) return PESTLE_OOM();
  results_t results = {0};
  PESTLE_TRY(pestle_onnx_import_graph(import, scope, values, lists));
  PESTLE_TRY(flatten(import, values, lists, &results));
  return finish(import, function, &scope->builder, &results);
}

static pestle_status_t import_body(pestle_onnx_import_t* import,
                                   pestle_function_t* function) {
  pestle_builder_t builder = pestle_builder_make(function);
  builder.loc.file = import->source->file;
  import->entry = builder.block;
  pestle_onnx_scope_t scope;
  pestle_status_t status = pestle_onnx_scope_init(
      import, NULL, &import->model->graph, builder, &scope);
  if (!status) status = define_arguments(import, &scope, function);
  if (!status) status = import_outputs(import, &scope, function);
  pestle_onnx_scope_deinit(&scope);
  return status;
}

// Sizes that no machine has are refused here, so that what importers compute from
// extents cannot overflow.
static pestle_status_t check_sizes(pestle_function_t* function) {
  for (size_t i = 0; i < pestle_function_argument_count(function); ++i) {
    const pestle_type_t* type = pestle_function_argument(function, i)->type;
    if (pestle_onnx_type_fits(type)) continue;
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "input '%s' takes %lld bytes, more than any machine "
                        "has; give it smaller extents",
                        pestle_function_argument_name(function, i),
                        (long long)pestle_type_bytes(type));
  }
  return NULL;
}

static pestle_status_t import_into(pestle_onnx_import_t* import,
                                   const pestle_type_t* types, size_t count) {
  kept_t* kept;
  PESTLE_TRY(keep(import->source, import->module, &kept));
  import->files = &kept->files;
  PESTLE_TRY(pestle_onnx_check_ops(import));
  pestle_function_t* function;
  PESTLE_TRY(add_function(import->source, import->module, &import->arena, types,
                          count, &function));
  PESTLE_TRY(check_sizes(function));
  PESTLE_TRY(import_body(import, function));
  // Tensors lie between what was parsed, and the system maps them with it.
  pestle_module_relax(import->module);
  return NULL;
}

// The model's file name without folder and ending, as an identifier: what plans
// and the cache show. ONNX graph names are mostly the exporter's.
static void module_name(const pestle_onnx_source_t* source, char name[64]) {
  pestle_str_t stem = pestle_path_name(source->file);
  size_t dot = pestle_str_rfind_char(stem, '.'), n = 0;
  if (dot > 0 && dot < stem.size) stem.size = dot;
  for (; n < stem.size && n + 1 < 64; ++n) {
    char c = stem.data[n];
    bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9');
    name[n] = ok ? c : '_';
  }
  name[n] = 0;
  if (!n) memcpy(name, "model", 6);
}

pestle_status_t pestle_onnx_import_static(pestle_onnx_source_t* source,
                                          const pestle_type_t* types,
                                          size_t count,
                                          const pestle_control_t* control,
                                          bool* out_needed,
                                          pestle_module_t** out_module) {
  *out_module = NULL;
  char name[64];
  module_name(source, name);
  pestle_onnx_import_t import = {
      .allocator = pestle_context_allocator(source->context),
      .source = source,
      .model = &source->model,
      .control = control,
      .needed = out_needed,
      .opset = pestle_onnx_opset(&source->model, pestle_str("")),
      .fold_budget = (size_t)128 << 20,
      .fold_work = (size_t)512 << 20,
      .loop_nodes = (size_t)1 << 18,
      .strings = pestle_onnx_source_strings(source)};
  pestle_arena_init(import.allocator, &import.arena);
  pestle_map_init(import.allocator, &import.real);
  pestle_map_init(import.allocator, &import.bounds);
  pestle_map_init(import.allocator, &import.rooms);
  pestle_map_init(import.allocator, &import.texts);
  pestle_status_t status =
      pestle_module_create(source->context, name, &import.module);
  if (!status) status = import_into(&import, types, count);
  pestle_map_deinit(&import.texts);
  pestle_map_deinit(&import.rooms);
  pestle_map_deinit(&import.bounds);
  pestle_map_deinit(&import.real);
  pestle_arena_deinit(&import.arena);
  if (status) {
    if (import.module) pestle_module_release(import.module);
    return pestle_status_annotate(status, "while importing '%s'", source->file);
  }
  *out_module = import.module;
  return NULL;
}

// --- Symbolic modules ---

static pestle_status_t specialize(void* self, const pestle_type_t* types,
                                  const pestle_elements_t* values, size_t count,
                                  pestle_module_t** out_module) {
  kept_t* kept = self;
  *out_module = NULL;
  PESTLE_TRY(pestle_onnx_check_types(kept->source, types, count));
  for (size_t i = 0; i < count; ++i) {
    if (pestle_type_is_static(&types[i])) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %zu still has a dimension without extent", i);
  }
  return pestle_onnx_import_values(kept->source, types, values, count, NULL,
                                   out_module);
}

// What is more than elements can be given for is no list of extents or axes.
static bool may_be_value(const pestle_type_t* type) {
  return !pestle_type_is_static(type) ||
         pestle_type_count(type) <= PESTLE_VALUE_ARGUMENT_MAX;
}

static pestle_status_t note_values(pestle_onnx_source_t* source,
                                   pestle_arena_t* arena,
                                   const pestle_type_t* types, size_t count,
                                   const bool* needed,
                                   pestle_module_t* module) {
  bool* flags = pestle_arena_alloc_zero(arena, count + 1, sizeof(bool));
  uint32_t* indices = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  if (!flags || !indices) return PESTLE_OOM();
  PESTLE_TRY(pestle_onnx_expect_values(source, flags, count));
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    bool expected = flags[i] && may_be_value(&types[i]);
    if (expected || (needed && needed[i])) indices[found++] = (uint32_t)i;
  }
  return pestle_module_set_value_arguments(module, indices, found);
}

static pestle_status_t make_symbolic(pestle_onnx_source_t* source,
                                     pestle_arena_t* arena,
                                     const pestle_type_t* types, size_t count,
                                     const bool* needed,
                                     pestle_module_t* module) {
  kept_t* kept;
  PESTLE_TRY(keep(source, module, &kept));
  pestle_onnx_import_t probe = {
      .allocator = pestle_context_allocator(source->context),
      .model = &source->model};
  PESTLE_TRY(pestle_onnx_check_ops(&probe));
  module->specialize = specialize;
  module->specialize_self = kept;
  PESTLE_TRY(note_values(source, arena, types, count, needed, module));
  pestle_function_t* function;
  return add_function(source, module, arena, types, count, &function);
}

pestle_status_t pestle_onnx_import_symbolic(pestle_onnx_source_t* source,
                                            const pestle_type_t* types,
                                            size_t count, const bool* needed,
                                            pestle_module_t** out_module) {
  *out_module = NULL;
  pestle_module_t* module;
  char name[64];
  module_name(source, name);
  PESTLE_TRY(pestle_module_create(source->context, name, &module));
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(source->context), &arena);
  pestle_status_t status =
      make_symbolic(source, &arena, types, count, needed, module);
  pestle_arena_deinit(&arena);
  if (status) {
    pestle_module_release(module);
    return pestle_status_annotate(status, "while importing '%s'", source->file);
  }
  *out_module = module;
  return NULL;
}
