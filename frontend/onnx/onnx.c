// SPDX-License-Identifier: Apache-2.0
// The public entries of the ONNX front end.
#include "base/control.h"
#include "base/mem.h"
#include "base/require.h"
#include "frontend/foreign.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"
#include "ir/graph.h"

// What is no ONNX model may be something else that is known.
static pestle_status_t read_structure(pestle_onnx_source_t* source) {
  pestle_status_t status = pestle_onnx_model_read(
      source->data, source->size, &source->arena, &source->model);
  if (pestle_status_code(status) != PESTLE_STATUS_MALFORMED) return status;
  pestle_status_t known =
      pestle_foreign_check(source->file, source->data, source->size);
  if (!known) {
    known =
        pestle_foreign_check_protobuf(source->file, source->data, source->size);
  }
  if (!known) return status;
  pestle_status_release(status);
  return known;
}

static pestle_status_t read_model(pestle_onnx_source_t* source,
                                  const pestle_import_options_t* options) {
  pestle_status_t status = read_structure(source);
  if (!status && source->model.graph.output_count == 0) {
    status = PESTLE_ERROR(MALFORMED, "the model has no outputs");
  }
  if (options) source->compat = options->onnx_compat;
  if (!status) status = pestle_onnx_spread_maps(source);
  if (!status) status = pestle_onnx_spread_lists(source, options);
  if (!status) status = pestle_onnx_add_lengths(source, options);
  if (!status) status = pestle_onnx_source_bind(source, options);
  return pestle_status_annotate(status, "while reading '%s'", source->file);
}

static pestle_status_t make_module(pestle_onnx_source_t* source,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  PESTLE_TRY(read_model(source, options));
  pestle_type_t* types = PESTLE_ARENA_ARRAY(
      &source->arena, pestle_type_t, source->model.graph.input_count + 1);
  if (!types) return PESTLE_OOM();
  size_t count;
  PESTLE_TRY(pestle_onnx_argument_types(source, options, types, &count));
  for (size_t i = 0; i < count; ++i) {
    if (pestle_type_is_static(&types[i])) continue;
    return pestle_onnx_import_symbolic(source, types, count, NULL, out_module);
  }
  bool* needed =
      pestle_arena_alloc_zero(&source->arena, count + 1, sizeof(bool));
  if (!needed) return PESTLE_OOM();
  pestle_status_t status = pestle_onnx_import_static(
      source, types, count, options ? options->control : NULL, needed,
      out_module);
  if (!pestle_onnx_asks_for_values(status, types, needed, count)) return status;
  pestle_status_release(status);
  return pestle_onnx_import_symbolic(source, types, count, needed, out_module);
}

pestle_status_t pestle_import_read_options(
    const pestle_import_options_t* options, pestle_import_own_t* own,
    const pestle_import_options_t** out_options) {
  *own = (pestle_import_own_t){.options = {.struct_size = 0}};
  *out_options = options ? &own->options : NULL;
  if (!options) return NULL;
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "pestle_import_options_t.struct_size is not set; set it "
        "to sizeof(pestle_import_options_t)");
  }
  memcpy(&own->options, options,
         size < sizeof(own->options) ? size : sizeof(own->options));
  own->options.struct_size = sizeof(own->options);
  options = &own->options;
  if ((options->dim_count && !options->dims) ||
      (options->shape_count && !options->shapes) ||
      (options->const_count && !options->consts) ||
      (options->length_count && !options->lengths)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_import_options_t counts dims, shapes, consts "
                        "or lengths that are NULL");
  }
  if (options->onnx_compat != PESTLE_ONNX_COMPAT_TEXT &&
      options->onnx_compat != PESTLE_ONNX_COMPAT_ORT) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_import_options_t.onnx_compat is %d, which is "
                        "no pestle_onnx_compat_t",
                        (int)options->onnx_compat);
  }
  return pestle_control_read(options->control, &own->control,
                             &own->options.control);
}

static const char* folder_of(pestle_arena_t* arena, const char* path) {
  return pestle_arena_strndup(arena, pestle_path_folder(path));
}

pestle_status_t pestle_import_onnx_file(pestle_context_t* context,
                                        const char* path,
                                        const pestle_import_options_t* options,
                                        pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && path && out_module,
                 "a context, a path and a place for the module");
  pestle_import_own_t own;
  PESTLE_TRY(pestle_import_read_options(options, &own, &options));
  pestle_onnx_source_t* source;
  pestle_str_t name = pestle_path_name(path);
  PESTLE_TRY(pestle_onnx_source_create(context, name.size ? name.data : path,
                                       NULL, &source));
  source->folder = folder_of(&source->arena, path);
  pestle_status_t status =
      source->folder ? pestle_file_map(path, &source->mapping) : PESTLE_OOM();
  if (!status) {
    source->data = source->mapping.data;
    source->size = source->mapping.size;
    status = make_module(source, options, out_module);
  }
  pestle_onnx_source_release(source);
  return status;
}

pestle_status_t pestle_import_onnx(pestle_context_t* context, const void* data,
                                   size_t size, bool copy, const char* folder,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && (data || !size) && out_module,
                 "a context, the model's bytes and a place for the module");
  pestle_import_own_t own;
  PESTLE_TRY(pestle_import_read_options(options, &own, &options));
  pestle_onnx_source_t* source;
  PESTLE_TRY(pestle_onnx_source_create(context, "model.onnx", folder, &source));
  source->data = data;
  source->size = size;
  if (copy && size) {
    source->data =
        pestle_arena_copy(&source->arena, data, size, PESTLE_BUFFER_ALIGNMENT);
  }
  pestle_status_t status = size && !source->data
                               ? PESTLE_OOM()
                               : make_module(source, options, out_module);
  pestle_onnx_source_release(source);
  return status;
}

// Copies what |elements| points at into a block of its own.
static pestle_status_t own_elements(pestle_allocator_t allocator,
                                    pestle_elements_t* elements) {
  void* data = pestle_alloc(allocator, elements->size);
  if (!data) return PESTLE_OOM();
  if (elements->size) memcpy(data, elements->data, elements->size);
  elements->data = data;
  return NULL;
}

pestle_status_t pestle_read_onnx_tensor(pestle_context_t* context,
                                        const void* data, size_t size,
                                        pestle_elements_t* out_elements,
                                        char* out_name, size_t name_capacity) {
  PESTLE_REQUIRE(context && (data || !size) && out_elements &&
                     (out_name || !name_capacity),
                 "a context, the tensor's bytes and a place for the elements");
  *out_elements = (pestle_elements_t){0};
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_onnx_tensor_t tensor;
  PESTLE_TRY(pestle_onnx_tensor_read(pestle_proto_make(data, size), &tensor));
  if (name_capacity) {
    size_t length = tensor.name.size < name_capacity - 1 ? tensor.name.size
                                                         : name_capacity - 1;
    if (length) memcpy(out_name, tensor.name.data, length);
    out_name[length] = 0;
  }
  pestle_arena_t arena;
  pestle_arena_init(allocator, &arena);
  pestle_elements_t elements;
  pestle_status_t status =
      pestle_onnx_tensor_elements(&tensor, NULL, &arena, &elements);
  if (!status) status = own_elements(allocator, &elements);
  pestle_arena_deinit(&arena);
  if (!status) *out_elements = elements;
  return status;
}
