// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm from its definition, one row at a time, in f64.
#include <math.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

enum { X, SCALE, C, GIVEN };

typedef struct grad_t {
  int64_t length;
  double epsilon;
  bool is_centred;
  const double *x, *c, *scale;  // of one row
  double *dx, *of_scale, *of_offset;
} grad_t;

static double mean_of(const double* a, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i];
  return sum / (double)n;
}

static void differentiate(const grad_t* g) {
  double n = (double)g->length, along = 0, all = 0, square = 0;
  double middle = g->is_centred ? mean_of(g->x, g->length) : 0;
  for (int64_t i = 0; i < g->length; ++i) {
    double d = g->x[i] - middle, t = g->c[i] * g->scale[i];
    square += d * d;
    along += d * t;
    all += t;
  }
  double rate = 1 / sqrt(square / n + g->epsilon);
  along *= rate / n;
  all = g->is_centred ? all / n : 0;
  for (int64_t i = 0; i < g->length; ++i) {
    double h = (g->x[i] - middle) * rate, t = g->c[i] * g->scale[i];
    g->dx[i] = rate * (t - h * along - all);
    g->of_scale[i] += g->c[i] * h;
    if (g->is_centred) g->of_offset[i] += g->c[i];
  }
}

static pestle_status_t run(pestle_arena_t* arena,
                           const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_operand_type(call, X);
  double *in[GIVEN], *out[3] = {NULL};
  int64_t rows = 1, blocks = PESTLE_NODE_I64(call->node, blocks);
  grad_t g = {.length = 1,
              .epsilon = PESTLE_NODE_F64(call->node, epsilon),
              .is_centred = PESTLE_NODE_BOOL(call->node, centred)};
  for (int32_t d = 0; d < type->rank; ++d)
    *(d < PESTLE_NODE_I64(call->node, dimension) ? &rows : &g.length) *=
        type->dims[d];
  for (size_t i = 0; i < GIVEN; ++i) {
    const pestle_type_t* t = pestle_ref_operand_type(call, i);
    size_t count = (size_t)pestle_type_count(t);
    in[i] = PESTLE_ARENA_ARRAY(arena, double, count + 1);
    if (!in[i]) return PESTLE_OOM();
    pestle_ref_load_f64(t->dtype, call->operands[i], count, in[i]);
  }
  for (uint32_t r = 0; r < call->node->result_count; ++r) {
    size_t count = (size_t)pestle_type_count(pestle_ref_result_type(call, r));
    out[r] = pestle_arena_alloc_zero(arena, (count + 1) * sizeof(double),
                                     _Alignof(double));
    if (!out[r]) return PESTLE_OOM();
  }
  int64_t block = blocks ? (rows + blocks - 1) / blocks : 1;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = r * g.length, sums = r / block * g.length;
    g.x = in[X] + at;
    g.c = in[C] + at;
    g.scale = in[SCALE];
    g.dx = out[0] + at;
    g.of_scale = out[1] + sums;
    if (g.is_centred) g.of_offset = out[2] + sums;
    differentiate(&g);
  }
  for (uint32_t r = 0; r < call->node->result_count; ++r) {
    const pestle_type_t* t = pestle_ref_result_type(call, r);
    pestle_ref_store_f64(t->dtype, out[r], (size_t)pestle_type_count(t),
                         call->results[r]);
  }
  return NULL;
}

pestle_status_t pestle_ref_norm_grad(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = run(&arena, call);
  pestle_arena_deinit(&arena);
  return status;
}
