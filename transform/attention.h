// SPDX-License-Identifier: Apache-2.0
// attention for its rules: the operands in the dtype of the computation, and the weights
// made again.
#ifndef PESTLE_TRANSFORM_ATTENTION_H_
#define PESTLE_TRANSFORM_ATTENTION_H_

#include "transform/transform.h"

typedef struct pestle_attention_parts_t {
  pestle_formula_t* f;
  const pestle_node_t* node;  // whose attributes hold
  pv_t* const* operands;      // as they are given
  uint32_t count;
  pestle_dtype_t compute;
  pestle_type_t scores, result;
  pv_t *q, *k, *v, *mask;  // mask or NULL
} pestle_attention_parts_t;

// Of |operands|, |count| of them, in the place of those of |node|; they may be some of
// its rows.
void pestle_attention_parts(pestle_formula_t* f, const pestle_node_t* node,
                            pv_t* const* operands, uint32_t count,
                            pestle_attention_parts_t* out_parts);
// |value| in the dtype of the computation; NULL of NULL.
pv_t* pestle_attention_wide(const pestle_attention_parts_t* a, pv_t* value);
// softmax(scale q k^T + bias where the mask is true).
pv_t* pestle_attention_weights(pestle_attention_parts_t* a);

// Its name behind that of a pullback.
#define PESTLE_PULLED_ATTENTION "pestle.attention"
// Adds the cotangents of the |count| operands of an attention: |node|'s operands are
// these, its result, and a tangent for each of them; |ct| is the result's cotangent.
void pestle_attention_pull(pestle_transposer_t* x, const pestle_node_t* node,
                           uint32_t count, pv_t* ct);

#endif  // PESTLE_TRANSFORM_ATTENTION_H_
