// SPDX-License-Identifier: Apache-2.0
// Metal and CUDA for the tests of devices: printed, compiled as C++, run here.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_GPU_SHIM_H_
#define PESTLE_TESTS_UNIT_PLUGINS_GPU_SHIM_H_

#include "gpu_kernel.h"
#include "plugins/cuda/dialect.h"
#include "shim/shim_device.h"

static pestle_backend_t shim_backend;

static inline void shim_start(shim_language_t language) {
  pestle_status_t status;
  shim_language = language;
  shim_host = &test_host;
  if (!shim_has_compiler()) {
    print_message("skipped: clang++-19 was not found\n");
    exit(77);
  }
  if (!ref_backend) {
    pestle_test_allocator_init(&host_memory, 0);
    ref_backend = pestle_ref_backend_init(&test_host, &status);
    assert_ok(status);
  }
}

// The plugin's own target; what stands for its device is this CPU.
static inline void metal_setup(void) {
  char why[512];
  (void)gpu_open("metal", why, sizeof why);
  shim_start((shim_language_t){"metal", "metal_stdlib", true, false});
  shim_backend = *gpu;
  shim_backend.device = &shim_device_api;
  gpu = &shim_backend;
  gpu_most_arguments = 31;
}

// --- CUDA: the dialect alone ---

static const pestle_c_printer_target_t cuda_printer = {
    .dialect = &pestle_cuda_dialect,
    .features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_F64 |
                PESTLE_C_PRINTER_HAS_EXACT_DIV | PESTLE_C_PRINTER_HAS_STORAGE8 |
                PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_FMA |
                PESTLE_C_PRINTER_HAS_FMA64 | PESTLE_C_PRINTER_HAS_SUBGROUP |
                PESTLE_C_PRINTER_HAS_SUBGROUP64,
    .max_groups = {INT32_MAX, 65535, 65535},
    .thread_lanes = 64,
    .argument_limit = UINT32_MAX};

static inline pestle_status_t cuda_compile(
    void* self, const pestle_kir_t* k, const pestle_kernel_options_t* options,
    pestle_blob_t* out_artifact) {
  pestle_c_printer_kernel_t printed;
  (void)self, (void)options;
  PESTLE_TRY(pestle_c_printer_print(&test_host, &cuda_printer, k, &printed));
  pestle_c_printer_artifact_t a =
      pestle_c_printer_artifact_of("cuda", k, &printed);
  pestle_status_t status =
      pestle_c_printer_artifact_pack(&test_host, &a, out_artifact);
  host_free(NULL, printed.text.data, printed.text.size);
  return status;
}

static inline pestle_status_t cuda_print(void* self, const pestle_kir_t* k,
                                         const pestle_kernel_options_t* options,
                                         pestle_text_t kind,
                                         pestle_blob_t* out_text) {
  pestle_c_printer_kernel_t printed;
  (void)self, (void)options, (void)kind;
  PESTLE_TRY(pestle_c_printer_print(&test_host, &cuda_printer, k, &printed));
  *out_text = printed.text;
  return NULL;
}

static const pestle_target_api_t cuda_target = {
    .struct_size = sizeof cuda_target,
    .compile = cuda_compile,
    .print = cuda_print,
};

static inline void cuda_setup(void) {
  shim_start((shim_language_t){"cuda", "cuda_shim.h", false, false});
  shim_backend = (pestle_backend_t){.struct_size = sizeof shim_backend,
                                    .name = "cuda",
                                    .device_count = 1,
                                    .target = &cuda_target,
                                    .device = &shim_device_api};
  gpu = &shim_backend;
  caps = (pestle_target_caps_t){.struct_size = sizeof caps,
                                .name = "cuda",
                                .max_lanes = 4,
                                .subgroup = 32,
                                .max_group_lanes = 1024,
                                .scratch_bytes = 48 << 10,
                                .flags = PESTLE_TARGET_FMA};
  pestle_c_printer_describe(&cuda_printer, &caps);
}

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_SHIM_H_
