// SPDX-License-Identifier: Apache-2.0
// frontend/ turns a model's bytes into a graph, and symbolic dimensions into
// numbers; one folder a format. frontend/ knows nothing of passes, kernels or
// devices.
//
// What the parts of the ONNX importer share: the state of one import, the
// scopes in which names are looked up, and the call that an op's importer
// receives.
//
// An op's importer reads attributes and inputs from its call, emits ops
// (emit.h) and leaves its results in call->outputs. Errors are kept in the
// call: after the first one every emitter returns NULL and does nothing, so
// that an importer reads like the formula that it writes.
#ifndef PESTLE_FRONTEND_ONNX_IMPORTER_H_
#define PESTLE_FRONTEND_ONNX_IMPORTER_H_

#include "base/map.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/tensor.h"
#include "ir/formula.h"

// The newest opset whose op semantics are implemented; 27 and 28 as onnx 1.23
// has them, which does not call 28 released.
#define PESTLE_ONNX_LAST_OPSET 28
// The same of ai.onnx.ml.
#define PESTLE_ONNX_LAST_ML_OPSET 5

typedef struct pestle_onnx_import_t {
  pestle_allocator_t allocator;
  pestle_arena_t arena;  // scratch, dies with the import
  pestle_onnx_source_t* source;
  const pestle_onnx_model_t* model;
  const pestle_control_t* control;  // or NULL
  pestle_module_t* module;
  pestle_onnx_files_t* files;  // the module's
  int64_t opset;               // of ai.onnx
  // The arguments whose elements the import could not do without, or NULL.
  bool* needed;
  // What folding may still add to memory, and read and write, in bytes.
  size_t fold_budget, fold_work;
  pestle_map_t real;    // value -> pestle_onnx_real_t* (bounded.h)
  pestle_map_t bounds;  // a value that is a real extent -> its bound
  pestle_map_t
      rooms;  // a value that is a real extent -> pestle_onnx_room_t* (bounded.h)
  const pestle_block_t* entry;  // the entry function's block
  // i1, or NULL: whether a loop made more rows than there is room for, and whether extents
  // that have to be equal are not, so that the run fails.
  pestle_value_t *overflow, *misfit;
  // How many nodes the bodies of loops and functions may still be copied to.
  size_t loop_nodes;
  uint64_t random_nodes;  // that were imported and have no seed
  pestle_value_t* trip;   // of the loops around, i64 of rank 0, or NULL
  int function_depth;     // calls around what is being imported
  const pestle_onnx_strings_t* strings;  // of the model
  pestle_map_t texts;                    // values that are ids of strings
} pestle_onnx_import_t;

// A sequence whose length is known, of tensors that need not be.
typedef struct pestle_onnx_sequence_t {
  size_t count;
  pestle_value_t** values;
  bool is_nothing;  // an optional without an element
} pestle_onnx_sequence_t;

// What a name stands for: a value, a stored tensor that becomes a constant when
// it is first read, or a sequence.
typedef struct pestle_onnx_symbol_t {
  pestle_value_t* value;
  const pestle_onnx_tensor_t* tensor;
  const pestle_onnx_sequence_t* sequence;
} pestle_onnx_symbol_t;

typedef struct pestle_onnx_scope_t {
  struct pestle_onnx_scope_t* parent;
  const pestle_onnx_graph_t* graph;
  pestle_map_t symbols;  // name -> pestle_onnx_symbol_t*
  pestle_builder_t builder;
} pestle_onnx_scope_t;

// One node being imported. It is its formula: the hooks of the one see the other.
typedef struct pestle_onnx_call_t {
  pestle_formula_t
      f;  // where ops go: to the scope or a region; the first error
  pestle_onnx_import_t* import;
  pestle_onnx_scope_t* scope;
  const pestle_onnx_node_t* node;
  int64_t opset;                             // of the node's domain
  pestle_value_t** inputs;                   // NULL where omitted or a sequence
  const pestle_onnx_sequence_t** sequences;  // NULL where none
  const pestle_onnx_sequence_t** made;       // outputs that are sequences
  size_t input_count;
  pestle_value_t** outputs;  // to be filled; nobody reads those without a name
  size_t output_count;
} pestle_onnx_call_t;

// How an op takes inputs whose real extents only a run tells (bounded.h).
typedef enum pestle_onnx_bounded_e {
  PESTLE_ONNX_WHOLE,  // not at all
  PESTLE_ONNX_MAP,    // elementwise
  PESTLE_ONNX_OWN,    // its importer knows
  PESTLE_ONNX_LIST,   // its importer knows, of tensors and of sequences
  PESTLE_ONNX_ROWS,   // along axis 0 of input 0, which each result keeps
  PESTLE_ONNX_KEEP,   // in input 0, whose axes each result keeps
  // Along axis 0 of the inputs that bits above this number name, i << 3 for the lowest,
  // which are equally long there; each result keeps it.
  PESTLE_ONNX_BATCH,
} pestle_onnx_bounded_t;

// Beside the bits of the inputs that may be of strings: so are the results (texts.c).
#define PESTLE_ONNX_MOVES_TEXTS 0x100
// Its importer knows which inputs are.
#define PESTLE_ONNX_ANY_TEXTS 0x200

typedef void (*pestle_onnx_fn_t)(pestle_onnx_call_t* call);

typedef struct pestle_onnx_op_t {
  const char* name;
  const char* domain;
  int16_t since, until;                         // opsets, both included
  uint8_t min_inputs, max_inputs, max_outputs;  // 255: any number
  uint8_t known;     // bit i: the elements of input i must be known
  uint16_t bounded;  // pestle_onnx_bounded_t
  uint16_t texts;  // bit i: input i may be of strings; PESTLE_ONNX_MOVES_TEXTS
  pestle_onnx_fn_t fn;
} pestle_onnx_op_t;

// The row for |node| at |opset|; NULL when there is none.
const pestle_onnx_op_t* pestle_onnx_op_find(const pestle_onnx_node_t* node,
                                            int64_t opset);

// --- Scopes (scope.c) ---

// Makes a scope for |graph| with its initializers. |parent| may be NULL.
PESTLE_NODISCARD pestle_status_t pestle_onnx_scope_init(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* parent,
    const pestle_onnx_graph_t* graph, pestle_builder_t builder,
    pestle_onnx_scope_t* out_scope);
void pestle_onnx_scope_deinit(pestle_onnx_scope_t* scope);
// MALFORMED when the scope has the name already.
PESTLE_NODISCARD pestle_status_t pestle_onnx_scope_define(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope, pestle_str_t name,
    pestle_value_t* value);
// The same of an input of the scope's graph, which goes before an initializer of
// its name: that is a default.
PESTLE_NODISCARD pestle_status_t pestle_onnx_scope_define_input(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope, pestle_str_t name,
    pestle_value_t* value);
// Whether the scope itself has the name.
bool pestle_onnx_scope_has(const pestle_onnx_scope_t* scope, pestle_str_t name);
// The same as pestle_onnx_scope_define() of a sequence.
PESTLE_NODISCARD pestle_status_t pestle_onnx_scope_define_sequence(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope, pestle_str_t name,
    const pestle_onnx_sequence_t* sequence);
// The sequence called |name| here or in a scope around, or NULL.
const pestle_onnx_sequence_t* pestle_onnx_scope_sequence(
    const pestle_onnx_scope_t* scope, pestle_str_t name);
// The value of |name| here or in a scope around; |*out_value| is NULL when
// there is none.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_scope_find(pestle_onnx_import_t* import, pestle_onnx_scope_t* scope,
                       pestle_str_t name, pestle_value_t** out_value);

// --- Graphs (graph.c, order.c, check.c) ---

// Imports the nodes of |scope|'s graph and finds its outputs; |out_values| has room for
// all of them, and so has |out_lists| for those that are sequences (NULL: they may not).
PESTLE_NODISCARD pestle_status_t pestle_onnx_import_graph(
    pestle_onnx_import_t* import, pestle_onnx_scope_t* scope,
    pestle_value_t** out_values, const pestle_onnx_sequence_t** out_lists);
// The order in which to import the nodes of |graph|, so that each comes after
// what it reads; the file's order where that is one. MALFORMED for a cycle.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_order(const pestle_onnx_graph_t* graph, pestle_arena_t* arena,
                  const pestle_onnx_node_t*** out_nodes);
// UNSUPPORTED with every op of the model that has no importer.
PESTLE_NODISCARD pestle_status_t
pestle_onnx_check_ops(const pestle_onnx_import_t* import);
// The opset of |domain|; 0 when the model imports none.
int64_t pestle_onnx_opset(const pestle_onnx_model_t* model,
                          pestle_str_t domain);

// --- Functions of the model (function.c) ---

// Bodies inside of bodies; ONNX has no recursion.
#define PESTLE_ONNX_MOST_CALLS 64

// The function that |node| calls, or NULL.
const pestle_onnx_function_t* pestle_onnx_find_function(
    const pestle_onnx_model_t* model, const pestle_onnx_node_t* node);
// |model| as the body of |function| sees it: with its opsets.
pestle_onnx_model_t pestle_onnx_function_model(
    const pestle_onnx_model_t* model, const pestle_onnx_function_t* function);
// Imports the body in place of the call.
void pestle_onnx_call_function(pestle_onnx_call_t* call,
                               const pestle_onnx_function_t* function);

// --- Values that are ids of strings (texts.c) ---

bool pestle_onnx_is_text(const pestle_onnx_import_t* import,
                         const pestle_value_t* value);
// Notes that |value| (may be NULL) is one, and gives it.
pestle_value_t* pestle_onnx_mark_text(pestle_onnx_call_t* call,
                                      pestle_value_t* value);
PESTLE_NODISCARD pestle_status_t pestle_onnx_note_text(
    pestle_onnx_import_t* import, const pestle_value_t* value);
// Refuses the call when an input is such a value and |op| does not take it; what it
// only moves is noted of its outputs afterwards.
void pestle_onnx_check_texts(pestle_onnx_call_t* call,
                             const pestle_onnx_op_t* op);
void pestle_onnx_keep_texts(pestle_onnx_call_t* call,
                            const pestle_onnx_op_t* op);
// The id of a string of the model; -1 with an error kept if it has none.
int32_t pestle_onnx_id_of(pestle_onnx_call_t* call, pestle_str_t string);
// Those of a list of strings, i32.
pestle_value_t* pestle_onnx_id_list(pestle_onnx_call_t* call,
                                    const pestle_str_t* strings, size_t count);

// --- Calls (call.c) ---

// "node 'conv1' (Conv, opset 13)", also for nodes without a name.
const char* pestle_onnx_describe(const pestle_onnx_node_t* node, int64_t opset,
                                 char* buffer, size_t capacity);
// Keeps an error about the node unless there is one already. Returns NULL.
PESTLE_PRINTF(3, 4)
pestle_value_t* pestle_onnx_fail(pestle_onnx_call_t* call,
                                 pestle_status_code_t code, const char* format,
                                 ...);
// Keeps |status| (NULL: nothing); true when it was an error.
bool pestle_onnx_keep(pestle_onnx_call_t* call, pestle_status_t status);

// Refuses the node when it has an attribute that is not among |names|, which spaces
// part. Importers of other domains than ONNX's own call it first, so that no attribute is
// passed over.
bool pestle_onnx_takes(pestle_onnx_call_t* call, const char* names);
// Attributes, or |missing|. One of another kind is MALFORMED.
bool pestle_onnx_has(const pestle_onnx_call_t* call, const char* name);
int64_t pestle_onnx_int(pestle_onnx_call_t* call, const char* name,
                        int64_t missing);
double pestle_onnx_float(pestle_onnx_call_t* call, const char* name,
                         double missing);
pestle_str_t pestle_onnx_string(pestle_onnx_call_t* call, const char* name,
                                const char* missing);
// The same of |words|, between which spaces stand; another one is an error.
pestle_str_t pestle_onnx_word(pestle_onnx_call_t* call, const char* name,
                              const char* missing, const char* words);
// Empty when missing.
pestle_i64s_t pestle_onnx_ints(pestle_onnx_call_t* call, const char* name);
typedef struct pestle_onnx_floats_t {
  const float* data;
  size_t count;
} pestle_onnx_floats_t;
pestle_onnx_floats_t pestle_onnx_floats(pestle_onnx_call_t* call,
                                        const char* name);

// Whether the op is read as ONNX Runtime does where the text says otherwise.
static inline bool pestle_onnx_as_ort(const pestle_onnx_call_t* call) {
  return call->import->source->compat == PESTLE_ONNX_COMPAT_ORT;
}

// Input |index|, or NULL when it is omitted.
static inline pestle_value_t* pestle_onnx_input(const pestle_onnx_call_t* call,
                                                size_t index) {
  return index < call->input_count ? call->inputs[index] : NULL;
}
// Whether output |index| is wanted.
bool pestle_onnx_wants(const pestle_onnx_call_t* call, size_t index);
// |axis| counted from the front; an axis outside of |rank| is an error.
int64_t pestle_onnx_axis(pestle_onnx_call_t* call, int64_t axis, int64_t rank);
// The integers that input |index| holds, which must be known while importing;
// |what| names it in the error. Empty on error.
pestle_i64s_t pestle_onnx_input_ints(pestle_onnx_call_t* call, size_t index,
                                     const char* what);
// Notes that the import fails because the elements of |value| (may be NULL) are
// not known: those of the arguments that it is computed from would do.
void pestle_onnx_need(pestle_onnx_call_t* call, const pestle_value_t* value);
// Whether that would help: |value| is computed from arguments, all of which are small
// enough to be constants.
bool pestle_onnx_can_need(pestle_onnx_call_t* call,
                          const pestle_value_t* value);
// The one number that input |index| holds, or |missing|.
double pestle_onnx_input_float(pestle_onnx_call_t* call, size_t index,
                               const char* what, double missing);
// Scratch memory; NULL (with the error kept) when out of memory.
void* pestle_onnx_scratch(pestle_onnx_call_t* call, size_t size);

#endif  // PESTLE_FRONTEND_ONNX_IMPORTER_H_
