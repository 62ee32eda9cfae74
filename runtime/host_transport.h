// SPDX-License-Identifier: Apache-2.0
// The transport between threads of this process, behind the table of plugin.h.
//
// A rank posts what it has come to and waits until all members of its group have
// done so too; then it reads what it needs of theirs, where they have it, and stays
// until nobody reads what is its own. Nothing is copied but results, and nobody works
// for another. Waiting is on a condition variable, never on the thread pool: ranks
// whose kernels fill the pool cannot keep others from coming.
#ifndef PESTLE_RUNTIME_HOST_TRANSPORT_H_
#define PESTLE_RUNTIME_HOST_TRANSPORT_H_

#include "base/thread.h"
#include "pestle/allocator.h"
#include "pestle/context.h"
#include "pestle/plugin.h"

// Its |self| is a pestle_host_transport_t. create() waits for nobody, so that one
// thread may make all ranks; there are no streams.
extern const pestle_collective_api_t pestle_host_collective;

typedef struct pestle_host_transport_t pestle_host_transport_t;

PESTLE_NODISCARD pestle_status_t pestle_host_transport_create(
    pestle_context_t* context, pestle_host_transport_t** out_transport);
// Communicators that all their ranks have joined live on.
void pestle_host_transport_release(pestle_host_transport_t* transport);
// Says that this rank's device has come to collective |begun| and done |done|.
void pestle_host_tell(pestle_comm_t* comm, uint64_t begun, uint64_t done);
// Ends the world with the name of the member of |op| that is furthest behind, and
// returns what has ended it.
PESTLE_NODISCARD pestle_status_t
pestle_host_late(pestle_comm_t* comm, const pestle_collective_t* op);
// Bytes of other ranks that this one has read.
uint64_t pestle_host_comm_bytes(const pestle_comm_t* comm);

// --- Inside ---

// Where a rank is.
typedef struct pestle_host_post_t {
  uint64_t arrived, half, done;  // sequence numbers
  const pestle_collective_t* ops;
  size_t count;
  int64_t since_ns;
  uint64_t device_begun, device_done;  // likewise, of what its device does
  bool joined;
} pestle_host_post_t;

// What the ranks of a communicator share.
typedef struct pestle_host_shared_t pestle_host_shared_t;
struct pestle_host_shared_t {
  pestle_refcount_t refcount;  // one a rank, one while some are to come
  pestle_host_transport_t* transport;
  pestle_host_shared_t* next;  // of those that some ranks are to join
  uint64_t id;
  int32_t size, joined;
  int64_t deadline_ns;
  pestle_mutex_t mutex;  // of what follows
  pestle_cond_t changed;
  pestle_status_t failure;  // why it has ended
  int32_t readers;          // ranks that read what others have
  pestle_host_post_t posts[];
};

struct pestle_comm_s {
  pestle_host_shared_t* shared;
  int32_t rank;
  atomic_uint_fast64_t bytes;  // of others that it has read
};

// Does its part of |op|, the |index|-th of those that all members have posted.
PESTLE_NODISCARD pestle_status_t pestle_host_work(pestle_comm_t* comm,
                                                  const pestle_collective_t* op,
                                                  size_t index);
// Whether each member combines a part of the elements for all.
bool pestle_host_is_shared_out(const pestle_collective_t* op);
// Copies what other members have combined.
void pestle_host_gather_parts(pestle_comm_t* comm,
                              const pestle_collective_t* op, size_t index);
pestle_allocator_t pestle_host_allocator(const pestle_host_shared_t* shared);

#endif  // PESTLE_RUNTIME_HOST_TRANSPORT_H_
