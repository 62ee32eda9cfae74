// SPDX-License-Identifier: Apache-2.0
// Buffers. Each has memory of its own and an address, which is what a tensor's
// data pointer is. One that is given back waits until the work that may use it
// is done, and is then kept for the next request of its size.
#include <string.h>

#include "plugins/vulkan/vulkan.h"

// Work that was recorded, but not submitted, may use it.
#define LIMBO UINT64_MAX

static bool has_stalled(const vulkan_device_t* d) {
  for (const pestle_device_stream_t* s = d->streams; s; s = s->next) {
    if (s->recorded) return true;
  }
  return false;
}

static void destroy_block(vulkan_device_t* d, vulkan_block_t* b) {
  const pestle_host_t* host = d->owner->host;
  if (b->buffer) d->DestroyBuffer(d->device, b->buffer, NULL);
  if (b->memory) d->FreeMemory(d->device, b->memory, NULL);
  host->free(host->self, b, sizeof *b);
}

static void trim_locked(vulkan_device_t* d) {
  while (d->cache_bytes > d->cache_limit && d->cached) {
    vulkan_block_t* b = d->cached;
    d->cached = b->next;
    d->cache_bytes -= b->size;
    destroy_block(d, b);
  }
}

// Moves what is done with from the retired to the cached.
static void sweep_locked(vulkan_device_t* d) {
  uint64_t done = 0;
  if (!d->retired) return;
  bool stalled = has_stalled(d);
  d->GetSemaphoreCounterValue(d->device, d->clock, &done);
  for (vulkan_block_t** at = &d->retired; *at;) {
    vulkan_block_t* b = *at;
    if (b->free_from == LIMBO && !stalled) b->free_from = d->now;
    if (b->free_from > done) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    b->next = d->cached;
    d->cached = b;
    d->cache_bytes += b->size;
  }
  trim_locked(d);
}

void pestle_vulkan_retire_locked(vulkan_device_t* d, vulkan_block_t* block,
                                 uint64_t more) {
  block->free_from = has_stalled(d) ? LIMBO : d->now + more;
  block->next = d->retired;
  d->retired = block;
}

static vulkan_block_t* take_cached(vulkan_device_t* d, size_t size,
                                   bool staging) {
  for (vulkan_block_t** at = &d->cached; *at; at = &(*at)->next) {
    vulkan_block_t* b = *at;
    if (b->size != size || b->staging != staging) continue;
    *at = b->next;
    d->cache_bytes -= size;
    return b;
  }
  return NULL;
}

static VkResult fill_block(vulkan_device_t* d, vulkan_block_t* b) {
  VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = b->size,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  VkResult result = d->CreateBuffer(d->device, &info, NULL, &b->buffer);
  if (result != VK_SUCCESS) return result;
  VkMemoryRequirements needs;
  d->GetBufferMemoryRequirements(d->device, b->buffer, &needs);
  VkMemoryAllocateFlagsInfo flags = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
      .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  VkMemoryAllocateInfo memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = &flags,
      .allocationSize = needs.size,
      .memoryTypeIndex =
          b->staging ? d->staging_type_index : d->device_type_index};
  result = d->AllocateMemory(d->device, &memory, NULL, &b->memory);
  if (result != VK_SUCCESS) return result;
  result = d->BindBufferMemory(d->device, b->buffer, b->memory, 0);
  if (result != VK_SUCCESS) return result;
  VkBufferDeviceAddressInfo at = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
      .buffer = b->buffer};
  b->address = d->GetBufferDeviceAddress(d->device, &at);
  // Where the device's memory is the host's too, both may look at it.
  if (b->staging || d->device_type_index == d->staging_type_index) {
    return d->MapMemory(d->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped);
  }
  return VK_SUCCESS;
}

pestle_status_t pestle_vulkan_block_locked(vulkan_device_t* d, size_t size,
                                           bool staging,
                                           vulkan_block_t** out_block) {
  const pestle_host_t* host = d->owner->host;
  if (size == 0) size = 1;
  size = (size + 255) & ~(size_t)255;
  sweep_locked(d);
  *out_block = take_cached(d, size, staging);
  if (*out_block) return NULL;
  vulkan_block_t* b = host->alloc(host->self, sizeof *b);
  VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;
  if (b) {
    memset(b, 0, sizeof *b);
    b->size = size;
    b->staging = staging;
    result = size <= d->most_memory ? fill_block(d, b)
                                    : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (result != VK_SUCCESS) {
    if (b) destroy_block(d, b);
    return PESTLE_PLUGIN_ERROR(
        host, OUT_OF_MEMORY,
        "vulkan: %s has no %zu bytes more (%d): %llu are in use", d->name, size,
        (int)result, (unsigned long long)d->active);
  }
  *out_block = b;
  return NULL;
}

vulkan_block_t* pestle_vulkan_find_locked(vulkan_device_t* d, const void* data,
                                          size_t size) {
  VkDeviceAddress at = (VkDeviceAddress)(uintptr_t)data;
  for (vulkan_block_t* b = d->blocks; b; b = b->next) {
    if (at < b->address || at - b->address > b->size) continue;
    if (size <= b->size - (size_t)(at - b->address)) return b;
  }
  return NULL;
}

pestle_status_t pestle_vulkan_allocate(void* self, int32_t device, size_t size,
                                       void** out_data) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  vulkan_block_t* b = NULL;
  pestle_status_t status = NULL;
  *out_data = NULL;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  pthread_mutex_lock(&d->lock);
  if (d->active + size > d->limit) {
    status = PESTLE_PLUGIN_ERROR(
        v->host, OUT_OF_MEMORY,
        "vulkan: %zu bytes more would pass the limit of %llu on %s", size,
        (unsigned long long)d->limit, d->name);
  } else {
    status = pestle_vulkan_block_locked(d, size, false, &b);
  }
  if (b) {
    b->next = d->blocks;
    d->blocks = b;
    d->active += b->size;
    if (d->active > d->peak) d->peak = d->active;
    *out_data = (void*)(uintptr_t)b->address;
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

void pestle_vulkan_deallocate(void* self, int32_t device, void* data,
                              size_t size) {
  vulkan_t* v = self;
  vulkan_device_t* d = &v->device[device];
  (void)size;
  pthread_mutex_lock(&d->lock);
  for (vulkan_block_t** at = &d->blocks; *at; at = &(*at)->next) {
    vulkan_block_t* b = *at;
    if (b->address != (VkDeviceAddress)(uintptr_t)data) continue;
    *at = b->next;
    d->active -= b->size;
    pestle_vulkan_retire_locked(d, b, 0);
    break;
  }
  sweep_locked(d);
  pthread_mutex_unlock(&d->lock);
}

void* pestle_vulkan_raw_ptr(void* self, int32_t device, void* data) {
  vulkan_t* v = self;
  vulkan_device_t* d = &v->device[device];
  pthread_mutex_lock(&d->lock);
  const vulkan_block_t* b = pestle_vulkan_find_locked(d, data, 0);
  void* raw = NULL;
  if (b && b->mapped) {
    raw = (char*)b->mapped + ((VkDeviceAddress)(uintptr_t)data - b->address);
  }
  pthread_mutex_unlock(&d->lock);
  return raw;
}

static void destroy_list(vulkan_device_t* d, vulkan_block_t** list) {
  while (*list) {
    vulkan_block_t* b = *list;
    *list = b->next;
    destroy_block(d, b);
  }
}

void pestle_vulkan_free_all(vulkan_device_t* d) {
  destroy_list(d, &d->blocks);
  destroy_list(d, &d->retired);
  destroy_list(d, &d->cached);
}

// --- Numbers ---

pestle_status_t pestle_vulkan_memory_get(void* self, int32_t device,
                                         pestle_memory_t what,
                                         uint64_t* out_bytes) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  *out_bytes = 0;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  pestle_status_t status = NULL;
  pthread_mutex_lock(&d->lock);
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      *out_bytes = d->active;
      break;
    case PESTLE_MEMORY_PEAK:
      *out_bytes = d->peak;
      break;
    case PESTLE_MEMORY_CACHE:
      sweep_locked(d);
      *out_bytes = d->cache_bytes;
      break;
    case PESTLE_MEMORY_CACHE_LIMIT:
      *out_bytes = d->cache_limit;
      break;
    case PESTLE_MEMORY_LIMIT:
      *out_bytes = d->limit;
      break;
    case PESTLE_MEMORY_TOTAL:
      *out_bytes = d->memory_bytes;
      break;
    case PESTLE_MEMORY_WIRED_LIMIT:
      status = PESTLE_PLUGIN_ERROR(v->host, UNSUPPORTED,
                                   "vulkan pins no memory of the system");
      break;
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

pestle_status_t pestle_vulkan_memory_set(void* self, int32_t device,
                                         pestle_memory_t what, uint64_t bytes,
                                         uint64_t* out_before) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  uint64_t before = 0, limit;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  pthread_mutex_lock(&d->lock);
  bool known = true;
  switch (what) {
    case PESTLE_MEMORY_PEAK:
      before = d->peak;
      d->peak = d->active;
      break;
    case PESTLE_MEMORY_CACHE:
      sweep_locked(d);
      before = d->cache_bytes;
      limit = d->cache_limit;
      d->cache_limit = 0;
      trim_locked(d);
      d->cache_limit = limit;
      break;
    case PESTLE_MEMORY_CACHE_LIMIT:
      before = d->cache_limit;
      d->cache_limit = bytes;
      trim_locked(d);
      break;
    case PESTLE_MEMORY_LIMIT:
      before = d->limit;
      d->limit = bytes;
      break;
    case PESTLE_MEMORY_ACTIVE:
    case PESTLE_MEMORY_TOTAL:
    case PESTLE_MEMORY_WIRED_LIMIT:
      known = false;
      break;
  }
  pthread_mutex_unlock(&d->lock);
  if (out_before) *out_before = before;
  if (known) return NULL;
  return PESTLE_PLUGIN_ERROR(v->host, UNSUPPORTED,
                             "vulkan has no such number to set");
}
