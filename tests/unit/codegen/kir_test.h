// SPDX-License-Identifier: Apache-2.0
// Running flat kernels in tests: a host for the ref backend, and one call that
// compiles, loads and runs.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_KIR_TEST_H_
#define PESTLE_TESTS_UNIT_CODEGEN_KIR_TEST_H_

#include <stdlib.h>

#include "codegen/kir/kir_build.h"
#include "plugins/ref/ref.h"
#include "test.h"

static inline pestle_status_t kir_test_make_(void* self, int32_t code,
                                             const char* file, int32_t line,
                                             const char* message) {
  (void)self;
  return pestle_status_make((pestle_status_code_t)code, file, line, "%s",
                            message);
}
static inline void kir_test_release_(void* self, pestle_status_t status) {
  (void)self;
  pestle_status_release(status);
}
static inline void* kir_test_alloc_(void* self, size_t size) {
  const pestle_allocator_t* memory = self;
  return memory->resize(memory->self, NULL, 0, size, 64);
}
static inline void kir_test_free_(void* self, void* data, size_t size) {
  const pestle_allocator_t* memory = self;
  memory->resize(memory->self, data, size, 0, 64);
}
static inline void kir_test_log_(void* self, int32_t level,
                                 const char* message) {
  (void)self, (void)level, (void)message;
}

static inline pestle_host_t kir_test_host(pestle_allocator_t* memory) {
  return (pestle_host_t){.struct_size = sizeof(pestle_host_t),
                         .abi_major = PESTLE_ABI_MAJOR,
                         .self = memory,
                         .status_make = kir_test_make_,
                         .status_release = kir_test_release_,
                         .alloc = kir_test_alloc_,
                         .free = kir_test_free_,
                         .log = kir_test_log_};
}

// Runs groups [begin, end) of |kernel| on |buffers| through the ref backend.
// The trap id goes to |out_trap|.
static inline pestle_status_t kir_test_run(const pestle_kir_t* kernel,
                                           void* const* buffers,
                                           const int64_t* params, int64_t begin,
                                           int64_t end, int32_t* out_trap) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  if (!ref) return status;
  pestle_blob_t artifact = {NULL, 0};
  pestle_loaded_t* loaded = NULL;
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  status = ref->target->compile(ref->self, kernel, &options, &artifact);
  if (!status) {
    status =
        ref->device->load(ref->self, 0, artifact.data, artifact.size, &loaded);
  }
  if (!status) {
    pestle_cpu_entry_t entry;
    const void* self;
    status = ref->device->cpu_entry(ref->self, loaded, &entry, &self);
    void* scratch = kir_test_alloc_(&memory, kernel->shared_bytes + 64);
    *out_trap = entry(self, buffers, params, begin, end, scratch);
    kir_test_free_(&memory, scratch, kernel->shared_bytes + 64);
  }
  ref->device->unload(ref->self, loaded);
  if (artifact.data) kir_test_free_(&memory, artifact.data, artifact.size);
  ref->deinit(ref->self);
  return status;
}

// Finishes and verifies |k| and runs the whole of it.
static inline void kir_test_run_ok(pestle_kir_builder_t* k,
                                   void* const* buffers) {
  int32_t trap = 0;
  assert_ok(pestle_kir_finish(k));
  assert_ok(pestle_kir_verify(&k->view));
  assert_ok(kir_test_run(&k->view, buffers, NULL, 0, k->view.group[0], &trap));
  assert_int_equal(trap, 0);
}

// The kernel's text in static storage.
static inline const char* kir_test_text(const pestle_kir_t* kernel) {
  static char text[1 << 16];
  pestle_strbuf_t out;
  pestle_strbuf_init(pestle_allocator_system(), &out);
  assert_ok(pestle_kir_print(kernel, &out));
  snprintf(text, sizeof text, "%s", pestle_strbuf_cstr(&out));
  pestle_strbuf_deinit(&out);
  return text;
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_KIR_TEST_H_
