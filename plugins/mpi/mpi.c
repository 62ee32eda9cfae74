// SPDX-License-Identifier: Apache-2.0
// A transport between processes that mpirun or mpiexec has started.
//
// Moves bytes by messages between each two ranks, and sums by MPI's own all_reduce
// where the whole world takes part and MPI has the type; what else combines is left to
// the host. Nothing blocks: each wait looks at a deadline and at abort().
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/error.h"
#include "plugins/mpi/mpi_api.h"

enum { PIECE = 1 << 30, TAGS = 1 << 14, REASON = 512 };

typedef struct mpi_t {
  const pestle_host_t* host;
  pestle_backend_t backend;
  pthread_mutex_t mutex;  // of what follows
  bool is_open, is_ours, is_broken;
  mpi_api_t api;
} mpi_t;

struct pestle_comm_s {
  mpi_handle_t comm;
  int32_t rank, size;
  int64_t deadline_ns;
  atomic_bool aborted;
  pthread_mutex_t mutex;  // of |reason|
  char reason[REASON];
  mpi_handle_t* requests;
  size_t count, capacity;
};

static int64_t clock_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static pestle_status_t failed(const mpi_t* m, const char* what, int error) {
  char text[1024] = "";
  int size = 0;
  if (m->api.error_string.error_string(error, text, &size)) text[0] = '\0';
  text[sizeof text - 1] = '\0';
  return PESTLE_PLUGIN_ERROR(m->host, UNAVAILABLE, "%s failed: %s", what, text);
}

// --- Starting ---

static pestle_status_t start(mpi_t* m) {
  int flag = 0, level = 0;
  if (m->is_open) return NULL;
  pestle_status_t status = pestle_mpi_open(m->host, &m->api);
  if (status) return status;
  const mpi_api_t* api = &m->api;
  if (api->finalized.flag(&flag) || flag) {
    return PESTLE_PLUGIN_ERROR(m->host, UNAVAILABLE,
                               "MPI has ended in this process and does not "
                               "start again");
  }
  int error = api->initialized.flag(&flag);
  if (!error && !flag) {
    error = api->init_thread.init_thread(NULL, NULL, api->multiple, &level);
    m->is_ours = !error;
  } else if (!error) {
    error = api->query_thread.flag(&level);
  }
  if (error) return failed(m, "MPI_Init_thread", error);
  if (level < api->serialized) {
    return PESTLE_PLUGIN_ERROR(
        m->host, UNSUPPORTED,
        "MPI was started for one thread alone (level %d); start it by "
        "MPI_Init_thread(MPI_THREAD_MULTIPLE), or leave it to Pestle",
        level);
  }
  m->is_open = true;
  return NULL;
}

static pestle_status_t make_id(void* self, uint8_t* id, size_t* size) {
  const mpi_t* m = self;
  static const char name[] = "mpi";
  if (*size < sizeof name) {
    return PESTLE_PLUGIN_ERROR(m->host, RESOURCE_EXHAUSTED,
                               "the name of a communicator has %zu bytes",
                               sizeof name);
  }
  memcpy(id, name, sizeof name);
  *size = sizeof name;
  return NULL;
}

static pestle_status_t join(mpi_t* m, const pestle_comm_options_t* options,
                            pestle_comm_t* comm) {
  int rank, size;
  const mpi_api_t* api = &m->api;
  int error = pestle_mpi_get(api, api->comm_rank, api->world, &rank);
  if (!error) error = pestle_mpi_get(api, api->comm_size, api->world, &size);
  if (error) return failed(m, "MPI_Comm_rank", error);
  if (rank != options->rank || size != options->size) {
    return PESTLE_PLUGIN_ERROR(
        m->host, INVALID_ARGUMENT,
        "rank %d of a world of %d is rank %d of %d of MPI's; start the ranks "
        "by mpirun, and set neither RANK nor WORLD_SIZE",
        (int)options->rank, (int)options->size, rank, size);
  }
  error = pestle_mpi_return_errors(api, api->world);
  if (!error) error = pestle_mpi_dup(api, api->world, &comm->comm);
  if (!error) error = pestle_mpi_return_errors(api, comm->comm);
  return error ? failed(m, "MPI_Comm_dup", error) : NULL;
}

static void free_comm(const mpi_t* m, pestle_comm_t* comm) {
  (void)pthread_mutex_destroy(&comm->mutex);
  m->host->free(m->host->self, comm->requests,
                comm->capacity * sizeof *comm->requests);
  m->host->free(m->host->self, comm, sizeof *comm);
}

static pestle_status_t create(void* self, int32_t device,
                              const pestle_comm_options_t* options,
                              pestle_comm_t** out) {
  mpi_t* m = self;
  (void)device;
  *out = NULL;
  pestle_comm_t* comm = m->host->alloc(m->host->self, sizeof *comm);
  if (!comm) return PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY, "no memory");
  memset(comm, 0, sizeof *comm);
  (void)pthread_mutex_init(&comm->mutex, NULL);
  atomic_init(&comm->aborted, false);
  comm->rank = options->rank;
  comm->size = options->size;
  comm->deadline_ns = options->deadline_ms * 1000000;
  (void)pthread_mutex_lock(&m->mutex);
  pestle_status_t status = start(m);
  if (!status) status = join(m, options, comm);
  (void)pthread_mutex_unlock(&m->mutex);
  if (status) {
    free_comm(m, comm);
    return status;
  }
  *out = comm;
  return NULL;
}

static void destroy(void* self, pestle_comm_t* comm) {
  mpi_t* m = self;
  if (!comm) return;
  if (atomic_load(&comm->aborted)) {
    m->is_broken = true;  // requests may be under way: it is left as it is
  } else {
    pestle_mpi_free(&m->api, comm->comm);
  }
  free_comm(m, comm);
}

// --- Waiting ---

static void break_comm(pestle_comm_t* comm, const char* reason) {
  (void)pthread_mutex_lock(&comm->mutex);
  if (!atomic_load(&comm->aborted))
    (void)snprintf(comm->reason, sizeof comm->reason, "%s", reason);
  atomic_store(&comm->aborted, true);
  (void)pthread_mutex_unlock(&comm->mutex);
}

static pestle_status_t poll(void* self, pestle_comm_t* comm) {
  const mpi_t* m = self;
  if (!atomic_load(&comm->aborted)) return NULL;
  (void)pthread_mutex_lock(&comm->mutex);
  pestle_status_t status =
      PESTLE_PLUGIN_ERROR(m->host, UNAVAILABLE, "%s", comm->reason);
  (void)pthread_mutex_unlock(&comm->mutex);
  return status;
}

static void abort_comm(void* self, pestle_comm_t* comm, const char* reason) {
  (void)self;
  if (comm) break_comm(comm, reason ? reason : "the world has ended");
}

static mpi_handle_t* next_request(const mpi_t* m, pestle_comm_t* comm) {
  if (comm->count == comm->capacity) {
    size_t capacity = comm->capacity ? 2 * comm->capacity : 64;
    mpi_handle_t* more = m->host->alloc(m->host->self, capacity * sizeof *more);
    if (!more) return NULL;
    if (comm->count) memcpy(more, comm->requests, comm->count * sizeof *more);
    m->host->free(m->host->self, comm->requests, comm->capacity * sizeof *more);
    comm->requests = more;
    comm->capacity = capacity;
  }
  return &comm->requests[comm->count++];
}

// A look at each; false where MPI has failed.
static int test_all(const mpi_t* m, pestle_comm_t* comm, bool* moved) {
  for (size_t i = comm->count; i-- > 0;) {
    bool done = false;
    int error = pestle_mpi_test(&m->api, &comm->requests[i], &done);
    if (error) return error;
    if (!done) continue;
    *moved = true;
    comm->requests[i] = comm->requests[--comm->count];
  }
  return 0;
}

static pestle_status_t wait_all(const mpi_t* m, pestle_comm_t* comm,
                                const char* name) {
  static const struct timespec pause = {0, 50000};
  int64_t idle = 0;  // since when nothing has moved
  while (comm->count) {
    bool moved = false;
    int error = test_all(m, comm, &moved);
    if (error) {
      pestle_status_t status = failed(m, "MPI_Test", error);
      break_comm(comm, "MPI_Test has failed");
      return status;
    }
    if (atomic_load(&comm->aborted)) return poll((void*)(uintptr_t)m, comm);
    if (moved || !comm->count) {
      idle = 0;
      continue;
    }
    int64_t now = clock_ns();
    if (!idle) idle = now;
    if (now - idle > comm->deadline_ns) {
      break_comm(comm, "a rank has not come");
      return PESTLE_PLUGIN_ERROR(m->host, DEADLINE_EXCEEDED,
                                 "not all ranks have come to %s", name);
    }
    // A core may be shared by ranks: who waits for long leaves it.
    if (now - idle > 200000) {
      (void)nanosleep(&pause, NULL);
    } else {
      (void)sched_yield();
    }
  }
  return NULL;
}

// --- Messages ---

typedef struct message_t {
  const mpi_t* m;
  pestle_comm_t* comm;
  int tag;
  int error;
  bool no_memory;
} message_t;

static void move(message_t* to, int32_t peer, const char* out, char* in,
                 uint64_t bytes) {
  for (uint64_t at = 0; at < bytes && !to->error; at += PIECE) {
    int n = (int)(bytes - at < PIECE ? bytes - at : PIECE);
    mpi_handle_t* request = next_request(to->m, to->comm);
    if (!request) {
      to->no_memory = true;
      return;
    }
    to->error = out ? pestle_mpi_send(&to->m->api, out + at, n, peer, to->tag,
                                      to->comm->comm, request)
                    : pestle_mpi_receive(&to->m->api, in + at, n, peer, to->tag,
                                         to->comm->comm, request);
    if (to->error) --to->comm->count;
  }
}

static void copy(void* to, const void* from, uint64_t bytes) {
  if (bytes) memcpy(to, from, (size_t)bytes);
}

// |each|: another part for each member.
static void exchange(message_t* to, const pestle_collective_t* op,
                     uint64_t bytes, bool each) {
  const char* send = op->send;
  char* receive = op->receive;
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    const char* part = each ? send + bytes * k : send;
    int32_t peer = op->ranks[k];
    if (peer == to->comm->rank) {
      copy(receive + bytes * k, part, bytes);
      continue;
    }
    move(to, peer, NULL, receive + bytes * k, bytes);
    move(to, peer, part, NULL, bytes);
  }
}

static void broadcast(message_t* to, const pestle_collective_t* op,
                      uint64_t bytes) {
  if (!op->rank_count) {
    if (bytes) memset(op->receive, 0, (size_t)bytes);
  } else if (op->ranks[0] != to->comm->rank) {
    move(to, op->ranks[0], NULL, op->receive, bytes);
  } else {
    for (uint32_t k = 1; k < op->rank_count; ++k)
      move(to, op->ranks[k], op->send, NULL, bytes);
    copy(op->receive, op->send, bytes);
  }
}

static void permute(message_t* to, const pestle_collective_t* op,
                    uint64_t bytes) {
  if (op->source < 0) {
    if (bytes) memset(op->receive, 0, (size_t)bytes);
  } else if (op->source == to->comm->rank) {
    copy(op->receive, op->send, bytes);
  } else {
    move(to, op->source, NULL, op->receive, bytes);
  }
  if (op->target >= 0 && op->target != to->comm->rank)
    move(to, op->target, op->send, NULL, bytes);
}

// --- Sums ---

static bool type_of(int32_t dtype, mpi_type_t* out) {
  static const struct {
    pestle_dtype_t dtype;
    mpi_type_t type;
  } rows[] = {{PESTLE_F32, MPI_TYPE_F32}, {PESTLE_F64, MPI_TYPE_F64},
              {PESTLE_I8, MPI_TYPE_I8},   {PESTLE_I16, MPI_TYPE_I16},
              {PESTLE_I32, MPI_TYPE_I32}, {PESTLE_I64, MPI_TYPE_I64},
              {PESTLE_U8, MPI_TYPE_U8},   {PESTLE_U16, MPI_TYPE_U16},
              {PESTLE_U32, MPI_TYPE_U32}, {PESTLE_U64, MPI_TYPE_U64}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].dtype != (pestle_dtype_t)dtype) continue;
    *out = rows[i].type;
    return true;
  }
  return false;
}

// MPI does not say what the least of numbers and NaN is.
static bool op_of(int32_t reduction, mpi_type_t type, mpi_op_t* out) {
  bool whole = type != MPI_TYPE_F32 && type != MPI_TYPE_F64;
  if (reduction == PESTLE_REDUCTION_SUM) {
    *out = MPI_OP_SUM;
  } else if (reduction == PESTLE_REDUCTION_PRODUCT) {
    *out = MPI_OP_PROD;
  } else if (whole && reduction == PESTLE_REDUCTION_MINIMUM) {
    *out = MPI_OP_MIN;
  } else if (whole && reduction == PESTLE_REDUCTION_MAXIMUM) {
    *out = MPI_OP_MAX;
  } else {
    return false;
  }
  return true;
}

static bool is_world(const pestle_comm_t* comm, const pestle_collective_t* op) {
  if (op->rank_count != (uint32_t)comm->size) return false;
  for (int32_t i = 0; i < comm->size; ++i) {
    if (op->ranks[i] != i) return false;
  }
  return true;
}

static pestle_status_t all_reduce(message_t* to, const pestle_collective_t* op,
                                  size_t size) {
  mpi_type_t type;
  mpi_op_t by;
  if (op->kind != PESTLE_COLLECTIVE_ALL_REDUCE || !is_world(to->comm, op) ||
      !type_of(op->dtype, &type) || !op_of(op->reduction, type, &by)) {
    return PESTLE_PLUGIN_ERROR(to->m->host, UNSUPPORTED,
                               "%s is nothing that MPI combines", op->name);
  }
  const char* send = op->send;
  char* receive = op->receive;
  uint64_t piece = PIECE / size;
  for (uint64_t at = 0; at < op->count && !to->error; at += piece) {
    uint64_t n = op->count - at < piece ? op->count - at : piece;
    mpi_handle_t* request = next_request(to->m, to->comm);
    if (!request) {
      to->no_memory = true;
      return NULL;
    }
    to->error = pestle_mpi_all_reduce(&to->m->api, send + at * size,
                                      receive + at * size, (int)n, type, by,
                                      to->comm->comm, request);
    if (to->error) --to->comm->count;
  }
  return NULL;
}

static size_t size_of(int32_t dtype) {
  return pestle_dtype_size((pestle_dtype_t)dtype);
}

static pestle_status_t begin(message_t* to, const pestle_collective_t* op) {
  uint64_t bytes = op->count * size_of(op->dtype);
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return all_reduce(to, op, size_of(op->dtype));
    case PESTLE_COLLECTIVE_ALL_GATHER:
      exchange(to, op, bytes, false);
      return NULL;
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      exchange(to, op, bytes, true);
      return NULL;
    case PESTLE_COLLECTIVE_PERMUTE:
      permute(to, op, bytes);
      return NULL;
    case PESTLE_COLLECTIVE_BROADCAST:
      broadcast(to, op, bytes);
      return NULL;
  }
  return PESTLE_PLUGIN_ERROR(to->m->host, UNSUPPORTED,
                             "collective %d is of no kind", (int)op->kind);
}

static pestle_status_t enqueue(void* self, pestle_comm_t* comm,
                               pestle_device_stream_t* stream,
                               const pestle_collective_t* ops, size_t count) {
  const mpi_t* m = self;
  pestle_status_t status = poll(self, comm);
  if (!status && stream)
    status = PESTLE_PLUGIN_ERROR(m->host, UNSUPPORTED, "MPI has no streams");
  for (size_t i = 0; i < count && !status; ++i) {
    message_t to = {
        .m = m, .comm = comm, .tag = (int)((ops->sequence * 16 + i) % TAGS)};
    status = begin(&to, &ops[i]);
    if (!status && to.no_memory) {
      status = PESTLE_PLUGIN_ERROR(m->host, OUT_OF_MEMORY, "no memory");
    } else if (!status && to.error) {
      status = failed(m, ops[i].name, to.error);
    }
    if (status && comm->count) break_comm(comm, "a message was not sent");
  }
  return status ? status : wait_all(m, comm, ops->name);
}

// --- The backend ---

static const pestle_collective_api_t k_collective = {
    .struct_size = sizeof(pestle_collective_api_t),
    .id = make_id,
    .create = create,
    .enqueue = enqueue,
    .poll = poll,
    .abort = abort_comm,
    .destroy = destroy,
};

static int32_t score(char* why, size_t capacity) {
  return pestle_mpi_is_wanted(why, capacity) ? 50 : 0;
}

static void deinit(void* self) {
  mpi_t* m = self;
  // After a failure the others may never come to the end, for which MPI waits.
  if (m->is_ours && !m->is_broken) (void)m->api.finalize.finalize();
  (void)pthread_mutex_destroy(&m->mutex);
  m->host->free(m->host->self, m, sizeof *m);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  *out_status = NULL;
  mpi_t* m = host->alloc(host->self, sizeof *m);
  if (!m) {
    *out_status =
        PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY, "no memory to start mpi");
    return NULL;
  }
  memset(m, 0, sizeof *m);
  m->host = host;
  (void)pthread_mutex_init(&m->mutex, NULL);
  m->backend = (pestle_backend_t){.struct_size = sizeof m->backend,
                                  .name = "mpi",
                                  .device_type = PESTLE_DEVICE_CPU,
                                  .score = 50,
                                  .self = m,
                                  .deinit = deinit,
                                  .collective = &k_collective};
  return &m->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_CPU
PESTLE_BACKEND_IMPL("mpi", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
