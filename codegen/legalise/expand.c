// SPDX-License-Identifier: Apache-2.0
// The table of expand.def, and the expansions that are not of vector_math*.c.
#include "codegen/legalise/expand.h"

#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_internal.h"

// --- Rows of any dtype ---

static bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}

// The integer as wide as a float of |dtype|.
static pestle_dtype_t int_as_wide(pestle_dtype_t dtype) {
  return dtype == PESTLE_F64 ? PESTLE_I64 : PESTLE_I32;
}

// 1, -1, or x itself: zeros keep their sign and NaN stays.
static vm_id_t sign(vm_t v, const vm_id_t a[3]) {
  vm_id_t x = a[0];
  bool fractions = is_float(v.dtype);
  vm_id_t zero = pestle_kir_const(v.k, v.dtype, v.lanes, 0, 0);
  vm_id_t one = pestle_kir_const(v.k, v.dtype, v.lanes, 1, 1);
  vm_id_t above = vm_op2(v, PESTLE_OP_GT, x, zero);
  vm_id_t r = fractions ? x : zero;
  if (!pestle_dtype_is(v.dtype, PESTLE_KIND_UNSIGNED)) {
    vm_id_t minus = pestle_kir_const(v.k, v.dtype, v.lanes, -1, -1);
    vm_id_t below = vm_op2(v, PESTLE_OP_LT, x, zero);
    r = vm_select(v, below, minus, r);
  }
  return vm_select(v, above, one, r);
}

// Of equals the bits decide, which differ for zeros alone; a sum of a NaN is
// one.
static vm_id_t extremum(vm_t v, vm_id_t a, vm_id_t b, bool most) {
  vm_id_t greater = vm_op2(v, most ? PESTLE_OP_GT : PESTLE_OP_LT, a, b);
  if (!is_float(v.dtype)) return vm_select(v, greater, a, b);
  vm_id_t less = vm_op2(v, most ? PESTLE_OP_LT : PESTLE_OP_GT, a, b);
  vm_id_t equal = vm_op2(v, PESTLE_OP_EQ, a, b);
  pestle_dtype_t as_int = int_as_wide(v.dtype);
  vm_id_t a_bits = vm_bits(v, a, as_int);
  vm_id_t b_bits = vm_bits(v, b, as_int);
  vm_id_t bits = vm_op2(v, most ? PESTLE_OP_AND : PESTLE_OP_OR, a_bits, b_bits);
  vm_id_t same = vm_bits(v, bits, v.dtype);
  vm_id_t sum = vm_add(v, a, b);
  vm_id_t r = vm_select(v, equal, same, sum);
  r = vm_select(v, less, b, r);
  return vm_select(v, greater, a, r);
}

static vm_id_t maximum(vm_t v, const vm_id_t a[3]) {
  return extremum(v, a[0], a[1], true);
}

static vm_id_t minimum(vm_t v, const vm_id_t a[3]) {
  return extremum(v, a[0], a[1], false);
}

static vm_id_t trunc_row(vm_t v, const vm_id_t a[3]) {
  vm_id_t x = a[0];
  vm_id_t up = vm_op1(v, PESTLE_OP_CEIL, x);
  vm_id_t down = vm_op1(v, PESTLE_OP_FLOOR, x);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  return vm_select(v, negative, up, down);
}

// One more than trunc where at least a half was cut off, which is exact.
static vm_id_t round_away(vm_t v, const vm_id_t a[3]) {
  vm_id_t x = a[0];
  vm_id_t t = vm_op1(v, PESTLE_OP_TRUNC, x);
  vm_id_t rest = vm_sub(v, x, t);
  rest = vm_abs(v, rest);
  vm_id_t half = vm_op2f(v, PESTLE_OP_GE, rest, 0.5);
  vm_id_t step = vm_const(v, 1.0);
  step = vm_copy_sign(v, step, x, int_as_wide(v.dtype));
  vm_id_t further = vm_add(v, t, step);
  return vm_select(v, half, further, t);
}

// Sums of neighbouring bits, pairs, nibbles, bytes.
static vm_id_t popcnt(vm_t v, const vm_id_t a[3]) {
  vm_id_t x = a[0];
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  const uint64_t masks[] = {
      UINT64_C(0x5555555555555555), UINT64_C(0x3333333333333333),
      UINT64_C(0x0f0f0f0f0f0f0f0f), UINT64_C(0x00ff00ff00ff00ff),
      UINT64_C(0x0000ffff0000ffff), UINT64_C(0x00000000ffffffff)};
  for (unsigned i = 0; (1u << i) < bits; ++i) {
    vm_id_t low = vm_op2i(v, PESTLE_OP_AND, x, (int64_t)masks[i]);
    vm_id_t high = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, 1 << i);
    high = vm_op2i(v, PESTLE_OP_AND, high, (int64_t)masks[i]);
    x = vm_add(v, low, high);
  }
  return x;
}

// The leading one is smeared to the right; what is left over is counted.
static vm_id_t clz(vm_t v, const vm_id_t a[3]) {
  vm_id_t x = a[0];
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  for (unsigned shift = 1; shift < bits; shift *= 2) {
    vm_id_t right = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, shift);
    x = vm_op2(v, PESTLE_OP_OR, x, right);
  }
  x = vm_op1(v, PESTLE_OP_NOT, x);
  return vm_op1(v, PESTLE_OP_POPCNT, x);
}

// By squaring, for every bit of the exponent; a negative one gives what rounds
// towards zero: 0 but for bases 1 and -1.
static vm_id_t int_power(vm_t v, const vm_id_t x[3]) {
  vm_id_t a = x[0], b = x[1];
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  vm_id_t one = vm_int(v, 1), base = a, power = one;
  for (unsigned i = 0; i < bits; ++i) {
    vm_id_t bit = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, b, i);
    bit = vm_op2i(v, PESTLE_OP_AND, bit, 1);
    vm_id_t taken = vm_op2i(v, PESTLE_OP_NE, bit, 0);
    vm_id_t product = vm_mul(v, power, base);
    power = vm_select(v, taken, product, power);
    if (i + 1 < bits) base = vm_mul(v, base, base);
  }
  if (!pestle_dtype_is(v.dtype, PESTLE_KIND_SIGNED)) return power;
  vm_id_t zero = vm_int(v, 0), minus_one = vm_int(v, -1);
  vm_id_t odd = vm_op2i(v, PESTLE_OP_AND, b, 1);
  odd = vm_op2i(v, PESTLE_OP_NE, odd, 0);
  vm_id_t alternate = vm_select(v, odd, minus_one, one);
  vm_id_t is_minus = vm_op2(v, PESTLE_OP_EQ, a, minus_one);
  vm_id_t is_one = vm_op2(v, PESTLE_OP_EQ, a, one);
  vm_id_t inverse = vm_select(v, is_minus, alternate, zero);
  inverse = vm_select(v, is_one, one, inverse);
  vm_id_t negative = vm_op2(v, PESTLE_OP_LT, b, zero);
  return vm_select(v, negative, inverse, power);
}

static vm_id_t clamp(vm_t v, const vm_id_t a[3]) {
  vm_id_t r = vm_op2(v, PESTLE_OP_MAXIMUM, a[1], a[0]);
  return vm_op2(v, PESTLE_OP_MINIMUM, r, a[2]);
}

static vm_id_t is_nan(vm_t v, const vm_id_t a[3]) {
  return vm_op2(v, PESTLE_OP_NE, a[0], a[0]);
}

static vm_id_t is_finite(vm_t v, const vm_id_t a[3]) {
  vm_id_t size = vm_abs(v, a[0]);
  return vm_op2f(v, PESTLE_OP_LT, size, (double)INFINITY);
}

// --- sin(x) / x, and 1 at zero ---

static vm_id_t over_x(vm_t v, vm_id_t sine, vm_id_t x) {
  vm_id_t quotient = vm_div(v, sine, x);
  vm_id_t is_zero = vm_op2f(v, PESTLE_OP_EQ, x, 0.0);
  return vm_select(v, is_zero, vm_const(v, 1.0), quotient);
}

static vm_id_t sinc(vm_t v, vm_id_t x) {
  return over_x(v, pestle_vm_sine(v, x), x);
}

static vm_id_t sinc_f64(vm_t v, vm_id_t x) {
  return over_x(v, pestle_vm_sine_f64(v, x), x);
}

// --- The table ---

typedef vm_id_t (*unary_t)(vm_t v, vm_id_t x);
typedef vm_id_t (*binary_t)(vm_t v, vm_id_t x, vm_id_t y);
typedef vm_id_t (*row_t)(vm_t v, const vm_id_t a[3]);

// One of the three is there, or none.
typedef struct expansion_t {
  unary_t one[2];  // f32, f64
  binary_t two[2];
  row_t row;
  bool wide;  // f64 on the way of f32
} expansion_t;

#define MATH(f, g)  \
  {                 \
    .one = { f, g } \
  }
#define MATH2(f, g) \
  {                 \
    .two = { f, g } \
  }
#define WIDE(f, g) {.one = {f, g}, .wide = true}
#define WIDE2(f, g) {.two = {f, g}, .wide = true}
#define ROW(f) {.row = f}
#define EACH(why) {.row = NULL}
#define NONE {.row = NULL}
#define PESTLE_EXPAND(NAME, FLOATS, INTEGERS) \
  [PESTLE_OP_##NAME] = {FLOATS, INTEGERS},
// An op without a row is one that a target must have; a test asks for it.
static const expansion_t table[PESTLE_SCALAR_COUNT][2] = {
#include "codegen/legalise/expand.def"
};

bool pestle_expand(pestle_rewrite_t* r, pestle_op_t op,
                   const pestle_kir_id_t a[3], pestle_kir_id_t* out_id) {
  pestle_dtype_t dtype = pestle_kir_type_of(r->to, a[0]);
  const expansion_t* e = &table[op][!is_float(dtype)];
  vm_t v = {r->to, dtype, pestle_kir_lanes_of(r->to, a[0]), false};
  if (e->row) {
    *out_id = e->row(v, a);
    return true;
  }
  bool is_f64 = dtype == PESTLE_F64;
  if ((!e->one[0] && !e->two[0]) || (!is_f64 && dtype != PESTLE_F32) ||
      ((is_f64 || e->wide) &&
       !pestle_rewrite_can_row(r, PESTLE_OP_FMA, PESTLE_F64))) {
    return false;
  }
  v.has = pestle_rewrite_can(r, PESTLE_KIR_SCALE, PESTLE_F32) ? VM_SCALES : 0;
  if ((r->caps->flags & PESTLE_TARGET_APPROX) &&
      r->numerics != PESTLE_NUMERICS_STRICT) {
    v.has |= VM_APPROX;
  }
  // Contraction or reassociation would undo what these are made of.
  uint8_t facts = r->to->facts;
  r->to->facts = 0;
  *out_id = e->one[0] ? e->one[is_f64](v, a[0]) : e->two[is_f64](v, a[0], a[1]);
  r->to->facts = facts;
  return true;
}
