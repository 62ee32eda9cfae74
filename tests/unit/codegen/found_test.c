// SPDX-License-Identifier: Apache-2.0
// Defects that random graphs (tests/random) found, each as small as `pestle
// reduce` or a look made it: compiled with a round trip through text and bytes
// after every pass, and run on each device against ir/ref; with what simplifies
// and without it, which hides defects of code generation.
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

enum { MAX_ARRAYS = 16 };

typedef struct found_t {
  const char* name;
  const char* text;
} found_t;

// clang-format off
static const found_t found[] = {
    {"a map behind a contraction's reshape",
     "func.func @main(%x: tensor<4x1xf32>, %y: tensor<1x4xf32>) -> tensor<2x8xf32> {"
     "  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>"
     "  %1 = stablehlo.reshape %0 : (tensor<4x4xf32>) -> tensor<2x8xf32>"
     "  %2 = \"stablehlo.map\"(%1) <{dimensions = array<i64: 0, 1>}> ({"
     "  ^bb0(%a: tensor<f32>):"
     "    %3 = stablehlo.negate %a : tensor<f32>"
     "    stablehlo.return %3 : tensor<f32>"
     "  }) : (tensor<2x8xf32>) -> tensor<2x8xf32>"
     "  return %2 : tensor<2x8xf32> }"},
    {"a map of broadcasts",
     "func.func @main(%x: tensor<4xf32>) -> tensor<3x4xf32> {"
     "  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>"
     "  %1 = \"stablehlo.map\"(%0) <{dimensions = array<i64: 0, 1>}> ({"
     "  ^bb0(%a: tensor<f32>):"
     "    %2 = stablehlo.negate %a : tensor<f32>"
     "    stablehlo.return %2 : tensor<f32>"
     "  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>"
     "  return %1 : tensor<3x4xf32> }"},
    {"a bitcast to parts of a broadcast",
     "func.func @main(%x: tensor<5xi32>) -> tensor<3x5x4xi8> {"
     "  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<5xi32>) -> tensor<3x5xi32>"
     "  %1 = stablehlo.bitcast_convert %0 : (tensor<3x5xi32>) -> tensor<3x5x4xi8>"
     "  return %1 : tensor<3x5x4xi8> }"},
    {"complex zeros beside a constant",
     "func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<2x3xcomplex<f64>>) {"
     "  %0 = stablehlo.constant dense<[5, 6, 7, 8]> : tensor<4xi32>"
     "  %1 = stablehlo.optimization_barrier %0 : tensor<4xi32>"
     "  %2 = stablehlo.add %1, %x : tensor<4xi32>"
     "  %3 = stablehlo.iota dim = 1 : tensor<2x3xcomplex<f64>>"
     "  %4 = stablehlo.subtract %3, %3 : tensor<2x3xcomplex<f64>>"
     "  return %2, %4 : tensor<4xi32>, tensor<2x3xcomplex<f64>> }"},
    {"batch norm behind a transpose that moves down",
     "func.func @main(%x: tensor<2x6x5x3xf32>, %w: tensor<4x6x1x1xf32>, %p: tensor<4xf32>) -> tensor<2x4x5x3xf32> {"
     "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x5x3xf32>, tensor<4x6x1x1xf32>) -> tensor<2x4x5x3xf32>"
     "  %1 = stablehlo.abs %p : tensor<4xf32>"
     "  %2 = \"stablehlo.batch_norm_inference\"(%0, %p, %p, %p, %1) <{epsilon = 0.125 : f32, feature_index = 1 : i64}> : "
     "(tensor<2x4x5x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x5x3xf32>"
     "  return %2 : tensor<2x4x5x3xf32> }"},
    {"a barrier of constants, one read and one returned",
     "func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {"
     "  %0 = stablehlo.constant dense<[5, 6, 7, 8]> : tensor<4xi32>"
     "  %1 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>"
     "  %2:2 = stablehlo.optimization_barrier %0, %1 : tensor<4xi32>, tensor<4xi32>"
     "  %3 = stablehlo.constant dense<[9, 8, 7, 6]> : tensor<4xi32>"
     "  %4 = stablehlo.add %2#0, %x : tensor<4xi32>"
     "  return %3, %2#1, %4 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32> }"},
    {"four bits beside a float of eight",
     "func.func @main(%x: tensor<16xi4>, %y: tensor<16xui4>, %z: tensor<16xf8E5M2FNUZ>) -> "
     "(tensor<16xi4>, tensor<16xi4>, tensor<16xi4>, tensor<16xui4>, tensor<16xui4>, tensor<16xui4>) {"
     "  %0 = stablehlo.convert %z : (tensor<16xf8E5M2FNUZ>) -> tensor<16xi4>"
     "  %1 = stablehlo.count_leading_zeros %x : tensor<16xi4>"
     "  %2 = stablehlo.popcnt %x : tensor<16xi4>"
     "  %3 = stablehlo.shift_right_logical %x, %0 : tensor<16xi4>"
     "  %4 = stablehlo.convert %z : (tensor<16xf8E5M2FNUZ>) -> tensor<16xui4>"
     "  %5 = stablehlo.shift_right_arithmetic %y, %4 : tensor<16xui4>"
     "  %6 = stablehlo.count_leading_zeros %y : tensor<16xui4>"
     "  %7 = stablehlo.shift_left %y, %4 : tensor<16xui4>"
     "  return %1, %2, %3, %5, %6, %7 : tensor<16xi4>, tensor<16xi4>, tensor<16xi4>, tensor<16xui4>, tensor<16xui4>, tensor<16xui4> }"},
    {"a group with an empty result",
     "func.func @main(%x: tensor<4x2xi32>, %y: tensor<0x9xi32>) -> (tensor<0x9xi32>, tensor<4x2xi32>) {"
     "  %0:2 = \"pestle.fusion\"(%x, %y) ({"
     "  ^bb0(%a: tensor<4x2xi32>, %b: tensor<0x9xi32>):"
     "    %1 = stablehlo.negate %b : tensor<0x9xi32>"
     "    %2 = stablehlo.negate %a : tensor<4x2xi32>"
     "    stablehlo.return %1, %2 : tensor<0x9xi32>, tensor<4x2xi32>"
     "  }) : (tensor<4x2xi32>, tensor<0x9xi32>) -> (tensor<0x9xi32>, tensor<4x2xi32>)"
     "  return %0#0, %0#1 : tensor<0x9xi32>, tensor<4x2xi32> }"},
    {"a padded convolution without features",
     "func.func @main(%x: tensor<2x0x6xf32>, %w: tensor<3x0x3xf32>) -> tensor<2x3x6xf32> {"
     "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]]}"
     "       {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x0x6xf32>, tensor<3x0x3xf32>) -> tensor<2x3x6xf32>"
     "  return %0 : tensor<2x3x6xf32> }"},
    {"a convolution of padding alone",
     "func.func @main(%x: tensor<1x2x0xf32>, %w: tensor<2x3x2xf32>) -> tensor<1x3x1xf32> {"
     "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[i, o, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]]}"
     "       {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x0xf32>, tensor<2x3x2xf32>) -> tensor<1x3x1xf32>"
     "  return %0 : tensor<1x3x1xf32> }"},
    {"a grouped convolution of padding alone",
     "func.func @main(%x: tensor<9x6x0xf16>, %w: tensor<2x1x6xf16>) -> tensor<9x6x1xf16> {"
     "  %0 = stablehlo.bitcast_convert %x : (tensor<9x6x0xf16>) -> tensor<9x6x0xf16>"
     "  %1 = stablehlo.convolution(%0, %w) dim_numbers = [b, f, 0]x[0, i, o]->[b, f, 0], window = {stride = [2], pad = [[1, 1]]}"
     "       {batch_group_count = 1 : i64, feature_group_count = 6 : i64} : (tensor<9x6x0xf16>, tensor<2x1x6xf16>) -> tensor<9x6x1xf16>"
     "  return %1 : tensor<9x6x1xf16> }"},
    {"padding of nothing along rows and along columns",
     "func.func @main(%x: tensor<0x40xf32>, %y: tensor<40x0xf32>, %v: tensor<f32>) -> (tensor<4x40xf32>, tensor<40x4xf32>) {"
     "  %0 = stablehlo.pad %x, %v, low = [2, 0], high = [2, 0], interior = [1, 0] : (tensor<0x40xf32>, tensor<f32>) -> tensor<4x40xf32>"
     "  %1 = stablehlo.pad %y, %v, low = [0, 2], high = [0, 2], interior = [0, 0] : (tensor<40x0xf32>, tensor<f32>) -> tensor<40x4xf32>"
     "  %2 = stablehlo.exponential %0 : tensor<4x40xf32>"
     "  return %2, %1 : tensor<4x40xf32>, tensor<40x4xf32> }"},
    {"windows of padding alone",
     "func.func @main(%x: tensor<2x0xf32>, %v: tensor<f32>) -> tensor<2x33xf32> {"
     "  %0 = \"stablehlo.reduce_window\"(%x, %v) <{window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [20, 15]]> : tensor<2x2xi64>}> ({"
     "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):"
     "    %1 = stablehlo.maximum %a, %b : tensor<f32>"
     "    stablehlo.return %1 : tensor<f32>"
     "  }) : (tensor<2x0xf32>, tensor<f32>) -> tensor<2x33xf32>"
     "  return %0 : tensor<2x33xf32> }"},
    {"an update of nothing, and nothing gathered",
     "func.func @main(%x: tensor<4x0xf32>, %y: tensor<4x8xf32>, %i: tensor<i32>) -> (tensor<4x8xf32>, tensor<4x0xf32>) {"
     "  %0 = stablehlo.dynamic_update_slice %y, %x, %i, %i : (tensor<4x8xf32>, tensor<4x0xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>"
     "  %1 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 0] : (tensor<4x0xf32>, tensor<i32>, tensor<i32>) -> tensor<4x0xf32>"
     "  return %0, %1 : tensor<4x8xf32>, tensor<4x0xf32> }"},
    {"empty constants",
     "func.func @main() -> tensor<5x0xi8> {"
     "  %0 = stablehlo.constant dense<> : tensor<5x0xi8>"
     "  %1 = stablehlo.add %0, %0 : tensor<5x0xi8>"
     "  return %1 : tensor<5x0xi8> }"},
    {"a path through a group that reaches further",
     "func.func @main(%a: tensor<3xf32>, %b: tensor<3xf16>, %c: tensor<1x3x1xi8>) -> "
     "(tensor<3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3x1x1xi8>, tensor<3xf32>, tensor<3xf16>) {"
     "  %0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xi8>"
     "  %1 = stablehlo.convert %0 : (tensor<3xi8>) -> tensor<3xf16>"
     "  %2 = stablehlo.atan2 %b, %1 : tensor<3xf16>"
     "  %3 = stablehlo.convert %b : (tensor<3xf16>) -> tensor<3xf32>"
     "  %4 = stablehlo.remainder %3, %a : tensor<3xf32>"
     "  %5 = stablehlo.dot_general %0, %c, batching_dims = [0] x [1], contracting_dims = [] x [] : (tensor<3xi8>, tensor<1x3x1xi8>) -> tensor<3x1x1xi8>"
     "  %6 = stablehlo.log_plus_one %3 : tensor<3xf32>"
     "  %7 = stablehlo.cosine %1 : tensor<3xf16>"
     "  return %7, %6, %4, %5, %3, %2 : tensor<3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3x1x1xi8>, tensor<3xf32>, tensor<3xf16> }"},
    {"an attention whose result is read twice on the way",
     "func.func @main(%q: tensor<2x3x5xf32>, %k: tensor<2x3x5xf32>, %v: tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>) {"
     "  %0 = \"pestle.attention\"(%q, %k, %v) <{scale = 0.5 : f64}> : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>"
     "  %1 = stablehlo.logistic %0 : tensor<2x3x5xf32>"
     "  %2 = \"pestle.gelu\"(%1) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>"
     "  return %0, %2 : tensor<2x3x5xf32>, tensor<2x3x5xf32> }"},
    {"abs of a negated number without a sign",
     "func.func @main(%x: tensor<5xui32>) -> tensor<5xui32> {"
     "  %0 = stablehlo.negate %x : tensor<5xui32>"
     "  %1 = stablehlo.abs %0 : tensor<5xui32>"
     "  return %1 : tensor<5xui32> }"},
    {"a bound that a contraction makes",
     "func.func @main(%a: tensor<1x4xf32>, %b: tensor<4x1xf32>, %x: tensor<2x3xf32>, %c: tensor<f32>) -> tensor<2x3xf32> {"
     "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>"
     "  %1 = stablehlo.reshape %0 : (tensor<1x1xf32>) -> tensor<f32>"
     "  %2 = stablehlo.clamp %1, %x, %c : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>"
     "  return %2 : tensor<2x3xf32> }"},
    {"a contraction of flags",
     "func.func @main(%a: tensor<20x9xi32>, %b: tensor<9x30xi32>) -> tensor<20x30xi1> {"
     "  %c = stablehlo.constant dense<5> : tensor<20x9xi32>"
     "  %d = stablehlo.constant dense<3> : tensor<9x30xi32>"
     "  %p = stablehlo.compare GE, %a, %c : (tensor<20x9xi32>, tensor<20x9xi32>) -> tensor<20x9xi1>"
     "  %q = stablehlo.compare EQ, %b, %d : (tensor<9x30xi32>, tensor<9x30xi32>) -> tensor<9x30xi1>"
     "  %0 = stablehlo.dot_general %p, %q, contracting_dims = [1] x [0] : (tensor<20x9xi1>, tensor<9x30xi1>) -> tensor<20x30xi1>"
     "  return %0 : tensor<20x30xi1> }"},
    {"a root far along the imaginary axis",
     "func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {"
     "  %c = stablehlo.constant dense<0xFF800000> : tensor<16xf32>"
     "  %z = stablehlo.complex %x, %c : tensor<16xcomplex<f32>>"
     "  %0 = stablehlo.sqrt %z : tensor<16xcomplex<f32>>"
     "  %1 = stablehlo.real %0 : (tensor<16xcomplex<f32>>) -> tensor<16xf32>"
     "  %2 = stablehlo.imag %0 : (tensor<16xcomplex<f32>>) -> tensor<16xf32>"
     "  return %1, %2 : tensor<16xf32>, tensor<16xf32> }"},
    {"a convolution of flags",
     "func.func @main(%a: tensor<2x3x9xi32>, %b: tensor<4x3x3xi32>) -> tensor<2x4x9xi1> {"
     "  %c = stablehlo.constant dense<6> : tensor<2x3x9xi32>"
     "  %d = stablehlo.constant dense<3> : tensor<4x3x3xi32>"
     "  %p = stablehlo.compare GE, %a, %c : (tensor<2x3x9xi32>, tensor<2x3x9xi32>) -> tensor<2x3x9xi1>"
     "  %q = stablehlo.compare GE, %b, %d : (tensor<4x3x3xi32>, tensor<4x3x3xi32>) -> tensor<4x3x3xi1>"
     "  %0 = stablehlo.convolution(%p, %q) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x9xi1>, tensor<4x3x3xi1>) -> tensor<2x4x9xi1>"
     "  return %0 : tensor<2x4x9xi1> }"},
};
// clang-format on
enum { FOUND = sizeof(found) / sizeof(found[0]) };

static pestle_context_t* context;

// Numbers from -8 on that every dtype has.
static void* make_array(const pestle_type_t* type, int64_t salt) {
  size_t size = pestle_dtype_size(type->dtype);
  char* data = calloc(pestle_type_bytes(type) + 64, 1);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    int64_t value = (i * 5 + salt * 3) % 16 - 8;
    uint64_t bits[2] = {(uint64_t)value, 0};  // complex numbers have 16 bytes
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits[0] = pestle_float_encode(type->dtype, (double)value / 4);
    } else if (pestle_dtype_is(type->dtype, PESTLE_KIND_UNSIGNED)) {
      bits[0] = (uint64_t)(value + 8);
    } else if (type->dtype == PESTLE_I1) {
      bits[0] &= 1;
    }
    memcpy(data + (size_t)i * size, bits, size);
  }
  return data;
}

static void compare(const found_t* f, const char* device,
                    const pestle_type_t* type, const char* want,
                    const char* got) {
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t w[2] = {0}, g[2] = {0};  // complex numbers have 16 bytes
    memcpy(w, want + (size_t)i * size, size);
    memcpy(g, got + (size_t)i * size, size);
    if (w[0] == g[0] && w[1] == g[1]) continue;
    double x = pestle_float_decode(type->dtype, w[0]);
    double y = pestle_float_decode(type->dtype, g[0]);
    // Transcendentals are within 2 ulp, f16 within one: a thousandth at most.
    bool near =
        pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT) &&
        ((isnan(x) && isnan(y)) || fabs(x - y) <= 1e-3 * fmax(1, fabs(x)));
    if (!near) {
      fail_msg("%s on %s: [%lld] is %llx %llx, should be %llx %llx", f->name,
               device, (long long)i, (unsigned long long)g[0],
               (unsigned long long)g[1], (unsigned long long)w[0],
               (unsigned long long)w[1]);
    }
  }
}

static void run_on(const found_t* f, pestle_module_t* module, const char* spec,
                   const char* skip_passes, void* const* inputs,
                   void* const* want) {
  pestle_device_t* device;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built, or not this machine
    pestle_status_release(status);
    return;
  }
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .skip_passes = skip_passes,
                                      .no_cache = true,
                                      .verify = true,
                                      .round_trip = true};
  status = pestle_compile(context, module, device, &options, &plan);
  if (status) print_message("%s on %s\n", f->name, spec);
  assert_ok(status);
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_tensor_t in[MAX_ARRAYS] = {0}, out[MAX_ARRAYS] = {0};
  size_t n = pestle_executable_input_count(exe);
  size_t m = pestle_executable_output_count(exe);
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t io = pestle_executable_input(exe, i);
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  assert_ok(pestle_executable_run(exe, NULL, in, n, out, m, NULL));
  for (size_t i = 0; i < m; ++i) {
    pestle_type_t type = pestle_type_make(
        pestle_dtype_from_dlpack(out[i].dtype), out[i].ndim, out[i].shape);
    compare(f, spec, &type, want[i], out[i].data);
    pestle_tensor_release(exe, &out[i]);
  }
  pestle_executable_release(exe);
  pestle_plan_release(plan);
}

static void test_found(void** state) {
  const found_t* f = *state;
  pestle_module_t* module;
  void *inputs[MAX_ARRAYS] = {0}, *want[MAX_ARRAYS] = {0};
  assert_ok(
      pestle_module_parse(context, f->text, strlen(f->text), f->name, &module));
  pestle_function_t* entry = pestle_module_entry(module);
  const pestle_node_t* end = entry->body->block->last;
  for (size_t i = 0; i < pestle_function_argument_count(entry); ++i) {
    inputs[i] =
        make_array(pestle_function_argument(entry, i)->type, (int64_t)i);
  }
  for (uint32_t i = 0; i < end->operand_count; ++i)
    want[i] = make_array(pestle_node_operand(end, i)->type, 0);
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), entry,
                                         (const void* const*)inputs, want));
  const char* const skipped[] = {NULL, "canonicalise,clean_up"};
  for (int i = 0; i < 2; ++i) {
    run_on(f, module, "llvm", skipped[i], inputs, want);
    run_on(f, module, "ref", skipped[i], inputs, want);
  }
  for (int i = 0; i < MAX_ARRAYS; ++i) {
    free(inputs[i]);
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

int main(void) {
  struct CMUnitTest tests[FOUND];
  for (size_t i = 0; i < FOUND; ++i) {
    tests[i] =
        (struct CMUnitTest){.name = found[i].name,
                            .test_func = test_found,
                            .initial_state = (void*)(uintptr_t)&found[i]};
  }
  return _cmocka_run_group_tests("found", tests, FOUND, setup, teardown);
}
