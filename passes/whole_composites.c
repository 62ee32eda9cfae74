// SPDX-License-Identifier: Apache-2.0
// Composites for which the target has a kernel of their own become a group each, which
// code generation writes as a whole (codegen/direct/direct_attention_grad.c and
// direct_norm_grad.c; of direct_block_dot.c whole_block_dot.c makes the groups, and those of an
// attention's gradient where lanes run side by side whole_attention_grad.c). The others
// were expanded by expand_composites, which asks pestle_pass_is_whole() too.
//
//   %0:3 = pestle.attention_grad(%q, %k, %v, %y, %c, %mask)
//   ->
//   %1 = transpose %mask                            // by columns
//   %0:3 = pestle.fusion(%q, %k, %v, %y, %c, %1) {
//     %2 = transpose %1;  pestle.attention_grad(.., %2) }
#include "base/mem.h"
#include "passes/util.h"

enum {
  // Of fewer scores, and in vectors of fewer numbers, products are as good.
  LEAST_EXTENT = 16,
  LEAST_LANES = 4,
  MOST_WIDTH = 256,
  // A block of rows and what lies beside it in scratch, as the kernel has it at most.
  BLOCK = 64,
  // Longer rows of scores than a core's cache holds are better made in a scan.
  MOST_BLOCK_BYTES = 4 << 20,
  MOST_ROW_BYTES = 512 << 10,
  GRADIENTS = 3,
};

static bool is_used(const pestle_node_t* node) {
  bool any = false;
  for (uint32_t r = 0; r < GRADIENTS; ++r)
    any |= node->results[r].uses != NULL;
  return any;
}

// A group has a batch element: with fewer than half as many as there are cores most of
// these would wait.
static bool has_groups(const pestle_pass_context_t* ctx,
                       const pestle_type_t* q) {
  int64_t heads = 1;
  for (int32_t i = 0; i + 2 < q->rank; ++i)
    heads *= q->dims[i];
  return heads > 0 && 2 * heads >= (int64_t)ctx->caps->cores;
}

// Of a block of rows, and of 16 bits what is made f32 before it is read.
static int64_t attention_bytes(pestle_dtype_t dtype, int64_t columns,
                               int64_t depth, int64_t width) {
  int64_t count = (columns + 2 * depth + 2 * width + 2) * BLOCK;
  if (dtype != PESTLE_F32) {
    count += 2 * columns * (depth + width) + (columns + depth) * BLOCK;
  }
  return count * (int64_t)pestle_dtype_size(PESTLE_F32);
}

static bool is_whole_attention_grad(const pestle_pass_context_t* ctx,
                                    const pestle_node_t* node) {
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *v = pestle_node_operand(node, 2)->type;
  int64_t rows = q->dims[q->rank - 2], depth = q->dims[q->rank - 1];
  int64_t columns = v->dims[v->rank - 2], width = v->dims[v->rank - 1];
  int64_t bytes = attention_bytes(q->dtype, columns, depth, width);
  bool is_taken = q->dtype == PESTLE_F32 || q->dtype == PESTLE_F16 ||
                  q->dtype == PESTLE_BF16;
  return is_taken && node->result_count == GRADIENTS &&
         ctx->caps->vector_bytes >= LEAST_LANES * sizeof(float) &&
         rows >= LEAST_EXTENT && columns >= LEAST_EXTENT &&
         depth % LEAST_LANES == 0 && width % LEAST_LANES == 0 && depth > 0 &&
         width > 0 && depth <= MOST_WIDTH && width <= MOST_WIDTH &&
         bytes <= MOST_BLOCK_BYTES &&
         bytes <= (int64_t)ctx->caps->scratch_bytes && is_used(node) &&
         has_groups(ctx, q);
}

// Rows and their sums stay in a core's cache.
static bool is_whole_norm_grad(const pestle_pass_context_t* ctx,
                               const pestle_node_t* node) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  int64_t length = pestle_type_count(pestle_node_operand(node, 1)->type);
  int64_t bytes = 2 * (length + (int64_t)ctx->caps->vector_bytes) *
                  (int64_t)pestle_dtype_size(PESTLE_F32);
  return x->dtype == PESTLE_F32 && pestle_type_count(x) > 0 &&
         ctx->caps->vector_bytes >= LEAST_LANES * sizeof(float) &&
         length >= LEAST_EXTENT && bytes <= MOST_ROW_BYTES &&
         bytes <= (int64_t)ctx->caps->scratch_bytes;
}

// Weights stay packed. Scratch holds a few rows of x, some eight bytes a number.
static bool is_whole_block_dot(const pestle_pass_context_t* ctx,
                               const pestle_node_t* node) {
  enum { ROWS = 4, BYTES = 8, LEAST_SUBGROUP = 8 };
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type;
  int64_t depth = scales->dims[1] * PESTLE_NODE_I64(node, block);
  bool is_taken = x->dtype == PESTLE_F32 || x->dtype == PESTLE_F16 ||
                  x->dtype == PESTLE_BF16;
  for (uint32_t i = 2; i < node->operand_count; ++i) {
    pestle_dtype_t dtype = pestle_node_operand(node, i)->type->dtype;
    is_taken &= dtype == PESTLE_F32 || dtype == PESTLE_F16 ||
                dtype == PESTLE_BF16 || dtype == PESTLE_U8;
  }
  is_taken &= pestle_type_count(x) > 0 && scales->dims[0] > 0;
  if (ctx->caps->flags & PESTLE_TARGET_LANES) {
    return is_taken && ctx->caps->op_dtypes[PESTLE_KIR_LOAD_WORDS] != 0 &&
           ctx->caps->subgroup >= LEAST_SUBGROUP;
  }
  return is_taken && ctx->caps->vector_bytes >= LEAST_LANES * sizeof(float) &&
         depth <= (int64_t)ctx->caps->scratch_bytes / (ROWS * BYTES);
}

bool pestle_pass_is_whole(const pestle_pass_context_t* ctx,
                          const pestle_node_t* node) {
  bool has_lanes = ctx->caps->flags & PESTLE_TARGET_LANES;
  if (ctx->options->numerics == PESTLE_NUMERICS_STRICT) return false;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!pestle_type_is_static(pestle_node_operand(node, i)->type)) {
      return false;
    }
  }
  if (node->op == PESTLE_OP_BLOCK_DOT) return is_whole_block_dot(ctx, node);
  if (has_lanes) return pestle_pass_fits_attention_grad(ctx, node);
  if (node->op == PESTLE_OP_NORM_GRAD) return is_whole_norm_grad(ctx, node);
  return node->op == PESTLE_OP_ATTENTION_GRAD &&
         is_whole_attention_grad(ctx, node);
}

static bool is_turned(const pestle_node_t* node, uint32_t operand) {
  return node->op == PESTLE_OP_ATTENTION_GRAD && operand &&
         (operand == pestle_attention_bias(node) ||
          operand == pestle_attention_mask(node));
}

// |node| in a region that takes |operands|; |results| are its results there.
static pestle_status_t copy_inside(pestle_copier_t* copier,
                                   const pestle_node_t* node,
                                   pestle_value_t* const* operands,
                                   pestle_value_t** results) {
  pestle_builder_t* inside = &copier->builder;
  pestle_value_t *values[8] = {NULL}, *argument;
  pestle_node_t* copy;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         operands[i]->type, &argument));
    values[i] = argument;
  }
  pestle_formula_t f = pestle_formula_make(*inside);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (is_turned(node, i))
      values[i] = pestle_f_transpose_matrix(&f, values[i]);
  }
  PESTLE_TRY(f.status);
  *inside = f.builder;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(
        pestle_copier_set(copier, pestle_node_operand(node, i), values[i]));
  }
  PESTLE_TRY(pestle_copier_node(copier, node, &copy));
  // One value may be several operands.
  for (uint32_t i = 0; i < node->operand_count; ++i)
    pestle_node_set_operand(copy, i, values[i]);
  for (uint32_t i = 0; i < node->result_count; ++i)
    results[i] = &copy->results[i];
  return pestle_op_return(inside, results, node->result_count, NULL);
}

static pestle_status_t wrap(const pestle_pass_context_t* ctx,
                            pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_builder_t inside = {.module = f.builder.module, .loc = node->loc};
  pestle_value_t *operands[8] = {NULL}, *results[GRADIENTS];
  pestle_region_t* region;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = pestle_node_operand(node, i);
    if (is_turned(node, i))
      operands[i] = pestle_f_transpose_matrix(&f, operands[i]);
  }
  PESTLE_TRY(f.status);
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_copier_t copier;
  pestle_copier_init(pestle_context_allocator(ctx->context), inside, &copier);
  pestle_status_t status = copy_inside(&copier, node, operands, results);
  pestle_copier_deinit(&copier);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  return pestle_pass_replace_by_group(
      &f.builder, node, pestle_op_info((pestle_op_t)node->op)->name, operands,
      region);
}

typedef struct whole_t {
  pestle_pass_context_t* ctx;
  bool* changed;
} whole_t;

static pestle_status_t visit(void* user, pestle_module_t* module,
                             pestle_block_t* block) {
  whole_t* w = user;
  (void)module;
  PESTLE_TRY(pestle_pass_whole_block_dots(w->ctx, block, w->changed));
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_ATTENTION) {
      PESTLE_TRY(pestle_pass_whole_attention(w->ctx, n, w->changed));
      continue;
    }
    if (n->op == PESTLE_OP_BLOCK_DOT || !pestle_pass_is_whole(w->ctx, n))
      continue;
    bool has_lanes = w->ctx->caps->flags & PESTLE_TARGET_LANES;
    PESTLE_TRY(has_lanes ? pestle_pass_whole_attention_grad(n)
                         : wrap(w->ctx, n));
    *w->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_whole_composites(pestle_pass_context_t* ctx,
                                             pestle_module_t* module,
                                             bool* out_changed) {
  whole_t w = {ctx, out_changed};
  PESTLE_TRY(pestle_pass_each_block(module, visit, &w));
  // What made a bias, or turned queries, is made within the group.
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}
