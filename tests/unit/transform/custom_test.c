// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own in transforms: z = x^2 y, whose rules are told from what its
// body would give by a factor, so that it is seen which was asked.
#include <math.h>

#include "ir/ref/ref.h"
#include "pestle/custom_op.h"
#include "pestle/pestle.h"
#include "pestle/transform.h"
#include "test.h"

enum { N = 4, SIZE = 3 };

typedef struct asked_t {
  int vjp, jvp, vmap;
} asked_t;

static pestle_status_t times(pestle_builder_t* b, pestle_value_t* x,
                             pestle_value_t* y, double by,
                             pestle_value_t** out) {
  float value = (float)by;
  pestle_constant_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .value = {pestle_value_type(x), &value, sizeof(value), true}};
  pestle_value_t* k;
  PESTLE_TRY(pestle_op_constant(b, &attrs, &k));
  PESTLE_TRY(pestle_op_multiply(b, x, y, out));
  return pestle_op_multiply(b, *out, k, out);
}

static pestle_status_t body(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n,
                            pestle_value_t** out) {
  (void)user;
  PESTLE_TRY(times(b, n->operands[0], n->operands[0], 1, out));
  return pestle_op_multiply(b, *out, n->operands[1], out);
}

// Of x alone, and twice what it is: 2 (2 x y ct); of y by the result: z / y ct.
static pestle_status_t vjp(void* user, pestle_builder_t* b,
                           const pestle_custom_node_t* n,
                           pestle_value_t* const* cotangents,
                           const bool* needed, pestle_value_t** out) {
  pestle_value_t* v;
  ++((asked_t*)user)->vjp;
  assert_non_null(cotangents[0]);
  assert_int_equal(n->operand_count, 2);
  assert_int_equal(n->result_count, 1);
  if (needed[0]) {
    PESTLE_TRY(times(b, n->operands[0], n->operands[1], 4, &v));
    PESTLE_TRY(pestle_op_multiply(b, v, cotangents[0], &out[0]));
  }
  if (!needed[1]) return NULL;
  PESTLE_TRY(pestle_op_divide(b, n->results[0], n->operands[1], &v));
  return pestle_op_multiply(b, v, cotangents[0], &out[1]);
}

// Three times what it is: 3 (2 x y tx).
static pestle_status_t jvp(void* user, pestle_builder_t* b,
                           const pestle_custom_node_t* n,
                           pestle_value_t* const* tangents,
                           pestle_value_t** out) {
  ++((asked_t*)user)->jvp;
  assert_non_null(tangents[0]);
  assert_null(tangents[1]);
  PESTLE_TRY(times(b, n->operands[0], n->operands[1], 6, out));
  return pestle_op_multiply(b, *out, tangents[0], out);
}

// With the axis last, where x alone has it.
static pestle_status_t vmap(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n, const int64_t* axes,
                            int64_t size, pestle_value_t** out,
                            int64_t* out_axes) {
  int64_t order[] = {1, 0}, dims[] = {0};
  pestle_type_t type = {PESTLE_F32, 2, {N, SIZE}};
  pestle_transpose_attrs_t turn = {.struct_size = sizeof(turn),
                                   .permutation = {order, 2}};
  pestle_broadcast_in_dim_attrs_t spread = {.struct_size = sizeof(spread),
                                            .broadcast_dimensions = {dims, 1}};
  pestle_value_t *x, *y;
  ++((asked_t*)user)->vmap;
  assert_int_equal(axes[0], 0);
  assert_int_equal(axes[1], -1);
  assert_int_equal(size, SIZE);
  assert_int_equal(n->operand_types[0].rank, 2);
  PESTLE_TRY(pestle_op_transpose(b, n->operands[0], &turn, &x));
  PESTLE_TRY(pestle_op_broadcast_in_dim(b, n->operands[1], &spread, type, &y));
  out_axes[0] = 1;
  PESTLE_TRY(times(b, x, x, 1, out));
  return pestle_op_multiply(b, *out, y, out);
}

// main(x, y) = -op(x, y)
static pestle_module_t* make(pestle_context_t* c,
                             const pestle_custom_op_t* op) {
  pestle_type_t types[] = {{PESTLE_F32, 1, {N}}, {PESTLE_F32, 1, {N}}};
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_value_t* z;
  assert_ok(pestle_context_register_op(c, op));
  assert_ok(pestle_module_create(c, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", types, NULL, 2, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* in[] = {pestle_function_argument(f, 0),
                          pestle_function_argument(f, 1)};
  assert_ok(pestle_op_custom(&b, op->name, in, 2, NULL, 0, &z, 1));
  assert_ok(pestle_op_negate(&b, z, &z));
  assert_ok(pestle_op_return(&b, &z, 1, NULL));
  return module;
}

static const float x[N] = {1, 2, -3, 0.5f}, y[N] = {2, 1, 4, -2},
                   t[N] = {1, -1, 2, 3};

static void evaluate(pestle_module_t* module, const void* const* in,
                     void* const* out) {
  assert_ok(pestle_module_verify(module));
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(),
                                         pestle_module_entry(module), in, out));
  pestle_module_release(module);
}

static pestle_custom_op_t op_of(asked_t* asked) {
  return (pestle_custom_op_t){.struct_size = sizeof(pestle_custom_op_t),
                              .name = "user.cube",
                              .user = asked,
                              .body = body};
}

// The factors by which the rules are told; 1: the body's.
static void check_derivatives(bool has_vjp, bool has_jvp, float back,
                              float forward) {
  asked_t asked = {0};
  pestle_context_t* c;
  assert_ok(pestle_context_create(NULL, &c));
  pestle_custom_op_t op = op_of(&asked);
  if (has_vjp) op.vjp = vjp;
  if (has_jvp) op.jvp = jvp;
  pestle_module_t *module = make(c, &op), *made;
  float z[N], cx[N], cy[N];
  static const uint32_t first[] = {0};
  pestle_transform_options_t options = {
      .struct_size = sizeof(options), .arguments = first, .argument_count = 1};
  assert_ok(pestle_module_vjp(module, has_jvp ? &options : NULL, &made));
  evaluate(made, (const void*[]){x, y, t}, (void*[]){z, cx, cy});
  for (int i = 0; i < N; ++i) {
    assert_float_equal(z[i], -x[i] * x[i] * y[i], 1e-6);
    assert_float_equal(cx[i], -back * 2 * x[i] * y[i] * t[i], 1e-5);
    if (!has_jvp) assert_float_equal(cy[i], -x[i] * x[i] * t[i], 1e-5);
  }
  assert_ok(pestle_module_jvp(module, &options, &made));
  evaluate(made, (const void*[]){x, y, t}, (void*[]){z, cx});
  for (int i = 0; i < N; ++i)
    assert_float_equal(cx[i], -forward * 2 * x[i] * y[i] * t[i], 1e-5);
  assert_int_equal(asked.vjp, has_vjp);
  assert_int_equal(asked.jvp > 0, has_jvp);
  pestle_module_release(module);
  pestle_context_release(c);
}

static void rules_are_asked(void** state) {
  (void)state;
  check_derivatives(false, false, 1, 1);
  check_derivatives(true, false, 2, 1);
  check_derivatives(false, true, 3, 3);
  check_derivatives(true, true, 2, 3);
}

static void is_batched(void** state) {
  (void)state;
  // By its rule, on a bigger shape, by its body.
  for (int how = 0; how < 3; ++how) {
    asked_t asked = {0};
    pestle_context_t* c;
    assert_ok(pestle_context_create(NULL, &c));
    pestle_custom_op_t op = op_of(&asked);
    if (how == 0) op.vmap = vmap;
    op.elementwise = how == 1;
    pestle_module_t *module = make(c, &op), *made;
    static const int64_t axes[] = {0, PESTLE_NOT_BATCHED};
    pestle_vmap_options_t options = {.struct_size = sizeof(options),
                                     .size = SIZE,
                                     .argument_axes = axes,
                                     .argument_axis_count = 2};
    float many[SIZE * N], z[SIZE * N];
    for (int i = 0; i < SIZE * N; ++i)
      many[i] = x[i % N] + (float)(i / N);
    assert_ok(pestle_module_vmap(module, &options, &made));
    evaluate(made, (const void*[]){many, y}, (void*[]){z});
    for (int i = 0; i < SIZE * N; ++i)
      assert_float_equal(z[i], -many[i] * many[i] * y[i % N], 1e-5);
    assert_int_equal(asked.vmap, how == 0);
    pestle_module_release(module);
    pestle_context_release(c);
  }
}

// --- Ops by name that derivatives know ---

static pestle_module_t* parse(pestle_context_t* c, const char* text) {
  pestle_module_t* module;
  assert_ok(pestle_module_parse(c, text, strlen(text), "test.mlir", &module));
  return module;
}

// x times what is x without a derivative, batched or not before: the gradient is x.
// An op that its own body uses is refused, and not built until the stack ends.
static pestle_status_t endless(void* user, pestle_builder_t* b,
                               const pestle_custom_node_t* n,
                               pestle_value_t** out) {
  (void)user;
  return pestle_op_custom(b, "test.endless", n->operands, n->operand_count,
                          NULL, 0, out, 1);
}

static void bodies_do_not_use_themselves(void** state) {
  pestle_context_t* c;
  (void)state;
  assert_ok(pestle_context_create(NULL, &c));
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = "test.endless",
                           .version = 1,
                           .body = endless};
  pestle_type_t type = {PESTLE_F32, 1, {N}};
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_value_t* z;
  assert_ok(pestle_context_register_op(c, &op));
  assert_ok(pestle_module_create(c, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", &type, NULL, 1, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* in = pestle_function_argument(f, 0);
  for (int i = 0; i < 2; ++i) {  // what is refused once leaves nothing behind
    pestle_status_t status =
        pestle_op_custom(&b, "test.endless", &in, 1, NULL, 0, &z, 1);
    assert_int_equal(pestle_status_code(status),
                     PESTLE_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(pestle_status_message(status), "its own body"));
    pestle_status_release(status);
  }
  pestle_module_release(module);
  pestle_context_release(c);
}

static void gradients_stop(void** state) {
  (void)state;
  pestle_context_t* c;
  assert_ok(pestle_context_create(NULL, &c));
  for (int first = 0; first < 2; ++first) {
    pestle_module_t *made,
        *module = parse(
            c,
            "module {\n"
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %s = stablehlo.composite \"pestle.stop_gradient\" %x "
            "{decomposition "
            "= @same} : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  %r = stablehlo.multiply %x, %s : tensor<4xf32>\n"
            "  return %r : tensor<4xf32>\n}\n"
            "func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  return %x : tensor<4xf32>\n}\n}\n");
    pestle_vmap_options_t options = {.struct_size = sizeof(options), .size = 1};
    if (first) {
      assert_ok(pestle_module_vmap(module, &options, &made));
      pestle_module_release(module);
      module = made;
    }
    float z[N], g[N];
    assert_ok(pestle_module_gradient(module, NULL, &made));
    evaluate(made, (const void*[]){x}, (void*[]){z, g});
    for (int i = 0; i < N; ++i)
      assert_float_equal(g[i], x[i], 1e-6);
    pestle_module_release(module);
  }
  pestle_context_release(c);
}

// A checkpoint has the gradient of what it is, and keeps its arguments alone.
static void modules_are_computed_again(void** state) {
  (void)state;
  pestle_context_t* c;
  assert_ok(pestle_context_create(NULL, &c));
  pestle_module_t *marked, *made, *plain,
      *module = parse(c,
                      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                      "  %s = stablehlo.sine %x : tensor<4xf32>\n"
                      "  %r = stablehlo.exponential %s : tensor<4xf32>\n"
                      "  return %r : tensor<4xf32>\n}\n");
  float z[2][N], g[2][N];
  assert_ok(pestle_module_checkpoint(module, NULL, &marked));
  assert_ok(pestle_module_verify(marked));
  assert_ok(pestle_module_gradient(marked, NULL, &made));
  assert_ok(pestle_module_gradient(module, NULL, &plain));
  int sines = 0;
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(pestle_module_entry(made)->body, n)))
    sines += n->op == PESTLE_OP_SINE;
  assert_int_equal(sines, 2);
  evaluate(made, (const void*[]){x}, (void*[]){z[0], g[0]});
  evaluate(plain, (const void*[]){x}, (void*[]){z[1], g[1]});
  assert_memory_equal(g[0], g[1], sizeof(g[0]));
  assert_memory_equal(z[0], z[1], sizeof(z[0]));
  pestle_transform_options_t o = {.struct_size = sizeof(o),
                                  .function = "other"};
  assert_code(pestle_module_checkpoint(module, &o, &made), INVALID_ARGUMENT);
  assert_null(made);
  pestle_module_release(marked);
  pestle_module_release(module);
  pestle_context_release(c);
}

// Of a function in two halves, how many values the first one hands over, and that both
// ways through the second one say what the whole does.
static size_t halves(pestle_module_t* module, const char* policy,
                     const char* names) {
  enum { MOST = 16 };
  pestle_module_t *marked, *whole, *forward, *linear, *back;
  float z[2][N], g[2][N], room[MOST][N];
  const void* inputs[MOST];
  void* outputs[MOST];
  pestle_transform_options_t o = {
      .struct_size = sizeof(o), .policy = policy, .names = names};
  assert_ok(pestle_module_checkpoint(module, &o, &marked));
  o = (pestle_transform_options_t){.struct_size = sizeof(o)};
  assert_ok(pestle_module_vjp(module, &o, &whole));
  evaluate(whole, (const void*[]){x, t}, (void*[]){z[0], g[0]});
  for (int reverse = 0; reverse < 2; ++reverse) {
    o.to_transpose = reverse;
    assert_ok(pestle_module_linearize(marked, &o, &forward, &linear));
    assert_ok(pestle_module_verify(forward));
    assert_ok(pestle_module_verify(linear));
    size_t count =
        pestle_module_entry(forward)->body->block->last->operand_count;
    assert_in_range(count, 2, MOST - 1);
    for (size_t i = 0; i < count; ++i)
      inputs[i] = outputs[i] = room[i];
    evaluate(forward, (const void*[]){x}, outputs);
    assert_memory_equal(room[0], z[0], sizeof(z[0]));
    inputs[count] = t;
    if (!reverse) {
      // Of elements each by itself forward and backward say the same.
      evaluate(linear, inputs + 1, (void*[]){g[1]});
    } else {
      uint32_t argument = (uint32_t)count - 1;
      pestle_transform_options_t to = {.struct_size = sizeof(to),
                                       .arguments = &argument,
                                       .argument_count = 1};
      assert_ok(pestle_module_transpose(linear, &to, &back));
      assert_ok(pestle_module_verify(back));
      evaluate(back, inputs + 1, (void*[]){g[1]});
      pestle_module_release(linear);
    }
    for (int i = 0; i < N; ++i)
      assert_float_equal(g[0][i], g[1][i], 1e-5);
    if (reverse) {
      pestle_module_release(marked);
      return count - 1;
    }
  }
  return 0;
}

static void halves_compute_again(void** state) {
  (void)state;
  pestle_context_t* c;
  assert_ok(pestle_context_create(NULL, &c));
  pestle_module_t* module = parse(
      c,
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %s = stablehlo.sine %x : tensor<4xf32>\n"
      "  %t = stablehlo.composite \"pestle.checkpoint_name\" %s {"
      "composite_attributes = {name = \"kept\"}, decomposition = @same} : "
      "(tensor<4xf32>) -> tensor<4xf32>\n"
      "  %e = stablehlo.exponential %t : tensor<4xf32>\n"
      "  %r = stablehlo.tanh %e : tensor<4xf32>\n"
      "  return %r : tensor<4xf32>\n}\n"
      "func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  return %x : tensor<4xf32>\n}\n");
  assert_int_equal(halves(module, NULL, NULL), 1);
  assert_int_equal(halves(module, "nothing", NULL), 1);
  assert_int_equal(halves(module, "dots", NULL), 1);
  assert_int_equal(halves(module, "names", "other"), 1);
  assert_int_equal(halves(module, "names", "other,kept"), 2);
  // cos x, e and what the slope of tanh is.
  assert_int_equal(halves(module, "everything", NULL), 3);
  pestle_module_release(module);
  pestle_context_release(c);
}

// Doubles x until it is above 10, in reverse mode with a bound: z = 2^k x, and NaN where
// the bound is passed.
static void loops_have_a_bound(void** state) {
  (void)state;
  pestle_context_t* c;
  pestle_module_t *made, *module;
  assert_ok(pestle_context_create(NULL, &c));
  module = parse(
      c,
      "func.func @main(%x: tensor<f32>, %w: tensor<f32>) -> tensor<f32> {\n"
      "  %most = stablehlo.constant dense<10.0> : tensor<f32>\n"
      "  %r = stablehlo.while(%a = %x) : tensor<f32>\n"
      "  cond {\n"
      "    %p = stablehlo.compare LT, %a, %most : (tensor<f32>, tensor<f32>) "
      "-> tensor<i1>\n"
      "    stablehlo.return %p : tensor<i1>\n"
      "  } do {\n"
      "    %b = stablehlo.multiply %a, %w : tensor<f32>\n"
      "    stablehlo.return %b : tensor<f32>\n"
      "  }\n"
      "  return %r : tensor<f32>\n}\n");
  assert_code(pestle_module_gradient(module, NULL, &made), UNSUPPORTED);
  static const float begin[] = {3, 1.5f, 20, 0.1f}, twice = 2;
  static const float turns[] = {2, 3, 0, 7};
  pestle_transform_options_t o = {.struct_size = sizeof(o), .max_trips = 5};
  assert_ok(pestle_module_gradient(module, &o, &made));
  for (int i = 0; i < 4; ++i) {
    float z[1], gx[1], gw[1], by = exp2f(turns[i]);
    pestle_module_retain(made);
    evaluate(made, (const void*[]){&begin[i], &twice}, (void*[]){z, gx, gw});
    if (turns[i] > 5) {
      assert_true(isnan(z[0]));
      continue;
    }
    assert_float_equal(z[0], by * begin[i], 1e-5);
    assert_float_equal(gx[0], by, 1e-5);
    assert_float_equal(gw[0], turns[i] * by / 2 * begin[i], 1e-4);
  }
  pestle_module_release(made);
  pestle_module_release(module);
  pestle_context_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_are_asked),
      cmocka_unit_test(is_batched),
      cmocka_unit_test(bodies_do_not_use_themselves),
      cmocka_unit_test(gradients_stop),
      cmocka_unit_test(modules_are_computed_again),
      cmocka_unit_test(halves_compute_again),
      cmocka_unit_test(loops_have_a_bound)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
