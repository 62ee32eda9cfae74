// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 for machines without GPUs: ranks, threads of one process or
// processes, send through memory that they share, and what is queued runs as a
// function of the host on streams of the driver of threads (libcuda.c), whose stream
// it holds up as a kernel of NCCL would. Sums are in another order than the ranks', so
// that a test sees who has combined. The environment says what goes wrong:
//
//   FAKE_NCCL   RANK:FAULT:N, FAULT at the N-th group of calls (from 1) of that rank:
//               hang        it never ends
//               async       it never ends, and the communicator says why
//               stuck       it never ends, nor does ncclCommAbort
//               init        (N is 0) the communicator is never made
//   FAKE_NCCL_VERSION       22809
//   FAKE_NCCL_SLOW          milliseconds that a group of calls takes at least
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "plugins/cuda/nccl.h"

#define EXPORT __attribute__((visibility("default")))
#define PESTLE_NCCL(result, name, parameters) EXPORT result name parameters;
#include "plugins/cuda/nccl.def"

enum {
  MOST_RANKS = 16,
  CHANNEL = 1 << 16,
  MOST_SPLITS = 64,
  MOST_FLOWS = 4 * MOST_RANKS * 16,
  MOST_FOLDS = 16,
};

// --- What ranks share ---

typedef struct channel_t {  // from one rank to another
  _Atomic(uint64_t) written, read;
  char data[CHANNEL];
} channel_t;

typedef struct shared_t {
  atomic_int joined;
  struct {
    atomic_int come;
    int color[MOST_RANKS], key[MOST_RANKS];
  } splits[MOST_SPLITS];
  channel_t channels[MOST_RANKS][MOST_RANKS];
} shared_t;

struct ncclComm {
  ncclComm_t
      next;  // all that there were: what a stream has left to do may use them
  shared_t* shared;
  char path[96];
  int rank, size, splits;
  bool is_live, is_joined;
  ncclComm_t parent;
  int split, color;    // of one that is a part
  ncclComm_t pending;  // a part that is not made yet
  atomic_int aborted, running, groups, graphs;
  atomic_int error;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ncclComm_t comms;

EXPORT int fake_nccl_live(void);
EXPORT int fake_nccl_live(void) {
  int count = 0;
  pthread_mutex_lock(&lock);
  for (ncclComm_t c = comms; c; c = c->next)
    count += c->is_live;
  pthread_mutex_unlock(&lock);
  return count;
}
// What NCCL_NVLS_ENABLE was when a communicator was first named or made.
static char nvls[16] = "unset";
EXPORT const char* fake_nccl_nvls(void);
EXPORT const char* fake_nccl_nvls(void) {
  return nvls;
}
static void note_nvls(void) {
  const char* text = getenv("NCCL_NVLS_ENABLE");
  snprintf(nvls, sizeof nvls, "%s", text ? text : "missing");
}

static bool has_fault(const struct ncclComm* c, const char* fault, int at) {
  const char* text = getenv("FAKE_NCCL");
  int rank = -1, n = -1;
  char name[16] = "";
  return text && sscanf(text, "%d:%15[a-z]:%d", &rank, name, &n) == 3 &&
         rank == c->rank && n == at && !strcmp(name, fault);
}

static void wait_if_slow(void) {
  const char* text = getenv("FAKE_NCCL_SLOW");
  long ms = text ? atol(text) : 0;
  struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  if (ms) (void)nanosleep(&pause, NULL);
}

static void moment(void) {
  static const struct timespec pause = {0, 30000};
  (void)nanosleep(&pause, NULL);
}

// --- Life ---

ncclResult_t ncclGetVersion(int* version) {
  const char* text = getenv("FAKE_NCCL_VERSION");
  *version = text ? atoi(text) : 22809;
  return 0;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == 6   ? "remote process exited or there was a network error"
         : result == 5 ? "invalid usage"
                       : "unhandled system error";
}
const char* ncclGetLastError(ncclComm_t comm) {
  return comm && atomic_load(&comm->error)
             ? "a fault that the test has asked for"
             : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static atomic_int count;
  note_nvls();
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal,
           "/dev/shm/pestle-fake-nccl-%ld-%d", (long)getpid(),
           atomic_fetch_add(&count, 1));
  return 0;
}

static bool attach(ncclComm_t c) {
  int file = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, (off_t)sizeof(shared_t))) return false;
  void* data =
      mmap(NULL, sizeof(shared_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (data == MAP_FAILED) return false;
  c->shared = data;
  if (atomic_fetch_add(&c->shared->joined, 1) + 1 == c->size)
    (void)unlink(c->path);
  c->is_joined = true;
  return true;
}

static ncclComm_t make(int rank, int size) {
  ncclComm_t c = calloc(1, sizeof *c);
  c->rank = rank;
  c->size = size;
  c->is_live = true;
  pthread_mutex_lock(&lock);
  c->next = comms;
  comms = c;
  pthread_mutex_unlock(&lock);
  return c;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t* config) {
  note_nvls();
  if (config->magic != NCCL_CONFIG_MAGIC || config->size != sizeof *config ||
      config->blocking || size > MOST_RANKS || rank < 0 || rank >= size) {
    return NCCL_INVALID_ARGUMENT;
  }
  ncclComm_t c = make(rank, size);
  snprintf(c->path, sizeof c->path, "%.95s", id.internal);
  *out = c;
  if (!has_fault(c, "init", 0) && !attach(c)) return 2;
  return NCCL_IN_PROGRESS;
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t* out,
                           ncclConfig_t* config) {
  if (config->blocking || c->splits == MOST_SPLITS)
    return NCCL_INVALID_ARGUMENT;
  int at = c->splits++;
  c->shared->splits[at].color[c->rank] = color;
  c->shared->splits[at].key[c->rank] = key;
  *out = NULL;
  if (color >= 0) {
    ncclComm_t part = make(0, 0);
    part->parent = c;
    part->split = at;
    part->color = color;
    c->pending = part;
    *out = part;
  }
  atomic_fetch_add(&c->shared->splits[at].come, 1);
  return NCCL_IN_PROGRESS;
}

// All have said what they are: the part's ranks are those of one color.
static void finish_split(ncclComm_t part) {
  ncclComm_t c = part->parent;
  const int* color = c->shared->splits[part->split].color;
  const int* key = c->shared->splits[part->split].key;
  for (int i = 0; i < c->size; ++i) {
    if (color[i] != part->color) continue;
    ++part->size;
    part->rank +=
        key[i] < key[c->rank] || (key[i] == key[c->rank] && i < c->rank);
  }
  snprintf(part->path, sizeof part->path, "%.60s.%d.%d", c->path, part->split,
           part->color);
  if (!attach(part)) atomic_store(&part->error, 2);
}

static bool is_ready(ncclComm_t c) {
  if (c->parent && !c->is_joined) return false;
  if (!c->is_joined || atomic_load(&c->shared->joined) < c->size) return false;
  if (c->splits &&
      atomic_load(&c->shared->splits[c->splits - 1].come) < c->size) {
    return false;
  }
  if (c->pending) finish_split(c->pending);
  c->pending = NULL;
  return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* out) {
  pthread_mutex_lock(&lock);
  *out = atomic_load(&c->error);
  if (!*out && !is_ready(c)) *out = NCCL_IN_PROGRESS;
  pthread_mutex_unlock(&lock);
  return 0;
}
ncclResult_t ncclCommFinalize(ncclComm_t c) {
  (void)c;
  return 0;
}
static void leave(ncclComm_t c) {
  pthread_mutex_lock(&lock);
  c->is_live = false;
  if (c->is_joined && atomic_load(&c->shared->joined) < c->size)
    (void)unlink(c->path);
  pthread_mutex_unlock(&lock);
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
  while (atomic_load(&c->graphs))
    moment();
  leave(c);
  return 0;
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
  const char* fault = getenv("FAKE_NCCL");
  bool stuck = fault && strstr(fault, ":stuck:") && atoi(fault) == c->rank;
  while (stuck && atomic_load(&c->running))
    moment();
  atomic_store(&c->aborted, 1);
  while (atomic_load(&c->running) || atomic_load(&c->graphs))
    moment();
  leave(c);
  return 0;
}

// --- Work ---

typedef struct flow_t {
  int peer;
  const char* from;
  char* to;  // NULL: it sends
  size_t left;
} flow_t;

// Parts of all members that are combined when they are there.
typedef struct fold_t {
  char* parts;
  char* to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
} fold_t;

typedef struct job_t {
  ncclComm_t comm;
  cudaStream_t stream;
  bool recorded;  // it runs as often as its graph does
  struct job_t* next;
  int number;
  flow_t flows[MOST_FLOWS];
  int flow_count;
  fold_t folds[MOST_FOLDS];
  int fold_count;
} job_t;

static size_t size_of(ncclDataType_t type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

static bool move(const struct ncclComm* c, flow_t* f) {
  channel_t* ch = f->to ? &c->shared->channels[f->peer][c->rank]
                        : &c->shared->channels[c->rank][f->peer];
  uint64_t w = atomic_load(&ch->written), r = atomic_load(&ch->read);
  size_t n = f->to ? (size_t)(w - r) : (size_t)(CHANNEL - (w - r));
  size_t at = (size_t)((f->to ? r : w) % CHANNEL);
  if (n > f->left) n = f->left;
  if (n > CHANNEL - at) n = CHANNEL - at;
  if (!n) return false;
  if (f->to) {
    memcpy(f->to, ch->data + at, n);
    f->to += n;
    atomic_store(&ch->read, r + n);
  } else {
    memcpy(ch->data + at, f->from, n);
    f->from += n;
    atomic_store(&ch->written, w + n);
  }
  f->left -= n;
  return true;
}

static float bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__extension__ typedef _Float16 half_t;

#define FOLD(T)                             \
  {                                         \
    T a, b;                                 \
    memcpy(&a, to, sizeof a);               \
    memcpy(&b, from, sizeof b);             \
    a = op == NCCL_SUM    ? (T)(a + b)      \
        : op == NCCL_PROD ? (T)(a * b)      \
        : op == NCCL_MAX  ? (a > b ? a : b) \
                          : (a < b ? a : b); \
    memcpy(to, &a, sizeof a);               \
    break;                                  \
  }

static void fold_one(char* to, const char* from, ncclDataType_t type,
                     ncclRedOp_t op) {
  switch (type) {
    case NCCL_INT8:
      FOLD(int8_t)
    case NCCL_UINT8:
      FOLD(uint8_t)
    case NCCL_INT32:
    case NCCL_UINT32:
      if (type == NCCL_INT32 && op > NCCL_PROD) FOLD(int32_t)
      FOLD(uint32_t)
    case NCCL_INT64:
    case NCCL_UINT64:
      if (type == NCCL_INT64 && op > NCCL_PROD) FOLD(int64_t)
      FOLD(uint64_t)
    case NCCL_FLOAT16:
      FOLD(half_t)
    case NCCL_FLOAT32:
      FOLD(float)
    case NCCL_FLOAT64:
      FOLD(double)
    default: {
      uint16_t a, b;
      memcpy(&a, to, 2);
      memcpy(&b, from, 2);
      a = to_bf16(op == NCCL_SUM ? bf16(a) + bf16(b) : bf16(a) * bf16(b));
      memcpy(to, &a, 2);
    }
  }
}

// The last member first.
static void run_fold(const struct ncclComm* c, const fold_t* f) {
  size_t size = size_of(f->type), part = f->count * size;
  memcpy(f->to, f->parts + part * (size_t)(c->size - 1), part);
  for (int i = c->size - 1; i-- > 0;) {
    for (size_t k = 0; k < f->count; ++k)
      fold_one(f->to + k * size, f->parts + part * (size_t)i + k * size,
               f->type, f->op);
  }
}

// A recorded fold has memory of its own each time.
static void renew_parts(job_t* job, fold_t* fold) {
  size_t bytes = fold->count * size_of(fold->type);
  size_t size = bytes * (size_t)job->comm->size;
  const char* before = fold->parts;
  fold->parts = malloc(size + 1);
  for (int i = 0; i < job->flow_count; ++i) {
    char* to = job->flows[i].to;
    if (to && to >= before && to < before + size)
      job->flows[i].to = fold->parts + (to - before);
  }
}

static void wait_for_abort(ncclComm_t c) {
  while (!atomic_load(&c->aborted))
    moment();
}

static void run_job(void* user) {
  job_t* job = user;
  ncclComm_t c = job->comm;
  if (job->recorded) {
    job = malloc(sizeof *job);
    *job = *(const job_t*)user;
    job->number = atomic_fetch_add(&c->groups, 1) + 1;
    for (int i = 0; i < job->fold_count; ++i)
      renew_parts(job, &job->folds[i]);
  }
  atomic_fetch_add(&c->running, 1);
  wait_if_slow();
  if (has_fault(c, "async", job->number)) atomic_store(&c->error, 6);
  if (has_fault(c, "hang", job->number) || has_fault(c, "async", job->number) ||
      has_fault(c, "stuck", job->number)) {
    wait_for_abort(c);
  }
  for (bool all = false; !all && !atomic_load(&c->aborted);) {
    bool moved = false;
    // What goes to one peer, or comes from one, does so in its order.
    uint32_t busy[2] = {0, 0};
    all = true;
    for (int i = 0; i < job->flow_count; ++i) {
      flow_t* f = &job->flows[i];
      uint32_t bit = 1u << f->peer, *side = &busy[f->to != NULL];
      if (!f->left) continue;
      if (!(*side & bit)) moved |= move(c, f);
      if (f->left) *side |= bit, all = false;
    }
    if (!all && !moved) moment();
  }
  for (int i = 0; i < job->fold_count; ++i) {
    if (!atomic_load(&c->aborted)) run_fold(c, &job->folds[i]);
    free(job->folds[i].parts);
  }
  atomic_fetch_sub(&c->running, 1);
  free(job);
}

// --- Groups of calls ---

static _Thread_local int depth;
static _Thread_local job_t* open_job;

static job_t* job_of(ncclComm_t c, cudaStream_t stream) {
  if (!open_job) open_job = calloc(1, sizeof *open_job);
  open_job->comm = c;
  open_job->stream = stream;
  return open_job;
}

ncclResult_t ncclGroupStart(void) {
  ++depth;
  return 0;
}
// As NCCL does, a communicator waits at its end until no graph has work of it.
static void hold(void* user, int count) {
  atomic_fetch_add(&((job_t*)user)->comm->graphs, count);
}

static ncclResult_t launch(job_t* job) {
  static int (*launch_call)(cudaStream_t, void (*)(void*), void*,
                            void (*)(void*, int));
  static int (*is_capturing)(cudaStream_t, int*);
  static job_t* recorded;
  int capturing = 0;
  if (!launch_call) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return 3;
    *(void**)&is_capturing = dlsym(driver, "cuStreamIsCapturing");
    *(void**)&launch_call = dlsym(driver, "fake_cuda_held_call");
  }
  if (!launch_call || is_capturing(job->stream, &capturing)) return 3;
  job->recorded = capturing != 0;
  if (job->recorded) {  // what was launched may still run when its graph is gone
    pthread_mutex_lock(&lock);
    job->next = recorded;
    recorded = job;
    pthread_mutex_unlock(&lock);
  } else {
    job->number = atomic_fetch_add(&job->comm->groups, 1) + 1;
  }
  return launch_call(job->stream, run_job, job, hold) ? 1 : 0;
}

ncclResult_t ncclGroupEnd(void) {
  if (--depth || !open_job) return 0;
  job_t* job = open_job;
  open_job = NULL;
  return launch(job);
}

static ncclResult_t done(void) {
  return depth ? 0 : (++depth, ncclGroupEnd());
}

static void add_send(job_t* j, int peer, const void* from, size_t bytes) {
  j->flows[j->flow_count++] = (flow_t){peer, from, NULL, bytes};
}
static void add_receive(job_t* j, int peer, void* to, size_t bytes) {
  j->flows[j->flow_count++] = (flow_t){peer, NULL, to, bytes};
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t c, cudaStream_t stream) {
  if (peer < 0 || peer >= c->size) return NCCL_INVALID_ARGUMENT;
  add_send(job_of(c, stream), peer, from, count * size_of(type));
  return done();
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t c, cudaStream_t stream) {
  if (peer < 0 || peer >= c->size) return NCCL_INVALID_ARGUMENT;
  add_receive(job_of(c, stream), peer, to, count * size_of(type));
  return done();
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count,
                           ncclDataType_t type, ncclComm_t c,
                           cudaStream_t stream) {
  job_t* j = job_of(c, stream);
  size_t bytes = count * size_of(type);
  for (int i = 0; i < c->size; ++i) {
    add_send(j, i, from, bytes);
    add_receive(j, i, (char*)to + bytes * (size_t)i, bytes);
  }
  return done();
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t c,
                           cudaStream_t stream) {
  job_t* j = job_of(c, stream);
  size_t bytes = count * size_of(type);
  for (int i = 0; i < c->size && c->rank == root; ++i)
    add_send(j, i, from, bytes);
  add_receive(j, root, to, bytes);
  return done();
}
static void add_fold(job_t* j, void* to, size_t count, ncclDataType_t type,
                     ncclRedOp_t op) {
  size_t bytes = count * size_of(type);
  char* parts = malloc(bytes * (size_t)j->comm->size + 1);
  j->folds[j->fold_count++] = (fold_t){parts, to, count, type, op};
  for (int i = 0; i < j->comm->size; ++i)
    add_receive(j, i, parts + bytes * (size_t)i, bytes);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t stream) {
  job_t* j = job_of(c, stream);
  for (int i = 0; i < c->size; ++i)
    add_send(j, i, from, count * size_of(type));
  add_fold(j, to, count, type, op);
  return done();
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t stream) {
  job_t* j = job_of(c, stream);
  size_t bytes = count * size_of(type);
  for (int i = 0; i < c->size; ++i)
    add_send(j, i, (const char*)from + bytes * (size_t)i, bytes);
  add_fold(j, to, count, type, op);
  return done();
}
