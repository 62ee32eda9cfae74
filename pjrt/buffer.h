// SPDX-License-Identifier: Apache-2.0
// Buffers of the framework: a shape, memory of the device, and the event of that
// memory being filled. A buffer exists before its contents do.
#ifndef PESTLE_PJRT_BUFFER_H_
#define PESTLE_PJRT_BUFFER_H_

#include "base/thread.h"
#include "pjrt/client.h"
#include "pjrt/event.h"
#include "pjrt/shape.h"

struct PJRT_Buffer {
  pestle_refcount_t references;  // the framework's, and of external references
  PJRT_Device* device;
  pestle_pjrt_shape_t shape;
  int64_t minor_to_major[PESTLE_MAX_RANK];  // its layout, as it is asked for
  PJRT_Event* ready;                        // NULL: it was from the start
  atomic_bool is_deleted;
  atomic_bool
      is_held;      // its memory comes when its execution is queued (merge.h)
  uint64_t serial;  // of the execution that made it, and which of its results
  uint32_t index;   // it is; 0: none did, or nobody counted
  pestle_mutex_t mutex;     // of what follows
  pestle_buffer_t* memory;  // NULL: none, or it was given up
  size_t external;          // who reads the memory at its address
};

// A buffer of |device| without memory; |ready| (NULL: ready) is retained. NULL
// when out of memory.
PJRT_Buffer* pestle_pjrt_buffer_create(PJRT_Device* device,
                                       const pestle_pjrt_shape_t* shape,
                                       PJRT_Event* ready);
void pestle_pjrt_buffer_release(PJRT_Buffer* buffer);
// Before anybody else has seen it.
void pestle_pjrt_buffer_set_shape(PJRT_Buffer* buffer,
                                  const pestle_pjrt_shape_t* shape);
// Another hold of its memory, NULL when it has none of its own (no elements).
// Fails for one that was deleted or donated.
PJRT_Error* pestle_pjrt_buffer_hold(PJRT_Buffer* buffer,
                                    pestle_buffer_t** out_memory);
// The same where |buffer| may be the result of an execution that is held, whose
// memory then is NULL.
PJRT_Error* pestle_pjrt_buffer_hold_now(PJRT_Buffer* buffer,
                                        pestle_buffer_t** out_memory);
// Gives a buffer that was held its memory, which is taken over.
void pestle_pjrt_buffer_deliver(PJRT_Buffer* buffer, pestle_buffer_t* memory);
// Gives the buffer up: it is deleted from now on, and |*out_memory| is a hold of
// its memory. |*out_is_ours|: it was the buffer's own, and nobody outside reads
// the memory, which may be overwritten.
PJRT_Error* pestle_pjrt_buffer_consume(PJRT_Buffer* buffer,
                                       pestle_buffer_t** out_memory,
                                       bool* out_is_ours);
// Undoes that, for an execution that did not take place.
void pestle_pjrt_buffer_restore(PJRT_Buffer* buffer, pestle_buffer_t* memory);
bool pestle_pjrt_buffer_is_ready(const PJRT_Buffer* buffer);
// The error of who would wait for ever for the contents: a Python callback that asks
// on the device's thread for what that thread makes after it, or a child of fork().
// NULL: they come, or are there.
PJRT_Error* pestle_pjrt_buffer_check_arrives(PJRT_Buffer* buffer);

#endif  // PESTLE_PJRT_BUFFER_H_
