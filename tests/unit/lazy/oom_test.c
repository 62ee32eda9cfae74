// SPDX-License-Identifier: Apache-2.0
// Arrays without memory: each request for memory fails once. What was recorded stays
// as it was, can be evaluated afterwards, and nothing is lost.
#include "pestle/pestle.h"
#include "test.h"

typedef struct things_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_array_t *x, *transposed;
} things_t;

static const pestle_type_t f32x2x3 = {PESTLE_F32, 2, {2, 3}};

static void set_up(things_t* t) {
  pestle_test_allocator_init(&t->memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&t->memory),
      .cache_dir = "",
      .threads = 1};
  float data[] = {0, 1, 2, 3, 4, 5};
  assert_ok(pestle_context_create(&options, &t->context));
  assert_ok(pestle_context_device(t->context, "ref", &t->device));
  assert_ok(pestle_array_from_data(t->device, &f32x2x3, data, &t->x));
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(t->x, &attrs, &t->transposed));
}

static void tear_down(things_t* t) {
  pestle_array_release(t->x);
  pestle_array_release(t->transposed);
  pestle_context_release(t->context);
  pestle_test_allocator_check(&t->memory);
}

// (x^T + 0.25) summed over its rows, and x^T + 0.25 itself.
static pestle_status_t compute(things_t* t, pestle_array_t* out[2]) {
  pestle_array_t *number = NULL, *sum = NULL, *y = NULL;
  pestle_status_t status =
      pestle_array_scalar(t->device, PESTLE_F32, 0.25, &number);
  if (!status) status = pestle_array_add(t->transposed, number, &y);
  if (!status) {
    status = pestle_array_fold(PESTLE_OP_ADD, y, PESTLE_I64S(0), &sum);
  }
  pestle_array_release(number);
  if (!status) {
    out[0] = sum;
    out[1] = y;
    status = pestle_array_eval(out, 2, NULL);
    if (!status) return NULL;
    // It was not evaluated, and can be.
    if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
      assert_int_equal(pestle_array_state(sum), PESTLE_ARRAY_LAZY);
      assert_ok(pestle_array_eval(out, 2, NULL));
    }
  }
  pestle_array_release(sum);
  pestle_array_release(y);
  out[0] = out[1] = NULL;
  return status;
}

static void check(pestle_array_t* const out[2]) {
  float data[6];
  assert_ok(pestle_array_read(out[0], data, 8));
  assert_true(data[0] == 3.75f && data[1] == 12.75f);
  assert_ok(pestle_array_read(out[1], data, 24));
  assert_true(data[0] == 0.25f && data[1] == 3.25f && data[5] == 5.25f);
}

static void test_every_request_may_fail(void** state) {
  (void)state;
  bool failed = true;
  size_t step = 1, k;
  for (k = 1; failed; k += step) {
    things_t t;
    pestle_array_t* out[2] = {NULL, NULL};
    set_up(&t);
    atomic_store(&t.memory.fail_at, atomic_load(&t.memory.request_count) + k);
    pestle_status_t status = compute(&t, out);
    failed = pestle_test_allocator_failed(&t.memory);
    atomic_store(&t.memory.fail_at, 0);
    if (status) {
      assert_true(failed);
      assert_code(status, OUT_OF_MEMORY);
      assert_ok(compute(&t, out));
    }
    check(out);
    pestle_array_release(out[0]);
    pestle_array_release(out[1]);
    tear_down(&t);
    // The first requests are recording's, most others the compiler's, which has
    // tests of its own.
    if (k == 100) step = 13;
  }
  assert_true(k > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_request_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
