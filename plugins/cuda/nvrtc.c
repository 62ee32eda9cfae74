// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/error.h"
#include "plugins/cuda/arch.h"
#include "plugins/cuda/nvrtc_file.h"

typedef struct program_s* program_t;

// X(name, parameters) of nvrtc.h; all return 0 for success.
#define NVRTC_FUNCTIONS(X)                                          \
  X(nvrtcVersion, (int*, int*))                                     \
  X(nvrtcGetNumSupportedArchs, (int*))                              \
  X(nvrtcGetSupportedArchs, (int*))                                 \
  X(nvrtcCreateProgram, (program_t*, const char*, const char*, int, \
                         const char* const*, const char* const*))   \
  X(nvrtcCompileProgram, (program_t, int, const char* const*))      \
  X(nvrtcGetPTXSize, (program_t, size_t*))                          \
  X(nvrtcGetPTX, (program_t, char*))                                \
  X(nvrtcGetCUBINSize, (program_t, size_t*))                        \
  X(nvrtcGetCUBIN, (program_t, char*))                              \
  X(nvrtcGetProgramLogSize, (program_t, size_t*))                   \
  X(nvrtcGetProgramLog, (program_t, char*))                         \
  X(nvrtcDestroyProgram, (program_t*))

enum { MOST_ARCHS = 64 };

static struct {
#define SLOT(name, parameters) int(*name) parameters;
  NVRTC_FUNCTIONS(SLOT)
#undef SLOT
  int archs[MOST_ARCHS];
  int arch_count;
} nvrtc;

// NVRTC may be called from several threads, each with a program of its own; what is here is
// written once. With its own cache off (NVRTC 13.0, 16 cores beside an H200) nine kernels of
// a transformer layer take 2,055 ms by one thread and 675 by eight, the longest kernel's time.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512];  // why NVRTC cannot be used; "": it can

// --- Opening ---

// libnvrtc finds its own second half by name alone, which fails where it does
// not lie on the loader's path, as in a Python wheel: so that half first.
static void open_builtins(const char* path) {
  char pattern[1100];
  glob_t found;
  const char* name = strrchr(path, '/');
  int folder = name ? (int)(name - path) : 0;
  snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.*", folder,
           path);
  if (!name || glob(pattern, 0, NULL, &found)) return;
  for (size_t i = 0; i < found.gl_pathc; ++i)
    (void)dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
}

static void* open_library(void) {
  static const char* const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                      "libnvrtc.so"};
  char path[1024];
  if (pestle_cuda_nvrtc_find(path, sizeof path)) {
    open_builtins(path);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  void* library = NULL;
  for (size_t i = 0; !library && i < sizeof names / sizeof *names; ++i)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static void open_nvrtc(void) {
  void* library = open_library();
  if (!library) {
    snprintf(missing, sizeof missing, "%s", dlerror());
    return;
  }
#define LOOK_UP(name, parameters)                                \
  *(void**)&nvrtc.name = dlsym(library, #name);                  \
  if (!nvrtc.name) {                                             \
    snprintf(missing, sizeof missing, "libnvrtc has no " #name); \
    return;                                                      \
  }
  NVRTC_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  int count = 0;
  if (nvrtc.nvrtcGetNumSupportedArchs(&count) || count > MOST_ARCHS ||
      nvrtc.nvrtcGetSupportedArchs(nvrtc.archs)) {
    snprintf(missing, sizeof missing,
             "libnvrtc does not say which architectures it knows");
    return;
  }
  nvrtc.arch_count = count;
}

static pestle_status_t need_nvrtc(const pestle_host_t* host) {
  pthread_once(&once, open_nvrtc);
  if (!*missing) return NULL;
  return PESTLE_PLUGIN_ERROR(
      host, UNAVAILABLE,
      "cuda: kernels are compiled by NVRTC, which cannot be used: %s; install "
      "a CUDA toolkit, or the wheel nvidia-cuda-nvrtc with its folder in "
      "LD_LIBRARY_PATH",
      missing);
}

// --- Options ---

// No contraction but what a kernel's facts allow, which the text spells out;
// denormals stay, division and square roots are right in the last bit.
static const char* const fixed[] = {
    "--std=c++17",      "-fmad=false",        "--ftz=false", "--prec-div=true",
    "--prec-sqrt=true", "--disable-warnings", "--restrict",
};
enum { FIXED = sizeof fixed / sizeof *fixed };

const char* pestle_cuda_nvrtc_options(void) {
  return "c++17 fmad=false ftz=false prec-div prec-sqrt restrict";
}

// "sm_90a" or "compute_90a"; of an architecture that is not known the latest
// one that is, as PTX, which the driver takes further.
static bool pick_arch(const cuda_compile_t* job, char* option, size_t capacity,
                      char* out_arch) {
  bool own;
  int number = pestle_cuda_arch_number(job->arch, &own), best = 0;
  bool known = false;
  for (int i = 0; i < nvrtc.arch_count; ++i) {
    int arch = nvrtc.archs[i];
    known |= arch == number;
    if (arch <= number && arch > best) best = arch;
  }
  if (known) {
    snprintf(out_arch, 16, "%s", job->arch);
  } else {
    snprintf(out_arch, 16, "sm_%d", best);
  }
  bool ptx = job->want_ptx || !known;
  snprintf(option, capacity, "--gpu-architecture=%s_%s", ptx ? "compute" : "sm",
           out_arch + 3);
  return ptx;
}

// --- Compiling ---

static pestle_status_t compile_failed(const pestle_host_t* host,
                                      const cuda_compile_t* job,
                                      program_t program, int result) {
  size_t size = 0;
  char* log = NULL;
  if (!nvrtc.nvrtcGetProgramLogSize(program, &size) && size) {
    log = host->alloc(host->self, size);
  }
  if (log && nvrtc.nvrtcGetProgramLog(program, log)) *log = 0;
  // What was printed is ours to answer for.
  pestle_status_t status =
      job->flags
          ? PESTLE_PLUGIN_ERROR(host, INVALID_ARGUMENT,
                                "cuda: the source does not compile: %.1800s",
                                log ? log : "no log")
          : PESTLE_PLUGIN_ERROR(
                host, INTERNAL,
                "cuda: NVRTC does not compile kernel %s for %s (%d): %.700s",
                job->name, job->arch, result, log ? log : "no log");
  if (log) host->free(host->self, log, size);
  return status;
}

static pestle_status_t take_code(const pestle_host_t* host,
                                 const cuda_compile_t* job, program_t program,
                                 bool ptx, pestle_blob_t* out_code) {
  size_t size = 0;
  int result = ptx ? nvrtc.nvrtcGetPTXSize(program, &size)
                   : nvrtc.nvrtcGetCUBINSize(program, &size);
  if (result || !size) return compile_failed(host, job, program, result);
  char* code = host->alloc(host->self, size);
  if (!code) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no memory for %zu bytes of code", size);
  }
  result = ptx ? nvrtc.nvrtcGetPTX(program, code)
               : nvrtc.nvrtcGetCUBIN(program, code);
  if (result) {
    host->free(host->self, code, size);
    return compile_failed(host, job, program, result);
  }
  *out_code = (pestle_blob_t){code, size};
  return NULL;
}

// Cuts |flags|, a copy, into options; how many, at most |capacity|.
static int split_flags(char* flags, const char** out, int capacity) {
  int count = 0;
  for (char* rest; count < capacity; flags = NULL) {
    out[count] = strtok_r(flags, " ", &rest);
    if (!out[count]) break;
    ++count;
  }
  return count;
}

static pestle_status_t run(const pestle_host_t* host, const cuda_compile_t* job,
                           const char* arch, bool ptx,
                           pestle_blob_t* out_code) {
  enum { MORE = 32 };
  const char* options[FIXED + 1 + MORE] = {arch};
  char flags[1024];
  memcpy(options + 1, fixed, sizeof fixed);
  int count = FIXED + 1;
  snprintf(flags, sizeof flags, "%s", job->flags ? job->flags : "");
  count += split_flags(flags, options + count, MORE);
  program_t program = NULL;
  int result =
      nvrtc.nvrtcCreateProgram(&program, job->text, "kernel.cu", 0, NULL, NULL);
  if (result) {
    return PESTLE_PLUGIN_ERROR(
        host, INTERNAL, "cuda: nvrtcCreateProgram failed with %d", result);
  }
  result = nvrtc.nvrtcCompileProgram(program, count, options);
  pestle_status_t status = result
                               ? compile_failed(host, job, program, result)
                               : take_code(host, job, program, ptx, out_code);
  (void)nvrtc.nvrtcDestroyProgram(&program);
  return status;
}

pestle_status_t pestle_cuda_nvrtc_compile(const pestle_host_t* host,
                                          const cuda_compile_t* job,
                                          pestle_blob_t* out_code,
                                          bool* out_is_ptx, char* out_arch) {
  char option[64];
  *out_code = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(need_nvrtc(host));
  *out_is_ptx = pick_arch(job, option, sizeof option, out_arch);
  if (!strcmp(out_arch, "sm_0")) {
    return PESTLE_PLUGIN_ERROR(
        host, UNAVAILABLE,
        "cuda: this NVRTC compiles for no architecture as old as %s; install "
        "an older one",
        job->arch);
  }
  return run(host, job, option, *out_is_ptx, out_code);
}
