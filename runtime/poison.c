// SPDX-License-Identifier: Apache-2.0
#include "runtime/poison.h"

#include "base/mem.h"
#include "base/status_copy.h"

typedef pestle_poison_range_t range_t;

static size_t count_of(const pestle_poison_t* poison) {
  return atomic_load_explicit(&poison->count, memory_order_relaxed);
}

// --- Life ---

void pestle_poison_init(pestle_allocator_t allocator,
                        pestle_poison_t* out_poison) {
  *out_poison = (pestle_poison_t){.allocator = allocator};
  pestle_mutex_init(&out_poison->mutex);
  atomic_init(&out_poison->count, 0);
}

void pestle_poison_deinit(pestle_poison_t* poison) {
  for (size_t i = 0; i < count_of(poison); ++i) {
    pestle_status_release(poison->ranges[i].failure);
  }
  pestle_dealloc(poison->allocator, poison->ranges,
                 poison->room * sizeof(range_t));
  pestle_mutex_deinit(&poison->mutex);
}

void pestle_poison_after_fork(pestle_poison_t* poison) {
  // A thread of the parent may have been moving it.
  pestle_poison_init(poison->allocator, poison);
}

// --- The list; the mutex is held ---

static pestle_status_t reserve(pestle_poison_t* poison) {
  size_t count = count_of(poison);
  if (count < poison->room) return NULL;
  if (count >= PESTLE_POISON_RANGES) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "%zu outputs of failed runs are kept in mind, which "
                        "are the most; synchronise the streams that failed",
                        count);
  }
  size_t room = poison->room ? 2 * poison->room : 16;
  range_t* ranges =
      pestle_realloc(poison->allocator, poison->ranges,
                     poison->room * sizeof(range_t), room * sizeof(range_t));
  if (!ranges) return PESTLE_OOM();
  poison->ranges = ranges;
  poison->room = room;
  return NULL;
}

static void append(pestle_poison_t* poison, range_t range,
                   pestle_status_t failure) {
  size_t count = count_of(poison);
  range.failure = pestle_status_retain(failure);
  poison->ranges[count] = range;
  atomic_store_explicit(&poison->count, count + 1, memory_order_release);
}

static void take_away(pestle_poison_t* poison, size_t at) {
  size_t last = count_of(poison) - 1;
  pestle_status_release(poison->ranges[at].failure);
  poison->ranges[at] = poison->ranges[last];
  atomic_store_explicit(&poison->count, last, memory_order_release);
}

static bool overlaps(const range_t* a, const void* place, uintptr_t begin,
                     uintptr_t end) {
  return a->place == place && a->begin < end && begin < a->end;
}

static bool covers(const range_t* a, const range_t* b) {
  return a->place == b->place && a->stream == b->stream &&
         a->layout == b->layout && a->begin <= b->begin && b->end <= a->end;
}

// --- Ranges ---

pestle_status_t pestle_poison_find(pestle_poison_t* poison, const void* place,
                                   uintptr_t begin, uintptr_t end) {
  pestle_status_t found = NULL;
  if (pestle_poison_is_empty(poison)) return NULL;
  pestle_mutex_lock(&poison->mutex);
  for (size_t i = 0; i < count_of(poison) && !found; ++i) {
    if (overlaps(&poison->ranges[i], place, begin, end)) {
      found = pestle_status_retain(poison->ranges[i].failure);
    }
  }
  pestle_mutex_unlock(&poison->mutex);
  return found;
}

static bool is_known(const pestle_poison_t* poison, const range_t* range) {
  for (size_t i = 0; i < count_of(poison); ++i) {
    if (covers(&poison->ranges[i], range)) return true;
  }
  return false;
}

pestle_status_t pestle_poison_add(pestle_poison_t* poison,
                                  const pestle_poison_range_t* range,
                                  pestle_status_t failure) {
  pestle_status_t status = NULL;
  if (range->begin >= range->end) return NULL;
  pestle_mutex_lock(&poison->mutex);
  // The first failure of a stream is the one to tell.
  if (!is_known(poison, range)) {
    status = reserve(poison);
    if (!status) append(poison, *range, failure);
  }
  pestle_mutex_unlock(&poison->mutex);
  return status;
}

// What |range| leaves of the one at |at|. False: that one is gone, and another in
// its place.
static bool cut(pestle_poison_t* poison, size_t at, const range_t* range) {
  range_t* from = &poison->ranges[at];
  bool same = from->begin == range->begin && from->end == range->end &&
              from->layout == range->layout;
  // Of elements with gaps only those were written.
  if (range->layout && !same) return true;
  bool before = from->begin < range->begin, after = range->end < from->end;
  if (before && after) {
    pestle_status_t status = reserve(poison);
    pestle_status_release(status);
    if (status) return true;
    range_t rest = poison->ranges[at];
    rest.begin = range->end;
    poison->ranges[at].end = range->begin;
    append(poison, rest, rest.failure);
  } else if (before) {
    from->end = range->begin;
  } else if (after) {
    from->begin = range->end;
  } else {
    take_away(poison, at);
    return false;
  }
  return true;
}

void pestle_poison_heal(pestle_poison_t* poison,
                        const pestle_poison_range_t* range) {
  if (pestle_poison_is_empty(poison)) return;
  pestle_mutex_lock(&poison->mutex);
  for (size_t i = 0; i < count_of(poison);) {
    bool touched =
        overlaps(&poison->ranges[i], range->place, range->begin, range->end);
    i += !touched || cut(poison, i, range);
  }
  pestle_mutex_unlock(&poison->mutex);
}

void pestle_poison_forget(pestle_poison_t* poison, uint64_t stream) {
  if (pestle_poison_is_empty(poison)) return;
  pestle_mutex_lock(&poison->mutex);
  for (size_t i = 0; i < count_of(poison);) {
    if (poison->ranges[i].stream == stream) {
      take_away(poison, i);
    } else {
      ++i;
    }
  }
  pestle_mutex_unlock(&poison->mutex);
}
