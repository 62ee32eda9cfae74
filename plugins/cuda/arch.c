// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cuda_arch_t rows[] = {
#define PESTLE_CUDA_ARCH(name, capability, shared, registers, units, l2, gb, \
                         device)                                             \
  {name,  capability,         (shared) << 10,           (registers) << 10,   \
   units, UINT64_C(l2) << 20, UINT64_C(gb) * 1000000000},
#include "plugins/cuda/arch.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

bool pestle_cuda_arch_find(const char* name, cuda_arch_t* out_arch) {
  for (size_t i = 0; i < ROWS; ++i) {
    if (strcmp(rows[i].name, name)) continue;
    *out_arch = rows[i];
    return true;
  }
  return false;
}

void pestle_cuda_arch_names(char* text, size_t capacity) {
  size_t at = 0;
  for (size_t i = 0; i < ROWS && at < capacity; ++i) {
    int size =
        snprintf(text + at, capacity - at, "%s%s", i ? ", " : "", rows[i].name);
    at += size > 0 ? (size_t)size : 0;
  }
}

int pestle_cuda_arch_number(const char* name, bool* out_own) {
  char* end;
  *out_own = false;
  if (strncmp(name, "sm_", 3)) return 0;
  long number = strtol(name + 3, &end, 10);
  *out_own = *end == 'a';
  bool ended = !*end || (*out_own && !end[1]);
  return ended && number > 0 && number < 10000 ? (int)number : 0;
}

void pestle_cuda_arch_name(int capability, char* name, size_t capacity) {
  cuda_arch_t arch;
  snprintf(name, capacity, "sm_%da", capability);
  if (!pestle_cuda_arch_find(name, &arch)) {
    snprintf(name, capacity, "sm_%d", capability);
  }
}

// Machine code runs on later devices of its own generation; code with
// instructions of one capability on that alone.
bool pestle_cuda_arch_runs(const char* name, int capability) {
  bool own;
  int number = pestle_cuda_arch_number(name, &own);
  if (own) return number == capability;
  return number && number / 10 == capability / 10 && number <= capability;
}
