// SPDX-License-Identifier: Apache-2.0
// Every scalar row on every dtype that it takes, over shape classes, through
// the whole compiler on each device, against the reference evaluator. Rows are
// expanded from scalar.def: a new one is tested without an edit here.
#include "test.h"
// The assertions of cmocka first.
#include "tools/conform/scalar.h"

static const char* const devices[] = {"ref", "llvm"};

static pestle_context_t* context;

static bool run_on(const op_case_t* c, pestle_module_t* module,
                   const char* spec, void* const* inputs, const char* want) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built or not this machine
    pestle_status_release(status);
    return true;
  }
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .verify = true};
  status = pestle_compile(context, module, device, &options, &plan);
  const char* name = pestle_op_info(c->op)->name;
  const char* dtype = pestle_dtype_info(c->dtype)->name;
  if (status) {
    print_error("%s %s on %s: %s\n", name, dtype, spec,
                pestle_status_message(status));
    pestle_status_release(status);
    return false;
  }
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_tensor_t in[3] = {0}, out = {0};
  size_t n = pestle_executable_input_count(exe);
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t io = pestle_executable_input(exe, i);
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  assert_ok(pestle_executable_run(exe, NULL, in, n, &out, 1, NULL));
  pestle_type_t type = pestle_type_make(pestle_dtype_from_dlpack(out.dtype),
                                        out.ndim, out.shape);
  int64_t at = 0;
  double worst = scalar_compare(&type, want, out.data, &at);
  bool ok = worst <= scalar_allowed(c);
  if (!ok) {
    size_t size = pestle_dtype_size(type.dtype);
    uint64_t w = 0, g = 0, a[3] = {0};
    memcpy(&w, want + (size_t)at * size, size);
    memcpy(&g, (char*)out.data + (size_t)at * size, size);
    for (size_t i = 0; i < n; ++i) {
      size_t s = pestle_dtype_size(pestle_executable_input(exe, i).dtype);
      memcpy(&a[i], (char*)inputs[i] + (size_t)at * s, s);
    }
    print_error(
        "%s %s on %s: %g ulp: (%llx, %llx, %llx) gives %llx, should "
        "be %llx\n",
        name, dtype, spec, worst, (unsigned long long)a[0],
        (unsigned long long)a[1], (unsigned long long)a[2],
        (unsigned long long)g, (unsigned long long)w);
  }
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  return ok;
}

static bool run_shape(const op_case_t* c, const scalar_shape_t* s) {
  pestle_module_t* module = scalar_module(context, c, s);
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_value_t* y = pestle_node_operand(f->body->block->last, 0);
  uint32_t n = pestle_op_info(c->op)->operands;
  void *inputs[3] = {0}, *want = scalar_data(y->type, 0);
  for (uint32_t i = 0; i < n; ++i) {
    pestle_type_t type = scalar_operand(c, s, i);
    inputs[i] = scalar_data(&type, i + 1);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         (const void* const*)inputs, &want));
  bool ok = true;
  for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); ++d) {
    ok = run_on(c, module, devices[d], inputs, want) && ok;
  }
  for (uint32_t i = 0; i < n; ++i)
    free(inputs[i]);
  free(want);
  pestle_module_release(module);
  return ok;
}

static void test_op(void** state) {
  pestle_op_t op = (pestle_op_t)(uintptr_t)*state;
  const pestle_op_info_t* info = pestle_op_info(op);
  bool ok = true;
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    op_case_t c = {op, (pestle_dtype_t)d};
    if (!pestle_dtype_is_stored(c.dtype) ||
        pestle_dtype_is(c.dtype, PESTLE_KIND_COMPLEX) ||
        !pestle_dtype_is(c.dtype, info->kinds)) {
      continue;
    }
    size_t count = sizeof(scalar_shapes) / sizeof(scalar_shapes[0]);
    // All shape classes on f32 and i32, the large one on the others.
    bool main_type = d == PESTLE_F32 || d == PESTLE_I32;
    for (size_t s = main_type ? 0 : count - 1; s < count; ++s) {
      ok = run_shape(&c, &scalar_shapes[s]) && ok;
    }
  }
  assert_true(ok);
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

int main(void) {
  struct CMUnitTest tests[PESTLE_SCALAR_COUNT];
  size_t n = 0;
  const char* only = getenv("PESTLE_TEST_ONLY");
  for (unsigned i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    const char* name = pestle_op_info((pestle_op_t)i)->name;
    if (only && strcmp(only, name)) continue;
    tests[n++] = (struct CMUnitTest){.name = name,
                                     .test_func = test_op,
                                     .initial_state = (void*)(uintptr_t)i};
  }
  return _cmocka_run_group_tests("scalar rows", tests, n, setup, teardown);
}
