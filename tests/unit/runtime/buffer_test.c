// SPDX-License-Identifier: Apache-2.0
// Wrapped memory, runs on buffers, and donation: what a run may write, and whose
// reference is whose.
#include "base/thread.h"
#include "unit/runtime/fixture.h"
#include "unit/runtime/gpu_fixture.h"

enum { COUNT = 16, BYTES = 4 * COUNT };
static const int64_t dims[] = {COUNT};

static pestle_memory_stats_t stats_of(const pestle_device_t* device) {
  pestle_memory_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_device_memory_stats(device, &stats);
  return stats;
}

static pestle_device_t* device_of(pestle_context_t* context, const char* name) {
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, name, &device));
  return device;
}

static void count_release(void* self) {
  atomic_fetch_add((atomic_int*)self, 1);
}

static pestle_buffer_t* wrap(pestle_device_t* device, void* data, size_t size,
                             uint32_t flags, atomic_int* released) {
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .flags = flags,
                                          .release = count_release,
                                          .release_self = released};
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_wrap(device, data, size, &options, &buffer));
  return buffer;
}

static pestle_buffer_t* filled(pestle_device_t* device, float first) {
  float x[COUNT];
  pestle_buffer_t* buffer;
  for (int i = 0; i < COUNT; ++i)
    x[i] = first + (float)i;
  assert_ok(pestle_buffer_create(device, BYTES, &buffer));
  assert_ok(pestle_buffer_write(buffer, 0, x, BYTES));
  return buffer;
}

// x[i] = first + i.
static void check(const pestle_buffer_t* buffer, float first) {
  float x[COUNT];
  assert_int_equal(pestle_buffer_size(buffer), BYTES);
  assert_ok(pestle_buffer_read(buffer, 0, x, BYTES));
  for (int i = 0; i < COUNT; ++i)
    assert_true(x[i] == first + (float)i);
}

static pestle_status_t run(pestle_executable_t* e,
                           const pestle_buffer_view_t* inputs, size_t count,
                           int32_t donated, pestle_buffer_t** out) {
  uint32_t index = (uint32_t)donated;
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .donated = &index,
                                          .donated_count = donated >= 0};
  return pestle_executable_run_buffers(e, NULL, inputs, count, out, 1,
                                       &options);
}

// --- Wrapped memory ---

static void test_wrap(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  float memory[COUNT] = {0};
  atomic_int released = 0;
  pestle_buffer_t* b = wrap(device, memory + 1, BYTES - 4, 0, &released);
  assert_ptr_equal(pestle_buffer_data(b), memory + 1);
  assert_ptr_equal(pestle_buffer_host_data(b), memory + 1);
  assert_int_equal(pestle_buffer_size(b), BYTES - 4);
  assert_ptr_equal(pestle_buffer_device(b), device);
  assert_int_equal(pestle_buffer_flags(b), PESTLE_BUFFER_WRAPPED);
  assert_null(pestle_buffer_extents(b, NULL));
  float one = 1;
  assert_ok(pestle_buffer_write(b, 0, &one, 4));
  assert_true(memory[1] == 1);
  // It is none of the device's own.
  assert_int_equal(stats_of(device).active, 0);
  pestle_buffer_retain(b);
  pestle_buffer_release(b);
  assert_int_equal(released, 0);
  // The buffer outlives the caller's reference to the context.
  pestle_context_release(context);
  assert_int_equal(released, 0);
  pestle_buffer_release(b);
  assert_int_equal(released, 1);
}

static void test_read_only(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  float memory[COUNT] = {0};
  atomic_int released = 0;
  pestle_buffer_t* b =
      wrap(device, memory, BYTES, PESTLE_BUFFER_READ_ONLY, &released);
  pestle_buffer_t* other = filled(device, 1);
  assert_error(pestle_buffer_write(b, 0, memory, 4), INVALID_ARGUMENT,
               "read-only");
  assert_error(pestle_buffer_copy(other, 0, b, 0, BYTES), INVALID_ARGUMENT,
               "read-only");
  assert_ok(pestle_buffer_copy(b, 0, other, 0, BYTES));
  assert_int_equal(pestle_buffer_flags(b),
                   PESTLE_BUFFER_WRAPPED | PESTLE_BUFFER_READ_ONLY);
  pestle_buffer_release(other);
  pestle_buffer_release(b);
  pestle_context_release(context);
}

// Nothing is taken over, and release is not called.
static void test_wrap_failures(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  float memory[COUNT];
  atomic_int released = 0;
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .flags = 1u << 30,
                                          .release = count_release,
                                          .release_self = &released};
  pestle_buffer_t* b = NULL;
  assert_error(pestle_buffer_wrap(device, memory, BYTES, &options, &b),
               INVALID_ARGUMENT, "0x40000000");
  options.flags = PESTLE_BUFFER_WRAPPED;
  assert_code(pestle_buffer_wrap(device, memory, BYTES, &options, &b),
              INVALID_ARGUMENT);
  options.flags = 0;
  assert_error(pestle_buffer_wrap(device, memory, SIZE_MAX, &options, &b),
               INVALID_ARGUMENT, "address space");
  assert_null(b);
  assert_int_equal(released, 0);
  // Without a function nothing is called.
  options.release = NULL;
  assert_ok(pestle_buffer_wrap(device, memory, BYTES, &options, &b));
  pestle_buffer_release(b);
  pestle_context_release(context);
}

typedef struct again_t {
  pestle_device_t* device;
  int calls;
} again_t;

// No lock is held: it may do what others do.
static void release_and_allocate(void* self) {
  again_t* again = self;
  pestle_buffer_t* b = filled(again->device, 3);
  pestle_buffer_release(b);
  assert_ok(
      pestle_device_memory_set(again->device, PESTLE_MEMORY_CACHE, 0, NULL));
  ++again->calls;
}

static void test_release_calls_pestle(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  again_t again = {device_of(context, "test"), 0};
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .release = release_and_allocate,
                                          .release_self = &again};
  float memory[COUNT];
  pestle_buffer_t* b;
  assert_ok(pestle_buffer_wrap(again.device, memory, BYTES, &options, &b));
  pestle_context_release(context);
  pestle_buffer_release(b);
  assert_int_equal(again.calls, 1);
}

// --- Runs ---

static void test_run(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_buffer_view_t in = {.buffer = filled(device, 5)};
  pestle_buffer_t* out;
  assert_ok(run(e, &in, 1, -1, &out));
  check(out, 6);
  check(in.buffer, 5);
  assert_int_equal(pestle_buffer_flags(out), 0);
  assert_int_equal((uintptr_t)pestle_buffer_data(out) % 64, 0);
  // The output is nothing of the executable's.
  pestle_executable_release(e);
  check(out, 6);
  pestle_buffer_release(out);
  pestle_buffer_release(in.buffer);
  assert_int_equal(stats_of(device).active, 0);
  pestle_context_release(context);
}

// Reads any view of a larger buffer.
static void test_views(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "ref");
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  float x[100];
  for (int i = 0; i < 100; ++i)
    x[i] = (float)i;
  pestle_buffer_t *b, *out;
  assert_ok(pestle_buffer_create(device, sizeof(x), &b));
  assert_ok(pestle_buffer_write(b, 0, x, sizeof(x)));
  static const struct {
    uint64_t offset;
    int64_t stride;  // 0: NULL
    float first, step;
  } cases[] = {{0, 0, 0, 1},     {64, 0, 16, 1},    {4, 0, 1, 1},
               {8, 2, 2, 2},     {240, -4, 60, -4}, {336, 0, 84, 1},
               {396, -6, 99, -6}};
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
    pestle_buffer_view_t in = {b, cases[c].offset,
                               cases[c].stride ? &cases[c].stride : NULL};
    assert_ok(run(e, &in, 1, -1, &out));
    const float* y = pestle_buffer_data(out);
    for (int i = 0; i < COUNT; ++i)
      assert_true(y[i] == cases[c].first + cases[c].step * (float)i + 1);
    pestle_buffer_release(out);
  }
  // A stride of 0 reads one element; bytes that no element begins at: a copy.
  int64_t still = 0;
  pestle_buffer_view_t in = {b, 12, &still};
  assert_ok(run(e, &in, 1, -1, &out));
  assert_true(((float*)pestle_buffer_data(out))[COUNT - 1] == 4);
  pestle_buffer_release(out);
  in = (pestle_buffer_view_t){b, 2, NULL};
  assert_ok(run(e, &in, 1, -1, &out));
  pestle_buffer_release(out);
  pestle_buffer_release(b);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_refusals(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_context_t* other = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_buffer_t* b = filled(device, 1);
  pestle_buffer_t* foreign = filled(device_of(other, "test"), 1);
  pestle_buffer_t* out = b;
  pestle_buffer_view_t in = {.buffer = foreign};
  assert_error(run(e, &in, 1, -1, &out), INVALID_ARGUMENT, "another context");
  assert_null(out);
  in = (pestle_buffer_view_t){.buffer = b, .byte_offset = 4};
  assert_error(run(e, &in, 1, -1, &out), INVALID_ARGUMENT, "out of the buffer");
  in.byte_offset = UINT64_MAX;
  assert_code(run(e, &in, 1, -1, &out), INVALID_ARGUMENT);
  int64_t stride = 2;
  in = (pestle_buffer_view_t){.buffer = b, .strides = &stride};
  assert_error(run(e, &in, 1, -1, &out), INVALID_ARGUMENT, "with gaps");
  stride = -1;
  assert_code(run(e, &in, 1, -1, &out), INVALID_ARGUMENT);
  in = (pestle_buffer_view_t){.buffer = NULL};
  assert_error(run(e, &in, 1, -1, &out), INVALID_ARGUMENT, "'x' has no buffer");
  in.buffer = b;
  assert_error(run(e, &in, 1, 1, &out), INVALID_ARGUMENT, "donated input 1");
  assert_error(run(e, &in, 2, -1, &out), INVALID_ARGUMENT, "2 inputs");
  uint32_t twice[] = {0, 0};
  pestle_run_buffers_options_t options = {
      .struct_size = sizeof(options), .donated = twice, .donated_count = 2};
  assert_error(
      pestle_executable_run_buffers(e, NULL, &in, 1, &out, 1, &options),
      INVALID_ARGUMENT, "donated twice");
  check(b, 1);
  pestle_buffer_release(b);
  pestle_buffer_release(foreign);
  pestle_executable_release(e);
  pestle_context_release(context);
  pestle_context_release(other);
}

static void test_nothing(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  const int64_t none[] = {0};
  pestle_executable_t* e = fixture_add1(context, 1, none);
  pestle_buffer_view_t in = {.buffer = NULL};
  pestle_buffer_t* out;
  assert_ok(run(e, &in, 1, -1, &out));
  assert_int_equal(pestle_buffer_size(out), 0);
  pestle_buffer_release(out);
  // A buffer of no bytes, given away.
  assert_ok(pestle_buffer_create(device_of(context, "test"), 0, &in.buffer));
  assert_ok(run(e, &in, 1, 0, &out));
  pestle_buffer_release(out);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void write_bounded(plan_writer_t* w, const char* backend) {
  const int64_t bounds[] = {4, 4};
  plan_begin(w, "bounded");
  bool gpu = !strcmp(backend, "mock");
  if (gpu) {
    gpu_plan_device(w, backend);
  } else {
    plan_device(w, backend, "");
  }
  plan_input(w, "x", PESTLE_F32, 2, bounds);
  plan_output(w, "y", PESTLE_F32, 2, bounds);
  uint64_t extents = plan_arena(w, 16);
  w->outputs[0].bounded = 1;
  w->outputs[0].shape_offset = (int64_t)extents;
  uint32_t add = gpu ? gpu_kernel(w, "add1", TEST_ADD1, 2, COUNT)
                     : fixture_kernel(w, "add1", TEST_ADD1, 2, COUNT, 0);
  uint32_t cut = gpu ? gpu_kernel(w, "extents", TEST_EXTENTS, 1, 1)
                     : fixture_kernel(w, "extents", TEST_EXTENTS, 1, 1, 0);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(w, add, first);
  first = plan_bind_written(w, PESTLE_PLAN_ARENA, 0, extents, 16);
  plan_launch(w, cut, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

// Of 4 x 4 elements 2 x 1 are left: y[0][0] and y[1][0], side by side.
static void check_bounded(pestle_context_t* context, const char* backend) {
  static plan_writer_t w;
  write_bounded(&w, backend);
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_buffer_view_t in = {.buffer = filled(device_of(context, backend), 5)};
  for (int i = 0; i < 2; ++i) {
    pestle_buffer_t* out;
    int32_t rank;
    float y[2];
    assert_ok(run(e, &in, 1, -1, &out));
    const int64_t* extents = pestle_buffer_extents(out, &rank);
    assert_int_equal(rank, 2);
    assert_true(extents[0] == 2 && extents[1] == 1);
    assert_int_equal(pestle_buffer_size(out), BYTES);
    assert_ok(pestle_buffer_read(out, 0, y, sizeof(y)));
    assert_true(y[0] == 6 && y[1] == 10);
    pestle_buffer_release(out);
  }
  pestle_buffer_release(in.buffer);
  pestle_executable_release(e);
}

static void test_bounded(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  check_bounded(context, "test");
  check_bounded(context, "mock");
  gpu_context_end(context);
}

// --- Donation ---

// y begins as x, and is x + 1 in place.
static pestle_executable_t* in_place(pestle_context_t* context,
                                     const char* backend) {
  static plan_writer_t w;
  bool gpu = !strcmp(backend, "mock");
  plan_begin(&w, "in_place");
  if (gpu) {
    gpu_plan_device(&w, backend);
  } else {
    plan_device(&w, backend, "");
  }
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  w.inputs[0].align_log2 = 2;
  w.inputs[0].alias = w.outputs[0].alias = 0;
  uint32_t add = gpu ? gpu_kernel(&w, "add1", TEST_ADD1, 2, COUNT)
                     : fixture_kernel(&w, "add1", TEST_ADD1, 2, COUNT, 0);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(&w, add, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_executable(context, &w);
}

static void check_donation(pestle_context_t* context, const char* backend) {
  pestle_device_t* device = device_of(context, backend);
  pestle_executable_t* e = in_place(context, backend);
  pestle_buffer_t *x = filled(device, 5), *out;
  pestle_buffer_view_t in = {.buffer = x};
  // Kept: a copy is made first.
  assert_ok(run(e, &in, 1, -1, &out));
  assert_ptr_not_equal(out, x);
  check(out, 6);
  check(x, 5);
  pestle_buffer_release(out);
  // Somebody else sees it: the reference is given away, the memory is not.
  pestle_buffer_retain(x);
  assert_ok(run(e, &in, 1, 0, &out));
  assert_ptr_not_equal(out, x);
  check(out, 6);
  check(x, 5);
  pestle_buffer_release(out);
  // Nobody does: again and again in one place, without new memory.
  uint64_t peak = stats_of(device).peak;
  for (int i = 0; i < 10; ++i) {
    assert_ok(run(e, &in, 1, 0, &out));
    assert_ptr_equal(out, x);
    check(out, 6 + (float)i);
  }
  assert_int_equal(stats_of(device).peak, peak);
  pestle_buffer_release(out);
  // A part of a buffer, and what is strided, are read and not overwritten.
  pestle_buffer_t* large;
  float values[2 * COUNT];
  for (int i = 0; i < 2 * COUNT; ++i)
    values[i] = (float)i;
  int64_t stride = 2;
  for (int c = 0; c < 2; ++c) {
    assert_ok(pestle_buffer_create(device, sizeof(values), &large));
    assert_ok(pestle_buffer_write(large, 0, values, sizeof(values)));
    in = (pestle_buffer_view_t){large, c ? 0 : BYTES, c ? &stride : NULL};
    assert_ok(run(e, &in, 1, 0, &out));
    float y[COUNT];
    assert_ok(pestle_buffer_read(out, 0, y, BYTES));
    assert_true(y[1] == (c ? 3 : COUNT + 2));
    pestle_buffer_release(out);
  }
  pestle_executable_release(e);
}

static void test_donation(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  check_donation(context, "test");
  check_donation(context, "mock");
  gpu_context_end(context);
}

// What is wrapped is consumed and never written, unless it is nobody else's.
static void test_wrapped_donation(void** state) {
  (void)state;
  static const struct {
    uint32_t flags;
    size_t offset;  // floats
    bool taken;
  } cases[] = {{0, 0, false},
               {PESTLE_BUFFER_READ_ONLY, 0, false},
               {PESTLE_BUFFER_EXCLUSIVE | PESTLE_BUFFER_READ_ONLY, 0, false},
               {PESTLE_BUFFER_EXCLUSIVE, 0, true},
               {PESTLE_BUFFER_EXCLUSIVE, 4, false}};  // outputs want 64 bytes
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = in_place(context, "test");
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
    _Alignas(64) float memory[2 * COUNT];
    float* x = memory + cases[c].offset;
    atomic_int released = 0;
    for (int i = 0; i < COUNT; ++i)
      x[i] = (float)i;
    pestle_buffer_view_t in = {
        .buffer = wrap(device, x, BYTES, cases[c].flags, &released)};
    pestle_buffer_t* out;
    assert_ok(run(e, &in, 1, 0, &out));
    check(out, 1);
    assert_int_equal(pestle_buffer_data(out) == x, cases[c].taken);
    assert_true(x[3] == (cases[c].taken ? 4 : 3));
    assert_int_equal(released, !cases[c].taken);
    pestle_buffer_release(out);
    assert_int_equal(released, 1);
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

// z = (a + b) + 1: |a| is not read once |z| is written.
static pestle_executable_t* sum(pestle_context_t* context) {
  static plan_writer_t w;
  plan_begin(&w, "sum");
  plan_device(&w, "test", "");
  plan_input(&w, "a", PESTLE_F32, 1, dims);
  plan_input(&w, "b", PESTLE_F32, 1, dims);
  plan_output(&w, "z", PESTLE_F32, 1, dims);
  uint64_t m = plan_arena(&w, BYTES);
  uint32_t add = fixture_kernel(&w, "add", TEST_ADD, 3, COUNT, 0);
  uint32_t add1 = fixture_kernel(&w, "add1", TEST_ADD1, 2, COUNT, 0);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, BYTES);
  plan_bind(&w, PESTLE_PLAN_INPUT, 1, 0, BYTES);
  plan_bind_written(&w, PESTLE_PLAN_ARENA, 0, m, BYTES);
  plan_launch(&w, add, first);
  first = plan_bind(&w, PESTLE_PLAN_ARENA, 0, m, BYTES);
  plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(&w, add1, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_executable(context, &w);
}

// Memory of an input that no plan spoke of goes to an output that is written
// after it was read.
static void test_unplanned_donation(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = sum(context);
  pestle_buffer_t *a = filled(device, 1), *b = filled(device, 10), *out;
  pestle_buffer_view_t in[2] = {{.buffer = a}, {.buffer = b}};
  assert_ok(run(e, in, 2, 1, &out));
  assert_ptr_equal(out, b);
  float z[COUNT];
  assert_ok(pestle_buffer_read(out, 0, z, BYTES));
  for (int i = 0; i < COUNT; ++i)
    assert_true(z[i] == 12 + 2 * (float)i);
  // One buffer as both inputs, of which one gives it away.
  in[1].buffer = a;
  pestle_buffer_retain(a);
  pestle_buffer_release(out);
  assert_ok(run(e, in, 2, 1, &out));
  assert_ptr_not_equal(out, a);
  check(a, 1);
  pestle_buffer_release(out);
  pestle_buffer_release(a);
  // In add1 alone x is read while y is written.
  pestle_executable_t* add1 = fixture_add1(context, 1, dims);
  a = filled(device, 1);
  in[0].buffer = a;
  assert_ok(run(add1, in, 1, 0, &out));
  assert_ptr_not_equal(out, a);
  check(out, 2);
  pestle_buffer_release(out);
  pestle_executable_release(add1);
  pestle_executable_release(e);
  assert_int_equal(stats_of(device).active, 0);
  pestle_context_release(context);
}

// After a failure every reference is the caller's.
static void test_failed_run(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  static plan_writer_t w;
  plan_begin(&w, "trap");
  plan_device(&w, "test", "");
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  plan_output(&w, "z", PESTLE_F32, 1, dims);
  w.inputs[0].alias = w.outputs[0].alias = 0;
  uint32_t trap = fixture_kernel(&w, "trap", TEST_TRAP, 1, 1, 0);
  uint32_t first = plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(&w, trap, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_buffer_t* outputs[2];
  pestle_buffer_view_t in = {.buffer = filled(device, 1)};
  uint32_t donated = 0;
  pestle_run_buffers_options_t options = {
      .struct_size = sizeof(options), .donated = &donated, .donated_count = 1};
  for (int i = 0; i < 3; ++i) {
    outputs[0] = outputs[1] = in.buffer;
    assert_code(
        pestle_executable_run_buffers(e, NULL, &in, 1, outputs, 2, &options),
        INTERNAL);
    assert_null(outputs[0]);
    assert_null(outputs[1]);
  }
  check(in.buffer, 1);
  pestle_buffer_release(in.buffer);
  pestle_executable_release(e);
  assert_int_equal(stats_of(device).active, 0);
  pestle_context_release(context);
}

// The tensor form of a run on a plan whose output begins as an input.
static void test_tensors_in_place(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_executable_t* e = in_place(context, "test");
  _Alignas(64) float memory[4 * COUNT];
  int64_t shape[] = {COUNT};
  const char* name = "x";
  pestle_run_options_t options = {
      .struct_size = sizeof(options), .donated = &name, .donated_count = 1};
  // Where the output lies, in floats from the input; how far the input's elements
  // are apart, and where it begins.
  static const struct {
    int at;
    int64_t stride;
    bool donated;
    int from;
  } cases[] = {{2 * COUNT, 1, false, 0}, {0, 1, true, 0},   {16, 1, true, 0},
               {4, 1, true, 0},          {0, 2, true, 0},   {-12, 1, true, 0},
               {2 * COUNT, 2, false, 0}, {16, -1, true, 0}, {-4, 1, true, 4},
               {-20, 1, true, 4},        {12, -1, true, 4}};
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
    float* x = memory + COUNT + cases[c].from;
    for (int i = 0; i < 4 * COUNT; ++i)
      memory[i] = -1;
    int64_t stride = cases[c].stride;
    float* first = stride < 0 ? x + COUNT - 1 : x;
    for (int i = 0; i < COUNT; ++i)
      first[i * stride] = (float)i;
    pestle_tensor_t in = test_view(first, PESTLE_F32, 1, shape, &stride);
    pestle_tensor_t out =
        test_view(x + cases[c].at, PESTLE_F32, 1, shape, NULL);
    assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1,
                                    cases[c].donated ? &options : NULL));
    for (int i = 0; i < COUNT; ++i)
      assert_true(x[cases[c].at + i] == (float)i + 1);
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

// --- Many runs ---

static void test_no_growth(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_executable_t* moves = in_place(context, "test");
  pestle_buffer_t *x = filled(device, 0), *out;
  pestle_memory_stats_t before = {0};
  for (int i = 0; i < 10000; ++i) {
    pestle_buffer_view_t in = {.buffer = x};
    assert_ok(run(e, &in, 1, -1, &out));
    pestle_buffer_release(out);
    assert_ok(run(moves, &in, 1, 0, &x));
    if (i == 10) before = stats_of(device);
  }
  pestle_memory_stats_t after = stats_of(device);
  assert_int_equal(after.active, before.active);
  assert_int_equal(after.cached, before.cached);
  assert_int_equal(after.peak, before.peak);
  check(x, 10000);
  pestle_buffer_release(x);
  pestle_executable_release(moves);
  pestle_executable_release(e);
  pestle_context_release(context);
}

typedef struct crowd_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t *add1, *moves;
  pestle_buffer_t* shared;
  atomic_int wraps, released;
} crowd_t;

// Runs, wraps and releases, on buffers of its own and on one of all.
static void work(void* argument) {
  crowd_t* c = argument;
  pestle_buffer_t* own = filled(c->device, 0);
  for (int i = 0; i < 300; ++i) {
    _Alignas(64) float memory[COUNT] = {0};
    pestle_buffer_t* out;
    pestle_buffer_view_t in = {.buffer = c->shared};
    pestle_buffer_retain(c->shared);
    assert_ok(run(c->moves, &in, 1, 0, &out));  // given away, but not alone
    check(out, 8);
    pestle_buffer_release(out);
    in.buffer = own;
    assert_ok(run(c->moves, &in, 1, 0, &own));
    in.buffer = wrap(c->device, memory, BYTES, 0, &c->released);
    atomic_fetch_add(&c->wraps, 1);
    assert_ok(run(c->add1, &in, 1, -1, &out));
    pestle_buffer_release(in.buffer);
    pestle_buffer_release(out);
    if (i % 64 == 0) {
      assert_ok(
          pestle_device_memory_set(c->device, PESTLE_MEMORY_CACHE, 0, NULL));
    }
  }
  check(own, 300);
  pestle_buffer_release(own);
}

static void test_threads(void** state) {
  (void)state;
  enum { THREADS = 6 };
  crowd_t c = {.context = fixture_context(NULL)};
  c.device = device_of(c.context, "test");
  c.add1 = fixture_add1(c.context, 1, dims);
  c.moves = in_place(c.context, "test");
  c.shared = filled(c.device, 7);
  pestle_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    assert_ok(pestle_thread_start(work, &c, "work", &threads[i]));
  }
  for (int i = 0; i < THREADS; ++i)
    pestle_thread_join(&threads[i]);
  check(c.shared, 7);
  assert_int_equal(c.wraps, c.released);
  pestle_buffer_release(c.shared);
  pestle_executable_release(c.add1);
  pestle_executable_release(c.moves);
  pestle_memory_stats_t stats = stats_of(c.device);
  assert_int_equal(stats.active, 0);
  pestle_context_release(c.context);
}

// --- Another device ---

static void test_device(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* mock = gpu_device(context, "mock:0");
  pestle_executable_t* e = gpu_chain(context);
  pestle_buffer_t* out;
  // From the device's memory, from the host's, from the host's with gaps.
  pestle_buffer_t* input = gpu_input(mock, 3);
  pestle_buffer_t* host = gpu_input(device_of(context, "test"), 3);
  const int64_t strides[] = {6, 1};
  pestle_buffer_view_t views[] = {{.buffer = input},
                                  {.buffer = host},
                                  {.buffer = host, .strides = strides}};
  for (int i = 0; i < 3; ++i) {
    float y[GPU_COUNT];
    assert_ok(run(e, &views[i], 1, -1, &out));
    assert_ptr_equal(pestle_buffer_device(out), mock);
    assert_ok(pestle_buffer_read(out, 0, y, sizeof(y)));
    gpu_check(y, 3);
    pestle_buffer_release(out);
  }
  pestle_buffer_t* other = gpu_input(gpu_device(context, "mockb:0"), 3);
  pestle_buffer_view_t in = {.buffer = other};
  assert_error(run(e, &in, 1, -1, &out), INVALID_ARGUMENT, "on device mockb");
  pestle_buffer_release(other);
  pestle_buffer_release(input);
  pestle_buffer_release(host);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Streams ---

static pestle_status_t queue(pestle_executable_t* e, pestle_stream_t* stream,
                             const pestle_buffer_view_t* inputs, size_t count,
                             int32_t donated, pestle_buffer_t** out) {
  uint32_t index = (uint32_t)donated;
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .donated = &index,
                                          .donated_count = donated >= 0};
  return pestle_executable_run_buffers(e, stream, inputs, count, out, 1,
                                       &options);
}

static pestle_stream_t* stream_of(pestle_device_t* device) {
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  return stream;
}

// Chains over two streams, whose links are released while they are under way.
static void check_chain(pestle_context_t* context, const char* backend) {
  pestle_device_t* device = device_of(context, backend);
  pestle_executable_t* moves = in_place(context, backend);
  pestle_stream_t* streams[2] = {stream_of(device), stream_of(device)};
  pestle_buffer_t *x = filled(device, 0), *copies[20];
  for (int i = 0; i < 20; ++i) {
    // A copy on one stream reads what the other then overwrites.
    pestle_buffer_view_t in = {.buffer = x};
    assert_ok(queue(moves, streams[i % 2], &in, 1, -1, &copies[i]));
    pestle_buffer_t* next;
    assert_ok(queue(moves, streams[(i + 1) % 2], &in, 1, 0, &next));
    assert_ptr_equal(next, x);
  }
  for (int i = 0; i < 20; ++i) {
    assert_ok(pestle_buffer_wait(copies[i]));
    assert_true(pestle_buffer_is_ready(copies[i]));
    check(copies[i], (float)i + 1);
    pestle_buffer_release(copies[i]);
  }
  check(x, 20);
  pestle_buffer_release(x);
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_stream_synchronize(streams[i]));
    pestle_stream_release(streams[i]);
  }
  pestle_executable_release(moves);
}

static void test_chains(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  check_chain(context, "test");
  check_chain(context, "mock");
  gpu_context_end(context);
}

// From a device's stream to a CPU's run and back, each waiting for the other.
static void test_between_devices(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* cpu = device_of(context, "test");
  pestle_executable_t* here = fixture_add1(context, 1, dims);
  pestle_executable_t* there = in_place(context, "mock");
  pestle_stream_t* mine = stream_of(cpu);
  pestle_stream_t* theirs = stream_of(device_of(context, "mock"));
  pestle_buffer_view_t in = {.buffer = filled(cpu, 3)};
  pestle_buffer_t *a, *b, *c;
  assert_ok(queue(here, mine, &in, 1, -1, &a));
  pestle_buffer_release(in.buffer);
  in.buffer = a;
  assert_ok(queue(there, theirs, &in, 1, 0, &b));
  in.buffer = b;
  assert_ok(queue(there, NULL, &in, 1, 0, &c));
  check(c, 6);
  pestle_buffer_release(c);
  assert_ok(pestle_stream_synchronize(mine));
  assert_ok(pestle_stream_synchronize(theirs));
  pestle_stream_release(mine);
  pestle_stream_release(theirs);
  pestle_executable_release(here);
  pestle_executable_release(there);
  gpu_context_end(context);
}

// Wrapped memory is let go once the last run on it is done, not before.
static void check_release(pestle_context_t* context, const char* backend) {
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = in_place(context, backend);
  pestle_stream_t* stream = stream_of(device_of(context, backend));
  atomic_int released = 0;
  pestle_buffer_t* outputs[8];
  static float memory[COUNT];
  for (int i = 0; i < 8; ++i) {
    pestle_buffer_view_t in = {.buffer =
                                   wrap(device, memory, BYTES, 0, &released)};
    assert_ok(queue(e, stream, &in, 1, i % 2 ? 0 : -1, &outputs[i]));
    if (i % 2 == 0) pestle_buffer_release(in.buffer);
  }
  assert_ok(pestle_stream_synchronize(stream));
  for (int i = 0; i < 8; ++i) {
    assert_ok(pestle_buffer_wait(outputs[i]));
    pestle_buffer_release(outputs[i]);
  }
  // Of another device by a thread of the runtime.
  for (int i = 0; i < 20000 && atomic_load(&released) < 8; ++i)
    pestle_thread_sleep_ns(100000);
  assert_int_equal(released, 8);
  pestle_stream_release(stream);
  pestle_executable_release(e);
}

static void test_release_after_runs(void** state) {
  (void)state;
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  atomic_store(&mock_state()->launch_delay_us, 2000);
  check_release(context, "test");
  check_release(context, "mock");
  gpu_context_end(context);
}

static void test_bounded_on_stream(void** state) {
  (void)state;
  static const char* const backends[] = {"test", "mock"};
  mock_reset();
  pestle_context_t* context = gpu_context(NULL);
  for (int b = 0; b < 2; ++b) {
    static plan_writer_t w;
    write_bounded(&w, backends[b]);
    pestle_executable_t* e = fixture_executable(context, &w);
    pestle_device_t* device = device_of(context, backends[b]);
    pestle_stream_t* stream = stream_of(device);
    pestle_buffer_view_t in = {.buffer = filled(device, 5)};
    pestle_buffer_t* outputs[10];
    for (int i = 0; i < 10; ++i)
      assert_ok(queue(e, stream, &in, 1, -1, &outputs[i]));
    for (int i = 0; i < 10; ++i) {
      float y[2];
      assert_ok(pestle_buffer_wait(outputs[i]));
      const int64_t* extents = pestle_buffer_extents(outputs[i], NULL);
      assert_true(extents[0] == 2 && extents[1] == 1);
      assert_ok(pestle_buffer_read(outputs[i], 0, y, sizeof(y)));
      assert_true(y[0] == 6 && y[1] == 10);
      pestle_buffer_release(outputs[i]);
    }
    pestle_buffer_release(in.buffer);
    assert_ok(pestle_stream_synchronize(stream));
    pestle_stream_release(stream);
    pestle_executable_release(e);
  }
  gpu_context_end(context);
}

static pestle_executable_t* trap(pestle_context_t* context) {
  static plan_writer_t w;
  plan_begin(&w, "trap");
  plan_device(&w, "test", "");
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  w.inputs[0].alias = w.outputs[0].alias = 0;
  uint32_t kernel = fixture_kernel(&w, "trap", TEST_TRAP, 1, 1, 0);
  uint32_t first = plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(&w, kernel, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_executable(context, &w);
}

typedef struct told_t {
  atomic_int calls;
  pestle_status_code_t code;
} told_t;

static void be_told(void* self, pestle_status_t status) {
  told_t* told = self;
  told->code = pestle_status_code(status);
  atomic_fetch_add(&told->calls, 1);
}

// A failure goes with what was to be made, over streams and to the caller, and
// reaches nothing else.
static void test_poison(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* fails = trap(context);
  pestle_executable_t* add1 = fixture_add1(context, 1, dims);
  pestle_stream_t *one = stream_of(device), *two = stream_of(device);
  pestle_event_t* event;
  assert_ok(pestle_event_create(device, &event));
  pestle_buffer_view_t in = {.buffer = filled(device, 5)};
  pestle_buffer_t *bad, *worse, *good, *none;
  assert_ok(queue(fails, one, &in, 1, -1, &bad));
  assert_ok(queue(add1, one, &in, 1, -1, &good));
  pestle_buffer_view_t from_bad = {.buffer = bad};
  assert_ok(queue(add1, two, &from_bad, 1, -1, &worse));
  told_t told = {0};
  assert_ok(pestle_event_record_buffer(event, worse));
  assert_ok(pestle_event_on_signalled(event, be_told, &told));
  assert_ok(pestle_event_wait(event, NULL));
  assert_code(pestle_event_status(event), INTERNAL);
  // The caller's own run, its read and its write are told the same.
  from_bad.buffer = worse;
  assert_error(run(add1, &from_bad, 1, -1, &none), INTERNAL,
               "input 'x' of plan 'add1' holds no result");
  assert_null(none);
  float x[COUNT];
  assert_error(pestle_buffer_read(bad, 0, x, 4), INTERNAL, "trap");
  assert_error(pestle_buffer_write(bad, 0, x, 4), INTERNAL, "trap");
  assert_error(pestle_buffer_wait(worse), INTERNAL, "trap");
  assert_true(pestle_buffer_is_ready(worse));
  check(good, 6);
  check(in.buffer, 5);
  assert_code(pestle_stream_synchronize(one), INTERNAL);
  assert_code(pestle_stream_synchronize(two), INTERNAL);
  while (!atomic_load(&told.calls))
    pestle_thread_yield();
  assert_int_equal(told.code, PESTLE_STATUS_INTERNAL);
  assert_int_equal(told.calls, 1);
  pestle_event_release(event);
  pestle_buffer_release(bad);
  pestle_buffer_release(worse);
  pestle_buffer_release(good);
  pestle_buffer_release(in.buffer);
  pestle_stream_release(one);
  pestle_stream_release(two);
  pestle_executable_release(fails);
  pestle_executable_release(add1);
  assert_int_equal(stats_of(device).active, 0);
  pestle_context_release(context);
}

// A run on tensors poisons addresses. Memory that is had anew is not that.
static void test_poisoned_address(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* fails = trap(context);
  pestle_executable_t* add1 = fixture_add1(context, 1, dims);
  pestle_stream_t* stream = stream_of(device);
  pestle_event_t* event;
  assert_ok(pestle_event_create(device, &event));
  pestle_buffer_view_t in = {.buffer = filled(device, 5)};
  pestle_buffer_t* y;
  assert_ok(pestle_buffer_create(device, BYTES, &y));
  int64_t shape[] = {COUNT};
  pestle_tensor_t from =
      test_view(pestle_buffer_data(in.buffer), PESTLE_F32, 1, shape, NULL);
  pestle_tensor_t to =
      test_view(pestle_buffer_data(y), PESTLE_F32, 1, shape, NULL);
  assert_ok(pestle_executable_run(fails, stream, &from, 1, &to, 1, NULL));
  assert_ok(pestle_event_record(event, stream));
  assert_ok(pestle_event_wait(event, NULL));
  pestle_buffer_release(y);
  pestle_buffer_t *made, *read;
  assert_ok(run(add1, &in, 1, -1, &made));
  assert_ptr_equal(pestle_buffer_data(made), to.data);
  pestle_buffer_view_t again = {.buffer = made};
  assert_ok(queue(add1, stream, &again, 1, -1, &read));
  check(read, 7);
  assert_code(pestle_stream_synchronize(stream), INTERNAL);
  pestle_event_release(event);
  pestle_buffer_release(made);
  pestle_buffer_release(read);
  pestle_buffer_release(in.buffer);
  pestle_stream_release(stream);
  pestle_executable_release(fails);
  pestle_executable_release(add1);
  pestle_context_release(context);
}

static void test_events(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_context_t* other = fixture_context(NULL);
  pestle_device_t* device = device_of(context, "test");
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_stream_t* stream = stream_of(device);
  pestle_event_t *before, *done, *foreign;
  assert_ok(pestle_event_create(device, &before));
  assert_ok(pestle_event_create(device, &done));
  assert_ok(pestle_event_create(device_of(other, "test"), &foreign));
  pestle_buffer_view_t in = {.buffer = filled(device, 5)};
  pestle_buffer_t* out;
  pestle_event_t* waits[] = {before};
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .waits = waits,
                                          .wait_count = 1,
                                          .done = done};
  for (int s = 0; s < 2; ++s) {
    pestle_stream_t* on = s ? stream : NULL;
#define RUN() pestle_executable_run_buffers(e, on, &in, 1, &out, 1, &options)
    if (!s) assert_error(RUN(), INVALID_ARGUMENT, "never recorded");
    assert_ok(pestle_event_record(before, NULL));
    assert_ok(RUN());
    assert_ok(pestle_event_wait(done, NULL));
    assert_ok(pestle_event_status(done));
    check(out, 6);
    pestle_buffer_release(out);
    options.done = foreign;
    assert_error(RUN(), INVALID_ARGUMENT, "another context");
    options.done = done;
    waits[0] = foreign;
    assert_ok(pestle_event_record(foreign, NULL));
    assert_error(RUN(), INVALID_ARGUMENT, "another context");
    waits[0] = NULL;
    assert_error(RUN(), INVALID_ARGUMENT, "is NULL");
    waits[0] = before;
    options.waits = NULL;
    assert_code(RUN(), INVALID_ARGUMENT);
    options.waits = waits;
#undef RUN
  }
  assert_code(pestle_event_record_buffer(foreign, in.buffer), INVALID_ARGUMENT);
  assert_ok(pestle_stream_synchronize(stream));
  pestle_stream_release(stream);
  pestle_event_release(before);
  pestle_event_release(done);
  pestle_event_release(foreign);
  pestle_buffer_release(in.buffer);
  pestle_executable_release(e);
  pestle_context_release(context);
  pestle_context_release(other);
}

// Threads with a stream each read one buffer and move their own.
static void work_on_stream(void* argument) {
  crowd_t* c = argument;
  pestle_stream_t* stream = stream_of(c->device);
  pestle_buffer_t* own = filled(c->device, 0);
  for (int i = 0; i < 200; ++i) {
    static float memory[COUNT];
    pestle_buffer_t *copy, *out;
    pestle_buffer_view_t in = {.buffer = c->shared};
    assert_ok(queue(c->add1, stream, &in, 1, -1, &copy));
    in.buffer = copy;
    assert_ok(queue(c->moves, i % 3 ? stream : NULL, &in, 1, 0, &out));
    if (i % 7 == 0) check(out, 9);
    pestle_buffer_release(out);
    in.buffer = own;
    assert_ok(queue(c->moves, i % 2 ? stream : NULL, &in, 1, 0, &own));
    in.buffer = wrap(c->device, memory, BYTES, 0, &c->released);
    atomic_fetch_add(&c->wraps, 1);
    assert_ok(queue(c->add1, stream, &in, 1, 0, &out));
    pestle_buffer_release(out);
  }
  check(own, 200);
  pestle_buffer_release(own);
  assert_ok(pestle_stream_synchronize(stream));
  pestle_stream_release(stream);
}

static void test_threads_on_streams(void** state) {
  (void)state;
  enum { THREADS = 4 };
  crowd_t c = {.context = fixture_context(NULL)};
  c.device = device_of(c.context, "test");
  c.add1 = fixture_add1(c.context, 1, dims);
  c.moves = in_place(c.context, "test");
  c.shared = filled(c.device, 7);
  pestle_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    assert_ok(pestle_thread_start(work_on_stream, &c, "work", &threads[i]));
  }
  for (int i = 0; i < THREADS; ++i)
    pestle_thread_join(&threads[i]);
  check(c.shared, 7);
  assert_int_equal(c.wraps, c.released);
  pestle_buffer_release(c.shared);
  pestle_executable_release(c.add1);
  pestle_executable_release(c.moves);
  assert_int_equal(stats_of(c.device).active, 0);
  pestle_context_release(c.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrap),
      cmocka_unit_test(test_read_only),
      cmocka_unit_test(test_wrap_failures),
      cmocka_unit_test(test_release_calls_pestle),
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_nothing),
      cmocka_unit_test(test_bounded),
      cmocka_unit_test(test_donation),
      cmocka_unit_test(test_wrapped_donation),
      cmocka_unit_test(test_unplanned_donation),
      cmocka_unit_test(test_failed_run),
      cmocka_unit_test(test_tensors_in_place),
      cmocka_unit_test(test_no_growth),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_chains),
      cmocka_unit_test(test_between_devices),
      cmocka_unit_test(test_release_after_runs),
      cmocka_unit_test(test_bounded_on_stream),
      cmocka_unit_test(test_poison),
      cmocka_unit_test(test_poisoned_address),
      cmocka_unit_test(test_events),
      cmocka_unit_test(test_threads_on_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
