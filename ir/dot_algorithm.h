// SPDX-License-Identifier: Apache-2.0
// The attribute `algorithm` of dot_general: StableHLO's #stablehlo.dot_algorithm, kept as
// the text between its brackets.
//
//   lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
//   lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
//   allow_imprecise_accumulation = false
//
// Operands are rounded to the precision types before they are multiplied; a product of
// several primitive operations takes them as sums of so many parts. That a result has more
// digits than was asked for is allowed.
#ifndef PESTLE_IR_DOT_ALGORITHM_H_
#define PESTLE_IR_DOT_ALGORITHM_H_

#include "ir/generic.h"
#include "ir/graph.h"

typedef struct pestle_dot_algorithm_t {
  pestle_dtype_t side[2];  // f32 for tf32
  bool is_tf32[2];
  pestle_dtype_t sum;
  int64_t products;
} pestle_dot_algorithm_t;

// The text of what a reader found, in |arena|.
PESTLE_NODISCARD pestle_status_t pestle_dot_algorithm_text(
    pestle_arena_t* arena, const pestle_generic_value_t* dict,
    const char** out_text);

// Reads the text; one that asks for what is not known is refused.
PESTLE_NODISCARD pestle_status_t
pestle_dot_algorithm_read(const char* text, pestle_dot_algorithm_t* out);

// That of |dot|; false: it has none.
bool pestle_dot_algorithm_of(const pestle_node_t* dot,
                             pestle_dot_algorithm_t* out);

// Whether |dot| is a product of f32 whose operands count with 10 bits of their mantissas.
bool pestle_dot_is_tf32(const pestle_node_t* dot);

// Whether it is one of the two 8-bit floats that matrix units multiply with each other.
static inline bool pestle_dot_is_f8(pestle_dtype_t dtype) {
  return dtype == PESTLE_F8E4M3FN || dtype == PESTLE_F8E5M2;
}

#endif  // PESTLE_IR_DOT_ALGORITHM_H_
