// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes and extents that come from outside: every result that
// would not fit is a false return, and |out| is then unspecified.
#ifndef PESTLE_BASE_CHECKED_H_
#define PESTLE_BASE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes.
static inline bool pestle_checked_add(size_t a, size_t b, size_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool pestle_checked_sub(size_t a, size_t b, size_t* out) {
  return !__builtin_sub_overflow(a, b, out);
}
static inline bool pestle_checked_mul(size_t a, size_t b, size_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}
// |alignment| is a power of two.
static inline bool pestle_checked_align_up(size_t value, size_t alignment,
                                           size_t* out) {
  if (__builtin_add_overflow(value, alignment - 1, out)) return false;
  *out &= ~(alignment - 1);
  return true;
}
// An offset or extent as a byte count: false when it is negative.
static inline bool pestle_checked_size(int64_t value, size_t* out) {
  return !__builtin_add_overflow(value, 0, out);
}

// Extents and element offsets.
static inline bool pestle_checked_add_i64(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool pestle_checked_sub_i64(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_sub_overflow(a, b, out);
}
static inline bool pestle_checked_mul_i64(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// The number of elements of |rank| extents; 1 for rank 0. False when an extent
// is negative (so also when it is dynamic) or the product of the extents that
// are not zero passes 2^63: then strides would not fit either.
static inline bool pestle_checked_count(const int64_t* dims, size_t rank,
                                        int64_t* out) {
  int64_t count = 1;
  bool empty = false;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dims[i], &count)) {
      return false;
    }
  }
  *out = empty ? 0 : count;
  return true;
}

// Row-major strides of |rank| extents whose count is known to fit; the last is
// |unit|. An extent of 0 counts as 1: strides of nothing are those of something.
static inline void pestle_dense_strides(const int64_t* dims, size_t rank,
                                        int64_t unit, int64_t* out_strides) {
  for (size_t i = rank; i-- > 0;) {
    out_strides[i] = unit;
    if (dims[i] > 1) unit *= dims[i];
  }
}

#endif  // PESTLE_BASE_CHECKED_H_
