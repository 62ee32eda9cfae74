// SPDX-License-Identifier: Apache-2.0
// Each request for memory of a session fails once: an error or a run that did without,
// and nothing is left behind.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pestle/session.h"
#include "test.h"
#include "view.h"

static const char text[] =
    "func.func public @main(%x: tensor<?x3xf32> {pestle.name = \"x\"}) -> "
    "(tensor<?x3xf32> {pestle.name = \"y\"}) {\n"
    "  %t = stablehlo.add %x, %x : tensor<?x3xf32>\n"
    "  return %t : tensor<?x3xf32>\n}\n";

static char path[64];

static pestle_status_t run(pestle_session_t* session) {
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  int64_t dims[] = {3, 3};
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_named_tensor_t out = {.name = "y"};
  pestle_status_t status = pestle_session_run(session, &in, 1, &out, 1, NULL);
  if (status) {
    assert_null(out.tensor.data);
  } else {
    assert_true(((float*)out.tensor.data)[8] == 18);
  }
  pestle_session_tensor_release(session, &out.tensor);
  return status;
}

static pestle_status_t work(pestle_allocator_t allocator, bool is_quick) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .allocator = allocator,
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 1};
  pestle_session_options_t o = {
      .struct_size = sizeof(o), .shapes = "x.0=4", .waiting = true};
  if (is_quick) o = (pestle_session_options_t){sizeof(o), .quick = true};
  pestle_context_t* context;
  pestle_session_t* session = NULL;
  pestle_status_t status = pestle_context_create(&options, &context);
  if (status) return status;
  status = pestle_session_create(context, path, &o, &session);
  if (!status) status = run(session);
  if (!status && is_quick) {
    // The full executable is made, or the quick one goes on serving.
    pestle_status_t full = pestle_session_wait(session, NULL);
    assert_true(!full ||
                pestle_status_code(full) == PESTLE_STATUS_OUT_OF_MEMORY);
    status = run(session);
    if (full) {
      assert_null(status);
      status = full;
    }
  }
  // What failed once works when it is asked for again.
  if (status && session) {
    pestle_status_t again = run(session);
    assert_true(!again ||
                pestle_status_code(again) == PESTLE_STATUS_OUT_OF_MEMORY);
    pestle_status_release(again);
  }
  pestle_session_release(session);
  pestle_context_release(context);
  return status;
}

static void fail_each(bool is_quick) {
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = work(pestle_test_allocator(&memory), is_quick);
    bool failed = pestle_test_allocator_failed(&memory);
    pestle_status_code_t code = pestle_status_code(status);
    // Without memory a cache keeps nothing, which is no failure.
    assert_true(code == PESTLE_STATUS_OK ||
                (failed && code == PESTLE_STATUS_OUT_OF_MEMORY));
    failures += code == PESTLE_STATUS_OUT_OF_MEMORY;
    pestle_status_release(status);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
  assert_true(failures > 20);
}

static void test_each_failure(void** state) {
  (void)state;
  fail_each(false);
}

static void test_each_failure_of_two_tiers(void** state) {
  (void)state;
  fail_each(true);
}

int main(void) {
  (void)snprintf(path, sizeof(path), "/tmp/pestle-session-XXXXXX");
  int file = mkstemp(path);
  if (file < 0 || write(file, text, sizeof(text) - 1) != sizeof(text) - 1)
    return 1;
  (void)close(file);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_failure),
      cmocka_unit_test(test_each_failure_of_two_tiers),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  (void)remove(path);
  return failed;
}
