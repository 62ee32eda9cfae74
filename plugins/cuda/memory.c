// SPDX-License-Identifier: Apache-2.0
// The allocator of a device. An allocation of the driver takes 30 to 40 us and
// freeing one waits for the device, so blocks are kept. deallocate() may be
// called while work that uses the memory is queued: such a block waits, behind
// an event of each stream that is busy, before it may be used again.
#include <stdio.h>
#include <string.h>

#include "plugins/cuda/backend.h"

enum { LEAST = 256, LARGEST_STEP = 2 << 20 };

static unsigned logarithm(uint64_t size) {
  return 63u - (unsigned)__builtin_clzll(size | 1);
}

// Eight sizes to a power of two, then steps of 2 MiB, as the driver's own pages.
static size_t rounded(size_t size) {
  if (size < LEAST) return LEAST;
  size_t step = (size_t)1 << logarithm(size) >> 3;
  if (step < LEAST) step = LEAST;
  if (step > LARGEST_STEP) step = LARGEST_STEP;
  return (size + step - 1) / step * step;
}

static unsigned chain_of(CUdeviceptr data) {
  uint64_t mixed = (data >> 8) * UINT64_C(0x9e3779b97f4a7c15);
  return (unsigned)(mixed >> 54);  // 10 bits: CUDA_LIVE_CHAINS
}

// --- Blocks that are kept ---

static void give_back(cuda_device_t* d, cuda_block_t* block) {
  const pestle_host_t* host = d->owner->host;
  if (!atomic_load(&d->is_stuck))
    (void)d->owner->driver.cuMemFree_v2(block->data);
  host->free(host->self, block, sizeof *block);
}

static void trim(cuda_device_t* d, uint64_t most) {
  cuda_memory_t* m = &d->memory;
  // The largest first: few calls.
  for (int c = CUDA_SIZE_CLASSES - 1; c >= 0; --c) {
    while (m->kept[c] && m->cached > most) {
      cuda_block_t* block = m->kept[c];
      m->kept[c] = block->next;
      m->cached -= block->size;
      give_back(d, block);
    }
  }
}

static void keep(cuda_device_t* d, cuda_block_t* block) {
  cuda_memory_t* m = &d->memory;
  if (m->cached + m->waits + block->size > m->cache_limit) {
    give_back(d, block);
    return;
  }
  cuda_block_t** head = &m->kept[logarithm(block->size)];
  block->next = *head;
  *head = block;
  m->cached += block->size;
}

// One that holds |size| and wastes at most an eighth.
static cuda_block_t* take_kept(cuda_memory_t* m, size_t size) {
  size_t most = size + size / 8;
  for (unsigned c = logarithm(size); c <= logarithm(most); ++c) {
    for (cuda_block_t** at = &m->kept[c]; *at; at = &(*at)->next) {
      cuda_block_t* block = *at;
      if (block->size < size || block->size > most) continue;
      *at = block->next;
      m->cached -= block->size;
      return block;
    }
  }
  return NULL;
}

// --- Blocks that wait ---

static void end_ticket(cuda_device_t* d, cuda_ticket_t* ticket) {
  const pestle_host_t* host = d->owner->host;
  for (uint32_t i = 0; i < ticket->count; ++i)
    (void)d->owner->driver.cuEventDestroy_v2(ticket->event[i]);
  while (ticket->blocks) {
    cuda_block_t* block = ticket->blocks;
    ticket->blocks = block->next;
    d->memory.waits -= block->size;
    keep(d, block);
  }
  host->free(host->self, ticket,
             sizeof *ticket + ticket->room * sizeof(CUevent));
}

// Of a device that is lost all events have come.
static bool has_come(const cuda_device_t* d, const cuda_ticket_t* ticket,
                     bool wait) {
  for (uint32_t i = 0; i < ticket->count; ++i) {
    CUresult result =
        wait ? d->owner->driver.cuEventSynchronize(ticket->event[i])
             : d->owner->driver.cuEventQuery(ticket->event[i]);
    if (result == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

static void reclaim(cuda_device_t* d, bool wait) {
  for (cuda_ticket_t** at = &d->memory.waiting; *at;) {
    cuda_ticket_t* ticket = *at;
    if (!has_come(d, ticket, wait)) {
      at = &ticket->next;
      continue;
    }
    *at = ticket->next;
    end_ticket(d, ticket);
  }
}

static uint32_t count_busy(const cuda_device_t* d) {
  uint32_t count = 0;
  for (const pestle_device_stream_t* s = d->streams; s; s = s->next)
    count += cuda_is_busy(s) && !atomic_load(&s->recording);
  return count;
}

// Events behind all that is queued. NULL: nothing is, or none could be made,
// which a lost device alone does. The lock of the streams is held.
static cuda_ticket_t* make_ticket(cuda_device_t* d, uint32_t busy) {
  const cuda_driver_t* driver = &d->owner->driver;
  const pestle_host_t* host = d->owner->host;
  size_t size = sizeof(cuda_ticket_t) + busy * sizeof(CUevent);
  cuda_ticket_t* ticket = host->alloc(host->self, size);
  if (!ticket) return NULL;
  *ticket = (cuda_ticket_t){.work = atomic_load(&d->work), .room = busy};
  uint32_t made = 0;
  bool failed = false;
  for (pestle_device_stream_t* s = d->streams; s && made < busy; s = s->next) {
    if (!cuda_is_busy(s) || atomic_load(&s->recording)) continue;
    CUevent event;
    failed |= driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != 0;
    if (failed) break;
    ticket->event[made++] = event;
    failed |= driver->cuEventRecord(event, s->handle) != 0;
  }
  ticket->count = made;  // a stream may have come to its end meanwhile
  if (!failed) return ticket;
  while (made)
    (void)driver->cuEventDestroy_v2(ticket->event[--made]);
  host->free(host->self, ticket, size);
  return NULL;
}

// Makes |block| free once nothing that was queued can use it.
static void retire(cuda_device_t* d, cuda_block_t* block) {
  cuda_memory_t* m = &d->memory;
  pthread_mutex_lock(&d->streams_lock);
  uint32_t busy = count_busy(d);
  cuda_ticket_t* ticket = m->waiting;
  bool joins = busy && ticket && ticket->work == atomic_load(&d->work);
  if (busy && !joins) {
    ticket = make_ticket(d, busy);
    if (ticket) {
      ticket->next = m->waiting;
      m->waiting = ticket;
    } else {
      // Without memory or events: wait for all of it.
      for (pestle_device_stream_t* s = d->streams; s; s = s->next) {
        if (!atomic_load(&s->recording)) {
          pestle_status_t end = pestle_cuda_wait_stream(d, s->handle);
          if (end) d->owner->host->status_release(d->owner->host->self, end);
        }
      }
    }
  }
  pthread_mutex_unlock(&d->streams_lock);
  if (!busy || !ticket) {
    keep(d, block);
    return;
  }
  block->next = ticket->blocks;
  ticket->blocks = block;
  m->waits += block->size;
}

// --- allocate, deallocate ---

static pestle_status_t out_of_memory(const cuda_device_t* d, size_t size,
                                     CUresult result) {
  const cuda_memory_t* m = &d->memory;
  char words[160] = "the limit that was set";
  if (result) {
    pestle_cuda_words(&d->owner->driver, result, words, sizeof words);
  }
  return PESTLE_PLUGIN_ERROR(
      d->owner->host, OUT_OF_MEMORY,
      "cuda: device %d (%s) has no %zu bytes more: %llu are in use, %llu kept, "
      "%llu allowed (%s); use smaller batches or clear its cache",
      (int)d->index, d->name, size, (unsigned long long)m->active,
      (unsigned long long)(m->cached + m->waits), (unsigned long long)m->limit,
      words);
}

static pestle_status_t make_block(cuda_device_t* d, size_t size,
                                  cuda_block_t** out_block) {
  const pestle_host_t* host = d->owner->host;
  cuda_memory_t* m = &d->memory;
  CUdeviceptr data = 0;
  cuda_block_t* block = host->alloc(host->self, sizeof *block);
  if (!block) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory to note an allocation");
  }
  uint64_t used = m->active + m->waits;
  trim(d, m->limit > used + size ? m->limit - used - size : 0);
  CUresult result = d->owner->driver.cuMemAlloc_v2(&data, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    reclaim(d, true);
    trim(d, 0);
    result = d->owner->driver.cuMemAlloc_v2(&data, size);
  }
  if (result) {
    host->free(host->self, block, sizeof *block);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      return out_of_memory(d, size, result);
    }
    return pestle_cuda_failed(d, result, __FILE__, __LINE__, "cuMemAlloc_v2");
  }
  *block = (cuda_block_t){.data = data, .size = size};
  *out_block = block;
  return NULL;
}

// The lock is held.
static pestle_status_t find_block(cuda_device_t* d, size_t size,
                                  cuda_block_t** out_block) {
  cuda_memory_t* m = &d->memory;
  size_t needed = rounded(size);
  *out_block = NULL;
  if (size > m->limit || m->active > m->limit - size) {
    return out_of_memory(d, size, CUDA_SUCCESS);
  }
  *out_block = take_kept(m, needed);
  if (!*out_block && m->waiting) {
    reclaim(d, false);
    *out_block = take_kept(m, needed);
  }
  return *out_block ? NULL : make_block(d, needed, out_block);
}

static pestle_status_t allocate(void* self, int32_t device, size_t size,
                                void** out_data) {
  cuda_device_t* d;
  cuda_block_t* block;
  *out_data = NULL;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(pestle_cuda_enter(d));
  cuda_memory_t* m = &d->memory;
  pthread_mutex_lock(&m->lock);
  pestle_status_t status = find_block(d, size, &block);
  if (!status) {
    block->asked = size;
    m->active += size;
    if (m->active > m->peak) m->peak = m->active;
    cuda_block_t** head = &m->live[chain_of(block->data)];
    block->next = *head;
    *head = block;
    *out_data = cuda_pointer(block->data);
  }
  pthread_mutex_unlock(&m->lock);
  pestle_cuda_leave(d);
  return status;
}

static cuda_block_t* take_live(cuda_memory_t* m, CUdeviceptr data) {
  for (cuda_block_t** at = &m->live[chain_of(data)]; *at; at = &(*at)->next) {
    cuda_block_t* block = *at;
    if (block->data != data) continue;
    *at = block->next;
    m->active -= block->asked;
    return block;
  }
  return NULL;
}

static void deallocate(void* self, int32_t device, void* data, size_t size) {
  cuda_t* cuda = self;
  cuda_device_t* d;
  (void)size;
  pestle_status_t status = pestle_cuda_device(cuda, device, &d);
  if (!status && data) status = pestle_cuda_enter(d);
  if (status || !data) {
    if (status) cuda->host->status_release(cuda->host->self, status);
    return;
  }
  pthread_mutex_lock(&d->memory.lock);
  cuda_block_t* block = take_live(&d->memory, cuda_address(data));
  if (block) retire(d, block);
  pthread_mutex_unlock(&d->memory.lock);
  pestle_cuda_leave(d);
}

// --- Numbers ---

static pestle_status_t no_number(const cuda_t* cuda, pestle_memory_t what) {
  return PESTLE_PLUGIN_ERROR(cuda->host, UNSUPPORTED, "cuda: %s",
                             what == PESTLE_MEMORY_WIRED_LIMIT
                                 ? "devices have memory of their own: nothing "
                                   "of the system's is wired"
                                 : "there is no such number to set");
}

static pestle_status_t memory_get(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t* out_bytes) {
  cuda_device_t* d;
  *out_bytes = 0;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  if (what == PESTLE_MEMORY_WIRED_LIMIT) return no_number(self, what);
  const cuda_memory_t* m = &d->memory;
  pthread_mutex_lock(&d->memory.lock);
  const uint64_t number[] = {
      [PESTLE_MEMORY_ACTIVE] = m->active,
      [PESTLE_MEMORY_PEAK] = m->peak,
      [PESTLE_MEMORY_CACHE] = m->cached + m->waits,
      [PESTLE_MEMORY_CACHE_LIMIT] = m->cache_limit,
      [PESTLE_MEMORY_LIMIT] = m->limit,
      [PESTLE_MEMORY_TOTAL] = d->total,
  };
  bool known = (size_t)what < sizeof number / sizeof *number;
  if (known) *out_bytes = number[what];
  pthread_mutex_unlock(&d->memory.lock);
  return known ? NULL : no_number(self, what);
}

// Keeps at most |most| from now on.
static void shrink(cuda_device_t* d, uint64_t most) {
  reclaim(d, false);
  trim(d, most > d->memory.waits ? most - d->memory.waits : 0);
}

static pestle_status_t set_number(cuda_device_t* d, pestle_memory_t what,
                                  uint64_t bytes, uint64_t* out_before) {
  cuda_memory_t* m = &d->memory;
  switch (what) {
    case PESTLE_MEMORY_PEAK:
      *out_before = m->peak;
      m->peak = m->active;
      return NULL;
    case PESTLE_MEMORY_CACHE:
      *out_before = m->cached + m->waits;
      shrink(d, bytes);
      return NULL;
    case PESTLE_MEMORY_CACHE_LIMIT:
      *out_before = m->cache_limit;
      m->cache_limit = bytes;
      shrink(d, bytes);
      return NULL;
    case PESTLE_MEMORY_LIMIT:
      *out_before = m->limit;
      m->limit = bytes;
      return NULL;
    case PESTLE_MEMORY_ACTIVE:
    case PESTLE_MEMORY_WIRED_LIMIT:
    case PESTLE_MEMORY_TOTAL:
      break;
  }
  return no_number(d->owner, what);
}

static pestle_status_t memory_set(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t bytes,
                                  uint64_t* out_before) {
  cuda_device_t* d;
  uint64_t before = 0;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(pestle_cuda_enter(d));
  pthread_mutex_lock(&d->memory.lock);
  pestle_status_t status = set_number(d, what, bytes, &before);
  pthread_mutex_unlock(&d->memory.lock);
  pestle_cuda_leave(d);
  if (out_before) *out_before = before;
  return status;
}

// --- Life ---

void pestle_cuda_memory_init(cuda_device_t* d) {
  memset(&d->memory, 0, sizeof d->memory);
  pthread_mutex_init(&d->memory.lock, NULL);
  d->memory.limit = d->total;
  d->memory.cache_limit = d->total;
}

void pestle_cuda_memory_deinit(cuda_device_t* d) {
  reclaim(d, true);
  trim(d, 0);
  for (unsigned i = 0; i < CUDA_LIVE_CHAINS; ++i) {
    while (d->memory.live[i]) {
      cuda_block_t* block = d->memory.live[i];
      d->memory.live[i] = block->next;
      give_back(d, block);
    }
  }
}

void pestle_cuda_memory_slots(pestle_device_api_t* api) {
  api->allocate = allocate;
  api->deallocate = deallocate;
  api->memory_get = memory_get;
  api->memory_set = memory_set;
}
