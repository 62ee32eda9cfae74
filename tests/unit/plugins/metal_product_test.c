// SPDX-License-Identifier: Apache-2.0
// Products by Metal's matrix units: graphs lowered, scheduled by the description
// of an Apple GPU, printed, compiled as C++ and run here, against the interpreter
// of the same Kernel IR bit by bit and against the evaluator of the graph.
// Values are small whole numbers, so that every order of sums is exact.
#include "base/half.h"
#include "codegen/emit/emit_flat.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/shared_tile/shared_tile.h"
#include "gpu_kernel.h"
#include "gpu_shim.h"
#include "ir/ref/ref.h"
#include "plugins/metal/probe.h"
#include "unit/codegen/nest_test.h"

#define DOT(name, a, b, dims, y)                                   \
  {name, "a: tensor<" a ">, b: tensor<" b ">",                     \
   "      %y = stablehlo.dot_general %a, %b, " dims ": (tensor<" a \
   ">, tensor<" b ">) -> tensor<" y ">",                           \
   "%y : tensor<" y ">", 0}
#define NN "contracting_dims = [1] x [0] "
#define NT "contracting_dims = [1] x [1] "
#define TN "contracting_dims = [0] x [0] "
#define BATCHED "batching_dims = [0] x [0], contracting_dims = [2] x [1] "

static const case_t products[] = {
    DOT("f32", "64x64xf32", "64x64xf32", NN, "64x64xf32"),
    DOT("f16_rest", "37x40xf16", "40x50xf16", NN, "37x50xf16"),
    DOT("bf16_nt", "70x33xbf16", "41x33xbf16", NT, "70x41xf32"),
    DOT("f32_tn", "24x35xf32", "24x9xf32", TN, "35x9xf32"),
    DOT("f32_odd_nt", "19x23xf32", "21x23xf32", NT, "19x21xf32"),
    DOT("f16_row", "1x64xf16", "64x40xf16", NN, "1x40xf32"),
    DOT("f32_column", "40x17xf32", "17x1xf32", NN, "40x1xf32"),
    DOT("f32_one_tap", "9x1xf32", "1x10xf32", NN, "9x10xf32"),
    DOT("f32_batches", "3x9x20xf32", "3x20x18xf32", BATCHED, "3x9x18xf32"),
    DOT("bf16_batches", "2x17x16xbf16", "2x16x8xbf16", BATCHED, "2x17x8xbf16"),
    {"epilogue",
     "a: tensor<20x32xf16>, b: tensor<32x41xf16>, c: tensor<41xf16>",
     "      %d = stablehlo.dot_general %a, %b, " NN
     ": (tensor<20x32xf16>, tensor<32x41xf16>) -> tensor<20x41xf16>\n"
     "      %v = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<41xf16>) "
     "-> tensor<20x41xf16>\n"
     "      %e = stablehlo.add %d, %v : tensor<20x41xf16>\n"
     "      %z = stablehlo.constant dense<0.0> : tensor<20x41xf16>\n"
     "      %y = stablehlo.maximum %e, %z : tensor<20x41xf16>",
     "%y : tensor<20x41xf16>", 0},
    {"narrow_and_wide", "a: tensor<16x24xbf16>, b: tensor<24x20xf32>",
     "      %w = stablehlo.convert %a : (tensor<16x24xbf16>) -> "
     "tensor<16x24xf32>\n"
     "      %y = stablehlo.dot_general %w, %b, " NN
     ": (tensor<16x24xf32>, tensor<24x20xf32>) -> tensor<16x20xf32>",
     "%y : tensor<16x20xf32>", 0},
    {"conv", "x: tensor<1x5x6x9xf32>, w: tensor<3x3x9x12xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x5x6x9xf32>, "
     "tensor<3x3x9x12xf32>) -> tensor<1x5x6x12xf32>",
     "%y : tensor<1x5x6x12xf32>", 0},
};

enum { COUNT = sizeof products / sizeof *products };

static const pestle_shared_tile_t tiles[] = {
    {8, 8, 8, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
    {32, 32, 16, 16, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {16, 32, 32, 8, 32, 2, PESTLE_UNITS_MMA8, false, 1},
};

// --- Data ---

static void set(pestle_dtype_t dtype, void* data, size_t i, double v) {
  uint64_t bits = pestle_float_encode(dtype, v);
  size_t size = pestle_dtype_size(dtype);
  memcpy((char*)data + i * size, &bits, size);
}

// -2 to 2: a sum of 100 products is a whole number of bf16.
static void fill_whole(const char* name, pestle_dtype_t dtype, void* data,
                       size_t count) {
  uint32_t seed = (uint32_t)count;
  for (; *name; ++name)
    seed = seed * 31 + (unsigned char)*name;
  for (size_t i = 0; i < count; ++i)
    set(dtype, data, i, (int)(test_random(&seed) % 5) - 2);
}

// --- One nest on the stand-in ---

static bool says(const pestle_kir_t* k, const char* text) {
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = gpu_cpu};
  pestle_blob_t printed;
  assert_ok(
      gpu->target->print(gpu->self, k, &options, PESTLE_TEXT_SOURCE, &printed));
  char* copy = calloc(1, printed.size + 1);
  memcpy(copy, printed.data, printed.size);
  bool found = strstr(copy, text);
  free(copy);
  host_free(NULL, printed.data, printed.size);
  return found;
}

// What the evaluator makes of the inputs that buffer |b| of the kernel was
// filled with.
static void check_results(const lowering_t* l, const pestle_nest_t* nest,
                          const pestle_emitted_t* args, const buffers_t* got) {
  void* inputs[8] = {NULL};
  const pestle_type_t* type = l->fusion->results[0].type;
  void* want = calloc(1, pestle_type_bytes(type) + 64);
  int64_t output = -1;
  for (uint32_t i = 0; i < args->count; ++i) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[args->tensors[i]];
    if (t->kind == PESTLE_TENSOR_OUTPUT) output = i;
    if (t->kind == PESTLE_TENSOR_INPUT) inputs[t->slot] = got->slot[i];
  }
  assert_true(output >= 0);
  assert_ok(pestle_ref_evaluate_node(pestle_allocator_system(), l->fusion,
                                     (const void* const*)inputs, &want));
  assert_memory_equal(want, got->slot[output], pestle_type_bytes(type));
  free(want);
}

static void run_nest(const lowering_t* l, pestle_nest_t* nest, bool units) {
  pestle_kir_builder_t flat, legal;
  pestle_emitted_t args;
  buffers_t want, got;
  pestle_kir_init(pestle_allocator_system(), "product", "", &flat);
  assert_ok(pestle_emit_flat(nest, PESTLE_NUMERICS_DEFAULT, &flat, &args));
  assert_ok(pestle_kir_verify(&flat.view));
  assert_ok(
      pestle_kir_legalise(&flat.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  assert_int_equal(says(&legal.view, "simdgroup_multiply_accumulate"), units);
  buffers_init(&want, &legal.view, fill_whole);
  buffers_init(&got, &legal.view, fill_whole);
  run_on_ref(&legal.view, &want, NULL);
  run_on_gpu(&legal.view, &got, NULL);
  assert_same(&legal.view, &want, &got, NULL);
  check_results(l, nest, &args, &got);
  buffers_deinit(&want);
  buffers_deinit(&got);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&flat);
}

// All that is no fold in its readers; the fold.
static uint32_t prepare(pestle_nest_t* nest) {
  bool inlined[64] = {false}, any = false;
  uint32_t last = (uint32_t)nest->stages.size - 1, fold = last;
  for (uint32_t s = 0; s < last && s < 64; ++s) {
    inlined[s] = !pestle_nest_stage(nest, s)->is_reduction;
    any = any || inlined[s];
    if (!inlined[s]) fold = s;
  }
  if (any) assert_ok(pestle_schedule_inline(nest, inlined));
  return fold;
}

static pestle_status_t apply_tile(pestle_nest_t* nest, uint32_t fold,
                                  const pestle_shared_tile_t* t) {
  int64_t ints[] = {t->m, t->n, t->k, t->r, t->c, t->slots, t->units, t->async};
  return apply_template(nest, "shared_tile", fold, ints, 8);
}

static void run_tile(const case_t* c, const pestle_shared_tile_t* tile) {
  lowering_t l;
  pestle_nest_t nest;
  lowering_open(c, &l);
  assert_int_equal(l.group_count, 1);
  lowering_nest(&l, 0, 0, &nest);
  uint32_t fold = prepare(&nest);
  assert_ok(apply_tile(&nest, fold, tile));
  run_nest(&l, &nest, true);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

// Each product by one of the tiles: compiling the text takes a second.
static void test_tiles(void** state) {
  (void)state;
  for (size_t i = 0; i < COUNT; ++i)
    run_tile(&products[i], &tiles[i % (sizeof tiles / sizeof *tiles)]);
}

// --- What is chosen ---

static void choose(const case_t* c, const char* cpu, bool reassociate,
                   bool units) {
  lowering_t l;
  pestle_nest_t nest;
  gpu_cpu = cpu;
  caps.struct_size = sizeof caps;
  assert_ok(gpu->target->describe(gpu->self, cpu, &caps));
  lowering_open(c, &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(pestle_sketch(&nest, &caps, reassociate));
  run_nest(&l, &nest, units);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

static void test_choice(void** state) {
  static const case_t even =
      DOT("even", "96x80xf16", "80x72xf16", NN, "96x72xf32");
  (void)state;
  choose(&even, "apple", true, true);
  // Before the M1 there were none; sums in order are no unit's.
  choose(&even, "apple6", true, false);
  choose(&even, "apple", false, false);
  choose(&even, NULL, true, true);
}

static void test_unknown(void** state) {
  pestle_target_caps_t other = {.struct_size = sizeof other};
  (void)state;
  assert_error(gpu->target->describe(gpu->self, "apple0", &other), UNSUPPORTED,
               "metal knows no GPU 'apple0'");
}

// A kernel with units is refused for a GPU without.
static void test_refused(void** state) {
  lowering_t l;
  pestle_nest_t nest;
  pestle_kir_builder_t flat, legal;
  pestle_emitted_t args;
  (void)state;
  lowering_open(&products[0], &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(apply_tile(&nest, prepare(&nest), &tiles[0]));
  pestle_kir_init(pestle_allocator_system(), "product", "", &flat);
  assert_ok(pestle_emit_flat(&nest, PESTLE_NUMERICS_DEFAULT, &flat, &args));
  pestle_target_caps_t old = {.struct_size = sizeof old};
  assert_ok(gpu->target->describe(gpu->self, "apple6", &old));
  assert_error(
      pestle_kir_legalise(&flat.view, &old, PESTLE_NUMERICS_DEFAULT, &legal),
      UNSUPPORTED, "has no mma");
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = "apple6"};
  pestle_blob_t blob;
  assert_error(gpu->target->compile(gpu->self, &flat.view, &options, &blob),
               UNSUPPORTED, "the device has no such units");
  pestle_kir_deinit(&flat);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

// --- What a GPU is asked before ---

// The probe on the stand-in, whose text has |from| replaced by |to|.
static bool probe_agrees(const char* from, const char* to) {
  char text[4096], changed[4200];
  pestle_blob_t blob;
  pestle_loaded_t* loaded;
  size_t size = pestle_metal_probe_text(text, sizeof text);
  assert_in_range(size, 100, sizeof text);
  const char* at = strstr(text, from);
  assert_non_null(at);
  snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
           at + strlen(from));
  pestle_c_printer_artifact_t a = {.target = "metal",
                                   .name = PESTLE_METAL_PROBE_NAME,
                                   .group = {1, 1, 1},
                                   .lane = {PESTLE_METAL_PROBE_LANES, 1, 1},
                                   .arg_count = 1,
                                   .text = changed,
                                   .text_size = strlen(changed)};
  assert_ok(pestle_c_printer_artifact_pack(&test_host, &a, &blob));
  assert_ok(gpu->device->load(gpu->self, 0, blob.data, blob.size, &loaded));
  host_free(NULL, blob.data, blob.size);
  float x[PESTLE_METAL_PROBE_FLOATS];
  void* slots[1] = {x};
  pestle_metal_probe_fill(x);
  assert_false(pestle_metal_probe_agrees(x));
  pestle_launch_t launch = {sizeof launch, loaded, slots, 1, 0, NULL};
  assert_ok(gpu->device->launch(gpu->self, 0, NULL, &launch));
  gpu->device->unload(gpu->self, loaded);
  return pestle_metal_probe_agrees(x);
}

static void test_probe(void** state) {
  (void)state;
  assert_true(probe_agrees("", ""));
  // Other layouts: rows by columns, pairs apart, a lane off.
  assert_false(probe_agrees("(lane / 16) * 4 + (lane / 2) % 4", "lane / 4"));
  assert_false(probe_agrees("((lane / 8) % 2) * 4", "((lane / 8) % 2)"));
  assert_false(probe_agrees("int lane = int(lane_id.x)",
                            "int lane = int(lane_id.x) ^ 1"));
  // What multiplies, but does not add.
  assert_false(probe_agrees("float(at), float(at + 1)", "0.0f, 0.0f"));
}

// What Metal's compiler would refuse and C++ takes.
static void test_lint(void** state) {
  static const char* const bad[] = {
      "void f(float* x)", "void f(simdgroup_float8x8& x)",
      "void f(thread float* x, const simdgroup_matrix<float, 8, 8>& y)",
      "void f(float (&x)[2])", "*(ushort4*)&a[0]"};
  static const char* const good[] = {
      "void f(thread simdgroup_float8x8& x)", "void f(thread float (&x)[2])",
      "*(threadgroup ushort4*)&a[0]", "void f(device const float* x)"};
  int count;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
    assert_non_null(shim_homeless(bad[i], &count));
  for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
    assert_null(shim_homeless(good[i], &count));
    assert_int_equal(count, 1);
  }
  // One that is there and wrong.
  static const char* const spaces[] = {"device", "device", "thread"};
  for (size_t i = 0; i < 3; ++i) {
    char text[512];
    int size =
        snprintf(text, sizeof text,
                 "#include <metal_stdlib>\nusing namespace metal;\n"
                 "kernel void f(device float* x [[buffer(0)]]) {\n"
                 "  threadgroup float t[4];\n  x[0] = t[0];\n"
                 "  *(device float2*)&x[0] = *(%s const float2*)&%s[0];\n"
                 "}\n",
                 spaces[i], i == 1 ? "t" : "x");
    assert_int_equal(shim_spaces_agree(text, (size_t)size, false), i == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lint),    cmocka_unit_test(test_probe),
      cmocka_unit_test(test_tiles),   cmocka_unit_test(test_choice),
      cmocka_unit_test(test_unknown), cmocka_unit_test(test_refused),
  };
  metal_setup();
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
