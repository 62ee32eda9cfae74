// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena_pool.h"

#include "base/mem.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/executable.h"

struct pestle_arena_pool_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_device_t* device;  // of all pieces; NULL before the first
  pestle_mutex_t mutex;
  pestle_arena_piece_t* free;  // the one that was given back last comes first
  size_t bytes;
};

pestle_status_t pestle_arena_pool_create(pestle_context_t* context,
                                         pestle_arena_pool_t** out_pool) {
  pestle_arena_pool_t* pool =
      pestle_alloc_zero(context->core.allocator, sizeof(*pool));
  *out_pool = pool;
  if (!pool) return PESTLE_OOM();
  pestle_refcount_init(&pool->refcount);
  pool->context = context;
  pestle_mutex_init(&pool->mutex);
  return NULL;
}

void pestle_arena_pool_retain(pestle_arena_pool_t* pool) {
  pestle_refcount_retain(&pool->refcount);
}

static size_t size_of(const pestle_block_t* block) {
  return block ? block->size : 0;
}

static void destroy_piece(pestle_arena_pool_t* pool,
                          pestle_arena_piece_t* piece) {
  pestle_device_free(pool->device, piece->arena);
  pestle_device_free(pool->device, piece->scratch);
  pestle_dealloc(pool->context->core.allocator, piece, sizeof(*piece));
}

void pestle_arena_pool_release(pestle_arena_pool_t* pool) {
  if (!pool || !pestle_refcount_release(&pool->refcount)) return;
  while (pool->free) {
    pestle_arena_piece_t* piece = pool->free;
    pool->free = piece->next;
    destroy_piece(pool, piece);
  }
  pestle_mutex_deinit(&pool->mutex);
  pestle_dealloc(pool->context->core.allocator, pool, sizeof(*pool));
}

static bool is_enough(const pestle_arena_piece_t* piece, size_t arena,
                      size_t scratch) {
  return size_of(piece->arena) >= arena && size_of(piece->scratch) >= scratch;
}

// Whether |a| is to be taken rather than |b|: large enough before not, then the smaller
// one of those that are, the larger one of those that are not.
static bool is_better(const pestle_arena_piece_t* a,
                      const pestle_arena_piece_t* b, size_t arena,
                      size_t scratch) {
  bool enough = is_enough(a, arena, scratch);
  if (enough != is_enough(b, arena, scratch)) return enough;
  size_t x = size_of(a->arena) + size_of(a->scratch);
  size_t y = size_of(b->arena) + size_of(b->scratch);
  return enough ? x < y : x > y;
}

// The lock is held; NULL: none is free.
static pestle_arena_piece_t* unlink_best(pestle_arena_pool_t* pool,
                                         const pestle_arena_piece_t* latest,
                                         size_t arena, size_t scratch) {
  pestle_arena_piece_t** best = NULL;
  for (pestle_arena_piece_t** at = &pool->free; *at; at = &(*at)->next) {
    if (*at == latest && is_enough(*at, arena, scratch)) {
      best = at;
      break;
    }
    if (!best || is_better(*at, *best, arena, scratch)) best = at;
  }
  if (!best) return NULL;
  pestle_arena_piece_t* piece = *best;
  *best = piece->next;
  return piece;
}

static pestle_status_t grow(pestle_arena_pool_t* pool, pestle_block_t** block,
                            size_t size) {
  size_t before = size_of(*block);
  if (before >= size) return NULL;
  pestle_device_free(pool->device, *block);
  *block = NULL;
  pestle_status_t status = pestle_device_allocate(pool->device, size, block);
  pestle_mutex_lock(&pool->mutex);
  pool->bytes += size_of(*block) - before;
  pestle_mutex_unlock(&pool->mutex);
  return status;
}

pestle_status_t pestle_arena_pool_take(pestle_arena_pool_t* pool,
                                       pestle_device_t* device,
                                       const pestle_arena_piece_t* latest,
                                       size_t arena, size_t scratch,
                                       pestle_arena_piece_t** out_piece) {
  pestle_mutex_lock(&pool->mutex);
  if (!pool->device) pool->device = device;
  pestle_arena_piece_t* piece = unlink_best(pool, latest, arena, scratch);
  pestle_mutex_unlock(&pool->mutex);
  if (!piece) {
    piece = pestle_alloc_zero(pool->context->core.allocator, sizeof(*piece));
    if (!piece) return PESTLE_OOM();
  }
  pestle_status_t status = grow(pool, &piece->arena, arena);
  if (!status) status = grow(pool, &piece->scratch, scratch);
  if (status) {
    pestle_arena_pool_give(pool, piece);
  } else {
    *out_piece = piece;
  }
  return status;
}

void pestle_arena_pool_give(pestle_arena_pool_t* pool,
                            pestle_arena_piece_t* piece) {
  pestle_mutex_lock(&pool->mutex);
  piece->next = pool->free;
  pool->free = piece;
  pestle_mutex_unlock(&pool->mutex);
}

size_t pestle_arena_pool_bytes(pestle_arena_pool_t* pool) {
  pestle_mutex_lock(&pool->mutex);
  size_t bytes = pool->bytes;
  pestle_mutex_unlock(&pool->mutex);
  return bytes;
}

void pestle_executable_share_arenas(pestle_executable_t* e,
                                    pestle_arena_pool_t* pool) {
  if (e->remote || e->pool) return;
  pestle_arena_pool_retain(pool);
  e->pool = pool;
}
