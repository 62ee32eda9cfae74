// SPDX-License-Identifier: Apache-2.0
// x of products with weights of a few bits as bytes with a scale for each 32 of them, where a
// target whose lanes run side by side multiplies bytes: a group in front of that of the
// products, with the norm that makes x (codegen/direct/direct_block_bytes.c). The bytes lie in
// the order in which the words of weights want them. Of few numbers there is no such group: the
// kernel of the products makes them.
//
//   %n = pestle.rms_norm(%x, %g)
//   %y = pestle.block_dot(%n, %w, %s) {bits = 4, accuracy = 4}
//   ->
//   %q, %r = pestle.fusion(%x, %g) { .. }    // q: i8 [rows, words, parts, 4], r [rows, scales]
//   %y = pestle.fusion(%q, %r, %w, %s) { %n = %q * %r;  pestle.block_dot(%n, ..) }
//
// Of more rows than a team of lanes takes (pestle_pass_block_matrix()) the weights become floats
// in a group of their own, and the matrix units multiply: in x's type, or at level 4 of f32 in
// bf16, which is nearer than bytes are.
//
//   %w = pestle.fusion(%p, %s) { .. }        // [n, k], codegen/direct/direct_block_weights.c
//   %y = dot_general %n, %w
#include "ir/composite.h"
#include "passes/util.h"

enum { X_BLOCK = 32, WORD_BYTES = 4 };

typedef struct lanes_t {
  pestle_formula_t* f;
  const pestle_node_t* node;
  const pestle_type_t* type;  // of x
  int64_t bits, parts, size;  // numbers of x with one scale
  int64_t rows, depth, whole, words;
} lanes_t;

static lanes_t make(pestle_formula_t* f, const pestle_node_t* node) {
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type;
  int64_t block = PESTLE_NODE_I64(node, block);
  lanes_t l = {.f = f,
               .node = node,
               .type = x,
               .bits = PESTLE_NODE_I64(node, bits),
               .size = block < X_BLOCK ? block : X_BLOCK,
               .depth = x->dims[x->rank - 1],
               .whole = scales->dims[1] * block};
  l.parts = 8 / l.bits;
  l.rows = pestle_type_count(x) / l.depth;
  l.words = l.whole * l.bits / 32;
  return l;
}

// --- x as bytes ---

// |a| [rows, n] for each of the |size| numbers that it is of.
static pestle_value_t* spread(const lanes_t* l, pestle_value_t* a) {
  const int64_t dims[3] = {l->rows, l->whole / l->size, l->size},
                axes[2] = {0, 1};
  return pestle_f_broadcast(l->f, a, 3, dims, (pestle_i64s_t){axes, 2});
}

static void quantise(const lanes_t* l, pestle_value_t* x, pestle_value_t** q,
                     pestle_value_t** scale) {
  pestle_formula_t* f = l->f;
  const int64_t flat[2] = {l->rows, l->depth}, axis = 2;
  const int64_t blocks[3] = {l->rows, l->whole / l->size, l->size};
  const int64_t apart[4] = {l->rows, l->words, WORD_BYTES, l->parts};
  const int64_t order[4] = {0, 1, 3, 2};
  x = pestle_f_convert(f, pestle_f_reshape(f, x, 2, flat), PESTLE_F32);
  if (l->whole > l->depth) x = pestle_f_pad_end(f, x, 1, l->whole - l->depth);
  x = pestle_f_reshape(f, x, 3, blocks);
  pestle_value_t* most = pestle_f_abs(f, x);
  most =
      pestle_f_reduce(f, PESTLE_OP_MAXIMUM, most, (pestle_i64s_t){&axis, 1}, 0);
  pestle_value_t* least = pestle_f_splat(f, most, 1e-30);
  pestle_value_t* is_some = pestle_f_gt(f, most, least);
  pestle_value_t* rate = pestle_f_splat(f, most, 127);
  rate = pestle_f_divide(f, rate, most);
  pestle_value_t* none = pestle_f_splat(f, most, 0);
  rate = pestle_f_select(f, is_some, rate, none);
  x = pestle_f_multiply(f, x, spread(l, rate));
  x = pestle_f_convert(f, pestle_f_round_nearest_even(f, x), PESTLE_I8);
  x = pestle_f_reshape(f, x, 4, apart);
  *q = pestle_f_transpose(f, x, order);
  *scale = pestle_f_times(f, most, 1.0 / 127);
}

// The other way.
static pestle_value_t* restore(const lanes_t* l, pestle_value_t* q,
                               pestle_value_t* scale) {
  pestle_formula_t* f = l->f;
  const int64_t blocks[3] = {l->rows, l->whole / l->size, l->size};
  const int64_t flat[2] = {l->rows, l->whole}, order[4] = {0, 1, 3, 2};
  pestle_value_t* x =
      pestle_f_reshape(f, pestle_f_transpose(f, q, order), 3, blocks);
  x = pestle_f_multiply(f, pestle_f_convert(f, x, PESTLE_F32),
                        spread(l, scale));
  x = pestle_f_reshape(f, x, 2, flat);
  x = pestle_f_slice_axis(f, x, 1, 0, l->depth);
  x = pestle_f_convert(f, x, l->type->dtype);
  return pestle_f_reshape_to(f, x, l->type);
}

// --- The group ---

static pestle_status_t make_bytes(pestle_builder_t* at, pestle_node_t* product,
                                  const pestle_node_t* norm,
                                  pestle_node_t** out_group) {
  pestle_value_t* operands[2] = {pestle_node_operand(product, 0), NULL};
  pestle_value_t *x[2], *results[2];
  pestle_builder_t inside = {.module = at->module, .loc = product->loc};
  pestle_region_t* region;
  size_t count = norm ? 2 : 1;
  for (uint32_t i = 0; norm && i < 2; ++i)
    operands[i] = pestle_node_operand(norm, i);
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i)
    status = pestle_block_add_argument(inside.module, inside.block,
                                       operands[i]->type, &x[i]);
  if (!status) {
    pestle_formula_t g = pestle_formula_make(inside);
    lanes_t l = make(&g, product);
    if (norm) x[0] = pestle_f_like(&g, norm, x, NULL);
    quantise(&l, x[0], &results[0], &results[1]);
    status = g.status;
    if (!status) status = pestle_op_return(&g.builder, results, 2, NULL);
  }
  if (!status) {
    return pestle_pass_make_group(at, "block_bytes", operands, count, region,
                                  out_group);
  }
  pestle_region_discard(region);
  return status;
}

pestle_status_t pestle_pass_block_bytes(pestle_node_t* product,
                                        const pestle_node_t* norm,
                                        pestle_value_t** out_bytes,
                                        pestle_value_t** out_rates) {
  pestle_builder_t at = pestle_builder_before(product);
  pestle_node_t* group;
  PESTLE_TRY(make_bytes(&at, product, norm, &group));
  *out_bytes = &group->results[0];
  *out_rates = &group->results[1];
  return NULL;
}

pestle_status_t pestle_pass_block_x(pestle_builder_t* at,
                                    const pestle_node_t* product,
                                    pestle_value_t* bytes,
                                    pestle_value_t* rates,
                                    pestle_value_t** out_x) {
  pestle_formula_t f = pestle_formula_make(*at);
  lanes_t l = make(&f, product);
  *out_x = restore(&l, bytes, rates);
  PESTLE_TRY(f.status);
  *at = f.builder;
  return NULL;
}

// --- Many rows ---

static pestle_status_t fill_weights(pestle_builder_t* inside,
                                    const pestle_node_t* product,
                                    pestle_value_t* const* operands,
                                    pestle_dtype_t dtype) {
  pestle_value_t* x[3] = {NULL};
  for (uint32_t i = 1; i < product->operand_count; ++i)
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         operands[i - 1]->type, &x[i - 1]));
  pestle_formula_t f = pestle_formula_make(*inside);
  pestle_value_t* w = pestle_f_block_weights(&f, product, x, PESTLE_F32);
  w = pestle_f_convert(&f, w, dtype);
  PESTLE_TRY(f.status);
  *inside = f.builder;
  return pestle_op_return(inside, &w, 1, NULL);
}

static pestle_status_t make_weights(pestle_formula_t* f, pestle_node_t* product,
                                    pestle_dtype_t dtype,
                                    pestle_value_t** out_weights) {
  pestle_builder_t inside = {.module = f->builder.module, .loc = product->loc};
  pestle_value_t* operands[3] = {NULL};
  pestle_region_t* region;
  pestle_node_t* group = NULL;
  for (uint32_t i = 1; i < product->operand_count; ++i)
    operands[i - 1] = pestle_node_operand(product, i);
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_status_t status = fill_weights(&inside, product, operands, dtype);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  PESTLE_TRY(pestle_pass_make_group(&f->builder, "block_weights", operands,
                                    product->operand_count - 1, region,
                                    &group));
  *out_weights = &group->results[0];
  return NULL;
}

pestle_status_t pestle_pass_block_matrix(pestle_node_t* product) {
  pestle_formula_t f = pestle_formula_before(product);
  pestle_value_t* x = pestle_node_operand(product, 0);
  const pestle_type_t* type = product->results[0].type;
  lanes_t l = make(&f, product);
  const int64_t matrix[2] = {l.rows, l.depth};
  bool is_coarse =
      x->type->dtype == PESTLE_F32 && PESTLE_NODE_I64(product, accuracy) == 4;
  pestle_dtype_t dtype = is_coarse ? PESTLE_BF16 : x->type->dtype;
  pestle_type_t all = {type->dtype, 2, {l.rows, type->dims[type->rank - 1]}};
  pestle_value_t* w;
  PESTLE_TRY(make_weights(&f, product, dtype, &w));
  x = pestle_f_convert(&f, pestle_f_reshape(&f, x, 2, matrix), dtype);
  pestle_value_t* y = pestle_f_dot(&f, x, w, true, &all);
  y = pestle_f_reshape_to(&f, y, type);
  PESTLE_TRY(f.status);
  pestle_pass_replace(product, &y);
  return NULL;
}
