// SPDX-License-Identifier: Apache-2.0
// Sorting: positions are sorted along, once, and tangents are taken from where each
// element came; the transposed of that is gather's.
#include <string.h>

#include "ir/copy.h"
#include "transform/transform.h"

static int64_t axis_of(const pestle_node_t* node) {
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  return axis < 0 ? axis + pestle_node_operand(node, 0)->type->rank : axis;
}

// A copy of the comparator that takes two positions more.
static pestle_region_t* comparator(pestle_jvp_t* j, const pestle_node_t* node) {
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  pv_t* argument;
  pestle_type_t type = pestle_type_make(PESTLE_I32, 0, NULL);
  if (j->f.status) return NULL;
  pestle_copier_init(j->allocator, j->f.builder, &copier);
  pestle_status_t status =
      pestle_copier_region(&copier, node->regions[0], &region);
  pestle_copier_deinit(&copier);
  for (int i = 0; i < 2 && !status; ++i) {
    status = pestle_block_add_argument(j->function->module, region->block,
                                       &type, &argument);
  }
  if (status) return (void)pestle_f_fail(&j->f, status), NULL;
  return region;
}

void pestle_jvp_sort(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  pestle_formula_t* f = &j->f;
  size_t count = node->operand_count;
  int64_t axis = axis_of(node);
  pv_t** operands = pestle_value_array(f, &j->arena, count + 1);
  if (!operands) return;
  for (size_t i = 0; i < count; ++i)
    operands[i] = pestle_node_operand(node, i);
  pestle_type_t type = *operands[0]->type;
  type.dtype = PESTLE_I32;
  operands[count] = pestle_f_iota(f, &type, axis);
  pestle_region_t* region = comparator(j, node);
  pestle_node_t* made =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_SORT,
                                             .operands = operands,
                                             .operand_count = count + 1,
                                             .attrs = node->attrs,
                                             .attr_count = node->attr_count,
                                             .regions = &region,
                                             .region_count = 1});
  for (size_t i = 0; made && i < count; ++i) {
    pestle_value_replace_all_uses(pestle_node_result(node, i),
                                  pestle_node_result(made, i));
  }
  pv_t* positions = made ? pestle_node_result(made, count) : NULL;
  for (size_t i = 0; made && i < count; ++i) {
    if (t[i]) {
      pestle_tangent_set(j, pestle_node_result(made, i),
                         pestle_take_along(f, t[i], positions, axis));
    }
  }
  if (made) pestle_node_erase(node);
  (void)out;
}

void pestle_jvp_sort_first(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  pv_t* positions = pestle_node_result(node, node->operand_count);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (t[i]) out[i] = pestle_take_along(&j->f, t[i], positions, axis_of(node));
  }
}
