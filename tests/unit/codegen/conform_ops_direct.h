// SPDX-License-Identifier: Apache-2.0
// Instances of the ops that are kernels of their own.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_DIRECT_H_
#define PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_DIRECT_H_

#include "unit/codegen/conform_ops.h"
#include "unit/codegen/conform_ops_fold.h"
#include "unit/codegen/conform_ops_move.h"

// --- sort ---

// a.0 |op| b.0, or equal there and a.1 |op| b.1.
static inline pestle_region_t* lexicographic_region(instance_t* t,
                                                    pestle_op_t op) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s, s, s}, 4);
  pestle_value_t *a = body_arg(&body, 0), *b = body_arg(&body, 1);
  pestle_value_t* second =
      scalar_op(&body.b, op, body_arg(&body, 2), body_arg(&body, 3));
  pestle_value_t* equal = scalar_op(&body.b, PESTLE_OP_EQ, a, b);
  second = scalar_op(&body.b, PESTLE_OP_AND, equal, second);
  pestle_value_t* y =
      scalar_op(&body.b, PESTLE_OP_OR, scalar_op(&body.b, op, a, b), second);
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

// max(a, 0) < max(b, 0), with the positions beside: many are equal, so that
// their order tells a stable sort.
static inline pestle_region_t* coarse_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL),
                i = type_of(PESTLE_I32, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s, i, i}, 4);
  pestle_value_t* zero = splat(&body.b, &s, 0);
  pestle_value_t* y = scalar_op(
      &body.b, PESTLE_OP_LT,
      scalar_op(&body.b, PESTLE_OP_MAXIMUM, body_arg(&body, 0), zero),
      scalar_op(&body.b, PESTLE_OP_MAXIMUM, body_arg(&body, 1), zero));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

static inline pestle_region_t* compare_region(instance_t* t, pestle_op_t op) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t* y =
      scalar_op(&body.b, op, body_arg(&body, 0), body_arg(&body, 1));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

static inline bool build_sort(instance_t* t) {
  static const char* const names[] = {"last axis", "first axis, positions",
                                      "middle axis, two keys", "one twice"};
  int32_t rank = t->shape->rank;
  if (!rank) return false;
  t->what = names[t->variant];
  t->check = CHECK_VALUES;
  t->fill[0] = t->fill[1] = t->variant == 2 ? FILL_SPREAD : FILL_VALUES;
  pestle_type_t types[] = {shaped(t), shaped(t)};
  begin(t, types, t->variant == 2 ? 2 : 1);
  int64_t axes[] = {-1, 0, rank / 2, rank - 1};
  pestle_sort_attrs_t attrs = {.struct_size = sizeof(attrs),
                               .dimension = axes[t->variant]};
  pestle_value_t *x = arg(t, 0), *y[2];
  if (t->variant == 0) {
    assert_ok(pestle_op_sort(&t->b, &x, 1, &attrs,
                             compare_region(t, PESTLE_OP_GT), y, 1));
    finish(t, y, 1);
  } else if (t->variant == 1) {
    pestle_type_t at = type_of(PESTLE_I32, rank, t->shape->dims);
    pestle_value_t* both[] = {x, NULL};
    assert_ok(pestle_op_iota(&t->b, &(pestle_iota_attrs_t){sizeof(attrs), 0},
                             at, &both[1]));
    assert_ok(pestle_op_sort(&t->b, both, 2, &attrs, coarse_region(t), y, 2));
    finish(t, y, 2);
  } else {
    pestle_value_t* both[] = {x, t->variant == 2 ? arg(t, 1) : x};
    assert_ok(pestle_op_sort(&t->b, both, 2, &attrs,
                             lexicographic_region(t, PESTLE_OP_LT), y, 2));
    finish(t, y, 2);
  }
  return true;
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_DIRECT_H_
