// SPDX-License-Identifier: Apache-2.0
// Ops of a block to nodes: operands are found, properties become a dictionary,
// regions are built inside out, and ir/generic.h makes the node.
#include "frontend/stablehlo/build.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/infer.h"

// --- Messages ---

pestle_status_t pestle_bytecode_place_error(pestle_bytecode_builder_t* b,
                                            const pestle_bytecode_op_t* op,
                                            pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  if (!status || code == PESTLE_STATUS_OUT_OF_MEMORY || b->placed) {
    return status;
  }
  b->placed = true;
  if (code == PESTLE_STATUS_INVALID_ARGUMENT) code = PESTLE_STATUS_MALFORMED;
  const pestle_bytecode_op_name_t* name = &b->file.ops[op->name];
  pestle_loc_t loc;
  char where[320] = "";
  pestle_status_t found =
      pestle_bytecode_location(&b->decoder, op->location, &loc);
  if (!found && loc.file) {
    snprintf(where, sizeof(where), " (%.200s:%u:%u)", loc.file, loc.line,
             loc.column);
  } else if (!found && loc.name) {
    snprintf(where, sizeof(where), " (%.200s)", loc.name);
  }
  pestle_status_release(found);
  pestle_status_t placed = pestle_status_make(
      code, __FILE__, __LINE__, "%s: '%.*s.%.*s'%s: %s", b->name,
      PESTLE_STR_ARG(b->file.dialects[name->dialect].name),
      PESTLE_STR_ARG(pestle_str_slice(name->name, 0, 100)), where,
      pestle_status_message(status));
  pestle_status_release(status);
  return placed;
}

// --- Values ---

pestle_status_t pestle_bytecode_operand(pestle_bytecode_builder_t* b,
                                        const pestle_bytecode_op_t* op,
                                        size_t index,
                                        const pestle_bytecode_slot_t** out) {
  *out = &b->values.data[b->scope + op->operands[index]];
  if ((*out)->type) return NULL;
  return PESTLE_ERROR(MALFORMED, "operand %zu is used before it is made",
                      index);
}

pestle_status_t pestle_bytecode_operands(pestle_bytecode_builder_t* b,
                                         const pestle_bytecode_op_t* op,
                                         pestle_value_t*** out_values,
                                         size_t* out_count) {
  size_t count = 0;
  const pestle_bytecode_slot_t* slot;
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    PESTLE_TRY(pestle_bytecode_operand(b, op, i, &slot));
    count += slot->type->leaves;
  }
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(&b->scratch, pestle_value_t*, count + 1);
  if (!values) return PESTLE_OOM();
  *out_values = values;
  *out_count = count;
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    PESTLE_TRY(pestle_bytecode_operand(b, op, i, &slot));
    for (uint32_t k = 0; k < slot->type->leaves; ++k)
      *values++ = slot->leaves[k];
  }
  return NULL;
}

// Checks that |leaves| are what |type| says and moves behind them.
static pestle_status_t check_leaves(const pestle_bytecode_type_t* type,
                                    pestle_value_t* const** leaves) {
  if (type->kind == PESTLE_BYTECODE_TENSOR) {
    const pestle_type_t* actual = (*(*leaves)++)->type;
    if (pestle_types_agree(&type->type, actual)) return NULL;
    return PESTLE_ERROR(MALFORMED, "a result is written as %s and is %s",
                        pestle_type_text(&type->type).text,
                        pestle_type_text(actual).text);
  }
  for (uint32_t i = 0; i < type->part_count; ++i) {
    PESTLE_TRY(check_leaves(type->parts[i], leaves));
  }
  return NULL;
}

pestle_status_t pestle_bytecode_bind(pestle_bytecode_builder_t* b,
                                     uint32_t number,
                                     const pestle_bytecode_type_t* type,
                                     pestle_value_t* const* leaves) {
  pestle_value_t* const* at = leaves;
  PESTLE_TRY(pestle_bytecode_check_value_type(type));
  PESTLE_TRY(pestle_bytecode_use_type(&b->decoder, type));
  PESTLE_TRY(check_leaves(type, &at));
  pestle_bytecode_slot_t* slot = &b->values.data[b->scope + number];
  slot->leaves = NULL;
  if (type->leaves) {
    slot->leaves =
        pestle_arena_copy(&b->kept, leaves, type->leaves * sizeof(*leaves),
                          _Alignof(pestle_value_t*));
    if (!slot->leaves) return PESTLE_OOM();
  }
  slot->type = type;
  return NULL;
}

pestle_status_t pestle_bytecode_bind_results(pestle_bytecode_builder_t* b,
                                             const pestle_bytecode_op_t* op,
                                             pestle_value_t* const* leaves,
                                             size_t count) {
  size_t next = 0;
  for (uint32_t i = 0; i < op->result_count; ++i) {
    const pestle_bytecode_type_t* type;
    PESTLE_TRY(pestle_bytecode_type(&b->decoder, op->result_types[i], &type));
    if (type->leaves > count - next) break;
    PESTLE_TRY(
        pestle_bytecode_bind(b, op->first_result + i, type, leaves + next));
    next += type->leaves;
    if (i + 1 == op->result_count && next == count) return NULL;
  }
  if (!op->result_count && !count) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "it has %zu results and not the types of as many", count);
}

// --- Regions ---

pestle_status_t pestle_bytecode_scope_begin(
    pestle_bytecode_builder_t* b, const pestle_bytecode_op_t* op,
    const pestle_bytecode_region_t* region, uint32_t value_end,
    pestle_bytecode_scope_t* out_scope) {
  *out_scope = (pestle_bytecode_scope_t){b->scope, b->values.size};
  if (op->isolated) b->scope = b->values.size;
  size_t end = b->scope + region->value_end;
  size_t begin = op->isolated ? b->scope : b->scope + value_end;
  if (end > b->values.size && !pestle_vec_resize(&b->values, end)) {
    return PESTLE_OOM();
  }
  for (size_t i = begin; i < end; ++i)
    b->values.data[i] = (pestle_bytecode_slot_t){.type = NULL};
  return NULL;
}

void pestle_bytecode_scope_end(pestle_bytecode_builder_t* b,
                               const pestle_bytecode_scope_t* scope) {
  b->scope = scope->scope;
  b->values.size = scope->size;
}

pestle_status_t pestle_bytecode_argument_types(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    pestle_type_t** out_types, size_t* out_count) {
  const pestle_bytecode_type_t* type;
  size_t count = 0;
  for (uint32_t i = 0; i < region->argument_count; ++i) {
    PESTLE_TRY(
        pestle_bytecode_type(&b->decoder, region->argument_types[i], &type));
    PESTLE_TRY(pestle_bytecode_check_value_type(type));
    PESTLE_TRY(pestle_bytecode_use_type(&b->decoder, type));
    count += type->leaves;
  }
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&b->scratch, pestle_type_t, count + 1);
  if (!types) return PESTLE_OOM();
  *out_types = types;
  *out_count = count;
  for (uint32_t i = 0; i < region->argument_count; ++i) {
    PESTLE_TRY(
        pestle_bytecode_type(&b->decoder, region->argument_types[i], &type));
    pestle_bytecode_type_leaves(type, &types);
  }
  return NULL;
}

pestle_status_t pestle_bytecode_bind_arguments(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    const pestle_block_t* block) {
  size_t next = 0;
  for (uint32_t i = 0; i < region->argument_count; ++i) {
    const pestle_bytecode_type_t* type;
    PESTLE_TRY(
        pestle_bytecode_type(&b->decoder, region->argument_types[i], &type));
    if (type->leaves > block->argument_count - next) {
      return PESTLE_ERROR(MALFORMED,
                          "its region has other arguments than its "
                          "type says");
    }
    PESTLE_TRY(pestle_bytecode_bind(b, region->first_argument + i, type,
                                    block->arguments + next));
    next += type->leaves;
  }
  if (next == block->argument_count) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "its region has other arguments than its type says");
}

// Arguments of a loop have the extents of its operands, when those are known.
static pestle_status_t take_operand_types(pestle_bytecode_builder_t* b,
                                          const pestle_bytecode_op_t* op,
                                          pestle_type_t* types, size_t count) {
  pestle_value_t** operands;
  size_t operand_count;
  PESTLE_TRY(pestle_bytecode_operands(b, op, &operands, &operand_count));
  for (size_t i = 0; operand_count == count && i < count; ++i)
    types[i] = *operands[i]->type;
  return NULL;
}

static pestle_status_t build_region(pestle_bytecode_builder_t* b,
                                    const pestle_bytecode_op_t* op,
                                    const pestle_bytecode_region_t* from,
                                    uint32_t value_end, pestle_region_t** out) {
  pestle_type_t* types;
  size_t count;
  pestle_bytecode_place_t place = {.builder.module = b->module,
                                   .value_end = from->value_end};
  if (from->is_empty) return PESTLE_ERROR(MALFORMED, "its region is empty");
  PESTLE_TRY(pestle_bytecode_argument_types(b, from, &types, &count));
  if (b->again && b->names[op->name].op == PESTLE_OP_WHILE) {
    PESTLE_TRY(take_operand_types(b, op, types, count));
  }
  PESTLE_TRY(
      pestle_region_create(b->module, types, count, out, &place.builder.block));
  pestle_bytecode_scope_t scope;
  PESTLE_TRY(pestle_bytecode_scope_begin(b, op, from, value_end, &scope));
  PESTLE_TRY(pestle_bytecode_bind_arguments(b, from, place.builder.block));
  PESTLE_TRY(pestle_bytecode_build_ops(b, from, &place, NULL));
  pestle_bytecode_scope_end(b, &scope);
  return NULL;
}

static pestle_status_t build_regions(pestle_bytecode_builder_t* b,
                                     const pestle_bytecode_op_t* op,
                                     uint32_t value_end,
                                     pestle_region_t*** out) {
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&b->scratch, pestle_region_t*, op->region_count + 1u);
  if (!regions) return PESTLE_OOM();
  *out = regions;
  for (const pestle_bytecode_region_t* r = op->regions; r; r = r->next) {
    PESTLE_TRY(build_region(b, op, r, value_end, regions++));
  }
  return NULL;
}

// --- Ops ---

pestle_status_t pestle_bytecode_result_types(pestle_bytecode_builder_t* b,
                                             const pestle_bytecode_op_t* op,
                                             pestle_type_t** out_types,
                                             size_t* out_count) {
  const pestle_bytecode_region_t results = {.argument_count = op->result_count,
                                            .argument_types = op->result_types};
  return pestle_bytecode_argument_types(b, &results, out_types, out_count);
}

static pestle_status_t note_composite(pestle_bytecode_builder_t* b,
                                      const pestle_bytecode_op_t* op,
                                      const pestle_generic_t* g,
                                      pestle_node_t* node) {
  if (g->by_name) return NULL;
  pestle_generic_composite_t composite = {
      .node = node,
      .decomposition = pestle_arena_strdup(&b->kept, g->decomposition)};
  if (!composite.decomposition) return PESTLE_OOM();
  if (!pestle_vec_push(&b->composites, composite)) return PESTLE_OOM();
  return pestle_vec_push(&b->composite_ops, op) ? NULL : PESTLE_OOM();
}

static pestle_status_t set_location(pestle_bytecode_builder_t* b,
                                    const pestle_bytecode_op_t* op,
                                    pestle_node_t* node) {
  pestle_loc_t loc;
  PESTLE_TRY(pestle_bytecode_location(&b->decoder, op->location, &loc));
  node->loc = (pestle_loc_t){.line = loc.line, .column = loc.column};
  if (loc.name) {
    node->loc.name = pestle_module_intern_string(b->module, loc.name);
    if (!node->loc.name) return PESTLE_OOM();
  }
  const char* file = loc.file || loc.name ? loc.file : b->name;
  if (!file) return NULL;
  node->loc.file = pestle_module_intern_string(b->module, file);
  return node->loc.file ? NULL : PESTLE_OOM();
}

static pestle_status_t check_return(pestle_bytecode_builder_t* b,
                                    const pestle_function_t* function,
                                    pestle_value_t* const* values,
                                    size_t count) {
  size_t results;
  if (!pestle_function_result_count(function, &results)) return NULL;
  if (results != count) {
    return PESTLE_ERROR(MALFORMED,
                        "returns %zu values from a function of %zu results",
                        count, results);
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* want = pestle_function_result_type(function, i);
    if (pestle_type_equal(want, values[i]->type)) continue;
    // Another reading knows all extents; types are what follows from them then.
    if (pestle_types_agree(want, values[i]->type)) {
      b->shapes.wanted = values[i];
      if (b->again) continue;
    }
    return PESTLE_ERROR(
        MALFORMED, "operand %zu is %s where the function returns %s", i,
        pestle_type_text(values[i]->type).text, pestle_type_text(want).text);
  }
  return NULL;
}

static pestle_status_t read_attributes(pestle_bytecode_builder_t* b,
                                       const pestle_bytecode_op_t* op,
                                       pestle_generic_t* g) {
  pestle_generic_value_t dict;
  const pestle_bytecode_form_t* form = b->names[op->name].form;
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->scratch, form, op->properties, op->attributes, &dict));
  if (form) {
    PESTLE_TRY(pestle_bytecode_upgrade(&b->decoder, &b->scratch, form, &dict));
  }
  return pestle_generic_apply(g, &dict);
}

// What an op is made from.
typedef struct parts_t {
  pestle_generic_t g;
  pestle_value_t** operands;
  pestle_region_t** regions;
  pestle_type_t* types;
  size_t operand_count, type_count;
} parts_t;

static pestle_status_t read_parts(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_op_t* op,
                                  const pestle_bytecode_place_t* place,
                                  parts_t* p) {
  const pestle_bytecode_name_t* name = &b->names[op->name];
  pestle_generic_begin(&b->scratch, name->op, &p->g);
  p->g.built = name->built;
  p->g.shapes = &b->shapes;
  PESTLE_TRY(pestle_bytecode_operands(b, op, &p->operands, &p->operand_count));
  PESTLE_TRY(read_attributes(b, op, &p->g));
  PESTLE_TRY(build_regions(b, op, place->value_end, &p->regions));
  return pestle_bytecode_result_types(b, op, &p->types, &p->type_count);
}

// What a few other ops stand for, or an op on quantised values. |*out_values| are
// its results, or NULL when the op is neither.
static pestle_status_t make_built(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_op_t* op,
                                  pestle_bytecode_place_t* place, parts_t* p,
                                  pestle_value_t*** out_values) {
  const pestle_quant_t **from = NULL, **to = NULL;
  *out_values = NULL;
  bool quantised = b->decoder.quantised;
  if (quantised) {
    PESTLE_TRY(pestle_bytecode_quants(b, op, p->operand_count, p->type_count,
                                      &from, &to));
    quantised =
        pestle_quant_needs(&p->g, from, p->operand_count, to, p->type_count);
  }
  if (!quantised && !pestle_generic_is_built(&p->g)) return NULL;
  pestle_node_t* last = place->builder.block->last;
  PESTLE_TRY(
      quantised
          ? pestle_quant_build(&p->g, &place->builder, p->operands, from,
                               p->operand_count, p->regions, op->region_count,
                               p->types, to, p->type_count, out_values)
          : pestle_generic_build(&p->g, &place->builder, p->operands,
                                 p->operand_count, p->regions, op->region_count,
                                 p->types, p->type_count, out_values));
  pestle_node_t* made = last ? last->next : place->builder.block->first;
  for (; made; made = made->next)
    PESTLE_TRY(set_location(b, op, made));
  return b->again ? pestle_bytecode_settle(place, *out_values, p->type_count)
                  : NULL;
}

static pestle_status_t make_node(pestle_bytecode_builder_t* b,
                                 const pestle_bytecode_op_t* op,
                                 pestle_bytecode_place_t* place, parts_t* p,
                                 pestle_node_t** node) {
  if (p->g.op == PESTLE_OP_RETURN && place->function) {
    PESTLE_TRY(check_return(b, place->function, p->operands, p->operand_count));
  }
  PESTLE_TRY(pestle_generic_create(
      &p->g, &place->builder, p->operands, p->operand_count, p->regions,
      op->region_count, p->types, p->type_count, node));
  PESTLE_TRY(set_location(b, op, *node));
  if (p->g.op == PESTLE_OP_CUSTOM) {
    PESTLE_TRY(note_composite(b, op, &p->g, *node));
  }
  if (b->names[op->name].chlo) {
    pestle_generic_site_t site = {.arena = &b->scratch,
                                  .name = pestle_str(b->names[op->name].chlo),
                                  .operands = p->operands,
                                  .operand_count = p->operand_count};
    PESTLE_TRY(pestle_generic_chlo(&site, node));
  }
  return pestle_generic_layouts(&p->g, node);
}

static pestle_status_t bind_node(pestle_bytecode_builder_t* b,
                                 const pestle_bytecode_op_t* op,
                                 pestle_bytecode_place_t* place,
                                 pestle_node_t* node) {
  size_t count = node->result_count;
  pestle_value_t** results =
      PESTLE_ARENA_ARRAY(&b->scratch, pestle_value_t*, count + 1);
  if (!results) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    results[i] = &node->results[i];
  if (b->again) PESTLE_TRY(pestle_bytecode_settle(place, results, count));
  return pestle_bytecode_bind_results(b, op, results, count);
}

static pestle_status_t build_row(pestle_bytecode_builder_t* b,
                                 const pestle_bytecode_op_t* op,
                                 pestle_bytecode_place_t* place) {
  parts_t p;
  pestle_value_t** values;
  pestle_node_t* node;
  PESTLE_TRY(read_parts(b, op, place, &p));
  const char* callee = pestle_bytecode_callee(b, &p.g);
  if (callee) return pestle_bytecode_inline_call(b, op, callee, place);
  PESTLE_TRY(make_built(b, op, place, &p, &values));
  if (values) return pestle_bytecode_bind_results(b, op, values, p.type_count);
  PESTLE_TRY(make_node(b, op, place, &p, &node));
  return bind_node(b, op, place, node);
}

static pestle_status_t build_chlo(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_op_t* op,
                                  pestle_bytecode_place_t* place) {
  pestle_node_t* node;
  PESTLE_TRY(pestle_bytecode_build_chlo(b, op, place, &node));
  return bind_node(b, op, place, node);
}

static pestle_status_t build_op(pestle_bytecode_builder_t* b,
                                const pestle_bytecode_op_t* op,
                                pestle_bytecode_place_t* place) {
  switch (b->names[op->name].role) {
    case PESTLE_BYTECODE_NOTHING:
      return NULL;
    case PESTLE_BYTECODE_ROW:
      return build_row(b, op, place);
    case PESTLE_BYTECODE_CHLO:
      return build_chlo(b, op, place);
    case PESTLE_BYTECODE_INLINE:
      return pestle_bytecode_build_inline(b, op, place);
    case PESTLE_BYTECODE_WISH:
      return pestle_bytecode_build_wish(b, op, place);
    case PESTLE_BYTECODE_FORWARD:
    case PESTLE_BYTECODE_JOIN:
    case PESTLE_BYTECODE_ELEMENT_OF:
    case PESTLE_BYTECODE_TOKENS:
      return pestle_bytecode_build_tuple(b, op);
    case PESTLE_BYTECODE_UNKNOWN:
    case PESTLE_BYTECODE_MODULE:
    case PESTLE_BYTECODE_FUNC:
      break;
  }
  return PESTLE_ERROR(UNSUPPORTED, "it stands inside of a function");
}

static pestle_status_t give_returned(pestle_bytecode_builder_t* b,
                                     const pestle_bytecode_op_t* op,
                                     pestle_bytecode_returned_t* out) {
  PESTLE_TRY(pestle_bytecode_operands(b, op, &out->values, &out->count));
  out->values = pestle_arena_copy(&b->kept, out->values,
                                  (out->count + 1) * sizeof(*out->values),
                                  _Alignof(pestle_value_t*));
  return out->values ? NULL : PESTLE_OOM();
}

static bool is_return(const pestle_bytecode_builder_t* b,
                      const pestle_bytecode_op_t* op) {
  return b->names[op->name].role == PESTLE_BYTECODE_ROW &&
         b->names[op->name].op == PESTLE_OP_RETURN;
}

static pestle_status_t build_next(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_op_t* op,
                                  pestle_bytecode_place_t* place,
                                  pestle_bytecode_returned_t* out_returned) {
  PESTLE_TRY(pestle_bytecode_count_op(b));
  if (is_return(b, op) != !op->next) {
    return PESTLE_ERROR(MALFORMED,
                        op->next ? "it returns before the end of its block"
                                 : "a block ends without a return");
  }
  return !op->next && out_returned ? give_returned(b, op, out_returned)
                                   : build_op(b, op, place);
}

pestle_status_t pestle_bytecode_build_ops(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* region,
    pestle_bytecode_place_t* place, pestle_bytecode_returned_t* out_returned) {
  for (const pestle_bytecode_op_t* op = region->ops; op; op = op->next) {
    // What an op's regions need is not needed behind it.
    pestle_arena_mark_t mark = pestle_arena_mark(&b->scratch);
    PESTLE_TRY(pestle_bytecode_place_error(
        b, op, build_next(b, op, place, out_returned)));
    pestle_arena_rewind(&b->scratch, mark);
  }
  return region->ops ? NULL
                     : PESTLE_ERROR(MALFORMED, "a block ends without a return");
}

pestle_status_t pestle_bytecode_build_body(pestle_bytecode_builder_t* b,
                                           const pestle_bytecode_body_t* body,
                                           pestle_bytecode_bind_t bind) {
  const pestle_bytecode_region_t* region = body->op->regions;
  pestle_bytecode_place_t place = {
      .builder = {.module = b->module, .block = body->function->body->block},
      .value_end = region->value_end,
      .function = body->function};
  pestle_bytecode_scope_t scope;
  PESTLE_TRY(pestle_bytecode_scope_begin(b, body->op, region, 0, &scope));
  PESTLE_TRY(pestle_bytecode_place_error(b, body->op, bind(b, region, &place)));
  PESTLE_TRY(pestle_bytecode_build_ops(b, region, &place, NULL));
  pestle_bytecode_scope_end(b, &scope);
  return NULL;
}
