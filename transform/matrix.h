// SPDX-License-Identifier: Apache-2.0
// Formulas of matrices: the last two axes, all others are batches.
#ifndef PESTLE_TRANSFORM_MATRIX_H_
#define PESTLE_TRANSFORM_MATRIX_H_

#include "transform/transform.h"

// a x b.
pv_t* pestle_m_product(pestle_formula_t* f, pv_t* a, pv_t* b);
// The numbers with their imaginary parts negated; real ones as they are.
pv_t* pestle_m_conjugate(pestle_formula_t* f, pv_t* a);
static inline pv_t* pestle_m_adjoint(pestle_formula_t* f, pv_t* a) {
  return pestle_m_conjugate(f, pestle_f_transpose_matrix(f, a));
}
// Elements of |a| at columns <= row + |by|, or >=, else 0.
pv_t* pestle_m_lower(pestle_formula_t* f, pv_t* a, int64_t by);
pv_t* pestle_m_upper(pestle_formula_t* f, pv_t* a, int64_t by);
// 1 on the diagonal of |like|'s type, else 0.
pv_t* pestle_m_eye(pestle_formula_t* f, const pv_t* like);
// The diagonal, the last axis.
pv_t* pestle_m_diagonal(pestle_formula_t* f, pv_t* a);
// |rows| of them, |columns| of them from the first on.
pv_t* pestle_m_corner(pestle_formula_t* f, pv_t* a, int64_t rows,
                      int64_t columns);
// Zeros behind until it has so many.
pv_t* pestle_m_extend(pestle_formula_t* f, pv_t* a, int64_t rows,
                      int64_t columns);
// |v|, of rank one less, along the rows (the same in each column), or the columns.
pv_t* pestle_m_rows(pestle_formula_t* f, pv_t* v, const pestle_type_t* type);
pv_t* pestle_m_columns(pestle_formula_t* f, pv_t* v, const pestle_type_t* type);
// op(a) x = b, or x op(a) = b; |how| is an attribute's text.
typedef struct pestle_triangle_t {
  bool left, lower, unit;
  const char* how;
} pestle_triangle_t;
pv_t* pestle_m_solve(pestle_formula_t* f, pv_t* a, pv_t* b,
                     pestle_triangle_t triangle);
// Extents of the last two axes.
static inline int64_t pestle_m_row_count(const pv_t* a) {
  return a->type->dims[a->type->rank - 2];
}
static inline int64_t pestle_m_column_count(const pv_t* a) {
  return a->type->dims[a->type->rank - 1];
}

#endif  // PESTLE_TRANSFORM_MATRIX_H_
