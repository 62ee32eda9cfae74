// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(pestle_hasher_t),
               "the opaque state is large enough");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(pestle_hasher_t),
               "and aligned");

static pestle_hash128_t from_xxh(XXH128_hash_t hash) {
  return (pestle_hash128_t){.low = hash.low64, .high = hash.high64};
}

uint64_t pestle_hash64(const void* data, size_t size) {
  return XXH3_64bits(data, size);
}

pestle_hash128_t pestle_hash128(const void* data, size_t size) {
  return from_xxh(XXH3_128bits(data, size));
}

void pestle_hash128_to_hex(pestle_hash128_t hash,
                           char out_text[PESTLE_HASH128_HEX_SIZE]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    int shift = 60 - 4 * i;
    out_text[i] = digits[hash.high >> shift & 15];
    out_text[16 + i] = digits[hash.low >> shift & 15];
  }
  out_text[32] = '\0';
}

static bool parse_digits(const char* text, uint64_t* out_value) {
  uint64_t value = 0;
  for (int i = 0; i < 16; ++i) {
    char c = text[i];
    unsigned digit;
    if (c >= '0' && c <= '9') {
      digit = (unsigned)(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = (unsigned)(c - 'a') + 10;
    } else {
      return false;
    }
    value = value << 4 | digit;
  }
  *out_value = value;
  return true;
}

bool pestle_hash128_from_hex(pestle_str_t text, pestle_hash128_t* out_hash) {
  pestle_hash128_t hash;
  if (text.size != 32 || !parse_digits(text.data, &hash.high) ||
      !parse_digits(text.data + 16, &hash.low)) {
    return false;
  }
  *out_hash = hash;
  return true;
}

static XXH3_state_t* state_of(pestle_hasher_t* hasher) {
  return (XXH3_state_t*)(void*)hasher->state;
}

void pestle_hasher_init(pestle_hasher_t* out_hasher) {
  // xxHash leaves padding and its buffer alone, but a copy of the whole state
  // must not read what was never written.
  memset(out_hasher, 0, sizeof(*out_hasher));
  XXH3_128bits_reset(state_of(out_hasher));
}

void pestle_hasher_update(pestle_hasher_t* hasher, const void* data,
                          size_t size) {
  if (size) XXH3_128bits_update(state_of(hasher), data, size);
}

void pestle_hasher_update_u64(pestle_hasher_t* hasher, uint64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i)
    bytes[i] = (unsigned char)(value >> (8 * i));
  pestle_hasher_update(hasher, bytes, sizeof(bytes));
}

void pestle_hasher_update_str(pestle_hasher_t* hasher, pestle_str_t text) {
  pestle_hasher_update_u64(hasher, text.size);
  pestle_hasher_update(hasher, text.data, text.size);
}

pestle_hash128_t pestle_hasher_finish(const pestle_hasher_t* hasher) {
  return from_xxh(
      XXH3_128bits_digest((const XXH3_state_t*)(const void*)hasher->state));
}

uint64_t pestle_hasher_finish64(const pestle_hasher_t* hasher) {
  // One state serves both.
  return XXH3_64bits_digest((const XXH3_state_t*)(const void*)hasher->state);
}
