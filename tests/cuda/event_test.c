// SPDX-License-Identifier: Apache-2.0
// Events on a CUDA device: callbacks, runs that keep nobody, and what failures
// before and between launches poison. On a GPU it prints what a recording and a
// callback cost. event_fault_test.c breaks the device.
#include "event_cuda.h"

static cuda_t c;

enum { MANY = 200 };

static void told_once(void** state) {
  static told_t told[MANY];
  int64_t record_ns = 0, late_ns = 0;
  (void)state;
  memset(told, 0, sizeof(told));
  for (int i = 0; i < MANY; ++i) {
    pestle_event_t* event;
    assert_ok(pestle_event_create(c.device, &event));
    assert_ok(run(&c, c.add, 0, 1));
    int64_t begin = pestle_clock_ns();
    assert_ok(pestle_event_record(event, c.stream));
    record_ns += pestle_clock_ns() - begin;
    assert_ok(pestle_event_on_signalled(event, note_told, &told[i]));
    pestle_event_release(event);
  }
  assert_ok(pestle_stream_synchronize(c.stream));
  int64_t synchronised = pestle_clock_ns();
  for (int i = 0; i < MANY; ++i) {
    wait_until(&told[i].count, 1);
    assert_int_equal(atomic_load(&told[i].code), PESTLE_STATUS_OK);
    assert_true(told[i].thread != pestle_thread_id());
    if (i) assert_true(told[i].at_ns >= told[i - 1].at_ns);
  }
  late_ns = told[MANY - 1].at_ns - synchronised;
  print_message(
      "a recording takes %.2f us; the last call came %.1f us %s "
      "pestle_stream_synchronize() returned\n",
      (double)record_ns / MANY / 1e3,
      (double)(late_ns < 0 ? -late_ns : late_ns) / 1e3,
      late_ns < 0 ? "before" : "after");
  for (int i = 0; i < MANY; ++i)
    assert_int_equal(atomic_load(&told[i].count), 1);
}

// From the end of the work to the call, one at a time.
static void latency(void** state) {
  double sum = 0;
  (void)state;
  for (int i = 0; i < 50; ++i) {
    told_t told = {.count = 0};
    assert_ok(run(&c, c.add, 0, 1));
    assert_ok(pestle_event_record(c.event, c.stream));
    int64_t begin = pestle_clock_ns();
    assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
    wait_until(&told.count, 1);
    sum += (double)(told.at_ns - begin);
  }
  print_message("run, record, be told: %.1f us from the registration on\n",
                sum / 50 / 1e3);
  assert_ok(pestle_stream_synchronize(c.stream));
}

// A loop and a call of the host on the stream: the calls return before they are
// done, and what is queued behind comes behind.
static void nobody_waits(void** state) {
  told_t told = {.count = 0};
  (void)state;
  fill(&c, 0, 0);
  assert_ok(run(&c, c.loop, 0, 1));  // warm
  assert_ok(pestle_stream_synchronize(c.stream));
  int64_t begin = pestle_clock_ns();
  assert_ok(run(&c, c.add, 0, 1));
  assert_ok(run(&c, c.loop, 1, 2));
  assert_ok(run(&c, c.call, 2, 3));
  assert_ok(run(&c, c.loop, 3, 1));
  assert_ok(run(&c, c.add, 1, 2));
  assert_ok(pestle_event_record(c.event, c.stream));
  int64_t queued = pestle_clock_ns();
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  assert_ok(pestle_stream_synchronize(c.stream));
  int64_t done = pestle_clock_ns();
  wait_until(&told.count, 1);
  assert_true(first_of(&c, 2) == 1 + 40 + 1 + 40 + 1);
  print_message(
      "two loops, a call and two runs: queued in %.1f us, done after "
      "%.1f us\n",
      (double)(queued - begin) / 1e3, (double)(done - begin) / 1e3);
  // 80 turns of loops, each with a copy to the host.
  assert_true(queued - begin < (done - begin) / 2);
}

// Nothing that is queued waits for a device that does nothing, however much it is:
// more copies of the host's than there is pinned memory for, loops, calls. Of the
// driver of threads alone, which can be held.
static void nobody_waits_for_a_held_device(void** state) {
  enum { RUNS = 60 };
  static float x[RUNS][COUNT], y[RUNS][COUNT];
  int64_t dims[] = {COUNT};
  void (*hold)(int);
  told_t told = {.count = 0};
  (void)state;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&hold = driver ? dlsym(driver, "fake_cuda_hold") : NULL;
  if (!hold) skip();
  hold(1);
  for (int i = 0; i < RUNS; ++i) {
    for (int k = 0; k < COUNT; ++k)
      x[i][k] = (float)i;
    pestle_tensor_t in = {.data = x[i],
                          .device = {PESTLE_DEVICE_CPU, 0},
                          .ndim = 1,
                          .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                          .shape = dims};
    pestle_tensor_t out = in;
    out.data = y[i];
    pestle_executable_t* e = i % 8 == 3 ? c.call : i % 8 == 6 ? c.loop : c.add;
    assert_ok(pestle_executable_run(e, c.stream, &in, 1, &out, 1, NULL));
    assert_ok(run(&c, c.add, 0, 1));
  }
  assert_ok(pestle_event_record(c.event, c.stream));
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  pestle_thread_sleep_ns(20000000);
  assert_int_equal(atomic_load(&told.count), 0);
  hold(0);
  assert_ok(pestle_stream_synchronize(c.stream));
  wait_until(&told.count, 1);
  for (int i = 0; i < RUNS; ++i)
    assert_true(y[i][7] == (float)(i + (i % 8 == 6 ? 40 : 1)));
}

// A failure with |code|: what reads its output fails alike, the rest goes on.
static void check_poison(pestle_status_code_t code, told_t* failed) {
  told_t told = {.count = 0};
  assert_ok(run(&c, c.add, 1, 2));  // reads the failed run's output
  assert_ok(run(&c, c.add, 0, 3));
  assert_ok(pestle_event_record(c.event, c.stream));
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  wait_until(&told.count, 1);
  wait_until(&failed->count, 1);
  assert_int_equal(atomic_load(&failed->code), code);
  assert_int_equal(atomic_load(&told.code), code);
  assert_string_equal(told.message, failed->message);
  assert_true(first_of(&c, 2) == 200);
  assert_true(first_of(&c, 3) == 8);
  assert_ok(run(&c, c.add, 0, 1));  // heals
  assert_ok(run(&c, c.add, 1, 3));
  pestle_status_t status = pestle_stream_synchronize(c.stream);
  assert_int_equal(pestle_status_code(status), code);
  pestle_status_release(status);
  assert_true(first_of(&c, 3) == 9);
  assert_ok(pestle_stream_synchronize(c.stream));
}

static void reset_buffers(void) {
  for (int i = 0; i < 4; ++i)
    fill(&c, i, i ? (float)(100 * i) : 7);
}

static void refused_by_the_host(void** state) {
  told_t told = {.count = 0};
  (void)state;
  reset_buffers();
  atomic_store(&c.refuses, 1);
  assert_ok(run(&c, c.call, 0, 1));
  assert_ok(pestle_event_record(c.event, c.stream));
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  check_poison(PESTLE_STATUS_RESOURCE_EXHAUSTED, &told);
  atomic_store(&c.refuses, 0);
}

// A frame that the device has no memory for.
static void refused_memory(void** state) {
  told_t told = {.count = 0};
  uint64_t before, active;
  (void)state;
  reset_buffers();
  pestle_executable_t* fresh = load(&c, loop_text);
  assert_ok(pestle_device_memory_get(c.device, PESTLE_MEMORY_ACTIVE, &active));
  assert_ok(pestle_device_memory_set(c.device, PESTLE_MEMORY_LIMIT, active + 1,
                                     &before));
  assert_ok(run(&c, fresh, 0, 1));
  assert_ok(pestle_event_record(c.event, c.stream));
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  wait_until(&told.count, 1);
  assert_ok(
      pestle_device_memory_set(c.device, PESTLE_MEMORY_LIMIT, before, NULL));
  check_poison(PESTLE_STATUS_OUT_OF_MEMORY, &told);
  pestle_executable_release(fresh);
}

// A recorded launch that the driver refuses, of the driver of threads alone.
static void refused_launch(void** state) {
  told_t told = {.count = 0};
  void (*refuse)(const char*, int, int);
  (void)state;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&refuse = driver ? dlsym(driver, "fake_cuda_fail") : NULL;
  if (!refuse) skip();
  reset_buffers();
  refuse("cuGraphLaunch", 1, 701);
  assert_ok(run(&c, c.add, 0, 1));
  refuse("", 0, 0);
  assert_ok(pestle_event_record(c.event, c.stream));
  assert_ok(pestle_event_on_signalled(c.event, note_told, &told));
  check_poison(PESTLE_STATUS_RESOURCE_EXHAUSTED, &told);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(told_once),
      cmocka_unit_test(latency),
      cmocka_unit_test(nobody_waits),
      cmocka_unit_test(nobody_waits_for_a_held_device),
      cmocka_unit_test(refused_by_the_host),
      cmocka_unit_test(refused_memory),
      cmocka_unit_test(refused_launch)};
  cuda_begin(&c);
  int failures = cmocka_run_group_tests(tests, NULL, NULL);
  cuda_end(&c);
  return failures;
}
