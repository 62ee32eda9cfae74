// SPDX-License-Identifier: Apache-2.0
// Merging: executions that come one after the other again and again become one
// program, with their common work done once and nothing dispatched in between.
//
//   f(p) -> l    g(p) -> d    u(p, d) -> p'        three executions a step
//   f+g+u(p) -> l, d, p'                           one
//
// The *history* says what repeats (merge_history.c): the same programs, wired to
// each other in the same way, three times. Such a *sequence* is linked and compiled
// in the background (merge_plan.c) once its parts have run for as long as that is
// expected to take, so that a loop that ends soon has lost nothing. It is compared
// with its parts on the next steps, and used only if every bit of every result is
// equal and the time that it saves is worth the wait. Executions of a sequence in use are *held* (merge.c): kept
// until the last one is there, which is a few times what the caller needs between
// two of them. Whoever asks for a result, or something else that comes in between,
// ends the hold, and what was held is run as it came.
#ifndef PESTLE_PJRT_MERGE_H_
#define PESTLE_PJRT_MERGE_H_

#include "pjrt/execution.h"

typedef struct pestle_pjrt_merge_t pestle_pjrt_merge_t;

// What |device| needs for it. |*out_merge| is NULL where the settings do not want
// merging.
PJRT_Error* pestle_pjrt_merge_create(PJRT_Device* device,
                                     pestle_pjrt_merge_t** out_merge);
// Runs what is held, and ends what is compiled.
void pestle_pjrt_merge_release(pestle_pjrt_merge_t* merge);
// Before the device waits for what is queued.
void pestle_pjrt_merge_flush(pestle_pjrt_merge_t* merge);

// Whether |e|, whose arguments have not been taken, is held: then it has its event
// and its results. Else what was held is queued, and |e| is to be run.
PJRT_Error* pestle_pjrt_merge_offer(pestle_pjrt_merge_t* merge,
                                    pestle_pjrt_execution_t* e,
                                    const PJRT_ExecuteOptions* options,
                                    bool* out_is_held);
// |e| has been run or queued: it is part of the history.
void pestle_pjrt_merge_note(pestle_pjrt_merge_t* merge,
                            const pestle_pjrt_execution_t* e);

// Somebody asks for the contents of |buffer|: it has memory afterwards, or an error.
void pestle_pjrt_merge_settle(PJRT_Buffer* buffer);

#endif  // PESTLE_PJRT_MERGE_H_
