// SPDX-License-Identifier: Apache-2.0
// What a GGUF file says of itself beside its module: names of extents, and its weights.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "frontend/gguf/source.h"

// Axes of all inputs and outputs: the first is the batch's, another that is not fixed that of
// tokens, or in masks and caches of positions.
static void name_dims(const pestle_model_value_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const pestle_model_value_t* v = &values[i];
    bool is_of_tokens =
        !strcmp(v->name, "input_ids") || !strcmp(v->name, "logits");
    const char** names = (const char**)(uintptr_t)v->dim_names;
    for (int32_t d = 0; d < v->rank; ++d) {
      if (v->dims[d] != PESTLE_DIM_DYNAMIC) continue;
      names[d] = d == 0         ? "batch_size"
                 : is_of_tokens ? "sequence_length"
                                : "total_sequence_length";
    }
  }
}

// |v| as text; NULL: out of memory.
static const char* print_value(pestle_info_t* info,
                               const pestle_gguf_value_t* v) {
  pestle_str_t text;
  char number[32];
  int64_t integer;
  double real;
  if (pestle_gguf_as_text(v, &text)) return pestle_info_text(info, text);
  if (v->kind == PESTLE_GGUF_BOOL) return *v->data ? "true" : "false";
  if (pestle_gguf_as_i64(v, 0, &integer)) {
    (void)snprintf(number, sizeof(number), "%" PRId64, integer);
  } else if (pestle_gguf_as_f64(v, 0, &real)) {
    (void)snprintf(number, sizeof(number), "%.9g", real);
  } else {
    return "";
  }
  return pestle_info_text(info, pestle_str(number));
}

static pestle_status_t take_texts(const pestle_gguf_file_t* file,
                                  pestle_info_t* info) {
  pestle_model_text_t* texts = PESTLE_ARENA_ARRAY(
      &info->arena, pestle_model_text_t, file->value_count + 1);
  size_t count = 0;
  if (!texts) return PESTLE_OOM();
  for (size_t i = 0; i < file->value_count; ++i) {
    const pestle_gguf_value_t* v = &file->values[i];
    if (v->kind == PESTLE_GGUF_ARRAY) continue;
    pestle_model_text_t* t = &texts[count++];
    t->key = pestle_info_text(info, v->key);
    t->value = print_value(info, v);
    if (!t->key || !t->value) return PESTLE_OOM();
  }
  info->info.texts = texts;
  info->info.text_count = count;
  return NULL;
}

static pestle_status_t take_file(const pestle_gguf_file_t* file,
                                 pestle_info_t* info) {
  name_dims(info->info.inputs, info->info.input_count);
  name_dims(info->info.outputs, info->info.output_count);
  // What the module's constants say is of one set of extents.
  info->info.weight_count = info->info.weight_bytes = 0;
  for (size_t i = 0; i < file->tensor_count; ++i) {
    const pestle_gguf_tensor_t* t = &file->tensors[i];
    info->info.weight_count +=
        t->size / t->type->bytes * (uint64_t)t->type->elements;
    info->info.weight_bytes += t->size;
  }
  return take_texts(file, info);
}

pestle_status_t pestle_gguf_take_info(const char* path, pestle_info_t* info) {
  pestle_gguf_parts_t parts = {.first = NULL};
  pestle_gguf_file_t file = {.version = 0};
  pestle_map_init(info->arena.allocator, &file.value_by_key);
  pestle_map_init(info->arena.allocator, &file.tensor_by_name);
  pestle_status_t status = pestle_gguf_open(path, &info->arena, &parts, &file);
  if (!status) status = take_file(&file, info);
  pestle_gguf_file_deinit(&file);
  pestle_gguf_close(&parts);
  return status;
}
