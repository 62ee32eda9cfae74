// SPDX-License-Identifier: Apache-2.0
// The backend's two tables. To start a new target, copy this folder: every
// function here is one that a target must have.
#include "plugins/ref/ref.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"

#define BUILD_ID "ref-3"

pestle_status_t pestle_ref_plugin_status(const pestle_host_t* host,
                                         pestle_status_code_t code,
                                         const char* file, int line,
                                         const char* format, ...) {
  char message[256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return host->status_make(host->self, (int32_t)code, file, line, message);
}

// The table, and the host behind it: one block of the host's.
typedef struct ref_backend_t {
  pestle_backend_t table;
  const pestle_host_t* host;
} ref_backend_t;

static const pestle_host_t* host_of(void* self) {
  return ((const ref_backend_t*)self)->host;
}

// --- Target ---

// Bits of the dtypes of |kinds| that a value may have.
static uint32_t dtypes_of(unsigned kinds) {
  uint32_t bits = 0;
  for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    unsigned kind = pestle_dtype_info((pestle_dtype_t)d)->kind;
    bool number = kind & (PESTLE_KIND_BOOL | PESTLE_KIND_REAL);
    if (number && (kind & kinds)) bits |= pestle_dtype_bit((pestle_dtype_t)d);
  }
  return bits;
}

// Tiles in shared memory.
static bool has_tiles(const pestle_target_caps_t* caps) {
  for (uint32_t i = 0; i < caps->intrinsic_count; ++i)
    if (caps->intrinsic[i].kind == PESTLE_INTRINSIC_WGMMA) return true;
  return false;
}

static void describe_ops(pestle_target_caps_t* caps) {
  uint32_t all = dtypes_of(PESTLE_KIND_BOOL | PESTLE_KIND_REAL);
#define PESTLE_KIR(NAME, code, ...) caps->op_dtypes[code] = all;
#include "pestle/kir.def"
  bool tiles = has_tiles(caps);
  for (unsigned op = PESTLE_KIR_REF; op <= PESTLE_KIR_SYNC && !tiles; ++op)
    caps->op_dtypes[op] = 0;
  for (unsigned op = PESTLE_KIR_WGMMA_RA;
       op <= PESTLE_KIR_TILE_LOAD_ALL && !tiles; ++op)
    caps->op_dtypes[op] = 0;
  // Its kernels follow each other whole: it has the op to run what is made for others.
  if (!tiles) caps->op_dtypes[PESTLE_KIR_GRID_WAIT] = 0;
  bool copies = caps->flags & PESTLE_TARGET_ASYNC_COPY;
  bool lanes = caps->flags & PESTLE_TARGET_LANES;
  if (!caps->intrinsic_count || !lanes) caps->op_dtypes[PESTLE_KIR_MMA] = 0;
  if (!lanes || caps->subgroup != 32) caps->op_dtypes[PESTLE_KIR_SG_BALLOT] = 0;
  bool matrix = caps->intrinsic_count && !lanes;
  for (unsigned op = PESTLE_KIR_MREG_ZERO; op <= PESTLE_KIR_MREG_STREAM; ++op)
    caps->op_dtypes[op] = matrix ? all | UINT32_C(1) << PESTLE_NONE : 0;
  for (unsigned op = PESTLE_KIR_LDMATRIX; op <= PESTLE_KIR_COPY_WAIT && !copies;
       ++op)
    caps->op_dtypes[op] = 0;
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...) \
  caps->op_dtypes[PESTLE_KIR_##NAME] = dtypes_of(KINDS);
#include "pestle/scalar.def"
  // What has approximations of f32 computes such functions in f32.
  if (!(caps->flags & PESTLE_TARGET_APPROX)) return;
  static const unsigned wide[] = {PESTLE_KIR_EXP, PESTLE_KIR_EXP2,
                                  PESTLE_KIR_LOGISTIC, PESTLE_KIR_TANH,
                                  PESTLE_KIR_ERFC};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; ++i) {
    caps->op_dtypes[wide[i]] &= UINT32_C(1) << PESTLE_F32 | UINT32_C(1)
                                                                << PESTLE_F64;
  }
}

// Interprets alike on every CPU. Under these names it describes itself as a GPU
// does, so that kernels with lanes run anywhere: "simt" has subgroups of 32
// and matrix units as NVIDIA's, "simt90" tiles and warpgroups as Hopper's too,
// "simt90c" has more cores with less memory each,
// "simtm" units such as Apple's, "simt8" subgroups of 8, "simt1" none; "simtw" is
// "simt" without integers of 64 bits.
#define SIMT "simt"
#define HOPPER "90"
#define MANY_CORES "90c"  // more cores, each with less memory

static bool is_hopper(const char* number) {
  return !strncmp(number, HOPPER, strlen(HOPPER));
}

static void describe_lanes(const char* cpu, pestle_target_caps_t* caps) {
  const char* number = cpu + strlen(SIMT);
  strncpy(caps->cpu, cpu, sizeof caps->cpu - 1);
  caps->vector_bytes = 16;
  caps->scratch_bytes = 48 << 10;
  caps->register_bytes_lane = 1 << 10;
  caps->subgroup = !strcmp(number, "8") ? 8 : !strcmp(number, "1") ? 1 : 32;
  caps->max_group_lanes = 1024;
  for (size_t axis = 0; axis < 3; ++axis) {
    caps->max_lanes_axis[axis] = 1024;
    caps->max_groups_axis[axis] = INT32_MAX;
  }
  caps->cores = !strcmp(number, MANY_CORES) ? 64 : 4;
  caps->flags |= PESTLE_TARGET_LANES;
  if (is_hopper(number)) {
    caps->flags |= PESTLE_TARGET_APPROX | PESTLE_TARGET_WIDE_GROUPS |
                   PESTLE_TARGET_WIDE_LAUNCHES;
  }
  if (caps->subgroup != 32) return;
  caps->flags |= PESTLE_TARGET_SUBGROUPS;
  if (!strcmp(number, "m")) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                             .a = PESTLE_F32,
                             .b = PESTLE_F32,
                             .c = PESTLE_F32,
                             .m = 8,
                             .n = 8,
                             .k = 8,
                             .lanes = 32};
    return;
  }
  // "simt" has matrix units and copies past the registers as well.
  static const uint8_t dtypes[] = {PESTLE_BF16, PESTLE_F16};
  caps->flags |= PESTLE_TARGET_ASYNC_COPY;
  for (int i = 0; i < 2; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                             .a = dtypes[i],
                             .b = dtypes[i],
                             .c = PESTLE_F32,
                             .m = 16,
                             .n = 8,
                             .k = 16,
                             .lanes = 32};
  }
  static const uint8_t bytes[] = {PESTLE_I8, PESTLE_U8};
  for (int i = 0; i < 4; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                             .a = bytes[i / 2],
                             .b = bytes[i % 2],
                             .c = PESTLE_I32,
                             .m = 16,
                             .n = 8,
                             .k = 32,
                             .lanes = 32};
  }
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                           .a = PESTLE_F32,
                           .b = PESTLE_F32,
                           .c = PESTLE_F32,
                           .m = 16,
                           .n = 8,
                           .k = 8,
                           .lanes = 32};
  if (!is_hopper(number)) return;
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_MMA,
                           .a = PESTLE_F8E4M3FN,
                           .b = PESTLE_F8E5M2,
                           .c = PESTLE_F32,
                           .m = 16,
                           .n = 8,
                           .k = 32,
                           .lanes = 32};
  caps->scratch_bytes = 227 << 10;
  caps->register_bytes_lane = 255 * 4;
  caps->register_bytes_group = 256 << 10;
  if (!strcmp(number, MANY_CORES)) {
    caps->scratch_bytes = 99 << 10;
    caps->register_bytes_group = 48 << 10;
  }
  for (int i = 0; i < 2; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_WGMMA,
                             .a = dtypes[i],
                             .b = dtypes[i],
                             .c = PESTLE_F32,
                             .m = 64,
                             .n = 256,
                             .k = 16,
                             .lanes = 128};
  }
  for (int i = 0; i < 4; ++i) {
    caps->intrinsic[caps->intrinsic_count++] =
        (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_WGMMA,
                             .a = bytes[i / 2],
                             .b = bytes[i % 2],
                             .c = PESTLE_I32,
                             .m = 64,
                             .n = 256,
                             .k = 32,
                             .lanes = 128};
  }
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_WGMMA,
                           .a = PESTLE_F8E4M3FN,
                           .b = PESTLE_F8E5M2,
                           .c = PESTLE_F32,
                           .m = 64,
                           .n = 256,
                           .k = 32,
                           .lanes = 128};
  caps->intrinsic[caps->intrinsic_count++] =
      (pestle_intrinsic_t){.kind = PESTLE_INTRINSIC_WGMMA,
                           .a = PESTLE_F32,
                           .b = PESTLE_F32,
                           .c = PESTLE_F32,
                           .m = 64,
                           .n = 256,
                           .k = 8,
                           .lanes = 128};
}

// Under this name it has the matrix registers of CPUs, so that kernels of these
// run anywhere.
#define MATRIX "matrix"

static void describe_matrix(pestle_target_caps_t* caps) {
  static const uint8_t bytes[] = {PESTLE_I8, PESTLE_U8};
  strncpy(caps->cpu, MATRIX, sizeof caps->cpu - 1);
  pestle_intrinsic_t unit = {.kind = PESTLE_INTRINSIC_MREG,
                             .a = PESTLE_BF16,
                             .b = PESTLE_BF16,
                             .c = PESTLE_F32,
                             .m = 16,
                             .n = 16,
                             .k = 32,
                             .lanes = 1};
  caps->intrinsic[caps->intrinsic_count++] = unit;
  unit.c = PESTLE_I32;
  unit.k = 64;
  for (int i = 0; i < 4; ++i) {
    unit.a = bytes[i & 1];
    unit.b = bytes[i >> 1];
    caps->intrinsic[caps->intrinsic_count++] = unit;
  }
}

// Under this name, as under "simtw", it has no integers of 64 bits.
#define WORDS "words"

static void drop_wide(const char* cpu, pestle_target_caps_t* caps) {
  const uint32_t wide = UINT32_C(1) << PESTLE_I64 | UINT32_C(1) << PESTLE_U64;
  strncpy(caps->cpu, cpu, sizeof caps->cpu - 1);
  for (unsigned op = 0; op < PESTLE_KIR_OP_LIMIT; ++op)
    caps->op_dtypes[op] &= ~wide;
  caps->storage_dtypes &= ~wide;
}

static bool is_lanes(const char* cpu) {
  return cpu && !strncmp(cpu, SIMT, strlen(SIMT));
}

static bool knows_lanes(const char* cpu) {
  static const char* const kinds[] = {"",         "1", "8", HOPPER,
                                      MANY_CORES, "m", "w"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (!strcmp(cpu + strlen(SIMT), kinds[i])) return true;
  }
  return false;
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  pestle_target_caps_t caps = {.struct_size = sizeof caps,
                               .name = "ref",
                               .device_type = PESTLE_DEVICE_CPU,
                               .vector_bytes = 64,
                               .vector_registers = 32,
                               .max_lanes = PESTLE_KIR_MAX_LANES,
                               .cores = 1,
                               .l1_bytes = 32 << 10,
                               .l2_bytes = 1 << 20,
                               .l3_bytes = 16 << 20,
                               .scratch_bytes = 1 << 20,
                               .max_group_lanes = 1,
                               .flags = PESTLE_TARGET_INTERPRETED};
  if (is_lanes(cpu) && !knows_lanes(cpu)) {
    return REF_ERROR(host_of(self), UNSUPPORTED,
                     "ref knows no '%s': simt, simt1, simt8, simt90, "
                     "simt90c, simtm and simtw are GPUs that it describes",
                     cpu);
  }
  if (is_lanes(cpu)) describe_lanes(cpu, &caps);
  if (cpu && !strcmp(cpu, MATRIX)) describe_matrix(&caps);
  describe_ops(&caps);
  if (cpu && (!strcmp(cpu, WORDS) || !strcmp(cpu, SIMT "w")))
    drop_wide(cpu, &caps);
  // A host of an older minor version has a shorter record.
  size_t size = out_caps->struct_size;
  if (size == 0 || size > sizeof caps) size = sizeof caps;
  caps.struct_size = size;
  memcpy(out_caps, &caps, size);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  *out_text = BUILD_ID;
  return NULL;
}

// Decodes once, so that what cannot run is refused here and not at load.
static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  const pestle_host_t* host = host_of(self);
  pestle_loaded_t* loaded;
  (void)options;
  *out_artifact = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(pestle_ref_plugin_check(host, kernel));
  PESTLE_TRY(pestle_ref_plugin_program(host, kernel, &loaded));
  host->free(host->self, loaded, loaded->total_size);
  return pestle_ref_plugin_pack(host, kernel, out_artifact);
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const pestle_host_t* host = host_of(self);
  (void)options;
  *out_text = (pestle_blob_t){NULL, 0};
  if (kind != PESTLE_TEXT_SOURCE) {
    return REF_ERROR(host, UNSUPPORTED,
                     "ref interprets kernels: there is no assembly");
  }
  return pestle_ref_plugin_list(host, kernel, out_text);
}

// --- Device ---

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const pestle_host_t* host = host_of(self);
  pestle_kir_t kernel;
  (void)device;
  *out_loaded = NULL;
  PESTLE_TRY(pestle_ref_plugin_open(host, artifact, size, &kernel));
  PESTLE_TRY(pestle_ref_plugin_check(host, &kernel));
  return pestle_ref_plugin_program(host, &kernel, out_loaded);
}

static void unload(void* self, pestle_loaded_t* loaded) {
  const pestle_host_t* host = host_of(self);
  if (loaded) host->free(host->self, loaded, loaded->total_size);
}

static pestle_status_t cpu_entry(void* self, pestle_loaded_t* loaded,
                                 pestle_cpu_entry_t* out_entry,
                                 const void** out_entry_self) {
  (void)self;
  *out_entry = pestle_ref_plugin_run;
  *out_entry_self = loaded;
  return NULL;
}

// --- Entry points ---

const pestle_backend_abi_info_t* pestle_ref_backend_abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("ref", BUILD_ID);
  return &info;
}

static const pestle_target_api_t target_api = {
    .struct_size = sizeof(pestle_target_api_t),
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print};

static const pestle_device_api_t device_api = {
    .struct_size = sizeof(pestle_device_api_t),
    .load = load,
    .unload = unload,
    .cpu_entry = cpu_entry};

static void deinit(void* self) {
  const pestle_host_t* host = host_of(self);
  host->free(host->self, self, sizeof(ref_backend_t));
}

const pestle_backend_t* pestle_ref_backend_init(const pestle_host_t* host,
                                                pestle_status_t* out_status) {
  ref_backend_t* backend = host->alloc(host->self, sizeof *backend);
  *out_status = NULL;
  if (!backend) {
    *out_status = REF_ERROR(host, OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  backend->host = host;
  backend->table = (pestle_backend_t){.struct_size = sizeof(pestle_backend_t),
                                      .name = "ref",
                                      .device_type = PESTLE_DEVICE_CPU,
                                      .score = 1,
                                      .device_count = 1,
                                      .self = backend,
                                      .target = &target_api,
                                      .device = &device_api,
                                      .deinit = deinit,
                                      .flags = PESTLE_BACKEND_FALLBACK};
  return &backend->table;
}
