// SPDX-License-Identifier: Apache-2.0
// Calls of the functions that every context has under names of Pestle's own
// (runtime/own_calls.c): linear algebra of complex matrices, and what the rows lack.
// They take complex numbers as pairs of reals, which is what these make of them.
#ifndef PESTLE_IR_BUILT_OWN_H_
#define PESTLE_IR_BUILT_OWN_H_

#include "ir/formula.h"

// Calls |name| on |in|, floats, which become complex, or complex numbers; |flags| is
// its configuration. |types| are those of the results as they are wanted: complex, or
// real parts of what is complex there (|parts| has 'z' for each of those), or numbers
// that it gives as they are ('r').
void pestle_own_linalg(pestle_formula_t* f, const char* name, const char* flags,
                       pestle_value_t* const* in, size_t in_count,
                       const pestle_type_t* types, const char* parts,
                       pestle_value_t** out);
// Whether |op| on |operands| is a row that has no kernel for complex numbers, and the
// call that is one.
bool pestle_own_takes(pestle_op_t op, pestle_value_t* const* operands,
                      size_t count);
PESTLE_NODISCARD pestle_status_t
pestle_own_row(pestle_op_t op, const pestle_attr_t* attrs, size_t attr_count,
               pestle_builder_t* b, pestle_value_t* const* operands,
               size_t count, pestle_node_t** out_node);

#endif  // PESTLE_IR_BUILT_OWN_H_
