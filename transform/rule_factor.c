// SPDX-License-Identifier: Apache-2.0
// Orthogonal factors. Where values are equal, vectors have no derivative; what would
// divide by their difference is 0.
#include "transform/matrix.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// |a| / |b|, 0 where b is 0.
static pv_t* over(pestle_formula_t* f, pv_t* a, pv_t* b) {
  if (!a || !b) return NULL;
  pv_t* is_zero = pestle_f_is_zero(f, b);
  b = pestle_f_select(f, is_zero, pestle_f_splat(f, b, 1), b);
  pv_t* zeros = pestle_zeros(f, a);
  a = pestle_f_divide(f, a, b);
  return pestle_f_select(f, is_zero, zeros, a);
}

// v_j - v_i at row i and column j of |type|.
static pv_t* gaps(pestle_formula_t* f, pv_t* v, const pestle_type_t* type) {
  pv_t* columns = pestle_m_columns(f, v, type);
  return pestle_f_subtract(f, columns, pestle_m_rows(f, v, type));
}

// --- qr ---

// With p = q^T da r^-1 and w = lower(p) - lower(p)^T: dq = q (w - p) + da r^-1,
// dr = (p - w) r. Of a wide matrix so are its first columns; the others are q^T times
// theirs.
void pestle_jvp_qr(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                   pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *a = operand(node, 0), *q = pestle_node_result(node, 0);
  pv_t* r = pestle_node_result(node, 1);
  int64_t m = pestle_m_row_count(a), n = pestle_m_column_count(a);
  if (PESTLE_NODE_BOOL(node, full) && m > n) {
    pestle_jvp_refuse(j, node,
                      "has no derivative where the columns of a full q are "
                      "chosen at will; leave full away");
    return;
  }
  int64_t k = m < n ? m : n;
  pv_t* square = pestle_m_corner(f, r, k, k);
  pv_t* x = pestle_m_corner(f, t[0], m, k);
  x = pestle_m_solve(f, square, x,
                     (pestle_triangle_t){false, false, false, "NO_TRANSPOSE"});
  pv_t* back = pestle_f_transpose_matrix(f, q);
  pv_t* p = pestle_m_product(f, back, x);
  pv_t* w = pestle_m_lower(f, p, -1);
  w = pestle_f_subtract(f, w, pestle_f_transpose_matrix(f, w));
  pv_t* turn = pestle_f_subtract(f, p, w);
  out[0] = pestle_f_subtract(f, x, pestle_m_product(f, q, turn));
  out[1] = pestle_m_product(f, turn, square);
  if (m >= n || !out[0] || !out[1]) return;
  int32_t last = a->type->rank - 1;
  pv_t* others = pestle_f_slice_axis(f, a, last, m, n);
  others = pestle_m_product(f, pestle_f_transpose_matrix(f, out[0]), others);
  pv_t* theirs = pestle_f_slice_axis(f, t[0], last, m, n);
  theirs = pestle_m_product(f, back, theirs);
  pv_t* parts[2] = {out[1], pestle_f_add(f, others, theirs)};
  out[1] = pestle_f_concatenate(f, parts, 2, last);
}

// --- eigh ---

// With p = v^T da v: dw its diagonal, dv = v (p_ij / (w_j - w_i)).
void pestle_jvp_eigh(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *w = pestle_node_result(node, 0), *v = pestle_node_result(node, 1);
  bool is_lower = PESTLE_NODE_BOOL(node, lower);
  pv_t* rest =
      is_lower ? pestle_m_lower(f, t[0], -1) : pestle_m_upper(f, t[0], 1);
  pv_t* a = is_lower ? pestle_m_lower(f, t[0], 0) : pestle_m_upper(f, t[0], 0);
  a = pestle_f_add(f, a, pestle_f_transpose_matrix(f, rest));
  pv_t* p = pestle_m_product(f, pestle_f_transpose_matrix(f, v), a);
  p = pestle_m_product(f, p, v);
  out[0] = pestle_m_diagonal(f, p);
  p = over(f, p, gaps(f, w, v->type));
  out[1] = pestle_m_product(f, v, p);
}

// --- svd ---

// The part of |x| that is not in the span of |u|'s columns, over |s| of each column.
static pv_t* outside(pestle_formula_t* f, pv_t* x, pv_t* u, pv_t* s) {
  pv_t* inside = pestle_m_product(f, pestle_f_transpose_matrix(f, u), x);
  x = pestle_f_subtract(f, x, pestle_m_product(f, u, inside));
  return x ? over(f, x, pestle_m_columns(f, s, x->type)) : NULL;
}

// With p = u^T da v and f_ij = 1 / (s_j^2 - s_i^2): ds the diagonal of p,
// du = u (f (p s + s p^T)), dv = v (f (s p + p^T s)), and what is not in their spans.
void pestle_jvp_svd(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                    pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *a = operand(node, 0), *u = pestle_node_result(node, 0);
  pv_t *s = pestle_node_result(node, 1), *vt = pestle_node_result(node, 2);
  int64_t m = pestle_m_row_count(a), n = pestle_m_column_count(a);
  if (PESTLE_NODE_BOOL(node, full) && m != n) {
    pestle_jvp_refuse(j, node,
                      "has no derivative where columns of a full u or v are "
                      "chosen at will; leave full away");
    return;
  }
  pv_t *ut = pestle_f_transpose_matrix(f, u),
       *v = pestle_f_transpose_matrix(f, vt);
  pv_t* p = pestle_m_product(f, ut, t[0]);
  p = pestle_m_product(f, p, v);
  if (!p) return;
  out[1] = pestle_m_diagonal(f, p);
  pv_t* gap = gaps(f, s, p->type);
  pv_t* columns = pestle_m_columns(f, s, p->type);
  pv_t* rows = pestle_m_rows(f, s, p->type);
  gap = pestle_f_multiply(f, gap, pestle_f_add(f, columns, rows));
  pv_t* ps = pestle_f_multiply(f, p, columns);
  ps = pestle_f_add(f, ps, pestle_f_transpose_matrix(f, ps));
  pv_t* sp = pestle_f_multiply(f, p, rows);
  sp = pestle_f_add(f, sp, pestle_f_transpose_matrix(f, sp));
  out[0] = pestle_m_product(f, u, over(f, ps, gap));
  pv_t* dv = pestle_m_product(f, v, over(f, sp, gap));
  if (m > n) {
    pv_t* more = outside(f, pestle_m_product(f, t[0], v), u, s);
    out[0] = pestle_f_add(f, out[0], more);
  }
  if (n > m) {
    pv_t* back = pestle_f_transpose_matrix(f, t[0]);
    pv_t* more = outside(f, pestle_m_product(f, back, u), v, s);
    dv = pestle_f_add(f, dv, more);
  }
  out[2] = pestle_f_transpose_matrix(f, dv);
}
