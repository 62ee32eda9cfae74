// SPDX-License-Identifier: Apache-2.0
// e^-|x| times the modified Bessel function of order 1, the split at 8 that of
// Cephes' i1e. What the Chebyshev series give changes little over their range, so that
// their sums lose little.
#include "ir/chlo.h"
#include "ir/chlo_tables.h"

enum { FAR = 8 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Clenshaw's recurrence over coefficients from the highest to the constant one.
static pv_t* chebyshev(pestle_steps_t* s, pv_t* t, const double* c,
                       size_t count) {
  pv_t* twice = PESTLE_ADD(s, t, t);
  pv_t *b1 = pestle_step_splat(s, t, c[0]), *b2 = pestle_step_splat(s, t, 0);
  for (size_t i = 1; i + 1 < count; ++i) {
    pv_t* next = PESTLE_SUB(s, PESTLE_MUL(s, twice, b1), b2);
    b2 = b1;
    b1 = PESTLE_ADD(s, next, pestle_step_splat(s, t, c[i]));
  }
  pv_t* last = PESTLE_SUB(s, PESTLE_MUL(s, t, b1), b2);
  return PESTLE_ADD(s, last, pestle_step_splat(s, t, c[count - 1]));
}

pv_t* pestle_chlo_bessel_i1e(pestle_steps_t* s, pv_t* const* operands) {
  bool wide = s->compute == PESTLE_F64;
  pv_t* x = operands[0];
  pv_t* a = pestle_step1(s, PESTLE_OP_ABS, x);
  pv_t* one = pestle_step_splat(s, x, 1);
  pv_t* t = PESTLE_MUL(s, a, pestle_step_splat(s, x, 0.25));
  t = PESTLE_SUB(s, t, one);
  pv_t* near = wide ? chebyshev(s, t, i1e_near_f64, COUNT(i1e_near_f64))
                    : chebyshev(s, t, i1e_near_f32, COUNT(i1e_near_f32));
  near = PESTLE_DIV(s, PESTLE_MUL(s, near, a), PESTLE_ADD(s, a, one));
  t = PESTLE_DIV(s, pestle_step_splat(s, x, 2 * FAR), a);
  t = PESTLE_SUB(s, t, one);
  pv_t* far = wide ? chebyshev(s, t, i1e_far_f64, COUNT(i1e_far_f64))
                   : chebyshev(s, t, i1e_far_f32, COUNT(i1e_far_f32));
  far = PESTLE_DIV(s, far, pestle_step1(s, PESTLE_OP_SQRT, a));
  pv_t* limit = pestle_step_splat(s, x, FAR);
  pv_t* which = pestle_step2(s, PESTLE_OP_GT, a, limit);
  pv_t* y = pestle_step3(s, PESTLE_OP_SELECT, which, far, near);
  return PESTLE_MUL(s, y, pestle_step1(s, PESTLE_OP_SIGN, x));
}
