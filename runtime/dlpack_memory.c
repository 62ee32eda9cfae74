// SPDX-License-Identifier: Apache-2.0
// Elements of other libraries in the host's memory: whether they are values that
// kernels may meet, copies that are, and elements of fewer than 8 bits side by side.
#include <string.h>

#include "base/checked.h"
#include "runtime/dlpack.h"
#include "runtime/view.h"

// --- Values that memory can hold and kernels must not meet ---

// What each byte is added to, and which bits of the sum no clean byte has.
typedef struct clean_t {
  uint8_t add, dirty;
} clean_t;

static clean_t clean_of(pestle_dtype_t dtype) {
  if (dtype == PESTLE_I1) return (clean_t){0, 0xfe};
  if (!pestle_dtype_is_sub_byte(dtype) ||
      !pestle_dtype_is(dtype, PESTLE_KIND_INT)) {
    return (clean_t){0, 0};  // Who reads a small float looks at its bits alone.
  }
  unsigned bits = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  return (clean_t){(uint8_t)(is_signed ? 1u << (bits - 1) : 0),
                   (uint8_t)~((1u << bits) - 1)};
}

static bool is_clean_row(clean_t clean, const uint8_t* row, int64_t count,
                         int64_t stride) {
  uint8_t seen = 0;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i)
      seen |= (uint8_t)(row[i] + clean.add);
  } else {
    for (int64_t i = 0; i < count; ++i)
      seen |= (uint8_t)(row[i * stride] + clean.add);
  }
  return !(seen & clean.dirty);
}

// Elements take a byte, so strides are bytes.
static bool is_clean_strided(const pestle_foreign_t* f, clean_t clean,
                             const uint8_t* at) {
  int64_t index[PESTLE_MAX_RANK] = {0};
  int32_t last = f->rank - 1;
  for (;;) {
    if (!is_clean_row(clean, at, f->dims[last], f->strides[last])) return false;
    int32_t axis = last - 1;
    for (; axis >= 0; --axis) {
      at += f->strides[axis];
      if (++index[axis] < f->dims[axis]) break;
      at -= f->strides[axis] * f->dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return true;
  }
}

bool pestle_foreign_is_clean(const pestle_foreign_t* f, const void* first) {
  clean_t clean = clean_of(f->dtype);
  if (!clean.dirty || !f->count || f->is_packed) return true;
  if (f->is_dense) return is_clean_row(clean, first, f->count, 1);
  return is_clean_strided(f, clean, first);
}

static void make_clean(pestle_dtype_t dtype, int64_t count, uint8_t* bytes) {
  if (!clean_of(dtype).dirty) return;
  for (int64_t i = 0; i < count; ++i) {
    bytes[i] = dtype == PESTLE_I1 ? bytes[i] != 0
                                  : pestle_dtype_extend(dtype, bytes[i]);
  }
}

// --- Packed elements ---

size_t pestle_packed_bytes(pestle_dtype_t dtype, int64_t count) {
  return ((size_t)count * pestle_dtype_info(dtype)->bits + 7) / 8;
}

// Element i's bits begin at bit i * bits, the lowest first; one of 6 bits may lie in
// two bytes.
static void unpack(pestle_dtype_t dtype, int64_t count, const uint8_t* source,
                   uint8_t* target) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  unsigned mask = (1u << bits) - 1;
  for (size_t i = 0; i < (size_t)count; ++i) {
    size_t at = i * bits;
    unsigned shift = at % 8, value = source[at / 8];
    if (shift + bits > 8) value |= (unsigned)source[at / 8 + 1] << 8;
    target[i] = pestle_dtype_extend(dtype, (uint8_t)(value >> shift & mask));
  }
}

void pestle_pack(pestle_dtype_t dtype, int64_t count, const void* source,
                 void* target) {
  const uint8_t* from = source;
  uint8_t* to = target;
  unsigned bits = pestle_dtype_info(dtype)->bits;
  unsigned mask = (1u << bits) - 1;
  memset(to, 0, pestle_packed_bytes(dtype, count));
  for (size_t i = 0; i < (size_t)count; ++i) {
    size_t at = i * bits;
    unsigned value = (from[i] & mask) << at % 8;
    to[at / 8] |= (uint8_t)value;
    if (value > 0xff) to[at / 8 + 1] |= (uint8_t)(value >> 8);
  }
}

// --- Copies ---

void pestle_foreign_copy(const pestle_foreign_t* f, const void* first,
                         void* target) {
  if (!f->count) return;
  if (f->is_packed) {
    unpack(f->dtype, f->count, first, target);
    return;
  }
  pestle_view_copy(f->rank, f->dims, pestle_dtype_size(f->dtype), first,
                   f->strides, target, NULL);
  make_clean(f->dtype, f->count, target);
}
