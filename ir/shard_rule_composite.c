// SPDX-License-Identifier: Apache-2.0
// The rules of composites, and of kernels of rows or matrices.
#include "ir/composite.h"
#include "ir/shard_rule_internal.h"

typedef pestle_shard_rule_t rule_t;

static const pestle_type_t* operand_type(const rule_t* r, uint32_t i) {
  return pestle_node_operand(r->node, i)->type;
}

static uint32_t result_at(const rule_t* r, uint32_t i) {
  return r->operand_count + i;
}

// --- Rows and matrices ---

// All dims but |dims|, which every tensor of that rank has alike.
static void all_but(rule_t* r, pestle_i64s_t dims) {
  int32_t rank = operand_type(r, 0)->rank;
  for (int32_t d = 0; d < rank; ++d) {
    if (pestle_i64s_has(dims, d)) continue;
    int factor = pestle_rule_new(r, 0, d);
    for (uint32_t i = 1; i < r->tensor_count; ++i) {
      if (pestle_rule_type(r, i)->rank == rank)
        pestle_rule_use(r, i, d, factor);
    }
  }
}

// Scale and offset have the shape of |dimensions| alone.
void pestle_shard_norm(rule_t* r) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(r->node, dimensions);
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (!pestle_i64s_has(dims, d)) pestle_rule_tie(r, 0, d, result_at(r, 0), d);
  }
}

void pestle_shard_all_but_dimensions(rule_t* r) {
  all_but(r, PESTLE_NODE_I64S(r->node, dimensions));
}

void pestle_shard_all_but_dimension(rule_t* r) {
  int64_t axis = PESTLE_NODE_I64(r->node, dimension);
  if (axis < 0) axis += operand_type(r, 0)->rank;
  all_but(r, (pestle_i64s_t){&axis, 1});
}

// Batches of matrices.
void pestle_shard_matrices(rule_t* r) {
  int32_t rank = operand_type(r, 0)->rank;
  for (int32_t d = 0; d < rank - 2; ++d) {
    int factor = pestle_rule_new(r, 0, d);
    for (uint32_t i = 1; i < r->tensor_count; ++i) {
      const pestle_type_t* t = pestle_rule_type(r, i);
      if (d < t->rank && t->dims[d] == operand_type(r, 0)->dims[d])
        pestle_rule_use(r, i, d, factor);
    }
  }
}

// Numbers of a channel lie along |axis|, or there is one for all.
static void channels(rule_t* r, int64_t axis) {
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    int factor = pestle_rule_new(r, 0, d);
    pestle_rule_use(r, result_at(r, 0), d, factor);
    for (uint32_t i = 1; i < r->operand_count; ++i) {
      if (d == axis && operand_type(r, i)->rank == 1)
        pestle_rule_use(r, i, 0, factor);
    }
  }
}

void pestle_shard_quantize(rule_t* r) {
  channels(r, PESTLE_NODE_I64(r->node, axis));
}

void pestle_shard_batch_norm(rule_t* r) {
  channels(r, PESTLE_NODE_I64(r->node, feature_index));
}

// Whether queries, keys and values, and what is more up to |end|, have dim |d| alike.
static bool have_alike(const rule_t* r, uint32_t end, int32_t d) {
  for (uint32_t i = 1; i < end; ++i) {
    if (d >= operand_type(r, i)->rank ||
        operand_type(r, i)->dims[d] != operand_type(r, 0)->dims[d]) {
      return false;
    }
  }
  return true;
}

// Batches and rows of queries, and columns of values: of the keys all are needed.
void pestle_shard_attention(rule_t* r) {
  int32_t rank = operand_type(r, 0)->rank;
  uint32_t out = result_at(r, 0);
  for (int32_t d = 0; d < rank - 1; ++d) {
    bool rows = d == rank - 2;
    if (!rows && !have_alike(r, 3, d)) continue;
    int factor = pestle_rule_new(r, 0, d);
    pestle_rule_use(r, out, d, factor);
    for (uint32_t i = 1; i < r->operand_count; ++i) {
      bool has = i > 2 || !rows;  // bias and mask have rows of queries
      if (has && d < operand_type(r, i)->rank &&
          operand_type(r, i)->dims[d] == operand_type(r, 0)->dims[d])
        pestle_rule_use(r, i, d, factor);
    }
  }
  pestle_rule_tie(r, 2, rank - 1, out, rank - 1);
}

// Batches alone; not where the gradient of a bias is summed up over them.
void pestle_shard_attention_grad(rule_t* r) {
  if (PESTLE_NODE_BOOL(r->node, of_bias)) return;
  for (int32_t d = 0; d < operand_type(r, 0)->rank - 2; ++d) {
    if (have_alike(r, 5, d)) pestle_rule_same(r, 0, r->tensor_count, d);
  }
}

// --- Products with weights in blocks ---

// Rows of w, scales and zeros are columns of the result, and the blocks are summed up.
void pestle_shard_block_dot(rule_t* r, bool strict) {
  uint32_t out = result_at(r, 0);
  int32_t last = operand_type(r, 0)->rank - 1;
  int64_t blocks = operand_type(r, 2)->dims[1];
  for (int32_t d = 0; d < last; ++d)
    pestle_rule_tie(r, 0, d, out, d);
  int columns = pestle_rule_new(r, 1, 0);
  for (uint32_t i = 2; i < r->operand_count; ++i)
    pestle_rule_use(r, i, 0, columns);
  pestle_rule_use(r, out, last, columns);
  bool whole = operand_type(r, 0)->dims[last] ==
               blocks * PESTLE_NODE_I64(r->node, block);
  if (strict || !whole) return;
  int factor = pestle_rule_factor(r, blocks);
  pestle_rule_use(r, 0, last, factor);
  for (uint32_t i = 1; i < r->operand_count; ++i)
    pestle_rule_use(r, i, 1, factor);
  r->combine = PESTLE_COMBINE_ADD;
  if (factor >= 0) r->reduces[factor] = true;
}

// --- Gradients of norms ---

// A dim of rows as a factor of x, its cotangent and the first result; |blocks|: and of the
// blocks of sums, else it is summed up.
static void add_rows(rule_t* r, int32_t d, int64_t size, bool blocks) {
  int factor = pestle_rule_factor(r, size);
  if (factor < 0) return;
  pestle_rule_use(r, 0, d, factor);
  pestle_rule_use(r, 2, d, factor);
  pestle_rule_use(r, result_at(r, 0), d, factor);
  for (uint32_t i = 1; blocks && i < r->node->result_count; ++i)
    pestle_rule_use(r, result_at(r, i), 0, factor);
  r->reduces[factor] = !blocks;
}

// Blocks are runs of rows, over all dims of rows: while they end with a dim, that dim is of
// blocks; what lies within one is summed up.
void pestle_shard_norm_grad(rule_t* r, bool strict) {
  int64_t left = PESTLE_NODE_I64(r->node, blocks);
  int64_t end = PESTLE_NODE_I64(r->node, dimension);
  if (end < 0) end += operand_type(r, 0)->rank;
  int64_t rows = 1;
  r->combine = PESTLE_COMBINE_ADD;
  for (int32_t d = 0; d < end; ++d)
    rows *= operand_type(r, 0)->dims[d];
  // Else blocks are not alike.
  if (rows % left) return;
  for (int32_t d = 0; d < end; ++d) {
    int64_t size = operand_type(r, 0)->dims[d];
    int64_t taken = left > size ? size : left;
    if ((left > size && left % size) || (left <= size && size % left)) return;
    if (taken > 1) add_rows(r, d, taken, true);
    left /= taken;
    if (strict && left == 1) return;
    if (left == 1) add_rows(r, d, size / taken, false);
  }
}
