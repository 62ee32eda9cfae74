// SPDX-License-Identifier: Apache-2.0
// Type rules of composites: but for quantisation, the type of operand 0.
#include "base/mem.h"
#include "ir/infer.h"

static pestle_status_t infer_like(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  return pestle_emit(in, pestle_in_type(in, 0));
}

static pestle_status_t infer_along(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions,
                              pestle_in_type(in, 0)->rank, NULL));
  return infer_like(in);
}

pestle_status_t pestle_infer_softmax(pestle_infer_t* in) {
  return infer_along(in);
}

pestle_status_t pestle_infer_log_softmax(pestle_infer_t* in) {
  return infer_along(in);
}

// --- Norms ---

// Operand |operand| has the element type of x and the shape of the axes that
// 'dimensions' names, in that order.
static pestle_status_t check_per_dimension(const pestle_infer_t* in,
                                           size_t operand) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  pestle_i64s_t axes = pestle_in_i64s(in, PESTLE_ATTR_dimensions);
  pestle_type_t shape = {.dtype = x->dtype, .rank = (int32_t)axes.count};
  for (size_t i = 0; i < axes.count; ++i) {
    shape.dims[i] = x->dims[axes.data[i]];
  }
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (type->dtype == x->dtype && pestle_shapes_agree(type, &shape)) return NULL;
  return PESTLE_BAD(
      "operand %zu is %s, not %s: the shape of the normalised "
      "'dimensions'",
      operand, pestle_type_text(type).text, pestle_type_text(&shape).text);
}

static pestle_status_t infer_norm(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions,
                              pestle_in_type(in, 0)->rank, NULL));
  PESTLE_TRY(pestle_need_sorted(in, PESTLE_ATTR_dimensions));
  double epsilon = pestle_in_attr(in, PESTLE_ATTR_epsilon)->as.f64;
  if (!(epsilon >= 0)) {
    return PESTLE_BAD("'epsilon' is %g: it must not be negative", epsilon);
  }
  for (size_t i = 1; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(check_per_dimension(in, i));
  }
  return infer_like(in);
}

pestle_status_t pestle_infer_layer_norm(pestle_infer_t* in) {
  return infer_norm(in);
}

pestle_status_t pestle_infer_rms_norm(pestle_infer_t* in) {
  return infer_norm(in);
}

// --- Activations ---

pestle_status_t pestle_infer_gelu(pestle_infer_t* in) {
  return infer_like(in);
}

pestle_status_t pestle_infer_silu(pestle_infer_t* in) {
  return infer_like(in);
}

pestle_status_t pestle_infer_hard_sigmoid(pestle_infer_t* in) {
  return infer_like(in);
}

// --- Quantisation: x, scale, zero point ---

static bool is_f8(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
         pestle_dtype_size(dtype) == 1;
}

// Wider integers do not pass unharmed through the f32 in which it is computed.
static bool is_quantized(pestle_dtype_t dtype) {
  return is_f8(dtype) || (pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
                          pestle_dtype_size(dtype) <= 2);
}

// The scale is a float; scale and zero point have rank 0, or rank 1 along
// 'axis'.
static pestle_status_t check_parameters(const pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  const pestle_type_t* scale = pestle_in_type(in, 1);
  const pestle_type_t* zero = pestle_in_type(in, 2);
  PESTLE_TRY(pestle_need_kind(in, 1, PESTLE_KIND_FLOAT));
  if (!pestle_shapes_agree(scale, zero)) {
    return PESTLE_BAD("operand 1 is %s, operand 2 is %s: shapes must be equal",
                      pestle_type_text(scale).text,
                      pestle_type_text(zero).text);
  }
  if (scale->rank == 0) return NULL;
  PESTLE_TRY(pestle_need_rank(in, 1, 1));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_axis, 0, x->rank));
  int64_t axis = pestle_in_i64(in, PESTLE_ATTR_axis);
  if (pestle_dims_agree(x->dims[axis], scale->dims[0]) &&
      pestle_dims_agree(x->dims[axis], zero->dims[0])) {
    return NULL;
  }
  return PESTLE_BAD(
      "operand 1 is %s: its extent must be that of axis %lld of "
      "operand 0, %s",
      pestle_type_text(scale).text, (long long)axis, pestle_type_text(x).text);
}

pestle_status_t pestle_infer_quantize(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(check_parameters(in));
  if (type.dtype != PESTLE_I32) PESTLE_TRY(pestle_need_same_dtype(in, 1, 0));
  type.dtype = pestle_in_type(in, 2)->dtype;
  if (!is_quantized(type.dtype)) {
    return PESTLE_BAD(
        "operand 2 is %s: the zero point's element type must be "
        "an integer of up to 16 bits or an f8",
        pestle_type_text(pestle_in_type(in, 2)).text);
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_dequantize(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(check_parameters(in));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 2));
  if (type.dtype != PESTLE_I32 && !is_quantized(type.dtype)) {
    return PESTLE_BAD(
        "operand 0 is %s: its element type must be i32, an "
        "integer of up to 16 bits or an f8",
        pestle_type_text(pestle_in_type(in, 0)).text);
  }
  type.dtype = pestle_in_type(in, 1)->dtype;
  return pestle_emit(in, &type);
}
