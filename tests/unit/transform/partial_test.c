// SPDX-License-Identifier: Apache-2.0
// The formulas of partial.def, evaluated, against differences of what the row of
// scalar.def computes.
#include "transform/partial.h"

#include <math.h>

#include "ir/ref/ref_internal.h"
#include "test.h"

static double scalar(pestle_op_t op, const double* operands) {
  double out[2] = {0, 0};
  const double* o = operands;
  pestle_ref_kernel(op, PESTLE_REF_F64)(out, &o[0], &o[1], &o[2], 1, 64);
  return out[0];
}

// Comparisons write a byte; select reads one.
static double apply(pestle_op_t op, const double* operands) {
  const pestle_op_info_t* info = pestle_op_info(op);
  if (info->rule == PESTLE_RULE_COMPARE) {
    return op == PESTLE_OP_LT ? operands[0] < operands[1]
                              : operands[0] == operands[1];
  }
  if (op == PESTLE_OP_SELECT) {
    return operands[0] != 0 ? operands[1] : operands[2];
  }
  return scalar(op, operands);
}

static double evaluate(const uint8_t* formula, const double* operands,
                       double result) {
  double stack[PESTLE_PARTIAL_DEPTH + 3] = {0};
  size_t depth = 0;
  for (; *formula != PESTLE_PARTIAL_END; ++formula) {
    double value;
    if (*formula >= PESTLE_PARTIAL_NUMBER) {
      value = pestle_partial_number(*formula - PESTLE_PARTIAL_NUMBER);
    } else if (*formula == PESTLE_PARTIAL_RESULT) {
      value = result;
    } else if (*formula >= PESTLE_PARTIAL_OPERAND) {
      value = operands[*formula - PESTLE_PARTIAL_OPERAND];
    } else {
      depth -= pestle_op_info((pestle_op_t)*formula)->operands;
      value = apply((pestle_op_t)*formula, stack + depth);
    }
    stack[depth++] = value;
    assert_true(depth <= PESTLE_PARTIAL_DEPTH);
  }
  assert_int_equal(depth, 1);
  return stack[0];
}

static double difference(pestle_op_t op, const double* operands, size_t i) {
  const double h = 0x1p-10;
  double d[2];
  for (int k = 0; k < 2; ++k) {
    double step = k ? h / 2 : h;
    double up[3] = {operands[0], operands[1], operands[2]};
    double down[3] = {operands[0], operands[1], operands[2]};
    up[i] += step;
    down[i] -= step;
    d[k] = (scalar(op, up) - scalar(op, down)) / (2 * step);
  }
  return (4 * d[1] - d[0]) / 3;
}

static void check(pestle_op_t op, size_t i, const double* operands) {
  double result = scalar(op, operands);
  double got = evaluate(pestle_partial_find(op, i), operands, result);
  double want = difference(op, operands, i);
  if (!isfinite(want) || fabs(got - want) <= 1e-8 * (1 + fabs(want))) return;
  fail_msg("d %s / d operand %zu at %g, %g, %g: %.15g, not %.15g",
           pestle_op_info(op)->name, i, operands[0], operands[1], operands[2],
           got, want);
}

// Places away from kinks and from where a row is not defined.
static void test_formulas(void** state) {
  (void)state;
  static const double first[] = {0.13, 0.21, 0.37, 0.71, -0.6};
  static const double second[] = {0.55, 1.7, -0.33};
  int count = 0;
  for (int op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    for (size_t i = 0; i < pestle_op_info((pestle_op_t)op)->operands; ++i) {
      if (!pestle_partial_find((pestle_op_t)op, i)) continue;
      for (size_t k = 0; k < 15; ++k) {
        double operands[3] = {first[k % 5], second[k / 5], 0.4};
        check((pestle_op_t)op, i, operands);
      }
      ++count;
    }
  }
  assert_true(count > 30);
}

static double at(pestle_op_t op, size_t i, double a, double b) {
  double operands[3] = {a, b, 0};
  return evaluate(pestle_partial_find(op, i), operands, scalar(op, operands));
}

// What the head of partial.def says of places without a derivative, and that large
// numbers do not overflow.
static void test_edges(void** state) {
  (void)state;
  assert_true(at(PESTLE_OP_MAXIMUM, 0, 1, 1) == 0.5);
  assert_true(at(PESTLE_OP_MAXIMUM, 1, 1, 1) == 0.5);
  assert_true(at(PESTLE_OP_MINIMUM, 0, 2, 1) == 0);
  assert_true(at(PESTLE_OP_ABS, 0, 0, 0) == 1);
  assert_true(at(PESTLE_OP_POWER, 0, 0, 0) == 0);
  assert_true(at(PESTLE_OP_POWER, 0, 0, 1) == 1);
  assert_true(at(PESTLE_OP_POWER, 1, 0, 2) == 0);
  assert_true(isinf(at(PESTLE_OP_SQRT, 0, 0, 0)));
  assert_true(isinf(at(PESTLE_OP_CBRT, 0, 0, 0)));
  assert_true(at(PESTLE_OP_CBRT, 0, INFINITY, 0) == 0);
  assert_true(at(PESTLE_OP_SINC, 0, 0, 0) == 0);
  assert_true(isnan(at(PESTLE_OP_ATAN2, 0, 0, 0)));
  assert_true(fabs(at(PESTLE_OP_ATAN2, 0, 1e200, 1e200) * 2e200 - 1) < 1e-15);
  assert_true(fabs(at(PESTLE_OP_ATAN2, 1, 1e-200, 1e-200) * 2e-200 + 1) <
              1e-15);
  assert_true(at(PESTLE_OP_ATAN2, 0, INFINITY, 1) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_formulas),
      cmocka_unit_test(test_edges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
