// SPDX-License-Identifier: Apache-2.0
// Events: something that will be done, well or not. One event serves all who ask
// for it; handles of it are counted.
#ifndef PESTLE_PJRT_EVENT_H_
#define PESTLE_PJRT_EVENT_H_

#include <stdbool.h>

#include "pjrt/abi.h"

// An event that is not set; NULL when out of memory.
PJRT_Event* pestle_pjrt_event_create(void);
void pestle_pjrt_event_retain(PJRT_Event* event);
// NULL is allowed. One that is given up unset is ABORTED for those who wait.
void pestle_pjrt_event_release(PJRT_Event* event);
// Sets it, once: it is done, or |error|, which is taken over, is why not. Those
// who wait are called by this thread, with no lock held.
void pestle_pjrt_event_set(PJRT_Event* event, PJRT_Error* error);
bool pestle_pjrt_event_is_ready(const PJRT_Event* event);
// Why it went wrong, borrowed; NULL when it went well or is not set.
const PJRT_Error* pestle_pjrt_event_error(const PJRT_Event* event);
// Calls fn(self, error) once when it is set: at once if it is. The error is
// borrowed. Returns an error of its own, and calls nothing, when out of memory.
typedef void (*pestle_pjrt_event_fn_t)(void* self, const PJRT_Error* error);
PJRT_Error* pestle_pjrt_event_then(PJRT_Event* event, pestle_pjrt_event_fn_t fn,
                                   void* self);
// Waits until it is set.
void pestle_pjrt_event_wait(PJRT_Event* event);

#endif  // PESTLE_PJRT_EVENT_H_
