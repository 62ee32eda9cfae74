// SPDX-License-Identifier: Apache-2.0
// The thread pool of a context. Threads start when first needed, spin briefly
// for the next job and then sleep. Whoever submits a job works on it too, so a
// job never waits for a free thread: with one thread, or inside another job, it
// is a loop. Several jobs may run at once.
//
// How a job ends: it is published in a slot of the pool. A thread that looks
// into a slot counts itself as a visitor first and leaves when no piece is
// left; the submitter takes the job out of the slot and waits until there are
// no visitors. So the job may live on the submitter's stack.
#ifndef PESTLE_RUNTIME_POOL_H_
#define PESTLE_RUNTIME_POOL_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "base/trace.h"
#include "pestle/allocator.h"

// Runs piece |piece| of a job; |participant| is the number of the thread within
// this job, 0 for the submitter, below the job's cap: nobody else has it.
typedef void (*pestle_pool_fn_t)(void* arg, int32_t participant, int64_t piece);

// The application's own pool (pestle_context_options_t).
typedef struct pestle_pool_hook_t {
  void (*parallel_for)(void* user, int64_t count,
                       void (*task)(void* arg, int64_t index), void* arg);
  void* user;
} pestle_pool_hook_t;

enum { PESTLE_POOL_SLOTS = 16 };

typedef struct pestle_pool_job_t pestle_pool_job_t;

typedef struct pestle_pool_slot_t {
  _Alignas(64) _Atomic(pestle_pool_job_t*) job;
  atomic_bool taken;
  atomic_bool waiting;  // the submitter sleeps until |visitors| is 0
  _Alignas(64) atomic_int visitors;
} pestle_pool_slot_t;

typedef struct pestle_pool_t {
  pestle_allocator_t allocator;
  pestle_pool_hook_t hook;
  int32_t size;           // threads of a job, with its submitter
  pestle_trace_t* trace;  // where the threads have names; may be NULL
  pestle_mutex_t mutex;
  pestle_cond_t work;        // workers sleep here
  pestle_cond_t done;        // submitters sleep here
  pestle_thread_t* threads;  // size - 1 of them, |started| of which run
  atomic_int started;
  atomic_int sleepers;
  atomic_bool stop;
  _Alignas(64) atomic_uint epoch;  // changes with every job
  pestle_pool_slot_t slots[PESTLE_POOL_SLOTS];
} pestle_pool_t;

// |size| >= 1. Allocates and starts nothing.
void pestle_pool_init(pestle_allocator_t allocator, int32_t size,
                      pestle_pool_hook_t hook, pestle_pool_t* out_pool);
// Stops the threads. No job may run.
void pestle_pool_deinit(pestle_pool_t* pool);
// In a child of fork(): forgets the parent's threads and jobs.
void pestle_pool_after_fork(pestle_pool_t* pool);

// Runs fn(arg, participant, i) for each i < count on at most |cap| threads (0:
// the pool's size) and returns when all are done. |cap| above the pool's size
// is cut to it.
void pestle_pool_run(pestle_pool_t* pool, int64_t count, int32_t cap,
                     pestle_pool_fn_t fn, void* arg);

#endif  // PESTLE_RUNTIME_POOL_H_
