// SPDX-License-Identifier: Apache-2.0
// Free ranges against a list that is walked: best fit, the lowest of equal ones.
#include "compile/memory_gaps.h"

#include "test.h"

enum { MOST = 64 };

typedef struct block_t {
  int64_t offset, size;
} block_t;

// Where best fit puts |size| between |blocks|, which lie in order.
static int64_t best_fit(const block_t* blocks, size_t count, int64_t size) {
  int64_t best = -1, best_gap = INT64_MAX, end = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t gap = blocks[i].offset - end;
    if (gap >= size && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = blocks[i].offset + blocks[i].size;
  }
  return best >= 0 ? best : end;
}

static size_t insert(block_t* blocks, size_t count, block_t block) {
  size_t at = count;
  for (; at && blocks[at - 1].offset > block.offset; --at)
    blocks[at] = blocks[at - 1];
  blocks[at] = block;
  return count + 1;
}

static void fits_best(void** state) {
  (void)state;
  uint64_t random = 7;
  for (int round = 0; round < 200; ++round) {
    pestle_arena_t arena;
    pestle_gaps_t gaps;
    block_t blocks[MOST];
    size_t count = 0;
    pestle_arena_init(pestle_allocator_system(), &arena);
    assert_ok(pestle_gaps_init(&arena, MOST, &gaps));
    for (int step = 0; step < 400; ++step) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
      uint64_t bits = random >> 33;
      if (count && (count == MOST || bits % 5 < 2)) {
        size_t at = (bits >> 8) % count;
        assert_ok(pestle_gaps_give(&gaps, blocks[at].offset, blocks[at].size));
        for (--count; at < count; ++at)
          blocks[at] = blocks[at + 1];
        continue;
      }
      block_t block = {.size = (int64_t)(64 * (1 + (bits >> 8) % 9))};
      assert_ok(pestle_gaps_take(&gaps, block.size, &block.offset));
      assert_int_equal(block.offset, best_fit(blocks, count, block.size));
      count = insert(blocks, count, block);
    }
    pestle_gaps_deinit(&gaps);
    pestle_arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fits_best)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
