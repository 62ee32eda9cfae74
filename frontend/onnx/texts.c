// SPDX-License-Identifier: Apache-2.0
// Which values are ids of strings, and which ops take them. Two ids are equal where
// their strings are, and nothing else about them means anything: what moves elements
// takes them, and what compares whether they are equal.
#include "base/mem.h"
#include "frontend/onnx/emit.h"

typedef enum takes_t {
  REFUSES,
  MOVES,  // and its outputs are such values
  ASKS,   // about them: its outputs are none
} takes_t;

static takes_t takes(const pestle_onnx_op_t* op) {
  static const char* const moves[] = {"Compress",
                                      "Concat",
                                      "DepthToSpace",
                                      "Expand",
                                      "Flatten",
                                      "Gather",
                                      "GatherElements",
                                      "GatherND",
                                      "Identity",
                                      "Reshape",
                                      "ReverseSequence",
                                      "Scatter",
                                      "ScatterElements",
                                      "ScatterND",
                                      "Slice",
                                      "SpaceToDepth",
                                      "Split",
                                      "Squeeze",
                                      "Tile",
                                      "Transpose",
                                      "Unsqueeze",
                                      "Where"};
  static const char* const asks[] = {"Equal", "Shape", "Size",
                                     "TfIdfVectorizer"};
  static const char* const own[] = {"ArrayFeatureExtractor", "CategoryMapper",
                                    "LabelEncoder", "OneHotEncoder"};
  bool standard = op->domain[0] == 0;
  for (size_t i = 0; standard && i < sizeof(moves) / sizeof(moves[0]); ++i) {
    if (!strcmp(op->name, moves[i])) return MOVES;
  }
  for (size_t i = 0; standard && i < sizeof(asks) / sizeof(asks[0]); ++i) {
    if (!strcmp(op->name, asks[i])) return ASKS;
  }
  for (size_t i = 0; !standard && i < sizeof(own) / sizeof(own[0]); ++i) {
    if (!strcmp(op->name, own[i])) return i ? ASKS : MOVES;
  }
  return REFUSES;
}

bool pestle_onnx_is_text(const pestle_onnx_import_t* import,
                         const pestle_value_t* value) {
  return pestle_map_find_u64(&import->texts, (uintptr_t)value) != NULL;
}

pestle_status_t pestle_onnx_note_text(pestle_onnx_import_t* import,
                                      const pestle_value_t* value) {
  return pestle_map_set_u64(&import->texts, (uintptr_t)value, 1) ? NULL
                                                                 : PESTLE_OOM();
}

pestle_value_t* pestle_onnx_mark_text(pestle_onnx_call_t* call,
                                      pestle_value_t* value) {
  if (!value ||
      pestle_onnx_keep(call, pestle_onnx_note_text(call->import, value)))
    return NULL;
  return value;
}

static size_t text_inputs(const pestle_onnx_call_t* call, size_t* out_first) {
  size_t count = 0;
  for (size_t i = call->input_count; i-- > 0;) {
    if (!call->inputs[i] || !pestle_onnx_is_text(call->import, call->inputs[i]))
      continue;
    *out_first = i;
    ++count;
  }
  return count;
}

void pestle_onnx_check_texts(pestle_onnx_call_t* call,
                             const pestle_onnx_op_t* op) {
  size_t first = 0;
  if (!pestle_map_size(&call->import->texts) || !text_inputs(call, &first))
    return;
  // A cast of strings to strings is none.
  bool same = !strcmp(op->name, "Cast") && !op->domain[0] &&
              pestle_onnx_int(call, "to", 0) == PESTLE_ONNX_STRING;
  if (same || takes(op) != REFUSES) return;
  pestle_onnx_fail(
      call, PESTLE_STATUS_UNSUPPORTED,
      "its input %zu, '%.*s', is of strings; they are taken by ops "
      "that move elements or look them up alone",
      first, PESTLE_STR_ARG(call->node->inputs[first]));
}

void pestle_onnx_keep_texts(pestle_onnx_call_t* call,
                            const pestle_onnx_op_t* op) {
  size_t first = 0;
  if (call->f.status || !pestle_map_size(&call->import->texts) ||
      takes(op) != MOVES || !text_inputs(call, &first)) {
    return;
  }
  for (size_t i = 0; i < call->output_count; ++i)
    pestle_onnx_mark_text(call, call->outputs[i]);
}

int32_t pestle_onnx_id_of(pestle_onnx_call_t* call, pestle_str_t string) {
  int32_t id = pestle_onnx_string_id(call->import->strings, string);
  if (id < 0) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "the string '%.*s' stands where no strings are looked for",
                     PESTLE_STR_ARG(string));
  }
  return id;
}

pestle_value_t* pestle_onnx_id_list(pestle_onnx_call_t* call,
                                    const pestle_str_t* strings, size_t count) {
  size_t size = count * sizeof(int32_t);
  int32_t* ids = pestle_f_memory(&call->f, size);
  if (!ids) return NULL;
  for (size_t i = 0; i < count; ++i)
    ids[i] = pestle_onnx_id_of(call, strings[i]);
  if (call->f.status) return NULL;
  pestle_elements_t elements = {
      .type = {.dtype = PESTLE_I32, .rank = 1, .dims = {(int64_t)count}},
      .data = ids,
      .size = size};
  return pestle_onnx_mark_text(call, pestle_f_elements(&call->f, &elements));
}
