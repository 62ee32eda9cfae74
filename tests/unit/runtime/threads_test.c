// SPDX-License-Identifier: Apache-2.0
// Many threads on one context and executable, the pool, and fork().
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "unit/runtime/fixture.h"

// --- Pool ---

typedef struct sum_t {
  atomic_llong sum;
  pestle_context_t* context;
} sum_t;

static void add_index(void* arg, int64_t i) {
  atomic_fetch_add(&((sum_t*)arg)->sum, i + 1);
}

static void test_parallel_for(void** state) {
  (void)state;
  for (int32_t threads = 1; threads <= 8; threads *= 2) {
    pestle_context_options_t options = fixture_options();
    options.threads = threads;
    pestle_context_t* context = fixture_context(&options);
    for (int64_t count = 0; count < 200; count += 1 + count / 3) {
      sum_t sum = {.context = context};
      pestle_context_parallel_for(context, count, add_index, &sum);
      assert_int_equal(atomic_load(&sum.sum), count * (count + 1) / 2);
    }
    // Idle threads sleep; the next job wakes them.
    pestle_thread_sleep_ns(20000000);
    sum_t sum = {.context = context};
    pestle_context_parallel_for(context, 1000, add_index, &sum);
    assert_int_equal(atomic_load(&sum.sum), 500500);
    pestle_context_release(context);
  }
}

static void nested(void* arg, int64_t i) {
  sum_t* sum = arg;
  if (i % 3 == 0) pestle_thread_sleep_ns(10000);
  pestle_context_parallel_for(sum->context, 20, add_index, sum);
}

static void test_nested(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  sum_t sum = {.context = context};
  pestle_context_parallel_for(context, 100, nested, &sum);
  assert_int_equal(atomic_load(&sum.sum), 100 * 210);
  pestle_context_release(context);
}

static void submit(void* arg) {
  for (int i = 0; i < 50; ++i) {
    sum_t* sum = arg;
    pestle_context_parallel_for(sum->context, 40, add_index, sum);
  }
}

static void test_many_submitters(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  sum_t sum = {.context = context};
  enum { COUNT = 24 };  // more than the pool has slots
  static pestle_thread_t threads[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    assert_ok(pestle_thread_start(submit, &sum, "submit", &threads[i]));
  }
  for (int i = 0; i < COUNT; ++i)
    pestle_thread_join(&threads[i]);
  assert_int_equal(atomic_load(&sum.sum), COUNT * 50 * 820);
  pestle_context_release(context);
}

// A pool of the application: backwards, and it may use one thread only.
static void own_pool(void* user, int64_t count,
                     void (*task)(void* arg, int64_t index), void* arg) {
  ++*(int*)user;
  for (int64_t i = count; i-- > 0;)
    task(arg, i);
}

static void test_hook(void** state) {
  (void)state;
  int calls = 0;
  pestle_context_options_t options = fixture_options();
  options.parallel_for = own_pool;
  options.parallel_user = &calls;
  pestle_context_t* context = fixture_context(&options);
  sum_t sum = {.context = context};
  pestle_context_parallel_for(context, 100, add_index, &sum);
  assert_int_equal(atomic_load(&sum.sum), 5050);
  assert_int_equal(calls, 1);
  pestle_context_release(context);
}

// --- Runs ---

enum { ROWS = 300, WAVE = ROWS * 64 };

static pestle_executable_t* wave(pestle_context_t* context) {
  plan_writer_t* w = malloc(sizeof(*w));
  int64_t dims[] = {ROWS, 64};
  plan_begin(w, "wave");
  plan_device(w, "test", "");
  plan_input(w, "x", PESTLE_F32, 2, dims);
  plan_output(w, "y", PESTLE_F32, 2, dims);
  uint64_t size = w->inputs[0].size, middle = plan_arena(w, size);
  uint32_t kernel = fixture_kernel(w, "wave", TEST_WAVE, 2, ROWS, 50000000);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, size);
  plan_bind(w, PESTLE_PLAN_ARENA, 0, middle, size);
  plan_launch(w, kernel, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, middle, size);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, size);
  plan_launch(w, kernel, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, w);
  free(w);
  return e;
}

static pestle_status_t run_wave(pestle_executable_t* e, int32_t threads,
                                float* x, float* y) {
  int64_t dims[] = {ROWS, 64};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, dims, NULL);
  pestle_run_options_t options = fixture_run_options();
  options.threads = threads;
  return pestle_executable_run(e, NULL, &in, 1, &out, 1, &options);
}

static void fill_wave(float* x) {
  for (int i = 0; i < WAVE; ++i)
    x[i] = sinf((float)i) * 3;
}

static void test_same_bits(void** state) {
  (void)state;
  static _Alignas(64) float x[WAVE], y[WAVE], expected[WAVE];
  fill_wave(x);
  bool first = true;
  static const int32_t sizes[] = {1, 2, 3, 64};
  for (size_t s = 0; s < 4; ++s) {
    pestle_context_options_t options = fixture_options();
    options.threads = sizes[s];
    pestle_context_t* context = fixture_context(&options);
    pestle_executable_t* e = wave(context);
    for (int32_t threads = 0; threads <= 64; threads = threads * 4 + 1) {
      assert_ok(run_wave(e, threads, x, first ? expected : y));
      if (!first) assert_memory_equal(y, expected, sizeof(y));
      first = false;
    }
    pestle_executable_release(e);
    pestle_context_release(context);
  }
}

// Each thread's scratch is its own.
static void test_own_scratch(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {4096};
  plan_begin(&w, "scratch");
  plan_device(&w, "test", "");
  plan_output(&w, "y", PESTLE_U32, 1, dims);
  w.header.scratch_size = 64;
  uint32_t kernel =
      fixture_kernel(&w, "scratch", TEST_SCRATCH, 1, 4096, 10000000);
  w.kernels[kernel].shared_bytes = 64;
  plan_launch(&w, kernel, plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 16384));
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  for (int run = 0; run < 20; ++run) {
    pestle_tensor_t out = {0};
    assert_ok(pestle_executable_run(e, NULL, NULL, 0, &out, 1, NULL));
    for (uint32_t i = 0; i < 4096; ++i) {
      assert_int_equal(((uint32_t*)out.data)[i], 16 * i);
    }
    pestle_tensor_release(e, &out);
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

typedef struct runner_t {
  pestle_thread_t thread;
  pestle_executable_t* executable;
  float* x;
  const float* expected;
  bool equal;
} runner_t;

static void run_many(void* argument) {
  runner_t* runner = argument;
  float* y = aligned_alloc(64, WAVE * sizeof(float));
  runner->equal = true;
  for (int i = 0; i < 6; ++i) {
    memset(y, 0, WAVE * sizeof(float));
    pestle_status_t status = run_wave(runner->executable, i % 3, runner->x, y);
    runner->equal &=
        !status && !memcmp(y, runner->expected, WAVE * sizeof(float));
    pestle_status_release(status);
  }
  free(y);
}

static void test_64_threads(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_executable_t* e = wave(context);
  static _Alignas(64) float x[WAVE], expected[WAVE];
  fill_wave(x);
  assert_ok(run_wave(e, 1, x, expected));
  enum { COUNT = 64 };
  static runner_t runners[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    runners[i].executable = e;
    runners[i].x = x;
    runners[i].expected = expected;
    assert_ok(
        pestle_thread_start(run_many, &runners[i], "run", &runners[i].thread));
  }
  for (int i = 0; i < COUNT; ++i)
    pestle_thread_join(&runners[i].thread);
  for (int i = 0; i < COUNT; ++i)
    assert_true(runners[i].equal);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// --- fork() ---

static bool child_works(pestle_context_t* context, pestle_executable_t* e,
                        float* x, const float* expected, float* y) {
  pestle_status_t status = run_wave(e, 0, x, y);
  bool works = !status && !memcmp(y, expected, WAVE * sizeof(float));
  pestle_status_release(status);
  pestle_device_t* device;
  pestle_buffer_t* buffer;
  works = works && !pestle_context_device(context, "cpu", &device) &&
          !pestle_buffer_create(device, 1000, &buffer);
  if (!works) return false;
  pestle_buffer_release(buffer);
  sum_t sum = {.context = context};
  pestle_context_parallel_for(context, 100, add_index, &sum);
  pestle_executable_release(e);
  pestle_context_release(context);
  return atomic_load(&sum.sum) == 5050;
}

// Forks while other threads are at work in the context; with AddressSanitizer
// while they sleep, since its allocator does not survive the former.
static void test_fork(void** state) {
  (void)state;
  // ThreadSanitizer refuses new threads in such a child.
  if (TEST_TSAN) skip();
  pestle_context_t* context = fixture_context(NULL);
  pestle_executable_t* e = wave(context);
  static _Alignas(64) float x[WAVE], expected[WAVE], y[WAVE];
  fill_wave(x);
  assert_ok(run_wave(e, 0, x, expected));
  enum { COUNT = TEST_SANITIZED ? 0 : 3 };
  static runner_t runners[COUNT + 1];
  for (int i = 0; i < COUNT; ++i) {
    runners[i] = (runner_t){.executable = e, .x = x, .expected = expected};
    assert_ok(
        pestle_thread_start(run_many, &runners[i], "run", &runners[i].thread));
  }
  for (int i = 0; i < 12; ++i) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      alarm(600);
      _exit(child_works(context, e, x, expected, y) ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
  }
  for (int i = 0; i < COUNT; ++i)
    pestle_thread_join(&runners[i].thread);
  pestle_executable_release(e);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parallel_for),
      cmocka_unit_test(test_nested),
      cmocka_unit_test(test_many_submitters),
      cmocka_unit_test(test_hook),
      cmocka_unit_test(test_same_bits),
      cmocka_unit_test(test_own_scratch),
      cmocka_unit_test(test_64_threads),
      cmocka_unit_test(test_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
