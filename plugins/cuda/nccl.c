// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/comm.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static nccl_t nccl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[768];  // why NCCL cannot be used; "": it can

// Multicast takes a switch's memory that others of the machine need too, and what it
// leaves behind in a driver can be worse than what it gains. NCCL reads this when it
// starts.
static void turn_multicast_off(void) {
  const char* wanted = secure_getenv("PESTLE_NVLS");
  if (wanted && !strcmp(wanted, "1")) return;
  (void)setenv("NCCL_NVLS_ENABLE", "0", 0);
}

// A collective of a recording meets one that another rank launches by itself. Buffers that
// NCCL registers when it is recorded would let the two speak differently.
static void turn_registering_off(void) {
  (void)setenv("NCCL_GRAPH_REGISTER", "0", 0);
}

// site-packages/pestle/.. and site-packages/nvidia/nccl/lib: up from this library's
// own folder.
static void* open_beside(void) {
  static const char below[] = "/nvidia/nccl/lib/libnccl.so.2";
  char path[PATH_MAX + sizeof below];
  Dl_info self;
  if (!dladdr((void*)(uintptr_t)&nccl, &self) || !self.dli_fname ||
      !realpath(self.dli_fname, path)) {
    return NULL;
  }
  for (int up = 0; up < 6; ++up) {
    char* cut = strrchr(path, '/');
    if (!cut) return NULL;
    memcpy(cut, below, sizeof below);
    void* library =
        access(path, R_OK) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    *cut = '\0';
  }
  return NULL;
}

static void* open_in_toolkits(void) {
  static const char* const files[] = {
      "/usr/local/cuda/lib64/libnccl.so.2",
      "/usr/local/cuda/targets/x86_64-linux/lib/libnccl.so.2",
      "/usr/local/lib/libnccl.so.2"};
  void* library = NULL;
  for (size_t i = 0; !library && i < sizeof files / sizeof *files; ++i)
    library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static void* open_library(void) {
  const char* named = secure_getenv("PESTLE_NCCL");
  if (named && *named) {
    void* library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      snprintf(missing, sizeof missing, "PESTLE_NCCL: %.600s", dlerror());
    return library;
  }
  // A name alone: one that the process has already (PyTorch's) is this one.
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) snprintf(missing, sizeof missing, "%.600s", dlerror());
  if (!library) library = open_beside();
  if (!library) library = open_in_toolkits();
  if (library) missing[0] = '\0';
  return library;
}

static void open_nccl(void) {
  turn_multicast_off();
  turn_registering_off();
  void* library = open_library();
  if (!library) return;
#define PESTLE_NCCL(result, name, parameters)                         \
  *(void**)&nccl.name = dlsym(library, #name);                        \
  if (!nccl.name) {                                                   \
    snprintf(missing, sizeof missing,                                 \
             "libnccl.so.2 has no " #name ", it is older than 2.19"); \
    return;                                                           \
  }
#include "plugins/cuda/nccl.def"
  if (nccl.ncclGetVersion(&nccl.version)) nccl.version = 0;
  if (nccl.version >= NCCL_LEAST_VERSION) return;
  snprintf(missing, sizeof missing,
           "libnccl.so.2 is NCCL %d.%d.%d; 2.19 or later is needed",
           nccl.version / 10000, nccl.version / 100 % 100, nccl.version % 100);
}

pestle_status_t pestle_cuda_nccl(const pestle_host_t* host,
                                 const nccl_t** out_nccl) {
  pthread_once(&once, open_nccl);
  *out_nccl = &nccl;
  if (!*missing) return NULL;
  return PESTLE_PLUGIN_ERROR(
      host, UNAVAILABLE,
      "GPUs meet by NCCL, which cannot be used: %s; install the wheel "
      "nvidia-nccl-cu13 or NVIDIA's package, name the file in PESTLE_NCCL, or "
      "set PESTLE_WORLD_TRANSPORT=host, which goes through the host's memory",
      missing);
}
