// SPDX-License-Identifier: Apache-2.0
// numeric.h: promotion, every row of numeric.def beside C's own functions, choices,
// modules that become a part of a graph.
#include <complex.h>
#include <math.h>

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

// --- Promotion ---

static pestle_dtype_t promoted(pestle_dtype_t a, pestle_dtype_t b) {
  pestle_dtype_t dtype, other;
  pestle_status_t status = pestle_dtype_promote(a, b, &dtype);
  pestle_status_t mirrored = pestle_dtype_promote(b, a, &other);
  if (status)
    assert_int_equal(pestle_status_code(status), PESTLE_STATUS_WRONG_TYPE);
  pestle_status_release(status);
  pestle_status_release(mirrored);
  assert_int_equal(dtype, other);
  return dtype;
}

static void test_promotion(void** state) {
  (void)state;
  static const pestle_dtype_t rows[][3] = {
      {PESTLE_I1, PESTLE_I8, PESTLE_I8},
      {PESTLE_I1, PESTLE_F16, PESTLE_F16},
      {PESTLE_I8, PESTLE_U8, PESTLE_I16},
      {PESTLE_I16, PESTLE_U8, PESTLE_I16},
      {PESTLE_I64, PESTLE_U32, PESTLE_I64},
      {PESTLE_I8, PESTLE_U64, PESTLE_NONE},
      {PESTLE_I4, PESTLE_U4, PESTLE_I8},
      {PESTLE_I64, PESTLE_F16, PESTLE_F16},
      {PESTLE_F16, PESTLE_BF16, PESTLE_F32},
      {PESTLE_BF16, PESTLE_F64, PESTLE_F64},
      {PESTLE_F64, PESTLE_C64, PESTLE_C128},
      {PESTLE_F16, PESTLE_C64, PESTLE_C64},
      {PESTLE_I32, PESTLE_C64, PESTLE_C64},
      {PESTLE_F8E5M2, PESTLE_F32, PESTLE_NONE},
      {PESTLE_F8E5M2, PESTLE_F8E5M2, PESTLE_F8E5M2},
      {PESTLE_INDEX, PESTLE_I32, PESTLE_NONE},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
    assert_int_equal(promoted(rows[i][0], rows[i][1]), rows[i][2]);
}

static void test_numbers_adapt(void** state) {
  (void)state;
  static const struct {
    pestle_dtype_t dtype;
    pestle_dtype_kind_t kind;
    pestle_dtype_t expected;
  } rows[] = {
      {PESTLE_F16, PESTLE_KIND_FLOAT, PESTLE_F16},
      {PESTLE_F16, PESTLE_KIND_SIGNED, PESTLE_F16},
      {PESTLE_U8, PESTLE_KIND_SIGNED, PESTLE_U8},
      {PESTLE_I8, PESTLE_KIND_FLOAT, PESTLE_F32},
      {PESTLE_I1, PESTLE_KIND_SIGNED, PESTLE_I64},
      {PESTLE_F64, PESTLE_KIND_COMPLEX, PESTLE_C128},
      {PESTLE_C64, PESTLE_KIND_BOOL, PESTLE_C64},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_dtype_t dtype;
    assert_ok(pestle_dtype_of_number(rows[i].dtype, rows[i].kind, &dtype));
    assert_int_equal(dtype, rows[i].expected);
  }
}

// --- Rows ---

static pestle_array_t* floats(const fixture_t* f, const float* data,
                              int64_t count) {
  pestle_type_t type = {.dtype = PESTLE_F32, .rank = 1, .dims = {count}};
  pestle_array_t* array;
  assert_ok(pestle_array_from_data(f->device, &type, data, &array));
  return array;
}

enum { MOST = 8 };

static void apply(const fixture_t* f, pestle_numeric_t fn, const float* a,
                  const float* b, int64_t count, float* out) {
  pestle_array_t* x[] = {floats(f, a, count), b ? floats(f, b, count) : NULL};
  pestle_array_t *y, *z;
  assert_ok(pestle_numeric_apply(fn, x, b ? 2 : 1, &y));
  assert_ok(pestle_numeric_cast(y, PESTLE_F32, &z));
  assert_ok(pestle_array_read(z, out, (size_t)count * sizeof(float)));
  pestle_array_release(x[0]);
  pestle_array_release(x[1]);
  pestle_array_release(y);
  pestle_array_release(z);
}

static float square_of(float x) {
  return x * x;
}
static float reciprocal_of(float x) {
  return 1 / x;
}
static float sigmoid_of(float x) {
  return 1 / (1 + expf(-x));
}
static float sign_bit_of(float x) {
  return signbit(x) != 0;
}

static void test_unary(void** state) {
  const fixture_t* f = *state;
  static const float x[MOST] = {0.25f, 0.5f, 0.75f, -0.5f, 1, 0, -0.0f, 0.9f};
  static const struct {
    pestle_numeric_t fn;
    float (*expected)(float);
  } rows[] = {
      {PESTLE_NUMERIC_ABS, fabsf},
      {PESTLE_NUMERIC_ACOS, acosf},
      {PESTLE_NUMERIC_ASIN, asinf},
      {PESTLE_NUMERIC_ATAN, atanf},
      {PESTLE_NUMERIC_ASINH, asinhf},
      {PESTLE_NUMERIC_ATANH, atanhf},
      {PESTLE_NUMERIC_CEIL, ceilf},
      {PESTLE_NUMERIC_FLOOR, floorf},
      {PESTLE_NUMERIC_TRUNC, truncf},
      {PESTLE_NUMERIC_ROUND, rintf},
      {PESTLE_NUMERIC_SIN, sinf},
      {PESTLE_NUMERIC_COS, cosf},
      {PESTLE_NUMERIC_TAN, tanf},
      {PESTLE_NUMERIC_SINH, sinhf},
      {PESTLE_NUMERIC_COSH, coshf},
      {PESTLE_NUMERIC_TANH, tanhf},
      {PESTLE_NUMERIC_EXP, expf},
      {PESTLE_NUMERIC_EXPM1, expm1f},
      {PESTLE_NUMERIC_EXP2, exp2f},
      {PESTLE_NUMERIC_LOG1P, log1pf},
      {PESTLE_NUMERIC_ERF, erff},
      {PESTLE_NUMERIC_ERFC, erfcf},
      {PESTLE_NUMERIC_SQUARE, square_of},
      {PESTLE_NUMERIC_SIGNBIT, sign_bit_of},
      {PESTLE_NUMERIC_SIGMOID, sigmoid_of},
      {PESTLE_NUMERIC_RECIPROCAL, reciprocal_of},
  };
  for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r) {
    float y[MOST];
    apply(f, rows[r].fn, x, NULL, MOST, y);
    for (int i = 0; i < MOST; ++i) {
      float expected = rows[r].expected(x[i]);
      if (y[i] == expected ||
          fabsf(y[i] - expected) <= 4e-7f * (1 + fabsf(expected))) {
        continue;
      }
      fail_msg("row %d of %g is %g, not %g", (int)rows[r].fn, x[i], y[i],
               expected);
    }
  }
}

static void test_logarithms_are_exact(void** state) {
  const fixture_t* f = *state;
  static const float two[] = {8, 1024, 0.125f, 1},
                     ten[] = {1000, 1, 0.01f, 1e6f};
  float y[4];
  apply(f, PESTLE_NUMERIC_LOG2, two, NULL, 4, y);
  assert_true(y[0] == 3 && y[1] == 10 && y[2] == -3 && y[3] == 0);
  apply(f, PESTLE_NUMERIC_LOG10, ten, NULL, 4, y);
  assert_true(y[0] == 3 && y[1] == 0 && y[2] == -2 && y[3] == 6);
}

static void test_division_rounds_down(void** state) {
  const fixture_t* f = *state;
  static const float a[] = {7, -7, 7, -7, 1, INFINITY, 5, -0.0f};
  static const float b[] = {2, 2, -2, -2, 0.1f, 2, -INFINITY, 3};
  static const float floor_of[] = {3, -4, -4, 3, 9, INFINITY, -0.0f, -0.0f};
  static const float rest[] = {1, 1, -1, -1, 0.1f, NAN, -INFINITY, 0};
  float y[MOST];
  apply(f, PESTLE_NUMERIC_FLOOR_DIVIDE, a, b, MOST, y);
  for (int i = 0; i < MOST; ++i) {
    if (y[i] != floor_of[i] || signbit(y[i]) != signbit(floor_of[i]))
      fail_msg("%g // %g is %g", a[i], b[i], y[i]);
  }
  apply(f, PESTLE_NUMERIC_REMAINDER, a, b, MOST, y);
  for (int i = 0; i < MOST; ++i) {
    if (isnan(rest[i]) ? isnan(y[i]) : fabsf(y[i] - rest[i]) < 1e-6f) continue;
    if (y[i] == rest[i]) continue;
    fail_msg("%g %% %g is %g", a[i], b[i], y[i]);
  }
}

static void test_hypot_and_logaddexp(void** state) {
  const fixture_t* f = *state;
  static const float a[] = {3e30f, 0, -INFINITY, 5}, b[] = {4e30f, 0, NAN, -12};
  float y[4];
  apply(f, PESTLE_NUMERIC_HYPOT, a, b, 4, y);
  assert_true(fabsf(y[0] - 5e30f) < 1e25f && y[1] == 0 && y[2] == INFINITY);
  assert_true(fabsf(y[3] - 13) < 1e-5f);
  static const float p[] = {1000, -INFINITY}, q[] = {1000, -INFINITY};
  apply(f, PESTLE_NUMERIC_LOGADDEXP, p, q, 2, y);
  assert_true(fabsf(y[0] - 1000.6931f) < 1e-3f && y[1] == -INFINITY);
}

static void test_wrong_types(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = floats(f, (float[]){1, 2}, 2), *z, *out;
  assert_ok(pestle_numeric_cast(x, PESTLE_C64, &z));
  assert_error(pestle_numeric_apply(PESTLE_NUMERIC_BITWISE_INVERT, &x, 1, &out),
               WRONG_TYPE, "bitwise_invert takes no array of f32");
  assert_error(pestle_numeric_apply(PESTLE_NUMERIC_LESS,
                                    (pestle_array_t*[]){z, x}, 2, &out),
               WRONG_TYPE, "less takes no array of complex<f32>");
  assert_error(pestle_numeric_where(x, x, x, &out), WRONG_TYPE, "not i1");
  pestle_array_release(x);
  pestle_array_release(z);
}

// A condition of rank 0 stays one, whatever the others become.
static void test_where_of_one_condition(void** state) {
  const fixture_t* f = *state;
  pestle_type_t type = {.dtype = PESTLE_I1};
  pestle_array_t *condition, *y;
  pestle_array_t *a = floats(f, (float[]){1, 2}, 2),
                 *b = floats(f, (float[]){5}, 1);
  assert_ok(
      pestle_array_from_data(f->device, &type, &(bool){true}, &condition));
  assert_ok(pestle_numeric_where(condition, b, a, &y));
  float data[2];
  assert_ok(pestle_array_read(y, data, sizeof(data)));
  assert_true(data[0] == 5 && data[1] == 5);
  pestle_array_release(condition);
  pestle_array_release(a);
  pestle_array_release(b);
  pestle_array_release(y);
}

// --- Modules ---

// sinh(x) + y, and x - y, as modules of their own.
static pestle_module_t* capture(const fixture_t* f, bool first) {
  pestle_type_t types[] = {{.dtype = PESTLE_F32, .rank = 1, .dims = {2}},
                           {.dtype = PESTLE_F32, .rank = 1, .dims = {2}}};
  pestle_capture_t* capture;
  pestle_array_t *x[2], *s, *y;
  pestle_module_t* module;
  assert_ok(pestle_capture_begin(f->device, types, 2, &capture, x));
  if (first) {
    assert_ok(pestle_numeric_apply(PESTLE_NUMERIC_SINH, x, 1, &s));
    assert_ok(pestle_array_add(s, x[1], &y));
    pestle_array_release(s);
  } else {
    assert_ok(pestle_array_subtract(x[0], x[1], &y));
  }
  assert_ok(
      pestle_capture_end(capture, (pestle_array_t*[]){y, x[0]}, 2, &module));
  pestle_capture_release(capture);
  pestle_array_release(x[0]);
  pestle_array_release(x[1]);
  pestle_array_release(y);
  return module;
}

static void expect(pestle_array_t* array, float a, float b) {
  float data[2];
  assert_ok(pestle_array_read(array, data, sizeof(data)));
  assert_true(fabsf(data[0] - a) < 1e-5f && fabsf(data[1] - b) < 1e-5f);
  pestle_array_release(array);
}

static void test_inline(void** state) {
  const fixture_t* f = *state;
  pestle_module_t* module = capture(f, true);
  pestle_array_t* x[] = {floats(f, (float[]){1, 2}, 2),
                         floats(f, (float[]){10, 20}, 2)};
  pestle_array_t *out[2], *twice;
  assert_ok(pestle_array_inline(module, x, 2, out, 2));
  assert_ok(pestle_array_add(out[0], out[0], &twice));
  expect(twice, 2 * (sinhf(1) + 10), 2 * (sinhf(2) + 20));
  expect(out[0], sinhf(1) + 10, sinhf(2) + 20);
  expect(out[1], 1, 2);
  assert_error(pestle_array_inline(module, x, 1, out, 2), INVALID_ARGUMENT,
               "takes 2 arguments, 1 are given");
  assert_error(pestle_array_inline(module, x, 2, out, 1), INVALID_ARGUMENT,
               "2 results, there is room for 1");
  pestle_module_release(module);
  pestle_array_release(x[0]);
  pestle_array_release(x[1]);
}

static void test_branch(void** state) {
  const fixture_t* f = *state;
  pestle_module_t* branches[] = {capture(f, true), capture(f, false)};
  pestle_array_t* x[] = {NULL, floats(f, (float[]){1, 2}, 2),
                         floats(f, (float[]){10, 20}, 2)};
  for (int32_t i = 0; i < 4; ++i) {
    // A branch that there is not is the last.
    int32_t index = i == 3 ? -1 : i;
    pestle_type_t type = {.dtype = PESTLE_I32};
    pestle_array_t* out[2];
    assert_ok(pestle_array_from_data(f->device, &type, &index, &x[0]));
    assert_ok(pestle_array_branch(branches, 2, x, 3, out, 2));
    expect(out[0], i ? -9 : sinhf(1) + 10, i ? -18 : sinhf(2) + 20);
    expect(out[1], 1, 2);
    pestle_array_release(x[0]);
  }
  pestle_array_t* out;
  assert_error(pestle_array_branch(branches, 2, x + 1, 2, &out, 1),
               INVALID_ARGUMENT, "index of a branch");
  for (int i = 0; i < 2; ++i) {
    pestle_module_release(branches[i]);
    pestle_array_release(x[1 + i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_promotion),
      cmocka_unit_test(test_numbers_adapt),
      cmocka_unit_test_setup_teardown(test_unary, setup, teardown),
      cmocka_unit_test_setup_teardown(test_logarithms_are_exact, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_division_rounds_down, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_hypot_and_logaddexp, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_wrong_types, setup, teardown),
      cmocka_unit_test_setup_teardown(test_where_of_one_condition, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_inline, setup, teardown),
      cmocka_unit_test_setup_teardown(test_branch, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
