// SPDX-License-Identifier: Apache-2.0
// A backend "test" whose artifacts name one of a few C functions.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_TEST_BACKEND_H_
#define PESTLE_TESTS_UNIT_RUNTIME_TEST_BACKEND_H_

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pestle/plugin.h"
#include "pestle/runtime.h"
#include "runtime/registry.h"

typedef enum test_code_t {
  TEST_ADD1,     // f32 in, out: out[i] = in[i] + 1
  TEST_ADD,      // f32 a, b, out
  TEST_WAVE,     // f32 in, out: a row of 64 elements a group index, slow
  TEST_TRAP,     // stops with 7
  TEST_PROBE,    // u32 out: MXCSR seen by each group index
  TEST_DEC,      // i32 x: --x
  TEST_EXTENTS,  // i64 x: {2, 1}
  TEST_SCRATCH,  // u32 out: fills scratch with its index, writes its sum
  TEST_CODE_COUNT
} test_code_t;

typedef struct test_artifact_t {
  char magic[8];
  uint64_t code;
} test_artifact_t;

static inline test_artifact_t test_artifact(test_code_t code) {
  return (test_artifact_t){"TESTART", (uint64_t)code};
}

static int32_t test_add1(const void* self, void* const* buffers,
                         const int64_t* params, int64_t begin, int64_t end,
                         void* scratch) {
  (void)self, (void)params, (void)scratch;
  const float* in = buffers[0];
  float* out = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] + 1.0f;
  return 0;
}

static int32_t test_add(const void* self, void* const* buffers,
                        const int64_t* params, int64_t begin, int64_t end,
                        void* scratch) {
  (void)self, (void)params, (void)scratch;
  const float *a = buffers[0], *b = buffers[1];
  float* out = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    out[i] = a[i] + b[i];
  return 0;
}

static int32_t test_wave(const void* self, void* const* buffers,
                         const int64_t* params, int64_t begin, int64_t end,
                         void* scratch) {
  (void)self, (void)params, (void)scratch;
  const float* in = buffers[0];
  float* out = buffers[1];
  for (int64_t row = begin; row < end; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < 64; ++i) {
      sum += sinf(in[row * 64 + i]) * 1.000001f;
      out[row * 64 + i] = sum;
    }
  }
  return 0;
}

static int32_t test_trap(const void* self, void* const* buffers,
                         const int64_t* params, int64_t begin, int64_t end,
                         void* scratch) {
  (void)self, (void)buffers, (void)params, (void)begin, (void)end,
      (void)scratch;
  return 7;
}

static int32_t test_probe(const void* self, void* const* buffers,
                          const int64_t* params, int64_t begin, int64_t end,
                          void* scratch) {
  (void)self, (void)params, (void)scratch;
  uint32_t* out = buffers[0];
  for (int64_t i = begin; i < end; ++i)
    out[i] = __builtin_ia32_stmxcsr();
  return 0;
}

static int32_t test_dec(const void* self, void* const* buffers,
                        const int64_t* params, int64_t begin, int64_t end,
                        void* scratch) {
  (void)self, (void)params, (void)scratch, (void)begin, (void)end;
  --*(int32_t*)buffers[0];
  return 0;
}

static int32_t test_extents(const void* self, void* const* buffers,
                            const int64_t* params, int64_t begin, int64_t end,
                            void* scratch) {
  (void)self, (void)params, (void)scratch, (void)begin, (void)end;
  int64_t* extents = buffers[0];
  extents[0] = 2;
  extents[1] = 1;
  return 0;
}

static int32_t test_scratch(const void* self, void* const* buffers,
                            const int64_t* params, int64_t begin, int64_t end,
                            void* scratch) {
  (void)self, (void)params;
  uint32_t* out = buffers[0];
  uint32_t* own = scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < 16; ++k)
      own[k] = (uint32_t)i;
    uint32_t sum = 0;
    for (int k = 0; k < 16; ++k)
      sum += own[k];
    out[i] = sum;
  }
  return 0;
}

static inline pestle_cpu_entry_t test_entry_of(uint64_t code) {
  static const pestle_cpu_entry_t entries[TEST_CODE_COUNT] = {
      test_add1,  test_add, test_wave,    test_trap,
      test_probe, test_dec, test_extents, test_scratch};
  return code < TEST_CODE_COUNT ? entries[code] : NULL;
}

typedef struct test_backend_self_t {
  pestle_backend_t table;
  const pestle_host_t* host;
} test_backend_self_t;

struct pestle_loaded_s {
  uint64_t code;
};

static pestle_status_t test_backend_load(void* self, int32_t device,
                                         const void* artifact, size_t size,
                                         pestle_loaded_t** out_loaded) {
  const pestle_host_t* host = ((test_backend_self_t*)self)->host;
  (void)device;
  test_artifact_t header;
  if (size >= sizeof(header)) memcpy(&header, artifact, sizeof(header));
  if (size < sizeof(header) || memcmp(header.magic, "TESTART", 8) != 0 ||
      !test_entry_of(header.code)) {
    return host->status_make(host->self, PESTLE_STATUS_MALFORMED, __FILE__,
                             __LINE__, "not an artifact of backend test");
  }
  *out_loaded = host->alloc(host->self, sizeof(**out_loaded));
  if (!*out_loaded) {
    return host->status_make(host->self, PESTLE_STATUS_OUT_OF_MEMORY, __FILE__,
                             __LINE__, "out of host memory");
  }
  (*out_loaded)->code = header.code;
  return NULL;
}

static void test_backend_unload(void* self, pestle_loaded_t* loaded) {
  const pestle_host_t* host = ((test_backend_self_t*)self)->host;
  host->free(host->self, loaded, sizeof(*loaded));
}

static pestle_status_t test_backend_entry(void* self, pestle_loaded_t* loaded,
                                          pestle_cpu_entry_t* out_entry,
                                          const void** out_self) {
  (void)self;
  *out_entry = test_entry_of(loaded->code);
  *out_self = loaded;
  return NULL;
}

static pestle_status_t test_backend_describe(void* self, const char* cpu,
                                             pestle_target_caps_t* out_caps) {
  (void)self, (void)cpu;
  *out_caps = (pestle_target_caps_t){.struct_size = sizeof(*out_caps),
                                     .name = "test",
                                     .cpu = "testcpu",
                                     .features = "+sse2,+avx2,+fma",
                                     .max_lanes = 1};
  return NULL;
}

static pestle_status_t test_backend_toolchain(void* self, const char** text) {
  (void)self;
  *text = "test-1";
  return NULL;
}

static pestle_status_t test_backend_compile(
    void* self, const pestle_kir_t* kernel,
    const pestle_kernel_options_t* options, pestle_blob_t* out_artifact) {
  const pestle_host_t* host = ((test_backend_self_t*)self)->host;
  (void)kernel, (void)options, (void)out_artifact;
  return host->status_make(host->self, PESTLE_STATUS_UNSUPPORTED, __FILE__,
                           __LINE__, "backend test compiles nothing");
}

static void test_backend_deinit(void* self) {
  const pestle_host_t* host = ((test_backend_self_t*)self)->host;
  host->free(host->self, self, sizeof(test_backend_self_t));
}

static const pestle_backend_abi_info_t* test_backend_abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("test", "test-build");
  return &info;
}

static const pestle_backend_t* test_backend_init(const pestle_host_t* host,
                                                 pestle_status_t* out_status) {
  static const pestle_target_api_t target = {
      .struct_size = sizeof(target),
      .describe = test_backend_describe,
      .toolchain_id = test_backend_toolchain,
      .compile = test_backend_compile,
  };
  static const pestle_device_api_t device = {
      .struct_size = sizeof(device),
      .load = test_backend_load,
      .unload = test_backend_unload,
      .cpu_entry = test_backend_entry,
  };
  test_backend_self_t* self = host->alloc(host->self, sizeof(*self));
  if (!self) {
    *out_status = host->status_make(host->self, PESTLE_STATUS_OUT_OF_MEMORY,
                                    __FILE__, __LINE__, "out of host memory");
    return NULL;
  }
  *self = (test_backend_self_t){
      .table = {.struct_size = sizeof(pestle_backend_t),
                .name = "test",
                .device_type = PESTLE_DEVICE_CPU,
                .score = 1000,
                .device_count = 1,
                .self = self,
                .target = &target,
                .device = &device,
                .deinit = test_backend_deinit},
      .host = host,
  };
  return &self->table;
}

static inline pestle_status_t test_backend_add(pestle_context_t* context) {
  return pestle_registry_add_static(context, test_backend_abi_info,
                                    test_backend_init);
}

#endif  // PESTLE_TESTS_UNIT_RUNTIME_TEST_BACKEND_H_
