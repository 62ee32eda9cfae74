// SPDX-License-Identifier: Apache-2.0
// The executables of a session share the memory that runs compute in.
#include "pestle/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "test.h"
#include "view.h"

enum { COLUMNS = 8, MOST_ROWS = 64 };

// y = x W W, with W the exchange of columns: two products, which are two kernels with a
// value between them.
static const char text[] =
    "func.func public @main(%x: tensor<?x8xf32> {pestle.name = \"x\"}) -> "
    "(tensor<?x8xf32> {pestle.name = \"y\"}) {\n"
    "  %w = stablehlo.constant dense<[[0.,0.,0.,0.,0.,0.,0.,1.],"
    "[0.,0.,0.,0.,0.,0.,1.,0.],[0.,0.,0.,0.,0.,1.,0.,0.],"
    "[0.,0.,0.,0.,1.,0.,0.,0.],[0.,0.,0.,1.,0.,0.,0.,0.],"
    "[0.,0.,1.,0.,0.,0.,0.,0.],[0.,1.,0.,0.,0.,0.,0.,0.],"
    "[2.,0.,0.,0.,0.,0.,0.,0.]]> : tensor<8x8xf32>\n"
    "  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>\n"
    "  %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : "
    "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>\n"
    "  return %b : tensor<?x8xf32>\n}\n";

static char path[64] = "/tmp/pestle-arena-XXXXXX.mlir";

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 2};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void run_rows(pestle_session_t* session, int64_t rows, int seed) {
  float x[MOST_ROWS * COLUMNS];
  int64_t dims[] = {rows, COLUMNS};
  for (int64_t i = 0; i < rows * COLUMNS; ++i)
    x[i] = (float)(seed + i);
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_named_tensor_t out = {.name = "y"};
  assert_ok(pestle_session_run(session, &in, 1, &out, 1, NULL));
  const float* y = out.tensor.data;
  for (int64_t i = 0; i < rows * COLUMNS; ++i) {
    bool is_end = i % COLUMNS == 0 || i % COLUMNS == COLUMNS - 1;
    assert_true(y[i] == (is_end ? 2 * x[i] : x[i]));
  }
  pestle_session_tensor_release(session, &out.tensor);
}

static uint64_t arena_bytes(pestle_session_t* session) {
  pestle_session_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_session_stats(session, &stats));
  return stats.arena_bytes;
}

static pestle_session_t* open_session(pestle_context_t* context,
                                      const char* shapes) {
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .shapes = shapes};
  pestle_session_t* session;
  assert_ok(pestle_session_create(context, path, &options, &session));
  assert_ok(pestle_session_wait(session, NULL));
  return session;
}

static void test_one_for_all(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_t* session = open_session(context, "x.0=1,2,4..64");
  assert_int_equal(arena_bytes(session), 0);
  run_rows(session, 4, 1);
  uint64_t small = arena_bytes(session);
  assert_true(small >= 4 * COLUMNS * sizeof(float));
  run_rows(session, 64, 2);
  uint64_t large = arena_bytes(session);
  assert_true(large >= 64 * COLUMNS * sizeof(float) && large > small);
  // Other shapes need no more, in any order, and their values stay right although the
  // memory is others' before and after.
  for (int i = 0; i < 3; ++i) {
    for (int64_t rows = 1; rows <= MOST_ROWS; rows += 3)
      run_rows(session, rows, i * 7 + (int)rows);
  }
  assert_int_equal(arena_bytes(session), large);
  pestle_session_release(session);
  pestle_context_release(context);
}

typedef struct caller_t {
  pestle_session_t* session;
  pestle_thread_t thread;
  unsigned seed;
} caller_t;

static void call(void* argument) {
  caller_t* caller = argument;
  for (int i = 0; i < 100; ++i) {
    caller->seed = caller->seed * 1664525u + 1013904223u;
    run_rows(caller->session, 1 + (int64_t)(caller->seed >> 16) % MOST_ROWS,
             (int)(caller->seed % 100));
  }
}

// No more arenas than callers, whatever shapes they ask for.
static void test_callers(void** state) {
  (void)state;
  enum { CALLERS = 4 };
  pestle_context_t* context = make_context();
  pestle_session_t* session = open_session(context, "x.0=1,2,4..64");
  run_rows(session, MOST_ROWS, 1);
  uint64_t one = arena_bytes(session);
  caller_t callers[CALLERS];
  for (unsigned i = 0; i < CALLERS; ++i) {
    callers[i] = (caller_t){.session = session, .seed = i * 77u + 5u};
    assert_ok(
        pestle_thread_start(call, &callers[i], "caller", &callers[i].thread));
  }
  for (int i = 0; i < CALLERS; ++i)
    pestle_thread_join(&callers[i].thread);
  assert_true(arena_bytes(session) >= one);
  assert_true(arena_bytes(session) <= CALLERS * one);
  pestle_session_release(session);
  pestle_context_release(context);
}

int main(void) {
  int out = mkstemps(path, 5);
  if (out < 0 || write(out, text, sizeof(text) - 1) != sizeof(text) - 1)
    return 1;
  (void)close(out);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_for_all),
      cmocka_unit_test(test_callers),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  (void)remove(path);
  return failed;
}
