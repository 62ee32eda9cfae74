// SPDX-License-Identifier: Apache-2.0
// The store's server: a thread of rank 0 that keeps what the ranks put, tells who has
// gone, and hands the first failure on to all.
#ifndef PESTLE_RUNTIME_STORE_SERVER_H_
#define PESTLE_RUNTIME_STORE_SERVER_H_

#include "pestle/allocator.h"
#include "pestle/status.h"
#include "runtime/socket.h"

typedef struct pestle_store_server_t pestle_store_server_t;

// Listens on |host| and serves |size| ranks that know |secret|.
PESTLE_NODISCARD pestle_status_t pestle_store_server_start(
    pestle_allocator_t allocator, const char* host, uint16_t port, int32_t size,
    const unsigned char secret[32], pestle_store_server_t** out_server);
// The port that it listens on.
uint16_t pestle_store_server_port(const pestle_store_server_t* server);
// Waits until all clients have gone, but no longer than |linger_ns|, or a second once
// the world has failed; then ends. NULL is allowed.
void pestle_store_server_stop(pestle_store_server_t* server, int64_t linger_ns);

#endif  // PESTLE_RUNTIME_STORE_SERVER_H_
