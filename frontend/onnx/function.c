// SPDX-License-Identifier: Apache-2.0
// Functions that a model brings along (FunctionProto): a node that calls one is
// replaced by a copy of its body, in which attributes that refer to those of the
// call have their values, and inputs that the call leaves out are left out.
#include "base/mem.h"
#include "frontend/onnx/emit.h"

// What a body is copied with.
typedef struct copy_t {
  pestle_onnx_call_t* call;
  const pestle_onnx_function_t* function;
  bool omits;  // whether the call leaves an input out
} copy_t;

const pestle_onnx_function_t* pestle_onnx_find_function(
    const pestle_onnx_model_t* model, const pestle_onnx_node_t* node) {
  const pestle_onnx_function_t wanted = {.domain = node->domain,
                                         .overload = node->overload,
                                         .body = {.name = node->op_type}};
  size_t low = 0, high = model->function_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const pestle_onnx_function_t* f = &model->functions[middle];
    int order = pestle_onnx_function_compare(&wanted, f);
    if (!order) return f;
    *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
  }
  return NULL;
}

pestle_onnx_model_t pestle_onnx_function_model(
    const pestle_onnx_model_t* model, const pestle_onnx_function_t* function) {
  pestle_onnx_model_t inner = *model;
  inner.opsets = function->opsets;
  inner.opset_count = function->opset_count;
  return inner;
}

// --- Copying ---

static bool copy_graph(const copy_t* c, const pestle_onnx_graph_t* from,
                       pestle_onnx_graph_t* to);

// The attribute that |name| of the function stands for in this call, or NULL.
static const pestle_onnx_attr_t* argument(const copy_t* c, pestle_str_t name) {
  const pestle_onnx_node_t* node = c->call->node;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (pestle_str_equal(node->attrs[i].name, name)) return &node->attrs[i];
  }
  for (size_t i = 0; i < c->function->default_count; ++i) {
    const pestle_onnx_attr_t* attr = &c->function->defaults[i];
    if (pestle_str_equal(attr->name, name)) return attr;
  }
  return NULL;
}

static bool copy_attr(const copy_t* c, const pestle_onnx_attr_t* from,
                      pestle_onnx_node_t* to) {
  const pestle_onnx_attr_t* value = from;
  // One that the call does not give is left out.
  if (from->reference.size) value = argument(c, from->reference);
  if (!value) return true;
  pestle_onnx_attr_t* attr = &to->attrs[to->attr_count++];
  *attr = *value;
  attr->name = from->name;
  if (!from->graph) return true;
  attr->graph = pestle_onnx_scratch(c->call, sizeof(*attr->graph));
  return attr->graph && copy_graph(c, from->graph, attr->graph);
}

static bool is_given(const pestle_onnx_call_t* call, size_t i) {
  return pestle_onnx_input(call, i) ||
         (i < call->input_count && call->sequences[i]);
}

// Whether |name| is an input of the function that the call leaves out.
static bool is_omitted(const copy_t* c, pestle_str_t name) {
  const pestle_onnx_graph_t* body = &c->function->body;
  for (size_t i = 0; c->omits && i < body->input_count; ++i) {
    if (!pestle_str_equal(body->inputs[i].name, name)) continue;
    return !is_given(c->call, i);
  }
  return false;
}

static bool copy_node(const copy_t* c, const pestle_onnx_node_t* from,
                      pestle_onnx_node_t* to) {
  *to = *from;
  to->attr_count = 0;
  to->attrs = pestle_onnx_scratch(
      c->call, ((size_t)from->attr_count + 1) * sizeof(*to->attrs));
  to->inputs = pestle_onnx_scratch(
      c->call, ((size_t)from->input_count + 1) * sizeof(*to->inputs));
  if (!to->attrs || !to->inputs) return false;
  for (uint32_t i = 0; i < from->input_count; ++i) {
    to->inputs[i] = from->inputs[i];
    if (is_omitted(c, from->inputs[i])) to->inputs[i].size = 0;
  }
  for (uint32_t i = 0; i < from->attr_count; ++i) {
    if (!copy_attr(c, &from->attrs[i], to)) return false;
  }
  return true;
}

static bool copy_graph(const copy_t* c, const pestle_onnx_graph_t* from,
                       pestle_onnx_graph_t* to) {
  size_t* left = &c->call->import->loop_nodes;
  *to = *from;
  if (*left < from->node_count + 1) {
    pestle_onnx_fail(c->call, PESTLE_STATUS_UNSUPPORTED,
                     "functions and loops make too many nodes when they are "
                     "written out");
    return false;
  }
  *left -= from->node_count + 1;
  to->nodes =
      pestle_onnx_scratch(c->call, (from->node_count + 1) * sizeof(*to->nodes));
  if (!to->nodes) return false;
  for (size_t i = 0; i < from->node_count; ++i) {
    if (!copy_node(c, &from->nodes[i], &to->nodes[i])) return false;
  }
  return true;
}

// --- Importing ---

static pestle_status_t define_inputs(const pestle_onnx_call_t* call,
                                     const pestle_onnx_graph_t* body,
                                     pestle_onnx_scope_t* scope) {
  for (size_t i = 0; i < body->input_count; ++i) {
    pestle_value_t* value = pestle_onnx_input(call, i);
    pestle_str_t name = body->inputs[i].name;
    if (value)
      PESTLE_TRY(pestle_onnx_scope_define(call->import, scope, name, value));
    if (i < call->input_count && call->sequences[i]) {
      PESTLE_TRY(pestle_onnx_scope_define_sequence(call->import, scope, name,
                                                   call->sequences[i]));
    }
  }
  return NULL;
}

// The body, whose names are its own, with the opsets that it was written for.
static pestle_status_t import_body(pestle_onnx_call_t* call,
                                   const pestle_onnx_function_t* function,
                                   const pestle_onnx_graph_t* body,
                                   pestle_value_t** values,
                                   const pestle_onnx_sequence_t** lists) {
  pestle_onnx_import_t* import = call->import;
  const pestle_onnx_model_t* outer = import->model;
  pestle_onnx_model_t inner = pestle_onnx_function_model(outer, function);
  int64_t opset = import->opset;
  import->model = &inner;
  import->opset = pestle_onnx_opset(&inner, pestle_str(""));
  ++import->function_depth;
  pestle_onnx_scope_t scope;
  pestle_status_t status =
      pestle_onnx_scope_init(import, NULL, body, call->f.builder, &scope);
  if (!status) status = define_inputs(call, body, &scope);
  if (!status) status = pestle_onnx_import_graph(import, &scope, values, lists);
  pestle_onnx_scope_deinit(&scope);
  --import->function_depth;
  import->opset = opset;
  import->model = outer;
  return status;
}

static bool check_call(pestle_onnx_call_t* call,
                       const pestle_onnx_graph_t* body) {
  if (call->import->function_depth >= PESTLE_ONNX_MOST_CALLS) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "functions call each other more than %d deep",
                     PESTLE_ONNX_MOST_CALLS);
  } else if (call->input_count > body->input_count ||
             call->output_count > body->output_count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu inputs and %zu outputs, the function %zu and "
                     "%zu",
                     call->input_count, call->output_count, body->input_count,
                     body->output_count);
  }
  return !call->f.status;
}

void pestle_onnx_call_function(pestle_onnx_call_t* call,
                               const pestle_onnx_function_t* function) {
  pestle_onnx_graph_t body;
  copy_t copy = {.call = call, .function = function};
  for (size_t i = 0; i < function->body.input_count; ++i)
    copy.omits |= !is_given(call, i);
  if (!check_call(call, &function->body) ||
      !copy_graph(&copy, &function->body, &body)) {
    return;
  }
  pestle_value_t** values = pestle_onnx_scratch(
      call, (body.output_count + 1) * sizeof(pestle_value_t*));
  const pestle_onnx_sequence_t** lists =
      pestle_onnx_scratch(call, (body.output_count + 1) * sizeof(*lists));
  if (!values || !lists) return;
  pestle_status_t status = import_body(call, function, &body, values, lists);
  if (status) {
    char where[512];
    pestle_onnx_describe(call->node, call->opset, where, sizeof(where));
    call->f.status = pestle_status_annotate(
        status, "inside the function that %s calls", where);
    return;
  }
  for (size_t i = 0; i < call->output_count; ++i) {
    call->outputs[i] = values[i];
    call->made[i] = lists[i];
  }
}
