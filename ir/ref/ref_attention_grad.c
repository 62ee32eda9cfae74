// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention from its definition, one row of scores at a time, in f64.
#include <math.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

enum { Q, K, V, Y, C, GIVEN };

typedef struct grad_t {
  const pestle_ref_call_t* call;
  pestle_arena_t arena;
  int64_t rows, depth, columns, width;  // S, D, T, E
  double scale, masked;
  bool is_exact;  // what is computed has the type of the operands
  double* in[GIVEN];
  double* out[3];
  double *bias, *of_bias;
  const uint8_t* mask;
  size_t bias_at, mask_at;
  double *w, *dx;  // of one row
} grad_t;

static pestle_status_t numbers(grad_t* g, size_t count, double** out) {
  *out = pestle_arena_alloc_zero(&g->arena, (count + 1) * sizeof(double),
                                 _Alignof(double));
  return *out ? NULL : PESTLE_OOM();
}

static pestle_status_t load(grad_t* g, size_t operand, double** out) {
  const pestle_type_t* type = pestle_ref_operand_type(g->call, operand);
  size_t count = (size_t)pestle_type_count(type);
  PESTLE_TRY(numbers(g, count, out));
  pestle_ref_load_f64(type->dtype, g->call->operands[operand], count, *out);
  return NULL;
}

// Where column |t| of the row at |index| is in what spreads over the scores.
static int64_t place(const pestle_type_t* type, const int64_t* index,
                     int64_t t) {
  int64_t at = 0;
  for (int i = 0; i + 1 < type->rank; ++i)
    at = at * type->dims[i] + (type->dims[i] == 1 ? 0 : index[i]);
  int64_t last = type->dims[type->rank - 1];
  return at * last + (last == 1 ? 0 : t);
}

static bool counts(const grad_t* g, const int64_t* index, int64_t t) {
  if (!g->mask) return true;
  return g->mask[place(pestle_ref_operand_type(g->call, g->mask_at), index, t)];
}

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

static void weigh(grad_t* g, const double* q, const double* k,
                  const int64_t* index) {
  double max = -INFINITY, total = 0;
  for (int64_t t = 0; t < g->columns; ++t) {
    double x = g->scale * dot(q, k + t * g->depth, g->depth);
    if (g->bias) {
      const pestle_type_t* type = pestle_ref_operand_type(g->call, g->bias_at);
      x += g->bias[place(type, index, t)];
    }
    if (!counts(g, index, t)) x = g->masked;
    g->w[t] = x;
    if (x > max || isnan(x)) max = isnan(max) ? max : x;
  }
  for (int64_t t = 0; t < g->columns; ++t)
    total += g->w[t] = exp(g->w[t] - max);
  for (int64_t t = 0; t < g->columns; ++t)
    g->w[t] /= total;
}

static void add(double* to, const double* from, double factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] += factor * from[i];
}

// Row |row| of all batches, at |index|.
static void differentiate(grad_t* g, int64_t row, const int64_t* index) {
  int64_t batch = row / g->rows;
  const double* q = g->in[Q] + row * g->depth;
  const double* c = g->in[C] + row * g->width;
  int64_t keys = batch * g->columns * g->depth;
  int64_t values = batch * g->columns * g->width;
  weigh(g, q, g->in[K] + keys, index);
  for (int64_t t = 0; t < g->columns; ++t)
    g->dx[t] = dot(c, g->in[V] + values + t * g->width, g->width);
  // A result that was rounded would lose more than the weights do.
  double sum = g->is_exact ? dot(c, g->in[Y] + row * g->width, g->width)
                           : dot(g->w, g->dx, g->columns);
  for (int64_t t = 0; t < g->columns; ++t) {
    double dx = counts(g, index, t) ? g->w[t] * (g->dx[t] - sum) : 0;
    if (g->of_bias) {
      const pestle_type_t* type = pestle_ref_operand_type(g->call, g->bias_at);
      g->of_bias[place(type, index, t)] += dx;
    }
    dx *= g->scale;
    add(g->out[0] + row * g->depth, g->in[K] + keys + t * g->depth, dx,
        g->depth);
    add(g->out[1] + keys + t * g->depth, q, dx, g->depth);
    add(g->out[2] + values + t * g->width, c, g->w[t], g->width);
  }
}

static pestle_status_t prepare(grad_t* g) {
  const pestle_ref_call_t* call = g->call;
  const pestle_type_t* q = pestle_ref_operand_type(call, Q);
  const pestle_type_t* v = pestle_ref_operand_type(call, V);
  g->rows = q->dims[q->rank - 2];
  g->depth = q->dims[q->rank - 1];
  g->columns = v->dims[v->rank - 2];
  g->width = v->dims[v->rank - 1];
  g->scale = PESTLE_NODE_F64(call->node, scale);
  g->masked = PESTLE_NODE_F64(call->node, masked);
  if (q->dtype != PESTLE_F64) g->masked = (float)g->masked;
  g->is_exact = q->dtype == PESTLE_F64 || q->dtype == PESTLE_F32;
  g->bias_at = pestle_attention_bias(call->node);
  g->mask_at = pestle_attention_mask(call->node);
  for (size_t i = 0; i < GIVEN; ++i)
    PESTLE_TRY(load(g, i, &g->in[i]));
  if (g->bias_at) PESTLE_TRY(load(g, g->bias_at, &g->bias));
  if (g->mask_at) g->mask = call->operands[g->mask_at];
  PESTLE_TRY(numbers(g, (size_t)g->columns, &g->w));
  PESTLE_TRY(numbers(g, (size_t)g->columns, &g->dx));
  for (uint32_t r = 0; r < call->node->result_count; ++r) {
    double** out = r < 3 ? &g->out[r] : &g->of_bias;
    const pestle_type_t* type = pestle_ref_result_type(call, r);
    PESTLE_TRY(numbers(g, (size_t)pestle_type_count(type), out));
  }
  return NULL;
}

static pestle_status_t run(grad_t* g) {
  int64_t index[PESTLE_MAX_RANK] = {0}, row = 0;
  PESTLE_TRY(prepare(g));
  const pestle_type_t* q = pestle_ref_operand_type(g->call, Q);
  bool any = g->columns > 0;
  for (int32_t i = 0; i + 1 < q->rank; ++i)
    any &= q->dims[i] > 0;
  if (any) {
    do {
      differentiate(g, row++, index);
    } while (pestle_ref_next(q->rank - 1, q->dims, index));
  }
  for (uint32_t r = 0; r < g->call->node->result_count; ++r) {
    const pestle_type_t* type = pestle_ref_result_type(g->call, r);
    pestle_ref_store_f64(type->dtype, r < 3 ? g->out[r] : g->of_bias,
                         (size_t)pestle_type_count(type), g->call->results[r]);
  }
  return NULL;
}

pestle_status_t pestle_ref_attention_grad(const pestle_ref_call_t* call) {
  grad_t g = {.call = call};
  pestle_arena_init(call->allocator, &g.arena);
  pestle_status_t status = run(&g);
  pestle_arena_deinit(&g.arena);
  return status;
}
