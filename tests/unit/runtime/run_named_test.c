// SPDX-License-Identifier: Apache-2.0
// Runs whose tensors are given by name.
#include "unit/runtime/fixture.h"

// sum = image + 1, more = scale + 1.
static pestle_executable_t* make(pestle_context_t* context) {
  plan_writer_t w;
  int64_t dims[] = {4};
  plan_begin(&w, "named");
  plan_device(&w, "test", "+avx2");
  plan_input(&w, "image", PESTLE_F32, 1, dims);
  plan_input(&w, "scale", PESTLE_F32, 1, dims);
  plan_output(&w, "sum", PESTLE_F32, 1, dims);
  plan_output(&w, "more", PESTLE_F32, 1, dims);
  uint32_t kernel = fixture_kernel(&w, "add1", TEST_ADD1, 2, 4, 0);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 16);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 16);
  plan_launch(&w, kernel, first);
  first = plan_bind(&w, PESTLE_PLAN_INPUT, 1, 0, 16);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 1, 0, 16);
  plan_launch(&w, kernel, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_executable(context, &w);
}

static float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, s[4], m[4];
static int64_t dims[] = {4};

static pestle_named_tensor_t named(const char* name, float* data) {
  return (pestle_named_tensor_t){name,
                                 test_view(data, PESTLE_F32, 1, dims, NULL)};
}

// Sequences are inputs and outputs by numbers: of "seq" two, of "s" none.
static void test_lists(void** state) {
  (void)state;
  static const char* const names[] = {"seq[0]", "seq[1]", "seq", "s[1]"};
  pestle_context_t* context = fixture_context(NULL);
  plan_writer_t w;
  int64_t four[] = {4};
  plan_begin(&w, "lists");
  plan_device(&w, "test", "+avx2");
  plan_input(&w, "x", PESTLE_F32, 1, four);
  for (size_t i = 0; i < 4; ++i)
    plan_output(&w, names[i], PESTLE_F32, 1, four);
  uint32_t kernel = fixture_kernel(&w, "add1", TEST_ADD1, 2, 4, 0);
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 16);
    plan_bind(&w, PESTLE_PLAN_OUTPUT, i, 0, 16);
    plan_launch(&w, kernel, first);
  }
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  size_t first = 9;
  assert_int_equal(pestle_executable_find_output_list(e, "seq", &first), 2);
  assert_int_equal(first, 0);
  assert_int_equal(pestle_executable_find_output_list(e, "s", &first), 0);
  assert_int_equal(pestle_executable_find_output_list(e, "seq[0]", NULL), 0);
  assert_int_equal(pestle_executable_find_input_list(e, "seq", &first), 0);
  assert_int_equal(pestle_executable_find_input_list(e, "x", &first), 0);
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void test_any_order(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_executable_t* e = make(context);
  assert_int_equal(pestle_executable_find_input(e, "scale"), 1);
  assert_int_equal(pestle_executable_find_output(e, "sum"), 0);
  assert_true(pestle_executable_find_input(e, "sum") == SIZE_MAX);
  assert_true(pestle_executable_find_output(e, "image") == SIZE_MAX);
  pestle_named_tensor_t in[] = {named("scale", y), named("image", x)};
  pestle_named_tensor_t out[] = {named("more", m), named("sum", s)};
  assert_ok(pestle_executable_run_named(e, NULL, in, 2, out, 2, NULL));
  assert_true(s[3] == 5 && m[0] == 11);
  // What is not wanted is dropped; what is without memory is made.
  out[0].tensor = (pestle_tensor_t){0};
  assert_ok(pestle_executable_run_named(e, NULL, in, 2, out, 1, NULL));
  assert_true(((float*)out[0].tensor.data)[1] == 21);
  assert_int_equal(out[0].tensor.shape[0], 4);
  pestle_tensor_release(e, &out[0].tensor);
  assert_ok(pestle_executable_run_named(e, NULL, in, 2, NULL, 0, NULL));
  pestle_executable_release(e);
  pestle_context_release(context);
}

static void fails(pestle_status_t status, pestle_status_code_t code,
                  const char* part) {
  assert_int_equal(pestle_status_code(status), code);
  assert_non_null(strstr(pestle_status_message(status), part));
  pestle_status_release(status);
}

static void test_wrong_names(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_executable_t* e = make(context);
  pestle_named_tensor_t in[] = {named("imgae", x), named("scale", y)};
  pestle_named_tensor_t out[] = {named("sum", s)};
  fails(pestle_executable_run_named(e, NULL, in, 2, out, 1, NULL),
        PESTLE_STATUS_NOT_FOUND,
        "no input 'imgae'; it has 'image' f32[4], 'scale' f32[4]; did you mean "
        "'image'?");
  in[0].name = "scale";
  fails(pestle_executable_run_named(e, NULL, in, 2, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "input 'scale' is given twice");
  fails(pestle_executable_run_named(e, NULL, in + 1, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "lacks inputs: 'image' f32[4]");
  in[0].name = NULL;
  fails(pestle_executable_run_named(e, NULL, in, 2, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "input 0 of the run has no name");
  in[0].name = "image";
  out[0].name = "zzz";
  fails(pestle_executable_run_named(e, NULL, in, 2, out, 1, NULL),
        PESTLE_STATUS_NOT_FOUND, "no output 'zzz'");
  pestle_device_t* device;
  pestle_stream_t* stream;
  assert_ok(pestle_context_device(context, "test", &device));
  assert_ok(pestle_stream_create(device, &stream));
  out[0].name = "sum";
  fails(pestle_executable_run_named(e, stream, in, 2, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "lacks outputs: 'more' f32[4]");
  pestle_stream_release(stream);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// More than fit the small array.
static void test_many(void** state) {
  (void)state;
  enum { COUNT = 12 };
  pestle_context_t* context = fixture_context(NULL);
  plan_writer_t w;
  plan_begin(&w, "many");
  plan_device(&w, "test", "+avx2");
  char names[COUNT][8];
  float a[COUNT][4], b[COUNT][4];
  pestle_named_tensor_t in[COUNT], out[COUNT];
  uint32_t kernel = 0;
  for (int i = 0; i < COUNT; ++i) {
    (void)snprintf(names[i], sizeof(names[i]), "v%d", i);
    for (int k = 0; k < 4; ++k)
      a[i][k] = (float)(i * 10 + k);
    plan_input(&w, names[i], PESTLE_F32, 1, dims);
    in[COUNT - 1 - i] = named(names[i], a[i]);
    out[i] = named(names[i], b[i]);
  }
  for (int i = 0; i < COUNT; ++i)
    plan_output(&w, names[i], PESTLE_F32, 1, dims);
  kernel = fixture_kernel(&w, "add1", TEST_ADD1, 2, 4, 0);
  for (uint32_t i = 0; i < COUNT; ++i) {
    uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, i, 0, 16);
    plan_bind(&w, PESTLE_PLAN_OUTPUT, i, 0, 16);
    plan_launch(&w, kernel, first);
  }
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  assert_ok(pestle_executable_run_named(e, NULL, in, COUNT, out, COUNT, NULL));
  for (int i = 0; i < COUNT; ++i)
    assert_true(b[i][3] == (float)(i * 10 + 4));
  pestle_executable_release(e);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists),     cmocka_unit_test(test_lists),
      cmocka_unit_test(test_any_order), cmocka_unit_test(test_wrong_names),
      cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
