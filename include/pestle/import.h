// SPDX-License-Identifier: Apache-2.0
// Front ends: from a file or bytes to a module.
#ifndef PESTLE_IMPORT_H_
#define PESTLE_IMPORT_H_

#include "pestle/context.h"
#include "pestle/graph.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

// Fixes a named symbolic dimension (ONNX dim_param). Frozen.
typedef struct pestle_dim_binding_t {
  const char* name;
  int64_t extent;
} pestle_dim_binding_t;

// Fixes the whole shape of a named input; one that has a default thereby becomes
// an argument. Frozen.
typedef struct pestle_shape_binding_t {
  const char* input;
  int32_t rank;
  const int64_t* dims;
} pestle_shape_binding_t;

// Makes a named input a constant. |value| is a host tensor; its elements are
// copied. A value of rank 0 takes the dtype of the input, which must hold it (a
// float rounds to nearest), and fills its shape, 1 where that is not known.
// Frozen.
typedef struct pestle_const_binding_t {
  const char* input;
  const pestle_tensor_t* value;
} pestle_const_binding_t;

// Whose reading is taken where ONNX Runtime reads an op otherwise than its text says
// (docs/onnx.md lists these). Frozen but for more values.
typedef enum pestle_onnx_compat_e {
  PESTLE_ONNX_COMPAT_TEXT,  // the text's
  PESTLE_ONNX_COMPAT_ORT,   // ONNX Runtime's
} pestle_onnx_compat_t;

// Of axis |axis| of |input| the first so many places are real as the argument |length| says,
// an i64 of rank 0 that comes behind the model's own inputs, one for all that name it. The
// input's extent is then what there is room for. What the model joins to such an axis (Concat,
// the past of com.microsoft's MultiHeadAttention) is written behind the real places, and the
// result has the input's extent: whoever runs the module sees to it that there is room, and
// that what lies behind the real places is finite. |length| may be an input of the model, one
// i32 or i64: then none is added and the input is real as a whole; the model says itself what
// comes where, and what it takes by that number of a table (Slice, Range) is as many rows as it
// adds to the number. Frozen.
typedef struct pestle_length_binding_t {
  const char* input;
  int32_t axis;
  const char* length;
} pestle_length_binding_t;

// Zero-initialise and set |struct_size|. All is borrowed during the call.
typedef struct pestle_import_options_t {
  size_t struct_size;
  const pestle_dim_binding_t* dims;
  size_t dim_count;
  const pestle_shape_binding_t* shapes;
  size_t shape_count;
  const pestle_const_binding_t* consts;
  size_t const_count;
  const pestle_control_t* control;  // or NULL
  pestle_onnx_compat_t onnx_compat;
  const pestle_length_binding_t* lengths;  // of ONNX models
  size_t length_count;
} pestle_import_options_t;

// Imports the ONNX model at |path|. The file is mapped and stays mapped while
// the module lives: large initializers are not copied. Inputs whose dims are
// not all fixed make a symbolic module: its argument types have dynamic dims,
// it has no body yet, and pestle_module_specialize() (or running it) makes the
// static one. So does a model whose shapes follow from the values of inputs:
// pestle_module_specialize_values() takes those, unless |options| has them as
// constants. An input with an initializer of its name has that as its default,
// from IR version 4 on: the module has a constant in its place unless a shape is
// bound to it. |options| may be NULL. INVALID_ARGUMENT: a binding contradicts
// the model, or |path| is no regular file; NOT_FOUND: no such file, or a binding
// names nothing that the model has (what there is, is listed); MALFORMED: damaged
// or illegal, with the node; UNSUPPORTED: every unsupported op at once, with its
// nodes.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_import_onnx_file(
    pestle_context_t* context, const char* path,
    const pestle_import_options_t* options, pestle_module_t** out_module);
// The same from |size| bytes in memory. |data| is copied when |copy|; else it
// must outlive the module and all that is specialised from it. |folder| is
// where external data is looked for; NULL: none is allowed.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_import_onnx(
    pestle_context_t* context, const void* data, size_t size, bool copy,
    const char* folder, const pestle_import_options_t* options,
    pestle_module_t** out_module);

// Imports |path| by what it holds: ONNX, GGUF, Pestle or StableHLO text, StableHLO as MLIR
// bytecode (portable artifacts of 0.9.0 to 1.20.0, as JAX exports and caches them), or
// Pestle's binary form. Dims of other formats than ONNX and GGUF have no names: options->dims
// calls one by input and axis, "x.0". Errors as above; a compiled plan is
// INVALID_ARGUMENT, an empty file MALFORMED.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_import_file(
    pestle_context_t* context, const char* path,
    const pestle_import_options_t* options, pestle_module_t** out_module);

// The same of |size| bytes in memory, which may go or change after the call. |name| (may
// be NULL) stands for them in messages and locations. External data of an ONNX model
// is not looked for. Thread-safe. Errors as above.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_import_bytes(
    pestle_context_t* context, const void* data, size_t size, const char* name,
    const pestle_import_options_t* options, pestle_module_t** out_module);

// An input of an ONNX model as the file has it. The pointers are valid while the
// call that hands it out lasts.
typedef struct pestle_model_input_t {
  size_t struct_size;
  const char* name;
  pestle_dtype_t dtype;  // PESTLE_NONE: no tensor, or of no dtype of Pestle's
  int32_t rank;          // -1: not stated
  const int64_t* dims;   // PESTLE_DIM_DYNAMIC where an extent is not stated
  bool has_default;      // which has these extents
  int32_t default_rank;
  const int64_t* default_dims;
} pestle_model_input_t;

// Calls |visit| with each input of the ONNX model at |path| in the model's order,
// until it gives an error, which is returned: before an import, to bind shapes.
// Those that IR version 3 lists of its initializers are left out. A file that
// is no ONNX model has no inputs here: its module knows them all. Errors as
// those of reading it.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_import_visit_inputs(
    pestle_context_t* context, const char* path,
    pestle_status_t (*visit)(void* user, const pestle_model_input_t* input),
    void* user);

// Reads a serialised onnx.TensorProto (the .pb files of ONNX test cases):
// |*out_elements|.data is freed with pestle_context_free(context, data, size).
// Its name is written to |out_name|, cut at |name_capacity| - 1 bytes and
// terminated; |out_name| may be NULL when |name_capacity| is 0. MALFORMED for
// damaged bytes, UNSUPPORTED for dtypes that Pestle lacks and external data.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_read_onnx_tensor(
    pestle_context_t* context, const void* data, size_t size,
    pestle_elements_t* out_elements, char* out_name, size_t name_capacity);

PESTLE_EXTERN_C_END

#endif  // PESTLE_IMPORT_H_
