// SPDX-License-Identifier: Apache-2.0
// The context: allocator, log sink, cache and plugin settings that everything
// else reaches. There is no other shared state.
//
// Contents:
// - Messages
// - Options
// - Contexts
// - Traces
// - Deadlines and progress
#ifndef PESTLE_CONTEXT_H_
#define PESTLE_CONTEXT_H_

#include <stdbool.h>
#include <stdint.h>

#include "pestle/allocator.h"
#include "pestle/status.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

typedef struct pestle_context_s pestle_context_t;

// --- Messages ---

typedef enum pestle_log_level_e {
  PESTLE_LOG_ERROR = 0,
  PESTLE_LOG_WARN = 1,
  PESTLE_LOG_INFO = 2,
  PESTLE_LOG_DEBUG = 3,
} pestle_log_level_t;

// Receives one message without a newline. May be called from any thread, also
// with locks held: it must not call Pestle.
typedef void (*pestle_log_fn_t)(void* user, pestle_log_level_t level,
                                const char* message);

// --- Options ---

// Takes the place of a backend's own device memory: buffers, arenas and copies
// of views come from it. Frozen. Callable from any thread.
typedef struct pestle_device_allocator_t {
  void* self;
  // At least |size| bytes of |device|'s memory at a multiple of |alignment| (a
  // power of two); NULL: out of memory.
  void* (*allocate)(void* self, pestle_dl_device_t device, size_t size,
                    size_t alignment);
  void (*deallocate)(void* self, pestle_dl_device_t device, void* data,
                     size_t size, size_t alignment);
} pestle_device_allocator_t;

// Zero-initialise, then set |struct_size| to sizeof(pestle_context_options_t).
// Every zero field means its default. Strings are copied.
typedef struct pestle_context_options_t {
  size_t struct_size;
  pestle_allocator_t allocator;  // default: pestle_allocator_system()
  pestle_log_fn_t log;           // default: messages are dropped
  void* log_user;
  pestle_log_level_t log_level;  // messages above it are not formatted
  // Also read PESTLE_CACHE_DIR, PESTLE_CACHE_SIZE (bytes, or 512M, 2G),
  // PESTLE_BACKEND_PATH, PESTLE_THREADS, PESTLE_LOG, PESTLE_STRICT,
  // PESTLE_NO_CACHE, PESTLE_TRACE for what is left at its default here. A value
  // that cannot be used is an error of pestle_context_create().
  // Ignored when the process runs with raised privileges.
  bool use_environment;
  bool strict;                  // a fallback to `ref` is an error
  bool no_cache;                // no plan cache, neither memory nor disk
  int32_t threads;              // size of the pool; default: the cores
  const char* cache_dir;        // "" : no disk; NULL: $XDG_CACHE_HOME/pestle
  const char* backend_path;     // ':'-separated folders; replaces the search
  size_t memory_cache_entries;  // default 64 plans
  // The caller's own pool: runs task(arg, index) for every index < count, on
  // any threads, and returns when all are done. NULL: Pestle's pool.
  void (*parallel_for)(void* user, int64_t count,
                       void (*task)(void* arg, int64_t index), void* arg);
  void* parallel_user;
  // Default: |allocator| on cpu devices, the backend's own elsewhere.
  pestle_device_allocator_t device_allocator;
  // What the cache on disk may hold, in bytes: when a plan is added, those that
  // were not used for longest go. Default: 8 GiB.
  uint64_t cache_bytes;
  // A file for a trace of what the context did, when, on which thread: imports,
  // passes, kernels compiled, looks into the cache, runs and their kernels, as
  // JSON that ui.perfetto.dev and chrome://tracing show. It is written when the
  // context goes, over what was there: two contexts want two files. At most
  // 262144 spans are kept, the first ones; the file says how many are not. A
  // file that cannot be written is a warning in the log. NULL or "": none.
  const char* trace_file;
  // Nothing is loaded from the search path but by calls that say so
  // (pestle_context_load_all(), ..._best(), ..._backend()).
  bool manual_backends;
  // Tries each plugin file in a child process first, so that one that crashes,
  // hangs or exits in a constructor or while it starts is refused with the
  // reason. The child is a fork of this process: ask for it before other
  // threads run. A child gets |probe_timeout_ms| (default 5000); on Linux, time
  // in which it waits for a CPU does not count.
  bool probe_backends;
  int32_t probe_timeout_ms;
  // With |probe_backends|: a file that came back is remembered in the folder of
  // the plan cache (never one that did not) and opened without a child until it,
  // its path or this library changes. What changes around it, a variable or a
  // driver, is not seen; a child that does not come back is what forgets it.
  // Without a folder, or with |no_cache|, there is always a child.
  bool remember_probes;
} pestle_context_options_t;

// --- Contexts ---

// Creates a context. |options| may be NULL: all defaults. INVALID_ARGUMENT when
// an option or a variable of the environment cannot be used, naming it and what
// was expected. Backends are not loaded yet.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_create(
    const pestle_context_options_t* options, pestle_context_t** out_context);
// Adds a reference.
PESTLE_API void pestle_context_retain(pestle_context_t* context);
// Drops a reference; the last one frees. What was made from the context holds
// references of its own, constants excepted.
PESTLE_API void pestle_context_release(pestle_context_t* context);

// The context's allocator; the system's for NULL.
PESTLE_API pestle_allocator_t
pestle_context_allocator(const pestle_context_t* context);
// Whether a fallback to `ref` is an error, environment included.
PESTLE_API bool pestle_context_is_strict(const pestle_context_t* context);
// How many threads the pool has at most, the caller's included.
PESTLE_API int32_t pestle_context_threads(const pestle_context_t* context);
// The folder of the plan cache, which need not exist yet. Borrowed; NULL when
// there is no cache on disk.
PESTLE_API const char* pestle_context_cache_dir(
    const pestle_context_t* context);
// Frees |size| bytes at |data| (may be NULL) that a function returned from
// |context|'s allocator; its comment says which size.
PESTLE_API void pestle_context_free(pestle_context_t* context, void* data,
                                    size_t size);
// Sends a formatted message, cut at 2047 bytes, to the sink when |level| is
// enabled.
PESTLE_API PESTLE_PRINTF(3,
                         4) void pestle_context_log(pestle_context_t* context,
                                                    pestle_log_level_t level,
                                                    const char* format, ...);

// --- Traces ---

// Begins a span of the caller's own in the trace, between Pestle's: the time, or
// 0 when there is no trace. Any thread may call; one thread's spans must nest.
//
//   int64_t begin = pestle_context_trace_begin(context);
//   ...
//   pestle_context_trace_end(context, begin, "app", "tokenise", NULL);
PESTLE_API int64_t pestle_context_trace_begin(const pestle_context_t* context);
// Records the span of this thread from |begin_ns| until now; nothing when that
// is 0. |detail| (may be NULL) shows beside it. Texts are copied.
PESTLE_API void pestle_context_trace_end(pestle_context_t* context,
                                         int64_t begin_ns, const char* category,
                                         const char* name, const char* detail);

// --- Deadlines and progress ---

// Long work looks at this between passes, kernels and steps.
// Zero-initialise and set |struct_size|.
typedef struct pestle_control_t {
  size_t struct_size;
  // Called with a stage ("compile") and how much of it is done. May be NULL.
  void (*progress)(void* user, const char* stage, int64_t done, int64_t total);
  void* progress_user;
  const volatile int32_t* cancel;  // non-zero: stop with CANCELLED. May be NULL
  int64_t
      deadline_ns;  // of CLOCK_MONOTONIC: stop with DEADLINE_EXCEEDED; 0 none
} pestle_control_t;

PESTLE_EXTERN_C_END

#endif  // PESTLE_CONTEXT_H_
