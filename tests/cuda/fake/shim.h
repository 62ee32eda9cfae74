// SPDX-License-Identifier: Apache-2.0
// Definitions by which CUDA C that plugins/cuda printed compiles as C++ for a
// CPU. The text of a kernel follows, then pestle_shim_call() of it; see
// nvrtc.c.
#define PESTLE_SHIM 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
typedef decltype(sizeof(0)) pestle_size_t;
struct pestle_dim_t {
  unsigned x, y, z;
};
struct pestle_shim_t {
  pestle_dim_t thread, block, group_size, grid;
  void (*barrier)();
  unsigned long (*shuffle_xor)(unsigned long value, unsigned mask);
  void (*share)(const unsigned* words, unsigned count, unsigned* all);
  void (*copy)(void* to, const void* from, unsigned bytes);
  void (*copy_commit)();
  void (*copy_wait)(unsigned batches);
};
static pestle_shim_t* pestle_shim;
#define threadIdx pestle_shim->thread
#define blockIdx pestle_shim->block
#define blockDim pestle_shim->group_size
#define gridDim pestle_shim->grid
static inline void __syncthreads() {
  pestle_shim->barrier();
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T value, int mask) {
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = pestle_shim->shuffle_xor(bits, (unsigned)mask);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// How many lanes have waited for the kernel before theirs.
extern "C" {
unsigned long pestle_shim_waits;
}
static inline long long pestle_shim_grid_wait() {
  __atomic_fetch_add(&pestle_shim_waits, 1, __ATOMIC_RELAXED);
  return 0;
}

// What a subgroup does together: each lane sees the words of all 32.
static inline unsigned pestle_shim_lane() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x % 32 +
         threadIdx.x;
}
static inline unsigned __ballot_sync(unsigned, bool on) {
  unsigned own = on, all[32], bits = 0;
  pestle_shim->share(&own, 1, all);
  for (unsigned i = 0; i < 32; ++i)
    bits |= all[i] << i;
  return bits;
}
static inline int __popc(unsigned a) {
  return __builtin_popcount(a);
}
template <int Trans, int N>
static inline void pestle_shim_ldmatrix(unsigned (&d)[N], const void* at) {
  unsigned own[2], all[64], lane = pestle_shim_lane() % 32;
  unsigned long bits = (unsigned long)at;
  own[0] = (unsigned)bits;
  own[1] = (unsigned)(bits >> 32);
  if (lane < 8 * N && bits % 16) __builtin_trap();
  pestle_shim->share(own, 2, all);
  for (int q = 0; q < N; ++q) {
    const unsigned short* row[8];
    for (int r = 0; r < 8; ++r) {
      const unsigned* from = &all[2 * (8 * q + r)];
      row[r] = (const unsigned short*)(from[0] | (unsigned long)from[1] << 32);
    }
    unsigned g = lane / 4, t = 2 * (lane % 4);
    unsigned low = Trans ? row[t][g] : row[g][t];
    unsigned high = Trans ? row[t + 1][g] : row[g][t + 1];
    d[q] = low | high << 16;
  }
}
template <int N>
static inline void pestle_ldmatrix(unsigned (&d)[N], const void* at) {
  pestle_shim_ldmatrix<0>(d, at);
}
template <int N>
static inline void pestle_ldmatrix_trans(unsigned (&d)[N], const void* at) {
  pestle_shim_ldmatrix<1>(d, at);
}

// Copies are made when they are waited for, and no earlier.
template <int bytes>
static inline void pestle_copy_async(void* to, const void* from, bool reads) {
  if ((unsigned long)to % bytes) __builtin_trap();
  if (reads && (unsigned long)from % bytes) __builtin_trap();
  pestle_shim->copy(to, reads ? from : nullptr, bytes);
}
static inline void pestle_copy_commit() {
  pestle_shim->copy_commit();
}
template <int batches>
static inline void pestle_copy_wait() {
  pestle_shim->copy_wait(batches);
}

template <class To, class From>
static inline To pestle_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline unsigned __float_as_uint(float a) {
  return pestle_bits<unsigned>(a);
}
static inline float __uint_as_float(unsigned a) {
  return pestle_bits<float>(a);
}
static inline long long __double_as_longlong(double a) {
  return pestle_bits<long long>(a);
}
static inline double __longlong_as_double(long long a) {
  return pestle_bits<double>(a);
}
#include "../../shim/pairs.h"

static inline float pestle_shim_from_f16(unsigned a) {
  return (float)pestle_bits<_Float16>((unsigned short)a);
}
static inline unsigned pestle_shim_to_f16(float a) {
  return pestle_bits<unsigned short>((_Float16)a);
}

template <bool F16>
static inline float pestle_shim_half(unsigned word, int high) {
  unsigned bits = high ? word >> 16 : word & 0xffff;
  return F16 ? pestle_shim_from_f16(bits) : __uint_as_float(bits << 16);
}
// Sums in the order of k.
template <bool F16>
static inline void pestle_shim_mma(float (&d)[4], const unsigned (&own)[6]) {
  unsigned all[32 * 6], lane = pestle_shim_lane() % 32;
  pestle_shim->share(own, 6, all);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4, high = i / 2, column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      unsigned t = k % 8 / 2, later = k / 8;
      unsigned a = all[6 * (4 * row + t) + high + 2 * later];
      unsigned b = all[6 * (4 * column + t) + 4 + later];
      d[i] += pestle_shim_half<F16>(a, k % 2) * pestle_shim_half<F16>(b, k % 2);
    }
  }
}
// Words of one f32 each, of which 10 bits of the mantissa count.
static inline void pestle_mma_tf32(float (&d)[4], unsigned a0, unsigned a1,
                                   unsigned a2, unsigned a3, unsigned b0,
                                   unsigned b1) {
  const unsigned own[6] = {a0, a1, a2, a3, b0, b1}, cut = ~0x1fffu;
  unsigned all[32 * 6], lane = pestle_shim_lane() % 32;
  pestle_shim->share(own, 6, all);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4, high = i / 2, column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 8; ++k) {
      unsigned t = k % 4, later = k / 4;
      unsigned a = all[6 * (4 * row + t) + high + 2 * later] & cut;
      unsigned b = all[6 * (4 * column + t) + 4 + later] & cut;
      d[i] += __uint_as_float(a) * __uint_as_float(b);
    }
  }
}
// An 8-bit float of 3 bits of mantissa, or of 2: NaN, and of the latter infinities, where
// the bits of the exponent are all set.
template <bool E5M2>
static inline float pestle_shim_f8(unsigned bits) {
  const unsigned places = E5M2 ? 2 : 3, bias = E5M2 ? 15 : 7;
  unsigned exponent = (bits & 0x7f) >> places,
           part = bits & ((1u << places) - 1);
  unsigned last = (1u << (7 - places)) - 1;
  float value = (float)part / (float)(1u << places) + (exponent ? 1.0f : 0.0f);
  value = __builtin_ldexpf(value, (int)(exponent ? exponent : 1) - (int)bias);
  if (E5M2 && exponent == last)
    value = part ? __builtin_nanf("") : __builtin_inff();
  if (!E5M2 && exponent == last && part == 7) value = __builtin_nanf("");
  return bits & 0x80 ? -value : value;
}
template <bool AE5M2, bool BE5M2>
static inline void pestle_shim_mma_f8(float (&d)[4], const unsigned (&own)[6]) {
  unsigned all[32 * 6], lane = pestle_shim_lane() % 32;
  pestle_shim->share(own, 6, all);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4, high = i / 2, column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 32; ++k) {
      unsigned t = k % 16 / 4, later = k / 16, shift = 8 * (k % 4);
      unsigned a = all[6 * (4 * row + t) + high + 2 * later] >> shift & 0xff;
      unsigned b = all[6 * (4 * column + t) + 4 + later] >> shift & 0xff;
      d[i] += pestle_shim_f8<AE5M2>(a) * pestle_shim_f8<BE5M2>(b);
    }
  }
}
#define PESTLE_SHIM_MMA_F8(name, AE5M2, BE5M2)                                 \
  static inline void pestle_mma_##name(float(&d)[4], unsigned a0, unsigned a1, \
                                       unsigned a2, unsigned a3, unsigned b0,  \
                                       unsigned b1) {                          \
    pestle_shim_mma_f8<AE5M2, BE5M2>(d, {a0, a1, a2, a3, b0, b1});             \
  }
PESTLE_SHIM_MMA_F8(e4m3e4m3, false, false)
PESTLE_SHIM_MMA_F8(e5m2e4m3, true, false)
PESTLE_SHIM_MMA_F8(e4m3e5m2, false, true)
PESTLE_SHIM_MMA_F8(e5m2e5m2, true, true)

template <bool ASigned, bool BSigned>
static inline void pestle_shim_mma_bytes(int (&d)[4],
                                         const unsigned (&own)[6]) {
  unsigned all[32 * 6], lane = pestle_shim_lane() % 32;
  pestle_shim->share(own, 6, all);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4, high = i / 2, column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 32; ++k) {
      unsigned t = k % 16 / 4, later = k / 16, shift = 8 * (k % 4);
      unsigned a = all[6 * (4 * row + t) + high + 2 * later] >> shift & 0xff;
      unsigned b = all[6 * (4 * column + t) + 4 + later] >> shift & 0xff;
      int x = ASigned ? (signed char)a : (int)a;
      int y = BSigned ? (signed char)b : (int)b;
      d[i] = (int)((unsigned)d[i] + (unsigned)(x * y));
    }
  }
}
#define PESTLE_SHIM_MMA_BYTES(name, ASigned, BSigned)                         \
  static inline void pestle_mma_##name(int(&d)[4], unsigned a0, unsigned a1,  \
                                       unsigned a2, unsigned a3, unsigned b0, \
                                       unsigned b1) {                         \
    pestle_shim_mma_bytes<ASigned, BSigned>(d, {a0, a1, a2, a3, b0, b1});     \
  }
PESTLE_SHIM_MMA_BYTES(u8u8, false, false)
PESTLE_SHIM_MMA_BYTES(s8u8, true, false)
PESTLE_SHIM_MMA_BYTES(u8s8, false, true)
PESTLE_SHIM_MMA_BYTES(s8s8, true, true)

static inline void pestle_mma_bf16(float (&d)[4], unsigned a0, unsigned a1,
                                   unsigned a2, unsigned a3, unsigned b0,
                                   unsigned b1) {
  pestle_shim_mma<false>(d, {a0, a1, a2, a3, b0, b1});
}
static inline void pestle_mma_f16(float (&d)[4], unsigned a0, unsigned a1,
                                  unsigned a2, unsigned a3, unsigned b0,
                                  unsigned b1) {
  pestle_shim_mma<true>(d, {a0, a1, a2, a3, b0, b1});
}

#define PESTLE_MATH1(name)              \
  static inline float name(float a) {   \
    return __builtin_##name##f(a);      \
  }                                     \
  static inline double name(double a) { \
    return __builtin_##name(a);         \
  }
PESTLE_MATH1(fabs)
PESTLE_MATH1(floor)
PESTLE_MATH1(ceil)
PESTLE_MATH1(rint)
PESTLE_MATH1(round)
PESTLE_MATH1(trunc)
PESTLE_MATH1(sqrt)
static inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
static inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

#define PESTLE_MATH2(type)                 \
  static inline type max(type a, type b) { \
    return a > b ? a : b;                  \
  }                                        \
  static inline type min(type a, type b) { \
    return a < b ? a : b;                  \
  }
PESTLE_MATH2(int)
PESTLE_MATH2(unsigned)
PESTLE_MATH2(long long)
PESTLE_MATH2(unsigned long long)

// A vector is aligned to all of it, as on the device: the sanitizer looks.
#define PESTLE_VECTORS(name, type)                                       \
  struct alignas(2 * sizeof(type)) name##2 {                             \
    type x, y;                                                           \
  };                                                                     \
  struct alignas(4 * sizeof(type)) name##4 {                             \
    type x, y, z, w;                                                     \
  };                                                                     \
  static inline name##2 make_##name##2(type x, type y) {                 \
    return {x, y};                                                       \
  }                                                                      \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                                 \
  }
PESTLE_VECTORS(char, signed char)
PESTLE_VECTORS(uchar, unsigned char)
PESTLE_VECTORS(short, short)
PESTLE_VECTORS(ushort, unsigned short)
PESTLE_VECTORS(int, int)
PESTLE_VECTORS(uint, unsigned)
PESTLE_VECTORS(longlong, long long)
PESTLE_VECTORS(ulonglong, unsigned long long)
PESTLE_VECTORS(float, float)
PESTLE_VECTORS(double, double)

// Calls |kernel| with what |arguments| point to.
template <class T>
struct pestle_plain_t {
  typedef T type;
};
template <class T>
struct pestle_plain_t<const T> {
  typedef T type;
};
template <pestle_size_t... I>
struct pestle_indices_t {};
template <pestle_size_t N, pestle_size_t... I>
struct pestle_make_t : pestle_make_t<N - 1, N - 1, I...> {};
template <pestle_size_t... I>
struct pestle_make_t<0, I...> {
  typedef pestle_indices_t<I...> type;
};
template <class... A, pestle_size_t... I>
static inline void pestle_call(void (*kernel)(A...), void** arguments,
                               pestle_indices_t<I...>) {
  kernel(*(typename pestle_plain_t<A>::type*)arguments[I]...);
}
template <class... A>
static inline void pestle_call(void (*kernel)(A...), void** arguments) {
  pestle_call(kernel, arguments, typename pestle_make_t<sizeof...(A)>::type());
}
template <class... A>
constexpr unsigned pestle_count(void (*)(A...)) {
  return sizeof...(A);
}
