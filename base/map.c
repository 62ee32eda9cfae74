// SPDX-License-Identifier: Apache-2.0
// Entries lie in one array in the order of insertion; a table of slots with
// linear probing holds their indices. A removed entry keeps its place, and its
// slot keeps pointing at it, until the next rebuild.
#include "base/map.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"

#define REMOVED SIZE_MAX
#define FIRST_CAPACITY ((size_t)8)

static const void* key_data(const pestle_map_entry_t* entry) {
  return entry->key_size <= sizeof(entry->key.small) ? entry->key.small
                                                     : entry->key.large;
}

static void free_key(pestle_map_t* map, pestle_map_entry_t* entry) {
  if (entry->key_size != REMOVED &&
      entry->key_size > sizeof(entry->key.small)) {
    pestle_dealloc(map->allocator, entry->key.large, entry->key_size);
  }
}

void pestle_map_init(pestle_allocator_t allocator, pestle_map_t* out_map) {
  *out_map = (pestle_map_t){.allocator = allocator};
}

void pestle_map_clear(pestle_map_t* map) {
  for (size_t i = 0; i < map->entry_count; ++i) {
    free_key(map, &map->entries[i]);
  }
  if (map->slots) memset(map->slots, 0, map->slot_count * sizeof(uint32_t));
  map->entry_count = 0;
  map->size = 0;
}

void pestle_map_deinit(pestle_map_t* map) {
  pestle_map_clear(map);
  pestle_dealloc(map->allocator, map->entries,
                 map->entry_capacity * sizeof(*map->entries));
  pestle_dealloc(map->allocator, map->slots,
                 map->slot_count * sizeof(uint32_t));
  pestle_map_init(map->allocator, map);
}

// The slot that holds the key, or the free slot where it belongs.
static uint32_t* find_slot(const pestle_map_t* map, uint64_t hash,
                           const void* key, size_t key_size) {
  size_t mask = map->slot_count - 1;
  for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
    uint32_t* slot = &map->slots[at];
    if (!*slot) return slot;
    const pestle_map_entry_t* entry = &map->entries[*slot - 1];
    if (entry->hash == hash && entry->key_size == key_size &&
        (!key_size || !memcmp(key_data(entry), key, key_size))) {
      return slot;
    }
  }
}

pestle_map_value_t* pestle_map_find(const pestle_map_t* map, const void* key,
                                    size_t key_size) {
  if (!map->size) return NULL;
  uint32_t slot = *find_slot(map, pestle_hash64(key, key_size), key, key_size);
  return slot ? &map->entries[slot - 1].value : NULL;
}

// Drops the removed entries, keeping the order of the others.
static void compact(pestle_map_t* map) {
  size_t count = 0;
  for (size_t i = 0; i < map->entry_count; ++i) {
    if (map->entries[i].key_size == REMOVED) continue;
    map->entries[count++] = map->entries[i];
  }
  map->entry_count = count;
}

static void fill_slots(pestle_map_t* map) {
  size_t mask = map->slot_count - 1;
  memset(map->slots, 0, map->slot_count * sizeof(uint32_t));
  for (size_t i = 0; i < map->entry_count; ++i) {
    size_t at = (size_t)map->entries[i].hash & mask;
    while (map->slots[at])
      at = (at + 1) & mask;
    map->slots[at] = (uint32_t)(i + 1);
  }
}

// Makes room for one more entry. On failure the map is as before.
static bool make_room(pestle_map_t* map) {
  if (map->entry_count < map->entry_capacity) return true;
  if (map->size < map->entry_count - map->entry_count / 4) {
    // A quarter is dead: reuse that, at the price of a rebuild.
    compact(map);
    fill_slots(map);
    return true;
  }
  size_t capacity =
      map->entry_capacity ? map->entry_capacity * 2 : FIRST_CAPACITY;
  if (capacity > UINT32_MAX / 2) return false;
  // Twice as many slots as entries: at most half are taken.
  uint32_t* slots =
      pestle_alloc_array(map->allocator, capacity * 2, sizeof(uint32_t));
  if (!slots) return false;
  pestle_map_entry_t* entries = pestle_realloc(
      map->allocator, map->entries, map->entry_capacity * sizeof(*entries),
      capacity * sizeof(*entries));
  if (!entries) {
    pestle_dealloc(map->allocator, slots, capacity * 2 * sizeof(uint32_t));
    return false;
  }
  pestle_dealloc(map->allocator, map->slots,
                 map->slot_count * sizeof(uint32_t));
  map->entries = entries;
  map->entry_capacity = capacity;
  map->slots = slots;
  map->slot_count = capacity * 2;
  compact(map);
  fill_slots(map);
  return true;
}

pestle_map_value_t* pestle_map_put(pestle_map_t* map, const void* key,
                                   size_t key_size, bool* out_added) {
  if (out_added) *out_added = false;
  uint64_t hash = pestle_hash64(key, key_size);
  if (map->slot_count) {
    uint32_t slot = *find_slot(map, hash, key, key_size);
    if (slot) return &map->entries[slot - 1].value;
  }
  if (key_size == REMOVED || !make_room(map)) return NULL;
  pestle_map_entry_t entry = {.hash = hash, .key_size = key_size};
  if (key_size > sizeof(entry.key.small)) {
    entry.key.large = pestle_alloc(map->allocator, key_size);
    if (!entry.key.large) return NULL;
    memcpy(entry.key.large, key, key_size);
  } else if (key_size) {
    memcpy(entry.key.small, key, key_size);
  }
  uint32_t* slot = find_slot(map, hash, key, key_size);
  map->entries[map->entry_count++] = entry;
  *slot = (uint32_t)map->entry_count;
  ++map->size;
  if (out_added) *out_added = true;
  return &map->entries[map->entry_count - 1].value;
}

bool pestle_map_remove(pestle_map_t* map, const void* key, size_t key_size) {
  if (!map->size) return false;
  uint32_t slot = *find_slot(map, pestle_hash64(key, key_size), key, key_size);
  if (!slot) return false;
  pestle_map_entry_t* entry = &map->entries[slot - 1];
  free_key(map, entry);
  entry->key_size = REMOVED;
  --map->size;
  return true;
}

pestle_map_entry_t* pestle_map_next(const pestle_map_t* map, size_t* cursor) {
  while (*cursor < map->entry_count) {
    pestle_map_entry_t* entry = &map->entries[(*cursor)++];
    if (entry->key_size != REMOVED) return entry;
  }
  return NULL;
}

pestle_str_t pestle_map_entry_key(const pestle_map_entry_t* entry) {
  return pestle_str_make(key_data(entry), entry->key_size);
}

uint64_t pestle_map_entry_key_u64(const pestle_map_entry_t* entry) {
  uint64_t key = 0;
  memcpy(&key, entry->key.small, sizeof(key));
  return key;
}

static bool set(pestle_map_t* map, const void* key, size_t key_size,
                pestle_map_value_t value) {
  pestle_map_value_t* place = pestle_map_put(map, key, key_size, NULL);
  if (!place) return false;
  *place = value;
  return true;
}

bool pestle_map_set_str(pestle_map_t* map, pestle_str_t key, uint64_t value) {
  return set(map, key.data, key.size, (pestle_map_value_t){.u64 = value});
}

bool pestle_map_set_str_ptr(pestle_map_t* map, pestle_str_t key, void* value) {
  return set(map, key.data, key.size, (pestle_map_value_t){.ptr = value});
}

bool pestle_map_set_u64(pestle_map_t* map, uint64_t key, uint64_t value) {
  return set(map, &key, sizeof(key), (pestle_map_value_t){.u64 = value});
}

bool pestle_map_set_u64_ptr(pestle_map_t* map, uint64_t key, void* value) {
  return set(map, &key, sizeof(key), (pestle_map_value_t){.ptr = value});
}
