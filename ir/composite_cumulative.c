// SPDX-License-Identifier: Apache-2.0
// Running reductions. Those by a scalar op are windows as long as their axis, which
// passes/split_scans.c makes blocks of:
//
//   cumulative %x along 0 of [n] by ADD    ->    reduce_window add %x
//                                                window [n] padding [n - 1, 0]
//
// log(sum(exp(x))) has no such op that keeps its range; its blocks are made here.
#include <math.h>

#include "ir/composite.h"
#include "ir/cumulative.h"

// Elements of a block: each level makes as many fewer.
enum { BLOCK = 8 };

static pv_t* window(pestle_formula_t* f, pestle_op_t op, pv_t* x, int64_t axis,
                    bool exclusive, bool reverse) {
  pestle_windows_t w;
  if (!x) return NULL;
  pestle_windows_init(&w);
  // Without its own element the window is moved by one.
  w.sizes[axis] = x->type->dims[axis];
  w.padding[2 * axis + reverse] = w.sizes[axis] - 1 + exclusive;
  w.padding[2 * axis + !reverse] = exclusive ? -1 : 0;
  // -0 changes nothing, but the sum of nothing is 0.
  pestle_dtype_t dtype = x->type->dtype;
  pv_t* identity = exclusive && op == PESTLE_OP_ADD
                       ? pestle_f_scalar(f, dtype, 0)
                       : pestle_f_identity(f, op, dtype);
  return pestle_f_reduce_windows(f, op, x, identity, &w);
}

// --- Of exponentials, along the last axis ---

// max + log(1 + exp(min - max)); what is infinite is so alone.
static pv_t* join(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* most = pestle_f_maximum(f, a, b);
  pv_t* apart = pestle_f_abs(f, pestle_f_subtract(f, a, b));
  pv_t* less = pestle_f_exponential(f, pestle_f_negate(f, apart));
  pv_t* sum = pestle_f_add(f, most, pestle_f_log_plus_one(f, less));
  return pestle_f_select(f, pestle_f_is_finite(f, most), sum, most);
}

static pv_t* pad(pestle_formula_t* f, pv_t* x, int64_t low, int64_t high) {
  int64_t lows[PESTLE_MAX_RANK] = {0}, highs[PESTLE_MAX_RANK] = {0};
  if (!x) return NULL;
  lows[x->type->rank - 1] = low;
  highs[x->type->rank - 1] = high;
  pv_t* nothing = pestle_f_scalar(f, x->type->dtype, -INFINITY);
  return pestle_f_pad(f, x, nothing, lows, highs, NULL);
}

// Columns [rows, count] side by side, [rows, count * many].
static pv_t* weave(pestle_formula_t* f, pv_t** columns, int64_t many) {
  if (!columns[0]) return NULL;
  int64_t rows = columns[0]->type->dims[0], count = columns[0]->type->dims[1];
  for (int64_t i = 0; i < many; ++i)
    columns[i] =
        pestle_f_reshape(f, columns[i], 3, (int64_t[]){rows, count, 1});
  pv_t* all = pestle_f_concatenate(f, columns, (size_t)many, 2);
  return pestle_f_reshape(f, all, 2, (int64_t[]){rows, count * many});
}

// Of [rows, n]: element i of all blocks of elements at a time, then what is before each
// block is joined to it.
static pv_t* running_log(pestle_formula_t* f, pv_t* x) {
  pv_t* columns[BLOCK];
  if (!x) return NULL;
  int64_t rows = x->type->dims[0], n = x->type->dims[1];
  int64_t many = n < BLOCK ? n : BLOCK, count = (n + many - 1) / many;
  x = pad(f, x, 0, count * many - n);
  x = pestle_f_reshape(f, x, 3, (int64_t[]){rows, count, many});
  for (int64_t i = 0; i < many; ++i) {
    columns[i] = pestle_f_part(f, x, 2, i);
    if (i) columns[i] = join(f, columns[i - 1], columns[i]);
  }
  if (count > 1) {
    pv_t* before = running_log(f, pad(f, columns[many - 1], 1, -1));
    for (int64_t i = 0; i < many; ++i)
      columns[i] = join(f, before, columns[i]);
  }
  return pestle_f_slice_axis(f, weave(f, columns, many), 1, 0, n);
}

// The axis becomes the last of two, and turns where it begins at the end.
static pv_t* along(pestle_formula_t* f, pv_t* x, int64_t axis, bool exclusive,
                   bool reverse) {
  int64_t outer = 1, inner = 1, two = 2;
  if (!x) return NULL;
  pestle_type_t type = *x->type;
  for (int32_t d = 0; d < type.rank; ++d)
    *(d < axis ? &outer : &inner) *= d == axis ? 1 : type.dims[d];
  int64_t n = type.dims[axis];
  x = pestle_f_reshape(f, x, 3, (int64_t[]){outer, n, inner});
  x = pestle_f_transpose(f, x, (int64_t[]){0, 2, 1});
  if (reverse) x = pestle_f_reverse(f, x, (pestle_i64s_t){&two, 1});
  x = pestle_f_reshape(f, x, 2, (int64_t[]){outer * inner, n});
  if (exclusive) x = pad(f, x, 1, -1);
  x = running_log(f, x);
  x = pestle_f_reshape(f, x, 3, (int64_t[]){outer, inner, n});
  if (reverse) x = pestle_f_reverse(f, x, (pestle_i64s_t){&two, 1});
  x = pestle_f_transpose(f, x, (int64_t[]){0, 2, 1});
  return pestle_f_reshape_to(f, x, &type);
}

pv_t* pestle_decompose_cumulative(pestle_formula_t* f) {
  const pestle_node_t* node = f->of->node;
  pestle_dtype_t dtype = pestle_node_operand(node, 0)->type->dtype;
  bool real = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  pv_t* x = pestle_f_operand(f, 0, real ? f->compute : dtype);
  if (!x || pestle_type_count(x->type) == 0)
    return pestle_node_operand(node, 0);
  pestle_op_t op = pestle_cumulative_op(PESTLE_NODE_STR(node, combiner));
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  bool exclusive = PESTLE_NODE_BOOL(node, exclusive);
  bool reverse = PESTLE_NODE_BOOL(node, reverse);
  pv_t* y = op == PESTLE_OP_LOGSUMEXP
                ? along(f, x, axis, exclusive, reverse)
                : window(f, op, x, axis, exclusive, reverse);
  return pestle_f_convert(f, y, dtype);
}
