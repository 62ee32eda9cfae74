// SPDX-License-Identifier: Apache-2.0
// The compiler half: what a target is like, Kernel IR to CUDA C to artifacts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/slots.h"
#include "plugins/cuda/artifact.h"
#include "plugins/cuda/backend.h"
#include "plugins/cuda/dialect.h"
#include "plugins/cuda/nvrtc.h"
#include "plugins/cuda/property.h"
#include "plugins/cuda/sass.h"

enum { THREAD_LANES = 128, GROUP_LANES = 1024, SUBGROUP = 32 };

// --- Targets ---

static cuda_arch_t arch_of(const cuda_device_t* d) {
  cuda_arch_t arch = {.capability = d->capability,
                      .shared = (uint32_t)d->shared_most,
                      .registers = (uint32_t)d->registers,
                      .units = (uint32_t)d->units,
                      .l2 = d->l2,
                      .memory = pestle_cuda_bandwidth(d)};
  memcpy(arch.name, d->arch, sizeof arch.name);
  return arch;
}

// The one that |cpu| names; NULL: the first device's, or one that most devices
// of today run where there is none.
static pestle_status_t find_arch(const cuda_t* cuda, const char* cpu,
                                 cuda_arch_t* out_arch) {
  bool native = !cpu || !strcmp(cpu, "native");
  const cuda_device_t* d = cuda->device_count ? &cuda->device[0] : NULL;
  if (d && (native || !strcmp(cpu, d->arch))) {
    *out_arch = arch_of(d);
    return NULL;
  }
  if (pestle_cuda_arch_find(native ? "sm_80" : cpu, out_arch)) return NULL;
  char names[256];
  pestle_cuda_arch_names(names, sizeof names);
  return PESTLE_PLUGIN_ERROR(cuda->host, UNSUPPORTED,
                             "cuda knows no '%s': try native or one of %s", cpu,
                             names);
}

// Tile copies and wgmma are of this architecture alone.
static bool has_tiles(const char* arch) {
  return !strcmp(arch, "sm_90a");
}

// Clusters of blocks, since sm_90: groups that are spread over units.
static bool has_clusters(const char* arch) {
  return strtol(arch + strlen("sm_"), NULL, 10) >= 90;
}

// Words of two floats, since sm_80.
static bool has_halves(const char* arch) {
  return strtol(arch + strlen("sm_"), NULL, 10) >= 80;
}

// mma.sync, ldmatrix and cp.async came with this one.
static bool has_units(const char* arch) {
  return strtol(arch + strlen("sm_"), NULL, 10) >= 80;
}

// Those of 8-bit floats, with this one.
static bool has_f8(const char* arch) {
  return strtol(arch + strlen("sm_"), NULL, 10) >= 89;
}

static pestle_c_printer_target_t text_target(const char* arch) {
  cuda_arch_t row = {.units = 0};
  (void)pestle_cuda_arch_find(arch, &row);
  return (pestle_c_printer_target_t){
      .dialect = &pestle_cuda_dialect,
      .features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_F64 |
                  PESTLE_C_PRINTER_HAS_STORAGE8 |
                  PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_FMA |
                  PESTLE_C_PRINTER_HAS_FMA64 | PESTLE_C_PRINTER_HAS_SUBGROUP |
                  PESTLE_C_PRINTER_HAS_EXACT_DIV |
                  (has_halves(arch) ? PESTLE_C_PRINTER_HAS_HALVES : 0u) |
                  (has_units(arch) ? PESTLE_C_PRINTER_HAS_MMA : 0u) |
                  (has_tiles(arch) ? PESTLE_C_PRINTER_HAS_TILES : 0u),
      .max_groups = {INT32_MAX, 65535, 65535},
      .group_lanes = has_clusters(arch) ? GROUP_LANES : 0,
      .units = row.units,
      .thread_lanes = THREAD_LANES,
      .argument_limit = UINT32_MAX};
}

static void list_features(const cuda_arch_t* arch, char* text,
                          size_t capacity) {
  static const struct {
    int since;
    const char* name;
  } rows[] = {{75, "f16,shfl"},
              {80, ",bf16,cp.async,mma.sync"},
              {90, ",clusters,tma"},
              {100, ",tcgen"}};
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (arch->capability < rows[i].since || at >= capacity) break;
    int size = snprintf(text + at, capacity - at, "%s", rows[i].name);
    at += size > 0 ? (size_t)size : 0;
  }
}

// A unit of |lanes| that multiplies bf16, and one that multiplies f16.
static void add_units(pestle_target_caps_t* caps, pestle_intrinsic_kind_t kind,
                      uint16_t m, uint16_t n, uint16_t lanes) {
  static const pestle_dtype_t dtypes[] = {PESTLE_BF16, PESTLE_F16};
  for (size_t i = 0; i < 2; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = (uint8_t)kind,
                             .a = (uint8_t)dtypes[i],
                             .b = (uint8_t)dtypes[i],
                             .c = PESTLE_F32,
                             .m = m,
                             .n = n,
                             .k = 16,
                             .lanes = lanes};
  }
}

// One that multiplies bytes, whichever have a sign, in i32.
static void add_byte_units(pestle_target_caps_t* caps,
                           pestle_intrinsic_kind_t kind, uint16_t m, uint16_t n,
                           uint16_t lanes) {
  static const pestle_dtype_t dtypes[] = {PESTLE_I8, PESTLE_U8};
  for (size_t i = 0; i < 4; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = (uint8_t)kind,
                             .a = (uint8_t)dtypes[i / 2],
                             .b = (uint8_t)dtypes[i % 2],
                             .c = PESTLE_I32,
                             .m = m,
                             .n = n,
                             .k = 32,
                             .lanes = lanes};
  }
}

// One that multiplies 8-bit floats of either type in f32.
static void add_f8_unit(pestle_target_caps_t* caps,
                        pestle_intrinsic_kind_t kind, uint16_t m, uint16_t n,
                        uint16_t lanes) {
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = (uint8_t)kind,
                           .a = PESTLE_F8E4M3FN,
                           .b = PESTLE_F8E5M2,
                           .c = PESTLE_F32,
                           .m = m,
                           .n = n,
                           .k = 32,
                           .lanes = lanes};
}

// One that multiplies f32 with 10 bits of their mantissas.
static void add_tf32_unit(pestle_target_caps_t* caps,
                          pestle_intrinsic_kind_t kind, uint16_t m, uint16_t n,
                          uint16_t lanes) {
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = (uint8_t)kind,
                           .a = PESTLE_F32,
                           .b = PESTLE_F32,
                           .c = PESTLE_F32,
                           .m = m,
                           .n = n,
                           .k = 8,
                           .lanes = lanes};
}

static void list_units(const cuda_arch_t* arch, pestle_target_caps_t* caps) {
  if (has_clusters(arch->name))
    caps->flags |= PESTLE_TARGET_WIDE_GROUPS | PESTLE_TARGET_WIDE_LAUNCHES;
  if (has_units(arch->name)) {
    caps->flags |= PESTLE_TARGET_ASYNC_COPY;
    add_units(caps, PESTLE_INTRINSIC_MMA, 16, 8, SUBGROUP);
    add_byte_units(caps, PESTLE_INTRINSIC_MMA, 16, 8, SUBGROUP);
    add_tf32_unit(caps, PESTLE_INTRINSIC_MMA, 16, 8, SUBGROUP);
    if (has_f8(arch->name))
      add_f8_unit(caps, PESTLE_INTRINSIC_MMA, 16, 8, SUBGROUP);
  }
  if (has_tiles(arch->name)) {
    add_units(caps, PESTLE_INTRINSIC_WGMMA, 64, 256, 4 * SUBGROUP);
    add_byte_units(caps, PESTLE_INTRINSIC_WGMMA, 64, 256, 4 * SUBGROUP);
    add_f8_unit(caps, PESTLE_INTRINSIC_WGMMA, 64, 256, 4 * SUBGROUP);
    add_tf32_unit(caps, PESTLE_INTRINSIC_WGMMA, 64, 256, 4 * SUBGROUP);
  }
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  cuda_arch_t arch;
  PESTLE_TRY(find_arch(self, cpu, &arch));
  pestle_c_printer_target_t target = text_target(arch.name);
  pestle_target_caps_t caps = {.struct_size = sizeof caps,
                               .name = "cuda",
                               .device_type = PESTLE_DEVICE_CUDA,
                               .vector_bytes = 16,
                               .vector_registers = 255,
                               .max_lanes = 16,
                               .cores = arch.units,
                               .l1_bytes = 128 << 10,
                               .l2_bytes = arch.l2,
                               .scratch_bytes = arch.shared,
                               .subgroup = SUBGROUP,
                               .max_group_lanes = GROUP_LANES,
                               .flags = PESTLE_TARGET_FMA |
                                        PESTLE_TARGET_LANES |
                                        PESTLE_TARGET_SUBGROUPS,
                               .max_lanes_axis = {GROUP_LANES, GROUP_LANES, 64},
                               .max_groups_axis = {INT32_MAX, 65535, 65535},
                               .register_bytes_lane = 255 * 4,
                               .register_bytes_group = arch.registers,
                               .memory_bytes_second = arch.memory};
  memcpy(caps.source_language, "cuda", sizeof "cuda");
  memcpy(caps.cpu, arch.name, sizeof arch.name);
  list_features(&arch, caps.features, sizeof caps.features);
  list_units(&arch, &caps);
  pestle_c_printer_describe(&target, &caps);
  pestle_plugin_give(&caps, sizeof caps, out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((const cuda_t*)self)->toolchain;
  return NULL;
}

// --- Texts ---

static pestle_status_t arch_for(const cuda_t* cuda,
                                const pestle_kernel_options_t* options,
                                cuda_arch_t* out_arch) {
  return find_arch(cuda, pestle_plugin_cpu_option(options), out_arch);
}

static pestle_status_t print_text(const cuda_t* cuda, const char* arch,
                                  const pestle_kir_t* kernel,
                                  const pestle_source_text_t* source,
                                  pestle_c_printer_kernel_t* out_printed) {
  pestle_c_printer_target_t target = text_target(arch);
  return pestle_c_printer_print_source(cuda->host, &target, kernel, source,
                                       out_printed);
}

// |printed|'s text as a C string of host->alloc(), of printed->text.size + 1.
static char* c_string(const pestle_host_t* host,
                      const pestle_c_printer_kernel_t* printed) {
  char* text = host->alloc(host->self, printed->text.size + 1);
  if (!text) return NULL;
  memcpy(text, printed->text.data, printed->text.size);
  text[printed->text.size] = 0;
  return text;
}

// What the kernel's tensor maps are to be made of.
static pestle_status_t take_maps(const pestle_host_t* host,
                                 const pestle_kir_t* k, cuda_artifact_t* a) {
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, b);
    if (u->scope != PESTLE_KIR_TENSOR_MAP) continue;
    if (a->map_count == CUDA_MAPS) {
      return PESTLE_PLUGIN_ERROR(host, UNSUPPORTED,
                                 "cuda: kernel %s has more than %d tensor maps",
                                 a->name, CUDA_MAPS);
    }
    const uint32_t* word = &k->table_word[k->table[u->layout - 1].first];
    cuda_map_t* map = &a->map[a->map_count++];
    *map = (cuda_map_t){.slot = pestle_kir_buffer(k, word[0])->arg_slot,
                        .rank = word[1],
                        .swizzle = word[2],
                        .dtype = u->dtype,
                        .offset = word[3] | (uint64_t)word[4] << 32};
    for (uint32_t i = 0; i < map->rank; ++i) {
      const uint32_t* dim = &word[5 + 4 * i];
      map->extent[i] = dim[0];
      map->box[i] = dim[1];
      map->stride[i] = dim[2] | (uint64_t)dim[3] << 32;
    }
    const uint32_t* more = &word[5 + 4 * map->rank];
    map->windows = k->table[u->layout - 1].count > more - word;
    for (uint32_t i = 0; map->windows && i + 2 < map->rank; ++i) {
      map->low[i] = (int32_t)more[1 + 3 * i];
      map->high[i] = (int32_t)more[2 + 3 * i];
      map->step[i] = more[3 + 3 * i];
    }
  }
  return NULL;
}

static pestle_status_t build(const pestle_host_t* host,
                             const pestle_kir_t* kernel,
                             const pestle_source_text_t* source,
                             const pestle_c_printer_kernel_t* printed,
                             const char* arch, bool want_ptx,
                             cuda_artifact_t* out_artifact,
                             pestle_blob_t* out_code) {
  cuda_artifact_t a = {.map_count = 0,
                       .arg_count = kernel->arg_count,
                       .param_count = kernel->param_count,
                       .dynamic_shared = printed->shared_bytes,
                       .at_once = printed->is_wide_launch};
  pestle_c_printer_name(kernel, a.name, sizeof a.name);
  if (source && source->whole) {
    snprintf(a.name, sizeof a.name, "%s", source->entry);
  }
  memcpy(a.group, printed->group, sizeof a.group);
  memcpy(a.lane, printed->lane, sizeof a.lane);
  PESTLE_TRY(take_maps(host, kernel, &a));
  char* text = c_string(host, printed);
  if (!text) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no memory for a kernel's text");
  }
  cuda_compile_t job = {a.name, text, arch, want_ptx,
                        source ? source->flags : NULL};
  pestle_status_t status =
      pestle_cuda_nvrtc_compile(host, &job, out_code, &a.is_ptx, a.arch);
  host->free(host->self, text, printed->text.size + 1);
  bool own;
  a.waits = !(source && source->whole) && !a.at_once &&
            pestle_cuda_arch_number(a.arch, &own) >= 90;
  a.code = out_code->data;
  a.code_size = out_code->size;
  *out_artifact = a;
  return status;
}

// |source| NULL: the kernel's instructions. A whole text has its entry in extern "C",
// which takes pointers in slot order.
static pestle_status_t compile_source(void* self, const pestle_kir_t* kernel,
                                      const pestle_source_text_t* source,
                                      const pestle_kernel_options_t* options,
                                      pestle_blob_t* out_artifact) {
  const cuda_t* cuda = self;
  const pestle_host_t* host = cuda->host;
  cuda_arch_t arch;
  cuda_artifact_t a;
  pestle_c_printer_kernel_t printed;
  pestle_blob_t code = {NULL, 0};
  *out_artifact = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(arch_for(cuda, options, &arch));
  PESTLE_TRY(print_text(cuda, arch.name, kernel, source, &printed));
  pestle_status_t status =
      build(host, kernel, source, &printed, arch.name, false, &a, &code);
  if (!status) status = pestle_cuda_artifact_pack(host, &a, out_artifact);
  if (code.data) host->free(host->self, code.data, code.size);
  host->free(host->self, printed.text.data, printed.text.size);
  return status;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  return compile_source(self, kernel, NULL, options, out_artifact);
}

// PTX, and the machine code where a disassembler is installed.
static pestle_status_t print_asm(const cuda_t* cuda, const pestle_kir_t* kernel,
                                 const pestle_c_printer_kernel_t* printed,
                                 const char* arch, pestle_blob_t* out_text) {
  const pestle_host_t* host = cuda->host;
  pestle_plugin_text_t out = {.host = host};
  pestle_blob_t ptx = {NULL, 0}, code = {NULL, 0};
  cuda_artifact_t a;
  PESTLE_TRY(build(host, kernel, NULL, printed, arch, true, &a, &ptx));
  pestle_plugin_text_append(&out, ptx.data, ptx.size - 1);
  host->free(host->self, ptx.data, ptx.size);
  pestle_status_t status =
      build(host, kernel, NULL, printed, arch, false, &a, &code);
  if (!status && !a.is_ptx) pestle_cuda_disassemble(&code, &out);
  if (code.data) host->free(host->self, code.data, code.size);
  if (!status) return pestle_plugin_text_take(&out, out_text);
  pestle_plugin_text_deinit(&out);
  return status;
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const cuda_t* cuda = self;
  cuda_arch_t arch;
  pestle_c_printer_kernel_t printed;
  *out_text = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(arch_for(cuda, options, &arch));
  PESTLE_TRY(print_text(cuda, arch.name, kernel, NULL, &printed));
  if (kind == PESTLE_TEXT_SOURCE) {
    *out_text = printed.text;
    return NULL;
  }
  pestle_status_t status =
      print_asm(cuda, kernel, &printed, arch.name, out_text);
  cuda->host->free(cuda->host->self, printed.text.data, printed.text.size);
  return status;
}

const pestle_target_api_t pestle_cuda_target = {
    .struct_size = sizeof pestle_cuda_target,
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print,
    .compile_source = compile_source,
};
