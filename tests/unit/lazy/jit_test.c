// SPDX-License-Identifier: Apache-2.0
// Captures and the functions that are made of them: hidden arguments, constants,
// guards, dimensions that are not known, streams, threads.
#include <pthread.h>

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

static const pestle_type_t f32x4 = {PESTLE_F32, 1, {4}};

static pestle_array_t* array_of(const fixture_t* f, float a, float b, float c,
                                float d) {
  pestle_array_t* array;
  assert_ok(
      pestle_array_from_data(f->device, &f32x4, (float[]){a, b, c, d}, &array));
  return array;
}

static void expect(pestle_array_t* array, float a, float b, float c, float d) {
  float data[4];
  assert_ok(pestle_array_read(array, data, sizeof(data)));
  assert_true(data[0] == a && data[1] == b && data[2] == c && data[3] == d);
}

// f(x) = (x + 0.5) * 3 - bias, where bias is an array of outside.
static pestle_jit_t* capture_affine(const fixture_t* f, pestle_array_t* bias,
                                    char** out_text) {
  pestle_capture_t* capture;
  pestle_array_t *x, *half, *three, *sum, *product, *y;
  pestle_module_t* module;
  pestle_jit_t* jit;
  size_t size;
  assert_ok(pestle_capture_begin(f->device, &f32x4, 1, &capture, &x));
  assert_int_equal(pestle_array_state(x), PESTLE_ARRAY_TRACED);
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 0.5, &half));
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 3, &three));
  assert_ok(pestle_array_add(x, half, &sum));
  assert_ok(pestle_array_multiply(sum, three, &product));
  assert_ok(pestle_array_subtract(product, bias, &y));
  assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_TRACED);
  // What a traced array is cannot be asked for.
  float data[4];
  assert_error(pestle_array_read(y, data, sizeof(data)), INVALID_ARGUMENT,
               "traced");
  assert_ok(pestle_capture_end(capture, &y, 1, &module));
  assert_int_equal(pestle_capture_hidden_count(capture), 1);
  assert_ptr_equal(pestle_capture_hidden(capture, 0), bias);
  assert_null(pestle_capture_hidden(capture, 1));
  assert_ok(pestle_module_verify(module));
  assert_ok(pestle_module_print(module, 0, out_text, &size));
  assert_ok(pestle_jit_create(f->device, module, capture, NULL, &jit));
  pestle_capture_release(capture);
  pestle_module_release(module);
  pestle_array_release(x);
  pestle_array_release(half);
  pestle_array_release(three);
  pestle_array_release(sum);
  pestle_array_release(product);
  pestle_array_release(y);
  return jit;
}

static void test_a_capture_is_a_function(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *bias = array_of(f, 1, 2, 3, 4), *x, *y;
  char* text;
  pestle_jit_t* jit = capture_affine(f, bias, &text);
  // Numbers are constants, data is an argument.
  assert_non_null(strstr(text, "dense<3"));
  assert_non_null(strstr(text, "dense<0.5"));
  assert_non_null(strstr(text, "%arg1: tensor<4xf32>"));
  pestle_context_free(f->context, text, strlen(text) + 1);
  pestle_array_release(bias);
  for (int i = 0; i < 3; ++i) {
    x = array_of(f, (float)i, 1, 2, 3);
    assert_ok(pestle_jit_call(jit, &x, 1, NULL, &y, 1));
    expect(y, 3 * (float)i + 0.5f, 2.5f, 4.5f, 6.5f);
    pestle_array_release(x);
    pestle_array_release(y);
  }
  pestle_jit_release(jit);
}

static void test_guards_name_what_differs(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *bias = array_of(f, 1, 2, 3, 4), *x, *y;
  char* text;
  pestle_jit_t* jit = capture_affine(f, bias, &text);
  pestle_context_free(f->context, text, strlen(text) + 1);
  pestle_type_t type = {PESTLE_F32, 1, {3}};
  assert_ok(pestle_array_empty(f->device, &type, &x));
  assert_error(pestle_jit_call(jit, &x, 1, NULL, &y, 1), INVALID_ARGUMENT,
               "argument 0 is tensor<3xf32>, the function takes tensor<4xf32>");
  assert_null(y);
  assert_error(pestle_jit_call(jit, &x, 0, NULL, &y, 1), INVALID_ARGUMENT,
               "takes 1 arguments, 0");
  assert_error(pestle_jit_call(jit, &bias, 1, NULL, &y, 0), INVALID_ARGUMENT,
               "1 results");
  pestle_array_release(x);
  // A lazy argument is evaluated first, a view is read as it is.
  pestle_array_t* sum;
  assert_ok(pestle_array_add(bias, bias, &sum));
  pestle_reverse_attrs_t reverse = {.struct_size = sizeof(reverse),
                                    .dimensions = PESTLE_I64S(0)};
  assert_ok(pestle_jit_call(jit, &sum, 1, NULL, &y, 1));
  expect(y, 6.5f, 11.5f, 16.5f, 21.5f);
  pestle_array_release(y);
  assert_ok(pestle_array_reverse(sum, &reverse, &x));
  assert_true(pestle_array_is_view(x));
  assert_ok(pestle_jit_call(jit, &x, 1, NULL, &y, 1));
  expect(y, 24.5f, 17.5f, 10.5f, 3.5f);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(sum);
  pestle_array_release(bias);
  pestle_jit_release(jit);
}

static void test_unknown_extents_are_specialised(void** state) {
  const fixture_t* f = *state;
  static const char source[] =
      "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<?xf32>\n"
      "  return %0 : tensor<?xf32>\n}\n";
  pestle_module_t* module;
  pestle_jit_t* jit;
  assert_ok(pestle_module_parse(f->context, source, strlen(source), "x.mlir",
                                &module));
  assert_ok(pestle_jit_create(f->device, module, NULL, NULL, &jit));
  pestle_module_release(module);
  // More lengths than a function keeps, and the first again.
  for (int64_t i = 0; i < 70; ++i) {
    pestle_type_t type = {PESTLE_F32, 1, {i % 66 + 1}};
    float data[66], twice[66];
    for (int k = 0; k < 66; ++k)
      data[k] = (float)k;
    pestle_array_t *x, *y;
    assert_ok(pestle_array_from_data(f->device, &type, data, &x));
    assert_ok(pestle_jit_call(jit, &x, 1, NULL, &y, 1));
    size_t size = (size_t)type.dims[0] * sizeof(float);
    assert_int_equal(pestle_array_type(y).dims[0], type.dims[0]);
    assert_ok(pestle_array_read(y, twice, size));
    assert_true(twice[type.dims[0] - 1] == 2 * (float)(type.dims[0] - 1));
    pestle_array_release(x);
    pestle_array_release(y);
    if (i == 1) {
      char text[160];
      assert_int_equal(pestle_jit_miss_count(jit), 1);
      assert_ok(pestle_jit_explain_miss(jit, 0, text, sizeof(text)));
      assert_string_equal(text,
                          "argument 0 is tensor<2xf32>, of the nearest call it "
                          "was tensor<1xf32>");
      assert_ok(pestle_jit_explain_miss(jit, 0, text, 11));
      assert_string_equal(text, "argument 0");
    }
  }
  assert_int_equal(pestle_jit_miss_count(jit), 64);
  char text[160];
  assert_ok(pestle_jit_explain_miss(jit, 63, text, sizeof(text)));
  assert_non_null(strstr(text, "tensor<4xf32>, of"));
  assert_error(pestle_jit_explain_miss(jit, 64, text, sizeof(text)),
               INVALID_ARGUMENT, "miss 64 is asked for, 64 are remembered");
  pestle_jit_release(jit);
}

typedef struct lengths_t {
  const fixture_t* f;
  pestle_jit_t* jit;
  int number;
  bool right;
} lengths_t;

static void* call_lengths(void* arg) {
  lengths_t* c = arg;
  float data[80], twice[80];
  for (int k = 0; k < 80; ++k)
    data[k] = (float)(k + 1);
  c->right = true;
  for (int i = 0; i < 200 && c->right; ++i) {
    // Mostly one length, between ones that make others be forgotten.
    int64_t n = i % 3 ? 5 : (c->number * 29 + i * 7) % 80 + 1;
    pestle_type_t type = {PESTLE_F32, 1, {n}};
    pestle_array_t *x, *y = NULL;
    size_t size = (size_t)n * sizeof(float);
    c->right = !pestle_array_from_data(c->f->device, &type, data, &x) &&
               !pestle_jit_call(c->jit, &x, 1, NULL, &y, 1) &&
               !pestle_array_read(y, twice, size) &&
               twice[n - 1] == 2 * (float)n;
    pestle_array_release(x);
    pestle_array_release(y);
  }
  return NULL;
}

static void test_threads_forget_what_others_run(void** state) {
  enum { THREADS = 4 };
  const fixture_t* f = *state;
  static const char source[] =
      "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<?xf32>\n"
      "  return %0 : tensor<?xf32>\n}\n";
  pestle_module_t* module;
  pestle_jit_t* jit;
  pthread_t threads[THREADS];
  lengths_t callers[THREADS];
  assert_ok(pestle_module_parse(f->context, source, strlen(source), "x.mlir",
                                &module));
  assert_ok(pestle_jit_create(f->device, module, NULL, NULL, &jit));
  pestle_module_release(module);
  for (int t = 0; t < THREADS; ++t) {
    callers[t] = (lengths_t){f, jit, t, false};
    assert_int_equal(
        pthread_create(&threads[t], NULL, call_lengths, &callers[t]), 0);
  }
  for (int t = 0; t < THREADS; ++t) {
    pthread_join(threads[t], NULL);
    assert_true(callers[t].right);
  }
  assert_true(pestle_jit_miss_count(jit) > 0);
  pestle_jit_release(jit);
}

static void test_captures_nest(void** state) {
  const fixture_t* f = *state;
  pestle_capture_t *a, *b;
  pestle_array_t *x, *y, *z;
  pestle_module_t* module;
  assert_ok(pestle_capture_begin(f->device, &f32x4, 1, &a, &x));
  assert_ok(pestle_capture_begin(f->device, &f32x4, 1, &b, &y));
  assert_ok(pestle_array_add(x, y, &z));
  assert_error(pestle_capture_end(a, &z, 1, &module), INVALID_ARGUMENT,
               "a later capture");
  // b began within a: what it reads of a is hidden, as data is.
  assert_ok(pestle_capture_end(b, &z, 1, &module));
  assert_int_equal(pestle_capture_hidden_count(b), 1);
  assert_ptr_equal(pestle_capture_hidden(b, 0), x);
  pestle_module_release(module);
  assert_ok(pestle_capture_bind(b, &x, 1));
  assert_ok(pestle_capture_end(b, (pestle_array_t*[]){z, x}, 2, &module));
  assert_int_equal(pestle_capture_hidden_count(b), 0);
  assert_int_equal(pestle_function_argument_count(pestle_module_entry(module)),
                   2);
  pestle_module_release(module);
  // The identity, twice, is a function.
  assert_ok(pestle_capture_end(a, (pestle_array_t*[]){x, x}, 2, &module));
  assert_ok(pestle_module_verify(module));
  pestle_module_release(module);
  pestle_capture_release(a);
  pestle_capture_release(b);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(z);
}

// A body that was captured folds by a reduction: the larger magnitude.
static void test_a_capture_is_a_body(void** state) {
  const fixture_t* f = *state;
  pestle_type_t scalars[] = {{.dtype = PESTLE_F32}, {.dtype = PESTLE_F32}};
  pestle_capture_t* capture;
  pestle_array_t *in[2], *size[2], *larger, *x, *zero, *y;
  pestle_module_t* body;
  assert_ok(pestle_capture_begin(f->device, scalars, 2, &capture, in));
  assert_ok(pestle_array_abs(in[0], &size[0]));
  assert_ok(pestle_array_abs(in[1], &size[1]));
  assert_ok(pestle_array_maximum(size[0], size[1], &larger));
  assert_ok(pestle_capture_end(capture, &larger, 1, &body));
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 0, &zero));
  x = array_of(f, 1, -7, 3, 4);
  pestle_reduce_attrs_t attrs = {.struct_size = sizeof(attrs),
                                 .dimensions = PESTLE_I64S(0)};
  pestle_array_t* operands[] = {x, zero};
  assert_ok(pestle_array_reduce(operands, 2, &attrs, body, &y, 1));
  float data;
  assert_ok(pestle_array_read(y, &data, sizeof(data)));
  assert_true(data == 7);
  pestle_capture_release(capture);
  pestle_module_release(body);
  for (int i = 0; i < 2; ++i) {
    pestle_array_release(in[i]);
    pestle_array_release(size[i]);
  }
  pestle_array_release(larger);
  pestle_array_release(x);
  pestle_array_release(zero);
  pestle_array_release(y);
}

typedef struct caller_t {
  const fixture_t* f;
  pestle_jit_t* jit;
  int wrong;
} caller_t;

static void* call_often(void* self) {
  caller_t* c = self;
  pestle_stream_t* stream;
  if (pestle_stream_create(c->f->device, &stream)) return NULL;
  pestle_array_t* x;
  pestle_status_t status =
      pestle_array_from_data(c->f->device, &f32x4, (float[]){1, 2, 3, 4}, &x);
  for (int i = 0; !status && i < 200; ++i) {
    pestle_array_t* y;
    float data[4] = {0};
    status = pestle_jit_call(c->jit, &x, 1, i & 1 ? stream : NULL, &y, 1);
    if (!status) status = pestle_array_read(y, data, sizeof(data));
    if (data[3] != 12.5f) c->wrong = 1;
    pestle_array_release(y);
  }
  if (status) c->wrong = 1;
  pestle_status_release(status);
  pestle_array_release(x);
  pestle_stream_release(stream);
  return NULL;
}

static void test_any_threads_call(void** state) {
  enum { THREADS = 4 };
  pestle_array_t* bias = array_of(*state, 1, 1, 1, 1);
  char* text;
  pestle_jit_t* jit = capture_affine(*state, bias, &text);
  pestle_context_free(((const fixture_t*)*state)->context, text,
                      strlen(text) + 1);
  pthread_t threads[THREADS];
  caller_t callers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    callers[i] = (caller_t){*state, jit, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]),
                     0);
  }
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    assert_int_equal(callers[i].wrong, 0);
  }
  pestle_jit_release(jit);
  pestle_array_release(bias);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_capture_is_a_function),
      cmocka_unit_test(test_guards_name_what_differs),
      cmocka_unit_test(test_unknown_extents_are_specialised),
      cmocka_unit_test(test_threads_forget_what_others_run),
      cmocka_unit_test(test_captures_nest),
      cmocka_unit_test(test_a_capture_is_a_body),
      cmocka_unit_test(test_any_threads_call),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
