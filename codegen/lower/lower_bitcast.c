// SPDX-License-Identifier: Apache-2.0
// bitcast_convert. Between types of one width it is one expression. Between
// widths the wider element is cut up by shifts, its lowest bits first as they
// lie in memory, or put together:
//
//   y[i, p] = narrow(x[i] >> (p * width))       x[i]: as an unsigned integer
//   y[i] = x[i, 0] | x[i, 1] << width | ...
#include "codegen/lower/lower_internal.h"

static unsigned bits_of(pestle_dtype_t dtype) {
  return pestle_dtype_info(dtype)->bits;
}

// The unsigned integer that |dtype|'s bits are, of floats below a byte the byte;
// i1 stands for itself.
static pestle_dtype_t unsigned_of(pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
      pestle_dtype_is_sub_byte(dtype)) {
    return PESTLE_U8;
  }
  pestle_dtype_t number = pestle_dtype_unsigned(bits_of(dtype));
  return number ? number : dtype;
}

// What shifts of |dtype|'s bits are done in: whole bytes.
static pestle_dtype_t shifted_in(pestle_dtype_t dtype) {
  return bits_of(dtype) < 8 ? PESTLE_U8 : unsigned_of(dtype);
}

static const pestle_expr_t* bitcast(pestle_nest_t* nest, const pestle_expr_t* e,
                                    pestle_dtype_t dtype) {
  if (e->dtype == dtype) return e;
  pestle_expr_t* r = pestle_expr_make(nest, PESTLE_EXPR_BITCAST, dtype);
  r->args[0] = e;
  return r;
}

// The bits of |e| as a number of |wide|.
static const pestle_expr_t* to_number(pestle_nest_t* nest,
                                      const pestle_expr_t* e,
                                      pestle_dtype_t wide) {
  e = bitcast(nest, e, unsigned_of((pestle_dtype_t)e->dtype));
  return pestle_expr_cast(nest, e, wide);
}

// |dtype| out of the low bits of a number.
static const pestle_expr_t* from_number(pestle_nest_t* nest,
                                        const pestle_expr_t* e,
                                        pestle_dtype_t dtype) {
  if (dtype == PESTLE_I1) {  // a cast to i1 asks for != 0
    pestle_dtype_t wide = (pestle_dtype_t)e->dtype;
    const pestle_expr_t* one = pestle_expr_const(nest, wide, 0, 1);
    e = pestle_expr_op(nest, PESTLE_OP_AND, wide, e, one, NULL);
  }
  e = pestle_expr_cast(nest, e, unsigned_of(dtype));
  return bitcast(nest, e, dtype);
}

static const pestle_expr_t* cut(pestle_lower_t* lower,
                                const pestle_node_t* node,
                                pestle_index_t axes) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  const pestle_type_t* to = node->results[0].type;
  pestle_dtype_t wide = shifted_in(x->type->dtype);
  const pestle_expr_t* e =
      to_number(nest, pestle_lower_at(lower, x, axes), wide);
  pestle_expr_t* amount = pestle_expr_make(nest, PESTLE_EXPR_INDEX, wide);
  amount->affine = pestle_affine_scale(nest, axes[to->rank - 1],
                                       (int64_t)bits_of(to->dtype));
  e = pestle_expr_op(nest, PESTLE_OP_SHIFT_RIGHT_LOGICAL, wide, e, amount,
                     NULL);
  return from_number(nest, e, to->dtype);
}

static const pestle_expr_t* join(pestle_lower_t* lower,
                                 const pestle_node_t* node,
                                 pestle_index_t axes) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  const pestle_type_t* to = node->results[0].type;
  pestle_dtype_t wide = shifted_in(to->dtype);
  unsigned width = bits_of(x->type->dtype);
  const pestle_expr_t* sum = NULL;
  for (unsigned p = 0; p * width < bits_of(to->dtype); ++p) {
    axes[x->type->rank - 1] = pestle_affine_const(nest, p);
    const pestle_expr_t* part =
        to_number(nest, pestle_lower_at(lower, x, axes), wide);
    const pestle_expr_t* amount =
        pestle_expr_const(nest, wide, 0, (int64_t)(p * width));
    if (p) {
      part =
          pestle_expr_op(nest, PESTLE_OP_SHIFT_LEFT, wide, part, amount, NULL);
    }
    sum =
        sum ? pestle_expr_op(nest, PESTLE_OP_OR, wide, sum, part, NULL) : part;
  }
  return from_number(nest, sum, to->dtype);
}

pestle_status_t pestle_lower_bitcast(pestle_lower_t* lower,
                                     const pestle_node_t* node) {
  pestle_index_t axes;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_dtype_t to = node->results[0].type->dtype;
  unsigned from_bits = bits_of(x->type->dtype), to_bits = bits_of(to);
  if (from_bits != to_bits &&
      (pestle_dtype_is(to, PESTLE_KIND_COMPLEX) ||
       pestle_dtype_is(x->type->dtype, PESTLE_KIND_COMPLEX))) {
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "a bitcast between widths of complex numbers has "
                             "no kernel yet; use real and imaginary parts");
  }
  uint32_t stage = pestle_lower_map(lower, node, axes);
  if (lower->nest->failed) return NULL;
  const pestle_expr_t* body =
      from_bits > to_bits ? cut(lower, node, axes)
      : from_bits < to_bits
          ? join(lower, node, axes)
          : bitcast(lower->nest, pestle_lower_at(lower, x, axes), to);
  pestle_lower_set(lower, node, stage, body);
  return NULL;
}
