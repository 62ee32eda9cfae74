// SPDX-License-Identifier: Apache-2.0
// StableHLO's comparison in total order: floats as IEEE 754's totalOrder has
// them, -NaN < -inf < .. < -0 < +0 < .. < +inf < NaN. It has no row of its own
// but is one of integers:
//
//   %k = bitcast_convert %x                         as a signed integer
//   %key = xor %k, (%k >> (bits - 1)) >>> 1         negative ones run backwards
//
// Formats whose bits are no sign and magnitude of 8 bits or more (FNUZ, whose NaN
// has the bits of -0, E8M0 without a sign, those of 4 and 6 bits) are compared as
// the f32 that they are equal to.
#include "base/mem.h"
#include "ir/internal.h"

static pestle_dtype_t signed_of(pestle_dtype_t dtype) {
  switch (pestle_dtype_info(dtype)->bits) {
    case 8:
      return PESTLE_I8;
    case 16:
      return PESTLE_I16;
    case 32:
      return PESTLE_I32;
    default:
      return PESTLE_I64;
  }
}

static pestle_status_t splat(pestle_builder_t* b, const pestle_type_t* type,
                             int64_t value, pestle_value_t** out) {
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {*type, &value, pestle_dtype_size(type->dtype), true}};
  return pestle_op_constant(b, &attrs, out);
}

static bool has_ordered_bits(pestle_dtype_t dtype) {
  const pestle_float_format_t* format = pestle_float_format(dtype);
  return format->sign && format->specials != PESTLE_FLOAT_UNSIGNED &&
         pestle_dtype_info(dtype)->bits >= 8;
}

pestle_status_t pestle_total_order_key(pestle_builder_t* b, pestle_value_t* x,
                                       pestle_value_t** out_key) {
  if (!has_ordered_bits(x->type->dtype)) {
    pestle_type_t wide = *x->type;
    wide.dtype = PESTLE_F32;
    PESTLE_TRY(pestle_op_convert(b, x, NULL, wide, &x));
  }
  pestle_type_t type = *x->type;
  int64_t bits = pestle_dtype_info(type.dtype)->bits;
  pestle_value_t *k, *sign, *top, *one;
  type.dtype = signed_of(type.dtype);
  PESTLE_TRY(pestle_op_bitcast_convert(b, x, NULL, type, &k));
  PESTLE_TRY(splat(b, &type, bits - 1, &top));
  PESTLE_TRY(splat(b, &type, 1, &one));
  PESTLE_TRY(pestle_op_shift_right_arithmetic(b, k, top, &sign));
  PESTLE_TRY(pestle_op_shift_right_logical(b, sign, one, &sign));
  return pestle_op_xor(b, k, sign, out_key);
}
