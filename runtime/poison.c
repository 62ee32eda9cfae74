// SPDX-License-Identifier: Apache-2.0
#include "runtime/poison.h"

#include <string.h>

#include "base/mem.h"
#include "base/status_copy.h"

static size_t bytes_of(size_t room) {
  return sizeof(pestle_poison_t) + room * sizeof(pestle_poison_range_t);
}

// An empty set with room for |room| ranges; NULL: out of memory.
static pestle_poison_t* make(pestle_allocator_t allocator, size_t room) {
  pestle_poison_t* set = pestle_alloc_zero(allocator, bytes_of(room));
  if (!set) return NULL;
  pestle_refcount_init(&set->refcount);
  set->allocator = allocator;
  set->room = room;
  return set;
}

void pestle_poison_retain(pestle_poison_t* set) {
  if (set) pestle_refcount_retain(&set->refcount);
}

void pestle_poison_release(pestle_poison_t* set) {
  if (!set || !pestle_refcount_release(&set->refcount)) return;
  for (size_t i = 0; i < set->count; ++i) {
    pestle_status_release(set->ranges[i].failure);
  }
  pestle_dealloc(set->allocator, set, bytes_of(set->room));
}

static bool overlaps(const pestle_poison_range_t* a, const void* place,
                     uintptr_t begin, uintptr_t end) {
  return a->place == place && a->begin < end && begin < a->end;
}

pestle_status_t pestle_poison_find(const pestle_poison_t* set,
                                   const void* place, uintptr_t begin,
                                   uintptr_t end) {
  for (size_t i = 0; set && i < set->count; ++i) {
    if (overlaps(&set->ranges[i], place, begin, end)) {
      return set->ranges[i].failure;
    }
  }
  return NULL;
}

static void put(pestle_poison_t* set, pestle_poison_range_t range,
                pestle_status_t failure) {
  if (range.begin >= range.end) return;
  range.failure = pestle_status_retain(failure);
  set->ranges[set->count++] = range;
}

static void put_all(pestle_poison_t* set, const pestle_poison_t* from) {
  for (size_t i = 0; from && i < from->count; ++i) {
    put(set, from->ranges[i], from->ranges[i].failure);
  }
}

static void replace(pestle_poison_t** set, pestle_poison_t* with) {
  pestle_poison_release(*set);
  if (with && !with->count) {
    pestle_poison_release(with);
    with = NULL;
  }
  *set = with;
}

static size_t count_of(const pestle_poison_t* set) {
  return set ? set->count : 0;
}

pestle_status_t pestle_poison_add(pestle_allocator_t allocator,
                                  pestle_poison_t** set,
                                  const pestle_poison_range_t* ranges,
                                  size_t count, pestle_status_t failure) {
  if (!count) return NULL;
  pestle_poison_t* with = make(allocator, count_of(*set) + count);
  if (!with) return PESTLE_OOM();
  put_all(with, *set);
  for (size_t i = 0; i < count; ++i)
    put(with, ranges[i], failure);
  replace(set, with);
  return NULL;
}

// What |range| leaves of |from|: at most two pieces.
static void put_rest(pestle_poison_t* set, const pestle_poison_range_t* from,
                     const pestle_poison_range_t* range) {
  bool same = from->begin == range->begin && from->end == range->end &&
              from->layout == range->layout;
  if (!overlaps(from, range->place, range->begin, range->end)) {
    put(set, *from, from->failure);
  } else if (range->layout) {
    // Only some elements were written.
    if (!same) put(set, *from, from->failure);
  } else {
    pestle_poison_range_t before = *from, after = *from;
    before.end = range->begin;
    after.begin = range->end;
    put(set, before, from->failure);
    put(set, after, from->failure);
  }
}

pestle_status_t pestle_poison_heal(pestle_poison_t** set,
                                   const pestle_poison_range_t* range) {
  if (!pestle_poison_find(*set, range->place, range->begin, range->end)) {
    return NULL;
  }
  pestle_poison_t* with = make((*set)->allocator, 2 * (*set)->count);
  if (!with) return PESTLE_OOM();
  for (size_t i = 0; i < (*set)->count; ++i)
    put_rest(with, &(*set)->ranges[i], range);
  replace(set, with);
  return NULL;
}

pestle_status_t pestle_poison_join(pestle_poison_t** set,
                                   const pestle_poison_t* other) {
  if (!other || other == *set) return NULL;
  pestle_poison_t* with = make(other->allocator, count_of(*set) + other->count);
  if (!with) return PESTLE_OOM();
  put_all(with, *set);
  for (size_t i = 0; i < other->count; ++i) {
    const pestle_poison_range_t* range = &other->ranges[i];
    // Streams that wait for each other do not heap up what they know.
    bool known = false;
    for (size_t k = 0; k < count_of(*set) && !known; ++k) {
      const pestle_poison_range_t* own = &(*set)->ranges[k];
      known = own->place == range->place && own->begin <= range->begin &&
              range->end <= own->end;
    }
    if (!known) put(with, *range, range->failure);
  }
  replace(set, with);
  return NULL;
}
