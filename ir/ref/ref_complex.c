// SPDX-License-Identifier: Apache-2.0
// Scalar rows on complex numbers, expanded from complex.def; complex, real and
// imag.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/ref/ref_internal.h"

typedef long double _Complex z_t;

static z_t z_make(long double re, long double im) {
  union {
    long double part[2];
    z_t z;
  } u = {.part = {re, im}};
  return u.z;
}

static z_t z_mul(z_t a, z_t b) {
  long double p = creall(a), q = cimagl(a), r = creall(b), s = cimagl(b);
  return z_make(p * r - q * s, p * s + q * r);
}

// |x|, or the infinity that it is as a |part|.
static long double fitted(pestle_dtype_t part, long double x) {
  bool fits = part == PESTLE_F32 ? isfinite((float)x) : isfinite((double)x);
  return fits ? x : x * (long double)INFINITY;
}

// As kernels have it, whose products overflow before their sums do.
static z_t z_product(pestle_dtype_t part, z_t a, z_t b) {
  long double p = creall(a), q = cimagl(a), r = creall(b), s = cimagl(b);
  return z_make(fitted(part, p * r) - fitted(part, q * s),
                fitted(part, p * s) + fitted(part, q * r));
}

// +-1 in the place of infinities, else +-0.
static long double boxed(long double x) {
  return copysignl(isinf(x) ? 1 : 0, x);
}

static bool is_endless(z_t a) {
  return isinf(creall(a)) || isinf(cimagl(a));
}

static bool is_number(z_t a) {
  return isfinite(creall(a)) && isfinite(cimagl(a));
}

// Long double has the range: no scaling. Over zero, and where a part is infinite, as
// C has it.
static z_t z_div(z_t a, z_t b) {
  long double r = creall(b), s = cimagl(b), size = r * r + s * s;
  long double endless = copysignl((long double)INFINITY, r);
  if (r == 0 && s == 0) return z_make(endless * creall(a), endless * cimagl(a));
  if (is_endless(b) && is_number(a)) return 0;
  if (is_endless(a) && is_number(b)) {
    z_t top = z_mul(z_make(boxed(creall(a)), boxed(cimagl(a))), conjl(b));
    return z_make((long double)INFINITY * creall(top),
                  (long double)INFINITY * cimagl(top));
  }
  z_t top = z_mul(a, conjl(b));
  return z_make(creall(top) / size, cimagl(top) / size);
}

static z_t z_inverse(z_t a) {
  z_t out = is_endless(a) ? 0 : z_div(1, a);
  return z_make(copysignl(creall(out), creall(a)),
                copysignl(cimagl(out), -cimagl(a)));
}

static z_t z_polar(long double size, long double angle) {
  return z_make(size * cosl(angle), angle == 0 ? angle : size * sinl(angle));
}

// A real exponent multiplies each part of the logarithm; an angle out of the operands'
// range is beyond knowing, but its power's size is not.
static z_t z_pow(z_t a, z_t b) {
  long double real = creall(b);
  if (b == 0 || a == 1) return 1;
  if (a == 0) return real > 0 ? 0 : z_make((long double)NAN, (long double)NAN);
  z_t log = clogl(a);
  bool level = cimagl(b) == 0;
  return cexpl(level ? z_make(real * creall(log), real * cimagl(log))
                     : z_mul(b, log));
}

static z_t z_sign(z_t a) {
  return a == 0 ? a : z_make(creall(a) / cabsl(a), cimagl(a) / cabsl(a));
}

static z_t z_expm1(z_t a) {
  long double x = creall(a), y = cimagl(a), half = sinl(y / 2);
  if (isinf(x)) return cexpl(a) - 1;
  return z_make(expm1l(x) * cosl(y) - 2 * half * half, cimagl(cexpl(a)));
}

static z_t z_log1p(z_t a) {
  long double x = creall(a), y = cimagl(a);
  if (fabsl(x) > 0.5L || fabsl(y) > 0.5L) return clogl(a + 1);
  return z_make(log1pl(x * (2 + x) + y * y) / 2, atan2l(y, 1 + x));
}

// By the exponential that does not overflow.
static z_t z_logistic(z_t a) {
  bool left = creall(a) < 0;
  z_t e = cexpl(left ? a : -a);
  return z_div(left ? e : 1, e + 1);
}

// Below 0, 0 or above as |a| comes before |b|, is equal or comes later; 1 if a part
// that decides is NaN.
static int z_order(z_t a, z_t b) {
  long double x = creall(a), y = creall(b);
  if (x == y) {
    x = cimagl(a);
    y = cimagl(b);
  }
  return x < y ? -1 : x == y ? 0 : 1;
}

typedef union outcome_t {
  z_t z;
  long double x;
  bool flag;
} outcome_t;

typedef enum kind_t { PLANE, LINE, FLAG, NONE } kind_t;

static kind_t evaluate(pestle_op_t op, pestle_dtype_t part, z_t a, z_t b,
                       outcome_t* out) {
#define SET_PLANE(expr) (out->z = (expr), PLANE)
#define SET_LINE(expr) (out->x = (expr), LINE)
#define SET_FLAG(expr) (out->flag = (expr), FLAG)
  switch ((int)op) {
#define PESTLE_COMPLEX(NAME, RESULT, STEPS, REACH, expr) \
  case PESTLE_OP_##NAME:                                 \
    return SET_##RESULT(expr);
#include "ir/complex.def"
  }
  return NONE;
}

static z_t load(pestle_dtype_t part, const void* data, size_t at) {
  double parts[2];
  const char* from = (const char*)data + 2 * at * pestle_dtype_size(part);
  pestle_ref_load_f64(part, from, 2, parts);
  return z_make((long double)parts[0], (long double)parts[1]);
}

// Rounded once: from long double to f32 without f64 between.
static void store(pestle_dtype_t part, long double value, void* data,
                  size_t at) {
  if (part == PESTLE_F32) {
    ((float*)data)[at] = (float)value;
  } else {
    ((double*)data)[at] = (double)value;
  }
}

pestle_status_t pestle_ref_complex_scalar(const pestle_ref_call_t* call) {
  pestle_dtype_t part =
      pestle_dtype_part(pestle_ref_operand_type(call, 0)->dtype);
  size_t count = (size_t)pestle_type_count(pestle_ref_result_type(call, 0));
  bool binary = call->node->operand_count > 1;
  for (size_t i = 0; i < count; ++i) {
    z_t a = load(part, call->operands[0], i);
    z_t b = binary ? load(part, call->operands[1], i) : a;
    outcome_t out;
    switch (evaluate((pestle_op_t)call->node->op, part, a, b, &out)) {
      case PLANE:
        store(part, creall(out.z), call->results[0], 2 * i);
        store(part, cimagl(out.z), call->results[0], 2 * i + 1);
        break;
      case LINE:
        store(part, out.x, call->results[0], i);
        break;
      case FLAG:
        ((uint8_t*)call->results[0])[i] = out.flag;
        break;
      case NONE:
        return pestle_node_error(call->node, PESTLE_STATUS_INTERNAL,
                                 "has no row in complex.def");
    }
  }
  return NULL;
}

// --- Parts ---

static void copy_parts(const pestle_ref_call_t* call, size_t operand,
                       size_t first, size_t step, size_t to, size_t to_step) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  size_t size = pestle_dtype_size(pestle_dtype_part(type->dtype));
  size_t count = (size_t)pestle_type_count(type);
  const char* from = call->operands[operand];
  char* target = call->results[0];
  for (size_t i = 0; i < count; ++i) {
    memcpy(target + (to + i * to_step) * size, from + (first + i * step) * size,
           size);
  }
}

pestle_status_t pestle_ref_complex(const pestle_ref_call_t* call) {
  copy_parts(call, 0, 0, 1, 0, 2);
  copy_parts(call, 1, 0, 1, 1, 2);
  return NULL;
}

pestle_status_t pestle_ref_real(const pestle_ref_call_t* call) {
  bool parts = pestle_type_is_complex(pestle_ref_operand_type(call, 0));
  copy_parts(call, 0, 0, parts ? 2 : 1, 0, 1);
  return NULL;
}

pestle_status_t pestle_ref_imag(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  if (pestle_type_is_complex(pestle_ref_operand_type(call, 0))) {
    copy_parts(call, 0, 1, 2, 0, 1);
  } else if (pestle_type_count(type)) {
    // A format without a zero has its NaN there.
    uint64_t zero = pestle_float_encode(type->dtype, 0);
    pestle_ref_fill(call->results[0], pestle_dtype_size(type->dtype),
                    (size_t)pestle_type_count(type), &zero);
  }
  return NULL;
}
