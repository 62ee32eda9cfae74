// SPDX-License-Identifier: Apache-2.0
// The ref backend's copies of windows (im2col): which pixels they are, where there are
// none, and the mistakes that hardware would answer with other pixels.
#include "unit/plugins/tile_kernel.h"
#include "unit/plugins/window_kernel.h"

enum {
  IMAGES = 2,
  HEIGHT = 5,
  WIDTH = 6,
  CHANNELS = 72,
  COLUMNS = 3,  // of windows; as many rows as the image has
  PIXELS = 64,
  BOX = 64,
  LINES = sizeof window_lines / sizeof *window_lines,
};

typedef struct data_t {
  uint16_t x[IMAGES * HEIGHT * WIDTH * CHANNELS];
  uint16_t y[2 * PIXELS * BOX], want[2 * PIXELS * BOX];
} data_t;

static data_t* make_data(void) {
  data_t* d = calloc(1, sizeof *d);
  assert_non_null(d);
  for (int i = 0; i < IMAGES * HEIGHT * WIDTH * CHANNELS; ++i)
    d->x[i] = (uint16_t)(i + 1);  // each pixel's own bits
  for (int i = 0; i < 2 * PIXELS * BOX; ++i) {
    int window = 4 + i / BOX % PIXELS, c = i / (PIXELS * BOX) * BOX + i % BOX;
    int n = window / (HEIGHT * COLUMNS), row = window / COLUMNS % HEIGHT + 1;
    int column = window % COLUMNS * 2 - 1 + 2;
    if (n < IMAGES && row < HEIGHT && column < WIDTH && c < CHANNELS)
      d->want[i] = d->x[((n * HEIGHT + row) * WIDTH + column) * CHANNELS + c];
  }
  return d;
}

static int32_t run_windows(const tile_kernel_t* r, data_t* d) {
  void* buffers[2] = {d->x, d->y};
  memset(d->y, 0xff, sizeof d->y);
  return run_kernel(r, buffers);
}

static void test_right(void** state) {
  (void)state;
  tile_kernel_t r;
  data_t* d = make_data();
  assert_ok(load_kernel(&r, window_lines, LINES, NULL));
  for (int run = 0; run < 3; ++run) {
    assert_int_equal(run_windows(&r, d), 0);
    assert_memory_equal(d->y, d->want, sizeof d->y);
  }
  assert_string_equal(log_text, "");
  unload_kernel(&r);
  free(d);
}

static const fault_t faults[] = {
    {"no window begins there",
     {"%14 = coord", 0, "%1, %13", "%0, %13"},
     "no window stands at 0 along dim 1 of its map"},
    {"the first window is behind the last",
     {"%14 = coord", 0, "%1, %13", "%8, %13"},
     "no window stands at 4096 along dim 1"},
    {"an offset below the window",
     {"%10 = const 2", 0, "2", "-1"},
     "a window has no offset -1 along dim 1"},
    {"the offset is forgotten", {"%11 = coord", 0, "%10, %1", "%0, %1"}, NULL},
    {"the step is 1", {"@map_x", 0, "294, 2, 0", "294, 1, 0"}, NULL},
    {"fewer windows a row", {"@map_x", 0, "4294967294", "4294967292"}, NULL},
    {"no padding behind",
     {"@map_x", 0, "2, 0, 0, 1]", "2, 0, 4294967295, 1]"},
     NULL},
    {"more images than there are",
     {"@map_x", 0, "2, 1, 2160", "3, 1, 2160"},
     "the tensor map leaves its buffer"},
    {"another swizzle",
     {"@map_x", 0, "4, 128", "4, 64"},
     "is no place for a box"},
    {"too few bytes",
     {"mbar_expect", 0, "16384", "8192"},
     "it expects too few bytes"},
    {"the pixels are not waited for",
     {"mbar_wait", 0, NULL, NULL},
     "shared memory"},
};

static void test_faults(void** state) {
  (void)state;
  data_t* d = make_data();
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
    tile_kernel_t r;
    assert_ok(load_kernel(&r, window_lines, LINES, &faults[i].edit));
    int32_t trap = run_windows(&r, d);
    bool wrong = memcmp(d->y, d->want, sizeof d->y) != 0;
    expect_fault(&faults[i], trap, wrong);
    unload_kernel(&r);
  }
  free(d);
}

static void test_verifier(void** state) {
  (void)state;
  static const char no_map[] = "is no view of a global buffer by boxes";
  static const struct {
    edit_t edit;
    const char* rule;  // NULL: it is sound
  } rows[] = {
      {{"mbar_expect", 0, "16384", "16384"}, NULL},
      {{"mbar_expect", 0, "16384", "8192"}, "16384 bytes arrive, not 8192"},
      {{"tile_load_window %7", 0, "_window", ""}, "the map is of windows"},
      {{"@map_x", 0, ", 1, 4294967295, 4294967294, 2, 0, 0, 1]", "]"},
       "the map is not of windows"},
      {{"%12 = coord", 0, "%0, %11", "%0, %1"},
       "the coordinate has 5 numbers, and the map 4 dims"},
      {{"@map_x", 0, "294, 2, 0", "294, 9, 0"}, no_map},
      {{"@map_x", 0, "4294967294", "200"}, no_map},
      {{"@map_x", 0, "4294967294", "4294967280"}, no_map},  // there are none
      {{"@map_x", 0, "5, 1, 432", "5, 2, 432"}, no_map},
      {{"@map_x", 0, "0, 1, 4294967295", "0, 2, 4294967295"}, no_map},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(window_lines, LINES, &rows[i].edit, rows[i].rule);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right),
                                     cmocka_unit_test(test_faults),
                                     cmocka_unit_test(test_verifier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
