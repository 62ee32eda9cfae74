// SPDX-License-Identifier: Apache-2.0
// The walk: from the results of both modules to their arguments, by a stack of
// pairs of values. Each pair is compared once its operands are.
#include "session/rows.h"

#include <string.h>

#include "session/rows_internal.h"

// Bodies in bodies that are looked into.
enum { MOST_DEPTH = 32, MOST_OPERANDS = 4096 };

static uint64_t pack(relation_t r) {
  return (uint64_t)(r.axis + 2) << 56 | ((uint64_t)r.per & (UINT64_MAX >> 8));
}

static relation_t unpack(uint64_t bits) {
  return (relation_t){.axis = (int32_t)(bits >> 56) - 2,
                      .per = (int64_t)(bits & (UINT64_MAX >> 8))};
}

static bool find(const pestle_rows_t* rows, pestle_rows_pair_t pair,
                 relation_t* out) {
  const pestle_map_value_t* value =
      pestle_map_find(&rows->known, &pair, sizeof(pair));
  if (value && out) *out = unpack(value->u64);
  return value != NULL;
}

// Whether the types of |pair| are as |r| says.
static bool fits(const pestle_rows_t* rows, pestle_rows_pair_t pair,
                 relation_t r) {
  const pestle_type_t *a = pair.many->type, *b = pair.few->type;
  if (a->dtype != b->dtype || a->rank != b->rank || r.axis >= a->rank)
    return false;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (d != r.axis && a->dims[d] != b->dims[d]) return false;
    if (d != r.axis) continue;
    if (r.per < 1 || a->dims[d] % rows->n || a->dims[d] / rows->n != r.per ||
        b->dims[d] % rows->m || b->dims[d] / rows->m != r.per) {
      return false;
    }
  }
  return true;
}

static bool set(pestle_rows_t* rows, pestle_rows_pair_t pair, relation_t r) {
  if (!fits(rows, pair, r)) return false;
  pestle_map_value_t* value =
      pestle_map_put(&rows->known, &pair, sizeof(pair), NULL);
  if (!value) {
    rows->is_out_of_memory = true;
    return false;
  }
  value->u64 = pack(r);
  return true;
}

// --- One op ---

static bool is_same_op(const pestle_node_t* a, const pestle_node_t* b) {
  return a->op == b->op && a->operand_count == b->operand_count &&
         a->result_count == b->result_count &&
         a->region_count == b->region_count && a->attr_count == b->attr_count &&
         a->operand_count <= MOST_OPERANDS && !pestle_node_has_effect(a) &&
         !pestle_node_has_effect(b);
}

// Pushes the operands of |a| and |b| that are not known yet; how many.
static bool push_operands(pestle_rows_t* rows, const pestle_node_t* a,
                          const pestle_node_t* b, size_t* out_count) {
  *out_count = 0;
  for (uint32_t i = 0; i < a->operand_count; ++i) {
    pestle_rows_pair_t pair = {pestle_node_operand(a, i),
                               pestle_node_operand(b, i)};
    if (find(rows, pair, NULL)) continue;
    if (!pestle_vec_push(&rows->stack, pair)) {
      rows->is_out_of_memory = true;
      return false;
    }
    ++*out_count;
  }
  return true;
}

static bool apply(pestle_rows_t* rows, const pestle_node_t* a,
                  const pestle_node_t* b) {
  size_t room = (size_t)a->operand_count + a->result_count + 1;
  relation_t few[16], *all = few;
  if (room > 16) {
    all = pestle_alloc(rows->allocator, room * sizeof(*all));
    if (!all) {
      rows->is_out_of_memory = true;
      return false;
    }
  }
  for (uint32_t i = 0; i < a->operand_count; ++i) {
    pestle_rows_pair_t pair = {pestle_node_operand(a, i),
                               pestle_node_operand(b, i)};
    (void)find(rows, pair, &all[i]);
  }
  pestle_rows_op_t op = {rows, a, b, all, all + a->operand_count};
  bool is_shown = pestle_rows_rule(&op);
  for (uint32_t i = 0; i < a->result_count && is_shown; ++i) {
    pestle_rows_pair_t pair = {&a->results[i], &b->results[i]};
    is_shown = set(rows, pair, op.results[i]);
  }
  if (all != few) pestle_dealloc(rows->allocator, all, room * sizeof(*all));
  return is_shown;
}

// --- Values ---

static bool step(pestle_rows_t* rows) {
  pestle_rows_pair_t pair = pestle_vec_last(&rows->stack);
  if (find(rows, pair, NULL)) {
    --rows->stack.size;
    return true;
  }
  // An argument is known or none of those that are compared.
  const pestle_node_t *a = pair.many->node, *b = pair.few->node;
  if (!a || !b || pair.many->index != pair.few->index) return false;
  rows->culprit = a;
  if (a->op == PESTLE_OP_BROADCAST_IN_DIM && b->op == PESTLE_OP_CONSTANT) {
    relation_t made;
    pestle_rows_op_t op = {rows, a, b, NULL, &made};
    if (!pestle_rows_repeated(&op) || !set(rows, pair, made)) return false;
    --rows->stack.size;
    return true;
  }
  size_t pushed;
  if (!is_same_op(a, b) || !push_operands(rows, a, b, &pushed)) return false;
  if (pushed) return true;
  if (!apply(rows, a, b)) return false;
  --rows->stack.size;
  return true;
}

static bool compare(pestle_rows_t* rows, pestle_rows_pair_t pair,
                    relation_t* out) {
  size_t base = rows->stack.size;
  if (!pestle_vec_push(&rows->stack, pair)) {
    rows->is_out_of_memory = true;
    return false;
  }
  while (rows->stack.size > base) {
    if (!step(rows)) return false;
  }
  return find(rows, pair, out);
}

static bool compare_blocks(pestle_rows_t* rows, const pestle_block_t* a,
                           const pestle_block_t* b, const relation_t* arguments,
                           relation_t* results) {
  if (rows->depth >= MOST_DEPTH || a->argument_count != b->argument_count)
    return false;
  const pestle_node_t *last = a->last, *other = b->last;
  if (!last || !other || last->op != PESTLE_OP_RETURN ||
      other->op != PESTLE_OP_RETURN ||
      last->operand_count != other->operand_count) {
    return false;
  }
  ++rows->depth;
  bool is_shown = true;
  for (uint32_t i = 0; i < a->argument_count && is_shown; ++i) {
    pestle_rows_pair_t pair = {a->arguments[i], b->arguments[i]};
    is_shown = set(rows, pair, arguments ? arguments[i] : pestle_rows_same());
  }
  for (uint32_t i = 0; i < last->operand_count && is_shown; ++i) {
    pestle_rows_pair_t pair = {pestle_node_operand(last, i),
                               pestle_node_operand(other, i)};
    is_shown = compare(rows, pair, &results[i]);
  }
  --rows->depth;
  return is_shown;
}

// Ops with effects in a body are not among what its results are made of.
static bool has_effect(const pestle_block_t* block) {
  for (const pestle_node_t* node = block->first; node; node = node->next) {
    if (node->op != PESTLE_OP_RETURN && pestle_node_has_effect(node))
      return true;
  }
  return false;
}

bool pestle_rows_body(const pestle_rows_op_t* op, size_t index,
                      const relation_t* arguments, relation_t* results) {
  const pestle_block_t* a = pestle_node_body(op->many, index);
  const pestle_block_t* b = pestle_node_body(op->few, index);
  return !has_effect(a) && !has_effect(b) &&
         compare_blocks(op->rows, a, b, arguments, results);
}

static const pestle_block_t* callee(const pestle_node_t* call) {
  const char* name = PESTLE_NODE_STR(call, callee);
  const pestle_function_t* function =
      pestle_module_find_function(call->block->region->module, name);
  return function && function->body ? function->body->block : NULL;
}

// A function may be called with other relations elsewhere: what is known of its
// values is known for this call.
bool pestle_rows_callee(const pestle_rows_op_t* op) {
  const pestle_block_t *a = callee(op->many), *b = callee(op->few);
  if (!a || !b || has_effect(a) || has_effect(b)) return false;
  if (a->argument_count != op->many->operand_count ||
      a->last->operand_count != op->many->result_count) {
    return false;
  }
  pestle_rows_t inner = {.n = op->rows->n,
                         .m = op->rows->m,
                         .allocator = op->rows->allocator,
                         .depth = op->rows->depth};
  pestle_map_init(inner.allocator, &inner.known);
  pestle_vec_init(&inner.stack, inner.allocator);
  bool is_shown = compare_blocks(&inner, a, b, op->operands, op->results);
  if (!is_shown && inner.culprit) op->rows->culprit = inner.culprit;
  if (inner.is_out_of_memory) op->rows->is_out_of_memory = true;
  pestle_map_deinit(&inner.known);
  pestle_vec_deinit(&inner.stack);
  return is_shown;
}

// --- The modules ---

static void explain(const pestle_rows_t* rows, pestle_strbuf_t* why) {
  if (!rows->culprit) {
    pestle_strbuf_append_c(why, "its results are other values for fewer rows");
    return;
  }
  pestle_node_describe(rows->culprit, why);
  pestle_strbuf_append_c(why, " is not shown to keep rows apart");
}

pestle_status_t pestle_rows_compare(pestle_module_t* many, pestle_module_t* few,
                                    int64_t n, int64_t m,
                                    const pestle_row_relation_t* inputs,
                                    pestle_row_relation_t* results,
                                    bool* out_is_shown,
                                    pestle_strbuf_t* out_why) {
  *out_is_shown = false;
  const pestle_function_t* a = pestle_module_entry(many);
  const pestle_function_t* b = pestle_module_entry(few);
  if (!a || !b || !a->body || !b->body || n < 1 || m < 1) return NULL;
  pestle_rows_t rows = {.n = n, .m = m, .allocator = many->arena.allocator};
  pestle_map_init(rows.allocator, &rows.known);
  pestle_vec_init(&rows.stack, rows.allocator);
  *out_is_shown =
      !has_effect(a->body->block) && !has_effect(b->body->block) &&
      compare_blocks(&rows, a->body->block, b->body->block, inputs, results);
  if (!*out_is_shown) explain(&rows, out_why);
  pestle_map_deinit(&rows.known);
  pestle_vec_deinit(&rows.stack);
  return rows.is_out_of_memory ? PESTLE_OOM() : NULL;
}
