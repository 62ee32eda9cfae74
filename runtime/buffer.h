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

#include "runtime/device.h"

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
