// SPDX-License-Identifier: Apache-2.0
#include "plugins/lapack/lapack_api.h"

#include <dlfcn.h>
#include <string.h>

#include "plugins/common/find.h"

#define SONAME "liblapack.so.3"

bool pestle_lapack_find(char* path, size_t capacity) {
  static const char* const folders[] = {"/usr/lib/x86_64-linux-gnu",
                                        "/lib/x86_64-linux-gnu", "/usr/lib64",
                                        "/usr/lib", "/usr/local/lib"};
  return pestle_plugin_find(SONAME, folders, sizeof folders / sizeof *folders,
                            path, capacity);
}

// A function of the library or of the BLAS that it is linked with.
static bool take(void* library, const char* name, void* slot) {
  void* symbol = dlsym(library, name);
  // The one way from an object pointer to a function's.
  memcpy(slot, &symbol, sizeof symbol);
  return symbol != NULL;
}

static const char* take_all(void* library, lapack_api_t* api) {
#define T float
#define LAPACK(name, arguments) \
  if (!take(library, "s" #name "_", &api->s##name)) return "s" #name "_";
#include "plugins/lapack/lapack_api.def"
#define LAPACK(name, arguments) \
  if (!take(library, "d" #name "_", &api->d##name)) return "d" #name "_";
#include "plugins/lapack/lapack_api.def"
#define Z(name, arguments) \
  if (!take(library, "c" #name "_", &api->c##name)) return "c" #name "_";
#define D(name, arguments) \
  if (!take(library, "s" #name "_", &api->s##name)) return "s" #name "_";
#include "plugins/lapack/lapack_api_z.def"
#define Z(name, arguments) \
  if (!take(library, "z" #name "_", &api->z##name)) return "z" #name "_";
#define D(name, arguments) \
  if (!take(library, "d" #name "_", &api->d##name)) return "d" #name "_";
#include "plugins/lapack/lapack_api_z.def"
#undef T
  return NULL;
}

static pestle_status_t open_library(lapack_t* lapack) {
  char path[1024];
  if (!pestle_lapack_find(path, sizeof path)) {
    return PESTLE_PLUGIN_ERROR(lapack->host, UNAVAILABLE,
                               SONAME " is gone; install libopenblas0");
  }
  // It stays open: other backends of the process may use it.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return PESTLE_PLUGIN_ERROR(lapack->host, UNAVAILABLE,
                               "%s cannot be opened: %s", path, dlerror());
  }
  const char* missing = take_all(library, &lapack->api);
  if (missing) {
    return PESTLE_PLUGIN_ERROR(lapack->host, UNAVAILABLE,
                               "%s has no function %s", path, missing);
  }
  lapack->opened = true;
  return NULL;
}

pestle_status_t pestle_lapack_open(lapack_t* lapack) {
  pthread_mutex_lock(&lapack->mutex);
  pestle_status_t status = lapack->opened ? NULL : open_library(lapack);
  pthread_mutex_unlock(&lapack->mutex);
  return status;
}
