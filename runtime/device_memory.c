// SPDX-License-Identifier: Apache-2.0
#include "base/bits.h"
#include "base/checked.h"
#include "base/huge_pages.h"
#include "base/mem.h"
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

void pestle_device_count_memory(pestle_device_t* device, int64_t bytes) {
  pestle_device_memory_t* memory = &device->memory;
  uint64_t active = atomic_fetch_add_explicit(&memory->active, (uint64_t)bytes,
                                              memory_order_relaxed) +
                    (uint64_t)bytes;
  if (bytes <= 0) return;
  uint_fast64_t peak =
      atomic_load_explicit(&memory->peak, memory_order_relaxed);
  while (active > peak && !atomic_compare_exchange_weak_explicit(
                              &memory->peak, &peak, active,
                              memory_order_relaxed, memory_order_relaxed)) {
  }
}

void pestle_device_memory_stats(const pestle_device_t* device,
                                pestle_memory_stats_t* out_stats) {
  if (!device || !out_stats) return;
  size_t size = out_stats->struct_size;
  pestle_memory_stats_t stats = {
      .struct_size = size,
      .active = atomic_load(&device->memory.active),
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

static void destroy_block(pestle_device_t* device, pestle_block_t* block) {
  free_data(device, block);
  pestle_dealloc(device->context->core.allocator, block, sizeof(*block));
}

// --- Blocks of devices that keep their own ---

static pestle_block_t* take_spare(pestle_device_t* device) {
  pestle_device_memory_t* memory = &device->memory;
  pestle_mutex_lock(&memory->mutex);
  pestle_block_t* block = memory->spares;
  if (block) {
    memory->spares = block->next;
    --memory->spare_count;
  }
  pestle_mutex_unlock(&memory->mutex);
  if (block) return block;
  return pestle_alloc(device->context->core.allocator, sizeof(*block));
}

static void give_spare(pestle_device_t* device, pestle_block_t* block) {
  pestle_device_memory_t* memory = &device->memory;
  pestle_mutex_lock(&memory->mutex);
  bool keep = memory->spare_count < SPARES;
  if (keep) {
    block->next = memory->spares;
    memory->spares = block;
    ++memory->spare_count;
  }
  pestle_mutex_unlock(&memory->mutex);
  if (!keep) {
    pestle_dealloc(device->context->core.allocator, block, sizeof(*block));
  }
}

static pestle_status_t make_remote(pestle_device_t* device, size_t size,
                                   pestle_block_t** out_block) {
  PESTLE_TRY(pestle_device_check_open(device));
  pestle_block_t* block = take_spare(device);
  if (!block) return PESTLE_OOM();
  *block = (pestle_block_t){.size = size ? pestle_align_up(size, 64) : 64};
  // A limit that the backend does not keep itself.
  pestle_status_t status = pestle_memory_check_limit(device, block->size);
  if (!status) status = make_data(device, block);
  if (status) {
    give_spare(device, block);
    return status;
  }
  pestle_device_count_memory(device, (int64_t)block->size);
  *out_block = block;
  return NULL;
}

static pestle_status_t make_block(pestle_device_t* device, size_t size,
                                  pestle_block_t** out_block) {
  pestle_block_t* block =
      pestle_alloc_zero(device->context->core.allocator, sizeof(*block));
  if (!block) return PESTLE_OOM();
  block->size = size;
  pestle_status_t status = make_data(device, block);
  if (status) {
    destroy_block(device, block);
  } else {
    *out_block = block;
  }
  return status;
}

static pestle_block_t* take_free(pestle_device_memory_t* memory,
                                 unsigned index) {
  pestle_mutex_lock(&memory->mutex);
  pestle_block_t* block = memory->free_blocks[index];
  if (block) {
    memory->free_blocks[index] = block->next;
    atomic_fetch_sub(&memory->cached, block->size);
  }
  pestle_mutex_unlock(&memory->mutex);
  return block;
}

pestle_status_t pestle_device_allocate(pestle_device_t* device, size_t size,
                                       pestle_block_t** out_block) {
  *out_block = NULL;
  if (size > LARGEST_BLOCK) {
    return PESTLE_ERROR(OUT_OF_MEMORY,
                        "%zu bytes are more than device %s can have", size,
                        device->name);
  }
  pestle_context_enter(device->context);
  if (!pestle_device_is_cpu(device)) {
    return make_remote(device, size, out_block);
  }
  unsigned index = block_class(size, &size);
  PESTLE_TRY(pestle_memory_check_limit(device, size));
  *out_block = take_free(&device->memory, index);
  if (!*out_block) {
    pestle_status_t status = make_block(device, size, out_block);
    if (status && atomic_load(&device->memory.cached)) {
      pestle_status_release(status);
      pestle_device_trim(device);
      status = make_block(device, size, out_block);
    }
    PESTLE_TRY(status);
  }
  pestle_device_count_memory(device, (int64_t)size);
  return NULL;
}

void pestle_device_free(pestle_device_t* device, pestle_block_t* block) {
  if (!block) return;
  pestle_context_enter(device->context);
  pestle_device_memory_t* memory = &device->memory;
  pestle_device_count_memory(device, -(int64_t)block->size);
  if (!pestle_device_is_cpu(device)) {
    free_data(device, block);
    give_spare(device, block);
    return;
  }
  size_t size;
  unsigned index = block_class(block->size, &size);
  pestle_mutex_lock(&memory->mutex);
  bool keep = atomic_load(&memory->cached) + block->size <=
              pestle_memory_cache_limit(device);
  if (keep) {
    block->next = memory->free_blocks[index];
    memory->free_blocks[index] = block;
    atomic_fetch_add(&memory->cached, block->size);
  }
  pestle_mutex_unlock(&memory->mutex);
  if (!keep) destroy_block(device, block);
}

void pestle_device_trim(pestle_device_t* device) {
  for (unsigned i = 0; i < PESTLE_BLOCK_CLASSES; ++i) {
    pestle_block_t* block;
    while ((block = take_free(&device->memory, i))) {
      destroy_block(device, block);
    }
  }
  while (device->memory.spare_count) {
    pestle_dealloc(device->context->core.allocator, take_spare(device),
                   sizeof(pestle_block_t));
  }
}
