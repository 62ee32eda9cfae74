// SPDX-License-Identifier: Apache-2.0
// Offsets of cells in the arena. Cells are placed one after another, each into
// the smallest gap that it fits among those that live at the same time; of two
// orders (largest first, earliest first) the one with the lower peak is kept.
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "compile/memory_gaps.h"
#include "compile/memory_planner.h"

#define ALIGNMENT PESTLE_BUFFER_ALIGNMENT

// How many pairs of cells that live at the same time are looked at: seconds.
#define MOST_PAIRS ((uint64_t)1 << 24)

typedef struct slot_t {
  pestle_cell_t* cell;
  uint32_t number;
  int64_t size;  // aligned
  int64_t offset;
  size_t leaf;  // its place by beginning
} slot_t;

static int64_t aligned(int64_t size) {
  return (int64_t)pestle_align_up((size_t)size, ALIGNMENT);
}

static int by_size(const void* a, const void* b) {
  const slot_t *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->number < y->number ? -1 : 1;
}

static int by_begin(const void* a, const void* b) {
  const slot_t *x = a, *y = b;
  if (x->cell->begin != y->cell->begin) {
    return x->cell->begin < y->cell->begin ? -1 : 1;
  }
  return by_size(a, b);
}

// --- Earliest first ---
//
// Those that were placed and have ended by then are given back before the next is
// placed: the free ranges are what lies between those that live.

typedef struct ending_t {
  const slot_t** heap;  // the one that ends first is [0]
  size_t size;
} ending_t;

static bool ends_before(const slot_t* a, const slot_t* b) {
  return a->cell->end < b->cell->end;
}

static void push_ending(ending_t* e, const slot_t* slot) {
  size_t at = e->size++;
  for (; at && ends_before(slot, e->heap[(at - 1) / 2]); at = (at - 1) / 2)
    e->heap[at] = e->heap[(at - 1) / 2];
  e->heap[at] = slot;
}

static const slot_t* pop_ending(ending_t* e) {
  const slot_t *first = e->heap[0], *last = e->heap[--e->size];
  size_t at = 0;
  for (size_t child = 1; child < e->size; child = 2 * at + 1) {
    if (child + 1 < e->size && ends_before(e->heap[child + 1], e->heap[child]))
      ++child;
    if (!ends_before(e->heap[child], last)) break;
    e->heap[at] = e->heap[child];
    at = child;
  }
  e->heap[at] = last;
  return first;
}

static pestle_status_t sweep(slot_t* slots, size_t count, ending_t* live,
                             pestle_gaps_t* gaps, int64_t* out_peak) {
  *out_peak = 0;
  for (size_t i = 0; i < count; ++i) {
    slot_t* slot = &slots[i];
    while (live->size && live->heap[0]->cell->end < slot->cell->begin) {
      const slot_t* ended = pop_ending(live);
      PESTLE_TRY(pestle_gaps_give(gaps, ended->offset, ended->size));
    }
    PESTLE_TRY(pestle_gaps_take(gaps, slot->size, &slot->offset));
    push_ending(live, slot);
    int64_t end = slot->offset + slot->size;
    if (end > *out_peak) *out_peak = end;
  }
  return NULL;
}

static pestle_status_t place_by_begin(pestle_arena_t* arena, slot_t* slots,
                                      size_t count, int64_t* out_peak) {
  ending_t live = {PESTLE_ARENA_ARRAY(arena, const slot_t*, count + 1), 0};
  pestle_gaps_t gaps;
  if (!live.heap) return PESTLE_OOM();
  if (count > 1) qsort(slots, count, sizeof(slots[0]), by_begin);
  pestle_status_t status = pestle_gaps_init(arena, count, &gaps);
  if (!status) status = sweep(slots, count, &live, &gaps, out_peak);
  pestle_gaps_deinit(&gaps);
  return status;
}

// --- Largest first ---
//
// Which of those that were placed live at the same time as the next tells a tree
// over all of them by their beginnings, each node of which knows the last end of
// those below that were placed.

typedef struct tree_t {
  slot_t** by_begin;  // leaves
  int64_t* last_end;  // [1] is the root; -1: none was placed
  size_t leaves;      // a power of two
  size_t count;
  slot_t** found;
  size_t found_count;
} tree_t;

static int by_place(const void* a, const void* b) {
  const slot_t *x = *(slot_t* const*)a, *y = *(slot_t* const*)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static int by_leaf(const void* a, const void* b) {
  const slot_t *x = *(slot_t* const*)a, *y = *(slot_t* const*)b;
  if (x->cell->begin != y->cell->begin)
    return x->cell->begin < y->cell->begin ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static void mark_placed(tree_t* t, size_t leaf) {
  int64_t end = t->by_begin[leaf]->cell->end;
  for (size_t at = t->leaves + leaf; at; at /= 2) {
    if (t->last_end[at] < end) t->last_end[at] = end;
  }
}

// Adds those below |at| that live at the same time as |slot|.
static void find_live(tree_t* t, size_t at, size_t first, size_t leaves,
                      const slot_t* slot) {
  if (first >= t->count || t->last_end[at] < slot->cell->begin ||
      t->by_begin[first]->cell->begin > slot->cell->end) {
    return;
  }
  if (leaves == 1) {
    t->found[t->found_count++] = t->by_begin[first];
    return;
  }
  find_live(t, 2 * at, first, leaves / 2, slot);
  find_live(t, 2 * at + 1, first + leaves / 2, leaves / 2, slot);
}

// The smallest gap that |slot| fits into between the ones found, by offset.
static int64_t find_gap(const slot_t* slot, slot_t* const* found,
                        size_t count) {
  int64_t best = -1, best_gap = INT64_MAX, end = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t gap = found[i]->offset - end;
    if (gap >= slot->size && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (found[i]->offset + found[i]->size > end)
      end = found[i]->offset + found[i]->size;
  }
  return best >= 0 ? best : end;
}

static bool make_tree(pestle_arena_t* arena, slot_t* slots, size_t count,
                      tree_t* out) {
  *out =
      (tree_t){.leaves = pestle_next_pow2(count ? count : 1), .count = count};
  out->by_begin = PESTLE_ARENA_ARRAY(arena, slot_t*, count + 1);
  out->found = PESTLE_ARENA_ARRAY(arena, slot_t*, count + 1);
  out->last_end = PESTLE_ARENA_ARRAY(arena, int64_t, 2 * out->leaves);
  if (!out->by_begin || !out->found || !out->last_end) return false;
  for (size_t i = 0; i < 2 * out->leaves; ++i)
    out->last_end[i] = -1;
  for (size_t i = 0; i < count; ++i)
    out->by_begin[i] = &slots[i];
  if (count > 1) qsort(out->by_begin, count, sizeof(slot_t*), by_leaf);
  for (size_t i = 0; i < count; ++i)
    out->by_begin[i]->leaf = i;
  return true;
}

static pestle_status_t place_by_size(pestle_arena_t* arena, slot_t* slots,
                                     size_t count, int64_t* out_peak) {
  tree_t t;
  *out_peak = 0;
  if (count > 1) qsort(slots, count, sizeof(slots[0]), by_size);
  if (!make_tree(arena, slots, count, &t)) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    t.found_count = 0;
    find_live(&t, 1, 0, t.leaves, &slots[i]);
    if (t.found_count > 1)
      qsort(t.found, t.found_count, sizeof(slot_t*), by_place);
    slots[i].offset = find_gap(&slots[i], t.found, t.found_count);
    mark_placed(&t, slots[i].leaf);
    int64_t end = slots[i].offset + slots[i].size;
    if (end > *out_peak) *out_peak = end;
  }
  return NULL;
}

static void keep(const slot_t* slots, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    slots[i].cell->offset = slots[i].offset;
  }
}

// --- The largest live set ---

typedef struct event_t {
  int64_t position, bytes;
} event_t;

static int by_position(const void* a, const void* b) {
  const event_t *x = a, *y = b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  // A cell that ends at a position is live there: make room first.
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return 0;
}

// |*out_pairs| are how many live at the same time, about.
static int64_t largest_live_set(const slot_t* slots, size_t count,
                                event_t* events, uint64_t* out_pairs) {
  for (size_t i = 0; i < count; ++i) {
    events[2 * i] = (event_t){slots[i].cell->begin * 2, slots[i].size};
    events[2 * i + 1] = (event_t){slots[i].cell->end * 2 + 1, -slots[i].size};
  }
  qsort(events, 2 * count, sizeof(events[0]), by_position);
  int64_t live = 0, largest = 0;
  uint64_t cells = 0;
  *out_pairs = 0;
  for (size_t i = 0; i < 2 * count; ++i) {
    bool begins = events[i].bytes > 0;
    if (begins) *out_pairs += cells;
    cells += begins ? 1u : events[i].bytes < 0 ? UINT64_MAX : 0;
    live += events[i].bytes;
    if (live > largest) largest = live;
  }
  return largest;
}

pestle_status_t pestle_planner_offsets(pestle_planner_t* p, int64_t* out_size,
                                       int64_t* out_lower_bound) {
  size_t count = 0, total = p->cells.size;
  slot_t* slots = PESTLE_ARENA_ARRAY(p->arena, slot_t, total + 1);
  event_t* events = PESTLE_ARENA_ARRAY(p->arena, event_t, 2 * total + 1);
  if (!slots || !events) return PESTLE_OOM();
  for (size_t i = 0; i < total; ++i) {
    pestle_cell_t* cell = &p->cells.data[i];
    if (cell->storage != PESTLE_STORAGE_ARENA ||
        cell->merged_into != PESTLE_CELL_NONE) {
      continue;
    }
    slots[count++] = (slot_t){
        .cell = cell, .number = (uint32_t)i, .size = aligned(cell->size)};
  }
  uint64_t pairs;
  *out_lower_bound = largest_live_set(slots, count, events, &pairs);
  PESTLE_TRY(place_by_begin(p->arena, slots, count, out_size));
  keep(slots, count);
  // The other order is tried where it may be better and ends in time.
  if (*out_size == *out_lower_bound || pairs > MOST_PAIRS) return NULL;
  int64_t other;
  PESTLE_TRY(place_by_size(p->arena, slots, count, &other));
  if (other >= *out_size) return NULL;
  keep(slots, count);
  *out_size = other;
  return NULL;
}
