// SPDX-License-Identifier: Apache-2.0
// The driver of lowering and the ops that are one expression an element.
#include "codegen/lower.h"

#include <string.h>

#include "base/half.h"
#include "codegen/lower_internal.h"

// --- Partition into kernels ---

static bool is_bijective_view(const pestle_node_t* node) {
  return node &&
         (node->op == PESTLE_OP_TRANSPOSE || node->op == PESTLE_OP_RESHAPE);
}

static bool has_fold(const pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    switch (pestle_op_info((pestle_op_t)n->op)->fuse) {
      case PESTLE_FUSE_REDUCTION:
      case PESTLE_FUSE_WINDOW:
      case PESTLE_FUSE_CONTRACTION:
        return true;
      default:
        break;
    }
  }
  return false;
}

// Where a fold is, its consumer runs over the fold's own axes and the views
// after it become part of the write.
static pestle_status_t strip_views(pestle_arena_t* arena, pestle_piece_t* p) {
  size_t count = 0;
  for (pestle_value_t* v = p->value; is_bijective_view(v->node);
       v = pestle_node_operand(v->node, 0)) {
    ++count;
  }
  p->views = PESTLE_ARENA_ARRAY(arena, pestle_node_t*, count ? count : 1);
  if (!p->views) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  while (is_bijective_view(p->value->node)) {
    p->views[p->view_count++] = p->value->node;
    p->value = pestle_node_operand(p->value->node, 0);
  }
  return NULL;
}

static bool same_domain(const pestle_value_t* a, const pestle_value_t* b) {
  return a->type->rank == b->type->rank &&
         !memcmp(a->type->dims, b->type->dims,
                 (size_t)a->type->rank * sizeof(int64_t));
}

typedef struct partition_t {
  pestle_arena_t* arena;
  pestle_kernel_group_t* groups;
  uint32_t count;
  uint32_t capacity;
} partition_t;

static pestle_status_t add_piece(partition_t* part, pestle_piece_t piece) {
  for (uint32_t g = 0; g < part->count && piece.concat_dim < 0; ++g) {
    pestle_kernel_group_t* group = &part->groups[g];
    if (group->pieces[0].concat_dim >= 0 ||
        !same_domain(group->pieces[0].value, piece.value)) {
      continue;
    }
    group->pieces[group->piece_count++] = piece;
    return NULL;
  }
  pestle_kernel_group_t* group = &part->groups[part->count];
  group->pieces =
      PESTLE_ARENA_ARRAY(part->arena, pestle_piece_t, part->capacity);
  if (!group->pieces) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  ++part->count;
  group->pieces[0] = piece;
  group->piece_count = 1;
  return NULL;
}

static pestle_status_t add_result(partition_t* part, bool folds, uint32_t slot,
                                  pestle_value_t* value) {
  pestle_piece_t piece = {.slot = slot, .value = value, .concat_dim = -1};
  if (folds || (value->node && value->node->op == PESTLE_OP_RESHAPE)) {
    PESTLE_TRY(strip_views(part->arena, &piece));
  }
  pestle_node_t* node = piece.value->node;
  if (!node || node->op != PESTLE_OP_CONCATENATE) {
    return add_piece(part, piece);
  }
  piece.concat_dim = (int32_t)PESTLE_NODE_I64(node, dimension);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    piece.value = pestle_node_operand(node, i);
    PESTLE_TRY(add_piece(part, piece));
    piece.concat_offset += piece.value->type->dims[piece.concat_dim];
  }
  return NULL;
}

pestle_status_t pestle_lower_partition(pestle_arena_t* arena,
                                       const pestle_node_t* fusion,
                                       pestle_kernel_group_t** out_groups,
                                       uint32_t* out_count) {
  pestle_block_t* body = pestle_node_body(fusion, 0);
  const pestle_node_t* ret = body->last;
  partition_t part = {.arena = arena, .capacity = ret->operand_count};
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    // A concatenation may stand behind views: count the widest possibility.
    pestle_value_t* v = pestle_node_operand(ret, i);
    while (is_bijective_view(v->node))
      v = pestle_node_operand(v->node, 0);
    if (v->node && v->node->op == PESTLE_OP_CONCATENATE) {
      part.capacity += v->node->operand_count;
    }
  }
  part.groups = PESTLE_ARENA_ARRAY(arena, pestle_kernel_group_t,
                                   part.capacity ? part.capacity : 1);
  if (!part.groups) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  bool folds = has_fold(body);
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    PESTLE_TRY(add_result(&part, folds, i, pestle_node_operand(ret, i)));
  }
  *out_groups = part.groups;
  *out_count = part.count;
  return NULL;
}

// --- Values ---

const pestle_expr_t* pestle_lower_at(pestle_lower_t* lower,
                                     const pestle_value_t* value,
                                     const pestle_lin_t* const* index) {
  const pestle_lowered_t* v = &lower->values[value->scratch];
  if (v->splat) return v->splat;
  return pestle_expr_read(lower->nest, v->tensor, index, NULL);
}

void pestle_lower_axes(pestle_lower_t* lower, uint32_t stage,
                       pestle_index_t out_index) {
  const pestle_nest_stage_t* s = pestle_nest_stage(lower->nest, stage);
  for (uint32_t i = 0; i < s->map_count; ++i) {
    out_index[i] = pestle_lin_axis(lower->nest, s->roots[i]);
  }
}

static const char* stage_name(const pestle_node_t* node) {
  if (node->results[0].name) return node->results[0].name;
  return pestle_op_info((pestle_op_t)node->op)->name;
}

uint32_t pestle_lower_map(pestle_lower_t* lower, const pestle_node_t* node,
                          pestle_index_t out_index) {
  uint32_t stage = pestle_nest_add_stage(lower->nest, stage_name(node),
                                         node->results[0].type);
  if (!lower->nest->failed) {
    pestle_lower_axes(lower, stage, out_index);
  } else {  // what reads the index goes on to the next look at |failed|
    for (int i = 0; i < PESTLE_MAX_RANK; ++i) {
      out_index[i] = pestle_lin_const(lower->nest, 0);
    }
  }
  return stage;
}

void pestle_lower_set(pestle_lower_t* lower, const pestle_node_t* node,
                      uint32_t stage, const pestle_expr_t* body) {
  if (lower->nest->failed) return;
  pestle_nest_stage_t* s = pestle_nest_stage(lower->nest, stage);
  s->values[0] = body;
  lower->values[node->results[0].scratch].tensor = s->tensors[0];
}

const pestle_expr_t* pestle_lower_and(pestle_nest_t* nest,
                                      const pestle_expr_t* a,
                                      const pestle_expr_t* b) {
  if (!a || (a->kind == PESTLE_EXPR_CONST && a->i)) return b;
  if (!b || (b->kind == PESTLE_EXPR_CONST && b->i)) return a;
  return pestle_expr_op(nest, PESTLE_OP_AND, PESTLE_I1, a, b, NULL);
}

const pestle_lin_t* pestle_lower_spread(pestle_nest_t* nest,
                                        const pestle_lin_t* at, int64_t step,
                                        int64_t extent,
                                        const pestle_expr_t** guard) {
  *guard = pestle_lower_and(
      nest, *guard,
      pestle_expr_inside(nest, at, 0, extent ? (extent - 1) * step + 1 : 0));
  if (step > 1) {
    *guard = pestle_lower_and(
        nest, *guard,
        pestle_expr_inside(nest, pestle_lin_mod(nest, at, step), 0, 1));
  }
  return pestle_lin_div(nest, at, step);
}

// --- Constants ---

static double splat_float(const pestle_elements_t* e) {
  uint64_t bits = 0;
  memcpy(&bits, e->data, pestle_dtype_size(e->type.dtype));
  return pestle_float_decode(e->type.dtype, bits);
}

static int64_t splat_int(const pestle_elements_t* e) {
  const pestle_dtype_info_t* info = pestle_dtype_info(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, e->data, info->size);
  if (info->kind == PESTLE_KIND_SIGNED && info->size < 8) {
    unsigned shift = 64u - 8u * info->size;
    return (int64_t)(bits << shift) >> shift;
  }
  return (int64_t)bits;
}

const pestle_expr_t* pestle_lower_first_element(pestle_nest_t* nest,
                                                const pestle_elements_t* e) {
  bool f = pestle_dtype_is(e->type.dtype, PESTLE_KIND_FLOAT);
  return pestle_expr_const(nest, e->type.dtype, f ? splat_float(e) : 0.0,
                           f ? 0 : splat_int(e));
}

static pestle_status_t lower_constant(pestle_lower_t* lower,
                                      const pestle_node_t* node) {
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(node);
  pestle_lowered_t* out = &lower->values[node->results[0].scratch];
  if (e->splat || pestle_type_count(&e->type) == 1) {
    out->splat = pestle_lower_first_element(lower->nest, e);
    return NULL;
  }
  uint32_t slot = lower->fusion->operand_count + lower->extra_inputs++;
  out->tensor = pestle_nest_add_tensor(lower->nest, "constant",
                                       PESTLE_TENSOR_INPUT, slot, &e->type);
  if (!lower->nest->failed) {
    lower->nest->tensors.data[out->tensor].constant = true;
    lower->nest->tensors.data[out->tensor].elements = e;
  }
  return NULL;
}

// --- One expression an element ---

static pestle_status_t lower_scalar(pestle_lower_t* lower,
                                    const pestle_node_t* node) {
  pestle_index_t axes;
  uint32_t stage = pestle_lower_map(lower, node, axes);
  const pestle_expr_t* args[3] = {0};
  for (uint32_t i = 0; i < node->operand_count && i < 3; ++i) {
    args[i] = pestle_lower_at(lower, pestle_node_operand(node, i), axes);
  }
  pestle_lower_set(
      lower, node, stage,
      pestle_expr_op(lower->nest, (pestle_op_t)node->op,
                     node->results[0].type->dtype, args[0], args[1], args[2]));
  return NULL;
}

static pestle_status_t lower_convert(pestle_lower_t* lower,
                                     const pestle_node_t* node) {
  pestle_index_t axes;
  uint32_t stage = pestle_lower_map(lower, node, axes);
  pestle_lower_set(
      lower, node, stage,
      pestle_expr_cast(
          lower->nest,
          pestle_lower_at(lower, pestle_node_operand(node, 0), axes),
          node->results[0].type->dtype));
  return NULL;
}

static pestle_status_t lower_iota(pestle_lower_t* lower,
                                  const pestle_node_t* node) {
  pestle_index_t axes;
  uint32_t stage = pestle_lower_map(lower, node, axes);
  pestle_expr_t* e = pestle_expr_make(lower->nest, PESTLE_EXPR_INDEX,
                                      node->results[0].type->dtype);
  e->lin = axes[PESTLE_NODE_I64(node, iota_dimension)];
  pestle_lower_set(lower, node, stage, e);
  return NULL;
}

static pestle_status_t lower_node(pestle_lower_t* lower,
                                  const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  if (pestle_op_is_scalar((pestle_op_t)node->op)) {
    return lower_scalar(lower, node);
  }
  switch ((pestle_fuse_class_t)info->fuse) {
    case PESTLE_FUSE_SOURCE:
      return node->op == PESTLE_OP_IOTA ? lower_iota(lower, node)
                                        : lower_constant(lower, node);
    case PESTLE_FUSE_ELEMENTWISE:
      return node->op == PESTLE_OP_CONVERT ? lower_convert(lower, node)
                                           : pestle_lower_bitcast(lower, node);
    case PESTLE_FUSE_VIEW:
      return pestle_lower_view(lower, node);
    case PESTLE_FUSE_GATHER:
      return pestle_lower_gather(lower, node);
    case PESTLE_FUSE_REDUCTION:
      return pestle_lower_reduce(lower, node);
    case PESTLE_FUSE_WINDOW:
      return pestle_lower_window(lower, node);
    case PESTLE_FUSE_CONTRACTION:
      return node->op == PESTLE_OP_DOT_GENERAL
                 ? pestle_lower_dot(lower, node)
                 : pestle_lower_convolution(lower, node);
    case PESTLE_FUSE_COMPOSITE:
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
      break;
  }
  return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                           "'%s' inside a fusion has no lowering", info->name);
}

// --- The group ---

// Numbers the values and marks the nodes that |group| needs (node->scratch).
static size_t mark_needed(const pestle_block_t* body,
                          const pestle_kernel_group_t* group) {
  size_t count = 0;
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    body->arguments[i]->scratch = count++;
  }
  for (pestle_node_t* n = body->first; n; n = n->next) {
    n->scratch = 0;
    for (uint32_t r = 0; r < n->result_count; ++r) {
      n->results[r].scratch = count++;
    }
  }
  for (uint32_t p = 0; p < group->piece_count; ++p) {
    if (group->pieces[p].value->node) group->pieces[p].value->node->scratch = 1;
  }
  for (pestle_node_t* n = body->last; n; n = n->prev) {
    if (!n->scratch) continue;
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      pestle_node_t* def = pestle_node_operand(n, i)->node;
      if (def) def->scratch = 1;
    }
  }
  return count;
}

// No element of an empty value is ever used, but an expression may name one
// behind a guard that never holds: it reads a zero instead of a tensor that has
// nowhere to point to.
static bool lower_empty(pestle_lower_t* lower, const pestle_value_t* value) {
  if (pestle_type_count(value->type)) return false;
  lower->values[value->scratch].splat =
      pestle_expr_const(lower->nest, value->type->dtype, 0, 0);
  return true;
}

static bool lower_empty_node(pestle_lower_t* lower, const pestle_node_t* node) {
  uint32_t empty = 0;
  for (uint32_t r = 0; r < node->result_count; ++r) {
    empty += lower_empty(lower, &node->results[r]);
  }
  return empty && empty == node->result_count;
}

static void lower_arguments(pestle_lower_t* lower, const pestle_block_t* body) {
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    const pestle_value_t* arg = body->arguments[i];
    if (lower_empty(lower, arg)) continue;
    const pestle_value_t* operand = pestle_node_operand(lower->fusion, i);
    const char* name = operand->name ? operand->name : "x";
    uint32_t t = pestle_nest_add_tensor(lower->nest, name, PESTLE_TENSOR_INPUT,
                                        i, arg->type);
    if (lower->nest->failed) return;
    lower->nest->tensors.data[t].constant =
        pestle_value_constant(operand) != NULL;
    lower->values[arg->scratch].tensor = t;
  }
}

// The result's flat index of the element that |axes| is in the piece's value.
static const pestle_lin_t* write_position(pestle_nest_t* nest,
                                          const pestle_piece_t* p,
                                          const pestle_type_t* whole,
                                          pestle_index_t axes) {
  pestle_index_t index;
  memcpy(index, axes, sizeof(index));
  const pestle_type_t* type = whole;
  if (p->concat_dim >= 0) {
    index[p->concat_dim] = pestle_lin_add(
        nest, index[p->concat_dim], pestle_lin_const(nest, p->concat_offset));
  }
  for (uint32_t v = p->view_count; v-- > 0;) {
    const pestle_node_t* view = p->views[v];
    const pestle_type_t* to = view->results[0].type;
    pestle_index_t next = {0};
    if (view->op == PESTLE_OP_TRANSPOSE) {
      pestle_i64s_t perm = PESTLE_NODE_I64S(view, permutation);
      for (size_t d = 0; d < perm.count; ++d)
        next[d] = index[perm.data[d]];
    } else {
      pestle_lower_reshape(nest, type, index, to, next);
    }
    memcpy(index, next, sizeof(index));
    type = to;
  }
  return pestle_lin_flatten(nest, type, index);
}

// The type that |p->value| (or the concatenation that it is part of) has.
static const pestle_type_t* whole_type(const pestle_node_t* fusion,
                                       const pestle_piece_t* p) {
  if (p->view_count) {
    return pestle_node_operand(p->views[p->view_count - 1], 0)->type;
  }
  return fusion->results[p->slot].type;
}

static pestle_status_t add_outputs(pestle_lower_t* lower,
                                   const pestle_kernel_group_t* group,
                                   const int32_t* aliases) {
  pestle_nest_t* nest = lower->nest;
  uint32_t n = group->piece_count;
  uint32_t stage =
      pestle_nest_add_stage(nest, "y", group->pieces[0].value->type);
  if (nest->failed) return NULL;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  s->value_count = n;
  s->values = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  s->tensors = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, n);
  s->write_index =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_lin_t* const*, n);
  if (!s->values || !s->tensors || !s->write_index) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  pestle_index_t axes = {0};
  pestle_lower_axes(lower, stage, axes);
  // The stage writes results instead: its own tensor's name is free again.
  nest->tensors.data[nest->tensors.size - 1].name = "";
  for (uint32_t p = 0; p < n; ++p) {
    const pestle_piece_t* piece = &group->pieces[p];
    const pestle_value_t* result = &lower->fusion->results[piece->slot];
    uint32_t t =
        pestle_nest_add_tensor(nest, result->name ? result->name : "y",
                               PESTLE_TENSOR_OUTPUT, piece->slot, result->type);
    const pestle_lin_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_lin_t*, 1);
    if (nest->failed || !index) {
      pestle_nest_fail_memory(nest);
      return NULL;
    }
    index[0] =
        write_position(nest, piece, whole_type(lower->fusion, piece), axes);
    nest->tensors.data[t].stage = (int32_t)stage;
    if (aliases) nest->tensors.data[t].alias = aliases[piece->slot];
    s->tensors[p] = t;
    s->write_index[p] = index;
    s->values[p] = pestle_lower_at(lower, piece->value, axes);
  }
  return NULL;
}

pestle_status_t pestle_lower_group(const pestle_node_t* fusion,
                                   const pestle_kernel_group_t* group,
                                   const int32_t* aliases,
                                   pestle_numerics_t numerics,
                                   pestle_nest_t* nest) {
  const pestle_block_t* body = pestle_node_body(fusion, 0);
  pestle_lower_t lower = {.nest = nest, .fusion = fusion, .numerics = numerics};
  size_t count = mark_needed(body, group);
  lower.values =
      pestle_arena_alloc_zero(nest->arena, (count + 1) * sizeof(*lower.values),
                              _Alignof(pestle_lowered_t));
  if (!lower.values) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  lower_arguments(&lower, body);
  for (pestle_node_t* n = body->first; n && !nest->failed; n = n->next) {
    if (!n->scratch || lower_empty_node(&lower, n)) continue;
    PESTLE_TRY(lower_node(&lower, n));
  }
  if (!nest->failed) PESTLE_TRY(add_outputs(&lower, group, aliases));
  return pestle_nest_status(nest);
}
