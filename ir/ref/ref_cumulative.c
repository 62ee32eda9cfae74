// SPDX-License-Identifier: Apache-2.0
// Running reductions.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/cumulative.h"
#include "ir/identity.h"
#include "ir/ref/ref_internal.h"

// Elements of 8 bytes, [outer, n, inner]; a complex number is two along |inner|.
typedef struct rows_t {
  int64_t outer, n, inner;
  bool exclusive, reverse;
  pestle_op_t op;
  pestle_ref_class_t kind;
  uint64_t width;
} rows_t;

// One step of |count| results: now = now op x.
typedef void (*step_t)(const rows_t* r, void* now, void* sums, const void* x,
                       size_t count);

static void by_kernel(const rows_t* r, void* now, void* sums, const void* x,
                      size_t count) {
  (void)sums;
  pestle_ref_kernel(r->op, r->kind)(now, now, x, x, count, r->width);
}

static void by_complex(const rows_t* r, void* now, void* sums, const void* x,
                       size_t count) {
  double* a = now;
  const double* b = x;
  (void)sums;
  for (size_t i = 0; i + 1 < count; i += 2) {
    double re = a[i], im = a[i + 1];
    bool adds = r->op == PESTLE_OP_ADD;
    a[i] = adds ? re + b[i] : re * b[i] - im * b[i + 1];
    a[i + 1] = adds ? im + b[i + 1] : re * b[i + 1] + im * b[i];
  }
}

// |now| is the largest so far and |sums| what exp(x - now) amounts to.
static void by_exponentials(const rows_t* r, void* now, void* sums,
                            const void* x, size_t count) {
  double *most = now, *sum = sums;
  const double* v = x;
  (void)r;
  for (size_t i = 0; i < count; ++i) {
    double top = v[i] > most[i] || isnan(v[i]) ? v[i] : most[i];
    double old = isfinite(most[i]) ? exp(most[i] - top) : 0;
    sum[i] = isfinite(top) ? sum[i] * old + exp(v[i] - top) : 0;
    most[i] = isnan(most[i]) ? most[i] : top;
  }
}

static void put(const rows_t* r, void* out, const void* now, const double* sums,
                size_t count) {
  memcpy(out, now, count * 8);
  if (r->op != PESTLE_OP_LOGSUMEXP) return;
  double* y = out;
  for (size_t i = 0; i < count; ++i)
    y[i] += isfinite(y[i]) ? log(sums[i]) : 0;
}

// |start| is the identity of each of the |inner| results, |now| and |sums| as many.
static void run(const rows_t* r, step_t step, const uint64_t* x, uint64_t* out,
                const uint64_t* start, uint64_t* now, double* sums) {
  size_t count = (size_t)r->inner;
  for (int64_t o = 0; o < r->outer; ++o) {
    memcpy(now, start, count * 8);
    memset(sums, 0, count * 8);
    for (int64_t k = 0; k < r->n; ++k) {
      int64_t at = (o * r->n + (r->reverse ? r->n - 1 - k : k)) * r->inner;
      if (r->exclusive) put(r, out + at, now, sums, count);
      step(r, now, sums, x + at, count);
      if (!r->exclusive) put(r, out + at, now, sums, count);
    }
  }
}

static uint64_t identity_of(const rows_t* r, pestle_dtype_t dtype) {
  double number = -INFINITY;
  int64_t bits = 0;
  uint64_t out;
  if (r->op != PESTLE_OP_LOGSUMEXP) {
    pestle_reduce_identity(r->op, dtype, &number, &bits);
  }
  if (r->kind == PESTLE_REF_F64) {
    if (r->exclusive && r->op == PESTLE_OP_ADD) number = 0;  // not -0
    memcpy(&out, &number, 8);
  } else {
    pestle_ref_load_wide(dtype, &bits, 1, &out);
  }
  return out;
}

// Of a product of pairs 1 and 0.
static void fill_identity(const rows_t* r, pestle_dtype_t dtype, bool pairs,
                          uint64_t* out) {
  uint64_t whole = identity_of(r, dtype);
  bool product = pairs && r->op == PESTLE_OP_MULTIPLY;
  for (int64_t i = 0; i < r->inner; ++i)
    out[i] = product && i % 2 ? 0 : whole;
}

pestle_status_t pestle_ref_cumulative(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_node_t* node = call->node;
  bool pairs = pestle_type_is_complex(type);
  pestle_dtype_t dtype = pestle_dtype_part(type->dtype);
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  rows_t r = {.outer = 1,
              .n = type->dims[axis],
              .inner = pairs ? 2 : 1,
              .exclusive = PESTLE_NODE_BOOL(node, exclusive),
              .reverse = PESTLE_NODE_BOOL(node, reverse),
              .op = pestle_cumulative_op(PESTLE_NODE_STR(node, combiner)),
              .kind = pestle_ref_wide_class(dtype),
              .width = pestle_dtype_info(dtype)->bits};
  for (int32_t d = 0; d < type->rank; ++d)
    *(d < axis ? &r.outer : &r.inner) *= d == axis ? 1 : type->dims[d];
  size_t count = (size_t)(r.outer * r.n * r.inner), row = (size_t)r.inner;
  size_t words = 2 * count + 3 * row + 1;
  uint64_t* x = pestle_alloc_array(call->allocator, words, 8);
  if (!x) return PESTLE_OOM();
  uint64_t *out = x + count, *start = out + count, *now = start + row;
  pestle_ref_load_wide(dtype, call->operands[0], count, x);
  fill_identity(&r, dtype, pairs, start);
  step_t step = r.op == PESTLE_OP_LOGSUMEXP ? by_exponentials
                : pairs                     ? by_complex
                                            : by_kernel;
  run(&r, step, x, out, start, now, (double*)(now + row));
  pestle_ref_store_wide(dtype, out, count, call->results[0]);
  pestle_dealloc(call->allocator, x, words * 8);
  return NULL;
}
