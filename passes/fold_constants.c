// SPDX-License-Identifier: Apache-2.0
// Evaluates ops whose operands are constants or broadcasts of them, by the reference evaluator.
//
//   %0 = constant dense<[1, 2]>
//   %1 = constant dense<3>
//   %2 = multiply %0, %1           ->   %2 = constant dense<[3, 6]>
//
// A splat stays one element: ops that only move or repeat it give a splat
// again. Nothing is folded that makes much out of little (a broadcast of a
// row, a long iota), that passes options->fold_limit (of what only moves elements,
// if the caller set one), or that would take the evaluator long; such ops run with
// the model, fused into their users.
#include "passes/fold_constants.h"

#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ir/ref/ref.h"
#include "passes/simplify.h"
#include "passes/util.h"
#include "pestle/runtime.h"

// Results up to this size may be larger than what they are made from.
#define SMALL_BYTES 1024
// Steps that the evaluator may take for one op.
#define WORK_LIMIT ((int64_t)1 << 28)

// What only moves elements is folded at any size unless the caller says which:
// weights are transposed once, rather than by each run.
static int64_t fold_limit(const pestle_pass_context_t* ctx, bool moves) {
  int64_t limit = ctx->options->fold_limit;
  if (limit > 0) return limit;
  return moves ? INT64_MAX : (int64_t)64 << 20;
}

// The elements that |value| is made of, or NULL: a constant's, also where it is
// repeated. Broadcasts stay, so an op on one is folded through it.
static const pestle_elements_t* known_elements(const pestle_value_t* value) {
  const pestle_elements_t* e = pestle_value_constant(value);
  if (e || !pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM) ||
      !pestle_type_is_static(value->type)) {
    return e;
  }
  return pestle_value_constant(pestle_node_operand(value->node, 0));
}

static bool all_constant(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!pestle_value_constant(pestle_node_operand(node, i))) return false;
  }
  return true;
}

static bool all_known(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!known_elements(pestle_node_operand(node, i))) return false;
  }
  return true;
}

// --- Splats ---

static bool splat_bits(const pestle_value_t* value, uint64_t out[2]) {
  const pestle_elements_t* e = pestle_value_constant(value);
  if (!e || (!e->splat && pestle_type_count(&e->type) != 1)) return false;
  out[0] = out[1] = 0;
  memcpy(out, e->data, pestle_dtype_size(e->type.dtype));
  return true;
}

// Operands that a view's elements come from.
static uint32_t data_operands(const pestle_node_t* node) {
  return node->op == PESTLE_OP_DYNAMIC_SLICE || node->op == PESTLE_OP_GATHER
             ? 1
             : node->operand_count;
}

static bool moves_elements(const pestle_node_t* node) {
  return pestle_pass_info(node)->fuse == PESTLE_FUSE_VIEW ||
         node->op == PESTLE_OP_DYNAMIC_SLICE || node->op == PESTLE_OP_GATHER;
}

// Whether it takes time and memory for stored elements alone, so that it is folded
// at any size: a repeated row would be laid out to be moved.
static bool only_moves(const pestle_node_t* node) {
  return node->operand_count == 1 && moves_elements(node) && all_constant(node);
}

static pestle_status_t make_constant(pestle_node_t* before,
                                     const pestle_elements_t* e,
                                     pestle_value_t** out) {
  pestle_formula_t f = pestle_formula_before(before);
  *out = pestle_f_elements(&f, e);
  return f.status;
}

// A view of equal splats is that splat.
static pestle_status_t fold_moved_splat(pestle_node_t* node,
                                        pestle_value_t** out) {
  uint64_t first[2], other[2];
  if (!node->operand_count ||
      !splat_bits(pestle_node_operand(node, 0), first)) {
    return NULL;
  }
  for (uint32_t i = 1; i < data_operands(node); ++i) {
    if (!splat_bits(pestle_node_operand(node, i), other) ||
        other[0] != first[0] || other[1] != first[1]) {
      return NULL;
    }
  }
  const pestle_type_t* type = node->results[0].type;
  pestle_elements_t e = {*type, first, pestle_dtype_size(type->dtype), true};
  return make_constant(node, &e, out);
}

static bool is_elementwise(const pestle_node_t* node) {
  return pestle_op_is_scalar((pestle_op_t)node->op) ||
         node->op == PESTLE_OP_CONVERT ||
         (node->op == PESTLE_OP_BITCAST_CONVERT &&
          node->results[0].type->rank == node->operands[0].value->type->rank);
}

// |node| on single elements, which nobody uses.
static pestle_value_t* make_scalar_op(pestle_formula_t* f,
                                      const pestle_node_t* node) {
  pestle_value_t* operands[3];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_elements_t* e =
        pestle_value_constant(pestle_node_operand(node, i));
    pestle_elements_t one = {pestle_type_make(e->type.dtype, 0, NULL), e->data,
                             pestle_dtype_size(e->type.dtype), true};
    operands[i] = pestle_f_elements(f, &one);
  }
  pestle_type_t type = pestle_type_make(node->results[0].type->dtype, 0, NULL);
  return pestle_f_like(f, node, operands, &type);
}

// An elementwise op on splats is a splat: one element is computed.
static pestle_status_t fold_elementwise_splat(const pestle_pass_context_t* ctx,
                                              pestle_node_t* node,
                                              pestle_value_t** out) {
  uint64_t bits[2];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!splat_bits(pestle_node_operand(node, i), bits)) return NULL;
  }
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* result = make_scalar_op(&f, node);
  PESTLE_TRY(f.status);
  pestle_node_t* scalar = result->node;
  const void* operands[3];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = pestle_value_constant(pestle_node_operand(scalar, i))->data;
  }
  void* results[1] = {bits};
  bits[0] = bits[1] = 0;
  pestle_status_t status = pestle_ref_evaluate_node(
      pestle_context_allocator(ctx->context), scalar, operands, results);
  if (!status) {
    const pestle_type_t* type = node->results[0].type;
    pestle_elements_t e = {*type, bits, pestle_dtype_size(type->dtype), true};
    status = make_constant(node, &e, out);
  }
  pestle_value_t* made[3];
  uint32_t count = scalar->operand_count;
  for (uint32_t i = 0; i < count; ++i)
    made[i] = pestle_node_operand(scalar, i);
  pestle_node_erase(scalar);
  for (uint32_t i = 0; i < count; ++i)
    pestle_node_erase(made[i]->node);
  return status;
}

// --- Everything else ---

// Bytes that the operands take as they are stored, and as arrays.
static void operand_bytes(const pestle_node_t* node, int64_t* stored,
                          int64_t* dense) {
  *stored = *dense = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(node, i);
    *stored += (int64_t)known_elements(operand)->size;
    *dense += (int64_t)pestle_type_bytes(operand->type);
  }
}

// Elements that a window op reads for each element of its result.
static int64_t window_size(const pestle_node_t* node) {
  pestle_i64s_t window = PESTLE_NODE_I64S(node, window_dimensions);
  int64_t size = 1;
  for (size_t i = 0; i < window.count; ++i) {
    if (__builtin_mul_overflow(size, window.data[i], &size)) return INT64_MAX;
  }
  return size;
}

static int64_t contracted_size(const pestle_node_t* node) {
  const pestle_type_t* rhs = pestle_node_operand(node, 1)->type;
  int64_t free_size;
  if (node->op == PESTLE_OP_CONVOLUTION) {
    int64_t axis = PESTLE_NODE_I64(node, kernel_output_feature_dimension);
    free_size = rhs->dims[axis];
    return free_size ? pestle_type_count(rhs) / free_size : 0;
  }
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, rhs_contracting_dimensions);
  int64_t size = 1;
  for (size_t i = 0; i < axes.count; ++i)
    size *= rhs->dims[axes.data[i]];
  return size;
}

static bool is_affordable(const pestle_node_t* node) {
  int64_t count = 0, factor = 1, work;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    count += pestle_type_count(node->results[i].type);
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    count += pestle_type_count(pestle_node_operand(node, i)->type);
  }
  if (pestle_pass_info(node)->fuse == PESTLE_FUSE_WINDOW) {
    factor = window_size(node);
  } else if (pestle_pass_info(node)->fuse == PESTLE_FUSE_CONTRACTION) {
    factor = contracted_size(node);
    count = pestle_type_count(node->results[0].type);
  }
  if (__builtin_mul_overflow(count, factor + 1, &work)) return false;
  return work <= WORK_LIMIT || only_moves(node);
}

// The sizes that make a fold worth it.
static bool is_worth_it(const pestle_pass_context_t* ctx,
                        const pestle_node_t* node) {
  int64_t stored, dense, result = 0;
  operand_bytes(node, &stored, &dense);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    result += (int64_t)pestle_type_bytes(node->results[i].type);
  }
  int64_t limit = fold_limit(ctx, only_moves(node));
  if (result > limit || dense / 4 > limit) return false;
  // Rows that are repeated stay rows: a bias is known by its broadcast.
  bool repeats =
      (node->op == PESTLE_OP_BROADCAST_IN_DIM || !all_constant(node)) &&
      pestle_dtype_is(node->results[0].type->dtype, PESTLE_KIND_FLOAT);
  if (result <= SMALL_BYTES && !repeats) return true;
  // Weights that are stored narrow may become wide, nothing else may grow.
  bool widens =
      node->op == PESTLE_OP_CONVERT || node->op == PESTLE_OP_DEQUANTIZE;
  return result <= stored || (widens && result <= 4 * stored);
}

// Keeps equal elements as one.
static void detect_splat(pestle_elements_t* e) {
  size_t size = pestle_dtype_size(e->type.dtype);
  if (!e->size || e->size == size) return;
  size_t known = PESTLE_FAULT(hasty_splat) ? size : e->size - size;
  if (memcmp(e->data, (const char*)e->data + size, known)) return;
  e->splat = true;
  e->size = size;
}

// All elements of |value| as an array, in the scratch of |ctx|.
static pestle_status_t expand(const pestle_pass_context_t* ctx,
                              const pestle_value_t* value, const void** out) {
  const pestle_elements_t* e = known_elements(value);
  const void* data = pestle_pass_expand(e, ctx->scratch);
  *out = data;
  if (!data) return PESTLE_OOM();
  if (pestle_value_constant(value)) return NULL;
  void* repeated =
      pestle_arena_alloc(ctx->scratch, pestle_type_bytes(value->type), 64);
  *out = repeated;
  if (!repeated) return PESTLE_OOM();
  return pestle_ref_evaluate_node(pestle_context_allocator(ctx->context),
                                  value->node, &data, &repeated);
}

static pestle_status_t evaluate(const pestle_pass_context_t* ctx,
                                pestle_module_t* module, pestle_node_t* node,
                                void** results) {
  const void** operands =
      PESTLE_ARENA_ARRAY(ctx->scratch, const void*, node->operand_count + 1);
  if (!operands) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(expand(ctx, pestle_node_operand(node, i), &operands[i]));
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    results[i] = pestle_arena_alloc(
        &module->arena, pestle_type_bytes(node->results[i].type), 64);
    if (!results[i]) return PESTLE_OOM();
  }
  return pestle_ref_evaluate_node(pestle_context_allocator(ctx->context), node,
                                  operands, results);
}

static pestle_status_t fold_dense(const pestle_pass_context_t* ctx,
                                  pestle_module_t* module, pestle_node_t* node,
                                  pestle_value_t** out) {
  void* results[16];
  pestle_arena_mark_t mark = pestle_arena_mark(ctx->scratch);
  pestle_status_t status = evaluate(ctx, module, node, results);
  pestle_arena_rewind(ctx->scratch, mark);
  PESTLE_TRY(status);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_type_t* type = node->results[i].type;
    pestle_elements_t e = {*type, results[i], pestle_type_bytes(type), false};
    detect_splat(&e);
    PESTLE_TRY(make_constant(node, &e, &out[i]));
  }
  return NULL;
}

// A reshape of data is the same data.
static pestle_status_t fold_reshape(pestle_node_t* node, pestle_value_t** out) {
  pestle_elements_t e = *pestle_value_constant(pestle_node_operand(node, 0));
  e.type = *node->results[0].type;
  return make_constant(node, &e, out);
}

pestle_status_t pestle_fold_node(const pestle_pass_context_t* ctx,
                                 pestle_module_t* module, pestle_node_t* node,
                                 pestle_value_t** out) {
  const pestle_op_info_t* info = pestle_pass_info(node);
  out[0] = NULL;
  if (node->op == PESTLE_OP_PARTITION_ID)
    return pestle_fold_parts(ctx, module, node, out);
  if (info->fuse == PESTLE_FUSE_CONTROL || info->fuse == PESTLE_FUSE_FUSION ||
      info->fuse == PESTLE_FUSE_COLLECTIVE ||
      (info->flags & PESTLE_OP_FLAG_EFFECT) || node->op == PESTLE_OP_CONSTANT ||
      !node->result_count || node->result_count > 16) {
    return NULL;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (!pestle_type_is_static(node->results[i].type)) return NULL;
  }
  if (moves_elements(node)) PESTLE_TRY(fold_moved_splat(node, out));
  if (out[0]) return NULL;
  if (!all_known(node)) return pestle_fold_parts(ctx, module, node, out);
  if (node->op == PESTLE_OP_RESHAPE) {
    return all_constant(node) ? fold_reshape(node, out) : NULL;
  }
  if (is_elementwise(node)) {
    PESTLE_TRY(fold_elementwise_splat(ctx, node, out));
    if (out[0]) return NULL;
  }
  if (!is_worth_it(ctx, node) || !is_affordable(node)) return NULL;
  return fold_dense(ctx, module, node, out);
}

pestle_status_t pestle_pass_fold_value(const pestle_pass_context_t* ctx,
                                       pestle_module_t* module,
                                       pestle_value_t** value) {
  pestle_value_t* out[16];
  if (!(*value)->node) return NULL;
  PESTLE_TRY(pestle_fold_node(ctx, module, (*value)->node, out));
  if (out[0]) *value = out[(*value)->index];
  return NULL;
}

// --- Weights that are turned ---

// A transpose of a constant is worth a thread from so many bytes on.
#define LARGE_BYTES ((size_t)256 << 10)

typedef struct turn_t {
  pestle_node_t* node;
  void* result;
  pestle_status_t status;
} turn_t;

typedef struct turns_t {
  const pestle_pass_context_t* ctx;
  PESTLE_VEC(turn_t) list;
} turns_t;

static pestle_status_t find_turns(void* user, pestle_module_t* module,
                                  pestle_block_t* block) {
  turns_t* turns = user;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op != PESTLE_OP_TRANSPOSE) continue;
    const pestle_elements_t* e =
        pestle_value_constant(pestle_node_operand(n, 0));
    if (!e || e->splat || e->size < LARGE_BYTES ||
        !is_worth_it(turns->ctx, n) || !is_affordable(n)) {
      continue;
    }
    turn_t turn = {.node = n};
    turn.result = pestle_arena_alloc(&module->arena, e->size, 64);
    if (!turn.result || !pestle_vec_push(&turns->list, turn)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static void turn_task(void* user, int64_t index) {
  const turns_t* turns = user;
  turn_t* turn = &turns->list.data[index];
  const void* data =
      pestle_value_constant(pestle_node_operand(turn->node, 0))->data;
  turn->status =
      pestle_ref_evaluate_node(pestle_context_allocator(turns->ctx->context),
                               turn->node, &data, &turn->result);
}

static pestle_status_t replace_turn(const turn_t* turn) {
  pestle_elements_t e =
      *pestle_value_constant(pestle_node_operand(turn->node, 0));
  e.type = *turn->node->results[0].type;
  e.data = turn->result;
  pestle_value_t* value;
  PESTLE_TRY(make_constant(turn->node, &e, &value));
  pestle_pass_replace(turn->node, &value);
  return NULL;
}

pestle_status_t pestle_fold_turned_weights(const pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  turns_t turns = {.ctx = ctx};
  pestle_vec_init(&turns.list, pestle_context_allocator(ctx->context));
  pestle_status_t status = pestle_pass_each_block(module, find_turns, &turns);
  if (!status) {
    pestle_context_parallel_for(ctx->context, (int64_t)turns.list.size,
                                turn_task, &turns);
  }
  for (size_t i = 0; i < turns.list.size; ++i) {
    if (!status) {
      status = turns.list.data[i].status;
      if (!status) status = replace_turn(&turns.list.data[i]);
    } else {
      pestle_status_release(turns.list.data[i].status);
    }
  }
  *out_changed = *out_changed || turns.list.size > 0;
  pestle_vec_deinit(&turns.list);
  return status;
}

// --- The pass on its own ---

pestle_status_t pestle_pass_fold_constants(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  return pestle_pass_rewrite(ctx, module, pestle_fold_node, out_changed);
}
