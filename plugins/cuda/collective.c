// SPDX-License-Identifier: Apache-2.0
// Collectives on streams, by NCCL. It sums and multiplies numbers of 8, 32 and 64 bits
// and floats, and finds the least and the greatest of whole numbers; flags are bytes
// of 0 and 1. What it has not (and, or, numbers of 16 bits; the least of floats, which
// it does not say anything of where one is NaN) is UNSUPPORTED, alike at all ranks.
#include <stdio.h>
#include <string.h>

#include "plugins/cuda/comm.h"

static uint64_t bytes_of(const pestle_collective_t* op) {
  return op->count * pestle_dtype_size((pestle_dtype_t)op->dtype);
}

// --- What NCCL combines ---

typedef struct by_t {
  ncclDataType_t type;
  ncclRedOp_t op;
} by_t;

static bool flags(int32_t reduction, by_t* out) {
  out->type = NCCL_UINT8;
  switch ((pestle_reduction_t)reduction) {
    case PESTLE_REDUCTION_SUM:
    case PESTLE_REDUCTION_OR:
    case PESTLE_REDUCTION_MAXIMUM:
      out->op = NCCL_MAX;
      return true;
    case PESTLE_REDUCTION_PRODUCT:
    case PESTLE_REDUCTION_AND:
    case PESTLE_REDUCTION_MINIMUM:
      out->op = NCCL_MIN;
      return true;
  }
  return false;
}

static bool numbers(int32_t dtype, int32_t reduction, by_t* out) {
  static const struct {
    pestle_dtype_t dtype;
    ncclDataType_t type;
    bool whole;
  } rows[] = {
      {PESTLE_F32, NCCL_FLOAT32, false}, {PESTLE_F64, NCCL_FLOAT64, false},
      {PESTLE_F16, NCCL_FLOAT16, false}, {PESTLE_BF16, NCCL_BFLOAT16, false},
      {PESTLE_I8, NCCL_INT8, true},      {PESTLE_U8, NCCL_UINT8, true},
      {PESTLE_I32, NCCL_INT32, true},    {PESTLE_U32, NCCL_UINT32, true},
      {PESTLE_I64, NCCL_INT64, true},    {PESTLE_U64, NCCL_UINT64, true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].dtype != (pestle_dtype_t)dtype) continue;
    out->type = rows[i].type;
    out->op = reduction == PESTLE_REDUCTION_SUM       ? NCCL_SUM
              : reduction == PESTLE_REDUCTION_PRODUCT ? NCCL_PROD
              : reduction == PESTLE_REDUCTION_MINIMUM ? NCCL_MIN
                                                      : NCCL_MAX;
    return reduction == PESTLE_REDUCTION_SUM ||
           reduction == PESTLE_REDUCTION_PRODUCT ||
           (rows[i].whole && (reduction == PESTLE_REDUCTION_MINIMUM ||
                              reduction == PESTLE_REDUCTION_MAXIMUM));
  }
  return false;
}

static bool combines(const pestle_collective_t* op) {
  return op->kind == PESTLE_COLLECTIVE_ALL_REDUCE ||
         op->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER;
}

static pestle_status_t check(const pestle_host_t* host,
                             const pestle_collective_t* op, by_t* by) {
  *by = (by_t){NCCL_UINT8, NCCL_SUM};
  if (op->kind < 0 || op->kind > PESTLE_COLLECTIVE_BROADCAST) {
    return PESTLE_PLUGIN_ERROR(host, UNSUPPORTED, "collective %d is of no kind",
                               (int)op->kind);
  }
  if (!combines(op) ||
      (op->dtype == PESTLE_I1 ? flags(op->reduction, by)
                              : numbers(op->dtype, op->reduction, by))) {
    return NULL;
  }
  return PESTLE_PLUGIN_ERROR(
      host, UNSUPPORTED, "%s: NCCL does not combine %s by reduction %d",
      op->name ? op->name : "a collective",
      pestle_dtype_info((pestle_dtype_t)op->dtype)->name, (int)op->reduction);
}

// --- What is asked of it ---

static pestle_status_t zero(const pestle_comm_t* comm, CUstream stream,
                            void* data, uint64_t bytes) {
  const cuda_device_t* d = comm->device;
  PESTLE_CUDA_TRY(d, cuMemsetD8Async,
                  (cuda_address(data), 0, (size_t)bytes, stream));
  return NULL;
}

static pestle_status_t copy(const pestle_comm_t* comm, CUstream stream,
                            const pestle_collective_t* op) {
  const cuda_device_t* d = comm->device;
  PESTLE_CUDA_TRY(d, cuMemcpyDtoDAsync_v2,
                  (cuda_address(op->receive), cuda_address(op->send),
                   (size_t)bytes_of(op), stream));
  return NULL;
}

// What NCCL has no part in: true.
static bool alone(const pestle_comm_t* comm, CUstream stream,
                  const pestle_collective_t* op, pestle_status_t* status) {
  *status = NULL;
  if (!bytes_of(op)) return true;
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE) {
    bool self = op->source == comm->rank;
    if (op->source < 0) *status = zero(comm, stream, op->receive, bytes_of(op));
    if (self) *status = copy(comm, stream, op);
    return self || (op->source < 0 && op->target < 0);
  }
  if (op->rank_count) return false;
  if (op->kind == PESTLE_COLLECTIVE_BROADCAST)
    *status = zero(comm, stream, op->receive, bytes_of(op));
  return true;
}

static ncclResult_t exchange(const pestle_comm_t* comm, CUstream stream,
                             const pestle_collective_t* op) {
  const nccl_t* nccl = comm->nccl;
  size_t bytes = (size_t)bytes_of(op);
  const char* send = op->send;
  char* receive = op->receive;
  ncclResult_t result = 0;
  for (uint32_t i = 0; i < op->rank_count && !result; ++i) {
    result = nccl->ncclSend(send + bytes * i, bytes, NCCL_UINT8, (int)i,
                            comm->comm, stream);
    if (!result || result == NCCL_IN_PROGRESS) {
      result = nccl->ncclRecv(receive + bytes * i, bytes, NCCL_UINT8, (int)i,
                              comm->comm, stream);
    }
    if (result == NCCL_IN_PROGRESS) result = 0;
  }
  return result;
}

static ncclResult_t permute(const pestle_comm_t* comm, CUstream stream,
                            const pestle_collective_t* op) {
  size_t bytes = (size_t)bytes_of(op);
  ncclResult_t result = 0;
  if (op->target >= 0) {
    result = comm->nccl->ncclSend(op->send, bytes, NCCL_UINT8, op->target,
                                  comm->comm, stream);
  }
  if ((!result || result == NCCL_IN_PROGRESS) && op->source >= 0) {
    result = comm->nccl->ncclRecv(op->receive, bytes, NCCL_UINT8, op->source,
                                  comm->comm, stream);
  }
  return result;
}

static ncclResult_t ask(const pestle_comm_t* comm, CUstream stream,
                        const pestle_collective_t* op, const by_t* by) {
  const nccl_t* nccl = comm->nccl;
  size_t count = (size_t)op->count, bytes = (size_t)bytes_of(op);
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      return nccl->ncclAllReduce(op->send, op->receive, count, by->type, by->op,
                                 comm->comm, stream);
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return nccl->ncclReduceScatter(op->send, op->receive, count, by->type,
                                     by->op, comm->comm, stream);
    case PESTLE_COLLECTIVE_ALL_GATHER:
      return nccl->ncclAllGather(op->send, op->receive, bytes, NCCL_UINT8,
                                 comm->comm, stream);
    case PESTLE_COLLECTIVE_BROADCAST:
      return nccl->ncclBroadcast(op->send, op->receive, bytes, NCCL_UINT8, 0,
                                 comm->comm, stream);
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      return exchange(comm, stream, op);
    case PESTLE_COLLECTIVE_PERMUTE:
      return permute(comm, stream, op);
  }
  return NCCL_INVALID_ARGUMENT;
}

// A call alone is its own group.
static bool is_one_call(const pestle_collective_t* ops, size_t count) {
  return count == 1 && ops->kind != PESTLE_COLLECTIVE_ALL_TO_ALL &&
         ops->kind != PESTLE_COLLECTIVE_PERMUTE;
}

static pestle_status_t ask_all(pestle_comm_t* comm, CUstream stream,
                               const pestle_collective_t* ops, size_t count) {
  const pestle_host_t* host = comm->device->owner->host;
  const nccl_t* nccl = comm->nccl;
  const char* name = ops->name ? ops->name : "a collective";
  pestle_status_t status = NULL;
  bool group = !is_one_call(ops, count);
  ncclResult_t result = group ? nccl->ncclGroupStart() : 0, last = 0;
  if (result)
    return pestle_cuda_nccl_failed(host, nccl, comm->comm, result, name);
  for (size_t i = 0; i < count && !result && !status; ++i) {
    by_t by;
    status = check(host, &ops[i], &by);
    if (status || alone(comm, stream, &ops[i], &status)) continue;
    if (!status) result = ask(comm, stream, &ops[i], &by);
    if (result == NCCL_IN_PROGRESS) {
      last = group ? 0 : result;
      result = 0;
    }
  }
  if (group) last = nccl->ncclGroupEnd();
  if (status) return status;
  if (result)
    return pestle_cuda_nccl_failed(host, nccl, comm->comm, result, name);
  return pestle_cuda_comm_ready(comm, last, comm->deadline_ns, name);
}

// --- How far the stream has come ---

static pestle_status_t write_word(const pestle_comm_t* comm, CUstream stream,
                                  int place, uint64_t value) {
  const cuda_device_t* d = comm->device;
  CUdeviceptr word = comm->word_address + sizeof(uint64_t) * (size_t)place;
  PESTLE_CUDA_TRY(d, cuStreamWriteValue64_v2,
                  (stream, word, value, CU_STREAM_WRITE_VALUE_DEFAULT));
  return NULL;
}

static bool is_recording(const pestle_device_stream_t* stream) {
  return stream && atomic_load(&stream->recording);
}

// A recording holds values as they are counted from its beginning.
static pestle_status_t mark_recorded(const pestle_comm_t* comm, CUstream stream,
                                     uint64_t value) {
  const cuda_device_t* d = comm->device;
  if (atomic_load(&d->recorded_writes) == CUDA_WRITES_RECORDED)
    return write_word(comm, stream, CUDA_COMM_RECORDED, value);
  CUdeviceptr word = comm->word_address + sizeof(uint64_t) * CUDA_COMM_RECORDED;
  PESTLE_CUDA_TRY(d, cuMemsetD32Async, (word, (unsigned)value, 1, stream));
  return NULL;
}

static pestle_status_t mark(const pestle_comm_t* comm,
                            const pestle_device_stream_t* stream,
                            CUstream handle, uint64_t value) {
  if (is_recording(stream))
    return mark_recorded(comm, handle, value - 2 * comm->recorded_after);
  return write_word(comm, handle, CUDA_COMM_AT, value);
}

// A collective right behind another one begins when that is done.
static pestle_status_t mark_begin(pestle_comm_t* comm,
                                  const pestle_device_stream_t* stream,
                                  CUstream handle, uint64_t sequence) {
  bool next = stream && !is_recording(stream) && comm->latest &&
              comm->stream == stream &&
              comm->work == atomic_load(&stream->queued) &&
              sequence - comm->latest < UINT32_MAX;
  if (!next) return mark(comm, stream, handle, 2 * sequence - 1);
  atomic_store(&comm->links[comm->latest % CUDA_COMM_LINKS],
               comm->latest << 32 | (uint32_t)(sequence - comm->latest));
  return NULL;
}

// A launch of a recording sets its count to 0 before it says what that follows: what is
// read in this order is never ahead of the stream.
static uint64_t read_words(const pestle_comm_t* comm) {
  uint64_t after = atomic_load(&comm->word[CUDA_COMM_AFTER]);
  uint64_t recorded = atomic_load(&comm->word[CUDA_COMM_RECORDED]);
  uint64_t value = atomic_load(&comm->word[CUDA_COMM_AT]);
  return value > 2 * after + recorded ? value : 2 * after + recorded;
}

void pestle_cuda_comm_progress(void* self, pestle_comm_t* comm,
                               uint64_t* out_begun, uint64_t* out_done) {
  uint64_t value = read_words(comm);
  (void)self;
  *out_done = value / 2;
  *out_begun = (value + 1) / 2;
  if (value % 2 || !value) return;
  uint64_t link = atomic_load(&comm->links[*out_done % CUDA_COMM_LINKS]);
  if (link >> 32 == (uint32_t)*out_done) *out_begun += (uint32_t)link;
}

// --- Queueing ---

static pestle_status_t queue_beside(pestle_comm_t* comm,
                                    pestle_device_stream_t* stream,
                                    const pestle_collective_t* ops,
                                    size_t count) {
  CUstream handle = comm->beside->stream;
  uint64_t sequence = ops->sequence;
  PESTLE_TRY(pestle_cuda_beside_fork(comm, stream));
  PESTLE_TRY(mark(comm, stream, handle, 2 * sequence - 1));
  PESTLE_TRY(ask_all(comm, handle, ops, count));
  PESTLE_TRY(mark(comm, stream, handle, 2 * sequence));
  PESTLE_TRY(pestle_cuda_beside_queued(comm, sequence));
  cuda_queued(stream);
  if (is_recording(stream)) return NULL;
  comm->latest = sequence;
  comm->stream = NULL;
  return NULL;
}

static pestle_status_t queue(pestle_comm_t* comm,
                             pestle_device_stream_t* stream,
                             const pestle_collective_t* ops, size_t count) {
  const cuda_device_t* d = comm->device;
  CUstream handle = stream ? stream->handle : d->own;
  if (stream) atomic_store(&stream->ends_in_kernel, false);
  PESTLE_TRY(mark_begin(comm, stream, handle, ops->sequence));
  PESTLE_TRY(ask_all(comm, handle, ops, count));
  PESTLE_TRY(mark(comm, stream, handle, 2 * ops->sequence));
  if (is_recording(stream)) return NULL;
  comm->latest = ops->sequence;
  comm->stream = stream;
  if (stream) {
    cuda_queued(stream);
    comm->work = atomic_load(&stream->queued);
    return NULL;
  }
  return pestle_cuda_wait_stream(comm->device, handle);
}

typedef pestle_status_t (*queue_fn_t)(pestle_comm_t* comm,
                                      pestle_device_stream_t* stream,
                                      const pestle_collective_t* ops,
                                      size_t count);

static pestle_status_t check_and_queue(const cuda_t* cuda, pestle_comm_t* comm,
                                       pestle_device_stream_t* stream,
                                       const pestle_collective_t* ops,
                                       size_t count, queue_fn_t queue_all) {
  cuda_device_t* d = comm->device;
  by_t by;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(check(cuda->host, &ops[i], &by));
  if (stream && stream->device != d) {
    return PESTLE_PLUGIN_ERROR(cuda->host, INVALID_ARGUMENT,
                               "cuda: the stream is of device %d, and the "
                               "communicator of device %d",
                               (int)stream->device->index, (int)d->index);
  }
  if (stream && stream != comm->recorder)
    PESTLE_TRY(pestle_cuda_refuse_recording(stream, "collectives"));
  atomic_fetch_add(&comm->calls, 1);
  pestle_status_t status = pestle_cuda_comm_poll((void*)(uintptr_t)cuda, comm);
  if (!status) status = pestle_cuda_enter(d);
  if (!status) {
    status = queue_all(comm, stream, ops, count);
    pestle_cuda_leave(d);
  }
  atomic_fetch_sub(&comm->calls, 1);
  return status;
}

pestle_status_t pestle_cuda_comm_enqueue(void* self, pestle_comm_t* comm,
                                         pestle_device_stream_t* stream,
                                         const pestle_collective_t* ops,
                                         size_t count) {
  return check_and_queue(self, comm, stream, ops, count, queue);
}

pestle_status_t pestle_cuda_comm_enqueue_beside(void* self, pestle_comm_t* comm,
                                                pestle_device_stream_t* stream,
                                                const pestle_collective_t* ops,
                                                size_t count) {
  return check_and_queue(self, comm, stream, ops, count,
                         stream ? queue_beside : queue);
}

// --- Recordings ---

static pestle_status_t begin_launch(pestle_comm_t* comm, CUstream stream,
                                    uint64_t sequence) {
  PESTLE_TRY(write_word(comm, stream, CUDA_COMM_RECORDED, 0));
  return write_word(comm, stream, CUDA_COMM_AFTER, sequence);
}

static pestle_status_t end_launch(pestle_comm_t* comm,
                                  pestle_device_stream_t* stream,
                                  uint64_t sequence) {
  PESTLE_TRY(write_word(comm, stream->handle, CUDA_COMM_AT, 2 * sequence));
  cuda_queued(stream);
  // What comes next is behind other work of the recording.
  comm->latest = sequence;
  comm->stream = NULL;
  return NULL;
}

pestle_status_t pestle_cuda_comm_record(void* self, pestle_comm_t* comm,
                                        pestle_device_stream_t* stream,
                                        int32_t what, uint64_t sequence) {
  cuda_device_t* d = comm->device;
  if (what == PESTLE_COMM_RECORDS) {
    comm->recorder = stream;
    comm->recorded_after = sequence;
    return NULL;
  }
  if (what == PESTLE_COMM_LAUNCHES)
    PESTLE_TRY(pestle_cuda_comm_poll(self, comm));
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = what == PESTLE_COMM_LAUNCHES
                               ? begin_launch(comm, stream->handle, sequence)
                               : end_launch(comm, stream, sequence);
  pestle_cuda_leave(d);
  return status;
}
