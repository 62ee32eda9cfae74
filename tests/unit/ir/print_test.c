// SPDX-License-Identifier: Apache-2.0
// The printer: names, flags, exact floats, and the round trip of each form.
#include <math.h>

#include "ir_test.h"
#include "text_test.h"

static void assert_round_trip(const pestle_module_t* module, unsigned flags) {
  char* first = text_print(module, flags);
  pestle_module_t* again = text_parse(module->context, first);
  char* second = text_print(again, flags);
  assert_string_equal(first, second);
  free(second);
  free(first);
  pestle_module_release(again);
}

static void every_form_round_trips(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    size_t size;
    char* text = text_golden(text_golden_names[i], &size);
    pestle_module_t* module = text_parse(context, text);
    for (unsigned flags = 0; flags < 4; ++flags) {
      assert_round_trip(module, flags);
    }
    pestle_module_release(module);
    free(text);
  }
  pestle_context_release(context);
}

// Numbers, wishes that collide or are no names, and those that look like ours.
static void names(void** state) {
  (void)state;
  BEGIN(t, T0(F32), T0(F32), T0(F32));
  pestle_value_t *x, *y, *z, *w;
  t.a[0]->name = "conv 1/out";
  t.a[1]->name = "arg7";
  assert_ok(pestle_op_add(&t.b, t.a[0], t.a[1], &x));
  assert_ok(pestle_op_add(&t.b, x, t.a[2], &y));
  assert_ok(pestle_op_add(&t.b, y, y, &z));
  assert_ok(pestle_op_add(&t.b, z, z, &w));
  x->name = "sum";
  z->name = "sum";
  w->name = "3d";
  assert_ok(pestle_op_return(&t.b, &w, 1, NULL));
  char* text = text_print(t.module, 0);
  assert_string_equal(
      text,
      "module @test {\n"
      "  func.func public @main(%conv_1_out: tensor<f32>, %arg0: tensor<f32>, "
      "%arg1: tensor<f32>) -> tensor<f32> {\n"
      "    %sum = stablehlo.add %conv_1_out, %arg0 : tensor<f32>\n"
      "    %0 = stablehlo.add %sum, %arg1 : tensor<f32>\n"
      "    %sum_0 = stablehlo.add %0, %0 : tensor<f32>\n"
      "    %_3d = stablehlo.add %sum_0, %sum_0 : tensor<f32>\n"
      "    return %_3d : tensor<f32>\n"
      "  }\n"
      "}\n");
  free(text);
  assert_round_trip(t.module, 0);
  ir_test_end(&t);
}

static void long_constants(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  uint8_t data[200];
  for (size_t i = 0; i < sizeof(data); ++i)
    data[i] = (uint8_t)i;
  pestle_value_t *a, *b;
  assert_ok(ir_test_constant(&t.b, T(U8, 200), data, &a));
  assert_ok(ir_test_constant(&t.b, T(U8, 4, 5), data, &b));
  assert_ok(pestle_op_return(&t.b, t.a, 1, NULL));
  char* text = text_print(t.module, 0);
  assert_non_null(strstr(text, "dense<\"0x00010203"));
  assert_non_null(strstr(text, "dense<[[0, 1, 2, 3, 4], [5"));
  free(text);
  assert_round_trip(t.module, 0);
  text = text_print(t.module, PESTLE_PRINT_ELIDE);
  assert_non_null(strstr(text, "dense_elided<0x"));
  assert_null(strstr(text, "dense<"));
  free(text);
  ir_test_end(&t);
}

// Every bit pattern of the narrow floats, and many of f32 and f64, come back.
static void assert_bits_survive(pestle_dtype_t dtype, const void* data,
                                int64_t count) {
  BEGIN(t, T0(F32));
  pestle_value_t* a;
  for (int64_t i = 0; i < count; i += 100) {
    int64_t n = count - i < 100 ? count - i : 100;  // printed as numbers
    pestle_type_t type = pestle_type_make(dtype, 1, &n);
    assert_ok(ir_test_constant(
        &t.b, type, (const char*)data + i * pestle_dtype_size(dtype), &a));
  }
  assert_ok(pestle_op_return(&t.b, t.a, 1, NULL));
  char* text = text_print(t.module, 0);
  pestle_module_t* again = text_parse(t.context, text);
  const char* bits = data;
  for (const pestle_node_t* n = pestle_module_entry(again)->body->block->first;
       n->op == PESTLE_OP_CONSTANT; n = n->next) {
    const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(n);
    assert_memory_equal(e->data, bits, e->size);
    bits += e->size;
  }
  assert_ptr_equal(bits, (const char*)data + count * pestle_dtype_size(dtype));
  pestle_module_release(again);
  free(text);
  ir_test_end(&t);
}

static void floats_are_exact(void** state) {
  (void)state;
  static uint8_t bytes[256];
  static uint16_t halves[65536];
  static uint32_t singles[20000];
  static uint64_t doubles[20000];
  uint64_t random = 88172645463325252u;
  for (unsigned i = 0; i < 256; ++i)
    bytes[i] = (uint8_t)i;
  for (unsigned i = 0; i < 65536; ++i)
    halves[i] = (uint16_t)i;
  for (unsigned i = 0; i < 20000; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    singles[i] = (uint32_t)(random >> 32);
    doubles[i] = random;
  }
  static const pestle_dtype_t narrow[] = {PESTLE_F8E4M3FN, PESTLE_F8E5M2,
                                          PESTLE_F8E4M3FNUZ, PESTLE_F8E5M2FNUZ,
                                          PESTLE_I8};
  for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow); ++i) {
    assert_bits_survive(narrow[i], bytes, 256);
  }
  assert_bits_survive(PESTLE_F16, halves, 65536);
  assert_bits_survive(PESTLE_BF16, halves, 65536);
  assert_bits_survive(PESTLE_U16, halves, 65536);
  assert_bits_survive(PESTLE_F32, singles, 20000);
  assert_bits_survive(PESTLE_F64, doubles, 20000);
  assert_bits_survive(PESTLE_C64, doubles, 20000);
  assert_bits_survive(PESTLE_I64, doubles, 20000);
}

static void f64_attributes_are_exact(void** state) {
  (void)state;
  static const double values[] = {
      0.0,      -0.0,     1e-300, 5e-324,
      1e22,     0.1,      -1.5,   1.7976931348623157e308,
      INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
    BEGIN(t, T(F32, 2));
    pestle_value_t* y;
    assert_ok(pestle_op_hard_sigmoid(
        &t.b, t.a[0], ATTRS(hard_sigmoid, .alpha = values[i], .beta = 2), &y));
    assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
    char* text = text_print(t.module, 0);
    pestle_module_t* again = text_parse(t.context, text);
    const pestle_node_t* node = pestle_module_entry(again)->body->block->first;
    double got = PESTLE_NODE_F64(node, alpha);
    assert_memory_equal(&got, &values[i], sizeof(got));
    pestle_module_release(again);
    free(text);
    ir_test_end(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_round_trips),
      cmocka_unit_test(names),
      cmocka_unit_test(long_constants),
      cmocka_unit_test(floats_are_exact),
      cmocka_unit_test(f64_attributes_are_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
