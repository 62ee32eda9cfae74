// SPDX-License-Identifier: Apache-2.0
// An event is a name for the latest of its recordings, each of which is a
// completion.
#ifndef PESTLE_RUNTIME_EVENT_H_
#define PESTLE_RUNTIME_EVENT_H_

#include "pestle/runtime.h"
#include "runtime/completion.h"

// The latest recording, borrowed until the next; NULL: none.
pestle_completion_t* pestle_event_latest(const pestle_event_t* event);
pestle_context_t* pestle_event_context(const pestle_event_t* event);
// A completion for a recording of what the caller is about to do.
PESTLE_NODISCARD pestle_status_t pestle_event_prepare(
    pestle_event_t* event, pestle_completion_t** out_completion);
// Makes |completion| the latest recording. Takes it over.
void pestle_event_set_latest(pestle_event_t* event,
                             pestle_completion_t* completion);

#endif  // PESTLE_RUNTIME_EVENT_H_
