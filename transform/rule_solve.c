// SPDX-License-Identifier: Apache-2.0
// Triangular systems, Cholesky, LU and what is solved by them.
#include <string.h>

#include "transform/matrix.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// --- triangular_solve: op(a) x = b ---

static pestle_triangle_t read(const pestle_node_t* node) {
  return (pestle_triangle_t){PESTLE_NODE_BOOL(node, left_side),
                             PESTLE_NODE_BOOL(node, lower),
                             PESTLE_NODE_BOOL(node, unit_diagonal),
                             PESTLE_NODE_STR(node, transpose_a)};
}

// op(|a|), of which the half is kept that is read.
static pv_t* half(pestle_formula_t* f, pestle_triangle_t t, pv_t* a) {
  int64_t by = t.unit ? (t.lower ? -1 : 1) : 0;
  a = t.lower ? pestle_m_lower(f, a, by) : pestle_m_upper(f, a, by);
  if (!strcmp(t.how, "TRANSPOSE")) return pestle_f_transpose_matrix(f, a);
  return !strcmp(t.how, "ADJOINT") ? pestle_m_adjoint(f, a) : a;
}

// op(a) dx = db - op(da) x.
void pestle_jvp_triangular_solve(pestle_jvp_t* j, pestle_node_t* node,
                                 pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pestle_triangle_t triangle = read(node);
  pv_t *x = pestle_node_result(node, 0), *right = t[1];
  if (t[0]) {
    pv_t* a = half(f, triangle, t[0]);
    a = triangle.left ? pestle_m_product(f, a, x) : pestle_m_product(f, x, a);
    right = right ? pestle_f_subtract(f, right, a) : pestle_f_negate(f, a);
  }
  out[0] = pestle_m_solve(f, operand(node, 0), right, triangle);
}

// The transposed system; that of an adjoint one is the conjugate system.
void pestle_transpose_triangular_solve(pestle_transposer_t* x,
                                       pestle_node_t* node, pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  pestle_triangle_t t = read(node);
  bool is_complex = pestle_type_is_complex(ct[0]->type);
  bool is_adjoint = !strcmp(t.how, "ADJOINT") && is_complex;
  bool is_plain = !strcmp(t.how, "NO_TRANSPOSE");
  t.how = is_plain ? "TRANSPOSE" : "NO_TRANSPOSE";
  pv_t* b = is_adjoint ? pestle_m_conjugate(f, ct[0]) : ct[0];
  b = pestle_m_solve(f, operand(node, 0), b, t);
  pestle_cotangent_add(x, node, 1, is_adjoint ? pestle_m_conjugate(f, b) : b);
}

// --- cholesky: a = l l^H, of which the lower half is read ---

// Both halves, by the lower one.
static pv_t* whole(pestle_formula_t* f, pv_t* a) {
  pv_t* low = pestle_m_lower(f, a, -1);
  a = pestle_m_lower(f, a, 0);
  return pestle_f_add(f, a, pestle_m_adjoint(f, low));
}

// dl = l p(l^-1 da l^-H), p: the lower half, half of the diagonal.
void pestle_jvp_cholesky(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                         pv_t** out) {
  pestle_formula_t* f = &j->f;
  bool is_lower = PESTLE_NODE_BOOL(node, lower);
  pv_t *l = pestle_node_result(node, 0), *a = t[0];
  if (!is_lower) {
    l = pestle_m_adjoint(f, l);
    a = pestle_m_adjoint(f, a);
  }
  a = whole(f, a);
  a = pestle_m_solve(f, l, a,
                     (pestle_triangle_t){false, true, false, "ADJOINT"});
  a = pestle_m_solve(f, l, a,
                     (pestle_triangle_t){true, true, false, "NO_TRANSPOSE"});
  pv_t* low = pestle_m_lower(f, a, -1);
  pv_t* diagonal = pestle_m_lower(f, pestle_m_upper(f, a, 0), 0);
  a = pestle_f_add(f, low, pestle_f_times(f, diagonal, 0.5));
  a = pestle_m_product(f, l, a);
  out[0] = is_lower ? a : pestle_m_adjoint(f, a);
}

// --- lu ---

// The rows of |a| in the order |order| [batch.., m].
static pv_t* permuted(pestle_formula_t* f, pv_t* a, pv_t* order) {
  if (!a || !order) return NULL;
  pv_t* places = pestle_m_rows(f, order, a->type);
  return pestle_take_along(f, a, places, a->type->rank - 2);
}

// With p = l^-1 da u^-1: dl = l lower(p), du = upper(p) u. What is not square gets
// columns of l, or rows of u, of an identity.
void pestle_jvp_lu(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                   pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* both = pestle_node_result(node, 0);
  int64_t m = pestle_m_row_count(both), n = pestle_m_column_count(both);
  int64_t k = m < n ? m : n;
  pv_t* a = permuted(f, t[0], pestle_node_result(node, 2));
  pv_t* l = pestle_m_lower(f, pestle_m_corner(f, both, m, k), -1);
  l = pestle_m_extend(f, l, m, m);
  if (!l) return;
  l = pestle_f_add(f, l, pestle_m_eye(f, l));
  pv_t* u = pestle_m_upper(f, pestle_m_corner(f, both, k, n), 0);
  u = pestle_m_extend(f, u, n, n);
  if (!u) return;
  pv_t* rest = pestle_m_eye(f, u);
  pv_t* corner = pestle_m_extend(f, pestle_m_corner(f, rest, k, k), n, n);
  u = pestle_f_add(f, u, pestle_f_subtract(f, rest, corner));
  a = pestle_m_solve(f, l, a,
                     (pestle_triangle_t){true, true, true, "NO_TRANSPOSE"});
  a = pestle_m_solve(f, u, a,
                     (pestle_triangle_t){false, false, false, "NO_TRANSPOSE"});
  pv_t* low = pestle_m_product(f, l, pestle_m_lower(f, a, -1));
  a = pestle_m_product(f, pestle_m_upper(f, a, 0), u);
  out[0] = pestle_f_add(f, low, a);
}

// --- solve and inverse ---

static pv_t* solved(pestle_formula_t* f, const pestle_node_t* lu, pv_t* b) {
  pv_t* both = pestle_node_result(lu, 0);
  b = permuted(f, b, pestle_node_result(lu, 2));
  b = pestle_m_solve(f, both, b,
                     (pestle_triangle_t){true, true, true, "NO_TRANSPOSE"});
  return pestle_m_solve(
      f, both, b, (pestle_triangle_t){true, false, false, "NO_TRANSPOSE"});
}

// a dx = db - da x, by the factors that give x.
void pestle_jvp_solve(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                      pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *a = operand(node, 0), *right = t[1];
  pestle_node_t* lu = pestle_f_node(
      f, &(pestle_node_spec_t){
             .op = PESTLE_OP_LU, .operands = &a, .operand_count = 1});
  if (!lu) return;
  pv_t* x = solved(f, lu, operand(node, 1));
  if (!x) return;
  pestle_value_replace_all_uses(pestle_node_result(node, 0), x);
  if (t[0]) {
    pv_t* part = pestle_m_product(f, t[0], x);
    right =
        right ? pestle_f_subtract(f, right, part) : pestle_f_negate(f, part);
  }
  pestle_tangent_set(j, x, solved(f, lu, right));
  (void)out;
}

// -x da x.
void pestle_jvp_inverse(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                        pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* x = pestle_node_result(node, 0);
  pv_t* a = pestle_m_product(f, t[0], x);
  out[0] = pestle_f_negate(f, pestle_m_product(f, x, a));
}
