// SPDX-License-Identifier: Apache-2.0
// Type rules of adaptive pools: the dimensions get their output sizes.
#include "ir/infer.h"

static pestle_status_t infer_pool(pestle_infer_t* in, unsigned kinds) {
  PESTLE_TRY(pestle_need_kind(in, 0, kinds));
  pestle_type_t type = *pestle_in_type(in, 0);
  pestle_i64s_t axes = pestle_in_i64s(in, PESTLE_ATTR_dimensions);
  pestle_i64s_t sizes = pestle_in_i64s(in, PESTLE_ATTR_output_sizes);
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions, type.rank, NULL));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_output_sizes, axes.count));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_output_sizes, 0));
  for (size_t i = 0; i < axes.count; ++i) {
    if (type.dims[axes.data[i]] == 0 && sizes.data[i] > 0) {
      return PESTLE_BAD(
          "operand 0 is %s: axis %lld has no elements of which 'output_sizes' "
          "could ask for %lld",
          pestle_type_text(pestle_in_type(in, 0)).text, (long long)axes.data[i],
          (long long)sizes.data[i]);
    }
    type.dims[axes.data[i]] = sizes.data[i];
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_adaptive_average_pool(pestle_infer_t* in) {
  return infer_pool(in, PESTLE_KIND_FLOAT);
}

pestle_status_t pestle_infer_adaptive_max_pool(pestle_infer_t* in) {
  return infer_pool(in, PESTLE_KIND_REAL);
}
