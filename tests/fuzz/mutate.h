// SPDX-License-Identifier: Apache-2.0
// What mutators share: random numbers, the numbers that checks are about, and changes
// of bytes that know nothing of a format.
#ifndef PESTLE_TESTS_FUZZ_MUTATE_H_
#define PESTLE_TESTS_FUZZ_MUTATE_H_

#include <stdint.h>
#include <string.h>

enum { PESTLE_FUZZ_MAX = 1 << 20 };  // bytes of an input

static inline uint64_t fuzz_seed(unsigned seed) {
  return seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static inline uint64_t fuzz_next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static inline size_t fuzz_below(uint64_t* state, size_t limit) {
  return limit ? (size_t)(fuzz_next(state) % limit) : 0;
}

// Numbers that checks are about.
static inline uint64_t fuzz_number(uint64_t* state) {
  static const uint64_t edges[] = {
      0,          1,          2,         3,       16,       17,
      63,         64,         100,       127,     128,      255,
      UINT32_MAX, UINT64_MAX, INT64_MAX, 1 << 20, 1u << 31, INT32_MAX,
      1ull << 63, 1ull << 32, 1u << 16,  65535,   1 << 30,  1ull << 62};
  if (fuzz_below(state, 2)) return fuzz_below(state, 300);
  return edges[fuzz_below(state, sizeof(edges) / sizeof(*edges))];
}

// Puts |length| bytes in place of |old| ones at |at|; the new size. Does nothing
// where there is no room.
static inline size_t fuzz_replace(uint8_t* data, size_t size, size_t room,
                                  size_t at, size_t old, const void* bytes,
                                  size_t length) {
  if (at > size || old > size - at || length > room ||
      size - old > room - length) {
    return size;
  }
  memmove(data + at + length, data + at + old, size - at - old);
  if (length) memcpy(data + at, bytes, length);
  return size - old + length;
}

// Changes |data|, which has room for |room| bytes, by |number|, which is a number of
// the format in |width| bytes; the new size.
static inline size_t fuzz_bytes(uint8_t* data, size_t size, size_t room,
                                const uint8_t* number, size_t width,
                                uint64_t* state) {
  size_t at = fuzz_below(state, size + 1), length;
  uint8_t piece[16];
  switch (fuzz_below(state, 6)) {
    case 0:
      if (at < size) data[at] = (uint8_t)fuzz_next(state);
      return size;
    case 1:
      if (at < size) data[at] ^= (uint8_t)(1u << fuzz_below(state, 8));
      return size;
    case 2:  // a number over what is there
      if (at + width <= size) memcpy(data + at, number, width);
      return size;
    case 3:  // a number between
      return fuzz_replace(data, size, room, at, 0, number, width);
    case 4:  // something less
      length = 1 + fuzz_below(state, 4);
      return fuzz_replace(data, size, room, at, length, NULL, 0);
    default:  // a piece again
      length = 1 + fuzz_below(state, sizeof(piece));
      if (at + length > size) return size;
      memcpy(piece, data + at, length);
      memcpy(data + fuzz_below(state, size - length + 1), piece, length);
      return size;
  }
}

#endif  // PESTLE_TESTS_FUZZ_MUTATE_H_
