// SPDX-License-Identifier: Apache-2.0
// Attributes of com.microsoft's ops, and standard ops as parts of them.
#include "frontend/onnx/contrib.h"

#include "base/mem.h"

// --- What a node may have ---

bool pestle_onnx_takes_only(pestle_onnx_call_t* call, const char* name,
                            int64_t value, const char* why) {
  int64_t given = pestle_onnx_int(call, name, value);
  if (given != value) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute '%s' is %lld, only %lld is supported: %s", name,
                     (long long)given, (long long)value, why);
  }
  return !call->f.status;
}

bool pestle_onnx_takes_no_input(pestle_onnx_call_t* call, size_t index,
                                const char* name, const char* why) {
  if (pestle_onnx_input(call, index)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "input %zu, %s, is not supported: %s", index, name, why);
  }
  return !call->f.status;
}

// --- Nodes that are not in the file ---

pestle_onnx_attr_t pestle_onnx_make_int(const char* name, int64_t value) {
  return (pestle_onnx_attr_t){
      .name = pestle_str(name), .kind = PESTLE_ONNX_ATTR_INT, .i = value};
}

pestle_onnx_attr_t pestle_onnx_make_float(const char* name, double value) {
  return (pestle_onnx_attr_t){.name = pestle_str(name),
                              .kind = PESTLE_ONNX_ATTR_FLOAT,
                              .f = (float)value};
}

pestle_onnx_attr_t pestle_onnx_make_string(const char* name,
                                           const char* value) {
  return (pestle_onnx_attr_t){.name = pestle_str(name),
                              .kind = PESTLE_ONNX_ATTR_STRING,
                              .s = pestle_str(value)};
}

pestle_onnx_attr_t pestle_onnx_make_ints(const char* name,
                                         const int64_t* values, size_t count) {
  return (pestle_onnx_attr_t){.name = pestle_str(name),
                              .kind = PESTLE_ONNX_ATTR_INTS,
                              .ints = (int64_t*)values,
                              .count = count};
}

bool pestle_onnx_import_part(pestle_onnx_call_t* call,
                             const pestle_onnx_part_t* part,
                             pestle_value_t** outputs, size_t count) {
  if (call->f.status) return false;
  pestle_onnx_node_t node = *call->node;
  size_t attrs = part->attr_count + node.attr_count;
  node.attrs = pestle_onnx_scratch(call, (attrs + 1) * sizeof(*node.attrs));
  node.outputs = pestle_onnx_scratch(call, (count + 1) * sizeof(*node.outputs));
  pestle_onnx_call_t inner = *call;
  inner.sequences =
      pestle_onnx_scratch(call, (part->input_count + 1) * sizeof(void*));
  inner.made = pestle_onnx_scratch(call, (count + 1) * sizeof(void*));
  if (!node.attrs || !node.outputs || !inner.sequences || !inner.made)
    return false;
  for (size_t i = 0; i < attrs; ++i) {
    node.attrs[i] = i < part->attr_count
                        ? part->attrs[i]
                        : call->node->attrs[i - part->attr_count];
  }
  bool named = node.output_count && call->node->outputs[0].size;
  for (size_t i = 0; i < count; ++i) {
    node.outputs[i] = named ? call->node->outputs[0] : pestle_str("result");
    outputs[i] = NULL;
  }
  node.attr_count = (uint32_t)attrs;
  node.output_count = (uint32_t)count;
  inner.node = &node;
  inner.opset = part->opset;
  inner.inputs = part->inputs;
  inner.input_count = part->input_count;
  inner.outputs = outputs;
  inner.output_count = count;
  part->fn(&inner);
  call->f = inner.f;
  return !call->f.status;
}

pestle_value_t* pestle_onnx_part(pestle_onnx_call_t* call, pestle_onnx_fn_t fn,
                                 pestle_value_t** inputs, size_t count,
                                 const pestle_onnx_attr_t* attrs,
                                 size_t attr_count) {
  pestle_value_t* result = NULL;
  // The newest opset whose attributes the ops that are parts all have.
  const pestle_onnx_part_t part = {.fn = fn,
                                   .opset = PESTLE_ONNX_LAST_OPSET,
                                   .inputs = inputs,
                                   .input_count = count,
                                   .attrs = attrs,
                                   .attr_count = attr_count};
  pestle_onnx_import_part(call, &part, &result, 1);
  return result;
}

// --- Places of the channels ---

pestle_value_t* pestle_onnx_channels_second(pestle_onnx_call_t* call,
                                            pestle_value_t* x) {
  int64_t order[PESTLE_MAX_RANK] = {0};
  int32_t rank = rank_of(x);
  if (rank < 3) return x;
  order[1] = rank - 1;
  for (int32_t i = 2; i < rank; ++i)
    order[i] = i - 1;
  return pestle_f_transpose(&call->f, x, order);
}

pestle_value_t* pestle_onnx_channels_last(pestle_onnx_call_t* call,
                                          pestle_value_t* x) {
  int64_t order[PESTLE_MAX_RANK] = {0};
  int32_t rank = rank_of(x);
  if (rank < 3) return x;
  order[rank - 1] = 1;
  for (int32_t i = 2; i < rank; ++i)
    order[i - 1] = i;
  return pestle_f_transpose(&call->f, x, order);
}
