// SPDX-License-Identifier: Apache-2.0
// A product with weights of a few bits in blocks: its weights are unpacked, converted, less
// their zero points, times their scales, and multiplied.
#include "ir/composite.h"

// [n, bytes] of ui8 as [n, blocks, block] of numbers.
static pv_t* unpack(pestle_formula_t* f, const pestle_node_t* node, pv_t* w,
                    int64_t blocks) {
  int64_t bits = PESTLE_NODE_I64(node, bits), each = 8 / bits;
  int64_t block = PESTLE_NODE_I64(node, block);
  const int64_t rows = w->type->dims[0];
  const int64_t wide[3] = {rows, w->type->dims[1], each};
  const int64_t dims[3] = {rows, blocks, block}, axes[2] = {0, 1};
  if (each > 1) {
    pestle_type_t type = {.dtype = PESTLE_U8, .rank = 3};
    for (int i = 0; i < 3; ++i)
      type.dims[i] = wide[i];
    pv_t* places = pestle_f_iota(f, &type, 2);
    pv_t* shifts = pestle_f_times(f, places, (double)bits);
    w = pestle_f_broadcast(f, w, 3, wide, (pestle_i64s_t){axes, 2});
    w = pestle_f_shift_right_logical(f, w, shifts);
    pv_t* mask = pestle_f_number(f, &type, (double)((1 << bits) - 1));
    w = pestle_f_and(f, w, mask);
  }
  return pestle_f_reshape(f, w, 3, dims);
}

pv_t* pestle_f_block_weights(pestle_formula_t* f, const pestle_node_t* node,
                             pv_t* const* operands, pestle_dtype_t compute) {
  int64_t bits = PESTLE_NODE_I64(node, bits);
  int64_t block = PESTLE_NODE_I64(node, block);
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* scales = pestle_node_operand(node, 2)->type;
  int64_t rows = scales->dims[0], blocks = scales->dims[1], axes[2] = {0, 1};
  pestle_type_t all = {compute, 3, {rows, blocks, block}};
  const int64_t flat[2] = {rows, blocks * block};
  pv_t* w = unpack(f, node, operands[0], blocks);
  w = pestle_f_convert(f, w, compute);
  pv_t* zero = pestle_f_number(f, &all, (double)(1 << (bits - 1)));
  if (node->operand_count > 3) {
    zero = pestle_f_convert(f, operands[2], compute);
    zero = pestle_f_broadcast_to(f, zero, &all, axes);
  }
  w = pestle_f_subtract(f, w, zero);
  pv_t* scale = pestle_f_convert(f, operands[1], compute);
  scale = pestle_f_broadcast_to(f, scale, &all, axes);
  w = pestle_f_reshape(f, pestle_f_multiply(f, w, scale), 2, flat);
  return pestle_f_slice_axis(f, w, 1, 0, x->dims[x->rank - 1]);
}

pv_t* pestle_decompose_block_dot(pestle_formula_t* f) {
  const pestle_node_t* node = f->of->node;
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type,
                      *result = node->results[0].type;
  int64_t rows = scales->dims[0];
  int64_t k = x->dims[x->rank - 1], m = 1;
  for (int32_t i = 0; i + 1 < x->rank; ++i)
    m *= x->dims[i];
  pestle_type_t product = {f->compute, 2, {m, rows}};
  const int64_t matrix[2] = {m, k};
  pv_t* operands[3] = {NULL};
  for (uint32_t i = 1; i < node->operand_count; ++i)
    operands[i - 1] = pestle_node_operand(node, i);
  pv_t* w = pestle_f_block_weights(f, node, operands, f->compute);
  pv_t* a = pestle_f_reshape(f, pestle_f_operand(f, 0, f->compute), 2, matrix);
  pv_t* y = pestle_f_dot(f, a, w, true, &product);
  y = pestle_f_reshape_to(f, y, result);
  return pestle_f_convert(f, y, result->dtype);
}
