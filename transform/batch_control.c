// SPDX-License-Identifier: Apache-2.0
// Batching of control flow. What is carried is batched if it begins so or becomes so.
// A condition that is batched has all branches run, and each element take its own; a
// loop of which elements end at different times runs until the last one has, and
// elements that have ended stay.
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "transform/scan_build.h"
#include "transform/vmap.h"

static pestle_module_t* module_of(const pestle_vmap_t* v) {
  return v->function->module;
}

static pestle_region_t* copy_region(pestle_vmap_t* v,
                                    const pestle_region_t* source) {
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  if (v->f.status) return NULL;
  pestle_copier_init(v->allocator, v->f.builder, &copier);
  pestle_status_t status = pestle_copier_region(&copier, source, &region);
  pestle_copier_deinit(&copier);
  if (status) pestle_f_fail(&v->f, status);
  return status ? NULL : region;
}

static void inner(pestle_vmap_t* v, pestle_block_t* block) {
  if (v->f.status) return;
  pestle_status_t status = pestle_vmap_inner(v, block);
  if (status) pestle_f_fail(&v->f, status);
}

// --- scan ---

typedef struct loop_t {
  pestle_vmap_t* v;
  pestle_scan_t s;
  pestle_scan_build_t b;
  bool *has, *has_y;
  pv_t **next, **y;
} loop_t;

static pv_t* moved_behind(pestle_vmap_t* v, pv_t* a, int64_t from, int64_t to) {
  int64_t order[PESTLE_MAX_RANK];
  if (!a) return NULL;
  int64_t next = 0;
  for (int64_t d = 0; d < a->type->rank; ++d) {
    if (next == from) ++next;
    order[d] = d == to ? from : next++;
  }
  return pestle_f_transpose(&v->f, a, order);
}

// An argument of the batched type has its stand-in in the copy of the body.
static void map_argument(loop_t* w, pv_t* from, pv_t* to, bool is_batched) {
  pestle_scan_build_t* b = &w->b;
  if (b->status || !is_batched) {
    pestle_scan_build_map(b, from, to);
    return;
  }
  pestle_formula_t f = pestle_formula_make(b->body.builder);
  pv_t* zeros = pestle_zeros(&f, from);
  b->status = f.status;
  pestle_scan_build_map(b, from, zeros);
  pestle_vmap_set(w->v, zeros, to);
}

static void push_loop(loop_t* w) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  pestle_vmap_t* v = w->v;
  for (size_t i = 0; i < s->carry_count; ++i) {
    pv_t* value = s->init[i].value;
    pv_t* to = pestle_vmap_get(v, value);
    if (w->has[i]) to = pestle_vmap_batch(v, to, to != value);
    pestle_scan_push(b, &b->init, to);
  }
  for (size_t i = 0; i < s->xs_count; ++i) {
    pv_t *value = s->xs[i].value, *to = pestle_vmap_get(v, value);
    if (to != value) to = moved_behind(v, to, 0, 1);
    pestle_scan_push(b, &b->xs, to);
  }
  for (size_t i = 0; i < s->constant_count; ++i)
    pestle_scan_push(b, &b->constants,
                     pestle_vmap_get(v, s->constants[i].value));
}

static void make_loop(loop_t* w, bool* out_grew) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  pestle_vmap_t* v = w->v;
  *out_grew = false;
  pestle_scan_build_init(v->allocator, v->f.builder, s, s->reverse, b);
  push_loop(w);
  pestle_scan_build_begin(b);
  if (b->status) return;
  for (size_t i = 0; i < s->carry_count; ++i)
    map_argument(w, s->carry[i], b->body.carry[i], w->has[i]);
  for (size_t i = 0; i < s->xs_count; ++i)
    map_argument(w, s->x[i], b->body.x[i],
                 pestle_vmap_is_batched(v, s->xs[i].value));
  for (size_t i = 0; i < s->constant_count; ++i)
    map_argument(w, s->constant[i], b->body.constant[i],
                 pestle_vmap_is_batched(v, s->constants[i].value));
  pestle_scan_build_copy(b, s);
  if (!b->status) b->status = pestle_vmap_inner(v, b->body.region->block);
  pestle_scan_build_returned(b, s, w->next, w->y);
  for (size_t i = 0; i < s->carry_count && !b->status; ++i) {
    bool has = pestle_vmap_is_batched(v, w->next[i]);
    *out_grew |= has && !w->has[i];
    w->has[i] |= has;
  }
  for (size_t i = 0; i < s->ys_count && !b->status; ++i)
    w->has_y[i] = pestle_vmap_is_batched(v, w->y[i]);
}

static pv_t* in_body(loop_t* w, pv_t* value, bool is_batched) {
  pestle_vmap_t* v = w->v;
  pestle_formula_t f = v->f;
  v->f = pestle_formula_make(w->b.body.builder);
  pv_t* to = pestle_vmap_get(v, value);
  if (is_batched) to = pestle_vmap_batch(v, to, to != value);
  w->b.status = pestle_status_join(w->b.status, v->f.status);
  v->f = f;
  return to;
}

static void finish_loop(loop_t* w, pv_t** out) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_scan_push(b, &b->next, in_body(w, w->next[i], w->has[i]));
  for (size_t i = 0; i < s->ys_count; ++i)
    pestle_scan_push(b, &b->ys, in_body(w, w->y[i], w->has_y[i]));
  pestle_node_t* made = pestle_scan_build_end(b);
  if (!made) return;
  pestle_sweep(made->regions[0]->block);
  for (size_t i = 0; i < s->carry_count + s->ys_count; ++i) {
    bool is_y = i >= s->carry_count;
    pv_t* value = pestle_node_result(made, i);
    bool has = is_y ? w->has_y[i - s->carry_count] : w->has[i];
    if (!has) {
      pestle_value_replace_all_uses(pestle_node_result(s->node, i), value);
    } else {
      out[i] = is_y ? moved_behind(w->v, value, 1, 0) : value;
    }
  }
}

void pestle_vmap_scan(pestle_vmap_t* v, pestle_node_t* node,
                      pv_t* const* operands, const bool* is_batched,
                      pv_t** out) {
  loop_t w = {.v = v, .s = pestle_scan_read(node)};
  size_t carries = w.s.carry_count, stacks = w.s.ys_count;
  w.has = pestle_arena_alloc_zero(&v->arena, carries + stacks + 1, 1);
  w.next = pestle_value_array(&v->f, &v->arena, carries);
  w.y = pestle_value_array(&v->f, &v->arena, stacks);
  (void)operands;
  if (!w.has || !w.next || !w.y) return;
  w.has_y = w.has + carries;
  memcpy(w.has, is_batched, carries);
  for (bool grew = true; grew && !v->f.status;) {
    make_loop(&w, &grew);
    if (!w.b.status && !grew) finish_loop(&w, out);
    pestle_status_t status = w.b.status;
    w.b.status = NULL;
    pestle_scan_build_deinit(&w.b);
    if (status) pestle_f_fail(&v->f, status);
  }
}

// --- if and case ---

// The ops of |source| again in front of |node|'s place, batched; |out| has what they
// return with the axis.
static pestle_status_t run_branch(pestle_vmap_t* v,
                                  const pestle_block_t* source,
                                  pestle_copier_t* copier, pv_t** out) {
  pestle_formula_t* f = &v->f;
  pestle_node_t* before = f->builder.before->prev;
  PESTLE_TRY(pestle_copier_block(copier, source));
  pv_t* fence = pestle_f_scalar(f, PESTLE_I1, 0);
  uint32_t count = source->last->operand_count;
  if (f->status || !count) return NULL;
  // Keeps what is returned in sight while ops are replaced by others.
  for (uint32_t r = 0; r < count; ++r)
    out[r] = pestle_copier_get(copier, pestle_node_operand(source->last, r));
  pestle_node_t* end = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                               .operands = out,
                               .operand_count = count});
  if (!end) return NULL;
  PESTLE_TRY(pestle_vmap_nodes(
      v, before ? before->next : f->builder.block->first, fence->node));
  for (uint32_t r = 0; r < end->operand_count; ++r) {
    pv_t* value = pestle_node_operand(end, r);
    out[r] = pestle_vmap_get(v, value);
    out[r] = pestle_vmap_batch(v, out[r], out[r] != value);
  }
  pestle_node_erase(end);
  return NULL;
}

// Where flag |taken| [size] is set |a|, else |b|.
static pv_t* choose(pestle_vmap_t* v, pv_t* taken, pv_t* a, pv_t* b) {
  if (!taken || !a || !b) return NULL;
  pestle_type_t type = *a->type;
  type.dtype = PESTLE_I1;
  taken = pestle_f_broadcast_to(&v->f, taken, &type, (const int64_t[]){0});
  return pestle_f_select(&v->f, taken, a, b);
}

// The branches in the place of the op, each on all elements. The last one counts where
// the index of a case is that of none.
static void run_all(pestle_vmap_t* v, pestle_node_t* node, pv_t* index,
                    pv_t** out) {
  pestle_formula_t* f = &v->f;
  bool is_if = node->op == PESTLE_OP_IF;
  pv_t** values = pestle_value_array(f, &v->arena, node->result_count);
  if (!values) return;
  if (pestle_node_has_effect(node)) {
    pestle_vmap_refuse(v, node,
                       "has branches with effects and a batched condition, so "
                       "that all would run; give it one for all elements");
    return;
  }
  for (uint32_t k = node->region_count; k-- > 0 && !f->status;) {
    pestle_copier_t copier;
    pestle_copier_init(v->allocator, f->builder, &copier);
    pestle_status_t status =
        run_branch(v, node->regions[k]->block, &copier, values);
    pestle_copier_deinit(&copier);
    if (status) pestle_f_fail(f, status);
    bool is_last = k + 1 == node->region_count;
    pv_t* taken = is_last ? NULL : index;
    if (!is_last && !is_if) {
      taken = pestle_f_eq(f, index, pestle_f_splat(f, index, (double)k));
    }
    for (uint32_t r = 0; r < node->result_count && !f->status; ++r)
      out[r] = is_last ? values[r] : choose(v, taken, values[r], out[r]);
  }
}

// One index for all: each branch on batched values.
static void run_one(pestle_vmap_t* v, pestle_node_t* node, pv_t** out) {
  uint32_t count = node->region_count, results = node->result_count;
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&v->arena, pestle_region_t*, count + 1);
  bool* has = pestle_arena_alloc_zero(&v->arena, results + 1u, 1);
  pv_t** values = pestle_value_array(&v->f, &v->arena, results);
  if (!regions || !has || !values) {
    pestle_f_fail(&v->f, PESTLE_OOM());
    return;
  }
  for (uint32_t k = 0; k < count; ++k) {
    regions[k] = copy_region(v, node->regions[k]);
    if (!regions[k]) return;
    inner(v, regions[k]->block);
    for (uint32_t r = 0; r < results && !v->f.status; ++r) {
      has[r] |= pestle_vmap_is_batched(
          v, pestle_node_operand(regions[k]->block->last, r));
    }
  }
  for (uint32_t k = 0; k < count && !v->f.status; ++k) {
    pestle_block_t* block = regions[k]->block;
    pestle_formula_t f = v->f;
    v->f = pestle_formula_before(block->last);
    for (uint32_t r = 0; r < results; ++r) {
      pv_t* value = pestle_node_operand(block->last, r);
      values[r] = pestle_vmap_get(v, value);
      if (has[r]) {
        values[r] = pestle_vmap_batch(v, values[r], values[r] != value);
      }
    }
    pestle_status_t status = v->f.status;
    v->f = f;
    if (!status) {
      status = pestle_region_return(module_of(v), block, values, results);
    }
    if (status) pestle_f_fail(&v->f, status);
    if (!status) pestle_sweep(block);
  }
  pv_t* index = pestle_node_operand(node, 0);
  pestle_node_t* made =
      pestle_f_node(&v->f, &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                                                 .operands = &index,
                                                 .operand_count = 1,
                                                 .regions = regions,
                                                 .region_count = count});
  for (uint32_t r = 0; made && r < results; ++r) {
    pv_t* value = pestle_node_result(made, r);
    if (has[r]) {
      out[r] = value;
    } else {
      pestle_value_replace_all_uses(pestle_node_result(node, r), value);
    }
  }
}

void pestle_vmap_if(pestle_vmap_t* v, pestle_node_t* node,
                    pv_t* const* operands, const bool* is_batched, pv_t** out) {
  if (is_batched[0]) {
    run_all(v, node, operands[0], out);
  } else {
    run_one(v, node, out);
  }
}

void pestle_vmap_case(pestle_vmap_t* v, pestle_node_t* node,
                      pv_t* const* operands, const bool* is_batched,
                      pv_t** out) {
  pestle_vmap_if(v, node, operands, is_batched, out);
}

// --- while ---

// A copy of region |index| of |loop| on carries of which |has| are batched; its ops are
// batched, its return is that of the source.
static pestle_status_t copy_body(pestle_vmap_t* v, const pestle_node_t* loop,
                                 uint32_t index, const bool* has,
                                 pestle_copier_t* copier,
                                 pestle_region_t** out_region) {
  const pestle_block_t* source = loop->regions[index]->block;
  pestle_builder_t b = {.module = module_of(v)};
  pestle_node_t* end;
  PESTLE_TRY(pestle_region_create(b.module, NULL, 0, out_region, &b.block));
  copier->builder = b;
  pestle_formula_t f = pestle_formula_make(b);
  for (uint32_t i = 0; i < source->argument_count; ++i) {
    pv_t *from = source->arguments[i], *to;
    pestle_type_t type = has[i] ? pestle_vmap_type(v, from->type) : *from->type;
    PESTLE_TRY(pestle_block_add_argument(b.module, b.block, &type, &to));
    pv_t* stand_in = has[i] ? pestle_zeros(&f, from) : to;
    if (f.status) return f.status;
    PESTLE_TRY(pestle_copier_set(copier, from, stand_in));
    if (has[i]) pestle_vmap_set(v, stand_in, to);
  }
  PESTLE_TRY(pestle_copier_block(copier, source));
  PESTLE_TRY(pestle_copier_node(copier, source->last, &end));
  PESTLE_TRY(pestle_vmap_inner(v, b.block));
  return v->f.status;
}

static pestle_region_t* make_body(pestle_vmap_t* v, const pestle_node_t* loop,
                                  uint32_t index, const bool* has) {
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  if (v->f.status) return NULL;
  pestle_copier_init(v->allocator, v->f.builder, &copier);
  pestle_status_t status = copy_body(v, loop, index, has, &copier, &region);
  pestle_copier_deinit(&copier);
  if (status) pestle_f_fail(&v->f, status);
  return status ? NULL : region;
}

// Ends |region| with |values|.
static void end_body(pestle_vmap_t* v, pestle_region_t* region, pv_t** values,
                     size_t count, pestle_status_t status) {
  if (!status) {
    status = pestle_region_return(module_of(v), region->block, values, count);
  }
  if (status) {
    pestle_f_fail(&v->f, status);
  } else {
    pestle_sweep(region->block);
  }
}

// The condition at the end of |region|: of all elements whether any goes on.
static void end_condition(pestle_vmap_t* v, pestle_region_t* region) {
  static const int64_t zero = 0;
  pestle_formula_t f = pestle_formula_before(region->block->last);
  pv_t* flag = pestle_node_operand(region->block->last, 0);
  pv_t* flags = pestle_vmap_get(v, flag);
  if (flags != flag) {
    flags =
        pestle_f_reduce(&f, PESTLE_OP_OR, flags, (pestle_i64s_t){&zero, 1}, 0);
  }
  end_body(v, region, &flags, 1, f.status);
}

// What a turn returns: elements that have ended keep what they have.
static void end_turn(pestle_vmap_t* v, const pestle_node_t* loop,
                     pestle_region_t* region, const bool* has,
                     bool is_flag_batched, pv_t** values) {
  pestle_block_t* block = region->block;
  pestle_formula_t f = v->f;
  v->f = pestle_formula_before(block->last);
  pv_t* flags = NULL;
  if (is_flag_batched) {
    pestle_copier_t copier;
    const pestle_block_t* source = loop->regions[0]->block;
    pestle_copier_init(v->allocator, v->f.builder, &copier);
    pestle_status_t status = NULL;
    for (uint32_t i = 0; i < loop->operand_count && !status; ++i) {
      pv_t* stand_in = pestle_zeros(&v->f, source->arguments[i]);
      pestle_vmap_set(v, stand_in, block->arguments[i]);
      status = v->f.status
                   ? NULL
                   : pestle_copier_set(&copier, source->arguments[i], stand_in);
    }
    if (!status && !v->f.status) {
      status = run_branch(v, source, &copier, &flags);
    }
    pestle_copier_deinit(&copier);
    if (status) pestle_f_fail(&v->f, status);
  }
  for (uint32_t i = 0; i < loop->operand_count && !v->f.status; ++i) {
    pv_t* value = pestle_node_operand(block->last, i);
    values[i] = pestle_vmap_get(v, value);
    if (has[i]) values[i] = pestle_vmap_batch(v, values[i], values[i] != value);
    if (flags && !PESTLE_FAULT(ended_go_on))
      values[i] = choose(v, flags, values[i], block->arguments[i]);
  }
  pestle_status_t status = v->f.status;
  v->f = f;
  end_body(v, region, values, loop->operand_count, status);
}

void pestle_vmap_while(pestle_vmap_t* v, pestle_node_t* node,
                       pv_t* const* operands, const bool* is_batched,
                       pv_t** out) {
  uint32_t count = node->operand_count;
  bool* has = pestle_arena_alloc_zero(&v->arena, count + 1u, 1);
  pv_t** values = pestle_value_array(&v->f, &v->arena, count);
  pestle_region_t* regions[2] = {NULL, NULL};
  bool is_flag_batched = false, grew = true;
  if (!has || !values) return;
  memcpy(has, is_batched, count);
  while (grew && !v->f.status) {
    for (uint32_t r = 0; r < 2; ++r) {
      if (regions[r]) pestle_region_discard(regions[r]);
      regions[r] = make_body(v, node, r, has);
    }
    if (v->f.status) return;
    grew = false;
    is_flag_batched = pestle_vmap_is_batched(
        v, pestle_node_operand(regions[0]->block->last, 0));
    for (uint32_t i = 0; i < count; ++i) {
      bool now = is_flag_batched ||
                 pestle_vmap_is_batched(
                     v, pestle_node_operand(regions[1]->block->last, i));
      grew |= now && !has[i];
      has[i] |= now;
    }
  }
  if (v->f.status) return;
  end_turn(v, node, regions[1], has, is_flag_batched, values);
  end_condition(v, regions[0]);
  for (uint32_t i = 0; i < count; ++i)
    values[i] =
        has[i] ? pestle_vmap_batch(v, operands[i], is_batched[i]) : operands[i];
  pestle_node_t* made =
      pestle_f_node(&v->f, &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                                 .operands = values,
                                                 .operand_count = count,
                                                 .regions = regions,
                                                 .region_count = 2});
  for (uint32_t i = 0; made && i < count; ++i) {
    pv_t* value = pestle_node_result(made, i);
    if (has[i]) {
      out[i] = value;
    } else {
      pestle_value_replace_all_uses(pestle_node_result(node, i), value);
    }
  }
}
