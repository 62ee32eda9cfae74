// SPDX-License-Identifier: Apache-2.0
// pestle_array_eval_quick(): what it does, what it leaves alone.
#include "pestle/pestle.h"
#include "test.h"

enum { COUNT = 4, LONG_NS = 1000000000 };

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_array_t* x;
} fixture_t;

static int setup(void** state) {
  static fixture_t f;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  pestle_type_t type = {.dtype = PESTLE_F32, .rank = 1, .dims = {COUNT}};
  assert_ok(pestle_context_create(&options, &f.context));
  assert_ok(pestle_context_device(f.context, "cpu", &f.device));
  assert_ok(pestle_array_from_data(f.device, &type, (float[COUNT]){1, 2, 3, 4},
                                   &f.x));
  *state = &f;
  return 0;
}

static int teardown(void** state) {
  fixture_t* f = *state;
  pestle_array_release(f->x);
  pestle_context_release(f->context);
  return 0;
}

static bool quick(pestle_array_t* array, uint64_t most_ns) {
  bool done;
  assert_ok(pestle_array_eval_quick(&array, 1, most_ns, &done));
  return done;
}

// Runs x - x * x until it has been measured.
static pestle_array_t* make(const fixture_t* f, bool evaluate) {
  pestle_array_t *square, *y;
  assert_ok(pestle_array_multiply(f->x, f->x, &square));
  assert_ok(pestle_array_subtract(f->x, square, &y));
  pestle_array_release(square);
  if (evaluate) assert_ok(pestle_array_eval(&y, 1, NULL));
  return y;
}

static void measure(const fixture_t* f) {
  for (int i = 0; i < 4; ++i)
    pestle_array_release(make(f, true));
}

static void test_what_is_not_compiled_is_left(void** state) {
  const fixture_t* f = *state;
  pestle_array_t* y = make(f, false);
  assert_false(quick(y, LONG_NS));
  assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_LAZY);
  assert_ok(pestle_array_eval(&y, 1, NULL));
  // Data needs nothing.
  assert_true(quick(y, LONG_NS));
  pestle_array_release(y);
}

static void test_what_is_measured_is_done(void** state) {
  const fixture_t* f = *state;
  measure(f);
  pestle_array_t* y = make(f, false);
  assert_false(quick(y, 1));  // no run takes one nanosecond
  assert_false(quick(y, 0));
  assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_LAZY);
  assert_true(quick(y, LONG_NS));
  assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_DATA);
  float data[COUNT];
  assert_ok(pestle_array_read(y, data, sizeof(data)));
  for (int i = 0; i < COUNT; ++i)
    assert_true(data[i] == (float)((i + 1) - (i + 1) * (i + 1)));
  pestle_array_release(y);
}

// A product that takes some milliseconds, on |stream|.
static pestle_array_t* begin_product(const fixture_t* f,
                                     pestle_stream_t* stream) {
  enum { N = 1024 };
  pestle_type_t type = {.dtype = PESTLE_F32, .rank = 2, .dims = {N, N}};
  pestle_array_t *a, *y = NULL;
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_contracting_dimensions = PESTLE_I64S(1),
      .rhs_contracting_dimensions = PESTLE_I64S(0)};
  assert_ok(pestle_array_full(f->device, &type, &(float){1}, &a));
  for (int i = 0; i < 4; ++i) {
    pestle_array_t* x = y ? y : a;
    pestle_array_t* next;
    assert_ok(pestle_array_dot_general(x, a, &attrs, type, &next));
    pestle_array_release(y);
    y = next;
  }
  assert_ok(pestle_array_eval_async(&y, 1, stream));
  pestle_array_release(a);
  return y;
}

// Where the product is done before it is asked for, nothing is told.
static void test_what_is_pending_is_left(void** state) {
  const fixture_t* f = *state;
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(f->device, &stream));
  pestle_array_t* y = begin_product(f, stream);
  bool done = quick(y, LONG_NS);
  if (pestle_array_state(y) == PESTLE_ARRAY_PENDING) assert_false(done);
  assert_ok(pestle_array_eval(&y, 1, NULL));
  assert_true(quick(y, LONG_NS));
  pestle_array_release(y);
  pestle_stream_release(stream);
}

static void test_failures_come_at_once(void** state) {
  const fixture_t* f = *state;
  bool done = true;
  pestle_array_t* none = NULL;
  (void)f;
  assert_error(pestle_array_eval_quick(&none, 1, LONG_NS, &done),
               INVALID_ARGUMENT, "array 0 is NULL");
  assert_false(done);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_not_compiled_is_left),
      cmocka_unit_test(test_what_is_measured_is_done),
      cmocka_unit_test(test_what_is_pending_is_left),
      cmocka_unit_test(test_failures_come_at_once),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
