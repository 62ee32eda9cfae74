// SPDX-License-Identifier: Apache-2.0
#include "pestle/allocator.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

// What malloc and realloc give anyway.
#define MALLOC_ALIGNMENT _Alignof(max_align_t)

// Constants and plans: blocks of so many bytes are asked for in pages of 2 MiB, a
// fault each instead of 512.
#define HUGE_PAGE ((size_t)2 << 20)
#define LEAST_HUGE (2 * HUGE_PAGE)

static void advise_huge(void* data, size_t size) {
#ifdef MADV_HUGEPAGE
  if (data) (void)madvise(data, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#else
  (void)data;
  (void)size;
#endif
}

static void* allocate_aligned(size_t size, size_t alignment) {
  bool huge = size >= LEAST_HUGE;
  if (huge && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
  // aligned_alloc() wants a multiple of the alignment.
  if (size > SIZE_MAX - (alignment - 1)) return NULL;
  void* data =
      aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (huge) advise_huge(data, size);
  return data;
}

static void* system_resize(void* self, void* ptr, size_t old_size,
                           size_t new_size, size_t alignment) {
  (void)self;
  if (!new_size) {
    free(ptr);
    return NULL;
  }
  // What grows stays as malloc has it: it may be moved by its page tables.
  if (alignment <= MALLOC_ALIGNMENT && (ptr || new_size < LEAST_HUGE)) {
    return realloc(ptr, new_size);
  }
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
