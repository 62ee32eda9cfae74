// SPDX-License-Identifier: Apache-2.0
// The stream on which collectives run beside a plan's kernels. Its groups of lanes come
// first where both have some to start: a collective that waits until a product's last
// round of groups has begun would run behind it, not beside.
//
//   plan's stream:  kernel a | fork | kernel b ....... | wait | kernel c
//   beside:                  \----- collective | done -----/
#include <string.h>

#include "plugins/cuda/comm.h"

static pestle_status_t fill(const cuda_device_t* d, cuda_beside_t* b) {
  int least = 0, greatest = 0;
  PESTLE_CUDA_TRY(d, cuCtxGetStreamPriorityRange, (&least, &greatest));
  PESTLE_CUDA_TRY(d, cuStreamCreateWithPriority,
                  (&b->stream, CU_STREAM_NON_BLOCKING, greatest));
  PESTLE_CUDA_TRY(d, cuEventCreate, (&b->fork, CU_EVENT_DISABLE_TIMING));
  for (int i = 0; i < CUDA_BESIDE_EVENTS; ++i)
    PESTLE_CUDA_TRY(d, cuEventCreate, (&b->done[i], CU_EVENT_DISABLE_TIMING));
  return NULL;
}

static void empty(const cuda_device_t* d, const cuda_beside_t* b) {
  const cuda_driver_t* driver = &d->owner->driver;
  if (b->stream) (void)driver->cuStreamDestroy_v2(b->stream);
  if (b->fork) (void)driver->cuEventDestroy_v2(b->fork);
  for (int i = 0; i < CUDA_BESIDE_EVENTS; ++i)
    if (b->done[i]) (void)driver->cuEventDestroy_v2(b->done[i]);
}

pestle_status_t pestle_cuda_beside_make(const pestle_comm_t* comm,
                                        cuda_beside_t** out) {
  const cuda_device_t* d = comm->device;
  const pestle_host_t* host = d->owner->host;
  cuda_beside_t* b = host->alloc(host->self, sizeof *b);
  *out = NULL;
  if (!b) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for a stream");
  }
  memset(b, 0, sizeof *b);
  atomic_init(&b->users, 1);
  pestle_status_t status = fill(d, b);
  if (status) {
    empty(d, b);
    host->free(host->self, b, sizeof *b);
    return status;
  }
  *out = b;
  return NULL;
}

void pestle_cuda_beside_release(const pestle_comm_t* comm) {
  cuda_device_t* d = comm->device;
  const pestle_host_t* host = d->owner->host;
  cuda_beside_t* b = comm->beside;
  if (!b || atomic_fetch_sub(&b->users, 1) > 1) return;
  // Work that never ends has the stream: it is left behind.
  if (atomic_load(&d->is_stuck)) return;
  pestle_status_t status = pestle_cuda_enter(d);
  if (!status) {
    empty(d, b);
    pestle_cuda_leave(d);
  }
  if (status) host->status_release(host->self, status);
  host->free(host->self, b, sizeof *b);
}

// --- Order ---

// An event of a recording says nothing outside of it, nor one of outside within.
static void forget_others(cuda_beside_t* b, bool recorded) {
  if (b->recorded == recorded) return;
  memset(b->number, 0, sizeof b->number);
  b->recorded = recorded;
}

pestle_status_t pestle_cuda_beside_fork(const pestle_comm_t* comm,
                                        const pestle_device_stream_t* stream) {
  const cuda_device_t* d = comm->device;
  cuda_beside_t* b = comm->beside;
  forget_others(b, atomic_load(&stream->recording));
  PESTLE_CUDA_TRY(d, cuEventRecord, (b->fork, stream->handle));
  PESTLE_CUDA_TRY(d, cuStreamWaitEvent, (b->stream, b->fork, 0));
  return NULL;
}

pestle_status_t pestle_cuda_beside_queued(const pestle_comm_t* comm,
                                          uint64_t sequence) {
  const cuda_device_t* d = comm->device;
  cuda_beside_t* b = comm->beside;
  unsigned at = b->next++ % CUDA_BESIDE_EVENTS;
  b->number[at] = 0;
  PESTLE_CUDA_TRY(d, cuEventRecord, (b->done[at], b->stream));
  b->number[at] = sequence;
  return NULL;
}

// The earliest event that comes behind collective |sequence|, or NULL.
static CUevent event_behind(const cuda_beside_t* b, uint64_t sequence) {
  int best = -1;
  for (int i = 0; i < CUDA_BESIDE_EVENTS; ++i) {
    if (b->number[i] < sequence || !b->number[i]) continue;
    if (best < 0 || b->number[i] < b->number[best]) best = i;
  }
  return best < 0 ? NULL : b->done[best];
}

pestle_status_t pestle_cuda_comm_wait_beside(void* self, pestle_comm_t* comm,
                                             pestle_device_stream_t* stream,
                                             uint64_t sequence) {
  const cuda_device_t* d = comm->device;
  (void)self;
  PESTLE_TRY(pestle_cuda_enter(comm->device));
  forget_others(comm->beside, atomic_load(&stream->recording));
  CUevent event = event_behind(comm->beside, sequence);
  CUresult result =
      event ? d->owner->driver.cuStreamWaitEvent(stream->handle, event, 0)
            : CUDA_SUCCESS;
  if (event && !result) cuda_queued(stream);
  pestle_cuda_leave(comm->device);
  return result ? pestle_cuda_failed(d, result, __FILE__, __LINE__,
                                     "cuStreamWaitEvent")
                : NULL;
}
