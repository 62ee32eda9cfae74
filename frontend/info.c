// SPDX-License-Identifier: Apache-2.0
// What a model says of itself: of ONNX from the file, of all else from its module.
#include "frontend/info.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/require.h"
#include "frontend/gguf/source.h"

// --- Parts ---

pestle_status_t pestle_info_add_op(pestle_info_t* info, pestle_str_t name,
                                   uint64_t count) {
  pestle_map_value_t* slot =
      pestle_map_put(&info->ops, name.data, name.size, NULL);
  if (!slot) return PESTLE_OOM();
  slot->u64 += count;
  info->info.node_count += count;
  return NULL;
}

void pestle_info_add_weight(pestle_info_t* info, pestle_dtype_t dtype,
                            uint64_t count) {
  if (count < 2) return;
  info->info.weight_count += count;
  info->info.weight_bytes += count * pestle_dtype_size(dtype);
}

const char* pestle_info_text(pestle_info_t* info, pestle_str_t text) {
  return text.size ? pestle_arena_strndup(&info->arena, text) : "";
}

static int compare_ops(const void* a, const void* b) {
  const pestle_model_op_t *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->name, y->name);
}

static pestle_status_t list_ops(pestle_info_t* info) {
  size_t count = 0, cursor = 0;
  pestle_model_op_t* ops = PESTLE_ARENA_ARRAY(&info->arena, pestle_model_op_t,
                                              pestle_map_size(&info->ops) + 1);
  if (!ops) return PESTLE_OOM();
  for (pestle_map_entry_t* e; (e = pestle_map_next(&info->ops, &cursor));) {
    ops[count].name = pestle_info_text(info, pestle_map_entry_key(e));
    ops[count].count = e->value.u64;
    if (!ops[count++].name) return PESTLE_OOM();
  }
  qsort(ops, count, sizeof(*ops), compare_ops);
  info->info.ops = ops;
  info->info.op_count = count;
  return NULL;
}

// Adds the names of the dims of |value| that |seen| has not.
static pestle_status_t add_dims(const pestle_model_value_t* value,
                                pestle_map_t* seen, const char** names,
                                size_t* count) {
  for (int32_t d = 0; d < value->rank; ++d) {
    const char* name = value->dim_names[d];
    bool added = false;
    if (!name[0]) continue;
    if (!pestle_map_put(seen, name, strlen(name), &added)) return PESTLE_OOM();
    if (added) names[(*count)++] = name;
  }
  return NULL;
}

// The names of dims, in the order in which inputs have them.
static pestle_status_t list_dims(pestle_info_t* info) {
  pestle_model_info_t* to = &info->info;
  size_t room = 1;
  for (size_t i = 0; i < to->input_count; ++i)
    room += to->inputs[i].rank > 0 ? (size_t)to->inputs[i].rank : 0;
  const char** names = PESTLE_ARENA_ARRAY(&info->arena, const char*, room);
  if (!names) return PESTLE_OOM();
  pestle_map_t seen;
  pestle_map_init(info->ops.allocator, &seen);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < to->input_count && !status; ++i)
    status = add_dims(&to->inputs[i], &seen, names, &to->dim_count);
  pestle_map_deinit(&seen);
  to->dims = names;
  return status;
}

// --- Modules ---

static pestle_status_t take_type(pestle_info_t* info, const pestle_type_t* type,
                                 const char* name, pestle_model_value_t* out) {
  size_t rank = (size_t)type->rank;
  int64_t* dims = PESTLE_ARENA_ARRAY(&info->arena, int64_t, rank + 1);
  const char** names = PESTLE_ARENA_ARRAY(&info->arena, const char*, rank + 1);
  *out = (pestle_model_value_t){
      .name = pestle_info_text(info, pestle_str(name ? name : "")),
      .dtype = type->dtype,
      .rank = type->rank,
      .dims = dims,
      .dim_names = names};
  if (!dims || !names || !out->name) return PESTLE_OOM();
  for (size_t i = 0; i < rank; ++i) {
    dims[i] = type->dims[i];
    names[i] = "";
  }
  return NULL;
}

static pestle_status_t take_signature(pestle_info_t* info,
                                      pestle_function_t* entry) {
  size_t count = pestle_function_argument_count(entry), results = 0, at = 0;
  pestle_model_value_t* inputs =
      PESTLE_ARENA_ARRAY(&info->arena, pestle_model_value_t, count + 1);
  if (!inputs) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    PESTLE_TRY(take_type(info, &type, pestle_function_argument_name(entry, i),
                         &inputs[i]));
  }
  if (!pestle_function_result_count(entry, &results)) results = 0;
  pestle_model_value_t* outputs =
      PESTLE_ARENA_ARRAY(&info->arena, pestle_model_value_t, results + 1);
  if (!outputs) return PESTLE_OOM();
  for (size_t i = 0; i < results; ++i) {
    if (pestle_function_shape_of(entry, i) >= 0) continue;
    const char* name =
        i < entry->result_name_count ? entry->result_names[i] : NULL;
    PESTLE_TRY(take_type(info, pestle_function_result_type(entry, i), name,
                         &outputs[at++]));
  }
  info->info.inputs = inputs;
  info->info.input_count = count;
  info->info.outputs = outputs;
  info->info.output_count = at;
  return NULL;
}

static void take_elements(pestle_info_t* info, const pestle_node_t* node) {
  for (uint32_t a = 0; a < node->attr_count; ++a) {
    if (node->attrs[a].kind != PESTLE_ATTR_KIND_ELEMENTS) continue;
    const pestle_elements_t* e = node->attrs[a].as.elements;
    unsigned size = pestle_dtype_size(e->type.dtype);
    if (e->splat || !size) continue;
    pestle_info_add_weight(info, e->type.dtype, e->size / size);
  }
}

static pestle_status_t take_function(pestle_info_t* info,
                                     const pestle_function_t* function) {
  const pestle_node_t* node = NULL;
  while ((node = pestle_region_next(function->body, node))) {
    take_elements(info, node);
    bool is_op = node->op != PESTLE_OP_RETURN && node->op != PESTLE_OP_CONSTANT;
    if (!is_op) continue;
    pestle_str_t name = pestle_str(pestle_op_info((pestle_op_t)node->op)->name);
    PESTLE_TRY(pestle_info_add_op(info, name, 1));
  }
  return NULL;
}

static pestle_status_t describe_module(pestle_info_t* info,
                                       pestle_module_t* module) {
  pestle_function_t* entry = pestle_module_entry(module);
  if (entry) PESTLE_TRY(take_signature(info, entry));
  for (const pestle_function_t* f = module->first; f; f = f->next)
    PESTLE_TRY(take_function(info, f));
  return NULL;
}

// --- The description ---

// The import says what is not supported; what is there is told all the same.
static pestle_status_t describe_onnx(pestle_info_t* info,
                                     const pestle_mapping_t* mapping,
                                     pestle_module_t* module,
                                     pestle_status_t imported) {
  if (imported && pestle_status_code(imported) != PESTLE_STATUS_UNSUPPORTED)
    return imported;
  pestle_status_t status =
      pestle_onnx_take_info(mapping->data, mapping->size, module, info);
  if (!imported || status) {
    // A file of another format says what it is.
    if (imported) pestle_status_release(status);
    return imported ? imported : status;
  }
  size_t size = pestle_status_format(imported, NULL, 0) + 1;
  char* text = pestle_arena_alloc(&info->arena, size, 1);
  if (text) pestle_status_format(imported, text, size);
  info->info.unsupported = text;
  pestle_status_release(imported);
  return text ? NULL : PESTLE_OOM();
}

static pestle_status_t describe(pestle_context_t* context, const char* path,
                                const pestle_import_options_t* options,
                                pestle_info_t* info) {
  pestle_module_t* module = NULL;
  pestle_mapping_t mapping = {0};
  pestle_status_t imported =
      pestle_import_file(context, path, options, &module);
  pestle_status_t status = pestle_file_map(path, &mapping);
  if (status) {
    if (imported) pestle_status_release(status);
    pestle_module_release(module);
    return imported ? imported : status;
  }
  info->info.format = pestle_import_format(&mapping);
  if (!strcmp(info->info.format, PESTLE_FORMAT_ONNX)) {
    status = describe_onnx(info, &mapping, module, imported);
  } else {
    status = imported ? imported : describe_module(info, module);
    if (!status && !strcmp(info->info.format, PESTLE_FORMAT_GGUF))
      status = pestle_gguf_take_info(path, info);
  }
  pestle_file_unmap(&mapping);
  pestle_module_release(module);
  if (!status) status = list_ops(info);
  if (!status) status = list_dims(info);
  return status;
}

pestle_status_t pestle_model_info_create(pestle_context_t* context,
                                         const char* path,
                                         const pestle_import_options_t* options,
                                         const pestle_model_info_t** out_info) {
  if (out_info) *out_info = NULL;
  PESTLE_REQUIRE(context && path && out_info,
                 "a context, a path and a place for the description");
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_info_t* info = pestle_alloc_zero(allocator, sizeof(*info));
  if (!info) return PESTLE_OOM();
  info->info =
      (pestle_model_info_t){.struct_size = sizeof(info->info), .producer = ""};
  pestle_arena_init(allocator, &info->arena);
  pestle_map_init(allocator, &info->ops);
  pestle_status_t status = describe(context, path, options, info);
  if (status) {
    pestle_model_info_release(&info->info);
  } else {
    *out_info = &info->info;
  }
  return status;
}

void pestle_model_info_release(const pestle_model_info_t* info) {
  if (!info) return;
  pestle_info_t* own = (pestle_info_t*)(uintptr_t)info;
  pestle_allocator_t allocator = own->ops.allocator;
  pestle_map_deinit(&own->ops);
  pestle_arena_deinit(&own->arena);
  pestle_dealloc(allocator, own, sizeof(*own));
}

static size_t find(const pestle_model_value_t* values, size_t count,
                   const char* name) {
  for (size_t i = 0; name && i < count; ++i) {
    if (!strcmp(values[i].name, name)) return i;
  }
  return SIZE_MAX;
}

size_t pestle_model_info_find_input(const pestle_model_info_t* info,
                                    const char* name) {
  return info ? find(info->inputs, info->input_count, name) : SIZE_MAX;
}

size_t pestle_model_info_find_output(const pestle_model_info_t* info,
                                     const char* name) {
  return info ? find(info->outputs, info->output_count, name) : SIZE_MAX;
}
