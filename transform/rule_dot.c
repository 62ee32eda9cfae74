// SPDX-License-Identifier: Apache-2.0
// The cotangent of one side of a product is a product of the result's cotangent with
// the other side, over the axes that only the other side has.
#include "base/fault.h"
#include "transform/transform.h"

// The axes of one side by what they do; those that are free in order.
typedef struct side_t {
  pestle_i64s_t batch, contract;
  int64_t free[PESTLE_MAX_RANK];
  size_t free_count;
} side_t;

static void side_init(const pestle_node_t* node, size_t index, side_t* out) {
  *out = index ? (side_t){PESTLE_NODE_I64S(node, rhs_batching_dimensions),
                          PESTLE_NODE_I64S(node, rhs_contracting_dimensions),
                          {0},
                          0}
               : (side_t){PESTLE_NODE_I64S(node, lhs_batching_dimensions),
                          PESTLE_NODE_I64S(node, lhs_contracting_dimensions),
                          {0},
                          0};
  int32_t rank = pestle_node_operand(node, index)->type->rank;
  for (int64_t d = 0; d < rank; ++d) {
    if (pestle_i64s_has(out->batch, d) || pestle_i64s_has(out->contract, d)) {
      continue;
    }
    out->free[out->free_count++] = d;
  }
}

// Where the axes of |mine| stand in the product: batch axes; of lhs the free ones, then
// what was contracted, in the order that the axes have on the other side; of rhs these
// the other way round, so that the gradient of a matrix lies as the matrix does.
static void order_back(const side_t* mine, const side_t* other, bool is_rhs,
                       int64_t* out_order) {
  int64_t batches = (int64_t)mine->batch.count;
  int64_t free = batches + (is_rhs ? (int64_t)mine->contract.count : 0);
  int64_t summed = batches + (is_rhs ? 0 : (int64_t)mine->free_count);
  for (size_t i = 0; i < mine->batch.count; ++i)
    out_order[mine->batch.data[i]] = (int64_t)i;
  for (size_t i = 0; i < mine->free_count; ++i)
    out_order[mine->free[i]] = free + (int64_t)i;
  for (size_t i = 0; i < mine->contract.count; ++i) {
    int64_t before = 0;
    for (size_t k = 0; k < other->contract.count; ++k)
      before += PESTLE_FAULT(unordered_contraction)
                    ? k < i
                    : other->contract.data[k] < other->contract.data[i];
    out_order[mine->contract.data[i]] = summed + before;
  }
}

static pv_t* side_cotangent(pestle_formula_t* f, const pestle_node_t* node,
                            size_t index, pv_t* ct) {
  side_t sides[2];
  side_init(node, 0, &sides[0]);
  side_init(node, 1, &sides[1]);
  const side_t *mine = &sides[index], *other = &sides[1 - index];
  const pestle_type_t* type = pestle_node_operand(node, index)->type;
  int64_t batch[PESTLE_MAX_RANK], summed[PESTLE_MAX_RANK];
  int64_t order[PESTLE_MAX_RANK];
  size_t batches = mine->batch.count;
  // The result has the batch axes, the free ones of lhs, the free ones of rhs.
  size_t first = batches + (index ? 0 : sides[0].free_count);
  for (size_t i = 0; i < batches; ++i)
    batch[i] = (int64_t)i;
  for (size_t i = 0; i < other->free_count; ++i)
    summed[i] = (int64_t)(first + i);
  order_back(mine, other, index == 1, order);
  pestle_type_t product = {.dtype = ct->type->dtype, .rank = type->rank};
  for (int32_t d = 0; d < type->rank; ++d)
    product.dims[order[d]] = type->dims[d];
  pestle_i64s_t lists[2][2] = {
      {{batch, batches}, {summed, other->free_count}},
      {other->batch, {other->free, other->free_count}}};
  const pestle_i64s_t *l = lists[index], *r = lists[1 - index];
  const char* algorithm = PESTLE_NODE_STR(node, algorithm);
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, l[0].data, l[0].count),
      PESTLE_SET_I64S(rhs_batching_dimensions, r[0].data, r[0].count),
      PESTLE_SET_I64S(lhs_contracting_dimensions, l[1].data, l[1].count),
      PESTLE_SET_I64S(rhs_contracting_dimensions, r[1].data, r[1].count),
      PESTLE_SET_STR(algorithm, algorithm)};
  pv_t* b = pestle_f_convert(f, pestle_node_operand(node, 1 - index),
                             ct->type->dtype);
  pv_t* operands[2] = {index ? b : ct, index ? ct : b};
  pv_t* a =
      pestle_f_make(f, PESTLE_OP_DOT_GENERAL, operands, 2, attrs, 5, &product);
  a = pestle_f_transpose(f, a, order);
  return pestle_f_convert(f, a, type->dtype);
}

void pestle_transpose_dot_general(pestle_transposer_t* x, pestle_node_t* node,
                                  pv_t* const* ct) {
  size_t side = pestle_is_linear(x, pestle_node_operand(node, 0)) ? 0 : 1;
  pestle_cotangent_add(x, node, side, side_cotangent(&x->f, node, side, ct[0]));
}
