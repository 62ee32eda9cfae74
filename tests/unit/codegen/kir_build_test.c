// SPDX-License-Identifier: Apache-2.0
// The builder: what it folds, what finish() removes, what the hash depends on,
// and that it says so when memory runs out.
#include "unit/codegen/kir_test.h"

typedef pestle_kir_id_t id_t_;

static void begin(pestle_kir_builder_t* k) {
  pestle_kir_init(pestle_allocator_system(), "k", "a note\nof two lines", k);
}

static id_t_ group(pestle_kir_builder_t* k, int64_t extent) {
  id_t_ lo = pestle_kir_index(k, 0);
  id_t_ hi = pestle_kir_index(k, extent);
  return pestle_kir_for(k, "g", lo, hi, 1, PESTLE_KIR_GROUP_X);
}

// y[i] = x[i] * 2 + 1 for 16 lanes a group, with a masked tail.
static void build_axpy(pestle_kir_builder_t* k, int64_t count) {
  uint32_t x = pestle_kir_add_buffer(k, "x", PESTLE_KIR_GLOBAL, PESTLE_F32, 1,
                                     count, PESTLE_KIR_READONLY);
  uint32_t y =
      pestle_kir_add_buffer(k, "y", PESTLE_KIR_GLOBAL, PESTLE_F32, 1, count, 0);
  id_t_ g = group(k, (count + 15) / 16);
  id_t_ at = pestle_kir_madi(k, g, 16, PESTLE_KIR_NONE);
  id_t_ mask = pestle_kir_mask(k, at, pestle_kir_index(k, count), 16);
  id_t_ v = pestle_kir_load(k, x, 16, at, mask, 64);
  v = pestle_kir_scalar(k, PESTLE_OP_MULTIPLY, v,
                        pestle_kir_float(k, PESTLE_F32, 1, 2.0),
                        PESTLE_KIR_NONE);
  v = pestle_kir_scalar(k, PESTLE_OP_ADD, v,
                        pestle_kir_float(k, PESTLE_F32, 1, 1.0),
                        PESTLE_KIR_NONE);
  pestle_kir_store(k, y, at, v, mask, 64);
  pestle_kir_end(k);
}

static void test_run(void** state) {
  (void)state;
  enum { COUNT = 100 };
  float x[COUNT], y[COUNT + 1];
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)i;
  y[COUNT] = -7;
  pestle_kir_builder_t k;
  begin(&k);
  build_axpy(&k, COUNT);
  kir_test_run_ok(&k, (void*[]){x, y});
  for (int i = 0; i < COUNT; ++i) {
    assert_float_equal(y[i], (float)(2 * i + 1), 0);
  }
  assert_float_equal(y[COUNT], -7, 0);
  assert_int_equal(k.view.group[0], 7);
  assert_int_equal(k.view.arg_count, 2);
  pestle_kir_deinit(&k);
}

// y is x, an element at a time; z has the halves of each pair changed.
static void test_pairs(void** state) {
  (void)state;
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6], z[6];
  pestle_kir_builder_t k;
  begin(&k);
  uint32_t from = pestle_kir_add_buffer(&k, "x", PESTLE_KIR_GLOBAL, PESTLE_F32,
                                        1, 6, PESTLE_KIR_READONLY);
  uint32_t each =
      pestle_kir_add_buffer(&k, "y", PESTLE_KIR_GLOBAL, PESTLE_F32, 1, 6, 0);
  uint32_t both =
      pestle_kir_add_buffer(&k, "z", PESTLE_KIR_GLOBAL, PESTLE_F32, 1, 6, 0);
  id_t_ g = group(&k, 3);
  id_t_ at = pestle_kir_scalar_i(&k, PESTLE_OP_MULTIPLY, g, 2);
  id_t_ pair = pestle_kir_load(&k, from, 2, at, PESTLE_KIR_NONE, 0);
  id_t_ low = pestle_kir_extract(&k, pair, 0);
  id_t_ high = pestle_kir_extract(&k, pair, 1);
  assert_int_equal(pestle_kir_extract(&k, low, 0), low);
  pestle_kir_store(&k, both, at, pestle_kir_pair(&k, high, low),
                   PESTLE_KIR_NONE, 0);
  id_t_ u = pestle_kir_unroll(&k, "u", 2);
  id_t_ own = pestle_kir_madi(&k, u, 1, at);
  pestle_kir_store(&k, each, own,
                   pestle_kir_load(&k, from, 1, own, PESTLE_KIR_NONE, 0),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(&k);
  pestle_kir_end(&k);
  kir_test_run_ok(&k, (void*[]){x, y, z});
  const float turned[6] = {1, 0, 3, 2, 5, 4};
  assert_memory_equal(y, x, sizeof x);
  assert_memory_equal(z, turned, sizeof turned);
  pestle_kir_deinit(&k);
}

static void test_print(void** state) {
  (void)state;
  pestle_kir_builder_t k;
  begin(&k);
  build_axpy(&k, 100);
  assert_ok(pestle_kir_finish(&k));
  assert_string_equal(kir_test_text(&k.view),
                      "// a note\n"
                      "// of two lines\n"
                      "kernel @k(\n"
                      "    @x : global f32[100] readonly,\n"
                      "    @y : global f32[100]) {\n"
                      "  %0 = const 0 : index\n"
                      "  %1 = const 7 : index\n"
                      "  %2 = for %0 to %1 step 1 group.x : index name g {\n"
                      "    %3 = madi %2, 16, %0 : index\n"
                      "    %4 = const 100 : index\n"
                      "    %5 = mask %3, %4 : i1x16\n"
                      "    %6 = load @x[%3], mask %5 : f32x16 align 64\n"
                      "    %7 = const 2.0 : f32x16\n"
                      "    %8 = multiply %6, %7 : f32x16\n"
                      "    %9 = const 1.0 : f32x16\n"
                      "    %10 = add %8, %9 : f32x16\n"
                      "    store @y[%3], %10, mask %5 align 64\n"
                      "  }\n"
                      "}\n");
  pestle_kir_deinit(&k);
}

static void test_fold(void** state) {
  (void)state;
  pestle_kir_builder_t k;
  int64_t value;
  begin(&k);
  id_t_ a = pestle_kir_index(&k, 6), b = pestle_kir_index(&k, 7);
  id_t_ p = pestle_kir_scalar(&k, PESTLE_OP_MULTIPLY, a, b, PESTLE_KIR_NONE);
  assert_true(pestle_kir_is_int(&k, p, &value));
  assert_int_equal(value, 42);
  id_t_ i = group(&k, 10);
  // ((i*4 + 3)*5 + i) + 2 = i*21 + 17
  id_t_ v = pestle_kir_madi(&k, i, 4, pestle_kir_index(&k, 3));
  v = pestle_kir_madi(&k, v, 5, i);
  v = pestle_kir_scalar(&k, PESTLE_OP_ADD, pestle_kir_index(&k, 2), v,
                        PESTLE_KIR_NONE);
  const pestle_kir_inst_t* inst = &k.inst.data[v];
  assert_int_equal(inst->op, PESTLE_KIR_MADI);
  assert_int_equal(inst->arg[0], i);
  assert_int_equal((int32_t)inst->arg[1], 21);
  assert_true(pestle_kir_is_int(&k, inst->arg[2], &value));
  assert_int_equal(value, 17);
  // x*1, x+0, select(true, ..), a mask that is always on.
  assert_int_equal(pestle_kir_madi(&k, i, 1, PESTLE_KIR_NONE), i);
  id_t_ on = pestle_kir_mask(&k, pestle_kir_index(&k, 0),
                             pestle_kir_index(&k, 16), 16);
  assert_true(pestle_kir_is_int(&k, on, &value));
  id_t_ s = pestle_kir_scalar(&k, PESTLE_OP_SELECT,
                              pestle_kir_int(&k, PESTLE_I1, 1, 1), i, a);
  assert_int_equal(s, i);
  // Unsigned constants wrap to their width.
  id_t_ u = pestle_kir_scalar(
      &k, PESTLE_OP_SUBTRACT, pestle_kir_int(&k, PESTLE_U8, 4, 1),
      pestle_kir_int(&k, PESTLE_U8, 4, 2), PESTLE_KIR_NONE);
  assert_true(pestle_kir_is_int(&k, u, &value));
  assert_int_equal(value, 255);
  pestle_kir_deinit(&k);
}

static void test_finish(void** state) {
  (void)state;
  pestle_kir_builder_t k;
  float x[32] = {0};
  begin(&k);
  uint32_t b =
      pestle_kir_add_buffer(&k, "x", PESTLE_KIR_GLOBAL, PESTLE_F32, 1, 32, 0);
  uint32_t unread =
      pestle_kir_add_buffer(&k, "t", PESTLE_KIR_PRIVATE, PESTLE_F32, 1, 1, 0);
  id_t_ g = group(&k, 2);
  id_t_ one = pestle_kir_float(&k, PESTLE_F32, 1, 1.0);
  pestle_kir_alloc(&k, unread);
  pestle_kir_store(&k, unread, pestle_kir_index(&k, 0), one, PESTLE_KIR_NONE,
                   0);
  // Never taken; else always.
  pestle_kir_if(&k, pestle_kir_int(&k, PESTLE_I1, 1, 0));
  pestle_kir_store(&k, b, pestle_kir_index(&k, 99), one, PESTLE_KIR_NONE, 0);
  pestle_kir_else(&k);
  for (int twice = 0; twice < 2; ++twice) {
    id_t_ at = pestle_kir_madi(&k, g, 16, pestle_kir_index(&k, 3));
    id_t_ v = pestle_kir_load(&k, b, 1, at, PESTLE_KIR_NONE, 0);
    v = pestle_kir_scalar(&k, PESTLE_OP_ADD, v, one, PESTLE_KIR_NONE);
    pestle_kir_store(&k, b, at, v, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_end(&k);
  // A loop without effect.
  id_t_ i = pestle_kir_for(&k, "i", pestle_kir_index(&k, 0),
                           pestle_kir_index(&k, 9), 1, PESTLE_KIR_SERIAL);
  pestle_kir_load(&k, b, 1, i, PESTLE_KIR_NONE, 0);
  pestle_kir_end(&k);
  pestle_kir_end(&k);
  kir_test_run_ok(&k, (void*[]){x});
  assert_float_equal(x[3], 2, 0);
  assert_float_equal(x[19], 2, 0);
  const char* text = kir_test_text(&k.view);
  assert_null(strstr(text, "if "));
  assert_null(strstr(text, "@t["));
  assert_null(strstr(text, "name i"));
  // One address, two loads.
  const char* madi = strstr(text, "madi");
  assert_non_null(madi);
  assert_null(strstr(madi + 1, "madi"));
  assert_non_null(strstr(strstr(text, "load") + 1, "load"));
  pestle_kir_deinit(&k);
}

static void test_hash(void** state) {
  (void)state;
  pestle_kir_builder_t a, b, c;
  begin(&a);
  build_axpy(&a, 100);
  pestle_kir_init(pestle_allocator_system(), "other", NULL, &b);
  build_axpy(&b, 100);
  begin(&c);
  build_axpy(&c, 101);
  assert_ok(pestle_kir_finish(&a));
  assert_ok(pestle_kir_finish(&b));
  assert_ok(pestle_kir_finish(&c));
  assert_memory_equal(a.view.hash, b.view.hash, sizeof a.view.hash);
  assert_memory_not_equal(a.view.hash, c.view.hash, sizeof a.view.hash);
  pestle_kir_deinit(&a);
  pestle_kir_deinit(&b);
  pestle_kir_deinit(&c);
}

static void test_out_of_memory(void** state) {
  (void)state;
  for (size_t at = 1;; ++at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, at);
    pestle_kir_builder_t k;
    pestle_kir_init(pestle_test_allocator(&memory), "k", "note", &k);
    for (int i = 0; i < 20; ++i)
      build_axpy(&k, 100 + i);
    pestle_status_t status = pestle_kir_finish(&k);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_kir_deinit(&k);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),           cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_print),         cmocka_unit_test(test_fold),
      cmocka_unit_test(test_finish),        cmocka_unit_test(test_hash),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
