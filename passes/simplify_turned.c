// SPDX-License-Identifier: Apache-2.0
// Rules by which transposes meet that a reshape or a slice holds apart: reshapes split
// before them rather than behind, slices are taken before them.
#include <string.h>

#include "passes/axes.h"
#include "passes/simplify.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static const pestle_type_t* type_of(const pestle_node_t* node) {
  return node->results[0].type;
}

// --- A transpose between two reshapes ---

// Where |axis|'s atoms begin in |all|; -1: they do not lie side by side there. An axis of
// one element begins before all.
static int place_of(const pestle_axis_t* axis, const pestle_axis_t* all) {
  if (!axis->count) return 0;
  for (int at = 0; at + axis->count <= all->count; ++at) {
    if (!memcmp(&all->atoms[at], axis->atoms, axis->count)) return at;
  }
  return -1;
}

// The axes of the result as they lie before the transpose, each whole: reshape, transpose,
// and no reshape behind it.
pestle_value_t* pestle_rule_reshape_turned(pestle_formula_t* f,
                                           pestle_node_t* node) {
  pestle_value_t *turned = operand(node, 0), *x = &node->results[0];
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t axes, to;
  pestle_axis_t all = {.count = 0};
  const pestle_type_t* type = type_of(node);
  if (!pestle_pass_is(turned, PESTLE_OP_TRANSPOSE) || turned->use_count != 1 ||
      !pestle_pass_is(operand(turned->node, 0), PESTLE_OP_RESHAPE) ||
      !pestle_type_is_static(type)) {
    return NULL;
  }
  pestle_axes_of(&t, type, true, &to);
  axes = to;
  for (int i = 0; i < 3; ++i)
    if (!pestle_axes_step(&t, false, false, &x, &axes)) return NULL;
  for (int32_t i = 0; i < axes.rank; ++i)
    pestle_axes_append(&t, &all, &axes.axis[i]);
  int place[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < to.rank; ++i) {
    pestle_axes_expand(&t, &to.axis[i]);
    place[i] = place_of(&to.axis[i], &all);
    if (place[i] < 0) return NULL;
  }
  if (t.full) return NULL;
  // |order| has the result's axes as they lie, |perm| the places of these.
  int64_t order[PESTLE_MAX_RANK], perm[PESTLE_MAX_RANK];
  pestle_type_t before = {.rank = to.rank};
  for (int32_t i = 0; i < to.rank; ++i) {
    int32_t at = i;
    for (; at > 0 && place[order[at - 1]] > place[i]; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  for (int32_t i = 0; i < to.rank; ++i) {
    before.dims[i] = type->dims[order[i]];
    perm[order[i]] = i;
  }
  return pestle_f_transpose(f, pestle_f_reshape_to(f, x, &before), perm);
}

// --- A reshape that splits what was cut ---

typedef struct cut_t {
  pestle_type_t type;  // of what is cut, split likewise
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
  bool splits;
} cut_t;

// Dims [t0, t1) of |to|, none for one element that is dropped, are dim |d| of the slice, of
// |whole| elements before it.
static bool cut_dim(cut_t* c, const pestle_node_t* slice, int32_t d,
                    int64_t whole, const pestle_type_t* to, int32_t t0,
                    int32_t t1) {
  int64_t start = PESTLE_NODE_I64S(slice, start_indices).data[d], inner = 1;
  for (int32_t t = t0 + 1; t < t1; ++t)
    inner *= to->dims[t];
  int32_t rank = c->type.rank + (t1 > t0 ? t1 - t0 : 1);
  if (start % inner || whole % inner || rank > PESTLE_MAX_RANK) return false;
  int32_t first = c->type.rank;
  c->type.rank = rank;
  for (int32_t i = first; i < rank; ++i) {
    int64_t kept = t1 > t0 ? to->dims[t0 + i - first] : 1;
    c->type.dims[i] = i == first ? whole / inner : kept;
    c->starts[i] = i == first ? start / inner : 0;
    c->limits[i] = c->starts[i] + kept;
  }
  c->splits |= inner > 1;
  return true;
}

// Each dim of the slice is one or more of the result's.
static bool cut_all(cut_t* c, const pestle_node_t* slice,
                    const pestle_type_t* to) {
  const pestle_type_t *from = type_of(slice), *x = operand(slice, 0)->type;
  int32_t t = 0;
  for (int32_t d = 0; d < from->rank; ++d) {
    int32_t first = t;
    int64_t count = 1;
    while (t < to->rank && count * to->dims[t] <= from->dims[d]) {
      count *= to->dims[t++];
      if (count == from->dims[d]) break;
    }
    if (count != from->dims[d] ||
        !cut_dim(c, slice, d, x->dims[d], to, first, t)) {
      return false;
    }
  }
  return t == to->rank;
}

pestle_value_t* pestle_rule_reshape_slice(pestle_formula_t* f,
                                          pestle_node_t* node) {
  const pestle_node_t* slice = operand(node, 0)->node;
  cut_t c = {.splits = false};
  if (!slice || slice->op != PESTLE_OP_SLICE ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(slice, strides), 1) ||
      !pestle_type_is_static(type_of(node)) ||
      !pestle_type_is_static(operand(slice, 0)->type) ||
      pestle_type_count(type_of(node)) == 0 ||
      !cut_all(&c, slice, type_of(node)) || !c.splits) {
    return NULL;
  }
  pestle_value_t* x = pestle_f_reshape_to(f, operand(slice, 0), &c.type);
  x = pestle_f_slice(f, x, c.starts, c.limits, NULL);
  return pestle_f_reshape_to(f, x, type_of(node));
}

// --- A slice of what was turned ---

// Whether reshapes of |value|, each read once, lead to a transpose.
static bool is_turned_again(const pestle_value_t* value) {
  enum { MOST_RESHAPES = 4 };
  for (int i = 0; i < MOST_RESHAPES && value->use_count == 1; ++i) {
    const pestle_node_t* user = value->uses->user;
    if (user->op == PESTLE_OP_TRANSPOSE) return true;
    if (user->op != PESTLE_OP_RESHAPE) return false;
    value = &user->results[0];
  }
  return false;
}

// Which dim of |from| each of |to|'s is, where they differ by dims of one element alone; -1
// for these.
static bool pair_dims(const pestle_type_t* from, const pestle_type_t* to,
                      int32_t* out) {
  int32_t d = 0;
  for (int32_t i = 0; i < to->rank; ++i) {
    out[i] = -1;
    if (to->dims[i] == 1) continue;
    while (d < from->rank && from->dims[d] == 1)
      ++d;
    if (d == from->rank || from->dims[d] != to->dims[i]) return false;
    out[i] = d++;
  }
  while (d < from->rank && from->dims[d] == 1)
    ++d;
  return d == from->rank;
}

pestle_value_t* pestle_rule_slice_turned(pestle_formula_t* f,
                                         pestle_node_t* node) {
  pestle_value_t* seen = operand(node, 0);
  pestle_value_t* inner = pestle_pass_through(seen, PESTLE_OP_RESHAPE);
  const pestle_node_t* turn = (inner ? inner : seen)->node;
  int32_t pairs[PESTLE_MAX_RANK];
  if (!turn || turn->op != PESTLE_OP_TRANSPOSE ||
      !pestle_type_is_static(seen->type) ||
      pestle_type_count(type_of(node)) == 0 ||
      !pair_dims(type_of(turn), seen->type, pairs) ||
      !is_turned_again(&node->results[0])) {
    return NULL;
  }
  pestle_i64s_t perm = PESTLE_NODE_I64S(turn, permutation);
  const pestle_type_t* from = operand(turn, 0)->type;
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK],
      strides[PESTLE_MAX_RANK];
  for (int32_t d = 0; d < from->rank; ++d) {
    starts[d] = 0;
    limits[d] = from->dims[d];
    strides[d] = 1;
  }
  for (int32_t i = 0; i < seen->type->rank; ++i) {
    if (pairs[i] < 0) continue;
    int64_t d = perm.data[pairs[i]];
    starts[d] = PESTLE_NODE_I64S(node, start_indices).data[i];
    limits[d] = PESTLE_NODE_I64S(node, limit_indices).data[i];
    strides[d] = PESTLE_NODE_I64S(node, strides).data[i];
  }
  pestle_value_t* x =
      pestle_f_slice(f, operand(turn, 0), starts, limits, strides);
  x = pestle_f_transpose(f, x, perm.data);
  return pestle_f_reshape_to(f, x, type_of(node));
}
