// SPDX-License-Identifier: Apache-2.0
// Building, reading and writing graphs. A module holds functions; a function
// has one region of ops in SSA form; an op may have regions of its own. Every
// pestle_op_<op>() below is expanded from scalar.def and ops.def and checks its
// operands at the call: a wrong type or shape is an error that names the op,
// its location and the reason, and adds nothing to the module.
//
// A module may be read from any threads at once; building one needs outside
// order. Values, blocks and functions live as long as their module and are
// borrowed everywhere.
//
// Contents:
// - Modules
// - Several modules as one
// - Arguments whose values decide shapes
// - Text and binary forms
// - Building
#ifndef PESTLE_GRAPH_H_
#define PESTLE_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/context.h"
#include "pestle/op.h"
#include "pestle/status.h"
#include "pestle/tensor.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

typedef struct pestle_module_s pestle_module_t;
typedef struct pestle_function_s pestle_function_t;
typedef struct pestle_region_s pestle_region_t;
typedef struct pestle_block_s pestle_block_t;
typedef struct pestle_node_s pestle_node_t;
typedef struct pestle_value_s pestle_value_t;

// A tensor type: extents in elements, outermost first; PESTLE_DIM_DYNAMIC where
// an extent is not known yet. Frozen: passed and kept by value.
typedef struct pestle_type_t {
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
} pestle_type_t;

// Borrowed arrays and text for attributes. Frozen.
typedef struct pestle_i64s_t {
  const int64_t* data;
  size_t count;
} pestle_i64s_t;
#define PESTLE_I64S(...)                           \
  ((pestle_i64s_t){(const int64_t[]){__VA_ARGS__}, \
                   sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)})

// Constant data: row-major elements of |type| (see types.h for their size), or
// one element that stands for all when |splat|. Frozen.
typedef struct pestle_elements_t {
  pestle_type_t type;
  const void* data;
  size_t size;  // bytes at |data|
  bool splat;
} pestle_elements_t;

// Where an op came from: any part may be NULL or 0. Strings are copied.
// Frozen.
typedef struct pestle_loc_t {
  const char* name;  // of the node in its source, such as an ONNX node name
  const char* file;
  uint32_t line, column;
} pestle_loc_t;

// --- Modules ---

// Creates an empty module; |name| may be NULL. It keeps |context| alive.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_create(
    pestle_context_t* context, const char* name, pestle_module_t** out_module);
// Adds a reference.
PESTLE_API void pestle_module_retain(pestle_module_t* module);
// Drops a reference; the last one frees the module with all that is in it.
PESTLE_API void pestle_module_release(pestle_module_t* module);

// Its name, as it was made or read; "" where there is none. Borrowed.
PESTLE_API const char* pestle_module_name(const pestle_module_t* module);
// What a dialect says of the module beside the graph: the text of attribute |key|
// as MLIR writes it ("4 : i32" of mhlo.num_partitions; "" for a key alone), or
// NULL. Borrowed.
PESTLE_API const char* pestle_module_attribute(const pestle_module_t* module,
                                               const char* key);
// The same of argument |index|: "0 : i32" of tf.aliasing_output.
PESTLE_API const char* pestle_function_argument_attribute(
    const pestle_function_t* function, size_t index, const char* key);
// The same of result |index|: "\"default\"" of mhlo.layout_mode.
PESTLE_API const char* pestle_function_result_attribute(
    const pestle_function_t* function, size_t index, const char* key);

// Where tokens (!stablehlo.token) stand in the source's list of arguments of
// |function| or, |of_results|, of its results: how many, and in |*out_positions|
// (may be NULL) their positions, ascending, borrowed from the module. They are no
// values of the graph: who calls by the source's list leaves them out.
PESTLE_API size_t pestle_function_tokens(const pestle_function_t* function,
                                         bool of_results,
                                         const uint32_t** out_positions);

// Appends a function that takes |count| arguments of |types| (NULL when there
// are none). The one named "main", else the first public one, is the entry.
// |names| (may be NULL, and each may be NULL) are the arguments' names. The
// function is borrowed from the module. INVALID_ARGUMENT: no name or one that
// is taken, a type of an impossible dtype, rank or extent.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_add_function(
    pestle_module_t* module, const char* name, const pestle_type_t* types,
    const char* const* names, size_t count, pestle_function_t** out_function);
// The entry function, or NULL in an empty module. Borrowed from the module.
PESTLE_API pestle_function_t* pestle_module_entry(pestle_module_t* module);
// How many arguments |f| takes.
PESTLE_API size_t pestle_function_argument_count(const pestle_function_t* f);
// Argument |index|, or NULL past the last. Borrowed from the module.
PESTLE_API pestle_value_t* pestle_function_argument(pestle_function_t* function,
                                                    size_t index);
// The type of result |index| of |function|: of dtype NONE past the last, and where
// the function has no body yet.
PESTLE_API pestle_type_t
pestle_function_returned_type(const pestle_function_t* function, size_t index);
// The argument's name as its source has it, else that of its value in text
// ("arg0" of %arg0), or NULL. Borrowed.
PESTLE_API const char* pestle_function_argument_name(
    const pestle_function_t* function, size_t index);
// The type of a value: dtype, and extents in elements. NONE for NULL.
PESTLE_API pestle_type_t pestle_value_type(const pestle_value_t* value);

// Checks everything: structure, types, dominance, terminators. MALFORMED with
// every finding as a note. Changes nothing.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_verify(const pestle_module_t* module);

// A copy in which the entry's argument |i| has the static type |types[i]| and
// every type that follows from it is inferred anew. A module whose arguments
// are static already is returned retained when the types are equal. |module|
// stays as it is. INVALID_ARGUMENT: |count| or a type does not fit what the
// module says about its arguments; else the errors of the op whose operands no
// longer fit, or of the import that is done again.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_specialize(pestle_module_t* module, const pestle_type_t* types,
                         size_t count, pestle_module_t** out_module);

// --- Several modules as one ---

// pestle_link_source_t.part: an argument of the linked module.
enum { PESTLE_LINK_ARGUMENT = -1 };

// Where a value of a linked module comes from: result |index| of part |part|, or
// argument |index|. Frozen.
typedef struct pestle_link_source_t {
  int32_t part;
  uint32_t index;
} pestle_link_source_t;

// A module, and where each argument of its entry comes from: earlier parts and
// arguments of the linked module. Frozen.
typedef struct pestle_link_part_t {
  pestle_module_t* module;
  const pestle_link_source_t* arguments;
  size_t argument_count;
} pestle_link_part_t;

// Makes a module whose entry, "main", does what the entries of |count| parts do one
// after the other, and returns the values |results|. Its arguments are those that
// the parts read, numbered from 0 without a gap; several may read one. One module
// may stand for several parts. Parts are copied, share their constants with the
// new module, and stay as they are; names and attributes of their arguments and
// results are not taken over. Where one is for several processes, so is the module.
// All is borrowed during the call.
// INVALID_ARGUMENT: a part without an entry or of another context, a source that
// does not exist, lies in the same part or a later one, or has another type than
// is read; an argument that nobody reads; parts for other numbers of processes. Parts may be linked from any threads.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_link(const pestle_link_part_t* parts, size_t count,
                   const pestle_link_source_t* results, size_t result_count,
                   pestle_module_t** out_module);

// --- Arguments whose values decide shapes ---
//
// An ONNX model may take shapes, axes, pads, a k or scales as inputs. The shapes
// of its tensors then follow from the values of those inputs, and code is made
// for one set of values at a time:
//
//   pestle_import_onnx_file(context, path, NULL, &model);      // once
//   if (pestle_module_value_argument_count(model)) {
//     pestle_module_specialize_values(model, inputs, count, &module);
//     pestle_compile(context, module, NULL, NULL, &plan);      // or a cache hit
//   }
//
// What is specialised has the values as constants and no longer as arguments.
// They are part of its signature, and so of the key of the plan cache: values
// that were seen before cost an import and a look into the cache.

// The most elements of an argument whose value is specialised on. Each value is
// a plan of its own, with the value in its key: what has more elements than any
// list of axes, extents or scales is data.
#define PESTLE_VALUE_ARGUMENT_MAX 1024

// How many arguments of the entry pestle_module_specialize_values() must be
// given the values of. Where dimensions are not known either, it is how many
// seem to decide shapes; then it may turn out that a value more or less is
// needed. 0 for a module that has its body. Any thread.
PESTLE_API size_t
pestle_module_value_argument_count(const pestle_module_t* module);
// Which argument the |index|-th of them is, ascending; SIZE_MAX past the last.
// Any thread.
PESTLE_API size_t pestle_module_value_argument(const pestle_module_t* module,
                                               size_t index);

// pestle_module_specialize() for these inputs: a view for each argument of the
// entry, whose shape and dtype are the argument's, and whose elements, if |data|
// is not NULL and there are at most PESTLE_VALUE_ARGUMENT_MAX, may be used where
// the model needs them. Those that were needed are no arguments of
// |*out_module|; the others keep their names and order. Views are borrowed
// during the call, their elements copied. A module that is not made by an import
// of ONNX is specialised by the shapes alone. |module| stays as it is and may be
// used from any threads. INVALID_ARGUMENT: a shape or dtype does not fit, a view
// that is needed is not readable on the host, or values are needed that were
// not given, all of which are named; UNSUPPORTED: an argument that is needed
// has more elements; else what an import fails with.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_specialize_values(
    pestle_module_t* module, const pestle_tensor_t* inputs, size_t count,
    pestle_module_t** out_module);

// --- Text and binary forms ---

typedef enum pestle_print_flag_e {
  PESTLE_PRINT_LOCATIONS = 1,  // loc(...) after each op
  PESTLE_PRINT_GENERIC = 2,    // "dialect.op"(...) {...} : ... everywhere
  PESTLE_PRINT_ELIDE = 4,  // constants over 16 elements as dense_elided<..>:
                           // for people, does not parse
} pestle_print_flag_t;

// Writes the module's text; |flags| are of pestle_print_flag_t. |*out_text|
// ends in 0, which |*out_size| does not count, and is freed with
// pestle_context_free(context, text, size + 1).
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_print(const pestle_module_t* module, unsigned flags,
                    char** out_text, size_t* out_size);
// Reads what pestle_module_print() writes and StableHLO text as JAX prints it,
// pretty or generic: |size| bytes that need not end in 0. |file| (may be NULL)
// names the text in diagnostics. MALFORMED with file, line and column;
// UNSUPPORTED names the ops that Pestle does not know.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_parse(pestle_context_t* context, const char* text, size_t size,
                    const char* file, pestle_module_t** out_module);
// Writes the module's binary form, to be freed with
// pestle_context_free(context, data, size).
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_serialize(
    const pestle_module_t* module, void** out_data, size_t* out_size);
// Reads what pestle_module_serialize() wrote; |data| is copied. MALFORMED for
// damage, with its offset, INCOMPATIBLE for another version of the form.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_deserialize(pestle_context_t* context, const void* data,
                          size_t size, pestle_module_t** out_module);
// XXH3-128 of the canonical binary form: independent of names, locations and
// the order of insertion, dependent on all else. Low half first.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_signature(const pestle_module_t* module, uint64_t out_hash[2]);

// --- Building ---

// Where the next op goes: at the end of |block|, with |loc|. Frozen; by value.
typedef struct pestle_builder_t {
  pestle_module_t* module;
  pestle_block_t* block;
  pestle_node_t* before;  // insert before this node; NULL: at the block's end
  pestle_loc_t loc;
} pestle_builder_t;

// A builder at the end of |function|'s body, without a location; it is a value
// and owns nothing. Ops on the builder of NULL are INVALID_ARGUMENT.
PESTLE_API pestle_builder_t pestle_builder_make(pestle_function_t* function);

// Makes a region without owner whose block takes |types|; it becomes part of
// the op that is built with it. Build its body with a builder on |*out_block|
// and end it with pestle_op_return(). Region and block are borrowed from the
// module.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_region_create(
    pestle_module_t* module, const pestle_type_t* types, size_t count,
    pestle_region_t** out_region, pestle_block_t** out_block);
// Argument |index| of a block, or NULL past the last. Borrowed from the module.
PESTLE_API pestle_value_t* pestle_block_argument(pestle_block_t* block,
                                                 size_t index);

// Attribute structs: pestle_<op>_attrs_t with one field a row of ops.def.
// Zero-initialise and set |struct_size|; they are read during the call only.
#define PESTLE_FIELD_BOOL bool
#define PESTLE_FIELD_I64 int64_t
#define PESTLE_FIELD_F64 double
#define PESTLE_FIELD_STR const char*
#define PESTLE_FIELD_I64S pestle_i64s_t
#define PESTLE_FIELD_TYPE pestle_type_t
#define PESTLE_FIELD_ELEMENTS pestle_elements_t
#define PESTLE_OP_BEGIN(NAME, op, ...)   \
  typedef struct pestle_##op##_attrs_t { \
    size_t struct_size;
#define PESTLE_OP_ATTR(NAME, op, KIND, attr, ...) PESTLE_FIELD_##KIND attr;
#define PESTLE_OP_END(NAME, op) \
  }                             \
  pestle_##op##_attrs_t;
#include "pestle/ops.def"

// What a row's counts become in a signature.
#define PESTLE_OPERANDS_0
#define PESTLE_OPERANDS_1 , pestle_value_t* a
#define PESTLE_OPERANDS_2 , pestle_value_t *a, pestle_value_t *b
#define PESTLE_OPERANDS_3 \
  , pestle_value_t *a, pestle_value_t *b, pestle_value_t *c
#define PESTLE_OPERANDS_V \
  , pestle_value_t *const *operands, size_t operand_count
#define PESTLE_REGIONS_0
#define PESTLE_REGIONS_1 , pestle_region_t* region
#define PESTLE_REGIONS_2 , pestle_region_t *region, pestle_region_t *other
#define PESTLE_REGIONS_V , pestle_region_t *const *regions, size_t region_count
#define PESTLE_TYPE_INFER
#define PESTLE_TYPE_TYPED , pestle_type_t type
#define PESTLE_TYPE_TYPES , const pestle_type_t *types, size_t type_count
#define PESTLE_RESULTS_0
#define PESTLE_RESULTS_1 , pestle_value_t** out
#define PESTLE_RESULTS_V , pestle_value_t **out, size_t out_capacity

// Elementwise ops: pestle_op_add(&builder, a, b, &out) and so on, with the
// meaning that their row of scalar.def has as an expression. All operands have
// one shape (see scalar.def for select and clamp), which the result has too.
// |*out| is borrowed from the module and may be one of the operands; |out| may
// be NULL. INVALID_ARGUMENT names op, location and operand: one that is NULL,
// of another module, shape or dtype than the row allows, or a builder whose
// block has ended. A failed call adds nothing.
#define PESTLE_SCALAR(NAME, op, mlir, n, ...)                 \
  PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_op_##op( \
      pestle_builder_t* builder PESTLE_OPERANDS_##n, pestle_value_t** out);
#include "pestle/scalar.def"

// Whole-tensor ops: builder, operands, attributes (NULL: all defaults), regions
// (taken over by the op), the result type of TYPED ops, results. ops.def says
// what each does and which shapes it takes. Ops with any number of results fill
// |out|, setting what is left over to NULL, and fail with INVALID_ARGUMENT when
// it is short. Results, NULL and errors as above.
//   pestle_op_transpose(&b, x, &(pestle_transpose_attrs_t){
//       sizeof(pestle_transpose_attrs_t), .permutation = PESTLE_I64S(1, 0)},
//       &y)
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_op_##op(                  \
      pestle_builder_t* builder PESTLE_OPERANDS_##OPERANDS,                    \
      const pestle_##op##_attrs_t* attrs PESTLE_REGIONS_##REGIONS              \
          PESTLE_TYPE_##TYPE PESTLE_RESULTS_##RESULTS);
#include "pestle/ops.def"

PESTLE_EXTERN_C_END

#endif  // PESTLE_GRAPH_H_
