// SPDX-License-Identifier: Apache-2.0
// Shardy's dialect on one device: a tensor that is sharded in whatever way is
// whole, so its ops give what they take, and a computation that is written for
// each device apart is written for this one.
#include "base/mem.h"
#include "frontend/stablehlo/build.h"
#include "ir/collective.h"
#include "ir/sharding.h"

typedef struct row_t {
  const char* op;
  pestle_bytecode_role_t role;
  pestle_op_t row;
} row_t;

static const row_t rows[] = {
    {"mesh", PESTLE_BYTECODE_NOTHING, PESTLE_OP_COUNT},
    {"sharding_constraint", PESTLE_BYTECODE_WISH, PESTLE_OP_COUNT},
    {"reshard", PESTLE_BYTECODE_WISH, PESTLE_OP_COUNT},
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

// --- A program of several devices, which each runs on parts of its own ---

// False: of one device.
static pestle_status_t read_shardings(pestle_bytecode_builder_t* b,
                                      const pestle_bytecode_op_t* op,
                                      pestle_shardings_t* out,
                                      bool* out_spread) {
  pestle_generic_value_t dict;
  const pestle_bytecode_form_t* form = b->names[op->name].form;
  *out_spread = form && pestle_module_world(b->module).partitions > 1;
  out->in = out->out = out->axes = pestle_str_make("", 0);
  if (!*out_spread) return NULL;
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->kept, form, op->properties, op->attributes, &dict));
  // Of manual_computation alone.
  *out_spread = pestle_generic_find(&dict, "in_shardings") != NULL;
  *out = pestle_shardings_read(&dict);
  return NULL;
}

// Argument |index| of the region, which takes as many tensors as |slot| has.
static pestle_status_t enter_part(pestle_bytecode_builder_t* b,
                                  pestle_bytecode_place_t* place,
                                  const pestle_shardings_t* s, uint32_t index,
                                  const pestle_bytecode_type_t* type,
                                  pestle_bytecode_slot_t* slot) {
  pestle_value_t** part = PESTLE_ARENA_NEW(&b->kept, pestle_value_t*);
  if (!part) return PESTLE_OOM();
  if (type->leaves != 1) return NULL;
  PESTLE_TRY(pestle_mark_local(&place->builder, slot->leaves[0],
                               pestle_sharding_of_list(s->in, index), s->axes,
                               &type->type, part));
  slot->leaves = part;
  return NULL;
}

static pestle_status_t leave_parts(pestle_bytecode_builder_t* b,
                                   const pestle_bytecode_op_t* op,
                                   pestle_bytecode_place_t* place,
                                   const pestle_shardings_t* s,
                                   pestle_bytecode_returned_t* returned) {
  pestle_type_t* types;
  size_t count;
  PESTLE_TRY(pestle_bytecode_result_types(b, op, &types, &count));
  if (count != returned->count) return NULL;  // binding the results will say so
  // A token has an entry in the list, and is no value.
  for (uint32_t r = 0, i = 0; r < op->result_count; ++r) {
    const pestle_bytecode_type_t* type;
    PESTLE_TRY(pestle_bytecode_type(&b->decoder, op->result_types[r], &type));
    if (type->leaves == 1) {
      PESTLE_TRY(pestle_mark_global(&place->builder, returned->values[i],
                                    pestle_sharding_of_list(s->out, r), s->axes,
                                    &types[i], &returned->values[i]));
    }
    i += type->leaves;
  }
  return NULL;
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
  pestle_shardings_t parts;
  bool spread;
  PESTLE_TRY(read_shardings(b, of, &parts, &spread));
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
    if (spread) PESTLE_TRY(enter_part(b, place, &parts, i, type, &slots[i]));
    PESTLE_TRY(pestle_bytecode_bind(b, region->first_argument + i, type,
                                    slots[i].leaves));
  }
  pestle_bytecode_place_t inside = *place;
  inside.value_end = region->value_end;
  inside.function = NULL;
  PESTLE_TRY(pestle_bytecode_build_ops(b, region, &inside, &returned));
  pestle_bytecode_scope_end(b, &scope);
  if (spread) PESTLE_TRY(leave_parts(b, op, place, &parts, &returned));
  return pestle_bytecode_bind_results(b, op, returned.values, returned.count);
}

// In a program of several devices a value that is to lie as the op says.
pestle_status_t pestle_bytecode_build_wish(pestle_bytecode_builder_t* b,
                                           const pestle_bytecode_op_t* op,
                                           pestle_bytecode_place_t* place) {
  pestle_generic_value_t dict;
  const pestle_bytecode_form_t* form = b->names[op->name].form;
  bool alone = pestle_module_world(b->module).partitions == 1;
  if (alone || op->operand_count != 1)
    return pestle_bytecode_build_tuple(b, op);
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->kept, form, op->properties, op->attributes, &dict));
  const pestle_generic_value_t* at = pestle_generic_find(&dict, "sharding");
  const pestle_bytecode_slot_t* slot;
  PESTLE_TRY(pestle_bytecode_operand(b, op, 0, &slot));
  if (!at || slot->type->leaves != 1) return pestle_bytecode_build_tuple(b, op);
  pestle_value_t* value;
  PESTLE_TRY(
      pestle_mark_wish(&place->builder, slot->leaves[0], at->whole, &value));
  return pestle_bytecode_bind_results(b, op, &value, 1);
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
