// SPDX-License-Identifier: Apache-2.0
// attention for its derivatives: the operands in the dtype of the computation, and the
// weights made again. What attention is in core ops is in composite_attention.c.
#ifndef PESTLE_IR_ATTENTION_H_
#define PESTLE_IR_ATTENTION_H_

#include "ir/formula.h"

// Operands of an attention and of its gradient.
enum {
  PESTLE_ATTENTION_Q,
  PESTLE_ATTENTION_K,
  PESTLE_ATTENTION_V,
  PESTLE_ATTENTION_BIAS,
  PESTLE_ATTENTION_MASK,
  PESTLE_ATTENTION_VALUES,
};

typedef struct pestle_attention_parts_t {
  pestle_formula_t* f;
  const pestle_node_t* node;  // whose scale and masked hold
  // As they are given; bias and mask may be NULL.
  pestle_value_t* given[PESTLE_ATTENTION_VALUES];
  pestle_dtype_t compute;
  pestle_type_t scores, result;
  pestle_value_t *q, *k, *v, *mask;  // the mask in the shape of the scores
} pestle_attention_parts_t;

// The operands of |node|, an attention or a gradient of one, by their meaning; NULL: it
// has none.
void pestle_attention_values(
    const pestle_node_t* node,
    pestle_value_t* out_values[PESTLE_ATTENTION_VALUES]);
// Of |values| in the place of the operands of |node|; they may be some of its rows.
void pestle_attention_parts(
    pestle_formula_t* f, const pestle_node_t* node,
    pestle_value_t* const values[PESTLE_ATTENTION_VALUES],
    pestle_attention_parts_t* out_parts);
// |value| in the dtype of the computation; NULL of NULL.
pestle_value_t* pestle_attention_wide(const pestle_attention_parts_t* a,
                                      pestle_value_t* value);
// |value|, which may have 1 where it is repeated, in the shape of the scores.
pestle_value_t* pestle_attention_spread(const pestle_attention_parts_t* a,
                                        pestle_value_t* value);
// scale q k^T
pestle_value_t* pestle_attention_product(const pestle_attention_parts_t* a,
                                         pestle_value_t* q, pestle_value_t* k);
// scale q k^T + bias where the mask is true, and its softmax.
pestle_value_t* pestle_attention_scores(pestle_attention_parts_t* a);
pestle_value_t* pestle_attention_weights(pestle_attention_parts_t* a);
// |x|, of the scores, summed along each row and repeated along it.
pestle_value_t* pestle_attention_row_sums(const pestle_attention_parts_t* a,
                                          pestle_value_t* x);

// --- What a row sees ---

// Keys from row + low to row + high.
typedef struct pestle_attention_limits_t {
  int64_t low, high;
} pestle_attention_limits_t;

// The mask that says so, i1 [1, .., rows, keys] of |rank|.
pestle_value_t* pestle_attention_limited(pestle_formula_t* f, int32_t rank,
                                         int64_t rows, int64_t keys,
                                         pestle_attention_limits_t limits);
// Of a mask that pestle_attention_limited() made.
bool pestle_attention_limits_of(const pestle_value_t* mask,
                                pestle_attention_limits_t* out);

// --- A gradient that is one kernel ---

// What an attention_grad reads. Its bias and mask are transposed in front of it: these
// are as they were before, [.., columns, rows]; NULL: none.
typedef struct pestle_attention_grad_t {
  pestle_value_t *q, *k, *v, *y, *c, *bias, *mask;
} pestle_attention_grad_t;

pestle_attention_grad_t pestle_attention_grad_read(const pestle_node_t* node);

#endif  // PESTLE_IR_ATTENTION_H_
