// SPDX-License-Identifier: Apache-2.0
// Shared by the lower_*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_LOWER_LOWER_INTERNAL_H_
#define PESTLE_CODEGEN_LOWER_LOWER_INTERNAL_H_

#include "codegen/lower/lower.h"

// What became of a value: a number known now, or a tensor.
typedef struct pestle_lowered_t {
  const pestle_expr_t* splat;
  uint32_t tensor;
} pestle_lowered_t;

typedef struct pestle_lower_t {
  pestle_nest_t* nest;
  const pestle_node_t* fusion;
  pestle_numerics_t numerics;
  pestle_lowered_t* values;  // by value->scratch
  uint32_t extra_inputs;
} pestle_lower_t;

typedef const pestle_affine_t* pestle_index_t[PESTLE_MAX_RANK];

// |value| at |index|.
const pestle_expr_t* pestle_lower_at(pestle_lower_t* lower,
                                     const pestle_value_t* value,
                                     const pestle_affine_t* const* index);
// The map axes of |stage| as index forms.
void pestle_lower_axes(pestle_lower_t* lower, uint32_t stage,
                       pestle_index_t out_index);
// Adds a map stage for result 0 of |node| and fills |out_index| with its axes.
uint32_t pestle_lower_map(pestle_lower_t* lower, const pestle_node_t* node,
                          pestle_index_t out_index);
// Notes where the axes of |stage|, |node|'s, end by what its readers want (lower_end.c).
void pestle_lower_ends(pestle_lower_t* lower, const pestle_node_t* node,
                       uint32_t stage);
// Sets the body and makes it the node's result.
void pestle_lower_set(pestle_lower_t* lower, const pestle_node_t* node,
                      uint32_t stage, const pestle_expr_t* body);
// The index into |from| of the row-major element that |index| is in |to|.
void pestle_lower_reshape(pestle_nest_t* nest, const pestle_type_t* to,
                          const pestle_affine_t* const* index,
                          const pestle_type_t* from, pestle_index_t out_index);
// The first element of a constant, which a splat or rank 0 has alone.
const pestle_expr_t* pestle_lower_first_element(pestle_nest_t* nest,
                                                const pestle_elements_t* e);
const pestle_expr_t* pestle_lower_and(pestle_nest_t* nest,
                                      const pestle_expr_t* a,
                                      const pestle_expr_t* b);
// The index of the element at |at| where |extent| elements stand |step| apart;
// |guard| asks in addition that one stands there.
const pestle_affine_t* pestle_lower_spread(pestle_nest_t* nest,
                                           const pestle_affine_t* at,
                                           int64_t step, int64_t extent,
                                           const pestle_expr_t** guard);

pestle_status_t pestle_lower_bitcast(pestle_lower_t* lower,
                                     const pestle_node_t* node);
pestle_status_t pestle_lower_view(pestle_lower_t* lower,
                                  const pestle_node_t* node);
pestle_status_t pestle_lower_gather(pestle_lower_t* lower,
                                    const pestle_node_t* node);
pestle_status_t pestle_lower_reduce(pestle_lower_t* lower,
                                    const pestle_node_t* node);
pestle_status_t pestle_lower_window(pestle_lower_t* lower,
                                    const pestle_node_t* node);
pestle_status_t pestle_lower_dot(pestle_lower_t* lower,
                                 const pestle_node_t* node);
pestle_status_t pestle_lower_convolution(pestle_lower_t* lower,
                                         const pestle_node_t* node);

// --- lower_phases.c ---
// Whether all spatial dims of |node| that have zeros between the input's elements can leave
// these out, and some do.
bool pestle_lower_has_phases(const pestle_node_t* node);
// From the result's position in spatial dim |i|, |*place|, and the number of a tap among those
// of its phase, |*tap|: which element of the input meets which tap. Either may be none.
void pestle_lower_phase(pestle_nest_t* nest, const pestle_node_t* node,
                        size_t i, const pestle_affine_t** place,
                        const pestle_affine_t** tap);

#endif  // PESTLE_CODEGEN_LOWER_LOWER_INTERNAL_H_
