// SPDX-License-Identifier: Apache-2.0
// Fails the k-th allocation for every k: OUT_OF_MEMORY, nothing is lost, and
// the same objects work afterwards.
#include <unistd.h>

#include "unit/runtime/fixture.h"

static char path[64];
static char cache[64];

typedef struct work_t {
  pestle_context_t* context;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  pestle_stream_t* stream;
  pestle_buffer_t *buffer, *wrapped, *made, *queued[3];
  pestle_tensor_t out[2];
} work_t;

static pestle_status_t make_plan(void* user, pestle_plan_t** out_plan) {
  pestle_context_t* context = user;
  static plan_writer_t w;
  int64_t dims[] = {8};
  fixture_write_add1(&w, 1, dims, 10000000);
  size_t size;
  void* data = plan_finish(&w, &size);
  pestle_status_t status =
      pestle_plan_create(context, data, size, free, data, out_plan);
  if (status) free(data);
  return status;
}

static pestle_status_t run(work_t* work, pestle_stream_t* stream,
                           pestle_tensor_t* out) {
  int64_t dims[] = {8}, strides[] = {2};
  float x[16] = {0};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, strides);
  PESTLE_TRY(
      pestle_executable_run(work->executable, stream, &in, 1, out, 1, NULL));
  return stream ? pestle_stream_synchronize(stream) : NULL;
}

// From wrapped memory that no run may read in place.
static pestle_status_t run_buffers(work_t* work, pestle_device_t* device) {
  static float x[16];
  int64_t strides[] = {2};
  PESTLE_TRY(pestle_buffer_wrap(device, x, sizeof(x), NULL, &work->wrapped));
  pestle_buffer_view_t in = {.buffer = work->wrapped, .strides = strides};
  PESTLE_TRY(pestle_executable_run_buffers(work->executable, NULL, &in, 1,
                                           &work->made, 1, NULL));
  // On a stream, from what a run on it makes.
  pestle_buffer_view_t made = {.buffer = work->made};
  for (int i = 0; i < 3; ++i) {
    PESTLE_TRY(pestle_executable_run_buffers(
        work->executable, work->stream, &made, 1, &work->queued[i], 1, NULL));
    made.buffer = work->queued[i];
  }
  PESTLE_TRY(pestle_buffer_wait(work->queued[2]));
  return pestle_stream_synchronize(work->stream);
}

static pestle_status_t do_all(pestle_allocator_t allocator, work_t* work) {
  pestle_context_options_t options = fixture_options();
  options.allocator = allocator;
  options.cache_dir = cache;
  PESTLE_TRY(pestle_context_create(&options, &work->context));
  PESTLE_TRY(test_backend_add(work->context));
  PESTLE_TRY(pestle_plan_cache_get(work->context, "key", 3, make_plan,
                                   work->context, &work->plan, NULL));
  PESTLE_TRY(pestle_plan_save(work->plan, path));
  pestle_plan_release(work->plan);
  work->plan = NULL;
  PESTLE_TRY(pestle_plan_load(work->context, path, &work->plan));
  PESTLE_TRY(pestle_executable_create(work->context, work->plan, NULL,
                                      &work->executable));
  PESTLE_TRY(run(work, NULL, &work->out[0]));
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(work->context, "ref", &device));
  PESTLE_TRY(pestle_buffer_create(device, 5000, &work->buffer));
  PESTLE_TRY(pestle_stream_create(device, &work->stream));
  PESTLE_TRY(run(work, work->stream, &work->out[1]));
  PESTLE_TRY(run_buffers(work, device));
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  PESTLE_TRY(pestle_cache_stats(work->context, &stats));
  return pestle_cache_prune(work->context, 0, NULL);
}

static void undo_all(work_t* work) {
  pestle_stream_release(work->stream);
  pestle_buffer_release(work->buffer);
  pestle_buffer_release(work->wrapped);
  pestle_buffer_release(work->made);
  for (int i = 0; i < 3; ++i)
    pestle_buffer_release(work->queued[i]);
  for (int i = 0; i < 2 && work->executable; ++i) {
    pestle_tensor_release(work->executable, &work->out[i]);
  }
  pestle_executable_release(work->executable);
  pestle_plan_release(work->plan);
  pestle_context_release(work->context);
}

// Some allocations may fail without a failure of the call: what is lost is a
// thread of the pool or an entry on disk.
static void test_every_failure(void** state) {
  (void)state;
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    work_t work = {0};
    pestle_status_t status = do_all(pestle_test_allocator(&memory), &work);
    bool failed = pestle_test_allocator_failed(&memory);
    if (status) {
      ++failures;
      assert_true(failed);
      assert_code(status, OUT_OF_MEMORY);
    }
    undo_all(&work);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
    assert_true(k < 10000);
  }
  assert_true(failures > 20);
}

// After a failure the same executable runs.
static void test_run_again(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t options = fixture_options();
    options.allocator = pestle_test_allocator(&memory);
    work_t work = {.context = fixture_context(&options)};
    pestle_plan_t* plan;
    assert_ok(make_plan(work.context, &plan));
    size_t so_far = atomic_load(&memory.request_count);
    atomic_store(&memory.fail_at, so_far + k);
    pestle_status_t status =
        pestle_executable_create(work.context, plan, NULL, &work.executable);
    if (status) {
      assert_code(status, OUT_OF_MEMORY);
      assert_ok(
          pestle_executable_create(work.context, plan, NULL, &work.executable));
    }
    status = run(&work, NULL, &work.out[0]);
    if (status) {
      assert_code(status, OUT_OF_MEMORY);
      assert_null(work.out[0].data);
      assert_ok(run(&work, NULL, &work.out[0]));
    }
    assert_true(((float*)work.out[0].data)[7] == 1);
    bool failed = pestle_test_allocator_failed(&memory);
    pestle_plan_release(plan);
    undo_all(&work);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

static int set_up(void** state) {
  (void)state;
  snprintf(path, sizeof(path), "/tmp/pestle-oom-test-XXXXXX");
  snprintf(cache, sizeof(cache), "/tmp/pestle-oom-cache-XXXXXX");
  int file = mkstemp(path);
  if (file < 0 || !mkdtemp(cache)) return -1;
  return close(file);
}

static int tear_down(void** state) {
  (void)state;
  unlink(path);
  return rmdir(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_failure),
      cmocka_unit_test(test_run_again),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
