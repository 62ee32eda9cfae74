// SPDX-License-Identifier: Apache-2.0
// Plans by key: memory, then disk, then the caller's maker, which runs once a
// key however many threads ask. Failures are told to all who wait for them and
// not remembered.
#include "runtime/plan_cache.h"

#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/status_copy.h"
#include "pestle/runtime.h"
#include "runtime/context.h"
#include "runtime/plan.h"

struct pestle_cache_entry_t {
  pestle_cache_entry_t* newer;
  pestle_cache_entry_t* older;
  pestle_plan_t* plan;      // NULL while it is made, and after a failure
  pestle_status_t failure;  // of the maker
  bool making;
  bool orphan;  // no longer in the map: the last waiter frees it
  uint32_t waiters;
  pestle_str_t key;  // lies behind the struct
};

// --- The list of finished entries ---

static void unlink_entry(pestle_plan_cache_t* cache,
                         pestle_cache_entry_t* entry) {
  *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
  *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
  entry->newer = entry->older = NULL;
  --cache->finished;
}

static void link_newest(pestle_plan_cache_t* cache,
                        pestle_cache_entry_t* entry) {
  entry->older = cache->newest;
  entry->newer = NULL;
  *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
  cache->newest = entry;
  ++cache->finished;
}

static pestle_cache_entry_t* make_entry(pestle_plan_cache_t* cache,
                                        pestle_str_t key) {
  pestle_allocator_t allocator = cache->context->core.allocator;
  pestle_cache_entry_t* entry =
      pestle_alloc(allocator, sizeof(*entry) + key.size);
  if (!entry) return NULL;
  memset(entry, 0, sizeof(*entry));
  if (key.size) memcpy(entry + 1, key.data, key.size);
  entry->key = pestle_str_make((const char*)(entry + 1), key.size);
  return entry;
}

static void free_entry(pestle_plan_cache_t* cache,
                       pestle_cache_entry_t* entry) {
  pestle_plan_release_cached(entry->plan);
  pestle_status_release(entry->failure);
  pestle_dealloc(cache->context->core.allocator, entry,
                 sizeof(*entry) + entry->key.size);
}

// Takes an entry out of the map; those who wait for it free it.
static void forget(pestle_plan_cache_t* cache, pestle_cache_entry_t* entry) {
  (void)pestle_map_remove(&cache->map, entry->key.data, entry->key.size);
  entry->orphan = true;
  if (!entry->waiters) free_entry(cache, entry);
}

// Drops the oldest plans beyond the limit. Their last users keep them alive.
static void evict(pestle_plan_cache_t* cache) {
  while (cache->finished > cache->context->memory_cache_entries) {
    pestle_cache_entry_t* entry = cache->oldest;
    unlink_entry(cache, entry);
    forget(cache, entry);
    atomic_fetch_add_explicit(&cache->evictions, 1, memory_order_relaxed);
  }
}

// --- Making ---

static pestle_status_t call_maker(pestle_plan_make_fn_t make, void* user,
                                  pestle_plan_t** out_plan) {
  pestle_status_t status = make(user, out_plan);
  if (status) *out_plan = NULL;
  if (status || *out_plan) return status;
  return PESTLE_ERROR(INTERNAL,
                      "the plan's maker gave neither a plan nor a "
                      "failure");
}

// Replaces a fresh plan by its entry on disk, mapped: memory that processes
// share, and a proof that the entry is sound.
static void share_with_disk(pestle_context_t* context, pestle_str_t key,
                            pestle_plan_t** plan, const char** out_note) {
  if (!pestle_disk_cache_store(context, key, *plan)) {
    *out_note = "not in the cache, and larger than all that it may hold";
    return;
  }
  pestle_plan_t* mapped;
  const char* reason;
  bool damaged;
  pestle_status_t status =
      pestle_disk_cache_load(context, key, &mapped, &reason, &damaged);
  pestle_status_release(status);
  if (status || !mapped) return;
  pestle_plan_release(*plan);
  *plan = mapped;
}

static void trace_lookup(pestle_context_t* context, int64_t begin,
                         const pestle_plan_t* plan, const char* reason) {
  pestle_context_trace_end(context, begin, "cache",
                           plan ? "cache hit" : "cache miss", reason);
}

static pestle_status_t find_or_make(pestle_context_t* context, pestle_str_t key,
                                    pestle_plan_make_fn_t make, void* user,
                                    pestle_plan_t** out_plan,
                                    const char** out_reason) {
  pestle_plan_cache_t* cache = &context->plan_cache;
  bool damaged = false;
  *out_reason = "not in memory, and there is no cache on disk";
  if (context->cache_dir) {
    int64_t begin = pestle_context_trace_begin(context);
    PESTLE_TRY(
        pestle_disk_cache_load(context, key, out_plan, out_reason, &damaged));
    trace_lookup(context, begin, *out_plan, *out_reason);
    if (*out_plan) {
      atomic_fetch_add_explicit(&cache->disk_hits, 1, memory_order_relaxed);
      return NULL;
    }
  }
  atomic_fetch_add_explicit(&cache->misses, 1, memory_order_relaxed);
  PESTLE_TRY(call_maker(make, user, out_plan));
  if (context->cache_dir) {
    int64_t begin = pestle_context_trace_begin(context);
    const char* note = NULL;
    share_with_disk(context, key, out_plan, &note);
    if (note) *out_reason = note;
    pestle_context_trace_end(context, begin, "cache", "cache store", note);
  }
  if (damaged) {
    atomic_fetch_add_explicit(&cache->healed, 1, memory_order_relaxed);
  }
  return NULL;
}

// --- Asking ---

// Waits, with the lock held, until |entry| is made or failed.
static pestle_status_t wait_for(pestle_plan_cache_t* cache,
                                pestle_cache_entry_t* entry,
                                pestle_plan_t** out_plan) {
  pestle_status_t status = NULL;
  ++entry->waiters;
  while (entry->making)
    pestle_cond_wait(&cache->made, &cache->mutex);
  --entry->waiters;
  if (entry->plan) {
    *out_plan = entry->plan;
    pestle_plan_retain(*out_plan);
    atomic_fetch_add_explicit(&cache->memory_hits, 1, memory_order_relaxed);
  } else {
    status =
        pestle_status_copy(entry->failure, pestle_status_code(entry->failure));
  }
  if (entry->orphan && !entry->waiters) free_entry(cache, entry);
  return status;
}

// Makes the plan of an entry that this thread added, without the lock, and
// tells those who wait.
static pestle_status_t make_for(pestle_plan_cache_t* cache,
                                pestle_cache_entry_t* entry,
                                pestle_plan_make_fn_t make, void* user,
                                pestle_plan_t** out_plan,
                                const char** out_reason) {
  pestle_mutex_unlock(&cache->mutex);
  pestle_status_t status = find_or_make(cache->context, entry->key, make, user,
                                        out_plan, out_reason);
  pestle_mutex_lock(&cache->mutex);
  entry->making = false;
  pestle_cond_broadcast(&cache->made);
  if (status) {
    if (entry->waiters) {
      entry->failure = pestle_status_copy(status, pestle_status_code(status));
    }
    forget(cache, entry);
    return status;
  }
  entry->plan = *out_plan;
  pestle_plan_retain_cached(entry->plan);
  link_newest(cache, entry);
  evict(cache);
  return NULL;
}

static pestle_status_t get_locked(pestle_plan_cache_t* cache, pestle_str_t key,
                                  pestle_plan_make_fn_t make, void* user,
                                  pestle_plan_t** out_plan,
                                  const char** out_reason) {
  pestle_map_value_t* found = pestle_map_find(&cache->map, key.data, key.size);
  if (found) {
    pestle_cache_entry_t* entry = found->ptr;
    int64_t begin = pestle_context_trace_begin(cache->context);
    *out_reason = "hit in memory";
    if (entry->making) {
      pestle_status_t status = wait_for(cache, entry, out_plan);
      trace_lookup(cache->context, begin, *out_plan,
                   "another thread was making the plan");
      return status;
    }
    trace_lookup(cache->context, begin, entry->plan, *out_reason);
    if (PESTLE_FAULT(trust_race)) {
      pestle_mutex_unlock(&cache->mutex);
      pestle_thread_sleep_ns(1000000);  // others come meanwhile
    }
    unlink_entry(cache, entry);
    link_newest(cache, entry);
    if (PESTLE_FAULT(trust_race)) pestle_mutex_lock(&cache->mutex);
    *out_plan = entry->plan;
    pestle_plan_retain(*out_plan);
    atomic_fetch_add_explicit(&cache->memory_hits, 1, memory_order_relaxed);
    return NULL;
  }
  pestle_cache_entry_t* entry = make_entry(cache, key);
  if (!entry) return PESTLE_OOM();
  pestle_map_value_t* value =
      pestle_map_put(&cache->map, key.data, key.size, NULL);
  if (!value) {
    free_entry(cache, entry);
    return PESTLE_OOM();
  }
  value->ptr = entry;
  entry->making = true;
  return make_for(cache, entry, make, user, out_plan, out_reason);
}

pestle_status_t pestle_plan_cache_get(pestle_context_t* context,
                                      const void* key, size_t key_size,
                                      pestle_plan_make_fn_t make, void* user,
                                      pestle_plan_t** out_plan,
                                      const char** out_reason) {
  if (out_plan) *out_plan = NULL;
  PESTLE_REQUIRE(
      context && (key || !key_size) && make && out_plan,
      "a context, a key, a function that makes the plan and a place for it");
  const char* reason = "the cache is switched off";
  pestle_status_t status;
  if (context->no_cache) {
    status = call_maker(make, user, out_plan);
  } else {
    pestle_context_enter(context);
    pestle_plan_cache_t* cache = &context->plan_cache;
    pestle_mutex_lock(&cache->mutex);
    status = get_locked(cache, pestle_str_make(key, key_size), make, user,
                        out_plan, &reason);
    pestle_mutex_unlock(&cache->mutex);
  }
  if (out_reason) *out_reason = reason;
  return status;
}

// Whether the plan is in memory, or being made, which leaves |*out_plan| NULL.
static bool find_in_memory(pestle_plan_cache_t* cache, pestle_str_t key,
                           pestle_plan_t** out_plan) {
  pestle_mutex_lock(&cache->mutex);
  pestle_map_value_t* found = pestle_map_find(&cache->map, key.data, key.size);
  pestle_cache_entry_t* entry = found ? found->ptr : NULL;
  if (entry && !entry->making) {
    *out_plan = entry->plan;
    pestle_plan_retain(*out_plan);
    atomic_fetch_add_explicit(&cache->memory_hits, 1, memory_order_relaxed);
  }
  pestle_mutex_unlock(&cache->mutex);
  return entry != NULL;
}

pestle_status_t pestle_plan_cache_find(pestle_context_t* context,
                                       const void* key, size_t key_size,
                                       pestle_plan_t** out_plan) {
  if (out_plan) *out_plan = NULL;
  PESTLE_REQUIRE(context && (key || !key_size) && out_plan,
                 "a context, a key and a place for the plan");
  if (context->no_cache) return NULL;
  pestle_context_enter(context);
  pestle_plan_cache_t* cache = &context->plan_cache;
  pestle_str_t wanted = pestle_str_make(key, key_size);
  if (find_in_memory(cache, wanted, out_plan) || !context->cache_dir)
    return NULL;
  const char* reason;
  bool damaged;
  PESTLE_TRY(
      pestle_disk_cache_load(context, wanted, out_plan, &reason, &damaged));
  if (*out_plan)
    atomic_fetch_add_explicit(&cache->disk_hits, 1, memory_order_relaxed);
  return NULL;
}

// --- Life ---

static void init_tables(pestle_plan_cache_t* cache) {
  pestle_mutex_init(&cache->mutex);
  pestle_cond_init(&cache->made);
  pestle_map_init(cache->context->core.allocator, &cache->map);
  cache->newest = cache->oldest = NULL;
  cache->finished = 0;
}

void pestle_plan_cache_init(pestle_context_t* context,
                            pestle_plan_cache_t* out_cache) {
  out_cache->context = context;
  init_tables(out_cache);
}

static void drop_finished(pestle_plan_cache_t* cache) {
  while (cache->oldest) {
    pestle_cache_entry_t* entry = cache->oldest;
    unlink_entry(cache, entry);
    free_entry(cache, entry);
  }
}

void pestle_plan_cache_deinit(pestle_plan_cache_t* cache) {
  if (!cache->context) return;
  drop_finished(cache);
  pestle_map_deinit(&cache->map);
  pestle_cond_deinit(&cache->made);
  pestle_mutex_deinit(&cache->mutex);
  cache->context = NULL;
}

// Forgets entries that threads of the parent were making: nobody goes on.
static void drop_unfinished(pestle_plan_cache_t* cache) {
  size_t cursor = 0;
  pestle_map_entry_t* slot;
  while ((slot = pestle_map_next(&cache->map, &cursor))) {
    pestle_cache_entry_t* entry = slot->value.ptr;
    if (!entry->making) continue;
    (void)pestle_map_remove(&cache->map, entry->key.data, entry->key.size);
    free_entry(cache, entry);
  }
}

void pestle_plan_cache_after_fork(pestle_plan_cache_t* cache) {
  if (pestle_mutex_try_lock(&cache->mutex)) {
    drop_unfinished(cache);
    pestle_mutex_unlock(&cache->mutex);
    // It may count waiters that do not exist here.
    pestle_cond_init(&cache->made);
  } else {
    // A thread of the parent held it and may have left anything: start empty.
    init_tables(cache);
  }
}
