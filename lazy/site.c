// SPDX-License-Identifier: Apache-2.0
// Where the program recorded arrays, which the errors of runs say that come later.
#include <string.h>

#include "base/require.h"
#include "lazy/lazy.h"

enum { MOST_SITES = 4096, MOST_NOTES = 4 };

void pestle_sites_deinit(pestle_lazy_t* lazy) {
  size_t cursor = 0;
  pestle_map_entry_t* entry;
  while ((entry = pestle_map_next(&lazy->sites, &cursor))) {
    pestle_dealloc(lazy->allocator, entry->value.ptr,
                   pestle_map_entry_key(entry).size);
  }
  pestle_map_deinit(&lazy->sites);
}

// |text| as the context keeps it; NULL without memory, or where it keeps no more. The
// lock is held.
static const char* intern(pestle_lazy_t* lazy, const char* text) {
  size_t size = strlen(text) + 1;
  pestle_map_value_t* known = pestle_map_find(&lazy->sites, text, size);
  if (known) return known->ptr;
  if (pestle_map_size(&lazy->sites) >= MOST_SITES) return NULL;
  char* copy = pestle_alloc(lazy->allocator, size);
  if (!copy) return NULL;
  memcpy(copy, text, size);
  known = pestle_map_put(&lazy->sites, text, size, NULL);
  if (!known) {
    pestle_dealloc(lazy->allocator, copy, size);
    return NULL;
  }
  known->ptr = copy;
  return copy;
}

pestle_status_t pestle_array_set_site(pestle_array_t* array, const char* site) {
  PESTLE_REQUIRE(array && site, "an array and where it was recorded");
  pestle_lazy_lock(array->lazy);
  const char* kept = intern(array->lazy, site);
  pestle_mutex_unlock(&array->lazy->mutex);
  atomic_store_explicit(&array->site, kept, memory_order_relaxed);
  return NULL;
}

static const char* site_of(const pestle_array_t* array) {
  return atomic_load_explicit(&array->site, memory_order_relaxed);
}

pestle_status_t pestle_site_note(const pestle_array_t* array,
                                 pestle_status_t status) {
  const char* site = status ? site_of(array) : NULL;
  return site ? pestle_status_annotate(status, "recorded at %s", site) : status;
}

// Whether the run that was to make a leaf's elements failed.
static bool has_failed(const pestle_array_t* leaf) {
  if (!leaf->buffer || !pestle_buffer_is_ready(leaf->buffer)) return false;
  pestle_status_t failure = pestle_buffer_wait(leaf->buffer);
  pestle_status_release(failure);
  return failure != NULL;
}

pestle_status_t pestle_walk_note_sites(const pestle_walk_t* walk,
                                       pestle_status_t status) {
  size_t notes = 0;
  for (size_t i = 0; i < walk->nodes.size && notes < MOST_NOTES; ++i) {
    if (!site_of(walk->nodes.data[i])) continue;
    status = pestle_site_note(walk->nodes.data[i], status);
    ++notes;
  }
  for (size_t i = 0; i < walk->leaves.size && notes < MOST_NOTES; ++i) {
    const pestle_array_t* leaf = walk->leaves.data[i];
    if (!site_of(leaf) || !has_failed(leaf)) continue;
    status = pestle_site_note(leaf, status);
    ++notes;
  }
  return status;
}

void pestle_walk_pass_sites(const pestle_walk_t* walk) {
  const char* site = NULL;
  for (size_t i = 0; i < walk->nodes.size && !site; ++i)
    site = site_of(walk->nodes.data[i]);
  for (size_t i = 0; i < walk->leaves.size && !site; ++i) {
    const pestle_array_t* leaf = walk->leaves.data[i];
    if (!leaf->buffer || pestle_buffer_is_ready(leaf->buffer)) continue;
    site = site_of(leaf);
  }
  for (size_t i = 0; site && i < walk->outputs.size; ++i) {
    pestle_array_t* output = walk->outputs.data[i];
    if (!site_of(output)) {
      atomic_store_explicit(&output->site, site, memory_order_relaxed);
    }
  }
}
