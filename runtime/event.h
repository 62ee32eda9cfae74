// SPDX-License-Identifier: Apache-2.0
// An event is a name for the latest of its recordings, each of which is a
// completion.
#ifndef PESTLE_RUNTIME_EVENT_H_
#define PESTLE_RUNTIME_EVENT_H_

#include "pestle/runtime.h"
#include "runtime/completion.h"

// The latest recording, borrowed until the next; NULL: none.
pestle_completion_t* pestle_event_latest(const pestle_event_t* event);

#endif  // PESTLE_RUNTIME_EVENT_H_
