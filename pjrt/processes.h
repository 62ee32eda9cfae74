// SPDX-License-Identifier: Apache-2.0
// Several processes with a client each that are one machine for the framework: what they
// tell each other by its key-value calls before they meet as ranks of worlds.
#ifndef PESTLE_PJRT_PROCESSES_H_
#define PESTLE_PJRT_PROCESSES_H_

#include "pestle/world.h"
#include "pjrt/abi.h"
#include "pjrt/client.h"

typedef struct pestle_pjrt_processes_t {
  pestle_pjrt_calls_t calls;
  int32_t index, count;
  // Which of the clients that the processes have made one after the other.
  int32_t series;
  pestle_world_store_t store;  // the calls, for worlds
} pestle_pjrt_processes_t;

// What a process says of its devices.
typedef struct pestle_pjrt_card_t {
  int32_t count;
  bool is_cpu;
  char kind[PESTLE_PJRT_NAME_SIZE];
} pestle_pjrt_card_t;

// Process |index| of |count|, in which |calls| stay valid.
PJRT_Error* pestle_pjrt_processes_create(
    const pestle_pjrt_calls_t* calls, int32_t index, int32_t count,
    pestle_pjrt_processes_t** out_processes);
void pestle_pjrt_processes_release(pestle_pjrt_processes_t* processes);
// Tells all others |own| and waits for theirs: |out_cards| has room for |count|.
// DEADLINE_EXCEEDED names who has not come.
PJRT_Error* pestle_pjrt_processes_meet(pestle_pjrt_processes_t* processes,
                                       const pestle_pjrt_card_t* own,
                                       pestle_pjrt_card_t* out_cards);

#endif  // PESTLE_PJRT_PROCESSES_H_
