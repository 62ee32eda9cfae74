// SPDX-License-Identifier: Apache-2.0
// A layer of weights and a bias, built of ops (pestle/helpers.h).
#include <inttypes.h>

#include "base/require.h"
#include "ir/graph.h"
#include "pestle/helpers.h"

// Whether |x| times |w| plus |b| is one of matrices: said of the operand that is not.
static pestle_status_t check_linear(const pestle_type_t* x,
                                    const pestle_type_t* w,
                                    const pestle_type_t* b) {
  if (w->rank != 2 || x->rank < 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_op_linear multiplies x [.., k] by w [k, n]; x "
                        "has rank %" PRId32 " and w has rank %" PRId32,
                        x->rank, w->rank);
  }
  if (x->dims[x->rank - 1] != w->dims[0]) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_op_linear: rows of x have %" PRId64
                        " elements, but w has %" PRId64 " rows",
                        x->dims[x->rank - 1], w->dims[0]);
  }
  if (x->dtype != w->dtype || (b && b->dtype != w->dtype)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_op_linear: x is of %s, w of %s and the bias "
                        "of %s; convert them to one",
                        pestle_dtype_info(x->dtype)->name,
                        pestle_dtype_info(w->dtype)->name,
                        pestle_dtype_info((b ? b : w)->dtype)->name);
  }
  if (b && (b->rank != 1 || b->dims[0] != w->dims[1])) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_op_linear: the bias has to be one row of the "
                        "%" PRId64 " columns of w",
                        w->dims[1]);
  }
  return NULL;
}

pestle_status_t pestle_op_linear(pestle_builder_t* builder, pestle_value_t* x,
                                 pestle_value_t* w, pestle_value_t* b,
                                 pestle_value_t** out) {
  pestle_value_t *product = NULL, *row = NULL;
  if (out) *out = NULL;
  PESTLE_REQUIRE(builder, "a builder");
  PESTLE_REQUIRE(x && w, "x and w");
  pestle_type_t of_x = pestle_value_type(x), of_w = pestle_value_type(w);
  pestle_type_t of_b = pestle_value_type(b), type = of_x;
  PESTLE_TRY(check_linear(&of_x, &of_w, b ? &of_b : NULL));
  type.dims[type.rank - 1] = of_w.dims[1];
  PESTLE_TRY(pestle_op_dot_general(
      builder, x, w,
      PESTLE_ATTRS(dot_general,
                   .lhs_contracting_dimensions = PESTLE_I64S(of_x.rank - 1),
                   .rhs_contracting_dimensions = PESTLE_I64S(0)),
      type, &product));
  if (b) {
    PESTLE_TRY(pestle_op_broadcast_in_dim(
        builder, b,
        PESTLE_ATTRS(broadcast_in_dim,
                     .broadcast_dimensions = PESTLE_I64S(type.rank - 1)),
        type, &row));
    PESTLE_TRY(pestle_op_add(builder, product, row, &product));
  }
  if (out) *out = product;
  return NULL;
}
