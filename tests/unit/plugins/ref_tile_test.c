// SPDX-License-Identifier: Apache-2.0
// The ref backend's tiles: a product by warpgroups is right in many orders of what
// goes on by itself, and each way of being wrong that hardware would punish with a
// hang or now and then a wrong number is told at once.
#include "unit/plugins/ring_kernel.h"
#include "unit/plugins/tile_kernel.h"

enum { M = 320, N = 128, K = 320 };

typedef struct data_t {
  uint16_t a[M * K], b[K * N];
  float y[M * N], want[M * N];
} data_t;

static data_t* make_data(void) {
  data_t* d = calloc(1, sizeof *d);
  assert_non_null(d);
  for (int i = 0; i < M * K; ++i)
    d->a[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 7 % 13 - 6);
  for (int i = 0; i < K * N; ++i)
    d->b[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 5 % 11 - 5);
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      float sum = 0;  // of whole numbers: exact in any order
      for (int k = 0; k < K; ++k) {
        sum += (float)((m * K + k) * 7 % 13 - 6) *
               (float)((k * N + n) * 5 % 11 - 5);
      }
      d->want[m * N + n] = sum;
    }
  }
  return d;
}

enum { LINES = sizeof ring_lines / sizeof *ring_lines };

static int32_t run_ring(const tile_kernel_t* r, data_t* d) {
  void* buffers[3] = {d->a, d->b, d->y};
  memset(d->y, 0, sizeof d->y);
  return run_kernel(r, buffers);
}

// --- Right ---

// Each run has another order.
static void test_right(void** state) {
  (void)state;
  tile_kernel_t r;
  data_t* d = make_data();
  assert_ok(load_kernel(&r, ring_lines, LINES, NULL));
  for (int run = 0; run < 6; ++run) {
    assert_int_equal(run_ring(&r, d), 0);
    assert_memory_equal(d->y, d->want, sizeof d->y);
  }
  assert_string_equal(log_text, "");
  unload_kernel(&r);
  free(d);
}

// --- Faults ---

static const fault_t faults[] = {
    {"strips are not fenced",
     {"tile_fence", 0, NULL, NULL},
     "no fence for tiles after the write of lane"},
    {"barriers are not fenced",
     {"mbar_fence", 0, NULL, NULL},
     "no fence for tiles after the write of lane"},
    {"sums are not fenced",
     {"wgmma_fence", 0, NULL, NULL},
     "its sums were written and no wgmma_fence came since"},
    {"products are not waited for", {"wgmma_wait", 0, NULL, NULL}, "wait"},
    {"the slot is not given back",
     {"mbar_arrive", 0, NULL, NULL},
     "is stuck: no lane can go on"},
    {"the slot's parity is turned",
     {"madi %51, -1, %32", 0, "%51, -1, %32", "%51, 1, %0"},
     "is stuck: no lane can go on"},
    {"the tile's parity is turned",
     {"mbar_wait %91, %90", 0, "%90", "%32"},
     "used without a wait for the write of"},
    {"the tile is not waited for",
     {"mbar_wait %91, %90", 0, NULL, NULL},
     "shared memory"},
    {"the slot is not waited for",
     {"mbar_wait %53, %52", 0, NULL, NULL},
     "ref: kernel"},
    {"too few bytes",
     {"mbar_expect", 0, "24576", "16384"},
     "it expects too few bytes"},
    {"too many bytes",
     {"mbar_expect", 0, "24576", "24592"},
     "is stuck: no lane can go on"},
    {"a slot has more readers",
     {"mbar_init %9, 2", 0, "2", "3"},
     "is stuck: no lane can go on"},
    {"a slot has fewer readers",
     {"mbar_init %9, 2", 0, "2", "1"},
     "ref: kernel"},
    {"registers that are not there",
     {"registers 232", 0, "232", "240"},
     "is stuck: no lane can go on"},
    {"strips overtake their copies",
     {"tile_wait 1", 0, "1", "3"},
     "written without a wait for the read of instruction"},
    {"a barrier of a warpgroup is left out",
     {"sync %30, 128", 1, NULL, NULL},
     "of shared memory"},
    {"a barrier waits for too many",
     {"sync %30, 128", 0, "128", "288"},
     "is stuck: no lane can go on"},
    {"another swizzle",
     {"@map_a", 0, "[0, 2, 128,", "[0, 2, 64,"},
     "is no place for a box"},
    {"strips without a swizzle", {"xor %116", 0, "xor %116", "add %0"}, NULL},
    {"a transposed tile is none", {"wgmma @sums", 0, "393280", "262208"}, NULL},
    {"a map is longer than its tensor",
     {"@map_y", 0, "0, 320, 64,", "0, 384, 64,"},
     "the tensor map leaves its buffer"},
};

static void test_faults(void** state) {
  (void)state;
  data_t* d = make_data();
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
    const fault_t* f = &faults[i];
    tile_kernel_t r;
    assert_ok(load_kernel(&r, ring_lines, LINES, &f->edit));
    int32_t trap = run_ring(&r, d);
    bool wrong = memcmp(d->y, d->want, sizeof d->y) != 0;
    expect_fault(f, trap, wrong);
    unload_kernel(&r);
  }
  free(d);
}

// --- What the verifier sees ---

static void test_verifier(void** state) {
  (void)state;
  static const struct {
    edit_t edit;
    const char* rule;  // NULL: it is sound
  } rows[] = {
      {{"registers 232", 0, "232", "232"}, NULL},
      {{"registers 232", 0, "232", "240"},
       "66560 registers at last, the group only the 64512"},
      {{"registers 232", 0, "232", "236"}, "24 to 256, in eights"},
      {{"registers -40", 0, "-40", "-56"}, "the group only the 64512"},
      {{"mbar_expect", 0, "24576", "16384"}, "24576 bytes arrive, not 16384"},
      {{"@map_a", 0, "320, 128, 320", "320, 64, 320"}, "16384 bytes arrive"},
      {{"mbar_init %9, 2", 0, "2", "3"}, NULL},  // slots differ
      {{"mbar_init %7, 1", 0, "1", "1"}, NULL},
      {{"@map_a", 0, "[0, 2, 128,", "[0, 2, 64,"},
       "with a swizzle of 64 bytes"},
      {{"@tile_a : shared", 0, "align 1024", "align 512"}, "not of 1024"},
      {{"wgmma @sums", 0, "393280", "16908352"}, "no such swizzle"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(ring_lines, LINES, &rows[i].edit, rows[i].rule);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right),
                                     cmocka_unit_test(test_faults),
                                     cmocka_unit_test(test_verifier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
