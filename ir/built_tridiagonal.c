// SPDX-License-Identifier: Apache-2.0
// Tridiagonal systems by elimination with exchanges of neighbours, LAPACK's gtsv:
//
//   for k: of row k, as it is by now, and row k + 1 the one with the larger number
//          in column k stays as row k; a multiple of it is taken off the other,
//          which becomes row k + 1
//   for k from the last: x_k = (b_k - u_k x_k+1 - w_k x_k+2) / d_k
//
// A row lies as what is in its columns k, k + 1 and k + 2, then its right sides.
#include "ir/built.h"
#include "ir/built_own.h"
#include "ir/composite_matrix.h"

typedef struct system_t {
  pv_t* rows;  // [batch, n, 3 + m]: below, on, above the diagonal, right sides
  pv_t* done;  // the same, after the first loop
  int64_t n;
} system_t;

// Element |at| of each row of |row| [batch, 3 + m], repeated in the row's shape.
static pv_t* everywhere(pestle_formula_t* f, pv_t* row, int64_t at) {
  pv_t* one = pestle_f_part(f, row, 1, at);
  return pestle_matrix_per_batch(f, one, row);
}

// |row| one place to the left as far as the three numbers go: what was in column
// k + 1 is now first; its right sides stay.
static pv_t* advanced(pestle_formula_t* f, pv_t* row) {
  if (!row) return NULL;
  int64_t size = row->type->dims[1];
  pv_t* parts[3];
  parts[0] = pestle_f_slice_axis(f, row, 1, 1, 3);
  pv_t* like = pestle_f_slice_axis(f, row, 1, 0, 1);
  parts[1] = pestle_matrix_fill(f, like, 0);
  parts[2] = pestle_f_slice_axis(f, row, 1, 3, size);
  return pestle_f_concatenate(f, parts, 3, 1);
}

static pv_t* before_last(pestle_formula_t* f, void* user, pv_t* const* state) {
  const system_t* s = user;
  return pestle_f_lt(f, state[0], pestle_matrix_i32(f, s->n - 1));
}

// State: k, row k as it is by now, the rows that stay.
static void eliminate(pestle_formula_t* f, void* user, pv_t** state) {
  const system_t* s = user;
  pv_t *k = state[0], *row = state[1];
  pv_t* one = pestle_matrix_i32(f, 1);
  pv_t* after = pestle_f_add(f, k, one);
  pv_t* next = pestle_matrix_row(f, s->rows, after);
  pv_t *p = everywhere(f, row, 0), *l = everywhere(f, next, 0);
  pv_t* size = pestle_f_abs(f, p);
  pv_t* stays = pestle_f_ge(f, size, pestle_f_abs(f, l));
  pv_t* pivot = pestle_f_select(f, stays, row, next);
  pv_t* other = pestle_f_select(f, stays, next, row);
  pv_t* by = pestle_f_select(f, stays, l, p);
  pv_t* over = pestle_f_select(f, stays, p, l);
  by = pestle_f_divide(f, by, over);
  // A pair of zeros leaves both rows as they are.
  pv_t* none = pestle_f_is_zero(f, over);
  by = pestle_f_select(f, none, pestle_matrix_fill(f, by, 0), by);
  by = pestle_f_multiply(f, by, pivot);
  pv_t* left = pestle_f_subtract(f, other, by);
  state[0] = after;
  state[1] = advanced(f, left);
  state[2] = pestle_matrix_set_row(f, state[2], pivot, k);
}

static pv_t* after_begin(pestle_formula_t* f, void* user, pv_t* const* state) {
  (void)user;
  pv_t* zero = pestle_matrix_i32(f, 0);
  return pestle_f_ge(f, state[0], zero);
}

// State: k, x [batch, n, m], x_k+1, x_k+2 [batch, m].
static void substitute(pestle_formula_t* f, void* user, pv_t** state) {
  const system_t* s = user;
  pv_t* k = state[0];
  pv_t* row = pestle_matrix_row(f, s->done, k);
  if (!row || !state[2]) return;
  pv_t* x = pestle_f_slice_axis(f, row, 1, 3, row->type->dims[1]);
  for (int64_t i = 1; i < 3; ++i) {
    pv_t* by = pestle_f_part(f, row, 1, i);
    by = pestle_matrix_per_batch(f, by, x);
    x = pestle_f_subtract(f, x, pestle_f_multiply(f, by, state[1 + i]));
  }
  pv_t* pivot = pestle_f_part(f, row, 1, 0);
  x = pestle_f_divide(f, x, pestle_matrix_per_batch(f, pivot, x));
  state[1] = pestle_matrix_set_row(f, state[1], x, k);
  state[3] = state[2];
  state[2] = x;
  pv_t* one = pestle_matrix_i32(f, 1);
  state[0] = pestle_f_subtract(f, k, one);
}

// dl, d, du [batch.., n] and b [batch.., n, m].
static bool takes_system(pestle_built_t* b) {
  const pestle_type_t *d = pestle_built_type(b, 1),
                      *r = pestle_built_type(b, 3);
  bool fits = d->rank >= 1 && r->rank == d->rank + 1 && r->dtype == d->dtype &&
              pestle_type_is_static(d) && pestle_type_is_static(r) &&
              pestle_type_equal(d, pestle_built_type(b, 0)) &&
              pestle_type_equal(d, pestle_built_type(b, 2));
  for (int32_t i = 0; fits && i < d->rank; ++i)
    fits = r->dims[i] == d->dims[i];
  if (!fits) {
    pestle_built_fail(
        b, PESTLE_STATUS_MALFORMED,
        "it takes three diagonals [.., n] and right sides [.., n, "
        "m]");
  } else if (!pestle_type_is_complex(d) && d->dtype != PESTLE_F32 &&
             d->dtype != PESTLE_F64) {
    pestle_built_fail(b, PESTLE_STATUS_UNSUPPORTED,
                      "only systems of f32 and f64 are supported, not of %s",
                      pestle_dtype_info(d->dtype)->name);
  }
  return !b->f.status;
}

static pv_t* solve(pestle_built_t* b) {
  pestle_formula_t* f = &b->f;
  const pestle_type_t* r = pestle_built_type(b, 3);
  int64_t n = r->dims[r->rank - 2], m = r->dims[r->rank - 1], batch = 1;
  if (!pestle_type_count(r)) return b->operands[3];
  if (pestle_type_is_complex(r)) {
    pv_t* x = NULL;
    pestle_own_linalg(f, "pestle.z.tridiagonal_solve", "", b->operands, 4, r,
                      "z", &x);
    return x;
  }
  for (int32_t i = 0; i < r->rank - 2; ++i)
    batch *= r->dims[i];
  pv_t* parts[4];
  for (size_t i = 0; i < 4; ++i) {
    parts[i] = pestle_f_reshape(f, b->operands[i], 3,
                                (int64_t[]){batch, n, i < 3 ? 1 : m});
  }
  system_t s = {.n = n};
  s.rows = pestle_f_concatenate(f, parts, 4, 2);
  pv_t* first = pestle_f_part(f, s.rows, 1, 0);
  pestle_matrix_loop_t loop = {before_last, eliminate, &s, .count = 3};
  loop.state[0] = pestle_matrix_i32(f, 0);
  loop.state[1] = advanced(f, first);
  loop.state[2] = s.rows;
  pestle_matrix_loop(f, &loop);
  pv_t* last = pestle_matrix_i32(f, n - 1);
  s.done = pestle_matrix_set_row(f, loop.state[2], loop.state[1], last);
  pestle_matrix_loop_t back = {after_begin, substitute, &s, .count = 4};
  back.state[0] = last;
  back.state[1] = parts[3];
  pestle_type_t row = pestle_type_make(r->dtype, 2, (int64_t[]){batch, m});
  back.state[2] = back.state[3] = pestle_f_number(f, &row, 0);
  pestle_matrix_loop(f, &back);
  return pestle_f_reshape(f, back.state[1], r->rank, r->dims);
}

void pestle_built_gtsv2(pestle_built_t* b) {
  if (takes_system(b)) b->results[0] = solve(b);
}

// The same of systems that may be singular: an own function of real numbers too.
void pestle_built_gtsv_perturbed(pestle_built_t* b) {
  if (!takes_system(b)) return;
  const pestle_type_t* r = pestle_built_type(b, 3);
  bool narrow = pestle_dtype_part(r->dtype) == PESTLE_F32;
  pestle_own_linalg(&b->f, "pestle.z.tridiagonal_solve", narrow ? "PS" : "P",
                    b->operands, 4, r, "z", b->results);
}

// The diagonals, which LAPACK spoils, and x; info.
void pestle_built_gtsv(pestle_built_t* b) {
  if (!takes_system(b)) return;
  for (size_t i = 0; i < 3; ++i)
    b->results[i] = b->operands[i];
  b->results[3] = solve(b);
  b->results[4] = pestle_f_number(&b->f, &b->types[4], 0);
}
