// SPDX-License-Identifier: Apache-2.0
// Streams, events, fences and recordings of a device other than a CPU.
#include "base/thread.h"
#include "unit/runtime/gpu_fixture.h"

static int set_up(void** state) {
  (void)state;
  mock_reset();
  return 0;
}

// --- Runs that do not wait ---

static void test_asynchronous(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t *x = gpu_input(device, 1), *y = gpu_output(device);
  pestle_stream_t* stream;
  pestle_event_t* event;
  assert_ok(pestle_stream_create(device, &stream));
  assert_ok(pestle_event_create(device, &event));
  assert_false(pestle_event_is_signalled(event));
  assert_error(pestle_event_wait(event, NULL), INVALID_ARGUMENT, "recorded");
  atomic_store(&mock_state()->launch_delay_us, 30000);
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  assert_ok(GPU_RUN(e, stream, in, out, NULL));
  assert_ok(pestle_event_record(event, stream));
  assert_false(pestle_event_is_signalled(event));
  assert_true(atomic_load(&mock_state()->kernels_run) < 3);
  assert_ok(pestle_event_wait(event, NULL));
  assert_true(pestle_event_is_signalled(event));
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 3);
  gpu_check_buffer(y, 1);
  // The executable may go before what it queued is done.
  assert_ok(GPU_RUN(e, stream, in, out, NULL));
  assert_ok(GPU_RUN(e, stream, in, out, NULL));
  pestle_executable_release(e);
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 9);
  assert_ok(pestle_stream_synchronize(stream));
  pestle_event_release(event);
  pestle_stream_release(stream);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  gpu_context_end(context);
}

// Views of the host on a stream: read and written when the stream comes there.
static void test_host_views(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(gpu_device(context, "mock"), &stream));
  float x[2][GPU_COUNT], y[2][GPU_COUNT] = {{0}};
  for (int i = 0; i < GPU_COUNT; ++i)
    x[0][i] = (float)i, x[1][i] = 50 + (float)i;
  atomic_store(&mock_state()->launch_delay_us, 10000);
  for (int run = 0; run < 2; ++run) {
    pestle_tensor_t in = gpu_host_view(x[run]), out = gpu_host_view(y[run]);
    assert_ok(GPU_RUN(e, stream, in, out, NULL));
  }
  assert_true(atomic_load(&mock_state()->kernels_run) < 6);
  assert_ok(pestle_stream_synchronize(stream));
  gpu_check(y[0], 0);
  gpu_check(y[1], 50);
  // With gaps the host has something to do at the end, which the stream's thread
  // does; what it packs does not overwrite what an earlier run still reads.
  int64_t strides[] = {-6, -1};
  for (int run = 0; run < 2; ++run) {
    pestle_tensor_t in = gpu_host_view(x[run]), out = gpu_host_view(y[run]);
    in.strides = strides;
    in.byte_offset = GPU_BYTES - 4;
    memset(y[run], 0, GPU_BYTES);
    assert_ok(GPU_RUN(e, stream, in, out, NULL));
  }
  assert_ok(pestle_stream_synchronize(stream));
  assert_true(y[0][0] == gpu_expected(0, 23));
  assert_true(y[1][0] == gpu_expected(0, 73));
  pestle_tensor_t in = gpu_host_view(x[0]), out = gpu_host_view(y[0]);
  out.strides = strides;
  out.byte_offset = GPU_BYTES - 4;
  assert_ok(GPU_RUN(e, stream, in, out, NULL));
  assert_true(atomic_load(&mock_state()->kernels_run) < 15);
  assert_ok(pestle_stream_synchronize(stream));
  assert_true(y[0][23] == gpu_expected(0, 0));
  pestle_stream_release(stream);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// y = chain(x) + 1, the last by a kernel of a CPU, then a branch on what is there.
static pestle_executable_t* host_chain(pestle_context_t* context) {
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  plan_device(&w, "test", "");
  uint32_t add1 = gpu_cpu_kernel(&w, "cpu_add1", TEST_ADD1, 2, GPU_COUNT);
  w.header.steps.count--;
  uint32_t first = plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_launch(&w, add1, first);
  uint32_t word = plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 4);
  uint32_t next = (uint32_t)w.header.steps.count + 1;
  plan_step(&w, PESTLE_PLAN_JUMP_IF_ZERO, 0, word, 1, next);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_executable(context, &w);
}

// What the host must look into is done by the stream's thread, between what was
// queued before and after it; no call waits.
static void test_nobody_waits(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t *plain = gpu_chain(context), *host = host_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* stream;
  pestle_event_t* event;
  assert_ok(pestle_stream_create(device, &stream));
  assert_ok(pestle_event_create(device, &event));
  pestle_buffer_t *x = gpu_input(device, 0), *y = gpu_output(device);
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  float expected = 0;
  atomic_store(&mock_state()->launch_delay_us, 3000);
  for (int i = 0; i < 3; ++i) {
    assert_ok(GPU_RUN(plain, stream, in, out, NULL));
    assert_ok(GPU_RUN(host, stream, out, in, NULL));
    expected = gpu_expected(2, gpu_expected(2, i ? expected : 2)) + 1;
  }
  assert_ok(pestle_event_record(event, stream));
  assert_false(pestle_event_is_signalled(event));
  assert_true(atomic_load(&mock_state()->kernels_run) < 6);
  assert_ok(pestle_event_wait(event, NULL));
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 18);
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(x, 0, back, sizeof(back)));
  assert_true(back[2] == expected);
  // With nothing left to the thread the caller queues again.
  assert_ok(GPU_RUN(plain, stream, in, out, NULL));
  assert_ok(pestle_stream_synchronize(stream));
  pestle_event_release(event);
  pestle_stream_release(stream);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(plain);
  pestle_executable_release(host);
  gpu_context_end(context);
}

// One frame serves a stream, however far ahead the host is; two streams do not
// share one.
static void test_frames(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* streams[2];
  pestle_buffer_t *x[2], *y[2];
  for (int s = 0; s < 2; ++s) {
    assert_ok(pestle_stream_create(device, &streams[s]));
    x[s] = gpu_input(device, (float)(10 * s));
    y[s] = gpu_output(device);
  }
  mock_count_anew();
  atomic_store(&mock_state()->launch_delay_us, 500);
  for (int run = 0; run < 8; ++run) {
    for (int s = 0; s < 2; ++s) {
      pestle_tensor_t in = gpu_view(x[s], 0), out = gpu_view(y[s], 0);
      assert_ok(GPU_RUN(e, streams[s], in, out, NULL));
    }
  }
  assert_int_equal(gpu_calls(MOCK_ALLOCATE), 2);  // arenas
  for (int s = 0; s < 2; ++s) {
    assert_ok(pestle_stream_synchronize(streams[s]));
    gpu_check_buffer(y[s], (float)(10 * s));
    pestle_stream_release(streams[s]);
    pestle_buffer_release(x[s]);
    pestle_buffer_release(y[s]);
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

// What fails after the call has returned is the stream's to tell.
static void test_late_failure(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  mock_artifact_t trap = mock_artifact(test_entry_of(TEST_TRAP), GPU_COUNT);
  memcpy(w.code + w.kernels[1].code_offset, &trap, sizeof(trap));
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_executable_t* good = gpu_chain(context);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(gpu_device(context, "mock"), &stream));
  float x[GPU_COUNT] = {0}, y[GPU_COUNT] = {0};
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  assert_ok(GPU_RUN(e, stream, in, out, NULL));
  assert_error(pestle_stream_synchronize(stream), INTERNAL,
               "on a stream of device mock:0");
  assert_ok(pestle_stream_synchronize(stream));
  assert_ok(GPU_RUN(good, stream, in, out, NULL));
  assert_ok(pestle_stream_synchronize(stream));
  assert_true(y[5] == gpu_expected(5, 0));
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_executable_release(good);
  gpu_context_end(context);
}

static void test_wrong_streams(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  int64_t dims[] = {4, 6};
  pestle_executable_t* cpu = fixture_add1(context, 2, dims);
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  static const char* const others[] = {"mock:1", "mockb", "test"};
  for (int i = 0; i < 3; ++i) {
    pestle_stream_t* stream;
    char text[100];
    pestle_device_t* device = gpu_device(context, others[i]);
    assert_ok(pestle_stream_create(device, &stream));
    snprintf(text, sizeof(text),
             "of device %s, but the executable runs on mock:0",
             pestle_device_name(device));
    assert_error(GPU_RUN(e, stream, in, out, NULL), INVALID_ARGUMENT, text);
    if (i < 2) {
      assert_error(GPU_RUN(cpu, stream, in, out, NULL), INVALID_ARGUMENT,
                   "runs on test");
    }
    pestle_stream_release(stream);
  }
  pestle_executable_release(cpu);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Events and fences ---

// |from| makes y of x; |to| makes z of y when the event says so. The streams
// are of two backends, or one is a CPU's.
static void pass_on(pestle_context_t* context, const char* from,
                    const char* event_of, const char* to) {
  static plan_writer_t w;
  pestle_device_t* devices[2] = {gpu_device(context, from),
                                 gpu_device(context, to)};
  pestle_stream_t* streams[2];
  pestle_executable_t* e[2];
  int64_t dims[] = {4, 6};
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_stream_create(devices[i], &streams[i]));
    const char* backend = pestle_device_backend(devices[i])->name;
    if (strcmp(backend, "test") != 0) {
      gpu_write_chain(&w, backend);
      pestle_plan_t* plan = fixture_plan(context, &w);
      assert_ok(pestle_executable_create(context, plan, devices[i], &e[i]));
      pestle_plan_release(plan);
    } else {
      e[i] = fixture_add1(context, 2, dims);
    }
  }
  float x[GPU_COUNT] = {0}, y[GPU_COUNT] = {0}, z[GPU_COUNT] = {0};
  pestle_tensor_t first = gpu_host_view(x), between = gpu_host_view(y);
  pestle_tensor_t last = gpu_host_view(z);
  pestle_event_t* event;
  assert_ok(pestle_event_create(gpu_device(context, event_of), &event));
  for (int run = 0; run < 3; ++run) {
    x[4] = (float)run;
    assert_ok(GPU_RUN(e[0], streams[0], first, between, NULL));
    assert_ok(pestle_event_record(event, streams[0]));
    assert_ok(pestle_event_wait(event, streams[1]));
    assert_ok(GPU_RUN(e[1], streams[1], between, last, NULL));
    assert_ok(pestle_event_record(event, streams[1]));
    assert_ok(pestle_event_wait(event, NULL));
    assert_true(pestle_event_is_signalled(event));
    bool cpu = !strcmp(from, "test");
    float middle = cpu ? x[4] + 1 : gpu_expected(4, x[4]);
    assert_true(y[4] == middle);
    cpu = !strcmp(to, "test");
    assert_true(z[4] == (cpu ? middle + 1 : gpu_expected(4, middle)));
  }
  assert_ok(pestle_event_record(event, NULL));
  assert_true(pestle_event_is_signalled(event));
  pestle_event_release(event);
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_stream_synchronize(streams[i]));
    pestle_stream_release(streams[i]);
    pestle_executable_release(e[i]);
  }
}

static void test_events(void** state) {
  (void)state;
  static const char* const devices[] = {"test", "mock", "mock:1", "mockb"};
  pestle_context_t* context = gpu_context(NULL);
  atomic_store(&mock_state()->launch_delay_us, 200);
  for (int from = 0; from < 4; ++from) {
    for (int event = 0; event < 4; ++event) {
      for (int to = 0; to < 4; ++to) {
        pass_on(context, devices[from], devices[event], devices[to]);
      }
    }
  }
  gpu_context_end(context);
}

// A record that fails leaves nobody waiting.
static void test_failed_record(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* stream;
  pestle_event_t* event;
  assert_ok(pestle_event_create(device, &event));
  assert_ok(pestle_stream_create(device, &stream));
  mock_fail(MOCK_EVENT_SIGNAL, 1, PESTLE_STATUS_INTERNAL);
  assert_code(pestle_event_record(event, stream), INTERNAL);
  assert_ok(pestle_event_wait(event, NULL));
  pestle_stream_release(stream);
  pestle_event_release(event);
  gpu_context_end(context);
}

// Within a backend nobody waits: both calls return before the kernels run.
static void test_native_events(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* streams[2];
  pestle_event_t* event;
  assert_ok(pestle_event_create(device, &event));
  assert_ok(pestle_stream_create(device, &streams[0]));
  assert_ok(pestle_stream_create(device, &streams[1]));
  pestle_buffer_t *x = gpu_input(device, 0), *y = gpu_output(device);
  pestle_buffer_t* z = gpu_output(device);
  pestle_tensor_t views[] = {gpu_view(x, 0), gpu_view(y, 0), gpu_view(z, 0)};
  atomic_store(&mock_state()->launch_delay_us, 20000);
  assert_ok(GPU_RUN(e, streams[0], views[0], views[1], NULL));
  assert_ok(pestle_event_record(event, streams[0]));
  assert_ok(pestle_event_wait(event, streams[1]));
  assert_ok(GPU_RUN(e, streams[1], views[1], views[2], NULL));
  assert_true(atomic_load(&mock_state()->kernels_run) < 6);
  assert_ok(pestle_stream_synchronize(streams[1]));
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(z, 0, back, sizeof(back)));
  assert_true(back[2] == gpu_expected(2, gpu_expected(2, 2)));
  pestle_stream_release(streams[0]);
  pestle_stream_release(streams[1]);
  pestle_event_release(event);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_buffer_release(z);
  pestle_executable_release(e);
  gpu_context_end(context);
}

static void use_fence(pestle_context_t* context) {
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t *writer, *reader, *elsewhere;
  pestle_fence_t* fence;
  assert_ok(pestle_fence_create(device, &fence));
  assert_ok(pestle_stream_create(device, &writer));
  assert_ok(pestle_stream_create(device, &reader));
  assert_ok(pestle_stream_create(gpu_device(context, "mockb"), &elsewhere));
  pestle_buffer_t *x = gpu_input(device, 0), *y = gpu_output(device);
  pestle_buffer_t *z = gpu_output(device),
                  *far = gpu_output(gpu_device(context, "mockb"));
  pestle_tensor_t views[] = {gpu_view(x, 0), gpu_view(y, 0), gpu_view(z, 0)};
  assert_ok(pestle_fence_wait(fence, reader, y));  // nothing to wait for
  assert_ok(GPU_RUN(e, writer, views[0], views[1], NULL));
  assert_ok(pestle_fence_update(fence, writer, y, true));
  assert_ok(pestle_fence_wait(fence, reader, y));
  assert_ok(GPU_RUN(e, reader, views[1], views[2], NULL));
  assert_ok(pestle_fence_wait(fence, NULL, y));
  gpu_check_buffer(y, 0);
  assert_ok(pestle_fence_wait(fence, elsewhere, y));
  assert_error(pestle_fence_update(fence, elsewhere, y, false),
               INVALID_ARGUMENT, "the stream is of device mockb:0");
  assert_error(pestle_fence_update(fence, writer, far, false), INVALID_ARGUMENT,
               "the buffer is of device mockb:0");
  assert_ok(pestle_stream_synchronize(reader));
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(z, 0, back, sizeof(back)));
  assert_true(back[1] == gpu_expected(1, gpu_expected(1, 1)));
  pestle_stream_release(writer);
  pestle_stream_release(reader);
  pestle_stream_release(elsewhere);
  pestle_fence_release(fence);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_buffer_release(z);
  pestle_buffer_release(far);
  pestle_executable_release(e);
}

// The backend's, and what stands in for them.
static void test_fences(void** state) {
  (void)state;
  for (int native = 0; native < 2; ++native) {
    mock_reset();
    if (!native) mock_state()->missing = UINT64_C(1) << MOCK_FENCE_WAIT;
    pestle_context_t* context = gpu_context(NULL);
    atomic_store(&mock_state()->launch_delay_us, 3000);
    use_fence(context);
    assert_int_equal(gpu_calls(MOCK_FENCE_UPDATE), native);
    gpu_context_end(context);
  }
  // On a CPU.
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "test");
  pestle_fence_t* fence;
  pestle_stream_t* stream;
  pestle_buffer_t* buffer = gpu_output(device);
  assert_ok(pestle_fence_create(device, &fence));
  assert_ok(pestle_stream_create(device, &stream));
  assert_ok(pestle_fence_update(fence, stream, buffer, false));
  assert_ok(pestle_fence_wait(fence, stream, buffer));
  assert_ok(pestle_fence_wait(fence, NULL, buffer));
  assert_ok(pestle_stream_synchronize(stream));
  pestle_stream_release(stream);
  pestle_fence_release(fence);
  pestle_buffer_release(buffer);
  gpu_context_end(context);
}

// --- Recordings ---

static void run_once(pestle_executable_t* e, pestle_buffer_t* x,
                     pestle_buffer_t* y) {
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  mock_count_anew();
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
}

static void assert_launches(unsigned launches, unsigned recordings,
                            unsigned graphs) {
  assert_int_equal(gpu_calls(MOCK_LAUNCH), launches);
  assert_int_equal(gpu_calls(MOCK_GRAPH_END), recordings);
  assert_int_equal(gpu_calls(MOCK_GRAPH_LAUNCH), graphs);
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 3);
}

static void test_recordings(void** state) {
  enum { KEPT = 64 };
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t* x[KEPT + 1];
  pestle_buffer_t* y = gpu_output(device);
  for (int i = 0; i <= KEPT; ++i)
    x[i] = gpu_input(device, (float)(10 * i));
  run_once(e, x[0], y);
  assert_launches(3, 0, 0);  // new addresses: step by step
  run_once(e, x[0], y);
  assert_launches(3, 1, 1);  // the second time: recorded
  for (int i = 0; i < 3; ++i) {
    run_once(e, x[0], y);
    assert_launches(0, 0, 1);  // then one launch
  }
  gpu_check_buffer(y, 0);
  // So many sets of addresses are kept.
  for (int i = 1; i < KEPT; ++i) {
    run_once(e, x[i], y);
    run_once(e, x[i], y);
    gpu_check_buffer(y, (float)(10 * i));
  }
  for (int i = 0; i < KEPT; ++i) {
    run_once(e, x[i], y);
    assert_launches(0, 0, 1);
    gpu_check_buffer(y, (float)(10 * i));
  }
  assert_int_equal(atomic_load(&mock_state()->live_graphs), KEPT);
  // One more takes the place of the one that was not used for longest.
  run_once(e, x[KEPT], y);
  assert_launches(3, 0, 0);
  assert_int_equal(atomic_load(&mock_state()->live_graphs), KEPT - 1);
  run_once(e, x[1], y);
  assert_launches(0, 0, 1);
  run_once(e, x[0], y);
  assert_launches(3, 0, 0);
  gpu_check_buffer(y, 0);
  for (int i = 0; i <= KEPT; ++i)
    pestle_buffer_release(x[i]);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// Host views have the addresses of the frame's staging memory: they are one set.
// So do streams, and what is thrown away may still be running.
static void test_recordings_of_host_views(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  for (int run = 0; run < 5; ++run) {
    float x[GPU_COUNT], y[GPU_COUNT];
    for (int i = 0; i < GPU_COUNT; ++i)
      x[i] = (float)(run + i);
    pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
    mock_count_anew();
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    gpu_check(y, (float)run);
    assert_launches(run < 2 ? 3 : 0, run == 1, run > 0);
  }
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  pestle_buffer_t *x[7], *y[7];
  atomic_store(&mock_state()->launch_delay_us, 300);
  for (int i = 0; i < 7; ++i) {
    x[i] = gpu_input(device, (float)i);
    y[i] = gpu_output(device);
    pestle_tensor_t in = gpu_view(x[i], 0), out = gpu_view(y[i], 0);
    for (int run = 0; run < 3; ++run)
      assert_ok(GPU_RUN(e, stream, in, out, NULL));
  }
  assert_ok(pestle_stream_synchronize(stream));
  for (int i = 0; i < 7; ++i) {
    gpu_check_buffer(y[i], (float)i);
    pestle_buffer_release(x[i]);
    pestle_buffer_release(y[i]);
  }
  pestle_stream_release(stream);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// A backend that refuses one, or lacks them, gets the steps one by one.
static void test_no_recordings(void** state) {
  (void)state;
  static const mock_slot_t slots[] = {MOCK_GRAPH_BEGIN, MOCK_GRAPH_END};
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t *x = gpu_input(device, 2), *y = gpu_output(device);
  for (int s = 0; s < 2; ++s) {
    pestle_executable_t* e = gpu_chain(context);
    run_once(e, x, y);
    mock_fail(slots[s], 1, PESTLE_STATUS_UNSUPPORTED);
    for (int run = 0; run < 3; ++run) {
      run_once(e, x, y);
      gpu_check_buffer(y, 2);
      assert_int_equal(gpu_calls(MOCK_GRAPH_LAUNCH), 0);
      assert_int_equal(atomic_load(&mock_state()->kernels_run), 3);
      assert_int_equal(gpu_calls(MOCK_GRAPH_BEGIN), !run);
    }
    pestle_executable_release(e);
  }
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  gpu_context_end(context);
}

// --- Costs ---

// Nothing is allocated by a run, on the host or on the device, but the outputs
// that a run makes there: those are the backend's, which may cache.
static void test_steady_state(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = fixture_options();
  options.allocator = pestle_test_allocator(&memory);
  pestle_context_t* context = gpu_context(&options);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t *x = gpu_input(device, 0), *y = gpu_output(device);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  float host_x[GPU_COUNT] = {0}, host_y[GPU_COUNT];
  int64_t strides[] = {-6, -1};
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  pestle_tensor_t host_in = gpu_host_view(host_x);
  pestle_tensor_t host_out = gpu_host_view(host_y);
  pestle_tensor_t turned = host_in;
  turned.strides = strides;
  turned.byte_offset = GPU_BYTES - 4;
  size_t before = 0, made = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 4) {
      before = atomic_load(&memory.request_count);
      mock_count_anew();
    }
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    assert_ok(GPU_RUN(e, NULL, host_in, host_out, NULL));
    assert_ok(GPU_RUN(e, NULL, turned, host_out, NULL));
    assert_ok(GPU_RUN(e, stream, in, out, NULL));
    assert_ok(pestle_stream_synchronize(stream));
    pestle_tensor_t allocated = {0};
    assert_ok(GPU_RUN(e, NULL, host_in, allocated, NULL));
    pestle_tensor_release(e, &allocated);
    assert_ok(GPU_RUN(e, NULL, in, allocated, NULL));
    pestle_tensor_release(e, &allocated);
    made += i >= 4;
  }
  assert_int_equal(atomic_load(&memory.request_count), before);
  assert_int_equal(gpu_calls(MOCK_ALLOCATE), made);
  assert_int_equal(gpu_calls(MOCK_STREAM_CREATE), 0);
  assert_int_equal(gpu_calls(MOCK_EVENT_CREATE), 0);
  pestle_stream_release(stream);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
  pestle_test_allocator_check(&memory);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_asynchronous),  TEST(test_host_views),
      TEST(test_nobody_waits),  TEST(test_frames),
      TEST(test_late_failure),  TEST(test_wrong_streams),
      TEST(test_events),        TEST(test_failed_record),
      TEST(test_native_events), TEST(test_fences),
      TEST(test_recordings),    TEST(test_recordings_of_host_views),
      TEST(test_no_recordings), TEST(test_steady_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
