// SPDX-License-Identifier: Apache-2.0
// Products of few rows with weights of a few bits on targets whose lanes run side by side: a
// group each (codegen/direct/direct_block_dot_lanes.c). Where the op says that x may be bytes
// and the target multiplies bytes, x becomes bytes in front of the group, with a scale for
// each 32 of them, once for all products of it, in the order in which the words of weights
// want them.
//
//   %n = pestle.rms_norm(%x, %g)
//   %y = pestle.block_dot(%n, %w, %s) {bits = 4, accuracy = 4}
//   ->
//   %q, %r = pestle.fusion(%x, %g) { .. }    // q: i8 [rows, words, parts, 4], r [rows, scales]
//   %y = pestle.fusion(%q, %r, %w, %s) { %n = %q * %r;  pestle.block_dot(%n, ..) }
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

// The other way, within the group.
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

static pestle_status_t fill(pestle_builder_t* inside, const pestle_node_t* node,
                            pestle_value_t* const* operands, size_t count,
                            bool is_bytes) {
  pestle_value_t *arguments[6], *values[4];
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         operands[i]->type, &arguments[i]));
  pestle_formula_t f = pestle_formula_make(*inside);
  lanes_t l = make(&f, node);
  values[0] = is_bytes ? restore(&l, arguments[0], arguments[1]) : arguments[0];
  for (uint32_t i = 1; i < node->operand_count; ++i)
    values[i] = arguments[count - node->operand_count + i];
  pestle_value_t* y = pestle_f_like(&f, node, values, NULL);
  PESTLE_TRY(f.status);
  *inside = f.builder;
  return pestle_op_return(inside, &y, 1, NULL);
}

static pestle_status_t create(pestle_formula_t* f, const char* label,
                              pestle_value_t* const* operands, size_t count,
                              pestle_region_t* region,
                              pestle_node_t** out_group) {
  pestle_attr_t attr = PESTLE_SET_STR(label, label);
  pestle_node_spec_t spec = {.op = PESTLE_OP_FUSION,
                             .operands = operands,
                             .operand_count = count,
                             .attrs = &attr,
                             .attr_count = 1,
                             .regions = &region,
                             .region_count = 1};
  return pestle_node_create(&f->builder, &spec, out_group);
}

static pestle_status_t group(pestle_formula_t* f, pestle_node_t* node,
                             pestle_value_t* const* operands, size_t count,
                             bool is_bytes) {
  pestle_builder_t inside = {.module = f->builder.module, .loc = node->loc};
  pestle_region_t* region;
  pestle_node_t* made;
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_status_t status = fill(&inside, node, operands, count, is_bytes);
  if (!status) status = create(f, "block_dots", operands, count, region, &made);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  pestle_value_replace_all_uses(&node->results[0], &made->results[0]);
  pestle_node_erase(node);
  return NULL;
}

static bool is_alike(const pestle_node_t* a, const pestle_node_t* b) {
  return PESTLE_NODE_I64(a, bits) == PESTLE_NODE_I64(b, bits) &&
         PESTLE_NODE_I64(a, block) == PESTLE_NODE_I64(b, block);
}

// The last x that became bytes. |like| is a product that is gone but for its attributes.
typedef struct made_t {
  const pestle_value_t* x;
  pestle_node_t* norm;  // that is within, or NULL
  pestle_node_t like;
  pestle_value_t *q, *scale;
} made_t;

// The norm over the last axis that makes |x| for such products alone, or NULL.
static pestle_node_t* norm_of(const pestle_pass_context_t* ctx,
                              const pestle_value_t* x,
                              const pestle_node_t* product) {
  pestle_node_t* norm = x->node;
  if (!norm || norm->op != PESTLE_OP_RMS_NORM) return NULL;
  pestle_i64s_t dims = PESTLE_NODE_I64S(norm, dimensions);
  const pestle_type_t* scale = pestle_node_operand(norm, 1)->type;
  if (norm->block != product->block || dims.count != 1 ||
      dims.data[0] != x->type->rank - 1 || scale->rank != 1 ||
      pestle_node_operand(norm, 0)->type->dtype != x->type->dtype) {
    return NULL;
  }
  for (const pestle_use_t* u = x->uses; u; u = u->next) {
    const pestle_node_t* user = u->user;
    if (user->op != PESTLE_OP_BLOCK_DOT || pestle_node_operand(user, 0) != x ||
        user->block != product->block || !is_alike(user, product) ||
        PESTLE_NODE_I64(user, accuracy) != 4 ||
        !pestle_pass_is_whole(ctx, user)) {
      return NULL;
    }
  }
  return norm;
}

// Makes x bytes in a group of their own, with the norm in front where there is one.
static pestle_status_t make_bytes(pestle_formula_t* f, pestle_node_t* product,
                                  const pestle_node_t* norm,
                                  pestle_node_t** out_group) {
  pestle_value_t* operands[2] = {pestle_node_operand(product, 0), NULL};
  pestle_value_t *x[2], *results[2];
  pestle_builder_t inside = {.module = f->builder.module, .loc = product->loc};
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
  if (!status)
    status = create(f, "block_bytes", operands, count, region, out_group);
  if (status) pestle_region_discard(region);
  return status;
}

static pestle_status_t replace(pestle_pass_context_t* ctx, pestle_node_t* node,
                               made_t* made) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t *operands[6], *x = pestle_node_operand(node, 0);
  size_t count = 0;
  bool is_bytes = PESTLE_NODE_I64(node, accuracy) == 4 &&
                  ctx->caps->op_dtypes[PESTLE_KIR_DOT4] != 0;
  if (is_bytes && (made->x != x || !is_alike(&made->like, node))) {
    pestle_node_t* bytes;
    pestle_node_t* norm = norm_of(ctx, x, node);
    PESTLE_TRY(make_bytes(&f, node, norm, &bytes));
    *made = (made_t){x, norm, *node, &bytes->results[0], &bytes->results[1]};
  }
  if (is_bytes) {
    operands[count++] = made->q;
    operands[count++] = made->scale;
  } else {
    operands[count++] = x;
  }
  for (uint32_t i = 1; i < node->operand_count; ++i)
    operands[count++] = pestle_node_operand(node, i);
  PESTLE_TRY(group(&f, node, operands, count, is_bytes));
  if (is_bytes && made->norm && !x->uses) {
    pestle_node_set_heir(made->norm, made->q->node);
    pestle_node_erase(made->norm);
    *made = (made_t){NULL};
  }
  return NULL;
}

pestle_status_t pestle_pass_whole_block_dots_lanes(pestle_pass_context_t* ctx,
                                                   pestle_block_t* block,
                                                   bool* out_changed) {
  made_t made = {NULL};
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_BLOCK_DOT || !pestle_pass_is_whole(ctx, n)) continue;
    PESTLE_TRY(replace(ctx, n, &made));
    *out_changed = true;
  }
  return NULL;
}
