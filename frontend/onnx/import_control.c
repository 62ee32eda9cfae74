// SPDX-License-Identifier: Apache-2.0
// If: the branch that a constant condition chooses is imported in place; any
// other condition makes a stablehlo.if. Branches whose results differ in extents give
// them with room for the longer, and how long they really are as results beside them.
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

// Gives the first |count| inputs; the others have a default.
static pestle_status_t define_inputs(pestle_onnx_call_t* call,
                                     pestle_onnx_scope_t* scope,
                                     pestle_value_t* const* inputs,
                                     size_t count) {
  const pestle_onnx_graph_t* graph = scope->graph;
  for (size_t i = 0; i < graph->input_count; ++i) {
    pestle_str_t name = graph->inputs[i].name;
    if (i < count) {
      PESTLE_TRY(
          pestle_onnx_scope_define_input(call->import, scope, name, inputs[i]));
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
  if (call->f.status) return false;
  pestle_onnx_scope_t scope;
  pestle_status_t status = pestle_onnx_scope_init(call->import, call->scope,
                                                  graph, *builder, &scope);
  if (!status && inputs) status = define_inputs(call, &scope, inputs, count);
  if (!status) status = pestle_onnx_import_graph(call->import, &scope, values);
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

// A branch in a region of its own; where it ends is left open, for the branches to
// agree on.
typedef struct branch_t {
  pestle_region_t* region;
  pestle_builder_t builder;
  pestle_value_t** values;  // what it gives, then the extents that go with that
} branch_t;

static bool read_branch(pestle_onnx_call_t* call,
                        const pestle_onnx_graph_t* graph, branch_t* out) {
  pestle_module_t* module = call->import->module;
  pestle_block_t* block;
  out->values = pestle_onnx_scratch(
      call, (call->output_count * (PESTLE_MAX_RANK + 1) + 1) *
                sizeof(pestle_value_t*));
  if (!out->values ||
      pestle_onnx_keep(
          call, pestle_region_create(module, NULL, 0, &out->region, &block))) {
    return false;
  }
  out->builder = (pestle_builder_t){
      .module = module, .block = block, .loc = call->f.builder.loc};
  return pestle_onnx_import_subgraph(call, graph, &out->builder, NULL, 0,
                                     out->values);
}

// Results of the if, one for each output and then the extents that a run tells.
typedef struct merge_t {
  pestle_onnx_call_t* call;
  branch_t branches[2];
  size_t count;
} merge_t;

// Whether the branches may give output |i| as they do. Should something that follows not
// take extents that a run tells, a condition that can be had while importing says them.
static bool may_differ(merge_t* m, size_t i) {
  pestle_onnx_call_t* call = m->call;
  const pestle_type_t* a = m->branches[0].values[i]->type;
  const pestle_type_t* b = m->branches[1].values[i]->type;
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

// What branch |b| gives as output |i|, with as much behind it as |dims| has room for.
static void widen(merge_t* m, branch_t* b, size_t i, const int64_t* dims) {
  pestle_builder_t outer = m->call->f.builder;
  m->call->f.builder = b->builder;
  b->values[i] = pestle_onnx_widen(m->call, b->values[i], dims);
  b->builder = m->call->f.builder;
  m->call->f.builder = outer;
}

// The result that is the extent of output |i| along |axis|, or 0: both have the one of
// |*out_size|, NULL where that is the type's.
static size_t merge_extent(merge_t* m, size_t i, int32_t axis,
                           pestle_value_t** out_size) {
  pestle_onnx_call_t* call = m->call;
  pestle_value_t* sizes[2];
  int64_t dims[2];
  for (int k = 0; k < 2; ++k) {
    const pestle_value_t* x = m->branches[k].values[i];
    sizes[k] = pestle_onnx_real_size(call->import, x, axis);
    dims[k] = pestle_onnx_dim(x, axis);
  }
  *out_size = sizes[0];
  if (sizes[0] == sizes[1] && dims[0] == dims[1]) return 0;
  pestle_builder_t outer = call->f.builder;
  for (int k = 0; k < 2; ++k) {
    branch_t* b = &m->branches[k];
    call->f.builder = b->builder;
    b->values[m->count] =
        sizes[k] ? sizes[k] : pestle_onnx_size_number(call, dims[k]);
    b->builder = call->f.builder;
  }
  call->f.builder = outer;
  return m->count++;
}

// How long output |i| is: |places| are the results that say it, 0 for none.
static bool merge_output(merge_t* m, size_t i, size_t* places,
                         pestle_value_t** sizes) {
  branch_t *a = &m->branches[0], *b = &m->branches[1];
  int64_t dims[PESTLE_MAX_RANK];
  if (!may_differ(m, i)) return false;
  for (int32_t axis = 0; axis < rank_of(a->values[i]); ++axis) {
    int64_t x = pestle_onnx_dim(a->values[i], axis);
    int64_t y = pestle_onnx_dim(b->values[i], axis);
    dims[axis] = x > y ? x : y;
    places[axis] = merge_extent(m, i, axis, &sizes[axis]);
  }
  widen(m, a, i, dims);
  widen(m, b, i, dims);
  return !m->call->f.status;
}

static bool end_branches(merge_t* m) {
  for (int k = 0; k < 2; ++k) {
    branch_t* b = &m->branches[k];
    if (m->call->f.status ||
        pestle_onnx_keep(m->call, pestle_op_return(&b->builder, b->values,
                                                   m->count, NULL))) {
      return false;
    }
  }
  return true;
}

static void import_both(pestle_onnx_call_t* call, pestle_value_t* condition,
                        const pestle_onnx_graph_t* then_graph,
                        const pestle_onnx_graph_t* else_graph) {
  merge_t m = {.call = call, .count = call->output_count};
  size_t axes = call->output_count * PESTLE_MAX_RANK + 1;
  size_t* places = pestle_onnx_scratch(call, axes * sizeof(size_t));
  pestle_value_t** sizes =
      pestle_onnx_scratch(call, axes * sizeof(pestle_value_t*));
  if (!places || !sizes || !read_branch(call, then_graph, &m.branches[0]) ||
      !read_branch(call, else_graph, &m.branches[1])) {
    return;
  }
  for (size_t i = 0; i < call->output_count; ++i) {
    size_t first = i * PESTLE_MAX_RANK;
    if (!merge_output(&m, i, places + first, sizes + first)) return;
  }
  if (!end_branches(&m)) return;
  condition = pestle_f_reshape(
      &call->f, pestle_onnx_convert(call, condition, PESTLE_I1), 0, NULL);
  pestle_region_t* regions[] = {m.branches[0].region, m.branches[1].region};
  pestle_node_spec_t spec = {.op = PESTLE_OP_IF,
                             .operands = &condition,
                             .operand_count = 1,
                             .regions = regions,
                             .region_count = 2};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  for (size_t i = 0; node && i < call->output_count; ++i) {
    pestle_value_t* y = pestle_node_result(node, i);
    for (int32_t axis = 0; axis < rank_of(y); ++axis) {
      size_t at = i * PESTLE_MAX_RANK + (size_t)axis;
      pestle_value_t* size =
          places[at] ? pestle_node_result(node, places[at]) : sizes[at];
      pestle_onnx_set_real(call, y, axis, size);
    }
    call->outputs[i] = pestle_onnx_end_real(call, y);
  }
}

void pestle_onnx_import_if(pestle_onnx_call_t* call) {
  pestle_value_t* condition = call->inputs[0];
  const pestle_onnx_graph_t* then_graph = branch_of(call, "then_branch");
  const pestle_onnx_graph_t* else_graph = branch_of(call, "else_branch");
  if (!then_graph || !else_graph) return;
  const pestle_elements_t* known = pestle_value_constant(condition);
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
  pestle_onnx_import_subgraph(call, taken ? then_graph : else_graph,
                              &call->f.builder, NULL, 0, call->outputs);
}

// --- Optionals ---

// An optional is a tensor that is there, or an input that is left out: those
// that only a run tells are no tensors.
void pestle_onnx_import_has_element(pestle_onnx_call_t* call) {
  pestle_type_t type = {.dtype = PESTLE_I1};
  call->outputs[0] =
      pestle_onnx_splat_int(call, &type, pestle_onnx_input(call, 0) != NULL);
}
