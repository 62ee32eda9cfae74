// SPDX-License-Identifier: Apache-2.0
// The threads of a context on which callbacks of completions are called. A
// timeline is served by one of them at a time, in the order in which its
// completions came; two timelines never wait for each other: where all threads
// are in callbacks another one is started. The first is started with the first
// callback that is registered, and all end with the context.
//
// The mutex also guards the inside of all completions and timelines of the
// context. It is never held while something foreign is called.
#ifndef PESTLE_RUNTIME_NOTIFIER_H_
#define PESTLE_RUNTIME_NOTIFIER_H_

#include "base/thread.h"
#include "pestle/allocator.h"

typedef struct pestle_completion_t pestle_completion_t;
typedef struct pestle_timeline_t pestle_timeline_t;
typedef struct pestle_notifier_thread_t pestle_notifier_thread_t;

typedef struct pestle_notifier_t {
  pestle_allocator_t allocator;
  pestle_mutex_t mutex;
  pestle_cond_t more;        // timelines to serve, or the end
  pestle_timeline_t* ready;  // with completions to tell, which nobody serves
  pestle_timeline_t** ready_end;
  size_t ready_count, idle_count, thread_count;
  pestle_notifier_thread_t* threads;
  // Held by nobody but a thread of a backend, which may not end them.
  pestle_completion_t* spent;
  bool stop;
} pestle_notifier_t;

void pestle_notifier_init(pestle_allocator_t allocator,
                          pestle_notifier_t* out_notifier);
// Makes all calls that are due and ends the threads. May be called by one of them.
void pestle_notifier_deinit(pestle_notifier_t* notifier);
// In a child of fork(): its threads and what they were to call are the parent's.
void pestle_notifier_after_fork(pestle_notifier_t* notifier);

// Sees to it that there is a thread. RESOURCE_EXHAUSTED: the system has none.
PESTLE_NODISCARD pestle_status_t
pestle_notifier_start(pestle_notifier_t* notifier);
// |timeline| has a completion to tell; the mutex is held.
void pestle_notifier_wake(pestle_notifier_t* notifier,
                          pestle_timeline_t* timeline);
// Drops what threads of backends left behind.
void pestle_notifier_reap(pestle_notifier_t* notifier);

#endif  // PESTLE_RUNTIME_NOTIFIER_H_
