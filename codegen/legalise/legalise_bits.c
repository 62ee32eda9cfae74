// SPDX-License-Identifier: Apache-2.0
// Narrow floats by integer arithmetic: see legalise_bits.h. The formats are
// those of PESTLE_FLOAT_FORMATS.
#include "codegen/legalise/legalise_bits.h"

typedef pestle_float_format_t format_t;

// Normal results: the bits are rounded in place by adding a half less one and
// the last bit that stays, then the exponent's bias is changed. Results below
// the least normal one: a float is added whose last bit is worth what the
// format's is, and the sum's bits are counted from there.
static vm_id_t round_magnitude(vm_t f, vm_t u, const format_t* format,
                               vm_id_t size) {
  int drop = 23 - format->mantissa_bits;
  vm_id_t bits = vm_bits(f, size, PESTLE_U32);
  vm_id_t last = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, drop);
  last = vm_op2i(u, PESTLE_OP_AND, last, 1);
  vm_id_t normal =
      vm_op2i(u, PESTLE_OP_ADD, bits, (INT64_C(1) << (drop - 1)) - 1);
  normal = vm_add(u, normal, last);
  normal = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, normal, drop);
  if (format->bias == 127) return normal;
  int64_t rebias = (int64_t)(127 - format->bias) << format->mantissa_bits;
  normal = vm_op2i(u, PESTLE_OP_SUBTRACT, normal, rebias);
  double least = ldexp(1.0, 1 - format->bias);
  double anchor = ldexp(1.0, 24 - format->bias - format->mantissa_bits);
  vm_id_t sum = vm_op2f(f, PESTLE_OP_ADD, size, anchor);
  vm_id_t zero = vm_const(f, anchor);
  vm_id_t from = vm_bits(f, zero, PESTLE_U32);
  vm_id_t small = vm_bits(f, sum, PESTLE_U32);
  small = vm_sub(u, small, from);
  vm_id_t is_small = vm_op2f(f, PESTLE_OP_LT, size, least);
  return vm_select(u, is_small, small, normal);
}

// Powers of two alone: half of one goes up, what is below the least becomes the
// least. Zeros, negative numbers and what is too large are the NaN.
static vm_id_t encode_scale(vm_t f, const format_t* format, vm_id_t x) {
  vm_t u = vm_as(f, PESTLE_U32);
  vm_id_t bits = vm_bits(f, x, PESTLE_U32);
  vm_id_t r = vm_op2i(u, PESTLE_OP_ADD, bits, 0x400000);
  r = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, r, 23);
  vm_id_t least = vm_op2i(u, PESTLE_OP_LT, bits, 0x600000);
  vm_id_t nan = vm_int(u, (int64_t)format->nan);
  vm_id_t zero = vm_int(u, 0);
  r = vm_op2(u, PESTLE_OP_MINIMUM, r, nan);
  r = vm_select(u, least, zero, r);
  vm_id_t before = vm_op2i(u, PESTLE_OP_SUBTRACT, bits, 1);
  vm_id_t none = vm_op2i(u, PESTLE_OP_GE, before, 0x7fffffff);
  r = vm_select(u, none, nan, r);
  return vm_cast(u, r, PESTLE_U8);
}

static vm_id_t decode_scale(vm_t u, const format_t* format, vm_id_t code) {
  vm_id_t r = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, code, 23);
  vm_id_t is_least = vm_op2i(u, PESTLE_OP_EQ, code, 0);
  vm_id_t is_nan = vm_op2i(u, PESTLE_OP_EQ, code, (int64_t)format->nan);
  vm_id_t least = vm_int(u, 0x00400000), nan = vm_int(u, 0x7fc00000);
  r = vm_select(u, is_least, least, r);
  r = vm_select(u, is_nan, nan, r);
  return vm_bits(u, r, PESTLE_F32);
}

pestle_kir_id_t pestle_bits_encode(pestle_kir_builder_t* k,
                                   pestle_dtype_t dtype, pestle_kir_id_t x) {
  const format_t* format = pestle_float_format(dtype);
  int width = (int)pestle_dtype_info(dtype)->bits;
  vm_t f = {k, PESTLE_F32, pestle_kir_lanes_of(k, x), false};
  vm_t u = vm_as(f, PESTLE_U32);
  int64_t sign_bit = (int64_t)format->sign;
  if (format->specials == PESTLE_FLOAT_SCALE) return encode_scale(f, format, x);
  bool fnuz = format->specials == PESTLE_FLOAT_UNSIGNED;
  vm_id_t size = vm_abs(f, x);
  vm_id_t r = round_magnitude(f, u, format, size);
  // NaN without a place of its own is -0, whose sign the number's may join.
  bool stays = format->specials == PESTLE_FLOAT_NUMBERS;
  vm_id_t most = vm_int(u, (int64_t)(format->limit - stays));
  vm_id_t nan = vm_int(u, (int64_t)format->nan);
  vm_id_t is_nan = vm_op2(f, PESTLE_OP_NE, x, x);
  r = vm_op2(u, PESTLE_OP_MINIMUM, r, most);
  r = vm_select(u, is_nan, nan, r);
  vm_id_t sign = vm_bits(f, x, PESTLE_U32);
  sign = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, sign, 32 - width);
  sign = vm_op2i(u, PESTLE_OP_AND, sign, sign_bit);
  if (fnuz) {
    // Zero and NaN have no sign of their own.
    vm_id_t none = vm_int(u, 0);
    vm_id_t is_zero = vm_op2(u, PESTLE_OP_EQ, r, none);
    sign = vm_select(u, is_zero, none, sign);
  }
  r = vm_op2(u, PESTLE_OP_OR, r, sign);
  return vm_cast(u, r, width <= 8 ? PESTLE_U8 : PESTLE_U16);
}

// The magnitude |size| of a finite number. Normal ones have their bits moved to
// where f32 has them, and its bias; the others are counted in the last place of a
// float that is taken off again. No step has a denormal operand, which some targets
// take for 0 and CPUs take long for.
static vm_id_t decode_magnitude(vm_t u, const format_t* format, vm_id_t size,
                                vm_id_t high) {
  vm_t f = vm_as(u, PESTLE_F32);
  int64_t rebias = (int64_t)(127 - format->bias) << 23;
  vm_id_t normal = vm_op2i(u, PESTLE_OP_ADD, high, rebias);
  double anchor = ldexp(1.0, 24 - format->bias - format->mantissa_bits);
  vm_id_t from = vm_const(f, anchor);
  vm_id_t small = vm_bits(f, from, PESTLE_U32);
  small = vm_op2(u, PESTLE_OP_OR, small, size);
  small = vm_bits(u, small, PESTLE_F32);
  small = vm_op2f(f, PESTLE_OP_SUBTRACT, small, anchor);
  small = vm_bits(f, small, PESTLE_U32);
  vm_id_t is_small =
      vm_op2i(u, PESTLE_OP_LT, size, INT64_C(1) << format->mantissa_bits);
  return vm_select(u, is_small, small, normal);
}

// Infinities and NaNs are put right afterwards.
pestle_kir_id_t pestle_bits_decode(pestle_kir_builder_t* k,
                                   pestle_dtype_t dtype, pestle_kir_id_t bits) {
  const format_t* format = pestle_float_format(dtype);
  int width = (int)pestle_dtype_info(dtype)->bits;
  vm_t f = {k, PESTLE_F32, pestle_kir_lanes_of(k, bits), false};
  vm_t u = vm_as(f, PESTLE_U32);
  int64_t sign_bit = (int64_t)format->sign;
  bits = vm_cast(u, bits, PESTLE_U32);
  if (format->specials == PESTLE_FLOAT_SCALE) {
    return decode_scale(u, format, bits);
  }
  bool fnuz = format->specials == PESTLE_FLOAT_UNSIGNED;
  bool infinite = format->specials == PESTLE_FLOAT_IEEE;
  if (dtype == PESTLE_BF16) {
    bits = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, bits, 16);
    return vm_bits(u, bits, PESTLE_F32);
  }
  vm_id_t size = vm_op2i(u, PESTLE_OP_AND, bits, sign_bit - 1);
  vm_id_t high =
      vm_op2i(u, PESTLE_OP_SHIFT_LEFT, size, 23 - format->mantissa_bits);
  vm_id_t code = decode_magnitude(u, format, size, high);
  if (!fnuz && format->specials != PESTLE_FLOAT_NUMBERS) {
    vm_id_t special = vm_op2i(u, PESTLE_OP_GE, size, (int64_t)format->limit);
    vm_id_t top =
        vm_op2i(u, PESTLE_OP_OR, high, infinite ? 0x7f800000 : 0x7fc00000);
    code = vm_select(u, special, top, code);
  }
  vm_id_t sign = vm_op2i(u, PESTLE_OP_AND, bits, sign_bit);
  sign = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, sign, 32 - width);
  code = vm_op2(u, PESTLE_OP_OR, code, sign);
  if (fnuz) {
    vm_id_t nan = vm_int(u, 0xffc00000);
    vm_id_t is_nan = vm_op2i(u, PESTLE_OP_EQ, bits, sign_bit);
    code = vm_select(u, is_nan, nan, code);
  }
  return vm_bits(u, code, PESTLE_F32);
}

pestle_kir_id_t pestle_bits_odd_f32(pestle_kir_builder_t* k,
                                    pestle_kir_id_t x) {
  vm_t d = {k, PESTLE_F64, pestle_kir_lanes_of(k, x), false};
  vm_t u = vm_as(d, PESTLE_U32);
  vm_id_t near = vm_cast(d, x, PESTLE_F32);
  vm_id_t back = vm_cast(d, near, PESTLE_F64);
  vm_id_t size = vm_abs(d, x);
  vm_id_t near_size = vm_abs(d, back);
  vm_id_t over = vm_op2(d, PESTLE_OP_GT, near_size, size);
  vm_id_t inexact = vm_op2(d, PESTLE_OP_NE, back, x);
  vm_id_t bits = vm_bits(d, near, PESTLE_U32);
  // Towards zero, then the last bit says that something was lost.
  vm_id_t down = vm_cast(d, over, PESTLE_U32);
  bits = vm_sub(u, bits, down);
  vm_id_t lost = vm_cast(d, inexact, PESTLE_U32);
  bits = vm_op2(u, PESTLE_OP_OR, bits, lost);
  return vm_bits(u, bits, PESTLE_F32);
}
