// SPDX-License-Identifier: Apache-2.0
// What the files of rules share: making factors.
#ifndef PESTLE_IR_SHARD_RULE_INTERNAL_H_
#define PESTLE_IR_SHARD_RULE_INTERNAL_H_

#include "ir/shard_rule.h"

// A factor of |size|; -1: there is no room, or nothing to divide.
int pestle_rule_factor(pestle_shard_rule_t* r, int64_t size);
// Dim |dim| of the tensor holds |factor|, faster than those before; -1: nothing.
void pestle_rule_use(pestle_shard_rule_t* r, uint32_t tensor, int64_t dim,
                     int factor);
// A factor that is all of a dim.
int pestle_rule_new(pestle_shard_rule_t* r, uint32_t tensor, int64_t dim);
// The same of two dims, if they have one extent.
void pestle_rule_tie(pestle_shard_rule_t* r, uint32_t a, int64_t dim_a,
                     uint32_t b, int64_t dim_b);
// Dim |dim| of the tensors [first, end), of those that have its extent.
void pestle_rule_same(pestle_shard_rule_t* r, uint32_t first, uint32_t end,
                      int64_t dim);
const pestle_type_t* pestle_rule_type(const pestle_shard_rule_t* r,
                                      uint32_t tensor);

// --- Rules: shard_rule_composite.c, shard_rule_index.c ---

void pestle_shard_all_but_dimensions(pestle_shard_rule_t* r);
void pestle_shard_all_but_dimension(pestle_shard_rule_t* r);
void pestle_shard_norm(pestle_shard_rule_t* r);
void pestle_shard_matrices(pestle_shard_rule_t* r);
void pestle_shard_quantize(pestle_shard_rule_t* r);
void pestle_shard_batch_norm(pestle_shard_rule_t* r);
void pestle_shard_attention(pestle_shard_rule_t* r);
void pestle_shard_attention_grad(pestle_shard_rule_t* r);
void pestle_shard_block_dot(pestle_shard_rule_t* r, bool strict);
void pestle_shard_norm_grad(pestle_shard_rule_t* r, bool strict);
void pestle_shard_dynamic_slice(pestle_shard_rule_t* r);
void pestle_shard_dynamic_update_slice(pestle_shard_rule_t* r);
void pestle_shard_gather(pestle_shard_rule_t* r, bool strict);
void pestle_shard_scatter(pestle_shard_rule_t* r, bool strict);

#endif  // PESTLE_IR_SHARD_RULE_INTERNAL_H_
