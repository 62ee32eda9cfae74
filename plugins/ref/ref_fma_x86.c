// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add by the CPU's own instruction, where it has one: a call of
// the C library for every lane would be most of what a contraction costs here.
// The results are the same bits.
#include <math.h>

#include "plugins/ref/ref_internal.h"

#if defined(__x86_64__) && defined(__GNUC__)

__attribute__((target("avx2,fma"))) static void fma_f32(
    void* restrict out_, const void* a_, const void* b_, const void* c_,
    size_t count, uint64_t arg) {
  float* restrict out = out_;
  const float *a = a_, *b = b_, *c = c_;
  (void)arg;
  for (size_t i = 0; i < count; ++i)
    out[i] = fmaf(a[i], b[i], c[i]);
}

__attribute__((target("avx2,fma"))) static void fma_f64(
    void* restrict out_, const void* a_, const void* b_, const void* c_,
    size_t count, uint64_t arg) {
  double* restrict out = out_;
  const double *a = a_, *b = b_, *c = c_;
  (void)arg;
  for (size_t i = 0; i < count; ++i)
    out[i] = fma(a[i], b[i], c[i]);
}

ref_fn_t pestle_ref_plugin_native_fma(ref_class_t kind) {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
    return NULL;
  }
  return kind == REF_F32 ? fma_f32 : kind == REF_F64 ? fma_f64 : NULL;
}

#else

ref_fn_t pestle_ref_plugin_native_fma(ref_class_t kind) {
  (void)kind;
  return NULL;
}

#endif
