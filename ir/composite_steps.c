// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "ir/composite.h"

// --- Steps ---

static pv_t* emit(pestle_steps_t* s, const pestle_node_spec_t* spec) {
  pestle_node_t* node;
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i]) return NULL;
  }
  if (s->status) return NULL;
  s->status = pestle_node_create(&s->builder, spec, &node);
  return s->status ? NULL : pestle_node_result(node, 0);
}

pv_t* pestle_step1(pestle_steps_t* s, pestle_op_t op, pv_t* a) {
  return emit(s, &(pestle_node_spec_t){
                     .op = op, .operands = (pv_t*[]){a}, .operand_count = 1});
}

pv_t* pestle_step2(pestle_steps_t* s, pestle_op_t op, pv_t* a, pv_t* b) {
  return emit(s,
              &(pestle_node_spec_t){
                  .op = op, .operands = (pv_t*[]){a, b}, .operand_count = 2});
}

pv_t* pestle_step3(pestle_steps_t* s, pestle_op_t op, pv_t* a, pv_t* b,
                   pv_t* c) {
  return emit(
      s, &(pestle_node_spec_t){
             .op = op, .operands = (pv_t*[]){a, b, c}, .operand_count = 3});
}

pv_t* pestle_step_typed(pestle_steps_t* s, pestle_op_t op, pv_t** operands,
                        size_t count, const pestle_type_t* type) {
  bool stated = pestle_op_info(op)->rule == PESTLE_RULE_TYPED;
  return emit(s, &(pestle_node_spec_t){.op = op,
                                       .operands = operands,
                                       .operand_count = count,
                                       .type = stated ? type : NULL});
}

// A constant of |type|, a float type.
static pv_t* splat(pestle_steps_t* s, const pestle_type_t* type, double value) {
  uint64_t bits = pestle_float_encode(type->dtype, value);
  unsigned char data[8];
  size_t size = pestle_dtype_size(type->dtype);
  for (size_t i = 0; i < size; ++i) {
    data[i] = (unsigned char)(bits >> (8 * i));
  }
  pestle_elements_t elements = {*type, data, size, true};
  pestle_attr_t attr = {PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS,
                        .as.elements = &elements};
  return emit(s,
              &(pestle_node_spec_t){
                  .op = PESTLE_OP_CONSTANT, .attrs = &attr, .attr_count = 1});
}

pv_t* pestle_step_splat(pestle_steps_t* s, pv_t* like, double value) {
  return like ? splat(s, like->type, value) : NULL;
}

pv_t* pestle_step_plus(pestle_steps_t* s, pv_t* a, double term) {
  return PESTLE_ADD(s, a, pestle_step_splat(s, a, term));
}

pv_t* pestle_step_times(pestle_steps_t* s, pv_t* a, double factor) {
  return PESTLE_MUL(s, a, pestle_step_splat(s, a, factor));
}

pv_t* pestle_step_select(pestle_steps_t* s, pv_t* which, pv_t* yes, pv_t* no) {
  return pestle_step3(s, PESTLE_OP_SELECT, which, yes, no);
}

pv_t* pestle_step_is_zero(pestle_steps_t* s, pv_t* a) {
  return pestle_step2(s, PESTLE_OP_EQ, a, pestle_step_splat(s, a, 0));
}

// (Bits of |a| or'd with the sign of |b| are what LLVM 15 gets wrong behind a
// select, as lavapipe has it.)
pv_t* pestle_step_copy_sign(pestle_steps_t* s, pv_t* a, pv_t* b) {
  if (!a || !b) return NULL;
  pestle_type_t type = *b->type;
  type.dtype = type.dtype == PESTLE_F64 ? PESTLE_I64 : PESTLE_I32;
  pv_t* bits = pestle_step_typed(s, PESTLE_OP_BITCAST_CONVERT, &b, 1, &type);
  pv_t* below =
      pestle_step2(s, PESTLE_OP_LT, bits, pestle_step_bits(s, &type, 0));
  a = pestle_step1(s, PESTLE_OP_ABS, a);
  return pestle_step_select(s, below, pestle_step1(s, PESTLE_OP_NEGATE, a), a);
}

pv_t* pestle_step_convert(pestle_steps_t* s, pv_t* a, pestle_dtype_t dtype) {
  if (!a || a->type->dtype == dtype) return a;
  pestle_type_t type = *a->type;
  type.dtype = dtype;
  return emit(s, &(pestle_node_spec_t){.op = PESTLE_OP_CONVERT,
                                       .operands = &a,
                                       .operand_count = 1,
                                       .type = &type});
}

pv_t* pestle_step_operand(pestle_steps_t* s, size_t index,
                          pestle_dtype_t dtype) {
  return pestle_step_convert(s, pestle_node_operand(s->node, index), dtype);
}

// (a, b) -> op(a, b)
static pestle_status_t fold_region(pestle_steps_t* s, pestle_op_t op,
                                   pestle_dtype_t dtype,
                                   pestle_region_t** out_region) {
  pestle_module_t* module = s->builder.module;
  pestle_type_t types[2] = {pestle_type_make(dtype, 0, NULL),
                            pestle_type_make(dtype, 0, NULL)};
  pestle_builder_t b = {.module = module, .loc = s->builder.loc};
  PESTLE_TRY(pestle_region_create(module, types, 2, out_region, &b.block));
  pv_t* arguments[2] = {pestle_block_argument(b.block, 0),
                        pestle_block_argument(b.block, 1)};
  pestle_node_t* node;
  PESTLE_TRY(pestle_node_create(
      &b,
      &(pestle_node_spec_t){
          .op = op, .operands = arguments, .operand_count = 2},
      &node));
  pv_t* result = pestle_node_result(node, 0);
  return pestle_op_return(&b, &result, 1, NULL);
}

pv_t* pestle_step_reduce(pestle_steps_t* s, pestle_op_t op, pv_t* a,
                         pestle_i64s_t dimensions, double initial) {
  if (!a) return NULL;
  pestle_type_t scalar = pestle_type_make(a->type->dtype, 0, NULL);
  return pestle_step_fold(s, op, a, dimensions, splat(s, &scalar, initial));
}

pv_t* pestle_step_fold(pestle_steps_t* s, pestle_op_t op, pv_t* a,
                       pestle_i64s_t dimensions, pv_t* initial) {
  if (!a) return NULL;
  pv_t* operands[2] = {a, initial};
  pestle_region_t* region = NULL;
  if (!s->status) {
    s->status = fold_region(s, op, a->type->dtype, &region);
  }
  pestle_attr_t attr = {PESTLE_ATTR_dimensions, PESTLE_ATTR_KIND_I64S,
                        .as.i64s = dimensions};
  return emit(s, &(pestle_node_spec_t){.op = PESTLE_OP_REDUCE,
                                       .operands = operands,
                                       .operand_count = 2,
                                       .attrs = &attr,
                                       .attr_count = 1,
                                       .regions = &region,
                                       .region_count = 1});
}

pv_t* pestle_step_broadcast(pestle_steps_t* s, pv_t* a, pestle_i64s_t axes) {
  if (!a) return NULL;
  pestle_type_t type = s->shape;
  type.dtype = a->type->dtype;
  pestle_attr_t attr = {PESTLE_ATTR_broadcast_dimensions, PESTLE_ATTR_KIND_I64S,
                        .as.i64s = axes};
  return emit(s, &(pestle_node_spec_t){.op = PESTLE_OP_BROADCAST_IN_DIM,
                                       .operands = &a,
                                       .operand_count = 1,
                                       .attrs = &attr,
                                       .attr_count = 1,
                                       .type = &type});
}

pv_t* pestle_step_spread(pestle_steps_t* s, pv_t* a, pestle_i64s_t dimensions) {
  int64_t kept[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int i = 0; i < s->shape.rank; ++i) {
    bool reduced = false;
    for (size_t j = 0; j < dimensions.count; ++j) {
      reduced |= dimensions.data[j] == i;
    }
    if (!reduced) kept[count++] = i;
  }
  return pestle_step_broadcast(s, a, (pestle_i64s_t){kept, count});
}

pv_t* pestle_step_dot(pestle_steps_t* s, pv_t* a, pv_t* b, bool contract_last,
                      const pestle_type_t* type) {
  int64_t batch[PESTLE_MAX_RANK], left = type->rank - 1;
  int64_t right = contract_last ? left : left - 1;
  size_t batches = (size_t)left - 1;
  for (size_t i = 0; i < batches; ++i)
    batch[i] = (int64_t)i;
  pestle_attr_t attrs[] = {{PESTLE_ATTR_lhs_batching_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {batch, batches}},
                           {PESTLE_ATTR_rhs_batching_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {batch, batches}},
                           {PESTLE_ATTR_lhs_contracting_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {&left, 1}},
                           {PESTLE_ATTR_rhs_contracting_dimensions,
                            PESTLE_ATTR_KIND_I64S, .as.i64s = {&right, 1}}};
  return emit(s, &(pestle_node_spec_t){.op = PESTLE_OP_DOT_GENERAL,
                                       .operands = (pv_t*[]){a, b},
                                       .operand_count = 2,
                                       .attrs = attrs,
                                       .attr_count = 4,
                                       .type = type});
}

// --- Entry ---

static pv_t* decompose(pestle_steps_t* s) {
  switch ((int)s->node->op) {
#define PESTLE_ROW_COMPOSITE(NAME, op) \
  case PESTLE_OP_##NAME:               \
    return pestle_decompose_##op(s);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
  }
  s->status = pestle_node_error(s->node, PESTLE_STATUS_INTERNAL,
                                "the composite has no decomposition");
  return NULL;
}

// f8, f16 and bf16 compute in f32. Quantisation computes in its scale's type,
// which operand 0 may not have.
static pestle_dtype_t compute_dtype(const pestle_node_t* node) {
  bool quantises =
      node->op == PESTLE_OP_QUANTIZE || node->op == PESTLE_OP_DEQUANTIZE;
  pestle_dtype_t dtype = pestle_node_operand(node, quantises)->type->dtype;
  return dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
}

static pestle_status_t check_node(const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  if (!info || info->fuse != PESTLE_FUSE_COMPOSITE || !node->block) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the op is no composite");
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (pestle_type_is_static(pestle_node_operand(node, i)->type)) continue;
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "a composite of unknown extents is decomposed "
                             "after its module is specialised");
  }
  return NULL;
}

pestle_status_t pestle_decompose(pestle_node_t* node,
                                 pestle_value_t** out_results) {
  out_results[0] = NULL;
  PESTLE_TRY(check_node(node));
  pestle_steps_t steps = {.node = node,
                          .builder = pestle_builder_before(node),
                          .compute = compute_dtype(node),
                          .shape = *pestle_node_operand(node, 0)->type};
  steps.shape.dtype = steps.compute;
  const pestle_node_t* start = node->prev;
  pestle_value_t* result = decompose(&steps);
  if (steps.status) {
    // What was written before the failing step goes, last first.
    while (node->prev != start)
      pestle_node_erase(node->prev);
    return steps.status;
  }
  out_results[0] = result;
  for (uint32_t i = 1; i < node->result_count; ++i)
    out_results[i] = steps.more[i - 1];
  return NULL;
}
