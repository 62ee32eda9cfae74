// SPDX-License-Identifier: Apache-2.0
// What the files of attention over a cache share (whole_attention.c).
#ifndef PESTLE_PASSES_WHOLE_ATTENTION_H_
#define PESTLE_PASSES_WHOLE_ATTENTION_H_

#include "passes/util.h"

// Builds attention |node| over keys and values that end where |past| and |tokens| new ones
// do: |x| is q, keys, values and |past|, an i64; |*y| is the result.
PESTLE_NODISCARD pestle_status_t pestle_pass_build_cached(
    pestle_builder_t* at, const pestle_node_t* node, int64_t tokens,
    pestle_value_t** x, pestle_value_t** y);

// Where the keys and values of |node|, attention of one new token behind |past| ones, are
// caches to which the token's row was written: puts a group in the place of all of it.
PESTLE_NODISCARD pestle_status_t
pestle_pass_cached_step(const pestle_pass_context_t* ctx, pestle_node_t* node,
                        pestle_value_t* past, bool* out_done);

// Queries turned by halves: of [.., depth] x the first half times the cosine less the second
// times the sine, behind it the first times the sine and the second times the cosine.
typedef struct pestle_rotation_t {
  pestle_value_t* x;  // of as many elements as the queries; NULL: none
  pestle_value_t *cosine, *sine;  // of |angles| x depth / 2 elements each
  int64_t angles;                 // 1, or one for each sequence
} pestle_rotation_t;

// What turns the queries [batch, shared, rows, depth] |q| of one token, where nobody else
// reads what it makes and a half is a whole number of |lanes|.
pestle_rotation_t pestle_pass_read_rotation(const pestle_value_t* q,
                                            int64_t lanes);
// The same of |x| [batch, shared, rows, depth], cosine and sine [angles, depth / 2].
pestle_value_t* pestle_pass_rotate(pestle_formula_t* f, pestle_value_t* x,
                                   pestle_value_t* cosine,
                                   pestle_value_t* sine);

#endif  // PESTLE_PASSES_WHOLE_ATTENTION_H_
