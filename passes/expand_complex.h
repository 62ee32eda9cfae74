// SPDX-License-Identifier: Apache-2.0
// What the files of the pass expand_complex share: complex numbers as pairs of
// real tensors, and the elementwise formulas on them.
#ifndef PESTLE_PASSES_EXPAND_COMPLEX_H_
#define PESTLE_PASSES_EXPAND_COMPLEX_H_

#include "ir/composite.h"
#include "passes/util.h"

typedef struct pestle_pair_t {
  pestle_value_t *re, *im;
} pestle_pair_t;

// The parts of the scalar op |op| on |a|, and |b| where it takes two. A result
// that is real (of abs and comparisons) is |re|, without |im|. Failures are in
// |f|, as in formula.h.
pestle_pair_t pestle_complex_scalar(pestle_formula_t* f, pestle_op_t op,
                                    pestle_pair_t a, pestle_pair_t b);

// --- What the formulas share ---

// Those of exponentials, logarithms, powers and sines (expand_complex_exp.c).
pestle_pair_t pestle_complex_exponential(pestle_formula_t* f, pestle_op_t op,
                                         pestle_pair_t a, pestle_pair_t b);
// No pair, and the failure of an op without a formula.
pestle_pair_t pestle_complex_unknown(pestle_formula_t* f);

pestle_value_t* pestle_complex_is_endless(pestle_formula_t* f,
                                          pestle_value_t* part);
// Whether both parts are finite.
pestle_value_t* pestle_complex_is_finite(pestle_formula_t* f, pestle_pair_t a);
pestle_value_t* pestle_complex_size(pestle_formula_t* f, pestle_pair_t a);
pestle_pair_t pestle_complex_multiply(pestle_formula_t* f, pestle_pair_t a,
                                      pestle_pair_t b);
pestle_pair_t pestle_complex_divide(pestle_formula_t* f, pestle_pair_t a,
                                    pestle_pair_t b);
pestle_pair_t pestle_complex_polar(pestle_formula_t* f, pestle_value_t* size,
                                   pestle_value_t* angle);

// A number times a power of two, so that its size does not overflow and its larger
// part is not subnormal. Where the number is |high| an eighth of it, where |low|
// 2^pestle_complex_scale() times it, else itself. Scales are cubes.
typedef struct pestle_complex_scaled_t {
  pestle_pair_t z;
  pestle_value_t *high, *low;
} pestle_complex_scaled_t;

int pestle_complex_scale(const pestle_value_t* like);
pestle_complex_scaled_t pestle_complex_within(pestle_formula_t* f,
                                              pestle_pair_t a);
// |high| where the number is, |low| where it is, else |middle|.
pestle_value_t* pestle_complex_by_scale(pestle_formula_t* f,
                                        pestle_complex_scaled_t s, double high,
                                        double middle, double low);

#endif  // PESTLE_PASSES_EXPAND_COMPLEX_H_
