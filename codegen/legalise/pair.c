// SPDX-License-Identifier: Apache-2.0
// Rows of scalar.def on pairs of words.
#include "codegen/legalise/pair.h"

typedef pestle_pair_t pair_t;

static bool is_signed(pestle_dtype_t dtype) {
  return dtype == PESTLE_I64;
}

pair_t pestle_pair_const(vm_t v, int64_t value) {
  pair_t p;
  p.low = vm_int(v, (int64_t)(uint32_t)value);
  p.high = vm_int(v, (int64_t)(uint32_t)((uint64_t)value >> 32));
  return p;
}

pair_t pestle_pair_select(vm_t v, vm_id_t which, pair_t a, pair_t b) {
  pair_t p;
  p.low = vm_select(v, which, a.low, b.low);
  p.high = vm_select(v, which, a.high, b.high);
  return p;
}

// --- Sums and products ---

// What was carried out of |sum| of |term| and another number.
static vm_id_t carry(vm_t v, vm_id_t sum, vm_id_t term) {
  vm_id_t is_less = vm_op2(v, PESTLE_OP_LT, sum, term);
  return vm_cast(v, is_less, PESTLE_U32);
}

static pair_t add(vm_t v, pair_t a, pair_t b) {
  pair_t p;
  p.low = vm_add(v, a.low, b.low);
  p.high = vm_add(v, a.high, b.high);
  vm_id_t more = carry(v, p.low, a.low);
  p.high = vm_add(v, p.high, more);
  return p;
}

static pair_t subtract(vm_t v, pair_t a, pair_t b) {
  pair_t p;
  vm_id_t borrow = carry(v, a.low, b.low);
  p.low = vm_sub(v, a.low, b.low);
  p.high = vm_sub(v, a.high, b.high);
  p.high = vm_sub(v, p.high, borrow);
  return p;
}

pair_t pestle_pair_negate(vm_t v, pair_t a) {
  return subtract(v, pestle_pair_const(v, 0), a);
}

static vm_id_t upper_half(vm_t v, vm_id_t x) {
  return vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, 16);
}
static vm_id_t lower_half(vm_t v, vm_id_t x) {
  return vm_op2i(v, PESTLE_OP_AND, x, 0xffff);
}

// The upper word of a * b, of products of halves. No sum here leaves a word.
static vm_id_t upper_product(vm_t v, vm_id_t a, vm_id_t b) {
  vm_id_t a_low = lower_half(v, a), a_high = upper_half(v, a);
  vm_id_t b_low = lower_half(v, b), b_high = upper_half(v, b);
  vm_id_t low = vm_mul(v, a_low, b_low);
  vm_id_t one = vm_mul(v, a_low, b_high), two = vm_mul(v, a_high, b_low);
  vm_id_t high = vm_mul(v, a_high, b_high);
  vm_id_t middle = upper_half(v, low);
  middle = vm_add(v, middle, lower_half(v, one));
  middle = vm_add(v, middle, lower_half(v, two));
  high = vm_add(v, high, upper_half(v, one));
  high = vm_add(v, high, upper_half(v, two));
  return vm_add(v, high, upper_half(v, middle));
}

static pair_t multiply(vm_t v, pair_t a, pair_t b) {
  pair_t p;
  p.low = vm_mul(v, a.low, b.low);
  p.high = upper_product(v, a.low, b.low);
  vm_id_t one = vm_mul(v, a.low, b.high), two = vm_mul(v, a.high, b.low);
  p.high = vm_add(v, p.high, one);
  p.high = vm_add(v, p.high, two);
  return p;
}

// --- Shifts ---

// How far: anything from 64 on does the same.
static vm_id_t distance(vm_t v, pair_t by) {
  vm_id_t is_far = vm_op2i(v, PESTLE_OP_NE, by.high, 0);
  vm_id_t far = vm_int(v, 64);
  return vm_select(v, is_far, far, by.low);
}

// n - 32 and 32 - n, of which one is out of range as a shift, which makes 0.
static vm_id_t beyond(vm_t v, vm_id_t n) {
  return vm_op2i(v, PESTLE_OP_SUBTRACT, n, 32);
}
static vm_id_t short_of(vm_t v, vm_id_t n) {
  vm_id_t word = vm_int(v, 32);
  return vm_sub(v, word, n);
}

pair_t pestle_pair_shift_left(vm_t v, pair_t a, vm_id_t n) {
  pair_t p;
  vm_id_t back = short_of(v, n), further = beyond(v, n);
  p.low = vm_op2(v, PESTLE_OP_SHIFT_LEFT, a.low, n);
  p.high = vm_op2(v, PESTLE_OP_SHIFT_LEFT, a.high, n);
  vm_id_t some = vm_op2(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, a.low, back);
  vm_id_t all = vm_op2(v, PESTLE_OP_SHIFT_LEFT, a.low, further);
  p.high = vm_op2(v, PESTLE_OP_OR, p.high, some);
  p.high = vm_op2(v, PESTLE_OP_OR, p.high, all);
  return p;
}

static pair_t shift_right(vm_t v, pair_t a, vm_id_t n) {
  pair_t p;
  vm_id_t back = short_of(v, n), further = beyond(v, n);
  p.high = vm_op2(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, a.high, n);
  p.low = vm_op2(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, a.low, n);
  vm_id_t some = vm_op2(v, PESTLE_OP_SHIFT_LEFT, a.high, back);
  vm_id_t all = vm_op2(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, a.high, further);
  p.low = vm_op2(v, PESTLE_OP_OR, p.low, some);
  p.low = vm_op2(v, PESTLE_OP_OR, p.low, all);
  return p;
}

// The logical one, with the sign in the bits that came in: those that a shift of
// nothing but ones leaves.
static pair_t shift_right_signed(vm_t v, pair_t a, vm_id_t n) {
  pair_t p = shift_right(v, a, n);
  pair_t kept = shift_right(v, pestle_pair_const(v, -1), n);
  vm_id_t sign = pestle_pair_sign(v, a.high);
  vm_id_t low = vm_op1(v, PESTLE_OP_NOT, kept.low);
  vm_id_t high = vm_op1(v, PESTLE_OP_NOT, kept.high);
  low = vm_op2(v, PESTLE_OP_AND, low, sign);
  high = vm_op2(v, PESTLE_OP_AND, high, sign);
  p.low = vm_op2(v, PESTLE_OP_OR, p.low, low);
  p.high = vm_op2(v, PESTLE_OP_OR, p.high, high);
  return p;
}

// --- Comparisons ---

static vm_id_t equal(vm_t v, pair_t a, pair_t b) {
  vm_id_t low = vm_op2(v, PESTLE_OP_EQ, a.low, b.low);
  vm_id_t high = vm_op2(v, PESTLE_OP_EQ, a.high, b.high);
  return vm_op2(v, PESTLE_OP_AND, low, high);
}

static vm_id_t less(vm_t v, pestle_dtype_t dtype, pair_t a, pair_t b) {
  vm_id_t high_a = a.high, high_b = b.high;
  if (is_signed(dtype)) {
    high_a = vm_bits(v, high_a, PESTLE_I32);
    high_b = vm_bits(v, high_b, PESTLE_I32);
  }
  vm_id_t high = vm_op2(v, PESTLE_OP_LT, high_a, high_b);
  vm_id_t same = vm_op2(v, PESTLE_OP_EQ, a.high, b.high);
  vm_id_t low = vm_op2(v, PESTLE_OP_LT, a.low, b.low);
  low = vm_op2(v, PESTLE_OP_AND, same, low);
  return vm_op2(v, PESTLE_OP_OR, high, low);
}

pair_t pestle_pair_size(vm_t v, pair_t a, vm_id_t* out_negative) {
  *out_negative = pestle_pair_is_negative(v, a.high);
  return pestle_pair_select(v, *out_negative, pestle_pair_negate(v, a), a);
}

// --- Quotients ---

typedef struct tiles_t {
  uint32_t low, high;
} tiles_t;

static tiles_t keep(vm_t v, pair_t a) {
  tiles_t t;
  t.low = vm_tile(v, "low", a.low);
  t.high = vm_tile(v, "high", a.high);
  return t;
}
static pair_t get(vm_t v, tiles_t t) {
  pair_t p;
  p.low = vm_tile_get(v, t.low);
  p.high = vm_tile_get(v, t.high);
  return p;
}
static void set(vm_t v, tiles_t t, pair_t a) {
  vm_tile_set(v, t.low, a.low);
  vm_tile_set(v, t.high, a.high);
}

// By hand, a bit a step: bits leave |a| at the top for what is left over, and those
// of the quotient come in at the bottom. Of a division by 0 all of them are set, and
// |a| is left over.
static void divide(vm_t v, pair_t a, pair_t b, pair_t* out_quotient,
                   pair_t* out_rest) {
  pestle_kir_builder_t* k = v.k;
  tiles_t quotient = keep(v, a);
  tiles_t rest = keep(v, pestle_pair_const(v, 0));
  pestle_kir_id_t first = pestle_kir_index(k, 0);
  pestle_kir_id_t bits = pestle_kir_index(k, 64);
  pestle_kir_for(k, "bit", first, bits, 1, PESTLE_KIR_SERIAL);
  pair_t q = get(v, quotient), r = get(v, rest);
  vm_id_t one = vm_int(v, 1);
  vm_id_t out = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, r.high, 31);
  vm_id_t top = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, q.high, 31);
  r = pestle_pair_shift_left(v, r, one);
  r.low = vm_op2(v, PESTLE_OP_OR, r.low, top);
  vm_id_t fits = less(v, PESTLE_U64, r, b);
  fits = vm_op1(v, PESTLE_OP_NOT, fits);
  vm_id_t is_out = vm_op2i(v, PESTLE_OP_NE, out, 0);
  fits = vm_op2(v, PESTLE_OP_OR, fits, is_out);
  r = pestle_pair_select(v, fits, subtract(v, r, b), r);
  q = pestle_pair_shift_left(v, q, one);
  vm_id_t bit = vm_cast(v, fits, PESTLE_U32);
  q.low = vm_op2(v, PESTLE_OP_OR, q.low, bit);
  set(v, quotient, q);
  set(v, rest, r);
  pestle_kir_end(k);
  *out_quotient = get(v, quotient);
  *out_rest = get(v, rest);
}

static pair_t quotient_or_rest(vm_t v, pestle_dtype_t dtype, pair_t a, pair_t b,
                               bool is_rest) {
  pair_t quotient, rest;
  if (!is_signed(dtype)) {
    divide(v, a, b, &quotient, &rest);
    return is_rest ? rest : quotient;
  }
  vm_id_t minus_a, minus_b;
  pair_t size_a = pestle_pair_size(v, a, &minus_a),
         size_b = pestle_pair_size(v, b, &minus_b);
  divide(v, size_a, size_b, &quotient, &rest);
  if (is_rest)
    return pestle_pair_select(v, minus_a, pestle_pair_negate(v, rest), rest);
  vm_id_t minus = vm_op2(v, PESTLE_OP_NE, minus_a, minus_b);
  quotient =
      pestle_pair_select(v, minus, pestle_pair_negate(v, quotient), quotient);
  pair_t zero = pestle_pair_const(v, 0), none = pestle_pair_const(v, -1);
  vm_id_t is_zero = equal(v, b, zero);
  return pestle_pair_select(v, is_zero, none, quotient);
}

// --- Bits ---

static pair_t each(vm_t v, pestle_op_t op, pair_t a, pair_t b) {
  pair_t p;
  p.low = vm_op2(v, op, a.low, b.low);
  p.high = vm_op2(v, op, a.high, b.high);
  return p;
}

static pair_t popcnt(vm_t v, pair_t a) {
  pair_t p;
  vm_id_t low = vm_op1(v, PESTLE_OP_POPCNT, a.low);
  vm_id_t high = vm_op1(v, PESTLE_OP_POPCNT, a.high);
  p.low = vm_add(v, low, high);
  p.high = vm_int(v, 0);
  return p;
}

vm_id_t pestle_pair_leading_zeros(vm_t v, pair_t a) {
  vm_id_t low = vm_op1(v, PESTLE_OP_CLZ, a.low);
  vm_id_t high = vm_op1(v, PESTLE_OP_CLZ, a.high);
  vm_id_t none = vm_op2i(v, PESTLE_OP_EQ, a.high, 0);
  low = vm_op2i(v, PESTLE_OP_ADD, low, 32);
  return vm_select(v, none, low, high);
}

bool pestle_pair_row(vm_t v, pestle_op_t op, pestle_dtype_t dtype,
                     const pair_t a[3], pair_t* out) {
  pair_t p = {PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  vm_id_t which;
  switch ((int)op) {
    case PESTLE_OP_ADD:
      p = add(v, a[0], a[1]);
      break;
    case PESTLE_OP_SUBTRACT:
      p = subtract(v, a[0], a[1]);
      break;
    case PESTLE_OP_MULTIPLY:
      p = multiply(v, a[0], a[1]);
      break;
    case PESTLE_OP_DIVIDE:
    case PESTLE_OP_REMAINDER:
      p = quotient_or_rest(v, dtype, a[0], a[1], op == PESTLE_OP_REMAINDER);
      break;
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
      which = less(v, dtype, a[0], a[1]);
      p = op == PESTLE_OP_MAXIMUM ? pestle_pair_select(v, which, a[1], a[0])
                                  : pestle_pair_select(v, which, a[0], a[1]);
      break;
    case PESTLE_OP_NEGATE:
      p = pestle_pair_negate(v, a[0]);
      break;
    case PESTLE_OP_ABS:
      p = is_signed(dtype) ? pestle_pair_size(v, a[0], &which) : a[0];
      break;
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
    case PESTLE_OP_XOR:
      p = each(v, op, a[0], a[1]);
      break;
    case PESTLE_OP_NOT:
      p.low = vm_op1(v, op, a[0].low);
      p.high = vm_op1(v, op, a[0].high);
      break;
    case PESTLE_OP_SHIFT_LEFT:
      p = pestle_pair_shift_left(v, a[0], distance(v, a[1]));
      break;
    case PESTLE_OP_SHIFT_RIGHT_LOGICAL:
      p = shift_right(v, a[0], distance(v, a[1]));
      break;
    case PESTLE_OP_SHIFT_RIGHT_ARITHMETIC:
      p = shift_right_signed(v, a[0], distance(v, a[1]));
      break;
    case PESTLE_OP_POPCNT:
      p = popcnt(v, a[0]);
      break;
    case PESTLE_OP_CLZ:
      p.low = pestle_pair_leading_zeros(v, a[0]);
      p.high = vm_int(v, 0);
      break;
    case PESTLE_OP_EQ:
      p.low = equal(v, a[0], a[1]);
      break;
    case PESTLE_OP_NE:
      p.low = vm_op1(v, PESTLE_OP_NOT, equal(v, a[0], a[1]));
      break;
    case PESTLE_OP_LT:
      p.low = less(v, dtype, a[0], a[1]);
      break;
    case PESTLE_OP_GT:
      p.low = less(v, dtype, a[1], a[0]);
      break;
    case PESTLE_OP_LE:
      p.low = vm_op1(v, PESTLE_OP_NOT, less(v, dtype, a[1], a[0]));
      break;
    case PESTLE_OP_GE:
      p.low = vm_op1(v, PESTLE_OP_NOT, less(v, dtype, a[0], a[1]));
      break;
    default:
      return false;
  }
  *out = p;
  return true;
}
