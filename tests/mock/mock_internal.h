// SPDX-License-Identifier: Apache-2.0
// The mock device: its state and functions, shared by its files.
#ifndef PESTLE_TESTS_MOCK_MOCK_INTERNAL_H_
#define PESTLE_TESTS_MOCK_MOCK_INTERNAL_H_

#include <pthread.h>

#include "mock/mock.h"
#include "plugins/ref/ref_internal.h"

enum { MOCK_DEVICES = 4, MOCK_MAX_ARGS = 64 };

typedef struct mock_backend_t {
  pestle_backend_t table;
  pestle_device_api_t api;
  pestle_target_api_t target;
  const pestle_host_t* host;
  int32_t first;  // its device 0 in the machine
} mock_backend_t;

static inline const pestle_host_t* mock_host(void* self) {
  return ((const mock_backend_t*)self)->host;
}
static inline int32_t mock_device(void* self, int32_t device) {
  return ((const mock_backend_t*)self)->first + device;
}

// An artifact on a device.
typedef struct mock_loaded_t {
  pestle_cpu_entry_t entry;
  const void* entry_self;
  pestle_loaded_t* program;  // of the interpreter, or NULL
  int64_t group;
  uint64_t shared_bytes;
  atomic_int queued;    // launches that are not done
  atomic_int recorded;  // in recordings
} mock_loaded_t;

// One lock and one condition for the whole machine.
extern pthread_mutex_t mock_lock;
extern pthread_cond_t mock_changed;

#define MOCK_ERROR(host, code, ...) REF_ERROR(host, code, __VA_ARGS__)

// Counts a call of |slot|; the status that it is to fail with, or NULL.
pestle_status_t mock_enter(void* self, mock_slot_t slot);
PESTLE_PRINTF(1, 2) void mock_fault(const char* format, ...);

// --- mock_memory.c ---

// Where the bytes at |address| of a device are; |address| itself when it is not
// one of a device.
void* mock_real(const void* address);
// NULL, or why [data, data + size) is not memory of |device| (of the machine).
// The lock is held.
pestle_status_t mock_check(const pestle_host_t* host, int32_t device,
                           const void* data, size_t size, const char* what);
// Frees what was waiting for work on |device|, which is idle. Lock held.
void mock_reclaim(int32_t device);
void mock_memory_slots(pestle_device_api_t* api);

// --- mock_stream.c ---

void mock_stream_slots(pestle_device_api_t* api);
// Whether work is queued on |device|. Lock held.
bool mock_busy(int32_t device);

// --- mock_event.c ---

struct pestle_device_event_s {
  uint64_t value;
  unsigned users;  // its owner, and what is queued
};
// One with its owner as its user; NULL: out of memory.
pestle_device_event_t* mock_event_make(void);
// Drops a user; the last one frees it. The lock is held.
void mock_event_drop(pestle_device_event_t* event);
void mock_event_slots(pestle_device_api_t* api);

// --- mock_load.c ---

void mock_load_slots(pestle_device_api_t* api);

// What a stream is asked for.
typedef enum mock_op_kind_t {
  MOCK_OP_LAUNCH,
  MOCK_OP_COPY,
  MOCK_OP_SIGNAL,
  MOCK_OP_WAIT,
  MOCK_OP_GRAPH,
  MOCK_OP_CALL,
} mock_op_kind_t;

typedef struct mock_op_t {
  struct mock_op_t* next;
  mock_op_kind_t kind;
  mock_loaded_t* loaded;
  void* buffers[MOCK_MAX_ARGS];
  uint32_t count;
  const void* from;
  void* to;
  size_t size;
  pestle_device_event_t* event;
  uint64_t value;
  pestle_device_graph_t* graph;
  void (*call)(void* user, pestle_status_t failure);
  void* user;
} mock_op_t;

// Queues a copy of |op|, or records it.
pestle_status_t mock_push(void* self, pestle_device_stream_t* stream,
                          const mock_op_t* op);
int32_t mock_stream_device(const pestle_device_stream_t* stream);
// 0, or the trap that |op| stopped at.
int32_t mock_run(const mock_op_t* op);

#endif  // PESTLE_TESTS_MOCK_MOCK_INTERNAL_H_
