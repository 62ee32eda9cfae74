// SPDX-License-Identifier: Apache-2.0
// Bit counting, powers of two and alignment, where overflow is not possible or
// has been excluded (checked.h is for sizes that come from outside).
#ifndef PESTLE_BASE_BITS_H_
#define PESTLE_BASE_BITS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline unsigned pestle_popcount(uint64_t value) {
  return (unsigned)__builtin_popcountll(value);
}
// Leading and trailing zero bits; 64 for 0.
static inline unsigned pestle_clz(uint64_t value) {
  return value ? (unsigned)__builtin_clzll(value) : 64;
}
static inline unsigned pestle_ctz(uint64_t value) {
  return value ? (unsigned)__builtin_ctzll(value) : 64;
}
static inline bool pestle_is_pow2(uint64_t value) {
  return value && !(value & (value - 1));
}
// The smallest power of two >= |value|; 1 for 0, and 0 when it passes 2^63.
static inline uint64_t pestle_next_pow2(uint64_t value) {
  if (value <= 1) return 1;
  unsigned bits = 64 - pestle_clz(value - 1);
  return bits == 64 ? 0 : UINT64_C(1) << bits;
}
// Floor of the binary logarithm; |value| > 0.
static inline unsigned pestle_log2_floor(uint64_t value) {
  return 63 - pestle_clz(value);
}
// |alignment| is a power of two.
static inline size_t pestle_align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
static inline size_t pestle_align_down(size_t value, size_t alignment) {
  return value & ~(alignment - 1);
}
static inline bool pestle_is_aligned(const void* ptr, size_t alignment) {
  return ((uintptr_t)ptr & (alignment - 1)) == 0;
}
// |divisor| > 0 and |value| >= 0.
static inline int64_t pestle_ceil_div(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor != 0);
}

// a / b rounded down; b is not 0. Machines round towards zero.
static inline int64_t pestle_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// The greatest common divisor, not negative; that of 0 and a number is the
// number's amount.
static inline int64_t pestle_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

#endif  // PESTLE_BASE_BITS_H_
