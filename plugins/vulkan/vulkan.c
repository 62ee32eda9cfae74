// SPDX-License-Identifier: Apache-2.0
// The backend "vulkan": Kernel IR to GLSL to SPIR-V, which is the artifact, so
// that a plan from the cache needs no compiler.
#include "plugins/vulkan/vulkan.h"

#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/slots.h"
#include "plugins/vulkan/dialect.h"
#include "plugins/vulkan/shader.h"

enum { SCORE_GPU = 100, SCORE_CPU = 5, THREADS = 64 };

// --- The compiler half ---

// What nearly every GPU of today has, where no device says.
static const vulkan_device_t k_generic = {
    .name = "generic",
    .features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_STORAGE8 |
                PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_FMA |
                PESTLE_C_PRINTER_HAS_FMA64 | PESTLE_C_PRINTER_HAS_F64 |
                PESTLE_C_PRINTER_HAS_SUBGROUP,
    .floats = PESTLE_VULKAN_ALL_FLOATS,
    .subgroup = 32,
    .group_lanes = 1024,
    .lanes = {1024, 1024, 64},
    .groups = {INT32_MAX, 65535, 65535},
    .shared = 32 << 10,
    .push_bytes = 128,
};

// The native one as if it had no 64-bit integers and no exact division: what is
// printed for devices without them runs on any.
static bool is_without_int64(const char* cpu) {
  return cpu && !strcmp(cpu, "noint64");
}

static pestle_status_t device_for(const vulkan_t* v, const char* cpu,
                                  const vulkan_device_t** out_device) {
  bool native = !cpu || !strcmp(cpu, "native") || is_without_int64(cpu);
  *out_device = native && v->device_count ? &v->device[0] : &k_generic;
  if (native || !strcmp(cpu, "generic")) return NULL;
  return PESTLE_PLUGIN_ERROR(
      v->host, UNSUPPORTED,
      "vulkan knows no device '%s': try native, noint64 or generic", cpu);
}

static pestle_c_printer_target_t target_of(const vulkan_device_t* d,
                                           const char* cpu) {
  uint32_t push = d->push_bytes < 256 ? d->push_bytes : 256;
  pestle_c_printer_target_t t = {.dialect = &pestle_vulkan_dialect,
                                 .features = d->features,
                                 .thread_lanes = THREADS,
                                 .argument_limit = push / 8};
  memcpy(t.max_groups, d->groups, sizeof t.max_groups);
  if (is_without_int64(cpu)) {
    t.features &= ~(unsigned)(PESTLE_C_PRINTER_HAS_INT64 |
                              PESTLE_C_PRINTER_HAS_SUBGROUP64 |
                              PESTLE_C_PRINTER_HAS_EXACT_DIV);
  }
  return t;
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  const vulkan_device_t* d;
  PESTLE_TRY(device_for(self, cpu, &d));
  pestle_c_printer_target_t target = target_of(d, cpu);
  pestle_target_caps_t caps = {
      .struct_size = sizeof caps,
      .name = "vulkan",
      .device_type = PESTLE_DEVICE_VULKAN,
      .vector_bytes = 16,
      .vector_registers = 64,
      .max_lanes = 4,
      .cores = 16,
      .l1_bytes = 32 << 10,
      .l2_bytes = 1 << 20,
      .scratch_bytes = d->shared < 48 << 10 ? d->shared : 48 << 10,
      .subgroup =
          d->features & PESTLE_C_PRINTER_HAS_SUBGROUP ? d->subgroup : 32,
      .max_group_lanes = d->group_lanes < 1024 ? d->group_lanes : 1024,
      .flags = PESTLE_TARGET_LANES,
      .register_bytes_lane = 512,
      .register_bytes_group = 128 << 10,
  };
  if (d->features & PESTLE_C_PRINTER_HAS_FMA) caps.flags |= PESTLE_TARGET_FMA;
  memcpy(caps.max_lanes_axis, d->lanes, sizeof caps.max_lanes_axis);
  memcpy(caps.max_groups_axis, d->groups, sizeof caps.max_groups_axis);
  memcpy(caps.source_language, "glsl", sizeof "glsl");
  snprintf(caps.cpu, sizeof caps.cpu, "%.50s%s", d->name,
           is_without_int64(cpu) ? ", noint64" : "");
  pestle_c_printer_describe(&target, &caps);
  pestle_plugin_give(&caps, sizeof caps, out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((vulkan_t*)self)->toolchain;
  return NULL;
}

static pestle_status_t assemble(const vulkan_t* v, const char* name,
                                const pestle_c_printer_kernel_t* printed,
                                bool is_own,
                                const pestle_kernel_options_t* options,
                                pestle_blob_t* out_words) {
  const vulkan_device_t* d;
  PESTLE_TRY(device_for(v, pestle_plugin_cpu_option(options), &d));
  return pestle_vulkan_compile_glsl(v->host, name, printed->text.data,
                                    printed->text.size, d->floats, is_own,
                                    out_words);
}

static pestle_status_t print_text(const vulkan_t* v, const pestle_kir_t* kernel,
                                  const pestle_source_text_t* source,
                                  const pestle_kernel_options_t* options,
                                  pestle_c_printer_kernel_t* out_printed) {
  const vulkan_device_t* d;
  const char* cpu = pestle_plugin_cpu_option(options);
  PESTLE_TRY(device_for(v, cpu, &d));
  pestle_c_printer_target_t target = target_of(d, cpu);
  return pestle_c_printer_print_source(v->host, &target, kernel, source,
                                       out_printed);
}

// |source| NULL: the kernel's instructions. SPIR-V has one entry point, main().
static pestle_status_t compile_source(void* self, const pestle_kir_t* kernel,
                                      const pestle_source_text_t* source,
                                      const pestle_kernel_options_t* options,
                                      pestle_blob_t* out_artifact) {
  const vulkan_t* v = self;
  const pestle_host_t* host = v->host;
  pestle_c_printer_kernel_t printed;
  pestle_blob_t words = {NULL, 0};
  *out_artifact = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(print_text(v, kernel, source, options, &printed));
  pestle_c_printer_artifact_t a =
      pestle_c_printer_artifact_of("vulkan", kernel, &printed);
  pestle_status_t status =
      assemble(v, a.name, &printed, source != NULL, options, &words);
  if (!status) {
    a.text_size = 0;
    a.binary = words.data;
    a.binary_size = words.size;
    status = pestle_c_printer_artifact_pack(host, &a, out_artifact);
    host->free(host->self, words.data, words.size);
  }
  host->free(host->self, printed.text.data, printed.text.size);
  return status;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  return compile_source(self, kernel, NULL, options, out_artifact);
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const vulkan_t* v = self;
  const pestle_host_t* host = v->host;
  pestle_c_printer_kernel_t printed;
  pestle_blob_t words;
  char name[256];
  *out_text = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(print_text(v, kernel, NULL, options, &printed));
  if (kind == PESTLE_TEXT_SOURCE) {
    *out_text = printed.text;
    return NULL;
  }
  pestle_c_printer_name(kernel, name, sizeof name);
  pestle_status_t status = assemble(v, name, &printed, false, options, &words);
  host->free(host->self, printed.text.data, printed.text.size);
  if (status) return status;
  status = pestle_vulkan_disassemble(host, words.data, words.size, out_text);
  host->free(host->self, words.data, words.size);
  return status;
}

static const pestle_target_api_t k_target = {
    .struct_size = sizeof k_target,
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print,
    .compile_source = compile_source,
};

// --- Entry points ---

static int32_t score_of(const vulkan_t* v) {
  if (!v->device_count) return 0;
  return v->device[0].is_gpu ? SCORE_GPU : SCORE_CPU;
}

static int32_t score(char* why, size_t capacity) {
  vulkan_t v;
  memset(&v, 0, sizeof v);
  if (capacity) *why = 0;
  pestle_vulkan_start(&v, why, capacity);
  int32_t result = score_of(&v);
  pestle_vulkan_stop(&v);
  return result;
}

static void deinit(void* self) {
  vulkan_t* v = self;
  pestle_vulkan_stop(v);
  v->host->free(v->host->self, v, sizeof *v);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  char why[256] = "";
  vulkan_t* v = pestle_plugin_state(host, sizeof *v, "vulkan", out_status);
  if (!v) return NULL;
  v->host = host;
  pestle_vulkan_start(v, why, sizeof why);
  const vulkan_device_t* d = v->device_count ? &v->device[0] : &k_generic;
  // SPIR-V is the driver's own matter: what it is printed for is the device.
  snprintf(v->toolchain, sizeof v->toolchain,
           "vulkan %s device=%s features=%x floats=%x push=%u groups=%u",
           PESTLE_PLUGIN_BUILD_ID, d->name, d->features, d->floats,
           d->push_bytes, d->groups[0]);
  v->backend = (pestle_backend_t){
      .struct_size = sizeof v->backend,
      .name = "vulkan",
      .device_type = PESTLE_DEVICE_VULKAN,
      .score = score_of(v),
      .device_count = v->device_count,
      .self = v,
      .target = &k_target,
      .device = &pestle_vulkan_device_api,
      .deinit = deinit,
  };
  return &v->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_VULKAN
#undef PESTLE_BACKEND_ABI_FLAGS
#define PESTLE_BACKEND_ABI_FLAGS PESTLE_BACKEND_TARGET_ALONE
PESTLE_BACKEND_IMPL("vulkan", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
