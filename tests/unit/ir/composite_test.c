// SPDX-License-Identifier: Apache-2.0
// Decompositions: each composite is evaluated by the reference, once as it is
// (the reference works from its definition in f64) and once decomposed.
#include <math.h>

#include "base/half.h"
#include "ir/ref/ref.h"
#include "ir_test.h"

enum { MAX_BYTES = 4096 };

typedef struct data_t {
  _Alignas(64) unsigned char bytes[MAX_BYTES];
} data_t;

static double get(pestle_dtype_t dtype, const data_t* data, size_t i) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = 0;
  memcpy(&bits, data->bytes + i * size, size);
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_decode(dtype, bits);
  }
  unsigned shift = 64 - 8 * (unsigned)size;
  return pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)
             ? (double)((int64_t)(bits << shift) >> shift)
             : (double)bits;
}

static void put(pestle_dtype_t dtype, data_t* data, size_t i, double value) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
                      ? pestle_float_encode(dtype, value)
                      : (uint64_t)(int64_t)value;
  memcpy(data->bytes + i * size, &bits, size);
}

// Values from |low| to |high| in no order.
static void fill(const pestle_type_t* type, double low, double high,
                 data_t* out) {
  size_t count = (size_t)pestle_type_count(type);
  for (size_t i = 0; i < count; ++i) {
    double at = (double)(i * 37 % 101) / 100;
    put(type->dtype, out, i, low + at * (high - low));
  }
}

static pestle_node_t* composite_of(const ir_test_t* t) {
  pestle_node_t* node = t->function->body->block->first;
  while (pestle_op_info((pestle_op_t)node->op)->fuse != PESTLE_FUSE_COMPOSITE) {
    node = node->next;
  }
  return node;
}

static void evaluate(const ir_test_t* t, const data_t* inputs, data_t* out) {
  const void* arguments[3] = {&inputs[0], &inputs[1], &inputs[2]};
  void* results[] = {out};
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), t->function,
                                         arguments, results));
}

// Replaces the composite of |t| by its decomposition.
static void decompose(ir_test_t* t) {
  pestle_node_t* node = composite_of(t);
  pestle_value_t* result;
  assert_ok(pestle_decompose(node, &result));
  assert_true(pestle_type_equal(result->type, node->results[0].type));
  pestle_value_replace_all_uses(pestle_node_result(node, 0), result);
  pestle_node_erase(node);
  assert_ok(pestle_module_verify(t->module));
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(t->function->body, n))) {
    assert_int_not_equal(pestle_op_info((pestle_op_t)n->op)->fuse,
                         PESTLE_FUSE_COMPOSITE);
  }
}

// Compares a function that returns its composite with what it decomposes to.
// |tolerance| is relative to 1 + |expected|.
static void compare(ir_test_t* t, const data_t* inputs, double tolerance) {
  static data_t expected, actual;
  pestle_value_t* result = pestle_node_result(composite_of(t), 0);
  pestle_type_t type = *result->type;
  assert_true(pestle_type_bytes(&type) <= MAX_BYTES);
  assert_ok(pestle_op_return(&t->b, &result, 1, NULL));
  assert_ok(pestle_module_verify(t->module));
  evaluate(t, inputs, &expected);
  decompose(t);
  evaluate(t, inputs, &actual);
  for (size_t i = 0; i < (size_t)pestle_type_count(&type); ++i) {
    double e = get(type.dtype, &expected, i), a = get(type.dtype, &actual, i);
    if (isnan(e) && isnan(a)) continue;
    if (e == a || fabs(e - a) <= tolerance * (1 + fabs(e))) continue;
    print_error("element %zu is %g, not %g\n", i, a, e);
    fail();
  }
}

typedef pestle_status_t (*build_fn_t)(ir_test_t* t);

static pestle_status_t softmax(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_softmax(&t->b, t->a[0],
                           ATTRS(softmax, .dimensions = I64S(1)), &y);
}
static pestle_status_t softmax_middle(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_softmax(&t->b, t->a[0],
                           ATTRS(softmax, .dimensions = I64S(0, 2)), &y);
}
static pestle_status_t log_softmax(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_log_softmax(&t->b, t->a[0],
                               ATTRS(log_softmax, .dimensions = I64S(2)), &y);
}
static pestle_status_t layer_norm(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_layer_norm(
      &t->b, t->a[0], t->a[1], t->a[2],
      ATTRS(layer_norm, .dimensions = I64S(1, 2), .epsilon = 1e-5), &y);
}
static pestle_status_t rms_norm(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_rms_norm(
      &t->b, t->a[0], t->a[1],
      ATTRS(rms_norm, .dimensions = I64S(1, 2), .epsilon = 1e-5), &y);
}
static pestle_status_t gelu(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_gelu(&t->b, t->a[0], NULL, &y);
}
static pestle_status_t gelu_tanh(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_gelu(&t->b, t->a[0], ATTRS(gelu, .approximate = true), &y);
}
static pestle_status_t silu(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_silu(&t->b, t->a[0], NULL, &y);
}
static pestle_status_t hard_sigmoid(ir_test_t* t) {
  pestle_value_t* y;
  return pestle_op_hard_sigmoid(
      &t->b, t->a[0], ATTRS(hard_sigmoid, .alpha = 0.2, .beta = 0.5), &y);
}

// Scores up to 4: those of 6 x 6 x 5 would take f32's last digits in exp.
static pestle_status_t attention(ir_test_t* t) {
  pestle_value_t *y, *x[] = {t->a[0], t->a[0], t->a[0]};
  return pestle_op_attention(&t->b, x, 3, ATTRS(attention, .scale = 0.02), &y);
}

static const build_fn_t float_builds[] = {
    softmax, softmax_middle, log_softmax, layer_norm,   rms_norm,
    gelu,    gelu_tanh,      silu,        hard_sigmoid, attention};

// Every composite of floats, in every float type that a model uses.
static void floats(void** state) {
  (void)state;
  static const struct {
    pestle_dtype_t dtype;
    double tolerance;
  } cases[] = {{PESTLE_F64, 1e-13},
               {PESTLE_F32, 1e-6},
               {PESTLE_F16, 1e-3},
               {PESTLE_BF16, 8e-3}};
  static data_t inputs[3];
  for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); ++c) {
    for (size_t i = 0; i < sizeof(float_builds) / sizeof(*float_builds); ++i) {
      pestle_dtype_t dtype = cases[c].dtype;
      pestle_type_t x = pestle_type_make(dtype, 3, (const int64_t[]){3, 4, 5});
      pestle_type_t w = pestle_type_make(dtype, 2, (const int64_t[]){4, 5});
      fill(&x, -6, 6, &inputs[0]);
      fill(&w, -1, 2, &inputs[1]);
      fill(&w, 3, -2, &inputs[2]);
      BEGIN(t, x, w, w);
      assert_ok(float_builds[i](&t));
      compare(&t, inputs, cases[c].tolerance);
      ir_test_end(&t);
    }
  }
}

// What a mask hides may be anything; a row that hides all weighs all alike, or is NaN
// where it is infinite.
static void masked_attention(void** state) {
  (void)state;
  static const double constants[] = {-INFINITY, -1e9, -1e300, 0.5};
  static data_t inputs[3], out;
  for (size_t c = 0; c < 4; ++c) {
    for (int dtype = 0; dtype < 3; ++dtype) {
      static const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_F64,
                                              PESTLE_BF16};
      pestle_type_t x =
          pestle_type_make(dtypes[dtype], 3, (const int64_t[]){2, 4, 3});
      pestle_type_t mask = T(I1, 1, 4, 4), bias = T(F32, 2, 1, 4);
      fill(&x, -1, 1, &inputs[0]);
      fill(&bias, -1, 1, &inputs[2]);
      put(PESTLE_F32, &inputs[2], 3, NAN);
      put(PESTLE_F32, &inputs[2], 7, INFINITY);
      // Row 2 hides all keys, the others the last one.
      for (size_t i = 0; i < 16; ++i)
        put(PESTLE_I1, &inputs[1], i, i / 4 != 2 && i % 4 != 3);
      BEGIN(t, x, mask, bias);
      pestle_value_t *y, *a[] = {t.a[0], t.a[0], t.a[0], t.a[2], t.a[1]};
      assert_ok(pestle_op_attention(
          &t.b, a, 5, ATTRS(attention, .scale = 0.5, .masked = constants[c]),
          &y));
      compare(&t, inputs, dtype == 2 ? 8e-3 : 1e-6);
      evaluate(&t, inputs, &out);
      // -1e300 is -infinity where scores are f32.
      bool none = c == 0 || (c == 2 && dtype != 1);
      for (size_t i = 0; i < 24; ++i) {
        assert_int_equal(isnan(get(x.dtype, &out, i)), none && i / 3 % 4 == 2);
      }
      ir_test_end(&t);
    }
  }
}

// Large values do not overflow, infinities and NaN come out as defined.
static void extremes(void** state) {
  (void)state;
  static const double values[] = {1e38,      -1e38, 88,    1000,
                                  -1000,     0,     -0.0,  INFINITY,
                                  -INFINITY, NAN,   1e-30, -1e-30};
  static data_t inputs[3];
  for (size_t i = 0; i < sizeof(float_builds) / sizeof(*float_builds); ++i) {
    // Norms and products of such rows are beyond f32.
    if (float_builds[i] == layer_norm || float_builds[i] == rms_norm ||
        float_builds[i] == attention) {
      continue;
    }
    BEGIN(t, T(F32, 12, 1, 1));
    for (size_t v = 0; v < 12; ++v) {
      put(PESTLE_F32, &inputs[0], v, values[v]);
    }
    assert_ok(float_builds[i](&t));
    // -inf times 0 is where silu and gelu as products differ from quotients.
    if (float_builds[i] == silu || float_builds[i] == gelu ||
        float_builds[i] == gelu_tanh) {
      put(PESTLE_F32, &inputs[0], 8, 0);
      put(PESTLE_F32, &inputs[0], 1, 0);
      put(PESTLE_F32, &inputs[0], 0, 0);
    }
    compare(&t, inputs, 1e-6);
    ir_test_end(&t);
  }
}

static void empty_and_scalar(void** state) {
  (void)state;
  static data_t inputs[3];
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 0));
  assert_ok(pestle_op_softmax(&t.b, t.a[0],
                              ATTRS(softmax, .dimensions = I64S(1)), &y));
  compare(&t, inputs, 0);
  ir_test_end(&t);
  BEGIN(u, T0(F32));
  put(PESTLE_F32, &inputs[0], 0, 3);
  assert_ok(
      pestle_op_softmax(&u.b, u.a[0], ATTRS(softmax, .dimensions = {0}), &y));
  compare(&u, inputs, 0);
  ir_test_end(&u);
}

static void narrow_floats_compute_in_f32(void** state) {
  (void)state;
  pestle_value_t *y, *result;
  BEGIN(t, T(F16, 2, 4), T(F16, 4), T(F16, 4));
  assert_ok(pestle_op_layer_norm(
      &t.b, t.a[0], t.a[1], t.a[2],
      ATTRS(layer_norm, .dimensions = I64S(1), .epsilon = 1e-5), &y));
  assert_ok(pestle_decompose(y->node, &result));
  const pestle_node_t* n = NULL;
  size_t converts = 0;
  while ((n = pestle_region_next(t.function->body, n)) && n != y->node) {
    if (n->op == PESTLE_OP_CONVERT) ++converts;
    if (n->op == PESTLE_OP_CONVERT || !n->result_count) continue;
    assert_int_equal(n->results[0].type->dtype, PESTLE_F32);
  }
  assert_int_equal(converts, 4);
  assert_type(result, T(F16, 2, 4));
  ir_test_end(&t);
}

// --- Quantisation ---

static void quantises(void** state) {
  (void)state;
  static const pestle_dtype_t dtypes[] = {PESTLE_I8,  PESTLE_U8, PESTLE_I16,
                                          PESTLE_U16, PESTLE_I4, PESTLE_U4};
  static data_t inputs[3];
  for (size_t d = 0; d < sizeof(dtypes) / sizeof(*dtypes); ++d) {
    for (int along = 0; along < 2; ++along) {
      pestle_type_t x = T(F32, 7, 3, 5), scale = T(F32, 3);
      if (!along) scale.rank = 0;
      pestle_type_t zero = scale;
      zero.dtype = dtypes[d];
      fill(&x, -40, 40, &inputs[0]);
      fill(&scale, 0.1, 0.5, &inputs[1]);
      fill(&zero, 3, 7, &inputs[2]);
      pestle_value_t* y;
      BEGIN(t, x, scale, zero);
      assert_ok(pestle_op_quantize(&t.b, t.a[0], t.a[1], t.a[2],
                                   ATTRS(quantize, .axis = 1), &y));
      compare(&t, inputs, 0);
      ir_test_end(&t);
      x.dtype = zero.dtype;
      fill(&x, 0, 7, &inputs[0]);
      BEGIN(u, x, scale, zero);
      assert_ok(pestle_op_dequantize(&u.b, u.a[0], u.a[1], u.a[2],
                                     ATTRS(dequantize, .axis = 1), &y));
      compare(&u, inputs, 1e-7);
      ir_test_end(&u);
    }
  }
}

// Ties go to even, what does not fit saturates.
static void quantises_as_onnx(void** state) {
  (void)state;
  static const float x[] = {0.5f,  1.5f, 2.5f,  -0.5f,
                            -1.5f, 1000, -1000, 126.6f};
  static const uint8_t expected[] = {10, 12, 12, 10, 8, 255, 0, 137};
  static data_t inputs[3], out;
  memcpy(&inputs[0], x, sizeof(x));
  put(PESTLE_F32, &inputs[1], 0, 1);
  put(PESTLE_U8, &inputs[2], 0, 10);
  pestle_value_t* y;
  BEGIN(t, T(F32, 8), T0(F32), T0(U8));
  assert_ok(pestle_op_quantize(&t.b, t.a[0], t.a[1], t.a[2], NULL, &y));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  decompose(&t);
  evaluate(&t, inputs, &out);
  assert_memory_equal(&out, expected, sizeof(expected));
  ir_test_end(&t);
}

static void quantises_other_types(void** state) {
  (void)state;
  static data_t inputs[3];
  pestle_value_t* y;
  pestle_type_t i32 = T(I32, 8), f16 = T(F16, 8), f8 = T(F8E4M3FN, 8);
  put(PESTLE_F16, &inputs[1], 0, 0.25);
  BEGIN(t, f16, T0(F16), T0(U16));
  fill(&f16, 0, 16000, &inputs[0]);
  put(PESTLE_U16, &inputs[2], 0, 1000);
  assert_ok(pestle_op_quantize(&t.b, t.a[0], t.a[1], t.a[2], NULL, &y));
  compare(&t, inputs, 0);
  ir_test_end(&t);
  BEGIN(u, i32, T0(F16), T0(I32));
  fill(&i32, -70000, 70000, &inputs[0]);
  put(PESTLE_I32, &inputs[2], 0, 5);
  assert_ok(pestle_op_dequantize(&u.b, u.a[0], u.a[1], u.a[2], NULL, &y));
  compare(&u, inputs, 1e-3);
  ir_test_end(&u);
  BEGIN(v, f16, T0(F16), T0(F8E4M3FN));
  fill(&f16, -100, 100, &inputs[0]);
  put(PESTLE_F8E4M3FN, &inputs[2], 0, 0);
  assert_ok(pestle_op_quantize(&v.b, v.a[0], v.a[1], v.a[2], NULL, &y));
  compare(&v, inputs, 0);
  ir_test_end(&v);
  BEGIN(w, f8, T0(F16), T0(F8E4M3FN));
  fill(&f8, -100, 100, &inputs[0]);
  assert_ok(pestle_op_dequantize(&w.b, w.a[0], w.a[1], w.a[2], NULL, &y));
  compare(&w, inputs, 0);
  ir_test_end(&w);
}

// --- Failures ---

static void refuses(void** state) {
  (void)state;
  pestle_value_t *y, *out;
  BEGIN(t, T(F32, 2, DYN));
  t.b.loc.name = "n";
  assert_ok(pestle_op_gelu(&t.b, t.a[0], NULL, &y));
  assert_error(pestle_decompose(y->node, &out), UNSUPPORTED,
               "'pestle.gelu' (node 'n'): a composite of unknown extents");
  assert_null(out);
  assert_ok(pestle_op_negate(&t.b, t.a[0], &y));
  assert_error(pestle_decompose(y->node, &out), INVALID_ARGUMENT,
               "the op is no composite");
  ir_test_end(&t);
}

static pestle_status_t work_decompose(ir_test_t* t) {
  pestle_value_t *y, *result;
  PESTLE_TRY(pestle_op_softmax(&t->b, t->a[0],
                               ATTRS(softmax, .dimensions = I64S(0)), &y));
  size_t before = ir_test_node_count(t);
  uint32_t uses = t->a[0]->use_count;
  pestle_status_t status = pestle_decompose(y->node, &result);
  if (status) {
    // Nothing of it is left.
    assert_int_equal(ir_test_node_count(t), before);
    assert_int_equal(t->a[0]->use_count, uses);
  }
  return status;
}

static void survives_failures(void** state) {
  (void)state;
  pestle_type_t type = T(F16, 4);
  ir_test_every_failure(&type, 1, work_decompose);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(floats),
      cmocka_unit_test(masked_attention),
      cmocka_unit_test(extremes),
      cmocka_unit_test(empty_and_scalar),
      cmocka_unit_test(narrow_floats_compute_in_f32),
      cmocka_unit_test(quantises),
      cmocka_unit_test(quantises_as_onnx),
      cmocka_unit_test(quantises_other_types),
      cmocka_unit_test(refuses),
      cmocka_unit_test(survives_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
