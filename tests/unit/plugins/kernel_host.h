// SPDX-License-Identifier: Apache-2.0
// A host for plugins under test: its memory is counted.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_KERNEL_HOST_H_
#define PESTLE_TESTS_UNIT_PLUGINS_KERNEL_HOST_H_

#include "pestle/plugin.h"
#include "test.h"

static pestle_test_allocator_t host_memory;

static pestle_status_t host_status(void* self, int32_t code, const char* file,
                                   int32_t line, const char* message) {
  (void)self;
  return pestle_status_make((pestle_status_code_t)code, file, line, "%s",
                            message);
}
static void host_release(void* self, pestle_status_t status) {
  (void)self;
  pestle_status_release(status);
}
static void* host_alloc(void* self, size_t size) {
  (void)self;
  pestle_allocator_t a = pestle_test_allocator(&host_memory);
  return a.resize(a.self, NULL, 0, size, 64);
}
static void host_free(void* self, void* data, size_t size) {
  (void)self;
  pestle_allocator_t a = pestle_test_allocator(&host_memory);
  if (data) a.resize(a.self, data, size, 0, 64);
}
static void host_log(void* self, int32_t level, const char* message) {
  (void)self;
  (void)level;
  (void)message;
}

static const pestle_host_t test_host = {
    .struct_size = sizeof(pestle_host_t),
    .abi_major = PESTLE_ABI_MAJOR,
    .abi_minor = PESTLE_ABI_MINOR,
    .status_make = host_status,
    .status_release = host_release,
    .alloc = host_alloc,
    .free = host_free,
    .log = host_log,
};

#endif  // PESTLE_TESTS_UNIT_PLUGINS_KERNEL_HOST_H_
