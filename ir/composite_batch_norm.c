// SPDX-License-Identifier: Apache-2.0
// batch_norm_training and batch_norm_grad, as StableHLO writes them. Means are
// over all axes but that of the features; a variance is of what is centred, so
// that nothing cancels.
#include "base/mem.h"
#include "ir/composite.h"

typedef struct norm_t {
  pestle_steps_t* s;
  int64_t axis, others[PESTLE_MAX_RANK];
  size_t other_count;
  double count;  // of numbers a feature
} norm_t;

static norm_t norm_of(pestle_steps_t* s) {
  norm_t n = {
      .s = s, .axis = PESTLE_NODE_I64(s->node, feature_index), .count = 1};
  for (int64_t i = 0; i < s->shape.rank; ++i) {
    if (i == n.axis) continue;
    n.others[n.other_count++] = i;
    n.count *= (double)s->shape.dims[i];
  }
  return n;
}

static pv_t* sum(norm_t* n, pv_t* x) {
  return pestle_step_reduce(n->s, PESTLE_OP_ADD, x,
                            (pestle_i64s_t){n->others, n->other_count}, 0);
}

static pv_t* mean(norm_t* n, pv_t* x) {
  pv_t* total = sum(n, x);
  return PESTLE_DIV(n->s, total, pestle_step_splat(n->s, total, n->count));
}

// One number a feature in the shape of x.
static pv_t* spread(norm_t* n, pv_t* a) {
  return pestle_step_broadcast(n->s, a, (pestle_i64s_t){&n->axis, 1});
}

static pv_t* operand(norm_t* n, size_t index) {
  return pestle_step_operand(n->s, index, n->s->compute);
}

static pv_t* safe_variance(norm_t* n, pv_t* variance) {
  double epsilon = PESTLE_NODE_F64(n->s->node, epsilon);
  return PESTLE_ADD(n->s, variance, pestle_step_splat(n->s, variance, epsilon));
}

static pv_t* rounded(norm_t* n, pv_t* a) {
  return pestle_step_convert(n->s, a,
                             pestle_node_operand(n->s->node, 0)->type->dtype);
}

// -> y, mean, variance
pv_t* pestle_decompose_batch_norm_training(pestle_steps_t* s) {
  norm_t n = norm_of(s);
  pv_t* x = operand(&n, 0);
  pv_t* middle = mean(&n, x);
  pv_t* centred = PESTLE_SUB(s, x, spread(&n, middle));
  pv_t* variance = mean(&n, PESTLE_MUL(s, centred, centred));
  pv_t* deviation =
      pestle_step1(s, PESTLE_OP_SQRT, safe_variance(&n, variance));
  pv_t* y = PESTLE_DIV(s, centred, spread(&n, deviation));
  y = PESTLE_MUL(s, y, spread(&n, operand(&n, 1)));
  y = PESTLE_ADD(s, y, spread(&n, operand(&n, 2)));
  s->more[0] = rounded(&n, middle);
  s->more[1] = rounded(&n, variance);
  return rounded(&n, y);
}

// x, scale, mean, variance, g -> of x, of scale, of offset. With c = x - mean and
// v = variance + epsilon:
//   scale / sqrt(v) (g - mean(g) - c mean(g c) / v), sum(g c) / sqrt(v), sum(g)
pv_t* pestle_decompose_batch_norm_grad(pestle_steps_t* s) {
  norm_t n = norm_of(s);
  pv_t* g = operand(&n, 4);
  pv_t* c = operand(&n, 0);
  c = PESTLE_SUB(s, c, spread(&n, operand(&n, 2)));
  pv_t* v = safe_variance(&n, operand(&n, 3));
  pv_t* deviation = pestle_step1(s, PESTLE_OP_SQRT, v);
  pv_t* all = sum(&n, g);
  pv_t* along = sum(&n, PESTLE_MUL(s, g, c));
  pv_t* count = pestle_step_splat(s, all, n.count);
  pv_t* part = PESTLE_DIV(s, PESTLE_DIV(s, along, count), v);
  pv_t* y = PESTLE_SUB(s, g, spread(&n, PESTLE_DIV(s, all, count)));
  y = PESTLE_SUB(s, y, PESTLE_MUL(s, c, spread(&n, part)));
  pv_t* factor = PESTLE_DIV(s, operand(&n, 1), deviation);
  y = PESTLE_MUL(s, y, spread(&n, factor));
  s->more[0] = rounded(&n, PESTLE_DIV(s, along, deviation));
  s->more[1] = rounded(&n, all);
  return rounded(&n, y);
}
