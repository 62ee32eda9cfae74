// SPDX-License-Identifier: Apache-2.0
// Type rules of sort, sort_first, suppress and places. The comments number the constraints of the StableHLO spec.
#include "base/mem.h"
#include "ir/infer.h"

// C5: the comparator takes a pair of elements for each operand and says whether
// the first of each comes first.
static pestle_status_t check_comparator(const pestle_infer_t* in) {
  size_t count = in->spec->operand_count;
  PESTLE_TRY(pestle_need_arguments(in, 0, 2 * count));
  const pestle_block_t* block = pestle_in_block(in, 0);
  for (size_t i = 0; i < 2 * count; ++i) {
    pestle_type_t type =
        pestle_type_make(pestle_in_type(in, i / 2)->dtype, 0, NULL);
    PESTLE_TRY(pestle_need_region_type("argument", i, 0,
                                       block->arguments[i]->type, &type));
  }
  const pestle_node_t* node;
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  if (node->operand_count != 1) {
    return PESTLE_BAD("the comparator returns %u values, not one",
                      (unsigned)node->operand_count);
  }
  pestle_type_t type = pestle_type_make(PESTLE_I1, 0, NULL);
  return pestle_need_region_type("result", 0, 0,
                                 pestle_node_operand(node, 0)->type, &type);
}

// The one shape of all operands, and the dimension, counted from the front.
static pestle_status_t check_operands(const pestle_infer_t* in,
                                      pestle_type_t* out_shape,
                                      int64_t* out_axis) {
  if (!in->spec->operand_count) {
    return PESTLE_BAD("no operand is given, the op takes at least 1");
  }
  *out_shape = *pestle_in_type(in, 0);
  for (size_t i = 1; i < in->spec->operand_count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (!pestle_shapes_agree(out_shape, type)) {  // C1
      return PESTLE_BAD(
          "operand 0 is %s, operand %zu is %s: shapes must be equal",
          pestle_type_text(pestle_in_type(in, 0)).text, i,
          pestle_type_text(type).text);
    }
    pestle_merge_shape(out_shape, type);
  }
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, -out_shape->rank,
                                 out_shape->rank));  // C4
  *out_axis = pestle_in_i64(in, PESTLE_ATTR_dimension);
  if (*out_axis < 0) *out_axis += out_shape->rank;
  return check_comparator(in);
}

static pestle_status_t emit_operands(pestle_infer_t* in, pestle_type_t shape) {
  for (size_t i = 0; i < in->spec->operand_count; ++i) {
    shape.dtype = pestle_in_type(in, i)->dtype;
    PESTLE_TRY(pestle_emit(in, &shape));
  }
  return NULL;
}

pestle_status_t pestle_infer_sort(pestle_infer_t* in) {
  pestle_type_t shape;
  int64_t axis;
  PESTLE_TRY(check_operands(in, &shape, &axis));
  return emit_operands(in, shape);
}

pestle_status_t pestle_infer_sort_first(pestle_infer_t* in) {
  pestle_type_t shape;
  int64_t axis;
  PESTLE_TRY(check_operands(in, &shape, &axis));
  int64_t most = shape.dims[axis] < 0 ? INT32_MAX : shape.dims[axis];
  if (most > INT32_MAX) {
    return PESTLE_BAD(
        "dimension %lld has %lld elements; at most 2^31 - 1 can "
        "be numbered",
        (long long)axis, (long long)most);
  }
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_count, 0, most + 1));
  shape.dims[axis] = pestle_in_i64(in, PESTLE_ATTR_count);
  PESTLE_TRY(emit_operands(in, shape));
  shape.dtype = PESTLE_I32;
  return pestle_emit(in, &shape);
}

static pestle_status_t need_scalar(const pestle_infer_t* in, size_t operand,
                                   pestle_dtype_t dtype) {
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (type->dtype == dtype && !type->rank) return NULL;
  return PESTLE_BAD("operand %zu is %s, not one %s", operand,
                    pestle_type_text(type).text,
                    pestle_dtype_info(dtype)->name);
}

pestle_status_t pestle_infer_suppress(pestle_infer_t* in) {
  static const pestle_dtype_t scalars[] = {PESTLE_F32, PESTLE_F32, PESTLE_I64,
                                           PESTLE_I64};
  if (in->spec->operand_count != 6) {
    return PESTLE_BAD("it takes 6 operands, not %zu", in->spec->operand_count);
  }
  const pestle_type_t *x = pestle_in_type(in, 0), *s = pestle_in_type(in, 1);
  if (x->dtype != PESTLE_F32 || s->dtype != PESTLE_F32 || x->rank != 3 ||
      s->rank != 3 || !pestle_dims_agree(x->dims[2], 4) ||
      !pestle_dims_agree(x->dims[0], s->dims[0]) ||
      !pestle_dims_agree(x->dims[1], s->dims[2])) {
    return PESTLE_BAD(
        "boxes %s and scores %s are not f32 [b, n, 4] and [b, c, n]",
        pestle_type_text(x).text, pestle_type_text(s).text);
  }
  for (size_t i = 0; i < 4; ++i)
    PESTLE_TRY(need_scalar(in, i + 2, scalars[i]));
  if (s->dims[2] > INT32_MAX - 1) {
    return PESTLE_BAD("%lld boxes are more than can be numbered",
                      (long long)s->dims[2]);
  }
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_most, 0, INT32_MAX));
  pestle_type_t type = *s;
  type.dtype = PESTLE_I32;
  type.dims[2] = pestle_in_i64(in, PESTLE_ATTR_most);
  PESTLE_TRY(pestle_emit(in, &type));
  type.rank = 2;
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_places(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  if (type.dtype != PESTLE_I1 || type.rank != 1 || type.dims[0] > INT32_MAX) {
    return PESTLE_BAD("operand 0 is %s, not i1 [n] of at most 2^31 - 1",
                      pestle_type_text(&type).text);
  }
  type.dtype = PESTLE_I32;
  PESTLE_TRY(pestle_emit(in, &type));
  return pestle_emit(in, &(pestle_type_t){.dtype = PESTLE_I64});
}
