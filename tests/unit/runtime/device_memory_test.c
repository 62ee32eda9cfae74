// SPDX-License-Identifier: Apache-2.0
// Device memory of the caller's own.
#include <stdlib.h>

#include "pestle/runtime.h"
#include "test.h"

typedef struct own_memory_t {
  size_t live, calls;
  bool empty;
} own_memory_t;

static void* own_allocate(void* self, pestle_dl_device_t device, size_t size,
                          size_t alignment) {
  own_memory_t* m = self;
  assert_int_equal(device.device_type, PESTLE_DEVICE_CPU);
  ++m->calls;
  if (m->empty) return NULL;
  m->live += size;
  return aligned_alloc(alignment,
                       (size + alignment - 1) / alignment * alignment);
}

static void own_deallocate(void* self, pestle_dl_device_t device, void* data,
                           size_t size, size_t alignment) {
  own_memory_t* m = self;
  (void)device;
  (void)alignment;
  m->live -= size;
  free(data);
}

static void test_own_memory(void** state) {
  (void)state;
  own_memory_t memory = {0};
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .device_allocator = {&memory, own_allocate, own_deallocate}};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_buffer_t* buffer;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_buffer_create(device, 1000, &buffer));
  assert_int_equal(memory.calls, 1);
  assert_true(memory.live >= 1000);
  pestle_buffer_release(buffer);
  memory.empty = true;
  assert_code(pestle_buffer_create(device, 1 << 20, &buffer), OUT_OF_MEMORY);
  pestle_context_release(context);
  assert_int_equal(memory.live, 0);
}

static void test_half_an_allocator(void** state) {
  (void)state;
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .device_allocator = {NULL, own_allocate, NULL}};
  pestle_context_t* context;
  assert_error(pestle_context_create(&options, &context), INVALID_ARGUMENT,
               "device_allocator");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_memory),
      cmocka_unit_test(test_half_an_allocator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
