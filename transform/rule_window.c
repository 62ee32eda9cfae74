// SPDX-License-Identifier: Apache-2.0
// Sliding windows. A sum is linear; a maximum gives all of a window's cotangent to the
// element that select_and_scatter would choose, the first of equal ones.
//
// The tangent of a maximum is a reduction of pairs: of x and its tangent s, the tangent
// that stands beside the chosen x. It is linear in s, and its transposed is
// select_and_scatter:
//
//   %r:2 = reduce_window(%x, %s) { keep (a, t) if a >= b else (b, u) }
#include <math.h>
#include <string.h>

#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// Number |axis| of a list, of which an empty one is all |otherwise|.
static int64_t at(pestle_i64s_t list, int32_t axis, int64_t otherwise) {
  return (size_t)axis < list.count ? list.data[axis] : otherwise;
}

static void read_windows(const pestle_node_t* node, pestle_windows_t* w) {
  bool is_select = node->op == PESTLE_OP_SELECT_AND_SCATTER;
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, window_dimensions);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, window_strides);
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  pestle_i64s_t none = {NULL, 0};
  pestle_i64s_t base =
      is_select ? none : PESTLE_NODE_I64S(node, base_dilations);
  pestle_i64s_t apart =
      is_select ? none : PESTLE_NODE_I64S(node, window_dilations);
  pestle_windows_init(w);
  for (int32_t d = 0; d < operand(node, 0)->type->rank; ++d) {
    w->sizes[d] = sizes.data[d];
    w->strides[d] = at(strides, d, 1);
    w->base_dilations[d] = at(base, d, 1);
    w->dilations[d] = at(apart, d, 1);
    w->padding[2 * d] = at(padding, 2 * d, 0);
    w->padding[2 * d + 1] = at(padding, 2 * d + 1, 0);
  }
}

static pestle_op_t combiner(const pestle_node_t* node) {
  return node->operand_count == 2
             ? pestle_block_reduce_op(pestle_node_body(node, 0))
             : PESTLE_OP_COUNT;
}

// --- Pairs ---

// (a, t, b, u) -> (a, t) if a |order| b else (b, u).
static pestle_status_t make_pair_region(const pestle_formula_t* around,
                                        pestle_op_t order, pestle_dtype_t dtype,
                                        pestle_region_t** out_region) {
  pestle_type_t type = pestle_type_make(dtype, 0, NULL);
  pestle_type_t types[4] = {type, type, type, type};
  pestle_builder_t b = {.module = around->builder.module,
                        .loc = around->builder.loc};
  PESTLE_TRY(pestle_region_create(b.module, types, 4, out_region, &b.block));
  pv_t** a = b.block->arguments;
  pestle_formula_t f = pestle_formula_make(b);
  pv_t* is_first = pestle_f_binary(&f, order, a[0], a[2]);
  pv_t* results[2] = {pestle_f_select(&f, is_first, a[0], a[2]), NULL};
  results[1] = pestle_f_select(&f, is_first, a[1], a[3]);
  return f.status ? f.status : pestle_op_return(&f.builder, results, 2, NULL);
}

// Whether |node| chooses pairs so; |*out_order| is GE or LE.
static bool is_pairs(const pestle_node_t* node, pestle_op_t* out_order) {
  if (node->operand_count != 4) return false;
  const pestle_block_t* body = pestle_node_body(node, 0);
  const pestle_node_t* order = body->first;
  if (!order || (order->op != PESTLE_OP_GE && order->op != PESTLE_OP_LE)) {
    return false;
  }
  const pestle_node_t *a = order->next, *t = a ? a->next : NULL;
  if (!t || a->op != PESTLE_OP_SELECT || t->op != PESTLE_OP_SELECT ||
      t->next != body->last) {
    return false;
  }
  *out_order = (pestle_op_t)order->op;
  pv_t* const* x = body->arguments;
  const pv_t* flag = &order->results[0];
  return operand(order, 0) == x[0] && operand(order, 1) == x[2] &&
         operand(a, 0) == flag && operand(a, 1) == x[0] &&
         operand(a, 2) == x[2] && operand(t, 0) == flag &&
         operand(t, 1) == x[1] && operand(t, 2) == x[3] &&
         operand(body->last, 0) == &a->results[0] &&
         operand(body->last, 1) == &t->results[0];
}

static size_t window_attrs(const pestle_windows_t* w, size_t rank,
                           bool has_dilations, pestle_attr_t* out) {
  size_t n = 0;
  out[n++] = PESTLE_SET_I64S(window_dimensions, w->sizes, rank);
  out[n++] = PESTLE_SET_I64S(window_strides, w->strides, rank);
  out[n++] = PESTLE_SET_I64S(padding, w->padding, 2 * rank);
  if (!has_dilations) return n;
  out[n++] = PESTLE_SET_I64S(base_dilations, w->base_dilations, rank);
  out[n++] = PESTLE_SET_I64S(window_dilations, w->dilations, rank);
  return n;
}

// What of |t| stands where |x| is the first or last in |order| of each window.
static pv_t* choose(pestle_formula_t* f, pv_t* x, pv_t* initial, pv_t* t,
                    pestle_op_t order, const pestle_windows_t* w) {
  pestle_attr_t attrs[5];
  pestle_region_t* region = NULL;
  if (!x || !t || f->status) return NULL;
  f->status = make_pair_region(f, order, x->type->dtype, &region);
  pv_t* operands[4] = {x, t, initial, NULL};
  operands[3] = pestle_f_scalar(f, t->type->dtype, 0);
  size_t count = window_attrs(w, (size_t)x->type->rank, true, attrs);
  pestle_node_t* node =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_REDUCE_WINDOW,
                                             .operands = operands,
                                             .operand_count = 4,
                                             .attrs = attrs,
                                             .attr_count = count,
                                             .regions = &region,
                                             .region_count = 1});
  return node ? pestle_node_result(node, 1) : NULL;
}

// --- Other regions: the window's elements are slices ---

enum { MOST_ELEMENTS = 1024 };

// The elements at place |index| in each window of |a|, which has its padding.
static pv_t* element(pestle_formula_t* f, pv_t* a, const pestle_node_t* node,
                     const pestle_windows_t* w, const int64_t* index) {
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
  const int64_t* dims = node->results[0].type->dims;
  for (int32_t d = 0; d < node->results[0].type->rank; ++d) {
    starts[d] = index[d] * w->dilations[d];
    limits[d] = starts[d] + (dims[d] ? (dims[d] - 1) * w->strides[d] + 1 : 0);
  }
  return pestle_f_slice(f, a, starts, limits, w->strides);
}

// |order|: the first element of those that are equal is kept; PESTLE_OP_COUNT: the
// region says.
static void jvp_slices(pestle_jvp_t* j, pestle_node_t* node,
                       const pestle_windows_t* w, pestle_op_t order,
                       pv_t** out) {
  pestle_formula_t* f = &j->f;
  size_t count = node->result_count;
  int32_t rank = operand(node, 0)->type->rank;
  int64_t low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK];
  int64_t between[PESTLE_MAX_RANK], index[PESTLE_MAX_RANK] = {0};
  size_t elements = 1;
  for (int32_t d = 0; d < rank; ++d) {
    elements *= (size_t)w->sizes[d];
    low[d] = w->padding[2 * d];
    high[d] = w->padding[2 * d + 1];
    between[d] = w->base_dilations[d] - 1;
    if (elements > MOST_ELEMENTS) {
      pestle_jvp_refuse(j, node,
                        "has a derivative for windows of up to 1024 elements "
                        "where its region is not add, maximum or minimum; use "
                        "smaller ones, or pestle.cumulative");
      return;
    }
  }
  pv_t** padded = pestle_value_array(f, &j->arena, count);
  pv_t** sums = pestle_value_array(f, &j->arena, 2 * count);
  if (!padded || !sums) return;
  for (size_t i = 0; i < count; ++i) {
    pv_t* initial = operand(node, count + i);
    padded[i] = pestle_f_pad(f, operand(node, i), initial, low, high, between);
    sums[i] = pestle_f_broadcast_to(f, initial, node->results[0].type, NULL);
  }
  for (size_t e = 0; e < elements && !f->status; ++e) {
    for (size_t i = 0; i < count; ++i)
      sums[count + i] = element(f, padded[i], node, w, index);
    if (order == PESTLE_OP_COUNT) {
      pestle_transform_combine(j, node, sums);
    } else {
      pv_t* is_first = pestle_f_binary(f, order, sums[0], sums[1]);
      sums[0] = pestle_f_select(f, is_first, sums[0], sums[1]);
    }
    for (int32_t d = rank; d-- > 0;) {
      if (++index[d] < w->sizes[d]) break;
      index[d] = 0;
    }
  }
  pestle_jvp_behind(j, node);
  for (size_t i = 0; i < count; ++i)
    out[i] = sums[i] ? pestle_tangent(j, sums[i]) : NULL;
}

// --- Rules ---

static bool is_dense(const pestle_node_t* node, const pestle_windows_t* w) {
  for (int32_t d = 0; d < node->results[0].type->rank; ++d) {
    if (w->base_dilations[d] != 1 || w->dilations[d] != 1) return false;
  }
  return true;
}

void pestle_jvp_reduce_window(pestle_jvp_t* j, pestle_node_t* node,
                              pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_windows_t w;
  pestle_op_t op = combiner(node), order;
  read_windows(node, &w);
  if (op == PESTLE_OP_ADD) {
    pv_t* from = t[1] ? t[1] : pestle_zeros(f, operand(node, 1));
    pv_t* a = t[0] ? t[0] : pestle_zeros(f, operand(node, 0));
    out[0] = pestle_f_reduce_windows(f, op, a, from, &w);
  } else if (op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM) {
    // select_and_scatter, the transposed, has neither dilations nor a choice of the
    // initial value.
    order = op == PESTLE_OP_MAXIMUM ? PESTLE_OP_GE : PESTLE_OP_LE;
    if (t[1] || !is_dense(node, &w)) {
      jvp_slices(j, node, &w, order, out);
    } else {
      out[0] = choose(f, operand(node, 0), operand(node, 1), t[0], order, &w);
    }
  } else if (is_pairs(node, &order) && !t[2] && !t[3]) {
    for (size_t i = 0; i < 2; ++i)
      out[i] = choose(f, operand(node, 0), operand(node, 2), t[i], order, &w);
  } else {
    jvp_slices(j, node, &w, PESTLE_OP_COUNT, out);
  }
}

// Element i of the operand is read by window o where o * stride + k * dilation =
// low + i * base: the same equation turned round.
static pv_t* sum_back(pestle_formula_t* f, const pestle_node_t* node,
                      const pestle_windows_t* w, pv_t* ct) {
  pestle_windows_t back = *w;
  const int64_t* from = ct->type->dims;
  const int64_t* to = operand(node, 0)->type->dims;
  for (int32_t d = 0; d < ct->type->rank; ++d) {
    int64_t span = (w->sizes[d] - 1) * w->dilations[d];
    int64_t low = span - w->padding[2 * d];
    int64_t length = from[d] ? (from[d] - 1) * w->strides[d] + 1 : 0;
    int64_t needed = to[d] ? (to[d] - 1) * w->base_dilations[d] + span + 1 : 0;
    back.strides[d] = w->base_dilations[d];
    back.base_dilations[d] = w->strides[d];
    back.padding[2 * d] = low;
    back.padding[2 * d + 1] = needed - low - length;
    if (!to[d]) return pestle_zeros(f, operand(node, 0));
  }
  return pestle_f_reduce_windows(f, PESTLE_OP_ADD, ct,
                                 pestle_f_scalar(f, ct->type->dtype, 0), &back);
}

static pv_t* sum_all(pestle_formula_t* f, pv_t* a) {
  int64_t all[PESTLE_MAX_RANK];
  if (!a) return NULL;
  for (int32_t d = 0; d < a->type->rank; ++d)
    all[d] = d;
  return pestle_sum_axes(f, a, all, (size_t)a->type->rank);
}

static void transpose_sum(pestle_transposer_t* x, const pestle_node_t* node,
                          const pestle_windows_t* w, pv_t* ct) {
  pestle_formula_t* f = &x->f;
  if (pestle_is_linear(x, operand(node, 0))) {
    pestle_cotangent_add(x, node, 0, sum_back(f, node, w, ct));
  }
  if (!pestle_is_linear(x, operand(node, 1))) return;
  // How often each window has the initial value: 1, and what is padding.
  pv_t* one = pestle_f_scalar(f, ct->type->dtype, 1);
  pv_t* count = pestle_f_reduce_windows(
      f, PESTLE_OP_ADD, pestle_zeros(f, operand(node, 0)), one, w);
  pestle_cotangent_add(x, node, 1, sum_all(f, pestle_f_multiply(f, ct, count)));
}

// The cotangent |ct| goes to the element of |t| that was chosen by |x|.
static pv_t* scatter_back(pestle_formula_t* f, pv_t* x, pv_t* ct,
                          pestle_op_t order, const pestle_windows_t* w) {
  pestle_attr_t attrs[3];
  pestle_region_t* regions[2] = {pestle_f_region(f, order, x->type->dtype),
                                 NULL};
  regions[1] = pestle_f_region(f, PESTLE_OP_ADD, ct->type->dtype);
  pv_t* operands[3] = {x, ct, NULL};
  operands[2] = pestle_f_scalar(f, ct->type->dtype, 0);
  size_t count = window_attrs(w, (size_t)x->type->rank, false, attrs);
  return pestle_f_emit(f,
                       &(pestle_node_spec_t){.op = PESTLE_OP_SELECT_AND_SCATTER,
                                             .operands = operands,
                                             .operand_count = 3,
                                             .attrs = attrs,
                                             .attr_count = count,
                                             .regions = regions,
                                             .region_count = 2});
}

static bool is_infinite(const pv_t* value) {
  double real;
  int64_t integer;
  const pestle_elements_t* e = pestle_value_constant(value);
  if (!e || !pestle_dtype_is(e->type.dtype, PESTLE_KIND_FLOAT)) return false;
  pestle_elements_first(e, &real, &integer);
  return isinf(real);
}

// |ct| of the windows of |node|, pairs, in which an element was chosen and not the initial
// value. An infinite one is chosen beside others like it alone.
static pv_t* where_chosen(pestle_formula_t* f, const pestle_node_t* node,
                          pestle_op_t order, const pestle_windows_t* w,
                          pv_t* ct) {
  pv_t* initial = operand(node, 2);
  if (is_infinite(initial)) return ct;
  // Anew, since |node|'s own is made beside the tangent.
  pestle_op_t op =
      order == PESTLE_OP_GE ? PESTLE_OP_MAXIMUM : PESTLE_OP_MINIMUM;
  pv_t* y = pestle_f_reduce_windows(f, op, operand(node, 0), initial, w);
  if (!y) return NULL;
  initial = pestle_f_broadcast_to(f, initial, y->type, NULL);
  pv_t* is_element = pestle_f_ne(f, y, initial);
  return pestle_f_select(f, is_element, ct, pestle_zeros(f, ct));
}

void pestle_transpose_reduce_window(pestle_transposer_t* x, pestle_node_t* node,
                                    pv_t* const* ct) {
  pestle_windows_t w;
  pestle_op_t order;
  read_windows(node, &w);
  if (combiner(node) == PESTLE_OP_ADD) {
    transpose_sum(x, node, &w, ct[0]);
  } else if (is_pairs(node, &order) && ct[1]) {
    pv_t* a = where_chosen(&x->f, node, order, &w, ct[1]);
    a = scatter_back(&x->f, operand(node, 0), a, order, &w);
    pestle_cotangent_add(x, node, 1, a);
  }
}

// --- select_and_scatter: linear in its source, which windows of |x| place ---

// The order of the first region, GE or LE; the second adds.
static bool is_choice(const pestle_node_t* node, pestle_op_t* out_order) {
  const pestle_block_t* body = pestle_node_body(node, 0);
  const pestle_node_t* order = body->first;
  *out_order = (pestle_op_t)order->op;
  return (order->op == PESTLE_OP_GE || order->op == PESTLE_OP_LE) &&
         operand(order, 0) == body->arguments[0] &&
         operand(order, 1) == body->arguments[1] && order->next == body->last &&
         pestle_block_reduce_op(pestle_node_body(node, 1)) == PESTLE_OP_ADD;
}

void pestle_jvp_select_and_scatter(pestle_jvp_t* j, pestle_node_t* node,
                                   pv_t* const* t, pv_t** out) {
  pestle_windows_t w;
  pestle_op_t order;
  if (!is_choice(node, &order)) {
    pestle_jvp_refuse(j, node,
                      "has a derivative where its regions are GE or LE, and "
                      "add; write it with those");
    return;
  }
  read_windows(node, &w);
  pv_t* terms[2] = {NULL, NULL};
  if (t[1]) terms[0] = scatter_back(&j->f, operand(node, 0), t[1], order, &w);
  if (t[2]) {
    terms[1] = pestle_f_broadcast_to(&j->f, t[2], node->results[0].type, NULL);
  }
  out[0] = pestle_sum(&j->f, terms, 2);
}

void pestle_transpose_select_and_scatter(pestle_transposer_t* x,
                                         pestle_node_t* node, pv_t* const* ct) {
  pestle_windows_t w;
  pestle_op_t order;
  read_windows(node, &w);
  if (!is_choice(node, &order)) return;
  pestle_dtype_t dtype = operand(node, 0)->type->dtype;
  pestle_op_t op =
      order == PESTLE_OP_GE ? PESTLE_OP_MAXIMUM : PESTLE_OP_MINIMUM;
  pv_t* initial = pestle_f_identity(&x->f, op, dtype);
  pv_t* a = choose(&x->f, operand(node, 0), initial, ct[0], order, &w);
  pestle_cotangent_add(x, node, 1, a);
  pestle_cotangent_add(x, node, 2, sum_all(&x->f, ct[0]));
}
