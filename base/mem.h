// SPDX-License-Identifier: Apache-2.0
// Calls on a pestle_allocator_t: every block of host memory in Pestle is made
// and freed through these. Sizes are stated again when a block is freed, so
// that an allocator need not keep a header.
//
// base/ is what C lacks: status, memory, strings, containers, hashes, checked
// sizes, threads, files, and the core of a context. base/ knows nothing of
// tensors.
#ifndef PESTLE_BASE_MEM_H_
#define PESTLE_BASE_MEM_H_

#include <stddef.h>
#include <string.h>

#include "pestle/allocator.h"

// What malloc guarantees on the targets we build for.
#define PESTLE_DEFAULT_ALIGNMENT ((size_t)16)
// A cache line, and the alignment at which tensors are used in place.
#define PESTLE_BUFFER_ALIGNMENT ((size_t)64)

// Makes |size| bytes at |alignment| (a power of two). A |size| of 0 makes one
// byte, so that NULL always means out of memory.
static inline void* pestle_alloc_aligned(pestle_allocator_t allocator,
                                         size_t size, size_t alignment) {
  return allocator.resize(allocator.self, NULL, 0, size ? size : 1, alignment);
}

static inline void pestle_free_aligned(pestle_allocator_t allocator, void* ptr,
                                       size_t size, size_t alignment) {
  if (!ptr) return;
  allocator.resize(allocator.self, ptr, size ? size : 1, 0, alignment);
}

// Makes |size| bytes, not cleared. NULL means out of memory.
static inline void* pestle_alloc(pestle_allocator_t allocator, size_t size) {
  return pestle_alloc_aligned(allocator, size, PESTLE_DEFAULT_ALIGNMENT);
}

// Makes |size| zero bytes.
static inline void* pestle_alloc_zero(pestle_allocator_t allocator,
                                      size_t size) {
  void* ptr = pestle_alloc(allocator, size);
  if (ptr) memset(ptr, 0, size);
  return ptr;
}

// Makes an array; NULL also when |count| * |element_size| overflows.
static inline void* pestle_alloc_array(pestle_allocator_t allocator,
                                       size_t count, size_t element_size) {
  size_t size;
  if (__builtin_mul_overflow(count, element_size, &size)) return NULL;
  return pestle_alloc(allocator, size);
}

// Resizes a block of pestle_alloc(). NULL leaves |ptr| as it was.
static inline void* pestle_realloc(pestle_allocator_t allocator, void* ptr,
                                   size_t old_size, size_t new_size) {
  return allocator.resize(allocator.self, ptr, ptr && !old_size ? 1 : old_size,
                          new_size ? new_size : 1, PESTLE_DEFAULT_ALIGNMENT);
}

// Frees a block of |size| bytes made by the three above; NULL is allowed. (The
// public pestle_free() of pestle/graph.h takes a context.)
static inline void pestle_dealloc(pestle_allocator_t allocator, void* ptr,
                                  size_t size) {
  pestle_free_aligned(allocator, ptr, size, PESTLE_DEFAULT_ALIGNMENT);
}

// Copies |text| into a block of strlen(text) + 1 bytes.
static inline char* pestle_strdup(pestle_allocator_t allocator,
                                  const char* text) {
  size_t size = strlen(text) + 1;
  char* copy = pestle_alloc(allocator, size);
  if (copy) memcpy(copy, text, size);
  return copy;
}

static inline void pestle_free_str(pestle_allocator_t allocator, char* text) {
  if (text) pestle_dealloc(allocator, text, strlen(text) + 1);
}

// The status that a failed allocation turns into.
#define PESTLE_OOM() PESTLE_ERROR(OUT_OF_MEMORY, "out of host memory")

#endif  // PESTLE_BASE_MEM_H_
