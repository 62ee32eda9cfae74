// SPDX-License-Identifier: Apache-2.0
// Inputs that say how much of other inputs is real: a cache is laid out for as many rows as
// there is room for, and one number says how many it has.
//
//   past [1, 8, room, 64], length "past"  ->  past, and past_length: i64 of rank 0
#include <string.h>

#include "base/mem.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"

enum { I32 = 6, I64 = 7 };  // TensorProto.INT32, INT64

static const pestle_onnx_value_info_t* find(const pestle_onnx_graph_t* graph,
                                            size_t count, const char* name,
                                            size_t* out_index) {
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_str_equal_c(graph->inputs[i].name, name)) continue;
    *out_index = i;
    return &graph->inputs[i];
  }
  return NULL;
}

static bool is_number(const pestle_onnx_value_info_t* info) {
  return (info->data_type == I32 || info->data_type == I64) &&
         info->has_shape &&
         (!info->rank || (info->rank == 1 && info->dims[0].extent == 1));
}

// Finds the inputs of |binding|; |out->length| is |count| where the model has none of its name.
static pestle_status_t check(const pestle_onnx_graph_t* graph, size_t count,
                             const pestle_length_binding_t* binding,
                             pestle_onnx_length_t* out) {
  if (!binding->input || !binding->length) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a length is given without its name or its input's");
  }
  const pestle_onnx_value_info_t* info =
      find(graph, count, binding->input, &out->input);
  if (!info) {
    return PESTLE_ERROR(NOT_FOUND,
                        "the length '%s' is given for '%s', but the model has "
                        "no such input",
                        binding->length, binding->input);
  }
  const pestle_onnx_value_info_t* own =
      find(graph, count, binding->length, &out->length);
  out->is_own = own != NULL;
  if (!own) out->length = count;
  if (own && !is_number(own)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the length '%s' has the name of an input of the "
                        "model, which is not one i32 or i64",
                        binding->length);
  }
  bool fits = info->has_shape && binding->axis >= 0 &&
              binding->axis < info->rank &&
              info->dims[binding->axis].extent < 0;
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the length '%s' is of axis %d of input '%s', which the "
                      "model has not, or whose extent it fixes",
                      binding->length, binding->axis, binding->input);
}

static pestle_status_t add_one(pestle_onnx_source_t* source, size_t own,
                               const pestle_length_binding_t* binding) {
  pestle_onnx_graph_t* graph = &source->model.graph;
  pestle_onnx_length_t* length = &source->lengths[source->length_count];
  PESTLE_TRY(check(graph, own, binding, length));
  length->axis = binding->axis;
  for (; !length->is_own && length->length < graph->input_count;
       ++length->length) {
    if (pestle_str_equal_c(graph->inputs[length->length].name, binding->length))
      break;
  }
  if (length->length == graph->input_count) {
    const char* name = pestle_arena_strdup(&source->arena, binding->length);
    if (!name) return PESTLE_OOM();
    graph->inputs[graph->input_count++] =
        (pestle_onnx_value_info_t){.name = pestle_str(name),
                                   .is_tensor = true,
                                   .has_shape = true,
                                   .data_type = I64};
  }
  ++source->length_count;
  return NULL;
}

pestle_status_t pestle_onnx_add_lengths(
    pestle_onnx_source_t* source, const pestle_import_options_t* options) {
  pestle_onnx_graph_t* graph = &source->model.graph;
  size_t count = options ? options->length_count : 0, own = graph->input_count;
  if (!count) return NULL;
  pestle_onnx_value_info_t* inputs =
      PESTLE_ARENA_ARRAY(&source->arena, pestle_onnx_value_info_t, own + count);
  source->lengths =
      PESTLE_ARENA_ARRAY(&source->arena, pestle_onnx_length_t, count);
  if (!inputs || !source->lengths) return PESTLE_OOM();
  if (own) memcpy(inputs, graph->inputs, own * sizeof(*inputs));
  graph->inputs = inputs;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(add_one(source, own, &options->lengths[i]));
  return NULL;
}
