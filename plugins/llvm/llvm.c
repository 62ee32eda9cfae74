// SPDX-License-Identifier: Apache-2.0
// The backend "llvm": Kernel IR to x86-64 through LLVM's C API. Nothing but
// compiling opens libLLVM: not probing, describing, the plan's key, loading or
// running cached code.
#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/error.h"
#include "plugins/common/slots.h"
#include "plugins/llvm/artifact.h"
#include "plugins/llvm/compile.h"
#include "plugins/llvm/llvm_version.h"
#include "plugins/llvm/load.h"

// One for each host that calls init; immutable afterwards.
typedef struct state_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  pestle_llvm_cpu_t cpu;
  char toolchain[512];
} state_t;

// The LLVM version is added, so that of two variants the newer one serves,
// unless only the older one's library is installed.
enum { SCORE_AVX2 = 200, SCORE_AVX512 = 300, SCORE_LIBRARY = 50 };

static int32_t score_of(uint64_t features, char* why, size_t capacity) {
  char path[4096];
  int32_t best = LLVM_VERSION_MAJOR;
  if (pestle_llvm_find(path, sizeof path)) best += SCORE_LIBRARY;
  if (pestle_llvm_has_v4(features)) return best + SCORE_AVX512;
  if (pestle_llvm_has_v3(features)) return best + SCORE_AVX2;
  char missing[256];
  pestle_llvm_feature_string(PESTLE_LLVM_SET_V3 & ~features, 0, missing,
                             sizeof missing);
  snprintf(why, capacity, "the CPU or the OS lacks %s", missing);
  return 0;
}

// --- The compiler half ---

static pestle_status_t find_cpu(const state_t* state, const char* name,
                                pestle_llvm_cpu_t* out_cpu) {
  *out_cpu = state->cpu;
  if (name && strcmp(name, "native") && !pestle_llvm_cpu_named(name, out_cpu)) {
    return PESTLE_PLUGIN_ERROR(state->host, UNSUPPORTED,
                               "llvm knows no CPU '%s': try one of %s", name,
                               pestle_llvm_cpu_names());
  }
  if (pestle_llvm_has_v3(out_cpu->features)) return NULL;
  char why[512] = "";
  score_of(out_cpu->features, why, sizeof why);
  return PESTLE_PLUGIN_ERROR(state->host, UNSUPPORTED,
                             "llvm needs AVX2 and FMA: %s", why);
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  pestle_llvm_cpu_t found;
  PESTLE_TRY(find_cpu(self, cpu, &found));
  pestle_llvm_caps(&found, out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((state_t*)self)->toolchain;
  return NULL;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  state_t* state = self;
  pestle_llvm_cpu_t cpu;
  *out_artifact = (pestle_blob_t){0};
  PESTLE_TRY(find_cpu(state, pestle_plugin_cpu_option(options), &cpu));
  return pestle_llvm_compile(state->host, &cpu, kernel,
                             pestle_plugin_is_quick(options), out_artifact);
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  state_t* state = self;
  pestle_llvm_cpu_t cpu;
  *out_text = (pestle_blob_t){0};
  PESTLE_TRY(find_cpu(state, pestle_plugin_cpu_option(options), &cpu));
  return pestle_llvm_print(state->host, &cpu, kernel,
                           pestle_plugin_is_quick(options), kind, out_text);
}

// --- The device half ---

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  state_t* state = self;
  *out_loaded = NULL;
  if (device != 0) {
    return PESTLE_PLUGIN_ERROR(state->host, NOT_FOUND,
                               "llvm has one device, 0, and no %d", device);
  }
  return pestle_llvm_load(state->host, state->cpu.features, artifact, size,
                          out_loaded);
}

static void unload(void* self, pestle_loaded_t* loaded) {
  pestle_llvm_unload(((state_t*)self)->host, loaded);
}

static pestle_status_t cpu_entry(void* self, pestle_loaded_t* loaded,
                                 pestle_cpu_entry_t* out_entry,
                                 const void** out_entry_self) {
  (void)self;
  *out_entry = pestle_llvm_entry(loaded);
  *out_entry_self = loaded;
  return NULL;
}

// --- Entry points ---

static const pestle_target_api_t k_target = {
    .struct_size = sizeof k_target,
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print,
};

static const pestle_device_api_t k_device = {
    .struct_size = sizeof k_device,
    .load = load,
    .unload = unload,
    .cpu_entry = cpu_entry,
};

static void write_toolchain_id(state_t* state) {
  char path[4096], id[128] = "none";
  if (pestle_llvm_find(path, sizeof path) &&
      !pestle_llvm_file_build_id(path, id, sizeof id)) {
    strcpy(id, "unknown");
  }
  snprintf(state->toolchain, sizeof state->toolchain,
           "llvm-%s %s passes=%s quick=%s artifact=%u plugin=%s",
           PESTLE_LLVM_MAJOR, id, PESTLE_LLVM_PASSES, PESTLE_LLVM_QUICK_PASSES,
           PESTLE_LLVM_ARTIFACT_VERSION, PESTLE_PLUGIN_BUILD_ID);
}

static int32_t score(char* why, size_t capacity) {
  pestle_llvm_cpu_t cpu;
  if (capacity) *why = 0;
  pestle_llvm_cpu_host(&cpu);
  return score_of(cpu.features, why, capacity);
}

static void deinit(void* self) {
  state_t* state = self;
  state->host->free(state->host->self, state, sizeof *state);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  *out_status = NULL;
  state_t* state = host->alloc(host->self, sizeof *state);
  if (!state) {
    *out_status =
        PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY, "no memory to start llvm");
    return NULL;
  }
  memset(state, 0, sizeof *state);
  state->host = host;
  pestle_llvm_cpu_host(&state->cpu);
  write_toolchain_id(state);
  char why[512];
  state->backend = (pestle_backend_t){
      .struct_size = sizeof state->backend,
      .name = "llvm",
      .device_type = PESTLE_DEVICE_CPU,
      .score = score_of(state->cpu.features, why, sizeof why),
      .device_count = 1,
      .self = state,
      .target = &k_target,
      .device = &k_device,
      .deinit = deinit,
  };
  return &state->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_CPU
PESTLE_BACKEND_IMPL("llvm", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
