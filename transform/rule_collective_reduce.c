// SPDX-License-Identifier: Apache-2.0
// all_reduce and reduce_scatter by other regions than a sum, in derivatives: what the members
// of a group hold is gathered, and combined where it is needed, by ops that have derivatives.
//
//   all_reduce(x)      reduce(all_gather(x))
//   reduce_scatter(x)  the member's own part of that
//
// Maxima and minima share the tangent among those that are it, products give each factor the
// product of the others.
#include <math.h>

#include "ir/collective.h"
#include "transform/collective.h"

// How many members each group has, or 0: a failure, or they differ, which is refused.
static int64_t count_members(pestle_jvp_t* j, const pestle_node_t* node) {
  pestle_groups_t groups;
  pestle_f_fail(&j->f, pestle_collective_groups(node, &j->arena, &groups));
  if (j->f.status) return 0;
  for (uint32_t r = 0; r < groups.count; ++r) {
    if (pestle_groups_members(&groups, r) == groups.size) continue;
    pestle_jvp_refuse(j, node,
                      "has a derivative where its region adds, or where all "
                      "groups are of one size; make them so");
    return 0;
  }
  return groups.size;
}

// The attributes of |node| that say who takes part, and room for one more.
static size_t who(const pestle_node_t* node, pestle_attr_t* out) {
  size_t count = 0;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (node->attrs[i].name != PESTLE_ATTR_scatter_dimension)
      out[count++] = node->attrs[i];
  }
  return count;
}

// [members, ..]: what each of them has for |a|.
static pv_t* gather(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                    int64_t members) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS + 1];
  size_t count = who(node, attrs);
  int64_t dims[PESTLE_MAX_RANK + 1] = {1};
  int32_t rank = a->type->rank + 1;
  if (rank > PESTLE_MAX_RANK) {
    return pestle_f_fail(
        f, pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "its derivative would have more than %d "
                             "dimensions; reshape its operand",
                             PESTLE_MAX_RANK));
  }
  for (int32_t d = 1; d < rank; ++d)
    dims[d] = a->type->dims[d - 1];
  a = pestle_f_reshape(f, a, rank, dims);
  dims[0] = members;
  pestle_type_t type =
      pestle_type_make(a ? a->type->dtype : PESTLE_F32, rank, dims);
  attrs[count++] = PESTLE_SET_I64(all_gather_dim, 0);
  return pestle_collective_make(f, PESTLE_OP_ALL_GATHER, a, &type, attrs,
                                count);
}

// |rows|, [members, ..], combined in the order of the members.
static pv_t* combine(pestle_jvp_t* j, const pestle_node_t* node, pv_t* rows,
                     int64_t members) {
  pestle_formula_t* f = &j->f;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  if (op != PESTLE_OP_COUNT && rows) {
    int64_t first = 0;
    pv_t* identity = pestle_f_identity(f, op, rows->type->dtype);
    return pestle_f_reduce_from(f, op, rows, (pestle_i64s_t){&first, 1},
                                identity);
  }
  pv_t* values[2] = {pestle_f_part(f, rows, 0, 0), NULL};
  for (int64_t i = 1; i < members && !f->status; ++i) {
    values[1] = pestle_f_part(f, rows, 0, i);
    pestle_transform_combine(j, node, values);
  }
  return values[0];
}

// The part of |whole| along |axis| that is this process': which one says a scattered sum of
// what all have.
static pv_t* own_part(pestle_formula_t* f, const pestle_node_t* node,
                      pv_t* whole, int64_t axis, int64_t members) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS + 1];
  size_t count = who(node, attrs);
  pestle_type_t type = pestle_type_make(PESTLE_I64, 1, &members);
  int64_t one = 1;
  pestle_type_t part = pestle_type_make(PESTLE_I64, 1, &one);
  attrs[count++] = PESTLE_SET_I64(scatter_dimension, 0);
  pv_t* place = pestle_f_iota(f, &type, 0);
  place = pestle_collective_make(f, PESTLE_OP_REDUCE_SCATTER, place, &part,
                                 attrs, count);
  if (!place || !whole) return NULL;
  place = pestle_f_divide(f, place, pestle_f_splat(f, place, (double)members));
  place = pestle_f_reshape(f, place, 0, NULL);
  // [.., members, part, ..], of which one is taken.
  int64_t dims[PESTLE_MAX_RANK + 1];
  int32_t rank = whole->type->rank;
  if (rank == PESTLE_MAX_RANK) return NULL;  // gather() has said it
  for (int32_t d = 0; d < rank; ++d)
    dims[d + (d > axis)] = whole->type->dims[d];
  dims[axis + 1] = whole->type->dims[axis] / members;
  dims[axis] = members;
  whole = pestle_f_reshape(f, whole, rank + 1, dims);
  return pestle_f_element_at(f, whole, (int32_t)axis, place);
}

void pestle_jvp_collective(pestle_jvp_t* j, pestle_node_t* node, pv_t** out) {
  pestle_formula_t* f = &j->f;
  bool known =
      pestle_block_reduce_op(pestle_node_body(node, 0)) != PESTLE_OP_COUNT;
  if (!known && node->result_count > 1) {
    pestle_jvp_refuse(j, node,
                      "combines several values by another region than one op; "
                      "give each an op of its own");
    return;
  }
  int64_t members = count_members(j, node);
  pv_t** made = pestle_value_array(f, &j->arena, node->result_count);
  for (uint32_t i = 0; made && members && i < node->result_count; ++i) {
    if (!pestle_is_smooth(node->results[i].type->dtype)) continue;
    made[i] = gather(f, node, pestle_node_operand(node, i), members);
    made[i] = combine(j, node, made[i], members);
    if (node->op == PESTLE_OP_REDUCE_SCATTER) {
      made[i] = own_part(f, node, made[i],
                         PESTLE_NODE_I64(node, scatter_dimension), members);
    }
  }
  pestle_jvp_behind(j, node);
  for (uint32_t i = 0; made && i < node->result_count; ++i)
    out[i] = made[i] ? pestle_tangent(j, made[i]) : NULL;
}
