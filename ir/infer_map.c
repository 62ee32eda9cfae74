// SPDX-License-Identifier: Apache-2.0
// Type rules of map and reduce_precision. The comments number the constraints of
// the StableHLO spec.
#include "base/mem.h"
#include "ir/infer.h"

// C3: all axes, in order.
static pestle_status_t check_dimensions(const pestle_infer_t* in, int rank) {
  pestle_i64s_t axes = pestle_in_i64s(in, PESTLE_ATTR_dimensions);
  if (!axes.count) return NULL;  // left out
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_dimensions, (size_t)rank));
  for (size_t i = 0; i < axes.count; ++i) {
    if (axes.data[i] == (int64_t)i) continue;
    return PESTLE_BAD(
        "'dimensions' has %lld at %zu: they are all axes in order",
        (long long)axes.data[i], i);
  }
  return NULL;
}

pestle_status_t pestle_infer_map(pestle_infer_t* in) {
  size_t count = in->spec->operand_count;
  if (!count) return PESTLE_BAD("no operand is given, the op takes at least 1");
  pestle_type_t shape = *pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_arguments(in, 0, count));
  const pestle_block_t* block = pestle_in_block(in, 0);
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (!pestle_shapes_agree(&shape, type)) {  // C1, C2
      return PESTLE_BAD(
          "operand 0 is %s, operand %zu is %s: shapes must be equal",
          pestle_type_text(pestle_in_type(in, 0)).text, i,
          pestle_type_text(type).text);
    }
    pestle_merge_shape(&shape, type);
    pestle_type_t scalar = pestle_type_make(type->dtype, 0, NULL);
    PESTLE_TRY(pestle_need_region_type("argument", i, 0,
                                       block->arguments[i]->type, &scalar));
  }
  PESTLE_TRY(check_dimensions(in, shape.rank));
  const pestle_node_t* node;
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  if (node->operand_count != 1 ||
      pestle_node_operand(node, 0)->type->rank != 0) {  // C4
    return PESTLE_BAD("region 0 must return one value of rank 0");
  }
  shape.dtype = pestle_node_operand(node, 0)->type->dtype;
  return pestle_emit(in, &shape);
}

pestle_status_t pestle_infer_reduce_precision(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_exponent_bits, 1, 64));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_mantissa_bits, 0, 64));
  return pestle_emit(in, pestle_in_type(in, 0));
}
