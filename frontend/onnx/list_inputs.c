// SPDX-License-Identifier: Apache-2.0
// Inputs of a model that are sequences, or optional ones: each becomes as many inputs as
// the caller gives tensors, and a node that makes a sequence of them.
//
//   x: seq(f32)  ->  x[0], x[1]: f32;  x = SequenceConstruct(x[0], x[1])
//
// How many those are is what the bindings of shapes and constants name. Of a sequence
// that nothing is given of there are none; such an optional is without an element.
#include <stdio.h>

#include "base/mem.h"
#include "frontend/onnx/source.h"

enum { MOST_TENSORS = 65536 };

// The number in "name[number]"; -1 where |text| is no such element of |name|.
static int64_t element_number(const char* text, pestle_str_t name) {
  int64_t number;
  pestle_str_t rest = pestle_str(text ? text : "");
  if (rest.size < name.size + 3 || memcmp(rest.data, name.data, name.size) ||
      rest.data[name.size] != '[' || rest.data[rest.size - 1] != ']')
    return -1;
  rest = pestle_str_make(rest.data + name.size + 1, rest.size - name.size - 2);
  return pestle_str_parse_i64(rest, &number) && number >= 0 ? number : -1;
}

static pestle_status_t count_tensors(const pestle_import_options_t* options,
                                     pestle_str_t name, size_t* out_count) {
  int64_t most = -1;
  for (size_t i = 0; options && i < options->shape_count; ++i) {
    int64_t number = element_number(options->shapes[i].input, name);
    if (number > most) most = number;
  }
  for (size_t i = 0; options && i < options->const_count; ++i) {
    int64_t number = element_number(options->consts[i].input, name);
    if (number > most) most = number;
  }
  if (most >= MOST_TENSORS) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "tensor %lld of input '%.*s' is given; a sequence may "
                        "have at most %d",
                        (long long)most, PESTLE_STR_ARG(name), MOST_TENSORS);
  }
  *out_count = (size_t)(most + 1);
  return NULL;
}

pestle_status_t pestle_onnx_element_name(pestle_arena_t* arena,
                                         pestle_str_t name, size_t index,
                                         pestle_str_t* out) {
  char text[24];
  int size = snprintf(text, sizeof(text), "[%zu]", index);
  char* data = pestle_arena_alloc(arena, name.size + (size_t)size + 1, 1);
  if (!data) return PESTLE_OOM();
  if (name.size) memcpy(data, name.data, name.size);
  memcpy(data + name.size, text, (size_t)size + 1);
  *out = pestle_str_make(data, name.size + (size_t)size);
  return NULL;
}

// The inputs that |info| becomes, and the node that joins them.
static pestle_status_t spread_one(pestle_arena_t* arena,
                                  const pestle_onnx_value_info_t* info,
                                  size_t count,
                                  pestle_onnx_value_info_t* out_infos,
                                  pestle_onnx_node_t* out_node) {
  const char* op = count               ? "SequenceConstruct"
                   : info->is_optional ? "Optional"
                                       : "SequenceEmpty";
  *out_node = (pestle_onnx_node_t){
      .op_type = pestle_str(op),
      .inputs = PESTLE_ARENA_ARRAY(arena, pestle_str_t, count + 1),
      .outputs = PESTLE_ARENA_ARRAY(arena, pestle_str_t, 1),
      .input_count = (uint32_t)count,
      .output_count = 1};
  if (!out_node->inputs || !out_node->outputs) return PESTLE_OOM();
  out_node->outputs[0] = info->name;
  for (size_t i = 0; i < count; ++i) {
    out_infos[i] = *info;
    out_infos[i].is_tensor = true;
    out_infos[i].is_list = out_infos[i].is_optional = false;
    PESTLE_TRY(
        pestle_onnx_element_name(arena, info->name, i, &out_infos[i].name));
    out_node->inputs[i] = out_infos[i].name;
  }
  return NULL;
}

pestle_status_t pestle_onnx_spread_lists(
    pestle_onnx_source_t* source, const pestle_import_options_t* options) {
  pestle_onnx_graph_t* graph = &source->model.graph;
  size_t lists = 0, tensors = 0, at = 0;
  size_t* counts =
      PESTLE_ARENA_ARRAY(&source->arena, size_t, graph->input_count + 1);
  if (!counts) return PESTLE_OOM();
  for (size_t i = 0; i < graph->input_count; ++i) {
    counts[i] = 1;
    if (!graph->inputs[i].is_list) continue;
    PESTLE_TRY(count_tensors(options, graph->inputs[i].name, &counts[i]));
    tensors += counts[i];
    ++lists;
  }
  if (!lists) return NULL;
  pestle_onnx_value_info_t* infos = PESTLE_ARENA_ARRAY(
      &source->arena, pestle_onnx_value_info_t, graph->input_count + tensors);
  pestle_onnx_node_t* nodes = PESTLE_ARENA_ARRAY(
      &source->arena, pestle_onnx_node_t, graph->node_count + lists);
  if (!infos || !nodes) return PESTLE_OOM();
  for (size_t i = 0; i < graph->node_count; ++i)
    nodes[i] = graph->nodes[i];
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (graph->inputs[i].is_list) {
      pestle_onnx_node_t* node = &nodes[graph->node_count];
      PESTLE_TRY(spread_one(&source->arena, &graph->inputs[i], counts[i],
                            &infos[at], node));
      node->index = (uint32_t)graph->node_count++;
    } else {
      infos[at] = graph->inputs[i];
    }
    at += counts[i];
  }
  graph->inputs = infos;
  graph->input_count = at;
  graph->nodes = nodes;
  return NULL;
}
