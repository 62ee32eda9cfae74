// SPDX-License-Identifier: Apache-2.0
// Rules about ops that only move or repeat elements.
#include <string.h>

#include "base/mem.h"
#include "passes/axes.h"
#include "passes/simplify.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}
static const pestle_type_t* type_of(const pestle_node_t* node) {
  return node->results[0].type;
}

// --- Constants ---

// Whether the elements of |e| are the same all along |dim|.
static bool is_repeated(const pestle_elements_t* e, int32_t dim) {
  size_t inner = pestle_dtype_size(e->type.dtype), outer = 1;
  for (int32_t i = dim + 1; i < e->type.rank; ++i) {
    inner *= (size_t)e->type.dims[i];
  }
  for (int32_t i = 0; i < dim; ++i)
    outer *= (size_t)e->type.dims[i];
  // Equal to what follows one step on: all steps are equal.
  size_t run = inner * (size_t)e->type.dims[dim];
  for (size_t i = 0; i < outer; ++i) {
    const char* data = (const char*)e->data + i * run;
    if (memcmp(data, data + inner, run - inner)) return false;
  }
  return true;
}

// The elements of |e| with index 0 in every dim that |type| lacks.
static void take_first(const pestle_elements_t* e, const bool* drop,
                       char* out) {
  size_t size = pestle_dtype_size(e->type.dtype);
  int64_t index[PESTLE_MAX_RANK] = {0};
  for (;;) {
    size_t at = 0;
    for (int32_t i = 0; i < e->type.rank; ++i) {
      at = at * (size_t)e->type.dims[i] + (size_t)index[i];
    }
    memcpy(out, (const char*)e->data + at * size, size);
    out += size;
    int32_t i = e->type.rank - 1;
    for (; i >= 0; --i) {
      if (!drop[i] && ++index[i] < e->type.dims[i]) break;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

// Stored once and broadcast: a bias is known as a bias again.
pestle_value_t* pestle_rule_constant_repeats(pestle_formula_t* f,
                                             pestle_node_t* node) {
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(node);
  if (e->splat || !pestle_dtype_is(e->type.dtype, PESTLE_KIND_FLOAT) ||
      pestle_type_count(&e->type) < 2) {
    return NULL;
  }
  pestle_type_t small = pestle_type_make(e->type.dtype, 0, NULL);
  bool drop[PESTLE_MAX_RANK], any = false;
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < e->type.rank; ++i) {
    drop[i] = e->type.dims[i] == 1 || is_repeated(e, i);
    any = any || (drop[i] && e->type.dims[i] > 1);
    if (drop[i]) continue;
    dims[small.rank] = i;
    small.dims[small.rank++] = e->type.dims[i];
  }
  if (!any) return NULL;
  size_t size = pestle_type_bytes(&small);
  char* data = pestle_f_memory(f, size);
  if (!data) return NULL;
  take_first(e, drop, data);
  pestle_elements_t kept = {small, data, size, small.rank == 0};
  pestle_value_t* row = pestle_f_elements(f, &kept);
  return pestle_f_broadcast_to(f, row, &e->type, dims);
}

// --- Reshape ---

pestle_value_t* pestle_rule_reshape_same(pestle_formula_t* f,
                                         pestle_node_t* node) {
  (void)f;
  if (operand(node, 0)->type == type_of(node)) return operand(node, 0);
  return NULL;
}

pestle_value_t* pestle_rule_reshape_reshape(pestle_formula_t* f,
                                            pestle_node_t* node) {
  (void)f;
  pestle_value_t* x = pestle_pass_through(operand(node, 0), PESTLE_OP_RESHAPE);
  return x ? pestle_f_reshape_to(f, x, type_of(node)) : NULL;
}

// A broadcast that is being seen through a reshape. Dims are taken in groups of
// equal product on both sides; the source's part of each group is found.
typedef struct regroup_t {
  const pestle_type_t *from, *to;   // of the reshape
  int64_t source[PESTLE_MAX_RANK];  // |from| dims: the source's extent, or 1
  pestle_type_t part;               // the new source
  int64_t dims[PESTLE_MAX_RANK];    // of the new broadcast
} regroup_t;

static bool add_part(regroup_t* g, int32_t to_dim, int64_t extent) {
  if (g->part.rank >= PESTLE_MAX_RANK) return false;
  g->dims[g->part.rank] = to_dim;
  g->part.dims[g->part.rank++] = extent;
  return true;
}

// The group [f0, f1) of |from| that becomes [t0, t1) of |to|.
static bool regroup(regroup_t* g, int32_t f0, int32_t f1, int32_t t0,
                    int32_t t1) {
  bool all = true, none = true;
  for (int32_t f = f0; f < f1; ++f) {
    if (g->from->dims[f] == 1) continue;
    all = all && g->source[f] == g->from->dims[f];
    none = none && g->source[f] == 1;
  }
  if (none) return true;
  if (all) {
    for (int32_t t = t0; t < t1; ++t) {
      if (g->to->dims[t] != 1 && !add_part(g, t, g->to->dims[t])) return false;
    }
    return true;
  }
  // Some of the group is repeated: its dims must stay whole.
  int32_t f = f0, t = t0;
  for (;;) {
    while (f < f1 && g->from->dims[f] == 1)
      ++f;
    while (t < t1 && g->to->dims[t] == 1)
      ++t;
    if (f == f1 || t == t1) return f == f1 && t == t1;
    if (g->from->dims[f] != g->to->dims[t]) return false;
    if (g->source[f] != 1 && !add_part(g, t, g->to->dims[t])) return false;
    ++f, ++t;
  }
}

static bool regroup_all(regroup_t* g) {
  int32_t f = 0, t = 0;
  while (f < g->from->rank || t < g->to->rank) {
    int32_t f0 = f, t0 = t;
    int64_t left = 1, right = 1;
    if (f < g->from->rank) left = g->from->dims[f++];
    if (t < g->to->rank) right = g->to->dims[t++];
    while (left != right) {
      if (left < right ? f == g->from->rank : t == g->to->rank) return false;
      if (left < right) {
        left *= g->from->dims[f++];
      } else {
        right *= g->to->dims[t++];
      }
    }
    if (!regroup(g, f0, f, t0, t)) return false;
  }
  return true;
}

pestle_value_t* pestle_rule_reshape_broadcast(pestle_formula_t* f,
                                              pestle_node_t* node) {
  const pestle_node_t* broadcast = operand(node, 0)->node;
  if (!broadcast || broadcast->op != PESTLE_OP_BROADCAST_IN_DIM ||
      pestle_type_count(type_of(node)) == 0) {
    return NULL;
  }
  pestle_value_t* x = operand(broadcast, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(broadcast, broadcast_dimensions);
  regroup_t g = {.from = type_of(broadcast), .to = type_of(node)};
  g.part.dtype = x->type->dtype;
  for (int32_t i = 0; i < g.from->rank; ++i)
    g.source[i] = 1;
  for (size_t i = 0; i < dims.count; ++i) {
    if (i && dims.data[i] < dims.data[i - 1]) return NULL;
    g.source[dims.data[i]] = x->type->dims[i];
  }
  if (!regroup_all(&g)) return NULL;
  pestle_value_t* part = pestle_f_reshape_to(f, x, &g.part);
  return pestle_f_broadcast_to(f, part, type_of(node), g.dims);
}

// --- Transpose ---

pestle_value_t* pestle_rule_transpose_same(pestle_formula_t* f,
                                           pestle_node_t* node) {
  (void)f;
  if (pestle_pass_i64s_is_iota(PESTLE_NODE_I64S(node, permutation))) {
    return operand(node, 0);
  }
  return NULL;
}

pestle_value_t* pestle_rule_transpose_transpose(pestle_formula_t* f,
                                                pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  if (!inner || inner->op != PESTLE_OP_TRANSPOSE) return NULL;
  pestle_i64s_t first = PESTLE_NODE_I64S(inner, permutation);
  pestle_i64s_t second = PESTLE_NODE_I64S(node, permutation);
  int64_t both[PESTLE_MAX_RANK];
  for (size_t i = 0; i < second.count; ++i) {
    both[i] = first.data[second.data[i]];
  }
  return pestle_f_transpose(f, operand(inner, 0), both);
}

static bool is_same_order(pestle_axes_t* t, const pestle_axes_list_t* a,
                          const pestle_axes_list_t* b) {
  pestle_axis_t x = {.count = 0}, y = {.count = 0};
  for (int32_t i = 0; i < a->rank; ++i)
    pestle_axes_append(t, &x, &a->axis[i]);
  for (int32_t i = 0; i < b->rank; ++i)
    pestle_axes_append(t, &y, &b->axis[i]);
  pestle_axes_expand(t, &x);
  pestle_axes_expand(t, &y);
  return x.count == y.count && !memcmp(x.atoms, y.atoms, x.count);
}

// Whether |transpose| turns matrices, as a contraction reads them where they lie
// (fuse_rules.c).
static bool turns_matrices(const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  size_t n = perm.count;
  return n >= 2 && perm.data[n - 1] == (int64_t)n - 2 &&
         perm.data[n - 2] == (int64_t)n - 1 &&
         pestle_pass_i64s_is_iota((pestle_i64s_t){perm.data, n - 2});
}

// Two transposes, with reshapes between them that neither tears apart, are one. But of what
// others read too a matrix is turned as it lies, unless nothing moves in the end.
pestle_value_t* pestle_rule_transpose_views(pestle_formula_t* f,
                                            pestle_node_t* node) {
  (void)f;
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t to, axes;
  pestle_value_t* x = &node->results[0];
  if (!pestle_pass_is(operand(node, 0), PESTLE_OP_RESHAPE) ||
      !pestle_type_is_static(type_of(node))) {
    return NULL;
  }
  pestle_axes_of(&t, type_of(node), true, &to);
  axes = to;
  bool shared = false;
  do {
    if (!pestle_axes_step(&t, false, false, &x, &axes)) return NULL;
    shared = shared || x->use_count > 1;
  } while (pestle_pass_is(x, PESTLE_OP_RESHAPE));
  bool stays = shared && turns_matrices(node);
  if (!pestle_pass_is(x, PESTLE_OP_TRANSPOSE) ||
      !pestle_axes_step(&t, false, false, &x, &axes) ||
      (stays && !is_same_order(&t, &axes, &to))) {
    return NULL;
  }
  return pestle_axes_arrange(&t, f, x, &axes, &to, false);
}

pestle_value_t* pestle_rule_transpose_ones(pestle_formula_t* f,
                                           pestle_node_t* node) {
  if (pestle_pass_turns(node)) return NULL;
  return pestle_f_reshape_to(f, operand(node, 0), type_of(node));
}

pestle_value_t* pestle_rule_transpose_broadcast(pestle_formula_t* f,
                                                pestle_node_t* node) {
  const pestle_node_t* broadcast = operand(node, 0)->node;
  if (!broadcast || broadcast->op != PESTLE_OP_BROADCAST_IN_DIM) return NULL;
  pestle_i64s_t perm = PESTLE_NODE_I64S(node, permutation);
  pestle_i64s_t dims = PESTLE_NODE_I64S(broadcast, broadcast_dimensions);
  int64_t inverse[PESTLE_MAX_RANK], moved[PESTLE_MAX_RANK];
  for (size_t i = 0; i < perm.count; ++i)
    inverse[perm.data[i]] = (int64_t)i;
  for (size_t i = 0; i < dims.count; ++i)
    moved[i] = inverse[dims.data[i]];
  return pestle_f_broadcast_to(f, operand(broadcast, 0), type_of(node), moved);
}

// --- Broadcast ---

pestle_value_t* pestle_rule_broadcast_same(pestle_formula_t* f,
                                           pestle_node_t* node) {
  (void)f;
  if (operand(node, 0)->type == type_of(node) &&
      pestle_pass_i64s_is_iota(PESTLE_NODE_I64S(node, broadcast_dimensions))) {
    return operand(node, 0);
  }
  return NULL;
}

pestle_value_t* pestle_rule_broadcast_broadcast(pestle_formula_t* f,
                                                pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  if (!inner || inner->op != PESTLE_OP_BROADCAST_IN_DIM) return NULL;
  pestle_i64s_t first = PESTLE_NODE_I64S(inner, broadcast_dimensions);
  pestle_i64s_t second = PESTLE_NODE_I64S(node, broadcast_dimensions);
  int64_t both[PESTLE_MAX_RANK];
  for (size_t i = 0; i < first.count; ++i) {
    both[i] = second.data[first.data[i]];
  }
  return pestle_f_broadcast_to(f, operand(inner, 0), type_of(node), both);
}

// Nothing is repeated: the same elements in the same order.
pestle_value_t* pestle_rule_broadcast_ones(pestle_formula_t* f,
                                           pestle_node_t* node) {
  const pestle_type_t* from = operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  if (pestle_type_count(from) != pestle_type_count(type_of(node))) return NULL;
  int64_t last = -1;
  for (size_t i = 0; i < dims.count; ++i) {
    if (from->dims[i] == 1) continue;
    if (dims.data[i] < last || from->dims[i] == 0) return NULL;
    last = dims.data[i];
  }
  return pestle_f_reshape_to(f, operand(node, 0), type_of(node));
}

// The reshape below only inserts ones: broadcast from what is before it.
pestle_value_t* pestle_rule_broadcast_reshape(pestle_formula_t* f,
                                              pestle_node_t* node) {
  pestle_value_t* x = pestle_pass_through(operand(node, 0), PESTLE_OP_RESHAPE);
  if (!x) return NULL;
  const pestle_type_t* middle = operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  int64_t direct[PESTLE_MAX_RANK];
  int32_t next = 0;
  for (int32_t i = 0; i < middle->rank; ++i) {
    if (next < x->type->rank && x->type->dims[next] == middle->dims[i]) {
      direct[next++] = dims.data[i];
    } else if (middle->dims[i] != 1) {
      return NULL;
    }
  }
  if (next != x->type->rank) return NULL;
  return pestle_f_broadcast_to(f, x, type_of(node), direct);
}

// Dims of one element say nothing: a bias is a row, however it was stored.
pestle_value_t* pestle_rule_broadcast_unit_dims(pestle_formula_t* f,
                                                pestle_node_t* node) {
  pestle_value_t* x = operand(node, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  pestle_type_t type = pestle_type_make(x->type->dtype, 0, NULL);
  int64_t kept[PESTLE_MAX_RANK];
  for (size_t i = 0; i < dims.count; ++i) {
    if (x->type->dims[i] == 1) continue;
    kept[type.rank] = dims.data[i];
    type.dims[type.rank++] = x->type->dims[i];
  }
  if (type.rank == x->type->rank) return NULL;
  x = pestle_f_reshape_to(f, x, &type);
  return pestle_f_broadcast_to(f, x, type_of(node), kept);
}

// --- Slice, pad, concatenate, reverse ---

pestle_value_t* pestle_rule_slice_full(pestle_formula_t* f,
                                       pestle_node_t* node) {
  (void)f;
  if (operand(node, 0)->type == type_of(node)) return operand(node, 0);
  return NULL;
}

pestle_value_t* pestle_rule_slice_slice(pestle_formula_t* f,
                                        pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  if (!inner || inner->op != PESTLE_OP_SLICE) return NULL;
  pestle_i64s_t s0 = PESTLE_NODE_I64S(inner, start_indices);
  pestle_i64s_t t0 = PESTLE_NODE_I64S(inner, strides);
  pestle_i64s_t s1 = PESTLE_NODE_I64S(node, start_indices);
  pestle_i64s_t t1 = PESTLE_NODE_I64S(node, strides);
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];
  for (size_t i = 0; i < s0.count; ++i) {
    int64_t count = type_of(node)->dims[i];
    if (count == 0) return NULL;
    starts[i] = s0.data[i] + s1.data[i] * t0.data[i];
    strides[i] = count == 1 ? 1 : t0.data[i] * t1.data[i];
    limits[i] = starts[i] + (count - 1) * strides[i] + 1;
  }
  return pestle_f_slice(f, operand(inner, 0), starts, limits, strides);
}

pestle_value_t* pestle_rule_slice_concatenate(pestle_formula_t* f,
                                              pestle_node_t* node) {
  const pestle_node_t* concat = operand(node, 0)->node;
  if (!concat || concat->op != PESTLE_OP_CONCATENATE) return NULL;
  size_t dim = (size_t)PESTLE_NODE_I64(concat, dimension);
  pestle_i64s_t start = PESTLE_NODE_I64S(node, start_indices);
  pestle_i64s_t limit = PESTLE_NODE_I64S(node, limit_indices);
  int64_t begin = 0;
  for (uint32_t i = 0; i < concat->operand_count; ++i) {
    pestle_value_t* part = operand(concat, i);
    int64_t end = begin + part->type->dims[dim];
    if (start.data[dim] >= begin && limit.data[dim] <= end && begin < end) {
      int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
      memcpy(starts, start.data, start.count * sizeof(int64_t));
      memcpy(limits, limit.data, limit.count * sizeof(int64_t));
      starts[dim] -= begin;
      limits[dim] -= begin;
      return pestle_f_slice(f, part, starts, limits,
                            PESTLE_NODE_I64S(node, strides).data);
    }
    begin = end;
  }
  return NULL;
}

pestle_value_t* pestle_rule_pad_nothing(pestle_formula_t* f,
                                        pestle_node_t* node) {
  (void)f;
  if (pestle_pass_i64s_all(PESTLE_NODE_I64S(node, edge_padding_low), 0) &&
      pestle_pass_i64s_all(PESTLE_NODE_I64S(node, edge_padding_high), 0) &&
      pestle_pass_i64s_all(PESTLE_NODE_I64S(node, interior_padding), 0)) {
    return operand(node, 0);
  }
  return NULL;
}

enum { MAX_PARTS = 256 };

// Leaves out empty parts; one part alone is the result.
pestle_value_t* pestle_rule_concatenate_one(pestle_formula_t* f,
                                            pestle_node_t* node) {
  size_t dim = (size_t)PESTLE_NODE_I64(node, dimension);
  pestle_value_t* parts[MAX_PARTS];
  size_t count = 0;
  if (node->operand_count > MAX_PARTS) return NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (operand(node, i)->type->dims[dim]) parts[count++] = operand(node, i);
  }
  if (count == 1 || node->operand_count == 1) {
    return count ? parts[0] : operand(node, 0);
  }
  if (count == 0 || count == node->operand_count) return NULL;
  return pestle_f_concatenate(f, parts, count, (int64_t)dim);
}

pestle_value_t* pestle_rule_concatenate_nested(pestle_formula_t* f,
                                               pestle_node_t* node) {
  (void)f;
  int64_t dim = PESTLE_NODE_I64(node, dimension);
  pestle_value_t* parts[MAX_PARTS];
  size_t count = 0;
  bool found = false;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* part = operand(node, i);
    bool nested = pestle_pass_is(part, PESTLE_OP_CONCATENATE) &&
                  part->use_count == 1 &&
                  PESTLE_NODE_I64(part->node, dimension) == dim;
    uint32_t inner = nested ? part->node->operand_count : 1;
    if (count + inner > MAX_PARTS) return NULL;
    for (uint32_t j = 0; j < inner; ++j) {
      parts[count++] = nested ? operand(part->node, j) : part;
    }
    found = found || nested;
  }
  return found ? pestle_f_concatenate(f, parts, count, dim) : NULL;
}

pestle_value_t* pestle_rule_reverse_nothing(pestle_formula_t* f,
                                            pestle_node_t* node) {
  (void)f;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (type_of(node)->dims[dims.data[i]] > 1) return NULL;
  }
  return operand(node, 0);
}
