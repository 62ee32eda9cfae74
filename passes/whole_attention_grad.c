// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention of 16-bit floats on a target whose subgroups multiply small
// matrices becomes groups that code generation writes as a whole
// (codegen/direct/direct_attention_grad_lanes.c): one by rows, which also says of each row
// what the others need, and one by keys and values, or one for each of these. A bias or mask
// that follows from places (attention_limits.c) is made inside, as the kernels want it.
//
//   %0:3 = pestle.attention_grad(%q, %k, %v, %y, %c)
//   ->
//   %0:2 = pestle.fusion(%q, %k, %v, %y, %c) { ..  %dq, %stats }
//   %1:2 = pestle.fusion(%q, %k, %v, %y, %c, %stats) { ..  %dk, %dv }
#include <math.h>

#include "base/bits.h"
#include "ir/attention.h"
#include "passes/util.h"

#define LOG2E 0x1.71547652b82fep+0

enum {
  LEAST_EXTENT = 16,  // rows and keys
  RUN = 8,            // columns come in such runs
  FRAGMENT = 16,      // and go into registers in these
  MOST_WIDTH = 256,
  LANES = 128,
  SUBGROUP = 32,
  // Rows that a group owns, and of two blocks that it goes over, at least.
  OWN = 64,
  BLOCKS = 32,
  MOST_SUMS = 320,  // columns of both sums of a kernel
  ROW_BLOCK = 128,  // rows of which something is said come in such blocks
  Y = 3,
  C,
  OPERANDS,
  MOST_OPERANDS = 8,
  GRADIENTS = 3,
};

static int64_t padded(int64_t columns) {
  return (int64_t)pestle_align_up((size_t)columns, FRAGMENT);
}

static bool has_dtypes(const pestle_node_t* node) {
  pestle_dtype_t dtype = pestle_node_operand(node, 0)->type->dtype;
  size_t bias = pestle_attention_bias(node);
  for (uint32_t i = 1; i < OPERANDS; ++i) {
    if (pestle_node_operand(node, i)->type->dtype != dtype) return false;
  }
  if (!bias) return true;
  pestle_dtype_t of_bias = pestle_node_operand(node, bias)->type->dtype;
  return of_bias == PESTLE_F32 || of_bias == dtype;
}

bool pestle_pass_fits_attention_grad(const pestle_pass_context_t* ctx,
                                     const pestle_node_t* node) {
  const pestle_target_caps_t* caps = ctx->caps;
  if (node->op != PESTLE_OP_ATTENTION_GRAD || node->result_count != GRADIENTS)
    return false;
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *v = pestle_node_operand(node, 2)->type;
  int64_t rows = q->dims[q->rank - 2], depth = q->dims[q->rank - 1];
  int64_t keys = v->dims[v->rank - 2], width = v->dims[v->rank - 1];
  int64_t bytes = (padded(depth) + padded(width) + 2 * RUN) * (OWN + BLOCKS) *
                  (int64_t)sizeof(uint16_t);
  // What hides a row by both is not what hides it by one.
  bool has_both = pestle_attention_bias(node) && pestle_attention_mask(node);
  return has_dtypes(node) && !has_both &&
         pestle_pass_has_units(ctx, q->dtype) && caps->subgroup == SUBGROUP &&
         caps->max_group_lanes >= LANES && pestle_type_count(q) > 0 &&
         rows >= LEAST_EXTENT && keys >= LEAST_EXTENT && depth % RUN == 0 &&
         width % RUN == 0 && depth > 0 && width > 0 && depth <= MOST_WIDTH &&
         width <= MOST_WIDTH && bytes <= (int64_t)caps->scratch_bytes;
}

// --- Bodies ---

typedef struct groups_t {
  pestle_node_t* node;
  pestle_builder_t builder;
  pestle_value_t* operands[MOST_OPERANDS];
  size_t count;
  bool is_limited;  // what hides keys follows from places
  pestle_attention_limits_t limits;
} groups_t;

typedef struct body_t {
  pestle_builder_t builder;
  pestle_region_t* region;
  pestle_value_t* arguments[MOST_OPERANDS];
  pestle_value_t* mask;  // made in it, or NULL
} body_t;

static pestle_status_t fill_in(const groups_t* g, body_t* b) {
  for (size_t i = 0; i < g->count; ++i)
    PESTLE_TRY(pestle_block_add_argument(b->builder.module, b->builder.block,
                                         g->operands[i]->type,
                                         &b->arguments[i]));
  if (!g->is_limited) return NULL;
  const pestle_type_t *q = g->operands[0]->type, *k = g->operands[1]->type;
  pestle_formula_t f = pestle_formula_make(b->builder);
  b->mask = pestle_attention_limited(&f, q->rank, q->dims[q->rank - 2],
                                     k->dims[k->rank - 2], g->limits);
  b->builder = f.builder;
  return f.status;
}

static pestle_status_t begin(const groups_t* g, body_t* b) {
  pestle_module_t* module = g->builder.module;
  *b = (body_t){.builder = {.module = module, .loc = g->node->loc}};
  PESTLE_TRY(
      pestle_region_create(module, NULL, 0, &b->region, &b->builder.block));
  pestle_status_t status = fill_in(g, b);
  if (status) pestle_region_discard(b->region);
  return status;
}

static pestle_value_t* sum_last(pestle_formula_t* f, pestle_op_t op,
                                pestle_value_t* x, double from) {
  if (!x) return NULL;
  int64_t last = x->type->rank - 1;
  return pestle_f_reduce(f, op, x, (pestle_i64s_t){&last, 1}, from);
}

// Of each row its maximum, one over the sum of its weights, and the sum of weights times
// their cotangents, f32 [3, heads, rows]; 0 behind the last row.
static pestle_value_t* make_stats(pestle_formula_t* f,
                                  const pestle_node_t* node, const body_t* body,
                                  int64_t rows) {
  pestle_value_t* const* arguments = body->arguments;
  pestle_value_t *values[PESTLE_ATTENTION_VALUES], *parts[GRADIENTS];
  size_t bias = pestle_attention_bias(node), mask = pestle_attention_mask(node);
  pestle_attention_parts_t a;
  for (int i = 0; i <= PESTLE_ATTENTION_V; ++i)
    values[i] = arguments[i];
  values[PESTLE_ATTENTION_BIAS] = bias ? arguments[bias] : NULL;
  values[PESTLE_ATTENTION_MASK] = mask ? arguments[mask] : NULL;
  if (body->mask) {
    pestle_type_t type = *body->mask->type;
    type.dtype = PESTLE_F32;
    pestle_value_t* zero = pestle_f_number(f, &type, 0);
    pestle_value_t* low = pestle_f_number(f, &type, -INFINITY);
    values[PESTLE_ATTENTION_BIAS] = pestle_f_select(f, body->mask, zero, low);
    values[PESTLE_ATTENTION_MASK] = NULL;
    bias = 0;
  }
  f->compute = PESTLE_F32;
  pestle_attention_parts(f, node, values, &a);
  pestle_value_t* x = pestle_attention_scores(&a);
  pestle_value_t* most = sum_last(f, PESTLE_OP_MAXIMUM, x, -INFINITY);
  if (!most) return NULL;
  int64_t axes[PESTLE_MAX_RANK];
  for (int64_t d = 0; d < PESTLE_MAX_RANK; ++d)
    axes[d] = d;
  pestle_value_t* spread = pestle_f_broadcast_to(f, most, &a.scores, axes);
  pestle_value_t* w = pestle_f_subtract(f, x, spread);
  w = pestle_f_exponential(f, w);
  pestle_value_t* total = sum_last(f, PESTLE_OP_ADD, w, 0);
  pestle_value_t* c = pestle_attention_wide(&a, arguments[C]);
  pestle_value_t* dw = c ? pestle_f_dot(f, c, a.v, true, &a.scores) : NULL;
  pestle_value_t* reach = pestle_f_multiply(f, w, dw);
  reach = sum_last(f, PESTLE_OP_ADD, reach, 0);
  if (!total || !reach) return NULL;
  parts[0] = pestle_f_times(f, most, bias ? 1 : LOG2E);
  pestle_value_t* one = pestle_f_splat(f, total, 1);
  parts[1] = pestle_f_divide(f, one, total);
  parts[2] = pestle_f_divide(f, reach, total);
  pestle_value_t* all = pestle_f_stack(f, parts, GRADIENTS);
  if (!all) return NULL;
  const pestle_type_t* type = all->type;
  int64_t own = type->dims[type->rank - 1];
  int64_t dims[] = {GRADIENTS, pestle_type_count(type) / (GRADIENTS * own),
                    own};
  all = pestle_f_reshape(f, all, 3, dims);
  return pestle_f_pad_end(f, all, 2, rows - own);
}

// Ends |b| with gradients [first, last) of |g->node|, and with |more|, which may be NULL.
static pestle_status_t finish(const groups_t* g, uint32_t first, uint32_t last,
                              pestle_value_t* more, body_t* b) {
  pestle_value_t *results[GRADIENTS + 1], *operands[MOST_OPERANDS];
  size_t count = 0, given = g->node->operand_count;
  for (size_t i = 0; i < given; ++i)
    operands[i] = b->arguments[i];
  if (b->mask) {
    given = OPERANDS;
    operands[given++] = b->mask;
  }
  // What hides by places hides whole weights.
  double masked = b->mask ? -INFINITY : PESTLE_NODE_F64(g->node, masked);
  pestle_attr_t attrs[] = {
      PESTLE_SET_F64(scale, PESTLE_NODE_F64(g->node, scale)),
      PESTLE_SET_F64(masked, masked)};
  pestle_formula_t f = pestle_formula_make(b->builder);
  pestle_node_t* node =
      pestle_f_node(&f, &(pestle_node_spec_t){.op = PESTLE_OP_ATTENTION_GRAD,
                                              .operands = operands,
                                              .operand_count = given,
                                              .attrs = attrs,
                                              .attr_count = 2});
  b->builder = f.builder;
  PESTLE_TRY(f.status);
  for (uint32_t r = first; r < last; ++r)
    results[count++] = &node->results[r];
  if (more) results[count++] = more;
  return pestle_op_return(&b->builder, results, count, NULL);
}

// --- Groups ---

static pestle_status_t add_rows(groups_t* g, pestle_node_t** out) {
  const pestle_type_t* q = g->operands[0]->type;
  int64_t rows =
      (int64_t)pestle_align_up((size_t)q->dims[q->rank - 2], ROW_BLOCK);
  body_t b;
  PESTLE_TRY(begin(g, &b));
  pestle_formula_t f = pestle_formula_make(b.builder);
  pestle_value_t* stats = make_stats(&f, g->node, &b, rows);
  b.builder = f.builder;
  pestle_status_t status = f.status;
  if (!status) status = finish(g, 0, 1, stats, &b);
  if (status) {
    pestle_region_discard(b.region);
    return status;
  }
  return pestle_pass_make_group(&g->builder, "attention_grad_rows", g->operands,
                                g->count, b.region, out);
}

// Gradients [first, last) in the places of those of |node|.
static pestle_status_t add_keys(groups_t* g, uint32_t first, uint32_t last,
                                const char* label) {
  body_t b;
  pestle_node_t* group;
  PESTLE_TRY(begin(g, &b));
  pestle_status_t status = finish(g, first, last, NULL, &b);
  if (status) {
    pestle_region_discard(b.region);
    return status;
  }
  PESTLE_TRY(pestle_pass_make_group(&g->builder, label, g->operands, g->count,
                                    b.region, &group));
  for (uint32_t r = first; r < last; ++r)
    pestle_value_replace_all_uses(&g->node->results[r],
                                  &group->results[r - first]);
  return NULL;
}

pestle_status_t pestle_pass_whole_attention_grad(pestle_node_t* node) {
  groups_t g = {.node = node,
                .builder = pestle_builder_before(node),
                .count = node->operand_count};
  pestle_node_t* rows;
  g.is_limited = pestle_pass_attention_limits(node, &g.limits);
  if (g.is_limited) g.count = OPERANDS;
  for (size_t i = 0; i < g.count; ++i)
    g.operands[i] = pestle_node_operand(node, i);
  const pestle_type_t *k = g.operands[1]->type, *v = g.operands[2]->type;
  int64_t sums = padded(k->dims[k->rank - 1]) + padded(v->dims[v->rank - 1]);
  PESTLE_TRY(add_rows(&g, &rows));
  g.operands[g.count++] = &rows->results[1];
  if (sums <= MOST_SUMS) {
    PESTLE_TRY(add_keys(&g, 1, GRADIENTS, "attention_grad_keys_values"));
  } else {
    PESTLE_TRY(add_keys(&g, 1, 2, "attention_grad_keys"));
    PESTLE_TRY(add_keys(&g, 2, GRADIENTS, "attention_grad_values"));
  }
  pestle_value_replace_all_uses(&node->results[0], &rows->results[0]);
  pestle_node_erase(node);
  return NULL;
}
