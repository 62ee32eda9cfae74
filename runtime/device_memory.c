// SPDX-License-Identifier: Apache-2.0
// The memory cache of a CPU device: blocks by size class, counts and limits.
#include "base/bits.h"
#include "base/checked.h"
#include "base/huge_pages.h"
#include "base/mem.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/platform.h"
#include "runtime/queue.h"

// Blocks from this size on are laid out for huge pages.
#define HUGE_BLOCK (2 * PESTLE_HUGE_PAGE)
// Records of blocks that are kept.
#define SPARES 64
// More than any machine has; keeps the arithmetic below from overflowing.
#define LARGEST_BLOCK ((size_t)1 << 56)

// --- Classes ---

// The class of a request and the size that all blocks of the class have.
static unsigned block_class(size_t size, size_t* out_size) {
  if (size <= 64) {
    *out_size = 64;
    return 0;
  }
  unsigned power = pestle_log2_floor(size - 1);  // 2^power < size
  size_t step = power < 9 ? 64 : (size_t)1 << (power - 3);
  *out_size = pestle_align_up(size, step);
  return (power - 6) * 8 +
         (unsigned)((*out_size - 1 - ((size_t)1 << power)) / step) + 1;
}

// --- Statistics ---

uint64_t pestle_device_active_memory(const pestle_device_t* device) {
  const pestle_device_memory_t* memory = &device->memory;
  uint64_t cached = atomic_load(&memory->cached);
  uint64_t reserved = atomic_load(&memory->reserved);
  // Of slightly different moments.
  return reserved > cached ? reserved - cached : 0;
}

static void raise_peak(pestle_device_memory_t* memory, uint64_t active) {
  uint_fast64_t peak =
      atomic_load_explicit(&memory->peak, memory_order_relaxed);
  while (active > peak && !atomic_compare_exchange_weak_explicit(
                              &memory->peak, &peak, active,
                              memory_order_relaxed, memory_order_relaxed)) {
  }
}

void pestle_device_count_memory(pestle_device_t* device, int64_t bytes) {
  pestle_device_memory_t* memory = &device->memory;
  uint64_t reserved =
      atomic_fetch_add_explicit(&memory->reserved, (uint64_t)bytes,
                                memory_order_relaxed) +
      (uint64_t)bytes;
  if (bytes <= 0) return;
  uint64_t cached = atomic_load_explicit(&memory->cached, memory_order_relaxed);
  if (reserved > cached) raise_peak(memory, reserved - cached);
}

void pestle_device_memory_stats(const pestle_device_t* device,
                                pestle_memory_stats_t* out_stats) {
  if (!device || !out_stats) return;
  size_t size = out_stats->struct_size;
  pestle_memory_stats_t stats = {
      .struct_size = size,
      .active = pestle_device_active_memory(device),
      .peak = atomic_load(&device->memory.peak),
      .cached = atomic_load(&device->memory.cached),
  };
  memcpy(out_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
}

// --- Blocks ---

static pestle_status_t make_data(pestle_device_t* device,
                                 pestle_block_t* block) {
  const pestle_device_allocator_t* own = &device->context->device_allocator;
  if (own->allocate) {
    block->alignment = PESTLE_BUFFER_ALIGNMENT;
    block->data = own->allocate(own->self, pestle_device_dl(device),
                                block->size, block->alignment);
    if (block->data) return NULL;
    return PESTLE_ERROR(OUT_OF_MEMORY,
                        "the context's device allocator has no %zu bytes for "
                        "%s",
                        block->size, device->name);
  }
  if (pestle_device_is_cpu(device)) {
    block->alignment =
        block->size >= HUGE_BLOCK ? PESTLE_HUGE_PAGE : PESTLE_BUFFER_ALIGNMENT;
    block->data = pestle_alloc_aligned(device->context->core.allocator,
                                       block->size, block->alignment);
    if (!block->data) {
      return PESTLE_ERROR(OUT_OF_MEMORY,
                          "out of host memory: %zu bytes were asked for",
                          block->size);
    }
    if (block->size >= HUGE_BLOCK) {
      pestle_advise_huge(block->data, block->size);
    }
    return NULL;
  }
  const pestle_device_api_t* api = device->backend->device;
  if (!api || !PESTLE_HAS(api, allocate) || !PESTLE_HAS(api, deallocate)) {
    return PESTLE_ERROR(UNSUPPORTED, "device %s offers no memory",
                        device->name);
  }
  pestle_status_t status = pestle_device_said(
      device, api->allocate(device->backend->self, device->local_index,
                            block->size, &block->data));
  if (status) block->data = NULL;
  if (!status) {
    status = pestle_device_check_made(device, "allocate()", block->data);
  }
  return pestle_status_annotate(status, "while allocating %zu bytes on %s",
                                block->size, device->name);
}

static void free_data(pestle_device_t* device, pestle_block_t* block) {
  pestle_allocator_t allocator = device->context->core.allocator;
  const pestle_device_allocator_t* own = &device->context->device_allocator;
  if (!block->data || pestle_device_is_of_parent(device)) {
  } else if (own->deallocate) {
    own->deallocate(own->self, pestle_device_dl(device), block->data,
                    block->size, block->alignment);
  } else if (pestle_device_is_cpu(device)) {
    pestle_free_aligned(allocator, block->data, block->size, block->alignment);
  } else {
    device->backend->device->deallocate(
        device->backend->self, device->local_index, block->data, block->size);
  }
  block->data = NULL;
}

// --- Slots ---

// NULL: there is none.
static pestle_block_t* take_slot(_Atomic(pestle_block_t*)* slots) {
  for (unsigned i = 0; i < PESTLE_BLOCK_SLOTS; ++i) {
    if (!atomic_load_explicit(&slots[i], memory_order_relaxed)) continue;
    pestle_block_t* block =
        atomic_exchange_explicit(&slots[i], NULL, memory_order_acquire);
    if (block) return block;
  }
  return NULL;
}

static bool give_slot(_Atomic(pestle_block_t*)* slots, pestle_block_t* block) {
  for (unsigned i = 0; i < PESTLE_BLOCK_SLOTS; ++i) {
    pestle_block_t* expected = NULL;
    if (atomic_load_explicit(&slots[i], memory_order_relaxed)) continue;
    if (atomic_compare_exchange_strong_explicit(&slots[i], &expected, block,
                                                memory_order_release,
                                                memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// --- Records ---

// NULL: there is none.
static pestle_block_t* take_spare(pestle_device_memory_t* memory) {
  pestle_block_t* quick = take_slot(memory->spare_slots);
  if (quick) return quick;
  pestle_mutex_lock(&memory->mutex);
  pestle_block_t* block = memory->spares;
  if (block) {
    memory->spares = block->next;
    --memory->spare_count;
  }
  pestle_mutex_unlock(&memory->mutex);
  return block;
}

// Of blocks that are not kept: what a run allocates costs the host nothing.
static pestle_block_t* make_record(pestle_device_t* device) {
  pestle_block_t* block = take_spare(&device->memory);
  if (block) return block;
  return pestle_alloc(device->context->core.allocator, sizeof(pestle_buffer_t));
}

static void give_spare(pestle_device_t* device, pestle_block_t* block) {
  pestle_device_memory_t* memory = &device->memory;
  if (give_slot(memory->spare_slots, block)) return;
  pestle_mutex_lock(&memory->mutex);
  bool keep = memory->spare_count < SPARES;
  if (keep) {
    block->next = memory->spares;
    memory->spares = block;
    ++memory->spare_count;
  }
  pestle_mutex_unlock(&memory->mutex);
  if (!keep) {
    pestle_dealloc(device->context->core.allocator, block,
                   sizeof(pestle_buffer_t));
  }
}

pestle_status_t pestle_device_make_record(pestle_device_t* device,
                                          pestle_block_t** out_block) {
  *out_block = make_record(device);
  if (!*out_block) return PESTLE_OOM();
  **out_block = (pestle_block_t){.data = NULL};
  return NULL;
}

void pestle_device_free_record(pestle_device_t* device, pestle_block_t* block) {
  give_spare(device, block);
}

// --- Making and freeing ---

static pestle_status_t make_block(pestle_device_t* device, size_t size,
                                  unsigned size_class,
                                  pestle_block_t** out_block) {
  pestle_block_t* block;
  PESTLE_TRY(pestle_device_make_record(device, &block));
  block->size = size;
  block->size_class = size_class;
  pestle_status_t status = make_data(device, block);
  if (status) {
    give_spare(device, block);
    return status;
  }
  pestle_device_count_memory(device, (int64_t)size);
  *out_block = block;
  return NULL;
}

static void destroy_block(pestle_device_t* device, pestle_block_t* block) {
  pestle_device_count_memory(device, -(int64_t)block->size);
  free_data(device, block);
  give_spare(device, block);
}

// --- The cache ---

// Whether freed blocks are kept here: the host's memory, unless the caller
// allocates it.
static bool keeps_blocks(const pestle_device_t* device) {
  return pestle_device_is_cpu(device) &&
         !device->context->device_allocator.allocate;
}

static pestle_block_t* take_listed(pestle_device_memory_t* memory,
                                   unsigned index) {
  if (!atomic_load_explicit(&memory->cached, memory_order_relaxed)) return NULL;
  pestle_mutex_lock(&memory->mutex);
  pestle_block_t* block = memory->free_blocks[index];
  if (block) memory->free_blocks[index] = block->next;
  pestle_mutex_unlock(&memory->mutex);
  return block;
}

static void give_listed(pestle_device_memory_t* memory, pestle_block_t* block) {
  pestle_mutex_lock(&memory->mutex);
  block->next = memory->free_blocks[block->size_class];
  memory->free_blocks[block->size_class] = block;
  pestle_mutex_unlock(&memory->mutex);
}

static pestle_block_t* take_cached(pestle_device_memory_t* memory,
                                   unsigned index) {
  pestle_block_t* block = take_slot(memory->slots[index]);
  return block ? block : take_listed(memory, index);
}

// Takes |block|, which was in the cache, to be used.
static void count_taken(pestle_device_memory_t* memory, size_t size) {
  uint64_t cached =
      atomic_fetch_sub_explicit(&memory->cached, size, memory_order_relaxed) -
      size;
  uint64_t reserved =
      atomic_load_explicit(&memory->reserved, memory_order_relaxed);
  if (reserved > cached) raise_peak(memory, reserved - cached);
}

// Frees a block that was in the cache. In this order the numbers never show it
// as one that is used.
static void drop_cached(pestle_device_t* device, pestle_block_t* block) {
  size_t size = block->size;
  destroy_block(device, block);
  atomic_fetch_sub(&device->memory.cached, size);
}

static pestle_status_t allocate_kept(pestle_device_t* device, size_t size,
                                     pestle_block_t** out_block) {
  pestle_device_memory_t* memory = &device->memory;
  unsigned index = block_class(size, &size);
  PESTLE_TRY(pestle_memory_check_limit(device, size));
  *out_block = take_cached(memory, index);
  if (*out_block) {
    count_taken(memory, size);
    return NULL;
  }
  pestle_status_t status = make_block(device, size, index, out_block);
  if (status && atomic_load(&memory->cached)) {
    pestle_status_release(status);
    pestle_device_trim(device);
    status = make_block(device, size, index, out_block);
  }
  return status;
}

static void trace_memory(const pestle_device_t* device) {
  pestle_trace_t* trace = device->context->core.trace;
  pestle_trace_memory(trace, pestle_trace_intern(trace, device->name),
                      (int64_t)pestle_device_active_memory(device),
                      (int64_t)atomic_load(&device->memory.cached));
}

static pestle_status_t allocate(pestle_device_t* device, size_t size,
                                pestle_block_t** out_block) {
  *out_block = NULL;
  if (size > LARGEST_BLOCK) {
    return PESTLE_ERROR(OUT_OF_MEMORY,
                        "%zu bytes are more than device %s can have", size,
                        device->name);
  }
  pestle_context_enter(device->context);
  if (keeps_blocks(device)) return allocate_kept(device, size, out_block);
  if (!pestle_device_is_cpu(device)) {
    PESTLE_TRY(pestle_device_check_open(device));
  }
  size = size ? pestle_align_up(size, 64) : 64;
  // A limit that the backend does not keep itself.
  PESTLE_TRY(pestle_memory_check_limit(device, size));
  return make_block(device, size, 0, out_block);
}

pestle_status_t pestle_device_allocate(pestle_device_t* device, size_t size,
                                       pestle_block_t** out_block) {
  PESTLE_TRY(allocate(device, size, out_block));
  if (device->context->core.trace) trace_memory(device);
  return NULL;
}

static void free_block(pestle_device_t* device, pestle_block_t* block) {
  pestle_device_memory_t* memory = &device->memory;
  if (!keeps_blocks(device)) {
    destroy_block(device, block);
    return;
  }
  size_t size = block->size;
  uint64_t cached =
      atomic_fetch_add_explicit(&memory->cached, size, memory_order_relaxed) +
      size;
  if (cached > pestle_memory_cache_limit(device)) {
    drop_cached(device, block);
  } else if (!give_slot(memory->slots[block->size_class], block)) {
    give_listed(memory, block);
  }
}

void pestle_device_free(pestle_device_t* device, pestle_block_t* block) {
  if (!block) return;
  pestle_context_enter(device->context);
  free_block(device, block);
  if (device->context->core.trace) trace_memory(device);
}

void pestle_device_trim(pestle_device_t* device) {
  for (unsigned i = 0; i < PESTLE_BLOCK_CLASSES; ++i) {
    pestle_block_t* block;
    while ((block = take_cached(&device->memory, i)))
      drop_cached(device, block);
  }
  pestle_block_t* spare;
  while ((spare = take_spare(&device->memory))) {
    pestle_dealloc(device->context->core.allocator, spare,
                   sizeof(pestle_buffer_t));
  }
}

void pestle_device_after_fork(pestle_device_t* device) {
  pestle_device_memory_t* memory = &device->memory;
  if (pestle_mutex_try_lock(&memory->mutex)) {
    pestle_mutex_unlock(&memory->mutex);
    return;
  }
  // A thread of the parent held it: its lists may be torn, so forget them. What
  // lies in slots is whole.
  pestle_mutex_init(&memory->mutex);
  memset(memory->free_blocks, 0, sizeof(memory->free_blocks));
  memory->spares = NULL;
  memory->spare_count = 0;
  uint64_t kept = 0;
  for (unsigned i = 0; i < PESTLE_BLOCK_CLASSES; ++i) {
    for (unsigned s = 0; s < PESTLE_BLOCK_SLOTS; ++s) {
      const pestle_block_t* block = atomic_load(&memory->slots[i][s]);
      if (block) kept += block->size;
    }
  }
  atomic_fetch_sub(&memory->reserved, atomic_load(&memory->cached) - kept);
  atomic_store(&memory->cached, kept);
}
