// SPDX-License-Identifier: Apache-2.0
// The core of a context: what any folder asks of one through pestle/context.h,
// which is memory, log, trace, parallel work and a reference count. It knows no
// device, plan or plugin; the runtime's context begins with it
// (runtime/context.h), and nobody else looks behind it.
#ifndef PESTLE_BASE_CONTEXT_H_
#define PESTLE_BASE_CONTEXT_H_

#include "base/thread.h"
#include "base/trace.h"
#include "pestle/context.h"

// What a folder above the runtime keeps of a context (lazy/): its first member.
typedef struct pestle_context_guest_t {
  // The context's last reference went; nothing of it is gone yet.
  void (*destroy)(struct pestle_context_guest_t* self);
  // This is a child of fork(): threads of the parent, which are not here, may have
  // held any lock. Called once, before anything else of the guest's. May be NULL.
  void (*after_fork)(struct pestle_context_guest_t* self);
} pestle_context_guest_t;

// The first member of a context.
typedef struct pestle_context_core_t {
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  pestle_log_fn_t log;  // NULL: nobody listens
  void* log_user;
  pestle_log_level_t log_level;
  int32_t threads;
  pestle_trace_t* trace;         // NULL: off, also in a child of fork()
  pestle_trace_t* trace_memory;  // what texts in executables may point into
  char* trace_file;
  // Calls task(arg, i) for i below |count|, on any threads, and returns when all
  // are done. NULL: one after another.
  void (*parallel_for)(pestle_context_t* context, int64_t count,
                       void (*task)(void* arg, int64_t index), void* arg);
  // To be called before a lock of the context's or its guest's is taken: in a child
  // of fork() it makes them free. NULL: nothing is to be done.
  void (*enter)(pestle_context_t* context);
  // The op of the caller's own that is called |name|, or NULL. NULL: there are none.
  const struct pestle_custom_op_t* (*find_op)(const pestle_context_t* context,
                                              const char* name);
  // The last reference went. NULL: the core is its owner's.
  void (*destroy)(pestle_context_t* context);
  _Atomic(pestle_context_guest_t*) guest;  // NULL: none yet
} pestle_context_core_t;

// A core that logs nothing, runs one thread, and is its owner's.
void pestle_context_core_init(pestle_allocator_t allocator,
                              pestle_context_core_t* out_core);

static inline pestle_context_t* pestle_context_of(pestle_context_core_t* core) {
  return (pestle_context_t*)core;
}
static inline const pestle_context_core_t* pestle_context_core(
    const pestle_context_t* context) {
  return (const pestle_context_core_t*)context;
}

// The guest of |context|, or NULL.
static inline pestle_context_guest_t* pestle_context_guest(
    const pestle_context_t* context) {
  return atomic_load_explicit(&pestle_context_core(context)->guest,
                              memory_order_acquire);
}
// Makes |guest| the context's, unless another thread was first: the one that it
// then has.
pestle_context_guest_t* pestle_context_set_guest(pestle_context_t* context,
                                                 pestle_context_guest_t* guest);
// Ends the guest, if there is one.
void pestle_context_end_guest(pestle_context_t* context);

// Logs "what: <status>" and releases |status|, which may be NULL.
void pestle_context_log_status(pestle_context_t* context,
                               pestle_log_level_t level, const char* what,
                               pestle_status_t status);

// --- context_trace.c ---

// Records from now on what |path| (may be NULL: nothing) gets when the trace is
// closed. A file that cannot be written is a warning.
PESTLE_NODISCARD pestle_status_t
pestle_context_open_trace(pestle_context_t* context, const char* path);
// Writes the file and ends the recording. Tolerates that there is none.
void pestle_context_close_trace(pestle_context_t* context);

#endif  // PESTLE_BASE_CONTEXT_H_
