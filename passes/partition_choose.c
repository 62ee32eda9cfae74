// SPDX-License-Identifier: Apache-2.0
// How an op is divided, by the bytes that have to move for it: see partition.h.
//
// Each plan starts from what one of the op's values has, the result first, and takes from
// the others what fits. What is cheapest wins; of equals that which divides the work
// more, then the first.
#include <string.h>

#include "passes/partition.h"

typedef pestle_shard_rule_t rule_t;
typedef pestle_axis_order_t order_t;
typedef partition_plan_t plan_t;

// --- Plans ---

static pestle_axes_t used_by(const rule_t* r, const plan_t* plan) {
  unsigned set = 0;
  for (int f = 0; f < r->factor_count; ++f)
    set |= pestle_axis_order_set(&plan->factors[f]);
  return (pestle_axes_t)set;
}

static void take_from(const partition_t* p, const rule_t* r, uint32_t tensor,
                      const pestle_spread_t* s, pestle_axes_t without,
                      plan_t* plan) {
  order_t orders[PESTLE_RULE_FACTORS];
  partition_project(p, r, tensor, s, orders);
  for (int f = 0; f < r->factor_count; ++f) {
    if (plan->factors[f].count) continue;
    unsigned used = (unsigned)used_by(r, plan) | without;
    int n = 0;
    while (n < orders[f].count && !(used >> orders[f].axes[n] & 1))
      ++n;
    orders[f].count = (uint8_t)n;
    plan->factors[f] = orders[f];
  }
}

// Behind a factor that is not divided to its elements, a dim has no other that is.
static bool settle_dim(const partition_t* p, const rule_t* r,
                       const pestle_rule_dim_t* d, plan_t* plan) {
  bool full = true, changed = false;
  for (int i = 0; i < d->count; ++i) {
    order_t* o = &plan->factors[d->factors[i]];
    if (!full && o->count) {
      o->count = 0;
      changed = true;
    }
    full =
        full && pestle_axis_order_parts(p->mesh, o) == r->sizes[d->factors[i]];
  }
  return changed;
}

static void settle(const partition_t* p, const rule_t* r, plan_t* plan) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t t = 0; t < r->tensor_count; ++t) {
      int32_t rank = r->tensors[t].value->type->rank;
      for (int32_t d = 0; d < rank; ++d)
        changed |= settle_dim(p, r, &r->tensors[t].dims[d], plan);
    }
  }
}

static pestle_axes_t reduced_by(const rule_t* r, const plan_t* plan) {
  unsigned set = 0;
  for (int f = 0; f < r->factor_count; ++f) {
    if (r->reduces[f]) set |= pestle_axis_order_set(&plan->factors[f]);
  }
  return (pestle_axes_t)set;
}

pestle_spread_t partition_planned(const partition_t* p, const rule_t* r,
                                  const plan_t* plan, uint32_t tensor) {
  const pestle_rule_tensor_t* t = &r->tensors[tensor];
  pestle_spread_t s = pestle_spread_whole();
  unsigned own = 0;
  (void)p;
  for (int32_t d = 0; d < t->value->type->rank; ++d) {
    order_t order = {.count = 0};
    for (int i = 0; i < t->dims[d].count; ++i) {
      const order_t* o = &plan->factors[t->dims[d].factors[i]];
      for (int k = 0; k < o->count; ++k)
        order.axes[order.count++] = o->axes[k];
    }
    pestle_spread_set_dim(&s, d, &order);
    own |= pestle_axis_order_set(&order);
  }
  // What other results are summed up along may be a dim of this one.
  unsigned reduced = reduced_by(r, plan) & ~own;
  pestle_combine_t combine = reduced ? r->combine : PESTLE_COMBINE_ADD;
  unsigned sums = 0;
  if (t->is_result || t->of_sums) sums = reduced | plan->sums;
  if (t->linear && !t->is_result) sums |= plan->sums;
  if (sums) pestle_spread_set_sums(&s, (pestle_axes_t)sums, combine);
  return s;
}

// --- What a plan costs ---

enum { MOST_TRIED = 16 };

typedef struct chooser_t {
  partition_t* p;
  const partition_rule_t* r;
  pestle_axes_t manual;
  bool found;
  double bytes, parts;
  plan_t* best;
  // What was tried: values that lie alike give the same plan many times.
  plan_t tried[MOST_TRIED];
  int tried_count;
} chooser_t;

static double cost_of(const chooser_t* c, const plan_t* plan) {
  const rule_t* r = &c->r->rule;
  double bytes = 0;
  for (uint32_t t = 0; t < r->tensor_count; ++t) {
    const partition_value_t* v = &c->p->values.data[c->r->values[t]];
    pestle_spread_t s = partition_planned(c->p, r, plan, t);
    if (r->tensors[t].is_result) {
      bytes += partition_reshard_cost(c->p, r->tensors[t].value->type, &s,
                                      &v->spread);
      continue;
    }
    double moved;
    (void)partition_nearest(c->p, v, &s, &moved);
    bytes += moved;
  }
  return bytes;
}

static bool same_plan(const rule_t* r, const plan_t* a, const plan_t* b) {
  bool same = a->sums == b->sums;
  for (int f = 0; same && f < r->factor_count; ++f)
    same = pestle_axis_order_equal(&a->factors[f], &b->factors[f]);
  return same;
}

static bool was_tried(chooser_t* c, const plan_t* plan) {
  for (int i = 0; i < c->tried_count; ++i) {
    if (same_plan(&c->r->rule, &c->tried[i], plan)) return true;
  }
  if (c->tried_count < MOST_TRIED) c->tried[c->tried_count++] = *plan;
  return false;
}

static void try_plan(chooser_t* c, plan_t* plan) {
  const rule_t* r = &c->r->rule;
  settle(c->p, r, plan);
  if (was_tried(c, plan)) return;
  if (used_by(r, plan) & plan->sums) return;
  if (plan->sums && reduced_by(r, plan) && r->combine != PESTLE_COMBINE_ADD)
    return;
  double bytes = cost_of(c, plan), parts = 1;
  for (int f = 0; f < r->factor_count; ++f)
    parts *= (double)pestle_axis_order_parts(c->p->mesh, &plan->factors[f]);
  bool better =
      !c->found || bytes < c->bytes || (bytes == c->bytes && parts > c->parts);
  if (!better) return;
  c->found = true;
  c->bytes = bytes;
  c->parts = parts;
  *c->best = *plan;
}

// --- Which plans there are ---

static const pestle_spread_t* spread_of(const chooser_t* c, uint32_t tensor,
                                        bool as_made) {
  const partition_value_t* v = &c->p->values.data[c->r->values[tensor]];
  return as_made && v->forms ? &v->forms->spread : &v->spread;
}

static void try_from(chooser_t* c, uint32_t first, bool alone, bool as_made,
                     pestle_axes_t sums) {
  const rule_t* r = &c->r->rule;
  plan_t plan = {.sums = sums};
  pestle_axes_t without = (pestle_axes_t)(c->manual | sums);
  take_from(c->p, r, first, spread_of(c, first, as_made), without, &plan);
  for (int results = 1; results >= 0 && !alone; --results) {
    for (uint32_t t = 0; t < r->tensor_count; ++t) {
      if (r->tensors[t].is_result != results || t == first) continue;
      take_from(c->p, r, t, spread_of(c, t, as_made), without, &plan);
    }
  }
  try_plan(c, &plan);
}

static void try_all(chooser_t* c, pestle_axes_t sums) {
  const rule_t* r = &c->r->rule;
  for (uint32_t i = 0; i < r->tensor_count; ++i) {
    uint32_t t = (i + r->operand_count) % r->tensor_count;
    for (int way = 0; way < 4; ++way)
      try_from(c, t, (way & 1) != 0, (way & 2) != 0, sums);
  }
  plan_t none = {.sums = sums};
  try_plan(c, &none);
}

// Summands may wait, if nobody else needs the sum.
static pestle_axes_t waiting(const chooser_t* c) {
  const rule_t* r = &c->r->rule;
  for (uint32_t t = 0; t < r->operand_count; ++t) {
    const partition_value_t* v = &c->p->values.data[c->r->values[t]];
    if (!r->tensors[t].linear || !v->forms || v->value->use_count != 1)
      continue;
    const pestle_spread_t* s = &v->forms->spread;
    pestle_axes_t sums = pestle_spread_sums(s);
    if (sums && s->combine == PESTLE_COMBINE_ADD && !(sums & c->manual))
      return sums;
  }
  return 0;
}

void partition_choose(partition_t* p, const partition_rule_t* rule,
                      pestle_axes_t manual, plan_t* out) {
  chooser_t c;
  c.p = p;
  c.r = rule;
  c.manual = manual;
  c.found = false;
  c.best = out;
  c.tried_count = 0;
  *out = (plan_t){.sums = 0};
  try_all(&c, 0);
  pestle_axes_t sums = waiting(&c);
  if (sums) try_all(&c, sums);
}
