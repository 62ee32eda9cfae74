// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include "base/thread.h"
#include "unit/runtime/fixture.h"

static pestle_device_t* cpu(pestle_context_t* context) {
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "cpu", &device));
  return device;
}

static void test_order(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {32};
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(cpu(context), &stream));
  _Alignas(64) float a[32] = {0}, b[32];
  // The views die before the run: the stream has copies.
  for (int i = 0; i < 50; ++i) {
    int64_t own[] = {32}, strides[] = {1};
    pestle_tensor_t in = test_view(i % 2 ? b : a, PESTLE_F32, 1, own, strides);
    pestle_tensor_t out = test_view(i % 2 ? a : b, PESTLE_F32, 1, own, strides);
    assert_ok(pestle_executable_run(e, stream, &in, 1, &out, 1, NULL));
    memset(own, 0x7f, sizeof(own));
    memset(strides, 0x7f, sizeof(strides));
    memset(&in, 0x7f, sizeof(in));
  }
  pestle_executable_release(e);
  assert_ok(pestle_stream_synchronize(stream));
  for (int i = 0; i < 32; ++i)
    assert_true(a[i] == 50);
  pestle_stream_release(stream);
  pestle_context_release(context);
}

static void test_errors_are_at_the_call(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_context_t* other = fixture_context(NULL);
  int64_t dims[] = {32}, wrong[] = {31};
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(cpu(other), &stream));
  float a[32] = {0}, b[32];
  pestle_tensor_t in = test_view(a, PESTLE_F32, 1, wrong, NULL);
  pestle_tensor_t out = test_view(b, PESTLE_F32, 1, dims, NULL);
  assert_error(pestle_executable_run(e, stream, &in, 1, &out, 1, NULL),
               INVALID_ARGUMENT, "input 'x'");
  in.shape = dims;
  assert_error(pestle_executable_run(e, stream, &in, 1, &out, 1, NULL),
               INVALID_ARGUMENT, "another context");
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_context_release(other);
  pestle_context_release(context);
}

// The first failure is reported once; what does not depend on it is done.
static void test_failure_is_kept(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {32};
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(cpu(context), &stream));
  pestle_event_t* event;
  assert_ok(pestle_event_create(cpu(context), &event));
  float a[32] = {0}, b[32] = {0}, c[32] = {0}, d[32] = {0};
  pestle_tensor_t in = test_view(a, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = test_view(b, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t next = test_view(c, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t other = test_view(d, PESTLE_F32, 1, dims, NULL);
  int32_t cancel = 1;
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &cancel};
  pestle_run_options_t options = fixture_run_options();
  options.control = &control;
  assert_ok(pestle_executable_run(e, stream, &in, 1, &out, 1, &options));
  assert_ok(pestle_executable_run(e, stream, &out, 1, &next, 1, NULL));
  assert_ok(pestle_executable_run(e, stream, &in, 1, &other, 1, NULL));
  assert_ok(pestle_event_record(event, stream));
  assert_ok(pestle_event_wait(event, NULL));
  assert_true(b[0] == 0);
  assert_true(c[0] == 0);  // It would have read what was not written.
  assert_true(d[0] == 1);
  assert_code(pestle_event_status(event), CANCELLED);
  assert_code(pestle_stream_synchronize(stream), CANCELLED);
  assert_ok(pestle_stream_synchronize(stream));
  assert_ok(pestle_executable_run(e, stream, &in, 1, &out, 1, NULL));
  assert_ok(pestle_executable_run(e, stream, &out, 1, &next, 1, NULL));
  assert_ok(pestle_stream_synchronize(stream));
  assert_true(b[0] == 1);
  assert_true(c[0] == 2);
  pestle_event_release(event);
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_events_between_streams(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  int64_t dims[] = {32};
  pestle_executable_t* e = fixture_add1(context, 1, dims);
  pestle_stream_t* streams[2];
  pestle_event_t* event;
  assert_ok(pestle_event_create(cpu(context), &event));
  assert_false(pestle_event_is_signalled(event));
  assert_error(pestle_event_wait(event, NULL), INVALID_ARGUMENT,
               "never recorded");
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_stream_create(cpu(context), &streams[i]));
  }
  _Alignas(64) float a[32] = {0}, b[32];
  // Each stream continues what the other did.
  for (int i = 0; i < 40; ++i) {
    pestle_tensor_t in = test_view(i % 2 ? b : a, PESTLE_F32, 1, dims, NULL);
    pestle_tensor_t out = test_view(i % 2 ? a : b, PESTLE_F32, 1, dims, NULL);
    if (i) assert_ok(pestle_event_wait(event, streams[i % 2]));
    assert_ok(pestle_executable_run(e, streams[i % 2], &in, 1, &out, 1, NULL));
    assert_ok(pestle_event_record(event, streams[i % 2]));
  }
  assert_ok(pestle_event_wait(event, NULL));
  assert_true(pestle_event_is_signalled(event));
  assert_true(a[7] == 40);
  for (int i = 0; i < 2; ++i)
    pestle_stream_release(streams[i]);
  pestle_event_release(event);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_allocated_and_bounded(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {4, 3};
  plan_begin(&w, "bounded");
  plan_device(&w, "test", "");
  plan_output(&w, "y", PESTLE_I64, 2, dims);
  w.outputs[0].bounded = 1;
  w.outputs[0].shape_offset = (int64_t)plan_arena(&w, 16);
  uint32_t kernel = fixture_kernel(&w, "extents", TEST_EXTENTS, 1, 1, 0);
  plan_launch(&w, kernel, plan_bind(&w, PESTLE_PLAN_ARENA, 0, 0, 16));
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(cpu(context), &stream));
  pestle_tensor_t out[2] = {{0}, {0}};
  assert_ok(pestle_executable_run(e, stream, NULL, 0, &out[0], 1, NULL));
  assert_non_null(out[0].data);
  int64_t shape[] = {4, 3};
  int64_t y[12];
  out[1] = test_view(y, PESTLE_I64, 2, shape, NULL);
  assert_ok(pestle_executable_run(e, stream, NULL, 0, &out[1], 1, NULL));
  assert_ok(pestle_stream_synchronize(stream));
  assert_true(out[0].shape[0] == 2 && out[0].strides[0] == 1);
  assert_true(shape[0] == 2 && shape[1] == 1);
  pestle_tensor_release(e, &out[0]);
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_errors_are_at_the_call),
      cmocka_unit_test(test_failure_is_kept),
      cmocka_unit_test(test_events_between_streams),
      cmocka_unit_test(test_allocated_and_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
