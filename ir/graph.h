// SPDX-License-Identifier: Apache-2.0
// The graph IR as passes see it. A module owns an arena; nodes, values, blocks
// and types live in it until the module dies, so pointers stay valid and an
// erased node is only unlinked.
//
// ir/ is the graph IR: types, ops and their meaning, builder, verifier, text,
// bytes. ir/ knows nothing of devices, kernels or files.
//
// Invariants, checked by pestle_module_verify():
//  1. A value is defined once, before its uses, in the using block or in a
//     block around it (regions capture, except function bodies and those of
//     pestle_node_is_isolated()).
//  2. A region has one block. The block ends with the only terminator in it.
//  3. Every use is on its value's use list and every result knows its node.
//  4. Result types are those that the op's type rule infers (or accepts).
#ifndef PESTLE_IR_GRAPH_H_
#define PESTLE_IR_GRAPH_H_

#include "base/arena.h"
#include "base/str.h"
#include "pestle/graph.h"

typedef struct pestle_use_t {
  pestle_value_t* value;
  pestle_node_t* user;
  struct pestle_use_t *prev, *next;  // of the value's other uses
} pestle_use_t;

struct pestle_value_s {
  const pestle_type_t* type;  // interned in the module: equal iff same pointer
  pestle_node_t* node;        // defining node, or NULL for a block argument
  pestle_block_t* block;      // of the argument; NULL for a node's result
  uint32_t index;             // among the results or arguments
  uint32_t use_count;
  pestle_use_t* uses;
  const char* name;  // wish for the printer, or NULL
  uint64_t scratch;  // free for the pass that runs; undefined before it
};

typedef enum pestle_attr_kind_e {
  PESTLE_ATTR_KIND_BOOL,
  PESTLE_ATTR_KIND_I64,
  PESTLE_ATTR_KIND_F64,
  PESTLE_ATTR_KIND_STR,
  PESTLE_ATTR_KIND_I64S,
  PESTLE_ATTR_KIND_TYPE,
  PESTLE_ATTR_KIND_ELEMENTS,
} pestle_attr_kind_t;

// Contents are the module's: in its arena, or in memory that the module keeps
// alive (pestle_module_keep_alive).
typedef struct pestle_attr_t {
  uint16_t name;  // pestle_attr_name_t
  uint16_t kind;  // pestle_attr_kind_t
  union {
    bool b;
    int64_t i64;
    double f64;
    const char* str;
    pestle_i64s_t i64s;
    const pestle_type_t* type;
    const pestle_elements_t* elements;
  } as;
} pestle_attr_t;

bool pestle_i64s_has(pestle_i64s_t list, int64_t value);
bool pestle_i64s_equal(pestle_i64s_t a, pestle_i64s_t b);

struct pestle_node_s {
  uint16_t op;  // pestle_op_t
  uint16_t attr_count;
  uint32_t operand_count, result_count, region_count;
  pestle_use_t* operands;
  pestle_value_t* results;  // array of result_count
  pestle_region_t** regions;
  pestle_attr_t* attrs;   // sorted by name; every REQUIRED and OPTIONAL
                          // attribute of the row is present
  pestle_block_t* block;  // NULL once erased
  pestle_node_t *prev, *next;
  pestle_loc_t loc;  // strings interned in the module
  // Another node of the module that computes what this one did: see
  // pestle_node_heir(). NULL: none yet.
  pestle_node_t* heir;
  uint64_t scratch;  // free for the pass that runs
};

struct pestle_block_s {
  pestle_region_t* region;
  pestle_value_t** arguments;
  uint32_t argument_count;
  uint32_t body_count;  // nodes of it whose regions run on tensors
  pestle_node_t *first, *last;
};

struct pestle_region_s {
  pestle_block_t* block;
  pestle_node_t* owner;         // or NULL
  pestle_function_t* function;  // when it is a function's body, else NULL
  pestle_module_t* module;
  uint32_t index;  // among the owner's regions
};

// What a dialect says of a module, a function, an argument or a result beside
// the graph: mhlo.num_partitions, tf.aliasing_output, sdy.sharding. Kept as text.
typedef struct pestle_dialect_attr_t {
  const char* key;  // has a dot
  const char*
      text;  // the value as MLIR writes it, "1 : i32"; "" for a key alone
} pestle_dialect_attr_t;
typedef struct pestle_dialect_attrs_t {
  const pestle_dialect_attr_t* data;  // sorted by key
  uint32_t count;
} pestle_dialect_attrs_t;

struct pestle_function_s {
  pestle_module_t* module;
  const char* name;
  bool is_private;
  pestle_region_t* body;
  // Names of the inputs and outputs as the user knows them; NULL where none.
  // Text form: argument attribute {pestle.name = "x"}, result attribute
  // likewise.
  const char** argument_names;
  const char** result_names;  // set by pestle_function_set_result_name
  uint32_t result_name_count, result_name_room;
  // Where tokens stand among the source's arguments and results, ascending. They
  // are no values here: effects keep the order of the ops.
  const uint32_t *argument_tokens, *result_tokens;
  uint32_t argument_token_count, result_token_count;
  // What the results hold: 0: a tensor; i + 1: an i64 for each axis of result i,
  // how many of its elements along it are real. The tensors come first, of which
  // such a one is laid out by its type, its bound. Text form: result attribute
  // {pestle.shape_of = i : i64}.
  uint32_t* result_shape_of;  // set by pestle_function_set_shape_of
  uint32_t result_shape_count, result_shape_room;
  // What dialects say, see "Attributes of dialects"; arrays may be shorter than
  // the arguments and results.
  pestle_dialect_attrs_t dialect_attrs;
  pestle_dialect_attrs_t *argument_attrs, *result_attrs;
  uint32_t argument_attr_count, result_attr_count;
  // Result types stated before the body is there, so that calls may come first;
  // the body's return says them otherwise. See pestle_function_declare_results.
  bool results_declared;
  const pestle_type_t** result_types;
  uint32_t result_type_count;
  pestle_function_t *next, *prev;
};

typedef struct pestle_keep_alive_t {
  void (*release)(void* self);
  // Or NULL. |data|: only what lies there; NULL: all.
  void (*relax)(void* self, const void* data, size_t size);
  void* self;
  struct pestle_keep_alive_t* next;
} pestle_keep_alive_t;

struct pestle_module_s {
  uint32_t refs;  // atomic
  pestle_context_t* context;
  pestle_arena_t arena;
  const char* name;
  pestle_function_t *first, *last;
  pestle_dialect_attrs_t dialect_attrs;
  pestle_keep_alive_t* keep_alive;
  struct pestle_interner_t* interner;  // types, strings, functions by name
  // A module whose shapes are not all known may instead know how to make
  // itself for given argument types (ONNX: imports again); it has no body.
  // |values| has an entry an argument, without data where nothing is known, or
  // is NULL. NULL: the generic way, pestle_module_specialize() infers every
  // type anew.
  pestle_status_t (*specialize)(void* self, const pestle_type_t* types,
                                const pestle_elements_t* values, size_t count,
                                pestle_module_t** out_module);
  void* specialize_self;  // kept alive with pestle_module_keep_alive
  // The arguments whose values decide shapes, ascending; in the arena.
  const uint32_t* value_arguments;
  uint32_t value_argument_count;
  uint32_t
      open_bodies;  // of registered ops, one in another, while they are built
};

// --- Modules ---

// Runs release(self) when the module dies.
PESTLE_NODISCARD pestle_status_t pestle_module_keep_alive(
    pestle_module_t* module, void (*release)(void* self), void* self);
// The same for what can give memory back that is not needed for the time being,
// pages of a mapped file: relax(self, data, size), from any thread, any number of times.
PESTLE_NODISCARD pestle_status_t pestle_module_keep_relaxed(
    pestle_module_t* module, void (*release)(void* self),
    void (*relax)(void* self, const void* data, size_t size), void* self);
// Asks all that the module keeps to do so.
void pestle_module_relax(const pestle_module_t* module);
// The same of the |size| bytes at |data|, wherever they lie.
void pestle_module_relax_part(const pestle_module_t* module, const void* data,
                              size_t size);
// pestle_module_specialize() with what is known of the arguments' values (NULL:
// nothing; an entry without data: nothing of that argument).
PESTLE_NODISCARD pestle_status_t
pestle_module_specialize_as(pestle_module_t* module, const pestle_type_t* types,
                            const pestle_elements_t* values, size_t count,
                            pestle_module_t** out_module);
// Notes that the values of the arguments |indices| decide shapes.
PESTLE_NODISCARD pestle_status_t pestle_module_set_value_arguments(
    pestle_module_t* module, const uint32_t* indices, size_t count);
// INVALID_ARGUMENT: the values of these inputs are needed; says how to give
// them.
PESTLE_NODISCARD pestle_status_t pestle_module_values_missing(
    pestle_allocator_t allocator, const char* const* names,
    const pestle_type_t* types, size_t count);
// The same of the module's own value arguments.
PESTLE_NODISCARD pestle_status_t
pestle_module_check_values(const pestle_module_t* module);
// Copies the elements of a host view, in row-major order, into |arena|.
// INVALID_ARGUMENT when it is none that can be read.
PESTLE_NODISCARD pestle_status_t
pestle_elements_copy_view(pestle_arena_t* arena, const pestle_tensor_t* view,
                          pestle_elements_t* out_elements);
// A deep copy; constant data stays shared (the copy retains the original).
PESTLE_NODISCARD pestle_status_t
pestle_module_clone(pestle_module_t* module, pestle_module_t** out_module);
// |function|, public, and the functions that it calls, private, in a module of its own,
// which keeps that of |function|.
PESTLE_NODISCARD pestle_status_t pestle_module_extract(
    pestle_function_t* function, pestle_module_t** out_module);
pestle_function_t* pestle_module_find_function(pestle_module_t* module,
                                               const char* name);
// A call that comes back to a function which it is made from, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_find_call_cycle(
    const pestle_module_t* module, const pestle_node_t** out_call);
PESTLE_NODISCARD pestle_status_t pestle_function_set_result_name(
    pestle_function_t* function, size_t index, const char* name);
// Result |index| holds the real extents of result |of|.
PESTLE_NODISCARD pestle_status_t pestle_function_set_shape_of(
    pestle_function_t* function, size_t index, size_t of);
// The result whose real extents result |index| holds; -1: it is a tensor.
int64_t pestle_function_shape_of(const pestle_function_t* function,
                                 size_t index);
// States the result types that the body, which may be built later, will return.
// Only a call that is built before its callee's body needs it.
PESTLE_NODISCARD pestle_status_t pestle_function_declare_results(
    pestle_function_t* function, const pestle_type_t* types, size_t count);
// The types that |function| returns, from its body or as declared; NULL when
// neither is there. |i| < |*out_count|.
bool pestle_function_result_count(const pestle_function_t* function,
                                  size_t* out_count);
const pestle_type_t* pestle_function_result_type(
    const pestle_function_t* function, size_t index);
// The interned form; NULL when out of memory.
const pestle_type_t* pestle_module_intern_type(pestle_module_t* module,
                                               const pestle_type_t* type);
const char* pestle_module_intern_string(pestle_module_t* module,
                                        const char* text);

// --- Attributes of dialects ---
//
// Attributes whose key has a dot. They are read, printed, copied and serialised;
// what Pestle acts upon has a function of its own below.

// |attrs| are copied, in any order of keys; they replace what is there.
// INVALID_ARGUMENT: a key without a dot or given twice.
PESTLE_NODISCARD pestle_status_t pestle_module_set_dialect_attrs(
    pestle_module_t* module, const pestle_dialect_attr_t* attrs, size_t count);
PESTLE_NODISCARD pestle_status_t pestle_function_set_dialect_attrs(
    pestle_function_t* function, const pestle_dialect_attr_t* attrs,
    size_t count);
PESTLE_NODISCARD pestle_status_t pestle_function_set_argument_attrs(
    pestle_function_t* function, size_t index,
    const pestle_dialect_attr_t* attrs, size_t count);
PESTLE_NODISCARD pestle_status_t pestle_function_set_result_attrs(
    pestle_function_t* function, size_t index,
    const pestle_dialect_attr_t* attrs, size_t count);
// Says where tokens stand, ascending; the positions are copied.
PESTLE_NODISCARD pestle_status_t
pestle_function_set_tokens(pestle_function_t* function, bool of_results,
                           const uint32_t* positions, size_t count);
// What is said of argument or result |index|; nothing past the last.
pestle_dialect_attrs_t pestle_function_argument_attrs(
    const pestle_function_t* function, size_t index);
pestle_dialect_attrs_t pestle_function_result_attrs(
    const pestle_function_t* function, size_t index);
// The text of |key|, or NULL.
const char* pestle_dialect_attrs_find(pestle_dialect_attrs_t attrs,
                                      const char* key);
// The integer of "2 : i32"; |otherwise| when |key| is not there or no integer.
int64_t pestle_dialect_attrs_i64(pestle_dialect_attrs_t attrs, const char* key,
                                 int64_t otherwise);

// The result that takes the memory of argument |index| (tf.aliasing_output), or
// -1. The verifier has seen that types are equal and no result is given twice.
int64_t pestle_function_aliased_result(const pestle_function_t* function,
                                       size_t index);
// Whether any result may take the memory of argument |index|, whose value is
// given up (jax.buffer_donor).
bool pestle_function_argument_is_donor(const pestle_function_t* function,
                                       size_t index);
// On how many devices the module runs at once (mhlo.num_partitions times
// mhlo.num_replicas), 1 where it does not say.
int64_t pestle_module_device_count(const pestle_module_t* module);

// --- Types ---

pestle_type_t pestle_type_make(pestle_dtype_t dtype, int rank,
                               const int64_t* dims);
bool pestle_type_equal(const pestle_type_t* a, const pestle_type_t* b);
bool pestle_type_is_static(const pestle_type_t* type);
// Elements of a static type (its product is checked where types are made).
int64_t pestle_type_count(const pestle_type_t* type);
size_t pestle_type_bytes(const pestle_type_t* type);
// INVALID_ARGUMENT when |type| is none that a tensor may have: a dtype of the
// kernel IR, a rank or extent out of range, more than 2^63 - 1 bytes.
PESTLE_NODISCARD pestle_status_t pestle_type_check(const pestle_type_t* type);
// "tensor<2x3xf32>" appended.
void pestle_type_print(const pestle_type_t* type, pestle_strbuf_t* out);

// What a complex number of |dtype| is two of; any other |dtype| itself.
static inline pestle_dtype_t pestle_dtype_part(pestle_dtype_t dtype) {
  return dtype == PESTLE_C64    ? PESTLE_F32
         : dtype == PESTLE_C128 ? PESTLE_F64
                                : dtype;
}
// The complex number of two parts of |dtype|, f32 or f64.
static inline pestle_dtype_t pestle_dtype_of_parts(pestle_dtype_t dtype) {
  return dtype == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
}
static inline bool pestle_type_is_complex(const pestle_type_t* type) {
  return pestle_dtype_is(type->dtype, PESTLE_KIND_COMPLEX);
}

// --- Generic construction and editing ---

// What pestle_op_<op>() expands to. Attributes may come in any order; missing
// OPTIONAL ones get their default; |attrs| and their contents are copied,
// except ELEMENTS data when |share_elements| (then the caller keeps it alive).
// |type| as in graph.h. On success |*out_node| is in place before |builder|'s
// point.
typedef struct pestle_node_spec_t {
  pestle_op_t op;
  pestle_value_t* const* operands;
  size_t operand_count;
  const pestle_attr_t* attrs;
  size_t attr_count;
  pestle_region_t* const* regions;
  size_t region_count;
  const pestle_type_t* type;
  const pestle_type_t* types;  // of all results, of an op whose row is TYPES
  size_t type_count;
  bool share_elements;
  const pestle_module_t* module;  // where the callee of a call is looked up;
                                  // pestle_node_create() fills it in
} pestle_node_spec_t;
PESTLE_NODISCARD pestle_status_t
pestle_node_create(pestle_builder_t* builder, const pestle_node_spec_t* spec,
                   pestle_node_t** out_node);

// The most attributes that a row of ops.def has (held by node.c).
#define PESTLE_MAX_ATTRS 20
// The fields of |attrs|, a pestle_<op>_attrs_t of |op| with its struct_size or
// NULL, as attributes; how many. What they point at is borrowed from |attrs|.
size_t pestle_attrs_read(pestle_op_t op, const void* attrs,
                         pestle_attr_t out_attrs[PESTLE_MAX_ATTRS]);

// The result types that |spec| has, by the op's rule. |out_types| has room for
// |capacity|; |*out_count| is the number of results. Errors say what is wrong
// with which operand or attribute, without naming the location.
PESTLE_NODISCARD pestle_status_t
pestle_infer_types(const pestle_node_spec_t* spec, pestle_type_t* out_types,
                   size_t capacity, size_t* out_count);

// Sets the stated types of |spec| to those that |node|'s results have, in
// |module|'s memory: for a copy of an op whose row is TYPES.
PESTLE_NODISCARD pestle_status_t
pestle_node_result_types(pestle_module_t* module, const pestle_node_t* node,
                         pestle_node_spec_t* spec);

// A builder that inserts before |node| with its location.
pestle_builder_t pestle_builder_before(pestle_node_t* node);

void pestle_node_set_operand(pestle_node_t* node, size_t index,
                             pestle_value_t* value);
// The node of |to| becomes the heir of |from|'s.
void pestle_value_replace_all_uses(pestle_value_t* from, pestle_value_t* to);
// Unlinks a node whose results have no uses, and all that its regions hold. What
// only it used goes to its heir: a pattern of five ops that became one has one
// heir. The memory stays, for those who ask for the heir.
void pestle_node_erase(pestle_node_t* node);
// Moves |node| before |before|, in its block or in one around it where all that it
// reads is defined; to the end of its block for NULL.
void pestle_node_move(pestle_node_t* node, pestle_node_t* before);
// Drops from the while op |loop| the carried values that |is_kept| (one entry a
// result) does not have. What read one reads its initial value instead: right
// where the body hands the value on as it is, or where nobody needs it. Returns
// how many went.
uint32_t pestle_loop_drop_carries(pestle_node_t* loop, const bool* is_kept);
// Empties a region that no op has taken over, so that what it captured is not
// used by it any more.
void pestle_region_discard(pestle_region_t* region);
PESTLE_NODISCARD pestle_status_t pestle_block_add_argument(
    pestle_module_t* module, pestle_block_t* block, const pestle_type_t* type,
    pestle_value_t** out_value);

// --- Changing functions ---
//
// Calls of the function are the caller's business, and so are declared results
// of a function that has no return yet.

// Makes |function|, whose body ends with a return, return |values| instead.
// Result i keeps what is noted of result from[i] (its name, whose extents it
// holds, its attributes), or nothing for -1 and for NULL |from|. On failure the
// function is as before.
PESTLE_NODISCARD pestle_status_t pestle_function_set_results(
    pestle_function_t* function, pestle_value_t* const* values, size_t count,
    const int64_t* from);
// Adds an argument behind the others; |name| may be NULL.
PESTLE_NODISCARD pestle_status_t pestle_function_add_argument(
    pestle_function_t* function, const pestle_type_t* type, const char* name,
    pestle_value_t** out_value);
// Calls its arguments what those of |like| are called, one by one.
PESTLE_NODISCARD pestle_status_t pestle_function_name_arguments(
    pestle_function_t* function, const pestle_function_t* like);
// Takes argument |index| away, which nothing uses.
PESTLE_NODISCARD pestle_status_t
pestle_function_remove_argument(pestle_function_t* function, size_t index);
// Takes |function| out of its module; what it captured is free.
void pestle_module_remove_function(pestle_function_t* function);

// --- Heirs ---
//
// Who computes what the ops of a module computed before passes rewrote it, so that
// a kernel can be traced back to the ops that a user wrote. Replacing uses,
// erasing and copying within a module keep it up to date; no pass has to.

// |heir| computes what |node| did, unless a living node does already.
void pestle_node_set_heir(pestle_node_t* node, pestle_node_t* heir);
// The last heir of |node|, or |node|. It is in no block if all of it was dropped.
pestle_node_t* pestle_node_heir(pestle_node_t* node);

// --- Reading ---

static inline pestle_value_t* pestle_node_operand(const pestle_node_t* node,
                                                  size_t index) {
  return node->operands[index].value;
}
static inline pestle_value_t* pestle_node_result(const pestle_node_t* node,
                                                 size_t index) {
  return &node->results[index];
}
static inline pestle_block_t* pestle_node_body(const pestle_node_t* node,
                                               size_t region) {
  return node->regions[region]->block;
}
// The attribute; the node's row has it (an internal error otherwise yields an
// empty value of the kind).
const pestle_attr_t* pestle_node_attr(const pestle_node_t* node,
                                      pestle_attr_name_t name);
#define PESTLE_NODE_I64(node, name) \
  (pestle_node_attr(node, PESTLE_ATTR_##name)->as.i64)
#define PESTLE_NODE_F64(node, name) \
  (pestle_node_attr(node, PESTLE_ATTR_##name)->as.f64)
#define PESTLE_NODE_BOOL(node, name) \
  (pestle_node_attr(node, PESTLE_ATTR_##name)->as.b)
#define PESTLE_NODE_STR(node, name) \
  (pestle_node_attr(node, PESTLE_ATTR_##name)->as.str)
#define PESTLE_NODE_I64S(node, name) \
  (pestle_node_attr(node, PESTLE_ATTR_##name)->as.i64s)
#define PESTLE_NODE_ELEMENTS(node) \
  (pestle_node_attr(node, PESTLE_ATTR_value)->as.elements)

// The operand of |attention|, or of its gradient, that is added to its scores, and the
// one of i1 that says where they count: 0 where there is none.
static inline size_t pestle_attention_bias(const pestle_node_t* attention) {
  uint32_t first = attention->op == PESTLE_OP_ATTENTION_GRAD ? 5 : 3;
  return attention->operand_count > first &&
                 pestle_node_operand(attention, first)->type->dtype != PESTLE_I1
             ? first
             : 0;
}
static inline size_t pestle_attention_mask(const pestle_node_t* attention) {
  size_t first = attention->op == PESTLE_OP_ATTENTION_GRAD ? 5 : 3;
  size_t last = (size_t)attention->operand_count - 1;
  return last >= first &&
                 pestle_node_operand(attention, last)->type->dtype == PESTLE_I1
             ? last
             : 0;
}

// Walks the nodes under |root| in program order, an op before what its regions
// hold. Start with |node| NULL; NULL ends the walk. The next node must be asked
// for before |node| is erased or moved.
pestle_node_t* pestle_region_next(const pestle_region_t* root,
                                  const pestle_node_t* node);

// Whether |node|'s regions take all that they read as arguments.
static inline bool pestle_node_is_isolated(const pestle_node_t* node) {
  return node->op == PESTLE_OP_FUSION || node->op == PESTLE_OP_CUSTOM ||
         node->op == PESTLE_OP_SCAN;
}

// Whether |node| does more than give results: it must neither be left out nor
// change places with another such op. So does what its regions hold.
bool pestle_node_has_effect(const pestle_node_t* node);

const char* pestle_attr_name_text(pestle_attr_name_t name);
// What the numbers of an attribute say: the column MEANS of ops.def.
typedef enum pestle_attr_meaning_e {
  PESTLE_ATTR_IS_PLAIN,
  PESTLE_ATTR_IS_DIMS,     // each is a dim
  PESTLE_ATTR_IS_EACH,     // one a dim
  PESTLE_ATTR_IS_PAIRS,    // two a dim
  PESTLE_ATTR_IS_SPATIAL,  // of the spatial dims, in their order
} pestle_attr_meaning_t;
#define PESTLE_ATTR_OF_RESULT 0xff
// One attribute row of an op.
typedef struct pestle_attr_row_t {
  uint16_t name;  // pestle_attr_name_t
  uint8_t kind;   // pestle_attr_kind_t
  bool required;
  uint8_t meaning;  // pestle_attr_meaning_t
  uint8_t of;       // the operand whose dims are meant, as where the op has one
                    // input of each kind, or PESTLE_ATTR_OF_RESULT
} pestle_attr_row_t;
// The attribute rows of |op| in the order of ops.def; NULL and none for scalar
// ops. Static.
const pestle_attr_row_t* pestle_op_attr_rows(pestle_op_t op, size_t* out_count);

// The constant behind |value|, or NULL.
const pestle_elements_t* pestle_value_constant(const pestle_value_t* value);
// The constant_part behind |value|, or NULL.
const pestle_node_t* pestle_value_constant_part(const pestle_value_t* value);
// Whether a plan has |value| stored, for all processes or each of them: a constant or a
// constant_part.
bool pestle_value_is_stored(const pestle_value_t* value);
// The type of each part of |value|, which has them along its first dim.
pestle_type_t pestle_constant_part_type(const pestle_elements_t* value);
// Part |index| of |node|, a constant_part.
pestle_elements_t pestle_constant_part_at(const pestle_node_t* node,
                                          int64_t index);
// The number of |value|, a constant of rank 0 of an integer type; false: it is none.
bool pestle_value_integer(const pestle_value_t* value, int64_t* out);
// The value of the first element, which a splat or rank 0 has alone: a float's in
// |out_f|, another's in |out_i|; the other one is 0.
void pestle_elements_first(const pestle_elements_t* elements, double* out_f,
                           int64_t* out_i);
// Where dim |axis| of |from|, which is reshaped to |to|, lies: the first n places
// along it, in each of what is around it, are the first n * times / parts, rounded
// up, along |*out_axis|. False: no dim has them in front.
bool pestle_reshape_axis(const pestle_type_t* from, const pestle_type_t* to,
                         int32_t axis, int32_t* out_axis, int64_t* out_times,
                         int64_t* out_parts);
// Whether a bitcast goes between elements of |a| and of |b|: they have as many bits,
// or one is a float of less than a byte and the other the byte that it takes.
bool pestle_dtypes_have_same_bits(pestle_dtype_t a, pestle_dtype_t b);
// When |block| is one commutative, associative scalar op on its two arguments
// and a return (as reduce bodies are), that op; else PESTLE_OP_COUNT.
pestle_op_t pestle_block_reduce_op(const pestle_block_t* block);
// Whether the comparator |block| of a sort is known to be a strict weak order,
// so that any way of sorting ends in one result: a comparison of one integer
// that is made of each element, or of one float with what is said of NaN.
bool pestle_block_is_order(const pestle_block_t* block);
// Of a comparator that is the order of one whole number made of an element: a value of
// |block| that is it, where both arguments of each pair are that element. NULL: it is none.
// |*out_descending|: the greater comes first.
const pestle_value_t* pestle_block_order_key(const pestle_block_t* block,
                                             bool* out_descending);
// "%name = stablehlo.add at model.onnx node 'conv1'": for diagnostics.
void pestle_node_describe(const pestle_node_t* node, pestle_strbuf_t* out);
// A status about |node|: "'stablehlo.add' (node 'conv1' in model.onnx): ...".
PESTLE_NODISCARD PESTLE_PRINTF(3, 4) pestle_status_t
    pestle_node_error(const pestle_node_t* node, pestle_status_code_t code,
                      const char* format, ...);

// --- Composites ---

// The most results that a composite has.
#define PESTLE_COMPOSITE_MAX_RESULTS 4

// Writes |node|'s decomposition into core ops before it; |out_results| has one
// value for each result, room for PESTLE_COMPOSITE_MAX_RESULTS. |node| must be of
// class COMPOSITE. The caller replaces and erases.
PESTLE_NODISCARD pestle_status_t pestle_decompose(pestle_node_t* node,
                                                  pestle_value_t** out_results);

#endif  // PESTLE_IR_GRAPH_H_
