// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_link.h"

#include <string.h>

#include "base/mem.h"

// So much is copied before the other end may see it: both work at once, in caches.
enum { PIECE = 1 << 16 };

// --- Rings ---

static void ring_bell(pestle_link_t* link, atomic_uint* sleeps) {
  // Either the sleeper sees what has just been written, or this sees it sleep.
  atomic_thread_fence(memory_order_seq_cst);
  if (!atomic_load_explicit(sleeps, memory_order_relaxed)) return;
  if (!atomic_exchange(sleeps, 0)) return;
  (void)pestle_socket_send(link->socket, "!", 1);
}

static size_t write_ring(pestle_link_t* link, const char* data, size_t size) {
  pestle_ring_t* ring = link->out;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
  uint64_t used = head - tail;
  size_t at = (size_t)(head & (link->ring_bytes - 1));
  size_t n = used >= link->ring_bytes ? 0 : (size_t)(link->ring_bytes - used);
  if (n > size) n = size;
  if (n > link->ring_bytes - at) n = link->ring_bytes - at;
  if (n > PIECE) n = PIECE;
  if (!n) return 0;
  memcpy(ring->data + at, data, n);
  atomic_store_explicit(&ring->head, head + n, memory_order_release);
  ring_bell(link, &ring->reader_sleeps);
  return n;
}

static size_t peek_ring(pestle_link_t* link, const char** out) {
  pestle_ring_t* ring = link->in;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
  size_t at = (size_t)(link->position & (link->ring_bytes - 1));
  uint64_t n = head - link->position;
  if (n > link->ring_bytes - at) n = link->ring_bytes - at;
  *out = ring->data + at;
  return (size_t)n;
}

// --- Sockets ---

// Moves what is there to the front, as far as the alignment lets it.
static void make_room(pestle_link_t* link) {
  size_t size = link->end - link->begin, to = (size_t)(link->position & 15);
  if (link->begin == to) return;
  if (size) memmove(link->room + to, link->room + link->begin, size);
  link->begin = to;
  link->end = to + size;
}

static void fill(pestle_link_t* link) {
  if (link->at_end) return;
  if (link->begin == link->end || link->end == PESTLE_LINK_ROOM)
    make_room(link);
  if (link->end == PESTLE_LINK_ROOM) return;
  int64_t got = pestle_socket_receive(link->socket, link->room + link->end,
                                      PESTLE_LINK_ROOM - link->end);
  if (got < 0) {
    link->at_end = true;
  } else {
    link->end += (size_t)got;
  }
}

// --- Both ---

size_t pestle_link_write(pestle_link_t* link, const void* data, size_t size) {
  if (link->out) return write_ring(link, data, size);
  int64_t sent = pestle_socket_send(link->socket, data, size);
  if (sent < 0) link->at_end = true;
  return sent < 0 ? 0 : (size_t)sent;
}

size_t pestle_link_peek(pestle_link_t* link, size_t wanted, const char** out) {
  if (link->in) return peek_ring(link, out);
  if (link->end - link->begin < wanted) fill(link);
  *out = link->room + link->begin;
  return link->end - link->begin;
}

void pestle_link_consume(pestle_link_t* link, size_t size) {
  link->position += size;
  if (!link->in) {
    link->begin += size;
    return;
  }
  atomic_store_explicit(&link->in->tail, link->position, memory_order_release);
  ring_bell(link, &link->in->writer_sleeps);
}

size_t pestle_link_read(pestle_link_t* link, void* out, size_t size) {
  const char* data;
  if (!link->in && link->begin == link->end && size >= PESTLE_LINK_ROOM / 4) {
    // Past the room: it is not copied twice.
    int64_t got = pestle_socket_receive(link->socket, out, size);
    if (got < 0) link->at_end = true;
    if (got <= 0) return 0;
    link->position += (uint64_t)got;
    return (size_t)got;
  }
  size_t n = pestle_link_peek(link, size, &data);
  if (n > size) n = size;
  if (link->in && n > PIECE) n = PIECE;
  if (!n) return 0;
  memcpy(out, data, n);
  pestle_link_consume(link, n);
  return n;
}

void pestle_link_will_sleep(pestle_link_t* link, bool reads, bool writes) {
  if (!link->in) return;
  if (reads) atomic_store(&link->in->reader_sleeps, 1);
  if (writes) atomic_store(&link->out->writer_sleeps, 1);
  atomic_thread_fence(memory_order_seq_cst);  // before it looks once more
}

void pestle_link_has_slept(pestle_link_t* link) {
  char bells[64];
  int64_t got;
  if (!link->in) return;
  do {
    got = pestle_socket_receive(link->socket, bells, sizeof(bells));
  } while (got == (int64_t)sizeof(bells));
  if (got < 0) link->at_end = true;
}

void pestle_link_close(pestle_link_t* link, pestle_allocator_t allocator) {
  pestle_socket_close(link->socket);
  link->socket = -1;
  pestle_shared_memory_close(&link->memory);
  pestle_free_aligned(allocator, link->room, PESTLE_LINK_ROOM, 64);
  link->room = NULL;
}
