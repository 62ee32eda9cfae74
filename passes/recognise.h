// SPDX-License-Identifier: Apache-2.0
// What the recognise_*.c files share: one matcher a composite.
#ifndef PESTLE_PASSES_RECOGNISE_H_
#define PESTLE_PASSES_RECOGNISE_H_

#include <math.h>

#include "passes/util.h"

// What |node| is as the last op of a composite, made before the node; NULL: it
// is none, or |f| has failed. |strict|: only when the composite's decomposition
// is the same ops in the same order.
typedef pestle_value_t* (*pestle_matcher_t)(pestle_formula_t* f,
                                            pestle_node_t* node, bool strict);

#define PESTLE_MATCH(name)                                 \
  pestle_value_t* pestle_match_##name(pestle_formula_t* f, \
                                      pestle_node_t* node, bool strict);
// recognise_norms.c
PESTLE_MATCH(softmax)
PESTLE_MATCH(log_softmax)
PESTLE_MATCH(norm)
// recognise_attention.c
PESTLE_MATCH(attention)
// recognise_activation.c
PESTLE_MATCH(gelu)
PESTLE_MATCH(silu)
PESTLE_MATCH(logistic)
PESTLE_MATCH(hard_sigmoid)
#undef PESTLE_MATCH

// Whether |node| is a contraction that weighs values by a softmax of scores. |*out_why|:
// a sentence that says why pestle_match_attention() does not take it, or NULL: it does.
// Makes nothing.
bool pestle_is_like_attention(pestle_node_t* node, bool strict,
                              const char** out_why);

// Whether |a| is |b| up to |roundings| of |value|'s type: a constant that is nearer than
// the type can tell. What is farther is another function, a mean by one less than the
// count for one.
static inline bool pestle_match_near(const pestle_value_t* value, double a,
                                     double b, int roundings) {
  const pestle_float_format_t* format = pestle_float_format(value->type->dtype);
  double d = a > b ? a - b : b - a, size = b < 0 ? -b : b;
  return format &&
         d <= ldexp(size * (double)roundings, -1 - format->mantissa_bits);
}

#endif  // PESTLE_PASSES_RECOGNISE_H_
