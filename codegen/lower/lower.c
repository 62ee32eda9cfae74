// SPDX-License-Identifier: Apache-2.0
// The driver of lowering and the ops that are one expression an element.
#include "codegen/lower/lower.h"

#include <string.h>

#include "base/half.h"
#include "codegen/lower/lower_internal.h"

// --- Values ---

const pestle_expr_t* pestle_lower_at(pestle_lower_t* lower,
                                     const pestle_value_t* value,
                                     const pestle_affine_t* const* index) {
  const pestle_lowered_t* v = &lower->values[value->scratch];
  if (v->splat) return v->splat;
  return pestle_expr_read(lower->nest, v->tensor, index, NULL);
}

void pestle_lower_axes(pestle_lower_t* lower, uint32_t stage,
                       pestle_index_t out_index) {
  const pestle_nest_stage_t* s = pestle_nest_stage(lower->nest, stage);
  for (uint32_t i = 0; i < s->map_count; ++i) {
    out_index[i] = pestle_affine_axis(lower->nest, s->roots[i]);
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
  pestle_lower_ends(lower, node, stage);
  if (!lower->nest->failed) {
    pestle_lower_axes(lower, stage, out_index);
  } else {  // what reads the index goes on to the next look at |failed|
    for (int i = 0; i < PESTLE_MAX_RANK; ++i) {
      out_index[i] = pestle_affine_const(lower->nest, 0);
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

const pestle_affine_t* pestle_lower_spread(pestle_nest_t* nest,
                                           const pestle_affine_t* at,
                                           int64_t step, int64_t extent,
                                           const pestle_expr_t** guard) {
  *guard = pestle_lower_and(
      nest, *guard,
      pestle_expr_inside(nest, at, 0, extent ? (extent - 1) * step + 1 : 0));
  if (step > 1) {
    *guard = pestle_lower_and(
        nest, *guard,
        pestle_expr_inside(nest, pestle_affine_mod(nest, at, step), 0, 1));
  }
  return pestle_affine_div(nest, at, step);
}

// --- Constants ---

const pestle_expr_t* pestle_lower_first_element(pestle_nest_t* nest,
                                                const pestle_elements_t* e) {
  double f;
  int64_t i;
  pestle_elements_first(e, &f, &i);
  return pestle_expr_const(nest, e->type.dtype, f, i);
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
  e->affine = axes[PESTLE_NODE_I64(node, iota_dimension)];
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
    case PESTLE_FUSE_DIRECT:
    case PESTLE_FUSE_COLLECTIVE:
      break;
  }
  return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                           "'%s' inside a fusion has no lowering", info->name);
}

// --- The group ---

// Numbers the values that |group| needs.
static size_t number_values(const pestle_block_t* body,
                            const pestle_kernel_group_t* group) {
  size_t count = 0;
  for (uint32_t i = 0; i < group->argument_count; ++i) {
    body->arguments[group->arguments[i]]->scratch = count++;
  }
  for (uint32_t i = 0; i < group->node_count; ++i) {
    pestle_node_t* n = group->nodes[i];
    for (uint32_t r = 0; r < n->result_count; ++r) {
      n->results[r].scratch = count++;
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

static void lower_arguments(pestle_lower_t* lower, const pestle_block_t* body,
                            const pestle_kernel_group_t* group) {
  for (uint32_t i = 0; i < group->argument_count; ++i) {
    uint32_t slot = group->arguments[i];
    const pestle_value_t* arg = body->arguments[slot];
    if (lower_empty(lower, arg)) continue;
    const pestle_value_t* operand = pestle_node_operand(lower->fusion, slot);
    const char* name = operand->name ? operand->name : "x";
    uint32_t t = pestle_nest_add_tensor(lower->nest, name, PESTLE_TENSOR_INPUT,
                                        slot, arg->type);
    if (lower->nest->failed) return;
    lower->nest->tensors.data[t].constant = pestle_value_is_stored(operand);
    lower->values[arg->scratch].tensor = t;
  }
}

// The result's flat index of the element that |axes| is in the piece's value.
static const pestle_affine_t* write_position(pestle_nest_t* nest,
                                             const pestle_piece_t* p,
                                             const pestle_type_t* whole,
                                             pestle_index_t axes) {
  pestle_index_t index;
  memcpy(index, axes, sizeof(index));
  const pestle_type_t* type = whole;
  if (p->concat_dim >= 0) {
    index[p->concat_dim] =
        pestle_affine_add(nest, index[p->concat_dim],
                          pestle_affine_const(nest, p->concat_offset));
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
  return pestle_affine_flatten(nest, type, index);
}

// The type that |p->value| (or the concatenation that it is part of) has.
static const pestle_type_t* whole_type(const pestle_node_t* fusion,
                                       const pestle_piece_t* p) {
  if (p->view_count) {
    return pestle_node_operand(p->views[p->view_count - 1], 0)->type;
  }
  return fusion->results[p->slot].type;
}

// --- Ends ---

// Where axis |axis| of result |p->slot| is in the piece's value; -1: nowhere. |scale|
// follows it.
static int32_t axis_of_piece(const pestle_node_t* fusion,
                             const pestle_piece_t* p, int32_t axis,
                             int64_t* scale) {
  const pestle_type_t* type = fusion->results[p->slot].type;
  for (uint32_t v = 0; v < p->view_count; ++v) {
    const pestle_node_t* view = p->views[v];
    const pestle_type_t* to = pestle_node_operand(view, 0)->type;
    int64_t times = 1, parts = 1;
    if (view->op == PESTLE_OP_TRANSPOSE) {
      axis = (int32_t)PESTLE_NODE_I64S(view, permutation).data[axis];
    } else if (!pestle_reshape_axis(type, to, axis, &axis, &times, &parts) ||
               *scale % parts) {
      return -1;
    }
    *scale = *scale / parts * times;
    type = to;
  }
  return axis == p->concat_dim || *scale > INT32_MAX ? -1 : axis;
}

// The end of axis |axis| of a piece's value: operand and scale. False: it has none.
static bool end_of_piece(const pestle_node_t* fusion, const pestle_piece_t* p,
                         int32_t axis, int64_t* out_operand,
                         int64_t* out_scale) {
  pestle_i64s_t ends = PESTLE_NODE_I64S(fusion, ends);
  for (size_t i = 0; i < ends.count; i += 4) {
    int64_t scale = ends.data[i + 3];
    if (ends.data[i] != p->slot ||
        axis_of_piece(fusion, p, (int32_t)ends.data[i + 1], &scale) != axis) {
      continue;
    }
    *out_operand = ends.data[i + 2];
    *out_scale = scale;
    return true;
  }
  return false;
}

// An axis of the stage ends where all that it writes does.
static void set_ends(pestle_lower_t* lower, const pestle_kernel_group_t* group,
                     uint32_t stage) {
  pestle_nest_t* nest = lower->nest;
  const pestle_block_t* body = pestle_node_body(lower->fusion, 0);
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t a = 0; a < s->map_count; ++a) {
    int64_t operand = 0, scale = 0, other, times;
    bool all = true;
    for (uint32_t p = 0; p < group->piece_count && all; ++p) {
      all = end_of_piece(lower->fusion, &group->pieces[p], (int32_t)a, &other,
                         &times) &&
            (p == 0 || (other == operand && times == scale));
      if (all) operand = other, scale = times;
    }
    if (!all) continue;
    pestle_nest_axis_t* axis = &nest->axes.data[s->roots[a]];
    axis->end_scale = scale;
    axis->end_tensor = lower->values[body->arguments[operand]->scratch].tensor;
  }
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
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t* const*, n);
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
    const pestle_affine_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t*, 1);
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
  size_t count = number_values(body, group);
  lower.values =
      pestle_arena_alloc_zero(nest->arena, (count + 1) * sizeof(*lower.values),
                              _Alignof(pestle_lowered_t));
  if (!lower.values) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  lower_arguments(&lower, body, group);
  for (uint32_t i = 0; i < group->node_count && !nest->failed; ++i) {
    if (lower_empty_node(&lower, group->nodes[i])) continue;
    PESTLE_TRY(lower_node(&lower, group->nodes[i]));
  }
  if (!nest->failed) PESTLE_TRY(add_outputs(&lower, group, aliases));
  if (!nest->failed && PESTLE_NODE_I64S(fusion, ends).count) {
    set_ends(&lower, group, (uint32_t)nest->stages.size - 1);
  }
  return pestle_nest_status(nest);
}
