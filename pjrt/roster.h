// SPDX-License-Identifier: Apache-2.0
// Which devices a client has: those of this process, and of those beside it.
#ifndef PESTLE_PJRT_ROSTER_H_
#define PESTLE_PJRT_ROSTER_H_

#include "pjrt/processes.h"

// Makes the devices of |client|, whose context and settings are there. With several
// processes (create option num_nodes) it waits until all have come, by |calls|; NULL: the
// client is of one process alone, whatever its options say.
PJRT_Error* pestle_pjrt_roster_make(PJRT_Client* client,
                                    const pestle_pjrt_calls_t* calls);
void pestle_pjrt_roster_drop(PJRT_Client* client);

#endif  // PESTLE_PJRT_ROSTER_H_
