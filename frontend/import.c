// SPDX-License-Identifier: Apache-2.0
// Which front end a file is for, told from its first bytes: Pestle's binary
// form by its magic, ONNX by being protobuf, text by being text.
#include "pestle/import.h"

#include "base/file.h"
#include "base/mem.h"
#include "ir/graph.h"

// The magic of pestle_module_serialize(), without its version.
static bool is_binary(const pestle_mapping_t* mapping) {
  return mapping->size >= 8 && memcmp(mapping->data, "PSTLGRPH", 8) == 0;
}

// ONNX begins with a small field number and a byte below 32 or a length; text
// holds no control bytes but white space near its start.
static bool is_text(const pestle_mapping_t* mapping) {
  const unsigned char* bytes = mapping->data;
  size_t count = mapping->size < 512 ? mapping->size : 512;
  for (size_t i = 0; i < count; ++i) {
    unsigned char c = bytes[i];
    bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
    if (c < 32 && !is_space) return false;
  }
  return count != 0;
}

static pestle_status_t import_mapping(pestle_context_t* context,
                                      const char* path,
                                      const pestle_mapping_t* mapping,
                                      pestle_module_t** out_module) {
  if (is_binary(mapping)) {
    return pestle_status_annotate(
        pestle_module_deserialize(context, mapping->data, mapping->size,
                                  out_module),
        "while reading '%s'", path);
  }
  return pestle_module_parse(context, mapping->data, mapping->size, path,
                             out_module);
}

// A module that was read as it stands takes the shapes that the caller fixes.
static pestle_status_t apply_shapes(pestle_module_t* module,
                                    const pestle_import_options_t* options,
                                    pestle_module_t** out_module) {
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = entry ? pestle_function_argument_count(entry) : 0;
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(module->context), &arena);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&arena, pestle_type_t, count + 1);
  pestle_status_t status = types ? NULL : PESTLE_OOM();
  for (size_t i = 0; types && i < count; ++i) {
    types[i] = pestle_value_type(pestle_function_argument(entry, i));
  }
  for (size_t i = 0; !status && i < options->shape_count; ++i) {
    const pestle_shape_binding_t* shape = &options->shapes[i];
    size_t at = 0;
    while (at < count &&
           !(entry->argument_names && entry->argument_names[at] &&
             strcmp(entry->argument_names[at], shape->input) == 0)) {
      ++at;
    }
    if (at == count || shape->rank < 0 || shape->rank > PESTLE_MAX_RANK) {
      status = PESTLE_ERROR(INVALID_ARGUMENT,
                            "a shape is given for '%s', but the module has no "
                            "such input, or it has too many dimensions",
                            shape->input);
      break;
    }
    types[at] = pestle_type_make(types[at].dtype, shape->rank, shape->dims);
  }
  if (!status) {
    status = pestle_module_specialize(module, types, count, out_module);
  }
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_import_file(pestle_context_t* context, const char* path,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  *out_module = NULL;
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  bool is_onnx = !is_binary(&mapping) && !is_text(&mapping);
  if (is_onnx) {
    pestle_file_unmap(&mapping);
    return pestle_import_onnx_file(context, path, options, out_module);
  }
  pestle_module_t* module = NULL;
  pestle_status_t status = import_mapping(context, path, &mapping, &module);
  pestle_file_unmap(&mapping);
  if (status) return status;
  if (options && (options->dim_count || options->const_count)) {
    pestle_module_release(module);
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' is no ONNX model: its dimensions have no names "
                        "and its inputs cannot be made constants; fix whole "
                        "shapes instead",
                        path);
  }
  if (!options || !options->shape_count) {
    *out_module = module;
    return NULL;
  }
  status = apply_shapes(module, options, out_module);
  pestle_module_release(module);
  return status;
}
