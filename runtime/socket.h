// SPDX-License-Identifier: Apache-2.0
// What worlds of several processes ask of the operating system: connections that never
// block, waiting for many of them, random bytes, memory that two processes share.
#ifndef PESTLE_RUNTIME_SOCKET_H_
#define PESTLE_RUNTIME_SOCKET_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/status.h"

// A connection, or -1.
typedef int pestle_socket_t;

enum {
  PESTLE_HOST_SIZE = 256
};  // bytes of a host's name or number, with its end

// Listens on |host| alone; port 0 is any that is free. INVALID_ARGUMENT: an unknown
// host, or one that is not this machine; UNAVAILABLE: the port is taken.
PESTLE_NODISCARD pestle_status_t pestle_socket_listen(
    const char* host, uint16_t port, pestle_socket_t* out_socket);
// Connects. UNAVAILABLE: nobody listens, or nobody has answered by |deadline_ns| of
// pestle_clock_ns().
PESTLE_NODISCARD pestle_status_t
pestle_socket_connect(const char* host, uint16_t port, int64_t deadline_ns,
                      pestle_socket_t* out_socket);
// Whoever waits at a listening socket, or -1.
pestle_socket_t pestle_socket_accept(pestle_socket_t socket);
void pestle_socket_close(pestle_socket_t socket);
// No more is sent; what was arrives.
void pestle_socket_end(pestle_socket_t socket);
// This end's number and port.
void pestle_socket_local(pestle_socket_t socket,
                         char out_host[PESTLE_HOST_SIZE], uint16_t* out_port);

// Bytes that were taken, 0 where it would have to wait, -1 where the connection is
// at its end.
int64_t pestle_socket_send(pestle_socket_t socket, const void* data,
                           size_t size);
int64_t pestle_socket_receive(pestle_socket_t socket, void* data, size_t size);

// Laid out as poll() has it.
enum { PESTLE_POLL_READ = 1, PESTLE_POLL_WRITE = 4 };
typedef struct pestle_poll_t {
  pestle_socket_t socket;  // below 0: passed over
  short wanted, ready;     // PESTLE_POLL_*; ready has other bits too at an end
} pestle_poll_t;
// Waits until one is ready, or for |milliseconds|; below 0 is for ever. How many are.
int pestle_poll(pestle_poll_t* sockets, size_t count, int64_t milliseconds);

// Sends or receives all of it, until |deadline_ns|; also ends when |wake|, which may be
// -1, can be read. False where it did not come about.
bool pestle_socket_send_all(pestle_socket_t socket, const void* data,
                            size_t size, int64_t deadline_ns,
                            pestle_socket_t wake);
bool pestle_socket_receive_all(pestle_socket_t socket, void* data, size_t size,
                               int64_t deadline_ns, pestle_socket_t wake);

// Two ends: what is written to the second wakes whoever polls the first.
PESTLE_NODISCARD pestle_status_t
pestle_wake_create(pestle_socket_t out_ends[2]);
void pestle_wake(pestle_socket_t end);

// The process that has started this one.
int64_t pestle_parent_process_id(void);

PESTLE_NODISCARD pestle_status_t pestle_random_bytes(void* out, size_t size);

// --- Shared memory ---

// Names this machine, its namespace of processes and the user: processes that have it
// in common may share memory.
void pestle_host_identity(char out_text[PESTLE_HOST_SIZE]);

typedef struct pestle_shared_memory_t {
  char* data;
  size_t size;
  int32_t handle;  // of who has made it; -1
} pestle_shared_memory_t;

// |size| zero bytes, that are there: RESOURCE_EXHAUSTED when the system has none left.
// They leave nothing behind, whatever becomes of the processes. UNSUPPORTED on systems
// that have no such memory.
PESTLE_NODISCARD pestle_status_t
pestle_shared_memory_create(size_t size, pestle_shared_memory_t* out_memory);
// What process |process| has made under |handle|, while it has it open.
PESTLE_NODISCARD pestle_status_t
pestle_shared_memory_open(int64_t process, int32_t handle, size_t size,
                          pestle_shared_memory_t* out_memory);
// Nobody else can open it from now on.
void pestle_shared_memory_seal(pestle_shared_memory_t* memory);
void pestle_shared_memory_close(pestle_shared_memory_t* memory);

#endif  // PESTLE_RUNTIME_SOCKET_H_
