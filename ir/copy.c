// SPDX-License-Identifier: Apache-2.0
#include "ir/copy.h"

#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"
#include "ir/scan.h"

void pestle_copier_init(pestle_allocator_t allocator, pestle_builder_t builder,
                        pestle_copier_t* out_copier) {
  memset(out_copier, 0, sizeof(*out_copier));
  out_copier->builder = builder;
  pestle_map_init(allocator, &out_copier->values);
  pestle_vec_init(&out_copier->frames, allocator);
  pestle_vec_init(&out_copier->operands, allocator);
}

void pestle_copier_deinit(pestle_copier_t* copier) {
  pestle_map_deinit(&copier->values);
  pestle_vec_deinit(&copier->frames);
  pestle_vec_deinit(&copier->operands);
}

// --- Values ---

pestle_status_t pestle_copier_set(pestle_copier_t* copier,
                                  const pestle_value_t* from,
                                  pestle_value_t* to) {
  return pestle_map_set_u64_ptr(&copier->values, (uintptr_t)from, to)
             ? NULL
             : PESTLE_OOM();
}

pestle_value_t* pestle_copier_get(const pestle_copier_t* copier,
                                  pestle_value_t* value) {
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&copier->values, (uintptr_t)value);
  return slot ? slot->ptr : copier->foreign ? NULL : value;
}

static pestle_status_t map_value(pestle_copier_t* copier,
                                 const pestle_value_t* source,
                                 pestle_value_t* copy) {
  copy->name = source->name;
  if (copier->foreign) {
    PESTLE_TRY(pestle_module_intern_opt(copier->builder.module, source->name,
                                        &copy->name));
  }
  return pestle_copier_set(copier, source, copy);
}

static pestle_status_t find_value(const pestle_copier_t* copier,
                                  pestle_value_t* value,
                                  pestle_value_t** out_value) {
  *out_value = pestle_copier_get(copier, value);
  if (*out_value) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "a value is used before the op that defines it");
}

// --- Regions ---

// Arguments that stand for operands follow the types of those.
static pestle_status_t argument_type(const pestle_copier_t* copier,
                                     const pestle_node_t* owner,
                                     const pestle_block_t* block, uint32_t i,
                                     pestle_type_t* out_type) {
  *out_type = *block->arguments[i]->type;
  bool follows = owner->op == PESTLE_OP_WHILE || pestle_node_is_isolated(owner);
  if (!follows || i >= owner->operand_count) return NULL;
  pestle_value_t* operand;
  PESTLE_TRY(find_value(copier, pestle_node_operand(owner, i), &operand));
  bool fits = owner->op != PESTLE_OP_SCAN ||
              pestle_scan_node_argument_type(owner, i, operand->type, out_type);
  if (owner->op != PESTLE_OP_SCAN) *out_type = *operand->type;
  return fits ? NULL
              : PESTLE_ERROR(INVALID_ARGUMENT,
                             "operand %u of a scan has rank 0", (unsigned)i);
}

// Begins the copy of the region that |frame| is at.
static pestle_status_t start_region(pestle_copier_t* copier,
                                    pestle_copy_frame_t* frame) {
  const pestle_block_t* source = frame->owner->regions[frame->region]->block;
  PESTLE_TRY(pestle_region_create(copier->builder.module, NULL, 0,
                                  &frame->regions[frame->region],
                                  &frame->block));
  for (uint32_t i = 0; i < source->argument_count; ++i) {
    pestle_type_t type;
    pestle_value_t* copy;
    PESTLE_TRY(argument_type(copier, frame->owner, source, i, &type));
    PESTLE_TRY(pestle_block_add_argument(copier->builder.module, frame->block,
                                         &type, &copy));
    PESTLE_TRY(map_value(copier, source->arguments[i], copy));
  }
  frame->cursor = source->first;
  return NULL;
}

static pestle_status_t push_regions(pestle_copier_t* copier,
                                    const pestle_node_t* owner) {
  pestle_copy_frame_t frame = {.owner = owner};
  frame.regions = PESTLE_ARENA_ARRAY(&copier->builder.module->arena,
                                     pestle_region_t*, owner->region_count);
  if (!frame.regions) return PESTLE_OOM();
  memset(frame.regions, 0, owner->region_count * sizeof(*frame.regions));
  if (!pestle_vec_push(&copier->frames, frame)) return PESTLE_OOM();
  return start_region(copier, &pestle_vec_last(&copier->frames));
}

// --- Nodes ---

static pestle_status_t find_operands(pestle_copier_t* copier,
                                     const pestle_node_t* node) {
  pestle_vec_clear(&copier->operands);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* value;
    PESTLE_TRY(find_value(copier, pestle_node_operand(node, i), &value));
    if (!pestle_vec_push(&copier->operands, value)) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t emit_at(pestle_copier_t* copier,
                               pestle_builder_t* builder,
                               const pestle_node_t* node,
                               pestle_region_t* const* regions,
                               const char* callee, pestle_node_t** out_node) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_node_spec_t spec = {.op = (pestle_op_t)node->op,
                             .operand_count = node->operand_count,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .regions = regions,
                             .region_count = node->region_count,
                             .share_elements = true};
  builder->loc = node->loc;
  if (pestle_op_info(spec.op)->rule == PESTLE_RULE_TYPED) {
    spec.type = node->results[0].type;
  }
  if (pestle_op_info(spec.op)->rule == PESTLE_RULE_TYPES) {
    PESTLE_TRY(pestle_node_result_types(builder->module, node, &spec));
  }
  if (callee) {
    attrs[0] = node->attrs[0];
    attrs[0].as.str = callee;
    spec.attrs = attrs;
  }
  PESTLE_TRY(find_operands(copier, node));
  spec.operands = copier->operands.data;
  pestle_node_t* copy;
  PESTLE_TRY(pestle_node_create(builder, &spec, &copy));
  *out_node = copy;
  // A copy beside its source is a variant, which may be dropped again; one in
  // another block is there to stay.
  if (!copier->foreign && !copier->trial && node->block &&
      node->block != copy->block) {
    pestle_node_set_heir((pestle_node_t*)node, copy);
  }
  for (uint32_t i = 0; i < copy->result_count && i < node->result_count; ++i) {
    PESTLE_TRY(map_value(copier, &node->results[i], &copy->results[i]));
  }
  return copier->check ? copier->check(node, copy) : NULL;
}

// Copies |node| to the end of |block|; |*out_done| is false when a callee must
// be copied first.
static pestle_status_t emit(pestle_copier_t* copier, const pestle_node_t* node,
                            pestle_block_t* block,
                            pestle_region_t* const* regions, bool* out_done) {
  const char* callee = NULL;
  *out_done = false;
  if (node->op == PESTLE_OP_CALL && copier->callee) {
    PESTLE_TRY(copier->callee(copier, node, &callee));
    if (!callee) return NULL;
  }
  *out_done = true;
  pestle_builder_t builder = {.module = copier->builder.module, .block = block};
  pestle_node_t* copy;
  return emit_at(copier, &builder, node, regions, callee, &copy);
}

// --- The loop ---

// Copies the node at the top frame's cursor, or enters its regions.
static pestle_status_t step_node(pestle_copier_t* copier) {
  pestle_copy_frame_t* frame = &pestle_vec_last(&copier->frames);
  const pestle_node_t* node = frame->cursor;
  if (node->region_count) {
    frame->cursor = node->next;
    return push_regions(copier, node);
  }
  // The frame may move when a callee's is pushed.
  size_t index = copier->frames.size - 1;
  bool done;
  PESTLE_TRY(emit(copier, node, frame->block, NULL, &done));
  if (done) copier->frames.data[index].cursor = node->next;
  return NULL;
}

// The top frame's region is copied: goes on to the next, or makes its op.
static pestle_status_t finish_region(pestle_copier_t* copier) {
  pestle_copy_frame_t* frame = &pestle_vec_last(&copier->frames);
  if (frame->owner && ++frame->region < frame->owner->region_count) {
    return start_region(copier, frame);
  }
  // The last op stays: pestle_copier_node() makes it at its own place.
  if (frame->owner && copier->frames.size == 1) return NULL;
  pestle_copy_frame_t ended = pestle_vec_pop(&copier->frames);
  if (!ended.owner) return NULL;
  bool done;
  pestle_status_t status =
      emit(copier, ended.owner, pestle_vec_last(&copier->frames).block,
           ended.regions, &done);
  for (uint32_t i = 0; status && i < ended.owner->region_count; ++i) {
    pestle_region_discard(ended.regions[i]);
  }
  return status;
}

// Whether only the op of pestle_copier_node() is left to be made.
static bool is_finished(const pestle_copier_t* copier) {
  if (copier->frames.size != 1) return copier->frames.size == 0;
  const pestle_copy_frame_t* frame = &copier->frames.data[0];
  return frame->owner && frame->region == frame->owner->region_count;
}

pestle_status_t pestle_copier_run(pestle_copier_t* copier) {
  while (!is_finished(copier)) {
    const pestle_copy_frame_t* frame = &pestle_vec_last(&copier->frames);
    PESTLE_TRY(frame->cursor ? step_node(copier) : finish_region(copier));
  }
  return NULL;
}

// --- One node, one region ---

// Lets go of what unfinished regions captured.
static void discard_frames(pestle_copier_t* copier) {
  for (size_t i = 0; i < copier->frames.size; ++i) {
    const pestle_copy_frame_t* frame = &copier->frames.data[i];
    for (uint32_t r = 0; frame->owner && r < frame->owner->region_count; ++r) {
      if (frame->regions[r]) pestle_region_discard(frame->regions[r]);
    }
  }
  pestle_vec_clear(&copier->frames);
}

static pestle_status_t copy_regions(pestle_copier_t* copier,
                                    const pestle_node_t* node) {
  if (!node->region_count) return NULL;
  PESTLE_TRY(push_regions(copier, node));
  return pestle_copier_run(copier);
}

pestle_status_t pestle_copier_node(pestle_copier_t* copier,
                                   const pestle_node_t* node,
                                   pestle_node_t** out_node) {
  *out_node = NULL;
  pestle_node_t* copy = NULL;
  pestle_status_t status = copy_regions(copier, node);
  pestle_builder_t builder = copier->builder;
  const char* callee = NULL;
  if (!status && node->op == PESTLE_OP_CALL && copier->callee) {
    status = copier->callee(copier, node, &callee);
  }
  if (!status) {
    pestle_region_t** regions =
        copier->frames.size ? copier->frames.data[0].regions : NULL;
    status = emit_at(copier, &builder, node, regions, callee, &copy);
  }
  if (status && copy) pestle_node_erase(copy);
  if (status && !copy) discard_frames(copier);
  pestle_vec_clear(&copier->frames);
  if (!status) *out_node = copy;
  return status;
}

pestle_status_t pestle_copier_block(pestle_copier_t* copier,
                                    const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    unsigned flags = pestle_op_info((pestle_op_t)n->op)->flags;
    if (flags & PESTLE_OP_FLAG_TERMINATOR) break;
    pestle_node_t* ignored;
    PESTLE_TRY(pestle_copier_node(copier, n, &ignored));
  }
  return NULL;
}

static pestle_status_t copy_arguments(pestle_copier_t* copier,
                                      const pestle_block_t* from,
                                      pestle_block_t* to) {
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    pestle_value_t* copy;
    PESTLE_TRY(pestle_block_add_argument(copier->builder.module, to,
                                         from->arguments[i]->type, &copy));
    PESTLE_TRY(map_value(copier, from->arguments[i], copy));
  }
  return NULL;
}

pestle_status_t pestle_copier_region(pestle_copier_t* copier,
                                     const pestle_region_t* source,
                                     pestle_region_t** out_region) {
  pestle_copy_frame_t frame = {.cursor = source->block->first};
  *out_region = NULL;
  pestle_region_t* region;
  PESTLE_TRY(pestle_region_create(copier->builder.module, NULL, 0, &region,
                                  &frame.block));
  pestle_status_t status = copy_arguments(copier, source->block, frame.block);
  if (!status && !pestle_vec_push(&copier->frames, frame)) {
    status = PESTLE_OOM();
  }
  if (!status) status = pestle_copier_run(copier);
  if (status) {
    discard_frames(copier);
    pestle_region_discard(region);
    return status;
  }
  *out_region = region;
  return NULL;
}

// --- Modules ---

static void release_module(void* self) {
  pestle_module_release(self);
}

static void relax_module(void* self, const void* data, size_t size) {
  pestle_module_relax_part(self, data, size);
}

pestle_status_t pestle_module_keep_module(pestle_module_t* target,
                                          pestle_module_t* source) {
  PESTLE_TRY(
      pestle_module_keep_relaxed(target, release_module, relax_module, source));
  pestle_module_retain(source);
  return NULL;
}

pestle_status_t pestle_copier_add_function(pestle_copier_t* copier,
                                           const pestle_function_t* source,
                                           const char* name,
                                           const pestle_type_t* types,
                                           pestle_function_t** out_function) {
  pestle_function_t* copy;
  PESTLE_TRY(pestle_module_add_function(
      copier->builder.module, name, types, source->argument_names,
      pestle_function_argument_count(source), &copy));
  copy->is_private = source->is_private;
  for (uint32_t i = 0; i < source->result_name_count; ++i) {
    PESTLE_TRY(
        pestle_function_set_result_name(copy, i, source->result_names[i]));
  }
  for (uint32_t i = 0; i < source->result_shape_count; ++i) {
    int64_t of = pestle_function_shape_of(source, i);
    if (of >= 0) PESTLE_TRY(pestle_function_set_shape_of(copy, i, (size_t)of));
  }
  *out_function = copy;
  return pestle_function_copy_dialect_attrs(source, copy);
}

pestle_status_t pestle_copier_push_function(pestle_copier_t* copier,
                                            const pestle_function_t* source,
                                            pestle_function_t* function) {
  const pestle_block_t* from = source->body->block;
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    PESTLE_TRY(map_value(copier, from->arguments[i],
                         pestle_function_argument(function, i)));
  }
  pestle_copy_frame_t frame = {.function = function,
                               .cursor = from->first,
                               .block = function->body->block};
  return pestle_vec_push(&copier->frames, frame) ? NULL : PESTLE_OOM();
}

// Result types of |source| as |function| declares them, so that a call may be
// copied before the callee's body.
static pestle_status_t declare_results(pestle_copier_t* copier,
                                       const pestle_function_t* source,
                                       pestle_function_t* function) {
  size_t count;
  if (!pestle_function_result_count(source, &count)) return NULL;
  pestle_allocator_t allocator = copier->builder.module->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, count, sizeof(pestle_type_t));
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = *pestle_function_result_type(source, i);
  }
  pestle_status_t status =
      pestle_function_declare_results(function, types, count);
  pestle_dealloc(allocator, types, count * sizeof(pestle_type_t));
  return status;
}

pestle_status_t pestle_copier_declare(pestle_copier_t* copier,
                                      const pestle_function_t* source,
                                      pestle_function_t** out_function) {
  size_t count = pestle_function_argument_count(source);
  pestle_allocator_t allocator = copier->builder.module->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, count, sizeof(pestle_type_t));
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = *source->body->block->arguments[i]->type;
  }
  pestle_status_t status = pestle_copier_add_function(
      copier, source, source->name, types, out_function);
  pestle_dealloc(allocator, types, count * sizeof(pestle_type_t));
  return status ? status : declare_results(copier, source, *out_function);
}

static pestle_status_t clone_into(pestle_copier_t* copier,
                                  pestle_module_t* source) {
  pestle_module_t* target = copier->builder.module;
  PESTLE_TRY(pestle_module_keep_module(target, source));
  PESTLE_TRY(pestle_module_set_dialect_attrs(target, source->dialect_attrs.data,
                                             source->dialect_attrs.count));
  target->specialize = source->specialize;
  target->specialize_self = source->specialize_self;
  PESTLE_TRY(pestle_module_set_value_arguments(target, source->value_arguments,
                                               source->value_argument_count));
  pestle_function_t* copy;
  for (pestle_function_t* f = source->first; f; f = f->next) {
    PESTLE_TRY(pestle_copier_declare(copier, f, &copy));
  }
  copy = target->first;
  for (pestle_function_t* f = source->first; f; f = f->next) {
    PESTLE_TRY(pestle_copier_push_function(copier, f, copy));
    PESTLE_TRY(pestle_copier_run(copier));
    copy = copy->next;
  }
  return NULL;
}

pestle_status_t pestle_module_clone(pestle_module_t* module,
                                    pestle_module_t** out_module) {
  *out_module = NULL;
  pestle_module_t* target;
  PESTLE_TRY(pestle_module_create(module->context, module->name, &target));
  pestle_copier_t copier;
  pestle_copier_init(target->arena.allocator,
                     (pestle_builder_t){.module = target}, &copier);
  copier.foreign = true;
  pestle_status_t status = clone_into(&copier, module);
  pestle_copier_deinit(&copier);
  if (status) {
    pestle_module_release(target);
    return status;
  }
  *out_module = target;
  return NULL;
}
