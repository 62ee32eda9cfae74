// SPDX-License-Identifier: Apache-2.0
// Ops of class CONTROL, and fusion, whose meaning is its region.
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/custom_attrs.h"
#include "base/mem.h"
#include "ir/custom_op.h"
#include "ir/ref/ref_internal.h"
#include "pestle/custom_call.h"
#include "pestle/plan_format.h"

// --- while ---

// Two sets of buffers: the body reads one and writes the other.
static pestle_status_t make_state(const pestle_ref_call_t* call,
                                  pestle_arena_t* arena, void*** out_state) {
  uint32_t count = call->node->operand_count;
  void** state = PESTLE_ARENA_ARRAY(arena, void*, count);
  if (!state) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_operand_type(call, i));
    state[i] = pestle_arena_alloc(arena, size, PESTLE_BUFFER_ALIGNMENT);
    if (!state[i]) return PESTLE_OOM();
    if (size) memcpy(state[i], call->operands[i], size);
  }
  *out_state = state;
  return NULL;
}

static pestle_status_t loop(const pestle_ref_call_t* call,
                            pestle_arena_t* arena) {
  void **now, **next;
  PESTLE_TRY(make_state(call, arena, &now));
  PESTLE_TRY(make_state(call, arena, &next));
  for (;;) {
    uint8_t go = 0;
    void* condition[] = {&go};
    PESTLE_TRY(pestle_ref_run(call->interp, call->bodies[0],
                              (const void* const*)now, condition));
    if (!go) break;
    PESTLE_TRY(pestle_ref_run(call->interp, call->bodies[1],
                              (const void* const*)now, next));
    void** swap = now;
    now = next;
    next = swap;
  }
  for (uint32_t i = 0; i < call->node->result_count; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_result_type(call, i));
    if (size) memcpy(call->results[i], now[i], size);
  }
  return NULL;
}

pestle_status_t pestle_ref_while(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = loop(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

// --- Branches, calls, groups ---

pestle_status_t pestle_ref_if(const pestle_ref_call_t* call) {
  uint8_t condition = *(const uint8_t*)call->operands[0];
  return pestle_ref_run(call->interp, call->bodies[condition ? 0 : 1], NULL,
                        call->results);
}

// An index outside the branches takes the last one.
pestle_status_t pestle_ref_case(const pestle_ref_call_t* call) {
  int64_t index;
  uint32_t count = call->node->region_count;
  if (!count) return NULL;
  pestle_ref_load_wide(pestle_ref_operand_type(call, 0)->dtype,
                       call->operands[0], 1, &index);
  if (index < 0 || index >= count) index = count - 1;
  return pestle_ref_run(call->interp, call->bodies[index], NULL, call->results);
}

pestle_status_t pestle_ref_call(const pestle_ref_call_t* call) {
  return pestle_ref_run_function(call->interp,
                                 PESTLE_NODE_STR(call->node, callee),
                                 call->operands, call->results);
}

pestle_status_t pestle_ref_fusion(const pestle_ref_call_t* call) {
  return pestle_ref_run(call->interp, call->bodies[0], call->operands,
                        call->results);
}

pestle_status_t pestle_ref_composite(const pestle_ref_call_t* call) {
  if (!call->node->region_count) {
    return pestle_node_error(call->node, PESTLE_STATUS_UNSUPPORTED,
                             "'%s' has no body that could be evaluated",
                             PESTLE_NODE_STR(call->node, name));
  }
  return pestle_ref_run(call->interp, call->bodies[0], call->operands,
                        call->results);
}

pestle_status_t pestle_ref_optimization_barrier(const pestle_ref_call_t* call) {
  for (uint32_t i = 0; i < call->node->result_count; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_result_type(call, i));
    if (size) memcpy(call->results[i], call->operands[i], size);
  }
  return NULL;
}

// Blocks hand over what they return; the op itself does nothing.
pestle_status_t pestle_ref_return(const pestle_ref_call_t* call) {
  (void)call;
  return NULL;
}

// --- custom_call: the context's function, on the host ---

static pestle_status_t view(pestle_arena_t* arena, const pestle_type_t* type,
                            const void* data, pestle_tensor_t* out) {
  size_t rank = (size_t)type->rank;
  int64_t* shape = PESTLE_ARENA_ARRAY(arena, int64_t, 2 * rank + 1);
  if (!shape) return PESTLE_OOM();
  memcpy(shape, type->dims, rank * sizeof(*shape));
  pestle_dense_strides(shape, rank, 1, shape + rank);
  *out = (pestle_tensor_t){.data = (void*)(uintptr_t)data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = type->rank,
                           .dtype = pestle_dtype_to_dlpack(type->dtype),
                           .shape = shape,
                           .strides = shape + rank};
  return NULL;
}

// Results that are aliases of operands hold them, and the operands lie there.
static void begin_aliases(const pestle_ref_call_t* call,
                          pestle_tensor_t* tensors) {
  pestle_i64s_t pairs = PESTLE_NODE_I64S(call->node, output_operand_aliases);
  for (size_t i = 0; i + 1 < pairs.count; i += 2) {
    pestle_tensor_t* operand = &tensors[pairs.data[i + 1]];
    void* result = tensors[call->node->operand_count + pairs.data[i]].data;
    size_t size = pestle_type_bytes(
        pestle_ref_operand_type(call, (uint32_t)pairs.data[i + 1]));
    if (size) memmove(result, operand->data, size);
    operand->data = result;
  }
}

// The function that |node| calls, and the attributes of an eval.
static pestle_status_t find_function(const pestle_node_t* node,
                                     pestle_arena_t* arena,
                                     pestle_custom_call_info_t* out_info,
                                     const char** out_name,
                                     const pestle_custom_attrs_t** out_attrs) {
  const pestle_custom_op_t* op;
  const pestle_custom_eval_t* eval;
  *out_attrs = NULL;
  if (!pestle_is_eval_call(node)) {
    return pestle_context_custom_call(node->block->region->module->context,
                                      PESTLE_NODE_STR(node, call_target_name),
                                      out_info);
  }
  PESTLE_TRY(pestle_eval_call_find(node, &op, &eval));
  if (eval->kind != PESTLE_EVAL_HOST_FUNCTION) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "eval '%s' of op '%s' is no function of the host's",
                        eval->id, op->name);
  }
  *out_name = op->name;
  out_info->function = eval->function;
  out_info->user = op->user;
  return pestle_custom_attrs_of_text(
      arena, op, PESTLE_NODE_STR(node, backend_dictionary), out_attrs);
}

static pestle_status_t call_out(const pestle_ref_call_t* call,
                                pestle_arena_t* arena) {
  const pestle_node_t* node = call->node;
  const char* name = PESTLE_NODE_STR(node, call_target_name);
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  uint32_t inputs = node->operand_count, outputs = node->result_count;
  pestle_tensor_t* tensors =
      PESTLE_ARENA_ARRAY(arena, pestle_tensor_t, inputs + outputs + 1);
  if (!tensors) return PESTLE_OOM();
  const pestle_custom_attrs_t* attrs;
  PESTLE_TRY(find_function(node, arena, &info, &name, &attrs));
  for (uint32_t i = 0; i < inputs; ++i) {
    PESTLE_TRY(view(arena, pestle_ref_operand_type(call, i), call->operands[i],
                    &tensors[i]));
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    PESTLE_TRY(view(arena, pestle_ref_result_type(call, i), call->results[i],
                    &tensors[inputs + i]));
  }
  begin_aliases(call, tensors);
  const char* const* computations;
  size_t computation_count;
  PESTLE_TRY(pestle_arena_split(
      arena, pestle_str(PESTLE_NODE_STR(node, called_computations)),
      PESTLE_PLAN_COMPUTATION_END, &computations, &computation_count));
  pestle_custom_call_t given = {
      .struct_size = sizeof(given),
      .name = name,
      .config = PESTLE_NODE_STR(node, backend_config),
      .dictionary = PESTLE_NODE_STR(node, backend_dictionary),
      .inputs = tensors,
      .input_count = inputs,
      .outputs = tensors + inputs,
      .output_count = outputs,
      .computations = computations,
      .computation_count = computation_count,
      .attrs = attrs};
  return pestle_status_annotate(info.function(info.user, &given),
                                "in custom call '%s'", name);
}

pestle_status_t pestle_ref_custom_call(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = call_out(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}
