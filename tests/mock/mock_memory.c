// SPDX-License-Identifier: Apache-2.0
// Device memory. One reservation of two halves: addresses of the first are the
// device's and belong to no page; the bytes lie as far into the second.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mock/mock_internal.h"

#define SPAN ((size_t)2 << 30)  // of one device
#define HALF (SPAN * MOCK_DEVICES)
#define GAP 256  // between blocks: neither may be reached from the other

typedef struct block_t {
  struct block_t* next;  // by place
  size_t at, size;       // as asked for
  bool dead;             // freed, but work that was queued may use it
} block_t;

static block_t* blocks[MOCK_DEVICES];
static uint64_t active[MOCK_DEVICES], peak[MOCK_DEVICES];
static uint64_t limit[MOCK_DEVICES] = {SPAN, SPAN, SPAN, SPAN};
static char* reservation;
static pthread_once_t reserved = PTHREAD_ONCE_INIT;

static void reserve(void) {
  char* base = mmap(NULL, 2 * HALF, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return;
  if (mprotect(base + HALF, HALF, PROT_READ | PROT_WRITE)) return;
  reservation = base;
}

static char* base_of(int32_t device) {
  return reservation + (size_t)device * SPAN;
}

void* mock_real(const void* address) {
  uintptr_t at = (uintptr_t)address, base = (uintptr_t)reservation;
  bool is_device = reservation && at >= base && at - base < HALF;
  return (void*)(is_device ? at + HALF : at);
}

// --- Blocks, with the lock held ---

static block_t* find(int32_t device, const void* data) {
  uintptr_t at = (uintptr_t)data, base = (uintptr_t)base_of(device);
  for (block_t* b = blocks[device]; b; b = b->next) {
    if (at - base >= b->at && at - base <= b->at + b->size) return b;
  }
  return NULL;
}

pestle_status_t mock_check(const pestle_host_t* host, int32_t device,
                           const void* data, size_t size, const char* what) {
  block_t* b = reservation ? find(device, data) : NULL;
  if (b && !b->dead) {
    size_t at = (size_t)((const char*)data - base_of(device)) - b->at;
    if (size <= b->size - at) return NULL;
  }
  mock_fault("%s is %s of device %d", what, b ? "freed memory" : "no memory",
             (int)device);
  return MOCK_ERROR(host, INVALID_ARGUMENT,
                    "mock: %s at %p (%zu bytes) is no memory of device %d",
                    what, data, size, (int)device);
}

static block_t* place(int32_t device, size_t size) {
  block_t** link = &blocks[device];
  size_t end = GAP;
  for (; *link && (*link)->at - end < size + GAP; link = &(*link)->next) {
    end = ((*link)->at + (*link)->size + 2 * GAP - 1) / GAP * GAP;
  }
  if (size > SPAN - GAP - end) return NULL;
  block_t* b = calloc(1, sizeof(*b));
  if (!b) return NULL;
  *b = (block_t){.next = *link, .at = end, .size = size};
  *link = b;
  return b;
}

void mock_reclaim(int32_t device) {
  for (block_t** link = &blocks[device]; *link;) {
    block_t* b = *link;
    if (!b->dead) {
      link = &b->next;
      continue;
    }
    *link = b->next;
    free(b);
  }
}

// --- Slots ---

static void fill(char* data, size_t size, int value) {
  // Large blocks keep what they have: it is the small ones that are misused.
  memset(mock_real(data), value, size < 65536 ? size : 65536);
}

static pestle_status_t allocate(void* self, int32_t local, size_t size,
                                void** out_data) {
  int32_t device = mock_device(self, local);
  const pestle_host_t* host = mock_host(self);
  *out_data = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_ALLOCATE));
  pthread_once(&reserved, reserve);
  pthread_mutex_lock(&mock_lock);
  if (!mock_busy(device)) mock_reclaim(device);
  block_t* b = NULL;
  if (reservation && active[device] + size <= limit[device]) {
    b = place(device, size);
  }
  if (b) {
    active[device] += size;
    if (peak[device] < active[device]) peak[device] = active[device];
    *out_data = base_of(device) + b->at;
    fill(*out_data, size, 0xa5);
  }
  pthread_mutex_unlock(&mock_lock);
  if (!b) {
    return MOCK_ERROR(host, OUT_OF_MEMORY,
                      "mock: device %d has no %zu bytes left", (int)local,
                      size);
  }
  atomic_fetch_add(&mock_state()->live_blocks, 1);
  return NULL;
}

static void deallocate(void* self, int32_t local, void* data, size_t size) {
  int32_t device = mock_device(self, local);
  atomic_fetch_add(&mock_state()->calls[MOCK_DEALLOCATE], 1);
  pthread_mutex_lock(&mock_lock);
  block_t* b = find(device, data);
  if (!b || b->dead || b->size != size || base_of(device) + b->at != data) {
    mock_fault("a block is freed that there is not");
  } else {
    b->dead = true;
    active[device] -= size;
    atomic_fetch_sub(&mock_state()->live_blocks, 1);
    if (!mock_busy(device)) {
      fill(data, size, 0xdd);
      mock_reclaim(device);
    }
  }
  pthread_mutex_unlock(&mock_lock);
}

static pestle_status_t check(void* self, int32_t local, const void* data,
                             size_t size, const char* what) {
  pthread_mutex_lock(&mock_lock);
  pestle_status_t status =
      mock_check(mock_host(self), mock_device(self, local), data, size, what);
  pthread_mutex_unlock(&mock_lock);
  return status;
}

static pestle_status_t copy_from_host(void* self, int32_t local,
                                      const void* from, void* to, size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_COPY_FROM_HOST));
  PESTLE_TRY(check(self, local, to, size, "what a copy writes"));
  memcpy(mock_real(to), from, size);
  return NULL;
}

static pestle_status_t copy_to_host(void* self, int32_t local, const void* from,
                                    void* to, size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_COPY_TO_HOST));
  PESTLE_TRY(check(self, local, from, size, "what a copy reads"));
  memcpy(to, mock_real(from), size);
  return NULL;
}

static pestle_status_t copy_device(void* self, int32_t from_device,
                                   const void* from, int32_t to_device,
                                   void* to, size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_COPY_DEVICE));
  PESTLE_TRY(check(self, from_device, from, size, "what a copy reads"));
  PESTLE_TRY(check(self, to_device, to, size, "what a copy writes"));
  memcpy(mock_real(to), mock_real(from), size);
  return NULL;
}

// The second device shares the host's memory, the first does not.
static void* buffer_raw_ptr(void* self, int32_t local, void* data) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_BUFFER_RAW_PTR], 1);
  return local == 1 ? mock_real(data) : NULL;
}

static pestle_status_t memory_get(void* self, int32_t local,
                                  pestle_memory_t what, uint64_t* out_bytes) {
  int32_t device = mock_device(self, local);
  PESTLE_TRY(mock_enter(self, MOCK_MEMORY_GET));
  pthread_mutex_lock(&mock_lock);
  bool known = true;
  *out_bytes = 0;
  switch (what) {
    case PESTLE_MEMORY_ACTIVE:
      *out_bytes = active[device];
      break;
    case PESTLE_MEMORY_PEAK:
      *out_bytes = peak[device];
      break;
    case PESTLE_MEMORY_CACHE:
      break;
    case PESTLE_MEMORY_LIMIT:
      *out_bytes = limit[device];
      break;
    case PESTLE_MEMORY_TOTAL:
      *out_bytes = SPAN;
      break;
    case PESTLE_MEMORY_CACHE_LIMIT:
    case PESTLE_MEMORY_WIRED_LIMIT:
      known = false;
      break;
  }
  pthread_mutex_unlock(&mock_lock);
  if (known) return NULL;
  return MOCK_ERROR(mock_host(self), UNSUPPORTED, "mock: has no such number");
}

static pestle_status_t memory_set(void* self, int32_t local,
                                  pestle_memory_t what, uint64_t bytes,
                                  uint64_t* out_before) {
  int32_t device = mock_device(self, local);
  PESTLE_TRY(mock_enter(self, MOCK_MEMORY_SET));
  bool known = what == PESTLE_MEMORY_PEAK || what == PESTLE_MEMORY_CACHE ||
               what == PESTLE_MEMORY_LIMIT;
  uint64_t before = 0;
  pthread_mutex_lock(&mock_lock);
  if (what == PESTLE_MEMORY_PEAK) {
    before = peak[device];
    peak[device] = active[device];
  } else if (what == PESTLE_MEMORY_LIMIT) {
    before = limit[device];
    limit[device] = bytes;
  }
  pthread_mutex_unlock(&mock_lock);
  if (out_before) *out_before = before;
  if (known) return NULL;
  return MOCK_ERROR(mock_host(self), UNSUPPORTED,
                    "mock: has no such number to set");
}

static pestle_status_t property(void* self, int32_t local, uint32_t index,
                                pestle_device_property_t* out_property) {
  PESTLE_TRY(mock_enter(self, MOCK_PROPERTY));
  pestle_device_property_t p = {.struct_size = out_property->struct_size};
  if (index > 1) {
    return MOCK_ERROR(mock_host(self), NOT_FOUND,
                      "mock: there is no property %u", index);
  }
  snprintf(p.name, sizeof(p.name), "%s", index ? "number" : "model");
  p.is_text = !index;
  p.integer = local;
  if (p.is_text) snprintf(p.text, sizeof(p.text), "mock %d", (int)local);
  *out_property = p;
  return NULL;
}

// --- Memory of others ---
//
// A block's handle is where its bytes really are: nothing that the host uses.

static pestle_status_t no_memory(void* self, const char* what) {
  return MOCK_ERROR(mock_host(self), INVALID_ARGUMENT,
                    "mock: %s is no memory of this device", what);
}

static pestle_status_t adopt(void* self, int32_t local, void* handle,
                             uint64_t offset, uint64_t size, void** out_data,
                             void** out_hold) {
  int32_t device = mock_device(self, local);
  *out_data = *out_hold = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_ADOPT));
  void* hold = malloc(1);
  if (!hold) return MOCK_ERROR(mock_host(self), OUT_OF_MEMORY, "no memory");
  pthread_mutex_lock(&mock_lock);
  for (block_t* b = blocks[device]; b; b = b->next) {
    char* base = base_of(device) + b->at;
    if (b->dead || mock_real(base) != handle) continue;
    if (offset <= b->size && size <= b->size - offset)
      *out_data = base + offset;
  }
  pthread_mutex_unlock(&mock_lock);
  if (!*out_data) {
    free(hold);
    return no_memory(self, "the handle with so many bytes");
  }
  *out_hold = hold;
  atomic_fetch_add(&mock_state()->live_adopted, 1);
  return NULL;
}

static void release_adopted(void* self, void* hold) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_RELEASE_ADOPTED], 1);
  atomic_fetch_sub(&mock_state()->live_adopted, 1);
  free(hold);
}

static pestle_status_t handle_of(void* self, int32_t local, const void* data,
                                 void** out_handle, uint64_t* out_offset) {
  int32_t device = mock_device(self, local);
  PESTLE_TRY(mock_enter(self, MOCK_HANDLE_OF));
  pthread_mutex_lock(&mock_lock);
  const block_t* b = reservation ? find(device, data) : NULL;
  if (b) {
    char* base = base_of(device) + b->at;
    *out_handle = mock_real(base);
    *out_offset = (uint64_t)((const char*)data - base);
  }
  pthread_mutex_unlock(&mock_lock);
  return b ? NULL : no_memory(self, "the address");
}

static pestle_status_t where(void* self, const void* pointer,
                             int32_t* out_device, uint64_t* out_size) {
  PESTLE_TRY(mock_enter(self, MOCK_WHERE));
  bool found = false;
  pthread_mutex_lock(&mock_lock);
  for (int32_t i = 0; i < 2 && reservation && !found; ++i) {
    int32_t device = mock_device(self, i);
    const block_t* b = find(device, pointer);
    found = b && !b->dead;
    if (!found) continue;
    *out_device = i;
    *out_size =
        b->size - (uint64_t)((const char*)pointer - (base_of(device) + b->at));
  }
  pthread_mutex_unlock(&mock_lock);
  return found ? NULL : no_memory(self, "the pointer");
}

static void dlpack_device(void* self, int32_t local, int32_t* out_type,
                          int32_t* out_id) {
  const mock_backend_t* backend = self;
  int32_t type = backend->first ? 0 : mock_state()->dl_type;
  *out_type = type ? type : backend->table.device_type;
  *out_id = local;
}

void mock_memory_slots(pestle_device_api_t* api) {
  api->adopt = adopt;
  api->release_adopted = release_adopted;
  api->handle_of = handle_of;
  api->where = where;
  api->dlpack_device = dlpack_device;
  api->allocate = allocate;
  api->deallocate = deallocate;
  api->copy_from_host = copy_from_host;
  api->copy_to_host = copy_to_host;
  api->copy_device = copy_device;
  api->buffer_raw_ptr = buffer_raw_ptr;
  api->memory_get = memory_get;
  api->memory_set = memory_set;
  api->property = property;
}
