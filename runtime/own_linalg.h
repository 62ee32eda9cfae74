// SPDX-License-Identifier: Apache-2.0
// Linear algebra of complex matrices, and what needs them, in double precision on
// the host: functions of Pestle's own behind custom calls (own_calls.c). Matrices
// lie row by row; nothing here knows tensors or batches. |work| has room for three
// matrices of the largest size that is given and two vectors, unless it says more.
#ifndef PESTLE_RUNTIME_OWN_LINALG_H_
#define PESTLE_RUNTIME_OWN_LINALG_H_

#include <stdbool.h>
#include <stdint.h>

typedef double _Complex pestle_z_t;

// re + i im, of any values: a complex number lies as its two parts (C11 6.2.5), and
// clang with glibc has no CMPLX.
static inline pestle_z_t pestle_z_of(double re, double im) {
  union {
    double parts[2];
    pestle_z_t z;
  } u = {{re, im}};
  return u.z;
}

// The conjugate and the size, without the library's care for overflow.
pestle_z_t pestle_z_conj(pestle_z_t z);
double pestle_z_abs(pestle_z_t z);

// --- own_factors.c ---

// In place: L below the diagonal and U; what row k was swapped with, and the order of
// the rows, as numbers. The rule for pivots is LAPACK's: the largest |re| + |im|.
void pestle_z_lu(pestle_z_t* a, int64_t m, int64_t n, pestle_z_t* pivots,
                 pestle_z_t* order);
// In place: L, or U, of a Hermitian matrix, of which that half is read; NaN where it is
// not positive definite; zeros in the other half.
void pestle_z_cholesky(pestle_z_t* a, int64_t n, bool lower);
// op(a) x = b in place of |b| [n, m], a lower or upper triangle.
void pestle_z_solve_triangle(const pestle_z_t* a, int64_t n, pestle_z_t* b,
                             int64_t m, bool lower, bool unit);
// One reflection of |x| (stride |step|): 1 - tau v v^H takes it to beta e_0; v, but for
// its first element, 1, takes the place of x behind its first, which becomes beta.
pestle_z_t pestle_z_reflect(pestle_z_t* x, int64_t n, int64_t step);
// In place: R, reflections below it, and their factors, as LAPACK's geqrf has them.
void pestle_z_qr(pestle_z_t* a, int64_t m, int64_t n, pestle_z_t* tau);
// The first |n| columns of the product of |k| reflections in |a|, in place.
void pestle_z_q(pestle_z_t* a, int64_t m, int64_t n, const pestle_z_t* tau,
                int64_t k, pestle_z_t* work);
// The same with columns exchanged so that the longest of what is left comes next, but
// for those whose |order| is not 0, which come first; |order|[i] is then from 1 on
// where column i was. LAPACK's geqp3.
void pestle_z_qr_pivoted(pestle_z_t* a, int64_t m, int64_t n, pestle_z_t* order,
                         pestle_z_t* tau);
// |c| [rows, columns] times Q of |k| reflections in |a| [.., stride], from the left or
// the right; |turned|: its conjugate transpose. LAPACK's unmqr.
void pestle_z_times_q(const pestle_z_t* a, int64_t stride,
                      const pestle_z_t* tau, int64_t k, pestle_z_t* c,
                      int64_t rows, int64_t columns, bool left, bool turned);
// In place: the triangle of r^H r + w w^H, r being an upper one of real numbers; |w| is
// what is left of it.
void pestle_z_cholesky_update(pestle_z_t* r, int64_t n, pestle_z_t* w);
// Three diagonals and |m| right sides, which become the solution. Pivots of less than
// |least| times the largest number in U are made that large.
void pestle_z_tridiagonal_solve(pestle_z_t* dl, pestle_z_t* d, pestle_z_t* du,
                                pestle_z_t* b, int64_t n, int64_t m,
                                double least, pestle_z_t* work);

// --- own_eigen.c ---

// Of a Hermitian matrix, of which one half is read: values ascending, vectors as
// columns in place. False when it does not converge.
bool pestle_z_eigh(pestle_z_t* a, int64_t n, bool lower, pestle_z_t* w,
                   pestle_z_t* work);
// a = u diag(s) vh, s descending; u [m, uc], vh [vr, n] with at least min(m, n)
// columns and rows, the others complete the bases. |work| has room for m n +
// min(m, n)^2 + the larger of u and vh.
void pestle_z_svd(const pestle_z_t* a, int64_t m, int64_t n, pestle_z_t* u,
                  int64_t uc, pestle_z_t* s, pestle_z_t* vh, int64_t vr,
                  pestle_z_t* work);
// In place: Hessenberg's form, reflections below it, n - 1 factors: LAPACK's gehrd.
void pestle_z_hessenberg(pestle_z_t* a, int64_t n, pestle_z_t* tau);
// a = z t z^H with t upper triangular in place of |a|. False when it does not converge.
bool pestle_z_schur(pestle_z_t* a, int64_t n, pestle_z_t* z, pestle_z_t* work);
// Right and left vectors of a triangle |t| = z^H a z, as columns of length 1 whose
// largest element is real.
void pestle_z_vectors(const pestle_z_t* t, const pestle_z_t* z, int64_t n,
                      pestle_z_t* right, pestle_z_t* left, pestle_z_t* work);
// In place: reflections of a Hermitian matrix, of which one half is read, to a
// tridiagonal one: its diagonal and the one beside it, n - 1 factors. LAPACK's hetrd.
void pestle_z_tridiagonal(pestle_z_t* a, int64_t n, bool lower, pestle_z_t* d,
                          pestle_z_t* e, pestle_z_t* tau, pestle_z_t* work);

// --- own_schur.c ---

// The same as pestle_z_schur() of a real matrix: |t| has blocks of two rows, with equal
// diagonals, where values |w| are a pair, the one above the axis first.
bool pestle_z_schur_real(pestle_z_t* a, int64_t n, pestle_z_t* z, pestle_z_t* w,
                         pestle_z_t* work);
// Makes triangles of such blocks: t and z are then those of pestle_z_schur().
void pestle_z_schur_split(pestle_z_t* t, int64_t n, pestle_z_t* z,
                          const pestle_z_t* w);

#endif  // PESTLE_RUNTIME_OWN_LINALG_H_
