// SPDX-License-Identifier: Apache-2.0
// cholesky and triangular_solve, in f64 throughout and rounded once at the end.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

static pestle_status_t check_real(const pestle_ref_call_t* call) {
  pestle_dtype_t dtype = pestle_ref_operand_type(call, 0)->dtype;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED, "'%s' on %s is not evaluated",
                      pestle_op_info((pestle_op_t)call->node->op)->mlir,
                      pestle_dtype_info(dtype)->name);
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

// Element [i, k] of the lower triangle is at i * row + k * column. A pivot that
// is not positive, or NaN, makes its column and all later ones NaN.
static void factor(double* a, int64_t n, int64_t row, int64_t column) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = a[i * row + k * column];
      for (int64_t j = 0; j < k && i >= k; ++j) {
        sum -= a[i * row + j * column] * a[k * row + j * column];
      }
      double* to = &a[i * row + k * column];
      if (i < k) {
        *to = 0;
      } else if (i == k) {
        *to = sum > 0 ? sqrt(sum) : (double)NAN;
      } else {
        *to = sum / a[k * row + k * column];
      }
    }
  }
}

pestle_status_t pestle_ref_cholesky(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  int64_t count = pestle_type_count(type), n = type->dims[type->rank - 1];
  bool lower = PESTLE_NODE_BOOL(call->node, lower);
  PESTLE_TRY(check_real(call));
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  double* a = widened(call, &arena, 0);
  for (int64_t at = 0; a && at < count; at += n * n) {
    factor(a + at, n, lower ? n : 1, lower ? 1 : n);
  }
  if (a) pestle_ref_store_f64(type->dtype, a, (size_t)count, call->results[0]);
  pestle_arena_deinit(&arena);
  return a ? NULL : PESTLE_OOM();
}

// A triangle of n x n, and |others| vectors of n; strides in elements.
typedef struct system_t {
  const double* a;
  double* x;
  int64_t n, row, column, others, along, across;
  bool lower, unit;
} system_t;

static void solve(const system_t* s) {
  for (int64_t other = 0; other < s->others; ++other) {
    double* x = s->x + other * s->across;
    for (int64_t step = 0; step < s->n; ++step) {
      int64_t i = s->lower ? step : s->n - 1 - step;
      double sum = x[i * s->along];
      for (int64_t j = 0; j < step; ++j) {
        int64_t k = s->lower ? j : s->n - 1 - j;
        sum -= s->a[i * s->row + k * s->column] * x[k * s->along];
      }
      double diagonal = s->unit ? 1 : s->a[i * (s->row + s->column)];
      x[i * s->along] = sum / diagonal;
    }
  }
}

static system_t system_of(const pestle_ref_call_t* call) {
  const pestle_node_t* node = call->node;
  const pestle_type_t* b = pestle_ref_operand_type(call, 1);
  bool left = PESTLE_NODE_BOOL(node, left_side);
  bool turned = strcmp(PESTLE_NODE_STR(node, transpose_a), "NO_TRANSPOSE") != 0;
  int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
  // x op(a) = b is transpose(op(a)) transpose(x) = transpose(b).
  bool swaps = turned == left;
  system_t s = {.n = left ? rows : columns,
                .others = left ? columns : rows,
                .along = left ? columns : 1,
                .across = left ? 1 : columns,
                .lower = PESTLE_NODE_BOOL(node, lower) != swaps,
                .unit = PESTLE_NODE_BOOL(node, unit_diagonal)};
  s.row = swaps ? 1 : s.n;
  s.column = swaps ? s.n : 1;
  return s;
}

pestle_status_t pestle_ref_triangular_solve(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int64_t count = pestle_type_count(type);
  PESTLE_TRY(check_real(call));
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  double *a = widened(call, &arena, 0), *x = widened(call, &arena, 1);
  system_t s = system_of(call);
  int64_t size = s.n * s.others;
  for (int64_t at = 0; a && x && size && at < count / size; ++at) {
    s.a = a + at * s.n * s.n;
    s.x = x + at * size;
    solve(&s);
  }
  if (a && x) {
    pestle_ref_store_f64(type->dtype, x, (size_t)count, call->results[0]);
  }
  pestle_arena_deinit(&arena);
  return a && x ? NULL : PESTLE_OOM();
}
