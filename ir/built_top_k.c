// SPDX-License-Identifier: Apache-2.0
// The first few of each row in an order that a function of the module gives: XLA's
// ApproxTopK, which is exact here, and TopK.
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/chlo.h"
#include "ir/infer.h"

typedef pestle_value_t pv_t;

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

// (x, x', y, y', ..) -> the comparison of the first |reads| of those.
static pestle_region_t* region_of(pestle_built_t* b, pv_t* const* operands,
                                  size_t count, size_t reads) {
  pestle_type_t* types = PESTLE_ARENA_ARRAY(b->arena, pestle_type_t, 2 * count);
  if (!types && !b->f.status) b->f.status = PESTLE_OOM();
  if (b->f.status) return NULL;
  for (size_t i = 0; i < 2 * count; ++i)
    types[i] = pestle_type_make(operands[i / 2]->type->dtype, 0, NULL);
  return pestle_built_region(b, types, 2 * count, reads, 1);
}

// Sorts |operands| along |axis| and keeps the first |most| or, if that is negative, what
// the results have room for.
static void first_of(pestle_built_t* b, pv_t* const* operands, size_t count,
                     int64_t axis, size_t reads, int64_t most) {
  const pestle_type_t* type = operands[0] ? operands[0]->type : NULL;
  if (!type) return;
  if (axis < 0 || axis >= type->rank || b->type_count != count) {
    FAIL(b, MALFORMED,
         "it sorts an axis of its operand and gives a result for "
         "each");
    return;
  }
  pestle_region_t* region = region_of(b, operands, count, reads);
  if (!region) return;
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, axis),
                           PESTLE_SET_BOOL(is_stable, true)};
  pestle_node_t* sort =
      pestle_f_node(&b->f, &(pestle_node_spec_t){.op = PESTLE_OP_SORT,
                                                 .operands = operands,
                                                 .operand_count = count,
                                                 .attrs = attrs,
                                                 .attr_count = 2,
                                                 .regions = &region,
                                                 .region_count = 1});
  if (!sort) pestle_region_discard(region);
  for (size_t i = 0; i < count && sort; ++i) {
    int64_t k = b->types[i].rank == type->rank ? b->types[i].dims[axis] : -1;
    if (most >= 0) k = most;
    if (k < 0 || k > type->dims[axis]) {
      FAIL(b, MALFORMED, "its results do not fit its operand");
      return;
    }
    b->results[i] = pestle_f_slice_axis(&b->f, pestle_node_result(sort, i),
                                        (int32_t)axis, 0, k);
  }
}

// Operands: what is sorted, with what comes along, then what fills up, which an
// exact search needs not; behind those what the results' shapes are.
static void approx_top_k(pestle_built_t* b, int64_t k) {
  const pestle_generic_value_t* axis = pestle_built_config(b, "reduction_dim");
  size_t count = b->type_count;
  if (!count || b->operand_count < 2 * count || !axis ||
      axis->kind != PESTLE_GENERIC_INT) {
    FAIL(b, MALFORMED, "it takes operands, their fillings and 'reduction_dim'");
    return;
  }
  first_of(b, b->operands, count, axis->i64, 2 * count, k);
}

void pestle_built_approx_top_k(pestle_built_t* b) {
  approx_top_k(b, -1);
}

// The same with how many as one operand more.
void pestle_built_dynamic_approx_top_k(pestle_built_t* b) {
  pestle_i64s_t k;
  if (b->operand_count <= 2 * b->type_count) {
    FAIL(b, MALFORMED, "it takes a number behind operands and fillings");
    return;
  }
  if (!pestle_built_integers(b, 2 * b->type_count, &k)) return;
  if (k.count != 1 || k.data[0] < 0) {
    FAIL(b, MALFORMED, "operand %zu is not how many", 2 * b->type_count);
    return;
  }
  approx_top_k(b, k.data[0]);
}

// The largest, or as called_computations says, along the last axis, and where they
// were.
void pestle_built_top_k(pestle_built_t* b) {
  const pestle_type_t* x = pestle_built_type(b, 0);
  if (!x->rank || b->type_count != 2 || !pestle_type_is_static(x)) {
    FAIL(b, MALFORMED, "it takes rows and gives two results");
    return;
  }
  pestle_type_t places = *x;
  places.dtype = b->types[1].dtype;
  pv_t* operands[2] = {b->operands[0], NULL};
  operands[1] = pestle_f_iota(&b->f, &places, x->rank - 1);
  if (b->f.status) return;
  first_of(b, operands, 2, x->rank - 1, 2, -1);
}

// The largest along the last axis and where they were; how many, operand 1.
void pestle_built_dynamic_top_k(pestle_built_t* b) {
  const pestle_type_t* x = pestle_built_type(b, 0);
  pestle_i64s_t k;
  if (!pestle_built_integers(b, 1, &k)) return;
  bool fits = x->rank && pestle_type_is_static(x) && k.count == 1 &&
              k.data[0] >= 0 && k.data[0] <= x->dims[x->rank - 1];
  if (!fits) {
    FAIL(b, MALFORMED, "it takes rows and how many of each are wanted");
    return;
  }
  pestle_chlo_top_k(&b->f, b->operands[0], k.data[0], b->results);
}
