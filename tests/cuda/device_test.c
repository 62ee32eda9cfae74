// SPDX-License-Identifier: Apache-2.0
// The device half against the driver of threads, which can be held and made to
// fail: what is freed while it is used, recordings, failures in the driver's own
// words, two devices, damaged artifacts.
#include <unistd.h>

#include "cuda/fake/fake.h"
#include "gpu_stream.h"

enum { DRIVER_NO_MEMORY = 2, LOST = 719, SIZE = 1 << 16 };

static fake_cuda_fail_fn_t fake_fail;
static fake_cuda_live_fn_t fake_live;
static fake_cuda_calls_fn_t fake_calls;
static fake_cuda_hold_fn_t fake_hold;
static fake_cuda_faults_fn_t fake_faults;
static fake_cuda_lose_fn_t fake_lose;

static void find_fake(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver) {
    *(void**)&fake_fail = dlsym(driver, "fake_cuda_fail");
    *(void**)&fake_live = dlsym(driver, "fake_cuda_live");
    *(void**)&fake_calls = dlsym(driver, "fake_cuda_calls");
    *(void**)&fake_hold = dlsym(driver, "fake_cuda_hold");
    *(void**)&fake_faults = dlsym(driver, "fake_cuda_faults");
    *(void**)&fake_lose = dlsym(driver, "fake_cuda_lose");
  }
  if (fake_fail && fake_live && fake_calls && fake_hold && fake_faults &&
      fake_lose) {
    return;
  }
  print_message("skipped: libcuda.so.1 is not the driver of threads\n");
  exit(77);
}

static pestle_kir_builder_t parsed(const char* text) {
  pestle_kir_builder_t b;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "test", &b));
  return b;
}

static void* take(int32_t device, size_t size) {
  void* data = NULL;
  assert_ok(gpu->device->allocate(gpu->self, device, size, &data));
  return data;
}
static void give(int32_t device, void* data, size_t size) {
  gpu->device->deallocate(gpu->self, device, data, size);
}
static pestle_device_stream_t* new_stream(int32_t device) {
  pestle_device_stream_t* stream;
  assert_ok(gpu->device->stream_create(gpu->self, device, &stream));
  return stream;
}
static void wait_for(pestle_device_stream_t* stream) {
  assert_ok(gpu->device->stream_synchronize(gpu->self, stream));
}

// --- Memory ---

static void blocks_are_kept(void** state) {
  (void)state;
  give(0, take(0, SIZE), SIZE);
  int before = fake_calls("cuMemAlloc_v2");
  for (int i = 0; i < 100; ++i) {
    void *a = take(0, SIZE), *b = take(0, SIZE);
    assert_ptr_not_equal(a, b);
    give(0, a, SIZE);
    give(0, b, SIZE);
  }
  assert_int_equal(fake_calls("cuMemAlloc_v2"), before + 1);
}

// What queued work uses is not given out again before that is done.
static void freed_while_used(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a = new_stream(0), *b = new_stream(0);
  (void)state;
  void *x = take(0, SIZE), *y = take(0, SIZE), *unused = take(0, SIZE);
  void* z = take(0, SIZE);
  fake_hold(1);
  assert_ok(d->queue_copy(gpu->self, a, x, y, SIZE));
  assert_ok(d->queue_copy(gpu->self, b, z, unused, SIZE));
  give(0, x, SIZE);
  assert_true(number(PESTLE_MEMORY_CACHE) >= SIZE);
  void* other = take(0, SIZE);
  assert_ptr_not_equal(other, x);
  // Nor does clearing the cache take it away.
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE, 0, NULL));
  fake_hold(0);
  wait_for(a);
  wait_for(b);
  assert_int_equal(fake_faults(), 0);
  int before = fake_calls("cuMemAlloc_v2");
  void* again = take(0, SIZE);
  assert_ptr_equal(again, x);
  assert_int_equal(fake_calls("cuMemAlloc_v2"), before);
  give(0, again, SIZE);
  give(0, other, SIZE);
  give(0, y, SIZE);
  give(0, z, SIZE);
  give(0, unused, SIZE);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
}

// A device that is full gets back what is kept, then says how full it is.
static void full_device(void** state) {
  const pestle_device_api_t* d = gpu->device;
  void *data, *kept = take(0, 1 << 20);
  (void)state;
  give(0, kept, 1 << 20);
  assert_true(number(PESTLE_MEMORY_CACHE) >= 1 << 20);
  fake_fail("cuMemAlloc_v2", 1, DRIVER_NO_MEMORY);
  data = take(0, 3 << 20);
  assert_int_equal(number(PESTLE_MEMORY_CACHE), 0);
  give(0, data, 3 << 20);
  assert_error(d->allocate(gpu->self, 0, (size_t)5 << 30, &data), OUT_OF_MEMORY,
               "are in use");
  assert_null(data);
  uint64_t limit;
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE_LIMIT, 0, &limit));
  assert_int_equal(number(PESTLE_MEMORY_CACHE), 0);
  give(0, take(0, SIZE), SIZE);
  assert_int_equal(number(PESTLE_MEMORY_CACHE), 0);
  assert_ok(
      d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE_LIMIT, limit, NULL));
  assert_code(d->memory_set(gpu->self, 0, PESTLE_MEMORY_WIRED_LIMIT, 0, NULL),
              UNSUPPORTED);
}

// --- Copies ---

static void fill_bytes(unsigned char* data, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i)
    data[i] = (unsigned char)((i * 2654435761u + seed) >> 7);
}

// Copies of pageable memory are queued, also more than there are slots for.
static void pageable_copies(void** state) {
  const pestle_device_api_t* d = gpu->device;
  enum { LARGE = 9 * 1000 * 1000 + 3 };
  pestle_device_stream_t* stream = new_stream(0);
  unsigned char *from = malloc(LARGE), *to = calloc(1, LARGE);
  (void)state;
  fill_bytes(from, LARGE, 7);
  void* data = take(0, LARGE);
  fake_hold(1);
  assert_ok(d->queue_from_host(gpu->self, stream, from, data, SIZE));
  assert_ok(d->queue_to_host(gpu->self, stream, data, to, SIZE));
  // The bytes were taken: to change them now is too late.
  memset(from, 0, SIZE);
  assert_int_equal(to[1], 0);
  fake_hold(0);
  wait_for(stream);
  fill_bytes(from, LARGE, 7);
  assert_memory_equal(from, to, SIZE);
  fill_bytes(from, LARGE, 9);
  assert_ok(d->queue_from_host(gpu->self, stream, from, data, LARGE));
  assert_ok(d->queue_to_host(gpu->self, stream, data, to, LARGE));
  wait_for(stream);
  assert_memory_equal(from, to, LARGE);
  d->stream_destroy(gpu->self, stream);
  give(0, data, LARGE);
  free(from);
  free(to);
}

static void two_devices(void** state) {
  const pestle_device_api_t* d = gpu->device;
  unsigned char from[1000], to[1000] = {0};
  (void)state;
  assert_int_equal(gpu->device_count, 2);
  fill_bytes(from, sizeof from, 1);
  void *x = take(0, sizeof from), *y = take(1, sizeof from);
  assert_ok(d->copy_from_host(gpu->self, 0, from, x, sizeof from));
  assert_ok(d->copy_device(gpu->self, 0, x, 1, y, sizeof from));
  assert_ok(d->copy_to_host(gpu->self, 1, y, to, sizeof to));
  assert_memory_equal(from, to, sizeof from);
  assert_error(d->allocate(gpu->self, 2, 4, &x), NOT_FOUND, "no number 2");
  give(1, y, sizeof from);
}

// --- Recordings ---

// Doubles, copies, and is launched three times; what cannot be part of it is
// refused and leaves it sound.
static void recordings(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream = new_stream(0);
  pestle_device_event_t* event;
  pestle_device_graph_t* graph;
  int32_t host[STREAM_COUNT];
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->event_create(gpu->self, 0, &event));
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  int nodes = fake_calls("cuMemcpyDtoDAsync_v2");
  assert_ok(d->graph_begin(gpu->self, stream));
  launch_twice(stream, twice, x, y);
  assert_ok(d->queue_copy(gpu->self, stream, y, x, sizeof host));
  assert_error(d->stream_synchronize(gpu->self, stream), UNSUPPORTED,
               "recording");
  assert_code(d->event_signal(gpu->self, event, stream, 1), UNSUPPORTED);
  assert_code(d->queue_to_host(gpu->self, stream, x, host, sizeof host),
              UNSUPPORTED);
  assert_code(d->graph_begin(gpu->self, stream), UNSUPPORTED);
  assert_ok(d->graph_end(gpu->self, stream, &graph));
  assert_int_equal(fake_calls("cuMemcpyDtoDAsync_v2"), nodes);
  for (int i = 0; i < 3; ++i)
    assert_ok(d->graph_launch(gpu->self, graph, stream));
  wait_for(stream);
  assert_ok(d->copy_to_host(gpu->self, 0, x, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], 8 * i);
  d->graph_destroy(gpu->self, graph);
  assert_code(d->graph_end(gpu->self, stream, &graph), INVALID_ARGUMENT);
  d->event_destroy(gpu->self, event);
  d->stream_destroy(gpu->self, stream);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

static void recording_fails(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream = new_stream(0);
  pestle_device_graph_t* graph;
  (void)state;
  assert_ok(d->graph_begin(gpu->self, stream));
  fake_fail("cuStreamEndCapture", 1, 901);
  assert_code(d->graph_end(gpu->self, stream, &graph), INTERNAL);
  assert_null(graph);
  wait_for(stream);  // it records no longer
  assert_ok(d->graph_begin(gpu->self, stream));
  fake_fail("cuGraphInstantiateWithFlags", 1, DRIVER_NO_MEMORY);
  assert_code(d->graph_end(gpu->self, stream, &graph), OUT_OF_MEMORY);
  assert_ok(d->graph_begin(gpu->self, stream));
  d->stream_destroy(gpu->self, stream);  // in the midst of it
}

// --- Failures ---

static void driver_words(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream = new_stream(0);
  int32_t host[4] = {0};
  (void)state;
  fake_fail("cuStreamSynchronize", 1, LOST);
  assert_error(d->stream_synchronize(gpu->self, stream), UNAVAILABLE,
               "CUDA_ERROR_LAUNCH_FAILED (a failure); this or earlier work "
               "broke the device's context");
  assert_error(d->copy_from_host(gpu->self, 0, host, host, sizeof host),
               INVALID_ARGUMENT, "cuMemcpyHtoDAsync_v2 on device 0 (Fake 0)");
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *slots[] = {x, x};
  pestle_launch_t launch = {sizeof launch, twice, slots, 2, 0, NULL};
  fake_fail("cuLaunchKernel", 1, 701);
  assert_error(d->launch(gpu->self, 0, stream, &launch), RESOURCE_EXHAUSTED,
               "the launch of kernel pestle_twice with");
  launch.buffer_count = 1;
  assert_error(d->launch(gpu->self, 0, stream, &launch), INVALID_ARGUMENT,
               "has 2 buffers");
  assert_error(d->launch(gpu->self, 1, NULL, &launch), INVALID_ARGUMENT,
               "was loaded on device 0");
  d->unload(gpu->self, twice);
  free_buffer(x);
  d->stream_destroy(gpu->self, stream);
}

// Each call of the driver that making a kernel, a stream, a copy takes fails
// once: a status, and nothing is left behind.
static void every_call_fails(void** state) {
  static const char* const calls[] = {
      "cuModuleLoadDataEx", "cuModuleGetFunction", "cuStreamCreate",
      "cuMemHostAlloc",     "cuEventCreate",       "cuMemcpyHtoDAsync_v2",
      "cuLaunchHostFunc",   "cuEventRecord",       "cuLaunchKernel",
      "cuMemAlloc_v2",      "cuCtxPushCurrent_v2", "cuPointerGetAttributes"};
  const pestle_device_api_t* d = gpu->device;
  (void)state;
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE, 0, NULL));
  pestle_kir_builder_t b = kernel("nothing");
  uint32_t x = global(&b, "x", PESTLE_I32, 4, 0);
  pestle_kir_id_t g = group(&b, 4);
  pestle_kir_store(&b, x, g, pestle_kir_int(&b, PESTLE_I32, 1, 5),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  pestle_blob_t blob;
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  assert_ok(gpu->target->compile(gpu->self, &b.view, &options, &blob));
  pestle_kir_deinit(&b);
  int before = fake_live();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    pestle_loaded_t* loaded = NULL;
    pestle_device_stream_t* stream = NULL;
    void* data = NULL;
    int32_t host[4] = {0};
    fake_fail(calls[i], 1, 999);
    pestle_status_t status =
        d->load(gpu->self, 0, blob.data, blob.size, &loaded);
    if (!status) status = d->stream_create(gpu->self, 0, &stream);
    if (!status) status = d->allocate(gpu->self, 0, sizeof host, &data);
    if (!status) {
      status = d->queue_from_host(gpu->self, stream, host, data, sizeof host);
    }
    void* slots[] = {data};
    pestle_launch_t launch = {sizeof launch, loaded, slots, 1, 0, NULL};
    if (!status) status = d->launch(gpu->self, 0, stream, &launch);
    if (!status) {
      status = d->queue_to_host(gpu->self, stream, data, host, sizeof host);
    }
    // Whether memory is pinned may stay unknown.
    if (strcmp(calls[i], "cuPointerGetAttributes")) {
      assert_non_null(status);
      assert_non_null(strstr(pestle_status_message(status), calls[i] + 2) ||
                              strstr(pestle_status_message(status), "kernel")
                          ? status
                          : NULL);
    }
    pestle_status_release(status);
    fake_fail("", 0, 0);
    if (stream) d->stream_destroy(gpu->self, stream);
    if (data) d->deallocate(gpu->self, 0, data, sizeof host);
    if (loaded) d->unload(gpu->self, loaded);
    assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE, 0, NULL));
    assert_int_equal(fake_live(), before);
  }
  host_free(NULL, blob.data, blob.size);
}

// --- Artifacts ---

static void artifacts(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_kir_builder_t b = kernel("small");
  pestle_loaded_t* loaded;
  pestle_blob_t blob;
  (void)state;
  uint32_t x = global(&b, "x", PESTLE_I32, 4, 0);
  pestle_kir_id_t g = group(&b, 4);
  pestle_kir_store(&b, x, g, pestle_kir_int(&b, PESTLE_I32, 1, 5),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = "sm_90"};
  assert_ok(gpu->target->compile(gpu->self, &b.view, &options, &blob));
  assert_error(d->load(gpu->self, 0, blob.data, blob.size, &loaded),
               INCOMPATIBLE, "was compiled for sm_90");
  // Each byte of the head, and of the code, is looked at.
  for (size_t at = 0; at < blob.size; at += at < 1500 ? 1 : 997) {
    unsigned char* byte = (unsigned char*)blob.data + at;
    *byte ^= 0x81;
    pestle_status_t status =
        d->load(gpu->self, 0, blob.data, blob.size, &loaded);
    assert_non_null(status);
    pestle_status_release(status);
    *byte ^= 0x81;
  }
  for (size_t size = 0; size < 2000; ++size) {
    pestle_status_t status = d->load(gpu->self, 0, blob.data, size, &loaded);
    assert_non_null(status);
    pestle_status_release(status);
  }
  host_free(NULL, blob.data, blob.size);
  options.cpu = "sm_77";
  assert_error(gpu->target->compile(gpu->self, &b.view, &options, &blob),
               UNSUPPORTED, "sm_77");
  pestle_kir_deinit(&b);
}

// More than the 48 KiB that a group has unasked.
static void much_shared(void** state) {
  (void)state;
  int before = fake_calls("cuFuncSetAttribute");
  pestle_kir_builder_t b = parsed(
      "kernel @much(\n"
      "    @x : global i32[512] readonly,\n"
      "    @y : global i32[512],\n"
      "    @first : shared ui8[70],\n"
      "    @tile : shared i32[16000]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 2 : index\n"
      "  %2 = const 256 : index\n"
      "  %3 = const 15744 : index\n"
      "  %4 = const 255 : index\n"
      "  %5 = for %0 to %1 step 1 group.x : index name g {\n"
      "    %6 = for %0 to %2 step 1 lane.x : index name l {\n"
      "      %7 = madi %5, 256, %6 : index\n"
      "      %8 = load @x[%7] : i32 align 4\n"
      "      %9 = add %6, %3 : index\n"
      "      store @tile[%9], %8 align 4\n"
      "      barrier\n"
      "      %10 = subtract %4, %6 : index\n"
      "      %11 = add %10, %3 : index\n"
      "      %12 = load @tile[%11] : i32 align 4\n"
      "      store @y[%7], %12 align 4\n"
      "    }\n"
      "  }\n"
      "}\n");
  buffers_t a;
  buffers_init(&a, &b.view, fill_any);
  run_on_gpu(&b.view, &a, NULL);
  const int32_t *x = a.slot[0], *y = a.slot[1];
  for (int i = 0; i < 512; ++i)
    assert_int_equal(y[i], x[i / 256 * 256 + 255 - i % 256]);
  buffers_deinit(&a);
  pestle_kir_deinit(&b);
  assert_int_equal(fake_calls("cuFuncSetAttribute"), before + 1);
}

// --- Events ---

// Numbers that are signalled by two streams, and by nobody.
static void events_of_two(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a = new_stream(0), *b = new_stream(1);
  pestle_device_event_t* event;
  (void)state;
  assert_ok(d->event_create(gpu->self, 0, &event));
  fake_hold(1);
  assert_ok(d->event_signal(gpu->self, event, a, 5));
  assert_ok(d->event_signal(gpu->self, event, b, 3));
  assert_false(d->event_is_signalled(gpu->self, event, 3));
  assert_ok(d->event_wait_stream(gpu->self, event, b, 5));
  fake_hold(0);
  assert_ok(d->event_wait(gpu->self, event, 4));
  wait_for(b);
  assert_true(d->event_is_signalled(gpu->self, event, 5));
  assert_ok(d->event_signal(gpu->self, event, NULL, 2));  // it only grows
  assert_true(d->event_is_signalled(gpu->self, event, 5));
  // A wait that fails is not taken for one that is done.
  fake_hold(1);
  assert_ok(d->event_signal(gpu->self, event, a, 6));
  fake_fail("cuEventSynchronize", 1, LOST);
  assert_error(d->event_wait(gpu->self, event, 6), UNAVAILABLE,
               "cuEventSynchronize");
  assert_false(d->event_is_signalled(gpu->self, event, 6));
  fake_hold(0);
  assert_ok(d->event_wait(gpu->self, event, 6));
  // A stream that waits for what never comes goes on when the event ends.
  assert_ok(d->event_wait_stream(gpu->self, event, a, 9));
  assert_ok(d->event_wait_stream(gpu->self, event, b, 8));
  assert_ok(d->event_signal(gpu->self, event, b, 9));
  assert_ok(d->event_signal(gpu->self, event, NULL, 8));
  wait_for(a);
  wait_for(b);
  assert_ok(d->event_wait_stream(gpu->self, event, a, 20));
  d->event_destroy(gpu->self, event);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
}

// --- Calls of the host ---

// What cannot be queued is not called; a recording takes none; another device's
// stream is refused.
static void refused_calls(void** state) {
  static const char* const driver[] = {"cuEventCreate", "cuEventRecord"};
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream = new_stream(0);
  pestle_device_graph_t* graph;
  calls_t calls = {.host = NULL};
  void* native;
  (void)state;
  for (int i = 0; i < 2; ++i) {
    int before = fake_live();
    fake_fail(driver[i], 1, DRIVER_NO_MEMORY);
    assert_code(d->stream_host_call(gpu->self, stream, note_call, &calls),
                OUT_OF_MEMORY);
    assert_int_equal(fake_live(), before);
  }
  assert_ok(d->stream_native(gpu->self, stream, &native));
  assert_error(d->wait_native(gpu->self, 1, stream, native), INVALID_ARGUMENT,
               "the stream is of device 0");
  assert_code(d->native_wait(gpu->self, 1, native, stream), INVALID_ARGUMENT);
  assert_ok(d->graph_begin(gpu->self, stream));
  assert_code(d->stream_host_call(gpu->self, stream, note_call, &calls),
              UNSUPPORTED);
  assert_code(d->wait_native(gpu->self, 0, stream, NULL), UNSUPPORTED);
  assert_ok(d->graph_end(gpu->self, stream, &graph));
  d->graph_destroy(gpu->self, graph);
  d->stream_destroy(gpu->self, stream);
  assert_int_equal(atomic_load(&calls.count), 0);
}

// While the application makes a graph of a stream of its own: the graph waits for us
// when it is launched, and we do not wait for it.
static void streams_in_a_capture(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *ours = new_stream(0), *theirs = new_stream(0);
  pestle_device_graph_t* graph;
  void* native;
  (void)state;
  int before = fake_faults();
  assert_ok(d->stream_native(gpu->self, theirs, &native));
  assert_ok(d->graph_begin(gpu->self, theirs));
  assert_ok(d->native_wait(gpu->self, 0, native, ours));
  assert_ok(d->wait_native(gpu->self, 0, ours, native));
  assert_int_equal(fake_faults(), before);
  assert_ok(d->graph_end(gpu->self, theirs, &graph));
  d->graph_destroy(gpu->self, graph);
  d->stream_destroy(gpu->self, theirs);
  d->stream_destroy(gpu->self, ours);
}

// On a device that is lost every call is still made, with the driver's words.
static void calls_of_a_lost_device(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a = new_stream(0), *b = new_stream(0);
  calls_t calls = {.host = NULL};
  pestle_device_event_t* event;
  (void)state;
  assert_ok(d->event_create(gpu->self, 0, &event));
  fake_hold(1);
  // With a function of the driver's that is then never called.
  assert_ok(d->event_wait_stream(gpu->self, event, b, 1));
  assert_ok(d->event_signal(gpu->self, event, a, 1));
  for (int i = 0; i < 10; ++i) {
    assert_ok(d->stream_host_call(gpu->self, i & 1 ? a : b, note_call, &calls));
  }
  fake_lose();
  fake_hold(0);
  assert_code(d->event_wait(gpu->self, event, 1), UNAVAILABLE);
  while (atomic_load(&calls.count) < 10)
    usleep(1000);
  assert_code(d->stream_synchronize(gpu->self, a), UNAVAILABLE);
  assert_code(d->stream_synchronize(gpu->self, b), UNAVAILABLE);
  fake_fail("", 0, 0);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
  d->event_destroy(gpu->self, event);
  assert_int_equal(atomic_load(&calls.count), 10);
  assert_int_equal(atomic_load(&calls.failures), 10);
}

static int all_is_given_back(void** state) {
  int result = gpu_teardown(state);
  assert_int_equal(fake_live(), 0);
  assert_int_equal(fake_faults(), 0);
  return result;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_kept),
                                     cmocka_unit_test(freed_while_used),
                                     cmocka_unit_test(full_device),
                                     cmocka_unit_test(pageable_copies),
                                     cmocka_unit_test(two_devices),
                                     cmocka_unit_test(recordings),
                                     cmocka_unit_test(recording_fails),
                                     cmocka_unit_test(driver_words),
                                     cmocka_unit_test(every_call_fails),
                                     cmocka_unit_test(artifacts),
                                     cmocka_unit_test(much_shared),
                                     cmocka_unit_test(events_of_two),
                                     cmocka_unit_test(refused_calls),
                                     cmocka_unit_test(streams_in_a_capture),
                                     cmocka_unit_test(memory_is_known),
                                     cmocka_unit_test(calls_of_a_lost_device)};
  (void)bad_arguments, (void)events_order, (void)events_late;
  (void)gpu_most_arguments;
  (void)fences_order, (void)memory_numbers;
  (void)host_calls, (void)native_streams;
  setenv("FAKE_CUDA_DEVICES", "2", 1);
  find_fake();
  gpu_setup("cuda");
  return cmocka_run_group_tests(tests, NULL, all_is_given_back);
}
