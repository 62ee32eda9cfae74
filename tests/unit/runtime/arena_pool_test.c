// SPDX-License-Identifier: Apache-2.0
// Memory that executables share: which piece a run takes.
#include "runtime/arena_pool.h"

#include "runtime/device.h"
#include "unit/runtime/fixture.h"

static pestle_arena_piece_t* take(pestle_arena_pool_t* pool,
                                  pestle_device_t* device,
                                  const pestle_arena_piece_t* latest,
                                  size_t arena, size_t scratch) {
  pestle_arena_piece_t* piece = NULL;
  assert_ok(
      pestle_arena_pool_take(pool, device, latest, arena, scratch, &piece));
  assert_true(piece->arena->size >= arena);
  assert_true(!scratch || piece->scratch->size >= scratch);
  return piece;
}

static pestle_context_t* open_context(void) {
  pestle_context_options_t options = fixture_options();
  return fixture_context(&options);
}

static void test_pool(void** state) {
  (void)state;
  pestle_context_t* context = open_context();
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, NULL, &device));
  pestle_arena_pool_t* pool;
  assert_ok(pestle_arena_pool_create(context, &pool));
  pestle_arena_piece_t* small = take(pool, device, NULL, 1000, 0);
  pestle_arena_piece_t* large = take(pool, device, NULL, 100000, 500);
  pestle_arena_pool_give(pool, small);
  pestle_arena_pool_give(pool, large);
  // The smallest that is enough.
  assert_ptr_equal(take(pool, device, NULL, 900, 0), small);
  assert_ptr_equal(take(pool, device, NULL, 900, 0), large);
  pestle_arena_pool_give(pool, large);
  pestle_arena_pool_give(pool, small);
  // The one that the caller had, though a smaller one is free.
  assert_ptr_equal(take(pool, device, large, 900, 0), large);
  pestle_arena_pool_give(pool, large);
  // Where none is enough the largest grows: there are two still.
  size_t before = pestle_arena_pool_bytes(pool);
  assert_ptr_equal(take(pool, device, small, 300000, 0), large);
  assert_true(pestle_arena_pool_bytes(pool) >= before + 200000);
  pestle_arena_pool_give(pool, large);
  // What cannot be had leaves the pool as it can be used.
  pestle_arena_piece_t* none = NULL;
  pestle_status_t status =
      pestle_arena_pool_take(pool, device, NULL, SIZE_MAX / 2, 0, &none);
  assert_non_null(status);
  assert_null(none);
  pestle_status_release(status);
  assert_ptr_equal(take(pool, device, NULL, 10, 10), small);
  pestle_arena_pool_give(pool, small);
  pestle_arena_pool_release(pool);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
