// SPDX-License-Identifier: Apache-2.0
// Names. A subgraph sees the names of the graphs around it; a stored tensor
// becomes a constant where its graph is being built, at the first read.
#include "base/mem.h"
#include "frontend/onnx/emit.h"

static pestle_status_t put_symbol(pestle_onnx_import_t* import,
                                  pestle_onnx_scope_t* scope, pestle_str_t name,
                                  pestle_onnx_symbol_t symbol) {
  bool added;
  pestle_map_value_t* slot =
      pestle_map_put(&scope->symbols, name.data, name.size, &added);
  if (!slot) return PESTLE_OOM();
  if (!added) {
    return PESTLE_ERROR(
        MALFORMED, "the name '%.*s' is defined twice in graph '%.*s'",
        PESTLE_STR_ARG(name), PESTLE_STR_ARG(scope->graph->name));
  }
  pestle_onnx_symbol_t* copy =
      PESTLE_ARENA_NEW(&import->arena, pestle_onnx_symbol_t);
  if (!copy) {
    pestle_map_remove(&scope->symbols, name.data, name.size);
    return PESTLE_OOM();
  }
  *copy = symbol;
  slot->ptr = copy;
  return NULL;
}

static pestle_status_t define_initializers(pestle_onnx_import_t* import,
                                           pestle_onnx_scope_t* scope) {
  const pestle_onnx_graph_t* graph = scope->graph;
  for (size_t i = 0; i < graph->initializer_count; ++i) {
    const pestle_onnx_tensor_t* tensor = &graph->initializers[i];
    PESTLE_TRY(put_symbol(import, scope, tensor->name,
                          (pestle_onnx_symbol_t){.tensor = tensor}));
  }
  return NULL;
}

pestle_status_t pestle_onnx_scope_init(pestle_onnx_import_t* import,
                                       pestle_onnx_scope_t* parent,
                                       const pestle_onnx_graph_t* graph,
                                       pestle_builder_t builder,
                                       pestle_onnx_scope_t* out_scope) {
  *out_scope = (pestle_onnx_scope_t){
      .parent = parent, .graph = graph, .builder = builder};
  pestle_map_init(import->allocator, &out_scope->symbols);
  return define_initializers(import, out_scope);
}

void pestle_onnx_scope_deinit(pestle_onnx_scope_t* scope) {
  pestle_map_deinit(&scope->symbols);
}

pestle_status_t pestle_onnx_scope_define(pestle_onnx_import_t* import,
                                         pestle_onnx_scope_t* scope,
                                         pestle_str_t name,
                                         pestle_value_t* value) {
  return put_symbol(import, scope, name,
                    (pestle_onnx_symbol_t){.value = value});
}

pestle_status_t pestle_onnx_scope_define_input(pestle_onnx_import_t* import,
                                               pestle_onnx_scope_t* scope,
                                               pestle_str_t name,
                                               pestle_value_t* value) {
  pestle_map_value_t* slot = pestle_map_find_str(&scope->symbols, name);
  pestle_onnx_symbol_t* symbol = slot ? slot->ptr : NULL;
  if (!symbol || !symbol->tensor)
    return pestle_onnx_scope_define(import, scope, name, value);
  *symbol = (pestle_onnx_symbol_t){.value = value};
  return NULL;
}

bool pestle_onnx_scope_has(const pestle_onnx_scope_t* scope,
                           pestle_str_t name) {
  return pestle_map_find_str(&scope->symbols, name) != NULL;
}

pestle_status_t pestle_onnx_scope_define_sequence(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope, pestle_str_t name,
    const pestle_onnx_sequence_t* sequence) {
  return put_symbol(import, scope, name,
                    (pestle_onnx_symbol_t){.sequence = sequence});
}

const pestle_onnx_sequence_t* pestle_onnx_scope_sequence(
    const pestle_onnx_scope_t* scope, pestle_str_t name) {
  for (; scope; scope = scope->parent) {
    const pestle_map_value_t* slot = pestle_map_find_str(&scope->symbols, name);
    if (slot) return ((const pestle_onnx_symbol_t*)slot->ptr)->sequence;
  }
  return NULL;
}

// Writes the constant of a stored tensor into |scope|'s block.
static pestle_status_t materialize(pestle_onnx_import_t* import,
                                   pestle_onnx_scope_t* scope,
                                   pestle_onnx_symbol_t* symbol) {
  pestle_elements_t elements;
  bool text = symbol->tensor->data_type == PESTLE_ONNX_STRING;
  pestle_arena_t* arena = &import->module->arena;
  PESTLE_TRY(text ? pestle_onnx_tensor_ids(symbol->tensor, import->strings,
                                           arena, &elements)
                  : pestle_onnx_tensor_elements(symbol->tensor, import->files,
                                                arena, &elements));
  pestle_attr_t attr = {.name = PESTLE_ATTR_value,
                        .kind = PESTLE_ATTR_KIND_ELEMENTS,
                        .as.elements = &elements};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CONSTANT,
                             .attrs = &attr,
                             .attr_count = 1,
                             .share_elements = true};
  pestle_builder_t builder = scope->builder;
  builder.loc.name = pestle_arena_strndup(&import->arena, symbol->tensor->name);
  if (!builder.loc.name) return PESTLE_OOM();
  pestle_node_t* node;
  PESTLE_TRY(pestle_node_create(&builder, &spec, &node));
  symbol->value = pestle_node_result(node, 0);
  return text ? pestle_onnx_note_text(import, symbol->value) : NULL;
}

pestle_status_t pestle_onnx_scope_find(pestle_onnx_import_t* import,
                                       pestle_onnx_scope_t* scope,
                                       pestle_str_t name,
                                       pestle_value_t** out_value) {
  *out_value = NULL;
  for (; scope; scope = scope->parent) {
    pestle_map_value_t* slot = pestle_map_find_str(&scope->symbols, name);
    if (!slot) continue;
    pestle_onnx_symbol_t* symbol = slot->ptr;
    if (!symbol->value && symbol->tensor) {
      PESTLE_TRY(materialize(import, scope, symbol));
    }
    *out_value = symbol->value;
    return NULL;
  }
  return NULL;
}
