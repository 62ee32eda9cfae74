// SPDX-License-Identifier: Apache-2.0
// The transports between threads and between processes, whose ranks are threads here,
// that meet by sockets or by shared memory: all kinds, types, reductions and groups
// against what they mean, the same bits each time, and failures that reach everybody.
#include "runtime/world.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/thread.h"
#include "pestle/context.h"
#include "runtime/combine.h"
#include "runtime/process_transport.h"
#include "runtime/socket.h"
#include "test.h"

enum { MOST = 16 };

typedef enum way_t { THREADS, SOCKETS, MEMORY, WAYS } way_t;

typedef struct job_t job_t;
typedef struct member_t {
  job_t* job;
  pestle_world_t* world;
  pestle_thread_t thread;
  pestle_status_t status;
  pestle_collective_t op;
} member_t;
struct job_t {
  way_t way;
  uint16_t port;
  pestle_context_t* context;
  int size;
  int64_t deadline_ms;
  // Does what a rank does; NULL: its op, |times| times.
  pestle_status_t (*act)(member_t* m);
  int times;
  member_t members[MOST];
};

static pestle_status_t repeat(member_t* m) {
  for (int i = 0; i < m->job->times; ++i) {
    m->op.sequence = pestle_world_next(m->world);
    pestle_status_t status = pestle_world_enqueue(m->world, &m->op, 1, false);
    if (status) return status;
  }
  return NULL;
}

static const char secret[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static pestle_status_t join_world(member_t* m) {
  char address[64];
  const job_t* job = m->job;
  (void)snprintf(address, sizeof(address), "tcp://127.0.0.1:%u",
                 (unsigned)job->port);
  pestle_world_options_t options = {
      .struct_size = sizeof(options),
      .deadline_ms = job->deadline_ms,
      .create_deadline_ms = 60000,
      .rank = (int32_t)(m - job->members),
      .size = job->size,
      .address = address,
      .secret = secret,
      .flags = job->way == MEMORY ? 0 : PESTLE_WORLD_NO_SHARED_MEMORY};
  return pestle_world_create(job->context, &options, &m->world);
}

static void run_member(void* self) {
  member_t* m = self;
  m->status = m->job->way == THREADS ? NULL : join_world(m);
  if (!m->status) m->status = m->job->act ? m->job->act(m) : repeat(m);
  if (m->status) pestle_world_abort(m->world, m->status);
}

// One that is free now.
static uint16_t free_port(void) {
  char host[PESTLE_HOST_SIZE];
  uint16_t port;
  pestle_socket_t socket;
  assert_ok(pestle_socket_listen("127.0.0.1", 0, &socket));
  pestle_socket_local(socket, host, &port);
  pestle_socket_close(socket);
  return port;
}

// The statuses stay with the members.
static void run_job(pestle_context_t* context, job_t* job) {
  pestle_world_t* ranks[MOST] = {NULL};
  pestle_world_options_t options = {.struct_size = sizeof(options),
                                    .deadline_ms = job->deadline_ms};
  job->context = context;
  if (job->way == THREADS) {
    assert_ok(pestle_world_create_local(context, job->size, &options, ranks));
  } else {
    job->port = free_port();
  }
  for (int i = 0; i < job->size; ++i) {
    member_t* m = &job->members[i];
    m->job = job;
    m->world = ranks[i];
    m->status = NULL;
    assert_ok(pestle_thread_start(run_member, m, "rank", &m->thread));
  }
  for (int i = 0; i < job->size; ++i) {
    pestle_world_t* const* world = &job->members[i].world;
    pestle_thread_join(&job->members[i].thread);
    if (!*world) continue;
    assert_int_equal(pestle_world_rank(*world), i);
    assert_int_equal(pestle_world_size(*world), job->size);
    if (job->way != THREADS && job->size > 1) {
      assert_int_equal(pestle_process_comm_shares((*world)->comm),
                       job->way == MEMORY);
    }
  }
}

// Rank 0 goes last: it waits for the others.
static void drop_job(job_t* job) {
  for (int i = job->size; i-- > 0;) {
    pestle_status_release(job->members[i].status);
    pestle_world_release(job->members[i].world);
  }
}

static pestle_context_t* make_context(void) {
  pestle_context_t* context;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .cache_dir = "", .threads = 1};
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

// --- What is right ---

static uint64_t random_state = 1;
static uint32_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}

// Small whole numbers, which every type has and sums of 16 too.
static void fill(pestle_dtype_t dtype, unsigned char* to, size_t count) {
  size_t size = pestle_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random_bits() % (dtype == PESTLE_I1 ? 2 : 3);
    if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
      bits = dtype == PESTLE_F64 || dtype == PESTLE_F32
                 ? 0
                 : pestle_float_encode(dtype, (double)bits);
    if (dtype == PESTLE_F64) {
      double value = ldexp((double)random_bits(), -20) - 512;
      memcpy(&bits, &value, 8);
    }
    if (dtype == PESTLE_F32) {
      float value = (float)ldexp((double)random_bits(), -20) - 512;
      memcpy(&bits, &value, 4);
    }
    memcpy(to + i * size, &bits, size);
  }
}

typedef struct case_t {
  way_t way;
  int kind, reduction, size, group;  // group: members of each
  pestle_dtype_t dtype;
  size_t count;
} case_t;

// Member j of group g is rank g + j * groups, backwards where g is odd.
static int32_t rank_of(const case_t* c, int group, int place) {
  int groups = c->size / c->group;
  if (group & 1) place = c->group - 1 - place;
  return group + place * groups;
}

typedef struct room_t {
  unsigned char *send[MOST], *receive[MOST], *want[MOST];
  int32_t ranks[MOST][MOST];  // of each group
} room_t;

static size_t send_count(const case_t* c) {
  bool parts = c->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER ||
               c->kind == PESTLE_COLLECTIVE_ALL_TO_ALL;
  return c->count * (size_t)(parts ? c->group : 1);
}
static size_t receive_count(const case_t* c) {
  bool parts = c->kind == PESTLE_COLLECTIVE_ALL_GATHER ||
               c->kind == PESTLE_COLLECTIVE_ALL_TO_ALL;
  return c->count * (size_t)(parts ? c->group : 1);
}

// By one thread, from what the kinds mean.
static void compute(const case_t* c, room_t* r, int group, int place) {
  size_t size = pestle_dtype_size(c->dtype), bytes = c->count * size;
  const int32_t* ranks = r->ranks[group];
  unsigned char* want = r->want[ranks[place]];
  const void* in[MOST];
  size_t offset =
      c->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER ? bytes * (size_t)place : 0;
  for (int k = 0; k < c->group; ++k)
    in[k] = r->send[ranks[k]] + offset;
  switch ((pestle_collective_kind_t)c->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      // One element at a time: how arrays are cut changes nothing.
      for (size_t i = 0; i < c->count; ++i) {
        const void* one[MOST];
        for (int k = 0; k < c->group; ++k)
          one[k] = (const char*)in[k] + i * size;
        assert_true(pestle_combine((pestle_reduction_t)c->reduction, c->dtype,
                                   want + i * size, one, (size_t)c->group, 1));
      }
      return;
    case PESTLE_COLLECTIVE_ALL_GATHER:
      for (int k = 0; k < c->group; ++k)
        memcpy(want + bytes * (size_t)k, in[k], bytes);
      return;
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      for (int k = 0; k < c->group; ++k)
        memcpy(want + bytes * (size_t)k,
               (const char*)in[k] + bytes * (size_t)place, bytes);
      return;
    case PESTLE_COLLECTIVE_PERMUTE:
      // To the next; the first gets nothing.
      memset(want, 0, bytes);
      if (place) memcpy(want, in[place - 1], bytes);
      return;
    case PESTLE_COLLECTIVE_BROADCAST:
      memcpy(want, in[0], bytes);
      return;
  }
}

static void run_case(pestle_context_t* context, const case_t* c, int times) {
  job_t job = {.way = c->way, .size = c->size, .times = times};
  room_t r;
  size_t size = pestle_dtype_size(c->dtype);
  size_t sent = send_count(c) * size, got = receive_count(c) * size;
  for (int i = 0; i < c->size; ++i) {
    r.send[i] = malloc(sent + 1);
    r.receive[i] = malloc(got + 1);
    r.want[i] = malloc(got + 1);
    fill(c->dtype, r.send[i], send_count(c));
    memset(r.receive[i], 0xA5, got + 1);
  }
  for (int g = 0; g < c->size / c->group; ++g) {
    for (int p = 0; p < c->group; ++p)
      r.ranks[g][p] = rank_of(c, g, p);
    for (int p = 0; p < c->group; ++p) {
      int32_t rank = r.ranks[g][p];
      bool permutes = c->kind == PESTLE_COLLECTIVE_PERMUTE;
      compute(c, &r, g, p);
      job.members[rank].op = (pestle_collective_t){
          .struct_size = sizeof(pestle_collective_t),
          .kind = c->kind,
          .reduction = c->reduction,
          .dtype = (int32_t)c->dtype,
          .rank_count = permutes ? 0 : (uint32_t)c->group,
          .ranks = r.ranks[g],
          .source = permutes && p ? r.ranks[g][p - 1] : -1,
          .target = permutes && p + 1 < c->group ? r.ranks[g][p + 1] : -1,
          .send = r.send[rank],
          .receive = r.receive[rank],
          .count = c->count,
          .name = "case"};
    }
  }
  run_job(context, &job);
  for (int i = 0; i < c->size; ++i) {
    assert_ok(job.members[i].status);
    if (memcmp(r.receive[i], r.want[i], got)) {
      fail_msg(
          "way %d, kind %d, reduction %d, %s, %d ranks in groups of %d, %zu "
          "elements: rank %d is wrong",
          c->way, c->kind, c->reduction, pestle_dtype_info(c->dtype)->name,
          c->size, c->group, c->count, i);
    }
    assert_int_equal(r.receive[i][got], 0xA5);
    free(r.send[i]);
    free(r.receive[i]);
    free(r.want[i]);
  }
  drop_job(&job);
}

static void do_all_kinds(way_t way) {
  static const struct {
    int size, group;
  } worlds[] = {{2, 2}, {3, 3}, {4, 2}, {5, 1}, {8, 4}, {8, 8}, {16, 16}};
  // Above some thousand bytes the members share the work out.
  static const size_t counts[] = {0, 1, 77, 4097, 20000, 300007};
  pestle_context_t* context = make_context();
  for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); ++w) {
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); ++n) {
      if (counts[n] > 20000 && worlds[w].size > 4) continue;
      for (int kind = 0; kind <= PESTLE_COLLECTIVE_BROADCAST; ++kind) {
        run_case(context,
                 &(case_t){way, kind, PESTLE_REDUCTION_SUM, worlds[w].size,
                           worlds[w].group, PESTLE_F32, counts[n]},
                 2);
      }
    }
  }
  pestle_context_release(context);
}

static void does_all_kinds(void** state) {
  (void)state;
  do_all_kinds(THREADS);
}
static void does_all_kinds_by_sockets(void** state) {
  (void)state;
  do_all_kinds(SOCKETS);
}
static void does_all_kinds_by_memory(void** state) {
  (void)state;
  do_all_kinds(MEMORY);
}

static void combines_all_types(void** state) {
  (void)state;
  static const pestle_dtype_t dtypes[] = {
      PESTLE_I1,  PESTLE_I4,  PESTLE_U4,   PESTLE_I8,       PESTLE_U8,
      PESTLE_I16, PESTLE_U16, PESTLE_I32,  PESTLE_U32,      PESTLE_I64,
      PESTLE_U64, PESTLE_F16, PESTLE_BF16, PESTLE_F8E4M3FN, PESTLE_F8E5M2,
      PESTLE_F32, PESTLE_F64};
  pestle_context_t* context = make_context();
  for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); ++d) {
    for (int op = 0; op <= PESTLE_REDUCTION_OR; ++op) {
      if (!pestle_combines((pestle_reduction_t)op, dtypes[d])) continue;
      for (int way = 0; way < WAYS; ++way) {
        run_case(context,
                 &(case_t){(way_t)way, PESTLE_COLLECTIVE_ALL_REDUCE, op, 3, 3,
                           dtypes[d], 20011},
                 1);
        run_case(context,
                 &(case_t){(way_t)way, PESTLE_COLLECTIVE_REDUCE_SCATTER, op, 4,
                           2, dtypes[d], 301},
                 1);
      }
    }
  }
  pestle_context_release(context);
}

// One element each, worked out by hand.
#define assert_combines(T, dtype, op, want, ...)                             \
  do {                                                                       \
    const T terms_[] = {__VA_ARGS__};                                        \
    const void* in_[sizeof(terms_) / sizeof(T)];                             \
    T out_, want_ = (want);                                                  \
    for (size_t i_ = 0; i_ < sizeof(terms_) / sizeof(T); ++i_)               \
      in_[i_] = &terms_[i_];                                                 \
    assert_true(pestle_combine(PESTLE_REDUCTION_##op, PESTLE_##dtype, &out_, \
                               in_, sizeof(terms_) / sizeof(T), 1));         \
    assert_memory_equal(&out_, &want_, sizeof(T));                           \
  } while (0)

static void means_what_it_says(void** state) {
  (void)state;
  assert_combines(int32_t, I32, SUM, INT32_MIN, INT32_MAX, 1);
  assert_combines(int16_t, I16, PRODUCT, (int16_t)(uint16_t)(32767u * 32767u),
                  32767, 32767);
  assert_combines(uint16_t, U16, PRODUCT, 1, 65535, 65535);
  assert_combines(int8_t, I8, MINIMUM, -128, 127, -128, 0);
  assert_combines(uint8_t, U8, MAXIMUM, 200, 100, 200, 127);
  assert_combines(uint8_t, I1, SUM, 1, 1, 1, 0);
  assert_combines(uint8_t, I1, AND, 0, 1, 1, 0);
  assert_combines(uint8_t, I4, SUM, 0xF9, 7, 2);  // 9 is -7
  assert_combines(uint32_t, U32, OR, 7, 1, 2, 4);
  // In their order: (1e30 - 1e30) + 1 is 1, and 1e30 + (1 - 1e30) is not.
  assert_combines(float, F32, SUM, 1.0f, 1e30f, -1e30f, 1.0f);
  assert_combines(float, F32, SUM, 0.0f, 1e30f, 1.0f, -1e30f);
  assert_combines(float, F32, MAXIMUM, 0.0f, -0.0f, 0.0f);
  assert_combines(float, F32, MINIMUM, -0.0f, 0.0f, -0.0f);
  // Rounded once: 1 + 2^-8 + 2^-8 in bf16.
  assert_combines(uint16_t, BF16, SUM, 0x3F81, 0x3F80, 0x3B80, 0x3B80);
  const float nan_terms[] = {1.0f, NAN, 2.0f};
  const void* in[] = {&nan_terms[0], &nan_terms[1], &nan_terms[2]};
  float out;
  assert_true(
      pestle_combine(PESTLE_REDUCTION_MINIMUM, PESTLE_F32, &out, in, 3, 1));
  assert_true(isnan(out));
  assert_false(
      pestle_combine(PESTLE_REDUCTION_AND, PESTLE_F32, &out, in, 3, 1));
  assert_false(pestle_combines(PESTLE_REDUCTION_SUM, PESTLE_C64));
}

// Of n ranks and S bytes an all_reduce moves 2 (n - 1) / n S, the others (n - 1) / n S.
static void counts_bytes(void** state) {
  (void)state;
  enum { N = 4, COUNT = 1 << 16 };
  pestle_context_t* context = make_context();
  static float send[N][COUNT], receive[N][COUNT];
  static const int32_t ranks[N] = {0, 1, 2, 3};
  for (int way = 0; way < WAYS; ++way) {
    for (int kind = 0; kind <= PESTLE_COLLECTIVE_ALL_TO_ALL; ++kind) {
      job_t job = {.way = (way_t)way, .size = N, .times = 1};
      bool all = kind == PESTLE_COLLECTIVE_ALL_REDUCE;
      for (int i = 0; i < N; ++i) {
        job.members[i].op =
            (pestle_collective_t){.kind = kind,
                                  .dtype = PESTLE_F32,
                                  .rank_count = N,
                                  .ranks = ranks,
                                  .send = send[i],
                                  .receive = receive[i],
                                  .count = (uint64_t)(COUNT / (all ? 1 : N)),
                                  .name = "case"};
      }
      run_job(context, &job);
      for (int i = 0; i < N; ++i) {
        const pestle_world_t* world = job.members[i].world;
        uint64_t want =
            (uint64_t)((all ? 2 : 1) * (N - 1)) * sizeof(send[0]) / N;
        assert_ok(job.members[i].status);
        assert_int_equal(pestle_world_bytes(world), want);
        if (way == THREADS) continue;
        assert_true(pestle_process_comm_heads(world->comm) * 1000 <= want);
      }
      drop_job(&job);
    }
  }
  pestle_context_release(context);
}

// --- Failures ---

static float number[MOST], sum[MOST];

static pestle_collective_t small_sum(int rank, int size) {
  static const int32_t all[MOST] = {0, 1, 2,  3,  4,  5,  6,  7,
                                    8, 9, 10, 11, 12, 13, 14, 15};
  return (pestle_collective_t){.dtype = PESTLE_F32,
                               .rank_count = (uint32_t)size,
                               .ranks = all,
                               .send = &number[rank],
                               .receive = &sum[rank],
                               .count = 1,
                               .name = "all_reduce of step 5"};
}

static pestle_status_t once(member_t* m) {
  m->op.sequence = pestle_world_next(m->world);
  return pestle_world_enqueue(m->world, &m->op, 1, false);
}

static pestle_status_t stay_away(member_t* m) {
  return pestle_world_rank(m->world) == 2 ? NULL : once(m);
}

// What has ended |world|, of which it may hear a moment after the others; OK: nothing
// within ten seconds.
static pestle_status_t heard(const pestle_world_t* world) {
  pestle_status_t status = NULL;
  for (int i = 0; i < 10000 && !status; ++i) {
    status = pestle_world_status(world);
    if (!status) pestle_thread_sleep_ns(1000000);
  }
  return status;
}

// One who does not come is named, and nobody hangs.
static void names_the_absent(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  for (int k = 0; k < 2 * WAYS; ++k) {
    int size = k & 1 ? 8 : 3;
    job_t job = {.way = (way_t)(k / 2),
                 .size = size,
                 .deadline_ms = k < 2 ? 50 : 1000,
                 .act = stay_away};
    int late = 0;
    for (int i = 0; i < size; ++i)
      job.members[i].op = small_sum(i, size);
    run_job(context, &job);
    for (int i = 0; i < size; ++i) {
      pestle_status_t status = job.members[i].status;
      job.members[i].status = NULL;
      if (i == 2) {
        assert_null(status);
        assert_error(heard(job.members[i].world), DEADLINE_EXCEEDED,
                     "rank 2 has not come");
        continue;
      }
      late += pestle_status_code(status) == PESTLE_STATUS_DEADLINE_EXCEEDED;
      char text[1024];
      pestle_status_format(status, text, sizeof(text));
      assert_non_null(strstr(text,
                             "rank 2 has not come to collective 1 "
                             "(all_reduce of step 5)"));
      pestle_status_release(status);
    }
    assert_true(late > 0);
    drop_job(&job);
  }
  pestle_context_release(context);
}

static pestle_status_t fail_third(member_t* m) {
  pestle_status_t status = once(m);
  if (!status) status = once(m);
  if (!status && pestle_world_rank(m->world) == 1)
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "the disk is full");
  return status ? status : once(m);
}

// A failure ends the wait of all, long before the deadline.
static void fails_together(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  for (int round = 0; round < 120; ++round) {
    job_t job = {.way = (way_t)(round < 100 ? 0 : 1 + round % 2),
                 .size = 4,
                 .deadline_ms = 600000,
                 .act = fail_third};
    for (int i = 0; i < 4; ++i)
      job.members[i].op = small_sum(i, 4);
    run_job(context, &job);
    for (int i = 0; i < 4; ++i) {
      pestle_status_t status = job.members[i].status;
      job.members[i].status = NULL;
      if (i == 1) {
        assert_error(status, RESOURCE_EXHAUSTED, "the disk is full");
      } else {
        assert_error(status, UNAVAILABLE,
                     "rank 1 has ended its world: the disk is full");
      }
      assert_code(heard(job.members[i].world), UNAVAILABLE);
    }
    drop_job(&job);
  }
  pestle_context_release(context);
}

static pestle_status_t differ(member_t* m) {
  if (pestle_world_rank(m->world) == 1) m->op.hash = 7;
  return once(m);
}

// Ranks that run different programs are told so.
static void compares_programs(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  for (int way = 0; way < WAYS; ++way) {
    job_t job = {.way = (way_t)way, .size = 2, .act = differ};
    for (int i = 0; i < 2; ++i)
      job.members[i].op = small_sum(i, 2);
    run_job(context, &job);
    int told = 0;
    for (int i = 0; i < 2; ++i) {
      told += pestle_status_code(job.members[i].status) ==
              PESTLE_STATUS_INCOMPATIBLE;
      assert_non_null(job.members[i].status);
    }
    assert_true(told > 0);
    drop_job(&job);
  }
  pestle_context_release(context);
}

static void refuses(void** state) {
  (void)state;
  pestle_world_t* ranks[2];
  pestle_context_t* context = make_context();
  pestle_world_options_t options = {.struct_size = sizeof(options),
                                    .deadline_ms = -1};
  assert_error(pestle_world_create_local(context, 0, NULL, ranks),
               INVALID_ARGUMENT, "a world of 0 ranks; expected 1 to 65536");
  assert_error(pestle_world_create_local(context, 2, &options, ranks),
               INVALID_ARGUMENT, "a deadline of -1 ms");
  assert_code(pestle_world_create_local(NULL, 2, NULL, ranks),
              INVALID_ARGUMENT);
  assert_int_equal(pestle_world_size(NULL), 0);
  assert_int_equal(pestle_world_bytes(NULL), 0);
  assert_ok(pestle_world_status(NULL));
  pestle_world_abort(NULL, NULL);
  pestle_world_retain(NULL);
  pestle_world_release(NULL);
  pestle_context_release(context);
}

// Memory that runs out at any place.
static void survives_every_failure(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_t* context;
    pestle_context_options_t options = {
        .struct_size = sizeof(options),
        .cache_dir = "",
        .threads = 1,
        .allocator = pestle_test_allocator(&memory)};
    pestle_world_t* ranks[4];
    assert_ok(pestle_context_create(&options, &context));
    size_t before = atomic_load(&memory.request_count);
    atomic_store(&memory.fail_at, before + k);
    pestle_status_t status = pestle_world_create_local(context, 4, NULL, ranks);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
      for (int i = 0; i < 4; ++i)
        assert_null(ranks[i]);
    } else {
      assert_ok(status);
      for (int i = 0; i < 4; ++i)
        pestle_world_release(ranks[i]);
    }
    pestle_context_release(context);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(means_what_it_says),
      cmocka_unit_test(does_all_kinds),
      cmocka_unit_test(does_all_kinds_by_sockets),
      cmocka_unit_test(does_all_kinds_by_memory),
      cmocka_unit_test(combines_all_types),
      cmocka_unit_test(counts_bytes),
      cmocka_unit_test(names_the_absent),
      cmocka_unit_test(fails_together),
      cmocka_unit_test(compares_programs),
      cmocka_unit_test(refuses),
      cmocka_unit_test(survives_every_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
