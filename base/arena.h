// SPDX-License-Identifier: Apache-2.0
// A bump allocator: many small blocks that die together. Used for graphs,
// kernels and the scratch memory of a pass. Not thread-safe.
#ifndef PESTLE_BASE_ARENA_H_
#define PESTLE_BASE_ARENA_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

typedef struct pestle_arena_block_t pestle_arena_block_t;

typedef struct pestle_arena_t {
  pestle_allocator_t allocator;
  pestle_arena_block_t* top;    // newest first
  pestle_arena_block_t* spare;  // a few that rewinds emptied
  size_t spare_size;            // bytes of those
  uintptr_t next;               // first free byte of |top|
  uintptr_t end;
  size_t block_size;  // of the next ordinary block; doubles up to a limit
  size_t total_size;  // bytes held from |allocator|
} pestle_arena_t;

// A position to rewind to. Valid until the arena is rewound before it or reset.
typedef struct pestle_arena_mark_t {
  pestle_arena_block_t* top;
  uintptr_t next;
} pestle_arena_mark_t;

// Makes an empty arena. Allocates nothing until the first block is asked for.
void pestle_arena_init(pestle_allocator_t allocator, pestle_arena_t* out_arena);
// Frees everything. The arena may be initialised again.
void pestle_arena_deinit(pestle_arena_t* arena);
// Forgets everything but keeps one block for reuse.
void pestle_arena_reset(pestle_arena_t* arena);

// Returns |size| bytes at |alignment| (a power of two), not cleared; NULL when
// out of memory. Any |size| is allowed; 0 gives a pointer not to be read.
void* pestle_arena_alloc(pestle_arena_t* arena, size_t size, size_t alignment);
// The same, cleared.
void* pestle_arena_alloc_zero(pestle_arena_t* arena, size_t size,
                              size_t alignment);
// An array of |count| elements; NULL also when the size overflows.
void* pestle_arena_alloc_array(pestle_arena_t* arena, size_t count,
                               size_t element_size, size_t alignment);
// Copies |size| bytes.
void* pestle_arena_copy(pestle_arena_t* arena, const void* data, size_t size,
                        size_t alignment);
// Copies |text|, with its terminator. NULL means out of memory.
char* pestle_arena_strdup(pestle_arena_t* arena, const char* text);
// Copies a view and adds a terminator.
char* pestle_arena_strndup(pestle_arena_t* arena, pestle_str_t text);

// The parts of |text| that |end| is behind, each ended by 0 instead.
PESTLE_NODISCARD pestle_status_t pestle_arena_split(pestle_arena_t* arena,
                                                    pestle_str_t text, char end,
                                                    const char* const** out,
                                                    size_t* out_count);

// One |Type|, or |count| of them, cleared.
#define PESTLE_ARENA_NEW(arena, Type) \
  ((Type*)pestle_arena_alloc_zero((arena), sizeof(Type), _Alignof(Type)))
#define PESTLE_ARENA_ARRAY(arena, Type, count)                     \
  ((Type*)pestle_arena_alloc_array((arena), (count), sizeof(Type), \
                                   _Alignof(Type)))

pestle_arena_mark_t pestle_arena_mark(const pestle_arena_t* arena);
// Frees everything that was allocated after |mark| was taken.
void pestle_arena_rewind(pestle_arena_t* arena, pestle_arena_mark_t mark);

#endif  // PESTLE_BASE_ARENA_H_
