// SPDX-License-Identifier: Apache-2.0
// A rank's end of a communicator of NCCL: comm.c makes and ends it, collective.c puts
// collectives on streams.
#ifndef PESTLE_PLUGINS_CUDA_COMM_H_
#define PESTLE_PLUGINS_CUDA_COMM_H_

#include "plugins/cuda/backend.h"
#include "plugins/cuda/nccl.h"

enum { CUDA_COMM_LINKS = 256, CUDA_COMM_REASON = 512 };
// Places of |pestle_comm_s.word|'s words.
enum { CUDA_COMM_AT = 0, CUDA_COMM_RECORDED = 1, CUDA_COMM_AFTER = 2 };

// A stream that collectives are queued on beside another: of a communicator and all that
// are split from it.
enum { CUDA_BESIDE_EVENTS = 64 };
typedef struct cuda_beside_t {
  atomic_int users;
  CUstream stream;
  CUevent fork;                         // how far the other stream was
  CUevent done[CUDA_BESIDE_EVENTS];     // of collectives, in turns
  uint64_t number[CUDA_BESIDE_EVENTS];  // 0: none
  unsigned next;
  bool recorded;  // the events are those of a recording
} cuda_beside_t;

typedef enum cuda_comm_state_t {
  CUDA_COMM_LIVE,
  CUDA_COMM_ENDING,  // a thread of its own waits for NCCL to end it
  CUDA_COMM_ENDED,
} cuda_comm_state_t;

struct pestle_comm_s {
  const nccl_t* nccl;
  cuda_device_t* device;
  ncclComm_t comm;
  int32_t rank, size;
  int64_t deadline_ns;
  int max_units;
  atomic_uint calls;  // that are inside NCCL with it
  pthread_mutex_t lock;
  pthread_cond_t changed;
  // -- of the lock --
  _Atomic(int) state;
  bool aborted;
  int64_t ending_ns;
  char reason[CUDA_COMM_REASON];
  // -- how far its stream has come --
  // In pinned memory, which the stream writes: 2 k - 1 when it has come to
  // collective k, 2 k when that is done. A recording counts its own collectives so, from 1
  // on, in the second word, and the third has the number that they follow.
  _Atomic(uint64_t)* word;
  CUdeviceptr word_address;
  const pestle_device_stream_t* recorder;  // what is queued on it is recorded
  uint64_t recorded_after;  // the number before the recording's first
  cuda_beside_t* beside;
  uint64_t latest;  // collective that was queued last
  uint64_t work;    // of the stream after it: nothing was queued since
  const pestle_device_stream_t* stream;
  // Of collectives that came right after another, which write nothing when they begin:
  // links[k % CUDA_COMM_LINKS] is the one after k, in the upper half with k's low bits.
  _Atomic(uint64_t) links[CUDA_COMM_LINKS];
};

// --- nccl.c ---

// Opens libnccl.so.2: the file that PESTLE_NCCL names, else where the loader finds
// it, beside the plugin (as the wheels of Python lie) or in a toolkit. UNAVAILABLE says
// what was looked for. The same answer each time.
pestle_status_t pestle_cuda_nccl(const pestle_host_t* host,
                                 const nccl_t** out_nccl);

// --- comm.c ---

int64_t pestle_cuda_clock_ns(void);
// The status of a call of NCCL that failed; |what| names it. |comm| may be NULL.
pestle_status_t pestle_cuda_nccl_failed(const pestle_host_t* host,
                                        const nccl_t* nccl, ncclComm_t comm,
                                        ncclResult_t result, const char* what);
// Waits until NCCL is done with what it was last asked for, which may need other
// ranks: DEADLINE_EXCEEDED after |deadline_ns|, UNAVAILABLE once it is aborted.
pestle_status_t pestle_cuda_comm_ready(pestle_comm_t* comm, ncclResult_t result,
                                       int64_t deadline_ns, const char* what);
// What has ended it, or NULL.
pestle_status_t pestle_cuda_comm_poll(void* self, pestle_comm_t* comm);

pestle_status_t pestle_cuda_comm_enqueue(void* self, pestle_comm_t* comm,
                                         pestle_device_stream_t* stream,
                                         const pestle_collective_t* ops,
                                         size_t count);
pestle_status_t pestle_cuda_comm_enqueue_beside(void* self, pestle_comm_t* comm,
                                                pestle_device_stream_t* stream,
                                                const pestle_collective_t* ops,
                                                size_t count);
pestle_status_t pestle_cuda_comm_wait_beside(void* self, pestle_comm_t* comm,
                                             pestle_device_stream_t* stream,
                                             uint64_t sequence);
// beside.c: one that |comm|'s device has, and that who made it lets go of.
pestle_status_t pestle_cuda_beside_make(const pestle_comm_t* comm,
                                        cuda_beside_t** out);
void pestle_cuda_beside_release(const pestle_comm_t* comm);
// Lets |beside| wait for |stream|.
pestle_status_t pestle_cuda_beside_fork(const pestle_comm_t* comm,
                                        const pestle_device_stream_t* stream);
// Notes that collective |sequence| is queued on it.
pestle_status_t pestle_cuda_beside_queued(const pestle_comm_t* comm,
                                          uint64_t sequence);
void pestle_cuda_comm_progress(void* self, pestle_comm_t* comm,
                               uint64_t* out_begun, uint64_t* out_done);
pestle_status_t pestle_cuda_comm_record(void* self, pestle_comm_t* comm,
                                        pestle_device_stream_t* stream,
                                        int32_t what, uint64_t sequence);

extern const pestle_collective_api_t pestle_cuda_collective;

#endif  // PESTLE_PLUGINS_CUDA_COMM_H_
