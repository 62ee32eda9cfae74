// SPDX-License-Identifier: Apache-2.0
// The ref backend's clusters: groups that copy into each other's shared memory, arrive
// at each other's barriers and read each other's sums are right in many orders, and what
// hardware would punish with a hang, a fault or now and then a wrong number is told.
#include "unit/plugins/cluster_kernel.h"
#include "unit/plugins/tile_kernel.h"

enum { MOST = 520 * 200 };

typedef struct product_t {
  int m, n, k;
  uint16_t a[MOST], b[MOST];
  float y[MOST], want[MOST];
} product_t;

static product_t* make_product(int m, int n, int k) {
  product_t* d = calloc(1, sizeof *d);
  assert_non_null(d);
  d->m = m, d->n = n, d->k = k;
  for (int i = 0; i < m * k; ++i)
    d->a[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 7 % 13 - 6);
  for (int i = 0; i < k * n; ++i)
    d->b[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 5 % 11 - 5);
  for (int r = 0; r < m; ++r) {
    for (int c = 0; c < n; ++c) {
      int sum = 0;  // of whole numbers: exact in any order
      for (int i = 0; i < k; ++i)
        sum += ((r * k + i) * 7 % 13 - 6) * ((i * n + c) * 5 % 11 - 5);
      d->want[r * n + c] = (float)sum;
    }
  }
  return d;
}

static bool is_right(const product_t* d) {
  return !memcmp(d->y, d->want, (size_t)(d->m * d->n) * sizeof *d->y);
}

static int32_t run_product(const tile_kernel_t* r, product_t* d) {
  void* buffers[3] = {d->a, d->b, d->y};
  memset(d->y, 0, sizeof d->y);
  return run_kernel(r, buffers);
}

// --- Right ---

// Each run has another order.
static void expect_right(const char* const* lines, size_t count, product_t* d) {
  tile_kernel_t r;
  assert_ok(load_kernel(&r, lines, count, NULL));
  assert_int_equal(pestle_kir_cluster(&r.kernel.view), 2);
  assert_ok(pestle_kir_verify(&r.kernel.view));
  for (int run = 0; run < 5; ++run) {
    assert_int_equal(run_product(&r, d), 0);
    assert_true(is_right(d));
  }
  assert_string_equal(log_text, "");
  unload_kernel(&r);
}

enum {
  SHARED_LINES = sizeof shared_lines / sizeof *shared_lines,
  PARTS_LINES = sizeof parts_lines / sizeof *parts_lines,
};

static void test_shared(void** state) {
  (void)state;
  product_t* d = make_product(520, 128, 200);
  expect_right(shared_lines, SHARED_LINES, d);
  free(d);
}

static void test_parts(void** state) {
  (void)state;
  product_t* d = make_product(70, 72, 200);
  expect_right(parts_lines, PARTS_LINES, d);
  free(d);
}

// --- Faults ---

static void expect_faults(const char* const* lines, size_t lines_count,
                          const fault_t* faults, size_t count, product_t* d) {
  for (size_t i = 0; i < count; ++i) {
    tile_kernel_t r;
    assert_ok(load_kernel(&r, lines, lines_count, &faults[i].edit));
    int32_t trap = run_product(&r, d);
    expect_fault(&faults[i], trap, !is_right(d));
    unload_kernel(&r);
  }
}

static void test_shared_faults(void** state) {
  (void)state;
  static const fault_t faults[] = {
      {"no group waits for the others' barriers",
       {"cluster_sync", 0, "cluster_sync", "barrier"},
       "ref: kernel"},
      {"groups end before the others are done",
       {"cluster_sync", 1, NULL, NULL},
       "of the cluster"},
      {"groups end when their own lanes are done",
       {"cluster_sync", 1, "cluster_sync", "barrier"},
       "of the cluster"},
      {"barriers are not fenced",
       {"mbar_fence", 0, NULL, NULL},
       "no fence for tiles after the write of lane"},
      {"a slot is given back to its own group alone",
       {"mbar_arrive", 0, "%104", "%102"},
       "ref: kernel"},
      {"a slot is given back to the other group alone",
       {"%103 = remainder", 0, "remainder %26, %1", "madi %3, -1, %27"},
       "ref: kernel"},
      {"a slot is not given back",
       {"mbar_arrive", 0, NULL, NULL},
       "is stuck: no lane can go on"},
      {"a slot has fewer readers",
       {"mbar_init %10, 2", 0, "2", "1"},
       "ref: kernel"},
      {"the other group's bytes are not expected",
       {"mbar_expect", 0, "24576", "16384"},
       "it expects too few bytes"},
      {"a copy comes to its own group alone",
       {"tile_load_all", 0, "tile_load_all", "tile_load"},
       "is stuck: no lane can go on"},
      {"a copy that is a group's own comes to all",
       {"tile_load %53", 0, "tile_load", "tile_load_all"},
       "ref: kernel"},
      {"groups bring the same part",
       {"%56 = madi", 0, "madi %3,", "madi %0,"},
       "ref: kernel"},
      {"groups bring the same columns",
       {"%57 = madi", 0, "madi %3,", "madi %0,"},
       NULL},
      {"a group waits at the other's barrier",
       {"%83 = ref", 0, "%83 = ref @full, %81 : addr",
        "%900 = ref @full, %81 : addr\n%901 = madi %3, -1, %27 : index\n"
        "%83 = ref_at %900, %901 : addr"},
       "it waits at a barrier of group"},
      {"there is no such group",
       {"%103 = remainder", 0, "remainder %26, %1", "madi %26, 1, %1"},
       "there is no group"},
  };
  product_t* d = make_product(520, 128, 200);
  size_t count = sizeof faults / sizeof *faults;
  expect_faults(shared_lines, SHARED_LINES, faults, count, d);
  free(d);
}

static void test_parts_faults(void** state) {
  (void)state;
  static const fault_t faults[] = {
      {"sums are read before they are there",
       {"cluster_sync", 0, NULL, NULL},
       "ref: kernel"},
      {"sums are read when one's own are there",
       {"cluster_sync", 0, "cluster_sync", "barrier"},
       "ref: kernel"},
      {"groups end while their sums are read",
       {"cluster_sync", 1, NULL, NULL},
       "of the cluster"},
      {"one's own sums count twice",
       {"ref_at %179, %28", 0, "%28", "%4"},
       NULL},
      {"both take the same part of k",
       {"%46 = madi", 0, "madi %4,", "madi %0,"},
       NULL},
  };
  product_t* d = make_product(70, 72, 200);
  size_t count = sizeof faults / sizeof *faults;
  expect_faults(parts_lines, PARTS_LINES, faults, count, d);
  free(d);
}

// --- What the verifier sees ---

static void test_verifier(void** state) {
  (void)state;
  static const struct {
    edit_t edit;
    const char* rule;  // NULL: it is sound
  } rows[] = {
      {{"cluster_sync", 0, "cluster_sync", "barrier"},
       "no cluster_sync before the first access"},
      {{"cluster_sync", 1, "cluster_sync", "barrier"},
       "no cluster_sync behind the last access"},
      {{"cluster_sync", 1, NULL, NULL},
       "no cluster_sync behind the last access"},
      {{"mbar_expect", 0, "24576", "16384"}, "24576 bytes arrive, not 16384"},
      {{"tile_load_all", 0, "tile_load_all", "tile_load"},
       "16384 bytes arrive, not 24576"},
      {{"%100 = lt", 0, "lt %26, %1", "lt %26, %76"},
       "4 lanes arrive at @empty, which waits for 2"},
      {{"%103 = remainder", 0, "remainder %26, %1", "madi %3, 1, %0"}, NULL},
      {{"%103 = remainder", 0, "remainder %26, %1", "madi %26, 1, %1"},
       "groups 2 to 3 of a cluster of 2"},
      {{"ref_at", 0, "ref_at %102", "ref_at %83"}, NULL},
      {{"group.x", 0, "group.x", "serial"}, "directly under the group loops"},
      {{"cluster :", 0, "cluster", "group.y"}, "a cluster of 1"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(shared_lines, SHARED_LINES, &rows[i].edit, rows[i].rule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared), cmocka_unit_test(test_parts),
      cmocka_unit_test(test_shared_faults), cmocka_unit_test(test_parts_faults),
      cmocka_unit_test(test_verifier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
