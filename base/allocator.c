// SPDX-License-Identifier: Apache-2.0
#include "pestle/allocator.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// What malloc and realloc give anyway.
#define MALLOC_ALIGNMENT _Alignof(max_align_t)

static void* allocate_aligned(size_t size, size_t alignment) {
  // aligned_alloc() wants a multiple of the alignment.
  if (size > SIZE_MAX - (alignment - 1)) return NULL;
  return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

static void* system_resize(void* self, void* ptr, size_t old_size,
                           size_t new_size, size_t alignment) {
  (void)self;
  if (!new_size) {
    free(ptr);
    return NULL;
  }
  if (alignment <= MALLOC_ALIGNMENT) return realloc(ptr, new_size);
  void* result = allocate_aligned(new_size, alignment);
  if (result && ptr) {
    memcpy(result, ptr, old_size < new_size ? old_size : new_size);
    free(ptr);
  }
  return result;
}

pestle_allocator_t pestle_allocator_system(void) {
  return (pestle_allocator_t){.self = NULL, .resize = system_resize};
}
