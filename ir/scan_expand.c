// SPDX-License-Identifier: Apache-2.0
// What a scan stands for:
//
//   %c, %y = scan (%init; %xs; %k) of n  { ^bb0(%c, %x, %k): B; return %c', %e }
//     ->  %i, %c, %y = while (%i = 0, %c = %init, %y = splat 0) cond { %i < n } do {
//           %x = reshape (dynamic_slice %xs, %i)
//           B
//           %y' = dynamic_update_slice %y, (reshape %e), %i
//           return %i + 1, %c', %y' }
//
// Nothing is read of the splat: each turn writes its own element. With |unroll| a turn of
// the while does as many of the scan's, and what is left comes behind it.
#include <string.h>

#include "base/mem.h"
#include "ir/composite.h"
#include "ir/copy.h"
#include "ir/scan.h"

typedef struct expand_t {
  pestle_scan_t s;
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pv_t** state;  // the carries, then the stacks: as the turns so far left them
  size_t count;
  pestle_dtype_t index;
} expand_t;

// --- One turn ---

// Where along dimension 0 the turn with number |turn| looks.
static pv_t* place_of(pestle_formula_t* f, const expand_t* x, pv_t* turn) {
  if (!x->s.reverse) return turn;
  pv_t* last = pestle_f_scalar(f, x->index, (double)(x->s.length - 1));
  return pestle_f_subtract(f, last, turn);
}

// A copy of the body for the turn |turn|, to whose state |x->state| goes on; the elements
// that it stacks up go to |ys|.
static pestle_status_t copy_turn(pestle_formula_t* f, expand_t* x, pv_t* at,
                                 pv_t** ys) {
  const pestle_scan_t* s = &x->s;
  pestle_copier_t copier;
  pestle_status_t status = NULL;
  pestle_copier_init(x->allocator, f->builder, &copier);
  for (size_t i = 0; i < s->carry_count && !status; ++i)
    status = pestle_copier_set(&copier, s->carry[i], x->state[i]);
  for (size_t i = 0; i < s->xs_count && !status; ++i) {
    pv_t* element = pestle_f_element_at(f, s->xs[i].value, 0, at);
    if (!element) break;
    status = pestle_copier_set(&copier, s->x[i], element);
  }
  for (size_t i = 0; i < s->constant_count && !status; ++i)
    status = pestle_copier_set(&copier, s->constant[i], s->constants[i].value);
  if (!status && !f->status) status = pestle_copier_block(&copier, s->body);
  for (size_t i = 0; i < x->count && !status && !f->status; ++i) {
    bool carried = i < s->carry_count;
    pv_t* value = pestle_copier_get(&copier, s->next[i].value);
    *(carried ? &x->state[i] : &ys[i - s->carry_count]) = value;
  }
  pestle_copier_deinit(&copier);
  return status;
}

static void do_turn(pestle_formula_t* f, expand_t* x, pv_t* turn) {
  const pestle_scan_t* s = &x->s;
  pv_t** ys = PESTLE_ARENA_ARRAY(&x->arena, pv_t*, s->ys_count + 1);
  pv_t* at = place_of(f, x, turn);
  if (!ys && !f->status) f->status = PESTLE_OOM();
  if (f->status) return;
  pestle_status_t status = copy_turn(f, x, at, ys);
  if (status) {
    (void)pestle_f_fail(f, status);
    return;
  }
  for (size_t i = 0; i < s->ys_count && !f->status; ++i) {
    pv_t** stack = &x->state[s->carry_count + i];
    *stack = pestle_f_with_element(f, *stack, 0, at, ys[i]);
  }
}

static void do_turns(pestle_formula_t* f, expand_t* x, int64_t from,
                     int64_t end) {
  for (int64_t i = from; i < end && !f->status; ++i)
    do_turn(f, x, pestle_f_scalar(f, x->index, (double)i));
}

// --- The while ---

// A region that takes the number of turns done and the state.
static pestle_region_t* enter(pestle_formula_t* outer, const expand_t* x,
                              pestle_formula_t* out) {
  pestle_region_t* region = NULL;
  pestle_builder_t inside = {.module = outer->builder.module,
                             .loc = outer->builder.loc};
  pestle_type_t counter = pestle_type_make(x->index, 0, NULL);
  if (outer->status) return NULL;
  outer->status =
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block);
  for (size_t i = 0; i <= x->count && !outer->status; ++i) {
    const pestle_type_t* type = i ? x->state[i - 1]->type : &counter;
    pv_t* ignored;
    outer->status =
        pestle_block_add_argument(inside.module, inside.block, type, &ignored);
  }
  *out = pestle_formula_make(inside);
  return region;
}

static void leave(pestle_formula_t* outer, pestle_formula_t* f,
                  pv_t* const* values, size_t count) {
  if (!f->status)
    f->status = pestle_op_return(&f->builder, values, count, NULL);
  if (f->status) (void)pestle_f_fail(outer, f->status);
}

static pestle_region_t* condition(pestle_formula_t* outer, const expand_t* x,
                                  int64_t limit) {
  pestle_formula_t f;
  pestle_region_t* region = enter(outer, x, &f);
  if (outer->status) return region;
  pv_t* end = pestle_f_scalar(&f, x->index, (double)limit);
  pv_t* more = pestle_f_lt(&f, pestle_block_argument(f.builder.block, 0), end);
  leave(outer, &f, &more, 1);
  return region;
}

static pestle_region_t* step(pestle_formula_t* outer, expand_t* x) {
  pestle_formula_t f;
  pv_t** next = PESTLE_ARENA_ARRAY(&x->arena, pv_t*, x->count + 1);
  if (!next) (void)pestle_f_fail(outer, PESTLE_OOM());
  pestle_region_t* region = enter(outer, x, &f);
  if (outer->status) return region;
  pv_t* done = pestle_block_argument(f.builder.block, 0);
  for (size_t i = 0; i < x->count; ++i)
    x->state[i] = pestle_block_argument(f.builder.block, 1 + i);
  for (int64_t i = 0; i < x->s.unroll && !f.status; ++i)
    do_turn(&f, x, i ? pestle_f_plus(&f, done, (double)i) : done);
  next[0] = pestle_f_plus(&f, done, (double)x->s.unroll);
  for (size_t i = 0; i < x->count; ++i)
    next[1 + i] = x->state[i];
  leave(outer, &f, next, x->count + 1);
  return region;
}

// The first |limit| turns, a multiple of |unroll|.
static void loop(pestle_formula_t* f, expand_t* x, int64_t limit) {
  pv_t** init = PESTLE_ARENA_ARRAY(&x->arena, pv_t*, x->count + 1);
  pestle_region_t* regions[2] = {NULL, NULL};
  if (!init) (void)pestle_f_fail(f, PESTLE_OOM());
  if (f->status) return;
  init[0] = pestle_f_scalar(f, x->index, 0);
  memcpy(init + 1, x->state, x->count * sizeof(*init));
  regions[0] = condition(f, x, limit);
  if (!f->status) regions[1] = step(f, x);
  pestle_node_t* node =
      f->status ? NULL
                : pestle_f_node(
                      f, &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                               .operands = init,
                                               .operand_count = x->count + 1,
                                               .regions = regions,
                                               .region_count = 2});
  for (size_t i = 0; node && i < x->count; ++i)
    x->state[i] = pestle_node_result(node, 1 + i);
  for (size_t i = 0; !node && i < 2; ++i) {
    if (regions[i]) pestle_region_discard(regions[i]);
  }
}

// --- Entry ---

static pestle_status_t check_static(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count + node->result_count; ++i) {
    bool result = i >= node->operand_count;
    const pestle_type_t* type =
        result ? node->results[i - node->operand_count].type
               : pestle_node_operand(node, i)->type;
    if (pestle_type_is_static(type)) continue;
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "a scan of unknown extents is expanded after its "
                             "module is specialised");
  }
  return NULL;
}

static pestle_status_t expand(expand_t* x) {
  const pestle_scan_t* s = &x->s;
  pestle_formula_t f = pestle_formula_before(s->node);
  x->state = PESTLE_ARENA_ARRAY(&x->arena, pv_t*, x->count + 1);
  if (!x->state) return PESTLE_OOM();
  for (size_t i = 0; i < s->carry_count; ++i)
    x->state[i] = s->init[i].value;
  for (size_t i = 0; i < s->ys_count; ++i)
    x->state[s->carry_count + i] = pestle_f_number(&f, s->ys[i].type, 0);
  int64_t looped =
      s->length <= s->unroll ? 0 : s->length - s->length % s->unroll;
  if (looped) loop(&f, x, looped);
  do_turns(&f, x, looped, s->length);
  return f.status;
}

pestle_status_t pestle_scan_expand(pestle_node_t* node) {
  expand_t x = {.s = pestle_scan_read(node),
                .allocator = node->block->region->module->arena.allocator,
                .count = node->result_count,
                .index = PESTLE_I32};
  PESTLE_TRY(check_static(node));
  if (x.s.length + x.s.unroll > INT32_MAX) x.index = PESTLE_I64;
  const pestle_node_t* start = node->prev;
  pestle_arena_init(x.allocator, &x.arena);
  pestle_status_t status = expand(&x);
  if (status) {
    // What was written before the failing step goes, last first.
    while (node->prev != start)
      pestle_node_erase(node->prev);
  } else {
    for (uint32_t i = 0; i < node->result_count; ++i)
      pestle_value_replace_all_uses(&node->results[i], x.state[i]);
    pestle_node_erase(node);
  }
  pestle_arena_deinit(&x.arena);
  return status;
}
