// SPDX-License-Identifier: Apache-2.0
#include "compile/copies.h"

#include <stdlib.h>

#include "base/mem.h"

bool pestle_copies_same_place(const pestle_plan_binding_t* a,
                              const pestle_plan_binding_t* b) {
  return a->storage == b->storage && a->index == b->index &&
         a->offset == b->offset;
}

static bool is_same_storage(const pestle_plan_binding_t* a,
                            const pestle_plan_binding_t* b) {
  return a->storage == b->storage && a->index == b->index;
}

// --- Destinations by place ---

typedef struct place_t {
  uint16_t storage;
  uint32_t index, number;
  uint64_t offset;
} place_t;

static int compare(const void* a, const void* b) {
  const place_t *x = a, *y = b;
  if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
  if (x->index != y->index) return x->index < y->index ? -1 : 1;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static bool sort_places(pestle_arena_t* arena, pestle_copies_t* c) {
  place_t* places = PESTLE_ARENA_ARRAY(arena, place_t, c->count + 1);
  if (!places) return false;
  for (size_t i = 0; i < c->count; ++i) {
    places[i] = (place_t){.storage = (uint16_t)c->to[i].storage,
                          .index = c->to[i].index,
                          .offset = c->to[i].offset,
                          .number = (uint32_t)i};
  }
  if (c->count > 1) qsort(places, c->count, sizeof(place_t), compare);
  for (size_t k = 0; k < c->count; ++k) {
    const pestle_plan_binding_t* to = &c->to[places[k].number];
    uint64_t end = to->offset + to->size;
    bool goes_on = k && is_same_storage(to, &c->to[c->by_place[k - 1]]);
    c->by_place[k] = places[k].number;
    c->ends[k] = goes_on && c->ends[k - 1] > end ? c->ends[k - 1] : end;
  }
  return true;
}

// The first of the sorted destinations that begins at |offset| of the storage of
// |b| or later.
static size_t lower_bound(const pestle_copies_t* c,
                          const pestle_plan_binding_t* b, uint64_t offset) {
  const place_t wanted = {(uint16_t)b->storage, b->index, 0, offset};
  size_t low = 0, high = c->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint32_t i = c->by_place[middle];
    const place_t at = {(uint16_t)c->to[i].storage, c->to[i].index, i,
                        c->to[i].offset};
    bool before = compare(&at, &wanted) < 0;
    *(before ? &low : &high) = before ? middle + 1 : middle;
  }
  return low;
}

// --- Who waits for whom ---

static void push_ready(pestle_copies_t* c, uint32_t i) {
  size_t at = c->ready_count++;
  for (; at && i < c->ready[(at - 1) / 2]; at = (at - 1) / 2)
    c->ready[at] = c->ready[(at - 1) / 2];
  c->ready[at] = i;
}

static uint32_t pop_ready(pestle_copies_t* c) {
  uint32_t first = c->ready[0], last = c->ready[--c->ready_count];
  size_t at = 0;
  for (size_t child = 1; child < c->ready_count; child = 2 * at + 1) {
    if (child + 1 < c->ready_count && c->ready[child + 1] < c->ready[child])
      ++child;
    if (last <= c->ready[child]) break;
    c->ready[at] = c->ready[child];
    at = child;
  }
  c->ready[at] = last;
  return first;
}

typedef enum visit_e { COUNT_READER, DROP_READER, FIND_WRITER } visit_t;

// What |from[j]| overlaps among the destinations of others: one more, or one less,
// reads them. FIND_WRITER: whether one of them is due.
static bool visit(pestle_copies_t* c, size_t j, visit_t what) {
  const pestle_plan_binding_t* from = &c->from[j];
  uint64_t end = from->offset + from->size;
  size_t k = lower_bound(c, from, from->offset);
  while (k && is_same_storage(&c->to[c->by_place[k - 1]], from) &&
         c->ends[k - 1] > from->offset) {
    --k;
  }
  for (; k < c->count; ++k) {
    uint32_t i = c->by_place[k];
    const pestle_plan_binding_t* to = &c->to[i];
    if (!is_same_storage(to, from) || to->offset >= end) break;
    if (i == j || to->offset + to->size <= from->offset) continue;
    if (what == FIND_WRITER && !c->done[i]) return true;
    if (what == COUNT_READER) ++c->readers[i];
    if (what == DROP_READER && !--c->readers[i] && !c->done[i])
      push_ready(c, i);
  }
  return false;
}

// --- The order ---

pestle_status_t pestle_copies_init(pestle_arena_t* arena,
                                   pestle_plan_binding_t* from,
                                   const pestle_plan_binding_t* to,
                                   size_t count, pestle_copies_t* out_copies) {
  pestle_copies_t* c = out_copies;
  *c = (pestle_copies_t){.from = from, .to = to, .count = count};
  c->done = pestle_arena_alloc_zero(arena, count + 1, 1);
  c->readers = pestle_arena_alloc_zero(arena, (count + 1) * sizeof(uint32_t),
                                       _Alignof(uint32_t));
  c->by_place = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  c->ready = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  c->ends = PESTLE_ARENA_ARRAY(arena, uint64_t, count + 1);
  if (!c->done || !c->readers || !c->by_place || !c->ready || !c->ends ||
      !sort_places(arena, c)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "planning copies");
  }
  for (size_t i = 0; i < count; ++i) {
    c->done[i] = pestle_copies_same_place(&from[i], &to[i]) || !from[i].size;
    c->left += !c->done[i];
  }
  for (size_t i = 0; i < count; ++i) {
    if (!c->done[i]) visit(c, i, COUNT_READER);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!c->done[i] && !c->readers[i]) push_ready(c, (uint32_t)i);
  }
  return NULL;
}

size_t pestle_copies_next(pestle_copies_t* copies, bool* out_cycle) {
  pestle_copies_t* c = copies;
  *out_cycle = false;
  if (!c->left) return c->count;
  if (c->ready_count) {
    size_t i = pop_ready(c);
    c->done[i] = true;
    --c->left;
    visit(c, i, DROP_READER);
    return i;
  }
  // What is overwritten by nobody who is due will not be later either.
  while (c->cursor < c->count &&
         (c->done[c->cursor] || !visit(c, c->cursor, FIND_WRITER))) {
    ++c->cursor;
  }
  *out_cycle = true;
  size_t i = c->cursor++;
  visit(c, i, DROP_READER);
  return i;
}
