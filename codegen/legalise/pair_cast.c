// SPDX-License-Identifier: Apache-2.0
// Casts to and from pairs of words.
#include "codegen/legalise/pair.h"

typedef pestle_pair_t pair_t;

static bool is_signed(pestle_dtype_t dtype) {
  return dtype == PESTLE_I64;
}

static const double word = 4294967296.0;

// A float's size, of which |low| and |high| are made, with its sign; or, of one that
// |is_over|, the number at that end.
static pair_t with_sign(vm_t v, pestle_dtype_t dtype, pair_t size,
                        vm_id_t is_minus, vm_id_t is_over) {
  pair_t least = pestle_pair_const(v, is_signed(dtype) ? INT64_MIN : 0);
  pair_t most = pestle_pair_const(v, is_signed(dtype) ? INT64_MAX : -1);
  pair_t end = pestle_pair_select(v, is_minus, least, most);
  pair_t below = is_signed(dtype) ? pestle_pair_negate(v, size) : least;
  pair_t p = pestle_pair_select(v, is_minus, below, size);
  return pestle_pair_select(v, is_over, end, p);
}

// The mantissa is moved to where its exponent says; what lies behind the point
// falls off.
static pair_t from_f32(vm_t v, pestle_dtype_t dtype, vm_id_t x) {
  vm_t f = vm_as(v, PESTLE_F32);
  vm_id_t bits = vm_bits(v, x, PESTLE_U32), none = vm_int(v, 0);
  vm_id_t exponent = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, 23);
  exponent = vm_op2i(v, PESTLE_OP_AND, exponent, 0xff);
  pair_t size = {vm_op2i(v, PESTLE_OP_AND, bits, 0x7fffff), none};
  size.low = vm_op2i(v, PESTLE_OP_OR, size.low, 0x800000);
  vm_id_t is_small = vm_op2i(v, PESTLE_OP_LT, exponent, 150);
  vm_id_t places = vm_int(v, 150);
  vm_id_t right = vm_sub(v, places, exponent);
  vm_id_t left = vm_sub(v, exponent, places);
  right = vm_select(v, is_small, right, none);
  left = vm_select(v, is_small, none, left);
  size.low = vm_op2(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, size.low, right);
  size = pestle_pair_shift_left(v, size, left);
  int64_t first_over = is_signed(dtype) ? 190 : 191;
  vm_id_t is_over = vm_op2i(v, PESTLE_OP_GE, exponent, first_over);
  vm_id_t is_minus = pestle_pair_is_negative(v, bits);
  pair_t p = with_sign(v, dtype, size, is_minus, is_over);
  vm_id_t is_nan = vm_op2(f, PESTLE_OP_NE, x, x);
  return pestle_pair_select(v, is_nan, pestle_pair_const(v, 0), p);
}

static pair_t from_f64(vm_t v, pestle_dtype_t dtype, vm_id_t x) {
  vm_t d = vm_as(v, PESTLE_F64);
  vm_id_t whole = vm_op1(d, PESTLE_OP_FLOOR, vm_abs(d, x));
  vm_id_t high = vm_op2f(d, PESTLE_OP_MULTIPLY, whole, 1 / word);
  high = vm_op1(d, PESTLE_OP_FLOOR, high);
  vm_id_t low = vm_op2f(d, PESTLE_OP_MULTIPLY, high, word);
  low = vm_sub(d, whole, low);
  pair_t size;
  size.low = vm_cast(d, low, PESTLE_U32);
  size.high = vm_cast(d, high, PESTLE_U32);
  double most = is_signed(dtype) ? word * word / 2 : word * word;
  vm_id_t is_over = vm_op2f(d, PESTLE_OP_GE, whole, most);
  vm_id_t is_minus = vm_op2f(d, PESTLE_OP_LT, x, 0);
  pair_t p = with_sign(v, dtype, size, is_minus, is_over);
  vm_id_t is_nan = vm_op2(d, PESTLE_OP_NE, x, x);
  return pestle_pair_select(v, is_nan, pestle_pair_const(v, 0), p);
}

pair_t pestle_pair_from(vm_t v, pestle_dtype_t dtype, vm_id_t x) {
  pestle_dtype_t from = pestle_kir_type_of(v.k, x);
  if (from == PESTLE_F32) return from_f32(v, dtype, x);
  if (from == PESTLE_F64) return from_f64(v, dtype, x);
  pair_t p;
  bool extends = pestle_dtype_is(from, PESTLE_KIND_SIGNED);
  p.low = vm_cast(v, x, extends ? PESTLE_I32 : PESTLE_U32);
  p.low = vm_bits(v, p.low, PESTLE_U32);
  p.high = extends ? pestle_pair_sign(v, p.low) : vm_int(v, 0);
  return p;
}

// The size is moved so that its first bit is the first of a word; of the word the
// upper 24 bits are the mantissa.
vm_id_t pestle_pair_to_f32(vm_t v, pestle_dtype_t dtype, pair_t a,
                           bool to_odd) {
  pair_t size = a;
  vm_id_t none = vm_int(v, 0), is_minus = PESTLE_KIR_NONE;
  if (is_signed(dtype)) size = pestle_pair_size(v, a, &is_minus);
  vm_id_t zeros = pestle_pair_leading_zeros(v, size);
  size = pestle_pair_shift_left(v, size, zeros);
  vm_id_t mantissa = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, size.high, 8);
  vm_id_t below = vm_op2i(v, PESTLE_OP_AND, size.high, to_odd ? 0xff : 0x7f);
  below = vm_op2(v, PESTLE_OP_OR, below, size.low);
  below = vm_op2i(v, PESTLE_OP_NE, below, 0);
  below = vm_cast(v, below, PESTLE_U32);
  // exponent + 127 - 1: the mantissa's own first bit adds one.
  vm_id_t top = vm_int(v, 127 + 63 - 1);
  vm_id_t bits = vm_sub(v, top, zeros);
  bits = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, bits, 23);
  bits = vm_add(v, bits, mantissa);
  if (to_odd) {
    bits = vm_op2(v, PESTLE_OP_OR, bits, below);
  } else {
    vm_id_t half = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, size.high, 7);
    vm_id_t odd = vm_op2i(v, PESTLE_OP_AND, mantissa, 1);
    vm_id_t up = vm_op2(v, PESTLE_OP_OR, below, odd);
    up = vm_op2(v, PESTLE_OP_AND, up, half);
    bits = vm_add(v, bits, up);
  }
  vm_id_t is_zero = vm_op2i(v, PESTLE_OP_EQ, size.high, 0);
  bits = vm_select(v, is_zero, none, bits);
  if (is_signed(dtype)) {
    vm_id_t minus = vm_op2i(v, PESTLE_OP_OR, bits, INT64_C(0x80000000));
    bits = vm_select(v, is_minus, minus, bits);
  }
  return vm_bits(v, bits, PESTLE_F32);
}

// Rounded where the words are added, and nowhere else.
vm_id_t pestle_pair_to_f64(vm_t v, pestle_dtype_t dtype, pair_t a) {
  vm_t d = vm_as(v, PESTLE_F64);
  vm_id_t high = a.high;
  if (is_signed(dtype)) high = vm_bits(v, high, PESTLE_I32);
  high = vm_cast(v, high, PESTLE_F64);
  high = vm_op2f(d, PESTLE_OP_MULTIPLY, high, word);
  vm_id_t low = vm_cast(v, a.low, PESTLE_F64);
  return vm_add(d, high, low);
}

vm_id_t pestle_pair_to_near_i32(vm_t v, pestle_dtype_t dtype, pair_t a) {
  vm_id_t sign = pestle_pair_sign(v, a.low), most = vm_int(v, INT32_MAX);
  vm_id_t end = most;
  if (is_signed(dtype)) {
    end = pestle_pair_sign(v, a.high);
    end = vm_op2(v, PESTLE_OP_XOR, end, most);
  } else {
    // What has its sign bit is too large.
    vm_id_t none = vm_int(v, 0);
    vm_id_t over = vm_op2(v, PESTLE_OP_OR, a.high, sign);
    vm_id_t fits = vm_op2(v, PESTLE_OP_EQ, over, none);
    vm_id_t low = vm_select(v, fits, a.low, end);
    return vm_bits(v, low, PESTLE_I32);
  }
  vm_id_t fits = vm_op2(v, PESTLE_OP_EQ, a.high, sign);
  vm_id_t low = vm_select(v, fits, a.low, end);
  return vm_bits(v, low, PESTLE_I32);
}
