// SPDX-License-Identifier: Apache-2.0
// Functions of LAPACK, cuSOLVER and XLA that JAX calls by name. What they take is
// what the tensors are: layouts are how those functions want them, and ours want them
// as they are. Other layouts than LAPACK's own are built_layout.c's.
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/built_linalg.h"
#include "ir/built_own.h"
#include "ir/composite_matrix.h"

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

// --- What the functions are given ---

bool pestle_built_is_complex(pestle_built_t* b) {
  const pestle_type_t* type = pestle_built_type(b, 0);
  if (!pestle_type_is_complex(type) || !pestle_type_is_static(type)) {
    return false;
  }
  if (type->rank >= 2 && type->rank < PESTLE_MAX_RANK) return true;
  FAIL(b, UNSUPPORTED, "operand 0 must be matrices, of rank 2 to %d",
       PESTLE_MAX_RANK - 1);
  return false;
}

// Operand |index| is matrices, of floats that have such functions.
static bool takes_matrices(pestle_built_t* b, size_t index) {
  const pestle_type_t* type = pestle_built_type(b, index);
  if (type->rank < 2 || !pestle_type_is_static(type)) {
    FAIL(b, MALFORMED, "operand %zu must be matrices, of rank 2 or more",
         index);
  } else if (type->dtype != PESTLE_F32 && type->dtype != PESTLE_F64) {
    FAIL(b, UNSUPPORTED,
         "only matrices of f32 and f64 are supported, not of %s",
         pestle_dtype_info(type->dtype)->name);
  }
  return !b->f.status;
}

int64_t pestle_built_option(const pestle_built_t* b, const char* key,
                            int64_t otherwise) {
  const pestle_generic_value_t* v = pestle_built_config(b, key);
  if (!v) return otherwise;
  if (v->kind == PESTLE_GENERIC_INT) return v->i64;
  return v->kind == PESTLE_GENERIC_BOOL ? v->b : otherwise;
}

bool pestle_built_is_lower(const pestle_built_t* b) {
  return pestle_built_option(
             b, "uplo", pestle_built_option(b, "lower", 1) ? 'L' : 'U') == 'L';
}

// Node of |op| on operand 0 with one flag.
static pestle_node_t* factor(pestle_built_t* b, pestle_op_t op,
                             const pestle_attr_t* flag) {
  pestle_node_spec_t spec = {.op = op,
                             .operands = b->operands,
                             .operand_count = 1,
                             .attrs = flag,
                             .attr_count = flag ? 1 : 0};
  return pestle_f_node(&b->f, &spec);
}

static pv_t* result_of(pestle_node_t* node, size_t index) {
  return node ? pestle_node_result(node, index) : NULL;
}

void pestle_built_nothing_at(pestle_built_t* b, size_t index) {
  if (index < b->type_count) {
    b->results[index] = pestle_f_number(&b->f, &b->types[index], 0);
  }
}

// --- info ---

// The number, from 1, of the first place on the diagonal of |a| where |is| holds
// (of the same shape); 0 where there is none.
static pv_t* first_on_diagonal(pestle_formula_t* f, pv_t* a, pv_t* is) {
  if (!a || !is) return NULL;
  pestle_type_t type = *a->type;
  type.dtype = PESTLE_I32;
  int64_t axes[2] = {type.rank - 2, type.rank - 1};
  pv_t* i = pestle_f_iota(f, &type, axes[0]);
  pv_t* j = pestle_f_iota(f, &type, axes[1]);
  pv_t* here = pestle_f_and(f, is, pestle_f_eq(f, i, j));
  pv_t* none = pestle_f_number(f, &type, INT32_MAX);
  pv_t* number = pestle_f_plus(f, i, 1);
  number = pestle_f_select(f, here, number, none);
  number = pestle_f_reduce(f, PESTLE_OP_MINIMUM, number,
                           (pestle_i64s_t){axes, 2}, INT32_MAX);
  pv_t* most = pestle_f_splat(f, number, INT32_MAX);
  pv_t* zero = pestle_f_splat(f, number, 0);
  pv_t* free_of = pestle_f_eq(f, number, most);
  return pestle_f_select(f, free_of, zero, number);
}

// --- LU ---

static bool own_lu(pestle_built_t* b, pv_t* out[3]) {
  pestle_type_t types[3];
  types[0] = types[1] = types[2] = *pestle_built_type(b, 0);
  int64_t m = types[0].dims[types[0].rank - 2];
  int64_t n = types[0].dims[types[0].rank - 1];
  types[1].dtype = types[2].dtype = PESTLE_I32;
  types[1].dims[--types[1].rank - 1] = m < n ? m : n;
  types[2].dims[--types[2].rank - 1] = m;
  pestle_own_linalg(&b->f, "pestle.z.lu", "", b->operands, 1, types, "zrr",
                    out);
  return !b->f.status;
}

void pestle_built_lu_with_order(pestle_built_t* b) {
  if (pestle_built_is_complex(b)) {
    own_lu(b, b->results);
    return;
  }
  if (!takes_matrices(b, 0)) return;
  pestle_node_t* node = factor(b, PESTLE_OP_LU, NULL);
  for (size_t i = 0; i < 3; ++i)
    b->results[i] = result_of(node, i);
}

static pv_t* is_nothing(pestle_formula_t* f, pv_t* a) {
  if (!a || !pestle_type_is_complex(a->type)) {
    return a ? pestle_f_is_zero(f, a) : NULL;
  }
  pv_t* re = pestle_f_unary(f, PESTLE_OP_REAL, a);
  pv_t* im = pestle_f_unary(f, PESTLE_OP_IMAG, a);
  re = pestle_f_is_zero(f, re);
  return pestle_f_and(f, re, pestle_f_is_zero(f, im));
}

void pestle_built_getrf(pestle_built_t* b) {
  pv_t* made[3] = {NULL, NULL, NULL};
  if (pestle_built_is_complex(b)) {
    own_lu(b, made);
  } else {
    if (!takes_matrices(b, 0)) return;
    pestle_node_t* node = factor(b, PESTLE_OP_LU, NULL);
    made[0] = result_of(node, 0);
    made[1] = result_of(node, 1);
  }
  pv_t *lu = made[0], *pivots = made[1];
  b->results[0] = lu;
  b->results[1] = pivots ? pestle_f_plus(&b->f, pivots, 1) : NULL;
  pv_t* none = is_nothing(&b->f, lu);
  b->results[2] = first_on_diagonal(&b->f, lu, none);
}

typedef struct swaps_t {
  pv_t* pivots;  // [batch, steps]
  int64_t steps;
} swaps_t;

static pv_t* more_swaps(pestle_formula_t* f, void* user, pv_t* const* state) {
  const swaps_t* s = user;
  return pestle_f_lt(f, state[0], pestle_matrix_i32(f, s->steps));
}

// Element |at| [batch] of each row of |a| [batch, n].
static pv_t* picked(pestle_formula_t* f, pv_t* a, pv_t* at) {
  pv_t* i = pestle_matrix_iota(f, a, 1);
  pv_t* here = pestle_f_eq(f, i, pestle_matrix_per_batch(f, at, i));
  pv_t* zeros = pestle_matrix_fill(f, a, 0);
  return pestle_matrix_sum(f, pestle_f_select(f, here, a, zeros), 1);
}

static void swap(pestle_formula_t* f, void* user, pv_t** state) {
  const swaps_t* s = user;
  pv_t *k = state[0], *order = state[1];
  pestle_type_t type =
      pestle_type_make(PESTLE_I32, 1, (int64_t[]){s->pivots->type->dims[0]});
  pv_t* here = pestle_f_broadcast(f, k, 1, type.dims, (pestle_i64s_t){NULL, 0});
  pv_t* there = picked(f, s->pivots, here);
  pv_t* own = picked(f, order, here);
  pv_t* other = picked(f, order, there);
  pv_t* i = pestle_matrix_iota(f, order, 1);
  pv_t* at = pestle_f_eq(f, i, pestle_matrix_per_batch(f, there, i));
  pv_t* turned = pestle_matrix_per_batch(f, own, order);
  turned = pestle_f_select(f, at, turned, order);
  at = pestle_f_eq(f, i, pestle_matrix_per_batch(f, here, i));
  pv_t* first = pestle_matrix_per_batch(f, other, order);
  state[1] = pestle_f_select(f, at, first, turned);
  pv_t* one = pestle_matrix_i32(f, 1);
  state[0] = pestle_f_add(f, k, one);
}

// What row k was swapped with, for k from 0 on, to the order of the rows.
void pestle_built_pivots_to_order(pestle_built_t* b) {
  pestle_formula_t* f = &b->f;
  const pestle_type_t *from = pestle_built_type(b, 0), *to = &b->types[0];
  bool fits = from->rank >= 1 && from->rank == to->rank &&
              from->dtype == PESTLE_I32 && pestle_type_is_static(from) &&
              pestle_type_is_static(to);
  if (!fits) {
    FAIL(b, MALFORMED, "it takes pivots and gives an order, both of i32");
    return;
  }
  int64_t steps = from->dims[from->rank - 1], rows = to->dims[to->rank - 1];
  int64_t batch = 1;
  for (int32_t i = 0; i + 1 < from->rank; ++i)
    batch *= from->dims[i];
  swaps_t s = {.steps = steps};
  s.pivots = pestle_f_reshape(f, b->operands[0], 2, (int64_t[]){batch, steps});
  pestle_type_t type =
      pestle_type_make(PESTLE_I32, 2, (int64_t[]){batch, rows});
  pestle_matrix_loop_t loop = {more_swaps, swap, &s, .count = 2};
  loop.state[0] = pestle_matrix_i32(f, 0);
  loop.state[1] = pestle_f_iota(f, &type, 1);
  pestle_matrix_loop(f, &loop);
  b->results[0] = pestle_f_reshape(f, loop.state[1], to->rank, to->dims);
}

// --- QR ---

// [batch.., m, n] as [batch, n, m]: columns lie as rows.
static pv_t* columns_of(pestle_built_t* b, size_t index) {
  const pestle_type_t* type = pestle_built_type(b, index);
  int64_t dims[3] = {1, type->dims[type->rank - 2], type->dims[type->rank - 1]};
  for (int32_t i = 0; i < type->rank - 2; ++i)
    dims[0] *= type->dims[i];
  pv_t* a = pestle_f_reshape(&b->f, b->operands[index], 3, dims);
  return pestle_matrix_transpose(&b->f, a);
}

static pv_t* as_result(pestle_built_t* b, pv_t* a, size_t index) {
  return pestle_f_reshape(&b->f, a, b->types[index].rank, b->types[index].dims);
}

static bool has_elements(pestle_built_t* b) {
  for (size_t i = 0; i < b->operand_count; ++i) {
    if (pestle_type_count(pestle_built_type(b, i))) continue;
    for (size_t r = 0; r < b->type_count; ++r)
      pestle_built_nothing_at(b, r);
    return false;
  }
  return true;
}

void pestle_built_own(pestle_built_t* b, const char* name, const char* flags,
                      const char* parts) {
  pestle_own_linalg(&b->f, name, flags, b->operands, b->operand_count, b->types,
                    parts, b->results);
}

void pestle_built_geqrf(pestle_built_t* b) {
  pv_t* tau;
  if (pestle_built_is_complex(b)) {
    pestle_built_own(b, "pestle.z.geqrf", "", "zz");
    return;
  }
  if (!takes_matrices(b, 0) || !has_elements(b)) return;
  pv_t* a = pestle_matrix_reflections(&b->f, columns_of(b, 0), &tau);
  a = pestle_matrix_transpose(&b->f, a);
  b->results[0] = as_result(b, a, 0);
  b->results[1] = as_result(b, tau, 1);
}

void pestle_built_orgqr(pestle_built_t* b) {
  const pestle_type_t* tau = pestle_built_type(b, 1);
  if (pestle_built_is_complex(b)) {
    pestle_built_own(b, "pestle.z.orgqr", "", "z");
    return;
  }
  if (!takes_matrices(b, 0)) return;
  const pestle_type_t* a = pestle_built_type(b, 0);
  bool fits = tau->rank == a->rank - 1 && tau->dtype == a->dtype &&
              pestle_type_is_static(tau);
  for (int32_t i = 0; fits && i < a->rank - 2; ++i)
    fits = tau->dims[i] == a->dims[i];
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  int64_t steps = fits ? tau->dims[tau->rank - 1] : 0;
  if (!fits || steps > n || n > m) {
    FAIL(b, MALFORMED,
         "it takes reflections [.., m, n], m >= n, and at most n "
         "factors");
    return;
  }
  if (!has_elements(b)) {
    if (steps || !pestle_type_count(a)) return;
  }
  pestle_formula_t* f = &b->f;
  pv_t* columns = columns_of(b, 0);
  int64_t batch = columns ? columns->type->dims[0] : 0;
  pv_t* factors =
      pestle_f_reshape(f, b->operands[1], 2, (int64_t[]){batch, steps});
  pv_t* q = steps ? pestle_matrix_of_reflections(f, columns, factors, n)
                  : pestle_matrix_unit(f, columns, n, m);
  b->results[0] = as_result(b, pestle_matrix_transpose(f, q), 0);
}

// --- Cholesky, triangular systems ---

// |l| in its triangle; the other one is left as it was given.
static pv_t* over_triangle(pestle_built_t* b, pv_t* l) {
  pv_t* a = pestle_built_operand(b, 0);
  if (!l) return NULL;
  pestle_type_t index = *l->type;
  index.dtype = PESTLE_I32;
  pv_t* row = pestle_f_iota(&b->f, &index, index.rank - 2);
  pv_t* column = pestle_f_iota(&b->f, &index, index.rank - 1);
  pv_t* within = pestle_built_is_lower(b) ? pestle_f_ge(&b->f, row, column)
                                          : pestle_f_ge(&b->f, column, row);
  return pestle_f_select(&b->f, within, l, a);
}

void pestle_built_potrf(pestle_built_t* b) {
  if (pestle_built_is_complex(b)) {
    pestle_built_own(b, "pestle.z.cholesky",
                     pestle_built_is_lower(b) ? "L" : "", "z");
  } else {
    if (!takes_matrices(b, 0)) return;
    pestle_attr_t flag = PESTLE_SET_BOOL(lower, pestle_built_is_lower(b));
    b->results[0] = result_of(factor(b, PESTLE_OP_CHOLESKY, &flag), 0);
  }
  pv_t* l = b->results[0];
  pv_t* bad = l ? pestle_f_ne(&b->f, l, l) : NULL;
  b->results[1] = first_on_diagonal(&b->f, l, bad);
  b->results[0] = over_triangle(b, l);
}

void pestle_built_trsm(pestle_built_t* b) {
  int64_t turned = pestle_built_option(b, "trans_x", 'N');
  pestle_attr_t attrs[] = {
      PESTLE_SET_BOOL(left_side, pestle_built_option(b, "side", 'L') == 'L'),
      PESTLE_SET_BOOL(lower, pestle_built_is_lower(b)),
      PESTLE_SET_BOOL(unit_diagonal,
                      pestle_built_option(b, "diag", 'N') == 'U'),
      PESTLE_SET_STR(transpose_a, turned == 'T'   ? "TRANSPOSE"
                                  : turned == 'C' ? "ADJOINT"
                                                  : "NO_TRANSPOSE")};
  if (pestle_built_is_complex(b)) {
    pestle_node_t* node = NULL;
    if (!pestle_own_takes(PESTLE_OP_TRIANGULAR_SOLVE, b->operands, 2)) {
      FAIL(b, MALFORMED, "it takes matrices of one type");
    }
    if (b->f.status) return;
    b->f.status = pestle_own_row(PESTLE_OP_TRIANGULAR_SOLVE, attrs, 4,
                                 &b->f.builder, b->operands, 2, &node);
    b->results[0] = result_of(node, 0);
    return;
  }
  b->results[0] = pestle_f_make(&b->f, PESTLE_OP_TRIANGULAR_SOLVE, b->operands,
                                2, attrs, 4, NULL);
}

// --- Eigenvalues of symmetric matrices ---

static void eigh(pestle_built_t* b, bool lower) {
  if (pestle_built_is_complex(b)) {
    pestle_built_own(b, "pestle.z.eigh", lower ? "L" : "", "zr");
    pestle_built_nothing_at(b, 2);
    return;
  }
  if (!takes_matrices(b, 0)) return;
  pestle_attr_t flag = PESTLE_SET_BOOL(lower, lower);
  pestle_node_t* node = factor(b, PESTLE_OP_EIGH, &flag);
  b->results[0] = result_of(node, 1);
  b->results[1] = result_of(node, 0);
  pestle_built_nothing_at(b, 2);
}

void pestle_built_syevd(pestle_built_t* b) {
  eigh(b, pestle_built_is_lower(b));
}

// "1,1,100,1e-6": lower, sorted, the most sweeps, how near.
void pestle_built_eigh_by_text(pestle_built_t* b) {
  const pestle_generic_value_t* text = pestle_built_attr(b, "backend_config");
  bool upper = text && text->kind == PESTLE_GENERIC_STRING && text->text.size &&
               text->text.data[0] == '0';
  eigh(b, !upper);
}

// --- Singular values ---

static pv_t* conjugate(pestle_formula_t* f, pv_t* z) {
  pv_t* parts[2];
  parts[0] = pestle_f_unary(f, PESTLE_OP_REAL, z);
  parts[1] = pestle_f_unary(f, PESTLE_OP_IMAG, z);
  parts[1] = pestle_f_negate(f, parts[1]);
  return pestle_f_make(f, PESTLE_OP_COMPLEX, parts, 2, NULL, 0, NULL);
}

// Of operand 0: s, u and v, or v transposed, in results 1 to 3. |how| 'A': whole
// bases, 'S': as many vectors as values, 'N': none, whatever is in their place.
static void own_svd(pestle_built_t* b, int64_t how, bool transposed) {
  pestle_type_t types[3];
  types[0] = types[2] = *pestle_built_type(b, 0);
  int32_t rank = types[0].rank;
  int64_t m = types[0].dims[rank - 2], n = types[0].dims[rank - 1];
  int64_t k = m < n ? m : n;
  types[0].dims[rank - 1] = how == 'A' ? m : k;
  types[2].dims[rank - 2] = how == 'A' ? n : k;
  types[1] = b->types[1];
  pv_t* made[3] = {NULL, NULL, NULL};
  pestle_own_linalg(&b->f, "pestle.z.svd", "", b->operands, 1, types, "zrz",
                    made);
  b->results[0] = b->operands[0];
  b->results[1] = made[1];
  pestle_built_nothing_at(b, 2);
  pestle_built_nothing_at(b, 3);
  pestle_built_nothing_at(b, 4);
  if (how == 'N' || b->f.status) return;
  b->results[2] = made[0];
  pv_t* v = pestle_f_transpose_matrix(&b->f, made[2]);
  b->results[3] = transposed ? made[2] : conjugate(&b->f, v);
}

static void svd(pestle_built_t* b, int64_t how, bool transposed) {
  if (pestle_built_is_complex(b)) {
    own_svd(b, how, transposed);
    return;
  }
  if (!takes_matrices(b, 0)) return;
  pestle_attr_t flag = PESTLE_SET_BOOL(full, how == 'A');
  pestle_node_t* node = factor(b, PESTLE_OP_SVD, &flag);
  b->results[0] = b->operands[0];
  b->results[1] = result_of(node, 1);
  pestle_built_nothing_at(b, 2);
  pestle_built_nothing_at(b, 3);
  pestle_built_nothing_at(b, 4);
  if (how == 'N' || !node) return;
  b->results[2] = result_of(node, 0);
  pv_t* v = result_of(node, 2);
  b->results[3] = transposed ? v : pestle_f_transpose_matrix(&b->f, v);
}

void pestle_built_gesdd(pestle_built_t* b) {
  svd(b, pestle_built_option(b, "mode", 'S'), true);
}

// |turned|: results 2 and 3 are v and u.
static int64_t vectors_of(const pestle_built_t* b, bool turned) {
  if (!pestle_built_option(b, "compute_uv", 1)) return 'N';
  const pestle_type_t *a = pestle_built_type(b, 0),
                      *u = &b->types[turned ? 3 : 2],
                      *v = &b->types[turned ? 2 : 3];
  int64_t least = a->rank < 2 ? 0 : a->dims[a->rank - 1];
  if (a->rank >= 2 && a->dims[a->rank - 2] < least) {
    least = a->dims[a->rank - 2];
  }
  // "full_matrices" is also set where only the types say that it is not.
  bool thin = u->rank == a->rank && v->rank == a->rank && a->rank >= 2 &&
              u->dims[u->rank - 1] == least &&
              (v->dims[v->rank - 1] == least || v->dims[v->rank - 2] == least);
  return thin ? 'S' : 'A';
}

// "transposed": the library is given the transposed matrix, since that is how rows lie.
void pestle_built_gesvd(pestle_built_t* b) {
  bool turned = pestle_built_option(b, "transposed", 0);
  svd(b, vectors_of(b, turned), true);
  if (!turned) return;
  pv_t* u = b->results[2];
  b->results[2] = b->results[3];
  b->results[3] = u;
}

void pestle_built_gesvdj(pestle_built_t* b) {
  svd(b, vectors_of(b, false), false);
}
