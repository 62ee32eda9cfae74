// SPDX-License-Identifier: Apache-2.0
// bitcast_convert between all dtypes whose widths divide each other, alone and
// between other ops, through the whole compiler on each device, against the
// reference evaluator: bit for bit, signalling NaNs too, over all patterns of up
// to 16 bits and random ones of more.
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

static const char* const devices[] = {"ref", "llvm"};
static pestle_context_t* context;

// --- Data ---

// Any bits of |dtype|, each pattern of a narrow one in turn.
static uint64_t any_bits(pestle_dtype_t dtype, int64_t i, uint64_t* state) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  uint64_t bits = info->bits <= 16 ? (uint64_t)i : *state;
  if (info->bits < 64) bits &= (UINT64_C(1) << info->bits) - 1;
  if (pestle_dtype_is_sub_byte(dtype)) {
    bits = pestle_dtype_extend(dtype, (uint8_t)bits);
  }
  return bits;
}

static void* make_data(const pestle_type_t* type) {
  size_t n = pestle_type_bytes(type), size = pestle_dtype_size(type->dtype);
  char* data = aligned_alloc(64, (n + 127) / 64 * 64);
  uint64_t state = 88172645463325252u;
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t bits = any_bits(type->dtype, i, &state);
    memcpy(data + (size_t)i * size, &bits, size);
  }
  return data;
}

// --- Running ---

static bool run_on(pestle_module_t* module, const char* spec, void* input,
                   const void* want, const char* what) {
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
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_io_info_t io = pestle_executable_input(exe, 0);
  pestle_tensor_t out = {0};
  pestle_tensor_t in = {.data = input,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = io.rank,
                        .dtype = pestle_dtype_to_dlpack(io.dtype),
                        .shape = (int64_t*)(uintptr_t)io.dims};
  assert_ok(pestle_executable_run(exe, NULL, &in, 1, &out, 1, NULL));
  io = pestle_executable_output(exe, 0);
  pestle_type_t type = pestle_type_make(io.dtype, io.rank, io.dims);
  size_t size = pestle_dtype_size(type.dtype);
  int64_t wrong = -1;
  for (int64_t i = 0; i < pestle_type_count(&type) && wrong < 0; ++i) {
    uint64_t w = 0, g = 0;
    memcpy(&w, (const char*)want + (size_t)i * size, size);
    memcpy(&g, (char*)out.data + (size_t)i * size, size);
    if (g != w) wrong = i;
  }
  if (wrong >= 0) {
    uint64_t w = 0, g = 0;
    memcpy(&w, (const char*)want + (size_t)wrong * size, size);
    memcpy(&g, (char*)out.data + (size_t)wrong * size, size);
    print_error("%s on %s: element %lld is %llx, should be %llx\n", what, spec,
                (long long)wrong, (unsigned long long)g, (unsigned long long)w);
  }
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  return wrong < 0;
}

static bool run_module(pestle_module_t* module, const char* what) {
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_value_t* y = pestle_node_operand(f->body->block->last, 0);
  const pestle_type_t* type = f->body->block->arguments[0]->type;
  void *input = make_data(type), *want = make_data(y->type);
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         (const void* const*)&input, &want));
  bool ok = true;
  for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); ++d) {
    ok = run_on(module, devices[d], input, want, what) && ok;
  }
  free(input);
  free(want);
  return ok;
}

// --- All pairs ---

// |from| of [rows, (parts)] read as |to|, which has or loses the last axis.
static bool run_pair(pestle_dtype_t from, pestle_dtype_t to, int64_t rows) {
  int64_t a = pestle_dtype_info(from)->bits, b = pestle_dtype_info(to)->bits;
  pestle_type_t x = {from, 1, {rows}}, y = {to, 1, {rows}};
  if (a > b) y.dims[y.rank++] = a / b;
  if (a < b) x.dims[x.rank++] = b / a;
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_value_t* v;
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", &x, NULL, 1, &f));
  pestle_builder_t builder = pestle_builder_make(f);
  assert_ok(pestle_op_bitcast_convert(&builder, pestle_function_argument(f, 0),
                                      NULL, y, &v));
  assert_ok(pestle_op_return(&builder, &v, 1, NULL));
  char what[64];
  snprintf(what, sizeof(what), "%s to %s", pestle_dtype_info(from)->name,
           pestle_dtype_info(to)->name);
  bool ok = run_module(module, what);
  pestle_module_release(module);
  return ok;
}

static bool is_float(pestle_dtype_t d) {
  return pestle_dtype_is(d, PESTLE_KIND_FLOAT);
}

static bool is_real(pestle_dtype_t d) {
  return pestle_dtype_is_stored(d) && !pestle_dtype_is(d, PESTLE_KIND_COMPLEX);
}

static void test_pairs(void** state) {
  (void)state;
  bool ok = true;
  int pairs = 0;
  for (int from = PESTLE_I1; from < PESTLE_DTYPE_COUNT; ++from) {
    for (int to = PESTLE_I1; to < PESTLE_DTYPE_COUNT; ++to) {
      if (!is_real((pestle_dtype_t)from) || !is_real((pestle_dtype_t)to)) {
        continue;
      }
      int a = pestle_dtype_info((pestle_dtype_t)from)->bits;
      int b = pestle_dtype_info((pestle_dtype_t)to)->bits;
      if (from == to || (a > b ? a % b : b % a)) continue;
      // All patterns of the 16-bit floats once.
      bool all = a == 16 && to == PESTLE_U8 && is_float((pestle_dtype_t)from);
      int64_t rows = all ? 65536 : a == b ? 256 : 131;
      ok = run_pair((pestle_dtype_t)from, (pestle_dtype_t)to, rows) && ok;
      ++pairs;
    }
  }
  assert_true(pairs > 250);
  assert_true(ok);
}

// --- Between other ops ---

static void run_text(const char* text) {
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "t.mlir", &module));
  assert_ok(pestle_module_verify(module));
  assert_true(run_module(module, text));
  pestle_module_release(module);
}

static void test_fused(void** state) {
  (void)state;
  // Bytes of a float swapped, which is what one does it for.
  run_text(
      "func.func @main(%x: tensor<33x5xi32>) -> tensor<33x5xi32> {\n"
      "  %a = stablehlo.multiply %x, %x : tensor<33x5xi32>\n"
      "  %b = stablehlo.bitcast_convert %a : (tensor<33x5xi32>) -> "
      "tensor<33x5x4xui8>\n"
      "  %c = stablehlo.reverse %b, dims = [2] : tensor<33x5x4xui8>\n"
      "  %d = stablehlo.bitcast_convert %c : (tensor<33x5x4xui8>) -> "
      "tensor<33x5xi32>\n"
      "  %e = stablehlo.add %d, %x : tensor<33x5xi32>\n"
      "  return %e : tensor<33x5xi32>\n"
      "}\n");
  // The same bytes may serve as operand and result: each is written after all
  // that it is read for.
  run_text(
      "func.func @main(%x: tensor<70x8xi16>) -> tensor<8x140xi8> {\n"
      "  %a = stablehlo.add %x, %x : tensor<70x8xi16>\n"
      "  %b = stablehlo.bitcast_convert %a : (tensor<70x8xi16>) -> "
      "tensor<70x8x2xi8>\n"
      "  %c = stablehlo.transpose %b, dims = [1, 0, 2] : "
      "(tensor<70x8x2xi8>) -> tensor<8x70x2xi8>\n"
      "  %d = stablehlo.reshape %c : (tensor<8x70x2xi8>) -> "
      "tensor<8x140xi8>\n"
      "  %e = stablehlo.add %d, %d : tensor<8x140xi8>\n"
      "  return %e : tensor<8x140xi8>\n"
      "}\n");
  run_text(
      "func.func @main(%x: tensor<9x24xui4>) -> tensor<9x3xi32> {\n"
      "  %r = stablehlo.reshape %x : (tensor<9x24xui4>) -> "
      "tensor<9x3x8xui4>\n"
      "  %b = stablehlo.bitcast_convert %r : (tensor<9x3x8xui4>) -> "
      "tensor<9x3xi32>\n"
      "  return %b : tensor<9x3xi32>\n"
      "}\n");
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_fused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
