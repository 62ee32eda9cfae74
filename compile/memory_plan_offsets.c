// SPDX-License-Identifier: Apache-2.0
// Offsets of cells in the arena. Cells are placed one after another, each into
// the smallest gap that it fits among those that live at the same time; of two
// orders (largest first, earliest first) the one with the lower peak is kept.
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "compile/memory_planner.h"

#define ALIGNMENT PESTLE_BUFFER_ALIGNMENT

typedef struct slot_t {
  pestle_cell_t* cell;
  uint32_t number;
  int64_t size;  // aligned
  int64_t offset;
} slot_t;

static int64_t aligned(int64_t size) {
  return (int64_t)pestle_align_up((size_t)size, ALIGNMENT);
}

static bool overlap(const pestle_cell_t* a, const pestle_cell_t* b) {
  return a->begin <= b->end && b->begin <= a->end;
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

// |placed| lists the |count| slots before |slot|, by offset.
static int64_t find_gap(const slot_t* slot, slot_t* const* placed,
                        size_t count) {
  int64_t best = -1, best_gap = INT64_MAX, end = 0;
  for (size_t i = 0; i < count; ++i) {
    const slot_t* other = placed[i];
    if (!overlap(slot->cell, other->cell)) continue;
    int64_t gap = other->offset - end;
    if (gap >= slot->size && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (other->offset + other->size > end) end = other->offset + other->size;
  }
  return best >= 0 ? best : end;
}

static void insert_by_offset(slot_t** placed, size_t count, slot_t* slot) {
  size_t at = count;
  while (at > 0 && placed[at - 1]->offset > slot->offset) {
    placed[at] = placed[at - 1];
    --at;
  }
  placed[at] = slot;
}

static int64_t place_all(slot_t* slots, slot_t** placed, size_t count,
                         int (*order)(const void*, const void*)) {
  int64_t peak = 0;
  qsort(slots, count, sizeof(slots[0]), order);
  for (size_t i = 0; i < count; ++i) {
    slots[i].offset = find_gap(&slots[i], placed, i);
    insert_by_offset(placed, i, &slots[i]);
    int64_t end = slots[i].offset + slots[i].size;
    if (end > peak) peak = end;
  }
  return peak;
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

static int64_t largest_live_set(const slot_t* slots, size_t count,
                                event_t* events) {
  for (size_t i = 0; i < count; ++i) {
    events[2 * i] = (event_t){slots[i].cell->begin * 2, slots[i].size};
    events[2 * i + 1] = (event_t){slots[i].cell->end * 2 + 1, -slots[i].size};
  }
  qsort(events, 2 * count, sizeof(events[0]), by_position);
  int64_t live = 0, largest = 0;
  for (size_t i = 0; i < 2 * count; ++i) {
    live += events[i].bytes;
    if (live > largest) largest = live;
  }
  return largest;
}

pestle_status_t pestle_planner_offsets(pestle_planner_t* p, int64_t* out_size,
                                       int64_t* out_lower_bound) {
  size_t count = 0, total = p->cells.size;
  slot_t* slots = PESTLE_ARENA_ARRAY(p->arena, slot_t, total + 1);
  slot_t** placed = PESTLE_ARENA_ARRAY(p->arena, slot_t*, total + 1);
  event_t* events = PESTLE_ARENA_ARRAY(p->arena, event_t, 2 * total + 1);
  if (!slots || !placed || !events) return PESTLE_OOM();
  for (size_t i = 0; i < total; ++i) {
    pestle_cell_t* cell = &p->cells.data[i];
    if (cell->storage != PESTLE_STORAGE_ARENA ||
        cell->merged_into != PESTLE_CELL_NONE) {
      continue;
    }
    slots[count++] = (slot_t){cell, (uint32_t)i, aligned(cell->size), 0};
  }
  *out_lower_bound = largest_live_set(slots, count, events);
  int64_t peak = place_all(slots, placed, count, by_begin);
  keep(slots, count);
  int64_t other = place_all(slots, placed, count, by_size);
  if (other < peak) {
    keep(slots, count);
    peak = other;
  }
  *out_size = peak;
  return NULL;
}
