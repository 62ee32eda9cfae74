// SPDX-License-Identifier: Apache-2.0
// Runs on a device whose memory the host cannot touch: views of both, steps
// that the host must see, kernels that run on the CPU instead, mixed devices.
#include <errno.h>
#include <unistd.h>

#include "unit/runtime/gpu_fixture.h"

static int set_up(void** state) {
  (void)state;
  mock_reset();
  return 0;
}

// --- Buffers ---

static void test_buffers(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_buffer_t *first, *second, *other, *host;
  assert_ok(pestle_buffer_create(gpu_device(context, "mock"), 100, &first));
  assert_ok(pestle_buffer_create(gpu_device(context, "mock:1"), 100, &second));
  assert_ok(pestle_buffer_create(gpu_device(context, "mockb"), 100, &other));
  assert_ok(pestle_buffer_create(gpu_device(context, "ref"), 100, &host));
  // The system itself cannot read there.
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], pestle_buffer_data(first), 1), -1);
  assert_int_equal(errno, EFAULT);
  close(ends[0]), close(ends[1]);
  assert_ptr_equal(pestle_buffer_host_data(host), pestle_buffer_data(host));
  assert_null(pestle_buffer_host_data(first));
  char text[100] = "over the hills", back[100] = "";
  assert_ok(pestle_buffer_write(first, 7, text, 15));
  assert_ok(pestle_buffer_copy(first, 7, first, 50, 15));
  assert_int_equal(gpu_calls(MOCK_COPY_DEVICE), 1);
  assert_ok(pestle_buffer_copy(first, 50, second, 1, 15));
  assert_int_equal(gpu_calls(MOCK_COPY_DEVICE), 2);
  assert_string_equal((char*)pestle_buffer_host_data(second) + 1, text);
  // Across backends: through the host.
  assert_ok(pestle_buffer_copy(second, 1, other, 2, 15));
  assert_int_equal(gpu_calls(MOCK_COPY_DEVICE), 2);
  assert_ok(pestle_buffer_copy(other, 2, host, 3, 15));
  assert_string_equal((char*)pestle_buffer_data(host) + 3, text);
  assert_ok(pestle_buffer_copy(host, 3, other, 40, 15));
  assert_ok(pestle_buffer_read(other, 40, back, 15));
  assert_string_equal(back, text);
  assert_ok(pestle_buffer_copy(host, 3, host, 5, 15));
  assert_string_equal((char*)pestle_buffer_data(host) + 5, text);
  assert_ok(pestle_buffer_copy(first, 100, second, 100, 0));
  assert_error(pestle_buffer_copy(first, 90, second, 0, 11), INVALID_ARGUMENT,
               "on device mock:0");
  assert_error(pestle_buffer_copy(first, 0, second, 90, 11), INVALID_ARGUMENT,
               "on device mock:1");
  assert_error(pestle_buffer_copy(first, 0, first, 5, 6), INVALID_ARGUMENT,
               "overlap");
  pestle_buffer_release(first);
  pestle_buffer_release(second);
  pestle_buffer_release(other);
  pestle_buffer_release(host);
  gpu_context_end(context);
}

// --- Views ---

static void test_host_views(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  // Nothing of these is aligned.
  float x[GPU_COUNT + 1], y[GPU_COUNT + 2];
  for (int i = 0; i < GPU_COUNT; ++i)
    x[i + 1] = 3 + (float)i;
  y[0] = y[GPU_COUNT + 1] = -5;
  pestle_tensor_t in = gpu_host_view(x + 1), out = gpu_host_view(y + 1);
  for (int run = 0; run < 4; ++run) {
    memset(y + 1, 0, GPU_BYTES);
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    gpu_check(y + 1, 3);
    assert_true(y[0] == -5 && y[GPU_COUNT + 1] == -5);
  }
  // An output that the run allocates is the host's, as the inputs are.
  pestle_tensor_t made = {0};
  assert_ok(GPU_RUN(e, NULL, in, made, NULL));
  assert_int_equal(made.device.device_type, PESTLE_DEVICE_CPU);
  assert_int_equal((uintptr_t)made.data % 64, 0);
  gpu_check(made.data, 3);
  pestle_tensor_release(e, &made);
  assert_null(made.data);
  // With gaps on both sides: packed and spread.
  float wide_x[2 * GPU_COUNT], wide_y[2 * GPU_COUNT];
  int64_t strides[] = {2, 8};  // columns of the transposed array
  for (int i = 0; i < 2 * GPU_COUNT; ++i)
    wide_x[i] = (float)i, wide_y[i] = -5;
  in = gpu_host_view(wide_x), out = gpu_host_view(wide_y);
  in.strides = out.strides = strides;
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  for (int i = 0; i < GPU_COUNT; ++i) {
    int at = (i / 6) * 2 + (i % 6) * 8;
    assert_true(wide_y[at] == gpu_expected(i, (float)at));
    assert_true(wide_y[at + 1] == -5);
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

static void test_device_views(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t *x = gpu_input(device, 8), *y = gpu_output(device);
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  mock_count_anew();
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  // In place: nothing was copied.
  assert_int_equal(gpu_calls(MOCK_QUEUE_FROM_HOST), 0);
  assert_int_equal(gpu_calls(MOCK_QUEUE_TO_HOST), 0);
  assert_int_equal(gpu_calls(MOCK_QUEUE_COPY), 0);
  assert_int_equal(gpu_calls(MOCK_LAUNCH), 3);
  gpu_check_buffer(y, 8);
  // An output that the run allocates is the device's, as an input is.
  pestle_tensor_t made = {0};
  float back[GPU_COUNT];
  assert_ok(GPU_RUN(e, NULL, in, made, NULL));
  assert_int_equal(made.device.device_type, PESTLE_DEVICE_EXT);
  assert_int_equal(made.shape[1], 6);
  assert_int_equal(made.strides[0], 6);
  assert_ok(pestle_tensor_read(e, &made, back, sizeof(back)));
  gpu_check(back, 8);
  // It may be the next run's input.
  pestle_tensor_t again = {0};
  assert_ok(GPU_RUN(e, NULL, made, again, NULL));
  assert_ok(pestle_tensor_read(e, &again, back, sizeof(back)));
  assert_true(back[2] == gpu_expected(2, gpu_expected(2, 10)));
  pestle_tensor_release(e, &again);
  pestle_tensor_release(e, &made);
  // Or as it is asked for.
  pestle_run_options_t options = fixture_run_options();
  options.output_place = PESTLE_OUTPUTS_HOST;
  assert_ok(GPU_RUN(e, NULL, in, made, &options));
  gpu_check(made.data, 8);
  pestle_tensor_release(e, &made);
  options.output_place = PESTLE_OUTPUTS_DEVICE;
  float host[GPU_COUNT] = {0};
  pestle_tensor_t host_in = gpu_host_view(host);
  assert_ok(GPU_RUN(e, NULL, host_in, made, &options));
  assert_int_equal(made.device.device_type, PESTLE_DEVICE_EXT);
  assert_ok(pestle_tensor_read(e, &made, back, sizeof(back)));
  assert_true(back[3] == gpu_expected(3, 0));
  assert_error(pestle_tensor_read(e, &made, back, 4), INVALID_ARGUMENT, "96");
  pestle_tensor_release(e, &made);
  options.output_place = 7;
  assert_error(GPU_RUN(e, NULL, in, made, &options), INVALID_ARGUMENT,
               "output_place");
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// Device memory that is not aligned costs a copy there; with gaps, one through
// the host.
static void test_odd_device_views(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t *x, *y;
  float values[256];
  for (int i = 0; i < 256; ++i)
    values[i] = (float)i;
  assert_ok(pestle_buffer_create(device, sizeof(values), &x));
  assert_ok(pestle_buffer_create(device, sizeof(values), &y));
  assert_ok(pestle_buffer_write(x, 0, values, sizeof(values)));
  pestle_tensor_t in = gpu_view(x, 12), out = gpu_view(y, 20);
  mock_count_anew();
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  assert_int_equal(gpu_calls(MOCK_QUEUE_COPY), 2);
  assert_int_equal(gpu_calls(MOCK_QUEUE_TO_HOST), 0);
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(y, 20, back, sizeof(back)));
  gpu_check(back, 3);
  int64_t strides[] = {-10, 1};
  in.byte_offset = 40 * 4;
  in.strides = strides;
  out.byte_offset = 0;
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  assert_ok(pestle_buffer_read(y, 0, back, sizeof(back)));
  for (int i = 0; i < GPU_COUNT; ++i) {
    assert_true(back[i] == gpu_expected(i, (float)(40 - 10 * (i / 6) + i % 6)));
  }
  out.strides = strides;
  out.byte_offset = 40 * 4;
  assert_error(GPU_RUN(e, NULL, in, out, NULL), UNSUPPORTED,
               "output 'y' on device mock:0 has gaps");
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
}

static void test_donated(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_buffer_t* x = gpu_input(device, 8);
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(x, 0);
  assert_error(GPU_RUN(e, NULL, in, out, NULL), INVALID_ARGUMENT,
               "output 'y' overlaps input 'x'");
  const char* names[] = {"x"};
  pestle_run_options_t options = fixture_run_options();
  options.donated = names;
  options.donated_count = 1;
  assert_ok(GPU_RUN(e, NULL, in, out, &options));
  gpu_check_buffer(x, 8);
  pestle_buffer_release(x);
  pestle_executable_release(e);
  // Read after the output is written: the input is copied first.
  static plan_writer_t w;
  plan_begin(&w, "again");
  gpu_plan_device(&w, "mock");
  plan_input(&w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(&w, "y", PESTLE_F32, 2, gpu_dims);
  uint32_t add1 = gpu_kernel(&w, "add1", TEST_ADD1, 2, GPU_COUNT);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_launch(&w, add1, first);
  plan_launch(&w, add1, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  e = fixture_executable(context, &w);
  x = gpu_input(device, 8);
  in = gpu_view(x, 0), out = gpu_view(x, 0);
  assert_ok(GPU_RUN(e, NULL, in, out, &options));
  float back[GPU_COUNT];
  assert_ok(pestle_buffer_read(x, 0, back, sizeof(back)));
  assert_true(back[0] == 9 && back[5] == 14);
  pestle_buffer_release(x);
  pestle_executable_release(e);
  gpu_context_end(context);
}

static void test_empty(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {0, 3};
  plan_begin(&w, "empty");
  gpu_plan_device(&w, "mock");
  plan_input(&w, "x", PESTLE_F32, 2, dims);
  plan_output(&w, "y", PESTLE_F32, 2, dims);
  uint32_t add1 = gpu_kernel(&w, "add1", TEST_ADD1, 2, 0);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 0);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 0);
  plan_launch(&w, add1, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_tensor_t in = test_view(NULL, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = {0};
  pestle_run_options_t options = fixture_run_options();
  for (int place = 0; place < 3; ++place) {
    options.output_place = place;
    assert_ok(GPU_RUN(e, NULL, in, out, &options));
    assert_non_null(out.data);
    pestle_tensor_release(e, &out);
  }
  assert_int_equal(gpu_calls(MOCK_LAUNCH), 0);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// Copies at home, one of them onto itself: y = x moved on by 8 elements. That
// is no recording, which could not wait in between.
static void test_copies(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  plan_begin(&w, "shift");
  gpu_plan_device(&w, "mock");
  plan_input(&w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(&w, "y", PESTLE_F32, 2, gpu_dims);
  (void)plan_arena(&w, 2 * GPU_BYTES);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind(&w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_step(&w, PESTLE_PLAN_COPY, 0, first, 2, 0);
  first = plan_bind(&w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_bind(&w, PESTLE_PLAN_ARENA, 0, 32, GPU_BYTES);
  plan_step(&w, PESTLE_PLAN_COPY, 0, first, 2, 0);
  first = plan_bind(&w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_step(&w, PESTLE_PLAN_COPY, 0, first, 2, 0);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  float x[GPU_COUNT], y[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    x[i] = (float)i;
  for (int run = 0; run < 4; ++run) {
    memset(y, 0, sizeof(y));
    pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    for (int i = 0; i < GPU_COUNT; ++i)
      assert_true(y[i] == x[i < 8 ? i : i - 8]);
  }
  assert_int_equal(gpu_calls(MOCK_GRAPH_BEGIN), 1);
  assert_int_equal(gpu_calls(MOCK_GRAPH_LAUNCH), 0);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Steps that the host must see ---

// n is counted down to 0 in a loop, y = x + 1 + ... + 1; then a switch on n.
static void write_loop(plan_writer_t* w) {
  int64_t one[] = {1};
  plan_begin(w, "loop");
  gpu_plan_device(w, "mock");
  plan_input(w, "n", PESTLE_I32, 1, one);
  plan_input(w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(w, "y", PESTLE_F32, 2, gpu_dims);
  uint64_t n = plan_arena(w, 4);
  uint32_t dec = gpu_kernel(w, "dec", TEST_DEC, 1, 1);
  uint32_t add1 = gpu_kernel(w, "add1", TEST_ADD1, 2, GPU_COUNT);
  uint32_t copy_n = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 4);
  uint32_t bind_n = plan_bind_written(w, PESTLE_PLAN_ARENA, 0, n, 4);
  uint32_t copy_x = plan_bind(w, PESTLE_PLAN_INPUT, 1, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  uint32_t step = plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_step(w, PESTLE_PLAN_COPY, 0, copy_n, 2, 0);
  plan_step(w, PESTLE_PLAN_COPY, 0, copy_x, 2, 0);
  plan_step(w, PESTLE_PLAN_JUMP_IF_ZERO, 0, bind_n, 1, 6);  // 2
  plan_launch(w, add1, step);
  plan_launch(w, dec, bind_n);
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 2);
  plan_step(w, PESTLE_PLAN_JUMP_TABLE, 0, copy_n, 2, 7);  // 6
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 10);
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 9);
  plan_launch(w, add1, step);  // 9
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void test_jumps(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  write_loop(&w);
  pestle_executable_t* e = fixture_executable(context, &w);
  int64_t one[] = {1};
  for (int32_t count = 0; count < 6; ++count) {
    float x[GPU_COUNT] = {0}, y[GPU_COUNT];
    pestle_tensor_t in[2] = {test_view(&count, PESTLE_I32, 1, one, NULL),
                             gpu_host_view(x)};
    pestle_tensor_t out = gpu_host_view(y);
    assert_ok(pestle_executable_run(e, NULL, in, 2, &out, 1, NULL));
    assert_true(y[3] == (float)(count + (count ? 1 : 0)));
  }
  assert_int_equal(gpu_calls(MOCK_GRAPH_BEGIN), 0);
  // A loop without end can be stopped.
  int32_t forever = -1;
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in[2] = {test_view(&forever, PESTLE_I32, 1, one, NULL),
                           gpu_host_view(x)};
  pestle_tensor_t out = gpu_host_view(y);
  int stop[2] = {0, 1000};
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &stop[0],
                              .progress = stop_at,
                              .progress_user = stop};
  pestle_run_options_t options = fixture_run_options();
  options.control = &control;
  assert_error(pestle_executable_run(e, NULL, in, 2, &out, 1, &options),
               CANCELLED, "before step");
  control.cancel = NULL;
  control.deadline_ns = 1;
  assert_error(pestle_executable_run(e, NULL, in, 2, &out, 1, &options),
               DEADLINE_EXCEEDED, "before step 0");
  pestle_executable_release(e);
  gpu_context_end(context);
}

// y = x + 1 + .. + 1 by |trips| launches.
static void write_repeat(plan_writer_t* w, uint32_t trips) {
  plan_begin(w, "repeat");
  gpu_plan_device(w, "mock");
  plan_input(w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(w, "y", PESTLE_F32, 2, gpu_dims);
  uint32_t add1 = gpu_kernel(w, "add1", TEST_ADD1, 2, GPU_COUNT);
  uint32_t copy_x = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  uint32_t step = plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_step(w, PESTLE_PLAN_COPY, 0, copy_x, 2, 0);
  plan_launch(w, add1, step);
  plan_step(w, PESTLE_PLAN_REPEAT, 0, 0, trips, 1);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

// A loop of known trips is waited for once, in the end, and is one recording where that
// is not too long.
static void test_repeats(void** state) {
  (void)state;
  static const uint32_t trips[] = {2, 100, 20000};
  for (size_t t = 0; t < 3; ++t) {
    mock_reset();
    pestle_context_t* context = gpu_context(NULL);
    static plan_writer_t w;
    write_repeat(&w, trips[t]);
    pestle_executable_t* e = fixture_executable(context, &w);
    bool records = trips[t] < 10000;
    for (unsigned run = 0; run < 4; ++run) {
      float x[GPU_COUNT] = {0}, y[GPU_COUNT];
      pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
      mock_count_anew();
      assert_ok(GPU_RUN(e, NULL, in, out, NULL));
      assert_true(y[0] == (float)trips[t] && y[23] == (float)trips[t]);
      assert_int_equal(gpu_calls(MOCK_STREAM_SYNCHRONIZE), 1);
      assert_int_equal(gpu_calls(MOCK_QUEUE_TO_HOST), 1);  // of y
      // The first run queues, the second records, the others do neither.
      bool queues = !records || run < 2;
      assert_int_equal(gpu_calls(MOCK_LAUNCH), queues ? trips[t] : 0);
      assert_int_equal(gpu_calls(MOCK_GRAPH_BEGIN), records && run == 1);
      assert_int_equal(gpu_calls(MOCK_GRAPH_LAUNCH), records && run > 0);
    }
    pestle_executable_release(e);
    gpu_context_end(context);
  }
}

// y is [4, 6] by its bounds and comes out as [2, 1].
static void write_bounded(plan_writer_t* w) {
  gpu_write_chain(w, "mock");
  uint64_t extents = plan_arena(w, 16);
  w->outputs[0].bounded = 1;
  w->outputs[0].shape_offset = (int64_t)extents;
  uint32_t kernel = gpu_kernel(w, "extents", TEST_EXTENTS, 1, 1);
  w->header.steps.count--;
  plan_launch(w, kernel,
              plan_bind_written(w, PESTLE_PLAN_ARENA, 0, extents, 16));
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void test_bounded(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  write_bounded(&w);
  pestle_executable_t* e = fixture_executable(context, &w);
  float x[GPU_COUNT] = {0}, y[GPU_COUNT], pair[2];
  pestle_tensor_t in = gpu_host_view(x), out = {0};
  // Allocated, on the host and on the device.
  pestle_run_options_t options = fixture_run_options();
  for (int place = 1; place < 3; ++place) {
    options.output_place = place;
    assert_ok(GPU_RUN(e, NULL, in, out, &options));
    assert_int_equal(out.shape[0], 2);
    assert_int_equal(out.shape[1], 1);
    assert_int_equal(out.strides[0], 1);
    assert_ok(pestle_tensor_read(e, &out, pair, sizeof(pair)));
    assert_true(pair[0] == gpu_expected(0, 0) && pair[1] == gpu_expected(6, 0));
    pestle_tensor_release(e, &out);
  }
  // The caller's, packed or where its strides say.
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  out = test_view(y, PESTLE_F32, 2, shape, NULL);
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  assert_true(shape[0] == 2 && shape[1] == 1 && y[1] == gpu_expected(6, 0));
  shape[0] = 4, shape[1] = 6;
  out.strides = strides;
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  assert_true(shape[0] == 2 && y[6] == gpu_expected(6, 0));
  // On the device, also where it is not aligned.
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_create(gpu_device(context, "mock"), 200, &buffer));
  for (size_t offset = 0; offset < 8; offset += 4) {
    shape[0] = 4, shape[1] = 6;
    out = gpu_view(buffer, offset);
    out.shape = shape;
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    assert_true(shape[0] == 2 && shape[1] == 1);
    assert_ok(pestle_buffer_read(buffer, offset, pair, sizeof(pair)));
    assert_true(pair[0] == gpu_expected(0, 0) && pair[1] == gpu_expected(6, 0));
  }
  pestle_buffer_release(buffer);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Kernels that run on the CPU ---

// m = x + 1 there, m = m + c on the CPU in place, y = m + 1 there.
static void write_staged(plan_writer_t* w, bool scratch) {
  gpu_write_chain(w, "mock");
  plan_device(w, "test", "");
  w->header.kernels.count = 0;
  w->header.code.count = 0;
  w->header.steps.count = 0;
  w->header.bindings.count = 0;
  uint32_t add1 = gpu_kernel(w, "add1", TEST_ADD1, 2, GPU_COUNT);
  uint32_t add = gpu_cpu_kernel(w, "cpu_add", TEST_ADD, 3, GPU_COUNT);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_launch(w, add1, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_bind(w, PESTLE_PLAN_CONSTANT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_launch(w, add, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_launch(w, add1, first);
  if (scratch) {
    // Output "s": what each index made of scratch of its own.
    int64_t dims[] = {64};
    plan_output(w, "s", PESTLE_U32, 1, dims);
    w->header.scratch_size = 64;
    uint32_t kernel = gpu_cpu_kernel(w, "scratch", TEST_SCRATCH, 1, 64);
    w->kernels[kernel].shared_bytes = 64;
    w->kernels[kernel].work = 10000000;
    plan_launch(w, kernel, plan_bind_written(w, PESTLE_PLAN_OUTPUT, 1, 0, 256));
  }
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void note_warning(void* user, pestle_log_level_t level,
                         const char* message) {
  if (level == PESTLE_LOG_WARN) snprintf(user, 512, "%s", message);
}

static void test_staged(void** state) {
  (void)state;
  char warning[512] = "";
  pestle_context_options_t context_options = fixture_options();
  context_options.log = note_warning;
  context_options.log_user = warning;
  pestle_context_t* context = gpu_context(&context_options);
  static plan_writer_t w;
  write_staged(&w, true);
  pestle_executable_t* e = fixture_executable(context, &w);
  assert_non_null(strstr(warning, "2 of 3 kernels"));
  assert_non_null(strstr(warning, "'cpu_add' first"));
  assert_non_null(strstr(warning, "device mock:0"));
  float x[GPU_COUNT], y[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    x[i] = 2 + (float)i;
  for (int run = 0; run < 3; ++run) {
    uint32_t s[64] = {0};
    int64_t dims[] = {64};
    memset(y, 0, sizeof(y));
    pestle_tensor_t in = gpu_host_view(x);
    pestle_tensor_t out[2] = {gpu_host_view(y),
                              test_view(s, PESTLE_U32, 1, dims, NULL)};
    mock_count_anew();
    assert_ok(pestle_executable_run(e, NULL, &in, 1, out, 2, NULL));
    gpu_check(y, 2);
    for (uint32_t i = 0; i < 64; ++i)
      assert_int_equal(s[i], 16 * i);
    // The constant is on the host; what is bound twice is copied once.
    assert_int_equal(gpu_calls(MOCK_QUEUE_TO_HOST), 2 + 2);
    assert_int_equal(gpu_calls(MOCK_QUEUE_FROM_HOST), 1 + 2);
    assert_int_equal(gpu_calls(MOCK_LAUNCH), 2);
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

// A trap of such a kernel, and one of the device's own.
static void test_traps(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  write_staged(&w, false);
  test_artifact_t trap = test_artifact(TEST_TRAP);
  memcpy(w.code + w.kernels[1].code_offset, &trap, sizeof(trap));
  pestle_executable_t* e = fixture_executable(context, &w);
  assert_error(GPU_RUN(e, NULL, in, out, NULL), INTERNAL,
               "kernel 'cpu_add' () stopped at its check 7");
  pestle_executable_release(e);
  gpu_write_chain(&w, "mock");
  mock_artifact_t own = mock_artifact(test_entry_of(TEST_TRAP), GPU_COUNT);
  memcpy(w.code + w.kernels[1].code_offset, &own, sizeof(own));
  e = fixture_executable(context, &w);
  for (int run = 0; run < 3; ++run) {  // plain, and as a recording
    assert_error(GPU_RUN(e, NULL, in, out, NULL), INTERNAL, "check 7");
    assert_error(GPU_RUN(e, NULL, in, out, NULL), INTERNAL,
                 "while running plan 'chain' on device mock:0");
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Devices ---

static void test_other_device(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  pestle_plan_t* plan = fixture_plan(context, &w);
  pestle_executable_t* e;
  pestle_device_t* second = gpu_device(context, "mock:1");
  assert_ok(pestle_executable_create(context, plan, second, &e));
  pestle_buffer_t *x = gpu_input(second, 1), *y = gpu_output(second);
  pestle_tensor_t in = gpu_view(x, 0), out = gpu_view(y, 0);
  assert_ok(GPU_RUN(e, NULL, in, out, NULL));
  gpu_check_buffer(y, 1);
  pestle_executable_release(e);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  assert_error(
      pestle_executable_create(context, plan, gpu_device(context, "mockb"), &e),
      INCOMPATIBLE, "not for device mockb:0");
  pestle_plan_release(plan);
  // The same twice is one device.
  gpu_write_chain(&w, "mock");
  gpu_plan_device(&w, "mock");
  e = fixture_executable(context, &w);
  pestle_executable_release(e);
  // Two of them in one plan.
  gpu_write_chain(&w, "mock");
  gpu_plan_device(&w, "mockb");
  plan = fixture_plan(context, &w);
  assert_error(pestle_executable_create(context, plan, NULL, &e), UNSUPPORTED,
               "runs on mock:0 and on mockb:0");
  pestle_plan_release(plan);
  // A CPU at home, something else beside it.
  int64_t dims[] = {4};
  fixture_write_add1(&w, 1, dims, 0);
  gpu_plan_device(&w, "mock");
  plan = fixture_plan(context, &w);
  assert_error(pestle_executable_create(context, plan, NULL, &e), UNSUPPORTED,
               "runs on test and on mock:0");
  pestle_plan_release(plan);
  gpu_context_end(context);
}

static void test_mixed(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  static const char* const others[] = {"mock:1", "mockb", "mockb:1"};
  pestle_buffer_t* y = gpu_output(gpu_device(context, "mock"));
  pestle_tensor_t out = gpu_view(y, 0);
  for (int i = 0; i < 3; ++i) {
    pestle_buffer_t* x = gpu_input(gpu_device(context, others[i]), 5);
    pestle_tensor_t in = gpu_view(x, 0);
    const char* name = pestle_device_name(pestle_buffer_device(x));
    char text[100];
    snprintf(text, sizeof(text),
             "input 'x' is on device %s, but the executable runs on mock:0",
             name);
    assert_error(GPU_RUN(e, NULL, in, out, NULL), INVALID_ARGUMENT, text);
    assert_error(GPU_RUN(e, NULL, in, out, NULL), INVALID_ARGUMENT,
                 "pestle_buffer_copy()");
    snprintf(text, sizeof(text), "output 'y' is on device %s", name);
    assert_error(GPU_RUN(e, NULL, out, in, NULL), INVALID_ARGUMENT, text);
    // As the sentence says.
    pestle_buffer_t* copy = gpu_output(gpu_device(context, "mock"));
    assert_ok(pestle_buffer_copy(x, 0, copy, 0, GPU_BYTES));
    in = gpu_view(copy, 0);
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    gpu_check_buffer(y, 5);
    pestle_buffer_release(copy);
    pestle_buffer_release(x);
  }
  pestle_tensor_t nowhere = out;
  nowhere.device = (pestle_dl_device_t){PESTLE_DEVICE_CUDA, 3};
  assert_error(GPU_RUN(e, NULL, nowhere, out, NULL), INVALID_ARGUMENT,
               "of DLPack type 2, number 3");
  pestle_executable_release(e);
  // An executable of a CPU says so too.
  int64_t dims[] = {4, 6};
  e = fixture_add1(context, 2, dims);
  pestle_buffer_t* x = gpu_input(gpu_device(context, "mock"), 5);
  pestle_tensor_t in = gpu_view(x, 0);
  out = (pestle_tensor_t){0};
  assert_error(GPU_RUN(e, NULL, in, out, NULL), INVALID_ARGUMENT,
               "on device mock:0, but the executable runs on test");
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// Uploaded once for all executables on a device.
static void test_constants(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  pestle_plan_t* plan = fixture_plan(context, &w);
  pestle_executable_t *a, *b, *c;
  assert_ok(pestle_executable_create(context, plan, NULL, &a));
  assert_int_equal(gpu_calls(MOCK_COPY_FROM_HOST), 1);
  assert_ok(pestle_executable_create(context, plan, NULL, &b));
  assert_int_equal(gpu_calls(MOCK_COPY_FROM_HOST), 1);
  assert_ok(pestle_executable_create(context, plan,
                                     gpu_device(context, "mock:1"), &c));
  assert_int_equal(gpu_calls(MOCK_COPY_FROM_HOST), 2);
  pestle_memory_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_device_memory_stats(gpu_device(context, "mock"), &stats);
  assert_int_equal(stats.active, 128);
  pestle_executable_release(a);
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  assert_ok(GPU_RUN(b, NULL, in, out, NULL));
  assert_true(y[9] == gpu_expected(9, 0));
  pestle_executable_release(b);
  pestle_device_memory_stats(gpu_device(context, "mock"), &stats);
  assert_int_equal(stats.active, 0);
  pestle_executable_release(c);
  pestle_plan_release(plan);
  // What two plans share, they share there.
  float big[GPU_COUNT] = {7};
  pestle_hash128_t hash = pestle_hash128(big, sizeof(big));
  mock_count_anew();
  for (int i = 0; i < 2; ++i) {
    gpu_write_chain(&w, "mock");
    memcpy(w.constants, big, sizeof(big));
    w.constant_size = sizeof(big);
    w.refs[0].hash[0] = hash.low;
    w.refs[0].hash[1] = hash.high;
    *(i ? &b : &a) = fixture_executable(context, &w);
  }
  assert_int_equal(gpu_calls(MOCK_COPY_FROM_HOST), 1);
  pestle_executable_release(a);
  assert_ok(GPU_RUN(b, NULL, in, out, NULL));
  assert_true(y[0] == 9);
  pestle_executable_release(b);
  gpu_context_end(context);
}

// --- Profiles ---

typedef struct profile_t {
  uint32_t steps;
  unsigned kernels[8];  // that had run when a step was done
} profile_t;

static void note_step(void* user, uint32_t step, int64_t begin, int64_t end) {
  profile_t* profile = user;
  assert_true(end >= begin + (step < 3 ? 2000000 : 0));
  profile->kernels[step] = atomic_load(&mock_state()->kernels_run);
  ++profile->steps;
}

// Each step is done when it is reported.
static void test_profile(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_executable_t* e = gpu_chain(context);
  float x[GPU_COUNT] = {0}, y[GPU_COUNT];
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  atomic_store(&mock_state()->launch_delay_us, 2000);
  pestle_run_options_t options = fixture_run_options();
  for (unsigned run = 0; run < 3; ++run) {
    profile_t profile = {0};
    options.on_step = note_step;
    options.on_step_user = &profile;
    assert_ok(GPU_RUN(e, NULL, in, out, &options));
    assert_int_equal(profile.steps, 4);
    for (unsigned step = 0; step < 3; ++step)
      assert_int_equal(profile.kernels[step], 3 * run + step + 1);
  }
  assert_int_equal(gpu_calls(MOCK_GRAPH_BEGIN), 0);
  pestle_executable_release(e);
  gpu_context_end(context);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_buffers),      TEST(test_host_views),
      TEST(test_device_views), TEST(test_odd_device_views),
      TEST(test_donated),      TEST(test_empty),
      TEST(test_copies),       TEST(test_jumps),
      TEST(test_bounded),      TEST(test_staged),
      TEST(test_traps),        TEST(test_other_device),
      TEST(test_mixed),        TEST(test_constants),
      TEST(test_profile),      TEST(test_repeats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
