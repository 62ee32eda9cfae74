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

#endif  // PESTLE_PASSES_WHOLE_ATTENTION_H_
