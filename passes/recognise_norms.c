// SPDX-License-Identifier: Apache-2.0
// Matchers of composites that reduce a row and spread the result over it: softmax,
// log_softmax, layer_norm, rms_norm.
#include <math.h>
#include <string.h>

#include "passes/axes.h"
#include "passes/fuse.h"
#include "passes/recognise.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_float_op(const pestle_node_t* node, pestle_op_t op) {
  return node && node->op == op &&
         pestle_dtype_is(node->results[0].type->dtype, PESTLE_KIND_FLOAT);
}

// --- Rows ---

// Past reshapes that only add or drop dims of one element.
static pestle_value_t* strip(pestle_value_t* value) {
  while (value->node && pestle_fuse_is_trivial_reshape(value->node)) {
    value = operand(value->node, 0);
  }
  return value;
}

// |value| is |type| wide and repeats one number a row of |dims|: that number's
// value, else NULL.
static pestle_value_t* spread_from(pestle_value_t* value, pestle_i64s_t dims) {
  const pestle_node_t* n = value->node;
  if (!n || n->op != PESTLE_OP_BROADCAST_IN_DIM) return NULL;
  pestle_value_t* row = operand(n, 0);
  pestle_i64s_t map = PESTLE_NODE_I64S(n, broadcast_dimensions);
  for (size_t i = 0; i < map.count; ++i) {
    if (i && map.data[i] < map.data[i - 1]) return NULL;
    if (row->type->dims[i] != 1 && pestle_i64s_has(dims, map.data[i])) {
      return NULL;
    }
  }
  return strip(row);
}

// |n| reduces its operand by |op| from the identity.
static bool is_reduce_by(const pestle_node_t* n, pestle_op_t op) {
  if (!is_float_op(n, PESTLE_OP_REDUCE) || n->operand_count != 2 ||
      pestle_block_reduce_op(pestle_node_body(n, 0)) != op) {
    return false;
  }
  double init;
  if (!pestle_pass_splat_f64(operand(n, 1), &init)) return false;
  return op == PESTLE_OP_ADD ? !(init < 0 || init > 0)
                             : isinf(init) && init < 0;
}

// |value| reduces |x| along dims by |op| from its identity. A NULL |*x|
// and empty |*dims| are filled, else they must agree.
static bool is_reduction(pestle_value_t* value, pestle_op_t op,
                         pestle_value_t** x, pestle_i64s_t* dims) {
  const pestle_node_t* n = strip(value)->node;
  if (!is_reduce_by(n, op)) return false;
  pestle_i64s_t found = PESTLE_NODE_I64S(n, dimensions);
  if (*x && *x != operand(n, 0)) return false;
  if (dims->count && !pestle_i64s_equal(found, *dims)) return false;
  *x = operand(n, 0);
  *dims = found;
  return found.count > 0;
}

// |value| is the mean of |x| along dims.
static bool is_mean(pestle_value_t* value, pestle_value_t** x,
                    pestle_i64s_t* dims) {
  const pestle_node_t* n = strip(value)->node;
  double c;
  if (!n || (n->op != PESTLE_OP_DIVIDE && n->op != PESTLE_OP_MULTIPLY) ||
      !pestle_pass_splat_f64(operand(n, 1), &c) ||
      !is_reduction(operand(n, 0), PESTLE_OP_ADD, x, dims)) {
    return false;
  }
  double count = 1;
  for (size_t i = 0; i < dims->count; ++i) {
    count *= (double)(*x)->type->dims[dims->data[i]];
  }
  return pestle_match_near(&n->results[0],
                           n->op == PESTLE_OP_DIVIDE ? c : c * count,
                           n->op == PESTLE_OP_DIVIDE ? count : 1, 1);
}

static pestle_value_t* make_rows(pestle_formula_t* f, pestle_op_t op,
                                 pestle_value_t* const* operands, size_t count,
                                 pestle_i64s_t dims, const double* epsilon) {
  pestle_attr_t attrs[2] = {PESTLE_SET_I64S(dimensions, dims.data, dims.count),
                            PESTLE_SET_F64(epsilon, epsilon ? *epsilon : 0)};
  return pestle_f_make(f, op, operands, count, attrs, epsilon ? 2 : 1, NULL);
}

// |value| is x - max(x) along |*dims|: x.
static pestle_value_t* below_max(pestle_value_t* value, pestle_i64s_t* dims) {
  const pestle_node_t* n = value->node;
  if (!is_float_op(n, PESTLE_OP_SUBTRACT)) return NULL;
  pestle_value_t* row = spread_from(operand(n, 1), *dims);
  pestle_value_t* x = operand(n, 0);
  return row && is_reduction(row, PESTLE_OP_MAXIMUM, &x, dims) ? x : NULL;
}

// --- Softmax, whose reductions may see their rows through views ---

// Whether what was |narrow| is so still after rounding to |dtype|.
static bool holds(pestle_dtype_t dtype, pestle_dtype_t narrow) {
  return dtype == narrow ||
         (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
          pestle_dtype_size(dtype) > pestle_dtype_size(narrow));
}

// Traces through views and roundings that keep what |dtype| holds, up to |end|.
// |spread|: through broadcasts too.
static void trace(pestle_axes_t* t, pestle_dtype_t dtype, bool spread,
                  const pestle_value_t* end, pestle_value_t** value,
                  pestle_axes_list_t* axes) {
  pestle_axes_trace(t, spread, false, value, axes);
  while (*value != end && pestle_pass_is(*value, PESTLE_OP_CONVERT) &&
         holds((*value)->type->dtype, dtype) &&
         holds(operand((*value)->node, 0)->type->dtype, dtype)) {
    *value = operand((*value)->node, 0);
    pestle_axes_trace(t, spread, false, value, axes);
  }
}

typedef struct reduced_t {
  int64_t dims[PESTLE_MAX_RANK];
  size_t count;
} reduced_t;

// The dims of |axes| that |atoms| are; none of them in part.
static bool find_dims(pestle_axes_t* t, pestle_axes_list_t* axes,
                      pestle_axis_t* atoms, reduced_t* out) {
  out->count = 0;
  for (int32_t i = 0; i < axes->rank; ++i) {
    size_t common = pestle_axes_common(t, &axes->axis[i], atoms);
    if (common && common != axes->axis[i].count) return false;
    if (common) out->dims[out->count++] = i;
  }
  return out->count > 0 && !t->full;
}

// |row|, of |x|'s shape, repeats along the dims |*out| what |op| reduces of |x|
// along them, or, if |inverse|, 1 over that.
static bool is_reduced(pestle_value_t* row, pestle_op_t op, bool inverse,
                       pestle_value_t* x, reduced_t* out) {
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t axes, row_axes, reduce_axes;
  pestle_dtype_t dtype = x->type->dtype;
  if (!pestle_type_is_static(x->type)) return false;
  pestle_axes_of(&t, x->type, true, &axes);
  row_axes = axes;
  trace(&t, dtype, true, NULL, &row, &row_axes);
  if (inverse) {
    const pestle_node_t* n = row->node;
    if (!is_float_op(n, PESTLE_OP_DIVIDE) ||
        !pestle_pass_splat_is(operand(n, 0), 1)) {
      return false;
    }
    row = operand(n, 1);
    trace(&t, dtype, true, NULL, &row, &row_axes);
  }
  if (!is_reduce_by(row->node, op)) return false;
  pestle_i64s_t dims = PESTLE_NODE_I64S(row->node, dimensions);
  pestle_value_t* from = operand(row->node, 0);
  pestle_axis_t atoms = {.count = 0};
  int32_t kept = 0;
  reduce_axes.rank = from->type->rank;
  for (int32_t i = 0; i < reduce_axes.rank; ++i) {
    if (!pestle_i64s_has(dims, i)) {
      reduce_axes.axis[i] = row_axes.axis[kept++];
      continue;
    }
    reduce_axes.axis[i] = pestle_axes_new(&t, from->type->dims[i], false);
    pestle_axes_append(&t, &atoms, &reduce_axes.axis[i]);
  }
  // Both are views of one value, of its axes the same ones.
  pestle_axes_list_t x_axes = axes;
  pestle_axes_trace(&t, false, false, &x, &x_axes);
  trace(&t, dtype, false, x, &from, &reduce_axes);
  if (from != x) return false;
  for (int32_t i = 0; i < x_axes.rank; ++i) {
    if (!pestle_axes_equate(&t, x_axes.axis[i], reduce_axes.axis[i])) {
      return false;
    }
  }
  return find_dims(&t, &axes, &atoms, out);
}

// |like| with |to| in the place of |from|, which it is a view of.
static pestle_value_t* view_like(pestle_formula_t* f, pestle_value_t* like,
                                 const pestle_value_t* from,
                                 pestle_value_t* to) {
  if (like == from) return to;
  to = view_like(f, operand(like->node, 0), from, to);
  return pestle_f_like(f, like->node, &to, like->type);
}

// The dims |*of_view| of |view| are the dims |*dims| of the value behind it.
static bool are_dims(pestle_value_t* view, const reduced_t* of_view,
                     const reduced_t* dims) {
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t axes;
  pestle_axis_t atoms = {.count = 0};
  reduced_t found;
  pestle_axes_of(&t, view->type, true, &axes);
  for (size_t i = 0; i < of_view->count; ++i)
    pestle_axes_append(&t, &atoms, &axes.axis[of_view->dims[i]]);
  pestle_axes_trace(&t, false, false, &view, &axes);
  return find_dims(&t, &axes, &atoms, &found) && found.count == dims->count &&
         !memcmp(found.dims, dims->dims, found.count * sizeof(found.dims[0]));
}

// The value that |view| is a view of.
static pestle_value_t* behind_views(pestle_value_t* view) {
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t axes;
  if (!pestle_type_is_static(view->type)) return view;
  pestle_axes_of(&t, view->type, true, &axes);
  pestle_axes_trace(&t, false, false, &view, &axes);
  return view;
}

// e / sum(e), or e * (1 / sum(e)); e = exp(x - max(x)).
pestle_value_t* pestle_match_softmax(pestle_formula_t* f, pestle_node_t* node,
                                     bool strict) {
  // The composite rounds once more than a division does.
  bool divides = is_float_op(node, PESTLE_OP_DIVIDE);
  if (strict || (!divides && !is_float_op(node, PESTLE_OP_MULTIPLY))) {
    return NULL;
  }
  for (size_t side = 0; side < (divides ? 1 : 2); ++side) {
    pestle_value_t* e = operand(node, side);
    pestle_value_t* weights = behind_views(e);
    if (!pestle_pass_is(weights, PESTLE_OP_EXP)) continue;
    const pestle_node_t* below = operand(weights->node, 0)->node;
    reduced_t dims, summed;
    if (!is_float_op(below, PESTLE_OP_SUBTRACT)) continue;
    pestle_value_t* x = operand(below, 0);
    if (!is_reduced(operand(below, 1), PESTLE_OP_MAXIMUM, false, x, &dims) ||
        !is_reduced(operand(node, 1 - side), PESTLE_OP_ADD, !divides, e,
                    &summed) ||
        !are_dims(e, &summed, &dims)) {
      continue;
    }
    x = make_rows(f, PESTLE_OP_SOFTMAX, &x, 1,
                  (pestle_i64s_t){dims.dims, dims.count}, NULL);
    return view_like(f, e, weights, x);
  }
  return NULL;
}

// --- Its logarithm ---

// d - log(sum(exp(d))); d = x - max(x).
pestle_value_t* pestle_match_log_softmax(pestle_formula_t* f,
                                         pestle_node_t* node, bool strict) {
  (void)strict;
  if (!is_float_op(node, PESTLE_OP_SUBTRACT)) return NULL;
  pestle_value_t* d = operand(node, 0);
  pestle_i64s_t dims = {NULL, 0};
  pestle_value_t* x = below_max(d, &dims);
  if (!x) return NULL;
  pestle_value_t* row = spread_from(operand(node, 1), dims);
  pestle_value_t* e = NULL;
  if (!row || !pestle_pass_is(row, PESTLE_OP_LOG) ||
      !is_reduction(operand(row->node, 0), PESTLE_OP_ADD, &e, &dims) ||
      !pestle_pass_is(e, PESTLE_OP_EXP) || operand(e->node, 0) != d) {
    return NULL;
  }
  return make_rows(f, PESTLE_OP_LOG_SOFTMAX, &x, 1, dims, NULL);
}

// --- Layer norm and RMS norm ---

typedef struct norm_t {
  pestle_value_t* x;
  pestle_i64s_t dims;
  double epsilon;
  bool centred;
  pestle_value_t *scale, *offset;  // of x's shape, or NULL
} norm_t;

// |value| is v + epsilon: v.
static pestle_value_t* without_epsilon(pestle_value_t* value, double* epsilon) {
  const pestle_node_t* n = strip(value)->node;
  if (!is_float_op(n, PESTLE_OP_ADD) ||
      !pestle_pass_splat_f64(operand(n, 1), epsilon) || !(*epsilon >= 0)) {
    return NULL;
  }
  return operand(n, 0);
}

// The variance whose inverse root |row| is: rsqrt(v), 1 / sqrt(v), or v^-0.5.
// With |root| the row is the root itself.
static pestle_value_t* under_root(pestle_value_t* row, bool root) {
  const pestle_node_t* n = row->node;
  if (!n) return NULL;
  if (root) return n->op == PESTLE_OP_SQRT ? operand(n, 0) : NULL;
  if (n->op == PESTLE_OP_RSQRT) return operand(n, 0);
  if (n->op == PESTLE_OP_POWER && pestle_pass_splat_is(operand(n, 1), -0.5)) {
    return operand(n, 0);
  }
  if (n->op != PESTLE_OP_DIVIDE || !pestle_pass_splat_is(operand(n, 0), 1)) {
    return NULL;
  }
  pestle_value_t* below = strip(operand(n, 1));
  return pestle_pass_through(below, PESTLE_OP_SQRT);
}

// |value| is the square of |d|.
static bool is_square(const pestle_value_t* value, const pestle_value_t* d) {
  const pestle_node_t* n = value->node;
  if (!n || operand(n, 0) != d) return false;
  return (n->op == PESTLE_OP_MULTIPLY && operand(n, 1) == d) ||
         (n->op == PESTLE_OP_POWER && pestle_pass_splat_is(operand(n, 1), 2));
}

// |v| is mean(x * x) - mean(x) * mean(x) of |*out_x|, held above 0 or not.
static bool is_difference_of_means(pestle_value_t* v, norm_t* m,
                                   pestle_value_t** out_x) {
  const pestle_node_t* n = strip(v)->node;
  if (is_float_op(n, PESTLE_OP_MAXIMUM) &&
      pestle_pass_splat_is(operand(n, 1), 0)) {
    n = strip(operand(n, 0))->node;
  }
  if (!is_float_op(n, PESTLE_OP_SUBTRACT)) return false;
  pestle_value_t *square = NULL, *x = NULL;
  const pestle_node_t* right = strip(operand(n, 1))->node;
  if (!right || !is_mean(operand(n, 0), &square, &m->dims)) return false;
  pestle_value_t* mean = operand(right, 0);
  if (!is_square(&((pestle_node_t*)right)->results[0], mean) ||
      !is_mean(mean, &x, &m->dims) || !is_square(square, x)) {
    return false;
  }
  *out_x = x;
  return true;
}

// The mean's input when |d| is x - mean(x) along the dims, else NULL.
static pestle_value_t* centred_input(const pestle_value_t* d, norm_t* m) {
  const pestle_node_t* n = d->node;
  if (!is_float_op(n, PESTLE_OP_SUBTRACT)) return NULL;
  pestle_value_t* mean = spread_from(operand(n, 1), m->dims);
  pestle_value_t* x = operand(n, 0);
  return mean && is_mean(mean, &x, &m->dims) ? x : NULL;
}

// |root| is what |d| has to be divided (|below|) or multiplied by to be
// normalised.
static bool is_normalised(pestle_value_t* d, pestle_value_t* root, bool below,
                          norm_t* m) {
  m->dims = (pestle_i64s_t){NULL, 0};
  pestle_value_t* row = spread_from(root, m->dims);
  pestle_value_t* v = row ? under_root(row, below) : NULL;
  if (v) v = without_epsilon(v, &m->epsilon);
  if (!v) return false;
  pestle_value_t *square = NULL, *varied = NULL;
  bool apart = is_difference_of_means(v, m, &varied);
  if (!apart) {
    m->dims = (pestle_i64s_t){NULL, 0};
    if (!is_mean(v, &square, &m->dims) || !is_square(square, d)) return false;
  }
  // The dims are known now: the broadcast must run along them.
  if (!spread_from(root, m->dims)) return false;
  pestle_value_t* x = centred_input(d, m);
  m->centred = x != NULL;
  m->x = x ? x : d;
  // Something else over the deviation of x, such as x's tangent, is no norm.
  return !apart || x == varied;
}

static pestle_type_t dims_type(const norm_t* m) {
  pestle_type_t type = pestle_type_make(m->x->type->dtype, 0, NULL);
  for (size_t i = 0; i < m->dims.count; ++i) {
    type.dims[type.rank++] = m->x->type->dims[m->dims.data[i]];
  }
  return type;
}

// Whether |value|, of the whole shape, varies along the normalised dims alone.
static bool is_per_dimension(const norm_t* m, const pestle_value_t* value) {
  double splat;
  if (!value || pestle_pass_splat_f64(value, &splat)) return true;
  pestle_type_t type = dims_type(m);
  const pestle_node_t* n = value->node;
  if (!n || n->op != PESTLE_OP_BROADCAST_IN_DIM) {
    return pestle_type_count(value->type) == pestle_type_count(&type);
  }
  const pestle_type_t* from = operand(n, 0)->type;
  pestle_i64s_t map = PESTLE_NODE_I64S(n, broadcast_dimensions);
  int64_t last = -1;
  for (size_t i = 0; i < map.count; ++i) {
    if (from->dims[i] == 1) continue;
    if (!pestle_i64s_has(m->dims, map.data[i]) || map.data[i] < last) {
      return false;
    }
    last = map.data[i];
  }
  return pestle_type_count(from) == pestle_type_count(&type);
}

// Such a value as a tensor of the normalised dims; |identity| for NULL.
static pestle_value_t* per_dimension(pestle_formula_t* f, const norm_t* m,
                                     pestle_value_t* value, double identity) {
  pestle_type_t type = dims_type(m);
  double splat = identity;
  if (!value || pestle_pass_splat_f64(value, &splat)) {
    return pestle_f_number(f, &type, splat);
  }
  pestle_value_t* from = pestle_pass_through(value, PESTLE_OP_BROADCAST_IN_DIM);
  return pestle_f_reshape_to(f, from ? from : value, &type);
}

// A product and quotient taken apart.
typedef struct factors_t {
  pestle_value_t* values[4];
  bool below[4];
  size_t count;
} factors_t;

static bool is_quotient(const pestle_node_t* n) {
  return is_float_op(n, PESTLE_OP_MULTIPLY) || is_float_op(n, PESTLE_OP_DIVIDE);
}

// What has other users is a factor as it is.
static bool expand(pestle_value_t* value, bool top, factors_t* f) {
  const pestle_node_t* n = value->node;
  if (is_quotient(n) && (top || value->use_count == 1)) {
    if (!expand(operand(n, 0), false, f)) return false;
    if (n->op == PESTLE_OP_MULTIPLY) return expand(operand(n, 1), false, f);
    value = operand(n, 1);
  }
  if (f->count == 4) return false;
  f->below[f->count] =
      is_float_op(n, PESTLE_OP_DIVIDE) && value != &n->results[0];
  f->values[f->count++] = value;
  return true;
}

static bool is_ascending(pestle_i64s_t dims) {
  for (size_t i = 1; i < dims.count; ++i) {
    if (dims.data[i] <= dims.data[i - 1]) return false;
  }
  return true;
}

// |node| is the norm, or the norm times a scale, in any association.
static bool read_scaled(const pestle_node_t* node, norm_t* m) {
  factors_t f = {.count = 0};
  if (!is_quotient(node) ||
      !expand(&((pestle_node_t*)node)->results[0], true, &f) || f.count < 2 ||
      f.count > 3) {
    return false;
  }
  for (size_t d = 0; d < f.count; ++d) {
    for (size_t root = 0; root < f.count; ++root) {
      if (d == root || f.below[d]) continue;
      if (!is_normalised(f.values[d], f.values[root], f.below[root], m)) {
        continue;
      }
      size_t rest = 3 - d - root;
      m->scale = f.count == 3 ? f.values[rest] : NULL;
      bool fits = f.count == 2 || !f.below[rest];
      if (fits && is_ascending(m->dims) && is_per_dimension(m, m->scale)) {
        return true;
      }
    }
  }
  return false;
}

static bool read_norm(const pestle_node_t* node, norm_t* m) {
  m->offset = NULL;
  if (!is_float_op(node, PESTLE_OP_ADD)) return read_scaled(node, m);
  for (size_t side = 0; side < 2; ++side) {
    const pestle_node_t* inner = operand(node, side)->node;
    if (!is_quotient(inner) || inner->results[0].use_count != 1) continue;
    m->offset = operand(node, 1 - side);
    if (read_scaled(inner, m) && is_per_dimension(m, m->offset)) return true;
  }
  return false;
}

// Whether the one user of |node| reads more of the same norm.
static bool goes_on(const pestle_node_t* node) {
  if (node->results[0].use_count != 1) return false;
  const pestle_node_t* user = node->results[0].uses->user;
  norm_t m;
  return user->block == node->block &&
         (user->op == PESTLE_OP_MULTIPLY || user->op == PESTLE_OP_ADD) &&
         read_norm(user, &m);
}

pestle_value_t* pestle_match_norm(pestle_formula_t* f, pestle_node_t* node,
                                  bool strict) {
  norm_t m;
  if (strict || !read_norm(node, &m) || goes_on(node)) return NULL;
  pestle_value_t* operands[3] = {m.x, NULL, NULL};
  operands[1] = per_dimension(f, &m, m.scale, 1);
  if (m.centred) {
    // -0 is what adding leaves every number alone.
    operands[2] = per_dimension(f, &m, m.offset, -0.0);
    return make_rows(f, PESTLE_OP_LAYER_NORM, operands, 3, m.dims, &m.epsilon);
  }
  pestle_value_t* y =
      make_rows(f, PESTLE_OP_RMS_NORM, operands, 2, m.dims, &m.epsilon);
  return m.offset ? pestle_f_add(f, y, m.offset) : y;
}
