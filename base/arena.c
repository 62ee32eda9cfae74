// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

enum {
#ifdef PESTLE_TIGHT_ARENAS
  // Each request of an arena is one for memory, wherever its blocks lie, so that tests
  // can fail any.
  IS_TIGHT = 1,
  FIRST_BLOCK_SIZE = 1,
  LAST_BLOCK_SIZE = 1,
#else
  IS_TIGHT = 0,
  FIRST_BLOCK_SIZE = 4 * 1024,
  LAST_BLOCK_SIZE = 1024 * 1024,
#endif
  MOST_SPARE = 4 * LAST_BLOCK_SIZE,
};

// The head of a block; its bytes follow.
struct pestle_arena_block_t {
  pestle_arena_block_t* below;
  size_t size;  // of the whole block, head included
};

static uintptr_t block_begin(const pestle_arena_block_t* block) {
  return (uintptr_t)(block + 1);
}

static void free_block(pestle_arena_t* arena, pestle_arena_block_t* block) {
  arena->total_size -= block->size;
  pestle_dealloc(arena->allocator, block, block->size);
}

static void free_top(pestle_arena_t* arena) {
  pestle_arena_block_t* block = arena->top;
  arena->top = block->below;
  free_block(arena, block);
}

// A spare block of at least |size| bytes, or NULL.
static pestle_arena_block_t* take_spare(pestle_arena_t* arena, size_t size) {
  pestle_arena_block_t** place = &arena->spare;
  while (*place && (*place)->size < size)
    place = &(*place)->below;
  pestle_arena_block_t* block = *place;
  if (!block) return NULL;
  *place = block->below;
  arena->spare_size -= block->size;
  return block;
}

static void free_spare(pestle_arena_t* arena) {
  while (arena->spare)
    free_block(arena, take_spare(arena, 0));
}

// Continues in the block that is the top now, at |next|.
static void continue_at(pestle_arena_t* arena, uintptr_t next) {
  arena->next = next;
  arena->end = arena->top ? (uintptr_t)arena->top + arena->top->size : 0;
}

void pestle_arena_init(pestle_allocator_t allocator,
                       pestle_arena_t* out_arena) {
  *out_arena =
      (pestle_arena_t){.allocator = allocator, .block_size = FIRST_BLOCK_SIZE};
}

void pestle_arena_deinit(pestle_arena_t* arena) {
  free_spare(arena);
  while (arena->top)
    free_top(arena);
  continue_at(arena, 0);
  arena->block_size = FIRST_BLOCK_SIZE;
}

void pestle_arena_reset(pestle_arena_t* arena) {
  free_spare(arena);
  // The newest block stays unless it was made for one huge request.
  while (arena->top && arena->top->below) {
    pestle_arena_block_t* top = arena->top;
    if (top->size <= LAST_BLOCK_SIZE) {
      pestle_arena_block_t* below = top->below;
      top->below = below->below;
      free_block(arena, below);
    } else {
      free_top(arena);
    }
  }
  if (arena->top && arena->top->size > LAST_BLOCK_SIZE) free_top(arena);
  continue_at(arena, arena->top ? block_begin(arena->top) : 0);
}

static void put_on_top(pestle_arena_t* arena, pestle_arena_block_t* block) {
  block->below = arena->top;
  arena->top = block;
  continue_at(arena, block_begin(block));
}

// Puts a block on top that has room for |size| bytes at |alignment|.
static bool add_block(pestle_arena_t* arena, size_t size, size_t alignment) {
  size_t needed;
  if (__builtin_add_overflow(size, alignment + sizeof(pestle_arena_block_t),
                             &needed)) {
    return false;
  }
  pestle_arena_block_t* block = take_spare(arena, needed);
  if (block) {
    put_on_top(arena, block);
    return true;
  }
  size_t block_size = needed > arena->block_size ? needed : arena->block_size;
  block = pestle_alloc(arena->allocator, block_size);
  if (!block) return false;
  block->size = block_size;
  arena->total_size += block_size;
  if (arena->block_size < LAST_BLOCK_SIZE) arena->block_size *= 2;
  put_on_top(arena, block);
  return true;
}

void* pestle_arena_alloc(pestle_arena_t* arena, size_t size, size_t alignment) {
  uintptr_t mask = alignment - 1;
  uintptr_t begin = (arena->next + mask) & ~mask;
  if (IS_TIGHT || !arena->top || begin > arena->end ||
      size > arena->end - begin) {
    if (!add_block(arena, size, alignment)) return NULL;
    begin = (arena->next + mask) & ~mask;
  }
  arena->next = begin + size;
  return (void*)begin;
}

void* pestle_arena_alloc_zero(pestle_arena_t* arena, size_t size,
                              size_t alignment) {
  void* data = pestle_arena_alloc(arena, size, alignment);
  if (data) memset(data, 0, size);
  return data;
}

void* pestle_arena_alloc_array(pestle_arena_t* arena, size_t count,
                               size_t element_size, size_t alignment) {
  size_t size;
  if (__builtin_mul_overflow(count, element_size, &size)) return NULL;
  return pestle_arena_alloc_zero(arena, size, alignment);
}

void* pestle_arena_copy(pestle_arena_t* arena, const void* data, size_t size,
                        size_t alignment) {
  void* copy = pestle_arena_alloc(arena, size, alignment);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

char* pestle_arena_strdup(pestle_arena_t* arena, const char* text) {
  return pestle_arena_copy(arena, text, strlen(text) + 1, 1);
}

char* pestle_arena_strndup(pestle_arena_t* arena, pestle_str_t text) {
  if (text.size == SIZE_MAX) return NULL;
  char* copy = pestle_arena_alloc(arena, text.size + 1, 1);
  if (!copy) return NULL;
  if (text.size) memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  return copy;
}

pestle_status_t pestle_arena_split(pestle_arena_t* arena, pestle_str_t text,
                                   char end, const char* const** out,
                                   size_t* out_count) {
  size_t count = 0;
  for (size_t i = 0; i < text.size; ++i)
    count += text.data[i] == end;
  char* copy = pestle_arena_strndup(arena, text);
  const char** parts = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  if (!copy || !parts) return PESTLE_OOM();
  *out = parts;
  *out_count = count;
  for (size_t i = 0; i < count; ++i) {
    parts[i] = copy;
    copy = strchr(copy, end);
    *copy++ = 0;
  }
  return NULL;
}

pestle_arena_mark_t pestle_arena_mark(const pestle_arena_t* arena) {
  return (pestle_arena_mark_t){.top = arena->top, .next = arena->next};
}

// Scratch memory that is rewound again and again at the end of a block would
// otherwise ask for the next block, a mapping of its own, each time.
void pestle_arena_rewind(pestle_arena_t* arena, pestle_arena_mark_t mark) {
  while (arena->top != mark.top) {
    pestle_arena_block_t* block = arena->top;
    if (block->size > LAST_BLOCK_SIZE ||
        arena->spare_size > MOST_SPARE - block->size) {
      free_top(arena);
      continue;
    }
    arena->top = block->below;
    block->below = arena->spare;
    arena->spare = block;
    arena->spare_size += block->size;
  }
  continue_at(arena, mark.next);
}
