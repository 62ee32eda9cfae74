// SPDX-License-Identifier: Apache-2.0
// One connection between two ranks: a stream of bytes in each direction, neither of
// which ever blocks.
#ifndef PESTLE_RUNTIME_PROCESS_LINK_H_
#define PESTLE_RUNTIME_PROCESS_LINK_H_

#include "base/thread.h"
#include "pestle/allocator.h"
#include "runtime/socket.h"

// A ring in shared memory, with one writer and one reader.
typedef struct pestle_ring_t {
  _Alignas(64) atomic_uint_fast64_t head;  // bytes ever written
  _Alignas(64) atomic_uint_fast64_t tail;  // bytes ever read
  // The reader sleeps until there are bytes; the writer until there is room.
  _Alignas(64) atomic_uint reader_sleeps;
  atomic_uint writer_sleeps;
  _Alignas(64) char data[];
} pestle_ring_t;

typedef struct pestle_link_t {
  pestle_socket_t socket;
  bool at_end;                    // the other end has closed
  pestle_ring_t *in, *out;        // NULL: bytes go through the socket
  size_t ring_bytes;              // of data, a power of two
  pestle_shared_memory_t memory;  // the other end's
  uint64_t position;              // bytes ever consumed
  // What has come through the socket and is not consumed: |begin| is so many beyond a
  // multiple of 16 as |position|.
  char* room;
  size_t begin, end;
} pestle_link_t;

enum { PESTLE_LINK_ROOM = 1 << 18 };  // bytes of |room|

// Takes over some of |size| bytes: how many, 0 when there is no room for any.
size_t pestle_link_write(pestle_link_t* link, const void* data, size_t size);
// Bytes that are there: where they lie, and how many follow each other. The bytes of
// one message begin at multiples of 16 from each other and do so in memory as well.
// Reads what the socket has if fewer than |wanted| are there.
size_t pestle_link_peek(pestle_link_t* link, size_t wanted,
                        const char** out_data);
// What a link through a socket has read and nobody has consumed.
static inline size_t pestle_link_there(const pestle_link_t* link) {
  return link->end - link->begin;
}
// The first |size| of them are used up.
void pestle_link_consume(pestle_link_t* link, size_t size);
// Copies up to |size| bytes out; how many.
size_t pestle_link_read(pestle_link_t* link, void* out, size_t size);

// Before a rank sleeps: from now on the other end wakes it, through the socket, when
// there are bytes or room. Then it has to look once more.
void pestle_link_will_sleep(pestle_link_t* link, bool reads, bool writes);
// What the other end has sent to wake it, and whether it has gone.
void pestle_link_has_slept(pestle_link_t* link);

void pestle_link_close(pestle_link_t* link, pestle_allocator_t allocator);

#endif  // PESTLE_RUNTIME_PROCESS_LINK_H_
