// SPDX-License-Identifier: Apache-2.0
// Each message is walked twice: once to count its repeated fields, so that the
// arrays can be made in one piece, once to fill them. Field numbers are those
// of onnx.proto.
#include "frontend/onnx/model.h"

#include <stdlib.h>

#include "base/mem.h"

static pestle_status_t read_graph(pestle_proto_t message, int depth,
                                  pestle_arena_t* arena,
                                  pestle_onnx_graph_t* out);

// Makes a cleared array; an array of no elements is not asked for.
static pestle_status_t make_array(pestle_arena_t* arena, size_t count,
                                  size_t element_size, void* out_field) {
  void* data = NULL;
  size_t size;
  if (__builtin_mul_overflow(count, element_size, &size)) return PESTLE_OOM();
  if (count) {
    data = pestle_arena_alloc_zero(arena, size, 16);
    if (!data) return PESTLE_OOM();
  }
  memcpy(out_field, &data, sizeof(data));
  return NULL;
}

#define MAKE_ARRAY(arena, count, field) \
  make_array((arena), (count), sizeof(**(field)), (field))

// Counts the occurrences of the fields |numbers[i]| in |message|.
static pestle_status_t count_fields(pestle_proto_t message,
                                    const uint32_t* numbers, size_t count,
                                    size_t* out_counts) {
  memset(out_counts, 0, count * sizeof(*out_counts));
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    for (size_t i = 0; i < count; ++i) {
      if (field.number == numbers[i]) ++out_counts[i];
    }
  }
}

// The body of a message: a cursor over the bytes of |field|.
static pestle_status_t enter(const pestle_proto_t* outer,
                             const pestle_proto_field_t* field,
                             pestle_proto_t* out) {
  pestle_str_t bytes;
  PESTLE_TRY(pestle_proto_read_str(outer, field, &bytes));
  *out = pestle_proto_sub(outer, bytes);
  return NULL;
}

// What is wanted of a message whose fields stand once each: the last one of a
// number counts, as protobuf has it.
typedef struct want_t {
  uint32_t number;
  enum { WANT_STR, WANT_I64, WANT_MESSAGE } kind;
  void* out;  // pestle_str_t, int64_t or pestle_proto_t; kept if not there
} want_t;

static pestle_status_t read_field(const pestle_proto_t* message,
                                  const pestle_proto_field_t* field,
                                  const want_t* want) {
  switch (want->kind) {
    case WANT_STR:
      return pestle_proto_read_str(message, field, want->out);
    case WANT_I64:
      return pestle_proto_read_i64(message, field, want->out);
    case WANT_MESSAGE:
      return enter(message, field, want->out);
  }
  return NULL;
}

static pestle_status_t read_fields(pestle_proto_t message, const want_t* wants,
                                   size_t count) {
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    for (size_t i = 0; i < count; ++i) {
      if (field.number != wants[i].number) continue;
      PESTLE_TRY(read_field(&message, &field, &wants[i]));
    }
  }
}

// What is done with a field of a message, which becomes |to|.
typedef pestle_status_t (*take_t)(const pestle_proto_t* message,
                                  const pestle_proto_field_t* field, int depth,
                                  pestle_arena_t* arena, void* to);

static pestle_status_t take_fields(pestle_proto_t message, take_t take,
                                   int depth, pestle_arena_t* arena, void* to) {
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    PESTLE_TRY(take(&message, &field, depth, arena, to));
  }
}

// The domain of ONNX's own operators has two names.
static void shorten_domain(pestle_str_t* domain) {
  if (pestle_str_equal_c(*domain, "ai.onnx")) domain->size = 0;
}

// --- Tensors ---

// onnx.StringStringEntryProto of external_data.
static pestle_status_t read_external(pestle_proto_t message,
                                     pestle_onnx_tensor_t* out) {
  pestle_str_t key = {0}, value = {0};
  const want_t wants[] = {{1, WANT_STR, &key}, {2, WANT_STR, &value}};
  PESTLE_TRY(read_fields(message, wants, 2));
  if (pestle_str_equal_c(key, "location")) out->location = value;
  if (pestle_str_equal_c(key, "offset")) out->offset = value;
  if (pestle_str_equal_c(key, "length")) out->length = value;
  return NULL;
}

static pestle_status_t read_tensor_field(const pestle_proto_t* message,
                                         const pestle_proto_field_t* field,
                                         size_t* rank,
                                         pestle_onnx_tensor_t* out) {
  int64_t value = 0;
  switch (field->number) {
    case 1:
      return pestle_proto_read_repeated(message, field, PESTLE_PROTO_I64,
                                        out->dims, PESTLE_MAX_RANK, rank);
    case 2:
      PESTLE_TRY(pestle_proto_read_i64(message, field, &value));
      out->data_type = (int32_t)value;
      return NULL;
    case 8:
      return pestle_proto_read_str(message, field, &out->name);
    case 9:
      out->has_raw = true;
      return pestle_proto_read_str(message, field, &out->raw);
    case 13: {
      pestle_proto_t entry;
      PESTLE_TRY(enter(message, field, &entry));
      return read_external(entry, out);
    }
    case 14:
      PESTLE_TRY(pestle_proto_read_i64(message, field, &value));
      out->is_external = value == 1;
      return NULL;
    default:
      return NULL;
  }
}

pestle_status_t pestle_onnx_tensor_read(pestle_proto_t message,
                                        pestle_onnx_tensor_t* out_tensor) {
  *out_tensor = (pestle_onnx_tensor_t){.message = message};
  size_t rank = 0;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) break;
    PESTLE_TRY(read_tensor_field(&message, &field, &rank, out_tensor));
  }
  if (rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "tensor '%.*s' has %zu dimensions; at most %d are "
                        "supported",
                        PESTLE_STR_ARG(out_tensor->name), rank,
                        PESTLE_MAX_RANK);
  }
  out_tensor->rank = (int32_t)rank;
  return NULL;
}

// onnx.SparseTensorProto.
static pestle_status_t read_sparse(pestle_proto_t message,
                                   pestle_arena_t* arena,
                                   pestle_onnx_tensor_t* out) {
  pestle_proto_t start = message, values = {0}, indices = {0};
  const want_t wants[] = {{1, WANT_MESSAGE, &values},
                          {2, WANT_MESSAGE, &indices}};
  PESTLE_TRY(read_fields(message, wants, 2));
  pestle_onnx_tensor_t* at = PESTLE_ARENA_NEW(arena, pestle_onnx_tensor_t);
  if (!at) return PESTLE_OOM();
  PESTLE_TRY(pestle_onnx_tensor_read(values, out));
  PESTLE_TRY(pestle_onnx_tensor_read(indices, at));
  size_t rank = 0;
  out->indices = at;
  out->stored = out->rank == 1 ? out->dims[0] : -1;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&start, &field, &more));
    if (!more) break;
    if (field.number != 3) continue;
    PESTLE_TRY(pestle_proto_read_repeated(&start, &field, PESTLE_PROTO_I64,
                                          out->dims, PESTLE_MAX_RANK, &rank));
  }
  if (out->stored < 0 || rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(
        MALFORMED,
        "sparse tensor '%.*s' has values of %d dimensions for a "
        "tensor of %zu",
        PESTLE_STR_ARG(out->name), out->rank, rank);
  }
  out->rank = (int32_t)rank;
  return NULL;
}

// --- Types ---

static pestle_status_t read_dim(pestle_proto_t message,
                                pestle_onnx_dim_t* out) {
  *out = (pestle_onnx_dim_t){.extent = -1};
  const want_t wants[] = {{1, WANT_I64, &out->extent},
                          {2, WANT_STR, &out->param}};
  PESTLE_TRY(read_fields(message, wants, 2));
  // Paddle writes -1 for an extent that it does not know.
  if (out->extent < 0) out->extent = -1;
  return NULL;
}

static pestle_status_t read_shape(pestle_proto_t message, pestle_arena_t* arena,
                                  pestle_onnx_value_info_t* out) {
  size_t rank;
  PESTLE_TRY(count_fields(message, (const uint32_t[]){1}, 1, &rank));
  if (rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%.*s' has %zu dimensions; at most %d are supported",
                        PESTLE_STR_ARG(out->name), rank, PESTLE_MAX_RANK);
  }
  PESTLE_TRY(MAKE_ARRAY(arena, rank, &out->dims));
  out->has_shape = true;
  out->rank = 0;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    if (field.number != 1) continue;
    pestle_proto_t dim;
    PESTLE_TRY(enter(&message, &field, &dim));
    PESTLE_TRY(read_dim(dim, &out->dims[out->rank++]));
  }
}

// onnx.TypeProto.Tensor.
static pestle_status_t read_tensor_type(pestle_proto_t message,
                                        pestle_arena_t* arena,
                                        pestle_onnx_value_info_t* out) {
  int64_t type = out->data_type;
  pestle_proto_t shape = {0};
  const want_t wants[] = {{1, WANT_I64, &type}, {2, WANT_MESSAGE, &shape}};
  PESTLE_TRY(read_fields(message, wants, 2));
  out->is_tensor = true;
  out->data_type = (int32_t)type;
  return shape.base ? read_shape(shape, arena, out) : NULL;
}

// The type that |outer|, a TypeProto.Sequence or Optional, is of.
static pestle_status_t read_element(pestle_proto_t outer,
                                    pestle_proto_t* out_element) {
  const want_t want = {1, WANT_MESSAGE, out_element};
  *out_element = (pestle_proto_t){0};
  return read_fields(outer, &want, 1);
}

// onnx.TypeProto.Map, of tensors: what the keys are, and the values, whose extents are not
// looked at.
static pestle_status_t read_map_type(pestle_proto_t message,
                                     pestle_arena_t* arena,
                                     pestle_onnx_value_info_t* out) {
  int64_t key = 0;
  pestle_proto_t value = {0}, tensor = {0};
  const want_t wants[] = {{1, WANT_I64, &key}, {2, WANT_MESSAGE, &value}};
  const want_t of_tensor = {1, WANT_MESSAGE, &tensor};
  PESTLE_TRY(read_fields(message, wants, 2));
  if (value.base) PESTLE_TRY(read_fields(value, &of_tensor, 1));
  if (!tensor.base) return NULL;
  PESTLE_TRY(read_tensor_type(tensor, arena, out));
  out->is_tensor = false;
  out->map_key = (int32_t)key;
  return NULL;
}

// onnx.TypeProto. An optional that is given is what it holds.
static pestle_status_t read_type(pestle_proto_t message, pestle_arena_t* arena,
                                 pestle_onnx_value_info_t* out) {
  enum { TENSOR, SEQUENCE, OPTIONAL, MAP, KINDS };
  pestle_proto_t kinds[KINDS];
  for (;;) {
    memset(kinds, 0, sizeof(kinds));
    const want_t wants[KINDS] = {{1, WANT_MESSAGE, &kinds[TENSOR]},
                                 {4, WANT_MESSAGE, &kinds[SEQUENCE]},
                                 {9, WANT_MESSAGE, &kinds[OPTIONAL]},
                                 {5, WANT_MESSAGE, &kinds[MAP]}};
    PESTLE_TRY(read_fields(message, wants, KINDS));
    bool optional = kinds[OPTIONAL].base && !out->is_optional && !out->is_list;
    bool list = kinds[SEQUENCE].base && !out->is_list;
    if (!optional && !list) break;
    out->is_optional |= optional;
    out->is_list |= list;
    PESTLE_TRY(read_element(kinds[optional ? OPTIONAL : SEQUENCE], &message));
    if (!message.base) return NULL;
  }
  if (!kinds[TENSOR].base) {
    bool map = kinds[MAP].base && !out->is_list && !out->is_optional;
    out->is_list = false;
    return map ? read_map_type(kinds[MAP], arena, out) : NULL;
  }
  PESTLE_TRY(read_tensor_type(kinds[TENSOR], arena, out));
  out->is_tensor = !out->is_list;
  return NULL;
}

static pestle_status_t read_value_info(pestle_proto_t message,
                                       pestle_arena_t* arena,
                                       pestle_onnx_value_info_t* out) {
  pestle_proto_t type = {0};
  const want_t wants[] = {{1, WANT_STR, &out->name}, {2, WANT_MESSAGE, &type}};
  PESTLE_TRY(read_fields(message, wants, 2));
  return type.base ? read_type(type, arena, out) : NULL;
}

// --- Nodes ---

// The kind of an attribute, from its discriminator or, in files before IR 2
// that lack one, from the field that is there.
static pestle_onnx_attr_kind_t attr_kind(int64_t type, unsigned seen) {
  static const pestle_onnx_attr_kind_t by_field[] = {
      [2] = PESTLE_ONNX_ATTR_FLOAT,  [3] = PESTLE_ONNX_ATTR_INT,
      [4] = PESTLE_ONNX_ATTR_STRING, [5] = PESTLE_ONNX_ATTR_TENSOR,
      [6] = PESTLE_ONNX_ATTR_GRAPH,  [7] = PESTLE_ONNX_ATTR_FLOATS,
      [8] = PESTLE_ONNX_ATTR_INTS,   [9] = PESTLE_ONNX_ATTR_STRINGS,
  };
  if ((type >= 1 && type <= 8) || type == PESTLE_ONNX_ATTR_SPARSE)
    return (pestle_onnx_attr_kind_t)type;
  if (type != 0) return PESTLE_ONNX_ATTR_OTHER;
  for (unsigned i = 2; i <= 9; ++i) {
    if (seen & (1u << i)) return by_field[i];
  }
  return PESTLE_ONNX_ATTR_NONE;
}

static pestle_status_t read_attr_tensor(const pestle_proto_t* message,
                                        const pestle_proto_field_t* field,
                                        pestle_arena_t* arena,
                                        pestle_onnx_attr_t* out) {
  pestle_proto_t body;
  PESTLE_TRY(enter(message, field, &body));
  out->tensor = PESTLE_ARENA_NEW(arena, pestle_onnx_tensor_t);
  if (!out->tensor) return PESTLE_OOM();
  return field->number == 22 ? read_sparse(body, arena, out->tensor)
                             : pestle_onnx_tensor_read(body, out->tensor);
}

static pestle_status_t read_attr_graph(const pestle_proto_t* message,
                                       const pestle_proto_field_t* field,
                                       int depth, pestle_arena_t* arena,
                                       pestle_onnx_attr_t* out) {
  pestle_proto_t body;
  PESTLE_TRY(enter(message, field, &body));
  out->graph = PESTLE_ARENA_NEW(arena, pestle_onnx_graph_t);
  if (!out->graph) return PESTLE_OOM();
  return read_graph(body, depth, arena, out->graph);
}

// Everything but the repeated fields; notes in |*seen| which fields are there
// and in |counts| how many elements floats, ints and strings have.
static pestle_status_t read_attr_single(const pestle_proto_t* message,
                                        const pestle_proto_field_t* field,
                                        int depth, pestle_arena_t* arena,
                                        size_t* counts, int64_t* type,
                                        pestle_onnx_attr_t* out) {
  switch (field->number) {
    case 1:
      return pestle_proto_read_str(message, field, &out->name);
    case 2:
      return pestle_proto_read_f32(message, field, &out->f);
    case 3:
      return pestle_proto_read_i64(message, field, &out->i);
    case 4:
      return pestle_proto_read_str(message, field, &out->s);
    case 5:
    case 22:
      return read_attr_tensor(message, field, arena, out);
    case 6:
      return read_attr_graph(message, field, depth, arena, out);
    case 7:
      return pestle_proto_read_repeated(message, field, PESTLE_PROTO_F32, NULL,
                                        0, &counts[0]);
    case 8:
      return pestle_proto_read_repeated(message, field, PESTLE_PROTO_I64, NULL,
                                        0, &counts[1]);
    case 9:
      ++counts[2];
      return NULL;
    case 20:
      return pestle_proto_read_i64(message, field, type);
    case 21:
      return pestle_proto_read_str(message, field, &out->reference);
    default:
      return NULL;
  }
}

static pestle_status_t read_attr_lists(pestle_proto_t message,
                                       const size_t* counts,
                                       pestle_arena_t* arena,
                                       pestle_onnx_attr_t* out) {
  PESTLE_TRY(MAKE_ARRAY(arena, counts[0], &out->floats));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[1], &out->ints));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[2], &out->strings));
  size_t at[3] = {0};
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    if (field.number == 7) {
      PESTLE_TRY(pestle_proto_read_repeated(&message, &field, PESTLE_PROTO_F32,
                                            out->floats, counts[0], &at[0]));
    } else if (field.number == 8) {
      PESTLE_TRY(pestle_proto_read_repeated(&message, &field, PESTLE_PROTO_I64,
                                            out->ints, counts[1], &at[1]));
    } else if (field.number == 9) {
      PESTLE_TRY(
          pestle_proto_read_str(&message, &field, &out->strings[at[2]++]));
    }
  }
}

static pestle_status_t read_attr(pestle_proto_t message, int depth,
                                 pestle_arena_t* arena,
                                 pestle_onnx_attr_t* out) {
  pestle_proto_t start = message;
  size_t counts[3] = {0};
  unsigned seen = 0;
  int64_t type = 0;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) break;
    if (field.number < 16) seen |= 1u << field.number;
    PESTLE_TRY(
        read_attr_single(&message, &field, depth, arena, counts, &type, out));
  }
  PESTLE_TRY(read_attr_lists(start, counts, arena, out));
  out->kind = attr_kind(type, seen);
  if (out->kind == PESTLE_ONNX_ATTR_FLOATS) out->count = counts[0];
  if (out->kind == PESTLE_ONNX_ATTR_INTS) out->count = counts[1];
  if (out->kind == PESTLE_ONNX_ATTR_STRINGS) out->count = counts[2];
  return NULL;
}

static pestle_status_t take_node(const pestle_proto_t* message,
                                 const pestle_proto_field_t* field, int depth,
                                 pestle_arena_t* arena, void* to) {
  pestle_onnx_node_t* out = to;
  switch (field->number) {
    case 1:
      return pestle_proto_read_str(message, field,
                                   &out->inputs[out->input_count++]);
    case 2:
      return pestle_proto_read_str(message, field,
                                   &out->outputs[out->output_count++]);
    case 3:
      return pestle_proto_read_str(message, field, &out->name);
    case 4:
      return pestle_proto_read_str(message, field, &out->op_type);
    case 5: {
      pestle_proto_t attr;
      PESTLE_TRY(enter(message, field, &attr));
      return read_attr(attr, depth, arena, &out->attrs[out->attr_count++]);
    }
    case 7:
      return pestle_proto_read_str(message, field, &out->domain);
    case 8:
      return pestle_proto_read_str(message, field, &out->overload);
    default:
      return NULL;
  }
}

static pestle_status_t read_node(pestle_proto_t message, int depth,
                                 pestle_arena_t* arena,
                                 pestle_onnx_node_t* out) {
  size_t counts[3];
  PESTLE_TRY(count_fields(message, (const uint32_t[]){1, 2, 5}, 3, counts));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[0], &out->inputs));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[1], &out->outputs));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[2], &out->attrs));
  PESTLE_TRY(take_fields(message, take_node, depth, arena, out));
  shorten_domain(&out->domain);
  return NULL;
}

const pestle_onnx_attr_t* pestle_onnx_node_attr(const pestle_onnx_node_t* node,
                                                const char* name) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (pestle_str_equal_c(node->attrs[i].name, name)) return &node->attrs[i];
  }
  return NULL;
}

// --- Graphs ---

static pestle_status_t take_graph(const pestle_proto_t* message,
                                  const pestle_proto_field_t* field, int depth,
                                  pestle_arena_t* arena, void* to) {
  pestle_onnx_graph_t* out = to;
  pestle_proto_t body;
  switch (field->number) {
    case 1:
      PESTLE_TRY(enter(message, field, &body));
      out->nodes[out->node_count].index = (uint32_t)out->node_count;
      return read_node(body, depth + 1, arena, &out->nodes[out->node_count++]);
    case 2:
      return pestle_proto_read_str(message, field, &out->name);
    case 5:
      PESTLE_TRY(enter(message, field, &body));
      return pestle_onnx_tensor_read(
          body, &out->initializers[out->initializer_count++]);
    case 11:
      PESTLE_TRY(enter(message, field, &body));
      return read_value_info(body, arena, &out->inputs[out->input_count++]);
    case 12:
      PESTLE_TRY(enter(message, field, &body));
      return read_value_info(body, arena, &out->outputs[out->output_count++]);
    case 15:
      PESTLE_TRY(enter(message, field, &body));
      return read_sparse(body, arena,
                         &out->initializers[out->initializer_count++]);
    default:
      return NULL;
  }
}

static pestle_status_t read_graph(pestle_proto_t message, int depth,
                                  pestle_arena_t* arena,
                                  pestle_onnx_graph_t* out) {
  if (depth > PESTLE_PROTO_MAX_DEPTH) {
    return PESTLE_ERROR(MALFORMED,
                        "graphs are nested more than %d deep in the file",
                        PESTLE_PROTO_MAX_DEPTH);
  }
  size_t counts[5];
  PESTLE_TRY(
      count_fields(message, (const uint32_t[]){1, 5, 11, 12, 15}, 5, counts));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[0], &out->nodes));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[1] + counts[4], &out->initializers));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[2], &out->inputs));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[3], &out->outputs));
  return take_fields(message, take_graph, depth, arena, out);
}

// --- The model ---

static pestle_status_t read_opset(pestle_proto_t message,
                                  pestle_onnx_opset_t* out) {
  const want_t wants[] = {{1, WANT_STR, &out->domain},
                          {2, WANT_I64, &out->version}};
  PESTLE_TRY(read_fields(message, wants, 2));
  shorten_domain(&out->domain);
  return NULL;
}

// --- Functions ---

static pestle_status_t take_function(const pestle_proto_t* message,
                                     const pestle_proto_field_t* field,
                                     int depth, pestle_arena_t* arena,
                                     void* to) {
  pestle_onnx_function_t* out = to;
  pestle_onnx_graph_t* body = &out->body;
  pestle_proto_t inner;
  switch (field->number) {
    case 1:
      return pestle_proto_read_str(message, field, &body->name);
    case 4:
      return pestle_proto_read_str(message, field,
                                   &body->inputs[body->input_count++].name);
    case 5:
      return pestle_proto_read_str(message, field,
                                   &body->outputs[body->output_count++].name);
    case 7:
      PESTLE_TRY(enter(message, field, &inner));
      body->nodes[body->node_count].index = (uint32_t)body->node_count;
      return read_node(inner, depth, arena, &body->nodes[body->node_count++]);
    case 9:
      PESTLE_TRY(enter(message, field, &inner));
      return read_opset(inner, &out->opsets[out->opset_count++]);
    case 10:
      return pestle_proto_read_str(message, field, &out->domain);
    case 11:
      PESTLE_TRY(enter(message, field, &inner));
      return read_attr(inner, depth, arena,
                       &out->defaults[out->default_count++]);
    case 13:
      return pestle_proto_read_str(message, field, &out->overload);
    default:
      return NULL;
  }
}

static pestle_status_t read_function(pestle_proto_t message,
                                     pestle_arena_t* arena,
                                     pestle_onnx_function_t* out) {
  size_t counts[5];
  PESTLE_TRY(
      count_fields(message, (const uint32_t[]){4, 5, 7, 9, 11}, 5, counts));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[0], &out->body.inputs));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[1], &out->body.outputs));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[2], &out->body.nodes));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[3], &out->opsets));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[4], &out->defaults));
  PESTLE_TRY(take_fields(message, take_function, 1, arena, out));
  shorten_domain(&out->domain);
  return NULL;
}

static int compare_text(pestle_str_t a, pestle_str_t b) {
  if (a.size != b.size) return a.size < b.size ? -1 : 1;
  return a.size ? memcmp(a.data, b.data, a.size) : 0;
}

int pestle_onnx_function_compare(const pestle_onnx_function_t* a,
                                 const pestle_onnx_function_t* b) {
  int order = compare_text(a->body.name, b->body.name);
  if (!order) order = compare_text(a->domain, b->domain);
  return order ? order : compare_text(a->overload, b->overload);
}

static int compare_functions(const void* a, const void* b) {
  return pestle_onnx_function_compare(a, b);
}

// So that a call finds its callee among very many.
static pestle_status_t sort_functions(pestle_onnx_model_t* model) {
  if (model->function_count < 2) return NULL;
  qsort(model->functions, model->function_count, sizeof(*model->functions),
        compare_functions);
  for (size_t i = 1; i < model->function_count; ++i) {
    const pestle_onnx_function_t* f = &model->functions[i];
    if (pestle_onnx_function_compare(f - 1, f) != 0) continue;
    return PESTLE_ERROR(MALFORMED,
                        "the model has two functions '%.*s' of domain '%.*s'%s"
                        "%.*s",
                        PESTLE_STR_ARG(f->body.name), PESTLE_STR_ARG(f->domain),
                        f->overload.size ? " and overload " : "",
                        PESTLE_STR_ARG(f->overload));
  }
  return NULL;
}

static pestle_status_t take_model(const pestle_proto_t* message,
                                  const pestle_proto_field_t* field, int depth,
                                  pestle_arena_t* arena, void* to) {
  pestle_onnx_model_t* out = to;
  pestle_proto_t body;
  switch (field->number) {
    case 1:
      return pestle_proto_read_i64(message, field, &out->ir_version);
    case 2:
      return pestle_proto_read_str(message, field, &out->producer);
    case 3:
      return pestle_proto_read_str(message, field, &out->producer_version);
    case 7:
      PESTLE_TRY(enter(message, field, &body));
      return read_graph(body, depth, arena, &out->graph);
    case 8:
      PESTLE_TRY(enter(message, field, &body));
      return read_opset(body, &out->opsets[out->opset_count++]);
    case 25:
      PESTLE_TRY(enter(message, field, &body));
      return read_function(body, arena, &out->functions[out->function_count++]);
    default:
      return NULL;
  }
}

// --- The inputs alone ---

static pestle_status_t take_graph_inputs(const pestle_proto_t* message,
                                         const pestle_proto_field_t* field,
                                         int depth, pestle_arena_t* arena,
                                         void* to) {
  bool of_inputs =
      field->number == 5 || field->number == 11 || field->number == 15;
  return of_inputs ? take_graph(message, field, depth, arena, to) : NULL;
}

static pestle_status_t take_inputs(const pestle_proto_t* message,
                                   const pestle_proto_field_t* field, int depth,
                                   pestle_arena_t* arena, void* to) {
  pestle_onnx_model_t* out = to;
  pestle_proto_t graph;
  if (field->number == 1)
    return pestle_proto_read_i64(message, field, &out->ir_version);
  if (field->number != 7) return NULL;
  size_t counts[3];
  out->graph = (pestle_onnx_graph_t){0};
  PESTLE_TRY(enter(message, field, &graph));
  PESTLE_TRY(count_fields(graph, (const uint32_t[]){5, 11, 15}, 3, counts));
  PESTLE_TRY(
      MAKE_ARRAY(arena, counts[0] + counts[2], &out->graph.initializers));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[1], &out->graph.inputs));
  return take_fields(graph, take_graph_inputs, depth, arena, &out->graph);
}

pestle_status_t pestle_onnx_model_read_inputs(const void* data, size_t size,
                                              pestle_arena_t* arena,
                                              pestle_onnx_model_t* out_model) {
  *out_model = (pestle_onnx_model_t){0};
  return take_fields(pestle_proto_make(data, size), take_inputs, 0, arena,
                     out_model);
}

pestle_status_t pestle_onnx_model_read(const void* data, size_t size,
                                       pestle_arena_t* arena,
                                       pestle_onnx_model_t* out_model) {
  *out_model = (pestle_onnx_model_t){0};
  if (!size) return PESTLE_ERROR(MALFORMED, "the ONNX file is empty");
  pestle_proto_t message = pestle_proto_make(data, size);
  size_t counts[3];
  PESTLE_TRY(count_fields(message, (const uint32_t[]){8, 7, 25}, 3, counts));
  if (counts[1] != 1) {
    return PESTLE_ERROR(MALFORMED,
                        "the file is no ONNX model: it holds %zu graphs, not "
                        "one",
                        counts[1]);
  }
  PESTLE_TRY(MAKE_ARRAY(arena, counts[2], &out_model->functions));
  PESTLE_TRY(MAKE_ARRAY(arena, counts[0], &out_model->opsets));
  PESTLE_TRY(take_fields(message, take_model, 0, arena, out_model));
  return sort_functions(out_model);
}
