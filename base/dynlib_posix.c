// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/file.h"

pestle_status_t pestle_dynlib_open(const char* path,
                                   pestle_dynlib_t* out_library) {
  *out_library = NULL;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return PESTLE_ERROR(UNAVAILABLE, "cannot load '%s': %s", path,
                        reason ? reason : "the loader gives no reason");
  }
  *out_library = handle;
  return NULL;
}

pestle_dynlib_t pestle_dynlib_process(void) {
  return dlopen(NULL, RTLD_NOW);
}

void* pestle_dynlib_data(pestle_dynlib_t library, const char* name) {
  return dlsym(library, name);
}

pestle_dynlib_fn_t pestle_dynlib_function(pestle_dynlib_t library,
                                          const char* name) {
  // C has no cast from an object's pointer to a function's; POSIX promises that
  // they look alike.
  void* data = pestle_dynlib_data(library, name);
  pestle_dynlib_fn_t function;
  _Static_assert(sizeof(data) == sizeof(function), "as POSIX promises");
  memcpy(&function, &data, sizeof(function));
  return function;
}

pestle_status_t pestle_dynlib_path_of(pestle_dynlib_fn_t function,
                                      pestle_arena_t* arena,
                                      const char** out_path) {
  *out_path = NULL;
  void* address;
  memcpy(&address, &function, sizeof(address));
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname || !info.dli_fname[0]) {
    return PESTLE_ERROR(NOT_FOUND, "no file holds the code at %p", address);
  }
  return pestle_path_resolve(info.dli_fname, arena, out_path);
}
