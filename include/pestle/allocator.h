// SPDX-License-Identifier: Apache-2.0
// The host allocator: one function, passed by value.
#ifndef PESTLE_ALLOCATOR_H_
#define PESTLE_ALLOCATOR_H_

#include <stddef.h>

#include "pestle/export.h"

PESTLE_EXTERN_C_BEGIN

// Frozen: passed by value, never grows.
typedef struct pestle_allocator_t {
  void* self;
  // Grows, shrinks, makes (|ptr| NULL, |old_size| 0) or frees (|new_size| 0,
  // returns NULL) a block of at least |alignment| (a power of two). Contents up
  // to the smaller size are kept. NULL with |new_size| > 0 means out of memory
  // and leaves |ptr| as it was. Must be callable from any thread.
  void* (*resize)(void* self, void* ptr, size_t old_size, size_t new_size,
                  size_t alignment);
} pestle_allocator_t;

// The C library's heap, the default of every context.
PESTLE_API pestle_allocator_t pestle_allocator_system(void);

PESTLE_EXTERN_C_END

#endif  // PESTLE_ALLOCATOR_H_
