// SPDX-License-Identifier: Apache-2.0
// transform.def as tables.
#include "transform/transform.h"

static const pestle_transform_row_t rows[PESTLE_OP_COUNT] = {
#define PESTLE_TRANSFORM(NAME, op, DERIVATIVE, TRANSPOSE, VMAP) \
  [PESTLE_OP_##NAME] = {PESTLE_DERIVATIVE_##DERIVATIVE,         \
                        PESTLE_TRANSPOSE_##TRANSPOSE, PESTLE_VMAP_##VMAP},
#include "transform/transform.def"
};

pestle_transform_row_t pestle_transform_row(pestle_op_t op) {
  return rows[op];
}

#define CASE_ZERO(NAME, call)
#define CASE_PARTIAL(NAME, call)
#define CASE_LINEAR(NAME, call)
#define CASE_BILINEAR(NAME, call)
#define CASE_DECOMPOSE(NAME, call)
#define CASE_REFUSED(NAME, call)
#define CASE_NONE(NAME, call)
#define CASE_ELEMENTWISE(NAME, call)
#define CASE_SHIFT(NAME, call)
#define CASE_RULE(NAME, call) \
  case PESTLE_OP_##NAME:      \
    return call;

pestle_jvp_fn_t pestle_jvp_rule(pestle_op_t op) {
  switch ((int)op) {
#define PESTLE_TRANSFORM(NAME, op, DERIVATIVE, TRANSPOSE, VMAP) \
  CASE_##DERIVATIVE(NAME, pestle_jvp_##op)
#include "transform/transform.def"
  }
  return NULL;
}

pestle_transpose_fn_t pestle_transpose_rule(pestle_op_t op) {
  switch ((int)op) {
#define PESTLE_TRANSFORM(NAME, op, DERIVATIVE, TRANSPOSE, VMAP) \
  CASE_##TRANSPOSE(NAME, pestle_transpose_##op)
#include "transform/transform.def"
  }
  return NULL;
}

pestle_vmap_fn_t pestle_vmap_rule(pestle_op_t op) {
  switch ((int)op) {
#define PESTLE_TRANSFORM(NAME, op, DERIVATIVE, TRANSPOSE, VMAP) \
  CASE_##VMAP(NAME, pestle_vmap_##op)
#include "transform/transform.def"
  }
  return NULL;
}
