// SPDX-License-Identifier: Apache-2.0
// What is computed again, and what has no derivative: two ops by name.
//
// "pestle.checkpoint" has a body. In reverse mode nothing of it is kept but its operands:
// its tangent is an op that is only transposed (rule_custom.c), and where that is done the
// body is written again, with its derivative,
//
//   %x', %ct' = optimization_barrier %x, %y.ct
//   %y' = body(%x'), and from %ct' back to %x.ct
//
// behind a barrier that waits for a cotangent: else the two computations would be merged,
// or the second one would be made before the first one's values are gone.
//
// Where its policy says so (remat.h), some values of the body are kept: the op gets them as
// further results, which take the place of what computed them again.
//
// "pestle.stop_gradient" gives its operands, without their tangents.
#include <string.h>

#include "base/mem.h"
#include "transform/checkpoint.h"
#include "transform/region.h"
#include "transform/remat.h"

bool pestle_is_checkpoint(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CUSTOM && node->region_count == 1 &&
         !strcmp(PESTLE_NODE_STR(node, name), PESTLE_CHECKPOINT);
}

bool pestle_is_stop(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CUSTOM &&
         !strcmp(PESTLE_NODE_STR(node, name), PESTLE_STOP_GRADIENT);
}

typedef struct again_t {
  pestle_transposer_t* x;
  pestle_block_t* body;
  size_t count, result_count;  // of the op
  pv_t** inputs;               // behind the barrier, then cotangents or NULL
  pv_t** tangents;             // of inputs, NULL where none is wanted
  pestle_node_t *first, *end;  // what is written again lies between
  pestle_policy_t policy;
  pestle_remat_op_t* ops;        // of the body, where something may be kept
  size_t op_count, value_count;  // |value_count|: results of ops
  pv_t** again;                  // what computes each of these again
  pestle_jvp_t jvp;
  pestle_transposer_t back;
} again_t;

// The operands and the cotangents, of which one at least is there.
static void wait(again_t* w, const pestle_node_t* node, pv_t* const* ct) {
  pestle_formula_t* f = &w->x->f;
  size_t n = 0, all = w->count + w->result_count;
  pv_t** some = pestle_value_array(f, &w->x->arena, all);
  if (!some || !w->inputs) return;
  for (size_t i = 0; i < w->count; ++i)
    some[n++] = pestle_node_operand(node, i);
  for (size_t r = 0; r < w->result_count; ++r) {
    if (ct[r]) some[n++] = ct[r];
  }
  pestle_node_t* barrier = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                               .operands = some,
                               .operand_count = n});
  n = 0;
  for (size_t i = 0; barrier && i < all; ++i) {
    bool is_there = i < w->count || ct[i - w->count];
    w->inputs[i] = is_there ? pestle_node_result(barrier, n++) : NULL;
  }
}

// The body, its results, and what may be kept, held by an op behind it while ops are
// replaced by others.
static pestle_status_t copy_body(again_t* w, pestle_copier_t* copier) {
  pestle_formula_t* f = &w->x->f;
  pv_t* fence = pestle_f_scalar(f, PESTLE_I1, 0);
  if (!fence) return NULL;
  w->first = fence->node;
  for (size_t i = 0; i < w->count; ++i)
    PESTLE_TRY(pestle_copier_set(copier, w->body->arguments[i], w->inputs[i]));
  PESTLE_TRY(pestle_copier_block(copier, w->body));
  size_t count = w->result_count;
  pv_t** results = pestle_value_array(f, &w->x->arena, count + w->value_count);
  if (!results) return NULL;
  for (size_t r = 0; r < count; ++r)
    results[r] =
        pestle_copier_get(copier, pestle_node_operand(w->body->last, r));
  for (size_t i = 0; i < w->op_count; ++i) {
    const pestle_node_t* n = w->ops[i].node;
    for (uint32_t r = 0; r < n->result_count; ++r)
      results[count++] = pestle_copier_get(copier, pestle_node_result(n, r));
  }
  w->end = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                               .operands = results,
                               .operand_count = count});
  return NULL;
}

// Tangents of the inputs are values of their own that nobody reads in the end.
static void differentiate(again_t* w, const bool* is_wanted) {
  pestle_formula_t* f = &w->x->f;
  pestle_jvp_t* j = &w->jvp;
  pestle_formula_t before = pestle_formula_before(w->first);
  for (size_t i = 0; i < w->count && w->tangents; ++i) {
    if (!is_wanted[i]) continue;
    w->tangents[i] = pestle_zeros(&before, w->inputs[i]);
    pestle_tangent_set(j, w->inputs[i], w->tangents[i]);
  }
  pestle_f_fail(f, before.status);
  if (f->status) return;
  j->f = pestle_formula_before(w->end);
  pestle_jvp_behind(j, w->first);
  pestle_f_fail(f, j->f.status);
  j->f.status = NULL;
}

static pestle_status_t go_back(again_t* w) {
  pestle_transposer_t* back = &w->back;
  for (size_t i = 0; i < w->count; ++i) {
    if (!w->tangents[i]) continue;
    PESTLE_TRY(pestle_linear_add(back, w->tangents[i]));
  }
  PESTLE_TRY(pestle_linear_find_between(back, w->first, w->end));
  for (size_t r = 0; r < w->result_count; ++r) {
    const pv_t* t = pestle_tangent(&w->jvp, pestle_node_operand(w->end, r));
    if (t) pestle_cotangent_add_to(back, t, w->inputs[w->count + r]);
  }
  back->f = pestle_formula_before(w->end);
  return pestle_transpose_nodes(back);
}

// --- What is kept ---

static void list_ops(again_t* w) {
  size_t count = 0;
  if (w->policy.keep == PESTLE_KEEP_NOTHING) return;
  for (pestle_node_t* n = w->body->first; n != w->body->last; n = n->next)
    ++count;
  w->ops = pestle_arena_alloc_zero(&w->x->arena, (count + 1) * sizeof(*w->ops),
                                   _Alignof(pestle_remat_op_t));
  if (!w->ops) {
    pestle_f_fail(&w->x->f, PESTLE_OOM());
    return;
  }
  for (pestle_node_t* n = w->body->first; n != w->body->last; n = n->next) {
    w->ops[w->op_count++].node = n;
    w->value_count += n->result_count;
  }
}

// Whether an op that computes nothing again reads |value|.
static bool is_read(const pestle_block_t* block, const pv_t* value) {
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    const pestle_node_t* user = u->user;
    while (user->block != block && user->block->region->owner)
      user = user->block->region->owner;
    if (!user->scratch) return true;
  }
  return false;
}

// Which ops compute which again, and what reverse mode reads of them. What stands for an op
// that was written as others counts as reverse mode's.
static void find_read(again_t* w) {
  pestle_block_t* block = w->first->block;
  size_t v = 0;
  for (pestle_node_t* n = w->first; n; n = n->next)
    n->scratch = 0;
  for (size_t i = 0; i < w->op_count; ++i) {
    pestle_remat_op_t* op = &w->ops[i];
    pestle_node_t* again = w->again[v]->node;
    bool same = again && again->block == block && again->op == op->node->op &&
                again->operand_count == op->node->operand_count;
    if (same) again->scratch = 1;
    v += op->node->result_count;
  }
  v = 0;
  for (size_t i = 0; i < w->op_count; ++i) {
    pestle_node_t* n = (pestle_node_t*)(uintptr_t)w->ops[i].node;
    n->scratch = i + 1;
    for (uint32_t r = 0; r < n->result_count; ++r)
      w->ops[i].is_read |= is_read(block, w->again[v++]);
  }
}

// |source| with |kept| of its body as further results, in its place.
static pestle_node_t* with_results(again_t* w, pestle_node_t* source,
                                   size_t kept) {
  pestle_formula_t f = pestle_formula_before(source);
  size_t m = source->result_count, count = 0;
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  pv_t** values = pestle_value_array(&f, &w->x->arena, m + kept);
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&w->x->arena, pestle_type_t, m + kept + 1);
  if (!values || !types) return NULL;
  pestle_copier_init(w->x->allocator, f.builder, &copier);
  f.status = pestle_copier_region(&copier, source->regions[0], &region);
  pestle_copier_deinit(&copier);
  if (!f.status) {
    const pestle_node_t* copy = region->block->first;
    for (size_t r = 0; r < m; ++r)
      values[count++] = pestle_node_operand(region->block->last, (uint32_t)r);
    for (size_t i = 0; i < w->op_count; ++i, copy = copy->next) {
      for (uint32_t r = 0; w->ops[i].is_kept && r < copy->result_count; ++r)
        values[count++] = pestle_node_result(copy, r);
    }
    for (size_t i = 0; i < count; ++i)
      types[i] = *values[i]->type;
    f.status =
        pestle_region_return(f.builder.module, region->block, values, count);
  }
  pv_t** operands = pestle_value_array(&f, &w->x->arena, source->operand_count);
  for (uint32_t i = 0; operands && i < source->operand_count; ++i)
    operands[i] = pestle_node_operand(source, i);
  pestle_node_t* made =
      f.status ? NULL
               : pestle_f_node(&f, &(pestle_node_spec_t){
                                       .op = PESTLE_OP_CUSTOM,
                                       .operands = operands,
                                       .operand_count = source->operand_count,
                                       .attrs = source->attrs,
                                       .attr_count = source->attr_count,
                                       .regions = &region,
                                       .region_count = 1,
                                       .types = types,
                                       .type_count = count});
  if (f.status && region && !made) pestle_region_discard(region);
  pestle_f_fail(&w->x->f, f.status);
  for (size_t r = 0; made && r < m; ++r) {
    pestle_value_replace_all_uses(pestle_node_result(source, r),
                                  pestle_node_result(made, r));
  }
  return made;
}

// What is kept takes the place of what computed it again, which nobody needs then.
static void keep(again_t* w, pestle_node_t* source) {
  size_t kept = 0, v = 0, to = source->result_count;
  if (!w->op_count || w->x->f.status) return;
  find_read(w);
  pestle_remat_choose(&w->policy, w->ops, w->op_count);
  for (size_t i = 0; i < w->op_count; ++i)
    kept += w->ops[i].is_kept ? w->ops[i].node->result_count : 0;
  pestle_node_t* made = kept ? with_results(w, source, kept) : NULL;
  for (size_t i = 0; made && i < w->op_count; ++i) {
    for (uint32_t r = 0; r < w->ops[i].node->result_count; ++r, ++v) {
      if (!w->ops[i].is_kept) continue;
      pestle_value_replace_all_uses(w->again[v],
                                    pestle_node_result(made, to++));
    }
  }
  if (made) pestle_node_erase(source);
}

void pestle_checkpoint_pull(pestle_transposer_t* x, const pestle_node_t* node,
                            uint32_t count, pv_t* const* ct) {
  pestle_node_t* source = pestle_node_operand(node, count)->node;
  again_t w = {.x = x,
               .body = pestle_node_body(source, 0),
               .count = count,
               .result_count = node->result_count};
  pestle_copier_t copier;
  bool* is_wanted = PESTLE_ARENA_ARRAY(&x->arena, bool, count + 1);
  w.inputs = pestle_value_array(&x->f, &x->arena, w.count + w.result_count);
  w.tangents = pestle_value_array(&x->f, &x->arena, w.count);
  if (!is_wanted || !w.inputs || !w.tangents) {
    pestle_f_fail(&x->f, PESTLE_OOM());
    return;
  }
  pestle_f_fail(&x->f, pestle_policy_read(&x->arena, source, &w.policy));
  if (!x->f.status) list_ops(&w);
  size_t first = count + w.result_count;
  for (uint32_t i = 0; i < count; ++i)
    is_wanted[i] = pestle_is_linear(x, pestle_node_operand(node, first + i));
  wait(&w, node, ct);
  if (x->f.status) return;
  pestle_copier_init(x->allocator, x->f.builder, &copier);
  pestle_f_fail(&x->f, copy_body(&w, &copier));
  pestle_copier_deinit(&copier);
  if (!w.end) return;
  pestle_function_t* function = x->function;
  pestle_jvp_init(x->allocator, function, true, &w.jvp);
  w.jvp.is_reverse = w.jvp.is_whole = true;
  w.jvp.max_trips = x->max_trips;
  pestle_transposer_init(x->allocator, x->f.builder, &w.back);
  w.back.function = function;
  w.back.max_trips = x->max_trips;
  differentiate(&w, is_wanted);
  if (!x->f.status) pestle_f_fail(&x->f, go_back(&w));
  for (uint32_t i = 0; i < count && !x->f.status; ++i) {
    if (!w.tangents[i]) continue;
    pv_t* sum = pestle_cotangent_take(&w.back, w.tangents[i]);
    pestle_cotangent_add(x, node, first + i, sum);
  }
  pestle_f_fail(&x->f, w.back.f.status);
  w.back.f.status = NULL;
  w.again = pestle_value_array(&x->f, &x->arena, w.value_count);
  for (size_t i = 0; w.again && i < w.value_count; ++i)
    w.again[i] = pestle_node_operand(w.end, w.result_count + i);
  pestle_node_erase(w.end);
  if (w.again) keep(&w, source);
  pestle_jvp_deinit(&w.jvp);
  pestle_transposer_deinit(&w.back);
}

// --- Of a linear function ---

static bool is_for_linear(const pestle_transposer_t* x,
                          const pestle_node_t* source) {
  for (uint32_t r = 0; r < source->result_count; ++r) {
    for (const pestle_use_t* u = source->results[r].uses; u; u = u->next) {
      const pestle_node_t* user = u->user;
      while (user->block != source->block && user->block->region->owner)
        user = user->block->region->owner;
      if (!user->result_count || !pestle_is_linear(x, &user->results[0])) {
        return false;
      }
    }
  }
  return true;
}

// |source| behind a barrier of its operands and a cotangent, at the end of the function,
// where the ops that it was defined before are gone in the end.
static void delay(pestle_transposer_t* x, pestle_node_t* source, pv_t** ct) {
  pestle_formula_t* f = &x->f;
  uint32_t n = source->operand_count;
  pv_t** all = pestle_value_array(f, &x->arena, n + 1);
  if (!all) return;
  for (uint32_t i = 0; i < n; ++i)
    all[i] = pestle_node_operand(source, i);
  all[n] = *ct;
  pestle_node_t* barrier = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                               .operands = all,
                               .operand_count = n + 1});
  if (!barrier) return;
  for (uint32_t i = 0; i < n; ++i)
    pestle_node_set_operand(source, i, pestle_node_result(barrier, i));
  *ct = pestle_node_result(barrier, n);
  pestle_node_move(source, f->builder.before);
}

void pestle_checkpoint_delay(pestle_transposer_t* x, const pestle_node_t* node,
                             pv_t** ct) {
  while (!*ct)
    ++ct;
  for (uint32_t i = 0; i < node->operand_count && !x->f.status; ++i) {
    pestle_node_t* source = pestle_node_operand(node, i)->node;
    if (!source || source->block != node->block ||
        !pestle_is_checkpoint(source) || !source->operand_count ||
        pestle_node_operand(source, 0)->node || !is_for_linear(x, source)) {
      continue;
    }
    delay(x, source, ct);
  }
}

// --- Batched: the same op, whose body is batched ---

// |from|'s stand-in in a copied body where its argument |to| has the axis.
static pestle_status_t map_argument(pestle_vmap_t* v, pestle_copier_t* copier,
                                    pestle_formula_t* f, const pv_t* from,
                                    pv_t* to, bool is_batched) {
  if (!is_batched) return pestle_copier_set(copier, from, to);
  pv_t* zeros = pestle_zeros(f, from);
  if (!zeros) return NULL;
  PESTLE_TRY(pestle_copier_set(copier, from, zeros));
  pestle_vmap_set(v, zeros, to);
  return NULL;
}

// |*out_has|: results with the axis.
static pestle_status_t batch_body(pestle_vmap_t* v, const pestle_node_t* node,
                                  pv_t* const* operands, const bool* is_batched,
                                  pestle_copier_t* copier,
                                  pestle_region_t* region, bool* out_has) {
  const pestle_block_t* source = pestle_node_body(node, 0);
  pestle_block_t* block = region->block;
  pestle_formula_t f = pestle_formula_make(copier->builder);
  uint32_t count = source->last->operand_count;
  pv_t** out = pestle_value_array(&f, &v->arena, count);
  if (!out) return f.status;
  for (uint32_t i = 0; i < node->operand_count && !f.status; ++i) {
    pv_t* to;
    PESTLE_TRY(pestle_block_add_argument(f.builder.module, block,
                                         operands[i]->type, &to));
    PESTLE_TRY(
        map_argument(v, copier, &f, source->arguments[i], to, is_batched[i]));
  }
  if (f.status) return f.status;
  PESTLE_TRY(pestle_copier_block(copier, source));
  for (uint32_t r = 0; r < count; ++r)
    out[r] = pestle_copier_get(copier, pestle_node_operand(source->last, r));
  PESTLE_TRY(pestle_op_return(&f.builder, out, count, NULL));
  PESTLE_TRY(pestle_vmap_inner(v, block));
  for (uint32_t r = 0; r < count; ++r) {
    pv_t* value = pestle_node_operand(block->last, r);
    out[r] = pestle_vmap_get(v, value);
    out_has[r] = out[r] != value;
  }
  PESTLE_TRY(pestle_region_return(f.builder.module, block, out, count));
  pestle_sweep(block);
  return v->f.status;
}

void pestle_vmap_kept(pestle_vmap_t* v, const pestle_node_t* node,
                      pv_t* const* operands, const bool* is_batched,
                      pv_t** out) {
  pestle_copier_t copier;
  pestle_region_t* region = NULL;
  pestle_builder_t builder = {.module = v->function->module};
  bool* has = PESTLE_ARENA_ARRAY(&v->arena, bool, node->result_count + 1);
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&v->arena, pestle_type_t, node->result_count + 1);
  if (!has || !types) {
    pestle_f_fail(&v->f, PESTLE_OOM());
    return;
  }
  pestle_f_fail(&v->f, pestle_region_create(builder.module, NULL, 0, &region,
                                            &builder.block));
  if (v->f.status) return;
  pestle_copier_init(v->allocator, builder, &copier);
  pestle_status_t status =
      batch_body(v, node, operands, is_batched, &copier, region, has);
  pestle_copier_deinit(&copier);
  if (status || v->f.status) {
    pestle_f_fail(&v->f, status);
    pestle_region_discard(region);
    return;
  }
  for (uint32_t r = 0; r < node->result_count; ++r)
    types[r] = *pestle_node_operand(region->block->last, r)->type;
  pestle_node_t* made = pestle_f_node(
      &v->f, &(pestle_node_spec_t){.op = PESTLE_OP_CUSTOM,
                                   .operands = operands,
                                   .operand_count = node->operand_count,
                                   .attrs = node->attrs,
                                   .attr_count = node->attr_count,
                                   .regions = &region,
                                   .region_count = 1,
                                   .types = types,
                                   .type_count = node->result_count});
  for (uint32_t r = 0; made && r < node->result_count; ++r) {
    pv_t* value = pestle_node_result(made, r);
    if (has[r]) {
      out[r] = value;
    } else {
      pestle_value_replace_all_uses((pv_t*)(uintptr_t)&node->results[r], value);
    }
  }
}
