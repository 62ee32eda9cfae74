// SPDX-License-Identifier: Apache-2.0
// Type rules of reduce and reduce_window. Operands: n inputs, n initial values.
#include "base/mem.h"
#include "ir/infer.h"

// Inputs have one shape, which |out_shape| gets; initial values have rank 0 and
// their input's element type.
static pestle_status_t check_inputs(const pestle_infer_t* in, size_t* out_count,
                                    pestle_type_t* out_shape) {
  size_t operands = in->spec->operand_count;
  size_t count = operands / 2;
  if (count == 0 || operands % 2) {
    return PESTLE_BAD(
        "%zu operands are given: there must be an initial value "
        "for each input",
        operands);
  }
  *out_shape = *pestle_in_type(in, 0);
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (!pestle_shapes_agree(out_shape, type)) {
      return PESTLE_BAD(
          "operand 0 is %s, operand %zu is %s: shapes must be "
          "equal",
          pestle_type_text(pestle_in_type(in, 0)).text, i,
          pestle_type_text(type).text);
    }
    pestle_merge_shape(out_shape, type);
    PESTLE_TRY(pestle_need_rank(in, count + i, 0));
    PESTLE_TRY(pestle_need_same_dtype(in, i, count + i));
  }
  *out_count = count;
  return NULL;
}

static pestle_status_t emit_each(pestle_infer_t* in, size_t count,
                                 pestle_type_t* shape) {
  for (size_t i = 0; i < count; ++i) {
    shape->dtype = pestle_in_type(in, i)->dtype;
    PESTLE_TRY(pestle_emit(in, shape));
  }
  return NULL;
}

pestle_status_t pestle_infer_reduce(pestle_infer_t* in) {
  size_t count;
  pestle_type_t shape;
  bool reduced[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(check_inputs(in, &count, &shape));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions, shape.rank, reduced));
  PESTLE_TRY(pestle_need_reduce_body(in, count));
  pestle_type_t type = {.rank = 0};
  for (int i = 0; i < shape.rank; ++i) {
    if (!reduced[i]) type.dims[type.rank++] = shape.dims[i];
  }
  return emit_each(in, count, &type);
}

static pestle_status_t check_window(const pestle_infer_t* in, size_t rank) {
  static const uint16_t positive[] = {
      PESTLE_ATTR_window_dimensions, PESTLE_ATTR_window_strides,
      PESTLE_ATTR_base_dilations, PESTLE_ATTR_window_dilations};
  for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]); ++i) {
    pestle_attr_name_t name = (pestle_attr_name_t)positive[i];
    PESTLE_TRY(pestle_need_count(in, name, rank));
    PESTLE_TRY(pestle_need_at_least(in, name, 1));
  }
  return pestle_need_count(in, PESTLE_ATTR_padding, 2 * rank);
}

pestle_status_t pestle_infer_reduce_window(pestle_infer_t* in) {
  size_t count;
  pestle_type_t shape;
  PESTLE_TRY(check_inputs(in, &count, &shape));
  PESTLE_TRY(check_window(in, (size_t)shape.rank));
  PESTLE_TRY(pestle_need_reduce_body(in, count));
  const int64_t* padding = pestle_in_i64s(in, PESTLE_ATTR_padding).data;
  for (int i = 0; i < shape.rank; ++i) {
    pestle_window_t window = {
        .size = pestle_in_i64s(in, PESTLE_ATTR_window_dimensions).data[i],
        .stride = pestle_in_i64s(in, PESTLE_ATTR_window_strides).data[i],
        .base_dilation = pestle_in_i64s(in, PESTLE_ATTR_base_dilations).data[i],
        .window_dilation =
            pestle_in_i64s(in, PESTLE_ATTR_window_dilations).data[i],
        .low = padding[2 * i],
        .high = padding[2 * i + 1]};
    PESTLE_TRY(pestle_window_places(shape.dims[i], &window, i, &shape.dims[i]));
  }
  return emit_each(in, count, &shape);
}
