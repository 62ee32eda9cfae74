// SPDX-License-Identifier: Apache-2.0
// Arithmetic on complex numbers, through the whole compiler on each device,
// against the reference evaluator, which computes in long double. Ops that move
// and reduce complex numbers are in the sweep of conform_ops.h.
#include "test.h"
// The assertions of cmocka first.
#include "tools/conform/complex.h"

static pestle_context_t* context;
static const char* const devices[] = {"ref", "llvm"};

static bool run_on(const complex_case_t* c, pestle_module_t* module,
                   pestle_dtype_t dtype, const char* spec, void* const* inputs,
                   const void* want) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built, or not this machine
    pestle_status_release(status);
    return true;
  }
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .verify = true};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  int64_t shape[1] = {COMPLEX_COUNT};
  pestle_tensor_t in[2], out = {0};
  size_t n = pestle_executable_input_count(exe), at = 0;
  for (size_t i = 0; i < n; ++i) {
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = 1,
                              .dtype = pestle_dtype_to_dlpack(dtype),
                              .shape = shape};
  }
  assert_ok(pestle_executable_run(exe, NULL, in, n, &out, 1, NULL));
  pestle_dtype_t type = pestle_dtype_from_dlpack(out.dtype);
  double steps = 0;
  if (type == PESTLE_I1) {
    if (memcmp(want, out.data, COMPLEX_COUNT)) steps = INFINITY;
  } else {
    steps = complex_distance(type, want, out.data, &at);
  }
  if (steps > c->steps) {
    pestle_dtype_t part = pestle_dtype_part(dtype);
    print_error(
        "%s of %s on %s: %g roundoffs at %zu: a (%.9g, %.9g), b (%.9g, "
        "%.9g)\n",
        pestle_op_info(c->op)->name, pestle_dtype_info(dtype)->name, spec,
        steps, at, complex_get(part, inputs[0], 2 * at),
        complex_get(part, inputs[0], 2 * at + 1),
        complex_get(part, inputs[1], 2 * at),
        complex_get(part, inputs[1], 2 * at + 1));
    if (type != PESTLE_I1) {
      size_t k = part == type ? at : 2 * at;
      print_error("  is (%.9g, %.9g), should be (%.9g, %.9g)\n",
                  complex_get(part, out.data, k),
                  complex_get(part, out.data, k + 1),
                  complex_get(part, want, k), complex_get(part, want, k + 1));
    }
  }
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  return steps <= c->steps;
}

static void test_op(void** state) {
  const complex_case_t* c = *state;
  bool ok = true;
  for (int d = PESTLE_C64; d <= PESTLE_C128; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    pestle_module_t* module = complex_module(context, c, dtype);
    pestle_dtype_t part = pestle_dtype_part(dtype);
    void* inputs[2] = {complex_data(part, c->reach, 1),
                       complex_data(part, c->reach, 2)};
    void* want = complex_data(part, 1, 3);
    assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(),
                                           pestle_module_entry(module),
                                           (const void* const*)inputs, &want));
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); ++i)
      ok = run_on(c, module, dtype, devices[i], inputs, want) && ok;
    free(inputs[0]);
    free(inputs[1]);
    free(want);
    pestle_module_release(module);
  }
  assert_true(ok);
}

// Parts that are zero, infinite, NaN or near the ends of the range.
static void* edge_data(pestle_dtype_t part, uint32_t seed) {
  bool wide = part == PESTLE_F64;
  double most = wide ? 0x1.fffffffffffffp+1023 : 0x1.fffffep+127;
  double least = wide ? 0x1p-1022 : 0x1p-126;
  double edges[] = {
      0.0,         -0.0, 1,     -1,    (double)INFINITY, -(double)INFINITY,
      (double)NAN, most, -most, least, -least,           most / 512,
      0.5,         -3,   60,    -60};
  void* data = complex_data(part, 1, seed);
  for (size_t i = 0; i < 2 * COMPLEX_COUNT; ++i) {
    double pick = fabs(complex_random(&seed)) * 15.99;
    complex_put(part, data, i, edges[(size_t)pick]);
  }
  return data;
}

// The same infinities and NaN as those of C's functions in long double. But products
// may be contracted, which decides between infinities and NaN, and the angle of a
// power that is infinite is nothing.
static void test_edges(void** state) {
  (void)state;
  bool ok = true;
  for (size_t i = 0; i < sizeof(complex_cases) / sizeof(complex_cases[0]);
       ++i) {
    complex_case_t c = complex_cases[i];
    if (c.op == PESTLE_OP_MULTIPLY || c.op == PESTLE_OP_POWER) continue;
    c.steps *= 2;  // ends of the range lose a little
    for (int d = PESTLE_C64; d <= PESTLE_C128; ++d) {
      pestle_dtype_t dtype = (pestle_dtype_t)d;
      pestle_module_t* module = complex_module(context, &c, dtype);
      pestle_dtype_t part = pestle_dtype_part(dtype);
      void* inputs[2] = {edge_data(part, 1), edge_data(part, 2)};
      void* want = complex_data(part, 1, 3);
      assert_ok(pestle_ref_evaluate_function(
          pestle_allocator_system(), pestle_module_entry(module),
          (const void* const*)inputs, &want));
      for (size_t k = 0; k < sizeof(devices) / sizeof(devices[0]); ++k)
        ok = run_on(&c, module, dtype, devices[k], inputs, want) && ok;
      free(inputs[0]);
      free(inputs[1]);
      free(want);
      pestle_module_release(module);
    }
  }
  assert_true(ok);
}

// Every row that takes complex numbers is above; select only moves them.
static void test_table(void** state) {
  (void)state;
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    bool found = op == PESTLE_OP_SELECT;
    for (size_t i = 0; i < sizeof(complex_cases) / sizeof(complex_cases[0]);
         ++i)
      found = found || (unsigned)complex_cases[i].op == op;
    bool takes =
        (pestle_op_info((pestle_op_t)op)->kinds & PESTLE_KIND_COMPLEX) != 0;
    if (takes != found) fail_msg("%s", pestle_op_info((pestle_op_t)op)->name);
  }
}

// --- Regions ---

// Programs whose regions have complex arguments, each with its results.
static const char* const programs[] = {
    // A reduction by more than addition.
    "func.func @main(%x: tensor<5x7xcomplex<f32>>) -> tensor<5xcomplex<f32>> {"
    "  %c = stablehlo.constant dense<(1.0, 0.5)> : tensor<complex<f32>>"
    "  %r = stablehlo.reduce(%x init: %c) applies stablehlo.multiply across "
    "      dimensions = [1] : (tensor<5x7xcomplex<f32>>, tensor<complex<f32>>)"
    "      -> tensor<5xcomplex<f32>>"
    "  return %r : tensor<5xcomplex<f32>> }",
    // By the real part, then the imaginary one, with what lies beside.
    "func.func @main(%x: tensor<31xcomplex<f64>>, %i: tensor<31xi32>)"
    "    -> (tensor<31xcomplex<f64>>, tensor<31xi32>) {"
    "  %r:2 = \"stablehlo.sort\"(%x, %i) <{dimension = 0 : i64, is_stable = "
    "true}> ({ ^bb0(%a: tensor<complex<f64>>, %b: tensor<complex<f64>>, "
    "             %j: tensor<i32>, %k: tensor<i32>):"
    "    %ar = stablehlo.real %a : (tensor<complex<f64>>) -> tensor<f64>"
    "    %br = stablehlo.real %b : (tensor<complex<f64>>) -> tensor<f64>"
    "    %ai = stablehlo.imag %a : (tensor<complex<f64>>) -> tensor<f64>"
    "    %bi = stablehlo.imag %b : (tensor<complex<f64>>) -> tensor<f64>"
    "    %l = stablehlo.compare LT, %ar, %br : (tensor<f64>, tensor<f64>) -> "
    "tensor<i1>"
    "    %e = stablehlo.compare EQ, %ar, %br : (tensor<f64>, tensor<f64>) -> "
    "tensor<i1>"
    "    %m = stablehlo.compare LT, %ai, %bi : (tensor<f64>, tensor<f64>) -> "
    "tensor<i1>"
    "    %n = stablehlo.and %e, %m : tensor<i1>"
    "    %o = stablehlo.or %l, %n : tensor<i1>"
    "    stablehlo.return %o : tensor<i1> })"
    "    : (tensor<31xcomplex<f64>>, tensor<31xi32>)"
    "    -> (tensor<31xcomplex<f64>>, tensor<31xi32>)"
    "  return %r#0, %r#1 : tensor<31xcomplex<f64>>, tensor<31xi32> }",
    // A loop that captures and carries complex numbers.
    "func.func @main(%x: tensor<6xcomplex<f32>>) -> tensor<6xcomplex<f32>> {"
    "  %z = stablehlo.constant dense<0> : tensor<i32>"
    "  %n = stablehlo.constant dense<5> : tensor<i32>"
    "  %one = stablehlo.constant dense<1> : tensor<i32>"
    "  %h = stablehlo.constant dense<(0.5, 0.25)> : tensor<6xcomplex<f32>>"
    "  %s = stablehlo.multiply %x, %h : tensor<6xcomplex<f32>>"
    "  %r:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, "
    "tensor<6xcomplex<f32>> cond {"
    "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>"
    "    stablehlo.return %p : tensor<i1>"
    "  } do {"
    "    %j = stablehlo.add %i, %one : tensor<i32>"
    "    %w = stablehlo.multiply %v, %h : tensor<6xcomplex<f32>>"
    "    %u = stablehlo.add %w, %s : tensor<6xcomplex<f32>>"
    "    stablehlo.return %j, %u : tensor<i32>, tensor<6xcomplex<f32>> }"
    "  return %r#1 : tensor<6xcomplex<f32>> }",
    // Updates that are added.
    "func.func @main(%x: tensor<9xcomplex<f64>>, %i: tensor<4x1xi32>, "
    "                %u: tensor<4xcomplex<f64>>) -> tensor<9xcomplex<f64>> {"
    "  %r = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = "
    "#stablehlo.scatter<inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({"
    "    ^bb0(%a: tensor<complex<f64>>, %b: tensor<complex<f64>>):"
    "    %c = stablehlo.add %a, %b : tensor<complex<f64>>"
    "    stablehlo.return %c : tensor<complex<f64>> })"
    "    : (tensor<9xcomplex<f64>>, tensor<4x1xi32>, tensor<4xcomplex<f64>>)"
    "    -> tensor<9xcomplex<f64>>"
    "  return %r : tensor<9xcomplex<f64>> }",
    // Elementwise by a region; a result that is an argument.
    "func.func @main(%x: tensor<9xcomplex<f32>>)"
    "    -> (tensor<9xf32>, tensor<9xcomplex<f32>>) {"
    "  %r = \"stablehlo.map\"(%x) <{dimensions = array<i64: 0>}> ({"
    "    ^bb0(%a: tensor<complex<f32>>):"
    "    %c = stablehlo.multiply %a, %a : tensor<complex<f32>>"
    "    %d = stablehlo.imag %c : (tensor<complex<f32>>) -> tensor<f32>"
    "    stablehlo.return %d : tensor<f32> })"
    "    : (tensor<9xcomplex<f32>>) -> tensor<9xf32>"
    "  return %r, %x : tensor<9xf32>, tensor<9xcomplex<f32>> }",
};

static void fill(const pestle_type_t* type, uint32_t seed, void* data) {
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  size_t n = pestle_type_bytes(type) / pestle_dtype_size(part);
  for (size_t i = 0; i < n; ++i) {
    double value = complex_random(&seed);
    if (part == PESTLE_I32) {
      ((int32_t*)data)[i] = (int32_t)(fabs(value) * 8);
    } else {
      // Quarters: many are equal.
      complex_put(part, data, i, floor(value * 4) / 4);
    }
  }
}

static void test_program(void** state) {
  const char* text = *state;
  pestle_module_t* module;
  assert_ok(pestle_module_parse(context, text, strlen(text), NULL, &module));
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_node_t* end = f->body->block->last;
  void *inputs[3], *want[2];
  pestle_tensor_t in[3], out[2];
  size_t n = pestle_function_argument_count(f);
  for (size_t i = 0; i < n; ++i) {
    const pestle_type_t* type = pestle_function_argument(f, i)->type;
    inputs[i] = calloc(1, 1024);
    fill(type, (uint32_t)i + 7, inputs[i]);
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = type->rank,
                              .dtype = pestle_dtype_to_dlpack(type->dtype),
                              .shape = (int64_t*)(uintptr_t)type->dims};
  }
  for (size_t i = 0; i < 2; ++i) {
    want[i] = calloc(1, 1024);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         (const void* const*)inputs, want));
  for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); ++d) {
    pestle_device_t* device;
    pestle_plan_t* plan;
    pestle_executable_t* exe;
    pestle_status_t status =
        pestle_context_device(context, devices[d], &device);
    if (status) {
      pestle_status_release(status);
      continue;
    }
    pestle_compile_options_t options = {.struct_size = sizeof(options),
                                        .no_cache = true,
                                        .verify = true,
                                        .round_trip = true};
    assert_ok(pestle_compile(context, module, device, &options, &plan));
    assert_ok(pestle_executable_create(context, plan, device, &exe));
    for (uint32_t i = 0; i < end->operand_count; ++i)
      out[i] = (pestle_tensor_t){0};
    assert_ok(
        pestle_executable_run(exe, NULL, in, n, out, end->operand_count, NULL));
    for (uint32_t i = 0; i < end->operand_count; ++i) {
      const pestle_type_t* type = pestle_node_operand(end, i)->type;
      pestle_dtype_t part = pestle_dtype_part(type->dtype);
      size_t count = pestle_type_bytes(type) / pestle_dtype_size(part);
      // Quarters have few bits: sums and products of them are exact, but for
      // those of long reductions.
      for (size_t k = 0; k < count; ++k) {
        if (part == PESTLE_I32) {
          assert_int_equal(((int32_t*)want[i])[k], ((int32_t*)out[i].data)[k]);
          continue;
        }
        double w = complex_get(part, want[i], k),
               g = complex_get(part, out[i].data, k);
        assert_true(fabs(w - g) <= 1e-6 * (1 + fabs(w)));
      }
      pestle_tensor_release(exe, &out[i]);
    }
    pestle_executable_release(exe);
    pestle_plan_release(plan);
  }
  for (size_t i = 0; i < n; ++i)
    free(inputs[i]);
  for (size_t i = 0; i < 2; ++i) {
    free(want[i]);
  }
  pestle_module_release(module);
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

enum {
  CASES = sizeof(complex_cases) / sizeof(complex_cases[0]),
  PROGRAMS = sizeof(programs) / sizeof(programs[0]),
};

int main(void) {
  struct CMUnitTest tests[CASES + PROGRAMS + 2];
  size_t n = 0;
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_table);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_edges);
  for (size_t i = 0; i < CASES; ++i) {
    tests[n++] = (struct CMUnitTest){
        .name = pestle_op_info(complex_cases[i].op)->name,
        .test_func = test_op,
        .initial_state = (void*)(uintptr_t)&complex_cases[i]};
  }
  for (size_t i = 0; i < PROGRAMS; ++i) {
    tests[n++] =
        (struct CMUnitTest){.name = "regions",
                            .test_func = test_program,
                            .initial_state = (void*)(uintptr_t)programs[i]};
  }
  return _cmocka_run_group_tests("complex", tests, n, setup, teardown);
}
