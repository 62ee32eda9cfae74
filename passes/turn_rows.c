// SPDX-License-Identifier: Apache-2.0
// The rows of a product in the order in which they lie. torch's attention works on [s, b, e]
// where the model has [b, s, e]:
//
//   %0 = transpose %x     // [b, s, e] -> [s, b, e]
//   %1 = dot %0, %w       // [s, b, n]         %1 = dot %x, %w      // [b, s, n]
//   %2 = add %1, %bias                     ->  %2 = add %1, %bias
//   %3 = transpose %2     // [b, s, n]
//
// The transpose moves behind the product where it meets another one there. Reshapes that
// merge rows move behind what is done element by element, so that it passes.
#include <string.h>

#include "passes/axes.h"
#include "passes/channels_last.h"
#include "passes/fuse.h"

enum { MOST_STEPS = 12 };

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// --- Whether it pays ---

static bool is_elementwise(const pestle_node_t* node) {
  return pestle_fuse_is_elementwise(node) && !node->region_count &&
         node->result_count == 1;
}

// Whether a copy of |value| in another order of rows costs nothing.
static bool is_free(const pestle_value_t* value) {
  pestle_value_t* inner = pestle_pass_through(value, PESTLE_OP_RESHAPE);
  if (inner) value = inner;
  return pestle_value_is_stored(value) ||
         pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM);
}

// Whether all that reads |value| is a transpose, behind steps that a transpose passes.
static bool meets_transposes(const pestle_value_t* value, int depth) {
  if (!value->use_count || !depth) return false;
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    const pestle_node_t* n = u->user;
    if (n->op == PESTLE_OP_TRANSPOSE && pestle_pass_turns(n)) continue;
    bool view = n->op == PESTLE_OP_RESHAPE || n->op == PESTLE_OP_SLICE ||
                n->op == PESTLE_OP_TRANSPOSE;
    if (!view && !is_elementwise(n)) return false;
    for (uint32_t i = 0; i < n->operand_count && !view; ++i) {
      const pestle_value_t* x = operand(n, i);
      if (x != value && !is_free(x)) return false;
    }
    if (!meets_transposes(&n->results[0], depth - 1)) return false;
  }
  return true;
}

// --- The product ---

typedef struct rows_t {
  pestle_axes_t t;
  pestle_value_t* source;  // of the left operand, before its views
  pestle_axes_list_t axes, before, behind;  // its own, new, as they were
  pestle_axis_t rows;                       // as they lie
  int64_t perm[PESTLE_MAX_RANK];            // from those to the old order
} rows_t;

// Finds the rows' atoms in the order in which they lie. False: that is theirs already.
static bool order_rows(rows_t* r, const pestle_axes_list_t* to) {
  pestle_axis_t old = {.count = 0}, all = {.count = 0};
  bool turned = false;
  for (int32_t i = 0; i + 1 < to->rank; ++i)
    pestle_axes_append(&r->t, &old, &to->axis[i]);
  for (int32_t i = 0; i < r->axes.rank; ++i)
    pestle_axes_append(&r->t, &all, &r->axes.axis[i]);
  if (r->t.full || old.count + 1 > PESTLE_MAX_RANK) return false;
  for (uint8_t i = 0; i < all.count; ++i) {
    for (uint8_t j = 0; j < old.count; ++j) {
      if (old.atoms[j] != all.atoms[i]) continue;
      turned |= j != r->rows.count;
      r->perm[j] = r->rows.count;
      r->rows.atoms[r->rows.count++] = old.atoms[j];
    }
  }
  return turned && r->rows.count == old.count;
}

static bool find_rows(const pestle_node_t* dot, rows_t* r) {
  pestle_value_t* lhs = operand(dot, 0);
  int32_t last = lhs->type->rank - 1;
  pestle_i64s_t contracted = PESTLE_NODE_I64S(dot, lhs_contracting_dimensions);
  pestle_axes_list_t to;
  if (PESTLE_NODE_I64S(dot, lhs_batching_dimensions).count ||
      contracted.count != 1 || contracted.data[0] != last || last < 1 ||
      operand(dot, 1)->type->rank != 2 || !pestle_type_is_static(lhs->type)) {
    return false;
  }
  pestle_axes_of(&r->t, lhs->type, true, &to);
  r->axes = to;
  r->source = lhs;
  pestle_axes_trace(&r->t, false, true, &r->source, &r->axes);
  if (r->source == lhs || !order_rows(r, &to)) return false;
  r->before.rank = r->rows.count + 1;
  for (uint8_t i = 0; i < r->rows.count; ++i)
    r->before.axis[i] = (pestle_axis_t){{r->rows.atoms[i]}, 1};
  r->before.axis[r->rows.count] = to.axis[last];
  return true;
}

pestle_value_t* pestle_turn_rows(pestle_formula_t* f, pestle_node_t* dot) {
  rows_t r = {.source = NULL};
  if (!find_rows(dot, &r) || !meets_transposes(&dot->results[0], MOST_STEPS)) {
    return NULL;
  }
  pestle_value_t* x =
      pestle_axes_arrange(&r.t, f, r.source, &r.axes, &r.before, false);
  if (!x) return NULL;
  int32_t count = r.rows.count;
  int64_t contracted = count;
  pestle_attr_t attrs[12];
  if (dot->attr_count > sizeof attrs / sizeof *attrs) return NULL;
  memcpy(attrs, dot->attrs, dot->attr_count * sizeof(attrs[0]));
  for (uint32_t i = 0; i < dot->attr_count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_lhs_contracting_dimensions)
      attrs[i].as.i64s = (pestle_i64s_t){&contracted, 1};
  }
  const pestle_type_t* old = dot->results[0].type;
  pestle_type_t type = *x->type;
  type.dtype = old->dtype;
  type.dims[count] = old->dims[old->rank - 1];
  pestle_value_t* y = pestle_f_make(f, PESTLE_OP_DOT_GENERAL,
                                    (pestle_value_t*[]){x, operand(dot, 1)}, 2,
                                    attrs, dot->attr_count, &type);
  r.perm[count] = count;
  y = pestle_layout_transpose(f, y, r.perm);
  return pestle_f_reshape_to(f, y, old);
}

// --- Reshapes that merge rows ---

// The movable transpose whose result |value| is with other dims, or NULL.
static pestle_value_t* merged(const pestle_value_t* value) {
  pestle_value_t* x = pestle_pass_through(value, PESTLE_OP_RESHAPE);
  return x && pestle_pass_is(x, PESTLE_OP_TRANSPOSE) &&
                 x->node->scratch == PESTLE_MOVABLE
             ? x
             : NULL;
}

pestle_value_t* pestle_push_merged(pestle_formula_t* f, pestle_node_t* node,
                                   bool strict) {
  enum { MOST_OPERANDS = 8 };
  pestle_value_t *operands[MOST_OPERANDS], *turned = NULL;
  pestle_layout_reason_t why;
  if (node->op == PESTLE_OP_RESHAPE) {
    turned = merged(operand(node, 0));
    return turned ? pestle_f_reshape_to(f, turned, node->results[0].type)
                  : NULL;
  }
  if (!is_elementwise(node) || node->operand_count > MOST_OPERANDS) return NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* x = merged(operand(node, i));
    if (x && !turned) turned = x;
    if (x ? x->type->rank != turned->type->rank : !is_free(operand(node, i)))
      return NULL;
  }
  if (!turned) return NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t *x = operand(node, i), *whole = merged(x);
    operands[i] = pestle_f_reshape_to(f, whole ? whole : x, turned->type);
  }
  pestle_type_t type = *turned->type;
  type.dtype = node->results[0].type->dtype;
  pestle_value_t* y = pestle_f_like(f, node, operands, &type);
  if (!y) return NULL;
  pestle_value_t* pushed = pestle_push_transpose(f, y->node, strict, &why);
  return pestle_f_reshape_to(f, pushed ? pushed : y, node->results[0].type);
}
