// SPDX-License-Identifier: Apache-2.0
// Rules of ops that find elements by computed indices.
#include <string.h>

#include "ir/shard_rule_internal.h"

typedef pestle_shard_rule_t rule_t;

// Where a dim is taken whole its start is 0, whatever the index says.
void pestle_shard_dynamic_slice(rule_t* r) {
  for (int32_t d = 0; d < pestle_rule_type(r, 0)->rank; ++d)
    pestle_rule_tie(r, 0, d, r->operand_count, d);
  r->view = r->tensors[0].linear = true;
}

void pestle_shard_dynamic_update_slice(rule_t* r) {
  const pestle_type_t* update = pestle_rule_type(r, 1);
  for (int32_t d = 0; d < update->rank; ++d) {
    if (update->dims[d] != pestle_rule_type(r, 0)->dims[d]) continue;
    int factor = pestle_rule_new(r, 0, d);
    pestle_rule_use(r, 1, d, factor);
    pestle_rule_use(r, r->operand_count, d, factor);
  }
  r->view = true;
}

static bool wide_indices(const pestle_type_t* type) {
  return type->dtype == PESTLE_I32 || type->dtype == PESTLE_I64;
}

// The dim of |indices| that is its batch dim number |n|.
static int64_t batch_dim(int64_t vector_dim, int64_t n) {
  return n < vector_dim ? n : n + 1;
}

static int64_t find(pestle_i64s_t list, int64_t value) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] == value) return (int64_t)i;
  }
  return -1;
}

void pestle_shard_gather(rule_t* r, bool strict) {
  const pestle_node_t* n = r->node;
  const pestle_type_t* in = pestle_rule_type(r, 0);
  const pestle_type_t* out = pestle_rule_type(r, 2);
  pestle_i64s_t offsets = PESTLE_NODE_I64S(n, offset_dims);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(n, collapsed_slice_dims);
  pestle_i64s_t in_batch = PESTLE_NODE_I64S(n, operand_batching_dims);
  pestle_i64s_t at_batch = PESTLE_NODE_I64S(n, start_indices_batching_dims);
  pestle_i64s_t map = PESTLE_NODE_I64S(n, start_index_map);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(n, slice_sizes);
  int64_t vector_dim = PESTLE_NODE_I64(n, index_vector_dim);
  size_t next = 0;
  for (int32_t d = 0; d < in->rank; ++d) {
    if (pestle_i64s_has(collapsed, d) || pestle_i64s_has(in_batch, d)) continue;
    if (sizes.data[d] == in->dims[d] && next < offsets.count)
      pestle_rule_tie(r, 0, d, 2, offsets.data[next]);
    ++next;
  }
  int64_t batch = 0;
  for (int32_t d = 0; d < out->rank; ++d) {
    if (pestle_i64s_has(offsets, d)) continue;
    int64_t at = batch_dim(vector_dim, batch++);
    if (at >= pestle_rule_type(r, 1)->rank) return;
    int factor = pestle_rule_new(r, 1, at);
    pestle_rule_use(r, 2, d, factor);
    int64_t which = find(at_batch, at);
    if (which >= 0) pestle_rule_use(r, 0, in_batch.data[which], factor);
  }
  // Rows by one index each: a process has some, and 0 in place of the others'.
  int64_t rows = map.count == 1 ? map.data[0] : -1;
  bool floats = !pestle_dtype_is(in->dtype, PESTLE_KIND_INT);
  if (rows < 0 || !pestle_i64s_has(collapsed, rows) ||
      !wide_indices(pestle_rule_type(r, 1)) || (strict && floats) ||
      in->dtype == PESTLE_I1 ||
      pestle_dtype_is(in->dtype, PESTLE_KIND_COMPLEX)) {
    return;
  }
  r->rows = pestle_rule_new(r, 0, rows);
  if (r->rows < 0) return;
  r->reduces[r->rows] = true;
  r->combine = PESTLE_COMBINE_ADD;
  r->special = PESTLE_RULE_GATHER_ROWS;
}

void pestle_shard_scatter(rule_t* r, bool strict) {
  const pestle_node_t* n = r->node;
  if (n->result_count != 1) return;
  const pestle_type_t* in = pestle_rule_type(r, 0);
  const pestle_type_t* at_type = pestle_rule_type(r, 1);
  const pestle_type_t* updates = pestle_rule_type(r, 2);
  pestle_i64s_t windows = PESTLE_NODE_I64S(n, update_window_dims);
  pestle_i64s_t inserted = PESTLE_NODE_I64S(n, inserted_window_dims);
  pestle_i64s_t in_batch = PESTLE_NODE_I64S(n, input_batching_dims);
  pestle_i64s_t at_batch = PESTLE_NODE_I64S(n, scatter_indices_batching_dims);
  pestle_i64s_t map = PESTLE_NODE_I64S(n, scatter_dims_to_operand_dims);
  int64_t vector_dim = PESTLE_NODE_I64(n, index_vector_dim);
  size_t next = 0;
  for (int32_t d = 0; d < in->rank; ++d) {
    if (pestle_i64s_has(inserted, d) || pestle_i64s_has(in_batch, d)) continue;
    int64_t window = next < windows.count ? windows.data[next] : -1;
    ++next;
    if (window < 0 || updates->dims[window] != in->dims[d]) continue;
    int factor = pestle_rule_new(r, 0, d);
    pestle_rule_use(r, 2, window, factor);
    pestle_rule_use(r, 3, d, factor);
  }
  r->combine =
      pestle_combine_of(pestle_block_reduce_op(pestle_node_body(n, 0)));
  bool floats = !pestle_dtype_is(in->dtype, PESTLE_KIND_INT);
  bool rounds =
      r->combine == PESTLE_COMBINE_ADD || r->combine == PESTLE_COMBINE_MULTIPLY;
  bool divides = r->combine != PESTLE_COMBINE_COUNT && in->dtype != PESTLE_I1 &&
                 !(strict && rounds && floats);
  int64_t batch = 0;
  for (int32_t d = 0; d < updates->rank; ++d) {
    if (pestle_i64s_has(windows, d)) continue;
    int64_t at = batch_dim(vector_dim, batch++);
    if (at >= at_type->rank) return;
    int64_t which = find(at_batch, at);
    if (which < 0 && !divides) continue;
    int factor = pestle_rule_new(r, 1, at);
    pestle_rule_use(r, 2, d, factor);
    if (which >= 0) {
      pestle_rule_use(r, 0, in_batch.data[which], factor);
      pestle_rule_use(r, 3, in_batch.data[which], factor);
    } else if (factor >= 0) {
      r->reduces[factor] = true;
    }
  }
  if (divides) r->tensors[0].of_sums = true;
  // What falls outside of a process' rows is left out there.
  int64_t rows = map.count == 1 ? map.data[0] : -1;
  if (rows < 0 || !pestle_i64s_has(inserted, rows) || !wide_indices(at_type))
    return;
  r->rows = pestle_rule_new(r, 0, rows);
  pestle_rule_use(r, 3, rows, r->rows);
  if (r->rows >= 0) r->special = PESTLE_RULE_SCATTER_ROWS;
}
