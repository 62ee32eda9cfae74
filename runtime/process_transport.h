// SPDX-License-Identifier: Apache-2.0
// The transport between processes, behind the table of plugin.h: each two ranks have a
// connection, and where both are on one machine two rings in memory that they share,
// through which the bytes go; the connection then wakes who sleeps and tells when the
// other end has gone.
//
// All ways give the bits that threads give (host_transport.h): what is combined is
// combined in the order of the members, each element once, by one rank, however the
// bytes come. A rank sends of all_reduce 2 (n - 1) / n S bytes, of the others
// (n - 1) / n S, and a head of 32 bytes a message, by which ranks that have come to
// different collectives find out.
#ifndef PESTLE_RUNTIME_PROCESS_TRANSPORT_H_
#define PESTLE_RUNTIME_PROCESS_TRANSPORT_H_

#include "base/thread.h"
#include "pestle/plugin.h"
#include "runtime/store.h"

// Its |self| is a pestle_store_t, that outlives the communicators. create() waits for
// all ranks; there are no streams.
extern const pestle_collective_api_t pestle_process_collective;

struct pestle_link_t;

typedef struct pestle_process_comm_t {
  pestle_store_t* store;
  pestle_allocator_t allocator;
  int32_t rank, size;
  int64_t deadline_ns;
  struct pestle_link_t* links;  // one a rank; its own is not used
  pestle_shared_memory_t memory;
  pestle_poll_t* polls;  // room for size + 1
  bool may_spin;         // each rank of this machine has a core
  atomic_uint_fast64_t bytes,
      heads;  // that it has sent: of tensors, and beside them
} pestle_process_comm_t;

// create() with what a world says: whether ranks of one machine share memory, and until
// when all have to have come.
PESTLE_NODISCARD pestle_status_t pestle_process_comm_create(
    pestle_store_t* store, uint64_t id, bool may_share, int64_t deadline_ms,
    int64_t create_deadline_ns, pestle_comm_t** out_comm);

// Bytes of tensors that this rank has sent.
uint64_t pestle_process_comm_bytes(const pestle_comm_t* comm);
// Bytes beside these: heads, and what fills up to 16.
uint64_t pestle_process_comm_heads(const pestle_comm_t* comm);
// Whether any two ranks share memory.
bool pestle_process_comm_shares(const pestle_comm_t* comm);

// --- process_work.c ---

// Does |op|, the |index|-th of its sequence number.
PESTLE_NODISCARD pestle_status_t pestle_process_work(
    pestle_process_comm_t* comm, const pestle_collective_t* op, uint32_t index);

// --- process_transport.c ---

// Why |peer| does not come, or (-1) who does not: ends the world, and returns what has
// ended it. PESTLE_PROCESS_DEVICE: devices meet, which all ranks may have come to.
enum { PESTLE_PROCESS_DEVICE = -2 };
PESTLE_NODISCARD pestle_status_t pestle_process_late(
    pestle_process_comm_t* comm, const pestle_collective_t* op, int32_t peer);
// |peer| has closed its connection.
PESTLE_NODISCARD pestle_status_t pestle_process_gone(
    pestle_process_comm_t* comm, const pestle_collective_t* op, int32_t peer);
// What has ended the world, with where this rank was.
PESTLE_NODISCARD pestle_status_t pestle_process_ended(
    pestle_process_comm_t* comm, const pestle_collective_t* op);

#endif  // PESTLE_RUNTIME_PROCESS_TRANSPORT_H_
