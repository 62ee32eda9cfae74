// SPDX-License-Identifier: Apache-2.0
// One call of an executable: views, outputs, overlaps, control, jumps.
#include "unit/runtime/fixture.h"

#include "base/thread.h"

#define RUN(e, in, out, options) \
  pestle_executable_run((e), NULL, &(in), 1, &(out), 1, (options))

static void test_in_place(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {3, 5};
  pestle_executable_t* e = fixture_add1(context, 2, dims);
  assert_int_equal(pestle_executable_input_count(e), 1);
  assert_string_equal(pestle_executable_input(e, 0).name, "x");
  assert_int_equal(pestle_executable_output(e, 0).rank, 2);
  _Alignas(64) float x[15], y[16];
  for (int i = 0; i < 15; ++i)
    x[i] = (float)i;
  y[15] = -1;
  pestle_tensor_t in = test_view(x, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, dims, NULL);
  assert_ok(RUN(e, in, out, NULL));
  for (int i = 0; i < 15; ++i)
    assert_true(y[i] == (float)i + 1);
  assert_true(y[15] == -1);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// Every combination of axis order and sign on both sides, misaligned too.
static void test_strides(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {3, 4, 5};
  pestle_executable_t* e = fixture_add1(context, 3, dims);
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  _Alignas(64) float x[512], y[512];
  for (int order = 0; order < 6; ++order) {
    for (int signs = 0; signs < 8; ++signs) {
      for (int gap = 1; gap <= 2; ++gap) {
        int64_t strides[3], step = gap, base = 3;
        for (int k = 2; k >= 0; --k) {
          int axis = orders[order][k];
          strides[axis] = step;
          step *= dims[axis] + gap - 1;
          if (signs >> axis & 1) {
            base += strides[axis] * (dims[axis] - 1);
            strides[axis] = -strides[axis];
          }
        }
        for (int i = 0; i < 512; ++i)
          x[i] = (float)i, y[i] = -5;
        pestle_tensor_t in = test_view(x, PESTLE_F32, 3, dims, strides);
        in.byte_offset = (uint64_t)base * 4;
        pestle_tensor_t out = test_view(y, PESTLE_F32, 3, dims, strides);
        out.byte_offset = in.byte_offset;
        assert_ok(RUN(e, in, out, NULL));
        int written = 0;
        for (int i = 0; i < 512; ++i) {
          if (y[i] == -5) continue;
          assert_true(y[i] == x[i] + 1);
          ++written;
        }
        assert_int_equal(written, 60);
      }
    }
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_broadcast_input(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {2, 3};
  pestle_executable_t* e = fixture_add1(context, 2, dims);
  float x[3] = {1, 2, 3}, y[6];
  int64_t strides[] = {0, 1};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 2, dims, strides);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, dims, NULL);
  assert_ok(RUN(e, in, out, NULL));
  for (int i = 0; i < 6; ++i)
    assert_true(y[i] == x[i % 3] + 1);
  // An output must not name an element twice.
  out.strides = strides;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "output 'y' name an element twice");
  int64_t crossing[] = {2, 1};
  out.strides = crossing;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "twice");
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_mismatches(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {2, 3}, other[] = {3, 2};
  pestle_executable_t* e = fixture_add1(context, 2, dims);
  float x[6] = {0}, y[6];
  pestle_tensor_t good = test_view(x, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t in = good;
  in.dtype = pestle_dtype_to_dlpack(PESTLE_I64);
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "input 'x' has dtype i64");
  in = good;
  in.shape = other;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "input 'x' has shape 3x2, expected 2x3");
  in = good;
  in.ndim = 1;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "input 'x' has rank 1, expected 2");
  in = good;
  in.device.device_type = PESTLE_DEVICE_CUDA;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "device");
  in = good;
  in.device.device_id = 3;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "input 'x' is on CPU device 3, which does not exist");
  in.device.device_id = -1;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "CPU device -1");
  pestle_tensor_t elsewhere = out;
  elsewhere.device.device_id = 1;
  assert_error(RUN(e, good, elsewhere, NULL), INVALID_ARGUMENT,
               "output 'y' is on CPU device 1");
  in = good;
  in.shape = NULL;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT,
               "input 'x' has rank 2 but no shape");
  in = good;
  in.data = NULL;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "'x' has no data");
  in = good;
  int64_t far[] = {INT64_MAX / 2, 1};
  in.strides = far;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "address space");
  int64_t lowest[] = {INT64_MIN, INT64_MIN};
  in.strides = lowest;
  assert_error(RUN(e, in, out, NULL), INVALID_ARGUMENT, "address space");
  out.shape = other;
  assert_error(RUN(e, good, out, NULL), INVALID_ARGUMENT,
               "output 'y' has shape");
  assert_error(pestle_executable_run(e, NULL, &good, 1, NULL, 0, NULL),
               INVALID_ARGUMENT, "1 inputs and 0 outputs");
  assert_error(pestle_executable_run(e, NULL, NULL, 1, &out, 1, NULL),
               INVALID_ARGUMENT, "inputs are NULL");
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_allocated_output(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {2, 3};
  pestle_executable_t* e = fixture_add1(context, 2, dims);
  float x[6] = {0, 1, 2, 3, 4, 5};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = {0};
  assert_ok(RUN(e, in, out, NULL));
  assert_int_equal(out.ndim, 2);
  assert_int_equal(out.shape[1], 3);
  assert_int_equal(out.strides[0], 3);
  assert_int_equal((uintptr_t)out.data % 64, 0);
  for (int i = 0; i < 6; ++i)
    assert_true(((float*)out.data)[i] == x[i] + 1);
  pestle_tensor_release(e, &out);
  assert_null(out.data);
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_empty(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {0, 3};
  pestle_executable_t* e = fixture_add1(context, 2, dims);
  pestle_tensor_t in = test_view(NULL, PESTLE_F32, 2, dims, NULL);
  pestle_tensor_t out = {0};
  assert_ok(RUN(e, in, out, NULL));
  assert_non_null(out.data);
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void write_two_in_two_out(plan_writer_t* w) {
  int64_t dims[] = {16};
  plan_begin(w, "two");
  plan_device(w, "test", "");
  plan_input(w, "a", PESTLE_F32, 1, dims);
  plan_input(w, "b", PESTLE_F32, 1, dims);
  plan_output(w, "s", PESTLE_F32, 1, dims);
  plan_output(w, "t", PESTLE_F32, 1, dims);
  uint64_t arena = plan_arena(w, 64);
  uint32_t add = fixture_kernel(w, "add", TEST_ADD, 3, 16, 0);
  uint32_t add1 = fixture_kernel(w, "add1", TEST_ADD1, 2, 16, 0);
  // m = a + b; s = m + 1; t = s + m
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 64);
  plan_bind(w, PESTLE_PLAN_INPUT, 1, 0, 64);
  plan_bind(w, PESTLE_PLAN_ARENA, 0, arena, 64);
  plan_launch(w, add, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, arena, 64);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_launch(w, add1, first);
  first = plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_bind(w, PESTLE_PLAN_ARENA, 0, arena, 64);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 1, 0, 64);
  plan_launch(w, add, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void test_overlaps(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_two_in_two_out(&w);
  pestle_executable_t* e = fixture_executable(context, &w);
  int64_t dims[] = {16};
  _Alignas(64) float memory[4][16];
  for (int i = 0; i < 16; ++i)
    memory[0][i] = (float)i, memory[1][i] = 2;
  pestle_tensor_t in[2], out[2];
  for (int i = 0; i < 2; ++i) {
    in[i] = test_view(memory[i], PESTLE_F32, 1, dims, NULL);
    out[i] = test_view(memory[2 + i], PESTLE_F32, 1, dims, NULL);
  }
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, NULL));
  assert_true(memory[2][5] == 8 && memory[3][5] == 15);
  // Inputs may share memory.
  in[1].data = memory[0];
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, NULL));
  in[1].data = memory[1];
  out[1].data = memory[1];
  assert_error(pestle_executable_run(e, NULL, in, 2, out, 2, NULL),
               INVALID_ARGUMENT, "output 't' overlaps input 'b'");
  out[1].data = (char*)memory[2] + 60;
  assert_error(pestle_executable_run(e, NULL, in, 2, out, 2, NULL),
               INVALID_ARGUMENT, "output 't' overlaps output 's'");
  // Donated: 't' is written after 'b' was read for the last time.
  const char* names[] = {"b"};
  pestle_run_options_t options = fixture_run_options();
  options.donated = names;
  options.donated_count = 1;
  out[1].data = memory[1];
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, &options));
  assert_true(memory[1][5] == 15);
  names[0] = "nobody";
  assert_error(pestle_executable_run(e, NULL, in, 2, out, 2, &options),
               INVALID_ARGUMENT, "'nobody'");
  pestle_executable_release(e);
  pestle_context_release(context);
}

// A donated input that is still read when the output is written is copied.
static void test_donated_and_live(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {16};
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  _Alignas(64) float memory[32];
  for (int i = 0; i < 32; ++i)
    memory[i] = (float)i;
  const char* names[] = {"x"};
  pestle_run_options_t options = fixture_run_options();
  options.donated = names;
  options.donated_count = 1;
  pestle_tensor_t in = test_view(memory, PESTLE_F32, 1, dims, NULL);
  // Shifted by one element: in place this would smear the first one.
  pestle_tensor_t out = test_view(memory, PESTLE_F32, 1, dims, NULL);
  out.byte_offset = 4;
  assert_ok(RUN(e, in, out, &options));
  for (int i = 0; i < 16; ++i)
    assert_true(memory[i + 1] == (float)i + 1);
  out.byte_offset = 0;
  memory[0] = 7;
  assert_ok(RUN(e, in, out, &options));
  assert_true(memory[0] == 8);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// n is counted down to 0 in a loop, y = x + 1 + ... + 1; then a switch.
static void test_jumps(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t one[] = {1}, dims[] = {16};
  plan_begin(&w, "loop");
  plan_device(&w, "test", "");
  plan_input(&w, "n", PESTLE_I32, 1, one);
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  uint64_t n = plan_arena(&w, 4);
  uint32_t dec = fixture_kernel(&w, "dec", TEST_DEC, 1, 1, 0);
  uint32_t add1 = fixture_kernel(&w, "add1", TEST_ADD1, 2, 16, 0);
  uint32_t copy_n = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 4);
  uint32_t bind_n = plan_bind(&w, PESTLE_PLAN_ARENA, 0, n, 4);
  uint32_t copy_x = plan_bind(&w, PESTLE_PLAN_INPUT, 1, 0, 64);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  uint32_t step = plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_step(&w, PESTLE_PLAN_COPY, 0, copy_n, 2, 0);
  plan_step(&w, PESTLE_PLAN_COPY, 0, copy_x, 2, 0);
  plan_step(&w, PESTLE_PLAN_JUMP_IF_ZERO, 0, bind_n, 1, 6);  // 2
  plan_launch(&w, add1, step);
  plan_launch(&w, dec, bind_n);
  plan_step(&w, PESTLE_PLAN_JUMP, 0, 0, 0, 2);
  // n is 0 again; a switch on the input: 5 takes the last case.
  plan_step(&w, PESTLE_PLAN_JUMP_TABLE, 0, copy_n, 2, 7);  // 6
  plan_step(&w, PESTLE_PLAN_JUMP, 0, 0, 0, 10);
  plan_step(&w, PESTLE_PLAN_JUMP, 0, 0, 0, 9);
  plan_launch(&w, add1, step);  // 9
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  for (int32_t count = 0; count < 6; ++count) {
    float x[16] = {0}, y[16];
    pestle_tensor_t in[2] = {test_view(&count, PESTLE_I32, 1, one, NULL),
                             test_view(x, PESTLE_F32, 1, dims, NULL)};
    pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
    assert_ok(pestle_executable_run(e, NULL, in, 2, &out, 1, NULL));
    assert_true(y[3] == (float)(count + (count ? 1 : 0)));
  }
  // A loop without end can be stopped.
  int32_t forever = -1;
  float x[16] = {0}, y[16];
  pestle_tensor_t in[2] = {test_view(&forever, PESTLE_I32, 1, one, NULL),
                           test_view(x, PESTLE_F32, 1, dims, NULL)};
  pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
  pestle_control_t control = {.struct_size = sizeof(control),
                              .deadline_ns = pestle_clock_ns() + 5000000};
  pestle_run_options_t options = fixture_run_options();
  options.control = &control;
  assert_code(pestle_executable_run(e, NULL, in, 2, &out, 1, &options),
              DEADLINE_EXCEEDED);
  int32_t cancel = 1;
  control.deadline_ns = 0;
  control.cancel = &cancel;
  assert_code(pestle_executable_run(e, NULL, in, 2, &out, 1, &options),
              CANCELLED);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// y = x + 1 + .. + 1, by two loops of known trips in a third.
static void test_repeats(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {16};
  plan_begin(&w, "repeats");
  plan_device(&w, "test", "");
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  uint32_t add1 = fixture_kernel(&w, "add1", TEST_ADD1, 2, 16, 0);
  uint32_t copy = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 64);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  uint32_t step = plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_step(&w, PESTLE_PLAN_COPY, 0, copy, 2, 0);
  plan_launch(&w, add1, step);                     // 1
  plan_step(&w, PESTLE_PLAN_REPEAT, 0, 0, 5, 1);   // 2
  plan_launch(&w, add1, step);                     // 3
  plan_step(&w, PESTLE_PLAN_REPEAT, 1, 0, 2, 3);   // 4
  plan_step(&w, PESTLE_PLAN_REPEAT, 2, 0, 10, 1);  // 5: 10 (5 + 2)
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  int32_t cancel = 0;
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &cancel};
  pestle_run_options_t options = fixture_run_options();
  options.control = &control;
  for (int run = 0; run < 3; ++run) {
    float x[16] = {0}, y[16];
    pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
    pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
    assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
    assert_true(y[0] == 70 && y[15] == 70);
    // One that is stopped within leaves nothing behind.
    int stop[2] = {0, 9};
    control.cancel = &stop[0];
    control.progress = stop_at;
    control.progress_user = stop;
    assert_code(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options),
                CANCELLED);
    control.cancel = &cancel;
    control.progress = NULL;
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void write_bounded(plan_writer_t* w) {
  int64_t dims[] = {4, 3};
  plan_begin(w, "bounded");
  plan_device(w, "test", "");
  plan_input(w, "x", PESTLE_F32, 2, dims);
  plan_output(w, "y", PESTLE_F32, 2, dims);
  w->outputs[0].bounded = 1;
  uint64_t extents = plan_arena(w, 16);
  w->outputs[0].shape_offset = (int64_t)extents;
  uint32_t add1 = fixture_kernel(w, "add1", TEST_ADD1, 2, 12, 0);
  uint32_t shape = fixture_kernel(w, "extents", TEST_EXTENTS, 1, 1, 0);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 48);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, 48);
  plan_launch(w, add1, first);
  plan_launch(w, shape, plan_bind(w, PESTLE_PLAN_ARENA, 0, extents, 16));
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void test_bounded(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_bounded(&w);
  pestle_executable_t* e = fixture_executable(context, &w);
  assert_true(pestle_executable_output(e, 0).bounded);
  int64_t dims[] = {4, 3};
  float x[12];
  for (int i = 0; i < 12; ++i)
    x[i] = (float)i;
  pestle_tensor_t in = test_view(x, PESTLE_F32, 2, dims, NULL);
  // Extents come out as 2 x 1: elements 0 and 3.
  pestle_tensor_t out = {0};
  assert_ok(RUN(e, in, out, NULL));
  assert_true(out.shape[0] == 2 && out.shape[1] == 1 && out.strides[0] == 1);
  assert_true(((float*)out.data)[0] == 1 && ((float*)out.data)[1] == 4);
  pestle_tensor_release(e, &out);
  // In place and staged; a view without strides is packed.
  _Alignas(64) float y[32];
  for (uint64_t offset = 0; offset <= 4; offset += 4) {
    int64_t shape[] = {4, 3};
    out = test_view(y, PESTLE_F32, 2, shape, NULL);
    out.byte_offset = offset;
    assert_ok(RUN(e, in, out, NULL));
    assert_true(shape[0] == 2 && shape[1] == 1);
    assert_true(y[offset / 4] == 1 && y[offset / 4 + 1] == 4);
  }
  // One with strides keeps them.
  int64_t shape[] = {4, 3}, strides[] = {3, 1};
  out = test_view(y, PESTLE_F32, 2, shape, strides);
  assert_ok(RUN(e, in, out, NULL));
  assert_true(shape[0] == 2 && y[0] == 1 && y[3] == 4);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_trap_is_named(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  for (uint64_t work = 0; work <= 1000000; work += 1000000) {
    plan_begin(&w, "trap");
    plan_device(&w, "test", "");
    uint32_t kernel = fixture_kernel(&w, "bad_kernel", TEST_TRAP, 0, 64, work);
    plan_launch(&w, kernel, 0);
    plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
    pestle_executable_t* e = fixture_executable(context, &w);
    assert_error(pestle_executable_run(e, NULL, NULL, 0, NULL, 0, NULL),
                 INTERNAL, "'bad_kernel'");
    pestle_executable_release(e);
  }
  pestle_context_release(context);
}

// Kernels see the default state on every thread, and the caller's comes back.
static void test_mxcsr(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {256};
  plan_begin(&w, "probe");
  plan_device(&w, "test", "");
  plan_output(&w, "m", PESTLE_U32, 1, dims);
  uint32_t kernel = fixture_kernel(&w, "probe", TEST_PROBE, 1, 256, 10000000);
  plan_launch(&w, kernel, plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 1024));
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  unsigned before = __builtin_ia32_stmxcsr();
  unsigned odd = 0xffc0;  // flush to zero, denormals are zero, toward zero
  __builtin_ia32_ldmxcsr(odd);
  pestle_tensor_t out = {0};
  pestle_status_t status =
      pestle_executable_run(e, NULL, NULL, 0, &out, 1, NULL);
  unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  assert_ok(status);
  assert_int_equal(after, odd);
  for (int i = 0; i < 256; ++i) {
    assert_int_equal(((uint32_t*)out.data)[i] & ~0x3fu, 0x1f80);
  }
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void count_step(void* user, uint32_t step, int64_t begin, int64_t end) {
  assert_true(end >= begin);
  ((uint32_t*)user)[step]++;
}

static void count_progress(void* user, const char* stage, int64_t done,
                           int64_t total) {
  assert_string_equal(stage, "run");
  assert_true(done >= 1 && done <= total);
  ++*(int*)user;
}

static void test_hooks(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_two_in_two_out(&w);
  pestle_executable_t* e = fixture_executable(context, &w);
  int64_t dims[] = {16};
  float a[16] = {0};
  pestle_tensor_t in[2] = {test_view(a, PESTLE_F32, 1, dims, NULL),
                           test_view(a, PESTLE_F32, 1, dims, NULL)};
  pestle_tensor_t out[2] = {{0}, {0}};
  uint32_t counts[4] = {0};
  int progress = 0;
  pestle_control_t control = {.struct_size = sizeof(control),
                              .progress = count_progress,
                              .progress_user = &progress};
  pestle_run_options_t options = fixture_run_options();
  options.on_step = count_step;
  options.on_step_user = counts;
  options.control = &control;
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, &options));
  for (int i = 0; i < 4; ++i)
    assert_int_equal(counts[i], 1);
  assert_int_equal(progress, 4);
  pestle_tensor_release(e, &out[0]);
  pestle_tensor_release(e, &out[1]);
  // A short struct of an older caller is read as far as it goes.
  options.struct_size = offsetof(pestle_run_options_t, on_step);
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, &options));
  assert_int_equal(counts[0], 1);
  pestle_tensor_release(e, &out[0]);
  pestle_tensor_release(e, &out[1]);
  options.struct_size = 0;
  assert_error(pestle_executable_run(e, NULL, in, 2, out, 2, &options),
               INVALID_ARGUMENT, "struct_size");
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_features_and_devices(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {4};
  pestle_executable_t* e;
  fixture_write_add1(&w, 1, dims, 0);
  w.devices[0].features = plan_text(&w, "+avx2,+avx512f,-amx,+avx512vnni");
  pestle_plan_t* plan = fixture_plan(context, &w);
  assert_error(pestle_executable_create(context, plan, NULL, &e), INCOMPATIBLE,
               "+avx512f,+avx512vnni");
  assert_null(e);
  pestle_plan_release(plan);
  fixture_write_add1(&w, 1, dims, 0);
  plan = fixture_plan(context, &w);
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_error(pestle_executable_create(context, plan, device, &e),
               INCOMPATIBLE, "for backend 'test', not for device ref");
  assert_ok(pestle_context_device(context, "test", &device));
  assert_ok(pestle_executable_create(context, plan, device, &e));
  pestle_executable_release(e);
  pestle_plan_release(plan);
  fixture_write_add1(&w, 1, dims, 0);
  w.devices[0].backend = plan_text(&w, "warp");
  plan = fixture_plan(context, &w);
  assert_error(pestle_executable_create(context, plan, NULL, &e), NOT_FOUND,
               "there are: cpu:0 (test)");
  pestle_plan_release(plan);
  // A foreign artifact.
  fixture_write_add1(&w, 1, dims, 0);
  memcpy(w.code, "garbage!", 8);
  plan = fixture_plan(context, &w);
  assert_error(pestle_executable_create(context, plan, NULL, &e), MALFORMED,
               "while loading kernel 'add1'");
  pestle_plan_release(plan);
  pestle_context_release(context);
}

// Nothing is allocated by a run whose views are used in place, nor, once its
// memory exists, by one that copies or allocates outputs.
static void test_steady_state(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = fixture_options();
  options.allocator = pestle_test_allocator(&memory);
  pestle_context_t* context = fixture_context(&options);
  int64_t dims[] = {1024}, strides[] = {-1};
  static plan_writer_t w;
  fixture_write_add1(&w, 1, dims, 10000000);  // on all threads
  pestle_executable_t* e = fixture_executable(context, &w);
  _Alignas(64) static float x[1024], y[1024];
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t reversed = test_view(x, PESTLE_F32, 1, dims, strides);
  reversed.byte_offset = 1023 * 4;
  pestle_tensor_t allocated;
  size_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 2) before = atomic_load(&memory.request_count);
    assert_ok(RUN(e, in, out, NULL));
    assert_ok(RUN(e, reversed, out, NULL));
    allocated = (pestle_tensor_t){0};
    assert_ok(RUN(e, in, allocated, NULL));
    pestle_tensor_release(e, &allocated);
  }
  assert_int_equal(atomic_load(&memory.request_count), before);
  pestle_executable_release(e);
  pestle_context_release(context);
  pestle_test_allocator_check(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_strides),
      cmocka_unit_test(test_broadcast_input),
      cmocka_unit_test(test_mismatches),
      cmocka_unit_test(test_allocated_output),
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_overlaps),
      cmocka_unit_test(test_donated_and_live),
      cmocka_unit_test(test_jumps),
      cmocka_unit_test(test_repeats),
      cmocka_unit_test(test_bounded),
      cmocka_unit_test(test_trap_is_named),
      cmocka_unit_test(test_mxcsr),
      cmocka_unit_test(test_hooks),
      cmocka_unit_test(test_features_and_devices),
      cmocka_unit_test(test_steady_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
