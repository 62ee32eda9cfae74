// SPDX-License-Identifier: Apache-2.0
// A copy within a device: |vectors| of 16 bytes, then |words| of 4, then what is
// left of |size| byte by byte. In PTX, which the driver compiles, so that loading
// a plan needs no toolchain.
#include "plugins/cuda/backend.h"

// One loop over elements of 1 << |shift| bytes from %base on, |count| of them.
#define LOOP(label, count, shift, suffix, registers) \
  "  mov.u64 %at, %first;\n"                         \
  "  setp.ge.u64 %end, %at, " count                  \
  ";\n"                                              \
  "  @%end bra $" label                              \
  "_end;\n"                                          \
  "$" label                                          \
  ":\n"                                              \
  "  shl.b64 %offset, %at, " shift                   \
  ";\n"                                              \
  "  add.u64 %offset, %offset, %base;\n"             \
  "  add.u64 %source, %from, %offset;\n"             \
  "  add.u64 %target, %to, %offset;\n"               \
  "  ld.global.cs" suffix " " registers              \
  ", [%source];\n"                                   \
  "  st.global.cs" suffix " [%target], " registers   \
  ";\n"                                              \
  "  add.u64 %at, %at, %step;\n"                     \
  "  setp.lt.u64 %end, %at, " count                  \
  ";\n"                                              \
  "  @%end bra $" label                              \
  ";\n"                                              \
  "$" label "_end:\n"

const char* const pestle_cuda_copy_ptx =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry pestle_copy(\n"
    "    .param .u64 from, .param .u64 to, .param .u64 vectors,\n"
    "    .param .u64 words, .param .u64 size)\n"
    "{\n"
    "  .reg .pred %end;\n"
    "  .reg .b32 %a, %b, %c, %d, %lanes, %lane, %groups, %group;\n"
    "  .reg .b64 %from, %to, %vectors, %words, %bytes, %first, %step, %at;\n"
    "  .reg .b64 %base, %offset, %source, %target;\n"
    "  ld.param.u64 %from, [from];\n"
    "  ld.param.u64 %to, [to];\n"
    "  ld.param.u64 %vectors, [vectors];\n"
    "  ld.param.u64 %words, [words];\n"
    "  ld.param.u64 %bytes, [size];\n"
    "  cvta.to.global.u64 %from, %from;\n"
    "  cvta.to.global.u64 %to, %to;\n"
    "  mov.u32 %lanes, %ntid.x;\n"
    "  mov.u32 %lane, %tid.x;\n"
    "  mov.u32 %groups, %nctaid.x;\n"
    "  mov.u32 %group, %ctaid.x;\n"
    "  mul.wide.u32 %step, %groups, %lanes;\n"
    "  cvt.u64.u32 %at, %lane;\n"
    "  mul.wide.u32 %first, %group, %lanes;\n"
    "  add.u64 %first, %first, %at;\n"
    "  mov.u64 %base, 0;\n"
    // clang-format off
    LOOP("vectors", "%vectors", "4", ".v4.u32", "{%a, %b, %c, %d}")
    "  shl.b64 %base, %vectors, 4;\n"
    LOOP("words", "%words", "2", ".u32", "%a")
    "  shl.b64 %words, %words, 2;\n"
    "  add.u64 %base, %base, %words;\n"
    "  sub.u64 %bytes, %bytes, %base;\n"
    LOOP("bytes", "%bytes", "0", ".u8", "%a")
    // clang-format on
    "  ret;\n"
    "}\n";

// How a copy is split between the three loops.
typedef struct parts_t {
  uint64_t vectors, words, size;
} parts_t;

static parts_t split(CUdeviceptr from, CUdeviceptr to, size_t size) {
  parts_t p = {0, 0, size};
  CUdeviceptr bits = from | to;
  if (!(bits & 15)) p.vectors = size / 16;
  if (!(bits & 3)) p.words = (size - 16 * p.vectors) / 4;
  return p;
}

pestle_status_t pestle_cuda_copy_kernel(const cuda_device_t* device,
                                        CUstream stream, CUdeviceptr from,
                                        CUdeviceptr to, size_t size) {
  enum { LANES = 128 };
  parts_t p = split(from, to, size);
  void* arguments[] = {&from, &to, &p.vectors, &p.words, &p.size};
  uint64_t most = p.vectors > p.words ? p.vectors : p.words;
  uint64_t rest = size - 16 * p.vectors - 4 * p.words;
  if (rest > most) most = rest;
  uint64_t groups = (most + LANES - 1) / LANES;
  if (groups > INT32_MAX) groups = INT32_MAX;
  PESTLE_CUDA_TRY(device, cuLaunchKernel,
                  (device->copy, (unsigned)groups, 1, 1, LANES, 1, 1, 0, stream,
                   arguments, NULL));
  return NULL;
}
