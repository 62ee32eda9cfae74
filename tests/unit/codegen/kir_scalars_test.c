// SPDX-License-Identifier: Apache-2.0
// Kernels that differ by numbers alone: which numbers those are, that the rest of
// such kernels has one hash, and that they compute the same with the numbers in an
// argument.
#include "codegen/kir/kir_scalars.h"

#include <math.h>

#include "unit/codegen/kir_test.h"

typedef pestle_kir_id_t id_t_;

enum { COUNT = 100, MOST = 64 };

static id_t_ number(pestle_kir_builder_t* k, unsigned lanes, double value) {
  return pestle_kir_float(k, PESTLE_F32, lanes, value);
}

// y[i] = clamp(-300, (x[i] * scale + 1) / by + offset, 300), a masked tail. The
// scale is a splat of one lane.
static bool puts_scale_outside;

static void build(pestle_kir_builder_t* k, double scale, double by,
                  double offset, uint8_t facts) {
  pestle_kir_init(pestle_allocator_system(), "k", "", k);
  k->facts = facts;
  uint32_t x = pestle_kir_add_buffer(k, "x", PESTLE_KIR_GLOBAL, PESTLE_F32, 1,
                                     COUNT, PESTLE_KIR_READONLY);
  uint32_t y =
      pestle_kir_add_buffer(k, "y", PESTLE_KIR_GLOBAL, PESTLE_F32, 1, COUNT, 0);
  id_t_ outside = puts_scale_outside ? number(k, 1, scale) : 0;
  id_t_ lo = pestle_kir_index(k, 0);
  id_t_ hi = pestle_kir_index(k, (COUNT + 15) / 16);
  id_t_ g = pestle_kir_for(k, "g", lo, hi, 1, PESTLE_KIR_GROUP_X);
  id_t_ at = pestle_kir_madi(k, g, 16, PESTLE_KIR_NONE);
  id_t_ mask = pestle_kir_mask(k, at, pestle_kir_index(k, COUNT), 16);
  id_t_ v = pestle_kir_load(k, x, 16, at, mask, 64);
  id_t_ s = pestle_kir_put(
      k, (pestle_kir_inst_t){
             .op = PESTLE_KIR_SPLAT,
             .type = PESTLE_F32,
             .lanes = 16,
             .arg = {puts_scale_outside ? outside : number(k, 1, scale)}});
  v = pestle_kir_scalar(k, PESTLE_OP_MULTIPLY, v, s, PESTLE_KIR_NONE);
  v = pestle_kir_scalar(k, PESTLE_OP_ADD, v, number(k, 16, 1), PESTLE_KIR_NONE);
  v = pestle_kir_scalar(k, PESTLE_OP_DIVIDE, v, number(k, 16, by),
                        PESTLE_KIR_NONE);
  v = pestle_kir_scalar(k, PESTLE_OP_ADD, v, number(k, 16, offset),
                        PESTLE_KIR_NONE);
  v = pestle_kir_scalar(k, PESTLE_OP_CLAMP, number(k, 16, -300), v,
                        number(k, 16, 300));
  pestle_kir_store(k, y, at, v, mask, 64);
  pestle_kir_end(k);
  assert_ok(pestle_kir_finish(k));
}

static uint32_t find(const pestle_kir_builder_t* k, uint8_t* is_scalar,
                     double* out_values) {
  assert_true(k->inst.size <= MOST);
  pestle_kir_find_scalars(k, is_scalar);
  uint32_t count = 0;
  for (size_t i = 0; i < k->inst.size; ++i) {
    if (is_scalar[i])
      out_values[count++] = pestle_kir_const_float(&k->inst.data[i]);
  }
  return count;
}

static void test_which(void** state) {
  (void)state;
  uint8_t is_scalar[MOST];
  double values[MOST];
  pestle_kir_builder_t k;
  // Neither 1, nor the limits of a clamp.
  build(&k, 2.5, 0.75, 3.5, 0);
  assert_int_equal(find(&k, is_scalar, values), 3);
  assert_float_equal(values[0], 2.5, 0);
  assert_float_equal(values[1], 0.75, 0);
  assert_float_equal(values[2], 3.5, 0);
  pestle_kir_deinit(&k);
  // Not a divisor that may be a reciprocal, nor what is not finite, nor 0.
  build(&k, 2.5, 0.75, 0, PESTLE_KIR_ARCP);
  assert_int_equal(find(&k, is_scalar, values), 1);
  pestle_kir_deinit(&k);
  build(&k, (double)INFINITY, -1, (double)NAN, 0);
  assert_int_equal(find(&k, is_scalar, values), 0);
  pestle_kir_deinit(&k);
  // Nor what limits a clamp beside what it multiplies.
  build(&k, 300, 0.75, 0, 0);
  assert_int_equal(find(&k, is_scalar, values), 2);
  pestle_kir_deinit(&k);
  build(&k, 2.5, 300, 0, 0);
  assert_int_equal(find(&k, is_scalar, values), 1);
  pestle_kir_deinit(&k);
}

// Nothing is read outside of the loop over groups.
static void test_outside(void** state) {
  (void)state;
  uint8_t is_scalar[MOST];
  double values[MOST];
  uint32_t slot[MOST], count = 0;
  pestle_kir_builder_t k, lifted;
  puts_scale_outside = true;
  build(&k, 2.5, 0.75, 3.5, 0);
  puts_scale_outside = false;
  assert_int_equal(find(&k, is_scalar, values), 2);
  for (uint32_t i = 0; i < k.inst.size; ++i)
    slot[i] = is_scalar[i] ? count++ : PESTLE_KIR_NONE;
  assert_ok(pestle_kir_lift_scalars(pestle_allocator_system(), &k, slot, count,
                                    &lifted));
  assert_ok(pestle_kir_verify(&lifted.view));
  pestle_kir_deinit(&lifted);
  pestle_kir_deinit(&k);
}

static void hash_of(double scale, double by, double offset, uint64_t out[2]) {
  uint8_t is_scalar[MOST];
  double values[MOST];
  pestle_kir_builder_t k;
  build(&k, scale, by, offset, 0);
  (void)find(&k, is_scalar, values);
  pestle_kir_hash_but_scalars(&k, is_scalar, out);
  pestle_kir_deinit(&k);
}

static void test_hash(void** state) {
  (void)state;
  uint64_t a[2], b[2];
  hash_of(2.5, 0.75, 3.5, a);
  hash_of(7.5, 0.3, -2, b);
  assert_memory_equal(a, b, sizeof a);
  hash_of(2.5, 0.75, 0, b);  // 0 is no scalar
  assert_memory_not_equal(a, b, sizeof a);
}

static void test_lifted(void** state) {
  (void)state;
  static const struct {
    double scale, by, offset;
  } rows[] = {{2.5, 0.75, 3.5}, {-0.1, 1e-3, 7}, {1e30, 1e-30, -1e30}};
  uint64_t hash[2] = {0};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
    float x[COUNT], wanted[COUNT], y[COUNT], numbers[3];
    for (int i = 0; i < COUNT; ++i)
      x[i] = (float)(i - 50) * 0.37F;
    uint8_t is_scalar[MOST];
    double values[MOST];
    uint32_t slot[MOST], count = 0;
    pestle_kir_builder_t k, lifted;
    build(&k, rows[r].scale, rows[r].by, rows[r].offset, 0);
    kir_test_run_ok(&k, (void*[]){x, wanted});
    assert_int_equal(find(&k, is_scalar, values), 3);
    for (uint32_t i = 0; i < k.inst.size; ++i)
      slot[i] = is_scalar[i] ? count++ : PESTLE_KIR_NONE;
    for (int i = 0; i < 3; ++i)
      numbers[i] = (float)values[i];
    assert_ok(pestle_kir_lift_scalars(pestle_allocator_system(), &k, slot,
                                      count, &lifted));
    assert_ok(pestle_kir_verify(&lifted.view));
    assert_int_equal(lifted.view.arg_count, 3);
    kir_test_run_ok(&lifted, (void*[]){x, y, numbers});
    assert_memory_equal(y, wanted, sizeof y);
    // All rows are one kernel now.
    if (r) assert_memory_equal(hash, lifted.view.hash, sizeof hash);
    memcpy(hash, lifted.view.hash, sizeof hash);
    pestle_kir_deinit(&lifted);
    pestle_kir_deinit(&k);
  }
}

static void test_out_of_memory(void** state) {
  (void)state;
  uint8_t is_scalar[MOST];
  double values[MOST];
  uint32_t slot[MOST], count = 0;
  pestle_kir_builder_t k, lifted;
  build(&k, 2.5, 0.75, 3.5, 0);
  (void)find(&k, is_scalar, values);
  for (uint32_t i = 0; i < k.inst.size; ++i)
    slot[i] = is_scalar[i] ? count++ : PESTLE_KIR_NONE;
  bool done = false;
  for (size_t at = 1; !done && at < 100; ++at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, at);
    pestle_status_t status = pestle_kir_lift_scalars(
        pestle_test_allocator(&memory), &k, slot, count, &lifted);
    done = !status;
    if (done) pestle_kir_deinit(&lifted);
    if (!done) assert_code(status, OUT_OF_MEMORY);
    pestle_test_allocator_check(&memory);
  }
  assert_true(done);
  pestle_kir_deinit(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which), cmocka_unit_test(test_outside),
      cmocka_unit_test(test_hash), cmocka_unit_test(test_lifted),
      cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
