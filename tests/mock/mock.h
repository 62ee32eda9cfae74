// SPDX-License-Identifier: Apache-2.0
// A graphics card for tests: two backends, "mock" and "mockb", of two devices
// each, whose memory has addresses that the host cannot touch. Kernels are run
// by the interpreter of plugins/ref in the threads of streams. It counts what
// the host asks for, fails when told to, and notes what breaks the contract of
// pestle/plugin.h. Built into unit tests and as libpestle-mock.so.
#ifndef PESTLE_TESTS_MOCK_MOCK_H_
#define PESTLE_TESTS_MOCK_MOCK_H_

#include <stdatomic.h>

#include "pestle/plugin.h"

// X(NAME, slot) of pestle_device_api_t.
#define MOCK_SLOTS(X)                       \
  X(LOAD, load)                             \
  X(UNLOAD, unload)                         \
  X(ALLOCATE, allocate)                     \
  X(DEALLOCATE, deallocate)                 \
  X(COPY_FROM_HOST, copy_from_host)         \
  X(COPY_TO_HOST, copy_to_host)             \
  X(COPY_DEVICE, copy_device)               \
  X(BUFFER_RAW_PTR, buffer_raw_ptr)         \
  X(STREAM_CREATE, stream_create)           \
  X(STREAM_SYNCHRONIZE, stream_synchronize) \
  X(STREAM_DESTROY, stream_destroy)         \
  X(LAUNCH, launch)                         \
  X(QUEUE_FROM_HOST, queue_from_host)       \
  X(QUEUE_TO_HOST, queue_to_host)           \
  X(QUEUE_COPY, queue_copy)                 \
  X(EVENT_CREATE, event_create)             \
  X(EVENT_DESTROY, event_destroy)           \
  X(EVENT_WAIT, event_wait)                 \
  X(EVENT_WAIT_STREAM, event_wait_stream)   \
  X(EVENT_SIGNAL, event_signal)             \
  X(EVENT_IS_SIGNALLED, event_is_signalled) \
  X(FENCE_CREATE, fence_create)             \
  X(FENCE_DESTROY, fence_destroy)           \
  X(FENCE_UPDATE, fence_update)             \
  X(FENCE_WAIT, fence_wait)                 \
  X(MEMORY_GET, memory_get)                 \
  X(MEMORY_SET, memory_set)                 \
  X(PROPERTY, property)                     \
  X(GRAPH_BEGIN, graph_begin)               \
  X(GRAPH_END, graph_end)                   \
  X(GRAPH_LAUNCH, graph_launch)             \
  X(GRAPH_DESTROY, graph_destroy)           \
  X(STREAM_HOST_CALL, stream_host_call)     \
  X(STREAM_NATIVE, stream_native)           \
  X(WAIT_NATIVE, wait_native)               \
  X(NATIVE_WAIT, native_wait)               \
  X(ADOPT, adopt)                           \
  X(RELEASE_ADOPTED, release_adopted)       \
  X(HANDLE_OF, handle_of)                   \
  X(WHERE, where)                           \
  X(DLPACK_DEVICE, dlpack_device)           \
  X(NATIVE_CALL, native_call)

typedef enum mock_slot_t {
#define MOCK_SLOT_(NAME, slot) MOCK_##NAME,
  MOCK_SLOTS(MOCK_SLOT_)
#undef MOCK_SLOT_
      MOCK_SLOT_COUNT
} mock_slot_t;

// What tests read and set, of the process. mock_reset() before a context is
// made: the tables are written by the backends' init.
typedef struct mock_t {
  atomic_uint calls[MOCK_SLOT_COUNT];
  atomic_uint kernels_run;  // by the threads of streams, in graphs too
  // The |fail_at|-th call of |fail_slot| from now on fails with |fail_code|.
  atomic_int fail_slot, fail_at, fail_code;
  atomic_bool lost;  // every call that has a status fails
  uint64_t missing;  // bit |slot|: absent from the table
  int minor;         // the device's table ends as in that version; -1: today's
  int dl_type;       // what dlpack_device() of "mock" says; 0: its own
  atomic_int refused_op;       // an op (kir.h) that compile() refuses; -1: none
  atomic_int launch_delay_us;  // each kernel takes so much longer
  // Broken promises of the host: used after it was freed, freed while in use.
  atomic_uint faults;
  char fault[256];  // the first of them
  atomic_int live_blocks, live_streams, live_events, live_fences, live_graphs,
      live_kernels, live_adopted;
} mock_t;

mock_t* mock_state(void);
void mock_reset(void);
// Forgets the calls that were counted.
void mock_count_anew(void);
void mock_fail(mock_slot_t slot, int at, pestle_status_code_t code);
// What is still held, of any kind.
int mock_live(void);

const pestle_backend_abi_info_t* mock_abi_info(void);
const pestle_backend_t* mock_init(const pestle_host_t* host,
                                  pestle_status_t* out_status);
const pestle_backend_abi_info_t* mockb_abi_info(void);
const pestle_backend_t* mockb_init(const pestle_host_t* host,
                                   pestle_status_t* out_status);

// An artifact that runs a function of this process over [0, group).
typedef struct mock_artifact_t {
  char magic[8];
  uint64_t size;  // of the interpreter's artifact that follows; 0: |entry|
  int64_t group;
  uint64_t shared_bytes;
  pestle_cpu_entry_t entry;
  uint64_t reserved[3];
} mock_artifact_t;

#define MOCK_MAGIC "MOCKART"

static inline mock_artifact_t mock_artifact(pestle_cpu_entry_t entry,
                                            int64_t group) {
  return (mock_artifact_t){.magic = MOCK_MAGIC, .group = group, .entry = entry};
}

#endif  // PESTLE_TESTS_MOCK_MOCK_H_
