// SPDX-License-Identifier: Apache-2.0
// Streams and launches on them.
#include <string.h>
#include <time.h>

#include "plugins/cuda/backend.h"
#include "plugins/cuda/load.h"

pestle_status_t pestle_cuda_refuse_recording(
    const pestle_device_stream_t* stream, const char* what) {
  if (!atomic_load(&stream->recording)) return NULL;
  return PESTLE_PLUGIN_ERROR(stream->device->owner->host, UNSUPPORTED,
                             "cuda: a recording cannot hold %s", what);
}

// --- Life ---

static void link_stream(pestle_device_stream_t* stream) {
  cuda_device_t* d = stream->device;
  pthread_mutex_lock(&d->streams_lock);
  stream->next = d->streams;
  d->streams = stream;
  pthread_mutex_unlock(&d->streams_lock);
}

static void unlink_stream(const pestle_device_stream_t* stream) {
  cuda_device_t* d = stream->device;
  pthread_mutex_lock(&d->streams_lock);
  pestle_device_stream_t** at = &d->streams;
  while (*at && *at != stream)
    at = &(*at)->next;
  if (*at) *at = stream->next;
  pthread_mutex_unlock(&d->streams_lock);
}

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  cuda_device_t* d;
  *out_stream = NULL;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_device_stream_t* stream = host->alloc(host->self, sizeof *stream);
  CUstream handle = NULL;
  CUresult result =
      stream ? d->owner->driver.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING)
             : CUDA_SUCCESS;
  pestle_cuda_leave(d);
  if (!stream) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for a stream");
  }
  if (result) {
    host->free(host->self, stream, sizeof *stream);
    return pestle_cuda_failed(d, result, __FILE__, __LINE__, "cuStreamCreate");
  }
  memset(stream, 0, sizeof *stream);
  stream->device = d;
  stream->handle = handle;
  pthread_mutex_init(&stream->lock, NULL);
  pestle_cuda_caller_init(stream);
  link_stream(stream);
  *out_stream = stream;
  return NULL;
}

// A look now and then: at first at once, since most waits are short.
pestle_status_t pestle_cuda_wait_stream(const cuda_device_t* d,
                                        CUstream stream) {
  static const struct timespec pause = {0, 20000};
  if (!atomic_load(&d->comms)) {
    PESTLE_CUDA_TRY(d, cuStreamSynchronize, (stream));
    return NULL;
  }
  CUresult result;
  for (int looks = 0;; ++looks) {
    if (atomic_load(&d->is_stuck)) {
      return PESTLE_PLUGIN_ERROR(
          d->owner->host, UNAVAILABLE,
          "cuda: NCCL's abort has not ended on device %d (%s), whose work "
          "never ends; only a new process gets another context",
          (int)d->index, d->name);
    }
    result = d->owner->driver.cuStreamQuery(stream);
    if (result != CUDA_ERROR_NOT_READY) break;
    if (looks > 200) (void)nanosleep(&pause, NULL);
  }
  return result ? pestle_cuda_failed(d, result, __FILE__, __LINE__,
                                     "work that was queued")
                : NULL;
}

static pestle_status_t synchronize(pestle_device_stream_t* stream) {
  uint64_t queued = atomic_load(&stream->queued);
  PESTLE_TRY(pestle_cuda_wait_stream(stream->device, stream->handle));
  atomic_store(&stream->done, queued);
  return NULL;
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* stream) {
  (void)self;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a wait for it"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = synchronize(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static void stream_destroy(void* self, pestle_device_stream_t* stream) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  if (!stream) return;
  cuda_device_t* d = stream->device;
  const cuda_driver_t* driver = &d->owner->driver;
  unlink_stream(stream);
  pestle_status_t status = pestle_cuda_enter(d);
  if (!status) {
    CUgraph graph = NULL;
    if (atomic_load(&stream->recording) &&
        !driver->cuStreamEndCapture(stream->handle, &graph) && graph) {
      (void)driver->cuGraphDestroy(graph);
    }
    pestle_status_t end = pestle_cuda_wait_stream(d, stream->handle);
    if (end) host->status_release(host->self, end);
    pestle_cuda_leave(d);
  }
  if (status) host->status_release(host->self, status);
  // Work that never ends has the stream: it is left behind.
  if (atomic_load(&d->is_stuck)) return;
  pestle_cuda_caller_deinit(stream);
  status = pestle_cuda_enter(d);
  if (!status) {
    pestle_cuda_staging_deinit(stream);
    (void)driver->cuStreamDestroy_v2(stream->handle);
    pestle_cuda_leave(d);
  }
  if (status) host->status_release(host->self, status);
  pthread_mutex_destroy(&stream->lock);
  host->free(host->self, stream, sizeof *stream);
}

// --- Launches ---

enum { MOST_ARGUMENTS = 512 };  // 4 KiB, which every device takes

static pestle_status_t check_launch(const cuda_device_t* d,
                                    const pestle_launch_t* launch) {
  const pestle_loaded_t* loaded = launch->loaded;
  if (loaded->device != d) {
    return PESTLE_PLUGIN_ERROR(
        d->owner->host, INVALID_ARGUMENT,
        "cuda: kernel %s was loaded on device %d and is launched on device %d",
        loaded->name, (int)loaded->device->index, (int)d->index);
  }
  if (launch->buffer_count == loaded->arg_count &&
      launch->param_count == loaded->param_count) {
    return NULL;
  }
  return PESTLE_PLUGIN_ERROR(
      d->owner->host, INVALID_ARGUMENT,
      "cuda: kernel %s has %u buffers and %u parameters, not %u and %u",
      loaded->name, (unsigned)loaded->arg_count, (unsigned)loaded->param_count,
      (unsigned)launch->buffer_count, (unsigned)launch->param_count);
}

static CUtensorMapDataType map_type(const cuda_map_t* map) {
  return map->dtype == PESTLE_F32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
         : map->dtype == PESTLE_I32 ? CU_TENSOR_MAP_DATA_TYPE_INT32
         : map->dtype == PESTLE_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                    : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

// The view of a buffer where it lies now. Lines of L2 are brought as they are: by two at once
// a product of 16 x 8,192 x 8,192 takes 38.0 us on an H200, so 35.8, others as long.
static pestle_status_t make_map(const cuda_device_t* d,
                                const pestle_launch_t* launch,
                                const cuda_map_t* map, CUtensorMap* out_map) {
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  uint64_t size = pestle_dtype_size((pestle_dtype_t)map->dtype);
  cuuint64_t extent[5], stride[5];
  for (uint32_t i = 0; i < map->rank; ++i) {
    extent[i] = map->extent[i];
    if (i) stride[i - 1] = map->stride[i] * size;
    if (map->windows && i && i + 1 < map->rank) steps[i] = map->step[i - 1];
  }
  char* base = (char*)launch->buffers[map->slot] + map->offset * size;
  if (!map->windows) {
    PESTLE_CUDA_TRY(
        d, cuTensorMapEncodeTiled,
        (out_map, map_type(map), map->rank, base, extent, stride, map->box,
         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
         CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return NULL;
  }
  PESTLE_CUDA_TRY(
      d, cuTensorMapEncodeIm2col,
      (out_map, map_type(map), map->rank, base, extent, stride, map->low,
       map->high, map->box[0], map->box[1], steps,
       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
       CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return NULL;
}

static CUresult launch_kernel(const cuda_device_t* d, CUstream stream,
                              const pestle_loaded_t* k, void** arguments,
                              bool early) {
  if (!early && !k->at_once) {
    return d->owner->driver.cuLaunchKernel(
        k->function, k->group[0], k->group[1], k->group[2], k->lane[0],
        k->lane[1], k->lane[2], k->dynamic_shared, stream, arguments, NULL);
  }
  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                 .value.cooperative = 1};
  // A kernel whose groups meet begins behind the one in front.
  if (!k->at_once) {
    attribute = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value.programmaticStreamSerializationAllowed = 1};
  }
  uint32_t shared = k->at_once ? k->dynamic_shared : k->early_shared;
  CUlaunchConfig config = {
      k->group[0], k->group[1], k->group[2], k->lane[0], k->lane[1],
      k->lane[2],  shared,      stream,      &attribute, 1};
  return d->owner->driver.cuLaunchKernelEx(&config, k->function, arguments,
                                           NULL);
}

static pestle_status_t enqueue(const cuda_device_t* d, CUstream stream,
                               const pestle_launch_t* launch, bool early) {
  const pestle_loaded_t* k = launch->loaded;
  void* arguments[MOST_ARGUMENTS + CUDA_MAPS];
  CUtensorMap maps[CUDA_MAPS];
  // The driver copies what they point to before it returns.
  for (uint32_t i = 0; i < k->arg_count; ++i)
    arguments[i] = (void*)(uintptr_t)&launch->buffers[i];
  for (uint32_t i = 0; i < k->param_count; ++i)
    arguments[k->arg_count + i] = (void*)(uintptr_t)&launch->params[i];
  for (uint32_t i = 0; i < k->map_count; ++i) {
    PESTLE_TRY(make_map(d, launch, &k->map[i], &maps[i]));
    arguments[k->arg_count + k->param_count + i] = &maps[i];
  }
  CUresult result = launch_kernel(d, stream, k, arguments, early);
  if (!result) return NULL;
  char what[256];
  snprintf(what, sizeof what,
           "the launch of kernel %s with %ux%ux%u groups of "
           "%ux%ux%u lanes",
           k->name, k->group[0], k->group[1], k->group[2], k->lane[0],
           k->lane[1], k->lane[2]);
  return pestle_cuda_failed(d, result, __FILE__, __LINE__, what);
}

static pestle_status_t run(const cuda_device_t* d,
                           const pestle_launch_t* launch) {
  PESTLE_TRY(enqueue(d, d->own, launch, false));
  PESTLE_CUDA_TRY(d, cuStreamSynchronize, (d->own));
  return NULL;
}

// Whether the kernel may begin before the one in front of it ends: in a recording, of two
// kernels that wait for what is before them (a dependent of a dependent would be right only
// so: a wait is for the kernel in front alone, which has waited itself). What is in front of
// a recording, copies, collectives and calls are waited for by the graph.
static bool begins_early(const pestle_device_stream_t* stream,
                         const pestle_loaded_t* loaded) {
  return stream && loaded->waits && stream->device->owner->launches_early &&
         atomic_load(&stream->recording) &&
         atomic_load(&stream->ends_in_kernel);
}

static pestle_status_t launch(void* self, int32_t device,
                              pestle_device_stream_t* stream,
                              const pestle_launch_t* launch) {
  cuda_device_t* d;
  const uint32_t* group = launch->loaded->group;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(check_launch(d, launch));
  if (!group[0] || !group[1] || !group[2]) return NULL;
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = stream
                               ? enqueue(d, stream->handle, launch,
                                         begins_early(stream, launch->loaded))
                               : run(d, launch);
  if (stream && !status) {
    cuda_queued(stream);
    atomic_store(&stream->ends_in_kernel, launch->loaded->waits);
  }
  pestle_cuda_leave(d);
  return status;
}

void pestle_cuda_stream_slots(pestle_device_api_t* api) {
  api->stream_create = stream_create;
  api->stream_synchronize = stream_synchronize;
  api->stream_destroy = stream_destroy;
  api->launch = launch;
}
