// SPDX-License-Identifier: Apache-2.0
// What a model file says of itself, told without compiling it: what it takes and
// returns, the names of its dims, its ops and weights, and what of it Pestle
// does not take.
#ifndef PESTLE_MODEL_INFO_H_
#define PESTLE_MODEL_INFO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/context.h"
#include "pestle/import.h"
#include "pestle/status.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// An input or output of a model. Frozen.
typedef struct pestle_model_value_t {
  const char* name;      // "" where the model has none
  pestle_dtype_t dtype;  // PESTLE_NONE: no tensor, or of no dtype of Pestle's
  int32_t rank;          // -1: not stated
  const int64_t* dims;   // PESTLE_DIM_DYNAMIC where an extent is not fixed
  // The name of each dim that is not fixed ("batch"), "" where it has none.
  const char* const* dim_names;
  bool has_default;  // need not be given
  // Its elements are needed before the model can be compiled: axes, extents
  // (pestle_module_value_argument()).
  bool decides_shapes;
} pestle_model_value_t;

// What the elements of an input or output are. Frozen but for more values.
typedef enum pestle_model_kind_e {
  PESTLE_MODEL_NUMBERS,
  PESTLE_MODEL_STRINGS,  // a run takes and gives their numbers (pestle/strings.h)
  PESTLE_MODEL_LIST,     // a sequence of tensors of |dtype|
} pestle_model_kind_t;

// An op as the file names it, and how often it stands there, the bodies of
// loops and branches included: "Conv", "com.microsoft.Gelu", "dot_general".
// Frozen.
typedef struct pestle_model_op_t {
  const char* name;
  uint64_t count;
} pestle_model_op_t;

// A set of ops that the model is written in: "ai.onnx" 17. Frozen.
typedef struct pestle_model_opset_t {
  const char* domain;
  int64_t version;
} pestle_model_opset_t;

// Something that a file says beside its graph, as text: "general.architecture", "llama".
// Frozen.
typedef struct pestle_model_text_t {
  const char* key;
  const char* value;
} pestle_model_text_t;

// Made by pestle_model_info_create() alone; later versions have more fields.
typedef struct pestle_model_info_t {
  size_t struct_size;
  const char*
      format;  // "ONNX", "GGUF", "StableHLO bytecode", "text", "binary form"
  const char*
      producer;        // what wrote it, with its version; "" if it is not told
  int64_t ir_version;  // of ONNX; 0: another format
  const pestle_model_opset_t* opsets;
  size_t opset_count;
  const pestle_model_value_t* inputs;  // in the order in which a run takes them
  size_t input_count;
  const pestle_model_value_t* outputs;
  size_t output_count;
  const char* const* dims;  // names of the inputs' dims that are not fixed
  size_t dim_count;
  const pestle_model_op_t* ops;  // the most frequent first
  size_t op_count;
  uint64_t node_count;    // ops in all
  uint64_t weight_count;  // elements of constants of more than one
  uint64_t weight_bytes;
  // Why Pestle cannot compile the model: every unsupported op with its nodes, in
  // sentences. NULL: it can.
  const char* unsupported;
  // Of each input and of each output; NULL: all are of numbers.
  const pestle_model_kind_t* input_kinds;
  const pestle_model_kind_t* output_kinds;
  // Of GGUF its metadata, but for lists.
  const pestle_model_text_t* texts;
  size_t text_count;
} pestle_model_info_t;

// Describes the model at |path|, of any format that pestle_import_file() takes;
// |options| (may be NULL) fix dims, shapes and constants as there. All of
// |*out_info| lives until pestle_model_info_release(), and may be read from any
// threads. A model with ops that Pestle lacks is described, and says so in
// |unsupported|; the other errors of pestle_import_file() are returned.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_model_info_create(pestle_context_t* context, const char* path,
                         const pestle_import_options_t* options,
                         const pestle_model_info_t** out_info);
// Frees |info|, which may be NULL.
PESTLE_API void pestle_model_info_release(const pestle_model_info_t* info);
// The place of the input called |name|; SIZE_MAX: there is none.
PESTLE_API size_t pestle_model_info_find_input(const pestle_model_info_t* info,
                                               const char* name);
// The place of the output called |name|; SIZE_MAX: there is none.
PESTLE_API size_t pestle_model_info_find_output(const pestle_model_info_t* info,
                                                const char* name);

PESTLE_EXTERN_C_END

#endif  // PESTLE_MODEL_INFO_H_
