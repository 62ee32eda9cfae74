// SPDX-License-Identifier: Apache-2.0
// Batching of dot_general, reductions, windows and pad.
#include <string.h>

#include "transform/vmap.h"

// --- dot_general ---

// |list| with every dim one further; |more|: the new one in front.
static pestle_i64s_t further(pestle_i64s_t list, bool more, int64_t by,
                             int64_t* room) {
  size_t n = 0;
  if (more) room[n++] = 0;
  for (size_t i = 0; i < list.count; ++i)
    room[n++] = list.data[i] + by;
  return (pestle_i64s_t){room, n};
}

// Where the new axis is in the product of two sides of which one has it: behind the
// batch axes as lhs' first free one, or behind lhs' free ones.
static int64_t place(const pestle_node_t* node, bool is_lhs) {
  size_t batches = PESTLE_NODE_I64S(node, lhs_batching_dimensions).count;
  size_t summed = PESTLE_NODE_I64S(node, lhs_contracting_dimensions).count;
  size_t rank = (size_t)pestle_node_operand(node, 0)->type->rank;
  return (int64_t)(is_lhs ? batches : rank - summed);
}

void pestle_vmap_dot_general(pestle_vmap_t* v, pestle_node_t* node,
                             pv_t* const* operands, const bool* is_batched,
                             pv_t** out) {
  int64_t room[4][PESTLE_MAX_RANK + 1], order[PESTLE_MAX_RANK];
  bool both = is_batched[0] && is_batched[1];
  pestle_i64s_t lists[4] = {
      further(PESTLE_NODE_I64S(node, lhs_batching_dimensions), both,
              is_batched[0], room[0]),
      further(PESTLE_NODE_I64S(node, rhs_batching_dimensions), both,
              is_batched[1], room[1]),
      further(PESTLE_NODE_I64S(node, lhs_contracting_dimensions), false,
              is_batched[0], room[2]),
      further(PESTLE_NODE_I64S(node, rhs_contracting_dimensions), false,
              is_batched[1], room[3])};
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, lists[0].data, lists[0].count),
      PESTLE_SET_I64S(rhs_batching_dimensions, lists[1].data, lists[1].count),
      PESTLE_SET_I64S(lhs_contracting_dimensions, lists[2].data,
                      lists[2].count),
      PESTLE_SET_I64S(rhs_contracting_dimensions, lists[3].data,
                      lists[3].count),
      PESTLE_SET_STR(algorithm, PESTLE_NODE_STR(node, algorithm))};
  pestle_type_t type = pestle_vmap_type(v, node->results[0].type);
  int64_t at = both ? 0 : place(node, is_batched[0]);
  // order: the new axis first, the others as they are.
  order[0] = at;
  for (int64_t d = 1; d < type.rank; ++d)
    order[d] = d <= at ? d - 1 : d;
  pestle_type_t made = type;
  for (int64_t d = 0; d < type.rank; ++d)
    made.dims[order[d]] = type.dims[d];
  pv_t* product =
      pestle_f_make(&v->f, PESTLE_OP_DOT_GENERAL, operands, 2, attrs, 5, &made);
  out[0] = pestle_f_transpose(&v->f, product, order);
}

// --- reduce ---

// Initial values that are batched are combined with what begins without them.
static pv_t* reduce_batched_initial(pestle_vmap_t* v, const pestle_node_t* node,
                                    pv_t* const* operands,
                                    const bool* is_batched) {
  pestle_formula_t* f = &v->f;
  pestle_op_t op = node->operand_count == 2
                       ? pestle_block_reduce_op(pestle_node_body(node, 0))
                       : PESTLE_OP_COUNT;
  if (op == PESTLE_OP_COUNT) {
    pestle_vmap_refuse(v, node,
                       "has a batched initial value, which only a region of "
                       "one op that commutes may have; begin with a constant");
    return NULL;
  }
  pv_t* from[2] = {pestle_vmap_batch(v, operands[0], is_batched[0]), NULL};
  from[1] = pestle_f_identity(f, op, node->results[0].type->dtype);
  pestle_node_t* made = pestle_vmap_shifted(v, node, from);
  if (!made) return NULL;
  pv_t* all = pestle_f_broadcast_to(f, operands[1], made->results[0].type,
                                    (const int64_t[]){0});
  return pestle_f_binary(f, op, all, pestle_node_result(made, 0));
}

void pestle_vmap_reduce(pestle_vmap_t* v, pestle_node_t* node,
                        pv_t* const* operands, const bool* is_batched,
                        pv_t** out) {
  size_t count = node->operand_count / 2;
  pv_t** all = pestle_value_array(&v->f, &v->arena, node->operand_count);
  for (size_t i = count; i < node->operand_count; ++i) {
    if (!is_batched[i]) continue;
    out[0] = reduce_batched_initial(v, node, operands, is_batched);
    return;
  }
  for (size_t i = 0; all && i < node->operand_count; ++i)
    all[i] = i < count ? pestle_vmap_batch(v, operands[i], is_batched[i])
                       : operands[i];
  pestle_node_t* made = all ? pestle_vmap_shifted(v, node, all) : NULL;
  for (size_t r = 0; made && r < count; ++r)
    out[r] = pestle_node_result(made, r);
}

// Whether windows have places that hold the initial value.
static bool has_padding(const pestle_node_t* node) {
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  pestle_i64s_t apart = PESTLE_NODE_I64S(node, base_dilations);
  bool has = false;
  for (size_t i = 0; i < padding.count; ++i)
    has |= padding.data[i] != 0;
  for (size_t i = 0; i < apart.count; ++i)
    has |= apart.data[i] != 1;
  return has;
}

void pestle_vmap_reduce_window(pestle_vmap_t* v, pestle_node_t* node,
                               pv_t* const* operands, const bool* is_batched,
                               pv_t** out) {
  for (size_t i = node->operand_count / 2; i < node->operand_count; ++i) {
    if (!is_batched[i] || !has_padding(node)) continue;
    pestle_vmap_refuse(v, node,
                       "has a batched initial value beside padding, which is "
                       "of it; pad its operand with that first");
    return;
  }
  pestle_vmap_reduce(v, node, operands, is_batched, out);
}

void pestle_vmap_select_and_scatter(pestle_vmap_t* v, pestle_node_t* node,
                                    pv_t* const* operands,
                                    const bool* is_batched, pv_t** out) {
  pestle_formula_t* f = &v->f;
  bool is_sum =
      pestle_block_reduce_op(pestle_node_body(node, 1)) == PESTLE_OP_ADD;
  if (is_batched[2] && !is_sum) {
    pestle_vmap_refuse(v, node,
                       "has a batched initial value, which only a region that "
                       "adds may have; begin with a constant");
    return;
  }
  pv_t* all[3] = {pestle_vmap_batch(v, operands[0], is_batched[0]), NULL,
                  operands[2]};
  all[1] = pestle_vmap_batch(v, operands[1], is_batched[1]);
  if (is_batched[2]) {
    all[2] = pestle_f_scalar(f, node->results[0].type->dtype, 0);
  }
  pestle_node_t* made = pestle_vmap_shifted(v, node, all);
  out[0] = made ? pestle_node_result(made, 0) : NULL;
  if (!made || !is_batched[2]) return;
  pv_t* from = pestle_f_broadcast_to(f, operands[2], made->results[0].type,
                                     (const int64_t[]){0});
  out[0] = pestle_f_add(f, out[0], from);
}

// --- pad ---

void pestle_vmap_pad(pestle_vmap_t* v, pestle_node_t* node,
                     pv_t* const* operands, const bool* is_batched,
                     pv_t** out) {
  pestle_formula_t* f = &v->f;
  pv_t* parts[2] = {pestle_vmap_batch(v, operands[0], is_batched[0]),
                    operands[1]};
  if (!parts[0]) return;
  if (is_batched[1]) {
    parts[1] = pestle_f_scalar(f, parts[0]->type->dtype, 0);
  }
  pestle_node_t* made = pestle_vmap_shifted(v, node, parts);
  out[0] = made ? pestle_node_result(made, 0) : NULL;
  if (!is_batched[1] || !made) return;
  pestle_type_t type = *parts[0]->type;
  type.dtype = PESTLE_I1;
  parts[0] = pestle_f_number(f, &type, 0);
  parts[1] = pestle_f_scalar(f, PESTLE_I1, 1);
  pestle_node_t* flags = pestle_vmap_shifted(v, node, parts);
  pv_t* value = pestle_f_broadcast_to(f, operands[1], made->results[0].type,
                                      (const int64_t[]){0});
  out[0] = flags ? pestle_f_select(f, pestle_node_result(flags, 0), value,
                                   pestle_node_result(made, 0))
                 : NULL;
}
