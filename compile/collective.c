// SPDX-License-Identifier: Apache-2.0
#include "compile/collective.h"

#include "base/hash.h"

static uint32_t reduction_of(const pestle_node_t* node) {
  if (!node->region_count) return PESTLE_REDUCTION_SUM;  // nobody asks
  bool flags = pestle_node_operand(node, 0)->type->dtype == PESTLE_I1;
  switch ((int)pestle_block_reduce_op(pestle_node_body(node, 0))) {
    case PESTLE_OP_MULTIPLY:
      return flags ? PESTLE_REDUCTION_AND : PESTLE_REDUCTION_PRODUCT;
    case PESTLE_OP_MINIMUM:
      return PESTLE_REDUCTION_MINIMUM;
    case PESTLE_OP_MAXIMUM:
      return PESTLE_REDUCTION_MAXIMUM;
    case PESTLE_OP_AND:
      return PESTLE_REDUCTION_AND;
    case PESTLE_OP_OR:
      return PESTLE_REDUCTION_OR;
    default:
      return flags ? PESTLE_REDUCTION_OR : PESTLE_REDUCTION_SUM;
  }
}

static uint32_t kind_of(const pestle_node_t* node) {
  switch ((int)node->op) {
    case PESTLE_OP_ALL_REDUCE:
      return PESTLE_PLAN_ALL_REDUCE;
    case PESTLE_OP_ALL_GATHER:
      return PESTLE_PLAN_ALL_GATHER;
    case PESTLE_OP_REDUCE_SCATTER:
      return PESTLE_PLAN_REDUCE_SCATTER;
    case PESTLE_OP_ALL_TO_ALL:
      return PESTLE_PLAN_ALL_TO_ALL;
    case PESTLE_OP_COLLECTIVE_PERMUTE:
      return PESTLE_PLAN_PERMUTE;
    case PESTLE_OP_COLLECTIVE_BROADCAST:
      return PESTLE_PLAN_BROADCAST;
    case PESTLE_OP_PARTITION_ID:
      return PESTLE_PLAN_PARTITION_ID;
    default:
      return PESTLE_PLAN_REPLICA_ID;
  }
}

static uint64_t hash_of(const pestle_plan_collective_t* c,
                        const pestle_groups_t* groups,
                        const pestle_plan_binding_t* b, uint32_t count,
                        uint32_t step) {
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, c, sizeof(*c));
  pestle_hasher_update(&hasher, &step, sizeof(step));
  pestle_hasher_update(
      &hasher, groups->ranks ? (const void*)groups->ranks : (const void*)"",
      (size_t)groups->count * groups->size * sizeof(int32_t));
  for (uint32_t i = 0; i < count; ++i)
    pestle_hasher_update(&hasher, &b[i].size, sizeof(b[i].size));
  return pestle_hasher_finish(&hasher).low;
}

void pestle_plan_add_collective(pestle_plan_build_t* plan,
                                const pestle_node_t* node,
                                const pestle_groups_t* groups,
                                const pestle_plan_binding_t* bindings,
                                uint32_t count) {
  pestle_plan_collective_t c = {
      .kind = kind_of(node),
      .reduction = reduction_of(node),
      .dtype = (uint32_t)(node->operand_count
                              ? pestle_node_operand(node, 0)->type->dtype
                              : node->results[0].type->dtype),
      .tensor_count = node->result_count,
      .group_count = groups->count,
      .group_size = groups->size};
  c.hash = hash_of(&c, groups, bindings, count, (uint32_t)plan->steps.size);
  c.first_group = (uint32_t)plan->groups.size;
  size_t members = (size_t)groups->count * groups->size;
  if (!pestle_vec_append(&plan->groups, groups->ranks, members) ||
      !pestle_vec_push(&plan->collectives, c)) {
    plan->failed = true;
  }
}
