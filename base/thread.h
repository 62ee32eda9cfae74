// SPDX-License-Identifier: Apache-2.0
// Threads, locks, time and the number of processors. C11 atomics may be used
// directly (<stdatomic.h>); locks and threads only through this header. The
// types hold the system's own objects in opaque storage, so that no OS header
// is seen outside thread_posix.c.
#ifndef PESTLE_BASE_THREAD_H_
#define PESTLE_BASE_THREAD_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/status.h"

// Not recursive. Must not be copied or moved.
typedef struct pestle_mutex_t {
  uint64_t storage[8];
} pestle_mutex_t;

void pestle_mutex_init(pestle_mutex_t* out_mutex);
void pestle_mutex_deinit(pestle_mutex_t* mutex);
void pestle_mutex_lock(pestle_mutex_t* mutex);
bool pestle_mutex_try_lock(pestle_mutex_t* mutex);
void pestle_mutex_unlock(pestle_mutex_t* mutex);

typedef struct pestle_cond_t {
  uint64_t storage[8];
} pestle_cond_t;

void pestle_cond_init(pestle_cond_t* out_cond);
void pestle_cond_deinit(pestle_cond_t* cond);
// Waits with |mutex| held; may return for no reason, so loop on a condition.
void pestle_cond_wait(pestle_cond_t* cond, pestle_mutex_t* mutex);
// The same, but no longer than until |deadline_ns| of pestle_clock_ns(): false, with
// |mutex| held, when it has passed.
bool pestle_cond_wait_until(pestle_cond_t* cond, pestle_mutex_t* mutex,
                            int64_t deadline_ns);
void pestle_cond_signal(pestle_cond_t* cond);
void pestle_cond_broadcast(pestle_cond_t* cond);

typedef void (*pestle_thread_fn_t)(void* argument);

typedef struct pestle_thread_t {
  uint64_t storage[4];
} pestle_thread_t;

// Starts |fn|(|argument|) with every signal blocked but those of a fault, so
// that the application's handlers do not run on our threads. |name| (may be
// NULL) shows in debuggers, cut to 15 bytes. |out_thread| must stay in place
// until the join. RESOURCE_EXHAUSTED when the system refuses another thread.
PESTLE_NODISCARD pestle_status_t
pestle_thread_start(pestle_thread_fn_t fn, void* argument, const char* name,
                    pestle_thread_t* out_thread);
void pestle_thread_join(pestle_thread_t* thread);
// Instead of a join: nobody waits for its end. |thread| need not stay in place.
void pestle_thread_detach(pestle_thread_t* thread);
// Has exit() call |fn|. That of the main thread, for which this was called on it, calls |fn|
// before any destructor of a library, also of one that is opened later; otherwise before those
// of libraries that are open now. |fn| may be called more than once.
void pestle_thread_at_exit(void (*fn)(void));
void pestle_thread_yield(void);
void pestle_thread_sleep_ns(int64_t nanoseconds);
// A hint for spin loops.
void pestle_cpu_relax(void);

// A reference count.
typedef struct pestle_refcount_t {
  atomic_uint count;
} pestle_refcount_t;

static inline void pestle_refcount_init(pestle_refcount_t* out_refcount) {
  atomic_init(&out_refcount->count, 1u);
}
static inline void pestle_refcount_retain(pestle_refcount_t* refcount) {
  atomic_fetch_add_explicit(&refcount->count, 1u, memory_order_relaxed);
}
// True for the last release: the caller then destroys the object.
static inline bool pestle_refcount_release(pestle_refcount_t* refcount) {
  return atomic_fetch_sub_explicit(&refcount->count, 1u,
                                   memory_order_acq_rel) == 1;
}

// Logical processors that this process may use: its affinity mask, cut by a
// container's CPU quota. At least 1.
int pestle_cpu_count(void);
// Physical cores among them. At least 1.
int pestle_core_count(void);

// The processor that the calling thread runs on now; -1 where the system does
// not say.
int pestle_thread_cpu(void);
enum { PESTLE_CPU_WORDS = 16 };
// Moves the calling thread to a processor that it may use and whose bit in
// |taken| is not set, at once; where it may run later stays as it was. Without
// such a processor nothing happens.
void pestle_thread_step_aside(const uint64_t taken[PESTLE_CPU_WORDS]);

// Changes when a child is made by fork(): whoever owns threads compares it to
// find out that they are gone.
int64_t pestle_process_id(void);
// Distinct per live thread of the process.
int64_t pestle_thread_id(void);

// Monotonic, from an unspecified start.
int64_t pestle_clock_ns(void);
// Since 1970, for file names and logs.
int64_t pestle_wall_clock_ns(void);

#endif  // PESTLE_BASE_THREAD_H_
