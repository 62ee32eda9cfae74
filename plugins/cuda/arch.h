// SPDX-License-Identifier: Apache-2.0
// The architectures that the backend compiles for without a device at hand, with what a
// description of each needs.
#ifndef PESTLE_PLUGINS_CUDA_ARCH_H_
#define PESTLE_PLUGINS_CUDA_ARCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cuda_arch_t {
  char name[16];        // "sm_90a"
  int capability;       // 90
  uint32_t shared;      // bytes that a group may have
  uint32_t registers;   // bytes of an SM
  uint32_t units;       // SMs
  uint64_t l2, memory;  // bytes; bytes a second
} cuda_arch_t;

// The one of that name. False: there is none.
bool pestle_cuda_arch_find(const char* name, cuda_arch_t* out_arch);
// The names, "sm_75, sm_80, ...".
void pestle_cuda_arch_names(char* text, size_t capacity);
// "sm_90a" for 90: what a device of |capability| runs best.
void pestle_cuda_arch_name(int capability, char* name, size_t capacity);
// Whether a device of |capability| runs code that was made for |name|.
bool pestle_cuda_arch_runs(const char* name, int capability);
// 90 of "sm_90a"; 0 of what is no such name. |out_own|: it ends in 'a'.
int pestle_cuda_arch_number(const char* name, bool* out_own);

#endif  // PESTLE_PLUGINS_CUDA_ARCH_H_
