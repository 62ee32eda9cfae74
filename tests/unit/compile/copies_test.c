// SPDX-License-Identifier: Apache-2.0
// Copies that are meant at once, made one after the other: on memory they must
// leave what copies out of a snapshot leave.
#include "compile/copies.h"

#include "base/mem.h"
#include "test.h"

enum { BYTES = 64, MOST = 24 };

typedef struct random_t {
  uint64_t state;
} random_t;

static uint64_t draw(random_t* r, uint64_t below) {
  r->state = r->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (r->state >> 33) % below;
}

static void copy(unsigned char* to, uint64_t at, const unsigned char* from,
                 uint64_t begin, uint64_t size) {
  unsigned char kept[BYTES];
  memcpy(kept, from + begin, size);
  memcpy(to + at, kept, size);
}

// Destinations that do not overlap each other, sources that lie anywhere.
static size_t make_copies(random_t* r, pestle_plan_binding_t* from,
                          pestle_plan_binding_t* to) {
  size_t count = 0;
  uint64_t at = draw(r, 4);
  while (at < BYTES && count < MOST) {
    uint64_t size = 1 + draw(r, 6);
    if (at + size > BYTES) size = BYTES - at;
    to[count] = (pestle_plan_binding_t){.offset = at, .size = size};
    from[count] = (pestle_plan_binding_t){.offset = draw(r, BYTES - size + 1),
                                          .size = draw(r, 9) ? size : 0};
    // Some are whole swaps and rotations, which are cycles.
    if (count && draw(r, 3) && to[count - 1].size == size)
      from[count].offset = to[count - 1].offset;
    at += size + draw(r, 3);
    ++count;
  }
  // In no order.
  for (size_t i = count; i > 1; --i) {
    size_t k = draw(r, i);
    pestle_plan_binding_t a = from[i - 1], b = to[i - 1];
    from[i - 1] = from[k];
    to[i - 1] = to[k];
    from[k] = a;
    to[k] = b;
  }
  return count;
}

static void check_one(random_t* r, size_t* cycles) {
  pestle_plan_binding_t from[MOST], to[MOST];
  unsigned char before[BYTES], memory[BYTES], wanted[BYTES];
  unsigned char spare[MOST * BYTES];
  for (int i = 0; i < BYTES; ++i)
    before[i] = memory[i] = wanted[i] = (unsigned char)i;
  size_t count = make_copies(r, from, to), used = 0, steps = 0;
  for (size_t i = 0; i < count; ++i)
    copy(wanted, to[i].offset, before, from[i].offset, from[i].size);
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_copies_t c;
  assert_ok(pestle_copies_init(&arena, from, to, count, &c));
  for (;;) {
    bool cycle;
    size_t i = pestle_copies_next(&c, &cycle);
    if (i == count) break;
    assert_true(++steps <= 2 * count);
    const unsigned char* source = from[i].storage ? spare : memory;
    if (cycle) {
      assert_int_equal(from[i].storage, 0);
      copy(spare, used, source, from[i].offset, from[i].size);
      from[i].storage = 1;
      from[i].offset = used;
      used += from[i].size;
      ++*cycles;
    } else {
      copy(memory, to[i].offset, source, from[i].offset, from[i].size);
    }
  }
  assert_memory_equal(memory, wanted, BYTES);
  pestle_arena_deinit(&arena);
}

static void leaves_what_copies_at_once_leave(void** state) {
  (void)state;
  random_t r = {1};
  size_t cycles = 0;
  for (int i = 0; i < 20000; ++i)
    check_one(&r, &cycles);
  assert_true(cycles > 1000);
}

// The lowest number first where nothing forbids it.
static void keeps_the_order(void** state) {
  (void)state;
  pestle_plan_binding_t from[3], to[3];
  for (uint32_t i = 0; i < 3; ++i) {
    from[i] = (pestle_plan_binding_t){.storage = 2, .offset = i, .size = 1};
    to[i] = (pestle_plan_binding_t){.storage = 3, .offset = 2 - i, .size = 1};
  }
  // The second reads what the first writes.
  from[1] = to[0];
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_copies_t c;
  bool cycle;
  assert_ok(pestle_copies_init(&arena, from, to, 3, &c));
  assert_int_equal(pestle_copies_next(&c, &cycle), 1);
  assert_int_equal(pestle_copies_next(&c, &cycle), 0);
  assert_int_equal(pestle_copies_next(&c, &cycle), 2);
  assert_int_equal(pestle_copies_next(&c, &cycle), 3);
  assert_false(cycle);
  pestle_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_what_copies_at_once_leave),
      cmocka_unit_test(keeps_the_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
