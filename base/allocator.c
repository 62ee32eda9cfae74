// SPDX-License-Identifier: Apache-2.0
// The system's allocator: what a context uses that was given none. Large blocks are laid
// out for huge pages.
#include "pestle/allocator.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_pages.h"

// What malloc and realloc give anyway.
#define MALLOC_ALIGNMENT _Alignof(max_align_t)

// Constants and plans: blocks of so many bytes are asked for in huge pages, a fault
// each instead of 512.
#define LEAST_HUGE (2 * PESTLE_HUGE_PAGE)

static void* allocate_aligned(size_t size, size_t alignment) {
  bool huge = size >= LEAST_HUGE;
  if (huge && alignment < PESTLE_HUGE_PAGE) alignment = PESTLE_HUGE_PAGE;
  // aligned_alloc() wants a multiple of the alignment.
  if (size > SIZE_MAX - (alignment - 1)) return NULL;
  void* data =
      aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (huge && data) pestle_advise_huge(data, size);
  return data;
}

static void* system_resize(void* self, void* ptr, size_t old_size,
                           size_t new_size, size_t alignment) {
  (void)self;
  if (!new_size) {
    free(ptr);
    return NULL;
  }
  // A block that grows is malloc's own: it may be moved by its page tables.
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
