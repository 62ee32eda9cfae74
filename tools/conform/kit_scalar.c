// SPDX-License-Identifier: Apache-2.0
// Scalar rows: those on real dtypes with scalar.h, on complex ones with
// complex.h.
#include "tools/conform/complex.h"
#include "tools/conform/kit.h"
#include "tools/conform/scalar.h"

// Runs with |inputs|, dense in the host's memory; the result is allocated.
static bool run(pestle_executable_t* executable, void* const* inputs,
                pestle_tensor_t* out) {
  pestle_tensor_t in[3] = {0};
  size_t n = pestle_executable_input_count(executable);
  *out = (pestle_tensor_t){0};
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t io = pestle_executable_input(executable, i);
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  pestle_status_t status =
      pestle_executable_run(executable, NULL, in, n, out, 1, NULL);
  if (!status) return true;
  kit_note(KIT_WRONG, "%s", pestle_status_message(status));
  pestle_status_release(status);
  return false;
}

static void finish(kit_state_t state, double worst, double limit,
                   const char* unit, int64_t at) {
  if (worst > limit) {
    kit_note(KIT_WRONG, "element %lld is %g %s off, allowed are %g",
             (long long)at, worst, unit, limit);
  } else if (state == KIT_PASS) {
    kit_note(KIT_PASS, "%s", "");
  }
}

static void run_shape(const op_case_t* c, const scalar_shape_t* s) {
  pestle_module_t* module = scalar_module(kit.strict, c, s);
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
  pestle_executable_t* executable;
  pestle_tensor_t out;
  kit_state_t state = kit_compile(module, "", &executable);
  if (executable) {
    if (run(executable, inputs, &out)) {
      int64_t at = 0;
      double worst = scalar_compare(y->type, want, out.data, &at);
      finish(state, worst, scalar_allowed(c), "ulp", at);
      pestle_tensor_release(executable, &out);
    }
    pestle_executable_release(executable);
  }
  for (uint32_t i = 0; i < n; ++i)
    free(inputs[i]);
  free(want);
  pestle_module_release(module);
}

static void run_complex(const complex_case_t* c, pestle_dtype_t dtype) {
  pestle_dtype_t part = pestle_dtype_part(dtype);
  pestle_module_t* module = complex_module(kit.strict, c, dtype);
  void* inputs[2] = {complex_data(part, c->reach, 1),
                     complex_data(part, c->reach, 2)};
  void* want = complex_data(part, 1, 3);
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(),
                                         pestle_module_entry(module),
                                         (const void* const*)inputs, &want));
  pestle_executable_t* executable;
  pestle_tensor_t out;
  kit_state_t state = kit_compile(module, "", &executable);
  if (executable) {
    if (run(executable, inputs, &out)) {
      size_t at = 0;
      pestle_dtype_t result = pestle_dtype_from_dlpack(out.dtype);
      if (result == PESTLE_I1) {
        bool same = !memcmp(want, out.data, COMPLEX_COUNT);
        finish(state, same ? 0 : 1, 0, "truth values", 0);
      } else {
        double worst = complex_distance(result, want, out.data, &at);
        finish(state, worst, c->steps, "roundoffs", (int64_t)at);
      }
      pestle_tensor_release(executable, &out);
    }
    pestle_executable_release(executable);
  }
  free(inputs[0]);
  free(inputs[1]);
  free(want);
  pestle_module_release(module);
}

void kit_run_scalar(pestle_op_t op, pestle_dtype_t dtype) {
  size_t last = sizeof(scalar_shapes) / sizeof(scalar_shapes[0]) - 1;
  op_case_t c = {op, dtype};
  if (!pestle_dtype_is_stored(dtype)) return;
  if (!pestle_dtype_is(dtype, pestle_op_info(op)->kinds)) return;
  bool complex = pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
  size_t i = 0, count = sizeof(complex_cases) / sizeof(complex_cases[0]);
  while (complex && i < count && complex_cases[i].op != op)
    ++i;
  // What only moves complex numbers is no case of arithmetic.
  if (complex && i < count) {
    run_complex(&complex_cases[i], dtype);
    return;
  }
  run_shape(&c, &scalar_shapes[0]);
  run_shape(&c, &scalar_shapes[last]);
}
