// SPDX-License-Identifier: Apache-2.0
// The ranks of a world, and how they meet: by a transport's table (plugin.h), that
// between threads (host_transport.h) or that between processes (process_transport.h).
#ifndef PESTLE_RUNTIME_WORLD_H_
#define PESTLE_RUNTIME_WORLD_H_

#include "base/thread.h"
#include "base/vec.h"
#include "pestle/allocator.h"
#include "pestle/plugin.h"
#include "pestle/world.h"
#include "runtime/carrier.h"

struct pestle_world_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  const pestle_collective_api_t* api;
  void* transport;  // its |self|
  pestle_comm_t* comm;
  int32_t rank, size;
  uint64_t sequence;          // of its latest collective
  pestle_store_t* store;      // of processes; NULL: of threads
  pestle_carrier_t* carrier;  // NULL: the ranks' own transport does it all
  bool ordered;  // sums have the order of the ranks, whoever carries them
  int64_t deadline_ns, create_deadline_ns;
  bool checks;    // each collective of devices is compared over the ranks first
  bool by_host;   // also what devices send goes through the host's memory
  bool overlaps;  // devices' collectives run beside other work
  bool records;   // and may be part of recordings
  struct pestle_progress_t*
      progress;  // of a CPU's: progress.h; made at the first need
  // Of ranks on devices other than CPUs: device_comm.h, and its memory on the host.
  struct pestle_device_comm_t* device_comms;
  char* stage;
  size_t stage_size;
  // Plans that all ranks are known to have alike. None is ever forgotten: ranks have to
  // agree on which are new.
  PESTLE_VEC(uint64_t) plans;
};

// The number of the rank's next collective.
static inline uint64_t pestle_world_next(pestle_world_t* world) {
  return ++world->sequence;
}

// Does |ops|, of which there are |count| >= 1, all of one sequence number, group and
// kind, together. |ordered|: what is combined has the order of the members, whoever
// combines it, however much it is. Returns when the results are there and nobody reads what these ops
// send any more. DEADLINE_EXCEEDED names who has not come; UNAVAILABLE: the world has
// ended, and why; INCOMPATIBLE: the members have come to different things.
PESTLE_NODISCARD pestle_status_t
pestle_world_enqueue(pestle_world_t* world, const pestle_collective_t* ops,
                     size_t count, bool ordered);

// Tells the others where this rank's device is: it has come to collective |begun|.
void pestle_world_tell(pestle_world_t* world, uint64_t begun, uint64_t done);

// Whether |world|, which may be NULL, is one for a plan of |size| processes whose bytes
// have the checksum |hash|. Ranks that are processes meet here before they run a plan
// for the first time: INCOMPATIBLE names those that run another one.
PESTLE_NODISCARD pestle_status_t pestle_world_check(pestle_world_t* world,
                                                    int32_t size,
                                                    const char* plan,
                                                    uint64_t hash);

#endif  // PESTLE_RUNTIME_WORLD_H_
