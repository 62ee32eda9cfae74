// SPDX-License-Identifier: Apache-2.0
// Collectives, as functions of what all processes hold. Each is linear but for reductions
// other than sums (rule_collective_reduce.c), and the transposed of each is one:
//
//   all_reduce of sums    itself
//   all_gather            reduce_scatter of sums, and back
//   all_to_all            itself, with its dimensions changed
//   collective_permute    itself, from the receivers to the senders
//   collective_broadcast  one collective_permute a member, to the first of its group
//
// so that a process gets the cotangents that all processes have for what it gave. Of ops
// on several values each is moved by an op of its own.
#include "ir/collective.h"
#include "transform/collective.h"
#include "transform/transform.h"
#include "transform/vmap.h"

pv_t* pestle_collective_make(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                             const pestle_type_t* type,
                             const pestle_attr_t* attrs, size_t count) {
  bool combines = op == PESTLE_OP_ALL_REDUCE || op == PESTLE_OP_REDUCE_SCATTER;
  if (!a || f->status) return NULL;
  pestle_region_t* region =
      combines ? pestle_f_region(f, PESTLE_OP_ADD, a->type->dtype) : NULL;
  if (f->status) return NULL;
  pestle_rule_t rule = (pestle_rule_t)pestle_op_info(op)->rule;
  return pestle_f_emit(
      f, &(pestle_node_spec_t){.op = op,
                               .operands = &a,
                               .operand_count = 1,
                               .attrs = attrs,
                               .attr_count = count,
                               .regions = &region,
                               .region_count = combines,
                               .type = rule == PESTLE_RULE_TYPED ? type : NULL,
                               .types = rule == PESTLE_RULE_TYPES ? type : NULL,
                               .type_count = rule == PESTLE_RULE_TYPES,
                               .share_elements = true});
}

// |node|'s own op on |a|, as it is on operand |i|.
static pv_t* same(pestle_formula_t* f, const pestle_node_t* node, size_t i,
                  pv_t* a) {
  return pestle_collective_make(f, (pestle_op_t)node->op, a,
                                node->results[i].type, node->attrs,
                                node->attr_count);
}

// The attributes of |node|, with |to| for |from|.
static size_t renamed(const pestle_node_t* node, uint16_t from, uint16_t to,
                      pestle_attr_t* out) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    out[i] = node->attrs[i];
    if (out[i].name == from) {
      out[i].name = to;
    } else if (out[i].name == to) {
      out[i].name = from;
    }
  }
  return node->attr_count;
}

static void jvp_each(pestle_jvp_t* j, const pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (t[i]) out[i] = same(&j->f, node, i, t[i]);
  }
}

static void jvp_combined(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                         pv_t** out) {
  if (pestle_block_reduce_op(pestle_node_body(node, 0)) == PESTLE_OP_ADD) {
    jvp_each(j, node, t, out);
  } else {
    pestle_jvp_collective(j, node, out);
  }
}

// --- Rules ---

void pestle_jvp_all_reduce(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  jvp_combined(j, node, t, out);
}

void pestle_transpose_all_reduce(pestle_transposer_t* x, pestle_node_t* node,
                                 pv_t* const* ct) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (ct[i]) pestle_cotangent_add(x, node, i, same(&x->f, node, i, ct[i]));
  }
}

// The cotangent of each operand is |op| of its result's, with the attributes |from| and |to|
// as renamed() has them.
static void transpose_each(pestle_transposer_t* x, pestle_node_t* node,
                           pv_t* const* ct, pestle_op_t op, uint16_t from,
                           uint16_t to) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  size_t count = renamed(node, from, to, attrs);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_cotangent_add(x, node, i,
                         pestle_collective_make(
                             &x->f, op, ct[i],
                             pestle_node_operand(node, i)->type, attrs, count));
  }
}

void pestle_jvp_reduce_scatter(pestle_jvp_t* j, pestle_node_t* node,
                               pv_t* const* t, pv_t** out) {
  jvp_combined(j, node, t, out);
}

void pestle_transpose_reduce_scatter(pestle_transposer_t* x,
                                     pestle_node_t* node, pv_t* const* ct) {
  transpose_each(x, node, ct, PESTLE_OP_ALL_GATHER,
                 PESTLE_ATTR_scatter_dimension, PESTLE_ATTR_all_gather_dim);
}

void pestle_jvp_all_gather(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  jvp_each(j, node, t, out);
}

void pestle_transpose_all_gather(pestle_transposer_t* x, pestle_node_t* node,
                                 pv_t* const* ct) {
  transpose_each(x, node, ct, PESTLE_OP_REDUCE_SCATTER,
                 PESTLE_ATTR_all_gather_dim, PESTLE_ATTR_scatter_dimension);
}

void pestle_jvp_all_to_all(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  jvp_each(j, node, t, out);
}

void pestle_transpose_all_to_all(pestle_transposer_t* x, pestle_node_t* node,
                                 pv_t* const* ct) {
  transpose_each(x, node, ct, PESTLE_OP_ALL_TO_ALL, PESTLE_ATTR_split_dimension,
                 PESTLE_ATTR_concat_dimension);
}

void pestle_jvp_collective_permute(pestle_jvp_t* j, pestle_node_t* node,
                                   pv_t* const* t, pv_t** out) {
  jvp_each(j, node, t, out);
}

void pestle_transpose_collective_permute(pestle_transposer_t* x,
                                         pestle_node_t* node, pv_t* const* ct) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_elements_t pairs;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    attrs[i] = node->attrs[i];
    if (attrs[i].name != PESTLE_ATTR_source_target_pairs) continue;
    pairs = *attrs[i].as.elements;
    int64_t rows = pairs.type.dims[0];
    const int64_t* from = pairs.data;
    int64_t* to = pestle_f_memory(&x->f, pairs.size);
    // A splat sends from a process to itself, if it is anything.
    for (int64_t r = 0; to && !pairs.splat && r < rows; ++r) {
      to[2 * r] = from[2 * r + 1];
      to[2 * r + 1] = from[2 * r];
    }
    if (!to) return;
    if (!pairs.splat) pairs.data = to;
    attrs[i].as.elements = &pairs;
  }
  pestle_cotangent_add(
      x, node, 0,
      pestle_collective_make(&x->f, PESTLE_OP_COLLECTIVE_PERMUTE, ct[0],
                             pestle_node_operand(node, 0)->type, attrs,
                             node->attr_count));
}

void pestle_jvp_collective_broadcast(pestle_jvp_t* j, pestle_node_t* node,
                                     pv_t* const* t, pv_t** out) {
  jvp_each(j, node, t, out);
}

// Number |place| of group |row|, -1 where the group has no more.
static int64_t member(const pestle_elements_t* groups, int64_t row,
                      int64_t place) {
  if (!pestle_type_count(&groups->type)) return place;
  const int64_t* data = groups->data;
  return data[groups->splat ? 0 : row * groups->type.dims[1] + place];
}

// The cotangents of those that are number |place| of their group, at the first of it.
static pv_t* send_first(pestle_transposer_t* x, const pestle_node_t* node,
                        const pestle_elements_t* groups, int64_t rows,
                        int64_t place, pv_t* ct) {
  int64_t count = 0,
          *pairs = pestle_f_memory(&x->f, 2 * (size_t)rows * sizeof(*pairs));
  for (int64_t r = 0; pairs && r < rows; ++r) {
    int64_t from = member(groups, r, place);
    if (from < 0) continue;
    pairs[2 * count] = from;
    pairs[2 * count++ + 1] = member(groups, r, 0);
  }
  if (!pairs || !count) return NULL;
  pestle_elements_t e = {
      .type = pestle_type_make(PESTLE_I64, 2, (int64_t[]){count, 2}),
      .data = pairs,
      .size = 2 * (size_t)count * sizeof(*pairs)};
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_source_target_pairs, PESTLE_ATTR_KIND_ELEMENTS,
       .as.elements = &e},
      PESTLE_SET_I64(channel_handle, PESTLE_NODE_I64(node, channel_handle))};
  return pestle_collective_make(&x->f, PESTLE_OP_COLLECTIVE_PERMUTE, ct,
                                ct->type, attrs, 2);
}

void pestle_transpose_collective_broadcast(pestle_transposer_t* x,
                                           pestle_node_t* node,
                                           pv_t* const* ct) {
  const pestle_elements_t* groups =
      pestle_node_attr(node, PESTLE_ATTR_replica_groups)->as.elements;
  bool all = !pestle_type_count(&groups->type);
  pestle_world_shape_t world = pestle_module_world(node->block->region->module);
  bool of_partitions = PESTLE_NODE_I64(node, channel_handle) > 0;
  int64_t rows = all ? 1 : groups->type.dims[0];
  int64_t size = !all            ? groups->type.dims[1]
                 : of_partitions ? world.partitions
                                 : world.replicas;
  pv_t** terms = pestle_value_array(&x->f, &x->arena, (size_t)size);
  for (int64_t i = 0; terms && i < size; ++i)
    terms[i] = send_first(x, node, groups, rows, i, ct[0]);
  if (!terms) return;
  pestle_cotangent_add(x, node, 0, pestle_sum(&x->f, terms, (size_t)size));
}

// --- Batched: the dimensions one further ---

void pestle_vmap_all_gather(pestle_vmap_t* v, pestle_node_t* node,
                            pv_t* const* operands, const bool* is_batched,
                            pv_t** out) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_status_t status = pestle_vmap_attrs(v, node, attrs);
  pestle_f_fail(&v->f, status);
  for (uint32_t i = 0; i < node->operand_count && !status; ++i) {
    pestle_type_t type = pestle_vmap_type(v, node->results[i].type);
    out[i] =
        pestle_collective_make(&v->f, PESTLE_OP_ALL_GATHER,
                               pestle_vmap_batch(v, operands[i], is_batched[i]),
                               &type, attrs, node->attr_count);
  }
}
