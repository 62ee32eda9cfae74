// SPDX-License-Identifier: Apache-2.0
// Imports of models that mean harm: each ends soon, in bounded memory, with a
// status; what still imports must verify.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_BOUNDED_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_BOUNDED_H_

#include "onnx_test.h"

#define ONNX_SECONDS 20.0
#define ONNX_BYTES ((size_t)1 << 30)

// xorshift64
static inline uint64_t next_random(uint64_t* seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

// Refuses what would pass the bound, so that a failing test does not take the
// machine with it.
static inline void* bounded_resize(void* self, void* ptr, size_t old_size,
                                   size_t new_size, size_t alignment) {
  onnx_test_t* t = self;
  size_t live = atomic_load(&t->memory.live_bytes);
  if (new_size > old_size && new_size - old_size > ONNX_BYTES - live) {
    atomic_store(&t->memory.peak_bytes, ONNX_BYTES);
    return NULL;
  }
  return pestle_test_allocator_resize_(&t->memory, ptr, old_size, new_size,
                                       alignment);
}

static inline void begin_bounded(onnx_test_t* t) {
  memset(t, 0, sizeof(*t));
  pestle_test_allocator_init(&t->memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = {.self = t, .resize = bounded_resize}};
  assert_ok(pestle_context_create(&options, &t->context));
  t->options.struct_size = sizeof(t->options);
}

static inline void import_damaged(const uint8_t* data, size_t size) {
  onnx_test_t t;
  begin_bounded(&t);
  double start = test_process_seconds();
  pestle_status_t status = pestle_import_onnx(t.context, data, size, false,
                                              NULL, &t.options, &t.module);
  if (atomic_load(&t.memory.peak_bytes) >= ONNX_BYTES) {
    char text[1024];
    pestle_status_format(status, text, sizeof(text));
    print_error("the import took 1 GB and said: %s\n", text);
  }
  if (status) {
    assert_true(strlen(pestle_status_message(status)) > 10);
    assert_int_not_equal(pestle_status_code(status), PESTLE_STATUS_INTERNAL);
    pestle_status_release(status);
    assert_null(t.module);
  } else if (!t.module->specialize) {
    assert_ok(pestle_module_verify(t.module));
  }
  assert_true(test_process_seconds() - start < ONNX_SECONDS);
  assert_true(atomic_load(&t.memory.peak_bytes) < ONNX_BYTES);
  onnx_end(&t);
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_BOUNDED_H_
