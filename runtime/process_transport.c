// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "runtime/process_link.h"

// How long a connection between ranks may take to show that it knows the secret.
static const int64_t greet_ns = 5000000000;
enum { RING_SPACE = 1 << 22, LEAST_RING = 1 << 16, MOST_RING = 1 << 19 };

// What a rank puts into the store for the others.
typedef struct card_t {
  char host[PESTLE_HOST_SIZE], identity[PESTLE_HOST_SIZE];
  uint64_t port;
  int64_t process;
  int64_t handle;  // of its shared memory; below 0: none
  uint64_t memory_size, ring_bytes;
  unsigned char token[32];  // its memory begins with it
} card_t;

// --- Failure ---

pestle_status_t pestle_process_ended(pestle_process_comm_t* comm,
                                     const pestle_collective_t* op) {
  return pestle_status_annotate(pestle_store_failure(comm->store),
                                "in rank %d at collective %" PRIu64 " (%s)",
                                (int)comm->rank, op->sequence, op->name);
}

static pestle_status_t end_with(pestle_process_comm_t* comm,
                                const pestle_collective_t* op,
                                pestle_status_t why) {
  pestle_status_release(pestle_store_fail(comm->store, why));
  return pestle_process_ended(comm, op);
}

pestle_status_t pestle_process_gone(pestle_process_comm_t* comm,
                                    const pestle_collective_t* op,
                                    int32_t peer) {
  return end_with(
      comm, op,
      PESTLE_ERROR(UNAVAILABLE,
                   "rank %d has gone: its connection to rank %d has ended at "
                   "collective %" PRIu64 " (%s)",
                   (int)peer, (int)comm->rank, op->sequence, op->name));
}

static bool is_member(const pestle_collective_t* op, int32_t rank) {
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE)
    return rank == op->source || rank == op->target;
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    if (op->ranks[k] == rank) return true;
  }
  return false;
}

#define SILENT_NS INT64_C(1800000000)

// Who is furthest behind; of those that have come, who has been silent for longest.
static int32_t find_late(const pestle_process_comm_t* comm,
                         const pestle_collective_t* op,
                         const pestle_store_seen_t* seen, int32_t peer) {
  int32_t behind = -1, silent = peer < 0 ? -1 : peer;
  for (int32_t i = 0; i < comm->size; ++i) {
    if (i == comm->rank || !is_member(op, i)) continue;
    if (seen[i].at.arrived < op->sequence &&
        (behind < 0 || seen[i].at.arrived < seen[behind].at.arrived)) {
      behind = i;
    }
    if (silent < 0 || seen[i].heard_ns > seen[silent].heard_ns) silent = i;
  }
  if (behind >= 0 || peer != PESTLE_PROCESS_DEVICE)
    return behind >= 0 ? behind : silent;
  // Ranks say where they are once a second.
  return silent >= 0 && seen[silent].heard_ns > SILENT_NS ? silent : -1;
}

static pestle_status_t late_status(const pestle_process_comm_t* comm,
                                   const pestle_collective_t* op, int32_t rank,
                                   const pestle_store_seen_t* seen) {
  double seconds = (double)comm->deadline_ns * 1e-9;
  bool came = seen->at.arrived >= op->sequence;
  if (!seen->at.arrived) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "rank %d has not come to collective %" PRIu64
                        " (%s) for %.1f s, nor to any before it; it was last "
                        "heard of %.1f s ago",
                        (int)rank, op->sequence, op->name, seconds,
                        (double)seen->heard_ns * 1e-9);
  }
  return PESTLE_ERROR(
      DEADLINE_EXCEEDED,
      "rank %d has %s collective %" PRIu64
      " (%s) for %.1f s; it was last seen at %" PRIu64
      " (%s), %.1f s ago, and heard of %.1f s ago",
      (int)rank, came ? "come to, but not done its part of," : "not come to",
      op->sequence, op->name, seconds, seen->at.arrived,
      seen->at.done == seen->at.arrived ? "done" : "not done",
      (double)seen->since_ns * 1e-9, (double)seen->heard_ns * 1e-9);
}

pestle_status_t pestle_process_late(pestle_process_comm_t* comm,
                                    const pestle_collective_t* op,
                                    int32_t peer) {
  size_t bytes = (size_t)comm->size * sizeof(pestle_store_seen_t);
  pestle_store_seen_t* seen = pestle_alloc(comm->allocator, bytes);
  pestle_status_t why = NULL;
  if (!seen) return end_with(comm, op, PESTLE_OOM());
  pestle_status_t status = pestle_store_ask(comm->store, seen);
  if (!status) {
    int32_t rank = find_late(comm, op, seen, peer);
    if (rank >= 0) why = late_status(comm, op, rank, &seen[rank]);
  } else if (pestle_status_code(status) == PESTLE_STATUS_DEADLINE_EXCEEDED) {
    why = PESTLE_ERROR(
        DEADLINE_EXCEEDED,
        "rank 0 does not answer: rank %d has waited at collective %" PRIu64
        " (%s) for %.1f s",
        (int)comm->rank, op->sequence, op->name,
        (double)comm->deadline_ns * 1e-9);
  }
  pestle_status_release(status);
  pestle_dealloc(comm->allocator, seen, bytes);
  if (!why && peer == PESTLE_PROCESS_DEVICE) {
    why = PESTLE_ERROR(DEADLINE_EXCEEDED,
                       "all ranks have come to collective %" PRIu64
                       " (%s), and on rank %d's device it has not ended for "
                       "%.1f s",
                       op->sequence, op->name, (int)comm->rank,
                       (double)comm->deadline_ns * 1e-9);
  }
  if (!why) {
    why = PESTLE_ERROR(DEADLINE_EXCEEDED,
                       "rank %d has waited at collective %" PRIu64
                       " (%s) for %.1f s",
                       (int)comm->rank, op->sequence, op->name,
                       (double)comm->deadline_ns * 1e-9);
  }
  return end_with(comm, op, why);
}

// --- Cards ---

static size_t slot_bytes(uint64_t ring_bytes) {
  return sizeof(pestle_ring_t) + (size_t)ring_bytes;
}

// The ring to |rank| in the memory of whoever has made it.
static pestle_ring_t* ring_to(const pestle_shared_memory_t* memory,
                              uint64_t ring_bytes, int32_t rank) {
  return (pestle_ring_t*)(void*)(memory->data + 64 +
                                 (size_t)rank * slot_bytes(ring_bytes));
}

static void offer_memory(pestle_process_comm_t* comm, card_t* card) {
  uint64_t ring = MOST_RING;
  while (ring > LEAST_RING && ring * (uint64_t)comm->size > RING_SPACE)
    ring /= 2;
  size_t size = 64 + (size_t)comm->size * slot_bytes(ring);
  pestle_status_t status = pestle_shared_memory_create(size, &comm->memory);
  if (status) {  // the sockets do it all
    pestle_status_release(status);
    return;
  }
  memcpy(comm->memory.data, card->token, sizeof(card->token));
  card->handle = comm->memory.handle;
  card->memory_size = size;
  card->ring_bytes = ring;
}

static void card_key(uint64_t id, int32_t rank, char out[64]) {
  (void)snprintf(out, 64, "comm/%" PRIu64 "/%d", id, (int)rank);
}

static pestle_status_t put_card(pestle_process_comm_t* comm, uint64_t id,
                                pestle_socket_t listening, bool may_share,
                                card_t* card) {
  char key[64];
  uint16_t port;
  memset(card, 0, sizeof(*card));
  pestle_socket_local(listening, card->host, &port);
  card->port = port;
  card->handle = -1;
  card->process = pestle_process_id();
  pestle_host_identity(card->identity);
  PESTLE_TRY(pestle_random_bytes(card->token, sizeof(card->token)));
  if (may_share) offer_memory(comm, card);
  card_key(id, comm->rank, key);
  return pestle_store_put(comm->store, key, card, sizeof(*card));
}

static pestle_status_t get_card(pestle_process_comm_t* comm, uint64_t id,
                                int32_t rank, int64_t deadline_ns,
                                card_t* card) {
  char key[64];
  size_t size = sizeof(*card);
  card_key(id, rank, key);
  PESTLE_TRY(pestle_store_get(comm->store, key, deadline_ns, card, &size));
  if (size != sizeof(*card) || !memchr(card->host, 0, sizeof(card->host)) ||
      !memchr(card->identity, 0, sizeof(card->identity))) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "what rank %d tells of itself is not understood; all "
                        "ranks need the same Pestle",
                        (int)rank);
  }
  return NULL;
}

// --- Connections ---

// Both ends show that they know the job's secret, as with the store.
typedef struct greeting_t {
  uint64_t id;
  int32_t from, to;
  unsigned char nonce[32];
} greeting_t;

static void prove(const pestle_process_comm_t* comm, char who,
                  const greeting_t* a, const unsigned char nonce[32],
                  unsigned char out[PESTLE_SHA256_SIZE]) {
  pestle_hmac_t mac;
  pestle_hmac_init(pestle_store_secret(comm->store), 32, &mac);
  pestle_hmac_update(&mac, "link", 4);
  pestle_hmac_update(&mac, &who, 1);
  pestle_hmac_update(&mac, a, sizeof(*a));
  pestle_hmac_update(&mac, nonce, 32);
  pestle_hmac_finish(&mac, out);
}

static pestle_status_t call_peer(pestle_process_comm_t* comm, uint64_t id,
                                 int32_t peer, const card_t* card,
                                 int64_t deadline_ns) {
  pestle_link_t* link = &comm->links[peer];
  pestle_socket_t wake = pestle_store_wake(comm->store);
  greeting_t hello = {.id = id, .from = comm->rank, .to = peer};
  unsigned char answer[64], mac[PESTLE_SHA256_SIZE];
  PESTLE_TRY(pestle_random_bytes(hello.nonce, sizeof(hello.nonce)));
  PESTLE_TRY(pestle_socket_connect(card->host, (uint16_t)card->port,
                                   deadline_ns, &link->socket));
  bool ok = pestle_socket_send_all(link->socket, &hello, sizeof(hello),
                                   deadline_ns, wake) &&
            pestle_socket_receive_all(link->socket, answer, sizeof(answer),
                                      deadline_ns, wake);
  if (ok) {
    prove(comm, 'A', &hello, answer, mac);
    ok = pestle_digest_equal(mac, answer + 32);
  }
  if (ok) {
    prove(comm, 'C', &hello, answer, mac);
    ok = pestle_socket_send_all(link->socket, mac, sizeof(mac), deadline_ns,
                                wake);
  }
  if (ok) return NULL;
  return PESTLE_ERROR(UNAVAILABLE,
                      "rank %d does not answer rank %d at %s, port %d",
                      (int)peer, (int)comm->rank, card->host, (int)card->port);
}

// A stranger is sent away: the caller goes on listening.
static void take_call(pestle_process_comm_t* comm, uint64_t id,
                      pestle_socket_t socket) {
  greeting_t hello;
  unsigned char answer[64], mac[PESTLE_SHA256_SIZE];
  pestle_socket_t wake = pestle_store_wake(comm->store);
  int64_t end = pestle_clock_ns() + greet_ns;
  bool ok =
      pestle_socket_receive_all(socket, &hello, sizeof(hello), end, wake) &&
      hello.id == id && hello.to == comm->rank && hello.from > comm->rank &&
      hello.from < comm->size && comm->links[hello.from].socket < 0;
  pestle_status_t status = ok ? pestle_random_bytes(answer, 32) : NULL;
  ok = ok && !status;
  pestle_status_release(status);
  if (ok) {
    prove(comm, 'A', &hello, answer, answer + 32);
    ok = pestle_socket_send_all(socket, answer, sizeof(answer), end, wake) &&
         pestle_socket_receive_all(socket, mac, sizeof(mac), end, wake);
  }
  if (ok) {
    unsigned char want[PESTLE_SHA256_SIZE];
    prove(comm, 'C', &hello, answer, want);
    ok = pestle_digest_equal(mac, want);
  }
  if (ok) {
    comm->links[hello.from].socket = socket;
  } else {
    pestle_socket_close(socket);
  }
}

static int32_t find_unlinked(const pestle_process_comm_t* comm) {
  for (int32_t i = comm->rank + 1; i < comm->size; ++i) {
    if (comm->links[i].socket < 0) return i;
  }
  return -1;
}

static pestle_status_t take_calls(pestle_process_comm_t* comm, uint64_t id,
                                  pestle_socket_t listening,
                                  int64_t deadline_ns) {
  pestle_poll_t both[2] = {
      {listening, PESTLE_POLL_READ, 0},
      {pestle_store_wake(comm->store), PESTLE_POLL_READ, 0}};
  for (int32_t lacks; (lacks = find_unlinked(comm)) >= 0;) {
    pestle_socket_t socket = pestle_socket_accept(listening);
    if (socket >= 0) {
      take_call(comm, id, socket);
      continue;
    }
    if (pestle_store_has_failed(comm->store))
      return pestle_store_failure(comm->store);
    if (pestle_clock_ns() >= deadline_ns) {
      return PESTLE_ERROR(DEADLINE_EXCEEDED,
                          "rank %d has not connected to rank %d", (int)lacks,
                          (int)comm->rank);
    }
    (void)pestle_poll(both, 2, 100);
  }
  return NULL;
}

// --- Shared memory ---

static bool open_memory(pestle_process_comm_t* comm, const card_t* own,
                        const card_t* card, int32_t peer) {
  pestle_link_t* link = &comm->links[peer];
  if (own->handle < 0 || card->handle < 0 ||
      own->ring_bytes != card->ring_bytes ||
      strcmp(own->identity, card->identity) != 0) {
    return false;
  }
  pestle_status_t status =
      pestle_shared_memory_open(card->process, (int32_t)card->handle,
                                (size_t)card->memory_size, &link->memory);
  bool ok = !status && card->memory_size == own->memory_size &&
            !memcmp(link->memory.data, card->token, sizeof(card->token));
  pestle_status_release(status);
  return ok;
}

// Both ends have to have opened what the other has.
static pestle_status_t agree(pestle_process_comm_t* comm, const card_t* own,
                             const card_t* card, int32_t peer,
                             int64_t deadline_ns) {
  pestle_link_t* link = &comm->links[peer];
  pestle_socket_t wake = pestle_store_wake(comm->store);
  char mine = open_memory(comm, own, card, peer) ? 'm' : 's', yours = 0;
  if (!pestle_socket_send_all(link->socket, &mine, 1, deadline_ns, wake) ||
      !pestle_socket_receive_all(link->socket, &yours, 1, deadline_ns, wake)) {
    return PESTLE_ERROR(UNAVAILABLE, "rank %d has gone while ranks connected",
                        (int)peer);
  }
  if (mine == 'm' && yours == 'm') {
    link->out = ring_to(&comm->memory, own->ring_bytes, peer);
    link->in = ring_to(&link->memory, own->ring_bytes, comm->rank);
    link->ring_bytes = (size_t)own->ring_bytes;
    return NULL;
  }
  pestle_shared_memory_close(&link->memory);
  link->room = pestle_alloc_aligned(comm->allocator, PESTLE_LINK_ROOM, 64);
  return link->room ? NULL : PESTLE_OOM();
}

// --- Life ---

static void destroy(void* self, pestle_comm_t* any) {
  pestle_process_comm_t* comm = (pestle_process_comm_t*)any;
  (void)self;
  if (!comm) return;
  for (int32_t i = 0; i < comm->size && comm->links; ++i)
    pestle_link_close(&comm->links[i], comm->allocator);
  pestle_shared_memory_close(&comm->memory);
  pestle_dealloc(comm->allocator, comm->links,
                 (size_t)comm->size * sizeof(*comm->links));
  pestle_dealloc(comm->allocator, comm->polls,
                 ((size_t)comm->size + 1) * sizeof(*comm->polls));
  pestle_dealloc(comm->allocator, comm, sizeof(*comm));
}

static pestle_status_t link_all(pestle_process_comm_t* comm, uint64_t id,
                                pestle_socket_t listening, bool may_share,
                                card_t* cards, int64_t deadline_ns) {
  card_t* own = &cards[comm->rank];
  int32_t here = 0;
  PESTLE_TRY(put_card(comm, id, listening, may_share, own));
  for (int32_t i = 0; i < comm->size; ++i) {
    if (i != comm->rank)
      PESTLE_TRY(get_card(comm, id, i, deadline_ns, &cards[i]));
    here += !strcmp(cards[i].identity, own->identity);
  }
  for (int32_t i = 0; i < comm->rank; ++i)
    PESTLE_TRY(call_peer(comm, id, i, &cards[i], deadline_ns));
  PESTLE_TRY(take_calls(comm, id, listening, deadline_ns));
  for (int32_t i = 0; i < comm->size; ++i) {
    if (i != comm->rank)
      PESTLE_TRY(agree(comm, own, &cards[i], i, deadline_ns));
  }
  pestle_shared_memory_seal(&comm->memory);
  comm->may_spin = here <= pestle_cpu_count();
  return NULL;
}

static pestle_status_t connect_all(pestle_process_comm_t* comm, uint64_t id,
                                   bool may_share, int64_t deadline_ns) {
  char host[PESTLE_HOST_SIZE];
  size_t bytes = (size_t)comm->size * sizeof(card_t);
  pestle_socket_t listening;
  pestle_store_local_host(comm->store, host);
  PESTLE_TRY(pestle_socket_listen(host, 0, &listening));
  card_t* cards = pestle_alloc(comm->allocator, bytes);
  pestle_status_t status =
      cards ? link_all(comm, id, listening, may_share, cards, deadline_ns)
            : PESTLE_OOM();
  pestle_dealloc(comm->allocator, cards, bytes);
  pestle_socket_close(listening);
  return status;
}

static pestle_status_t make_comm(pestle_store_t* store, int64_t deadline_ms,
                                 pestle_process_comm_t** out) {
  pestle_allocator_t allocator = pestle_store_allocator(store);
  pestle_process_comm_t* comm = pestle_alloc_zero(allocator, sizeof(*comm));
  *out = comm;
  if (!comm) return PESTLE_OOM();
  comm->store = store;
  comm->allocator = allocator;
  comm->rank = pestle_store_rank(store);
  comm->size = pestle_store_size(store);
  comm->deadline_ns = deadline_ms * 1000000;
  comm->memory.handle = -1;
  atomic_init(&comm->bytes, 0);
  atomic_init(&comm->heads, 0);
  size_t size = (size_t)comm->size;
  comm->links = pestle_alloc_zero(allocator, size * sizeof(*comm->links));
  comm->polls = pestle_alloc_zero(allocator, (size + 1) * sizeof(*comm->polls));
  for (size_t i = 0; i < size && comm->links; ++i) {
    comm->links[i].socket = -1;
    comm->links[i].memory.handle = -1;
  }
  return comm->links && comm->polls ? NULL : PESTLE_OOM();
}

static pestle_status_t make_id(void* self, uint8_t* out_id, size_t* size) {
  uint64_t id = 0;
  (void)self;
  if (*size < sizeof(id)) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "the name of a communicator has %zu bytes; there is "
                        "room for %zu",
                        sizeof(id), *size);
  }
  PESTLE_TRY(pestle_random_bytes(&id, sizeof(id)));
  memcpy(out_id, &id, sizeof(id));
  *size = sizeof(id);
  return NULL;
}

pestle_status_t pestle_process_comm_create(pestle_store_t* store, uint64_t id,
                                           bool may_share, int64_t deadline_ms,
                                           int64_t create_deadline_ns,
                                           pestle_comm_t** out) {
  pestle_process_comm_t* comm;
  *out = NULL;
  pestle_status_t status = make_comm(store, deadline_ms, &comm);
  if (!status) status = connect_all(comm, id, may_share, create_deadline_ns);
  if (status) {
    destroy(NULL, (pestle_comm_t*)comm);
    return status;
  }
  *out = (pestle_comm_t*)comm;
  return NULL;
}

static pestle_status_t create(void* self, int32_t device,
                              const pestle_comm_options_t* options,
                              pestle_comm_t** out) {
  uint64_t id = 0;
  *out = NULL;
  if (device || options->id_size != sizeof(id) ||
      options->rank != pestle_store_rank(self) ||
      options->size != pestle_store_size(self)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rank %d of %d on device %d, a name of %zu bytes: that "
                        "is no rank of processes",
                        (int)options->rank, (int)options->size, (int)device,
                        options->id_size);
  }
  memcpy(&id, options->id, sizeof(id));
  return pestle_process_comm_create(
      self, id, true, options->deadline_ms,
      pestle_clock_ns() + options->deadline_ms * 1000000, out);
}

static pestle_status_t enqueue(void* self, pestle_comm_t* any,
                               pestle_device_stream_t* stream,
                               const pestle_collective_t* ops, size_t count) {
  pestle_process_comm_t* comm = (pestle_process_comm_t*)any;
  pestle_status_t status = NULL;
  (void)self;
  if (stream) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the transport between processes has no streams");
  }
  pestle_store_at(comm->store, ops->sequence, ops->sequence - 1);
  if (pestle_store_has_failed(comm->store))
    return pestle_process_ended(comm, ops);
  for (size_t i = 0; i < count && !status; ++i)
    status = pestle_process_work(comm, &ops[i], (uint32_t)i);
  if (!status) pestle_store_at(comm->store, ops->sequence, ops->sequence);
  return status;
}

static pestle_status_t poll(void* self, pestle_comm_t* comm) {
  (void)self;
  return pestle_store_failure(((pestle_process_comm_t*)comm)->store);
}

static void abort_all(void* self, pestle_comm_t* any, const char* reason) {
  const pestle_process_comm_t* comm = (pestle_process_comm_t*)any;
  (void)self;
  if (!comm || pestle_store_has_failed(comm->store)) return;
  pestle_status_release(pestle_store_fail(
      comm->store, PESTLE_ERROR(UNAVAILABLE, "rank %d has ended its world: %s",
                                (int)comm->rank, reason ? reason : "")));
}

uint64_t pestle_process_comm_bytes(const pestle_comm_t* comm) {
  return atomic_load(&((const pestle_process_comm_t*)comm)->bytes);
}

uint64_t pestle_process_comm_heads(const pestle_comm_t* comm) {
  return atomic_load(&((const pestle_process_comm_t*)comm)->heads);
}

bool pestle_process_comm_shares(const pestle_comm_t* any) {
  const pestle_process_comm_t* comm = (const pestle_process_comm_t*)any;
  for (int32_t i = 0; i < comm->size; ++i) {
    if (comm->links[i].in) return true;
  }
  return false;
}

// --- The table ---

const pestle_collective_api_t pestle_process_collective = {
    .struct_size = sizeof(pestle_collective_api_t),
    .id = make_id,
    .create = create,
    .enqueue = enqueue,
    .poll = poll,
    .abort = abort_all,
    .destroy = destroy,
};
