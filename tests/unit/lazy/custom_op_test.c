// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own on arrays, with a body and with an eval alone.
#include "pestle/custom_op.h"

#include <math.h>

#include "pestle/pestle.h"
#include "test.h"

enum { N = 6 };

static pestle_status_t infer(void* user, const pestle_custom_node_t* n,
                             pestle_type_t* out, size_t* inout_count) {
  (void)user;
  if (n->operand_count != 2) {
    return pestle_status_make(PESTLE_STATUS_UNSUPPORTED, NULL, 0,
                              "the op takes two tensors");
  }
  out[0] = n->operand_types[0];
  out[1] = n->operand_types[1];
  *inout_count = 2;
  return NULL;
}

static pestle_status_t body(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n,
                            pestle_value_t** out) {
  (void)user;
  PESTLE_TRY(pestle_op_add(b, n->operands[0], n->operands[1], &out[0]));
  return pestle_op_subtract(b, n->operands[0], n->operands[1], &out[1]);
}

static pestle_status_t eval(void* user, const pestle_custom_call_t* call) {
  ++*(int*)user;
  const float *x = call->inputs[0].data, *y = call->inputs[1].data;
  for (int i = 0; i < N; ++i) {
    ((float*)call->outputs[0].data)[i] = x[i] + y[i];
    ((float*)call->outputs[1].data)[i] = x[i] - y[i];
  }
  return NULL;
}

static void arrays_take_it(void** state) {
  (void)state;
  int calls = 0;
  const pestle_custom_eval_t by_function = {.struct_size = sizeof(by_function),
                                            .target = "*",
                                            .id = "1",
                                            .function = eval};
  const pestle_custom_eval_t* evals[] = {&by_function};
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = "user.butterfly",
                           .user = &calls,
                           .infer = infer,
                           .evals = evals,
                           .eval_count = 1};
  pestle_context_t* c;
  pestle_device_t* device;
  assert_ok(pestle_context_create(NULL, &c));
  assert_ok(pestle_context_device(c, "ref", &device));
  assert_ok(pestle_context_register_op(c, &op));
  op.name = "user.fused";
  op.body = body;
  assert_ok(pestle_context_register_op(c, &op));
  pestle_type_t type = {PESTLE_F32, 1, {N}};
  float data[N] = {1, 2, 3, 4, 5, 6};
  pestle_array_t *x, *y, *z[4], *bad[2] = {NULL};
  assert_ok(pestle_array_from_data(device, &type, data, &x));
  assert_ok(pestle_array_negate(x, &y));
  pestle_array_t* operands[] = {x, y};
  assert_ok(
      pestle_array_custom(c, "user.butterfly", operands, 2, NULL, 0, z, 2));
  assert_ok(pestle_array_custom(c, "user.fused", z, 2, NULL, 0, z + 2, 2));
  assert_error(pestle_array_custom(c, "user.fused", z, 1, NULL, 0, bad, 2),
               UNSUPPORTED, "two tensors");
  assert_error(pestle_array_custom(c, "user.none", z, 1, NULL, 0, bad, 2),
               NOT_FOUND, "user.none");
  assert_error(pestle_array_custom(c, "user.fused", z, 2, NULL, 0, bad, 1),
               INVALID_ARGUMENT, "there is room for 1");
  assert_code(pestle_array_custom(c, "user.fused", bad, 2, NULL, 0, bad, 2),
              INVALID_ARGUMENT);
  assert_null(bad[0]);
  assert_ok(pestle_array_eval(z + 2, 2, NULL));
  for (int k = 0; k < 2; ++k) {
    pestle_tensor_t view;
    assert_ok(pestle_array_data(z[2 + k], &view));
    for (int i = 0; i < N; ++i) {  // 0 + 2 x, 0 - 2 x
      float want = (float)(k ? -2 : 2) * data[i];
      assert_true(((const float*)view.data)[i] == want);
    }
  }
  assert_int_equal(calls, 1);
  for (int i = 0; i < 4; ++i)
    pestle_array_release(z[i]);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_context_release(c);
}

// i32 of 2 x 3 and f16 of 3 become f32 of 2 x 3 before the rules see them.
static void arrays_are_made_to_fit(void** state) {
  (void)state;
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = "user.fused",
                           .infer = infer,
                           .body = body,
                           .front = PESTLE_FRONT_BROADCAST |
                                    PESTLE_FRONT_PROMOTE | PESTLE_FRONT_FLOAT};
  pestle_context_t* c;
  pestle_device_t* device;
  assert_ok(pestle_context_create(NULL, &c));
  assert_ok(pestle_context_device(c, "ref", &device));
  assert_ok(pestle_context_register_op(c, &op));
  pestle_type_t types[] = {{PESTLE_I32, 2, {2, 3}}, {PESTLE_I8, 1, {3}}};
  int32_t x[N] = {1, 2, 3, 4, 5, 6};
  int8_t y[3] = {10, 20, 30};
  pestle_array_t *a[2], *z[2];
  assert_ok(pestle_array_from_data(device, &types[0], x, &a[0]));
  assert_ok(pestle_array_from_data(device, &types[1], y, &a[1]));
  assert_ok(pestle_array_custom(c, "user.fused", a, 2, NULL, 0, z, 2));
  pestle_type_t type = pestle_array_type(z[1]);
  assert_int_equal(type.dtype, PESTLE_F32);
  assert_int_equal(type.rank, 2);
  assert_ok(pestle_array_eval(z, 2, NULL));
  pestle_tensor_t view;
  assert_ok(pestle_array_data(z[0], &view));
  for (int i = 0; i < N; ++i)
    assert_true(((const float*)view.data)[i] == (float)(x[i] + y[i % 3]));
  pestle_array_t* wrong;
  pestle_type_t other = {PESTLE_I32, 1, {2}};
  assert_ok(pestle_array_from_data(device, &other, x, &wrong));
  pestle_array_release(z[0]);
  pestle_array_release(z[1]);
  pestle_array_t* pair[] = {a[0], wrong};
  assert_error(pestle_array_custom(c, "user.fused", pair, 2, NULL, 0, z, 2),
               INVALID_ARGUMENT, "do not broadcast: axis -1");
  pestle_array_release(wrong);
  pestle_array_release(a[0]);
  pestle_array_release(a[1]);
  pestle_context_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_take_it),
                                     cmocka_unit_test(arrays_are_made_to_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
