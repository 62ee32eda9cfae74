// SPDX-License-Identifier: Apache-2.0
// Turns groups into pestle.fusion nodes: finds an order of all units in which
// everything comes after what it needs, makes the nodes in that order, erases
// the members. Inside a fusion stand copies of its members, of floating ops
// and of splat constants, and composites are decomposed.
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "passes/fold_constants.h"
#include "passes/fuse.h"
#include "passes/simplify.h"

// --- Order of units ---

// A unit is a group or a single item; it is named by its first member.
typedef struct order_t {
  pestle_fuse_t* f;
  uint32_t* units;  // in execution order
  uint32_t count;
  uint8_t* state;  // by item: 0 new, 1 open, 2 done
} order_t;

static uint32_t unit_of(const pestle_fuse_t* f, uint32_t item) {
  uint32_t group = f->items[item].group;
  return group == PESTLE_FUSE_NONE ? item : f->groups[group].first;
}

static uint32_t next_member(const pestle_fuse_t* f, uint32_t item) {
  return f->items[item].next;
}

// A place in the walk: the member and the dependency that come next.
typedef struct frame_t {
  uint32_t unit, member, dep;
} frame_t;

// Depth-first from |unit|, with a stack of its own since chains are long.
static pestle_status_t visit(order_t* order, uint32_t unit, frame_t* stack) {
  const pestle_fuse_t* f = order->f;
  uint32_t depth = 0;
  stack[depth++] = (frame_t){unit, unit, f->items[unit].dep_begin};
  order->state[unit] = 1;
  while (depth) {
    frame_t* top = &stack[depth - 1];
    if (top->dep == f->items[top->member + 1].dep_begin) {
      top->member = next_member(f, top->member);
      if (top->member != PESTLE_FUSE_NONE) {
        top->dep = f->items[top->member].dep_begin;
        continue;
      }
      order->state[top->unit] = 2;
      order->units[order->count++] = top->unit;
      --depth;
      continue;
    }
    uint32_t dep = unit_of(f, f->deps[top->dep++]);
    if (dep == top->unit || order->state[dep] == 2) continue;
    if (order->state[dep] == 1) {
      return pestle_node_error(pestle_fuse_node(f, dep), PESTLE_STATUS_INTERNAL,
                               "fusion made a circle of groups");
    }
    order->state[dep] = 1;
    stack[depth++] = (frame_t){dep, dep, f->items[dep].dep_begin};
  }
  return NULL;
}

static pestle_status_t order_units(order_t* order) {
  pestle_fuse_t* f = order->f;
  pestle_arena_t* arena = f->ctx->scratch;
  order->units = PESTLE_ARENA_ARRAY(arena, uint32_t, f->item_count + 1);
  order->state = PESTLE_ARENA_ARRAY(arena, uint8_t, f->item_count + 1);
  frame_t* stack = PESTLE_ARENA_ARRAY(arena, frame_t, f->item_count + 1);
  if (!order->units || !order->state || !stack) return PESTLE_OOM();
  memset(order->state, 0, f->item_count);
  // What kernels end at comes as early as it can.
  for (int ends = f->extents.any ? 1 : 0; ends >= 0; --ends) {
    for (uint32_t i = 0; i < f->item_count; ++i) {
      if (ends && !pestle_extents_is_anchor(pestle_fuse_node(f, i))) continue;
      uint32_t unit = unit_of(f, i);
      if (!order->state[unit]) PESTLE_TRY(visit(order, unit, stack));
    }
  }
  return NULL;
}

// --- One fusion ---

typedef PESTLE_VEC(pestle_value_t*) values_t;
typedef PESTLE_VEC(uint32_t) items_t;
typedef PESTLE_VEC(pestle_type_t) types_t;
typedef PESTLE_VEC(int64_t) ends_t;

typedef struct emit_t {
  pestle_fuse_t* f;
  uint32_t group;
  items_t body;       // members and copies, ascending: a topological order
  values_t captured;  // splat constants of blocks around this one
  values_t operands;
  values_t results;
  types_t types;
  ends_t ends;
} emit_t;

static bool is_copied(const pestle_fuse_t* f, uint32_t item) {
  return f->items[item].floating ||
         pestle_fuse_is_inline_constant(pestle_fuse_node(f, item));
}

// Puts |item| and the copies that it needs on the list, each once.
static pestle_status_t collect(emit_t* e, uint32_t item) {
  pestle_fuse_t* f = e->f;
  if (f->items[item].stamp == f->stamp) return NULL;
  f->items[item].stamp = f->stamp;
  if (!pestle_vec_push(&e->body, item)) return PESTLE_OOM();
  for (uint32_t d = f->items[item].dep_begin; d < f->items[item + 1].dep_begin;
       ++d) {
    // Floating ops depend on floating ops a few deep at most.
    if (is_copied(f, f->deps[d])) PESTLE_TRY(collect(e, f->deps[d]));
  }
  return NULL;
}

static void sort_items(items_t* items) {
  // Shell sort: short lists, no recursion, no allocation.
  for (size_t gap = items->size / 2; gap; gap /= 2) {
    for (size_t i = gap; i < items->size; ++i) {
      uint32_t item = items->data[i];
      size_t j = i;
      for (; j >= gap && items->data[j - gap] > item; j -= gap) {
        items->data[j] = items->data[j - gap];
      }
      items->data[j] = item;
    }
  }
}

static bool is_inside(const emit_t* e, const pestle_value_t* value) {
  uint32_t item = pestle_fuse_item_of(e->f, value);
  return item != PESTLE_FUSE_NONE && e->f->items[item].stamp == e->f->stamp;
}

// Adds what |node| reads from outside, each value once.
static pestle_status_t add_operands(emit_t* e, const pestle_node_t* node,
                                    pestle_map_t* seen) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* v = pestle_node_operand(node, i);
    if (is_inside(e, v)) continue;
    bool added, copied = v->node && pestle_fuse_is_inline_constant(v->node);
    if (!pestle_map_put(seen, &v, sizeof(v), &added)) return PESTLE_OOM();
    if (added && !pestle_vec_push(copied ? &e->captured : &e->operands, v)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t find_operands(emit_t* e) {
  pestle_map_t seen;
  pestle_map_init(e->f->allocator, &seen);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < e->body.size && !status; ++i) {
    status = add_operands(e, pestle_fuse_node(e->f, e->body.data[i]), &seen);
  }
  pestle_map_deinit(&seen);
  return status;
}

static bool is_used_elsewhere(const emit_t* e, const pestle_value_t* value) {
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    if (u->user->block != e->f->block) return true;
    if (e->f->items[u->user->scratch].group != e->group) return true;
  }
  return false;
}

static pestle_status_t find_results(emit_t* e) {
  for (size_t i = 0; i < e->body.size; ++i) {
    uint32_t item = e->body.data[i];
    if (e->f->items[item].group != e->group) continue;
    pestle_node_t* node = pestle_fuse_node(e->f, item);
    for (uint32_t r = 0; r < node->result_count; ++r) {
      if (!is_used_elsewhere(e, &node->results[r])) continue;
      if (!pestle_vec_push(&e->results, &node->results[r])) {
        return PESTLE_OOM();
      }
    }
  }
  return NULL;
}

// --- Ends ---

// The number that |anchor| says, if it stands in front of what is emitted now: to wait
// for it could close a circle, and nothing is wrong without it.
static pestle_value_t* number_of(const pestle_fuse_t* f,
                                 const pestle_node_t* anchor) {
  pestle_value_t* n = pestle_node_operand(anchor, 1);
  if (pestle_value_constant(n)) return NULL;
  uint32_t item = pestle_fuse_item_of(f, n);
  if (item == PESTLE_FUSE_NONE || item == f->item_count) return n;
  return f->items[item].emitted ? n : NULL;
}

static bool add_end(emit_t* e, int64_t result, int64_t axis, pestle_value_t* n,
                    int64_t scale) {
  size_t at = 0;
  while (at < e->operands.size && e->operands.data[at] != n)
    ++at;
  if (at == e->operands.size && !pestle_vec_push(&e->operands, n)) return false;
  return pestle_vec_push(&e->ends, result) && pestle_vec_push(&e->ends, axis) &&
         pestle_vec_push(&e->ends, (int64_t)at) &&
         pestle_vec_push(&e->ends, scale);
}

static pestle_status_t find_ends(emit_t* e) {
  for (size_t i = 0; i < e->results.size; ++i) {
    const pestle_value_t* result = e->results.data[i];
    const pestle_end_t* ends = pestle_extents_of(&e->f->extents, result);
    for (int32_t a = 0; ends && a < result->type->rank; ++a) {
      pestle_value_t* n =
          ends[a].anchor ? number_of(e->f, ends[a].anchor) : NULL;
      if (n && !add_end(e, (int64_t)i, a, n, ends[a].scale)) {
        return PESTLE_OOM();
      }
    }
  }
  return NULL;
}

// --- Labels ---

// Ops that give a kernel its name; the others are everywhere.
static bool names_kernel(const pestle_node_t* node) {
  switch (node->op) {
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_CONVERT:
      return false;
    default:
      return true;
  }
}

static bool append_name(char* label, size_t capacity, const char* name) {
  size_t used = strlen(label), size = strlen(name);
  if (used + size + 2 > capacity) return false;
  if (used) label[used++] = '_';
  memcpy(label + used, name, size + 1);
  return true;
}

static void make_label(const emit_t* e, char* label, size_t capacity) {
  const pestle_fuse_group_t* g = &e->f->groups[e->group];
  label[0] = 0;
  if (g->hero != PESTLE_FUSE_NONE) {
    append_name(label, capacity,
                pestle_pass_info(pestle_fuse_node(e->f, g->hero))->name);
  }
  unsigned named = 0;
  const char* last = "";
  for (size_t i = 0; i < e->body.size && named < 4; ++i) {
    const pestle_node_t* node = pestle_fuse_node(e->f, e->body.data[i]);
    if (e->body.data[i] == g->hero || !names_kernel(node)) continue;
    const char* name = pestle_pass_info(node)->name;
    if (!strcmp(name, last)) continue;
    if (!append_name(label, capacity, name)) return;
    last = name;
    ++named;
  }
  if (!label[0]) {
    append_name(
        label, capacity,
        pestle_pass_info(pestle_fuse_node(e->f, e->body.data[0]))->name);
  }
}

// --- Bodies ---

// Composites become core ops, and what that leaves to simplify is simplified.
static pestle_status_t tidy_body(emit_t* e, pestle_block_t* body) {
  pestle_value_t* out[PESTLE_SIMPLIFY_MAX_RESULTS];
  for (pestle_node_t *n = body->first, *next; n; n = next) {
    pestle_node_t* prev = n->prev;
    next = n->next;
    out[0] = NULL;
    if (pestle_pass_info(n)->fuse == PESTLE_FUSE_COMPOSITE) {
      PESTLE_TRY(pestle_decompose(n, out));
    } else if (!e->f->ctx->options->no_fuse) {
      PESTLE_TRY(pestle_fold_node(e->f->ctx, e->f->module, n, out));
      if (!out[0]) PESTLE_TRY(pestle_simplify_node(e->f->ctx, NULL, n, out));
    }
    if (!out[0]) continue;
    pestle_pass_replace(n, out);
    next = prev ? prev->next : body->first;
  }
  for (pestle_node_t *n = body->last, *prev; n; n = prev) {
    prev = n->prev;
    bool used = pestle_pass_is_terminator(n);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      used = used || n->results[r].use_count;
    }
    if (!used) pestle_node_erase(n);
  }
  return NULL;
}

static pestle_status_t fill_body(emit_t* e, pestle_block_t* body,
                                 pestle_copier_t* copier) {
  for (size_t i = 0; i < e->operands.size; ++i) {
    pestle_value_t* argument = pestle_block_argument(body, i);
    argument->name = e->operands.data[i]->name;
    PESTLE_TRY(pestle_copier_set(copier, e->operands.data[i], argument));
  }
  pestle_node_t* copy;
  for (size_t i = 0; i < e->captured.size; ++i) {
    PESTLE_TRY(pestle_copier_node(copier, e->captured.data[i]->node, &copy));
  }
  for (size_t i = 0; i < e->body.size; ++i) {
    PESTLE_TRY(pestle_copier_node(
        copier, pestle_fuse_node(e->f, e->body.data[i]), &copy));
  }
  values_t returned;
  pestle_vec_init(&returned, e->f->allocator);
  bool grown = true;
  for (size_t i = 0; i < e->results.size && grown; ++i) {
    grown = pestle_vec_push(&returned,
                            pestle_copier_get(copier, e->results.data[i]));
  }
  pestle_node_spec_t spec = {.op = PESTLE_OP_RETURN,
                             .operands = returned.data,
                             .operand_count = returned.size};
  pestle_node_t* ignored;
  pestle_status_t status =
      grown ? pestle_node_create(&copier->builder, &spec, &ignored)
            : PESTLE_OOM();
  pestle_vec_deinit(&returned);
  return status ? status : tidy_body(e, body);
}

static pestle_status_t make_fusion(emit_t* e, pestle_node_t* before,
                                   pestle_node_t** out) {
  pestle_fuse_t* f = e->f;
  for (size_t i = 0; i < e->operands.size; ++i) {
    if (!pestle_vec_push(&e->types, *e->operands.data[i]->type)) {
      return PESTLE_OOM();
    }
  }
  pestle_region_t* region;
  pestle_block_t* body;
  PESTLE_TRY(pestle_region_create(f->module, e->types.data, e->types.size,
                                  &region, &body));
  pestle_builder_t inside = {.module = f->module, .block = body};
  pestle_copier_t copier;
  pestle_copier_init(f->allocator, inside, &copier);
  pestle_status_t status = fill_body(e, body, &copier);
  pestle_copier_deinit(&copier);
  PESTLE_TRY(status);
  char label[48];
  make_label(e, label, sizeof(label));
  pestle_attr_t attrs[] = {PESTLE_SET_STR(label, label),
                           PESTLE_SET_I64S(ends, e->ends.data, e->ends.size)};
  pestle_node_spec_t spec = {.op = PESTLE_OP_FUSION,
                             .operands = e->operands.data,
                             .operand_count = e->operands.size,
                             .attrs = attrs,
                             .attr_count = e->ends.size ? 2 : 1,
                             .regions = &region,
                             .region_count = 1};
  pestle_builder_t outside = pestle_builder_before(before);
  uint32_t hero = f->groups[e->group].hero;
  outside.loc =
      pestle_fuse_node(
          f, hero == PESTLE_FUSE_NONE ? f->groups[e->group].max : hero)
          ->loc;
  return pestle_node_create(&outside, &spec, out);
}

static pestle_status_t emit_with(emit_t* e, pestle_node_t* before) {
  pestle_fuse_t* f = e->f;
  ++f->stamp;
  for (uint32_t i = f->groups[e->group].first; i != PESTLE_FUSE_NONE;
       i = next_member(f, i)) {
    PESTLE_TRY(collect(e, i));
  }
  sort_items(&e->body);
  PESTLE_TRY(find_operands(e));
  PESTLE_TRY(find_results(e));
  PESTLE_TRY(find_ends(e));
  pestle_node_t* fusion;
  PESTLE_TRY(make_fusion(e, before, &fusion));
  for (size_t i = 0; i < e->results.size; ++i) {
    pestle_value_t* result = pestle_node_result(fusion, i);
    result->name = e->results.data[i]->name;
    // Members keep each other until they are erased together.
    pestle_value_replace_all_uses(e->results.data[i], result);
  }
  fusion->scratch = f->item_count;
  for (uint32_t i = f->groups[e->group].first; i != PESTLE_FUSE_NONE;
       i = next_member(f, i)) {
    f->items[i].emitted = true;
  }
  f->groups[e->group].fusion = fusion;
  return NULL;
}

static pestle_status_t emit_group(pestle_fuse_t* f, uint32_t group,
                                  pestle_node_t* before) {
  emit_t e = {.f = f, .group = group};
  pestle_vec_init(&e.body, f->allocator);
  pestle_vec_init(&e.captured, f->allocator);
  pestle_vec_init(&e.operands, f->allocator);
  pestle_vec_init(&e.results, f->allocator);
  pestle_vec_init(&e.types, f->allocator);
  pestle_vec_init(&e.ends, f->allocator);
  pestle_status_t status = emit_with(&e, before);
  pestle_vec_deinit(&e.body);
  pestle_vec_deinit(&e.captured);
  pestle_vec_deinit(&e.operands);
  pestle_vec_deinit(&e.results);
  pestle_vec_deinit(&e.types);
  pestle_vec_deinit(&e.ends);
  return status;
}

// --- The block ---

static bool is_unused(const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    if (node->results[r].use_count) return false;
  }
  return true;
}

// Members and floating ops, last first: users are gone before what they use.
static void erase_old(pestle_fuse_t* f) {
  for (uint32_t i = f->item_count; i-- > 0;) {
    const pestle_fuse_item_t* item = &f->items[i];
    if (item->group != PESTLE_FUSE_NONE || item->floating ||
        (pestle_pass_is_stored(item->node) && is_unused(item->node))) {
      pestle_node_erase(item->node);
    }
  }
}

pestle_status_t pestle_fuse_emit(pestle_fuse_t* f) {
  order_t order = {.f = f};
  PESTLE_TRY(order_units(&order));
  pestle_node_t* end = f->block->last;
  for (uint32_t i = 0; i < order.count; ++i) {
    uint32_t item = order.units[i];
    uint32_t group = f->items[item].group;
    if (group != PESTLE_FUSE_NONE) {
      PESTLE_TRY(emit_group(f, group, end));
    } else if (pestle_fuse_node(f, item) != end) {
      pestle_node_move(pestle_fuse_node(f, item), end);
      f->items[item].emitted = true;
    }
  }
  pestle_extents_drop(f->block);
  erase_old(f);
  return NULL;
}
