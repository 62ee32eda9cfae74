// SPDX-License-Identifier: Apache-2.0
// Memory for the steps of runs that executables of one context share: as many arenas as
// their runs overlapped, each as large as the largest plan that ran in it needed. Without
// a pool each executable keeps its own (runtime/frame.c).
#ifndef PESTLE_RUNTIME_ARENA_POOL_H_
#define PESTLE_RUNTIME_ARENA_POOL_H_

#include <stddef.h>

#include "pestle/runtime.h"

struct pestle_block_t;
typedef struct pestle_arena_pool_s pestle_arena_pool_t;

// An arena and the scratch memory of its run, which whoever took it has for himself.
typedef struct pestle_arena_piece_t {
  struct pestle_arena_piece_t* next;
  struct pestle_block_t* arena;    // NULL: none yet
  struct pestle_block_t* scratch;  // likewise
} pestle_arena_piece_t;

PESTLE_NODISCARD pestle_status_t pestle_arena_pool_create(
    pestle_context_t* context, pestle_arena_pool_t** out_pool);
void pestle_arena_pool_retain(pestle_arena_pool_t* pool);
// The last reference frees what was given back. The context must be alive.
void pestle_arena_pool_release(pestle_arena_pool_t* pool);

// A piece of memory of the host |device| with at least these bytes: |latest|, which is
// only compared, where it is free and large enough; else the smallest that is; else the
// largest free one, made larger; else a new one. Any thread.
PESTLE_NODISCARD pestle_status_t
pestle_arena_pool_take(pestle_arena_pool_t* pool, pestle_device_t* device,
                       const pestle_arena_piece_t* latest, size_t arena,
                       size_t scratch, pestle_arena_piece_t** out_piece);
void pestle_arena_pool_give(pestle_arena_pool_t* pool,
                            pestle_arena_piece_t* piece);
// Bytes of all pieces, taken or not.
size_t pestle_arena_pool_bytes(pestle_arena_pool_t* pool);

// Runs of |executable| take their arena from |pool|, which it keeps. Before the first
// run. One whose home is not the host keeps its own: what is queued there may be under
// way after the run, and recordings hold addresses.
void pestle_executable_share_arenas(pestle_executable_t* executable,
                                    pestle_arena_pool_t* pool);

#endif  // PESTLE_RUNTIME_ARENA_POOL_H_
