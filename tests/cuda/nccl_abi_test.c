// SPDX-License-Identifier: Apache-2.0
// The types and numbers that plugins/cuda has of NCCL, against nccl.h where that is
// installed.
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif
#endif

#ifdef NCCL_VERSION_CODE
static int wrong;

static void look(const char* name, bool same) {
  if (same) return;
  fprintf(stderr, "%s differs from nccl.h\n", name);
  ++wrong;
}

// nccl.h has () where C means any arguments.
#define PESTLE_NCCL(result, name, parameters) \
  look(#name,                                 \
       __builtin_types_compatible_p(__typeof__(&name), result(*) parameters));

int main(void) {
#include "plugins/cuda/nccl.def"
  look("ncclUniqueId", sizeof(ncclUniqueId) == 128);
  look("size", offsetof(ncclConfig_t, size) == 0);
  look("magic", offsetof(ncclConfig_t, magic) == 8);
  look("version", offsetof(ncclConfig_t, version) == 12);
  look("blocking", offsetof(ncclConfig_t, blocking) == 16);
  look("maxCTAs", offsetof(ncclConfig_t, maxCTAs) == 28);
  look("netName", offsetof(ncclConfig_t, netName) == 32);
  look("splitShare", offsetof(ncclConfig_t, splitShare) == 40);
  look("numbers", ncclInvalidArgument == 4 && ncclInvalidUsage == 5 &&
                      ncclInProgress == 7 && ncclInt8 == 0 && ncclUint8 == 1 &&
                      ncclInt32 == 2 && ncclUint32 == 3 && ncclInt64 == 4 &&
                      ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 &&
                      ncclFloat64 == 8 && ncclBfloat16 == 9 && ncclSum == 0 &&
                      ncclProd == 1 && ncclMax == 2 && ncclMin == 3);
  return wrong != 0;
}
#else
int main(void) {
  fprintf(stderr, "skipped: there is no nccl.h\n");
  return 77;
}
#endif
