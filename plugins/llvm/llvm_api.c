// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/llvm_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "plugins/common/error.h"
#include "plugins/llvm/guard.h"
#include "plugins/llvm/llvm_version.h"

// The plugin's one mutable object. It is the process's and not a backend's,
// since LLVM registers its targets once a process and is never unloaded.
static struct {
  pthread_once_t once;
  pthread_mutex_t lock;
  bool ready;
  pestle_llvm_api_t api;
} g_llvm = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

// A fork() waits until a library that is being opened is open: what the loader was at
// could not be continued in the child.
static void before_fork(void) {
  pthread_mutex_lock(&g_llvm.lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&g_llvm.lock);
}
static void register_fork(void) {
  (void)pthread_atfork(before_fork, after_fork, after_fork);
}

static pestle_status_t open_library(const pestle_host_t* host,
                                    void** out_library) {
  char path[4096];
  bool found = pestle_llvm_find(path, sizeof path);
  // Local, so that another LLVM in the process is not taken for this one.
  void* library =
      dlopen(found ? path : PESTLE_LLVM_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (library) {
    *out_library = library;
    return NULL;
  }
  const char* reason = dlerror();
  if (found) {
    return PESTLE_PLUGIN_ERROR(
        host, UNAVAILABLE,
        "compiling needs %s, which is there and does not open: %s; a limit on "
        "memory (ulimit -v) or a damaged file does that",
        PESTLE_LLVM_SONAME, reason);
  }
  return PESTLE_PLUGIN_ERROR(
      host, UNAVAILABLE,
      "compiling needs %s, which does not open: %s; install libllvm%s, or set "
      "LD_LIBRARY_PATH to its folder",
      PESTLE_LLVM_SONAME, reason, PESTLE_LLVM_MAJOR);
}

static pestle_status_t fill(const pestle_host_t* host, void* library,
                            pestle_llvm_api_t* api) {
  static const struct {
    const char* name;
    size_t offset;
  } rows[] = {
#define LLVM_FN(Name) {"LLVM" #Name, offsetof(pestle_llvm_api_t, Name)},
#include "plugins/llvm/llvm_api.def"
  };
  _Static_assert(sizeof(void*) == sizeof(void (*)(void)),
                 "dlsym's pointers hold functions");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    void* function = dlsym(library, rows[i].name);
    if (!function) {
      return PESTLE_PLUGIN_ERROR(
          host, UNAVAILABLE, "%s lacks %s: it is not LLVM %s",
          PESTLE_LLVM_SONAME, rows[i].name, PESTLE_LLVM_MAJOR);
    }
    memcpy((char*)api + rows[i].offset, &function, sizeof function);
  }
  return NULL;
}

static pestle_status_t open_locked(const pestle_host_t* host) {
  void* library = NULL;
  pestle_llvm_api_t api;
  PESTLE_TRY(open_library(host, &library));
  PESTLE_TRY(fill(host, library, &api));
  unsigned major = 0, minor = 0, patch = 0;
  api.GetVersion(&major, &minor, &patch);
  if (major != LLVM_VERSION_MAJOR) {
    return PESTLE_PLUGIN_ERROR(
        host, UNAVAILABLE, "%s is LLVM %u.%u, the plugin is for LLVM %s",
        PESTLE_LLVM_SONAME, major, minor, PESTLE_LLVM_MAJOR);
  }
  // Registering is not thread-safe, hence here and not at each compile.
  api.InitializeX86TargetInfo();
  api.InitializeX86Target();
  api.InitializeX86TargetMC();
  api.InitializeX86AsmPrinter();
  api.InitializeX86Disassembler();
  api.InstallFatalErrorHandler(pestle_llvm_on_fatal);
  g_llvm.api = api;
  g_llvm.ready = true;
  return NULL;
}

pestle_status_t pestle_llvm_open(const pestle_host_t* host,
                                 const pestle_llvm_api_t** out) {
  pestle_status_t status = NULL;
  (void)pthread_once(&g_llvm.once, register_fork);
  pthread_mutex_lock(&g_llvm.lock);
  if (!g_llvm.ready) status = open_locked(host);
  pthread_mutex_unlock(&g_llvm.lock);
  *out = status ? NULL : &g_llvm.api;
  return status;
}
