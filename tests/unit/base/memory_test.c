// SPDX-License-Identifier: Apache-2.0
// The system allocator, the arena and the vector.
#include "base/arena.h"
#include "base/bits.h"
#include "base/mem.h"
#include "base/vec.h"
#include "test.h"

static void test_system_allocator_aligns_and_keeps(void** state) {
  (void)state;
  pestle_allocator_t system = pestle_allocator_system();
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    unsigned char* block = pestle_alloc_aligned(system, 100, alignment);
    assert_non_null(block);
    assert_true(pestle_is_aligned(block, alignment));
    for (int i = 0; i < 100; ++i)
      block[i] = (unsigned char)i;
    block = system.resize(system.self, block, 100, 5000, alignment);
    assert_true(pestle_is_aligned(block, alignment));
    for (int i = 0; i < 100; ++i)
      assert_int_equal(block[i], i);
    block = system.resize(system.self, block, 5000, 10, alignment);
    for (int i = 0; i < 10; ++i)
      assert_int_equal(block[i], i);
    pestle_free_aligned(system, block, 10, alignment);
  }
}

static void test_impossible_sizes(void** state) {
  (void)state;
  pestle_allocator_t system = pestle_allocator_system();
  assert_null(pestle_alloc_array(system, SIZE_MAX / 2, 4));
  // volatile: the compiler would warn about a size that it can see.
  volatile size_t huge = SIZE_MAX - 10;
  assert_null(pestle_alloc_aligned(system, huge, 64));
  pestle_dealloc(system, NULL, 10);
}

static void test_arena_aligns(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_arena_t arena;
  pestle_arena_init(pestle_test_allocator(&memory), &arena);
  assert_int_equal(atomic_load(&memory.live_bytes), 0);
  for (size_t round = 0; round < 200; ++round) {
    for (size_t alignment = 1; alignment <= 256; alignment *= 2) {
      size_t size = round * 7 % 100;
      unsigned char* block = pestle_arena_alloc(&arena, size, alignment);
      assert_non_null(block);
      assert_true(pestle_is_aligned(block, alignment));
      memset(block, 0xab, size);
    }
  }
  assert_int_equal(arena.total_size, atomic_load(&memory.live_bytes));
  pestle_arena_deinit(&arena);
  pestle_test_allocator_check(&memory);
}

static void test_arena_holds_huge_blocks(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_arena_t arena;
  pestle_arena_init(pestle_test_allocator(&memory), &arena);
  size_t size = (size_t)5 << 20;
  char* huge = pestle_arena_alloc_zero(&arena, size, 4096);
  assert_non_null(huge);
  assert_int_equal(huge[size - 1], 0);
  assert_string_equal(pestle_arena_strdup(&arena, "name"), "name");
  assert_string_equal(pestle_arena_strndup(&arena, PESTLE_STR("view")), "view");
  assert_null(pestle_arena_alloc(&arena, SIZE_MAX - 20, 16));
  assert_null(PESTLE_ARENA_ARRAY(&arena, int64_t, SIZE_MAX / 4));
  // A reset keeps no huge block, but an ordinary one.
  pestle_arena_reset(&arena);
  assert_true(arena.total_size <= (size_t)1 << 20);
  int64_t* numbers = PESTLE_ARENA_ARRAY(&arena, int64_t, 10);
  for (int i = 0; i < 10; ++i)
    assert_int_equal(numbers[i], 0);
  pestle_arena_deinit(&arena);
  pestle_test_allocator_check(&memory);
}

static void test_arena_reset_reuses_memory(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_arena_t arena;
  pestle_arena_init(pestle_test_allocator(&memory), &arena);
  for (int i = 0; i < 5000; ++i)
    pestle_arena_alloc(&arena, 100, 8);
  pestle_arena_reset(&arena);
  size_t requests = atomic_load(&memory.request_count);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i)
      pestle_arena_alloc(&arena, 100, 8);
    pestle_arena_reset(&arena);
  }
  assert_int_equal(atomic_load(&memory.request_count), requests);
  pestle_arena_deinit(&arena);
  pestle_test_allocator_check(&memory);
}

static void test_arena_rewinds(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_arena_t arena;
  pestle_arena_init(pestle_test_allocator(&memory), &arena);
  pestle_arena_mark_t empty = pestle_arena_mark(&arena);
  char* kept = pestle_arena_strdup(&arena, "kept");
  pestle_arena_mark_t mark = pestle_arena_mark(&arena);
  void* first = pestle_arena_alloc(&arena, 64, 64);
  for (int i = 0; i < 1000; ++i)
    pestle_arena_alloc(&arena, 1000, 8);
  pestle_arena_rewind(&arena, mark);
  assert_string_equal(kept, "kept");
  assert_ptr_equal(pestle_arena_alloc(&arena, 64, 64), first);
  pestle_arena_rewind(&arena, empty);
  assert_int_equal(atomic_load(&memory.live_bytes), arena.total_size);
  assert_true(arena.total_size <= 4 * 1024 * 1024);
  assert_non_null(pestle_arena_alloc(&arena, 1, 1));
  pestle_arena_deinit(&arena);
  pestle_test_allocator_check(&memory);
}

// A rewind at the end of a block does not ask for the next block again and again.
static void test_arena_rewinds_without_requests(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_arena_t arena;
  pestle_arena_init(pestle_test_allocator(&memory), &arena);
  for (int i = 0; i < 4000; ++i) {
    pestle_arena_alloc(&arena, 1000, 8);
    pestle_arena_mark_t mark = pestle_arena_mark(&arena);
    // Two blocks of a mebibyte and a little.
    for (int k = 0; k < 3; ++k)
      assert_non_null(pestle_arena_alloc(&arena, k ? 700000 : 1000, 8));
    pestle_arena_rewind(&arena, mark);
  }
  assert_true(atomic_load(&memory.request_count) < 30);
  // A huge block goes at once.
  pestle_arena_mark_t mark = pestle_arena_mark(&arena);
  size_t held = arena.total_size;
  assert_non_null(pestle_arena_alloc(&arena, 8 << 20, 8));
  pestle_arena_rewind(&arena, mark);
  assert_true(arena.total_size <= held);
  pestle_arena_deinit(&arena);
  pestle_test_allocator_check(&memory);
}

static void test_arena_out_of_memory(void** state) {
  (void)state;
  for (size_t fail_at = 1; fail_at < 6; ++fail_at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, fail_at);
    pestle_arena_t arena;
    pestle_arena_init(pestle_test_allocator(&memory), &arena);
    int failures = 0;
    for (int i = 0; i < 1000; ++i) {
      if (!pestle_arena_alloc(&arena, 100, 8)) ++failures;
    }
    // The arena is usable after the one failure.
    assert_int_equal(failures, 1);
    pestle_arena_deinit(&arena);
    pestle_test_allocator_check(&memory);
  }
}

typedef PESTLE_VEC(int64_t) numbers_t;

static void test_vec(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  numbers_t numbers;
  pestle_vec_init(&numbers, pestle_test_allocator(&memory));
  for (int64_t i = 0; i < 1000; ++i) {
    assert_true(pestle_vec_push(&numbers, i * i));
  }
  assert_int_equal(numbers.size, 1000);
  for (int64_t i = 0; i < 1000; ++i)
    assert_int_equal(numbers.data[i], i * i);
  assert_int_equal(pestle_vec_last(&numbers), 999 * 999);
  assert_int_equal(pestle_vec_pop(&numbers), 999 * 999);
  assert_int_equal(numbers.size, 999);

  const int64_t more[] = {1, 2, 3};
  assert_true(pestle_vec_append(&numbers, more, 3));
  assert_int_equal(numbers.data[1001], 3);
  assert_true(pestle_vec_append(&numbers, (const int64_t*)NULL, 0));
  assert_true(pestle_vec_resize(&numbers, 2000));
  assert_int_equal(numbers.data[1999], 0);
  assert_true(pestle_vec_resize(&numbers, 2));
  assert_int_equal(numbers.size, 2);
  pestle_vec_clear(&numbers);
  assert_int_equal(numbers.size, 0);
  assert_false(pestle_vec_reserve(&numbers, SIZE_MAX / 4));
  pestle_vec_deinit(&numbers);
  pestle_test_allocator_check(&memory);
}

static void test_vec_of_structs(void** state) {
  (void)state;
  typedef struct pair_t {
    int a, b;
  } pair_t;
  PESTLE_VEC(pair_t) pairs;
  pestle_vec_init(&pairs, pestle_allocator_system());
  assert_true(pestle_vec_push(&pairs, (pair_t){1, 2}));
  assert_true(pestle_vec_push(&pairs, (pair_t){.a = 3, .b = 4}));
  assert_int_equal(pairs.data[1].b, 4);
  pestle_vec_deinit(&pairs);
}

static void test_vec_out_of_memory_changes_nothing(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 2);
  numbers_t numbers;
  pestle_vec_init(&numbers, pestle_test_allocator(&memory));
  size_t pushed = 0;
  while (pestle_vec_push(&numbers, 7))
    ++pushed;
  assert_int_equal(numbers.size, pushed);
  for (size_t i = 0; i < pushed; ++i)
    assert_int_equal(numbers.data[i], 7);
  assert_true(pestle_vec_push(&numbers, 8));
  pestle_vec_deinit(&numbers);
  pestle_test_allocator_check(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_system_allocator_aligns_and_keeps),
      cmocka_unit_test(test_impossible_sizes),
      cmocka_unit_test(test_arena_aligns),
      cmocka_unit_test(test_arena_holds_huge_blocks),
      cmocka_unit_test(test_arena_reset_reuses_memory),
      cmocka_unit_test(test_arena_rewinds),
      cmocka_unit_test(test_arena_rewinds_without_requests),
      cmocka_unit_test(test_arena_out_of_memory),
      cmocka_unit_test(test_vec),
      cmocka_unit_test(test_vec_of_structs),
      cmocka_unit_test(test_vec_out_of_memory_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
