// SPDX-License-Identifier: Apache-2.0
// Results in place of donated inputs: the same bits as without, on the fusions that
// the goldens have, on updates and loops; and what a wish for one is refused for.
#include <dirent.h>
#include <stdlib.h>

#include "pestle/pestle.h"
#include "test.h"

enum { MOST = 16 };

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 2};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

// |*out_device| is NULL where the backend is not built.
static void find_device(pestle_context_t* context, const char* name,
                        pestle_device_t** out_device) {
  pestle_status_release(pestle_context_device(context, name, out_device));
}

typedef struct values_t {
  size_t count;
  pestle_buffer_t* buffer[MOST];
} values_t;

static void release(values_t* values) {
  for (size_t i = 0; i < values->count; ++i)
    pestle_buffer_release(values->buffer[i]);
  values->count = 0;
}

static void fill(pestle_dtype_t dtype, uint32_t seed, char* data, size_t size) {
  size_t element = pestle_dtype_info(dtype)->size;
  for (size_t i = 0; i < size / element; ++i) {
    uint32_t bits = (uint32_t)i * 2654435761u + seed * 97u;
    float f = (float)(bits % 1000) * 0.004f - 2.0f;
    double d = f;
    uint64_t small = dtype == PESTLE_I1 ? bits & 1 : bits % 3;
    const void* value = dtype == PESTLE_F32   ? (const void*)&f
                        : dtype == PESTLE_F64 ? (const void*)&d
                                              : (const void*)&small;
    if (element <= 8) memcpy(data + i * element, value, element);
  }
}

static void make_inputs(const pestle_executable_t* e, pestle_device_t* device,
                        values_t* out) {
  out->count = pestle_executable_input_count(e);
  assert_true(out->count <= MOST);
  for (size_t i = 0; i < out->count; ++i) {
    pestle_io_info_t info = pestle_executable_input(e, i);
    size_t size = pestle_dtype_info(info.dtype)->size;
    for (int32_t d = 0; d < info.rank; ++d)
      size *= (size_t)info.dims[d];
    assert_ok(pestle_buffer_create(device, size, &out->buffer[i]));
    fill(info.dtype, (uint32_t)i, pestle_buffer_data(out->buffer[i]), size);
  }
}

// Runs, all inputs given away or none; what is not is released.
static void run(pestle_executable_t* e, values_t* inputs, bool donates,
                values_t* out) {
  pestle_buffer_view_t views[MOST] = {{.buffer = NULL}};
  uint32_t all[MOST];
  for (uint32_t i = 0; i < inputs->count; ++i) {
    views[i].buffer = inputs->buffer[i];
    all[i] = i;
  }
  pestle_run_buffers_options_t options = {
      .struct_size = sizeof(options),
      .donated = all,
      .donated_count = donates ? inputs->count : 0};
  out->count = pestle_executable_output_count(e);
  assert_true(out->count <= MOST);
  assert_ok(pestle_executable_run_buffers(e, NULL, views, inputs->count,
                                          out->buffer, out->count, &options));
  if (donates) {
    inputs->count = 0;
  } else {
    release(inputs);
  }
}

static void assert_same(const values_t* a, const values_t* b) {
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; ++i) {
    size_t size = pestle_buffer_size(a->buffer[i]);
    assert_int_equal(pestle_buffer_size(b->buffer[i]), size);
    if (size) {
      assert_memory_equal(pestle_buffer_data(a->buffer[i]),
                          pestle_buffer_data(b->buffer[i]), size);
    }
  }
}

static pestle_executable_t* compile(pestle_context_t* context,
                                    pestle_device_t* device,
                                    pestle_module_t* module,
                                    const pestle_alias_t* aliases,
                                    size_t count) {
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .aliases = aliases, .alias_count = count};
  pestle_plan_t* plan;
  pestle_executable_t* e;
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  pestle_plan_release(plan);
  return e;
}

static bool is_small(const pestle_executable_t* e) {
  return pestle_executable_input_count(e) &&
         pestle_executable_input_count(e) <= MOST &&
         pestle_executable_output_count(e) <= MOST;
}

// How many results lie in place of inputs, after runs of |module| by two plans,
// with and without gifts, have all given the same bits.
static size_t check_module(pestle_context_t* context, pestle_device_t* device,
                           pestle_module_t* module) {
  pestle_alias_t any[MOST];
  for (uint32_t i = 0; i < MOST; ++i)
    any[i] = (pestle_alias_t){i, PESTLE_ALIAS_ANY};
  pestle_executable_t* plain = compile(context, device, module, NULL, 0);
  if (!is_small(plain)) {
    pestle_executable_release(plain);
    return 0;
  }
  size_t inputs = pestle_executable_input_count(plain);
  pestle_executable_t* gifts = compile(context, device, module, any, inputs);
  values_t in, wanted, found;
  make_inputs(plain, device, &in);
  run(plain, &in, false, &wanted);
  size_t placed = 0;
  for (int way = 0; way < 4; ++way) {
    pestle_executable_t* e = way & 1 ? gifts : plain;
    make_inputs(e, device, &in);
    values_t before = in;
    run(e, &in, way & 2, &found);
    assert_same(&wanted, &found);
    for (size_t o = 0; o < found.count && way == 3; ++o) {
      int32_t alias = pestle_executable_alias(e, o);
      if (alias < 0) continue;
      assert_ptr_equal(found.buffer[o], before.buffer[alias]);
      ++placed;
    }
    release(&found);
  }
  release(&wanted);
  pestle_executable_release(gifts);
  pestle_executable_release(plain);
  return placed;
}

// By compiled code where that is to be had: the interpreter takes minutes.
static size_t check_text(pestle_context_t* context, const char* name,
                         const char* text, size_t size) {
  pestle_module_t* module;
  pestle_device_t* device;
  assert_ok(pestle_module_parse(context, text, size, name, &module));
  find_device(context, "cpu", &device);
  size_t placed = check_module(context, device, module);
  pestle_module_release(module);
  return placed;
}

// --- The goldens ---

static size_t check_file(pestle_context_t* context, const char* folder,
                         const char* name) {
  static char text[1 << 16];
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* file = fopen(path, "r");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  assert_true(size < sizeof(text) - 1);
  return check_text(context, name, text, size);
}

static void test_goldens(void** state) {
  (void)state;
  char folder[512];
  snprintf(folder, sizeof(folder), "%s/tests/golden/codegen",
           getenv("PESTLE_SOURCE_DIR"));
  pestle_context_t* context = make_context();
  DIR* found = opendir(folder);
  assert_non_null(found);
  size_t files = 0, placed = 0;
  const struct dirent* entry;
  while ((entry = readdir(found))) {
    const char* end = strrchr(entry->d_name, '.');
    if (!end || strcmp(end, ".mlir") != 0) continue;
    placed += check_file(context, folder, entry->d_name);
    ++files;
  }
  closedir(found);
  assert_true(files >= 40 && placed >= 5);
  pestle_context_release(context);
}

// --- What lies in place ---

// A result of each kind, and whether it lies in place of input 0.
static const struct {
  const char* text;
  bool placed;
} kinds[] = {
    // an update of parameters
    {"func.func @main(%x: tensor<37x19xf32>, %g: tensor<37x19xf32>) -> "
     "tensor<37x19xf32> { %0 = stablehlo.multiply %g, %g : tensor<37x19xf32>\n "
     "%1 = stablehlo.subtract %x, %0 : tensor<37x19xf32>\n return %1 : "
     "tensor<37x19xf32> }",
     true},
    // the input itself
    {"func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : "
     "tensor<8xf32> }",
     true},
    // read by other rows while it is written
    {"func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> { %0 = "
     "stablehlo.transpose %x, dims = [1, 0] : (tensor<16x16xf32>) -> "
     "tensor<16x16xf32>\n return %0 : tensor<16x16xf32> }",
     false},
    {"func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> { %0 = "
     "stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : "
     "(tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>\n return %0 "
     ": "
     "tensor<16x16xf32> }",
     false},
    // rows of a cache
    {"func.func @main(%x: tensor<64x16xf32>, %u: tensor<2x16xf32>, %i: "
     "tensor<i32>) -> tensor<64x16xf32> { %z = stablehlo.constant dense<0> : "
     "tensor<i32>\n %0 = stablehlo.dynamic_update_slice %x, %u, %i, %z : "
     "(tensor<64x16xf32>, tensor<2x16xf32>, tensor<i32>, tensor<i32>) -> "
     "tensor<64x16xf32>\n return %0 : tensor<64x16xf32> }",
     true},
    // a loop's state; its end is asked of data, so that it stays a loop
    {"func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> { %z = "
     "stablehlo.constant dense<0> : tensor<i32>\n %r:2 = stablehlo.while(%i = "
     "%z, %s = %x) : tensor<i32>, tensor<16xf32>\n cond { %n = "
     "stablehlo.constant dense<5> : tensor<i32>\n %p = stablehlo.compare LT, "
     "%i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n %e = "
     "stablehlo.slice %s [0:1] : (tensor<16xf32>) -> tensor<1xf32>\n %f = "
     "stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>\n %o = "
     "stablehlo.compare EQ, %f, %f, FLOAT : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n %q = stablehlo.and %p, %o : tensor<i1>\n stablehlo.return "
     "%q : tensor<i1> } do { %one = stablehlo.constant dense<1> : "
     "tensor<i32>\n %j = stablehlo.add %i, %one : tensor<i32>\n %t = "
     "stablehlo.add %s, %s : tensor<16xf32>\n stablehlo.return %j, %t : "
     "tensor<i32>, tensor<16xf32> }\n return %r#1 : tensor<16xf32> }",
     true},
    // read once more after the result was written
    {"func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<4x4xf32>) "
     "{ %0 = stablehlo.negate %x : tensor<16xf32>\n %1 = stablehlo.reshape %0 "
     ": "
     "(tensor<16xf32>) -> tensor<4x4xf32>\n %2 = stablehlo.dot_general %1, %1, "
     "contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> "
     "tensor<4x4xf32>\n %3 = stablehlo.reshape %x : (tensor<16xf32>) -> "
     "tensor<4x4xf32>\n %4 = stablehlo.dot_general %2, %3, contracting_dims = "
     "[1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n "
     "return %0, %4 : tensor<16xf32>, tensor<4x4xf32> }",
     false},
};

static void test_kinds(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_device_t* device;
  find_device(context, "ref", &device);
  for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k) {
    const char* text = kinds[k].text;
    pestle_module_t* module;
    assert_ok(
        pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
    pestle_alias_t alias = {0, 0};
    pestle_executable_t* e = compile(context, device, module, &alias, 1);
    assert_int_equal(pestle_executable_alias(e, 0), kinds[k].placed ? 0 : -1);
    pestle_executable_release(e);
    (void)check_module(context, device, module);
    pestle_module_release(module);
    (void)check_text(context, "m.mlir", text, strlen(text));
  }
  pestle_context_release(context);
}

// One row of a cache is written, and nothing else of it: a run on given memory
// leaves what it does not update untouched, byte for byte.
static void test_cache_of_rows(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_device_t* device;
  find_device(context, "ref", &device);
  pestle_module_t* module;
  const char* text = kinds[4].text;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  pestle_alias_t alias = {0, 0};
  pestle_executable_t* e = compile(context, device, module, &alias, 1);
  pestle_buffer_t *cache, *rows, *at;
  assert_ok(pestle_buffer_create(device, 64 * 64, &cache));
  assert_ok(pestle_buffer_create(device, 2 * 64, &rows));
  assert_ok(pestle_buffer_create(device, 4, &at));
  float* x = pestle_buffer_data(cache);
  float* u = pestle_buffer_data(rows);
  for (int i = 0; i < 64 * 16; ++i)
    x[i] = -1;
  for (int32_t step = 0; step < 64; step += 2) {
    for (int i = 0; i < 32; ++i)
      u[i] = (float)(step * 16 + i);
    assert_ok(pestle_buffer_write(at, 0, &step, 4));
    pestle_buffer_view_t in[3] = {
        {.buffer = cache}, {.buffer = rows}, {.buffer = at}};
    uint32_t donated = 0;
    pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                            .donated = &donated,
                                            .donated_count = 1};
    assert_ok(
        pestle_executable_run_buffers(e, NULL, in, 3, &cache, 1, &options));
    assert_ptr_equal(pestle_buffer_data(cache), x);
    for (int i = 0; i < 64 * 16; ++i)
      assert_true(x[i] == (i < (step + 2) * 16 ? (float)i : -1));
  }
  pestle_buffer_release(cache);
  pestle_buffer_release(rows);
  pestle_buffer_release(at);
  pestle_executable_release(e);
  pestle_module_release(module);
  pestle_context_release(context);
}

// --- Refusals and keys ---

static void test_refusals(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_device_t* device;
  find_device(context, "ref", &device);
  static const char text[] =
      "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<5xf32>)"
      " -> (tensor<4xf32>, tensor<4xf32>) { %0 = stablehlo.add %x, %y : "
      "tensor<4xf32>\n return %0, %0 : tensor<4xf32>, tensor<4xf32> }";
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  static const struct {
    pestle_alias_t aliases[2];
    size_t count;
    const char* says;
  } cases[] = {
      {{{3, 0}}, 1, "input 3 cannot be overwritten: there are 3"},
      {{{0, 2}}, 1, "no such result"},
      {{{0, -2}}, 1, "no such result"},
      {{{2, 0}}, 1, "('z') cannot be overwritten by result 0: their types"},
      {{{0, 0}, {0, 1}}, 2, "the input is named twice"},
      {{{0, 0}, {0, PESTLE_ALIAS_ANY}}, 2, "the input is named twice"},
      {{{0, 1}, {1, 1}}, 2, "the result is named twice"},
  };
  pestle_plan_t* plan;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .alias_count = 1};
  assert_error(pestle_compile(context, module, device, &options, &plan),
               INVALID_ARGUMENT, "aliases that are NULL");
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
    options.aliases = cases[c].aliases;
    options.alias_count = cases[c].count;
    assert_error(pestle_compile(context, module, device, &options, &plan),
                 INVALID_ARGUMENT, cases[c].says);
    assert_null(plan);
  }
  pestle_module_release(module);
  pestle_context_release(context);
}

// What JAX writes at arguments, and what an option says of the same ones.
static void test_attributes(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_device_t* device;
  find_device(context, "ref", &device);
  static const char text[] =
      "func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %y: "
      "tensor<4xf32> {jax.buffer_donor = true}, %z: tensor<4xf32>) -> "
      "(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) { %0 = stablehlo.negate "
      "%y : tensor<4xf32>\n %1 = stablehlo.abs %x : tensor<4xf32>\n %2 = "
      "stablehlo.sine %z : tensor<4xf32>\n return %0, %1, %2 : tensor<4xf32>, "
      "tensor<4xf32>, tensor<4xf32> }";
  static const struct {
    pestle_alias_t aliases[2];
    size_t count;
    int32_t inputs[3];  // that results begin as
  } cases[] = {{{{0, 0}}, 0, {1, 0, -1}},
               {{{2, 2}}, 1, {1, 0, 2}},
               {{{1, PESTLE_ALIAS_ANY}, {0, 1}}, 2, {1, 0, -1}}};
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
    pestle_executable_t* e =
        compile(context, device, module, cases[c].aliases, cases[c].count);
    for (size_t o = 0; o < 3; ++o)
      assert_int_equal(pestle_executable_alias(e, o), cases[c].inputs[o]);
    pestle_executable_release(e);
  }
  pestle_module_release(module);
  pestle_context_release(context);
}

// Plans that differ in their gifts are different plans, in whatever order these
// are named.
static void test_keys(void** state) {
  (void)state;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .cache_dir = ""};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  assert_ok(pestle_context_create(&options, &context));
  find_device(context, "ref", &device);
  static const char text[] =
      "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> "
      "(tensor<4xf32>, tensor<4xf32>) { %0 = stablehlo.negate %x : "
      "tensor<4xf32>\n %1 = stablehlo.abs %y : tensor<4xf32>\n return %0, %1 : "
      "tensor<4xf32>, tensor<4xf32> }";
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  static const pestle_alias_t ways[][2] = {
      {{0, 0}, {1, 1}}, {{1, 1}, {0, 0}}, {{0, -1}, {1, 1}}};
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  for (size_t w = 0; w < 4; ++w) {
    pestle_executable_t* e =
        compile(context, device, module, w ? ways[w - 1] : NULL, w ? 2 : 0);
    assert_int_equal(pestle_executable_alias(e, 1), w ? 1 : -1);
    pestle_executable_release(e);
  }
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.memory_entries, 3);
  pestle_module_release(module);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goldens),       cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_cache_of_rows), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_attributes),    cmocka_unit_test(test_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
