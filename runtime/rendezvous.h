// SPDX-License-Identifier: Apache-2.0
// How ranks find rank 0 by a store that a framework has (pestle_world_store_t): rank 0
// listens on a port that is free and puts there where that is, on which machine, and a
// secret of its own where the user has none.
#ifndef PESTLE_RUNTIME_RENDEZVOUS_H_
#define PESTLE_RUNTIME_RENDEZVOUS_H_

#include "pestle/world.h"
#include "runtime/job.h"
#include "runtime/store.h"

typedef struct pestle_rendezvous_t {
  const pestle_world_store_t* store;
  char key[160];
  char host[PESTLE_HOST_SIZE];  // where rank 0 listens
  char secret[65];              // that it has made; "": all have one
} pestle_rendezvous_t;

// Fills in what |out_store|, whose rank and size are there, is opened with. Rank 0 tells
// the others once its server listens (|out_store|->listening, with |out_meeting|, which
// has to live until then); they wait for that. |job| has the host that rank 0 listens on.
// DEADLINE_EXCEEDED: rank 0 has told nothing; INVALID_ARGUMENT: rank 0 listens on
// loopback of another machine.
PESTLE_NODISCARD pestle_status_t pestle_rendezvous_begin(
    pestle_context_t* context, const pestle_world_options_t* options,
    const pestle_job_t* job, int64_t deadline_ns,
    pestle_rendezvous_t* out_meeting, pestle_store_options_t* out_store);

#endif  // PESTLE_RUNTIME_RENDEZVOUS_H_
