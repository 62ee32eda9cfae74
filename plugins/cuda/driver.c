// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool look_up(void* library, cuda_driver_t* driver, char* why,
                    size_t capacity) {
#define PESTLE_CUDA(function, parameters)                                \
  *(void**)&driver->function = dlsym(library, #function);                \
  if (!driver->function) {                                               \
    snprintf(why, capacity,                                              \
             "libcuda.so.1 has no " #function                            \
             ": the driver is older than CUDA 12; install a newer one"); \
    return false;                                                        \
  }
#include "plugins/cuda/driver.def"
  return true;
}

void pestle_cuda_words(const cuda_driver_t* driver, CUresult result, char* text,
                       size_t capacity) {
  const char *name = NULL, *words = NULL;
  if (driver->cuGetErrorName(result, &name)) name = NULL;
  if (driver->cuGetErrorString(result, &words)) words = NULL;
  if (name) {
    snprintf(text, capacity, "%s (%s)", name, words ? words : "no words");
  } else {
    snprintf(text, capacity, "error %d", result);
  }
}

bool pestle_cuda_driver_open(cuda_driver_t* out_driver, char* why,
                             size_t capacity) {
  int count = 0;
  // A name alone: a toolkit keeps its stub where the loader does not look.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(why, capacity,
             "there is no CUDA driver (it comes with NVIDIA's driver): %s",
             dlerror());
    return false;
  }
  if (!look_up(library, out_driver, why, capacity)) return false;
  CUresult result = out_driver->cuInit(0);
  if (!result) result = out_driver->cuDeviceGetCount(&count);
  if (!result && !count) result = CUDA_ERROR_NO_DEVICE;
  if (!result) return true;
  char words[160];
  pestle_cuda_words(out_driver, result, words, sizeof words);
  snprintf(why, capacity, "the CUDA driver does not start: %s%s", words,
           result == CUDA_ERROR_STUB_LIBRARY
               ? "; what was found is the stub of a toolkit, no driver"
               : "");
  return false;
}
