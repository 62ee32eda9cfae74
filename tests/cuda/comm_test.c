// SPDX-License-Identifier: Apache-2.0
// The transport "nccl" against NCCL's stand-in, four ranks on four devices, each a
// thread: every kind, dtype and reduction against what they mean, groups, what NCCL has
// not, how far streams are, faults, and an abort that hangs.
#include <pthread.h>
#include <time.h>

#include "base/half.h"
#include "cuda/fake/fake.h"
#include "gpu_kernel.h"

enum { RANKS = 4, MOST = 3000, DEADLINE_MS = 20000 };

typedef struct rank_t rank_t;
typedef void (*act_fn_t)(rank_t* r);
struct rank_t {
  act_fn_t act;
  int32_t rank;
  pthread_t thread;
  pestle_comm_t *whole, *comm;
  pestle_device_stream_t* stream;
  pestle_collective_t op;
  uint64_t sequence;
  unsigned char* host;
  size_t send_bytes, receive_bytes;
  pestle_status_t status;
};

static const int32_t everybody[RANKS] = {0, 1, 2, 3};
static pthread_barrier_t barrier;
static uint8_t id[128];
static int64_t deadline_ms = DEADLINE_MS;

static const pestle_collective_api_t* api(void) {
  return gpu->collective;
}

static void* rank_main(void* user) {
  rank_t* r = user;
  r->act(r);
  return NULL;
}

static void on_all(rank_t ranks[RANKS], act_fn_t act) {
  for (int32_t i = 0; i < RANKS; ++i) {
    ranks[i].act = act;
    ranks[i].rank = i;
    assert_int_equal(
        pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
  }
  for (int32_t i = 0; i < RANKS; ++i)
    (void)pthread_join(ranks[i].thread, NULL);
}

static void join(rank_t* r) {
  pestle_comm_options_t options = {.struct_size = sizeof options,
                                   .id = id,
                                   .id_size = sizeof id,
                                   .rank = r->rank,
                                   .size = RANKS,
                                   .deadline_ms = deadline_ms};
  r->status = api()->create(gpu->self, r->rank, &options, &r->whole);
  r->comm = r->whole;
  r->sequence = 0;
  if (!r->status)
    assert_ok(gpu->device->stream_create(gpu->self, r->rank, &r->stream));
}

static void open_ranks(rank_t ranks[RANKS]) {
  size_t size = sizeof id;
  memset(ranks, 0, RANKS * sizeof *ranks);
  assert_ok(api()->id(gpu->self, id, &size));
  assert_int_equal(size, sizeof id);
  on_all(ranks, join);
  for (int i = 0; i < RANKS; ++i)
    assert_ok(ranks[i].status);
}

static void close_ranks(rank_t ranks[RANKS]) {
  for (int i = 0; i < RANKS; ++i) {
    gpu->device->stream_destroy(gpu->self, ranks[i].stream);
    api()->destroy(gpu->self, ranks[i].whole);
  }
}

// --- Values ---

// Small whole numbers, which every dtype has, as bytes.
static void put(pestle_dtype_t dtype, unsigned char* to, size_t at, int value) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = (uint64_t)value;
  float f = (float)value;
  double d = value;
  uint16_t h;
  to += at * size;
  switch ((int)dtype) {
    case PESTLE_F16:
      h = pestle_f16_from_f32(f);
      memcpy(to, &h, 2);
      break;
    case PESTLE_BF16:
      h = pestle_bf16_from_f32(f);
      memcpy(to, &h, 2);
      break;
    case PESTLE_F32:
      memcpy(to, &f, 4);
      break;
    case PESTLE_F64:
      memcpy(to, &d, 8);
      break;
    default:
      memcpy(to, &bits, size);
  }
}

static int value_of(int32_t rank, size_t at, pestle_dtype_t dtype) {
  unsigned mixed = (unsigned)(rank + 1) * 7919u + (unsigned)at * 104729u;
  return (int)(mixed >> 3) % (dtype == PESTLE_I1 ? 2 : 3);
}

static int combined(const int32_t* ranks, int n, size_t at,
                    pestle_dtype_t dtype, int reduction) {
  int value = value_of(ranks[0], at, dtype);
  for (int i = 1; i < n; ++i) {
    int next = value_of(ranks[i], at, dtype);
    bool flag = dtype == PESTLE_I1;
    value =
        reduction == PESTLE_REDUCTION_SUM ? (flag ? value | next : value + next)
        : reduction == PESTLE_REDUCTION_PRODUCT ? value * next
        : reduction == PESTLE_REDUCTION_MINIMUM ? (value < next ? value : next)
        : reduction == PESTLE_REDUCTION_MAXIMUM ? (value > next ? value : next)
        : reduction == PESTLE_REDUCTION_AND     ? (value & next)
                                                : (value | next);
  }
  return value;
}

// --- One collective ---

static void sizes(rank_t* r) {
  size_t each =
      (size_t)r->op.count * pestle_dtype_size((pestle_dtype_t)r->op.dtype);
  size_t n = r->op.rank_count;
  bool many = r->op.kind == PESTLE_COLLECTIVE_ALL_TO_ALL;
  r->send_bytes =
      many || r->op.kind == PESTLE_COLLECTIVE_REDUCE_SCATTER ? each * n : each;
  r->receive_bytes =
      many || r->op.kind == PESTLE_COLLECTIVE_ALL_GATHER ? each * n : each;
}

static void run_op(rank_t* r) {
  const pestle_device_api_t* d = gpu->device;
  void *send, *receive;
  sizes(r);
  pestle_dtype_t dtype = (pestle_dtype_t)r->op.dtype;
  size_t count = r->send_bytes / pestle_dtype_size(dtype);
  unsigned char* from = malloc(r->send_bytes + 1);
  r->host = malloc(r->receive_bytes + 1);
  memset(r->host, 0x5a, r->receive_bytes);
  for (size_t i = 0; i < count; ++i)
    put(dtype, from, i, value_of(r->rank, i, dtype));
  assert_ok(d->allocate(gpu->self, r->rank, r->send_bytes + 1, &send));
  assert_ok(d->allocate(gpu->self, r->rank, r->receive_bytes + 1, &receive));
  assert_ok(
      d->queue_from_host(gpu->self, r->stream, from, send, r->send_bytes));
  r->op.struct_size = sizeof r->op;
  r->op.send = send;
  r->op.receive = receive;
  r->op.sequence = ++r->sequence;
  r->op.name = "a test";
  r->status =
      r->comm ? api()->enqueue(gpu->self, r->comm, r->stream, &r->op, 1) : NULL;
  if (!r->status) {
    assert_ok(d->queue_to_host(gpu->self, r->stream, receive, r->host,
                               r->receive_bytes));
  }
  assert_ok(d->stream_synchronize(gpu->self, r->stream));
  d->deallocate(gpu->self, r->rank, send, r->send_bytes + 1);
  d->deallocate(gpu->self, r->rank, receive, r->receive_bytes + 1);
  free(from);
}

static int expected(const rank_t* r, const int32_t* members, int n, int place,
                    size_t at) {
  const pestle_collective_t* op = &r->op;
  pestle_dtype_t dtype = (pestle_dtype_t)op->dtype;
  size_t count = (size_t)op->count;
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      return combined(members, n, at, dtype, op->reduction);
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return combined(members, n, at + count * (size_t)place, dtype,
                      op->reduction);
    case PESTLE_COLLECTIVE_ALL_GATHER:
      return value_of(members[at / count], at % count, dtype);
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      return value_of(members[at / count], at % count + count * (size_t)place,
                      dtype);
    case PESTLE_COLLECTIVE_BROADCAST:
      return n ? value_of(members[0], at, dtype) : 0;
    case PESTLE_COLLECTIVE_PERMUTE:
      return op->source < 0 ? 0 : value_of(op->source, at, dtype);
  }
  return -1;
}

static void check(rank_t* r, const int32_t* members, int n, int place) {
  pestle_dtype_t dtype = (pestle_dtype_t)r->op.dtype;
  size_t size = pestle_dtype_size(dtype);
  unsigned char want[16];
  assert_ok(r->status);
  for (size_t i = 0; i < r->receive_bytes / size; ++i) {
    put(dtype, want, 0, expected(r, members, n, place, i));
    if (!memcmp(want, r->host + i * size, size)) continue;
    print_error("kind %d, %s, reduction %d, count %d, rank %d, element %zu\n",
                (int)r->op.kind, pestle_dtype_info(dtype)->name,
                (int)r->op.reduction, (int)r->op.count, (int)r->rank, i);
    fail();
  }
  free(r->host);
}

static const pestle_dtype_t dtypes[] = {
    PESTLE_F32, PESTLE_F64, PESTLE_F16, PESTLE_BF16, PESTLE_I1,
    PESTLE_I8,  PESTLE_U8,  PESTLE_I16, PESTLE_U16,  PESTLE_I32,
    PESTLE_U32, PESTLE_I64, PESTLE_U64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool has(pestle_dtype_t dtype, int reduction) {
  bool is_float = dtype == PESTLE_F32 || dtype == PESTLE_F64 ||
                  dtype == PESTLE_F16 || dtype == PESTLE_BF16;
  bool logic =
      reduction == PESTLE_REDUCTION_AND || reduction == PESTLE_REDUCTION_OR;
  if (dtype == PESTLE_I1) return true;
  if (dtype == PESTLE_I16 || dtype == PESTLE_U16 || logic) return false;
  return !is_float || reduction <= PESTLE_REDUCTION_PRODUCT;
}

// --- Tests ---

static void reductions(void** state) {
  static const uint64_t counts[] = {1, 100, MOST};
  rank_t ranks[RANKS];
  (void)state;
  open_ranks(ranks);
  for (int kind = 0; kind < 2; ++kind) {
    for (size_t t = 0; t < DTYPES; ++t) {
      for (int by = 0; by <= PESTLE_REDUCTION_OR; ++by) {
        for (int i = 0; i < RANKS; ++i) {
          ranks[i].op = (pestle_collective_t){
              .kind = kind ? PESTLE_COLLECTIVE_REDUCE_SCATTER
                           : PESTLE_COLLECTIVE_ALL_REDUCE,
              .reduction = by,
              .dtype = (int32_t)dtypes[t],
              .rank_count = RANKS,
              .ranks = everybody,
              .count = counts[(t + (size_t)by) % 3]};
        }
        on_all(ranks, run_op);
        for (int i = 0; i < RANKS; ++i) {
          if (has(dtypes[t], by)) {
            check(&ranks[i], everybody, RANKS, i);
            continue;
          }
          assert_error(ranks[i].status, UNSUPPORTED,
                       "a test: NCCL does not combine");
          free(ranks[i].host);
        }
      }
    }
  }
  close_ranks(ranks);
}

static void moves(void** state) {
  static const uint64_t counts[] = {0, 1, MOST};
  static const int kinds[] = {
      PESTLE_COLLECTIVE_ALL_GATHER, PESTLE_COLLECTIVE_ALL_TO_ALL,
      PESTLE_COLLECTIVE_BROADCAST, PESTLE_COLLECTIVE_PERMUTE};
  rank_t ranks[RANKS];
  (void)state;
  open_ranks(ranks);
  for (size_t k = 0; k < 4; ++k) {
    for (size_t t = 0; t < DTYPES; ++t) {
      for (int i = 0; i < RANKS; ++i) {
        bool permute = kinds[k] == PESTLE_COLLECTIVE_PERMUTE;
        // 0 -> 2, 2 -> 1, 3 -> 3: 0 gets nothing, 1 sends nothing.
        static const int32_t source[] = {-1, 2, 0, 3}, target[] = {2, -1, 1, 3};
        ranks[i].op = (pestle_collective_t){.kind = kinds[k],
                                            .dtype = (int32_t)dtypes[t],
                                            .rank_count = permute ? 0 : RANKS,
                                            .ranks = everybody,
                                            .source = source[i],
                                            .target = target[i],
                                            .count = counts[t % 3]};
      }
      on_all(ranks, run_op);
      for (int i = 0; i < RANKS; ++i)
        check(&ranks[i], everybody, RANKS, i);
    }
  }
  close_ranks(ranks);
}

// Rows {2, 0} and {3}: 1 is in none.
static const int32_t pair[2] = {2, 0}, single[1] = {3};

static void divide(rank_t* r) {
  static const int32_t color[] = {0, -1, 0, 1}, key[] = {1, 0, 0, 0};
  r->status =
      api()->split(gpu->self, r->whole, color[r->rank], key[r->rank], &r->comm);
}

static void groups(void** state) {
  rank_t ranks[RANKS];
  (void)state;
  open_ranks(ranks);
  on_all(ranks, divide);
  assert_null(ranks[1].comm);
  for (int kind = 0; kind <= PESTLE_COLLECTIVE_BROADCAST; ++kind) {
    if (kind == PESTLE_COLLECTIVE_PERMUTE) continue;
    for (int i = 0; i < RANKS; ++i) {
      assert_ok(ranks[i].status);
      ranks[i].op = (pestle_collective_t){.kind = kind,
                                          .dtype = PESTLE_I32,
                                          .rank_count = i == 1   ? 0
                                                        : i == 3 ? 1
                                                                 : 2,
                                          .ranks = i == 3 ? single : pair,
                                          .count = 100};
    }
    on_all(ranks, run_op);
    check(&ranks[0], pair, 2, 1);
    check(&ranks[2], pair, 2, 0);
    check(&ranks[3], single, 1, 0);
    free(ranks[1].host);
  }
  for (int i = 0; i < RANKS; ++i)
    api()->destroy(gpu->self, ranks[i].comm);
  close_ranks(ranks);
}

// --- How far it is, and faults ---

static void moment(void) {
  static const struct timespec pause = {0, 2000000};
  (void)nanosleep(&pause, NULL);
}

static uint64_t begun_of(rank_t* r, uint64_t* done) {
  uint64_t begun;
  api()->progress(gpu->self, r->comm, &begun, done);
  return begun;
}

// Collectives 7, 8, 9 one right behind the other; 9 never ends on rank 2.
static void three(rank_t* r) {
  const pestle_device_api_t* d = gpu->device;
  void *send, *receive;
  assert_ok(d->allocate(gpu->self, r->rank, 400, &send));
  assert_ok(d->allocate(gpu->self, r->rank, 400, &receive));
  r->op = (pestle_collective_t){.struct_size = sizeof r->op,
                                .dtype = PESTLE_F32,
                                .rank_count = RANKS,
                                .ranks = everybody,
                                .send = send,
                                .receive = receive,
                                .count = 100,
                                .name = "a test"};
  for (r->op.sequence = 7; r->op.sequence < 10; ++r->op.sequence)
    assert_ok(api()->enqueue(gpu->self, r->comm, r->stream, &r->op, 1));
  (void)pthread_barrier_wait(&barrier);
  r->status = d->stream_synchronize(gpu->self, r->stream);
  d->deallocate(gpu->self, r->rank, send, 400);
  d->deallocate(gpu->self, r->rank, receive, 400);
}

static void enqueue_sum(rank_t* r, void* data, uint64_t sequence) {
  r->op = (pestle_collective_t){.struct_size = sizeof r->op,
                                .sequence = sequence,
                                .dtype = PESTLE_F32,
                                .rank_count = RANKS,
                                .ranks = everybody,
                                .send = data,
                                .receive = data,
                                .count = 100,
                                .name = "a test"};
  assert_ok(api()->enqueue(gpu->self, r->comm, r->stream, &r->op, 1));
}

// A sum in place, then two of a recording that is launched three times.
static void record_and_launch(rank_t* r) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_graph_t* graph;
  uint64_t done;
  float host[100];
  void* data;
  for (int i = 0; i < 100; ++i)
    host[i] = 1.0f;
  assert_ok(d->allocate(gpu->self, r->rank, sizeof host, &data));
  assert_ok(d->queue_from_host(gpu->self, r->stream, host, data, sizeof host));
  enqueue_sum(r, data, 5);
  assert_ok(d->stream_synchronize(gpu->self, r->stream));
  assert_ok(d->graph_begin(gpu->self, r->stream));
  assert_ok(
      api()->record(gpu->self, r->comm, r->stream, PESTLE_COMM_RECORDS, 5));
  enqueue_sum(r, data, 6);
  enqueue_sum(r, data, 7);
  assert_ok(d->graph_end(gpu->self, r->stream, &graph));
  assert_int_equal(begun_of(r, &done), 5);
  for (uint64_t at = 5; at < 17; at += 4) {
    assert_ok(
        api()->record(gpu->self, r->comm, r->stream, PESTLE_COMM_LAUNCHES, at));
    assert_ok(d->graph_launch(gpu->self, graph, r->stream));
    assert_ok(api()->record(gpu->self, r->comm, r->stream, PESTLE_COMM_LAUNCHED,
                            at + 2));
    enqueue_sum(r, data, at + 3);
    enqueue_sum(r, data, at + 4);
    assert_ok(d->stream_synchronize(gpu->self, r->stream));
    assert_int_equal(begun_of(r, &done), at + 4);
    assert_int_equal(done, at + 4);
  }
  assert_ok(d->queue_to_host(gpu->self, r->stream, data, host, sizeof host));
  assert_ok(d->stream_synchronize(gpu->self, r->stream));
  for (int i = 0; i < 100; ++i)
    assert_true(host[i] == 67108864.0f);  // 4^13
  d->graph_destroy(gpu->self, graph);
  d->deallocate(gpu->self, r->rank, data, sizeof host);
}

static void recordings(void** state) {
  rank_t ranks[RANKS];
  (void)state;
  open_ranks(ranks);
  on_all(ranks, record_and_launch);
  close_ranks(ranks);
}

// A sum that rank 3 comes to when what the others have queued behind it is done.
static void sum_beside(rank_t* r) {
  const pestle_device_api_t* d = gpu->device;
  uint64_t done;
  float host[100], copied[100] = {0};
  void *data, *other;
  for (int i = 0; i < 100; ++i)
    host[i] = 1.0f;
  assert_ok(d->allocate(gpu->self, r->rank, sizeof host, &data));
  assert_ok(d->allocate(gpu->self, r->rank, sizeof host, &other));
  assert_ok(d->queue_from_host(gpu->self, r->stream, host, data, sizeof host));
  assert_ok(d->queue_from_host(gpu->self, r->stream, host, other, sizeof host));
  assert_ok(d->stream_synchronize(gpu->self, r->stream));
  r->op = (pestle_collective_t){.struct_size = sizeof r->op,
                                .sequence = 1,
                                .dtype = PESTLE_F32,
                                .rank_count = RANKS,
                                .ranks = everybody,
                                .send = data,
                                .receive = data,
                                .count = 100,
                                .name = "a test"};
  if (r->rank == 3) (void)pthread_barrier_wait(&barrier);
  assert_ok(api()->enqueue_beside(gpu->self, r->comm, r->stream, &r->op, 1));
  if (r->rank != 3) {
    assert_ok(
        d->queue_to_host(gpu->self, r->stream, other, copied, sizeof host));
    assert_ok(d->stream_synchronize(gpu->self, r->stream));
    assert_true(copied[99] == 1.0f);
    while (begun_of(r, &done) < 1)
      moment();
    assert_int_equal(done, 0);
    (void)pthread_barrier_wait(&barrier);
  }
  assert_ok(api()->wait_beside(gpu->self, r->comm, r->stream, 1));
  assert_ok(d->queue_to_host(gpu->self, r->stream, data, host, sizeof host));
  assert_ok(d->stream_synchronize(gpu->self, r->stream));
  assert_true(host[0] == 4.0f && host[99] == 4.0f);
  assert_int_equal(begun_of(r, &done), 1);
  assert_int_equal(done, 1);
  d->deallocate(gpu->self, r->rank, data, sizeof host);
  d->deallocate(gpu->self, r->rank, other, sizeof host);
}

static void beside(void** state) {
  rank_t ranks[RANKS];
  (void)state;
  open_ranks(ranks);
  (void)pthread_barrier_init(&barrier, NULL, RANKS);
  on_all(ranks, sum_beside);
  (void)pthread_barrier_destroy(&barrier);
  close_ranks(ranks);
}

static void start(rank_t ranks[RANKS], act_fn_t act) {
  for (int i = 0; i < RANKS; ++i) {
    ranks[i].act = act;
    assert_int_equal(
        pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
  }
}

static void hangs(void** state) {
  rank_t ranks[RANKS];
  uint64_t done = 0;
  (void)state;
  setenv("FAKE_NCCL", "2:hang:3", 1);
  open_ranks(ranks);
  (void)pthread_barrier_init(&barrier, NULL, RANKS + 1);
  start(ranks, three);
  (void)pthread_barrier_wait(&barrier);
  for (int i = 0; i < RANKS; ++i) {
    while (begun_of(&ranks[i], &done) < 9)
      moment();
    assert_int_equal(begun_of(&ranks[i], &done), 9);
    assert_int_equal(done, 8);
    assert_ok(api()->poll(gpu->self, ranks[i].comm));
  }
  for (int i = 0; i < RANKS; ++i)
    api()->abort(gpu->self, ranks[i].comm, "rank 2 is late");
  for (int i = 0; i < RANKS; ++i) {
    (void)pthread_join(ranks[i].thread, NULL);
    assert_ok(ranks[i].status);  // the stream has come to its end
    assert_error(api()->poll(gpu->self, ranks[i].comm), UNAVAILABLE,
                 "rank 2 is late");
    ranks[i].op.sequence = 10;
    assert_error(api()->enqueue(gpu->self, ranks[i].comm, ranks[i].stream,
                                &ranks[i].op, 1),
                 UNAVAILABLE, "rank 2 is late");
    api()->abort(gpu->self, ranks[i].comm, "once more");
  }
  (void)pthread_barrier_destroy(&barrier);
  close_ranks(ranks);
  unsetenv("FAKE_NCCL");
}

static void says_why(void** state) {
  rank_t ranks[RANKS];
  (void)state;
  setenv("FAKE_NCCL", "1:async:3", 1);
  open_ranks(ranks);
  (void)pthread_barrier_init(&barrier, NULL, RANKS + 1);
  start(ranks, three);
  (void)pthread_barrier_wait(&barrier);
  pestle_status_t status = NULL;
  while (!status) {
    status = api()->poll(gpu->self, ranks[1].comm);
    moment();
  }
  assert_error(status, UNAVAILABLE,
               "nccl: a rank's collectives: remote process exited or there was "
               "a network error: a fault that the test has asked for");
  for (int i = 0; i < RANKS; ++i)
    api()->abort(gpu->self, ranks[i].comm, "the end");
  for (int i = 0; i < RANKS; ++i)
    (void)pthread_join(ranks[i].thread, NULL);
  (void)pthread_barrier_destroy(&barrier);
  close_ranks(ranks);
  unsetenv("FAKE_NCCL");
}

static void not_all_come(void** state) {
  rank_t ranks[RANKS];
  size_t size = sizeof id;
  (void)state;
  memset(ranks, 0, sizeof ranks);
  setenv("FAKE_NCCL", "3:init:0", 1);
  deadline_ms = 300;
  assert_ok(api()->id(gpu->self, id, &size));
  on_all(ranks, join);
  for (int i = 0; i < RANKS; ++i) {
    assert_null(ranks[i].whole);
    assert_error(ranks[i].status, DEADLINE_EXCEEDED,
                 "not all ranks have come to the making of a communicator");
  }
  deadline_ms = DEADLINE_MS;
  unsetenv("FAKE_NCCL");
}

static void wrong_calls(void** state) {
  rank_t ranks[RANKS];
  size_t size = 4;
  pestle_device_graph_t* graph;
  (void)state;
  assert_error(api()->id(gpu->self, id, &size), RESOURCE_EXHAUSTED,
               "128 bytes");
  open_ranks(ranks);
  ranks[0].op = (pestle_collective_t){.struct_size = sizeof ranks[0].op,
                                      .kind = 17,
                                      .dtype = PESTLE_F32,
                                      .sequence = 1};
  assert_error(api()->enqueue(gpu->self, ranks[0].comm, ranks[0].stream,
                              &ranks[0].op, 1),
               UNSUPPORTED, "collective 17 is of no kind");
  ranks[0].op.kind = PESTLE_COLLECTIVE_ALL_GATHER;
  assert_error(api()->enqueue(gpu->self, ranks[0].comm, ranks[1].stream,
                              &ranks[0].op, 1),
               INVALID_ARGUMENT, "the stream is of device 1");
  assert_ok(gpu->device->graph_begin(gpu->self, ranks[0].stream));
  assert_error(api()->enqueue(gpu->self, ranks[0].comm, ranks[0].stream,
                              &ranks[0].op, 1),
               UNSUPPORTED, "a recording cannot hold collectives");
  assert_ok(gpu->device->graph_end(gpu->self, ranks[0].stream, &graph));
  gpu->device->graph_destroy(gpu->self, graph);
  close_ranks(ranks);
}

// Multicast is off, and nothing of NCCL is left.
static int nothing_is_left(void** state) {
  const char* (*nvls)(void);
  int (*live)(void);
  fake_cuda_faults_fn_t faults;
  void* library = dlopen("libnccl.so.2", RTLD_NOW);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&nvls = dlsym(library, "fake_nccl_nvls");
  *(void**)&live = dlsym(library, "fake_nccl_live");
  *(void**)&faults = dlsym(driver, "fake_cuda_faults");
  assert_string_equal(nvls(), "0");
  assert_int_equal(live(), 0);
  assert_int_equal(faults(), 0);
  return gpu_teardown(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions),  cmocka_unit_test(moves),
      cmocka_unit_test(groups),      cmocka_unit_test(recordings),
      cmocka_unit_test(beside),      cmocka_unit_test(hangs),
      cmocka_unit_test(says_why),    cmocka_unit_test(not_all_come),
      cmocka_unit_test(wrong_calls),
  };
  void* library = dlopen("libnccl.so.2", RTLD_NOW);
  (void)gpu_most_arguments;
  if (!library || !dlsym(library, "fake_nccl_live")) {
    print_message("skipped: libnccl.so.2 is not NCCL's stand-in\n");
    return 77;
  }
  setenv("FAKE_CUDA_DEVICES", "4", 1);
  unsetenv("NCCL_NVLS_ENABLE");
  gpu_setup("cuda");
  return cmocka_run_group_tests(tests, NULL, nothing_is_left);
}
