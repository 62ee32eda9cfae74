// SPDX-License-Identifier: Apache-2.0
// What the decompositions of qr, eigh and svd share. Matrices lie as [batch,
// rows, columns], vectors as [batch, n]; steps as in composite.h.
#ifndef PESTLE_IR_COMPOSITE_MATRIX_H_
#define PESTLE_IR_COMPOSITE_MATRIX_H_

#include "ir/composite.h"

// The most values that a loop carries.
enum { PESTLE_MATRIX_STATE = 6 };

// A while over |count| values from |state| on, which holds them at the end. Both
// functions see the values of a trip; |step| leaves the next ones in their
// place.
typedef struct pestle_matrix_loop_t {
  pv_t* (*goes_on)(pestle_formula_t* f, void* user, pv_t* const* state);
  void (*step)(pestle_formula_t* f, void* user, pv_t** state);
  void* user;
  pv_t* state[PESTLE_MATRIX_STATE];
  size_t count;
} pestle_matrix_loop_t;
void pestle_matrix_loop(pestle_formula_t* f, pestle_matrix_loop_t* loop);

// |a| repeated along the axes of |like| that |axes| does not name: axis i of |a|
// is axis axes[i].
pv_t* pestle_matrix_over(pestle_formula_t* f, pv_t* a, const pv_t* like,
                         const int64_t* axes);
// The same for matrices: a vector's elements one a row, or along each row; one
// number a matrix (also in the shape of vectors).
pv_t* pestle_matrix_down(pestle_formula_t* f, pv_t* a, const pv_t* like);
pv_t* pestle_matrix_across(pestle_formula_t* f, pv_t* a, const pv_t* like);
pv_t* pestle_matrix_per_batch(pestle_formula_t* f, pv_t* a, const pv_t* like);
// i32 numbers along |axis| of the shape of |like|.
pv_t* pestle_matrix_iota(pestle_formula_t* f, const pv_t* like, int64_t axis);
// A number of rank 0.
pv_t* pestle_matrix_i32(pestle_formula_t* f, int64_t value);
// |value| in the shape and type of |like|.
pv_t* pestle_matrix_fill(pestle_formula_t* f, const pv_t* like, double value);
pv_t* pestle_matrix_reduce(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                           int64_t axis, double initial);
pv_t* pestle_matrix_sum(pestle_formula_t* f, pv_t* a, int64_t axis);
// Matrices of |rows| x |columns| with ones on the diagonal, as many as |like|
// has, of its dtype.
pv_t* pestle_matrix_unit(pestle_formula_t* f, const pv_t* like, int64_t rows,
                         int64_t columns);
pv_t* pestle_matrix_transpose(pestle_formula_t* f, pv_t* a);
// Row |k|, an i32 of rank 0, as a vector, and |a| with another one.
pv_t* pestle_matrix_row(pestle_formula_t* f, pv_t* a, pv_t* k);
pv_t* pestle_matrix_set_row(pestle_formula_t* f, pv_t* a, pv_t* row, pv_t* k);
// Rows of |a| in the order |order| [batch, rows].
pv_t* pestle_matrix_in_order(pestle_formula_t* f, pv_t* a, pv_t* order);
// The power of two at or below each x >= 0, the least normal number at least;
// not finite where x is not.
pv_t* pestle_matrix_power(pestle_formula_t* f, pv_t* x);
// The largest |element| of each matrix, [batch].
pv_t* pestle_matrix_largest(pestle_formula_t* f, pv_t* a);
// |a|, NaN for the matrices, or vectors, that are not |good| [batch].
pv_t* pestle_matrix_checked(pestle_formula_t* f, pv_t* a, pv_t* good);
// [batch.., m, n] as [batch, m, n], and |a| [batch, rest..] with the batch axes
// of operand 0.
pv_t* pestle_matrix_of_operand(pestle_formula_t* f);
pv_t* pestle_matrix_result(pestle_formula_t* f, pv_t* a, size_t index);
// Result |index| of the op where it has no element, or is a unit matrix since
// the operand has none.
pv_t* pestle_matrix_of_nothing(pestle_formula_t* f, size_t index);

// The columns of a, which lie as rows [batch, n, m], reflected one after the other:
// rows of R' up to the diagonal, behind it what the reflections are, and the factor
// of each, [batch, the smaller of m and n], as LAPACK's geqrf has them.
pv_t* pestle_matrix_reflections(pestle_formula_t* f, pv_t* a, pv_t** out_tau);
// Their product as |rows| columns of Q, which lie as rows [batch, rows, m].
pv_t* pestle_matrix_of_reflections(pestle_formula_t* f, pv_t* a, pv_t* tau,
                                   int64_t rows);
// Q's columns as rows [batch, k, m] for the columns of a, which lie as rows
// [batch, n, m]; k is m when |full|, else the smaller of the two. |out_r|, unless
// it is NULL: R [batch, k, n], its diagonal not negative.
pv_t* pestle_matrix_qr(pestle_formula_t* f, pv_t* a, bool full, pv_t** out_r);

#endif  // PESTLE_IR_COMPOSITE_MATRIX_H_
