// SPDX-License-Identifier: Apache-2.0
// Sets of poisoned memory: what is found, healed and joined.
#include "runtime/poison.h"

#include "base/mem.h"
#include "test.h"

static pestle_test_allocator_t memory;

static pestle_status_t failure(const char* text) {
  return PESTLE_ERROR(INTERNAL, "%s", text);
}

static pestle_poison_range_t range(uintptr_t begin, uintptr_t end) {
  return (pestle_poison_range_t){.begin = begin, .end = end};
}

static void add(pestle_poison_t** set, pestle_poison_range_t r,
                const char* text) {
  pestle_status_t status = failure(text);
  assert_ok(
      pestle_poison_add(pestle_test_allocator(&memory), set, &r, 1, status));
  pestle_status_release(status);
}

static void assert_found(const pestle_poison_t* set, uintptr_t begin,
                         uintptr_t end, const char* text) {
  pestle_status_t found = pestle_poison_find(set, NULL, begin, end);
  if (!text) {
    assert_null(found);
  } else {
    assert_non_null(found);
    assert_string_equal(pestle_status_message(found), text);
  }
}

static int set_up(void** state) {
  (void)state;
  pestle_test_allocator_init(&memory, 0);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  pestle_test_allocator_check(&memory);
  return 0;
}

static void test_find(void** state) {
  (void)state;
  pestle_poison_t* set = NULL;
  int device;
  assert_found(set, 0, 100, NULL);
  add(&set, range(100, 200), "first");
  add(&set, range(150, 300), "second");
  add(&set, range(400, 400), "of nothing");
  assert_found(set, 0, 100, NULL);
  assert_found(set, 99, 101, "first");
  assert_found(set, 199, 201, "first");
  assert_found(set, 200, 201, "second");
  assert_found(set, 300, 500, NULL);
  // The same addresses of a device are other memory.
  assert_null(pestle_poison_find(set, &device, 100, 200));
  pestle_poison_release(set);
}

// What was written is healed, and nothing beside it.
static void test_heal(void** state) {
  (void)state;
  pestle_poison_t* set = NULL;
  add(&set, range(100, 200), "it");
  pestle_poison_t* before = set;
  pestle_poison_retain(before);
  pestle_poison_range_t middle = range(140, 160);
  assert_ok(pestle_poison_heal(&set, &middle));
  assert_found(set, 140, 160, NULL);
  assert_found(set, 139, 140, "it");
  assert_found(set, 160, 161, "it");
  // A set that somebody holds stays as it was.
  assert_found(before, 140, 160, "it");
  pestle_poison_release(before);
  pestle_poison_range_t all = range(0, 1000);
  assert_ok(pestle_poison_heal(&set, &all));
  assert_null(set);
  assert_ok(pestle_poison_heal(&set, &all));
}

// Elements with gaps are healed by the same ones, or by all bytes.
static void test_layouts(void** state) {
  (void)state;
  pestle_poison_t* set = NULL;
  pestle_poison_range_t gaps = range(100, 200), other = gaps, dense = gaps;
  gaps.layout = 7;
  other.layout = 9;
  add(&set, gaps, "it");
  assert_ok(pestle_poison_heal(&set, &other));
  assert_found(set, 100, 200, "it");
  assert_ok(pestle_poison_heal(&set, &gaps));
  assert_null(set);
  add(&set, dense, "it");
  assert_ok(pestle_poison_heal(&set, &gaps));
  assert_found(set, 100, 200, "it");
  assert_ok(pestle_poison_heal(&set, &dense));
  assert_null(set);
}

static void test_join(void** state) {
  (void)state;
  pestle_poison_t *a = NULL, *b = NULL;
  assert_ok(pestle_poison_join(&a, b));
  assert_null(a);
  add(&b, range(10, 20), "b");
  assert_ok(pestle_poison_join(&a, b));
  assert_found(a, 10, 11, "b");
  // What is known is not heaped up.
  assert_ok(pestle_poison_join(&a, b));
  assert_int_equal(a->count, 1);
  add(&b, range(30, 40), "more");
  assert_ok(pestle_poison_join(&a, b));
  assert_int_equal(a->count, 2);
  assert_found(a, 30, 31, "more");
  pestle_poison_release(a);
  pestle_poison_release(b);
}

// Without memory a set stays as it was.
static void test_no_memory(void** state) {
  (void)state;
  pestle_poison_t *set = NULL, *other = NULL;
  pestle_poison_range_t r = range(50, 60), part = range(12, 14);
  add(&set, range(10, 20), "it");
  add(&other, range(30, 40), "other");
  pestle_status_t status = failure("more");
  for (int i = 0; i < 3; ++i) {
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + 1);
    pestle_status_t result =
        i == 0 ? pestle_poison_add(pestle_test_allocator(&memory), &set, &r, 1,
                                   status)
        : i == 1 ? pestle_poison_heal(&set, &part)
                 : pestle_poison_join(&set, other);
    assert_code(result, OUT_OF_MEMORY);
    assert_int_equal(set->count, 1);
    assert_found(set, 12, 14, "it");
  }
  pestle_status_release(status);
  pestle_poison_release(set);
  pestle_poison_release(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_find), TEST(test_heal),
                                     TEST(test_layouts), TEST(test_join),
                                     TEST(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
