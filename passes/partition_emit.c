// SPDX-License-Identifier: Apache-2.0
// The op that a process has in the place of one of the whole module: operands as its plan
// wants them, extents of its own. See partition.h.
#include <string.h>

#include "base/mem.h"
#include "passes/partition.h"

typedef pestle_shard_rule_t rule_t;
typedef partition_plan_t plan_t;

// --- Regions that come along ---

// What a region reads of tensors around it is read whole.
static pestle_status_t set_captures(partition_t* p, pestle_copier_t* copier,
                                    const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_region_t* region = node->regions[r];
    for (pestle_node_t* n = NULL; (n = pestle_region_next(region, n));) {
      for (uint32_t i = 0; i < n->operand_count; ++i) {
        const pestle_value_t* v = pestle_node_operand(n, i);
        const pestle_block_t* home = v->node ? v->node->block : v->block;
        bool inside = false;
        for (const pestle_region_t* at = home->region; at && !inside;
             at = at->owner ? at->owner->block->region : NULL) {
          inside = at == region;
        }
        if (inside) continue;
        pestle_value_t* whole;
        PESTLE_TRY(partition_obtain_whole(p, v, &whole));
        PESTLE_TRY(pestle_copier_set(copier, v, whole));
      }
    }
  }
  return NULL;
}

static pestle_status_t copy_regions(partition_t* p, const pestle_node_t* node,
                                    pestle_region_t*** out) {
  *out = PESTLE_ARENA_ARRAY(p->arena, pestle_region_t*, node->region_count + 1);
  if (!*out) return PESTLE_OOM();
  if (!node->region_count) return NULL;
  pestle_copier_t copier;
  pestle_copier_init(pestle_context_allocator(p->ctx->context),
                     *partition_builder(p), &copier);
  pestle_status_t status = set_captures(p, &copier, node);
  uint32_t made = 0;
  while (!status && made < node->region_count) {
    status = pestle_copier_region(&copier, node->regions[made], &(*out)[made]);
    made += !status;
  }
  pestle_copier_deinit(&copier);
  for (uint32_t i = 0; status && i < made; ++i)
    pestle_region_discard((*out)[i]);
  return status;
}

// --- Attributes that speak of extents ---

static bool has_factors(const rule_t* r, uint32_t tensor, size_t dim) {
  return r->tensors[tensor].dims[dim].count > 0;
}

// A list of extents, of which those of divided dims are the local ones.
static pestle_status_t local_list(partition_t* p, const rule_t* r,
                                  pestle_attr_t* attr,
                                  const pestle_type_t* local) {
  pestle_i64s_t list = attr->as.i64s;
  int64_t* data = PESTLE_ARENA_ARRAY(p->arena, int64_t, list.count + 1);
  if (!data) return PESTLE_OOM();
  for (size_t d = 0; d < list.count; ++d) {
    bool all = list.data[d] == pestle_node_operand(r->node, 0)->type->dims[d];
    data[d] = has_factors(r, 0, d) && all ? local->dims[d] : list.data[d];
  }
  attr->as.i64s.data = data;
  return NULL;
}

static pestle_status_t local_attrs(partition_t* p, const rule_t* r,
                                   const plan_t* plan,
                                   const pestle_type_t* first,
                                   const pestle_type_t* results,
                                   pestle_attr_t* attrs) {
  for (uint32_t i = 0; i < r->node->attr_count; ++i) {
    attrs[i] = r->node->attrs[i];
    bool sizes = r->node->op == PESTLE_OP_DYNAMIC_SLICE ||
                 r->node->op == PESTLE_OP_GATHER;
    if ((sizes && attrs[i].name == PESTLE_ATTR_slice_sizes) ||
        (r->node->op == PESTLE_OP_SLICE &&
         attrs[i].name == PESTLE_ATTR_limit_indices)) {
      PESTLE_TRY(local_list(p, r, &attrs[i], first));
    }
    bool groups = attrs[i].name == PESTLE_ATTR_feature_group_count ||
                  attrs[i].name == PESTLE_ATTR_batch_group_count;
    // Of the other kind there is one.
    if (groups && r->groups >= 0 && attrs[i].as.i64 > 1)
      attrs[i].as.i64 /=
          pestle_axis_order_parts(p->mesh, &plan->factors[r->groups]);
    if (r->node->op == PESTLE_OP_NORM_GRAD &&
        attrs[i].name == PESTLE_ATTR_blocks)
      attrs[i].as.i64 = results[1].dims[0];
  }
  return NULL;
}

// --- Rows that lie on several processes ---

static int64_t local_rows(const partition_t* p, const rule_t* r,
                          const plan_t* plan) {
  return r->sizes[r->rows] /
         pestle_axis_order_parts(p->mesh, &plan->factors[r->rows]);
}

static bool divides_rows(const rule_t* r, const plan_t* plan) {
  return r->special != PESTLE_RULE_PLAIN && plan->factors[r->rows].count;
}

static pestle_value_t* like_number(pestle_formula_t* f, pestle_value_t* a,
                                   double number) {
  return pestle_f_number(f, a->type, number);
}

// |indices| from this process' first row on.
static pestle_value_t* relative(partition_t* p, pestle_formula_t* f,
                                const rule_t* r, const plan_t* plan,
                                pestle_value_t* indices) {
  pestle_value_t* first =
      partition_number(p, &plan->factors[r->rows], local_rows(p, r, plan));
  if (!first) return NULL;
  first = pestle_f_convert(f, first, indices->type->dtype);
  first = pestle_f_broadcast_to(f, first, indices->type, NULL);
  return pestle_f_subtract(f, indices, first);
}

static pestle_value_t* clamp_to(pestle_formula_t* f, pestle_value_t* a,
                                int64_t most) {
  pestle_value_t* low = like_number(f, a, 0);
  pestle_value_t* high = like_number(f, a, (double)most);
  a = pestle_f_maximum(f, a, low);
  return pestle_f_minimum(f, a, high);
}

// Which rows of |at| lie here, as flags of |type|.
static pestle_value_t* rows_here(pestle_formula_t* f, const pestle_node_t* node,
                                 pestle_value_t* at, pestle_value_t* nearest,
                                 const pestle_type_t* type) {
  pestle_i64s_t offsets = PESTLE_NODE_I64S(node, offset_dims);
  int64_t axes[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  pestle_type_t flags = *type;
  flags.dtype = PESTLE_I1;
  int32_t n = 0;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (pestle_i64s_has(offsets, d)) continue;
    dims[n] = type->dims[d];
    axes[n++] = d;
  }
  pestle_value_t* same = pestle_f_eq(f, at, nearest);
  same = same ? pestle_f_reshape(f, same, n, dims) : NULL;
  return same ? pestle_f_broadcast_to(f, same, &flags, axes) : NULL;
}

// --- The op ---

static pestle_status_t create(partition_t* p, const pestle_node_t* node,
                              pestle_value_t* const* operands,
                              const pestle_attr_t* attrs,
                              const pestle_type_t* types, pestle_node_t** out) {
  pestle_region_t** regions;
  PESTLE_TRY(copy_regions(p, node, &regions));
  const pestle_op_info_t* info = pestle_pass_info(node);
  bool typed = info->rule != PESTLE_RULE_INFER;
  pestle_node_spec_t spec = {.op = (pestle_op_t)node->op,
                             .operands = operands,
                             .operand_count = node->operand_count,
                             .attrs = attrs,
                             .attr_count = node->attr_count,
                             .regions = regions,
                             .region_count = node->region_count,
                             .type = typed ? types : NULL,
                             .types = typed ? types : NULL,
                             .type_count = typed ? node->result_count : 0,
                             .share_elements = true};
  pestle_builder_t* b = partition_builder(p);
  b->loc = node->loc;
  pestle_status_t status = pestle_node_create(b, &spec, out);
  for (uint32_t i = 0; status && i < node->region_count; ++i)
    pestle_region_discard(regions[i]);
  PESTLE_TRY(status);
  for (uint32_t i = 0; i < node->result_count; ++i)
    (*out)->results[i].name = node->results[i].name;
  pestle_node_set_heir((pestle_node_t*)node, *out);
  return NULL;
}

typedef struct emit_t {
  partition_t* p;
  const rule_t* r;
  const plan_t* plan;
  pestle_value_t** operands;
  pestle_type_t* types;  // of the results
  pestle_attr_t* attrs;
} emit_t;

static pestle_status_t make_gather(emit_t* e, pestle_node_t** out) {
  partition_t* p = e->p;
  pestle_formula_t f = pestle_formula_make(*partition_builder(p));
  pestle_value_t* at =
      clamp_to(&f, e->operands[1], e->r->sizes[e->r->rows] - 1);
  at = at ? relative(p, &f, e->r, e->plan, at) : NULL;
  pestle_value_t* nearest =
      at ? clamp_to(&f, at, local_rows(p, e->r, e->plan) - 1) : NULL;
  PESTLE_TRY(f.status);
  if (!nearest) return PESTLE_OOM();
  e->operands[1] = nearest;
  PESTLE_TRY(create(p, e->r->node, e->operands, e->attrs, e->types, out));
  pestle_value_t* rows = &(*out)->results[0];
  pestle_value_t* here = rows_here(&f, e->r->node, at, nearest, rows->type);
  pestle_value_t* zero = pestle_f_number(&f, rows->type, 0);
  if (here && zero) rows = pestle_f_select(&f, here, rows, zero);
  PESTLE_TRY(f.status);
  *out = rows->node;
  return NULL;
}

static pestle_status_t make_op(emit_t* e, pestle_node_t** out) {
  if (divides_rows(e->r, e->plan)) {
    if (e->r->special == PESTLE_RULE_GATHER_ROWS) return make_gather(e, out);
    pestle_formula_t f = pestle_formula_make(*partition_builder(e->p));
    e->operands[1] = relative(e->p, &f, e->r, e->plan, e->operands[1]);
    PESTLE_TRY(f.status);
    if (!e->operands[1]) return PESTLE_OOM();
  }
  return create(e->p, e->r->node, e->operands, e->attrs, e->types, out);
}

static pestle_status_t check_types(const emit_t* e, const pestle_node_t* made) {
  for (uint32_t i = 0; i < e->r->node->result_count; ++i) {
    if (pestle_type_equal(made->results[i].type, &e->types[i])) continue;
    return pestle_node_error(
        e->r->node, PESTLE_STATUS_INTERNAL,
        "a part of it has another type than its rule says");
  }
  return NULL;
}

static pestle_status_t emit_planned(partition_t* p, const rule_t* r,
                                    const plan_t* plan) {
  const pestle_node_t* node = r->node;
  emit_t e = {.p = p,
              .r = r,
              .plan = plan,
              .operands = PESTLE_ARENA_ARRAY(p->arena, pestle_value_t*,
                                             node->operand_count + 1),
              .types = PESTLE_ARENA_ARRAY(p->arena, pestle_type_t,
                                          node->result_count + 1),
              .attrs = PESTLE_ARENA_ARRAY(p->arena, pestle_attr_t,
                                          node->attr_count + 1)};
  if (!e.operands || !e.types || !e.attrs) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_spread_t s = partition_planned(p, r, plan, i);
    PESTLE_TRY(
        partition_obtain(p, pestle_node_operand(node, i), &s, &e.operands[i]));
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_spread_t s = partition_planned(p, r, plan, r->operand_count + i);
    e.types[i] = pestle_spread_local(p->mesh, &s, node->results[i].type);
  }
  PESTLE_TRY(local_attrs(p, r, plan,
                         node->operand_count ? e.operands[0]->type : NULL,
                         e.types, e.attrs));
  pestle_node_t* made;
  PESTLE_TRY(make_op(&e, &made));
  PESTLE_TRY(check_types(&e, made));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_spread_t s = partition_planned(p, r, plan, r->operand_count + i);
    PESTLE_TRY(partition_add_form(p, &node->results[i], &s, &made->results[i]));
  }
  return NULL;
}

// --- The interface ---

pestle_status_t partition_emit_whole(partition_t* p,
                                     const pestle_node_t* node) {
  rule_t none = {.node = node,
                 .rows = -1,
                 .groups = -1,
                 .operand_count = node->operand_count,
                 .tensor_count = node->operand_count + node->result_count};
  plan_t plan = {.sums = 0};
  none.tensors = pestle_rule_tensors(p->arena, none.tensor_count);
  if (!none.tensors) return PESTLE_OOM();
  for (uint32_t i = 0; i < none.tensor_count; ++i) {
    none.tensors[i].is_result = i >= none.operand_count;
    none.tensors[i].value =
        i < none.operand_count
            ? pestle_node_operand(node, i)
            : (pestle_value_t*)&node->results[i - none.operand_count];
  }
  return emit_planned(p, &none, &plan);
}

// The rules are in the order of the nodes.
static const partition_rule_t* rule_of(partition_t* p,
                                       const pestle_node_t* node) {
  const partition_rule_t* r = p->last_rule ? p->last_rule : p->rules;
  while (r && r->rule.node != node)
    r = r->next;
  for (const partition_rule_t* q = p->rules; !r && q; q = q->next) {
    if (q->rule.node == node) r = q;
  }
  p->last_rule = (partition_rule_t*)r;
  return r;
}

pestle_status_t partition_emit(partition_t* p, const pestle_node_t* node) {
  p->asker = node;
  const partition_marker_t* marker = partition_marker_of(p, node);
  if (marker) return partition_emit_marker(p, node, marker);
  if (partition_has_bodies(node)) return partition_emit_control(p, node);
  if (partition_is_wish(node)) {
    const pestle_value_t* result = &node->results[0];
    pestle_spread_t s = partition_of(p, result)->spread;
    pestle_value_t* value;
    PESTLE_TRY(partition_obtain(p, pestle_node_operand(node, 0), &s, &value));
    return partition_add_form(p, result, &s, value);
  }
  const partition_rule_t* rule = rule_of(p, node);
  bool source = node->op == PESTLE_OP_CONSTANT || node->op == PESTLE_OP_IOTA;
  // Parts of constants and positions are made where they are wanted.
  if (!rule || !rule->rule.has_rule || source)
    return partition_emit_whole(p, node);
  plan_t plan;
  partition_choose(p, rule, partition_manual(p, node), &plan);
  return emit_planned(p, &rule->rule, &plan);
}

pestle_status_t partition_emit_block(partition_t* p,
                                     const pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    if (!pestle_pass_is_terminator(n)) PESTLE_TRY(partition_emit(p, n));
  }
  return NULL;
}
