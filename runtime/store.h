// SPDX-License-Identifier: Apache-2.0
// A rank's end of the store: what ranks of several processes tell each other, who of
// them is alive, and the first failure, which ends the world for all. Any thread may
// call these functions.
#ifndef PESTLE_RUNTIME_STORE_H_
#define PESTLE_RUNTIME_STORE_H_

#include "pestle/allocator.h"
#include "pestle/status.h"
#include "runtime/socket.h"
#include "runtime/store_wire.h"

typedef struct pestle_store_t pestle_store_t;

// Borrowed during the call.
typedef struct pestle_store_options_t {
  const char* host;  // where rank 0 listens
  uint16_t port;
  int32_t rank, size;
  unsigned char secret[32];
  int64_t create_ns;  // that a rank waits for rank 0 to listen
  // Called by rank 0 once it listens, with the port, or NULL. What it returns ends the
  // opening.
  pestle_status_t (*listening)(void* user, uint16_t port);
  void* listening_user;
} pestle_store_options_t;

// Rank 0 starts the server; all connect to it. DEADLINE_EXCEEDED: there is none;
// UNAVAILABLE: it does not know the secret.
PESTLE_NODISCARD pestle_status_t pestle_store_open(
    pestle_allocator_t allocator, const pestle_store_options_t* options,
    pestle_store_t** out_store);
// Says goodbye. Rank 0 waits until all others have gone, 10 s at most. NULL is
// allowed.
void pestle_store_close(pestle_store_t* store);

// A key has the value that came first. Keys have at most 256 bytes, values 65,536:
// RESOURCE_EXHAUSTED.
PESTLE_NODISCARD pestle_status_t pestle_store_put(pestle_store_t* store,
                                                  const char* key,
                                                  const void* value,
                                                  size_t size);
// Waits until |key| has a value and copies it: |*size| bytes of room, then its size.
PESTLE_NODISCARD pestle_status_t pestle_store_get(pestle_store_t* store,
                                                  const char* key,
                                                  int64_t deadline_ns,
                                                  void* out_value,
                                                  size_t* size);
// Waits until all ranks have come to |key|. INCOMPATIBLE, at all of them, when their
// |text|, of which 199 bytes count, is not the same. DEADLINE_EXCEEDED names who has
// not come to |what|.
PESTLE_NODISCARD pestle_status_t pestle_store_meet(pestle_store_t* store,
                                                   const char* key,
                                                   const char* text,
                                                   const char* what,
                                                   int64_t deadline_ns);

// Where this rank is now. Free of any call: it is told when somebody asks, and once a
// second.
void pestle_store_at(pestle_store_t* store, uint64_t arrived, uint64_t done);
// What all ranks say of themselves, |size| of them. Takes as long as they take to
// answer, a quarter of a second at most; DEADLINE_EXCEEDED when rank 0 does not answer
// in 0.6 s.
PESTLE_NODISCARD pestle_status_t
pestle_store_ask(pestle_store_t* store, pestle_store_seen_t* out_seen);

// Ends the world, with |why|, which is taken over, unless it has ended before. Waits
// 0.6 s at most until rank 0 knows. What ended it, for the caller to release.
PESTLE_NODISCARD pestle_status_t pestle_store_fail(pestle_store_t* store,
                                                   pestle_status_t why);
// What has ended the world, for the caller to release; NULL while nothing has.
PESTLE_NODISCARD pestle_status_t
pestle_store_failure(const pestle_store_t* store);
bool pestle_store_has_failed(const pestle_store_t* store);
// Can be read from then on.
pestle_socket_t pestle_store_wake(const pestle_store_t* store);

// Calls fn(user, why) once, when it fails, from a thread of the store's; at once where it
// has. NULL: nobody is called any more once this returns.
void pestle_store_on_failure(pestle_store_t* store,
                             void (*fn)(void* user, const char* why),
                             void* user);

int32_t pestle_store_rank(const pestle_store_t* store);
int32_t pestle_store_size(const pestle_store_t* store);
const unsigned char* pestle_store_secret(const pestle_store_t* store);
pestle_allocator_t pestle_store_allocator(const pestle_store_t* store);
// The number of this machine by which it reaches rank 0.
void pestle_store_local_host(const pestle_store_t* store,
                             char out_host[PESTLE_HOST_SIZE]);

#endif  // PESTLE_RUNTIME_STORE_H_
