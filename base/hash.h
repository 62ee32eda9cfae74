// SPDX-License-Identifier: Apache-2.0
// XXH3 (xxHash): not cryptographic. The 128-bit hash names plans, kernels and
// constants; the same bytes give the same hash on every machine.
#ifndef PESTLE_BASE_HASH_H_
#define PESTLE_BASE_HASH_H_

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

typedef struct pestle_hash128_t {
  uint64_t low;
  uint64_t high;
} pestle_hash128_t;

#define PESTLE_HASH128_HEX_SIZE 33  // 32 digits and the terminator

uint64_t pestle_hash64(const void* data, size_t size);
pestle_hash128_t pestle_hash128(const void* data, size_t size);

static inline bool pestle_hash128_equal(pestle_hash128_t a,
                                        pestle_hash128_t b) {
  return a.low == b.low && a.high == b.high;
}
// Lower-case, high half first.
void pestle_hash128_to_hex(pestle_hash128_t hash,
                           char out_text[PESTLE_HASH128_HEX_SIZE]);
bool pestle_hash128_from_hex(pestle_str_t text, pestle_hash128_t* out_hash);

// An incremental 128-bit hash. Holds no memory: no deinit. The content is
// xxHash's own state, whose header no other file needs to see.
typedef struct pestle_hasher_t {
  alignas(64) unsigned char state[576];
} pestle_hasher_t;

void pestle_hasher_init(pestle_hasher_t* out_hasher);
void pestle_hasher_update(pestle_hasher_t* hasher, const void* data,
                          size_t size);
// Integers are fed as eight little-endian bytes, and text with its size before
// it, so that two fields next to each other never run together.
void pestle_hasher_update_u64(pestle_hasher_t* hasher, uint64_t value);
void pestle_hasher_update_str(pestle_hasher_t* hasher, pestle_str_t text);
// Does not change the hasher: more may be fed afterwards.
pestle_hash128_t pestle_hasher_finish(const pestle_hasher_t* hasher);
// What pestle_hash64() is of the same bytes.
uint64_t pestle_hasher_finish64(const pestle_hasher_t* hasher);

#endif  // PESTLE_BASE_HASH_H_
