// SPDX-License-Identifier: Apache-2.0
// Kernels of a recording that begin before the one in front of them ends, on the driver of
// threads: which do, and that each lane of theirs waits, which that driver looks at.
#include "cuda/fake/fake.h"
#include "gpu_stream.h"

static fake_cuda_calls_fn_t fake_calls;
static fake_cuda_faults_fn_t fake_faults;

static void find_fake(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver) {
    *(void**)&fake_calls = dlsym(driver, "fake_cuda_calls");
    *(void**)&fake_faults = dlsym(driver, "fake_cuda_faults");
  }
  if (fake_calls && fake_faults) return;
  print_message("skipped: libcuda.so.1 is not the driver of threads\n");
  exit(77);
}

static int early(void) {
  return fake_calls("cuLaunchKernelEx");
}

// What is recorded doubles x so often; the buffers begin as 0, 1, ..
static void launch_and_check(pestle_device_stream_t* stream,
                             pestle_device_graph_t* graph, void* x,
                             int32_t factor) {
  const pestle_device_api_t* d = gpu->device;
  int32_t host[STREAM_COUNT];
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  assert_ok(d->graph_launch(gpu->self, graph, stream));
  assert_ok(d->stream_synchronize(gpu->self, stream));
  assert_ok(d->copy_to_host(gpu->self, 0, x, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], factor * i);
  assert_int_equal(fake_faults(), 0);
}

static void kernels_in_a_row(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  pestle_device_graph_t* graph;
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  // Outside of recordings none does.
  launch_twice(stream, twice, x, y);
  launch_twice(stream, twice, y, x);
  assert_ok(d->stream_synchronize(gpu->self, stream));
  assert_int_equal(early(), 0);
  assert_ok(d->graph_begin(gpu->self, stream));
  launch_twice(stream, twice, x,
               y);  // behind what is in front of the recording
  assert_int_equal(early(), 0);
  launch_twice(stream, twice, y, x);
  launch_twice(stream, twice, x, y);
  launch_twice(stream, twice, y, x);
  assert_int_equal(early(), 3);
  assert_ok(d->graph_end(gpu->self, stream, &graph));
  for (int i = 0; i < 3; ++i)
    launch_and_check(stream, graph, x, 16);
  d->graph_destroy(gpu->self, graph);
  d->stream_destroy(gpu->self, stream);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// Behind anything but a kernel none does, nor where the application may have queued
// something.
static void other_things_between(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  pestle_device_graph_t* graph;
  enum { BYTES = STREAM_COUNT * sizeof(int32_t) };
  void* native;
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  int before = early();
  assert_ok(d->graph_begin(gpu->self, stream));
  launch_twice(stream, twice, x, y);
  assert_ok(d->queue_copy(gpu->self, stream, y, x, BYTES));
  launch_twice(stream, twice, x, y);
  assert_ok(d->stream_native(gpu->self, stream, &native));
  launch_twice(stream, twice, y, x);
  assert_int_equal(early(), before);
  launch_twice(stream, twice, x, y);
  assert_int_equal(early(), before + 1);
  assert_ok(d->queue_copy(gpu->self, stream, y, x, BYTES));
  assert_ok(d->graph_end(gpu->self, stream, &graph));
  launch_and_check(stream, graph, x, 16);
  // The next recording begins with none.
  d->graph_destroy(gpu->self, graph);
  launch_twice(stream, twice, x, y);
  assert_ok(d->graph_begin(gpu->self, stream));
  launch_twice(stream, twice, x, y);
  assert_int_equal(early(), before + 1);
  assert_ok(d->graph_end(gpu->self, stream, &graph));
  d->graph_destroy(gpu->self, graph);
  d->stream_destroy(gpu->self, stream);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// A backend that was told to has none, as on devices before sm_90.
static void turned_off(void** state) {
  const char* names[] = {"PESTLE_CUDA_DEPENDENT", "FAKE_CUDA_CAPABILITY"};
  const char* values[] = {"0", "80"};
  (void)state;
  int before = early();
  for (int i = 0; i < 2; ++i) {
    const char* was = getenv(names[i]);
    char kept[16] = "";
    if (was) snprintf(kept, sizeof kept, "%s", was);
    (void)gpu_teardown(NULL);
    setenv(names[i], values[i], 1);
    gpu_setup("cuda");
    pestle_device_stream_t* stream;
    pestle_device_graph_t* graph;
    const pestle_device_api_t* d = gpu->device;
    pestle_loaded_t* twice = load_twice();
    void *x = new_buffer(), *y = new_buffer();
    assert_ok(d->stream_create(gpu->self, 0, &stream));
    assert_ok(d->graph_begin(gpu->self, stream));
    launch_twice(stream, twice, x, y);
    launch_twice(stream, twice, y, x);
    assert_ok(d->graph_end(gpu->self, stream, &graph));
    launch_and_check(stream, graph, x, 4);
    assert_int_equal(early(), before);
    d->graph_destroy(gpu->self, graph);
    d->stream_destroy(gpu->self, stream);
    free_buffer(x);
    free_buffer(y);
    d->unload(gpu->self, twice);
    if (was)
      setenv(names[i], kept, 1);
    else
      unsetenv(names[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_in_a_row),
                                     cmocka_unit_test(other_things_between),
                                     cmocka_unit_test(turned_off)};
  (void)bad_arguments, (void)events_order, (void)events_late;
  (void)gpu_most_arguments;
  (void)fences_order, (void)memory_numbers;
  (void)host_calls, (void)native_streams;
  setenv("FAKE_CUDA_CAPABILITY", "90", 1);
  find_fake();
  gpu_setup("cuda");
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
