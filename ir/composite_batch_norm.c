// SPDX-License-Identifier: Apache-2.0
// batch_norm_training and batch_norm_grad, as StableHLO writes them. Means are
// over all axes but that of the features; a variance is of what is centred, so
// that nothing cancels.
#include "base/mem.h"
#include "ir/composite.h"

typedef struct norm_t {
  pestle_formula_t* f;
  int64_t axis, others[PESTLE_MAX_RANK];
  size_t other_count;
  double count;  // of numbers a feature
} norm_t;

static norm_t norm_of(pestle_formula_t* f) {
  norm_t n = {
      .f = f, .axis = PESTLE_NODE_I64(f->of->node, feature_index), .count = 1};
  for (int64_t i = 0; i < f->of->shape.rank; ++i) {
    if (i == n.axis) continue;
    n.others[n.other_count++] = i;
    n.count *= (double)f->of->shape.dims[i];
  }
  return n;
}

static pv_t* sum(norm_t* n, pv_t* x) {
  return pestle_f_reduce(n->f, PESTLE_OP_ADD, x,
                         (pestle_i64s_t){n->others, n->other_count}, 0);
}

static pv_t* mean(norm_t* n, pv_t* x) {
  pv_t* total = sum(n, x);
  return pestle_f_divide(n->f, total, pestle_f_splat(n->f, total, n->count));
}

// One number a feature in the shape of x.
static pv_t* spread(norm_t* n, pv_t* a) {
  return pestle_f_to_shape(n->f, a, (pestle_i64s_t){&n->axis, 1});
}

static pv_t* operand(norm_t* n, size_t index) {
  return pestle_f_operand(n->f, index, n->f->compute);
}

static pv_t* safe_variance(norm_t* n, pv_t* variance) {
  double epsilon = PESTLE_NODE_F64(n->f->of->node, epsilon);
  return pestle_f_add(n->f, variance, pestle_f_splat(n->f, variance, epsilon));
}

static pv_t* rounded(norm_t* n, pv_t* a) {
  return pestle_f_convert(n->f, a,
                          pestle_node_operand(n->f->of->node, 0)->type->dtype);
}

// -> y, mean, variance
pv_t* pestle_decompose_batch_norm_training(pestle_formula_t* f) {
  norm_t n = norm_of(f);
  pv_t* x = operand(&n, 0);
  pv_t* middle = mean(&n, x);
  pv_t* centred = pestle_f_subtract(f, x, spread(&n, middle));
  pv_t* variance = mean(&n, pestle_f_multiply(f, centred, centred));
  pv_t* deviation = pestle_f_sqrt(f, safe_variance(&n, variance));
  pv_t* y = pestle_f_divide(f, centred, spread(&n, deviation));
  y = pestle_f_multiply(f, y, spread(&n, operand(&n, 1)));
  y = pestle_f_add(f, y, spread(&n, operand(&n, 2)));
  f->of->more[0] = rounded(&n, middle);
  f->of->more[1] = rounded(&n, variance);
  return rounded(&n, y);
}

// x, scale, mean, variance, g -> of x, of scale, of offset. With c = x - mean and
// v = variance + epsilon:
//   scale / sqrt(v) (g - mean(g) - c mean(g c) / v), sum(g c) / sqrt(v), sum(g)
pv_t* pestle_decompose_batch_norm_grad(pestle_formula_t* f) {
  norm_t n = norm_of(f);
  pv_t* g = operand(&n, 4);
  pv_t* c = operand(&n, 0);
  c = pestle_f_subtract(f, c, spread(&n, operand(&n, 2)));
  pv_t* v = safe_variance(&n, operand(&n, 3));
  pv_t* deviation = pestle_f_sqrt(f, v);
  pv_t* all = sum(&n, g);
  pv_t* along = sum(&n, pestle_f_multiply(f, g, c));
  pv_t* count = pestle_f_splat(f, all, n.count);
  pv_t* part = pestle_f_divide(f, pestle_f_divide(f, along, count), v);
  pv_t* y = pestle_f_subtract(f, g, spread(&n, pestle_f_divide(f, all, count)));
  y = pestle_f_subtract(f, y, pestle_f_multiply(f, c, spread(&n, part)));
  pv_t* factor = pestle_f_divide(f, operand(&n, 1), deviation);
  y = pestle_f_multiply(f, y, spread(&n, factor));
  f->of->more[0] = rounded(&n, pestle_f_divide(f, along, deviation));
  f->of->more[1] = rounded(&n, all);
  return rounded(&n, y);
}
