// SPDX-License-Identifier: Apache-2.0
// The entry of decompositions, and what they say of the op they are of.
#include "base/mem.h"
#include "ir/composite.h"

pv_t* pestle_f_operand(pestle_formula_t* f, size_t index,
                       pestle_dtype_t dtype) {
  return pestle_f_convert(f, pestle_node_operand(f->of->node, index), dtype);
}

pv_t* pestle_f_to_shape(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  const pestle_type_t* shape = &f->of->shape;
  if (!a) return NULL;
  pestle_attr_t attr =
      PESTLE_SET_I64S(broadcast_dimensions, axes.data, axes.count);
  pestle_type_t type = *shape;
  type.dtype = a->type->dtype;
  return pestle_f_make(f, PESTLE_OP_BROADCAST_IN_DIM, &a, 1, &attr, 1, &type);
}

pv_t* pestle_f_spread(pestle_formula_t* f, pv_t* a, pestle_i64s_t dimensions) {
  int64_t kept[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int i = 0; i < f->of->shape.rank; ++i) {
    bool reduced = false;
    for (size_t j = 0; j < dimensions.count; ++j) {
      reduced |= dimensions.data[j] == i;
    }
    if (!reduced) kept[count++] = i;
  }
  return pestle_f_to_shape(f, a, (pestle_i64s_t){kept, count});
}

// --- Entry ---

static pv_t* decompose(pestle_formula_t* f) {
  switch ((int)f->of->node->op) {
#define PESTLE_ROW_COMPOSITE(NAME, op) \
  case PESTLE_OP_##NAME:               \
    return pestle_decompose_##op(f);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
  }
  f->status = pestle_node_error(f->of->node, PESTLE_STATUS_INTERNAL,
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
  pestle_decomposition_t of = {.node = node,
                               .shape = *pestle_node_operand(node, 0)->type};
  pestle_formula_t f = pestle_formula_make(pestle_builder_before(node));
  f.of = &of;
  of.shape.dtype = f.compute = compute_dtype(node);
  const pestle_node_t* start = node->prev;
  pestle_value_t* result = decompose(&f);
  if (f.status) {
    // What was written before the failing step goes, last first.
    while (node->prev != start)
      pestle_node_erase(node->prev);
    return f.status;
  }
  out_results[0] = result;
  for (uint32_t i = 1; i < node->result_count; ++i)
    out_results[i] = of.more[i - 1];
  return NULL;
}
