// SPDX-License-Identifier: Apache-2.0
// An ONNX model as structs in an arena. Names, strings and tensor data are
// views into the file's bytes, which must outlive the model; only the structure
// is built here. tensor.h reads the bytes of tensors.
#ifndef PESTLE_FRONTEND_ONNX_MODEL_H_
#define PESTLE_FRONTEND_ONNX_MODEL_H_

#include "base/arena.h"
#include "frontend/onnx/proto.h"
#include "pestle/graph.h"

typedef struct pestle_onnx_graph_t pestle_onnx_graph_t;

// onnx.TensorProto. The typed data fields are read from |message| on demand.
typedef struct pestle_onnx_tensor_t {
  pestle_str_t name;
  pestle_proto_t message;  // the whole TensorProto
  int32_t data_type;       // TensorProto.DataType
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  bool has_raw;
  bool is_external;
  pestle_str_t raw;
  pestle_str_t location, offset, length;  // external_data
  // Of a SparseTensorProto, whose values this is: where they stand, and how many
  // there are; |dims| are those of the whole. NULL: not sparse.
  struct pestle_onnx_tensor_t* indices;
  int64_t stored;
} pestle_onnx_tensor_t;

// AttributeProto.AttributeType.
typedef enum pestle_onnx_attr_kind_e {
  PESTLE_ONNX_ATTR_NONE = 0,
  PESTLE_ONNX_ATTR_FLOAT = 1,
  PESTLE_ONNX_ATTR_INT = 2,
  PESTLE_ONNX_ATTR_STRING = 3,
  PESTLE_ONNX_ATTR_TENSOR = 4,
  PESTLE_ONNX_ATTR_GRAPH = 5,
  PESTLE_ONNX_ATTR_FLOATS = 6,
  PESTLE_ONNX_ATTR_INTS = 7,
  PESTLE_ONNX_ATTR_STRINGS = 8,
  PESTLE_ONNX_ATTR_OTHER = 9,    // lists of tensors and graphs, types
  PESTLE_ONNX_ATTR_SPARSE = 11,  // |tensor|
} pestle_onnx_attr_kind_t;

typedef struct pestle_onnx_attr_t {
  pestle_str_t name;
  pestle_str_t reference;  // in a function: the attribute that has the value
  pestle_onnx_attr_kind_t kind;
  float f;
  int64_t i;
  pestle_str_t s;
  pestle_onnx_tensor_t* tensor;
  pestle_onnx_graph_t* graph;
  float* floats;
  int64_t* ints;
  pestle_str_t* strings;
  size_t count;  // of floats, ints or strings
} pestle_onnx_attr_t;

typedef struct pestle_onnx_node_t {
  pestle_str_t name, op_type, domain, overload;
  pestle_str_t* inputs;  // an empty name is an omitted optional input
  pestle_str_t* outputs;
  pestle_onnx_attr_t* attrs;
  uint32_t input_count, output_count, attr_count;
  uint32_t index;  // in its graph
} pestle_onnx_node_t;

// One extent of a declared type: |extent| >= 0, or -1 when it is not stated,
// and then |param| is its name or empty.
typedef struct pestle_onnx_dim_t {
  int64_t extent;
  pestle_str_t param;
} pestle_onnx_dim_t;

// onnx.ValueInfoProto.
typedef struct pestle_onnx_value_info_t {
  pestle_str_t name;
  bool is_tensor;    // else a sequence, map, optional, or without a type
  bool is_list;      // a sequence of tensors, of which the rest is
  bool is_optional;  // may be nothing
  int32_t map_key;   // of a map, the type of its keys; 0: it is none
  bool has_shape;
  int32_t data_type;
  int32_t rank;
  pestle_onnx_dim_t* dims;
} pestle_onnx_value_info_t;

struct pestle_onnx_graph_t {
  pestle_str_t name;
  pestle_onnx_node_t* nodes;
  pestle_onnx_tensor_t* initializers;
  pestle_onnx_value_info_t* inputs;
  pestle_onnx_value_info_t* outputs;
  size_t node_count, initializer_count, input_count, output_count;
};

typedef struct pestle_onnx_opset_t {
  pestle_str_t domain;  // "" for ai.onnx
  int64_t version;
} pestle_onnx_opset_t;

// onnx.FunctionProto: |body|.name is the op, its inputs and outputs have names
// alone.
typedef struct pestle_onnx_function_t {
  pestle_str_t domain, overload;
  pestle_onnx_graph_t body;
  pestle_onnx_opset_t* opsets;
  pestle_onnx_attr_t* defaults;  // of attributes that a call may leave out
  size_t opset_count, default_count;
} pestle_onnx_function_t;

typedef struct pestle_onnx_model_t {
  int64_t ir_version;
  pestle_str_t producer, producer_version;
  pestle_onnx_function_t* functions;  // by domain, name and overload
  pestle_onnx_opset_t* opsets;
  size_t opset_count, function_count;
  pestle_onnx_graph_t graph;
} pestle_onnx_model_t;

// Which of two functions comes first in a model: < 0, 0 or > 0.
int pestle_onnx_function_compare(const pestle_onnx_function_t* a,
                                 const pestle_onnx_function_t* b);
// Reads a serialised onnx.ModelProto. MALFORMED when it is not one.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_model_read(const void* data, size_t size, pestle_arena_t* arena,
                       pestle_onnx_model_t* out_model);
// The same without all but the IR version, and of the graph the inputs and the
// initializers: what a caller may give.
PESTLE_NODISCARD pestle_status_t pestle_onnx_model_read_inputs(
    const void* data, size_t size, pestle_arena_t* arena,
    pestle_onnx_model_t* out_model);
// Reads a serialised onnx.TensorProto.
PESTLE_NODISCARD pestle_status_t pestle_onnx_tensor_read(
    pestle_proto_t message, pestle_onnx_tensor_t* out_tensor);

// The attribute called |name|, or NULL.
const pestle_onnx_attr_t* pestle_onnx_node_attr(const pestle_onnx_node_t* node,
                                                const char* name);

#endif  // PESTLE_FRONTEND_ONNX_MODEL_H_
