// SPDX-License-Identifier: Apache-2.0
// Bytecode that is read again with the extents of its arguments (ADR 023), as
// ir/parse_again.c does with text.
#include "base/map.h"
#include "base/mem.h"
#include "frontend/stablehlo/build.h"
#include "ir/fold.h"

// Calls inside each other.
enum { MAX_CALLS = 100 };

static const pestle_bytecode_body_t* find_body(
    const pestle_bytecode_builder_t* b, const pestle_function_t* f) {
  for (size_t i = 0; i < b->bodies.size; ++i) {
    if (b->bodies.data[i].function == f) return &b->bodies.data[i];
  }
  return NULL;
}

const char* pestle_bytecode_callee(const pestle_bytecode_builder_t* b,
                                   const pestle_generic_t* g) {
  if (!b->again) return NULL;
  if (g->op == PESTLE_OP_CUSTOM && !g->built) return g->decomposition;
  for (size_t i = 0; g->op == PESTLE_OP_CALL && i < g->attr_count; ++i) {
    if (g->attrs[i].name == PESTLE_ATTR_callee) return g->attrs[i].as.str;
  }
  return NULL;
}

pestle_status_t pestle_bytecode_count_op(pestle_bytecode_builder_t* b) {
  if (!b->depth || ++b->op_count <= PESTLE_MOST_COPIED_OPS) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "calls make more than %d ops of the file",
                      PESTLE_MOST_COPIED_OPS);
}

pestle_status_t pestle_bytecode_inline_call(pestle_bytecode_builder_t* b,
                                            const pestle_bytecode_op_t* op,
                                            const char* callee,
                                            pestle_bytecode_place_t* place) {
  const pestle_function_t* f = pestle_module_find_function(b->module, callee);
  const pestle_bytecode_body_t* body = f ? find_body(b, f) : NULL;
  if (!body) {
    return PESTLE_ERROR(MALFORMED, "there is no function '%.60s'", callee);
  }
  if (b->depth >= MAX_CALLS) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "calls are more than %d deep",
                        MAX_CALLS);
  }
  ++b->depth;
  pestle_status_t status =
      pestle_bytecode_inline(b, op, body->op, body->op->regions, place);
  --b->depth;
  return status;
}

pestle_status_t pestle_bytecode_settle(pestle_bytecode_place_t* place,
                                       pestle_value_t** values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_type_is_static(values[i]->type)) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "the shape of result %zu does not follow from the "
                          "shapes of the arguments",
                          i);
    }
    pestle_loc_t loc =
        values[i]->node ? values[i]->node->loc : (pestle_loc_t){0};
    const pestle_value_t* before = values[i];
    PESTLE_TRY(pestle_fold_value(&place->builder, &values[i]));
    if (values[i] != before) values[i]->node->loc = loc;
  }
  return NULL;
}

// --- The whole ---

// Arguments whose values are given are constants.
static pestle_status_t bind_again(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_region_t* region,
                                  pestle_bytecode_place_t* place) {
  const pestle_block_t* block = place->builder.block;
  if (region->argument_count != block->argument_count) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "an entry function of tuples or tokens is not read "
                        "where extents are not known");
  }
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    const pestle_bytecode_type_t* type;
    pestle_value_t* value = block->arguments[i];
    if (b->again->fixed && b->again->fixed[i]) {
      pestle_constant_attrs_t attrs = {sizeof(attrs), b->again->values[i]};
      PESTLE_TRY(pestle_op_constant(&place->builder, &attrs, &value));
    }
    PESTLE_TRY(
        pestle_bytecode_type(&b->decoder, region->argument_types[i], &type));
    PESTLE_TRY(
        pestle_bytecode_bind(b, region->first_argument + i, type, &value));
  }
  return NULL;
}

// Reads what is called from regions and drops the rest.
static pestle_status_t read_called(pestle_bytecode_builder_t* b,
                                   const pestle_function_t* entry) {
  pestle_map_t called;
  pestle_map_init(b->allocator, &called);
  pestle_status_t status = pestle_again_callees(entry, &called);
  pestle_again_t whole = *b->again;
  whole.fixed = NULL;
  for (size_t i = 0; !status && i < b->bodies.size; ++i) {
    pestle_function_t* f = b->bodies.data[i].function;
    if (f == entry) continue;
    if (pestle_map_find_str(&called, pestle_str(f->name))) {
      const pestle_again_t* again = b->again;
      b->again = &whole;
      status = pestle_bytecode_build_body(b, &b->bodies.data[i], bind_again);
      b->again = again;
    } else {
      pestle_module_remove_function(f);
    }
  }
  pestle_map_deinit(&called);
  return status;
}

pestle_status_t pestle_bytecode_read_again(pestle_bytecode_builder_t* b) {
  const pestle_function_t* entry = pestle_module_entry(b->module);
  const pestle_bytecode_body_t* body = entry ? find_body(b, entry) : NULL;
  if (!body) return PESTLE_ERROR(INVALID_ARGUMENT, "the file has no function");
  PESTLE_TRY(pestle_bytecode_build_body(b, body, bind_again));
  return read_called(b, entry);
}
