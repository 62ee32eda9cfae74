// SPDX-License-Identifier: Apache-2.0
// The cost model's choices, and that they follow the target's description.
#include "codegen/sketch/sketch.h"
#include "test.h"

static const pestle_target_caps_t caps = {.struct_size = sizeof(caps)};

// A core with 32 registers of 16 f32 lanes.
static pestle_sketch_t wide(void) {
  return (pestle_sketch_t){.caps = &caps,
                           .lanes = 16,
                           .registers = 32,
                           .l1 = 32 << 10,
                           .l2 = 1 << 20,
                           .l3 = 32 << 20,
                           .cores = 2};
}

static pestle_contract_t gemm(int64_t m, int64_t k, int64_t n) {
  return (pestle_contract_t){.lanes = 16,
                             .width = n,
                             .height = m,
                             .batch = 1,
                             .reduction = k,
                             .bytes = 4 * (m * k + k * n + m * n),
                             .block = k > 1024 ? 1024 : 0,
                             .copyable = true};
}

static void tile_fits_registers(void** state) {
  (void)state;
  for (int64_t registers = 16; registers <= 32; registers += 16) {
    for (int64_t m = 1; m < 40; ++m) {
      pestle_sketch_t k = wide();
      k.registers = registers;
      pestle_contract_t c = gemm(m, 300, 200);
      pestle_tiling_t x = pestle_sketch_cheapest_tiling(&k, &c);
      assert_in_range(x.rows, 1, m);
      assert_in_range(x.vectors, 1, 4);
      assert_true(x.rows * x.vectors + x.vectors + 1 < registers);
    }
  }
}

static void large_products_have_large_tiles(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = gemm(1024, 1024, 1024);
  pestle_tiling_t x = pestle_sketch_cheapest_tiling(&k, &c);
  // More multiply-adds than loads by far: 2 rows x 4 vectors measured 7 % less.
  assert_true(x.rows * x.vectors >= 16);
  assert_int_equal(x.block, 0);
}

// Blocks of taps keep a panel in L2: where all operands fit L3 they cost more
// than they bring.
static void blocks_where_operands_crowd_l3(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = gemm(1024, 4096, 1024);
  assert_int_equal(pestle_sketch_cheapest_tiling(&k, &c).block, 1024);
  k.l3 = 256 << 20;
  assert_int_equal(pestle_sketch_cheapest_tiling(&k, &c).block, 0);
}

static void across_is_copied(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = gemm(512, 512, 512);
  c.strided = true;
  assert_true(pestle_sketch_cheapest_tiling(&k, &c).copied);
  // The copy is not worth it for a few rows.
  c = gemm(6, 512, 512);
  assert_false(pestle_sketch_cheapest_tiling(&k, &c).copied);
}

// Depthwise 3x3 over 56x56: what is padded for one row of windows is padded for
// the next two as well, so rows share a box, which stays within a share of L2.
static void rows_of_windows_share_boxes(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = {.lanes = 16,
                         .width = 144,
                         .height = 56,
                         .batch = 56,
                         .reduction = 9,
                         .bytes = 8 * 56 * 56 * 144,
                         .box = {{.base = 1},
                                 {.base = 3, .halo_row = 1},
                                 {.base = 3, .row = 1},
                                 {.base = 1, .column = 1}},
                         .box_rank = 4,
                         .most_halo_rows = 56,
                         .own = true};
  assert_int_equal(pestle_sketch_box_elements(&c, 6, 64, 1), 3 * 8 * 64);
  assert_int_equal(pestle_sketch_box_elements(&c, 6, 64, 7), 9 * 8 * 64);
  pestle_tiling_t x = pestle_sketch_cheapest_tiling(&k, &c);
  assert_in_range(x.halo_rows, 4, 16);
  int64_t columns = x.vectors * c.lanes;
  assert_true(pestle_sketch_box_elements(&c, c.height, columns, x.halo_rows) *
                  PESTLE_SKETCH_ELEMENT <=
              k.l2 / 4);
  pestle_tiling_t alone = x;
  alone.halo_rows = 0;
  assert_true(pestle_sketch_cycles(&k, &c, &alone) > 1.3 * x.cycles);
  // With little cache the box is smaller.
  k.l2 = 128 << 10;
  x = pestle_sketch_cheapest_tiling(&k, &c);
  columns = x.vectors * c.lanes;
  assert_true(pestle_sketch_box_elements(&c, c.height, columns, x.halo_rows) *
                  PESTLE_SKETCH_ELEMENT <=
              k.l2 / 4);
  // A dense window copies its inputs for many columns: it gains less, so fewer
  // rows do.
  c.own = false;
  int64_t shared = x.halo_rows;
  assert_in_range(pestle_sketch_cheapest_tiling(&k, &c).halo_rows, 1, shared);
}

// Depthwise windows are read where they lie where the rows of one stay in the L1,
// which those of 5x5 do not whose columns are 1 KiB apart.
static void windows_are_read_where_they_lie(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = {.lanes = 16,
                         .width = 64,
                         .height = 56,
                         .batch = 56,
                         .reduction = 9,
                         .bytes = 8 * 56 * 56 * 64,
                         .box = {{.base = 1},
                                 {.base = 3, .halo_row = 1},
                                 {.base = 3, .row = 1},
                                 {.base = 1, .column = 1}},
                         .box_rank = 4,
                         .most_halo_rows = 56,
                         .own = true,
                         .unpadded = true};
  pestle_tiling_t x = pestle_sketch_cheapest_tiling(&k, &c);
  assert_true(x.unpadded && x.halo_rows > 1);
  assert_int_equal(pestle_sketch_column_strip(&k, &c, &x), 4);
  c.width = 256;
  c.height = c.batch = c.most_halo_rows = 14;
  c.reduction = 25;
  c.box[1].base = c.box[2].base = 5;
  assert_false(pestle_sketch_cheapest_tiling(&k, &c).unpadded);
  // Dense windows ask at each tap.
  c.own = false;
  c.box[3] = (pestle_box_dim_t){.base = 64};
  c.reduction *= 64;
  assert_false(pestle_sketch_cheapest_tiling(&k, &c).unpadded);
  c.box[1].base = c.box[2].base = c.box[3].base = 3;
  c.reduction = 27;
  c.width = 16;
  assert_true(pestle_sketch_cheapest_tiling(&k, &c).unpadded);
}

// A core that starts two multiply-adds a cycle runs out of loads where one that
// starts one does not.
static void rates_are_the_target_s(void** state) {
  (void)state;
  pestle_target_caps_t two = {.struct_size = sizeof(two),
                              .fma_rate = 32,
                              .load_rate = 32,
                              .broadcast_rate = 32,
                              .l2_rate = 48,
                              .l3_rate = 10};
  pestle_sketch_t k = wide();
  k.caps = &two;
  k.l1 = 48 << 10;
  k.l2 = 2 << 20;
  k.l3 = 100 << 20;
  pestle_contract_t c = gemm(256, 256, 256);
  c.pitch = 1024;
  // Measured on a Sapphire Rapids: 8x1 326 us, 12x2 247, 8x3 248.
  assert_true(pestle_sketch_cheapest_tiling(&k, &c).vectors > 1);
  // Rows 12 KiB apart fall into few sets of L2: 14.2 ms where they lie, 6.6 ms in a
  // copy.
  c = gemm(128, 768, 3072);
  c.pitch = 12288;
  assert_true(pestle_sketch_cheapest_tiling(&k, &c).copied);
  // One line further apart they do not.
  c.pitch += 64;
  assert_false(pestle_sketch_cheapest_tiling(&k, &c).copied);
}

// 3x3 of 512 features at 7 x 7: the weights, which only L3 holds, are read once for
// the rows that share a box, not once a row.
static void rows_of_windows_share_panels(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = {.lanes = 16,
                         .width = 512,
                         .height = 7,
                         .batch = 7,
                         .reduction = 9 * 512,
                         .bytes = 4 * 9 * 512 * 512,
                         .box = {{.base = 1},
                                 {.base = 3, .halo_row = 1},
                                 {.base = 3, .row = 1},
                                 {.base = 512}},
                         .box_rank = 4,
                         .most_halo_rows = 7};
  pestle_tiling_t shared = {.rows = 7, .vectors = 1, .halo_rows = 7};
  pestle_tiling_t alone = {.rows = 7, .vectors = 1};
  double weights = (double)c.bytes / 20;
  assert_true(pestle_sketch_cycles(&k, &c, &alone) >
              pestle_sketch_cycles(&k, &c, &shared) + 5 * weights);
}

// A copied panel is one piece of work: many cores want more of them.
static void cores_want_pieces(void** state) {
  (void)state;
  pestle_sketch_t k = wide();
  pestle_contract_t c = gemm(512, 512, 512);
  c.aliasing = true;
  assert_true(pestle_sketch_cheapest_tiling(&k, &c).copied);
  k.cores = 64;
  assert_false(pestle_sketch_cheapest_tiling(&k, &c).copied);
}

// They have no say in the order of additions.
static void cores_leave_blocks_alone(void** state) {
  (void)state;
  for (int64_t m = 1; m < 600; m += 37) {
    pestle_contract_t c = gemm(m, 5000, 700);
    pestle_sketch_t k = wide();
    int64_t block = pestle_sketch_cheapest_tiling(&k, &c).block;
    for (k.cores = 1; k.cores < 200; k.cores *= 3) {
      assert_int_equal(pestle_sketch_cheapest_tiling(&k, &c).block, block);
    }
  }
}

// Each constant of a machine says what it counts, and how it was found.
static void constants_say_where_they_are_from(void** state) {
  (void)state;
  static const struct {
    const char *name, *unit, *measured;
    double value;
  } rows[] = {
#define PESTLE_COST(CLASS, NAME, value, unit, measured) \
  {#CLASS "_" #NAME, unit, measured, value},
#define PESTLE_COST_REAL PESTLE_COST
#include "codegen/sketch/cost.def"
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    if (!*rows[i].unit || strlen(rows[i].measured) < 4 || rows[i].value <= 0) {
      fail_msg("%s lacks its unit, its measurement or its value", rows[i].name);
    }
  }
}

// A target that states a rate is taken at its word, another one at the table's.
static void rates_not_stated_are_the_table_s(void** state) {
  (void)state;
  pestle_core_rates_t usual = pestle_sketch_rates(&caps);
  assert_true(usual.l2 >= PESTLE_CPU_L2_RATE && usual.l2 <= PESTLE_CPU_L2_RATE);
  pestle_target_caps_t stated = caps;
  stated.l2_rate = 48;
  pestle_core_rates_t own = pestle_sketch_rates(&stated);
  assert_true(own.l2 > 47 && own.l2 < 49);
  assert_true(own.l3 >= usual.l3 && own.l3 <= usual.l3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_say_where_they_are_from),
      cmocka_unit_test(rates_not_stated_are_the_table_s),
      cmocka_unit_test(tile_fits_registers),
      cmocka_unit_test(large_products_have_large_tiles),
      cmocka_unit_test(blocks_where_operands_crowd_l3),
      cmocka_unit_test(across_is_copied),
      cmocka_unit_test(rates_are_the_target_s),
      cmocka_unit_test(rows_of_windows_share_boxes),
      cmocka_unit_test(windows_are_read_where_they_lie),
      cmocka_unit_test(rows_of_windows_share_panels),
      cmocka_unit_test(cores_want_pieces),
      cmocka_unit_test(cores_leave_blocks_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
