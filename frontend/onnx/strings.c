// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/strings.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "frontend/onnx/tensor.h"

void pestle_onnx_strings_init(pestle_allocator_t allocator,
                              pestle_onnx_strings_t* out_strings) {
  *out_strings = (pestle_onnx_strings_t){0};
  pestle_map_init(allocator, &out_strings->ids);
}

void pestle_onnx_strings_deinit(pestle_onnx_strings_t* strings) {
  pestle_map_deinit(&strings->ids);
}

int32_t pestle_onnx_string_id(const pestle_onnx_strings_t* strings,
                              pestle_str_t string) {
  const pestle_map_value_t* slot = pestle_map_find_str(&strings->ids, string);
  return slot ? (int32_t)slot->u64 : -1;
}

// --- Collecting ---

typedef struct collect_t {
  pestle_onnx_strings_t* strings;
  const char* what;  // "attribute", "tensor"
  pestle_str_t name;
} collect_t;

static pestle_status_t add(void* user, pestle_str_t string) {
  const collect_t* c = user;
  pestle_map_t* ids = &c->strings->ids;
  if (!pestle_utf8_is_valid(string)) {
    return PESTLE_ERROR(MALFORMED,
                        "a string of %s '%.*s' is no UTF-8, which strings of a "
                        "model must be",
                        c->what, PESTLE_STR_ARG(c->name));
  }
  if (pestle_map_size(ids) >= INT32_MAX / 2) {
    return PESTLE_ERROR(UNSUPPORTED, "the model has more than 2^30 strings");
  }
  bool added = false;
  uint64_t id = pestle_map_size(ids);
  pestle_map_value_t* slot =
      pestle_map_put(ids, string.data, string.size, &added);
  if (!slot) return PESTLE_OOM();
  if (added) slot->u64 = id;
  return NULL;
}

static pestle_status_t add_tensor(pestle_onnx_strings_t* strings,
                                  const pestle_onnx_tensor_t* tensor,
                                  pestle_str_t name) {
  collect_t c = {strings, "tensor", name};
  if (tensor->data_type != PESTLE_ONNX_STRING) return NULL;
  return pestle_onnx_tensor_visit_strings(tensor, add, &c);
}

// Lists of strings are data, but for those that choose how an op works; of single
// strings these are data.
static bool is_data(const pestle_onnx_attr_t* attr) {
  static const char* const data[] = {"default_string", "value_string"};
  static const char* const choices[] = {"nodes_modes", "activations"};
  bool list = attr->kind == PESTLE_ONNX_ATTR_STRINGS;
  if (!list && attr->kind != PESTLE_ONNX_ATTR_STRING) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (pestle_str_equal_c(attr->name, list ? choices[i] : data[i]))
      return !list;
  }
  return list;
}

static pestle_status_t add_graph(pestle_onnx_strings_t* strings,
                                 const pestle_onnx_graph_t* graph);

static pestle_status_t add_attr(pestle_onnx_strings_t* strings,
                                const pestle_onnx_attr_t* attr) {
  collect_t c = {strings, "attribute", attr->name};
  if (attr->tensor) PESTLE_TRY(add_tensor(strings, attr->tensor, attr->name));
  if (attr->graph) PESTLE_TRY(add_graph(strings, attr->graph));
  if (!is_data(attr)) return NULL;
  if (attr->kind == PESTLE_ONNX_ATTR_STRING) return add(&c, attr->s);
  for (size_t i = 0; i < attr->count; ++i)
    PESTLE_TRY(add(&c, attr->strings[i]));
  return NULL;
}

// What ops say where nothing is found, by their text.
static pestle_status_t add_defaults(pestle_onnx_strings_t* strings,
                                    const pestle_onnx_node_t* node) {
  collect_t c = {strings, "op", node->op_type};
  if (pestle_str_is_one_of(node->op_type, "LabelEncoder CategoryMapper"))
    return add(&c, pestle_str("_Unused"));
  if (pestle_str_equal_c(node->op_type, "DictVectorizer"))
    return add(&c, pestle_str(""));
  if (pestle_str_equal_c(node->op_type, "CastMap"))
    return add(&c, pestle_str("0.f"));
  return NULL;
}

// Bodies lie inside each other at most PESTLE_PROTO_MAX_DEPTH deep.
static pestle_status_t add_graph(pestle_onnx_strings_t* strings,
                                 const pestle_onnx_graph_t* graph) {
  for (size_t i = 0; i < graph->initializer_count; ++i) {
    const pestle_onnx_tensor_t* tensor = &graph->initializers[i];
    PESTLE_TRY(add_tensor(strings, tensor, tensor->name));
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    PESTLE_TRY(add_defaults(strings, node));
    for (uint32_t a = 0; a < node->attr_count; ++a)
      PESTLE_TRY(add_attr(strings, &node->attrs[a]));
  }
  return NULL;
}

// --- The dictionary's text ---

// "3:red5:green": each with how many bytes it has, as a string of MLIR's.
static pestle_status_t make_text(pestle_arena_t* arena,
                                 pestle_onnx_strings_t* strings,
                                 const char** out_text) {
  pestle_strbuf_t words, text;
  pestle_strbuf_init(strings->ids.allocator, &words);
  pestle_strbuf_init(strings->ids.allocator, &text);
  size_t cursor = 0;
  for (const pestle_map_entry_t* e;
       (e = pestle_map_next(&strings->ids, &cursor));) {
    pestle_str_t key = pestle_map_entry_key(e);
    pestle_strbuf_appendf(&words, "%zu:", key.size);
    pestle_strbuf_append(&words, key);
  }
  pestle_strbuf_append_quoted(&text, pestle_strbuf_view(&words));
  pestle_status_t status = pestle_strbuf_status(&words);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status) {
    *out_text = pestle_arena_strndup(arena, pestle_strbuf_view(&text));
    if (!*out_text) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&words);
  return status;
}

// |untyped|: an output whose type is not said may be of strings.
static bool has_strings(const pestle_onnx_graph_t* graph, bool untyped) {
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (graph->inputs[i].data_type == PESTLE_ONNX_STRING) return true;
  }
  for (size_t i = 0; i < graph->output_count; ++i) {
    int32_t type = graph->outputs[i].data_type;
    if (type == PESTLE_ONNX_STRING || (untyped && !type)) return true;
  }
  return false;
}

pestle_status_t pestle_onnx_strings_collect(const pestle_onnx_model_t* model,
                                            pestle_arena_t* arena,
                                            pestle_onnx_strings_t* strings) {
  PESTLE_TRY(add_graph(strings, &model->graph));
  for (size_t i = 0; i < model->function_count; ++i) {
    const pestle_onnx_function_t* function = &model->functions[i];
    PESTLE_TRY(add_graph(strings, &function->body));
    for (size_t a = 0; a < function->default_count; ++a)
      PESTLE_TRY(add_attr(strings, &function->defaults[a]));
  }
  bool untyped = pestle_map_size(&strings->ids) > 0;
  bool border = has_strings(&model->graph, untyped);
  return make_text(arena, strings, border ? &strings->text : &strings->inner);
}

// --- Tensors of strings ---

pestle_status_t pestle_onnx_tensor_visit_strings(
    const pestle_onnx_tensor_t* tensor,
    pestle_status_t (*visit)(void* user, pestle_str_t string), void* user) {
  enum { STRING_DATA = 6 };
  pestle_proto_t message = tensor->message;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    pestle_str_t string;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    if (field.number != STRING_DATA) continue;
    PESTLE_TRY(pestle_proto_read_str(&message, &field, &string));
    PESTLE_TRY(visit(user, string));
  }
}

typedef struct ids_t {
  const pestle_onnx_strings_t* strings;
  int32_t* data;
  int64_t found, room;
} ids_t;

static pestle_status_t take_id(void* user, pestle_str_t string) {
  ids_t* ids = user;
  if (ids->found < ids->room)
    ids->data[ids->found] = pestle_onnx_string_id(ids->strings, string);
  ++ids->found;
  return NULL;
}

pestle_status_t pestle_onnx_tensor_ids(const pestle_onnx_tensor_t* tensor,
                                       const pestle_onnx_strings_t* strings,
                                       pestle_arena_t* arena,
                                       pestle_elements_t* out_elements) {
  ids_t ids = {.strings = strings};
  size_t bytes;
  *out_elements =
      (pestle_elements_t){.type = {.dtype = PESTLE_I32, .rank = tensor->rank}};
  if (tensor->indices || tensor->has_raw || tensor->is_external) {
    return PESTLE_ERROR(MALFORMED,
                        "the strings of tensor '%.*s' lie where only numbers "
                        "may: sparse, as raw data or in another file",
                        PESTLE_STR_ARG(tensor->name));
  }
  PESTLE_TRY(pestle_onnx_tensor_visit_strings(tensor, take_id, &ids));
  if (!pestle_checked_count(tensor->dims, (size_t)tensor->rank, &ids.room) ||
      ids.room != ids.found) {
    return PESTLE_ERROR(MALFORMED,
                        "tensor '%.*s' holds %lld strings, which its dims do "
                        "not say",
                        PESTLE_STR_ARG(tensor->name), (long long)ids.found);
  }
  memcpy(out_elements->type.dims, tensor->dims,
         (size_t)tensor->rank * sizeof(int64_t));
  bytes = (size_t)ids.room * sizeof(int32_t);
  ids.found = 0;
  ids.data = pestle_arena_alloc_zero(arena, bytes + 1, 16);
  if (!ids.data) return PESTLE_OOM();
  PESTLE_TRY(pestle_onnx_tensor_visit_strings(tensor, take_id, &ids));
  out_elements->data = ids.data;
  out_elements->size = bytes;
  return NULL;
}
