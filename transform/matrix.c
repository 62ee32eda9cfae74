// SPDX-License-Identifier: Apache-2.0
#include "transform/matrix.h"

pv_t* pestle_m_product(pestle_formula_t* f, pv_t* a, pv_t* b) {
  if (!a || !b) return NULL;
  pestle_type_t type = *a->type;
  type.dims[type.rank - 1] = pestle_m_column_count(b);
  return pestle_f_dot(f, a, b, false, &type);
}

pv_t* pestle_m_conjugate(pestle_formula_t* f, pv_t* a) {
  if (!a || !pestle_type_is_complex(a->type)) return a;
  pv_t* parts[2] = {pestle_f_typed(f, PESTLE_OP_REAL, &a, 1, NULL), NULL};
  parts[1] = pestle_f_negate(f, pestle_f_typed(f, PESTLE_OP_IMAG, &a, 1, NULL));
  return pestle_f_typed(f, PESTLE_OP_COMPLEX, parts, 2, NULL);
}

// Where row + by |op| column.
static pv_t* flags(pestle_formula_t* f, const pv_t* like, pestle_op_t op,
                   int64_t by) {
  pestle_type_t type = *like->type;
  type.dtype = PESTLE_I32;
  pv_t* rows = pestle_f_iota(f, &type, type.rank - 2);
  if (by) rows = pestle_f_plus(f, rows, (double)by);
  pv_t* columns = pestle_f_iota(f, &type, type.rank - 1);
  return pestle_f_binary(f, op, rows, columns);
}

static pv_t* keep(pestle_formula_t* f, pv_t* a, pestle_op_t op, int64_t by) {
  if (!a) return NULL;
  pv_t* kept = flags(f, a, op, by);
  return pestle_f_select(f, kept, a, pestle_zeros(f, a));
}

pv_t* pestle_m_lower(pestle_formula_t* f, pv_t* a, int64_t by) {
  return keep(f, a, PESTLE_OP_GE, by);
}

pv_t* pestle_m_upper(pestle_formula_t* f, pv_t* a, int64_t by) {
  return keep(f, a, PESTLE_OP_LE, by);
}

pv_t* pestle_m_eye(pestle_formula_t* f, const pv_t* like) {
  pv_t* on = flags(f, like, PESTLE_OP_EQ, 0);
  return pestle_f_convert(f, on, like->type->dtype);
}

pv_t* pestle_m_diagonal(pestle_formula_t* f, pv_t* a) {
  if (!a) return NULL;
  int64_t rows = a->type->rank - 2;
  return pestle_sum_axes(f, keep(f, a, PESTLE_OP_EQ, 0), &rows, 1);
}

pv_t* pestle_m_corner(pestle_formula_t* f, pv_t* a, int64_t rows,
                      int64_t columns) {
  if (!a) return NULL;
  a = pestle_f_slice_axis(f, a, a->type->rank - 2, 0, rows);
  return a ? pestle_f_slice_axis(f, a, a->type->rank - 1, 0, columns) : NULL;
}

pv_t* pestle_m_extend(pestle_formula_t* f, pv_t* a, int64_t rows,
                      int64_t columns) {
  if (!a) return NULL;
  int32_t last = a->type->rank - 1;
  a = pestle_f_pad_end(f, a, last, columns - pestle_m_column_count(a));
  return a ? pestle_f_pad_end(f, a, last - 1, rows - pestle_m_row_count(a))
           : NULL;
}

static pv_t* along(pestle_formula_t* f, pv_t* v, const pestle_type_t* type,
                   int32_t gap) {
  int64_t axes[PESTLE_MAX_RANK];
  if (!v) return NULL;
  for (int32_t d = 0; d < v->type->rank; ++d)
    axes[d] = d < gap ? d : d + 1;
  pestle_type_t whole = *type;
  whole.dtype = v->type->dtype;
  return pestle_f_broadcast_to(f, v, &whole, axes);
}

pv_t* pestle_m_rows(pestle_formula_t* f, pv_t* v, const pestle_type_t* type) {
  return along(f, v, type, type->rank - 1);
}

pv_t* pestle_m_columns(pestle_formula_t* f, pv_t* v,
                       const pestle_type_t* type) {
  return along(f, v, type, type->rank - 2);
}

pv_t* pestle_m_solve(pestle_formula_t* f, pv_t* a, pv_t* b,
                     pestle_triangle_t t) {
  pestle_attr_t attrs[] = {PESTLE_SET_BOOL(left_side, t.left),
                           PESTLE_SET_BOOL(lower, t.lower),
                           PESTLE_SET_BOOL(unit_diagonal, t.unit),
                           PESTLE_SET_STR(transpose_a, t.how)};
  pv_t* operands[2] = {a, b};
  return pestle_f_make(f, PESTLE_OP_TRIANGULAR_SOLVE, operands, 2, attrs, 4,
                       NULL);
}
