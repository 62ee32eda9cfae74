// SPDX-License-Identifier: Apache-2.0
#include "ir/clone.h"

#include <string.h>

#include "base/mem.h"

void pestle_cloner_init(pestle_module_t* target, pestle_cloner_t* out_cloner) {
  memset(out_cloner, 0, sizeof(*out_cloner));
  out_cloner->target = target;
  out_cloner->share_elements = true;
  pestle_map_init(target->arena.allocator, &out_cloner->values);
  pestle_vec_init(&out_cloner->frames, target->arena.allocator);
  pestle_vec_init(&out_cloner->operands, target->arena.allocator);
}

void pestle_cloner_deinit(pestle_cloner_t* cloner) {
  pestle_map_deinit(&cloner->values);
  pestle_vec_deinit(&cloner->frames);
  pestle_vec_deinit(&cloner->operands);
}

// --- Values ---

static pestle_status_t map_value(pestle_cloner_t* cloner,
                                 const pestle_value_t* source,
                                 pestle_value_t* copy) {
  PESTLE_TRY(
      pestle_module_intern_opt(cloner->target, source->name, &copy->name));
  return pestle_map_set_u64_ptr(&cloner->values, (uintptr_t)source, copy)
             ? NULL
             : PESTLE_OOM();
}

pestle_status_t pestle_cloner_find(const pestle_cloner_t* cloner,
                                   const pestle_value_t* value,
                                   pestle_value_t** out_value) {
  pestle_map_value_t* slot =
      pestle_map_find_u64(&cloner->values, (uintptr_t)value);
  *out_value =
      slot ? slot->ptr : (cloner->captures ? (pestle_value_t*)value : NULL);
  if (*out_value) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "a value is used before the op that defines it");
}

// --- Regions ---

// Arguments that stand for operands follow the types of those.
static pestle_status_t argument_type(const pestle_cloner_t* cloner,
                                     const pestle_node_t* owner,
                                     const pestle_block_t* block, uint32_t i,
                                     pestle_type_t* out_type) {
  *out_type = *block->arguments[i]->type;
  bool follows = owner->op == PESTLE_OP_WHILE || owner->op == PESTLE_OP_FUSION;
  if (!follows || i >= owner->operand_count) return NULL;
  pestle_value_t* operand;
  if (owner == cloner->root) {
    operand = cloner->root_operands[i];
    if (!operand) return NULL;
  } else {
    PESTLE_TRY(
        pestle_cloner_find(cloner, pestle_node_operand(owner, i), &operand));
  }
  *out_type = *operand->type;
  return NULL;
}

// Begins the copy of the region that |frame| is at.
static pestle_status_t start_region(pestle_cloner_t* cloner,
                                    pestle_clone_frame_t* frame) {
  const pestle_block_t* source = frame->owner->regions[frame->region]->block;
  PESTLE_TRY(pestle_region_create(
      cloner->target, NULL, 0, &frame->regions[frame->region], &frame->block));
  for (uint32_t i = 0; i < source->argument_count; ++i) {
    pestle_type_t type;
    pestle_value_t* copy;
    PESTLE_TRY(argument_type(cloner, frame->owner, source, i, &type));
    PESTLE_TRY(
        pestle_block_add_argument(cloner->target, frame->block, &type, &copy));
    PESTLE_TRY(map_value(cloner, source->arguments[i], copy));
  }
  frame->cursor = source->first;
  return NULL;
}

static pestle_status_t push_regions(pestle_cloner_t* cloner,
                                    const pestle_node_t* owner) {
  pestle_clone_frame_t frame = {.owner = owner};
  frame.regions = PESTLE_ARENA_ARRAY(&cloner->target->arena, pestle_region_t*,
                                     owner->region_count);
  if (!frame.regions) return PESTLE_OOM();
  memset(frame.regions, 0, owner->region_count * sizeof(*frame.regions));
  if (!pestle_vec_push(&cloner->frames, frame)) return PESTLE_OOM();
  return start_region(cloner, &pestle_vec_last(&cloner->frames));
}

// --- Nodes ---

static pestle_status_t find_operands(pestle_cloner_t* cloner,
                                     const pestle_node_t* node) {
  pestle_vec_clear(&cloner->operands);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* value;
    PESTLE_TRY(
        pestle_cloner_find(cloner, pestle_node_operand(node, i), &value));
    if (!pestle_vec_push(&cloner->operands, value)) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t emit_at(pestle_cloner_t* cloner,
                               pestle_builder_t* builder,
                               const pestle_node_t* node,
                               pestle_value_t* const* operands,
                               pestle_region_t* const* regions,
                               const char* callee, pestle_node_t** out_node) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_node_spec_t spec = {.op = (pestle_op_t)node->op,
                             .operands = operands,
                             .operand_count = node->operand_count,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .regions = regions,
                             .region_count = node->region_count,
                             .share_elements = cloner->share_elements};
  if (pestle_op_info(spec.op)->rule == PESTLE_RULE_TYPED) {
    spec.type = node->results[0].type;
  }
  if (pestle_op_info(spec.op)->rule == PESTLE_RULE_TYPES) {
    PESTLE_TRY(pestle_node_result_types(cloner->target, node, &spec));
  }
  if (callee) {
    attrs[0] = node->attrs[0];
    attrs[0].as.str = callee;
    spec.attrs = attrs;
  }
  pestle_node_t* copy;
  PESTLE_TRY(pestle_node_create(builder, &spec, &copy));
  *out_node = copy;
  for (uint32_t i = 0; i < copy->result_count && i < node->result_count; ++i) {
    PESTLE_TRY(map_value(cloner, &node->results[i], &copy->results[i]));
  }
  return cloner->check ? cloner->check(node, copy) : NULL;
}

// Copies |node| to the end of |block|; |*out_done| is false when a callee must
// be copied first.
static pestle_status_t emit(pestle_cloner_t* cloner, const pestle_node_t* node,
                            pestle_block_t* block,
                            pestle_region_t* const* regions, bool* out_done) {
  const char* callee = NULL;
  *out_done = false;
  if (node->op == PESTLE_OP_CALL && cloner->callee) {
    PESTLE_TRY(cloner->callee(cloner, node, &callee));
    if (!callee) return NULL;
  }
  *out_done = true;
  PESTLE_TRY(find_operands(cloner, node));
  pestle_builder_t builder = {
      .module = cloner->target, .block = block, .loc = node->loc};
  pestle_node_t* copy;
  return emit_at(cloner, &builder, node, cloner->operands.data, regions, callee,
                 &copy);
}

// --- The loop ---

// Copies the node at the top frame's cursor, or enters its regions.
static pestle_status_t step_node(pestle_cloner_t* cloner) {
  pestle_clone_frame_t* frame = &pestle_vec_last(&cloner->frames);
  const pestle_node_t* node = frame->cursor;
  if (node->region_count) {
    frame->cursor = node->next;
    return push_regions(cloner, node);
  }
  // The frame may move when a callee's is pushed.
  size_t index = cloner->frames.size - 1;
  bool done;
  PESTLE_TRY(emit(cloner, node, frame->block, NULL, &done));
  if (done) cloner->frames.data[index].cursor = node->next;
  return NULL;
}

// The top frame's region is copied: goes on to the next, or makes its op.
static pestle_status_t finish_region(pestle_cloner_t* cloner) {
  pestle_clone_frame_t* frame = &pestle_vec_last(&cloner->frames);
  if (frame->owner && ++frame->region < frame->owner->region_count) {
    return start_region(cloner, frame);
  }
  // The last op stays: pestle_node_clone() makes it at its own place.
  if (frame->owner && cloner->frames.size == 1) return NULL;
  pestle_clone_frame_t ended = pestle_vec_pop(&cloner->frames);
  if (!ended.owner) return NULL;
  bool done;
  pestle_status_t status =
      emit(cloner, ended.owner, pestle_vec_last(&cloner->frames).block,
           ended.regions, &done);
  for (uint32_t i = 0; status && i < ended.owner->region_count; ++i) {
    pestle_region_discard(ended.regions[i]);
  }
  return status;
}

// Whether only the op of pestle_node_clone() is left to be made.
static bool is_finished(const pestle_cloner_t* cloner) {
  if (cloner->frames.size != 1) return cloner->frames.size == 0;
  const pestle_clone_frame_t* frame = &cloner->frames.data[0];
  return frame->owner && frame->region == frame->owner->region_count;
}

pestle_status_t pestle_cloner_run(pestle_cloner_t* cloner) {
  while (!is_finished(cloner)) {
    const pestle_clone_frame_t* frame = &pestle_vec_last(&cloner->frames);
    PESTLE_TRY(frame->cursor ? step_node(cloner) : finish_region(cloner));
  }
  return NULL;
}

// --- One node ---

// Lets go of what unfinished regions captured.
static void discard_frames(pestle_cloner_t* cloner) {
  for (size_t i = 0; i < cloner->frames.size; ++i) {
    const pestle_clone_frame_t* frame = &cloner->frames.data[i];
    for (uint32_t r = 0; r < frame->owner->region_count; ++r) {
      if (frame->regions[r]) pestle_region_discard(frame->regions[r]);
    }
  }
}

static pestle_status_t clone_regions(pestle_cloner_t* cloner,
                                     const pestle_node_t* node) {
  if (!node->region_count) return NULL;
  PESTLE_TRY(push_regions(cloner, node));
  return pestle_cloner_run(cloner);
}

pestle_status_t pestle_node_clone(pestle_builder_t* builder,
                                  const pestle_node_t* node,
                                  pestle_value_t* const* operands,
                                  pestle_node_t** out_node) {
  *out_node = NULL;
  pestle_cloner_t cloner;
  pestle_cloner_init(builder->module, &cloner);
  cloner.captures = true;
  cloner.root = node;
  cloner.root_operands = operands;
  cloner.share_elements =
      node->block && node->block->region->module == builder->module;
  pestle_node_t* copy = NULL;
  pestle_status_t status = clone_regions(&cloner, node);
  if (!status) {
    status = emit_at(&cloner, builder, node, operands,
                     cloner.frames.size ? cloner.frames.data[0].regions : NULL,
                     NULL, &copy);
  }
  if (status && copy) pestle_node_erase(copy);
  if (status && !copy) discard_frames(&cloner);
  pestle_cloner_deinit(&cloner);
  if (!status) *out_node = copy;
  return status;
}

// --- Modules ---

static void release_module(void* self) {
  pestle_module_release(self);
}

pestle_status_t pestle_module_keep_module(pestle_module_t* target,
                                          pestle_module_t* source) {
  PESTLE_TRY(pestle_module_keep_alive(target, release_module, source));
  pestle_module_retain(source);
  return NULL;
}

pestle_status_t pestle_cloner_add_function(pestle_cloner_t* cloner,
                                           const pestle_function_t* source,
                                           const char* name,
                                           const pestle_type_t* types,
                                           pestle_function_t** out_function) {
  pestle_function_t* copy;
  PESTLE_TRY(pestle_module_add_function(
      cloner->target, name, types, source->argument_names,
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
  return NULL;
}

pestle_status_t pestle_cloner_push_function(pestle_cloner_t* cloner,
                                            const pestle_function_t* source,
                                            pestle_function_t* function) {
  const pestle_block_t* from = source->body->block;
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    PESTLE_TRY(map_value(cloner, from->arguments[i],
                         pestle_function_argument(function, i)));
  }
  pestle_clone_frame_t frame = {.function = function,
                                .cursor = from->first,
                                .block = function->body->block};
  return pestle_vec_push(&cloner->frames, frame) ? NULL : PESTLE_OOM();
}

// Result types of |source| as |function| declares them, so that a call may be
// copied before the callee's body.
static pestle_status_t declare_results(pestle_cloner_t* cloner,
                                       const pestle_function_t* source,
                                       pestle_function_t* function) {
  size_t count;
  if (!pestle_function_result_count(source, &count)) return NULL;
  pestle_allocator_t allocator = cloner->target->arena.allocator;
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

static pestle_status_t clone_signature(pestle_cloner_t* cloner,
                                       const pestle_function_t* source) {
  size_t count = pestle_function_argument_count(source);
  pestle_allocator_t allocator = cloner->target->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, count, sizeof(pestle_type_t));
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = *source->body->block->arguments[i]->type;
  }
  pestle_function_t* copy;
  pestle_status_t status =
      pestle_cloner_add_function(cloner, source, source->name, types, &copy);
  pestle_dealloc(allocator, types, count * sizeof(pestle_type_t));
  return status ? status : declare_results(cloner, source, copy);
}

static pestle_status_t clone_into(pestle_cloner_t* cloner,
                                  pestle_module_t* source) {
  pestle_module_t* target = cloner->target;
  PESTLE_TRY(pestle_module_keep_module(target, source));
  target->specialize = source->specialize;
  target->specialize_self = source->specialize_self;
  PESTLE_TRY(pestle_module_set_value_arguments(target, source->value_arguments,
                                               source->value_argument_count));
  for (pestle_function_t* f = source->first; f; f = f->next) {
    PESTLE_TRY(clone_signature(cloner, f));
  }
  pestle_function_t* copy = target->first;
  for (pestle_function_t* f = source->first; f; f = f->next) {
    PESTLE_TRY(pestle_cloner_push_function(cloner, f, copy));
    PESTLE_TRY(pestle_cloner_run(cloner));
    copy = copy->next;
  }
  return NULL;
}

pestle_status_t pestle_module_clone(pestle_module_t* module,
                                    pestle_module_t** out_module) {
  *out_module = NULL;
  pestle_module_t* target;
  PESTLE_TRY(pestle_module_create(module->context, module->name, &target));
  pestle_cloner_t cloner;
  pestle_cloner_init(target, &cloner);
  pestle_status_t status = clone_into(&cloner, module);
  pestle_cloner_deinit(&cloner);
  if (status) {
    pestle_module_release(target);
    return status;
  }
  *out_module = target;
  return NULL;
}
