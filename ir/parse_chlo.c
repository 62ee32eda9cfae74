// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO that jax emits and that no row stands for: each is read as its
// formula. Floats narrower than f32 are computed in f32 and rounded once.
//
// Formulas keep denormals, signed zeros, infinities and NaN, and what cancels is
// kept from cancelling: 1 - x^2 is (1 - x)(1 + x), sinh goes by expm1. In f32 and
// f64 they are within 3 ulp (tests/cli/chlo_test.py).
#include <math.h>
#include <string.h>

#include "ir/composite.h"
#include "ir/parse_internal.h"

#define LN2 0.69314718055994530942

static pv_t* op1(pestle_steps_t* s, pestle_op_t op, pv_t* a) {
  return pestle_step1(s, op, a);
}

static pv_t* plus(pestle_steps_t* s, pv_t* a, double b) {
  return PESTLE_ADD(s, a, pestle_step_splat(s, a, b));
}

static pv_t* times(pestle_steps_t* s, pv_t* a, double b) {
  return PESTLE_MUL(s, a, pestle_step_splat(s, a, b));
}

// |a| where |x| > |limit|, else |b|.
static pv_t* above(pestle_steps_t* s, pv_t* x, double limit, pv_t* a, pv_t* b) {
  pv_t* which =
      pestle_step2(s, PESTLE_OP_GT, x, pestle_step_splat(s, x, limit));
  return pestle_step3(s, PESTLE_OP_SELECT, which, a, b);
}

// |magnitude|, which is not negative, with the sign of |x|, which is 0 where
// that is.
static pv_t* signed_as(pestle_steps_t* s, pv_t* magnitude, pv_t* x) {
  return PESTLE_MUL(s, magnitude, op1(s, PESTLE_OP_SIGN, x));
}

// sqrt(1 - x^2)
static pv_t* opposite(pestle_steps_t* s, pv_t* x) {
  pv_t* one = pestle_step_splat(s, x, 1);
  pv_t* below = PESTLE_SUB(s, one, x);
  return op1(s, PESTLE_OP_SQRT, PESTLE_MUL(s, below, PESTLE_ADD(s, one, x)));
}

static pv_t* asin_of(pestle_steps_t* s, pv_t* x) {
  return pestle_step2(s, PESTLE_OP_ATAN2, x, opposite(s, x));
}

static pv_t* acos_of(pestle_steps_t* s, pv_t* x) {
  return pestle_step2(s, PESTLE_OP_ATAN2, opposite(s, x), x);
}

static pv_t* atan_of(pestle_steps_t* s, pv_t* x) {
  return pestle_step2(s, PESTLE_OP_ATAN2, x, pestle_step_splat(s, x, 1));
}

// e^a / 2 without overflow before the result does.
static pv_t* half_exp(pestle_steps_t* s, pv_t* a) {
  pv_t* root = op1(s, PESTLE_OP_EXP, times(s, a, 0.5));
  return PESTLE_MUL(s, times(s, root, 0.5), root);
}

// (e + e / (e + 1)) / 2 with e = e^|x| - 1; from 22 on e^|x| / 2.
static pv_t* sinh_of(pestle_steps_t* s, pv_t* x) {
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* e = op1(s, PESTLE_OP_EXPM1, a);
  pv_t* sum = PESTLE_ADD(s, e, PESTLE_DIV(s, e, plus(s, e, 1)));
  return signed_as(s, above(s, a, 22, half_exp(s, a), times(s, sum, 0.5)), x);
}

static pv_t* cosh_of(pestle_steps_t* s, pv_t* x) {
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* e = op1(s, PESTLE_OP_EXP, a);
  pv_t* inverse = PESTLE_DIV(s, pestle_step_splat(s, e, 0.5), e);
  pv_t* sum = PESTLE_ADD(s, times(s, e, 0.5), inverse);
  return above(s, a, 22, half_exp(s, a), sum);
}

// log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|; from 2^28 on log(a) + log(2).
static pv_t* asinh_of(pestle_steps_t* s, pv_t* x) {
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* square = PESTLE_MUL(s, a, a);
  pv_t* root = op1(s, PESTLE_OP_SQRT, plus(s, square, 1));
  pv_t* sum = PESTLE_ADD(s, a, PESTLE_DIV(s, square, plus(s, root, 1)));
  pv_t* far = plus(s, op1(s, PESTLE_OP_LOG, a), LN2);
  pv_t* near = op1(s, PESTLE_OP_LOG1P, sum);
  return signed_as(s, above(s, a, 0x1p28, far, near), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1; NaN below 1.
static pv_t* acosh_of(pestle_steps_t* s, pv_t* x) {
  pv_t* t = plus(s, x, -1);
  pv_t* root = op1(s, PESTLE_OP_SQRT, PESTLE_MUL(s, t, plus(s, t, 2)));
  pv_t* near = op1(s, PESTLE_OP_LOG1P, PESTLE_ADD(s, t, root));
  pv_t* far = plus(s, op1(s, PESTLE_OP_LOG, x), LN2);
  pv_t* y = above(s, x, 0x1p28, far, near);
  pv_t* less = pestle_step2(s, PESTLE_OP_LT, x, pestle_step_splat(s, x, 1));
  return pestle_step3(s, PESTLE_OP_SELECT, less,
                      pestle_step_splat(s, x, (double)NAN), y);
}

// (log1p(x) - log1p(-x)) / 2: both have one sign, nothing cancels.
static pv_t* atanh_of(pestle_steps_t* s, pv_t* x) {
  pv_t* up = op1(s, PESTLE_OP_LOG1P, x);
  pv_t* down = op1(s, PESTLE_OP_LOG1P, op1(s, PESTLE_OP_NEGATE, x));
  return times(s, PESTLE_SUB(s, up, down), 0.5);
}

static const struct {
  const char* name;
  pv_t* (*formula)(pestle_steps_t* s, pv_t* x);
} rows[] = {
    {"chlo.asin", asin_of},   {"chlo.acos", acos_of},
    {"chlo.atan", atan_of},   {"chlo.sinh", sinh_of},
    {"chlo.cosh", cosh_of},   {"chlo.asinh", asinh_of},
    {"chlo.acosh", acosh_of}, {"chlo.atanh", atanh_of},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const char* pestle_parse_chlo_name(size_t index) {
  return index < ROWS ? rows[index].name : NULL;
}

pestle_status_t pestle_parse_chlo(pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  pestle_node_t** node) {
  size_t row = 0;
  while (row < ROWS && !pestle_str_equal_c(o->at.text, rows[row].name))
    ++row;
  if (row == ROWS) return NULL;
  pestle_value_t* x = pestle_node_operand(*node, 0);
  if (!pestle_type_is_static(x->type)) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_UNSUPPORTED,
                              "'%s' of a tensor with unknown extents is not "
                              "supported",
                              rows[row].name);
  }
  pestle_dtype_t dtype = x->type->dtype;
  pestle_steps_t steps = {
      .node = *node,
      .builder = pestle_builder_before(*node),
      .compute = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32,
      .shape = *x->type};
  steps.shape.dtype = steps.compute;
  pv_t* y =
      rows[row].formula(&steps, pestle_step_operand(&steps, 0, steps.compute));
  y = pestle_step_convert(&steps, y, dtype);
  if (steps.status) return steps.status;
  pestle_node_erase(*node);
  *node = y->node;
  return NULL;
}
