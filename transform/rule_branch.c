// SPDX-License-Identifier: Apache-2.0
// if and case. Forward: branches that return tangents too; what one of them has no
// tangent of is zero there. To be transposed: the primal branches return what linear ops
// read of their values, zeros for those of other branches, and a second if, on the same
// index, has the linear ops. The transposed of the latter has branches that return a
// cotangent for each value that any of them reads.
#include <string.h>

#include "base/mem.h"
#include "transform/region.h"

typedef struct branch_t {
  pestle_region_t* region;  // a copy, with tangents
  pestle_block_t* block;
  pestle_transposer_t x;      // finds what is linear in it
  pestle_values_t residuals;  // what that reads of the rest
} branch_t;

typedef struct branches_t {
  pestle_jvp_t* j;
  pestle_node_t* node;
  size_t count, result_count;
  branch_t* branches;
  bool* has;                 // results with tangents
  pestle_values_t tangents;  // from outside that the branches read
} branches_t;

static pv_t* returned(const branch_t* b, size_t index) {
  return pestle_node_operand(b->block->last, index);
}

static pestle_status_t push(pestle_values_t* list, pv_t* value) {
  return pestle_vec_push(list, value) ? NULL : PESTLE_OOM();
}

// --- Branches with tangents ---

static pestle_status_t copy_region(pestle_jvp_t* j,
                                   const pestle_region_t* source,
                                   pestle_region_t** out_region) {
  pestle_copier_t copier;
  pestle_copier_init(j->allocator, j->f.builder, &copier);
  pestle_status_t status = pestle_copier_region(&copier, source, out_region);
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_status_t add_tangents(branches_t* w) {
  for (size_t k = 0; k < w->count; ++k) {
    branch_t* b = &w->branches[k];
    PESTLE_TRY(copy_region(w->j, w->node->regions[k], &b->region));
    b->block = b->region->block;
    PESTLE_TRY(pestle_jvp_inner(w->j, b->block));
    for (size_t r = 0; r < w->result_count; ++r)
      w->has[r] |= pestle_tangent(w->j, returned(b, r)) != NULL;
  }
  return NULL;
}

// The tangents of what branch |b| returns, made in |f|'s block where they are zero.
static pestle_status_t push_tangents(branches_t* w, const branch_t* b,
                                     pestle_formula_t* f,
                                     pestle_values_t* out) {
  for (size_t r = 0; r < w->result_count && !f->status; ++r) {
    if (!w->has[r]) continue;
    pv_t* t = pestle_tangent(w->j, returned(b, r));
    if (!t) t = pestle_zeros(f, returned(b, r));
    if (t) PESTLE_TRY(push(out, t));
  }
  return f->status;
}

// An op like the node with |regions|, in its place.
static pestle_node_t* make_node(branches_t* w,
                                pestle_region_t* const* regions) {
  pv_t* index = pestle_node_operand(w->node, 0);
  return pestle_f_node(&w->j->f,
                       &(pestle_node_spec_t){.op = (pestle_op_t)w->node->op,
                                             .operands = &index,
                                             .operand_count = 1,
                                             .regions = regions,
                                             .region_count = w->count});
}

static void replace(branches_t* w, pestle_node_t* primal, pestle_node_t* linear,
                    size_t first) {
  for (size_t r = 0; r < w->result_count; ++r) {
    pv_t* value = pestle_node_result(primal, r);
    pestle_value_replace_all_uses(pestle_node_result(w->node, r), value);
    if (w->has[r]) {
      pestle_tangent_set(w->j, value, pestle_node_result(linear, first++));
    }
  }
  pestle_node_erase(w->node);
}

static pestle_region_t** regions_of(branches_t* w) {
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&w->j->arena, pestle_region_t*, w->count + 1);
  for (size_t k = 0; regions && k < w->count; ++k)
    regions[k] = w->branches[k].region;
  return regions;
}

static pestle_status_t return_values(branches_t* w, const branch_t* b,
                                     const pestle_values_t* more) {
  pestle_values_t all;
  pestle_vec_init(&all, w->j->allocator);
  pestle_status_t status = NULL;
  for (size_t r = 0; r < w->result_count && !status; ++r)
    status = push(&all, returned(b, r));
  if (!status && !pestle_vec_append(&all, more->data, more->size)) {
    status = PESTLE_OOM();
  }
  if (!status) {
    status = pestle_region_return(w->j->function->module, b->block, all.data,
                                  all.size);
  }
  pestle_vec_deinit(&all);
  return status;
}

static pestle_status_t make_pairs(branches_t* w) {
  pestle_values_t tangents;
  pestle_status_t status = NULL;
  pestle_vec_init(&tangents, w->j->allocator);
  for (size_t k = 0; k < w->count && !status; ++k) {
    branch_t* b = &w->branches[k];
    pestle_formula_t f = pestle_formula_before(b->block->last);
    pestle_vec_clear(&tangents);
    status = push_tangents(w, b, &f, &tangents);
    if (!status) status = return_values(w, b, &tangents);
  }
  pestle_vec_deinit(&tangents);
  if (status) return status;
  pestle_region_t** regions = regions_of(w);
  if (!regions) return PESTLE_OOM();
  pestle_node_t* made = make_node(w, regions);
  if (made) replace(w, made, made, w->result_count);
  return NULL;
}

// --- Two ops ---

static pestle_status_t find_outer(branches_t* w) {
  pestle_values_t captured;
  pestle_vec_init(&captured, w->j->allocator);
  pestle_status_t status =
      pestle_region_captures(w->node, &w->j->tangents, &captured);
  for (size_t i = 0; i < captured.size && !status; ++i)
    status = push(&w->tangents, pestle_tangent(w->j, captured.data[i]));
  pestle_vec_deinit(&captured);
  return status;
}

static pestle_status_t find_residuals(branches_t* w, branch_t* b) {
  pv_t** outputs = pestle_value_array(&w->j->f, &w->j->arena, w->result_count);
  if (!outputs) return PESTLE_OOM();
  for (size_t i = 0; i < w->tangents.size; ++i)
    PESTLE_TRY(pestle_linear_add(&b->x, w->tangents.data[i]));
  PESTLE_TRY(pestle_linear_find(&b->x, b->block));
  for (size_t r = 0; r < w->result_count; ++r)
    outputs[r] = pestle_tangent(w->j, returned(b, r));
  return pestle_region_residuals(&b->x, b->block, outputs, w->result_count,
                                 &b->residuals);
}

// Each branch returns its residuals, and zeros in the places of the others'.
static pestle_status_t return_residuals(branches_t* w, const branch_t* b) {
  pestle_values_t all;
  pestle_vec_init(&all, w->j->allocator);
  pestle_formula_t f = pestle_formula_before(b->block->last);
  pestle_status_t status = NULL;
  for (size_t k = 0; k < w->count; ++k) {
    const branch_t* other = &w->branches[k];
    for (size_t i = 0; i < other->residuals.size && !status; ++i) {
      pv_t* value = other->residuals.data[i];
      if (other != b) value = pestle_zeros(&f, value);
      status = value ? push(&all, value) : f.status;
    }
  }
  if (!status) status = return_values(w, b, &all);
  pestle_vec_deinit(&all);
  return status;
}

// The linear ops of branch |b|, whose residuals are results of |primal| from |first| on.
static pestle_status_t fill_linear(branches_t* w, const branch_t* b,
                                   pestle_node_t* primal, size_t first,
                                   pestle_copier_t* copier,
                                   pestle_values_t* out) {
  pestle_formula_t f = pestle_formula_make(copier->builder);
  for (size_t i = 0; i < b->residuals.size; ++i) {
    PESTLE_TRY(pestle_copier_set(copier, b->residuals.data[i],
                                 pestle_node_result(primal, first + i)));
  }
  PESTLE_TRY(pestle_region_copy_linear(&b->x, copier));
  PESTLE_TRY(push_tangents(w, b, &f, out));
  for (size_t i = 0; i < out->size; ++i) {
    const pestle_block_t* home =
        out->data[i]->node ? out->data[i]->node->block : NULL;
    if (home != b->block) continue;
    PESTLE_TRY(pestle_region_map(copier, out->data[i], &out->data[i]));
  }
  return pestle_region_return(w->j->function->module, copier->builder.block,
                              out->data, out->size);
}

static pestle_status_t make_linear_region(branches_t* w, const branch_t* b,
                                          pestle_node_t* primal, size_t first,
                                          pestle_region_t** out_region) {
  pestle_copier_t copier;
  pestle_values_t out;
  pestle_builder_t builder = {.module = w->j->function->module};
  PESTLE_TRY(pestle_region_create(builder.module, NULL, 0, out_region,
                                  &builder.block));
  pestle_copier_init(w->j->allocator, builder, &copier);
  pestle_vec_init(&out, w->j->allocator);
  pestle_status_t status = fill_linear(w, b, primal, first, &copier, &out);
  pestle_copier_deinit(&copier);
  pestle_vec_deinit(&out);
  return status;
}

static pestle_status_t make_split(branches_t* w) {
  size_t first = w->result_count;
  pestle_region_t** regions = regions_of(w);
  pestle_region_t** linear =
      PESTLE_ARENA_ARRAY(&w->j->arena, pestle_region_t*, w->count + 1);
  if (!regions || !linear) return PESTLE_OOM();
  PESTLE_TRY(find_outer(w));
  for (size_t k = 0; k < w->count; ++k)
    PESTLE_TRY(find_residuals(w, &w->branches[k]));
  for (size_t k = 0; k < w->count; ++k)
    PESTLE_TRY(return_residuals(w, &w->branches[k]));
  pestle_node_t* primal = make_node(w, regions);
  if (!primal) return NULL;
  for (size_t k = 0; k < w->count; ++k) {
    PESTLE_TRY(
        make_linear_region(w, &w->branches[k], primal, first, &linear[k]));
    first += w->branches[k].residuals.size;
  }
  pestle_node_t* made = make_node(w, linear);
  for (size_t k = 0; k < w->count; ++k)
    pestle_sweep(w->branches[k].block);
  if (made) replace(w, primal, made, 0);
  return NULL;
}

static pestle_status_t jvp(branches_t* w) {
  PESTLE_TRY(add_tangents(w));
  bool any = false;
  for (size_t r = 0; r < w->result_count; ++r)
    any |= w->has[r];
  if (!any) return NULL;
  return w->j->is_linear ? make_split(w) : make_pairs(w);
}

static void jvp_branches(pestle_jvp_t* j, pestle_node_t* node) {
  branches_t w = {.j = j,
                  .node = node,
                  .count = node->region_count,
                  .result_count = node->result_count};
  w.has = pestle_arena_alloc_zero(&j->arena, w.result_count + 1, 1);
  w.branches = pestle_arena_alloc_zero(&j->arena, w.count * sizeof(branch_t),
                                       _Alignof(branch_t));
  if (!w.has || !w.branches) {
    pestle_f_fail(&j->f, PESTLE_OOM());
    return;
  }
  pestle_vec_init(&w.tangents, j->allocator);
  for (size_t k = 0; k < w.count; ++k) {
    pestle_transposer_init(j->allocator, j->f.builder, &w.branches[k].x);
    pestle_vec_init(&w.branches[k].residuals, j->allocator);
  }
  pestle_status_t status = jvp(&w);
  for (size_t k = 0; k < w.count; ++k) {
    pestle_region_t* region = w.branches[k].region;
    if (region && !region->owner) pestle_region_discard(region);
    pestle_transposer_deinit(&w.branches[k].x);
    pestle_vec_deinit(&w.branches[k].residuals);
  }
  pestle_vec_deinit(&w.tangents);
  if (status) pestle_f_fail(&j->f, status);
}

void pestle_jvp_if(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                   pv_t** out) {
  (void)t, (void)out;
  jvp_branches(j, node);
}

void pestle_jvp_case(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  (void)t, (void)out;
  jvp_branches(j, node);
}

// --- Transposition ---

// Branch |source| turned round: from |ct| of the results to |inputs|.
static pestle_status_t turn(pestle_transposer_t* x,
                            const pestle_values_t* inputs, pv_t* const* ct,
                            pestle_block_t* block, pestle_transposer_t* in) {
  pestle_module_t* module = x->f.builder.module;
  pv_t** out = pestle_value_array(&x->f, &x->arena, inputs->size);
  if (!out) return PESTLE_OOM();
  for (size_t i = 0; i < inputs->size; ++i)
    PESTLE_TRY(pestle_linear_add(in, inputs->data[i]));
  PESTLE_TRY(pestle_linear_find(in, block));
  in->f.builder = pestle_builder_before(block->last);
  for (uint32_t r = 0; r < block->last->operand_count; ++r)
    pestle_cotangent_add_to(in, pestle_node_operand(block->last, r), ct[r]);
  PESTLE_TRY(pestle_transpose_nodes(in));
  for (size_t i = 0; i < inputs->size; ++i) {
    out[i] = pestle_cotangent_take(in, inputs->data[i]);
    if (!out[i]) out[i] = pestle_zeros(&in->f, inputs->data[i]);
  }
  pestle_status_t status = in->f.status;
  in->f.status = NULL;
  if (status) return status;
  PESTLE_TRY(pestle_region_return(module, block, out, inputs->size));
  pestle_sweep(block);
  return NULL;
}

static pestle_status_t turn_copy(pestle_transposer_t* x,
                                 const pestle_region_t* source,
                                 const pestle_values_t* inputs, pv_t* const* ct,
                                 pestle_region_t** out_region) {
  pestle_copier_t copier;
  pestle_transposer_t in;
  pestle_copier_init(x->allocator, x->f.builder, &copier);
  pestle_transposer_init(x->allocator, x->f.builder, &in);
  pestle_status_t status = pestle_copier_region(&copier, source, out_region);
  if (!status) status = turn(x, inputs, ct, (*out_region)->block, &in);
  pestle_copier_deinit(&copier);
  pestle_transposer_deinit(&in);
  return status;
}

static pestle_status_t transpose(pestle_transposer_t* x, pestle_node_t* node,
                                 pv_t* const* ct,
                                 const pestle_values_t* inputs) {
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&x->arena, pestle_region_t*, node->region_count + 1);
  if (!regions) return PESTLE_OOM();
  for (uint32_t k = 0; k < node->region_count; ++k)
    PESTLE_TRY(turn_copy(x, node->regions[k], inputs, ct, &regions[k]));
  pv_t* index = pestle_node_operand(node, 0);
  pestle_node_t* made = pestle_f_node(
      &x->f, &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                                   .operands = &index,
                                   .operand_count = 1,
                                   .regions = regions,
                                   .region_count = node->region_count});
  for (size_t i = 0; made && i < inputs->size; ++i)
    pestle_cotangent_add_to(x, inputs->data[i], pestle_node_result(made, i));
  return NULL;
}

static void transpose_branches(pestle_transposer_t* x, pestle_node_t* node,
                               pv_t* const* ct) {
  pestle_values_t inputs;
  pestle_vec_init(&inputs, x->allocator);
  pestle_status_t status = pestle_region_captures(node, &x->linear, &inputs);
  if (!status && inputs.size) status = transpose(x, node, ct, &inputs);
  pestle_vec_deinit(&inputs);
  if (status) pestle_f_fail(&x->f, status);
}

void pestle_transpose_if(pestle_transposer_t* x, pestle_node_t* node,
                         pv_t* const* ct) {
  transpose_branches(x, node, ct);
}

void pestle_transpose_case(pestle_transposer_t* x, pestle_node_t* node,
                           pv_t* const* ct) {
  transpose_branches(x, node, ct);
}
