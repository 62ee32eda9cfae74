// SPDX-License-Identifier: Apache-2.0
// A while that counts becomes the scan that it is:
//
//   while (%i = 0, %c = %init, %y = %any) cond { %i < n } do {
//     %x = dynamic_slice %xs, %i, 0 ..          a row of what the loop does not change
//     B                                         of %x, %c and values from around it
//     %y' = dynamic_update_slice %y, %e, %i, 0 ..
//     return %i + 1, %c', %y' }
//     ->  %c, %y = scan (%init; %xs; ..) of n { ^bb0(%c, %x, ..): B; return %c', %e }
//
// |%y| begins as anything: each of its rows is written. Rows may also be counted from the
// last on, as n - 1 - %i or in any other way that is affine in the counter; those that are
// met in another order, or in none, stay what they are, of a value that each turn reads. The
// counter is carried where anything else reads it.
#include <string.h>

#include "base/mem.h"
#include "ir/composite.h"
#include "ir/copy.h"
#include "ir/scan_recognise.h"

static bool is_inside(const pv_t* value, const pestle_block_t* block) {
  return (value->node ? value->node->block : value->block) == block;
}

static bool is_row(const pestle_type_t* part, const pestle_type_t* whole) {
  return part->rank == whole->rank && part->dims[0] == 1 &&
         !memcmp(part->dims + 1, whole->dims + 1,
                 (size_t)(whole->rank - 1) * sizeof(int64_t));
}

// --- What each value is ---

static void find_same(pestle_recognise_t* r) {
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    const pv_t* next = pestle_node_operand(r->body->last, i);
    bool same = next == r->body->arguments[i] ||
                next == pestle_node_operand(r->loop, i);
    r->carried[i].role = same ? PESTLE_SCAN_SAME : PESTLE_SCAN_CARRY;
  }
}

static void find_stacks(pestle_recognise_t* r) {
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    pestle_node_t* n = pestle_node_operand(r->body->last, i)->node;
    const pv_t* argument = r->body->arguments[i];
    if (r->carried[i].role != PESTLE_SCAN_CARRY || !n || n->block != r->body ||
        n->op != PESTLE_OP_DYNAMIC_UPDATE_SLICE ||
        pestle_node_operand(n, 0) != argument || argument->use_count != 1 ||
        r->cond->arguments[i]->use_count || n->results[0].use_count != 1) {
      continue;
    }
    const pestle_type_t* whole = argument->type;
    if (whole->rank && is_row(pestle_node_operand(n, 1)->type, whole) &&
        pestle_scan_is_at_turn(r, n, 2, whole)) {
      r->carried[i].role = PESTLE_SCAN_STACK;
      r->carried[i].update = n;
    }
  }
}

static pestle_status_t find_reads(pestle_recognise_t* r) {
  for (const pestle_node_t* n = r->body->first; n; n = n->next) {
    if (n->op != PESTLE_OP_DYNAMIC_SLICE) continue;
    pv_t* from = pestle_scan_unchanging(r, pestle_node_operand(n, 0));
    if (is_inside(from, r->body) || !pestle_type_is_static(from->type) ||
        !from->type->rank || !is_row(n->results[0].type, from->type) ||
        !pestle_scan_is_at_turn(r, n, 1, from->type)) {
      continue;
    }
    size_t x = 0;
    while (x < r->xs.size && r->xs.data[x] != from)
      ++x;
    if (x == r->xs.size && !pestle_vec_push(&r->xs, from)) return PESTLE_OOM();
    pestle_scan_read_t read = {n, x};
    if (!pestle_vec_push(&r->reads, read)) return PESTLE_OOM();
  }
  return NULL;
}

static const pestle_scan_read_t* read_at(const pestle_recognise_t* r,
                                         const pestle_node_t* node) {
  for (size_t i = 0; node && i < r->reads.size; ++i) {
    if (r->reads.data[i].node == node) return &r->reads.data[i];
  }
  return NULL;
}

// --- What is needed ---

static pestle_status_t need_outside(pestle_recognise_t* r, pv_t* value) {
  for (size_t i = 0; i < r->outside.size; ++i) {
    if (r->outside.data[i] == value) return NULL;
  }
  return pestle_vec_push(&r->outside, value) ? NULL : PESTLE_OOM();
}

static pestle_status_t need_value(pestle_recognise_t* r, pv_t* value) {
  value = pestle_scan_unchanging(r, value);
  if (!is_inside(value, r->body)) return need_outside(r, value);
  if (!value->node) {
    r->counts = r->counts || value->index == r->counter;
    return NULL;
  }
  return pestle_map_set_u64(&r->live, (uintptr_t)value->node, 1) ? NULL
                                                                 : PESTLE_OOM();
}

static bool is_around(const pestle_block_t* block,
                      const pestle_region_t* region) {
  while (block->region != region) {
    const pestle_node_t* owner = block->region->owner;
    if (!owner) return false;
    block = owner->block;
  }
  return true;
}

// What |node| reads, and its regions read of what is not theirs.
static pestle_status_t need_operands(pestle_recognise_t* r,
                                     const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    PESTLE_TRY(need_value(r, pestle_node_operand(node, i)));
  for (uint32_t g = 0; g < node->region_count; ++g) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(node->regions[g], n))) {
      for (uint32_t i = 0; i < n->operand_count; ++i) {
        pv_t* value = pestle_node_operand(n, i);
        const pestle_block_t* home =
            value->node ? value->node->block : value->block;
        if (is_around(home, node->regions[g])) continue;
        PESTLE_TRY(need_value(r, value));
      }
    }
  }
  return NULL;
}

static pestle_status_t find_needed(pestle_recognise_t* r) {
  const pestle_node_t* end = r->body->last;
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    const pestle_scan_carried_t* c = &r->carried[i];
    if (c->role == PESTLE_SCAN_CARRY)
      PESTLE_TRY(need_value(r, pestle_node_operand(end, i)));
    if (c->role == PESTLE_SCAN_STACK)
      PESTLE_TRY(need_value(r, pestle_node_operand(c->update, 1)));
  }
  for (const pestle_node_t* n = end->prev; n; n = n->prev) {
    bool live = pestle_map_find_u64(&r->live, (uintptr_t)n) ||
                pestle_node_has_effect(n);
    if (!live || read_at(r, n)) continue;
    if (!pestle_map_set_u64(&r->live, (uintptr_t)n, 1)) return PESTLE_OOM();
    PESTLE_TRY(need_operands(r, n));
  }
  // Its next value reads it and a number.
  pv_t* next = pestle_node_operand(end, r->counter);
  if (!r->counts) return NULL;
  PESTLE_TRY(need_value(r, next));
  return need_operands(r, next->node);
}

// --- The scan ---

typedef struct build_t {
  pestle_recognise_t* r;
  pestle_scan_spec_t spec;
  pestle_scan_body_t body;
  pv_t **init, **constants, **next, **ys;
  size_t constant_count;
} build_t;

static bool is_carry(const pestle_recognise_t* r, uint32_t i) {
  pestle_scan_role_t role = r->carried[i].role;
  return role == PESTLE_SCAN_CARRY ||
         (role == PESTLE_SCAN_COUNTER && r->counts);
}

static pestle_status_t make_spec(build_t* b) {
  pestle_recognise_t* r = b->r;
  uint32_t count = r->loop->result_count;
  b->init = PESTLE_ARENA_ARRAY(&r->arena, pv_t*, count + 1);
  b->next = PESTLE_ARENA_ARRAY(&r->arena, pv_t*, count + 1);
  b->ys = PESTLE_ARENA_ARRAY(&r->arena, pv_t*, count + 1);
  b->constants = PESTLE_ARENA_ARRAY(&r->arena, pv_t*, r->outside.size + 1);
  if (!b->init || !b->next || !b->ys || !b->constants) return PESTLE_OOM();
  b->spec = (pestle_scan_spec_t){.init = b->init,
                                 .xs = r->xs.data,
                                 .xs_count = r->xs.size,
                                 .constants = b->constants,
                                 .length = r->turns,
                                 .reverse = r->direction < 0};
  for (uint32_t i = 0; i < count; ++i) {
    if (is_carry(r, i))
      b->init[b->spec.carry_count++] = pestle_node_operand(r->loop, i);
  }
  for (size_t i = 0; i < r->outside.size; ++i) {
    if (!pestle_value_constant(r->outside.data[i]))
      b->constants[b->spec.constant_count++] = r->outside.data[i];
  }
  return NULL;
}

// Says what stands in the body for what it read from around and for what is carried.
static pestle_status_t map_values(build_t* b, pestle_copier_t* copier) {
  pestle_recognise_t* r = b->r;
  size_t constant = 0, carry = 0;
  for (size_t i = 0; i < r->outside.size; ++i) {
    pv_t *value = r->outside.data[i], *to = NULL;
    if (pestle_value_constant(value)) {
      pestle_node_t* copy;
      PESTLE_TRY(pestle_copier_node(copier, value->node, &copy));
      to = &copy->results[0];
    } else {
      to = b->body.constant[constant++];
    }
    PESTLE_TRY(pestle_copier_set(copier, value, to));
  }
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    pv_t *argument = r->body->arguments[i], *to = NULL;
    if (is_carry(r, i)) to = b->body.carry[carry++];
    if (r->carried[i].role == PESTLE_SCAN_SAME)
      to = pestle_copier_get(copier, pestle_node_operand(r->loop, i));
    if (to) PESTLE_TRY(pestle_copier_set(copier, argument, to));
  }
  return NULL;
}

// Without |node|'s dimension 0, which is 1: |value| itself, or what was made of it.
static pv_t* before_row(const pv_t* row, const pestle_type_t* element) {
  const pestle_node_t* n = row->node;
  if (!n || (n->op != PESTLE_OP_RESHAPE && n->op != PESTLE_OP_BROADCAST_IN_DIM))
    return NULL;
  pv_t* value = pestle_node_operand(n, 0);
  if (!pestle_type_equal(value->type, element)) return NULL;
  if (n->op == PESTLE_OP_RESHAPE) return value;
  pestle_i64s_t dims = PESTLE_NODE_I64S(n, broadcast_dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (dims.data[i] != (int64_t)i + 1) return NULL;
  }
  return value;
}

static pestle_status_t copy_node(build_t* b, pestle_copier_t* copier,
                                 pestle_node_t* n) {
  pestle_recognise_t* r = b->r;
  const pestle_scan_read_t* read = read_at(r, n);
  if (read) {
    pestle_formula_t f = pestle_formula_make(copier->builder);
    f.builder.loc = n->loc;
    pv_t* row = pestle_f_reshape_to(&f, b->body.x[read->x], n->results[0].type);
    return f.status ? f.status : pestle_copier_set(copier, n->results, row);
  }
  // A row without its first dimension is what the scan hands over.
  read = n->op == PESTLE_OP_RESHAPE
             ? read_at(r, pestle_node_operand(n, 0)->node)
             : NULL;
  if (read && pestle_type_equal(n->results[0].type, b->body.x[read->x]->type))
    return pestle_copier_set(copier, n->results, b->body.x[read->x]);
  pestle_node_t* ignored;
  return pestle_copier_node(copier, n, &ignored);
}

static pestle_status_t stacked(build_t* b, pestle_copier_t* copier,
                               const pestle_node_t* update, pv_t** out) {
  pv_t* row = pestle_node_operand(update, 1);
  pestle_type_t element;
  (void)pestle_scan_element_type(row->type, &element);
  // What a row from around the loop was made of is not known in here.
  bool own = is_inside(row, b->r->body);
  pv_t* whole = own ? before_row(row, &element) : NULL;
  pestle_formula_t f = pestle_formula_make(b->body.builder);
  *out = pestle_copier_get(copier,
                           pestle_scan_unchanging(b->r, whole ? whole : row));
  if (!whole) *out = pestle_f_reshape_to(&f, *out, &element);
  return f.status;
}

static pestle_status_t copy_body(build_t* b, pestle_copier_t* copier,
                                 size_t* out_ys) {
  pestle_recognise_t* r = b->r;
  size_t carry = 0, y = 0;
  PESTLE_TRY(map_values(b, copier));
  for (pestle_node_t* n = r->body->first; n != r->body->last; n = n->next) {
    if (pestle_map_find_u64(&r->live, (uintptr_t)n))
      PESTLE_TRY(copy_node(b, copier, n));
  }
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    const pestle_scan_carried_t* c = &r->carried[i];
    if (is_carry(r, i)) {
      pv_t* next =
          pestle_scan_unchanging(r, pestle_node_operand(r->body->last, i));
      b->next[carry++] = pestle_copier_get(copier, next);
    } else if (c->role == PESTLE_SCAN_STACK) {
      PESTLE_TRY(stacked(b, copier, c->update, &b->ys[y++]));
    }
  }
  *out_ys = y;
  return NULL;
}

static bool is_unused(const pestle_node_t* n) {
  if (pestle_op_info((pestle_op_t)n->op)->flags & PESTLE_OP_FLAG_TERMINATOR)
    return false;
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i].use_count) return false;
  }
  return !pestle_node_has_effect(n);
}

static void drop_unused(pestle_block_t* block) {
  for (pestle_node_t *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    if (is_unused(n)) pestle_node_erase(n);
  }
}

// The scan's results in the place of the loop's.
static pestle_status_t replace(build_t* b, pestle_node_t* node) {
  pestle_recognise_t* r = b->r;
  pestle_scan_t s = pestle_scan_read(node);
  pestle_formula_t f = pestle_formula_before(r->loop);
  size_t carry = 0, y = 0;
  for (uint32_t i = 0; i < r->loop->result_count; ++i) {
    pv_t* result = &r->loop->results[i];
    pv_t* to = NULL;
    switch (r->carried[i].role) {
      case PESTLE_SCAN_COUNTER:
      case PESTLE_SCAN_CARRY:
        if (is_carry(r, i)) to = &s.final[carry++];
        // What it counted to is known.
        if (!to && result->use_count) {
          to = pestle_f_scalar(&f, result->type->dtype,
                               (double)(r->start + r->step * r->turns));
        }
        break;
      case PESTLE_SCAN_SAME:
        to = pestle_node_operand(r->loop, i);
        break;
      case PESTLE_SCAN_STACK:
        to = &s.ys[y++];
        break;
    }
    if (f.status) return f.status;
    if (to) pestle_value_replace_all_uses(result, to);
  }
  return NULL;
}

static pestle_status_t build(build_t* b, pestle_node_t** out_node) {
  pestle_recognise_t* r = b->r;
  pestle_builder_t builder = pestle_builder_before(r->loop);
  size_t ys = 0;
  PESTLE_TRY(make_spec(b));
  PESTLE_TRY(pestle_scan_begin(&builder, &b->spec, &b->body));
  pestle_copier_t copier;
  pestle_copier_init(r->arena.allocator, b->body.builder, &copier);
  pestle_status_t status = copy_body(b, &copier, &ys);
  pestle_copier_deinit(&copier);
  PESTLE_TRY(pestle_scan_end(&builder, &b->spec, &b->body, status, b->next,
                             b->ys, ys, out_node));
  drop_unused(pestle_node_body(*out_node, 0));
  return replace(b, *out_node);
}

// --- Entry ---

// Whether extents are known and the condition only looks.
static bool is_plain(const pestle_node_t* loop) {
  const pestle_node_t* n = pestle_node_body(loop, 0)->first;
  for (; n; n = n->next) {
    if (pestle_node_has_effect(n)) return false;
  }
  for (uint32_t i = 0; i < loop->result_count; ++i) {
    if (!pestle_type_is_static(loop->results[i].type)) return false;
  }
  return true;
}

static pestle_status_t recognise(pestle_recognise_t* r,
                                 pestle_node_t** out_scan) {
  build_t b = {.r = r};
  r->carried = PESTLE_ARENA_ARRAY(&r->arena, pestle_scan_carried_t,
                                  (size_t)r->loop->result_count + 1);
  if (!r->carried) return PESTLE_OOM();
  find_same(r);
  if (!pestle_scan_find_counter(r)) return NULL;
  find_stacks(r);
  PESTLE_TRY(find_reads(r));
  PESTLE_TRY(find_needed(r));
  return build(&b, out_scan);
}

// Erases |value|'s op, and what it was made of, where nothing reads it any more.
static void drop_chain(pv_t* value) {
  while (value && value->node && value->node->block && is_unused(value->node)) {
    pestle_node_t* n = value->node;
    value = n->operand_count ? pestle_node_operand(n, 0) : NULL;
    pestle_node_erase(n);
  }
}

pestle_status_t pestle_scan_recognise(pestle_node_t* loop,
                                      pestle_node_t** out_scan) {
  pestle_allocator_t allocator = loop->block->region->module->arena.allocator;
  *out_scan = NULL;
  if (loop->op != PESTLE_OP_WHILE || !is_plain(loop)) return NULL;
  pestle_recognise_t r = {.loop = loop,
                          .cond = pestle_node_body(loop, 0),
                          .body = pestle_node_body(loop, 1)};
  pestle_arena_init(allocator, &r.arena);
  pestle_vec_init(&r.reads, allocator);
  pestle_vec_init(&r.xs, allocator);
  pestle_vec_init(&r.outside, allocator);
  pestle_map_init(allocator, &r.live);
  pestle_status_t status = recognise(&r, out_scan);
  if (!status && *out_scan) {
    uint32_t count = loop->operand_count;
    pv_t** inits = PESTLE_ARENA_ARRAY(&r.arena, pv_t*, count + 1);
    for (uint32_t i = 0; inits && i < count; ++i)
      inits[i] = pestle_node_operand(loop, i);
    pestle_node_erase(loop);
    for (uint32_t i = 0; inits && i < count; ++i)
      drop_chain(inits[i]);
  }
  pestle_map_deinit(&r.live);
  pestle_vec_deinit(&r.outside);
  pestle_vec_deinit(&r.xs);
  pestle_vec_deinit(&r.reads);
  pestle_arena_deinit(&r.arena);
  return status;
}
