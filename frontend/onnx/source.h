// SPDX-License-Identifier: Apache-2.0
// The source of an import: the model's bytes, its structure and the caller's
// bindings, counted by references. Every module made from it keeps it alive,
// since constants point into the file and a symbolic module imports it again
// for each set of shapes. Immutable once made, so that threads may share it.
#ifndef PESTLE_FRONTEND_ONNX_SOURCE_H_
#define PESTLE_FRONTEND_ONNX_SOURCE_H_

#include "base/file.h"
#include "base/map.h"
#include "frontend/onnx/model.h"
#include "frontend/onnx/strings.h"
#include "pestle/import.h"

// A --const binding: row-major elements.
typedef struct pestle_onnx_bound_t {
  pestle_str_t name;
  pestle_elements_t elements;
} pestle_onnx_bound_t;

// Of axis |axis| of graph input |input| as much is real as graph input |length| says, which the
// model has itself if |is_own|.
typedef struct pestle_onnx_length_t {
  size_t input, length;
  int32_t axis;
  bool is_own;
} pestle_onnx_length_t;

// What a graph input is.
typedef enum pestle_onnx_input_kind_e {
  PESTLE_ONNX_ARGUMENT,  // of the module
  // An initializer of its name is its value unless the caller gives one: a
  // constant, or with a shape of the caller's an argument.
  PESTLE_ONNX_DEFAULT,
  PESTLE_ONNX_STORED,  // an initializer, which IR version 3 lists here as well
  PESTLE_ONNX_BOUND,   // to a constant of the caller's
} pestle_onnx_input_kind_t;

typedef struct pestle_onnx_source_t {
  uint32_t refs;  // atomic
  pestle_context_t* context;
  // Of one with more constants: what it shares the model with, else NULL.
  struct pestle_onnx_source_t* parent;
  pestle_arena_t arena;  // the model, the copies of names and bindings
  pestle_mapping_t mapping;
  const char* file;    // for locations and messages
  const char* folder;  // of external data, or NULL
  const void* data;
  size_t size;
  pestle_onnx_model_t model;
  pestle_onnx_strings_t strings;  // of the model; empty with a parent
  pestle_map_t inputs;  // name -> index of the graph input; empty with a parent
  uint8_t* input_kinds;  // pestle_onnx_input_kind_t of each graph input
  pestle_onnx_bound_t* bound;
  size_t bound_count;
  pestle_onnx_length_t* lengths;
  size_t length_count;
  pestle_onnx_compat_t compat;
} pestle_onnx_source_t;

// Makes an empty source with one reference.
PESTLE_NODISCARD pestle_status_t pestle_onnx_source_create(
    pestle_context_t* context, const char* file, const char* folder,
    pestle_onnx_source_t** out_source);
// |self| is a pestle_onnx_source_t; the type is that of keep-alive callbacks.
void pestle_onnx_source_retain(pestle_onnx_source_t* source);
void pestle_onnx_source_release(void* self);
// Makes inputs that are maps inputs of their keys and their values (map_inputs.c).
// UNSUPPORTED: a node that takes no maps is to take one.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_spread_maps(pestle_onnx_source_t* source);
// Makes inputs that are sequences inputs of their tensors, as many as |options| (may be
// NULL) name (list_inputs.c). INVALID_ARGUMENT: more than may be.
PESTLE_NODISCARD pestle_status_t pestle_onnx_spread_lists(
    pestle_onnx_source_t* source, const pestle_import_options_t* options);
// "name[index]", by which tensor |index| of a sequence goes.
PESTLE_NODISCARD pestle_status_t pestle_onnx_element_name(pestle_arena_t* arena,
                                                          pestle_str_t name,
                                                          size_t index,
                                                          pestle_str_t* out);
// Adds inputs that say how much of others is real, as |options| (may be NULL) have it
// (length_inputs.c). NOT_FOUND: no such input; INVALID_ARGUMENT: no such axis, an axis that
// the model fixes, or an input that has the name of a length.
PESTLE_NODISCARD pestle_status_t pestle_onnx_add_lengths(
    pestle_onnx_source_t* source, const pestle_import_options_t* options);
// Says of each input of |source|'s model what it is, with the bindings of
// |options| (may be NULL), which are checked; copies the constants.
PESTLE_NODISCARD pestle_status_t pestle_onnx_source_bind(
    pestle_onnx_source_t* source, const pestle_import_options_t* options);

// |parent|, which it keeps alive, with |count| constants more, whose elements
// are copied.
PESTLE_NODISCARD pestle_status_t pestle_onnx_source_extend(
    pestle_onnx_source_t* parent, const pestle_onnx_bound_t* more, size_t count,
    pestle_onnx_source_t** out_source);

// A caller's options as far as their struct_size says.
typedef struct pestle_import_own_t {
  pestle_import_options_t options;
  pestle_control_t control;
} pestle_import_own_t;

// Copies |options| to |*own|, to which |*out_options| then points, and checks that
// what is counted is there. NULL is fine and stays NULL.
PESTLE_NODISCARD pestle_status_t pestle_import_read_options(
    const pestle_import_options_t* options, pestle_import_own_t* own,
    const pestle_import_options_t** out_options);

// The strings of the model, also with a parent.
const pestle_onnx_strings_t* pestle_onnx_source_strings(
    const pestle_onnx_source_t* source);

// --- Inputs (bind.c) ---

// The dtype of an input or output of the module that the model declares to be of
// |data_type|: of strings it is that of ids.
pestle_dtype_t pestle_onnx_io_dtype(int64_t data_type);
// The graph input called |name|; its index in |*out_index| (may be NULL). NULL
// when there is none.
const pestle_onnx_value_info_t* pestle_onnx_find_input(
    const pestle_onnx_source_t* source, const char* name, size_t* out_index);
// Whether graph input |info| is an argument of the module.
bool pestle_onnx_is_argument(const pestle_onnx_source_t* source,
                             const pestle_onnx_value_info_t* info);
// NOT_FOUND: |what| ("a shape") is given for input |name|, which the model lacks
// (it is told which it has), or INVALID_ARGUMENT: which is stored in the model.
PESTLE_NODISCARD pestle_status_t pestle_onnx_check_input(
    const pestle_onnx_source_t* source, const char* what, const char* name);
// The type of graph input |info| with the caller's |shape| (NULL: none) and the
// dims of |options| (may be NULL): dynamic where nothing fixes a dim.
PESTLE_NODISCARD pestle_status_t pestle_onnx_input_type(
    const pestle_onnx_value_info_t* info,
    const pestle_import_options_t* options, const pestle_shape_binding_t* shape,
    pestle_type_t* out_type);
// Writes the extents of |type|, or those that |info| declares, as "1x3x?" into
// |buffer|, which is returned.
const char* pestle_onnx_print_dims(const pestle_type_t* type, char* buffer,
                                   size_t capacity);
const char* pestle_onnx_print_declared(const pestle_onnx_value_info_t* info,
                                       char* buffer, size_t capacity);
// The argument types after the bindings of |options| (may be NULL): dynamic
// where nothing fixes a dim. |out_types| has room for every graph input.
PESTLE_NODISCARD pestle_status_t pestle_onnx_argument_types(
    pestle_onnx_source_t* source, const pestle_import_options_t* options,
    pestle_type_t* out_types, size_t* out_count);
// Checks that |types| may be the arguments' types.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_check_types(const pestle_onnx_source_t* source,
                        const pestle_type_t* types, size_t count);

// Calls |visit| with each input that a caller may give of the model in |data|.
PESTLE_NODISCARD pestle_status_t pestle_onnx_visit_inputs(
    pestle_context_t* context, const void* data, size_t size,
    pestle_status_t (*visit)(void* user, const pestle_model_input_t* input),
    void* user);

// --- The import (import.c) ---

// Makes the module for argument types without dynamic dims. |out_needed| (NULL:
// nobody asks) has a place for each: true where the import failed since it
// could not do without that argument's elements.
PESTLE_NODISCARD pestle_status_t pestle_onnx_import_static(
    pestle_onnx_source_t* source, const pestle_type_t* types, size_t count,
    const pestle_control_t* control, bool* out_needed,
    pestle_module_t** out_module);
// The same with those of |values| (NULL, or an entry an argument, without data
// where nothing is known) as constants that the import cannot do without.
PESTLE_NODISCARD pestle_status_t pestle_onnx_import_values(
    pestle_onnx_source_t* source, const pestle_type_t* types,
    const pestle_elements_t* values, size_t count,
    const pestle_control_t* control, pestle_module_t** out_module);
// Makes a module without a body that imports itself when it is specialised.
// |needed| as above, or NULL: what the ops and names of the model let expect.
PESTLE_NODISCARD pestle_status_t pestle_onnx_import_symbolic(
    pestle_onnx_source_t* source, const pestle_type_t* types, size_t count,
    const bool* needed, pestle_module_t** out_module);
// Whether it is the elements of arguments that |status|, of an import that left
// |needed|, asks for, and all of them short enough to be given.
bool pestle_onnx_asks_for_values(pestle_status_t status,
                                 const pestle_type_t* types, const bool* needed,
                                 size_t count);
// Adds to |needed| the arguments that inputs which an op must know
// (onnx_ops.def) are computed from by name.
PESTLE_NODISCARD pestle_status_t pestle_onnx_expect_values(
    const pestle_onnx_source_t* source, bool* needed, size_t count);
// CANCELLED or DEADLINE_EXCEEDED when |control| (may be NULL) says so; reports
// progress.
PESTLE_NODISCARD pestle_status_t pestle_onnx_check_control(
    const pestle_control_t* control, int64_t done, int64_t total);

#endif  // PESTLE_FRONTEND_ONNX_SOURCE_H_
