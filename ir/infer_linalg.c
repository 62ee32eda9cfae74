// SPDX-License-Identifier: Apache-2.0
// Type rules of cholesky, triangular_solve, lu, solve, inverse, qr, eigh, svd.
#include <string.h>

#include "base/mem.h"
#include "ir/infer.h"

// Operand 0 is [batch.., n, n].
static pestle_status_t check_square(const pestle_infer_t* in) {
  const pestle_type_t* a = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX));
  if (a->rank >= 2 &&
      pestle_dims_agree(a->dims[a->rank - 1], a->dims[a->rank - 2])) {
    return NULL;
  }
  return PESTLE_BAD("operand 0 is %s: its last two extents must be equal",
                    pestle_type_text(a).text);
}

pestle_status_t pestle_infer_cholesky(pestle_infer_t* in) {
  PESTLE_TRY(check_square(in));
  return pestle_emit(in, pestle_in_type(in, 0));
}

pestle_status_t pestle_infer_triangular_solve(pestle_infer_t* in) {
  PESTLE_TRY(check_square(in));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  const pestle_type_t *a = pestle_in_type(in, 0), *b = pestle_in_type(in, 1);
  PESTLE_TRY(pestle_need_rank(in, 1, a->rank));
  bool left = pestle_in_attr(in, PESTLE_ATTR_left_side)->as.b;
  int along = b->rank - (left ? 2 : 1);
  bool fits = pestle_dims_agree(a->dims[along], b->dims[along]);
  for (int i = 0; i < a->rank - 2; ++i) {
    fits = fits && pestle_dims_agree(a->dims[i], b->dims[i]);
  }
  if (!fits) {
    return PESTLE_BAD(
        "operand 0 is %s, operand 1 is %s: batch axes and axis "
        "%d must have the same extents",
        pestle_type_text(a).text, pestle_type_text(b).text, along);
  }
  const char* how = pestle_in_attr(in, PESTLE_ATTR_transpose_a)->as.str;
  if (strcmp(how, "NO_TRANSPOSE") && strcmp(how, "TRANSPOSE") &&
      strcmp(how, "ADJOINT")) {
    return PESTLE_BAD(
        "'transpose_a' is '%s': it must be NO_TRANSPOSE, "
        "TRANSPOSE or ADJOINT",
        how);
  }
  return pestle_emit(in, b);
}

// Operand 0 is [batch.., m, n] of f32 or f64.
static pestle_status_t check_matrices(const pestle_infer_t* in) {
  const pestle_type_t* type = pestle_in_type(in, 0);
  if ((type->dtype == PESTLE_F32 || type->dtype == PESTLE_F64) &&
      type->rank >= 2) {
    return NULL;
  }
  return PESTLE_BAD(
      "operand 0 is %s: it must be matrices, of rank 2 or more, of f32 or f64",
      pestle_type_text(type).text);
}

static int64_t smaller(int64_t a, int64_t b) {
  if (!pestle_dim_known(a) || !pestle_dim_known(b)) return PESTLE_DIM_DYNAMIC;
  return a < b ? a : b;
}

pestle_status_t pestle_infer_lu(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(check_matrices(in));
  PESTLE_TRY(pestle_emit(in, &type));
  int64_t rows = type.dims[type.rank - 2], columns = type.dims[type.rank - 1];
  if ((rows == 0) != (columns == 0)) {
    return PESTLE_BAD(
        "operand 0 is %s: a matrix without rows or columns has no "
        "factors",
        pestle_type_text(&type).text);
  }
  // One more axis is gone: the columns.
  pestle_type_t order = type;
  order.dtype = PESTLE_I32;
  --order.rank;
  pestle_type_t pivots = order;
  pivots.dims[order.rank - 1] = smaller(rows, columns);
  PESTLE_TRY(pestle_emit(in, &pivots));
  return pestle_emit(in, &order);
}

pestle_status_t pestle_infer_inverse(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(check_square(in));
  return pestle_emit(in, pestle_in_type(in, 0));
}

pestle_status_t pestle_infer_solve(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(check_square(in));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  const pestle_type_t *a = pestle_in_type(in, 0), *b = pestle_in_type(in, 1);
  PESTLE_TRY(pestle_need_rank(in, 1, a->rank));
  bool fits = true;
  for (int i = 0; i < a->rank - 1; ++i)
    fits = fits && pestle_dims_agree(a->dims[i], b->dims[i]);
  if (!fits) {
    return PESTLE_BAD(
        "operand 0 is %s, operand 1 is %s: all axes but the last "
        "must have the same extents",
        pestle_type_text(a).text, pestle_type_text(b).text);
  }
  return pestle_emit(in, b);
}

// Operand 0 with other matrices.
static pestle_status_t emit_matrices(pestle_infer_t* in, int64_t rows,
                                     int64_t columns) {
  pestle_type_t type = *pestle_in_type(in, 0);
  type.dims[type.rank - 2] = rows;
  type.dims[type.rank - 1] = columns;
  return pestle_emit(in, &type);
}

// With vectors for matrices.
static pestle_status_t emit_vectors(pestle_infer_t* in, int64_t count) {
  pestle_type_t type = *pestle_in_type(in, 0);
  type.dims[--type.rank - 1] = count;
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_qr(pestle_infer_t* in) {
  PESTLE_TRY(check_matrices(in));
  const pestle_type_t* a = pestle_in_type(in, 0);
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  int64_t k = pestle_in_attr(in, PESTLE_ATTR_full)->as.b ? m : smaller(m, n);
  PESTLE_TRY(emit_matrices(in, m, k));
  return emit_matrices(in, k, n);
}

pestle_status_t pestle_infer_eigh(pestle_infer_t* in) {
  PESTLE_TRY(check_matrices(in));
  PESTLE_TRY(check_square(in));
  const pestle_type_t* a = pestle_in_type(in, 0);
  PESTLE_TRY(emit_vectors(in, a->dims[a->rank - 1]));
  return pestle_emit(in, a);
}

pestle_status_t pestle_infer_svd(pestle_infer_t* in) {
  PESTLE_TRY(check_matrices(in));
  const pestle_type_t* a = pestle_in_type(in, 0);
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  int64_t k = smaller(m, n);
  bool full = pestle_in_attr(in, PESTLE_ATTR_full)->as.b;
  PESTLE_TRY(emit_matrices(in, m, full ? m : k));
  PESTLE_TRY(emit_vectors(in, k));
  return emit_matrices(in, full ? n : k, n);
}
