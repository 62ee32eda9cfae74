// SPDX-License-Identifier: Apache-2.0
// Arrays of any dtype to and from the widest type of their kind, and moving
// boxes of elements about.
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "ir/ref/ref_internal.h"

pestle_ref_class_t pestle_ref_wide_class(pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return PESTLE_REF_F64;
  if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) return PESTLE_REF_I64;
  if (pestle_dtype_is(dtype, PESTLE_KIND_UNSIGNED | PESTLE_KIND_BOOL)) {
    return PESTLE_REF_U64;
  }
  return PESTLE_REF_NONE;
}

static uint64_t load_bits(const void* source, size_t size, size_t index) {
  uint64_t bits = 0;
  memcpy(&bits, (const char*)source + index * size, size);
  return bits;
}

static void store_bits(void* target, size_t size, size_t index, uint64_t bits) {
  memcpy((char*)target + index * size, &bits, size);
}

// --- Floats ---

void pestle_ref_load_f64(pestle_dtype_t dtype, const void* source, size_t count,
                         double* out) {
  if (dtype == PESTLE_F64) {
    memcpy(out, source, count * sizeof(double));
  } else if (dtype == PESTLE_F32) {
    const float* in = source;
    for (size_t i = 0; i < count; ++i)
      out[i] = (double)in[i];
  } else {
    size_t size = pestle_dtype_size(dtype);
    for (size_t i = 0; i < count; ++i) {
      out[i] = pestle_float_decode(dtype, load_bits(source, size, i));
    }
  }
}

void pestle_ref_store_f64(pestle_dtype_t dtype, const double* source,
                          size_t count, void* out) {
  if (dtype == PESTLE_F64) {
    memcpy(out, source, count * sizeof(double));
  } else if (dtype == PESTLE_F32) {
    float* to = out;
    for (size_t i = 0; i < count; ++i)
      to[i] = (float)source[i];
  } else {
    size_t size = pestle_dtype_size(dtype);
    for (size_t i = 0; i < count; ++i) {
      store_bits(out, size, i, pestle_float_encode(dtype, source[i]));
    }
  }
}

void pestle_ref_load_f32(pestle_dtype_t dtype, const void* source, size_t count,
                         float* out) {
  if (dtype == PESTLE_F32) {
    memcpy(out, source, count * sizeof(float));
  } else if (dtype == PESTLE_F16) {
    const uint16_t* in = source;
    for (size_t i = 0; i < count; ++i)
      out[i] = pestle_f16_to_f32(in[i]);
  } else if (dtype == PESTLE_BF16) {
    const uint16_t* in = source;
    for (size_t i = 0; i < count; ++i)
      out[i] = pestle_bf16_to_f32(in[i]);
  } else {
    const uint8_t* in = source;
    for (size_t i = 0; i < count; ++i) {
      out[i] = (float)pestle_float_decode(dtype, in[i]);
    }
  }
}

void pestle_ref_store_f32(pestle_dtype_t dtype, const float* source,
                          size_t count, void* out) {
  if (dtype == PESTLE_F32) {
    memcpy(out, source, count * sizeof(float));
  } else if (dtype == PESTLE_F16) {
    uint16_t* to = out;
    for (size_t i = 0; i < count; ++i)
      to[i] = pestle_f16_from_f32(source[i]);
  } else if (dtype == PESTLE_BF16) {
    uint16_t* to = out;
    for (size_t i = 0; i < count; ++i)
      to[i] = pestle_bf16_from_f32(source[i]);
  } else {
    uint8_t* to = out;
    for (size_t i = 0; i < count; ++i) {
      to[i] = (uint8_t)pestle_float_encode(dtype, (double)source[i]);
    }
  }
}

// --- Integers ---

#define LOAD_LOOP(T, R)                \
  do {                                 \
    const T* in = source;              \
    R* to = out;                       \
    for (size_t i = 0; i < count; ++i) \
      to[i] = (R)in[i];                \
  } while (0)

static void load_signed(size_t size, const void* source, size_t count,
                        int64_t* out) {
  if (size == 1) LOAD_LOOP(int8_t, int64_t);
  if (size == 2) LOAD_LOOP(int16_t, int64_t);
  if (size == 4) LOAD_LOOP(int32_t, int64_t);
  if (size == 8) LOAD_LOOP(int64_t, int64_t);
}

static void load_unsigned(size_t size, const void* source, size_t count,
                          uint64_t* out) {
  if (size == 1) LOAD_LOOP(uint8_t, uint64_t);
  if (size == 2) LOAD_LOOP(uint16_t, uint64_t);
  if (size == 4) LOAD_LOOP(uint32_t, uint64_t);
  if (size == 8) LOAD_LOOP(uint64_t, uint64_t);
}

static void store_int(pestle_dtype_t dtype, const uint64_t* source,
                      size_t count, void* out) {
  size_t size = pestle_dtype_size(dtype);
  if (dtype == PESTLE_I1) {
    uint8_t* to = out;
    for (size_t i = 0; i < count; ++i)
      to[i] = source[i] & 1;
  } else if (pestle_dtype_is_sub_byte(dtype)) {
    uint8_t* to = out;
    for (size_t i = 0; i < count; ++i)
      to[i] = pestle_dtype_extend(dtype, (uint8_t)source[i]);
  } else if (size == 1) {
    LOAD_LOOP(uint64_t, uint8_t);
  } else if (size == 2) {
    LOAD_LOOP(uint64_t, uint16_t);
  } else if (size == 4) {
    LOAD_LOOP(uint64_t, uint32_t);
  } else {
    LOAD_LOOP(uint64_t, uint64_t);
  }
}

void pestle_ref_load_wide(pestle_dtype_t dtype, const void* source,
                          size_t count, void* out) {
  pestle_ref_class_t kind = pestle_ref_wide_class(dtype);
  size_t size = pestle_dtype_size(dtype);
  if (kind == PESTLE_REF_F64) {
    pestle_ref_load_f64(dtype, source, count, out);
  } else if (kind == PESTLE_REF_I64) {
    load_signed(size, source, count, out);
  } else {
    load_unsigned(size, source, count, out);
  }
}

void pestle_ref_store_wide(pestle_dtype_t dtype, const void* source,
                           size_t count, void* out) {
  if (pestle_ref_wide_class(dtype) == PESTLE_REF_F64) {
    pestle_ref_store_f64(dtype, source, count, out);
  } else {
    store_int(dtype, source, count, out);
  }
}

// --- Boxes ---

void pestle_ref_strides(const pestle_type_t* type, int64_t* out_strides) {
  pestle_dense_strides(type->dims, (size_t)type->rank,
                       pestle_dtype_size(type->dtype), out_strides);
}

bool pestle_ref_next(int rank, const int64_t* dims, int64_t* index) {
  for (int i = rank - 1; i >= 0; --i) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

#define COPY_LOOP(size)                                                   \
  for (int64_t i = 0; i < count; ++i) {                                   \
    memcpy(target + i * target_stride, source + i * source_stride, size); \
  }

static void copy_row(size_t element_size, int64_t count, char* target,
                     int64_t target_stride, const char* source,
                     int64_t source_stride) {
  int64_t size = (int64_t)element_size;
  if (target_stride == size && source_stride == size) {
    memcpy(target, source, (size_t)(count * size));
  } else if (size == 1) {
    COPY_LOOP(1)
  } else if (size == 2) {
    COPY_LOOP(2)
  } else if (size == 4) {
    COPY_LOOP(4)
  } else if (size == 8) {
    COPY_LOOP(8)
  } else {
    COPY_LOOP(element_size)
  }
}

typedef struct copy_axis_t {
  int64_t n, t, s;  // extent, strides in bytes of target and source
} copy_axis_t;

// Axes that lie behind each other in both arrays are one axis.
static int merge_axes(int rank, const int64_t* dims, const int64_t* t,
                      const int64_t* s, copy_axis_t* out_axes) {
  int merged = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    copy_axis_t* last = merged ? &out_axes[merged - 1] : NULL;
    if (last && last->t == dims[i] * t[i] && last->s == dims[i] * s[i]) {
      *last = (copy_axis_t){last->n * dims[i], t[i], s[i]};
    } else {
      out_axes[merged++] = (copy_axis_t){dims[i], t[i], s[i]};
    }
  }
  return merged;
}

// By their steps in the source, the longest first.
static void order_axes(copy_axis_t* axes, int count) {
  for (int i = 1; i < count; ++i) {
    copy_axis_t axis = axes[i];
    int at = i;
    for (; at > 0 && llabs(axes[at - 1].s) < llabs(axis.s); --at)
      axes[at] = axes[at - 1];
    axes[at] = axis;
  }
}

// A transposition goes by strips of rows: what a strip reads of the source lies
// in so many lines, each of which stays in the cache until it is used up.
enum { CACHE_LINE = 64, STRIP = 64 };

void pestle_ref_copy_strided(size_t element_size, int rank, const int64_t* dims,
                             char* target, const int64_t* target_strides,
                             const char* source,
                             const int64_t* source_strides) {
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return;
  }
  copy_axis_t axes[PESTLE_MAX_RANK];
  int outer = merge_axes(rank, dims, target_strides, source_strides, axes) - 1;
  if (outer < 0) {
    memcpy(target, source, element_size);
    return;
  }
  copy_axis_t row = axes[outer];
  int64_t strip = row.n, n[PESTLE_MAX_RANK], index[PESTLE_MAX_RANK] = {0};
  if (llabs(row.s) >= CACHE_LINE && row.n > STRIP) {
    strip = STRIP;
    order_axes(axes, outer);
  }
  for (int i = 0; i < outer; ++i)
    n[i] = axes[i].n;
  for (int64_t at = 0; at < row.n; at += strip) {
    int64_t count = row.n - at < strip ? row.n - at : strip;
    do {
      int64_t to = at * row.t, from = at * row.s;
      for (int i = 0; i < outer; ++i) {
        to += index[i] * axes[i].t;
        from += index[i] * axes[i].s;
      }
      copy_row(element_size, count, target + to, row.t, source + from, row.s);
    } while (pestle_ref_next(outer, n, index));
  }
}

void pestle_ref_fill(void* target, size_t element_size, size_t count,
                     const void* value) {
  char element[16];
  memcpy(element, value, element_size);
  char* to = target;
  if (element_size == 1) {
    memset(to, (unsigned char)element[0], count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    memcpy(to + i * element_size, element, element_size);
  }
}
