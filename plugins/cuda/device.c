// SPDX-License-Identifier: Apache-2.0
// Devices: what they are, their contexts, what calls on them say.
#include <stdio.h>
#include <string.h>

#include "plugins/cuda/backend.h"

// --- Failures ---

// A context in which one of these came is lost: all calls fail from then on.
static bool is_lost(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

static pestle_status_code_t code_of(CUresult result) {
  if (is_lost(result)) return PESTLE_STATUS_UNAVAILABLE;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return PESTLE_STATUS_OUT_OF_MEMORY;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return PESTLE_STATUS_RESOURCE_EXHAUSTED;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return PESTLE_STATUS_INVALID_ARGUMENT;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_NOT_FOUND:
      return PESTLE_STATUS_MALFORMED;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return PESTLE_STATUS_INCOMPATIBLE;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      return PESTLE_STATUS_UNSUPPORTED;
    default:
      return PESTLE_STATUS_INTERNAL;
  }
}

pestle_status_t pestle_cuda_failed(const cuda_device_t* d, CUresult result,
                                   const char* file, int line,
                                   const char* what) {
  char words[256];
  pestle_cuda_words(&d->owner->driver, result, words, sizeof words);
  return pestle_plugin_error(
      d->owner->host, code_of(result), file, line,
      "cuda: %s on device %d (%s): %s%s", what, (int)d->index, d->name, words,
      is_lost(result)
          ? "; this or earlier work broke the device's context, and "
            "only a new process gets another"
          : "");
}

// --- Contexts ---

pestle_status_t pestle_cuda_device(cuda_t* cuda, int32_t index,
                                   cuda_device_t** out_device) {
  *out_device = NULL;
  if (index < 0 || index >= cuda->device_count) {
    return PESTLE_PLUGIN_ERROR(cuda->host, NOT_FOUND,
                               "cuda has %d devices and no number %d",
                               (int)cuda->device_count, (int)index);
  }
  *out_device = &cuda->device[index];
  return NULL;
}

// What needs the context, which is current.
static pestle_status_t fill_context(cuda_device_t* d) {
  PESTLE_CUDA_TRY(d, cuStreamCreate, (&d->own, CU_STREAM_NON_BLOCKING));
  PESTLE_CUDA_TRY(d, cuModuleLoadDataEx,
                  (&d->helpers, pestle_cuda_copy_ptx, 0, NULL, NULL));
  PESTLE_CUDA_TRY(d, cuModuleGetFunction,
                  (&d->copy, d->helpers, "pestle_copy"));
  return NULL;
}

static pestle_status_t start(cuda_device_t* d) {
  const cuda_driver_t* driver = &d->owner->driver;
  CUcontext context = NULL, popped;
  PESTLE_CUDA_TRY(d, cuDevicePrimaryCtxRetain, (&context, d->id));
  CUresult result = driver->cuCtxPushCurrent_v2(context);
  pestle_status_t status =
      result ? pestle_cuda_failed(d, result, __FILE__, __LINE__,
                                  "cuCtxPushCurrent_v2")
             : fill_context(d);
  if (!result) (void)driver->cuCtxPopCurrent_v2(&popped);
  if (status) {
    (void)driver->cuDevicePrimaryCtxRelease_v2(d->id);
    return status;
  }
  d->context = context;
  return NULL;
}

pestle_status_t pestle_cuda_enter(cuda_device_t* d) {
  pthread_mutex_lock(&d->start);
  pestle_status_t status = d->context ? NULL : start(d);
  pthread_mutex_unlock(&d->start);
  if (status) return status;
  PESTLE_CUDA_TRY(d, cuCtxPushCurrent_v2, (d->context));
  return NULL;
}

void pestle_cuda_leave(const cuda_device_t* d) {
  CUcontext context;
  (void)d->owner->driver.cuCtxPopCurrent_v2(&context);
}

static void stop(cuda_device_t* d) {
  const cuda_driver_t* driver = &d->owner->driver;
  if (atomic_load(&d->is_stuck)) return;  // a call that frees would not end
  if (d->context && !driver->cuCtxPushCurrent_v2(d->context)) {
    pestle_cuda_events_deinit(d);
    pestle_cuda_memory_deinit(d);
    (void)driver->cuModuleUnload(d->helpers);
    (void)driver->cuStreamDestroy_v2(d->own);
    pestle_cuda_leave(d);
  }
  if (d->context) (void)driver->cuDevicePrimaryCtxRelease_v2(d->id);
  pthread_mutex_destroy(&d->memory.lock);
  pthread_mutex_destroy(&d->streams_lock);
  pthread_mutex_destroy(&d->start);
}

// --- What there is ---

static int attribute(const cuda_device_t* d, CUdevice_attribute what) {
  int value = 0;
  return d->owner->driver.cuDeviceGetAttribute(&value, what, d->id) ? 0 : value;
}

static void name_device(cuda_device_t* d) {
  const cuda_driver_t* driver = &d->owner->driver;
  CUuuid uuid;
  if (driver->cuDeviceGetName(d->name, sizeof d->name, d->id)) d->name[0] = 0;
  snprintf(d->pci, sizeof d->pci, "%04x:%02x:%02x.0",
           (unsigned)attribute(d, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
           (unsigned)attribute(d, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
           (unsigned)attribute(d, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  if (driver->cuDeviceGetUuid_v2(&uuid, d->id)) return;
  char* at = d->uuid;
  for (int i = 0; i < 16; ++i) {
    bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    at += snprintf(at, 4, dash ? "-%02x" : "%02x", (uint8_t)uuid.bytes[i]);
  }
}

static void measure_device(cuda_device_t* d) {
  size_t total = 0;
  if (!d->owner->driver.cuDeviceTotalMem_v2(&total, d->id)) d->total = total;
  int major = attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  int minor = attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  d->capability = 10 * major + minor;
  pestle_cuda_arch_name(d->capability, d->arch, sizeof d->arch);
  d->units = attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  d->group_lanes = attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  d->shared = attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  d->shared_most =
      attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (d->shared_most < d->shared) d->shared_most = d->shared;
  d->unit_shared =
      attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  d->group_shared =
      attribute(d, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  d->registers =
      4 * attribute(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  d->l2 = (uint64_t)attribute(d, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  d->clock_khz = attribute(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  d->memory_khz = attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  d->bus_bits = attribute(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  d->waits_for_values =
      attribute(d, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
}

static void init_device(cuda_t* cuda, int32_t index, CUdevice id) {
  cuda_device_t* d = &cuda->device[index];
  memset(d, 0, sizeof *d);
  d->owner = cuda;
  d->index = index;
  d->id = id;
  atomic_init(&d->comms, 0);
  atomic_init(&d->recorded_writes, CUDA_WRITES_UNKNOWN);
  atomic_init(&d->is_stuck, false);
  name_device(d);
  measure_device(d);
  pthread_mutex_init(&d->start, NULL);
  pthread_mutex_init(&d->streams_lock, NULL);
  pestle_cuda_memory_init(d);
}

pestle_status_t pestle_cuda_start_devices(cuda_t* cuda) {
  int count = 0;
  if (cuda->driver.cuDeviceGetCount(&count)) count = 0;
  if (count > CUDA_MAX_DEVICES) count = CUDA_MAX_DEVICES;
  if (!count) return NULL;
  cuda->device =
      cuda->host->alloc(cuda->host->self, (size_t)count * sizeof *cuda->device);
  if (!cuda->device) {
    return PESTLE_PLUGIN_ERROR(cuda->host, OUT_OF_MEMORY,
                               "cuda: no host memory for %d devices", count);
  }
  for (int32_t i = 0; i < count; ++i) {
    CUdevice id = 0;
    if (cuda->driver.cuDeviceGet(&id, i)) break;
    init_device(cuda, i, id);
    ++cuda->device_count;
  }
  // Of the allocation, so that it can be freed.
  cuda->device_room = count;
  return NULL;
}

void pestle_cuda_stop_devices(cuda_t* cuda) {
  for (int32_t i = 0; i < cuda->device_count; ++i)
    stop(&cuda->device[i]);
  if (!cuda->device) return;
  cuda->host->free(cuda->host->self, cuda->device,
                   (size_t)cuda->device_room * sizeof *cuda->device);
  cuda->device = NULL;
}
