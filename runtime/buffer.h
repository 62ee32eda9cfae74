// SPDX-License-Identifier: Apache-2.0
// The inside of a buffer: a block of device memory, or memory that somebody else
// owns, with a count of references.
//
// A run takes references too, of the buffers that it reads and writes, until it
// is done. Those are counted beside all others in one number, so that one look
// tells whether anybody but runs and the one who asks refers to the buffer: only
// such memory may be written by a run that was given it.
#ifndef PESTLE_RUNTIME_BUFFER_H_
#define PESTLE_RUNTIME_BUFFER_H_

#include "base/vec.h"
#include "runtime/completion.h"

struct pestle_buffer_s {
  pestle_block_t block;  // first: the record is the block's
  // References in the low half, those of runs among them in the high one.
  atomic_uint_fast64_t holds;
  pestle_device_t* device;
  size_t size;  // as asked for
  uint32_t flags;
  int32_t extent_count;
  int64_t* extents;  // of a bounded output, known when it is ready; or NULL
  void (*release)(void* self);
  void* release_self;
  // -- under the mutex of the device's memory --
  // Of the run that makes it; NULL: it is made, and nothing failed.
  _Atomic(pestle_completion_t*) defined;
  // Of runs that read it, the latest of each timeline; some may be done.
  pestle_completion_t** uses;
  uint32_t use_count, use_room;
};

#define PESTLE_BUFFER_HOLD UINT64_C(1)
#define PESTLE_BUFFER_RUN_HOLD (UINT64_C(1) << 32 | 1)

// Buffers of |size| bytes whose contents are undefined, without the checks of
// the public function.
PESTLE_NODISCARD pestle_status_t pestle_buffer_make(
    pestle_device_t* device, size_t size, pestle_buffer_t** out_buffer);
// Room for the real extents of a bounded output.
PESTLE_NODISCARD pestle_status_t
pestle_buffer_make_extents(pestle_buffer_t* buffer, int32_t rank);

void pestle_buffer_drop_extents(pestle_buffer_t* buffer);

// Takes and drops a reference of a run.
void pestle_buffer_hold(pestle_buffer_t* buffer);
void pestle_buffer_let_go(pestle_buffer_t* buffer);

// --- buffer_order.c: what makes a buffer, and what still reads it ---

typedef PESTLE_VEC(pestle_completion_t*) pestle_completions_t;

// The completion of the run that makes |buffer|, a hold of the caller's; NULL: its
// contents are there.
pestle_completion_t* pestle_buffer_defined(pestle_buffer_t* buffer);
// Waits for it. The failure of the run, if it failed.
PESTLE_NODISCARD pestle_status_t pestle_buffer_await(pestle_buffer_t* buffer);
// Waits for that and for all runs that read |buffer|.
PESTLE_NODISCARD pestle_status_t
pestle_buffer_await_uses(pestle_buffer_t* buffer);
// |completion| (NULL: now) is of a run that writes all of |buffer|, after all that
// use it. Takes a hold of it.
void pestle_buffer_set_defined(pestle_buffer_t* buffer,
                               pestle_completion_t* completion);
// |completion| is of a run that reads |buffer|.
PESTLE_NODISCARD pestle_status_t
pestle_buffer_add_use(pestle_buffer_t* buffer, pestle_completion_t* completion);
// Appends holds of the runs that read |buffer|.
PESTLE_NODISCARD pestle_status_t pestle_buffer_append_uses(
    pestle_buffer_t* buffer, pestle_completions_t* completions);
// Forgets all of it, when the buffer ends.
void pestle_buffer_forget(pestle_buffer_t* buffer);

// Whether the caller, who has one reference, may have a run write to the memory:
// nobody else sees it but runs.
static inline bool pestle_buffer_may_take(const pestle_buffer_t* buffer) {
  uint64_t holds = atomic_load_explicit(&buffer->holds, memory_order_acquire);
  bool foreign = (buffer->flags & PESTLE_BUFFER_WRAPPED) &&
                 !(buffer->flags & PESTLE_BUFFER_EXCLUSIVE);
  return (uint32_t)holds == (uint32_t)(holds >> 32) + 1 && !foreign &&
         !(buffer->flags & PESTLE_BUFFER_READ_ONLY);
}

#endif  // PESTLE_RUNTIME_BUFFER_H_
