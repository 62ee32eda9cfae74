// SPDX-License-Identifier: Apache-2.0
// map, reduce_precision and batch_norm_inference as formulas of core ops.
#include "base/half.h"
#include "base/mem.h"
#include "ir/composite.h"

// --- map ---

// A constant of the region, everywhere in |shape|.
static pv_t* spread_constant(pestle_steps_t* s, const pestle_elements_t* e,
                             pestle_type_t shape) {
  shape.dtype = e->type.dtype;
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {shape, e->data, pestle_dtype_size(e->type.dtype), true}};
  pv_t* out = NULL;
  if (!s->status) s->status = pestle_op_constant(&s->builder, &attrs, &out);
  return out;
}

static pv_t* mapped(pestle_steps_t* s, const pestle_block_t* block,
                    pv_t* const* made, pv_t* value) {
  if ((value->node ? value->node->block : value->block) == block) {
    return made[value->scratch];
  }
  const pestle_elements_t* e = pestle_value_constant(value);
  if (e) return spread_constant(s, e, s->shape);
  if (!s->status) {
    s->status = pestle_node_error(s->node, PESTLE_STATUS_UNSUPPORTED,
                                  "its region uses a value from around it; "
                                  "pass it as an operand");
  }
  return NULL;
}

static pv_t* map_node(pestle_steps_t* s, const pestle_node_t* node,
                      pv_t* const* made) {
  const pestle_elements_t* e = pestle_value_constant(&node->results[0]);
  bool known =
      pestle_op_is_scalar((pestle_op_t)node->op) ||
      pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_ELEMENTWISE;
  if (e) return spread_constant(s, e, s->shape);
  if (!known) {
    s->status = pestle_node_error(
        s->node, PESTLE_STATUS_UNSUPPORTED,
        "its region holds '%s'; it may hold scalar ops, converts and constants",
        pestle_op_info((pestle_op_t)node->op)->name);
    return NULL;
  }
  pestle_type_t type = s->shape;
  type.dtype = node->results[0].type->dtype;
  pv_t* args[3];
  for (uint32_t i = 0; i < node->operand_count && i < 3; ++i) {
    args[i] = mapped(s, node->block, made, pestle_node_operand(node, i));
  }
  return pestle_step_typed(s, (pestle_op_t)node->op, args, node->operand_count,
                           &type);
}

// The region's scalars become ops on whole tensors.
pv_t* pestle_decompose_map(pestle_steps_t* s) {
  const pestle_block_t* block = pestle_node_body(s->node, 0);
  size_t count = block->argument_count, next = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next)
    count += n->result_count;
  pestle_arena_t arena;
  pestle_arena_init(s->builder.module->arena.allocator, &arena);
  pv_t** made = PESTLE_ARENA_ARRAY(&arena, pv_t*, count + 1);
  pv_t* out = NULL;
  if (!made) s->status = PESTLE_OOM();
  for (uint32_t i = 0; i < block->argument_count && !s->status; ++i) {
    block->arguments[i]->scratch = next;
    made[next++] = pestle_node_operand(s->node, i);
  }
  for (pestle_node_t* n = block->first; n != block->last && !s->status;
       n = n->next) {
    n->results[0].scratch = next;
    made[next++] = map_node(s, n, made);
  }
  if (!s->status) {
    out = mapped(s, block, made, pestle_node_operand(block->last, 0));
  }
  pestle_arena_deinit(&arena);
  return out;
}

// --- reduce_precision ---

static pv_t* number(pestle_steps_t* s, pv_t* like, uint64_t bits) {
  if (!like) return NULL;
  pestle_elements_t e = {*like->type, &bits,
                         pestle_dtype_size(like->type->dtype), true};
  return spread_constant(s, &e, s->shape);
}

// To nearest even: adds just less than half of what is cut off, and one more
// where the last bit that stays is odd. A carry into the exponent is right.
static pv_t* round_mantissa(pestle_steps_t* s, pv_t* bits, unsigned cut) {
  uint64_t unit = UINT64_C(1) << cut;
  pv_t* odd = pestle_step2(s, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits,
                           number(s, bits, cut));
  odd = pestle_step2(s, PESTLE_OP_AND, odd, number(s, bits, 1));
  bits = PESTLE_ADD(s, PESTLE_ADD(s, bits, number(s, bits, unit / 2 - 1)), odd);
  return pestle_step2(s, PESTLE_OP_AND, bits, number(s, bits, ~(unit - 1)));
}

// Exponents outside of what |exponent_bits| hold: infinity, or a zero.
static pv_t* clip_exponent(pestle_steps_t* s, pv_t* bits,
                           const pestle_float_format_t* f,
                           int64_t exponent_bits) {
  uint64_t sign = f->sign;
  uint64_t field = (sign - 1) & ~((UINT64_C(1) << f->mantissa_bits) - 1);
  uint64_t bias = (UINT64_C(1) << (f->exponent_bits - 1)) - 1;
  uint64_t reach = (UINT64_C(1) << (exponent_bits - 1)) - 1;
  pv_t* exponent = pestle_step2(s, PESTLE_OP_AND, bits, number(s, bits, field));
  pv_t* zero = pestle_step2(s, PESTLE_OP_AND, bits, number(s, bits, sign));
  pv_t* infinity =
      pestle_step2(s, PESTLE_OP_OR, zero, number(s, bits, f->limit));
  pv_t* over =
      pestle_step2(s, PESTLE_OP_GT, exponent,
                   number(s, bits, (bias + reach) << f->mantissa_bits));
  pv_t* under =
      pestle_step2(s, PESTLE_OP_LE, exponent,
                   number(s, bits, (bias - reach) << f->mantissa_bits));
  bits = pestle_step3(s, PESTLE_OP_SELECT, over, infinity, bits);
  return pestle_step3(s, PESTLE_OP_SELECT, under, zero, bits);
}

// On the bits, as integers; f8 as f32. A NaN stays one where the mantissa has
// room for it, and becomes infinity else.
pv_t* pestle_decompose_reduce_precision(pestle_steps_t* s) {
  pestle_dtype_t dtype = pestle_node_operand(s->node, 0)->type->dtype;
  bool wide = pestle_dtype_size(dtype) > 1;
  pv_t* x = pestle_step_operand(s, 0, wide ? dtype : PESTLE_F32);
  if (!x) return NULL;
  const pestle_float_format_t* f = pestle_float_format(x->type->dtype);
  int64_t exponent = PESTLE_NODE_I64(s->node, exponent_bits);
  int64_t mantissa = PESTLE_NODE_I64(s->node, mantissa_bits);
  pestle_type_t type = *x->type;
  type.dtype = pestle_dtype_unsigned(pestle_dtype_info(x->type->dtype)->bits);
  pv_t* bits = pestle_step_typed(s, PESTLE_OP_BITCAST_CONVERT, &x, 1, &type);
  pv_t* infinity = pestle_step2(
      s, PESTLE_OP_OR, number(s, bits, f->limit),
      pestle_step2(s, PESTLE_OP_AND, bits, number(s, bits, f->sign)));
  pv_t* kept = mantissa ? bits : infinity;
  if (mantissa < f->mantissa_bits) {
    bits = round_mantissa(s, bits, (unsigned)(f->mantissa_bits - mantissa));
  }
  if (exponent < f->exponent_bits) bits = clip_exponent(s, bits, f, exponent);
  pv_t* is_nan = pestle_step1(s, PESTLE_OP_IS_NAN, x);
  bits = pestle_step3(s, PESTLE_OP_SELECT, is_nan, kept, bits);
  pv_t* y = pestle_step_typed(s, PESTLE_OP_BITCAST_CONVERT, &bits, 1, x->type);
  return pestle_step_convert(s, y, dtype);
}

// --- batch_norm_inference ---

// Operand |index|, one number a feature, in the shape of x.
static pv_t* feature(pestle_steps_t* s, size_t index) {
  int64_t axis = PESTLE_NODE_I64(s->node, feature_index);
  return pestle_step_broadcast(s, pestle_step_operand(s, index, s->compute),
                               (pestle_i64s_t){&axis, 1});
}

// Divided and multiplied in the order of the spec, which is what its rounding
// is; canonicalisation and fusion see to the rest.
pv_t* pestle_decompose_batch_norm_inference(pestle_steps_t* s) {
  pv_t* x = pestle_step_operand(s, 0, s->compute);
  pv_t* variance = feature(s, 4);
  pv_t* deviation = pestle_step1(
      s, PESTLE_OP_SQRT,
      PESTLE_ADD(
          s, variance,
          pestle_step_splat(s, variance, PESTLE_NODE_F64(s->node, epsilon))));
  pv_t* y = PESTLE_DIV(s, PESTLE_SUB(s, x, feature(s, 3)), deviation);
  y = PESTLE_ADD(s, PESTLE_MUL(s, y, feature(s, 1)), feature(s, 2));
  return pestle_step_convert(s, y,
                             pestle_node_operand(s->node, 0)->type->dtype);
}
