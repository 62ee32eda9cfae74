// SPDX-License-Identifier: Apache-2.0
// What the driver knows of memory of others: which device it is of, and how much.
#include <stdio.h>

#include "plugins/cuda/backend.h"

typedef struct range_t {
  unsigned type;
  int ordinal;
  CUcontext context;  // NULL: of no context alone, as of a pool
  CUdeviceptr start;
  size_t size;
} range_t;

// The driver answers 0 of memory that it does not know.
static CUresult ask(const cuda_device_t* d, CUdeviceptr data, range_t* r) {
  CUpointer_attribute what[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&r->type, &r->ordinal, &r->context, &r->start, &r->size};
  return d->owner->driver.cuPointerGetAttributes(5, what, values, data);
}

static cuda_device_t* device_of(cuda_t* cuda, int ordinal) {
  for (int32_t i = 0; i < cuda->device_count; ++i) {
    if (cuda->device[i].id == ordinal) return &cuda->device[i];
  }
  return NULL;
}

static pestle_status_t where(void* self, const void* pointer,
                             int32_t* out_device, uint64_t* out_size) {
  cuda_t* cuda = self;
  cuda_device_t* first;
  range_t r = {0, -1, NULL, 0, 0};
  PESTLE_TRY(pestle_cuda_device(cuda, 0, &first));
  PESTLE_TRY(pestle_cuda_enter(first));
  CUdeviceptr data = cuda_address(pointer);
  CUresult result = ask(first, data, &r);
  pestle_cuda_leave(first);
  cuda_device_t* d = result || !r.type ? NULL : device_of(cuda, r.ordinal);
  if (!d || data < r.start || data - r.start > r.size) {
    return PESTLE_PLUGIN_ERROR(
        cuda->host, INVALID_ARGUMENT,
        "cuda: %p is no memory that the driver knows of a device of Pestle's",
        pointer);
  }
  // Its context is there once it was entered.
  PESTLE_TRY(pestle_cuda_enter(d));
  bool other = r.context && r.context != d->context;
  pestle_cuda_leave(d);
  if (other) {
    return PESTLE_PLUGIN_ERROR(
        cuda->host, INVALID_ARGUMENT,
        "cuda: %p is memory of another context of %s than the primary one, "
        "which Pestle uses",
        pointer, d->name);
  }
  *out_device = d->index;
  *out_size = r.size - (data - r.start);
  return NULL;
}

void pestle_cuda_where_slots(pestle_device_api_t* api) {
  api->where = where;
}
