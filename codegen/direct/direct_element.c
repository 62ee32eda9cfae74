// SPDX-License-Identifier: Apache-2.0
#include "codegen/direct/direct_element.h"

static pk_t number(pestle_direct_elements_t* e, int64_t value) {
  return pestle_kir_index(e->d->k, value);
}

// --- Places ---

static pk_t linear(pestle_direct_elements_t* e, const pestle_type_t* type,
                   const pk_t* at) {
  pk_t index = number(e, 0);
  for (int32_t i = 0; i < type->rank; ++i)
    index = pestle_kir_madi(e->d->k, index, type->dims[i],
                            type->dims[i] > 1 ? at[i] : number(e, 0));
  return index;
}

static pk_t behind_reshape(pestle_direct_elements_t* e,
                           const pestle_node_t* node, const pk_t* at) {
  pestle_kir_builder_t* k = e->d->k;
  const pestle_value_t* from = pestle_node_operand(node, 0);
  const pestle_type_t *type = from->type, *to = node->results[0].type;
  pk_t place[PESTLE_MAX_RANK];
  pk_t index = linear(e, to, at);
  int64_t behind = pestle_type_count(type);
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t all = behind;
    behind /= type->dims[i];
    place[i] = index;
    if (all < pestle_type_count(type))
      place[i] = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, index, all);
    if (behind > 1)
      place[i] = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, place[i], behind);
    if (type->dims[i] == 1) place[i] = number(e, 0);
  }
  return pestle_direct_element(e, from, place);
}

static pk_t behind_transpose(pestle_direct_elements_t* e,
                             const pestle_node_t* node, const pk_t* at) {
  pestle_i64s_t order = PESTLE_NODE_I64S(node, permutation);
  pk_t place[PESTLE_MAX_RANK];
  for (size_t i = 0; i < order.count; ++i)
    place[order.data[i]] = at[i];
  return pestle_direct_element(e, pestle_node_operand(node, 0), place);
}

static pk_t behind_broadcast(pestle_direct_elements_t* e,
                             const pestle_node_t* node, const pk_t* at) {
  const pestle_value_t* from = pestle_node_operand(node, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  pk_t place[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < from->type->rank; ++i)
    place[i] = from->type->dims[i] == 1 ? number(e, 0) : at[dims.data[i]];
  return pestle_direct_element(e, from, place);
}

static pk_t behind_slice(pestle_direct_elements_t* e, const pestle_node_t* node,
                         const pk_t* at) {
  pestle_i64s_t begin = PESTLE_NODE_I64S(node, start_indices),
                step = PESTLE_NODE_I64S(node, strides);
  const pestle_value_t* from = pestle_node_operand(node, 0);
  pk_t place[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < from->type->rank; ++i) {
    int64_t each = step.count ? step.data[i] : 1;
    place[i] = pestle_kir_madi(e->d->k, at[i], each, number(e, begin.data[i]));
  }
  return pestle_direct_element(e, from, place);
}

// Each operand's element, at its nearest place, of which one is taken.
static pk_t behind_concatenate(pestle_direct_elements_t* e,
                               const pestle_node_t* node, const pk_t* at) {
  int64_t dim = PESTLE_NODE_I64(node, dimension), begin = 0;
  pk_t place[PESTLE_MAX_RANK], found = PESTLE_KIR_NONE;
  for (int32_t i = 0; i < node->results[0].type->rank; ++i)
    place[i] = at[i];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* from = pestle_node_operand(node, i);
    int64_t count = from->type->dims[dim];
    pk_t within = pestle_kir_madi(e->d->k, at[dim], 1, number(e, -begin));
    place[dim] = pestle_direct_clamp(e->d, within, 0, count - 1);
    pk_t one = pestle_direct_element(e, from, place);
    pk_t is_behind =
        pestle_direct_op(e->d, PESTLE_OP_GE, at[dim], number(e, begin));
    found = i ? pestle_direct_select(e->d, is_behind, one, found) : one;
    begin += count;
  }
  return found;
}

// --- Values ---

static pk_t argument(pestle_direct_elements_t* e, const pestle_value_t* value,
                     const pk_t* at) {
  const pestle_block_t* body = pestle_node_body(e->d->node, 0);
  uint32_t i = 0;
  while (i < body->argument_count && body->arguments[i] != value)
    ++i;
  if (i == body->argument_count || i >= PESTLE_DIRECT_MOST_ARGUMENTS) {
    e->d->k->failed = true;
    return 0;
  }
  if (!e->has[i]) e->buffers[i] = pestle_direct_argument(e->d, value);
  e->has[i] = true;
  return pestle_direct_load(e->d, e->buffers[i], linear(e, value->type, at));
}

static pk_t elementwise(pestle_direct_elements_t* e, const pestle_node_t* node,
                        const pk_t* at) {
  pk_t x[2] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  for (uint32_t i = 0; i < node->operand_count && i < 2; ++i)
    x[i] = pestle_direct_element(e, pestle_node_operand(node, i), at);
  if (node->op == PESTLE_OP_CONVERT)
    return pestle_kir_cast(e->d->k, x[0], node->results[0].type->dtype);
  return pestle_direct_op(e->d, (pestle_op_t)node->op, x[0], x[1]);
}

pk_t pestle_direct_element(pestle_direct_elements_t* e,
                           const pestle_value_t* value, const pk_t* at) {
  const pestle_node_t* node = value->node;
  const pestle_elements_t* constant = pestle_value_constant(value);
  double f;
  int64_t i;
  if (e->d->k->failed) return 0;
  if (!node) return argument(e, value, at);
  if (constant) {
    pestle_elements_first(constant, &f, &i);
    return pestle_kir_const(e->d->k, constant->type.dtype, 1, f, i);
  }
  switch ((int)node->op) {
    case PESTLE_OP_RESHAPE:
      return behind_reshape(e, node, at);
    case PESTLE_OP_TRANSPOSE:
      return behind_transpose(e, node, at);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return behind_broadcast(e, node, at);
    case PESTLE_OP_SLICE:
      return behind_slice(e, node, at);
    case PESTLE_OP_CONCATENATE:
      return behind_concatenate(e, node, at);
  }
  return elementwise(e, node, at);
}
