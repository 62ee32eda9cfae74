// SPDX-License-Identifier: Apache-2.0
// dot_general(softmax(scale * dot_general(q, k) + bias), v) as one attention.
//
// Between the contractions may stand, in any order: products with and
// quotients by a constant, sums with a bias, conversions that lose nothing of
// q's precision, reshapes of the batch dims. A constant factor of q or k, also
// behind views, becomes part of the scale. Nothing but the match may use the
// scores. Not under PESTLE_NUMERICS_STRICT: attention divides at the end.
#include <string.h>

#include "passes/recognise.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_float(const pestle_value_t* value) {
  return pestle_dtype_is(value->type->dtype, PESTLE_KIND_FLOAT);
}

// The axes of one side of a dot with one free and one contracted axis.
typedef struct side_t {
  pestle_value_t* value;
  pestle_i64s_t batch;
  int64_t free, contract;
} side_t;

static bool read_side(const pestle_node_t* dot, size_t index, side_t* s) {
  pestle_i64s_t contract =
      index ? PESTLE_NODE_I64S(dot, rhs_contracting_dimensions)
            : PESTLE_NODE_I64S(dot, lhs_contracting_dimensions);
  s->value = operand(dot, index);
  s->batch = index ? PESTLE_NODE_I64S(dot, rhs_batching_dimensions)
                   : PESTLE_NODE_I64S(dot, lhs_batching_dimensions);
  int32_t rank = s->value->type->rank;
  if (contract.count != 1 || (int64_t)s->batch.count != rank - 2) return false;
  s->contract = contract.data[0];
  s->free = 0;
  while (s->free == s->contract || pestle_i64s_has(s->batch, s->free))
    ++s->free;
  return true;
}

typedef struct match_t {
  pestle_builder_t* b;
  side_t q, k, p, v;
  pestle_dtype_t dtype;
  double scale;
  bool scaled;           // |scale| is not 1
  pestle_value_t* bias;  // of |shape|'s extents or 1, or NULL
  pestle_type_t shape;   // of the scores, where the bias is added
} match_t;

// --- The bias ---

// |value|, of the scores' shape, with extents of 1 where it repeats itself.
static pestle_status_t unspread(pestle_builder_t* b, pestle_value_t* value,
                                pestle_value_t** out) {
  double splat;
  const pestle_node_t* n = value->node;
  pestle_type_t type = *value->type;
  *out = value;
  for (int32_t i = 0; i < type.rank; ++i)
    type.dims[i] = 1;
  if (pestle_pass_splat_f64(value, &splat)) {
    return pestle_pass_splat(b, &type, splat, out);
  }
  if (!n || n->op != PESTLE_OP_BROADCAST_IN_DIM) return NULL;
  pestle_i64s_t map = PESTLE_NODE_I64S(n, broadcast_dimensions);
  for (size_t i = 0; i < map.count; ++i) {
    if (i && map.data[i] < map.data[i - 1]) return NULL;
    type.dims[map.data[i]] = operand(n, 0)->type->dims[i];
  }
  return pestle_pass_reshape(b, operand(n, 0), &type, out);
}

static pestle_status_t spread_to(pestle_builder_t* b, pestle_value_t* value,
                                 const pestle_type_t* type,
                                 pestle_value_t** out) {
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < type->rank; ++i)
    axes[i] = i;
  return pestle_pass_broadcast(b, value, type, axes, out);
}

// Adds |value|, which is added to the scores times the scale so far.
static pestle_status_t take_bias(match_t* m, pestle_value_t* value) {
  pestle_value_t *bias, *factor, *first = m->bias;
  PESTLE_TRY(unspread(m->b, value, &bias));
  if (m->scaled) {
    PESTLE_TRY(pestle_pass_splat(m->b, bias->type, m->scale, &factor));
    PESTLE_TRY(
        pestle_pass_binary(m->b, PESTLE_OP_MULTIPLY, bias, factor, &bias));
  }
  m->bias = bias;
  if (!first) return NULL;
  pestle_type_t type = *bias->type;
  for (int32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] == 1) type.dims[i] = first->type->dims[i];
  }
  PESTLE_TRY(pestle_pass_convert(m->b, first, type.dtype, &first));
  PESTLE_TRY(spread_to(m->b, first, &type, &first));
  PESTLE_TRY(spread_to(m->b, bias, &type, &bias));
  return pestle_pass_binary(m->b, PESTLE_OP_ADD, first, bias, &m->bias);
}

// --- From the weights down to the scores ---

static bool keeps_rows(const pestle_node_t* reshape) {
  const pestle_type_t* a = operand(reshape, 0)->type;
  const pestle_type_t* b = reshape->results[0].type;
  return a->rank >= 2 && b->rank >= 2 &&
         !memcmp(&a->dims[a->rank - 2], &b->dims[b->rank - 2],
                 2 * sizeof(a->dims[0]));
}

// Whether |value| is used once and its op may stand around the scores.
static bool is_wrapper(const pestle_value_t* value) {
  double c;
  const pestle_node_t* n = value->node;
  if (!n || value->use_count != 1 || !is_float(value)) return false;
  switch (n->op) {
    case PESTLE_OP_CONVERT:
      return is_float(operand(n, 0));
    case PESTLE_OP_RESHAPE:
      return keeps_rows(n);
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_DIVIDE:
      return pestle_pass_splat_f64(operand(n, 1), &c) && (c < 0 || c > 0);
    default:
      return n->op == PESTLE_OP_ADD;
  }
}

// Whether a contraction is behind |value|'s wrappers.
static bool holds_scores(const pestle_value_t* value, int depth) {
  if (pestle_pass_is(value, PESTLE_OP_DOT_GENERAL)) {
    return value->use_count == 1;
  }
  if (depth == 0 || !is_wrapper(value)) return false;
  const pestle_node_t* n = value->node;
  return holds_scores(operand(n, 0), depth - 1) ||
         (n->op == PESTLE_OP_ADD && holds_scores(operand(n, 1), depth - 1));
}

enum { MAX_WRAPPERS = 8 };

static void multiply_scale(match_t* m, const pestle_node_t* n) {
  double c = 1;
  bool scales = n->op == PESTLE_OP_MULTIPLY || n->op == PESTLE_OP_DIVIDE;
  if (!scales || !pestle_pass_splat_f64(operand(n, 1), &c)) return;
  m->scale = n->op == PESTLE_OP_MULTIPLY ? m->scale * c : m->scale / c;
  m->scaled = true;
}

// Walks from the softmax's operand to the contraction behind it; |*out| stays
// NULL where something else is in the way.
static pestle_status_t find_scores(match_t* m, pestle_value_t* x,
                                   const pestle_node_t** out) {
  size_t narrowest = pestle_dtype_size(m->dtype);
  m->shape = *x->type;
  for (int depth = MAX_WRAPPERS; holds_scores(x, depth); --depth) {
    const pestle_node_t* n = x->node;
    if (pestle_dtype_size(x->type->dtype) < narrowest) return NULL;
    switch (n->op) {
      case PESTLE_OP_DOT_GENERAL:
        *out = n;
        return NULL;
      case PESTLE_OP_ADD: {
        size_t side = holds_scores(operand(n, 0), depth - 1) ? 0 : 1;
        if (m->bias && !pestle_pass_same_dims(x->type, &m->shape)) return NULL;
        m->shape = *x->type;
        PESTLE_TRY(take_bias(m, operand(n, 1 - side)));
        x = operand(n, side);
        break;
      }
      default:
        multiply_scale(m, n);
        x = operand(n, 0);
        break;
    }
  }
  return NULL;
}

// The softmax that |value| is, behind what keeps its rows; NULL.
static const pestle_node_t* find_softmax(pestle_value_t* value) {
  while (value->node && value->use_count == 1) {
    const pestle_node_t* n = value->node;
    if (n->op == PESTLE_OP_SOFTMAX) {
      pestle_i64s_t dims = PESTLE_NODE_I64S(n, dimensions);
      return dims.count == 1 && dims.data[0] == value->type->rank - 1 ? n
                                                                      : NULL;
    }
    bool passes = (n->op == PESTLE_OP_RESHAPE && keeps_rows(n)) ||
                  (n->op == PESTLE_OP_CONVERT && is_float(operand(n, 0)));
    if (!passes) return NULL;
    value = operand(n, 0);
  }
  return NULL;
}

// --- Operands ---

// |value| without a constant factor, through views that nobody else uses; it
// is multiplied into the scale.
static pestle_status_t without_factor(match_t* m, pestle_value_t** value,
                                      int depth) {
  pestle_value_t* x = *value;
  const pestle_node_t* n = x->node;
  double c;
  if (!n || x->use_count != 1 || depth == 0) return NULL;
  if (n->op == PESTLE_OP_MULTIPLY || n->op == PESTLE_OP_DIVIDE) {
    if (!pestle_pass_splat_f64(operand(n, 1), &c) || !(c < 0 || c > 0)) {
      return NULL;
    }
    multiply_scale(m, n);
    *value = operand(n, 0);
    return without_factor(m, value, depth - 1);
  }
  if (n->op != PESTLE_OP_RESHAPE && n->op != PESTLE_OP_TRANSPOSE) return NULL;
  pestle_value_t* inner = operand(n, 0);
  PESTLE_TRY(without_factor(m, &inner, depth - 1));
  if (inner == operand(n, 0)) return NULL;
  return pestle_pass_make(m->b, (pestle_op_t)n->op, &inner, 1, n->attrs,
                          n->attr_count, x->type, value);
}

// Gives |value| the batch dims of the scores in front of its last two.
static pestle_status_t split_batch(match_t* m, pestle_value_t* value,
                                   pestle_value_t** out) {
  pestle_type_t type = m->shape;
  memcpy(&type.dims[type.rank - 2], &value->type->dims[value->type->rank - 2],
         2 * sizeof(type.dims[0]));
  return pestle_pass_reshape(m->b, value, &type, out);
}

// A side as [batch.., x, y], the batch dims as those of the scores. Where no
// batch dim moves, these come first: reshapes of heads meet and are gone.
static pestle_status_t arrange(match_t* m, const side_t* s, bool contract_last,
                               pestle_value_t** out) {
  int64_t perm[PESTLE_MAX_RANK];
  size_t n = s->batch.count;
  for (size_t i = 0; i < n; ++i)
    perm[i] = s->batch.data[i];
  perm[n] = contract_last ? s->free : s->contract;
  perm[n + 1] = contract_last ? s->contract : s->free;
  if (!pestle_pass_i64s_is_iota(s->batch)) {
    PESTLE_TRY(pestle_pass_transpose(m->b, s->value, perm, out));
    return split_batch(m, *out, out);
  }
  bool swapped = perm[n] > perm[n + 1];
  PESTLE_TRY(split_batch(m, s->value, out));
  n = (size_t)m->shape.rank;
  for (size_t i = 0; i < n; ++i)
    perm[i] = (int64_t)i;
  if (!swapped) return NULL;
  perm[n - 2] = (int64_t)n - 1;
  perm[n - 1] = (int64_t)n - 2;
  return pestle_pass_transpose(m->b, *out, perm, out);
}

// The attention's result in the shape and the order of axes of |dot|'s.
static pestle_status_t arrange_result(match_t* m, const pestle_node_t* dot,
                                      bool weights_first,
                                      pestle_value_t** out) {
  pestle_type_t type = *dot->results[0].type;
  if (weights_first) return pestle_pass_reshape(m->b, *out, &type, out);
  int64_t perm[PESTLE_MAX_RANK], last = type.rank - 1, rows = type.dims[last];
  type.dims[last] = type.dims[last - 1];
  type.dims[last - 1] = rows;
  for (int32_t i = 0; i < type.rank; ++i)
    perm[i] = i;
  perm[last] = last - 1;
  perm[last - 1] = last;
  PESTLE_TRY(pestle_pass_reshape(m->b, *out, &type, out));
  return pestle_pass_transpose(m->b, *out, perm, out);
}

static bool has_elements(const pestle_value_t* value) {
  return pestle_type_is_static(value->type) &&
         pestle_type_count(value->type) > 0;
}

// Whether the sides' shapes and element types are those of an attention.
static bool fits(const match_t* m, const pestle_node_t* dot) {
  const pestle_value_t* values[] = {m->q.value, m->k.value, m->v.value};
  for (size_t i = 0; i < 3; ++i) {
    if (values[i]->type->dtype != m->dtype || !has_elements(values[i])) {
      return false;
    }
  }
  return dot->results[0].type->dtype == m->dtype;
}

// |dot| weighs values by its operand |weights|.
static pestle_status_t match_sides(match_t* m, const pestle_node_t* dot,
                                   size_t weights, pestle_value_t** out) {
  if (!read_side(dot, weights, &m->p) || !read_side(dot, 1 - weights, &m->v) ||
      !pestle_pass_i64s_is_iota(m->p.batch) ||
      m->p.contract != m->p.value->type->rank - 1) {
    return NULL;
  }
  const pestle_node_t *softmax = find_softmax(m->p.value), *scores = NULL;
  if (!softmax) return NULL;
  PESTLE_TRY(find_scores(m, operand(softmax, 0), &scores));
  if (!scores || !read_side(scores, 0, &m->q) || !read_side(scores, 1, &m->k) ||
      !fits(m, dot)) {
    return NULL;
  }
  enum { MAX_VIEWS = 4 };
  PESTLE_TRY(without_factor(m, &m->q.value, MAX_VIEWS));
  PESTLE_TRY(without_factor(m, &m->k.value, MAX_VIEWS));
  pestle_value_t* operands[4] = {NULL, NULL, NULL, m->bias};
  PESTLE_TRY(arrange(m, &m->q, true, &operands[0]));
  PESTLE_TRY(arrange(m, &m->k, true, &operands[1]));
  PESTLE_TRY(arrange(m, &m->v, false, &operands[2]));
  pestle_attr_t attr = PESTLE_SET_F64(scale, m->scale);
  PESTLE_TRY(pestle_pass_make(m->b, PESTLE_OP_ATTENTION, operands,
                              m->bias ? 4 : 3, &attr, 1, NULL, out));
  return arrange_result(m, dot, weights == 0, out);
}

pestle_status_t pestle_match_attention(pestle_builder_t* b, pestle_node_t* node,
                                       bool strict, pestle_value_t** out) {
  if (strict || node->op != PESTLE_OP_DOT_GENERAL ||
      !is_float(&node->results[0])) {
    return NULL;
  }
  for (size_t side = 0; side < 2 && !*out; ++side) {
    match_t m = {.b = b, .dtype = node->results[0].type->dtype, .scale = 1};
    PESTLE_TRY(match_sides(&m, node, side, out));
  }
  return NULL;
}
