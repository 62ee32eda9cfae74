// SPDX-License-Identifier: Apache-2.0
// softmax and norms: what their tangents are over whole rows, in a few ops that become
// one kernel, and whose transposed is as short. Computed in f32 at least, rounded once.
//
// The tangent in reverse mode of a norm over the last axes would be an op that has no meaning
// but to be transposed (rule_custom.c says more of such): its cotangents are one op, norm_grad.
#include "base/fault.h"
#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static pv_t* wide(pestle_formula_t* f, pv_t* a) {
  return a ? pestle_f_convert(f, a, pestle_compute_dtype(a->type->dtype))
           : NULL;
}

// |a| summed over |axes| and repeated along them.
static pv_t* sums(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  if (!a) return NULL;
  pv_t* sum = pestle_f_reduce(f, PESTLE_OP_ADD, a, axes, 0);
  return pestle_spread_axes(f, sum, a->type, axes);
}

// Its mean, a number a row; repeated along the row.
static pv_t* mean(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  double count = 1;
  if (!a) return NULL;
  for (size_t i = 0; i < axes.count; ++i)
    count *= (double)a->type->dims[axes.data[i]];
  pv_t* sum = pestle_f_reduce(f, PESTLE_OP_ADD, a, axes, 0);
  return sum ? pestle_f_divide(f, sum, pestle_f_splat(f, sum, count)) : NULL;
}

static pv_t* means(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  pv_t* sum = mean(f, a, axes);
  return sum ? pestle_spread_axes(f, sum, a->type, axes) : NULL;
}

static void finish(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                   pv_t** out) {
  out[0] = pestle_f_convert(f, a, node->results[0].type->dtype);
}

// The result of |node| for the tangents. In reverse mode they are another kernel than the
// result: one that also stored a product with the cotangents (1,024 rows of 768, one thread,
// backward 3.1 times forward, 1.5 with the barrier).
static pv_t* result_apart(pestle_jvp_t* j, const pestle_node_t* node) {
  pv_t* r = pestle_node_result(node, 0);
  if (!j->is_reverse) return wide(&j->f, r);
  pestle_node_t* barrier = pestle_f_node(
      &j->f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                                   .operands = &r,
                                   .operand_count = 1});
  return barrier ? wide(&j->f, pestle_node_result(barrier, 0)) : NULL;
}

// r (t - sum r t)
void pestle_jvp_softmax(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                        pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* r = result_apart(j, node);
  pv_t* x = wide(f, t[0]);
  pv_t* sum = sums(f, pestle_f_multiply(f, r, x), axes);
  finish(f, node, pestle_f_multiply(f, r, pestle_f_subtract(f, x, sum)), out);
}

// t - sum exp(r) t
void pestle_jvp_log_softmax(pestle_jvp_t* j, pestle_node_t* node,
                            pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* p = pestle_f_exponential(f, result_apart(j, node));
  pv_t* x = wide(f, t[0]);
  pv_t* sum = sums(f, pestle_f_multiply(f, p, x), axes);
  finish(f, node, pestle_f_subtract(f, x, sum), out);
}

// sum exp(x - r) t
void pestle_jvp_logsumexp(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                          pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* x = wide(f, pestle_node_operand(node, 0));
  if (!x) return;
  pv_t* r = wide(f, pestle_node_result(node, 0));
  r = pestle_spread_axes(f, r, x->type, axes);
  pv_t* p = pestle_f_exponential(f, pestle_f_subtract(f, x, r));
  p = pestle_f_multiply(f, p, wide(f, t[0]));
  finish(f, node, pestle_f_reduce(f, PESTLE_OP_ADD, p, axes, 0), out);
}

// --- Norms: y = h scale + offset ---

// A row over its size: h = x / sqrt(mean x^2 + epsilon); |*out_rate| is h / x.
static pv_t* normalised(pestle_formula_t* f, const pestle_node_t* node, pv_t* x,
                        pv_t** out_rate) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* size = mean(f, pestle_f_multiply(f, x, x), axes);
  size = size ? pestle_f_plus(f, size, PESTLE_NODE_F64(node, epsilon)) : NULL;
  size = pestle_f_rsqrt(f, size);
  *out_rate = size ? pestle_spread_axes(f, size, x->type, axes) : NULL;
  return pestle_f_multiply(f, x, *out_rate);
}

// |a|, which lies along the normalised axes, in the shape of |x|.
static pv_t* along(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                   const pv_t* x) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  a = wide(f, a);
  return a && x ? pestle_f_broadcast_to(f, a, x->type, axes.data) : NULL;
}

// h scale + offset in the place of |node|, so that what it is made of is there for the
// tangent too. Returns the new result.
static pv_t* put_in_place(pestle_jvp_t* j, pestle_node_t* node, pv_t* h,
                          bool is_centred) {
  pestle_formula_t* f = &j->f;
  pv_t* y = pestle_f_multiply(f, h, along(f, node, operand(node, 1), h));
  if (is_centred) y = pestle_f_add(f, y, along(f, node, operand(node, 2), h));
  return pestle_f_convert(f, y, node->results[0].type->dtype);
}

// dh = rate (t - h mean(h t)), of a centred norm less the mean of t too: h has the mean 0.
static pv_t* tangent_of_row(pestle_formula_t* f, pv_t* t, pv_t* h, pv_t* rate,
                            pestle_i64s_t axes, bool is_centred) {
  pv_t* mean = means(f, pestle_f_multiply(f, h, t), axes);
  pv_t* d = pestle_f_subtract(f, t, pestle_f_multiply(f, h, mean));
  if (is_centred && !PESTLE_FAULT(lost_mean)) {
    d = pestle_f_subtract(f, d, means(f, t, axes));
  }
  return pestle_f_multiply(f, rate, d);
}

// Sums of rows come in blocks of so many at least, which are so many at most: what shares
// the rows among cores follows from the shape alone.
enum { LEAST_ROWS = 16, MOST_BLOCKS = 64 };

static int64_t rows_of(const pestle_type_t* x, int64_t first_axis) {
  int64_t rows = 1;
  for (int64_t d = 0; d < first_axis; ++d)
    rows *= x->dims[d];
  return rows;
}

// Over the last axes.
static bool is_pulled(const pestle_jvp_t* j, const pestle_node_t* norm) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(norm, dimensions);
  const pestle_type_t* x = operand(norm, 0)->type;
  int64_t first = x->rank - (int64_t)axes.count;
  return j->is_reverse && axes.count && axes.data[0] == first &&
         rows_of(x, first) > 0 && (first || x->rank < PESTLE_MAX_RANK);
}

// Neither the result nor the offset is read again.
static void norm_pull_back(pestle_jvp_t* j, const pestle_node_t* norm,
                           pv_t* const* t, pv_t** out) {
  enum { OFFSET = 2 };
  uint32_t n = norm->operand_count, unread = 1u << n;
  if (n > OFFSET) unread |= 1u << OFFSET;
  pestle_custom_attr_value_t attrs[] = {
      pestle_pull_i64("dimension", PESTLE_NODE_I64S(norm, dimensions).data[0]),
      pestle_pull_f64("epsilon", PESTLE_NODE_F64(norm, epsilon)),
      pestle_pull_i64("centred", norm->op == PESTLE_OP_LAYER_NORM)};
  pestle_pull_back_by(j, norm, PESTLE_PULLED_NORM, unread, attrs, 3, t, out);
}

void pestle_norm_pull(pestle_transposer_t* x, const pestle_node_t* node,
                      uint32_t count, pv_t* ct) {
  pestle_formula_t* f = &x->f;
  pestle_custom_attrs_t how;
  if (!pestle_pull_attrs(x, node, &how)) return;
  pv_t* operands[] = {operand(node, 0), operand(node, 1), ct};
  int64_t axis = pestle_custom_i64(&how, "dimension"), first = 0;
  int64_t blocks = rows_of(operands[0]->type, axis) / LEAST_ROWS;
  blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64(dimension, axis),
      PESTLE_SET_F64(epsilon, pestle_custom_f64(&how, "epsilon")),
      PESTLE_SET_BOOL(centred, pestle_custom_i64(&how, "centred") != 0),
      PESTLE_SET_I64(blocks, blocks)};
  pestle_node_t* grad =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_NORM_GRAD,
                                             .operands = operands,
                                             .operand_count = 3,
                                             .attrs = attrs,
                                             .attr_count = 4});
  for (uint32_t r = 0; grad && r < grad->result_count; ++r) {
    pv_t* y = pestle_node_result(grad, r);
    if (!pestle_is_linear(x, operand(node, count + 1 + r))) continue;
    if (r) {
      y = pestle_f_reduce(f, PESTLE_OP_ADD, y, (pestle_i64s_t){&first, 1}, 0);
      y = pestle_f_convert(f, y, ct->type->dtype);
    }
    pestle_cotangent_add(x, node, count + 1 + r, y);
  }
}

static void jvp_norm(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out, bool is_centred) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t *terms[3] = {NULL}, *rate;
  if (is_pulled(j, node)) {
    norm_pull_back(j, node, t, out);
    return;
  }
  pv_t* x = wide(f, operand(node, 0));
  if (is_centred) x = pestle_f_subtract(f, x, means(f, x, axes));
  pv_t* h = normalised(f, node, x, &rate);
  pv_t* y = put_in_place(j, node, h, is_centred);
  if (!y) return;
  if (t[0]) {
    pv_t* d = tangent_of_row(f, wide(f, t[0]), h, rate, axes, is_centred);
    terms[0] = pestle_f_multiply(f, d, along(f, node, operand(node, 1), x));
  }
  if (t[1]) terms[1] = pestle_f_multiply(f, h, along(f, node, t[1], x));
  if (is_centred && t[2]) terms[2] = along(f, node, t[2], x);
  pv_t* tangent = pestle_f_convert(f, pestle_sum(f, terms, 3), y->type->dtype);
  if (!tangent) return;
  pestle_value_replace_all_uses(pestle_node_result(node, 0), y);
  pestle_tangent_set(j, y, tangent);
}

void pestle_jvp_layer_norm(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  jvp_norm(j, node, t, out, true);
}

void pestle_jvp_rms_norm(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                         pv_t** out) {
  jvp_norm(j, node, t, out, false);
}

// --- Batch norm in training: y, mean, variance ---

// |a|, a number a feature, in the shape of |x|.
static pv_t* by_feature(pestle_formula_t* f, int64_t axis, pv_t* a,
                        const pv_t* x) {
  a = wide(f, a);
  return a && x ? pestle_f_broadcast_to(f, a, x->type, &axis) : NULL;
}

// What the cotangents of mean and variance give x: (of mean + 2 (x - mean) of variance) / n.
static pv_t* of_statistics(pestle_formula_t* f, int64_t axis, pv_t* x,
                           pv_t* mean, pv_t* mean_ct, pv_t* variance_ct) {
  x = wide(f, x);
  pv_t* terms[2] = {by_feature(f, axis, mean_ct, x), NULL};
  if (!x) return NULL;
  double n = (double)(pestle_type_count(x->type) / x->type->dims[axis]);
  if (variance_ct) {
    pv_t* middle = by_feature(f, axis, mean, x);
    pv_t* twice = pestle_f_times(f, pestle_f_subtract(f, x, middle), 2);
    pv_t* c = by_feature(f, axis, variance_ct, x);
    terms[1] = pestle_f_multiply(f, twice, c);
  }
  pv_t* sum = pestle_sum(f, terms, 2);
  return sum ? pestle_f_times(f, sum, 1 / n) : NULL;
}

bool pestle_is_pulled_batch_norm(const pestle_jvp_t* j,
                                 const pestle_node_t* node) {
  return node->op == PESTLE_OP_BATCH_NORM_TRAINING && j->is_reverse &&
         pestle_type_count(operand(node, 0)->type) > 0;
}

// Operands and results of a batch norm, as its pullback has them.
enum {
  BATCH_X,
  BATCH_SCALE,
  BATCH_OFFSET,
  BATCH_Y,
  BATCH_MEAN,
  BATCH_VARIANCE
};

void pestle_batch_norm_pull_back(pestle_jvp_t* j, const pestle_node_t* node,
                                 pv_t* const* t, pv_t** out) {
  pestle_custom_attr_value_t attrs[] = {
      pestle_pull_f64("epsilon", PESTLE_NODE_F64(node, epsilon)),
      pestle_pull_i64("feature_index", PESTLE_NODE_I64(node, feature_index))};
  pestle_pull_back_by(j, node, PESTLE_PULLED_BATCH_NORM,
                      1u << BATCH_OFFSET | 1u << BATCH_Y, attrs, 2, t, out);
}

void pestle_batch_norm_pull(pestle_transposer_t* x, const pestle_node_t* node,
                            uint32_t count, pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  pestle_custom_attrs_t how;
  pestle_node_t* grad = NULL;
  pv_t *first = operand(node, BATCH_X), *more = NULL;
  pv_t* mean = operand(node, BATCH_MEAN);
  if (!pestle_pull_attrs(x, node, &how)) return;
  int64_t axis = pestle_custom_i64(&how, "feature_index");
  if (ct[1] || ct[2]) more = of_statistics(f, axis, first, mean, ct[1], ct[2]);
  if (ct[0]) {
    pv_t* operands[] = {first, operand(node, BATCH_SCALE), mean,
                        operand(node, BATCH_VARIANCE), ct[0]};
    pestle_attr_t attrs[] = {
        PESTLE_SET_F64(epsilon, pestle_custom_f64(&how, "epsilon")),
        PESTLE_SET_I64(feature_index, axis)};
    grad =
        pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_BATCH_NORM_GRAD,
                                               .operands = operands,
                                               .operand_count = 5,
                                               .attrs = attrs,
                                               .attr_count = 2});
  }
  pv_t* terms[2] = {grad ? wide(f, pestle_node_result(grad, 0)) : NULL, more};
  pv_t* sum = pestle_f_convert(f, pestle_sum(f, terms, 2), first->type->dtype);
  pestle_cotangent_add(x, node, count + 1 + 2, sum);
  for (uint32_t i = 1; grad && i < 3; ++i)
    pestle_cotangent_add(x, node, count + 3 + i, pestle_node_result(grad, i));
}
