// SPDX-License-Identifier: Apache-2.0
// Ops that leave no node behind: tuples are taken apart, a token is a tuple of
// nothing.
#include "base/mem.h"
#include "frontend/stablehlo/build.h"

static pestle_status_t bad(void) {
  return PESTLE_ERROR(MALFORMED,
                      "it has other operands or another result than its types "
                      "say");
}

// The integer attribute |key| of |op|.
static pestle_status_t read_number(pestle_bytecode_builder_t* b,
                                   const pestle_bytecode_op_t* op,
                                   const char* key, int64_t* out) {
  pestle_generic_value_t dict;
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->scratch, b->names[op->name].form, op->properties,
      op->attributes, &dict));
  const pestle_generic_value_t* value = pestle_generic_find(&dict, key);
  if (!value || value->kind != PESTLE_GENERIC_INT) {
    return PESTLE_ERROR(MALFORMED, "expected attribute '%s', an integer", key);
  }
  *out = value->i64;
  return NULL;
}

static pestle_status_t take_element(pestle_bytecode_builder_t* b,
                                    const pestle_bytecode_op_t* op) {
  const pestle_bytecode_slot_t* tuple;
  const pestle_bytecode_type_t* want;
  int64_t index;
  size_t before = 0;
  if (op->operand_count != 1 || op->result_count != 1) return bad();
  PESTLE_TRY(read_number(b, op, "index", &index));
  PESTLE_TRY(pestle_bytecode_operand(b, op, 0, &tuple));
  PESTLE_TRY(pestle_bytecode_type(&b->decoder, op->result_types[0], &want));
  if (tuple->type->kind != PESTLE_BYTECODE_TUPLE) return bad();
  if (index < 0 || index >= tuple->type->part_count) {
    return PESTLE_ERROR(MALFORMED, "the tuple has no element %lld",
                        (long long)index);
  }
  for (int64_t i = 0; i < index; ++i)
    before += tuple->type->parts[i]->leaves;
  if (want->leaves != tuple->type->parts[index]->leaves) return bad();
  return pestle_bytecode_bind(b, op->first_result, want,
                              tuple->leaves + before);
}

pestle_status_t pestle_bytecode_build_tuple(pestle_bytecode_builder_t* b,
                                            const pestle_bytecode_op_t* op) {
  pestle_value_t** values;
  size_t count;
  pestle_bytecode_role_t role = b->names[op->name].role;
  if (role == PESTLE_BYTECODE_ELEMENT_OF) return take_element(b, op);
  PESTLE_TRY(pestle_bytecode_operands(b, op, &values, &count));
  if (role != PESTLE_BYTECODE_FORWARD && op->result_count != 1) return bad();
  return pestle_bytecode_bind_results(b, op, values, count);
}
