// SPDX-License-Identifier: Apache-2.0
// If: the branch that a constant condition chooses is imported in place; any
// other condition makes a stablehlo.if (bounded_branch.c).
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

static const pestle_onnx_graph_t* branch_of(pestle_onnx_call_t* call,
                                            const char* name) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, name);
  if (!attr || !attr->graph) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "attribute '%s' is missing",
                     name);
    return NULL;
  }
  if (attr->graph->output_count != call->output_count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %s has %zu outputs, the node %zu", name,
                     attr->graph->output_count, call->output_count);
    return NULL;
  }
  return attr->graph;
}

// Gives the first inputs; the others have a default.
static pestle_status_t define_inputs(pestle_onnx_call_t* call,
                                     pestle_onnx_scope_t* scope,
                                     const pestle_onnx_body_t* body) {
  const pestle_onnx_graph_t* graph = scope->graph;
  size_t count = body->count;
  for (size_t i = 0; i < graph->input_count; ++i) {
    pestle_str_t name = graph->inputs[i].name;
    if (i < count && body->in_lists && body->in_lists[i]) {
      PESTLE_TRY(pestle_onnx_scope_define_sequence(call->import, scope, name,
                                                   body->in_lists[i]));
    } else if (i < count) {
      PESTLE_TRY(pestle_onnx_scope_define_input(call->import, scope, name,
                                                body->in[i]));
    } else if (!pestle_onnx_scope_has(scope, name)) {
      return PESTLE_ERROR(MALFORMED,
                          "graph '%.*s' has %zu inputs, of which %zu are given "
                          "and '%.*s' has no initializer",
                          PESTLE_STR_ARG(graph->name), graph->input_count,
                          count, PESTLE_STR_ARG(name));
    }
  }
  return NULL;
}

bool pestle_onnx_import_subgraph(pestle_onnx_call_t* call,
                                 const pestle_onnx_graph_t* graph,
                                 pestle_builder_t* builder,
                                 pestle_value_t* const* inputs, size_t count,
                                 pestle_value_t** values) {
  return pestle_onnx_import_body(
      call, graph, builder,
      &(pestle_onnx_body_t){.in = inputs, .count = count, .out = values});
}

bool pestle_onnx_import_body(pestle_onnx_call_t* call,
                             const pestle_onnx_graph_t* graph,
                             pestle_builder_t* builder,
                             const pestle_onnx_body_t* body) {
  if (call->f.status) return false;
  pestle_onnx_scope_t scope;
  pestle_status_t status = pestle_onnx_scope_init(call->import, call->scope,
                                                  graph, *builder, &scope);
  if (!status && body->in) status = define_inputs(call, &scope, body);
  if (!status) {
    status = pestle_onnx_import_graph(call->import, &scope, body->out,
                                      body->out_lists);
  }
  pestle_onnx_scope_deinit(&scope);
  if (!status) return true;
  // The status names the node inside; say which one it lies in.
  char where[512];
  status = pestle_status_annotate(
      status, "inside %s",
      pestle_onnx_describe(call->node, call->opset, where, sizeof(where)));
  if (call->f.status) {
    pestle_status_release(status);
  } else {
    call->f.status = status;
  }
  return false;
}

static bool read_branch(pestle_onnx_call_t* call,
                        const pestle_onnx_graph_t* graph,
                        pestle_onnx_branch_t* out) {
  return pestle_onnx_begin_branch(call, out) &&
         pestle_onnx_import_subgraph(call, graph, &out->builder, NULL, 0,
                                     out->values);
}

// Whether the branches may give output |i| as they do. Should something that follows not
// take extents that a run tells, a condition that can be had while importing says them.
static bool may_differ(pestle_onnx_call_t* call,
                       const pestle_onnx_branch_t* branches, size_t i) {
  const pestle_type_t* a = branches[0].values[i]->type;
  const pestle_type_t* b = branches[1].values[i]->type;
  bool fits = a->dtype == b->dtype && a->rank == b->rank;
  if (pestle_type_equal(a, b)) return true;
  if (!fits || pestle_onnx_can_need(call, call->inputs[0]))
    pestle_onnx_need(call, call->inputs[0]);
  if (fits) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its branches give output %zu different %s, and its "
                   "condition is neither known while importing nor follows "
                   "from inputs of the model that have at most %d elements",
                   i, a->dtype == b->dtype ? "ranks" : "element types",
                   PESTLE_VALUE_ARGUMENT_MAX);
  return false;
}

// Whether output |i| is of strings, as both branches must have it.
static bool are_texts(pestle_onnx_call_t* call,
                      const pestle_onnx_branch_t* branches, size_t i) {
  bool a = pestle_onnx_is_text(call->import, branches[0].values[i]);
  bool b = pestle_onnx_is_text(call->import, branches[1].values[i]);
  if (a != b) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "one of its branches gives output %zu as strings, the "
                     "other as numbers",
                     i);
  }
  return a && b;
}

static void import_both(pestle_onnx_call_t* call, pestle_value_t* condition,
                        const pestle_onnx_graph_t* then_graph,
                        const pestle_onnx_graph_t* else_graph) {
  pestle_onnx_branch_t branches[2];
  if (!read_branch(call, then_graph, &branches[0]) ||
      !read_branch(call, else_graph, &branches[1])) {
    return;
  }
  bool* texts = pestle_onnx_scratch(call, call->output_count + 1);
  if (!texts) return;
  for (size_t i = 0; i < call->output_count; ++i) {
    texts[i] = are_texts(call, branches, i);
    if (call->f.status || !may_differ(call, branches, i)) return;
  }
  condition = pestle_f_reshape(
      &call->f, pestle_onnx_convert(call, condition, PESTLE_I1), 0, NULL);
  pestle_onnx_merge_branches(call, condition, branches);
  for (size_t i = 0; !call->f.status && i < call->output_count; ++i) {
    if (texts[i]) pestle_onnx_mark_text(call, call->outputs[i]);
  }
}

static bool gives_list(const pestle_onnx_graph_t* graph) {
  for (size_t i = 0; i < graph->output_count; ++i) {
    const pestle_onnx_value_info_t* info = &graph->outputs[i];
    if (info->is_list || (info->is_optional && !info->is_tensor)) return true;
  }
  return false;
}

void pestle_onnx_import_if(pestle_onnx_call_t* call) {
  pestle_value_t* condition = call->inputs[0];
  const pestle_onnx_graph_t* then_graph = branch_of(call, "then_branch");
  const pestle_onnx_graph_t* else_graph = branch_of(call, "else_branch");
  if (!then_graph || !else_graph) return;
  const pestle_elements_t* known = pestle_value_constant(condition);
  if (!known && (gives_list(then_graph) || gives_list(else_graph))) {
    pestle_onnx_need(call, condition);
    pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "it gives a sequence or an optional, so that its condition "
        "has to be known while importing");
    return;
  }
  if (!known) {
    import_both(call, condition, then_graph, else_graph);
    return;
  }
  if (pestle_type_count(&known->type) != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its condition must be one boolean");
    return;
  }
  bool taken = pestle_onnx_element_i64(known, 0) != 0;
  pestle_onnx_import_body(
      call, taken ? then_graph : else_graph, &call->f.builder,
      &(pestle_onnx_body_t){.out = call->outputs, .out_lists = call->made});
}
