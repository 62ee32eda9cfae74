// SPDX-License-Identifier: Apache-2.0
// The backend "metal": Kernel IR to the Metal shading language. The artifact is
// the text, which Metal compiles when it is loaded. Needs no device and no Mac.
#include "plugins/metal/metal.h"

#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/slots.h"
#include "plugins/metal/dialect.h"

enum { THREADS = 64, GROUP_LANES = 1024, SUBGROUP = 32, SHARED = 32 << 10 };

// What all GPUs of Apple have, and matrix units, which came with the M1.
static pestle_c_printer_target_t printer_of(bool units) {
  return (pestle_c_printer_target_t){
      .dialect = &pestle_metal_dialect,
      .features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_STORAGE8 |
                  PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_FMA |
                  PESTLE_C_PRINTER_HAS_SUBGROUP |
                  PESTLE_C_PRINTER_HAS_EXACT_DIV |
                  (units ? PESTLE_C_PRINTER_HAS_MMA8 : 0u),
      .max_groups = {INT32_MAX, INT32_MAX, INT32_MAX},
      .thread_lanes = THREADS,
      .argument_limit = UINT32_MAX,
  };
}

// --- The compiler half ---

// Whether |cpu|, or the device at hand, has matrix units.
static pestle_status_t read_cpu(const metal_t* m, const char* cpu,
                                bool* out_units) {
  bool native = !cpu || !strcmp(cpu, "native"), old = false;
  if (!native) old = !strcmp(cpu, "apple6");
  *out_units = native ? m->device.units : !old;
  if (native || old || !strcmp(cpu, "apple")) return NULL;
  return PESTLE_PLUGIN_ERROR(
      m->host, UNSUPPORTED,
      "metal knows no GPU '%s': try native, apple, or apple6, which is before "
      "the M1 and has no matrix units",
      cpu);
}

// Everything is a product of f32: narrow operands are that exactly.
static void list_units(pestle_target_caps_t* caps) {
  snprintf(caps->features, sizeof caps->features, "simdgroup_matrix");
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                           .a = PESTLE_F32,
                           .b = PESTLE_F32,
                           .c = PESTLE_F32,
                           .m = 8,
                           .n = 8,
                           .k = 8,
                           .lanes = SUBGROUP};
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  bool units;
  PESTLE_TRY(read_cpu(self, cpu, &units));
  pestle_target_caps_t caps = {
      .struct_size = sizeof caps,
      .name = "metal",
      .cpu = "apple",
      .device_type = PESTLE_DEVICE_METAL,
      .vector_bytes = 16,
      .vector_registers = 64,
      .max_lanes = 4,
      .cores = 10,
      .l1_bytes = 32 << 10,
      .l2_bytes = 1 << 20,
      .scratch_bytes = SHARED,
      .subgroup = SUBGROUP,
      .max_group_lanes = GROUP_LANES,
      .flags = PESTLE_TARGET_FMA | PESTLE_TARGET_LANES,
      .max_lanes_axis = {GROUP_LANES, GROUP_LANES, GROUP_LANES},
      .max_groups_axis = {INT32_MAX, INT32_MAX, INT32_MAX},
      .register_bytes_lane = 512,
      .register_bytes_group = 208 << 10,
  };
  pestle_c_printer_target_t printer = printer_of(units);
  if (!units) snprintf(caps.cpu, sizeof caps.cpu, "apple6");
  if (units) list_units(&caps);
  pestle_c_printer_describe(&printer, &caps);
  pestle_plugin_give(&caps, sizeof caps, out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((metal_t*)self)->toolchain;
  return NULL;
}

// Metal's argument table.
enum { MAX_ARGUMENTS = 31 };

static pestle_status_t print_text(const metal_t* m, const pestle_kir_t* kernel,
                                  const pestle_kernel_options_t* options,
                                  pestle_c_printer_kernel_t* out_printed) {
  bool units;
  PESTLE_TRY(read_cpu(m, pestle_plugin_cpu_option(options), &units));
  pestle_c_printer_target_t printer = printer_of(units);
  uint32_t count = kernel->arg_count + kernel->param_count;
  if (count > MAX_ARGUMENTS) {
    return PESTLE_PLUGIN_ERROR(
        m->host, UNSUPPORTED, "kernel %s has %u arguments, metal takes %d",
        pestle_kir_string(kernel, kernel->name), count, MAX_ARGUMENTS);
  }
  return pestle_c_printer_print(m->host, &printer, kernel, out_printed);
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  const metal_t* m = self;
  pestle_c_printer_kernel_t printed;
  *out_artifact = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(print_text(m, kernel, options, &printed));
  pestle_c_printer_artifact_t a =
      pestle_c_printer_artifact_of("metal", kernel, &printed);
  pestle_status_t status =
      pestle_c_printer_artifact_pack(m->host, &a, out_artifact);
  m->host->free(m->host->self, printed.text.data, printed.text.size);
  return status;
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const metal_t* m = self;
  pestle_c_printer_kernel_t printed;
  *out_text = (pestle_blob_t){NULL, 0};
  if (kind != PESTLE_TEXT_SOURCE) {
    return PESTLE_PLUGIN_ERROR(
        m->host, UNSUPPORTED,
        "metal hands source to its driver: there is no assembly to print");
  }
  PESTLE_TRY(print_text(m, kernel, options, &printed));
  *out_text = printed.text;
  return NULL;
}

static const pestle_target_api_t k_target = {
    .struct_size = sizeof k_target,
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print,
};

// --- Entry points ---

static void deinit(void* self) {
  metal_t* m = self;
  pestle_metal_stop(m);
  m->host->free(m->host->self, m, sizeof *m);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  metal_t* m = pestle_plugin_state(host, sizeof *m, "metal", out_status);
  if (!m) return NULL;
  m->host = host;
  *out_status = pestle_metal_start(m);
  if (*out_status) {
    host->free(host->self, m, sizeof *m);
    return NULL;
  }
  snprintf(m->toolchain, sizeof m->toolchain, "metal %s device=%s units=%d",
           PESTLE_PLUGIN_BUILD_ID, m->device.name, m->device.units);
  m->backend = (pestle_backend_t){
      .struct_size = sizeof m->backend,
      .name = "metal",
      .device_type = PESTLE_DEVICE_METAL,
      .score = m->device.score,
      .device_count = m->device.count,
      .self = m,
      .target = &k_target,
      .device = m->device.api,
      .deinit = deinit,
  };
  return &m->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_METAL
#undef PESTLE_BACKEND_ABI_FLAGS
#define PESTLE_BACKEND_ABI_FLAGS PESTLE_BACKEND_TARGET_ALONE
PESTLE_BACKEND_IMPL("metal", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(pestle_metal_score)
