// SPDX-License-Identifier: Apache-2.0
// The inputs of a model, told before it is imported.
#include "base/mem.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"

typedef struct visit_t {
  pestle_arena_t arena;
  pestle_onnx_model_t model;
  pestle_map_t initializers;  // name -> pestle_onnx_tensor_t*
  pestle_status_t (*fn)(void* user, const pestle_model_input_t* input);
  void* user;
} visit_t;

static pestle_status_t visit_one(visit_t* v,
                                 const pestle_onnx_value_info_t* info) {
  const pestle_map_value_t* slot =
      pestle_map_find_str(&v->initializers, info->name);
  if (slot && v->model.ir_version < 4) return NULL;
  int64_t dims[PESTLE_MAX_RANK];
  pestle_model_input_t input = {
      .struct_size = sizeof(input),
      .name = pestle_arena_strndup(&v->arena, info->name),
      .dtype =
          info->is_tensor ? pestle_onnx_dtype(info->data_type) : PESTLE_NONE,
      .rank = info->is_tensor && info->has_shape ? info->rank : -1,
      .dims = dims};
  if (!input.name) return PESTLE_OOM();
  for (int32_t i = 0; i < input.rank; ++i) {
    int64_t extent = info->dims[i].extent;
    dims[i] = extent < 0 ? PESTLE_DIM_DYNAMIC : extent;
  }
  if (slot) {
    const pestle_onnx_tensor_t* tensor = slot->ptr;
    input.has_default = true;
    input.default_rank = tensor->rank;
    input.default_dims = tensor->dims;
  }
  return v->fn(v->user, &input);
}

static pestle_status_t visit_all(visit_t* v, const void* data, size_t size) {
  PESTLE_TRY(pestle_onnx_model_read_inputs(data, size, &v->arena, &v->model));
  const pestle_onnx_graph_t* graph = &v->model.graph;
  for (size_t i = 0; i < graph->initializer_count; ++i) {
    if (!pestle_map_set_str_ptr(&v->initializers, graph->initializers[i].name,
                                &graph->initializers[i])) {
      return PESTLE_OOM();
    }
  }
  for (size_t i = 0; i < graph->input_count; ++i)
    PESTLE_TRY(visit_one(v, &graph->inputs[i]));
  return NULL;
}

pestle_status_t pestle_onnx_visit_inputs(
    pestle_context_t* context, const void* data, size_t size,
    pestle_status_t (*fn)(void* user, const pestle_model_input_t* input),
    void* user) {
  visit_t v = {.fn = fn, .user = user};
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_arena_init(allocator, &v.arena);
  pestle_map_init(allocator, &v.initializers);
  pestle_status_t status = visit_all(&v, data, size);
  pestle_map_deinit(&v.initializers);
  pestle_arena_deinit(&v.arena);
  return status;
}
