// SPDX-License-Identifier: Apache-2.0
// What a GGUF file says of itself beside its module: names of extents, and its weights.
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

static void take_file(const pestle_gguf_file_t* file, pestle_info_t* info) {
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
}

pestle_status_t pestle_gguf_take_info(const void* data, size_t size,
                                      pestle_info_t* info) {
  pestle_gguf_file_t file;
  pestle_status_t status = pestle_gguf_read(data, size, &info->arena, &file);
  if (!status) take_file(&file, info);
  pestle_gguf_file_deinit(&file);
  return status;
}
