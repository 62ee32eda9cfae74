// SPDX-License-Identifier: Apache-2.0
// Making nodes. All that can fail comes before the first link is set, so that a
// failed call leaves the module as it was (but for arena memory).
#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"

// No row has more attributes than the arrays on the stack have room for.
#define PESTLE_OP_BEGIN(NAME, ...) enum { ATTRS_OF_##NAME = 0
#define PESTLE_OP_ATTR(...) +1
#define PESTLE_OP_END(NAME, op) \
  }                             \
  ;                             \
  _Static_assert(ATTRS_OF_##NAME <= PESTLE_MAX_ATTRS, #op);
#include "pestle/ops.def"

// --- Checks of what surrounds the op; its rule checks the rest ---

static pestle_status_t check_operands(const pestle_builder_t* builder,
                                      const pestle_node_spec_t* spec) {
  if (spec->operand_count && !spec->operands) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the operands are NULL");
  }
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i]) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "operand %zu is NULL", i);
    }
    const pestle_region_t* region = pestle_value_region(spec->operands[i]);
    if (!region) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "operand %zu is the result of an erased op", i);
    }
    if (region->module != builder->module) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "operand %zu belongs to another module", i);
    }
  }
  return NULL;
}

// The outermost region around |block|: the only one without an owner.
static const pestle_region_t* root_of(const pestle_block_t* block) {
  const pestle_region_t* region = block->region;
  while (region->owner && region->owner->block) {
    region = region->owner->block->region;
  }
  return region;
}

static pestle_status_t check_regions(const pestle_builder_t* builder,
                                     const pestle_node_spec_t* spec) {
  if (!spec->region_count) return NULL;
  if (!spec->regions) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the regions are NULL");
  }
  const pestle_region_t* root = root_of(builder->block);
  for (size_t i = 0; i < spec->region_count; ++i) {
    const pestle_region_t* region = spec->regions[i];
    if (!region) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "region %zu is NULL", i);
    }
    if (region->module != builder->module) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "region %zu belongs to another module", i);
    }
    if (region->owner || region->function) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "region %zu has an owner already",
                          i);
    }
    if (region == root) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "region %zu would contain its own op", i);
    }
  }
  // An index is free while a region has no owner: one that is given twice has
  // the last of its places.
  for (size_t i = 0; i < spec->region_count; ++i) {
    spec->regions[i]->index = (uint32_t)i;
  }
  for (size_t i = 0; i < spec->region_count; ++i) {
    if (spec->regions[i]->index == i) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT, "region %zu is given twice", i);
  }
  return NULL;
}

static bool is_terminator(pestle_op_t op) {
  return (pestle_op_info(op)->flags & PESTLE_OP_FLAG_TERMINATOR) != 0;
}

static pestle_status_t check_place(const pestle_builder_t* builder,
                                   pestle_op_t op) {
  const pestle_block_t* block = builder->block;
  const pestle_node_t* before = builder->before;
  if (!builder->module || !block || block->region->module != builder->module) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the builder has no block of its module");
  }
  if (before && before->block != block) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the builder's next node is not in its block");
  }
  if (!before && block->last && is_terminator((pestle_op_t)block->last->op)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the block has ended with a return");
  }
  // A pass replaces a terminator by a new one before the old one.
  if (before && is_terminator(op) && !is_terminator((pestle_op_t)before->op)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a return can only be the last op of a block");
  }
  return NULL;
}

// --- Making ---

static pestle_status_t copy_loc(pestle_module_t* module,
                                const pestle_loc_t* loc,
                                pestle_loc_t* out_loc) {
  *out_loc = *loc;
  PESTLE_TRY(pestle_module_intern_opt(module, loc->name, &out_loc->name));
  return pestle_module_intern_opt(module, loc->file, &out_loc->file);
}

static pestle_status_t make_results(pestle_module_t* module,
                                    pestle_node_t* node,
                                    const pestle_type_t* types, size_t count) {
  node->results = pestle_arena_alloc_array(
      &module->arena, count, sizeof(pestle_value_t), _Alignof(pestle_value_t));
  if (!node->results) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    pestle_value_t* value = &node->results[i];
    memset(value, 0, sizeof(*value));
    value->type = pestle_module_intern_type(module, &types[i]);
    if (!value->type) return PESTLE_OOM();
    value->node = node;
    value->index = (uint32_t)i;
  }
  node->result_count = (uint32_t)count;
  return NULL;
}

static pestle_status_t make_node(const pestle_builder_t* builder,
                                 const pestle_node_spec_t* spec,
                                 const pestle_type_t* types, size_t count,
                                 pestle_node_t** out_node) {
  pestle_module_t* module = builder->module;
  pestle_arena_t* arena = &module->arena;
  pestle_node_t* node = PESTLE_ARENA_NEW(arena, pestle_node_t);
  if (!node) return PESTLE_OOM();
  node->op = (uint16_t)spec->op;
  node->operand_count = (uint32_t)spec->operand_count;
  node->region_count = (uint32_t)spec->region_count;
  node->operands = PESTLE_ARENA_ARRAY(arena, pestle_use_t, spec->operand_count);
  node->regions =
      PESTLE_ARENA_ARRAY(arena, pestle_region_t*, spec->region_count);
  if (!node->operands || !node->regions) return PESTLE_OOM();
  PESTLE_TRY(make_results(module, node, types, count));
  PESTLE_TRY(copy_loc(module, &builder->loc, &node->loc));
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  size_t attr_count;
  PESTLE_TRY(pestle_attrs_complete(spec, attrs, &attr_count));
  PESTLE_TRY(pestle_attrs_copy(module, spec->share_elements, attrs, attr_count,
                               &node->attrs));
  node->attr_count = (uint16_t)attr_count;
  *out_node = node;
  return NULL;
}

// Links the finished |node|; cannot fail.
static void link_node(const pestle_builder_t* builder,
                      const pestle_node_spec_t* spec, pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    node->operands[i].user = node;
    pestle_use_link(&node->operands[i], spec->operands[i]);
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    node->regions[i] = spec->regions[i];
    node->regions[i]->owner = node;
    node->regions[i]->index = i;
  }
  pestle_node_insert(node, builder->block, builder->before);
}

// Most ops have few results; the others' types go to the heap for the call.
enum { FEW_RESULTS = 4 };

static pestle_status_t infer_and_make(const pestle_builder_t* builder,
                                      const pestle_node_spec_t* spec,
                                      pestle_node_t** out_node) {
  pestle_type_t few[FEW_RESULTS];
  size_t count;
  PESTLE_TRY(pestle_infer_types(spec, few, FEW_RESULTS, &count));
  if (count <= FEW_RESULTS) {
    return make_node(builder, spec, few, count, out_node);
  }
  if (count > UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "too many results");
  }
  pestle_allocator_t allocator = builder->module->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, count, sizeof(pestle_type_t));
  if (!types) return PESTLE_OOM();
  pestle_status_t status = pestle_infer_types(spec, types, count, &count);
  if (!status) status = make_node(builder, spec, types, count, out_node);
  pestle_dealloc(allocator, types, count * sizeof(pestle_type_t));
  return status;
}

pestle_status_t pestle_node_check_spec(const pestle_builder_t* builder,
                                       const pestle_node_spec_t* spec) {
  PESTLE_TRY(check_place(builder, spec->op));
  PESTLE_TRY(check_operands(builder, spec));
  return check_regions(builder, spec);
}

static pestle_status_t create(const pestle_builder_t* builder,
                              const pestle_node_spec_t* spec,
                              pestle_node_t** out_node) {
  PESTLE_TRY(pestle_node_check_spec(builder, spec));
  PESTLE_TRY(infer_and_make(builder, spec, out_node));
  link_node(builder, spec, *out_node);
  return NULL;
}

pestle_status_t pestle_node_create(pestle_builder_t* builder,
                                   const pestle_node_spec_t* spec,
                                   pestle_node_t** out_node) {
  *out_node = NULL;
  if (!pestle_op_info(spec->op)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "there is no op number %d",
                        (int)spec->op);
  }
  pestle_node_spec_t full = *spec;
  full.module = builder->module;
  pestle_status_t status = create(builder, &full, out_node);
  if (!status) return NULL;
  return pestle_op_wrap_error(spec->op, &builder->loc, builder->module, status);
}

pestle_status_t pestle_node_result_types(pestle_module_t* module,
                                         const pestle_node_t* node,
                                         pestle_node_spec_t* spec) {
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_type_t, node->result_count + 1);
  if (!types) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->result_count; ++i)
    types[i] = *node->results[i].type;
  spec->types = types;
  spec->type_count = node->result_count;
  return NULL;
}
