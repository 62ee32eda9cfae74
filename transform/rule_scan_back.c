// SPDX-License-Identifier: Apache-2.0
// The transposed of a scan that is linear in its carries: a scan the other way round.
// It carries the cotangents of the carries and the sums of those of what each turn
// reads, and stacks up those of elements.
#include "base/fault.h"
#include "base/mem.h"
#include "transform/scan_build.h"

typedef struct back_t {
  pestle_transposer_t* x;
  pestle_scan_t s;
  pv_t* const* ct;         // of the results
  pestle_transposer_t in;  // of the body
  pestle_scan_build_t b;
  pv_t **carry, **xs,
      **constants;  // what stands for linear arguments in the copy
} back_t;

static bool is_linear_use(const back_t* w, const pestle_use_t* use) {
  return pestle_is_linear(w->x, use->value);
}

// Carries are all linear. What is not linear is read again, in the other direction.
static void push_back(back_t* w) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  pestle_formula_t* f = &w->x->f;
  for (size_t i = 0; i < s->carry_count; ++i) {
    pv_t* ct = w->ct[i] ? w->ct[i] : pestle_zeros(f, &s->final[i]);
    pestle_scan_push(b, &b->init, ct);
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (is_linear_use(w, &s->constants[i])) {
      pestle_scan_push(b, &b->init, pestle_zeros(f, s->constants[i].value));
    } else {
      pestle_scan_push(b, &b->constants, s->constants[i].value);
    }
  }
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (!is_linear_use(w, &s->xs[i])) {
      pestle_scan_push(b, &b->xs, s->xs[i].value);
    }
  }
  for (size_t i = 0; i < s->ys_count; ++i) {
    pv_t* ct = w->ct[s->carry_count + i];
    if (ct) pestle_scan_push(b, &b->xs, ct);
  }
}

// An argument of the copy that stands for a linear value: nothing of it is left over.
static pv_t* stand_in(back_t* w, const pv_t* argument) {
  pestle_formula_t f = pestle_formula_make(w->b.body.builder);
  pv_t* value = w->b.status ? NULL : pestle_zeros(&f, argument);
  if (f.status) w->b.status = f.status;
  pestle_scan_build_map(&w->b, argument, value);
  if (!w->b.status) w->b.status = pestle_linear_add(&w->in, value);
  return value;
}

static void map_back(back_t* w) {
  const pestle_scan_t* s = &w->s;
  size_t x = 0, constant = 0;
  for (size_t i = 0; i < s->carry_count; ++i)
    w->carry[i] = stand_in(w, s->carry[i]);
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (is_linear_use(w, &s->xs[i])) {
      w->xs[i] = stand_in(w, s->x[i]);
    } else {
      pestle_scan_build_map(&w->b, s->x[i], w->b.body.x[x++]);
    }
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (is_linear_use(w, &s->constants[i])) {
      w->constants[i] = stand_in(w, s->constant[i]);
    } else {
      pestle_scan_build_map(&w->b, s->constant[i],
                            w->b.body.constant[constant++]);
    }
  }
}

// The cotangents of what a turn returned are carried, and elements of the last xs.
static pestle_status_t transpose_body(back_t* w) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  size_t x = b->xs.size;
  pv_t** next = pestle_value_array(&w->x->f, &w->x->arena, s->carry_count);
  pv_t** y = pestle_value_array(&w->x->f, &w->x->arena, s->ys_count);
  if (!next || !y) return PESTLE_OOM();
  pestle_scan_build_copy(b, s);
  if (b->status) return NULL;
  PESTLE_TRY(pestle_linear_find(&w->in, b->body.region->block));
  pestle_scan_build_returned(b, s, next, y);
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_cotangent_add_to(&w->in, next[i], b->body.carry[i]);
  for (size_t i = s->ys_count; i-- > 0;) {
    if (!w->ct[s->carry_count + i]) continue;
    pestle_cotangent_add_to(&w->in, y[i], b->body.x[--x]);
  }
  w->in.f.builder = b->body.builder;
  return pestle_transpose_nodes(&w->in);
}

static pv_t* taken(back_t* w, pv_t* value) {
  pv_t* ct = pestle_cotangent_take(&w->in, value);
  return ct ? ct : pestle_zeros(&w->in.f, value);
}

static void push_results(back_t* w) {
  const pestle_scan_t* s = &w->s;
  pestle_scan_build_t* b = &w->b;
  size_t sum = s->carry_count;
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_scan_push(b, &b->next, taken(w, w->carry[i]));
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (!w->constants[i]) continue;
    pv_t* ct = taken(w, w->constants[i]);
    ct = pestle_f_add(&w->in.f, b->body.carry[sum++], ct);
    pestle_scan_push(b, &b->next, ct);
  }
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (w->xs[i]) pestle_scan_push(b, &b->ys, taken(w, w->xs[i]));
  }
}

static void hand_over(back_t* w, pestle_node_t* made) {
  const pestle_scan_t* s = &w->s;
  size_t next = 0;
  for (size_t i = 0; i < s->carry_count; ++i) {
    pestle_cotangent_add_to(w->x, s->init[i].value,
                            pestle_node_result(made, next++));
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (!w->constants[i]) continue;
    pestle_cotangent_add_to(w->x, s->constants[i].value,
                            pestle_node_result(made, next++));
  }
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (!w->xs[i]) continue;
    pestle_cotangent_add_to(w->x, s->xs[i].value,
                            pestle_node_result(made, next++));
  }
}

static pestle_status_t check_carries(const back_t* w) {
  for (size_t i = 0; i < w->s.carry_count; ++i) {
    if (pestle_is_smooth(w->s.carry[i]->type->dtype)) continue;
    return pestle_node_error(
        w->s.node, PESTLE_STATUS_UNSUPPORTED,
        "carries %s, which is not linear; take its vjp, or "
        "linearize what it comes from",
        pestle_dtype_info(w->s.carry[i]->type->dtype)->name);
  }
  return NULL;
}

static pestle_status_t transpose(back_t* w) {
  pestle_status_t status = NULL;
  PESTLE_TRY(check_carries(w));
  push_back(w);
  pestle_scan_build_begin(&w->b);
  if (!w->b.status) map_back(w);
  if (!w->b.status) status = transpose_body(w);
  w->b.status = pestle_status_join(w->b.status, status);
  if (!w->b.status) push_results(w);
  if (!w->b.status) w->b.status = w->in.f.status;
  w->in.f.status = NULL;
  pestle_node_t* made = pestle_scan_build_end(&w->b);
  if (!made) return NULL;
  pestle_sweep(made->regions[0]->block);
  hand_over(w, made);
  return NULL;
}

void pestle_transpose_scan(pestle_transposer_t* x, pestle_node_t* node,
                           pv_t* const* ct) {
  back_t w = {.x = x, .s = pestle_scan_read(node), .ct = ct};
  w.carry = pestle_value_array(&x->f, &x->arena, w.s.carry_count);
  w.xs = pestle_value_array(&x->f, &x->arena, w.s.xs_count);
  w.constants = pestle_value_array(&x->f, &x->arena, w.s.constant_count);
  if (!w.carry || !w.xs || !w.constants) return;
  pestle_transposer_init(x->allocator, x->f.builder, &w.in);
  // In the direction of the turns before: the last one is the first.
  pestle_scan_build_init(x->allocator, x->f.builder, &w.s,
                         !w.s.reverse ^ PESTLE_FAULT(wrong_scan_order), &w.b);
  pestle_status_t status = transpose(&w);
  pestle_status_t built = pestle_scan_build_close(&w.b);
  status = pestle_status_join(status, built);
  pestle_transposer_deinit(&w.in);
  if (status) pestle_f_fail(&x->f, status);
}
