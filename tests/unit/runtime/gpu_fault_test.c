// SPDX-License-Identifier: Apache-2.0
// Backends that lack or refuse a function, call by call: each failure has its
// sentence, nothing is lost, and the same objects work afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "unit/runtime/gpu_fixture.h"

static int set_up(void** state) {
  (void)state;
  mock_reset();
  return 0;
}

// --- One of everything ---

typedef struct work_t {
  pestle_context_t* context;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_stream_t* stream;
  pestle_event_t* event;
  pestle_fence_t* fence;
  pestle_buffer_t *x, *y, *z;
  pestle_tensor_t made;
} work_t;

static pestle_status_t make_plan(work_t* work) {
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  // And a kernel that runs on the CPU: y = y + 1, and a branch on what is there.
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
  size_t size;
  void* data = plan_finish(&w, &size);
  pestle_status_t status =
      pestle_plan_create(work->context, data, size, free, data, &work->plan);
  if (status) free(data);
  return status;
}

static pestle_status_t use_executable(work_t* work, pestle_device_t* device) {
  float host[2 * GPU_COUNT], back[GPU_COUNT];
  int64_t strides[] = {12, 2};
  for (int i = 0; i < 2 * GPU_COUNT; ++i)
    host[i] = (float)(i / 2);
  pestle_tensor_t in = gpu_host_view(host);
  in.strides = strides;
  pestle_tensor_t x = gpu_view(work->x, 0), y = gpu_view(work->y, 0);
  PESTLE_TRY(pestle_buffer_write(work->x, 0, host, GPU_BYTES));
  for (int run = 0; run < 3; ++run) {
    work->made = (pestle_tensor_t){0};
    PESTLE_TRY(GPU_RUN(work->e, NULL, in, work->made, NULL));
    assert_true(((float*)work->made.data)[7] == gpu_expected(7, 7) + 1);
    pestle_tensor_release(work->e, &work->made);
    PESTLE_TRY(GPU_RUN(work->e, NULL, x, work->made, NULL));
    pestle_tensor_release(work->e, &work->made);
  }
  if (!work->stream) PESTLE_TRY(pestle_stream_create(device, &work->stream));
  PESTLE_TRY(pestle_event_create(device, &work->event));
  PESTLE_TRY(pestle_fence_create(device, &work->fence));
  PESTLE_TRY(GPU_RUN(work->e, work->stream, x, y, NULL));
  PESTLE_TRY(pestle_event_record(work->event, work->stream));
  PESTLE_TRY(pestle_event_wait(work->event, work->stream));
  PESTLE_TRY(pestle_fence_update(work->fence, work->stream, work->y, true));
  PESTLE_TRY(pestle_fence_wait(work->fence, work->stream, work->y));
  PESTLE_TRY(pestle_event_wait(work->event, NULL));
  PESTLE_TRY(pestle_event_status(work->event));
  PESTLE_TRY(pestle_buffer_copy(work->y, 0, work->z, 0, GPU_BYTES));
  PESTLE_TRY(pestle_buffer_read(work->z, 0, back, GPU_BYTES));
  assert_true(back[9] == gpu_expected(9, 4) + 1);
  return pestle_stream_synchronize(work->stream);
}

// The chain alone, of which there are recordings, beside and on a stream that is
// done before the next run: nothing else orders the two.
static pestle_status_t use_recordings(work_t* work) {
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  size_t size;
  void* data = plan_finish(&w, &size);
  pestle_plan_t* plan;
  pestle_status_t status =
      pestle_plan_create(work->context, data, size, free, data, &plan);
  if (status) {
    free(data);
    return status;
  }
  pestle_executable_t* e;
  status = pestle_executable_create(work->context, plan, NULL, &e);
  pestle_plan_release(plan);
  if (status) return status;
  pestle_tensor_t x = gpu_view(work->x, 0), y = gpu_view(work->y, 0);
  for (int run = 0; run < 4 && !status; ++run) {
    bool queued = run & 1;
    status = GPU_RUN(e, queued ? work->stream : NULL, x, y, NULL);
    if (!status && queued) status = pestle_stream_synchronize(work->stream);
  }
  if (!status) status = pestle_stream_synchronize(work->stream);
  pestle_executable_release(e);
  return status;
}

static pestle_status_t do_all(work_t* work) {
  pestle_device_t* device;
  PESTLE_TRY(
      pestle_registry_add_static(work->context, mock_abi_info, mock_init));
  PESTLE_TRY(pestle_context_device(work->context, "mock", &device));
  PESTLE_TRY(make_plan(work));
  PESTLE_TRY(
      pestle_executable_create(work->context, work->plan, NULL, &work->e));
  PESTLE_TRY(pestle_buffer_create(device, GPU_BYTES, &work->x));
  PESTLE_TRY(pestle_buffer_create(device, GPU_BYTES, &work->y));
  PESTLE_TRY(pestle_buffer_create(device, GPU_BYTES, &work->z));
  PESTLE_TRY(use_executable(work, device));
  return use_recordings(work);
}

static void undo_all(work_t* work) {
  pestle_fence_release(work->fence);
  pestle_event_release(work->event);
  pestle_stream_release(work->stream);
  if (work->e) pestle_tensor_release(work->e, &work->made);
  pestle_buffer_release(work->x);
  pestle_buffer_release(work->y);
  pestle_buffer_release(work->z);
  pestle_executable_release(work->e);
  pestle_plan_release(work->plan);
  gpu_context_end(work->context);
}

// --- Slots that are missing ---

// What no device half can do without (load, unload, deallocate) the registry
// refuses; what no run can do without is refused where a plan is loaded; the
// rest has a substitute.

typedef struct lack_t {
  mock_slot_t slot;
  const char* text;  // NULL: it works without
} lack_t;

static void test_missing_slots(void** state) {
  (void)state;
  static const lack_t lacks[] = {
      {MOCK_ALLOCATE, "mock:0 cannot run plans: it has no allocate()"},
      {MOCK_COPY_FROM_HOST, "cannot run plans: it has no copy_from_host()"},
      {MOCK_COPY_TO_HOST, "cannot run plans: it has no copy_to_host()"},
      {MOCK_LAUNCH, "mock:0 cannot run plans: it has no launch()"},
      {MOCK_COPY_DEVICE, NULL},
      {MOCK_BUFFER_RAW_PTR, NULL},
      {MOCK_STREAM_CREATE, "device mock:0 offers no streams"},
      {MOCK_STREAM_SYNCHRONIZE, "device mock:0 offers no streams"},
      {MOCK_STREAM_DESTROY, "device mock:0 offers no streams"},
      {MOCK_QUEUE_FROM_HOST, NULL},
      {MOCK_QUEUE_TO_HOST, NULL},
      {MOCK_QUEUE_COPY, NULL},
      {MOCK_EVENT_CREATE, NULL},
      {MOCK_EVENT_DESTROY, NULL},
      {MOCK_EVENT_WAIT, NULL},
      {MOCK_EVENT_WAIT_STREAM, NULL},
      {MOCK_EVENT_SIGNAL, NULL},
      {MOCK_EVENT_IS_SIGNALLED, NULL},
      {MOCK_FENCE_CREATE, NULL},
      {MOCK_FENCE_DESTROY, NULL},
      {MOCK_FENCE_UPDATE, NULL},
      {MOCK_FENCE_WAIT, NULL},
      {MOCK_MEMORY_GET, NULL},
      {MOCK_MEMORY_SET, NULL},
      {MOCK_PROPERTY, NULL},
      {MOCK_GRAPH_BEGIN, NULL},
      {MOCK_GRAPH_END, NULL},
      {MOCK_GRAPH_LAUNCH, NULL},
      {MOCK_GRAPH_DESTROY, NULL},
      {MOCK_STREAM_HOST_CALL, NULL},
      {MOCK_STREAM_NATIVE, NULL},
      {MOCK_WAIT_NATIVE, NULL},
      {MOCK_NATIVE_WAIT, NULL},
      {MOCK_ADOPT, NULL},
      {MOCK_RELEASE_ADOPTED, NULL},
      {MOCK_HANDLE_OF, NULL},
      {MOCK_WHERE, NULL},
      {MOCK_DLPACK_DEVICE, NULL},
      {MOCK_NATIVE_CALL, NULL},
  };
  const int count = (int)(sizeof(lacks) / sizeof(lacks[0]));
  assert_int_equal(count, MOCK_SLOT_COUNT - 3);
  for (int i = 0; i < count; ++i) {
    mock_reset();
    mock_state()->missing = UINT64_C(1) << lacks[i].slot;
    work_t work = {.context = fixture_context(NULL)};
    pestle_status_t status = do_all(&work);
    if (lacks[i].text) {
      assert_error(status, UNSUPPORTED, lacks[i].text);
    } else {
      assert_ok(status);
    }
    undo_all(&work);
  }
}

// A plugin of minor version 0 has no launches; one whose memory alone is there
// has buffers.
static void test_old_table(void** state) {
  (void)state;
  mock_state()->minor = 0;
  work_t work = {.context = fixture_context(NULL)};
  assert_error(do_all(&work), UNSUPPORTED, "it has no launch()");
  pestle_device_t* device = gpu_device(work.context, "mock");
  work.x = gpu_input(device, 4);
  work.y = gpu_output(device);
  assert_ok(pestle_buffer_copy(work.x, 0, work.y, 0, GPU_BYTES));
  assert_null(pestle_buffer_host_data(work.y));
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(work.y, 0, back, GPU_BYTES));
  assert_true(back[3] == 7);
  undo_all(&work);
}

// --- Calls that fail ---

// The k-th call of each slot fails: the call that needed it says why, and
// nothing is lost.
static void test_every_call(void** state) {
  (void)state;
  for (int slot = 0; slot < MOCK_SLOT_COUNT; ++slot) {
    for (int k = 1;; ++k) {
      mock_reset();
      pestle_test_allocator_t memory;
      pestle_test_allocator_init(&memory, 0);
      pestle_context_options_t options = fixture_options();
      options.allocator = pestle_test_allocator(&memory);
      work_t work = {.context = fixture_context(&options)};
      mock_fail((mock_slot_t)slot, k, PESTLE_STATUS_RESOURCE_EXHAUSTED);
      pestle_status_t status = do_all(&work);
      bool failed = atomic_load(&mock_state()->fail_slot) < 0;
      mock_fail(MOCK_SLOT_COUNT, 0, PESTLE_STATUS_OK);
      // What is no recording becomes plain launches, and what a destructor
      // waits for has nobody to tell.
      bool silent = slot == MOCK_EVENT_WAIT || (gpu_calls(MOCK_GRAPH_BEGIN) &&
                                                !gpu_calls(MOCK_GRAPH_LAUNCH));
      if (status) {
        assert_true(failed);
        assert_error(status, RESOURCE_EXHAUSTED, "fails as it was told to");
      } else {
        assert_true(!failed || silent);
      }
      undo_all(&work);
      pestle_test_allocator_check(&memory);
      if (!failed) break;
      assert_true(k < 1000);
    }
  }
}

// The same for memory of the host.
static void test_host_memory(void** state) {
  (void)state;
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    mock_reset();
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t options = fixture_options();
    options.allocator = pestle_test_allocator(&memory);
    work_t work = {.context = fixture_context(&options)};
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status = do_all(&work);
    bool failed = pestle_test_allocator_failed(&memory);
    if (status) {
      ++failures;
      assert_true(failed);
      assert_code(status, OUT_OF_MEMORY);
    }
    undo_all(&work);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
    assert_true(k < 10000);
  }
  assert_true(failures > 20);
}

static void test_device_memory(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  const pestle_backend_t* backend = pestle_device_backend(device);
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  uint64_t before;
  assert_ok(backend->device->memory_set(backend->self, 0, PESTLE_MEMORY_LIMIT,
                                        200, &before));
  assert_error(GPU_RUN(e, NULL, in, out, NULL), OUT_OF_MEMORY,
               "while allocating 256 bytes on mock:0");
  assert_ok(backend->device->memory_set(backend->self, 0, PESTLE_MEMORY_LIMIT,
                                        before, NULL));
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  assert_true(y[6] == gpu_expected(6, 0));
  pestle_executable_release(e);
  gpu_context_end(context);
}

static void test_lost(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_stream_t* stream;
  pestle_buffer_t* x = gpu_input(device, 1);
  pestle_buffer_t *y = gpu_output(device), *z = gpu_output(device);
  pestle_tensor_t in = gpu_view(x, 0), made = {0};
  pestle_tensor_t out = gpu_view(y, 0), queued = gpu_view(z, 0);
  assert_ok(pestle_stream_create(device, &stream));
  for (int run = 0; run < 3; ++run) {
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    assert_ok(GPU_RUN(e, stream, in, queued, NULL));
  }
  atomic_store(&mock_state()->lost, true);
  for (int run = 0; run < 3; ++run) {
    assert_error(GPU_RUN(e, NULL, in, out, NULL), UNAVAILABLE, "is lost");
    assert_error(GPU_RUN(e, stream, in, queued, NULL), UNAVAILABLE, "is lost");
    assert_error(GPU_RUN(e, NULL, in, made, NULL), UNAVAILABLE, "is lost");
    assert_null(made.data);
  }
  assert_error(pestle_stream_synchronize(stream), UNAVAILABLE, "is lost");
  assert_error(pestle_buffer_read(y, 0, &made, 8), UNAVAILABLE,
               "from device mock:0");
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_buffer_release(z);
  gpu_context_end(context);
}

// --- fork() ---

// In a child: what the parent's devices have is refused, and let go of without
// a word to them.
static int use_in_child(work_t* work) {
  pestle_device_t* device = gpu_device(work->context, "mock");
  pestle_tensor_t in = gpu_view(work->x, 0), out = gpu_view(work->y, 0);
  char byte;
  pestle_buffer_t* buffer;
  pestle_executable_t* e;
  pestle_event_t* event;
  assert_error(GPU_RUN(work->e, NULL, in, out, NULL), UNAVAILABLE,
               "device mock:0 was opened before fork()");
  assert_code(GPU_RUN(work->e, work->stream, in, out, NULL), UNAVAILABLE);
  assert_code(pestle_stream_synchronize(work->stream), UNAVAILABLE);
  assert_code(pestle_event_record(work->event, work->stream), UNAVAILABLE);
  assert_code(pestle_event_wait(work->event, NULL), UNAVAILABLE);
  assert_false(pestle_event_is_signalled(work->event));
  assert_code(pestle_event_create(device, &event), UNAVAILABLE);
  assert_code(pestle_fence_update(work->fence, work->stream, work->x, false),
              UNAVAILABLE);
  assert_code(pestle_buffer_read(work->x, 0, &byte, 1), UNAVAILABLE);
  assert_code(pestle_buffer_copy(work->x, 0, work->y, 0, 1), UNAVAILABLE);
  assert_null(pestle_buffer_host_data(work->x));
  assert_code(pestle_buffer_create(device, 5, &buffer), UNAVAILABLE);
  assert_code(pestle_executable_create(work->context, work->plan, NULL, &e),
              UNAVAILABLE);
  pestle_fence_release(work->fence);
  pestle_event_release(work->event);
  pestle_stream_release(work->stream);
  pestle_executable_release(work->e);
  pestle_buffer_release(work->x);
  pestle_buffer_release(work->y);
  return 0;
}

static void test_fork(void** state) {
  (void)state;
  if (TEST_TSAN) skip();  // its runtime does not let threads fork
  work_t work = {.context = fixture_context(NULL)};
  assert_ok(do_all(&work));
  atomic_store(&mock_state()->launch_delay_us, 2000);
  pestle_tensor_t in = gpu_view(work.x, 0), out = gpu_view(work.y, 0);
  pid_t child = fork();
  if (!child) _exit(use_in_child(&work));
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  // The parent goes on.
  assert_ok(GPU_RUN(work.e, work.stream, in, out, NULL));
  assert_ok(pestle_stream_synchronize(work.stream));
  undo_all(&work);
}

// --- Threads ---

typedef struct worker_t {
  pestle_thread_t thread;
  pestle_executable_t* e;
  pestle_device_t* device;
  int number;
  bool failed;
} worker_t;

static pestle_status_t work_once(worker_t* worker, pestle_stream_t* stream,
                                 pestle_buffer_t* x, pestle_buffer_t* y,
                                 float first) {
  float host[GPU_COUNT], back[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    host[i] = first + (float)i;
  pestle_tensor_t in = gpu_host_view(host), out = gpu_host_view(back);
  PESTLE_TRY(GPU_RUN(worker->e, NULL, in, out, NULL));
  worker->failed |= back[5] != gpu_expected(5, host[5]);
  PESTLE_TRY(pestle_buffer_write(x, 0, host, GPU_BYTES));
  pestle_tensor_t device_in = gpu_view(x, 0), device_out = gpu_view(y, 0);
  PESTLE_TRY(GPU_RUN(worker->e, stream, device_in, device_out, NULL));
  PESTLE_TRY(pestle_stream_synchronize(stream));
  PESTLE_TRY(pestle_buffer_read(y, 0, back, GPU_BYTES));
  worker->failed |= back[7] != gpu_expected(7, host[7]);
  return NULL;
}

static void work_main(void* argument) {
  worker_t* worker = argument;
  pestle_stream_t* stream = NULL;
  pestle_buffer_t *x = NULL, *y = NULL;
  pestle_status_t status = pestle_stream_create(worker->device, &stream);
  if (!status) status = pestle_buffer_create(worker->device, GPU_BYTES, &x);
  if (!status) status = pestle_buffer_create(worker->device, GPU_BYTES, &y);
  for (int run = 0; run < 50 && !status; ++run) {
    status =
        work_once(worker, stream, x, y, (float)(100 * worker->number + run));
  }
  worker->failed |= status != NULL;
  pestle_status_release(status);
  pestle_stream_release(stream);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
}

// One executable, four threads, each with runs that wait and a stream.
static void test_threads(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  worker_t workers[4];
  for (int i = 0; i < 4; ++i) {
    workers[i] =
        (worker_t){.e = e, .device = gpu_device(context, "mock"), .number = i};
    assert_ok(pestle_thread_start(work_main, &workers[i], "worker",
                                  &workers[i].thread));
  }
  for (int i = 0; i < 4; ++i) {
    pestle_thread_join(&workers[i].thread);
    assert_false(workers[i].failed);
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_missing_slots), TEST(test_old_table),     TEST(test_every_call),
      TEST(test_host_memory),   TEST(test_device_memory), TEST(test_lost),
      TEST(test_fork),          TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
