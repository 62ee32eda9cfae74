// SPDX-License-Identifier: Apache-2.0
// The inside of a context, for the files of this folder. What others ask of one
// is its core (base/context.h).
//
// runtime/ has devices, buffers, streams, plugins, the plan cache and the
// executor. runtime/ knows nothing of ops, graphs and the compiler: the cache
// calls that as a function that it is handed, and a run-only build goes
// without.
#ifndef PESTLE_RUNTIME_CONTEXT_H_
#define PESTLE_RUNTIME_CONTEXT_H_

#include "base/context.h"
#include "pestle/plugin.h"
#include "runtime/constant.h"
#include "runtime/device_constant.h"
#include "runtime/notifier.h"
#include "runtime/plan_cache.h"
#include "runtime/platform.h"
#include "runtime/poison.h"
#include "runtime/pool.h"
#include "runtime/registry.h"

// One function for custom calls.
typedef struct pestle_custom_entry_t pestle_custom_entry_t;
// One op of the caller's own.
typedef struct pestle_op_entry_t pestle_op_entry_t;

struct pestle_context_s {
  pestle_context_core_t core;
  pestle_device_allocator_t device_allocator;
  bool strict;
  bool no_cache;
  bool manual_backends, probe_backends, remember_probes;
  int32_t probe_timeout_ms;
  char* cache_dir;                // NULL: no cache on disk
  char* backend_path;             // NULL: the built-in search
  bool environment_path;          // it is not an option of the caller's
  atomic_bool has_said_fallback;  // that "cpu" is the interpreter
  char* default_device;           // what NULL names; never NULL itself
  size_t memory_cache_entries;
  uint64_t cache_bytes;  // on disk
  uint64_t build_id;
  pestle_fork_mark_t fork_mark;
  atomic_uint fork_count;  // how many forks lie between us and our maker
  pestle_host_t host;
  pestle_pool_t pool;
  pestle_notifier_t notifier;
  pestle_poison_t poison;
  pestle_registry_t registry;
  pestle_constants_t constants;
  pestle_device_constants_t device_constants;
  atomic_uint_fast64_t stream_count;  // that were made: their numbers
  pestle_plan_cache_t plan_cache;
  _Atomic(pestle_custom_entry_t*) custom_calls;
  _Atomic(pestle_op_entry_t*) custom_ops;
};

// Resets pools and locks when this is the first call in a forked child.
void pestle_context_after_fork(pestle_context_t* context);

// To be called by every public function that takes a lock of the context.
static inline void pestle_context_enter(pestle_context_t* context) {
  if (!pestle_fork_mark_is_ready(&context->fork_mark)) {
    pestle_context_after_fork(context);
  }
}

// Fills the table of services for plugins. |out_host|->self is |context|.
void pestle_host_init(pestle_context_t* context, pestle_host_t* out_host);

// What is left at its default in |options|, from PESTLE_* variables.
PESTLE_NODISCARD pestle_status_t pestle_context_read_environment(
    pestle_context_options_t* options, const char** out_default_device);
// The folder of the cache that the user has when none was named, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_context_default_cache_dir(
    pestle_allocator_t allocator, char** out_folder);

// --- custom_call.c ---

void pestle_custom_calls_deinit(pestle_context_t* context);

// --- custom_op.c ---

// The core's find_op().
const struct pestle_custom_op_t* pestle_custom_ops_find(
    const pestle_context_t* context, const char* name);
void pestle_custom_ops_deinit(pestle_context_t* context);

#endif  // PESTLE_RUNTIME_CONTEXT_H_
