// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/source.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/mem.h"
#include "frontend/onnx/tensor.h"
#include "ir/graph.h"

pestle_status_t pestle_onnx_source_create(pestle_context_t* context,
                                          const char* file, const char* folder,
                                          pestle_onnx_source_t** out_source) {
  *out_source = NULL;
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_onnx_source_t* source =
      pestle_alloc_zero(allocator, sizeof(pestle_onnx_source_t));
  if (!source) return PESTLE_OOM();
  source->refs = 1;
  source->context = context;
  pestle_context_retain(context);
  pestle_arena_init(allocator, &source->arena);
  pestle_map_init(allocator, &source->inputs);
  pestle_onnx_strings_init(allocator, &source->strings);
  source->file = pestle_arena_strdup(&source->arena, file);
  if (folder) source->folder = pestle_arena_strdup(&source->arena, folder);
  if (!source->file || (folder && !source->folder)) {
    pestle_onnx_source_release(source);
    return PESTLE_OOM();
  }
  *out_source = source;
  return NULL;
}

void pestle_onnx_source_retain(pestle_onnx_source_t* source) {
  __atomic_fetch_add(&source->refs, 1, __ATOMIC_RELAXED);
}

void pestle_onnx_source_release(void* self) {
  pestle_onnx_source_t* source = self;
  if (!source) return;
  if (__atomic_sub_fetch(&source->refs, 1, __ATOMIC_ACQ_REL)) return;
  pestle_context_t* context = source->context;
  pestle_onnx_source_t* parent = source->parent;
  pestle_file_unmap(&source->mapping);
  pestle_map_deinit(&source->inputs);
  pestle_onnx_strings_deinit(&source->strings);
  pestle_arena_deinit(&source->arena);
  pestle_dealloc(pestle_context_allocator(context), source, sizeof(*source));
  pestle_onnx_source_release(parent);
  pestle_context_release(context);
}

// --- What the inputs are ---

const pestle_onnx_value_info_t* pestle_onnx_find_input(
    const pestle_onnx_source_t* source, const char* name, size_t* out_index) {
  while (source->parent)
    source = source->parent;
  const pestle_map_value_t* slot =
      pestle_map_find_str(&source->inputs, pestle_str(name));
  if (!slot) return NULL;
  if (out_index) *out_index = (size_t)slot->u64;
  return &source->model.graph.inputs[slot->u64];
}

static pestle_status_t name_inputs(pestle_onnx_source_t* source) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  source->input_kinds =
      pestle_arena_alloc_zero(&source->arena, graph->input_count + 1, 1);
  if (!source->input_kinds) return PESTLE_OOM();
  for (size_t i = 0; i < graph->input_count; ++i) {
    bool added;
    pestle_str_t name = graph->inputs[i].name;
    pestle_map_value_t* slot =
        pestle_map_put(&source->inputs, name.data, name.size, &added);
    if (!slot) return PESTLE_OOM();
    if (!added) {
      return PESTLE_ERROR(MALFORMED, "the model has two inputs called '%.*s'",
                          PESTLE_STR_ARG(name));
    }
    slot->u64 = i;
  }
  return NULL;
}

static pestle_status_t note_initializer(pestle_onnx_source_t* source,
                                        const pestle_onnx_tensor_t* tensor) {
  const pestle_map_value_t* slot =
      pestle_map_find_str(&source->inputs, tensor->name);
  if (!slot) return NULL;
  source->input_kinds[slot->u64] =
      source->model.ir_version >= 4 ? PESTLE_ONNX_DEFAULT : PESTLE_ONNX_STORED;
  const pestle_onnx_value_info_t* info = &source->model.graph.inputs[slot->u64];
  if (!info->is_tensor) return NULL;
  if (info->data_type && info->data_type != tensor->data_type) {
    return PESTLE_ERROR(MALFORMED,
                        "the model declares its input '%.*s' to be of %s, its "
                        "initializer is of %s",
                        PESTLE_STR_ARG(info->name),
                        pestle_onnx_dtype_name(info->data_type),
                        pestle_onnx_dtype_name(tensor->data_type));
  }
  bool fits = !info->has_shape || info->rank == tensor->rank;
  for (int32_t i = 0; fits && info->has_shape && i < info->rank; ++i) {
    int64_t extent = info->dims[i].extent;
    fits = extent < 0 || extent == tensor->dims[i];
  }
  if (fits) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "the model declares its input '%.*s' with another shape "
                      "than its initializer has",
                      PESTLE_STR_ARG(info->name));
}

// An input with a default whose shape the caller gives is one that they give.
static void note_shapes(pestle_onnx_source_t* source,
                        const pestle_import_options_t* options) {
  for (size_t i = 0; options && i < options->shape_count; ++i) {
    const char* name = options->shapes[i].input;
    size_t index;
    if (name && pestle_onnx_find_input(source, name, &index) &&
        source->input_kinds[index] == PESTLE_ONNX_DEFAULT) {
      source->input_kinds[index] = PESTLE_ONNX_ARGUMENT;
    }
  }
}

static pestle_status_t classify(pestle_onnx_source_t* source,
                                const pestle_import_options_t* options) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  PESTLE_TRY(name_inputs(source));
  for (size_t i = 0; i < graph->initializer_count; ++i)
    PESTLE_TRY(note_initializer(source, &graph->initializers[i]));
  note_shapes(source, options);
  return NULL;
}

const pestle_onnx_strings_t* pestle_onnx_source_strings(
    const pestle_onnx_source_t* source) {
  while (source->parent)
    source = source->parent;
  return &source->strings;
}

// --- Constants given by the caller ---

static pestle_status_t read_view(pestle_arena_t* arena, const char* name,
                                 const pestle_tensor_t* view,
                                 pestle_elements_t* out) {
  pestle_status_t status =
      view ? pestle_elements_copy_view(arena, view, out)
           : PESTLE_ERROR(INVALID_ARGUMENT, "there is none");
  if (pestle_status_code(status) != PESTLE_STATUS_INVALID_ARGUMENT) {
    return status;
  }
  pestle_status_release(status);
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the constant for input '%s' is not a host tensor that "
                      "can be read",
                      name);
}

// A lone number stands for every element of the input, so that the command line
// need not know its shape. What nothing fixes is 1 long.
static pestle_status_t spread(const pestle_onnx_value_info_t* info,
                              const pestle_import_options_t* options,
                              pestle_elements_t* elements) {
  pestle_type_t type;
  int64_t count;
  const pestle_shape_binding_t* shape = NULL;
  for (size_t i = 0; !shape && i < options->shape_count; ++i) {
    const char* input = options->shapes[i].input;
    if (input && pestle_str_equal_c(info->name, input))
      shape = &options->shapes[i];
  }
  PESTLE_TRY(pestle_onnx_input_type(info, options, shape, &type));
  for (int32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] == PESTLE_DIM_DYNAMIC) type.dims[i] = 1;
  }
  if (!pestle_checked_count(type.dims, (size_t)type.rank, &count)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input '%.*s' has more elements than 2^63",
                        PESTLE_STR_ARG(info->name));
  }
  elements->type = type;
  elements->splat = count > 1;
  if (!count) elements->size = 0;
  return NULL;
}

static pestle_status_t fit(const pestle_onnx_value_info_t* info,
                           const pestle_import_options_t* options,
                           pestle_elements_t* elements) {
  pestle_type_t* type = &elements->type;
  bool fits = type->rank == info->rank || !info->has_shape;
  for (int32_t i = 0; fits && i < type->rank && info->has_shape; ++i) {
    int64_t extent = info->dims[i].extent;
    fits = extent < 0 || extent == type->dims[i];
  }
  if (fits) return NULL;
  if (type->rank == 0) return spread(info, options, elements);
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the constant for input '%.*s' has another shape than "
                      "the model says",
                      PESTLE_STR_ARG(info->name));
}

// A lone number becomes what the model wants where that holds it exactly, or,
// among floats, as nearly as that can.
static bool convert_number(pestle_arena_t* arena, pestle_dtype_t wanted,
                           pestle_elements_t* elements) {
  unsigned kinds = PESTLE_KIND_REAL | PESTLE_KIND_BOOL;
  if (elements->type.rank != 0 || !pestle_dtype_is(wanted, kinds) ||
      !pestle_dtype_is(elements->type.dtype, PESTLE_KIND_REAL)) {
    return false;
  }
  pestle_elements_t out = {.type = {.dtype = wanted},
                           .size = pestle_dtype_size(wanted)};
  void* data = pestle_arena_alloc_zero(arena, 8, 8);
  if (!data) return false;
  out.data = data;
  if (pestle_dtype_is(wanted, PESTLE_KIND_FLOAT) ||
      pestle_dtype_is(elements->type.dtype, PESTLE_KIND_FLOAT)) {
    double value = pestle_onnx_element_f64(elements, 0);
    pestle_onnx_store_f64(wanted, value, data);
    // Floats may round, integers must not.
    if (!pestle_dtype_is(wanted, PESTLE_KIND_FLOAT) &&
        pestle_onnx_element_f64(&out, 0) != value) {
      return false;
    }
  } else {
    int64_t value = pestle_onnx_element_i64(elements, 0);
    pestle_onnx_store_bits(wanted, (uint64_t)value, data);
    if (pestle_onnx_element_i64(&out, 0) != value) return false;
  }
  *elements = out;
  return true;
}

static pestle_status_t wrong_dtype(const pestle_onnx_value_info_t* info,
                                   const pestle_elements_t* elements) {
  char number[48] = "";
  if (elements->type.rank == 0 &&
      pestle_dtype_is(elements->type.dtype, PESTLE_KIND_REAL)) {
    snprintf(number, sizeof(number), " %.17g",
             pestle_onnx_element_f64(elements, 0));
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the constant%s for input '%.*s' is of %s, the model "
                      "says %s%s",
                      number, PESTLE_STR_ARG(info->name),
                      pestle_dtype_info(elements->type.dtype)->name,
                      pestle_onnx_dtype_name(info->data_type),
                      number[0] ? ", which cannot hold it" : "");
}

static pestle_status_t bind_one(pestle_onnx_source_t* source,
                                const pestle_import_options_t* options,
                                const pestle_const_binding_t* binding,
                                pestle_onnx_bound_t* out) {
  if (!binding->input) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a constant is given without the input's name");
  }
  size_t index;
  PESTLE_TRY(pestle_onnx_check_input(source, "a constant", binding->input));
  const pestle_onnx_value_info_t* info =
      pestle_onnx_find_input(source, binding->input, &index);
  source->input_kinds[index] = PESTLE_ONNX_BOUND;
  out->name = info->name;
  PESTLE_TRY(read_view(&source->arena, binding->input, binding->value,
                       &out->elements));
  pestle_dtype_t wanted = pestle_onnx_dtype(info->data_type);
  if (out->elements.type.dtype != wanted &&
      !convert_number(&source->arena, wanted, &out->elements)) {
    return wrong_dtype(info, &out->elements);
  }
  return fit(info, options, &out->elements);
}

pestle_status_t pestle_onnx_source_bind(
    pestle_onnx_source_t* source, const pestle_import_options_t* options) {
  PESTLE_TRY(classify(source, options));
  PESTLE_TRY(pestle_onnx_strings_collect(&source->model, &source->arena,
                                         &source->strings));
  if (!options || !options->const_count) return NULL;
  source->bound = PESTLE_ARENA_ARRAY(&source->arena, pestle_onnx_bound_t,
                                     options->const_count);
  if (!source->bound) return PESTLE_OOM();
  for (size_t i = 0; i < options->const_count; ++i) {
    PESTLE_TRY(
        bind_one(source, options, &options->consts[i], &source->bound[i]));
    source->bound_count = i + 1;
  }
  return NULL;
}

static pestle_status_t copy_bound(pestle_arena_t* arena,
                                  const pestle_onnx_bound_t* from,
                                  pestle_onnx_bound_t* out) {
  *out = *from;
  out->elements.data = pestle_arena_copy(
      arena, from->elements.data, from->elements.size, PESTLE_BUFFER_ALIGNMENT);
  return out->elements.data ? NULL : PESTLE_OOM();
}

static pestle_status_t bind_kinds(pestle_onnx_source_t* source,
                                  const pestle_onnx_bound_t* more,
                                  size_t count) {
  const pestle_onnx_source_t* root = source->parent;
  source->input_kinds =
      pestle_arena_copy(&source->arena, root->input_kinds,
                        source->model.graph.input_count + 1, 1);
  if (!source->input_kinds) return PESTLE_OOM();
  while (root->parent)
    root = root->parent;
  for (size_t i = 0; i < count; ++i) {
    const pestle_map_value_t* slot =
        pestle_map_find_str(&root->inputs, more[i].name);
    if (slot) source->input_kinds[slot->u64] = PESTLE_ONNX_BOUND;
  }
  return NULL;
}

static pestle_status_t add_bound(pestle_onnx_source_t* source,
                                 const pestle_onnx_bound_t* more,
                                 size_t count) {
  const pestle_onnx_source_t* parent = source->parent;
  source->bound = PESTLE_ARENA_ARRAY(&source->arena, pestle_onnx_bound_t,
                                     parent->bound_count + count + 1);
  if (!source->bound) return PESTLE_OOM();
  for (size_t i = 0; i < parent->bound_count; ++i)
    source->bound[source->bound_count++] = parent->bound[i];
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(copy_bound(&source->arena, &more[i],
                          &source->bound[source->bound_count]));
    ++source->bound_count;
  }
  return bind_kinds(source, more, count);
}

pestle_status_t pestle_onnx_source_extend(pestle_onnx_source_t* parent,
                                          const pestle_onnx_bound_t* more,
                                          size_t count,
                                          pestle_onnx_source_t** out_source) {
  PESTLE_TRY(pestle_onnx_source_create(parent->context, parent->file,
                                       parent->folder, out_source));
  pestle_onnx_source_t* source = *out_source;
  pestle_onnx_source_retain(parent);
  source->parent = parent;
  source->data = parent->data;
  source->size = parent->size;
  source->model = parent->model;
  source->compat = parent->compat;
  source->lengths = parent->lengths;
  source->length_count = parent->length_count;
  pestle_status_t status = add_bound(source, more, count);
  if (status) {
    pestle_onnx_source_release(source);
    *out_source = NULL;
  }
  return status;
}
