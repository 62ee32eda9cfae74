// SPDX-License-Identifier: Apache-2.0
// Memory that runs take and give back: outputs, padded inputs, tables of a run. A
// block that was given back is taken again by whoever needs about as much.
#include "session/internal.h"

enum { MOST_BLOCKS = 64 };

_Static_assert(sizeof(session_block_t) <= SESSION_BLOCK_HEAD, "fits before it");

// Sizes are a quarter of a power of two apart, so that few are not taken again.
static size_t round_up(size_t size) {
  size_t step = 64;
  while (size > 8 * step)
    step *= 2;
  return (size + step - 1) / step * step;
}

// The smallest block that is large enough, unless it is much larger: what the runs of
// large batches need serves those of small ones too.
static session_block_t* find(pestle_session_t* s, size_t size) {
  enum { MOST_TIMES = 32 };
  session_block_t **best = NULL, *found = NULL;
  pestle_mutex_lock(&s->block_mutex);
  for (session_block_t** at = &s->blocks; *at; at = &(*at)->next) {
    bool fits = (*at)->size >= size && (*at)->size / MOST_TIMES <= size;
    if (fits && (!best || (*at)->size < (*best)->size)) best = at;
  }
  if (best) {
    found = *best;
    *best = found->next;
    --s->block_count;
    s->block_bytes -= found->size;
  }
  pestle_mutex_unlock(&s->block_mutex);
  return found;
}

void* pestle_session_take(pestle_session_t* s, size_t size) {
  if (size > SIZE_MAX / 4) return NULL;
  size = round_up(size + SESSION_BLOCK_HEAD);
  session_block_t* block = find(s, size);
  if (!block) {
    block = pestle_alloc_aligned(s->allocator, size, 64);
    if (!block) return NULL;
    block->session = s;
    block->size = size;
  }
  return (char*)block + SESSION_BLOCK_HEAD;
}

void pestle_session_give(void* data) {
  if (!data) return;
  session_block_t* block =
      (session_block_t*)(void*)((char*)data - SESSION_BLOCK_HEAD);
  pestle_session_t* s = block->session;
  session_block_t* last = NULL;
  pestle_mutex_lock(&s->block_mutex);
  block->next = s->blocks;
  s->blocks = block;
  ++s->block_count;
  s->block_bytes += block->size;
  if (s->block_count > MOST_BLOCKS) {
    // The one that nobody took for longest.
    session_block_t** at = &s->blocks;
    while ((*at)->next)
      at = &(*at)->next;
    last = *at;
    *at = NULL;
    --s->block_count;
    s->block_bytes -= last->size;
  }
  pestle_mutex_unlock(&s->block_mutex);
  if (last) pestle_free_aligned(s->allocator, last, last->size, 64);
}

void pestle_session_free_blocks(pestle_session_t* s) {
  while (s->blocks) {
    session_block_t* block = s->blocks;
    s->blocks = block->next;
    pestle_free_aligned(s->allocator, block, block->size, 64);
  }
}
