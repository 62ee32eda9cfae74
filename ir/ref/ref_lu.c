// SPDX-License-Identifier: Apache-2.0
// lu, solve and inverse: elimination with row pivots, in f64 throughout and
// rounded once at the end.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

static void swap(double* a, double* b, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double t = a[j];
    a[j] = b[j];
    b[j] = t;
  }
}

// In place; |pivots| has room for the shorter side.
static void factor(double* a, int64_t rows, int64_t columns, int64_t* pivots) {
  int64_t steps = rows < columns ? rows : columns;
  for (int64_t k = 0; k < steps; ++k) {
    int64_t at = k;
    for (int64_t i = k + 1; i < rows; ++i) {
      if (fabs(a[i * columns + k]) > fabs(a[at * columns + k])) at = i;
    }
    pivots[k] = at;
    if (at != k) swap(a + k * columns, a + at * columns, columns);
    double pivot = a[k * columns + k];
    for (int64_t i = k + 1; i < rows; ++i) {
      double* row = a + i * columns;
      if (pivot != 0) row[k] /= pivot;
      for (int64_t j = k + 1; j < columns; ++j)
        row[j] -= row[k] * a[k * columns + j];
    }
  }
}

static double* widened(const pestle_ref_call_t* call, pestle_arena_t* arena,
                       size_t operand) {
  const pestle_type_t* type = pestle_ref_operand_type(call, operand);
  size_t count = (size_t)pestle_type_count(type);
  double* out = PESTLE_ARENA_ARRAY(arena, double, count + 1);
  if (out) {
    pestle_ref_load_f64(type->dtype, call->operands[operand], count, out);
  }
  return out;
}

static pestle_status_t lu(const pestle_ref_call_t* call,
                          pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int64_t m = type->dims[type->rank - 2], n = type->dims[type->rank - 1];
  int64_t steps = m < n ? m : n, count = pestle_type_count(type);
  double* a = widened(call, arena, 0);
  int64_t* pivots = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)steps + 1);
  if (!a || !pivots) return PESTLE_OOM();
  for (int64_t g = 0; count && g < count / (m * n); ++g) {
    int32_t* order = (int32_t*)call->results[2] + g * m;
    factor(a + g * m * n, m, n, pivots);
    for (int64_t i = 0; i < m; ++i)
      order[i] = (int32_t)i;
    for (int64_t k = 0; k < steps; ++k) {
      ((int32_t*)call->results[1])[g * steps + k] = (int32_t)pivots[k];
      int32_t t = order[k];
      order[k] = order[pivots[k]];
      order[pivots[k]] = t;
    }
  }
  pestle_ref_store_f64(type->dtype, a, (size_t)count, call->results[0]);
  return NULL;
}

// Rows of x, which begin as those of b.
static void substitute(const double* lu, const int64_t* pivots, int64_t n,
                       int64_t columns, double* x) {
  for (int64_t k = 0; k < n; ++k) {
    if (pivots[k] != k) swap(x + k * columns, x + pivots[k] * columns, columns);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) {
      for (int64_t j = 0; j < columns; ++j)
        x[i * columns + j] -= lu[i * n + k] * x[k * columns + j];
    }
  }
  for (int64_t i = n; i-- > 0;) {
    for (int64_t k = i + 1; k < n; ++k) {
      for (int64_t j = 0; j < columns; ++j)
        x[i * columns + j] -= lu[i * n + k] * x[k * columns + j];
    }
    for (int64_t j = 0; j < columns; ++j)
      x[i * columns + j] /= lu[i * n + i];
  }
}

static pestle_status_t solve(const pestle_ref_call_t* call,
                             pestle_arena_t* arena, bool inverse) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int64_t n = type->dims[type->rank - 2], m = type->dims[type->rank - 1];
  size_t count = (size_t)pestle_type_count(type);
  double* a = widened(call, arena, 0);
  double* x = inverse ? PESTLE_ARENA_ARRAY(arena, double, count + 1)
                      : widened(call, arena, 1);
  int64_t* pivots = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)n + 1);
  if (!a || !x || !pivots) return PESTLE_OOM();
  for (size_t i = 0; inverse && i < count; ++i)
    x[i] = (int64_t)i / m % n == (int64_t)i % m;
  for (int64_t g = 0; count && g < (int64_t)count / (n * m); ++g) {
    factor(a + g * n * n, n, n, pivots);
    substitute(a + g * n * n, pivots, n, m, x + g * n * m);
  }
  pestle_ref_store_f64(type->dtype, x, count, call->results[0]);
  return NULL;
}

pestle_status_t pestle_ref_lu(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = lu(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_solve(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = solve(call, &arena, false);
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_inverse(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = solve(call, &arena, true);
  pestle_arena_deinit(&arena);
  return status;
}
