// SPDX-License-Identifier: Apache-2.0
// Stands for what the CUDA compiler knows by itself when the text of a CUDA
// kernel is compiled as C++ for a CPU by clang, with -ffp-contract=off.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "simt.h"

static const simt_t* simt;

#define PESTLE_SHIM 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define PESTLE_VECTORS(T, name)                                     \
  struct alignas(2 * sizeof(T)) name##2 {                           \
    T x, y;                                                         \
  };                                                                \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { \
    T x, y, z, w;                                                   \
  };                                                                \
  static inline name##2 make_##name##2(T x, T y) {                  \
    return {x, y};                                                  \
  }                                                                 \
  static inline name##4 make_##name##4(T x, T y, T z, T w) {        \
    return {x, y, z, w};                                            \
  }
PESTLE_VECTORS(signed char, char)
PESTLE_VECTORS(unsigned char, uchar)
PESTLE_VECTORS(short, short)
PESTLE_VECTORS(unsigned short, ushort)
PESTLE_VECTORS(int, int)
PESTLE_VECTORS(unsigned, uint)
PESTLE_VECTORS(long long, longlong)
PESTLE_VECTORS(unsigned long long, ulonglong)
PESTLE_VECTORS(float, float)
PESTLE_VECTORS(double, double)

// No kernel runs before this one.
static inline long long pestle_shim_grid_wait() {
  return 0;
}
#define threadIdx (simt->lane())
#define blockIdx (simt->group())
static inline void __syncthreads() {
  simt->barrier();
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T v, int mask) {
  simt->exchange(&v, sizeof v, unsigned(mask));
  return v;
}
static inline unsigned __ballot_sync(unsigned, bool on) {
  unsigned char own = on, all[32];
  unsigned bits = 0;
  simt->gather(&own, 1, all);
  for (unsigned i = 0; i < 32; ++i)
    bits |= unsigned(all[i] != 0) << i;
  return bits;
}
static inline int __popc(unsigned a) {
  return __builtin_popcount(a);
}
// Lanes take turns where they meet: here none comes between.
static inline int atomicAdd(int* at, int value) {
  int before = *at;
  *at = int(unsigned(before) + unsigned(value));
  return before;
}
template <class D, class S>
static inline D pestle_same_bits(S s) {
  D d;
  memcpy(&d, &s, sizeof d);
  return d;
}
static inline unsigned __float_as_uint(float a) {
  return pestle_same_bits<unsigned>(a);
}
static inline float __uint_as_float(unsigned a) {
  return pestle_same_bits<float>(a);
}
static inline long long __double_as_longlong(double a) {
  return pestle_same_bits<long long>(a);
}
static inline double __longlong_as_double(long long a) {
  return pestle_same_bits<double>(a);
}
static inline int max(int a, int b) {
  return a > b ? a : b;
}
static inline int min(int a, int b) {
  return a < b ? a : b;
}
static inline unsigned max(unsigned a, unsigned b) {
  return a > b ? a : b;
}
static inline unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}

#include "pairs.h"

static inline float pestle_shim_from_f16(unsigned a) {
  return float(pestle_same_bits<_Float16>((unsigned short)a));
}
static inline unsigned pestle_shim_to_f16(float a) {
  return pestle_same_bits<unsigned short>(_Float16(a));
}
