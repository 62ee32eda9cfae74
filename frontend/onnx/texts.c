// SPDX-License-Identifier: Apache-2.0
// Which values are ids of strings, and which ops take them. Two ids are equal where
// their strings are, and nothing else about them means anything: what moves elements
// takes them, and what compares whether they are equal.
#include "base/mem.h"
#include "frontend/onnx/emit.h"

// Whether the row of |op| has input |index| among those that may be of strings.
static bool takes(const pestle_onnx_op_t* op, size_t index) {
  return op->texts >> (index < 7 ? index : 7) & 1;
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

static bool is_text_input(const pestle_onnx_call_t* call, size_t index) {
  return call->inputs[index] &&
         pestle_onnx_is_text(call->import, call->inputs[index]);
}

static bool has_texts(const pestle_onnx_call_t* call) {
  if (!pestle_map_size(&call->import->texts)) return false;
  for (size_t i = 0; i < call->input_count; ++i) {
    if (is_text_input(call, i)) return true;
  }
  return false;
}

void pestle_onnx_check_texts(pestle_onnx_call_t* call,
                             const pestle_onnx_op_t* op) {
  if (!has_texts(call) || op->texts & PESTLE_ONNX_ANY_TEXTS) return;
  for (size_t i = 0; i < call->input_count; ++i) {
    bool text = is_text_input(call, i);
    if (!call->inputs[i] || text == takes(op, i)) continue;
    if (text) {
      pestle_onnx_fail(
          call, PESTLE_STATUS_UNSUPPORTED,
          "its input %zu, '%.*s', is of strings; they are taken by ops "
          "that move elements, look them up or read their letters alone",
          i, PESTLE_STR_ARG(call->node->inputs[i]));
    } else {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "its input %zu, '%.*s', is of numbers and another of "
                       "strings; they have to be of one type",
                       i, PESTLE_STR_ARG(call->node->inputs[i]));
    }
    return;
  }
}

void pestle_onnx_keep_texts(pestle_onnx_call_t* call,
                            const pestle_onnx_op_t* op) {
  if (call->f.status || !(op->texts & PESTLE_ONNX_MOVES_TEXTS) ||
      !has_texts(call))
    return;
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
