// SPDX-License-Identifier: Apache-2.0
// One step of pushing a transpose through its user.
//
//   op(transpose(x, p), ...)  ->  transpose(op'(x, ...), p)
//
// where op' is the op with its dims renamed by p: dim i of the transposed
// tensor is dim p[i] of x. Operands that are not transposed get the inverse in
// front of them; with more of those than of the others nothing is pushed.
#include <string.h>

#include "passes/channels_last.h"
#include "passes/fuse.h"

typedef struct push_t {
  pestle_formula_t* f;
  pestle_node_t* node;
  const int64_t* perm;  // of the transpose that is pushed
  int64_t inverse[PESTLE_MAX_RANK];
  int32_t rank;
  bool strict;  // reductions keep the order of their terms
  pestle_layout_reason_t* why;
} push_t;

static pestle_value_t* stay(const push_t* p, pestle_layout_reason_t why) {
  *p->why = why;
  return NULL;
}

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static const pestle_node_t* movable(const pestle_value_t* value) {
  const pestle_node_t* n = value->node;
  return n && n->op == PESTLE_OP_TRANSPOSE && n->scratch == PESTLE_MOVABLE
             ? n
             : NULL;
}

static bool is_same(const push_t* p, const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  return (int32_t)perm.count == p->rank &&
         !memcmp(perm.data, p->perm, perm.count * sizeof(int64_t));
}

// |list| has one entry a dim of the transposed tensor: those of x.
static void rename_entries(const push_t* p, const int64_t* list, int64_t* out) {
  for (int32_t i = 0; i < p->rank; ++i)
    out[p->perm[i]] = list[i];
}

// The value before the transpose; other values get the inverse.
static pestle_value_t* before(const push_t* p, pestle_value_t* value) {
  const pestle_node_t* n = movable(value);
  if (value->type->rank != p->rank) return value;
  if (n && is_same(p, n)) return operand(n, 0);
  const pestle_elements_t* e = pestle_value_constant(value);
  if (e && e->splat) {
    pestle_elements_t moved = *e;
    rename_entries(p, e->type.dims, moved.type.dims);
    return pestle_f_elements(p->f, &moved);
  }
  return pestle_layout_transpose(p->f, value, p->inverse);
}

static pestle_value_t* finish(const push_t* p, pestle_value_t* result) {
  return pestle_layout_transpose(p->f, result, p->perm);
}

// Attributes with some lists replaced.
typedef struct edit_t {
  pestle_attr_t attrs[12];
  int64_t lists[6][2 * PESTLE_MAX_RANK];
  size_t used;
} edit_t;

static bool copy_attrs(const pestle_node_t* node, edit_t* e) {
  e->used = 0;
  if (node->attr_count > 12) return false;
  memcpy(e->attrs, node->attrs, node->attr_count * sizeof(e->attrs[0]));
  return true;
}

// Room for one more list; no row has more than six that are renamed.
static int64_t* new_list(edit_t* e) {
  return e->lists[e->used++];
}

static pestle_attr_t* find_attr(const push_t* p, edit_t* e,
                                pestle_attr_name_t name) {
  for (uint32_t i = 0; i < p->node->attr_count; ++i) {
    if (e->attrs[i].name == name) return &e->attrs[i];
  }
  return NULL;
}

// Renames a list with |each| numbers a dim; an empty one stays.
static void rename_each(const push_t* p, edit_t* e, pestle_attr_t* attr,
                        int32_t each) {
  if (!attr->as.i64s.count) return;
  int64_t* list = new_list(e);
  for (int32_t i = 0; i < p->rank; ++i) {
    for (int32_t k = 0; k < each; ++k) {
      list[p->perm[i] * each + k] = attr->as.i64s.data[i * each + k];
    }
  }
  attr->as.i64s.data = list;
}

// Renames a dim, or a set of them.
static void rename_dims(const push_t* p, edit_t* e, pestle_attr_t* attr) {
  if (attr->kind == PESTLE_ATTR_KIND_I64) {
    bool known = attr->as.i64 >= 0 && attr->as.i64 < p->rank;
    if (known) attr->as.i64 = p->perm[attr->as.i64];
    return;
  }
  int64_t* list = new_list(e);
  size_t count = attr->as.i64s.count;
  for (size_t i = 0; i < count; ++i) {
    int64_t dim = p->perm[attr->as.i64s.data[i]];
    size_t at = i;
    for (; at > 0 && list[at - 1] > dim; --at)
      list[at] = list[at - 1];
    list[at] = dim;
  }
  attr->as.i64s.data = list;
}

// Renames what the attributes say of the dims of operand 0.
static void rename_attrs(const push_t* p, edit_t* e) {
  size_t count;
  const pestle_attr_row_t* rows =
      pestle_op_attr_rows((pestle_op_t)p->node->op, &count);
  for (size_t i = 0; i < count; ++i) {
    pestle_attr_t* attr = find_attr(p, e, (pestle_attr_name_t)rows[i].name);
    if (!attr || rows[i].of != 0) continue;
    switch ((pestle_attr_meaning_t)rows[i].meaning) {
      case PESTLE_ATTR_IS_DIMS:
        rename_dims(p, e, attr);
        break;
      case PESTLE_ATTR_IS_EACH:
        rename_each(p, e, attr, 1);
        break;
      case PESTLE_ATTR_IS_PAIRS:
        rename_each(p, e, attr, 2);
        break;
      case PESTLE_ATTR_IS_PLAIN:
      case PESTLE_ATTR_IS_SPATIAL:
        break;
    }
  }
}

static pestle_value_t* remake(const push_t* p, edit_t* e,
                              pestle_value_t* const* operands,
                              const pestle_type_t* type) {
  pestle_node_t edited = *p->node;
  edited.attrs = e->attrs;
  return pestle_f_like(p->f, &edited, operands, type);
}

// --- Ops ---

enum { MAX_OPERANDS = 64 };

// How many operands have the transpose, and how many would need its inverse.
static bool pays(const push_t* p) {
  int32_t have = 0, need = 0;
  for (uint32_t i = 0; i < p->node->operand_count; ++i) {
    const pestle_value_t* v = operand(p->node, i);
    const pestle_node_t* t = movable(v);
    if (v->type->rank != p->rank || pestle_value_is_stored(v) ||
        pestle_pass_is(v, PESTLE_OP_BROADCAST_IN_DIM)) {
      continue;
    }
    if (t && is_same(p, t)) {
      ++have;
    } else {
      ++need;
    }
  }
  return have >= need;
}

// Elementwise ops and concatenate: every operand in the new layout.
static pestle_value_t* push_all(const push_t* p) {
  pestle_value_t* operands[MAX_OPERANDS];
  edit_t e;
  if (p->node->operand_count > MAX_OPERANDS || !copy_attrs(p->node, &e)) {
    return stay(p, PESTLE_LAYOUT_NO_FORM);
  }
  if (!pays(p)) return stay(p, PESTLE_LAYOUT_NO_GAIN);
  for (uint32_t i = 0; i < p->node->operand_count; ++i) {
    operands[i] = before(p, operand(p->node, i));
  }
  rename_attrs(p, &e);
  pestle_type_t type = *p->node->results[0].type;
  rename_entries(p, p->node->results[0].type->dims, type.dims);
  return finish(p, remake(p, &e, operands, &type));
}

// Pad, slice, reverse, softmax: operand 0 in the new layout, lists renamed.
static pestle_value_t* push_first(const push_t* p) {
  pestle_value_t* operands[2];
  edit_t e;
  if (!copy_attrs(p->node, &e) || p->node->operand_count > 2) {
    return stay(p, PESTLE_LAYOUT_NO_FORM);
  }
  for (uint32_t i = 0; i < p->node->operand_count; ++i) {
    operands[i] = operand(p->node, i);
  }
  operands[0] = before(p, operands[0]);
  rename_attrs(p, &e);
  return finish(p, remake(p, &e, operands, NULL));
}

// Layer norm, RMS norm: scale and offset have the normalised dims, in their order.
static pestle_value_t* push_norm(const push_t* p) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(p->node, dimensions);
  pestle_value_t* operands[3];
  edit_t e;
  bool ordered = true;
  for (size_t i = 1; i < dims.count; ++i) {
    ordered &= p->perm[dims.data[i - 1]] < p->perm[dims.data[i]];
  }
  if (!ordered || !copy_attrs(p->node, &e)) {
    return stay(p, PESTLE_LAYOUT_NO_FORM);
  }
  for (uint32_t i = 0; i < p->node->operand_count; ++i)
    operands[i] = operand(p->node, i);
  operands[0] = before(p, operands[0]);
  rename_attrs(p, &e);
  return finish(p, remake(p, &e, operands, NULL));
}

// The node with |x| before it and the attributes |e|.
static pestle_value_t* clone_with_region(const push_t* p, edit_t* e,
                                         pestle_value_t* x) {
  pestle_copier_t copier;
  pestle_node_t changed = *p->node, *made;
  if (!x) return NULL;
  changed.attrs = e->attrs;
  pestle_copier_init(pestle_context_allocator(p->f->builder.module->context),
                     p->f->builder, &copier);
  pestle_status_t status = pestle_copier_set(&copier, operand(p->node, 0), x);
  if (!status) status = pestle_copier_node(&copier, &changed, &made);
  pestle_copier_deinit(&copier);
  return status ? pestle_f_fail(p->f, status) : pestle_node_result(made, 0);
}

static pestle_value_t* push_window(const push_t* p) {
  edit_t e;
  if (p->node->operand_count != 2 || !copy_attrs(p->node, &e)) {
    return stay(p, PESTLE_LAYOUT_NO_FORM);
  }
  pestle_value_t* x = before(p, operand(p->node, 0));
  rename_attrs(p, &e);
  pestle_value_t* y = clone_with_region(p, &e, x);
  return finish(p, y);
}

// The kept dims may come in another order, which is a smaller transpose.
static pestle_value_t* push_reduce(const push_t* p) {
  edit_t e;
  if (p->node->operand_count != 2 || !copy_attrs(p->node, &e)) {
    return stay(p, PESTLE_LAYOUT_NO_FORM);
  }
  pestle_i64s_t dims = PESTLE_NODE_I64S(p->node, dimensions);
  for (size_t i = 1; i < dims.count && p->strict; ++i) {
    if (p->perm[dims.data[i]] < p->perm[dims.data[i - 1]]) {
      return stay(p, PESTLE_LAYOUT_STRICT);
    }
  }
  pestle_value_t* x = before(p, operand(p->node, 0));
  rename_attrs(p, &e);
  pestle_value_t* y = clone_with_region(p, &e, x);
  int64_t place[PESTLE_MAX_RANK], perm[PESTLE_MAX_RANK], next = 0;
  int32_t kept = 0;
  for (int32_t d = 0; d < p->rank; ++d) {
    place[d] = pestle_i64s_has(dims, p->inverse[d]) ? -1 : next++;
  }
  for (int32_t i = 0; i < p->rank; ++i) {
    if (place[p->perm[i]] >= 0) perm[kept++] = place[p->perm[i]];
  }
  return pestle_layout_transpose(p->f, y, perm);
}

// The result's dims come in the order of x's, each new dim behind the one that
// it follows now: what repeats a pixel stays beside the pixel.
static pestle_value_t* push_broadcast(const push_t* p) {
  const pestle_type_t* to = p->node->results[0].type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(p->node, broadcast_dimensions);
  int64_t order[PESTLE_MAX_RANK], moved[PESTLE_MAX_RANK];
  int64_t back[PESTLE_MAX_RANK];
  int32_t count = 0;
  for (size_t i = 1; i < dims.count; ++i) {
    if (dims.data[i] < dims.data[i - 1]) return stay(p, PESTLE_LAYOUT_TURNS);
  }
  for (int32_t d = 0; d < to->rank && d < dims.data[0]; ++d)
    order[count++] = d;
  for (int32_t j = 0; j < p->rank; ++j) {
    int64_t d = dims.data[p->inverse[j]];
    moved[j] = count;
    do {
      order[count++] = d++;
    } while (d < to->rank && !pestle_i64s_has(dims, d));
  }
  pestle_type_t type = *to;
  for (int32_t i = 0; i < to->rank; ++i) {
    type.dims[i] = to->dims[order[i]];
    back[order[i]] = i;
  }
  pestle_value_t* x = before(p, operand(p->node, 0));
  x = pestle_f_broadcast_to(p->f, x, &type, moved);
  return pestle_layout_transpose(p->f, x, back);
}

// --- Reshape ---

// Dims of both sides in groups of equal product.
typedef struct groups_t {
  int32_t from[PESTLE_MAX_RANK + 1], to[PESTLE_MAX_RANK + 1];
  int32_t count;
} groups_t;

static bool end_group(groups_t* g, int32_t f, int32_t t) {
  if (g->count == PESTLE_MAX_RANK) return false;
  ++g->count;
  g->from[g->count] = f;
  g->to[g->count] = t;
  return true;
}

// Dims of one element that stand on one side alone are groups of their own.
static bool find_groups(const pestle_type_t* from, const pestle_type_t* to,
                        groups_t* g) {
  int32_t f = 0, t = 0;
  g->count = 0;
  g->from[0] = g->to[0] = 0;
  while (f < from->rank || t < to->rank) {
    int64_t left = f < from->rank ? from->dims[f] : 0;
    int64_t right = t < to->rank ? to->dims[t] : 0;
    if ((left == 1) != (right == 1)) {
      if (!end_group(g, f + (left == 1), t + (right == 1))) return false;
      f = g->from[g->count];
      t = g->to[g->count];
      continue;
    }
    if (!left || !right) return false;
    ++f, ++t;
    while (left != right) {
      if (left < right ? f == from->rank : t == to->rank) return false;
      if (left < right) {
        left *= from->dims[f++];
      } else {
        right *= to->dims[t++];
      }
    }
    if (!end_group(g, f, t)) return false;
  }
  return true;
}

// Whether the dims of each group lie together and in order before the
// transpose; |order| is then the groups as they come there.
static bool order_groups(const push_t* p, const groups_t* g, int32_t* order) {
  int32_t count = 0;
  // New dims of one element have no place before: in front, where no kernel
  // looks for its runs.
  for (int32_t k = 0; k < g->count; ++k) {
    if (g->from[k] == g->from[k + 1]) order[count++] = k;
  }
  for (int32_t d = 0; d < p->rank;) {
    int64_t i = p->inverse[d];
    int32_t group = 0;
    while (g->from[group + 1] <= i)
      ++group;
    if (i != g->from[group]) return false;
    for (int32_t k = g->from[group]; k < g->from[group + 1]; ++k, ++d) {
      if (d >= p->rank || p->inverse[d] != k) return false;
    }
    order[count++] = group;
  }
  return count == g->count;
}

static pestle_value_t* push_reshape(const push_t* p) {
  const pestle_type_t* to = p->node->results[0].type;
  groups_t g;
  int32_t order[PESTLE_MAX_RANK];
  if (pestle_type_count(to) == 0 ||
      !find_groups(operand(p->node, 0)->type, to, &g) ||
      !order_groups(p, &g, order)) {
    return stay(p, PESTLE_LAYOUT_REGROUPS);
  }
  pestle_type_t type = pestle_type_make(to->dtype, 0, NULL);
  int64_t perm[PESTLE_MAX_RANK];
  for (int32_t k = 0; k < g.count; ++k) {
    for (int32_t t = g.to[order[k]]; t < g.to[order[k] + 1]; ++t) {
      perm[t] = type.rank;
      type.dims[type.rank++] = to->dims[t];
    }
  }
  pestle_value_t* x = before(p, operand(p->node, 0));
  x = pestle_f_reshape_to(p->f, x, &type);
  return pestle_layout_transpose(p->f, x, perm);
}

// A transpose of the module's own: the two are one.
static pestle_value_t* push_transpose(const push_t* p) {
  return pestle_layout_transpose(p->f, operand(p->node, 0),
                                 PESTLE_NODE_I64S(p->node, permutation).data);
}

// --- Gather along one axis ---

static pestle_value_t* push_gather(const push_t* p) {
  const pestle_node_t* n = p->node;
  pestle_i64s_t map = PESTLE_NODE_I64S(n, start_index_map);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(n, collapsed_slice_dims);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(n, slice_sizes);
  pestle_i64s_t offset = PESTLE_NODE_I64S(n, offset_dims);
  const pestle_type_t* from = operand(n, 0)->type;
  if (map.count != 1 || !pestle_i64s_equal(map, collapsed) ||
      PESTLE_NODE_I64S(n, operand_batching_dims).count ||
      n->results[0].type->rank != p->rank ||
      pestle_i64s_has(offset, map.data[0])) {
    return stay(p, PESTLE_LAYOUT_GATHERS);
  }
  for (int32_t i = 0; i < p->rank; ++i) {
    if (i != map.data[0] && sizes.data[i] != from->dims[i]) {
      return stay(p, PESTLE_LAYOUT_GATHERS);
    }
  }
  edit_t e;
  if (!copy_attrs(n, &e)) return stay(p, PESTLE_LAYOUT_NO_FORM);
  int64_t axis = p->perm[map.data[0]], kept[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < p->rank; ++i) {
    if (i != axis) kept[count++] = i;
  }
  find_attr(p, &e, PESTLE_ATTR_offset_dims)->as.i64s.data = kept;
  rename_attrs(p, &e);
  pestle_value_t* operands[2] = {before(p, operand(n, 0)), operand(n, 1)};
  return finish(p, remake(p, &e, operands, NULL));
}

// --- Dispatch ---

static pestle_value_t* push(const push_t* p) {
  switch (p->node->op) {
    case PESTLE_OP_CONCATENATE:
      return push_all(p);
    case PESTLE_OP_PAD:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_SOFTMAX:
    case PESTLE_OP_LOG_SOFTMAX:
      return push_first(p);
    case PESTLE_OP_LAYER_NORM:
    case PESTLE_OP_RMS_NORM:
      return push_norm(p);
    case PESTLE_OP_REDUCE:
      return push_reduce(p);
    case PESTLE_OP_REDUCE_WINDOW:
      return push_window(p);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return push_broadcast(p);
    case PESTLE_OP_RESHAPE:
      return push_reshape(p);
    case PESTLE_OP_TRANSPOSE:
      return push_transpose(p);
    case PESTLE_OP_GATHER:
      return push_gather(p);
    default:
      // A map's region would have to be copied.
      return pestle_fuse_is_elementwise(p->node) && !p->node->region_count
                 ? push_all(p)
                 : stay(p, PESTLE_LAYOUT_NO_FORM);
  }
}

pestle_value_t* pestle_push_transpose(pestle_formula_t* f, pestle_node_t* node,
                                      bool strict,
                                      pestle_layout_reason_t* out_why) {
  *out_why = PESTLE_LAYOUT_NONE;
  const pestle_node_t* t = NULL;
  bool first_only =
      node->op != PESTLE_OP_CONCATENATE && !pestle_fuse_is_elementwise(node);
  for (uint32_t i = 0; i < node->operand_count && !t; ++i) {
    if (i == 0 || !first_only) t = movable(operand(node, i));
  }
  if (!t || node->result_count != 1 || node->scratch == PESTLE_MOVABLE) {
    return NULL;
  }
  push_t p = {.f = f,
              .node = node,
              .rank = t->results[0].type->rank,
              .strict = strict,
              .why = out_why};
  p.perm = PESTLE_NODE_I64S(t, permutation).data;
  for (int32_t i = 0; i < p.rank; ++i)
    p.inverse[p.perm[i]] = i;
  return push(&p);
}
