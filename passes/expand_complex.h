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

#endif  // PESTLE_PASSES_EXPAND_COMPLEX_H_
