// SPDX-License-Identifier: Apache-2.0
// A loop whose turns are not known, but not more than a number, as a scan of so many:
//
//   scan { if condition(carries) { body(carries) } else { carries } }
//
// so that reverse mode has something to go back through. Turns behind the loop's end do
// nothing. Where the loop would go on after the last turn its floats are NaN.
#include <math.h>

#include "base/mem.h"
#include "transform/bounded.h"

typedef struct bounded_t {
  pestle_jvp_t* j;
  pestle_node_t* loop;
  const pestle_values_t* captured;
  pestle_scan_build_t b;
} bounded_t;

// The operands of |block|'s end after its ops, of which the arguments are |carries|, are
// written where |builder| is; captured values are |constants|, or themselves for NULL.
static pestle_status_t write_block(bounded_t* w, pestle_builder_t builder,
                                   const pestle_block_t* block,
                                   pv_t* const* carries, pv_t* const* constants,
                                   pv_t** out) {
  pestle_copier_t copier;
  pestle_status_t status = NULL;
  pestle_copier_init(w->j->allocator, builder, &copier);
  for (uint32_t i = 0; i < block->argument_count && !status; ++i)
    status = pestle_copier_set(&copier, block->arguments[i], carries[i]);
  for (size_t i = 0; constants && i < w->captured->size && !status; ++i)
    status = pestle_copier_set(&copier, w->captured->data[i], constants[i]);
  if (!status) status = pestle_copier_block(&copier, block);
  for (uint32_t i = 0; i < block->last->operand_count && !status; ++i)
    out[i] = pestle_copier_get(&copier, pestle_node_operand(block->last, i));
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_status_t make_branch(bounded_t* w, bool goes_on, pv_t** values,
                                   pestle_region_t** out_region) {
  pestle_module_t* module = w->j->function->module;
  pestle_builder_t builder = {.module = module};
  uint32_t count = w->loop->operand_count;
  PESTLE_TRY(pestle_region_create(module, NULL, 0, out_region, &builder.block));
  for (uint32_t i = 0; i < count; ++i)
    values[i] = w->b.body.carry[i];
  if (goes_on) {
    PESTLE_TRY(write_block(w, builder, pestle_node_body(w->loop, 1),
                           w->b.body.carry, w->b.body.constant, values));
  }
  return pestle_region_return(module, builder.block, values, count);
}

static pestle_status_t make_turn(bounded_t* w) {
  pv_t* operand;
  pestle_region_t* regions[2] = {NULL, NULL};
  uint32_t count = w->loop->operand_count;
  pestle_formula_t f = pestle_formula_make(w->b.body.builder);
  pv_t** values = pestle_value_array(&f, &w->j->arena, count);
  if (!values) return f.status;
  PESTLE_TRY(write_block(w, w->b.body.builder, pestle_node_body(w->loop, 0),
                         w->b.body.carry, w->b.body.constant, &operand));
  pestle_status_t status = make_branch(w, true, values, &regions[0]);
  if (!status) status = make_branch(w, false, values, &regions[1]);
  if (status) {
    for (int r = 0; r < 2; ++r) {
      if (regions[r]) pestle_region_discard(regions[r]);
    }
    return status;
  }
  pestle_node_t* made =
      pestle_f_node(&f, &(pestle_node_spec_t){.op = PESTLE_OP_IF,
                                              .operands = &operand,
                                              .operand_count = 1,
                                              .regions = regions,
                                              .region_count = 2});
  for (uint32_t i = 0; made && i < count; ++i)
    pestle_scan_push(&w->b, &w->b.next, pestle_node_result(made, i));
  return f.status;
}

// NaN for floats of |out| where the loop is not at its end: a factor, so that what is
// derived of them is NaN too.
static pestle_status_t mark_unfinished(bounded_t* w, pv_t** out) {
  pv_t* goes_on;
  pestle_formula_t* f = &w->j->f;
  PESTLE_TRY(write_block(w, f->builder, pestle_node_body(w->loop, 0), out, NULL,
                         &goes_on));
  for (uint32_t i = 0; i < w->loop->operand_count; ++i) {
    if (!pestle_is_smooth(out[i]->type->dtype)) continue;
    pv_t* nan = pestle_f_splat(f, out[i], NAN);
    pv_t* one = pestle_f_splat(f, out[i], 1);
    pv_t* factor = pestle_f_select(f, goes_on, nan, one);
    out[i] = pestle_f_multiply(f, out[i], factor);
  }
  return NULL;
}

bool pestle_while_bounded(pestle_jvp_t* j, pestle_node_t* loop, int64_t turns,
                          const pestle_values_t* captured, pv_t** out) {
  bounded_t w = {.j = j, .loop = loop, .captured = captured};
  pestle_scan_t like = {.length = turns, .unroll = 1};
  pestle_scan_build_t* b = &w.b;
  pestle_scan_build_init(j->allocator, j->f.builder, &like, false, b);
  for (uint32_t i = 0; i < loop->operand_count; ++i)
    pestle_scan_push(b, &b->init, pestle_node_operand(loop, i));
  for (size_t i = 0; i < captured->size; ++i)
    pestle_scan_push(b, &b->constants, captured->data[i]);
  pestle_scan_build_begin(b);
  if (!b->status) b->status = make_turn(&w);
  pestle_node_t* made = pestle_scan_build_end(b);
  pestle_status_t status = pestle_scan_build_close(b);
  for (uint32_t i = 0; made && i < loop->operand_count; ++i)
    out[i] = pestle_node_result(made, i);
  if (made && !status) status = mark_unfinished(&w, out);
  if (status) pestle_f_fail(&j->f, status);
  return !j->f.status;
}
