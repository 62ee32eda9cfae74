// SPDX-License-Identifier: Apache-2.0
// Inputs where callers have them: CPU plans read memory at the alignment of its
// elements, give the bits that they give for aligned memory, and copy only what
// is not even aligned to its element.
#include <stdlib.h>

#include "pestle/pestle.h"
#include "test.h"
#include "view.h"

enum { MOST = 64 * 96 * 8, SLACK = 128 };

typedef struct run_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t* exe;
  int64_t dims[3][PESTLE_MAX_RANK];
  char* memory[3];  // of inputs, 64-byte aligned
  char* result;
} run_t;

static bool begin(run_t* r, const char* device, const char* text) {
  // A scratch context: what frames keep is seen in its numbers.
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 1};
  pestle_module_t* module;
  pestle_plan_t* plan;
  memset(r, 0, sizeof(*r));
  assert_ok(pestle_context_create(&options, &r->context));
  pestle_status_t status =
      pestle_context_device(r->context, device, &r->device);
  if (status) {  // the plugin is not built here
    pestle_status_release(status);
    pestle_context_release(r->context);
    return false;
  }
  assert_ok(
      pestle_module_parse(r->context, text, strlen(text), "m.mlir", &module));
  assert_ok(pestle_compile(r->context, module, r->device, NULL, &plan));
  assert_ok(pestle_executable_create(r->context, plan, NULL, &r->exe));
  pestle_plan_release(plan);
  pestle_module_release(module);
  r->result = aligned_alloc(64, MOST);
  for (size_t i = 0; i < pestle_executable_input_count(r->exe); ++i) {
    r->memory[i] = aligned_alloc(64, MOST + SLACK);
  }
  return true;
}

static void end(run_t* r) {
  pestle_executable_release(r->exe);
  pestle_context_release(r->context);
  for (size_t i = 0; i < 3; ++i)
    free(r->memory[i]);
  free(r->result);
}

static size_t bytes_of(const pestle_io_info_t* info) {
  size_t size = pestle_dtype_info(info->dtype)->size;
  for (int32_t d = 0; d < info->rank; ++d)
    size *= (size_t)info->dims[d];
  assert_true(size <= MOST);
  return size;
}

// The same values wherever they lie.
static void fill(pestle_dtype_t dtype, char* data, size_t size) {
  size_t element = pestle_dtype_info(dtype)->size;
  for (size_t i = 0; i < size / element; ++i) {
    float f = (float)(i * 7 % 31) * 0.125f - 2.0f;
    double d = f;
    int8_t byte = (int8_t)(i * 5 % 13);
    const void* value = dtype == PESTLE_F32   ? (const void*)&f
                        : dtype == PESTLE_F64 ? (const void*)&d
                                              : (const void*)&byte;
    memcpy(data + i * element, value, element);
  }
}

// Runs with all inputs |offset| bytes past a multiple of 64; the bytes that the
// context holds afterwards.
static uint64_t run_at(run_t* r, size_t offset, char* out_result) {
  pestle_tensor_t inputs[3], output;
  size_t count = pestle_executable_input_count(r->exe);
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(r->exe, i);
    memcpy(r->dims[i], info.dims, (size_t)info.rank * sizeof(int64_t));
    fill(info.dtype, r->memory[i] + offset, bytes_of(&info));
    inputs[i] = test_view(r->memory[i] + offset, info.dtype, info.rank,
                          r->dims[i], NULL);
  }
  pestle_io_info_t info = pestle_executable_output(r->exe, 0);
  int64_t dims[PESTLE_MAX_RANK];
  memcpy(dims, info.dims, (size_t)info.rank * sizeof(int64_t));
  output = test_view(r->result, info.dtype, info.rank, dims, NULL);
  assert_ok(
      pestle_executable_run(r->exe, NULL, inputs, count, &output, 1, NULL));
  memcpy(out_result, r->result, bytes_of(&info));
  uint64_t active;
  assert_ok(pestle_device_memory_get(r->device, PESTLE_MEMORY_ACTIVE, &active));
  return active;
}

static const char* const modules[] = {
    // elementwise, with a tail
    "module @m { func.func @main(%x: tensor<37x19xf32>, %y: tensor<37x19xf32>) "
    "-> tensor<37x19xf32> { %0 = stablehlo.multiply %x, %y : "
    "tensor<37x19xf32>\n %1 = stablehlo.add %0, %x : tensor<37x19xf32>\n "
    "return %1 : tensor<37x19xf32> } }",
    "module @m { func.func @main(%x: tensor<512xf64>, %y: tensor<512xf64>) -> "
    "tensor<512xf64> { %0 = stablehlo.subtract %x, %y : tensor<512xf64>\n "
    "return %0 : tensor<512xf64> } }",
    "module @m { func.func @main(%x: tensor<4096xi8>, %y: tensor<4096xi8>) -> "
    "tensor<4096xi8> { %0 = stablehlo.add %x, %y : tensor<4096xi8>\n return "
    "%0 : tensor<4096xi8> } }",
    // a product, whose schedules pack, broadcast and prefetch
    "module @m { func.func @main(%a: tensor<64x48xf32>, %b: tensor<48x96xf32>) "
    "-> tensor<64x96xf32> { %0 = stablehlo.dot_general %a, %b, "
    "contracting_dims = [1] x [0] : (tensor<64x48xf32>, tensor<48x96xf32>) -> "
    "tensor<64x96xf32>\n return %0 : tensor<64x96xf32> } }",
    "module @m { func.func @main(%a: tensor<1x96xf32>, %b: tensor<96x96xf32>) "
    "-> tensor<1x96xf32> { %0 = stablehlo.dot_general %a, %b, "
    "contracting_dims = [1] x [0] : (tensor<1x96xf32>, tensor<96x96xf32>) -> "
    "tensor<1x96xf32>\n return %0 : tensor<1x96xf32> } }",
    // a reduction, a transposition, a slice that is a place in its source
    "module @m { func.func @main(%x: tensor<64x96xf32>) -> tensor<64xf32> { "
    "%c = stablehlo.constant dense<0.0> : tensor<f32>\n %0 = "
    "stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = "
    "[1] : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>\n return %0 : "
    "tensor<64xf32> } }",
    "module @m { func.func @main(%x: tensor<64x96xf32>) -> tensor<96x64xf32> { "
    "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x96xf32>) -> "
    "tensor<96x64xf32>\n return %0 : tensor<96x64xf32> } }",
    "module @m { func.func @main(%x: tensor<64x96xf32>) -> tensor<8x96xf32> { "
    "%0 = stablehlo.slice %x [16:24, 0:96] : (tensor<64x96xf32>) -> "
    "tensor<8x96xf32>\n return %0 : tensor<8x96xf32> } }",
    // an op that writes its kernel itself
    "module @m { func.func @main(%x: tensor<96xf32>) -> tensor<96xf32> { %0 = "
    "\"stablehlo.sort\"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %1 = "
    "stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n "
    "stablehlo.return %1 : tensor<i1> }) {dimension = 0 : i64, is_stable = "
    "true} : (tensor<96xf32>) -> tensor<96xf32>\n return %0 : tensor<96xf32> "
    "} }",
};

static void check_module(const char* device, const char* text) {
  run_t r;
  if (!begin(&r, device, text)) return;
  static char wanted[MOST], found[MOST];
  pestle_io_info_t info = pestle_executable_input(r.exe, 0);
  size_t element = pestle_dtype_info(info.dtype)->size;
  pestle_io_info_t output = pestle_executable_output(r.exe, 0);
  size_t size = bytes_of(&output);
  uint64_t held = run_at(&r, 0, wanted);
  for (size_t offset = element; offset < 64; offset += element) {
    uint64_t now = run_at(&r, offset, found);
    assert_memory_equal(wanted, found, size);
    assert_int_equal(now, held);  // no copy was made
  }
  if (element > 1) {
    assert_true(run_at(&r, 1, found) > held);
    assert_memory_equal(wanted, found, size);
  }
  end(&r);
}

static void test_bits_are_the_same_at_any_address(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); ++i) {
    check_module("ref", modules[i]);
    check_module("llvm", modules[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits_are_the_same_at_any_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
