// SPDX-License-Identifier: Apache-2.0
// convert and bitcast_convert. Floats become integers by rounding towards zero
// and saturating (NaN gives 0), i1 by being non-zero; integers wrap; everything
// that becomes a float is rounded once. A real part stands for a complex number
// that becomes real.
#include <math.h>
#include <string.h>

#include "ir/ref/ref_internal.h"

enum { BLOCK = 512 };

typedef union block_t {
  double f64[BLOCK];
  int64_t i64[BLOCK];
  uint64_t u64[BLOCK];
} block_t;

// An integer of more than 53 bits as a double from which rounding to any
// narrower float gives what rounding the integer itself would: the bits that
// do not fit are gathered in the last one that does ("round to odd").
static double odd_double(uint64_t magnitude, bool negative) {
  if (magnitude >> 53) {
    bool lost = (magnitude & 0x7ff) != 0;
    magnitude &= ~UINT64_C(0x7ff);
    if (lost) magnitude |= 0x800;
  }
  double value = (double)magnitude;
  return negative ? -value : value;
}

static void ints_to_floats(bool is_signed, pestle_dtype_t target, size_t count,
                           block_t* block) {
  bool exact = target == PESTLE_F64;
  for (size_t i = 0; i < count; ++i) {
    if (is_signed) {
      int64_t value = block->i64[i];
      uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
      block->f64[i] = exact ? (double)value : odd_double(magnitude, value < 0);
    } else {
      uint64_t value = block->u64[i];
      block->f64[i] = exact ? (double)value : odd_double(value, false);
    }
  }
}

static int64_t saturate_signed(double value, unsigned bits) {
  if (isnan(value)) return 0;
  double limit = ldexp(1.0, (int)bits - 1);
  int64_t max = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
  if (value >= limit) return max;
  if (value < -limit) return -max - 1;
  return (int64_t)value;
}

static uint64_t saturate_unsigned(double value, unsigned bits) {
  if (!(value > 0)) return 0;
  if (value >= ldexp(1.0, (int)bits)) {
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  }
  return (uint64_t)value;
}

static void floats_to_ints(pestle_dtype_t target, size_t count,
                           block_t* block) {
  unsigned bits = pestle_dtype_info(target)->bits;
  bool is_signed = pestle_dtype_is(target, PESTLE_KIND_SIGNED);
  for (size_t i = 0; i < count; ++i) {
    double value = block->f64[i];
    if (target == PESTLE_I1) {
      block->u64[i] = value != 0;
    } else if (is_signed) {
      block->i64[i] = saturate_signed(value, bits);
    } else {
      block->u64[i] = saturate_unsigned(value, bits);
    }
  }
}

static void convert_block(pestle_dtype_t from, pestle_dtype_t to,
                          const void* source, size_t count, void* target) {
  block_t block;
  pestle_ref_load_wide(from, source, count, &block);
  bool from_float = pestle_dtype_is(from, PESTLE_KIND_FLOAT);
  bool to_float = pestle_dtype_is(to, PESTLE_KIND_FLOAT);
  if (from_float && !to_float) {
    floats_to_ints(to, count, &block);
  } else if (!from_float && to_float) {
    ints_to_floats(pestle_dtype_is(from, PESTLE_KIND_SIGNED), to, count,
                   &block);
  } else if (to == PESTLE_I1 && from != PESTLE_I1) {
    for (size_t i = 0; i < count; ++i)
      block.u64[i] = block.u64[i] != 0;
  }
  pestle_ref_store_wide(to, &block, count, target);
}

static void convert_real(pestle_dtype_t from, pestle_dtype_t to,
                         const char* source, size_t count, char* target) {
  for (size_t i = 0; i < count; i += BLOCK) {
    size_t n = count - i < BLOCK ? count - i : BLOCK;
    convert_block(from, to, source + i * pestle_dtype_size(from), n,
                  target + i * pestle_dtype_size(to));
  }
}

static pestle_dtype_t part_of(pestle_dtype_t dtype) {
  return dtype == PESTLE_C64    ? PESTLE_F32
         : dtype == PESTLE_C128 ? PESTLE_F64
                                : dtype;
}

static void convert_complex(pestle_dtype_t from, pestle_dtype_t to,
                            const char* source, size_t count, char* target) {
  pestle_dtype_t in = part_of(from), out = part_of(to);
  if (in != from && out != to) {
    convert_real(in, out, source, 2 * count, target);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    char* element = target + i * pestle_dtype_size(to);
    memset(element, 0, pestle_dtype_size(to));
    convert_block(in, out, source + i * pestle_dtype_size(from), 1, element);
  }
}

pestle_status_t pestle_ref_convert(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_dtype_t from = pestle_ref_operand_type(call, 0)->dtype;
  pestle_dtype_t to = type->dtype;
  size_t count = (size_t)pestle_type_count(type);
  if (!count) return NULL;
  if (from == to) {
    memcpy(call->results[0], call->operands[0], pestle_type_bytes(type));
  } else if (part_of(from) != from || part_of(to) != to) {
    convert_complex(from, to, call->operands[0], count, call->results[0]);
  } else {
    convert_real(from, to, call->operands[0], count, call->results[0]);
  }
  return NULL;
}

// Values narrower than the bytes that hold them are packed, lowest first, into
// a stream of bits and cut up anew.
static void recut_bits(const pestle_dtype_info_t* from,
                       const pestle_dtype_info_t* to, const char* source,
                       size_t target_count, char* target) {
  uint64_t held = 0;
  unsigned have = 0;
  for (size_t i = 0; i < target_count; ++i) {
    uint64_t value = 0;
    for (unsigned done = 0; done < to->bits;) {
      if (!have) {
        held = 0;
        memcpy(&held, source, from->size);
        source += from->size;
        have = from->bits;
      }
      unsigned take = to->bits - done < have ? to->bits - done : have;
      uint64_t mask = take == 64 ? UINT64_MAX : (UINT64_C(1) << take) - 1;
      value |= (held & mask) << done;
      held = take == 64 ? 0 : held >> take;
      have -= take;
      done += take;
    }
    if (to->kind == PESTLE_KIND_SIGNED && to->bits < 8) {
      uint64_t sign = UINT64_C(1) << (to->bits - 1);
      value = (value ^ sign) - sign;
    }
    memcpy(target + i * to->size, &value, to->size);
  }
}

pestle_status_t pestle_ref_bitcast_convert(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_dtype_info_t* from =
      pestle_dtype_info(pestle_ref_operand_type(call, 0)->dtype);
  const pestle_dtype_info_t* to = pestle_dtype_info(type->dtype);
  size_t count = (size_t)pestle_type_count(type);
  if (!count) return NULL;
  if (from->bits < 8 || to->bits < 8) {
    recut_bits(from, to, call->operands[0], count, call->results[0]);
  } else {
    memcpy(call->results[0], call->operands[0], pestle_type_bytes(type));
  }
  return NULL;
}
