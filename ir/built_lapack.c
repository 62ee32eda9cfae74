// SPDX-License-Identifier: Apache-2.0
// Functions of LAPACK and cuSOLVER that no row stands for: calls of functions of
// Pestle's own, of real matrices too (ADR 024).
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/built_linalg.h"
#include "ir/built_own.h"

typedef pestle_value_t pv_t;

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

// --- What they are given ---

// Operand |index| is matrices, real ones or complex.
static bool takes_any(pestle_built_t* b, size_t index) {
  const pestle_type_t* type = pestle_built_type(b, index);
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  bool fits = pestle_type_is_static(type) && type->rank >= 2 &&
              type->rank < PESTLE_MAX_RANK &&
              (part == PESTLE_F32 || part == PESTLE_F64);
  if (!fits) {
    FAIL(b, MALFORMED,
         "operand %zu must be matrices of f32, f64 or their complex numbers",
         index);
  }
  return fits && !b->f.status;
}

static bool takes_square(pestle_built_t* b) {
  const pestle_type_t* type = pestle_built_type(b, 0);
  if (!takes_any(b, 0)) return false;
  if (type->dims[type->rank - 1] == type->dims[type->rank - 2]) return true;
  FAIL(b, MALFORMED, "operand 0 must be square matrices");
  return false;
}

// Operand |index| is of operand 0's batches and element type, or of |dtype|, with
// |rank| axes behind them, the last |last| long.
static bool goes_along(pestle_built_t* b, size_t index, int32_t rank,
                       pestle_dtype_t dtype, int64_t last) {
  const pestle_type_t *a = pestle_built_type(b, 0),
                      *x = pestle_built_type(b, index);
  int32_t batch = a->rank - 2;
  bool fits = pestle_type_is_static(x) && x->rank == batch + rank &&
              x->dtype == dtype && (last < 0 || x->dims[x->rank - 1] == last);
  for (int32_t i = 0; fits && i < batch; ++i)
    fits = x->dims[i] == a->dims[i];
  if (!fits) FAIL(b, MALFORMED, "operand %zu does not fit operand 0", index);
  return fits;
}

static bool gives(pestle_built_t* b, size_t count, const char* what) {
  if (b->type_count == count) return true;
  FAIL(b, MALFORMED, "it gives %s", what);
  return false;
}

static int64_t extent(const pestle_built_t* b, int32_t from_end) {
  const pestle_type_t* type = pestle_built_type(b, 0);
  return type->dims[type->rank - from_end];
}

// The type of result |index| with complex numbers.
static pestle_type_t complex_type(const pestle_built_t* b, size_t index) {
  pestle_type_t type = b->types[index];
  if (!pestle_type_is_complex(&type)) {
    type.dtype = type.dtype == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
  }
  return type;
}

static pv_t* part_of(pestle_built_t* b, pestle_op_t part, pv_t* z) {
  return z ? pestle_f_unary(&b->f, part, z) : NULL;
}

// --- Values ---

// |values| and left and right vectors from result |first| on.
static void eig(pestle_built_t* b, size_t first, pestle_type_t values,
                pv_t* made[3]) {
  bool real = !pestle_type_is_complex(pestle_built_type(b, 0));
  pestle_type_t types[3] = {values, complex_type(b, first),
                            complex_type(b, first + 1)};
  pestle_own_linalg(&b->f, "pestle.z.eig", real ? "N" : "", b->operands, 1,
                    types, "zzz", made);
}

// Values (in two parts for real matrices), left and right vectors, info.
void pestle_built_geev(pestle_built_t* b) {
  pv_t* made[3] = {NULL, NULL, NULL};
  bool real = !pestle_type_is_complex(pestle_built_type(b, 0));
  size_t first = real ? 2 : 1;
  if (!takes_square(b) ||
      !gives(b, first + 3, "values, vectors of both sides and info")) {
    return;
  }
  eig(b, first, complex_type(b, 0), made);
  b->results[0] = real ? part_of(b, PESTLE_OP_REAL, made[0]) : made[0];
  if (real) b->results[1] = part_of(b, PESTLE_OP_IMAG, made[0]);
  b->results[first] = made[1];
  b->results[first + 1] = made[2];
  pestle_built_nothing_at(b, first + 2);
}

// Vectors of pairs as LAPACK packs them into real columns: of the value above the axis
// the real part, of the one below the imaginary part of its neighbour's.
static pv_t* packed(pestle_built_t* b, pv_t* w, pv_t* vectors) {
  pestle_formula_t* f = &b->f;
  if (!w || !vectors) return NULL;
  int64_t axes[PESTLE_MAX_RANK];
  int32_t rank = vectors->type->rank;
  for (int32_t i = 0; i < rank - 2; ++i)
    axes[i] = i;
  axes[rank - 2] = rank - 1;
  pv_t* im = pestle_f_unary(f, PESTLE_OP_IMAG, w);
  pv_t* below = pestle_f_lt(f, im, pestle_f_splat(f, im, 0));
  below = pestle_f_broadcast(f, below, rank, vectors->type->dims,
                             (pestle_i64s_t){axes, (size_t)rank - 1});
  pv_t* other = pestle_f_unary(f, PESTLE_OP_IMAG, vectors);
  pv_t* re = pestle_f_unary(f, PESTLE_OP_REAL, vectors);
  return pestle_f_select(f, below, pestle_f_negate(f, other), re);
}

// cuSOLVER's: the matrix again, values, left and right vectors, info.
void pestle_built_geev_packed(pestle_built_t* b) {
  pv_t* made[3] = {NULL, NULL, NULL};
  bool real = !pestle_type_is_complex(pestle_built_type(b, 0));
  if (!takes_square(b)) return;
  eig(b, 2, complex_type(b, 1), made);
  b->results[0] = b->operands[0];
  b->results[1] = made[0];
  for (size_t i = 0; i < 2; ++i) {
    b->results[2 + i] = real ? packed(b, made[0], made[1 + i]) : made[1 + i];
  }
  pestle_built_nothing_at(b, 4);
}

// Triangle, or blocks of two where values of a real matrix are pairs, vectors, values
// (in two parts for real matrices), how many were chosen, info.
void pestle_built_gees(pestle_built_t* b) {
  bool real = !pestle_type_is_complex(pestle_built_type(b, 0));
  size_t last = real ? 4 : 3;
  if (!takes_square(b) ||
      !gives(b, last + 2, "a triangle, vectors, values, a count and info")) {
    return;
  }
  if (pestle_built_option(b, "sort", 'N') != 'N') {
    FAIL(b, UNSUPPORTED, "values are not sorted");
    return;
  }
  pv_t* made[3] = {NULL, NULL, NULL};
  pestle_type_t types[3] = {b->types[0], b->types[1], complex_type(b, 2)};
  pestle_own_linalg(&b->f, "pestle.z.schur", real ? "N" : "", b->operands, 1,
                    types, "zzz", made);
  b->results[0] = made[0];
  b->results[1] = made[1];
  b->results[2] = real ? part_of(b, PESTLE_OP_REAL, made[2]) : made[2];
  if (real) b->results[3] = part_of(b, PESTLE_OP_IMAG, made[2]);
  pestle_built_nothing_at(b, last);
  pestle_built_nothing_at(b, last + 1);
}

// --- Forms ---

void pestle_built_gehrd(pestle_built_t* b) {
  if (!takes_square(b)) return;
  int64_t n = extent(b, 1);
  if (pestle_built_option(b, "low", 1) != 1 ||
      pestle_built_option(b, "high", n) != n) {
    FAIL(b, UNSUPPORTED, "only whole matrices are supported");
    return;
  }
  pestle_built_own(b, "pestle.z.hessenberg", "", "zz");
  pestle_built_nothing_at(b, 2);
}

// Reflections, diagonal, the one beside it, factors, info.
void pestle_built_sytrd(pestle_built_t* b) {
  if (!takes_square(b)) return;
  pestle_built_own(b, "pestle.z.tridiagonal",
                   pestle_built_is_lower(b) ? "L" : "", "zrrz");
  pestle_built_nothing_at(b, 4);
}

// A matrix and which columns come first; reflections, the order of columns, factors.
void pestle_built_geqp3(pestle_built_t* b) {
  if (!takes_any(b, 0) || !goes_along(b, 1, 1, PESTLE_I32, extent(b, 1)))
    return;
  pestle_built_own(b, "pestle.z.geqp3", "", "zrz");
}

// Reflections, factors and what is multiplied by their product.
void pestle_built_ormqr(pestle_built_t* b) {
  pestle_dtype_t dtype = pestle_built_type(b, 0)->dtype;
  bool left = pestle_built_option(b, "left", 1);
  bool turned = pestle_built_option(b, "transpose", 0);
  if (!takes_any(b, 0) || !goes_along(b, 1, 1, dtype, -1) ||
      !goes_along(b, 2, 2, dtype, left ? -1 : extent(b, 2))) {
    return;
  }
  const pestle_type_t* c = pestle_built_type(b, 2);
  if (left && c->dims[c->rank - 2] != extent(b, 2)) {
    FAIL(b, MALFORMED, "operand 2 does not fit operand 0");
    return;
  }
  const char* flags = left ? turned ? "C" : "" : turned ? "RC" : "R";
  pestle_built_own(b, "pestle.z.ormqr", flags, "z");
}

// An upper triangle and a vector; those of the larger matrix.
void pestle_built_cholesky_update(pestle_built_t* b) {
  pestle_dtype_t dtype = pestle_built_type(b, 0)->dtype;
  if (pestle_built_is_complex(b)) {
    FAIL(b, UNSUPPORTED, "only matrices of f32 and f64 are supported");
    return;
  }
  if (!takes_square(b) || !goes_along(b, 1, 1, dtype, extent(b, 1))) return;
  pestle_built_own(b, "pestle.z.cholesky_update", "", "zz");
}

// --- alpha a a' + beta c ---

static pv_t* repeated(pestle_built_t* b, size_t index,
                      const pestle_type_t* type) {
  return pestle_f_broadcast(&b->f, b->operands[index], type->rank, type->dims,
                            (pestle_i64s_t){NULL, 0});
}

// Matrices a and c, numbers alpha and beta; "transpose": a' a.
void pestle_built_syrk(pestle_built_t* b) {
  pestle_formula_t* f = &b->f;
  const pestle_type_t *a = pestle_built_type(b, 0),
                      *c = pestle_built_type(b, 1);
  if (!takes_any(b, 0) || !goes_along(b, 1, 2, a->dtype, -1)) return;
  if (pestle_built_type(b, 2)->rank || pestle_built_type(b, 3)->rank) {
    FAIL(b, MALFORMED, "operands 2 and 3 must be numbers");
    return;
  }
  int64_t batch[PESTLE_MAX_RANK];
  int64_t summed = a->rank - (pestle_built_option(b, "transpose", 0) ? 2 : 1);
  size_t count = (size_t)a->rank - 2;
  for (size_t i = 0; i < count; ++i)
    batch[i] = (int64_t)i;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, batch, count),
      PESTLE_SET_I64S(rhs_batching_dimensions, batch, count),
      PESTLE_SET_I64S(lhs_contracting_dimensions, &summed, 1),
      PESTLE_SET_I64S(rhs_contracting_dimensions, &summed, 1)};
  pv_t* both[2] = {b->operands[0], b->operands[0]};
  pv_t* product = pestle_f_make(f, PESTLE_OP_DOT_GENERAL, both, 2, attrs, 4, c);
  product = pestle_f_multiply(f, product, repeated(b, 2, c));
  pv_t* old = pestle_f_multiply(f, b->operands[1], repeated(b, 3, c));
  b->results[0] = pestle_f_add(f, product, old);
}
