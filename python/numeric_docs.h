// SPDX-License-Identifier: Apache-2.0
// What help() says of each row of numeric.def behind its sentence: what it takes and
// gives, what it raises, an example that tests/python/docs_test.py runs.
#ifndef PESTLE_PYTHON_NUMERIC_DOCS_H_
#define PESTLE_PYTHON_NUMERIC_DOCS_H_

// Rows that stay as they are written.
// clang-format off
#define TAKES_N_ALL "of any dtype"
#define TAKES_N_NUMBER "numbers, bools are none"
#define TAKES_N_REAL "integers or floats"
#define TAKES_N_ORDERED "bools, integers or floats"
#define TAKES_N_BITS "bools or integers"
#define TAKES_PESTLE_KIND_INT "integers"

#define OPERANDS_1 "x: an array or a number, "
#define OPERANDS_2 \
  "x1, x2: arrays whose shapes broadcast, or one of them a number, "
#define RAISES_1 "Raises TypeError for\nanother dtype and for no array.\n\n"
#define RAISES_2 \
  "Raises TypeError for\nother dtypes and for no arrays, " \
  "ValueError for shapes that do not broadcast.\n\n"

#define GIVES_TYPE "\nThe result has their promoted dtype. "
#define GIVES_FLOAT \
  "\nThe result is a float or complex: integers and bools become " \
  "config.default_float. "
#define GIVES_BOOL "\nThe result is of bool. "
#define GIVES_PART \
  "\nThe result of complex numbers is a float, of others their dtype. "

#define SHOWS(call, result) ">>> " call ".tolist()\n" result

#define DOC_abs \
  GIVES_PART, SHOWS("pt.abs(pt.asarray([-1.5, 2.0]))", "[1.5, 2.0]")
#define DOC_acos GIVES_FLOAT, SHOWS("pt.acos(pt.asarray([1.0]))", "[0.0]")
#define DOC_acosh GIVES_FLOAT, SHOWS("pt.acosh(pt.asarray([1.0]))", "[0.0]")
#define DOC_add \
  GIVES_TYPE, SHOWS("pt.add(pt.asarray([1, 2]), 0.5)", "[1.5, 2.5]")
#define DOC_asin GIVES_FLOAT, SHOWS("pt.asin(pt.asarray([0.0]))", "[0.0]")
#define DOC_asinh GIVES_FLOAT, SHOWS("pt.asinh(pt.asarray([0.0]))", "[0.0]")
#define DOC_atan GIVES_FLOAT, SHOWS("pt.atan(pt.asarray([0.0]))", "[0.0]")
#define DOC_atan2 \
  GIVES_FLOAT, SHOWS("pt.atan2(pt.asarray([0.0]), pt.asarray([1.0]))", "[0.0]")
#define DOC_atanh GIVES_FLOAT, SHOWS("pt.atanh(pt.asarray([0.0]))", "[0.0]")
#define DOC_bitwise_and \
  GIVES_TYPE, SHOWS("pt.bitwise_and(pt.asarray([6, 5]), 3)", "[2, 1]")
#define DOC_bitwise_left_shift \
  GIVES_TYPE, SHOWS("pt.bitwise_left_shift(pt.asarray([1, 3]), 2)", "[4, 12]")
#define DOC_bitwise_invert \
  GIVES_TYPE, SHOWS("pt.bitwise_invert(pt.asarray([0, 7]))", "[-1, -8]")
#define DOC_bitwise_or \
  GIVES_TYPE, SHOWS("pt.bitwise_or(pt.asarray([4, 1]), 2)", "[6, 3]")
#define DOC_bitwise_right_shift \
  GIVES_TYPE, SHOWS("pt.bitwise_right_shift(pt.asarray([8, -8]), 1)", "[4, -4]")
#define DOC_bitwise_xor \
  GIVES_TYPE, SHOWS("pt.bitwise_xor(pt.asarray([6, 5]), 3)", "[5, 6]")
#define DOC_ceil \
  GIVES_TYPE, SHOWS("pt.ceil(pt.asarray([1.2, -1.2]))", "[2.0, -1.0]")
#define DOC_conj GIVES_TYPE, SHOWS("pt.conj(pt.asarray([1 + 2j]))", "[(1-2j)]")
#define DOC_copysign \
  GIVES_FLOAT, SHOWS("pt.copysign(pt.asarray([1.0, 2.0]), -0.0)", \
                     "[-1.0, -2.0]")
#define DOC_cos GIVES_FLOAT, SHOWS("pt.cos(pt.asarray([0.0]))", "[1.0]")
#define DOC_cosh GIVES_FLOAT, SHOWS("pt.cosh(pt.asarray([0.0]))", "[1.0]")
#define DOC_divide \
  GIVES_FLOAT, SHOWS("pt.divide(pt.asarray([1, 3]), 2)", "[0.5, 1.5]")
#define DOC_equal \
  GIVES_BOOL, SHOWS("pt.equal(pt.asarray([1, 2]), 2)", "[False, True]")
#define DOC_exp GIVES_FLOAT, SHOWS("pt.exp(pt.asarray([0.0]))", "[1.0]")
#define DOC_expm1 GIVES_FLOAT, SHOWS("pt.expm1(pt.asarray([0.0]))", "[0.0]")
#define DOC_floor \
  GIVES_TYPE, SHOWS("pt.floor(pt.asarray([1.8, -1.2]))", "[1.0, -2.0]")
#define DOC_floor_divide \
  GIVES_TYPE, SHOWS("pt.floor_divide(pt.asarray([7, -7]), 2)", "[3, -4]")
#define DOC_greater \
  GIVES_BOOL, SHOWS("pt.greater(pt.asarray([1, 3]), 2)", "[False, True]")
#define DOC_greater_equal \
  GIVES_BOOL, SHOWS("pt.greater_equal(pt.asarray([1, 2]), 2)", "[False, True]")
#define DOC_hypot \
  GIVES_FLOAT, SHOWS("pt.hypot(pt.asarray([3.0]), pt.asarray([4.0]))", "[5.0]")
#define DOC_imag GIVES_PART, SHOWS("pt.imag(pt.asarray([1 + 2j]))", "[2.0]")
#define DOC_isfinite \
  GIVES_BOOL, SHOWS("pt.isfinite(pt.asarray([1.0, float(\"inf\")]))", \
                    "[True, False]")
#define DOC_isinf \
  GIVES_BOOL, SHOWS("pt.isinf(pt.asarray([1.0, float(\"inf\")]))", \
                    "[False, True]")
#define DOC_isnan \
  GIVES_BOOL, SHOWS("pt.isnan(pt.asarray([1.0, float(\"nan\")]))", \
                    "[False, True]")
#define DOC_less \
  GIVES_BOOL, SHOWS("pt.less(pt.asarray([1, 3]), 2)", "[True, False]")
#define DOC_less_equal \
  GIVES_BOOL, SHOWS("pt.less_equal(pt.asarray([1, 3]), 1)", "[True, False]")
#define DOC_log GIVES_FLOAT, SHOWS("pt.log(pt.asarray([1.0]))", "[0.0]")
#define DOC_log1p GIVES_FLOAT, SHOWS("pt.log1p(pt.asarray([0.0]))", "[0.0]")
#define DOC_log2 GIVES_FLOAT, SHOWS("pt.log2(pt.asarray([8.0]))", "[3.0]")
#define DOC_log10 GIVES_FLOAT, SHOWS("pt.log10(pt.asarray([1000.0]))", "[3.0]")
#define DOC_logaddexp GIVES_FLOAT, \
  SHOWS("pt.logaddexp(pt.asarray([float(\"-inf\")]), pt.asarray([2.0]))", \
        "[2.0]")
#define DOC_logical_and \
  GIVES_BOOL, SHOWS("pt.logical_and(pt.asarray([1, 0]), pt.asarray([1, 1]))", \
                    "[True, False]")
#define DOC_logical_not \
  GIVES_BOOL, SHOWS("pt.logical_not(pt.asarray([2, 0]))", "[False, True]")
#define DOC_logical_or \
  GIVES_BOOL, SHOWS("pt.logical_or(pt.asarray([1, 0]), pt.asarray([0, 0]))", \
                    "[True, False]")
#define DOC_logical_xor \
  GIVES_BOOL, SHOWS("pt.logical_xor(pt.asarray([1, 0]), pt.asarray([1, 1]))", \
                    "[False, True]")
#define DOC_maximum \
  GIVES_TYPE, SHOWS("pt.maximum(pt.asarray([1, 5]), 3)", "[3, 5]")
#define DOC_minimum \
  GIVES_TYPE, SHOWS("pt.minimum(pt.asarray([1, 5]), 3)", "[1, 3]")
#define DOC_multiply \
  GIVES_TYPE, SHOWS("pt.multiply(pt.asarray([1, 2]), pt.asarray([3, 4]))", \
                    "[3, 8]")
#define DOC_negative \
  GIVES_TYPE, SHOWS("pt.negative(pt.asarray([1, -2]))", "[-1, 2]")
#define DOC_nextafter GIVES_FLOAT, \
  SHOWS("(pt.nextafter(pt.asarray([1.0]), pt.asarray([2.0])) > 1)", \
        "[True]")
#define DOC_not_equal \
  GIVES_BOOL, SHOWS("pt.not_equal(pt.asarray([1, 2]), 2)", "[True, False]")
#define DOC_positive \
  GIVES_TYPE, SHOWS("pt.positive(pt.asarray([1, -2]))", "[1, -2]")
#define DOC_pow GIVES_TYPE, SHOWS("pt.pow(pt.asarray([2, 3]), 2)", "[4, 9]")
#define DOC_real GIVES_PART, SHOWS("pt.real(pt.asarray([1 + 2j]))", "[1.0]")
#define DOC_reciprocal \
  GIVES_FLOAT, SHOWS("pt.reciprocal(pt.asarray([2.0, 4.0]))", "[0.5, 0.25]")
#define DOC_remainder \
  GIVES_TYPE, SHOWS("pt.remainder(pt.asarray([7, -7]), 4)", "[3, 1]")
#define DOC_round \
  GIVES_TYPE, SHOWS("pt.round(pt.asarray([0.5, 1.5, 2.4]))", "[0.0, 2.0, 2.0]")
#define DOC_sign \
  GIVES_TYPE, SHOWS("pt.sign(pt.asarray([-3.0, 0.0, 2.0]))", "[-1.0, 0.0, 1.0]")
#define DOC_signbit \
  GIVES_BOOL, SHOWS("pt.signbit(pt.asarray([-0.0, 1.0]))", "[True, False]")
#define DOC_sin GIVES_FLOAT, SHOWS("pt.sin(pt.asarray([0.0]))", "[0.0]")
#define DOC_sinh GIVES_FLOAT, SHOWS("pt.sinh(pt.asarray([0.0]))", "[0.0]")
#define DOC_sqrt \
  GIVES_FLOAT, SHOWS("pt.sqrt(pt.asarray([4.0, 9.0]))", "[2.0, 3.0]")
#define DOC_square GIVES_TYPE, SHOWS("pt.square(pt.asarray([3, -2]))", "[9, 4]")
#define DOC_subtract \
  GIVES_TYPE, SHOWS("pt.subtract(pt.asarray([5, 7]), pt.asarray([1, 2]))", \
                    "[4, 5]")
#define DOC_tan GIVES_FLOAT, SHOWS("pt.tan(pt.asarray([0.0]))", "[0.0]")
#define DOC_tanh GIVES_FLOAT, SHOWS("pt.tanh(pt.asarray([0.0]))", "[0.0]")
#define DOC_trunc \
  GIVES_TYPE, SHOWS("pt.trunc(pt.asarray([1.8, -1.8]))", "[1.0, -1.0]")
#define DOC_cbrt GIVES_FLOAT, SHOWS("pt.cbrt(pt.asarray([8.0]))", "[2.0]")
#define DOC_rsqrt GIVES_FLOAT, SHOWS("pt.rsqrt(pt.asarray([4.0]))", "[0.5]")
#define DOC_exp2 GIVES_FLOAT, SHOWS("pt.exp2(pt.asarray([3.0]))", "[8.0]")
#define DOC_sigmoid GIVES_FLOAT, SHOWS("pt.sigmoid(pt.asarray([0.0]))", "[0.5]")
#define DOC_erf GIVES_FLOAT, SHOWS("pt.erf(pt.asarray([0.0]))", "[0.0]")
#define DOC_erfc GIVES_FLOAT, SHOWS("pt.erfc(pt.asarray([0.0]))", "[1.0]")
#define DOC_erfinv GIVES_FLOAT, SHOWS("pt.erfinv(pt.asarray([0.0]))", "[0.0]")
#define DOC_lgamma GIVES_FLOAT, SHOWS("pt.lgamma(pt.asarray([1.0]))", "[0.0]")
#define DOC_digamma \
  GIVES_FLOAT, SHOWS("pt.round(100 * pt.digamma(pt.asarray([1.0])))", "[-58.0]")
#define DOC_fmod GIVES_TYPE, SHOWS("pt.fmod(pt.asarray([7, -7]), 4)", "[3, -3]")
#define DOC_angle GIVES_PART, SHOWS("pt.angle(pt.asarray([1.0]))", "[0.0]")
#define DOC_popcount \
  GIVES_TYPE, SHOWS("pt.popcount(pt.asarray([7, 8]))", "[3, 1]")
// clang-format on

#endif  // PESTLE_PYTHON_NUMERIC_DOCS_H_
