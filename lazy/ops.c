// SPDX-License-Identifier: Apache-2.0
// pestle_array_<op>() for every row of scalar.def and ops.def, and folds.
#include "base/half.h"
#include "base/require.h"
#include "ir/identity.h"
#include "lazy/lazy.h"

// Each column of a row becomes fields of the op.
#define GIVE_0 call.device = device;
#define GIVE_1                            \
  call.operands = (pestle_array_t*[]){a}; \
  call.operand_count = 1;
#define GIVE_2                               \
  call.operands = (pestle_array_t*[]){a, b}; \
  call.operand_count = 2;
#define GIVE_3                                  \
  call.operands = (pestle_array_t*[]){a, b, c}; \
  call.operand_count = 3;
#define GIVE_V              \
  call.operands = operands; \
  call.operand_count = operand_count;
#define BODY_0
#define BODY_1                              \
  call.bodies = (pestle_module_t*[]){body}; \
  call.body_count = 1;
#define BODY_2                                     \
  call.bodies = (pestle_module_t*[]){body, other}; \
  call.body_count = 2;
#define BODY_V          \
  call.bodies = bodies; \
  call.body_count = body_count;
#define STATE_INFER
#define STATE_TYPED call.type = &type;
#define STATE_TYPES \
  (void)types;      \
  (void)type_count;
#define APPLY_0 pestle_array_apply(&call, NULL, 0)
#define APPLY_1 pestle_array_apply(&call, out, out ? 1 : 0)
#define APPLY_V pestle_array_apply(&call, out, out ? out_capacity : 0)

static pestle_status_t record_scalar(pestle_op_t op,
                                     pestle_array_t* const* operands,
                                     pestle_array_t** out) {
  const pestle_op_info_t* info = pestle_op_info(op);
  if (!out) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_array_%s needs a place for the array",
                        info->name);
  }
  pestle_record_t r = {
      .op = op, .operands = operands, .operand_count = info->operands};
  return pestle_array_record(&r, out, 1);
}

#define PESTLE_SCALAR(NAME, fn, mlir, n, ...)                                  \
  pestle_status_t pestle_array_##fn(PESTLE_ARRAYS_##n, pestle_array_t** out) { \
    return record_scalar(PESTLE_OP_##NAME, (pestle_array_t*[])LIST_##n, out);  \
  }
#define LIST_1 {a}
#define LIST_2 {a, b}
#define LIST_3 {a, b, c}

#include "pestle/scalar.def"

#define PESTLE_OP_BEGIN(NAME, fn, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  pestle_status_t pestle_array_##fn(                                           \
      PESTLE_ARRAYS_##OPERANDS,                                                \
      const pestle_##fn##_attrs_t* attrs PESTLE_BODIES_##REGIONS               \
          PESTLE_TYPE_##TYPE PESTLE_ARRAY_RESULTS_##RESULTS) {                 \
    pestle_array_op_t call = {                                                 \
        .struct_size = sizeof(call), .op = PESTLE_OP_##NAME, .attrs = attrs};  \
    GIVE_##OPERANDS BODY_##REGIONS STATE_##TYPE return APPLY_##RESULTS;        \
  }
#include "pestle/ops.def"

// --- Folds ---

static bool folds(pestle_op_t op) {
  return op == PESTLE_OP_ADD || op == PESTLE_OP_MULTIPLY ||
         op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM ||
         op == PESTLE_OP_AND || op == PESTLE_OP_OR || op == PESTLE_OP_XOR;
}

// The identity of |op| as bytes of an element of |dtype|.
static void write_identity(pestle_op_t op, pestle_dtype_t dtype,
                           unsigned char bytes[16]) {
  pestle_dtype_t part = pestle_dtype_part(dtype);
  double number = 0;
  int64_t integer = 0;
  pestle_reduce_identity(op, part, &number, &integer);
  uint64_t bits = pestle_dtype_is(part, PESTLE_KIND_FLOAT)
                      ? pestle_float_encode(part, number)
                      : (uint64_t)integer;
  memset(bytes, 0, 16);
  memcpy(bytes, &bits, 8);
}

static pestle_status_t fold_from(pestle_op_t op, pestle_array_t* a,
                                 pestle_i64s_t axes, pestle_array_t* from,
                                 pestle_array_t** out) {
  uint32_t body;
  PESTLE_TRY(pestle_body_of_fold(a->lazy, op, a->type.dtype, &body));
  pestle_array_t* operands[] = {a, from};
  pestle_attr_t attr = {
      PESTLE_ATTR_dimensions, PESTLE_ATTR_KIND_I64S, {.i64s = axes}};
  pestle_record_t r = {.op = PESTLE_OP_REDUCE,
                       .operands = operands,
                       .operand_count = 2,
                       .parts = {&attr, 1, NULL, &body, 1}};
  return pestle_array_record(&r, out, 1);
}

pestle_status_t pestle_array_fold(pestle_op_t op, pestle_array_t* a,
                                  pestle_i64s_t axes, pestle_array_t** out) {
  PESTLE_REQUIRE(a && out && (axes.data || !axes.count),
                 "an array, axes and a place for the array");
  *out = NULL;
  if (!folds(op)) {
    const pestle_op_info_t* info = pestle_op_info(op);
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' does not fold: add, multiply, maximum, minimum, "
                        "and, or, xor do",
                        info ? info->name : "op");
  }
  unsigned char bytes[16];
  pestle_type_t type = {.dtype = a->type.dtype};
  pestle_array_t* from;
  write_identity(op, type.dtype, bytes);
  PESTLE_TRY(pestle_array_full(a->device, &type, bytes, &from));
  pestle_status_t status = fold_from(op, a, axes, from, out);
  pestle_array_release(from);
  return status;
}
