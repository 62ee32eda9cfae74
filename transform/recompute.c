// SPDX-License-Identifier: Apache-2.0
#include "transform/recompute.h"

#include <string.h>

#include "base/mem.h"
#include "transform/checkpoint.h"
#include "transform/region.h"

// --- Ranges ---

void pestle_ranges_init(pestle_allocator_t allocator,
                        pestle_ranges_t* out_ranges) {
  pestle_arena_init(allocator, &out_ranges->arena);
  pestle_vec_init(&out_ranges->list, allocator);
  pestle_vec_init(&out_ranges->named, allocator);
}

void pestle_ranges_deinit(pestle_ranges_t* ranges) {
  pestle_vec_deinit(&ranges->list);
  pestle_vec_deinit(&ranges->named);
  pestle_arena_deinit(&ranges->arena);
}

static pestle_status_t add_range(pestle_ranges_t* s, pestle_node_t* node) {
  pestle_range_t range = {0};
  PESTLE_TRY(pestle_policy_read(&s->arena, node, &range.policy));
  pestle_formula_t f = pestle_formula_before(node);
  pv_t* first = pestle_f_scalar(&f, PESTLE_I1, 0);
  if (f.status) return f.status;
  if (node->next) f = pestle_formula_before(node->next);
  pv_t* end = pestle_f_scalar(&f, PESTLE_I1, 0);
  if (f.status) return f.status;
  range.first = first->node;
  range.end = end->node;
  return pestle_vec_push(&s->list, range) ? NULL : PESTLE_OOM();
}

// What takes the place of the result of |node|, which has a name, is what one of those
// reads that read it.
static pestle_status_t expand_name(pestle_ranges_t* s, pestle_node_t* node,
                                   pestle_node_t** out_next) {
  const pestle_use_t* use = node->results[0].uses;
  const char* name = pestle_arena_strdup(&s->arena, pestle_remat_name(node));
  if (!name) return PESTLE_OOM();
  const pestle_node_t* user = use ? use->user : NULL;
  uint32_t place = user ? (uint32_t)(use - user->operands) : 0;
  PESTLE_TRY(pestle_transform_expand(s->list.allocator, node, out_next));
  pestle_named_t named = {user ? pestle_node_operand(user, place)->node : NULL,
                          name};
  if (!named.node) return NULL;
  return pestle_vec_push(&s->named, named) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_ranges_expand(pestle_ranges_t* ranges,
                                     pestle_node_t* node,
                                     pestle_node_t** out_next) {
  if (pestle_is_checkpoint(node)) PESTLE_TRY(add_range(ranges, node));
  if (pestle_remat_name(node)) return expand_name(ranges, node, out_next);
  return pestle_transform_expand(ranges->list.allocator, node, out_next);
}

// --- What is read ---

static bool is_linear_node(const pestle_residuals_t* r,
                           const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (pestle_is_linear(&r->w->x, &node->results[i])) return true;
  }
  return false;
}

// The op of the function's body that |user| is, or lies in.
static const pestle_node_t* outermost(const pestle_residuals_t* r,
                                      const pestle_node_t* user) {
  while (user->block != r->w->body)
    user = user->block->region->owner;
  return user;
}

// Whether |value| costs nothing to make again.
static bool is_source(const pv_t* value) {
  return value->node && pestle_op_info((pestle_op_t)value->node->op)->fuse ==
                            PESTLE_FUSE_SOURCE;
}

static bool is_residual(const pestle_residuals_t* r, const pv_t* value) {
  return pestle_map_find_u64(&r->places, (uintptr_t)value) != NULL;
}

static pestle_status_t keep(pestle_residuals_t* r, pv_t* value) {
  if (is_residual(r, value)) return NULL;
  if (!pestle_map_set_u64(&r->places, (uintptr_t)value, r->values.size) ||
      !pestle_vec_push(&r->values, value)) {
    return PESTLE_OOM();
  }
  return NULL;
}

// The scratch of ops is their place in |range|, one above, while this one is asked.
static void number(const pestle_range_t* range, bool is_asked) {
  for (size_t i = 0; i < range->op_count; ++i) {
    pestle_node_t* n = (pestle_node_t*)(uintptr_t)range->ops[i].node;
    n->scratch = is_asked ? i + 1 : 0;
  }
}

// The op of |range| that computes |value|, or NULL.
static pestle_remat_op_t* op_of(const pestle_range_t* range,
                                const pv_t* value) {
  const pestle_node_t* n = value->node;
  if (!range || !n || !n->scratch || n->scratch > range->op_count) return NULL;
  pestle_remat_op_t* op = &range->ops[n->scratch - 1];
  return op->node == n ? op : NULL;
}

typedef pestle_status_t (*read_fn_t)(void* user, pestle_residuals_t* r,
                                     pv_t* value);

static pestle_status_t each_operand(pestle_residuals_t* r,
                                    const pestle_node_t* node, read_fn_t read,
                                    void* user) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pv_t* value = pestle_node_operand(node, i);
    const pestle_block_t* home =
        value->node ? value->node->block : value->block;
    if (home != r->w->body || pestle_is_linear(&r->w->x, value)) continue;
    PESTLE_TRY(read(user, r, value));
  }
  return NULL;
}

// Calls |read| for each operand of |node|, and of what lies in it, that is a value of the
// function and not linear.
static pestle_status_t each_read(pestle_residuals_t* r,
                                 const pestle_node_t* node, read_fn_t read,
                                 void* user) {
  PESTLE_TRY(each_operand(r, node, read, user));
  for (uint32_t k = 0; k < node->region_count; ++k) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(node->regions[k], n)))
      PESTLE_TRY(each_operand(r, n, read, user));
  }
  return NULL;
}

// |range|, in which |value| is read by a linear op; NULL: in none.
static pestle_status_t read_value(void* range, pestle_residuals_t* r,
                                  pv_t* value) {
  pestle_remat_op_t* op = op_of(range, value);
  if (is_source(value)) return NULL;
  if (!op) return keep(r, value);
  op->is_read = true;
  return NULL;
}

static const char* name_in(const pestle_ranges_t* s,
                           const pestle_node_t* node) {
  for (size_t i = 0; i < s->named.size; ++i) {
    if (s->named.data[i].node == node) return s->named.data[i].name;
  }
  return NULL;
}

static pestle_status_t make_ops(pestle_residuals_t* r, pestle_range_t* range) {
  size_t count = 0;
  for (const pestle_node_t* n = range->first; n != range->end; n = n->next)
    ++count;
  range->ops =
      pestle_arena_alloc_zero(&r->ranges->arena, count * sizeof(*range->ops),
                              _Alignof(pestle_remat_op_t));
  return range->ops ? NULL : PESTLE_OOM();
}

static void clear(pestle_node_t* node) {
  node->scratch = 0;
  for (uint32_t k = 0; k < node->region_count; ++k) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(node->regions[k], n)))
      ((pestle_node_t*)(uintptr_t)n)->scratch = 0;
  }
}

// Ranges that lie in others stay without ops.
static pestle_status_t read_all(pestle_residuals_t* r) {
  pestle_ranges_t* s = r->ranges;
  pestle_range_t* open = NULL;
  size_t next = 0;
  for (pestle_node_t* n = r->w->body->first; n; n = n->next) {
    clear(n);
    if (open && n == open->end) open = NULL;
    if (next < s->list.size && n == s->list.data[next].first) {
      if (!open) {
        open = &s->list.data[next];
        PESTLE_TRY(make_ops(r, open));
      }
      ++next;
    }
    if (is_linear_node(r, n)) {
      PESTLE_TRY(each_read(r, n, read_value, open));
    } else if (open && n->result_count && !is_source(&n->results[0])) {
      open->ops[open->op_count++] =
          (pestle_remat_op_t){.node = n, .name = name_in(s, n)};
      n->scratch = open->op_count;
    }
  }
  return NULL;
}

// --- What is kept ---

static bool is_again(const pestle_range_t* range, const pestle_node_t* node) {
  return node->scratch && node->scratch <= range->op_count &&
         range->ops[node->scratch - 1].node == node &&
         range->ops[node->scratch - 1].again;
}

// Whether a linear op, or one that is computed again, reads |value|.
static bool is_read(const pestle_residuals_t* r, const pestle_range_t* range,
                    const pv_t* value, bool by_linear) {
  for (const pestle_use_t* use = value->uses; use; use = use->next) {
    const pestle_node_t* user = outermost(r, use->user);
    if (is_linear_node(r, user) || (!by_linear && is_again(range, user)))
      return true;
  }
  return false;
}

static pestle_status_t need_value(void* range, pestle_residuals_t* r,
                                  pv_t* value) {
  pestle_remat_op_t* op = op_of(range, value);
  if (is_source(value)) return NULL;
  if (!op) return keep(r, value);
  op->is_needed = true;
  return NULL;
}

static pestle_status_t choose(pestle_residuals_t* r, pestle_range_t* range) {
  number(range, true);
  pestle_remat_choose(&range->policy, range->ops, range->op_count);
  for (size_t i = 0; i < range->op_count; ++i)
    range->ops[i].is_needed = range->ops[i].is_read;
  for (size_t i = range->op_count; i-- > 0;) {
    pestle_remat_op_t* op = &range->ops[i];
    pestle_node_t* n = (pestle_node_t*)(uintptr_t)op->node;
    bool is_kept = op->is_kept;
    for (uint32_t k = 0; k < n->result_count; ++k)
      is_kept |= is_residual(r, &n->results[k]);
    if (!op->is_needed) continue;
    if (!is_kept) {
      op->again = n;
      PESTLE_TRY(each_read(r, n, need_value, range));
    }
    for (uint32_t k = 0; is_kept && k < n->result_count; ++k) {
      if (!is_read(r, range, &n->results[k], false)) continue;
      PESTLE_TRY(keep(r, &n->results[k]));
    }
  }
  number(range, false);
  return NULL;
}

pestle_status_t pestle_residuals_find(pestle_residuals_t* r) {
  PESTLE_TRY(read_all(r));
  for (size_t i = 0; i < r->ranges->list.size; ++i)
    number(&r->ranges->list.data[i], false);
  // What a range reads of one before it is kept there.
  for (size_t i = r->ranges->list.size; i-- > 0;)
    PESTLE_TRY(choose(r, &r->ranges->list.data[i]));
  return NULL;
}

// --- What takes the place of values ---

static void replace_in_linear(const pestle_residuals_t* r, pv_t* value,
                              pv_t* by) {
  for (pestle_use_t *use = value->uses, *next; use; use = next) {
    next = use->next;
    if (!is_linear_node(r, outermost(r, use->user))) continue;
    pestle_node_set_operand(use->user, (size_t)(use - use->user->operands), by);
  }
}

typedef struct again_t {
  pestle_range_t* range;
  pv_t* const* arguments;
  pestle_values_t inputs;    // residuals that are read
  pestle_values_t operands;  // the arguments in their places
  pestle_values_t results;
  pestle_map_t seen;
  pestle_copier_t copier;
} again_t;

static pestle_status_t add_input(void* user, pestle_residuals_t* r,
                                 pv_t* value) {
  again_t* a = user;
  bool added;
  uint64_t key = (uintptr_t)value;
  const pestle_map_value_t* place = pestle_map_find_u64(&r->places, key);
  if (!place) return NULL;  // computed again too, or a constant
  if (!pestle_map_put(&a->seen, &key, sizeof(key), &added)) return PESTLE_OOM();
  if (!added) return NULL;
  return pestle_vec_push(&a->inputs, value) &&
                 pestle_vec_push(&a->operands, a->arguments[place->u64])
             ? NULL
             : PESTLE_OOM();
}

static pestle_status_t list(again_t* a, pestle_residuals_t* r) {
  for (size_t i = 0; i < a->range->op_count; ++i) {
    pestle_node_t* n = a->range->ops[i].again;
    if (!n) continue;
    PESTLE_TRY(each_read(r, n, add_input, a));
    for (uint32_t k = 0; k < n->result_count; ++k) {
      if (!is_read(r, a->range, &n->results[k], true)) continue;
      if (!pestle_vec_push(&a->results, &n->results[k])) return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t copy_source(void* user, pestle_residuals_t* r,
                                   pv_t* value) {
  again_t* a = user;
  pv_t* made;
  (void)r;
  return pestle_region_map(&a->copier, value, &made);
}

// The body: a barrier first, so that what was computed before is not found to be the same.
static pestle_status_t fill(again_t* a, pestle_residuals_t* r) {
  const pestle_builder_t* b = &a->copier.builder;
  pestle_formula_t f = pestle_formula_make(*b);
  size_t n = a->inputs.size;
  pv_t** values = pestle_work_array(r->w, n);
  if (!values) return PESTLE_OOM();
  for (size_t i = 0; i < n; ++i) {
    PESTLE_TRY(pestle_block_add_argument(
        b->module, b->block, a->operands.data[i]->type, &values[i]));
  }
  if (n) {
    pestle_node_t* barrier = pestle_f_node(
        &f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                                  .operands = values,
                                  .operand_count = n});
    if (f.status) return f.status;
    for (size_t i = 0; i < n; ++i) {
      PESTLE_TRY(pestle_copier_set(&a->copier, a->inputs.data[i],
                                   pestle_node_result(barrier, (uint32_t)i)));
    }
  }
  for (size_t i = 0; i < a->range->op_count; ++i) {
    const pestle_node_t* again = a->range->ops[i].again;
    pestle_node_t* copy;
    if (!again) continue;
    PESTLE_TRY(each_read(r, again, copy_source, a));
    PESTLE_TRY(pestle_copier_node(&a->copier, again, &copy));
  }
  pv_t** results = pestle_work_array(r->w, a->results.size);
  if (!results) return PESTLE_OOM();
  for (size_t i = 0; i < a->results.size; ++i)
    results[i] = pestle_copier_get(&a->copier, a->results.data[i]);
  return pestle_region_return(b->module, b->block, results, a->results.size);
}

static pestle_status_t make_op(again_t* a, pestle_residuals_t* r,
                               pestle_region_t* region) {
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = PESTLE_CHECKPOINT},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR, .as.str = "{}"}};
  size_t count = a->results.size;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&r->w->arena, pestle_type_t, count + 1);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *a->results.data[i]->type;
  pestle_builder_t b = pestle_builder_before(a->range->first);
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = a->operands.data,
                             .operand_count = a->operands.size,
                             .attrs = attrs,
                             .attr_count = 2,
                             .regions = &region,
                             .region_count = 1,
                             .types = types,
                             .type_count = count};
  pestle_node_t* made;
  PESTLE_TRY(pestle_node_create(&b, &spec, &made));
  for (size_t i = 0; i < count; ++i) {
    replace_in_linear(r, a->results.data[i],
                      pestle_node_result(made, (uint32_t)i));
  }
  return NULL;
}

static pestle_status_t build(again_t* a, pestle_residuals_t* r) {
  pestle_builder_t b = {.module = r->w->module};
  pestle_region_t* region;
  PESTLE_TRY(list(a, r));
  if (!a->results.size) return NULL;
  PESTLE_TRY(pestle_region_create(b.module, NULL, 0, &region, &b.block));
  pestle_copier_init(r->places.allocator, b, &a->copier);
  pestle_status_t status = fill(a, r);
  pestle_copier_deinit(&a->copier);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  return make_op(a, r, region);
}

static pestle_status_t compute_again(pestle_residuals_t* r,
                                     pestle_range_t* range,
                                     pv_t* const* arguments) {
  pestle_allocator_t allocator = r->places.allocator;
  again_t a = {.range = range, .arguments = arguments};
  number(range, true);
  pestle_vec_init(&a.inputs, allocator);
  pestle_vec_init(&a.operands, allocator);
  pestle_vec_init(&a.results, allocator);
  pestle_map_init(allocator, &a.seen);
  pestle_status_t status = build(&a, r);
  pestle_vec_deinit(&a.inputs);
  pestle_vec_deinit(&a.operands);
  pestle_vec_deinit(&a.results);
  pestle_map_deinit(&a.seen);
  return status;
}

pestle_status_t pestle_residuals_replace(pestle_residuals_t* r,
                                         pv_t* const* arguments) {
  for (size_t i = 0; i < r->values.size; ++i)
    replace_in_linear(r, r->values.data[i], arguments[i]);
  for (size_t i = 0; i < r->ranges->list.size; ++i)
    PESTLE_TRY(compute_again(r, &r->ranges->list.data[i], arguments));
  return NULL;
}
