// SPDX-License-Identifier: Apache-2.0
// Values and kernels that the tests of several plugins share: ordinary numbers
// and every kind of odd one, comparing elements, short ways to build kernels.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_KERNEL_VALUES_H_
#define PESTLE_TESTS_UNIT_PLUGINS_KERNEL_VALUES_H_

#include <math.h>

#include "codegen/kir/kir_build.h"
#include "pestle/plugin.h"

// Fills |count| elements of |dtype| at |data|.
typedef void (*fill_fn_t)(const char* name, pestle_dtype_t dtype, void* data,
                          size_t count);

static inline uint32_t test_random(uint32_t* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

// Ordinary values and every kind of odd one.
static inline void fill_any(const char* name, pestle_dtype_t dtype, void* data,
                            size_t count) {
  static const double odd[] = {
      0.0,          -0.0,   1.0,     -1.0,   0.5,    -0.5,  1.5,
      2.5,          -2.5,   1e-42,   -1e-40, 1e30,   -1e30, 127.5,
      -128.5,       255.5,  32767.6, 65504., 65520., 3e9,   -3e9,
      2e19,         -2e19,  5.9e-8,  -6e-5,  1e-300, 1e300, 2147483647.,
      -2147483648., 9.3e18, 0.1,     1e9};
  uint32_t seed = 12345;
  for (const char* c = name; *c; ++c)
    seed = seed * 31 + (unsigned char)*c;
  size_t size = pestle_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = (uint64_t)test_random(&seed) << 40 ^
                    (uint64_t)test_random(&seed) << 20 ^ test_random(&seed);
    uint32_t pick = test_random(&seed) % 64;
    if (dtype == PESTLE_F32 || dtype == PESTLE_F64) {
      double v = pick < 32 ? odd[pick] : ((double)(bits % 20000) - 1e4) / 37.;
      if (pick == 60) v = NAN;
      if (pick == 61) v = INFINITY;
      if (pick == 62) v = -INFINITY;
      if (dtype == PESTLE_F32) {
        float f = (float)v;
        memcpy(&bits, &f, sizeof f);
      } else {
        memcpy(&bits, &v, sizeof v);
      }
    } else if (pick < 24) {
      static const uint64_t edge[] = {0,
                                      1,
                                      2,
                                      3,
                                      7,
                                      8,
                                      15,
                                      31,
                                      32,
                                      63,
                                      64,
                                      127,
                                      128,
                                      255,
                                      (uint64_t)INT64_MAX,
                                      (uint64_t)INT64_MIN,
                                      UINT64_MAX,
                                      0x7fffffff,
                                      0x80000000,
                                      UINT64_MAX - 1,
                                      0x7fff,
                                      0x8000,
                                      0x80,
                                      0xfffffffe};
      bits = edge[pick];
    } else if (pick < 48) {
      bits %= 50;
    }
    if (dtype == PESTLE_I1) bits &= 1;
    if (pestle_dtype_is_sub_byte(dtype)) {
      bits = pestle_dtype_extend(dtype, (uint8_t)bits);
    }
    memcpy((char*)data + i * size, &bits, size);
  }
}

static inline bool same_element(pestle_dtype_t dtype, const void* a,
                                const void* b) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t x = 0, y = 0;
  memcpy(&x, a, size);
  memcpy(&y, b, size);
  if (x == y) return true;
  // Which NaN is not promised.
  if (dtype == PESTLE_F32)
    return isnan(*(const float*)a) && isnan(*(const float*)b);
  if (dtype == PESTLE_F64)
    return isnan(*(const double*)a) && isnan(*(const double*)b);
  // One NaN alone has equal bits.
  const pestle_float_format_t* f = pestle_float_format(dtype);
  if (!f || !f->sign || f->specials == PESTLE_FLOAT_UNSIGNED) return false;
  bool infinite = f->specials == PESTLE_FLOAT_IEEE;
  uint64_t last = f->limit - !infinite;  // that is no NaN
  return (x & ~f->sign) > last && (y & ~f->sign) > last;
}

// --- Building ---

static inline pestle_kir_builder_t kernel(const char* name) {
  pestle_kir_builder_t b;
  pestle_kir_init(pestle_allocator_system(), name, "a test", &b);
  return b;
}

static inline uint32_t global(pestle_kir_builder_t* b, const char* name,
                              pestle_dtype_t dtype, int64_t count,
                              unsigned flags) {
  return pestle_kir_add_buffer(b, name, PESTLE_KIR_GLOBAL, dtype, 1, count,
                               flags);
}

static inline pestle_kir_id_t group(pestle_kir_builder_t* b, int64_t count) {
  return pestle_kir_for(b, "g", pestle_kir_index(b, 0),
                        pestle_kir_index(b, count), 1, PESTLE_KIR_GROUP_X);
}

#endif  // PESTLE_TESTS_UNIT_PLUGINS_KERNEL_VALUES_H_
