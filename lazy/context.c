// SPDX-License-Identifier: Apache-2.0
// What a context keeps of its arrays: made with the first, freed with the context.
#include "base/require.h"
#include "lazy/lazy.h"

static void destroy(pestle_context_guest_t* guest) {
  pestle_lazy_t* lazy = (pestle_lazy_t*)guest;
  pestle_cache_deinit(lazy);
  while (lazy->spare) {
    pestle_walk_t* walk = lazy->spare;
    lazy->spare = walk->next;
    pestle_walk_destroy(walk);
  }
  // Each body takes the reference to the context with it that was taken from it;
  // one more keeps the last of them from ending the context a second time.
  if (lazy->bodies.size) pestle_context_retain(lazy->context);
  for (size_t i = 0; i < lazy->bodies.size; ++i) {
    pestle_context_retain(lazy->context);
    pestle_module_release(lazy->bodies.data[i].module);
  }
  pestle_vec_deinit(&lazy->bodies);
  pestle_map_deinit(&lazy->body_ids);
  pestle_map_deinit(&lazy->fold_ids);
  pestle_sites_deinit(lazy);
  pestle_cond_deinit(&lazy->done);
  pestle_mutex_deinit(&lazy->mutex);
  pestle_dealloc(lazy->allocator, lazy, sizeof(*lazy));
}

// What the lock was held for when fork() came may be half done: the cache, the
// numbers of bodies by what they are and the walks in reserve are forgotten, and
// nodes that were being evaluated stay so.
static void after_fork(pestle_context_guest_t* guest) {
  pestle_lazy_t* lazy = (pestle_lazy_t*)guest;
  lazy->is_torn = !pestle_mutex_try_lock(&lazy->mutex);
  if (lazy->is_torn) {
    pestle_mutex_init(&lazy->mutex);
    pestle_map_init(lazy->allocator, &lazy->entries);
    pestle_map_init(lazy->allocator, &lazy->body_ids);
    pestle_map_init(lazy->allocator, &lazy->fold_ids);
    pestle_map_init(lazy->allocator, &lazy->sites);
    lazy->newest = lazy->oldest = NULL;
    lazy->entry_count = 0;
    lazy->spare = NULL;
  } else {
    pestle_mutex_unlock(&lazy->mutex);
  }
  pestle_cond_init(&lazy->done);
  lazy->waiting = 0;
  lazy->parent_walks = lazy->walks;
  atomic_fetch_add(&lazy->forks, 1);
}

static pestle_lazy_t* create(pestle_context_t* context) {
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_lazy_t* lazy = pestle_alloc_zero(allocator, sizeof(*lazy));
  if (!lazy) return NULL;
  lazy->guest.destroy = destroy;
  lazy->guest.after_fork = after_fork;
  lazy->context = context;
  lazy->allocator = allocator;
  pestle_mutex_init(&lazy->mutex);
  pestle_cond_init(&lazy->done);
  pestle_map_init(allocator, &lazy->entries);
  pestle_map_init(allocator, &lazy->body_ids);
  pestle_map_init(allocator, &lazy->fold_ids);
  pestle_map_init(allocator, &lazy->sites);
  pestle_vec_init(&lazy->bodies, allocator);
  return lazy;
}

pestle_status_t pestle_lazy_of(pestle_context_t* context,
                               pestle_lazy_t** out_lazy) {
  pestle_context_guest_t* there = pestle_context_guest(context);
  if (!there) {
    pestle_lazy_t* lazy = create(context);
    if (!lazy) return PESTLE_OOM();
    there = pestle_context_set_guest(context, &lazy->guest);
    if (there != &lazy->guest) destroy(&lazy->guest);
  }
  *out_lazy = (pestle_lazy_t*)there;
  return NULL;
}

void pestle_array_stats(pestle_context_t* context,
                        pestle_array_stats_t* out_stats) {
  if (!context || !out_stats || out_stats->struct_size < sizeof(size_t)) return;
  pestle_array_stats_t stats = {.struct_size = out_stats->struct_size};
  pestle_lazy_t* lazy = (pestle_lazy_t*)pestle_context_guest(context);
  if (lazy) {
    pestle_lazy_lock(lazy);
    stats.evaluations = lazy->evaluations;
    stats.hits = lazy->hits;
    stats.executables = lazy->entry_count;
    stats.donations = lazy->donations;
    pestle_mutex_unlock(&lazy->mutex);
    int64_t held = atomic_load(&lazy->held_bytes);
    stats.held_bytes = held > 0 ? (uint64_t)held : 0;
  }
  size_t size = stats.struct_size;
  memcpy(out_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
}

// --- Control of compilations ---

const pestle_control_t* pestle_lazy_control(pestle_lazy_t* lazy) {
  pestle_lazy_lock(lazy);
  pestle_array_control_fn_t control = lazy->control;
  void* user = lazy->control_user;
  pestle_mutex_unlock(&lazy->mutex);
  return control ? control(user) : NULL;
}

pestle_status_t pestle_array_set_control(pestle_context_t* context,
                                         pestle_array_control_fn_t control,
                                         void* user) {
  PESTLE_REQUIRE(context, "a context");
  pestle_lazy_t* lazy;
  PESTLE_TRY(pestle_lazy_of(context, &lazy));
  pestle_lazy_lock(lazy);
  lazy->control = control;
  lazy->control_user = user;
  pestle_mutex_unlock(&lazy->mutex);
  return NULL;
}
