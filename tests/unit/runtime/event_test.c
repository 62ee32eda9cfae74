// SPDX-License-Identifier: Apache-2.0
// What events say and whom they call, on a stream of a CPU, on one of a device
// whose backend calls the host, and on one whose backend does not.
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/stream.h"
#include "unit/runtime/event_fixture.h"

// --- One of each kind of stream ---

typedef struct kind_t {
  const char* name;
  const char* device;
  uint64_t missing;  // slots of the mock
  int minor;         // of its table
} kind_t;

static const kind_t kinds[] = {
    {"a CPU", "test", 0, -1},
    {"a device", "mock", 0, -1},
    {"a device without calls", "mock", UINT64_C(1) << MOCK_STREAM_HOST_CALL,
     -1},
    {"a device of minor 3", "mock", 0, 3},
    {"a device without events", "mock", UINT64_C(1) << MOCK_EVENT_SIGNAL, -1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

typedef struct fixture_t {
  const kind_t* kind;
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t* e;
  pestle_stream_t* stream;
  pestle_event_t* event;
  pestle_buffer_t* buffers[4];
  pestle_tensor_t views[4];
  int32_t cancel;
  pestle_control_t control;
  pestle_run_options_t options;  // with which a run fails
} fixture_t;

static void begin(fixture_t* f, const kind_t* kind) {
  mock_reset();
  mock_state()->missing = kind->missing;
  mock_state()->minor = kind->minor;
  *f = (fixture_t){.kind = kind, .cancel = 1};
  f->context = gpu_context(NULL);
  f->device = gpu_device(f->context, kind->device);
  f->e = strcmp(kind->device, "mock") ? fixture_add1(f->context, 2, gpu_dims)
                                      : gpu_chain(f->context);
  assert_ok(pestle_stream_create(f->device, &f->stream));
  assert_ok(pestle_event_create(f->device, &f->event));
  for (int i = 0; i < 4; ++i) {
    f->buffers[i] = gpu_input(f->device, (float)i);
    f->views[i] = gpu_view(f->buffers[i], 0);
  }
  f->control = (pestle_control_t){.struct_size = sizeof(f->control),
                                  .cancel = &f->cancel};
  f->options = fixture_run_options();
  f->options.control = &f->control;
}

static void end(fixture_t* f) {
  pestle_event_release(f->event);
  pestle_stream_release(f->stream);
  pestle_executable_release(f->e);
  for (int i = 0; i < 4; ++i)
    pestle_buffer_release(f->buffers[i]);
  gpu_context_end(f->context);
}

static void run(fixture_t* f, int from, int to) {
  assert_ok(pestle_executable_run(f->e, f->stream, &f->views[from], 1,
                                  &f->views[to], 1, NULL));
}

static void run_failing(fixture_t* f, int from, int to) {
  assert_ok(pestle_executable_run(f->e, f->stream, &f->views[from], 1,
                                  &f->views[to], 1, &f->options));
}

static void record(fixture_t* f, told_t* told) {
  assert_ok(pestle_event_record(f->event, f->stream));
  if (told) {
    assert_ok(pestle_event_on_signalled(f->event, note_told, told));
  }
}

static float first_of(fixture_t* f, int buffer) {
  float x[GPU_COUNT];
  assert_ok(pestle_buffer_read(f->buffers[buffer], 0, x, sizeof(x)));
  return x[0];
}

// What the run makes of it.
static float after(const fixture_t* f, float x) {
  return x + (strcmp(f->kind->device, "mock") ? 1 : 2);
}

// --- The contract ---

static void test_nothing_recorded(void** state) {
  (void)state;
  fixture_t f;
  told_t told = {.count = 0};
  begin(&f, &kinds[0]);
  assert_error(pestle_event_status(f.event), INVALID_ARGUMENT,
               "never recorded: there is nothing to ask about");
  assert_error(pestle_event_on_signalled(f.event, note_told, &told),
               INVALID_ARGUMENT, "never recorded: there is nothing to be told");
  assert_code(pestle_event_on_signalled(NULL, note_told, &told),
              INVALID_ARGUMENT);
  assert_ok(pestle_event_record(f.event, NULL));
  assert_code(pestle_event_on_signalled(f.event, NULL, &told),
              INVALID_ARGUMENT);
  assert_code(pestle_event_status(NULL), INVALID_ARGUMENT);
  assert_int_equal(atomic_load(&told.count), 0);
  end(&f);
}

// The event may go at once; what is asked for later is told too.
static void test_told_once(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    told_t early = {.count = 0}, late = {.count = 0}, released = {.count = 0};
    begin(&f, &kinds[k]);
    atomic_store(&mock_state()->launch_delay_us, 2000);
    run(&f, 0, 1);
    record(&f, &early);
    assert_ok(pestle_event_status(f.event));
    assert_ok(pestle_event_wait(f.event, NULL));
    assert_true(pestle_event_is_signalled(f.event));
    assert_ok(pestle_event_status(f.event));
    assert_ok(pestle_event_on_signalled(f.event, note_told, &late));
    assert_told(&early, OK);
    assert_told(&late, OK);
    run(&f, 0, 2);
    record(&f, &released);
    pestle_event_release(f.event);
    f.event = NULL;
    assert_ok(pestle_stream_synchronize(f.stream));
    assert_told(&released, OK);
    assert_string_equal(released.message, "ok");
    end(&f);
    assert_int_equal(atomic_load(&early.count), 1);
    assert_int_equal(atomic_load(&late.count), 1);
    assert_int_equal(atomic_load(&released.count), 1);
  }
}

// Of a recording without a stream.
static void test_recorded_by_the_host(void** state) {
  (void)state;
  for (int k = 0; k < 2; ++k) {
    fixture_t f;
    told_t told = {.count = 0};
    begin(&f, &kinds[k]);
    record(&f, NULL);
    assert_ok(pestle_event_record(f.event, NULL));
    assert_true(pestle_event_is_signalled(f.event));
    assert_ok(pestle_event_status(f.event));
    assert_ok(pestle_event_on_signalled(f.event, note_told, &told));
    assert_told(&told, OK);
    end(&f);
  }
}

enum { MANY = 20 };

// Several of one recording in turn, and recordings of one stream in turn.
static void test_order(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    atomic_int clock = 0;
    told_t told[MANY][3] = {{{.count = 0}}};
    begin(&f, &kinds[k]);
    for (int i = 0; i < MANY; ++i) {
      run(&f, 0, 1);
      assert_ok(pestle_event_record(f.event, f.stream));
      for (int c = 0; c < 3; ++c) {
        told[i][c].clock = &clock;
        assert_ok(pestle_event_on_signalled(f.event, note_told, &told[i][c]));
      }
    }
    assert_ok(pestle_stream_synchronize(f.stream));
    for (int i = 0; i < MANY; ++i) {
      for (int c = 0; c < 3; ++c) {
        assert_told(&told[i][c], OK);
        assert_int_equal(told[i][c].time, 3 * i + c);
      }
    }
    end(&f);
  }
}

// Lets a CPU's stream go on past a step when |self|, a counter, is set.
static void wait_in_step(void* self, uint32_t step, int64_t begin_ns,
                         int64_t end_ns) {
  (void)step, (void)begin_ns, (void)end_ns;
  wait_until(self, 1);
}

// Holds |stream|, of a CPU, up until |gate| is told of something.
static pestle_executable_t* hold_up(fixture_t* f, pestle_stream_t* stream,
                                    told_t* gate, float* x, float* y) {
  pestle_executable_t* e = fixture_add1(f->context, 2, gpu_dims);
  pestle_run_options_t options = fixture_run_options();
  options.on_step = wait_in_step;
  options.on_step_user = &gate->count;
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  assert_ok(GPU_RUN(e, stream, in, out, &options));
  return e;
}

// Functions that are registered last first are called when their own time has
// come: what the second recording stands for waits for the first's function.
static void test_registered_backwards(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    told_t told[2] = {{.count = 0}, {.count = 0}};
    pestle_event_t *second, *gate;
    pestle_stream_t* other;
    float x[GPU_COUNT] = {0}, y[GPU_COUNT];
    begin(&f, &kinds[k]);
    assert_ok(pestle_event_create(f.device, &second));
    assert_ok(pestle_event_create(f.device, &gate));
    assert_ok(pestle_stream_create(gpu_device(f.context, "test"), &other));
    pestle_executable_t* e = hold_up(&f, other, &told[0], x, y);
    assert_ok(pestle_event_record(gate, other));
    run(&f, 0, 1);
    assert_ok(pestle_event_record(f.event, f.stream));
    assert_ok(pestle_event_wait(gate, f.stream));
    run(&f, 0, 2);
    assert_ok(pestle_event_record(second, f.stream));
    assert_ok(pestle_event_on_signalled(second, note_told, &told[1]));
    assert_false(pestle_event_is_signalled(second));
    assert_ok(pestle_event_on_signalled(f.event, note_told, &told[0]));
    assert_told(&told[0], OK);
    assert_told(&told[1], OK);
    pestle_executable_release(e);
    pestle_stream_release(other);
    pestle_event_release(gate);
    pestle_event_release(second);
    end(&f);
  }
}

// The same where both are with the device already.
static void test_registered_late(void** state) {
  (void)state;
  for (int k = 1; k < KINDS; ++k) {
    fixture_t f;
    atomic_int clock = 0;
    told_t told[2] = {{.clock = &clock}, {.clock = &clock}};
    pestle_event_t* second;
    begin(&f, &kinds[k]);
    assert_ok(pestle_event_create(f.device, &second));
    atomic_store(&mock_state()->launch_delay_us, 10000);
    run(&f, 0, 1);
    assert_ok(pestle_event_record(f.event, f.stream));
    for (int i = 0; i < 3; ++i)
      run(&f, 0, 1);
    assert_ok(pestle_event_record(second, f.stream));
    assert_ok(pestle_event_on_signalled(second, note_told, &told[1]));
    assert_ok(pestle_event_on_signalled(f.event, note_told, &told[0]));
    assert_told(&told[0], OK);
    assert_true(atomic_load(&mock_state()->kernels_run) < 12);
    assert_told(&told[1], OK);
    assert_int_equal(told[0].time, 0);
    pestle_event_release(second);
    end(&f);
  }
}

// The status of the step that failed, until a synchronisation has returned it.
static void test_failures(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    told_t told[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
    begin(&f, &kinds[k]);
    run_failing(&f, 0, 1);
    record(&f, &told[0]);
    run(&f, 2, 3);
    record(&f, &told[1]);
    assert_told(&told[0], CANCELLED);
    assert_told(&told[1], CANCELLED);
    assert_string_equal(told[1].message, told[0].message);
    assert_ok(pestle_event_wait(f.event, NULL));
    assert_error(pestle_event_status(f.event), CANCELLED, "was cancelled");
    assert_code(pestle_stream_synchronize(f.stream), CANCELLED);
    record(&f, &told[2]);
    assert_told(&told[2], OK);
    assert_ok(pestle_stream_synchronize(f.stream));
    end(&f);
  }
}

// --- Callbacks that do things ---

typedef struct chain_t {
  fixture_t* f;
  told_t told;
  atomic_int left, done;
} chain_t;

static void go_on(void* self, pestle_status_t status) {
  chain_t* chain = self;
  fixture_t* f = chain->f;
  note_told(&chain->told, status);
  if (atomic_fetch_sub(&chain->left, 1) > 1) {
    run(f, 0, 1);
    assert_ok(pestle_event_record(f->event, f->stream));
    assert_ok(pestle_event_on_signalled(f->event, go_on, chain));
  } else {
    atomic_store(&chain->done, 1);
  }
}

// A callback that runs and records the same event again, many times.
static void test_recorded_in_a_callback(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    begin(&f, &kinds[k]);
    chain_t chain = {.f = &f, .left = 200};
    assert_ok(pestle_event_record(f.event, f.stream));
    assert_ok(pestle_event_on_signalled(f.event, go_on, &chain));
    wait_until(&chain.done, 1);
    assert_int_equal(atomic_load(&chain.told.count), 200);
    assert_int_equal(atomic_load(&chain.told.code), PESTLE_STATUS_OK);
    end(&f);
  }
}

typedef struct meeting_t {
  atomic_int here, met;
} meeting_t;

static void meet(void* self, pestle_status_t status) {
  meeting_t* meeting = self;
  (void)status;
  atomic_fetch_add(&meeting->here, 1);
  wait_until(&meeting->here, 3);
  atomic_fetch_add(&meeting->met, 1);
}

// Callbacks of three streams that wait for each other.
static void test_streams_apart(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    meeting_t meeting = {.here = 0};
    begin(&f, &kinds[k]);
    pestle_stream_t* more[2];
    assert_ok(pestle_stream_create(f.device, &more[0]));
    assert_ok(pestle_stream_create(f.device, &more[1]));
    for (int i = 0; i < 3; ++i) {
      assert_ok(pestle_event_record(f.event, i ? more[i - 1] : f.stream));
      assert_ok(pestle_event_on_signalled(f.event, meet, &meeting));
    }
    wait_until(&meeting.met, 3);
    pestle_stream_release(more[0]);
    pestle_stream_release(more[1]);
    end(&f);
  }
}

typedef struct held_t {
  pestle_context_t* context;
  pestle_event_t* event;
  atomic_int* done;
} held_t;

static void let_go(void* self, pestle_status_t status) {
  held_t* held = self;
  (void)status;
  pestle_event_release(held->event);
  pestle_context_release(held->context);
  atomic_fetch_add(held->done, 1);
}

// The last hold of the context is dropped in a callback, behind which others are
// still to be called.
static void test_context_ends_in_a_callback(void** state) {
  (void)state;
  for (int round = 0; round < 50; ++round) {
    pestle_context_t* context = gpu_context(NULL);
    pestle_device_t* device = gpu_device(context, "test");
    atomic_int done = 0;
    held_t held = {.context = context, .done = &done};
    told_t behind[2] = {{.count = 0}, {.count = 0}};
    pestle_event_t* event;
    pestle_stream_t* stream;
    assert_ok(pestle_stream_create(device, &stream));
    assert_ok(pestle_event_create(device, &held.event));
    assert_ok(pestle_event_create(device, &event));
    pestle_executable_t* e = fixture_add1(context, 2, gpu_dims);
    float x[GPU_COUNT] = {0}, y[GPU_COUNT];
    pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
    assert_ok(GPU_RUN(e, stream, in, out, NULL));
    pestle_executable_release(e);
    assert_ok(pestle_event_record(held.event, stream));
    assert_ok(pestle_event_record(event, stream));
    // Its callbacks come after those of the first event.
    assert_ok(pestle_event_on_signalled(event, note_told, &behind[1]));
    pestle_event_release(event);
    pestle_stream_release(stream);
    assert_ok(pestle_event_on_signalled(held.event, let_go, &held));
    // Not if the context is gone by now, and the event with it.
    wait_until(&done, 1);
    wait_until(&behind[1].count, 1);
    assert_int_equal(atomic_load(&behind[1].count), 1);
    assert_int_equal(mock_live(), 0);
  }
}

// The same with a callback of the same recording, which the last hold's own must
// not lose.
static void test_callbacks_behind_the_end(void** state) {
  (void)state;
  for (int round = 0; round < 50; ++round) {
    pestle_context_t* context = gpu_context(NULL);
    pestle_device_t* device = gpu_device(context, "test");
    atomic_int done = 0;
    held_t held = {.context = context, .done = &done};
    told_t gate = {.count = 0}, behind[2] = {{.count = 0}, {.count = 0}};
    float x[GPU_COUNT] = {0}, y[GPU_COUNT];
    fixture_t f = {.context = context};
    pestle_event_t* event;
    pestle_stream_t* stream;
    assert_ok(pestle_stream_create(device, &stream));
    assert_ok(pestle_event_create(device, &held.event));
    assert_ok(pestle_event_create(device, &event));
    pestle_executable_t* e = hold_up(&f, stream, &gate, x, y);
    assert_ok(pestle_event_record(held.event, stream));
    assert_ok(pestle_event_record(event, stream));
    assert_ok(pestle_event_on_signalled(held.event, let_go, &held));
    assert_ok(pestle_event_on_signalled(held.event, note_told, &behind[0]));
    assert_ok(pestle_event_on_signalled(event, note_told, &behind[1]));
    pestle_event_release(event);
    pestle_executable_release(e);
    atomic_store(&gate.count, 1);
    pestle_stream_release(stream);
    wait_until(&done, 1);
    wait_until(&behind[0].count, 1);
    wait_until(&behind[1].count, 1);
    assert_int_equal(mock_live(), 0);
  }
}

// What is still to be called when a stream goes is called.
static void test_stream_ends(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    atomic_int clock = 0;
    told_t told[MANY] = {{.count = 0}};
    begin(&f, &kinds[k]);
    atomic_store(&mock_state()->launch_delay_us, 500);
    for (int i = 0; i < MANY; ++i) {
      told[i].clock = &clock;
      run(&f, 0, 1);
      record(&f, &told[i]);
    }
    pestle_stream_release(f.stream);
    f.stream = NULL;
    assert_true(pestle_event_is_signalled(f.event));
    told_t late = {.count = 0};
    assert_ok(pestle_event_on_signalled(f.event, note_told, &late));
    for (int i = 0; i < MANY; ++i)
      assert_told(&told[i], OK);
    assert_told(&late, OK);
    end(&f);
    for (int i = 0; i < MANY; ++i)
      assert_int_equal(atomic_load(&told[i].count), 1);
  }
}

// --- Devices ---

// A kernel that stops after the call has returned: the backend tells.
static void test_late_failure(void** state) {
  (void)state;
  fixture_t f;
  told_t told = {.count = 0};
  begin(&f, &kinds[1]);
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  mock_artifact_t trap = mock_artifact(test_entry_of(TEST_TRAP), GPU_COUNT);
  memcpy(w.code + w.kernels[1].code_offset, &trap, sizeof(trap));
  pestle_executable_t* e = fixture_executable(f.context, &w);
  assert_ok(
      pestle_executable_run(e, f.stream, &f.views[0], 1, &f.views[1], 1, NULL));
  record(&f, &told);
  assert_ok(pestle_event_wait(f.event, NULL));
  assert_error(pestle_event_status(f.event), INTERNAL, "stopped at its check");
  assert_told(&told, INTERNAL);
  assert_code(pestle_stream_synchronize(f.stream), INTERNAL);
  pestle_executable_release(e);
  end(&f);
}

// A device that is lost while much is pending: everything says so, in the words of
// the first fault, and every callback is made once.
static void test_lost(void** state) {
  (void)state;
  for (int k = 1; k < KINDS; ++k) {
    fixture_t f;
    atomic_int clock = 0;
    told_t told[MANY] = {{.count = 0}};
    pestle_event_t* events[MANY];
    begin(&f, &kinds[k]);
    atomic_store(&mock_state()->launch_delay_us, 2000);
    for (int i = 0; i < MANY; ++i) {
      told[i].clock = &clock;
      run(&f, 0, 1);
      assert_ok(pestle_event_create(f.device, &events[i]));
      assert_ok(pestle_event_record(events[i], f.stream));
      assert_ok(pestle_event_on_signalled(events[i], note_told, &told[i]));
    }
    atomic_store(&mock_state()->lost, true);
    for (int i = 0; i < MANY; ++i)
      wait_until(&told[i].count, 1);
    assert_error(pestle_event_wait(events[MANY - 1], NULL), UNAVAILABLE,
                 "mock: the device is lost");
    assert_code(pestle_event_status(events[MANY - 1]), UNAVAILABLE);
    assert_true(pestle_event_is_signalled(events[MANY - 1]));
    assert_error(GPU_RUN(f.e, f.stream, f.views[0], f.views[1], NULL),
                 UNAVAILABLE, "mock: the device is lost");
    assert_error(pestle_stream_synchronize(f.stream), UNAVAILABLE,
                 "mock: the device is lost");
    assert_int_equal(atomic_load(&told[MANY - 1].code),
                     PESTLE_STATUS_UNAVAILABLE);
    assert_string_equal(told[MANY - 1].message, "mock: the device is lost");
    for (int i = 0; i < MANY; ++i)
      pestle_event_release(events[i]);
    end(&f);
    for (int i = 0; i < MANY; ++i)
      assert_int_equal(atomic_load(&told[i].count), 1);
  }
}

// --- fork() ---

// In a child nothing of the parent's comes, and nothing is called.
static int look_in_child(fixture_t* f, const told_t* told) {
  told_t mine = {.count = 0}, own = {.count = 0};
  assert_false(pestle_event_is_signalled(f->event));
  assert_code(pestle_event_wait(f->event, NULL), UNAVAILABLE);
  assert_code(pestle_event_on_signalled(f->event, note_told, &mine),
              UNAVAILABLE);
  pestle_event_release(f->event);
  // What the child records comes.
  pestle_event_t* event;
  pestle_device_t* device = gpu_device(f->context, "test");
  assert_ok(pestle_event_create(device, &event));
  assert_ok(pestle_event_record(event, NULL));
  assert_ok(pestle_event_on_signalled(event, note_told, &own));
  wait_until(&own.count, 1);
  pestle_event_release(event);
  return atomic_load(&mine.count) + atomic_load(&told->count);
}

static void test_fork(void** state) {
  (void)state;
  if (TEST_TSAN) skip();  // its runtime does not let threads fork
  for (int k = 0; k < 2; ++k) {
    fixture_t f;
    told_t told = {.count = 0}, gate = {.count = 0};
    float x[GPU_COUNT] = {0}, y[GPU_COUNT];
    pestle_stream_t* other;
    pestle_event_t* open;
    begin(&f, &kinds[k]);
    assert_ok(pestle_stream_create(gpu_device(f.context, "test"), &other));
    assert_ok(pestle_event_create(f.device, &open));
    pestle_executable_t* e = hold_up(&f, other, &gate, x, y);
    assert_ok(pestle_event_record(open, other));
    assert_ok(pestle_event_wait(open, f.stream));
    record(&f, &told);
    pid_t child = fork();
    if (!child) _exit(look_in_child(&f, &told));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    atomic_store(&gate.count, 1);
    assert_told(&told, OK);
    pestle_executable_release(e);
    pestle_stream_release(other);
    pestle_event_release(open);
    end(&f);
  }
}

// --- Poison ---

// What reads a failed run's output fails likewise; nothing else does; a run that
// writes it heals it.
static void test_poison(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    fixture_t f;
    begin(&f, &kinds[k]);
    run_failing(&f, 0, 1);  // 1 is poisoned
    run(&f, 1, 2);          // so is 2
    run(&f, 0, 3);
    record(&f, NULL);
    assert_ok(pestle_event_wait(f.event, NULL));
    assert_true(first_of(&f, 1) == 1);
    assert_true(first_of(&f, 2) == 2);
    assert_true(first_of(&f, 3) == after(&f, 0));
    run(&f, 0, 1);  // healed
    run(&f, 1, 3);
    record(&f, NULL);
    assert_ok(pestle_event_wait(f.event, NULL));
    assert_true(first_of(&f, 3) == after(&f, after(&f, 0)));
    run(&f, 2, 3);  // still poisoned, and by it 3
    run(&f, 3, 1);
    assert_error(pestle_stream_synchronize(f.stream), CANCELLED,
                 "was cancelled");
    assert_true(first_of(&f, 3) == after(&f, after(&f, 0)));
    assert_true(first_of(&f, 1) == after(&f, 0));
    // The caller knows now.
    run(&f, 2, 3);
    assert_ok(pestle_stream_synchronize(f.stream));
    assert_true(first_of(&f, 3) == after(&f, 2));
    end(&f);
  }
}

// Two streams: |f->stream|, and one that waits for its event.
typedef struct pair_t {
  fixture_t f;
  pestle_stream_t *first, *second;
} pair_t;

static void begin_pair(pair_t* p, const kind_t* kind) {
  begin(&p->f, kind);
  p->first = p->f.stream;
  assert_ok(pestle_stream_create(p->f.device, &p->second));
}

static void end_pair(pair_t* p) {
  p->f.stream = p->first;
  pestle_stream_release(p->second);
  end(&p->f);
}

// What |run| queues next goes to the second stream, behind the first.
static void go_to_second(pair_t* p) {
  p->f.stream = p->first;
  record(&p->f, NULL);
  p->f.stream = p->second;
  assert_ok(pestle_event_wait(p->f.event, p->second));
}

// A stream that waits for an event reads no poison, and is not failed by it.
static void test_poison_crosses_streams(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    pair_t p;
    pestle_event_t* then;
    begin_pair(&p, &kinds[k]);
    fixture_t* f = &p.f;
    assert_ok(pestle_event_create(f->device, &then));
    run_failing(f, 0, 1);
    go_to_second(&p);
    run(f, 0, 3);
    assert_ok(pestle_event_record(then, p.second));
    assert_ok(pestle_event_wait(then, NULL));
    assert_ok(pestle_event_status(then));
    run(f, 1, 2);
    assert_error(pestle_stream_synchronize(p.second), CANCELLED,
                 "was cancelled");
    assert_true(first_of(f, 2) == 2);
    assert_true(first_of(f, 3) == after(f, 0));
    // What the first stream writes anew is good for both, and nobody was told.
    f->stream = p.first;
    run(f, 0, 1);
    go_to_second(&p);
    run(f, 1, 2);
    assert_ok(pestle_stream_synchronize(p.second));
    assert_true(first_of(f, 2) == after(f, after(f, 0)));
    assert_code(pestle_stream_synchronize(p.first), CANCELLED);
    pestle_event_release(then);
    end_pair(&p);
  }
}

// Who waits for a failure that somebody else was told of has no poison to find.
static void test_told_before_the_wait(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    pair_t p;
    begin_pair(&p, &kinds[k]);
    fixture_t* f = &p.f;
    run_failing(f, 0, 1);
    record(f, NULL);
    assert_code(pestle_stream_synchronize(p.first), CANCELLED);
    f->stream = p.second;
    assert_ok(pestle_event_wait(f->event, p.second));
    run(f, 1, 2);
    assert_error(pestle_stream_synchronize(p.second), CANCELLED,
                 "was cancelled");
    assert_true(first_of(f, 2) == 2);
    run(f, 0, 2);
    assert_ok(pestle_stream_synchronize(p.second));
    assert_true(first_of(f, 2) == after(f, 0));
    end_pair(&p);
  }
}

// --- Runs with a completion of their own ---

// Runs from one buffer to the other with |order|.
static void run_ordered(fixture_t* f, int from, int to, bool fails,
                        const pestle_run_order_t* order) {
  pestle_frame_t* frame;
  pestle_executable_t* e = f->e;
  bool native = pestle_stream_native(f->stream) != NULL;
  assert_ok(pestle_frame_take(e, native ? f->stream->number : 0, NULL, &frame));
  memset(frame->donated, 0, e->input_count);
  memset(frame->allocated, 0, e->output_count);
  assert_ok(pestle_run_bind(e, &f->views[from], &f->views[to], frame));
  pestle_run_t run = {.options = fixture_run_options()};
  if (fails) run.control = f->control;
  assert_ok(pestle_stream_run(f->stream, e, frame, &f->views[from],
                              &f->views[to], &run, order));
  pestle_frame_give(e, frame);
}

static pestle_completion_t* new_completion(const fixture_t* f) {
  pestle_completion_t* completion;
  assert_ok(pestle_completion_create(f->stream->timeline, &completion));
  return completion;
}

// It has the failure of its run alone, and whoever waits for it has that.
static void test_own_completions(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    pair_t p;
    begin_pair(&p, &kinds[k]);
    fixture_t* f = &p.f;
    pestle_completion_t* done[4];
    told_t told = {.count = 0};
    for (int i = 0; i < 2; ++i)
      done[i] = new_completion(f);
    assert_ok(pestle_completion_on_done(done[1], note_told, &told));
    run_ordered(f, 0, 1, true, &(pestle_run_order_t){.done = done[0]});
    run_ordered(f, 0, 3, false, &(pestle_run_order_t){.done = done[1]});
    f->stream = p.second;
    for (int i = 2; i < 4; ++i)
      done[i] = new_completion(f);
    run_ordered(f, 1, 2, false,
                &(pestle_run_order_t){
                    .waits = &done[0], .wait_count = 1, .done = done[2]});
    run_ordered(f, 3, 2, false,
                &(pestle_run_order_t){
                    .waits = &done[1], .wait_count = 1, .done = done[3]});
    static const pestle_status_code_t codes[] = {
        PESTLE_STATUS_CANCELLED, PESTLE_STATUS_OK, PESTLE_STATUS_CANCELLED,
        PESTLE_STATUS_OK};
    for (int i = 0; i < 4; ++i) {
      assert_ok(pestle_completion_wait(done[i]));
      pestle_status_t failure = pestle_completion_failure(done[i]);
      assert_int_equal(pestle_status_code(failure), codes[i]);
      pestle_status_release(failure);
      pestle_completion_release(done[i]);
    }
    assert_told(&told, OK);
    assert_true(first_of(f, 2) == after(f, after(f, 0)));
    // Their outputs have a completion to ask: the memory is not poisoned.
    run(f, 1, 3);
    assert_code(pestle_stream_synchronize(p.second), CANCELLED);
    assert_true(first_of(f, 3) == after(f, 1));
    end_pair(&p);
  }
}

// Refused launches and allocations on a device, one after the other.
static void test_device_refuses(void** state) {
  (void)state;
  static const mock_slot_t slots[] = {MOCK_LAUNCH, MOCK_ALLOCATE,
                                      MOCK_EVENT_SIGNAL};
  for (int s = 0; s < 3; ++s) {
    fixture_t f;
    told_t told = {.count = 0};
    begin(&f, &kinds[1]);
    mock_fail(slots[s], 1, PESTLE_STATUS_RESOURCE_EXHAUSTED);
    run(&f, 0, 1);
    run(&f, 1, 2);
    run(&f, 0, 3);
    record(&f, &told);
    assert_told(&told, RESOURCE_EXHAUSTED);
    assert_error(pestle_stream_synchronize(f.stream), RESOURCE_EXHAUSTED,
                 "fails as it was told to");
    assert_true(first_of(&f, 2) == 2);
    assert_true(first_of(&f, 3) == after(&f, 0));
    end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_recorded),
      cmocka_unit_test(test_told_once),
      cmocka_unit_test(test_recorded_by_the_host),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_registered_backwards),
      cmocka_unit_test(test_registered_late),
      cmocka_unit_test(test_failures),
      cmocka_unit_test(test_recorded_in_a_callback),
      cmocka_unit_test(test_streams_apart),
      cmocka_unit_test(test_context_ends_in_a_callback),
      cmocka_unit_test(test_callbacks_behind_the_end),
      cmocka_unit_test(test_stream_ends),
      cmocka_unit_test(test_late_failure),
      cmocka_unit_test(test_lost),
      cmocka_unit_test(test_fork),
      cmocka_unit_test(test_poison),
      cmocka_unit_test(test_poison_crosses_streams),
      cmocka_unit_test(test_told_before_the_wait),
      cmocka_unit_test(test_own_completions),
      cmocka_unit_test(test_device_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
