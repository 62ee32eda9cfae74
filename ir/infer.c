// SPDX-License-Identifier: Apache-2.0
// Entry of type inference and the rules of scalar ops.
#include "ir/infer.h"

#include "base/mem.h"

// --- Scalar ops ---

// All operands in [first, count) have one shape, which |out| gets.
static pestle_status_t same_shape(const pestle_infer_t* in, size_t first,
                                  size_t count, pestle_type_t* out) {
  *out = *pestle_in_type(in, first);
  for (size_t i = first + 1; i < count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (!pestle_shapes_agree(out, type)) {
      return PESTLE_BAD(
          "operand %zu is %s, operand %zu is %s: shapes must be "
          "equal",
          first, pestle_type_text(pestle_in_type(in, first)).text, i,
          pestle_type_text(type).text);
    }
    pestle_merge_shape(out, type);
  }
  return NULL;
}

static pestle_status_t infer_same(pestle_infer_t* in) {
  pestle_type_t type;
  size_t count = in->spec->operand_count;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_need_kind(in, i, in->info->kinds));
    PESTLE_TRY(pestle_need_same_dtype(in, 0, i));
  }
  PESTLE_TRY(same_shape(in, 0, count, &type));
  if (in->info->rule != PESTLE_RULE_SAME) type.dtype = PESTLE_I1;
  if (in->spec->op == PESTLE_OP_ABS) type.dtype = pestle_dtype_part(type.dtype);
  return pestle_emit(in, &type);
}

// Shape of operand |operand|, which may stand for every element with rank 0.
static pestle_status_t scalar_or_shape(const pestle_infer_t* in, size_t operand,
                                       pestle_type_t* shape) {
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (type->rank == 0) return NULL;
  if (!pestle_shapes_agree(shape, type)) {
    return PESTLE_BAD(
        "operand %zu is %s: its rank must be 0 or its shape that "
        "of %s",
        operand, pestle_type_text(type).text, pestle_type_text(shape).text);
  }
  pestle_merge_shape(shape, type);
  return NULL;
}

static pestle_status_t infer_select(pestle_infer_t* in) {
  pestle_type_t type;
  if (pestle_in_type(in, 0)->dtype != PESTLE_I1) {
    return PESTLE_BAD(
        "operand 0 is %s: the predicate's element type must be "
        "i1",
        pestle_type_text(pestle_in_type(in, 0)).text);
  }
  PESTLE_TRY(pestle_need_kind(in, 1, in->info->kinds));
  PESTLE_TRY(pestle_need_same_dtype(in, 1, 2));
  PESTLE_TRY(same_shape(in, 1, 3, &type));
  PESTLE_TRY(scalar_or_shape(in, 0, &type));
  return pestle_emit(in, &type);
}

static pestle_status_t infer_clamp(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 1);
  PESTLE_TRY(pestle_need_kind(in, 1, in->info->kinds));
  PESTLE_TRY(pestle_need_same_dtype(in, 1, 0));
  PESTLE_TRY(pestle_need_same_dtype(in, 1, 2));
  PESTLE_TRY(scalar_or_shape(in, 0, &type));
  PESTLE_TRY(scalar_or_shape(in, 2, &type));
  return pestle_emit(in, &type);
}

// --- Entry ---

typedef pestle_status_t (*rule_fn_t)(pestle_infer_t* in);

static pestle_status_t run_structured(pestle_infer_t* in) {
  static const rule_fn_t rules[] = {
#define PESTLE_OP_BEGIN(NAME, op, ...) pestle_infer_##op,
#include "pestle/ops.def"
  };
  return rules[(int)in->spec->op - PESTLE_SCALAR_COUNT](in);
}

static pestle_status_t run_rule(pestle_infer_t* in) {
  switch ((pestle_rule_t)in->info->rule) {
    case PESTLE_RULE_SAME:
    case PESTLE_RULE_COMPARE:
    case PESTLE_RULE_TEST:
      return infer_same(in);
    case PESTLE_RULE_SELECT:
      return infer_select(in);
    case PESTLE_RULE_CLAMP:
      return infer_clamp(in);
    case PESTLE_RULE_INFER:
    case PESTLE_RULE_TYPED:
    case PESTLE_RULE_TYPES:
      return run_structured(in);
  }
  return PESTLE_ERROR(INTERNAL, "a row has no type rule");
}

static pestle_status_t check_counts(const pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  const pestle_op_info_t* info = in->info;
  if (info->operands != PESTLE_VARIADIC &&
      spec->operand_count != info->operands) {
    return PESTLE_BAD("%zu operands are given, the op takes %d",
                      spec->operand_count, (int)info->operands);
  }
  if (info->regions != PESTLE_VARIADIC && spec->region_count != info->regions) {
    return PESTLE_BAD("%zu regions are given, the op takes %d",
                      spec->region_count, (int)info->regions);
  }
  if (spec->operand_count > UINT32_MAX || spec->region_count > UINT32_MAX) {
    return PESTLE_BAD("too many operands or regions");
  }
  return NULL;
}

static pestle_status_t check_pointers(const pestle_node_spec_t* spec) {
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i]) return PESTLE_BAD("operand %zu is NULL", i);
  }
  for (size_t i = 0; i < spec->region_count; ++i) {
    if (!spec->regions[i]) return PESTLE_BAD("region %zu is NULL", i);
  }
  return NULL;
}

pestle_status_t pestle_infer_types(const pestle_node_spec_t* spec,
                                   pestle_type_t* out_types, size_t capacity,
                                   size_t* out_count) {
  *out_count = 0;
  pestle_infer_t in = {.spec = spec,
                       .info = pestle_op_info(spec->op),
                       .out = out_types,
                       .capacity = capacity};
  if (!in.info) return PESTLE_BAD("there is no op number %d", (int)spec->op);
  PESTLE_TRY(check_counts(&in));
  PESTLE_TRY(check_pointers(spec));
  PESTLE_TRY(pestle_attrs_complete(spec, in.attrs, &in.attr_count));
  PESTLE_TRY(run_rule(&in));
  *out_count = in.count;
  return NULL;
}
