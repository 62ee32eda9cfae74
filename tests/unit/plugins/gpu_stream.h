// SPDX-License-Identifier: Apache-2.0
// Streams, events, fences, copies and the numbers of memory on a device.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_GPU_STREAM_H_
#define PESTLE_TESTS_UNIT_PLUGINS_GPU_STREAM_H_

#include <stdatomic.h>

#include "gpu_kernel.h"

enum { STREAM_COUNT = 1000 };

// y[i] = x[i] + x[i].
static inline pestle_loaded_t* load_twice(void) {
  pestle_kir_builder_t b = kernel("twice");
  uint32_t x = global(&b, "x", PESTLE_I32, STREAM_COUNT, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_I32, STREAM_COUNT, 0);
  pestle_kir_id_t g = group(&b, STREAM_COUNT);
  pestle_kir_id_t v = pestle_kir_load(&b, x, 1, g, PESTLE_KIR_NONE, 0);
  v = pestle_kir_scalar(&b, PESTLE_OP_ADD, v, v, PESTLE_KIR_NONE);
  pestle_kir_store(&b, y, g, v, PESTLE_KIR_NONE, 0);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  pestle_loaded_t* loaded = gpu_load(&b.view);
  pestle_kir_deinit(&b);
  return loaded;
}

static inline void launch_twice(pestle_device_stream_t* stream,
                                const pestle_loaded_t* loaded, void* from,
                                void* to) {
  void* slots[] = {from, to};
  pestle_launch_t launch = {sizeof launch, loaded, slots, 2, 0, NULL};
  assert_ok(gpu->device->launch(gpu->self, 0, stream, &launch));
}

static inline void* new_buffer(void) {
  void* data;
  assert_ok(gpu->device->allocate(gpu->self, 0, STREAM_COUNT * sizeof(int32_t),
                                  &data));
  return data;
}
static inline void free_buffer(void* data) {
  gpu->device->deallocate(gpu->self, 0, data, STREAM_COUNT * sizeof(int32_t));
}

// One stream doubles, the other doubles what came of it, ten times over.
static void events_order(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a, *b;
  pestle_device_event_t *there, *back;
  int32_t host[STREAM_COUNT];
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &a));
  assert_ok(d->stream_create(gpu->self, 0, &b));
  assert_ok(d->event_create(gpu->self, 0, &there));
  assert_ok(d->event_create(gpu->self, 0, &back));
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->queue_from_host(gpu->self, a, host, x, sizeof host));
  for (uint64_t i = 1; i <= 10; ++i) {
    launch_twice(a, twice, x, y);
    assert_ok(d->event_signal(gpu->self, there, a, i));
    assert_ok(d->event_wait_stream(gpu->self, there, b, i));
    launch_twice(b, twice, y, x);
    assert_ok(d->event_signal(gpu->self, back, b, i));
    assert_ok(d->event_wait_stream(gpu->self, back, a, i));
  }
  assert_ok(d->event_wait(gpu->self, back, 10));
  assert_true(d->event_is_signalled(gpu->self, back, 10));
  assert_false(d->event_is_signalled(gpu->self, back, 11));
  assert_ok(d->copy_to_host(gpu->self, 0, x, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], (int32_t)((uint32_t)i << 20));
  assert_ok(d->stream_synchronize(gpu->self, a));
  d->event_destroy(gpu->self, there);
  d->event_destroy(gpu->self, back);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// A stream that waits for what is only signalled later holds up nobody else.
static void events_late(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a, *b;
  pestle_device_event_t* event;
  int32_t host[STREAM_COUNT], other[STREAM_COUNT];
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer(), *z = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &a));
  assert_ok(d->stream_create(gpu->self, 0, &b));
  assert_ok(d->event_create(gpu->self, 0, &event));
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  assert_ok(d->event_wait_stream(gpu->self, event, a, 5));
  launch_twice(a, twice, x, y);
  launch_twice(b, twice, x, z);
  assert_ok(d->stream_synchronize(gpu->self, b));
  assert_ok(d->copy_to_host(gpu->self, 0, z, other, sizeof other));
  assert_int_equal(other[7], 14);
  assert_false(d->event_is_signalled(gpu->self, event, 5));
  assert_ok(d->event_signal(gpu->self, event, NULL, 7));
  assert_ok(d->stream_synchronize(gpu->self, a));
  assert_ok(d->copy_to_host(gpu->self, 0, y, other, sizeof other));
  assert_int_equal(other[9], 18);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
  d->event_destroy(gpu->self, event);
  free_buffer(x);
  free_buffer(y);
  free_buffer(z);
  d->unload(gpu->self, twice);
}

static void fences_order(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *a, *b;
  pestle_device_fence_t* fence;
  int32_t host[STREAM_COUNT];
  (void)state;
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &a));
  assert_ok(d->stream_create(gpu->self, 0, &b));
  assert_ok(d->fence_create(gpu->self, 0, &fence));
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->fence_wait(gpu->self, fence, b, y));
  assert_ok(d->queue_from_host(gpu->self, a, host, x, sizeof host));
  launch_twice(a, twice, x, y);
  assert_ok(d->fence_update(gpu->self, fence, a, y, true));
  assert_ok(d->fence_wait(gpu->self, fence, b, y));
  assert_ok(d->queue_copy(gpu->self, b, y, x, sizeof host));
  assert_ok(d->stream_synchronize(gpu->self, b));
  assert_ok(d->copy_to_host(gpu->self, 0, x, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], 2 * i);
  d->fence_destroy(gpu->self, fence);
  d->stream_destroy(gpu->self, a);
  d->stream_destroy(gpu->self, b);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// --- Calls of the host, and native streams ---

typedef struct calls_t {
  const int32_t* host;  // what a copy before the call writes to
  atomic_int count, seen, failures;
} calls_t;

static inline void note_call(void* user, pestle_status_t failure) {
  calls_t* calls = user;
  if (failure) {
    atomic_fetch_add(&calls->failures, 1);
    test_host.status_release(test_host.self, failure);
  }
  if (calls->host) atomic_store(&calls->seen, calls->host[5]);
  atomic_fetch_add(&calls->count, 1);
}

// Each is made once, after what was queued before it, also when the stream goes.
static void host_calls(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  int32_t host[STREAM_COUNT];
  (void)state;
  if (!PESTLE_HAS(d, stream_host_call)) skip();
  calls_t first = {.host = host}, rest = {.host = NULL};
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  launch_twice(stream, twice, x, y);
  assert_ok(d->queue_to_host(gpu->self, stream, y, host, sizeof host));
  assert_ok(d->stream_host_call(gpu->self, stream, note_call, &first));
  for (int i = 0; i < 50; ++i)
    assert_ok(d->stream_host_call(gpu->self, stream, note_call, &rest));
  d->stream_destroy(gpu->self, stream);
  assert_int_equal(atomic_load(&first.count), 1);
  assert_int_equal(atomic_load(&first.seen), 10);
  assert_int_equal(atomic_load(&rest.count), 50);
  assert_int_equal(atomic_load(&first.failures) + atomic_load(&rest.failures),
                   0);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// One stream of ours stands for one of the application's.
static void native_streams(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t *ours, *theirs;
  pestle_device_event_t* late;
  void* native;
  int32_t host[STREAM_COUNT];
  (void)state;
  if (!PESTLE_HAS(d, stream_native)) skip();
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  assert_ok(d->stream_create(gpu->self, 0, &ours));
  assert_ok(d->stream_create(gpu->self, 0, &theirs));
  assert_ok(d->event_create(gpu->self, 0, &late));
  assert_ok(d->stream_native(gpu->self, theirs, &native));
  assert_non_null(native);
  // Both wait for an event that comes last, so that no order is by chance.
  assert_ok(d->event_wait_stream(gpu->self, late, theirs, 1));
  for (int i = 0; i < 5; ++i) {
    launch_twice(theirs, twice, x, y);
    assert_ok(d->wait_native(gpu->self, 0, ours, native));
    launch_twice(ours, twice, y, x);
    assert_ok(d->native_wait(gpu->self, 0, native, ours));
  }
  assert_ok(d->event_signal(gpu->self, late, NULL, 1));
  assert_ok(d->stream_synchronize(gpu->self, theirs));
  assert_ok(d->copy_to_host(gpu->self, 0, x, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], i << 10);
  // A stream does not wait for itself.
  assert_ok(d->wait_native(gpu->self, 0, theirs, native));
  assert_ok(d->native_wait(gpu->self, 0, native, theirs));
  assert_ok(d->stream_synchronize(gpu->self, theirs));
  d->event_destroy(gpu->self, late);
  d->stream_destroy(gpu->self, ours);
  d->stream_destroy(gpu->self, theirs);
  free_buffer(x);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// A handle of ours stands for one of the application's: the same bytes by another
// address, which the kernel takes as it takes any.
static inline void handles_of_others(void** state) {
  const pestle_device_api_t* d = gpu->device;
  int32_t host[STREAM_COUNT];
  void *handle, *same, *adopted, *hold;
  uint64_t offset;
  (void)state;
  if (!PESTLE_HAS(d, adopt)) skip();
  pestle_loaded_t* twice = load_twice();
  void *x = new_buffer(), *y = new_buffer();
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i;
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  assert_ok(d->handle_of(gpu->self, 0, (char*)x + 20, &handle, &offset));
  assert_int_equal(offset, 20);
  assert_ptr_not_equal(handle, x);
  assert_ok(d->adopt(gpu->self, 0, handle, 0, sizeof host, &adopted, &hold));
  assert_ptr_not_equal(adopted, x);
  assert_ok(d->handle_of(gpu->self, 0, (char*)adopted + 8, &same, &offset));
  assert_ptr_equal(same, handle);
  assert_int_equal(offset, 8);
  launch_twice(NULL, twice, adopted, y);
  assert_ok(d->copy_to_host(gpu->self, 0, y, host, sizeof host));
  for (int i = 0; i < STREAM_COUNT; ++i)
    assert_int_equal(host[i], 2 * i);
  // It outlives what it was.
  free_buffer(x);
  assert_ok(d->copy_to_host(gpu->self, 0, adopted, host, sizeof host));
  assert_int_equal(host[5], 5);
  void *more, *other;
  assert_code(d->adopt(gpu->self, 0, handle, 4, sizeof host, &more, &other),
              INVALID_ARGUMENT);
  assert_code(d->adopt(gpu->self, 0, handle, UINT64_MAX, 4, &more, &other),
              INVALID_ARGUMENT);
  assert_ok(d->adopt(gpu->self, 0, handle, 16, 4, &more, &other));
  assert_ok(d->copy_to_host(gpu->self, 0, more, host, 4));
  assert_int_equal(host[0], 4);
  d->release_adopted(gpu->self, other);
  d->release_adopted(gpu->self, hold);
  assert_code(d->handle_of(gpu->self, 0, adopted, &same, &offset),
              INVALID_ARGUMENT);
  free_buffer(y);
  d->unload(gpu->self, twice);
}

// Whose memory is it, and how much is there?
static inline void memory_is_known(void** state) {
  const pestle_device_api_t* d = gpu->device;
  int32_t host[4], device = -1;
  uint64_t size = 0;
  (void)state;
  if (!PESTLE_HAS(d, where)) skip();
  void* x = new_buffer();
  assert_ok(d->where(gpu->self, x, &device, &size));
  assert_int_equal(device, 0);
  assert_true(size >= sizeof(int32_t) * STREAM_COUNT);
  uint64_t rest;
  assert_ok(d->where(gpu->self, (char*)x + 12, &device, &rest));
  assert_int_equal(rest, size - 12);
  assert_code(d->where(gpu->self, host, &device, &size), INVALID_ARGUMENT);
  assert_code(d->where(gpu->self, NULL, &device, &size), INVALID_ARGUMENT);
  free_buffer(x);
}

static inline uint64_t number(pestle_memory_t what) {
  uint64_t bytes;
  assert_ok(gpu->device->memory_get(gpu->self, 0, what, &bytes));
  return bytes;
}

static void memory_numbers(void** state) {
  const pestle_device_api_t* d = gpu->device;
  uint64_t before, limit;
  void *a, *b;
  (void)state;
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_PEAK, 0, &before));
  uint64_t active = number(PESTLE_MEMORY_ACTIVE);
  assert_true(number(PESTLE_MEMORY_TOTAL) > 0);
  assert_ok(d->allocate(gpu->self, 0, 1 << 20, &a));
  assert_int_equal(number(PESTLE_MEMORY_ACTIVE), active + (1 << 20));
  assert_int_equal((uintptr_t)a % 64, 0);
  d->deallocate(gpu->self, 0, a, 1 << 20);
  assert_int_equal(number(PESTLE_MEMORY_ACTIVE), active);
  assert_int_equal(number(PESTLE_MEMORY_PEAK), active + (1 << 20));
  assert_ok(
      d->memory_set(gpu->self, 0, PESTLE_MEMORY_LIMIT, active + 1000, &limit));
  assert_code(d->allocate(gpu->self, 0, 1 << 20, &b), OUT_OF_MEMORY);
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_LIMIT, limit, NULL));
  assert_ok(d->memory_set(gpu->self, 0, PESTLE_MEMORY_CACHE, 0, &before));
  assert_int_equal(number(PESTLE_MEMORY_CACHE), 0);
  pestle_device_property_t p = {.struct_size = sizeof p};
  uint32_t index = 0;
  while (true) {
    pestle_status_t status = d->property(gpu->self, 0, index, &p);
    if (status) {
      assert_code(status, NOT_FOUND);
      break;
    }
    assert_true(p.name[0] != 0);
    ++index;
  }
  assert_true(index > 3);
}

// What is not the device's is refused with a sentence.
static void bad_arguments(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_loaded_t* loaded;
  int32_t host[4] = {0};
  char junk[800] = "junk";
  void* data;
  (void)state;
  assert_error(d->copy_from_host(gpu->self, 0, host, host, sizeof host),
               INVALID_ARGUMENT, "is in no buffer");
  assert_error(d->allocate(gpu->self, 99, 4, &data), NOT_FOUND, "no 99");
  assert_code(d->load(gpu->self, 0, junk, 10, &loaded), MALFORMED);
  assert_code(d->load(gpu->self, 0, junk, sizeof junk, &loaded), INCOMPATIBLE);
  assert_null(loaded);
  pestle_target_caps_t none = {.struct_size = sizeof none};
  assert_error(gpu->target->describe(gpu->self, "sm_1", &none), UNSUPPORTED,
               "sm_1");
}

#define GPU_STREAM_TESTS                                                     \
  cmocka_unit_test(events_order), cmocka_unit_test(events_late),             \
      cmocka_unit_test(fences_order), cmocka_unit_test(host_calls),          \
      cmocka_unit_test(native_streams), cmocka_unit_test(handles_of_others), \
      cmocka_unit_test(memory_is_known), cmocka_unit_test(memory_numbers),   \
      cmocka_unit_test(bad_arguments)

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_STREAM_H_
