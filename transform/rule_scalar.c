// SPDX-License-Identifier: Apache-2.0
// Rules of elementwise ops that are linear in an operand, of clamp, and of those
// that mean something else on complex numbers.
#include "base/fault.h"
#include "transform/partial.h"
#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// --- Sums ---

void pestle_jvp_add(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                    pv_t** out) {
  (void)node;
  out[0] = pestle_sum(&j->f, (pv_t*[]){t[0], t[1]}, 2);
}

void pestle_transpose_add(pestle_transposer_t* x, pestle_node_t* node,
                          pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0, ct[0]);
  pestle_cotangent_add(x, node, 1, ct[0]);
}

void pestle_jvp_subtract(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                         pv_t** out) {
  (void)node;
  out[0] = !t[1]  ? t[0]
           : t[0] ? pestle_f_subtract(&j->f, t[0], t[1])
                  : pestle_f_negate(&j->f, t[1]);
}

void pestle_transpose_subtract(pestle_transposer_t* x, pestle_node_t* node,
                               pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0, ct[0]);
  if (pestle_is_linear(x, operand(node, 1))) {
    bool is_lost = PESTLE_FAULT(lost_sign);
    pestle_cotangent_add(x, node, 1,
                         is_lost ? ct[0] : pestle_f_negate(&x->f, ct[0]));
  }
}

void pestle_transpose_negate(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0, pestle_f_negate(&x->f, ct[0]));
}

// --- Products ---

void pestle_transpose_multiply(pestle_transposer_t* x, pestle_node_t* node,
                               pv_t* const* ct) {
  size_t side = pestle_is_linear(x, operand(node, 0)) ? 0 : 1;
  pestle_cotangent_add(
      x, node, side, pestle_f_multiply(&x->f, ct[0], operand(node, 1 - side)));
}

// a/b: ta/b - (r/b) tb, the first of which is linear in ta as it stands.
void pestle_jvp_divide(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                       pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* first = t[0] ? pestle_f_divide(f, t[0], operand(node, 1)) : NULL;
  if (!t[1]) {
    out[0] = first;
    return;
  }
  pv_t* r = pestle_node_result(node, 0);
  pestle_dtype_t compute = pestle_compute_dtype(r->type->dtype);
  pv_t* b = pestle_f_convert(f, operand(node, 1), compute);
  r = pestle_f_divide(f, pestle_f_convert(f, r, compute), b);
  pv_t* second = pestle_scaled(f, pestle_f_negate(f, r), t[1],
                               operand(node, 1)->type->dtype);
  out[0] = pestle_sum(f, (pv_t*[]){first, second}, 2);
}

void pestle_transpose_divide(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0,
                       pestle_f_divide(&x->f, ct[0], operand(node, 1)));
}

// --- Choices ---

void pestle_jvp_select(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                       pv_t** out) {
  if (!t[1] && !t[2]) return;
  pv_t* a = t[1] ? t[1] : pestle_zeros(&j->f, operand(node, 1));
  pv_t* b = t[2] ? t[2] : pestle_zeros(&j->f, operand(node, 2));
  out[0] = pestle_f_select(&j->f, operand(node, 0), a, b);
}

void pestle_transpose_select(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  pv_t* zeros = pestle_zeros(&x->f, ct[0]);
  for (size_t i = 1; i < 3; ++i) {
    if (!pestle_is_linear(x, operand(node, i))) continue;
    pv_t* a = i == 1 ? ct[0] : zeros;
    pv_t* b = i == 1 && !PESTLE_FAULT(both_sides_of_select) ? zeros : ct[0];
    pestle_cotangent_add(x, node, i,
                         pestle_f_select(&x->f, operand(node, 0), a, b));
  }
}

// Operand |index| of clamp in the shape of the result.
static pv_t* whole(pestle_formula_t* f, const pestle_node_t* node, pv_t* a) {
  return a && a->type->rank
             ? a
             : pestle_f_broadcast_to(f, a, node->results[0].type, NULL);
}

// min(max(x, low), high): x has the tangent strictly between the bounds, a bound where x is
// beyond it. Where low is above high, high is the result.
void pestle_jvp_clamp(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                      pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* terms[3] = {NULL};
  pv_t* low = whole(f, node, operand(node, 0));
  pv_t* x = operand(node, 1);
  pv_t* high = whole(f, node, operand(node, 2));
  pv_t* zeros = pestle_zeros(f, x);
  if (t[0]) {
    pv_t* is_below = pestle_f_lt(f, x, low);
    is_below = pestle_f_and(f, is_below, pestle_f_lt(f, low, high));
    terms[0] = pestle_f_select(f, is_below, whole(f, node, t[0]), zeros);
  }
  if (t[1]) {
    pv_t* is_above_low = pestle_f_lt(f, low, x);
    pv_t* is_below_high = pestle_f_lt(f, x, high);
    pv_t* is_inside = pestle_f_and(f, is_above_low, is_below_high);
    terms[1] = pestle_f_select(f, is_inside, t[1], zeros);
  }
  if (t[2]) {
    pv_t* is_above = pestle_f_lt(f, high, pestle_f_maximum(f, x, low));
    terms[2] = pestle_f_select(f, is_above, whole(f, node, t[2]), zeros);
  }
  out[0] = pestle_sum(f, terms, 3);
}

// --- Complex numbers ---

static pv_t* complex_of(pestle_formula_t* f, pv_t* real, pv_t* imag) {
  return pestle_f_typed(f, PESTLE_OP_COMPLEX, (pv_t*[]){real, imag}, 2, NULL);
}
static pv_t* part(pestle_formula_t* f, pestle_op_t op, pv_t* a) {
  return pestle_f_typed(f, op, &a, 1, NULL);
}

// The real part of conj(a) t, over |a|: 0 at 0.
static pv_t* along(pestle_formula_t* f, pv_t* a, pv_t* size, pv_t* t) {
  pv_t* is_zero = pestle_f_is_zero(f, size);
  pv_t* ones = size ? pestle_f_splat(f, size, 1) : NULL;
  pv_t* safe = pestle_f_select(f, is_zero, ones, size);
  pv_t* x = pestle_f_divide(f, part(f, PESTLE_OP_REAL, a), safe);
  x = pestle_f_multiply(f, x, part(f, PESTLE_OP_REAL, t));
  pv_t* y = pestle_f_divide(f, part(f, PESTLE_OP_IMAG, a), safe);
  y = pestle_f_multiply(f, y, part(f, PESTLE_OP_IMAG, t));
  return pestle_f_add(f, x, y);
}

void pestle_jvp_abs(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                    pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* a = operand(node, 0);
  if (pestle_type_is_complex(a->type)) {
    out[0] = along(f, a, pestle_node_result(node, 0), t[0]);
  } else {
    pestle_jvp_partial(j, node, t, out);
  }
}

// a/|a|: (t - r Re(conj(r) t))/|a|, 0 at 0; that of a real number is 0.
void pestle_jvp_sign(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* a = operand(node, 0);
  if (!pestle_type_is_complex(a->type)) return;
  pv_t* size = pestle_f_abs(f, a);
  pv_t* is_zero = pestle_f_is_zero(f, size);
  pv_t* ones = size ? pestle_f_splat(f, size, 1) : NULL;
  pv_t* zeros = pestle_zeros(f, a);
  pv_t* safe = pestle_f_select(f, is_zero, ones, size);
  pv_t* none = size ? pestle_zeros(f, size) : NULL;
  safe = complex_of(f, safe, none);
  pv_t* s = complex_of(f, along(f, a, size, t[0]), none);
  s = pestle_f_multiply(f, pestle_node_result(node, 0), s);
  s = pestle_f_subtract(f, t[0], s);
  out[0] = pestle_f_select(f, is_zero, zeros, pestle_f_divide(f, s, safe));
}

void pestle_transpose_complex(pestle_transposer_t* x, pestle_node_t* node,
                              pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  pestle_cotangent_add(x, node, 0, part(f, PESTLE_OP_REAL, ct[0]));
  if (!pestle_is_linear(x, operand(node, 1))) return;
  pv_t* imag = pestle_f_negate(f, part(f, PESTLE_OP_IMAG, ct[0]));
  pestle_cotangent_add(x, node, 1, imag);
}

void pestle_transpose_real(pestle_transposer_t* x, pestle_node_t* node,
                           pv_t* const* ct) {
  bool is_complex = pestle_type_is_complex(operand(node, 0)->type);
  pv_t* a =
      is_complex ? complex_of(&x->f, ct[0], pestle_zeros(&x->f, ct[0])) : ct[0];
  pestle_cotangent_add(x, node, 0, a);
}

// The imaginary part of what is real is 0.
void pestle_jvp_imag(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  if (!pestle_type_is_complex(operand(node, 0)->type)) return;
  out[0] = part(&j->f, PESTLE_OP_IMAG, t[0]);
}

void pestle_transpose_imag(pestle_transposer_t* x, pestle_node_t* node,
                           pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  if (!pestle_type_is_complex(operand(node, 0)->type)) return;
  pv_t* y = pestle_f_negate(f, ct[0]);
  pestle_cotangent_add(x, node, 0, complex_of(f, pestle_zeros(f, ct[0]), y));
}

// --- Conversions ---

void pestle_transpose_convert(pestle_transposer_t* x, pestle_node_t* node,
                              pv_t* const* ct) {
  pestle_dtype_t dtype = operand(node, 0)->type->dtype;
  pestle_cotangent_add(x, node, 0, pestle_f_convert(&x->f, ct[0], dtype));
}

void pestle_transpose_reduce_precision(pestle_transposer_t* x,
                                       pestle_node_t* node, pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0, pestle_f_like(&x->f, node, ct, NULL));
}
