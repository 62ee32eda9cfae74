// SPDX-License-Identifier: Apache-2.0
// What the files share that make a module from a file's ops.
#ifndef PESTLE_FRONTEND_STABLEHLO_BUILD_H_
#define PESTLE_FRONTEND_STABLEHLO_BUILD_H_

#include "base/vec.h"
#include "frontend/stablehlo/decode.h"
#include "frontend/stablehlo/forms.h"
#include "frontend/stablehlo/operation.h"
#include "ir/again.h"

// What an op's name stands for.
typedef enum pestle_bytecode_role_e {
  PESTLE_BYTECODE_UNKNOWN,
  PESTLE_BYTECODE_MODULE,
  PESTLE_BYTECODE_FUNC,
  PESTLE_BYTECODE_ROW,      // an op of ops.def or scalar.def
  PESTLE_BYTECODE_CHLO,     // one by name that is not elementwise
  PESTLE_BYTECODE_FORWARD,  // its results are its operands
  PESTLE_BYTECODE_WISH,     // the same, and it says where they lie
  PESTLE_BYTECODE_INLINE,   // its results are those of its region
  PESTLE_BYTECODE_NOTHING,  // leaves no trace
  PESTLE_BYTECODE_JOIN,     // a tuple of its operands
  PESTLE_BYTECODE_ELEMENT_OF,
  PESTLE_BYTECODE_TOKENS,  // a token, of none or several
} pestle_bytecode_role_t;

typedef struct pestle_bytecode_name_t {
  pestle_bytecode_role_t role;
  pestle_op_t op;                          // of a ROW
  const struct pestle_built_row_t* built;  // of a ROW without one (ir/built.h)
  const pestle_bytecode_form_t* form;      // or NULL
  const char* chlo;  // of a ROW: the op by name that takes its place, or NULL
} pestle_bytecode_name_t;

// A value of the file: the tensors that it is made of, as many as its type has.
typedef struct pestle_bytecode_slot_t {
  pestle_value_t** leaves;
  const pestle_bytecode_type_t* type;  // NULL: not made yet
} pestle_bytecode_slot_t;

typedef struct pestle_bytecode_body_t {
  pestle_function_t* function;
  const pestle_bytecode_op_t* op;
} pestle_bytecode_body_t;

typedef struct pestle_bytecode_builder_t {
  const char* name;  // of the file, in messages
  pestle_bytecode_t file;
  pestle_bytecode_decoder_t decoder;
  pestle_allocator_t allocator;
  pestle_arena_t kept;                  // until the end
  pestle_arena_t scratch;               // of one op
  const pestle_bytecode_name_t* names;  // of the file's op names
  pestle_module_t* module;
  PESTLE_VEC(pestle_bytecode_slot_t) values;  // of the scopes that are open
  size_t scope;                               // the first one of the innermost
  PESTLE_VEC(pestle_bytecode_body_t) bodies;
  PESTLE_VEC(pestle_generic_composite_t) composites;
  const pestle_again_t* again;  // what the file is read again with, or NULL
  pestle_generic_shapes_t shapes;
  size_t op_count;  // made by calls
  int depth;        // of calls
  bool placed;      // a failure has its place already, that of an op further in
  // The op of each composite, for messages.
  PESTLE_VEC(const pestle_bytecode_op_t*) composite_ops;
} pestle_bytecode_builder_t;

// Where the ops of a block go.
typedef struct pestle_bytecode_place_t {
  pestle_builder_t builder;
  uint32_t value_end;                 // numbers of the region end here
  const pestle_function_t* function;  // whose body it is, or NULL
} pestle_bytecode_place_t;

// --- names.c ---

// Looks up what all names stand for; UNSUPPORTED lists the ops of |top| that have
// no meaning here, each with its version and its first place.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_resolve_names(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* top);

// --- build.c ---

// |status|, which it takes over, with the file, |op| and its location before it,
// unless another op's are.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_place_error(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_status_t status);
// All tensors of |op|'s operands, in |b->scratch|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_operands(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_value_t*** out_values, size_t* out_count);
// Operand |index| as it is.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_operand(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op, size_t index,
    const pestle_bytecode_slot_t** out_slot);
// Makes value |number| the tensors |leaves|, of which |type| has as many; their
// types must agree.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_bind(
    pestle_bytecode_builder_t* b, uint32_t number,
    const pestle_bytecode_type_t* type, pestle_value_t* const* leaves);
// All of |op|'s results.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_bind_results(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_value_t* const* leaves, size_t count);
// Makes room for the values of |region|, one of |op|'s, which stands at |place|.
typedef struct pestle_bytecode_scope_t {
  size_t scope, size;  // of the builder, before
} pestle_bytecode_scope_t;
PESTLE_NODISCARD pestle_status_t pestle_bytecode_scope_begin(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    const pestle_bytecode_region_t* region, uint32_t value_end,
    pestle_bytecode_scope_t* out_scope);
void pestle_bytecode_scope_end(pestle_bytecode_builder_t* b,
                               const pestle_bytecode_scope_t* scope);
// The tensors of |region|'s arguments, in |b->scratch|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_argument_types(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    pestle_type_t** out_types, size_t* out_count);
// The tensors of |op|'s results, likewise.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_result_types(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_type_t** out_types, size_t* out_count);
// Makes |region|'s arguments those of |block|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_bind_arguments(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    const pestle_block_t* block);
// A function's ops, whose arguments |bind| makes known.
typedef pestle_status_t (*pestle_bytecode_bind_t)(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    pestle_bytecode_place_t* place);
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_body(
    pestle_bytecode_builder_t* b, const pestle_bytecode_body_t* body,
    pestle_bytecode_bind_t bind);
// The ops of |region| at |place|, whose arguments are bound. With |out_returned|
// the return makes no node: its operands are given there, in |b->kept|.
typedef struct pestle_bytecode_returned_t {
  pestle_value_t** values;
  size_t count;
} pestle_bytecode_returned_t;
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_ops(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    pestle_bytecode_place_t* place, pestle_bytecode_returned_t* out_returned);

// --- tuple.c, sdy.c ---

// Ops that leave no node of their own, by their role.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_tuple(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op);
// What an op of the dialect sdy stands for: on one device shardings say nothing.
void pestle_bytecode_sdy_name(pestle_str_t op, pestle_bytecode_name_t* name);
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_wish(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_bytecode_place_t* place);
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_inline(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_bytecode_place_t* place);

// |region|, of the op |of|, in the place of |op|, whose operands are its arguments and
// whose results are what it returns.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_inline(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    const pestle_bytecode_op_t* of, const pestle_bytecode_region_t* region,
    pestle_bytecode_place_t* place);

// --- again.c ---

// The function that |op|, a call or a composite with the attributes |g|, stands for
// where extents are not known; NULL for any other op.
const char* pestle_bytecode_callee(const pestle_bytecode_builder_t* b,
                                   const pestle_generic_t* g);
// Accounts for an op: RESOURCE_EXHAUSTED past 2^20 of calls, nested ones too.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_count_op(pestle_bytecode_builder_t* b);
// Its body in the place of |op|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_inline_call(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    const char* callee, pestle_bytecode_place_t* place);
// Bodies, after the functions were declared, by |b->again|.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_again(pestle_bytecode_builder_t* b);
// Checks that all extents of |values| are known and evaluates small numbers.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_settle(
    pestle_bytecode_place_t* place, pestle_value_t** values, size_t count);

// --- quantised.c ---

// How the tensors of |op|'s operands and results are quantised, as many as there are;
// NULL where they are not. In |b->scratch|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_quants(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    size_t operand_count, size_t result_count,
    const pestle_quant_t*** out_operands, const pestle_quant_t*** out_results);

// --- chlo.c ---

void pestle_bytecode_chlo_name(const pestle_bytecode_form_t* form,
                               pestle_str_t op, pestle_bytecode_name_t* name);
// The node of a CHLO.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_build_chlo(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    pestle_bytecode_place_t* place, pestle_node_t** out_node);

// --- module.c ---

// Makes |b->module| with its functions from |top|, notes their bodies.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_declare(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* top);

#endif  // PESTLE_FRONTEND_STABLEHLO_BUILD_H_
