// SPDX-License-Identifier: Apache-2.0
// A thread of a rank on a CPU that does its collectives while the run goes on with other
// steps: one after the other, in the order in which they are given. It sleeps while there
// are none. The transport is called from it or from the run's thread, never from both at
// once: a run waits for all that it has given before it does a collective itself.
#ifndef PESTLE_RUNTIME_PROGRESS_H_
#define PESTLE_RUNTIME_PROGRESS_H_

#include "runtime/world.h"

typedef struct pestle_progress_t pestle_progress_t;

// Fewer bytes are done sooner than another thread wakes up.
enum { PESTLE_PROGRESS_BYTES = 65536 };

// Whether |world| has such a thread, or may have one.
bool pestle_progress_may(const pestle_world_t* world);
// Gives |ops|, as pestle_world_enqueue() takes them; what they name of the plan stays
// until they are waited for.
PESTLE_NODISCARD pestle_status_t
pestle_progress_give(pestle_world_t* world, const pestle_collective_t* ops,
                     size_t count, bool ordered);
// Waits until collective |number| is done, and returns what failed first of all so far.
PESTLE_NODISCARD pestle_status_t pestle_progress_wait(pestle_world_t* world,
                                                      uint64_t number);
// Waits until all are done, or have failed: nobody reads or writes their memory then.
void pestle_progress_drain(pestle_world_t* world);
// Ends the thread, for which there is nothing left to do. NULL is allowed.
void pestle_progress_destroy(pestle_progress_t* progress);

#endif  // PESTLE_RUNTIME_PROGRESS_H_
