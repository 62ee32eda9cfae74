// SPDX-License-Identifier: Apache-2.0
// The ref backend's products of tiles in registers, barriers that some lanes only
// arrive at, and matrices that are stored: right, and each way of being wrong is
// told.
#include "unit/plugins/register_kernel.h"
#include "unit/plugins/tile_kernel.h"

enum {
  N = 64,
  LANES = 128,
  LINES = sizeof register_lines / sizeof *register_lines,
};

typedef struct data_t {
  uint32_t a[LANES * 16];  // words of a lane: four for 16 taps
  uint16_t b[N * N], y[N * N], want[N * N];
} data_t;

static int left(int row, int tap) {
  return (row * 5 + tap * 3) % 7 - 3;
}

static int right(int tap, int column) {
  return (tap * 3 + column * 5 + column / 8) % 5 - 2;
}

static uint16_t narrow(int x) {
  return (uint16_t)pestle_float_encode(PESTLE_F16, x);
}

// Word w of 16 taps of lane l: MMA's fragment a.
static uint32_t word_of(int lane, int u, int w) {
  int row = lane / 32 * 16 + lane % 32 / 4 + 8 * (w % 2);
  int tap = 16 * u + 2 * (lane % 4) + 8 * (w / 2);
  return narrow(left(row, tap)) | (uint32_t)narrow(left(row, tap + 1)) << 16;
}

static data_t* make_data(void) {
  data_t* d = calloc(1, sizeof *d);
  assert_non_null(d);
  for (int lane = 0; lane < LANES; ++lane) {
    for (int i = 0; i < 16; ++i)
      d->a[lane * 16 + i] = word_of(lane, i / 4, i % 4);
  }
  for (int k = 0; k < N; ++k) {
    for (int n = 0; n < N; ++n)
      d->b[k * N + n] = narrow(right(k, n));
  }
  for (int m = 0; m < N; ++m) {
    for (int n = 0; n < N; ++n) {
      int sum = 0;
      for (int k = 0; k < N; ++k)
        sum += left(m, k) * right(k, n);
      d->want[m * N + n] = narrow(sum);
    }
  }
  return d;
}

static int32_t run(const tile_kernel_t* r, data_t* d) {
  void* buffers[3] = {d->a, d->b, d->y};
  memset(d->y, 0, sizeof d->y);
  return run_kernel(r, buffers);
}

static void test_right(void** state) {
  (void)state;
  tile_kernel_t r;
  data_t* d = make_data();
  assert_ok(load_kernel(&r, register_lines, LINES, NULL));
  assert_ok(pestle_kir_verify(&r.kernel.view));
  for (int i = 0; i < 20; ++i) {
    assert_int_equal(run(&r, d), 0);
    assert_memory_equal(d->y, d->want, sizeof d->y);
  }
  assert_string_equal(log_text, "");
  unload_kernel(&r);
  free(d);
}

// The only barrier: what arrives at it is counted.
static void test_verifier(void** state) {
  (void)state;
  static const struct {
    edit_t edit;
    const char* rule;
  } rows[] = {
      {{"mbar_init", 0, "1", "2"},
       "1 lanes arrive at @full, which waits for 2"},
      {{"eq %0, %4", 0, "eq %0, %4", "lt %0, %4"},
       "255 lanes arrive at @full, which waits for 1"},
      {{"mbar_expect", 0, "8192", "4096"}, "8192 bytes arrive, not 4096"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(register_lines, LINES, &rows[i].edit, rows[i].rule);
}

static const fault_t faults[] = {
    {"tile a is not fenced",
     {"wgmma_fence", 0, NULL, NULL},
     "its tile a was written and no wgmma_fence came since"},
    {"tile a is written again too early",
     {"wgmma_wait", 0, NULL, NULL},
     "is written before wgmma_wait"},
    {"one batch may be under way still",
     {"wgmma_wait", 0, "0", "1"},
     "is written before wgmma_wait"},
    {"sums begin anew each step",
     {"wgmma_ra @sums, %37", 0, "393280", "917568"},
     NULL},
    {"tile b is none of columns",
     {"wgmma_ra @sums, %37", 0, "393280", "262208"},
     NULL},
    {"words of another lane's rows",
     {"madi %4, 16, %0", 0, "%4, 16", "%4, 12"},
     NULL},
    {"tile b is not waited for", {"mbar_wait", 0, NULL, NULL}, "shared memory"},
    {"nobody arrives", {"sync_arrive", 0, NULL, NULL}, "is stuck"},
    {"who waits does so for itself alone",
     {"sync %1, 256", 0, "256", "128"},
     "shared memory"},
    {"more arrive than it has",
     {"sync_arrive", 0, "256", "64"},
     "more than 64 lanes arrive"},
    {"matrices are not fenced",
     {"tile_fence", 0, NULL, NULL},
     "no fence for tiles after the write of lane"},
    {"matrices are turned", {"stmatrix", 0, "%76, 0", "%76, 1"}, NULL},
    {"matrices without a swizzle", {"xor %77", 0, "%50", "%0"}, NULL},
    {"matrices leave their tile", {"madi %78, 8", 0, "%78, 8", "%78, 800"}, ""},
};

static void test_faults(void** state) {
  (void)state;
  data_t* d = make_data();
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
    tile_kernel_t r;
    assert_ok(load_kernel(&r, register_lines, LINES, &faults[i].edit));
    int32_t trap = run(&r, d);
    expect_fault(&faults[i], trap, memcmp(d->y, d->want, sizeof d->y) != 0);
    unload_kernel(&r);
  }
  free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right),
                                     cmocka_unit_test(test_verifier),
                                     cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
