// SPDX-License-Identifier: Apache-2.0
// Reductions: sums are linear; a maximum has the mean of the tangents of the elements
// that are equal to it; a product has for each element the product of the others.
#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "ir/copy.h"
#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static pestle_op_t combiner(const pestle_node_t* node) {
  return pestle_block_reduce_op(pestle_node_body(node, 0));
}

// Operand 0 is |a| reduced by adding.
static pv_t* sum_like(pestle_formula_t* f, const pestle_node_t* node, pv_t* a) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  return a ? pestle_f_reduce(f, PESTLE_OP_ADD, a, axes, 0) : NULL;
}

static pv_t* spread(pestle_formula_t* f, const pestle_node_t* node, pv_t* a) {
  return pestle_spread_axes(f, a, operand(node, 0)->type,
                            PESTLE_NODE_I64S(node, dimensions));
}

// |a| of rank 0 in the type of the result.
static pv_t* everywhere(pestle_formula_t* f, const pestle_node_t* node,
                        pv_t* a) {
  return pestle_f_broadcast_to(f, a, node->results[0].type, NULL);
}

static void jvp_sum(pestle_jvp_t* j, const pestle_node_t* node, pv_t* const* t,
                    pv_t** out) {
  pv_t* from = t[1] ? t[1] : pestle_zeros(&j->f, operand(node, 1));
  pv_t* a = t[0] ? t[0] : pestle_zeros(&j->f, operand(node, 0));
  out[0] = pestle_f_reduce_from(&j->f, PESTLE_OP_ADD, a,
                                PESTLE_NODE_I64S(node, dimensions), from);
}

// Whether |a| is the extremum |r|: true wherever |r| is NaN.
static pv_t* is_extremum(pestle_formula_t* f, const pestle_node_t* node,
                         pv_t* a, pv_t* r) {
  bool is_maximum = combiner(node) == PESTLE_OP_MAXIMUM;
  return pestle_f_not(f,
                      is_maximum ? pestle_f_lt(f, a, r) : pestle_f_lt(f, r, a));
}

// The initial value counts as an element where it has a tangent, else only where it
// is the maximum alone. Where the result is NaN, so is each partial derivative.
static void jvp_extremum(pestle_jvp_t* j, const pestle_node_t* node,
                         pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *a = operand(node, 0), *r = pestle_node_result(node, 0);
  pestle_dtype_t dtype = r->type->dtype;
  pestle_dtype_t compute = pestle_compute_dtype(dtype);
  pv_t* is_it = is_extremum(f, node, a, spread(f, node, r));
  pv_t* is_initial =
      is_extremum(f, node, everywhere(f, node, operand(node, 1)), r);
  pv_t* count = sum_like(f, node, pestle_f_convert(f, is_it, compute));
  pv_t* initial = pestle_f_convert(f, is_initial, compute);
  count = t[1] ? pestle_f_add(f, count, initial)
               : pestle_f_maximum(f, count, initial);
  pv_t* is_number = pestle_f_eq(f, r, r);
  pv_t* nan = pestle_f_splat(f, count, NAN);
  count = pestle_f_select(f, is_number, count, nan);
  pv_t* terms[2] = {NULL, NULL};
  if (t[0]) {
    pv_t* x = pestle_f_select(f, is_it, t[0], pestle_zeros(f, a));
    terms[0] = sum_like(f, node, pestle_f_convert(f, x, compute));
  }
  if (t[1]) {
    pv_t* zeros = pestle_zeros(f, r);
    pv_t* x = pestle_f_select(f, is_initial, everywhere(f, node, t[1]), zeros);
    terms[1] = pestle_f_convert(f, x, compute);
  }
  pv_t* sum = pestle_sum(f, terms, 2);
  if (PESTLE_FAULT(wrong_tie)) count = pestle_f_splat(f, count, 1);
  out[0] = pestle_f_convert(f, pestle_f_divide(f, sum, count), dtype);
}

// |a| with the axes |axes| last, as one.
static pv_t* as_rows(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  int64_t order[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK + 1];
  int32_t rank = 0, at = 0;
  if (!a) return NULL;
  for (int32_t d = 0; d < a->type->rank; ++d) {
    if (pestle_i64s_has(axes, d)) continue;
    dims[rank++] = a->type->dims[d];
    order[at++] = d;
  }
  int64_t length = 1;
  for (int32_t d = 0; d < a->type->rank; ++d) {
    if (!pestle_i64s_has(axes, d)) continue;
    length *= a->type->dims[d];
    order[at++] = d;
  }
  dims[rank++] = length;
  return pestle_f_reshape(f, pestle_f_transpose(f, a, order), rank, dims);
}

// A copy of |node|'s region that returns result |index| alone.
static pestle_region_t* region_of(pestle_jvp_t* j, const pestle_node_t* node,
                                  size_t index) {
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  if (j->f.status) return NULL;
  pestle_copier_init(j->allocator, j->f.builder, &copier);
  j->f.status = pestle_copier_region(&copier, node->regions[0], &region);
  pestle_copier_deinit(&copier);
  if (j->f.status) return NULL;
  pestle_node_t* last = region->block->last;
  pestle_builder_t b = pestle_builder_before(last);
  pv_t* value = pestle_node_operand(last, index);
  j->f.status = pestle_op_return(&b, &value, 1, NULL);
  pestle_node_erase(last);
  return region;
}

void pestle_transform_combine(pestle_jvp_t* j, const pestle_node_t* node,
                              pv_t** values) {
  size_t count = node->result_count;
  pv_t** made = pestle_value_array(&j->f, &j->arena, count);
  for (size_t i = 0; made && i < count; ++i) {
    int64_t axes[PESTLE_MAX_RANK];
    if (!values[0]) return;
    for (int32_t d = 0; d < values[0]->type->rank; ++d)
      axes[d] = d;
    pestle_attr_t attr =
        PESTLE_SET_I64S(dimensions, axes, (size_t)values[0]->type->rank);
    pestle_region_t* region = region_of(j, node, i);
    pestle_node_t* map =
        pestle_f_node(&j->f, &(pestle_node_spec_t){.op = PESTLE_OP_MAP,
                                                   .operands = values,
                                                   .operand_count = 2 * count,
                                                   .attrs = &attr,
                                                   .attr_count = 1,
                                                   .regions = &region,
                                                   .region_count = 1});
    if (!map) return;
    j->f.status = pestle_decompose(map, &made[i]);
    pestle_node_erase(map);
  }
  if (made) memcpy(values, made, count * sizeof(*made));
}

// The rows |values|, halved until one element is left of each: a tree of the region.
static void halve(pestle_jvp_t* j, const pestle_node_t* node, pv_t** values,
                  int64_t length) {
  size_t count = node->result_count;
  pestle_formula_t* f = &j->f;
  pv_t** parts = pestle_value_array(f, &j->arena, 3 * count);
  for (int64_t half; parts && length > 1; length -= half) {
    half = length / 2;
    for (size_t i = 0; i < count; ++i) {
      int32_t axis = values[i] ? values[i]->type->rank - 1 : 0;
      parts[i] = pestle_f_slice_axis(f, values[i], axis, 0, half);
      parts[count + i] =
          pestle_f_slice_axis(f, values[i], axis, half, 2 * half);
      parts[2 * count + i] =
          length % 2
              ? pestle_f_slice_axis(f, values[i], axis, length - 1, length)
              : NULL;
    }
    pestle_transform_combine(j, node, parts);
    for (size_t i = 0; i < count; ++i) {
      pv_t* both[2] = {parts[i], parts[2 * count + i]};
      int32_t axis = parts[i] ? parts[i]->type->rank - 1 : 0;
      values[i] = pestle_f_concatenate(f, both, length % 2 ? 2 : 1, axis);
    }
  }
}

// Any region: its tree on tensors is differentiated. (Of a product that gives each
// element the product of the others, without a division.)
static void jvp_tree(pestle_jvp_t* j, pestle_node_t* node, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  size_t count = node->result_count;
  pv_t** rows = pestle_value_array(f, &j->arena, count);
  pv_t** values = pestle_value_array(f, &j->arena, 2 * count);
  int64_t length = 1;
  if (!rows || !values) return;
  for (size_t i = 0; i < axes.count; ++i)
    length *= operand(node, 0)->type->dims[axes.data[i]];
  for (size_t i = 0; i < count; ++i) {
    rows[i] = as_rows(f, operand(node, i), axes);
    values[i] = everywhere(f, node, operand(node, count + i));
  }
  if (length > 0) {
    halve(j, node, rows, length);
    for (size_t i = 0; i < count; ++i)
      values[count + i] =
          pestle_f_reshape_to(f, rows[i], node->results[0].type);
    pestle_transform_combine(j, node, values);
  }
  pestle_jvp_behind(j, node);
  for (size_t i = 0; i < count; ++i)
    out[i] = values[i] ? pestle_tangent(j, values[i]) : NULL;
}

void pestle_jvp_reduce(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                       pv_t** out) {
  pestle_op_t op = node->operand_count == 2 ? combiner(node) : PESTLE_OP_COUNT;
  if (op == PESTLE_OP_ADD) {
    jvp_sum(j, node, t, out);
  } else if (op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM) {
    jvp_extremum(j, node, t, out);
  } else {
    jvp_tree(j, node, out);
  }
}

void pestle_transpose_reduce(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  pestle_cotangent_add(x, node, 0, spread(f, node, ct[0]));
  if (!pestle_is_linear(x, operand(node, 1))) return;
  int64_t all[PESTLE_MAX_RANK];
  int32_t rank = node->results[0].type->rank;
  for (int32_t d = 0; d < rank; ++d)
    all[d] = d;
  pestle_cotangent_add(x, node, 1,
                       pestle_sum_axes(f, ct[0], all, (size_t)rank));
}

// --- Barriers ---

static void barrier(pestle_formula_t* f, pv_t** values, size_t count) {
  pestle_node_t* node = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                               .operands = values,
                               .operand_count = count});
  for (size_t i = 0; i < count; ++i)
    values[i] = node ? pestle_node_result(node, i) : NULL;
}

void pestle_jvp_optimization_barrier(pestle_jvp_t* j, pestle_node_t* node,
                                     pv_t* const* t, pv_t** out) {
  size_t n = 0;
  pv_t** some = pestle_value_array(&j->f, &j->arena, node->operand_count);
  for (uint32_t i = 0; some && i < node->operand_count; ++i) {
    if (t[i]) some[n++] = t[i];
  }
  if (!some) return;
  barrier(&j->f, some, n);
  n = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i)
    out[i] = t[i] ? some[n++] : NULL;
}

void pestle_transpose_optimization_barrier(pestle_transposer_t* x,
                                           pestle_node_t* node,
                                           pv_t* const* ct) {
  size_t n = 0;
  pv_t** some = pestle_value_array(&x->f, &x->arena, node->operand_count);
  for (uint32_t i = 0; some && i < node->operand_count; ++i) {
    if (ct[i]) some[n++] = ct[i];
  }
  if (!some) return;
  barrier(&x->f, some, n);
  n = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (ct[i]) pestle_cotangent_add(x, node, i, some[n++]);
  }
}

// What has no axis passes without.
void pestle_vmap_optimization_barrier(pestle_vmap_t* v, pestle_node_t* node,
                                      pv_t* const* operands,
                                      const bool* is_batched, pv_t** out) {
  pestle_node_t* made = pestle_f_node(
      &v->f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                                   .operands = operands,
                                   .operand_count = node->operand_count});
  for (uint32_t r = 0; made && r < node->result_count; ++r) {
    pv_t* value = pestle_node_result(made, r);
    if (is_batched[r]) {
      out[r] = value;
    } else {
      pestle_value_replace_all_uses(pestle_node_result(node, r), value);
    }
  }
}
