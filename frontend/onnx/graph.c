// SPDX-License-Identifier: Apache-2.0
// Importing the nodes of a graph one after the other.
#include <stdio.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"

static pestle_status_t find_inputs(pestle_onnx_call_t* call) {
  pestle_onnx_import_t* import = call->import;
  const pestle_onnx_node_t* node = call->node;
  call->input_count = node->input_count;
  call->inputs = pestle_arena_alloc_zero(
      &import->arena, (node->input_count + 1) * sizeof(pestle_value_t*), 16);
  call->sequences = pestle_arena_alloc_zero(
      &import->arena, (node->input_count + 1) * sizeof(void*), 16);
  if (!call->inputs || !call->sequences) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!node->inputs[i].size) continue;
    PESTLE_TRY(pestle_onnx_scope_find(import, call->scope, node->inputs[i],
                                      &call->inputs[i]));
    if (call->inputs[i]) continue;
    call->sequences[i] =
        pestle_onnx_scope_sequence(call->scope, node->inputs[i]);
    if (call->sequences[i]) continue;
    char where[512];
    return PESTLE_ERROR(
        MALFORMED,
        "%s reads '%.*s', which no node, input or initializer defines",
        pestle_onnx_describe(node, call->opset, where, sizeof(where)),
        PESTLE_STR_ARG(node->inputs[i]));
  }
  return NULL;
}

// A weight that passes through, by Identity: it keeps its name.
static bool is_stored(const pestle_onnx_call_t* call,
                      const pestle_value_t* value) {
  for (size_t i = 0; i < call->input_count; ++i) {
    if (call->inputs[i] == value) return pestle_value_constant(value) != NULL;
  }
  return false;
}

static pestle_status_t define_outputs(pestle_onnx_call_t* call) {
  const pestle_onnx_node_t* node = call->node;
  char where[512];
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (!node->outputs[i].size) continue;
    if (call->made[i]) {
      PESTLE_TRY(pestle_onnx_scope_define_sequence(
          call->import, call->scope, node->outputs[i], call->made[i]));
      continue;
    }
    if (!call->outputs[i]) {
      return PESTLE_ERROR(
          UNSUPPORTED, "%s: its output %u, '%.*s', is not supported",
          pestle_onnx_describe(node, call->opset, where, sizeof(where)), i,
          PESTLE_STR_ARG(node->outputs[i]));
    }
    PESTLE_TRY(pestle_onnx_scope_define(call->import, call->scope,
                                        node->outputs[i], call->outputs[i]));
    if (!call->outputs[i]->name && !is_stored(call, call->outputs[i])) {
      char* name =
          pestle_arena_strndup(&call->import->module->arena, node->outputs[i]);
      if (!name) return PESTLE_OOM();
      call->outputs[i]->name = name;
    }
  }
  return NULL;
}

static pestle_status_t check_counts(const pestle_onnx_call_t* call,
                                    const pestle_onnx_op_t* op) {
  const pestle_onnx_node_t* node = call->node;
  char where[512];
  pestle_onnx_describe(node, call->opset, where, sizeof(where));
  bool many = op->max_inputs != 255 && node->input_count > op->max_inputs;
  if (node->input_count < op->min_inputs || many) {
    return PESTLE_ERROR(MALFORMED, "%s has %u inputs, it takes %s%u", where,
                        node->input_count, many ? "at most " : "at least ",
                        many ? op->max_inputs : op->min_inputs);
  }
  for (uint32_t i = 0; i < op->min_inputs; ++i) {
    if (node->inputs[i].size) continue;
    return PESTLE_ERROR(MALFORMED, "%s has no input %u, which it needs", where,
                        i);
  }
  if (op->max_outputs != 255 && node->output_count > op->max_outputs) {
    return PESTLE_ERROR(MALFORMED, "%s has %u outputs, it makes at most %u",
                        where, node->output_count, op->max_outputs);
  }
  return NULL;
}

static pestle_status_t check_sequences(const pestle_onnx_call_t* call,
                                       const pestle_onnx_op_t* op) {
  if (op->bounded == PESTLE_ONNX_LIST) return NULL;
  for (size_t i = 0; i < call->input_count; ++i) {
    if (!call->sequences[i]) continue;
    char where[512];
    return PESTLE_ERROR(
        UNSUPPORTED,
        "%s: its input %zu, '%.*s', is a sequence; sequences are taken by ops "
        "on sequences alone",
        pestle_onnx_describe(call->node, call->opset, where, sizeof(where)), i,
        PESTLE_STR_ARG(call->node->inputs[i]));
  }
  return NULL;
}

static void import_rows(pestle_onnx_call_t* call) {
  const pestle_onnx_op_t* op = pestle_onnx_op_find(call->node, call->opset);
  op->fn(call);
  pestle_onnx_keep_real(call, op);
}

// Calls |function|, or if that is NULL the importer of |op|.
static pestle_status_t run_importer(pestle_onnx_call_t* call,
                                    const pestle_onnx_op_t* op,
                                    const pestle_onnx_function_t* function) {
  const pestle_onnx_node_t* node = call->node;
  if (!function) PESTLE_TRY(check_counts(call, op));
  PESTLE_TRY(find_inputs(call));
  if (!function) PESTLE_TRY(check_sequences(call, op));
  call->made = pestle_arena_alloc_zero(
      &call->import->arena, (node->output_count + 1) * sizeof(void*), 16);
  if (!call->made) return PESTLE_OOM();
  call->output_count = node->output_count;
  call->outputs = pestle_arena_alloc_zero(
      &call->import->arena, (node->output_count + 1) * sizeof(pestle_value_t*),
      16);
  if (!call->outputs) return PESTLE_OOM();
  if (function) {
    pestle_onnx_call_function(call, function);
  } else {
    pestle_onnx_check_texts(call, op);
    pestle_onnx_check_bounded(call, op);
    if (op->bounded == PESTLE_ONNX_MAP) pestle_onnx_fit_broadcast(call);
    // Of one input's rows, each for itself, few are made by an op for few.
    bool rows = op->bounded == (PESTLE_ONNX_BATCH | 1 << 3);
    if (rows) pestle_onnx_by_size(call, import_rows);
    if (!call->f.status && !rows) op->fn(call);
    if (op->bounded == PESTLE_ONNX_MAP) pestle_onnx_broadcast_real(call);
    if (!rows) pestle_onnx_keep_real(call, op);
    pestle_onnx_keep_texts(call, op);
  }
  if (call->f.status) return call->f.status;
  return define_outputs(call);
}

// The node's name, or one made of its op and place.
static pestle_status_t set_location(pestle_onnx_import_t* import,
                                    const pestle_onnx_node_t* node,
                                    pestle_builder_t* builder) {
  if (node->name.size) {
    builder->loc.name = pestle_arena_strndup(&import->arena, node->name);
  } else {
    char text[256];
    snprintf(text, sizeof(text), "%.*s_%u", PESTLE_STR_ARG(node->op_type),
             node->index);
    builder->loc.name = pestle_arena_strdup(&import->arena, text);
  }
  return builder->loc.name ? NULL : PESTLE_OOM();
}

static pestle_status_t import_node(pestle_onnx_import_t* import,
                                   pestle_onnx_scope_t* scope,
                                   const pestle_onnx_node_t* node) {
  PESTLE_TRY(set_location(import, node, &scope->builder));
  pestle_onnx_call_t call = {
      .f = {.builder = scope->builder, .hooks = &pestle_onnx_hooks},
      .import = import,
      .scope = scope,
      .node = node,
      .opset = pestle_onnx_opset(import->model, node->domain)};
  const pestle_onnx_function_t* function =
      pestle_onnx_find_function(import->model, node);
  const pestle_onnx_op_t* op = pestle_onnx_op_find(node, call.opset);
  if (!op && !function) {
    char where[512];
    return PESTLE_ERROR(
        UNSUPPORTED, "%s: Pestle cannot import this op",
        pestle_onnx_describe(node, call.opset, where, sizeof(where)));
  }
  return run_importer(&call, op, function);
}

// What |graph| declares of an output: another element type is a fault of the
// model, other extents, which exporters often get wrong, are told alone.
static pestle_status_t check_output(pestle_onnx_import_t* import,
                                    const pestle_onnx_graph_t* graph,
                                    const pestle_onnx_value_info_t* info,
                                    const pestle_value_t* value) {
  const pestle_type_t* type = value->type;
  if (!info->is_tensor || !info->data_type) return NULL;
  bool text = pestle_onnx_is_text(import, value);
  if (text != (info->data_type == PESTLE_ONNX_STRING) ||
      pestle_onnx_io_dtype(info->data_type) != type->dtype) {
    return PESTLE_ERROR(
        MALFORMED,
        "graph '%.*s' declares its output '%.*s' to be of %s, "
        "what its nodes make is of %s",
        PESTLE_STR_ARG(graph->name), PESTLE_STR_ARG(info->name),
        pestle_onnx_dtype_name(info->data_type),
        text ? "strings" : pestle_dtype_info(type->dtype)->name);
  }
  bool fits = !info->has_shape || info->rank == type->rank;
  for (int32_t i = 0; fits && info->has_shape && i < info->rank; ++i) {
    int64_t extent = info->dims[i].extent;
    // Of one that only a run tells the type has the bound.
    fits = extent < 0 || extent == type->dims[i] ||
           pestle_onnx_real_size(import, value, i);
  }
  if (!fits && graph == &import->model->graph) {
    char found[400], wanted[400];
    pestle_onnx_print_declared(info, wanted, sizeof(wanted));
    pestle_onnx_print_dims(type, found, sizeof(found));
    pestle_context_log(import->source->context, PESTLE_LOG_WARN,
                       "%s: output '%.*s' is declared to have the shape %s, it "
                       "has %s",
                       import->source->file, PESTLE_STR_ARG(info->name), wanted,
                       found);
  }
  return NULL;
}

// The same of the tensors of a sequence, whose extents are their own.
static pestle_status_t check_list(pestle_onnx_import_t* import,
                                  const pestle_onnx_graph_t* graph,
                                  const pestle_onnx_value_info_t* info,
                                  const pestle_onnx_sequence_t* list) {
  pestle_onnx_value_info_t one = *info;
  one.is_tensor = info->is_list;
  one.has_shape = false;
  for (size_t i = 0; i < list->count; ++i) {
    if (!list->values[i]) {
      return PESTLE_ERROR(MALFORMED,
                          "place %zu of the sequence '%.*s' holds no tensor", i,
                          PESTLE_STR_ARG(info->name));
    }
    PESTLE_TRY(check_output(import, graph, &one, list->values[i]));
  }
  return NULL;
}

pestle_status_t pestle_onnx_import_graph(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope,
    pestle_value_t** out_values, const pestle_onnx_sequence_t** out_lists) {
  const pestle_onnx_graph_t* graph = scope->graph;
  const pestle_onnx_node_t** nodes;
  PESTLE_TRY(pestle_onnx_order(graph, &import->arena, &nodes));
  for (size_t i = 0; i < graph->node_count; ++i) {
    PESTLE_TRY(pestle_onnx_check_control(import->control, (int64_t)i,
                                         (int64_t)graph->node_count));
    PESTLE_TRY(import_node(import, scope, nodes[i]));
  }
  for (size_t i = 0; i < graph->output_count; ++i) {
    pestle_str_t name = graph->outputs[i].name;
    PESTLE_TRY(pestle_onnx_scope_find(import, scope, name, &out_values[i]));
    if (out_values[i]) {
      PESTLE_TRY(
          check_output(import, graph, &graph->outputs[i], out_values[i]));
      continue;
    }
    const pestle_onnx_sequence_t* list =
        pestle_onnx_scope_sequence(scope, name);
    if (list && out_lists) {
      PESTLE_TRY(check_list(import, graph, &graph->outputs[i], list));
      out_lists[i] = list;
      continue;
    }
    if (list) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "output '%.*s' of graph '%.*s' is a sequence; those "
                          "of a graph must be tensors",
                          PESTLE_STR_ARG(name), PESTLE_STR_ARG(graph->name));
    }
    return PESTLE_ERROR(MALFORMED,
                        "output '%.*s' of graph '%.*s' is made by no node",
                        PESTLE_STR_ARG(name), PESTLE_STR_ARG(graph->name));
  }
  return NULL;
}
