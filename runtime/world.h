// SPDX-License-Identifier: Apache-2.0
// The ranks of a world of this process, and how they meet.
//
// A rank posts what it has come to and waits until all members of its group have
// done so too; then it reads what it needs of theirs, where they have it, and stays
// until nobody reads what is its own. Nothing is copied but results, and nobody works
// for another. Waiting is on a condition variable, never on the thread pool: ranks
// whose kernels fill the pool cannot keep others from coming.
#ifndef PESTLE_RUNTIME_WORLD_H_
#define PESTLE_RUNTIME_WORLD_H_

#include "base/thread.h"
#include "pestle/allocator.h"
#include "pestle/collective.h"
#include "pestle/world.h"

typedef struct pestle_world_shared_t pestle_world_shared_t;

struct pestle_world_s {
  pestle_refcount_t refcount;
  pestle_world_shared_t* shared;
  int32_t rank;
  uint64_t sequence;           // of its latest collective
  atomic_uint_fast64_t bytes;  // of others that it has read
};

// The number of the rank's next collective.
static inline uint64_t pestle_world_next(pestle_world_t* world) {
  return ++world->sequence;
}

// Does |ops|, of which there are |count| >= 1, all of one sequence number, group and
// kind, together. Returns when the results are there and nobody reads what these ops
// send any more. DEADLINE_EXCEEDED names who has not come; UNAVAILABLE: the world has
// ended, and why; INCOMPATIBLE: the members have come to different things.
PESTLE_NODISCARD pestle_status_t pestle_world_enqueue(
    pestle_world_t* world, const pestle_collective_t* ops, size_t count);

// Whether |world|, which may be NULL, is one for a plan of |size| processes.
PESTLE_NODISCARD pestle_status_t pestle_world_check(const pestle_world_t* world,
                                                    int32_t size,
                                                    const char* plan);

#endif  // PESTLE_RUNTIME_WORLD_H_
