// SPDX-License-Identifier: Apache-2.0
// Ops that no row stands for, because a few others mean the same: older forms,
// collectives of one device, what JAX calls by name (LAPACK, cuSOLVER, XLA). Each
// row of built.def is a name and a formula, which is written where the op is read.
//
//   %0:3 = custom_call @lapack_sgetrf_ffi(%a)  ->  pestle.lu, and what its info is
//
// Whoever reads an op asks generic.h, which asks here.
#ifndef PESTLE_IR_BUILT_H_
#define PESTLE_IR_BUILT_H_

#include "ir/formula.h"
#include "ir/generic.h"

// One op on its way.
typedef struct pestle_built_t {
  pestle_formula_t f;
  const char* name;
  const pestle_generic_entry_t* attrs;  // as they were written
  pestle_value_t* const* operands;
  size_t operand_count;
  pestle_region_t* const*
      regions;  // discarded afterwards, unless |regions_taken|
  bool regions_taken;
  size_t region_count;
  const pestle_type_t* types;  // those written for the results
  size_t type_count;
  pestle_arena_t* arena;
  pestle_generic_shapes_t* shapes;  // of |generic.h|, or NULL
  pestle_value_t** results;         // room for |type_count|
} pestle_built_t;

// Fills |b->results| in, or says what is wrong with the op.
typedef void (*pestle_built_fn_t)(pestle_built_t* b);

typedef struct pestle_built_row_t {
  const char* name;
  pestle_built_fn_t build;
  int8_t operands, results;  // how many; -1: any number
  const char* attrs;         // the names that it knows, with blanks around each
  const char* keywords;      // of its short form, "dims=broadcast_dimensions "
} pestle_built_row_t;

// Ops; the functions that custom calls name. NULL when there is no such row.
const pestle_built_row_t* pestle_built_find(pestle_str_t name);
const pestle_built_row_t* pestle_built_find_call(pestle_str_t target);
// How the tensors of a custom call are said to lie (built_layout.c). Functions of
// LAPACK read and write memory column by column, whatever lies there: where that is not
// what the layouts say, they are given other matrices than the tensors are.
typedef struct pestle_built_lying_t {
  const struct pestle_generic_lying_t* results;  // NULL: as LAPACK has them
  size_t count;
  int32_t batch;  // axes that are not those of matrices
} pestle_built_lying_t;
// Checks the layouts, and makes |b|'s operands what its function reads.
PESTLE_NODISCARD pestle_status_t pestle_built_lie(
    pestle_generic_t* g, pestle_built_t* b, pestle_built_lying_t* out_lying);
// Makes |b|'s results what lies where the function has written.
PESTLE_NODISCARD pestle_status_t
pestle_built_lie_back(pestle_built_t* b, const pestle_built_lying_t* lying);

// The rows of ops in order; NULL behind the last.
const pestle_built_row_t* pestle_built_row(size_t index);

// --- For the formulas ---

#define PESTLE_BUILT(name, op, ...) void pestle_built_##op(pestle_built_t* b);
#define PESTLE_BUILT_CALL(target, op, ...) \
  void pestle_built_##op(pestle_built_t* b);
#include "ir/built.def"

// Ends |b| with a failure.
PESTLE_PRINTF(3, 4)
void pestle_built_fail(pestle_built_t* b, pestle_status_code_t code,
                       const char* format, ...);
// The value of an attribute, or NULL.
const pestle_generic_value_t* pestle_built_attr(const pestle_built_t* b,
                                                const char* key);
// The same of a custom call's configuration, a dictionary.
const pestle_generic_value_t* pestle_built_config(const pestle_built_t* b,
                                                  const char* key);
// Integers of an attribute; |*out| is empty when it is not there. False, and a
// failure, when it is no list of integers, or is not there though |required|.
bool pestle_built_i64s(pestle_built_t* b, const char* key, bool required,
                       pestle_i64s_t* out);
bool pestle_built_i64(pestle_built_t* b, const char* key, bool required,
                      int64_t* out);
// The integers of operand |index|, a constant. False, and a failure that says to
// whoever reads the module what it would have to know, where it is none.
bool pestle_built_integers(pestle_built_t* b, size_t index, pestle_i64s_t* out);
// Takes the operands that say the results' extents (indices_of_shape_operands) from a
// custom call, and gives its results those; another stays as it is.
void pestle_built_take_shapes(pestle_built_t* b);
// A region of |types| that calls the one function in called_computations with the
// first |reads| of its arguments and returns what that gives, |results| values. NULL,
// and a failure, where there is none.
pestle_region_t* pestle_built_region(pestle_built_t* b,
                                     const pestle_type_t* types, size_t count,
                                     size_t reads, size_t results);
// Operand |index|, and its type.
static inline pestle_value_t* pestle_built_operand(const pestle_built_t* b,
                                                   size_t index) {
  return b->operands[index];
}
static inline const pestle_type_t* pestle_built_type(const pestle_built_t* b,
                                                     size_t index) {
  return b->operands[index]->type;
}

#endif  // PESTLE_IR_BUILT_H_
