// SPDX-License-Identifier: Apache-2.0
// Contexts with the backend "test" in them, plans made by plan_writer.h, and
// views, for the tests of this folder.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_FIXTURE_H_
#define PESTLE_TESTS_UNIT_RUNTIME_FIXTURE_H_

#include "test.h"
// Ours.
#include "unit/runtime/plan_writer.h"
#include "unit/runtime/test_backend.h"
#include "view.h"

static inline void fixture_log(void* user, pestle_log_level_t level,
                               const char* message) {
  (void)user, (void)level, (void)message;
}

// Options that look at nothing outside of the test.
static inline pestle_context_options_t fixture_options(void) {
  return (pestle_context_options_t){
      .struct_size = sizeof(pestle_context_options_t),
      .cache_dir = "",
      .backend_path = "/nonexistent",
      .log = fixture_log,
      .log_level = PESTLE_LOG_DEBUG,
      .threads = 4,
  };
}

static inline pestle_context_t* fixture_context(
    const pestle_context_options_t* options) {
  pestle_context_options_t defaults = fixture_options();
  pestle_context_t* context;
  assert_ok(pestle_context_create(options ? options : &defaults, &context));
  assert_ok(test_backend_add(context));
  return context;
}

// Fails each request that |work| makes of a context of its own: nothing is lost, the status
// is OUT_OF_MEMORY, of |always| each time, and |work| succeeds afterwards.
static inline void fixture_fail_each(
    const char* cache_dir, bool always, size_t least,
    pestle_status_t (*work)(pestle_context_t* context, void* user),
    void* user) {
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t options = fixture_options();
    options.allocator = pestle_test_allocator(&memory);
    options.threads = 1;
    options.cache_dir = cache_dir;
    pestle_context_t* context = fixture_context(&options);
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status = work(context, user);
    bool failed = pestle_test_allocator_failed(&memory);
    if (always && failed) assert_non_null(status);
    if (status) {
      assert_true(failed);
      assert_code(status, OUT_OF_MEMORY);
      ++failures;
    }
    atomic_store(&memory.fail_at, 0);
    assert_ok(work(context, user));
    pestle_context_release(context);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
    assert_true(k < 10000);
  }
  if (failures < least) print_error("only %zu failures\n", failures);
  assert_true(failures >= least);
}

// The plan of a finished writer, owning its bytes.
static inline pestle_plan_t* fixture_plan(pestle_context_t* context,
                                          plan_writer_t* w) {
  size_t size;
  void* data = plan_finish(w, &size);
  assert_non_null(data);
  pestle_plan_t* plan;
  assert_ok(pestle_plan_create(context, data, size, free, data, &plan));
  return plan;
}

static inline pestle_executable_t* fixture_executable(pestle_context_t* context,
                                                      plan_writer_t* w) {
  pestle_plan_t* plan = fixture_plan(context, w);
  pestle_executable_t* executable;
  assert_ok(pestle_executable_create(context, plan, NULL, &executable));
  pestle_plan_release(plan);
  return executable;
}

static inline uint32_t fixture_kernel(plan_writer_t* w, const char* name,
                                      test_code_t code, uint32_t args,
                                      int64_t group, uint64_t work) {
  test_artifact_t artifact = test_artifact(code);
  return plan_kernel(w, name, 0, &artifact, sizeof(artifact), args, group,
                     work);
}

// y = x + 1, with x and y of |dims|.
static inline void fixture_write_add1(plan_writer_t* w, int rank,
                                      const int64_t* dims, uint64_t work) {
  plan_begin(w, "add1");
  plan_device(w, "test", "+avx2");
  plan_input(w, "x", PESTLE_F32, rank, dims);
  plan_output(w, "y", PESTLE_F32, rank, dims);
  uint64_t size = w->inputs[0].size;
  uint32_t kernel =
      fixture_kernel(w, "add1", TEST_ADD1, 2, (int64_t)(size / 4), work);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, size);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, size);
  plan_launch(w, kernel, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static inline pestle_executable_t* fixture_add1(pestle_context_t* context,
                                                int rank, const int64_t* dims) {
  plan_writer_t* w = malloc(sizeof(*w));
  fixture_write_add1(w, rank, dims, 0);
  pestle_executable_t* executable = fixture_executable(context, w);
  free(w);
  return executable;
}

static inline pestle_run_options_t fixture_run_options(void) {
  return (pestle_run_options_t){.struct_size = sizeof(pestle_run_options_t)};
}

// A pestle_control_t's progress: |user| is two ints, of which the first is set when the
// second, how often it may be called, is used up.
static inline void stop_at(void* user, const char* stage, int64_t done,
                           int64_t total) {
  int* left = user;
  (void)stage, (void)done, (void)total;
  if (left[1] > 0 && !--left[1])
    __atomic_store_n(&left[0], 1, __ATOMIC_RELAXED);
}

#endif  // PESTLE_TESTS_UNIT_RUNTIME_FIXTURE_H_
