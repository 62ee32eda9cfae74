// SPDX-License-Identifier: Apache-2.0
// dot_general(softmax(scale * dot_general(q, k) + bias), v) as one attention.
//
// Between the contractions may stand, in any order: products with and quotients
// by a constant, sums with a bias, a choice between the scores and a constant
// (a mask, outside of the biases), conversions that lose nothing of q's
// precision, and views. A constant factor of q or k, also behind views, becomes
// part of the scale. Nothing but the match may use the scores. Not under
// PESTLE_NUMERICS_STRICT: attention divides at the end.
//
// Axes are followed through the views (axes.h), so it does not matter where
// they lie. Of the axes that q alone has the longest is that of the rows. The
// others are batch axes, along which k and v repeat: heads of queries that
// share one of keys. That costs nothing but to lay the keys out for each of
// them.
//
// What this file makes one op, three others make one kernel: fuse_rules.c says when a
// bias is computed with the scores, codegen/sketch/sketch_flash_attention_cpu.c
// schedules it on CPUs, codegen/template/flash_attention_mma/ on matrix units. Not
// taken: a bias that is added after the mask, two masks of different constants, and
// what apart.def leaves apart.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "passes/axes.h"
#include "passes/recognise.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_float(const pestle_value_t* value) {
  return pestle_dtype_is(value->type->dtype, PESTLE_KIND_FLOAT);
}

static bool has_elements(const pestle_value_t* value) {
  return pestle_type_is_static(value->type) &&
         pestle_type_count(value->type) > 0;
}

// One operand of a dot.
typedef struct side_t {
  pestle_value_t* value;
  pestle_axes_list_t axes;
  pestle_i64s_t batch, contract;
} side_t;

// What is added to the scores, or says which of them count.
typedef struct term_t {
  pestle_value_t* value;
  pestle_axes_list_t axes;
  double factor;
  bool scaled, negated;
} term_t;

enum { MAX_TERMS = 4, MAX_WRAPPERS = 12, MAX_VIEWS = 4 };

typedef struct match_t {
  pestle_formula_t* f;
  pestle_axes_t t;
  side_t q, k, p, v;
  pestle_dtype_t dtype;
  double scale, masked;
  bool scaled;  // |scale| is not 1
  term_t bias[MAX_TERMS], mask[MAX_TERMS];
  size_t biases, masks;
  const char* refusal;  // why what looks like an attention is none; or NULL
  pestle_axes_list_t batch;                 // of the attention
  pestle_axis_t rows, keys, taps, columns;  // S, T, D, E
} match_t;

// --- Sides ---

static void read_side(const pestle_node_t* dot, size_t index, side_t* s) {
  s->value = operand(dot, index);
  s->axes.rank = s->value->type->rank;
  s->batch = index ? PESTLE_NODE_I64S(dot, rhs_batching_dimensions)
                   : PESTLE_NODE_I64S(dot, lhs_batching_dimensions);
  s->contract = index ? PESTLE_NODE_I64S(dot, rhs_contracting_dimensions)
                      : PESTLE_NODE_I64S(dot, lhs_contracting_dimensions);
}

static bool is_free(const side_t* s, int64_t dim) {
  return !pestle_i64s_has(s->batch, dim) && !pestle_i64s_has(s->contract, dim);
}

static pestle_axis_t contracted(match_t* m, const side_t* s) {
  pestle_axis_t all = {.count = 0};
  for (size_t i = 0; i < s->contract.count; ++i)
    pestle_axes_append(&m->t, &all, &s->axes.axis[s->contract.data[i]]);
  return all;
}

static pestle_axis_t free_axes(match_t* m, const side_t* s) {
  pestle_axis_t all = {.count = 0};
  for (int32_t i = 0; i < s->axes.rank; ++i) {
    if (is_free(s, i)) pestle_axes_append(&m->t, &all, &s->axes.axis[i]);
  }
  return all;
}

static pestle_axis_t all_axes(match_t* m, const pestle_axes_list_t* axes) {
  pestle_axis_t all = {.count = 0};
  for (int32_t i = 0; i < axes->rank; ++i)
    pestle_axes_append(&m->t, &all, &axes->axis[i]);
  return all;
}

static bool same_atoms(match_t* m, pestle_axis_t a, pestle_axis_t b) {
  size_t common = pestle_axes_common(&m->t, &a, &b);
  return common == a.count && common == b.count;
}

// Gives |s|'s batch and contracted axes those of |of|, and new ones to the
// rest.
static void pair_axes(match_t* m, const side_t* of, side_t* s) {
  for (size_t i = 0; i < s->batch.count; ++i)
    s->axes.axis[s->batch.data[i]] = of->axes.axis[of->batch.data[i]];
  for (size_t i = 0; i < s->contract.count; ++i)
    s->axes.axis[s->contract.data[i]] = of->axes.axis[of->contract.data[i]];
  for (int32_t i = 0; i < s->axes.rank; ++i) {
    if (!is_free(s, i)) continue;
    s->axes.axis[i] = pestle_axes_new(&m->t, s->value->type->dims[i], true);
  }
}

// The axes of a dot of |s| by |other|, |s| the left side if |left|.
static void axes_of_dot(const side_t* s, const side_t* other, bool left,
                        pestle_axes_list_t* out) {
  out->rank = 0;
  for (size_t i = 0; i < s->batch.count; ++i)
    out->axis[out->rank++] = s->axes.axis[s->batch.data[i]];
  for (int part = 0; part < 2; ++part) {
    const side_t* from = left == (part == 0) ? s : other;
    for (int32_t i = 0; i < from->axes.rank; ++i) {
      if (is_free(from, i)) out->axis[out->rank++] = from->axes.axis[i];
    }
  }
}

// Both sides of |dot|, whose result has the axes |axes|.
static void read_sides(match_t* m, const pestle_node_t* dot,
                       const pestle_axes_list_t* axes, side_t sides[2]) {
  int32_t next = 0;
  for (size_t i = 0; i < 2; ++i)
    read_side(dot, i, &sides[i]);
  for (size_t j = 0; j < sides[0].batch.count; ++j, ++next) {
    for (int i = 0; i < 2; ++i)
      sides[i].axes.axis[sides[i].batch.data[j]] = axes->axis[next];
  }
  for (int i = 0; i < 2; ++i) {
    for (int32_t d = 0; d < sides[i].axes.rank; ++d) {
      if (is_free(&sides[i], d)) sides[i].axes.axis[d] = axes->axis[next++];
    }
  }
  for (size_t j = 0; j < sides[0].contract.count; ++j) {
    int64_t l = sides[0].contract.data[j], r = sides[1].contract.data[j];
    sides[0].axes.axis[l] =
        pestle_axes_new(&m->t, sides[0].value->type->dims[l], true);
    sides[1].axes.axis[r] = sides[0].axes.axis[l];
  }
}

// --- From the weights down to the scores ---

static bool is_view(const pestle_node_t* n) {
  return n->op == PESTLE_OP_RESHAPE || n->op == PESTLE_OP_TRANSPOSE ||
         n->op == PESTLE_OP_BROADCAST_IN_DIM;
}

static bool is_constant(const pestle_value_t* value) {
  double c;
  return pestle_pass_splat_f64(value, &c) && !isnan(c);
}

// Whether a contraction is behind |value|'s wrappers: ops around the scores,
// each used once.
static bool holds_scores(const pestle_value_t* value, int depth) {
  double c;
  const pestle_node_t* n = value->node;
  if (!n || value->use_count != 1 || depth == 0 || !is_float(value)) {
    return false;
  }
  switch (n->op) {
    case PESTLE_OP_DOT_GENERAL:
      return true;
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_BROADCAST_IN_DIM:
      return holds_scores(operand(n, 0), depth - 1);
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_DIVIDE:
      return pestle_pass_splat_f64(operand(n, 1), &c) && (c < 0 || c > 0) &&
             holds_scores(operand(n, 0), depth - 1);
    case PESTLE_OP_ADD:
      return holds_scores(operand(n, 0), depth - 1) ||
             holds_scores(operand(n, 1), depth - 1);
    case PESTLE_OP_SELECT:
      return (is_constant(operand(n, 2)) &&
              holds_scores(operand(n, 1), depth - 1)) ||
             (is_constant(operand(n, 1)) &&
              holds_scores(operand(n, 2), depth - 1));
    default:
      return false;
  }
}

// Why no contraction is behind the wrappers of |value|.
static const char* in_the_way(const pestle_value_t* value) {
  for (int depth = MAX_WRAPPERS; value->node && depth; --depth) {
    const pestle_node_t* n = value->node;
    size_t next = 0;
    if (value->use_count > 1) return "something else reads its scores";
    switch (n->op) {
      case PESTLE_OP_MULTIPLY:
      case PESTLE_OP_DIVIDE:
        if (!is_constant(operand(n, 1))) {
          return "its scores are scaled by what is no constant number";
        }
        break;
      case PESTLE_OP_SELECT:
        next = is_constant(operand(n, 2)) ? 1 : 2;
        break;
      case PESTLE_OP_CONVERT:
      case PESTLE_OP_RESHAPE:
      case PESTLE_OP_TRANSPOSE:
      case PESTLE_OP_BROADCAST_IN_DIM:
      case PESTLE_OP_ADD:
        break;
      default:
        return "an op that attention does not compute stands between its "
               "products and its softmax";
    }
    value = operand(n, next);
  }
  return "its scores are no product of queries and keys";
}

static void multiply_scale(match_t* m, const pestle_node_t* n) {
  double c = 1;
  bool scales = n->op == PESTLE_OP_MULTIPLY || n->op == PESTLE_OP_DIVIDE;
  if (!scales || !pestle_pass_splat_f64(operand(n, 1), &c)) return;
  m->scale = n->op == PESTLE_OP_MULTIPLY ? m->scale * c : m->scale / c;
  m->scaled = true;
}

// Says why there is no attention; the first reason stays.
static bool refuse(match_t* m, const char* why) {
  if (!m->refusal) m->refusal = why;
  return false;
}

// |value| is added to the scores times the scale so far.
static bool take_bias(match_t* m, pestle_value_t* value,
                      const pestle_axes_list_t* axes) {
  if (m->biases == MAX_TERMS) {
    return refuse(m, "more than 4 biases are added to its scores");
  }
  m->bias[m->biases++] = (term_t){
      .value = value, .axes = *axes, .factor = m->scale, .scaled = m->scaled};
  return true;
}

// The choice |n| between what is behind operand |side| and a constant. What
// would be added to the constant is in the way, and so is another constant.
static bool take_mask(match_t* m, const pestle_node_t* n, size_t side,
                      const pestle_axes_list_t* axes) {
  double c;
  pestle_value_t* other = operand(n, 3 - side);
  pestle_dtype_t dtype = other->type->dtype;
  if (m->biases) {
    return refuse(m,
                  "a bias is added after the mask; attention adds it before");
  }
  if (m->masks == MAX_TERMS) {
    return refuse(m, "more than 4 masks choose among its scores");
  }
  if (!pestle_pass_splat_f64(other, &c)) return false;
  // As the type that it had would have it.
  double masked = c * m->scale;
  double narrow =
      pestle_float_decode(dtype, pestle_float_encode(dtype, masked));
  if (isinf(narrow)) masked = narrow;
  if (isnan(masked) ||
      (m->masks && (masked < m->masked || masked > m->masked))) {
    return refuse(m, "its masks put different numbers in the place of scores");
  }
  term_t* term = &m->mask[m->masks++];
  *term = (term_t){.value = operand(n, 0), .axes = *axes, .negated = side == 2};
  if (term->value->type->rank == 0) term->axes.rank = 0;
  m->masked = masked;
  return true;
}

// One op down from |*x|, whose axes are |axes|. False: what is in the way stays
// so.
static bool unwrap(match_t* m, pestle_value_t** x, pestle_axes_list_t* axes,
                   int depth) {
  const pestle_node_t* n = (*x)->node;
  size_t side = 0;
  if (is_view(n)) return pestle_axes_step(&m->t, false, true, x, axes);
  if (n->op == PESTLE_OP_ADD) {
    if (!holds_scores(operand(n, 0), depth - 1)) side = 1;
    if (!take_bias(m, operand(n, 1 - side), axes)) return false;
  } else if (n->op == PESTLE_OP_SELECT) {
    side = is_constant(operand(n, 2)) ? 1 : 2;
    if (!take_mask(m, n, side, axes)) return false;
  } else {
    multiply_scale(m, n);
  }
  *x = operand(n, side);
  return true;
}

// Walks from the softmax's operand, whose axes are |axes|, to the contraction
// behind it; NULL where something else is in the way.
static const pestle_node_t* find_scores(match_t* m, pestle_value_t* x,
                                        pestle_axes_list_t* axes) {
  size_t narrowest = pestle_dtype_size(m->dtype);
  for (int depth = MAX_WRAPPERS; holds_scores(x, depth); --depth) {
    if (pestle_dtype_size(x->type->dtype) < narrowest) {
      refuse(m, "its scores are kept in a narrower type than its result");
      return NULL;
    }
    if (x->node->op == PESTLE_OP_DOT_GENERAL) return x->node;
    if (!unwrap(m, &x, axes, depth)) return NULL;
  }
  refuse(m, in_the_way(x));
  return NULL;
}

// The softmax over the keys that |value| is, behind views and conversions;
// NULL. The axes become those of its operand.
static const pestle_node_t* find_softmax(match_t* m, pestle_value_t* value,
                                         pestle_axes_list_t* axes) {
  while (value->node && value->use_count == 1) {
    const pestle_node_t* n = value->node;
    if (n->op == PESTLE_OP_SOFTMAX) {
      pestle_axis_t along = {.count = 0};
      pestle_i64s_t dims = PESTLE_NODE_I64S(n, dimensions);
      for (size_t i = 0; i < dims.count; ++i)
        pestle_axes_append(&m->t, &along, &axes->axis[dims.data[i]]);
      return same_atoms(m, along, m->keys) ? n : NULL;
    }
    if (n->op == PESTLE_OP_CONVERT && is_float(operand(n, 0))) {
      value = operand(n, 0);
    } else if (!pestle_axes_step(&m->t, false, true, &value, axes)) {
      return NULL;
    }
  }
  return NULL;
}

// --- Operands ---

// |x| without a constant factor, through views that nobody else uses; the factor
// is multiplied into the scale.
static pestle_value_t* without_factor(match_t* m, pestle_value_t* x,
                                      int depth) {
  const pestle_node_t* n = x->node;
  double c;
  if (!n || x->use_count != 1 || depth == 0) return x;
  if (n->op == PESTLE_OP_MULTIPLY || n->op == PESTLE_OP_DIVIDE) {
    if (!pestle_pass_splat_f64(operand(n, 1), &c) || !(c < 0 || c > 0)) {
      return x;
    }
    multiply_scale(m, n);
    return without_factor(m, operand(n, 0), depth - 1);
  }
  if (n->op != PESTLE_OP_RESHAPE && n->op != PESTLE_OP_TRANSPOSE) return x;
  pestle_value_t* inner = without_factor(m, operand(n, 0), depth - 1);
  return inner == operand(n, 0) ? x : pestle_f_like(m->f, n, &inner, x->type);
}

// Which side of the scores holds the keys: that whose own axes are those.
static bool take_sides(match_t* m, const side_t sides[2]) {
  for (int i = 1; i >= 0; --i) {
    pestle_axis_t other = free_axes(m, &sides[1 - i]);
    if (!same_atoms(m, free_axes(m, &sides[i]), m->keys) ||
        pestle_axes_common(&m->t, &other, &m->keys)) {
      continue;
    }
    m->k = sides[i];
    m->q = sides[1 - i];
    m->taps = contracted(m, &m->q);
    return true;
  }
  return false;
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

// Where |s| is repeated, what it is repeated from.
static void look_through(match_t* m, side_t* s) {
  pestle_axes_t before = m->t;
  pestle_value_t* value = s->value;
  pestle_axes_list_t axes = s->axes;
  pestle_axes_trace(&m->t, true, false, &value, &axes);
  if (!m->t.full && all_axes(m, &axes).count < all_axes(m, &s->axes).count) {
    s->value = value;
    s->axes = axes;
  } else {
    m->t = before;
  }
}

static void look_through_terms(match_t* m, term_t* terms, size_t count) {
  for (size_t i = 0; i < count; ++i)
    pestle_axes_trace(&m->t, true, false, &terms[i].value, &terms[i].axes);
  // A bias alone is read as it is.
  if (count != 1 || terms->scaled) return;
  while (pestle_pass_is(terms->value, PESTLE_OP_CONVERT)) {
    pestle_value_t* narrow = operand(terms->value->node, 0);
    if (!is_float(narrow) || pestle_dtype_size(narrow->type->dtype) >=
                                 pestle_dtype_size(terms->value->type->dtype)) {
      return;
    }
    terms->value = narrow;
    pestle_axes_trace(&m->t, true, false, &terms->value, &terms->axes);
  }
}

// Of |axis| the atoms that are in no other than the queries.
static pestle_axis_t own_atoms(match_t* m, pestle_axis_t axis) {
  pestle_axis_t own = {.count = 0}, k = all_axes(m, &m->k.axes);
  pestle_axis_t v = all_axes(m, &m->v.axes);
  pestle_axes_expand(&m->t, &axis);
  for (uint8_t i = 0; i < axis.count; ++i) {
    pestle_axis_t one = {{axis.atoms[i]}, 1};
    if (!pestle_axes_common(&m->t, &one, &k) &&
        !pestle_axes_common(&m->t, &one, &v)) {
      pestle_axes_append(&m->t, &own, &one);
    }
  }
  return own;
}

// The longest axis of the queries, or part of one; of equal ones one that the
// scores have from them alone.
static void choose_rows(match_t* m) {
  int64_t longest = 1;
  m->rows = (pestle_axis_t){.count = 0};
  for (int32_t i = 0; i < 2 * m->q.axes.rank; ++i) {
    int32_t d = i % m->q.axes.rank;
    if (is_free(&m->q, d) != (i < m->q.axes.rank)) continue;
    pestle_axis_t own = own_atoms(m, m->q.axes.axis[d]);
    int64_t extent = pestle_axes_extent(&m->t, &own);
    if (extent <= longest) continue;
    longest = extent;
    m->rows = own;
  }
}

static bool push_batch(match_t* m, pestle_axis_t axis) {
  if (m->batch.rank + 2 == PESTLE_MAX_RANK) return false;
  m->batch.axis[m->batch.rank++] = axis;
  return true;
}

// Finds the rows, and the batch axes in the order of the scores.
static bool choose_axes(match_t* m, const pestle_axes_list_t* scores) {
  choose_rows(m);
  if (!m->rows.count && free_axes(m, &m->q).count) return false;
  pestle_axis_t apart = m->rows;
  pestle_axes_append(&m->t, &apart, &m->keys);
  m->batch.rank = 0;
  for (int32_t i = 0; i < scores->rank; ++i) {
    pestle_axis_t axis = scores->axis[i];
    pestle_axes_expand(&m->t, &axis);
    for (uint8_t j = 0; j < axis.count; ++j) {
      pestle_axis_t one = {{axis.atoms[j]}, 1};
      if (!pestle_axes_common(&m->t, &one, &apart) && !push_batch(m, one)) {
        return false;
      }
    }
    bool is_batch = i < (int32_t)m->q.batch.count;
    if (!axis.count && is_batch && !push_batch(m, axis)) return false;
  }
  pestle_axis_t v = all_axes(m, &m->v.axes), there = all_axes(m, scores);
  m->columns = (pestle_axis_t){.count = 0};
  for (uint8_t i = 0; i < v.count; ++i) {
    pestle_axis_t one = {{v.atoms[i]}, 1};
    if (!pestle_axes_common(&m->t, &one, &there)) {
      pestle_axes_append(&m->t, &m->columns, &one);
    }
  }
  return !m->t.full;
}

// [batch.., x, y]
static pestle_axes_list_t with_batch(const match_t* m, const pestle_axis_t* x,
                                     const pestle_axis_t* y) {
  pestle_axes_list_t axes = m->batch;
  axes.axis[axes.rank++] = *x;
  axes.axis[axes.rank++] = *y;
  return axes;
}

// --- Bias and mask ---

// A term of the scores' rank, with extents of 1 where it repeats itself; NULL: it
// cannot be made.
static pestle_value_t* make_term(match_t* m, const term_t* term) {
  double splat;
  pestle_value_t* y;
  pestle_axes_list_t axes = with_batch(m, &m->rows, &m->keys);
  if (pestle_pass_splat_f64(term->value, &splat)) {
    pestle_type_t type = {.dtype = term->value->type->dtype, .rank = axes.rank};
    for (int32_t i = 0; i < type.rank; ++i)
      type.dims[i] = 1;
    y = pestle_f_number(m->f, &type, splat);
  } else {
    y = pestle_axes_arrange(&m->t, m->f, term->value, &term->axes, &axes,
                            false);
  }
  if (term->negated) return pestle_f_not(m->f, y);
  return term->scaled ? pestle_f_times(m->f, y, term->factor) : y;
}

static pestle_value_t* spread_to(pestle_formula_t* f, pestle_value_t* value,
                                 const pestle_type_t* type) {
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < type->rank; ++i)
    axes[i] = i;
  return pestle_f_broadcast_to(f, value, type, axes);
}

// The |count| terms by |op|, of which there is one at least; NULL: one cannot be
// made.
static pestle_value_t* make_terms(match_t* m, const term_t* terms, size_t count,
                                  pestle_op_t op) {
  pestle_value_t* all = make_term(m, &terms[0]);
  for (size_t i = 1; i < count && all; ++i) {
    pestle_value_t* one = make_term(m, &terms[i]);
    if (!one) return NULL;
    pestle_type_t type = *one->type;
    for (int32_t d = 0; d < type.rank; ++d) {
      if (type.dims[d] == 1) type.dims[d] = all->type->dims[d];
    }
    all = pestle_f_convert(m->f, all, type.dtype);
    all = spread_to(m->f, all, &type);
    one = spread_to(m->f, one, &type);
    all = pestle_f_binary(m->f, op, all, one);
  }
  return all;
}

// --- The match ---

static pestle_value_t* make_attention(match_t* m,
                                      const pestle_axes_list_t* result) {
  pestle_value_t* x[5];
  pestle_axes_list_t to[] = {with_batch(m, &m->rows, &m->taps),
                             with_batch(m, &m->keys, &m->taps),
                             with_batch(m, &m->keys, &m->columns)};
  pestle_axes_list_t y = with_batch(m, &m->rows, &m->columns);
  m->q.value = without_factor(m, m->q.value, MAX_VIEWS);
  m->k.value = without_factor(m, m->k.value, MAX_VIEWS);
  if (!m->q.value || !m->k.value) return NULL;
  size_t count = 3;
  if (m->biases) {
    x[count++] = make_terms(m, m->bias, m->biases, PESTLE_OP_ADD);
  }
  if (m->masks) {
    x[count++] = make_terms(m, m->mask, m->masks, PESTLE_OP_AND);
  }
  const side_t* sides[] = {&m->q, &m->k, &m->v};
  for (size_t i = 0; i < 3; ++i) {
    x[i] = pestle_axes_arrange(&m->t, m->f, sides[i]->value, &sides[i]->axes,
                               &to[i], true);
  }
  pestle_attr_t attrs[] = {PESTLE_SET_F64(scale, m->scale),
                           PESTLE_SET_F64(masked, m->masked)};
  pestle_value_t* out = pestle_f_make(m->f, PESTLE_OP_ATTENTION, x, count,
                                      attrs, m->masks ? 2 : 1, NULL);
  return out ? pestle_axes_arrange(&m->t, m->f, out, &y, result, false) : NULL;
}

// Whether |dot| weighs values by its operand |weights| as an attention does, whose
// result has the axes |*result|. Makes nothing.
static bool match_sides(match_t* m, const pestle_node_t* dot, size_t weights,
                        pestle_axes_list_t* result) {
  read_side(dot, weights, &m->p);
  read_side(dot, 1 - weights, &m->v);
  if (!has_elements(m->p.value)) return false;
  pestle_axes_of(&m->t, m->p.value->type, true, &m->p.axes);
  pair_axes(m, &m->p, &m->v);
  m->keys = contracted(m, &m->p);
  pestle_axes_list_t axes = m->p.axes;
  const pestle_node_t* n = find_softmax(m, m->p.value, &axes);
  if (n) n = find_scores(m, operand(n, 0), &axes);
  if (!n) return false;
  side_t sides[2];
  read_sides(m, n, &axes, sides);
  if (!take_sides(m, sides)) {
    return refuse(m, "neither side of its scores has the keys alone");
  }
  if (!fits(m, dot)) {
    return refuse(m, "its queries, keys, values and result differ in type");
  }
  axes_of_dot(&m->p, &m->v, weights == 0, result);
  look_through(m, &m->k);
  look_through(m, &m->v);
  look_through_terms(m, m->bias, m->biases);
  look_through_terms(m, m->mask, m->masks);
  return choose_axes(m, &axes) ||
         refuse(m, "its axes are no batch, rows, keys and columns");
}

static match_t new_match(pestle_formula_t* f, const pestle_node_t* dot) {
  return (match_t){.f = f, .dtype = dot->results[0].type->dtype, .scale = 1};
}

pestle_value_t* pestle_match_attention(pestle_formula_t* f, pestle_node_t* node,
                                       bool strict) {
  pestle_value_t* out = NULL;
  if (strict || node->op != PESTLE_OP_DOT_GENERAL ||
      !is_float(&node->results[0])) {
    return NULL;
  }
  for (size_t side = 0; side < 2 && !out; ++side) {
    pestle_axes_list_t result;
    match_t m = new_match(f, node);
    if (match_sides(&m, node, side, &result)) out = make_attention(&m, &result);
  }
  return out;
}

bool pestle_is_like_attention(pestle_node_t* node, bool strict,
                              const char** out_why) {
  *out_why = NULL;
  if (node->op != PESTLE_OP_DOT_GENERAL || !is_float(&node->results[0])) {
    return false;
  }
  pestle_formula_t f = pestle_formula_before(node);
  for (size_t side = 0; side < 2; ++side) {
    pestle_axes_list_t result;
    match_t m = new_match(&f, node);
    bool matches = match_sides(&m, node, side, &result);
    if (!matches && !m.refusal) continue;
    *out_why = matches && strict ? "attention divides by the sum at the end, "
                                   "which strict numerics do not allow"
                                 : m.refusal;
    return true;
  }
  return false;
}
