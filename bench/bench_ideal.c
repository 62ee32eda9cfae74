// SPDX-License-Identifier: Apache-2.0
// Loops written by hand for one machine, AVX-512 with plain stores and huge
// pages: what the kernels of the same work are compared with. Prints a JSON
// line: the least seconds of a run of each, in rounds that take turns.
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
  ELEMENTS = 1 << 24,
  ROWS = 4096,
  COLUMNS = 1024,
  LANES = 16,
  HUGE_PAGE = 2 << 20,
  ROUNDS = 25,
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float* buffer(size_t bytes) {
  void* p;
  if (posix_memalign(&p, HUGE_PAGE, bytes)) exit(1);
  madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, 0, bytes);
  return p;
}

// sqrt(|max(1.01 x + 0.5, 0)^2 - 0.25|) + x, times -0.7.
static void chain(const float* x, float* y) {
  const __m512 zero = _mm512_setzero_ps();
  for (long i = 0; i < ELEMENTS; i += LANES) {
    __m512 v = _mm512_load_ps(x + i);
    __m512 t = _mm512_fmadd_ps(v, _mm512_set1_ps(1.01f), _mm512_set1_ps(0.5f));
    t = _mm512_max_ps(t, zero);
    t = _mm512_fmsub_ps(t, t, _mm512_set1_ps(0.25f));
    t = _mm512_sqrt_ps(_mm512_abs_ps(t));
    t = _mm512_mul_ps(_mm512_add_ps(t, v), _mm512_set1_ps(-0.7f));
    _mm512_store_ps(y + i, t);
  }
}

// exp for x <= 0: 2^n times a polynomial of degree 7 (Cephes' coefficients).
static __m512 exp_of(__m512 x) {
  static const float c[] = {1.9875691e-4f, 1.3981999e-3f, 8.3334519e-3f,
                            4.1665795e-2f, 1.6666665e-1f, 0.5f};
  x = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
  __m512 n =
      _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(c[0]);
  for (int i = 1; i < 6; ++i)
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c[i]));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r),
                      _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
  return _mm512_scalef_ps(p, n);
}

static void softmax(const float* input, float* output) {
  float row[COLUMNS] __attribute__((aligned(64)));
  for (long r = 0; r < ROWS; ++r) {
    const float* x = input + r * COLUMNS;
    float* y = output + r * COLUMNS;
    __m512 m = _mm512_load_ps(x), sum = _mm512_setzero_ps();
    for (int i = LANES; i < COLUMNS; i += LANES)
      m = _mm512_max_ps(m, _mm512_load_ps(x + i));
    __m512 most = _mm512_set1_ps(_mm512_reduce_max_ps(m));
    for (int i = 0; i < COLUMNS; i += LANES) {
      __m512 e = exp_of(_mm512_sub_ps(_mm512_load_ps(x + i), most));
      _mm512_store_ps(row + i, e);
      sum = _mm512_add_ps(sum, e);
    }
    __m512 scale = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
    for (int i = 0; i < COLUMNS; i += LANES)
      _mm512_store_ps(y + i, _mm512_mul_ps(_mm512_load_ps(row + i), scale));
  }
}

// Variance as a difference of means: one pass, worse digits than two.
static void layer_norm(const float* input, float* output) {
  const float *gain = input, *bias = input + COLUMNS;
  for (long r = 0; r < ROWS; ++r) {
    const float* x = input + r * COLUMNS;
    float* y = output + r * COLUMNS;
    __m512 s = _mm512_setzero_ps(), q = s;
    for (int i = 0; i < COLUMNS; i += LANES) {
      __m512 v = _mm512_load_ps(x + i);
      s = _mm512_add_ps(s, v);
      q = _mm512_fmadd_ps(v, v, q);
    }
    float mean = _mm512_reduce_add_ps(s) / (float)COLUMNS;
    float variance = _mm512_reduce_add_ps(q) / (float)COLUMNS - mean * mean;
    __m512 a = _mm512_set1_ps(1.0f / __builtin_sqrtf(variance + 1e-5f));
    __m512 b = _mm512_set1_ps(mean);
    for (int i = 0; i < COLUMNS; i += LANES) {
      __m512 v = _mm512_sub_ps(_mm512_load_ps(x + i), b);
      v = _mm512_fmadd_ps(_mm512_mul_ps(v, a), _mm512_load_ps(gain + i),
                          _mm512_load_ps(bias + i));
      _mm512_store_ps(y + i, v);
    }
  }
}

// Four parts side by side, each asked for 2 KiB ahead.
static void sum_all(const float* x, float* y) {
  enum { PARTS = 4, AHEAD = 512, STEP = 2 * LANES };
  const long part = ELEMENTS / PARTS;
  __m512 sums[2 * PARTS], total = _mm512_setzero_ps();
  for (int p = 0; p < 2 * PARTS; ++p)
    sums[p] = total;
  for (long i = 0; i < part; i += STEP) {
    for (int p = 0; p < PARTS; ++p) {
      const float* at = x + p * part + i;
      _mm_prefetch((const char*)(at + AHEAD), _MM_HINT_T0);
      _mm_prefetch((const char*)(at + AHEAD + LANES), _MM_HINT_T0);
      sums[p] = _mm512_add_ps(sums[p], _mm512_load_ps(at));
      sums[p + PARTS] =
          _mm512_add_ps(sums[p + PARTS], _mm512_load_ps(at + LANES));
    }
  }
  for (int p = 0; p < 2 * PARTS; ++p)
    total = _mm512_add_ps(total, sums[p]);
  *y = _mm512_reduce_add_ps(total);
}

int main(void) {
  static const struct {
    const char* name;
    void (*run)(const float*, float*);
  } loops[] = {{"chain", chain},
               {"softmax", softmax},
               {"layer_norm", layer_norm},
               {"sum_all", sum_all}};
  enum { COUNT = sizeof(loops) / sizeof(*loops) };
  double least[COUNT];
  if (!__builtin_cpu_supports("avx512f")) {
    printf("{}\n");
    return 0;
  }
  float *x = buffer(ELEMENTS * sizeof(float)),
        *y = buffer(ELEMENTS * sizeof(float));
  for (long i = 0; i < ELEMENTS; ++i)
    x[i] = (float)((unsigned)i * 2654435761u % 2000) / 1000.0f - 1;
  for (int r = 0; r < ROUNDS; ++r) {
    for (int i = 0; i < COUNT; ++i) {
      double start = now();
      loops[i].run(x, y);
      double seconds = now() - start;
      if (!r || seconds < least[i]) least[i] = seconds;
    }
  }
  for (int i = 0; i < COUNT; ++i)
    printf("%s\"%s\": %.6f", i ? ", " : "{", loops[i].name, least[i]);
  printf("}\n");
  free(x);
  free(y);
  return 0;
}
