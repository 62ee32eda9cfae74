// SPDX-License-Identifier: Apache-2.0
// Shardy's dialect on one device: a tensor that is sharded in whatever way is
// whole, so its ops give what they take, and a computation that is written for
// each device apart is written for this one.
#include "base/mem.h"
#include "frontend/stablehlo/build.h"

typedef struct row_t {
  const char* op;
  pestle_bytecode_role_t role;
  pestle_op_t row;
} row_t;

static const row_t rows[] = {
    {"mesh", PESTLE_BYTECODE_NOTHING, PESTLE_OP_COUNT},
    {"sharding_constraint", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"reshard", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"all_gather", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"all_slice", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"all_to_all", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"all_reduce", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"collective_permute", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"reduce_scatter", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"replicated_to_unreduced", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"sharded_to_unreduced", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"propagation_barrier", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"data_flow_edge", PESTLE_BYTECODE_FORWARD, PESTLE_OP_COUNT},
    {"sharding_group", PESTLE_BYTECODE_NOTHING, PESTLE_OP_COUNT},
    {"manual_computation", PESTLE_BYTECODE_INLINE, PESTLE_OP_COUNT},
    {"named_computation", PESTLE_BYTECODE_INLINE, PESTLE_OP_COUNT},
    {"return", PESTLE_BYTECODE_ROW, PESTLE_OP_RETURN},
    {"constant", PESTLE_BYTECODE_ROW, PESTLE_OP_CONSTANT},
};

void pestle_bytecode_sdy_name(pestle_str_t op, pestle_bytecode_name_t* name) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    if (!pestle_str_equal_c(op, rows[i].op)) continue;
    name->role = rows[i].role;
    name->op = rows[i].row;
  }
}

pestle_status_t pestle_bytecode_inline(pestle_bytecode_builder_t* b,
                                       const pestle_bytecode_op_t* op,
                                       const pestle_bytecode_op_t* of,
                                       const pestle_bytecode_region_t* region,
                                       pestle_bytecode_place_t* place) {
  pestle_bytecode_returned_t returned = {NULL, 0};
  if (region->argument_count != op->operand_count) {
    return PESTLE_ERROR(MALFORMED,
                        "its region does not take what the op takes");
  }
  pestle_bytecode_slot_t* slots =
      PESTLE_ARENA_ARRAY(&b->kept, pestle_bytecode_slot_t, op->operand_count);
  if (!slots) return PESTLE_OOM();
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    const pestle_bytecode_slot_t* slot;
    PESTLE_TRY(pestle_bytecode_operand(b, op, i, &slot));
    slots[i] = *slot;
  }
  pestle_bytecode_scope_t scope;
  PESTLE_TRY(
      pestle_bytecode_scope_begin(b, of, region, place->value_end, &scope));
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    const pestle_bytecode_type_t* type;
    PESTLE_TRY(
        pestle_bytecode_type(&b->decoder, region->argument_types[i], &type));
    if (type->leaves != slots[i].type->leaves) {
      return PESTLE_ERROR(MALFORMED,
                          "its region does not take what the op takes");
    }
    PESTLE_TRY(pestle_bytecode_bind(b, region->first_argument + i, type,
                                    slots[i].leaves));
  }
  pestle_bytecode_place_t inside = *place;
  inside.value_end = region->value_end;
  inside.function = NULL;
  PESTLE_TRY(pestle_bytecode_build_ops(b, region, &inside, &returned));
  pestle_bytecode_scope_end(b, &scope);
  return pestle_bytecode_bind_results(b, op, returned.values, returned.count);
}

// The region's arguments are the operands; what it returns are the results.
pestle_status_t pestle_bytecode_build_inline(pestle_bytecode_builder_t* b,
                                             const pestle_bytecode_op_t* op,
                                             pestle_bytecode_place_t* place) {
  if (op->region_count != 1) {
    return PESTLE_ERROR(MALFORMED,
                        "its region does not take what the op takes");
  }
  return pestle_bytecode_inline(b, op, op, op->regions, place);
}
