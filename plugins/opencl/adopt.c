// SPDX-License-Identifier: Apache-2.0
// Buffers of the application: each gets a range of addresses, as those of allocate()
// have, and is kept alive while it has it.
#include <sys/mman.h>

#include "plugins/opencl/opencl.h"

static pestle_status_t look_at(const opencl_t* o, const opencl_device_t* d,
                               cl_mem_t memory, size_t* out_size) {
  cl_context_t context = NULL;
  int32_t error = o->cl->GetMemObjectInfo(memory, CL_MEM_CONTEXT,
                                          sizeof context, &context, NULL);
  if (!error) {
    error = o->cl->GetMemObjectInfo(memory, CL_MEM_SIZE, sizeof *out_size,
                                    out_size, NULL);
  }
  if (error || context != d->context) {
    return PESTLE_PLUGIN_ERROR(
        o->host, INVALID_ARGUMENT,
        error ? "opencl: the handle is no buffer that %s knows"
              : "opencl: the buffer is of another context than %s is used in; "
                "that of a command queue which Pestle shows is the one",
        d->name);
  }
  return NULL;
}

static opencl_block_t* make_block(const opencl_t* o, cl_mem_t memory,
                                  size_t size) {
  opencl_block_t* block = o->host->alloc(o->host->self, sizeof *block);
  if (!block) return NULL;
  void* address = mmap(NULL, size + OPENCL_END, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    o->host->free(o->host->self, block, sizeof *block);
    return NULL;
  }
  *block = (opencl_block_t){NULL, address, size, memory};
  return block;
}

pestle_status_t pestle_opencl_adopt(void* self, int32_t device, void* handle,
                                    uint64_t offset, uint64_t size,
                                    void** out_data, void** out_hold) {
  opencl_t* o = self;
  opencl_device_t* d = &o->device[device];
  size_t whole = 0;
  *out_data = *out_hold = NULL;
  PESTLE_TRY(look_at(o, d, handle, &whole));
  if (offset > whole || size > whole - offset) {
    return PESTLE_PLUGIN_ERROR(
        o->host, INVALID_ARGUMENT,
        "opencl: %llu bytes from %llu on lead out of a buffer of %zu on %s",
        (unsigned long long)size, (unsigned long long)offset, whole, d->name);
  }
  OPENCL_CHECK(o, o->cl->RetainMemObject(handle));
  opencl_block_t* block = make_block(o, handle, whole);
  if (!block) {
    o->cl->ReleaseMemObject(handle);
    return PESTLE_PLUGIN_ERROR(o->host, OUT_OF_MEMORY,
                               "opencl: no addresses for a buffer of %zu bytes",
                               whole);
  }
  pthread_mutex_lock(&d->lock);
  block->next = d->blocks;
  d->blocks = block;
  pthread_mutex_unlock(&d->lock);
  *out_data = block->address + offset;
  *out_hold = block;
  return NULL;
}

static bool unlink_block(opencl_device_t* d, const opencl_block_t* block) {
  bool found = false;
  pthread_mutex_lock(&d->lock);
  for (opencl_block_t** at = &d->blocks; *at && !found; at = &(*at)->next) {
    found = *at == block;
    if (!found) continue;
    *at = block->next;
    break;
  }
  pthread_mutex_unlock(&d->lock);
  return found;
}

void pestle_opencl_release_adopted(void* self, void* hold) {
  opencl_t* o = self;
  opencl_block_t* block = hold;
  for (int32_t i = 0; i < o->device_count; ++i) {
    if (unlink_block(&o->device[i], block)) break;
  }
  o->cl->ReleaseMemObject(block->memory);
  munmap(block->address, block->size + OPENCL_END);
  o->host->free(o->host->self, block, sizeof *block);
}

pestle_status_t pestle_opencl_handle_of(void* self, int32_t device,
                                        const void* data, void** out_handle,
                                        uint64_t* out_offset) {
  opencl_t* o = self;
  opencl_device_t* d = &o->device[device];
  const char* at = data;
  *out_handle = NULL;
  pthread_mutex_lock(&d->lock);
  for (const opencl_block_t* b = d->blocks; b; b = b->next) {
    if (at < b->address || at > b->address + b->size) continue;
    *out_handle = b->memory;
    *out_offset = (uint64_t)(at - b->address);
    break;
  }
  pthread_mutex_unlock(&d->lock);
  if (*out_handle) return NULL;
  return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                             "%p is in no buffer of %s", data, d->name);
}
