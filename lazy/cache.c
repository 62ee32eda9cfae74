// SPDX-License-Identifier: Apache-2.0
// Executables by key, of which a context keeps those that were used last. The plan
// cache below knows modules by content, also those of other processes; this one
// knows keys, so that a hit needs no module.
#include "lazy/lazy.h"

#include "pestle/compile.h"
#include "runtime/owned.h"

static void unlink_entry(pestle_lazy_t* lazy, pestle_lazy_entry_t* entry) {
  *(entry->newer ? &entry->newer->older : &lazy->newest) = entry->older;
  *(entry->older ? &entry->older->newer : &lazy->oldest) = entry->newer;
}

static void link_newest(pestle_lazy_t* lazy, pestle_lazy_entry_t* entry) {
  entry->newer = NULL;
  entry->older = lazy->newest;
  *(lazy->newest ? &lazy->newest->newer : &lazy->oldest) = entry;
  lazy->newest = entry;
}

static void free_entry(pestle_lazy_t* lazy, pestle_lazy_entry_t* entry) {
  pestle_executable_release(entry->executable);
  pestle_dealloc(lazy->allocator, entry->key, entry->key_size);
  pestle_dealloc(lazy->allocator, entry, sizeof(*entry));
}

static size_t key_size(const pestle_walk_t* walk) {
  return walk->key.size * sizeof(uint32_t);
}

static pestle_lazy_entry_t* find(const pestle_walk_t* walk) {
  pestle_map_value_t* value =
      pestle_map_find(&walk->lazy->entries, walk->key.data, key_size(walk));
  return value ? value->ptr : NULL;
}

pestle_executable_t* pestle_cache_find(pestle_walk_t* walk,
                                       pestle_lazy_cost_t* out_cost) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_lazy_entry_t* entry = find(walk);
  if (!entry) return NULL;
  *out_cost = entry->cost;
  if (entry != lazy->newest) {
    unlink_entry(lazy, entry);
    link_newest(lazy, entry);
  }
  pestle_executable_retain(entry->executable);
  ++lazy->hits;
  return entry->executable;
}

void pestle_cache_note(pestle_walk_t* walk, uint64_t ns) {
  pestle_lazy_entry_t* entry = find(walk);
  if (!entry || entry->cost.runs >= PESTLE_LAZY_TIMED) return;
  if (!entry->cost.runs++ || ns < entry->cost.ns) entry->cost.ns = ns;
}

static pestle_status_t compile(pestle_walk_t* walk,
                               pestle_executable_t** out_executable) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  pestle_alias_t* aliases = NULL;
  size_t count = walk->donated.size;
  PESTLE_TRY(
      pestle_build_module(lazy, walk->key.data, walk->key.size, &module));
  pestle_status_t status = NULL;
  if (count) {
    aliases = pestle_alloc_array(lazy->allocator, count, sizeof(*aliases));
    if (!aliases) status = PESTLE_OOM();
  }
  for (size_t i = 0; aliases && i < count; ++i)
    aliases[i] = (pestle_alias_t){walk->donated.data[i], PESTLE_ALIAS_ANY};
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .aliases = aliases,
                                      .alias_count = count,
                                      .control = pestle_lazy_control(lazy)};
  if (!status) {
    status =
        pestle_compile(lazy->context, module, walk->device, &options, &plan);
  }
  if (!status) {
    status = pestle_executable_create(lazy->context, plan, walk->device,
                                      out_executable);
  }
  pestle_dealloc(lazy->allocator, aliases, count * sizeof(*aliases));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return status;
}

static pestle_lazy_entry_t* make_entry(const pestle_walk_t* walk) {
  pestle_allocator_t allocator = walk->lazy->allocator;
  pestle_lazy_entry_t* entry = pestle_alloc_zero(allocator, sizeof(*entry));
  if (!entry) return NULL;
  entry->key_size = key_size(walk);
  entry->key = pestle_alloc(allocator, entry->key_size);
  if (!entry->key) {
    pestle_dealloc(allocator, entry, sizeof(*entry));
    return NULL;
  }
  memcpy(entry->key, walk->key.data, entry->key_size);
  return entry;
}

// Takes |entry| over; a thread that compiled the same key in the meantime was
// first. What is to be freed outside of the lock goes to |*out_old|.
static void insert(pestle_lazy_t* lazy, pestle_lazy_entry_t* entry,
                   pestle_lazy_entry_t** out_old) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&lazy->entries, entry->key, entry->key_size, &added);
  *out_old = NULL;
  if (!value || !added) {
    *out_old = entry;
    return;
  }
  value->ptr = entry;
  link_newest(lazy, entry);
  if (++lazy->entry_count <= PESTLE_LAZY_ENTRIES) return;
  pestle_lazy_entry_t* old = lazy->oldest;
  unlink_entry(lazy, old);
  pestle_map_remove(&lazy->entries, old->key, old->key_size);
  --lazy->entry_count;
  *out_old = old;
}

pestle_status_t pestle_cache_make(pestle_walk_t* walk,
                                  pestle_executable_t** out_executable) {
  pestle_lazy_t* lazy = walk->lazy;
  PESTLE_TRY(compile(walk, out_executable));
  pestle_executable_own_by_context(*out_executable);
  pestle_lazy_entry_t *entry = make_entry(walk), *old = NULL;
  if (!entry) return NULL;  // this once without
  pestle_executable_retain(*out_executable);
  entry->executable = *out_executable;
  pestle_lazy_lock(lazy);
  insert(lazy, entry, &old);
  pestle_mutex_unlock(&lazy->mutex);
  if (old) free_entry(lazy, old);
  return NULL;
}

void pestle_cache_deinit(pestle_lazy_t* lazy) {
  while (lazy->newest) {
    pestle_lazy_entry_t* entry = lazy->newest;
    lazy->newest = entry->older;
    free_entry(lazy, entry);
  }
  pestle_map_deinit(&lazy->entries);
}
