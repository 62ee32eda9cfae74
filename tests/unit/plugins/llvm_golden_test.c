// SPDX-License-Identifier: Apache-2.0
// The LLVM IR of some kernels, whole, against tests/golden/target/llvm; BLESS=1
// rewrites them. An assembly dump is checked for its parts.
#include "llvm_kernel.h"

#define NONE PESTLE_KIR_NONE

static char* print(const pestle_kir_t* k, pestle_text_t kind) {
  pestle_blob_t text;
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = "x86-64-v4"};
  assert_ok(llvm_backend->target->print(llvm_backend->self, k, &options, kind,
                                        &text));
  char* copy = calloc(1, text.size + 1);
  memcpy(copy, text.data, text.size);
  host_free(NULL, text.data, text.size);
  return copy;
}

static char* read_file(const char* path) {
  static char data[1 << 16];
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  size_t size = fread(data, 1, sizeof data - 1, file);
  data[size] = 0;
  fclose(file);
  return data;
}

static void compare(const char* name, pestle_kir_builder_t* b) {
  char path[1024];
  const char *root = getenv("PESTLE_SOURCE_DIR"), *id;
  assert_ok(pestle_kir_finish(b));
  assert_ok(pestle_kir_verify(&b->view));
  assert_ok(llvm_backend->target->toolchain_id(llvm_backend->self, &id));
  // Other versions word the same IR differently.
  if (!strncmp(id, "llvm-19 ", 8)) {
    char* text = print(&b->view, PESTLE_TEXT_SOURCE);
    snprintf(path, sizeof path, "%s/tests/golden/target/llvm/%s.ll",
             root ? root : ".", name);
    if (getenv("BLESS")) {
      FILE* file = fopen(path, "wb");
      assert_non_null(file);
      fputs(text, file);
      fclose(file);
    }
    const char* want = read_file(path);
    if (!want) print_error("%s does not exist: run with BLESS=1\n", path);
    assert_non_null(want);
    assert_string_equal(text, want);
    free(text);
  }
  pestle_kir_deinit(b);
}

// relu(x * 2 + b), contracted, with a masked tail.
static void make_elementwise(pestle_kir_builder_t* b) {
  pestle_kir_init(pestle_allocator_system(), "elementwise",
                  "relu(x * 2 + b): %3, %4, %5 of main.onnx\n"
                  "split 0 by 16 mask; bind group.x",
                  b);
  b->facts = PESTLE_KIR_CONTRACT;
  uint32_t x = global(b, "x", PESTLE_F32, 100, PESTLE_KIR_READONLY);
  uint32_t bias = global(b, "bias", PESTLE_F16, 100, PESTLE_KIR_READONLY);
  uint32_t y = global(b, "y", PESTLE_F32, 100, 0);
  pestle_kir_id_t g = group(b, 7);
  pestle_kir_id_t at = pestle_kir_madi(b, g, 16, NONE);
  pestle_kir_id_t mask = pestle_kir_mask(b, at, pestle_kir_index(b, 100), 16);
  pestle_kir_id_t v = pestle_kir_load(b, x, 16, at, mask, 4);
  pestle_kir_id_t w =
      pestle_kir_cast(b, pestle_kir_load(b, bias, 16, at, mask, 2), PESTLE_F32);
  pestle_kir_id_t two = pestle_kir_float(b, PESTLE_F32, 16, 2);
  v = pestle_kir_scalar(b, PESTLE_OP_MULTIPLY, v, two, NONE);
  v = pestle_kir_scalar(b, PESTLE_OP_ADD, v, w, NONE);
  v = pestle_kir_scalar(b, PESTLE_OP_MAXIMUM, v,
                        pestle_kir_float(b, PESTLE_F32, 16, 0), NONE);
  pestle_kir_store(b, y, at, v, mask, 4);
  pestle_kir_end(b);
}

static void elementwise(void** state) {
  pestle_kir_builder_t b;
  (void)state;
  make_elementwise(&b);
  compare("elementwise", &b);
}

// A tile of 2 x 2 vectors over a loop of k.
static void tile(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("tile");
  uint32_t a = global(&b, "a", PESTLE_F32, 4 * 64, PESTLE_KIR_READONLY);
  uint32_t p = global(&b, "b", PESTLE_F32, 64 * 32, PESTLE_KIR_READONLY);
  uint32_t c = global(&b, "c", PESTLE_F32, 4 * 32, 0);
  uint32_t acc = pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE,
                                       PESTLE_F32, 16, 4, 0);
  pestle_kir_id_t g = group(&b, 2), zero = pestle_kir_index(&b, 0);
  pestle_kir_id_t two = pestle_kir_index(&b, 2);
  pestle_kir_alloc(&b, acc);
  pestle_kir_id_t i = pestle_kir_for(&b, "i", zero, pestle_kir_index(&b, 4), 1,
                                     PESTLE_KIR_UNROLL);
  pestle_kir_store(&b, acc, i, pestle_kir_float(&b, PESTLE_F32, 16, 0), NONE,
                   0);
  pestle_kir_end(&b);
  pestle_kir_id_t k = pestle_kir_for(&b, "k", zero, pestle_kir_index(&b, 64), 1,
                                     PESTLE_KIR_SERIAL);
  i = pestle_kir_for(&b, "i", zero, two, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t from =
      pestle_kir_madi(&b, g, 128, pestle_kir_madi(&b, i, 64, k));
  pestle_kir_id_t x =
      pestle_kir_splat(&b, pestle_kir_load(&b, a, 1, from, NONE, 4), 16);
  pestle_kir_id_t j = pestle_kir_for(&b, "j", zero, two, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t at = pestle_kir_madi(&b, i, 2, j);
  pestle_kir_id_t y = pestle_kir_load(
      &b, p, 16, pestle_kir_madi(&b, k, 32, pestle_kir_madi(&b, j, 16, NONE)),
      NONE, 64);
  pestle_kir_id_t old = pestle_kir_load(&b, acc, 16, at, NONE, 0);
  pestle_kir_store(&b, acc, at, pestle_kir_scalar(&b, PESTLE_OP_FMA, x, y, old),
                   NONE, 0);
  for (int end = 0; end < 3; ++end)
    pestle_kir_end(&b);
  i = pestle_kir_for(&b, "i", zero, pestle_kir_index(&b, 4), 1,
                     PESTLE_KIR_UNROLL);
  pestle_kir_store(&b, c,
                   pestle_kir_madi(&b, g, 64, pestle_kir_madi(&b, i, 16, NONE)),
                   pestle_kir_load(&b, acc, 16, i, NONE, 0), NONE, 64);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  compare("tile", &b);
}

// The maximum of a row, or of nothing where a flag is not set.
static void reduce(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("reduce");
  uint32_t x = global(&b, "x", PESTLE_I32, 8 * 64, PESTLE_KIR_READONLY);
  uint32_t flag = global(&b, "flag", PESTLE_I1, 8, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_I32, 8, 0);
  uint32_t acc =
      pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE, PESTLE_I32, 8, 1, 0);
  pestle_kir_id_t g = group(&b, 8), zero = pestle_kir_index(&b, 0);
  pestle_kir_alloc(&b, acc);
  pestle_kir_store(&b, acc, zero, pestle_kir_int(&b, PESTLE_I32, 8, INT32_MIN),
                   NONE, 0);
  pestle_kir_if(&b, pestle_kir_load(&b, flag, 1, g, NONE, 1));
  pestle_kir_id_t i = pestle_kir_for(&b, "i", zero, pestle_kir_index(&b, 64), 8,
                                     PESTLE_KIR_SERIAL);
  pestle_kir_id_t v =
      pestle_kir_load(&b, x, 8, pestle_kir_madi(&b, g, 64, i), NONE, 4);
  pestle_kir_id_t old = pestle_kir_load(&b, acc, 8, zero, NONE, 0);
  v = pestle_kir_scalar(&b, PESTLE_OP_MAXIMUM, old, v, NONE);
  pestle_kir_store(&b, acc, zero, v, NONE, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  v = pestle_kir_load(&b, acc, 8, zero, NONE, 0);
  pestle_kir_store(&b, y, g, pestle_kir_reduce(&b, v, PESTLE_OP_MAXIMUM), NONE,
                   4);
  pestle_kir_end(&b);
  compare("reduce", &b);
}

// What one shared buffer holds, read again and again while another is written: its
// loads may leave the loop, since the two have scopes of their own.
static void scratch(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("scratch");
  uint32_t x = global(&b, "x", PESTLE_F32, 4 * 128, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_F32, 4 * 16, 0);
  uint32_t row =
      pestle_kir_add_buffer(&b, "row", PESTLE_KIR_SHARED, PESTLE_F32, 1, 16, 0);
  uint32_t sums = pestle_kir_add_buffer(&b, "sums", PESTLE_KIR_SHARED,
                                        PESTLE_F32, 1, 128, 0);
  pestle_kir_id_t g = group(&b, 4), zero = pestle_kir_index(&b, 0);
  pestle_kir_id_t first = pestle_kir_madi(&b, g, 128, NONE);
  pestle_kir_store(&b, row, zero, pestle_kir_load(&b, x, 16, first, NONE, 4),
                   NONE, 64);
  pestle_kir_id_t i = pestle_kir_for(&b, "i", zero, pestle_kir_index(&b, 8), 1,
                                     PESTLE_KIR_SERIAL);
  pestle_kir_id_t v =
      pestle_kir_load(&b, x, 16, pestle_kir_madi(&b, i, 16, first), NONE, 4);
  pestle_kir_id_t w = pestle_kir_load(&b, row, 16, zero, NONE, 64);
  v = pestle_kir_scalar(&b, PESTLE_OP_ADD, v, w, NONE);
  pestle_kir_store(&b, sums, pestle_kir_madi(&b, i, 16, NONE), v, NONE, 64);
  pestle_kir_end(&b);
  v = pestle_kir_load(&b, sums, 16, pestle_kir_index(&b, 112), NONE, 64);
  pestle_kir_store(&b, y, pestle_kir_madi(&b, g, 16, NONE), v, NONE, 64);
  pestle_kir_end(&b);
  compare("scratch", &b);
}

// A polynomial behind the sums of twelve vectors: its constants come from a table
// that no loop in front of it can have read.
static void constants(void** state) {
  enum { VECTORS = 12, TERMS = 8 };
  (void)state;
  pestle_kir_builder_t b = kernel("constants");
  uint32_t x = global(&b, "x", PESTLE_F32, 64 * 16, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_F32, VECTORS * 16, 0);
  uint32_t sums = pestle_kir_add_buffer(&b, "sums", PESTLE_KIR_SHARED,
                                        PESTLE_F32, 1, VECTORS * 16, 0);
  uint32_t acc = pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE,
                                       PESTLE_F32, 16, VECTORS, 0);
  group(&b, 1);
  pestle_kir_id_t zero = pestle_kir_index(&b, 0);
  pestle_kir_alloc(&b, acc);
  for (int i = 0; i < VECTORS; ++i) {
    pestle_kir_store(&b, acc, pestle_kir_index(&b, i),
                     pestle_kir_float(&b, PESTLE_F32, 16, 0), NONE, 0);
  }
  pestle_kir_id_t k = pestle_kir_for(&b, "k", zero, pestle_kir_index(&b, 64), 1,
                                     PESTLE_KIR_SERIAL);
  pestle_kir_id_t v =
      pestle_kir_load(&b, x, 16, pestle_kir_madi(&b, k, 16, NONE), NONE, 4);
  for (int i = 0; i < VECTORS; ++i) {
    pestle_kir_id_t at = pestle_kir_index(&b, i);
    pestle_kir_id_t old = pestle_kir_load(&b, acc, 16, at, NONE, 0);
    pestle_kir_store(&b, acc, at,
                     pestle_kir_scalar(&b, PESTLE_OP_FMA, v, v, old), NONE, 0);
  }
  pestle_kir_end(&b);
  for (int i = 0; i < VECTORS; ++i) {
    pestle_kir_store(
        &b, sums, pestle_kir_index(&b, i * 16),
        pestle_kir_load(&b, acc, 16, pestle_kir_index(&b, i), NONE, 0), NONE,
        64);
  }
  pestle_kir_id_t i = pestle_kir_for(
      &b, "i", zero, pestle_kir_index(&b, VECTORS), 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t at = pestle_kir_madi(&b, i, 16, NONE);
  v = pestle_kir_load(&b, sums, 16, at, NONE, 64);
  pestle_kir_id_t sum = pestle_kir_float(&b, PESTLE_F32, 16, 1);
  for (int term = 2; term <= TERMS; ++term) {
    pestle_kir_id_t next = pestle_kir_float(&b, PESTLE_F32, 16, 1.0 / term);
    sum = pestle_kir_scalar(&b, PESTLE_OP_FMA, sum, v, next);
  }
  pestle_kir_store(&b, y, at, sum, NONE, 4);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  compare("constants", &b);
}

static void assembly(void** state) {
  pestle_kir_builder_t b;
  (void)state;
  make_elementwise(&b);
  assert_ok(pestle_kir_finish(&b));
  char* text = print(&b.view, PESTLE_TEXT_ASM);
  // Where it came from, line by line; functions, labels, Intel syntax.
  assert_int_equal(strncmp(text, "; kernel elementwise for x86-64-v4\n", 35),
                   0);
  assert_non_null(strstr(text, "\n; relu(x * 2 + b): %3, %4, %5 of main.onnx"));
  assert_non_null(strstr(text, "\n; split 0 by 16 mask; bind group.x\n"));
  assert_non_null(strstr(text, "\nelementwise:\n"));
  assert_non_null(strstr(text, "\tvfmadd"));
  assert_non_null(strstr(text, "zmmword ptr ["));
  assert_non_null(strstr(text, "\n.L"));
  // Branches by their labels, not by numbers.
  char* jump = strstr(text, "\tj");
  assert_non_null(jump);
  assert_non_null(strstr(jump, "\t.L"));
  free(text);
  pestle_kir_deinit(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elementwise), cmocka_unit_test(tile),
      cmocka_unit_test(reduce),      cmocka_unit_test(scratch),
      cmocka_unit_test(constants),   cmocka_unit_test(assembly),
  };
  int failed = llvm_setup(NULL);
  if (failed) return failed;
  return cmocka_run_group_tests(tests, NULL, llvm_teardown);
}
