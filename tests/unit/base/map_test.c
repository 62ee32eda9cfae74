// SPDX-License-Identifier: Apache-2.0
// The map and the hashes under it.
#include "base/map.h"

#include "base/hash.h"
#include "test.h"

static void test_numbers(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_map_t map;
  pestle_map_init(pestle_test_allocator(&memory), &map);
  assert_null(pestle_map_find_u64(&map, 1));
  assert_false(pestle_map_remove_u64(&map, 1));
  for (uint64_t i = 0; i < 10000; ++i) {
    assert_true(pestle_map_set_u64(&map, i * 4096, i));
  }
  assert_int_equal(pestle_map_size(&map), 10000);
  for (uint64_t i = 0; i < 10000; ++i) {
    assert_int_equal(pestle_map_find_u64(&map, i * 4096)->u64, i);
    assert_null(pestle_map_find_u64(&map, i * 4096 + 1));
  }
  for (uint64_t i = 0; i < 10000; i += 2) {
    assert_true(pestle_map_remove_u64(&map, i * 4096));
  }
  assert_int_equal(pestle_map_size(&map), 5000);
  // Order of insertion, the removed ones left out.
  size_t cursor = 0;
  uint64_t expected = 1;
  for (pestle_map_entry_t* entry;
       (entry = pestle_map_next(&map, &cursor)) != NULL; expected += 2) {
    assert_int_equal(pestle_map_entry_key_u64(entry), expected * 4096);
    assert_int_equal(entry->value.u64, expected);
  }
  assert_int_equal(expected, 10001);
  pestle_map_deinit(&map);
  pestle_test_allocator_check(&memory);
}

static void test_text(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_map_t map;
  pestle_map_init(pestle_test_allocator(&memory), &map);
  int object = 0;
  assert_true(pestle_map_set_str(&map, PESTLE_STR(""), 1));
  assert_true(pestle_map_set_str(&map, PESTLE_STR("12345678"), 2));
  assert_true(pestle_map_set_str(&map, PESTLE_STR("123456789"), 3));
  assert_true(pestle_map_set_str_ptr(&map, PESTLE_STR("a long name of a node"),
                                     &object));
  assert_true(pestle_map_set_str(&map, PESTLE_STR("123456789"), 4));
  assert_int_equal(pestle_map_size(&map), 4);
  assert_int_equal(pestle_map_find_str(&map, PESTLE_STR(""))->u64, 1);
  assert_int_equal(pestle_map_find_str(&map, PESTLE_STR("12345678"))->u64, 2);
  assert_int_equal(pestle_map_find_str(&map, PESTLE_STR("123456789"))->u64, 4);
  assert_ptr_equal(
      pestle_map_find_str(&map, PESTLE_STR("a long name of a node"))->ptr,
      &object);
  assert_null(pestle_map_find_str(&map, PESTLE_STR("1234567")));
  size_t cursor = 0;
  pestle_map_next(&map, &cursor);
  pestle_map_entry_t* second = pestle_map_next(&map, &cursor);
  assert_true(pestle_str_equal_c(pestle_map_entry_key(second), "12345678"));

  bool added;
  assert_non_null(pestle_map_put(&map, "x", 1, &added));
  assert_true(added);
  assert_non_null(pestle_map_put(&map, "x", 1, &added));
  assert_false(added);
  pestle_map_clear(&map);
  assert_int_equal(pestle_map_size(&map), 0);
  assert_null(pestle_map_find_str(&map, PESTLE_STR("123456789")));
  assert_true(pestle_map_set_str(&map, PESTLE_STR("123456789"), 5));
  pestle_map_deinit(&map);
  pestle_test_allocator_check(&memory);
}

// As an LRU uses it: as much comes as goes, and memory stays bounded.
static void test_churn(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_map_t map;
  pestle_map_init(pestle_test_allocator(&memory), &map);
  for (uint64_t i = 0; i < 100000; ++i) {
    assert_true(pestle_map_set_u64(&map, i, i));
    if (i >= 100) assert_true(pestle_map_remove_u64(&map, i - 100));
    if (i >= 50)
      assert_int_equal(pestle_map_find_u64(&map, i - 50)->u64, i - 50);
  }
  assert_int_equal(pestle_map_size(&map), 100);
  assert_true(atomic_load(&memory.peak_bytes) < 64 * 1024);
  pestle_map_deinit(&map);
  pestle_test_allocator_check(&memory);
}

static void test_out_of_memory(void** state) {
  (void)state;
  for (size_t fail_at = 1;; ++fail_at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, fail_at);
    pestle_map_t map;
    pestle_map_init(pestle_test_allocator(&memory), &map);
    uint64_t added = 0;
    for (int i = 0; i < 100; ++i) {
      char key[32];
      int size = snprintf(key, sizeof(key), "a name of node %d", i);
      if (pestle_map_set_str(&map, pestle_str_make(key, (size_t)size), 1)) {
        ++added;
      }
      assert_int_equal(pestle_map_size(&map), added);
    }
    bool failed = pestle_test_allocator_failed(&memory);
    assert_int_equal(added, failed ? 99 : 100);
    pestle_map_deinit(&map);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

static void test_hash(void** state) {
  (void)state;
  // XXH3's published value for no input: other machines must agree.
  pestle_hash128_t empty = pestle_hash128(NULL, 0);
  assert_true(empty.low == UINT64_C(0x6001c324468d497f));
  assert_true(empty.high == UINT64_C(0x99aa06d3014798d8));
  assert_true(pestle_hash64(NULL, 0) == UINT64_C(0x2d06800538d394c2));

  unsigned char data[5000];
  for (size_t i = 0; i < sizeof(data); ++i)
    data[i] = (unsigned char)(i * 31);
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  for (size_t at = 0, step = 1; at < sizeof(data); at += step, ++step) {
    if (step > sizeof(data) - at) step = sizeof(data) - at;
    pestle_hasher_update(&hasher, data + at, step);
  }
  pestle_hash128_t hash = pestle_hasher_finish(&hasher);
  assert_true(pestle_hash128_equal(hash, pestle_hash128(data, sizeof(data))));
  assert_true(pestle_hash128_equal(hash, pestle_hasher_finish(&hasher)));
  assert_true(pestle_hasher_finish64(&hasher) ==
              pestle_hash64(data, sizeof(data)));

  char text[PESTLE_HASH128_HEX_SIZE];
  pestle_hash128_to_hex(empty, text);
  assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
  pestle_hash128_t again;
  assert_true(pestle_hash128_from_hex(pestle_str(text), &again));
  assert_true(pestle_hash128_equal(again, empty));
  assert_false(pestle_hash128_from_hex(PESTLE_STR("99aa"), &again));
  text[7] = 'G';
  assert_false(pestle_hash128_from_hex(pestle_str(text), &again));
}

static void test_hashed_fields_do_not_run_together(void** state) {
  (void)state;
  pestle_hasher_t a, b;
  pestle_hasher_init(&a);
  pestle_hasher_init(&b);
  pestle_hasher_update_str(&a, PESTLE_STR("ab"));
  pestle_hasher_update_str(&a, PESTLE_STR("c"));
  pestle_hasher_update_str(&b, PESTLE_STR("a"));
  pestle_hasher_update_str(&b, PESTLE_STR("bc"));
  assert_false(
      pestle_hash128_equal(pestle_hasher_finish(&a), pestle_hasher_finish(&b)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_churn),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_hash),
      cmocka_unit_test(test_hashed_fields_do_not_run_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
