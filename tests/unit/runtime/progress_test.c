// SPDX-License-Identifier: Apache-2.0
// A rank's thread for collectives: it meets another rank while the one that has given the
// work does something else, keeps the order, and fails with the world.
#include "runtime/progress.h"

#include "pestle/pestle.h"
#include "test.h"

enum { COUNT = 1000, AT_ONCE = 50 };

static const int32_t both[2] = {0, 1};

static pestle_context_t* open_ranks(pestle_world_t** ranks) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 1};
  pestle_world_options_t world = {.struct_size = sizeof(world),
                                  .deadline_ms = 60000};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_world_create_local(context, 2, &world, ranks));
  assert_true(pestle_progress_may(ranks[0]));
  return context;
}

static void close_ranks(pestle_context_t* context, pestle_world_t** ranks) {
  pestle_world_release(ranks[0]);
  pestle_world_release(ranks[1]);
  pestle_context_release(context);
}

static pestle_collective_t sum(pestle_world_t* world, const float* from,
                               float* to) {
  return (pestle_collective_t){.struct_size = sizeof(pestle_collective_t),
                               .kind = PESTLE_COLLECTIVE_ALL_REDUCE,
                               .dtype = PESTLE_F32,
                               .rank_count = 2,
                               .ranks = both,
                               .source = -1,
                               .target = -1,
                               .sequence = pestle_world_next(world),
                               .send = from,
                               .receive = to,
                               .count = COUNT,
                               .name = "a sum"};
}

// One thread is both ranks: it would wait for itself if giving waited.
static void test_beside(void** state) {
  pestle_world_t* ranks[2];
  static float from[2][COUNT], to[2][AT_ONCE][COUNT];
  (void)state;
  pestle_context_t* context = open_ranks(ranks);
  assert_ok(pestle_progress_wait(ranks[0], 1));  // nothing was given
  pestle_progress_drain(ranks[0]);
  for (int i = 0; i < COUNT; ++i)
    from[0][i] = 1.0f;
  for (int turn = 0; turn < 4; ++turn) {
    uint64_t last = 0;
    for (int k = 0; k < AT_ONCE; ++k) {
      pestle_collective_t op = sum(ranks[0], from[0], to[0][k]);
      last = op.sequence;
      assert_ok(pestle_progress_give(ranks[0], &op, 1, false));
    }
    for (int k = 0; k < AT_ONCE; ++k) {
      for (int i = 0; i < COUNT; ++i)
        from[1][i] = (float)(AT_ONCE * turn + k);
      pestle_collective_t op = sum(ranks[1], from[1], to[1][k]);
      assert_ok(pestle_world_enqueue(ranks[1], &op, 1, false));
    }
    assert_ok(pestle_progress_wait(ranks[0], last));
    for (int k = 0; k < AT_ONCE; ++k) {
      for (int i = 0; i < COUNT; ++i) {
        assert_true(to[0][k][i] == (float)(AT_ONCE * turn + k + 1));
        assert_true(to[1][k][i] == to[0][k][i]);
      }
    }
  }
  close_ranks(context, ranks);
}

static void test_failure(void** state) {
  pestle_world_t* ranks[2];
  static float a[COUNT], b[COUNT];
  (void)state;
  pestle_context_t* context = open_ranks(ranks);
  pestle_collective_t first = sum(ranks[0], a, b), second = sum(ranks[0], a, b);
  assert_ok(pestle_progress_give(ranks[0], &first, 1, false));
  assert_ok(pestle_progress_give(ranks[0], &second, 1, false));
  pestle_status_t reason = PESTLE_ERROR(UNAVAILABLE, "the disk is full");
  pestle_world_abort(ranks[1], reason);
  pestle_status_release(reason);
  assert_error(pestle_progress_wait(ranks[0], second.sequence), UNAVAILABLE,
               "the disk is full");
  pestle_progress_drain(ranks[0]);
  assert_error(pestle_progress_wait(ranks[0], first.sequence), UNAVAILABLE,
               "the disk is full");
  close_ranks(context, ranks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_beside),
      cmocka_unit_test(test_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
