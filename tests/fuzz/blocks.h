// SPDX-License-Identifier: Apache-2.0
// The allocator of fuzz targets. It keeps large blocks for the next input, which
// AddressSanitizer would map and unmap each time (two thirds of an execution's
// time), and poisons them while nobody has them: a late use is still found. It
// counts what is in use, so that a leak is found by the input that makes it.
#ifndef PESTLE_TESTS_FUZZ_BLOCKS_H_
#define PESTLE_TESTS_FUZZ_BLOCKS_H_

#include <sanitizer/asan_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pestle/allocator.h"

enum {
  PESTLE_FUZZ_SHIFT = 14,  // the least that is kept: 16 KiB
  PESTLE_FUZZ_CLASSES = 9,
  PESTLE_FUZZ_KEPT = 32,  // of a class
};

// Of one thread: fuzz targets have contexts of one thread.
typedef struct pestle_fuzz_blocks_t {
  void* kept[PESTLE_FUZZ_CLASSES][PESTLE_FUZZ_KEPT];
  size_t count[PESTLE_FUZZ_CLASSES];
  size_t in_use;  // blocks
} pestle_fuzz_blocks_t;

// The class of |size| bytes, PESTLE_FUZZ_CLASSES for what is not kept.
static inline unsigned pestle_fuzz_class(size_t size, size_t alignment) {
  unsigned k = 0;
  if (alignment > 64 || size <= (size_t)1 << (PESTLE_FUZZ_SHIFT - 1)) {
    return PESTLE_FUZZ_CLASSES;
  }
  while (k < PESTLE_FUZZ_CLASSES && size > (size_t)1 << (PESTLE_FUZZ_SHIFT + k))
    ++k;
  return k;
}

static inline void* pestle_fuzz_take(pestle_fuzz_blocks_t* b, size_t size,
                                     size_t alignment) {
  pestle_allocator_t system = pestle_allocator_system();
  unsigned k = pestle_fuzz_class(size, alignment);
  if (k == PESTLE_FUZZ_CLASSES) {
    return system.resize(system.self, NULL, 0, size, alignment);
  }
  size_t whole = (size_t)1 << (PESTLE_FUZZ_SHIFT + k);
  void* data = b->count[k] ? b->kept[k][--b->count[k]]
                           : system.resize(system.self, NULL, 0, whole, 64);
  if (!data) return NULL;
  ASAN_UNPOISON_MEMORY_REGION(data, size);
  ASAN_POISON_MEMORY_REGION((char*)data + size, whole - size);
  return data;
}

static inline void pestle_fuzz_give(pestle_fuzz_blocks_t* b, void* data,
                                    size_t size, size_t alignment) {
  pestle_allocator_t system = pestle_allocator_system();
  unsigned k = pestle_fuzz_class(size, alignment);
  if (k == PESTLE_FUZZ_CLASSES) {
    system.resize(system.self, data, size, 0, alignment);
    return;
  }
  size_t whole = (size_t)1 << (PESTLE_FUZZ_SHIFT + k);
  if (b->count[k] == PESTLE_FUZZ_KEPT) {
    ASAN_UNPOISON_MEMORY_REGION(data, whole);
    system.resize(system.self, data, whole, 0, 64);
    return;
  }
  ASAN_POISON_MEMORY_REGION(data, whole);
  b->kept[k][b->count[k]++] = data;
}

static inline void* pestle_fuzz_resize(void* self, void* ptr, size_t old_size,
                                       size_t new_size, size_t alignment) {
  pestle_fuzz_blocks_t* b = self;
  void* data = NULL;
  if (new_size) {
    data = pestle_fuzz_take(b, new_size, alignment);
    if (!data) return NULL;
    ++b->in_use;
  }
  if (ptr) {
    size_t size = old_size < new_size ? old_size : new_size;
    if (size) memcpy(data, ptr, size);
    pestle_fuzz_give(b, ptr, old_size, alignment);
    --b->in_use;
  }
  return data;
}

#endif  // PESTLE_TESTS_FUZZ_BLOCKS_H_
