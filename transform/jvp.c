// SPDX-License-Identifier: Apache-2.0
// Forward mode. Each op that a tangent reaches gets, right behind it, the ops that
// compute its results' tangents:
//
//   %y = sine %x          ->   %y = sine %x
//                              %c = cosine %x
//                              %y.t = multiply %c, %x.t
#include "base/fault.h"
#include "base/mem.h"
#include "transform/recompute.h"
#include "transform/transform.h"

void pestle_jvp_init(pestle_allocator_t allocator, pestle_function_t* function,
                     bool is_linear, pestle_jvp_t* out_jvp) {
  *out_jvp = (pestle_jvp_t){
      .allocator = allocator, .function = function, .is_linear = is_linear};
  pestle_arena_init(allocator, &out_jvp->arena);
  pestle_map_init(allocator, &out_jvp->tangents);
}

void pestle_jvp_deinit(pestle_jvp_t* j) {
  pestle_status_release(j->f.status);
  pestle_map_deinit(&j->tangents);
  pestle_arena_deinit(&j->arena);
}

pv_t* pestle_tangent(const pestle_jvp_t* j, const pv_t* value) {
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&j->tangents, (uintptr_t)value);
  return slot ? slot->ptr : NULL;
}

pv_t* pestle_tangent_or_zeros(pestle_jvp_t* j, pv_t* value) {
  pv_t* t = pestle_tangent(j, value);
  return t ? t : pestle_zeros(&j->f, value);
}

void pestle_tangent_set(pestle_jvp_t* j, const pv_t* value, pv_t* tangent) {
  if (!tangent) return;
  if (!pestle_map_set_u64_ptr(&j->tangents, (uintptr_t)value, tangent)) {
    pestle_f_fail(&j->f, PESTLE_OOM());
  }
}

// --- Refusals ---

// The first argument of the function that |node|'s tangents come from.
static const pv_t* find_source(const pestle_jvp_t* j,
                               const pestle_node_t* node) {
  const pestle_block_t* body = j->function->body->block;
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    const pv_t* argument = body->arguments[i];
    pestle_map_t reached;
    bool found = false;
    if (!pestle_tangent(j, argument)) continue;
    pestle_map_init(j->allocator, &reached);
    pestle_map_set_u64(&reached, (uintptr_t)argument, 1);
    for (const pestle_node_t* n = body->first; n && !found; n = n->next) {
      if (!pestle_reads(n, &reached)) continue;
      for (uint32_t r = 0; r < n->result_count; ++r)
        pestle_map_set_u64(&reached, (uintptr_t)&n->results[r], 1);
      found = n == node;
    }
    pestle_map_deinit(&reached);
    if (found) return argument;
  }
  return NULL;
}

void pestle_jvp_refuse(pestle_jvp_t* j, const pestle_node_t* node,
                       const char* why) {
  const pv_t* source = find_source(j, node);
  const char* name =
      source ? pestle_function_argument_name(j->function, source->index) : NULL;
  if (!source) {
    pestle_f_fail(
        &j->f, pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED, "%s", why));
  } else {
    pestle_f_fail(
        &j->f,
        pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                          "%s; argument %u%s%s%s, for which the derivative is "
                          "taken, reaches it",
                          why, (unsigned)source->index, name ? " ('" : "",
                          name ? name : "", name ? "')" : ""));
  }
}

// --- Kinds of rows ---

static void jvp_linear(pestle_jvp_t* j, const pestle_node_t* node,
                       pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t** operands = pestle_value_array(f, &j->arena, node->operand_count);
  if (!operands) return;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pv_t* operand = pestle_node_operand(node, i);
    operands[i] = t[i] ? t[i]
                  : pestle_is_smooth(operand->type->dtype)
                      ? pestle_zeros(f, operand)
                      : operand;
  }
  bool is_typed =
      pestle_op_info((pestle_op_t)node->op)->rule == PESTLE_RULE_TYPED;
  out[0] =
      pestle_f_like(f, node, operands, is_typed ? node->results[0].type : NULL);
}

static void jvp_bilinear(pestle_jvp_t* j, const pestle_node_t* node,
                         pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* terms[2] = {NULL, NULL};
  bool is_typed =
      pestle_op_info((pestle_op_t)node->op)->rule == PESTLE_RULE_TYPED;
  for (size_t i = 0; i < 2; ++i) {
    if (!t[i] || (i && PESTLE_FAULT(one_side_of_product))) continue;
    pv_t* operands[2] = {pestle_node_operand(node, 0),
                         pestle_node_operand(node, 1)};
    operands[i] = t[i];
    terms[i] = pestle_f_like(f, node, operands,
                             is_typed ? node->results[0].type : NULL);
  }
  out[0] = pestle_sum(f, terms, 2);
}

static const char refused[] =
    "has no derivative; take that of another argument, or put what has one in "
    "its place";

static void apply(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                  pv_t** out) {
  pestle_op_t op = (pestle_op_t)node->op;
  switch ((pestle_derivative_t)pestle_transform_row(op).derivative) {
    case PESTLE_DERIVATIVE_DECOMPOSE:
      pestle_custom_jvp(j, node, t, out);
      return;
    case PESTLE_DERIVATIVE_ZERO:
      return;
    case PESTLE_DERIVATIVE_PARTIAL:
      pestle_jvp_partial(j, node, t, out);
      return;
    case PESTLE_DERIVATIVE_LINEAR:
      jvp_linear(j, node, t, out);
      return;
    case PESTLE_DERIVATIVE_BILINEAR:
      jvp_bilinear(j, node, t, out);
      return;
    case PESTLE_DERIVATIVE_RULE:
      pestle_jvp_rule(op)(j, node, t, out);
      return;
    case PESTLE_DERIVATIVE_MISSING:
    case PESTLE_DERIVATIVE_REFUSED:
      pestle_jvp_refuse(j, node, refused);
  }
}

// Whether the rule knows about values that its regions read from outside.
static bool takes_captures(const pestle_node_t* node) {
  return pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_CONTROL;
}

static pestle_status_t jvp_node(pestle_jvp_t* j, pestle_node_t* node) {
  pestle_formula_t* f = &j->f;
  *f = pestle_formula_make((pestle_builder_t){.module = j->function->module,
                                              .block = node->block,
                                              .before = node->next,
                                              .loc = node->loc});
  pestle_arena_mark_t mark = pestle_arena_mark(&j->arena);
  pv_t** t = pestle_value_array(f, &j->arena, node->operand_count);
  pv_t** out = pestle_value_array(f, &j->arena, node->result_count);
  for (uint32_t i = 0; t && i < node->operand_count; ++i)
    t[i] = pestle_tangent(j, pestle_node_operand(node, i));
  if (!takes_captures(node) && pestle_captures(node, &j->tangents)) {
    pestle_jvp_refuse(j, node,
                      "its region reads a value that has a tangent; make it an "
                      "operand");
  } else if (t && out) {
    apply(j, node, t, out);
  }
  for (uint32_t r = 0; out && r < node->result_count; ++r) {
    bool is_smooth = pestle_is_smooth(node->results[r].type->dtype);
    if (is_smooth) pestle_tangent_set(j, &node->results[r], out[r]);
  }
  pestle_arena_rewind(&j->arena, mark);
  pestle_status_t status = f->status;
  f->status = NULL;
  return status;
}

// Whether some result can have a tangent; one without elements has none.
static bool has_smooth_result(const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    const pestle_type_t* type = node->results[r].type;
    if (pestle_is_smooth(type->dtype) && pestle_type_count(type)) return true;
  }
  return false;
}

static pestle_status_t expand(pestle_jvp_t* j, pestle_node_t* node,
                              pestle_node_t** out_next) {
  if (j->ranges && node->block == j->function->body->block) {
    return pestle_ranges_expand(j->ranges, node, out_next);
  }
  return pestle_transform_expand(j->allocator, node, out_next);
}

static pestle_status_t jvp_nodes(pestle_jvp_t* j, pestle_node_t* first,
                                 const pestle_node_t* end) {
  for (pestle_node_t *n = first, *next; n != end; n = next) {
    next = n->next;
    if (!has_smooth_result(n) || !pestle_reads(n, &j->tangents)) continue;
    if (pestle_transform_row((pestle_op_t)n->op).derivative ==
            PESTLE_DERIVATIVE_DECOMPOSE &&
        !pestle_custom_has_jvp(j, n)) {
      PESTLE_TRY(expand(j, n, &next));
    } else {
      PESTLE_TRY(jvp_node(j, n));
    }
  }
  return NULL;
}

pestle_status_t pestle_jvp_block(pestle_jvp_t* j, pestle_block_t* block) {
  return jvp_nodes(j, block->first, NULL);
}

void pestle_jvp_behind(pestle_jvp_t* j, pestle_node_t* node) {
  pestle_formula_t f = j->f;
  if (f.status) return;
  f.status = jvp_nodes(j, node->next, f.builder.before);
  j->f = f;
}
