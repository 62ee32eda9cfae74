// SPDX-License-Identifier: Apache-2.0
// fft as products with constant matrices. A signal lies as [parts, n, q]: its
// real and imaginary parts, what is transformed, everything else.
//
//   n = a b:  y[k1, j2] = sum over j1 of w_a^(j1 k1) x[j1 b + j2]     a product
//             z[j2, k1] = y[k1, j2] w_n^(j2 k1)                       elementwise
//             X[k1 + a k2] = the transform of b points of z over j2
//
// [parts, a, b, q] is [parts, n, q] seen with two axes, the product is one
// [2 a, parts a] x [parts a, b q], and [2, b, a, q] after the last step is the
// result in its natural order: nothing is reordered but with the factors.
//
// A length with a prime factor that is too long for a matrix is a convolution
// with the chirp w^(j j / 2) (Bluestein), done by transforms of a power of two.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/composite.h"

// The longest transform that is one product, and the longest prime factor.
enum { DIRECT = 48, LARGEST_PRIME = 128, LARGEST_RADIX = 64 };

typedef struct fft_t {
  pestle_formula_t* f;
  pestle_dtype_t dtype;  // of the parts
  pestle_arena_t arena;  // for tables on their way into constants
} fft_t;

static const long double pi = 3.14159265358979323846264338327950288L;

static double* table(fft_t* fft, size_t count) {
  double* out = PESTLE_ARENA_ARRAY(&fft->arena, double, count + 1);
  if (!out && !fft->f->status) fft->f->status = PESTLE_OOM();
  return out;
}

// w = exp(sign 2 pi i k / n), k first brought into [0, n).
static void root(int64_t k, int64_t n, int sign, double* re, double* im) {
  long double angle = 2 * pi * (long double)(k % n) / (long double)n;
  *re = (double)cosl(angle);
  *im = sign * (double)sinl(angle);
}

static int64_t largest_prime(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p)
      largest = p;
  }
  return n > 1 ? n : largest;
}

// The factor of the first product: that which leaves factors of equal size.
static int64_t radix(int64_t n) {
  double stages = ceil(log((double)n) / log((double)DIRECT) - 1e-9);
  double wanted = pow((double)n, 1 / fmax(stages, 1));
  int64_t best = n;
  double off = INFINITY;
  for (int64_t a = 2; a <= n && a <= LARGEST_PRIME; ++a) {
    if (n % a) continue;
    // A factor that is too large costs more than one that is too small.
    double away = fabs(log((double)a / wanted));
    if (a > LARGEST_RADIX) away += 8;
    if (away < off) {
      off = away;
      best = a;
    }
  }
  return best;
}

// --- Parts ---

static int64_t extent(const pv_t* x, int32_t axis) {
  return x ? x->type->dims[axis] : 1;
}

typedef struct parts_t {
  pv_t *re, *im;  // [n, q]
} parts_t;

static parts_t parts_of(fft_t* fft, pv_t* x) {
  parts_t out;
  out.re = pestle_f_part(fft->f, x, 0, 0);
  out.im = extent(x, 0) == 2 ? pestle_f_part(fft->f, x, 0, 1) : NULL;
  return out;
}

// x[.., q] (re + i im), which have the first axes of x, |rank| of them.
static parts_t turn(fft_t* fft, parts_t x, int32_t rank, const double* re,
                    const double* im) {
  static const int64_t axes[] = {0, 1};
  pestle_formula_t* f = fft->f;
  parts_t out = {NULL, NULL};
  if (!x.re) return out;
  const pestle_type_t* to = x.re->type;
  pestle_type_t type = pestle_type_make(fft->dtype, rank, to->dims);
  pestle_i64s_t at = {axes, (size_t)rank};
  pv_t* c = pestle_f_numbers(f, &type, re);
  c = pestle_f_broadcast(f, c, to->rank, to->dims, at);
  pv_t* d = pestle_f_numbers(f, &type, im);
  d = pestle_f_broadcast(f, d, to->rank, to->dims, at);
  out.re = pestle_f_multiply(f, x.re, c);
  out.im = pestle_f_multiply(f, x.re, d);
  if (!x.im) return out;
  pv_t* less = pestle_f_multiply(f, x.im, d);
  pv_t* more = pestle_f_multiply(f, x.im, c);
  out.re = pestle_f_subtract(f, out.re, less);
  out.im = pestle_f_add(f, out.im, more);
  return out;
}

static pv_t* stack(fft_t* fft, parts_t x) {
  return pestle_f_stack(fft->f, (pv_t*[]){x.re, x.im}, 2);
}

// --- One product ---

// [2, a, parts, a] of scale w_a^(j k), as it acts on the parts.
static pv_t* matrix(fft_t* fft, int64_t a, int64_t parts, int sign,
                    double scale) {
  double* m = table(fft, (size_t)(2 * a * parts * a));
  if (!m) return NULL;
  for (int64_t k = 0; k < a; ++k) {
    for (int64_t j = 0; j < a; ++j) {
      double re, im;
      root(j * k, a, sign, &re, &im);
      re *= scale;
      im *= scale;
      double* from_re = m + k * parts * a + j;
      from_re[0] = re;
      from_re[a * parts * a] = im;
      if (parts == 1) continue;
      from_re[a] = -im;
      from_re[a * parts * a + a] = re;
    }
  }
  pestle_type_t type =
      pestle_type_make(fft->dtype, 4, (int64_t[]){2, a, parts, a});
  return pestle_f_numbers(fft->f, &type, m);
}

// Over axis 1 of x [parts, a, rest..].
static pv_t* product(fft_t* fft, pv_t* x, int sign, double scale) {
  if (!x) return NULL;
  int64_t a = extent(x, 1);
  static const int64_t last[] = {2, 3}, first[] = {0, 1};
  pv_t* m = matrix(fft, a, extent(x, 0), sign, scale);
  pestle_type_t type = *x->type;
  type.dims[0] = 2;
  pestle_attr_t attrs[] = {{PESTLE_ATTR_lhs_contracting_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {last, 2}},
                           {PESTLE_ATTR_rhs_contracting_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {first, 2}}};
  return pestle_f_make(fft->f, PESTLE_OP_DOT_GENERAL, (pv_t*[]){m, x}, 2, attrs,
                       2, &type);
}

// --- Transforms ---

static pv_t* transform(fft_t* fft, pv_t* x, int sign, double scale);

// z[j2, k1] from y[k1, j2]: [2, a, b, q] -> [2, b, a q]
static pv_t* twiddle(fft_t* fft, pv_t* y, int sign) {
  int64_t a = extent(y, 1), b = extent(y, 2), q = extent(y, 3);
  double* re = table(fft, (size_t)(a * b));
  double* im = table(fft, (size_t)(a * b));
  if (!re || !im) return NULL;
  for (int64_t k = 0; k < a; ++k) {
    for (int64_t j = 0; j < b; ++j)
      root(j * k, a * b, sign, &re[k * b + j], &im[k * b + j]);
  }
  static const int64_t swap[] = {0, 2, 1, 3};
  pv_t* z = stack(fft, turn(fft, parts_of(fft, y), 2, re, im));
  z = pestle_f_transpose(fft->f, z, swap);
  return pestle_f_reshape(fft->f, z, 3, (int64_t[]){2, b, a * q});
}

static pv_t* factored(fft_t* fft, pv_t* x, int64_t a, int sign, double scale) {
  int64_t parts = extent(x, 0), n = extent(x, 1), q = extent(x, 2);
  pv_t* y = pestle_f_reshape(fft->f, x, 4, (int64_t[]){parts, a, n / a, q});
  y = product(fft, y, sign, scale);
  y = transform(fft, twiddle(fft, y, sign), sign, 1);
  return pestle_f_reshape(fft->f, y, 3, (int64_t[]){2, n, q});
}

// In place, m a power of two; tables only.
static void table_fft(double* re, double* im, int64_t m, int sign) {
  for (int64_t i = 1, j = 0; i < m; ++i) {
    int64_t bit = m >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    double r = re[i], t = im[i];
    re[i] = re[j];
    im[i] = im[j];
    re[j] = r;
    im[j] = t;
  }
  for (int64_t len = 2; len <= m; len *= 2) {
    for (int64_t k = 0; k < len / 2; ++k) {
      double c, d;
      root(k, len, sign, &c, &d);
      for (int64_t i = k; i < m; i += len) {
        int64_t o = i + len / 2;
        double r = re[o] * c - im[o] * d, t = re[o] * d + im[o] * c;
        re[o] = re[i] - r;
        im[o] = im[i] - t;
        re[i] += r;
        im[i] += t;
      }
    }
  }
}

// X[k] = w[k] sum over j of (x[j] w[j]) conj(w[k - j]), w[j] = exp(sign pi i j j
// / n), the sum by transforms of m >= 2 n - 1 points.
static pv_t* bluestein(fft_t* fft, pv_t* x, int sign, double scale) {
  int64_t n = extent(x, 1), m = 1;
  while (m < 2 * n - 1)
    m *= 2;
  double *re = table(fft, (size_t)n), *im = table(fft, (size_t)n);
  double *wide_re = table(fft, (size_t)m), *wide_im = table(fft, (size_t)m);
  if (!re || !im || !wide_re || !wide_im) return NULL;
  memset(wide_re, 0, sizeof(double) * (size_t)m);
  memset(wide_im, 0, sizeof(double) * (size_t)m);
  for (int64_t j = 0; j < n; ++j) {
    root(j * j % (2 * n), 2 * n, sign, &re[j], &im[j]);
    wide_re[j] = wide_re[(m - j) % m] = re[j] * scale / (double)m;
    wide_im[j] = wide_im[(m - j) % m] = -im[j] * scale / (double)m;
  }
  table_fft(wide_re, wide_im, m, -1);
  pv_t* y = stack(fft, turn(fft, parts_of(fft, x), 1, re, im));
  y = transform(fft, pestle_f_pad_end(fft->f, y, 1, m - n), -1, 1);
  y = stack(fft, turn(fft, parts_of(fft, y), 1, wide_re, wide_im));
  y = pestle_f_slice_axis(fft->f, transform(fft, y, 1, 1), 1, 0, n);
  return stack(fft, turn(fft, parts_of(fft, y), 1, re, im));
}

// [2, n, q] from x [parts, n, q].
static pv_t* transform(fft_t* fft, pv_t* x, int sign, double scale) {
  if (!x) return NULL;
  int64_t n = extent(x, 1);
  if (n <= DIRECT) return product(fft, x, sign, scale);
  int64_t a = radix(n);
  if (a < n) return factored(fft, x, a, sign, scale);
  return largest_prime(n) <= LARGEST_PRIME ? product(fft, x, sign, scale)
                                           : bluestein(fft, x, sign, scale);
}

// Transforms axis |axis| of x [parts, dims..]; the others stay in order.
static pv_t* along(fft_t* fft, pv_t* x, int32_t axis, int sign, double scale) {
  if (!x) return NULL;
  pestle_type_t type = *x->type;
  int64_t order[PESTLE_MAX_RANK] = {0, axis}, back[PESTLE_MAX_RANK];
  int64_t dims[PESTLE_MAX_RANK], q = 1;
  int32_t next = 2;
  for (int32_t i = 1; i < type.rank; ++i) {
    if (i == axis) continue;
    order[next++] = i;
    q *= type.dims[i];
  }
  for (int32_t i = 0; i < type.rank; ++i) {
    back[order[i]] = i;
    dims[i] = i ? type.dims[order[i]] : 2;
  }
  x = pestle_f_transpose(fft->f, x, order);
  x = pestle_f_reshape(fft->f, x, 3,
                       (int64_t[]){type.dims[0], type.dims[axis], q});
  x = transform(fft, x, sign, scale);
  x = pestle_f_reshape(fft->f, x, type.rank, dims);
  return pestle_f_transpose(fft->f, x, back);
}

// --- The four kinds ---

// The whole spectrum, of |n|, of a real signal, whose first n / 2 + 1 are |x|.
static parts_t mirrored(fft_t* fft, parts_t x, int32_t axis, int64_t n) {
  pestle_formula_t* f = fft->f;
  int64_t end = (n + 1) / 2;
  if (end <= 1 || !x.re) return x;
  pv_t* re = pestle_f_slice_axis(f, x.re, axis, 1, end);
  re = pestle_f_reverse(f, re, PESTLE_I64S(axis));
  pv_t* im = pestle_f_slice_axis(f, x.im, axis, 1, end);
  im = pestle_f_negate(f, pestle_f_reverse(f, im, PESTLE_I64S(axis)));
  x.re = pestle_f_concatenate(f, (pv_t*[]){x.re, re}, 2, axis);
  x.im = pestle_f_concatenate(f, (pv_t*[]){x.im, im}, 2, axis);
  return x;
}

static pv_t* every_axis(fft_t* fft, pv_t* x, pestle_i64s_t lengths,
                        size_t first, size_t end, int sign) {
  // The last axis first: it may have one part yet.
  for (size_t i = end; i-- > first;) {
    int32_t axis = x ? x->type->rank - (int32_t)lengths.count + (int32_t)i : 0;
    x = along(fft, x, axis, sign, sign > 0 ? 1 / (double)lengths.data[i] : 1);
  }
  return x;
}

static pv_t* forward(fft_t* fft, pv_t* x, bool real, pestle_i64s_t lengths,
                     int sign) {
  pestle_formula_t* f = fft->f;
  size_t last = lengths.count - 1;
  int32_t axis = x->type->rank - 1;
  parts_t in = {x, NULL};
  if (!real) {
    in.re = pestle_f_unary(f, PESTLE_OP_REAL, x);
    in.im = pestle_f_unary(f, PESTLE_OP_IMAG, x);
  }
  pv_t* y = pestle_f_stack(f, (pv_t*[]){in.re, in.im}, real ? 1 : 2);
  y = every_axis(fft, y, lengths, last, last + 1, sign);
  if (real) {
    y = pestle_f_slice_axis(f, y, axis + 1, 0, lengths.data[last] / 2 + 1);
  }
  y = every_axis(fft, y, lengths, 0, last, sign);
  parts_t out = parts_of(fft, y);
  return pestle_f_binary(f, PESTLE_OP_COMPLEX, out.re, out.im);
}

// Its result is real.
static pv_t* backward(fft_t* fft, pv_t* x, pestle_i64s_t lengths) {
  pestle_formula_t* f = fft->f;
  size_t last = lengths.count - 1;
  int32_t axis = x->type->rank - 1;
  parts_t in;
  in.re = pestle_f_unary(f, PESTLE_OP_REAL, x);
  in.im = pestle_f_unary(f, PESTLE_OP_IMAG, x);
  pv_t* y = every_axis(fft, stack(fft, in), lengths, 0, last, 1);
  in = mirrored(fft, parts_of(fft, y), axis, lengths.data[last]);
  y = every_axis(fft, stack(fft, in), lengths, last, last + 1, 1);
  return pestle_f_part(f, y, 0, 0);
}

// The result without any element, or of elements that nothing is added to.
static pv_t* empty(pestle_formula_t* f) {
  const pestle_type_t* type = f->of->node->results[0].type;
  pestle_type_t part = *type;
  part.dtype = pestle_dtype_part(type->dtype);
  pv_t* zero = pestle_f_number(f, &part, 0);
  return pestle_type_is_complex(type)
             ? pestle_f_binary(f, PESTLE_OP_COMPLEX, zero, zero)
             : zero;
}

pv_t* pestle_decompose_fft(pestle_formula_t* f) {
  pv_t* x = pestle_node_operand(f->of->node, 0);
  pestle_i64s_t lengths = PESTLE_NODE_I64S(f->of->node, fft_length);
  const char* kind = PESTLE_NODE_STR(f->of->node, fft_type);
  if (!pestle_type_count(x->type) ||
      !pestle_type_count(f->of->node->results[0].type)) {
    return empty(f);
  }
  fft_t fft = {.f = f, .dtype = pestle_dtype_part(x->type->dtype)};
  pestle_arena_init(f->builder.module->arena.allocator, &fft.arena);
  pv_t* out = !strcmp(kind, "IRFFT")
                  ? backward(&fft, x, lengths)
                  : forward(&fft, x, !strcmp(kind, "RFFT"), lengths,
                            !strcmp(kind, "IFFT") ? 1 : -1);
  pestle_arena_deinit(&fft.arena);
  return out;
}
