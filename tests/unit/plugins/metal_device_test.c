// SPDX-License-Identifier: Apache-2.0
// plugins/metal/device.m itself, by stand-ins for Apple's frameworks
// (tests/shim/apple): the tests that other devices pass, and what it says of its
// GPU. It proves that device.m does what it should with Metal as its
// documentation has it, not that Apple's is that.
#include "gpu_flow.h"
#include "gpu_stream.h"

static void describes(void** state) {
  (void)state;
  assert_string_equal(caps.cpu, "apple");
  assert_int_equal(caps.intrinsic_count, 1);
  assert_string_equal(gpu->name, "metal");
}

// A copy waits for what its stream waits for, and holds up nobody.
static void copies_wait(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  pestle_device_event_t* event;
  int32_t host[STREAM_COUNT] = {0}, back[STREAM_COUNT] = {0};
  (void)state;
  void *x = new_buffer(), *y = new_buffer();
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  assert_ok(d->event_create(gpu->self, 0, &event));
  assert_ok(d->copy_from_host(gpu->self, 0, host, x, sizeof host));
  assert_ok(d->event_wait_stream(gpu->self, event, stream, 1));
  for (int i = 0; i < STREAM_COUNT; ++i)
    host[i] = i + 1;
  assert_ok(d->queue_from_host(gpu->self, stream, host, x, sizeof host));
  assert_ok(d->queue_copy(gpu->self, stream, x, y, sizeof host));
  assert_ok(d->queue_to_host(gpu->self, stream, y, back, sizeof host));
  int32_t now[STREAM_COUNT];
  assert_ok(d->copy_to_host(gpu->self, 0, x, now, sizeof now));
  assert_int_equal(now[5], 0);
  assert_ok(d->event_signal(gpu->self, event, NULL, 1));
  assert_ok(d->stream_synchronize(gpu->self, stream));
  assert_memory_equal(back, host, sizeof host);
  d->event_destroy(gpu->self, event);
  d->stream_destroy(gpu->self, stream);
  free_buffer(x);
  free_buffer(y);
}

// An error is said though good work was queued after it.
static void says_errors(void** state) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  (void)state;
  // Half of the lanes meet a barrier: the stand-in's launch fails.
  pestle_kir_builder_t b = kernel("apart");
  pestle_kir_id_t none = PESTLE_KIR_NONE;
  uint32_t y = global(&b, "y", PESTLE_I32, 64, 0);
  pestle_kir_id_t g = group(&b, 1);
  pestle_kir_id_t lane = lane_loop(&b, 64, PESTLE_KIR_LANE_X);
  pestle_kir_if(&b, pestle_kir_scalar(&b, PESTLE_OP_LT, lane,
                                      pestle_kir_index(&b, 32), none));
  pestle_kir_barrier(&b);
  pestle_kir_end(&b);
  pestle_kir_store(&b, y, pestle_kir_madi(&b, g, 64, lane),
                   pestle_kir_cast(&b, lane, PESTLE_I32), none, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  pestle_loaded_t* apart = gpu_load(&b.view);
  pestle_kir_deinit(&b);
  pestle_loaded_t* twice = load_twice();
  void *data = new_buffer(), *other = new_buffer();
  void* slots[] = {data};
  pestle_launch_t launch = {sizeof launch, apart, slots, 1, 0, NULL};
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  assert_ok(d->launch(gpu->self, 0, stream, &launch));
  launch_twice(stream, twice, data, other);
  assert_error(d->stream_synchronize(gpu->self, stream), INTERNAL,
               "queued work: the lanes met different barriers");
  assert_ok(d->stream_synchronize(gpu->self, stream));
  assert_error(d->launch(gpu->self, 0, NULL, &launch), INTERNAL,
               "a launch: the lanes met");
  d->stream_destroy(gpu->self, stream);
  free_buffer(data);
  free_buffer(other);
  d->unload(gpu->self, apart);
  d->unload(gpu->self, twice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes),   cmocka_unit_test(copies_wait),
      cmocka_unit_test(says_errors), GPU_STREAM_TESTS,
      cmocka_unit_test(runs),        cmocka_unit_test(loops),
      cmocka_unit_test(lanes_share), cmocka_unit_test(lanes_in_axes)};
  (void)gathers, (void)lane_moves, (void)many_arguments, (void)lanes_reduce;
  setenv("PESTLE_BACKEND_PATH", PESTLE_FAKE_METAL, 1);
  gpu_setup("metal");
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}
