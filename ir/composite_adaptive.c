// SPDX-License-Identifier: Apache-2.0
// Adaptive pools: a window is a box, and the sum or the largest element of a box
// that of those of its rows.
//
// Axes whose m divides n come first, all by one reduction: their windows lie side by
// side in [.., m, n / m, ..]. Each other one is seen as [outer, n, inner], and
// element j of window i is gathered into [outer, m, longest, inner]. Behind the
// end of a window that is shorter stands its last element again, which the
// largest does not mind and a sum leaves out.
#include <math.h>

#include "base/mem.h"
#include "ir/composite.h"

typedef struct pool_t {
  pestle_formula_t* f;
  bool average;
  int64_t n, m, outer, inner, longest, shortest;
  pestle_arena_t arena;  // for tables on their way into constants
} pool_t;

// Windows end where the next begins, or one behind.
static int64_t begin_of(const pool_t* p, int64_t i) {
  return i * p->n / p->m;
}

static int64_t length_of(const pool_t* p, int64_t i) {
  return ((i + 1) * p->n + p->m - 1) / p->m - begin_of(p, i);
}

static void look_at(pool_t* p, const pestle_type_t* type, int64_t axis,
                    int64_t m) {
  p->n = type->dims[axis];
  p->m = m;
  p->outer = p->inner = 1;
  p->longest = 0;
  p->shortest = INT64_MAX;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (i < axis) p->outer *= type->dims[i];
    if (i > axis) p->inner *= type->dims[i];
  }
  for (int64_t i = 0; i < m; ++i) {
    int64_t length = length_of(p, i);
    if (length > p->longest) p->longest = length;
    if (length < p->shortest) p->shortest = length;
  }
}

// --- Tables ---

// Of each window's elements the place on the axis, or whether it is one.
static pv_t* table(pool_t* p, pestle_dtype_t dtype) {
  int64_t dims[] = {p->m, p->longest};
  pestle_type_t type = pestle_type_make(dtype, 2, dims);
  double* out =
      PESTLE_ARENA_ARRAY(&p->arena, double, (size_t)(p->m * p->longest));
  if (!out && !p->f->status) p->f->status = PESTLE_OOM();
  for (int64_t i = 0; out && i < p->m; ++i) {
    int64_t length = length_of(p, i);
    for (int64_t j = 0; j < p->longest; ++j) {
      int64_t place = begin_of(p, i) + (j < length ? j : length - 1);
      out[i * p->longest + j] =
          (double)(dtype == PESTLE_I1 ? j < length : place);
    }
  }
  return out ? pestle_f_numbers(p->f, &type, out) : NULL;
}

// |x| [outer, n, inner] as [outer, m, longest, inner] by |places|.
static pv_t* gathered(const pool_t* p, pv_t* x, pv_t* places) {
  const int64_t offsets[] = {0, 3}, axis = 1;
  const int64_t sizes[] = {p->outer, 1, p->inner};
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_offset_dims, PESTLE_ATTR_KIND_I64S, .as.i64s = {offsets, 2}},
      {PESTLE_ATTR_collapsed_slice_dims, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {&axis, 1}},
      {PESTLE_ATTR_start_index_map, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {&axis, 1}},
      {PESTLE_ATTR_index_vector_dim, PESTLE_ATTR_KIND_I64, .as.i64 = 2},
      {PESTLE_ATTR_slice_sizes, PESTLE_ATTR_KIND_I64S, .as.i64s = {sizes, 3}},
  };
  return pestle_f_make(p->f, PESTLE_OP_GATHER, (pv_t*[]){x, places}, 2, attrs,
                       5, NULL);
}

// |x| [outer, m, longest, inner], and 0 where it is in no window.
static pv_t* masked(pool_t* p, pv_t* x) {
  const int64_t axes[] = {1, 2};
  if (!x) return NULL;
  pv_t* inside = pestle_f_broadcast(p->f, table(p, PESTLE_I1), 4, x->type->dims,
                                    (pestle_i64s_t){axes, 2});
  return pestle_f_select(p->f, inside, x, pestle_f_number(p->f, x->type, 0));
}

// --- Reductions ---

// What a reduction starts from: 0, or the least element of the type.
static pv_t* start(const pool_t* p, pestle_dtype_t dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  pestle_type_t scalar = pestle_type_make(dtype, 0, NULL);
  if (p->average) return pestle_f_number(p->f, &scalar, 0);
  if (info->kind == PESTLE_KIND_FLOAT)
    return pestle_f_number(p->f, &scalar, -INFINITY);
  uint64_t least = info->kind == PESTLE_KIND_SIGNED
                       ? ~UINT64_C(0) << (info->bits - 1)
                       : UINT64_C(0);
  return pestle_f_bits(p->f, &scalar, least);
}

static pv_t* reduce(const pool_t* p, pv_t* x, const int64_t* axes,
                    size_t count) {
  pestle_op_t op = p->average ? PESTLE_OP_ADD : PESTLE_OP_MAXIMUM;
  if (!x) return NULL;
  return pestle_f_reduce_from(p->f, op, x, (pestle_i64s_t){axes, count},
                              start(p, x->type->dtype));
}

// |x| reduced along each axis whose extent its |size| divides; negative: kept.
static pv_t* reduce_apart(const pool_t* p, pv_t* x, const int64_t* sizes) {
  int64_t apart[2 * PESTLE_MAX_RANK], axes[PESTLE_MAX_RANK];
  pestle_type_t type = *x->type;
  int32_t rank = 0;
  size_t count = 0;
  for (int32_t i = 0; i < type.rank; ++i) {
    int64_t n = type.dims[i], m = sizes[i];
    bool divides = m > 0 && m != n && n % m == 0;
    int32_t left = type.rank - i - 1;  // which need their places too
    apart[rank++] = divides ? m : n;
    if (!divides || rank + 1 + left > PESTLE_MAX_RANK) {
      apart[rank - 1] = n;
      continue;
    }
    axes[count++] = rank;
    apart[rank++] = n / m;
    type.dims[i] = m;
  }
  if (!count) return x;
  x = reduce(p, pestle_f_reshape(p->f, x, rank, apart), axes, count);
  return pestle_f_reshape(p->f, x, type.rank, type.dims);
}

// |x| reduced along |axis| onto |m| elements.
static pv_t* reduce_gathered(pool_t* p, pv_t* x, int64_t axis, int64_t m) {
  if (!x || m < 0 || x->type->dims[axis] == m) return x;
  pestle_type_t type = *x->type;
  look_at(p, &type, axis, m);
  type.dims[axis] = m;
  const int64_t dims[] = {p->outer, p->n, p->inner}, window = 2;
  pestle_dtype_t index = p->n > INT32_MAX ? PESTLE_I64 : PESTLE_I32;
  x = pestle_f_reshape(p->f, x, 3, dims);
  x = gathered(p, x, table(p, index));
  if (p->average && p->shortest < p->longest) x = masked(p, x);
  return pestle_f_reshape(p->f, reduce(p, x, &window, 1), type.rank, type.dims);
}

// How many elements the windows have along |axis|, a number for each element of
// the result if they differ, for |like|.
static pv_t* counts(pool_t* p, pv_t* like, int64_t axis, int64_t n) {
  pestle_type_t before = *like->type;
  before.dims[axis] = n;
  look_at(p, &before, axis, like->type->dims[axis]);
  if (p->shortest == p->longest)
    return pestle_f_splat(p->f, like, (double)p->longest);
  double* lengths = PESTLE_ARENA_ARRAY(&p->arena, double, (size_t)p->m);
  if (!lengths && !p->f->status) p->f->status = PESTLE_OOM();
  if (!lengths) return NULL;
  for (int64_t i = 0; i < p->m; ++i)
    lengths[i] = (double)length_of(p, i);
  pestle_type_t type = pestle_type_make(like->type->dtype, 1, &p->m);
  return pestle_f_broadcast(p->f, pestle_f_numbers(p->f, &type, lengths),
                            like->type->rank, like->type->dims,
                            (pestle_i64s_t){&axis, 1});
}

// |sum| over the windows' sizes; their product is a whole number of few bits.
static pv_t* divided(pool_t* p, pv_t* sum) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(p->f->of->node, dimensions);
  const pestle_type_t* from = pestle_node_operand(p->f->of->node, 0)->type;
  pv_t* size = NULL;
  for (size_t i = 0; sum && i < axes.count; ++i) {
    int64_t axis = axes.data[i];
    pv_t* along = counts(p, sum, axis, from->dims[axis]);
    size = size ? pestle_f_multiply(p->f, size, along) : along;
  }
  return size ? pestle_f_divide(p->f, sum, size) : sum;
}

static pv_t* pooled(pestle_formula_t* f, bool average) {
  pool_t p = {.f = f, .average = average};
  pestle_i64s_t axes = PESTLE_NODE_I64S(f->of->node, dimensions);
  pestle_i64s_t wanted = PESTLE_NODE_I64S(f->of->node, output_sizes);
  pv_t* x = pestle_node_operand(f->of->node, 0);
  const pestle_type_t* type = f->of->node->results[0].type;
  int64_t sizes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < type->rank; ++i)
    sizes[i] = -1;
  for (size_t i = 0; i < axes.count; ++i)
    sizes[axes.data[i]] = wanted.data[i];
  if (!pestle_type_count(type)) return pestle_f_number(f, type, 0);
  pestle_arena_init(f->builder.module->arena.allocator, &p.arena);
  // Not all 8-bit floats have the infinity that a reduction starts from.
  bool is_float = pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT);
  if (is_float) x = pestle_f_convert(f, x, f->compute);
  if (x) x = reduce_apart(&p, x, sizes);
  for (int32_t i = 0; i < type->rank; ++i)
    x = reduce_gathered(&p, x, i, sizes[i]);
  if (average) x = divided(&p, x);
  pestle_arena_deinit(&p.arena);
  return pestle_f_convert(f, x, type->dtype);
}

// The sum of each window over the number of its elements.
pv_t* pestle_decompose_adaptive_average_pool(pestle_formula_t* f) {
  return pooled(f, true);
}

pv_t* pestle_decompose_adaptive_max_pool(pestle_formula_t* f) {
  return pooled(f, false);
}
