// SPDX-License-Identifier: Apache-2.0
// From the inputs that a model declares and what the caller says about their
// shapes to the types of the entry function's arguments.
#include <stdio.h>

#include "base/closest.h"
#include "base/mem.h"
#include "base/thread.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"

bool pestle_onnx_is_argument(const pestle_onnx_source_t* source,
                             const pestle_onnx_value_info_t* info) {
  size_t index = (size_t)(info - source->model.graph.inputs);
  return source->input_kinds[index] == PESTLE_ONNX_ARGUMENT;
}

pestle_dtype_t pestle_onnx_io_dtype(int64_t data_type) {
  return data_type == PESTLE_ONNX_STRING ? PESTLE_I32
                                         : pestle_onnx_dtype(data_type);
}

static int64_t dim_of(const pestle_import_options_t* options,
                      const pestle_onnx_dim_t* dim) {
  if (dim->extent >= 0) return dim->extent;
  for (size_t i = 0; options && dim->param.size && i < options->dim_count;
       ++i) {
    if (pestle_str_equal_c(dim->param, options->dims[i].name)) {
      return options->dims[i].extent;
    }
  }
  return PESTLE_DIM_DYNAMIC;
}

static pestle_status_t check_input(const pestle_onnx_value_info_t* info) {
  if (!info->is_tensor) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "input '%.*s' of the model is not a tensor",
                        PESTLE_STR_ARG(info->name));
  }
  if (pestle_onnx_io_dtype(info->data_type) == PESTLE_NONE) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "input '%.*s' of the model has the element type %s "
                        "(%d), which is not supported",
                        PESTLE_STR_ARG(info->name),
                        pestle_onnx_dtype_name(info->data_type),
                        info->data_type);
  }
  return NULL;
}

const char* pestle_onnx_print_dims(const pestle_type_t* type, char* buffer,
                                   size_t capacity) {
  size_t at = 0;
  buffer[0] = 0;
  if (type->rank == 0) snprintf(buffer, capacity, "scalar");
  for (int32_t i = 0; i < type->rank && at < capacity; ++i) {
    const char* separator = i ? "x" : "";
    int n = type->dims[i] == PESTLE_DIM_DYNAMIC
                ? snprintf(buffer + at, capacity - at, "%s?", separator)
                : snprintf(buffer + at, capacity - at, "%s%lld", separator,
                           (long long)type->dims[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  return buffer;
}

const char* pestle_onnx_print_declared(const pestle_onnx_value_info_t* info,
                                       char* buffer, size_t capacity) {
  pestle_type_t declared = {.rank = info->rank};
  for (int32_t i = 0; i < info->rank; ++i) {
    int64_t extent = info->dims[i].extent;
    declared.dims[i] = extent < 0 ? PESTLE_DIM_DYNAMIC : extent;
  }
  return pestle_onnx_print_dims(&declared, buffer, capacity);
}

// Whether |type| is one that the declaration allows.
static pestle_status_t check_type(const pestle_onnx_value_info_t* info,
                                  const pestle_type_t* type) {
  char found[400], wanted[400];
  bool fits = !info->has_shape || info->rank == type->rank;
  for (int32_t i = 0; fits && info->has_shape && i < info->rank; ++i) {
    int64_t extent = info->dims[i].extent;
    fits = extent < 0 || extent == type->dims[i];
  }
  if (!fits) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "input '%.*s' is given the shape %s, the model says %s",
        PESTLE_STR_ARG(info->name),
        pestle_onnx_print_dims(type, found, sizeof(found)),
        pestle_onnx_print_declared(info, wanted, sizeof(wanted)));
  }
  if (type->dtype != pestle_onnx_io_dtype(info->data_type)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input '%.*s' is given elements of %s, the model says "
                        "%s",
                        PESTLE_STR_ARG(info->name),
                        pestle_dtype_info(type->dtype)->name,
                        pestle_onnx_dtype_name(info->data_type));
  }
  return NULL;
}

pestle_status_t pestle_onnx_input_type(const pestle_onnx_value_info_t* info,
                                       const pestle_import_options_t* options,
                                       const pestle_shape_binding_t* shape,
                                       pestle_type_t* out) {
  PESTLE_TRY(check_input(info));
  *out = (pestle_type_t){.dtype = pestle_onnx_io_dtype(info->data_type),
                         .rank = info->rank};
  if (!shape) {
    if (!info->has_shape) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the model does not say which rank input '%.*s' has: "
                          "give its shape (--shape %.*s=1x3x...)",
                          PESTLE_STR_ARG(info->name),
                          PESTLE_STR_ARG(info->name));
    }
    for (int32_t i = 0; i < info->rank; ++i) {
      out->dims[i] = dim_of(options, &info->dims[i]);
    }
    return NULL;
  }
  if (shape->rank < 0 || shape->rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the shape for input '%s' has %d dimensions",
                        shape->input, shape->rank);
  }
  out->rank = shape->rank;
  for (int32_t i = 0; i < shape->rank; ++i)
    out->dims[i] = shape->dims[i];
  return check_type(info, out);
}

// Appends 'name' to a list.
static void append_name(pestle_strbuf_t* names, pestle_str_t name) {
  pestle_strbuf_appendf(names, names->size ? ", '%.*s'" : "'%.*s'",
                        PESTLE_STR_ARG(name));
}

// The inputs that a caller may give.
static void append_inputs(const pestle_onnx_source_t* source,
                          pestle_strbuf_t* names, pestle_closest_t* closest) {
  enum { MOST = 32 };
  const pestle_onnx_graph_t* graph = &source->model.graph;
  size_t count = 0;
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (source->input_kinds[i] == PESTLE_ONNX_STORED) continue;
    pestle_closest_offer(closest, graph->inputs[i].name);
    if (count++ < MOST) append_name(names, graph->inputs[i].name);
  }
  if (count > MOST) pestle_strbuf_appendf(names, " and %zu more", count - MOST);
}

static pestle_status_t no_input(const pestle_onnx_source_t* source,
                                const char* what, const char* name) {
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_context_allocator(source->context), &names);
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  append_inputs(source, &names, &closest);
  pestle_status_t status = PESTLE_ERROR(
      NOT_FOUND,
      "%s is given for '%s', but the model has no such input; it has %s%s",
      what, name, names.size ? pestle_strbuf_cstr(&names) : "none",
      pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&names);
  return status;
}

pestle_status_t pestle_onnx_check_input(const pestle_onnx_source_t* source,
                                        const char* what, const char* name) {
  size_t index;
  if (!pestle_onnx_find_input(source, name, &index)) {
    return no_input(source, what, name);
  }
  if (source->input_kinds[index] != PESTLE_ONNX_STORED) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s is given for '%s', which is an initializer of the "
                      "model; from IR version 4 on an input may be one that "
                      "callers replace, the model has version %lld",
                      what, name, (long long)source->model.ir_version);
}

static pestle_status_t check_shape(const pestle_onnx_source_t* source,
                                   const pestle_shape_binding_t* shape) {
  if (!shape->input || (shape->rank > 0 && !shape->dims)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a shape is given without %s",
                        shape->input ? "its dims" : "the input's name");
  }
  return pestle_onnx_check_input(source, "a shape", shape->input);
}

static bool has_dim(const pestle_onnx_value_info_t* info, const char* name) {
  for (int32_t i = 0; i < info->rank; ++i) {
    if (pestle_str_equal_c(info->dims[i].param, name)) return true;
  }
  return false;
}

static bool is_listed(const pestle_onnx_graph_t* graph, size_t input,
                      int32_t axis) {
  pestle_str_t name = graph->inputs[input].dims[axis].param;
  for (size_t i = 0; i <= input; ++i) {
    for (int32_t k = 0; k < graph->inputs[i].rank; ++k) {
      if (i == input && k == axis) return false;
      if (pestle_str_equal(graph->inputs[i].dims[k].param, name)) return true;
    }
  }
  return false;
}

static pestle_status_t no_dim(const pestle_onnx_source_t* source,
                              const char* name) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_context_allocator(source->context), &names);
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  for (size_t i = 0; i < graph->input_count; ++i) {
    for (int32_t k = 0; k < graph->inputs[i].rank; ++k) {
      pestle_str_t param = graph->inputs[i].dims[k].param;
      if (!param.size || is_listed(graph, i, k)) continue;
      append_name(&names, param);
      pestle_closest_offer(&closest, param);
    }
  }
  pestle_status_t status =
      PESTLE_ERROR(NOT_FOUND,
                   "no input of the model has a dimension named '%s'; "
                   "they have %s%s",
                   name, names.size ? pestle_strbuf_cstr(&names) : "none",
                   pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&names);
  return status;
}

static pestle_status_t check_dim(const pestle_onnx_source_t* source,
                                 const pestle_dim_binding_t* dim) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  if (!dim->name) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "an extent is given without the dimension's name");
  }
  if (dim->extent < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "dimension '%s' is given the extent %lld", dim->name,
                        (long long)dim->extent);
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (has_dim(&graph->inputs[i], dim->name)) return NULL;
  }
  return no_dim(source, dim->name);
}

// Each binding must name something: a typing error would otherwise go unseen.
static pestle_status_t check_bindings(const pestle_onnx_source_t* source,
                                      const pestle_import_options_t* options) {
  for (size_t i = 0; options && i < options->shape_count; ++i) {
    PESTLE_TRY(check_shape(source, &options->shapes[i]));
  }
  for (size_t i = 0; options && i < options->dim_count; ++i) {
    PESTLE_TRY(check_dim(source, &options->dims[i]));
  }
  return NULL;
}

pestle_status_t pestle_onnx_argument_types(
    pestle_onnx_source_t* source, const pestle_import_options_t* options,
    pestle_type_t* out_types, size_t* out_count) {
  *out_count = 0;
  PESTLE_TRY(check_bindings(source, options));
  const pestle_onnx_graph_t* graph = &source->model.graph;
  const pestle_shape_binding_t** shapes = pestle_arena_alloc_zero(
      &source->arena, (graph->input_count + 1) * sizeof(*shapes), 16);
  if (!shapes) return PESTLE_OOM();
  for (size_t i = options ? options->shape_count : 0; i-- > 0;) {
    size_t index;
    pestle_onnx_find_input(source, options->shapes[i].input, &index);
    shapes[index] = &options->shapes[i];
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    PESTLE_TRY(pestle_onnx_input_type(&graph->inputs[i], options, shapes[i],
                                      &out_types[(*out_count)++]));
  }
  return NULL;
}

pestle_status_t pestle_onnx_check_types(const pestle_onnx_source_t* source,
                                        const pestle_type_t* types,
                                        size_t count) {
  const pestle_onnx_graph_t* graph = &source->model.graph;
  size_t at = 0;
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (!pestle_onnx_is_argument(source, &graph->inputs[i])) continue;
    if (at < count) PESTLE_TRY(check_type(&graph->inputs[i], &types[at]));
    ++at;
  }
  if (at == count) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%zu argument types are given, the model has %zu inputs",
                      count, at);
}

pestle_status_t pestle_onnx_check_control(const pestle_control_t* control,
                                          int64_t done, int64_t total) {
  if (!control) return NULL;
  if (control->cancel && __atomic_load_n(control->cancel, __ATOMIC_RELAXED)) {
    return PESTLE_ERROR(CANCELLED, "the import was cancelled");
  }
  if (control->deadline_ns && pestle_clock_ns() > control->deadline_ns) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "the deadline passed during the import");
  }
  if (control->progress) {
    control->progress(control->progress_user, "import", done, total);
  }
  return NULL;
}
