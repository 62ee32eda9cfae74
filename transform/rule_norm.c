// SPDX-License-Identifier: Apache-2.0
// softmax and norms: what their tangents are over whole rows, in a few ops that become
// one kernel, and whose transposed is as short. Computed in f32 at least, rounded once.
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

// The same of their mean.
static pv_t* means(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  double count = 1;
  if (!a) return NULL;
  for (size_t i = 0; i < axes.count; ++i)
    count *= (double)a->type->dims[axes.data[i]];
  pv_t* sum = pestle_f_reduce(f, PESTLE_OP_ADD, a, axes, 0);
  sum = sum ? pestle_f_divide(f, sum, pestle_f_splat(f, sum, count)) : NULL;
  return pestle_spread_axes(f, sum, a->type, axes);
}

static void finish(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                   pv_t** out) {
  out[0] = pestle_f_convert(f, a, node->results[0].type->dtype);
}

// r (t - sum r t)
void pestle_jvp_softmax(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                        pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* r = wide(f, pestle_node_result(node, 0));
  pv_t* x = wide(f, t[0]);
  pv_t* sum = sums(f, pestle_f_multiply(f, r, x), axes);
  finish(f, node, pestle_f_multiply(f, r, pestle_f_subtract(f, x, sum)), out);
}

// t - sum exp(r) t
void pestle_jvp_log_softmax(pestle_jvp_t* j, pestle_node_t* node,
                            pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t* p = pestle_f_exponential(f, wide(f, pestle_node_result(node, 0)));
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
  pv_t* size = means(f, pestle_f_multiply(f, x, x), axes);
  size = pestle_f_plus(f, size, PESTLE_NODE_F64(node, epsilon));
  *out_rate = pestle_f_rsqrt(f, size);
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

static void jvp_norm(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     bool is_centred) {
  pestle_formula_t* f = &j->f;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, dimensions);
  pv_t *terms[3] = {NULL}, *rate;
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
  (void)out;
  jvp_norm(j, node, t, true);
}

void pestle_jvp_rms_norm(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                         pv_t** out) {
  (void)out;
  jvp_norm(j, node, t, false);
}
