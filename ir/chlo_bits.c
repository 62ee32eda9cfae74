// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO that are made of comparisons and integers.
#include <math.h>

#include "base/half.h"
#include "ir/chlo.h"

#define OP1(op, a) pestle_step1(s, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_step2(s, PESTLE_OP_##op, a, b)

static pv_t* constant(pestle_steps_t* s, pv_t* like, uint64_t bits) {
  return like ? pestle_step_bits(s, like->type, bits) : NULL;
}

static pv_t* as(pestle_steps_t* s, pv_t* a, pestle_dtype_t dtype) {
  if (!a || a->type->dtype == dtype) return a;
  pestle_type_t type = *a->type;
  type.dtype = dtype;
  return pestle_step_typed(s, PESTLE_OP_BITCAST_CONVERT, &a, 1, &type);
}

// --- Classes ---

pv_t* pestle_chlo_is_inf(pestle_steps_t* s, pv_t* const* x) {
  pv_t* number = OP2(EQ, x[0], x[0]);
  pv_t* endless = OP1(NOT, OP1(IS_FINITE, x[0]));
  return OP2(AND, number, endless);
}

pv_t* pestle_chlo_is_pos_inf(pestle_steps_t* s, pv_t* const* x) {
  pv_t* above = OP2(GT, x[0], pestle_step_splat(s, x[0], 1));
  return OP2(AND, pestle_chlo_is_inf(s, x), above);
}

pv_t* pestle_chlo_is_neg_inf(pestle_steps_t* s, pv_t* const* x) {
  pv_t* below = OP2(LT, x[0], pestle_step_splat(s, x[0], 1));
  return OP2(AND, pestle_chlo_is_inf(s, x), below);
}

// --- The next number ---

// Away from 0 the bits count up, towards it down; equal operands give the second.
pv_t* pestle_chlo_next_after(pestle_steps_t* s, pv_t* const* operands) {
  pv_t *x = operands[0], *y = operands[1];
  pestle_dtype_t dtype = x->type->dtype;
  unsigned width = pestle_dtype_info(dtype)->bits;
  uint64_t sign = UINT64_C(1) << (width - 1);
  pestle_dtype_t integer = pestle_dtype_unsigned(width);
  // f8E8M0FNU has no sign, and no bits are those of less than 0.
  if (!integer || pestle_float_decode(dtype, sign | 1) > 0) {
    s->status = pestle_node_error(s->node, PESTLE_STATUS_UNSUPPORTED,
                                  "'chlo.next_after' of %s is not supported",
                                  pestle_dtype_info(dtype)->name);
    return NULL;
  }
  pv_t *a = as(s, x, integer), *b = as(s, y, integer);
  pv_t* zero = pestle_step_splat(s, x, 0);
  pv_t* away = OP2(XOR, OP2(LT, x, y), OP2(LT, x, zero));
  pv_t* one = constant(s, a, 1);
  pv_t* up = OP2(ADD, a, one);
  pv_t* next = pestle_step_select(s, away, up, OP2(SUBTRACT, a, one));
  // A type without -0 has NaN there.
  if (isnan(pestle_float_decode(dtype, sign))) {
    pv_t* hole = OP2(EQ, next, constant(s, a, sign));
    next = pestle_step_select(s, hole, constant(s, a, 0), next);
  }
  pv_t* least = OP2(OR, OP2(AND, b, constant(s, a, sign)), one);
  next = pestle_step_select(s, OP2(EQ, x, zero), least, next);
  next = pestle_step_select(s, OP2(EQ, x, y), b, next);
  next = as(s, next, dtype);
  pv_t* other = OP2(OR, OP2(NE, x, x), OP2(NE, y, y));
  return pestle_step_select(s, other, pestle_step_splat(s, x, (double)NAN),
                            next);
}

// --- The upper half of a product ---

static pestle_dtype_t twice_as_wide(unsigned width, bool is_signed) {
  if (width <= 8) return is_signed ? PESTLE_I16 : PESTLE_U16;
  if (width == 16) return is_signed ? PESTLE_I32 : PESTLE_U32;
  return is_signed ? PESTLE_I64 : PESTLE_U64;
}

static pv_t* high_of(pestle_steps_t* s, pv_t* a) {
  return OP2(SHIFT_RIGHT_LOGICAL, a, constant(s, a, 32));
}

static pv_t* low_of(pestle_steps_t* s, pv_t* a) {
  return OP2(AND, a, constant(s, a, UINT32_MAX));
}

// Of u64, by halves.
static pv_t* mulhi_u64(pestle_steps_t* s, pv_t* a, pv_t* b) {
  pv_t *a1 = high_of(s, a), *a0 = low_of(s, a);
  pv_t *b1 = high_of(s, b), *b0 = low_of(s, b);
  pv_t* carry = high_of(s, PESTLE_MUL(s, a0, b0));
  pv_t* middle = PESTLE_ADD(s, PESTLE_MUL(s, a1, b0), carry);
  pv_t* more = PESTLE_ADD(s, PESTLE_MUL(s, a0, b1), low_of(s, middle));
  pv_t* high = PESTLE_ADD(s, PESTLE_MUL(s, a1, b1), high_of(s, middle));
  return PESTLE_ADD(s, high, high_of(s, more));
}

// Signed, |a| below 0 is 2^64 more as unsigned: |b| too much above.
static pv_t* excess(pestle_steps_t* s, pv_t* a, pv_t* b) {
  return pestle_step_select(s, OP2(LT, a, constant(s, a, 0)), b,
                            constant(s, b, 0));
}

pv_t* pestle_chlo_mulhi(pestle_steps_t* s, pv_t* const* operands) {
  pv_t *a = operands[0], *b = operands[1];
  pestle_dtype_t dtype = a->type->dtype;
  unsigned width = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (width < 64) {
    pestle_dtype_t wide = twice_as_wide(width, is_signed);
    pv_t* x = pestle_step_convert(s, a, wide);
    pv_t* product = PESTLE_MUL(s, x, pestle_step_convert(s, b, wide));
    pv_t* by = constant(s, product, width);
    product = is_signed ? OP2(SHIFT_RIGHT_ARITHMETIC, product, by)
                        : OP2(SHIFT_RIGHT_LOGICAL, product, by);
    return pestle_step_convert(s, product, dtype);
  }
  pv_t* x = as(s, a, PESTLE_U64);
  pv_t* high = as(s, mulhi_u64(s, x, as(s, b, PESTLE_U64)), dtype);
  if (!is_signed) return high;
  high = PESTLE_SUB(s, high, excess(s, a, b));
  return PESTLE_SUB(s, high, excess(s, b, a));
}
