// SPDX-License-Identifier: Apache-2.0
// Strings of a model (docs/adr/035): a graph computes with numbers alone, so that
// each string that the file holds has one, its id, and a tensor of strings is one
// of ids, i32. Which values are such tensors the import notes; ops that only move
// elements, or compare them, take them as they are, all others refuse them.
#ifndef PESTLE_FRONTEND_ONNX_STRINGS_H_
#define PESTLE_FRONTEND_ONNX_STRINGS_H_

#include "base/map.h"
#include "frontend/onnx/model.h"

// TensorProto.STRING.
#define PESTLE_ONNX_STRING 8

// The strings of a file in the order in which it has them, each once: the same for
// every shape that it is imported for.
typedef struct pestle_onnx_strings_t {
  pestle_map_t ids;  // string -> id
  const char* text;  // all of them as pestle.dictionary has them; NULL: none
  const char*
      inner;  // the same where the model neither takes nor gives strings, but may
              // make some on the way; else NULL
} pestle_onnx_strings_t;

void pestle_onnx_strings_init(pestle_allocator_t allocator,
                              pestle_onnx_strings_t* out_strings);
void pestle_onnx_strings_deinit(pestle_onnx_strings_t* strings);
// Takes all strings of |model|, and makes |text| in |arena|. MALFORMED for one that
// is no UTF-8.
PESTLE_NODISCARD pestle_status_t pestle_onnx_strings_collect(
    const pestle_onnx_model_t* model, pestle_arena_t* arena,
    pestle_onnx_strings_t* strings);
// The id of |string|, -1 for one that was not collected.
int32_t pestle_onnx_string_id(const pestle_onnx_strings_t* strings,
                              pestle_str_t string);

// --- Tensors of strings ---

// Calls |visit| with each string of |tensor| in order.
PESTLE_NODISCARD pestle_status_t pestle_onnx_tensor_visit_strings(
    const pestle_onnx_tensor_t* tensor,
    pestle_status_t (*visit)(void* user, pestle_str_t string), void* user);
// Its elements as ids.
PESTLE_NODISCARD pestle_status_t pestle_onnx_tensor_ids(
    const pestle_onnx_tensor_t* tensor, const pestle_onnx_strings_t* strings,
    pestle_arena_t* arena, pestle_elements_t* out_elements);

#endif  // PESTLE_FRONTEND_ONNX_STRINGS_H_
