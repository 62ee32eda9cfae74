// SPDX-License-Identifier: Apache-2.0
// Memory that a failed run was to write: sets of ranges, each with the failure
// that it must be told from. A set never changes, so that a completion can hold
// what was poisoned when it came; NULL is the empty one.
#ifndef PESTLE_RUNTIME_POISON_H_
#define PESTLE_RUNTIME_POISON_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

typedef struct pestle_poison_range_t {
  const void* place;  // a device, or NULL: the host's memory
  uintptr_t begin, end;
  // Of the elements in the range: one that is written with the same layout is
  // healed. 0: all bytes.
  uint64_t layout;
  pestle_status_t failure;  // held by the set; unused in arguments
} pestle_poison_range_t;

typedef struct pestle_poison_t {
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  size_t count, room;
  pestle_poison_range_t ranges[];
} pestle_poison_t;

void pestle_poison_retain(pestle_poison_t* set);
void pestle_poison_release(pestle_poison_t* set);

// The failure of a range that overlaps [begin, end), borrowed, or NULL.
pestle_status_t pestle_poison_find(const pestle_poison_t* set,
                                   const void* place, uintptr_t begin,
                                   uintptr_t end);

// Each replaces |*set|, of which it takes over the caller's hold. OUT_OF_MEMORY
// leaves it as it was.

// Adds |count| ranges, which |failure| is the reason of.
PESTLE_NODISCARD pestle_status_t pestle_poison_add(
    pestle_allocator_t allocator, pestle_poison_t** set,
    const pestle_poison_range_t* ranges, size_t count, pestle_status_t failure);
// Takes away what |range| covers: it was written.
PESTLE_NODISCARD pestle_status_t
pestle_poison_heal(pestle_poison_t** set, const pestle_poison_range_t* range);
// Adds those of |other|.
PESTLE_NODISCARD pestle_status_t
pestle_poison_join(pestle_poison_t** set, const pestle_poison_t* other);

#endif  // PESTLE_RUNTIME_POISON_H_
