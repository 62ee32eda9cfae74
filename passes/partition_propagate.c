// SPDX-License-Identifier: Apache-2.0
// Where values come to lie: what the module says of some of them goes on to the others,
// forward and backward, until nothing changes. First through ops that only move
// elements, or make one of one, then through all. See partition.h.
//
//   dot (i, k), (k, j) -> (i, j),  lhs [{data}, {}]   ->   result [{data}, {}]
//
// An axis goes where nothing contradicts: the longest list that all values which have
// the factor agree to begin with. What a value has is never taken away.
#include <string.h>

#include "base/mem.h"
#include "passes/partition.h"

typedef pestle_shard_rule_t rule_t;
typedef pestle_axis_order_t order_t;

// --- From dims to factors ---

void partition_project(const partition_t* p, const rule_t* rule,
                       uint32_t tensor, const pestle_spread_t* spread,
                       order_t* orders) {
  const pestle_rule_tensor_t* t = &rule->tensors[tensor];
  memset(orders, 0, (size_t)rule->factor_count * sizeof(*orders));
  int32_t rank = t->value ? t->value->type->rank : PESTLE_MAX_RANK;
  for (int32_t d = 0; d < rank; ++d) {
    order_t order = pestle_spread_dim(spread, d);
    uint8_t at = 0;
    int64_t left = t->dims[d].count ? rule->sizes[t->dims[d].factors[0]] : 1;
    for (int i = 0; i < order.count && at < t->dims[d].count;) {
      int64_t size = p->mesh->sizes[order.axes[i]];
      if (left == 1) {
        if (++at == t->dims[d].count) break;
        left = rule->sizes[t->dims[d].factors[at]];
        continue;
      }
      if (left % size != 0) break;
      order_t* to = &orders[t->dims[d].factors[at]];
      to->axes[to->count++] = order.axes[i++];
      left /= size;
    }
  }
}

// --- What a rule's values agree on ---

typedef struct agree_t {
  partition_t* p;
  const partition_rule_t* r;
  order_t* of;      // by tensor and factor: what it has
  order_t* agreed;  // by factor
  pestle_axes_t blocked;
} agree_t;

static order_t* of_tensor(const agree_t* a, uint32_t tensor) {
  return a->of + (size_t)tensor * (size_t)a->r->rule.factor_count;
}

static order_t agree_on(const agree_t* a, int factor) {
  order_t best = {.count = 0};
  for (uint32_t t = 0; t < a->r->rule.tensor_count; ++t) {
    const order_t* o = &of_tensor(a, t)[factor];
    if (o->count > best.count) best = *o;
  }
  for (uint32_t t = 0; t < a->r->rule.tensor_count; ++t) {
    const order_t* o = &of_tensor(a, t)[factor];
    int common = pestle_axis_order_common(&best, o);
    if (common < o->count) best.count = (uint8_t)common;
  }
  return best;
}

// The axes that |dim| of the tensor then has.
static order_t wanted(const agree_t* a, uint32_t tensor, int dim) {
  const rule_t* r = &a->r->rule;
  const pestle_rule_dim_t* d = &r->tensors[tensor].dims[dim];
  order_t out = {.count = 0};
  for (int i = 0; i < d->count; ++i) {
    const order_t* o = &a->agreed[d->factors[i]];
    int64_t left = r->sizes[d->factors[i]];
    for (int k = 0; k < o->count; ++k) {
      int64_t size = a->p->mesh->sizes[o->axes[k]];
      if (left % size != 0 || out.count == PESTLE_MESH_AXES) return out;
      left /= size;
      out.axes[out.count++] = o->axes[k];
    }
    if (left != 1) return out;
  }
  return out;
}

static bool update(const agree_t* a, uint32_t tensor) {
  const pestle_rule_tensor_t* t = &a->r->rule.tensors[tensor];
  pestle_spread_t* s = &a->p->values.data[a->r->values[tensor]].spread;
  bool changed = false;
  if (s->decided) return false;
  for (int d = 0; d < PESTLE_MAX_RANK; ++d) {
    if (!t->dims[d].count || (s->closed >> d & 1)) continue;
    order_t has = pestle_spread_dim(s, d), want = wanted(a, tensor, d);
    if (pestle_axis_order_common(&has, &want) < has.count) continue;
    unsigned taken = (unsigned)pestle_spread_used(s) | s->fixed | a->blocked;
    int n = has.count;
    while (n < want.count && !(taken >> want.axes[n] & 1))
      has.axes[n] = want.axes[n], ++n;
    if (n == has.count) continue;
    has.count = (uint8_t)n;
    pestle_spread_set_dim(s, d, &has);
    changed = true;
  }
  return changed;
}

// What is said of a dim for a later round is not seen yet.
static void hide_later(const agree_t* a, uint32_t tensor) {
  const partition_value_t* v = &a->p->values.data[a->r->values[tensor]];
  const pestle_rule_tensor_t* t = &a->r->rule.tensors[tensor];
  for (int d = 0; d < PESTLE_MAX_RANK; ++d) {
    for (int i = 0; v->rounds[d] > a->p->round && i < t->dims[d].count; ++i)
      of_tensor(a, tensor)[t->dims[d].factors[i]].count = 0;
  }
}

static bool apply(partition_t* p, const partition_rule_t* r, order_t* memory,
                  pestle_axes_t blocked) {
  size_t factors = (size_t)r->rule.factor_count;
  agree_t a = {p, r, memory, memory + factors * r->rule.tensor_count, blocked};
  if (!factors) return false;
  for (uint32_t t = 0; t < r->rule.tensor_count; ++t) {
    partition_project(p, &r->rule, t, &p->values.data[r->values[t]].spread,
                      of_tensor(&a, t));
    hide_later(&a, t);
  }
  for (int f = 0; f < r->rule.factor_count; ++f) {
    a.agreed[f] = agree_on(&a, f);
    unsigned others = 0;  // what factors before it took; sums are the last
    for (int g = 0; g < f; ++g)
      others |= pestle_axis_order_set(&a.agreed[g]);
    for (int i = 0; i < a.agreed[f].count; ++i) {
      if (others >> a.agreed[f].axes[i] & 1) a.agreed[f].count = (uint8_t)i;
    }
  }
  bool changed = false;
  for (uint32_t t = 0; t < r->rule.tensor_count; ++t)
    changed |= update(&a, t);
  return changed;
}

// --- Rules of a module ---

static pestle_status_t keep(partition_t* p, const rule_t* rule) {
  partition_rule_t* r = PESTLE_ARENA_NEW(p->arena, partition_rule_t);
  uint32_t* values =
      PESTLE_ARENA_ARRAY(p->arena, uint32_t, rule->tensor_count + 1);
  if (!r || !values) return PESTLE_OOM();
  for (uint32_t i = 0; i < rule->tensor_count; ++i)
    values[i] = partition_index(rule->tensors[i].value);
  *r = (partition_rule_t){.rule = *rule, .values = values};
  *(p->last_rule ? &p->last_rule->next : &p->rules) = r;
  p->last_rule = r;
  return NULL;
}

static pestle_status_t keep_pair(partition_t* p, const pestle_node_t* node,
                                 pestle_value_t* value, pestle_value_t* other);

static pestle_status_t keep_node(partition_t* p, pestle_node_t* n) {
  rule_t rule;
  if (partition_is_wish(n))
    return keep_pair(p, n, &n->results[0], pestle_node_operand(n, 0));
  if (partition_has_bodies(n)) {
    bool found = true;
    for (uint32_t i = 0; found; ++i) {
      PESTLE_TRY(pestle_shard_flow(n, i, p->arena, &rule, &found));
      if (found) PESTLE_TRY(keep(p, &rule));
    }
    return NULL;
  }
  if (pestle_pass_is_terminator(n)) return NULL;
  PESTLE_TRY(pestle_shard_rule(n, p->strict, p->arena, &rule));
  return keep(p, &rule);
}

// Two values that lie alike.
static pestle_status_t keep_pair(partition_t* p, const pestle_node_t* node,
                                 pestle_value_t* value, pestle_value_t* other) {
  rule_t rule = {.node = node,
                 .rows = -1,
                 .groups = -1,
                 .view = true,
                 .has_rule = true,
                 .tensor_count = 2};
  rule.tensors = pestle_rule_tensors(p->arena, 2);
  if (!rule.tensors) return PESTLE_OOM();
  rule.tensors[0].value = value;
  rule.tensors[1].value = other;
  for (int32_t d = 0; d < value->type->rank; ++d) {
    if (value->type->dims[d] < 2 || rule.factor_count == PESTLE_RULE_FACTORS)
      continue;
    rule.sizes[rule.factor_count] = value->type->dims[d];
    for (int t = 0; t < 2; ++t) {
      rule.tensors[t].dims[d] =
          (pestle_rule_dim_t){1, {(uint8_t)rule.factor_count}};
    }
    ++rule.factor_count;
  }
  return keep(p, &rule);
}

// A result of the module and the value that it is.
static pestle_status_t keep_result(partition_t* p, uint32_t index) {
  const pestle_node_t* ret = p->entry->body->block->last;
  pestle_value_t* value = pestle_node_operand(ret, index);
  PESTLE_TRY(keep_pair(p, ret, value, value));
  p->last_rule->values[1] = p->results[index];
  return NULL;
}

// --- Computations for each process ---

static bool move_dim(partition_t* p, const partition_marker_t* m,
                     pestle_spread_t* global, pestle_spread_t* local, int d) {
  order_t front = pestle_spread_dim(&m->spread, d);
  order_t out = pestle_spread_dim(global, d), in = pestle_spread_dim(local, d);
  (void)p;
  bool changed = false;
  // All of it, then what the other has behind the manual axes.
  order_t both = front;
  for (int i = 0; i < in.count && both.count < PESTLE_MESH_AXES; ++i)
    both.axes[both.count++] = in.axes[i];
  unsigned taken = (unsigned)pestle_spread_used(global) | global->fixed;
  if (!global->decided && !(global->closed >> d & 1) &&
      pestle_axis_order_common(&out, &both) == out.count &&
      out.count < both.count) {
    int n = out.count;
    while (n < both.count && !(taken >> both.axes[n] & 1))
      out.axes[n] = both.axes[n], ++n;
    changed = n > out.count;
    out.count = (uint8_t)n;
    if (changed) pestle_spread_set_dim(global, d, &out);
  }
  if (pestle_axis_order_common(&out, &front) < front.count) return changed;
  order_t rest = {.count = 0};
  for (int i = front.count; i < out.count; ++i) {
    if (pestle_axes_has(m->manual, out.axes[i])) break;
    rest.axes[rest.count++] = out.axes[i];
  }
  if (local->decided || pestle_axis_order_common(&in, &rest) < in.count ||
      rest.count <= in.count) {
    return changed;
  }
  unsigned has = pestle_spread_used(local);
  for (int i = in.count; i < rest.count; ++i) {
    if (has >> rest.axes[i] & 1) return changed;
  }
  pestle_spread_set_dim(local, d, &rest);
  return true;
}

static bool apply_marker(partition_t* p, const partition_marker_t* m) {
  pestle_value_t* operand = pestle_node_operand(m->node, 0);
  pestle_spread_t* a = &partition_of(p, operand)->spread;
  pestle_spread_t* b = &partition_of(p, &m->node->results[0])->spread;
  bool changed = false;
  for (int32_t d = 0; d < operand->type->rank; ++d)
    changed |= move_dim(p, m, m->enters ? a : b, m->enters ? b : a, d);
  return changed;
}

// --- Rounds ---

static pestle_axes_t blocked_of(partition_t* p, const partition_rule_t* r) {
  if (!partition_has_bodies(r->rule.node))
    return partition_manual(p, r->rule.node);
  return partition_of(p, r->rule.tensors[0].value)->manual;
}

// All rules, in the order of the ops.
typedef struct rounds_t {
  const partition_rule_t** rules;
  size_t count;
  order_t* memory;
} rounds_t;

// Once down the ops and once up again, so that what goes along a chain of any length
// takes one round. Each change adds an axis to a value, so this ends.
static void run_rounds(partition_t* p, bool views, const rounds_t* all) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < 2 * all->count; ++i) {
      const partition_rule_t* r =
          all->rules[i < all->count ? i : 2 * all->count - 1 - i];
      if (!views || r->rule.view)
        changed |= apply(p, r, all->memory, blocked_of(p, r));
    }
    for (const partition_marker_t* m = p->markers; m; m = m->next)
      changed |= apply_marker(p, m);
  }
}

pestle_status_t partition_propagate(partition_t* p) {
  const pestle_region_t* body = p->entry->body;
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    // What is made element by element for a reduction runs on no tensors.
    const pestle_node_t* owner = n->block->region->owner;
    if (owner && !partition_has_bodies(owner)) continue;
    PESTLE_TRY(keep_node(p, n));
  }
  for (uint32_t i = 0; i < body->block->last->operand_count; ++i)
    PESTLE_TRY(keep_result(p, i));
  rounds_t all = {.count = 0};
  size_t most = 0;
  for (const partition_rule_t* r = p->rules; r; r = r->next) {
    size_t need = (size_t)r->rule.factor_count * (r->rule.tensor_count + 1);
    if (need > most) most = need;
    ++all.count;
  }
  all.memory = PESTLE_ARENA_ARRAY(p->arena, order_t, most + 1);
  all.rules =
      PESTLE_ARENA_ARRAY(p->arena, const partition_rule_t*, all.count + 1);
  if (!all.memory || !all.rules) return PESTLE_OOM();
  all.count = 0;
  for (const partition_rule_t* r = p->rules; r; r = r->next)
    all.rules[all.count++] = r;
  for (int round = 0; round <= p->last_round; ++round) {
    p->round = (uint8_t)round;
    run_rounds(p, true, &all);
    run_rounds(p, false, &all);
  }
  return NULL;
}
