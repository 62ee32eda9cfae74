// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO that are made of comparisons, integers and products.
#include <math.h>

#include "base/half.h"
#include "ir/chlo.h"

#define OP1(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)

static pv_t* constant(pestle_formula_t* f, pv_t* like, uint64_t bits) {
  return like ? pestle_f_bits(f, like->type, bits) : NULL;
}

static pv_t* as(pestle_formula_t* f, pv_t* a, pestle_dtype_t dtype) {
  if (!a || a->type->dtype == dtype) return a;
  pestle_type_t type = *a->type;
  type.dtype = dtype;
  return pestle_f_typed(f, PESTLE_OP_BITCAST_CONVERT, &a, 1, &type);
}

// --- Classes ---

pv_t* pestle_chlo_is_inf(pestle_formula_t* f, pv_t* const* x) {
  pv_t* number = OP2(EQ, x[0], x[0]);
  pv_t* endless = OP1(NOT, OP1(IS_FINITE, x[0]));
  return OP2(AND, number, endless);
}

pv_t* pestle_chlo_is_pos_inf(pestle_formula_t* f, pv_t* const* x) {
  pv_t* above = OP2(GT, x[0], pestle_f_splat(f, x[0], 1));
  return OP2(AND, pestle_chlo_is_inf(f, x), above);
}

pv_t* pestle_chlo_is_neg_inf(pestle_formula_t* f, pv_t* const* x) {
  pv_t* below = OP2(LT, x[0], pestle_f_splat(f, x[0], 1));
  return OP2(AND, pestle_chlo_is_inf(f, x), below);
}

// --- The next number ---

// Away from 0 the bits count up, towards it down; equal operands give the second.
pv_t* pestle_chlo_next_after(pestle_formula_t* f, pv_t* const* operands) {
  pv_t *x = operands[0], *y = operands[1];
  pestle_dtype_t dtype = x->type->dtype;
  unsigned width = pestle_dtype_info(dtype)->bits;
  uint64_t sign = UINT64_C(1) << (width - 1);
  pestle_dtype_t integer = pestle_dtype_unsigned(width);
  // f8E8M0FNU has no sign, and no bits are those of less than 0.
  if (!integer || pestle_float_decode(dtype, sign | 1) > 0) {
    f->status = pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                                  "'chlo.next_after' of %s is not supported",
                                  pestle_dtype_info(dtype)->name);
    return NULL;
  }
  pv_t *a = as(f, x, integer), *b = as(f, y, integer);
  pv_t* zero = pestle_f_splat(f, x, 0);
  pv_t* away = OP2(LT, x, zero);
  away = OP2(XOR, OP2(LT, x, y), away);
  pv_t* one = constant(f, a, 1);
  pv_t* up = OP2(ADD, a, one);
  pv_t* next = pestle_f_select(f, away, up, OP2(SUBTRACT, a, one));
  // A type without -0 has NaN there.
  if (isnan(pestle_float_decode(dtype, sign))) {
    pv_t* hole = OP2(EQ, next, constant(f, a, sign));
    next = pestle_f_select(f, hole, constant(f, a, 0), next);
  }
  pv_t* least = OP2(OR, OP2(AND, b, constant(f, a, sign)), one);
  next = pestle_f_select(f, OP2(EQ, x, zero), least, next);
  next = pestle_f_select(f, OP2(EQ, x, y), b, next);
  next = as(f, next, dtype);
  pv_t* other = OP2(NE, y, y);
  other = OP2(OR, OP2(NE, x, x), other);
  return pestle_f_select(f, other, pestle_f_splat(f, x, (double)NAN), next);
}

// --- Products ---

pv_t* pestle_chlo_square(pestle_formula_t* f, pv_t* const* x) {
  return OP2(MULTIPLY, x[0], x[0]);
}

static pestle_dtype_t twice_as_wide(unsigned width, bool is_signed) {
  if (width <= 8) return is_signed ? PESTLE_I16 : PESTLE_U16;
  if (width == 16) return is_signed ? PESTLE_I32 : PESTLE_U32;
  return is_signed ? PESTLE_I64 : PESTLE_U64;
}

static pv_t* high_of(pestle_formula_t* f, pv_t* a) {
  return OP2(SHIFT_RIGHT_LOGICAL, a, constant(f, a, 32));
}

static pv_t* low_of(pestle_formula_t* f, pv_t* a) {
  return OP2(AND, a, constant(f, a, UINT32_MAX));
}

// Of u64, by halves.
static pv_t* mulhi_u64(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t *a1 = high_of(f, a), *a0 = low_of(f, a);
  pv_t *b1 = high_of(f, b), *b0 = low_of(f, b);
  pv_t* carry = high_of(f, pestle_f_multiply(f, a0, b0));
  pv_t* middle = pestle_f_add(f, pestle_f_multiply(f, a1, b0), carry);
  pv_t* more = low_of(f, middle);
  more = pestle_f_add(f, pestle_f_multiply(f, a0, b1), more);
  pv_t* high = high_of(f, middle);
  high = pestle_f_add(f, pestle_f_multiply(f, a1, b1), high);
  return pestle_f_add(f, high, high_of(f, more));
}

// Signed, |a| below 0 is 2^64 more as unsigned: |b| too much above.
static pv_t* excess(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* zero = constant(f, b, 0);
  return pestle_f_select(f, OP2(LT, a, constant(f, a, 0)), b, zero);
}

pv_t* pestle_chlo_mulhi(pestle_formula_t* f, pv_t* const* operands) {
  pv_t *a = operands[0], *b = operands[1];
  pestle_dtype_t dtype = a->type->dtype;
  unsigned width = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (width < 64) {
    pestle_dtype_t wide = twice_as_wide(width, is_signed);
    pv_t* x = pestle_f_convert(f, a, wide);
    pv_t* product = pestle_f_multiply(f, x, pestle_f_convert(f, b, wide));
    pv_t* by = constant(f, product, width);
    product = is_signed ? OP2(SHIFT_RIGHT_ARITHMETIC, product, by)
                        : OP2(SHIFT_RIGHT_LOGICAL, product, by);
    return pestle_f_convert(f, product, dtype);
  }
  pv_t* x = as(f, a, PESTLE_U64);
  pv_t* high = as(f, mulhi_u64(f, x, as(f, b, PESTLE_U64)), dtype);
  if (!is_signed) return high;
  high = pestle_f_subtract(f, high, excess(f, a, b));
  return pestle_f_subtract(f, high, excess(f, b, a));
}
