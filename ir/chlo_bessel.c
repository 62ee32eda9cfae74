// SPDX-License-Identifier: Apache-2.0
// e^-|x| times the modified Bessel function of order 1, the split at 8 that of
// Cephes' i1e. What the Chebyshev series give changes little over their range, so that
// their sums lose little.
#include "ir/chlo.h"
#include "ir/chlo_tables.h"

enum { FAR = 8 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Clenshaw's recurrence over coefficients from the highest to the constant one.
static pv_t* chebyshev(pestle_formula_t* f, pv_t* t, const double* c,
                       size_t count) {
  pv_t* twice = pestle_f_add(f, t, t);
  pv_t *b1 = pestle_f_splat(f, t, c[0]), *b2 = pestle_f_splat(f, t, 0);
  for (size_t i = 1; i + 1 < count; ++i) {
    pv_t* next = pestle_f_subtract(f, pestle_f_multiply(f, twice, b1), b2);
    b2 = b1;
    b1 = pestle_f_add(f, next, pestle_f_splat(f, t, c[i]));
  }
  pv_t* last = pestle_f_subtract(f, pestle_f_multiply(f, t, b1), b2);
  return pestle_f_add(f, last, pestle_f_splat(f, t, c[count - 1]));
}

pv_t* pestle_chlo_bessel_i1e(pestle_formula_t* f, pv_t* const* operands) {
  bool wide = f->compute == PESTLE_F64;
  pv_t* x = operands[0];
  pv_t* a = pestle_f_abs(f, x);
  pv_t* one = pestle_f_splat(f, x, 1);
  pv_t* t = pestle_f_multiply(f, a, pestle_f_splat(f, x, 0.25));
  t = pestle_f_subtract(f, t, one);
  pv_t* near = wide ? chebyshev(f, t, i1e_near_f64, COUNT(i1e_near_f64))
                    : chebyshev(f, t, i1e_near_f32, COUNT(i1e_near_f32));
  pv_t* more = pestle_f_add(f, a, one);
  near = pestle_f_divide(f, pestle_f_multiply(f, near, a), more);
  t = pestle_f_divide(f, pestle_f_splat(f, x, 2 * FAR), a);
  t = pestle_f_subtract(f, t, one);
  pv_t* far = wide ? chebyshev(f, t, i1e_far_f64, COUNT(i1e_far_f64))
                   : chebyshev(f, t, i1e_far_f32, COUNT(i1e_far_f32));
  far = pestle_f_divide(f, far, pestle_f_sqrt(f, a));
  pv_t* limit = pestle_f_splat(f, x, FAR);
  pv_t* which = pestle_f_gt(f, a, limit);
  pv_t* y = pestle_f_select(f, which, far, near);
  return pestle_f_multiply(f, y, pestle_f_sign(f, x));
}
