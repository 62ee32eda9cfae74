// SPDX-License-Identifier: Apache-2.0
// Arrays: what is recorded, what an evaluation computes and keeps, views, memory that
// is used again, errors at the line that made them, threads.
#include <math.h>
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

static pestle_type_t f32(int32_t rank, int64_t a, int64_t b) {
  return (pestle_type_t){.dtype = PESTLE_F32, .rank = rank, .dims = {a, b}};
}

// 0, 1, 2, ... in dims a x b, or b 0: a.
static pestle_array_t* counted(const fixture_t* f, int64_t a, int64_t b) {
  float data[4096];
  pestle_type_t type = f32(b ? 2 : 1, a, b);
  pestle_array_t* array;
  for (int i = 0; i < 4096; ++i)
    data[i] = (float)i;
  assert_ok(pestle_array_from_data(f->device, &type, data, &array));
  return array;
}

static void expect(pestle_array_t* array, const float* values, size_t count) {
  float data[4096];
  assert_ok(pestle_array_read(array, data, count * sizeof(float)));
  for (size_t i = 0; i < count; ++i) {
    if (fabsf(data[i] - values[i]) <= 1e-5f * fabsf(values[i])) continue;
    fail_msg("element %zu is %g, expected %g", i, data[i], values[i]);
  }
}

static pestle_array_stats_t stats_of(const fixture_t* f) {
  pestle_array_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_array_stats(f->context, &stats);
  return stats;
}

// --- Recording and evaluating ---

static void test_nothing_runs_before_it_is_needed(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 4, 0), *y, *z;
  uint64_t before = stats_of(f).evaluations;
  assert_ok(pestle_array_add(x, x, &y));
  assert_ok(pestle_array_multiply(y, x, &z));
  assert_int_equal(pestle_array_state(z), PESTLE_ARRAY_LAZY);
  assert_null(pestle_array_storage(z));
  assert_int_equal(stats_of(f).evaluations, before);
  assert_ok(pestle_array_eval(&z, 1, NULL));
  assert_int_equal(pestle_array_state(z), PESTLE_ARRAY_DATA);
  // One run made both: somebody holds y.
  assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_DATA);
  assert_int_equal(stats_of(f).evaluations, before + 1);
  expect(z, (float[]){0, 2, 8, 18}, 4);
  expect(y, (float[]){0, 2, 4, 6}, 4);
  assert_int_equal(stats_of(f).evaluations, before + 1);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(z);
}

static void test_equal_graphs_share_an_executable(void** state) {
  const fixture_t* f = *state;
  pestle_array_stats_t before = stats_of(f);
  for (int i = 0; i < 5; ++i) {
    pestle_array_t *x = counted(f, 3, 5), *e, *y;
    assert_ok(pestle_array_tanh(x, &e));
    assert_ok(pestle_array_subtract(e, x, &y));
    pestle_array_release(e);
    assert_ok(pestle_array_eval(&y, 1, NULL));
    pestle_array_release(x);
    pestle_array_release(y);
  }
  pestle_array_stats_t after = stats_of(f);
  assert_int_equal(after.evaluations - before.evaluations, 5);
  assert_int_equal(after.hits - before.hits, 4);
  assert_int_equal(after.executables - before.executables, 1);
}

// The graph is the key: an attribute, a type, what is wanted make another.
static void test_different_graphs_do_not(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 2, 3), *a, *b;
  assert_ok(pestle_array_fold(PESTLE_OP_ADD, x, PESTLE_I64S(0), &a));
  assert_ok(pestle_array_fold(PESTLE_OP_ADD, x, PESTLE_I64S(1), &b));
  expect(a, (float[]){3, 5, 7}, 3);
  expect(b, (float[]){3, 12}, 2);
  pestle_array_release(a);
  pestle_array_release(b);
  assert_ok(pestle_array_fold(PESTLE_OP_MAXIMUM, x, PESTLE_I64S(0, 1), &a));
  expect(a, (float[]){5}, 1);
  assert_int_equal(pestle_array_type(a).rank, 0);
  pestle_array_release(a);
  pestle_array_release(x);
}

static void test_several_arrays_are_one_run(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 4, 0), *out[2];
  assert_ok(pestle_array_sine(x, &out[0]));
  assert_ok(pestle_array_cosine(x, &out[1]));
  uint64_t before = stats_of(f).evaluations;
  assert_ok(pestle_array_eval(out, 2, NULL));
  assert_int_equal(stats_of(f).evaluations, before + 1);
  expect(out[0], (float[]){0, sinf(1), sinf(2), sinf(3)}, 4);
  expect(out[1], (float[]){1, cosf(1), cosf(2), cosf(3)}, 4);
  pestle_array_release(out[0]);
  pestle_array_release(out[1]);
  pestle_array_release(x);
}

static void test_elementwise_ops_broadcast(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 2, 3), *row = counted(f, 3, 0), *s, *y, *z;
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 0.25, &s));
  assert_ok(pestle_array_add(x, row, &y));
  assert_ok(pestle_array_multiply(s, y, &z));
  assert_int_equal(pestle_array_type(z).rank, 2);
  expect(z, (float[]){0, 0.5f, 1, 0.75f, 1.25f, 1.75f}, 6);
  pestle_array_release(z);
  // Another number is the same executable.
  uint64_t before = stats_of(f).executables;
  pestle_array_release(s);
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 3, &s));
  pestle_array_release(y);
  assert_ok(pestle_array_add(x, row, &y));
  assert_ok(pestle_array_multiply(s, y, &z));
  expect(z, (float[]){0, 6, 12, 9, 15, 21}, 6);
  assert_int_equal(stats_of(f).executables, before);
  pestle_array_release(s);
  pestle_array_release(x);
  pestle_array_release(row);
  pestle_array_release(y);
  pestle_array_release(z);
}

static void test_matrices(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *a = counted(f, 2, 3), *b = counted(f, 3, 2), *y;
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_contracting_dimensions = PESTLE_I64S(1),
      .rhs_contracting_dimensions = PESTLE_I64S(0)};
  assert_ok(pestle_array_dot_general(a, b, &attrs, f32(2, 2, 2), &y));
  expect(y, (float[]){10, 13, 28, 40}, 4);
  pestle_array_release(a);
  pestle_array_release(b);
  pestle_array_release(y);
}

// qr has two results, and one of them is not asked for until later.
static void test_ops_of_several_results(void** state) {
  const fixture_t* f = *state;
  float data[] = {2, 0, 0, 3};
  pestle_type_t type = f32(2, 2, 2);
  pestle_array_t *x, *qr[2], *product;
  assert_ok(pestle_array_from_data(f->device, &type, data, &x));
  assert_ok(pestle_array_qr(x, NULL, qr, 2));
  assert_ok(pestle_array_eval(&qr[1], 1, NULL));
  uint64_t before = stats_of(f).evaluations;
  assert_ok(pestle_array_eval(&qr[0], 1, NULL));
  assert_int_equal(stats_of(f).evaluations, before);
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_contracting_dimensions = PESTLE_I64S(1),
      .rhs_contracting_dimensions = PESTLE_I64S(0)};
  assert_ok(pestle_array_dot_general(qr[0], qr[1], &attrs, type, &product));
  float back[4];
  assert_ok(pestle_array_read(product, back, sizeof(back)));
  for (int i = 0; i < 4; ++i)
    assert_true(fabsf(back[i] - data[i]) < 1e-5f);
  pestle_array_release(x);
  pestle_array_release(qr[0]);
  pestle_array_release(qr[1]);
  pestle_array_release(product);
}

// --- Views ---

static void test_views_run_nothing(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 4, 6), *t, *s, *r, *b, *flat;
  uint64_t before = stats_of(f).evaluations;
  pestle_transpose_attrs_t transpose = {.struct_size = sizeof(transpose),
                                        .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(x, &transpose, &t));
  pestle_slice_attrs_t slice = {.struct_size = sizeof(slice),
                                .start_indices = PESTLE_I64S(1, 1),
                                .limit_indices = PESTLE_I64S(6, 4),
                                .strides = PESTLE_I64S(2, 2)};
  assert_ok(pestle_array_slice(t, &slice, &s));
  pestle_reverse_attrs_t reverse = {.struct_size = sizeof(reverse),
                                    .dimensions = PESTLE_I64S(0)};
  assert_ok(pestle_array_reverse(s, &reverse, &r));
  assert_true(pestle_array_is_view(r));
  assert_ptr_equal(pestle_array_storage(r), pestle_array_storage(x));
  assert_int_equal(stats_of(f).evaluations, before);
  // t is x's transpose: t[i][j] = 6 j + i; s: rows 1, 3, 5, columns 1, 3.
  expect(s, (float[]){7, 19, 9, 21, 11, 23}, 6);
  expect(r, (float[]){11, 23, 9, 21, 7, 19}, 6);
  pestle_type_t type = f32(1, 24, 0);
  assert_ok(pestle_array_reshape(x, NULL, type, &flat));
  assert_ptr_equal(pestle_array_storage(flat), pestle_array_storage(x));
  pestle_array_release(flat);
  // The elements of t do not lie in their order: this one is a node.
  assert_ok(pestle_array_reshape(t, NULL, type, &flat));
  assert_int_equal(pestle_array_state(flat), PESTLE_ARRAY_LAZY);
  assert_ok(pestle_array_add(r, r, &b));
  expect(b, (float[]){22, 46, 18, 42, 14, 38}, 6);
  float data[24];
  assert_ok(pestle_array_read(flat, data, sizeof(data)));
  for (int i = 0; i < 24; ++i)
    assert_true(data[i] == (float)(6 * (i % 4) + i / 4));
  pestle_array_release(x);
  pestle_array_release(t);
  pestle_array_release(s);
  pestle_array_release(r);
  pestle_array_release(b);
  pestle_array_release(flat);
}

static void test_a_view_keeps_its_base(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 4, 6), *s, *base;
  pestle_slice_attrs_t slice = {.struct_size = sizeof(slice),
                                .start_indices = PESTLE_I64S(3, 0),
                                .limit_indices = PESTLE_I64S(4, 6),
                                .strides = PESTLE_I64S(1, 1)};
  assert_ok(pestle_array_slice(x, &slice, &s));
  pestle_array_release(x);
  expect(s, (float[]){18, 19, 20, 21, 22, 23}, 6);
  assert_ok(pestle_array_base(s, &base));
  assert_int_equal(pestle_array_type(base).dims[0], 96);
  assert_ok(pestle_array_copy_to(s, f->device, &x));
  assert_false(pestle_array_is_view(x));
  expect(x, (float[]){18, 19, 20, 21, 22, 23}, 6);
  pestle_array_release(x);
  pestle_array_release(s);
  pestle_array_release(base);
}

static void count_release(void* self) {
  ++*(int*)self;
}

static void test_wrapped_memory_goes_back_once(void** state) {
  const fixture_t* f = *state;
  float data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 2}, strides[] = {3, -1};
  int released = 0;
  pestle_tensor_t tensor = {.data = data,
                            .device = {PESTLE_DEVICE_CPU, 0},
                            .ndim = 2,
                            .dtype = {2, 32, 1},
                            .shape = shape,
                            .strides = strides,
                            .byte_offset = 8};
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .release = count_release,
                                          .release_self = &released};
  pestle_array_t *x, *y;
  assert_ok(pestle_array_wrap(f->device, &tensor, &options, &x));
  assert_ok(pestle_array_negate(x, &y));
  pestle_array_release(x);
  assert_int_equal(released, 0);
  expect(y, (float[]){-3, -2, -6, -5}, 4);
  assert_int_equal(released, 1);
  assert_true(data[2] == 3);
  pestle_array_release(y);
  tensor.dtype.bits = 17;
  assert_error(pestle_array_wrap(f->device, &tensor, &options, &x),
               INVALID_ARGUMENT, "17 bits");
  tensor.dtype.bits = 32;
  strides[0] = INT64_MAX / 2;
  assert_code(pestle_array_wrap(f->device, &tensor, &options, &x),
              INVALID_ARGUMENT);
  assert_int_equal(released, 1);
}

// --- Memory ---

static void test_dying_data_is_used_again(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 1024, 0), *one, *y;
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 1, &one));
  uint64_t before = stats_of(f).donations;
  for (int i = 0; i < 10; ++i) {
    void* memory = pestle_buffer_data(pestle_array_storage(x));
    assert_ok(pestle_array_add(x, one, &y));
    pestle_array_release(x);
    assert_ok(pestle_array_eval(&y, 1, NULL));
    assert_ptr_equal(pestle_buffer_data(pestle_array_storage(y)), memory);
    x = y;
  }
  assert_int_equal(stats_of(f).donations, before + 10);
  float data[1024];
  assert_ok(pestle_array_read(x, data, sizeof(data)));
  assert_true(data[1023] == 1033);
  // Somebody holds x: it stays as it is.
  assert_ok(pestle_array_add(x, one, &y));
  assert_ok(pestle_array_eval(&y, 1, NULL));
  assert_ok(pestle_array_read(x, data, sizeof(data)));
  assert_true(data[1023] == 1033);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(one);
}

// A loop that never asks for a value keeps no chain without end.
static void test_loops_are_bounded(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 8, 0), *one, *y;
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 1, &one));
  uint64_t before = stats_of(f).evaluations;
  for (int i = 0; i < 5000; ++i) {
    assert_ok(pestle_array_add(x, one, &y));
    pestle_array_release(x);
    x = y;
  }
  uint64_t runs = stats_of(f).evaluations - before;
  assert_true(runs >= 4 && runs <= 20);
  assert_true(stats_of(f).executables < 64);
  float data[8];
  assert_ok(pestle_array_read(x, data, sizeof(data)));
  assert_true(data[7] == 5007);
  pestle_array_release(x);
  pestle_array_release(one);
}

// --- Errors ---

static void test_errors_are_at_the_line_that_made_them(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = counted(f, 2, 3), *row = counted(f, 4, 0), *i, *y = x;
  pestle_type_t type = {.dtype = PESTLE_I32, .rank = 0};
  assert_ok(pestle_array_from_data(f->device, &type, &(int32_t){1}, &i));
  assert_error(pestle_array_add(x, row, &y), INVALID_ARGUMENT, "operand 1");
  assert_null(y);
  assert_error(pestle_array_add(x, i, &y), INVALID_ARGUMENT, "add");
  assert_error(pestle_array_add(x, NULL, &y), INVALID_ARGUMENT, "NULL");
  assert_error(pestle_array_add(x, x, NULL), INVALID_ARGUMENT, "place");
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(0, 2)};
  assert_error(pestle_array_transpose(x, &attrs, &y), INVALID_ARGUMENT,
               "permutation");
  assert_code(pestle_array_rng(x, x, x, NULL, type, &y), UNSUPPORTED);
  assert_code(pestle_array_fold(PESTLE_OP_DIVIDE, x, PESTLE_I64S(0), &y),
              INVALID_ARGUMENT);
  assert_code(pestle_array_fold(PESTLE_OP_ADD, x, PESTLE_I64S(2), &y),
              INVALID_ARGUMENT);
  float data[6];
  assert_error(pestle_array_read(x, data, 20), INVALID_ARGUMENT, "24 bytes");
  type = f32(1, -1, 0);
  assert_code(pestle_array_from_data(f->device, &type, data, &y),
              INVALID_ARGUMENT);
  type = f32(1, 7, 0);
  assert_code(
      pestle_array_from_buffer(pestle_array_storage(x), &type, 0, NULL, &y),
      INVALID_ARGUMENT);
  assert_code(pestle_array_eval((pestle_array_t*[]){NULL}, 1, NULL),
              INVALID_ARGUMENT);
  assert_int_equal(pestle_array_state(NULL), PESTLE_ARRAY_FAILED);
  pestle_array_release(x);
  pestle_array_release(row);
  pestle_array_release(i);
}

// A run for which there is no memory can be tried again, unless it was given memory
// that it may have written to.
static void test_failures_are_kept(void** state) {
  const fixture_t* f = *state;
  enum { COUNT = 3000 };  // no block of this size is kept for reuse
  uint64_t before, active;
  pestle_array_t *x = counted(f, COUNT, 0), *one, *out[2], *y;
  assert_ok(pestle_array_scalar(f->device, PESTLE_F32, 1, &one));
  assert_ok(pestle_device_memory_set(f->device, PESTLE_MEMORY_CACHE, 0, NULL));
  assert_ok(pestle_device_memory_get(f->device, PESTLE_MEMORY_ACTIVE, &active));
  // The code first, so that only the run has no memory.
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_array_add(x, one, &y));
    if (i) {
      assert_ok(pestle_device_memory_set(f->device, PESTLE_MEMORY_LIMIT,
                                         active + 64, &before));
      assert_code(pestle_array_eval(&y, 1, NULL), RESOURCE_EXHAUSTED);
      assert_int_equal(pestle_array_state(y), PESTLE_ARRAY_LAZY);
      assert_ok(pestle_device_memory_set(f->device, PESTLE_MEMORY_LIMIT, before,
                                         NULL));
    }
    assert_ok(pestle_array_eval(&y, 1, NULL));
    pestle_array_release(y);
    assert_ok(
        pestle_device_memory_set(f->device, PESTLE_MEMORY_CACHE, 0, NULL));
    assert_ok(
        pestle_device_memory_get(f->device, PESTLE_MEMORY_ACTIVE, &active));
  }
  assert_ok(pestle_array_add(x, one, &out[0]));
  assert_ok(pestle_array_multiply(x, x, &out[1]));
  pestle_array_release(x);
  assert_ok(pestle_device_memory_set(f->device, PESTLE_MEMORY_LIMIT,
                                     active + 64, &before));
  assert_code(pestle_array_eval(out, 2, NULL), RESOURCE_EXHAUSTED);
  assert_ok(
      pestle_device_memory_set(f->device, PESTLE_MEMORY_LIMIT, before, NULL));
  assert_int_equal(pestle_array_state(out[0]), PESTLE_ARRAY_FAILED);
  assert_true(pestle_array_is_ready(out[1]));
  // Every use says why.
  assert_code(pestle_array_eval(out, 2, NULL), RESOURCE_EXHAUSTED);
  assert_code(pestle_array_add(out[0], one, &y), RESOURCE_EXHAUSTED);
  assert_null(y);
  pestle_array_release(out[0]);
  pestle_array_release(out[1]);
  pestle_array_release(one);
}

static void test_mixed_devices_are_named(void** state) {
  const fixture_t* f = *state;
  pestle_device_t *ref, *llvm;
  if (pestle_device_backend(f->device) == NULL) skip();
  assert_ok(pestle_context_device(f->context, "ref", &ref));
  pestle_status_t status = pestle_context_device(f->context, "llvm", &llvm);
  if (status) {
    pestle_status_release(status);
    skip();
  }
  fixture_t a = {f->context, llvm}, b = {f->context, ref};
  pestle_array_t *x = counted(&a, 4, 0), *y = counted(&b, 4, 0), *s, *z;
  status = pestle_array_add(x, y, &z);
  char expected[256];
  snprintf(expected, sizeof(expected),
           "Inputs are on different backends (llvm:cpu:%d, ref:cpu:%d). Use "
           "pestle.copy(x, device) to move data to the same backend.",
           (int)pestle_device_index(llvm), (int)pestle_device_index(ref));
  assert_string_equal(pestle_status_message(status), expected);
  pestle_status_release(status);
  // A number adapts.
  assert_ok(pestle_array_scalar(llvm, PESTLE_F32, 10, &s));
  assert_ok(pestle_array_add(y, s, &z));
  assert_ptr_equal(pestle_array_device(z), ref);
  expect(z, (float[]){10, 11, 12, 13}, 4);
  pestle_array_release(z);
  // A copy is the way.
  pestle_array_release(s);
  assert_ok(pestle_array_copy_to(x, ref, &s));
  assert_ok(pestle_array_add(y, s, &z));
  expect(z, (float[]){0, 2, 4, 6}, 4);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(z);
  pestle_array_release(s);
}

// --- Streams and threads ---

static void test_streams(void** state) {
  const fixture_t* f = *state;
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(f->device, &stream));
  pestle_array_t *x = counted(f, 1024, 0), *y, *z;
  assert_ok(pestle_array_add(x, x, &y));
  assert_ok(pestle_array_eval_async(&y, 1, stream));
  assert_ok(pestle_array_multiply(y, x, &z));
  assert_ok(pestle_array_eval_async(&z, 1, stream));
  assert_ok(pestle_array_wait(z));
  assert_true(pestle_array_is_ready(z));
  float data[1024];
  assert_ok(pestle_array_read(z, data, sizeof(data)));
  assert_true(data[9] == 162);
  assert_ok(pestle_stream_synchronize(stream));
  pestle_stream_release(stream);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(z);
}

enum { THREADS = 4, ROUNDS = 60, SHARED = 8 };
typedef struct shared_t {
  const fixture_t* f;
  pestle_array_t* nodes[SHARED];
  pthread_barrier_t barrier;
  int wrong;
} shared_t;

static void* evaluate_shared(void* self) {
  shared_t* s = self;
  for (int round = 0; round < ROUNDS; ++round) {
    pthread_barrier_wait(&s->barrier);
    for (int i = 0; i < SHARED; ++i) {
      pestle_array_t* y;
      float data[4];
      // Each records on what all share, and wants it.
      pestle_status_t status =
          pestle_array_add(s->nodes[i], s->nodes[SHARED - 1 - i], &y);
      if (!status) status = pestle_array_read(y, data, sizeof(data));
      // nodes[i] is x + (i + 1) x: together (SHARED + 3) x
      if (status || data[3] != 3 * (float)(SHARED + 3)) {
        __atomic_fetch_add(&s->wrong, 1, __ATOMIC_RELAXED);
      }
      pestle_status_release(status);
      pestle_array_release(y);
    }
    pthread_barrier_wait(&s->barrier);
  }
  return NULL;
}

static void test_threads_share_nodes(void** state) {
  shared_t s = {.f = *state};
  pthread_t threads[THREADS];
  pthread_barrier_init(&s.barrier, NULL, THREADS + 1);
  for (int t = 0; t < THREADS; ++t)
    assert_int_equal(pthread_create(&threads[t], NULL, evaluate_shared, &s), 0);
  for (int round = 0; round < ROUNDS; ++round) {
    pestle_array_t *x = counted(s.f, 4, 0), *last = x;
    pestle_array_retain(x);
    for (int i = 0; i < SHARED; ++i) {
      assert_ok(pestle_array_add(last, x, &s.nodes[i]));
      pestle_array_release(last);
      last = s.nodes[i];
      pestle_array_retain(last);
    }
    pestle_array_release(last);
    pestle_array_release(x);
    pthread_barrier_wait(&s.barrier);
    pthread_barrier_wait(&s.barrier);
    for (int i = 0; i < SHARED; ++i)
      pestle_array_release(s.nodes[i]);
  }
  for (int t = 0; t < THREADS; ++t)
    pthread_join(threads[t], NULL);
  pthread_barrier_destroy(&s.barrier);
  assert_int_equal(s.wrong, 0);
}

// A chain as long as memory is freed without the stack.
static void test_long_chains_are_freed(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *all[500], *x = counted(f, 1, 0);
  for (int i = 0; i < 500; ++i) {
    assert_ok(pestle_array_add(i ? all[i - 1] : x, x, &all[i]));
  }
  pestle_array_release(x);
  for (int i = 0; i < 500; ++i)
    pestle_array_release(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_runs_before_it_is_needed),
      cmocka_unit_test(test_equal_graphs_share_an_executable),
      cmocka_unit_test(test_different_graphs_do_not),
      cmocka_unit_test(test_several_arrays_are_one_run),
      cmocka_unit_test(test_elementwise_ops_broadcast),
      cmocka_unit_test(test_matrices),
      cmocka_unit_test(test_ops_of_several_results),
      cmocka_unit_test(test_views_run_nothing),
      cmocka_unit_test(test_a_view_keeps_its_base),
      cmocka_unit_test(test_wrapped_memory_goes_back_once),
      cmocka_unit_test(test_dying_data_is_used_again),
      cmocka_unit_test(test_loops_are_bounded),
      cmocka_unit_test(test_errors_are_at_the_line_that_made_them),
      cmocka_unit_test(test_failures_are_kept),
      cmocka_unit_test(test_mixed_devices_are_named),
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_threads_share_nodes),
      cmocka_unit_test(test_long_chains_are_freed),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
