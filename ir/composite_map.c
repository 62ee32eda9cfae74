// SPDX-License-Identifier: Apache-2.0
// map, reduce_precision and batch_norm_inference as formulas of core ops.
#include "base/half.h"
#include "base/mem.h"
#include "ir/composite.h"

// --- map ---

// A constant of the region, everywhere in |shape|.
static pv_t* spread_constant(pestle_formula_t* f, const pestle_elements_t* e,
                             pestle_type_t shape) {
  shape.dtype = e->type.dtype;
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {shape, e->data, pestle_dtype_size(e->type.dtype), true}};
  pv_t* out = NULL;
  if (!f->status) f->status = pestle_op_constant(&f->builder, &attrs, &out);
  return out;
}

static pv_t* mapped(pestle_formula_t* f, const pestle_block_t* block,
                    pv_t* const* made, pv_t* value) {
  if ((value->node ? value->node->block : value->block) == block) {
    return made[value->scratch];
  }
  const pestle_elements_t* e = pestle_value_constant(value);
  if (e) return spread_constant(f, e, f->of->shape);
  if (!f->status) {
    f->status = pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                                  "its region uses a value from around it; "
                                  "pass it as an operand");
  }
  return NULL;
}

static pv_t* map_node(pestle_formula_t* f, const pestle_node_t* node,
                      pv_t* const* made) {
  const pestle_elements_t* e = pestle_value_constant(&node->results[0]);
  bool known =
      pestle_op_is_scalar((pestle_op_t)node->op) ||
      pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_ELEMENTWISE;
  if (e) return spread_constant(f, e, f->of->shape);
  if (!known) {
    f->status = pestle_node_error(
        f->of->node, PESTLE_STATUS_UNSUPPORTED,
        "its region holds '%s'; it may hold scalar ops, converts and constants",
        pestle_op_info((pestle_op_t)node->op)->name);
    return NULL;
  }
  pestle_type_t type = f->of->shape;
  type.dtype = node->results[0].type->dtype;
  pv_t* args[3];
  for (uint32_t i = 0; i < node->operand_count && i < 3; ++i) {
    args[i] = mapped(f, node->block, made, pestle_node_operand(node, i));
  }
  return pestle_f_typed(f, (pestle_op_t)node->op, args, node->operand_count,
                        &type);
}

// The region's scalars become ops on whole tensors.
pv_t* pestle_decompose_map(pestle_formula_t* f) {
  const pestle_block_t* block = pestle_node_body(f->of->node, 0);
  size_t count = block->argument_count, next = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next)
    count += n->result_count;
  pestle_arena_t arena;
  pestle_arena_init(f->builder.module->arena.allocator, &arena);
  pv_t** made = PESTLE_ARENA_ARRAY(&arena, pv_t*, count + 1);
  pv_t* out = NULL;
  if (!made) f->status = PESTLE_OOM();
  for (uint32_t i = 0; i < block->argument_count && !f->status; ++i) {
    block->arguments[i]->scratch = next;
    made[next++] = pestle_node_operand(f->of->node, i);
  }
  for (pestle_node_t* n = block->first; n != block->last && !f->status;
       n = n->next) {
    n->results[0].scratch = next;
    made[next++] = map_node(f, n, made);
  }
  if (!f->status) {
    out = mapped(f, block, made, pestle_node_operand(block->last, 0));
  }
  pestle_arena_deinit(&arena);
  return out;
}

// --- reduce_precision ---

static pv_t* number(pestle_formula_t* f, pv_t* like, uint64_t bits) {
  if (!like) return NULL;
  pestle_elements_t e = {*like->type, &bits,
                         pestle_dtype_size(like->type->dtype), true};
  return spread_constant(f, &e, f->of->shape);
}

// To nearest even: adds just less than half of what is cut off, and one more
// where the last bit that stays is odd. A carry into the exponent is right.
static pv_t* round_mantissa(pestle_formula_t* f, pv_t* bits, unsigned cut) {
  uint64_t unit = UINT64_C(1) << cut;
  pv_t* odd = pestle_f_shift_right_logical(f, bits, number(f, bits, cut));
  odd = pestle_f_and(f, odd, number(f, bits, 1));
  bits = pestle_f_add(f, pestle_f_add(f, bits, number(f, bits, unit / 2 - 1)),
                      odd);
  return pestle_f_and(f, bits, number(f, bits, ~(unit - 1)));
}

// Exponents outside of what |exponent_bits| hold: infinity, or a zero.
static pv_t* clip_exponent(pestle_formula_t* f, pv_t* bits,
                           const pestle_float_format_t* format,
                           int64_t exponent_bits) {
  uint64_t sign = format->sign;
  uint64_t field = (sign - 1) & ~((UINT64_C(1) << format->mantissa_bits) - 1);
  uint64_t bias = (UINT64_C(1) << (format->exponent_bits - 1)) - 1;
  uint64_t reach = (UINT64_C(1) << (exponent_bits - 1)) - 1;
  pv_t* exponent = pestle_f_and(f, bits, number(f, bits, field));
  pv_t* zero = pestle_f_and(f, bits, number(f, bits, sign));
  pv_t* infinity = pestle_f_or(f, zero, number(f, bits, format->limit));
  pv_t* over = pestle_f_gt(
      f, exponent, number(f, bits, (bias + reach) << format->mantissa_bits));
  pv_t* under = pestle_f_le(
      f, exponent, number(f, bits, (bias - reach) << format->mantissa_bits));
  bits = pestle_f_select(f, over, infinity, bits);
  return pestle_f_select(f, under, zero, bits);
}

// On the bits, as integers; f8 as f32. A NaN stays one where the mantissa has
// room for it, and becomes infinity else.
pv_t* pestle_decompose_reduce_precision(pestle_formula_t* f) {
  pestle_dtype_t dtype = pestle_node_operand(f->of->node, 0)->type->dtype;
  bool wide = pestle_dtype_size(dtype) > 1;
  pv_t* x = pestle_f_operand(f, 0, wide ? dtype : PESTLE_F32);
  if (!x) return NULL;
  const pestle_float_format_t* format = pestle_float_format(x->type->dtype);
  int64_t exponent = PESTLE_NODE_I64(f->of->node, exponent_bits);
  int64_t mantissa = PESTLE_NODE_I64(f->of->node, mantissa_bits);
  pestle_type_t type = *x->type;
  type.dtype = pestle_dtype_unsigned(pestle_dtype_info(x->type->dtype)->bits);
  pv_t* bits = pestle_f_typed(f, PESTLE_OP_BITCAST_CONVERT, &x, 1, &type);
  pv_t* infinity = pestle_f_and(f, bits, number(f, bits, format->sign));
  infinity = pestle_f_or(f, number(f, bits, format->limit), infinity);
  pv_t* kept = mantissa ? bits : infinity;
  if (mantissa < format->mantissa_bits) {
    bits =
        round_mantissa(f, bits, (unsigned)(format->mantissa_bits - mantissa));
  }
  if (exponent < format->exponent_bits)
    bits = clip_exponent(f, bits, format, exponent);
  pv_t* is_nan = pestle_f_is_nan(f, x);
  bits = pestle_f_select(f, is_nan, kept, bits);
  pv_t* y = pestle_f_typed(f, PESTLE_OP_BITCAST_CONVERT, &bits, 1, x->type);
  return pestle_f_convert(f, y, dtype);
}

// --- batch_norm_inference ---

// Operand |index|, one number a feature, in the shape of x.
static pv_t* feature(pestle_formula_t* f, size_t index) {
  int64_t axis = PESTLE_NODE_I64(f->of->node, feature_index);
  return pestle_f_to_shape(f, pestle_f_operand(f, index, f->compute),
                           (pestle_i64s_t){&axis, 1});
}

// Divided and multiplied in the order of the spec, which is what its rounding
// is; canonicalisation and fusion see to the rest.
pv_t* pestle_decompose_batch_norm_inference(pestle_formula_t* f) {
  pv_t* x = pestle_f_operand(f, 0, f->compute);
  pv_t* variance = feature(f, 4);
  pv_t* deviation = pestle_f_sqrt(
      f, pestle_f_add(f, variance,
                      pestle_f_splat(f, variance,
                                     PESTLE_NODE_F64(f->of->node, epsilon))));
  pv_t* y =
      pestle_f_divide(f, pestle_f_subtract(f, x, feature(f, 3)), deviation);
  pv_t* offset = feature(f, 2);
  y = pestle_f_add(f, pestle_f_multiply(f, y, feature(f, 1)), offset);
  return pestle_f_convert(f, y,
                          pestle_node_operand(f->of->node, 0)->type->dtype);
}
