// SPDX-License-Identifier: Apache-2.0
// Loops, branches, and computations that are for each process: see partition.h.
#include <string.h>

#include "base/mem.h"
#include "passes/partition.h"

// --- Regions ---

static pestle_status_t push(partition_t* p, pestle_block_t* block) {
  if (p->depth + 1 == PARTITION_DEPTH) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "loops and branches are nested more than %d deep",
                        PARTITION_DEPTH);
  }
  p->levels[++p->depth] =
      (partition_level_t){{.module = p->module, .block = block}, block};
  return NULL;
}

// Ends the block with |source|'s values as |spreads| say; NULL: whole.
static pestle_status_t finish(partition_t* p, const pestle_node_t* source,
                              const pestle_spread_t* spreads) {
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(p->arena, pestle_value_t*, source->operand_count + 1);
  if (!values) return PESTLE_OOM();
  pestle_spread_t whole = pestle_spread_whole();
  p->asker = source;
  for (uint32_t i = 0; i < source->operand_count; ++i) {
    PESTLE_TRY(partition_obtain(p, pestle_node_operand(source, i),
                                spreads ? &spreads[i] : &whole, &values[i]));
  }
  pestle_node_t* made;
  pestle_builder_t* b = partition_builder(p);
  b->loc = source->loc;
  return pestle_node_create(
      b,
      &(pestle_node_spec_t){.op = PESTLE_OP_RETURN,
                            .operands = values,
                            .operand_count = source->operand_count},
      &made);
}

static pestle_status_t fill(partition_t* p, const pestle_block_t* from,
                            pestle_block_t* to,
                            const pestle_spread_t* arguments,
                            const pestle_spread_t* results) {
  PESTLE_TRY(push(p, to));
  pestle_status_t status = NULL;
  for (uint32_t i = 0; i < from->argument_count && !status; ++i) {
    to->arguments[i]->name = from->arguments[i]->name;
    status = partition_add_form(p, from->arguments[i], &arguments[i],
                                to->arguments[i]);
  }
  if (!status) status = partition_emit_block(p, from);
  if (!status) status = finish(p, from->last, results);
  --p->depth;
  return status;
}

static pestle_status_t make_region(partition_t* p, const pestle_block_t* from,
                                   const pestle_spread_t* arguments,
                                   const pestle_spread_t* results,
                                   pestle_region_t** out) {
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(p->arena, pestle_type_t, from->argument_count + 1);
  if (!types) return PESTLE_OOM();
  for (uint32_t i = 0; i < from->argument_count; ++i)
    types[i] =
        pestle_spread_local(p->mesh, &arguments[i], from->arguments[i]->type);
  pestle_block_t* block;
  PESTLE_TRY(pestle_region_create(p->module, types, from->argument_count, out,
                                  &block));
  pestle_status_t status = fill(p, from, block, arguments, results);
  if (status) pestle_region_discard(*out);
  return status;
}

// --- While, if, case ---

// Along which axes the module wishes |value| to be summands.
static pestle_axes_t wished_sums(partition_t* p, const pestle_value_t* value) {
  if (!value->node || !partition_is_wish(value->node)) return 0;
  const partition_value_t* v = partition_of(p, value);
  pestle_axes_t sums = pestle_spread_sums(&v->spread);
  bool adds = v->spread.combine == PESTLE_COMBINE_ADD;
  return adds && !(sums & v->manual) ? sums : 0;
}

// What a loop carries stays summands where the module wishes for them before it and at
// the end of each turn.
static void carry_sums(partition_t* p, const pestle_node_t* loop,
                       pestle_spread_t* spreads) {
  const pestle_node_t* end = pestle_node_body(loop, 1)->last;
  for (uint32_t i = 0; i < loop->result_count; ++i) {
    pestle_axes_t sums = wished_sums(p, pestle_node_operand(loop, i));
    unsigned used = 0;
    if (!sums || sums != wished_sums(p, pestle_node_operand(end, i))) continue;
    for (int32_t d = 0; d < loop->results[i].type->rank; ++d) {
      pestle_axis_order_t order = pestle_spread_dim(&spreads[i], d);
      used |= pestle_axis_order_set(&order);
    }
    if (!(used & sums))
      pestle_spread_set_sums(&spreads[i], sums, PESTLE_COMBINE_ADD);
  }
}

// Results lie where they are wanted; summands pass through loops that are to carry them.
static pestle_spread_t* result_spreads(partition_t* p,
                                       const pestle_node_t* node) {
  pestle_spread_t* out =
      PESTLE_ARENA_ARRAY(p->arena, pestle_spread_t, node->result_count + 1);
  for (uint32_t i = 0; out && i < node->result_count; ++i) {
    out[i] = partition_of(p, &node->results[i])->spread;
    pestle_spread_set_sums(&out[i], 0, PESTLE_COMBINE_ADD);
  }
  if (out && node->op == PESTLE_OP_WHILE) carry_sums(p, node, out);
  return out;
}

static pestle_status_t emit_operands(partition_t* p, const pestle_node_t* node,
                                     const pestle_spread_t* spreads,
                                     pestle_value_t** out) {
  pestle_spread_t whole = pestle_spread_whole();
  bool loop = node->op == PESTLE_OP_WHILE;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(partition_obtain(p, pestle_node_operand(node, i),
                                loop ? &spreads[i] : &whole, &out[i]));
  }
  return NULL;
}

pestle_status_t partition_emit_control(partition_t* p,
                                       const pestle_node_t* node) {
  pestle_spread_t* spreads = result_spreads(p, node);
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(p->arena, pestle_value_t*, node->operand_count + 1);
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(p->arena, pestle_region_t*, node->region_count + 1);
  if (!spreads || !operands || !regions) return PESTLE_OOM();
  PESTLE_TRY(emit_operands(p, node, spreads, operands));
  bool loop = node->op == PESTLE_OP_WHILE;
  uint32_t made = 0;
  pestle_status_t status = NULL;
  for (; made < node->region_count && !status; made += !status) {
    status = make_region(p, pestle_node_body(node, made), spreads,
                         loop && !made ? NULL : spreads, &regions[made]);
  }
  pestle_node_t* out = NULL;
  pestle_builder_t* b = partition_builder(p);
  b->loc = node->loc;
  if (!status) {
    status = pestle_node_create(
        b,
        &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                              .operands = operands,
                              .operand_count = node->operand_count,
                              .attrs = node->attrs,
                              .attr_count = node->attr_count,
                              .regions = regions,
                              .region_count = node->region_count},
        &out);
  }
  if (status) {
    for (uint32_t i = 0; i < made; ++i)
      pestle_region_discard(regions[i]);
    return status;
  }
  pestle_node_set_heir((pestle_node_t*)node, out);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    out->results[i].name = node->results[i].name;
    PESTLE_TRY(partition_add_form(p, &node->results[i], &spreads[i],
                                  &out->results[i]));
  }
  return NULL;
}

// --- Computations for each process ---

// The manual axes of each dim, and behind them those of |rest|.
static pestle_spread_t join(const partition_marker_t* m,
                            const pestle_spread_t* rest, int32_t rank) {
  pestle_spread_t s = m->spread;
  for (int32_t d = 0; d < rank; ++d) {
    pestle_axis_order_t a = pestle_spread_dim(&m->spread, d);
    pestle_axis_order_t b = pestle_spread_dim(rest, d);
    for (int i = 0; i < b.count; ++i)
      a.axes[a.count++] = b.axes[i];
    pestle_spread_set_dim(&s, d, &a);
  }
  return s;
}

pestle_status_t partition_emit_marker(partition_t* p, const pestle_node_t* node,
                                      const partition_marker_t* m) {
  const pestle_value_t* in = pestle_node_operand(node, 0);
  const pestle_value_t* out = &node->results[0];
  // Inside of the computation; outside the manual axes come in front.
  const pestle_value_t* local = m->enters ? out : in;
  pestle_spread_t inner = partition_of(p, local)->spread;
  pestle_spread_set_sums(&inner, 0, PESTLE_COMBINE_ADD);
  for (int i = 0; i < PESTLE_MESH_AXES; ++i) {
    if (pestle_axes_has(m->manual, i)) inner.places[i] = PESTLE_AXIS_FREE;
  }
  pestle_spread_t outer = join(m, &inner, out->type->rank);
  pestle_value_t* value;
  PESTLE_TRY(partition_obtain(p, in, m->enters ? &outer : &inner, &value));
  return partition_add_form(p, out, m->enters ? &inner : &outer, value);
}
