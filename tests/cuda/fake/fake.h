// SPDX-License-Identifier: Apache-2.0
// A CUDA driver and an NVRTC for machines that have none: libcuda.so.1, whose
// devices are threads of this process, and libnvrtc.so.13, which has clang++
// make host code of CUDA C. Together they run all of plugins/cuda, the numbers
// of its kernels included. The environment says what the devices are:
//
//   FAKE_CUDA_DEVICES      how many (1)
//   FAKE_CUDA_CAPABILITY   80 (the text has no matrix units of later ones)
//   FAKE_CUDA_MEMORY       MiB of each (4096)
//   FAKE_CUDA_FAIL         FUNCTION:AT:RESULT, as fake_cuda_fail() has them
//   FAKE_CUDA_BESIDE       a file that gets a line at the end: how many kernels began
//                          before a function of the host, as NCCL's are, that was
//                          queued earlier had ended
//   FAKE_CUDA_NO_RECORDED_WRITES   1: a recording takes no write of a value
#ifndef PESTLE_TESTS_CUDA_FAKE_FAKE_H_
#define PESTLE_TESTS_CUDA_FAKE_FAKE_H_

#include <stdint.h>

// What tests ask of the driver, by dlsym() in libcuda.so.1.

// The |at|-th call of |function| ("cuMemAlloc_v2") from now on fails with
// |result|; 0: none fails any more.
typedef void (*fake_cuda_fail_fn_t)(const char* function, int at, int result);
// What is held: allocations, modules, streams, events, graphs, contexts.
typedef int (*fake_cuda_live_fn_t)(void);
// How often |function| was called.
typedef int (*fake_cuda_calls_fn_t)(const char* function);
// Streams do nothing while |held|; what is queued stays queued.
typedef void (*fake_cuda_hold_fn_t)(int held);
// Breaks all contexts, as a kernel's fault does: what is queued is not done, no
// function of the host is called, and every call fails until fake_cuda_fail() is
// told that none does.
typedef void (*fake_cuda_lose_fn_t)(void);
// How often memory was freed, or a block given out again, that queued work uses.
typedef int (*fake_cuda_faults_fn_t)(void);

// --- The lanes of a group as fibres: simt.c ---

typedef struct fake_dim_t {
  unsigned x, y, z;
} fake_dim_t;

// What a kernel's text sees; see shim.h.
typedef struct fake_shim_t {
  fake_dim_t thread, block, group_size, grid;
  void (*barrier)(void);
  // The |value| of the lane whose number differs in the bits of |mask|.
  uint64_t (*shuffle_xor)(uint64_t value, unsigned mask);
  // Words of each lane of a subgroup, to all of them.
  void (*share)(const unsigned* words, unsigned count, unsigned* all);
  // Copies past the registers, made when they are waited for. No |from|: zeros.
  void (*copy)(void* to, const void* from, unsigned bytes);
  void (*copy_commit)(void);
  void (*copy_wait)(unsigned batches);
} fake_shim_t;

typedef void (*fake_entry_t)(fake_shim_t* shim, void** arguments);

// A launch. |shared|: the text's array, of which a group may use |shared_bytes|.
typedef struct fake_launch_t {
  fake_entry_t entry;
  fake_dim_t grid, group;
  unsigned char* shared;
  uint32_t shared_bytes;
  void** arguments;
} fake_launch_t;

// Runs all groups, one after another. 0: lanes do not meet at a barrier, or
// write beyond what they share.
int fake_run(const fake_launch_t* launch);

#endif  // PESTLE_TESTS_CUDA_FAKE_FAKE_H_
