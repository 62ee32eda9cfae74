// SPDX-License-Identifier: Apache-2.0
// fft by its sum, in double with roots from long double: a length is taken
// apart by its smallest prime factor, and a prime one costs its square.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ref/ref_internal.h"

typedef struct z_t {
  double re, im;
} z_t;

typedef struct plan_t {
  int64_t n;
  z_t* roots;  // exp(sign 2 pi i k / n)
} plan_t;

static void make_roots(plan_t* p, int sign) {
  const long double turn = 6.28318530717958647692528676655900577L;
  for (int64_t k = 0; k < p->n; ++k) {
    long double angle = turn * (long double)k / (long double)p->n;
    p->roots[k] = (z_t){(double)cosl(angle), sign * (double)sinl(angle)};
  }
}

// out[k] = sum over j < n of in[j step] w^(j k), w = the root of n; |work| has
// room for n.
static void transform(const plan_t* p, int64_t n, const z_t* in, int64_t step,
                      z_t* out, z_t* work) {
  int64_t f = 2;
  while (f * f <= n && n % f)
    ++f;
  if (n % f) f = n;  // prime
  int64_t m = f ? n / f : 0;
  if (n <= 1) {
    if (n) out[0] = in[0];
    return;
  }
  for (int64_t r = 0; r < f; ++r) {
    if (m == 1) {
      work[r] = in[r * step];
    } else {
      transform(p, m, in + r * step, step * f, work + r * m, out);
    }
  }
  // Root k of n is root k (p->n / n) of the plan.
  for (int64_t k = 0; k < n; ++k) {
    z_t sum = {0, 0};
    for (int64_t r = 0; r < f; ++r) {
      z_t w = p->roots[r * k % n * (p->n / n)], x = work[r * m + k % m];
      sum.re += x.re * w.re - x.im * w.im;
      sum.im += x.re * w.im + x.im * w.re;
    }
    out[k] = sum;
  }
}

// Along axis |axis| of a row-major array of |dims|.
static pestle_status_t along(pestle_arena_t* arena, z_t* data, int rank,
                             const int64_t* dims, int axis, int sign) {
  int64_t n = dims[axis], inner = 1, outer = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < axis) outer *= dims[i];
    if (i > axis) inner *= dims[i];
  }
  plan_t p = {.n = n, .roots = PESTLE_ARENA_ARRAY(arena, z_t, (size_t)n + 1)};
  z_t* line = PESTLE_ARENA_ARRAY(arena, z_t, 2 * (size_t)n + 1);
  if (!p.roots || !line) return PESTLE_OOM();
  make_roots(&p, sign);
  for (int64_t at = 0; at < outer * inner; ++at) {
    z_t* x = data + at / inner * n * inner + at % inner;
    transform(&p, n, x, inner, line, line + n);
    for (int64_t k = 0; k < n; ++k) {
      x[k * inner] = line[k];
      if (sign > 0) {
        x[k * inner].re /= (double)n;
        x[k * inner].im /= (double)n;
      }
    }
  }
  return NULL;
}

// The operand with |last| elements on the last axis: real ones get no
// imaginary part, half a spectrum the other half.
static void load(const pestle_ref_call_t* call, int64_t last, z_t* data) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  bool complex_in = pestle_type_is_complex(type);
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  size_t size = pestle_dtype_size(type->dtype);
  int64_t have = type->dims[type->rank - 1];
  int64_t rows = have ? pestle_type_count(type) / have : 0;
  for (int64_t i = 0; i < rows * last; ++i) {
    int64_t column = i % last;
    data[i] = (z_t){0, 0};
    if (column >= have) continue;
    double parts[2] = {0, 0};
    const char* from = call->operands[0];
    pestle_ref_load_f64(part, from + (size_t)(i / last * have + column) * size,
                        complex_in ? 2 : 1, parts);
    data[i] = (z_t){parts[0], parts[1]};
  }
}

static void mirror(z_t* data, int64_t rows, int64_t last) {
  for (int64_t r = 0; r < rows; ++r) {
    z_t* x = data + r * last;
    for (int64_t k = last / 2 + 1; k < last; ++k)
      x[k] = (z_t){x[last - k].re, -x[last - k].im};
  }
}

static void save(const pestle_ref_call_t* call, int64_t last, const z_t* data) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  bool complex_out = pestle_type_is_complex(type);
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  size_t size = pestle_dtype_size(type->dtype);
  int64_t want = type->dims[type->rank - 1];
  int64_t rows = want ? pestle_type_count(type) / want : 0;
  for (int64_t i = 0; i < rows * want; ++i) {
    const z_t* x = &data[i / want * last + i % want];
    double parts[2] = {x->re, x->im};
    pestle_ref_store_f64(part, parts, complex_out ? 2 : 1,
                         (char*)call->results[0] + (size_t)i * size);
  }
}

static pestle_status_t run(const pestle_ref_call_t* call,
                           pestle_arena_t* arena) {
  const pestle_type_t* in = pestle_ref_operand_type(call, 0);
  pestle_i64s_t lengths = PESTLE_NODE_I64S(call->node, fft_length);
  const char* kind = PESTLE_NODE_STR(call->node, fft_type);
  bool half = !strcmp(kind, "IRFFT");
  int sign = kind[0] == 'I' ? 1 : -1;
  pestle_type_t whole = *in;
  int64_t last = lengths.data[lengths.count - 1];
  whole.dims[in->rank - 1] = last;
  int64_t count = pestle_type_count(&whole);
  if (!count) return NULL;
  z_t* data = PESTLE_ARENA_ARRAY(arena, z_t, (size_t)count);
  if (!data) return PESTLE_OOM();
  load(call, last, data);
  for (size_t i = 0; i < lengths.count; ++i) {
    bool is_last = i + 1 == lengths.count;
    if (is_last && half) mirror(data, count / last, last);
    PESTLE_TRY(along(arena, data, in->rank, whole.dims,
                     in->rank - (int)lengths.count + (int)i, sign));
  }
  save(call, last, data);
  return NULL;
}

pestle_status_t pestle_ref_fft(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = run(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}
