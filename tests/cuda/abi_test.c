// SPDX-License-Identifier: Apache-2.0
// The types and numbers that plugins/cuda has of the driver, against the
// toolkit's own header where that is installed.
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif

#ifdef CUDA_VERSION
static int wrong;

static void look(const char* name, bool same) {
  if (same) return;
  fprintf(stderr, "%s differs from cuda.h\n", name);
  ++wrong;
}

int main(void) {
#define PESTLE_CUDA(name, parameters)                         \
  look(#name, __builtin_types_compatible_p(__typeof__(&name), \
                                           CUresult(*) parameters));
#include "plugins/cuda/driver.def"
#define PESTLE_CUDA_CONST(name, value) look(#name, (int)(name) == (value));
#include "plugins/cuda/driver_const.def"
  look("CUdeviceptr", sizeof(CUdeviceptr) == sizeof(unsigned long long));
  look("CUresult", sizeof(CUresult) == sizeof(int));
  look("CUdevice", __builtin_types_compatible_p(CUdevice, int));
  look("CUuuid", sizeof(CUuuid) == 16);
  // As driver.h asserts of its own.
  look("CUlaunchAttribute", sizeof(CUlaunchAttribute) == 72 &&
                                offsetof(CUlaunchAttribute, value) == 8);
  look("CUlaunchConfig", sizeof(CUlaunchConfig) == 56 &&
                             offsetof(CUlaunchConfig, hStream) == 32 &&
                             offsetof(CUlaunchConfig, numAttrs) == 48);
  look("CUjit_option", sizeof(CUjit_option) == sizeof(unsigned));
  return wrong != 0;
}
#else
int main(void) {
  fprintf(stderr, "skipped: there is no cuda.h\n");
  return 77;
}
#endif
