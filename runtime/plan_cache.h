// SPDX-License-Identifier: Apache-2.0
// The plan cache of a context: a bounded LRU in memory before a folder on disk.
#ifndef PESTLE_RUNTIME_PLAN_CACHE_H_
#define PESTLE_RUNTIME_PLAN_CACHE_H_

#include <stdatomic.h>

#include "base/map.h"
#include "base/str.h"
#include "base/thread.h"
#include "pestle/context.h"

// What the folder may hold where nobody says.
#define PESTLE_CACHE_BYTES ((uint64_t)8 << 30)

struct pestle_plan_s;

typedef struct pestle_cache_entry_t pestle_cache_entry_t;

typedef struct pestle_plan_cache_t {
  pestle_context_t* context;
  pestle_mutex_t mutex;  // of all that follows, but the counters
  pestle_cond_t made;    // a plan that was being made is there, or failed
  pestle_map_t map;      // key -> pestle_cache_entry_t*
  pestle_cache_entry_t* newest;  // of the finished ones
  pestle_cache_entry_t* oldest;
  size_t finished;
  atomic_bool warned;  // about a folder that cannot be used
  atomic_uint_fast64_t memory_hits, disk_hits, misses, evictions, healed;
} pestle_plan_cache_t;

void pestle_plan_cache_init(pestle_context_t* context,
                            pestle_plan_cache_t* out_cache);
void pestle_plan_cache_deinit(pestle_plan_cache_t* cache);
void pestle_plan_cache_after_fork(pestle_plan_cache_t* cache);

// --- plan_cache_disk.c ---

// Maps the entry of |key|. A miss sets |*out_plan| to NULL and |*out_reason| to
// a static sentence, and |*out_damaged| when there was an entry that had to be
// thrown away. Only running out of memory is an error.
PESTLE_NODISCARD pestle_status_t
pestle_disk_cache_load(pestle_context_t* context, pestle_str_t key,
                       struct pestle_plan_s** out_plan, const char** out_reason,
                       bool* out_damaged);
// Writes the entry of |key|; what goes wrong is logged, once as a warning. A
// plan that alone passes the folder's cap would drive all others out: then it
// is not written, and false comes back.
bool pestle_disk_cache_store(pestle_context_t* context, pestle_str_t key,
                             const struct pestle_plan_s* plan);

// Makes the folder if it is missing; says why it is not to be trusted.
PESTLE_NODISCARD pestle_status_t
pestle_disk_cache_prepare(pestle_context_t* context);
// Logs that something is not kept on disk, once as a warning, and releases
// |status|, which may be NULL.
void pestle_disk_cache_report(pestle_context_t* context,
                              pestle_status_t status);

// --- plan_cache_admin.c ---

// Removes the least recently used entries until at most |keep_bytes| remain,
// what crashed writers left, and with |verify| damaged entries.
PESTLE_NODISCARD pestle_status_t
pestle_disk_cache_cut(pestle_context_t* context, uint64_t keep_bytes,
                      bool verify, uint64_t* out_removed);

// Removes those constants of |plan| that no plan in the folder refers to.
PESTLE_NODISCARD pestle_status_t pestle_disk_cache_drop_constants(
    pestle_context_t* context, const struct pestle_plan_s* plan);

#endif  // PESTLE_RUNTIME_PLAN_CACHE_H_
