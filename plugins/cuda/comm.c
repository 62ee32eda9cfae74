// SPDX-License-Identifier: Apache-2.0
// Communicators of NCCL: joined without blocking, so that each wait looks at a
// deadline; ended by a thread of their own, since NCCL's abort may hang. One that does
// not end in time is left behind with its device, which is lost from then on.
#include "plugins/cuda/comm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ABORT_NS INT64_C(10000000000)
#define FINALIZE_NS INT64_C(5000000000)

int64_t pestle_cuda_clock_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void rest(int64_t since_ns) {
  static const struct timespec pause = {0, 50000};
  if (pestle_cuda_clock_ns() - since_ns > 100000) (void)nanosleep(&pause, NULL);
}

// --- Failures ---

pestle_status_t pestle_cuda_nccl_failed(const pestle_host_t* host,
                                        const nccl_t* nccl, ncclComm_t comm,
                                        ncclResult_t result, const char* what) {
  const char* words = nccl->ncclGetErrorString(result);
  const char* more = nccl->ncclGetLastError(comm);
  bool wrong = result == NCCL_INVALID_ARGUMENT || result == NCCL_INVALID_USAGE;
  return pestle_plugin_error(
      host, wrong ? PESTLE_STATUS_INVALID_ARGUMENT : PESTLE_STATUS_UNAVAILABLE,
      __FILE__, __LINE__, "nccl: %s: %s%s%s (NCCL_DEBUG=WARN says more)", what,
      words ? words : "failed", more && *more ? ": " : "", more ? more : "");
}

static pestle_status_t aborted(pestle_comm_t* comm) {
  const pestle_host_t* host = comm->device->owner->host;
  pthread_mutex_lock(&comm->lock);
  pestle_status_t status =
      PESTLE_PLUGIN_ERROR(host, UNAVAILABLE, "%s", comm->reason);
  pthread_mutex_unlock(&comm->lock);
  return status;
}

static bool is_live(const pestle_comm_t* comm) {
  return atomic_load(&comm->state) == CUDA_COMM_LIVE;
}

// NCCL may be asked only while nobody ends it.
static bool begin_call(pestle_comm_t* comm) {
  atomic_fetch_add(&comm->calls, 1);
  if (is_live(comm)) return true;
  atomic_fetch_sub(&comm->calls, 1);
  return false;
}

static void end_call(pestle_comm_t* comm) {
  atomic_fetch_sub(&comm->calls, 1);
}

pestle_status_t pestle_cuda_comm_ready(pestle_comm_t* comm, ncclResult_t result,
                                       int64_t deadline_ns, const char* what) {
  const pestle_host_t* host = comm->device->owner->host;
  int64_t begin = pestle_cuda_clock_ns();
  while (result == NCCL_IN_PROGRESS) {
    ncclResult_t failed =
        comm->nccl->ncclCommGetAsyncError(comm->comm, &result);
    if (failed) result = failed;
    if (result != NCCL_IN_PROGRESS) break;
    if (!is_live(comm)) return aborted(comm);
    if (pestle_cuda_clock_ns() - begin > deadline_ns) {
      return PESTLE_PLUGIN_ERROR(host, DEADLINE_EXCEEDED,
                                 "not all ranks have come to %s for %.1f s",
                                 what, (double)deadline_ns * 1e-9);
    }
    rest(begin);
  }
  if (!result) return NULL;
  return pestle_cuda_nccl_failed(host, comm->nccl, comm->comm, result, what);
}

pestle_status_t pestle_cuda_comm_poll(void* self, pestle_comm_t* comm) {
  const cuda_t* cuda = self;
  ncclResult_t result = NCCL_SUCCESS;
  if (!begin_call(comm)) {
    pthread_mutex_lock(&comm->lock);
    bool late = atomic_load(&comm->state) == CUDA_COMM_ENDING &&
                pestle_cuda_clock_ns() - comm->ending_ns > ABORT_NS;
    pthread_mutex_unlock(&comm->lock);
    if (late) atomic_store(&comm->device->is_stuck, true);
    return aborted(comm);
  }
  ncclResult_t failed = comm->nccl->ncclCommGetAsyncError(comm->comm, &result);
  pestle_status_t status = NULL;
  if (failed) result = failed;
  if (result && result != NCCL_IN_PROGRESS) {
    status = pestle_cuda_nccl_failed(cuda->host, comm->nccl, comm->comm, result,
                                     "a rank's collectives");
  }
  end_call(comm);
  return status;
}

// --- The end ---

static void free_comm(pestle_comm_t* comm) {
  cuda_device_t* d = comm->device;
  const pestle_host_t* host = d->owner->host;
  pestle_cuda_beside_release(comm);
  if (comm->word && !atomic_load(&d->is_stuck)) {
    pestle_status_t status = pestle_cuda_enter(d);
    if (!status) {
      (void)d->owner->driver.cuMemFreeHost((void*)(uintptr_t)comm->word);
      pestle_cuda_leave(d);
    }
    if (status) host->status_release(host->self, status);
  }
  (void)pthread_cond_destroy(&comm->changed);
  (void)pthread_mutex_destroy(&comm->lock);
  atomic_fetch_sub(&d->comms, 1);
  host->free(host->self, comm, sizeof *comm);
}

// All that was asked for is done and others know it.
static bool finalize(pestle_comm_t* comm) {
  ncclResult_t result = comm->nccl->ncclCommFinalize(comm->comm);
  int64_t begin = pestle_cuda_clock_ns();
  while (result == NCCL_IN_PROGRESS) {
    if (comm->nccl->ncclCommGetAsyncError(comm->comm, &result)) return false;
    if (pestle_cuda_clock_ns() - begin > FINALIZE_NS) return false;
    rest(begin);
  }
  return !result;
}

static void end(pestle_comm_t* comm) {
  int64_t begin = pestle_cuda_clock_ns();
  // Who is inside of it sees that it ends, and leaves.
  while (atomic_load(&comm->calls)) {
    if (pestle_cuda_clock_ns() - begin > ABORT_NS / 10) break;
    rest(begin);
  }
  if (!comm->aborted && finalize(comm)) {
    (void)comm->nccl->ncclCommDestroy(comm->comm);
  } else {
    (void)comm->nccl->ncclCommAbort(comm->comm);
  }
}

static void* end_main(void* user) {
  pestle_comm_t* comm = user;
  cuda_device_t* d = comm->device;
  const pestle_host_t* host = d->owner->host;
  pestle_status_t status = pestle_cuda_enter(d);
  if (status) {
    host->status_release(host->self, status);
  } else {
    end(comm);
    pestle_cuda_leave(d);
  }
  pthread_mutex_lock(&comm->lock);
  atomic_store(&comm->state, CUDA_COMM_ENDED);
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
  return NULL;
}

// The lock is held.
static void begin_end(pestle_comm_t* comm, const char* reason) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  if (!is_live(comm)) return;
  comm->aborted = reason != NULL;
  snprintf(comm->reason, sizeof comm->reason, "%s",
           reason ? reason : "the communicator was left");
  comm->ending_ns = pestle_cuda_clock_ns();
  atomic_store(&comm->state, CUDA_COMM_ENDING);
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, end_main, comm);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  // Without a thread nobody ends it: what waits sees that it hangs.
  if (error) comm->ending_ns -= ABORT_NS;
}

static void abort_comm(void* self, pestle_comm_t* comm, const char* reason) {
  (void)self;
  if (!comm) return;
  pthread_mutex_lock(&comm->lock);
  begin_end(comm, reason ? reason : "the world has ended");
  pthread_mutex_unlock(&comm->lock);
}

static void destroy(void* self, pestle_comm_t* comm) {
  struct timespec until;
  (void)self;
  if (!comm) return;
  pthread_mutex_lock(&comm->lock);
  begin_end(comm, NULL);
  int64_t left = comm->ending_ns + ABORT_NS - pestle_cuda_clock_ns();
  if (left < 0) left = 0;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += left / 1000000000 + 1;
  int late = 0;
  while (atomic_load(&comm->state) != CUDA_COMM_ENDED && !late)
    late = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
  bool ended = atomic_load(&comm->state) == CUDA_COMM_ENDED;
  pthread_mutex_unlock(&comm->lock);
  if (ended) {
    free_comm(comm);
  } else {
    // Its thread uses it, perhaps for ever; so does the device.
    atomic_store(&comm->device->is_stuck, true);
  }
}

// --- The beginning ---

// Not all drivers record the write of a value. One that does not is found by a recording
// that nobody launches.
static bool records_writes(const pestle_comm_t* comm, CUstream stream) {
  const cuda_driver_t* driver = &comm->device->owner->driver;
  CUgraph graph = NULL;
  CUgraphExec run = NULL;
  if (driver->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED))
    return false;
  bool taken = !driver->cuStreamWriteValue64_v2(
      stream, comm->word_address + sizeof(uint64_t) * CUDA_COMM_RECORDED, 0,
      CU_STREAM_WRITE_VALUE_DEFAULT);
  taken &= !driver->cuStreamEndCapture(stream, &graph) && graph;
  taken = taken && !driver->cuGraphInstantiateWithFlags(&run, graph, 0);
  if (run) (void)driver->cuGraphExecDestroy(run);
  if (graph) (void)driver->cuGraphDestroy(graph);
  return taken;
}

static pestle_status_t find_recorded_writes(pestle_comm_t* comm) {
  cuda_device_t* d = comm->device;
  CUstream stream;
  if (atomic_load(&d->recorded_writes)) return NULL;
  PESTLE_CUDA_TRY(d, cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING));
  bool taken = records_writes(comm, stream);
  atomic_store(&d->recorded_writes,
               taken ? CUDA_WRITES_RECORDED : CUDA_WRITES_REFUSED);
  PESTLE_CUDA_TRY(d, cuStreamDestroy_v2, (stream));
  return NULL;
}

static pestle_status_t make_word(pestle_comm_t* comm) {
  const cuda_device_t* d = comm->device;
  void* data = NULL;
  PESTLE_CUDA_TRY(
      d, cuMemHostAlloc,
      (&data, 64, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  comm->word = data;
  for (int i = CUDA_COMM_AT; i <= CUDA_COMM_AFTER; ++i)
    atomic_init(&comm->word[i], 0);
  PESTLE_CUDA_TRY(d, cuMemHostGetDevicePointer_v2,
                  (&comm->word_address, data, 0));
  return find_recorded_writes(comm);
}

static pestle_status_t make(cuda_device_t* d, const nccl_t* nccl,
                            pestle_comm_t** out) {
  const pestle_host_t* host = d->owner->host;
  pthread_condattr_t attributes;
  *out = NULL;
  if (!d->waits_for_values) {
    return PESTLE_PLUGIN_ERROR(
        host, UNSUPPORTED,
        "cuda: device %d (%s) writes no values in a stream's order, by which "
        "collectives that hang are found; set PESTLE_WORLD_TRANSPORT=host",
        (int)d->index, d->name);
  }
  pestle_comm_t* comm = host->alloc(host->self, sizeof *comm);
  if (!comm) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for a communicator");
  }
  memset(comm, 0, sizeof *comm);
  atomic_fetch_add(&d->comms, 1);
  comm->device = d;
  comm->nccl = nccl;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_mutex_init(&comm->lock, NULL);
  (void)pthread_cond_init(&comm->changed, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  atomic_init(&comm->state, CUDA_COMM_LIVE);
  atomic_init(&comm->calls, 0);
  *out = comm;
  return NULL;
}

static ncclConfig_t config_of(const pestle_comm_t* comm) {
  return (ncclConfig_t){
      .size = sizeof(ncclConfig_t),
      .magic = NCCL_CONFIG_MAGIC,
      .version = NCCL_CONFIG_VERSION,
      .blocking = 0,
      .cgaClusterSize = NCCL_UNDEFINED,
      .minCTAs = NCCL_UNDEFINED,
      .maxCTAs = comm->max_units ? comm->max_units : NCCL_UNDEFINED,
      .netName = NULL,
      .splitShare = NCCL_UNDEFINED,
  };
}

// One that did not come to be: NCCL's half is ended, and waited for.
static pestle_status_t give_up(pestle_comm_t* comm, pestle_status_t status) {
  if (!comm->comm) {
    free_comm(comm);
    return status;
  }
  abort_comm(NULL, comm, "ranks have not joined");
  destroy(NULL, comm);
  return status;
}

static pestle_status_t make_id(void* self, uint8_t* id, size_t* size) {
  const pestle_host_t* host = ((const cuda_t*)self)->host;
  const nccl_t* nccl;
  ncclUniqueId unique;
  pestle_status_t status = pestle_cuda_nccl(host, &nccl);
  if (status) return status;
  if (*size < sizeof unique) {
    *size = sizeof unique;
    return PESTLE_PLUGIN_ERROR(host, RESOURCE_EXHAUSTED,
                               "the name of a communicator has %zu bytes",
                               sizeof unique);
  }
  ncclResult_t result = nccl->ncclGetUniqueId(&unique);
  if (result) {
    return pestle_cuda_nccl_failed(host, nccl, NULL, result, "ncclGetUniqueId");
  }
  memcpy(id, &unique, sizeof unique);
  *size = sizeof unique;
  return NULL;
}

static pestle_status_t join(pestle_comm_t* comm,
                            const pestle_comm_options_t* options) {
  ncclConfig_t config = config_of(comm);
  ncclUniqueId unique;
  memcpy(&unique, options->id, sizeof unique);
  PESTLE_TRY(make_word(comm));
  ncclResult_t result = comm->nccl->ncclCommInitRankConfig(
      &comm->comm, options->size, unique, options->rank, &config);
  return pestle_cuda_comm_ready(comm, result, comm->deadline_ns,
                                "the making of a communicator");
}

static pestle_status_t create(void* self, int32_t device,
                              const pestle_comm_options_t* options,
                              pestle_comm_t** out) {
  cuda_t* cuda = self;
  cuda_device_t* d;
  const nccl_t* nccl;
  pestle_comm_t* comm;
  *out = NULL;
  PESTLE_TRY(pestle_cuda_device(cuda, device, &d));
  PESTLE_TRY(pestle_cuda_nccl(cuda->host, &nccl));
  if (options->id_size != sizeof(ncclUniqueId)) {
    return PESTLE_PLUGIN_ERROR(cuda->host, INVALID_ARGUMENT,
                               "the name of a communicator has %zu bytes, not "
                               "%zu",
                               sizeof(ncclUniqueId), options->id_size);
  }
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = make(d, nccl, &comm);
  if (!status) {
    comm->rank = options->rank;
    comm->size = options->size;
    comm->deadline_ns = options->deadline_ms * 1000000;
    comm->max_units = options->max_units;
    status = join(comm, options);
    if (!status) status = pestle_cuda_beside_make(comm, &comm->beside);
    if (status) status = give_up(comm, status);
    if (!status) *out = comm;
  }
  pestle_cuda_leave(d);
  return status;
}

static pestle_status_t divide(pestle_comm_t* comm, int32_t color, int32_t key,
                              pestle_comm_t* part) {
  ncclConfig_t config = config_of(part);
  PESTLE_TRY(make_word(part));
  ncclResult_t result = comm->nccl->ncclCommSplit(
      comm->comm, color < 0 ? -1 : color, key, &part->comm, &config);
  return pestle_cuda_comm_ready(comm, result, comm->deadline_ns,
                                "the making of a group");
}

static pestle_status_t finish_part(pestle_comm_t* part) {
  ncclResult_t result = NCCL_IN_PROGRESS;
  if (!part->comm) return NULL;
  return pestle_cuda_comm_ready(part, result, part->deadline_ns,
                                "the making of a group");
}

static pestle_status_t split(void* self, pestle_comm_t* comm, int32_t color,
                             int32_t key, pestle_comm_t** out) {
  cuda_device_t* d = comm->device;
  pestle_comm_t* part;
  (void)self;
  *out = NULL;
  if (!begin_call(comm)) return aborted(comm);
  pestle_status_t status = pestle_cuda_enter(d);
  if (!status) {
    status = make(d, comm->nccl, &part);
    if (!status) {
      part->rank = comm->rank;
      part->size = comm->size;  // collective.c knows a group by its ops
      part->deadline_ns = comm->deadline_ns;
      part->max_units = comm->max_units;
      part->beside = comm->beside;
      atomic_fetch_add(&part->beside->users, 1);
      status = divide(comm, color, key, part);
      if (!status) status = finish_part(part);
      if (status) {
        status = give_up(part, status);
      } else if (!part->comm) {
        free_comm(part);
      } else {
        *out = part;
      }
    }
    pestle_cuda_leave(d);
  }
  end_call(comm);
  return status;
}

// --- The table ---

const pestle_collective_api_t pestle_cuda_collective = {
    .struct_size = sizeof(pestle_collective_api_t),
    .id = make_id,
    .create = create,
    .split = split,
    .enqueue = pestle_cuda_comm_enqueue,
    .poll = pestle_cuda_comm_poll,
    .abort = abort_comm,
    .destroy = destroy,
    .progress = pestle_cuda_comm_progress,
    .record = pestle_cuda_comm_record,
    .enqueue_beside = pestle_cuda_comm_enqueue_beside,
    .wait_beside = pestle_cuda_comm_wait_beside,
};
