// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says of itself.
#include "frontend/info.h"

#include "base/checked.h"
#include "base/mem.h"
#include "frontend/onnx/model.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"

typedef struct describe_t {
  pestle_info_t* to;
  pestle_onnx_model_t model;
  pestle_function_t* entry;   // of what was imported, or NULL
  pestle_map_t initializers;  // names
  pestle_map_t inputs;        // name -> pestle_onnx_value_info_t*
  pestle_map_t arguments;     // names of those of |entry|
} describe_t;

// --- Ops and weights ---

static pestle_status_t add_node(pestle_info_t* to,
                                const pestle_onnx_node_t* node) {
  pestle_str_t domain = node->domain;
  bool is_standard =
      !domain.size || pestle_str_equal(domain, PESTLE_STR("ai.onnx"));
  if (is_standard) return pestle_info_add_op(to, node->op_type, 1);
  pestle_strbuf_t name;
  pestle_strbuf_init(to->ops.allocator, &name);
  pestle_strbuf_append(&name, domain);
  pestle_strbuf_append_char(&name, '.');
  pestle_strbuf_append(&name, node->op_type);
  pestle_status_t status = pestle_strbuf_status(&name);
  if (!status) status = pestle_info_add_op(to, pestle_strbuf_view(&name), 1);
  pestle_strbuf_deinit(&name);
  return status;
}

static void add_tensor(pestle_info_t* to, const pestle_onnx_tensor_t* t) {
  int64_t count = t->indices ? t->stored : 1;
  for (int32_t d = 0; d < t->rank && !t->indices; ++d) {
    if (t->dims[d] < 0 || !pestle_checked_mul_i64(count, t->dims[d], &count))
      return;
  }
  pestle_info_add_weight(to, pestle_onnx_dtype(t->data_type), (uint64_t)count);
}

// Bodies lie inside each other at most PESTLE_PROTO_MAX_DEPTH deep.
static pestle_status_t add_graph(pestle_info_t* to,
                                 const pestle_onnx_graph_t* graph) {
  for (size_t i = 0; i < graph->initializer_count; ++i)
    add_tensor(to, &graph->initializers[i]);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    PESTLE_TRY(add_node(to, node));
    for (uint32_t a = 0; a < node->attr_count; ++a) {
      const pestle_onnx_attr_t* attr = &node->attrs[a];
      if (attr->tensor) add_tensor(to, attr->tensor);
      if (attr->graph) PESTLE_TRY(add_graph(to, attr->graph));
    }
  }
  return NULL;
}

// --- Inputs and outputs ---

// |type|: what is known beyond |info|, or NULL.
static pestle_status_t take_value(pestle_info_t* to,
                                  const pestle_onnx_value_info_t* info,
                                  const pestle_type_t* type,
                                  pestle_model_value_t* out,
                                  pestle_model_kind_t* kind) {
  *out = (pestle_model_value_t){
      .name = pestle_info_text(to, info->name),
      .dtype = info->is_tensor || info->is_list
                   ? pestle_onnx_io_dtype(info->data_type)
                   : PESTLE_NONE,
      .rank = info->is_tensor && info->has_shape ? info->rank : -1};
  *kind = info->is_list                           ? PESTLE_MODEL_LIST
          : info->data_type == PESTLE_ONNX_STRING ? PESTLE_MODEL_STRINGS
                                                  : PESTLE_MODEL_NUMBERS;
  if (type) {
    out->dtype = type->dtype;
    out->rank = type->rank;
  }
  size_t rank = out->rank > 0 ? (size_t)out->rank : 0;
  int64_t* dims = PESTLE_ARENA_ARRAY(&to->arena, int64_t, rank + 1);
  const char** names = PESTLE_ARENA_ARRAY(&to->arena, const char*, rank + 1);
  if (!out->name || !dims || !names) return PESTLE_OOM();
  bool declared = info->has_shape && info->rank == out->rank;
  for (size_t i = 0; i < rank; ++i) {
    const pestle_onnx_dim_t* dim = declared ? &info->dims[i] : NULL;
    dims[i] = type               ? type->dims[i]
              : dim->extent >= 0 ? dim->extent
                                 : PESTLE_DIM_DYNAMIC;
    bool has_name = dims[i] == PESTLE_DIM_DYNAMIC && dim;
    names[i] = has_name ? pestle_info_text(to, dim->param) : "";
    if (!names[i]) return PESTLE_OOM();
  }
  out->dims = dims;
  out->dim_names = names;
  return NULL;
}

static bool has(const pestle_map_t* names, pestle_str_t name) {
  return pestle_map_find_str(names, name) != NULL;
}

// The arguments of what was imported, then the inputs with defaults.
static pestle_status_t take_imported(describe_t* d, pestle_model_value_t* out,
                                     pestle_model_kind_t* kinds,
                                     size_t* out_count) {
  pestle_module_t* module = d->entry->module;
  size_t count = pestle_function_argument_count(d->entry), deciding = 0;
  for (size_t i = 0; i < count; ++i) {
    pestle_type_t type =
        pestle_value_type(pestle_function_argument(d->entry, i));
    const char* own = pestle_function_argument_name(d->entry, i);
    pestle_str_t name = pestle_str(own ? own : "");
    const pestle_map_value_t* slot = pestle_map_find_str(&d->inputs, name);
    const pestle_onnx_value_info_t unknown = {.name = name},
                                   *info = slot ? slot->ptr : &unknown;
    // An input of unknown rank is an argument of rank 0 until a shape is given.
    bool has_rank = !slot || info->has_shape || type.rank;
    pestle_model_kind_t* kind = &kinds[*out_count];
    pestle_model_value_t* value = &out[(*out_count)++];
    PESTLE_TRY(take_value(d->to, info, has_rank ? &type : NULL, value, kind));
    value->decides_shapes = pestle_module_value_argument(module, deciding) == i;
    deciding += value->decides_shapes;
    if (!pestle_map_set_str(&d->arguments, name, 1)) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t take_inputs(describe_t* d) {
  const pestle_onnx_graph_t* graph = &d->model.graph;
  pestle_model_info_t* info = &d->to->info;
  pestle_model_value_t* inputs = PESTLE_ARENA_ARRAY(
      &d->to->arena, pestle_model_value_t, graph->input_count + 1);
  pestle_model_kind_t* kinds = PESTLE_ARENA_ARRAY(
      &d->to->arena, pestle_model_kind_t, graph->input_count + 1);
  if (!inputs || !kinds) return PESTLE_OOM();
  if (d->entry) PESTLE_TRY(take_imported(d, inputs, kinds, &info->input_count));
  for (size_t i = 0; i < graph->input_count; ++i) {
    const pestle_onnx_value_info_t* input = &graph->inputs[i];
    bool has_default = has(&d->initializers, input->name);
    bool is_told = d->entry && !input->is_list;
    if (has_default ? d->model.ir_version < 4 : is_told) continue;
    if (has(&d->arguments, input->name)) continue;
    pestle_model_kind_t* kind = &kinds[info->input_count];
    pestle_model_value_t* value = &inputs[info->input_count++];
    PESTLE_TRY(take_value(d->to, input, NULL, value, kind));
    value->has_default = has_default;
  }
  info->inputs = inputs;
  info->input_kinds = kinds;
  return NULL;
}

static pestle_str_t result_name(const describe_t* d, size_t index) {
  bool named = d->entry && index < d->entry->result_name_count;
  return pestle_str(named ? d->entry->result_names[index] : NULL);
}

static pestle_status_t take_outputs(const describe_t* d) {
  const pestle_onnx_graph_t* graph = &d->model.graph;
  pestle_model_info_t* info = &d->to->info;
  size_t count = graph->output_count, known = 0, next = 0;
  pestle_model_value_t* outputs =
      PESTLE_ARENA_ARRAY(&d->to->arena, pestle_model_value_t, count + 1);
  pestle_model_kind_t* kinds =
      PESTLE_ARENA_ARRAY(&d->to->arena, pestle_model_kind_t, count + 1);
  if (!outputs || !kinds) return PESTLE_OOM();
  // A symbolic module has no body, and so no results.
  if (d->entry) (void)pestle_function_result_count(d->entry, &known);
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = NULL;
    pestle_str_t name = graph->outputs[i].name, own = result_name(d, next);
    if (next < known && pestle_str_equal(own, name))
      type = pestle_function_result_type(d->entry, next++);
    // A sequence is a result for each tensor, of its name and a bracket.
    for (; !type && next < known; own = result_name(d, ++next)) {
      if (!pestle_str_starts_with(own, name) || own.size <= name.size ||
          own.data[name.size] != '[')
        break;
    }
    PESTLE_TRY(
        take_value(d->to, &graph->outputs[i], type, &outputs[i], &kinds[i]));
  }
  info->outputs = outputs;
  info->output_kinds = kinds;
  info->output_count = count;
  return NULL;
}

// --- The model ---

static pestle_status_t take_opsets(const describe_t* d) {
  size_t count = d->model.opset_count;
  pestle_model_opset_t* opsets =
      PESTLE_ARENA_ARRAY(&d->to->arena, pestle_model_opset_t, count + 1);
  if (!opsets) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    const pestle_onnx_opset_t* own = &d->model.opsets[i];
    opsets[i].version = own->version;
    opsets[i].domain =
        own->domain.size ? pestle_info_text(d->to, own->domain) : "ai.onnx";
    if (!opsets[i].domain) return PESTLE_OOM();
  }
  d->to->info.opsets = opsets;
  d->to->info.opset_count = count;
  return NULL;
}

static pestle_status_t take_producer(const describe_t* d) {
  pestle_strbuf_t text;
  pestle_strbuf_init(d->to->ops.allocator, &text);
  pestle_strbuf_append(&text, d->model.producer);
  if (d->model.producer_version.size) pestle_strbuf_append_char(&text, ' ');
  pestle_strbuf_append(&text, d->model.producer_version);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    d->to->info.producer = pestle_info_text(d->to, pestle_strbuf_view(&text));
    if (!d->to->info.producer) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t describe(describe_t* d) {
  const pestle_onnx_graph_t* graph = &d->model.graph;
  for (size_t i = 0; i < graph->initializer_count; ++i) {
    if (!pestle_map_set_str(&d->initializers, graph->initializers[i].name, 1))
      return PESTLE_OOM();
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_map_set_str_ptr(&d->inputs, graph->inputs[i].name,
                                &graph->inputs[i])) {
      return PESTLE_OOM();
    }
  }
  d->to->info.ir_version = d->model.ir_version;
  PESTLE_TRY(take_producer(d));
  PESTLE_TRY(take_opsets(d));
  PESTLE_TRY(take_inputs(d));
  PESTLE_TRY(take_outputs(d));
  PESTLE_TRY(add_graph(d->to, graph));
  for (size_t i = 0; i < d->model.function_count; ++i)
    PESTLE_TRY(add_graph(d->to, &d->model.functions[i].body));
  return NULL;
}

pestle_status_t pestle_onnx_take_info(const void* data, size_t size,
                                      pestle_module_t* module,
                                      pestle_info_t* info) {
  describe_t d = {.to = info};
  if (module) d.entry = pestle_module_entry(module);
  PESTLE_TRY(pestle_onnx_model_read(data, size, &info->arena, &d.model));
  pestle_map_t* const maps[] = {&d.initializers, &d.inputs, &d.arguments};
  for (size_t i = 0; i < 3; ++i)
    pestle_map_init(info->ops.allocator, maps[i]);
  pestle_status_t status = describe(&d);
  for (size_t i = 0; i < 3; ++i)
    pestle_map_deinit(maps[i]);
  return status;
}
