// SPDX-License-Identifier: Apache-2.0
// Attention from its definition, one row of scores at a time, in f64.
#include <math.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

typedef struct attention_t {
  const double *q, *k, *v;
  const double* bias;             // of one row at a time, or NULL
  const uint8_t* mask;            // likewise
  int64_t depth, columns, width;  // D, T, E
  int64_t bias_step, mask_step;   // from column to column: 0 where repeated
  double scale, masked;
  double* weights;  // one row
} attention_t;

static void weigh(const attention_t* a) {
  double max = -INFINITY;
  for (int64_t t = 0; t < a->columns; ++t) {
    double x = 0;
    for (int64_t d = 0; d < a->depth; ++d)
      x += a->q[d] * a->k[t * a->depth + d];
    x *= a->scale;
    if (a->bias) x += a->bias[t * a->bias_step];
    if (a->mask && !a->mask[t * a->mask_step]) x = a->masked;
    a->weights[t] = x;
    if (x > max || isnan(x)) max = isnan(max) ? max : x;
  }
  for (int64_t t = 0; t < a->columns; ++t)
    a->weights[t] = exp(a->weights[t] - max);
}

static void attend(const attention_t* a, double* out) {
  double total = 0;
  weigh(a);
  for (int64_t e = 0; e < a->width; ++e)
    out[e] = 0;
  for (int64_t t = 0; t < a->columns; ++t) {
    total += a->weights[t];
    for (int64_t e = 0; e < a->width; ++e)
      out[e] += a->weights[t] * a->v[t * a->width + e];
  }
  for (int64_t e = 0; e < a->width; ++e)
    out[e] /= total;
}

static pestle_status_t load(pestle_arena_t* arena,
                            const pestle_ref_call_t* call, size_t operand,
                            double** out) {
  const pestle_type_t* type = pestle_ref_operand_type(call, operand);
  size_t count = (size_t)pestle_type_count(type);
  *out = PESTLE_ARENA_ARRAY(arena, double, count);
  if (!*out) return PESTLE_OOM();
  pestle_ref_load_f64(type->dtype, call->operands[operand], count, *out);
  return NULL;
}

// Where the row at |index|, of the axes but the last, begins in what spreads
// over the scores.
static int64_t row_of(const pestle_type_t* type, const int64_t* index) {
  int64_t at = 0;
  for (int i = 0; i + 1 < type->rank; ++i) {
    at = at * type->dims[i] + (type->dims[i] == 1 ? 0 : index[i]);
  }
  return at * type->dims[type->rank - 1];
}

// The type of operand |index|, 0: none, and the step from column to column.
static const pestle_type_t* spread(const pestle_ref_call_t* call, size_t index,
                                   int64_t* out_step) {
  if (!index) return NULL;
  const pestle_type_t* type = pestle_ref_operand_type(call, index);
  *out_step = type->dims[type->rank - 1] != 1;
  return type;
}

static pestle_status_t run(pestle_arena_t* arena,
                           const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* k = pestle_ref_operand_type(call, 1);
  size_t count = (size_t)pestle_type_count(type);
  if (!count) return NULL;
  int32_t rows = type->rank - 1;
  attention_t a = {.depth = k->dims[rows],
                   .columns = k->dims[rows - 1],
                   .width = type->dims[rows],
                   .scale = PESTLE_NODE_F64(call->node, scale),
                   .masked = PESTLE_NODE_F64(call->node, masked)};
  // Scores are f32 but for f64.
  if (type->dtype != PESTLE_F64) a.masked = (float)a.masked;
  size_t bias_at = pestle_attention_bias(call->node);
  size_t mask_at = pestle_attention_mask(call->node);
  const pestle_type_t* bias_type = spread(call, bias_at, &a.bias_step);
  const pestle_type_t* mask_type = spread(call, mask_at, &a.mask_step);
  double *q, *keys, *values, *bias = NULL, *out;
  PESTLE_TRY(load(arena, call, 0, &q));
  PESTLE_TRY(load(arena, call, 1, &keys));
  PESTLE_TRY(load(arena, call, 2, &values));
  if (bias_type) PESTLE_TRY(load(arena, call, bias_at, &bias));
  const uint8_t* mask = mask_type ? call->operands[mask_at] : NULL;
  a.weights = PESTLE_ARENA_ARRAY(arena, double, (size_t)a.columns);
  out = PESTLE_ARENA_ARRAY(arena, double, count);
  if (!a.weights || !out) return PESTLE_OOM();
  int64_t index[PESTLE_MAX_RANK] = {0}, row = 0;
  do {
    int64_t batch = row / type->dims[rows - 1];
    a.q = q + row * a.depth;
    a.k = keys + batch * a.columns * a.depth;
    a.v = values + batch * a.columns * a.width;
    if (bias) a.bias = bias + row_of(bias_type, index);
    if (mask) a.mask = mask + row_of(mask_type, index);
    attend(&a, out + row++ * a.width);
  } while (pestle_ref_next(rows, type->dims, index));
  pestle_ref_store_f64(type->dtype, out, count, call->results[0]);
  return NULL;
}

pestle_status_t pestle_ref_attention(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = run(&arena, call);
  pestle_arena_deinit(&arena);
  return status;
}
