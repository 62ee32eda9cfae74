// SPDX-License-Identifier: Apache-2.0
// Reverse mode's second half: of ops that are linear in some values, from the last
// to the first, the ops that give each of these values its cotangent:
//
//   %t = multiply %c, %s     ->   %s.ct = multiply %c, %t.ct
//
// A value that several ops read gets the sum of what each gives it.
#include "base/fault.h"
#include "base/mem.h"
#include "transform/checkpoint.h"
#include "transform/transform.h"

void pestle_transposer_init(pestle_allocator_t allocator,
                            pestle_builder_t builder,
                            pestle_transposer_t* out_transposer) {
  *out_transposer = (pestle_transposer_t){.f = pestle_formula_make(builder),
                                          .allocator = allocator};
  pestle_arena_init(allocator, &out_transposer->arena);
  pestle_map_init(allocator, &out_transposer->linear);
  pestle_map_init(allocator, &out_transposer->cotangents);
  pestle_vec_init(&out_transposer->terms, allocator);
  pestle_vec_init(&out_transposer->nodes, allocator);
}

void pestle_transposer_deinit(pestle_transposer_t* x) {
  pestle_status_release(x->f.status);
  pestle_map_deinit(&x->linear);
  pestle_map_deinit(&x->cotangents);
  pestle_vec_deinit(&x->terms);
  pestle_vec_deinit(&x->nodes);
  pestle_arena_deinit(&x->arena);
}

// --- What is linear ---

bool pestle_is_linear(const pestle_transposer_t* x, const pv_t* value) {
  return pestle_map_find_u64(&x->linear, (uintptr_t)value) != NULL;
}

pestle_status_t pestle_linear_add(pestle_transposer_t* x, const pv_t* value) {
  return pestle_map_set_u64(&x->linear, (uintptr_t)value, 1) ? NULL
                                                             : PESTLE_OOM();
}

static bool is_decomposed(const pestle_node_t* node) {
  return pestle_transform_row((pestle_op_t)node->op).transposition ==
         PESTLE_TRANSPOSE_DECOMPOSE;
}

static pestle_status_t find_linear(pestle_transposer_t* x, pestle_node_t* first,
                                   const pestle_node_t* end) {
  for (pestle_node_t *n = first, *next; n != end; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_RETURN || !pestle_reads(n, &x->linear)) continue;
    if (is_decomposed(n) && !pestle_custom_has_transpose(&x->arena, n)) {
      PESTLE_TRY(pestle_transform_expand(x->allocator, n, &next));
      continue;
    }
    bool is_smooth = false;
    for (uint32_t r = 0; r < n->result_count; ++r) {
      if (!pestle_is_smooth(n->results[r].type->dtype)) continue;
      is_smooth = true;
      PESTLE_TRY(pestle_linear_add(x, &n->results[r]));
    }
    if (is_smooth && !pestle_vec_push(&x->nodes, n)) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_linear_find(pestle_transposer_t* x,
                                   pestle_block_t* block) {
  return find_linear(x, block->first, NULL);
}

pestle_status_t pestle_linear_find_between(pestle_transposer_t* x,
                                           const pestle_node_t* first,
                                           const pestle_node_t* end) {
  return find_linear(x, first->next, end);
}

// --- Cotangents ---

void pestle_cotangent_add_to(pestle_transposer_t* x, const pv_t* value,
                             pv_t* ct) {
  bool added;
  if (!ct || !pestle_is_linear(x, value)) return;
  uint64_t key = (uintptr_t)value;
  pestle_map_value_t* slot =
      pestle_map_put(&x->cotangents, &key, sizeof(key), &added);
  if (slot && added) slot->u64 = 0;
  pestle_cotangent_t term = {ct, slot ? (size_t)slot->u64 : 0};
  if (!slot || !pestle_vec_push(&x->terms, term)) {
    pestle_f_fail(&x->f, PESTLE_OOM());
    return;
  }
  slot->u64 = x->terms.size;
}

pv_t* pestle_cotangent_take(pestle_transposer_t* x, const pv_t* value) {
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&x->cotangents, (uintptr_t)value);
  size_t count = 0;
  if (!slot) return NULL;
  for (size_t i = slot->u64; i; i = x->terms.data[i - 1].next)
    ++count;
  pestle_arena_mark_t mark = pestle_arena_mark(&x->arena);
  pv_t** terms = pestle_value_array(&x->f, &x->arena, count);
  if (!terms) return NULL;
  size_t n = count;
  for (size_t i = slot->u64; i; i = x->terms.data[i - 1].next)
    terms[--n] = x->terms.data[i - 1].value;
  if (PESTLE_FAULT(lost_fan_out)) count = count > 1 ? count - 1 : count;
  pv_t* sum = pestle_sum(&x->f, terms, count);
  pestle_arena_rewind(&x->arena, mark);
  return sum;
}

// --- The walk ---

static pestle_status_t refuse(const pestle_node_t* node) {
  return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                           "is not linear in what is transposed; transpose "
                           "functions that are, such as those of "
                           "pestle_module_linearize()");
}

// Sums with values that are not linear make a function affine.
static pestle_status_t check(const pestle_transposer_t* x,
                             const pestle_node_t* node) {
  pestle_op_t op = (pestle_op_t)node->op;
  bool is_sum =
      pestle_transform_row(op).derivative == PESTLE_DERIVATIVE_LINEAR ||
      op == PESTLE_OP_ADD || op == PESTLE_OP_SUBTRACT ||
      op == PESTLE_OP_SELECT || op == PESTLE_OP_REDUCE;
  for (uint32_t i = 0; is_sum && i < node->operand_count; ++i) {
    const pv_t* operand = pestle_node_operand(node, i);
    if (pestle_is_smooth(operand->type->dtype) &&
        !pestle_is_linear(x, operand) && !pestle_is_zeros(operand)) {
      return refuse(node);
    }
  }
  return NULL;
}

static pestle_status_t transpose_node(pestle_transposer_t* x,
                                      pestle_node_t* node) {
  pestle_transpose_fn_t rule = pestle_transpose_rule((pestle_op_t)node->op);
  pestle_arena_mark_t mark = pestle_arena_mark(&x->arena);
  if (node->op == PESTLE_OP_CUSTOM) rule = pestle_custom_transpose;
  if (x->is_checked) PESTLE_TRY(check(x, node));
  if (!rule) return refuse(node);
  x->f.builder.loc = node->loc;
  pv_t** ct = pestle_value_array(&x->f, &x->arena, node->result_count);
  bool any = false;
  for (uint32_t r = 0; ct && r < node->result_count; ++r) {
    ct[r] = pestle_cotangent_take(x, &node->results[r]);
    any |= ct[r] != NULL;
  }
  if (any && x->is_checked) pestle_checkpoint_delay(x, node, ct);
  if (any) rule(x, node, ct);
  pestle_arena_rewind(&x->arena, mark);
  return NULL;
}

pestle_status_t pestle_transpose_nodes(pestle_transposer_t* x) {
  for (size_t i = x->nodes.size; i-- > 0 && !x->f.status;)
    PESTLE_TRY(transpose_node(x, x->nodes.data[i]));
  pestle_status_t status = x->f.status;
  x->f.status = NULL;
  return status;
}
