// SPDX-License-Identifier: Apache-2.0
// The call that an op's importer gets: its attributes, its inputs that are
// known while importing, and errors that name the node.
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/importer.h"

const char* pestle_onnx_describe(const pestle_onnx_node_t* node, int64_t opset,
                                 char* buffer, size_t capacity) {
  char domain[80] = "";
  if (node->domain.size) {
    snprintf(domain, sizeof(domain), "%.*s::", PESTLE_STR_ARG(node->domain));
  }
  if (node->name.size) {
    snprintf(buffer, capacity, "node '%.*s' (%s%.*s, opset %lld)",
             PESTLE_STR_ARG(node->name), domain, PESTLE_STR_ARG(node->op_type),
             (long long)opset);
  } else {
    pestle_str_t output =
        node->output_count ? node->outputs[0] : pestle_str_make("", 0);
    snprintf(buffer, capacity,
             "node %u, which makes '%.*s' (%s%.*s, opset %lld)", node->index,
             PESTLE_STR_ARG(output), domain, PESTLE_STR_ARG(node->op_type),
             (long long)opset);
  }
  return buffer;
}

pestle_value_t* pestle_onnx_fail(pestle_onnx_call_t* call,
                                 pestle_status_code_t code, const char* format,
                                 ...) {
  if (call->f.status) return NULL;
  char where[512], what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  // As the model has it: a part of another op has an opset of its own.
  pestle_onnx_describe(
      call->node, pestle_onnx_opset(call->import->model, call->node->domain),
      where, sizeof(where));
  call->f.status =
      pestle_status_make(code, __FILE__, __LINE__, "%s: %s", where, what);
  return NULL;
}

// An argument that the IR refuses was computed from the model, so that it is
// the model, not our caller, who is at fault.
bool pestle_onnx_keep(pestle_onnx_call_t* call, pestle_status_t status) {
  if (!status) return false;
  if (call->f.status) {
    pestle_status_release(status);
    return true;
  }
  pestle_status_code_t code = pestle_status_code(status);
  if (code == PESTLE_STATUS_OUT_OF_MEMORY || code == PESTLE_STATUS_CANCELLED ||
      code == PESTLE_STATUS_DEADLINE_EXCEEDED) {
    call->f.status = status;
    return true;
  }
  if (code == PESTLE_STATUS_INVALID_ARGUMENT) code = PESTLE_STATUS_MALFORMED;
  pestle_onnx_fail(call, code, "%s", pestle_status_message(status));
  pestle_status_release(status);
  return true;
}

// --- Attributes ---

bool pestle_onnx_takes(pestle_onnx_call_t* call, const char* names) {
  const pestle_onnx_node_t* node = call->node;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    // Those that begin with __ are a tool's own.
    if (pestle_str_is_one_of(node->attrs[i].name, names) ||
        pestle_str_starts_with(node->attrs[i].name, pestle_str("__")))
      continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute '%.*s' is none that Pestle knows of this op; "
                     "known are: %s",
                     PESTLE_STR_ARG(node->attrs[i].name),
                     names[0] ? names : "none");
    return false;
  }
  return !call->f.status;
}

bool pestle_onnx_has(const pestle_onnx_call_t* call, const char* name) {
  return pestle_onnx_node_attr(call->node, name) != NULL;
}

static const pestle_onnx_attr_t* attr_of(pestle_onnx_call_t* call,
                                         const char* name,
                                         pestle_onnx_attr_kind_t kind) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, name);
  if (!attr || attr->kind == kind) return attr;
  static const char* const kinds[] = {
      "nothing",  "a float",         "an int",          "a string",
      "a tensor", "a graph",         "floats",          "ints",
      "strings",  "of another kind", "of another kind", "a sparse tensor"};
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute '%s' is %s and should be %s", name,
                   kinds[attr->kind], kinds[kind]);
  return NULL;
}

int64_t pestle_onnx_int(pestle_onnx_call_t* call, const char* name,
                        int64_t missing) {
  const pestle_onnx_attr_t* attr = attr_of(call, name, PESTLE_ONNX_ATTR_INT);
  return attr ? attr->i : missing;
}

double pestle_onnx_float(pestle_onnx_call_t* call, const char* name,
                         double missing) {
  const pestle_onnx_attr_t* attr = attr_of(call, name, PESTLE_ONNX_ATTR_FLOAT);
  return attr ? (double)attr->f : missing;
}

pestle_str_t pestle_onnx_string(pestle_onnx_call_t* call, const char* name,
                                const char* missing) {
  const pestle_onnx_attr_t* attr = attr_of(call, name, PESTLE_ONNX_ATTR_STRING);
  return attr ? attr->s : pestle_str(missing);
}

pestle_str_t pestle_onnx_word(pestle_onnx_call_t* call, const char* name,
                              const char* missing, const char* words) {
  pestle_str_t word = pestle_onnx_string(call, name, missing);
  if (!pestle_str_is_one_of(word, words)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' is '%.*s', known are: %s", name,
                     PESTLE_STR_ARG(word), words);
  }
  return word;
}

pestle_i64s_t pestle_onnx_ints(pestle_onnx_call_t* call, const char* name) {
  const pestle_onnx_attr_t* attr = attr_of(call, name, PESTLE_ONNX_ATTR_INTS);
  return attr ? (pestle_i64s_t){attr->ints, attr->count} : (pestle_i64s_t){0};
}

pestle_onnx_floats_t pestle_onnx_floats(pestle_onnx_call_t* call,
                                        const char* name) {
  const pestle_onnx_attr_t* attr = attr_of(call, name, PESTLE_ONNX_ATTR_FLOATS);
  return attr ? (pestle_onnx_floats_t){attr->floats, attr->count}
              : (pestle_onnx_floats_t){0};
}

// --- Inputs ---

bool pestle_onnx_wants(const pestle_onnx_call_t* call, size_t index) {
  return index < call->node->output_count &&
         call->node->outputs[index].size != 0;
}

int64_t pestle_onnx_axis(pestle_onnx_call_t* call, int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "axis %lld is outside of a tensor of rank %lld",
                   (long long)axis, (long long)rank);
  return 0;
}

void* pestle_onnx_scratch(pestle_onnx_call_t* call, size_t size) {
  void* data = pestle_arena_alloc_zero(&call->import->arena, size, 16);
  if (!data) pestle_onnx_keep(call, PESTLE_OOM());
  return data;
}

static pestle_str_t input_name(const pestle_onnx_call_t* call, size_t index) {
  return index < call->node->input_count ? call->node->inputs[index]
                                         : pestle_str_make("", 0);
}

// The constant behind an input, or NULL with the error kept.
static const pestle_elements_t* known_input(pestle_onnx_call_t* call,
                                            size_t index, const char* what) {
  pestle_value_t* value = pestle_onnx_input(call, index);
  if (!value) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "input %zu (%s) is missing",
                     index, what);
    return NULL;
  }
  const pestle_elements_t* elements = pestle_value_constant(value);
  if (!elements) elements = pestle_onnx_known_list(call, value);
  if (!elements && !call->f.status) {
    pestle_onnx_need(call, value);
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its %s, '%.*s', must be known while importing, and does "
                     "not follow from inputs of the model that have at most %d "
                     "elements",
                     what, PESTLE_STR_ARG(input_name(call, index)),
                     PESTLE_VALUE_ARGUMENT_MAX);
  }
  return elements;
}

pestle_i64s_t pestle_onnx_input_ints(pestle_onnx_call_t* call, size_t index,
                                     const char* what) {
  pestle_i64s_t none = {0};
  const pestle_elements_t* elements = known_input(call, index, what);
  if (!elements) return none;
  if (!pestle_dtype_is(elements->type.dtype, PESTLE_KIND_INT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %s, '%.*s', must hold integers", what,
                     PESTLE_STR_ARG(input_name(call, index)));
    return none;
  }
  int64_t count = pestle_type_count(&elements->type);
  // Lists of axes, extents and the like; nothing sensible is longer.
  if (elements->type.rank > 1 || count > 65536) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %s, '%.*s', must be a list of integers", what,
                     PESTLE_STR_ARG(input_name(call, index)));
    return none;
  }
  int64_t* data =
      pestle_onnx_scratch(call, (size_t)(count + 1) * sizeof(int64_t));
  if (!data) return none;
  for (int64_t i = 0; i < count; ++i) {
    data[i] = pestle_onnx_element_i64(elements, (size_t)i);
  }
  return (pestle_i64s_t){data, (size_t)count};
}

double pestle_onnx_input_float(pestle_onnx_call_t* call, size_t index,
                               const char* what, double missing) {
  if (!pestle_onnx_input(call, index)) return missing;
  const pestle_elements_t* elements = known_input(call, index, what);
  if (!elements) return missing;
  if (pestle_type_count(&elements->type) != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %s, '%.*s', must be one number", what,
                     PESTLE_STR_ARG(input_name(call, index)));
    return missing;
  }
  return pestle_onnx_element_f64(elements, 0);
}
