// SPDX-License-Identifier: Apache-2.0
// Tensors of the host's memory: made, measured, filled, printed.
#include <math.h>

#include "pestle/helpers.h"
#include "test.h"

static pestle_context_t* context;

static int set_up(void** state) {
  (void)state;
  assert_ok(pestle_context_create(NULL, &context));
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

// What the tensor prints as.
static void prints(const pestle_tensor_t* tensor, const char* wanted) {
  char text[512], part[8];
  size_t length = pestle_tensor_format(tensor, text, sizeof(text));
  assert_string_equal(text, wanted);
  assert_int_equal(length, strlen(wanted));
  // Cut where there is no room, and measured without any.
  assert_int_equal(pestle_tensor_format(tensor, part, sizeof(part)), length);
  assert_memory_equal(part, wanted, length < 7 ? length + 1 : 7);
  assert_true(strlen(part) < sizeof(part));
  assert_int_equal(pestle_tensor_format(tensor, NULL, 0), length);
}

static void of_values(void** state) {
  (void)state;
  const float values[] = {1, 2.5f, -3, INFINITY, 1e-9f, 0};
  const int64_t shape[] = {2, 3};
  pestle_tensor_t x;
  assert_ok(pestle_tensor_init(context, PESTLE_F32, shape, 2, values, &x));
  assert_int_equal((uintptr_t)x.data % 64, 0);
  assert_int_equal(pestle_tensor_byte_size(&x), 24);
  assert_memory_equal(x.data, values, sizeof(values));
  prints(&x, "f32[2, 3] [[1, 2.5, -3], [inf, 1e-09, 0]]");
  pestle_tensor_deinit(context, &x);
  assert_null(x.data);
  assert_null(x.shape);
}

static void zeros_and_no_axes(void** state) {
  (void)state;
  const int64_t none[] = {3, 0};
  pestle_tensor_t x;
  assert_ok(pestle_tensor_init(context, PESTLE_I32, NULL, 0, NULL, &x));
  assert_int_equal(pestle_tensor_byte_size(&x), 4);
  prints(&x, "i32[] 0");
  pestle_tensor_deinit(context, &x);
  assert_ok(pestle_tensor_init(context, PESTLE_I32, none, 2, NULL, &x));
  assert_int_equal(pestle_tensor_byte_size(&x), 0);
  assert_ok(pestle_tensor_fill(&x, 1));
  prints(&x, "i32[3, 0]");
  pestle_tensor_deinit(context, &x);
  prints(NULL, "none");
}

// Every dtype of a tensor is filled with 1, and prints it.
static void every_dtype(void** state) {
  (void)state;
  const int64_t shape[] = {2};
  char wanted[64];
  int tried = 0;
  for (int i = 0; i < PESTLE_DTYPE_COUNT; ++i) {
    pestle_dtype_t dtype = (pestle_dtype_t)i;
    pestle_tensor_t x;
    if (!pestle_dtype_is_stored(dtype)) {
      assert_code(pestle_tensor_init(context, dtype, shape, 1, NULL, &x),
                  INVALID_ARGUMENT);
      continue;
    }
    assert_ok(pestle_tensor_init(context, dtype, shape, 1, NULL, &x));
    assert_int_equal(pestle_tensor_byte_size(&x), 2 * pestle_dtype_size(dtype));
    assert_ok(pestle_tensor_fill(&x, 1));
    const char* one = dtype == PESTLE_I1                            ? "true"
                      : pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX) ? "1+0i"
                                                                    : "1";
    snprintf(wanted, sizeof(wanted), "%s[2] [%s, %s]",
             pestle_dtype_info(dtype)->name, one, one);
    prints(&x, wanted);
    if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
      assert_ok(pestle_tensor_fill(&x, -1));
      snprintf(wanted, sizeof(wanted), "%s[2] [-1, -1]",
               pestle_dtype_info(dtype)->name);
      prints(&x, wanted);
    }
    pestle_tensor_deinit(context, &x);
    ++tried;
  }
  assert_true(tried > 25);
}

static void numbers_that_do_not_fit(void** state) {
  (void)state;
  static const struct {
    pestle_dtype_t dtype;
    double least, most, under, over;
  } rows[] = {{PESTLE_I8, -128, 127, -129, 128},
              {PESTLE_U8, 0, 255, -1, 256},
              {PESTLE_I1, 0, 1, -1, 2},
              {PESTLE_I2, -2, 1, -3, 2},
              {PESTLE_U4, 0, 15, -1, 16},
              {PESTLE_I64, -0x1p63, 0x1p62, -0x1.1p63, 0x1p63},
              {PESTLE_U64, 0, 0x1p63, -1, 0x1p64}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    uint64_t data = 0;
    pestle_tensor_t x = PESTLE_TENSOR(&data, rows[i].dtype, 1);
    assert_ok(pestle_tensor_fill(&x, rows[i].least));
    assert_ok(pestle_tensor_fill(&x, rows[i].most));
    assert_error(pestle_tensor_fill(&x, rows[i].under), INVALID_ARGUMENT,
                 "is no number of");
    assert_code(pestle_tensor_fill(&x, rows[i].over), INVALID_ARGUMENT);
    assert_code(pestle_tensor_fill(&x, 0.5), INVALID_ARGUMENT);
    assert_code(pestle_tensor_fill(&x, NAN), INVALID_ARGUMENT);
  }
}

static void strides(void** state) {
  (void)state;
  float data[12] = {0};
  int64_t steps[] = {-6, 2};
  // Every other one of two rows of six, the last row first.
  pestle_tensor_t x = PESTLE_TENSOR(data, PESTLE_F32, 2, 3);
  x.strides = steps;
  x.byte_offset = 24;
  assert_ok(pestle_tensor_fill(&x, 7));
  for (int i = 0; i < 12; ++i)
    assert_true(data[i] == (i % 2 ? 0 : 7));
  data[10] = 1;
  prints(&x, "f32[2, 3] [[7, 7, 1], [7, 7, 7]]");
  x.device.device_type = PESTLE_DEVICE_CUDA;
  prints(&x, "f32[2, 3] on device 2:0");
  assert_error(pestle_tensor_fill(&x, 1), INVALID_ARGUMENT, "copy it there");
}

static void long_axes(void** state) {
  (void)state;
  int64_t data[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  pestle_tensor_t x = PESTLE_TENSOR(data, PESTLE_I64, 9);
  prints(&x, "i64[9] [0, 1, 2, .., 6, 7, 8]");
  pestle_tensor_t y = PESTLE_TENSOR(data, PESTLE_I64, 8);
  prints(&y, "i64[8] [0, 1, 2, 3, 4, 5, 6, 7]");
}

static void refusals(void** state) {
  (void)state;
  const int64_t negative[] = {2, -1};
  const int64_t large[] = {INT64_MAX, 4};
  pestle_tensor_t x;
  assert_error(pestle_tensor_init(context, PESTLE_F32, negative, 2, NULL, &x),
               INVALID_ARGUMENT, "extent 1 of a tensor is -1");
  assert_null(x.data);
  assert_code(pestle_tensor_init(context, PESTLE_F32, large, 2, NULL, &x),
              INVALID_ARGUMENT);
  assert_code(pestle_tensor_init(context, PESTLE_F32, large,
                                 PESTLE_MAX_RANK + 1, NULL, &x),
              INVALID_ARGUMENT);
  assert_code(pestle_tensor_init(context, PESTLE_F32, large, -1, NULL, &x),
              INVALID_ARGUMENT);
  pestle_tensor_t view =
      pestle_tensor_view(NULL, PESTLE_F64, (int64_t*)(uintptr_t)large, 2);
  assert_int_equal(pestle_tensor_byte_size(&view), 0);
}

// Nothing is left and nothing is leaked where memory is short.
static void out_of_memory(void** state) {
  (void)state;
  const int64_t shape[] = {1000};
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory)};
  pestle_context_t* short_of;
  pestle_tensor_t x;
  assert_ok(pestle_context_create(&options, &short_of));
  assert_ok(pestle_tensor_init(short_of, PESTLE_F64, shape, 1, NULL, &x));
  pestle_tensor_deinit(short_of, &x);
  atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + 1);
  assert_code(pestle_tensor_init(short_of, PESTLE_F64, shape, 1, NULL, &x),
              OUT_OF_MEMORY);
  assert_null(x.data);
  atomic_store(&memory.fail_at, 0);
  pestle_context_release(short_of);
  pestle_test_allocator_check(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_values),   cmocka_unit_test(zeros_and_no_axes),
      cmocka_unit_test(every_dtype), cmocka_unit_test(numbers_that_do_not_fit),
      cmocka_unit_test(strides),     cmocka_unit_test(long_axes),
      cmocka_unit_test(refusals),    cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
