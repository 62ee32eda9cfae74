// SPDX-License-Identifier: Apache-2.0
// The backend "cuda": its state, devices and streams, shared by its files.
#ifndef PESTLE_PLUGINS_CUDA_BACKEND_H_
#define PESTLE_PLUGINS_CUDA_BACKEND_H_

#include <pthread.h>
#include <stdatomic.h>

#include "pestle/plugin.h"
#include "plugins/common/error.h"
#include "plugins/cuda/arch.h"
#include "plugins/cuda/driver.h"

enum { CUDA_MAX_DEVICES = 64, CUDA_LIVE_CHAINS = 1024, CUDA_SIZE_CLASSES = 64 };

// --- Memory of a device: memory.c ---

// An allocation of the driver. In use, kept, or freed while work was queued.
typedef struct cuda_block_t {
  struct cuda_block_t* next;
  CUdeviceptr data;
  size_t size;   // of the driver's allocation
  size_t asked;  // what allocate() was asked for
} cuda_block_t;

// Blocks that are free once some events have come.
typedef struct cuda_ticket_t {
  struct cuda_ticket_t* next;
  cuda_block_t* blocks;
  uint64_t work;  // how much the device had been given by then
  uint32_t count, room;
  CUevent event[];
} cuda_ticket_t;

typedef struct cuda_memory_t {
  pthread_mutex_t lock;
  cuda_block_t* live[CUDA_LIVE_CHAINS];   // by address
  cuda_block_t* kept[CUDA_SIZE_CLASSES];  // by the logarithm of the size
  cuda_ticket_t* waiting;                 // the latest first
  uint64_t active, peak, cached, waits;   // bytes; |waits|: in |waiting|
  uint64_t limit, cache_limit;
} cuda_memory_t;

// --- Devices ---

struct cuda_t;

// A number in pinned memory that streams wait for: event.c. The device reads it
// while the host writes. One whose event has ended is used again when no stream
// waits for it any more.
typedef struct cuda_word_t {
  struct cuda_word_t* next;
  _Atomic(uint64_t)* value;
  CUdeviceptr address;
  atomic_uint waiting;  // streams
} cuda_word_t;

typedef struct cuda_device_t {
  struct cuda_t* owner;
  int32_t index;
  CUdevice id;
  char name[128], uuid[48], pci[32];
  char arch[16];   // "sm_90a"
  int capability;  // 90
  int units, group_lanes, shared, shared_most, registers;
  int unit_shared, group_shared;  // bytes of a unit, and of a group's own
  int clock_khz, memory_khz, bus_bits;
  bool waits_for_values;  // the device can wait for a number in memory
  uint64_t l2, total;
  pthread_mutex_t start;  // of the next four, which the first use fills
  CUcontext context;
  CUstream own;  // of work without a stream; each use waits for it
  CUmodule helpers;
  CUfunction copy;
  cuda_memory_t memory;
  pthread_mutex_t streams_lock;
  pestle_device_stream_t* streams;
  cuda_word_t* words;              // without an event; of the streams' lock too
  pestle_device_event_t* orphans;  // destroyed while a stream will call them
  atomic_uint_fast64_t work;       // counts what is queued on any stream
  // Communicators: what is queued may wait for other processes, so that nothing waits
  // inside the driver, which cannot be called off.
  atomic_int comms;
  // One of them did not end: what is queued never does. Nothing is waited for or freed.
  atomic_bool is_stuck;
  // Whether recordings may write values (cuda_recorded_writes_t): found by the first
  // communicator.
  atomic_int recorded_writes;
} cuda_device_t;

typedef enum cuda_recorded_writes_t {
  CUDA_WRITES_UNKNOWN = 0,
  CUDA_WRITES_RECORDED,
  CUDA_WRITES_REFUSED,
} cuda_recorded_writes_t;

// One for each host that calls init.
typedef struct cuda_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  cuda_driver_t driver;
  bool has_driver;
  // Recordings launch kernels before those in front of them end (stream.c).
  bool launches_early;
  char why[256];  // there is no driver
  char toolchain[1024];
  int32_t device_count, device_room;
  cuda_device_t* device;
} cuda_t;

// NOT_FOUND beyond the last.
pestle_status_t pestle_cuda_device(cuda_t* cuda, int32_t index,
                                   cuda_device_t** out_device);
// Makes the device's context current for the calls that follow, starting it at
// first. Every success is followed by leave().
pestle_status_t pestle_cuda_enter(cuda_device_t* device);
void pestle_cuda_leave(const cuda_device_t* device);
// Waits for |stream|, whose context is current. UNAVAILABLE: the device is stuck.
pestle_status_t pestle_cuda_wait_stream(const cuda_device_t* device,
                                        CUstream stream);

// The status of a call that failed; |what| names it.
PESTLE_NODISCARD pestle_status_t pestle_cuda_failed(const cuda_device_t* device,
                                                    CUresult result,
                                                    const char* file, int line,
                                                    const char* what);
#define PESTLE_CUDA_TRY(device, function, arguments)                 \
  do {                                                               \
    CUresult result_ = (device)->owner->driver.function arguments;   \
    if (result_) {                                                   \
      return pestle_cuda_failed(device, result_, __FILE__, __LINE__, \
                                #function);                          \
    }                                                                \
  } while (0)

pestle_status_t pestle_cuda_start_devices(cuda_t* cuda);
void pestle_cuda_stop_devices(cuda_t* cuda);

void pestle_cuda_memory_init(cuda_device_t* device);
// Everything back to the driver.
void pestle_cuda_memory_deinit(cuda_device_t* device);

// --- Streams: stream.c ---

// Pinned memory that a stream's copies from and to pageable memory go through.
typedef struct cuda_slot_t {
  cuda_device_t* device;
  char* data;
  CUevent event;  // NULL: never used
  void* to;       // of a copy to the host: where the bytes go
  size_t size;
} cuda_slot_t;

enum { CUDA_SLOTS = 16, CUDA_SLOT_BYTES = 256 << 10 };

// Calls of the host that are not made yet: host_call.c.
typedef struct cuda_call_t cuda_call_t;
typedef struct cuda_caller_t {
  pthread_mutex_t lock;
  pthread_cond_t more;
  cuda_call_t *head, **tail;
  pthread_t thread;
  bool started, stop;
} cuda_caller_t;

struct pestle_device_stream_s {
  pestle_device_stream_t* next;
  cuda_device_t* device;
  CUstream handle;
  atomic_uint_fast64_t queued;  // device->work of the last that was queued
  atomic_uint_fast64_t done;    // up to there all is done
  atomic_bool recording;
  // What was queued last is a kernel whose text is ours: the next may begin early.
  atomic_bool ends_in_kernel;
  pthread_mutex_t lock;  // of the slots
  char* pinned;
  unsigned next_slot;
  cuda_slot_t slot[CUDA_SLOTS];
  cuda_caller_t caller;
};

// Notes that something is queued on |stream|.
static inline void cuda_queued(pestle_device_stream_t* stream) {
  uint64_t work = atomic_fetch_add(&stream->device->work, 1) + 1;
  atomic_store(&stream->queued, work);
  atomic_store(&stream->ends_in_kernel, false);
}
static inline bool cuda_is_busy(const pestle_device_stream_t* stream) {
  return atomic_load(&stream->queued) != atomic_load(&stream->done);
}

// UNSUPPORTED while |stream| records: |what| cannot be part of a recording.
pestle_status_t pestle_cuda_refuse_recording(
    const pestle_device_stream_t* stream, const char* what);

// Fill their slots of the table.
void pestle_cuda_memory_slots(pestle_device_api_t* api);
void pestle_cuda_stream_slots(pestle_device_api_t* api);
void pestle_cuda_copy_slots(pestle_device_api_t* api);
void pestle_cuda_event_slots(pestle_device_api_t* api);
void pestle_cuda_graph_slots(pestle_device_api_t* api);
void pestle_cuda_load_slots(pestle_device_api_t* api);
void pestle_cuda_host_call_slots(pestle_device_api_t* api);
void pestle_cuda_where_slots(pestle_device_api_t* api);

void pestle_cuda_caller_init(pestle_device_stream_t* stream);
// Makes the calls that are left, of a stream on which nothing is queued.
void pestle_cuda_caller_deinit(pestle_device_stream_t* stream);

// Frees what events left behind: words, and those of a lost device whose
// promises were never kept.
void pestle_cuda_events_deinit(cuda_device_t* device);
// Frees the slots of a stream on which nothing is queued.
void pestle_cuda_staging_deinit(pestle_device_stream_t* stream);
// Queues a copy within the device as a kernel: what a recording takes, where
// the driver's own copies are slow.
pestle_status_t pestle_cuda_copy_kernel(const cuda_device_t* device,
                                        CUstream stream, CUdeviceptr from,
                                        CUdeviceptr to, size_t size);
// In PTX; any driver since CUDA 11 takes it.
extern const char* const pestle_cuda_copy_ptx;

extern const pestle_target_api_t pestle_cuda_target;

static inline CUdeviceptr cuda_address(const void* data) {
  return (CUdeviceptr)(uintptr_t)data;
}
static inline void* cuda_pointer(CUdeviceptr address) {
  return (void*)(uintptr_t)address;
}

#endif  // PESTLE_PLUGINS_CUDA_BACKEND_H_
