// SPDX-License-Identifier: Apache-2.0
// Puts ops into groups that become one kernel each.
//
//   %0 = convolution %x, %w         %0 = pestle.fusion(%x, %w, %b) {
//   %1 = broadcast_in_dim %b    ->    %1 = convolution ...
//   %2 = add %0, %1                   ... maximum
//   %3 = maximum %2, dense<0>       }
//
// In four steps, for each block:
//  1. Contractions and windows, last first, take the elementwise ops that
//     follow them, and views of the result behind those. A depthwise convolution
//     joins the pointwise one that reads it, where caches want it (fuse_pairs.c).
//  2. Reductions take the ops of their rows: elementwise ops, further reductions over the
//     same axes, broadcasts back along the row (softmax, layer norm).
//  3. Everything else, from the end to the front, joins the group of its users,
//     is copied into several if it is cheap, or begins a group. A value with
//     users elsewhere may still join and become another result.
//  4. Groups of one shape that read the same tensor are merged.
// A reshape stays outside where it costs nothing; composites are decomposed
// inside their fusion, whose label names them. One rule looks at the target's
// description, that of pairs of convolutions (fuse_pairs.c).
#include "passes/fuse.h"

#include <string.h>

#include "base/mem.h"

// Results of one group that others use.
#define MAX_RESULTS 4
// Ops in one group: longer chains compile slowly and spill.
#define MAX_MEMBERS 96
// Places at which a group may read one value for an element of its result. A
// value that is added to its own transpose is read at two, its operand at four:
// code and work would double with every link of such a chain.
#define MAX_COPIES 16
// Tensors that a group may read: a kernel takes 64 arguments.
#define MAX_OPERANDS 48

static bool is_grouped(const pestle_fuse_t* f, uint32_t item) {
  return f->items[item].group != PESTLE_FUSE_NONE;
}

// Whether |group| has no room for |node|, besides all rules.
static pestle_fuse_reason_t lacks_room(const pestle_fuse_group_t* g,
                                       const pestle_node_t* node) {
  if (g->count >= MAX_MEMBERS) return PESTLE_FUSE_REASON_FULL;
  // Every member but the last is some member's operand itself.
  return g->operands + node->operand_count <= g->count + MAX_OPERANDS
             ? PESTLE_FUSE_REASON_NONE
             : PESTLE_FUSE_REASON_TENSORS;
}

static bool moves_elements(const pestle_node_t* node) {
  pestle_fuse_class_t c =
      (pestle_fuse_class_t)pestle_op_info((pestle_op_t)node->op)->fuse;
  return c == PESTLE_FUSE_VIEW || c == PESTLE_FUSE_GATHER;
}

// Elementwise users read a value at one place, each view at places of its own.
static void count_copies(pestle_fuse_t* f, uint32_t item) {
  const pestle_node_t* node = pestle_fuse_node(f, item);
  uint32_t direct = 0, moved = 0;
  for (uint32_t r = 0; r < node->result_count; ++r) {
    for (const pestle_use_t* u = node->results[r].uses; u; u = u->next) {
      if (u->user->block != f->block) continue;
      const pestle_fuse_item_t* user = &f->items[u->user->scratch];
      uint32_t copies = user->copies ? user->copies : 1;
      if (moves_elements(u->user)) {
        moved += copies;
      } else if (copies > direct) {
        direct = copies;
      }
    }
  }
  uint32_t copies = direct + moved;
  f->items[item].copies = copies > MAX_COPIES ? MAX_COPIES + 1 : copies;
}

// --- What follows a hero ---

// Whether |node| could join |group| without closing a circle: what it needs
// besides must not need the group.
static bool is_safe(pestle_fuse_t* f, uint32_t group,
                    const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    uint32_t dep = pestle_fuse_item_of(f, pestle_node_operand(node, i));
    if (dep == PESTLE_FUSE_NONE || f->items[dep].group == group) continue;
    if (pestle_fuse_depends(f, dep, group)) return false;
  }
  return true;
}

// A kernel makes all that one of its results needs: what ends elsewhere than its hero
// is left to another.
static bool ends_alike(const pestle_fuse_t* f, uint32_t group,
                       const pestle_node_t* node) {
  const pestle_fuse_group_t* g = &f->groups[group];
  uint32_t item = g->hero == PESTLE_FUSE_NONE ? g->first : g->hero;
  return pestle_extents_same(
      &f->extents, &pestle_fuse_node(f, item)->results[0], &node->results[0]);
}

// Whether rows alone read |v|, also regrouped ones: they take what makes it.
static bool only_rows_read(const pestle_fuse_t* f, const pestle_value_t* v) {
  if (!v->uses) return false;
  for (const pestle_use_t* u = v->uses; u; u = u->next) {
    if (u->user->block != f->block) return false;
    bool rows = u->user->op == PESTLE_OP_RESHAPE
                    ? only_rows_read(f, &u->user->results[0])
                    : pestle_fuse_kind_of(u->user) == PESTLE_FUSE_KIND_ROW;
    if (!rows) return false;
  }
  return true;
}

// Whether |node| is a wider copy, for rows, of what another op reads behind the kernel: as a
// second result it would be more bytes than the first, written and read.
static bool widens_kept(pestle_fuse_t* f, uint32_t group,
                        const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CONVERT) return false;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  if (pestle_type_bytes(x->type) >= pestle_type_bytes(node->results[0].type) ||
      !only_rows_read(f, &node->results[0])) {
    return false;
  }
  for (const pestle_use_t* u = x->uses; u; u = u->next) {
    if (u->user == node) continue;
    if (u->user->block != f->block ||
        pestle_fuse_kind_of(u->user) != PESTLE_FUSE_KIND_MAP ||
        !is_safe(f, group, u->user)) {
      return true;
    }
  }
  return false;
}

// Full-size operands from other heroes are read once an element: always fine.
static pestle_fuse_reason_t refuses_follower(pestle_fuse_t* f, uint32_t group,
                                             uint32_t item, bool rows_only) {
  const pestle_fuse_group_t* g = &f->groups[group];
  const pestle_node_t* node = pestle_fuse_node(f, item);
  if (is_grouped(f, item)) return PESTLE_FUSE_REASON_TAKEN;
  if (node->result_count != 1) return PESTLE_FUSE_REASON_MANY_RESULTS;
  if (!ends_alike(f, group, node)) return PESTLE_FUSE_REASON_ENDS;
  pestle_fuse_reason_t why =
      pestle_fuse_refuses_follower(f, g, node, rows_only);
  if (!why) why = lacks_room(g, node);
  if (!why && widens_kept(f, group, node)) why = PESTLE_FUSE_REASON_WIDENED;
  return why || is_safe(f, group, node) ? why : PESTLE_FUSE_REASON_CIRCLE;
}

// Takes followers of |item|, then theirs. Members are few, so the queue is the
// member list itself, read from the front as it grows.
static void grow(pestle_fuse_t* f, uint32_t group, uint32_t* queue,
                 bool rows_only) {
  uint32_t head = 0, tail = 0;
  queue[tail++] = f->groups[group].hero;
  while (head < tail) {
    const pestle_node_t* node = pestle_fuse_node(f, queue[head++]);
    for (uint32_t r = 0; r < node->result_count; ++r) {
      for (const pestle_use_t* u = node->results[r].uses; u; u = u->next) {
        if (u->user->block != f->block) continue;
        uint32_t item = (uint32_t)u->user->scratch;
        pestle_fuse_reason_t why = refuses_follower(f, group, item, rows_only);
        if (pestle_fuse_note(f, group, item, why)) continue;
        pestle_fuse_add(f, group, item);
        queue[tail++] = item;
      }
    }
  }
}

pestle_node_t* pestle_fuse_only_user(const pestle_fuse_t* f, uint32_t group) {
  pestle_node_t* only = NULL;
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    for (uint32_t r = 0; r < node->result_count; ++r) {
      for (const pestle_use_t* u = node->results[r].uses; u; u = u->next) {
        bool inside = u->user->block == f->block &&
                      f->items[u->user->scratch].group == group;
        if (inside) continue;
        if (only || u->user->block != f->block) return NULL;
        only = u->user;
      }
    }
  }
  return only;
}

static bool keeps_rows(const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  return perm.count && perm.data[perm.count - 1] == (int64_t)perm.count - 1;
}

// A contraction writes its result through a transpose that leaves rows whole,
// and through the reshape in front of one.
static void take_views(pestle_fuse_t* f, uint32_t group) {
  pestle_node_t* first = pestle_fuse_only_user(f, group);
  if (!first || is_grouped(f, (uint32_t)first->scratch)) return;
  pestle_node_t* transpose = first;
  if (first->op == PESTLE_OP_RESHAPE && first->results[0].use_count == 1) {
    transpose = first->results[0].uses->user;
  }
  if (transpose->op != PESTLE_OP_TRANSPOSE || transpose->block != f->block ||
      is_grouped(f, (uint32_t)transpose->scratch) || !keeps_rows(transpose)) {
    return;
  }
  pestle_fuse_add(f, group, (uint32_t)first->scratch);
  if (transpose != first) {
    pestle_fuse_add(f, group, (uint32_t)transpose->scratch);
  }
}

static void group_contractions(pestle_fuse_t* f, uint32_t* queue) {
  for (uint32_t i = f->item_count; i-- > 0;) {
    pestle_fuse_kind_t kind = pestle_fuse_kind_of(pestle_fuse_node(f, i));
    if (kind != PESTLE_FUSE_KIND_DOT && kind != PESTLE_FUSE_KIND_WINDOW) {
      continue;
    }
    uint32_t group = pestle_fuse_new_group(f, i, kind);
    pestle_fuse_set_hero(f, group, i);
    if (pestle_fuse_node(f, i)->result_count != 1) continue;
    grow(f, group, queue, false);
    if (kind == PESTLE_FUSE_KIND_DOT) take_views(f, group);
  }
}

// --- Reductions ---

// Whether something reads |item| that is in neither of two groups.
static bool has_use_outside(const pestle_fuse_t* f, uint32_t item, uint32_t a,
                            uint32_t b) {
  const pestle_node_t* node = pestle_fuse_node(f, item);
  for (uint32_t r = 0; r < node->result_count; ++r) {
    for (const pestle_use_t* u = node->results[r].uses; u; u = u->next) {
      if (u->user->block != f->block) return true;
      uint32_t group = f->items[u->user->scratch].group;
      if (group != a && group != b) return true;
    }
  }
  return false;
}

static const pestle_type_t* result_shape(const pestle_fuse_t* f,
                                         uint32_t group) {
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    if (has_use_outside(f, i, group, group)) {
      return pestle_fuse_node(f, i)->results[0].type;
    }
  }
  return f->groups[group].domain;
}

// Results of a row's shape and of one number a row would be two kernels, and
// the second would reduce again.
static bool has_mixed_results(const pestle_fuse_t* f, uint32_t group) {
  const pestle_type_t* shape = NULL;
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    if (!has_use_outside(f, i, group, group)) continue;
    const pestle_type_t* type = pestle_fuse_node(f, i)->results[0].type;
    if (shape && pestle_type_count(shape) != pestle_type_count(type)) {
      return true;
    }
    shape = type;
  }
  return false;
}

static void ungroup_all_but_hero(pestle_fuse_t* f, uint32_t group) {
  pestle_fuse_group_t* g = &f->groups[group];
  for (uint32_t i = g->first, next; i != PESTLE_FUSE_NONE; i = next) {
    next = f->items[i].next;
    f->items[i].group = f->items[i].next = PESTLE_FUSE_NONE;
  }
  g->first = PESTLE_FUSE_NONE;
  g->count = g->operands = 0;
  g->min = g->max = g->hero;
  pestle_fuse_add(f, group, g->hero);
}

static bool reductions_innermost(const pestle_fuse_group_t* g) {
  int32_t last = g->domain->rank;
  for (size_t i = 0; i < g->axes.count; ++i) {
    --last;
    if (!pestle_i64s_has(g->axes, last)) return false;
  }
  return true;
}

static void count_reductions(pestle_fuse_t* f, uint32_t group) {
  uint32_t reductions = 0;
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    reductions += pestle_fuse_node(f, i)->op == PESTLE_OP_REDUCE;
  }
  f->groups[group].one_reduction = reductions == 1;
}

static void group_reductions(pestle_fuse_t* f, uint32_t* queue) {
  for (uint32_t i = 0; i < f->item_count; ++i) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    if (is_grouped(f, i) || pestle_fuse_kind_of(node) != PESTLE_FUSE_KIND_ROW) {
      continue;
    }
    uint32_t group = pestle_fuse_new_group(f, i, PESTLE_FUSE_KIND_ROW);
    pestle_fuse_set_hero(f, group, i);
    if (node->result_count != 1) continue;
    bool whole_rows = reductions_innermost(&f->groups[group]);
    grow(f, group, queue, !whole_rows);
    if (has_mixed_results(f, group)) {
      ungroup_all_but_hero(f, group);
      grow(f, group, queue, true);
    }
    if (node->op == PESTLE_OP_REDUCE) count_reductions(f, group);
  }
}

// --- Everything else, from users to producers ---

// Of |group|, were it one with |other|.
static uint32_t count_results(const pestle_fuse_t* f, uint32_t group,
                              uint32_t other) {
  uint32_t count = 0;
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    count += has_use_outside(f, i, group, other);
  }
  return count;
}

// Whether some user of |item| outside |group| is needed by the group: then the
// item cannot be made in it.
static bool users_come_first(pestle_fuse_t* f, uint32_t item, uint32_t group) {
  const pestle_node_t* node = pestle_fuse_node(f, item);
  for (const pestle_use_t* u = node->results[0].uses; u; u = u->next) {
    const pestle_node_t* user = u->user;
    // A use inside a region belongs to the op around it.
    while (user->block != f->block)
      user = user->block->region->owner;
    uint32_t other = (uint32_t)user->scratch;
    if (f->items[other].floating) return true;
    if (f->items[other].group != group &&
        pestle_fuse_group_depends(f, group, other)) {
      return true;
    }
  }
  return false;
}

// Whether |g| can store a value of its domain besides its own results.
static bool has_second_results(const pestle_fuse_t* f,
                               const pestle_fuse_group_t* g) {
  if (g->kind != PESTLE_FUSE_KIND_ROW) return g->kind == PESTLE_FUSE_KIND_MAP;
  const pestle_node_t* hero = pestle_fuse_node(f, g->hero);
  return pestle_pass_same_dims(hero->results[0].type, g->domain);
}

// Whether |node| ends where the results of |group| of its dims do.
static bool results_end_alike(const pestle_fuse_t* f, uint32_t group,
                              const pestle_node_t* node) {
  for (uint32_t i = f->groups[group].first;
       f->extents.any && i != PESTLE_FUSE_NONE; i = f->items[i].next) {
    if (has_use_outside(f, i, group, group) &&
        !pestle_extents_same(&f->extents, &pestle_fuse_node(f, i)->results[0],
                             &node->results[0])) {
      return false;
    }
  }
  return true;
}

// Why |item|, which others read too, is no result of |group|.
static pestle_fuse_reason_t refuses_result(pestle_fuse_t* f, uint32_t item,
                                           uint32_t group) {
  const pestle_fuse_group_t* g = &f->groups[group];
  const pestle_node_t* node = pestle_fuse_node(f, item);
  if (!pestle_fuse_is_elementwise(node) || !has_second_results(f, g)) {
    return PESTLE_FUSE_REASON_SECOND_RESULT;
  }
  if (!results_end_alike(f, group, node)) return PESTLE_FUSE_REASON_ENDS;
  pestle_fuse_reason_t why = lacks_room(g, node);
  if (why) return why;
  if (!g->domain || !pestle_pass_same_dims(node->results[0].type, g->domain)) {
    return PESTLE_FUSE_REASON_RESULT_SHAPE;
  }
  if (count_results(f, group, group) >= MAX_RESULTS) {
    return PESTLE_FUSE_REASON_RESULT_LIMIT;
  }
  why = pestle_fuse_refuses_producer(f, group, item);
  return why || !users_come_first(f, item, group) ? why
                                                  : PESTLE_FUSE_REASON_ORDER;
}

static void join(pestle_fuse_t* f, uint32_t group, uint32_t item) {
  pestle_fuse_note_joined(f, group, item);
  pestle_fuse_add(f, group, item);
}

// Into the only group that reads it.
static bool joins_reader(pestle_fuse_t* f, uint32_t item, uint32_t group) {
  pestle_fuse_reason_t why =
      lacks_room(&f->groups[group], pestle_fuse_node(f, item));
  if (!why) why = pestle_fuse_refuses_producer(f, group, item);
  if (pestle_fuse_note(f, group, item, why)) return false;
  join(f, group, item);
  return true;
}

// What tells most of a group that took |item| neither as a copy nor as a result.
static pestle_fuse_reason_t main_reason(const pestle_fuse_t* f, uint32_t item,
                                        uint32_t group,
                                        pestle_fuse_reason_t copies,
                                        pestle_fuse_reason_t result) {
  if (result != PESTLE_FUSE_REASON_SECOND_RESULT &&
      result != PESTLE_FUSE_REASON_RESULT_SHAPE) {
    return result;
  }
  pestle_fuse_reason_t why = pestle_fuse_refuses_producer(f, group, item);
  if (why) return why;
  bool told = copies == PESTLE_FUSE_REASON_OUTSIDE ||
              copies == PESTLE_FUSE_REASON_COSTLY_COPIES ||
              copies == PESTLE_FUSE_REASON_COPIES_READ ||
              copies == PESTLE_FUSE_REASON_MANY_READERS;
  return told ? copies : result;
}

// Into the first of several groups that takes it as another result.
static bool joins_as_result(pestle_fuse_t* f, uint32_t item,
                            const pestle_fuse_users_t* users,
                            pestle_fuse_reason_t copies) {
  for (uint32_t i = 0; i < users->count; ++i) {
    uint32_t group = users->groups[i];
    pestle_fuse_reason_t why = refuses_result(f, item, group);
    if (!why) {
      join(f, group, item);
      return true;
    }
    if (f->ctx->remarks) why = main_reason(f, item, group, copies, why);
    pestle_fuse_note(f, group, item, why);
  }
  return false;
}

// Whether a user of |item| floats: it is a unit until it is copied, and would
// come both before and after the group that it and |item| are in.
static bool has_floating_user(const pestle_fuse_t* f, uint32_t item) {
  const pestle_node_t* node = pestle_fuse_node(f, item);
  for (const pestle_use_t* u = node->results[0].uses; u; u = u->next) {
    if (u->user->block == f->block && f->items[u->user->scratch].floating) {
      return true;
    }
  }
  return false;
}

static void place(pestle_fuse_t* f, uint32_t item) {
  pestle_fuse_users_t users;
  pestle_fuse_find_users(f, item, &users);
  bool alone = !users.outside && !users.many && users.count == 1 &&
               !has_floating_user(f, item);
  count_copies(f, item);
  bool often = f->items[item].copies > MAX_COPIES;
  if (alone && !often && joins_reader(f, item, users.groups[0])) return;
  pestle_fuse_reason_t why = often
                                 ? PESTLE_FUSE_REASON_PLACES
                                 : pestle_fuse_refuses_copies(f, item, &users);
  if (!why) {
    f->items[item].floating = true;
    return;
  }
  if (!alone && !often && joins_as_result(f, item, &users, why)) return;
  for (uint32_t i = 0; i < users.count && often; ++i) {
    pestle_fuse_note(f, users.groups[i], item, why);
  }
  // Stored, so what makes it is evaluated once.
  f->items[item].copies = 1;
  const pestle_node_t* node = pestle_fuse_node(f, item);
  if (pestle_fuse_is_zero_copy(node)) return;
  uint32_t group = pestle_fuse_new_group(f, item, PESTLE_FUSE_KIND_MAP);
  f->groups[group].domain = node->results[0].type;
}

static void group_rest(pestle_fuse_t* f) {
  for (uint32_t i = f->item_count; i-- > 0;) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    if (is_grouped(f, i) || pestle_pass_is_stored(node) ||
        pestle_fuse_kind_of(node) != PESTLE_FUSE_KIND_MAP) {
      continue;
    }
    place(f, i);
  }
}

// --- Siblings ---

// Whether |a| needs |b| by a way through a third unit.
static bool depends_around(pestle_fuse_t* f, uint32_t a, uint32_t b) {
  for (uint32_t i = f->groups[a].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    for (uint32_t d = f->items[i].dep_begin; d < f->items[i + 1].dep_begin;
         ++d) {
      uint32_t group = f->items[f->deps[d]].group;
      if (group == a || group == b) continue;
      if (pestle_fuse_depends(f, f->deps[d], b)) return true;
    }
  }
  return false;
}

static bool is_core_reduce(const pestle_fuse_t* f,
                           const pestle_fuse_group_t* g) {
  return pestle_fuse_node(f, g->hero)->op == PESTLE_OP_REDUCE &&
         pestle_fuse_node(f, g->hero)->result_count == 1;
}

static bool is_same_kind(const pestle_fuse_t* f, const pestle_fuse_group_t* x,
                         const pestle_fuse_group_t* y) {
  if (x->kind != y->kind || !pestle_pass_same_dims(x->domain, y->domain)) {
    return false;
  }
  if (x->kind == PESTLE_FUSE_KIND_MAP) return true;
  return x->kind == PESTLE_FUSE_KIND_ROW && is_core_reduce(f, x) &&
         is_core_reduce(f, y) && pestle_i64s_equal(x->axes, y->axes);
}

// Results of both, were they one.
static bool fits_results(pestle_fuse_t* f, uint32_t a, uint32_t b) {
  if (count_results(f, a, b) + count_results(f, b, a) > MAX_RESULTS) {
    return false;
  }
  if (f->groups[a].kind != PESTLE_FUSE_KIND_ROW) return true;
  return !has_mixed_results(f, a) && !has_mixed_results(f, b) &&
         pestle_type_count(result_shape(f, a)) ==
             pestle_type_count(result_shape(f, b));
}

bool pestle_fuse_has_room(const pestle_fuse_t* f, uint32_t a, uint32_t b) {
  const pestle_fuse_group_t *x = &f->groups[a], *y = &f->groups[b];
  return x->count + y->count <= MAX_MEMBERS &&
         x->operands + y->operands <= x->count + y->count + MAX_OPERANDS;
}

static bool groups_end_alike(const pestle_fuse_t* f, uint32_t a, uint32_t b) {
  for (uint32_t i = f->groups[b].first; f->extents.any && i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    if (has_use_outside(f, i, a, b) &&
        !results_end_alike(f, a, pestle_fuse_node(f, i))) {
      return false;
    }
  }
  return true;
}

static bool may_merge(pestle_fuse_t* f, uint32_t a, uint32_t b) {
  const pestle_fuse_group_t *x = &f->groups[a], *y = &f->groups[b];
  return a != b && !x->dead && !y->dead && is_same_kind(f, x, y) &&
         pestle_fuse_has_room(f, a, b) && groups_end_alike(f, a, b) &&
         fits_results(f, a, b) && !depends_around(f, a, b) &&
         !depends_around(f, b, a);
}

void pestle_fuse_merge(pestle_fuse_t* f, uint32_t into, uint32_t from) {
  for (uint32_t i = f->groups[from].first, next; i != PESTLE_FUSE_NONE;
       i = next) {
    next = f->items[i].next;
    pestle_fuse_add(f, into, i);
  }
  f->groups[into].repeated += f->groups[from].repeated;
  f->groups[into].one_reduction = false;
  f->groups[from].dead = true;
  f->groups[from].first = PESTLE_FUSE_NONE;
  f->groups[from].count = f->groups[from].operands = 0;
}

// Whether the use reads the value over the whole domain of its user's group.
static bool reads_domain(const pestle_fuse_t* f, const pestle_use_t* use) {
  if (use->user->block != f->block) return false;
  uint32_t group = f->items[use->user->scratch].group;
  if (group == PESTLE_FUSE_NONE) return false;
  const pestle_fuse_group_t* g = &f->groups[group];
  if (g->kind != PESTLE_FUSE_KIND_MAP && g->kind != PESTLE_FUSE_KIND_ROW) {
    return false;
  }
  bool rows = g->kind == PESTLE_FUSE_KIND_ROW;
  bool whole = pestle_fuse_is_elementwise(use->user) ||
               (rows && (use->user->op == PESTLE_OP_REDUCE ||
                         pestle_fuse_splits_dims(use->user)));
  // A reduction's producers may have its dims uncut.
  const pestle_type_t* type = use->value->type;
  return whole &&
         (pestle_pass_same_dims(type, g->domain) ||
          (rows && pestle_type_count(type) == pestle_type_count(g->domain)));
}

// Groups that read the same.
typedef struct readers_t {
  uint32_t groups[8];
  uint32_t count;
} readers_t;

static void add_reader(pestle_fuse_t* f, readers_t* r, uint32_t group) {
  for (uint32_t i = 0; i < r->count; ++i) {
    if (r->groups[i] == group) return;
    if (may_merge(f, r->groups[i], group)) {
      pestle_fuse_merge(f, r->groups[i], group);
      return;
    }
  }
  if (r->count < sizeof(r->groups) / sizeof(*r->groups)) {
    r->groups[r->count++] = group;
  }
}

// Merges the groups that read |value|, each into the first that takes it.
static void merge_readers(pestle_fuse_t* f, const pestle_value_t* value) {
  readers_t r = {.count = 0};
  uint32_t seen = 0;
  for (const pestle_use_t* u = value->uses; u && seen < 32; u = u->next) {
    ++seen;
    if (reads_domain(f, u)) add_reader(f, &r, f->items[u->user->scratch].group);
  }
}

// The group that |use| is read by through views that cost nothing, if it is one of rows or
// of moves; or NONE.
static uint32_t near_reader(const pestle_fuse_t* f, const pestle_use_t* use) {
  enum { MAX_VIEWS = 4 };
  const pestle_node_t* user = use->user;
  for (int i = 0; i < MAX_VIEWS && user->block == f->block; ++i) {
    uint32_t group = f->items[user->scratch].group;
    if (group != PESTLE_FUSE_NONE) {
      pestle_fuse_kind_t kind = f->groups[group].kind;
      bool fits = kind == PESTLE_FUSE_KIND_ROW || kind == PESTLE_FUSE_KIND_MAP;
      return fits ? group : PESTLE_FUSE_NONE;
    }
    if (!pestle_fuse_is_zero_copy(user) || user->results[0].use_count != 1) {
      break;
    }
    user = user->results[0].uses->user;
  }
  return PESTLE_FUSE_NONE;
}

// Merges the groups that read results of one kernel, each its own: they are ready at once,
// and one launch is spared.
static void merge_beside(pestle_fuse_t* f, const pestle_node_t* node,
                         readers_t* r) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    uint32_t seen = 0;
    for (const pestle_use_t* u = node->results[i].uses; u && seen < 8;
         u = u->next, ++seen) {
      uint32_t group = near_reader(f, u);
      if (group != PESTLE_FUSE_NONE) add_reader(f, r, group);
    }
  }
}

static void merge_behind_group(pestle_fuse_t* f, uint32_t group) {
  readers_t r = {.count = 0};
  if (f->groups[group].dead || count_results(f, group, group) < 2) return;
  for (uint32_t i = f->groups[group].first, next; i != PESTLE_FUSE_NONE;
       i = next) {
    next = f->items[i].next;
    if (has_use_outside(f, i, group, group)) {
      merge_beside(f, pestle_fuse_node(f, i), &r);
    }
  }
}

static void merge_siblings(pestle_fuse_t* f) {
  for (uint32_t i = 0; i < f->block->argument_count; ++i) {
    merge_readers(f, f->block->arguments[i]);
  }
  for (uint32_t i = 0; i < f->item_count; ++i) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    for (uint32_t r = 0; r < node->result_count; ++r) {
      merge_readers(f, &node->results[r]);
    }
  }
  for (uint32_t i = 0; i < f->item_count; ++i) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    readers_t r = {.count = 0};
    if (node->result_count > 1) merge_beside(f, node, &r);
  }
  for (uint32_t g = 0; g < f->group_count; ++g)
    merge_behind_group(f, g);
}

// --- The pass ---

// One group an op.
static void group_singly(pestle_fuse_t* f) {
  for (uint32_t i = 0; i < f->item_count; ++i) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    if (pestle_pass_is_stored(node) || pestle_fuse_is_zero_copy(node) ||
        pestle_fuse_kind_of(node) == PESTLE_FUSE_KIND_ALONE) {
      continue;
    }
    pestle_fuse_new_group(f, i, pestle_fuse_kind_of(node));
  }
}

static pestle_status_t fuse_items(pestle_fuse_t* f) {
  PESTLE_TRY(pestle_fuse_init(f));
  uint32_t* queue =
      PESTLE_ARENA_ARRAY(f->ctx->scratch, uint32_t, f->item_count + 1);
  if (!queue) return PESTLE_OOM();
  if (f->ctx->options->no_fuse) {
    group_singly(f);
  } else {
    group_contractions(f, queue);
    pestle_fuse_pairs(f);
    group_reductions(f, queue);
    group_rest(f);
    merge_siblings(f);
  }
  pestle_status_t status = NULL;
  if (f->ctx->remarks) status = pestle_fuse_remark_edges(f);
  if (!status) status = pestle_fuse_emit(f);
  if (!status && f->ctx->remarks) pestle_fuse_remark_fusions(f);
  return status;
}

static pestle_status_t fuse_block(void* user, pestle_module_t* module,
                                  pestle_block_t* block) {
  pestle_fuse_t* f = user;
  pestle_arena_mark_t mark = pestle_arena_mark(f->ctx->scratch);
  f->module = module;
  f->block = block;
  pestle_status_t status =
      pestle_extents_find(f->allocator, f->ctx->scratch, block, &f->extents);
  if (!status) status = fuse_items(f);
  pestle_extents_deinit(&f->extents);
  pestle_vec_clear(&f->notes);
  pestle_vec_clear(&f->pairs);
  pestle_arena_rewind(f->ctx->scratch, mark);
  return status;
}

pestle_status_t pestle_pass_fuse(pestle_pass_context_t* ctx,
                                 pestle_module_t* module, bool* out_changed) {
  pestle_fuse_t f = {.ctx = ctx,
                     .allocator = pestle_context_allocator(ctx->context)};
  pestle_vec_init(&f.notes, f.allocator);
  pestle_vec_init(&f.pairs, f.allocator);
  pestle_status_t status = pestle_pass_each_block(module, fuse_block, &f);
  pestle_vec_deinit(&f.notes);
  pestle_vec_deinit(&f.pairs);
  *out_changed = true;
  return status;
}
