// SPDX-License-Identifier: Apache-2.0
// Cumulative sums are linear, and their transposed run the other way. Other combiners
// are differentiated as log2(n) steps, each of which combines with what stands 2^k
// places before.
#include <string.h>

#include "base/fault.h"
#include "transform/transform.h"

static pv_t* cumulated(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                       bool is_reverse) {
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64(dimension, PESTLE_NODE_I64(node, dimension)),
      PESTLE_SET_STR(combiner, PESTLE_NODE_STR(node, combiner)),
      PESTLE_SET_BOOL(reverse, is_reverse),
      PESTLE_SET_BOOL(exclusive, PESTLE_NODE_BOOL(node, exclusive))};
  return pestle_f_make(f, PESTLE_OP_CUMULATIVE, &a, 1, attrs, 4, NULL);
}

// log(exp(a) + exp(b))
static pv_t* log_sum(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* high = pestle_f_maximum(f, a, b);
  pv_t* apart = pestle_f_subtract(f, a, b);
  apart = pestle_f_exponential(f, pestle_f_negate(f, pestle_f_abs(f, apart)));
  return pestle_f_add(f, high, pestle_f_log_plus_one(f, apart));
}

static pestle_op_t combiner(const char* name) {
  return !strcmp(name, "MULTIPLY")  ? PESTLE_OP_MULTIPLY
         : !strcmp(name, "MAXIMUM") ? PESTLE_OP_MAXIMUM
         : !strcmp(name, "MINIMUM") ? PESTLE_OP_MINIMUM
                                    : PESTLE_OP_COUNT;
}

// |a| moved |by| places along |axis|, |fill| in front, what leaves it dropped.
static pv_t* moved(pestle_formula_t* f, pv_t* a, pv_t* fill, int32_t axis,
                   int64_t by, bool is_reverse) {
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  low[axis] = is_reverse ? -by : by;
  high[axis] = -low[axis];
  return pestle_f_pad(f, a, fill, low, high, NULL);
}

// Elements that have nothing so far before them stay: combining with what changes
// nothing would give them a tangent of their own where that is infinite.
static pv_t* steps(pestle_formula_t* f, const pestle_node_t* node, pv_t* a) {
  pestle_op_t op = combiner(PESTLE_NODE_STR(node, combiner));
  int32_t axis = (int32_t)PESTLE_NODE_I64(node, dimension);
  bool is_reverse = PESTLE_NODE_BOOL(node, reverse);
  if (!a) return NULL;
  int64_t length = a->type->dims[axis];
  pestle_op_t like = op == PESTLE_OP_COUNT ? PESTLE_OP_MAXIMUM : op;
  pv_t* fill = pestle_f_identity(f, like, a->type->dtype);
  if (PESTLE_NODE_BOOL(node, exclusive)) {
    a = moved(f, a, fill, axis, 1, is_reverse);
  }
  pestle_type_t places = *a->type;
  places.dtype = PESTLE_I64;
  pv_t* at = pestle_f_iota(f, &places, axis);
  for (int64_t by = 1; by < length; by *= 2) {
    pv_t* edge =
        pestle_f_splat(f, at, (double)(is_reverse ? length - 1 - by : by));
    pv_t* has =
        is_reverse ? pestle_f_le(f, at, edge) : pestle_f_ge(f, at, edge);
    pv_t* before = moved(f, a, fill, axis, by, is_reverse);
    pv_t* sum = op == PESTLE_OP_COUNT ? log_sum(f, before, a)
                                      : pestle_f_binary(f, op, before, a);
    a = pestle_f_select(f, has, sum, a);
  }
  return a;
}

void pestle_jvp_cumulative(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                           pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t* a = pestle_node_operand(node, 0);
  if (!strcmp(PESTLE_NODE_STR(node, combiner), "ADD")) {
    out[0] = cumulated(f, node, t[0], PESTLE_NODE_BOOL(node, reverse));
    return;
  }
  pestle_dtype_t dtype = a->type->dtype;
  a = pestle_f_convert(f, a, pestle_compute_dtype(dtype));
  a = pestle_f_convert(f, steps(f, node, a), dtype);
  pestle_jvp_behind(j, node);
  out[0] = a ? pestle_tangent(j, a) : NULL;
}

void pestle_transpose_cumulative(pestle_transposer_t* x, pestle_node_t* node,
                                 pv_t* const* ct) {
  pestle_cotangent_add(
      x, node, 0,
      cumulated(&x->f, node, ct[0],
                !PESTLE_NODE_BOOL(node, reverse) ^ PESTLE_FAULT(lost_turn)));
}
