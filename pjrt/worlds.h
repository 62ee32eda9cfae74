// SPDX-License-Identifier: Apache-2.0
// As whom programs of several devices run: each device of a program is a rank of a world.
// Devices of a CPU in one process meet in a world of its own for each execution, which
// costs nothing: what ends one ends no other. Devices of several processes, and GPUs, keep
// theirs: one for each list of devices that programs run on. One between processes that has
// ended stays so, since not all of them know when they could make another.
#ifndef PESTLE_PJRT_WORLDS_H_
#define PESTLE_PJRT_WORLDS_H_

#include "pjrt/program.h"

typedef struct pestle_pjrt_worlds_t pestle_pjrt_worlds_t;

PJRT_Error* pestle_pjrt_worlds_create(PJRT_Client* client,
                                      pestle_pjrt_worlds_t** out_worlds);
void pestle_pjrt_worlds_release(pestle_pjrt_worlds_t* worlds);
// Meets all processes in the world of all devices, in their order.
PJRT_Error* pestle_pjrt_worlds_open(PJRT_Client* client);
// Leaves all of them, and makes no others. Nothing is running.
void pestle_pjrt_worlds_close(pestle_pjrt_worlds_t* worlds);
// The ranks of |program|'s devices of this process, each held for the caller, who may
// queue runs of it on all of them. The first time in a world it waits for what the devices
// are doing, and for the other processes to do the same. UNAVAILABLE: the world has ended,
// and why.
PJRT_Error* pestle_pjrt_worlds_take(pestle_pjrt_program_t* program,
                                    pestle_world_t** out_ranks);

#endif  // PESTLE_PJRT_WORLDS_H_
