// SPDX-License-Identifier: Apache-2.0
// Arguments that calls give away: whose memory is used again, and whose is not.
#include "pestle/pestle.h"
#include "test.h"

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t* device;
} fixture_t;

static int setup(void** state) {
  static fixture_t f;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  assert_ok(pestle_context_create(&options, &f.context));
  assert_ok(pestle_context_device(f.context, "cpu", &f.device));
  *state = &f;
  return 0;
}

static int teardown(void** state) {
  fixture_t* f = *state;
  pestle_context_release(f->context);
  return 0;
}

enum { N = 40000 };
static const pestle_type_t type = {PESTLE_F32, 1, {N}};

static pestle_array_t* filled(const fixture_t* f, float value) {
  static float data[N];
  pestle_array_t* array;
  for (size_t i = 0; i < N; ++i)
    data[i] = value;
  assert_ok(pestle_array_from_data(f->device, &type, data, &array));
  return array;
}

static void expect(pestle_array_t* array, float value) {
  static float data[N];
  assert_ok(pestle_array_read(array, data, sizeof(data)));
  for (size_t i = 0; i < N; ++i)
    assert_true(data[i] == value);
}

static const void* address_of(pestle_array_t* array) {
  pestle_tensor_t tensor;
  assert_ok(pestle_array_data(array, &tensor));
  return (const char*)tensor.data + tensor.byte_offset;
}

// f(x, y) = x + y, which is given x.
static pestle_jit_t* capture_sum(const fixture_t* f, uint32_t donated) {
  pestle_capture_t* capture;
  pestle_array_t *x[2], *sum;
  pestle_module_t* module;
  pestle_jit_t* jit;
  pestle_type_t types[] = {type, type};
  assert_ok(pestle_capture_begin(f->device, types, 2, &capture, x));
  assert_ok(pestle_array_add(x[0], x[1], &sum));
  assert_ok(pestle_capture_end(capture, &sum, 1, &module));
  assert_ok(pestle_jit_create(f->device, module, capture, NULL, &jit));
  assert_ok(pestle_jit_donate(jit, &donated, 1));
  pestle_capture_release(capture);
  pestle_module_release(module);
  pestle_array_release(x[0]);
  pestle_array_release(x[1]);
  pestle_array_release(sum);
  return jit;
}

static uint64_t donations(const fixture_t* f) {
  pestle_array_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_array_stats(f->context, &stats);
  return stats.donations;
}

static void test_memory_is_used_again(void** state) {
  const fixture_t* f = *state;
  pestle_jit_t* jit = capture_sum(f, 0);
  pestle_array_t *x = filled(f, 1), *one = filled(f, 1);
  const void* first = address_of(x);
  uint64_t before = donations(f);
  for (int i = 0; i < 20; ++i) {
    pestle_array_t* y;
    assert_ok(
        pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, NULL, &y, 1));
    x = y;
    assert_ptr_equal(address_of(x), first);
  }
  expect(x, 21);
  expect(one, 1);
  assert_int_equal(donations(f) - before, 20);
  pestle_array_release(x);
  pestle_array_release(one);
  pestle_jit_release(jit);
}

static void test_what_others_see_stays(void** state) {
  const fixture_t* f = *state;
  pestle_jit_t* jit = capture_sum(f, 0);
  pestle_array_t *x = filled(f, 3), *one = filled(f, 1), *y, *later;
  // Another handle.
  const void* first = address_of(x);
  pestle_array_retain(x);
  assert_ok(pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, NULL, &y, 1));
  assert_ptr_not_equal(address_of(y), first);
  expect(y, 4);
  expect(x, 3);
  pestle_array_release(y);
  // A node that is evaluated later.
  assert_ok(pestle_array_multiply(x, x, &later));
  assert_ok(pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, NULL, &y, 1));
  expect(y, 4);
  expect(later, 9);
  pestle_array_release(later);
  pestle_array_release(y);
  // Memory that a view sees.
  x = filled(f, 5);
  pestle_slice_attrs_t attrs = {sizeof(attrs),
                                {(int64_t[]){0}, 1},
                                {(int64_t[]){N - 1}, 1},
                                {(int64_t[]){1}, 1}};
  pestle_array_t* part;
  float data[N];
  assert_ok(pestle_array_slice(x, &attrs, &part));
  assert_ok(pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, NULL, &y, 1));
  expect(y, 6);
  assert_ok(pestle_array_read(part, data, sizeof(data) - sizeof(*data)));
  assert_true(data[0] == 5 && data[N - 2] == 5);
  pestle_array_release(part);
  pestle_array_release(y);
  pestle_array_release(one);
  pestle_jit_release(jit);
}

static void test_wrapped_memory_stays(void** state) {
  const fixture_t* f = *state;
  static _Alignas(64) float data[N];
  for (size_t i = 0; i < N; ++i)
    data[i] = 2;
  int64_t dims[] = {N};
  pestle_tensor_t tensor = {.data = data,
                            .device = {PESTLE_DEVICE_CPU, 0},
                            .ndim = 1,
                            .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                            .shape = dims};
  pestle_array_t *x, *one = filled(f, 1), *y;
  pestle_jit_t* jit = capture_sum(f, 0);
  assert_ok(pestle_array_wrap(f->device, &tensor, NULL, &x));
  assert_ok(pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, NULL, &y, 1));
  expect(y, 3);
  for (size_t i = 0; i < N; ++i)
    assert_true(data[i] == 2);
  pestle_array_release(y);
  pestle_array_release(one);
  pestle_jit_release(jit);
}

static void test_wrong_calls_keep_their_arguments(void** state) {
  const fixture_t* f = *state;
  pestle_jit_t* jit = capture_sum(f, 1);
  pestle_array_t *x = filled(f, 3), *y;
  assert_error(pestle_jit_call(jit, (pestle_array_t*[]){x, x}, 2, NULL, &y, 1),
               INVALID_ARGUMENT,
               "argument 1 is donated, and is argument 0 too");
  assert_null(y);
  pestle_array_t* number;
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 3, &number));
  assert_error(
      pestle_jit_call(jit, (pestle_array_t*[]){number, x}, 2, NULL, &y, 1),
      INVALID_ARGUMENT, "argument 0 is");
  expect(x, 3);
  uint32_t index = 2;
  assert_error(pestle_jit_donate(jit, &index, 1), INVALID_ARGUMENT,
               "argument 2 is to be donated, the function takes 2");
  index = 0;
  assert_error(pestle_jit_donate(jit, &index, 1), INVALID_ARGUMENT, "once");
  pestle_array_release(number);
  pestle_array_release(x);
  pestle_jit_release(jit);
}

static void test_a_stream_takes_them_too(void** state) {
  const fixture_t* f = *state;
  pestle_jit_t* jit = capture_sum(f, 0);
  pestle_array_t *x = filled(f, 1), *one = filled(f, 1);
  const void* first = address_of(x);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(f->device, &stream));
  for (int i = 0; i < 10; ++i) {
    pestle_array_t* y;
    assert_ok(
        pestle_jit_call(jit, (pestle_array_t*[]){x, one}, 2, stream, &y, 1));
    x = y;
  }
  expect(x, 11);
  assert_ptr_equal(address_of(x), first);
  pestle_array_release(x);
  pestle_array_release(one);
  pestle_stream_release(stream);
  pestle_jit_release(jit);
}

static void test_a_failed_array_says_why(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x, *y;
  assert_ok(pestle_array_failed(
      f->device, &type, PESTLE_ERROR(INVALID_ARGUMENT, "it was given away"),
      &x));
  assert_int_equal(pestle_array_state(x), PESTLE_ARRAY_FAILED);
  assert_ptr_equal(pestle_array_device(x), f->device);
  assert_int_equal(pestle_array_type(x).dims[0], N);
  assert_error(pestle_array_negate(x, &y), INVALID_ARGUMENT, "given away");
  assert_error(pestle_array_wait(x), INVALID_ARGUMENT, "given away");
  pestle_array_release(x);
  assert_error(pestle_array_failed(f->device, &type, NULL, &x),
               INVALID_ARGUMENT, "a status");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_is_used_again),
      cmocka_unit_test(test_what_others_see_stays),
      cmocka_unit_test(test_wrapped_memory_stays),
      cmocka_unit_test(test_wrong_calls_keep_their_arguments),
      cmocka_unit_test(test_a_stream_takes_them_too),
      cmocka_unit_test(test_a_failed_array_says_why),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
