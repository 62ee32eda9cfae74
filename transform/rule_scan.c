// SPDX-License-Identifier: Apache-2.0
// Loops of a known number of turns. Forward: one scan over pairs. To be transposed: the
// primal scan, which stacks up what linear ops read of its values, and a scan of the
// linear ops over these stacks. The transposed of the latter runs the other way round:
// it carries cotangents of the carries and sums those of what each turn reads.
#include <string.h>

#include "base/mem.h"
#include "transform/scan_build.h"

// A scan, and in |b| the one over pairs: primal operands and then the tangents of those
// that have one, in each of the three lists.
typedef struct pairs_t {
  pestle_jvp_t* j;
  pestle_scan_t s;
  bool* has;         // carries with tangents
  bool* has_y;       // stacks with tangents
  pv_t **next, **y;  // in the body of the pairs: what it returns
  pestle_scan_build_t b;
} pairs_t;

static pv_t* tangent_of(const pairs_t* p, const pestle_use_t* use) {
  return pestle_tangent(p->j, use->value);
}

static void push_uses(pestle_scan_build_t* b, pestle_values_t* list,
                      const pestle_use_t* uses, size_t count) {
  for (size_t i = 0; i < count; ++i)
    pestle_scan_push(b, list, uses[i].value);
}

// --- Pairs ---

static void push_operands(pairs_t* p) {
  const pestle_scan_t* s = &p->s;
  pestle_scan_build_t* b = &p->b;
  push_uses(b, &b->init, s->init, s->carry_count);
  push_uses(b, &b->xs, s->xs, s->xs_count);
  push_uses(b, &b->constants, s->constants, s->constant_count);
  for (size_t i = 0; i < s->carry_count; ++i) {
    if (!p->has[i]) continue;
    pestle_scan_push(b, &b->init,
                     pestle_tangent_or_zeros(p->j, s->init[i].value));
  }
  for (size_t i = 0; i < s->xs_count; ++i) {
    pv_t* t = tangent_of(p, &s->xs[i]);
    if (t) pestle_scan_push(b, &b->xs, t);
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    pv_t* t = tangent_of(p, &s->constants[i]);
    if (t) pestle_scan_push(b, &b->constants, t);
  }
}

static void map_list(pairs_t* p, pv_t* const* from, pv_t* const* to,
                     size_t count, const pestle_use_t* uses, const bool* has) {
  size_t next = count;
  for (size_t i = 0; i < count; ++i) {
    pestle_scan_build_map(&p->b, from[i], to[i]);
    if (has ? has[i] : tangent_of(p, &uses[i]) != NULL) {
      pestle_tangent_set(p->j, to[i], to[next++]);
    }
  }
}

// The body with tangents; |*out_grew|: carries have tangents that had none before.
static void make_pairs(pairs_t* p, bool* out_grew) {
  const pestle_scan_t* s = &p->s;
  pestle_scan_build_t* b = &p->b;
  *out_grew = false;
  pestle_scan_build_init(p->j->allocator, p->j->f.builder, s, s->reverse, b);
  push_operands(p);
  pestle_scan_build_begin(b);
  if (b->status) return;
  map_list(p, s->carry, b->body.carry, s->carry_count, NULL, p->has);
  map_list(p, s->x, b->body.x, s->xs_count, s->xs, NULL);
  map_list(p, s->constant, b->body.constant, s->constant_count, s->constants,
           NULL);
  pestle_scan_build_copy(b, s);
  if (!b->status) b->status = pestle_jvp_inner(p->j, b->body.region->block);
  pestle_scan_build_returned(b, s, p->next, p->y);
  for (size_t i = 0; i < s->carry_count && !b->status; ++i) {
    bool has = pestle_tangent(p->j, p->next[i]) != NULL;
    *out_grew |= has && !p->has[i];
    p->has[i] |= has;
  }
  for (size_t i = 0; i < s->ys_count && !b->status; ++i) {
    p->has_y[i] = pestle_tangent(p->j, p->y[i]) != NULL;
  }
}

// The tangents of |values| that |has|, zeros for those that turn out to have none.
static void push_tangents(pairs_t* p, pestle_scan_build_t* to,
                          pestle_values_t* list, pv_t* const* values,
                          size_t count, const bool* has) {
  pestle_formula_t f = pestle_formula_make(p->b.body.builder);
  for (size_t i = 0; i < count && !to->status; ++i) {
    if (!has[i]) continue;
    pv_t* t = pestle_tangent(p->j, values[i]);
    if (!t) t = pestle_zeros(&f, values[i]);
    to->status = f.status;
    pv_t* value = to == &p->b ? t : pestle_scan_build_get(to, t);
    pestle_scan_push(to, list, value);
  }
}

// The results of |primal| take the place of the scan's; those of |linear| are their
// tangents, carries from |carry| on, stacks from |stack| on.
static void replace(pairs_t* p, pestle_node_t* primal, size_t primal_stack,
                    pestle_node_t* linear, size_t carry, size_t stack) {
  const pestle_scan_t* s = &p->s;
  for (size_t i = 0; i < s->carry_count; ++i) {
    pv_t* value = pestle_node_result(primal, i);
    pestle_value_replace_all_uses(&s->final[i], value);
    if (p->has[i]) {
      pestle_tangent_set(p->j, value, pestle_node_result(linear, carry++));
    }
  }
  for (size_t i = 0; i < s->ys_count; ++i) {
    pv_t* value = pestle_node_result(primal, primal_stack + i);
    pestle_value_replace_all_uses(&s->ys[i], value);
    if (p->has_y[i]) {
      pestle_tangent_set(p->j, value, pestle_node_result(linear, stack++));
    }
  }
  pestle_node_erase(s->node);
}

static void finish_pairs(pairs_t* p) {
  const pestle_scan_t* s = &p->s;
  pestle_scan_build_t* b = &p->b;
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_scan_push(b, &b->next, p->next[i]);
  push_tangents(p, b, &b->next, p->next, s->carry_count, p->has);
  for (size_t i = 0; i < s->ys_count; ++i)
    pestle_scan_push(b, &b->ys, p->y[i]);
  push_tangents(p, b, &b->ys, p->y, s->ys_count, p->has_y);
  size_t carries = b->init.size;
  pestle_node_t* made = pestle_scan_build_end(b);
  if (made) {
    replace(p, made, carries, made, s->carry_count, carries + s->ys_count);
  }
}

// --- Two scans ---

typedef struct split_t {
  pairs_t* p;
  pestle_transposer_t x;      // finds what is linear in the body of the pairs
  pestle_values_t residuals;  // what that reads beside
  pestle_node_t* primal;
  pestle_scan_build_t b;  // of the scan in the making
} split_t;

static pestle_status_t mark(split_t* w) {
  const pairs_t* p = w->p;
  const pestle_scan_body_t* body = &p->b.body;
  for (size_t i = p->s.carry_count; i < p->b.init.size; ++i)
    PESTLE_TRY(pestle_linear_add(&w->x, body->carry[i]));
  for (size_t i = p->s.xs_count; i < p->b.xs.size; ++i)
    PESTLE_TRY(pestle_linear_add(&w->x, body->x[i]));
  for (size_t i = p->s.constant_count; i < p->b.constants.size; ++i)
    PESTLE_TRY(pestle_linear_add(&w->x, body->constant[i]));
  return pestle_linear_find(&w->x, body->region->block);
}

static pestle_status_t find_residuals(split_t* w) {
  pairs_t* p = w->p;
  size_t n = 0, count = p->s.carry_count + p->s.ys_count;
  pv_t** outputs = pestle_value_array(&p->j->f, &p->j->arena, count);
  if (!outputs) return PESTLE_OOM();
  for (size_t i = 0; i < p->s.carry_count; ++i)
    outputs[n++] = p->has[i] ? pestle_tangent(p->j, p->next[i]) : NULL;
  for (size_t i = 0; i < p->s.ys_count; ++i)
    outputs[n++] = pestle_tangent(p->j, p->y[i]);
  return pestle_region_residuals(&w->x, p->b.body.region->block, outputs, n,
                                 &w->residuals);
}

// The operand whose element, or which itself, |value| is: it need not be stacked up.
static pv_t* find_operand(const pairs_t* p, const pv_t* value, bool* out_is_x) {
  for (size_t i = 0; i < p->s.xs_count; ++i) {
    if (p->b.body.x[i] == value) {
      *out_is_x = true;
      return p->s.xs[i].value;
    }
  }
  *out_is_x = false;
  for (size_t i = 0; i < p->s.constant_count; ++i) {
    if (p->b.body.constant[i] == value) return p->s.constants[i].value;
  }
  return NULL;
}

static void make_primal(split_t* w) {
  pairs_t* p = w->p;
  const pestle_scan_t* s = &p->s;
  const pestle_scan_body_t* from = &p->b.body;
  pestle_scan_build_t* b = &w->b;
  bool is_x;
  pestle_scan_build_init(p->j->allocator, p->j->f.builder, s, s->reverse, b);
  push_uses(b, &b->init, s->init, s->carry_count);
  push_uses(b, &b->xs, s->xs, s->xs_count);
  push_uses(b, &b->constants, s->constants, s->constant_count);
  pestle_scan_build_begin(b);
  if (b->status) return;
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_scan_build_map(b, from->carry[i], b->body.carry[i]);
  for (size_t i = 0; i < s->xs_count; ++i)
    pestle_scan_build_map(b, from->x[i], b->body.x[i]);
  for (size_t i = 0; i < s->constant_count; ++i)
    pestle_scan_build_map(b, from->constant[i], b->body.constant[i]);
  if (!b->status) {
    b->status =
        pestle_region_copy_primal(&w->x, from->region->block, &b->copier);
  }
  for (size_t i = 0; i < s->carry_count; ++i)
    pestle_scan_push(b, &b->next, pestle_scan_build_get(b, p->next[i]));
  for (size_t i = 0; i < s->ys_count; ++i)
    pestle_scan_push(b, &b->ys, pestle_scan_build_get(b, p->y[i]));
  for (size_t i = 0; i < w->residuals.size; ++i) {
    pv_t* value = w->residuals.data[i];
    if (find_operand(p, value, &is_x)) continue;
    pestle_scan_push(b, &b->ys, pestle_scan_build_get(b, value));
  }
  w->primal = pestle_scan_build_end(b);
}

// Operands of the linear scan: tangents, then residuals.
static void push_linear(split_t* w) {
  pairs_t* p = w->p;
  const pestle_scan_t* s = &p->s;
  pestle_scan_build_t* b = &w->b;
  size_t stack = s->carry_count + s->ys_count;
  bool is_x;
  for (size_t i = s->carry_count; i < p->b.init.size; ++i)
    pestle_scan_push(b, &b->init, p->b.init.data[i]);
  for (size_t i = s->xs_count; i < p->b.xs.size; ++i)
    pestle_scan_push(b, &b->xs, p->b.xs.data[i]);
  for (size_t i = s->constant_count; i < p->b.constants.size; ++i)
    pestle_scan_push(b, &b->constants, p->b.constants.data[i]);
  for (size_t i = 0; i < w->residuals.size; ++i) {
    pv_t* operand = find_operand(p, w->residuals.data[i], &is_x);
    pestle_values_t* list = operand && !is_x ? &b->constants : &b->xs;
    if (!operand) operand = pestle_node_result(w->primal, stack++);
    pestle_scan_push(b, list, operand);
  }
}

static void map_linear(split_t* w) {
  pairs_t* p = w->p;
  const pestle_scan_t* s = &p->s;
  const pestle_scan_body_t *from = &p->b.body, *to = &w->b.body;
  size_t carries = p->b.init.size - s->carry_count;
  size_t x = p->b.xs.size - s->xs_count;
  size_t constant = p->b.constants.size - s->constant_count;
  bool is_x;
  for (size_t i = 0; i < carries; ++i)
    pestle_scan_build_map(&w->b, from->carry[s->carry_count + i], to->carry[i]);
  for (size_t i = 0; i < x; ++i)
    pestle_scan_build_map(&w->b, from->x[s->xs_count + i], to->x[i]);
  for (size_t i = 0; i < constant; ++i) {
    pestle_scan_build_map(&w->b, from->constant[s->constant_count + i],
                          to->constant[i]);
  }
  for (size_t i = 0; i < w->residuals.size; ++i) {
    pv_t* operand = find_operand(p, w->residuals.data[i], &is_x);
    pv_t* argument = operand && !is_x ? to->constant[constant++] : to->x[x++];
    pestle_scan_build_map(&w->b, w->residuals.data[i], argument);
  }
}

static void make_linear(split_t* w) {
  pairs_t* p = w->p;
  const pestle_scan_t* s = &p->s;
  pestle_scan_build_t* b = &w->b;
  pestle_scan_build_init(p->j->allocator, p->j->f.builder, s, s->reverse, b);
  push_linear(w);
  pestle_scan_build_begin(b);
  if (b->status) return;
  map_linear(w);
  if (!b->status) b->status = pestle_region_copy_linear(&w->x, &b->copier);
  push_tangents(p, b, &b->next, p->next, s->carry_count, p->has);
  push_tangents(p, b, &b->ys, p->y, s->ys_count, p->has_y);
  size_t carries = b->init.size;
  pestle_node_t* linear = pestle_scan_build_end(b);
  if (linear) replace(p, w->primal, s->carry_count, linear, 0, carries);
}

static pestle_status_t split(pairs_t* p) {
  split_t w = {.p = p};
  pestle_allocator_t a = p->j->allocator;
  pestle_transposer_init(a, p->b.body.builder, &w.x);
  pestle_vec_init(&w.residuals, a);
  pestle_status_t status = mark(&w);
  if (!status) status = find_residuals(&w);
  if (!status) {
    make_primal(&w);
    status = pestle_scan_build_close(&w.b);
  }
  if (!status) {
    make_linear(&w);
    status = pestle_scan_build_close(&w.b);
  }
  pestle_vec_deinit(&w.residuals);
  pestle_transposer_deinit(&w.x);
  return status;
}

// Which carries have tangents: from none on, as long as there are more.
void pestle_jvp_scan(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                     pv_t** out) {
  pairs_t p = {.j = j, .s = pestle_scan_read(node)};
  size_t carries = p.s.carry_count, stacks = p.s.ys_count;
  p.has = pestle_arena_alloc_zero(&j->arena, carries + stacks + 1, 1);
  p.next = pestle_value_array(&j->f, &j->arena, carries);
  p.y = pestle_value_array(&j->f, &j->arena, stacks);
  (void)out;
  if (!p.has || !p.next || !p.y) return;
  p.has_y = p.has + carries;
  for (size_t i = 0; i < carries; ++i)
    p.has[i] = t[i] != NULL;
  bool grew = true;
  while (grew && !j->f.status) {
    make_pairs(&p, &grew);
    if (!p.b.status && !grew) {
      if (j->is_linear) {
        p.b.status = split(&p);
      } else {
        finish_pairs(&p);
      }
    }
    pestle_status_t status = pestle_scan_build_close(&p.b);
    if (status) pestle_f_fail(&j->f, status);
  }
}
