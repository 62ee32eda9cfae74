// SPDX-License-Identifier: Apache-2.0
// Inputs of a model that are maps: each becomes two, its keys and its values, lists of one
// length, and the nodes that take the map take both (CastMap, DictVectorizer).
//
//   x: map(string, f32)  ->  x.keys: string [x], x.values: f32 [x]
#include "base/mem.h"
#include "frontend/onnx/source.h"

static pestle_status_t name_of(pestle_arena_t* arena, pestle_str_t name,
                               const char* part, pestle_str_t* out) {
  pestle_strbuf_t text;
  pestle_strbuf_init(arena->allocator, &text);
  pestle_strbuf_append(&text, name);
  pestle_strbuf_append_c(&text, part);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    pestle_str_t view = pestle_strbuf_view(&text);
    *out = pestle_str_make(pestle_arena_strndup(arena, view), view.size);
    if (!out->data) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t make_input(pestle_arena_t* arena,
                                  const pestle_onnx_value_info_t* map,
                                  bool of_keys, pestle_onnx_value_info_t* out) {
  *out = (pestle_onnx_value_info_t){
      .is_tensor = true,
      .has_shape = true,
      .data_type = of_keys ? map->map_key : map->data_type,
      .rank = 1,
      .dims = PESTLE_ARENA_ARRAY(arena, pestle_onnx_dim_t, 1)};
  if (!out->dims) return PESTLE_OOM();
  out->dims[0] = (pestle_onnx_dim_t){.extent = -1, .param = map->name};
  return name_of(arena, map->name, of_keys ? ".keys" : ".values", &out->name);
}

static bool takes_maps(const pestle_onnx_node_t* node) {
  return pestle_str_equal_c(node->domain, "ai.onnx.ml") &&
         (pestle_str_is_one_of(node->op_type, "CastMap DictVectorizer"));
}

// |node| with both in the place of |map|.
static pestle_status_t give_both(pestle_arena_t* arena, pestle_str_t map,
                                 const pestle_onnx_value_info_t* both,
                                 pestle_onnx_node_t* node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!pestle_str_equal(node->inputs[i], map)) continue;
    if (!takes_maps(node) || node->input_count != 1) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "node '%.*s' (%.*s) takes the input '%.*s', which is "
                          "a map; maps are taken by CastMap and DictVectorizer "
                          "alone",
                          PESTLE_STR_ARG(node->name),
                          PESTLE_STR_ARG(node->op_type), PESTLE_STR_ARG(map));
    }
    node->inputs = PESTLE_ARENA_ARRAY(arena, pestle_str_t, 2);
    if (!node->inputs) return PESTLE_OOM();
    node->inputs[0] = both[0].name;
    node->inputs[1] = both[1].name;
    node->input_count = 2;
  }
  return NULL;
}

pestle_status_t pestle_onnx_spread_maps(pestle_onnx_source_t* source) {
  pestle_onnx_graph_t* graph = &source->model.graph;
  pestle_arena_t* arena = &source->arena;
  size_t maps = 0, at = 0;
  for (size_t i = 0; i < graph->input_count; ++i)
    maps += graph->inputs[i].map_key != 0;
  if (!maps) return NULL;
  pestle_onnx_value_info_t* infos = PESTLE_ARENA_ARRAY(
      arena, pestle_onnx_value_info_t, graph->input_count + maps);
  if (!infos) return PESTLE_OOM();
  for (size_t i = 0; i < graph->input_count; ++i) {
    const pestle_onnx_value_info_t* info = &graph->inputs[i];
    if (!info->map_key) {
      infos[at++] = *info;
      continue;
    }
    PESTLE_TRY(make_input(arena, info, true, &infos[at]));
    PESTLE_TRY(make_input(arena, info, false, &infos[at + 1]));
    for (size_t n = 0; n < graph->node_count; ++n)
      PESTLE_TRY(give_both(arena, info->name, &infos[at], &graph->nodes[n]));
    at += 2;
  }
  graph->inputs = infos;
  graph->input_count = at;
  return NULL;
}
