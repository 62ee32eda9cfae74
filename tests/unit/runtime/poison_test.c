// SPDX-License-Identifier: Apache-2.0
// Poisoned memory: what is found, healed, forgotten and kept.
#include "runtime/poison.h"

#include "test.h"

static pestle_test_allocator_t memory;
static pestle_poison_t poison;

static pestle_poison_range_t range(uintptr_t begin, uintptr_t end,
                                   uint64_t stream) {
  return (pestle_poison_range_t){.begin = begin, .end = end, .stream = stream};
}

static pestle_status_t try_add(pestle_poison_range_t r, const char* text) {
  pestle_status_t failure = PESTLE_ERROR(INTERNAL, "%s", text);
  pestle_status_t status = pestle_poison_add(&poison, &r, failure);
  pestle_status_release(failure);
  return status;
}

static void add(pestle_poison_range_t r, const char* text) {
  assert_ok(try_add(r, text));
}

static void heal(uintptr_t begin, uintptr_t end, uint64_t layout) {
  pestle_poison_range_t r = {.begin = begin, .end = end, .layout = layout};
  pestle_poison_heal(&poison, &r);
}

static void assert_found(uintptr_t begin, uintptr_t end, const char* text) {
  pestle_status_t found = pestle_poison_find(&poison, NULL, begin, end);
  if (!text) {
    assert_null(found);
  } else {
    assert_non_null(found);
    assert_string_equal(pestle_status_message(found), text);
  }
  pestle_status_release(found);
}

static int set_up(void** state) {
  (void)state;
  pestle_test_allocator_init(&memory, 0);
  pestle_poison_init(pestle_test_allocator(&memory), &poison);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  pestle_poison_deinit(&poison);
  pestle_test_allocator_check(&memory);
  return 0;
}

static void test_find(void** state) {
  (void)state;
  int device;
  assert_true(pestle_poison_is_empty(&poison));
  assert_found(0, 100, NULL);
  add(range(100, 200, 1), "first");
  add(range(150, 300, 2), "second");
  add(range(400, 400, 1), "of nothing");
  assert_found(0, 100, NULL);
  assert_found(99, 101, "first");
  assert_found(199, 201, "first");
  assert_found(200, 201, "second");
  assert_found(300, 500, NULL);
  // The same addresses of a device are other memory.
  assert_null(pestle_poison_find(&poison, &device, 100, 200));
}

// What was written is healed, and nothing beside it.
static void test_heal(void** state) {
  (void)state;
  add(range(100, 200, 1), "it");
  heal(140, 160, 0);
  assert_found(140, 160, NULL);
  assert_found(139, 140, "it");
  assert_found(160, 161, "it");
  heal(90, 110, 0);
  heal(190, 210, 0);
  assert_found(0, 110, NULL);
  assert_found(110, 111, "it");
  assert_found(189, 300, "it");
  assert_found(190, 300, NULL);
  heal(0, 1000, 0);
  assert_true(pestle_poison_is_empty(&poison));
}

// Elements with gaps are healed by the same ones, or by all bytes.
static void test_layouts(void** state) {
  (void)state;
  pestle_poison_range_t gaps = range(100, 200, 1);
  gaps.layout = 7;
  add(gaps, "it");
  heal(100, 200, 9);
  assert_found(100, 200, "it");
  heal(100, 200, 7);
  assert_true(pestle_poison_is_empty(&poison));
  add(range(100, 200, 1), "it");
  heal(100, 200, 7);
  assert_found(100, 200, "it");
  heal(100, 200, 0);
  assert_true(pestle_poison_is_empty(&poison));
}

// Of each stream the first failure is kept, until that stream's is forgotten.
static void test_forget(void** state) {
  (void)state;
  add(range(100, 200, 1), "first");
  add(range(120, 140, 1), "later");
  add(range(120, 140, 2), "of another");
  assert_int_equal(atomic_load(&poison.count), 2);
  pestle_poison_forget(&poison, 1);
  assert_found(100, 120, NULL);
  assert_found(120, 121, "of another");
  pestle_poison_forget(&poison, 3);
  assert_found(120, 121, "of another");
  pestle_poison_forget(&poison, 2);
  assert_true(pestle_poison_is_empty(&poison));
}

// Without memory nothing changes, and who adds knows.
static void test_no_memory(void** state) {
  (void)state;
  for (unsigned i = 0; i < 16; ++i)
    add(range(100 * i, 100 * i + 50, 1), "it");
  atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + 1);
  assert_code(try_add(range(5000, 5001, 1), "it"), OUT_OF_MEMORY);
  atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + 1);
  heal(110, 120, 0);
  assert_found(110, 120, "it");
  assert_int_equal(atomic_load(&poison.count), 16);
  heal(110, 120, 0);
  assert_found(110, 120, NULL);
  assert_int_equal(atomic_load(&poison.count), 17);
}

static void test_most(void** state) {
  (void)state;
  for (unsigned i = 0; i < PESTLE_POISON_RANGES; ++i)
    add(range(100 * i, 100 * i + 50, 1), "it");
  assert_error(try_add(range(10, 60, 1), "it"), RESOURCE_EXHAUSTED,
               "synchronise the streams that failed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_find),      TEST(test_heal),
                                     TEST(test_layouts),   TEST(test_forget),
                                     TEST(test_no_memory), TEST(test_most)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
