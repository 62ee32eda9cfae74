// SPDX-License-Identifier: Apache-2.0
// Loops whose turns are not known beforehand have a forward mode: carries and their
// tangents, under a condition that sees the carries. For reverse mode a loop must be
// known to count, and becomes a scan.
#include <string.h>

#include "base/mem.h"
#include "transform/bounded.h"

// --- Forward ---

typedef struct pairs_t {
  pestle_jvp_t* j;
  pestle_node_t* node;
  bool* has;  // carries with tangents
  pestle_values_t operands;
  pestle_region_t* regions[2];  // copies: condition, body
} pairs_t;

static pestle_status_t push(pestle_values_t* list, pv_t* value) {
  return value && pestle_vec_push(list, value) ? NULL : PESTLE_OOM();
}

static pestle_status_t copy_region(pairs_t* w, uint32_t index) {
  pestle_copier_t copier;
  pestle_copier_init(w->j->allocator, w->j->f.builder, &copier);
  pestle_status_t status = pestle_copier_region(
      &copier, w->node->regions[index], &w->regions[index]);
  pestle_copier_deinit(&copier);
  return status;
}

// Arguments for the tangents behind the others.
static pestle_status_t add_arguments(pairs_t* w, pestle_block_t* block,
                                     bool is_body) {
  pv_t* t;
  for (uint32_t i = 0; i < w->node->operand_count; ++i) {
    if (!w->has[i]) continue;
    PESTLE_TRY(pestle_block_add_argument(w->j->function->module, block,
                                         block->arguments[i]->type, &t));
    if (is_body) pestle_tangent_set(w->j, block->arguments[i], t);
  }
  return w->j->f.status;
}

static pestle_status_t attempt(pairs_t* w, bool* out_grew) {
  uint32_t count = w->node->operand_count;
  PESTLE_TRY(copy_region(w, 0));
  PESTLE_TRY(copy_region(w, 1));
  pestle_block_t* body = w->regions[1]->block;
  PESTLE_TRY(add_arguments(w, w->regions[0]->block, false));
  PESTLE_TRY(add_arguments(w, body, true));
  PESTLE_TRY(pestle_jvp_inner(w->j, body));
  *out_grew = false;
  for (uint32_t i = 0; i < count; ++i) {
    bool has = pestle_tangent(w->j, pestle_node_operand(body->last, i)) != NULL;
    *out_grew |= has && !w->has[i];
    w->has[i] |= has;
  }
  return NULL;
}

static pestle_status_t finish(pairs_t* w) {
  uint32_t count = w->node->operand_count;
  pestle_block_t* body = w->regions[1]->block;
  pestle_formula_t f = pestle_formula_before(body->last);
  pestle_vec_clear(&w->operands);
  for (uint32_t i = 0; i < count; ++i)
    PESTLE_TRY(push(&w->operands, pestle_node_operand(body->last, i)));
  for (uint32_t i = 0; i < count; ++i) {
    if (!w->has[i]) continue;
    pv_t* value = pestle_node_operand(body->last, i);
    pv_t* t = pestle_tangent(w->j, value);
    PESTLE_TRY(push(&w->operands, t ? t : pestle_zeros(&f, value)));
  }
  PESTLE_TRY(pestle_region_return(w->j->function->module, body,
                                  w->operands.data, w->operands.size));
  pestle_vec_clear(&w->operands);
  for (uint32_t i = 0; i < count; ++i)
    PESTLE_TRY(push(&w->operands, pestle_node_operand(w->node, i)));
  for (uint32_t i = 0; i < count; ++i) {
    if (!w->has[i]) continue;
    PESTLE_TRY(push(&w->operands, pestle_tangent_or_zeros(
                                      w->j, pestle_node_operand(w->node, i))));
  }
  pestle_node_t* made = pestle_f_node(
      &w->j->f, &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                      .operands = w->operands.data,
                                      .operand_count = w->operands.size,
                                      .regions = w->regions,
                                      .region_count = 2});
  size_t next = count;
  for (uint32_t i = 0; made && i < count; ++i) {
    pv_t* value = pestle_node_result(made, i);
    pestle_value_replace_all_uses(pestle_node_result(w->node, i), value);
    if (w->has[i]) {
      pestle_tangent_set(w->j, value, pestle_node_result(made, next++));
    }
  }
  if (made) pestle_node_erase(w->node);
  return NULL;
}

static void discard(pairs_t* w) {
  for (int r = 0; r < 2; ++r) {
    if (w->regions[r] && !w->regions[r]->owner) {
      pestle_region_discard(w->regions[r]);
    }
    w->regions[r] = NULL;
  }
}

static pestle_status_t forward(pairs_t* w) {
  bool grew = true;
  while (grew) {
    discard(w);
    PESTLE_TRY(attempt(w, &grew));
  }
  return finish(w);
}

// --- Counting ---

// An integer that is known before the loop: a constant, or a carry that begins as one
// and stays.
static bool is_known(const pestle_node_t* loop, const pv_t* value,
                     int64_t* out_number) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  for (int r = 0; r < 2; ++r) {
    if (value->node || value->block != pestle_node_body(loop, (size_t)r)) {
      continue;
    }
    if (pestle_node_operand(body->last, value->index) !=
        body->arguments[value->index]) {
      return false;
    }
    value = pestle_node_operand(loop, value->index);
    break;
  }
  return pestle_value_integer(value, out_number);
}

// How many turns |loop| takes; -1: not known.
static int64_t count_turns(const pestle_node_t* loop) {
  const pestle_block_t* condition = pestle_node_body(loop, 0);
  const pestle_block_t* body = pestle_node_body(loop, 1);
  const pestle_node_t* test = pestle_node_operand(condition->last, 0)->node;
  int64_t begin, end, step, other;
  if (!test || (test->op != PESTLE_OP_LT && test->op != PESTLE_OP_LE &&
                test->op != PESTLE_OP_NE)) {
    return -1;
  }
  const pv_t* counter = pestle_node_operand(test, 0);
  if (counter->node || counter->block != condition ||
      !is_known(loop, pestle_node_operand(test, 1), &end)) {
    return -1;
  }
  const pv_t* first = pestle_node_operand(loop, counter->index);
  if (!pestle_value_integer(first, &begin)) return -1;
  const pestle_node_t* sum =
      pestle_node_operand(body->last, counter->index)->node;
  if (!sum || sum->op != PESTLE_OP_ADD) return -1;
  size_t side =
      pestle_node_operand(sum, 0) == body->arguments[counter->index] ? 0 : 1;
  if (pestle_node_operand(sum, side) != body->arguments[counter->index] ||
      !is_known(loop, pestle_node_operand(sum, 1 - side), &step) || step <= 0 ||
      __builtin_sub_overflow(end, begin, &other)) {
    return -1;
  }
  if (test->op == PESTLE_OP_LE && other < INT64_MAX) ++other;
  if (test->op == PESTLE_OP_NE && (other < 0 || other % step)) return -1;
  return other <= 0 ? 0 : (other - 1) / step + 1;
}

// A scan of |turns| that carries what the loop does and reads what its body captures.
static pestle_node_t* make_scan(pestle_jvp_t* j, pestle_node_t* loop,
                                int64_t turns, pestle_values_t* captured) {
  pestle_scan_build_t b;
  pestle_scan_t like = {.length = turns, .unroll = 1};
  const pestle_block_t* body = pestle_node_body(loop, 1);
  pestle_scan_build_init(j->allocator, j->f.builder, &like, false, &b);
  for (uint32_t i = 0; i < loop->operand_count; ++i)
    pestle_scan_push(&b, &b.init, pestle_node_operand(loop, i));
  for (size_t i = 0; i < captured->size; ++i)
    pestle_scan_push(&b, &b.constants, captured->data[i]);
  pestle_scan_build_begin(&b);
  for (uint32_t i = 0; i < loop->operand_count && !b.status; ++i)
    pestle_scan_build_map(&b, body->arguments[i], b.body.carry[i]);
  for (size_t i = 0; i < captured->size && !b.status; ++i)
    pestle_scan_build_map(&b, captured->data[i], b.body.constant[i]);
  if (!b.status) b.status = pestle_copier_block(&b.copier, body);
  for (uint32_t i = 0; i < loop->operand_count && !b.status; ++i) {
    pestle_scan_push(
        &b, &b.next,
        pestle_scan_build_get(&b, pestle_node_operand(body->last, i)));
  }
  pestle_node_t* made = pestle_scan_build_end(&b);
  if (b.status) pestle_f_fail(&j->f, b.status);
  b.status = NULL;
  pestle_scan_build_deinit(&b);
  return made;
}

static void reverse(pestle_jvp_t* j, pestle_node_t* node) {
  int64_t turns = count_turns(node);
  pestle_values_t captured;
  pv_t** out = pestle_value_array(&j->f, &j->arena, node->result_count);
  if (!out) return;
  if (turns < 0 && j->max_trips <= 0) {
    pestle_jvp_refuse(j, node,
                      "takes a number of turns that is not known, and has no "
                      "reverse mode; use forward mode, count up to a constant, "
                      "or say the most by max_trips");
    return;
  }
  pestle_vec_init(&captured, j->allocator);
  pestle_status_t status = pestle_region_captures(node, NULL, &captured);
  if (status) {
    pestle_f_fail(&j->f, status);
  } else if (turns < 0) {
    pestle_while_bounded(j, node, j->max_trips, &captured, out);
  } else {
    pestle_node_t* made = make_scan(j, node, turns, &captured);
    for (uint32_t i = 0; made && i < node->result_count; ++i)
      out[i] = pestle_node_result(made, i);
  }
  pestle_vec_deinit(&captured);
  if (j->f.status) return;
  for (uint32_t i = 0; i < node->result_count; ++i)
    pestle_value_replace_all_uses(pestle_node_result(node, i), out[i]);
  pestle_jvp_behind(j, node);
  pestle_node_erase(node);
}

void pestle_jvp_while(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                      pv_t** out) {
  (void)out;
  if (j->is_linear) {
    reverse(j, node);
    return;
  }
  pairs_t w = {.j = j, .node = node};
  w.has = pestle_arena_alloc_zero(&j->arena, node->operand_count + 1u, 1);
  if (!w.has) {
    pestle_f_fail(&j->f, PESTLE_OOM());
    return;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i)
    w.has[i] = t[i] != NULL;
  pestle_vec_init(&w.operands, j->allocator);
  pestle_status_t status = forward(&w);
  discard(&w);
  pestle_vec_deinit(&w.operands);
  if (status) pestle_f_fail(&j->f, status);
}
