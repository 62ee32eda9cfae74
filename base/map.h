// SPDX-License-Identifier: Apache-2.0
// A hash map from bytes (text, integers, any flat key without padding) to a
// 64-bit number or pointer. Keys are copied. Iteration is in the order of
// insertion, whatever the hash does, so that output made from it is
// deterministic. Not thread-safe.
#ifndef PESTLE_BASE_MAP_H_
#define PESTLE_BASE_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pestle/allocator.h"

typedef union pestle_map_value_t {
  uint64_t u64;
  void* ptr;
} pestle_map_value_t;

typedef struct pestle_map_entry_t {
  pestle_map_value_t value;
  uint64_t hash;
  size_t key_size;  // SIZE_MAX: removed
  union {
    char small[8];  // keys of up to 8 bytes
    char* large;
  } key;
} pestle_map_entry_t;

typedef struct pestle_map_t {
  pestle_allocator_t allocator;
  pestle_map_entry_t* entries;  // in insertion order, removed ones among them
  size_t entry_count;
  size_t entry_capacity;
  uint32_t* slots;  // index into |entries| + 1, 0 free; open addressing
  size_t slot_count;
  size_t size;  // live entries
} pestle_map_t;

void pestle_map_init(pestle_allocator_t allocator, pestle_map_t* out_map);
void pestle_map_deinit(pestle_map_t* map);
// Removes every entry, keeps the tables.
void pestle_map_clear(pestle_map_t* map);

static inline size_t pestle_map_size(const pestle_map_t* map) {
  return map->size;
}

// Finds the value of a key, or NULL. Valid until the map is changed.
pestle_map_value_t* pestle_map_find(const pestle_map_t* map, const void* key,
                                    size_t key_size);
// Finds or adds the key (with value 0); NULL when out of memory. |out_added|
// may be NULL. Valid until the map is changed.
pestle_map_value_t* pestle_map_put(pestle_map_t* map, const void* key,
                                   size_t key_size, bool* out_added);
// Returns whether the key was there.
bool pestle_map_remove(pestle_map_t* map, const void* key, size_t key_size);

// Walks the live entries: set |*cursor| to 0, then call until NULL. Values may
// be changed and the entry just returned may be removed while walking.
pestle_map_entry_t* pestle_map_next(const pestle_map_t* map, size_t* cursor);
pestle_str_t pestle_map_entry_key(const pestle_map_entry_t* entry);
uint64_t pestle_map_entry_key_u64(const pestle_map_entry_t* entry);

// Text keys.
static inline pestle_map_value_t* pestle_map_find_str(const pestle_map_t* map,
                                                      pestle_str_t key) {
  return pestle_map_find(map, key.data, key.size);
}
// Sets key to |value|, replacing; false when out of memory.
bool pestle_map_set_str(pestle_map_t* map, pestle_str_t key, uint64_t value);
bool pestle_map_set_str_ptr(pestle_map_t* map, pestle_str_t key, void* value);

// Integer keys.
static inline pestle_map_value_t* pestle_map_find_u64(const pestle_map_t* map,
                                                      uint64_t key) {
  return pestle_map_find(map, &key, sizeof(key));
}
static inline bool pestle_map_remove_u64(pestle_map_t* map, uint64_t key) {
  return pestle_map_remove(map, &key, sizeof(key));
}
bool pestle_map_set_u64(pestle_map_t* map, uint64_t key, uint64_t value);
bool pestle_map_set_u64_ptr(pestle_map_t* map, uint64_t key, void* value);

#endif  // PESTLE_BASE_MAP_H_
