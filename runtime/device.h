// SPDX-License-Identifier: Apache-2.0
// A device and its memory. There is one cache a device. On CPU devices memory is
// the host's: it comes from the context's allocator, and freed blocks are kept
// for reuse up to a limit, since fresh memory costs page faults. Others have
// allocate() of their backend, which keeps what it likes: it alone knows when
// queued work is past a block, so nothing is kept here. A device allocator of
// the caller's is called for each block: what it keeps is its own matter.
#ifndef PESTLE_RUNTIME_DEVICE_H_
#define PESTLE_RUNTIME_DEVICE_H_

#include <stdatomic.h>

#include "base/arena.h"
#include "base/thread.h"
#include "pestle/runtime.h"
#include "runtime/registry.h"

// A block of device memory. |size| is what was paid for, >= what was asked for.
// Its record has room for a pestle_buffer_t, of which it is the beginning: a
// block that becomes a buffer needs no other.
typedef struct pestle_block_t {
  void* data;
  size_t size;
  size_t alignment;
  struct pestle_block_t* next;  // in a list of free ones
  unsigned size_class;          // on CPU devices
} pestle_block_t;

// Sizes are rounded up to an eighth of their power of two, from 64 bytes on: a
// free block fits the next request of its class exactly.
enum {
  PESTLE_BLOCK_CLASSES = 8 * 58,
  // Blocks of a class that are had without the lock: what a run frees the next
  // run takes.
  PESTLE_BLOCK_SLOTS = 2,
};

// |active| is |reserved| - |cached|: to take a block from the cache, or to give
// one to it, costs one counter.
typedef struct pestle_device_memory_t {
  _Atomic(pestle_block_t*) slots[PESTLE_BLOCK_CLASSES][PESTLE_BLOCK_SLOTS];
  pestle_mutex_t mutex;  // of the lists
  pestle_block_t* free_blocks[PESTLE_BLOCK_CLASSES];
  // Of other devices: records without data, so that what a run allocates there
  // costs the host nothing.
  _Atomic(pestle_block_t*) spare_slots[PESTLE_BLOCK_SLOTS];
  pestle_block_t* spares;
  unsigned spare_count;
  atomic_uint_fast64_t reserved, cached, peak;
  atomic_uint_fast64_t cache_limit;  // plus one; 0: the default
  atomic_uint_fast64_t limit;        // of |active|; 0: none
} pestle_device_memory_t;

typedef struct pestle_exchange_t pestle_exchange_t;

struct pestle_device_s {
  pestle_context_t* context;
  const pestle_plugin_t* plugin;
  pestle_plugin_t* own_plugin;  // of a device that only compiles: its row
  const pestle_backend_t* backend;
  const char* name;     // "llvm", "cuda:1"
  int32_t local_index;  // as the backend counts
  bool is_software;     // a driver's own, which computes on the CPU
  unsigned fork_count;  // of the context when it was made
  pestle_dl_device_t dl;
  pestle_device_memory_t memory;
  // The queue that orders streams of others, once there is one (dlpack_order.c).
  _Atomic(pestle_exchange_t*) exchange;
  // What the backend said first when the device was lost, or NULL.
  _Atomic(pestle_status_t) fault;
};

// Which number a device has: of its backend as that counts, of the name that the
// context gives it, among those that DLPack counts.
typedef struct pestle_device_number_t {
  int32_t local, named, dlpack;
} pestle_device_number_t;

// Makes a device whose struct lives in |arena|.
PESTLE_NODISCARD pestle_status_t pestle_device_create(
    pestle_context_t* context, pestle_arena_t* arena,
    const pestle_plugin_t* plugin, pestle_device_number_t number,
    bool is_software, pestle_device_t** out_device);
// Whether the property "software" of the backend's device |index| is not 0.
pestle_status_t pestle_device_look_for_software(const pestle_backend_t* backend,
                                                int32_t index,
                                                bool* out_is_software);
void pestle_device_destroy(pestle_device_t* device);

static inline bool pestle_device_is_cpu(const pestle_device_t* device) {
  return device->dl.device_type == PESTLE_DEVICE_CPU;
}

// --- device_memory.c ---

// |size| bytes, at least 64-byte aligned (blocks of some huge pages: at those),
// contents undefined.
PESTLE_NODISCARD pestle_status_t pestle_device_allocate(
    pestle_device_t* device, size_t size, pestle_block_t** out_block);
// NULL is allowed.
void pestle_device_free(pestle_device_t* device, pestle_block_t* block);
// A record without memory, for what is not allocated here.
PESTLE_NODISCARD pestle_status_t
pestle_device_make_record(pestle_device_t* device, pestle_block_t** out_block);
void pestle_device_free_record(pestle_device_t* device, pestle_block_t* block);
// To be called once in a child of fork().
void pestle_device_after_fork(pestle_device_t* device);
// Gives free blocks back to where they came from.
void pestle_device_trim(pestle_device_t* device);
// Counts memory that is held otherwise (constants mapped from a plan).
void pestle_device_count_memory(pestle_device_t* device, int64_t bytes);
uint64_t pestle_device_active_memory(const pestle_device_t* device);

// --- memory_numbers.c ---

// Free bytes that a device keeps at most, when nobody says otherwise.
#define PESTLE_DEFAULT_CACHE_LIMIT ((uint64_t)256 << 20)
uint64_t pestle_memory_cache_limit(const pestle_device_t* device);
// RESOURCE_EXHAUSTED when |size| more bytes would be past the device's limit.
PESTLE_NODISCARD pestle_status_t
pestle_memory_check_limit(pestle_device_t* device, uint64_t size);

#endif  // PESTLE_RUNTIME_DEVICE_H_
