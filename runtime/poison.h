// SPDX-License-Identifier: Apache-2.0
// Memory that failed runs were to write: ranges of a context's devices and of the
// host, each with the failure that whoever reads it is to be told. A range lasts
// until a run has written it, or until the stream that it comes from is
// synchronised.
//
// There is one list for all streams. They look and write in the order in which they
// act, which is that of the events between them: a wait acts when all before the
// recording has. So what one stream heals is healed for those that come after it.
#ifndef PESTLE_RUNTIME_POISON_H_
#define PESTLE_RUNTIME_POISON_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

// As many as are kept; who fails more often without a synchronisation is told.
enum { PESTLE_POISON_RANGES = 4096 };

typedef struct pestle_poison_range_t {
  const void* place;  // a device, or NULL: the host's memory
  uintptr_t begin, end;
  // Of the elements in the range: one that is written with the same layout is
  // healed. 0: all bytes.
  uint64_t layout;
  uint64_t stream;          // the number of that which failed
  pestle_status_t failure;  // held by the list; unused in arguments
} pestle_poison_range_t;

typedef struct pestle_poison_t {
  pestle_allocator_t allocator;
  pestle_mutex_t mutex;
  atomic_size_t count;  // so that nothing is locked where nothing is poisoned
  pestle_poison_range_t* ranges;
  size_t room;
} pestle_poison_t;

void pestle_poison_init(pestle_allocator_t allocator,
                        pestle_poison_t* out_poison);
void pestle_poison_deinit(pestle_poison_t* poison);
// In a child of fork(): streams, and so what they failed in, are the parent's.
void pestle_poison_after_fork(pestle_poison_t* poison);

// Whether there is any.
static inline bool pestle_poison_is_empty(const pestle_poison_t* poison) {
  return atomic_load_explicit(&poison->count, memory_order_acquire) == 0;
}
// The failure of a range that overlaps [begin, end), a hold of the caller's, or
// NULL.
pestle_status_t pestle_poison_find(pestle_poison_t* poison, const void* place,
                                   uintptr_t begin, uintptr_t end);
// Adds |range|, which |failure| is the reason of. OUT_OF_MEMORY,
// RESOURCE_EXHAUSTED: it is not in the list.
PESTLE_NODISCARD pestle_status_t
pestle_poison_add(pestle_poison_t* poison, const pestle_poison_range_t* range,
                  pestle_status_t failure);
// Takes away what |range| covers: it was written. Without memory for what is left
// of a range all of it stays.
void pestle_poison_heal(pestle_poison_t* poison,
                        const pestle_poison_range_t* range);
// Takes away what |stream| failed in: its caller knows.
void pestle_poison_forget(pestle_poison_t* poison, uint64_t stream);

#endif  // PESTLE_RUNTIME_POISON_H_
