// SPDX-License-Identifier: Apache-2.0
// A typed growable array.
//
//   typedef PESTLE_VEC(int64_t) dims_t;
//   dims_t dims;
//   pestle_vec_init(&dims, allocator);
//   if (!pestle_vec_push(&dims, 4)) return PESTLE_OOM();
//   for (size_t i = 0; i < dims.size; ++i) use(dims.data[i]);
//   pestle_vec_deinit(&dims);
//
// The macros evaluate |vec| more than once: pass a plain lvalue's address.
#ifndef PESTLE_BASE_VEC_H_
#define PESTLE_BASE_VEC_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "pestle/allocator.h"

#define PESTLE_VEC(Type)          \
  struct {                        \
    Type* data;                   \
    size_t size;                  \
    size_t capacity;              \
    pestle_allocator_t allocator; \
  }

#define pestle_vec_init(vec, vec_allocator)                  \
  ((vec)->data = NULL, (vec)->size = 0, (vec)->capacity = 0, \
   (void)((vec)->allocator = (vec_allocator)))

// Frees the elements' memory and leaves an empty vector.
#define pestle_vec_deinit(vec)                             \
  (pestle_dealloc((vec)->allocator, (vec)->data,           \
                  (vec)->capacity * sizeof(*(vec)->data)), \
   (vec)->data = NULL, (vec)->size = 0, (void)((vec)->capacity = 0))

// Makes room for |extra| more elements; false when out of memory.
#define pestle_vec_reserve(vec, extra)                                      \
  pestle_vec_reserve_((vec)->allocator, &(vec)->data, (vec)->size, (extra), \
                      sizeof(*(vec)->data), &(vec)->capacity)

// Appends one element; false, with nothing changed, when out of memory.
// |value| is evaluated only if there is room.
#define pestle_vec_push(vec, ...)  \
  (pestle_vec_reserve((vec), 1) && \
   ((vec)->data[(vec)->size++] = (__VA_ARGS__), true))

// Appends |count| elements read from |source|, which must not lie in |vec|.
#define pestle_vec_append(vec, source, count)                                \
  (!(count) ||                                                               \
   (pestle_vec_reserve((vec), (count)) &&                                    \
    (pestle_vec_copy_((vec)->data + (vec)->size, 1 ? (source) : (vec)->data, \
                      (count) * sizeof(*(vec)->data)),                       \
     (vec)->size += (count), true)))

// Sets the size; new elements are zero. False when out of memory.
#define pestle_vec_resize(vec, new_size)                                    \
  (((new_size) <= (vec)->size ||                                            \
    (pestle_vec_reserve((vec), (new_size) - (vec)->size) &&                 \
     memset((vec)->data + (vec)->size, 0,                                   \
            ((new_size) - (vec)->size) * sizeof(*(vec)->data)) != NULL)) && \
   ((vec)->size = (new_size), true))

// The last element, removed. The vector must not be empty.
#define pestle_vec_pop(vec) ((vec)->data[--(vec)->size])
#define pestle_vec_last(vec) ((vec)->data[(vec)->size - 1])
#define pestle_vec_clear(vec) ((void)((vec)->size = 0))

static inline void pestle_vec_copy_(void* target, const void* source,
                                    size_t size) {
  if (size) memcpy(target, source, size);
}

// |data_field| is the address of the vector's typed data pointer: it is read
// and written by memcpy, since a T* object must not be accessed as a void*.
static inline bool pestle_vec_reserve_(pestle_allocator_t allocator,
                                       void* data_field, size_t size,
                                       size_t extra, size_t element_size,
                                       size_t* capacity) {
  if (extra <= *capacity - size) return true;
  size_t needed, bytes;
  if (__builtin_add_overflow(size, extra, &needed)) return false;
  size_t wanted = *capacity < 4 ? 8 : *capacity + *capacity / 2;
  if (wanted < needed) wanted = needed;
  if (__builtin_mul_overflow(wanted, element_size, &bytes)) return false;
  void* data;
  memcpy(&data, data_field, sizeof(data));
  data = pestle_realloc(allocator, data, *capacity * element_size, bytes);
  if (!data) return false;
  memcpy(data_field, &data, sizeof(data));
  *capacity = wanted;
  return true;
}

#endif  // PESTLE_BASE_VEC_H_
