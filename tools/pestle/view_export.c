// SPDX-License-Identifier: Apache-2.0
// The fused graph for other programs: DOT for Graphviz, and an ONNX file whose nodes
// are kernels, for viewers of models (Netron). The file cannot be run.
#include <inttypes.h>
#include <string.h>

#include "view.h"

// What an op of the entry is called: a fusion by its label.
static pestle_str_t title_of(const cli_graph_node_t* n) {
  return n->label.size ? n->label : n->op;
}

static bool is_op(const cli_graph_node_t* n, const char* op) {
  return pestle_str_equal_c(n->op, op);
}

// The entry: the first function.
static int32_t entry_of(const cli_graph_t* g) {
  for (size_t i = 0; i < g->nodes.size; ++i) {
    if (is_op(&g->nodes.data[i], "func")) return (int32_t)i;
  }
  return -1;
}

// "reduce 2, add 1": what is in a fusion, in its order.
static void append_inner(const cli_graph_t* g, size_t node,
                         pestle_strbuf_t* out) {
  bool is_first = true;
  for (size_t i = node + 1; i < g->nodes.size; ++i) {
    const cli_graph_node_t* n = &g->nodes.data[i];
    if (n->parent < (int32_t)node) return;
    if (is_op(n, "arg") || is_op(n, "return") || is_op(n, "constant")) continue;
    pestle_strbuf_append_c(out, is_first ? "" : ", ");
    pestle_strbuf_append(out, n->op);
    is_first = false;
  }
}

// --- DOT ---

static void append_label(pestle_strbuf_t* out, pestle_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] == '"' || text.data[i] == '\\')
      pestle_strbuf_append_char(out, '\\');
    pestle_strbuf_append_char(out, text.data[i]);
  }
}

static void append_dot_node(const cli_graph_t* g, size_t i,
                            pestle_strbuf_t* out) {
  const cli_graph_node_t* n = &g->nodes.data[i];
  bool is_end = is_op(n, "arg") || is_op(n, "return");
  pestle_strbuf_appendf(out, "  n%zu [label=\"", i);
  append_label(out, is_op(n, "arg") ? n->name : title_of(n));
  pestle_strbuf_append_c(out, "\\n");
  append_label(out, n->type);
  pestle_strbuf_append_c(out, "\"");
  if (is_op(n, "fusion")) {
    pestle_strbuf_append_c(out, ", tooltip=\"");
    append_inner(g, i, out);
    pestle_strbuf_append_c(out, "\", style=filled, fillcolor=\"#dbe7f6\"");
  }
  pestle_strbuf_append_c(out, is_end ? ", shape=oval];\n" : "];\n");
  for (uint32_t j = 0; j < n->count; ++j) {
    int32_t from = g->operands.data[n->first + j];
    if (is_op(&g->nodes.data[from], "constant")) continue;
    pestle_strbuf_appendf(out, "  n%" PRId32 " -> n%zu;\n", from, i);
  }
}

pestle_status_t cli_view_dot(const cli_graph_t* graph, const char* title,
                             pestle_strbuf_t* out) {
  int32_t entry = entry_of(graph);
  pestle_strbuf_append_c(out, "digraph \"");
  append_label(out, pestle_str(title));
  pestle_strbuf_append_c(
      out, "\" {\n  node [shape=box, fontname=\"sans-serif\"];\n");
  for (size_t i = 0; i < graph->nodes.size; ++i) {
    const cli_graph_node_t* n = &graph->nodes.data[i];
    if (n->parent == entry && !is_op(n, "constant"))
      append_dot_node(graph, i, out);
  }
  pestle_strbuf_append_c(out, "}\n");
  return pestle_strbuf_status(out);
}

// --- ONNX: the few messages of it that a graph needs ---

enum { VARINT = 0, BYTES = 2 };

static void put_varint(pestle_strbuf_t* out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    pestle_strbuf_append_char(out, (char)(value | 128));
  pestle_strbuf_append_char(out, (char)value);
}

static void put_number(pestle_strbuf_t* out, unsigned field, uint64_t value) {
  put_varint(out, field << 3 | VARINT);
  put_varint(out, value);
}

static void put_bytes(pestle_strbuf_t* out, unsigned field, pestle_str_t data) {
  put_varint(out, field << 3 | BYTES);
  put_varint(out, data.size);
  pestle_strbuf_append(out, data);
}

// |inner| as a message of |out|; it is empty then.
static void put_message(pestle_strbuf_t* out, unsigned field,
                        pestle_strbuf_t* inner) {
  put_bytes(out, field, pestle_strbuf_view(inner));
  if (inner->failed) out->failed = true;
  pestle_strbuf_clear(inner);
}

// TensorProto.DataType of a dtype's name; 0: it has none.
static uint64_t onnx_type(pestle_str_t name) {
  static const struct {
    const char* name;
    uint64_t number;
  } types[] = {{"f32", 1},   {"ui8", 2},       {"i8", 3},      {"ui16", 4},
               {"i16", 5},   {"i32", 6},       {"i64", 7},     {"i1", 9},
               {"f16", 10},  {"f64", 11},      {"ui32", 12},   {"ui64", 13},
               {"bf16", 16}, {"f8E4M3FN", 17}, {"f8E5M2", 19}, {"ui4", 21},
               {"i4", 22}};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    if (pestle_str_equal_c(name, types[i].name)) return types[i].number;
  }
  return 0;
}

// The TypeProto of "tensor<1x64xf32>"; what is no such type is left out.
static void put_type(pestle_strbuf_t* out, unsigned field, pestle_str_t type) {
  pestle_str_t text = type, dim, last = pestle_str("");
  if (!pestle_str_starts_with(type, PESTLE_STR("tensor<"))) return;
  text = pestle_str_slice(type, 7, pestle_str_rfind_char(type, '>'));
  pestle_strbuf_t shape, tensor, whole;
  pestle_strbuf_init(pestle_allocator_system(), &shape);
  pestle_strbuf_init(pestle_allocator_system(), &tensor);
  pestle_strbuf_init(pestle_allocator_system(), &whole);
  while (pestle_str_next(&text, 'x', &dim)) {
    uint64_t extent;
    last = dim;
    if (!pestle_str_parse_u64(dim, &extent)) break;
    put_number(&whole, 1, extent);
    put_message(&shape, 1, &whole);
  }
  put_number(&tensor, 1, onnx_type(last));
  put_message(&tensor, 2, &shape);
  put_message(&whole, 1, &tensor);
  put_message(out, field, &whole);
  pestle_strbuf_deinit(&shape);
  pestle_strbuf_deinit(&tensor);
  pestle_strbuf_deinit(&whole);
}

// A ValueInfoProto.
static void put_value(pestle_strbuf_t* out, unsigned field,
                      const cli_graph_node_t* n, pestle_str_t type) {
  pestle_strbuf_t value;
  pestle_strbuf_init(pestle_allocator_system(), &value);
  put_bytes(&value, 1, n->name);
  put_type(&value, 2, type);
  put_message(out, field, &value);
  pestle_strbuf_deinit(&value);
}

// An AttributeProto that is a string.
static void put_attribute(pestle_strbuf_t* out, const char* name,
                          pestle_str_t text) {
  enum { STRING = 3 };
  pestle_strbuf_t attribute;
  pestle_strbuf_init(pestle_allocator_system(), &attribute);
  put_bytes(&attribute, 1, pestle_str(name));
  put_bytes(&attribute, 4, text);
  put_number(&attribute, 20, STRING);
  put_message(out, 5, &attribute);
  pestle_strbuf_deinit(&attribute);
}

// A node of the domain "pestle"; a constant is ONNX's own, with its type for a value.
static void put_node(pestle_strbuf_t* out, const cli_graph_t* g, size_t i) {
  const cli_graph_node_t* n = &g->nodes.data[i];
  pestle_strbuf_t node, ops;
  pestle_strbuf_init(pestle_allocator_system(), &node);
  pestle_strbuf_init(pestle_allocator_system(), &ops);
  for (uint32_t j = 0; j < n->count; ++j)
    put_bytes(&node, 1, g->nodes.data[g->operands.data[n->first + j]].name);
  put_bytes(&node, 2, n->name);
  put_bytes(&node, 3, n->location.size ? n->location : n->name);
  if (is_op(n, "constant")) {
    put_bytes(&node, 4, PESTLE_STR("Constant"));
    put_attribute(&node, "value_string", n->type);
  } else {
    put_bytes(&node, 4, title_of(n));
    append_inner(g, i, &ops);
    if (ops.size) put_attribute(&node, "ops", pestle_strbuf_view(&ops));
    put_bytes(&node, 7, PESTLE_STR("pestle"));
  }
  put_message(out, 1, &node);
  pestle_strbuf_deinit(&node);
  pestle_strbuf_deinit(&ops);
}

static void put_graph(const cli_graph_t* g, const char* title,
                      pestle_strbuf_t* out) {
  int32_t entry = entry_of(g);
  for (size_t i = 0; i < g->nodes.size; ++i) {
    const cli_graph_node_t* n = &g->nodes.data[i];
    if (n->parent != entry || is_op(n, "func")) continue;
    if (is_op(n, "arg")) {
      put_value(out, 11, n, n->type);
    } else if (is_op(n, "return")) {
      for (uint32_t j = 0; j < n->count; ++j) {
        const cli_graph_node_t* from =
            &g->nodes.data[g->operands.data[n->first + j]];
        put_value(out, 12, from, from->type);
      }
    } else {
      put_node(out, g, i);
      put_value(out, 13, n, n->type);
    }
  }
  put_bytes(out, 2, pestle_str(title));
}

static void put_opset(pestle_strbuf_t* out, const char* domain,
                      uint64_t version) {
  pestle_strbuf_t opset;
  pestle_strbuf_init(pestle_allocator_system(), &opset);
  put_bytes(&opset, 1, pestle_str(domain));
  put_number(&opset, 2, version);
  put_message(out, 8, &opset);
  pestle_strbuf_deinit(&opset);
}

pestle_status_t cli_view_onnx(const cli_graph_t* graph, const char* title,
                              pestle_strbuf_t* out) {
  pestle_strbuf_t inner;
  pestle_strbuf_init(pestle_allocator_system(), &inner);
  put_graph(graph, title, &inner);
  put_number(out, 1, 8);
  put_bytes(out, 2, PESTLE_STR("pestle"));
  put_message(out, 7, &inner);
  put_opset(out, "", 18);
  put_opset(out, "pestle", 1);
  pestle_strbuf_deinit(&inner);
  return pestle_strbuf_status(out);
}
