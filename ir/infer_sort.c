// SPDX-License-Identifier: Apache-2.0
// Type rule of sort. The comments number the constraints of the StableHLO spec.
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

pestle_status_t pestle_infer_sort(pestle_infer_t* in) {
  if (!in->spec->operand_count) {
    return PESTLE_BAD("no operand is given, the op takes at least 1");
  }
  pestle_type_t shape = *pestle_in_type(in, 0);
  for (size_t i = 1; i < in->spec->operand_count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (!pestle_shapes_agree(&shape, type)) {  // C1
      return PESTLE_BAD(
          "operand 0 is %s, operand %zu is %s: shapes must be equal",
          pestle_type_text(pestle_in_type(in, 0)).text, i,
          pestle_type_text(type).text);
    }
    pestle_merge_shape(&shape, type);
  }
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, -shape.rank,
                                 shape.rank));  // C4
  PESTLE_TRY(check_comparator(in));
  for (size_t i = 0; i < in->spec->operand_count; ++i) {
    shape.dtype = pestle_in_type(in, i)->dtype;
    PESTLE_TRY(pestle_emit(in, &shape));
  }
  return NULL;
}
